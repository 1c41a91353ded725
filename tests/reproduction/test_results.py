"""Result files, tables and the report of a small reproduction."""

import csv
import json
import shutil

import pytest
from scipy import stats
from tests.support.small_reproduction import InProcess, tiny_suite

from loginfer.evaluation import load_run
from loginfer.reproduction import Folder, plan, read_figures, results, run, tables, write_report
from loginfer.reproduction.planning import given_settings
from loginfer.reproduction.running import stable_json

SYSTEMS = ["simpbl", "transe", "anyburl", "oracle"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction") / "out"
    made = plan(tables=["fb-wn", "rules", "sizes"], systems=SYSTEMS, only=["FB-sym-pa"], seeds=2)
    run(made, out, command=InProcess("rules"), build=tiny_suite)
    write_report(Folder(out))
    return Folder(out)


def content(folder):
    return {
        str(file.relative_to(folder.path)): file.read_bytes()
        for part in ("results", "tables", "REPORT.md", "findings.json")
        for file in [folder.path / part, *sorted((folder.path / part).rglob("*"))]
        if file.is_file()
    }


def test_a_result_has_all_seeds_their_mean_and_the_papers_figures(folder):
    found = json.loads((folder.path / "results/transe/LogInfer-FB-sym-pa.json").read_text())
    runs = [load_run(folder.runs / "transe/LogInfer-FB-sym-pa" / f"seed-{k}") for k in (0, 1)]
    values = [run.metrics()["metrics"]["balanced_accuracy"] for run in runs]
    assert [seed["metrics"]["balanced_accuracy"] for seed in found["seeds"]] == values
    assert found["mean"]["metrics"]["balanced_accuracy"] == pytest.approx(sum(values) / 2)
    ranking = runs[1].metrics()["ranking"]
    assert found["seeds"][1]["ranking"]["filtered"]["c_mrr"] == ranking["filtered"]["c_mrr"]
    assert found["seeds"][1]["ranking"]["given"]["r_mrr"] == ranking["given"]["r_mrr"]
    assert found["seeds"][0]["threshold"] == runs[0].metrics()["threshold"]
    assert found["seeds"][0]["timing"]["cpu_seconds"] > 0
    assert found["paper"]["balanced_accuracy"] == 0.47
    assert found["settings"]["epochs"] == given_settings("transe", "fb15k-237", "quick")["epochs"]
    assert (found["protocol"], found["budget"], found["negatives"]) == ("paper", "quick", "pa")
    assert found["benchmark_sha256"] == runs[0].manifest["request"]["benchmark"]["sha256"]
    assert len(found["recipe_sha256"]) == 64


def test_results_are_small_sorted_and_stable(folder):
    before = content(folder)
    write_report(folder)
    assert content(folder) == before
    files = [path for path in before if path.startswith("results/")]
    assert len(files) == 4
    for path in files:
        assert len(before[path]) < 10_000
        assert before[path].decode() == stable_json(json.loads(before[path]))
        assert str(folder.path).encode() not in before[path]


def test_deterministic_systems_have_one_seed(folder):
    seeds = {result["system"]: len(result["seeds"]) for result in results(folder)}
    assert seeds == {"simpbl": 1, "transe": 2, "anyburl": 2, "oracle": 1}


def test_tables_show_mean_interval_and_the_papers_figure(folder):
    figures = read_figures(folder)
    made = tables(figures, folder.request(), {})
    table = made["fb-wn"]
    assert [row[0].text for row in table.rows] == ["FB-sym-pa"] * 4
    row = next(row for row in table.rows if (row[0].text, row[1].text) == ("FB-sym-pa", "TransE"))
    entry = row[table.header.index("C-MRR")]
    values = [100 * value for value in figures.values("transe", "LogInfer-FB-sym-pa", "c_mrr")]
    assert entry.value == pytest.approx(sum(values) / 2)
    assert entry.half == pytest.approx(stats.t.ppf(0.975, 1) * stats.sem(values))
    assert entry.paper == pytest.approx(3.4)
    assert any("Nothing in SimpBL, oracle is random" in note for note in table.notes)


def test_the_oracle_is_not_the_best_of_a_table(folder):
    table = tables(read_figures(folder), folder.request(), {})["fb-wn"]
    bold = {row[1].text for row in table.rows for entry in row if entry.bold}
    assert bold
    assert "oracle" not in bold


def test_what_failed_is_shown_with_its_reason(folder):
    table = tables(read_figures(folder), folder.request(), {})["rules"]
    assert {row[1].text for row in table.rows} == {"AnyBURL"}
    entry = table.rows[0][2]
    assert (entry.text, entry.value) == ("failed", None)
    assert entry.paper == 100.0
    assert table.notes[entry.notes[0] - 1] == "failed: rules is broken (mend rules)"
    assert "rules is broken" in folder.report.read_text()


def test_sizes_stand_beside_the_papers(folder):
    path = folder.table("sizes", "csv")
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert (row["benchmark"], row["K paper"], row["P_train paper"]) == ("FB-sym", "310116", "318116")
    assert (row["P_test"], row["P_test paper"]) == ("2", "1000")


def test_the_report_says_what_was_done_and_holds_every_table(folder):
    text = folder.report.read_text()
    for words in (
        "Protocol `paper`",
        "Budget `quick`",
        "Seeds: 2",
        "## Findings of the paper",
        "### Finding 11 (section 5.4)",
        "### Table `sizes`",
    ):
        assert words in text
    for name in ("fb-wn", "rules", "sizes"):
        assert folder.table(name, "md").read_text() in text
        assert folder.table(name, "tex").read_text().startswith(r"\begin{")
    assert str(folder.path) not in text


def test_with_missing_cells_findings_are_not_tested(folder):
    told = json.loads((folder.path / "findings.json").read_text())
    assert [finding["number"] for finding in told] == [str(n) for n in range(1, 12)]
    assert {finding["verdict"] for finding in told} == {"not tested"}
    assert "Missing: " in told[0]["explanation"]


def test_a_result_whose_runs_are_gone_goes_too(folder, tmp_path):
    copy = Folder(tmp_path / "copy")
    shutil.copytree(folder.path, copy.path)
    shutil.rmtree(copy.runs / "oracle/LogInfer-FB-sym-pa")
    write_report(copy)
    assert not copy.result("oracle", "LogInfer-FB-sym-pa").exists()
    assert copy.result("simpbl", "LogInfer-FB-sym-pa").exists()


def test_a_run_whose_cell_failed_does_not_count(folder, tmp_path):
    copy = Folder(tmp_path / "copy")
    shutil.copytree(folder.path, copy.path)
    told = {"system": "transe", "benchmark": "LogInfer-FB-sym-pa", "seed": 1, "what": "run", "hint": None}
    failed = copy.path / "failed/transe/LogInfer-FB-sym-pa-seed-1.json"
    failed.parent.mkdir(parents=True)
    failed.write_text(json.dumps({**told, "reason": "made for something else"}))
    write_report(copy)
    result = json.loads(copy.result("transe", "LogInfer-FB-sym-pa").read_text())
    assert [seed["seed"] for seed in result["seeds"]] == [0]
    table = copy.table("fb-wn", "md").read_text()
    (row,) = [line for line in table.splitlines() if "TransE" in line]
    assert row.count("¹") == 6
    assert "1. failed: made for something else" in table


def test_the_table_of_negatives_has_the_mean_of_the_papers_eight():
    from loginfer.reproduction.figures import Figures
    from loginfer.reproduction.planning import PARTICIPANTS

    eight = [name for name in PARTICIPANTS[:9] if name != "simpbl"]
    names = ("LogInfer-FB-sym-rc", "LogInfer-FB-sym-rb")
    known = {
        (system, name): {"seeds": [{"metrics": {"balanced_accuracy": 0.1 * number}, "ranking": {}}]}
        for name in names[:1]
        for number, system in enumerate(eight, start=1)
    }
    request = plan(tables=["negatives"], systems=eight, only=["FB-sym-r?"]).request
    table = tables(Figures(known), request, {})["negatives"]
    assert table.header == ("system", "FB-sym-rc", "FB-sym-rb")
    last = table.rows[-1]
    assert last[1].value == pytest.approx(45.0)
    assert last[1].paper == pytest.approx(90.8625)
    assert last[2].value is None
    assert last[2].paper == pytest.approx(88.0)
