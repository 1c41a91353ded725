"""R-GCN as a system: what it learns, that it learns the same twice, and what it complains about."""

import dataclasses
import importlib.util

import numpy as np
import pytest
from tests.support.made_up_benchmarks import family

from loginfer.benchmark.benchmark import Benchmark, NegativeSet, Splits
from loginfer.errors import InputError, LogInferError, UnknownNameError
from loginfer.kg import KnowledgeGraph
from loginfer.systems.interface import Checkpoint, StoredScorer, Unwatched, WatchedSystem, training_view
from loginfer.systems.rgcn import RGCN

torch = pytest.importorskip("torch")

from loginfer.systems.rgcn.model import (  # noqa: E402
    Portions,
    Questions,
    RandomEnds,
    Training,
    as_tensor,
    choose,
    decode,
    encode,
    name_relation,
)

PLAIN = {"dropout": 0.0, "weight_decay": 0.0, "learning_rate": 0.05, "input_rate": 1.0}
SMALL = RGCN(dimension=8, steps=12, validate_every=3, negatives=4, **PLAIN)
NOTHING = np.empty((0, 3), dtype=np.int32)


def small_family():
    return training_view(family(), "pa")


def circle(count=60, seed=0):
    """Return a benchmark with one rule, (x next y) -> (y back x), on a circle; negatives are random pairs."""
    random = np.random.default_rng(seed)
    people = np.arange(count)
    forth = np.stack([people, np.zeros_like(people), (people + 1) % count], 1)
    back = random.permutation(forth[:, [2, 1, 0]] + [0, 1, 0])
    wrong = np.stack([people, np.ones_like(people), (people + random.integers(3, count - 3, count)) % count], 1)
    wrong = random.permutation(wrong)
    names = [f"p{i:03}" for i in range(count)]
    graph = KnowledgeGraph.from_names([(names[s], ("next", "back")[r], names[o]) for s, r, o in [*forth, *back]])

    def ids(rows):
        spelled = [(names[s], ("next", "back")[r], names[o]) for s, r, o in rows]
        found = [(graph.entity_id(s), graph.relation_id(r), graph.entity_id(o)) for s, r, o in spelled]
        return graph.with_triples(np.array(found, dtype=np.int32).reshape(-1, 3)).triples

    third = count // 3
    positives = Splits(ids([*forth, *back[: count - third]]), ids(back[-third:]), NOTHING)
    negatives = NegativeSet("pa", Splits(ids(wrong[third:]), ids(wrong[:third]), NOTHING))
    return Benchmark("circle", graph.with_triples(positives.train), positives, {"pa": negatives})


def same_arrays(one, two):
    one, two = one.arrays(), two.arrays()
    return list(one) == list(two) and all(np.array_equal(one[name], two[name]) for name in one)


class KilledError(Exception):
    """A run was killed."""


class Keeper(Unwatched):
    """Keeps every checkpoint, and kills the run after some of them."""

    def __init__(self, kills=0, kept=None):
        super().__init__()
        self.kills, self.kept, self.saved = kills, kept, 0

    def restore(self):
        return self.kept

    def due(self):
        return True

    def save(self, checkpoint):
        # As a file would: by value, without dtypes or views of what goes on changing.
        arrays = {name: np.array(value) for name, value in checkpoint.arrays.items()}
        self.kept = Checkpoint(arrays, dict(checkpoint.facts))
        self.saved += 1
        if self.saved == self.kills:
            raise KilledError


# -- what it learns ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "least"), [("explicit", 0.7), ("random", 0.9), ("both", 0.85)])
def test_an_inverse_is_learned_from_its_edges(mode, least):
    watch = Unwatched()
    RGCN(dimension=16, steps=80, mode=mode, negatives=20, holdout=0.2, **PLAIN).fit(circle(), watch)
    assert max(row.get("valid_accuracy", 0) for row in watch.curve) > least


def test_full_matrices_bases_and_two_layers_learn_too():
    for more in ({"block": 0}, {"block": 0, "bases": 2}, {"block": 4}, {"layers": 2, "dropout": 0.1}):
        watch = Unwatched()
        more = PLAIN | {"weight_decay": 0.001} | more
        RGCN(dimension=16, steps=60, negatives=20, holdout=0.2, **more).fit(circle(), watch)
        losses = [row["loss"] for row in watch.curve]
        assert np.mean(losses[-10:]) < 0.6 * np.mean(losses[:5]), more


@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_vectors_of_the_best_step_on_valid_or_of_the_last_one_are_kept(keep):
    watch = Unwatched()
    benchmark = circle()
    settings = RGCN(dimension=8, steps=40, validate_every=5, negatives=8, label_weight=0.2, keep=keep, **PLAIN)
    scorer = settings.fit(benchmark, watch)
    accuracies = [row["valid_accuracy"] for row in watch.curve if "valid_accuracy" in row]
    assert max(accuracies) > accuracies[-1]
    found = np.concatenate(
        [scorer.score(benchmark.positives.valid), scorer.score(benchmark.negatives["pa"].splits.valid)]
    )
    positive = np.arange(len(found)) < len(benchmark.positives.valid)
    accuracy = max(((found >= cut) == positive).mean() for cut in [*found, np.inf])
    assert accuracy == (max(accuracies) if keep == "best" else accuracies[-1])


def test_without_valid_the_last_step_is_kept():
    benchmark = training_view(family(valid=False), "pa")
    watch = Unwatched()
    scorer = SMALL.fit(benchmark, watch)
    assert not any("valid_accuracy" in row for row in watch.curve)
    assert len(watch.curve) == SMALL.steps
    training = Training(SMALL, benchmark)
    for step in range(SMALL.steps):
        training.step(step)
    assert np.array_equal(scorer.arrays()["entities"], training.vectors()[0])


def test_patience_ends_training_early():
    watch = Unwatched()
    settings = dataclasses.replace(SMALL, steps=200, patience=2, learning_rate=0.0)
    settings.fit(small_family(), watch)
    assert len(watch.curve) == 9  # best after 3 steps, two more looks


def test_a_scorer_scores_as_the_decoder_does():
    benchmark = small_family()
    scorer = dataclasses.replace(SMALL, steps=1).fit(benchmark)
    assert isinstance(scorer, StoredScorer)
    assert isinstance(SMALL, WatchedSystem)
    training = Training(dataclasses.replace(SMALL, steps=1), benchmark)
    training.step(0)
    with torch.no_grad():
        nodes = encode(training.settings, training.parameters, training.graph, training.everything)
        expected = decode(training.parameters, nodes, torch.from_numpy(benchmark.graph.triples.astype(np.int64)))
    assert np.allclose(scorer.score(benchmark.graph.triples), expected.numpy(), atol=1e-5)
    again = SMALL.restore(benchmark, scorer.arrays())
    assert np.array_equal(again.score(benchmark.graph.triples), scorer.score(benchmark.graph.triples))


# -- the loss ---------------------------------------------------------------------------------------


def test_the_loss_does_not_see_the_edges_held_out():
    """Its message weights, in both directions, are those of a graph that never had these edges."""
    benchmark = circle()
    training = Training(RGCN(dimension=8, holdout=0.2), benchmark)
    held = training.held[0]
    rest = np.delete(benchmark.graph.triples, held.numpy(), axis=0)
    without = Training(
        RGCN(dimension=8, holdout=0.2),
        dataclasses.replace(
            benchmark, graph=benchmark.graph.with_triples(rest), positives=Splits(rest, NOTHING, NOTHING)
        ),
    )
    with torch.no_grad():
        seen = encode(training.settings, training.parameters, training.graph, training.graph.weights(held))
        expected = encode(without.settings, without.parameters, without.graph, without.everything)
        everything = encode(training.settings, training.parameters, training.graph, training.everything)
    torch.testing.assert_close(seen, expected)
    assert not torch.allclose(seen, everything)


def test_the_choice_among_candidates_equals_the_cross_entropy_and_its_gradients():
    random = torch.Generator().manual_seed(0)
    nodes = torch.randn(12, 4, generator=random, dtype=torch.float64).requires_grad_()
    relations = torch.randn(3, 4, generator=random, dtype=torch.float64).requires_grad_()
    questions = Questions(*(torch.tensor(x) for x in ([0, 1, 5], [0, 2, 1], [3, 4, 6], [2, 4, 9, 11])))
    parameters = {"relations": relations}
    found = choose(parameters, nodes, questions)
    expected = []
    for known, relation, answer in zip([0, 1, 5], [0, 2, 1], [3, 4, 6], strict=True):
        options = [answer, *(c for c in (2, 4, 9, 11) if c != answer)]
        scores = (nodes[known] * relations[relation] * nodes[options]).sum(1)
        expected.append(-torch.log_softmax(scores, 0)[0])
    torch.testing.assert_close(found, torch.stack(expected))
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    mine = torch.autograd.grad((found * weights).sum(), [nodes, relations])
    theirs = torch.autograd.grad((torch.stack(expected) * weights).sum(), [nodes, relations])
    for one, two in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, two)


def test_a_question_whose_only_candidate_is_the_answer_costs_nothing():
    nodes = torch.randn(3, 4).requires_grad_()
    questions = Questions(*(torch.tensor([i]) for i in (0, 0, 1, 1)))
    loss = choose({"relations": torch.randn(1, 4)}, nodes, questions)
    assert float(loss.detach()) == pytest.approx(0, abs=1e-6)
    assert torch.isfinite(torch.autograd.grad(loss.sum(), nodes)[0]).all()


def test_naming_the_relation_is_the_cross_entropy_of_the_decoders_scores():
    random = torch.Generator().manual_seed(3)
    nodes = torch.randn(6, 4, generator=random)
    parameters = {"relations": torch.randn(3, 4, generator=random), "relation bias": torch.randn(3, generator=random)}
    triples = torch.tensor([[0, 0, 1], [5, 2, 5], [3, 1, 0]])
    for triple, loss in zip(triples, name_relation(parameters, nodes, triples), strict=True):
        others = torch.stack([torch.stack([triple[0], torch.tensor(r), triple[2]]) for r in range(3)])
        scores = decode(parameters, nodes, others)
        torch.testing.assert_close(loss, scores.logsumexp(0) - scores[triple[1]])


def test_a_type_is_no_relation_that_could_be_named():
    graph = KnowledgeGraph.from_names([("a", "likes", "b"), ("a", "rdf:type", "C")], type_predicate="rdf:type")
    kept = RandomEnds(graph).untyped(as_tensor(graph.triples))
    assert [graph.relations[int(r)] for r in kept[:, 1]] == ["likes"]


def test_portions_take_turns():
    portions = Portions(10, 3, seed=0, name="a")
    first = torch.cat([portions[step] for step in range(3)])
    assert len(set(first.tolist())) == 9
    assert not torch.equal(first, torch.cat([portions[step] for step in range(3, 6)]))
    assert torch.equal(portions[1], Portions(10, 3, seed=0, name="a")[1])
    assert len(Portions(2, 3, 0, "a")[7]) == 2
    assert len(Portions(0, 3, 0, "a")[7]) == 0


def test_types_are_replaced_by_types_and_constants_by_constants():
    graph = small_family().graph
    triples = torch.from_numpy(graph.triples.astype(np.int64)).repeat(40, 1)
    candidates = RandomEnds(graph)
    types, constants = set(graph.types.tolist()), set(graph.consts.tolist())
    is_type = triples[:, 1] == graph.type_relation
    assert is_type.any()
    random = torch.Generator().manual_seed(0)
    corrupted = candidates.corrupt(triples, random)
    assert set(corrupted[is_type, 2].tolist()) == types
    assert set(corrupted[~is_type, 2].tolist()) <= constants
    assert set(corrupted[:, 0].tolist()) == constants
    assert ((corrupted != triples).sum(1) <= 1).all()
    asked = candidates.questions(triples, 50, random)
    assert sum(len(questions.anchors) for questions in asked) == len(triples)
    for questions in asked:
        wanted = types if set(questions.answers.tolist()) <= types else constants
        assert set(questions.candidates.tolist()) == wanted


# -- the same again ---------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_threads():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        first = SMALL.fit(circle(200))
        torch.set_num_threads(2)
        second = SMALL.fit(circle(200))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert same_arrays(first, second)
    assert not same_arrays(first, dataclasses.replace(SMALL, seed=1).fit(circle(200)))


@pytest.mark.parametrize("more", [{}, {"dropout": 0.3, "layers": 2, "block": 0, "bases": 2}])
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(more):
    settings = dataclasses.replace(SMALL, **more)
    benchmark = small_family()
    whole = settings.fit(benchmark)
    kept, rounds = None, 0
    while True:
        watch = Keeper(kills=rounds % 3 + 1, kept=kept)
        rounds += 1
        try:
            resumed = settings.fit(benchmark, watch)
            break
        except KilledError:
            kept = watch.kept
    assert rounds > 4
    assert same_arrays(whole, resumed)


# -- complaints -------------------------------------------------------------------------------------


def test_without_negatives_corruptions_are_learned_from():
    benchmark = training_view(family(methods=()), None)
    with pytest.raises(InputError, match="--mode random"):
        dataclasses.replace(SMALL, mode="explicit").fit(benchmark)
    both, random = Unwatched(), Unwatched()
    dataclasses.replace(SMALL, mode="both").fit(benchmark, both)
    dataclasses.replace(SMALL, mode="random").fit(benchmark, random)
    assert len(both.curve) == SMALL.steps
    assert both.curve == random.curve


def test_a_loss_that_is_no_number_is_an_error_that_says_what_to_do():
    with pytest.raises(LogInferError, match=r"the loss became (nan|inf) in step \d+\n.*learning_rate=1e\+18"):
        dataclasses.replace(SMALL, learning_rate=1e19).fit(small_family())


def test_a_graph_of_one_triple_can_be_learned_from():
    graph = KnowledgeGraph.from_names([("a", "r", "b")])
    benchmark = Benchmark("one", graph, Splits(graph.triples, NOTHING, NOTHING), {})
    scorer = RGCN(dimension=2, steps=3, mode="random").fit(benchmark)
    assert np.isfinite(scorer.score(graph.triples)).all()
    nobody = dataclasses.replace(benchmark, graph=graph.with_triples(NOTHING), positives=Splits(*[NOTHING] * 3))
    with pytest.raises(InputError, match="no training triples to learn from"):
        RGCN(mode="random").fit(nobody)


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="either `bases` or `block`"):
        RGCN(bases=2)
    with pytest.raises(InputError, match="multiple of `block`"):
        RGCN(dimension=10, block=4)
    with pytest.raises(UnknownNameError, match="mode"):
        RGCN(mode="all")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no CUDA device"):
            dataclasses.replace(SMALL, device="cuda").fit(small_family())


def test_weights_of_another_benchmark_are_refused():
    scorer = dataclasses.replace(SMALL, steps=1).fit(small_family())
    with pytest.raises(InputError, match="`entities` have the shape"):
        SMALL.restore(circle(), scorer.arrays())
    with pytest.raises(InputError, match="`relations` are missing"):
        SMALL.restore(small_family(), {"entities": scorer.arrays()["entities"]})


def test_without_pytorch_it_says_how_to_install_it(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    with pytest.raises(LogInferError, match=r"needs PyTorch\n.*pip install '\.\[models\]'"):
        SMALL.fit(small_family())
