"""The sampler of known negatives: which ones a positive gets, also in PyKEEN's own loop and pipeline."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pykeen.models import DistMult
from pykeen.pipeline import pipeline
from pykeen.sampling import negative_sampler_resolver
from pykeen.training import SLCWATrainingLoop
from pykeen.triples import TriplesFactory

from loginfer.errors import InputError, UnknownNameError
from loginfer.pykeen import ExplicitNegativeSampler

# PyKEEN's own loop hands on arguments that its own code calls deprecated, or torch finds useless.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Training instances are always shuffled:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning"),
]

ENTITIES, RELATIONS = 6, 3

triples = st.lists(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)),
    min_size=1, max_size=25,
)  # fmt: skip


def sampler(positives, negatives, **options):
    sizes = {"num_entities": ENTITIES, "num_relations": RELATIONS}
    return ExplicitNegativeSampler(mapped_triples=torch.tensor(positives), negatives=negatives, **(sizes | options))


def allowed(positive, negatives, match):
    """The known negatives that a positive may get, by the definition."""
    h, r, t = positive
    if match == "any":
        return set(negatives)
    of_relation = {known for known in negatives if known[1] == r}
    shared = {known for known in of_relation if known[0] == h or known[2] == t}
    return (shared or of_relation) if match == "end" else of_relation


def rows(tensor):
    return [tuple(row) for row in tensor.reshape(-1, 3).tolist()]


@settings(max_examples=60)
@given(triples, triples, st.sampled_from(["end", "relation", "any"]))
def test_a_positive_gets_each_of_the_negatives_that_match_it_and_no_others(positives, negatives, match):
    torch.manual_seed(0)
    made = sampler(np.array(positives), np.array(negatives), num_negs_per_pos=200, match=match)
    batch = made.corrupt_batch(torch.tensor(positives))
    assert batch.shape == (len(positives), 200, 3)
    for positive, drawn in zip(positives, batch, strict=True):
        wanted = allowed(positive, negatives, match)
        if wanted:
            # 200 draws: one of at most 25 is missed with a chance of 1 in 3,000
            assert set(rows(drawn)) <= wanted
            assert len(wanted) > 6 or set(rows(drawn)) == wanted
        else:  # corrupted: one end differs
            assert all(r == positive[1] for _, r, _ in rows(drawn))
            assert all((h == positive[0]) != (t == positive[2]) for h, _, t in rows(drawn))


@settings(max_examples=30)
@given(triples, triples)
def test_a_positive_without_negatives_of_its_relation_may_get_any(positives, negatives):
    made = sampler(positives, negatives, num_negs_per_pos=5, match="relation", fallback="any")
    for positive, drawn in zip(positives, made.corrupt_batch(torch.tensor(positives)), strict=True):
        assert set(rows(drawn)) <= (allowed(positive, negatives, "relation") or set(negatives))


def test_each_matching_negative_is_equally_likely():
    torch.manual_seed(1)
    negatives = [(0, 0, 1), (0, 0, 2), (3, 0, 5), (4, 0, 4)]
    made = sampler([(0, 0, 5)], negatives, num_negs_per_pos=30_000, match="end")
    drawn, counts = made.corrupt_batch(torch.tensor([(0, 0, 5)])).reshape(-1, 3).unique(dim=0, return_counts=True)
    assert rows(drawn) == [(0, 0, 1), (0, 0, 2), (3, 0, 5)]
    assert (counts / 30_000 - 1 / 3).abs().max() < 0.02


def test_without_a_match_every_negative_is_dealt_out_once_before_any_comes_again():
    negatives = [(i % 6, i % 3, 5 - i % 6) for i in range(6)]
    made = sampler([(0, 0, 1)], negatives, num_negs_per_pos=2, match="any")
    for _ in range(4):
        batches = [made.corrupt_batch(torch.zeros((1, 3), dtype=torch.long)) for _ in range(3)]
        assert sorted(rows(torch.cat(batches))) == sorted(negatives)
    made.corrupt_batch(torch.zeros((1, 3), dtype=torch.long))
    made.shuffle()
    assert sorted(rows(made.corrupt_batch(torch.zeros((3, 3), dtype=torch.long)))) == sorted(negatives)


def test_known_negatives_come_first_and_random_ones_after_them():
    made = sampler([(0, 0, 1), (2, 1, 3)], [(5, 0, 5), (5, 1, 5)], num_negs_per_pos=4, num_explicit=1)
    batch = made.corrupt_batch(torch.tensor([(0, 0, 1), (2, 1, 3)]))
    assert rows(batch[:, 0]) == [(5, 0, 5), (5, 1, 5)]
    assert all((h == 0) != (t == 1) for h, _, t in rows(batch[0, 1:]))


def test_a_batch_may_have_any_number_of_dimensions():
    made = sampler([(0, 0, 1)], [(5, 0, 5)], num_negs_per_pos=2)
    assert made.corrupt_batch(torch.zeros((4, 3, 3), dtype=torch.long)).shape == (4, 3, 2, 3)


def test_the_same_seed_draws_the_same_negatives():
    positives = [(i % 6, i % 3, (i + 1) % 6) for i in range(40)]
    negatives = [(i % 6, i % 3, (i + 2) % 6) for i in range(40)]
    made = sampler(positives, negatives, num_negs_per_pos=7, num_explicit=3)
    torch.manual_seed(5)
    one = made.corrupt_batch(torch.tensor(positives))
    torch.manual_seed(5)
    assert torch.equal(made.corrupt_batch(torch.tensor(positives)), one)
    assert not torch.equal(made.corrupt_batch(torch.tensor(positives)), one)


# -- forms of known negatives ------------------------------------------------------------------------


def toy(inverse=False):
    rows = np.array([["ann", "likes", "bob"], ["bob", "likes", "cid"], ["cid", "knows", "ann"]])
    return TriplesFactory.from_labeled_triples(rows, create_inverse_triples=inverse)


def test_negatives_are_taken_by_name_by_id_and_as_a_factory_with_other_ids():
    factory = toy()
    names = [["bob", "likes", "ann"], ["ann", "knows", "bob"]]
    ids = [(factory.entity_to_id[h], factory.relation_to_id[r], factory.entity_to_id[t]) for h, r, t in names]
    other = TriplesFactory.from_labeled_triples(
        np.array(names), entity_to_id={"bob": 0, "ann": 1}, relation_to_id={"likes": 0, "knows": 1}
    )
    options = {"mapped_triples": factory.mapped_triples, "triples_factory": factory, "match": "any"}
    for given_as in (names, np.array(names), ids, np.array(ids), torch.tensor(ids), other):
        made = ExplicitNegativeSampler(negatives=given_as, num_negs_per_pos=40, **options)
        assert set(rows(made.corrupt_batch(factory.mapped_triples))) == set(ids)


def test_with_inverse_triples_each_negative_has_its_inverse():
    factory = toy(inverse=True)
    instances = factory._add_inverse_triples_if_necessary(factory.mapped_triples)
    made = ExplicitNegativeSampler(
        mapped_triples=instances, num_entities=3, num_relations=4, match="any", num_negs_per_pos=50,
        negatives=[["bob", "likes", "ann"]], triples_factory=factory,
    )  # fmt: skip
    bob, likes, ann = (factory.entity_to_id["bob"], factory.relation_to_id["likes"], factory.entity_to_id["ann"])
    assert set(rows(made.corrupt_batch(instances))) == {(bob, 2 * likes, ann), (ann, 2 * likes + 1, bob)}


def test_training_with_inverse_triples_needs_the_factory_for_what_the_ids_mean():
    factory = toy(inverse=True)
    model = DistMult(triples_factory=factory, embedding_dim=4, random_seed=0)
    loop = SLCWATrainingLoop(
        model=model, triples_factory=factory, negative_sampler=ExplicitNegativeSampler,
        negative_sampler_kwargs={"negatives": [(0, 1, 1)]},
    )  # fmt: skip
    with pytest.raises(InputError, match="inverse triples") as caught:
        loop.train(factory, num_epochs=1, batch_size=2, use_tqdm=False, pin_memory=False)
    assert caught.value.hint == "triples_factory=dataset.training"
    # Two relations that are each other's inverse for some triples only are relations like any others.
    sampler([(0, 0, 1), (2, 0, 3), (1, 1, 0), (2, 1, 3)], [(0, 0, 2)], num_relations=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"negatives": [[0, 1]]}, "shape"),
        ({"negatives": [["ann", "likes", "bob"]]}, "no factory that knows the names"),
        ({"negatives": [["ann", "hates", "bob"]], "triples_factory": toy()}, "relation `hates`"),
        ({"negatives": [[0, 0, 17]]}, r"the first: \(0, 0, 17\)"),
        ({"negatives": np.empty((0, 3), dtype=int)}, "no negatives are known"),
        ({"negatives": [[0, 0, 1]], "num_explicit": 2}, "2 of 1"),
        ({"negatives": [[0, 2, 1]], "fallback": "refuse"}, "no negative is known for 2 positives"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_gives_one_clear_message(options, message):
    with pytest.raises(InputError, match=message):
        sampler([(0, 0, 1), (1, 1, 2)][:2], **options)


@pytest.mark.parametrize("option", ["match", "fallback"])
def test_unknown_options_come_with_the_known_ones(option):
    with pytest.raises(UnknownNameError, match="any"):
        sampler([(0, 0, 1)], [(0, 0, 2)], **{option: "anything"})


# -- in PyKEEN ---------------------------------------------------------------------------------------


def test_it_can_be_chosen_by_name():
    assert negative_sampler_resolver.lookup("explicit") is ExplicitNegativeSampler


def separable(count=40, seed=0):
    """Positives (i, 0, i), and known negatives among the pairs (i, j) with i ≠ j, each as frequent."""
    draw = np.random.default_rng(seed)
    ends = np.arange(count)
    wrong = np.stack([ends, 0 * ends, (ends + draw.integers(1, count, count)) % count], axis=1)
    return np.stack([ends, 0 * ends, ends], axis=1), wrong


def test_a_training_loop_of_pykeens_learns_what_is_known_to_be_false():
    right, wrong = separable()
    names = {f"e{i}": i for i in range(40)}
    factory = TriplesFactory(torch.tensor(right), entity_to_id=names, relation_to_id={"r": 0})
    model = DistMult(triples_factory=factory, embedding_dim=16, loss="softplus", random_seed=0)
    loop = SLCWATrainingLoop(
        model=model, triples_factory=factory, optimizer="adam", optimizer_kwargs={"lr": 0.1},
        negative_sampler=ExplicitNegativeSampler, negative_sampler_kwargs={"negatives": wrong},
    )  # fmt: skip
    loop.train(factory, num_epochs=15, batch_size=40, use_tqdm=False, pin_memory=False)
    with torch.no_grad():
        true, false = (model.predict_hrt(torch.tensor(chosen)) for chosen in (right, wrong))
    assert true.min() > false.max()


def test_a_pipeline_of_pykeens_takes_it_and_is_reproducible():
    right, wrong = separable()
    names = {f"e{i}": i for i in range(40)}
    factory = TriplesFactory(torch.tensor(right), entity_to_id=names, relation_to_id={"r": 0})

    def weights():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            made = pipeline(
                training=factory, testing=factory, model="TransE", model_kwargs={"embedding_dim": 8},
                training_loop="sLCWA", negative_sampler="explicit",
                negative_sampler_kwargs={"negatives": wrong, "num_negs_per_pos": 3, "num_explicit": 1},
                training_kwargs={"num_epochs": 2, "use_tqdm": False, "pin_memory": False},
                evaluation_kwargs={"use_tqdm": False}, random_seed=3, device="cpu",
            )  # fmt: skip
        return made.model.entity_representations[0](None).detach()

    assert torch.equal(weights(), weights())
