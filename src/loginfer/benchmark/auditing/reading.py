"""From a folder as it lies there to what the checks look at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.material import Lines
from loginfer.benchmark.layout import Role
from loginfer.benchmark.noise import Noise
from loginfer.benchmark.noise_reading import noise_of
from loginfer.benchmark.raw import RawFolder
from loginfer.benchmark.values import SPLITS, Benchmark, NegativeSet, Origins, Splits
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.triples import distinct_keys

__all__ = ["benchmark_of", "lines_of"]


def lines_of(raw: RawFolder) -> dict[tuple[str, str | None], Lines]:
    """Return what the files of triples hold, by split and method (None for positives)."""
    # A file with labels appears for positives and for negatives: its lines are in neither complete.
    return {
        (file.role.split, file.role.method): Lines(
            file.name, file.triples, complete=len(file.triples) == file.lines
        )
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


def _origins(
    raw: RawFolder, graph: KnowledgeGraph, method: str, split: str, triples: Triples
) -> Origins | None:
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
