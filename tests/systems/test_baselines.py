import itertools

import numpy as np
import pytest
from tests.support.made_up_benchmarks import family

from loginfer.errors import InputError
from loginfer.systems import configure, find_system, settings_of, training_view
from loginfer.systems.baselines import RelationNameScorer
from loginfer.systems.interface import POSITIONS, CandidateScorer

SHORTCUTS = ["relation-name", "subject-popularity", "object-popularity", "adjacent", "other-relation"]


def all_triples(benchmark):
    entities, relations = len(benchmark.graph.entities), len(benchmark.graph.relations)
    rows = list(itertools.product(range(entities), range(relations), range(entities)))
    return np.array(rows, dtype=np.int32)


def fitted(name, benchmark, **settings):
    system = configure(find_system(name).load(), settings)
    return system.fit(benchmark if getattr(system, "sees_everything", False) else training_view(benchmark, "pa"))


@pytest.mark.parametrize("index", ["train", "train+valid"])
def test_simpbl_looks_for_either_constant_beside_the_relation(index):
    benchmark = family()
    known = [*benchmark.positives.train.tolist()]
    if index == "train+valid":
        known += benchmark.positives.valid.tolist()
    beside = {(e, r) for s, r, o in known for e in (s, o)}
    triples = all_triples(benchmark)
    expected = [(s, r) in beside and (o, r) in beside for s, r, o in triples.tolist()]
    assert np.array_equal(fitted("simpbl", benchmark, index=index).score(triples), expected)


def test_simpbl_with_valid_says_more_than_without():
    benchmark = family()
    triples = all_triples(benchmark)
    fewer, more = (fitted("simpbl", benchmark, index=i).score(triples) for i in ("train", "train+valid"))
    assert (more >= fewer).all()
    assert more.sum() > fewer.sum()


def test_the_oracle_predicts_what_the_rules_derive_in_one_step():
    benchmark = family()
    likes = {(s, o) for s, r, o in benchmark.graph.names(benchmark.graph.triples) if r == "likes"}
    fans = {s for s, r, o in benchmark.graph.names(benchmark.graph.triples) if (r, o) == ("rdf:type", "Fan")}
    derived = {(x, "knows", z) for x, y in likes for w, z in likes if w == y and x != z}
    derived |= {(y, "hears of", x) for x, y in likes}
    derived |= {(x, "supports", y) for x, y in likes if x in fans}
    triples = all_triples(benchmark)
    scores = fitted("oracle", benchmark).score(triples)
    assert {t for t, score in zip(benchmark.graph.names(triples), scores, strict=True) if score} == derived


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("name", ["oracle", "simpbl"])
def test_candidates_are_scored_as_triples_are(name, position):
    benchmark = family()
    scorer = fitted(name, benchmark)
    assert isinstance(scorer, CandidateScorer)
    triples, column = all_triples(benchmark), POSITIONS.index(position)
    size = len(benchmark.graph.relations if position == "relation" else benchmark.graph.entities)
    candidates = np.random.default_rng(1).permutation(size).astype(np.int32)[: size - 1]
    rows = np.repeat(triples, len(candidates), axis=0)
    rows[:, column] = np.tile(candidates, len(triples))
    expected = scorer.score(rows).reshape(len(triples), len(candidates))
    assert expected.any()
    assert np.array_equal(scorer.score_candidates(triples, position, candidates), expected)


def test_without_rules_there_is_no_oracle():
    with pytest.raises(InputError, match=r"rules of .* are not known"):
        configure(find_system("oracle").load(), {}).fit(training_view(family(), "pa"))


@pytest.mark.parametrize("name", SHORTCUTS)
def test_shortcuts_score_every_triple(name):
    benchmark = family()
    triples = all_triples(benchmark)
    scores = fitted(name, benchmark).score(triples)
    assert scores.shape == (len(triples),)
    assert len(np.unique(scores)) > 1
    assert not settings_of(find_system(name).load())


def test_relation_name_needs_negatives():
    with pytest.raises(InputError, match="has none"):
        fitted("relation-name", family(methods=()))


def test_what_a_system_sees_has_no_test_triples_rules_or_provenance():
    seen = training_view(family(), "qg")
    assert not len(seen.positives.test)
    assert list(seen.negatives) == ["qg"]
    assert not len(seen.negatives["qg"].splits.test)
    assert (seen.rules, seen.provenance, seen.recipe, dict(seen.manifest)) == ((), None, None, {})


def test_a_relation_is_scored_by_its_share_of_positives():
    positives, negatives = (np.array([(0, r, 1) for r in relations]) for relations in ((0, 0, 0, 1), (0, 2)))
    asked = np.array([(5, relation, 5) for relation in range(4)])
    assert RelationNameScorer(positives, negatives, 4).score(asked).tolist() == [0.75, 1.0, 0.0, 0.5]
