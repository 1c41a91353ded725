"""In which order to bind a body's variables, and what to check when: plans for the join kernels.

A plan is a forest over the variables of a body. Below a node stand only variables whose constraints with
the rest of the body go through the node's variable or its ancestors'; so the subtrees of a node are
independent of each other once the path to it is bound, and a body is counted by sums of products:

    count(node) = Σ over candidates a of the node's variable of Π over children of count(child | a)

The *context* of a subtree is the set of earlier variables it depends on. If that is one variable, results
are remembered per value of it; an acyclic body then costs what its relations cost, never what its
witnesses do.

Where particular variables are wanted (a head's, or all for an enumeration), they form the *trunk*, a path
that is searched value by value; the other variables hang below the trunk as subtrees of which only
existence is asked, each at the earliest place where its context is bound. A trunk variable that is not
wanted itself lies between wanted ones. If nothing that follows depends on what lies between it and an
earlier level, a value already tried under the same earlier values is skipped (*stamped*).

Plans know neither ids nor relations: thousands of rules share one, so they are cached by shape and rough
sizes. Terms are numbers: variables 0 … v - 1, then constants.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import Bound, BoundAtom

__all__ = ["NODE_FIELDS", "Plan", "Scales", "Shape", "abstract"]

# Columns of `Plan.nodes`. They are compiled into `join_kernels`, whose cache does not see changes here.
VARIABLE = 0  # which variable the node binds
LISTS = 1  # constraints[LISTS:LOOPS]: adjacency lists whose intersection holds the candidates
LOOPS = 2  # constraints[LOOPS:LOOPS_END]: the candidate must be in its own list of these rows
LOOPS_END = 3
DIFFERS = 4  # differs[DIFFERS:DIFFERS_END]: terms the candidate must differ from
DIFFERS_END = 5
CHILD = 6  # first subtree below, or -1
SIBLING = 7  # next subtree below the same parent, or -1
PARENT = 8  # the node above, or -1
MEMO = 9  # row of the memo, or -1
CONTEXT = 10  # the variable by whose value the memo is kept
STAMP = 11  # row of the stamps, or -1
STAMP_LEVEL = 12  # the level under whose value a stamp holds
DOMAIN = 13  # which domain holds the candidates if there are no lists, or -1
ABSENT_END = 14  # constraints[LOOPS_END:ABSENT_END]: lists that must not hold the candidate (see NOTHING)
NODE_FIELDS = 15

# Instead of a term in a constraint: the candidate's own list must be empty.
NOTHING = -1

# For each relation of a shape: binary orders of magnitude of pairs, distinct subjects, distinct objects.
Scales = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A body without ids: what a plan depends on.

    Parameters
    ----------
    variables, constants
        How many there are.
    atoms
        (subject, relation, object): terms, and relations numbered in order of appearance. No atom
        consists of constants only.
    inequalities
        Pairs of terms.
    absent
        (subject, relation, object) for each negated atom with a variable; None for an end that can be
        anything.
    """

    variables: int
    constants: int
    atoms: tuple[tuple[int, int, int], ...]
    inequalities: tuple[tuple[int, int], ...]
    absent: tuple[tuple[int | None, int, int | None], ...] = ()

    @property
    def links(self) -> list[tuple[int, ...]]:
        """The terms that atoms, inequalities and negated atoms hold together."""
        found: list[tuple[int, ...]] = [(s, o) for s, _, o in self.atoms]
        found += self.inequalities
        return found + [tuple(t for t in (s, o) if t is not None) for s, _, o in self.absent]


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as kernels read it.

    Parameters
    ----------
    nodes
        int64[n, NODE_FIELDS], the trunk first.
    constraints
        int64[m, 2]: a slot (place in `slots`) and the term whose adjacency list is meant, or `NOTHING`.
    differs
        int64: terms.
    trunk
        Number of trunk nodes.
    free
        Roots of the subtrees without context.
    slots, domains
        (relation of the shape, direction): adjacency lists and sets of ids that are used.
    memos, stamps
        Rows of scratch memory needed.
    lists
        The largest number of lists of a node.
    cost
        A rough number of steps.
    """

    nodes: npt.NDArray[np.int64]
    constraints: npt.NDArray[np.int64]
    differs: npt.NDArray[np.int64]
    trunk: int
    free: tuple[int, ...]
    slots: tuple[tuple[int, int], ...]
    domains: tuple[tuple[int, int], ...]
    memos: int
    stamps: int
    lists: int
    cost: float


def abstract(bound: Bound) -> tuple[Shape, tuple[int, ...], tuple[int, ...], list[BoundAtom]]:
    """Return a body's shape, its relations and constants in order, and its atoms without variables."""
    variables = len(bound.variables)
    relations: dict[int, int] = {}
    constants: dict[int, int] = {}
    atoms: list[tuple[int, int, int]] = []
    ground: list[BoundAtom] = []

    def term(t: int) -> int:
        return t if t >= 0 else variables + constants.setdefault(~t, len(constants))

    for atom in bound.atoms:
        if atom.subject < 0 and atom.object < 0:
            ground.append(atom)
        else:
            relation = relations.setdefault(atom.relation, len(relations))
            atoms.append((term(atom.subject), relation, term(atom.object)))
    inequalities = tuple((term(a), term(b)) for a, b in bound.inequalities)
    absent = tuple(
        (
            None if negation.subject is None else term(negation.subject),
            relations.setdefault(negation.relation, len(relations)),
            None if negation.object is None else term(negation.object),
        )
        for negation in bound.negations
        if negation.variables
    )
    shape = Shape(variables, len(constants), tuple(atoms), inequalities, absent)
    return shape, tuple(relations), tuple(constants), ground
