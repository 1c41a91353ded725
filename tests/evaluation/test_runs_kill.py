"""Killed at any moment (SIGKILL), the same command goes on, and ends with the same bytes.

The moments are random, but the same in every run of the tests. LOGINFER_KILLS=20 makes more of them.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support import SUPPORT

from loginfer.evaluation import load_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")

KILLS = int(os.environ.get("LOGINFER_KILLS", "0"))
PROGRAM = [sys.executable, "-c", "from loginfer.cli import main; main()"]
HERE = SUPPORT
# Whoever waits for a run that hangs shall not wait for ever.
LONGEST = 120.0

# How the system is called and set; a checkpoint is due in every step.
SYSTEMS = {
    "learner": ("run_systems:Learner", ["steps=300", "pause=0.003"]),
    "distmult": ("distmult", ["dimension=16", "epochs=400"]),
}
# What must have appeared beside the run before the clock starts, and within how many seconds the kill comes.
MOMENTS = [
    (".run.loginfer-run/checkpoint.safetensors", 0.8),
    (".run.loginfer-run/trained.safetensors", 0.2),
    (".run.loginfer-run/request.json", 0.2),
    (".run.loginfer-run/predictions.parquet", 0.3),
    (".run.loginfer-run/ranks.parquet", 0.3),
    (".run.loginfer-part", 0.02),
]


@pytest.fixture(scope="module")
def benchmark_folder(tmp_path_factory) -> Path:
    """A small benchmark: what is tested here does not depend on its size."""
    from loginfer.benchmark import Recipe, build, write_benchmark
    from loginfer.kg import KnowledgeGraph

    lines = [(f"a{i}", "knows", f"a{(i * 7 + 1) % 60}") for i in range(60)]
    lines += [(f"a{i}", "likes", f"a{(i * 11 + 3) % 60}") for i in range(60)]
    recipe = Recipe("small", ("symmetry", "composition"), k1=2, k2=40, negatives=("pa",), name="small")
    out = tmp_path_factory.mktemp("benchmark") / "made"
    write_benchmark(build(recipe, KnowledgeGraph.from_names(lines)), out)
    return out


def command(system: str, benchmark: Path, out: Path) -> list[str]:
    name, settings = SYSTEMS[system]
    words = [word for pair in settings for word in ("--set", pair)]
    return ["evaluate", str(benchmark), "--system", name, *words, "--checkpoint", "0",
            "--ranking", "given", "--no-diagnosis", "--out", str(out)]  # fmt: skip


def kill_at_a_random_moment(words: list[str], folder: Path, moment: random.Random, sign: str, wait: float) -> bool:
    """Start the program and kill it some time after a file appears; return whether it was still running."""
    delay = moment.uniform(0, wait)
    program = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=HERE)
    started = time.monotonic()
    while program.poll() is None and not (folder / sign).exists() and time.monotonic() < started + LONGEST:
        time.sleep(0.0005)
    time.sleep(delay)
    program.kill()
    ended = program.wait(timeout=LONGEST) == -signal.SIGKILL
    assert time.monotonic() < started + LONGEST, "the program hangs"
    return ended


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "timing.json"}


@pytest.mark.parametrize(("system", "kills"), [("learner", 1), ("distmult", 2)])
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(
    tmp_path, loginfer, monkeypatch, benchmark_folder, system, kills
):
    monkeypatch.chdir(HERE)
    whole = tmp_path / "undisturbed"
    code, _, messages = loginfer(*command(system, benchmark_folder, whole))
    assert code == 0, messages
    expected = content(whole)
    moment, killed, resumed = random.Random(system), 0, 0
    for number in range(KILLS or kills):
        place = tmp_path / str(number)
        place.mkdir()
        words = command(system, benchmark_folder, place / "run")
        sign, wait = MOMENTS[number % len(MOMENTS)]
        killed += kill_at_a_random_moment(words, place, moment, sign, wait)
        if not (place / "run").exists():
            code, _, messages = loginfer(*words)
            assert code == 0, messages
            resumed += "going on with the unfinished run" in messages
        elif any(place.glob(".run*")):  # killed after it was in its place, before it had tidied up
            assert loginfer(*words)[0] == 2
        load_run(place / "run")
        assert content(place / "run") == expected
        assert [path.name for path in place.iterdir() if not path.name.endswith("lock")] == ["run"]
    assert killed > 0
    assert resumed > 0
