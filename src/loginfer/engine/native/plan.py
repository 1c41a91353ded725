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
existence is asked, each at the earliest level where its context is bound. A trunk variable that is not
wanted itself lies between wanted ones. If nothing that follows depends on what lies between it and an
earlier level, a value already tried under the same earlier values is skipped (*stamped*).

Plans know neither ids nor relations: thousands of rules share one, so they are cached by shape and rough
sizes. Terms are numbers: variables 0 … v - 1, then constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from loginfer.engine.binding import Bound, BoundAtom, BoundNegation, distinct
from loginfer.kg.graph import FORWARD, INVERSE, Ints, RelationIndex

# Columns of `JoinPlan.nodes`. They are compiled into `join_kernels`, whose cache does not see changes here.
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
class BodyShape:
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
        links: list[tuple[int, ...]] = [(s, o) for s, _, o in self.atoms]
        links += self.inequalities
        return links + [tuple(t for t in (s, o) if t is not None) for s, _, o in self.absent]


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A plan as kernels read it.

    Parameters
    ----------
    nodes
        int64[n, NODE_FIELDS], the trunk first.
    constraints
        int64[m, 2]: a slot (index into `slots`) and the term whose adjacency list is meant, or `NOTHING`.
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

    nodes: Ints
    constraints: Ints
    differs: Ints
    trunk: int
    free: tuple[int, ...]
    slots: tuple[tuple[int, int], ...]
    domains: tuple[tuple[int, int], ...]
    memos: int
    stamps: int
    lists: int
    cost: float


def abstract(bound: Bound) -> tuple[BodyShape, tuple[int, ...], tuple[int, ...], list[BoundAtom]]:
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
    shape = BodyShape(variables, len(constants), tuple(atoms), inequalities, absent)
    return shape, tuple(relations), tuple(constants), ground


@lru_cache(maxsize=4096)
def plan_count(shape: BodyShape, scales: Scales) -> JoinPlan:
    """Plan the number of witnesses: one free subtree per component of the body."""
    builder = _Builder(shape, scales)
    builder.hang_all(sorted({t for s, _, o in shape.atoms for t in (s, o) if t < shape.variables}), [], recurring=False)
    return builder.finish()


@lru_cache(maxsize=4096)
def plan_check(shape: BodyShape, scales: Scales, variables: tuple[int, ...]) -> JoinPlan:
    """Plan the question whether values of some variables (the trunk) extend to a witness."""
    builder = _Builder(shape, scales)
    for variable in variables:
        builder.trunk_node(variable, is_given=True)
    builder.hang_all(builder.others(variables), variables, recurring=True)
    return builder.finish()


@lru_cache(maxsize=4096)
def plan_projection(shape: BodyShape, scales: Scales, variables: tuple[int, ...]) -> tuple[JoinPlan, ...]:
    """Plan the distinct values of one variable, or of a pair: then there are two plans.

    The trunk leads from one to the other, from the first or from the second.
    """
    paths = [variables]
    if len(variables) == 2:
        paths = [_path(shape, scales, *ends) for ends in (variables, variables[::-1])]
    plans = []
    for path in paths:
        builder = _Builder(shape, scales)
        for variable in path:
            builder.trunk_node(variable)
        builder.hang_all(builder.others(path), path, recurring=False)
        builder.stamp(path)
        plans.append(builder.finish())
    return tuple(plans)


@lru_cache(maxsize=4096)
def plan_listing(shape: BodyShape, scales: Scales, ordered: bool) -> JoinPlan:
    """Plan the list of all witnesses: every variable is on the trunk.

    Parameters
    ----------
    shape, scales
        The body.
    ordered
        Bind variables in their own order, so that witnesses come in order; each level then first asks
        whether what is bound extends to a witness (there must be one at all), so that the search never
        goes astray. Otherwise the order is the one that promises least work.
    """
    builder = _Builder(shape, scales)
    order: list[int] = []
    while len(order) < shape.variables:
        rest = builder.others(order)
        variable = rest[0] if ordered else builder.choose(rest)
        order.append(variable)
        builder.trunk_node(variable)
    if ordered:
        for level in range(len(order) - 1):
            builder.look_ahead(order[: level + 1], order[level + 1 :], once=order[:1])
    return builder.finish()


@lru_cache(maxsize=4096)
def plan_first(shape: BodyShape, scales: Scales, context: tuple[int, ...], part: tuple[int, ...]) -> JoinPlan:
    """Plan the smallest witness of a part of a body, given values of its context that have one.

    The trunk holds the context, then the part's variables in their order. Each level looks ahead, so that
    the first value that passes is the right one.
    """
    builder = _Builder(shape, scales)
    order = [*context, *part]
    for variable in order:
        builder.trunk_node(variable, is_given=variable in context)
    for level in range(len(context), len(order) - 1):
        builder.look_ahead(order[: level + 1], order[level + 1 :], once=())
    return builder.finish()


class _Builder:
    """A plan in the making."""

    def __init__(self, shape: BodyShape, scales: Scales) -> None:
        self.shape = shape
        self.scales = scales
        self.bound: set[int] = set(range(shape.variables, shape.variables + shape.constants))
        self.nodes: list[list[int]] = []
        self.constraints: list[tuple[int, int]] = []
        self.differs: list[int] = []
        self.slots: dict[tuple[int, int], int] = {}
        self.domains: dict[tuple[int, int], int] = {}
        self.contexts: dict[int, set[int]] = {}
        self.trunk = 0
        self.free: list[int] = []
        self.memos = 0
        self.stamps = 0
        self.cost = 0.0
        self.visits: dict[int, float] = {-1: 1.0}

    def others(self, variables: Iterable[int]) -> list[int]:
        """Return the variables that are not among these."""
        excluded = set(variables)
        return [v for v in range(self.shape.variables) if v not in excluded]

    # -- what the data look like ----------------------------------------------------------------

    def fan(self, slot: tuple[int, int]) -> float:
        """Return about how long a list of this slot is."""
        relation, direction = slot
        pairs, rows = self.scales[relation][0], self.scales[relation][1 + direction]
        return float(2.0 ** (pairs - rows))

    def rows(self, slot: tuple[int, int]) -> float:
        """Return about how many lists of this slot are not empty."""
        return float(2.0 ** self.scales[slot[0]][1 + slot[1]])

    # -- constraints ----------------------------------------------------------------------------

    def lists(self, variable: int) -> list[tuple[tuple[int, int], int]]:
        """Return the lists (slot, term) that hold a variable's candidates, given what is bound."""
        lists: dict[tuple[tuple[int, int], int], None] = {}
        for subject, relation, object_ in self.shape.atoms:
            if subject == variable and object_ in self.bound:
                lists[(relation, INVERSE), object_] = None
            elif object_ == variable and subject in self.bound:
                lists[(relation, FORWARD), subject] = None
        return list(lists)

    def absent(self, variable: int) -> list[tuple[tuple[int, int], int]]:
        """Return the lists (slot, term) that must not hold a candidate, given what is bound.

        Where the other end can be anything, the term is `NOTHING`: the candidate's own list must be empty.
        """
        lists: dict[tuple[tuple[int, int], int], None] = {}
        for subject, relation, object_ in self.shape.absent:
            if subject == variable and object_ is None:
                lists[(relation, FORWARD), NOTHING] = None
            elif object_ == variable and subject is None:
                lists[(relation, INVERSE), NOTHING] = None
            elif subject == variable and object_ is not None and object_ in {variable, *self.bound}:
                lists[(relation, INVERSE), object_] = None
            elif object_ == variable and subject is not None and subject in self.bound:
                lists[(relation, FORWARD), subject] = None
        return list(lists)

    def domain(self, variable: int) -> tuple[int, int]:
        """Return the slot with the fewest non-empty lists that this variable must have."""
        slots = [
            slot
            for subject, relation, object_ in self.shape.atoms
            for slot, term in (((relation, FORWARD), subject), ((relation, INVERSE), object_))
            if term == variable
        ]
        return min(slots, key=self.rows)

    def candidates(self, variable: int) -> float:
        """Return about how many candidates a variable has, given what is bound."""
        lists = self.lists(variable)
        if not lists:
            return self.rows(self.domain(variable))
        fans = sorted(self.fan(slot) for slot, _ in lists)
        # Every further list lets few of the candidates pass.
        return fans[0] / 4.0 ** (len(fans) - 1)

    def choose(self, variables: Sequence[int]) -> int:
        """Return the variable to bind next: one that is constrained, with the fewest candidates."""
        constrained = [v for v in variables if self.lists(v)]
        if constrained:
            return min(constrained, key=lambda v: (self.candidates(v), -self._degree(v), v))
        return min(variables, key=lambda v: (-self._degree(v), self.candidates(v), v))

    def _degree(self, variable: int) -> int:
        return len({(s, o) for s, _, o in self.shape.atoms if variable in (s, o)})

    def neighbours(self, variables: set[int]) -> set[int]:
        """Return the variables that share a part of the body with these, themselves included."""
        terms = {t for edge in self.shape.links if variables & set(edge) for t in edge}
        return {t for t in terms if t < self.shape.variables}

    def components(self, variables: Iterable[int]) -> list[set[int]]:
        """Return the parts of these variables that parts of the body hold together."""
        rest = set(variables)
        parts = []
        while rest:
            part = {min(rest)}
            while (grown := self.neighbours(part) & rest) - part:
                part |= grown
            parts.append(part)
            rest -= part
        return parts

    # -- nodes ----------------------------------------------------------------------------------

    def _node(self, variable: int, parent: int, *, is_given: bool = False) -> int:
        """Add a node and bind its variable."""
        lists = self.lists(variable)
        lists.sort(key=lambda item: self.fan(item[0]))
        loops = dict.fromkeys(
            (relation, FORWARD) for s, relation, o in self.shape.atoms if s == variable and o == variable
        )
        domain = -1
        if not lists and not is_given:
            domain = self.domains.setdefault(self.domain(variable), len(self.domains))
        node = len(self.nodes)
        begin = len(self.constraints)
        for slot, term in lists:
            self.constraints.append((self.slots.setdefault(slot, len(self.slots)), term))
        middle = len(self.constraints)
        for slot in loops:
            self.constraints.append((self.slots.setdefault(slot, len(self.slots)), variable))
        last = len(self.constraints)
        for slot, term in self.absent(variable):
            self.constraints.append((self.slots.setdefault(slot, len(self.slots)), term))
        differs = len(self.differs)
        for pair in self.shape.inequalities:
            if variable in pair:
                other = pair[0] if pair[1] == variable else pair[1]
                if other in self.bound:
                    self.differs.append(other)
        row = [-1] * NODE_FIELDS
        row[VARIABLE], row[PARENT], row[DOMAIN] = variable, parent, domain
        row[LISTS], row[LOOPS], row[LOOPS_END], row[ABSENT_END] = begin, middle, last, len(self.constraints)
        row[DIFFERS], row[DIFFERS_END] = differs, len(self.differs)
        self.nodes.append(row)
        candidates = max(self.candidates(variable), 0.1)
        self.visits[node] = self.visits[parent] * candidates
        self.cost += self.visits[parent] * (1.0 + candidates)
        self.bound.add(variable)
        return node

    def trunk_node(self, variable: int, *, is_given: bool = False) -> None:
        """Add the next node of the trunk; a given value needs no domain to come from."""
        self._node(variable, self.trunk - 1, is_given=is_given)
        self.trunk += 1

    def hang_all(self, variables: Iterable[int], trunk: Sequence[int], *, recurring: bool) -> None:
        """Hang variables below the trunk, each part at the level that completes its context.

        `recurring` says whether the first trunk variable takes the same value more than once.
        """
        once = set(trunk[:1]) if not recurring else set()
        below: dict[int, list[set[int]]] = {}
        for part in self.components(variables):
            context = (self.neighbours(part) - part) & set(trunk)
            level = max((trunk.index(v) for v in context), default=-1)
            below.setdefault(level, []).append(part)
        for level, parts in sorted(below.items()):
            roots = self._subtrees(parts, level, set(trunk), once)
            if level < 0:
                self.free = roots
            else:
                self.nodes[level][CHILD] = roots[0]

    def look_ahead(self, bound: Sequence[int], rest: Sequence[int], *, once: Iterable[int]) -> None:
        """Let the trunk level that binds the last of some variables ask whether the rest has a witness.

        `once` holds variables that take no value twice.
        """
        saved = self.bound
        constants = range(self.shape.variables, self.shape.variables + self.shape.constants)
        self.bound = set(constants) | set(bound)
        # A part that does not depend on this level's variable was asked about at an earlier one.
        dependent = [p for p in self.components(rest) if bound[-1] in self.neighbours(p)]
        if dependent:
            level = len(bound) - 1
            self.nodes[level][CHILD] = self._subtrees(dependent, level, set(bound), set(once))[0]
        self.bound = saved

    def _subtrees(self, parts: list[set[int]], parent: int, above: set[int], once: set[int]) -> list[int]:
        """Hang parts below a node, the cheapest first; return their roots."""
        roots = []
        costs = []
        for part in parts:
            cost_before = self.cost
            roots.append(self._subtree(part, parent, above, once))
            costs.append(self.cost - cost_before)
        order = sorted(range(len(roots)), key=lambda i: (costs[i], roots[i]))
        roots = [roots[i] for i in order]
        for root, following in pairwise(roots):
            self.nodes[root][SIBLING] = following
        return roots

    def _subtree(self, part: set[int], parent: int, above: set[int], once: set[int]) -> int:
        context = (self.neighbours(part) - part) & above
        visits_before = self.visits[parent]
        remembered = len(context) == 1 and not context & once
        if remembered:
            # Each value of the context is asked about once: as often as it has values at most.
            (variable,) = context
            self.visits[parent] = min(visits_before, self.rows(self.domain(variable)))
        added = set(self.bound)
        variable = self.choose(sorted(part))
        node = self._node(variable, parent)
        self.contexts[node] = context
        self.visits[parent] = visits_before
        if not context:
            once = once | {variable}
        rest = self.components(part - {variable})
        if rest:
            roots = self._subtrees(rest, node, above | {variable}, once)
            self.nodes[node][CHILD] = roots[0]
        self.bound = added
        row = self.nodes[node]
        trivial = not rest and row[LOOPS] - row[LISTS] == 1 and row[LOOPS] == row[ABSENT_END]
        if remembered and not (trivial and row[DIFFERS] == row[DIFFERS_END]):
            row[MEMO], row[CONTEXT] = self.memos, next(iter(context))
            self.memos += 1
        return node

    def stamp(self, path: Sequence[int]) -> None:
        """Let trunk levels skip values already tried where nothing in between matters."""
        levels = {variable: level for level, variable in enumerate(path)}
        node_levels: list[set[int]] = []
        hanging: list[set[int]] = []
        for level in range(len(path)):
            node_levels.append({levels[t] for t in self._terms(level) if t in levels})
            hanging.append(set())
            child = self.nodes[level][CHILD]
            while child >= 0:
                hanging[-1] |= {levels[v] for v in self.contexts[child]}
                child = self.nodes[child][SIBLING]
        for level in range(2, len(path)):
            if level == len(path) - 1 and not hanging[level]:
                continue  # the mark of a pair that was found does the same
            # A level's own lists do not count: a value that was tried had passed them.
            depends = {0}.union(hanging[level], *node_levels[level + 1 :], *hanging[level + 1 :])
            deepest = max(d for d in depends if d < level)
            if deepest < level - 1:
                self.nodes[level][STAMP], self.nodes[level][STAMP_LEVEL] = self.stamps, deepest
                self.stamps += 1

    def _terms(self, node: int) -> list[int]:
        """Return the terms that a node's candidates depend on."""
        row = self.nodes[node]
        lists = [term for _, term in self.constraints[row[LISTS] : row[ABSENT_END]]]
        return lists + self.differs[row[DIFFERS] : row[DIFFERS_END]]

    def finish(self) -> JoinPlan:
        """Return the plan."""
        widest = max((row[LOOPS] - row[LISTS] for row in self.nodes), default=0)
        return JoinPlan(
            _array(self.nodes, NODE_FIELDS),
            _array(self.constraints, 2),
            np.array(self.differs, dtype=np.int64),
            self.trunk,
            tuple(self.free),
            tuple(self.slots),
            tuple(self.domains),
            self.memos,
            self.stamps,
            max(widest, 1),
            self.cost,
        )


def _array(rows: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _path(shape: BodyShape, scales: Scales, source: int, target: int) -> tuple[int, ...]:
    """Return the chain of variables from one to another along which the fewest pairs are met.

    Without such a chain the two stand side by side.
    """
    builder = _Builder(shape, scales)
    edges: dict[tuple[int, int], float] = {}
    for subject, relation, object_ in shape.atoms:
        for a, b, direction in ((subject, object_, FORWARD), (object_, subject, INVERSE)):
            if a < shape.variables and b < shape.variables:
                # Half a doubling more for each step: short chains are better when lists are equally long.
                weight = math.log2(builder.fan((relation, direction))) + 0.5
                edges[a, b] = min(weight, edges.get((a, b), weight))
    best: dict[int, tuple[float, tuple[int, ...]]] = {source: (0.0, (source,))}
    for _ in range(shape.variables):
        for (a, b), weight in edges.items():
            if a in best:
                reached = (best[a][0] + weight, (*best[a][1], b))
                if b not in best or reached < best[b]:
                    best[b] = reached
    return best[target][1] if target in best else (source, target)


@dataclass(frozen=True, slots=True)
class Body:
    """A body as plans see it, with the ids they leave out."""

    shape: BodyShape
    scales: Scales
    relations: tuple[int, ...]
    constants: tuple[int, ...]

    @classmethod
    def of(cls, index: RelationIndex, bound: Bound) -> Body | None:
        """Return None for a body that obviously has no witness."""
        if bound.empty:
            return None
        shape, relations, constants, ground = abstract(bound)
        if not all(index.holds(~atom.subject, atom.relation, ~atom.object) for atom in ground):
            return None
        if any(not negation.variables and _occurs(index, negation) for negation in bound.negations):
            return None
        return cls(shape, tuple(_scale(index, relation) for relation in relations), relations, constants)


def _scale(index: RelationIndex, relation: int) -> tuple[int, int, int]:
    """Return binary orders of magnitude: pairs, distinct subjects, distinct objects."""
    subjects, objects = index.starts(relation, FORWARD), index.starts(relation, INVERSE)
    return index.count(relation).bit_length(), len(subjects).bit_length(), len(objects).bit_length()


def _occurs(index: RelationIndex, negation: BoundNegation) -> bool:
    """Say whether an index has what a negation without variables denies."""
    subject, relation, object_ = negation.subject, negation.relation, negation.object
    if subject is not None and object_ is not None:
        return index.holds(~subject, relation, ~object_)
    if subject is not None:
        return len(index.neighbours(relation, FORWARD, ~subject)) > 0
    if object_ is not None:
        return len(index.neighbours(relation, INVERSE, ~object_)) > 0
    if not negation.loop:
        return index.count(relation) > 0
    return any(index.holds(x, relation, x) for x in index.starts(relation, FORWARD).tolist())


def substitute(bound: Bound, values: dict[int, int]) -> Bound:
    """Return the body with variables replaced by constants (variable to id); the others move up."""
    return rename(bound, {variable: ~value for variable, value in values.items()})


def rename(bound: Bound, values: dict[int, int]) -> Bound:
    """Replace variables by other bound terms; the variables that stay are numbered anew."""
    kept = [v for v in range(len(bound.variables)) if v not in values]
    new_number = {v: i for i, v in enumerate(kept)}

    def term(t: int) -> int:
        t = values.get(t, t)
        return new_number[t] if t >= 0 else t

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
    variables = tuple(bound.variables[v] for v in kept)
    return Bound(variables, distinct(atoms), distinct(inequalities), head, empty, distinct(negations))


def restrict(bound: Bound, path: Sequence[int]) -> Bound:
    """Return the atoms over these variables only, numbered in this order; no inequalities, no negations."""
    number = {v: i for i, v in enumerate(path)}
    atoms = tuple(
        BoundAtom(number.get(a.subject, a.subject), a.relation, number.get(a.object, a.object))
        for a in bound.atoms
        if all(t < 0 or t in number for t in (a.subject, a.object))
    )
    return Bound(tuple(bound.variables[v] for v in path), atoms, (), bound.head, False)
