"""Rules of length 3: all of them where the graph has few enough walks, otherwise a sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from loginfer.benchmark.randomness import salt
from loginfer.errors import LimitError
from loginfer.systems.rules.exact_kernels import Longs
from loginfer.systems.rules.exact_long_kernels import (
    closed_paths_of_three,
    count_predictions,
    steps_between,
    walks_of_three,
)
from loginfer.systems.rules.exact_mining import PathIndex, most_predictions, rules_of
from loginfer.systems.rules.values import RuleTable

if TYPE_CHECKING:
    from loginfer.systems.rules.exact import Exact

__all__ = ["rules_of_length_3"]

# Row pointers of all directed relations at once take at most this much.
POINTER_BYTES = 2**30
# A body in a sample is worth at least so many walks: with fewer its confidence would be a guess.
WALKS_OF_A_BODY = 2000
# Bodies that are counted in one piece of work.
BLOCK = 1000


def rules_of_length_3(miner: Exact, paths: PathIndex) -> Iterator[tuple[RuleTable, str, int, int]]:
    """Find the rules of length 3 piece by piece.

    Yields
    ------
    tuple
        The rules that this piece has found, what is being done, how much of it is done, how much there is.
    """
    _check_size(paths)
    starts, neighbours, _ = paths.adjacency
    exact = walks_of_three(starts, neighbours) <= miner.budget
    heads = np.flatnonzero(np.diff(paths.relations.offsets)).tolist()
    shares = np.zeros(len(heads), dtype=np.int64) if exact else _shares(miner, paths, heads)
    found: list[tuple[Longs, Longs, Longs]] = []
    for number, head in enumerate(heads):
        subjects, objects = paths.relations.pairs(head)
        codes, hits = closed_paths_of_three(
            subjects,
            objects,
            *paths.adjacency,
            paths.directed,
            shares[number],
            np.uint64(salt(miner.seed, "exact", "paths", head)),
        )
        often = hits >= miner.min_support
        found.append((np.full(np.count_nonzero(often), 2 * head), codes[often], hits[often]))
        yield RuleTable.empty(), "length 3: looking for bodies", number + 1, len(heads)
    if found:
        directed, codes, hits = (np.concatenate(parts) for parts in zip(*found, strict=True))
        yield from _counted(miner, paths, directed, codes, hits, exact)


def _check_size(paths: PathIndex) -> None:
    size = 4 * paths.directed * (paths.relations.entities + 1)
    if size > POINTER_BYTES:
        raise LimitError(
            f"rules of length 3 would take {size / 2**30:.1f} GB for this graph's relations and entities",
            hint="mine with --max-length 2",
        )


def _shares(miner: Exact, paths: PathIndex, heads: list[int]) -> Longs:
    """Return what may be spent on each head: half the budget in equal parts, what one leaves goes to others.

    0 for a head whose paths can all be looked at.
    """
    starts, neighbours, _ = paths.adjacency
    costs = np.array(
        [int(steps_between(*paths.relations.pairs(head), starts, neighbours).sum()) for head in heads]
    )
    shares = np.zeros(len(heads), dtype=np.int64)
    left = miner.budget // 2
    order = np.argsort(costs, kind="stable").tolist()
    for place, head in enumerate(order):
        part = max(left // (len(heads) - place), 1)
        shares[head] = 0 if costs[head] <= part else part
        left = max(left - min(part, int(costs[head])), 0)
    return shares


def _counted(
    miner: Exact, paths: PathIndex, heads: Longs, codes: Longs, hits: Longs, exact: bool
) -> Iterator[tuple[RuleTable, str, int, int]]:
    """Count what the candidates predict, body by body, and give the rules that are good enough."""
    directed = paths.directed
    steps = np.column_stack([codes // directed**2, codes // directed % directed, codes % directed])
    # Read backwards, a path connects the same pairs the other way round: it is counted once for both.
    backwards = steps[:, ::-1] ^ 1
    turned = _code(backwards, directed) < codes
    steps[turned], heads = backwards[turned], heads + turned
    codes = np.where(turned, _code(steps, directed), codes)
    bodies, which, total = np.unique(codes, return_inverse=True, return_counts=True)
    limits, share = np.zeros(len(bodies), dtype=np.int64), 0
    np.maximum.at(limits, which, most_predictions(miner, hits))
    if not exact:
        limits[:] = np.iinfo(np.int64).max
        most = max(miner.budget // 2 // WALKS_OF_A_BODY, 1)
        strength = np.zeros(len(bodies), dtype=np.int64)
        np.maximum.at(strength, which, hits)
        kept = np.sort(np.argsort(-strength, kind="stable")[:most])
        share = max(miner.budget // 2 // max(len(kept), 1), WALKS_OF_A_BODY)
    else:
        kept = np.arange(len(bodies))
    # By the last two steps, so that what is known of them serves all bodies that begin otherwise.
    kept = kept[np.lexsort((bodies[kept] // directed**2, bodies[kept] % directed**2))]
    by_body = np.argsort(which, kind="stable")
    first = np.cumsum(total) - total
    pointers = np.stack([paths.pointers(relation) for relation in range(directed)])
    stamps = np.zeros(paths.relations.entities, dtype=np.int32)
    for begin in range(0, len(kept), BLOCK):
        part = kept[begin : begin + BLOCK]
        rows = np.concatenate([by_body[first[body] : first[body] + total[body]] for body in part.tolist()])
        bounds = np.concatenate([[0], np.cumsum(total[part])])
        predictions, correct = count_predictions(
            paths.sources,
            paths.targets,
            paths.spans,
            pointers,
            steps[by_body[first[part]]],
            heads[rows],
            bounds,
            limits[part],
            share,
            np.uint64(salt(miner.seed, "exact", "sources")),
            stamps,
        )
        table = _table(miner, heads[rows], steps[rows], np.repeat(predictions, total[part]), correct)
        yield table, "length 3: counting", begin + len(part), len(kept)


def _table(miner: Exact, heads: Longs, steps: Longs, predictions: Longs, correct: Longs) -> RuleTable:
    """Return the rules that are good enough, with their heads the right way round."""
    forwards = np.where((heads % 2 == 1)[:, None], steps[:, ::-1] ^ 1, steps)
    return rules_of(miner, heads // 2, forwards, predictions, correct)


def _code(steps: Longs, directed: int) -> Longs:
    return np.asarray((steps[:, 0] * directed + steps[:, 1]) * directed + steps[:, 2])
