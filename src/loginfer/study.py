"""From a graph to an answer: which systems learn which patterns on it, and where they only take shortcuts.

A study looks at the graph, builds a benchmark for each pattern that has support in it, with negatives that shortcuts do
not solve where there are such, evaluates systems on all of them, and makes a report. Every step is a command of this
program in a process of its own; what is done is kept, so the same study goes on where it was. The folder holds:

    study.json                  what was asked, which negatives each benchmark has and why, what was left out
    commands.sh                 the commands, to go on by hand
    benchmarks/<pattern>/       the benchmarks
    runs/<pattern>/<system>/    the runs
    report/                     the answer; begin with index.html
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, get_args

from loginfer._version import __version__
from loginfer.benchmark.construction.rules import NO_HEAD_FITS
from loginfer.benchmark.folder.card import counted
from loginfer.benchmark.recipe import Head
from loginfer.documents import Size, read_document
from loginfer.errors import InputError, LogInferError, OutputError, UnknownNameError
from loginfer.files import write_text
from loginfer.frames import Rows
from loginfer.kg.formats.base import ReadOptions
from loginfer.logic.patterns import PATTERN_NAMES, pattern_named
from loginfer.progress import Progress, ProgressChoice, shown
from loginfer.reproduction.planning import PARTICIPANTS, budget_named, given_settings
from loginfer.reproduction.running import Command, Commands, in_parallel, stable_json

if TYPE_CHECKING:
    from loginfer.report.verdicts import CellVerdict

FORMAT = "loginfer-study"

# A benchmark with fewer negatives in test says too little: the next kind of negatives is tried.
LEAST_TESTED = 30

# With the quick budget embeddings see about so many triples, each at most so often.
TRIPLES_SEEN, MOST_EPOCHS = 2_000_000, 100

# Kinds of negatives, the hardest first, with the options of `loginfer build` that ask for them.
NEGATIVES: dict[str, tuple[str, ...]] = {
    "twins": ("--negatives", "nm", "--match", "all", "--select", "twins"),
    "near misses": ("--negatives", "nm"),
    "position-aware": ("--negatives", "pa"),
}


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a study does: rules per pattern, conclusions per rule, seeds, and systems by default."""

    k1: int
    k2: int
    seeds: int
    systems: tuple[str, ...]


BUDGETS = {
    "quick": Budget(10, 500, 1, ("transe", "rotate", "complex", "anyburl", "contrast", "oracle")),
    "full": Budget(20, 2000, 3, tuple(name for name in PARTICIPANTS if name != "r-gcn")),
}


@dataclass(frozen=True)
class Study(Rows):
    """What a study did; its rows are the answer, a row for each pattern and system.

    Parameters
    ----------
    folder
        Where everything is.
    document
        What `study.json` holds.
    """

    folder: Path
    document: Mapping[str, Any]

    columns = ("pattern", "system", "balanced_accuracy", "best_shortcut", "outcome", "learned", "rules")

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield accuracies beside the best shortcut's, what that comes to, and how many of the rules were learned."""
        for (pattern, system), verdict in self.cells.items():
            shortcut = None if verdict.shortcut is None else verdict.shortcut.value
            learned = verdict.rules.get("learned", 0)
            yield pattern, system, verdict.value, shortcut, verdict.outcome, learned, verdict.tested

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        from loginfer.report.verdicts import verdicts_in

        return verdicts_in(list(self.cells.values())).headline

    @property
    def report(self) -> Path:
        """The page to begin with."""
        return self.folder / "report" / "index.html"

    @property
    def commands(self) -> Path:
        """The commands that it used."""
        return self.folder / "commands.sh"

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], CellVerdict]:
        """What each system made of each pattern."""
        from loginfer.report.collection import collect
        from loginfer.report.facts import ReportContext, ReportOptions
        from loginfer.report.verdicts import cell_verdicts

        collection = collect([self.folder / "runs", self.folder / "benchmarks"])
        verdicts = cell_verdicts(ReportContext(collection, ReportOptions(audits=False)))
        places = [verdict.cell.first.path.relative_to(self.folder / "runs").parts for verdict in verdicts]
        return {(place[0], verdict.cell.system): verdict for place, verdict in zip(places, verdicts, strict=True)}

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; figures are fractions between 0 and 1."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows()]
        return {"report": str(self.report), **self.document, "headline": self.headline, "answer": rows}


def study(
    kg: str | Path,
    out: str | Path,
    *,
    systems: Iterable[str] = (),
    patterns: Iterable[str] = (),
    budget: str = "quick",
    head: str = "typed",
    seed: int = 0,
    jobs: int | None = None,
    tell: Callable[[str], None] = lambda message: None,
    progress: ProgressChoice = None,
    command: Command | None = None,
    **reading: Any,
) -> Study:
    """Study a graph: build benchmarks, evaluate systems on them, and make a report.

    Parameters
    ----------
    kg
        A graph of the catalogue by its name, or a file, folder or archive of triples.
    out
        The study's folder. A study that is there goes on; systems and patterns can be added to it.
    systems
        Names of systems (see `loginfer systems list`); by default those of the study that is there, or of the budget.
    patterns
        Names of patterns; by default those of the study, or the paper's seven. Those without support are left out.
    budget
        `quick` or `full`: short training and 10 rules per pattern, or all of it and three seeds.
    head
        Where heads come from that a body leaves open: see `Recipe`.
    seed
        Of benchmarks and systems.
    jobs
        Commands at a time; by default one per core.
    tell
        Called with what was done, line by line.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.
    command
        Runs one command of this program, given its words; by default in a process of its own.
    **reading
        How to read the graph, fields of `ReadOptions`; by default literals are dropped.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.study("staff.csv", "study", systems=["rotate", "contrast"]).headline  # doctest: +SKIP
    'Contrast learns composition and inversion; RotatE learns composition.'

    Raises
    ------
    InputError
        If the graph cannot be read, a name is unknown, or no pattern has support.
    OutputError
        If the folder holds something else.
    """
    options = ReadOptions(**{"literals": "drop", **reading})
    budget = budget_named(budget)
    plan = BUDGETS[budget]
    request = {
        "kg": str(kg),
        "reading": _changed_options(options),
        "budget": budget,
        "head": head,
        "seed": seed,
        "version": __version__,
    }
    chosen_systems, chosen_patterns = _systems(systems), _patterns(patterns)
    if head not in get_args(Head):
        raise UnknownNameError("way to find heads", head, get_args(Head), where="--head")
    if Path(out).resolve() == Path(kg).resolve():
        # A folder comes before a graph of the catalogue with its name.
        hint = f"choose another one, such as {out}-study"
        raise OutputError(f"the folder `{out}` would be taken for the graph", where="--out", hint=hint)
    folder = _Folder(Path(out), request)
    _look(str(kg), options, chosen_patterns or folder.document["patterns"] or _patterns(PATTERN_NAMES), folder, tell)
    commands = Commands()
    steps = _Steps(folder, plan, command or commands, commands.stop, tell)
    steps.add_systems(chosen_systems or (() if folder.document["evaluations"] else plan.systems))
    with shown(progress) as show:
        steps.run(jobs or os.cpu_count() or 1, show or (lambda what, done, total: None))
        tell("writing the report")
        steps.report(str(kg))
    return Study(folder.path, folder.document)


def _systems(names: Iterable[str]) -> tuple[str, ...]:
    from loginfer.systems.registry import find_system

    return tuple(dict.fromkeys(find_system(name.strip()).name for name in names))


def _patterns(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(pattern_named(name.strip()).name) for name in names))


def _changed_options(options: ReadOptions) -> dict[str, Any]:
    """Return the options that are not the defaults of a command."""
    values = {option.name: getattr(options, option.name) for option in fields(options)}
    changed = {option.name: values[option.name] for option in fields(options) if values[option.name] != option.default}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()}


def _option_words(options: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", ",".join(value) if isinstance(value, list) else str(value)]
    return words


def _look(kg: str, reading: ReadOptions, patterns: Iterable[str], folder: _Folder, tell: Callable[[str], None]) -> None:
    """Say what is in the graph, and which patterns have support in it; write that down."""
    from loginfer.engine import open_engine
    from loginfer.kg.catalogue import open_graph
    from loginfer.logic import parse_pattern

    new_patterns = [name for name in patterns if name not in folder.document["patterns"]]
    if not new_patterns:
        return
    loaded = open_graph(kg, reading)
    graph = loaded.graph
    sizes = {"triple": len(graph), "constant": len(graph.consts), "relation": len(graph.rels), "type": len(graph.types)}
    tell(f"{kg}: {', '.join(counted(size, what) for what, size in sizes.items())}")
    for remark in loaded.report.notes:
        tell(remark)
    if skipped := loaded.report.skipped:
        tell(f"skipped {counted(skipped, 'bad line')}, such as {loaded.report.examples[0]}")
    engine = open_engine(graph)
    for name in new_patterns:
        support = engine.rank_bodies(parse_pattern(name), 1, complete=False).support
        enough = len(support) > 0 and int(support[0]) >= LEAST_TESTED
        entry: dict[str, Any] = {"largest_support": int(support[0]) if len(support) else 0}
        if not enough:
            entry["left_out"] = "no body has a witness" if not len(support) else f"no body has {LEAST_TESTED} witnesses"
            tell(f"{name}: left out, {entry['left_out']}")
        folder.document["patterns"][name] = entry
    if folder.document.setdefault("triples", len(graph)) != len(graph):
        message = f"`{folder.path}` holds a study of `{kg}` when it had {folder.document['triples']:,} triples"
        raise OutputError(message, hint="choose a new folder: figures of both could not stand in one table")
    if all("left_out" in entry for entry in folder.document["patterns"].values()):
        raise InputError(f"no pattern has support in `{kg}`", hint="give more triples, or other patterns")
    folder.save()


class _Evaluation(TypedDict):
    systems: list[str]
    settings: dict[str, Any]


class _Document(TypedDict):
    format: Literal["loginfer-study"]
    request: dict[str, Any]
    patterns: dict[str, dict[str, Any]]
    evaluations: list[_Evaluation]
    failed: list[dict[str, Any]]
    triples: NotRequired[Size]


class _Folder:
    """The folder of a study, and what its `study.json` holds."""

    def __init__(self, path: Path, request: Mapping[str, Any]) -> None:
        self.path = path
        self.file = path / "study.json"
        self.document: dict[str, Any] = {"format": FORMAT, "request": dict(request)}
        self.document |= {"patterns": {}, "evaluations": [], "failed": []}
        if self.file.exists():
            self.document |= self._read(request)
        elif path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise OutputError(f"`{path}` exists already, and is no study", hint="choose a new folder")

    def _read(self, request: Mapping[str, Any]) -> dict[str, Any]:
        document: dict[str, Any] = read_document(self.file, _Document, what="study", hint="choose a new folder")
        earlier = document["request"]
        for name, value in request.items():
            if earlier.get(name) != value:
                before, now = (shlex.join(_option_words(v)) if name == "reading" else v for v in (earlier[name], value))
                hint = "choose a new folder, or give the options of that study to go on with it"
                raise OutputError(f"`{self.path}` holds a study with {name} {before!r}, not {now!r}", hint=hint)
        return document

    def save(self) -> None:
        """Write `study.json`."""
        write_text(self.file, stable_json(self.document), force=True)

    def benchmark(self, pattern: str) -> Path:
        return self.path / "benchmarks" / pattern


@dataclass
class _Steps:
    """The steps of a study, as commands."""

    folder: _Folder
    plan: Budget
    command: Command
    stop: Callable[[], None]
    tell: Callable[[str], None]
    words: dict[tuple[str, str], Sequence[str]] = field(default_factory=dict)

    def add_systems(self, systems: Iterable[str]) -> None:
        """Write down which systems are evaluated together, with which settings; those that are there keep theirs."""
        evaluations = self.folder.document["evaluations"]
        there = [system for evaluation in evaluations for system in evaluation["systems"]]
        if added := [system for system in systems if system not in there]:
            evaluations.append({"systems": added, "settings": self._settings(added)})

    def run(self, jobs: int, show: Progress) -> None:
        """Build a benchmark for each pattern, then evaluate all systems on all of them."""
        entries = self.folder.document["patterns"]
        self.folder.document["failed"] = []

        def remaining() -> list[str]:
            # Bodies with more atoms take longer: they come first.
            return [name for name in reversed(entries) if "left_out" not in entries[name]]

        builds = [partial(self._build, name) for name in remaining()]
        show("building benchmarks", 0, len(builds))
        for done, (pattern, entry) in enumerate(in_parallel(builds, jobs, self.stop), start=1):
            entries[pattern] = entry
            self.folder.save()
            show("building benchmarks", done, len(builds))
        if not remaining():
            raise InputError("no benchmark can be built from this graph", hint=f"`{self.folder.file}` says why")
        each = max(1, jobs // len(remaining()))
        evaluations = list(enumerate(self.folder.document["evaluations"]))
        # Processes that begin with different systems do not wait for the same kernels.
        tasks = [
            partial(self._evaluate, name, *entry, place * max(1, len(entry[1]["systems"]) // jobs), each)
            for place, name in enumerate(remaining())
            for entry in evaluations
        ]
        show("evaluating systems on them", 0, len(tasks))
        for done, failures in enumerate(in_parallel(tasks, jobs, self.stop), start=1):
            self.folder.document["failed"] += failures
            show("evaluating systems on them", done, len(tasks))
        self.folder.save()

    def _build(self, pattern: str) -> tuple[str, dict[str, Any]]:
        """Build a benchmark with the hardest negatives of which there are enough; return what to write down."""
        entry = dict(self.folder.document["patterns"][pattern])
        if "negatives" in entry and (self.folder.benchmark(pattern) / "manifest.json").exists():
            self._remember_build(pattern, entry["negatives"])
            return pattern, entry
        tried: dict[str, str] = {}
        entry["tried"] = tried
        for kind in NEGATIVES:
            words = self._remember_build(pattern, kind)
            try:
                about = json.loads(self.command([*words, "--force", "--json"]))
            except LogInferError as error:
                tried[kind] = error.message
                continue
            tested = about["negatives"][words[words.index("--negatives") + 1]]["test"]["reached"]
            if tested >= LEAST_TESTED:
                why = f"; {', '.join(tried)} are scarce here" if tried else ""
                count, k1 = len(about["rules"]), self.plan.k1
                rules = f"{k1} rules" if count == k1 else f"only {count} of {k1} rules"
                self.tell(f"{pattern}: {rules}, {kind}, {tested:,} in test{why}")
                for remark in filter(lambda remark: NO_HEAD_FITS in remark, about["notes"]):
                    self.tell(remark)
                return pattern, {**entry, "negatives": kind, "rules": count, "tested": tested}
            tried[kind] = f"only {tested} in test"
        del self.words["build", pattern]
        self.tell(f"{pattern}: left out, no benchmark can be built: {next(reversed(tried.values()))}")
        return pattern, {**entry, "left_out": "; ".join(f"{kind}: {why}" for kind, why in tried.items())}

    def _remember_build(self, pattern: str, kind: str) -> list[str]:
        request = self.folder.document["request"]
        words = ["build", request["kg"], *_option_words(request["reading"]), "--pattern", pattern]
        words += ["--k1", str(self.plan.k1), "--k2", str(self.plan.k2), *NEGATIVES[kind], "--allow-fewer"]
        words += ["--head", request["head"], "--seed", str(request["seed"])]
        words += ["--name", f"{Path(request['kg']).name.split('.')[0]}-{pattern}"]
        words += ["--out", str(self.folder.benchmark(pattern))]
        self.words["build", pattern] = words
        return words

    def _evaluate(
        self, pattern: str, number: int, evaluation: Mapping[str, Any], first: int, jobs: int
    ) -> list[dict[str, str]]:
        """Evaluate systems on a benchmark, beginning with one of them; runs that are there are kept.

        Returns what failed.
        """
        systems = evaluation["systems"]
        turned = [systems[(first + i) % len(systems)] for i in range(len(systems))]
        words = ["evaluate", str(self.folder.benchmark(pattern)), "--system", ",".join(turned)]
        for name, value in evaluation["settings"].items():
            words += ["--set", f"{name}={value}"]
        words += ["--seed", str(self.folder.document["request"]["seed"]), "--jobs", str(jobs)]
        words += [] if self.plan.seeds == 1 else ["--seeds", str(self.plan.seeds)]
        words += ["--out", str(self.folder.path / "runs" / pattern)]
        self.words[f"evaluate {number}", pattern] = words
        try:
            answers = json.loads(self.command([*words, "--json"], (1,)))
        except LogInferError as error:
            answers = [{"system": system, "error": error.message} for system in systems]
        texts, failures = [], []
        for answer in sorted(answers, key=lambda answer: systems.index(answer["system"])):
            system, accuracy = answer["system"], answer.get("metrics", {}).get("balanced_accuracy")
            if "error" in answer:
                failures.append({"pattern": pattern, "system": system, "reason": answer["error"]})
                texts.append(f"{system} failed: {answer['error']}")
            elif accuracy is not None:
                texts.append(f"{system} {100 * accuracy:.1f} %")
        self.tell(f"{pattern}: {', '.join(texts)}")
        return failures

    def _settings(self, systems: Sequence[str]) -> dict[str, int]:
        """Return what the budget changes in the systems' settings; those of one name are the same for all."""
        request = self.folder.document["request"]
        settings: dict[str, int] = {}
        for system in systems:
            for name, value in given_settings(system, Path(request["kg"]).name, request["budget"]).items():
                # Small graphs are learned in a moment: they are seen more often.
                least = min(MOST_EPOCHS, TRIPLES_SEEN // self.folder.document["triples"]) if name == "epochs" else 0
                settings[name] = max(value, least, settings.get(name, 0))
        return settings

    def report(self, kg: str) -> None:
        """Make the report."""
        path = self.folder.path
        words = ["report", str(path / "runs"), str(path / "benchmarks"), "--title", f"What systems learn on {kg}"]
        # Audits take as long as all the rest of it: `loginfer audit` gives them.
        words += ["--no-audit", "--out", str(path / "report")]
        self.words["report", ""] = words
        self.command([*words, "--force"])
        self._write_commands()

    def _write_commands(self) -> None:
        """Write down the commands, benchmark by benchmark."""
        order = list(self.folder.document["patterns"])
        lines = ["#!/bin/sh", "# The commands of this study; run them where the study was begun.", "set -e"]
        keys = sorted(self.words, key=lambda key: (order.index(key[1]) if key[1] else len(order), key[0]))
        lines += [shlex.join(["loginfer", *self.words[key]]) for key in keys]
        write_text(self.folder.path / "commands.sh", "\n".join(lines) + "\n", force=True)
