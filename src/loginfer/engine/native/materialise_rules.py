"""The shape of a rule, which decides how its conclusions are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from loginfer.engine.binding import Bound, BoundAtom
from loginfer.engine.native.materialise_relations import Members, Pairs
from loginfer.engine.native.materialise_store import Store

__all__ = ["Edge", "Join", "Path", "Shape", "shape_of"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A binary atom on a path, from one variable to the next.

    Parameters
    ----------
    pairs
        The relation.
    inverse
        Whether the atom is written the other way round.
    """

    pairs: Pairs
    inverse: bool


@dataclass(frozen=True, slots=True)
class Path:
    """A body whose binary atoms form a path that starts at the head's (first) variable.

        (x0 E0 x1), (x1 E1 x2), …, with sets of entities that each xi must be in

    With two variables in the head they are the two ends; with one it is the first end; with none the
    head is ground. No witness is ever enumerated: sets and, per first end, sets travel along the path.

    Parameters
    ----------
    rule
        The rule.
    edges
        The n binary atoms.
    nodes
        For each of the n + 1 variables the sets it is in.
    excluded
        For each of the n + 1 variables the constants it must differ from.
    ends_differ
        Whether the first end must differ from the last.
    """

    rule: Bound
    edges: tuple[Edge, ...]
    nodes: tuple[tuple[Members, ...], ...]
    excluded: tuple[tuple[int, ...], ...]
    ends_differ: bool

    @property
    def members(self) -> list[Members]:
        """The sets of all nodes, one after the other."""
        return [members for node in self.nodes for members in node]

    @property
    def sources(self) -> list[Pairs | Members]:
        """What the rule reads: the edges, then the sets."""
        return [*(edge.pairs for edge in self.edges), *self.members]


@dataclass(frozen=True, slots=True)
class Join:
    """Any other body.

    Parameters
    ----------
    rule
        The rule.
    sources
        What each atom reads.
    """

    rule: Bound
    sources: list[Pairs | Members]


Shape: TypeAlias = Path | Join


def shape_of(rule: Bound, store: Store) -> Shape:
    """Return a rule's body as a path if it is one."""
    path = None if rule.negations else _path(rule, store)
    return path or Join(rule, [store.source(atom) for atom in rule.atoms])


def _path(rule: Bound, store: Store) -> Path | None:
    edges = [atom for atom in rule.atoms if _is_edge(atom)]
    others = [atom for atom in rule.atoms if not _is_edge(atom)]
    head = list(dict.fromkeys(t for t in (rule.head.subject, rule.head.object) if t >= 0))
    walk = _walk(edges, head, len(rule.variables))
    if walk is None or any(max(atom.subject, atom.object) < 0 for atom in others):
        return None
    order, steps = walk
    excluded: list[list[int]] = [[] for _ in order]
    ends_differ = False
    for left, right in rule.inequalities:
        if left < 0:
            excluded[order.index(right)].append(~left)
        elif len(head) == 2 and {left, right} == set(head):
            ends_differ = True
        else:
            return None
    nodes: list[list[Members]] = [[] for _ in order]
    for atom in others:
        found = store.unary(atom)
        if found is None:
            return None
        nodes[order.index(max(atom.subject, atom.object))].append(found)
    return Path(
        rule,
        tuple(Edge(store.pairs[atom.relation], inverse) for atom, inverse in steps),
        tuple(tuple(node) for node in nodes),
        tuple(tuple(node) for node in excluded),
        ends_differ,
    )


def _is_edge(atom: BoundAtom) -> bool:
    return atom.subject >= 0 and atom.object >= 0 and atom.subject != atom.object


def _walk(
    edges: list[BoundAtom], head: list[int], variables: int
) -> tuple[list[int], list[tuple[BoundAtom, bool]]] | None:
    """Return the variables of a path from end to end with its atoms, or None if there is no such path.

    A path over v variables has v - 1 atoms and, as it never returns to a variable, visits them all.
    """
    if not variables or len(edges) != variables - 1:
        return None
    degree = [0] * variables
    for atom in edges:
        degree[atom.subject] += 1
        degree[atom.object] += 1
    if edges and (max(degree) > 2 or any(degree[v] != 1 for v in head)):
        return None
    here = head[0] if head else degree.index(min(degree))
    order, steps, left = [here], [], list(edges)
    while left:
        places = [i for i, atom in enumerate(left) if here in (atom.subject, atom.object)]
        if not places:
            return None
        atom = left.pop(places[0])
        inverse = atom.object == here
        here = atom.subject if inverse else atom.object
        if here in order:
            return None
        order.append(here)
        steps.append((atom, inverse))
    return (order, steps) if len(head) < 2 or order[-1] == head[1] else None
