"""From raw counts to the table of a pattern's bodies: one body a rule, in a fixed order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import ABSENT, relation_named
from loginfer.engine.interface import BodyTable
from loginfer.kg import KnowledgeGraph
from loginfer.logic.canonical import canonical_text
from loginfer.logic.instances import collapses, collapses_onto, instantiate, symmetries
from loginfer.logic.rule import Inequality, Pattern, Rule
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
    if top is not None and top < 0:
        raise ValueError(f"top must not be negative, but is {top}")
    keep = support > 0
    for i, j in collapses(pattern):
        keep &= predicates[:, i] != predicates[:, j]
    for i, name in collapses_onto(pattern):
        is_type = pattern.is_type_template(pattern.templates[i])
        found = graph.entities.get(name) if is_type else relation_named(name, graph)
        keep &= predicates[:, i] != (ABSENT if found is None else found)
    for permutation in symmetries(pattern):
        keep &= _not_larger(predicates, predicates[:, list(permutation)])
    predicates, support = predicates[keep], support[keep]
    once = _first_of_each_rule(graph, pattern, predicates, support)
    predicates, support = predicates[once], support[once]
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


def _first_of_each_rule(
    graph: KnowledgeGraph,
    pattern: Pattern,
    predicates: npt.NDArray[np.int32],
    support: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Return bool[m]: all bodies but those that are the same rule as another with smaller ids.

    Where a template stands in several atoms, or an atom has a name, instances can be one rule although no
    exchange of templates makes them so: four atoms R, R, S, T are two of p and two of q in two ways. They
    then have the same predicates in some order, and some predicate for two templates or also as a name.
    """
    once = np.ones(len(support), dtype=bool)
    atoms = dict.fromkeys(part for part in pattern.body if not isinstance(part, Inequality))
    places = [pattern.templates.index(t) for atom in atoms for t in atom.templates]
    if len(pattern.templates) < 2 or len(atoms) == len(pattern.templates):
        return once
    labels = np.sort(predicates[:, places], axis=1)
    repeated = (labels[:, 1:] != labels[:, :-1]).sum(axis=1) + 1 < len(pattern.templates)
    doubtful = np.flatnonzero(repeated | (len(places) < len(atoms)))
    _, group, size = np.unique(
        np.column_stack([support[doubtful], labels[doubtful]]),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    doubtful = doubtful[size[group.ravel()] > 1]
    doubtful = doubtful[np.lexsort(predicates[doubtful].T[::-1])]
    seen: set[str] = set()
    for row, names in zip(doubtful.tolist(), _names(graph, pattern, predicates[doubtful]), strict=True):
        text = canonical_text(_instance(pattern, names))
        once[row] = text not in seen
        seen.add(text)
    return once


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
    return _names(graph, table.pattern, table.predicates)


def _names(
    graph: KnowledgeGraph, pattern: Pattern, predicates: npt.NDArray[np.int32]
) -> list[tuple[str, ...]]:
    columns = [
        (graph.entities if pattern.is_type_template(t) else graph.relations).names(predicates[:, i])
        for i, t in enumerate(pattern.templates)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * len(predicates)


def body_texts(table: BodyTable, graph: KnowledgeGraph) -> list[str]:
    """Return the text of each body."""
    # The text of one body with the templates as names: whatever the names are, they stand in these places.
    templates = table.pattern.templates
    marks = [f"\0{i}\0" for i in range(len(templates))]
    pieces = _instance(table.pattern, tuple(marks)).body_text
    for mark in marks:
        pieces = pieces.replace(quote(mark), mark)
    parts = pieces.split("\0")
    columns = _names(graph, table.pattern, table.predicates)
    quoted: dict[str, str] = {}
    texts = []
    for names in columns:
        for name in names:
            if name not in quoted:
                quoted[name] = quote(name)
        texts.append("".join(quoted[names[int(p)]] if i % 2 else p for i, p in enumerate(parts)))
    return texts


def _instance(pattern: Pattern, names: tuple[str, ...]) -> Rule:
    """Return a rule with this body; what the head is called does not matter."""
    return instantiate(pattern, names, None if pattern.head_in_body else "_")
