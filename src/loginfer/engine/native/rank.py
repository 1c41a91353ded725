"""The exact support of every body of a pattern at once.

Patterns of a few shapes have kernels of their own (`rank_patterns`, `rank_diamond`). For all others each atom
is a table of counts, and the supports are a sum of products of these (`factors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import ABSENT, relation_of
from loginfer.engine.bodies import counted_templates, finish_table, rank_negated
from loginfer.engine.interface import BodyTable
from loginfer.engine.native.factors import CountTable, Different, eliminate, product
from loginfer.engine.native.rank_diamond import diamond_table, diamond_top, worth_pruning
from loginfer.engine.native.rank_patterns import TABLES, LabelledEdges, edges_of, recognise
from loginfer.kg import KnowledgeGraph
from loginfer.logic.patterns import symmetries
from loginfer.logic.rule import Atom, Constant, Negation, Pattern, Template, Term, Variable
from loginfer.progress import Progress

# Kernels with dense tables of labels × labels are for graphs of at most this many relations.
DENSE_LABELS = 4096


def rank_bodies(
    graph: KnowledgeGraph,
    pattern: Pattern,
    top: int | None = None,
    *,
    complete: bool | None = None,
    progress: Progress | None = None,
) -> BodyTable:
    """Return the exact support of every body of a pattern, or of the `top` largest.

    Parameters
    ----------
    graph
        The graph K.
    pattern
        The pattern; relation templates range over Rels(K), type templates over Types(K). A body with a
        negation that excludes none of its witnesses is left out.
    top
        How many bodies to return; all that have a witness by default.
    complete
        Whether to count every body even if only the largest are wanted. By default bodies outside the
        `top` are left uncounted where counting them would take very long; then `nonzero` is None.
    progress
        Told how far the work has come.

    Raises
    ------
    LimitError
        When a support does not fit into 64 bits, or when a pattern of unconnected parts has too many
        bodies to write them down.
    """
    if pattern.negations:
        if progress:
            progress(f"counting the bodies of `{pattern.name}`", 0, None)
        return rank_general_negated(graph, pattern, top, progress)
    shape = recognise(pattern)
    if shape is None or len(graph.rels) > DENSE_LABELS:
        return rank_general(graph, pattern, top, progress)
    edges = edges_of(graph, loops=shape.name not in ("triangle", "diamond"))
    if progress:
        progress(f"counting the bodies of `{pattern.name}`", 0, None)
    labels, support, all_counted = _count(pattern, shape.name, edges, top, complete, progress)
    # Column i of the result is for the i-th template, the kernel's columns are for the shape's edges.
    predicates = graph.rels[labels[:, list(shape.places)]].astype(np.int32)
    return finish_table(graph, pattern, predicates, support, top, nonzero_known=all_counted)


def _count(
    pattern: Pattern,
    shape: str,
    edges: LabelledEdges,
    top: int | None,
    complete: bool | None,
    progress: Progress | None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], bool]:
    """Return labels and supports by the kernel for a shape, and whether they are all there are."""
    if shape == "diamond":
        if top is None or complete or (complete is None and not worth_pruning(edges)):
            return *diamond_table(edges, progress), True
        mirrors = len(symmetries(pattern)) == 1
        return *diamond_top(edges, top, mirrors=mirrors, progress=progress), False
    return *TABLES[shape](edges), True


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Query:
    """A pattern over ids: variables are 0, 1, … and templates follow them."""

    factors: list[CountTable]
    different: list[Different]
    variables: int
    sizes: dict[int, int]


def rank_general(
    graph: KnowledgeGraph, pattern: Pattern, top: int | None = None, progress: Progress | None = None
) -> BodyTable:
    """Return the exact support of every body of a pattern, or of the `top` largest.

    Raises
    ------
    LimitError
        When a support does not fit into 64 bits, or when a pattern of unconnected parts has too many
        bodies to write them down.
    """
    query = _query(graph, pattern)
    if query is None:
        return _finish(graph, pattern, None, top, complete=True)
    parts = [_count_part(query, *part, progress) for part in _connected(query)]
    if top is None or not all(len(part) for part in parts):
        return _finish(graph, pattern, product(parts)[0], top, complete=True)
    # Bodies that collapse or are the same rule as others are dropped, so more may be needed than `top`.
    wanted = 4 * top + 64
    while True:
        chosen, complete = product(parts, wanted)
        table = _finish(graph, pattern, chosen, top, complete=complete)
        if complete or len(table) >= top:
            return table
        wanted *= 8


def rank_general_negated(
    graph: KnowledgeGraph, pattern: Pattern, top: int | None = None, progress: Progress | None = None
) -> BodyTable:
    """Return the exact support of every body of a pattern with negations, or of the `top` largest.

    Raises
    ------
    LimitError
        As for `rank_general`.
    """

    def count(violated: tuple[Negation, ...]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        templates = counted_templates(pattern, violated)
        query = _query(graph, pattern, violated)
        if query is None:
            return np.empty((0, len(templates)), dtype=np.int32), np.empty(0, dtype=np.int64)
        whole, _ = product([_count_part(query, *part, progress) for part in _connected(query)])
        first = len(pattern.variables)
        rows = np.empty((len(whole), len(templates)), dtype=np.int32)
        for i in range(len(templates)):
            rows[:, i] = whole.columns[first + i]
        return rows, whole.count

    return rank_negated(graph, pattern, top, count)


def _count_part(query: _Query, columns: set[int], factors: list[CountTable], progress: Progress | None) -> CountTable:
    """Return the supports of a connected part of a pattern."""

    def report(done: int, blocks: int) -> None:
        if progress:
            progress("counting bodies", done, blocks)

    different = [pair for pair in query.different if pair[0] in columns]
    return eliminate(factors, different, query.variables, query.sizes, report)


def _finish(
    graph: KnowledgeGraph, pattern: Pattern, bodies: CountTable | None, top: int | None, *, complete: bool
) -> BodyTable:
    templates, first = len(pattern.templates), len(pattern.variables)
    if bodies is None:
        bodies = CountTable({}, np.empty(0, dtype=np.int64))
    predicates = np.empty((len(bodies), templates), dtype=np.int32)
    for i in range(templates if len(bodies) else 0):
        predicates[:, i] = bodies.columns[first + i]
    return finish_table(graph, pattern, predicates, bodies.count, top, nonzero_known=complete)


def _query(graph: KnowledgeGraph, pattern: Pattern, violated: Sequence[Negation] = ()) -> _Query | None:
    """Look up a pattern's names and select the triples of each atom; None if no body has a witness.

    Of negations, those that must be violated are looked at; the others are not.
    """
    variables = {v: i for i, v in enumerate(pattern.variables)}
    templates = {t: len(variables) + i for i, t in enumerate(counted_templates(pattern, violated))}
    sizes = dict.fromkeys(variables.values(), len(graph.entities))
    for template, number in templates.items():
        is_type = pattern.is_type_template(template)
        if is_type and graph.type_relation is None:
            return None
        sizes[number] = len(graph.entities if is_type else graph.relations)

    different: set[Different] = set()
    forbidden: list[tuple[Variable, int]] = []
    for inequality in pattern.inequalities:
        if inequality.left == inequality.right:
            return None
        left, right = inequality.terms
        if isinstance(left, Variable) and isinstance(right, Variable):
            i, j = variables[left], variables[right]
            different.add((min(i, j), max(i, j)))
        elif isinstance(left, Variable) or isinstance(right, Variable):
            variable, constant = (left, right) if isinstance(left, Variable) else (right, left)
            found = graph.entities.get(constant.name)
            # A constant that the graph does not have differs from everything.
            if found is not None and isinstance(variable, Variable):
                forbidden.append((variable, found))

    factors = []
    for atom in dict.fromkeys(pattern.atoms):
        factor = _factor(graph, atom, variables, templates)
        if factor is None:
            return None
        for variable, value in forbidden:
            if variables[variable] in factor.columns:
                factor = factor.where(factor.columns[variables[variable]] != value)
        factors.append(factor)
    for negation in violated:
        factor = _factor(graph, negation.atom, variables, templates)
        if factor is None:
            return None
        factors.append(_distinct(factor))
    return _Query(factors, sorted(different), len(variables), sizes)


def _distinct(factor: CountTable) -> CountTable:
    """Return each row once, with the count 1."""
    rows = np.unique(np.column_stack(list(factor.columns.values())), axis=0)
    columns = {number: np.ascontiguousarray(rows[:, i]) for i, number in enumerate(factor.columns)}
    return CountTable(columns, np.ones(len(rows), dtype=np.int64))


def _factor(
    graph: KnowledgeGraph, atom: Atom, variables: dict[Variable, int], templates: dict[Template, int]
) -> CountTable | None:
    """Return the triples that match an atom; None if it mentions a name that the graph does not have."""
    triples = graph.triples
    keep: Mask = np.ones(len(triples), dtype=bool)
    columns: list[tuple[int, int]] = []  # a variable's or template's number, and its place in a triple
    if isinstance(atom.relation, Template):
        columns.append((templates[atom.relation], 1))
        if graph.type_relation is not None:
            keep &= triples[:, 1] != graph.type_relation
    else:
        relation = relation_of(atom, graph)
        if relation == ABSENT:
            return None
        keep &= triples[:, 1] == relation
    places: tuple[tuple[Term, int], ...] = ((atom.subject, 0), (atom.object, 2))
    for term, place in places:
        if isinstance(term, Constant):
            found = graph.entities.get(term.name)
            if found is None:
                return None
            keep &= triples[:, place] == found
        elif isinstance(term, Template):
            columns.append((templates[term], place))
        elif term in variables:  # not one that only a negation has
            columns.append((variables[term], place))
    if atom.subject == atom.object:
        keep &= triples[:, 0] == triples[:, 2]
    chosen = triples[keep]
    return CountTable(
        {number: np.ascontiguousarray(chosen[:, place]) for number, place in sorted(columns)},
        np.ones(len(chosen), dtype=np.int64),
    )


def _connected(query: _Query) -> list[tuple[set[int], list[CountTable]]]:
    """Group factors that are linked by variables, inequalities or templates, in order."""
    groups: list[tuple[set[int], list[int]]] = []
    links = [(set(f.columns), [i]) for i, f in enumerate(query.factors)]
    links += [(set(pair), []) for pair in query.different]
    for columns, places in links:
        linked = [g for g in groups if g[0] & columns]
        for group in linked:
            columns, places = columns | group[0], places + group[1]
        groups = [g for g in groups if g not in linked] + [(columns, places)]
    ordered = sorted(((columns, sorted(places)) for columns, places in groups), key=lambda g: g[1])
    return [(columns, [query.factors[i] for i in places]) for columns, places in ordered]
