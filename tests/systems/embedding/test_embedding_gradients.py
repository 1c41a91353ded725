"""The gradients of every model and every part of the loss, against PyTorch's automatic ones.

One step is taken from given weights: Adam's first moment is then a tenth of the gradient. Which queries, answers and
candidates the step has is read from it; `test_embedding_steps` says whether these are the right ones.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.embedding_models import NOTHING, benchmark

from loginfer.randomness import generator
from loginfer.systems.embedding.base import OBJECT
from loginfer.systems.embedding.boxe import BoxE
from loginfer.systems.embedding.complex import ComplEx
from loginfer.systems.embedding.distmult import DistMult
from loginfer.systems.embedding.kernels import Weights, padded, training_kernels, zeros
from loginfer.systems.embedding.rotate import RotatE
from loginfer.systems.embedding.steps import Learner, Teacher, lessons, training_queries
from loginfer.systems.embedding.training import training_data
from loginfer.systems.embedding.transe import TransE

torch = pytest.importorskip("torch")

ENTITIES, RELATIONS, TYPES = 14, 4, [12, 13]
SYSTEMS = {
    "TransE": TransE(),
    "TransE, Euclidean": TransE(norm=2, margin=3),
    "RotatE": RotatE(margin=9),
    "RotatE, Euclidean": RotatE(norm=2),
    "ComplEx": ComplEx(regularisation=0.3),
    "DistMult": DistMult(regularisation=0.3),
    "DistMult without N3": DistMult(regularisation=0),
    "BoxE": BoxE(),
}


def graph():
    """Return a graph with types, loops, constants in both places and a relation without triples."""
    positives = [[0, 1, 1], [1, 1, 0], [2, 1, 2], [3, 2, 3], [4, 2, 0], [5, 1, 6], [0, 1, 6], [0, 0, 12], [7, 0, 13]]
    negatives = [[1, 2, 1], [8, 3, 0], [0, 0, 13], [9, 1, 9]]
    return benchmark(
        np.array(positives, dtype=np.int32),
        np.array(negatives, dtype=np.int32),
        entities=ENTITIES,
        relations=RELATIONS,
        types=TYPES,
    )


def start(system, scale=0.4, seed=3):
    """Return weights that are not small, and moments of 0."""
    random = np.random.default_rng(seed)
    entities, relations = (
        padded(random.normal(0, scale, shape).astype(np.float32))
        for shape in ((ENTITIES, system.entity_width), (RELATIONS, system.relation_width))
    )
    derived = zeros(RELATIONS, system.derived_width)
    training_kernels(system.functions).derive_all(relations, derived)
    return Weights(
        entities,
        relations,
        derived,
        zeros(ENTITIES, system.moments, system.entity_width),
        zeros(RELATIONS, system.moments, system.relation_width),
    )


def steps_of(system, known):
    """Return the steps of an epoch."""
    data = training_data(system, known)
    random = generator(system.seed, "a test")
    teacher = Teacher(system, data, random.permutation(len(data.negatives)), lambda ids: ids)
    return [
        teacher.step(lesson, number)
        for number, lesson in enumerate(lessons(training_queries(data), system.batch, random))
    ]


# -- the same loss in PyTorch --------------------------------------------------------------------


def to_complex(row):
    d = len(row) // 2
    return torch.complex(row[:d], row[d:])


def score(system, entities, relations, s, r, o):
    s, r, o = entities[s], relations[r], entities[o]
    d = system.dimension
    if isinstance(system, TransE):
        return system.margin - torch.linalg.vector_norm(s + r - o, ord=system.norm)
    if isinstance(system, RotatE):
        away = to_complex(s) * torch.polar(torch.ones_like(r), r) - to_complex(o)
        return system.margin - torch.linalg.vector_norm(away, ord=system.norm)
    if isinstance(system, ComplEx):
        return (to_complex(s) * to_complex(r) * to_complex(o).conj()).sum().real
    if isinstance(system, DistMult):
        return (s * r * o).sum()
    far = [to_box(s[:d] + o[d:], r[:d], r[2 * d : 3 * d].exp()), to_box(o[:d] + s[d:], r[d : 2 * d], r[3 * d :].exp())]
    return system.margin - far[0].sum() - far[1].sum()


def to_box(point, centre, width):
    u, wider = (point - centre).abs(), width + 1
    return torch.where(u <= width / 2, u / wider, u * wider - width / 2 * (wider - 1 / wider))


def bits(salt, counter):
    """SplitMix64, in whole numbers of any size."""
    z = (int(salt) + counter * 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def loss(system, step, entities, relations):
    """Return the loss of a step without regularisation, and the regularisation."""
    softplus = torch.nn.functional.softplus
    answers = int(step.starts[len(step.anchors) - step.pairs])
    explicit = system.explicit_weight if system.mode != "random" else 0
    softmax = system.loss != "softplus" and system.mode != "explicit"

    def of(query, other):
        ends = (step.anchors[query], other) if step.side == OBJECT else (other, step.anchors[query])
        return score(system, entities, relations, ends[0], step.relations[query], ends[1])

    total, cubic = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for query in range(len(step.anchors)):
        targets = step.targets[step.starts[query] : step.starts[query + 1]].tolist()
        if query >= len(step.anchors) - step.pairs:
            weight = float(step.weights[step.starts[query]])
            total = total + weight * softplus(of(query, targets[0]))
            continue
        wrong = [c for c in step.candidates[: step.drawn].tolist() if c not in targets]
        other = system.relation_weight if step.relations[query] else 0  # 0 is that of types
        label = explicit + other if softmax else 1
        scores = torch.stack([of(query, c) for c in wrong]) if wrong else torch.zeros(0, dtype=torch.float64)
        for target in targets:
            own = of(query, target)
            total = total + label * softplus(-own)
            if softmax and wrong:
                total = total + torch.logsumexp(torch.cat([own[None], scores]), 0) - own
            elif not softmax:
                shares = torch.softmax(system.adversarial * scores, 0).detach()
                total = total + (shares * softplus(scores)).sum()
            for vector in (entities[step.anchors[query]], relations[step.relations[query]], entities[target]):
                parts = to_complex(vector) if isinstance(system, ComplEx) else vector
                cubic = cubic + system.cubic * (parts.abs() ** 3).sum()
    return total, cubic, answers


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("kind", ["softplus", "softmax", "1vsall"])
@pytest.mark.parametrize(("dimension", "mode"), [(37, "both"), (5, "random"), (8, "explicit")], ids=str)
def test_gradients_are_those_of_automatic_differentiation(name, kind, dimension, mode):
    values = {"optimiser": "adam", "relation_weight": 0.7, "explicit_weight": 0.8, "adversarial": 0.9, "negatives": 5}
    system = replace(SYSTEMS[name], dimension=dimension, mode=mode, loss=kind, **values)
    for step in steps_of(system, graph()):
        weights = start(system)
        entities = torch.tensor(weights.entities, dtype=torch.float64, requires_grad=True)
        relations = torch.tensor(weights.relations, dtype=torch.float64, requires_grad=True)
        expected, cubic, answers = loss(system, step, entities, relations)
        ((expected + cubic) / answers).backward()
        found = Learner(system, weights).learn(step, 0.001, 1)
        assert found == pytest.approx(expected.item(), rel=1e-5, abs=1e-6)
        for moments, parameter in ((weights.entity_moments, entities), (weights.relation_moments, relations)):
            wanted = parameter.grad.numpy()
            assert np.abs(wanted).max() > 0.01 or mode == "explicit"
            np.testing.assert_allclose(moments[:, 0] / np.float32(0.1), wanted, rtol=3e-4, atol=3e-6)


def test_dropout_takes_numbers_of_queries_away_and_keeps_their_mean():
    """A dropped number of a product has no part in the gradient of any candidate."""
    system = DistMult(dimension=400, dropout=0.25, regularisation=0, negatives=5, batch=1, explicit_weight=0)
    step = steps_of(system, graph())[0]
    weights, entities = start(system), start(system).entities
    Learner(system, weights).learn(step, 0.001, 1)
    width = system.query_width
    for query in range(len(step.anchors) - step.pairs):
        kept = np.array([bits(step.salt, query * width + j) >> 40 >= 0.25 * 2**24 for j in range(width)])
        assert 0.65 < kept.mean() < 0.85
    moved = [c for c in step.candidates[: step.drawn] if c not in step.targets and c not in step.anchors]
    assert len(step.anchors) - step.pairs == 1
    assert moved
    assert all(((weights.entities[c] != entities[c]) == kept).all() for c in moved)


def after_a_step(system):
    """Return weights before and after the first step of a system."""
    weights, before = start(system), start(system)
    Learner(system, weights).learn(steps_of(system, graph())[0], 0.001, 1)
    return weights, before


def test_rows_that_a_step_does_not_touch_stay_as_they_are():
    weights, before = after_a_step(DistMult(dimension=5, mode="explicit", batch=1))
    changed = (weights.entities != before.entities).any(axis=1)
    assert 2 <= changed.sum() <= 4
    assert not weights.entity_moments[~changed].any()


def test_the_first_step_of_adam_goes_as_far_as_the_learning_rate():
    weights, before = after_a_step(DistMult(dimension=6, mode="explicit", regularisation=0, optimiser="adam"))
    moments, step = weights.entity_moments[:, 0], weights.entities - before.entities
    moved = moments != 0
    np.testing.assert_allclose(np.abs(step[moved]), 0.001, rtol=1e-3)
    assert np.array_equal(np.sign(step[moved]), -np.sign(moments[moved]))


@pytest.mark.parametrize(("optimiser", "reference"), [("adam", "Adam"), ("adagrad", "Adagrad")])
def test_optimisers_are_those_of_pytorch_where_all_rows_are_touched(optimiser, reference):
    """Against all candidates every step touches every constant, so lazy updates are the usual ones."""
    positives = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 2], [3, 0, 0]], np.int32)
    known = benchmark(positives, entities=4, relations=1)
    system = ComplEx(dimension=3, loss="1vsall", regularisation=0.1, optimiser=optimiser, batch=2)
    steps = steps_of(system, known)
    assert len(steps) > 2
    weights = start(system)
    learned = Weights(*(padded(array[:rows]) for array, rows in zip(weights, (4, 1, 1, 4, 1), strict=True)))
    learner = Learner(system, learned)
    entities = torch.tensor(weights.entities[:4], dtype=torch.float64, requires_grad=True)
    relations = torch.tensor(weights.relations[:1], dtype=torch.float64, requires_grad=True)
    optimiser = getattr(torch.optim, reference)([entities, relations])
    for number, step in enumerate(steps, start=1):
        rate = 0.05 / number
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        expected, cubic, answers = loss(replace(system, mode="random"), step, entities, relations)
        ((expected + cubic) / answers).backward()
        optimiser.step()
        learner.learn(step, rate, number)
    np.testing.assert_allclose(learned.entities, entities.detach().numpy(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(learned.relations, relations.detach().numpy(), rtol=1e-3, atol=1e-5)


def test_a_graph_without_anything_to_put_in_its_place_still_trains():
    known = benchmark(np.array([[0, 0, 0]], np.int32), NOTHING, entities=1, relations=1)
    for system in SYSTEMS.values():
        scorer = replace(system, dimension=4, mode="random", epochs=1).fit(known)
        assert np.isfinite(scorer.score(known.positives.train)).all()
