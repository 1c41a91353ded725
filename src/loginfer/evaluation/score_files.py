"""Score files: how a system in any language is evaluated, in two steps.

`export_queries` writes the triples whose scores are wanted, without saying which are true. Whoever has scores
writes them beside the triples, TSV or Parquet, and `read_scores` reads them: every triple once, with a finite
number. Errors name the lines of the file that are wrong.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, OutputError
from loginfer.evaluation.predictions import LabelledScores, Predictions, Scores, ids_of, labelled_triples, twins_of
from loginfer.files import decoded
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.formats.base import Source, check_text, split_compression
from loginfer.kg.graph import merged_keys, places_of

# So many examples of each mistake are shown.
SHOWN = 3

_EXPORT = "`loginfer evaluate BENCH --export-queries FILE` writes the triples to score"
_EXPECTED = "expected four columns, in text separated by tabs: subject, relation, object, score"


def queries(benchmark: Benchmark, method: str | None) -> KnowledgeGraph:
    """Return the triples whose scores are wanted: P_valid, N_valid, P_test and N_test as one set.

    They are in the order of their names, which says nothing about who is in which set.
    """
    keys = benchmark.graph.keys
    parts = [t for split in ("valid", "test") for t in labelled_triples(benchmark, method, split)]
    return benchmark.graph.with_triples(keys.unpack(merged_keys(*(keys.pack(part) for part in parts))))


def table_ending(path: str | Path, what: str) -> str:
    """Return how the name of a table ends, but for compression; complain if we write no table that ends so."""
    ending = Path(split_compression(Path(path).name)[0]).suffix.lower()
    if ending not in (".tsv", ".txt", ".parquet"):
        raise OutputError(f"`{path}` is no name for a file of {what}", hint="let it end in .tsv or .parquet")
    return ending


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

    table_ending(path, "queries")
    query_graph = queries(benchmark, method)
    write_graph(query_graph, path, force=force)
    return len(query_graph)


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
    entities, relations = benchmark.graph.entities, benchmark.graph.relations
    triples: Triples = np.stack([*map(ids_of, table.names, (entities, relations, entities))], axis=1)
    query_graph = queries(benchmark, method)
    keys = np.where((triples >= 0).all(axis=1), query_graph.keys.pack(triples), -1)
    is_query, query_index = places_of(query_graph.packed, keys)
    problems = [p for p in _problems(table, triples, query_graph, is_query, query_index, benchmark.name) if len(p.rows)]
    if problems:
        texts = [f"{p.text}:{_examples([p.example(int(r)) for r in p.rows[:SHOWN]], len(p.rows))}" for p in problems]
        raise InputError("\n  ".join(texts), where=str(table.path), hint=problems[0].hint)
    scores = np.empty(len(query_graph), dtype=np.float64)
    scores[query_index] = table.scores

    def of(split: str) -> LabelledScores:
        positive, negative = (
            scores[places_of(query_graph.packed, query_graph.keys.pack(part))[1]]
            for part in labelled_triples(benchmark, method, split)
        )
        return LabelledScores(positive, negative, twins_of(benchmark, method, split))

    return Predictions(method, of("valid"), of("test"))


# -- what can be wrong ------------------------------------------------------------------------------


class _Problem(NamedTuple):
    """A kind of mistake: what is wrong, in which rows, how a row is shown, and what to do."""

    text: str
    rows: npt.NDArray[np.int64]
    example: Callable[[int], str]
    hint: str


def _problems(
    table: ScoreTable,
    triples: Triples,
    query_graph: KnowledgeGraph,
    is_query: npt.NDArray[np.bool_],
    query_index: npt.NDArray[np.int64],
    benchmark: str,
) -> Iterator[_Problem]:
    """Yield every kind of mistake; those that were not made have no rows."""
    rows = np.flatnonzero(table.unreadable)
    text = f"{_counted(len(rows), 'score is', 'scores are')} no number"
    yield _Problem(text, rows, table.line, "write numbers like 0.25 or -3e-4")

    rows = np.flatnonzero(~np.isfinite(table.scores) & ~table.unreadable)
    text = f"{_counted(len(rows), 'score is', 'scores are')} not finite (NaN or infinite)"
    yield _Problem(text, rows, table.line, "give a very low number to what is impossible")

    def unknown_name(row: int) -> str:
        column = int(np.flatnonzero(triples[row] < 0)[0])
        return f"{table.line(row)}: {COLUMNS[column]} `{table.names[column][row].as_py()}`"

    has_known_names = (triples >= 0).all(axis=1)
    rows = np.flatnonzero(~has_known_names)
    text = f"{_counted(len(rows), 'triple has', 'triples have')} a name that {benchmark} does not have"
    yield _Problem(text, rows, unknown_name, _EXPORT)

    rows = np.flatnonzero(has_known_names & ~is_query)
    yield _Problem(f"{_counted(len(rows), 'triple is', 'triples are')} not asked for", rows, table.line, _EXPORT)

    scored = np.flatnonzero(is_query)
    order = scored[np.argsort(query_index[scored], kind="stable")]
    again = np.flatnonzero(query_index[order][1:] == query_index[order][:-1]) + 1
    before = dict(zip(order[again].tolist(), order[again - 1].tolist(), strict=True))
    with np.errstate(invalid="ignore"):
        differing = int((table.scores[order[again]] != table.scores[order[again - 1]]).sum())
    count = _counted(len(again), "line repeats", "lines repeat")
    yield _Problem(
        f"{count} a triple, {differing:,} of them with another score",
        np.sort(order[again]),
        lambda row: f"{table.line(row)}, as in {table.number(before[row])}",
        "give every triple one score",
    )

    missing = np.ones(len(query_graph), dtype=bool)
    missing[query_index[is_query]] = False
    rows = np.flatnonzero(missing)
    yield _Problem(
        f"{len(rows):,} of {len(query_graph):,} triples {'is' if len(rows) == 1 else 'are'} missing",
        rows,
        lambda row: "\t".join(query_graph.names(query_graph.triples[[row]])[0]),
        _EXPORT,
    )


def _counted(count: int, singular: str, plural: str) -> str:
    return f"1 {singular}" if count == 1 else f"{count:,} {plural}"


def _examples(examples: Sequence[str], count: int) -> str:
    more = f"\n    and {count - SHOWN:,} more" if count > SHOWN else ""
    return "".join(f"\n    {example}" for example in examples) + more


# -- the columns of a file --------------------------------------------------------------------------

COLUMNS = ("subject", "relation", "object", "score")
# Other names that the columns may have, in a header line or a Parquet file.
ALSO = {
    "s": "subject", "head": "subject", "h": "subject",
    "r": "relation", "predicate": "relation", "p": "relation",
    "o": "object", "tail": "object", "t": "object",
    "confidence": "score",
}  # fmt: skip


@dataclass(frozen=True)
class ScoreTable:
    """The columns of a score file.

    Parameters
    ----------
    path
        The file.
    names
        Subject, relation, object: dictionary columns.
    scores
        float64[n]; NaN where a score cannot be read.
    unreadable
        bool[n], which scores are no numbers.
    texts
        The scores as they were written, for messages.
    text, header
        Of a TSV file: its bytes, and whether its first line is a header.
    """

    path: Path
    names: Sequence[Any]
    scores: Scores
    unreadable: npt.NDArray[np.bool_]
    texts: Any
    text: bytes | None = field(default=None, repr=False)
    header: bool = False

    @cached_property
    def _lines(self) -> list[int]:
        """The numbers of the lines that hold something; they are only needed for messages."""
        return _filled_lines(self.text or b"")

    def number(self, row: int) -> str:
        """Say where a row stands."""
        if self.text is None:
            return f"row {row + 1:,}"
        return f"line {self._lines[row + self.header]:,}"

    def line(self, row: int) -> str:
        """Say where a row stands and what it says."""
        cells = [*(column[row].as_py() for column in self.names), str(self.texts[row].as_py())]
        return f"{self.number(row)}: " + "\t".join(cells)


def read_score_table(path: Path) -> ScoreTable:
    """Read a score file; whatever is not four filled columns is an `InputError`."""
    with Source.of(path).open() as (stream, _):
        content = stream.read()
    if not content:
        raise InputError(f"`{path}` is empty", hint=_EXPECTED)
    if split_compression(path.name)[0].lower().endswith(".parquet"):
        return _from_parquet(path, content)
    return _from_text(path, content)


def _from_text(path: Path, content: bytes) -> ScoreTable:
    import pyarrow as pa
    import pyarrow.csv

    check_text(content[:4096], str(path))
    content = decoded(content, path, _EXPECTED).encode()  # without a mark of the byte order
    order, header = _header(content)
    bad: list[Any] = []

    def skip(row: Any) -> Literal["skip"]:
        bad.append(row)
        return "skip"

    try:
        table = pa.csv.read_csv(
            io.BytesIO(content),
            # Rows that do not fit are only numbered when one thread reads.
            read_options=pa.csv.ReadOptions(column_names=order, use_threads=False, skip_rows=0),
            parse_options=pa.csv.ParseOptions(
                delimiter="\t", quote_char=False, escape_char=False, invalid_row_handler=skip
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in COLUMNS}, strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise InputError(f"`{path}` is empty", hint=_EXPECTED) from error
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"no readable text in columns: {reason}", where=str(path), hint=_EXPECTED) from error
    if bad:
        _refuse_lines(path, content, bad)
    columns = {name: table.column(name).slice(int(header)) for name in COLUMNS}
    return _score_table(path, columns, content, header)


def _header(content: bytes) -> tuple[list[str], bool]:
    """Return the order of the columns, and whether the first filled line is a header."""
    first = next((line for line in content[: 2**16].splitlines() if line.strip()), b"")
    cells = [_plain(cell.decode("utf-8", "replace")) for cell in first.split(b"\t")]
    if sorted(cells) == sorted(COLUMNS):
        return cells, True
    return list(COLUMNS), False


def _plain(name: str) -> str:
    word = name.strip().strip("\"'").casefold()
    return ALSO.get(word, word)


def _refuse_lines(path: Path, content: bytes, bad: list[Any]) -> None:
    lines = _filled_lines(content)
    numbered = all(row.number is not None for row in bad)
    first = f":{lines[bad[0].number - 1]}" if numbered else ""
    examples = [f"{f'line {lines[row.number - 1]:,}: ' if numbered else ''}{row.text[:200]}" for row in bad[:SHOWN]]
    wrong = " or ".join(map(str, sorted({row.actual_columns for row in bad})[:3]))
    raise InputError(
        f"{_counted(len(bad), 'line has', 'lines have')} {wrong} columns instead of 4:{_examples(examples, len(bad))}",
        where=f"{path}{first}",
        hint=_EXPECTED,
    )


def _filled_lines(content: bytes) -> list[int]:
    return [n for n, line in enumerate(content.splitlines(), start=1) if line]


def _from_parquet(path: Path, content: bytes) -> ScoreTable:
    from loginfer.kg.formats.parquet import ParquetFile

    with ParquetFile(io.BytesIO(content), path) as file:
        table = file.read()
    named = {_plain(name): name for name in reversed(table.column_names)}
    missing = [name for name in COLUMNS if name not in named]
    if missing:
        column_names = ", ".join(f"`{name}`" for name in table.column_names[:10]) or "none"
        raise InputError(f"there is no column `{missing[0]}`, only {column_names}", where=str(path), hint=_EXPECTED)
    columns = {name: table.column(named[name]) for name in COLUMNS}
    for name, column in columns.items():
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1
            raise InputError(
                f"column `{name}` has {column.null_count:,} empty cell{'s'[: column.null_count - 1]} (null), "
                f"the first in row {row:,}",
                where=str(path),
            )
    return _score_table(path, columns)


def _score_table(path: Path, columns: dict[str, Any], content: bytes | None = None, header: bool = False) -> ScoreTable:
    import pyarrow as pa

    if not len(columns["score"]):
        raise InputError(f"`{path}` holds no scores", hint=_EXPECTED)
    names = []
    for name in COLUMNS[:3]:
        column = columns[name]
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise InputError(f"column `{name}` holds {kind}, expected names", where=str(path))
        # Chunks that are encoded one by one would have dictionaries of their own.
        names.append(column.cast(pa.large_string()).combine_chunks().dictionary_encode())
    scores = columns["score"]
    return ScoreTable(path, names, *_numbers(scores), scores.combine_chunks(), content, header)


def _numbers(column: Any) -> tuple[Scores, npt.NDArray[np.bool_]]:
    """Return the scores, and which of them cannot be read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    column = pc.utf8_trim_whitespace(column) if is_text else column
    try:
        # Whole numbers from 2^53 on are rounded.
        values = np.asarray(column.cast(pa.float64(), safe=is_text).to_numpy(), dtype=np.float64)
        return values, np.zeros(len(values), dtype=bool)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        parsed = [_number(text) if is_text else None for text in column.to_pylist()]
        values = np.array([np.nan if value is None else value for value in parsed], dtype=np.float64)
        return values, np.array([value is None for value in parsed], dtype=bool)


def _number(text: str) -> float | None:
    if "_" in text or not text.isascii():  # Python would read 1_0 and ٣
        return None
    try:
        return float(text)
    except ValueError:
        return None
