"""From raw counts to the table of a pattern's bodies: one body a rule, in a fixed order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.engine.interface import BodyTable
from loginfer.kg import KnowledgeGraph
from loginfer.logic.instances import collapses, instantiate, symmetries
from loginfer.logic.rule import Pattern
from loginfer.logic.terms import quote

__all__ = ["body_texts", "finish_table", "predicate_names"]


def finish_table(
    graph: KnowledgeGraph,
    pattern: Pattern,
    predicates: npt.NDArray[np.int32],
    support: npt.NDArray[np.int64],
    top: int | None = None,
    *,
    nonzero_known: bool = True,
) -> BodyTable:
    """Keep one body per rule, sort by support and text, cut.

    An instance in which two atoms coincide belongs to a smaller pattern and is dropped. Of instances that
    are the same rule up to renaming (intersection: R, S and S, R) the one with the smallest ids stays.

    Parameters
    ----------
    graph
        The graph whose ids the predicates are.
    pattern
        The pattern.
    predicates
        int32[m, k], one column per template of the pattern; at least the smallest member of each orbit.
    support
        int64[m], number of witnesses; zeros are dropped.
    top
        How many to keep; all by default.
    nonzero_known
        Whether every body with a witness is among the rows.
    """
    keep = support > 0
    for i, j in collapses(pattern):
        keep &= predicates[:, i] != predicates[:, j]
    for permutation in symmetries(pattern):
        keep &= _not_larger(predicates, predicates[:, list(permutation)])
    predicates, support = predicates[keep], support[keep]
    nonzero = len(support) if nonzero_known else None
    if top is not None and top < len(support):
        # Only bodies that can be among the first `top`, ties included, need to be sorted by text.
        threshold = np.partition(support, len(support) - top)[len(support) - top] if top else np.inf
        chosen = support >= threshold
        predicates, support = predicates[chosen], support[chosen]
    ranks = _text_ranks(graph, pattern, predicates)
    order = np.lexsort((*reversed(ranks), -support))[: len(support) if top is None else top]
    return BodyTable(
        pattern,
        np.ascontiguousarray(predicates[order], dtype=np.int32),
        np.ascontiguousarray(support[order], dtype=np.int64),
        nonzero,
    )


def _not_larger(left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[m]: left ≤ right, row by row, in lexicographic order."""
    smaller = np.zeros(len(left), dtype=bool)
    equal = np.ones(len(left), dtype=bool)
    for i in range(left.shape[1]):
        smaller |= equal & (left[:, i] < right[:, i])
        equal &= left[:, i] == right[:, i]
    return smaller | equal


def _text_ranks(
    graph: KnowledgeGraph, pattern: Pattern, predicates: npt.NDArray[np.int32]
) -> list[npt.NDArray[np.int64]]:
    """Return for each template the rank of its predicate's text, in the order of the body's text.

    Bodies of one pattern differ only where their predicates stand. What follows a predicate there, a comma
    or for a type a parenthesis, cannot occur in its text, so comparing the texts of bodies comes to
    comparing these texts one by one.
    """
    ranks = []
    for i, template in enumerate(pattern.templates):
        ids, inverse = np.unique(predicates[:, i], return_inverse=True)
        is_type = pattern.is_type_template(template)
        names = (graph.entities if is_type else graph.relations).names(ids)
        texts = [quote(name) + (")" if is_type else ",") for name in names]
        rank = np.empty(len(texts), dtype=np.int64)
        rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        ranks.append(rank[inverse.ravel()])
    return ranks


def predicate_names(table: BodyTable, graph: KnowledgeGraph) -> list[tuple[str, ...]]:
    """Return the names of the predicates of each body, in the order of the pattern's templates."""
    columns = [
        (graph.entities if table.pattern.is_type_template(t) else graph.relations).names(
            table.predicates[:, i]
        )
        for i, t in enumerate(table.pattern.templates)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * len(table)


def body_texts(table: BodyTable, graph: KnowledgeGraph) -> list[str]:
    """Return the text of each body."""
    head = None if table.pattern.head_in_body else "_"
    return [instantiate(table.pattern, names, head).body_text for names in predicate_names(table, graph)]
