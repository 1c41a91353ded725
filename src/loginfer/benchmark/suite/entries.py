"""The benchmarks of the paper: 37, and the two with random corruption that it compares with them."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from loginfer.benchmark.recipe import Method, Recipe
from loginfer.errors import UnknownNameError

__all__ = ["Entry", "Group", "entries", "groups", "select"]


@dataclass(frozen=True, slots=True)
class Group:
    """The benchmarks of one graph and pattern: they share rules and positives.

    Parameters
    ----------
    name
        Graph and pattern, such as `FB-sym`.
    kg
        The graph.
    pattern, rules
        The pattern, or the rule set.
    k1, k2
        As in the paper's table of benchmarks.
    methods
        For negatives, in the paper's 37.
    more
        Methods that the paper compares beside the 37.
    paper
        Sizes in the paper: `kg`, `train`, `valid`, `test`.
    remark
        Why sizes differ from the paper's, if they do.
    """

    name: str
    kg: str
    k1: int
    k2: int
    methods: tuple[Method, ...]
    paper: Mapping[str, int]
    pattern: str | None = None
    rules: str | None = None
    more: tuple[Method, ...] = ()
    remark: str = ""

    def recipe(self, methods: Sequence[Method], settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe of this group's benchmarks."""
        patterns = () if self.pattern is None else (self.pattern,)
        return Recipe(
            self.kg,
            patterns,
            self.rules,
            self.k1,
            self.k2,
            allow_fewer=True,
            negatives=tuple(methods),
            **settings,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark of the suite."""

    group: Group
    method: Method

    @property
    def name(self) -> str:
        """The name: LogInfer-FB-sym-pa and so on."""
        return f"LogInfer-{self.group.name}-{self.method}"

    @property
    def in_paper(self) -> bool:
        """Whether it is one of the paper's 37."""
        return self.method in self.group.methods

    def recipe(self, settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe; `settings` may hold protocol, seed, ratio, min_new and materialised."""
        return self.group.recipe((self.method,), settings).changed(name=self.name)


@lru_cache(maxsize=1)
def groups() -> tuple[Group, ...]:
    """Return the graphs and patterns of the paper's table of benchmarks, in its order."""
    text = (resources.files("loginfer.benchmark") / "data" / "suite.toml").read_text(encoding="utf-8")
    found = []
    for group in tomllib.loads(text)["group"]:
        settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in group.items()}
        found.append(Group(**settings))
    return tuple(found)


def entries() -> tuple[Entry, ...]:
    """Return all benchmarks of the suite."""
    return tuple(Entry(group, method) for group in groups() for method in (*group.methods, *group.more))


def select(only: Sequence[str] = ()) -> tuple[Entry, ...]:
    """Return the benchmarks whose names match one of these patterns, such as `WN-*`; by default all.

    The leading `LogInfer-` may be left out; upper and lower case are the same.

    Raises
    ------
    UnknownNameError
        For a pattern that no name matches.
    """
    every = entries()
    if not only:
        return every
    chosen: set[str] = set()
    for pattern in only:
        wanted = pattern.casefold().removeprefix("loginfer-")
        found = [e.name for e in every if fnmatch.fnmatchcase(_short(e).casefold(), wanted)]
        if not found:
            error = UnknownNameError("benchmark", pattern, [_short(e) for e in every])
            error.hint = error.hint or "`loginfer suite list` shows them all"
            raise error
        chosen.update(found)
    return tuple(entry for entry in every if entry.name in chosen)


def _short(entry: Entry) -> str:
    return entry.name.removeprefix("LogInfer-")
