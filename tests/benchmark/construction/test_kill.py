"""Killed at any moment (SIGKILL), a run leaves a complete benchmark or none, and the next run mends the rest.

The moments are random, but the same in every run of the tests. LOGINFER_KILLS=30 makes more of them.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest
from tests.support.kills import KILLS, LONGEST, PROGRAM, content, kill_at_a_random_moment, moments, run_here

from loginfer.benchmark import load_benchmark
from loginfer.files import interrupted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")

BUILD = ("build", "lubm", "--rules", "lubm-19", "--negatives", "rb", "--k2", "50", "--name", "made")
# With query-guided negatives the suite takes longer.
ONLY = "LUBM-no-type-*" if KILLS else "LUBM-no-type-?[ab]"
SUITE = ("suite", "build", "--only", ONLY, "--jobs", "1")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[dict[str, bytes], float]:
    """The benchmark as it should be, and how many seconds the program takes for it."""
    out = tmp_path_factory.mktemp("undisturbed") / "made"
    started = time.monotonic()
    subprocess.run([*PROGRAM, *BUILD, "--out", str(out)], check=True, capture_output=True, timeout=LONGEST)
    return content(out), time.monotonic() - started


def test_a_killed_build_can_be_repeated(tmp_path, loginfer, undisturbed):
    expected, seconds = undisturbed
    moment = random.Random(1)
    killed = 0
    for number, (sign, wait) in enumerate(moments(3, [(".made.loginfer-part", 0.3), ("", seconds)])):
        place = tmp_path / str(number)
        place.mkdir()
        command = [*BUILD, "--out", str(place / "made")]
        killed += kill_at_a_random_moment(command, moment, sign, wait)
        if (place / "made").exists():
            assert content(place / "made") == expected
            command.append("--force")
        run_here(loginfer, command)
        assert content(place / "made") == expected
        assert [p.name for p in place.iterdir()] == ["made"]
    assert killed > 0


def test_of_a_benchmark_that_is_replaced_the_old_or_the_new_one_survives(tmp_path, loginfer, undisturbed):
    expected, _ = undisturbed
    place = tmp_path / "place"
    made = place / "made"
    run_here(loginfer, [*BUILD, "--seed", "1", "--out", str(made)])
    old = content(made)
    assert old != expected
    command = [*BUILD, "--force", "--out", str(made)]
    moment = random.Random(2)
    killed = 0
    signs = [(".made.loginfer-old", 0.01), (".made.loginfer-part", 0.4)]
    for sign, wait in moments(2, signs):
        killed += kill_at_a_random_moment(command, moment, sign, wait)
        where = interrupted(made) or made
        assert content(where) in (old, expected)
        run_here(loginfer, [*command, "--seed", "1"])
        assert content(made) == old
        assert [p.name for p in place.iterdir()] == ["made"]
    assert killed > 0
    run_here(loginfer, command)
    assert content(made) == expected


def test_a_killed_suite_goes_on_where_it_was(tmp_path, loginfer):
    reference = tmp_path / "reference" / "suite"
    run_here(loginfer, [*SUITE, "--out", str(reference)])
    expected = content(reference)
    names = sorted(p.name for p in reference.iterdir())
    moment = random.Random(3)
    killed = 0
    signs = [
        ("suite/LogInfer-LUBM-no-type-rb", 1.0),
        ("suite/.SUITE.md.*", 0.001),
        ("suite/.LogInfer-LUBM-no-type-*.loginfer-part", 1.5),
        ("suite/.LogInfer-LUBM-no-type-qg.loginfer-part", 0.6),
    ]
    for number, (sign, wait) in enumerate(moments(2, signs)):
        place = tmp_path / str(number)
        place.mkdir()
        suite = place / "suite"
        command = [*SUITE, "--out", str(suite)]
        killed += kill_at_a_random_moment(command, moment, sign, wait)
        complete = [p for p in suite.glob("LogInfer-*") if p.is_dir()]
        for benchmark in complete:
            load_benchmark(benchmark)
        since = {p: (p / "manifest.json").stat().st_mtime_ns for p in complete}
        run_here(loginfer, command)
        assert {p: (p / "manifest.json").stat().st_mtime_ns for p in complete} == since, "built again"
        assert content(suite) == expected
        assert sorted(p.name for p in suite.iterdir()) == names
    assert killed > 0


def test_the_processes_of_a_killed_suite_end_with_it(tmp_path):
    words = ["suite", "build", "--only", "LUBM-*-rb", "--jobs", "2", "--out", str(tmp_path / "suite")]
    program = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    started = time.monotonic()
    while program.poll() is None and not any(tmp_path.glob("suite/.*.loginfer-part")):
        assert time.monotonic() < started + LONGEST, "the program hangs"
        time.sleep(0.001)
    program.kill()
    # The pipe is closed when the last process that could write to it has ended.
    program.communicate(timeout=LONGEST / 4)
    assert program.returncode == -signal.SIGKILL
