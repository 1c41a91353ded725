"""JSON files and the schemas they are read through."""

import json
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from loginfer.documents import FileName, Matching, Size, misfit, parse_document
from loginfer.errors import InputError


class Entry(TypedDict):
    name: str
    size: NotRequired[Size | None]


class Document(TypedDict):
    kind: Literal["a", "b"]
    share: float
    entries: list[Entry]
    files: NotRequired[dict[FileName, bool]]
    code: NotRequired[Annotated[str, Matching("[a-z]+", "a word")]]
    more: NotRequired[Any]


FINE = {"kind": "a", "share": 1, "entries": [{"name": "x"}, {"name": "y", "size": 0}], "unknown": 3}


def test_a_document_that_fits_has_no_misfit():
    assert misfit(FINE, Document) is None
    assert (
        misfit({**FINE, "entries": [{"name": "x", "size": None}], "files": {"a.txt": True}, "more": [1]}, Document)
        is None
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "c"}, '`kind` must be "a" or "b", not \'c\''),
        ({"share": "1"}, "`share` must be a number, not '1'"),
        ({"share": True}, "`share` must be a number, not True"),
        ({"entries": {}}, "`entries` must be a list of objects, not {}"),
        ({"entries": [3]}, "`entries[0]` must be an object, not 3"),
        ({"entries": [{}]}, "`entries[0].name` is missing"),
        ({"entries": [{"name": "x", "size": -1}]}, "`entries[0].size` must be a whole number of at least 0, not -1"),
        ({"entries": [{"name": "x", "size": 2**63}]}, "`entries[0].size` must be a whole number of at least 0"),
        (
            {"entries": [{"name": "x", "size": True}]},
            "`entries[0].size` must be a whole number of at least 0, not True",
        ),
        ({"files": {"../x": True}}, "`files.../x` must be a text that is the name of a file"),
        ({"files": {"..": True}}, "`files...` must be a text that is the name of a file"),
        ({"files": {"x": 1}}, "`files.x` must be true or false, not 1"),
        ({"code": "A"}, "`code` must be a text that is a word, not 'A'"),
        ({"code": None}, "`code` must be a text that is a word, not None"),
    ],
)
def test_the_part_that_does_not_fit_is_named(change, message):
    assert misfit({**FINE, **change}, Document).startswith(message)


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff", b'{"a": NaN}', b'{"a": "\\ud800"}', b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"],
    ids=["cut off", "no UTF-8", "no number", "half a character", "deep", "many digits"],
)
def test_what_is_no_json_is_refused_with_its_place(content):
    with pytest.raises(InputError, match="this file is no JSON") as caught:
        parse_document(content, dict[str, Any], where="f.json", what="run", hint="run it again")
    assert str(caught.value).startswith("f.json: ")
    assert "run it again" in str(caught.value)


def test_another_format_and_another_version_are_refused():
    def read(**document):
        return parse_document(json.dumps(document).encode(), Any, where="f", what="run", hint="", form=("ours", 2))

    assert read(format="ours", format_version=2)["format"] == "ours"
    with pytest.raises(InputError, match='its "format" is not "ours"'):
        read(format="theirs")
    with pytest.raises(InputError, match="the run has the format 3; this program reads format 2"):
        read(format="ours", format_version=3)
