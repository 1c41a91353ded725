"""Names that a format cannot hold, made safe so that they can be had back.

Where every name of a vocabulary is fine, all are written as they are. Where one is not, the vocabulary is
percent-encoded: what the format cannot hold, and `%` itself. `export.json` says which it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph

__all__ = ["Texts", "decoder", "safe_texts"]

PLAIN, ENCODED = "as they are", "percent-encoded"


@dataclass(frozen=True, slots=True)
class Texts:
    """How the names of a graph are written: one text for each id.

    Parameters
    ----------
    entities, relations
        The texts.
    encoded
        Of which vocabularies they are percent-encoded: `entities`, `relations`.
    """

    entities: Sequence[str]
    relations: Sequence[str]
    encoded: tuple[str, ...] = ()

    @property
    def about(self) -> dict[str, Any]:
        """What `export.json` tells of them."""
        kinds = ("entities", "relations")
        return {"names": {kind: ENCODED if kind in self.encoded else PLAIN for kind in kinds}}

    @property
    def notes(self) -> list[str]:
        """What a user should know of them."""
        return [
            f"some names of {kind} cannot be written as they are: all are percent-encoded, and "
            "urllib.parse.unquote has them back"
            for kind in self.encoded
        ]


def safe_texts(graph: KnowledgeGraph, entities: re.Pattern[str], relations: re.Pattern[str]) -> Texts:
    """Return how names are written in a format.

    Parameters
    ----------
    graph
        Has the names.
    entities, relations
        Find in a name what the format cannot hold.
    """
    written, encoded = [], []
    for kind, vocabulary, unsafe in (
        ("entities", graph.entities, entities),
        ("relations", graph.relations, relations),
    ):
        names: list[str] = list(vocabulary)
        if any(unsafe.search(name) for name in names):
            encoded.append(kind)
            names = [_encoded(name, unsafe) for name in names]
        written.append(names)
    return Texts(written[0], written[1], tuple(encoded))


def _encoded(name: str, unsafe: re.Pattern[str]) -> str:
    """Encode `%`, and every character that the expression finds."""
    places = {place for found in unsafe.finditer(name) for place in range(*found.span())}
    return "".join(
        _hexadecimal(letter) if letter == "%" or place in places else letter
        for place, letter in enumerate(name)
    )


def _hexadecimal(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode())


def decoder(about: Mapping[str, Any], kind: str) -> Callable[[str], str]:
    """Return what turns the texts of a vocabulary into names, as `export.json` tells."""
    how = about.get("names")
    return _decoded if isinstance(how, dict) and how.get(kind) == ENCODED else str


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InputError(f"`{text[:60]}` is no percent-encoded name") from None
