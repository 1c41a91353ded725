"""The Parquet files of a benchmark: the origins of its conclusions and negatives, and its noise.

Names are dictionary columns over the benchmark's vocabularies: ten million rows are written a row group at a
time, without a Python object for any of them. The same benchmark always gives the same bytes. Files are read a row
group at a time, and everything in them is checked. Each reader returns a function that finishes the table, given the
final ids of the names and the rules if they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import POSITIONS, SPLITS, Benchmark, Origins, Provenance, reordered
from loginfer.benchmark.construction.noise import KINDS, Noise
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.errors import InputError
from loginfer.kg import Triples
from loginfer.kg.graph import Ids, Ints, Mask, TripleKeys, places_of, run_starts
from loginfer.logic.rule import Atom, Rule
from loginfer.logic.subrules import EDITS

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder


T = TypeVar("T")

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
# Sources older than near misses: the dictionary of a column without newer ones holds only these, so its bytes stay.
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
# Only of a benchmark whose conclusions have twins.
TWIN_COLUMNS = {
    "twin_subject": "The subject of the conclusion whose twin it is: a positive of the same split and relation.",
    "twin_object": "The object of that conclusion.",
}
NOISE_COLUMNS = {
    **TRIPLE_COLUMNS,
    "kind": "flipped-positive: a conclusion that stands in N_train; flipped-negative: a negative that stands "
    "in P_train; missing: a premise that P_train does not have.",
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
    edited, paired = has_edits(benchmark), has_twins(benchmark)
    sources = _sources_of(benchmark)
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
            *((name, names.entity_type) for name in TWIN_COLUMNS if paired),
        ]
    )

    def parts() -> Iterator[list[Any]]:
        for m, negative_set in enumerate(benchmark.negatives.values()):
            for s, (split, triples) in enumerate(negative_set.splits.items()):
                origins = negative_set.origins.get(split)
                twin = np.broadcast_to(np.int32(-1), len(triples)) if origins is None else origins.twin
                for start, stop in row_groups(len(triples)):
                    rows = slice(start, stop)
                    yield [
                        *names.columns(triples[rows]),
                        coded(np.full(stop - start, s, dtype=np.int8), SPLITS),
                        coded(np.full(stop - start, m, dtype=np.int8), methods),
                        *_origin_columns(origins, rows, stop - start, sources),
                        *(names.edit_columns(origins, rows, stop - start) if edited else []),
                        *(names.twin_columns(benchmark.positives[split], twin[rows]) if paired else []),
                    ]

    write_parts(stream, schema, parts())


def write_noise(benchmark: Benchmark, noise: Noise, stream: IO[bytes]) -> None:
    """Write one row for each triple."""
    import pyarrow as pa

    names = NameColumns(benchmark)
    schema = pa.schema([*names.fields(), ("kind", word_type())])
    write_parts(
        stream,
        schema,
        (
            [*names.columns(noise.triples[start:stop]), coded(noise.kind[start:stop], KINDS)]
            for start, stop in row_groups(len(noise))
        ),
    )


def _origins(benchmark: Benchmark) -> list[Origins]:
    """Return the origins of all negatives, as far as they are known."""
    return [origins for negatives in benchmark.negatives.values() for origins in negatives.origins.values()]


def _sources_of(benchmark: Benchmark) -> list[str]:
    """Return the sources up to the last one that a benchmark uses."""
    last = max((int(origins.source.max(initial=0)) for origins in _origins(benchmark)), default=0)
    return SOURCES[: max(last + 1, len(_FIRST_SOURCES))]


def has_edits(benchmark: Benchmark) -> bool:
    """Say whether a benchmark has near misses."""
    near_miss = SOURCES.index("near-miss")
    return any(bool((origins.source == near_miss).any()) for origins in _origins(benchmark))


def has_twins(benchmark: Benchmark) -> bool:
    """Say whether some negative is the twin of a conclusion."""
    return any(bool((origins.twin >= 0).any()) for origins in _origins(benchmark))


def negative_columns(benchmark: Benchmark) -> dict[str, str]:
    """Return the columns of `negatives.parquet` and what they mean."""
    columns = {**NEGATIVE_COLUMNS, "source": "Where it came from: " + ", ".join(_sources_of(benchmark)) + "."}
    if has_edits(benchmark):
        rule = "The rule whose sub-rule or near miss concludes it, as its place in rules.txt, counted from 0."
        columns |= {"rule": rule, **EDIT_COLUMNS}
    return columns | (TWIN_COLUMNS if has_twins(benchmark) else {})


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
        return _name_type(self._entities)

    def fields(self) -> list[tuple[str, Any]]:
        """Return names and types of the columns subject, relation, object."""
        kinds = (self.entity_type, _name_type(self._relations), self.entity_type)
        return list(zip(TRIPLE_COLUMNS, kinds, strict=True))

    def columns(self, triples: Triples) -> list[Any]:
        """Return the columns subject, relation, object."""
        return [self.entities(triples[:, 0]), _encoded(triples[:, 1], self._relations), self.entities(triples[:, 2])]

    def entities(self, ids: Ids) -> Any:
        """Return a column of constants or types."""
        return _encoded(ids, self._entities)

    def edit_fields(self) -> list[tuple[str, Any]]:
        """Return names and types of the columns about near misses."""
        import pyarrow as pa

        kinds = (word_type(), pa.int32(), _name_type(self._relations), self.entity_type)
        return list(zip(EDIT_COLUMNS, kinds, strict=True))

    def edit_columns(self, origins: Origins | None, rows: slice, count: int) -> list[Any]:
        """Return the columns about near misses; cells of other negatives are empty."""
        import pyarrow as pa

        none = np.full(count, -1, dtype=np.int32)
        edit = np.zeros(count, dtype=np.int8) if origins is None else origins.edit[rows]
        part, rule, predicate = (
            none if origins is None else getattr(origins, name)[rows] for name in ("part", "rule", "predicate")
        )
        is_type = (edit > 0) & type_parts(self._rules, rule, part)
        return [
            coded(edit, EDITS, missing=edit == 0),
            pa.array(part, mask=part < 0),
            _encoded(np.where(is_type, -1, predicate).astype(np.int32), self._relations),
            _encoded(np.where(is_type, predicate, -1).astype(np.int32), self._entities),
        ]

    def twin_columns(self, positives: Triples, twin: Ids) -> list[Any]:
        """Return the columns about twins, given rows of the positives; cells of -1 are empty."""
        ids = np.full((len(twin), 3), -1, dtype=np.int32)
        ids[twin >= 0] = positives[twin[twin >= 0]]
        return [self.entities(ids[:, 0]), self.entities(ids[:, 2])]


def _name_type(names: Any) -> Any:
    import pyarrow as pa

    return pa.dictionary(pa.int32(), names.type)


def is_type_part(rules: Sequence[Rule], rule: int, part: int) -> bool:
    """Say whether a part of a rule's body is a type atom; False if there is no such part."""
    if not (0 <= rule < len(rules) and 0 <= part < len(rules[rule].body)):
        return False
    body_atom = rules[rule].body[part]
    return isinstance(body_atom, Atom) and body_atom.is_type


def type_parts(rules: Sequence[Rule], rule: Ids, part: Ids) -> Mask:
    """Return bool[n]: `is_type_part` for many at once."""
    width = max((len(r.body) for r in rules), default=0)
    by_rule = [[is_type_part(rules, number, i) for i in range(width)] for number in range(len(rules))]
    exists = (rule >= 0) & (rule < len(rules)) & (part >= 0) & (part < width)
    of_type = np.zeros(len(rule), dtype=bool)
    if exists.any():
        of_type[exists] = np.array(by_rule, dtype=bool)[rule[exists], part[exists]]
    return of_type


def _encoded(ids: Ids, names: Any) -> Any:
    """Return a dictionary column whose dictionary holds only the names in use; -1 is an empty cell."""
    import pyarrow as pa

    used = np.zeros(len(names), dtype=bool)
    missing = ids < 0
    used[ids[~missing] if missing.any() else ids] = True
    new_ids = np.cumsum(used, dtype=np.int32)
    new_ids -= 1
    indices: Any = pa.array(new_ids[ids], mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(indices, names.take(pa.array(np.flatnonzero(used))))


def word_type() -> Any:
    """Return the type of a column that holds few different words."""
    import pyarrow as pa

    return pa.dictionary(pa.int8(), pa.string())


def coded(codes: npt.NDArray[np.int8], words: Sequence[str], missing: Mask | None = None) -> Any:
    """Return a column of words, given their indices in a list."""
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
        # Nobody queries ranges of names, and finding the smallest takes longer than all the rest.
        write_statistics=[name for name in schema.names if name in ("split", "method", "rule")],
        store_schema=False,
    ) as writer:
        for columns in parts:
            writer.write_table(pa.table(columns, schema=schema), row_group_size=ROW_GROUP)


@dataclass(frozen=True)
class NegativeTable:
    """Where negatives came from, row by row.

    Parameters
    ----------
    triples
        int32[n, 3].
    split, method
        int8[n], int8[n]: indices into `SPLITS` and `methods`.
    methods
        Names of methods.
    origins
        Of all rows; `origins.source` is -1 where it is not known. `origins.twin` is always -1: see `twin_rows`.
    twins
        int32[n, 2]: subject and object of the conclusion whose twin each is, -1 for none; empty without twins.
    """

    triples: Triples
    split: npt.NDArray[np.int8]
    method: npt.NDArray[np.int8]
    methods: tuple[str, ...]
    origins: Origins
    twins: Ids

    def __len__(self) -> int:
        return len(self.triples)

    def twin_rows(self, rows: Ints, positives: Triples, keys: TripleKeys) -> Ids:
        """Return int32[n]: `Origins.twin` of some rows, given the positives of their split.

        Raises
        ------
        InputError
            If the conclusion of a twin is not among the positives.
        """
        twin = np.full(len(rows), -1, dtype=np.int32)
        paired = np.flatnonzero(self.twins[rows, 0] >= 0)
        (subject, object_), relation = self.twins[rows[paired]].T, self.triples[rows[paired], 1]
        is_positive, index = places_of(keys.pack(positives), keys.pack(np.stack([subject, relation, object_], axis=1)))
        if not is_positive.all():
            wrong = int((~is_positive).sum())
            raise InputError(f"{wrong:,} negatives are twins of what is no positive of their split and relation")
        twin[paired] = index
        return twin

    def rows(self, method: str, split: str) -> Ints:
        """Return the rows of the negatives that a method made for a split."""
        if method not in self.methods:
            return np.empty(0, dtype=np.int64)
        matches = (self.method == self.methods.index(method)) & (self.split == SPLITS.index(split))
        return np.flatnonzero(matches)


@dataclass(frozen=True, slots=True)
class NoiseTable:
    """The rows of `noise.parquet`, sorted by triple: int32[n, 3], and int8[n], indices into `KINDS`."""

    triples: Triples
    kind: npt.NDArray[np.int8]


_NO_IDS: Ids = np.empty(0, dtype=np.int32)
_NO_TRIPLES: Triples = np.empty((0, 3), dtype=np.int32)

# Takes the final ids of entities and relations, by their provisional ones, and the rules if they are known.
Finish: TypeAlias = Callable[[Ids, Ids, Sequence[Rule] | None], T]


def read_provenance(path: Path, builder: GraphBuilder) -> Finish[Provenance]:
    """Read `provenance.parquet`; its names are interned in the builder's tables."""
    from loginfer.kg.formats.parquet import intern_strings

    none = np.empty(0, dtype=np.int8)
    parts = [(_NO_TRIPLES, none, _NO_IDS, _NO_IDS.astype(np.int64), _NO_IDS, none)]
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
                np.from_dlpack(witness.value_lengths()).astype(np.int64),
                intern_strings(names, builder.entities),
                _numbers(columns["depth"], 0).astype(np.int8) if "depth" in columns else none,
            )
        )
    columns_read: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return partial(_finish_provenance, *columns_read)


def _finish_provenance(
    triples: Triples,
    split: npt.NDArray[np.int8],
    rule: Ids,
    lengths: Ints,
    values: Ids,
    depth: npt.NDArray[np.int8],
    entity_ids: Ids,
    relation_ids: Ids,
    rules: Sequence[Rule] | None,
) -> Provenance:
    """Return the provenance over the final vocabularies, sorted by conclusion and rule."""
    _check_rules(rule, rules, least=0)
    triples = _renamed(triples, entity_ids, relation_ids)
    order = np.lexsort((rule, triples[:, 2], triples[:, 1], triples[:, 0]))
    triples, split, rule = triples[order], split[order], rule[order]
    fresh = run_starts(*triples.T)
    conclusion = np.cumsum(fresh) - 1
    if (split != split[fresh][conclusion]).any():
        raise InputError("a conclusion is in two splits")
    if (~fresh[1:] & (rule[1:] == rule[:-1])).any():
        raise InputError("a conclusion names the same rule twice")
    if len(depth):
        depth = depth[order]
        if (depth != depth[fresh][conclusion]).any():
            raise InputError("a conclusion has two depths")
        depth = depth[fresh]
    offsets, values = reordered(lengths, entity_ids[values], order)
    return Provenance(triples[fresh], split[fresh], conclusion, rule, offsets, values, depth)


def read_negatives(path: Path, builder: GraphBuilder) -> Finish[NegativeTable]:
    """Read `negatives.parquet`; its names are interned in the builder's tables."""
    code = np.empty(0, dtype=np.int8)
    parts: list[tuple[npt.NDArray[Any], ...]] = [
        (_NO_TRIPLES, code, code, code, code, _NO_IDS, _NO_IDS, code, _NO_IDS, _NO_IDS, _NO_IDS, _NO_TRIPLES[:, :2])
    ]
    methods: list[str] = []
    optional = EDIT_COLUMNS | TWIN_COLUMNS
    for columns in read_groups(path, NEGATIVE_COLUMNS, ("source", "position", "rule", "kept", *optional), optional):
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
                _twins(columns, builder),
            )
        )
    columns_read = (np.concatenate(column) for column in zip(*parts, strict=True))
    # `relation` and `type_` replace those of the edited part; -1 for none.
    triples, split, method, source, position, rule, kept, edit, part, relation, type_, twins = columns_read

    def finish(entity_ids: Ids, relation_ids: Ids, rules: Sequence[Rule] | None) -> NegativeTable:
        # A type that would replace a relation, or a relation a type, is ignored.
        _check_rules(rule, rules, least=-1)
        is_type = type_parts(rules or (), rule, part)
        predicate = np.full(len(triples), -1, dtype=np.int32)
        for ids, instead, fits in ((relation_ids, relation, ~is_type), (entity_ids, type_, is_type)):
            is_replaced = (instead >= 0) & fits
            predicate[is_replaced] = ids[instead[is_replaced]]
        no_twin = np.broadcast_to(np.int32(-1), len(triples))
        origins = Origins(source, position, rule, kept, edit, part, predicate, no_twin)
        renamed = _renamed(triples, entity_ids, relation_ids)
        pairs = np.where(twins < 0, np.int32(-1), entity_ids[twins])
        return NegativeTable(renamed, split, method, tuple(methods), origins, pairs)

    return finish


def _edits(columns: Mapping[str, Any], builder: GraphBuilder) -> tuple[npt.NDArray[Any], ...]:
    """Return edits, parts, and replacing relations and types; without near misses all are empty."""
    count = len(columns["rule"])
    if not all(name in columns for name in EDIT_COLUMNS):
        none = np.full(count, -1, dtype=np.int32)
        return np.zeros(count, dtype=np.int8), none, none, none
    return (
        codes_of(columns["edit"], EDITS, "edit", missing=0),
        _numbers(columns["part"], -1),
        _name_ids(columns["relation_instead"], builder.relations),
        _name_ids(columns["type_instead"], builder.entities),
    )


def _twins(columns: Mapping[str, Any], builder: GraphBuilder) -> Ids:
    """Return int32[n, 2], provisional ids of the conclusions whose twins negatives are; empty without the columns."""
    missing = [name for name in TWIN_COLUMNS if name not in columns]
    if len(missing) == len(TWIN_COLUMNS):
        return _NO_TRIPLES[:, :2]
    if missing:
        raise InputError(f"there is no column `{missing[0]}`")
    twins = np.stack([_name_ids(columns[name], builder.entities) for name in TWIN_COLUMNS], axis=1)
    if ((twins < 0).any(axis=1) & (twins >= 0).any(axis=1)).any():
        raise InputError("a twin has only one of `twin_subject` and `twin_object`")
    return twins


def _name_ids(column: Any, table: Any) -> Ids:
    """Return provisional ids of a column of names; -1 for an empty cell."""
    from loginfer.kg.formats.parquet import intern_strings

    return _numbers(column, -1, partial(intern_strings, table=table))


def read_groups(
    path: Path, expected: Mapping[str, str], nullable: tuple[str, ...], optional: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each row group, strings as dictionaries; optional ones if they are there."""
    from loginfer.kg.formats.parquet import ParquetFile

    with ParquetFile(path, path) as file:
        names = file.schema.names
        expected = {**expected, **{name: what for name, what in (optional or {}).items() if name in names}}
        _check_schema(file.schema, expected)
        for table in file.groups(list(expected)):
            columns = {name: _combined(table.column(name)) for name in expected}
            for name, column in columns.items():
                if column.null_count and name not in nullable:
                    raise InputError(f"column `{name}` has an empty cell (null)")
            yield columns


def _combined(column: Any) -> Any:
    import pyarrow as pa

    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _check_schema(schema: Any, expected: Mapping[str, str]) -> None:
    import pyarrow.types as pt

    def is_text(kind: Any) -> bool:
        return bool(pt.is_string(kind) or pt.is_large_string(kind))

    for name in expected:
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
    """Return the triples of three columns of names; new names are added to the builder."""
    from loginfer.kg.formats.parquet import intern_strings

    tables = (builder.entities, builder.relations, builder.entities)
    ids = [intern_strings(columns[name], t) for name, t in zip(TRIPLE_COLUMNS, tables, strict=True)]
    return np.stack(ids, axis=1)


def codes_of(column: Any, words: Sequence[str], name: str, missing: int = -1) -> npt.NDArray[np.int8]:
    """Return the indices of a column's words in a list; `missing` for empty cells."""
    code_of = {word: i for i, word in enumerate(words)}
    codes = [code_of.get(word) for word in column.dictionary.to_pylist()]
    for word, code in zip(column.dictionary.to_pylist(), codes, strict=True):
        if code is None:
            raise InputError(f"column `{name}` holds `{word}`, which is none of {', '.join(filter(None, words))}")
    table = np.array([*codes, missing], dtype=np.int8)
    return np.asarray(table[_numbers(column.indices, len(codes))])


def _numbers(column: Any, missing: int, numbers_of: Callable[[Any], npt.NDArray[Any]] = np.from_dlpack) -> Ids:
    """Return a column as numbers, `missing` for empty cells.

    Arrow's `to_numpy` and `fill_null` would import pandas where that is installed: a quarter of a short command.
    """
    numbers = np.full(len(column), missing, dtype=np.int32)
    if not column.null_count:
        numbers[:] = numbers_of(column)
    elif column.null_count < len(column):
        numbers[np.from_dlpack(column.is_valid().cast("int8")) > 0] = numbers_of(column.drop_null())
    return numbers


def _check_rules(rule: Ids, rules: Sequence[Rule] | None, least: int) -> None:
    if rules is not None and len(rule) and (rule.min() < least or rule.max() >= len(rules)):
        wrong = int(rule.max() if rule.max() >= len(rules) else rule.min())
        raise InputError(f"there is no rule {wrong}: rules.txt holds {len(rules):,}, counted from 0")


def _renamed(triples: Triples, entity_ids: Ids, relation_ids: Ids) -> Triples:
    """Return triples with new ids; each array holds the new id at the index of the old one."""
    columns = [ids[triples[:, k]] for k, ids in enumerate((entity_ids, relation_ids, entity_ids))]
    return np.stack(columns, axis=1)


def read_noise(path: Path, builder: GraphBuilder) -> Finish[NoiseTable]:
    """Read `noise.parquet`; its names are interned in the builder's tables."""
    parts = [(_NO_TRIPLES, np.empty(0, dtype=np.int8))]
    parts += (
        (triples_of(columns, builder), codes_of(columns["kind"], KINDS, "kind"))
        for columns in read_groups(path, NOISE_COLUMNS, nullable=())
    )
    triples, kind = (np.concatenate(column) for column in zip(*parts, strict=True))

    def finish(entity_ids: Ids, relation_ids: Ids, _: Sequence[Rule] | None) -> NoiseTable:
        renamed = _renamed(triples, entity_ids, relation_ids)
        order = np.lexsort((renamed[:, 2], renamed[:, 1], renamed[:, 0]))
        renamed = renamed[order]
        if not run_starts(*renamed.T).all():
            raise InputError("a triple is there twice")
        return NoiseTable(renamed, kind[order])

    return finish
