"""`loginfer evaluate` and `loginfer score`, run as users run them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.made_up_benchmarks import family
from tests.support.real_program import PROGRAM

from loginfer import evaluate
from loginfer.benchmark import Recipe, build, load_benchmark, write_benchmark
from loginfer.evaluation.runs import benchmark_sum
from loginfer.files import shipped
from loginfer.kg import KnowledgeGraph
from loginfer.kg.catalogue import locate
from loginfer.systems import registry
from loginfer.systems.registry import graph_entry

OWN_SYSTEM = '''
import numpy as np


class MySystem:
    """Counts how often the object is an object of the relation."""

    def __init__(self, weight: float = 1.0):
        self.weight = weight

    def fit(self, benchmark):
        self.pairs = {(r, o) for _, r, o in benchmark.positives.train.tolist()}
        return self

    def score(self, triples):
        return self.weight * np.array([(r, o) in self.pairs for _, r, o in triples.tolist()])


class Raises(MySystem):
    def fit(self, benchmark):
        return 1 / 0  # the culprit


class Leaves(MySystem):
    def fit(self, benchmark):
        raise SystemExit(0)


class LeavesLater(MySystem):
    def score(self, triples):
        exit()


class Careful(MySystem):
    def score(self, triples):
        return (triples * [3, 5, 7]).sum(axis=1) % 11 / 10


class Careless(Careful):
    """Changes all that it gets, and returns the same array again and again."""

    def fit(self, benchmark):
        super().fit(benchmark)
        for part in (benchmark.graph.triples, benchmark.positives.train, benchmark.positives.valid):
            part[:] = 0
        self.room = np.empty(100_000)
        return self

    def score(self, triples):
        room = self.room[: len(triples)]
        room[:] = super().score(triples)
        triples[:] = 0
        return room

    def score_candidates(self, triples, position, candidates):
        triples, column = np.repeat(triples[:, None], len(candidates), 1), ("subject", "relation", "object")
        triples[:, :, column.index(position)] = candidates
        candidates[:] = 0
        return self.score(triples.reshape(-1, 3)).reshape(triples.shape[:2])


class RaisesLater(MySystem):
    def score(self, triples):
        raise RuntimeError("out of luck")


class NotMade(MySystem):
    def __init__(self):
        raise RuntimeError("not today")


class NoScorer(MySystem):
    def fit(self, benchmark):
        return 3


class WrongShape(MySystem):
    def score(self, triples):
        return np.zeros((len(triples), 2))


class Talks(MySystem):
    def score(self, triples):
        print("working on it")
        return super().score(triples)


class WrongCall(MySystem):
    def fit(self, benchmark, more):
        return self


class WrongCandidates(MySystem):
    def score_candidates(self, triples, position, candidates):
        return np.zeros(len(candidates))


class Moody(MySystem):
    @property
    def weight(self):
        raise RuntimeError("ask later")

    @weight.setter
    def weight(self, value):
        pass


class Nan(MySystem):
    def score(self, triples):
        return np.full(len(triples), np.nan)


class Slow(MySystem):
    def fit(self, benchmark, watch=None):
        import time

        from loginfer.systems.interface import Checkpoint

        watch.save(Checkpoint({"x": np.zeros(1)}))
        time.sleep(100)

    def restore(self, benchmark, arrays):
        return self
'''


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(OWN_SYSTEM.split("\n"), start=1) if text in line)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A benchmark with two rules."""
    lines = [(f"a{i}", "knows", f"a{(i * 7 + 1) % 60}") for i in range(60)]
    lines += [(f"a{i}", "likes", f"a{(i * 11 + 3) % 60}") for i in range(60)]
    recipe = Recipe("small", ("symmetry",), k1=2, k2=60, negatives=("pa",), name="small")
    out = tmp_path_factory.mktemp("benchmark") / "made"
    write_benchmark(build(recipe, KnowledgeGraph.from_names(lines)), out)
    return out


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with somebody's own systems, in which the program is started."""
    (tmp_path / "my_module.py").write_text(OWN_SYSTEM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("my_module", None)


def answer(loginfer, *words):
    code, out, messages = loginfer(*words, "--json")
    assert code == 0, messages
    return json.loads(out)


def refused(loginfer, *words) -> str:
    code, out, messages = loginfer(*words)
    assert (code, out) == (2, "")
    assert messages.startswith("error: ")
    assert "Traceback" not in messages
    return messages


def test_the_answer_for_programs_has_the_promised_shape(loginfer, bench):
    found = answer(loginfer, "evaluate", bench, "--system", "Oracle", "--ranking", "filtered,given")
    assert (found["system"], found["benchmark"], found["seed"]) == ("oracle", "small", 0)
    assert set(found["metrics"]) == {
        "roc_auc", "balanced_accuracy", "accuracy", "f1", "precision", "recall", "average_precision",
        "balanced_accuracy_relation_thresholds", "accuracy_relation_thresholds", "brier_score", "calibration_error",
    }  # fmt: skip
    assert found["metrics"]["accuracy"] == 1.0
    assert set(found["calibration"]) == {"kind", "scores", "log_odds"}
    assert isinstance(found["threshold"], float)
    for protocol in ("filtered", "given"):
        assert {"c_mrr", "r_mrr", "c_hits@1", "r_hits@1", "c_hits@10"} <= set(found["ranking"][protocol])
    assert found["negatives"] == "pa"
    assert found["diagnosis"]["rules"]
    low, high = found["interval"]["metrics"]["balanced_accuracy"]
    assert 0.5 < low < high == 1.0


def test_people_get_tables_that_name_protocol_ties_and_threshold(loginfer, bench, tmp_path):
    code, out, _ = loginfer("evaluate", bench, "-s", "simpbl", "--out", tmp_path / "run")
    assert code == 0
    for expected in (
        "simpbl on small, negatives pa, seed 0", "balanced accuracy", "C-MRR", "filtered",
        "ties are realistic", "chosen on valid for the best accuracy", "diagnosis: of 2 rules",
        f"written to {tmp_path / 'run'}",
    ):  # fmt: skip
        assert expected in out


def test_ranks_among_the_negatives_are_there_on_request_only(loginfer, bench):
    assert list(answer(loginfer, "evaluate", bench, "-s", "simpbl")["ranking"]) == ["filtered"]
    assert list(answer(loginfer, "evaluate", bench, "-s", "simpbl", "--ranking", "given")["ranking"]) == ["given"]


def test_several_systems_are_compared_best_first_and_kept_when_asked_again(loginfer, bench, tmp_path):
    words = ("evaluate", bench, "-s", "simpbl,relation-name", "-s", "oracle", "--jobs", "2", "--out", tmp_path / "all")
    code, out, messages = loginfer(*words)
    assert code == 0, messages
    rows = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0] in SYSTEMS]
    assert rows[0][0] == "oracle"
    accuracies = [float(row[1]) for row in rows]
    assert accuracies == sorted(accuracies, reverse=True)
    assert rows[0][1] == "100.0"
    assert rows[0][2].endswith("–100.0)")
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "[3/3]" in messages
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["oracle", "relation-name", "simpbl"]
    code, again, messages = loginfer(*words)
    assert (code, again) == (0, out)
    assert messages.count("kept") == 3
    code, out, _ = loginfer("score", *sorted((tmp_path / "all").iterdir()))
    assert (code, out) == (0, again)


SYSTEMS = ("oracle", "simpbl", "relation-name")


def test_several_systems_and_seeds_give_programs_a_list(loginfer, bench, tmp_path):
    words = ("evaluate", bench, "-s", "simpbl,oracle", "--ranking", "none", "--seeds", "2", "--out", tmp_path / "all")
    found = answer(loginfer, *words)
    assert [each["system"] for each in found] == ["simpbl", "oracle"]
    assert [len(each["seeds"]) for each in found] == [2, 2]
    assert all(each["seconds"] > 0 for each in found)
    assert sum(found[1]["learned"]["verdicts"].values()) == 2
    assert (tmp_path / "all" / "oracle" / "seed-1" / "manifest.json").exists()
    assert loginfer(*words)[2].count("kept") == 2


def test_a_system_that_fails_does_not_stop_the_others(loginfer, bench, own):
    words = ("evaluate", bench, "-s", "my_module:Raises,simpbl,my_module:MySystem", "--set", "weight=2")
    code, out, messages = loginfer(*words, "--ranking", "none", "--out", "all")
    assert code == 1
    assert "my_module:Raises failed: " in messages
    assert "ZeroDivisionError" in messages
    assert messages.endswith("error: 1 system of 3 failed\n")
    assert "simpbl" in out
    assert "my_module:Raises" not in out
    assert sorted(path.name for path in Path("all").iterdir()) == ["my_module-MySystem", "simpbl"]
    assert json.loads(Path("all/my_module-MySystem/manifest.json").read_text())["request"]["settings"] == {"weight": 2}


def test_what_none_of_several_systems_knows_is_refused_before_any_of_them_runs(loginfer, bench):
    told = refused(loginfer, "evaluate", bench, "-s", "simpbl,transe", "--set", "epoch=3")
    assert "did you mean `epochs`" in told
    assert "unknown system `oracl`" in refused(loginfer, "evaluate", bench, "-s", "simpbl,oracl")


def test_without_out_nothing_is_written(loginfer, bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert loginfer("evaluate", bench, "-s", "simpbl")[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_score_computes_the_same_again_and_other_figures_on_demand(loginfer, bench, tmp_path):
    run = tmp_path / "run"
    then = answer(loginfer, "evaluate", bench, "-s", "simpbl", "--out", run)
    assert answer(loginfer, "score", run, "--benchmark", bench) == then
    alone = answer(loginfer, "score", run)
    assert (alone["metrics"], alone["ranking"]) == (then["metrics"], then["ranking"])
    assert answer(loginfer, "score", run, "--threshold", "7")["metrics"]["recall"] == 0
    assert answer(loginfer, "score", run, "--threshold", "Relation")["thresholds"]["kind"] == "relation"
    assert answer(loginfer, "score", run, "--tie", "pessimistic")["ranking"]["filtered"]["tie"] == "pessimistic"
    code, out, messages = loginfer("score", run)
    assert (code, "C-MRR" in out, "--benchmark" in messages) == (0, True, True)


def test_score_refuses_another_benchmark_and_a_changed_run(loginfer, bench, tmp_path):
    run = tmp_path / "run"
    answer(loginfer, "evaluate", bench, "-s", "simpbl", "--out", run)
    write_benchmark(family(methods=("pa",)), tmp_path / "other")
    assert "is not about this Family & co" in refused(loginfer, "score", run, "--benchmark", tmp_path / "other")
    (run / "metrics.json").write_text("{}")
    assert "`metrics.json` was changed" in refused(loginfer, "score", run)
    assert "is no run" in refused(loginfer, "score", bench.parent)


def test_seeds_give_mean_and_interval_and_are_kept(loginfer, bench, tmp_path):
    words = ("evaluate", bench, "-s", "distmult", "--set", "epochs=3", "--set", "dimension=8",
             "--seed", "4", "--seeds", "2", "--out", tmp_path / "runs")  # fmt: skip
    found = answer(loginfer, *words)
    assert [each["seed"] for each in found["seeds"]] == [4, 5]
    low, high = found["interval"]["metrics"]["roc_auc"]
    assert low <= found["metrics"]["roc_auc"] <= high
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["seed-4", "seed-5", "summary.json"]
    again = answer(loginfer, "score", tmp_path / "runs")
    assert {key: again[key] for key in ("metrics", "interval", "seeds")} == {
        key: found[key] for key in ("metrics", "interval", "seeds")
    }
    code, out, messages = loginfer(*words)
    assert code == 0
    assert "seeds 4, 5" in out
    assert "95 % interval" in out
    assert messages.count("kept") == 2


def test_a_system_learns_with_the_settings_given(loginfer, bench, tmp_path):
    found = answer(
        loginfer, "evaluate", bench, "-s", "TRANSE", "--set", "epochs=2", "--set", "dimension=8",
        "--mode", "explicit", "--workers", "1", "--seed", "3", "--no-tuned", "--no-diagnosis",
        "--ranking", "none",
        "--out", tmp_path / "run",
    )  # fmt: skip
    settings = found["settings"]
    assert (settings["epochs"], settings["dimension"], settings["mode"]) == (2, 8, "explicit")
    assert (found["seed"], found["ranking"], found["diagnosis"]) == (3, {}, {})
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["settings_from"]["user"] == ["dimension", "epochs", "mode", "workers"]
    assert len(json.loads((tmp_path / "run" / "curve.json").read_text())) == 2


def test_every_evaluation_says_which_settings_it_had_and_where_they_come_from(loginfer, bench, tmp_path, monkeypatch):
    run = tmp_path / "run"
    words = ("evaluate", bench, "--system", "exact", "--no-diagnosis", "--ranking", "none")
    _, out, _ = loginfer(*words, "--set", "smoothing=2", "--out", run)
    assert "\nsettings: the defaults; yours: smoothing 2.0\n" in out
    assert "\nsettings: the defaults; yours: smoothing 2.0\n" in loginfer("score", run)[1]
    assert answer(loginfer, "score", run)["settings_from"] == {"user": ["smoothing"], "tuned": []}
    _, out, _ = loginfer(*words, "--system", "simpbl,exact", "--set", "smoothing=2", "--jobs", "1")
    assert "exact: settings: the defaults; yours: smoothing 2.0\n" in out
    assert "simpbl: settings: the defaults\n" in out
    known = {"graphs": {"couples": graph_entry(load_benchmark(bench))}}
    known["settings"] = {"exact": {"couples": {"min_support": 3, "smoothing": 9.0}}}
    monkeypatch.setattr(registry, "shipped", lambda name: known if name == "systems/tuned.toml" else shipped(name))
    _, out, _ = loginfer(*words, "--set", "smoothing=2")
    assert "\nsettings: tuned for couples (min_support 3); yours: smoothing 2.0\n" in out
    assert "\nsettings: the defaults\n" in loginfer(*words, "--no-tuned")[1]


# -- mistakes -----------------------------------------------------------------------------------------


def test_an_unknown_system_is_answered_with_the_nearest(loginfer, bench):
    assert "did you mean `transe`" in refused(loginfer, "evaluate", bench, "--system", "trans-e")


def test_a_wrong_setting_is_answered_with_the_nearest(loginfer, bench):
    told = refused(loginfer, "evaluate", bench, "-s", "transe", "--set", "epoch=3")
    assert "did you mean `epochs`" in told
    assert "must be a whole number" in refused(loginfer, "evaluate", bench, "-s", "transe", "--set", "epochs=ten")
    assert "must be at least 1" in refused(loginfer, "evaluate", bench, "-s", "transe", "--set", "epochs=0")
    assert "write key=value" in refused(loginfer, "evaluate", bench, "-s", "transe", "--set", "epochs")
    told = refused(loginfer, "evaluate", bench, "-s", "transe", "--set", "mode=both", "--mode", "random")
    assert "given twice" in told
    assert "given twice" in refused(loginfer, "evaluate", bench, "-s", "transe", "--set", "a=1", "--set", "a=2")
    assert "--seed" in refused(loginfer, "evaluate", bench, "-s", "transe", "--set", "seed=1")
    assert "setting of SimpBL" in refused(loginfer, "evaluate", bench, "-s", "simpbl", "--mode", "random")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--threshold", "locally"], "kind of threshold"),
        (["--threshold", "nan"], "finite number"),
        (["--criterion", "acuracy"], "did you mean `accuracy`"),
        (["--tie", "optimist"], "did you mean `optimistic`"),
        (["--ranking", "filterd"], "did you mean `filtered`"),
        (["--negatives", "pq"], "negatives of small"),
        (["--scores", "x.tsv"], "do not go together"),
    ],
)
def test_wrong_options_are_told_before_the_work(loginfer, bench, monkeypatch, words, said):
    monkeypatch.setattr("loginfer.systems.baselines.SimpBL.fit", lambda *args: pytest.fail("worked in vain"))
    assert said in refused(loginfer, "evaluate", bench, "-s", "simpbl", *words)


def test_something_must_be_evaluated_on_something(loginfer, bench, tmp_path):
    assert "--system NAME" in refused(loginfer, "evaluate", bench)
    assert "no folder" in refused(loginfer, "evaluate", tmp_path / "none", "-s", "simpbl")


def test_existing_output_is_not_overwritten(loginfer, bench, tmp_path, monkeypatch):
    run = tmp_path / "run"
    answer(loginfer, "evaluate", bench, "-s", "simpbl", "--out", run)
    before = (run / "manifest.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("loginfer.systems.baselines.Oracle.fit", lambda *args: pytest.fail("worked in vain"))
        assert "add --force" in refused(loginfer, "evaluate", bench, "-s", "oracle", "--out", run)
    assert (run / "manifest.json").read_bytes() == before
    assert answer(loginfer, "evaluate", bench, "-s", "oracle", "--out", run, "--force")["system"] == "oracle"


def test_several_negatives_must_be_chosen_from(loginfer, tmp_path):
    write_benchmark(family(), tmp_path / "family")
    assert "--negatives pa" in refused(loginfer, "evaluate", tmp_path / "family", "-s", "simpbl")
    found = answer(loginfer, "evaluate", tmp_path / "family", "-s", "simpbl", "--negatives", "qg")
    assert found["negatives"] == "qg"


def test_without_negatives_random_ones_are_learned_from_and_the_rest_is_ranked(loginfer, tmp_path):
    write_benchmark(family(methods=()), tmp_path / "family")
    words = ("evaluate", tmp_path / "family", "-s", "distmult", "--set", "epochs=1", "--set", "dimension=4")
    told = refused(loginfer, *words, "--mode", "explicit")
    assert "has no negative" in told
    assert "--mode random" in told
    found = answer(loginfer, *words)
    assert set(found["metrics"].values()) == {None}
    assert found["threshold"] is None
    assert list(found["ranking"]) == ["filtered"]
    assert any("no negatives" in note for note in found["notes"])
    code, out, _ = loginfer(*words)
    assert code == 0
    assert "note: " in out


def test_a_standard_split_is_ranked_beside_what_is_published(loginfer, tmp_path, monkeypatch):
    folder, answers = tmp_path / "standard", tmp_path / "answers"
    folder.mkdir()
    (folder / "train.txt").write_text("a\tR\tb\nb\tR\tc\nc\tS\ta\n")
    (folder / "valid.txt").write_text("a\tR\tc\n")
    (folder / "test.txt").write_text("c\tR\ta\na\tR\tnew\nb\tT\ta\n")
    published = {
        "benchmarks": {benchmark_sum(load_benchmark(folder)): "standard"},
        "figures": {
            "standard": {
                "rulen": {"c_mrr": 0.123, "source": "paper"},
                "exact": {"c_hits@1": 0.2, "c_hits@10": 0.5, "source": "other"},
            }
        },
        "sources": {"paper": "P", "other": "O"},
    }
    monkeypatch.setattr(
        registry, "shipped", lambda name: published if name == "systems/published.toml" else shipped(name)
    )
    words = ("evaluate", folder, "-s", "rulen", "--ranking", "filtered,seen")
    found = answer(loginfer, *words, "--out", answers / "run")
    assert found["published"] == {"c_mrr": 0.123, "source": "P"}
    assert answer(loginfer, "score", answers / "run")["published"] == found["published"]
    assert answer(loginfer, *words, "--seeds", "2")["published"] == found["published"]
    assert "published" not in answer(loginfer, "evaluate", folder, "-s", "simpbl")
    seen, all_names = (found["ranking"][name]["competitors"]["object"] for name in ("seen", "filtered"))
    assert (seen["triples"], all_names["triples"]) == (1, 3)
    (note,) = (note for note in found["notes"] if "has not seen" in note)
    assert "1 constant (`new`) and 1 relation (`T`)" in note
    assert "2 of 3 test triples" in note
    code, out, _ = loginfer(*words)
    assert code == 0
    assert f"C-MRR {100 * found['ranking']['filtered']['c_mrr']:.1f}, published 12.3: P" in out
    code, out, _ = loginfer(*words[:3], "rulen,simpbl,exact", "--jobs", "1")
    assert "standard, negatives none" in out
    assert "published" in out
    assert "12.3" in out
    assert "published: P\n" in out  # only of what stands in the table
    assert "balanced accuracy" not in out
    assert " ".join(out.split()).count("train has not seen 1 constant (`new`)") == 1
    # A paper may have Hits@k alone.
    exact = answer(loginfer, *words[:3], "exact")
    figures = [100 * exact["ranking"]["filtered"][name] for name in ("c_hits@1", "c_hits@10")]
    text = "C-Hits@1 {:.1f}, published 20.0; C-Hits@10 {:.1f}, published 50.0: O".format(*figures)
    assert text in " ".join(loginfer(*words[:3], "exact")[1].split())
    assert text in evaluate(folder, "exact")._repr_html_()
    assert "published" not in evaluate(folder, "simpbl")._repr_html_()


@pytest.mark.data
@pytest.mark.parametrize("name", ["fb15k-237", "wn18rr", "codex-s", "codex-m"])
def test_published_figures_are_found_by_the_triples(data_folder, name):
    if locate(name) is None:
        pytest.skip(f"{name} is not in the folder named by LOGINFER_DATA")
    found = registry.published_figures("complex", benchmark_sum(load_benchmark(name)))
    assert 0.3 < found["c_mrr"] < 0.5
    assert "LibKGE" in found["source"]


def test_what_is_published_is_about_systems_that_are_there():
    published = shipped("systems/published.toml")
    assert set(published["figures"]) == set(published["benchmarks"].values())
    for figures in published["figures"].values():
        assert {registry.find_system(name).name for name in figures} == set(figures)
        assert {row["source"] for row in figures.values()} <= set(published["sources"])
        shares = [share for row in figures.values() for name, share in row.items() if name != "source"]
        assert all(0 < share < 1 for share in shares)
        assert all(set(row) & {"c_mrr", "c_hits@10"} for row in figures.values())


def test_negatives_of_a_benchmark_without_any_are_refused(loginfer, tmp_path):
    (tmp_path / "train.txt").write_text("a\tR\tb\n")
    assert "has no negatives" in refused(loginfer, "evaluate", tmp_path, "-s", "simpbl", "--negatives", "qg")


def test_a_name_that_is_no_data_set_is_answered_with_the_nearest(loginfer):
    assert "did you mean `codex-s`" in refused(loginfer, "evaluate", "codexs", "-s", "simpbl")
    assert "loginfer build lubm" in refused(loginfer, "evaluate", "lubm", "-s", "simpbl")


def test_without_valid_a_threshold_is_asked_for(loginfer, tmp_path):
    write_benchmark(family(valid=False, methods=("pa",)), tmp_path / "family")
    words = ("evaluate", tmp_path / "family", "-s", "subject-popularity")
    found = answer(loginfer, *words)
    assert found["metrics"]["accuracy"] is None
    assert found["metrics"]["roc_auc"] is not None
    assert any("--threshold NUMBER" in note for note in found["notes"])
    assert answer(loginfer, *words, "--threshold", "2")["metrics"]["accuracy"] is not None


# -- score files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["tsv", "parquet", "tsv.gz"])
def test_any_program_can_be_evaluated_in_two_steps(loginfer, bench, tmp_path, ending):
    import pyarrow as pa
    import pyarrow.parquet as pq

    queries, scores = tmp_path / f"queries.{ending}", tmp_path / "scores.tsv"
    code, out, _ = loginfer("evaluate", bench, "--export-queries", queries)
    assert (code, "triples to be scored" in out) == (0, True)
    if ending == "parquet":
        table = pq.read_table(queries)
        scores = tmp_path / "scores.parquet"
        pq.write_table(table.append_column("score", pa.array([float(i % 7) for i in range(len(table))])), scores)
    else:
        import gzip

        text = gzip.decompress(queries.read_bytes()).decode() if ending.endswith("gz") else queries.read_text()
        scores.write_text("".join(f"{line}\t{i % 7}\n" for i, line in enumerate(text.splitlines())))
    words = ("evaluate", bench, "--scores", scores, "--ranking", "filtered,given", "--out", tmp_path / "run")
    found = answer(loginfer, *words)
    assert found["system"] == "scores"
    assert found["metrics"]["accuracy"] is not None
    assert list(found["ranking"]) == ["given"]
    assert any("against all candidates" in note for note in found["notes"])
    again = answer(loginfer, "score", tmp_path / "run", "--benchmark", bench)
    assert again == found


def test_wrong_score_files_are_clear_errors(loginfer, bench, tmp_path):
    (tmp_path / "scores.tsv").write_text("a1\tknows\ta2\t0.5\n")
    told = refused(loginfer, "evaluate", bench, "--scores", tmp_path / "scores.tsv")
    assert "triples are missing" in told
    assert "--export-queries" in told
    assert "no file or folder" in refused(loginfer, "evaluate", bench, "--scores", tmp_path / "none.tsv")


def test_queries_can_be_announced_to_programs(loginfer, bench, tmp_path):
    found = answer(loginfer, "evaluate", bench, "--export-queries", tmp_path / "q.tsv")
    assert found["triples"] == len((tmp_path / "q.tsv").read_text().splitlines())
    assert "exists already" in refused(loginfer, "evaluate", bench, "--export-queries", tmp_path / "q.tsv")


# -- one's own system -----------------------------------------------------------------------------------


def test_ones_own_system_is_found_in_the_current_folder(loginfer, bench, own):
    found = answer(loginfer, "evaluate", bench, "-s", "my_module:MySystem", "--set", "weight=2", "--out", own / "run")
    assert (found["system"], found["settings"]) == ("my_module:MySystem", {"weight": 2.0})
    assert found["metrics"]["roc_auc"] is not None
    assert not (own / "run" / "weights.safetensors").exists()


def test_what_ones_own_system_prints_does_not_get_into_the_answer(loginfer, bench, own):
    code, out, messages = loginfer("evaluate", bench, "-s", "my_module:Talks", "--json")
    assert code == 0
    assert json.loads(out)["system"] == "my_module:Talks"
    assert "working on it" in messages


def test_a_system_that_changes_what_it_gets_changes_nothing_of_ours(loginfer, bench, own):
    ranking = ("--ranking", "filtered,given")
    careful, careless = (
        answer(loginfer, "evaluate", bench, "-s", f"my_module:{name}", *ranking) for name in ("Careful", "Careless")
    )
    assert careless == careful | {"system": "my_module:Careless"}


def test_seeds_of_an_own_system_are_not_kept_once_its_code_is_another(loginfer, bench, own):
    words = ("evaluate", bench, "-s", "my_module:MySystem", "--ranking", "none", "--seeds", "1", "--out", "r")
    assert loginfer(*words)[0] == 0
    assert "kept" in loginfer(*words)[2]
    (own / "my_module.py").write_text(OWN_SYSTEM + "\n# mended\n")
    assert "exists already" in refused_at_last(loginfer, *words)
    code, _, messages = loginfer(*words, "--force")
    assert code == 0
    assert "kept" not in messages


def refused_at_last(loginfer, *words) -> str:
    code, out, messages = loginfer(*words)
    assert (code, out) == (2, "")
    return messages


def test_seeds_that_differ_in_more_than_the_seed_have_no_mean(loginfer, bench, tmp_path):
    words = ("evaluate", bench, "-s", "simpbl", "--ranking", "none", "--out", tmp_path / "runs")
    assert loginfer(*words, "--seeds", "3")[0] == 0
    assert loginfer(*words, "--seeds", "2", "--set", "index=train+valid", "--force")[0] == 0
    told = refused(loginfer, "score", tmp_path / "runs")
    assert "`seed-2` and `seed-0`" in told
    assert "`settings.index`" in told


def test_score_says_when_seeds_are_missing_and_where_a_threshold_comes_from(loginfer, bench, tmp_path):
    words = ("evaluate", bench, "-s", "simpbl", "--ranking", "none", "--out", tmp_path / "runs")
    assert "in the mean, chosen on valid for the best accuracy" in loginfer(*words, "--seeds", "2")[1]
    assert "threshold 0.5, given" in loginfer("score", tmp_path / "runs", "--threshold", "0.5")[1]
    assert "not all seeds" not in loginfer("score", tmp_path / "runs")[2]
    (tmp_path / "runs" / "summary.json").unlink()
    assert "not all seeds" in loginfer("score", tmp_path / "runs")[2]


@pytest.mark.parametrize("words", [("--set", "x=1"), ("--seeds", "2"), ("--mode", "random")])
def test_options_of_a_system_are_refused_without_one(loginfer, bench, words):
    assert f"{words[0]} needs a system" in refused(loginfer, "evaluate", bench, "--scores", "s.tsv", *words)


def test_the_example_of_an_own_system_runs(loginfer, bench, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2] / "examples")
    monkeypatch.setattr(sys, "path", list(sys.path))
    found = answer(loginfer, "evaluate", bench, "-s", "own_system:CommonNeighbours", "--set", "most=20")
    assert found["settings"] == {"most": 20}
    assert found["metrics"]["roc_auc"] is not None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "Raises",
            ["failed in `fit`: ZeroDivisionError: division by zero", f"my_module.py:{line_of('1 / 0')}", "the culprit"],
        ),
        ("Leaves", ["failed in `fit`: SystemExit: 0", f"my_module.py:{line_of('SystemExit')}"]),
        ("LeavesLater", ["failed in `score`: SystemExit", f"my_module.py:{line_of('exit()')}"]),
        ("RaisesLater", ["failed in `score`: RuntimeError: out of luck", f"my_module.py:{line_of('out of luck')}"]),
        ("NotMade", ["could not be made: RuntimeError: not today", f"my_module.py:{line_of('not today')}"]),
        ("NoScorer", ["int, which is no scorer"]),
        ("WrongShape", ["the scores have the shape", "one number for each row"]),
        ("WrongCall", ["failed in `fit`: TypeError", "error: ", "my_module.py: "]),
        ("WrongCandidates", ["the scorer gave scores of the shape"]),
        ("Moody", ["could not be made: RuntimeError: ask later", f"my_module.py:{line_of('ask later')}"]),
        ("Nan", ["are not finite"]),
        ("MySystm", ["did you mean `MySystem`"]),
    ],
)
def test_mistakes_in_ones_own_system_are_told_with_their_place(loginfer, bench, own, name, said):
    told = refused(loginfer, "evaluate", bench, "-s", f"my_module:{name}", "--out", own / "run")
    for expected in said:
        assert expected in told
    assert not (own / "run").exists()


def test_a_module_that_cannot_be_imported_is_told(loginfer, bench, own):
    (own / "my_broken.py").write_text("import numpy\nimport no_such_thing\n")
    told = refused(loginfer, "evaluate", bench, "-s", "my_broken:MySystem")
    assert "my_broken.py:2" in told
    (own / "my_script.py").write_text("import sys\nsys.exit()\n")
    assert "my_script.py:2: importing" in refused(loginfer, "evaluate", bench, "-s", "my_script:MySystem")
    assert "no module `my_other`" in refused(loginfer, "evaluate", bench, "-s", "my_other:MySystem")


def test_ctrl_c_keeps_the_checkpoint_and_says_how_to_go_on(bench, own):
    words = ["evaluate", str(bench), "-s", "my_module:Slow", "--out", "run"]
    program = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=own)
    kept = own / ".run.loginfer-run" / "checkpoint.safetensors"
    end = time.monotonic() + 100
    while not kept.exists() and time.monotonic() < end:
        time.sleep(0.05)
    program.send_signal(signal.SIGINT)
    _, messages = program.communicate(timeout=60)
    assert program.returncode == 130
    assert "the same command goes on from there" in messages
    assert "Traceback" not in messages
    assert kept.exists()
    assert not Path(own / "run").exists()


TRACKER = """
class Tracker:
    def curve(self, row):
        print("epoch", row["epoch"])

    def finished(self, figures):
        print("accuracy", figures["accuracy"])
"""


def test_a_tracker_of_ones_own_is_told_the_curve_and_the_figures(loginfer, bench, own):
    (own / "my_tracker.py").write_text(TRACKER)
    words = ["evaluate", bench, "-s", "transe", "--set", "epochs=2", "--no-diagnosis", "--json"]
    code, answer, messages = loginfer(*words, "--callback", "my_tracker:Tracker")
    assert code == 0
    assert [line for line in messages.splitlines() if "compiling" not in line] == [
        "epoch 1",
        "epoch 2",
        f"accuracy {json.loads(answer)['metrics']['accuracy']}",
    ]
    several = ["evaluate", bench, "-s", "simpbl,oracle"]
    assert "--callback: unknown class" in refused(loginfer, *several, "--callback", "my_tracker:Trakcer")
    told = refused(loginfer, *words, "--callback", "my_tracker:Trakcer")
    assert "--callback: unknown class in `my_tracker` `Trakcer`" in told
    assert "no `module:name`" in refused(loginfer, *words, "--callback", "my_tracker")
