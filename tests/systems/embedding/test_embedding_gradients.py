"""The gradients of every model and every part of the loss, against PyTorch's automatic ones.

A run is started from given weights and stopped after one batch: Adam's first moment is then a tenth of the
gradient. Which negatives belong to which positive is worked out here once more.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.embedding_models import NOTHING, Cut, benchmark

from loginfer.randomness import generator, salt
from loginfer.systems.embedding.boxe import BoxE
from loginfer.systems.embedding.complex import ComplEx
from loginfer.systems.embedding.distmult import DistMult
from loginfer.systems.embedding.rotate import RotatE
from loginfer.systems.embedding.transe import TransE
from loginfer.systems.interface import Checkpoint

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


def configured(system, **values):
    return replace(system, learning_rate=0.001, epochs=1, **values)


def graph():
    """Return a graph with types, loops, constants in both places and a relation without triples."""
    positives = [[0, 1, 1], [1, 1, 0], [2, 1, 2], [3, 2, 3], [4, 2, 0], [5, 1, 6], [0, 0, 12], [7, 0, 13]]
    negatives = [[1, 2, 1], [8, 3, 0], [0, 0, 13], [9, 1, 9]]
    return benchmark(
        np.array(positives, dtype=np.int32),
        np.array(negatives, dtype=np.int32),
        entities=ENTITIES,
        relations=RELATIONS,
        types=TYPES,
    )


def start(system, scale=0.4, seed=3):
    random = np.random.default_rng(seed)
    entities = random.normal(0, scale, (ENTITIES, system.entity_width)).astype(np.float32)
    relations = random.normal(0, scale, (RELATIONS, system.relation_width)).astype(np.float32)
    arrays = {
        "entities": entities,
        "relations": relations,
        "entity_moments": np.zeros((ENTITIES, 2, entities.shape[1]), np.float32),
        "relation_moments": np.zeros((RELATIONS, 2, relations.shape[1]), np.float32),
        "best_entities": entities,
        "best_relations": relations,
    }
    return Checkpoint(arrays, {"epoch": 0, "best": None, "best_epoch": 0, "stale": 0})


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


def bits(salt_, counter):
    """SplitMix64, in whole numbers of any size."""
    z = (salt_ + counter * 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def other(pool, random, not_this):
    place = ((random >> 32) * len(pool)) >> 32
    if pool[place] == not_this:
        place = (place + 1) % len(pool)
    return int(pool[place])


def random_negatives(system, known, place, triple):
    random = [
        bits(salt(system.seed, "embedding", "negatives", 0), place * (system.negatives + 1) + i)
        for i in range(system.negatives + 1)
    ]
    s, r, o = triple
    found = []
    for number in random[:-1]:
        if number & 1:
            found.append((s, r, other(known.types if r == known.type_relation else known.consts, number, o)))
        else:
            found.append((other(known.consts, number, s), r, o))
    with_relation = None if r == known.type_relation else (s, other(known.rels, random[-1], r), o)
    return found, with_relation


def loss(system, known, entities, relations):
    def of(triples):
        return torch.stack([score(system, entities, relations, *triple) for triple in triples])

    positives, negatives = known.positives.train, known.negatives["pa"].splits.train
    random = generator(system.seed, "embedding", "order", 0)
    order = random.permutation(len(positives))
    pairing = np.resize(random.permutation(len(negatives)), len(positives))
    softplus = torch.nn.functional.softplus
    total = torch.zeros((), dtype=torch.float64)
    for place, row in enumerate(order):
        triple = [int(i) for i in positives[row]]
        corrupted, with_relation = random_negatives(system, known.graph, place, triple)
        total = total + softplus(-of([triple])[0])
        if system.mode != "explicit":
            scores = of(corrupted)
            shares = torch.softmax(system.adversarial * scores, 0).detach()
            total = total + (shares * softplus(scores)).sum()
        if system.mode != "random":
            explicit = of([negatives[pairing[place]]])[0]
            total = total + system.explicit_weight * softplus(explicit)
        if system.relation_weight and with_relation is not None:
            total = total + system.relation_weight * softplus(of([with_relation])[0])
        s, r, o = triple
        for vector in (entities[s], relations[r], entities[o]):
            parts = to_complex(vector) if isinstance(system, ComplEx) else vector
            total = total + system.cubic * (parts.abs() ** 3).sum()
    return total / len(positives)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(
    ("dimension", "mode"), [(37, "both"), (5, "random"), (8, "explicit")], ids=lambda value: str(value)
)
def test_gradients_are_those_of_automatic_differentiation(name, dimension, mode):
    system = configured(
        SYSTEMS[name],
        dimension=dimension,
        mode=mode,
        negatives=5,
        relation_weight=0.7,
        explicit_weight=0.8,
        adversarial=0.9,
    )
    known, begin = graph(), start(system)
    watch = Cut(begin)
    system.fit(known, watch)

    entities = torch.tensor(begin.arrays["entities"], dtype=torch.float64, requires_grad=True)
    relations = torch.tensor(begin.arrays["relations"], dtype=torch.float64, requires_grad=True)
    expected = loss(system, known, entities, relations)
    expected.backward()

    reported = watch.curve[-1]["loss"]
    cubic = expected.item() - loss(without_cubic(system), known, entities, relations).item()
    assert reported == pytest.approx(expected.item() - cubic, rel=1e-5)
    for kind, parameter in (("entity", entities), ("relation", relations)):
        found = watch.last.arrays[f"{kind}_moments"][:, 0] / np.float32(0.1)
        wanted = parameter.grad.numpy()
        assert np.abs(wanted).max() > 0.01
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-6)


def without_cubic(system):
    return replace(system, regularisation=0) if hasattr(system, "regularisation") else system


def test_rows_that_a_batch_does_not_touch_stay_as_they_are():
    system = configured(DistMult(), dimension=5, mode="explicit")
    begin = start(system)
    watch = Cut(begin)
    system.fit(graph(), watch)
    changed = (watch.last.arrays["entities"] != begin.arrays["entities"]).any(axis=1)
    assert list(np.flatnonzero(~changed)) == [10, 11]
    assert not watch.last.arrays["entity_moments"][~changed].any()


def test_the_first_step_of_adam_goes_as_far_as_the_learning_rate():
    system = configured(DistMult(), dimension=6, mode="explicit", regularisation=0)
    begin = start(system)
    watch = Cut(begin)
    system.fit(graph(), watch)
    step = watch.last.arrays["entities"] - begin.arrays["entities"]
    moved = watch.last.arrays["entity_moments"][:, 0] != 0
    np.testing.assert_allclose(np.abs(step[moved]), system.learning_rate, rtol=1e-3)
    assert np.array_equal(np.sign(step[moved]), -np.sign(watch.last.arrays["entity_moments"][:, 0][moved]))


def test_steps_of_adam_are_those_of_pytorch_where_all_rows_are_touched():
    """One relation of two constants: every batch touches every row, so lazy updates are the usual ones."""
    known = benchmark(np.array([[0, 0, 1]], np.int32), np.array([[1, 0, 0]], np.int32), entities=2, relations=1)
    system = DistMult(dimension=3, mode="explicit", regularisation=0.1, learning_rate=0.05, epochs=7, seed=4)
    random = generator(4, "embedding", "start")
    entities = torch.tensor(system.initial_entities(2, random), dtype=torch.float64, requires_grad=True)
    relations = torch.tensor(system.initial_relations(1, random), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([entities, relations])
    for epoch in range(7):
        optimiser.param_groups[0]["lr"] = 0.05 * (1 - epoch / 7)
        optimiser.zero_grad()
        loss(system, known, entities, relations).backward()
        optimiser.step()
    arrays = system.fit(known).arrays()
    np.testing.assert_allclose(arrays["entities"], entities.detach().numpy(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(arrays["relations"], relations.detach().numpy(), rtol=1e-3, atol=1e-5)


def test_a_graph_without_anything_to_put_in_its_place_still_trains():
    known = benchmark(np.array([[0, 0, 0]], np.int32), NOTHING, entities=1, relations=1)
    for system in SYSTEMS.values():
        scorer = configured(system, dimension=4, mode="random").fit(known)
        assert np.isfinite(scorer.score(known.positives.train)).all()
