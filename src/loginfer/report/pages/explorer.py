"""The explorer: every test triple with what every system says about it, and why it is true or not.

For each benchmark there is an index, and shards with triples, stories and scores. Everything is
small whole numbers and short lists, since a browser loads it as it is. What a shard means:

places   where its triples are among P_test and N_test, counted from 0
names    constants in order, each as what it shares with the one before (in UTF-16 units) and the rest
s, r, o  places in `names`, in the index's `relations`, in `names`
label    "1" for a positive, "0" for a negative, one letter a triple
why      for a positive one list a rule, [rule, witness…], the witness as places in `names`;
         for a negative [source, position, rule, kept]; null where that is not known
scores, ranks, right
         one entry a system: the scores, how many thousandths of the test triples have a lower one, and "1"
         where its decision is right ("?" without a threshold)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import POSITIONS
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.evaluation.predictions import labelled_triples
from loginfer.report.facts import benchmark_labels
from loginfer.report.statistics import decisions_of
from loginfer.report.values import DataFile, Page

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.kg import Triples
    from loginfer.logic.rule import Rule, Term
    from loginfer.report.collection import Cell
    from loginfer.report.facts import ReportContext


Ints = npt.NDArray[np.int64]

# Triples in a shard; fewer where there are many systems, so that a shard stays small.
SHARD = 2000
_SCORES = 24_000
# So many rules of a conclusion are told with their witness; the others are named.
_WITNESSES = 5


@dataclass(frozen=True)
class _Scored:
    """What a system said about all test triples."""

    scores: npt.NDArray[np.float64]
    ranks: Ints
    right: npt.NDArray[np.bool_] | None
    about: Mapping[str, Any]


def slug_of(context: ReportContext, name: str) -> str:
    """Return what a benchmark is called in addresses."""
    return PurePosixPath(context.benchmark_page(name)).stem


def explorer_files(context: ReportContext, name: str, label: str) -> Iterator[DataFile]:
    """Yield a benchmark's files, the index last.

    Parameters
    ----------
    context
        What the report works from.
    name, label
        The report's name for the benchmark, and how to show it.
    """
    cells = context.collection.of_benchmark(name)
    benchmark = context.benchmark(name)
    known = cells[0].first.labelled()[0] if benchmark is None else benchmark
    positive, negative = labelled_triples(known, cells[0].method, "test")
    triples = np.vstack([positive, negative])
    relations = known.graph.relations[:]
    systems = [_scored(context, cell, relations) for cell in cells]
    why = _Stories(known, cells[0].method)
    chosen = even_places(len(triples), context.options.explorer)
    size = max(1, min(SHARD, _SCORES // max(len(systems), 1)))
    folder = f"data/explorer/{slug_of(context, name)}"
    shards = []
    for number, start in enumerate(range(0, len(chosen), size)):
        places = chosen[start : start + size]
        path = f"{folder}/{number}.js"
        shards.append([path, int(places[0]), int(places[-1]), len(places)])
        yield DataFile(path, _shard(known, triples, len(positive), places, systems, why))
    yield DataFile(
        f"{folder}/index.js",
        {
            "name": label,
            "page": context.benchmark_page(name),
            "own": cells[0].first.benchmark,
            "folder": benchmark is not None,
            "positives": len(positive),
            "negatives": len(negative),
            "shards": shards,
            "relations": relations,
            "asked": np.unique(triples[:, 1]).tolist(),
            "sources": list(SOURCES),
            "positions": list(POSITIONS),
            "rules": [_rule(rule, known.graph.type_predicate or "type") for rule in known.program],
            "systems": [system.about for system in systems],
        },
    )


def even_places(total: int, most: int) -> Ints:
    """Return at most so many places that lie evenly in a list, the first and the last among them."""
    if total <= most:
        return np.arange(total)
    if most == 1:
        return np.zeros(1, dtype=np.int64)
    return np.arange(most, dtype=np.int64) * (total - 1) // (most - 1)


# -- systems ------------------------------------------------------------------------------------


def _scored(context: ReportContext, cell: Cell, relations: Sequence[str]) -> _Scored:
    """Read what a system said, with the smallest seed."""
    said = decisions_of(cell.first)
    scores = np.concatenate([said.positive, said.negative])
    ordered = np.sort(scores)
    middles = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    ranks = (500 * middles) // max(len(scores), 1)
    about = {
        "name": cell.system,
        "page": context.system_page(cell.system),
        "seed": cell.first.seed,
        "seeds": len(cell.runs),
        "threshold": _threshold(cell.first.thresholds(), ordered, relations),
    }
    return _Scored(scores, ranks.astype(np.int64), said.right, about)


def _threshold(
    known: Mapping[str, Any] | None, ordered: npt.NDArray[np.float64], relations: Sequence[str]
) -> dict[str, Any] | None:
    """Return a threshold with its rank, and those of relations that have their own."""
    if known is None:
        return None

    def ranked(value: float) -> list[float]:
        below = int(np.searchsorted(ordered, value, "left"))
        return [_four_digits(value), 1000 * below // max(len(ordered), 1)]

    own = known.get("relations", {})
    places = {name: place for place, name in enumerate(relations)}
    return {
        "all": ranked(float(known["value"])),
        "own": {str(places[r]): ranked(float(value)) for r, value in own.items() if r in places},
    }


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


# -- stories ------------------------------------------------------------------------------------


def _rule(rule: Rule, type_predicate: str) -> dict[str, Any]:
    """Return a rule's texts, and its atoms with variables as places in a witness."""
    places: dict[Term, int] = {variable: place for place, variable in enumerate(rule.variables)}
    atoms = []
    for atom in rule.atoms:
        subject, object_ = (places.get(term, getattr(term, "name", "")) for term in atom.terms)
        atoms.append([subject, type_predicate if atom.is_type else str(atom.relation), object_])
    return {
        "parts": [str(part) for part in rule.body],
        "head": str(rule.head),
        "variables": [str(variable) for variable in rule.variables],
        "atoms": atoms,
    }


class _Stories:
    """Why triples are where they are, for all test triples at once."""

    def __init__(self, benchmark: Benchmark, method: str | None) -> None:
        self._values: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._pairs: list[tuple[int, int, int]] = []  # rule, and where its witness begins and ends
        self._positives = len(benchmark.positives.test)
        self._first: Ints = np.zeros(self._positives + 1, dtype=np.int64)
        provenance = benchmark.provenance
        if provenance is not None:
            keys = benchmark.graph.keys
            pairs = np.flatnonzero(provenance.split[provenance.conclusion] == 2)
            conclusions = keys.pack(provenance.triples[provenance.conclusion[pairs]])
            # Both are in order.
            places = np.searchsorted(keys.pack(benchmark.positives.test), conclusions)
            self._first = np.searchsorted(places, np.arange(self._positives + 1))
            columns = (provenance.rule[pairs], provenance.offsets[pairs], provenance.offsets[pairs + 1])
            self._pairs = list(zip(*(column.tolist() for column in columns), strict=True))
            self._values = provenance.values
        self._origins: list[tuple[int, ...]] = []
        origins = None if method is None else benchmark.negatives[method].origins.get("test")
        if origins is not None:
            named = (origins.source, origins.position, origins.rule, origins.kept)
            self._origins = list(zip(*(column.tolist() for column in named), strict=True))

    def derivations(self, place: int) -> list[tuple[int, list[int]]]:
        """Return the rules that derive a triple of P_test, each with its witness."""
        found = self._pairs[self._first[place] : self._first[place + 1]]
        return [
            (rule, self._values[start:stop].tolist() if number < _WITNESSES else [])
            for number, (rule, start, stop) in enumerate(found)
        ]

    def origin(self, place: int) -> list[int] | None:
        """Return where a triple of N_test came from: source, position, rule, kept parts."""
        return list(self._origins[place]) if self._origins else None


# -- shards -------------------------------------------------------------------------------------


def _shard(
    benchmark: Benchmark, triples: Triples, positives: int, places: Ints, systems: Sequence[_Scored], stories: _Stories
) -> dict[str, Any]:
    """Return some triples with all that is known about them."""
    rows = triples[places]
    told: list[Any] = [
        stories.derivations(place) if place < positives else stories.origin(place - positives)
        for place in places.tolist()
    ]
    is_positive = places < positives
    witnesses = [
        value
        for story, yes in zip(told, is_positive.tolist(), strict=True)
        if yes
        for _, values in story
        for value in values
    ]
    used = np.unique(np.concatenate([rows[:, 0], rows[:, 2], np.array(witnesses, dtype=rows.dtype)]))
    local = {entity: place for place, entity in enumerate(used.tolist())}
    why = [
        ([[rule, *(local[v] for v in values)] for rule, values in story] or None) if yes else story
        for story, yes in zip(told, is_positive.tolist(), strict=True)
    ]
    return {
        "places": places.tolist(),
        "names": front_coded(benchmark.graph.entities.names(used)),
        "s": np.searchsorted(used, rows[:, 0]).tolist(),
        "r": rows[:, 1].tolist(),
        "o": np.searchsorted(used, rows[:, 2]).tolist(),
        "label": _letters(is_positive),
        "why": why,
        "scores": [[_four_digits(v) for v in system.scores[places].tolist()] for system in systems],
        "ranks": [system.ranks[places].tolist() for system in systems],
        "right": ["?" * len(places) if s.right is None else _letters(s.right[places]) for s in systems],
    }


def _letters(mask: npt.NDArray[np.bool_]) -> str:
    return "".join("1" if yes else "0" for yes in mask.tolist())


def front_coded(names: Sequence[str]) -> list[int | str]:
    """Return names in turn as how much each shares with the one before, in UTF-16 units, and the rest."""
    found: list[int | str] = []
    before = ""
    for name in names:
        shared = 0
        for one, other in zip(before, name, strict=False):
            if one != other:
                break
            shared += 1
        found += [len(name[:shared].encode("utf-16-le")) // 2, name[shared:]]
        before = name
    return found


def pages(context: ReportContext) -> Iterator[Page | DataFile]:
    """Yield the files of each benchmark and the page that shows them; nothing if no triples are wanted."""
    if context.options.explorer <= 0:
        return
    names = context.collection.benchmark_names
    labels = benchmark_labels(names)
    for name in names:
        context.tell(f"test triples of {name}")
        yield from explorer_files(context, name, labels[name])
    benchmarks = [(slug_of(context, name), labels[name]) for name in names]
    content = {"benchmarks": benchmarks}
    yield Page("explorer.html", "Explorer", "explorer.html", content, "explorer", ("explorer.js",))
