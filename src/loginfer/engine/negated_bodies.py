"""The bodies of a pattern with negations, from counts of bodies without.

Let B be the atoms and inequalities of a body and N1, …, Nk what it negates. The number of witnesses is

    #(B ∧ ¬N1 ∧ … ∧ ¬Nk) = Σ over subsets T of {1, …, k} of (-1)^|T| · #(B ∧ ⋀ of Ni, i ∈ T)

where Ni says that there are values for the variables that only the negation has, not how many. A negation
that excludes no witness makes the body the same as the shorter one without it, as repeating an atom does;
such a body is left out. So only bodies with witnesses that each Ni excludes are looked at, and those are few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine.bodies import finish_table
from loginfer.engine.interface import BodyTable
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import BodyAtom, Negation, Pattern
from loginfer.logic.terms import Template

__all__ = ["Count", "counted_templates", "rank_negated"]

Ints: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]
# For some negations that must be violated: predicates, int32[m, k] in the order of `counted_templates`, and
# the number of witnesses of B that violate them all, int64[m], above zero.
Count: TypeAlias = Callable[[tuple[Negation, ...]], tuple[Ints, Longs]]

# More combinations of several negations than this are not written down.
MOST_ROWS = 1 << 25
_LARGEST = 2**62


def counted_templates(pattern: Pattern, violated: Sequence[Negation]) -> tuple[Template, ...]:
    """Return the templates of a pattern's atoms and of some of its negations, in that order."""
    parts: tuple[BodyAtom, ...] = (*pattern.atoms, *violated)
    return tuple(dict.fromkeys(template for part in parts for template in part.templates))


def rank_negated(graph: KnowledgeGraph, pattern: Pattern, top: int | None, count: Count) -> BodyTable:
    """Return the exact support of every body of a pattern with negations, or of the `top` largest.

    Parameters
    ----------
    graph
        The graph K.
    pattern
        The pattern.
    top
        How many bodies to return; all by default.
    count
        Counts the witnesses of every body's atoms and inequalities that violate some of its negations.

    Raises
    ------
    LimitError
        When a pattern with several negations has too many bodies to write them down.
    """
    negations = tuple(dict.fromkeys(pattern.negations))
    if any(set(pattern.existential(n)) == set(n.variables) for n in negations):
        # Such a negation holds of every witness or of none.
        nothing = np.empty((0, len(pattern.templates)), dtype=np.int32)
        return finish_table(graph, pattern, nothing, np.empty(0, dtype=np.int64), top)
    tables = {
        violated: count(violated)
        for size in range(len(negations) + 1)
        for violated in combinations(negations, size)
    }
    rows = _candidates(pattern, negations, tables)
    support = np.zeros(len(rows), dtype=np.int64)
    without = [np.zeros(len(rows), dtype=np.int64) for _ in negations]
    for violated, (predicates, found) in tables.items():
        places = [pattern.templates.index(t) for t in counted_templates(pattern, violated)]
        signed = (-1) ** len(violated) * _look_up(rows[:, places], predicates, found)
        support += signed
        for i, negation in enumerate(negations):
            if negation not in violated:
                without[i] += signed
    keep = np.ones(len(rows), dtype=bool)
    for more in without:
        keep &= more > support
    return finish_table(graph, pattern, rows[keep], support[keep], top)


def _candidates(
    pattern: Pattern,
    negations: Sequence[Negation],
    tables: dict[tuple[Negation, ...], tuple[Ints, Longs]],
) -> Ints:
    """Return int32[m, templates]: the bodies in which each negation alone excludes a witness."""
    columns: dict[Template, Ints] = {}
    for number, negation in enumerate(negations):
        predicates, _ = tables[(negation,)]
        found = dict(zip(counted_templates(pattern, (negation,)), predicates.T, strict=True))
        if number == 0:
            columns, size = found, len(predicates)
            continue
        left, right = _matches(columns, found, size, len(predicates))
        size = len(left)
        columns = {t: c[left] for t, c in columns.items()} | {
            t: c[right] for t, c in found.items() if t not in columns
        }
    rows = np.empty((size, len(pattern.templates)), dtype=np.int32)
    for place, template in enumerate(pattern.templates):
        rows[:, place] = columns[template]
    return rows


def _matches(
    one: dict[Template, Ints], two: dict[Template, Ints], first: int, second: int
) -> tuple[Longs, Longs]:
    """Return the pairs of rows of two tables that agree where both have a template."""
    shared = [t for t in one if t in two]
    left, right = _codes([one[t] for t in shared], [two[t] for t in shared], first, second)
    order = np.argsort(right, kind="stable")
    begin = np.searchsorted(right[order], left, side="left")
    counts = np.searchsorted(right[order], left, side="right") - begin
    total = int(counts.sum())
    if total > MOST_ROWS:
        raise LimitError(
            f"the negations of the pattern have {total:,} bodies together, more than {MOST_ROWS:,}",
            hint="use a pattern with fewer templates under negations",
        )
    places = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(np.arange(first), counts), order[np.repeat(begin, counts) + places]


def _look_up(rows: Ints, predicates: Ints, found: Longs) -> Longs:
    """Return the count of each row, 0 for those that are not there."""
    wanted, known = _codes(list(rows.T), list(predicates.T), len(rows), len(predicates))
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known[order], wanted), max(len(known) - 1, 0))
    counts = np.zeros(len(rows), dtype=np.int64)
    if len(known):
        same = known[order][places] == wanted
        counts[same] = found[order][places[same]]
    return counts


def _codes(one: Sequence[Ints], two: Sequence[Ints], first: int, second: int) -> tuple[Longs, Longs]:
    """Return one number for each row of two tables, equal for equal rows only."""
    codes = np.zeros(first + second, dtype=np.int64)
    span = 1
    for left, right in zip(one, two, strict=True):
        column = np.concatenate([left, right]).astype(np.int64)
        width = int(column.max(initial=0)) + 1
        if span * width > _LARGEST:
            values, codes = np.unique(codes, return_inverse=True)
            codes, span = codes.astype(np.int64).ravel(), len(values)
        codes = codes * width + column
        span *= width
    return codes[:first], codes[first:]
