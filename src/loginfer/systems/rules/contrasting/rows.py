"""The rows that a head's model is learnt from: pairs of constants with a label and a split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import member
from loginfer.benchmark.randomness import generator, hash_order, salt
from loginfer.benchmark.values import Benchmark, NegativeSet
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.systems.rules.contrasting.table import (
    TRAIN_NEGATIVE,
    TRAIN_POSITIVE,
    VALID_NEGATIVE,
    VALID_POSITIVE,
)

__all__ = [
    "NO_TYPE",
    "Head",
    "HeadRows",
    "Sampling",
    "all_rows",
    "asked_heads",
    "split_by_head",
    "split_places",
]

Pairs: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]

NO_TYPE = -1


@dataclass(frozen=True, slots=True, order=True)
class Head:
    """What a model predicts: (x, relation, y), or (x, type, C).

    Parameters
    ----------
    relation
        Id of the relation; of the type predicate for a type.
    type
        Id of the type, NO_TYPE for a relation.
    """

    relation: int
    type: int = NO_TYPE


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many rows are taken at most, and what chooses them.

    Parameters
    ----------
    positives, negatives
        Rows of P_train and of N_train.
    fewest
        With fewer negatives than this, positives with a random subject or object are added.
    seed
        Seed of the choice.
    """

    positives: int
    negatives: int
    fewest: int
    seed: int


@dataclass(frozen=True)
class HeadRows:
    """Pairs of constants: those of P_valid, P_train, N_train and N_valid with one head, in this order.

    Parameters
    ----------
    head
        The head.
    pairs
        int32[n, 2], subject and object; the triples are the head's.
    groups
        int64[n], which set each is from (see `table`).
    corrupted
        How many of the negatives of train are not from N_train.
    """

    head: Head
    pairs: Pairs
    groups: npt.NDArray[np.int64]
    corrupted: int = 0
    signs: npt.NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        positive = (self.groups == TRAIN_POSITIVE) | (self.groups == VALID_POSITIVE)
        object.__setattr__(self, "signs", np.where(positive, 1.0, -1.0))

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def train(self) -> Mask:
        """bool[n], the rows of train."""
        return np.asarray((self.groups == TRAIN_POSITIVE) | (self.groups == TRAIN_NEGATIVE))

    @cached_property
    def valid(self) -> Mask:
        """bool[n], the rows of valid."""
        return np.asarray(~self.train)

    def size(self, group: int) -> int:
        """Return how many rows a group has."""
        return int(np.count_nonzero(self.groups == group))


# -- gathering --------------------------------------------------------------------------------------


def split_places(triples: Triples, type_relation: int | None) -> dict[Head, npt.NDArray[np.int64]]:
    """Return the places of the triples of each head, ascending."""
    types = np.full(len(triples), NO_TYPE, dtype=np.int64)
    if type_relation is not None:
        typed = triples[:, 1] == type_relation
        types[typed] = triples[typed, 2]
    order = np.lexsort((types, triples[:, 1]))
    relations, sorted_types = triples[order, 1], types[order]
    change = np.flatnonzero((np.diff(relations) != 0) | (np.diff(sorted_types) != 0)) + 1
    parts = np.split(order, change) if len(order) else []
    return {Head(int(triples[part[0], 1]), int(types[part[0]])): part for part in parts}


def split_by_head(triples: Triples, type_relation: int | None) -> dict[Head, Pairs]:
    """Return subjects and objects of the triples of each head, in the order of the triples."""
    return {
        head: np.ascontiguousarray(triples[places][:, [0, 2]])
        for head, places in split_places(triples, type_relation).items()
    }


def asked_heads(benchmark: Benchmark, negatives: NegativeSet) -> tuple[Head, ...]:
    """Return the heads that the benchmark asks about: those of P_valid and of the negatives, in order."""
    type_relation = benchmark.graph.type_relation
    parts = (benchmark.positives.valid, negatives.splits.train, negatives.splits.valid)
    return tuple(sorted({head for part in parts for head in split_by_head(part, type_relation)}))


def all_rows(
    benchmark: Benchmark, negatives: NegativeSet, heads: tuple[Head, ...], sampling: Sampling
) -> Iterator[HeadRows]:
    """Yield the rows of each head."""
    graph = benchmark.graph
    sets = (benchmark.positives.valid, graph.triples, negatives.splits.train, negatives.splits.valid)
    split = [split_by_head(triples, graph.type_relation) for triples in sets]
    nothing: Pairs = np.empty((0, 2), dtype=np.int32)
    for head in heads:
        parts = [known.get(head, nothing) for known in split]
        yield _gather(graph, head, parts, sampling)


def _gather(graph: KnowledgeGraph, head: Head, parts: list[Pairs], sampling: Sampling) -> HeadRows:
    whole = parts[1]
    limits = (len(parts[0]), sampling.positives, sampling.negatives, len(parts[3]))
    parts = [
        _shuffled(part, graph, (sampling.seed, "contrast rows", head.relation, head.type, group), limit)
        for group, (part, limit) in enumerate(zip(parts, limits, strict=True))
    ]
    missing = sampling.fewest - len(parts[2])
    corrupted = _corruptions(whole, np.vstack([whole, *parts]), head, missing, graph, sampling.seed)
    parts[2] = np.vstack([parts[2], corrupted])
    groups = (VALID_POSITIVE, TRAIN_POSITIVE, TRAIN_NEGATIVE, VALID_NEGATIVE)
    return HeadRows(
        head,
        np.ascontiguousarray(np.vstack(parts)),
        np.repeat(np.array(groups, dtype=np.int64), [len(part) for part in parts]),
        len(corrupted),
    )


def _keys(pairs: Pairs, graph: KnowledgeGraph) -> npt.NDArray[np.int64]:
    return pairs[:, 0].astype(np.int64) * len(graph.entities) + pairs[:, 1]


def _shuffled(pairs: Pairs, graph: KnowledgeGraph, stage: tuple[object, ...], most: int) -> Pairs:
    seed, *names = stage
    return pairs[hash_order(_keys(pairs, graph), salt(int(str(seed)), *names))[:most]]


def _corruptions(
    positives: Pairs, known: Pairs, head: Head, count: int, graph: KnowledgeGraph, seed: int
) -> Pairs:
    """Return positives with another subject or object from all over the graph, none of which is known."""
    if count <= 0 or not len(positives) or not len(graph.consts):
        return np.empty((0, 2), dtype=np.int32)
    random = generator(seed, "contrast corruptions", head.relation, head.type)
    # Some draws are known already, or drawn twice.
    drawn = positives[random.integers(len(positives), size=2 * count)].copy()
    place = np.zeros(len(drawn), dtype=np.int64)
    if head.type == NO_TYPE:
        place = random.integers(2, size=len(drawn))
    # Half of them from the constants that the relation has in that place: those are harder to tell.
    near = positives[random.integers(len(positives), size=len(drawn)), place]
    far = graph.consts[random.integers(len(graph.consts), size=len(drawn))]
    drawn[np.arange(len(drawn)), place] = np.where(random.integers(2, size=len(drawn)) == 0, near, far)
    keys = _keys(drawn, graph)
    _, first = np.unique(keys, return_index=True)
    fresh = np.sort(first)
    fresh = fresh[~member(np.unique(_keys(known, graph)), keys[fresh])]
    return drawn[fresh[:count]]
