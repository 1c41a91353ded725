"""What the checks look at: a benchmark, the files it was read from, and what is computed once for all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.findings import EXAMPLES, CannotCheckError, Example, Finding, error
from loginfer.benchmark.benchmark import SPLITS, Benchmark, BenchmarkRule, NegativeSet, Provenance
from loginfer.benchmark.folder.manifest import RULES, Role, file_of, kg_figures
from loginfer.benchmark.folder.reading import BenchmarkFolder, TripleFile
from loginfer.benchmark.folder.writing import graph_sum
from loginfer.benchmark.learned_shortcut import split_difference
from loginfer.benchmark.program import Rounds
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import Derivations, Engine, open_engine_in
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Keys, Mask
from loginfer.logic.rule import Rule
from loginfer.progress import Progress, report_progress

T = TypeVar("T")


def set_name(split: str, method: str | None = None, *, full: bool = False) -> str:
    """Return what the paper calls a set: P_train, N_test; in full with the method, N_test of `qg`."""
    if method is None:
        return f"P_{split}"
    return f"N_{split} of `{method}`" if full else f"N_{split}"


def rule_location(number: int) -> str:
    """Return where a rule is, counted from 0 as in all files of a benchmark."""
    return f"{RULES}, rule {number}"


@dataclass(frozen=True)
class AuditedBenchmark:
    """Everything that the checks look at.

    What may be unknown, such as the rules, is a property that raises `CannotCheckError`: a check that needs it
    cannot be made without.

    Parameters
    ----------
    with_noise
        The benchmark as its files hold it, with what could be read of it, noise included.
    source
        The folder as it lies there; None for a benchmark in memory.
    engine
        Name of the engine.
    closure
        Whether to look at the materialisation as well.
    settings
        Settings that the recipe must agree with.
    progress
        Called with what is being done, how much is done, and how much there is.
    """

    with_noise: Benchmark
    source: BenchmarkFolder | None = None
    engine: str = "native"
    closure: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    # -- what is known ------------------------------------------------------------------------------

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark without its noise."""
        return self.with_noise.clean

    @property
    def folder(self) -> BenchmarkFolder:
        """The folder."""
        return _required(self.source, "the benchmark is in memory, not in a folder")

    @property
    def graph(self) -> KnowledgeGraph:
        """P_train."""
        return self.benchmark.graph

    @property
    def rules(self) -> tuple[Rule, ...]:
        """R."""
        if not self.benchmark.rules:
            has_file = self.source is not None and any(p.file == RULES for p in self.source.problems)
            raise CannotCheckError("rules.txt cannot be read" if has_file else "the rules are not known (no rules.txt)")
        return self.benchmark.program

    @property
    def benchmark_rules(self) -> tuple[BenchmarkRule, ...]:
        """R, with what is told about each rule."""
        return self.benchmark.rules if self.rules else ()

    @property
    def kg(self) -> KnowledgeGraph:
        """K."""
        return _required(self.benchmark.kg, "K is not known (no provenance.parquet)")

    @property
    def provenance(self) -> Provenance:
        """Where the conclusions came from."""
        return _required(self.benchmark.provenance, "there is no provenance.parquet")

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest."""
        return _required(self.benchmark.manifest or None, "there is no manifest.json")

    @property
    def recipe(self) -> Recipe:
        """How the benchmark was made."""
        return _required(self.benchmark.recipe, "the recipe is not known (no manifest.json)")

    @property
    def negatives(self) -> Mapping[str, NegativeSet]:
        """The negatives by method."""
        return _required(self.benchmark.negatives or None, "the benchmark has no negatives")

    @property
    def protocol(self) -> str | None:
        """`paper` or `sound`; None where nobody says so."""
        return None if self.benchmark.recipe is None else self.benchmark.recipe.protocol

    # -- what is computed once ----------------------------------------------------------------------

    @cached_property
    def kg_figures(self) -> dict[str, Any]:
        """The size and sum of K."""
        return kg_figures(self.kg, graph_sum(self.kg))

    @cached_property
    def over_kg(self) -> Engine:
        """An engine over K."""
        return self._engine(self.kg)

    @property
    def depth(self) -> int:
        """In how many steps conclusions may follow."""
        return self.benchmark.depth

    @cached_property
    def rounds(self) -> Rounds:
        """What follows from K, step by step."""
        recipe, limit = self.recipe, self.recipe.max_triples
        return Rounds(self.over_kg, self.rules, recipe.depth, self._engine, max_triples=limit, progress=self.progress)

    @property
    def over_premises(self) -> Engine:
        """An engine over what conclusions follow from in one step: K, or what follows from K before."""
        return self.over_kg if self.depth == 1 else self.rounds.last

    @cached_property
    def over_train(self) -> Engine:
        """An engine over P_train, and the context graph if there is one."""
        return self._engine(self.benchmark.seen)

    @cached_property
    def over_noisy(self) -> Engine:
        """An engine over P_train as its file holds it, noise included."""
        return self.over_train if self.with_noise.noise is None else self._engine(self.with_noise.graph)

    @cached_property
    def over_everything(self) -> Engine:
        """An engine over P_all."""
        return self._engine(self.benchmark.everything)

    def _engine(self, graph: KnowledgeGraph) -> Engine:
        return open_engine_in(self._open, graph, self.engine)

    def close(self) -> None:
        """Close the engines."""
        self._open.close()

    @cached_property
    def derivations(self) -> Derivations:
        """Which rules derive which conclusions of the provenance, from K or what follows before them."""
        if self.depth > 1:
            return self.rounds.derivations(self.provenance.triples)
        return self.over_kg.derivations(self.rules, self.provenance.triples)

    @cached_property
    def split_differences(self) -> dict[str, dict[str, float]]:
        """By method, how well the features of shortcuts tell train from test, see `split_difference`."""
        return {method: split_difference(self.benchmark, method) for method in self.benchmark.negatives}

    @cached_property
    def packed(self) -> dict[tuple[str, str | None], Keys]:
        """The sets as sorted keys."""
        return {(split, method): self.graph.keys.pack(triples) for split, method, triples in self.benchmark.sets()}

    def counts_by_rule(self, certain: Mask | None = None) -> Iterator[tuple[BenchmarkRule, Keys, Keys]]:
        """Yield for each rule its conclusions in each split, and those that no other rule derives: int64[3] each.

        Parameters
        ----------
        certain
            bool[n], conclusions of the provenance that count for the latter; by default all.
        """
        provenance = self.provenance
        fitting = (provenance.rule >= 0) & (provenance.rule < len(self.rules))
        rule, triple = provenance.rule[fitting], provenance.conclusion[fitting]
        split = provenance.split[triple]
        is_exclusive = np.bincount(triple, minlength=len(provenance))[triple] == 1
        if certain is not None:
            is_exclusive &= certain[triple]
        for number, benchmark_rule in enumerate(self.benchmark.rules):
            of_rule = rule == number
            counts, exclusive = (
                np.bincount(split[mask], minlength=len(SPLITS)) for mask in (of_rule, of_rule & is_exclusive)
            )
            yield benchmark_rule, counts, exclusive

    # -- files and examples -------------------------------------------------------------------------

    def lines(self, split: str, method: str | None = None) -> TripleFile | None:
        """Return the file of a set; None if there is none, or the benchmark is in memory."""
        return None if self.source is None else self.source.file(split, method)

    def file(self, split: str, method: str | None = None) -> str:
        """Return the name of the file of a set."""
        lines = self.lines(split, method)
        return file_of(Role(split, method)) if lines is None else lines.name  # type: ignore[arg-type]

    def examples(
        self, triples: npt.ArrayLike, split: str | None = None, method: str | None = None, occurrence: int = 0
    ) -> list[Example]:
        """Return the first few of these triples as examples, with their lines in the file of a set."""
        lines = None if split is None else self.lines(split, method)
        rows = np.asarray(triples)[:EXAMPLES]
        return [
            Example(f"({s}, {r}, {o})", None if lines is None else lines.where(row, occurrence), (s, r, o))
            for row, (s, r, o) in zip(rows, self.graph.names(rows), strict=True)
        ]

    def about(
        self, triples: Triples, message: str, split: str | None = None, method: str | None = None
    ) -> Iterator[Finding]:
        """Yield an error about triples, if there are any; `{}` in the message stands for their number."""
        if len(triples):
            number = f"{len(triples):,}"
            yield error(len(triples), message.replace("{}", number), self.examples(triples, split, method))

    def say(self, what: str) -> None:
        """Tell whoever listens what is being done."""
        report_progress(self.progress, what, 0, None)


def _required(value: T | None, otherwise: str) -> T:
    if value is None:
        raise CannotCheckError(otherwise)
    return value
