"""Reading the two Parquet files of a benchmark, a row group at a time, without trusting them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.tables import (
    DEPTH_COLUMN,
    EDIT_COLUMNS,
    NEGATIVE_COLUMNS,
    PROVENANCE_COLUMNS,
    TRIPLE_COLUMNS,
    type_parts,
)
from loginfer.benchmark.values import EDITS, POSITIONS, SOURCES, SPLITS, Origins, Provenance
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import Triples
from loginfer.logic.rule import Rule

if TYPE_CHECKING:
    from loginfer.kg.scan.builder import GraphBuilder

__all__ = [
    "NegativeTable",
    "RawNegatives",
    "RawProvenance",
    "codes_of",
    "read_groups",
    "read_negatives",
    "read_provenance",
    "renamed",
    "triples_of",
]

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
    depth: npt.NDArray[np.int8]

    def finish(self, entity_ids: Ids, relation_ids: Ids, rules: int | None) -> Provenance:
        """Return the provenance over the final vocabularies, sorted by conclusion and rule."""
        _check_rules(self.rule, rules, least=0)
        triples = renamed(self.triples, entity_ids, relation_ids)
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
        depth = self.depth[order] if len(self.depth) else self.depth
        if len(depth) and (depth != depth[fresh][conclusion]).any():
            raise InputError("a conclusion has two depths")
        depth = depth[fresh] if len(depth) else depth
        return Provenance(triples[fresh], split[fresh], conclusion, rule, offsets, values, depth)


@dataclass(frozen=True)
class RawNegatives:
    """`negatives.parquet` with provisional ids.

    Parameters
    ----------
    table
        Everything but the predicates of near misses.
    relation, type
        Those that are relations, and those that are types; -1 for none.
    """

    table: NegativeTable
    relation: Ids
    type: Ids

    def finish(self, entity_ids: Ids, relation_ids: Ids, rules: Sequence[Rule] | None) -> NegativeTable:
        """Return the table over the final vocabularies.

        A type where the rule has a relation, or a relation where it has a type, counts as none.
        """
        table = self.table
        _check_rules(table.origins.rule, None if rules is None else len(rules), least=-1)
        triples = renamed(table.triples, entity_ids, relation_ids)
        is_type = type_parts(rules or (), table.origins.rule, table.origins.part)
        known = ((self.relation >= 0) & ~is_type, (self.type >= 0) & is_type)
        predicate = np.full(len(triples), -1, dtype=np.int32)
        predicate[known[0]] = relation_ids[self.relation[known[0]]]
        predicate[known[1]] = entity_ids[self.type[known[1]]]
        origins = replace(table.origins, predicate=predicate)
        return NegativeTable(triples, table.split, table.method, table.methods, origins)


def read_provenance(path: Path, builder: GraphBuilder) -> RawProvenance:
    """Read `provenance.parquet`; its names are interned in the builder's tables."""
    from loginfer.kg.formats.parquet import intern_strings

    parts = []
    none = np.empty(0, dtype=np.int8)
    for columns in read_groups(path, PROVENANCE_COLUMNS, nullable=(), optional=DEPTH_COLUMN):
        witness = columns["witness"]
        names = witness.flatten()
        if names.null_count:
            raise InputError("column `witness` has an empty cell (null)")
        parts.append(
            (
                triples_of(columns, builder),
                codes_of(columns["split"], SPLITS, "split"),
                _numbers(columns["rule"], 0),
                np.asarray(witness.value_lengths().to_numpy(zero_copy_only=False), dtype=np.int64),
                intern_strings(names, builder.entities),
                _numbers(columns["depth"], 0).astype(np.int8) if "depth" in columns else none,
            )
        )
    if not parts:
        empty = np.empty(0, dtype=np.int32)
        parts.append((empty.reshape(0, 3), none, empty, empty.astype(np.int64), empty, none))
    columns_read = (np.concatenate(column) for column in zip(*parts, strict=True))
    triples, split, rule, lengths, values, depth = columns_read
    return RawProvenance(triples, split, rule, lengths, values, depth)


def read_negatives(path: Path, builder: GraphBuilder) -> RawNegatives:
    """Read `negatives.parquet`; its names are interned in the builder's tables."""
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    methods: list[str] = []
    nullable = ("source", "position", "rule", "kept", *EDIT_COLUMNS)
    for columns in read_groups(path, NEGATIVE_COLUMNS, nullable, optional=EDIT_COLUMNS):
        methods += [m for m in columns["method"].dictionary.to_pylist() if m not in methods]
        parts.append(
            (
                triples_of(columns, builder),
                codes_of(columns["split"], SPLITS, "split"),
                codes_of(columns["method"], methods, "method"),
                codes_of(columns["source"], SOURCES, "source"),
                codes_of(columns["position"], POSITIONS, "position", missing=0),
                _numbers(columns["rule"], -1),
                _numbers(columns["kept"], 0),
                *_edits(columns, builder),
            )
        )
    if not parts:
        none, code = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int8)
        parts.append((none.reshape(0, 3), code, code, code, code, none, none, code, none, none, none))
    triples, split, method, *origins = (np.concatenate(column) for column in zip(*parts, strict=True))
    *told, relation, type_ = origins
    told.append(np.full(len(triples), -1, dtype=np.int32))
    return RawNegatives(
        NegativeTable(triples, split, method, tuple(methods), Origins(*told)), relation, type_
    )


def _edits(columns: Mapping[str, Any], builder: GraphBuilder) -> tuple[npt.NDArray[Any], ...]:
    """Return edits, parts, and what replaces relations and types; of a file without near misses, none."""
    count = len(columns["rule"])
    if not all(name in columns for name in EDIT_COLUMNS):
        none = np.full(count, -1, dtype=np.int32)
        return np.zeros(count, dtype=np.int8), none, none, none
    return (
        codes_of(columns["edit"], EDITS, "edit", missing=0),
        _numbers(columns["part"], -1),
        _named(columns["relation_instead"], builder.relations),
        _named(columns["type_instead"], builder.entities),
    )


def _named(column: Any, table: Any) -> Ids:
    """Return provisional ids of a column of names; -1 for an empty cell."""
    from loginfer.kg.formats.parquet import intern_strings

    found = np.full(len(column), -1, dtype=np.int32)
    there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    if there.any():
        found[there] = intern_strings(column.drop_null(), table)
    return found


def read_groups(
    path: Path,
    wanted: Mapping[str, str],
    nullable: tuple[str, ...],
    optional: Mapping[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each row group, strings as dictionaries; optional ones if they are there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with reading(path), pq.ParquetFile(path) as file:
            there = file.schema_arrow.names
            wanted = {**wanted, **{name: what for name, what in (optional or {}).items() if name in there}}
            _check_schema(file.schema_arrow, wanted)
        words = [name for name in wanted if name not in ("rule", "kept", "witness", "depth", "part")]
        words += ["witness.list.element"] if "witness" in wanted else []
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
        if name in ("rule", "kept", "part"):
            fine = pt.is_int32(kind)
        elif name == "depth":
            fine = pt.is_int8(kind)
        elif name == "witness":
            fine = pt.is_list(kind) and is_text(kind.value_type)
        else:
            fine = is_text(kind)
        if not fine:
            raise InputError(f"column `{name}` holds {kind}")


def triples_of(columns: Mapping[str, Any], builder: GraphBuilder) -> Triples:
    """Return triples of the columns with their names; what the builder does not know yet is added."""
    from loginfer.kg.formats.parquet import intern_strings

    tables = (builder.entities, builder.relations, builder.entities)
    ids = [intern_strings(columns[name], t) for name, t in zip(TRIPLE_COLUMNS, tables, strict=True)]
    return np.stack(ids, axis=1)


def codes_of(column: Any, words: Sequence[str], name: str, missing: int = -1) -> npt.NDArray[np.int8]:
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


def renamed(triples: Triples, entity_ids: Ids, relation_ids: Ids) -> Triples:
    """Return triples with other ids: those at the places of the old ones."""
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
