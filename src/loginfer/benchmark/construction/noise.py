"""Noise: labels of train that are flipped on purpose, and premises that are missing.

Noise is put on a benchmark that is complete, and recorded triple by triple, so that it can be undone: K, the
provenance, and where negatives came from are always those of the benchmark without noise. Valid and test have
none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import SPLITS, Benchmark, NegativeSet, Splits
from loginfer.benchmark.recipe import Recipe, share_of
from loginfer.engine import Engine
from loginfer.engine.binding import bind
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ints, Keys, TripleKeys, distinct_keys, keys_without, merged_keys
from loginfer.randomness import hash_order, salt

# What can be wrong with a triple; `Noise.kind` holds indices into this list.
#   flipped-positive  a conclusion of train that stands in N_train
#   flipped-negative  a negative of train that stands in P_train
#   missing           a premise, a triple of K, that P_train does not have; it is true all the same
KINDS = ("flipped-positive", "flipped-negative", "missing")


@dataclass(frozen=True, slots=True)
class Noise:
    """What is wrong with P_train and N_train.

    Parameters
    ----------
    triples
        int32[n, 3], sorted and unique.
    kind
        int8[n], indices of `KINDS`.
    negatives
        The negatives without the noise, and where they came from.
    asked
        How many the recipe's shares are: `flipped` conclusions, `missing` premises.
    reached
        How many conclusions of valid and test the rules still derive from P_train as it is.
    """

    triples: Triples
    kind: npt.NDArray[np.int8]
    negatives: NegativeSet
    asked: Mapping[str, int] = field(default_factory=dict)
    reached: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.triples)

    def of(self, kind: str) -> Triples:
        """Return the triples of one kind, sorted."""
        return np.asarray(self.triples[self.kind == KINDS.index(kind)])

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, as the manifest has them."""
        counts = {kind: int((self.kind == i).sum()) for i, kind in enumerate(KINDS)}
        return {**counts, "asked": dict(self.asked), "reached": dict(self.reached)}


def exchanged(keys: Ints, out: Ints, new: Ints) -> Any:
    """Return sorted keys without some and with others, sorted."""
    return merged_keys(keys_without(keys, out), new)


def without_noise(benchmark: Benchmark, noise: Noise) -> Benchmark:
    """Return the benchmark as it was before the noise.

    Parameters
    ----------
    benchmark
        A benchmark with noise.
    noise
        Its noise.
    """
    keys = benchmark.graph.keys
    true = np.vstack([noise.of("flipped-positive"), noise.of("missing")])
    train = exchanged(benchmark.graph.packed, keys.pack(noise.of("flipped-negative")), np.sort(keys.pack(true)))
    graph = benchmark.graph.with_triples(keys.unpack(train))
    positives = Splits(graph.triples, benchmark.positives.valid, benchmark.positives.test)
    negatives = {noise.negatives.method: noise.negatives}
    return replace(benchmark, graph=graph, positives=positives, negatives=negatives, noise=None)


def add_noise(benchmark: Benchmark, recipe: Recipe, open_engine: Callable[[KnowledgeGraph], Engine]) -> Benchmark:
    """Flip labels of train and remove premises, by the shares of a recipe; all of it is recorded.

    Of the conclusions in P_train ⌊flipped · n⌋ move to N_train, and as many negatives to P_train; of the
    premises in the recorded witnesses ⌊missing · n⌋ are removed from P_train. Each time those that come first
    in a seeded hash order are taken. A triple whose removal would take a name from P_train altogether is
    passed over: the signature of valid and test stays included in that of train.

    Parameters
    ----------
    benchmark
        A benchmark without noise, with the negatives of one method.
    recipe
        The shares and the seed.
    open_engine
        Opens an engine over a graph.
    """
    if benchmark.provenance is None or len(benchmark.negatives) != 1:
        raise InputError("noise needs a benchmark with provenance and the negatives of one method")
    (clean,) = benchmark.negatives.values()
    graph, keys = benchmark.graph, benchmark.graph.keys
    names = _NameCounts(graph)
    provenance = benchmark.provenance
    conclusions = keys.pack(provenance.triples[provenance.split == SPLITS.index("train")])
    asked = {"flipped": min(share_of(recipe.flipped, len(conclusions)), len(clean.splits.train))}
    to_negatives = names.remove(keys, _shuffled(conclusions, recipe.seed, "flipped-positive"), asked["flipped"])
    to_positives = _shuffled(keys.pack(clean.splits.train), recipe.seed, "flipped-negative")[: len(to_negatives)]
    pool = premises(benchmark)
    asked["missing"] = share_of(recipe.missing, len(pool))
    missing = names.remove(keys, _shuffled(pool, recipe.seed, "missing"), asked["missing"])

    removed = distinct_keys(np.concatenate([to_negatives, missing]))
    noisy_graph = graph.with_triples(keys.unpack(exchanged(graph.packed, removed, np.sort(to_positives))))
    n_train = keys.unpack(exchanged(keys.pack(clean.splits.train), np.sort(to_positives), np.sort(to_negatives)))
    noise_keys = np.concatenate([to_negatives, to_positives, missing])
    kind = np.repeat(np.arange(len(KINDS), dtype=np.int8), [len(to_negatives), len(to_positives), len(missing)])
    order = np.argsort(noise_keys)
    still_reached = reached(benchmark, open_engine(noisy_graph))
    noise = Noise(keys.unpack(noise_keys[order]), kind[order], clean, asked, still_reached)
    # Where the negatives of train came from is recorded without the noise.
    origins = {split: origin for split, origin in clean.origins.items() if split != "train"}
    splits = Splits(n_train, clean.splits.valid, clean.splits.test)
    return replace(
        benchmark,
        graph=noisy_graph,
        positives=Splits(noisy_graph.triples, benchmark.positives.valid, benchmark.positives.test),
        negatives={clean.method: replace(clean, splits=splits, origins=origins)},
        notes=(*benchmark.notes, *_notes(asked, len(to_negatives), len(missing))),
        noise=noise,
    )


def premises(benchmark: Benchmark) -> Keys:
    """Return the keys of all premises in recorded witnesses, those in K, sorted."""
    provenance, kg = benchmark.provenance, benchmark.kg
    if provenance is None or kg is None:
        return np.empty(0, dtype=np.int64)
    premise_keys: list[Keys] = [np.empty(0, dtype=np.int64)]
    for number in np.unique(provenance.rule).tolist():
        rule = bind(benchmark.program[number], kg)
        fits = np.diff(provenance.offsets) == len(rule.variables)
        pairs = np.flatnonzero((provenance.rule == number) & fits)
        for atom in rule.atoms:
            relation = np.full(len(pairs), atom.relation, dtype=np.int32)
            ends = [provenance.values_of(pairs, term) for term in (atom.subject, atom.object)]
            rows: Triples = np.column_stack([ends[0], relation, ends[1]])
            premise_keys.append(kg.keys.pack(rows[kg.contains(rows)]))
    return distinct_keys(np.concatenate(premise_keys))


def reached(benchmark: Benchmark, engine: Engine) -> dict[str, int]:
    """Return how many conclusions of valid and test the rules derive from a graph, in one step."""
    return {
        split: int(engine.derives(benchmark.program, benchmark.positives[split]).sum()) for split in ("valid", "test")
    }


def _shuffled(keys: Keys, seed: int, kind: str) -> Keys:
    return np.asarray(keys[hash_order(keys, salt(seed, "noise", kind))])


def _notes(asked: dict[str, int], flipped: int, missing: int) -> list[str]:
    counts = ((flipped, "flipped", "conclusions are flipped"), (missing, "missing", "premises are missing"))
    return [
        f"{count:,} {what} instead of {asked[kind]:,}: the others would take a name from P_train"
        for count, kind, what in counts
        if count < asked[kind]
    ]


class _NameCounts:
    """How often P_train uses each name, so that none is removed altogether.

    A type is no constant: a name counts only for the way in which it is used.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._type = -1 if graph.type_relation is None else graph.type_relation
        size = len(graph.entities)
        triples = graph.triples
        typed = triples[:, 1] == self._type
        constants = np.concatenate([triples[:, 0], triples[~typed, 2]])
        self._constants = np.bincount(constants, minlength=size).tolist()
        self._types = np.bincount(triples[typed, 2], minlength=size).tolist()
        self._relations = np.bincount(triples[:, 1], minlength=len(graph.relations)).tolist()

    def remove(self, keys: TripleKeys, ordered: Keys, count: int) -> Keys:
        """Return the first `count` triples, given as keys, that leave every name in use."""
        removed: list[int] = []
        if count == 0:
            return ordered[:0]
        for row, (s, r, o) in enumerate(keys.unpack(ordered).tolist()):
            if len(removed) == count:
                break
            objects = self._types if r == self._type else self._constants
            needed = 2 if objects is self._constants and s == o else 1
            if self._constants[s] > needed and objects[o] > needed and self._relations[r] > 1:
                self._constants[s] -= 1
                objects[o] -= 1
                self._relations[r] -= 1
                removed.append(row)
        return np.asarray(ordered[removed])
