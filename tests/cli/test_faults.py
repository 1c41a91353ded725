"""What an unkind machine does to a command: one clear message and nothing half-written, or it works all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.made_up_benchmarks import family
from tests.support.real_program import PROGRAM

from loginfer.benchmark import write_benchmark

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are of Unix")


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("faults") / "family"
    write_benchmark(family(), out)
    return out


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("faults") / "graph.tsv"
    path.write_text("".join(f"entity{i}\tr{i % 5}\tentity{i * 7 % 89}\n" for i in range(2000)))
    return path


def limited(name: str, value: int) -> None:
    import resource

    resource.setrlimit(getattr(resource, name), (value, value))


def run(*words: object, limit: tuple[str, int] | None = None, env: dict[str, str] | None = None):
    """Run the program, with a limit of its process or another environment."""
    return subprocess.run(
        [*PROGRAM, "-q", *map(str, words)],
        capture_output=True, text=True, check=False, timeout=120, env=(env or dict(os.environ)) | {"COLUMNS": "1000"},
        preexec_fn=None if limit is None else lambda: limited(*limit),
    )  # fmt: skip


def commands(bench: Path, graph: Path) -> dict[str, list[object]]:
    return {
        "build": ["build", graph, "--pattern", "symmetry", "--k1", "1", "--allow-fewer", "--out"],
        "convert": ["kg", "convert", graph],
        "evaluate": ["evaluate", bench, "--system", "simpbl", "--negatives", "pa", "--out"],
        "mine": ["mine", graph, "--miner", "exact", "--out"],
    }


@pytest.mark.parametrize("name", ["convert", "evaluate"])
def test_a_disk_that_takes_no_more_is_one_message_and_leaves_nothing(tmp_path, bench, graph, name):
    done = run(*commands(bench, graph)[name], tmp_path / "result.nt", limit=("RLIMIT_FSIZE", 2000))
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"error: cannot write `{tmp_path}")
    assert done.stderr.count("\n") == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write to")
@pytest.mark.parametrize("name", ["build", "convert", "evaluate", "mine"])
def test_a_place_that_cannot_be_written_to_is_one_message(loginfer, bench, graph, name):
    code, _, messages = loginfer(*commands(bench, graph)[name], "/proc/self/result.nt")
    assert code == 2
    assert messages.startswith("error: cannot write `/proc/self/result.nt`: ")
    assert messages.count("\n") == 2


def test_too_few_file_handles_are_one_message(bench):
    done = run(
        "evaluate", bench, "--negatives", "pa", "--system", "simpbl,oracle", "--jobs", "2", limit=("RLIMIT_NOFILE", 10)
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == (
        "error: too many open files\n  hint: let the program open more files (ulimit -n), or use fewer --jobs\n"
    )


def test_no_home_is_needed(graph):
    environment = {name: value for name, value in os.environ.items() if name != "HOME" and "XDG" not in name}
    done = run("kg", "show", graph, env=environment)
    assert done.returncode == 0, done.stderr
    done = run("kg", "show", graph, env=environment | {"HOME": "/dev/null/none"})
    assert done.returncode == 0, done.stderr


def test_two_evaluations_into_one_folder_are_told_apart(tmp_path, bench, loginfer):
    from loginfer.files import locked

    with locked(tmp_path / "run", "run-lock"):
        code, _, messages = loginfer(*commands(bench, bench)["evaluate"], tmp_path / "run")
    assert code == 2
    assert "is being written by another run" in messages
    assert not any(path.is_dir() for path in tmp_path.iterdir())
