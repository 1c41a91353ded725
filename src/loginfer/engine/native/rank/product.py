"""Bodies of unconnected parts: every combination, or those with the largest supports.

The support of a combination is the product of the supports of its parts. Combinations may be far too many
to write down, but the largest ones are found from the sorted supports of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from loginfer.engine.native.rank.factors import Factor, check_total
from loginfer.errors import LimitError

__all__ = ["PRODUCT_ROWS", "check_rows", "product"]

Longs = npt.NDArray[np.int64]

# Combinations are written down up to this many.
PRODUCT_ROWS = 1 << 25


def product(parts: Sequence[Factor], largest: int | None = None) -> tuple[Factor, bool]:
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
    whole = parts[0]
    complete = True
    for part in parts[1:]:
        # A row among the largest of A × B × C has its A × B among the largest of those.
        whole, all_of_it = _pairs(whole, part, largest)
        complete &= all_of_it
    if not complete and largest is not None and largest < len(whole):
        # Smaller ones may be there without others that are as large.
        place = len(whole) - largest
        whole = whole.where(whole.count >= np.partition(whole.count, place)[place])
    return whole, complete


def check_rows(rows: float) -> None:
    """Raise `LimitError` if there are too many combinations to write down."""
    if rows > PRODUCT_ROWS:
        raise LimitError(
            f"the unconnected parts of the pattern have about {rows:.1e} bodies together",
            hint="ask for fewer (--top), or use a pattern whose parts are connected",
        )


def _pairs(left: Factor, right: Factor, largest: int | None) -> tuple[Factor, bool]:
    left_order, right_order = (np.argsort(-f.count, kind="stable") for f in (left, right))
    a, b = left.count[left_order], right.count[right_order]
    threshold = 1
    if largest is not None and len(a) * len(b) > PRODUCT_ROWS:
        threshold = _threshold(a, b, largest)
    partners = _partners(a, b, threshold)
    rows = int(partners.sum())
    check_rows(rows)
    left_rows = np.repeat(left_order, partners)
    ends = np.cumsum(partners)
    right_rows = right_order[np.arange(rows) - np.repeat(ends - partners, partners)]
    columns = {n: c[left_rows] for n, c in left.columns.items()}
    columns |= {n: c[right_rows] for n, c in right.columns.items()}
    return Factor(columns, left.count[left_rows] * right.count[right_rows]), rows == len(a) * len(b)


def _partners(a: Longs, b: Longs, threshold: int) -> Longs:
    """Return for each of descending a how many of descending b have a product of at least `threshold`."""
    needed = -(-threshold // a)
    return len(b) - np.searchsorted(b[::-1], needed, side="left")


def _threshold(a: Longs, b: Longs, largest: int) -> int:
    """Return the greatest threshold that at least `largest` products reach; 1 if there are too few."""
    low, high = 1, int(a[0]) * int(b[0])
    while low < high:
        middle = (low + high + 1) // 2
        if int(_partners(a, b, middle).sum()) >= largest:
            low = middle
        else:
            high = middle - 1
    return low
