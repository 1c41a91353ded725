"""How the settings in `loginfer/systems/tuned.toml` are found: Optuna, on validation triples, never on test.

    python -m benchmarks.tune --suite SUITE --out FOLDER [--systems rotate,boxe] [--graphs WN]

`PLAN` says which benchmarks stand for a graph, what stays fixed and how many trials each system gets. A trial
fits the system to each of those benchmarks and is worth the mean of the accuracy on valid and of the C-MRR
(filtered) of some hundred valid triples. The first trial has the system's defaults. A file of trials for each
system and graph is written to the folder; trials that are there already are not made again.
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
from loginfer.benchmark.randomness import hash_order
from loginfer.evaluation.ranking import rank
from loginfer.evaluation.ranking_metrics import ranking_metrics
from loginfer.files import atomic_write
from loginfer.systems import configure, find_system, settings_of, training_view
from loginfer.systems.embedding.validation import best_accuracy

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
    """The part of the plan for one graph: benchmarks, settings that stay fixed, number of trials."""

    benchmarks: tuple[str, ...]
    fixed: dict[str, Any]
    trials: int


PLAN = {
    "WN": Part(("WN-comp-pa", "WN-trian-qg"), {"epochs": 30}, 6),
    "LUBM": Part(("LUBM-all-qg",), {"epochs": 60}, 8),
    "FB": Part(("FB-inver-pa", "FB-inter-qg"), {"epochs": 30, "negatives": 16}, 6),
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
    ranks = rank(scorer, valid_as_test(seen, method), method=method, protocols=("filtered",))
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
    study.enqueue_trial({varied: known[varied].default for varied in names})

    def objective(trial: optuna.Trial) -> float:
        settings = {**part.fixed, **suggest(trial, names)}
        if trial.number < len(trials):  # made before: the sampler draws the same again
            return float(trials[trial.number]["value"])
        found = {b.name: worth(configure(system, settings), b) for b in benchmarks}
        value = float(np.mean([(f["accuracy"] + f["c_mrr"]) / 2 for f in found.values()]))
        trials.append({"settings": settings, "value": value, "benchmarks": found})
        with atomic_write(out, force=True) as file:
            file.write(json.dumps(trials, indent=1) + "\n")
        print(f"{out.stem} {value:.4f} {settings}", file=sys.stderr, flush=True)
        return value

    study.optimize(objective, n_trials=part.trials)
    return trials


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune", description=__doc__)
    parser.add_argument("--suite", type=Path, required=True, help="a suite of benchmarks")
    parser.add_argument("--out", type=Path, required=True, help="folder for the trials")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="which systems")
    parser.add_argument("--graphs", default=",".join(PLAN), help="which graphs")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for graph in options.graphs.split(","):
        for name in options.systems.split(","):
            trials = tune(name, PLAN[graph], options.suite, options.out / f"{name}-{graph}.json")
            best = max(trials, key=lambda trial: float(trial["value"]))
            print(f"{name} on {graph}: {best['settings']}, worth {best['value']:.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
