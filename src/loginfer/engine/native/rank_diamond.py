"""Diamonds (x R y), (x S z), (y T w), (z P w) with x, y, z, w different: all supports.

On the graph without loops, D_RT(x, w) is the number of two-paths x R y T w, x ≠ w. Then

    support(R, S, T, P) = ⟨D_RT, D_SP⟩ − Y(R, S, T, P)

where Y counts the pairs of two-paths with the same middle, y = z:

    Y = Σ_y in_{R∧S}(y) · out_{T∧P}(y) − #{(x, y) : R, S hold of (x, y) and T, P hold of (y, x)}

(R∧S holds where both do; the second term takes out the pairs with x = w). The two-paths of each x are put
into buckets by their end w. A bucket is a short vector of counts by (R, T), and its outer product with
itself is added to the table. A body and its mirror (S, R, P, T) have the same support, so the table holds
the pair {(R, T), (S, P)} once.

A label pair (R, T) is written as R · labels + T. Entries of the table with (R, T) = (S, P) lie in a dense
array of their own, the diagonal.

On graphs too large for the complete table only the diamonds with the largest supports are counted. Let D_RT
here be restricted to the x and w that have several two-paths between them. A first pass over all two-paths
gives the norms of D_RT for every label pair, the exact supports of the diagonal (R = S and T = P),
and those of all bodies made of the label pairs with the most two-paths, which tend to be the largest. The
`top`-th largest of these supports is a threshold. As

    support(R, S, T, P) ≤ ⟨D_RT, D_SP⟩ ≤ ‖D_RT‖₂ · ‖D_SP‖₂,  ‖D_RT‖₁ · ‖D_SP‖_∞,  ‖D_RT‖_∞ · ‖D_SP‖₁

(Cauchy and Schwarz; Hölder) a second pass is left with the label pairs that reach the threshold with some
partner, were not counted with it before, and takes only edges that have a part in one of them.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from loginfer.engine.native.rank_patterns import LabelledEdges, LabelledLists, busiest_first, fork_table, lists
from loginfer.kernels import add_count, counter_items, grown_counter, kernel, lower_bound, new_counter
from loginfer.kg.vocabulary import offsets_of
from loginfer.progress import Progress, report_progress

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

# Two-paths of one x that are held at a time, about: 8 bytes each.
BUCKET_SIZE = 1 << 24


# Two-paths that are counted at a time, about; in between, progress is reported and Ctrl-C takes effect.
STEP = 100_000_000


def diamond_table(edges: LabelledEdges, progress: Progress | None = None) -> tuple[Ints, Longs]:
    """Return int32[m, 4], labels (R, S, T, P), and int64[m], their supports. The graph must have no loops."""
    out, into = lists(busiest_first(edges))
    n = edges.labels
    number_of = np.arange(n * n, dtype=np.int32)
    limit = np.full(n * n, n * n, dtype=np.int32)
    slots, sums, _ = products(out, out, n, number_of, limit, progress)
    diagonal = sums[:, 0] + sums[:, 3]
    slots = same_middle(out, into, n, number_of, limit, slots, diagonal)
    return unfold(slots, diagonal, number_of, n)


def unfold(slots: Longs, diagonal: Longs, pair_of: Ints, labels: int) -> tuple[Ints, Longs]:
    """Return the bodies that have a support with it, mirrors included.

    Parameters
    ----------
    slots, diagonal
        The two parts of a table.
    pair_of
        The label pair behind each number of the table.
    labels
        Number of labels.
    """
    keys, support = counter_items(slots)
    keys, support = keys[support > 0], support[support > 0]
    first, second = (pair_of[part] for part in np.divmod(keys, max(len(pair_of), 1)))
    equal = np.flatnonzero(diagonal > 0)
    first, second = np.concatenate([first, second, equal]), np.concatenate([second, first, equal])
    n = max(labels, 1)
    bodies = np.stack([first // n, second // n, first % n, second % n], axis=1).astype(np.int32)
    return bodies, np.concatenate([support, support, diagonal[equal]])


def products(
    first: LabelledLists,
    second: LabelledLists,
    labels: int,
    number_of: Ints,
    limit: Ints,
    progress: Progress | None = None,
) -> tuple[Longs, Longs, int]:
    """Return ⟨D_RT, D_SP⟩: a table of pairs of different label pairs, and int64[labels², 4] for the diagonal.

    First edges of two-paths are taken from one family of lists, second edges from another. The key of
    the table is a · len(limit) + b with a < b, numbers that `number_of` gives to label pairs (-1: none);
    it holds the pairs with b < limit[a]. The diagonal goes by the label pairs themselves and is complete:
    over the x and w that have several two-paths between them the sum of squares, the sum and the maximum
    of D_RT, and over those that have one, and so no diamond, the sum. The third result is the number of
    products that were added to the table.
    """
    slots = new_counter(1 << 12)
    diagonal = np.zeros((labels * labels, 4), dtype=np.int64)
    two_paths = offsets_of(np.diff(second.start)[first.neighbour])[first.start]
    total = int(two_paths[-1])
    steps = np.searchsorted(two_paths, np.arange(STEP, total, STEP))
    bounds = [0, *np.unique(steps).tolist(), len(first.start) - 1]
    added = 0
    for begin, end in pairwise(bounds):
        report_progress(progress, "counting two-paths", int(two_paths[begin]), total)
        slots, more = _add_products(first, second, begin, end, labels, number_of, limit, BUCKET_SIZE, slots, diagonal)
        added += more
    return slots, diagonal, added


@kernel
def _add_products(
    out: LabelledLists,
    following: LabelledLists,
    begin: int,
    end: int,
    labels: int,
    number_of: Ints,
    limit: Ints,
    bucket_size: int,
    slots: Longs,
    diagonal: Longs,
) -> tuple[Longs, int]:
    """Add the products of the x from `begin` to `end` to a table and its diagonal; return the table."""
    out_start, out_neighbour, out_label = out
    next_start, next_neighbour, next_label = following
    entities = len(out_start) - 1
    numbers = np.int64(len(limit))
    used = 0
    for i in range(0, slots.size, 2):
        used += slots[i] >= 0
    added = 0
    count_of = np.zeros(labels * labels, dtype=np.int32)
    pairs = np.empty(labels * labels, dtype=np.int32)
    amount = np.empty(labels * labels, dtype=np.int64)
    # The bucket of w is a linked list of two-paths: last[w], before[last[w]], … until -1.
    last = np.full(entities, -1, dtype=np.int32)
    reached = np.empty(entities, dtype=np.int32)
    path = np.empty(1024, dtype=np.int32)
    before = np.empty(1024, dtype=np.int32)
    for x in range(begin, end):
        total = 0
        for i in range(out_start[x], out_start[x + 1]):
            y = out_neighbour[i]
            total += next_start[y + 1] - next_start[y]
        if total < 2:
            for i in range(out_start[x], out_start[x + 1]):
                y = out_neighbour[i]
                for j in range(next_start[y], next_start[y + 1]):
                    if next_neighbour[j] != x:
                        diagonal[out_label[i] * labels + next_label[j], 3] += 1
            continue
        # A hub's two-paths are taken in several ranges of w, so that they fit into memory.
        blocks = 1 + total // bucket_size
        for block in range(blocks):
            least, bound = entities * block // blocks, entities * (block + 1) // blocks
            size = total
            if blocks > 1:
                size = 0
                for i in range(out_start[x], out_start[x + 1]):
                    y = out_neighbour[i]
                    low = lower_bound(next_neighbour, next_start[y], next_start[y + 1], least)
                    size += lower_bound(next_neighbour, low, next_start[y + 1], bound) - low
            if size > len(path):
                path = np.empty(size + size // 2, dtype=np.int32)
                before = np.empty(size + size // 2, dtype=np.int32)
            size = 0
            count = 0
            for i in range(out_start[x], out_start[x + 1]):
                y = out_neighbour[i]
                base = out_label[i] * labels
                low, high = next_start[y], next_start[y + 1]
                if blocks > 1:
                    low = lower_bound(next_neighbour, low, high, least)
                    high = lower_bound(next_neighbour, low, high, bound)
                for j in range(low, high):
                    w = next_neighbour[j]
                    previous = last[w]
                    path[size] = base + next_label[j]
                    before[size] = previous
                    last[w] = size
                    size += 1
                    if previous < 0:
                        reached[count] = w
                        count += 1
            last[x] = -1
            for k in range(count):
                w = reached[k]
                node = last[w]
                last[w] = -1
                if node < 0:
                    continue
                if before[node] < 0:
                    diagonal[path[node], 3] += 1
                    continue
                distinct = 0
                while node >= 0:
                    if count_of[path[node]] == 0:
                        pairs[distinct] = path[node]
                        distinct += 1
                    count_of[path[node]] += 1
                    node = before[node]
                kept = 0
                for i in range(distinct):
                    pair = pairs[i]
                    times = np.int64(count_of[pair])
                    count_of[pair] = 0
                    diagonal[pair, 0] += times * times
                    diagonal[pair, 1] += times
                    diagonal[pair, 2] = max(diagonal[pair, 2], times)
                    a = number_of[pair]
                    if a < 0:
                        continue
                    for j in range(kept):
                        first, second = min(a, pairs[j]), max(a, pairs[j])
                        if second < limit[first]:
                            added += 1
                            used += add_count(slots, first * numbers + second, times * amount[j])
                            if 4 * used >= slots.size:
                                slots = grown_counter(slots)
                    # Positions up to `kept` have been read already and hold numbers from here on.
                    pairs[kept] = a
                    amount[kept] = times
                    kept += 1
    return slots, added


@kernel
def same_middle(
    out: LabelledLists, into: LabelledLists, labels: int, number_of: Ints, limit: Ints, slots: Longs, diagonal: Longs
) -> Longs:
    """Subtract Y(R, S, T, P) from the diagonal and from the table; return the table."""
    out_start, out_neighbour, out_label = out
    in_start, in_neighbour, in_label = into
    entities = len(out_start) - 1
    numbers = np.int64(len(limit))
    used = 0
    for i in range(0, slots.size, 2):
        used += slots[i] >= 0
    in_count_of = np.zeros(labels * labels, dtype=np.int64)
    out_count_of = np.zeros(labels * labels, dtype=np.int64)
    in_here = np.empty(labels * labels, dtype=np.int64)
    out_here = np.empty(labels * labels, dtype=np.int64)
    for y in range(entities):
        in_high, out_high = in_start[y + 1], out_start[y + 1]
        if in_start[y] == in_high or out_start[y] == out_high:
            continue
        ins = _label_pairs(in_start[y], in_high, in_neighbour, in_label, labels, in_count_of, in_here)
        outs = _label_pairs(out_start[y], out_high, out_neighbour, out_label, labels, out_count_of, out_here)
        for i in range(ins):
            r, s = in_here[i] // labels, in_here[i] % labels
            for j in range(outs):
                t, p = out_here[j] // labels, out_here[j] % labels
                amount = in_count_of[in_here[i]] * out_count_of[out_here[j]]
                if r == s and t == p:
                    diagonal[r * labels + t] -= amount
                    continue
                # Both orders of the two label pairs come by; one of them counts.
                first, second = number_of[r * labels + t], number_of[s * labels + p]
                if 0 <= first < second < limit[first]:
                    used += add_count(slots, first * numbers + second, -amount)
                    if 4 * used >= slots.size:
                        slots = grown_counter(slots)
        for i in range(ins):
            in_count_of[in_here[i]] = 0
        for j in range(outs):
            out_count_of[out_here[j]] = 0

        # The pairs with x = w: the same neighbour in both lists, which are sorted by neighbour.
        i, j = in_start[y], out_start[y]
        while i < in_high and j < out_high:
            if in_neighbour[i] != out_neighbour[j]:
                if in_neighbour[i] < out_neighbour[j]:
                    i += 1
                else:
                    j += 1
                continue
            in_end, out_end = i, j
            while in_end < in_high and in_neighbour[in_end] == in_neighbour[i]:
                in_end += 1
            while out_end < out_high and out_neighbour[out_end] == out_neighbour[j]:
                out_end += 1
            for i1 in range(i, in_end):
                for j1 in range(j, out_end):
                    pair = in_label[i1] * labels + out_label[j1]
                    diagonal[pair] += 1
                    first = number_of[pair]
                    for i2 in range(i, in_end):
                        for j2 in range(j, out_end):
                            second = number_of[in_label[i2] * labels + out_label[j2]]
                            if 0 <= first < second < limit[first]:
                                # The key is there: it was subtracted from above.
                                add_count(slots, first * numbers + second, 1)
            i, j = in_end, out_end
    return slots


@kernel
def _label_pairs(low: int, high: int, neighbour: Ints, label: Ints, labels: int, number: Longs, here: Longs) -> int:
    """Count, over the neighbours in one list, the ordered pairs of labels that both hold."""
    count = 0
    i = low
    while i < high:
        end = i
        while end < high and neighbour[end] == neighbour[i]:
            end += 1
        for a in range(i, end):
            for b in range(i, end):
                pair = np.int64(label[a]) * labels + label[b]
                if number[pair] == 0:
                    here[count] = pair
                    count += 1
                number[pair] += 1
        i = end
    return count


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


def worth_pruning(edges: LabelledEdges) -> bool:
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
    sample = _filtered(out, np.repeat(np.arange(edges.entities) % step == 0, np.diff(out.start)))
    seen = float(np.diff(out.start)[sample.neighbour].sum())
    n = edges.labels
    number_of = np.arange(n * n, dtype=np.int32)
    limit = np.full(n * n, n * n, dtype=np.int32)
    _, _, added = products(sample, out, n, number_of, limit)
    return bool(added > MANY_PRODUCTS * seen)


def diamond_top(
    edges: LabelledEdges, top: int, *, mirrors: bool = False, progress: Progress | None = None
) -> tuple[Ints, Longs]:
    """Return int32[m, 4], labels (R, S, T, P), and int64[m], supports: all that can be among the `top`.

    Bodies with the same support as the last one are included.

    Parameters
    ----------
    edges
        The graph, without loops.
    top
        How many bodies to return.
    mirrors
        Whether a body and its mirror (S, R, P, T) are two bodies; else they count as one.
    progress
        Called with the progress of the work.
    """
    out, into = lists(busiest_first(edges))
    n = edges.labels
    frequent = _frequent(edges)
    limit = np.full(len(frequent), len(frequent), dtype=np.int32)
    number_of = _numbers(frequent, n)
    slots, sums, _ = products(out, out, n, number_of, limit, progress)
    diagonal = sums[:, 0] + sums[:, 3]
    slots = same_middle(out, into, n, number_of, limit, slots, diagonal)
    counted = counter_items(slots)[1]
    threshold = _largest(np.concatenate([diagonal, *([counted] * (1 + mirrors))]), top)
    bodies, support = unfold(slots, diagonal, frequent, n)

    pair_of, limit = _candidates(sums, number_of >= 0, threshold)
    if len(pair_of):
        first, second = _taking_part(out, pair_of, n)
        candidate = _numbers(pair_of, n)
        slots, _, _ = products(first, second, n, candidate, limit, progress)
        nothing = np.zeros_like(diagonal)
        slots = same_middle(out, into, n, candidate, limit, slots, nothing)
        more, more_support = unfold(slots, nothing, pair_of, n)
        is_counted = (number_of[more[:, 0] * n + more[:, 2]] >= 0) & (number_of[more[:, 1] * n + more[:, 3]] >= 0)
        bodies = np.concatenate([bodies, more[~is_counted]])
        support = np.concatenate([support, more_support[~is_counted]])
    return bodies[support >= threshold], support[support >= threshold]


def _frequent(edges: LabelledEdges) -> Ints:
    """Return the label pairs with the most two-paths."""
    bodies, count = fork_table(edges, left_out=False, right_out=True)
    order = np.argsort(-count, kind="stable")[:FREQUENT]
    pairs: Ints = (bodies[order, 0] * edges.labels + bodies[order, 1]).astype(np.int32)
    return pairs


def _numbers(pair_of: Ints, labels: int) -> Ints:
    """Return int32[labels²], the index of each label pair in a list, or -1."""
    number_of = np.full(labels * labels, -1, dtype=np.int32)
    number_of[pair_of] = np.arange(len(pair_of), dtype=np.int32)
    return number_of


def _largest(values: Longs, rank: int) -> int:
    """Return the value of a rank (1, 2, …) in descending order, at least 1."""
    if not 0 < rank <= len(values):
        return 1
    return max(int(np.partition(values, len(values) - rank)[len(values) - rank]), 1)


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
    has_partner = np.zeros(len(sums), dtype=np.bool_)
    for a in range(len(sums)):
        for b in range(len(sums)):
            if sums[a, 0] * sums[b, 0] < needed:
                break
            if a == b or (counted[a] and counted[b]):
                continue
            if sums[a, 1] * sums[b, 2] >= threshold and sums[a, 2] * sums[b, 1] >= threshold:
                has_partner[a] = True
                break
    return has_partner


def _taking_part(out: LabelledLists, pair_of: Ints, labels: int) -> tuple[LabelledLists, LabelledLists]:
    """Return lists of the edges that can come first, and of those that can come second."""
    kept = []
    for part in np.divmod(pair_of, max(labels, 1)):
        is_candidate = np.zeros(labels, dtype=bool)
        is_candidate[part] = True
        kept.append(_filtered(out, is_candidate[out.label]))
    return kept[0], kept[1]


def _filtered(lists: LabelledLists, keep: npt.NDArray[np.bool_]) -> LabelledLists:
    """Return lists with some of their entries."""
    return LabelledLists(offsets_of(keep)[lists.start], lists.neighbour[keep], lists.label[keep])
