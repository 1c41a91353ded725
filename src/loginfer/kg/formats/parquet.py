"""Parquet: three columns of strings."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, LogInferError
from loginfer.files import reading
from loginfer.kg.formats.base import Format, ReadOptions, Source, Unpacked, columns_of_header, register_format
from loginfer.progress import Progress, report_progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph
    from loginfer.kg.name_table import NameTable
    from loginfer.kg.vocabulary import Vocabulary


# The columns that we write.
COLUMN_NAMES = ("subject", "relation", "object")
ROW_GROUP = 2**20
NUMBER = 4  # bytes of a value, or of the number that stands for it


@contextlib.contextmanager
def parquet_errors(where: Path | str) -> Iterator[None]:
    """Turn whatever pyarrow says about a damaged file into an `InputError`: damage has no certain kind of error."""
    try:
        with reading(Path(where)):
            yield
    except LogInferError:
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
        raise InputError(f"no readable Parquet file: {reason}", where=str(where)) from error


class ParquetFile:
    """A Parquet file that is open for reading: all are read through this.

    Texts come as dictionaries: a long one that many rows have would take its length for each of them.

    Parameters
    ----------
    file
        Its path, or a stream that can seek.
    where
        What messages call it.
    unpacked
        Counts what it unpacks to.
    """

    def __init__(self, file: Path | BinaryIO, where: Path | str, unpacked: Unpacked | None = None) -> None:
        import pyarrow.parquet as pq

        self.where = where
        unpacked = unpacked or Source.of(Path(where)).unpacked()
        with parquet_errors(where):
            with pq.ParquetFile(file) as plain:
                self.schema, stored, metadata = plain.schema_arrow, plain.schema, plain.metadata
            if len(set(self.schema.names)) < len(self.schema.names):
                raise InputError("a column is there twice", where=str(where))
            self.rows: int = metadata.num_rows
            for group in map(metadata.row_group, range(metadata.num_row_groups)):
                # Equal values are stored once with their number, and take some bytes each when they are read.
                unpacked.count(max(0, group.total_byte_size, NUMBER * group.num_columns * group.num_rows))
            columns = map(stored.column, range(len(stored)))
            texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
            self._file = pq.ParquetFile(file, metadata=metadata, read_dictionary=texts)

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, columns: list[str] | None = None) -> Any:
        """Return a table of these columns, or of all."""
        with parquet_errors(self.where):
            table = self._file.read(columns, use_threads=False)
            table.validate(full=True)
        return table

    def groups(self, columns: list[str]) -> Iterator[Any]:
        """Yield a table of these columns for each row group."""
        with parquet_errors(self.where):
            for group in range(self._file.num_row_groups):
                table = self._file.read_row_group(group, columns)
                table.validate(full=True)
                yield table

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Yield batches of rows with these columns, whose texts may be no UTF-8."""
        with parquet_errors(self.where):
            yield from self._file.iter_batches(ROW_GROUP, columns=columns)


def read(sources: Sequence[Source], builder: GraphBuilder, options: ReadOptions, progress: Progress | None) -> None:
    """Read Parquet files, a part at a time."""
    for source in sources:
        builder.begin(source.name)
        with source.open() as (stream, raw), contextlib.ExitStack() as stack:
            if stream is not raw or not raw.seekable():
                packed, stream = stream, stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(packed, stream)
            file = stack.enter_context(ParquetFile(stream, source.name, source.unpacked()))
            _read_file(file, source.name, builder, progress)


def _read_file(file: ParquetFile, name: str, builder: GraphBuilder, progress: Progress | None) -> None:
    columns = _columns(file.schema, name)
    done = 0
    for batch in file.batches(list(columns)):
        names = _without_gaps([batch.column(c) for c in columns], name, done, builder)
        tables = (builder.entities, builder.relations, builder.entities)
        builder.add_ids(*map(intern_strings, names, tables))
        done += batch.num_rows
        report_progress(progress, f"reading {name}", done, file.rows)


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
        message = "expected columns subject, relation, object, found " + ", ".join(f"`{c}`" for c in names[:10])
        hint = "also known: subject, predicate, object; s, r, o; s, p, o; head, relation, tail; h, r, t"
        raise InputError(message, where=where, hint=hint)
    return names[roles.index("s")], names[roles.index("r")], names[roles.index("o")]


def _without_gaps(columns: list[Any], name: str, done: int, builder: GraphBuilder) -> list[Any]:
    """Return the rows that have a name in each column; the others are bad."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = np.ones(len(columns[0]), dtype=bool)
    for column in columns:
        encoded = isinstance(column, pa.DictionaryArray)
        words: Any = column.dictionary if encoded else column
        is_name = pc.binary_length(words).cast(pa.bool_())
        if column.null_count or not pc.all(is_name, skip_nulls=False).as_py():
            with parquet_errors(name):
                rows = is_name.take(column.indices) if encoded else is_name
            whole &= np.asarray(rows.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
    if whole.all():
        return columns
    for row in np.flatnonzero(~whole).tolist():
        builder.bad(f"row {done + row + 1} has an empty cell")
    return [column.filter(pa.array(whole)) for column in columns]


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
    if len(indices) and not (indices.min() >= 0 and indices.max() < len(words)):
        raise InputError("a cell of a Parquet file points to no text of its dictionary")
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


FORMAT = Format(
    name="parquet",
    endings=(".parquet",),
    description="columns subject, relation, object (or s/p/o, head/relation/tail, h/r/t)",
    read=read,
    write=write,
    looks_like=lambda head, line: head.startswith(b"PAR1"),
    rank=4,
)
register_format(FORMAT)
