"""Which of the patterns with kernels of their own a pattern's body has the shape of.

Neither the names of variables and templates, nor the order of atoms, nor the head matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations

from loginfer.logic.rule import Pattern
from loginfer.logic.terms import Template, Variable

__all__ = ["Shape", "recognise"]

# For each shape its edges, between variables 0, 1, …, and whether all variables must differ (else none).
_SHAPES: dict[str, tuple[tuple[tuple[int, int], ...], bool]] = {
    "single": (((0, 1),), False),
    "composition": (((0, 1), (1, 2)), False),
    "fork out": (((1, 0), (1, 2)), False),
    "fork in": (((0, 1), (2, 1)), False),
    "intersection": (((0, 1), (0, 1)), False),
    "chain": (((0, 1), (1, 2), (2, 3)), False),
    "triangle": (((0, 1), (0, 2), (1, 2)), True),
    "diamond": (((0, 1), (0, 2), (1, 3), (2, 3)), True),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A known shape, and where its edges are in the pattern.

    Parameters
    ----------
    name
        What the shape is called.
    places
        For each template of the pattern, in the order of `pattern.templates`, the edge of the shape that
        it labels.
    """

    name: str
    places: tuple[int, ...]


def recognise(pattern: Pattern) -> Shape | None:
    """Return the shape of a pattern's body, if there is a kernel for it."""
    atoms = pattern.atoms
    edges = []
    for atom in atoms:
        if not (isinstance(atom.relation, Template) and isinstance(atom.subject, Variable)):
            return None
        if not isinstance(atom.object, Variable):
            return None
        edges.append((atom.subject, atom.object))
    if len(pattern.templates) != len(atoms):
        return None
    different = {frozenset(i.terms) for i in pattern.inequalities}
    for name, (shape, all_different) in _SHAPES.items():
        size = 1 + max(v for edge in shape for v in edge)
        if len(shape) != len(edges) or size != len(pattern.variables):
            continue
        wanted = {frozenset(pair) for pair in combinations(pattern.variables, 2)} if all_different else set()
        if different != wanted:
            continue
        for variables in permutations(pattern.variables):
            mapped = [(variables[a], variables[b]) for a, b in shape]
            if sorted(mapped) != sorted(edges):
                continue
            # Parallel edges are alike: the first free one will do.
            free = list(range(len(shape)))
            places = []
            for edge in edges:
                place = next(i for i in free if mapped[i] == edge)
                free.remove(place)
                places.append(place)
            return Shape(name, tuple(places))
    return None
