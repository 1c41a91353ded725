"""Which rules of a benchmark were mined as they are, up to renaming and atom order: ε_cont."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import relation_named
from loginfer.kg import KnowledgeGraph
from loginfer.logic.canonical import canonical_text
from loginfer.logic.entailment_paths import PathRules
from loginfer.logic.rule import Rule
from loginfer.systems.rules.values import LONGEST, NONE, MinedRules, RuleTable

__all__ = ["contained"]

# Any odd number will do: rows with the same product are compared in full.
_MULTIPLIER = np.int64(0x9E3779B97F4A7C15 - (1 << 64))


def contained(rules: Sequence[Rule], mined: MinedRules, graph: KnowledgeGraph) -> list[bool]:
    """Return which rules are among the mined ones, up to variable renaming and atom order.

    A path rule has one row in a table: its path starts at the head's subject. So rows are compared, and
    canonical texts only for rules of other shapes.
    """
    rows = [_row(rule, graph) for rule in rules]
    known = _rows_among(mined.paths, [row for row in rows if row is not None])
    texts = {canonical_text(scored.rule) for scored in mined.others}
    return [
        row in known or (bool(texts) and canonical_text(rule) in texts)
        for rule, row in zip(rules, rows, strict=True)
    ]


def _row(rule: Rule, graph: KnowledgeGraph) -> tuple[int, ...] | None:
    """Return the row of a table that a rule would be; None for other shapes and names nobody has mined."""
    paths, others = PathRules.of([rule])
    if others:
        return None
    relations = [relation_named(name, graph) for name in paths.relations]
    constants = [graph.entities.get(name) for name in paths.constants]
    if min(relations) < 0 or None in constants:
        return None

    def constant(code: int) -> int:
        found = None if code == NONE else constants[code]
        return NONE if found is None else found

    steps = [NONE if c == NONE else 2 * relations[c // 2] + c % 2 for c in paths.body[0].tolist()]
    ends = constant(int(paths.head_constant[0])), constant(int(paths.end_constant[0]))
    return (relations[int(paths.head[0])], int(paths.variables[0]), *ends, *steps)


def _rows_among(paths: RuleTable, wanted: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return those rows that a table has."""
    columns = [paths.head, paths.variables, paths.head_constant, paths.end_constant, *paths.body.T]
    rows = np.array(wanted, dtype=np.int32).reshape(-1, 4 + LONGEST)
    places = np.flatnonzero(np.isin(_mixed(columns), _mixed(list(rows.T))))
    found = {tuple(row) for row in np.column_stack([column[places] for column in columns]).tolist()}
    return found.intersection(wanted)


def _mixed(columns: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
    mixed = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        mixed = mixed * _MULTIPLIER + column
    return mixed
