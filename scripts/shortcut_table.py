"""Measure what shortcuts reach on the suite, method by method: the table in docs/howto/near-misses.md.

    python scripts/shortcut_table.py OUT [METHOD ...]

Writes OUT/<group>-<method>.json for each graph and pattern of the suite, and prints a line for each. What is there
already is kept. `twins` are near misses with `--match all`. The learned shortcut is that of the audit; for twins there
are classifiers beside it that the pairing did not use (logistic regression, a random forest, gradient boosting with
other seeds), and the systems `contrast` and `oracle`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from loginfer.benchmark import FeatureBattery, build
from loginfer.benchmark.construction.suite import SuiteGroup, groups
from loginfer.benchmark.learned_shortcut import shortcut_results, split_difference, training_triples
from loginfer.benchmark.shortcuts import fit_cut, visible_graph
from loginfer.errors import InputError
from loginfer.evaluation import evaluate
from loginfer.files import atomic_write
from loginfer.kg import KnowledgeGraph, load_graph

# Where twins are few, rules are chosen for them, and test gets a larger share.
TWINS: dict[str, dict[str, Any]] = {
    "FB-sym": {"select": "twins", "k1": 60, "ratio": "6:2:2"},
    "WN-trian": {"select": "twins", "ratio": "7:1:2"},
}


def measured(benchmark: Any, method: str) -> dict[str, Any]:
    """Return what shortcuts reach on one method's negatives."""
    results = shortcut_results(benchmark, method)
    if "learned" not in results:
        return {"error": f"too few triples to learn from: {benchmark.positives.sizes}; {benchmark.notes}"}
    singles = {name: r.balanced_accuracy for name, r in results.items() if name not in ("learned", "skeleton")}
    single = max(singles, key=singles.__getitem__)
    return {
        "learned": results["learned"].balanced_accuracy,
        "interval": results["learned"].interval,
        "skeleton": results["skeleton"].balanced_accuracy,
        "single": [single, singles[single]],
        "test": [len(part) for part in (benchmark.positives.test, benchmark.negatives[method].splits.test)],
        "splits": split_difference(benchmark, method),
    }


def other_classifiers(benchmark: Any) -> dict[str, float]:
    """Return the balanced accuracy of classifiers that the pairing did not use."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer

    battery, splits = FeatureBattery(visible_graph(benchmark)), benchmark.negatives["nm"].splits
    sets = (training_triples(benchmark, "nm"), (benchmark.positives.valid, splits.valid),
            (benchmark.positives.test, splits.test))  # fmt: skip
    values = [[battery.values(triples) for triples in pair] for pair in sets]
    truth = np.repeat([1, 0], [len(part) for part in values[0]])
    classifiers = {
        "logistic regression": make_pipeline(QuantileTransformer(random_state=0), LogisticRegression(max_iter=1000)),
        "random forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=0, n_jobs=1),
        **{
            f"gradient boosting, seed {seed}": HistGradientBoostingClassifier(
                max_iter=200, max_features=0.5, early_stopping=False, random_state=seed
            )
            for seed in (1, 2, 3)
        },
    }
    reached = {}
    for name, classifier in classifiers.items():
        classifier.fit(np.vstack(values[0]), truth)
        valid, test = ([classifier.predict_proba(part)[:, 1] for part in pair] for pair in values[1:])
        cut = fit_cut(*valid)
        reached[name] = float((cut.predict(test[0]).mean() + (~cut.predict(test[1])).mean()) / 2)
    return reached


def measure(group: SuiteGroup, method: str, graph: KnowledgeGraph) -> dict[str, Any]:
    """Return the figures of one graph and pattern with one method's negatives."""
    if method != "twins":
        return measured(build(group.recipe([method], {}), graph), method)
    try:
        benchmark = build(group.recipe(["nm"], {}, ("all",)).changed(**TWINS.get(group.name, {})), graph)
    except InputError as error:
        return {"error": error.message}
    figures = measured(benchmark, "nm")
    if "error" in figures:
        return figures
    figures |= {"notes": benchmark.notes, "others": other_classifiers(benchmark)}
    for system in ("contrast", "oracle"):
        metrics = evaluate(benchmark, system, ranking=(), diagnosis=False).metrics
        figures[system] = {key: metrics[key] for key in ("balanced_accuracy", "twin_accuracy")}
    return figures


def main(out: Path, methods: list[str]) -> None:
    """Measure what is not there yet, and print all of it."""
    out.mkdir(parents=True, exist_ok=True)
    graphs: dict[str, KnowledgeGraph] = {}
    for method in methods or ["twins", "nm", "pa", "qg", "rb"]:
        for group in groups():
            if method not in (*group.methods, "nm", "twins"):
                continue
            file = out / f"{group.name}-{method}.json"
            if not file.exists():
                if group.kg not in graphs:
                    graphs[group.kg] = load_graph(group.kg)
                figures = measure(group, method, graphs[group.kg])
                with atomic_write(file) as stream:
                    stream.write(json.dumps(figures, indent=1) + "\n")
            figures = json.loads(file.read_text(encoding="utf-8"))
            if "error" in figures:
                print(group.name, method, figures["error"], flush=True)
                continue
            name, single = figures["single"]
            shares = {"learned": figures["learned"], "skeleton": figures["skeleton"], name: single}
            print(group.name, method, *(f"{key} {100 * share:.1f}" for key, share in shares.items()), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
