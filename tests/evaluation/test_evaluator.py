"""The evaluator for scripts: the figures of `evaluate` and of scikit-learn, and every wrong input."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from tests.support.made_up_benchmarks import family
from tests.support.near_miss_benchmarks import recipe_of, small_graph

from loginfer.benchmark import build
from loginfer.errors import InputError, OutputError, UnknownNameError
from loginfer.evaluation import Evaluator, evaluate, load_run
from loginfer.evaluation.metric_table import metric_titles

METRICS = tuple(metric_titles("classification", "relation_thresholds", "calibration"))

KEYS = ["valid_pos", "valid_neg", "test_pos", "test_neg"]


@pytest.fixture(scope="module")
def benchmark():
    return build(recipe_of(negatives=("nm", "rc")), small_graph())


class Odd:
    """A scorer that has learned nothing, but for a leaning towards the positives of train."""

    def fit(self, benchmark):
        self.known = np.bincount(benchmark.positives.train[:, 2], minlength=len(benchmark.graph.entities))
        return self

    def score(self, triples):
        s, r, o = triples.T.astype(np.int64)
        return self.known[o] + ((s * 7919 + r * 104729 + o * 1299709) % 97) / 10


def scores_of(benchmark, method):
    evaluator = Evaluator(benchmark, method)
    scorer = Odd().fit(benchmark)
    return {key: scorer.score(triples) for key, triples in evaluator.triples().items()}


def refused(scores, kind=InputError, benchmark=None, method="pa"):
    with pytest.raises(kind) as error:
        Evaluator(benchmark or family(), method).eval(scores)
    return str(error.value)


def right(**other):
    """Scores that fit, but for those that a test gives."""
    sizes = {key: len(triples) for key, triples in Evaluator(family(), "pa").triples().items()}
    return {key: np.arange(size) / 7 for key, size in sizes.items()} | other


# -- the figures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["nm", "rc"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"threshold": "relation", "criterion": "f1"},
        {"criterion": "balanced_accuracy", "tie": "pessimistic"},
        {"threshold": 3.5, "ranking": ("unfiltered",)},
    ],
    ids=str,
)
def test_the_figures_are_those_of_evaluate_for_the_same_scorer(benchmark, method, options):
    wanted = evaluate(
        benchmark, Odd(), negatives=method, diagnosis=False, **({"ranking": ("filtered", "given")} | options)
    )
    evaluator = Evaluator(benchmark, method, **options)
    found = evaluator.eval(scores_of(benchmark, method), score=Odd().fit(benchmark))
    assert {name: found[name] for name in METRICS} == dict(wanted.metrics)
    assert found["threshold"] == wanted.measures.thresholds.value
    ranked = {key: value for key, value in found.items() if "/" in key}
    assert set(ranked) == {f"{p}/{of}_{f}" for p in wanted.ranking for of in "cr" for f in
                           ("mrr", "hits@1", "hits@3", "hits@10", "mr", "amri")}  # fmt: skip
    for key, value in ranked.items():
        protocol, figure = key.split("/")
        assert value == wanted.ranking[protocol][figure]


def test_the_figures_are_those_of_a_score_file(benchmark, tmp_path, loginfer):
    benchmark.save(tmp_path / "bench")
    scores = scores_of(benchmark, "nm")
    with (tmp_path / "scores.tsv").open("w") as file:
        for key, names in Evaluator(tmp_path / "bench", "nm").names().items():
            for triple, score in zip(names, scores[key].tolist(), strict=True):
                file.write("\t".join(triple) + f"\t{score!r}\n")
    words = ("--negatives", "nm", "--scores", tmp_path / "scores.tsv", "--ranking", "filtered,given", "--json")
    code, out, _ = loginfer("evaluate", tmp_path / "bench", *words)
    answer = json.loads(out)
    assert code == 0
    found = Evaluator(benchmark, "nm").eval(scores)
    assert {name: found[name] for name in METRICS} == answer["metrics"]
    assert found["threshold"] == answer["threshold"]
    assert found["given/c_mrr"] == answer["ranking"]["given"]["c_mrr"]
    assert "filtered/c_mrr" not in found
    whole = Evaluator(benchmark, "nm").evaluation(scores, name="scores").as_dict()
    for key in ("metrics", "ranking", "breakdown", "diagnosis", "thresholds", "notes"):
        assert json.loads(json.dumps(whole[key])) == answer[key]


FAMILY = Evaluator(family(), "pa")
SIZES = [len(triples) for triples in FAMILY.triples().values()]


@settings(max_examples=40)
@given(st.lists(st.sampled_from([-2.0, 0.0, 0.25, 0.5, 3.0]), min_size=sum(SIZES), max_size=sum(SIZES)))
def test_the_figures_are_those_of_scikit_learn_at_the_threshold(values):
    parts = np.split(np.array(values), np.cumsum(SIZES)[:-1])
    found = FAMILY.eval(dict(zip(KEYS, parts, strict=True)))
    truth = np.repeat([1, 0], SIZES[2:])
    scores = np.concatenate(parts[2:])
    said = scores >= found["threshold"]
    assert found["accuracy"] == sk.accuracy_score(truth, said)
    assert found["balanced_accuracy"] == sk.balanced_accuracy_score(truth, said)
    assert found["f1"] == sk.f1_score(truth, said, zero_division=0)
    assert found["precision"] == sk.precision_score(truth, said, zero_division=0)
    assert found["recall"] == sk.recall_score(truth, said)
    assert found["roc_auc"] == sk.roc_auc_score(truth, scores)
    assert found["average_precision"] == sk.average_precision_score(truth, scores)
    # No other threshold does better on valid.
    valid_truth = np.repeat([1, 0], SIZES[:2])
    valid = np.concatenate(parts[:2])
    best = max(((valid >= cut) == valid_truth).mean() for cut in (-3, -1, 0.1, 0.3, 1, 4))
    assert ((valid >= found["threshold"]) == valid_truth).mean() == best


def test_better_scores_give_better_figures_and_the_right_ones_perfect_ones():
    found = FAMILY.eval({key: np.full(n, float("pos" in key)) for key, n in zip(KEYS, SIZES, strict=True)})
    assert {found[name] for name in metric_titles("classification", "relation_thresholds")} == {1.0}
    found = FAMILY.eval({key: np.full(n, float("neg" in key)) for key, n in zip(KEYS, SIZES, strict=True)})
    assert found["roc_auc"] == 0.0


def test_the_answer_is_plain_numbers_that_json_can_hold():
    found = FAMILY.eval(right())
    assert json.loads(json.dumps(found)) == found
    assert {type(value) for value in found.values()} <= {float, type(None)}


# -- what is asked ---------------------------------------------------------------------------------


def test_the_triples_are_asked_for_in_the_order_of_the_folders_lines(benchmark, tmp_path):
    benchmark.save(tmp_path / "bench")
    asked = Evaluator(tmp_path / "bench", "rc").names()
    files = ("valid.txt", "valid_neg_rc.txt", "test.txt", "test_neg_rc.txt")
    assert list(asked) == KEYS
    for names, file in zip(asked.values(), files, strict=True):
        lines = (tmp_path / "bench" / file).read_text().splitlines()
        assert names == [tuple(line.split("\t")) for line in lines]


def test_a_model_can_be_asked_so_that_nobody_gets_the_order_wrong(benchmark):
    evaluator = Evaluator(benchmark, "nm")
    scorer = Odd().fit(benchmark)
    by_hand = scores_of(benchmark, "nm")
    for given_ in (scorer, scorer.score, lambda triples: scorer.score(triples).tolist()):
        asked = evaluator.scores(given_)
        assert list(asked) == KEYS
        assert all(np.array_equal(asked[key], by_hand[key]) for key in KEYS)
    with pytest.raises(InputError, match="int gives no scores"):
        evaluator.scores(3)
    with pytest.raises(InputError, match="shape"):
        evaluator.scores(lambda triples: np.zeros(3))


def test_the_formats_are_told_in_words():
    text = FAMILY.expected_input_format
    for key, size in zip(KEYS, SIZES, strict=True):
        assert f"{key!r}: one finite number for each of the {size} triples" in text
    told = FAMILY.expected_output_format
    assert all(name in told for name in (*METRICS, "threshold", "given/", "c_mrr"))
    assert repr(FAMILY).startswith("Evaluator('Family & co', negatives='pa': valid_pos ")


# -- arrays of every kind --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [list, tuple, np.float32, np.float16, np.int8, bool, object])
def test_scores_may_be_any_kind_of_numbers(kind):
    values = {key: np.arange(size) % 2 for key, size in zip(KEYS, SIZES, strict=True)}
    made = {k: kind(v.tolist()) if kind in (list, tuple) else v.astype(kind) for k, v in values.items()}
    assert FAMILY.eval(made) == FAMILY.eval(values)


def test_tensors_are_taken_as_they_come_out_of_a_model():
    torch = pytest.importorskip("torch")
    values = {key: np.arange(size) / 4 for key, size in zip(KEYS, SIZES, strict=True)}
    wanted = FAMILY.eval(values)
    for make in (
        lambda v: torch.tensor(v),
        lambda v: torch.tensor(v, dtype=torch.bfloat16),
        lambda v: torch.tensor(v, dtype=torch.float8_e4m3fn),
        lambda v: torch.tensor(v, requires_grad=True) * 1,
    ):
        assert FAMILY.eval({key: make(value) for key, value in values.items()}) == wanted
    asked = FAMILY.scores(lambda triples: torch.ones(len(triples), requires_grad=True) * 2)
    assert asked["test_pos"].tolist() == [2.0] * SIZES[2]
    assert "dtype is complex64" in refused(right(test_pos=torch.ones(SIZES[2], dtype=torch.complex64)))


def test_torch_is_not_imported():
    code = (
        "import sys; from loginfer.evaluation import Evaluator\n"
        "from loginfer.benchmark import build, Recipe; from loginfer.kg import KnowledgeGraph\n"
        "g = KnowledgeGraph.from_names([(f'a{i}', 'r', f'a{(3 * i + 1) % 40}') for i in range(40)])\n"
        "b = build(Recipe('g', patterns=('symmetry',), k1=1, k2=40, negatives=('rc',)), g)\n"
        "e = Evaluator(b); e.eval({k: [0.0] * len(t) for k, t in e.triples().items()})\n"
        "assert 'torch' not in sys.modules and 'jinja2' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_given_is_not_changed():
    values = right()
    copies = {key: value.copy() for key, value in values.items()}
    FAMILY.eval(values)
    assert all(np.array_equal(values[key], copies[key]) for key in KEYS)


# -- what can be wrong -----------------------------------------------------------------------------


def test_an_unknown_set_is_named_with_the_nearest_ones():
    told = refused(right(test_positives=[1.0]), UnknownNameError)
    assert "unknown set of triples `test_positives`" in told
    assert "`test_pos`" in told
    assert "`valid_neg`" in refused(right(y_pred=[1.0]), UnknownNameError)
    assert "unknown set of triples `3`" in refused({3: [1.0]}, UnknownNameError)


def test_a_missing_set_is_named():
    scores = right()
    del scores["test_neg"], scores["valid_pos"]
    told = refused(scores)
    assert "no scores for `valid_pos`, `test_neg`" in told
    assert "evaluator.triples()['valid_pos']" in told


def test_what_is_no_dictionary_is_told_the_keys():
    told = refused([np.zeros(3)])
    assert "dictionary, not as list" in told
    assert "`valid_pos`, `valid_neg`, `test_pos`, `test_neg`" in told


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([0.5], ("test_pos: the scores have the shape (1,), not (2,)", "one number for each row")),
        ([0.5] * 12, ("test_pos: the scores have the shape (12,), not (2,)",)),
        ([], ("test_pos: the scores have the shape (0,), not (2,)",)),
        (0.5, ("test_pos: the scores have the shape (), not (2,)",)),
        ([[0.5], [0.5]], ("shape (2, 1), not (2,)", "reshape(-1)")),
        ([[[0.5], [0.5]]], ("shape (1, 2, 1), not (2,)",)),
        ([[0.5], [0.5, 1]], ("test_pos: list that is no array of numbers",)),
        ([0.5, float("nan")], ("1 of 2 scores are not finite", "the first is nan, in place 1, for (dée, hears of")),
        ([float("inf")] * 2, ("2 of 2 scores are not finite", "the first is inf, in place 0")),
        (["0.5", "1"], ("no array of numbers", "dtype is <U3")),
        ([0.5, "1"], ("no array of numbers",)),
        ([0.5, None], ("it holds text or None",)),
        ([0.5, 1j], ("dtype is complex128",)),
        (np.array(["2020", "2021"], dtype="M8[Y]"), ("dtype is datetime64",)),
        (np.ma.array([0.5, 1.0], mask=[True, False]), ("masked",)),
        (None, ("test_pos: NoneType that is no array of numbers: it holds text or None",)),
        (np.zeros(2, dtype=[("a", "f8")]), ("the dtype is [('a', '<f8')]",)),
        ([10**400, 1], ("int too large",)),
        (np.array(["1e4000", "1"], dtype=np.longdouble), ("1 of 2 scores are not finite", "the first is inf")),
        ({"a": 1}, ("dict that is no array of numbers",)),
    ],
    ids=str,
)
def test_wrong_scores_are_told_by_set_and_reason(given, said):
    told = refused(right(test_pos=given))
    for part in said:
        assert part in told


def test_one_of_several_methods_must_be_chosen_in_the_words_of_a_script():
    with pytest.raises(InputError, match="has negatives by pa, qg") as error:
        Evaluator(family())
    assert "negatives='pa'" in str(error.value)
    assert "--" not in str(error.value)
    with pytest.raises(UnknownNameError, match=r"negatives: unknown negatives of Family & co `qq`") as error:
        Evaluator(family(), "qq")
    assert "`qg`" in str(error.value)
    with pytest.raises(UnknownNameError, match="negatives: unknown negatives of Family & co `3`"):
        Evaluator(family(), 3)
    assert Evaluator(family(), "QG").negatives == "qg"
    assert Evaluator(family(methods=("qg",))).negatives == "qg"


def test_wrong_choices_are_told_by_the_name_of_the_argument():
    for argument in ("threshold", "criterion", "tie"):
        with pytest.raises(UnknownNameError, match=f"^{argument}: unknown .* `nothing`"):
            Evaluator(family(), "pa", **{argument: "nothing"})
    for argument, given_, said in (
        ("threshold", None, "a threshold is a number, `global` or `relation`, not NoneType"),
        ("threshold", True, "not bool"),
        ("threshold", [0.5], "not list"),
        ("threshold", float("nan"), "must be a finite number, not nan"),
        ("ranking", None, "ranking protocols come as a list, not as NoneType"),
        ("ranking", [1], "unknown ranking protocol `1`"),
        ("criterion", None, "unknown criterion `None`"),
        ("tie", 3, "unknown tie rule `3`"),
    ):
        with pytest.raises(InputError, match=f"^{argument}: .*{said}"):
            Evaluator(family(), "pa", **{argument: given_})
    with pytest.raises(UnknownNameError, match=r"^ranking: unknown ranking protocol `fltered`") as error:
        Evaluator(family(), "pa", ranking=("fltered",))
    assert "`filtered`" in str(error.value)
    assert Evaluator(family(), "pa", ranking="given").eval(right()) == FAMILY.eval(right())


def test_what_is_no_benchmark_is_called_so(tmp_path):
    with pytest.raises(InputError, match="dict is no benchmark"):
        Evaluator({})
    with pytest.raises(InputError, match="nowhere"):
        Evaluator(tmp_path / "nowhere")


# -- benchmarks with less in them ------------------------------------------------------------------


def test_without_negatives_there_is_nothing_to_classify():
    evaluator = Evaluator(family(methods=()))
    assert evaluator.negatives is None
    scores = {key: np.zeros(len(t)) for key, t in evaluator.triples().items() if len(t)}
    assert set(scores) == {"valid_pos", "test_pos"}
    found = evaluator.eval(scores, score=lambda triples: triples[:, 0] * 1.0)
    assert all(found[name] is None for name in (*METRICS, "threshold"))
    assert 0 < found["filtered/c_mrr"] <= 1
    assert "N_valid" not in evaluator.expected_input_format


def test_without_valid_there_is_no_threshold():
    evaluator = Evaluator(family(valid=False), "pa")
    rng = np.random.default_rng(0)
    scores = {key: rng.random(len(triples)) for key, triples in evaluator.triples().items()}
    found = evaluator.eval(scores)
    assert found["accuracy"] is None
    assert found["threshold"] is None
    assert found["roc_auc"] is not None
    assert Evaluator(family(valid=False), "pa", threshold=0.5).eval(scores)["accuracy"] is not None


# -- runs ------------------------------------------------------------------------------------------


def test_an_evaluation_of_scores_can_be_kept_as_a_run(benchmark, tmp_path):
    evaluator = Evaluator(benchmark, "nm")
    scores = scores_of(benchmark, "nm")
    made = evaluator.evaluation(scores, score=Odd().fit(benchmark), name="odd", out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert run.system == "odd"
    assert run.as_dict() == json.loads(json.dumps(made.as_dict()))
    assert set(made.ranking) == {"filtered", "given"}
    assert made.measures.diagnosis["rules"]
    with pytest.raises(OutputError, match="exists already"):
        evaluator.evaluation(scores, out=tmp_path / "run")
    evaluator.evaluation({**scores, "test_pos": scores["test_pos"] + 1}, out=tmp_path / "run", force=True)
    assert load_run(tmp_path / "run").manifest["request"]["settings"] != run.manifest["request"]["settings"]


def test_a_threshold_of_numpy_can_be_kept_in_a_run(tmp_path):
    evaluator = Evaluator(family(), "pa", threshold=np.float32(0.5))
    evaluator.evaluation(right(), out=tmp_path / "run")
    assert load_run(tmp_path / "run").as_dict()["threshold"] == 0.5


def test_nothing_is_written_where_the_scores_are_wrong(tmp_path):
    with pytest.raises(InputError):
        FAMILY.evaluation(right(test_pos=[1.0]), out=tmp_path / "run")
    assert not list(tmp_path.iterdir())
