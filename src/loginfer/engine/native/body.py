"""Bodies over the ids of a store, and bodies made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loginfer.engine.binding import Bound, BoundAtom, BoundNegation
from loginfer.engine.native.plan import Scales, Shape, abstract
from loginfer.engine.native.store import Store
from loginfer.kg.index import FORWARD, INVERSE

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
        if any(not negation.variables and _occurs(store, negation) for negation in bound.negations):
            return None
        return cls(shape, tuple(map(store.scale, relations)), relations, constants)


def _occurs(store: Store, negation: BoundNegation) -> bool:
    """Say whether a store has what a negation without variables denies."""
    subject, relation, object_ = negation.subject, negation.relation, negation.object
    if subject is not None and object_ is not None:
        return store.holds(~subject, relation, ~object_)
    if subject is not None:
        return len(store.list_of(relation, FORWARD, ~subject)) > 0
    if object_ is not None:
        return len(store.list_of(relation, INVERSE, ~object_)) > 0
    if not negation.loop:
        return store.size(relation) > 0
    return any(store.holds(x, relation, x) for x in store.starts(relation, FORWARD).tolist())


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

    def end(t: int | None) -> int | None:
        return None if t is None else term(t)

    atoms = (BoundAtom(term(a.subject), a.relation, term(a.object)) for a in bound.atoms)
    empty = bound.empty
    inequalities = []
    for pair in bound.inequalities:
        a, b = term(pair[0]), term(pair[1])
        if a == b:
            empty = True
        elif max(a, b) >= 0:
            inequalities.append((min(a, b), max(a, b)))
    negations = (replace(n, subject=end(n.subject), object=end(n.object)) for n in bound.negations)
    head = BoundAtom(term(bound.head.subject), bound.head.relation, term(bound.head.object))
    return Bound(
        tuple(bound.variables[v] for v in kept),
        tuple(dict.fromkeys(atoms)),
        tuple(dict.fromkeys(inequalities)),
        head,
        empty,
        tuple(dict.fromkeys(negations)),
    )


def restrict(bound: Bound, path: Sequence[int]) -> Bound:
    """Return the atoms over these variables only, numbered in this order; no inequalities, no negations."""
    places = {v: i for i, v in enumerate(path)}
    atoms = tuple(
        BoundAtom(places.get(a.subject, a.subject), a.relation, places.get(a.object, a.object))
        for a in bound.atoms
        if all(t < 0 or t in places for t in (a.subject, a.object))
    )
    return Bound(tuple(bound.variables[v] for v in path), atoms, (), bound.head, False)
