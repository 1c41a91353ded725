"""`mine`: rules of a benchmark's training triples or of a graph, in one call, and the file they are written to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from loginfer.benchmark import Benchmark, load_benchmark
from loginfer.errors import InputError, UnknownNameError
from loginfer.files import atomic_write
from loginfer.frames import Rows
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic.rule import ScoredRule, ZeroRule
from loginfer.progress import ProgressChoice, shown
from loginfer.settings import configure
from loginfer.systems.interface import choose_method, training_view
from loginfer.systems.registry import SystemEntry, systems
from loginfer.systems.rules.mined import MinedRules, Miner, as_benchmark
from loginfer.systems.rules.texts import path_rule, rule_lines

KIND = "rule miner"


@dataclass(frozen=True)
class Mined(Rows):
    """The rules that a miner found, best first.

    Parameters
    ----------
    rules
        The rules over the ids of the graph.
    graph
        Has their names.
    notes
        What a user should know.
    """

    rules: MinedRules
    graph: KnowledgeGraph
    notes: tuple[str, ...] = ()
    columns = ("rule", "predictions", "correct", "confidence")

    def __len__(self) -> int:
        return len(self.rules)

    def best(self, count: int) -> list[ScoredRule | ZeroRule]:
        """Return the best rules, by confidence, then by correct predictions."""
        paths = self.rules.paths
        rows = np.arange(len(paths))
        if len(paths) > count:
            # Only rules that can be among the best are sorted.
            least = np.partition(paths.confidence, len(paths) - count)[len(paths) - count]
            rows = np.flatnonzero(paths.confidence >= least)
        rows = rows[paths.take(rows).best_first][:count]
        rules: list[ScoredRule | ZeroRule] = [path_rule(paths, row, self.graph) for row in rows.tolist()]
        others = sorted(self.rules.others, key=lambda rule: (-(rule.confidence or 0), -(rule.correct or 0)))[:count]
        return sorted([*rules, *others], key=lambda rule: -(rule.confidence or 0))[:count]

    def rows(self) -> Iterator[tuple[str, int | None, int | None, float | None]]:
        """Yield the text and the measures of each rule; a rule without a body has nothing before its arrow."""
        for rule in self.best(len(self)):
            yield str(rule), rule.predictions, rule.correct, rule.confidence

    def save(self, path: str | Path, to: str | None = None, *, force: bool = False) -> tuple[str, tuple[str, ...]]:
        """Write the rules to a file; return the dialect, and what was left out.

        Parameters
        ----------
        path
            The file.
        to
            `anyburl` or `arrow`; by default AnyBURL's dialect, if it can express the rules.
        force
            Replace a file that is there.
        """
        dialect, lines, notes = self._lines(None if to is None else to.casefold())
        with atomic_write(Path(path), force=force) as stream:
            stream.writelines(f"{line}\n" for line in lines)
        return dialect, notes

    def _lines(self, to: str | None) -> tuple[str, list[str], tuple[str, ...]]:
        # AnyBURL's format has no place for weights: they are only left out if that dialect was asked for.
        weighted = any(scored.extra for scored in self.rules.others)
        if to == "anyburl" or (to is None and not weighted):
            lost = ("weights and other measures of the rules are left out: anyburl cannot express them",)
            try:
                return "anyburl", list(rule_lines(self.rules, self.graph, "anyburl")), lost if weighted else ()
            except InputError:
                if to is not None:
                    raise
        bodiless = self.rules.paths.length == 0
        rules = replace(self.rules, paths=self.rules.paths.take(~bodiless))
        count = int(bodiless.sum())
        left_out = f"left out {count:,} rule{'s' * (count > 1)} without a body: arrow cannot express them"
        return "arrow", list(rule_lines(rules, self.graph, "arrow")), (left_out,) if count else ()


def mine(
    source: Benchmark | KnowledgeGraph | str | Path,
    miner: str = "exact",
    *,
    negatives: str | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: ProgressChoice = None,
    **settings: Any,
) -> Mined:
    """Mine rules in a benchmark's training triples, or in a graph.

    Parameters
    ----------
    source
        A benchmark or its folder, of which only P_train is mined; or a graph, its name or path.
    miner
        `exact`, `anyburl`, `rulen`, `contrast` or `external`.
    negatives
        Whose negatives a miner may see, if there are several.
    out
        A file for the rules; by default nothing is written.
    force
        Replace a file that is there.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.
    **settings
        Settings of the miner (see `loginfer systems show`).

    Examples
    --------
    >>> import loginfer
    >>> graph = loginfer.KnowledgeGraph.from_names([("ann", "knows", "bob"), ("ann", "likes", "bob")])
    >>> loginfer.mine(graph, min_support=1, max_length=1).to_frame()["rule"].tolist()
    ['(x,likes,y) -> (x,knows,y)', '(x,knows,y) -> (x,likes,y)']
    """
    configured: Miner = configure(miner_named(miner).load(), settings)
    if isinstance(source, str | Path) and is_benchmark(source):
        source = load_benchmark(source)
    value = source if isinstance(source, Benchmark) else load_graph(source)
    view = view_to_mine(value, negatives, configured.needs_negatives)
    with shown(progress) as show:
        mining = configured.begin(view)
        while mining.advance():
            if show is not None:
                show(*mining.progress())
    mined = Mined(mining.rules(), view.graph, tuple(getattr(mining, "notes", ())))
    if out is not None:
        mined.save(out, force=force)
    return mined


def miner_named(name: str) -> SystemEntry:
    """Return a miner by name; other systems are not accepted."""
    miners = [entry for entry in systems() if entry.kind == KIND]
    for entry in miners:
        if name.strip().casefold() in (entry.name.casefold(), *(alias.casefold() for alias in entry.aliases)):
            return entry
    raise UnknownNameError("miner", name, [entry.name for entry in miners], where="--miner")


def view_to_mine(
    source: Benchmark | KnowledgeGraph, negatives: str | None, compares: bool, name: str = "graph"
) -> Benchmark:
    """Return what a miner may see of a benchmark; a graph becomes a benchmark of this name."""
    if isinstance(source, Benchmark):
        # A miner that ignores negatives need not be told which of several.
        method = choose_method(source, negatives) if compares or negatives is not None else None
        if compares and method is None:
            raise _no_negatives(f"the benchmark `{source.name}` has none")
        return training_view(source, method)
    if compares:
        raise _no_negatives(f"`{name}` is a graph without any")
    if negatives is not None:
        message = f"`{name}` is a graph and has no negatives"
        raise InputError(message, where="--negatives", hint="give a benchmark's folder")
    if not len(source):
        raise InputError(f"`{name}` holds no triples")
    return as_benchmark(source, name)


def _no_negatives(reason: str) -> InputError:
    return InputError(
        f"this miner compares positives with negatives, and {reason}",
        hint="give the folder of a benchmark with negatives (see `loginfer build`), or use another miner",
    )


def is_benchmark(path: str | Path) -> bool:
    """Say whether this is a folder with training triples; test triples beside them are never mined."""
    from loginfer.benchmark.folder.manifest import Role, roles

    try:
        names = [file.name for file in Path(path).iterdir()] if Path(path).is_dir() else []
    except OSError:
        return False  # reading it will say what is wrong
    return "manifest.json" in names or Role("train") in roles(names)
