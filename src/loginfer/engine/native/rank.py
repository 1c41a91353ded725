"""The exact support of every body of a pattern at once.

Patterns of a few shapes have kernels of their own (`rank_patterns`, `rank_diamond`). For all others each atom is a
*factor*: a sparse table that maps values of variables and labels of templates to a count; what it leaves out has the
count 0. The support of every body is the product of the factors of its atoms, summed over all variables.

Variables are summed out as soon as nothing else depends on them (sum-product); of the joins that are left the smallest
comes next. Three things keep that within bounds:

- An inequality between u and v is checked where both are at hand. Where v could be summed out before u is
  seen, inclusion and exclusion replaces it: the sum without it, less the sum with u and v identified.
- The result depends linearly on each factor. So a join that would take too much memory is cut into blocks
  of values of one variable, each block is carried through to the end, and the results are added.
- Two factors that span the variables of a third, as the sides of a triangle do, are joined only where the
  third has a row.

Parts of a pattern that nothing connects are multiplied last: combinations may be far too many to write down,
but the largest ones are found from the sorted supports of the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TypeAlias

import numpy as np

from loginfer.engine.binding import ABSENT, relation_of
from loginfer.engine.bodies import LARGEST, counted_templates, finish_table, pack_rows, rank_negated
from loginfer.engine.interface import BodyTable
from loginfer.engine.native.rank_diamond import diamond_table, diamond_top, worth_pruning
from loginfer.engine.native.rank_patterns import TABLES, LabelledEdges, edges_of, recognise, stable_order
from loginfer.errors import LimitError
from loginfer.kernels import add_count, counter_items, find_slot, grown_counter, kernel, new_counter
from loginfer.kg import KnowledgeGraph
from loginfer.kg.graph import Ids, Ints, Mask, ranges, run_starts
from loginfer.logic.patterns import symmetries
from loginfer.logic.rule import Atom, Constant, Negation, Pattern, Template, Term, Variable
from loginfer.progress import Progress, report_progress

# How many values each column can have, by its name.
Sizes = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CountTable:
    """A factor: rows of values with a count each, no row twice.

    Parameters
    ----------
    columns
        int32[n] for each variable and template, by its number; variables have the smaller numbers.
    count
        int64[n].
    """

    columns: dict[int, Ids]
    count: Ints

    def __len__(self) -> int:
        return len(self.count)

    def where(self, keep: Mask) -> CountTable:
        """Return the factor with these rows only."""
        return CountTable({name: column[keep] for name, column in self.columns.items()}, self.count[keep])


def _pack_both(left: CountTable, right: CountTable, names: Sequence[int], sizes: Sizes) -> tuple[Ints, Ints, int]:
    """Return keys of the common columns that are equal where the rows are, and a bound on them."""
    columns = [np.concatenate([left.columns[n], right.columns[n]]) for n in names]
    packed = pack_rows(columns, [sizes[n] for n in names], len(left) + len(right))
    return packed.keys[: len(left)], packed.keys[len(left) :], packed.span


def pair_count(left: CountTable, right: CountTable, sizes: Sizes) -> float:
    """Return how many pairs of rows agree on the common columns."""
    names = [n for n in left.columns if n in right.columns]
    if not names:
        return float(len(left)) * len(right)
    a, b, span = _pack_both(left, right, names, sizes)
    if span > 4 * (len(a) + len(b)) + 2**20:
        ranks = np.unique(np.concatenate([a, b]), return_inverse=True)[1].ravel()
        a, b = ranks[: len(a)], ranks[len(a) :]
    size = int(max(a.max(initial=-1), b.max(initial=-1))) + 1
    return float(np.bincount(a, minlength=size).astype(np.float64) @ np.bincount(b, minlength=size))


def join(
    left: CountTable,
    right: CountTable,
    sizes: Sizes,
    *,
    drop: Sequence[int] = (),
    different: Sequence[tuple[int, int]] = (),
    within: CountTable | None = None,
) -> CountTable:
    """Multiply two factors and sum over some columns.

    Parameters
    ----------
    left, right
        The factors.
    sizes
        How many values each column can have.
    drop
        The columns to sum over.
    different
        Pairs of columns, the first of `left` and the second of `right`, that must differ in value.
    within
        Only rows whose values of this factor's variables occur in it; it may not have templates.

    Raises
    ------
    LimitError
        When the counts do not fit into 64 bits.
    """
    common = [n for n in left.columns if n in right.columns]
    left_key, right_key, span = _pack_both(left, right, common, sizes)
    left_order, right_order = _order(left_key, span), _order(right_key, span)
    left_names = [n for n in left.columns if n not in drop]
    right_names = [n for n in right.columns if n not in drop and n not in common]
    left_out, right_out = (
        pack_rows([f.columns[n] for n in names], [sizes[n] for n in names], len(f))
        for f, names in ((left, left_names), (right, right_names))
    )
    if left_out.span * right_out.span >= LARGEST:
        left_out, right_out = left_out.ranked(), right_out.ranked()
    left_filter, right_filter, allowed = _filter(left, right, within, sizes)
    keys, count, witnesses = _join(
        left_key[left_order],
        (left_out.keys * right_out.span)[left_order],
        left.count[left_order],
        _rows([left.columns[a] for a, _ in different], left_order),
        left_filter[left_order],
        right_key[right_order],
        right_out.keys[right_order],
        right.count[right_order],
        _rows([right.columns[b] for _, b in different], right_order),
        right_filter[right_order],
        allowed,
    )
    check_total(witnesses)
    left_keys, right_keys = np.divmod(keys, right_out.span)
    columns = dict(zip(left_names, left_out.unpack(left_keys), strict=True))
    columns |= dict(zip(right_names, right_out.unpack(right_keys), strict=True))
    return CountTable(columns, count)


def total(factor: CountTable, drop: Sequence[int], sizes: Sizes) -> CountTable:
    """Sum a factor over some columns; rows with the count 0 vanish.

    Raises
    ------
    LimitError
        When the counts do not fit into 64 bits.
    """
    check_total(float(np.abs(factor.count.astype(np.float64)).sum()))
    names = [n for n in factor.columns if n not in drop]
    packed = pack_rows([factor.columns[n] for n in names], [sizes[n] for n in names], len(factor))
    order = _order(packed.keys, packed.span)
    keys = packed.keys[order]
    first = np.flatnonzero(run_starts(keys))
    count = np.add.reduceat(factor.count[order], first) if len(keys) else factor.count
    first, count = first[count != 0], count[count != 0]
    return CountTable(dict(zip(names, packed.unpack(keys[first]), strict=True)), count)


def check_total(witnesses: float) -> None:
    """Raise `LimitError` if this many witnesses may be too many for an int64."""
    if witnesses >= LARGEST:
        message = f"some bodies may have about {witnesses:.1e} witnesses, more than 64 bits can count"
        raise LimitError(message, hint="use a pattern with fewer atoms, or one whose parts are connected")


def _order(keys: Ints, span: int) -> Ints:
    if span < 4 * len(keys) + 2**16:
        return stable_order(keys.astype(np.int32), span)[1]
    return np.argsort(keys, kind="stable")


def _rows(columns: Sequence[Ids], order: Ints) -> Ids:
    rows = np.empty((len(columns), len(order)), dtype=np.int32)
    for i, column in enumerate(columns):
        rows[i] = column[order]
    return rows


def _filter(left: CountTable, right: CountTable, within: CountTable | None, sizes: Sizes) -> tuple[Ints, Ints, Ints]:
    """Return keys whose sum for a pair of rows must be in the set returned with them (empty: any)."""
    left_keys, right_keys = np.zeros(len(left), dtype=np.int64), np.zeros(len(right), dtype=np.int64)
    if within is None:
        return left_keys, right_keys, np.empty(0, dtype=np.int64)
    names = list(within.columns)
    weight = 1
    for name in reversed(names):
        factor, keys = (left, left_keys) if name in left.columns else (right, right_keys)
        keys += factor.columns[name] * np.int64(weight)
        weight *= sizes[name]
    packed = pack_rows(list(within.columns.values()), [sizes[n] for n in names], len(within))
    return left_keys, right_keys, _key_set(packed.keys)


@kernel
def _key_set(keys: Ints) -> Ints:
    capacity = 16
    while capacity < 2 * len(keys):
        capacity *= 2
    slots = new_counter(capacity)
    for key in keys:
        add_count(slots, key, 1)
    return slots


@kernel
def _contains(slots: Ints, key: int) -> bool:
    return bool(slots[2 * find_slot(slots, key, 2)] == key)


@kernel
def _join(
    left_key: Ints,
    left_out: Ints,
    left_count: Ints,
    left_different: Ids,
    left_filter: Ints,
    right_key: Ints,
    right_out: Ints,
    right_count: Ints,
    right_different: Ids,
    right_filter: Ints,
    allowed: Ints,
) -> tuple[Ints, Ints, float]:
    """Add left_count · right_count to the key left_out + right_out for all pairs with equal keys.

    Rows come sorted by key. Also returns the sum of all counts, roughly but without overflow.
    """
    slots = new_counter(1 << 12)
    used = 0
    witnesses = 0.0
    i = j = 0
    while i < len(left_key) and j < len(right_key):
        if left_key[i] < right_key[j]:
            i += 1
            continue
        if left_key[i] > right_key[j]:
            j += 1
            continue
        i_end, j_end = i, j
        while i_end < len(left_key) and left_key[i_end] == left_key[i]:
            i_end += 1
        while j_end < len(right_key) and right_key[j_end] == right_key[j]:
            j_end += 1
        for a in range(i, i_end):
            for b in range(j, j_end):
                if allowed.size and not _contains(allowed, left_filter[a] + right_filter[b]):
                    continue
                agree = False
                for k in range(len(left_different)):
                    agree |= left_different[k, a] == right_different[k, b]
                if agree:
                    continue
                witnesses += float(left_count[a]) * float(right_count[b])
                used += add_count(slots, left_out[a] + right_out[b], left_count[a] * right_count[b])
                if 4 * used >= slots.size:
                    slots = grown_counter(slots)
        i, j = i_end, j_end
    keys, counts = counter_items(slots)
    return keys, counts, witnesses


# Combinations are written down up to this many.
PRODUCT_ROWS = 1 << 25


def product(parts: Sequence[CountTable], largest: int | None = None) -> tuple[CountTable, bool]:
    """Return the product of factors that have no column in common, and whether it is complete.

    Parameters
    ----------
    parts
        The factors; counts are positive.
    largest
        How many of the largest rows are needed; whatever equals the least of them comes along.

    Raises
    ------
    LimitError
        When there are too many rows, or a count does not fit into 64 bits.
    """
    check_total(prod(float(part.count.max(initial=0)) for part in parts))
    combined = parts[0]
    complete = True
    for part in parts[1:]:
        # A row among the largest of A × B × C has its A × B among the largest of those.
        combined, all_of_it = _pairs(combined, part, largest)
        complete &= all_of_it
    if not complete and largest is not None and largest < len(combined):
        # Of the smaller counts some rows may be missing: keep only those that are complete.
        position = len(combined) - largest
        combined = combined.where(combined.count >= np.partition(combined.count, position)[position])
    return combined, complete


def check_rows(rows: float) -> None:
    """Raise `LimitError` if there are too many combinations to write down."""
    if rows > PRODUCT_ROWS:
        hint = "ask for fewer (--top), or use a pattern whose parts are connected"
        raise LimitError(f"the unconnected parts of the pattern have about {rows:.1e} bodies together", hint=hint)


def _pairs(left: CountTable, right: CountTable, largest: int | None) -> tuple[CountTable, bool]:
    left_order, right_order = (np.argsort(-f.count, kind="stable") for f in (left, right))
    a, b = left.count[left_order], right.count[right_order]
    threshold = 1
    if largest is not None and len(a) * len(b) > PRODUCT_ROWS:
        threshold = _threshold(a, b, largest)
    partners = _partners(a, b, threshold)
    rows = int(partners.sum())
    check_rows(rows)
    left_positions, right_positions = ranges(np.zeros(len(a), dtype=np.int64), partners)
    left_rows, right_rows = left_order[left_positions], right_order[right_positions]
    columns = {n: c[left_rows] for n, c in left.columns.items()}
    columns |= {n: c[right_rows] for n, c in right.columns.items()}
    return CountTable(columns, left.count[left_rows] * right.count[right_rows]), rows == len(a) * len(b)


def _partners(a: Ints, b: Ints, threshold: int) -> Ints:
    """Return for each of descending a how many of descending b have a product of at least `threshold`."""
    needed = -(-threshold // a)
    return len(b) - np.searchsorted(b[::-1], needed, side="left")


def _threshold(a: Ints, b: Ints, largest: int) -> int:
    """Return the greatest threshold that at least `largest` products reach; 1 if there are too few."""
    low, high = 1, int(a[0]) * int(b[0])
    while low < high:
        middle = (low + high + 1) // 2
        if int(_partners(a, b, middle).sum()) >= largest:
            low = middle
        else:
            high = middle - 1
    return low


# Two variables that must differ, the smaller first.
Different: TypeAlias = tuple[int, int]

# Rows of a joined factor that may be held at a time, as long as it has variables.
BLOCK_ROWS = 1 << 22


def eliminate(
    factors: Sequence[CountTable],
    different: Iterable[Different],
    variables: int,
    sizes: Sizes,
    progress: Progress | None = None,
) -> CountTable:
    """Return the product of the factors, summed over all variables: a factor over templates.

    Parameters
    ----------
    factors
        At least one.
    different
        Pairs of variables that must differ; each occurs in some factor.
    variables
        Columns below this number are variables, the others templates.
    sizes
        How many values each column can have.
    progress
        Called with the number of blocks done and their number, when there is more than one.

    Raises
    ------
    LimitError
        When the counts do not fit into 64 bits.
    """
    factors = _reduced(factors, variables, sizes)
    if not all(len(f) for f in factors):
        templates = sorted({n for f in factors for n in f.columns if n >= variables})
        nothing = np.empty(0, dtype=np.int32)
        return CountTable(dict.fromkeys(templates, nothing), np.empty(0, dtype=np.int64))
    pending = frozenset(different)
    while True:
        # Sum over variables that occur in one factor only.
        for i, factor in enumerate(factors):
            factor, pending = _checked(factor, pending)
            factors[i] = factor
            lonely = _lonely([factor], factors, variables)
            blocked = _blocking(lonely, factor.columns, pending)
            if blocked:
                return _excluded(factors, pending, blocked, variables, sizes)
            if lonely:
                factors[i] = total(factor, lonely, sizes)
        if len(factors) == 1:
            return total(factors[0], (), sizes)
        left, right, pairs = _cheapest(factors, variables, sizes)
        rest = [f for f in factors if f is not left and f is not right]
        lonely = _lonely([left, right], factors, variables)
        both = left.columns | right.columns
        blocked = _blocking(lonely, both, pending)
        if blocked:
            return _excluded(factors, pending, blocked, variables, sizes)
        if not any(n in right.columns for n in left.columns):
            check_rows(pairs)
        kept = [n for n in both if n < variables and n not in lonely]
        if kept and pairs > BLOCK_ROWS:
            # A variable that many other factors have makes those smaller, too.
            kept.sort(key=lambda n: (-sum(n in f.columns for f in rest), n))
            for column in kept:
                blocks = _blocks(left, right, column, sizes)
                if len(blocks) < 2:
                    continue
                parts = []
                for k, (low, high) in enumerate(blocks):
                    report_progress(progress, "counting bodies", k, len(blocks))
                    within = [_between(f, column, low, high) for f in factors]
                    parts.append(eliminate(within, pending, variables, sizes))
                return _sum(parts, sizes)
        across = [(u, v) if u in left.columns else (v, u) for u, v in sorted(pending) if u in both and v in both]
        third = _third_side(left, right, rest, variables, sizes)
        joined = join(left, right, sizes, drop=lonely, different=across, within=third)
        pending -= {(min(pair), max(pair)) for pair in across}
        factors = [*rest, joined]


def _reduced(factors: Sequence[CountTable], variables: int, sizes: Sizes) -> list[CountTable]:
    """Drop rows with a value that some other factor does not have for the variable."""
    reduced = list(factors)
    for name in sorted({n for f in factors for n in f.columns if n < variables}):
        holders = [i for i, f in enumerate(reduced) if name in f.columns]
        if len(holders) < 2:
            continue
        common = np.ones(sizes[name], dtype=bool)
        for i in holders:
            present = np.zeros(sizes[name], dtype=bool)
            present[reduced[i].columns[name]] = True
            common &= present
        for i in holders:
            keep = common[reduced[i].columns[name]]
            if not keep.all():
                reduced[i] = reduced[i].where(keep)
    return reduced


def _checked(factor: CountTable, pending: frozenset[Different]) -> tuple[CountTable, frozenset[Different]]:
    """Check the inequalities between variables of one factor; return it and the others."""
    checkable = [(u, v) for u, v in sorted(pending) if u in factor.columns and v in factor.columns]
    for u, v in checkable:
        factor = factor.where(factor.columns[u] != factor.columns[v])
    return factor, pending.difference(checkable)


def _lonely(selected: Sequence[CountTable], factors: Sequence[CountTable], variables: int) -> list[int]:
    """Return the variables that occur in some factors and in none of the others."""
    others = {n for f in factors if all(f is not s for s in selected) for n in f.columns}
    return sorted({n for f in selected for n in f.columns if n < variables} - others)


def _blocking(lonely: Sequence[int], columns: Iterable[int], pending: frozenset[Different]) -> Different | None:
    """Return an inequality that keeps one of these variables from being summed out, if there is one."""
    at_hand = set(columns)
    for u, v in sorted(pending):
        if (u in lonely or v in lonely) and not (u in at_hand and v in at_hand):
            return (u, v)
    return None


def _excluded(
    factors: Sequence[CountTable], pending: frozenset[Different], pair: Different, variables: int, sizes: Sizes
) -> CountTable:
    """Replace an inequality by inclusion and exclusion: without it, less with both sides identified."""
    keep, drop = pair
    rest = pending - {pair}
    plain = eliminate(factors, rest, variables, sizes)
    renamed = {tuple(sorted(keep if n == drop else n for n in p)) for p in rest}
    if any(u == v for u, v in renamed):
        return plain
    pairs = [(u, v) for u, v in renamed]
    identified = eliminate([_identified(f, keep, drop) for f in factors], pairs, variables, sizes)
    return _sum([plain, CountTable(identified.columns, -identified.count)], sizes)


def _identified(factor: CountTable, keep: int, drop: int) -> CountTable:
    if drop not in factor.columns:
        return factor
    if keep in factor.columns:
        factor = factor.where(factor.columns[keep] == factor.columns[drop])
        columns = {n: c for n, c in factor.columns.items() if n != drop}
    else:
        columns = {keep if n == drop else n: c for n, c in factor.columns.items()}
    return CountTable(dict(sorted(columns.items())), factor.count)


def _cheapest(factors: Sequence[CountTable], variables: int, sizes: Sizes) -> tuple[CountTable, CountTable, float]:
    """Return the two factors with the fewest pairs of rows to join, and how many; connected ones first."""
    if len(factors) == 2:
        left, right = factors
        connected = any(n in right.columns for n in left.columns)
        # After the last join no variable is left: its size does not matter, unless it is a mere product.
        return left, right, 0.0 if connected else float(len(left)) * len(right)

    def cost(pair: tuple[CountTable, CountTable]) -> tuple[bool, float]:
        left, right = pair
        connected = any(n < variables and n in right.columns for n in left.columns)
        return not connected, pair_count(left, right, sizes)

    costs = [cost(pair) for pair in combinations(factors, 2)]
    best = min(range(len(costs)), key=costs.__getitem__)
    left, right = list(combinations(factors, 2))[best]
    return left, right, costs[best][1]


def _third_side(
    left: CountTable, right: CountTable, rest: Sequence[CountTable], variables: int, sizes: Sizes
) -> CountTable | None:
    """Return the smallest other factor that relates a variable of one side to one of the other."""
    smallest: CountTable | None = None
    for factor in rest:
        names = [n for n in factor.columns if n < variables]
        across = (
            all(n in left.columns or n in right.columns for n in names)
            and any(n not in left.columns for n in names)
            and any(n not in right.columns for n in names)
        )
        fits = float(np.prod([float(sizes[n]) for n in names])) < LARGEST
        if across and fits and (smallest is None or len(factor) < len(smallest)):
            smallest = CountTable({n: factor.columns[n] for n in names}, factor.count)
    return smallest


def _blocks(left: CountTable, right: CountTable, column: int, sizes: Sizes) -> list[tuple[int, int]]:
    """Return blocks of values of a column that have about `BLOCK_ROWS` pairs each, or a single value."""
    if column not in left.columns:
        left, right = right, left
    common = [n for n in left.columns if n in right.columns]
    weight = np.full(len(left), float(len(right)))
    if common:
        # How many rows of `right` a row of `left` meets, by the first common column: an upper bound.
        partners = np.bincount(right.columns[common[0]], minlength=sizes[common[0]])
        weight = partners[left.columns[common[0]]].astype(np.float64)
    weights = np.bincount(left.columns[column], weights=weight, minlength=sizes[column])
    values = np.flatnonzero(weights)
    sums = np.cumsum(weights[values])
    blocks = []
    first = 0
    while first < len(values):
        before = sums[first - 1] if first else 0.0
        end = max(int(np.searchsorted(sums, before + BLOCK_ROWS, side="right")), first + 1)
        blocks.append((int(values[first]), int(values[end - 1]) + 1))
        first = end
    return blocks


def _between(factor: CountTable, column: int, low: int, high: int) -> CountTable:
    if column not in factor.columns:
        return factor
    values = factor.columns[column]
    return factor.where((values >= low) & (values < high))


def _sum(parts: Sequence[CountTable], sizes: Sizes) -> CountTable:
    """Add factors over the same columns."""
    names = list(parts[0].columns)
    columns = {n: np.concatenate([p.columns[n] for p in parts]) for n in names}
    return total(CountTable(columns, np.concatenate([p.count for p in parts])), (), sizes)


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
        Called with the progress of the work.

    Raises
    ------
    LimitError
        When a support does not fit into 64 bits, or when a pattern of unconnected parts has too many
        bodies to write them down.
    """
    if pattern.negations:
        report_progress(progress, f"counting the bodies of `{pattern.name}`", 0, None)
        return rank_general_negated(graph, pattern, top, progress)
    shape = recognise(pattern)
    if shape is None or len(graph.rels) > DENSE_LABELS:
        return rank_general(graph, pattern, top, progress)
    edges = edges_of(graph, loops=shape.name not in ("triangle", "diamond"))
    report_progress(progress, f"counting the bodies of `{pattern.name}`", 0, None)
    labels, support, all_counted = _count(pattern, shape.name, edges, top, complete, progress)
    # Column i of the result is for the i-th template, the kernel's columns are for the shape's edges.
    predicates = graph.rels[labels[:, list(shape.edges)]].astype(np.int32)
    return finish_table(graph, pattern, predicates, support, top, nonzero_known=all_counted)


def _count(
    pattern: Pattern,
    shape: str,
    edges: LabelledEdges,
    top: int | None,
    complete: bool | None,
    progress: Progress | None,
) -> tuple[Ids, Ints, bool]:
    """Return labels and supports by the kernel for a shape, and whether they are all there are."""
    if shape == "diamond":
        if top is None or complete or (complete is None and not worth_pruning(edges)):
            return *diamond_table(edges, progress), True
        mirrors = len(symmetries(pattern)) == 1
        return *diamond_top(edges, top, mirrors=mirrors, progress=progress), False
    return *TABLES[shape](edges), True


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
    rows_needed = 4 * top + 64
    while True:
        bodies, complete = product(parts, rows_needed)
        table = _finish(graph, pattern, bodies, top, complete=complete)
        if complete or len(table) >= top:
            return table
        rows_needed *= 8


def rank_general_negated(
    graph: KnowledgeGraph, pattern: Pattern, top: int | None = None, progress: Progress | None = None
) -> BodyTable:
    """Return the exact support of every body of a pattern with negations, or of the `top` largest.

    Raises
    ------
    LimitError
        As for `rank_general`.
    """

    def count(violated: tuple[Negation, ...]) -> tuple[Ids, Ints]:
        templates = counted_templates(pattern, violated)
        query = _query(graph, pattern, violated)
        if query is None:
            return np.empty((0, len(templates)), dtype=np.int32), np.empty(0, dtype=np.int64)
        table, _ = product([_count_part(query, *part, progress) for part in _connected(query)])
        first = len(pattern.variables)
        rows = np.empty((len(table), len(templates)), dtype=np.int32)
        for i in range(len(templates)):
            rows[:, i] = table.columns[first + i]
        return rows, table.count

    return rank_negated(graph, pattern, top, count)


def _count_part(query: _Query, columns: set[int], factors: list[CountTable], progress: Progress | None) -> CountTable:
    """Return the supports of a connected part of a pattern."""
    different = [pair for pair in query.different if pair[0] in columns]
    return eliminate(factors, different, query.variables, query.sizes, progress)


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
            entity = graph.entities.get(constant.name)
            # A constant that the graph does not have differs from everything.
            if entity is not None and isinstance(variable, Variable):
                forbidden.append((variable, entity))

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
    columns: list[tuple[int, int]] = []  # a variable's or template's number, and its column in a triple
    if isinstance(atom.relation, Template):
        columns.append((templates[atom.relation], 1))
        if graph.type_relation is not None:
            keep &= triples[:, 1] != graph.type_relation
    else:
        relation = relation_of(atom, graph)
        if relation == ABSENT:
            return None
        keep &= triples[:, 1] == relation
    ends: tuple[tuple[Term, int], ...] = ((atom.subject, 0), (atom.object, 2))
    for term, column in ends:
        if isinstance(term, Constant):
            entity = graph.entities.get(term.name)
            if entity is None:
                return None
            keep &= triples[:, column] == entity
        elif isinstance(term, Template):
            columns.append((templates[term], column))
        elif term in variables:  # not one that only a negation has
            columns.append((variables[term], column))
    if atom.subject == atom.object:
        keep &= triples[:, 0] == triples[:, 2]
    matching = triples[keep]
    columns_of = {number: np.ascontiguousarray(matching[:, column]) for number, column in sorted(columns)}
    return CountTable(columns_of, np.ones(len(matching), dtype=np.int64))


def _connected(query: _Query) -> list[tuple[set[int], list[CountTable]]]:
    """Group factors that are linked by variables, inequalities or templates, in order."""
    groups: list[tuple[set[int], list[int]]] = []
    links = [(set(f.columns), [i]) for i, f in enumerate(query.factors)]
    links += [(set(pair), []) for pair in query.different]
    for columns, indices in links:
        linked = [g for g in groups if g[0] & columns]
        for group in linked:
            columns, indices = columns | group[0], indices + group[1]
        groups = [g for g in groups if g not in linked] + [(columns, indices)]
    ordered = sorted(((columns, sorted(indices)) for columns, indices in groups), key=lambda g: g[1])
    return [(columns, [query.factors[i] for i in indices]) for columns, indices in ordered]
