"""JSON files that are read through a schema, so that nothing behind it has to check what they hold.

A schema is a type: `int`, `list[str]`, a `Literal`, a `TypedDict`, and so on. `Annotated` adds what a type cannot
say: bounds of a number (`AtLeast`) and the form of a text (`Matching`).
"""

from __future__ import annotations

import json
import re
import types
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from loginfer.errors import InputError
from loginfer.files import reading


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A bound of a number."""

    least: int

    def allows(self, value: float) -> bool:
        """Whether a number is large enough, and fits 64 bits."""
        return self.least <= value < 2**63

    def __str__(self) -> str:
        return f" of at least {self.least}"


@dataclass(frozen=True, slots=True)
class Matching:
    """The form of a text, and how it is called."""

    pattern: str
    words: str

    def allows(self, value: str) -> bool:
        """Whether a text has this form."""
        return re.fullmatch(self.pattern, value) is not None

    def __str__(self) -> str:
        return f" that is {self.words}"


Size = Annotated[int, AtLeast(0)]
FileName = Annotated[str, Matching(r"(?!\.\.?\Z)[^/\\\0]+", "the name of a file")]

_WORDS: dict[Any, str] = {
    int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "null",
    list: "a list", tuple: "a list", dict: "an object",
}  # fmt: skip


def read_document(path: Path, schema: Any, *, what: str, hint: str, form: tuple[str, int] | None = None) -> Any:
    """Read a JSON file and check it against its schema.

    Parameters
    ----------
    path
        The file.
    schema
        The type of what it holds; keys that a `TypedDict` does not have may be there too.
    what
        What the file describes: "benchmark", "run", …
    hint
        What to do about a file that is damaged.
    form
        The format and its version that the file must name.

    Raises
    ------
    InputError
        If it cannot be read, is no JSON, or does not fit the schema; with the place in it.
    """
    with reading(path):
        content = path.read_bytes()
    return parse_document(content, schema, where=str(path), what=what, hint=hint, form=form)


def parse_document(
    content: bytes, schema: Any, *, where: str, what: str, hint: str, form: tuple[str, int] | None = None
) -> Any:
    """Read the content of a JSON file, as `read_document` does."""
    try:
        value = json.loads(content, parse_constant=_refuse)
        if b"\\u" in content:
            json.dumps(value, ensure_ascii=False).encode()  # half a character, such as \ud800
    except (ValueError, RecursionError) as error:
        raise InputError(f"this file is no JSON: {error}", where=where, hint=hint) from error
    if form is not None:
        name, version = form
        if not isinstance(value, dict) or value.get("format") != name:
            raise InputError(f'this file is not that of a {what}: its "format" is not "{name}"', where=where, hint=hint)
        if value.get("format_version") != version:
            actual = json.dumps(value.get("format_version"))
            message = f"the {what} has the format {actual}; this program reads format {version}"
            raise InputError(message, where=where, hint="use the version of loginfer that wrote it, or make it again")
    if (problem := misfit(value, schema)) is not None:
        raise InputError(problem, where=where, hint=hint)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def misfit(value: Any, schema: Any, at: str = "") -> str | None:
    """Say which part of a value does not fit a schema, and what it should be; None if all fits."""
    origin, choices = get_origin(schema), get_args(schema)
    if schema is Any:
        return None
    if origin is NotRequired:
        return misfit(value, choices[0], at)
    if origin is Annotated:
        fits = misfit(value, choices[0]) is None and all(condition.allows(value) for condition in choices[1:])
        return None if fits else _unfit(value, schema, at)
    if origin in (Union, types.UnionType):
        problems = [misfit(value, choice, at) for choice in choices]
        # Of several choices that one is meant which has parts, as the value has.
        inside = [text for text in problems if text is not None and not text.startswith(f"{_place(at)} must")]
        return None if None in problems else inside[0] if inside else _unfit(value, schema, at)
    if origin is Literal:
        return None if any(value == c and type(value) is type(c) for c in choices) else _unfit(value, schema, at)
    if is_typeddict(schema):
        if not isinstance(value, dict):
            return _unfit(value, dict, at)
        for key, part in _parts(schema).items():
            if key in value:
                wrong = misfit(value[key], part, _below(at, key))
            else:
                wrong = None if get_origin(part) is NotRequired else f"{_place(_below(at, key))} is missing"
            if wrong is not None:
                return wrong
        return None
    kind: Any = (int, float) if schema is float else origin or schema
    if not isinstance(value, kind) or (isinstance(value, bool) and schema in (int, float)):
        return _unfit(value, schema, at)
    parts: list[str | None] = []
    if origin is dict:
        parts += [misfit(key, choices[0], _below(at, str(key))) for key in value]
        parts += [misfit(part, choices[1], _below(at, str(key))) for key, part in value.items()]
    elif origin in (list, tuple):
        parts += [misfit(part, choices[0], f"{at}[{i}]") for i, part in enumerate(value)]
    return next(filter(None, parts), None)


@cache
def _parts(schema: Any) -> dict[str, Any]:
    return get_type_hints(schema, include_extras=True)


def _below(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _place(at: str) -> str:
    return f"`{at}`" if at else "the file"


def _unfit(value: Any, schema: Any, at: str) -> str:
    shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:59]}…"
    return f"{_place(at)} must be {described(schema)}, not {shown}"


def described(schema: Any) -> str:
    """Return a schema in words: "a whole number of at least 0"."""
    origin, choices = get_origin(schema), get_args(schema)
    if origin is Annotated:
        return described(choices[0]) + "".join(map(str, choices[1:]))
    if origin in (Union, types.UnionType):
        return " or ".join(described(choice) for choice in choices if choice is not type(None))
    if origin is Literal:
        return " or ".join(json.dumps(choice) for choice in choices)
    if origin in (list, tuple) and get_origin(choices[0]) is None:
        return f"{_WORDS[origin]} of {_WORDS.get(choices[0], 'object').split(' ', 1)[-1]}s"
    return _WORDS.get(origin or schema, "an object")
