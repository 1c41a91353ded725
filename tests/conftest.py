"""What all tests share: where the real graphs are, and how the program is run."""

import os
from functools import cached_property
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.report_runs import small_runs, suite_runs  # noqa: F401 - fixtures of the report and its command

# The same examples in every run, so that a failure means a change; `make explore` looks for new ones.
# How long an example takes says more about the machine than about us.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", settings.get_profile("same"), derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the archives of FB15k-237 and WN18RR; tests without it are skipped."""
    for folder in os.environ.get("LOGINFER_DATA", "").split(os.pathsep):
        if folder and (Path(folder) / "WN18RR.tar.gz").exists():
            return Path(folder)
    pytest.skip("needs FB15k-237 and WN18RR in the folder named by LOGINFER_DATA")


@pytest.fixture(scope="session", autouse=True)
def few_rounds():
    """Learn shortcuts in a moment: nearly everywhere they only stand beside what is tested."""
    from loginfer.benchmark import learned_shortcut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learned_shortcut, "ROUNDS", 5)
        yield


@pytest.fixture(scope="module")
def all_rounds():
    """Learn shortcuts as the program does, for tests of what they reach."""
    from loginfer.benchmark import learned_shortcut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learned_shortcut, "ROUNDS", 200)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiling_goes_unsaid():
    """Which test compiles a kernel first depends on the machine."""
    from loginfer import kernels

    kernels._announce.announced = True


@pytest.fixture
def loginfer(capsys, monkeypatch):
    """Run the program in this process; returns its exit code, output and messages, without lines of progress.

    Lines are as long as they need to be, whatever paths tests have; a test of widths sets COLUMNS itself.
    """
    from loginfer.cli import main

    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr("loginfer.cli.common.FIRST_LINE", float("inf"))

    def run(*words: object) -> tuple[int, str, str]:
        code = 0
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def loads(monkeypatch):
    """Counts how often a stored graph is brought into memory."""
    from loginfer.engine.sql.session import StoredGraph

    counted = []
    load = StoredGraph.triples.func

    def counting(graph):
        counted.append(graph.table)
        return load(graph)

    spy = cached_property(counting)
    spy.__set_name__(StoredGraph, "triples")
    monkeypatch.setattr(StoredGraph, "triples", spy)
    return counted
