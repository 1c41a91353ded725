"""A method for negatives that is registered from outside the package is one like any other."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.support.faults import random_graph

from loginfer.benchmark import (
    METHODS,
    NegativeMethod,
    Recipe,
    audit,
    build,
    explain_triple,
    load_benchmark,
    register_negatives,
    write_benchmark,
)
from loginfer.benchmark.negatives import SOURCES, SplitNegatives, assemble, draw_in_turn, origins_from
from loginfer.errors import InputError
from loginfer.evaluation import evaluate

RULE = "(x,helps,y), (y,knows,z) -> (x,likes,z)"


def turned_round(context):
    """Draw positives the other way round."""

    def draw_split(split, taken):
        turned = context.positives[split][:, ::-1]
        fine = context.truth.negative(turned) & ~taken.contains(turned)
        triples = np.unique(turned[fine], axis=0)
        return SplitNegatives(triples, origins_from("turned", len(triples)), "all that are false")

    return assemble(context, "turn", draw_in_turn(context, draw_split))


def was_turned(material, split, triples, origins):
    """Return which triples are no positives of their split when they are turned round."""
    known = {tuple(triple) for triple in material.benchmark.positives[split].tolist()}
    return np.array([(o, r, s) not in known for s, r, o in triples.tolist()]), "are no positives turned round"


@pytest.fixture
def method():
    """Register the method, and forget it afterwards."""
    sources = list(SOURCES)
    yield register_negatives(
        NegativeMethod(
            name="turn",
            title="turned round",
            draw=turned_round,
            sources=("turned",),
            conditions={"turned": was_turned},
            protocols=("sound",),
        )
    )
    del METHODS["turn"]
    SOURCES[:] = sources


def test_it_builds_is_audited_and_evaluates_like_a_built_in_one(method, tmp_path):
    made = build(Recipe("random", rules=(RULE,), k2=60, negatives=("pa", "turn")), random_graph())
    assert set(made.negatives) == {"pa", "turn"}
    assert len(made.negatives["turn"].splits.test) > 3
    write_benchmark(made, tmp_path / "made")
    assert "turn (turned round)" in (tmp_path / "made" / "README.md").read_text()
    assert audit(tmp_path / "made").ok
    loaded = load_benchmark(tmp_path / "made")
    assert np.array_equal(
        loaded.negatives["turn"].origins["test"].source, made.negatives["turn"].origins["test"].source
    )
    evaluate(loaded, "simpbl", negatives="turn", out=tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert set(metrics["breakdown"]["negatives"]) == {"turned"}
    triple = made.negatives["turn"].splits.test[0].tolist()
    said = ["".join(map(str, line.parts)) for line in explain_triple(loaded, triple).lines()]
    assert "negative by turn for test: turned" in said


def test_its_condition_is_part_of_the_audit(method, tmp_path):
    made = build(Recipe("random", rules=(RULE,), k2=60, negatives=("turn",)), random_graph())
    write_benchmark(made, tmp_path / "made")

    def never(material, split, triples, origins):
        return np.ones(len(triples), dtype=bool), "never were positives"

    METHODS["turn"] = replace(method, conditions={"turned": never})
    assert any("of `turn` never were positives" in finding.message for finding in audit(tmp_path / "made").findings)


def test_a_recipe_knows_under_which_protocols_it_draws(method):
    with pytest.raises(InputError, match="turned round are for the protocol `sound`"):
        Recipe("random", rules=(RULE,), negatives=("turn",), protocol="paper")


def test_a_name_is_given_once_and_a_source_needs_a_condition(method):
    with pytest.raises(ValueError, match="already"):
        register_negatives(method)
    with pytest.raises(ValueError, match="no condition"):
        register_negatives(NegativeMethod(name="other", title="other", draw=turned_round, sources=("elsewhere",)))
    assert "other" not in METHODS


def test_methods_can_be_listed_without_numpy():
    code = (
        "import sys; from loginfer.benchmark import METHODS; assert 'nm' in METHODS; assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
