"""Bodies as numbers: which shapes are sought, how one is packed and read, where it fires, and how often.

A step is a directed relation 2·R + d: with d = 0 it goes from subject to object, with d = 1 from object to
subject. A body is a shape and up to four digits, each a step, a type, a side or `absent`:

    EDGE       a(x,y)
    PATH2      a(x,z), b(z,y)
    BOTH       a(x,y), b(x,y)                                  intersection; a < b
    TRIANGLE   a(x,y), b(x,z), c(z,y)                          all variables different
    DIAMOND    a(x,y), b(x,z), c(z,w), d(w,y)                  all variables different
    PATH3      a(x,z), b(z,w), c(w,y)
    EDGE_TYPE  a(x,y) and a type: digits a, side, type
    TYPED      for heads (x,type,C): a type of x, a step b(x,z), a type of z; each may be absent, not all
    GIVEN      an instance of a pattern that the user gave: its index in a list

Kernels list the bodies that fire for pairs of constants and count them, or write down where they fire; others say
whether given bodies fire for pairs, and for which ends they fire from a start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.errors import LimitError
from loginfer.kernels import EMPTY, find_slot, gallop, inlined, kernel
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Rule, Variable
from loginfer.systems.rules.mined import NONE
from loginfer.systems.rules.paths import Edges, Ids, Longs, edges_of, neighbours_of, path_ends, path_exists, steps_from

EDGE, PATH2, BOTH, TRIANGLE, DIAMOND, PATH3, EDGE_TYPE, TYPED, GIVEN = range(9)
SUBJECT_SIDE, OBJECT_SIDE = 0, 1
# The atoms of each shape, by the variables that the steps lead from and to; inequalities are none. For TYPED and
# GIVEN they depend on the digits.
_STEPS: dict[int, tuple[str, ...]] = {
    EDGE: ("xy",),
    PATH2: ("xz", "zy"),
    BOTH: ("xy", "xy"),
    TRIANGLE: ("xy", "xz", "zy"),
    DIAMOND: ("xy", "xz", "zw", "wy"),
    PATH3: ("xz", "zw", "wy"),
    EDGE_TYPE: ("xy",),
}
_ALL_DIFFERENT = {TRIANGLE: "xyz", DIAMOND: "xyzw"}
_ATOMS = np.array([len(_STEPS.get(shape, ())) + (shape == EDGE_TYPE) for shape in range(GIVEN + 1)])
_DIGITS = 4
# Shapes that fit into the largest digit of a code.
_SHAPES = 16

# Which step comes where when x and y are exchanged; each is turned round, too.
_TURNED: dict[int, list[int]] = {
    EDGE: [0],
    PATH2: [1, 0],
    BOTH: [0, 1],
    TRIANGLE: [0, 2, 1],
    DIAMOND: [0, 3, 2, 1],
    PATH3: [2, 1, 0],
}

_VARIABLE = {name: Variable(name) for name in "xyzw"}
_X, _Y, _Z = (_VARIABLE[name] for name in "xyz")


@dataclass(frozen=True)
class Bodies:
    """How bodies over one graph are packed and written.

    Parameters
    ----------
    graph
        Gives names and types.
    given_rules
        Instances of the user's patterns; codes of shape GIVEN refer to them.
    """

    graph: KnowledgeGraph
    given_rules: tuple[Rule, ...] = ()

    @cached_property
    def steps(self) -> int:
        """How many directed relations there are."""
        return 2 * len(self.graph.relations)

    @cached_property
    def base(self) -> int:
        """How many values a digit has: steps or types, two sides, the indices of given rules, and `absent`."""
        return max(self.steps, len(self.graph.types), len(self.given_rules), 2) + 1

    @property
    def absent(self) -> int:
        """The digit that stands for nothing."""
        return self.base - 1

    def type_index(self, type_: int) -> int:
        """Return the index of a type among those in use; -1 if it is not in use."""
        index = int(np.searchsorted(self.graph.types, type_))
        return index if index < len(self.graph.types) and self.graph.types[index] == type_ else -1

    def check(self) -> None:
        """Complain if codes do not fit into 63 bits."""
        if _SHAPES * self.base**_DIGITS >= 2**63:
            raise LimitError(
                f"contrast takes graphs with up to 13,500 relations or types, not {self.base - 1:,}",
                hint="use another miner, e.g. --miner anyburl",
            )

    def pack(self, shape: int, *digits: int) -> int:
        """Return the code of a body."""
        code = shape
        for digit in (*digits, *[0] * (_DIGITS - len(digits))):
            code = code * self.base + digit
        return code

    def pack_all(self, shape: int, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> Longs:
        """Return the codes of many bodies of a shape with three digits."""
        first, second, third = np.broadcast_arrays(np.asarray(a, dtype=np.int64), b, c)
        two = (shape * self.base + first) * self.base + second
        return np.asarray((two * self.base + third) * self.base, dtype=np.int64)

    def unpack(self, codes: Longs) -> Longs:
        """Return int64[m, 5]: shape and digits of each code."""
        parts = np.empty((len(codes), 1 + _DIGITS), dtype=np.int64)
        rest = codes.copy()
        for digit in range(_DIGITS, -1, -1):
            parts[:, digit] = rest % self.base if digit else rest
            rest //= self.base
        return parts

    def turned(self, parts: Longs) -> Longs:
        """Return bodies with x and y exchanged, as seen from y; both as `unpack` gives them."""
        turned = parts.copy()
        shape, steps = parts[:, 0], parts[:, 1:] ^ 1
        for of_shape, order in _TURNED.items():
            rows = shape == of_shape
            turned[rows, 1 : 1 + len(order)] = steps[rows][:, order]
        rows = shape == EDGE_TYPE
        turned[rows, 1:3] = steps[rows, :2]
        return turned

    def atoms(self, codes: Longs) -> Longs:
        """Return int64[m], how many atoms each body has."""
        parts = self.unpack(codes)
        atoms = _ATOMS[parts[:, 0]]
        typed = parts[:, 0] == TYPED
        atoms[typed] = np.count_nonzero(parts[typed, 1:4] != self.absent, axis=1)
        for i in np.flatnonzero(parts[:, 0] == GIVEN):
            atoms[i] = len(self.given_rules[int(parts[i, 1])].atoms)
        return atoms

    def rule(self, code: int, relation: int, type_: int) -> Rule:
        """Return the rule with this body and the head (x, relation, y), or (x, type, type_)."""
        if self.is_given(code):
            return self.given_rules[int(self.unpack(np.array([code]))[0, 1])]
        head = self._type(_X, type_) if relation == self.graph.type_relation else self._step(2 * relation)
        return Rule(self._body(code), head)

    def is_given(self, code: int) -> bool:
        """Whether a body is an instance of a given pattern."""
        return bool(code // self.base**_DIGITS == GIVEN)

    def given_code(self, rule: Rule) -> int:
        """Return the code of a given rule."""
        return self.pack(GIVEN, self.given_rules.index(rule))

    def code_of(self, rule: Rule) -> int | None:
        """Return the code of a rule's body if `rule` would write it like this; else None."""
        if len(rule.atoms) > _DIGITS or not self._in_names(rule):
            return None
        for guess in self._guesses(rule):
            relation, type_ = self.graph.type_relation, -1
            if rule.head.is_type and isinstance(rule.head.object, Constant):
                type_ = self.graph.entity_id(rule.head.object.name)
            else:
                relation = self.graph.relation_id(str(rule.head.relation))
            if relation is not None and self.rule(guess, relation, type_) == rule:
                return guess
        return None

    def _in_names(self, rule: Rule) -> bool:
        """Whether the graph has all names of a rule."""
        types = {self.graph.entities[int(t)] for t in self.graph.types}
        for atom in rule:
            if atom.is_type:
                named = isinstance(atom.object, Constant) and (atom is rule.head or atom.object.name in types)
            else:
                named = not any(isinstance(term, Constant) for term in atom.terms)
                named = named and str(atom.relation) in self.graph.relations
            if not named:
                return False
        return True

    def _guesses(self, rule: Rule) -> list[int]:
        """Return the codes whose bodies have as many atoms with these predicates."""
        digits: list[tuple[int, ...]] = []
        for atom in rule.atoms:
            if isinstance(atom.object, Constant):
                digits.append((self.type_index(self.graph.entity_id(atom.object.name)),))
            else:
                step = 2 * self.graph.relation_id(str(atom.relation))
                digits.append((step, step + 1))
        shapes = {1: (EDGE,), 2: (PATH2, BOTH), 3: (TRIANGLE, PATH3), 4: (DIAMOND,)}[max(len(digits), 1)]
        typed = [atom.is_type for atom in rule.atoms]
        if not any(typed) and not rule.head.is_type:
            return [self.pack(shape, *combination) for shape in shapes for combination in product(*digits)]
        if rule.head.is_type:
            parts: list[tuple[int, ...]] = [(self.absent,)] * 3
            for i, (digit, is_type) in enumerate(zip(digits, typed, strict=True)):
                parts[1 if not is_type else 0 if i == 0 else 2] = digit
            return [self.pack(TYPED, *combination) for combination in product(*parts)]
        if typed == [False, True]:
            return [self.pack(EDGE_TYPE, a, side, digits[1][0]) for a in digits[0] for side in (0, 1)]
        return []

    def _body(self, code: int) -> list[BodyAtom]:
        shape, *digits = (int(digit) for digit in self.unpack(np.array([code]))[0])
        a, b, c, _ = digits
        if shape != TYPED:
            ways = zip(digits, _STEPS[shape], strict=False)
            body: list[BodyAtom] = [self._step(step, _VARIABLE[way[0]], _VARIABLE[way[1]]) for step, way in ways]
            if shape == EDGE_TYPE:
                body.append(self._of_type((_X, _Y)[b], c))
            pairs = combinations(_ALL_DIFFERENT.get(shape, ""), 2)
            return [*body, *(Inequality(_VARIABLE[one], _VARIABLE[two]) for one, two in pairs)]
        typed: list[BodyAtom] = []
        if a != self.absent:
            typed.append(self._of_type(_X, a))
        if b != self.absent:
            typed.append(self._step(b, _X, _Z))
        if c != self.absent:
            typed.append(self._of_type(_Z, c))
        return typed

    def _step(self, step: int, start: Variable = _X, end: Variable = _Y) -> Atom:
        name = self.graph.relations[step >> 1]
        return Atom(end, name, start) if step & 1 else Atom(start, name, end)

    def _of_type(self, variable: Variable, number: int) -> Atom:
        return self._type(variable, int(self.graph.types[number]))

    def _type(self, variable: Variable, type_: int) -> Atom:
        return Atom(variable, RDF_TYPE, Constant(self.graph.entities[type_]))


# -- the graph and the table that kernels take ------------------------------------------------------


class TypedGraph(NamedTuple):
    """A graph for kernels: steps from each constant in two orders, and its types, which no step leads to.

    Parameters
    ----------
    pointers, ends, steps
        The neighbours of each constant (see `NeighbourLists`).
    edges
        The steps of each constant, by kind.
    type_pointers, types
        int64[e + 1], int32[k]: the types of x, as indices into `graph.types`, ascending.
    """

    pointers: Longs
    ends: Ids
    steps: Ids
    edges: Edges
    type_pointers: Longs
    types: Ids


def typed_graph(graph: KnowledgeGraph) -> TypedGraph:
    """Sort the steps of a graph."""
    # Triples are sorted by subject, and within the type predicate by object.
    typed = graph.triples[graph.triples[:, 1] == (-1 if graph.type_relation is None else graph.type_relation)]
    pointers = np.searchsorted(typed[:, 0], np.arange(len(graph.entities) + 1)).astype(np.int64)
    types = np.searchsorted(graph.types, typed[:, 2]).astype(np.int32)
    return TypedGraph(*neighbours_of(graph, loops=True), edges_of(graph), pointers, types)


# Which rows are counted separately.
TRAIN_POSITIVE, TRAIN_NEGATIVE, VALID_POSITIVE, VALID_NEGATIVE = range(4)
GROUPS = 4


class Table(NamedTuple):
    """The arrays of a `BodyCounter`: a hash table from bodies to numbers, and the counts of each number.

    Parameters
    ----------
    keys, numbers
        int64[power of 2], int32[…]: the bodies, EMPTY for an empty slot, and their numbers.
    codes, slots
        int64[limit]: for each number the body, and its slot.
    stamps
        int32[limit, 2]: the last row that a body was counted for, and that larger ones were sought with it.
    counts
        int32[limit, GROUPS], for how many rows of each group a body fires.
    used
        int64[2]: bodies in the table; rows of `out` that are filled.
    column_of, out
        int32[m], int32[k, 2]. If `out` has rows, nothing is counted: for a body with number n that fires for a row,
        the row and column_of[n] are written there, unless that is -1.
    """

    keys: Longs
    numbers: Ids
    codes: Longs
    slots: Longs
    stamps: Ids
    counts: Ids
    used: Longs
    column_of: Ids
    out: Ids


class BodyCounter:
    """A hash table from the codes of bodies to numbers, with counts.

    Parameters
    ----------
    limit
        How many bodies fit; further ones are not taken in.
    """

    def __init__(self, limit: int) -> None:
        slots = 1 << int(2 * limit - 1).bit_length()
        self._arrays = Table(
            np.full(slots, EMPTY, dtype=np.int64),
            np.zeros(slots, dtype=np.int32),
            np.zeros(limit, dtype=np.int64),
            np.zeros(limit, dtype=np.int64),
            np.full((limit, 2), -1, dtype=np.int32),
            np.zeros((limit, GROUPS), dtype=np.int32),
            np.zeros(2, dtype=np.int64),
            np.empty(0, dtype=np.int32),
            np.empty((0, 2), dtype=np.int32),
        )

    def __len__(self) -> int:
        return int(self._arrays.used[0])

    @property
    def codes(self) -> Longs:
        """int64[m], the bodies by number."""
        return self._arrays.codes[: len(self)]

    @property
    def counts(self) -> Ids:
        """int32[m, GROUPS], for how many rows of each group a body fires."""
        return self._arrays.counts[: len(self)]

    def clear(self) -> None:
        """Forget all bodies, in time proportional to their number."""
        self._arrays.keys[self._arrays.slots[: len(self)]] = EMPTY
        self._arrays.counts[: len(self)] = 0
        self._arrays.used[:] = 0

    @classmethod
    def holding(cls, codes: Longs) -> BodyCounter:
        """Return a table that holds these bodies, numbered in their order, and takes in no more.

        A small table stays in the processor's cache.
        """
        table = cls(max(len(codes), 1))
        insert_all(codes, table._arrays)
        return table

    def for_kernel(self, column_of: Ids | None = None, out: Ids | None = None) -> Table:
        """Return the arrays, ready for rows that are numbered from 0; to count, or to write into `out`."""
        self._arrays.stamps[: len(self)] = -1
        self._arrays.used[1] = 0
        return self._arrays if column_of is None or out is None else self._arrays._replace(column_of=column_of, out=out)

    def written(self) -> int:
        """How many rows of `out` the last kernel has filled."""
        return int(self._arrays.used[1])


@inlined
def _find(table: Table, code: Any, insert: Any) -> Any:
    """Return the number of a body, a new one if it may be inserted; -1 if it is not there."""
    slot = find_slot(table.keys, code)
    if table.keys[slot] == code:
        return np.int64(table.numbers[slot])
    number = table.used[0]
    if not insert or number >= len(table.codes):
        return np.int64(-1)
    table.used[0] += 1
    table.keys[slot], table.numbers[slot] = code, number
    table.codes[number], table.slots[number] = code, slot
    table.stamps[number, 0] = table.stamps[number, 1] = -1
    return number


@kernel
def insert_all(codes: Longs, table: Table) -> None:
    """Put bodies into the table."""
    for i in range(len(codes)):
        _find(table, codes[i], True)


@inlined
def _count(table: Table, code: Any, insert: Any, row: Any, group: Any) -> Any:
    """Count a body that fires for a row, once; or write both to `out` if it has a column. Returns its number, or -1."""
    number = _find(table, code, insert)
    if number >= 0 and table.stamps[number, 0] != row:
        table.stamps[number, 0] = row
        if len(table.out) == 0:
            table.counts[number, group] += 1
        elif table.column_of[number] >= 0:
            slot = table.used[1]
            table.out[slot, 0], table.out[slot, 1] = row, table.column_of[number]
            table.used[1] += 1
    return number


@inlined
def _code(base: Any, shape: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return (((np.int64(shape) * base + a) * base + b) * base + c) * base + d


# -- listing the bodies that fire -------------------------------------------------------------------


@inlined
def _hidden(start: Any, step: Any, end: Any, s: Any, o: Any, hide: Any) -> Any:
    """Whether a step is the triple (s, hide, o) itself, read from either end."""
    return (step >> 1) == hide and (
        (start == s and end == o and (step & 1) == 0) or (start == o and end == s and (step & 1) == 1)
    )


@inlined
def _edges(ends: Any, steps: Any, first: Any, last: Any, s: Any, o: Any, hide: Any, out: Any) -> Any:
    """Put the steps from s to o into `out`, ascending; return how many there are."""
    size = 0
    position = gallop(ends, first, last, o)
    while position < last and ends[position] == o:
        if not _hidden(s, steps[position], o, s, o, hide):
            out[size] = steps[position]
            size += 1
        position += 1
    return size


@kernel
def enumerate_pairs(
    rows: Any,
    groups: Any,
    proposers: int,
    hide: int,
    relevant: Any,
    typed: bool,
    graph: TypedGraph,
    base: int,
    table: Table,
) -> None:
    """List edges, intersections, two-step paths, with `typed` edges with a type, and triangles.

    Triangles are sought for the edges that are `relevant` only (bool[steps]).

    `rows` is int32[n, 2], subject and object, whose triple with the relation `hide` does not count. The first
    `proposers` rows put all their bodies into the table. Bodies in the table are counted for all rows, group
    by group, or written down with the rows where they fire (see `Table`).
    """
    pointers, ends, steps, _, type_pointers, types = graph
    between = np.empty(base + 1, dtype=np.int64)
    for row in range(len(rows)):
        s, o, group = rows[row, 0], rows[row, 1], groups[row]
        insert = row < proposers
        i, i_end, j, j_end = pointers[s], pointers[s + 1], pointers[o], pointers[o + 1]
        edges = _edges(ends, steps, i, i_end, s, o, hide, between)
        for e in range(edges):
            code = _code(base, EDGE, between[e], 0, 0, 0)
            number = _count(table, code, insert, row, group)
            if number < 0:
                between[e] = -1
                continue
            for f in range(e + 1, edges):
                code = _code(base, BOTH, between[e], between[f], 0, 0)
                _count(table, code, insert, row, group)
            if typed:
                for side in range(2):
                    entity = s if side == SUBJECT_SIDE else o
                    for t in range(type_pointers[entity], type_pointers[entity + 1]):
                        code = _code(base, EDGE_TYPE, between[e], side, types[t], 0)
                        _count(table, code, insert, row, group)
        # Triangles with an edge that nobody proposed are not in the table either.
        sought = 0
        for e in range(edges):
            if between[e] >= 0 and relevant[between[e]]:
                between[sought] = between[e]
                sought += 1
        edges = sought
        while i < i_end and j < j_end:
            if ends[i] < ends[j]:
                i = gallop(ends, i, i_end, ends[j])
                continue
            if ends[j] < ends[i]:
                j = gallop(ends, j, j_end, ends[i])
                continue
            z = ends[i]
            j_next = j
            while j_next < j_end and ends[j_next] == z:
                j_next += 1
            apart = s != o and z != s and z != o
            while i < i_end and ends[i] == z:
                if not apart and _hidden(s, steps[i], z, s, o, hide):
                    i += 1
                    continue
                for k in range(j, j_next):
                    last = steps[k] ^ 1
                    if not apart and _hidden(z, last, o, s, o, hide):
                        continue
                    code = _code(base, PATH2, steps[i], last, 0, 0)
                    number = _count(table, code, insert, row, group)
                    if number < 0:
                        continue
                    if edges == 0 or not apart or table.stamps[number, 1] == row:
                        continue
                    table.stamps[number, 1] = row
                    for e in range(edges):
                        code = _code(base, TRIANGLE, between[e], steps[i], last, 0)
                        _count(table, code, insert, row, group)
                i += 1
            j = j_next


@kernel
def enumerate_threes(
    rows: Any,
    groups: Any,
    proposers: int,
    hide: int,
    relevant: Any,
    paths: bool,
    budget: int,
    graph: TypedGraph,
    base: int,
    table: Table,
) -> None:
    """List diamonds whose edge is `relevant`, and with `paths` three-step paths, as `enumerate_pairs` does.

    No row takes more than `budget` steps: what it would have found beyond them is not counted.
    """
    pointers, ends, steps, _, _, _ = graph
    between = np.empty(base + 1, dtype=np.int64)
    for row in range(len(rows)):
        s, o, group = rows[row, 0], rows[row, 1], groups[row]
        insert = row < proposers
        all_edges = _edges(ends, steps, pointers[s], pointers[s + 1], s, o, hide, between)
        edges = 0
        for e in range(all_edges):
            if relevant[between[e]]:
                between[edges] = between[e]
                edges += 1
        if edges == 0 and not paths:
            continue
        spent = 0
        for first in range(pointers[s], pointers[s + 1]):
            z = ends[first]
            if (not paths and z in (s, o)) or _hidden(s, steps[first], z, s, o, hide):
                continue
            apart = s != o and z != s and z != o
            i, i_end, j, j_end = pointers[z], pointers[z + 1], pointers[o], pointers[o + 1]
            while i < i_end and j < j_end and spent < budget:
                spent += 1
                if ends[i] < ends[j]:
                    i = gallop(ends, i, i_end, ends[j])
                    continue
                if ends[j] < ends[i]:
                    j = gallop(ends, j, j_end, ends[i])
                    continue
                w = ends[i]
                j_next = j
                while j_next < j_end and ends[j_next] == w:
                    j_next += 1
                distinct = apart and w != s and w != o and w != z
                while i < i_end and ends[i] == w:
                    if (not paths and not distinct) or _hidden(z, steps[i], w, s, o, hide):
                        i += 1
                        continue
                    for k in range(j, j_next):
                        last = steps[k] ^ 1
                        if _hidden(w, last, o, s, o, hide):
                            continue
                        spent += 1
                        code = _code(base, PATH3, steps[first], steps[i], last, 0)
                        number = _count(table, code, insert, row, group) if paths else _find(table, code, insert)
                        if number < 0:
                            continue
                        if not distinct or table.stamps[number, 1] == row:
                            continue
                        table.stamps[number, 1] = row
                        for e in range(edges):
                            code = _code(base, DIAMOND, between[e], steps[first], steps[i], last)
                            _count(table, code, insert, row, group)
                    i += 1
                j = j_next


@kernel
def enumerate_types(
    rows: Any, groups: Any, proposers: int, hide: int, graph: TypedGraph, base: int, table: Table
) -> None:
    """List the bodies of heads (x, type, C), C being the type with index `hide`; see `enumerate_pairs`."""
    pointers, ends, steps, _, type_pointers, types = graph
    absent = base - 1
    for row in range(len(rows)):
        s, group = rows[row, 0], groups[row]
        insert = row < proposers
        # The position before the first type stands for no type at all.
        for t in range(type_pointers[s] - 1, type_pointers[s + 1]):
            type_ = absent if t < type_pointers[s] else types[t]
            if type_ == hide:
                continue
            if type_ != absent:
                code = _code(base, TYPED, type_, absent, absent, 0)
                _count(table, code, insert, row, group)
            for position in range(pointers[s], pointers[s + 1]):
                z = ends[position]
                code = _code(base, TYPED, type_, steps[position], absent, 0)
                number = _count(table, code, insert, row, group)
                if number < 0:
                    continue
                for u in range(type_pointers[z], type_pointers[z + 1]):
                    if z == s and types[u] == hide:
                        continue
                    code = _code(base, TYPED, type_, steps[position], types[u], 0)
                    _count(table, code, insert, row, group)


@kernel
def steps_between(rows: Ids, hide: int, graph: TypedGraph, steps: int) -> Any:
    """Return bool[n, steps]: the steps from subject to object of each row."""
    has_step = np.zeros((len(rows), steps), dtype=np.bool_)
    between = np.empty(steps, dtype=np.int64)
    for row in range(len(rows)):
        s, o = rows[row, 0], rows[row, 1]
        size = _edges(graph.ends, graph.steps, graph.pointers[s], graph.pointers[s + 1], s, o, hide, between)
        for i in range(size):
            has_step[row, between[i]] = True
    return has_step


# -- whether bodies fire, and where -----------------------------------------------------------------

_NONE = np.int64(NONE)


@inlined
def _has_type(graph: TypedGraph, x: Any, type_: Any) -> Any:
    last = graph.type_pointers[x + 1]
    position = gallop(graph.types, graph.type_pointers[x], last, type_)
    return position < last and graph.types[position] == type_


@kernel
def _typed(graph: TypedGraph, s: Any, a: Any, b: Any, c: Any, absent: Any, hide: Any) -> Any:
    """Whether s has a type, and a step to something of another type, as far as they are not absent."""
    if a != absent and (a == hide or not _has_type(graph, s, a)):
        return False
    if b == absent:
        return True
    first, last = steps_from(graph.edges, s, b)
    if c == absent:
        return first < last
    for position in range(first, last):
        z = graph.edges.ends[position]
        if _has_type(graph, z, c) and not (z == s and c == hide):
            return True
    return False


@inlined
def _beside_edge(graph: TypedGraph, body: Longs, s: Any, o: Any, hide: Any) -> Any:
    """Whether what a body has beside its edge a(x,y) holds for s and o."""
    shape, b, c, d = body[0], body[2], body[3], body[4]
    if shape == EDGE:
        return True
    if shape == BOTH:
        return path_exists(graph.edges, s, o, _NONE, b, _NONE, _NONE, False, hide)
    if shape == EDGE_TYPE:
        return _has_type(graph, s if b == SUBJECT_SIDE else o, c)
    if s == o:
        return False
    return path_exists(graph.edges, s, o, _NONE, b, c, d if shape == DIAMOND else _NONE, True, hide)


@kernel
def _fires(graph: TypedGraph, body: Longs, s: Any, o: Any, absent: Any, hide: Any) -> Any:
    shape, a, b, c = body[0], body[1], body[2], body[3]
    if shape == TYPED:
        return _typed(graph, s, a, b, c, absent, hide)
    if shape in (PATH2, PATH3):
        return path_exists(graph.edges, s, o, _NONE, a, b, c if shape == PATH3 else _NONE, False, hide)
    if not path_exists(graph.edges, s, o, _NONE, a, _NONE, _NONE, False, hide):
        return False
    return _beside_edge(graph, body, s, o, hide)


@kernel
def fired(rows: Ids, bodies: Longs, hide: int, absent: int, graph: TypedGraph, out: Any) -> None:
    """Set out[r, b] where body b fires for row r; bodies of other shapes are left alone.

    `hide` is the relation whose triple between subject and object does not count (for types: the type's
    index); -1 for none.
    """
    for row in range(len(rows)):
        s, o = np.int64(rows[row, 0]), np.int64(rows[row, 1])
        for body in range(len(bodies)):
            if bodies[body, 0] <= TYPED:
                out[row, body] = _fires(graph, bodies[body], s, o, absent, hide)


@kernel
def add_where_fired(starts: Ids, bodies: Longs, weights: Any, graph: TypedGraph, scratch: Ids, out: Any) -> None:
    """Add the weight of each body, in order, to out[r, y] for all ends y that it reaches from starts[r].

    `scratch` is that of `path_ends`.
    """
    for row in range(len(starts)):
        s = np.int64(starts[row])
        for number in range(len(bodies)):
            body = bodies[number]
            shape = body[0]
            if shape > EDGE_TYPE:
                continue
            second = body[2] if shape in (PATH2, PATH3) else _NONE
            third = body[3] if shape == PATH3 else _NONE
            size = path_ends(graph.edges, s, _NONE, body[1], second, third, False, scratch)
            for i in range(size):
                y = np.int64(scratch[5, i])
                if second != NONE or _beside_edge(graph, body, s, y, _NONE):
                    out[row, y] += weights[number]
