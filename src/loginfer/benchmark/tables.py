"""The two Parquet files of a benchmark: where its conclusions and its negatives came from.

Names are dictionary columns over the benchmark's vocabularies: ten million rows are written a row group at a
time, without a Python object for any of them. The same benchmark always gives the same bytes.
`table_reading` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.values import EDITS, POSITIONS, SOURCES, SPLITS, Benchmark, Origins, Provenance
from loginfer.kg import Triples
from loginfer.logic.rule import Atom, Rule

__all__ = [
    "DEPTH_COLUMN",
    "EDIT_COLUMNS",
    "NEGATIVE_COLUMNS",
    "PROVENANCE_COLUMNS",
    "TRIPLE_COLUMNS",
    "NameColumns",
    "coded",
    "has_edits",
    "is_type_part",
    "negative_columns",
    "row_groups",
    "type_parts",
    "word_type",
    "write_negatives",
    "write_parts",
    "write_provenance",
]

Ids: TypeAlias = npt.NDArray[np.int32]

# The columns and what they mean, for people and for `croissant.json`.
TRIPLE_COLUMNS = {"subject": "The subject.", "relation": "The relation.", "object": "The object."}
PROVENANCE_COLUMNS = {
    **TRIPLE_COLUMNS,
    "split": "The split that the conclusion is in: train, valid or test.",
    "rule": "A rule that derives it, as its place in rules.txt, counted from 0.",
    "witness": "What the rule's variables stand for, in the order in which its body mentions them.",
}
# Only of a benchmark whose conclusions follow in several steps.
DEPTH_COLUMN = {"depth": "In how many steps the conclusion follows; its premises follow in fewer."}
# The sources that there were before near misses: a column that needs no more keeps its bytes.
_FIRST_SOURCES = SOURCES[: SOURCES.index("near-miss")]

NEGATIVE_COLUMNS = {
    **TRIPLE_COLUMNS,
    "split": "The split that the negative is in: train, valid or test.",
    "method": "The method that made it.",
    "source": "Where it came from: " + ", ".join(_FIRST_SOURCES) + ".",
    "position": "The position of a positive that was replaced: subject, object or either.",
    "rule": "The rule whose sub-rule concludes it, as its place in rules.txt, counted from 0.",
    "kept": "The parts of that rule's body which the sub-rule keeps: bit i stands for part i.",
}

# Only of a benchmark with near misses.
EDIT_COLUMNS = {
    "edit": "What was done to that rule's body: replace, reverse, drop or drop-inequality.",
    "part": "The part of the body to which it was done, counted from 0.",
    "relation_instead": "The relation that replaces that of the part.",
    "type_instead": "The type that replaces that of the part.",
}
ROW_GROUP = 2**19
# Beyond this size of its names a column is written without a dictionary.
DICTIONARY_BYTES = 2**28


def write_provenance(benchmark: Benchmark, provenance: Provenance, stream: IO[bytes]) -> None:
    """Write one row for each pair of a conclusion and a rule that derives it."""
    import pyarrow as pa

    names = NameColumns(benchmark)
    schema = pa.schema(
        [
            *names.fields(),
            ("split", word_type()),
            ("rule", pa.int32()),
            ("witness", pa.list_(names.entity_type)),
            *([("depth", pa.int8())] if provenance.deep else []),
        ]
    )

    def part(start: int, stop: int) -> list[Any]:
        rows = provenance.conclusion[start:stop]
        bounds = provenance.offsets[start : stop + 1]
        witnesses = names.entities(provenance.values[bounds[0] : bounds[-1]])
        return [
            *names.columns(provenance.triples[rows]),
            coded(provenance.split[rows], SPLITS),
            pa.array(provenance.rule[start:stop]),
            pa.ListArray.from_arrays(pa.array((bounds - bounds[0]).astype(np.int32)), witnesses),
            *([pa.array(provenance.depth[rows])] if provenance.deep else []),
        ]

    write_parts(stream, schema, (part(a, b) for a, b in row_groups(len(provenance.rule))))


def write_negatives(benchmark: Benchmark, stream: IO[bytes]) -> None:
    """Write one row for each negative."""
    import pyarrow as pa

    names = NameColumns(benchmark)
    methods = tuple(benchmark.negatives)
    edited = has_edits(benchmark)
    sources = SOURCES if edited else _FIRST_SOURCES
    schema = pa.schema(
        [
            *names.fields(),
            ("split", word_type()),
            ("method", word_type()),
            ("source", word_type()),
            ("position", word_type()),
            ("rule", pa.int32()),
            ("kept", pa.int32()),
            *(names.edit_fields() if edited else []),
        ]
    )

    def parts() -> Iterator[list[Any]]:
        for m, made in enumerate(benchmark.negatives.values()):
            for s, (split, triples) in enumerate(made.splits.items()):
                origins = made.origins.get(split)
                for start, stop in row_groups(len(triples)):
                    rows = slice(start, stop)
                    yield [
                        *names.columns(triples[rows]),
                        coded(np.full(stop - start, s, dtype=np.int8), SPLITS),
                        coded(np.full(stop - start, m, dtype=np.int8), methods),
                        *_origin_columns(origins, rows, stop - start, sources),
                        *(names.edit_columns(origins, rows, stop - start) if edited else []),
                    ]

    write_parts(stream, schema, parts())


def has_edits(benchmark: Benchmark) -> bool:
    """Say whether a benchmark has near misses."""
    near_miss = SOURCES.index("near-miss")
    every = [origins for made in benchmark.negatives.values() for origins in made.origins.values()]
    return any(bool((origins.source == near_miss).any()) for origins in every)


def negative_columns(benchmark: Benchmark) -> dict[str, str]:
    """Return the columns of `negatives.parquet` and what they mean."""
    if not has_edits(benchmark):
        return NEGATIVE_COLUMNS
    source = "Where it came from: " + ", ".join(SOURCES) + "."
    rule = "The rule whose sub-rule or near miss concludes it, as its place in rules.txt, counted from 0."
    return {**NEGATIVE_COLUMNS, "source": source, "rule": rule, **EDIT_COLUMNS}


def _origin_columns(origins: Origins | None, rows: slice, count: int, sources: Sequence[str]) -> list[Any]:
    import pyarrow as pa

    if origins is None:
        unknown: Any = pa.nulls(count, pa.int8())
        words = pa.DictionaryArray.from_arrays(unknown, pa.array(sources))
        return [words, words, pa.nulls(count, pa.int32()), pa.nulls(count, pa.int32())]
    rule, kept = origins.rule[rows], origins.kept[rows]
    return [
        coded(origins.source[rows], sources),
        coded(origins.position[rows], POSITIONS, missing=origins.position[rows] == 0),
        pa.array(rule, mask=rule < 0),
        pa.array(kept, mask=kept == 0),
    ]


class NameColumns:
    """The benchmark's vocabularies as Arrow arrays, of which a column takes what it needs."""

    def __init__(self, benchmark: Benchmark) -> None:
        from loginfer.kg.formats.parquet import strings_of

        self._entities = strings_of(benchmark.graph.entities)
        self._relations = strings_of(benchmark.graph.relations)
        self._rules = benchmark.program

    @property
    def entity_type(self) -> Any:
        """The type of a column of constants or types."""
        import pyarrow as pa

        return pa.dictionary(pa.int32(), self._entities.type)

    def fields(self) -> list[tuple[str, Any]]:
        """Return names and types of the columns subject, relation, object."""
        import pyarrow as pa

        relation_type = pa.dictionary(pa.int32(), self._relations.type)
        return list(zip(TRIPLE_COLUMNS, (self.entity_type, relation_type, self.entity_type), strict=True))

    def columns(self, triples: Triples) -> list[Any]:
        """Return the columns subject, relation, object."""
        return [
            self.entities(triples[:, 0]),
            _encoded(triples[:, 1], self._relations),
            self.entities(triples[:, 2]),
        ]

    def entities(self, ids: Ids) -> Any:
        """Return a column of constants or types."""
        return _encoded(ids, self._entities)

    def edit_fields(self) -> list[tuple[str, Any]]:
        """Return names and types of the columns that tell of near misses."""
        import pyarrow as pa

        relation_type = pa.dictionary(pa.int32(), self._relations.type)
        kinds = (word_type(), pa.int32(), relation_type, self.entity_type)
        return list(zip(EDIT_COLUMNS, kinds, strict=True))

    def edit_columns(self, origins: Origins | None, rows: slice, count: int) -> list[Any]:
        """Return the columns that tell of near misses; empty cells where a negative is none."""
        import pyarrow as pa

        none = np.full(count, -1, dtype=np.int32)
        edit = np.zeros(count, dtype=np.int8) if origins is None else origins.edit[rows]
        part, rule, predicate = (
            none if origins is None else getattr(origins, name)[rows]
            for name in ("part", "rule", "predicate")
        )
        is_type = (edit > 0) & type_parts(self._rules, rule, part)
        return [
            coded(edit, EDITS, missing=edit == 0),
            pa.array(part, mask=part < 0),
            _encoded(np.where(is_type, -1, predicate).astype(np.int32), self._relations),
            _encoded(np.where(is_type, predicate, -1).astype(np.int32), self._entities),
        ]


def is_type_part(rules: Sequence[Rule], rule: int, part: int) -> bool:
    """Say whether a part of a rule's body is a type atom; False for what is not there."""
    if not (0 <= rule < len(rules) and 0 <= part < len(rules[rule].body)):
        return False
    found = rules[rule].body[part]
    return isinstance(found, Atom) and found.is_type


def type_parts(rules: Sequence[Rule], rule: Ids, part: Ids) -> npt.NDArray[np.bool_]:
    """Return bool[n]: `is_type_part` for many at once."""
    width = max((len(known.body) for known in rules), default=0)
    known = [[is_type_part(rules, number, place) for place in range(width)] for number in range(len(rules))]
    there = (rule >= 0) & (rule < len(rules)) & (part >= 0) & (part < width)
    found = np.zeros(len(rule), dtype=bool)
    if there.any():
        found[there] = np.array(known, dtype=bool)[rule[there], part[there]]
    return found


def _encoded(ids: Ids, names: Any) -> Any:
    """Return a dictionary column whose dictionary holds only the names in use; -1 is an empty cell."""
    import pyarrow as pa

    used = np.zeros(len(names), dtype=bool)
    missing = ids < 0
    used[ids[~missing] if missing.any() else ids] = True
    places = np.cumsum(used, dtype=np.int32)
    places -= 1
    indices: Any = pa.array(places[ids], mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(indices, names.take(pa.array(np.flatnonzero(used))))


def word_type() -> Any:
    """Return the type of a column that holds few different words."""
    import pyarrow as pa

    return pa.dictionary(pa.int8(), pa.string())


def coded(
    codes: npt.NDArray[np.int8], words: Sequence[str], missing: npt.NDArray[np.bool_] | None = None
) -> Any:
    """Return a column of words, given their places in a list."""
    import pyarrow as pa

    indices: Any = pa.array(codes, mask=missing)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(words), pa.string()))


def row_groups(rows: int) -> Iterator[tuple[int, int]]:
    """Yield where each row group starts and stops."""
    for start in range(0, rows, ROW_GROUP):
        yield start, min(start + ROW_GROUP, rows)


def write_parts(stream: IO[bytes], schema: Any, parts: Iterator[list[Any]]) -> None:
    """Write the columns of one row group after the other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(
        stream,
        schema,
        compression="zstd",
        use_dictionary=True,
        dictionary_pagesize_limit=DICTIONARY_BYTES,
        # Nobody asks for a range of names, and finding the least takes longer than all the rest.
        write_statistics=[name for name in schema.names if name in ("split", "method", "rule")],
        store_schema=False,
    ) as writer:
        for columns in parts:
            writer.write_table(pa.table(columns, schema=schema), row_group_size=ROW_GROUP)
