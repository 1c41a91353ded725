"""From raw counts to the table of a pattern's bodies: one body a rule, in a fixed order.

The bodies of a pattern with negations come from counts of bodies without. Let B be the atoms and inequalities
of a body and N1, …, Nk what it negates. The number of witnesses is

    #(B ∧ ¬N1 ∧ … ∧ ¬Nk) = Σ over subsets T of {1, …, k} of (-1)^|T| · #(B ∧ ⋀ of Ni, i ∈ T)

where Ni says that there are values for the variables that only the negation has, not how many. A negation
that excludes no witness makes the body the same as the shorter one without it, as repeating an atom does;
such a body is left out. So only bodies with witnesses that each Ni excludes are looked at, and those are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from loginfer.engine.binding import ABSENT, relation_named
from loginfer.engine.interface import BodyTable, Engine
from loginfer.engine.registry import open_engine_in
from loginfer.errors import InputError, LimitError
from loginfer.frames import Rows
from loginfer.kg import RDF_TYPE, KnowledgeGraph, load_graph
from loginfer.kg.graph import Ids, Ints, Mask, ranges
from loginfer.logic import parse_pattern
from loginfer.logic.canonical import canonical_text
from loginfer.logic.patterns import collapses, collapses_onto, instantiate, symmetries
from loginfer.logic.rule import BodyAtom, Constant, Inequality, Negation, Pattern, Rule, Template, quote
from loginfer.progress import ProgressChoice, shown


def finish_table(
    graph: KnowledgeGraph,
    pattern: Pattern,
    predicates: Ids,
    support: Ints,
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
        name_id = graph.entities.get(name) if is_type else relation_named(name, graph)
        keep &= predicates[:, i] != (ABSENT if name_id is None else name_id)
    for permutation in symmetries(pattern):
        keep &= _not_larger(predicates, predicates[:, list(permutation)])
    predicates, support = predicates[keep], support[keep]
    once = _first_of_each_rule(graph, pattern, predicates, support)
    predicates, support = predicates[once], support[once]
    nonzero = len(support) if nonzero_known else None
    if top is not None and top < len(support):
        # Only bodies that can be among the first `top`, ties included, need to be sorted by text.
        threshold = np.partition(support, len(support) - top)[len(support) - top] if top else np.inf
        in_top = support >= threshold
        predicates, support = predicates[in_top], support[in_top]
    ranks = _text_ranks(graph, pattern, predicates)
    order = np.lexsort((*reversed(ranks), -support))[: len(support) if top is None else top]
    rows = np.ascontiguousarray(predicates[order], dtype=np.int32)
    return BodyTable(pattern, rows, np.ascontiguousarray(support[order], dtype=np.int64), nonzero)


def _first_of_each_rule(graph: KnowledgeGraph, pattern: Pattern, predicates: Ids, support: Ints) -> Mask:
    """Return bool[m]: all bodies but those that are the same rule as another with smaller ids.

    Where a template stands in several atoms, or an atom has a name, instances can be one rule although no
    exchange of templates makes them so: four atoms R, R, S, T are two of p and two of q in two ways. They
    then have the same predicates in some order, and some predicate for two templates or also as a name.
    """
    once = np.ones(len(support), dtype=bool)
    atoms = dict.fromkeys(part for part in pattern.body if not isinstance(part, Inequality))
    template_columns = [pattern.templates.index(t) for atom in atoms for t in atom.templates]
    if len(pattern.templates) < 2 or len(atoms) == len(pattern.templates):
        return once
    labels = np.sort(predicates[:, template_columns], axis=1)
    repeated = (labels[:, 1:] != labels[:, :-1]).sum(axis=1) + 1 < len(pattern.templates)
    doubtful = np.flatnonzero(repeated | (len(template_columns) < len(atoms)))
    looks = np.column_stack([support[doubtful], labels[doubtful]])
    _, group, size = np.unique(looks, axis=0, return_inverse=True, return_counts=True)
    doubtful = doubtful[size[group.ravel()] > 1]
    doubtful = doubtful[np.lexsort(predicates[doubtful].T[::-1])]
    seen: set[str] = set()
    for row, names in zip(doubtful.tolist(), _names(graph, pattern, predicates[doubtful]), strict=True):
        text = canonical_text(_instance(pattern, names))
        once[row] = text not in seen
        seen.add(text)
    return once


def _not_larger(left: Ids, right: Ids) -> Mask:
    """Return bool[m]: left ≤ right, row by row, in lexicographic order."""
    smaller = np.zeros(len(left), dtype=bool)
    equal = np.ones(len(left), dtype=bool)
    for i in range(left.shape[1]):
        smaller |= equal & (left[:, i] < right[:, i])
        equal &= left[:, i] == right[:, i]
    return smaller | equal


def _text_ranks(graph: KnowledgeGraph, pattern: Pattern, predicates: Ids) -> list[Ints]:
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


@dataclass(frozen=True, slots=True)
class RankedBodies(Rows):
    """The bodies of a pattern by name, with their supports, largest first.

    Parameters
    ----------
    pattern
        The pattern.
    bodies
        Support, text and predicates of each.
    nonzero
        How many bodies have a witness; None if bodies outside the top were pruned unseen.
    """

    pattern: Pattern
    bodies: tuple[tuple[int, str, tuple[str, ...]], ...]
    nonzero: int | None
    columns = ("support", "body", "relations")

    def __len__(self) -> int:
        return len(self.bodies)

    def rows(self) -> Iterator[tuple[int, str, str]]:
        """Yield support, text and predicates."""
        return ((support, text, ", ".join(names)) for support, text, names in self.bodies)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        bodies = [{"relations": list(names), "body": text, "support": n} for n, text, names in self.bodies]
        return {"pattern": self.pattern.name, "text": str(self.pattern), "nonzero": self.nonzero, "bodies": bodies}


def rank(
    kg: KnowledgeGraph | Engine | str | Path,
    pattern: Pattern | str,
    top: int | None = 20,
    *,
    engine: str = "native",
    progress: ProgressChoice = None,
    **options: Any,
) -> RankedBodies:
    """Rank the bodies of a pattern by their support in a graph, exactly.

    Parameters
    ----------
    kg
        A graph, its name or path; or an engine that is open over one.
    pattern
        A pattern, its name or its text.
    top
        How many bodies; None for all that have a witness.
    engine, **options
        The engine, and its options, as for `open_engine`.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.

    Examples
    --------
    >>> import loginfer
    >>> graph = loginfer.KnowledgeGraph.from_names([("ann", "knows", "bob"), ("bob", "likes", "cem")])
    >>> loginfer.rank(graph, "composition").bodies
    ((1, '(x,knows,y), (y,likes,z)', ('knows', 'likes')),)
    """
    if top is not None and not (isinstance(top, int | np.integer) and top >= 0):
        raise InputError(f"top must be a whole number and not negative, but is {top!r}")
    parsed = parse_pattern(pattern)
    with ExitStack() as stack:
        opened: Any = kg
        if not hasattr(kg, "rank_bodies"):
            opened = open_engine_in(stack, load_graph(cast(Any, kg)), engine, **options)
        graph = opened.graph
        for atom in (*parsed.atoms, *(negation.atom for negation in parsed.negations)):
            if not isinstance(atom.relation, Template) and atom.relation != RDF_TYPE:
                graph.relation_id(atom.relation)
            for term in atom.terms:
                if isinstance(term, Constant):
                    graph.entity_id(term.name)
        table = opened.rank_bodies(parsed, top, progress=stack.enter_context(shown(progress)))
        names, texts = predicate_names(table, graph), body_texts(table, graph)
        return RankedBodies(parsed, tuple(zip(table.support.tolist(), texts, names, strict=True)), table.nonzero)


def predicate_names(table: BodyTable, graph: KnowledgeGraph) -> list[tuple[str, ...]]:
    """Return the names of the predicates of each body, in the order of the pattern's templates."""
    return _names(graph, table.pattern, table.predicates)


def _names(graph: KnowledgeGraph, pattern: Pattern, predicates: Ids) -> list[tuple[str, ...]]:
    columns = [
        (graph.entities if pattern.is_type_template(t) else graph.relations).names(predicates[:, i])
        for i, t in enumerate(pattern.templates)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * len(predicates)


def body_texts(table: BodyTable, graph: KnowledgeGraph) -> list[str]:
    """Return the text of each body."""
    # The text of one body with the templates as names: the real names replace them.
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


# For some negations that must be violated: predicates, int32[m, k] in the order of `counted_templates`, and
# the number of witnesses of B that violate them all, int64[m], above zero.
Count: TypeAlias = Callable[[tuple[Negation, ...]], tuple[Ids, Ints]]

# More combinations of several negations than this are not written down.
MOST_ROWS = 1 << 25
# Keys and counts stay below this, so that no sum of two overflows.
LARGEST = 2**62


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
        violated: count(violated) for size in range(len(negations) + 1) for violated in combinations(negations, size)
    }
    rows = _candidates(pattern, negations, tables)
    support = np.zeros(len(rows), dtype=np.int64)
    without = [np.zeros(len(rows), dtype=np.int64) for _ in negations]
    for violated, (predicates, counts) in tables.items():
        template_columns = [pattern.templates.index(t) for t in counted_templates(pattern, violated)]
        signed = (-1) ** len(violated) * _look_up(rows[:, template_columns], predicates, counts)
        support += signed
        for i, negation in enumerate(negations):
            if negation not in violated:
                without[i] += signed
    keep = np.ones(len(rows), dtype=bool)
    for more in without:
        keep &= more > support
    return finish_table(graph, pattern, rows[keep], support[keep], top)


def _candidates(
    pattern: Pattern, negations: Sequence[Negation], tables: dict[tuple[Negation, ...], tuple[Ids, Ints]]
) -> Ids:
    """Return int32[m, templates]: the bodies in which each negation alone excludes a witness."""
    columns: dict[Template, Ids] = {}
    for number, negation in enumerate(negations):
        predicates, _ = tables[(negation,)]
        negated_columns = dict(zip(counted_templates(pattern, (negation,)), predicates.T, strict=True))
        if number == 0:
            columns, size = negated_columns, len(predicates)
            continue
        left, right = _matches(columns, negated_columns, size, len(predicates))
        size = len(left)
        columns = {t: c[left] for t, c in columns.items()} | {
            t: c[right] for t, c in negated_columns.items() if t not in columns
        }
    rows = np.empty((size, len(pattern.templates)), dtype=np.int32)
    for i, template in enumerate(pattern.templates):
        rows[:, i] = columns[template]
    return rows


def _matches(one: dict[Template, Ids], two: dict[Template, Ids], first: int, second: int) -> tuple[Ints, Ints]:
    """Return the pairs of rows of two tables that agree where both have a template."""
    shared = [t for t in one if t in two]
    left, right = _codes([one[t] for t in shared], [two[t] for t in shared], first, second)
    order = np.argsort(right, kind="stable")
    begin = np.searchsorted(right[order], left, side="left")
    counts = np.searchsorted(right[order], left, side="right") - begin
    total = int(counts.sum())
    if total > MOST_ROWS:
        message = f"the negations of the pattern have {total:,} bodies together, more than {MOST_ROWS:,}"
        raise LimitError(message, hint="use a pattern with fewer templates under negations")
    rows, positions = ranges(begin, counts)
    return rows, order[positions]


def _look_up(rows: Ids, predicates: Ids, predicate_counts: Ints) -> Ints:
    """Return the count of each row, 0 for those that are not there."""
    row_codes, predicate_codes = _codes(list(rows.T), list(predicates.T), len(rows), len(predicates))
    order = np.argsort(predicate_codes, kind="stable")
    nearest = np.minimum(np.searchsorted(predicate_codes[order], row_codes), max(len(predicate_codes) - 1, 0))
    counts = np.zeros(len(rows), dtype=np.int64)
    if len(predicate_codes):
        same = predicate_codes[order][nearest] == row_codes
        counts[same] = predicate_counts[order][nearest[same]]
    return counts


def _codes(one: Sequence[Ids], two: Sequence[Ids], first: int, second: int) -> tuple[Ints, Ints]:
    """Return one number for each row of two tables, equal for equal rows only."""
    columns = [np.concatenate(both) for both in zip(one, two, strict=True)]
    codes = pack_rows(columns, [int(column.max(initial=0)) + 1 for column in columns], first + second).keys
    return codes[:first], codes[first:]


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows of several columns packed into one int64 each, below `span`."""

    keys: Ints
    span: int
    # Undone from the last to the first: split off a digit, or look up what a rank stood for.
    steps: tuple[int | Ints, ...]

    def unpack(self, keys: Ints) -> list[Ids]:
        """Return the columns behind any keys of this packing."""
        columns: list[Ids] = []
        for step in reversed(self.steps):
            if isinstance(step, int):
                keys, digit = np.divmod(keys, step)
                columns.append(digit.astype(np.int32))
            else:
                keys = step[keys]
        return columns[::-1]

    def ranked(self) -> PackedRows:
        """Return a packing whose span is the number of distinct rows."""
        distinct, ranks = np.unique(self.keys, return_inverse=True)
        return PackedRows(ranks.ravel().astype(np.int64), max(len(distinct), 1), (*self.steps, distinct))


def pack_rows(columns: Sequence[Ids], sizes: Sequence[int], length: int) -> PackedRows:
    """Return one number for each row of some columns, equal for equal rows only."""
    packed = PackedRows(np.zeros(length, dtype=np.int64), 1, ())
    for column, size in zip(columns, sizes, strict=True):
        if packed.span * size >= LARGEST:
            packed = packed.ranked()
        packed = PackedRows(packed.keys * size + column, packed.span * size, (*packed.steps, size))
    return packed
