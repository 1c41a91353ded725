"""Systems, diagnosis and rule recovery on a benchmark whose rules have negations."""

from __future__ import annotations

import numpy as np
import pytest

from loginfer.benchmark import Recipe, build
from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError
from loginfer.evaluation import evaluate
from loginfer.evaluation.rule_recovering import rule_recovery
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    rng = np.random.default_rng(3)
    columns = [rng.integers(size, size=420) for size in (70, 9, 70)]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    graph = KnowledgeGraph.from_names([(f"e{s}", f"r{r}", f"e{o}") for s, r, o in rows])
    recipe = Recipe("random", ("nmhier",), k1=3, k2=40, negatives=("qg",), min_new=5)
    return build(recipe, graph)


def test_the_oracle_makes_no_mistake_and_no_sub_rule_explains_it(benchmark):
    found = evaluate(benchmark, "oracle", ranking=())
    assert found.metrics["accuracy"] == 1
    for rule in found.as_dict()["diagnosis"]["rules"]:
        assert rule["predicted"] == rule["conclusions"]
        assert all(known["predicted"] == 0 for known in rule["shortcuts"] if known["kind"] == "sub-rule")


@pytest.mark.parametrize("system", ["simpbl", "exact", "contrast", "rulen", "anyburl"])
def test_systems_without_negation_run_all_the_same(benchmark, system):
    settings = {"anyburl": {"steps": 2}}.get(system)
    found = evaluate(benchmark, system, settings=settings, ranking=())
    assert 0 <= found.metrics["accuracy"] <= 1
    rules = found.as_dict()["diagnosis"]["rules"]
    shown = [known["shortcut"] for rule in rules for known in rule["shortcuts"]]
    # What is left of a rule without its negation is the shortcut to look for.
    wanted = [str(known.rule).replace(f", {known.rule.negations[0]}", "") for known in benchmark.rules]
    assert set(wanted) <= set(shown)


def test_rules_with_a_negation_are_undecided_and_their_sub_rules_are_not(benchmark):
    shorter = [str(known.rule).replace(f", {known.rule.negations[0]}", "") for known in benchmark.rules]
    found = rule_recovery(benchmark.program, [parse_rule(text) for text in shorter], benchmark.graph, draws=2)
    assert [rule.status for rule in found.rules] == ["undecided"] * 3
    assert all(sub.entailed for rule in found.rules for sub in rule.subrules)
    assert found.figures.undecided == 3 + 3 * 2


def test_mined_rules_with_a_negation_are_refused_by_rule_recovery(benchmark):
    with pytest.raises(InputError, match="without negation"):
        rule_recovery(benchmark.program, list(benchmark.program), benchmark.graph)
