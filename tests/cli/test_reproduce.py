"""`loginfer reproduce`, run as users run it."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.real_program import PROGRAM


def test_the_plan_shows_cells_and_time_and_writes_nothing(loginfer, tmp_path):
    out = tmp_path / "out"
    code, printed, _ = loginfer("reproduce", "--plan", "--tables", "lubm", "--seeds", 1, "--jobs", 2, "--out", out)
    assert code == 0
    assert "24 cells on 2 benchmarks" in printed
    assert "with 2 jobs" in printed
    assert not out.exists()


def test_the_plan_for_programs_lists_every_cell(loginfer):
    words = ("--systems", "TransE,exact", "--only", "FB-sym-pa", "--seeds", 2, "--jobs", 1, "--json")
    code, printed, _ = loginfer("reproduce", "--plan", *words)
    assert code == 0
    answer = json.loads(printed)
    cells = {(cell["system"], cell["seed"]): cell for cell in answer["cells"]}
    assert set(cells) == {("transe", 0), ("transe", 1), ("exact", 0)}
    assert cells["transe", 0]["settings"] == {"epochs": 10}  # a third of the 30 that are shipped
    assert cells["exact", 0]["compare_rules"]
    assert answer["cpu_seconds"] == answer["seconds"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--systems", "trans", "--plan"), "did you mean `transe`"),
        (("--tables", "fb", "--plan"), "did you mean `fb-wn`"),
        (("--budget", "ful", "--plan"), "did you mean `full`"),
        (("--only", "WN-*", "--tables", "lubm", "--plan"), "none of these benchmarks"),
        ((), "--out FOLDER"),
    ],
)
def test_bad_input_gets_one_clear_message(loginfer, words, message):
    code, printed, err = loginfer("reproduce", *words)
    assert (code, printed) == (2, "")
    assert err.startswith("error: ")
    assert message in err


WORDS = ("reproduce", "--only", "LUBM-no-type-qg", "--seeds", "1")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A reproduction of sizes alone, with what the program printed."""
    out = tmp_path_factory.mktemp("sizes") / "out"
    words = [*WORDS, "--tables", "sizes", "--jobs", "1", "--json", "--out", str(out)]
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False)
    return out, done


@pytest.fixture
def out(built, tmp_path):
    """The same, to go on with."""
    shutil.copytree(built[0], tmp_path / "out")
    return tmp_path / "out"


def test_sizes_need_no_system(built):
    out, done = built
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert (answer["cells"], answer["tables"]) == ([], ["sizes"])
    assert "benchmark LogInfer-LUBM-no-type-qg: built" in done.stderr
    table = (out / "tables/sizes.md").read_text()
    assert "| LUBM-no-type | 19 | 2,500 | 19 | 100,543 (103,119) |" in table
    assert (out / "suite/LogInfer-LUBM-no-type-qg/manifest.json").exists()


def test_another_budget_needs_another_folder(loginfer, out):
    code, _, err = loginfer(*WORDS, "--tables", "sizes", "--budget", "full", "--out", out)
    assert code == 2
    assert "was begun with the budget `quick`, not `full`" in err


def test_a_failed_cell_gives_exit_code_1_and_tables_all_the_same(loginfer, out):
    """Cells run in processes of their own; that of the oracle stumbles over a file in its way."""
    (out / "runs/oracle").mkdir(parents=True)
    (out / "runs/oracle/LogInfer-LUBM-no-type-qg").write_text("a file")
    words = ("--tables", "lubm", "--systems", "simpbl,oracle", "--jobs", 2, "--out", out)
    code, printed, err = loginfer(*WORDS, *words)
    assert code == 1
    assert "failed: oracle on LUBM-no-type-qg, seed 0" in err
    assert printed.startswith("1 cell of 2")
    report = (out / "REPORT.md").read_text()
    assert "| LUBM-no-type-qg | oracle | failed¹ |" in report
    assert "Table `sizes`" in report
    assert (out / "results/simpbl/LogInfer-LUBM-no-type-qg.json").exists()
    assert (out / "failed/oracle/LogInfer-LUBM-no-type-qg-seed-0.json").exists()


def test_a_polite_end_ends_the_cells_and_says_that_nothing_is_lost(out):
    words = [*WORDS, "--tables", "lubm", "--systems", "boxe", "--jobs", "1", "--out", str(out)]
    process = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    place = out / "runs/boxe/LogInfer-LUBM-no-type-qg"
    while not list(place.glob(".seed-0.*")) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "the same command goes on from there" in " ".join(err.split())
    assert "Traceback" not in err
    assert not _cells_running(out)


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_the_cells_of_a_killed_program_end_with_it(out):
    words = [*WORDS, "--tables", "lubm", "--systems", "boxe", "--jobs", "1", "--out", str(out)]
    process = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    place = out / "runs/boxe/LogInfer-LUBM-no-type-qg"
    while not list(place.glob(".seed-0.*")) and process.poll() is None:
        time.sleep(0.05)
    assert _cells_running(out)
    process.kill()
    process.wait(timeout=60)
    end = time.monotonic() + 20
    while _cells_running(out) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _cells_running(out)


def _cells_running(out):
    """Return the processes that still work for this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(os.fsencode(str(out)) in word for word in words):
            found.append(path.parent.name)
    return found
