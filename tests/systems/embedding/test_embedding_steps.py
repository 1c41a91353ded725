"""What the steps of an epoch ask, against what they should: each positive twice, and nothing right as wrong."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.embedding_models import benchmark
from tests.support.large_training import typed

from loginfer.randomness import generator
from loginfer.systems.embedding.base import OBJECT, SUBJECT
from loginfer.systems.embedding.distmult import DistMult
from loginfer.systems.embedding.steps import Teacher, lessons, training_queries
from loginfer.systems.embedding.training import training_data


def steps_of(system, known, epoch=0):
    data = training_data(system, known)
    random = generator(system.seed, "a test", epoch)
    teacher = Teacher(system, data, random.permutation(len(data.negatives)), lambda ids: ids)
    planned = lessons(training_queries(data), system.batch, random)
    return data, [(lesson.kind.side, teacher.step(lesson, epoch, i)) for i, lesson in enumerate(planned)]


def triples_of(side, step, first, last, directions=1):
    """Return the triples that the queries from first to last of a step are about."""
    for query in range(first, last):
        for target in step.targets[step.starts[query] : step.starts[query + 1]].tolist():
            relation = int(step.relations[query]) // directions
            anchor = int(step.anchors[query])
            yield (anchor, relation, target) if side == OBJECT else (target, relation, anchor)


def asked(side, step, directions=1):
    return triples_of(side, step, 0, len(step.anchors) - step.pairs, directions)


def pairs(side, step):
    return list(triples_of(side, step, len(step.anchors) - step.pairs, len(step.anchors)))


@given(
    triples=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), min_size=1, unique=True),
    batch=st.integers(1, 12),
    reciprocal=st.booleans(),
)
def test_every_positive_is_asked_for_once_by_its_object_and_once_by_its_subject(triples, batch, reciprocal):
    known = benchmark(np.array(triples, np.int32), entities=6, relations=3)
    system = DistMult(batch=batch, mode="random", reciprocal=reciprocal)
    _, steps = steps_of(system, known)
    for wanted in (OBJECT, SUBJECT):
        found = Counter(t for side, step in steps if side == wanted for t in asked(side, step, 1 + reciprocal))
        assert found == Counter(triples)
    if reciprocal:
        assert all(step.side == OBJECT for _, step in steps)
        assert all((step.relations % 2 == side).all() for side, step in steps)


@pytest.mark.parametrize("batch", [7, 40])
def test_types_compete_with_types_and_constants_with_constants(batch):
    data, steps = steps_of(DistMult(batch=batch, negatives=20), typed())
    kinds = set()
    for side, step in steps:
        of_types = side == OBJECT and step.relations[0] == data.type_relation
        kinds.add((side, of_types))
        drawn = step.candidates[: step.drawn]
        assert np.isin(drawn, data.types if of_types else data.constants).all()
        assert (np.diff(drawn) >= 0).all()
        assert len(step.candidates) % 64 == 0
        assert of_types or len(drawn) == 20
        queries = len(step.anchors) - step.pairs
        assert len({int(r) == data.type_relation for r in step.relations[:queries]}) == 1 or side == SUBJECT
    assert kinds == {(OBJECT, False), (SUBJECT, False), (OBJECT, True)}


def test_candidates_are_drawn_evenly_and_anew_in_each_step():
    data, steps = steps_of(DistMult(batch=4, negatives=50), typed())
    counts = Counter()
    for side, step in steps:
        if side == SUBJECT:
            counts.update(step.candidates[: step.drawn].tolist())
    expected = sum(counts.values()) / len(data.constants)
    assert set(counts) == set(data.constants.tolist())
    assert max(counts.values()) < 1.7 * expected
    assert len({step.candidates.tobytes() for side, step in steps if side == SUBJECT}) > 50


def test_explicit_negatives_come_equally_often_and_relations_differ():
    known = typed()
    data, steps = steps_of(DistMult(loss="softmax", batch=16, explicit_weight=1.0, relation_weight=0.5), known)
    explicit = Counter(map(tuple, data.negatives.tolist()))
    found, other = Counter(), []
    for side, step in steps:
        right = list(asked(side, step))
        wrong = pairs(side, step)
        labels = [1.0 if triple[1] == data.type_relation else 1.5 for triple in right]
        assert step.weights.tolist() == labels + [1.0] * len(right) + [0.5] * (len(wrong) - len(right))
        found.update(wrong[: len(right)])
        untyped = [triple for triple in right if triple[1] != data.type_relation]
        other += zip(untyped, wrong[len(right) :], strict=True)
    shares = {triple: found[triple] / count for triple, count in explicit.items()}
    assert set(found) == set(explicit)
    assert max(shares.values()) - min(shares.values()) <= 1
    assert all(a[0] == b[0] and a[2] == b[2] and a[1] != b[1] for a, b in other)
    assert {b[1] for _, b in other} == set(data.relations.tolist())


def test_right_answers_count_by_themselves_as_much_as_what_is_wrong_beside_them():
    for settings, weight in (
        ({"loss": "softplus", "explicit_weight": 0.3}, 1),
        ({"mode": "explicit", "explicit_weight": 0.3}, 1),
        ({"loss": "softmax", "explicit_weight": 0.3}, 0.3),
        ({"loss": "softmax", "mode": "random", "relation_weight": 0.2}, 0.2),
        ({"loss": "softmax", "mode": "random", "explicit_weight": 0.3}, 0),
    ):
        known = benchmark(np.array([(0, 0, 1), (1, 1, 2)], np.int32), entities=3, relations=2)
        known = known if settings.get("mode") == "random" else typed()
        for _, step in steps_of(DistMult(**settings), known)[1]:
            assert set(step.weights[: len(step.places)].tolist()) == {np.float32(weight)}
    alone = benchmark(np.array([(0, 0, 1)], np.int32), entities=2, relations=1)
    for _, step in steps_of(DistMult(loss="softmax", mode="random", relation_weight=0.2), alone)[1]:
        assert step.weights.tolist() == [0]


def test_steps_have_about_as_many_positives_as_asked_for():
    _, steps = steps_of(DistMult(batch=50, mode="random"), typed())
    counts = [sum(1 for _ in asked(side, step)) for side, step in steps]
    assert max(counts) < 50 + 64


def test_all_are_candidates_where_there_are_few():
    data, steps = steps_of(DistMult(loss="1vsall"), typed())
    _, step = next(pair for pair in steps if pair[0] == SUBJECT)
    assert np.array_equal(step.candidates[: step.drawn], data.constants)
    assert steps_of(DistMult(negatives=1000), typed())[1][0][1].drawn <= len(data.constants)
