"""The knowledge graph as a value: its triples, its signature, and its adjacency by relation and by entity.

Triples are int32[n, 3], always subject, relation, object; a set of triples is sorted and unique. Packed into one
number each (`TripleKeys`) they are sorted, merged and looked up. `RelationIndex` is the adjacency of each relation
in both directions, `EntitySteps` the same by entity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, LimitError, UnknownNameError
from loginfer.frames import text_columns, to_frame
from loginfer.kg.vocabulary import Vocabulary, names_shown_as, offsets_of

Triples: TypeAlias = npt.NDArray[np.int32]

Ids: TypeAlias = npt.NDArray[np.int32]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
T = TypeVar("T", bound=npt.NDArray[Any])
N = TypeVar("N", bound=np.integer[Any])

_BLOCK = 2**15


@dataclass(frozen=True, slots=True)
class TripleKeys:
    """Triples packed into one int64 each, in the order of subject, relation, object.

    key = (s · relations + r) · entities + o. Sorting, merging and look-ups on keys are several times
    faster than on rows.

    Parameters
    ----------
    entities, relations
        Sizes of the vocabularies.
    """

    entities: int
    relations: int

    def __post_init__(self) -> None:
        if self.entities * self.entities * self.relations >= 2**63 or self.entities >= 2**31:
            raise LimitError(
                f"a graph of {self.entities:,} entities and {self.relations:,} relations is too large for 64-bit keys",
                hint="this is over a hundred million entities; split the graph",
            )

    def pack(self, triples: Triples) -> npt.NDArray[np.int64]:
        """Return int64[n], one key a triple."""
        keys = triples[:, 0].astype(np.int64)
        keys *= self.relations
        keys += triples[:, 1]
        keys *= self.entities
        keys += triples[:, 2]
        return keys

    def unpack(self, keys: npt.NDArray[np.int64]) -> Triples:
        """Return int32[n, 3], the triples behind the keys."""
        triples = np.empty((len(keys), 3), dtype=np.int32)
        for start in range(0, len(keys), _BLOCK):  # temporaries stay in the cache
            part = keys[start : start + _BLOCK]
            out = triples[start : start + _BLOCK]
            # Division by one number is vectorised, divmod is not.
            rest = part // self.entities
            out[:, 2] = part - rest * self.entities
            subjects = rest // self.relations
            out[:, 0] = subjects
            out[:, 1] = rest - subjects * self.relations
        return triples


def sorted_unique(triples: Triples, keys: TripleKeys) -> Triples:
    """Return the distinct triples in order, always as a new array."""
    if triples.ndim != 2 or triples.shape[1] != 3:
        raise ValueError(f"triples must have the shape (n, 3), not {triples.shape}")
    if len(triples) == 0:
        return triples.copy()
    for column, size in enumerate((keys.entities, keys.relations, keys.entities)):
        if triples[:, column].min() < 0 or triples[:, column].max() >= size:
            raise ValueError("triples hold ids outside the vocabularies")
    packed = keys.pack(triples)
    if (packed[1:] > packed[:-1]).all():
        return np.array(triples, dtype=np.int32, order="C")
    return keys.unpack(distinct_keys(packed))


def run_starts(*columns: npt.NDArray[Any]) -> Mask:
    """Return bool[n]: which rows differ from the one before, as the first does."""
    starts = np.zeros(len(columns[0]), dtype=bool)
    starts[:1] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def ranges(starts: npt.NDArray[Any], counts: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the numbers of ranges one after the other: which range each is of, and the numbers themselves."""
    owners = np.repeat(np.arange(len(counts)), counts)
    return owners, np.arange(len(owners)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)


def equal_pairs(values: npt.NDArray[Any], ascending: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Return all pairs of an index of values and an index of ascending values with the same value there."""
    low, high = np.searchsorted(ascending, values), np.searchsorted(ascending, values, side="right")
    return ranges(low, high - low)


def distinct_keys(keys: npt.NDArray[N]) -> npt.NDArray[N]:
    """Return the distinct keys in ascending order; `keys` is sorted in place, which is faster than `np.unique`."""
    keys.sort()
    fresh = run_starts(keys)
    return keys if fresh.all() else keys[fresh]


def keys_without(keys: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the keys that are not among others; both ascending and distinct."""
    if not len(keys) or not len(others):
        return keys
    few, many = (keys, others) if len(keys) <= len(others) else (others, keys)
    positions = np.searchsorted(many, few)
    positions[positions == len(many)] = 0
    common = many[positions] == few
    if few is keys:
        return np.asarray(keys[~common])
    return np.delete(keys, positions[common])


def merged_keys(*parts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the distinct keys of several arrays in ascending order."""
    keys = np.concatenate(parts)
    keys.sort(kind="stable")  # ascending runs are merged, not sorted again
    fresh = run_starts(keys)
    return keys if fresh.all() else keys[fresh]


FORWARD: Literal[0] = 0
INVERSE: Literal[1] = 1

# Dense row pointers kept for reuse take at most this much memory; then all are dropped and made again.
POINTER_BYTES = 512 * 2**20

# Threads may share an index, but make row pointers one at a time. (A lock of the index's own could not be pickled.)
_MAKING_POINTERS = Lock()

BLOCK = 2**15


class RelationIndex:
    """For each relation its pairs sorted by subject and, once more, by object.

    `columns` is int32[2n]: first the objects of all triples in the order (relation, subject, object), then
    the subjects in the order (relation, object, subject). `offsets` says where a relation's part of the
    first half begins; its part of the second half is n further on. `pointers(r, direction)` are row
    pointers straight into `columns`:

        R-successors of x    = columns[p[x]:p[x + 1]] with p = pointers(R, FORWARD), ascending
        R-predecessors of y  = columns[p[y]:p[y + 1]] with p = pointers(R, INVERSE), ascending

    Kernels therefore take one array of values and a stack of row pointers, whatever relations a rule has:
    `rows` returns the stack and the rows in it. Row pointers are made when first used.

    Parameters
    ----------
    triples
        int32[n, 3]; those of each relation unique and sorted by subject, then object.
    entities, relations
        Sizes of the vocabularies.
    """

    def __init__(self, triples: npt.NDArray[np.int32], entities: int, relations: int) -> None:
        self.entities = entities
        self.relations = relations
        self.size = len(triples)
        if 2 * self.size >= 2**31:
            hint = "use the engine that works out of memory (--engine duckdb)"
            raise LimitError(f"{self.size:,} triples are too many for 32-bit row pointers", hint=hint)
        counts = np.bincount(triples[:, 1], minlength=relations)
        self.offsets = offsets_of(counts)
        # Triples come sorted by (s, r, o): one stable sort by r gives (r, s, o). Numbers of 16 bits are
        # sorted in linear time.
        narrow = np.uint16 if relations <= 2**16 else np.int32
        by_subject = np.argsort(triples[:, 1].astype(narrow), kind="stable")
        self.subjects = np.ascontiguousarray(triples[by_subject, 0])
        objects = np.ascontiguousarray(triples[by_subject, 2])
        # (r, o, s) packed into one number each: sorting numbers is faster than sorting indices.
        key = np.repeat(np.arange(relations, dtype=np.int64), counts)
        key *= entities
        key += objects
        key *= entities
        key += self.subjects
        key.sort()
        self.inverse_objects = np.empty(self.size, dtype=np.int32)
        self.columns = np.empty(2 * self.size, dtype=np.int32)
        self.columns[: self.size] = objects
        for start in range(0, self.size, BLOCK):
            part = slice(start, min(start + BLOCK, self.size))
            pairs = key[part] // entities
            self.columns[self.size + part.start : self.size + part.stop] = key[part] - pairs * entities
            self.inverse_objects[part] = pairs - pairs // entities * entities
        for array in (self.offsets, self.subjects, self.inverse_objects, self.columns):
            array.setflags(write=False)
        self._stack: npt.NDArray[np.int32] = np.empty((0, entities + 1), dtype=np.int32)
        self._rows: dict[tuple[int, int], int] = {}
        self._starts: dict[tuple[int, int], Ids] = {}

    @property
    def objects(self) -> npt.NDArray[np.int32]:
        """int32[n], objects in the order (relation, subject, object), beside `subjects`."""
        return self.columns[: self.size]

    @property
    def inverse_subjects(self) -> npt.NDArray[np.int32]:
        """int32[n], subjects in the order (relation, object, subject), beside `inverse_objects`."""
        return self.columns[self.size :]

    def pairs(self, relation: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return subjects and objects of one relation, sorted by subject, then object."""
        part = slice(int(self.offsets[relation]), int(self.offsets[relation + 1]))
        return self.subjects[part], self.objects[part]

    def inverse_pairs(self, relation: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return objects and subjects of one relation, sorted by object, then subject."""
        part = slice(int(self.offsets[relation]), int(self.offsets[relation + 1]))
        return self.inverse_objects[part], self.inverse_subjects[part]

    def count(self, relation: int) -> int:
        """Return the number of pairs of a relation."""
        return int(self.offsets[relation + 1] - self.offsets[relation])

    def _sources(self, relation: int, direction: int) -> tuple[Ids, int]:
        """Return the id to whose list each value belongs, and where the values begin in `columns`."""
        begin = int(self.offsets[relation])
        if direction == FORWARD:
            return self.pairs(relation)[0], begin
        return self.inverse_pairs(relation)[0], begin + self.size

    def starts(self, relation: int, direction: int) -> Ids:
        """Return the ids whose list is not empty, ascending."""
        starts = self._starts.get((relation, direction))
        if starts is None:
            sources, _ = self._sources(relation, direction)
            starts = self._starts[relation, direction] = sources[run_starts(sources)]
        return starts

    def neighbours(self, relation: int, direction: int, entity: int) -> Ids:
        """Return the list of one id, ascending."""
        sources, begin = self._sources(relation, direction)
        low, high = np.searchsorted(sources, np.array([entity, entity + 1], dtype=sources.dtype))
        return self.columns[begin + low : begin + high]

    def holds(self, subject: int, relation: int, object_: int) -> bool:
        """Say whether a relation holds of two ids."""
        objects = self.neighbours(relation, FORWARD, subject)
        position = int(np.searchsorted(objects, object_))
        return position < len(objects) and int(objects[position]) == object_

    def pointers(self, relation: int, direction: int) -> npt.NDArray[np.int32]:
        """Return int32[entities + 1]: row pointers of one relation into `columns`."""
        stack, (row,) = self.rows([(relation, direction)])
        pointers: npt.NDArray[np.int32] = stack[row]
        pointers.setflags(write=False)
        return pointers

    def rows(self, slots: Sequence[tuple[int, int]]) -> tuple[npt.NDArray[np.int32], list[int]]:
        """Return row pointers int32[m, entities + 1], and the rows of some pairs of relation and direction in them."""
        with _MAKING_POINTERS:
            missing = [slot for slot in slots if slot not in self._rows]
            if missing:
                self._make_pointers(missing, slots)
            return self._stack, [self._rows[slot] for slot in slots]

    def _make_pointers(self, missing: Sequence[tuple[int, int]], slots: Sequence[tuple[int, int]]) -> None:
        most = max(POINTER_BYTES // (4 * (self.entities + 1)), len(slots))
        if len(self._rows) + len(missing) > most:
            # Callers may still use the rows they have: new ones go into a new stack.
            self._rows, self._stack, missing = {}, self._stack[:0], slots
        needed = len(self._rows) + len(set(missing))
        if needed > len(self._stack):
            grown = np.empty((min(max(2 * needed, 8), most), self.entities + 1), dtype=np.int32)
            grown[: len(self._rows)] = self._stack[: len(self._rows)]
            self._stack = grown
        for slot in dict.fromkeys(missing):
            sources, begin = self._sources(*slot)
            row = self._stack[len(self._rows)]
            row[0] = 0
            np.cumsum(np.bincount(sources, minlength=self.entities), out=row[1:])
            row += begin
            self._rows[slot] = len(self._rows)


class EntitySteps:
    """All steps away from each entity; the view by entity beside `RelationIndex`, the view by relation.

    A step is a relation with a direction: 2 · R + FORWARD goes from subject to object, 2 · R + INVERSE back.
    The steps away from x are those in `steps[p[x]:p[x + 1]]`, with p = `pointers`, and lead to the entities in
    the same part of `ends`. They are sorted by step, then by end. A triple (x, R, x) gives x two steps.

    Parameters
    ----------
    index
        The relations of the graph.

    Attributes
    ----------
    pointers
        int64[entities + 1], where the steps of each entity begin.
    steps
        int32[2n], the steps of all entities one after the other.
    ends
        int32[2n], where each step leads.
    """

    def __init__(self, index: RelationIndex) -> None:
        counts = np.diff(index.offsets)
        starts = np.empty(2 * index.size, dtype=np.int32)
        ends = np.empty_like(starts)
        # Each relation's pairs one way, then the other: sorted by step, start, end.
        rows = np.arange(index.size) + np.repeat(index.offsets[:-1], counts)
        starts[rows], ends[rows] = index.subjects, index.objects
        rows += np.repeat(counts, counts)
        starts[rows], ends[rows] = index.inverse_objects, index.inverse_subjects
        steps = np.repeat(np.arange(2 * index.relations, dtype=np.int32), np.repeat(counts, 2))
        order = np.argsort(starts, kind="stable")
        self.steps: Ids = _readonly(steps[order])
        self.ends: Ids = _readonly(ends[order])
        pointers = offsets_of(np.bincount(starts, minlength=index.entities))
        self.pointers: npt.NDArray[np.int64] = _readonly(pointers)


RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

# The names under which the type predicate is recognised, most explicit first.
TYPE_NAMES = (RDF_TYPE, f"<{RDF_TYPE}>", "rdf:type", "type")


class KnowledgeGraph:
    """A finite set of triples (e, type, t) and (s, R, o) over a signature (section 2.1 of the paper).

    A graph never changes. `triples` is sorted by subject, relation, object and has no duplicates. Types
    share the vocabulary of the constants: (e, type, t) has the id of `type` in the middle and that of t
    at the end. A vocabulary may hold names that no triple uses, such as the head predicates of rules.

    Parameters
    ----------
    entities
        Names of constants and types.
    relations
        Names of relations, and of the type predicate if there is one.
    triples
        int32[n, 3], ids of subject, relation, object; any order, duplicates allowed.
    type_predicate
        Name of the type predicate. By default it is recognised by name (`rdf:type` as an IRI or in short,
        or `type`); the empty string says that there is none.
    labels
        What people call its constants and relations, by name; empty where nothing says so.
    """

    # Whether `triples` is in memory; otherwise using it loads the whole graph.
    in_memory = True

    def __init__(
        self,
        entities: Vocabulary,
        relations: Vocabulary,
        triples: npt.ArrayLike,
        *,
        type_predicate: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self.entities = entities
        self.relations = relations
        self.labels: Mapping[str, str] = labels or {}
        self.keys = TripleKeys(len(entities), len(relations))
        rows = np.asarray(triples, dtype=np.int32)
        self.triples: Triples = sorted_unique(rows if rows.size else rows.reshape(0, 3), self.keys)
        self.triples.setflags(write=False)
        self.type_relation = _find_type_relation(relations, type_predicate)

    @classmethod
    def from_names(cls, triples: Iterable[Sequence[str]], *, type_predicate: str | None = None) -> KnowledgeGraph:
        """Make a graph of (subject, relation, object) names."""
        rows = [(s, r, o) for s, r, o in triples]
        entities = Vocabulary.of([name for s, _, o in rows for name in (s, o)])
        relations = Vocabulary.of([r for _, r, _ in rows])
        entity_id = {name: i for i, name in enumerate(entities)}
        relation_id = {name: i for i, name in enumerate(relations)}
        ids = [(entity_id[s], relation_id[r], entity_id[o]) for s, r, o in rows]
        return cls(entities, relations, np.array(ids, dtype=np.int32).reshape(-1, 3), type_predicate=type_predicate)

    @classmethod
    def from_frame(
        cls, frame: Any, columns: Sequence[str | int] | None = None, *, type_predicate: str | None = None
    ) -> KnowledgeGraph:
        """Make a graph of a table of pandas, polars or pyarrow with a row for each triple.

        Parameters
        ----------
        frame
            The table.
        columns
            The names of the columns with subject, relation and object; by default the first three.
        type_predicate
            As for the class.

        Examples
        --------
        >>> frame = {"from": ["ann"], "to": ["bob"], "how": ["knows"]}
        >>> graph = KnowledgeGraph.from_frame(frame, columns=("from", "how", "to"))
        >>> graph.names(graph.triples)
        [('ann', 'knows', 'bob')]
        """
        return cls.from_names(zip(*text_columns(frame, columns, 3), strict=True), type_predicate=type_predicate)

    def to_frame(self) -> Any:
        """Return a row for each triple: subject, relation, object by name (see `loginfer.frames.to_frame`)."""
        return to_frame(("subject", "relation", "object"), self.names(self.triples))

    @classmethod
    def from_keys(
        cls,
        entities: Vocabulary,
        relations: Vocabulary,
        keys: npt.NDArray[np.int64],
        *,
        type_predicate: str | None = None,
    ) -> KnowledgeGraph:
        """Make a graph of packed triples (see `TripleKeys`) in any order, duplicates allowed.

        This is the fastest way for many triples; `keys` is sorted in place.
        """
        packing = TripleKeys(len(entities), len(relations))
        distinct = distinct_keys(keys)
        limit = len(entities) * len(relations) * len(entities)
        if len(distinct) and (distinct[0] < 0 or distinct[-1] >= limit):
            raise ValueError("keys hold ids outside the vocabularies")
        graph = cls(entities, relations, np.empty((0, 3), dtype=np.int32), type_predicate=type_predicate)
        graph.triples = _readonly(packing.unpack(distinct))
        return graph

    def __len__(self) -> int:
        return len(self.triples)

    # -- the signature --------------------------------------------------------------------------

    @property
    def type_predicate(self) -> str | None:
        """The name of the type predicate, if this graph has one."""
        return None if self.type_relation is None else self.relations[self.type_relation]

    @cached_property
    def preds(self) -> Ids:
        """Preds(K) without the types: ids of all relations in use, the type predicate included."""
        return _readonly(np.unique(self.triples[:, 1]))

    @cached_property
    def rels(self) -> Ids:
        """Rels(K): ids of the relations in use. `type` is no relation."""
        if self.type_relation is None:
            return self.preds
        return _readonly(self.preds[self.preds != self.type_relation])

    @cached_property
    def types(self) -> Ids:
        """Types(K): ids, in the vocabulary of entities, of the types in use."""
        return _readonly(np.unique(self.triples[self._is_type_triple, 2]))

    @cached_property
    def consts(self) -> Ids:
        """Consts(K): ids of the constants in use; a type counts only if it is used as a constant too."""
        used = np.zeros(len(self.entities), dtype=bool)
        used[self.triples[:, 0]] = True
        used[self.triples[~self._is_type_triple, 2]] = True
        return _readonly(np.flatnonzero(used).astype(np.int32))

    @cached_property
    def _is_type_triple(self) -> npt.NDArray[np.bool_]:
        if self.type_relation is None:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.triples[:, 1] == self.type_relation)

    # -- look-ups -------------------------------------------------------------------------------

    @cached_property
    def index(self) -> RelationIndex:
        """Per-relation adjacency in both directions, built when first used."""
        return RelationIndex(self.triples, len(self.entities), len(self.relations))

    @cached_property
    def steps(self) -> EntitySteps:
        """All steps away from each entity, in both directions, built when first used."""
        return EntitySteps(self.index)

    @cached_property
    def packed(self) -> npt.NDArray[np.int64]:
        """int64[n], the triples as sorted keys (see `TripleKeys`)."""
        return _readonly(self.keys.pack(self.triples))

    def contains(self, triples: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return bool[m]: which of these triples of ids are in the graph."""
        ids = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        if not len(self):
            return np.zeros(len(ids), dtype=bool)
        keys = self.keys.pack(ids)
        order = np.argsort(keys)  # neighbours are looked up one after the other: far fewer cache misses
        ascending = keys[order]
        positions = np.searchsorted(self.packed, ascending)
        positions[positions == len(self)] = 0
        is_contained = np.empty(len(ids), dtype=bool)
        is_contained[order] = self.packed[positions] == ascending
        # An id outside the vocabularies, such as -1 for an unknown name, could make another triple's key.
        for column, size in enumerate((len(self.entities), len(self.relations), len(self.entities))):
            is_contained &= (ids[:, column] >= 0) & (ids[:, column] < size)
        return np.asarray(is_contained)

    def sides(self, relation: int) -> tuple[Ids, Ids]:
        """Return the distinct subjects and the distinct objects of a relation, each sorted."""
        index = self.index
        part = slice(int(index.offsets[relation]), int(index.offsets[relation + 1]))
        subjects, objects = index.subjects[part], index.inverse_objects[part]
        return subjects[run_starts(subjects)], objects[run_starts(objects)]

    @cached_property
    def looped(self) -> Ids:
        """Ids of the relations with a triple (x, R, x)."""
        return _readonly(np.unique(self.triples[self.triples[:, 0] == self.triples[:, 2], 1]))

    def blocks(self) -> Iterator[Triples]:
        """Yield all triples in order, some at a time; a graph in memory has one block."""
        yield self.triples

    def relation_id(self, name: str) -> int:
        """Return the id of a relation; the error names the nearest ones.

        `rdf:type` in any of its forms means the type predicate, whatever this graph calls it.
        """
        relation = self.relations.get(name)
        if relation is None and name in TYPE_NAMES:
            relation = self.type_relation
        if relation is None:
            raise UnknownNameError("relation", name, self.relations)
        return relation

    def entity_id(self, name: str) -> int:
        """Return the id of a constant or type; the error names the nearest ones."""
        entity = self.entities.get(name)
        if entity is None:
            candidates = self.entities if len(self.entities) <= 200_000 else ()
            raise UnknownNameError("constant", name, candidates)
        return entity

    def names(self, triples: npt.ArrayLike) -> list[tuple[str, str, str]]:
        """Return triples of ids as triples of names."""
        ids = np.asarray(triples).reshape(-1, 3)
        columns = (self.entities.names(ids[:, 0]), self.relations.names(ids[:, 1]), self.entities.names(ids[:, 2]))
        return list(zip(*columns, strict=True))

    # -- other graphs ---------------------------------------------------------------------------

    def with_triples(self, triples: npt.ArrayLike) -> KnowledgeGraph:
        """Return a graph over the same vocabularies with other triples."""
        predicate = self.type_predicate or ""
        return KnowledgeGraph(self.entities, self.relations, triples, type_predicate=predicate, labels=self.labels)

    def with_more(self, triples: Triples) -> KnowledgeGraph:
        """Return a graph over the same vocabularies that has these triples as well."""
        return self.with_triples(np.vstack([self.triples, triples]))

    def with_names(self, *, entities: Iterable[str] = (), relations: Iterable[str] = ()) -> KnowledgeGraph:
        """Return the same triples over vocabularies that also hold these names; ids may change.

        If a graph without a type predicate gets the relation `rdf:type`, that becomes its type predicate.
        """
        new_entities = self.entities.union(entities)
        new_names = [name for name in relations if not (name in TYPE_NAMES and self.type_relation is not None)]
        new_relations = self.relations.union(new_names)
        if new_entities is self.entities and new_relations is self.relations:
            return self
        entity_map = self.entities.positions_in(new_entities)
        relation_map = self.relations.positions_in(new_relations)
        triples = np.empty_like(self.triples)
        triples[:, 0] = entity_map[self.triples[:, 0]]
        triples[:, 1] = relation_map[self.triples[:, 1]]
        triples[:, 2] = entity_map[self.triples[:, 2]]
        type_predicate = self.type_predicate or (RDF_TYPE if RDF_TYPE in new_names else "")
        return KnowledgeGraph(new_entities, new_relations, triples, type_predicate=type_predicate, labels=self.labels)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KnowledgeGraph):
            return NotImplemented
        return (
            self.type_relation == other.type_relation
            and self.entities == other.entities
            and self.relations == other.relations
            and bool(np.array_equal(self.triples, other.triples))
        )

    def __hash__(self) -> int:
        return hash((len(self), self.entities, self.relations))

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({len(self):,} triples, {len(self.consts):,} constants, "
            f"{len(self.rels):,} relations, {len(self.types):,} types)"
        )


def _find_type_relation(relations: Vocabulary, type_predicate: str | None) -> int | None:
    if type_predicate is None:
        for name in TYPE_NAMES:
            relation = relations.get(name)
            if relation is not None:
                return relation
        return None
    if type_predicate == "":
        return None
    relation = relations.get(type_predicate)
    if relation is None:
        raise UnknownNameError("relation", type_predicate, relations, where="type predicate")
    return relation


def _readonly(array: T) -> T:
    array.setflags(write=False)
    return array


Keys = npt.NDArray[np.int64]


def member(keys: Keys, queries: Keys) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which queries are among the keys, which are sorted."""
    return places_of(keys, queries)[0]


def places_of(keys: Keys, queries: Keys) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return bool[n], int64[n]: which queries are among the sorted keys, and at which index."""
    if not len(keys):
        return np.zeros(len(queries), dtype=bool), np.zeros(len(queries), dtype=np.int64)
    positions = np.searchsorted(keys, queries)
    positions[positions == len(keys)] = 0
    return keys[positions] == queries, positions


def even_parts(count: int, *columns: npt.NDArray[Any]) -> list[slice]:
    """Divide rows into about so many parts of about one length; equal rows next to each other stay together."""
    cuts = np.flatnonzero(run_starts(*columns))[1:]
    even = np.linspace(0, len(columns[0]), count + 1)[1:-1]
    inner = cuts[np.minimum(np.searchsorted(cuts, even), len(cuts) - 1)] if len(cuts) else cuts
    return [slice(start, stop) for start, stop in pairwise([0, *np.unique(inner).tolist(), len(columns[0])])]


def grouped(*columns: npt.NDArray[np.int64]) -> list[tuple[tuple[int, ...], npt.NDArray[np.int64]]]:
    """Group rows by their values: return each combination of values with its rows, in ascending order."""
    order = np.lexsort(columns[::-1])
    rows = np.stack(columns, axis=1)[order]
    starts = np.flatnonzero(run_starts(*rows.T))
    groups = np.split(order, starts[1:]) if len(order) else []
    return [(tuple(values), group) for values, group in zip(rows[starts].tolist(), groups, strict=True)]


def resolve_relation(graph: KnowledgeGraph, name: str) -> int:
    """Find a relation by its name or, where that is unambiguous, by its last part, its label or any short form."""
    return _resolved(name, graph.relations, graph.labels, graph.relation_id)


def resolve_entity(graph: KnowledgeGraph, name: str) -> int:
    """Find a constant or type in the same way."""
    return _resolved(name, graph.entities, graph.labels, graph.entity_id)


def _resolved(text: str, names: Vocabulary, labels: Mapping[str, str], exact: Callable[[str], int]) -> int:
    matches = names_shown_as(text, names, labels)
    if len(matches) > 1:
        full = ", ".join(f"`{names[i]}`" for i in matches[:3])
        more = f" and {len(matches) - 3} more" if len(matches) > 3 else ""
        raise InputError(f"`{text}` may be any of {full}{more}", hint="give more of the name")
    return matches[0] if matches else exact(text)
