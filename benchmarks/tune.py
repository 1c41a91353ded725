"""How the settings in `loginfer/systems/tuned.toml` are found: Optuna, on validation triples, never on test.

    python -m benchmarks.tune --suite SUITE --system rotate --graph WN --only comp,trian --out FILE

A trial fits the system to each chosen benchmark and is worth the mean of the accuracy on valid and of the
C-MRR (filtered) of some hundred valid triples. The first trial has the settings that are shipped now. All
trials are kept in the output file; more are added to those that are there.
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
from loginfer.systems import configure, find_system, settings_of, training_view, tuned_settings
from loginfer.systems.embedding.validation import best_accuracy

# What may be tried: (least, most, on a logarithmic scale), or a list of choices.
SPACE: dict[str, tuple[float, float, bool] | list[Any]] = {
    "learning_rate": (0.003, 0.05, True),
    "margin": (3.0, 24.0, False),
    "adversarial": (0.0, 2.0, False),
    "explicit_weight": (0.1, 3.0, True),
    "relation_weight": (0.0, 0.5, False),
    "regularisation": (0.0005, 0.1, True),
    "spread": (0.005, 0.5, True),
    "negatives": [4, 8, 16],
}
RANKED = 300


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
        space = SPACE[name]
        if isinstance(space, list):
            drawn[name] = trial.suggest_categorical(name, space)
        else:
            least, most, log = space
            drawn[name] = float(f"{trial.suggest_float(name, least, most, log=log):.2g}")
    return drawn


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune", description=__doc__)
    parser.add_argument("--suite", type=Path, required=True, help="a suite of benchmarks")
    parser.add_argument("--system", required=True, help="which system")
    parser.add_argument(
        "--graph", required=True, choices=("FB", "WN", "LUBM"), help="benchmarks of which graph"
    )
    parser.add_argument("--only", default="", help="which patterns, separated by commas")
    parser.add_argument(
        "--vary", default="learning_rate,margin,adversarial,explicit_weight", help="which settings"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="fixed in all trials")
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--out", type=Path, required=True, help="JSON file of all trials")
    options = parser.parse_args()
    entry = find_system(options.system)
    known = settings_of(entry.load())
    names = [name for name in options.vary.split(",") if name in known]
    folders = sorted(options.suite.glob(f"LogInfer-{options.graph}-*"))
    wanted = [word for word in options.only.split(",") if word]
    folders = [f for f in folders if not wanted or any(f"-{word}-" in f.name for word in wanted)]
    benchmarks = [load_benchmark(folder) for folder in folders]
    trials: list[dict[str, Any]] = json.loads(options.out.read_text()) if options.out.exists() else []

    fixed = dict(pair.split("=", 1) for pair in options.set)
    start = {name: known[name].default for name in names} | tuned_settings(entry, benchmarks[0])
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=len(trials)))
    study.enqueue_trial({name: start[name] for name in names})

    def objective(trial: optuna.Trial) -> float:
        settings = suggest(trial, names)
        found = {b.name: worth(configure(entry.load(), {**fixed, **settings}), b) for b in benchmarks}
        value = float(np.mean([(f["accuracy"] + f["c_mrr"]) / 2 for f in found.values()]))
        trials.append({"settings": {**fixed, **settings}, "value": value, "benchmarks": found})
        options.out.write_text(json.dumps(trials, indent=1) + "\n")
        print(f"{value:.4f} {settings}", file=sys.stderr, flush=True)
        return value

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study.optimize(objective, n_trials=options.trials)
    best = max(trials, key=lambda trial: trial["value"])
    print(json.dumps(best, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
