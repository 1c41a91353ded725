"""A benchmark as a value: six sets of triples, the rules, and where everything came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.recipe import Recipe
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Mask, keys_without, merged_keys, ranges
from loginfer.kg.vocabulary import offsets_of
from loginfer.logic.rule import Rule

if TYPE_CHECKING:
    from loginfer.benchmark.construction.noise import Noise


Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

# Which position of a conclusion was replaced; `Origins.position` holds indices into this list.
#   either     replacing the subject of one conclusion gives it, replacing the object of another does too
POSITIONS = ("", "subject", "object", "either")


@dataclass(frozen=True, slots=True)
class Splits:
    """Three disjoint sets of triples, each int32[n, 3], sorted and unique."""

    train: Triples
    valid: Triples
    test: Triples

    def __getitem__(self, split: str) -> Triples:
        if split not in SPLITS:
            raise KeyError(split)
        triples: Triples = getattr(self, split)
        return triples

    def items(self) -> Iterator[tuple[Split, Triples]]:
        """Yield the splits by name: train, valid, test."""
        for split in SPLITS:
            yield split, self[split]

    @property
    def sizes(self) -> dict[Split, int]:
        """How many triples each has."""
        return {split: len(triples) for split, triples in self.items()}

    def train_graph(self, over: KnowledgeGraph) -> KnowledgeGraph:
        """Return P_train as a graph, over the vocabularies of another one."""
        return over.with_triples(self.train)


class StoredSplits(Splits):
    """P_train, P_valid and P_test, of which P_train stays where its graph is.

    Sizes and the graph of P_train do not load it; `train` itself does, and it stays in memory from then on.

    Parameters
    ----------
    graph
        P_train.
    valid, test
        As for `Splits`.
    """

    _graph: KnowledgeGraph

    def __init__(self, graph: KnowledgeGraph, valid: Triples, test: Triples) -> None:
        object.__setattr__(self, "_graph", graph)
        object.__setattr__(self, "valid", valid)
        object.__setattr__(self, "test", test)

    @property
    def train(self) -> Triples:
        """P_train, loaded at the first use."""
        return self.train_graph().triples

    @property
    def sizes(self) -> dict[Split, int]:
        """How many triples each has."""
        return {"train": len(self.train_graph()), "valid": len(self.valid), "test": len(self.test)}

    def train_graph(self, over: KnowledgeGraph | None = None) -> KnowledgeGraph:
        """Return P_train as a graph."""
        return self._graph


class Signature:
    """The names that a graph uses, each in the way it is used: a type is no constant.

    Parameters
    ----------
    graph
        The graph.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._type = graph.type_relation
        self.constants, self.types = (np.zeros(len(graph.entities), dtype=bool) for _ in range(2))
        self.relations = np.zeros(len(graph.relations), dtype=bool)
        self.constants[graph.consts], self.types[graph.types], self.relations[graph.preds] = True, True, True

    @property
    def ids(self) -> list[Ids]:
        """Those of the constants, of the types and of the relations, ascending."""
        return [np.flatnonzero(used).astype(np.int32) for used in (self.constants, self.types, self.relations)]

    def add(self, triples: Triples) -> None:
        """Add the names of more triples."""
        typed = triples[:, 1] == self._type
        self.constants[triples[:, 0]] = True
        self.constants[triples[~typed, 2]] = True
        self.types[triples[typed, 2]] = True
        self.relations[triples[:, 1]] = True

    def covers(self, triples: Triples) -> Mask:
        """Return bool[n]: which triples have no other names."""
        typed = triples[:, 1] == self._type
        objects = np.where(typed, self.types[triples[:, 2]], self.constants[triples[:, 2]])
        return np.asarray(self.constants[triples[:, 0]] & self.relations[triples[:, 1]] & objects)

    def covers_predicates(self, triples: Triples) -> Mask:
        """Return bool[n]: which triples have no other relation and no other type."""
        typed = triples[:, 1] == self._type
        return np.asarray(self.relations[triples[:, 1]] & (~typed | self.types[triples[:, 2]]))


@dataclass(frozen=True, slots=True)
class BenchmarkRule:
    """A rule of R.

    Parameters
    ----------
    rule
        The rule.
    pattern
        The text of the pattern that it represents; None if the rule was given.
    support
        Number of witnesses in K.
    new
        Number of new conclusions, |T_r(K) ∖ K|; with a depth of more than one those of all steps.
    sampled
        How many of them were sampled, P^r_train, P^r_valid and P^r_test together.
    confidence, overlap
        See `construction.rules`; None where rules are chosen by support, or where it cannot be measured.
    """

    rule: Rule
    pattern: str | None
    support: int
    new: int
    sampled: int
    confidence: float | None = None
    overlap: float | None = None

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.benchmark.notebook import rule_fragment

        return rule_fragment(self)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A candidate that was not selected under `sound`.

    Parameters
    ----------
    rule, pattern, support, new
        As of a rule that was selected.
    reason
        Why, if not because it concludes too little that is new.
    """

    rule: Rule
    pattern: str
    support: int
    new: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the conclusions of a benchmark came from: all rules that derive each, one witness each.

    Parameters
    ----------
    triples
        int32[n, 3], the conclusions that were distributed, sorted.
    split
        int8[n], indices of `SPLITS`.
    conclusion, rule
        int64[m], int32[m]: pairs of a row of `triples` and an index of the benchmark's rules, sorted.
    offsets, values
        int64[m + 1], int32[…]: the first witness of pair i is `values[offsets[i]:offsets[i + 1]]`, one id for
        each variable of `rule.variables`.
    depth
        int8[n], in how many steps each conclusion follows; empty for a benchmark of one step. The pairs of a
        conclusion at depth d are about its derivations from K_{d-1}, what follows in fewer steps.
    """

    triples: Triples
    split: npt.NDArray[np.int8]
    conclusion: Ints
    rule: Ids
    offsets: Ints
    values: Ids
    depth: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty(0, dtype=np.int8))

    def __len__(self) -> int:
        return len(self.triples)

    @property
    def deep(self) -> bool:
        """Whether it says in how many steps conclusions follow."""
        return len(self.depth) > 0

    def values_of(self, pairs: Ints, term: int) -> Ids:
        """Return int32[n]: the values of a bound term, a variable's number or ~ a constant, in the witnesses of pairs.

        All pairs must be of one rule.
        """
        if term < 0:
            return np.full(len(pairs), ~term, dtype=np.int32)
        return np.asarray(self.values[self.offsets[pairs] + term])


def reordered(lengths: Ints, values: Ids, order: Ints) -> tuple[Ints, Ids]:
    """Return lists one after the other, given by their lengths, in another order: offsets and values."""
    return offsets_of(lengths[order]), values[ranges(offsets_of(lengths)[order], lengths[order])[1]]


@dataclass(frozen=True, slots=True)
class Origins:
    """Where the negatives of one split came from, in the order of the triples.

    Parameters
    ----------
    source
        int8[n], indices of `SOURCES` (see `negatives.methods`).
    position
        int8[n], indices of `POSITIONS`.
    rule
        int32[n], the rule whose sub-rule or near miss concludes it, an index of the benchmark's rules; -1 for
        none.
    kept
        int32[n], the sub-rule: bit i is set if it keeps part i of that rule's body; 0 for none.
    edit
        int8[n], the near miss: an index of `EDITS`; 0 for none.
    part
        int32[n], the number in that rule's body of the part that is edited; -1 for none.
    predicate
        int32[n], what the edited atom's relation (or type) is replaced by, an id of the graph's relations
        (or entities); -1 for none.
    twin
        int32[n], the conclusion whose twin it is, a row of the same split's positives; -1 for none.
    """

    source: npt.NDArray[np.int8]
    position: npt.NDArray[np.int8]
    rule: Ids
    kept: Ids
    edit: npt.NDArray[np.int8]
    part: Ids
    predicate: Ids
    twin: Ids

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: npt.NDArray[Any]) -> Origins:
        return Origins(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True, slots=True)
class NegativeSet:
    """N_train, N_valid and N_test of one method.

    Parameters
    ----------
    method
        Its name, such as `pa`; of a folder without manifest whatever its files are called.
    splits
        The triples.
    origins
        Where they came from, one for each split; empty if that is not known.
    asked
        How many were wanted in each split.
    notes
        What a user should know, such as candidates that ran out.
    """

    method: str
    splits: Splits
    origins: Mapping[str, Origins] = field(default_factory=dict)
    asked: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: P_train, P_valid, P_test, one set of negatives per method, rules and provenance.

    Parameters
    ----------
    name
        What it is called.
    graph
        P_train as a graph, over vocabularies that hold every name of the benchmark.
    positives
        P_train (the same triples as `graph`), P_valid and P_test.
    negatives
        By method. Empty for a folder without negatives.
    rules
        R, in order; empty if it is not known.
    provenance
        Where the conclusions came from, if known.
    recipe
        How it was made, if known.
    passed_over
        Candidates that were not selected.
    notes
        What a user should know about rules and positives.
    manifest
        The manifest as it was read; empty if there is none.
    path
        The folder it was read from.
    context
        Of an inductive benchmark: the context graph, the triples of K among the constants of test.
    noise
        What is wrong with P_train and N_train on purpose, if anything is.
    stored_kg
        K, where it is at hand and stays outside memory: to compute it from P_train would load all of that.
    """

    name: str
    graph: KnowledgeGraph
    positives: Splits
    negatives: Mapping[str, NegativeSet]
    rules: tuple[BenchmarkRule, ...] = ()
    provenance: Provenance | None = None
    recipe: Recipe | None = None
    passed_over: tuple[PassedOver, ...] = ()
    notes: tuple[str, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    context: KnowledgeGraph | None = None
    noise: Noise | None = None
    stored_kg: KnowledgeGraph | None = None

    @property
    def program(self) -> tuple[Rule, ...]:
        """The rules alone."""
        return tuple(rule.rule for rule in self.rules)

    @property
    def depth(self) -> int:
        """In how many steps conclusions may follow."""
        return 1 if self.recipe is None else self.recipe.depth

    @cached_property
    def kg(self) -> KnowledgeGraph | None:
        """K: P_train without the conclusions that were added; None where those are not known.

        Noise is undone. Of an inductive benchmark the context graph is part of K.
        """
        if self.provenance is None or self.stored_kg is not None:
            return self.stored_kg
        train, keys = self.clean.graph, self.graph.keys
        added = keys.pack(self.provenance.triples[self.provenance.split == 0])
        left = keys_without(train.packed, added)
        if self.context is not None:
            left = merged_keys(left, self.context.packed)
        return train.with_triples(keys.unpack(left))

    @cached_property
    def seen(self) -> KnowledgeGraph:
        """What a system may look into when it scores: P_train, and the context graph if there is one."""
        if self.context is None:
            return self.graph
        return self.graph.with_triples(np.vstack([self.graph.triples, self.context.triples]))

    @cached_property
    def clean(self) -> Benchmark:
        """The benchmark without its noise; itself if it has none."""
        if self.noise is None:
            return self
        from loginfer.benchmark.construction.noise import without_noise

        return without_noise(self, self.noise)

    @cached_property
    def everything(self) -> KnowledgeGraph:
        """P_all, as a graph over the same vocabularies; without noise, and with the context graph."""
        sets = [triples for _, triples in self.clean.positives.items()]
        if self.context is not None:
            sets.append(self.context.triples)
        return self.graph.with_triples(np.vstack(sets))

    def sets(self) -> Iterator[tuple[Split, str | None, Triples]]:
        """Yield split, method (None for positives) and triples of every set, positives first."""
        for split, triples in self.positives.items():
            yield split, None, triples
        for method, negatives in self.negatives.items():
            for split, triples in negatives.splits.items():
                yield split, method, triples

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True) -> Benchmark:
        """Read a benchmark's folder (see `loginfer.benchmark.load_benchmark`)."""
        from loginfer.benchmark.folder.reading import load_benchmark

        return load_benchmark(path, verify=verify)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a benchmark's folder (see `loginfer.benchmark.write_benchmark`)."""
        from loginfer.benchmark.folder.writing import write_benchmark

        write_benchmark(self, path, force=force)

    def __repr__(self) -> str:
        sizes = " / ".join(f"{size:,}" for size in self.positives.sizes.values())
        methods = ", ".join(self.negatives) or "none"
        return f"Benchmark({self.name!r}, {len(self.rules)} rules, positives {sizes}, negatives {methods})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.benchmark.notebook import benchmark_fragment

        return benchmark_fragment(self)
