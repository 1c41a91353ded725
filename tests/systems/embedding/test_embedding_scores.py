"""The scores of fitted embedding systems: PyKEEN's, the same however they are asked for, and kept."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.embedding_models import MODELS, circle

from loginfer.errors import InputError
from loginfer.systems.embedding.boxe import BoxE
from loginfer.systems.embedding.complex import ComplEx
from loginfer.systems.embedding.distmult import DistMult
from loginfer.systems.embedding.rotate import RotatE
from loginfer.systems.embedding.scorer import EmbeddingScorer
from loginfer.systems.embedding.transe import TransE
from loginfer.systems.interface import CandidateScorer, StoredScorer

ENTITIES, RELATIONS = 90, 5


def random_scorer(system, seed=0, scale=0.5):
    random = np.random.default_rng(seed)
    entities = random.normal(0, scale, (ENTITIES, system.entity_width)).astype(np.float32)
    relations = random.normal(0, scale, (RELATIONS, system.relation_width)).astype(np.float32)
    return EmbeddingScorer.of(system, entities, relations)


def random_triples(count, seed=1):
    random = np.random.default_rng(seed)
    columns = [random.integers(0, size, count) for size in (ENTITIES, RELATIONS, ENTITIES)]
    return np.stack(columns, 1).astype(np.int32)


# -- PyKEEN --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pykeen():
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("pykeen.nn.modules")


def pykeen_scores(pykeen, interaction, subjects, relations, objects):
    import torch

    def tensors(values):
        if isinstance(values, tuple):
            return tuple(torch.as_tensor(value) for value in values)
        return torch.as_tensor(values)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return interaction(tensors(subjects), tensors(relations), tensors(objects)).numpy()


def as_complex(rows):
    d = rows.shape[1] // 2
    return rows[:, :d] + 1j * rows[:, d:]


def ends(scorer, triples):
    entities, relations = scorer.arrays()["entities"], scorer.arrays()["relations"]
    return entities[triples[:, 0]], relations[triples[:, 1]], entities[triples[:, 2]]


@pytest.mark.parametrize("norm", [1, 2])
def test_transe_is_pykeens_plus_the_margin(pykeen, norm):
    scorer, triples = random_scorer(TransE(dimension=21, norm=norm, margin=5)), random_triples(200)
    theirs = pykeen_scores(pykeen, pykeen.TransEInteraction(p=norm), *ends(scorer, triples))
    np.testing.assert_allclose(scorer.score(triples), 5 + theirs, rtol=1e-5, atol=1e-5)


def test_rotate_with_the_euclidean_norm_is_pykeens_plus_the_margin(pykeen):
    scorer, triples = random_scorer(RotatE(dimension=21, norm=2, margin=5)), random_triples(200)
    s, angles, o = ends(scorer, triples)
    rotation = np.exp(1j * angles).astype(np.complex64)
    theirs = pykeen_scores(pykeen, pykeen.RotatEInteraction(), as_complex(s), rotation, as_complex(o))
    np.testing.assert_allclose(scorer.score(triples), 5 + theirs, rtol=1e-5, atol=1e-5)


def test_rotate_adds_up_moduli_by_default():
    scorer, triples = random_scorer(RotatE(dimension=21, margin=5)), random_triples(200)
    s, angles, o = ends(scorer, triples)
    away = np.abs(as_complex(s) * np.exp(1j * angles) - as_complex(o)).sum(axis=1)
    np.testing.assert_allclose(scorer.score(triples), 5 - away, rtol=1e-5, atol=1e-5)


def test_complex_is_pykeens(pykeen):
    scorer, triples = random_scorer(ComplEx(dimension=21)), random_triples(200)
    theirs = pykeen_scores(pykeen, pykeen.ComplExInteraction(), *map(as_complex, ends(scorer, triples)))
    np.testing.assert_allclose(scorer.score(triples), theirs, rtol=1e-5, atol=1e-5)


def test_distmult_is_pykeens(pykeen):
    scorer, triples = random_scorer(DistMult(dimension=21)), random_triples(200)
    theirs = pykeen_scores(pykeen, pykeen.DistMultInteraction(), *ends(scorer, triples))
    np.testing.assert_allclose(scorer.score(triples), theirs, rtol=1e-5, atol=1e-5)


def test_boxe_is_pykeens_plus_the_margin(pykeen):
    """PyKEEN's boxes have a shape whose geometric mean is 1, and a size: 1 plus the ELU of a parameter."""
    scorer, triples = random_scorer(BoxE(dimension=21, margin=5)), random_triples(200)
    s, r, o = (np.split(rows, rows.shape[1] // 21, axis=1) for rows in ends(scorer, triples))
    boxes = []
    for centre, log_width in ((r[0], r[2]), (r[1], r[3])):
        mean = log_width.mean(axis=1, keepdims=True)
        size = np.where(mean > 0, np.exp(mean) - 1, mean)
        boxes += [centre, np.exp(log_width), size]
    interaction = pykeen.BoxEInteraction(tanh_map=False, p=1)
    theirs = pykeen_scores(pykeen, interaction, tuple(s), tuple(boxes), tuple(o))
    np.testing.assert_allclose(scorer.score(triples), 5 + theirs, rtol=1e-4, atol=1e-4)


# -- the same bits -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*MODELS, "TransE, Euclidean"])
@given(data=st.data())
@settings(max_examples=12)
def test_a_score_has_the_same_bits_in_whatever_block_it_is_asked_for(name, data):
    system = MODELS[name.split(",")[0]](dimension=data.draw(st.sampled_from([1, 3, 10, 33])))
    if name.endswith("Euclidean"):
        system = replace(system, norm=2)
    scorer = random_scorer(system)
    triples = random_triples(data.draw(st.integers(1, 9)))
    for column, position in enumerate(("subject", "relation", "object")):
        size = RELATIONS if position == "relation" else ENTITIES
        everything = scorer.score_candidates(triples, position, np.arange(size, dtype=np.int32))
        some = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size))
        block = slice(data.draw(st.integers(0, len(triples) - 1)), None)
        part = scorer.score_candidates(triples[block], position, np.array(some, dtype=np.int32))
        assert part.dtype == np.float32
        assert np.array_equal(part, everything[block][:, some])
        own = everything[np.arange(len(triples)), triples[:, column]]
        if position == "subject":  # another query, so another order of the same sum
            np.testing.assert_allclose(own, scorer.score(triples), rtol=1e-4, atol=1e-4)
        else:
            assert np.array_equal(own, scorer.score(triples))


@pytest.mark.parametrize("name", MODELS)
def test_candidates_are_scored_as_whole_triples_are(name):
    scorer, triples = random_scorer(MODELS[name](dimension=40)), random_triples(30)
    assert isinstance(scorer, CandidateScorer)
    for column, position in enumerate(("subject", "relation", "object")):
        candidates = np.arange(RELATIONS if column == 1 else ENTITIES, dtype=np.int32)
        found = scorer.score_candidates(triples, position, candidates)
        for place in (0, 7, 29):
            whole = np.repeat(triples[place : place + 1], len(candidates), axis=0)
            whole[:, column] = candidates
            np.testing.assert_allclose(found[place], scorer.score(whole), rtol=1e-4, atol=1e-4)


def test_no_triples_and_no_candidates_have_no_scores():
    scorer, none = random_scorer(TransE(dimension=4)), np.empty((0, 3), dtype=np.int32)
    assert scorer.score(none).shape == (0,)
    candidates = np.arange(3, dtype=np.int32)
    for position in ("subject", "relation", "object"):
        assert scorer.score_candidates(none, position, candidates).shape == (0, 3)
        assert scorer.score_candidates(random_triples(2), position, candidates[:0]).shape == (2, 0)


# -- kept as files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_scorer_comes_back_from_its_arrays(name):
    known = circle()
    system = MODELS[name](dimension=6, epochs=2)
    fitted = system.fit(known)
    assert isinstance(fitted, StoredScorer)
    again = system.restore(known, {name: array.copy() for name, array in fitted.arrays().items()})
    assert np.array_equal(again.score(known.positives.valid), fitted.score(known.positives.valid))


def test_weights_of_another_shape_are_not_taken():
    known = circle()
    arrays = TransE(dimension=6, epochs=1).fit(known).arrays()
    with pytest.raises(InputError, match=r"`entities` have the shape \(60, 6\).*needs \(60, 7\)"):
        TransE(dimension=7).restore(known, arrays)
    with pytest.raises(InputError, match="`relations` are missing"):
        TransE(dimension=6).restore(known, {"entities": arrays["entities"]})
