"""Materialisation: semi-naive evaluation of a program to its fixpoint.

K_0 = K and K_{i+1} = T_R(K_i) ∪ K_i. A triple that is first in K_{i+1} has a witness with an atom that is
first in K_i, so each round reads, for each rule, one atom after the other from what the last round added (its
delta) and the other atoms from all of K_i. A body that is a path is walked; any other goes to the generic join.

With negation there is one such sequence per stratum, each starting from all that the strata before it have
derived; rounds are numbered across strata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from loginfer.engine.binding import Bound, BoundAtom, bind
from loginfer.engine.interface import Materialisation
from loginfer.engine.native.join import exists, project, too_many
from loginfer.engine.native.materialise_store import (
    LOW,
    NO_IDS,
    NO_KEYS,
    GrowingGraph,
    GrowingPairs,
    GrowingSet,
    pack,
    semijoin,
)
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph
from loginfer.kg.graph import Ids, Keys, Mask, RelationIndex, run_starts
from loginfer.logic.rule import Rule
from loginfer.logic.stratification import stratified
from loginfer.progress import Progress, report_progress


class Conclusions:
    """Conclusions of the current round, under their relations, perhaps repeated or known already.

    Parameters
    ----------
    store
        The triples they will be added to.
    limit
        How many triples may be added in all.
    rounds, total
        Rounds before this one, and what they have added.
    """

    def __init__(self, store: GrowingGraph, limit: int | None, rounds: int = 0, total: int = 0) -> None:
        self.store = store
        self.limit = limit
        self.total = total
        self.round = rounds + 1
        self._keys: dict[int, list[Keys]] = {}
        self._members: dict[tuple[int, int], list[Ids]] = {}

    def add_keys(self, relation: int, keys: Keys) -> None:
        """Add pairs of a relation."""
        if len(keys):
            self._keys.setdefault(relation, []).append(keys)

    def add_entities(self, head: BoundAtom, values: Ids) -> None:
        """Add the head for each value of its variable; if it has none, once for any value."""
        if not len(values):
            return
        if max(head.subject, head.object) < 0:
            values = values[:1]
        subject = values if head.subject >= 0 else np.full(len(values), ~head.subject, dtype=np.int32)
        if head.relation in self.store.pairs:
            keys = pack(subject, values if head.object >= 0 else ~head.object)
            self.add_keys(head.relation, keys)
        else:
            self._members.setdefault((head.relation, ~head.object), []).append(subject)

    def check(self, new: int) -> None:
        """Raise if so many triples, none of them known before this round, are too many."""
        if self.limit is not None and self.total + new > self.limit:
            raise LimitError(
                f"the rules derive more than {self.limit:,} new triples: {self.total:,} in the first "
                f"{self.round - 1} rounds, at least {new:,} more in round {self.round}",
                hint="allow more triples, or leave out the rules that derive most of them",
            )

    def flush(self) -> int:
        """End the round: add its conclusions to the triples; return how many are new."""
        added = self.store.advance(self.round, self._keys, self._members)
        self._keys, self._members = {}, {}
        self.check(added)
        self.total += added
        self.round += 1
        return added


@dataclass(frozen=True, slots=True)
class PathEdge:
    """A binary atom on a path, from one variable to the next.

    Parameters
    ----------
    pairs
        The relation.
    inverse
        Whether the atom is written the other way round.
    """

    pairs: GrowingPairs
    inverse: bool


@dataclass(frozen=True, slots=True)
class PathBody:
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
    edges: tuple[PathEdge, ...]
    nodes: tuple[tuple[GrowingSet, ...], ...]
    excluded: tuple[tuple[int, ...], ...]
    ends_differ: bool

    @property
    def members(self) -> list[GrowingSet]:
        """The sets of all nodes, one after the other."""
        return [members for node in self.nodes for members in node]

    @property
    def sources(self) -> list[GrowingPairs | GrowingSet]:
        """What the rule reads: the edges, then the sets."""
        return [*(edge.pairs for edge in self.edges), *self.members]


@dataclass(frozen=True, slots=True)
class JoinBody:
    """Any other body.

    Parameters
    ----------
    rule
        The rule.
    sources
        What each atom reads.
    """

    rule: Bound
    sources: list[GrowingPairs | GrowingSet]


MaterialisedBody: TypeAlias = PathBody | JoinBody


def shape_of(rule: Bound, store: GrowingGraph) -> MaterialisedBody:
    """Return a rule's body as a path if it is one."""
    path = None if rule.negations else _path(rule, store)
    return path or JoinBody(rule, [store.source(atom) for atom in rule.atoms])


def _path(rule: Bound, store: GrowingGraph) -> PathBody | None:
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
    nodes: list[list[GrowingSet]] = [[] for _ in order]
    for atom in others:
        members = store.unary(atom)
        if members is None:
            return None
        nodes[order.index(max(atom.subject, atom.object))].append(members)
    path = tuple(PathEdge(store.pairs[atom.relation], inverse) for atom, inverse in steps)
    return PathBody(rule, path, tuple(map(tuple, nodes)), tuple(map(tuple, excluded)), ends_differ)


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
    variable = head[0] if head else degree.index(min(degree))
    order, steps, unused = [variable], [], list(edges)
    while unused:
        next_edges = [i for i, atom in enumerate(unused) if variable in (atom.subject, atom.object)]
        if not next_edges:
            return None
        atom = unused.pop(next_edges[0])
        inverse = atom.object == variable
        variable = atom.subject if inverse else atom.object
        if variable in order:
            return None
        order.append(variable)
        steps.append((atom, inverse))
    return (order, steps) if len(head) < 2 or order[-1] == head[1] else None


# The largest number of pairs in an array.
MOST = 2**31 - 1


class JoinRound:
    """The relations that some rules read in one round, laid out for the generic join.

    Each relation or set has an id of its own, and its delta the next one. So has each negated relation: what
    is negated was complete before the first round.

    Parameters
    ----------
    joins
        The rules.
    graph
        The graph before the first round.
    """

    def __init__(self, joins: Iterable[JoinBody], graph: KnowledgeGraph) -> None:
        self._ids: dict[int, int] = {}
        self._negated: dict[int, int] = {}
        pairs: list[tuple[Ids, Ids]] = []
        for join in joins:
            for source, atom in zip(join.sources, join.rule.atoms, strict=True):
                if id(source) not in self._ids:
                    full = self._ids[id(source)] = len(pairs)
                    pairs.append(_columns(_all_keys(source, ~atom.object)))
                    pairs.append(_columns(_delta_keys(source, ~atom.object)) if source.old else pairs[full])
            for negation in join.rule.negations:
                if negation.relation not in self._negated:
                    self._negated[negation.relation] = len(pairs)
                    pairs.append(graph.index.pairs(negation.relation))
        self.index = index_of_pairs(pairs, len(graph.entities))

    def body(self, join: JoinBody, part: int) -> Bound:
        """Return a body over these relations, with one atom in its delta."""
        atoms = tuple(
            replace(atom, relation=self._ids[id(source)] + (i == part))
            for i, (atom, source) in enumerate(zip(join.rule.atoms, join.sources, strict=True))
        )
        negations = tuple(replace(n, relation=self._negated[n.relation]) for n in join.rule.negations)
        return replace(join.rule, atoms=atoms, negations=negations)


def index_of_pairs(pairs: Sequence[tuple[Ids, Ids]], entities: int) -> RelationIndex:
    """Return an index of relations given as subjects and objects, sorted and without duplicates."""
    relations = np.repeat(np.arange(len(pairs), dtype=np.int32), [len(subjects) for subjects, _ in pairs])
    subjects, objects = (np.concatenate([NO_IDS, *side]) for side in zip(*pairs, strict=True))
    return RelationIndex(np.column_stack([subjects, relations, objects]), entities, len(pairs))


def _all_keys(source: GrowingPairs | GrowingSet, constant: int) -> Keys:
    return source.keys if isinstance(source, GrowingPairs) else pack(source.members, constant)


def _delta_keys(source: GrowingPairs | GrowingSet, constant: int) -> Keys:
    return source.delta if isinstance(source, GrowingPairs) else pack(np.sort(source.delta), constant)


def _columns(keys: Keys) -> tuple[Ids, Ids]:
    return (keys >> 32).astype(np.int32), (keys & LOW).astype(np.int32)


# How many keys of a frontier are made at a time: what a path passes through may be far more than what it
# concludes, and a limit on the number of triples must be noticed in time.
KEYS_AT_A_TIME = 1 << 21

# For each node of a path the entities it may be; None for all.
Masks: TypeAlias = list[Mask | None]


def path_pairs(path: PathBody, part: int, store: GrowingGraph, known_pairs: GrowingPairs) -> Iterator[Keys]:
    """Yield pairs (first end, last end) that follow, each at most once.

    The delta is somewhere on the path. Going back from it gives, for each earlier node, the entities from which
    the delta can be reached; going forward from the first end is then confined to these.

    Parameters
    ----------
    path
        A path whose ends are the two variables of the head.
    part
        Which of `path.sources` is read from its delta.
    store
        The triples.
    known_pairs
        Pairs that need not be yielded.
    """
    masks = _masks(path, store)
    node, members, keys = _delta(path, part, masks)
    if part == 0 and path.edges:
        frontier, step = keys, 1
    else:
        starts = np.sort(_go_back(path, store, masks, members, node))
        frontier, step = pack(starts, starts), 0
    for pairs in _go_forward(path, part, store, masks, known_pairs, frontier, step):
        yield pairs[pairs >> 32 != pairs & LOW] if path.ends_differ else pairs


def path_members(path: PathBody, part: int, store: GrowingGraph, known_ends: Mask | None) -> Ids:
    """Return the first ends that follow.

    Parameters
    ----------
    path
        A path whose first end is the head's only variable, or whose head is ground.
    part
        Which of `path.sources` is read from its delta.
    store
        The triples.
    known_ends
        bool[entities], first ends that need not be returned.
    """
    masks = _masks(path, store)
    if known_ends is not None and len(path.edges) > 1:
        masks[0] = _both(masks[0], ~known_ends)
    delta_node = part if part < len(path.edges) else _node(path, part)
    for node in range(len(path.edges) - 1, delta_node, -1):
        masks[node] = _both(masks[node], _able(path, store, masks[node + 1], node))
    delta_node, members, _ = _delta(path, part, masks)
    if part >= len(path.edges) and delta_node < len(path.edges):
        ahead = masks[delta_node + 1]
        towards = path.edges[delta_node].pairs.adjacency(path.edges[delta_node].inverse)
        allowed = store.everything if ahead is None else ahead
        members = semijoin(members, towards.pointers, towards.values, allowed)
    return _go_back(path, store, masks, members, delta_node)


def _masks(path: PathBody, store: GrowingGraph) -> Masks:
    masks: Masks = []
    for node, excluded in zip(path.nodes, path.excluded, strict=True):
        mask = None
        for members in node:
            mask = _both(mask, members.mask)
        if excluded:
            mask = store.everything.copy() if mask is None else mask.copy()
            mask[list(excluded)] = False
        masks.append(mask)
    return masks


def _both(left: Mask | None, right: Mask) -> Mask:
    return right if left is None else left & right


def _node(path: PathBody, part: int) -> int:
    """Return the node that a part beyond the edges constrains."""
    part -= len(path.edges)
    for node, sets in enumerate(path.nodes):
        if part < len(sets):
            return node
        part -= len(sets)
    raise IndexError(part)


def _delta(path: PathBody, part: int, masks: Masks) -> tuple[int, Ids, Keys]:
    """Return the node at which the delta stands, its entities there and, for an edge, its pairs."""
    if part >= len(path.edges):
        node = _node(path, part)
        source = path.members[part - len(path.edges)]
        members, mask = source.delta, masks[node]
        if mask is not None and mask is not source.mask:
            members = members[mask[members]]
        return node, members, NO_KEYS
    edge = path.edges[part]
    keys = edge.pairs.delta_keys(edge.inverse)
    start_mask, end_mask = masks[part], masks[part + 1]
    if start_mask is not None:
        keys = keys[start_mask[keys >> 32]]
    if end_mask is not None:
        keys = keys[end_mask[keys & LOW]]
    subjects = (keys >> 32).astype(np.int32)
    return part, subjects[run_starts(subjects)], keys


def _able(path: PathBody, store: GrowingGraph, ahead: Mask | None, node: int) -> Mask:
    """Return bool[entities]: from where one step of the path leads to an entity that may be ahead."""
    edge = path.edges[node]
    keys = edge.pairs.keys
    starts, ends = (keys & LOW, keys >> 32) if edge.inverse else (keys >> 32, keys & LOW)
    able = np.zeros(store.entities, dtype=np.bool_)
    able[starts if ahead is None else starts[ahead[ends]]] = True
    return able


def _go_back(path: PathBody, store: GrowingGraph, masks: Masks, members: Ids, end_node: int) -> Ids:
    """Return the first ends from which a node's `members` can be reached; confine the masks to the way."""
    for node in range(end_node - 1, -1, -1):
        if not len(members):
            break
        on_the_way = np.zeros(store.entities, dtype=np.bool_)
        on_the_way[members] = True
        masks[node + 1] = on_the_way
        edge = path.edges[node]
        backward = edge.pairs.adjacency(not edge.inverse)
        reached, _ = store.expand(members.astype(np.int64), 0, store.entities, backward, masks[node])
        members = reached.astype(np.int32)
    return members


def _go_forward(
    path: PathBody, part: int, store: GrowingGraph, masks: Masks, known_pairs: GrowingPairs, frontier: Keys, step: int
) -> Iterator[Keys]:
    """Yield the pairs (first end, last end) that a frontier leads to from one step on."""
    if step == len(path.edges):
        yield frontier
        return
    edge = path.edges[step]
    step_from = edge.pairs.delta_adjacency if step == part else edge.pairs.adjacency
    towards = step_from(edge.inverse)
    last = step == len(path.edges) - 1
    first, known = 0, known_pairs if last else None
    while first < len(frontier):
        reached, first = store.expand(frontier, first, KEYS_AT_A_TIME, towards, masks[step + 1], known)
        if len(reached):
            yield from _go_forward(path, part, store, masks, known_pairs, reached, step + 1)


def materialise(
    graph: KnowledgeGraph,
    rules: Sequence[Rule],
    *,
    max_rounds: int | None = None,
    max_triples: int | None = None,
    max_conclusions: int = MOST,
    progress: Progress | None = None,
) -> Materialisation:
    """Apply rules to a graph until nothing new follows.

    Parameters
    ----------
    graph
        K. Its vocabularies must hold the names in the rules' heads (see `binding.extend`).
    rules
        The program.
    max_rounds
        How many rounds may add something.
    max_triples
        How many triples may be added.
    max_conclusions
        How many conclusions of one rule may be listed in one round, known ones included, unless its body is
        a path: those are never listed.
    progress
        Called after each round.

    Raises
    ------
    LimitError
        When a round beyond `max_rounds` would add something, more than `max_triples` are added, or a rule
        has more than `max_conclusions` to list.
    InputError
        When the rules are not stratified.
    """
    strata: list[Materialisation] = []
    for stratum in stratified(rules):
        strata.append(_materialise(graph, stratum, strata, max_rounds, max_triples, max_conclusions, progress))
        if len(strata[-1]):
            graph = graph.with_triples(np.vstack([graph.triples, strata[-1].triples]))
    if len(strata) == 1:
        return strata[0]
    triples = np.vstack([np.empty((0, 3), dtype=np.int32), *(part.triples for part in strata)])
    depth = np.concatenate([np.empty(0, dtype=np.int32), *(part.depth for part in strata)])
    order = np.lexsort(triples.T[::-1])
    return Materialisation(triples[order], depth[order], strata[-1].rounds if strata else 0)


def _materialise(
    graph: KnowledgeGraph,
    rules: Sequence[Rule],
    before: Sequence[Materialisation],
    max_rounds: int | None,
    max_triples: int | None,
    max_conclusions: int,
    progress: Progress | None,
) -> Materialisation:
    """Apply the rules of one stratum to what the ones before it have left, until nothing new follows."""
    program = [bound for bound in dict.fromkeys(bind(rule, graph) for rule in rules) if not bound.empty]
    store = GrowingGraph(graph, program)
    shapes = [shape_of(rule, store) for rule in program if rule.atoms]
    earlier = before[-1].rounds if before else 0
    conclusions = Conclusions(store, max_triples, earlier, sum(map(len, before)))
    for rule in program:
        if not rule.atoms and (not rule.negations or exists(graph.index, rule)):
            conclusions.add_entities(rule.head, np.zeros(1, dtype=np.int32))
    while True:
        _apply(shapes, graph, conclusions, max_conclusions)
        added = conclusions.flush()
        rounds = conclusions.round - 1
        if not added:
            return store.collect(rounds - 1)
        if max_rounds is not None and rounds > max_rounds:
            raise LimitError(
                f"the rules still derive new triples after {max_rounds} rounds: "
                f"{conclusions.total - added:,} until then, {added:,} more in round {rounds}",
                hint="allow more rounds, or apply the rules once instead of to the fixpoint",
            )
        report_progress(progress, f"round {rounds}", conclusions.total, None)


def _apply(
    shapes: Sequence[MaterialisedBody], graph: KnowledgeGraph, conclusions: Conclusions, max_conclusions: int
) -> None:
    """Add what the rules conclude from the deltas."""
    joins: list[tuple[JoinBody, list[int]]] = []
    for shape in shapes:
        parts = _new_parts(shape)
        if parts and isinstance(shape, JoinBody):
            joins.append((shape, parts))
        elif isinstance(shape, PathBody):
            for part in parts:
                _apply_path(shape, part, conclusions.store, conclusions)
    if joins:
        layout = JoinRound([join for join, _ in joins], graph)
        for join, parts in joins:
            for part in parts:
                _apply_join(join, part, layout, conclusions, max_conclusions)


def _new_parts(shape: MaterialisedBody) -> list[int]:
    """Return the positions in a body at which a witness can have its first new triple.

    All triples before the first new one are old; where there are no old ones, it is no later.
    """
    parts = []
    possible = True
    for part, source in enumerate(shape.sources):
        if len(source) == 0:
            return []
        if possible and len(source.delta):
            parts.append(part)
        possible = possible and source.old > 0
    return parts


def _apply_path(path: PathBody, part: int, store: GrowingGraph, conclusions: Conclusions) -> None:
    head = path.rule.head
    if not _has_two_variables(head):
        members = store.sets.get((head.relation, ~head.object))
        known_ends = members.mask if members is not None and head.subject >= 0 else None
        conclusions.add_entities(head, path_members(path, part, store, known_ends))
        return
    new = 0
    for keys in path_pairs(path, part, store, store.pairs[head.relation]):
        conclusions.add_keys(head.relation, keys)
        if part > 0 or len(path.edges) > 1:
            new += len(keys)
            conclusions.check(new)


def _apply_join(join: JoinBody, part: int, layout: JoinRound, conclusions: Conclusions, max_conclusions: int) -> None:
    head, index, body = join.rule.head, layout.index, layout.body(join, part)
    if _has_two_variables(head):
        known_pairs = len(conclusions.store.pairs[head.relation])
        most = max_conclusions
        if conclusions.limit is not None:
            most = min(known_pairs + conclusions.limit - conclusions.total, most)
        try:
            pairs = project(index, body, (head.subject, head.object), most)
        except LimitError:
            conclusions.check(most + 1 - known_pairs)
            raise
        conclusions.check(len(pairs) - known_pairs)
        if len(pairs) > most:  # a product, which nothing has listed yet
            raise too_many(len(pairs), most)
        conclusions.add_keys(head.relation, pack(*pairs.pairs()))
    elif (variable := max(head.subject, head.object)) >= 0:
        conclusions.add_entities(head, project(index, body, (variable,), MOST).left)
    elif exists(index, body):
        conclusions.add_entities(head, np.zeros(1, dtype=np.int32))


def _has_two_variables(head: BoundAtom) -> bool:
    return head.subject >= 0 and head.object >= 0 and head.subject != head.object
