"""The explorer: every test triple with the decision of every system, and why it is true or not.

For each benchmark there is an index, and shards with triples, stories and scores. They hold small
integers and short lists, since a browser loads them as they are. The fields of a shard:

labels   what people call some of them: a text by the index of the name
places   indices of its triples in P_test followed by N_test, from 0
names    constants in order, front-coded: how much each shares with the previous one (in UTF-16 units), and the rest
s, r, o  indices into `names`, into the index's `relations`, into `names`
label    "1" for a positive, "0" for a negative, one letter a triple
why      for a positive one list a rule, [rule, witness…], the witness as indices into `names`;
         for a negative [source, position, rule, kept]; null where that is not known
scores, ranks, right
         one entry a system: the scores, how many thousandths of the test triples have a lower one, and "1"
         where its decision is right ("?" without a threshold)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import POSITIONS
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.evaluation.predictions import labelled_triples
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
# At most so many rules of a conclusion come with their witness; the others are only named.
_WITNESSES = 5


@dataclass(frozen=True)
class _ScoredSystem:
    """The scores and decisions of a system on all test triples, and its entry in the index."""

    scores: npt.NDArray[np.float64]
    ranks: Ints
    right: npt.NDArray[np.bool_] | None
    header: Mapping[str, Any]


def slug_of(context: ReportContext, name: str) -> str:
    """Return the name of a benchmark in addresses."""
    return PurePosixPath(context.benchmark_page(name)).stem


def explorer_files(context: ReportContext, name: str, label: str) -> Iterator[DataFile]:
    """Yield a benchmark's files, the index last.

    Parameters
    ----------
    context
        What the report is made from.
    name, label
        The report's name for the benchmark, and how to show it.
    """
    cells = context.collection.of_benchmark(name)
    from_folder = context.benchmark(name)
    benchmark = cells[0].first.labelled()[0] if from_folder is None else from_folder
    positive, negative = labelled_triples(benchmark, cells[0].method, "test")
    triples = np.vstack([positive, negative])
    relations = benchmark.graph.relations[:]
    systems = [_scored(context, cell, relations) for cell in cells]
    story_index = _StoryIndex(benchmark, cells[0].method)
    all_indices = even_indices(len(triples), context.options.explorer)
    size = max(1, min(SHARD, _SCORES // max(len(systems), 1)))
    folder = f"data/explorer/{slug_of(context, name)}"
    shards = []
    for number, start in enumerate(range(0, len(all_indices), size)):
        indices = all_indices[start : start + size]
        path = f"{folder}/{number}.js"
        shards.append([path, int(indices[0]), int(indices[-1]), len(indices)])
        yield DataFile(path, _shard(benchmark, triples, len(positive), indices, systems, story_index))
    yield DataFile(
        f"{folder}/index.js",
        {
            "name": label,
            "page": context.benchmark_page(name),
            "own": cells[0].first.benchmark,
            "folder": from_folder is not None,
            "positives": len(positive),
            "negatives": len(negative),
            "shards": shards,
            "relations": relations,
            "labels": _labels(relations, benchmark),
            "asked": np.unique(triples[:, 1]).tolist(),
            "sources": list(SOURCES),
            "positions": list(POSITIONS),
            "rules": [_rule(rule, benchmark.graph.type_predicate or "type") for rule in benchmark.program],
            "systems": [system.header for system in systems],
        },
    )


def even_indices(total: int, limit: int) -> Ints:
    """Return at most so many indices that are spread evenly over a list, the first and the last among them."""
    if total <= limit:
        return np.arange(total)
    if limit == 1:
        return np.zeros(1, dtype=np.int64)
    return np.arange(limit, dtype=np.int64) * (total - 1) // (limit - 1)


# -- systems ------------------------------------------------------------------------------------


def _scored(context: ReportContext, cell: Cell, relations: Sequence[str]) -> _ScoredSystem:
    """Read the scores and decisions of a system, of the run with the smallest seed."""
    decisions = decisions_of(cell.first)
    scores = decisions.scores
    ordered = np.sort(scores)
    middles = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    ranks = (500 * middles) // max(len(scores), 1)
    header = {
        "name": cell.system,
        "page": context.system_page(cell.system),
        "seed": cell.first.seed,
        "seeds": len(cell.runs),
        "threshold": _threshold(cell.first.thresholds(), ordered, relations),
    }
    return _ScoredSystem(scores, ranks.astype(np.int64), decisions.right, header)


def _threshold(
    thresholds: Mapping[str, Any] | None, ordered: npt.NDArray[np.float64], relations: Sequence[str]
) -> dict[str, Any] | None:
    """Return a threshold with its rank, and those of relations that have their own."""
    if thresholds is None:
        return None

    def ranked(value: float) -> list[float]:
        below = int(np.searchsorted(ordered, value, "left"))
        return [_four_digits(value), 1000 * below // max(len(ordered), 1)]

    by_relation = thresholds.get("relations", {})
    indices = {name: index for index, name in enumerate(relations)}
    return {
        "all": ranked(float(thresholds["value"])),
        "own": {str(indices[r]): ranked(float(value)) for r, value in by_relation.items() if r in indices},
    }


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


# -- stories ------------------------------------------------------------------------------------


def _rule(rule: Rule, type_predicate: str) -> dict[str, Any]:
    """Return a rule's texts, and its atoms with variables as indices into a witness."""
    numbers: dict[Term, int] = {variable: number for number, variable in enumerate(rule.variables)}
    atoms = []
    for atom in rule.atoms:
        subject, object_ = (numbers.get(term, getattr(term, "name", "")) for term in atom.terms)
        atoms.append([subject, type_predicate if atom.is_type else str(atom.relation), object_])
    return {
        "parts": [str(part) for part in rule.body],
        "head": str(rule.head),
        "variables": [str(variable) for variable in rule.variables],
        "atoms": atoms,
    }


class _StoryIndex:
    """Derivations of P_test and origins of N_test, prepared for all test triples at once."""

    def __init__(self, benchmark: Benchmark, method: str | None) -> None:
        self._values: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._pairs: list[tuple[int, int, int]] = []  # rule, and where its witness begins and ends
        positives = len(benchmark.positives.test)
        self._first: Ints = np.zeros(positives + 1, dtype=np.int64)  # where the pairs of each positive begin
        provenance = benchmark.provenance
        if provenance is not None:
            keys = benchmark.graph.keys
            pairs = np.flatnonzero(provenance.split[provenance.conclusion] == 2)
            conclusions = keys.pack(provenance.triples[provenance.conclusion[pairs]])
            # Both are in order.
            rows = np.searchsorted(keys.pack(benchmark.positives.test), conclusions)
            self._first = np.searchsorted(rows, np.arange(positives + 1))
            columns = (provenance.rule[pairs], provenance.offsets[pairs], provenance.offsets[pairs + 1])
            self._pairs = list(zip(*(column.tolist() for column in columns), strict=True))
            self._values = provenance.values
        self._origins: list[tuple[int, ...]] = []
        origins = None if method is None else benchmark.negatives[method].origins.get("test")
        if origins is not None:
            # A near miss keeps all parts but the one that is edited.
            kept = np.where(origins.edit > 0, ~(1 << np.maximum(origins.part, 0)), origins.kept)
            fields = (origins.source, origins.position, origins.rule, kept)
            self._origins = list(zip(*(column.tolist() for column in fields), strict=True))

    def derivations(self, row: int) -> list[tuple[int, list[int]]]:
        """Return the rules that derive a triple of P_test, each with its witness."""
        pairs = self._pairs[self._first[row] : self._first[row + 1]]
        return [
            (rule, self._values[start:stop].tolist() if number < _WITNESSES else [])
            for number, (rule, start, stop) in enumerate(pairs)
        ]

    def origin(self, row: int) -> list[int] | None:
        """Return where a triple of N_test came from: source, position, rule, kept parts."""
        return list(self._origins[row]) if self._origins else None


# -- shards -------------------------------------------------------------------------------------


def _shard(
    benchmark: Benchmark,
    triples: Triples,
    positives: int,
    indices: Ints,
    systems: Sequence[_ScoredSystem],
    story_index: _StoryIndex,
) -> dict[str, Any]:
    """Return the triples at these indices with their stories, scores and decisions."""
    rows = triples[indices]
    stories: list[Any] = [
        story_index.derivations(index) if index < positives else story_index.origin(index - positives)
        for index in indices.tolist()
    ]
    is_positive = indices < positives
    witnesses = [
        value
        for story, positive in zip(stories, is_positive.tolist(), strict=True)
        if positive
        for _, values in story
        for value in values
    ]
    constants = np.unique(np.concatenate([rows[:, 0], rows[:, 2], np.array(witnesses, dtype=rows.dtype)]))
    numbers = {entity: index for index, entity in enumerate(constants.tolist())}
    why = [
        ([[rule, *(numbers[v] for v in values)] for rule, values in story] or None) if positive else story
        for story, positive in zip(stories, is_positive.tolist(), strict=True)
    ]
    names = benchmark.graph.entities.names(constants)
    return {
        "places": indices.tolist(),
        "names": front_coded(names),
        "labels": _labels(names, benchmark),
        "s": np.searchsorted(constants, rows[:, 0]).tolist(),
        "r": rows[:, 1].tolist(),
        "o": np.searchsorted(constants, rows[:, 2]).tolist(),
        "label": _letters(is_positive),
        "why": why,
        "scores": [[_four_digits(v) for v in system.scores[indices].tolist()] for system in systems],
        "ranks": [system.ranks[indices].tolist() for system in systems],
        "right": ["?" * len(indices) if s.right is None else _letters(s.right[indices]) for s in systems],
    }


def _labels(names: Sequence[str], benchmark: Benchmark) -> dict[str, str]:
    labels = benchmark.graph.labels
    return {str(index): labels[name] for index, name in enumerate(names) if name in labels}


def _letters(mask: npt.NDArray[np.bool_]) -> str:
    return "".join("1" if yes else "0" for yes in mask.tolist())


def front_coded(names: Sequence[str]) -> list[int | str]:
    """Return for each name in turn how much it shares with the previous one, in UTF-16 units, and the rest."""
    coded: list[int | str] = []
    previous = ""
    for name in names:
        shared = len(commonprefix([previous, name]))  # noqa: RUF071 - letter by letter
        coded += [len(name[:shared].encode("utf-16-le")) // 2, name[shared:]]
        previous = name
    return coded


def pages(context: ReportContext) -> Iterator[Page | DataFile]:
    """Yield the files of each benchmark and the page that shows them; nothing if the explorer is off."""
    if context.options.explorer <= 0:
        return
    for name, label in context.labels.items():
        context.tell(f"test triples of {name}")
        yield from explorer_files(context, name, label)
    content = {"benchmarks": [(slug_of(context, name), label) for name, label in context.labels.items()]}
    yield Page("explorer.html", "Explorer", "explorer.html", content, "explorer", ("explorer.js",))
