"""A trained model of PyKEEN, given as an object, in our evaluation; and our ranks beside PyKEEN's."""

import numpy as np
import pytest
import torch
from pykeen.evaluation import RankBasedEvaluator
from pykeen.models import ComplEx, ConvE, DistMult, InductiveNodePiece, TransE
from pykeen.triples import TriplesFactory
from tests.support.lubm_department import department
from tests.support.made_up_benchmarks import family

import loginfer.pykeen
from loginfer.errors import InputError
from loginfer.evaluation import evaluate, rank
from loginfer.evaluation.metrics import ranking_metrics
from loginfer.evaluation.predictions import predict
from loginfer.systems import configure, find_system, training_view

# PyKEEN's evaluator hands on what torch calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


def model_of(factory, kind=ComplEx, **settings):
    """Return a model with random weights: as good as any trained one to compare scores of."""
    return kind(triples_factory=factory, embedding_dim=8, random_seed=7, **settings)


def shuffled(benchmark, without=()):
    """Return a factory with the benchmark's names under other ids, but for some names."""
    draw = np.random.default_rng(1)
    maps = []
    for names in (benchmark.graph.entities, benchmark.graph.relations):
        kept = [name for name in names if name not in without]
        maps.append(dict(zip(kept, draw.permutation(len(kept)).tolist(), strict=True)))
    return TriplesFactory(torch.zeros((1, 3), dtype=torch.long), entity_to_id=maps[0], relation_to_id=maps[1])


def test_a_model_with_our_ids_scores_what_pykeen_scores():
    made = loginfer.pykeen.dataset(family())
    model = model_of(made.training)
    scorer = loginfer.pykeen.scorer(model, made.benchmark)
    triples = made.benchmark.positives.train
    theirs = model.predict_hrt(made.training.mapped_triples).detach().numpy()[:, 0]
    np.testing.assert_allclose(scorer.score(triples), theirs, rtol=1e-5, atol=1e-6)


def test_the_ids_of_a_factory_are_mapped_by_name():
    benchmark = family()
    factory = shuffled(benchmark)
    model = model_of(factory)
    scorer = loginfer.pykeen.scorer(model, benchmark, factory)
    triples = benchmark.positives.train
    names = np.array(benchmark.graph.names(triples))
    ids = torch.tensor(
        [(factory.entity_to_id[s], factory.relation_to_id[r], factory.entity_to_id[o]) for s, r, o in names]
    )
    theirs = model.predict_hrt(ids).detach().numpy()[:, 0]
    np.testing.assert_allclose(scorer.score(triples), theirs, rtol=1e-5, atol=1e-6)
    candidates = np.arange(len(benchmark.graph.entities), dtype=np.int32)
    matrix = scorer.score_candidates(triples, "object", candidates)
    assert np.array_equal(matrix[np.arange(len(triples)), triples[:, 2]], scorer.score(triples))


def test_names_that_the_model_does_not_know_are_told():
    benchmark = family()
    factory = shuffled(benchmark, without=("ada", "knows"))
    with pytest.raises(InputError, match="does not know 1 constants or types of Family & co: `ada`"):
        loginfer.pykeen.scorer(model_of(factory), benchmark, factory)
    factory = shuffled(benchmark, without=("knows",))
    with pytest.raises(InputError, match="does not know 1 relations of Family & co: `knows`"):
        loginfer.pykeen.scorer(model_of(factory), benchmark, factory)


def test_a_name_that_no_triple_has_may_be_missing():
    benchmark = family()
    factory = shuffled(benchmark, without=("supports",))  # the head of a rule without conclusions
    scorer = loginfer.pykeen.scorer(model_of(factory), benchmark, factory)
    assert np.isfinite(scorer.score(benchmark.positives.test)).all()
    unknown = benchmark.graph.relations.index("supports")
    with pytest.raises(InputError, match="does not know the relation `supports`"):
        scorer.score(np.array([[0, unknown, 1]], dtype=np.int32))


def test_what_does_not_fit_is_refused():
    benchmark = family()
    other = model_of(shuffled(benchmark, without=("ada",)))
    with pytest.raises(InputError, match="give the factory"):
        loginfer.pykeen.scorer(other, benchmark)
    with pytest.raises(InputError, match="not the one the model was trained with"):
        loginfer.pykeen.scorer(other, benchmark, shuffled(benchmark))
    with pytest.raises(InputError, match="is no model of PyKEEN"):
        loginfer.pykeen.scorer("TransE", benchmark)


def test_a_scorer_keeps_what_the_model_knew_when_it_was_made():
    made = loginfer.pykeen.dataset(family())
    model = model_of(made.training)
    model.train()
    scorer = loginfer.pykeen.scorer(model, made.benchmark)
    before = scorer.score(made.benchmark.positives.train)
    assert model.training  # it can be trained on
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(2)
    assert np.array_equal(scorer.score(made.benchmark.positives.train), before)


class Shifted(DistMult):
    """Somebody's own model, whose scores are more than an interaction of vectors."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.scale = torch.nn.Linear(1, 1)

    def score_hrt(self, hrt_batch, *, mode=None):
        return self.scale(super().score_hrt(hrt_batch, mode=mode))

    def score_t(self, hr_batch, **asked):
        return self.scale(super().score_t(hr_batch, **asked)[..., None])[..., 0]


def test_a_model_with_its_own_way_of_scoring_keeps_it():
    made = loginfer.pykeen.dataset(family())
    model = model_of(made.training, Shifted)
    scorer = loginfer.pykeen.scorer(model, made.benchmark)
    rows = made.training.mapped_triples
    theirs = model.predict_hrt(rows).detach().numpy()[:, 0]
    np.testing.assert_allclose(scorer.score(rows.numpy()), theirs, rtol=1e-5)
    np.testing.assert_allclose(
        scorer.score_candidates(rows.numpy(), "object", np.arange(made.num_entities, dtype=np.int32)),
        model.predict_t(rows[:, :2]).detach().numpy(), rtol=1e-5,
    )  # fmt: skip


def test_an_inductive_model_is_refused():
    made = loginfer.pykeen.dataset(family(), create_inverse_triples=True)
    model = model_of(made.training, InductiveNodePiece, inference_factory=made.training, num_tokens=1)
    with pytest.raises(InputError, match="InductiveNodePiece is inductive"):
        loginfer.pykeen.scorer(model, made.benchmark)


def test_a_trained_model_is_evaluated_like_any_system():
    benchmark = family()
    factory = shuffled(benchmark)
    model = model_of(factory, TransE)
    result = evaluate(benchmark, loginfer.pykeen.Trained(model, factory), negatives="pa")
    scorer = loginfer.pykeen.scorer(model, benchmark, factory)
    assert np.array_equal(result.outcome.predictions.test.positive, predict(scorer, benchmark, "pa").test.positive)
    assert result.ranking["filtered"]["c_mrr"] > 0
    assert result.as_dict()["diagnosis"]


def test_a_scorer_given_as_a_system_says_what_to_give_instead():
    made = loginfer.pykeen.dataset(family())
    model = model_of(made.training)
    for given in (model, loginfer.pykeen.scorer(model, made.benchmark)):
        with pytest.raises(InputError, match="is not a system") as caught:
            evaluate(made.benchmark, given, negatives="pa")
        assert "loginfer.pykeen.Trained(model)" in caught.value.hint


def assert_same_ranks(scorer, benchmark, model, made):
    """Compare our ranks with those of PyKEEN's evaluator, tie by tie and end by end."""
    # PyKEEN ranks against all entities, we against those of P_train, which are all of them here.
    assert len(benchmark.graph.consts) == made.num_entities
    theirs = RankBasedEvaluator().evaluate(
        model, made.testing.mapped_triples, batch_size=64, use_tqdm=False,
        additional_filter_triples=[made.training.mapped_triples, made.validation.mapped_triples],
    )  # fmt: skip
    ours = ranking_metrics(rank(scorer, benchmark, ranking=["filtered"]))
    for tie in ("optimistic", "realistic", "pessimistic"):
        for side, ending in (("head", "subject"), ("tail", "object")):
            assert ours["ties"][tie][f"mrr_{ending}"] == pytest.approx(
                theirs.get_metric(f"{side}.{tie}.mean_reciprocal_rank"), abs=1e-6
            )
            assert ours["ties"][tie][f"hits@10_{ending}"] == pytest.approx(
                theirs.get_metric(f"{side}.{tie}.hits_at_10"), abs=1e-6
            )


def test_ranks_are_those_of_pykeens_own_evaluator():
    benchmark = department()
    view = training_view(benchmark, "pa")
    settings = {"embedding_dim": 16, "epochs": 1, "batch_size": 512}
    scorer = configure(find_system("pykeen:DistMult").load(), settings).fit(view)
    made = loginfer.pykeen.dataset(benchmark)
    model = DistMult(triples_factory=made.training, embedding_dim=16, regularizer=None, random_seed=0)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in scorer.arrays().items()})
    assert_same_ranks(scorer, benchmark, model, made)


@pytest.mark.parametrize("kind", [ConvE, TransE])
def test_ranks_are_those_of_pykeens_own_evaluator_with_inverse_triples_too(kind):
    benchmark = department()
    made = loginfer.pykeen.dataset(benchmark, create_inverse_triples=True)
    model = model_of(made.training, kind)
    assert_same_ranks(loginfer.pykeen.scorer(model, benchmark), benchmark, model, made)
