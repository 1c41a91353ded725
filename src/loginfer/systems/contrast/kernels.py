"""Bodies, packed; which fire, how often.

Bodies as numbers: the shapes that are sought, how one is packed into 64 bits, and how it reads.

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
    GIVEN      an instance of a pattern that the user gave: its place in a list

Compiled: list the bodies that fire for pairs of constants, count them, and write down where they fire.

Compiled: whether bodies fire for pairs of constants, and for which ends they fire from a start.

Who is next to whom: all steps from each constant, and the types it has.

The table in which bodies are counted, and what the kernels fill it with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import LimitError
from loginfer.kernels import gallop, inlined, kernel
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Rule, Variable

EDGE, PATH2, BOTH, TRIANGLE, DIAMOND, PATH3, EDGE_TYPE, TYPED, GIVEN = range(9)
SUBJECT_SIDE, OBJECT_SIDE = 0, 1
# Atoms of each shape; inequalities are none. Those of TYPED and GIVEN depend on the digits.
ATOMS = np.array([1, 2, 2, 3, 4, 3, 2, 0, 0])
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

_X, _Y, _Z, _W = (Variable(name) for name in "xyzw")


@dataclass(frozen=True)
class Bodies:
    """How bodies over one graph are packed and written.

    Parameters
    ----------
    graph
        Gives names and types.
    given
        Instances of the user's patterns, with the bodies of which GIVEN speaks.
    """

    graph: KnowledgeGraph
    given: tuple[Rule, ...] = ()

    @cached_property
    def steps(self) -> int:
        """How many directed relations there are."""
        return 2 * len(self.graph.relations)

    @cached_property
    def base(self) -> int:
        """How many values a digit has: steps or types, two sides, the places of given rules, and `absent`."""
        return max(self.steps, len(self.graph.types), len(self.given), 2) + 1

    @property
    def absent(self) -> int:
        """The digit that stands for nothing."""
        return self.base - 1

    def type_place(self, type_: int) -> int:
        """Return the place of a type among those in use; -1 if it is not in use."""
        place = int(np.searchsorted(self.graph.types, type_))
        return place if place < len(self.graph.types) and self.graph.types[place] == type_ else -1

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

    def pack_all(self, shape: int, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the codes of many bodies of a shape with three digits."""
        first, second, third = np.broadcast_arrays(np.asarray(a, dtype=np.int64), b, c)
        two = (shape * self.base + first) * self.base + second
        return np.asarray((two * self.base + third) * self.base, dtype=np.int64)

    def unpack(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return int64[m, 5]: shape and digits of each code."""
        found = np.empty((len(codes), 1 + _DIGITS), dtype=np.int64)
        rest = codes.copy()
        for place in range(_DIGITS, -1, -1):
            found[:, place] = rest % self.base if place else rest
            rest //= self.base
        return found

    def turned(self, parts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return bodies with x and y exchanged, as seen from y; both as `unpack` gives them."""
        found = parts.copy()
        shape, steps = parts[:, 0], parts[:, 1:] ^ 1
        for of_shape, order in _TURNED.items():
            rows = shape == of_shape
            found[rows, 1 : 1 + len(order)] = steps[rows][:, order]
        rows = shape == EDGE_TYPE
        found[rows, 1:3] = steps[rows, :2]
        return found

    def atoms(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return int64[m], how many atoms each body has."""
        parts = self.unpack(codes)
        atoms = ATOMS[parts[:, 0]]
        typed = parts[:, 0] == TYPED
        atoms[typed] = np.count_nonzero(parts[typed, 1:4] != self.absent, axis=1)
        for place in np.flatnonzero(parts[:, 0] == GIVEN):
            atoms[place] = len(self.given[int(parts[place, 1])].atoms)
        return atoms

    def rule(self, code: int, relation: int, type_: int) -> Rule:
        """Return the rule with this body and the head (x, relation, y), or (x, type, type_)."""
        if self.is_given(code):
            return self.given[int(self.unpack(np.array([code]))[0, 1])]
        head = self._type(_X, type_) if relation == self.graph.type_relation else self._step(2 * relation)
        return Rule(self._body(code), head)

    def is_given(self, code: int) -> bool:
        """Whether a body is an instance of a given pattern."""
        return bool(code // self.base**_DIGITS == GIVEN)

    def given_code(self, rule: Rule) -> int:
        """Return the code of a given rule."""
        return self.given_code_at(self.given.index(rule))

    def given_code_at(self, place: int) -> int:
        """Return the code of the given rule at a place."""
        return self.pack(GIVEN, place)

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
                digits.append((self.type_place(self.graph.entity_id(atom.object.name)),))
            else:
                step = 2 * self.graph.relation_id(str(atom.relation))
                digits.append((step, step + 1))
        shapes = {1: (EDGE,), 2: (PATH2, BOTH), 3: (TRIANGLE, PATH3), 4: (DIAMOND,)}[max(len(digits), 1)]
        typed = [atom.is_type for atom in rule.atoms]
        if not any(typed) and not rule.head.is_type:
            return [self.pack(shape, *chosen) for shape in shapes for chosen in product(*digits)]
        if rule.head.is_type:
            parts: list[tuple[int, ...]] = [(self.absent,)] * 3
            for place, (digit, is_type) in enumerate(zip(digits, typed, strict=True)):
                parts[1 if not is_type else 0 if place == 0 else 2] = digit
            return [self.pack(TYPED, *chosen) for chosen in product(*parts)]
        if typed == [False, True]:
            return [self.pack(EDGE_TYPE, a, side, digits[1][0]) for a in digits[0] for side in (0, 1)]
        return []

    def _body(self, code: int) -> list[BodyAtom]:
        shape, a, b, c, d = (int(digit) for digit in self.unpack(np.array([code]))[0])
        if shape == EDGE:
            return [self._step(a)]
        if shape == PATH2:
            return [self._step(a, _X, _Z), self._step(b, _Z, _Y)]
        if shape == BOTH:
            return [self._step(a), self._step(b)]
        if shape == TRIANGLE:
            return [self._step(a), self._step(b, _X, _Z), self._step(c, _Z, _Y), *_different(_X, _Y, _Z)]
        if shape == DIAMOND:
            path = [self._step(b, _X, _Z), self._step(c, _Z, _W), self._step(d, _W, _Y)]
            return [self._step(a), *path, *_different(_X, _Y, _Z, _W)]
        if shape == PATH3:
            return [self._step(a, _X, _Z), self._step(b, _Z, _W), self._step(c, _W, _Y)]
        if shape == EDGE_TYPE:
            return [self._step(a), self._of_type((_X, _Y)[b], c)]
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


def _different(*variables: Variable) -> list[BodyAtom]:
    return [Inequality(a, b) for i, a in enumerate(variables) for b in variables[i + 1 :]]


_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


# -- the table of bodies: open addressing, bodies numbered as they come ----------------------------


@inlined
def _find(keys: Any, numbers: Any, codes: Any, slots: Any, used: Any, code: Any, insert: Any) -> Any:
    """Return the number of a body, a new one if it may be inserted; -1 if it is not there."""
    bits = np.uint64(code)
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    mask = len(keys) - 1
    slot = np.int64(bits ^ (bits >> _31)) & mask
    while keys[slot] != code:
        if keys[slot] == -1:
            if not insert or used[0] >= len(codes):
                return np.int64(-1)
            number = used[0]
            used[0] += 1
            keys[slot] = code
            numbers[slot] = number
            codes[number] = code
            slots[number] = slot
            return number
        slot = (slot + 1) & mask
    return np.int64(numbers[slot])


@kernel
def insert_all(codes: Any, keys: Any, numbers: Any, known: Any, slots: Any, used: Any) -> None:
    """Put bodies into the table."""
    for place in range(len(codes)):
        _find(keys, numbers, known, slots, used, codes[place], True)


@inlined
def _note(number: Any, row: Any, group: Any, stamps: Any, counts: Any, wanted: Any, out: Any, used: Any) -> None:
    """Count a body that fires for a row, once; or write both down if it is wanted."""
    if stamps[number, 0] == row:
        return
    stamps[number, 0] = row
    if len(out) == 0:
        counts[number, group] += 1
    elif wanted[number] >= 0:
        out[used[1], 0] = row
        out[used[1], 1] = wanted[number]
        used[1] += 1


@inlined
def _code(base: Any, shape: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return (((np.int64(shape) * base + a) * base + b) * base + c) * base + d


# -- walking ----------------------------------------------------------------------------------------


@inlined
def _hidden(start: Any, step: Any, end: Any, s: Any, o: Any, hide: Any) -> Any:
    """Whether a step is the triple (s, hide, o) itself, read from either end."""
    return (step >> 1) == hide and (
        (start == s and end == o and (step & 1) == 0) or (start == o and end == s and (step & 1) == 1)
    )


@inlined
def _edges(ends: Any, steps: Any, first: Any, last: Any, s: Any, o: Any, hide: Any, found: Any) -> Any:
    """Put the steps from s to o into `found`, ascending; return how many there are."""
    size = 0
    place = gallop(ends, first, last, o)
    while place < last and ends[place] == o:
        if not _hidden(s, steps[place], o, s, o, hide):
            found[size] = steps[place]
            size += 1
        place += 1
    return size


@kernel
def enumerate_pairs(
    rows: Any,
    groups: Any,
    proposers: int,
    hide: int,
    relevant: Any,
    typed: bool,
    graph: Any,
    base: int,
    table: Any,
    wanted: Any,
    out: Any,
) -> None:
    """List edges, intersections, two-step paths, with `typed` edges with a type, and triangles.

    Triangles are sought for the edges that are `relevant` only (bool[steps]).

    `rows` is int32[n, 2], subject and object, whose triple with the relation `hide` does not count. The first
    `proposers` rows put all their bodies into the table. Bodies in the table are counted for all rows, group
    by group, or, if `out` has rows, written into it with the rows where they fire.
    """
    pointers, ends, steps, type_pointers, types = graph
    keys, numbers, codes, slots, stamps, counts, used = table
    found = np.empty(base + 1, dtype=np.int64)
    for row in range(len(rows)):
        s, o, group = rows[row, 0], rows[row, 1], groups[row]
        insert = row < proposers
        i, i_end, j, j_end = pointers[s], pointers[s + 1], pointers[o], pointers[o + 1]
        edges = _edges(ends, steps, i, i_end, s, o, hide, found)
        for e in range(edges):
            code = _code(base, EDGE, found[e], 0, 0, 0)
            number = _find(keys, numbers, codes, slots, used, code, insert)
            if number < 0:
                found[e] = -1
                continue
            _note(number, row, group, stamps, counts, wanted, out, used)
            for f in range(e + 1, edges):
                code = _code(base, BOTH, found[e], found[f], 0, 0)
                number = _find(keys, numbers, codes, slots, used, code, insert)
                if number >= 0:
                    _note(number, row, group, stamps, counts, wanted, out, used)
            if typed:
                for side in range(2):
                    at = s if side == SUBJECT_SIDE else o
                    for t in range(type_pointers[at], type_pointers[at + 1]):
                        code = _code(base, EDGE_TYPE, found[e], side, types[t], 0)
                        number = _find(keys, numbers, codes, slots, used, code, insert)
                        if number >= 0:
                            _note(number, row, group, stamps, counts, wanted, out, used)
        # Triangles with an edge that nobody proposed are not in the table either.
        known = 0
        for e in range(edges):
            if found[e] >= 0 and relevant[found[e]]:
                found[known] = found[e]
                known += 1
        edges = known
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
                    number = _find(keys, numbers, codes, slots, used, code, insert)
                    if number < 0:
                        continue
                    _note(number, row, group, stamps, counts, wanted, out, used)
                    if edges == 0 or not apart or stamps[number, 1] == row:
                        continue
                    stamps[number, 1] = row
                    for e in range(edges):
                        code = _code(base, TRIANGLE, found[e], steps[i], last, 0)
                        more = _find(keys, numbers, codes, slots, used, code, insert)
                        if more >= 0:
                            _note(more, row, group, stamps, counts, wanted, out, used)
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
    graph: Any,
    base: int,
    table: Any,
    wanted: Any,
    out: Any,
) -> None:
    """List diamonds whose edge is `relevant`, and with `paths` three-step paths, as `enumerate_pairs` does.

    No row takes more than `budget` steps: what it would have found beyond them is not counted.
    """
    pointers, ends, steps, _, _ = graph
    keys, numbers, codes, slots, stamps, counts, used = table
    found = np.empty(base + 1, dtype=np.int64)
    for row in range(len(rows)):
        s, o, group = rows[row, 0], rows[row, 1], groups[row]
        insert = row < proposers
        all_edges = _edges(ends, steps, pointers[s], pointers[s + 1], s, o, hide, found)
        edges = 0
        for e in range(all_edges):
            if relevant[found[e]]:
                found[edges] = found[e]
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
                        number = _find(keys, numbers, codes, slots, used, code, insert)
                        if number < 0:
                            continue
                        if paths:
                            _note(number, row, group, stamps, counts, wanted, out, used)
                        if not distinct or stamps[number, 1] == row:
                            continue
                        stamps[number, 1] = row
                        for e in range(edges):
                            code = _code(base, DIAMOND, found[e], steps[first], steps[i], last)
                            more = _find(keys, numbers, codes, slots, used, code, insert)
                            if more >= 0:
                                _note(more, row, group, stamps, counts, wanted, out, used)
                    i += 1
                j = j_next


@kernel
def enumerate_types(
    rows: Any, groups: Any, proposers: int, hide: int, graph: Any, base: int, table: Any, wanted: Any, out: Any
) -> None:
    """List the bodies of heads (x, type, C), C being the type at the place `hide`; see `enumerate_pairs`."""
    pointers, ends, steps, type_pointers, types = graph
    keys, numbers, codes, slots, stamps, counts, used = table
    absent = base - 1
    for row in range(len(rows)):
        s, group = rows[row, 0], groups[row]
        insert = row < proposers
        # The place before the first type stands for no type at all.
        for t in range(type_pointers[s] - 1, type_pointers[s + 1]):
            own = absent if t < type_pointers[s] else types[t]
            if own == hide:
                continue
            if own != absent:
                code = _code(base, TYPED, own, absent, absent, 0)
                number = _find(keys, numbers, codes, slots, used, code, insert)
                if number >= 0:
                    _note(number, row, group, stamps, counts, wanted, out, used)
            for place in range(pointers[s], pointers[s + 1]):
                z = ends[place]
                code = _code(base, TYPED, own, steps[place], absent, 0)
                number = _find(keys, numbers, codes, slots, used, code, insert)
                if number < 0:
                    continue
                _note(number, row, group, stamps, counts, wanted, out, used)
                for u in range(type_pointers[z], type_pointers[z + 1]):
                    if z == s and types[u] == hide:
                        continue
                    code = _code(base, TYPED, own, steps[place], types[u], 0)
                    number = _find(keys, numbers, codes, slots, used, code, insert)
                    if number >= 0:
                        _note(number, row, group, stamps, counts, wanted, out, used)


@inlined
def _range(graph: Any, x: Any, step: Any) -> Any:
    """Return where the ends of the steps of one kind from x begin and end."""
    pointers, _, steps, _, _ = graph
    first = gallop(steps, pointers[x], pointers[x + 1], step)
    return first, gallop(steps, first, pointers[x + 1], step + 1)


@inlined
def _blocked(start: Any, step: Any, end: Any, s: Any, o: Any, hide: Any) -> Any:
    return (step >> 1) == hide and (
        (start == s and end == o and (step & 1) == 0) or (start == o and end == s and (step & 1) == 1)
    )


@inlined
def _edge(graph: Any, s: Any, step: Any, o: Any, hide: Any) -> Any:
    """Whether there is a step of one kind from s to o."""
    first, last = _range(graph, s, step)
    place = gallop(graph[1], first, last, o)
    return place < last and graph[1][place] == o and not _blocked(s, step, o, s, o, hide)


@kernel
def _two(graph: Any, x: Any, a: Any, b: Any, y: Any, distinct: Any, s: Any, o: Any, hide: Any) -> Any:
    """Whether steps a, b lead from x to y; with `distinct` over something that is none of x, y, s, o."""
    ends = graph[1]
    i, i_end = _range(graph, x, a)
    j, j_end = _range(graph, y, b ^ 1)
    while i < i_end and j < j_end:
        if ends[i] < ends[j]:
            i = gallop(ends, i, i_end, ends[j])
        elif ends[j] < ends[i]:
            j = gallop(ends, j, j_end, ends[i])
        else:
            z = ends[i]
            near = z in (s, o)
            if distinct:
                if not near and z != x and z != y:
                    return True
            elif not _blocked(x, a, z, s, o, hide) and not _blocked(z, b, y, s, o, hide):
                return True
            i += 1
            j += 1
    return False


@kernel
def _three(graph: Any, s: Any, a: Any, b: Any, c: Any, o: Any, distinct: Any, hide: Any) -> Any:
    """Whether steps a, b, c lead from s to o; with `distinct` over different constants."""
    ends = graph[1]
    first, last = _range(graph, s, a)
    other, other_last = _range(graph, o, c ^ 1)
    # From the end with fewer ways to go.
    turned = other_last - other < last - first
    if turned:
        first, last = other, other_last
    start, goal = (o, s) if turned else (s, o)
    one, two, three = (c ^ 1, b ^ 1, a ^ 1) if turned else (a, b, c)
    for place in range(first, last):
        z = ends[place]
        if (distinct and z in (s, o)) or _blocked(start, one, z, s, o, hide):
            continue
        if _two(graph, z, two, three, goal, distinct, s, o, hide):
            return True
    return False


@inlined
def _has_type(graph: Any, x: Any, wanted: Any) -> Any:
    _, _, _, type_pointers, types = graph
    place = gallop(types, type_pointers[x], type_pointers[x + 1], wanted)
    return place < type_pointers[x + 1] and types[place] == wanted


@kernel
def _typed(graph: Any, s: Any, a: Any, b: Any, c: Any, absent: Any, hide: Any) -> Any:
    """Whether s has a type, and a step to something of another type, as far as they are not absent."""
    if a != absent and (a == hide or not _has_type(graph, s, a)):
        return False
    if b == absent:
        return True
    first, last = _range(graph, s, b)
    if c == absent:
        return first < last
    for place in range(first, last):
        z = graph[1][place]
        if _has_type(graph, z, c) and not (z == s and c == hide):
            return True
    return False


@kernel
def _fires(graph: Any, body: Any, s: Any, o: Any, absent: Any, hide: Any) -> Any:
    shape, a, b, c, d = body[0], body[1], body[2], body[3], body[4]
    if shape == TYPED:
        return _typed(graph, s, a, b, c, absent, hide)
    if shape == PATH2:
        return _two(graph, s, a, b, o, False, s, o, hide)
    if shape == PATH3:
        return _three(graph, s, a, b, c, o, False, hide)
    if not _edge(graph, s, a, o, hide):
        return False
    if shape == EDGE:
        return True
    if shape == BOTH:
        return _edge(graph, s, b, o, hide)
    if shape == EDGE_TYPE:
        return _has_type(graph, s if b == 0 else o, c)
    if s == o:
        return False
    if shape == TRIANGLE:
        return _two(graph, s, b, c, o, True, s, o, hide)
    return _three(graph, s, b, c, d, o, True, hide)


@kernel
def fired(rows: Any, bodies: Any, hide: int, absent: int, graph: Any, out: Any) -> None:
    """Set out[r, b] where body b fires for row r; bodies of other shapes than ours are left alone.

    `hide` is the relation whose triple between subject and object does not count (for types: the type's
    place); -1 for none.
    """
    for row in range(len(rows)):
        for body in range(len(bodies)):
            if bodies[body, 0] <= TYPED:
                out[row, body] = _fires(graph, bodies[body], rows[row, 0], rows[row, 1], absent, hide)


@kernel
def steps_between(rows: Any, hide: int, graph: Any, steps: int) -> Any:
    """Return bool[n, steps]: the steps from subject to object of each row."""
    found = np.zeros((len(rows), steps), dtype=np.bool_)
    pointers, ends, kinds, _, _ = graph
    for row in range(len(rows)):
        s, o = rows[row, 0], rows[row, 1]
        place = gallop(ends, pointers[s], pointers[s + 1], o)
        while place < pointers[s + 1] and ends[place] == o:
            if not _blocked(s, kinds[place], o, s, o, hide):
                found[row, kinds[place]] = True
            place += 1
    return found


@inlined
def _spread(graph: Any, x: Any, step: Any, reached: Any, size: Any, stamps: Any, stamp: Any) -> Any:
    """Add the ends of the steps of one kind from x that have not been reached yet; return their number."""
    first, last = _range(graph, x, step)
    for place in range(first, last):
        y = graph[1][place]
        if stamps[y] != stamp:
            stamps[y] = stamp
            reached[size] = y
            size += 1
    return size


@inlined
def _reach(graph: Any, body: Any, s: Any, reached: Any, stamps: Any, clock: Any) -> Any:
    """List the ends for which a body fires from s; return where they begin and end in `reached`."""
    shape, a, b, c, d = body[0], body[1], body[2], body[3], body[4]
    clock[0] += 1
    size = _spread(graph, s, a, reached, 0, stamps, clock[0])
    begin = 0
    if shape in (PATH2, PATH3):
        for hop in range(2 if shape == PATH3 else 1):
            clock[0] += 1
            end = size
            for place in range(begin, end):
                step = b if hop == 0 else c
                size = _spread(graph, reached[place], step, reached, size, stamps, clock[0])
            begin = end
    if shape in (PATH2, PATH3, EDGE):
        return begin, size
    kept = begin
    for place in range(begin, size):
        y = reached[place]
        if shape == EDGE_TYPE:
            holds = _has_type(graph, s if b == 0 else y, c)
        elif shape == BOTH:
            holds = _edge(graph, s, b, y, -1)
        elif s == y:
            holds = False
        elif shape == TRIANGLE:
            holds = _two(graph, s, b, c, y, True, s, y, -1)
        else:
            holds = _three(graph, s, b, c, d, y, True, -1)
        if holds:
            reached[kept] = y
            kept += 1
    return begin, kept


@kernel
def add_where_fired(starts: Any, bodies: Any, weights: Any, graph: Any, out: Any) -> None:
    """Add the weight of each body, in order, to out[r, y] for all ends y that it reaches from starts[r]."""
    entities = out.shape[1]
    reached = np.empty(3 * entities, dtype=np.int32)
    stamps = np.zeros(entities, dtype=np.int64)
    clock = np.zeros(1, dtype=np.int64)
    for row in range(len(starts)):
        for body in range(len(bodies)):
            if bodies[body, 0] > EDGE_TYPE:
                continue
            begin, end = _reach(graph, bodies[body], starts[row], reached, stamps, clock)
            for place in range(begin, end):
                out[row, reached[place]] += weights[body]


Ids: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Neighbours:
    """All steps of a graph by where they start, and all types.

    Parameters
    ----------
    pointers, ends, steps
        int64[e + 1], int32[m], int32[m]: the steps from constant x lead to
        `ends[pointers[x]:pointers[x + 1]]`, ascending, ties by step; every triple is there from both ends,
        type triples from none.
    step_ends, sorted_steps
        The same steps once more, sorted by step, ties by end: those of one kind from x stand together.
    type_pointers, types
        int64[e + 1], int32[k]: the types of x, as places in `graph.types`, ascending.
    """

    pointers: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int32]
    step_ends: npt.NDArray[np.int32]
    sorted_steps: npt.NDArray[np.int32]
    type_pointers: npt.NDArray[np.int64]
    types: npt.NDArray[np.int32]

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> Neighbours:
        """Sort the steps of a graph."""
        entities, triples = len(graph.entities), graph.triples
        typed = np.zeros(len(triples), dtype=bool)
        if graph.type_relation is not None:
            typed = triples[:, 1] == graph.type_relation
        s, r, o = triples[~typed].T.astype(np.int64)
        starts, ends = np.concatenate([s, o]), np.concatenate([o, s])
        steps = np.concatenate([2 * r, 2 * r + 1])
        order = np.lexsort((steps, ends, starts))
        by_step = np.lexsort((ends, steps, starts))
        types = np.searchsorted(graph.types, triples[typed, 2])
        # Triples are sorted by subject, and within the type predicate by object.
        return cls(
            _pointers(starts, entities),
            ends[order].astype(np.int32),
            steps[order].astype(np.int32),
            ends[by_step].astype(np.int32),
            steps[by_step].astype(np.int32),
            _pointers(triples[typed, 0], entities),
            types.astype(np.int32),
        )

    @property
    def by_end(self) -> tuple[npt.NDArray[np.int64], Ids, Ids, npt.NDArray[np.int64], Ids]:
        """What kernels that list bodies take."""
        return self.pointers, self.ends, self.steps, self.type_pointers, self.types

    @property
    def by_step(self) -> tuple[npt.NDArray[np.int64], Ids, Ids, npt.NDArray[np.int64], Ids]:
        """What kernels that follow bodies take."""
        return self.pointers, self.step_ends, self.sorted_steps, self.type_pointers, self.types

    @property
    def degree(self) -> npt.NDArray[np.int64]:
        """int64[e], steps from each constant."""
        return np.diff(self.pointers)


def _pointers(starts: npt.NDArray[np.integer], size: int) -> npt.NDArray[np.int64]:
    pointers = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(starts, minlength=size), out=pointers[1:])
    return pointers


Counts: TypeAlias = npt.NDArray[np.int32]

# Which rows are counted separately.
TRAIN_POSITIVE, TRAIN_NEGATIVE, VALID_POSITIVE, VALID_NEGATIVE = range(4)
GROUPS = 4


class BodyTable:
    """A hash table from the codes of bodies to numbers, with counts.

    Parameters
    ----------
    limit
        How many bodies fit; further ones are not taken in.
    """

    def __init__(self, limit: int) -> None:
        slots = 1 << int(2 * limit - 1).bit_length()
        self._keys = np.full(slots, -1, dtype=np.int64)
        self._numbers = np.zeros(slots, dtype=np.int32)
        self._codes = np.zeros(limit, dtype=np.int64)
        self._slots = np.zeros(limit, dtype=np.int64)
        self._stamps = np.full((limit, 2), -1, dtype=np.int32)
        self._counts = np.zeros((limit, GROUPS), dtype=np.int32)
        # Bodies in the table; rows of `out` that are filled.
        self._used = np.zeros(2, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._used[0])

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """int64[m], the bodies by number."""
        return self._codes[: len(self)]

    @property
    def counts(self) -> Counts:
        """int32[m, GROUPS], for how many rows of each group a body fires."""
        return self._counts[: len(self)]

    def clear(self) -> None:
        """Forget all bodies, in time proportional to their number."""
        self._keys[self._slots[: len(self)]] = -1
        self._counts[: len(self)] = 0
        self._stamps[: len(self)] = -1
        self._used[:] = 0

    @classmethod
    def holding(cls, codes: npt.NDArray[np.int64]) -> BodyTable:
        """Return a table that holds these bodies, numbered in their order, and has no room for more.

        A small table stays in the processor's cache.
        """
        made = cls(max(len(codes), 1))
        insert_all(codes, *made._arrays)
        return made

    def for_kernel(self) -> tuple[Any, ...]:
        """Return the arrays, ready for rows that are numbered from 0."""
        self._stamps[: len(self)] = -1
        self._used[1] = 0
        return (*self._arrays[:4], self._stamps, self._counts, self._used)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return (self._keys, self._numbers, self._codes, self._slots, self._used)

    def written(self) -> int:
        """How many rows of `out` the last kernel has filled."""
        return int(self._used[1])
