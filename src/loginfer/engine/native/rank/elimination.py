"""Products of factors summed over their variables, without enumerating witnesses.

Variables are summed out as soon as nothing else depends on them (sum-product); of the joins that are left
the smallest comes next. Three things keep that within bounds:

- An inequality between u and v is checked where both are at hand. Where v could be summed out before u is
  seen, inclusion and exclusion replaces it: the sum without it, less the sum with u and v identified.
- The result depends linearly on each factor. So a join that would take too much memory is cut into blocks
  of values of one variable, each block is carried through to the end, and the results are added.
- Two factors that span the variables of a third, as the sides of a triangle do, are joined only where the
  third has a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine.native.rank.factors import LARGEST, Factor, Sizes, join, pair_count, total
from loginfer.engine.native.rank.product import check_rows

__all__ = ["Different", "eliminate"]

Longs = npt.NDArray[np.int64]
# Two variables that must differ, the smaller first.
Different: TypeAlias = tuple[int, int]

# Rows of a joined factor that may be held at a time, as long as it has variables.
BLOCK_ROWS = 1 << 22


def eliminate(
    factors: Sequence[Factor],
    different: Iterable[Different],
    variables: int,
    sizes: Sizes,
    progress: Callable[[int, int], None] | None = None,
) -> Factor:
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
        return Factor(dict.fromkeys(templates, nothing), np.empty(0, dtype=np.int64))
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
                    if progress:
                        progress(k, len(blocks))
                    within = [_between(f, column, low, high) for f in factors]
                    parts.append(eliminate(within, pending, variables, sizes))
                return _sum(parts, sizes)
        across = [
            (u, v) if u in left.columns else (v, u) for u, v in sorted(pending) if u in both and v in both
        ]
        joined = join(
            left,
            right,
            sizes,
            drop=lonely,
            different=across,
            within=_third_side(left, right, rest, variables, sizes),
        )
        pending -= {(min(pair), max(pair)) for pair in across}
        factors = [*rest, joined]


def _reduced(factors: Sequence[Factor], variables: int, sizes: Sizes) -> list[Factor]:
    """Drop rows with a value that some other factor does not have for the variable."""
    reduced = list(factors)
    for name in sorted({n for f in factors for n in f.columns if n < variables}):
        places = [i for i, f in enumerate(reduced) if name in f.columns]
        if len(places) < 2:
            continue
        common = np.ones(sizes[name], dtype=bool)
        for i in places:
            present = np.zeros(sizes[name], dtype=bool)
            present[reduced[i].columns[name]] = True
            common &= present
        for i in places:
            keep = common[reduced[i].columns[name]]
            if not keep.all():
                reduced[i] = reduced[i].where(keep)
    return reduced


def _checked(factor: Factor, pending: frozenset[Different]) -> tuple[Factor, frozenset[Different]]:
    """Check the inequalities between variables of one factor; return it and the others."""
    here = [(u, v) for u, v in sorted(pending) if u in factor.columns and v in factor.columns]
    for u, v in here:
        factor = factor.where(factor.columns[u] != factor.columns[v])
    return factor, pending.difference(here)


def _lonely(some: Sequence[Factor], factors: Sequence[Factor], variables: int) -> list[int]:
    """Return the variables that occur in some factors and in none of the others."""
    others = {n for f in factors if all(f is not s for s in some) for n in f.columns}
    return sorted({n for f in some for n in f.columns if n < variables} - others)


def _blocking(lonely: Sequence[int], here: Iterable[int], pending: frozenset[Different]) -> Different | None:
    """Return an inequality that keeps one of these variables from being summed out, if there is one."""
    at_hand = set(here)
    for u, v in sorted(pending):
        if (u in lonely or v in lonely) and not (u in at_hand and v in at_hand):
            return (u, v)
    return None


def _excluded(
    factors: Sequence[Factor],
    pending: frozenset[Different],
    pair: Different,
    variables: int,
    sizes: Sizes,
) -> Factor:
    """Replace an inequality by inclusion and exclusion: without it, less with both sides identified."""
    keep, gone = pair
    rest = pending - {pair}
    plain = eliminate(factors, rest, variables, sizes)
    renamed = {tuple(sorted(keep if n == gone else n for n in p)) for p in rest}
    if any(u == v for u, v in renamed):
        return plain
    identified = eliminate(
        [_identified(f, keep, gone) for f in factors],
        [(u, v) for u, v in renamed],
        variables,
        sizes,
    )
    return _sum([plain, Factor(identified.columns, -identified.count)], sizes)


def _identified(factor: Factor, keep: int, gone: int) -> Factor:
    if gone not in factor.columns:
        return factor
    if keep in factor.columns:
        factor = factor.where(factor.columns[keep] == factor.columns[gone])
        columns = {n: c for n, c in factor.columns.items() if n != gone}
    else:
        columns = {keep if n == gone else n: c for n, c in factor.columns.items()}
    return Factor(dict(sorted(columns.items())), factor.count)


def _cheapest(factors: Sequence[Factor], variables: int, sizes: Sizes) -> tuple[Factor, Factor, float]:
    """Return the two factors with the fewest pairs of rows to join, and how many; connected ones first."""
    if len(factors) == 2:
        left, right = factors
        connected = any(n in right.columns for n in left.columns)
        # After the last join no variable is left: its size does not matter, unless it is a mere product.
        return left, right, 0.0 if connected else float(len(left)) * len(right)

    def cost(pair: tuple[Factor, Factor]) -> tuple[bool, float]:
        left, right = pair
        connected = any(n < variables and n in right.columns for n in left.columns)
        return not connected, pair_count(left, right, sizes)

    costs = [cost(pair) for pair in combinations(factors, 2)]
    best = min(range(len(costs)), key=costs.__getitem__)
    left, right = list(combinations(factors, 2))[best]
    return left, right, costs[best][1]


def _third_side(
    left: Factor, right: Factor, rest: Sequence[Factor], variables: int, sizes: Sizes
) -> Factor | None:
    """Return the smallest other factor that relates a variable of one side to one of the other."""
    found: Factor | None = None
    for factor in rest:
        names = [n for n in factor.columns if n < variables]
        across = (
            all(n in left.columns or n in right.columns for n in names)
            and any(n not in left.columns for n in names)
            and any(n not in right.columns for n in names)
        )
        fits = float(np.prod([float(sizes[n]) for n in names])) < LARGEST
        if across and fits and (found is None or len(factor) < len(found)):
            found = Factor({n: factor.columns[n] for n in names}, factor.count)
    return found


def _blocks(left: Factor, right: Factor, column: int, sizes: Sizes) -> list[tuple[int, int]]:
    """Return blocks of values of a column that have about `BLOCK_ROWS` pairs each, or a single value."""
    if column not in left.columns:
        left, right = right, left
    common = [n for n in left.columns if n in right.columns]
    weight = np.full(len(left), float(len(right)))
    if common:
        # How many rows of `right` a row of `left` meets, by the first common column: an upper bound.
        met = np.bincount(right.columns[common[0]], minlength=sizes[common[0]])
        weight = met[left.columns[common[0]]].astype(np.float64)
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


def _between(factor: Factor, column: int, low: int, high: int) -> Factor:
    if column not in factor.columns:
        return factor
    values = factor.columns[column]
    return factor.where((values >= low) & (values < high))


def _sum(parts: Sequence[Factor], sizes: Sizes) -> Factor:
    """Add factors over the same columns."""
    names = list(parts[0].columns)
    columns = {n: np.concatenate([p.columns[n] for p in parts]) for n in names}
    return total(Factor(columns, np.concatenate([p.count for p in parts])), (), sizes)
