"""Bodies over the ids of a store, and bodies made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loginfer.engine.binding import Bound, BoundAtom
from loginfer.engine.native.plan import Scales, Shape, abstract
from loginfer.engine.native.store import Store

__all__ = ["Body", "rename", "restrict", "substitute"]


@dataclass(frozen=True, slots=True)
class Body:
    """A body as plans see it, with the ids they leave out."""

    shape: Shape
    scales: Scales
    relations: tuple[int, ...]
    constants: tuple[int, ...]

    @classmethod
    def of(cls, store: Store, bound: Bound) -> Body | None:
        """Return None for a body that obviously has no witness."""
        if bound.empty:
            return None
        shape, relations, constants, ground = abstract(bound)
        if not all(store.holds(~atom.subject, atom.relation, ~atom.object) for atom in ground):
            return None
        return cls(shape, tuple(map(store.scale, relations)), relations, constants)


def substitute(bound: Bound, values: dict[int, int]) -> Bound:
    """Return the body with variables replaced by constants (variable to id); the others move up."""
    return rename(bound, {variable: ~value for variable, value in values.items()})


def rename(bound: Bound, values: dict[int, int]) -> Bound:
    """Replace variables by other bound terms; the variables that stay are numbered anew."""
    kept = [v for v in range(len(bound.variables)) if v not in values]
    places = {v: i for i, v in enumerate(kept)}

    def term(t: int) -> int:
        t = values.get(t, t)
        return places[t] if t >= 0 else t

    atoms = (BoundAtom(term(a.subject), a.relation, term(a.object)) for a in bound.atoms)
    empty = bound.empty
    inequalities = []
    for pair in bound.inequalities:
        a, b = term(pair[0]), term(pair[1])
        if a == b:
            empty = True
        elif max(a, b) >= 0:
            inequalities.append((min(a, b), max(a, b)))
    head = BoundAtom(term(bound.head.subject), bound.head.relation, term(bound.head.object))
    return Bound(
        tuple(bound.variables[v] for v in kept),
        tuple(dict.fromkeys(atoms)),
        tuple(dict.fromkeys(inequalities)),
        head,
        empty,
    )


def restrict(bound: Bound, path: Sequence[int]) -> Bound:
    """Return the atoms over these variables only, which are numbered in this order; no inequalities."""
    places = {v: i for i, v in enumerate(path)}
    atoms = tuple(
        BoundAtom(places.get(a.subject, a.subject), a.relation, places.get(a.object, a.object))
        for a in bound.atoms
        if all(t < 0 or t in places for t in (a.subject, a.object))
    )
    return Bound(tuple(bound.variables[v] for v in path), atoms, (), bound.head, False)
