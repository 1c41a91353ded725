"""The paper's figures and what theory says, as data.

Source of the figures: Liu, Cuenca Grau, Horrocks and Kostylev, Revisiting Inferential Benchmarks for Knowledge Graph
Completion (KR 2023), tables 2 to 6. They are percentages as printed there.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Literal, cast, get_args

from loginfer.files import shipped

_NAMES = shipped("report/data/paper-names.toml")
# Our names of the nine systems of the paper, and of its metrics, each with its own, in its order.
SYSTEMS: Mapping[str, str] = _NAMES["systems"]
METRICS: Mapping[str, str] = _NAMES["metrics"]


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One number of a table.

    Parameters
    ----------
    table
        `result-fb-wn`, `result-lubm`, `result-neg` or `result-rule`.
    kg, pattern, negatives
        The benchmark; `negatives` is empty in the table of rules.
    system, metric
        The paper's names.
    value
        In percent.
    """

    table: str
    kg: str
    pattern: str
    negatives: str
    system: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class PaperSizes:
    """One row of the table of benchmarks."""

    kg: str
    pattern: str
    k1: int
    k2: int
    kg_triples: int
    train: int
    valid: int
    test: int


@lru_cache(maxsize=1)
def paper_figures() -> tuple[PaperFigure, ...]:
    """Return every figure of the paper's tables of results, in their order."""
    names = ("table", "kg", "pattern", "negatives", "system", "metric")
    rows = _rows("paper-results.csv")
    return tuple(PaperFigure(**{name: row[name] for name in names}, value=float(row["value"])) for row in rows)


@lru_cache(maxsize=1)
def paper_sizes() -> tuple[PaperSizes, ...]:
    """Return the paper's table of benchmarks."""
    numbers = ("k1", "k2", "kg_triples", "train", "valid", "test")
    rows = _rows("paper-benchmarks.csv")
    return tuple(PaperSizes(row["kg"], row["pattern"], *(int(row[name]) for name in numbers)) for row in rows)


def paper_value(system: str, benchmark: str, metric: str) -> float | None:
    """Return the paper's figure for one of our cells, as a fraction between 0 and 1.

    Parameters
    ----------
    system
        Our name of the system, such as `transe`.
    benchmark
        A name of the suite, such as `LogInfer-FB-sym-pa`.
    metric
        Our name of the metric: a key of `METRICS`.

    Returns
    -------
    float or None
        None where the paper has no such cell.
    """
    parts = benchmark_parts(benchmark)
    if parts is None or system not in SYSTEMS or metric not in METRICS:
        return None
    return _by_cell().get((*parts, SYSTEMS[system], METRICS[metric]))


def benchmark_parts(benchmark: str) -> tuple[str, str, str] | None:
    """Return graph, pattern and method of a benchmark of the suite; None for another name."""
    words = benchmark.removeprefix("LogInfer-").split("-")
    if not benchmark.startswith("LogInfer-") or len(words) < 3:
        return None
    return words[0], "-".join(words[1:-1]), words[-1]


@lru_cache(maxsize=1)
def _by_cell() -> dict[tuple[str, str, str, str, str], float]:
    # The table of negatives repeats cells of the main one; both print the same. That of rules names no negatives.
    return {(f.kg, f.pattern, f.negatives, f.system, f.metric): f.value / 100 for f in paper_figures()}


def paper_recovery(system: str, benchmark: str, share: str) -> float | None:
    """Return the paper's `eps_ent` or `eps_cont` of a miner, as a fraction; None where it has none.

    The paper's table of rules has one figure for a pattern, whatever the negatives: its miners use none.
    """
    parts = benchmark_parts(benchmark)
    return None if parts is None or system not in SYSTEMS else _by_cell().get((*parts[:2], "", SYSTEMS[system], share))


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = (resources.files("loginfer.report") / "data" / name).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())


Answer = Literal["yes", "no", "unknown"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)


@dataclass(frozen=True, slots=True)
class Expressiveness:
    """Whether a system can express a pattern.

    Parameters
    ----------
    system
        Our name of the system.
    pattern
        The paper's short name: `sym`, `inver`, `hier`, `comp`, `inter`, `trian`, `diam`.
    can
        `yes`, `no` or `unknown`.
    why
        The reason, in a sentence.
    source
        Where it is proved, or what it follows from.
    """

    system: str
    pattern: str
    can: Answer
    why: str
    source: str


def expressiveness(system: str, pattern: str) -> Expressiveness | None:
    """Return whether a system can express a pattern; None if the table has no such entry."""
    return theory().get((system, pattern))


@lru_cache(maxsize=1)
def theory() -> dict[tuple[str, str], Expressiveness]:
    """Return the whole table, by system and pattern."""
    table = shipped("report/data/expressiveness.toml")
    sources: dict[str, str] = table["source"]
    return {
        (system, pattern): Expressiveness(
            system, pattern, cast(Answer, cell["can"]), cell["why"], sources[cell["source"]]
        )
        for system, patterns in table.items()
        if system != "source"
        for pattern, cell in patterns.items()
    }
