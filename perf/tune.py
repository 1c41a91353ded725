"""How the settings in `loginfer/systems/tuned.toml` are found: Optuna, on validation triples, never on test.

    python -m perf.tune --suite SUITE --out FOLDER [--systems rotate,boxe] [--graphs WN]
    python -m perf.tune --out FOLDER --json perf/results/tuning.json

`PLAN` says which benchmarks stand for a graph, what stays fixed and how many trials each system gets. A trial
fits the system to each of those benchmarks and is worth the mean of the accuracy on valid and the C-MRR
(filtered) of some hundred valid triples, where a point of accuracy counts like three of C-MRR. The first one
has the system's defaults, some more may be named in the plan. A file of trials for each system and graph is
written to the folder; trials that are there already are not made again. Without a suite nothing is tried: all
trials are brought together, and the best settings are printed as they stand in `tuned.toml`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from loginfer.benchmark import Benchmark, NegativeSet, Splits, load_benchmark
from loginfer.evaluation.metrics import ranking_metrics
from loginfer.evaluation.ranking import rank
from loginfer.files import atomic_write
from loginfer.randomness import hash_order
from loginfer.systems import configure, find_system, settings_of, training_view
from loginfer.systems.fitting import best_accuracy

# What may be tried: (least, most, on a logarithmic scale).
SPACE: dict[str, tuple[float, float, bool]] = {
    "learning_rate": (0.005, 0.03, True),
    "margin": (3.0, 15.0, False),
    "adversarial": (0.5, 2.0, False),
    "explicit_weight": (0.03, 2.0, True),
    "regularisation": (0.0005, 0.03, True),
}
RANKED = 300


@dataclasses.dataclass(frozen=True)
class Part:
    """The part of the plan for one graph.

    `first` are settings to try right after the defaults, where an earlier, coarser study pointed.
    """

    benchmarks: tuple[str, ...]
    fixed: dict[str, Any]
    trials: int
    first: tuple[dict[str, float], ...] = ()


PLAN = {
    "WN": Part(("WN-comp-pa", "WN-trian-qg"), {"epochs": 30}, 4),
    "LUBM": Part(("LUBM-all-qg",), {"epochs": 60}, 4, ({"explicit_weight": 0.3},)),
    "FB": Part(
        ("FB-inver-pa", "FB-inter-qg"),
        {"epochs": 15, "negatives": 16},
        4,
        ({"margin": 12.0, "regularisation": 0.002}, {"margin": 12.0, "regularisation": 0.002, "explicit_weight": 0.1}),
    ),
}
SYSTEMS = ("transe", "rotate", "complex", "distmult", "boxe")
VARIED = ("learning_rate", "margin", "regularisation", "adversarial", "explicit_weight")
# Trials that are drawn at random before Optuna's sampler learns from them.
AT_RANDOM = 4


def valid_as_test(benchmark: Benchmark, method: str) -> Benchmark:
    """Return a benchmark whose test triples are some of its valid ones, for ranking."""
    nothing = np.empty((0, 3), dtype=np.int32)
    valid = benchmark.positives.valid
    chosen = np.sort(hash_order(benchmark.graph.keys.pack(valid), 0, RANKED))
    positives = Splits(benchmark.positives.train, np.delete(valid, chosen, axis=0), valid[chosen])
    negatives = {method: NegativeSet(method, Splits(nothing, nothing, nothing))}
    return dataclasses.replace(benchmark, positives=positives, negatives=negatives)


def worth(system: Any, benchmark: Benchmark) -> dict[str, float]:
    """Fit a system; return its accuracy and C-MRR on valid, and the seconds it took."""
    method = next(iter(benchmark.negatives))
    started = time.process_time()
    seen = training_view(benchmark, method)
    scorer = system.fit(seen)
    seconds = time.process_time() - started
    negatives = seen.negatives[method].splits.valid
    accuracy = best_accuracy(scorer.score(seen.positives.valid), scorer.score(negatives))
    ranks = rank(scorer, valid_as_test(seen, method), negatives=method, ranking=("filtered",))
    return {"accuracy": accuracy, "c_mrr": ranking_metrics(ranks)["c_mrr"], "seconds": seconds}


def suggest(trial: optuna.Trial, names: list[str]) -> dict[str, Any]:
    """Draw settings from the space."""
    drawn: dict[str, Any] = {}
    for name in names:
        least, most, log = SPACE[name]
        drawn[name] = float(f"{trial.suggest_float(name, least, most, log=log):.2g}")
    return drawn


def tune(name: str, part: Part, suite: Path, out: Path) -> list[dict[str, Any]]:
    """Make the trials of a system on one graph; return them all."""
    trials: list[dict[str, Any]] = json.loads(out.read_text()) if out.exists() else []
    if len(trials) >= part.trials:
        return trials
    system = find_system(name).load()
    known = settings_of(system)
    names = [varied for varied in VARIED if varied in known]
    benchmarks = [load_benchmark(suite / f"LogInfer-{short}") for short in part.benchmarks]
    sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=AT_RANDOM)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for start in ({}, *part.first):
        study.enqueue_trial({varied: start.get(varied, known[varied].default) for varied in names})

    def objective(trial: optuna.Trial) -> float:
        settings = {**part.fixed, **suggest(trial, names)}
        if trial.number < len(trials):  # made before: the sampler draws the same again
            return float(trials[trial.number]["value"])
        found = {b.name: worth(configure(system, settings), b) for b in benchmarks}
        value = float(np.mean([(3 * f["accuracy"] + f["c_mrr"]) / 4 for f in found.values()]))
        trials.append({"settings": settings, "value": value, "benchmarks": found})
        with atomic_write(out, force=True) as file:
            file.write(json.dumps(trials, indent=1) + "\n")
        print(f"{out.stem} {value:.4f} {settings}", file=sys.stderr, flush=True)
        return value

    study.optimize(objective, n_trials=part.trials)
    return trials


# The graphs of the plan, by their names in `tuned.toml`.
GRAPHS = {"WN": "wn18rr", "FB": "fb15k-237", "LUBM": "lubm"}


def best(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the trial that is worth most; the earlier one of two that are worth the same."""
    return max(trials, key=lambda trial: float(trial["value"]))


def toml(found: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    """Return the best settings as they stand in `tuned.toml`: those that differ from the defaults."""
    lines = []
    for name in dict.fromkeys(name for name, _ in found):
        known = settings_of(find_system(name).load())
        lines.append(f"\n[settings.{name}]")
        for graph, title in GRAPHS.items():
            if (name, graph) in found:
                settings = best(found[name, graph])["settings"]
                told = [f"{key} = {value}" for key, value in settings.items() if known[key].default != value]
                lines.append(f"{title} = {{ {', '.join(told)} }}")
    return "\n".join(lines)


def summary(out: Path, systems: list[str], graphs: list[str], path: Path | None) -> None:
    """Bring all trials together."""
    files = {(name, graph): out / f"{name}-{graph}.json" for name in systems for graph in graphs}
    found = {key: json.loads(file.read_text()) for key, file in files.items() if file.exists()}
    print(toml(found))
    if path is not None:
        rows = [
            {"system": name, "graph": graph, "trial": number, **trial}
            for (name, graph), trials in found.items()
            for number, trial in enumerate(trials)
        ]
        with atomic_write(path, force=True) as file:
            file.write("[\n" + ",\n".join(f" {json.dumps(row)}" for row in rows) + "\n]\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.tune", description=__doc__)
    parser.add_argument("--suite", type=Path, help="a suite of benchmarks")
    parser.add_argument("--out", type=Path, required=True, help="folder for the trials")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="which systems")
    parser.add_argument("--graphs", default=",".join(PLAN), help="which graphs")
    parser.add_argument("--json", type=Path, help="bring all trials together in this file")
    options = parser.parse_args()
    systems, graphs = options.systems.split(","), options.graphs.split(",")
    if options.suite is None:
        summary(options.out, systems, graphs, options.json)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for graph in graphs:
        for name in systems:
            trials = tune(name, PLAN[graph], options.suite, options.out / f"{name}-{graph}.json")
            found = best(trials)
            print(f"{name} on {graph}: {found['settings']}, worth {found['value']:.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
