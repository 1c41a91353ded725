"""Whether a model of PyKEEN, trained through the bridge, is as good as our own one with the same settings.

Trains our DistMult and `pykeen:DistMult` on the same benchmark: the same dimension, start, loss, negatives,
regularisation, rates and epochs. Then, with --defaults, PyKEEN's with the defaults of the bridge. Figures of
test are printed and kept, in points, with CPU seconds. Where DistMult cannot capture a pattern they vary by
two points between seeds, so take many: seeds whose figures are kept already are not trained again.

    python -m perf.pykeen_parity --pattern hierarchy --k1 4 --seeds 5 --our-seeds 10
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from perf.child import cpu_seconds

SPREAD = 0.02
DIMENSION = 100
ROOT = Path(__file__).resolve().parent.parent

# What a system reached: figures by metric, one for each seed.
Figures = dict[str, list[float]]


def systems(epochs: int, defaults: bool) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return who takes part: a name in print, the system's name and its settings."""
    start = json.dumps({"initializer_kwargs": {"a": -SPREAD, "b": SPREAD}})
    found: dict[str, tuple[str, dict[str, Any]]] = {
        "distmult": ("distmult", {"dimension": DIMENSION, "spread": SPREAD, "regularisation": 0.01, "epochs": epochs}),
        "pykeen:DistMult": (
            "pykeen:DistMult",
            {
                "embedding_dim": DIMENSION,
                "entity_initializer": "uniform",
                "relation_initializer": "uniform",
                "entity_representations_kwargs": start,
                "relation_representations_kwargs": start,
                "entity_constrainer": None,
                "regularizer": None,
                "regularisation": 0.01,
                "epochs": epochs,
            },
        ),
    }
    if defaults:
        settings = {"embedding_dim": DIMENSION, "epochs": epochs}
        found["pykeen:DistMult, defaults"] = ("pykeen:DistMult", settings)
    return found


def benchmark_of(options: argparse.Namespace) -> Any:
    """Return the benchmark, read or built."""
    import loginfer

    if options.bench is not None:
        return loginfer.load_benchmark(options.bench)
    recipe = loginfer.Recipe(options.graph, patterns=(options.pattern,), k1=options.k1, negatives=(options.negatives,))
    return loginfer.build(recipe)


def figures(benchmark: Any, system: str, given: dict[str, Any], seeds: range, ranking: bool, known: Figures) -> Figures:
    """Train and evaluate once for each seed; returns the figures after those that are known."""
    from loginfer import evaluate

    found: Figures = {name: list(values) for name, values in known.items()}
    for seed in seeds:
        started = cpu_seconds()
        made = evaluate(
            benchmark, system, settings=given, seed=seed, tuned=False, diagnosis=False,
            ranking=("filtered",) if ranking else (),
        )  # fmt: skip
        row = {name: 100 * float(made.metrics[name] or 0) for name in ("balanced_accuracy", "roc_auc")}
        if ranking:
            row["mrr"] = 100 * float(made.ranking["filtered"]["c_mrr"])
        row["cpu_seconds"] = cpu_seconds() - started
        for name, value in row.items():
            found.setdefault(name, []).append(round(value, 2))
    return found


def shown(found: Figures) -> str:
    """Return means and standard deviations in one line."""
    return ", ".join(f"{name} {np.mean(values):.2f} ± {np.std(values):.2f}" for name, values in found.items())


def differences(found: dict[str, Figures]) -> dict[str, float]:
    """Return by how much the mean figures of PyKEEN's model, with the same settings, are above ours."""
    ours, theirs = found["distmult"], found["pykeen:DistMult"]
    return {
        name: round(float(np.mean(theirs[name]) - np.mean(ours[name])), 2) for name in ours if name != "cpu_seconds"
    }


def results_of(file: Path) -> dict[str, Any]:
    """Return the figures that are kept, by benchmark."""
    return json.loads(file.read_text()) if file.exists() else {}


def main() -> None:
    """Train, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="wn18rr")
    parser.add_argument("--pattern", default="hierarchy")
    parser.add_argument("--k1", type=int, default=4)
    parser.add_argument("--negatives", default="pa")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--our-seeds", type=int, help="of our own DistMult, which is quick; as many by default")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--bench", help="a benchmark's folder, instead of building one")
    parser.add_argument("--ranking", action="store_true", help="rank as well")
    parser.add_argument("--defaults", action="store_true", help="the defaults of the bridge as well")
    parser.add_argument("--results", type=Path, default=ROOT / "perf" / "results" / "pykeen-parity.json")
    given = parser.parse_args()
    benchmark = benchmark_of(given)
    print(benchmark, flush=True)
    key = f"{benchmark.name}, {len(benchmark.rules)} rules, {given.epochs} epochs"
    kept: dict[str, Figures] = results_of(given.results).get(key, {}).get("systems", {})
    found: dict[str, Figures] = {}
    for name, (system, settings) in systems(given.epochs, given.defaults).items():
        known = kept.get(name, {})
        wanted = given.our_seeds or given.seeds if name == "distmult" else given.seeds
        seeds = range(len(known.get("balanced_accuracy", [])), wanted)
        found[name] = figures(benchmark, system, settings, seeds, given.ranking, known)
        print(f"{name:26} {shown(found[name])}", flush=True)
    everything = results_of(given.results)
    everything[key] = {"systems": kept | found, "differences": differences(found)}
    given.results.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
