"""AnyBURL's rule files, a million lines at a time.

Lines are cut at what AnyBURL puts between their parts. An atom is looked at once, however often it comes, and
so is the shape of a rule. A line with anything unusual in it goes to the dialect's reader.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from loginfer.engine.binding import ABSENT, relation_named
from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE, TYPE_NAMES, KnowledgeGraph
from loginfer.logic.dialects.anyburl import ANYBURL
from loginfer.logic.rulefile import rule_text
from loginfer.logic.scored import ScoredRule
from loginfer.systems.rules.shapes import PathShape, path_shape
from loginfer.systems.rules.texts_names import (
    UNKNOWN_CONSTANT,
    UNKNOWN_RELATION,
    PathRows,
    Skipped,
    add_rule,
)
from loginfer.systems.rules.texts_writing import LOOP
from loginfer.systems.rules.values import NONE, MinedRules

__all__ = ["parse_path_rules", "read_path_rules"]

# An atom whose names cannot be misread.
_PLAIN_ATOM = re.compile(r"([^\s(),]+)\(([^\s(),]+),([^\s(),]+)\)")
_DIGITS = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

# An atom: its relation, its constant (NONE without one), its places as variables or " ", and the first name
# that the graph does not have with the reason for leaving the rule out.
_Seen: TypeAlias = tuple[int, int, str, tuple[str, str] | None]


def read_path_rules(
    path: str | Path, graph: KnowledgeGraph, *, distinct: bool = True
) -> tuple[MinedRules, Skipped]:
    """Read a file of AnyBURL's rules over the ids of a graph.

    Measures are what the file says: AnyBURL's confidence is that of the counts, not what the rule is worth
    when AnyBURL applies it.

    Parameters
    ----------
    path
        The file.
    graph
        Gives the ids. Rules with names that it does not have are left out.
    distinct
        As for `MinedRules`.

    Returns
    -------
    MinedRules, Skipped
        The rules, and what was left out; a line that cannot be read stands there with its number.

    Raises
    ------
    InputError
        If the file cannot be read as text.
    """
    return parse_path_rules(rule_text(Path(path)), graph, distinct=distinct, path=str(path))


def parse_path_rules(
    text: str, graph: KnowledgeGraph, *, distinct: bool = True, path: str = "rules"
) -> tuple[MinedRules, Skipped]:
    """Read the text of a file of AnyBURL's rules (see `read_path_rules`); `path` is what messages call it."""
    reader = _Reader(graph, path)
    for number, line in enumerate(text.split("\n"), 1):
        if not reader.quickly(line, number):
            reader.carefully(line.removesuffix("\r"), number)
    return MinedRules(reader.rows.table(), tuple(reader.others), distinct), reader.skipped


class _Reader:
    """Reads line by line."""

    def __init__(self, graph: KnowledgeGraph, path: str) -> None:
        self.rows, self.skipped = PathRows(), Skipped()
        self.others: list[ScoredRule] = []
        self._graph, self._path = graph, path
        self._entities = {name: number for number, name in enumerate(graph.entities)}
        self._atoms: dict[str, _Seen | None] = {}
        self._shapes: dict[tuple[str, ...], PathShape | None] = {}

    def quickly(self, line: str, number: int) -> bool:
        """Read a line with names that cannot be misread; False if it is no such line."""
        parts = line.split("\t")
        if len(parts) != 4:
            return False
        head, implied, body = parts[3].partition(" <= ")
        if not implied or not _DIGITS.fullmatch(parts[0]) or not _DIGITS.fullmatch(parts[1]):
            return False
        if not _NUMBER.fullmatch(parts[2]) or float(parts[2]) > 1:
            return False
        body = body.rstrip()
        texts = [head]
        if body:
            # The bracket that was cut off belongs to the atom.
            texts += [f"{piece})" for piece in body.split("), ")]
            texts[-1] = texts[-1][:-1]
        seen = []
        for text in texts:
            atom = self._atoms[text] if text in self._atoms else self._see(text)
            if atom is None:
                return False
            seen.append(atom)
        key = tuple([atom[2] for atom in seen])
        shape = self._shapes[key] if key in self._shapes else self._shape(key)
        if shape is None:
            return False
        for atom in seen:
            if atom[3] is not None:
                self.skipped.add(atom[3][0], f"{self._path}:{number}: `{atom[3][1]}`")
                return True
        end = seen[1 + shape.steps[-1][0]][1] if shape.end else NONE
        steps = [2 * seen[1 + place][0] + side for place, side in shape.steps]
        row = (seen[0][0], shape.variables, seen[0][1], end, *steps)
        self.rows.add(row, (int(parts[0]), int(parts[1]), float(parts[2])))
        return True

    def _see(self, text: str) -> _Seen | None:
        """Look at an atom for the first time."""
        match = _PLAIN_ATOM.fullmatch(text)
        seen: _Seen | None = None
        if match and LOOP not in match.group(2, 3):
            name, *terms = match.groups()
            relation = relation_named(RDF_TYPE if name in TYPE_NAMES else name, self._graph)
            unknown = (UNKNOWN_RELATION, name) if relation == ABSENT else None
            constant, places = NONE, ""
            for term in terms:
                if term in _CAPITALS:
                    places += term
                    continue
                places += " "
                constant = self._entities.get(term, NONE)
                if constant == NONE and unknown is None:
                    unknown = (UNKNOWN_CONSTANT, term)
            seen = (relation, constant, places, unknown)
        self._atoms[text] = seen
        return seen

    def _shape(self, key: tuple[str, ...]) -> PathShape | None:
        """Look at a shape for the first time."""
        places = [tuple(None if place == " " else place for place in atom) for atom in key]
        found = path_shape(places[0], places[1:])  # type: ignore[arg-type]
        self._shapes[key] = found
        return found

    def carefully(self, line: str, number: int) -> None:
        """Read any line as the dialect does."""
        if not line.strip():
            return
        where = f"{self._path}:{number}"
        try:
            rule = ANYBURL.read_any(line, where, {})
        except InputError as error:
            self.skipped.malformed.append(str(error).partition("\n")[0])
            return
        if add_rule(rule, where, self._graph, self.rows, self.skipped) and isinstance(rule, ScoredRule):
            self.others.append(rule)
