"""PyKEEN's models as systems: any of them, with settings that are checked, the same twice, resumable."""

import json

import numpy as np
import pytest
import torch
from class_resolver.contrib.torch import optimizer_resolver
from pykeen.losses import loss_resolver
from pykeen.models import DistMult, model_resolver
from tests.support.made_up_benchmarks import family

from loginfer.errors import InputError, LogInferError, UnknownNameError
from loginfer.evaluation import load_run
from loginfer.pykeen.system import LOSSES, OPTIMIZERS, arguments, model_names
from loginfer.pykeen.training import ExplicitAndRandomLoss, LazyAdam
from loginfer.systems import configure, find_system, settings_of, training_view
from loginfer.systems.interface import POSITIONS, Checkpoint, Unwatched, WatchedSystem

SMALL = {"embedding_dim": 8, "epochs": 1, "num_negatives": 2}
# Products, distances, complex numbers, batch normalisation, a graph network, inverse triples.
KINDS = ("DistMult", "TransE", "RotatE", "TuckER", "RGCN", "CompGCN")


def small_family():
    return training_view(family(), "pa")


def made(name, **settings):
    sizes = SMALL | ({"embedding_height": 2, "embedding_width": 4} if name == "ConvE" else {})
    return configure(find_system(f"pykeen:{name}").load(), sizes | settings)


def same_arrays(one, two):
    one, two = one.arrays(), two.arrays()
    return list(one) == list(two) and all(np.array_equal(one[name], two[name]) for name in one)


# -- names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelt", ["pykeen:TuckER", "PyKEEN:tucker", " pykeen:tuck-er"])
def test_models_are_found_in_any_case(spelt):
    assert find_system(spelt).name == "pykeen:TuckER"


def test_a_wrong_name_comes_with_the_nearest_models():
    with pytest.raises(UnknownNameError) as caught:
        find_system("pykeen:TransEE")
    assert caught.value.nearest[0] == "TransE"


def test_where_no_name_is_near_or_given_all_are_told():
    for spelt, message in (
        ("pykeen:word2vec", "unknown model of PyKEEN `word2vec`"),
        ("pykeen:", "no model of PyKEEN is named"),
        ("PyKEEN", "no model of PyKEEN is named"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            find_system(spelt)
        assert all(name in caught.value.hint for name in model_names())
    with pytest.raises(InputError, match="unknown value of `entity_initializer`") as caught:
        made("TransE", entity_initializer="ones and zeros")
    assert "`xaviernormal`" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ComplExLiteral", "needs numbers that describe entities"),
        ("DistMultLiteralGated", "needs numbers that describe entities"),
        ("InductiveNodePiece", "needs a second graph"),
        ("InductiveNodePieceGNN", "needs a second graph"),
        ("CooccurrenceFilteredModel", "a filter around another model"),
        ("FixedModel", "learns nothing"),
    ],
)
def test_a_model_that_needs_more_than_a_benchmark_says_so(name, why):
    with pytest.raises(InputError, match=why):
        find_system(f"pykeen:{name}")
    assert name not in model_names()


def test_every_model_of_pykeen_is_a_system_or_says_why_not():
    for model in model_resolver.lookup_dict.values():
        if model.__name__ in model_names():
            assert settings_of(find_system(f"pykeen:{model.__name__}").load())
        else:
            with pytest.raises(InputError, match="cannot be trained on a benchmark"):
                find_system(f"pykeen:{model.__name__}")


# -- settings ----------------------------------------------------------------------------------------


def test_the_arguments_of_a_model_are_settings_with_its_defaults():
    known = settings_of(find_system("pykeen:TuckER").load())
    assert (known["embedding_dim"].default, known["relation_dim"].default) == (200, None)
    assert (known["dropout_0"].least, known["dropout_0"].most) == (0, 1)
    assert known["apply_batch_normalization"].parse("no") is False
    assert "triples_factory" not in known
    assert "random_seed" not in known


def test_defaults_make_models_comparable_with_our_own():
    defaults = {
        name: {key: known.default for key, known in settings_of(find_system(f"pykeen:{name}").load()).items()}
        for name in ("DistMult", "TransE", "TuckER")
    }
    assert (defaults["TransE"]["margin"], defaults["TuckER"]["margin"]) == (6, 0)
    assert (defaults["DistMult"]["entity_constrainer"], defaults["DistMult"]["regularisation"]) == (None, 0.01)
    assert (defaults["TransE"]["entity_constrainer"], defaults["TransE"]["regularisation"]) == ("default", 0)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("TransE", {"embeding_dim": "8"}, "did you mean `embedding_dim`"),
        ("TransE", {"relation_dim": "8"}, "unknown setting"),
        ("TransE", {"embedding_dim": "many"}, "must be a whole number"),
        ("TransE", {"embedding_dim": "0"}, "at least 1"),
        ("TransE", {"entity_initializer": "xavier"}, "did you mean `xavier"),
        ("TransE", {"loss": "margin"}, "MarginRanking"),
        ("TransE", {"optimizer": "adams"}, "Adam"),
        ("TransE", {"regularizer_kwargs": "{"}, "is no JSON"),
        ("TransE", {"regularizer_kwargs": "[1]"}, "must be a JSON object"),
        ("TransE", {"threads": "100000"}, "at most 256"),
        ("TuckER", {"dropout_1": "1.5"}, "at most 1"),
    ],
)
def test_wrong_settings_are_found(name, settings, message):
    with pytest.raises(InputError) as caught:
        made(name, **settings)
    assert message in str(caught.value)


def test_names_are_kept_as_pykeen_spells_them():
    system = made("TransE", loss="nssaloss", optimizer="adagrad", entity_initializer="Xavier_Normal")
    assert (system.loss, system.optimizer) == ("NSSA", "Adagrad")
    assert system.model_arguments()["entity_initializer"] == "xaviernormal"


def test_losses_and_optimisers_are_pykeens():
    assert {name.casefold() for name in LOSSES[2:]} == set(loss_resolver.lookup_dict)
    for name in OPTIMIZERS[1:]:
        assert optimizer_resolver.lookup(name).__name__ == name


def test_what_pykeen_refuses_is_one_message():
    with pytest.raises(LogInferError, match="PyKEEN cannot make ConvE with these settings"):
        made("ConvE", embedding_height=3, embedding_width=5).fit(small_family())


def test_of_torchs_complaints_only_the_first_line_is_told():
    with pytest.raises(LogInferError, match="PyKEEN cannot make TransE with these settings: TypeError") as caught:
        made("TransE", embedding_dim=10**23).fit(small_family())
    assert "\n" not in caught.value.message


def test_what_pykeen_knows_is_told_without_quotation_marks():
    with pytest.raises(LogInferError, match="KeyError: Invalid Tokenizer name: words"):
        made("NodePiece", tokenizers="words").fit(small_family())


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("NodePiece", {"tokenizers": "PrecomputedPool"}, "pickled files"),
        ("NodePiece", {"tokenizers_kwargs": {"selection": "random"}}, "does not follow the seed"),
        ("NodePiece", {"tokenizers_kwargs": {"searcher": "scipy-sparse"}}, "does not follow the seed"),
        ("CompGCN", {"encoder_kwargs": {"entity_representations": "Text"}}, "needs texts or pictures"),
        ("CompGCN", {"encoder_kwargs": {"a": {"tokenizers": ["precomputed_pool"]}}}, "pickled files"),
    ],
)
def test_parts_that_read_pickles_or_ignore_the_seed_are_refused_however_deep(name, settings, why):
    settings = {key: value if isinstance(value, str) else json.dumps(value) for key, value in settings.items()}
    with pytest.raises(InputError, match=why) as caught:
        made(name, **settings)
    assert caught.value.hint.startswith("choose one of")


def test_training_that_runs_away_says_so():
    system = made("DistMult", learning_rate=1e30, epochs=5, optimizer="SGD", entity_constrainer=None)
    with pytest.raises(LogInferError, match=r"training ran away|cannot train"):
        system.fit(small_family())


def test_a_benchmark_without_negatives_is_learned_against_random_ones():
    bare = training_view(family(methods=()), None)
    with pytest.raises(InputError, match="mode `explicit` needs them"):
        made("TransE", mode="explicit").fit(bare)
    both, random = (made("TransE", mode=mode).fit(bare).score(bare.positives.train) for mode in ("both", "random"))
    assert np.array_equal(both, random)
    assert np.isfinite(both).all()


# -- learning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_scores_do_not_depend_on_how_they_are_asked_for(name):
    benchmark = family()
    scorer = made(name).fit(small_family())
    triples = np.vstack([benchmark.positives.train, benchmark.positives.test])
    scores = scorer.score(triples)
    assert np.array_equal(scores, [scorer.score(row[None])[0] for row in triples])
    # With inverse relations subjects are scored as PyKEEN does it: as objects of the inverse.
    positions = POSITIONS[1:] if name == "CompGCN" else POSITIONS
    for position in positions:
        column = POSITIONS.index(position)
        size = len(benchmark.graph.relations if column == 1 else benchmark.graph.entities)
        candidates = np.arange(size, dtype=np.int32)[::-1].copy()
        full = np.repeat(triples[:, None], size, axis=1)
        full[:, :, column] = candidates
        wanted = scorer.score(full.reshape(-1, 3)).reshape(len(triples), size)
        assert np.array_equal(scorer.score_candidates(triples, position, candidates), wanted)


@pytest.mark.parametrize("name", KINDS)
def test_the_same_seed_learns_the_same_and_another_does_not(name):
    view = small_family()
    one = made(name, seed=4).fit(view)
    assert same_arrays(one, made(name, seed=4).fit(view))
    assert not same_arrays(one, made(name, seed=5).fit(view))


def test_anchors_of_nodepiece_are_the_same_for_the_same_seed():
    given = json.dumps({"selection": "degree", "selection_kwargs": {"num_anchors": 4}})
    system, view = made("NodePiece", tokenizers="anchor", tokenizers_kwargs=given), small_family()
    assert same_arrays(system.fit(view), system.fit(view))


@pytest.mark.parametrize("name", ["NodePiece", "ConvE"])
def test_nothing_is_printed_beside_what_we_print(name, capfd):
    benchmark = small_family()
    arrays = made(name).fit(benchmark).arrays()
    made(name).restore(benchmark, arrays)
    assert capfd.readouterr() == ("", "")


def test_learning_leaves_randomness_and_threads_of_others_alone():
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    threads = torch.get_num_threads()
    made("DistMult").fit(small_family())
    assert torch.get_num_threads() == threads
    one, two = torch.rand(1), np.random.rand()  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    assert (torch.rand(1), np.random.rand()) == (one, two)  # noqa: NPY002


@pytest.mark.parametrize("mode", ["explicit", "random", "both"])
def test_explicit_negatives_are_learned_in_the_modes_that_use_them(mode):
    view = small_family()
    system = made("DistMult", mode=mode, epochs=25, learning_rate=0.1, keep="last", entity_constrainer=None)
    scorer = system.fit(view)
    told = scorer.score(view.negatives["pa"].splits.train)
    if mode != "random":
        assert told.max() < scorer.score(view.positives.train).mean()
    assert np.isfinite(told).all()


class KilledError(Exception):
    """A run was killed."""


class Keeper(Unwatched):
    """Keeps the last checkpoint, as JSON and arrays, and kills the run after some."""

    def __init__(self, kills=0, kept=None):
        super().__init__()
        self.kills, self.kept, self.saved = kills, kept, 0

    def restore(self):
        return self.kept

    def due(self):
        return True

    def save(self, checkpoint):
        facts = json.loads(json.dumps(checkpoint.facts))
        arrays = {name: np.array(value) for name, value in checkpoint.arrays.items()}
        self.kept, self.saved = Checkpoint(arrays, facts), self.saved + 1
        if self.saved == self.kills:
            raise KilledError


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("DistMult", {"regularisation": 0.1}),
        ("TuckER", {"optimizer": "Adam"}),
        ("TransE", {"optimizer": "SGD", "schedule": "constant"}),
        ("RotatE", {"loss": "NSSA", "margin": 3, "patience": 2}),
    ],
)
def test_a_run_that_was_killed_ends_as_if_it_had_not_been(name, settings):
    view, system = small_family(), made(name, **(settings | {"epochs": 4}))
    assert isinstance(system, WatchedSystem)
    whole = Keeper()
    wanted = system.fit(view, whole)
    killed = Keeper(kills=2)
    with pytest.raises(KilledError):
        system.fit(view, killed)
    again = Keeper(kept=killed.kept)
    assert same_arrays(system.fit(view, again), wanted)
    assert killed.curve[:1] + again.curve == [row for row in whole.curve if row["epoch"] != 2]


def test_weights_give_the_scorer_back_and_wrong_ones_are_refused():
    view, system = small_family(), made("TuckER")
    scorer = system.fit(view)
    again = system.restore(view, scorer.arrays())
    assert np.array_equal(again.score(view.positives.train), scorer.score(view.positives.train))
    with pytest.raises(InputError, match="needs"):
        made("TuckER", embedding_dim=4).restore(view, scorer.arrays())


# -- the parts ---------------------------------------------------------------------------------------


def test_the_loss_is_that_of_our_own_embeddings():
    draw = np.random.default_rng(0)
    positive, explicit, random = (torch.tensor(draw.normal(size=(5, width))) for width in (1, 1, 4))
    made = ExplicitAndRandomLoss(1, explicit_weight=0.7, adversarial=0.5, margin=2.0)
    found = made.process_slcwa_scores(positive, torch.cat([explicit, random], dim=1))
    total = 0.0
    for p, e, n in zip(positive.numpy()[:, 0] + 2, explicit.numpy()[:, 0] + 2, random.numpy() + 2, strict=True):
        weights = np.exp(0.5 * n) / np.exp(0.5 * n).sum()
        total += np.log1p(np.exp(-p)) + 0.7 * np.log1p(np.exp(e)) + (weights * np.log1p(np.exp(n))).sum()
    assert found.item() == pytest.approx(total / 5)


def test_lazy_adam_is_adam_where_everything_is_touched_and_rests_elsewhere():
    draw = torch.Generator().manual_seed(0)
    start = torch.rand((6, 3), generator=draw)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    lazy, plain = LazyAdam([ours], lr=0.1), torch.optim.Adam([theirs], lr=0.1)
    for _ in range(5):
        gradient = torch.rand((6, 3), generator=draw)
        gradient[5] = 0
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        lazy.step()
        plain.step()
    assert torch.allclose(ours[:5], theirs[:5], atol=1e-6)
    ours.grad = torch.zeros((6, 3))
    ours.grad[5] = 1
    before = ours.detach().clone()
    lazy.step()
    assert torch.equal(ours[:5], before[:5])
    assert (ours[5] < before[5]).all()


def test_settings_of_every_kind_are_read_from_a_signature():
    found = {argument.name: argument for argument in arguments(DistMult)}
    assert found["embedding_dim"].type is int
    assert found["entity_constrainer"].default == "default"
    assert "normalize" in found["entity_constrainer"].choices
    assert found["regularizer_kwargs"].default is None


# -- as users have it --------------------------------------------------------------------------------


def test_a_model_is_trained_ranked_and_diagnosed_on_the_command_line(tmp_path, loginfer):
    family().save(tmp_path / "bench")
    words = ["evaluate", tmp_path / "bench", "--negatives", "pa", "--system", "pykeen:tucker"]
    settings = ["--set", "embedding_dim=8", "--set", "epochs=2"]
    code, out, err = loginfer(*words, *settings, "--out", tmp_path / "run", "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert answer["system"] == "pykeen:TuckER"
    assert answer["settings"]["embedding_dim"] == 8
    assert set(answer["ranking"]) == {"filtered"}
    assert answer["diagnosis"]
    assert (tmp_path / "run" / "weights.safetensors").exists()
    assert load_run(tmp_path / "run").manifest["request"]["system"] == "pykeen:TuckER"
