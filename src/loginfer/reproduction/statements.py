"""What the paper says beside its tables: the measurements that this needs.

Each is one file, `statements/<name>.json` of a reproduction, made once, by a process of its own. By kind:

subrules      of each method for negatives: how many undesired sub-rules have a witness in N_train and N_test
candidates    of each pattern: how many rules there are, and how many have support
requirements  of a data set: how many test triples follow by rules that train bears witness to, and its negatives
phases        how RotatE turns the two relations of each hierarchy, and what it takes for true
relations     R-GCN with a matrix for each relation, and with one that all share
heads         a system with other heads of the same bodies, and with other seeds
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from loginfer._version import __version__
from loginfer.benchmark import Benchmark, foundation, load_benchmark
from loginfer.benchmark.auditing.negatives import witnessed_subrules
from loginfer.benchmark.construction.suite import groups
from loginfer.benchmark.negatives.methods import POSITION, QUERY, RANDOM, RELEVANCE
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import open_engine
from loginfer.engine.binding import relation_of
from loginfer.evaluation import Evaluation, evaluate
from loginfer.evaluation.evaluating import cpu_clock
from loginfer.files import write_text
from loginfer.kg import load_graph
from loginfer.logic import instantiate, patterns
from loginfer.reproduction.claims.statements import SUPPORTED
from loginfer.reproduction.planning import Measurement, Request, given_settings, measurement_named
from loginfer.reproduction.running import Folder, stable_json
from loginfer.systems.interface import choose_method, training_view

# From this confidence on, train bears witness to a rule.
CONFIDENT = 0.1
# Draws of heads, and seeds beside them.
DRAWS = 5


def measure(folder: Folder, name: str) -> dict[str, Any]:
    """Make a measurement, write its file, and return what it holds.

    Parameters
    ----------
    folder
        A reproduction, whose protocol and budget hold.
    name
        Which measurement.
    """
    request, measurement, start = folder.request(), measurement_named(name), cpu_clock()
    figures = KINDS[measurement.kind](measurement, request)
    document = {
        "format": "loginfer-measurement", "format_version": 1, "name": name,
        "kind": measurement.kind, "of": measurement.of, "system": measurement.system,
        "protocol": request.protocol, "budget": request.budget, "versions": {"loginfer": __version__},
        "cpu_seconds": round(cpu_clock() - start, 1), "figures": figures,
    }  # fmt: skip
    write_text(folder.measurement(name), stable_json(document), force=True)
    return document


# -- of rules and data ----------------------------------------------------------------------------


def _recipe(group: str, request: Request, *methods: str) -> Recipe:
    found = next(entry for entry in groups() if entry.name == group)
    return found.recipe(methods, {"protocol": request.protocol})


def _subrules(about: Measurement, request: Request) -> dict[str, Any]:
    methods = [method.name for method in (RANDOM, RELEVANCE, POSITION, QUERY)]
    with foundation(_recipe(about.of, request, *methods)) as base:
        benchmark = base.benchmark()
    found = {m: {s: witnessed_subrules(benchmark, m, s) for s in ("train", "test")} for m in methods}
    witnessed = {method: {split: count for split, (count, _) in splits.items()} for method, splits in found.items()}
    return {"undesired": found[methods[0]]["train"][1], "witnessed": witnessed}


def _candidates(about: Measurement, request: Request) -> dict[str, Any]:
    graph = load_graph(about.of)
    engine, relations = open_engine(graph), len(graph.rels)
    figures = {}
    for pattern in patterns():
        table, count = engine.rank_bodies(pattern), relations ** len(pattern.templates)
        figures[pattern.name] = {"candidates": count, "supported": int((table.support >= SUPPORTED).sum())}
        if pattern.name == "intersection":  # of two different relations, in either order
            figures[pattern.name]["candidates"] = relations * (relations - 1) // 2
            # Whatever the head is, it concludes as much.
            head = graph.relations[graph.rels[0]]
            rules = [instantiate(pattern, graph.relations.names(row), head) for row in table.predicates]
            figures[pattern.name]["conclusions"] = sum(len(engine.projection(rule)) for rule in rules)
    return figures


def _requirements(about: Measurement, request: Request) -> dict[str, Any]:
    from loginfer.systems.rules.exact import Exact

    benchmark = load_benchmark(about.of)
    view = training_view(benchmark, choose_method(benchmark, None))
    scores = Exact(max_length=3, min_confidence=CONFIDENT).fit(view).score(benchmark.positives.test)
    sizes = [negatives.splits.sizes for negatives in benchmark.negatives.values()]
    return {
        "test": len(scores),
        "predicted": int((scores >= CONFIDENT).sum()),
        "negatives": {split: sum(size[split] for size in sizes) for split in ("train", "valid", "test")},
    }


# -- of systems -------------------------------------------------------------------------------------


def _benchmark(about: Measurement, request: Request, heads: int = 0) -> Benchmark:
    """Return the benchmark that a measurement is about; its rules have the heads that a seed draws."""
    group, _, method = about.of.rpartition("-")
    recipe = _recipe(group, request, method)
    if heads:
        with foundation(recipe.changed(seed=heads)) as drawn:
            rules = tuple(str(rule) for rule in drawn.selection.program)
        recipe = recipe.changed(patterns=(), rules=rules)
    with foundation(recipe) as base:
        return base.benchmark(name=f"LogInfer-{about.of}")


def _evaluated(
    about: Measurement, request: Request, benchmark: Benchmark, seed: int = 0, **settings: Any
) -> Evaluation:
    group = next(entry for entry in groups() if about.of.startswith(f"{entry.name}-"))
    given = {**given_settings(about.system, group.kg, request.budget), **settings}
    return cast(Evaluation, evaluate(benchmark, about.system, settings=given, seed=seed, diagnosis=False))


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    ranking = {name: evaluation.ranking["filtered"][name] for name in ("c_mrr", "r_mrr")}
    return {"balanced_accuracy": evaluation.metrics["balanced_accuracy"], **ranking}


def _phases(about: Measurement, request: Request) -> dict[str, Any]:
    benchmark = _benchmark(about, request)
    evaluation = _evaluated(about, request, benchmark)
    weights, (method,) = evaluation.outcome.weights or {}, benchmark.negatives
    scorer = evaluation.configured.restore(benchmark, method, weights)
    threshold = evaluation.as_dict()["threshold"]
    angles, graph = weights["relations"], benchmark.kg or benchmark.graph
    alike = np.cos(angles[:, None] - angles[None]).mean(axis=2)

    def accepted(edges: Any, relation: int) -> float | None:
        """Return the share of unknown triples with these ends and a relation that it takes for true."""
        asked = np.column_stack([edges[:, 0], np.full(len(edges), relation, dtype=np.int32), edges[:, 2]])
        asked = asked[~benchmark.everything.contains(asked)]
        return float((scorer.score(asked) >= threshold).mean()) if len(asked) else None

    rows = []
    for rule in benchmark.program:
        body, head = (relation_of(atom, graph) for atom in (*rule.atoms, rule.head))
        others = [int(other) for other in graph.rels if other not in (body, head)]
        edges = graph.triples[graph.triples[:, 1] == head]
        shares = [share for other in others if (share := accepted(edges, other)) is not None]
        rows.append({
            "rule": str(rule),
            "alike": float(alike[body, head]),
            "most_alike_other": float(alike[body, others].max()),
            "converse": accepted(edges, body),
            "other_relations": float(np.mean(shares)) if shares else None,
        })  # fmt: skip
    return {**_figures(evaluation), "rules": rows}


def _relations(about: Measurement, request: Request) -> dict[str, Any]:
    benchmark = _benchmark(about, request)
    own = _evaluated(about, request, benchmark)
    shared = _evaluated(about, request, benchmark, block=0, bases=1)
    return {"own": _figures(own), "shared": _figures(shared)}


def _heads(about: Measurement, request: Request) -> dict[str, Any]:
    first = _benchmark(about, request)
    seeds = [_figures(_evaluated(about, request, first, seed)) for seed in range(DRAWS)]
    drawn = (_benchmark(about, request, heads) for heads in range(1, DRAWS))
    return {"seeds": seeds, "heads": [seeds[0], *(_figures(_evaluated(about, request, b)) for b in drawn)]}


KINDS: dict[str, Callable[[Measurement, Request], dict[str, Any]]] = {
    "subrules": _subrules, "candidates": _candidates, "requirements": _requirements,
    "phases": _phases, "relations": _relations, "heads": _heads,
}  # fmt: skip
