"""What stands in an atom: variables, constants, templates, and how their names are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from loginfer.errors import InputError

__all__ = ["Constant", "Predicate", "Template", "Term", "Variable"]

# A bare word is a variable if it is one lower-case letter with digits or primes (x, y2, z'), or starts
# with a question mark. Everything else that stands for a subject or an object is a constant.
VARIABLE = re.compile(r"[a-z][0-9]*'*\Z|\?[A-Za-z_][A-Za-z0-9_]*\Z")
TEMPLATE = re.compile(r"_[A-Za-z][0-9]*\Z")
_VARIABLE_NAME = re.compile(r"[a-z][0-9]*'*\Z|[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True, order=True)
class Variable:
    """A variable, by its name: `x`, `y2`, or any identifier behind a question mark (`?person`).

    The question mark is part of the text only; the name is without it.
    """

    name: str

    def __post_init__(self) -> None:
        if not _VARIABLE_NAME.match(self.name):
            raise InputError(
                f"`{self.name}` cannot be the name of a variable",
                hint="use letters, digits and underscores: x, y2, person",
            )

    def __str__(self) -> str:
        return self.name if VARIABLE.match(self.name) else f"?{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Constant:
    """A constant, or a type in the object place of a type atom, by its name in the graph."""

    name: str

    def __str__(self) -> str:
        return quote(self.name)


@dataclass(frozen=True, slots=True, order=True)
class Template:
    """A place in a pattern for any relation (`_R`) or type (`_t`); the underscore is part of the name."""

    name: str

    def __post_init__(self) -> None:
        if not TEMPLATE.match(self.name):
            raise InputError(
                f"`{self.name}` cannot be the name of a template",
                hint="a template is an underscore and one letter, with digits if needed: _R, _t2",
            )

    def __str__(self) -> str:
        return self.name


Term: TypeAlias = Variable | Constant | Template
Predicate: TypeAlias = str | Template

# What our syntax reads as one bare word: everything up to a space, a bracket, a separator, `->` or `!=`.
WORD = re.compile(r"""(?:(?!->|!=)[^\s,()<>\[\]{}"\\&|∧≠→?'#])(?:(?!->|!=)[^\s,()<>\[\]{}"\\&|∧≠→])*""")
# An RDF literal as N-Triples writes it.
LITERAL = re.compile(
    r'"(?:[^"\\\n\r]|\\[^\n\r])*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^<[^<>"{}|^`\\\s]*>)?(?!["@^])'
)
# A name in angle brackets. Inside, these are written with a backslash, so that any name fits on one line.
BRACKETED = re.compile(r"<((?:[^\\>\n\r]|\\[^\n\r])*)>")
_ESCAPES = {"\\": "\\\\", ">": "\\>", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Words that mean something else than a name where a name may stand.
RESERVED = frozenset({"type", "a", "rdf:type", "not"})


def is_literal(name: str) -> bool:
    """Say whether a name is an RDF literal as N-Triples writes it; rules carry those as they are."""
    return LITERAL.fullmatch(name) is not None


def quote(name: str) -> str:
    """Write a name so that the rule parser reads it back: bare where possible, else in < >."""
    if is_literal(name):
        return name
    if (
        WORD.fullmatch(name)
        and name not in RESERVED
        and not name.endswith(".")
        and not VARIABLE.match(name)
        and not TEMPLATE.match(name)
    ):
        return name
    return "<" + "".join(_ESCAPES.get(c, c) for c in name) + ">"
