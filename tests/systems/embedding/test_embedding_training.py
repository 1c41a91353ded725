"""How embedding systems learn: the same twice, after a kill, with what there is, and from which epoch."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.embedding_models import MODELS, NOTHING, Cut, benchmark, circle
from tests.support.large_training import typed
from tests.support.made_up_benchmarks import family

from loginfer.benchmark.benchmark import NegativeSet, Splits
from loginfer.errors import InputError, LogInferError, UnknownNameError
from loginfer.evaluation.ranking import rank
from loginfer.systems import configure, find_system, training_view
from loginfer.systems.embedding import training
from loginfer.systems.embedding.distmult import DistMult
from loginfer.systems.embedding.rotate import RotatE
from loginfer.systems.embedding.steps import Learner
from loginfer.systems.embedding.transe import TransE
from loginfer.systems.fitting import Validation, best_accuracy
from loginfer.systems.interface import Unwatched, WatchedSystem

SMALL = {"dimension": 16, "epochs": 6, "batch": 32}


def same(a, b):
    return all(np.array_equal(a.arrays()[name], array) for name, array in b.arrays().items())


# -- what is learned -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RotatE", "ComplEx", "BoxE", "TransE"])
@pytest.mark.parametrize("mode", ["explicit", "random", "both"])
def test_inversions_on_a_circle_are_learned(name, mode):
    known = circle(200)
    system = MODELS[name](
        dimension=32, epochs=60, batch=64, learning_rate=0.05, optimiser="adam", explicit_weight=1.0, mode=mode
    )
    watch = Unwatched()
    system.fit(known, watch)
    assert watch.curve[-1]["loss"] < watch.curve[0]["loss"] / 2
    assert max(row["valid_accuracy"] for row in watch.curve) > (0.8 if mode == "random" else 0.9)


def test_the_learning_curve_has_a_row_for_each_epoch():
    watch = Unwatched()
    TransE(**SMALL, learning_rate=0.06).fit(circle(), watch)
    assert [row["epoch"] for row in watch.curve] == [1, 2, 3, 4, 5, 6]
    rates = [row["learning_rate"] for row in watch.curve]
    assert rates == pytest.approx([0.06, 0.05, 0.04, 0.03, 0.02, 0.01])
    assert all({"loss", "valid_accuracy"} <= set(row) for row in watch.curve)


@pytest.mark.parametrize("name", MODELS)
def test_type_triples_are_learned_from(name):
    known = training_view(family(), "pa")
    scorer = MODELS[name](dimension=8, epochs=3).fit(known)
    assert np.isfinite(scorer.score(known.positives.train)).all()


def test_with_a_single_type_no_negative_is_the_positive_itself():
    """A triple that is its own negative costs at least 2 log 2, however long it is learned from."""
    known = benchmark(np.array([[0, 0, 2], [0, 1, 1]], np.int32), entities=3, relations=2, types=[2])
    watch = Unwatched()
    system = DistMult(dimension=16, epochs=300, mode="random", learning_rate=0.1, regularisation=0, spread=0.5)
    system.fit(known, watch)
    assert watch.curve[-1]["loss"] < 0.3


def test_types_are_only_corrupted_by_types():
    """With two types and all else settled, the other type is every random object's stand-in."""
    positives = [[i, 0, 18 + i % 2] for i in range(18)]
    known = benchmark(np.array(positives, np.int32), entities=20, relations=1, types=[18, 19])
    system = DistMult(dimension=8, epochs=200, mode="random", learning_rate=0.05, regularisation=0)
    scorer = system.fit(known)
    scores = scorer.score_candidates(known.positives.train, "object", np.array([18, 19], np.int32))
    assert np.array_equal(scores.argmax(axis=1) + 18, known.positives.train[:, 2])


# -- the same bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_two_runs_give_the_same_bytes_and_another_seed_gives_others(name):
    known, system = circle(), MODELS[name](**SMALL)
    first = system.fit(known)
    assert same(first, system.fit(known))
    assert not same(first, replace(system, seed=1).fit(known))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("keep", ["best", "last"])
def test_a_run_that_was_cut_off_and_resumed_gives_the_same_bytes(name, keep):
    known, system = circle(), MODELS[name](**SMALL, keep=keep)
    assert isinstance(system, WatchedSystem)
    whole = Unwatched()
    expected = system.fit(known, whole)
    curve, checkpoint = [], None
    for pause in (1, 3, 1):
        watch = Cut(checkpoint, stop_after=pause)
        with pytest.raises(Cut.KilledError):
            system.fit(known, watch)
        curve, checkpoint = curve + watch.curve, watch.last
    watch = Cut(checkpoint)
    assert same(system.fit(known, watch), expected)
    assert curve + watch.curve == whole.curve
    assert same(system.fit(known, Cut(watch.last)), expected)  # nothing was left to do


def test_facts_of_a_checkpoint_are_json():
    import json

    watch = Cut()
    TransE(**SMALL).fit(circle(), watch)
    assert json.loads(json.dumps(watch.last.facts)) == watch.last.facts
    watch = Cut()
    TransE(**SMALL, mode="random").fit(benchmark(circle().graph.triples, entities=60, relations=2), watch)
    assert json.loads(json.dumps(watch.last.facts, allow_nan=False)) == watch.last.facts


@pytest.mark.parametrize("workers", [2, 3])
def test_several_workers_learn_as_well(workers):
    known = circle(200)
    watch = Unwatched()
    RotatE(dimension=32, epochs=60, batch=16, learning_rate=0.05, workers=workers).fit(known, watch)
    assert max(row["valid_accuracy"] for row in watch.curve) > 0.9


# -- the choice of the epoch ---------------------------------------------------------------------


def test_the_weights_of_the_best_epoch_are_kept_and_the_last_of_equals():
    known, system = circle(200), TransE(dimension=8, epochs=12, batch=64, learning_rate=0.3)
    watch = Cut()
    chosen = system.fit(known, watch)
    figures = [row["valid_accuracy"] for row in watch.curve]
    best = max(i + 1 for i, figure in enumerate(figures) if figure == max(figures))
    assert watch.last.facts["best_epoch"] == best
    stopped = Cut(stop_after=best)
    with pytest.raises(Cut.KilledError):
        system.fit(known, stopped)
    assert np.array_equal(chosen.arrays()["entities"], stopped.last.arrays["entities"])
    last = replace(system, keep="last").fit(known)
    assert np.array_equal(last.arrays()["entities"], watch.last.arrays["entities"])


def test_training_stops_when_valid_has_not_got_better_for_a_while():
    known, watch = circle(), Unwatched()
    TransE(**{**SMALL, "epochs": 200}, patience=3, learning_rate=0.2).fit(known, watch)
    figures = [row["valid_accuracy"] for row in watch.curve]
    assert len(figures) < 200
    assert max(figures[-3:]) <= max(figures[:-3])
    first_best = figures.index(max(figures))
    assert len(figures) == first_best + 4


def test_without_valid_the_last_epoch_is_taken():
    whole = circle()
    known = benchmark(whole.graph.triples, whole.negatives["pa"].splits.train, entities=60, relations=2)
    watch = Cut()
    scorer = TransE(**SMALL).fit(known, watch)
    assert all("valid_accuracy" not in row for row in watch.curve)
    assert np.array_equal(scorer.arrays()["entities"], watch.last.arrays["entities"])


def test_without_negatives_epochs_are_compared_by_the_ranks_of_valid():
    whole, watch = circle(200), Unwatched()
    known = benchmark(whole.graph.triples, valid=whole.positives.valid, entities=200, relations=2)
    scorer = RotatE(dimension=32, epochs=60, batch=64, learning_rate=0.05).fit(known, watch)
    figures = [row["valid_mrr"] for row in watch.curve]
    assert max(figures) > 0.8
    everything = {tuple(triple) for triple in np.vstack([known.graph.triples, known.positives.valid]).tolist()}
    reciprocal = []
    for s, r, o in known.positives.valid.tolist():
        for side, own in ((0, s), (2, o)):
            triples = [(e, r, o) if side == 0 else (s, r, e) for e in known.graph.consts.tolist()]
            scores = scorer.score(np.array(triples, np.int32))
            mine = scores[known.graph.consts.tolist().index(own)]
            rivals = [score for score, triple in zip(scores, triples, strict=True) if triple not in everything]
            above = sum(score > mine for score in rivals) + sum(score == mine for score in rivals) / 2
            reciprocal.append(1 / (1 + above))
    assert max(figures) == pytest.approx(np.mean(reciprocal), abs=1e-3)


def test_types_are_ranked_among_types_and_constants_among_constants():
    known = typed()
    of_types = known.graph.triples[known.graph.triples[:, 1] == 0]
    valid = np.vstack([known.positives.valid, of_types[:5]])
    train = known.graph.triples[~np.isin(known.graph.keys.pack(known.graph.triples), known.graph.keys.pack(valid))]
    # N_train without N_valid is no reason to choose by nothing.
    pa = NegativeSet("pa", Splits(known.negatives["pa"].splits.train, NOTHING, NOTHING))
    splits = Splits(train, valid, NOTHING)
    known = replace(known, graph=known.graph.with_triples(train), positives=splits, negatives={"pa": pa})
    scorer = DistMult(dimension=4, epochs=2).fit(known)
    validation = Validation.of(known, 0)
    asked = replace(known, positives=Splits(train, NOTHING, valid), negatives={})
    reciprocal = [
        1 / np.array(x.ranks()) for x in rank(scorer, asked, ranking=("filtered",)) if x.position != "relation"
    ]
    assert validation.judge(scorer) == pytest.approx(np.mean(np.concatenate(reciprocal)), abs=1e-6)
    entities, compact = validation.compact()
    weights = scorer.arrays()
    few = scorer.of(scorer.system, weights["entities"][entities], weights["relations"])
    assert compact.judge(few) == validation.judge(scorer)


@given(
    positives=st.lists(st.integers(0, 5), min_size=1, max_size=8),
    negatives=st.lists(st.integers(0, 5), min_size=1, max_size=8),
)
def test_the_best_accuracy_is_that_of_the_best_threshold(positives, negatives):
    accuracies = [
        (sum(x > cut for x in positives) + sum(x <= cut for x in negatives)) / len(positives + negatives)
        for cut in np.arange(-1, 7) + 0.5
    ]
    found = best_accuracy(np.array(positives, float), np.array(negatives, float))
    assert found == pytest.approx(max(accuracies))


# -- what there is to complain about ---------------------------------------------------------------


def test_without_negatives_only_the_mode_that_needs_them_is_refused():
    known = benchmark(circle().graph.triples, entities=60, relations=2)
    with pytest.raises(InputError, match="no negative training triples") as error:
        TransE(**SMALL, mode="explicit").fit(known)
    assert "--mode random" in error.value.hint
    assert same(TransE(**SMALL, mode="both").fit(known), TransE(**SMALL, mode="random").fit(known))


def test_more_candidates_than_fit_into_memory_are_refused_before_anything_is_made(monkeypatch):
    monkeypatch.setattr(training, "MEMORY", 40_000)
    known = circle()
    TransE(dimension=8, batch=10, negatives=10, epochs=1).fit(known)
    with pytest.raises(InputError, match="a step with 60 candidates needs more than") as error:
        TransE(dimension=8, batch=200, loss="1vsall").fit(known)
    assert "--set negatives" in error.value.hint


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(InputError, match="no training triples"):
        TransE().fit(benchmark(NOTHING, entities=1, relations=1))


@pytest.mark.parametrize("name", ["DistMult", "ComplEx"])
def test_a_loss_that_is_not_a_number_stops_the_run_and_leaves_nothing(name):
    watch = Cut()
    with pytest.raises(LogInferError, match=r"the loss became .* training ran away") as error:
        MODELS[name](**SMALL, learning_rate=1e30).fit(circle(), watch)
    assert "--set learning_rate=1e+29" in error.value.hint
    assert watch.last is None


def test_weights_that_are_not_finite_after_the_last_step_are_noticed(monkeypatch):
    learn = Learner.learn

    def run_away(self, *step):
        loss = learn(self, *step)
        self._weights.entities[0, 0] = np.inf
        return loss

    monkeypatch.setattr(Learner, "learn", run_away)
    watch = Cut()
    with pytest.raises(LogInferError, match="no longer a finite number in epoch 1"):
        DistMult(**{**SMALL, "batch": 1000}, mode="explicit").fit(benchmark_of_one(), watch)
    assert watch.last is None


def benchmark_of_one():
    return benchmark(np.array([[1, 0, 2]], np.int32), np.array([[2, 0, 1]], np.int32), entities=3, relations=1)


def test_settings_out_of_bounds_are_refused():
    with pytest.raises(InputError, match="`dimension` must be at least 1"):
        TransE(dimension=0)
    with pytest.raises(UnknownNameError, match="value of `mode`"):
        configure(find_system("rotate").load(), {"mode": "exlicit"})
    with pytest.raises(UnknownNameError, match="margn"):
        configure(find_system("boxe").load(), {"margn": "3"})


@pytest.mark.parametrize("name", MODELS)
def test_systems_are_found_by_name_and_configured_from_text(name):
    system = configure(find_system(name).load(), {"dimension": "12", "mode": "explicit", "epochs": "2"})
    assert isinstance(system, MODELS[name])
    assert (system.dimension, system.mode, system.epochs) == (12, "explicit", 2)
