"""A made-up embedding model from outside the package, found and trained through the same door as built-in ones."""

import importlib.util
from dataclasses import replace

import numpy as np
from tests.support.embedding_models import circle
from tests.support.large_training import learned

from loginfer.systems import configure, find_system
from loginfer.systems.embedding.base import DOT, ModelFunctions
from loginfer.systems.embedding.kernels import training_kernels
from loginfer.systems.interface import Unwatched

NAME = "tests.support.own_embedding:TanhMult"


def made(**settings):
    return configure(find_system(NAME).load(), {"dimension": "16", "epochs": "60", "batch": "32", **settings})


def test_a_model_from_outside_learns_and_scores_by_its_formula():
    known, watch = circle(), Unwatched()
    scorer = made(learning_rate="0.05").fit(known, watch)
    assert max(row["valid_accuracy"] for row in watch.curve) > 0.8
    entities, relations = scorer.arrays()["entities"], scorer.arrays()["relations"]
    s, r, o = known.positives.valid.T
    expected = (entities[s] * np.tanh(relations[r]) * entities[o]).sum(axis=1)
    np.testing.assert_allclose(scorer.score(known.positives.valid), expected, rtol=1e-4, atol=1e-4)
    everybody = np.arange(len(entities), dtype=np.int32)
    ends = scorer.score_candidates(known.positives.valid, "object", everybody)
    assert np.array_equal(ends[np.arange(len(o)), o], scorer.score(known.positives.valid))


def test_a_model_from_outside_can_have_workers_and_files():
    system = made(epochs="3")
    assert learned(replace(system, workers=2, storage="mapped", partitions=2), circle()) == learned(
        replace(system, partitions=2), circle()
    )


def test_functions_that_have_changed_are_compiled_anew(tmp_path):
    def derived_by(line):
        path = tmp_path / "changing.py"
        path.write_text(f"FACTOR = 2\n\n\ndef derive(parameters, derived):\n    {line}\n")
        spec = importlib.util.spec_from_file_location("changing", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        own = find_system(NAME).load()().functions
        functions = ModelFunctions(own.make_query, own.backward_query, *DOT, derive=module.derive)
        found = np.zeros((1, 1), dtype=np.float32)
        training_kernels(functions).derive_all(np.full((1, 1), 3, dtype=np.float32), found)
        return float(found[0, 0])

    assert derived_by("derived[0] = FACTOR * parameters[0]") == 6
    assert derived_by("derived[0] = FACTOR + parameters[0]") == 5
    assert derived_by("derived[0] = FACTOR * parameters[0] # again") == 6
