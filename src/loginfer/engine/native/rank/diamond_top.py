"""The diamonds with the largest supports, on graphs too large for the complete table.

Let D_RT here be restricted to the x and w that have several two-paths between them. A first pass over all
two-paths gives the norms of D_RT for every label pair, the exact supports of the diagonal (R = S and T = P),
and those of all bodies made of the label pairs with the most two-paths, which tend to be the largest. The
`top`-th largest of these supports is a threshold. As

    support(R, S, T, P) ≤ ⟨D_RT, D_SP⟩ ≤ ‖D_RT‖₂ · ‖D_SP‖₂,  ‖D_RT‖₁ · ‖D_SP‖_∞,  ‖D_RT‖_∞ · ‖D_SP‖₁

(Cauchy and Schwarz; Hölder) a second pass is left with the label pairs that reach the threshold with some
partner, were not counted with it before, and takes only edges that have a part in one of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.compiled import kernel
from loginfer.engine.interface import Progress
from loginfer.engine.native.rank.counter import entries
from loginfer.engine.native.rank.diamond import arrays, products, same_middle, unfold
from loginfer.engine.native.rank.edges import Edges, Lists, busiest_first, lists
from loginfer.engine.native.rank.paths import fork_table

__all__ = ["diamond_top", "worth_pruning"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

# Up to this many two-paths the complete table takes seconds.
MANY_TWO_PATHS = 3e8
# More products than this to a two-path cost more than a second pass.
MANY_PRODUCTS = 1.0
# How many two-paths to look at to find out.
SAMPLE_TWO_PATHS = 1e7
# How many label pairs the first pass counts all bodies of.
FREQUENT = 512
# Bounds are compared with a little slack, as they are computed in floating point.
SLACK = 1 - 1e-9


def worth_pruning(edges: Edges) -> bool:
    """Say whether the complete table would take long, and longer than two passes over the two-paths.

    Every two-path has to be seen in any case. What pruning saves is the products of label pairs; how many
    there are to a two-path is estimated from evenly spaced x.
    """
    into = np.bincount(edges.target, minlength=edges.entities).astype(np.float64)
    two_paths = float(into @ np.bincount(edges.source, minlength=edges.entities))
    if two_paths <= MANY_TWO_PATHS:
        return False
    out, _ = lists(busiest_first(edges))
    step = int(two_paths / SAMPLE_TWO_PATHS) + 1
    sample = _some(out, np.repeat(np.arange(edges.entities) % step == 0, np.diff(out.start)))
    seen = float(np.diff(out.start)[sample.neighbour].sum())
    n = edges.labels
    number_of = np.arange(n * n, dtype=np.int32)
    limit = np.full(n * n, n * n, dtype=np.int32)
    _, _, added = products(sample, out, n, number_of, limit)
    return bool(added > MANY_PRODUCTS * seen)


def diamond_top(
    edges: Edges, top: int, *, mirrors: bool = False, progress: Progress | None = None
) -> tuple[Ints, Longs]:
    """Return int32[m, 4], labels (R, S, T, P), and int64[m], supports: all that can be among the `top`.

    Whatever has the support of the last one is there, too.

    Parameters
    ----------
    edges
        The graph, without loops.
    top
        How many bodies are wanted.
    mirrors
        Whether a body and its mirror (S, R, P, T) are two bodies; else they count as one.
    progress
        Told how far the work has come.
    """
    out, into = lists(busiest_first(edges))
    n = edges.labels
    frequent = _frequent(edges)
    limit = np.full(len(frequent), len(frequent), dtype=np.int32)
    number_of = _numbers(frequent, n)
    slots, sums, _ = products(out, out, n, number_of, limit, progress)
    diagonal = sums[:, 0] + sums[:, 3]
    slots = same_middle(*arrays(out), *arrays(into), n, number_of, limit, slots, diagonal)
    counted = entries(slots)[1]
    threshold = _largest(np.concatenate([diagonal, *([counted] * (1 + mirrors))]), top)
    bodies, support = unfold(slots, diagonal, frequent, n)

    pair_of, limit = _candidates(sums, number_of >= 0, threshold)
    if len(pair_of):
        first, second = _taking_part(out, pair_of, n)
        candidate = _numbers(pair_of, n)
        slots, _, _ = products(first, second, n, candidate, limit, progress)
        nothing = np.zeros_like(diagonal)
        slots = same_middle(*arrays(out), *arrays(into), n, candidate, limit, slots, nothing)
        more, more_support = unfold(slots, nothing, pair_of, n)
        known = (number_of[more[:, 0] * n + more[:, 2]] >= 0) & (number_of[more[:, 1] * n + more[:, 3]] >= 0)
        bodies = np.concatenate([bodies, more[~known]])
        support = np.concatenate([support, more_support[~known]])
    return bodies[support >= threshold], support[support >= threshold]


def _frequent(edges: Edges) -> Ints:
    """Return the label pairs with the most two-paths."""
    bodies, count = fork_table(edges, left_out=False, right_out=True)
    order = np.argsort(-count, kind="stable")[:FREQUENT]
    pairs: Ints = (bodies[order, 0] * edges.labels + bodies[order, 1]).astype(np.int32)
    return pairs


def _numbers(pair_of: Ints, labels: int) -> Ints:
    """Return int32[labels²], the place of each label pair in a list, or -1."""
    number_of = np.full(labels * labels, -1, dtype=np.int32)
    number_of[pair_of] = np.arange(len(pair_of), dtype=np.int32)
    return number_of


def _largest(values: Longs, place: int) -> int:
    """Return the value at a place (1, 2, …) in descending order, at least 1."""
    if not 0 < place <= len(values):
        return 1
    return max(int(np.partition(values, len(values) - place)[len(values) - place]), 1)


def _candidates(sums: Longs, counted: npt.NDArray[np.bool_], threshold: int) -> tuple[Ints, Ints]:
    """Return the label pairs still to be counted, largest norm first, and which they can join.

    Number a can join with number b > a if b < limit[a].
    """
    squares = sums[:, 0].astype(np.float64)
    needed = float(threshold) ** 2 * SLACK
    order = np.argsort(-squares, kind="stable")
    order = order[squares[order] * squares.max(initial=0) >= needed]
    order = order[_has_partner(sums[order].astype(np.float64), counted[order], needed, threshold * SLACK)]
    largest = squares[order]
    limit = len(order) - np.searchsorted(largest[::-1], needed / largest, side="left")
    return order.astype(np.int32), limit.astype(np.int32)


@kernel
def _has_partner(
    sums: npt.NDArray[np.float64], counted: npt.NDArray[np.bool_], needed: float, threshold: float
) -> npt.NDArray[np.bool_]:
    """Say which label pairs, in descending order of norms, may reach the threshold with a new partner."""
    found = np.zeros(len(sums), dtype=np.bool_)
    for a in range(len(sums)):
        for b in range(len(sums)):
            if sums[a, 0] * sums[b, 0] < needed:
                break
            if a == b or (counted[a] and counted[b]):
                continue
            if sums[a, 1] * sums[b, 2] >= threshold and sums[a, 2] * sums[b, 1] >= threshold:
                found[a] = True
                break
    return found


def _taking_part(out: Lists, pair_of: Ints, labels: int) -> tuple[Lists, Lists]:
    """Return lists of the edges that can come first, and of those that can come second."""
    kept = []
    for part in np.divmod(pair_of, max(labels, 1)):
        wanted = np.zeros(labels, dtype=bool)
        wanted[part] = True
        kept.append(_some(out, wanted[out.label]))
    return kept[0], kept[1]


def _some(of: Lists, keep: npt.NDArray[np.bool_]) -> Lists:
    """Return lists with some of their entries."""
    before = np.concatenate([[0], np.cumsum(keep)])
    return Lists(before[of.start], of.neighbour[keep], of.label[keep])
