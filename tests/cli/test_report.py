"""`loginfer report`, run as users run it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

QUICK = ("--no-audit", "--no-recovery")


def sums(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def test_a_site_has_all_pages_and_says_where_to_start(loginfer, small_runs, tmp_path):
    code, printed, _ = loginfer("report", small_runs, "--out", tmp_path / "site")
    assert code == 0
    assert printed.splitlines()[-1] == f"open {tmp_path / 'site' / 'index.html'}"
    kinds = ("index", "benchmarks", "systems", "learned", "rules", "ranking", "explorer")
    assert all((tmp_path / "site" / f"{kind}.html").is_file() for kind in kinds)
    assert len(list((tmp_path / "site" / "systems").glob("*.html"))) == 3
    assert len(list((tmp_path / "site" / "benchmarks").glob("*.html"))) == 2


def test_the_same_runs_give_the_same_bytes(loginfer, small_runs, tmp_path):
    for name in ("one", "two"):
        assert loginfer("report", small_runs, *QUICK, "--out", tmp_path / name)[0] == 0
    assert sums(tmp_path / "one") == sums(tmp_path / "two")


def test_the_answer_for_programs_names_the_pages(loginfer, small_runs, tmp_path):
    code, printed, _ = loginfer("report", small_runs, *QUICK, "--explorer", 0, "--out", tmp_path / "site", "--json")
    answer = json.loads(printed)
    assert code == 0
    assert answer["runs"] == 8
    assert "index.html" in answer["pages"]
    assert "explorer.html" not in answer["pages"]
    assert all((tmp_path / "site" / page).is_file() for page in answer["pages"])


def test_nothing_that_exists_is_replaced_without_being_told(loginfer, small_runs, tmp_path):
    site = tmp_path / "site"
    words = ("report", small_runs, *QUICK, "--explorer", 0, "--out", site)
    assert loginfer(*words)[0] == 0
    code, _, err = loginfer(*words)
    assert code == 2
    assert "--force" in err
    assert loginfer(*words, "--force")[0] == 0
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("…")
    code, _, err = loginfer("report", small_runs, "--out", precious, "--force")
    assert code == 2
    assert "it is no report" in err
    assert (precious / "thesis.tex").read_text() == "…"


@pytest.mark.parametrize(("format", "mark"), [("md", "| benchmark |"), ("latex", "\\toprule"), ("csv", ",")])
def test_tables_for_papers(loginfer, small_runs, tmp_path, format, mark):
    words = ("report", small_runs, "--to", format, "--metric", "roc_auc", "--metric", "C-MRR")
    code, printed, _ = loginfer(*words)
    assert code == 0
    assert mark in printed
    out = tmp_path / f"table.{format}"
    assert loginfer(*words, "--out", out)[0] == 0
    assert out.read_text().strip() == printed.strip()


def test_two_runs_are_compared_on_one_page(loginfer, small_runs, tmp_path):
    runs = [small_runs / "runs" / name for name in ("simpbl-qg-0", "oracle-qg-0")]
    code, printed, _ = loginfer("report", "--compare", *runs, small_runs / "family", "--out", tmp_path / "site")
    assert code == 0
    assert printed.startswith("1 page about 2 runs")
    assert "simpbl" in (tmp_path / "site" / "index.html").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("RUNS",), "where should the site go?"),
        (("nowhere", "--out", "site"), "no file or folder"),
        (("EMPTY", "--out", "site"), "there is no run in"),
        (("RUNS", "--to", "md", "--metric", "roc_auk"), "did you mean `roc_auc`"),
        (("RUNS", "--to", "md", "--metric", "c_mrr", "--ranking", "filterd"), "did you mean `filtered`"),
        (("RUNS", "--metric", "f1", "--out", "site"), "--metric is for tables"),
        (("RUNS", "--compare", "--out", "site"), "two runs can be compared, not 6"),
        (("RUNS", "--compare", "--to", "md"), "--compare makes a site"),
    ],
)
def test_bad_input_gets_one_clear_message_and_writes_nothing(loginfer, small_runs, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    given = {"RUNS": small_runs / "runs", "EMPTY": tmp_path / "empty"}
    code, printed, err = loginfer("report", *(given.get(word, word) for word in words))
    assert (code, printed) == (2, "")
    assert err.startswith("error: ")
    assert told in err
    assert not (tmp_path / "site").exists()


def test_a_run_that_was_damaged_is_named(loginfer, small_runs, tmp_path):
    shutil.copytree(small_runs / "runs" / "simpbl-pa-0", tmp_path / "run")
    (tmp_path / "run" / "predictions.parquet").write_bytes(b"no table")
    code, _, err = loginfer("report", tmp_path / "run", "--out", tmp_path / "site")
    assert code == 2
    assert "predictions.parquet" in err
    assert not (tmp_path / "site").exists()


def test_without_the_extra_it_says_how_to_install_it(loginfer, small_runs, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, _, err = loginfer("report", small_runs / "runs", *QUICK, "--out", tmp_path / "site")
    assert code == 2
    assert "pip install '.[report]'" in err
