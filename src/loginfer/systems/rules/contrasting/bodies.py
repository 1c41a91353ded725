"""Bodies as numbers: the shapes that are sought, how one is packed into 64 bits, and how it reads.

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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from loginfer.errors import LimitError
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.rule import Atom, BodyAtom, Inequality, Rule
from loginfer.logic.terms import Constant, Variable

__all__ = [
    "ATOMS",
    "BOTH",
    "DIAMOND",
    "EDGE",
    "EDGE_TYPE",
    "GIVEN",
    "OBJECT_SIDE",
    "PATH2",
    "PATH3",
    "SUBJECT_SIDE",
    "TRIANGLE",
    "TYPED",
    "Bodies",
]

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

    def pack_all(
        self, shape: int, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike
    ) -> npt.NDArray[np.int64]:
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
