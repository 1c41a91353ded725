"""Results by the number of steps in which test conclusions follow."""

import numpy as np
import pytest

from loginfer.benchmark import build
from loginfer.benchmark.recipe import Recipe
from loginfer.evaluation import evaluate
from loginfer.evaluation.breakdown import breakdown
from loginfer.evaluation.predictions import LabelledScores, Predictions
from loginfer.evaluation.thresholds import Thresholds
from loginfer.kg import KnowledgeGraph


def benchmark(depth):
    graph = KnowledgeGraph.from_names([(f"n{i}", "R", f"n{i + 1}") for i in range(60)])
    rules = ("(x,R,y), (y,R,z) -> (x,R,z)",)
    return build(Recipe("chain", rules=rules, depth=depth, k2=150, negatives=("pa",)), graph)


def test_the_oracle_finds_conclusions_of_every_depth():
    found = evaluate(benchmark(3), "oracle", ranking=()).measures.breakdown["depths"]
    assert list(found) == ["1", "2", "3"]
    assert [part["recall"] for part in found.values()] == [1.0, 1.0, 1.0]
    assert [part["fp"] for part in found.values()] == [0, 0, 0]


def test_recall_of_a_depth_is_that_of_its_positives():
    made = benchmark(3)
    rng = np.random.default_rng(0)
    splits = {
        split: LabelledScores(
            rng.random(len(made.positives[split])), rng.random(len(made.negatives["pa"].splits[split]))
        )
        for split in ("valid", "test")
    }
    predictions = Predictions("pa", splits["valid"], splits["test"])
    thresholds = Thresholds.fixed(0.4)
    told = breakdown(made, predictions, thresholds)["depths"]
    predicted = thresholds.predict(made.positives.test, splits["test"].positive)
    wrong = thresholds.predict(made.negatives["pa"].splits.test, splits["test"].negative)
    depth = {tuple(t): d for t, d in zip(made.provenance.triples.tolist(), made.provenance.depth, strict=True)}
    of = np.array([depth[tuple(t)] for t in made.positives.test.tolist()])
    for name, part in told.items():
        own = predicted[of == int(name)]
        assert part["tp"] == own.sum()
        assert part["tp"] + part["fn"] == len(own)
        assert part["recall"] == pytest.approx(own.mean())
        assert part["fp"] == wrong.sum()


def test_a_benchmark_of_one_step_has_no_depths():
    assert "depths" not in evaluate(benchmark(1), "oracle", ranking=()).measures.breakdown


def test_a_card_of_the_report_tells_the_depths():
    from loginfer.report.pages.benchmarks import _depth_facts

    made = benchmark(3)
    counts = np.bincount(made.provenance.depth)[1:].tolist()
    text = ", ".join(f"{count} in {step}" for step, count in enumerate(counts, 1))
    assert _depth_facts(made) == [("conclusions by number of steps", text)]
    assert _depth_facts(benchmark(1)) == []
