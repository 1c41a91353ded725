"""Scores from elsewhere.

Reading the columns of a score file, TSV or Parquet, and saying on which line something stands.

Score files: how a system in any language is evaluated, in two steps.

`export_queries` writes the triples whose scores are wanted, without saying which are true. Whoever has scores
writes them beside the triples, and `read_scores` reads them: every triple once, with a finite number.

Scores that a script gives as arrays: of numpy, of torch (which need not be installed), or plain lists.

A script's own function as a scorer; what it answers may be a tensor.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, OutputError, UnknownNameError
from loginfer.evaluation.values import LabelledScores, Predictions, Scores, labelled_triples
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.formats.base import Source, check_text, split_compression
from loginfer.kg.graph import merged_keys, places_of
from loginfer.kg.vocabulary import Vocabulary
from loginfer.systems.interface import CandidateScorer, Scorer

COLUMNS = ("subject", "relation", "object", "score")
# Other names that the columns may have, in a header line or a Parquet file.
ALSO = {
    "s": "subject", "head": "subject", "h": "subject",
    "r": "relation", "predicate": "relation", "p": "relation",
    "o": "object", "tail": "object", "t": "object",
    "confidence": "score",
}  # fmt: skip
SHOWN = 3


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
    names: tuple[Any, Any, Any]
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


# -- TSV -----------------------------------------------------------------------------------------


def _from_text(path: Path, content: bytes) -> ScoreTable:
    import pyarrow as pa
    import pyarrow.csv

    content = content.removeprefix(b"\xef\xbb\xbf")
    check_text(content[:4096], str(path))
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
    table = table.slice(1) if header else table
    if not len(table):
        raise InputError(f"`{path}` holds no scores", hint=_EXPECTED)
    return _finished(path, {name: table.column(name) for name in COLUMNS}, content, header)


def _header(content: bytes) -> tuple[list[str], bool]:
    """Return the order of the columns, and whether the first filled line tells it."""
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
    told = "".join(
        f"\n    {f'line {lines[row.number - 1]:,}: ' if numbered else ''}{row.text[:200]}" for row in bad[:SHOWN]
    )
    more = f"\n    and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
    count = "1 line has" if len(bad) == 1 else f"{len(bad):,} lines have"
    columns = sorted({row.actual_columns for row in bad})
    wrong = " or ".join(map(str, columns[:3]))
    raise InputError(f"{count} {wrong} columns instead of 4:{told}{more}", where=f"{path}{first}", hint=_EXPECTED)


def _filled_lines(content: bytes) -> list[int]:
    return [n for n, line in enumerate(content.split(b"\n"), start=1) if line.strip(b"\r")]


# -- Parquet -------------------------------------------------------------------------------------


def _from_parquet(path: Path, content: bytes) -> ScoreTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"no readable Parquet file: {reason}", where=str(path)) from error
    named = {_plain(name): name for name in reversed(table.column_names)}
    missing = [name for name in COLUMNS if name not in named]
    if missing:
        there = ", ".join(f"`{name}`" for name in table.column_names[:10]) or "none"
        raise InputError(f"there is no column `{missing[0]}`, only {there}", where=str(path), hint=_EXPECTED)
    columns = {name: table.column(named[name]) for name in COLUMNS}
    for name, column in columns.items():
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1
            raise InputError(
                f"column `{name}` has {column.null_count:,} empty cell{'s'[: column.null_count - 1]} (null), "
                f"the first in row {row:,}",
                where=str(path),
            )
    if not len(table):
        raise InputError(f"`{path}` holds no scores", hint=_EXPECTED)
    return _finished(path, columns, None, False)


# -- both ----------------------------------------------------------------------------------------


def _finished(path: Path, columns: dict[str, Any], content: bytes | None, header: bool) -> ScoreTable:
    import pyarrow as pa

    names = []
    for name in COLUMNS[:3]:
        column = columns[name]
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise InputError(f"column `{name}` holds {kind}, expected names", where=str(path))
        # Chunks that are encoded one by one would have dictionaries of their own.
        names.append(_combined(column.cast(pa.large_string())).dictionary_encode())
    scores, unreadable = _numbers(columns["score"])
    texts = _combined(columns["score"])
    return ScoreTable(path, (names[0], names[1], names[2]), scores, unreadable, texts, content, header)


def _combined(column: Any) -> Any:
    import pyarrow as pa

    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks else pa.array([], column.type)
    return column


def _numbers(column: Any) -> tuple[Scores, npt.NDArray[np.bool_]]:
    """Return the scores, and which of them cannot be read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        try:
            column = column.cast(pa.float64(), safe=False)  # whole numbers from 2^53 on are rounded
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return np.full(len(column), np.nan), np.ones(len(column), dtype=bool)
        values = np.asarray(column.to_numpy(), dtype=np.float64)
        return values, np.zeros(len(values), dtype=bool)
    texts = pc.utf8_trim_whitespace(column)
    try:
        values = np.asarray(texts.cast(pa.float64()).to_numpy(), dtype=np.float64)
        return values, np.zeros(len(values), dtype=bool)
    except pa.ArrowInvalid:
        read = [_number(text) for text in itertools.chain.from_iterable(c.to_pylist() for c in texts.chunks)]
        values = np.array([np.nan if value is None else value for value in read], dtype=np.float64)
        return values, np.array([value is None for value in read], dtype=bool)


def _number(text: str) -> float | None:
    if "_" in text or not text.isascii():  # Python would read 1_0 and ٣
        return None
    try:
        return float(text)
    except ValueError:
        return None


_EXPECTED = "expected four columns, in text separated by tabs: subject, relation, object, score"


Keys: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.int64]

# So many examples of each mistake are shown.


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
            table.names, (benchmark.graph.entities, benchmark.graph.relations, benchmark.graph.entities), strict=True
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
        what = f"{_number_score_files(len(unread), 'score is', 'scores are')} no number"
        problems.append(_Problem(what, unread, table.line, "write numbers like 0.25 or -3e-4"))
    infinite = np.flatnonzero(~np.isfinite(table.scores) & ~table.unreadable)
    if len(infinite):
        what = f"{_number_score_files(len(infinite), 'score is', 'scores are')} not finite (NaN or infinite)"
        problems.append(_Problem(what, infinite, table.line, "give a very low number to what is impossible"))
    return problems


def _strangers(table: ScoreTable, triples: Any, known: Any, found: Any, benchmark: Benchmark) -> list[_Problem]:
    problems = []
    unknown = np.flatnonzero(~known)
    if len(unknown):

        def name(row: int) -> str:
            column = int(np.flatnonzero(triples[row] < 0)[0])
            kind = ("subject", "relation", "object")[column]
            return f"{table.line(row)}: {kind} `{table.names[column][row].as_py()}`"

        count = _number_score_files(len(unknown), "triple has", "triples have")
        what = f"{count} a name that {benchmark.name} does not have"
        problems.append(_Problem(what, unknown, name, _EXPORT))
    extra = np.flatnonzero(known & ~found)
    if len(extra):
        what = f"{_number_score_files(len(extra), 'triple is', 'triples are')} not asked for"
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
        f"{_number_score_files(len(repeated), 'line repeats', 'lines repeat')} a triple, "
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
            f"{len(rows):,} of {len(wanted):,} triples {'is' if len(rows) == 1 else 'are'} missing", rows, name, _EXPORT
        )
    ]


def _complain(table: ScoreTable, problems: Sequence[_Problem]) -> None:
    told = []
    for problem in problems:
        examples = [problem.example(int(row)) for row in problem.rows[:SHOWN]]
        more = f"\n    and {len(problem.rows) - SHOWN:,} more" if len(problem.rows) > SHOWN else ""
        told.append(problem.what + ":" + "".join(f"\n    {example}" for example in examples) + more)
    raise InputError("\n  ".join(told), where=str(table.path), hint=problems[0].hint)


def _number_score_files(count: int, one: str, several: str) -> str:
    return f"1 {one}" if count == 1 else f"{count:,} {several}"


_EXPORT = "`loginfer evaluate BENCH --export-queries FILE` writes the triples to score"


def checked_scores(given: Any, wanted: Mapping[str, Triples], graph: KnowledgeGraph) -> dict[str, Scores]:
    """Return float64[n] for each set of triples; complain if that is not what was given.

    Parameters
    ----------
    given
        A mapping from the names of the sets to their scores. An empty set may be left out.
    wanted
        The sets by name.
    graph
        Whose ids the triples are.

    Raises
    ------
    InputError
        For a set that is missing or unknown, and for scores that are not one finite number a triple.
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f"scores come as a dictionary, not as {type(given).__name__}",
            hint=f"give arrays under the keys {', '.join(f'`{key}`' for key in wanted)}",
        )
    for key in given:
        if key not in wanted:
            raise UnknownNameError("set of triples", str(key), wanted)
    missing = [key for key in wanted if key not in given and len(wanted[key])]
    if missing:
        raise InputError(
            f"there are no scores for {', '.join(f'`{key}`' for key in missing)}",
            hint=f"score `evaluator.triples()[{missing[0]!r}]`, one number a row",
        )
    return {key: _scores(key, given.get(key, ()), triples, graph) for key, triples in wanted.items()}


def _scores(key: str, given: Any, triples: Triples, graph: KnowledgeGraph) -> Scores:
    found = _array(key, given)
    if found.ndim == 2 and found.shape in ((len(triples), 1), (1, len(triples))):
        raise InputError(
            f"the scores have the shape {found.shape}, not ({len(triples):,},)",
            where=key,
            hint="leave the second dimension out: scores.reshape(-1)",
        )
    if found.ndim != 1:
        raise InputError(f"the scores have the shape {found.shape}, not ({len(triples):,},)", where=key)
    if len(found) != len(triples):
        raise InputError(
            f"{_number_score_arrays(len(found), 'score')} for {_number_score_arrays(len(triples), 'triple')}",
            where=key,
            hint=f"score `evaluator.triples()[{key!r}]`, one number a row",
        )
    wrong = np.flatnonzero(~np.isfinite(found))
    if len(wrong):
        name = ", ".join(graph.names(triples[[wrong[0]]])[0])
        verb = "is" if len(wrong) == 1 else "are"
        raise InputError(
            f"{len(wrong):,} of {_number_score_arrays(len(found), 'score')} {verb} not finite; "
            f"the first is {found[wrong[0]]}, in place {wrong[0]}, for ({name})",
            where=key,
            hint="give a very low number to what is impossible",
        )
    return np.ascontiguousarray(found)


def _array(key: str, given: Any) -> npt.NDArray[np.float64]:
    """Return an array of float64, whatever holds the numbers."""
    try:
        found = np.asarray(off_its_device(given))
    except Exception as error:  # rows of different lengths; a tensor of some library complains in its own way
        raise _no_numbers(key, given, str(error)) from error
    if np.ma.is_masked(given):
        raise _no_numbers(key, given, "some values are masked")
    if found.dtype.kind in "cmMSU" or found.dtype.names:
        raise _no_numbers(key, given, f"the dtype is {found.dtype}")
    if found.dtype.kind == "O" and any(value is None or isinstance(value, str | bytes) for value in found.flat):
        raise _no_numbers(key, given, "it holds text or None")
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is told as such
            return found.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise _no_numbers(key, given, str(error)) from error


def off_its_device(given: Any) -> Any:
    """Take a tensor out of its graph of gradients and off its device; give anything else back."""
    if not (hasattr(given, "detach") and hasattr(given, "cpu")):
        return given
    tensor = given.detach().cpu()
    # numpy has no such types; every value is a float32 too.
    return tensor.float() if any(kind in str(tensor.dtype) for kind in ("bfloat16", "float8")) else tensor


def _no_numbers(key: str, given: Any, why: str) -> InputError:
    return InputError(
        f"{type(given).__name__} that is no array of numbers: {why}",
        where=key,
        hint="give one number a triple: an array, a tensor or a list",
    )


def _number_score_arrays(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


class _Function:
    """A function that gives scores, as a scorer."""

    def __init__(self, function: Callable[[Triples], Any]) -> None:
        self._function = function

    def score(self, triples: Triples) -> Any:
        return off_its_device(self._function(triples))


def scorer_of(score: Any) -> Scorer:
    """Return a scorer.

    Parameters
    ----------
    score
        A function from int32[n, 3] to n numbers, or an object with such a method `score`.
    """
    method = getattr(score, "score", None)
    if callable(method):
        scorer: Scorer = score
        return scorer if isinstance(score, CandidateScorer) else _Function(method)
    if callable(score):
        return _Function(score)
    raise InputError(
        f"{type(score).__name__} gives no scores",
        where="score",
        hint="give a function from triples to numbers, or an object with a method `score`",
    )
