"""What a system said about a benchmark, before any metric: scores of triples, ranks, and the files of both.

`predict` asks a scorer about the labelled triples, without trusting what it answers. A run keeps two Parquet
files. `predictions.parquet` has one row for each labelled triple, with names, so that it can be read anywhere
and scored again without the benchmark; `ranks.parquet` one for each test triple, protocol and position. The
same values always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark, NegativeSet, Splits
from loginfer.benchmark.folder.tables import TRIPLE_COLUMNS, NameColumns, coded, row_groups, word_type, write_parts
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples, Vocabulary
from loginfer.systems.interface import POSITIONS, Position, Scorer

Scores: TypeAlias = npt.NDArray[np.float64]
Counts: TypeAlias = npt.NDArray[np.int64]
Twins: TypeAlias = npt.NDArray[np.int32]

# Whom a test triple is ranked against, position by position.
#   given       the triples of N_test that differ from it in that position (section 2.2 of the paper)
#   filtered    all constants, types or relations of train, valid and test, without other triples of P_all
#   unfiltered  all of them
#   seen        as `filtered`, but those of P_train alone, and only test triples that have no other names
Protocol = Literal["given", "filtered", "unfiltered", "seen"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

# Where competitors with the same score are ranked: all after, half of them before, all before.
Tie = Literal["optimistic", "realistic", "pessimistic"]
TIES: tuple[Tie, ...] = get_args(Tie)

# Splits that have predictions; train is not scored.
SCORED = ("valid", "test")


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """The scores of one split, in the order of the benchmark's triples.

    Parameters
    ----------
    positive
        float64[|P|].
    negative
        float64[|N|].
    twin
        int32[|N|], as in `Origins`: the positive whose twin each negative is, -1 for none; empty where that is
        not recorded.
    """

    positive: Scores
    negative: Scores
    twin: Twins = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def __post_init__(self) -> None:
        if len(self.twin) not in (0, len(self.negative)) or self.twin.max(initial=-1) >= len(self.positive):
            raise InputError("the twins of these scores are not among their triples", hint="evaluate the system again")

    def __len__(self) -> int:
        return len(self.positive) + len(self.negative)

    @property
    def labelled(self) -> tuple[Scores, npt.NDArray[np.bool_]]:
        """float64[n], bool[n]: all scores, positives first, and which are those of positives."""
        return np.concatenate([self.positive, self.negative]), np.arange(len(self)) < len(self.positive)

    @property
    def pairs(self) -> tuple[Counts, Counts]:
        """int64[k], int64[k]: which positives have a twin, and which negatives are these."""
        negatives = np.flatnonzero(self.twin >= 0)
        return self.twin[negatives].astype(np.int64), negatives


@dataclass(frozen=True, slots=True)
class Predictions:
    """The scores of a benchmark's labelled triples.

    Parameters
    ----------
    method
        Whose negatives they are; None for a benchmark without any.
    valid, test
        The scores.
    """

    method: str | None
    valid: LabelledScores
    test: LabelledScores


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where each triple of P_test stands among its competitors, for one position under one protocol.

    Parameters
    ----------
    protocol, position
        Which.
    places
        int64[m], the triples of P_test that have this position (a type triple has no relation to corrupt).
    above, ties, competitors
        int64[m]: competitors with a higher score, with the same score, and altogether.
    """

    protocol: Protocol
    position: Position
    places: Counts
    above: Counts
    ties: Counts
    competitors: Counts

    def ranks(self, tie: Tie = "realistic") -> npt.NDArray[np.float64]:
        """Return float64[m], the ranks, from 1 on."""
        return np.asarray(self.above + 1 + TIES.index(tie) / 2 * self.ties)


def labelled_triples(benchmark: Benchmark, method: str | None, split: str) -> tuple[Triples, Triples]:
    """Return the positives and the negatives of a split."""
    positives = benchmark.positives[split]
    return positives, positives[:0] if method is None else benchmark.negatives[method].splits[split]


def twins_of(benchmark: Benchmark, method: str | None, split: str) -> Twins:
    """Return whose twins the negatives of a split are, as in `Origins`; empty where that is not recorded."""
    origins = None if method is None else benchmark.negatives[method].origins.get(split)
    return np.empty(0, dtype=np.int32) if origins is None else origins.twin


ONE_EACH = "give one number for each row of the triples: an array, a tensor or a list"


# -- asking a scorer --------------------------------------------------------------------------------


def predict(scorer: Scorer, benchmark: Benchmark, method: str | None) -> Predictions:
    """Return the scores of P_valid, N_valid, P_test and N_test.

    Parameters
    ----------
    scorer
        A fitted system.
    benchmark
        The benchmark.
    method
        Whose negatives; None for a benchmark without any.

    Raises
    ------
    InputError
        If the scorer's answer is not one finite number for each triple.
    """
    scored = []
    for split in SCORED:
        positive, negative = labelled_triples(benchmark, method, split)
        # Positives and negatives are scored together: a score must not depend on the other triples.
        triples = np.vstack([positive, negative])
        answer = scorer.score(triples.copy()) if len(triples) else np.empty(0)  # a scorer may change what it gets
        scores = checked_scores(answer, benchmark.graph, triples)
        parts = scores[: len(positive)], scores[len(positive) :]
        scored.append(LabelledScores(*parts, twins_of(benchmark, method, split)))
    return Predictions(method, *scored)


def numbers(answer: Any, hint: str, where: str | None = None) -> npt.NDArray[np.floating[Any]]:
    """Return a scorer's answer as an array of float32 or float64; complain if it holds anything but numbers.

    Parameters
    ----------
    answer
        An array, a tensor, or whatever becomes an array.
    hint, where
        What the answer should have been, and what it is the answer to.
    """
    try:
        array = np.asarray(off_device(answer))
        if np.ma.is_masked(answer):
            raise TypeError("some values are masked")
        if array.dtype.kind in "cmMSU" or array.dtype.names:
            raise TypeError(f"the dtype is {array.dtype}")
        if array.dtype.kind == "O" and any(value is None or isinstance(value, str | bytes) for value in array.flat):
            raise TypeError("it holds text or None")
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which the caller reports
            return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    except Exception as error:  # whatever a tensor's library raises
        message = f"{type(answer).__name__} that is no array of numbers: {error}"
        raise InputError(message, where=where, hint=hint) from error


def off_device(values: Any) -> Any:
    """Take a tensor out of its graph of gradients and off its device; give anything else back."""
    if not (hasattr(values, "detach") and hasattr(values, "cpu")):
        return values
    tensor = values.detach().cpu()
    # numpy has no such types; every value is a float32 too.
    return tensor.float() if any(kind in str(tensor.dtype) for kind in ("bfloat16", "float8")) else tensor


def checked_scores(answer: Any, graph: KnowledgeGraph, triples: Triples, where: str | None = None) -> Scores:
    """Return scores as float64[n]; complain if they are not one finite number a triple.

    Infinite scores are refused too: they have no middle, where a threshold could lie.
    """
    # A copy: whoever gives scores may use the array for others.
    scores = numbers(answer, ONE_EACH, where).astype(np.float64)
    if scores.shape != (len(triples),):
        flat = scores.ndim == 2 and scores.size == len(triples)
        hint = "leave the second dimension out: scores.reshape(-1)" if flat else ONE_EACH
        message = f"the scores have the shape {scores.shape}, not ({len(triples):,},)"
        raise InputError(message, where=where, hint=hint)
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        name = ", ".join(graph.names(triples[wrong[:1]])[0])
        raise InputError(
            f"{len(wrong):,} of {len(triples):,} scores are not finite; the first is {scores[wrong[0]]}, "
            f"in place {wrong[0]}, for ({name})",
            where=where,
            hint="a lower learning rate often helps where training diverged; give a very low number to what is "
            "impossible",
        )
    return np.ascontiguousarray(scores)


# -- writing the two files --------------------------------------------------------------------------

# A triple's names, its split, whether it is a positive, and the confidence that the system gave it.
PREDICTION_COLUMNS = (*TRIPLE_COLUMNS, "split", "label", "score")
# Only where there are twins: of which positive of the split, counted from 0, a negative is the twin.
TWIN = "twin"
# A test triple's names, its place in P_test, and the fields of `Ranks`.
PREDICTIONS = "predictions.parquet"
RANKS = "ranks.parquet"
_COUNTS = ("above", "ties", "competitors")
RANK_COLUMNS = (*TRIPLE_COLUMNS, "place", "protocol", "position", *_COUNTS)
# What columns hold that hold no texts.
_KINDS = {"label": "bool", "score": "double", TWIN: "int", **dict.fromkeys(("place", *_COUNTS), "int64")}


def write_predictions(predictions: Predictions, benchmark: Benchmark, stream: IO[bytes]) -> None:
    """Write one row for each triple of P_valid, N_valid, P_test and N_test, in this order."""
    import pyarrow as pa

    names = NameColumns(benchmark)
    fields = [*names.fields(), ("split", word_type()), ("label", pa.bool_()), ("score", pa.float64())]
    paired = any((scores.twin >= 0).any() for scores in (predictions.valid, predictions.test))
    schema = pa.schema([*fields, (TWIN, pa.int32())] if paired else fields)

    def parts() -> Iterator[list[Any]]:
        for split in SCORED:
            scores: LabelledScores = getattr(predictions, split)
            labelled = labelled_triples(benchmark, predictions.method, split)
            for triples, values, label in zip(labelled, (scores.positive, scores.negative), (True, False), strict=True):
                no_twins = np.broadcast_to(np.int32(-1), len(triples))
                twin = no_twins if label or not len(scores.twin) else scores.twin
                for start, stop in row_groups(len(triples)):
                    yield [
                        *names.columns(triples[start:stop]),
                        _repeated(split, SCORED, stop - start),
                        pa.array(np.full(stop - start, label)),
                        pa.array(values[start:stop]),
                        *([pa.array(twin[start:stop], mask=twin[start:stop] < 0)] if paired else []),
                    ]

    write_parts(stream, schema, parts())


def write_ranks(ranks: Sequence[Ranks], benchmark: Benchmark, stream: IO[bytes]) -> None:
    """Write one row for each rank, protocol by protocol, position by position."""
    import pyarrow as pa

    names = NameColumns(benchmark)
    words = [("protocol", word_type()), ("position", word_type())]
    counts = [(name, pa.int64()) for name in _COUNTS]
    schema = pa.schema([*names.fields(), ("place", pa.int64()), *words, *counts])

    def parts() -> Iterator[list[Any]]:
        for position_ranks in ranks:
            for start, stop in row_groups(len(position_ranks.places)):
                rows = slice(start, stop)
                yield [
                    *names.columns(benchmark.positives.test[position_ranks.places[rows]]),
                    pa.array(position_ranks.places[rows]),
                    _repeated(position_ranks.protocol, PROTOCOLS, stop - start),
                    _repeated(position_ranks.position, POSITIONS, stop - start),
                    *(pa.array(getattr(position_ranks, name)[rows]) for name in _COUNTS),
                ]

    write_parts(stream, schema, parts())


def _repeated(word: str, words: Sequence[str], count: int) -> Any:
    return coded(np.full(count, words.index(word), dtype=np.int8), words)


# -- reading the two files --------------------------------------------------------------------------


def read_predictions(path: Path, benchmark: Benchmark, method: str | None) -> Predictions:
    """Read the predictions for a benchmark.

    Raises
    ------
    InputError
        If they are about other triples.
    """
    alone, predictions = read_labelled(path, method, benchmark.graph.type_predicate)
    entities = alone.graph.entities.positions_in(benchmark.graph.entities)
    relations = alone.graph.relations.positions_in(benchmark.graph.relations)
    for split in SCORED:
        ours, theirs = (labelled_triples(source, method, split) for source in (benchmark, alone))
        for expected, stored in zip(ours, theirs, strict=True):
            ids = [entities[stored[:, 0]], relations[stored[:, 1]], entities[stored[:, 2]]]
            if not np.array_equal(expected, np.stack(ids, axis=1)):
                raise InputError(f"the predictions are not about the triples of {benchmark.name}", where=str(path))
    valid, test = (replace(getattr(predictions, s), twin=twins_of(benchmark, method, s)) for s in SCORED)
    return Predictions(method, valid, test)


def read_labelled(path: Path, method: str | None, type_predicate: str | None) -> tuple[Benchmark, Predictions]:
    """Read predictions without the benchmark: the labelled triples alone, as a benchmark, and their scores.

    Ids follow the order of the names, so that the triples come in the same order as in the whole benchmark.
    """
    table = _read_table(path, PREDICTION_COLUMNS)
    columns = [table.column(name).combine_chunks().dictionary_encode() for name in TRIPLE_COLUMNS]
    subjects, predicates, objects = (column.unique().to_pylist() for column in columns)
    entities = Vocabulary.of(subjects + objects)
    relations = Vocabulary.of(predicates + ([type_predicate] if type_predicate else []))
    triples: Triples = np.stack([*map(ids_of, columns, (entities, relations, entities))], axis=1)
    split = _words(table.column("split"))
    label, score = labels_and_scores(table, path)
    rows = {(s, p): np.flatnonzero((split == s) & (label == p)) for s in SCORED for p in (True, False)}
    graph = KnowledgeGraph(entities, relations, triples[:0], type_predicate=type_predicate or "")
    if method is None and any(len(rows[s, False]) for s in SCORED):
        raise InputError("there are negatives, but the run knows of none", where=str(path))
    for part in rows.values():
        if not (np.diff(graph.keys.pack(triples[part])) > 0).all():
            raise InputError("the triples are not in order", where=str(path))
    positives, negative_splits = (Splits(triples[:0], *(triples[rows[s, p]] for s in SCORED)) for p in (True, False))
    negatives = {} if method is None else {method: NegativeSet(method, negative_splits)}
    twin = stored_twins(table)
    scores = (LabelledScores(score[rows[s, True]], score[rows[s, False]], twin[rows[s, False]]) for s in SCORED)
    return Benchmark("", graph, positives, negatives), Predictions(method, *scores)


def labels_and_scores(table: Any, path: Path) -> tuple[npt.NDArray[np.bool_], Scores]:
    """Return bool[n] and float64[n]: which triples of predictions are positives, and the scores of all."""
    scores = np.asarray(table.column("score").to_numpy(), dtype=np.float64)
    if not np.isfinite(scores).all():
        raise InputError("column `score` holds something that is no finite number", where=str(path))
    return np.asarray(table.column("label").to_numpy(), dtype=bool), scores


def stored_twins(table: Any) -> Twins:
    """Return int32[n]: the column `twin` of predictions, -1 for none."""
    if TWIN not in table.column_names:
        return np.full(table.num_rows, -1, dtype=np.int32)
    return np.asarray(table.column(TWIN).fill_null(-1).to_numpy(), dtype=np.int32)


def read_ranks(path: Path) -> list[Ranks]:
    """Read the ranks of a run."""
    table = _read_table(path, RANK_COLUMNS)
    protocol, position = _words(table.column("protocol")), _words(table.column("position"))
    counts = [np.asarray(table.column(name).to_numpy(), dtype=np.int64) for name in ("place", *_COUNTS)]
    ranks = []
    for name in sorted(name for name in PROTOCOLS if (protocol == name).any()):
        for where in POSITIONS:  # also one that no triple has, such as the relation of type triples
            rows = np.flatnonzero((protocol == name) & (position == where))
            ranks.append(Ranks(name, where, *(column[rows] for column in counts)))
    return ranks


def ids_of(column: Any, vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    """Return int32[n], the ids of a dictionary column's names; -1 for unknown ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from loginfer.kg.formats.parquet import strings_of

    names, all_names = (strings.cast(pa.large_string()) for strings in (column.dictionary, strings_of(vocabulary)))
    ids = pc.index_in(names, value_set=all_names).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return np.asarray(ids[column.indices.to_numpy(zero_copy_only=False)], dtype=np.int32)


def _words(column: Any) -> npt.NDArray[Any]:
    """Return a column of few different words as an array of objects."""
    encoded = column.combine_chunks().dictionary_encode()
    words = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    return np.asarray(words[np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)])


def _read_table(path: Path, expected: Sequence[str]) -> Any:
    from loginfer.kg.formats.parquet import ParquetFile

    with ParquetFile(path, path) as file:
        table = file.read()
    for name in (*expected, *{TWIN}.intersection(table.column_names)):
        if name not in table.column_names:
            raise InputError(f"there is no column `{name}`", where=str(path))
        if _KINDS.get(name, "string") not in (kind := str(file.schema.field(name).type)):
            raise InputError(f"column `{name}` holds {kind}", where=str(path))
        if table.column(name).null_count and name != TWIN:
            raise InputError(f"column `{name}` has an empty cell (null)", where=str(path))
    return table
