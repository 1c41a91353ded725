"""Building benchmarks: the whole suite, one benchmark from the archive on, negatives alone, the audit."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perf.case import OURS, Case, Estimate, Task
from perf.workspace import Workspace

HERE = "perf.tasks.building"
MAIN = "from loginfer.cli import main; main()"
FB = ("fb15k-237",)
# Relations of FB15k-237.
RELATIONS = 237
# So many candidates of the triangle are counted, one by one.
SAMPLE = 2000


def suite(folder: str, jobs: int, only: Sequence[str] = ()) -> Any:
    """Prepare nothing; the archives are read, the suite is written."""
    from loginfer.benchmark.construction import suite as paper

    chosen = paper.select(only)

    def call() -> Any:
        from perf.family import Family

        shutil.rmtree(folder, ignore_errors=True)
        with Family() as family:
            built = paper.build_suite(folder, chosen, jobs=jobs)
        shutil.rmtree(folder, ignore_errors=True)
        return built, family

    def summary(value: Any) -> Any:
        built, family = value
        sizes = {b.name: sum(b.manifest["positives"].values()) for b in built if b.manifest}
        return {"benchmarks": len(sizes), "positives": sum(sizes.values()), "all_megabytes": family.megabytes}

    return call, summary


def candidates(folder: str) -> Any:
    """Prepare to count random candidates one by one. Each call starts without indexes of the graph."""
    from loginfer import load_graph, open_engine
    from perf.peers.candidates import triangles

    graph = load_graph(folder)
    rules = triangles(graph.relations, SAMPLE)

    def call() -> list[int]:
        engine = open_engine(graph.with_triples(graph.triples))
        return [engine.support(rule) for rule in rules]

    return call, lambda found: [sum(found), sum(n > 0 for n in found)]


def negatives(folder: str, method: str, protocol: str) -> Any:
    """Prepare rules and positives of FB-trian. Each call makes the context anew, what is true included."""
    from loginfer import load_graph
    from loginfer.benchmark import Recipe, foundation, sample_negatives

    recipe = Recipe("fb15k-237", ("triangle",), k1=200, k2=200, protocol=protocol)
    with foundation(recipe, load_graph(folder)) as laid:
        context = laid.context
    return lambda: sample_negatives(replace(context), method), lambda made: made.splits.sizes


def tasks(space: Workspace) -> list[Task]:
    """Return the suite beside queries for single candidates, single benchmarks, negatives, the audit."""
    return [
        *_suite(space),
        _candidates(space),
        _build(space, "build-triangle", "build FB-trian-pa, archive to folder", "triangle", "pa"),
        _build(space, "build-diamond", "build FB-diam-qg, archive to folder", "diamond", "qg"),
        _negatives(space, "sound"),
        _negatives(space, "paper"),
        _audit(space),
    ]


def _suite(space: Workspace) -> list[Task]:
    def task(jobs: int, name: str) -> Task:
        arguments = {"folder": str(space.folder / "suite"), "jobs": jobs}
        case = Case(OURS, f"{HERE}:suite", arguments, seconds=120, megabytes=2000, limit=600)
        some = Case(OURS, f"{HERE}:suite", arguments | {"only": ["WN-trian-*", "LUBM-all-*"]})
        return Task(f"suite-{jobs}", name, (case,), (*FB, "wn18rr"), end_to_end=True, before=some)

    return [task(1, "the suite, 39 benchmarks"), task(2, "the suite, two processes")]


def _candidates(space: Workspace) -> Task:
    triples = {"triples": space.triples, "count": SAMPLE}
    every = Estimate(RELATIONS**3 / SAMPLE, f"{RELATIONS}³ = {RELATIONS**3:,} queries, one for each triangle's body")
    cases = (
        Case(OURS, f"{HERE}:candidates", {"folder": space.fb}),
        Case("pyoxigraph, SPARQL", "perf.peers.candidates:oxigraph", triples, limit=300),
    )
    return Task("candidates", f"{SAMPLE:,} random triangles, one by one", cases, FB, estimate=every)


def _build(space: Workspace, key: str, name: str, pattern: str, method: str) -> Task:
    out = str(space.folder / key)
    words = f"build fb15k-237 --pattern {pattern} --negatives {method} --k1 200 --k2 200 --force".split()
    return Task(key, name, (Case(OURS, command=("-c", MAIN, *words, "--out", out), seconds=20),), FB)


def _negatives(space: Workspace, protocol: str) -> Task:
    arguments = {"folder": space.fb, "method": "pa", "protocol": protocol}
    case = Case(OURS, f"{HERE}:negatives", arguments, seconds=1)
    return Task(f"pa-{protocol}", f"FB-trian: position-aware, {protocol}", (case,), FB)


def _audit(space: Workspace) -> Task:
    case = Case(OURS, command=("-c", MAIN, "audit", space.benchmark))
    return Task("audit", "audit of FB-trian-pa", (case,), (*FB, "benchmark"))


def prepare_benchmark(folder: str) -> Any:
    """Build the benchmark that is audited."""
    from loginfer import load_graph
    from loginfer.benchmark import Recipe, build, write_benchmark

    space = Workspace(Path(folder))
    recipe = Recipe("fb15k-237", ("triangle",), k1=200, k2=200)
    return lambda: write_benchmark(build(recipe, load_graph(space.fb)), space.benchmark, force=True), repr
