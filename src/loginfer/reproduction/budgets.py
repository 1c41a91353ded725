"""How much work a cell may be: `full` is what is shipped, `quick` a part of it. And how long that takes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from loginfer.errors import UnknownNameError

__all__ = ["BUDGETS", "analysis_seconds", "budget_named", "build_seconds", "cell_seconds", "given_settings"]

BUDGETS = ("quick", "full")


def budget_named(name: str) -> str:
    """Return a budget by name, in any case."""
    folded = name.strip().casefold()
    if folded not in BUDGETS:
        raise UnknownNameError("budget", name, BUDGETS, where="--budget")
    return folded


@cache
def given_settings(system: str, graph: str, budget: str) -> Mapping[str, int]:
    """Return the settings that a budget changes for a system on a graph.

    Parameters
    ----------
    system
        Our name of it.
    graph
        The graph's name, for which settings may have been tuned.
    budget
        `quick` or `full`.
    """
    from loginfer.systems.registry import find_system
    from loginfer.systems.settings import settings_of
    from loginfer.systems.tuning import tuned_graphs

    shares = _shares(system, budget)
    if not shares:
        return {}
    entry = find_system(system)
    known, tuned = settings_of(entry.load()), tuned_graphs(entry).get(graph, {})
    return {
        name: max(1, round(share * tuned.get(name, known[name].default))) for name, share in shares.items()
    }


def cell_seconds(system: str, graph: str, budget: str) -> float:
    """Return roughly how many CPU seconds a system takes on a benchmark of a graph."""
    costs = _data("costs.toml")
    shares = _shares(system, budget)
    work = costs["seconds"][system][graph] * (max(shares.values()) if shares else 1.0)
    return float(costs["overhead"] + work)


def build_seconds(graph: str, method: str = "pa") -> float:
    """Return roughly how many CPU seconds it takes to build a benchmark of a graph."""
    costs = _data("costs.toml")
    return float(costs["build"][graph] + (costs["near_misses"][graph] if method == "nm" else 0.0))


def analysis_seconds(system: str) -> float:
    """Return roughly how many CPU seconds it takes to compare the rules of a miner with a benchmark's."""
    return float(_data("costs.toml")["analysis"][system])


def _shares(system: str, budget: str) -> dict[str, float]:
    found: dict[str, float] = _data("budgets.toml")[budget].get(system, {})
    return found


@cache
def _data(name: str) -> dict[str, Any]:
    text = (resources.files("loginfer.reproduction") / "data" / name).read_text(encoding="utf-8")
    return tomllib.loads(text)
