"""Score files: how a system in any language is evaluated, in two steps.

`export_queries` writes the triples whose scores are wanted, without saying which are true. Whoever has scores
writes them beside the triples, and `read_scores` reads them: every triple once, with a finite number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import places_of
from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, OutputError
from loginfer.evaluation.predictions import labelled_triples
from loginfer.evaluation.score_tables import ScoreTable, read_score_table
from loginfer.evaluation.values import LabelledScores, Predictions
from loginfer.kg import KnowledgeGraph
from loginfer.kg.formats.source import split_compression
from loginfer.kg.triples import merged_keys
from loginfer.kg.vocabulary import Vocabulary

__all__ = ["export_queries", "queries", "read_scores"]

Keys: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.int64]

# So many examples of each mistake are shown.
SHOWN = 3


def queries(benchmark: Benchmark, method: str | None) -> KnowledgeGraph:
    """Return the triples whose scores are wanted: P_valid, N_valid, P_test and N_test as one set.

    They are in the order of their names, which says nothing about who is in which set.
    """
    keys = benchmark.graph.keys
    parts = [t for split in ("valid", "test") for t in labelled_triples(benchmark, method, split)]
    return benchmark.graph.with_triples(keys.unpack(merged_keys(*(keys.pack(part) for part in parts))))


def export_queries(benchmark: Benchmark, method: str | None, path: str | Path, *, force: bool = False) -> int:
    """Write the triples whose scores are wanted; return how many there are.

    Parameters
    ----------
    benchmark, method
        The benchmark, and whose negatives.
    path
        A file that ends in `.tsv` or `.txt` (three columns, no header) or `.parquet` (subject, relation,
        object); `.gz` or `.zst` behind it compresses.
    force
        Replace an existing file.
    """
    from loginfer.kg.load import write_graph

    ending = Path(split_compression(Path(path).name)[0]).suffix.lower()
    if ending not in (".tsv", ".txt", ".parquet"):
        raise OutputError(f"`{path}` is no name for a file of queries", hint="let it end in .tsv or .parquet")
    wanted = queries(benchmark, method)
    write_graph(wanted, path, force=force)
    return len(wanted)


def read_scores(path: str | Path, benchmark: Benchmark, method: str | None) -> Predictions:
    """Read a score file: subject, relation, object, score for every triple of `export_queries`.

    Parameters
    ----------
    path
        TSV, with or without a header line, or Parquet; also compressed (`.gz`, `.zst`).
    benchmark, method
        What the scores are about.

    Raises
    ------
    InputError
        For triples that are missing, unknown or scored twice, and for scores that are no finite numbers,
        with counts and the first examples.
    """
    table = read_score_table(Path(path))
    problems = [*_bad_scores(table)]
    ids = [
        _ids(column, vocabulary)
        for column, vocabulary in zip(
            table.names,
            (benchmark.graph.entities, benchmark.graph.relations, benchmark.graph.entities),
            strict=True,
        )
    ]
    triples = np.stack(ids, axis=1).astype(np.int32)
    wanted = queries(benchmark, method)
    known = (triples >= 0).all(axis=1)
    keys = np.where(known, wanted.keys.pack(triples), -1)
    found, places = places_of(wanted.packed, keys)
    problems += [*_strangers(table, triples, known, found, benchmark)]
    problems += [*_repeated(table, np.flatnonzero(found), places)]
    problems += [*_missing(table, wanted, places[found])]
    if problems:
        _complain(table, problems)
    scores = np.empty(len(wanted), dtype=np.float64)
    scores[places] = table.scores

    def of(split: str) -> LabelledScores:
        parts = labelled_triples(benchmark, method, split)
        positive, negative = (scores[places_of(wanted.packed, wanted.keys.pack(part))[1]] for part in parts)
        return LabelledScores(positive, negative)

    return Predictions(method, of("valid"), of("test"))


def _ids(column: Any, vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
    """Return the ids of a dictionary column's names; -1 for unknown ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from loginfer.kg.formats.parquet import strings_of

    names = column.dictionary.cast(pa.large_string())
    places = pc.index_in(names, value_set=strings_of(vocabulary).cast(pa.large_string())).fill_null(-1)
    found = np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)
    if not len(found):
        return np.empty(0, dtype=np.int64)
    return np.asarray(found[column.indices.to_numpy(zero_copy_only=False)])


# -- what can be wrong ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    """A kind of mistake: how often, and the first examples, told by their rows."""

    what: str
    rows: Rows
    example: Callable[[int], str]
    hint: str


def _bad_scores(table: ScoreTable) -> list[_Problem]:
    problems = []
    unread = np.flatnonzero(table.unreadable)
    if len(unread):
        what = f"{_number(len(unread), 'score is', 'scores are')} no number"
        problems.append(_Problem(what, unread, table.line, "write numbers like 0.25 or -3e-4"))
    infinite = np.flatnonzero(~np.isfinite(table.scores) & ~table.unreadable)
    if len(infinite):
        what = f"{_number(len(infinite), 'score is', 'scores are')} not finite (NaN or infinite)"
        problems.append(_Problem(what, infinite, table.line, "give a very low number to what is impossible"))
    return problems


def _strangers(
    table: ScoreTable, triples: Any, known: Any, found: Any, benchmark: Benchmark
) -> list[_Problem]:
    problems = []
    unknown = np.flatnonzero(~known)
    if len(unknown):

        def name(row: int) -> str:
            column = int(np.flatnonzero(triples[row] < 0)[0])
            kind = ("subject", "relation", "object")[column]
            return f"{table.line(row)}: {kind} `{table.names[column][row].as_py()}`"

        count = _number(len(unknown), "triple has", "triples have")
        what = f"{count} a name that {benchmark.name} does not have"
        problems.append(_Problem(what, unknown, name, _EXPORT))
    extra = np.flatnonzero(known & ~found)
    if len(extra):
        what = f"{_number(len(extra), 'triple is', 'triples are')} not asked for"
        problems.append(_Problem(what, extra, table.line, _EXPORT))
    return problems


def _repeated(table: ScoreTable, rows: Rows, places: Any) -> list[_Problem]:
    order = rows[np.argsort(places[rows], kind="stable")]
    again = np.zeros(len(order), dtype=bool)
    again[1:] = places[order][1:] == places[order][:-1]
    if not again.any():
        return []
    repeated = order[again]
    before = dict(zip(order[1:].tolist(), order[:-1].tolist(), strict=True))
    with np.errstate(invalid="ignore"):
        differing = int((table.scores[repeated] != table.scores[order[:-1][again[1:]]]).sum())
    what = (
        f"{_number(len(repeated), 'line repeats', 'lines repeat')} a triple, "
        f"{differing:,} of them with another score"
    )
    repeated.sort()

    def example(row: int) -> str:
        return f"{table.line(row)}, as in {table.number(before[row])}"

    return [_Problem(what, repeated, example, "give every triple one score")]


def _missing(table: ScoreTable, wanted: KnowledgeGraph, places: Any) -> list[_Problem]:
    there = np.zeros(len(wanted), dtype=bool)
    there[places] = True
    rows = np.flatnonzero(~there)
    if not len(rows):
        return []

    def name(row: int) -> str:
        return "\t".join(wanted.names(wanted.triples[[row]])[0])

    return [
        _Problem(
            f"{len(rows):,} of {len(wanted):,} triples {'is' if len(rows) == 1 else 'are'} missing",
            rows,
            name,
            _EXPORT,
        )
    ]


def _complain(table: ScoreTable, problems: Sequence[_Problem]) -> None:
    told = []
    for problem in problems:
        examples = [problem.example(int(row)) for row in problem.rows[:SHOWN]]
        more = f"\n    and {len(problem.rows) - SHOWN:,} more" if len(problem.rows) > SHOWN else ""
        told.append(problem.what + ":" + "".join(f"\n    {example}" for example in examples) + more)
    raise InputError("\n  ".join(told), where=str(table.path), hint=problems[0].hint)


def _number(count: int, one: str, several: str) -> str:
    return f"1 {one}" if count == 1 else f"{count:,} {several}"


_EXPORT = "`loginfer evaluate BENCH --export-queries FILE` writes the triples to score"
