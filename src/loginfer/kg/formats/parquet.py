"""Parquet: three columns of strings."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.kg.formats.base import Format, ReadOptions, Source, columns_of_header, register_format
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph
    from loginfer.kg.name_table import NameTable
    from loginfer.kg.vocabulary import Vocabulary


# The columns that we write.
COLUMN_NAMES = ("subject", "relation", "object")
ROW_GROUP = 2**20


def read(sources: Sequence[Source], builder: GraphBuilder, options: ReadOptions, progress: Progress | None) -> None:
    """Read Parquet files, a part at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for source in sources:
        builder.begin(source.name)
        try:
            with source.open() as (stream, raw):
                seekable = stream if stream is raw and raw.seekable() else io.BytesIO(stream.read())
                with pq.ParquetFile(seekable) as file:
                    _read_file(file, source.name, builder, progress)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(f"`{source.name}` is no readable Parquet file: {error}") from error


def _read_file(file: Any, name: str, builder: GraphBuilder, progress: Progress | None) -> None:
    columns = _columns(file.schema_arrow, name)
    done = 0
    for batch in file.iter_batches(batch_size=ROW_GROUP, columns=list(columns)):
        subjects, relations, objects = _without_nulls([batch.column(c) for c in columns], done, builder)
        builder.add_ids(
            intern_strings(subjects, builder.entities),
            intern_strings(relations, builder.relations),
            intern_strings(objects, builder.entities),
        )
        done += batch.num_rows
        if progress:
            progress(f"reading {name}", done, file.metadata.num_rows)


def _columns(schema: Any, name: str) -> tuple[str, str, str]:
    import pyarrow.types as pt

    columns = triple_columns(schema.names, name)
    for column in columns:
        kind = schema.field(column).type
        kind = kind.value_type if pt.is_dictionary(kind) else kind
        if not (pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)):
            raise InputError(f"column `{column}` holds {kind}, expected strings", where=name)
    return columns


def triple_columns(names: Sequence[str], where: str) -> tuple[str, str, str]:
    """Return which of a file's columns are subject, relation and object."""
    roles = columns_of_header(names)
    if roles is None:
        raise InputError(
            "expected columns subject, relation, object, found " + ", ".join(f"`{c}`" for c in names[:10]),
            where=where,
            hint="also known: subject, predicate, object; s, r, o; s, p, o; head, relation, tail; h, r, t",
        )
    return names[roles.index("s")], names[roles.index("r")], names[roles.index("o")]


def _without_nulls(columns: list[Any], done: int, builder: GraphBuilder) -> list[Any]:
    import pyarrow.compute as pc

    if not any(column.null_count for column in columns):
        return columns
    valid = pc.and_(pc.and_(columns[0].is_valid(), columns[1].is_valid()), columns[2].is_valid())
    missing = np.flatnonzero(~np.asarray(valid.to_numpy(zero_copy_only=False), dtype=bool))
    for row in missing.tolist():
        builder.bad(f"row {done + row + 1} has an empty cell (null)")
    return [column.filter(valid) for column in columns]


def intern_strings(column: Any, table: NameTable) -> npt.NDArray[np.int32]:
    """Return provisional ids of a column of strings; each distinct string is looked up once."""
    import pyarrow as pa

    encoded: Any = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    words: Any = encoded.dictionary.cast(pa.large_string())
    offsets = np.frombuffer(words.buffers()[1], dtype=np.int64)[words.offset : words.offset + len(words) + 1]
    content = words.buffers()[2]
    data = np.zeros(0, dtype=np.uint8) if content is None else np.frombuffer(content, dtype=np.uint8)
    used = np.zeros(len(words), dtype=bool)
    indices = np.from_dlpack(encoded.indices)
    used[indices] = True
    # A dictionary may hold strings that no row uses; these are not names of the graph.
    used_ids = np.flatnonzero(used)
    ids = np.full(len(words), -1, dtype=np.int32)
    if len(used_ids) == len(words):
        ids[:] = table.intern(data, offsets)
    else:
        ids[used_ids] = table.intern_texts(data[offsets[i] : offsets[i + 1]].tobytes() for i in used_ids.tolist())
    return np.asarray(ids[indices])


def write(graph: KnowledgeGraph, stream: BinaryIO) -> None:
    """Write a graph as three dictionary columns, in the order of its triples."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    entities, relations = strings_of(graph.entities), strings_of(graph.relations)
    ids: list[Any] = [np.ascontiguousarray(graph.triples[:, k]) for k in range(3)]
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(column), names)
        for column, names in zip(ids, (entities, relations, entities), strict=True)
    ]
    table = pa.table(columns, names=list(COLUMN_NAMES))
    pq.write_table(table, stream, compression="zstd", use_dictionary=True, row_group_size=ROW_GROUP, store_schema=False)


def strings_of(vocabulary: Vocabulary) -> Any:
    """Return the names of a vocabulary as an Arrow array over the same bytes."""
    import pyarrow as pa

    offsets = pa.py_buffer(vocabulary.offsets.data)
    content = pa.py_buffer(vocabulary.data.data)
    words = pa.Array.from_buffers(pa.large_string(), len(vocabulary), [None, offsets, content])
    return words if len(vocabulary.data) >= 2**31 - 1 else words.cast(pa.string())


FORMAT = register_format(
    Format(
        name="parquet",
        endings=(".parquet",),
        description="columns subject, relation, object (or s/p/o, head/relation/tail, h/r/t)",
        read=read,
        write=write,
        looks_like=lambda head, line: head.startswith(b"PAR1"),
        rank=4,
    )
)
