"""Killed at any moment (SIGKILL), `mine` and `report` leave a whole result or none, and no traces for the next run."""

from __future__ import annotations

import random
import sys

import pytest
from tests.support.kills import KILLS, content, kill_at_a_random_moment, moments, run_here

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")

# What appears while the result is written, and within how many seconds the kill comes.
SIGNS = {"mine": (".result.*.part", 0.02), "report": (".result.loginfer-part", 1.5)}

# About how long either command takes.
SECONDS = 4.0


@pytest.fixture(scope="module")
def commands(small_runs, tmp_path_factory) -> dict[str, list[str]]:
    """Commands without their --out."""
    graph = tmp_path_factory.mktemp("graph") / "graph.tsv"
    graph.write_text("".join(f"e{i * i % 97}\tr{i % 5}\te{i * 7 % 89}\n" for i in range(2000)))
    return {
        "mine": ["mine", str(graph), "--miner", "exact", "--max-length", "2"],
        "report": ["report", str(small_runs / "runs")],
    }


@pytest.mark.parametrize(("name", "kills"), [("mine", 2), ("report", 1)])
def test_a_killed_command_can_be_repeated(tmp_path, loginfer, commands, name, kills):
    whole = tmp_path / "whole" / "result"
    run_here(loginfer, [*commands[name], "--out", str(whole)])
    expected = content(whole.parent)
    moment, killed = random.Random(name), 0
    for number, (sign, wait) in enumerate(moments(kills, [SIGNS[name], ("", SECONDS)])):
        place = tmp_path / str(number)
        place.mkdir()
        command = [*commands[name], "--out", str(place / "result")]
        killed += kill_at_a_random_moment(command, moment, sign, wait)
        if (place / "result").exists():
            assert {n: c for n, c in content(place).items() if not n.startswith(".")} == expected
            command.append("--force")
        run_here(loginfer, command)
        assert content(place) == expected
        assert [path.name for path in place.iterdir()] == ["result"]
    assert killed > 0 or not KILLS
