"""What checks look at.

What the checks look at: a benchmark, the lines it was read from, and what is computed once for all.

From a folder as it lies there to what the checks look at.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.report import EXAMPLES, CannotCheckError, Example
from loginfer.benchmark.benchmark import SPLITS, Benchmark, BenchmarkRule, NegativeSet, Origins, Provenance, Splits
from loginfer.benchmark.construction.noise import Noise
from loginfer.benchmark.folder.manifest import RULES, Role, file_of
from loginfer.benchmark.folder.reading import RawFolder, noise_of
from loginfer.benchmark.negatives.methods import method_or_unknown
from loginfer.benchmark.program import Rounds
from loginfer.engine import Derivations, Engine, open_engine_in
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import distinct_keys
from loginfer.logic.rule import Rule
from loginfer.progress import Progress

Keys = npt.NDArray[np.int64]


def set_name(split: str, method: str | None = None) -> str:
    """Return what the paper calls a set: P_train, N_test."""
    return f"P_{split}" if method is None else f"N_{split}"


@dataclass(frozen=True, slots=True)
class Lines:
    """The triples of a file in its order, duplicates included.

    Parameters
    ----------
    file
        Name of the file.
    triples
        int32[n, 3].
    complete
        Whether line i + 1 holds triple i: no line is blank or bad.
    """

    file: str
    triples: Triples
    complete: bool = True

    def where(self, triple: npt.ArrayLike, occurrence: int = 0) -> str:
        """Return file and line of a triple, by default of its first occurrence."""
        same = np.flatnonzero((self.triples == np.asarray(triple)).all(axis=1))
        if not self.complete or occurrence >= len(same):
            return self.file
        return f"{self.file}:{same[occurrence] + 1}"


@dataclass(frozen=True)
class Material:
    """Everything that the checks look at.

    Parameters
    ----------
    benchmark
        The benchmark, with what could be read of it.
    lines
        By split and method (None for positives): what the file holds. Empty for a benchmark in memory.
    raw
        The folder as it lies there; None for a benchmark in memory.
    engine
        Name of the engine.
    closure
        Whether to look at the materialisation as well.
    settings
        Settings that the recipe must agree with.
    progress
        Called with what is being done, how much is done, and how much there is.
    noisy
        The benchmark with its noise, if it has any; `benchmark` is the one without.
    """

    benchmark: Benchmark
    lines: Mapping[tuple[str, str | None], Lines] = field(default_factory=dict)
    raw: RawFolder | None = None
    engine: str = "native"
    closure: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None
    noisy: Benchmark | None = None
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    # -- what is known ------------------------------------------------------------------------------

    @property
    def folder(self) -> RawFolder:
        """The folder; a check of files cannot be made without."""
        if self.raw is None:
            raise CannotCheckError("the benchmark is in memory, not in a folder")
        return self.raw

    @property
    def graph(self) -> KnowledgeGraph:
        """P_train."""
        return self.benchmark.graph

    @property
    def given(self) -> Benchmark:
        """The benchmark as its files hold it, noise included."""
        return self.benchmark if self.noisy is None else self.noisy

    @property
    def rules(self) -> tuple[Rule, ...]:
        """R; a check that needs it cannot be made without."""
        if not self.benchmark.rules:
            known = self.raw is not None and any(p.file == RULES for p in self.raw.problems)
            raise CannotCheckError("rules.txt cannot be read" if known else "the rules are not known (no rules.txt)")
        return self.benchmark.program

    @property
    def known_rules(self) -> tuple[BenchmarkRule, ...]:
        """R, with what is told about each rule."""
        return self.benchmark.rules if self.rules else ()

    @property
    def kg(self) -> KnowledgeGraph:
        """K; a check that needs it cannot be made where it is not known."""
        if self.benchmark.kg is None:
            raise CannotCheckError("K is not known (no provenance.parquet)")
        return self.benchmark.kg

    @property
    def provenance(self) -> Provenance:
        """Where the conclusions came from."""
        if self.benchmark.provenance is None:
            raise CannotCheckError("there is no provenance.parquet")
        return self.benchmark.provenance

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest."""
        if not self.benchmark.manifest:
            raise CannotCheckError("there is no manifest.json")
        return self.benchmark.manifest

    @property
    def negatives(self) -> Mapping[str, NegativeSet]:
        """The negatives by method."""
        if not self.benchmark.negatives:
            raise CannotCheckError("the benchmark has no negatives")
        return self.benchmark.negatives

    @property
    def protocol(self) -> str | None:
        """`paper` or `sound`; None where nobody says so."""
        return None if self.benchmark.recipe is None else self.benchmark.recipe.protocol

    @property
    def variants(self) -> tuple[str, ...]:
        """The checks that only such a benchmark needs: `balanced-heads`, `inductive`, `noise`."""
        recipe = self.benchmark.recipe
        inductive = self.benchmark.context is not None or (recipe is not None and recipe.inductive)
        noise = self.noisy is not None or (recipe is not None and bool(recipe.flipped or recipe.missing))
        by_heads = any(method_or_unknown(name).size_of == "conclusions" for name in self.benchmark.negatives)
        return ("balanced-heads",) * by_heads + ("inductive",) * inductive + ("noise",) * noise

    def sets(self) -> Iterator[tuple[str, str | None, Triples]]:
        """Yield split, method (None for positives) and triples of every set, positives first."""
        for split, triples in self.benchmark.positives.items():
            yield split, None, triples
        for method, negatives in self.benchmark.negatives.items():
            for split, triples in negatives.splits.items():
                yield split, method, triples

    # -- what is computed once ----------------------------------------------------------------------

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
        recipe = self.benchmark.recipe
        if recipe is None:
            raise CannotCheckError("the recipe is not known (no manifest.json)")
        return Rounds(
            self.over_kg, self.rules, recipe.depth, self._engine, max_triples=recipe.max_triples, progress=self.progress
        )

    @property
    def over_premises(self) -> Engine:
        """An engine over what conclusions follow from in one step: K, or what follows from K before."""
        return self.over_kg if self.depth == 1 else self.rounds.last

    @cached_property
    def over_train(self) -> Engine:
        """An engine over P_train, and the context graph if there is one."""
        return self._engine(self.benchmark.seen)

    @cached_property
    def over_given(self) -> Engine:
        """An engine over P_train as its file holds it, noise included."""
        return self.over_train if self.noisy is None else self._engine(self.noisy.graph)

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
    def packed(self) -> dict[tuple[str, str | None], Keys]:
        """The sets as sorted keys."""
        return {(split, method): self.graph.keys.pack(triples) for split, method, triples in self.sets()}

    # -- examples -----------------------------------------------------------------------------------

    def example(
        self, triple: npt.ArrayLike, split: str | None = None, method: str | None = None, occurrence: int = 0
    ) -> Example:
        """Return a triple as an example, with its line in the file of a set."""
        ((s, r, o),) = self.graph.names(np.asarray(triple))
        lines = None if split is None else self.lines.get((split, method))
        where = None if lines is None else lines.where(triple, occurrence)
        return Example(f"({s}, {r}, {o})", where, (s, r, o))

    def examples(
        self, triples: Triples, split: str | None = None, method: str | None = None, occurrence: int = 0
    ) -> list[Example]:
        """Return the first few of these triples as examples."""
        return [self.example(row, split, method, occurrence) for row in triples[:EXAMPLES]]

    def file(self, split: str, method: str | None = None) -> str:
        """Return the name of the file of a set."""
        lines = self.lines.get((split, method))
        if lines is not None:
            return lines.file
        return file_of(Role(split, method))  # type: ignore[arg-type]

    def say(self, what: str) -> None:
        """Tell whoever listens what is being done."""
        if self.progress:
            self.progress(what, 0, None)


def lines_of(raw: RawFolder) -> dict[tuple[str, str | None], Lines]:
    """Return what the files of triples hold, by split and method (None for positives)."""
    # A file with labels appears for positives and for negatives: its lines are in neither complete.
    return {
        (file.role.split, file.role.method): Lines(file.name, file.triples, complete=len(file.triples) == file.lines)
        for file in raw.files
        if not file.role.context
    }


def benchmark_of(raw: RawFolder) -> Benchmark:
    """Return the benchmark that a folder holds, as far as it can be read.

    Unlike `load_benchmark` this does not mind a missing file, a repeated line, or a table that contradicts
    the files.
    """
    graph = raw.graph(raw.lines("train"))
    splits = Splits(graph.triples, *(_set(raw, graph, Role(split)) for split in SPLITS[1:]))
    noise, negatives = _noise(raw, graph)
    return Benchmark(
        name=raw.name,
        graph=graph,
        positives=splits,
        negatives=negatives,
        rules=raw.rules,
        provenance=raw.provenance,
        recipe=raw.recipe,
        manifest=raw.manifest or {},
        path=raw.path,
        context=None if raw.context is None else raw.graph(raw.context),
        noise=noise,
    )


def _noise(raw: RawFolder, graph: KnowledgeGraph) -> tuple[Noise | None, dict[str, NegativeSet]]:
    """Return the noise, if it can be read, and the negatives as they lie there."""
    found = {method: _negatives(raw, graph, method) for method in raw.methods}
    if raw.noise is None or len(raw.methods) != 1:
        return None, found
    noise, noisy = noise_of(raw, raw.noise)
    origins: dict[str, Origins] = {}
    for split, triples in noise.negatives.splits.items():
        told = _origins(raw, graph, noisy.method, split, triples)
        if told is not None:
            origins[split] = told
    return replace(noise, negatives=replace(noise.negatives, origins=origins)), found


def _set(raw: RawFolder, graph: KnowledgeGraph, role: Role) -> Triples:
    keys = graph.keys.pack(raw.lines(role.split, role.method))
    return graph.keys.unpack(distinct_keys(keys))


def _negatives(raw: RawFolder, graph: KnowledgeGraph, method: str) -> NegativeSet:
    splits = Splits(*(_set(raw, graph, Role(split, method)) for split in SPLITS))
    origins: dict[str, Origins] = {}
    for split, triples in splits.items():
        found = _origins(raw, graph, method, split, triples)
        if found is not None:
            origins[split] = found
    told = (raw.manifest or {}).get("negatives", {}).get(method, {})
    asked: dict[str, int] = {
        split: int(told[split]["asked"])
        for split in SPLITS
        if isinstance(told.get(split), dict) and isinstance(told[split].get("asked"), int)
    }
    return NegativeSet(method, splits, origins, asked, tuple(map(str, told.get("notes", ()))))


def _origins(raw: RawFolder, graph: KnowledgeGraph, method: str, split: str, triples: Triples) -> Origins | None:
    """Return the origins in the order of the triples; None if the table does not tell of exactly these."""
    if raw.origins is None:
        return None
    rows = raw.origins.rows(method, split)
    told = graph.keys.pack(raw.origins.triples[rows])
    order: npt.NDArray[np.int64] = np.argsort(told, kind="stable")
    if not np.array_equal(told[order], graph.keys.pack(triples)):
        return None
    found = raw.origins.origins[rows[order]]
    return found if (found.source >= 0).all() else None
