"""Reading the two Parquet files of a benchmark, a row group at a time, without trusting them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.tables import NEGATIVE_COLUMNS, PROVENANCE_COLUMNS, TRIPLE_COLUMNS
from loginfer.benchmark.values import POSITIONS, SOURCES, SPLITS, Origins, Provenance
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import Triples

if TYPE_CHECKING:
    from loginfer.kg.scan.builder import GraphBuilder

__all__ = ["NegativeTable", "RawNegatives", "RawProvenance", "read_negatives", "read_provenance"]

Ids: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True)
class NegativeTable:
    """Where negatives came from, row by row.

    Parameters
    ----------
    triples
        int32[n, 3].
    split, method
        int8[n], int8[n]: places in `SPLITS` and in `methods`.
    methods
        Names of methods.
    origins
        Of all rows; `origins.source` is -1 where it is not known.
    """

    triples: Triples
    split: npt.NDArray[np.int8]
    method: npt.NDArray[np.int8]
    methods: tuple[str, ...]
    origins: Origins

    def __len__(self) -> int:
        return len(self.triples)

    def rows(self, method: str, split: str) -> npt.NDArray[np.int64]:
        """Return the places of the negatives that a method made for a split."""
        if method not in self.methods:
            return np.empty(0, dtype=np.int64)
        wanted = (self.method == self.methods.index(method)) & (self.split == SPLITS.index(split))
        return np.flatnonzero(wanted)


@dataclass(frozen=True)
class RawProvenance:
    """`provenance.parquet` with provisional ids."""

    triples: Triples
    split: npt.NDArray[np.int8]
    rule: Ids
    lengths: npt.NDArray[np.int64]
    values: Ids

    def finish(self, entity_ids: Ids, relation_ids: Ids, rules: int | None) -> Provenance:
        """Return the provenance over the final vocabularies, sorted by conclusion and rule."""
        _check_rules(self.rule, rules, least=0)
        triples = _renamed(self.triples, entity_ids, relation_ids)
        order = np.lexsort((self.rule, triples[:, 2], triples[:, 1], triples[:, 0]))
        triples, split, rule = triples[order], self.split[order], self.rule[order]
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (triples[1:] != triples[:-1]).any(axis=1)
        conclusion = np.cumsum(fresh) - 1
        if (split != split[fresh][conclusion]).any():
            raise InputError("a conclusion is in two splits")
        if (~fresh[1:] & (rule[1:] == rule[:-1])).any():
            raise InputError("a conclusion names the same rule twice")
        offsets, values = _reordered(self.lengths, entity_ids[self.values], order)
        return Provenance(triples[fresh], split[fresh], conclusion, rule, offsets, values)


@dataclass(frozen=True)
class RawNegatives:
    """`negatives.parquet` with provisional ids."""

    table: NegativeTable

    def finish(self, entity_ids: Ids, relation_ids: Ids, rules: int | None) -> NegativeTable:
        """Return the table over the final vocabularies."""
        table = self.table
        _check_rules(table.origins.rule, rules, least=-1)
        triples = _renamed(table.triples, entity_ids, relation_ids)
        return NegativeTable(triples, table.split, table.method, table.methods, table.origins)


def read_provenance(path: Path, builder: GraphBuilder) -> RawProvenance:
    """Read `provenance.parquet`; its names are interned in the builder's tables."""
    from loginfer.kg.formats.parquet import intern_strings

    parts = []
    for columns in _row_groups(path, PROVENANCE_COLUMNS, nullable=()):
        witness = columns["witness"]
        names = witness.flatten()
        if names.null_count:
            raise InputError("column `witness` has an empty cell (null)")
        parts.append(
            (
                _triples(columns, builder),
                _codes(columns["split"], SPLITS, "split"),
                _numbers(columns["rule"], 0),
                np.asarray(witness.value_lengths().to_numpy(zero_copy_only=False), dtype=np.int64),
                intern_strings(names, builder.entities),
            )
        )
    if not parts:
        empty = np.empty(0, dtype=np.int32)
        parts.append((empty.reshape(0, 3), empty.astype(np.int8), empty, empty.astype(np.int64), empty))
    triples, split, rule, lengths, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return RawProvenance(triples, split, rule, lengths, values)


def read_negatives(path: Path, builder: GraphBuilder) -> RawNegatives:
    """Read `negatives.parquet`; its names are interned in the builder's tables."""
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    methods: list[str] = []
    for columns in _row_groups(path, NEGATIVE_COLUMNS, nullable=("source", "position", "rule", "kept")):
        methods += [m for m in columns["method"].dictionary.to_pylist() if m not in methods]
        parts.append(
            (
                _triples(columns, builder),
                _codes(columns["split"], SPLITS, "split"),
                _codes(columns["method"], methods, "method"),
                _codes(columns["source"], SOURCES, "source"),
                _codes(columns["position"], POSITIONS, "position", missing=0),
                _numbers(columns["rule"], -1),
                _numbers(columns["kept"], 0),
            )
        )
    if not parts:
        none, code = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int8)
        parts.append((none.reshape(0, 3), code, code, code, code, none, none))
    triples, split, method, *origins = (np.concatenate(column) for column in zip(*parts, strict=True))
    return RawNegatives(NegativeTable(triples, split, method, tuple(methods), Origins(*origins)))


def _row_groups(path: Path, wanted: Mapping[str, str], nullable: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the columns of each row group, strings as dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = [name for name in wanted if name not in ("rule", "kept", "witness")]
    words += ["witness.list.element"] if "witness" in wanted else []
    try:
        with reading(path), pq.ParquetFile(path) as file:
            _check_schema(file.schema_arrow, wanted)
        with reading(path), pq.ParquetFile(path, read_dictionary=words) as file:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=list(wanted))
                table.validate(full=True)
                columns = {name: _combined(table.column(name)) for name in wanted}
                for name, column in columns.items():
                    if column.null_count and name not in nullable:
                        raise InputError(f"column `{name}` has an empty cell (null)")
                yield columns
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"no readable Parquet file: {reason}", where=str(path)) from error


def _combined(column: Any) -> Any:
    import pyarrow as pa

    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _check_schema(schema: Any, wanted: Mapping[str, str]) -> None:
    import pyarrow.types as pt

    def is_text(kind: Any) -> bool:
        return bool(pt.is_string(kind) or pt.is_large_string(kind))

    for name in wanted:
        if name not in schema.names:
            raise InputError(f"there is no column `{name}`")
        kind = schema.field(name).type
        if name in ("rule", "kept"):
            fine = pt.is_int32(kind)
        elif name == "witness":
            fine = pt.is_list(kind) and is_text(kind.value_type)
        else:
            fine = is_text(kind)
        if not fine:
            raise InputError(f"column `{name}` holds {kind}")


def _triples(columns: Mapping[str, Any], builder: GraphBuilder) -> Triples:
    from loginfer.kg.formats.parquet import intern_strings

    tables = (builder.entities, builder.relations, builder.entities)
    ids = [intern_strings(columns[name], t) for name, t in zip(TRIPLE_COLUMNS, tables, strict=True)]
    return np.stack(ids, axis=1)


def _codes(column: Any, words: Sequence[str], name: str, missing: int = -1) -> npt.NDArray[np.int8]:
    """Return the places of a column's words in a list; `missing` where there is none."""
    places = {word: i for i, word in enumerate(words)}
    known = [places.get(word) for word in column.dictionary.to_pylist()]
    for word, place in zip(column.dictionary.to_pylist(), known, strict=True):
        if place is None:
            raise InputError(
                f"column `{name}` holds `{word}`, which is none of {', '.join(filter(None, words))}"
            )
    table = np.array([*known, missing], dtype=np.int8)
    indices = column.indices.fill_null(len(known)) if column.null_count else column.indices
    return np.asarray(table[indices.to_numpy(zero_copy_only=False)])


def _numbers(column: Any, missing: int) -> Ids:
    filled = column.fill_null(missing) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int32)


def _check_rules(rule: Ids, rules: int | None, least: int) -> None:
    if rules is not None and len(rule) and (rule.min() < least or rule.max() >= rules):
        wrong = int(rule.max() if rule.max() >= rules else rule.min())
        raise InputError(f"there is no rule {wrong}: rules.txt holds {rules:,}, counted from 0")


def _renamed(triples: Triples, entity_ids: Ids, relation_ids: Ids) -> Triples:
    columns = [ids[triples[:, k]] for k, ids in enumerate((entity_ids, relation_ids, entity_ids))]
    return np.stack(columns, axis=1)


def _reordered(
    lengths: npt.NDArray[np.int64], values: Ids, order: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Ids]:
    """Return lists one after the other, given by their lengths, in another order: offsets and values."""
    starts = np.cumsum(lengths) - lengths
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths[order], out=offsets[1:])
    places = np.repeat(starts[order] - offsets[:-1], lengths[order]) + np.arange(offsets[-1])
    return offsets, values[places]
