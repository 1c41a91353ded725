"""The folder of a run: its files, their bytes, and what becomes of damage."""

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support import SUPPORT
from tests.support.made_up_benchmarks import family
from tests.support.run_systems import Learner, Plain

from loginfer.errors import InputError, OutputError
from loginfer.evaluation import MetricOptions, evaluate, load_run, score_run
from loginfer.evaluation.evaluating import configure_system, wrap_system
from loginfer.evaluation.predictions import predict, read_labelled, read_predictions, read_ranks, write_predictions
from loginfer.evaluation.runs import benchmark_sum, run_system

BENCHMARK = family()
WANTED = MetricOptions(protocols=("filtered", "given", "unfiltered"))


def run(path, system=None, benchmark=BENCHMARK, wanted=WANTED, method="pa", **options):
    ready = wrap_system(system or Learner(), name="run_systems:Learner")
    return run_system(ready, benchmark, method, wanted, path, **options)


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "timing.json"}


def test_a_run_holds_everything_and_nothing_is_left_beside_it(tmp_path):
    made = run(tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "curve.json", "diagnosis.json", "manifest.json", "metrics.json", "predictions.parquet",
        "ranks.parquet", "thresholds.json", "timing.json", "weights.safetensors",
    ]  # fmt: skip
    stored = load_run(tmp_path / "run")
    assert stored.as_dict() == json.loads(json.dumps(made.as_dict()))
    assert [row["step"] for row in stored.curve()] == list(range(1, 21))
    assert (stored.system, stored.seed, stored.benchmark, stored.method) == (
        "run_systems:Learner", 0, "Family & co", "pa",
    )  # fmt: skip


def test_the_same_run_has_the_same_bytes_but_for_its_times(tmp_path):
    run(tmp_path / "one")
    run(tmp_path / "sub" / "two")
    assert content(tmp_path / "one") == content(tmp_path / "sub" / "two")
    run(tmp_path / "other", Learner(seed=1))
    assert content(tmp_path / "other") != content(tmp_path / "one")
    text = (tmp_path / "one" / "manifest.json").read_text()
    assert str(tmp_path) not in text
    assert "timing.json" not in json.loads(text)["files"]


def test_predictions_tell_names_splits_labels_and_scores(tmp_path):
    made = run(tmp_path / "run")
    rows = pq.read_table(tmp_path / "run" / "predictions.parquet").to_pylist()
    expected = []
    for split in ("valid", "test"):
        scores = getattr(made.outcome.predictions, split)
        sides = (BENCHMARK.positives[split], BENCHMARK.negatives["pa"].splits[split])
        for triples, values, label in zip(sides, (scores.positive, scores.negative), (True, False), strict=True):
            for names, score in zip(BENCHMARK.graph.names(triples), values.tolist(), strict=True):
                keys = ("subject", "relation", "object", "split", "label", "score")
                expected.append(dict(zip(keys, (*names, split, label, score), strict=True)))
    assert rows == expected


@pytest.mark.parametrize("method", ["pa", "qg"])
@pytest.mark.parametrize("types", [True, False])
def test_predictions_and_ranks_survive_their_files_without_the_benchmark(tmp_path, types, method):
    benchmark = family(types)
    made = run(tmp_path / "run", benchmark=benchmark, method=method)
    stored = load_run(tmp_path / "run")
    labelled, predictions = stored.labelled()
    whole = read_predictions(tmp_path / "run" / "predictions.parquet", benchmark, method)
    for found in (predictions, whole):
        for split in ("valid", "test"):
            for label in ("positive", "negative"):
                mine = getattr(getattr(found, split), label)
                theirs = getattr(getattr(made.outcome.predictions, split), label)
                assert mine.tobytes() == theirs.tobytes()
    assert labelled.graph.names(labelled.positives.test) == benchmark.graph.names(benchmark.positives.test)
    assert labelled.graph.type_predicate == benchmark.graph.type_predicate
    for mine, theirs in zip(stored.ranks(), made.outcome.ranks, strict=True):
        assert (mine.protocol, mine.position) == (theirs.protocol, theirs.position)
        for column in ("places", "above", "ties", "competitors"):
            assert np.array_equal(getattr(mine, column), getattr(theirs, column))


def test_scoring_again_gives_the_same_figures(tmp_path):
    made = run(tmp_path / "run")
    stored = load_run(tmp_path / "run")
    then = json.loads(json.dumps(made.measures.as_dict()))
    assert json.loads(json.dumps(score_run(stored, benchmark=BENCHMARK).as_dict())) == then
    alone = json.loads(json.dumps(score_run(stored).as_dict()))
    for key in ("threshold", "metrics", "ranking", "tie", "thresholds", "notes"):
        assert alone[key] == then[key]
    assert alone["breakdown"]["relations"] == then["breakdown"]["relations"]
    assert alone["diagnosis"] == {}


def test_scoring_again_with_another_threshold_changes_what_depends_on_it(tmp_path):
    run(tmp_path / "run")
    stored = load_run(tmp_path / "run")
    high = score_run(stored, MetricOptions(threshold=1e9))
    assert high.metrics["recall"] == 0
    assert high.metrics["roc_auc"] == score_run(stored).metrics["roc_auc"]
    assert score_run(stored, MetricOptions(threshold="relation", criterion="f1")).thresholds.kind == "relation"
    strict = score_run(stored, MetricOptions(tie="pessimistic")).ranking["filtered"]
    assert strict["tie"] == "pessimistic"


def test_the_weights_of_a_run_give_its_scorer_back(tmp_path, monkeypatch):
    monkeypatch.chdir(SUPPORT)
    ready = configure_system("run_systems:Learner", BENCHMARK, {"steps": "3"}, seed=5)
    made = run_system(ready, BENCHMARK, "pa", WANTED, tmp_path / "run")
    stored = load_run(tmp_path / "run")
    scorer = stored.scorer(BENCHMARK)
    again = predict(scorer, BENCHMARK, "pa")
    assert again.test.positive.tobytes() == made.outcome.predictions.test.positive.tobytes()
    with pytest.raises(InputError, match="not about this"):
        stored.scorer(family(types=False))


def test_a_system_without_weights_has_none_to_give_back(tmp_path):
    run(tmp_path / "run", Plain())
    stored = load_run(tmp_path / "run")
    assert not (tmp_path / "run" / "weights.safetensors").exists()
    with pytest.raises(InputError, match="has no weights"):
        stored.scorer(BENCHMARK)


@pytest.mark.parametrize("name", ["predictions.parquet", "metrics.json", "weights.safetensors"])
def test_a_file_that_was_changed_or_is_missing_is_named(tmp_path, name):
    run(tmp_path / "run")
    file = tmp_path / "run" / name
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(InputError, match=f"`{name}` was changed"):
        load_run(tmp_path / "run")
    changed = load_run(tmp_path / "run", verify=False)
    if name == "metrics.json":
        file.write_text("{")
        with pytest.raises(InputError, match=r"metrics\.json: this file is no JSON"):
            changed.metrics()
    file.unlink()
    with pytest.raises(InputError, match=f"`{name}` is missing"):
        load_run(tmp_path / "run", verify=False)


def test_what_is_no_run_is_not_read_as_one(tmp_path):
    with pytest.raises(InputError, match="no file or folder"):
        load_run(tmp_path / "none")
    with pytest.raises(InputError, match=r"it has no `manifest\.json`"):
        load_run(tmp_path)
    for text, said in (
        ("{", "no JSON"),
        ("[]", "not that of a run"),
        ('{"format": "loginfer-benchmark"}', "not that of a run"),
        ('{"format": "loginfer-run", "format_version": 2}', "this program reads format 1"),
        ('{"format": "loginfer-run", "format_version": 1}', "`request` is missing"),
    ):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(InputError, match=said):
            load_run(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        load_run(tmp_path / "file")


def test_an_existing_run_stays_unless_replacing_is_asked_for(tmp_path):
    run(tmp_path / "run")
    before = content(tmp_path / "run")
    with pytest.raises(OutputError, match="--force"):
        run(tmp_path / "run", Learner(seed=1))
    assert content(tmp_path / "run") == before
    run(tmp_path / "run", Learner(seed=1), force=True)
    assert content(tmp_path / "run") != before
    (tmp_path / "run" / "mine.txt").write_text("")
    with pytest.raises(OutputError, match=r"holds `mine\.txt`"):
        run(tmp_path / "run", force=True)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "manifest.json").write_text("{}")
    with pytest.raises(OutputError, match="it is no run"):
        run(tmp_path / "folder", force=True)


def test_a_benchmark_is_the_same_whatever_it_is_called_and_another_with_one_triple_less():
    from loginfer.benchmark.benchmark import Splits

    assert benchmark_sum(dataclasses.replace(BENCHMARK, name="other", notes=())) == benchmark_sum(family())
    p = BENCHMARK.positives
    less = dataclasses.replace(BENCHMARK, positives=Splits(p.train, p.valid, p.test[1:]))
    moved = dataclasses.replace(BENCHMARK, positives=Splits(p.train, p.valid[:0], np.vstack([p.valid, p.test])))
    others = {benchmark_sum(b) for b in (BENCHMARK, less, moved, family(types=False), family(methods=("pa",)))}
    assert len(others) == 5


def test_a_benchmark_without_negatives_is_only_ranked(tmp_path):
    alone = family(methods=())
    made = run(tmp_path / "run", benchmark=alone, method=None)
    assert set(made.measures.metrics.values()) == {None}
    assert list(made.measures.ranking) == ["filtered", "unfiltered"]
    assert any("no negatives" in note for note in made.measures.notes)
    stored = load_run(tmp_path / "run")
    assert score_run(stored).as_dict()["ranking"] == json.loads(json.dumps(made.measures.ranking))
    assert score_run(stored).notes == made.measures.notes


def test_without_valid_only_what_needs_no_threshold_is_told():
    benchmark = family(valid=False)
    made = evaluate(benchmark, Learner(), negatives="pa").measures
    assert made.thresholds is None
    assert made.metrics["roc_auc"] is not None
    assert made.metrics["accuracy"] is None
    assert any("--threshold NUMBER" in note for note in made.notes)
    given = evaluate(benchmark, Learner(), negatives="pa", threshold=0.0).measures
    assert given.thresholds.value == 0
    assert given.metrics["accuracy"] is not None


def test_without_valid_scores_of_0_and_1_are_cut_in_the_middle():
    made = evaluate(family(valid=False), "simpbl", negatives="pa").measures
    assert made.thresholds.value == 0.5
    assert made.metrics["accuracy"] is not None
    assert any("0.5" in note for note in made.notes)


def test_damaged_tables_are_clear_errors(tmp_path):
    predictions = predict(Learner().fit(BENCHMARK), BENCHMARK, "pa")
    with (tmp_path / "p.parquet").open("wb") as stream:
        write_predictions(predictions, BENCHMARK, stream)
    with pytest.raises(InputError, match="knows of none"):
        read_labelled(tmp_path / "p.parquet", None, None)
    with pytest.raises(InputError, match="not about the triples"):
        read_predictions(tmp_path / "p.parquet", family(methods=("qg", "pa")), "pa")
    with pytest.raises(InputError, match="no column `place`"):
        read_ranks(tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet")
    for name, kind in ("subject", pa.binary()), ("score", pa.string()):
        values = table.column(name).cast(kind)
        wrong = table.set_column(table.schema.get_field_index(name), name, values)
        pq.write_table(wrong, tmp_path / "wrong.parquet")
        with pytest.raises(InputError, match=f"column `{name}` holds {kind}"):
            read_labelled(tmp_path / "wrong.parquet", "pa", None)
    (tmp_path / "p.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="no readable Parquet"):
        read_ranks(tmp_path / "p.parquet")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n: np.zeros((n, 1)), "the scores have the shape"),
        (lambda n: np.zeros(n - 1), "the scores have the shape"),
        (lambda n: ["x"] * n, "no array of numbers"),
        (lambda n: None, "no array of numbers"),
        (lambda n: np.full(n, np.nan), "are not finite; the first is nan"),
        (lambda n: np.full(n, np.inf), "are not finite"),
    ],
)
def test_answers_that_are_not_one_finite_number_a_triple_are_refused(answer, said):
    class Wrong:
        def fit(self, benchmark):
            return self

        def score(self, triples):
            return answer(len(triples))

    with pytest.raises(InputError, match=said):
        evaluate(BENCHMARK, Wrong(), negatives="pa")


def test_a_script_can_evaluate_into_a_folder(tmp_path):
    import loginfer

    made = loginfer.evaluate(BENCHMARK, "oracle", negatives="pa", ranking=("given",), out=tmp_path / "run")
    assert made.metrics["recall"] == 1
    assert set(made.ranking) == {"given"}
    assert loginfer.load_run(tmp_path / "run").as_dict() == json.loads(json.dumps(made.as_dict()))
    with pytest.raises(OutputError, match="exists already"):
        loginfer.evaluate(BENCHMARK, "oracle", negatives="pa", out=tmp_path / "run")


def test_a_system_sees_no_test_triples_and_only_the_chosen_negatives():
    seen = []

    class Spy(Plain):
        def fit(self, benchmark):
            seen.append(benchmark)
            return super().fit(benchmark)

    class AllSeeing(Spy):
        sees_everything = True

    evaluate(BENCHMARK, Spy(), negatives="qg")
    evaluate(BENCHMARK, AllSeeing(), negatives="qg")
    blind, whole = seen
    assert list(blind.negatives) == list(whole.negatives) == ["qg"]
    assert len(blind.positives.test) == len(blind.negatives["qg"].splits.test) == len(blind.rules) == 0
    assert np.array_equal(whole.positives.test, BENCHMARK.positives.test)
    assert whole.rules == BENCHMARK.rules


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("wanted", {"threshold": [1]}),
        ("request", {"benchmark": "small"}),
        ("request", {"seed": "x"}),
        ("request", {"protocols": 5}),
        ("request", {"settings": 5}),
        ("request", {"negatives": ["pa"]}),
        (None, {"wanted": {}}),
        (None, {"notes": 5}),
        (None, {"type_predicate": 5}),
    ],
)
def test_a_manifest_with_values_of_other_types_is_refused(tmp_path, part, values):
    run(tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text())
    (manifest if part is None else manifest[part]).update(values)
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"must be|is missing"):
        load_run(tmp_path / "run")


class _Tensor:
    """Like a tensor that is still part of a computation."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("call detach() first")


@pytest.mark.parametrize("answer", [np.array([1j] * 100), _Tensor(), [["x"]]])
def test_candidates_get_real_numbers_or_a_clear_error(answer):
    class Own:
        def fit(self, benchmark):
            return self

        def score(self, triples):
            return np.zeros(len(triples))

        def score_candidates(self, triples, position, candidates):
            return answer

    with pytest.raises(InputError, match="no array of numbers"):
        evaluate(BENCHMARK, Own(), negatives="pa", ranking=("filtered",), diagnosis=False)


def test_the_negatives_are_chosen_in_any_case():
    assert evaluate(BENCHMARK, Plain(), negatives="PA", ranking=(), diagnosis=False).method == "pa"


def test_an_empty_test_set_is_told():
    nothing = BENCHMARK.positives.test[:0]
    empty = dataclasses.replace(
        BENCHMARK, positives=dataclasses.replace(BENCHMARK.positives, test=nothing), provenance=None
    )
    found = evaluate(empty, "simpbl", negatives="pa")
    assert found.metrics["recall"] is None
    assert any("no positives in test" in note for note in found.measures.notes)
