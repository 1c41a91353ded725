"""A benchmark as a value: six sets of triples, the rules, and where everything came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.recipe import Recipe
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.triples import keys_without
from loginfer.logic.rule import Rule

__all__ = [
    "POSITIONS",
    "SOURCES",
    "SPLITS",
    "Benchmark",
    "BenchmarkRule",
    "NegativeSet",
    "Origins",
    "PassedOver",
    "Provenance",
    "Split",
    "Splits",
]

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

# Where a negative came from; `Origins.source` holds places in this list.
#   relevance  any constants of the support, any head predicate
#   position   a conclusion with a constant in one position replaced
#   sub-rule   a conclusion of a sub-rule
#   object     a positive with a random object
SOURCES = ("relevance", "position", "sub-rule", "object")

# Which position of a conclusion was replaced; `Origins.position` holds places in this list.
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
        found: Triples = getattr(self, split)
        return found

    def items(self) -> Iterator[tuple[Split, Triples]]:
        """Yield the splits by name: train, valid, test."""
        for split in SPLITS:
            yield split, self[split]

    @property
    def sizes(self) -> dict[Split, int]:
        """How many triples each has."""
        return {split: len(triples) for split, triples in self.items()}


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
        Number of new conclusions, |T_r(K) ∖ K|.
    sampled
        How many of them were sampled, P^r_train, P^r_valid and P^r_test together.
    """

    rule: Rule
    pattern: str | None
    support: int
    new: int
    sampled: int


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A candidate that was not selected under `sound`, because it concludes too little that is new."""

    rule: Rule
    pattern: str
    support: int
    new: int


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the conclusions of a benchmark came from: all rules that derive each, one witness each.

    Parameters
    ----------
    triples
        int32[n, 3], the conclusions that were distributed, sorted.
    split
        int8[n], places in `SPLITS`.
    conclusion, rule
        int64[m], int32[m]: pairs of a place in `triples` and a place in the benchmark's rules, sorted.
    offsets, values
        int64[m + 1], int32[…]: the first witness of pair i is `values[offsets[i]:offsets[i + 1]]`, one id for
        each variable of `rule.variables`.
    """

    triples: Triples
    split: npt.NDArray[np.int8]
    conclusion: npt.NDArray[np.int64]
    rule: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    values: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.triples)


@dataclass(frozen=True, slots=True)
class Origins:
    """Where the negatives of one split came from, in the order of the triples.

    Parameters
    ----------
    source
        int8[n], places in `SOURCES`.
    position
        int8[n], places in `POSITIONS`.
    rule
        int32[n], the rule whose sub-rule concludes it, as a place in the benchmark's rules; -1 for none.
    kept
        int32[n], the sub-rule: bit i is set if it keeps part i of that rule's body; 0 for none.
    """

    source: npt.NDArray[np.int8]
    position: npt.NDArray[np.int8]
    rule: npt.NDArray[np.int32]
    kept: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, places: npt.NDArray[Any]) -> Origins:
        return Origins(self.source[places], self.position[places], self.rule[places], self.kept[places])


@dataclass(frozen=True, slots=True)
class NegativeSet:
    """N_train, N_valid and N_test of one method.

    Parameters
    ----------
    method
        `rb`, `pa`, `qg`, `rc`; of a folder without manifest whatever its files are called.
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

    @property
    def program(self) -> tuple[Rule, ...]:
        """The rules alone."""
        return tuple(known.rule for known in self.rules)

    @cached_property
    def kg(self) -> KnowledgeGraph | None:
        """K: P_train without the conclusions that were added; None where those are not known."""
        if self.provenance is None:
            return None
        keys = self.graph.keys
        added = keys.pack(self.provenance.triples[self.provenance.split == 0])
        return self.graph.with_triples(keys.unpack(keys_without(self.graph.packed, added)))

    @cached_property
    def everything(self) -> KnowledgeGraph:
        """P_all, as a graph over the same vocabularies."""
        return self.graph.with_triples(np.vstack([triples for _, triples in self.positives.items()]))

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True) -> Benchmark:
        """Read a benchmark's folder (see `loginfer.benchmark.load_benchmark`)."""
        from loginfer.benchmark.folder import load_benchmark

        return load_benchmark(path, verify=verify)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a benchmark's folder (see `loginfer.benchmark.write_benchmark`)."""
        from loginfer.benchmark.folder import write_benchmark

        write_benchmark(self, path, force=force)

    def __repr__(self) -> str:
        sizes = " / ".join(f"{size:,}" for size in self.positives.sizes.values())
        methods = ", ".join(self.negatives) or "none"
        return f"Benchmark({self.name!r}, {len(self.rules)} rules, positives {sizes}, negatives {methods})"
