"""Finding runs and benchmarks for a report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import loginfer
from loginfer.errors import InputError
from loginfer.report import ReportContext, collect, write_site
from loginfer.report.facts import grouped


def test_runs_are_grouped_by_system_benchmark_and_method(small_runs: Path) -> None:
    found = collect([small_runs])
    assert found.systems == ("simpbl", "transe", "oracle")
    assert len(found.cells) == 6
    assert all(cell.benchmark.endswith((", pa", ", qg")) for cell in found.cells)
    for cell in found.cells:
        assert [run.seed for run in cell.runs] == ([0, 1] if cell.system == "transe" else [0])


def test_one_method_alone_is_not_named(small_runs: Path) -> None:
    found = collect(sorted((small_runs / "runs").glob("*-pa-*")))
    assert len(found.benchmark_names) == 1
    assert "," not in found.benchmark_names[0]


def test_a_benchmark_is_found_beside_its_runs(small_runs: Path) -> None:
    found = collect([small_runs])
    assert set(found.benchmarks) == set(found.benchmark_names)
    assert set(found.benchmarks.values()) == {small_runs / "family"}
    assert collect([small_runs / "runs"]).benchmarks == {}


def test_a_folder_that_is_given_twice_counts_once(small_runs: Path) -> None:
    assert collect([small_runs, small_runs / "runs"]).cells == collect([small_runs]).cells


def test_the_mean_is_over_the_seeds(small_runs: Path) -> None:
    cell = collect(sorted((small_runs / "runs").glob("transe-pa-*"))).cells[0]
    values = cell.values("roc_auc")
    assert len(values) == 2
    assert cell.mean("roc_auc") == pytest.approx(sum(values) / 2)
    assert cell.mean("c_mrr", "filtered") is not None
    assert cell.mean("c_mrr", "no such protocol") is None


def test_runs_with_other_settings_are_another_system(small_runs: Path, tmp_path: Path) -> None:
    shutil.copytree(small_runs / "runs" / "transe-pa-0", tmp_path / "a")
    shutil.copytree(small_runs / "runs" / "transe-pa-0", tmp_path / "b")
    path = tmp_path / "b" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["request"]["settings"]["epochs"] = 7
    path.write_text(json.dumps(manifest))
    assert collect([tmp_path]).systems == ("transe (epochs=1)", "transe (epochs=7)")


def test_the_same_run_twice_is_an_error_that_names_both(small_runs: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(small_runs / "runs" / "simpbl-pa-0", tmp_path / name)
    with pytest.raises(InputError, match=r"`.*/a` and `.*/b` are the same: simpbl with seed 0"):
        collect([tmp_path])


def test_a_folder_that_is_not_the_runs_own_benchmark_is_not_taken(small_runs: Path, tmp_path: Path) -> None:
    from tests.support.made_up_benchmarks import family

    from loginfer.benchmark import write_benchmark

    write_benchmark(family(types=False), tmp_path / "other")
    found = collect([small_runs / "runs", tmp_path])
    assert found.benchmarks == {}
    assert any("is not the one that its runs were made with" in note for note in found.notes)


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_where_there_is_no_run_the_message_says_so(tmp_path: Path, what: str) -> None:
    path = tmp_path / what
    if what == "file":
        path.write_text("x")
    elif what == "empty":
        path.mkdir()
    told = {"missing": "no file or folder", "file": "is a file", "empty": "there is no run in"}[what]
    with pytest.raises(InputError, match=told):
        collect([path])


def test_the_name_of_a_data_set_is_no_folder_of_runs() -> None:
    with pytest.raises(InputError, match="`codex-s` is a data set of the catalogue") as caught:
        collect(["codex-s"])
    assert "leave it out" in caught.value.hint


def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json"):
        collect([tmp_path])


def result_file(path: Path, **changes: object) -> Path:
    figures = {"metrics": {"balanced_accuracy": 0.75}, "ranking": {"filtered": {"c_mrr": 0.5}}}
    result = {"format": "loginfer-result", "system": "transe", "benchmark": "LogInfer-WN-sym-pa", "negatives": "pa",
              "benchmark_sha256": "0" * 64, "settings": {"epochs": 3},
              "seeds": [{"seed": seed, **figures} for seed in (0, 1)]}  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result | changes))
    return path


def test_files_of_results_make_a_light_report_without_links_to_pages_that_need_scores(tmp_path: Path) -> None:
    result_file(tmp_path / "results" / "transe" / "a.json")
    result_file(tmp_path / "results" / "boxe" / "a.json", system="boxe")
    (tmp_path / "results" / "other.json").write_text('{"format": "something else"}')
    found = collect([tmp_path / "results"])
    assert found.light
    assert found.systems == ("transe", "boxe")
    assert [len(cell.runs) for cell in found.cells] == [2, 2]
    assert found.cells[0].mean("balanced_accuracy") == 0.75
    assert write_site(ReportContext(found), tmp_path / "site") == ["index.html"]
    page = (tmp_path / "site" / "index.html").read_text()
    assert "75.0" in page
    assert 'href="systems/' not in page
    assert 'href="benchmarks/' not in page


def test_files_of_results_from_before_a_metric_was_added_are_reported(tmp_path: Path) -> None:
    result_file(tmp_path / "results" / "a.json")
    written = loginfer.report(tmp_path / "results", out=tmp_path / "site")
    assert ("filtered/c_mrr", 0.5) in {row[-2:] for row in written.rows()}


def test_a_file_of_results_that_lacks_something_is_named(tmp_path: Path) -> None:
    path = result_file(tmp_path / "a.json", seeds=[{"seed": 0}])
    with pytest.raises(InputError, match="lacks 'metrics'") as refused:
        collect([tmp_path])
    assert str(path) in str(refused.value)


def test_runs_and_files_of_results_are_not_mixed(small_runs: Path, tmp_path: Path) -> None:
    result_file(tmp_path / "a.json")
    with pytest.raises(InputError, match="both runs and files of results"):
        collect([small_runs, tmp_path])


def test_benchmarks_of_one_name_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    from dataclasses import replace

    from tests.support.made_up_benchmarks import family

    from loginfer.benchmark import load_benchmark, write_benchmark
    from loginfer.benchmark.recipe import Recipe
    from loginfer.evaluation import evaluate

    recipe = Recipe(kg="family", patterns=("symmetry",))
    for name, changes, more in (("a", {}, {}), ("b", {"protocol": "paper", "k1": 5}, {"types": False}),
                                ("c", {"seed": 3}, {"valid": False})):  # fmt: skip
        made = replace(family(methods=("pa",), **more), name="mine", recipe=recipe.changed(**changes))
        write_benchmark(made, tmp_path / "benchmarks" / name)
        evaluate(load_benchmark(tmp_path / "benchmarks" / name), "simpbl", ranking=(), diagnosis=False,
                 out=tmp_path / "runs" / name)  # fmt: skip
    found = collect([tmp_path])
    assert set(found.benchmark_names) == {"mine", "mine (k1=5, protocol=paper)", "mine (seed=3)"}
    assert {path.name for path in found.benchmarks.values()} == {"a", "b", "c"}
    # Without their folders nothing is known of the difference.
    without = collect([tmp_path / "runs"]).benchmark_names
    assert len(without) == 3
    assert all(name.startswith("mine (") for name in without)


def test_files_of_results_tell_protocols_apart(tmp_path: Path) -> None:
    result_file(tmp_path / "a.json", protocol="paper", benchmark_sha256="1" * 64)
    result_file(tmp_path / "b.json", protocol="sound")
    found = collect([tmp_path])
    assert set(found.benchmark_names) == {"LogInfer-WN-sym-pa", "LogInfer-WN-sym-pa (protocol=paper)"}
    assert list(grouped(found)) == ["WN-sym", "WN-sym (protocol=paper)"]
