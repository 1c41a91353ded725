"""Benchmarks of a reproduction: those of the suite, and standard splits with random corruption beside them.

A standard split has no rules, so no recipe makes it: it is the published train, valid and test, each triple with a
negative of its own, the same triple with another object, as the paper has it in section 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loginfer.benchmark.construction.suite import SuiteBenchmark, SuiteGroup, SuiteResult, all_entries, build_suite
from loginfer.benchmark.negatives.methods import RANDOM
from loginfer.benchmark.recipe import Recipe
from loginfer.errors import LogInferError
from loginfer.files import recover_folder

if TYPE_CHECKING:
    from loginfer.benchmark.benchmark import Benchmark


@dataclass(frozen=True, slots=True)
class StandardSplit(SuiteBenchmark):
    """A standard split with random corruption; its `group` only says what it is called and how large train is."""

    @property
    def name(self) -> str:
        """The name: WN18RR-rc and so on."""
        return f"{self.group.name}-{self.method}"

    def build(self, out: Path, *, force: bool) -> SuiteResult:
        """Write it to a folder, unless one is there already."""
        from loginfer.benchmark import load_benchmark, write_benchmark

        recover_folder(out)
        if out.exists() and not force:
            return SuiteResult(self.name, "kept", load_benchmark(out).manifest)
        try:
            made = self.made()
        except LogInferError as error:
            return SuiteResult(self.name, "failed", error=str(error))
        return SuiteResult(self.name, "built", write_benchmark(made, out, force=force))

    def made(self) -> Benchmark:
        """Return the split with negatives for train, valid and test."""
        from loginfer.benchmark import Benchmark, load_benchmark
        from loginfer.benchmark.negatives import Context, sample_negatives
        from loginfer.engine import open_engine

        split = load_benchmark(self.group.kg)
        # Of the recipe only protocol and seed count: a split has no rules, whose pattern it could name.
        recipe = Recipe(self.group.kg, ("symmetry",), protocol="paper")
        context = Context(recipe, open_engine(split.graph), open_engine, (), split.positives)
        negatives = sample_negatives(context, self.method)
        return Benchmark(self.name, split.graph, split.positives, {self.method: negatives})


# The graphs as the literature calls them, and the size of their train.
STANDARD_SPLITS = tuple(
    StandardSplit(SuiteGroup(name, kg, 0, 0, (), {"train": train}), RANDOM.name)
    for name, kg, train in (("WN18RR", "wn18rr", 86_835), ("FB15k-237", "fb15k-237", 272_115))
)


def known_benchmarks() -> tuple[SuiteBenchmark, ...]:
    """Return all benchmarks that a reproduction may be about: those of the suite first."""
    return (*all_entries(), *STANDARD_SPLITS)


def build_benchmarks(
    out: Path, chosen: Sequence[SuiteBenchmark], *, report: Callable[[SuiteResult], None], **options: Any
) -> list[SuiteResult]:
    """Build benchmarks as `build_suite` does, standard splits among them."""
    of_suite = [entry for entry in chosen if not isinstance(entry, StandardSplit)]
    results = build_suite(out, of_suite, report=report, **options)
    for entry in chosen:
        if isinstance(entry, StandardSplit):
            results.append(entry.build(out / entry.name, force=options["force"]))
            report(results[-1])
    return results
