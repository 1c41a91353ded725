"""The two Parquet files of a run: what a system said, and how its test triples rank.

`predictions.parquet` has one row for each labelled triple, with names, so that it can be read anywhere and
scored again without the benchmark; `ranks.parquet` one for each test triple, protocol and position. The same
values always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark, NegativeSet, Splits
from loginfer.benchmark.folder.tables import TRIPLE_COLUMNS, NameColumns, coded, row_groups, word_type, write_parts
from loginfer.errors import InputError
from loginfer.evaluation.values import PROTOCOLS, LabelledScores, Predictions, Ranks, Scores, labelled_triples
from loginfer.files import reading
from loginfer.kg import KnowledgeGraph, Triples, Vocabulary
from loginfer.systems.interface import POSITIONS

# Splits that have predictions; nobody asks about what was learned from.
SCORED = ("valid", "test")

PREDICTION_COLUMNS = {
    **TRIPLE_COLUMNS,
    "split": "The split that the triple is in: valid or test.",
    "label": "Whether it is a positive.",
    "score": "The confidence that the system gave it.",
}
RANK_COLUMNS = {
    **TRIPLE_COLUMNS,
    "place": "Its place among the test triples, counted from 0.",
    "protocol": "Whom it was ranked against: given, filtered or unfiltered.",
    "position": "The position that was replaced: subject, relation or object.",
    "above": "Competitors with a higher score.",
    "ties": "Competitors with the same score.",
    "competitors": "Competitors altogether.",
}


# -- writing ------------------------------------------------------------------------------------


def write_predictions(predictions: Predictions, benchmark: Benchmark, stream: IO[bytes]) -> None:
    """Write one row for each triple of P_valid, N_valid, P_test and N_test, in this order."""
    import pyarrow as pa

    names = NameColumns(benchmark)
    schema = pa.schema([*names.fields(), ("split", word_type()), ("label", pa.bool_()), ("score", pa.float64())])

    def parts() -> Iterator[list[Any]]:
        for s, split in enumerate(SCORED):
            scores: LabelledScores = getattr(predictions, split)
            labelled = labelled_triples(benchmark, predictions.method, split)
            for triples, values, label in zip(labelled, (scores.positive, scores.negative), (True, False), strict=True):
                for start, stop in row_groups(len(triples)):
                    yield [
                        *names.columns(triples[start:stop]),
                        coded(np.full(stop - start, s, dtype=np.int8), SCORED),
                        pa.array(np.full(stop - start, label)),
                        pa.array(values[start:stop]),
                    ]

    write_parts(stream, schema, parts())


def write_ranks(ranks: Sequence[Ranks], benchmark: Benchmark, stream: IO[bytes]) -> None:
    """Write one row for each rank, protocol by protocol, position by position."""
    import pyarrow as pa

    names = NameColumns(benchmark)
    numbers = ("above", "ties", "competitors")
    schema = pa.schema(
        [
            *names.fields(),
            ("place", pa.int64()),
            ("protocol", word_type()),
            ("position", word_type()),
            *((name, pa.int64()) for name in numbers),
        ]
    )

    def parts() -> Iterator[list[Any]]:
        for found in ranks:
            protocol, position = PROTOCOLS.index(found.protocol), POSITIONS.index(found.position)
            for start, stop in row_groups(len(found.places)):
                rows = slice(start, stop)
                yield [
                    *names.columns(benchmark.positives.test[found.places[rows]]),
                    pa.array(found.places[rows]),
                    coded(np.full(stop - start, protocol, dtype=np.int8), PROTOCOLS),
                    coded(np.full(stop - start, position, dtype=np.int8), POSITIONS),
                    *(pa.array(getattr(found, name)[rows]) for name in numbers),
                ]

    write_parts(stream, schema, parts())


# -- reading ------------------------------------------------------------------------------------


def read_predictions(path: Path, benchmark: Benchmark, method: str | None) -> Predictions:
    """Read the predictions for a benchmark.

    Raises
    ------
    InputError
        If they are about other triples.
    """
    found, predictions = read_labelled(path, method, benchmark.graph.type_predicate)
    entities = found.graph.entities.positions_in(benchmark.graph.entities)
    relations = found.graph.relations.positions_in(benchmark.graph.relations)
    for split in SCORED:
        mine = labelled_triples(benchmark, method, split)
        theirs = labelled_triples(found, method, split)
        for wanted, there in zip(mine, theirs, strict=True):
            ids = [entities[there[:, 0]], relations[there[:, 1]], entities[there[:, 2]]]
            if not np.array_equal(wanted, np.stack(ids, axis=1)):
                raise InputError(f"the predictions are not about the triples of {benchmark.name}", where=str(path))
    return predictions


def read_labelled(path: Path, method: str | None, type_predicate: str | None) -> tuple[Benchmark, Predictions]:
    """Read predictions without the benchmark: the labelled triples alone, as a benchmark, and their scores.

    Ids follow the order of the names, so that the triples come in the same order as in the whole benchmark.
    """
    table = _read(path, PREDICTION_COLUMNS)
    columns = [table.column(name).combine_chunks() for name in TRIPLE_COLUMNS]
    entities = Vocabulary.of(_distinct(columns[0]) + _distinct(columns[2]))
    relations = Vocabulary.of(_distinct(columns[1]) + ([type_predicate] if type_predicate else []))
    ids = [_ids(column, v) for column, v in zip(columns, (entities, relations, entities), strict=True)]
    triples: Triples = np.stack(ids, axis=1)
    split = _words(table.column("split"))
    label = np.asarray(table.column("label").to_numpy(), dtype=bool)
    score = np.asarray(table.column("score").to_numpy(), dtype=np.float64)
    if not np.isfinite(score).all():
        raise InputError("column `score` holds something that is no finite number", where=str(path))

    def part(wanted: str, positive: bool) -> tuple[Triples, Scores]:
        rows = np.flatnonzero((split == wanted) & (label == positive))
        return triples[rows], score[rows]

    parts = {(s, p): part(s, p) for s in SCORED for p in (True, False)}
    graph = KnowledgeGraph(entities, relations, triples[:0], type_predicate=type_predicate or "")
    if method is None and any(len(parts[s, False][0]) for s in SCORED):
        raise InputError("there are negatives, but the run knows of none", where=str(path))
    for found, _ in parts.values():
        if len(found) and not (np.diff(graph.keys.pack(found)) > 0).all():
            raise InputError("the triples are not in order", where=str(path))
    sets = {p: Splits(triples[:0], *(parts[s, p][0] for s in SCORED)) for p in (True, False)}
    negatives = {} if method is None else {method: NegativeSet(method, sets[False])}
    scores = [LabelledScores(parts[s, True][1], parts[s, False][1]) for s in SCORED]
    return Benchmark("", graph, sets[True], negatives), Predictions(method, scores[0], scores[1])


def read_ranks(path: Path) -> list[Ranks]:
    """Read the ranks of a run."""
    table = _read(path, RANK_COLUMNS)
    protocol, position = _words(table.column("protocol")), _words(table.column("position"))
    numbers = {name: _whole(table.column(name)) for name in ("place", "above", "ties", "competitors")}
    found = []
    for wanted in sorted(known for known in PROTOCOLS if (protocol == known).any()):
        for where in POSITIONS:  # also one that no triple has, such as the relation of type triples
            rows = np.flatnonzero((protocol == wanted) & (position == where))
            counts = (numbers[name][rows] for name in ("place", "above", "ties", "competitors"))
            found.append(Ranks(wanted, where, *counts))
    return found


def _words(column: Any) -> npt.NDArray[Any]:
    """Return a column of few different words as an array of objects."""
    encoded = column.combine_chunks().dictionary_encode()
    words = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    return np.asarray(words[np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)])


def _whole(column: Any) -> npt.NDArray[np.int64]:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _read(path: Path, wanted: dict[str, str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with reading(path), path.open("rb") as stream:
            table = pq.read_table(stream)
    except pa.ArrowException as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"no readable Parquet file: {reason}", where=str(path)) from error
    for name in wanted:
        if name not in table.column_names:
            raise InputError(f"there is no column `{name}`", where=str(path))
        if table.column(name).null_count:
            raise InputError(f"column `{name}` has an empty cell (null)", where=str(path))
    return table


def _distinct(column: Any) -> list[str]:
    found: list[str] = column.unique().to_pylist()
    return found


def _ids(column: Any, vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    import pyarrow.compute as pc

    from loginfer.kg.formats.parquet import strings_of

    places = pc.index_in(column, value_set=strings_of(vocabulary).cast(column.type))
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int32)
