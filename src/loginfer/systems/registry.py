"""Which systems there are: the built-in ones, those of installed packages, and anybody's `module:Class`.

What is built in stands in `systems.toml`. A package offers its own under the entry point group
`loginfer.systems`, where a name leads to a class. Any model of PyKEEN is `pykeen:Model`. Nothing is imported
before a system is used. Settings that were found to do well, by system and graph, stand in `tuned.toml`, with
how they were found: on validation triples, never on test. What papers publish stands in `published.toml`.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LogInferError, UnknownNameError, caused_by_interruption
from loginfer.files import shipped
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.randomness import hash_order

ENTRY_POINTS = "loginfer.systems"

_TARGET = re.compile(r"[\w.]+:[A-Za-z_]\w*")

# What the names of PyKEEN's models begin with.
_PYKEEN = "pykeen:"


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """A system that can be chosen by name.

    Parameters
    ----------
    name
        What users type, in any case.
    target
        Its class, as `module:Class`.
    title
        Its name in print.
    kind
        `baseline`, `shortcut`, `embedding`, `graph neural network`, `rule miner`; `PyKEEN model`, and `plug-in` for
        others' systems.
    summary
        What it does, in one line.
    reference
        The paper that describes it.
    captures
        For each pattern whether theory says that it can be captured: `yes`, `no`, `not known`.
    aliases
        Other names.
    """

    name: str
    target: str
    title: str
    kind: str
    summary: str = ""
    reference: str = ""
    captures: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    def load(self) -> type[Any]:
        """Import its class.

        Raises
        ------
        LogInferError
            If the module cannot be imported, or has no such class.
        """
        system_class = object_at(self.target, "--system")
        if not isinstance(system_class, type) or not callable(getattr(system_class, "fit", None)):
            raise InputError(
                f"`{self.target}` is not a system: it is no class with a method `fit`",
                where="--system",
                hint="see `Your own system` in the documentation",
            )
        return cast(type[Any], system_class)


def systems() -> list[SystemEntry]:
    """Return the systems that have a name: the built-in ones, then those of installed packages."""
    return [*_built_in().values(), *_plugged_in()]


def find_system(name: str) -> SystemEntry:
    """Return a system by name, in any case, by `pykeen:Model`, or by `module:Class`.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    stripped = name.strip()
    if f"{stripped}:".casefold().startswith(_PYKEEN):
        return _of_pykeen(stripped[len(_PYKEEN) :].strip())
    if _TARGET.fullmatch(stripped):
        return SystemEntry(stripped, stripped, stripped.split(":")[1], "plug-in")
    entries = systems()
    for entry in entries:
        if stripped.casefold() in (spelt.casefold() for spelt in (entry.name, *entry.aliases)):
            return entry
    names = [spelt for entry in entries for spelt in (entry.name, *entry.aliases)]
    raise UnknownNameError("system", name, names, where="--system")


@cache
def _built_in() -> dict[str, SystemEntry]:
    entries = {}
    for name, about in shipped("systems/systems.toml").items():
        more = {key: value for key, value in about.items() if key not in ("class", "aliases")}
        entries[name] = SystemEntry(name, about["class"], aliases=tuple(about.get("aliases", ())), **more)
    return entries


def _plugged_in() -> list[SystemEntry]:
    """Return the systems of installed packages; a built-in name is not given away."""
    points = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)
    built_in = _built_in()
    return [
        SystemEntry(point.name, point.value, point.name, "plug-in", f"from {point.value}")
        for point in points
        if point.name.casefold() not in built_in and _TARGET.fullmatch(point.value)
    ]


def _of_pykeen(name: str) -> SystemEntry:
    """Return the system of a model of PyKEEN."""
    # The bridge imports this package, so this package knows it by name only.
    model = importlib.import_module("loginfer.pykeen").model_system(name).__name__
    ours = _built_in().get(model.casefold(), SystemEntry("", "", "", ""))
    target, title = f"loginfer.pykeen.system:{model}", f"{model} (PyKEEN)"
    summary = "A model of PyKEEN, trained in PyKEEN's loop with the benchmark's negatives."
    return SystemEntry(f"{_PYKEEN}{model}", target, title, "PyKEEN model", summary, ours.reference, ours.captures)


def object_at(target: str, option: str) -> Any:
    """Return what stands at `module:name`, which an option of the command line gives."""
    if not _TARGET.fullmatch(target):
        raise InputError(f"`{target}` is no `module:name`", where=option)
    module_name, name = target.split(":")
    module = _import(module_name, target, option)
    if not hasattr(module, name):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise UnknownNameError(f"class in `{module_name}`", name, classes, where=option)
    return getattr(module, name)


def _import(name: str, target: str, option: str) -> ModuleType:
    """Import a module, the current folder included, as Python itself would for a script there.

    The folder stays on the path, but at its end: the module may import others when it is used.
    """
    folder = str(Path.cwd())
    added = folder not in sys.path
    if added:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except LogInferError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"no module `{error.name}` for `{target}`",
                where=option,
                hint=f"write {target.replace('.py:', ':')}, without the file's ending"
                if name.endswith(".py")
                else "start from the folder the module is in, or install it",
            ) from error
        raise _failed(target, error) from error
    except BaseException as error:  # also SystemExit: it would end the program as if all were well
        if caused_by_interruption(error):
            raise
        raise _failed(target, error) from error
    finally:
        if added:
            sys.path.remove(folder)
            sys.path.append(folder)


def _failed(target: str, error: BaseException) -> InputError:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    if isinstance(error, SyntaxError) and error.filename is not None:  # nothing of that file was executed
        where = f"{error.filename}:{error.lineno}"
    return InputError(
        f"importing `{target}` failed: {type(error).__name__}: {error}",
        where=where,
        hint="mend the module, or install what it needs",
    )


# What follows the name of a graph where settings are for standard splits of it: benchmarks without negatives; and what
# those are called that are for splits of any graph.
SPLIT, SPLITS = " split", "standard splits"


def tuned_for(entry: SystemEntry, benchmark: Benchmark) -> str | None:
    """Return which tuned settings of a system a benchmark gets: its graph's; first those for splits, if it is one."""
    graph, tuned = known_graph(benchmark), tuned_graphs(entry)
    names = [graph] if benchmark.negatives else [f"{graph}{SPLIT}", SPLITS, graph]
    return next((name for name in names if name in tuned), None)


def tuned_settings(entry: SystemEntry, benchmark: Benchmark) -> dict[str, Any]:
    """Return the tuned settings of a system for a benchmark; nothing where none were found."""
    return tuned_graphs(entry).get(tuned_for(entry, benchmark) or "", {})


def tuned_graphs(entry: SystemEntry) -> dict[str, dict[str, Any]]:
    """Return the tuned settings of a system, by what they were tuned for."""
    tuned = shipped("systems/tuned.toml")["settings"].get(entry.name, {})
    return {graph: dict(values) for graph, values in tuned.items()}


def known_graph(benchmark: Benchmark) -> str | None:
    """Return the graph that a benchmark was built from, if settings were tuned for it.

    It is recognised by its triples, wherever the benchmark comes from: most of a sample of the known graph is
    there, and not much else. WN18, which contains WN18RR and its inverse relations, is another graph.
    """
    for name, known in shipped("systems/tuned.toml")["graphs"].items():
        ids = _ids(benchmark.graph, known["sample"])
        if (ids >= 0).all(axis=1).mean() > _MOST:  # names alone tell most other graphs apart, and cost nothing
            graph = benchmark.kg or benchmark.graph
            share = graph.contains(ids).mean()
            if share > _MOST and share * known["triples"] > _NEARLY_ALL * len(graph):
                return str(name)
    return None


# Shares: of a known graph that a benchmark must have (a standard split trains on nine tenths, and literals may be left
# out), and of the benchmark that the known graph must have (one that others built may add a quarter of conclusions).
_MOST, _NEARLY_ALL = 0.5, 0.7

# Triples by which a graph is recognised.
_SAMPLE = 32


def graph_entry(benchmark: Benchmark) -> dict[str, Any]:
    """Return by what a benchmark's graph is recognised: its name, its size, and a sample of its triples."""
    if (known := known_graph(benchmark)) is not None:
        return {"name": known, **shipped("systems/tuned.toml")["graphs"][known]}
    graph = benchmark.kg or benchmark.everything  # of a standard split what was split
    sample = graph.triples[np.sort(hash_order(graph.packed, 0, _SAMPLE))]
    name = benchmark.name if benchmark.recipe is None else Path(benchmark.recipe.kg).stem
    return {"name": name, "triples": len(graph), "sample": ["\t".join(triple) for triple in graph.names(sample)]}


def _ids(graph: KnowledgeGraph, sample: Sequence[str]) -> Triples:
    """Return triples of names, with tabs between them, as ids; -1 for a name that the graph does not have."""
    vocabularies = (graph.entities, graph.relations, graph.entities)
    rows = [[names.get(name) for names, name in zip(vocabularies, line.split("\t"), strict=False)] for line in sample]
    return np.array([[-1 if i is None else i for i in row] for row in rows], dtype=np.int32)


def published_figures(system: str, benchmark_sum: str) -> dict[str, Any]:
    """Return what is published about a system on a benchmark: filtered ranking metrics, and their `source`.

    The benchmark is recognised by `loginfer.evaluation.runs.benchmark_sum`. Empty where nothing is known.
    """
    published = shipped("systems/published.toml")
    figures = published["figures"].get(published["benchmarks"].get(benchmark_sum), {}).get(system)
    return {**figures, "source": published["sources"][figures["source"]]} if figures else {}
