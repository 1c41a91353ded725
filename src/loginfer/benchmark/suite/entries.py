"""The benchmarks of the paper: 37, and the two with random corruption that it compares with them."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from loginfer.benchmark.recipe import Match, Method, Recipe
from loginfer.errors import UnknownNameError

__all__ = ["Entry", "Group", "all_entries", "entries", "groups", "near_misses", "select"]


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

    def recipe(
        self, methods: Sequence[Method], settings: Mapping[str, Any], match: tuple[Match, ...] = ()
    ) -> Recipe:
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
            match=match,
            **settings,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark of the suite.

    Parameters
    ----------
    group
        Graph and pattern.
    method
        For negatives.
    match
        Of near misses: shortcuts on which negatives are matched to positives.
    """

    group: Group
    method: Method
    match: tuple[Match, ...] = ()

    @property
    def negatives(self) -> str:
        """The method as it stands in the name: `nmm` for matched near misses."""
        return f"{self.method}m" if self.match else self.method

    @property
    def name(self) -> str:
        """The name: LogInfer-FB-sym-pa and so on."""
        return f"LogInfer-{self.group.name}-{self.negatives}"

    @property
    def in_paper(self) -> bool:
        """Whether it is one of the paper's 37."""
        return self.method in self.group.methods

    def recipe(self, settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe; `settings` may hold protocol, seed, ratio, min_new and materialised."""
        return self.group.recipe((self.method,), settings, self.match).changed(name=self.name)


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
    """Return all benchmarks of the paper's suite."""
    return tuple(Entry(group, method) for group in groups() for method in (*group.methods, *group.more))


def near_misses() -> tuple[Entry, ...]:
    """Return the same rules and positives with near misses, plain and matched: beside the paper's suite.

    Where symmetry is matched, other rules and positives may be chosen (see `complements`).
    """
    matches: tuple[tuple[Match, ...], ...] = ((), ("popularity", "adjacency"))
    return tuple(Entry(group, "nm", match) for group in groups() for match in matches)


def all_entries() -> tuple[Entry, ...]:
    """Return the paper's benchmarks and those with near misses, by graph and pattern."""
    place = {group.name: number for number, group in enumerate(groups())}
    return tuple(sorted((*entries(), *near_misses()), key=lambda entry: place[entry.group.name]))


def select(only: Sequence[str] = (), among: Sequence[Entry] | None = None) -> tuple[Entry, ...]:
    """Return the benchmarks whose names match one of these patterns, such as `WN-*`; by default all.

    The leading `LogInfer-` may be left out; upper and lower case are the same. Benchmarks with near misses
    are chosen by patterns that match none of the paper's, such as `WN-*-nm`.

    Parameters
    ----------
    only
        Patterns of names.
    among
        What to choose from; by default the paper's benchmarks, and for what they do not have those with
        near misses.

    Raises
    ------
    UnknownNameError
        For a pattern that no name matches.
    """
    first = entries() if among is None else tuple(among)
    every = all_entries() if among is None else first
    if not only:
        return first
    chosen: set[str] = set()
    for pattern in only:
        wanted = pattern.casefold().removeprefix("loginfer-")
        found = _matching(wanted, first) or _matching(wanted, every)
        if not found:
            error = UnknownNameError("benchmark", pattern, [_short(e) for e in every])
            error.hint = error.hint or "`loginfer suite list` shows them all"
            raise error
        chosen.update(found)
    return tuple(entry for entry in every if entry.name in chosen)


def _matching(wanted: str, among: Sequence[Entry]) -> list[str]:
    return [entry.name for entry in among if fnmatch.fnmatchcase(_short(entry).casefold(), wanted)]


def _short(entry: Entry) -> str:
    return entry.name.removeprefix("LogInfer-")
