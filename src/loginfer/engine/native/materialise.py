"""Materialisation: semi-naive evaluation of a program to its fixpoint.

K_0 = K and K_{i+1} = T_R(K_i) ∪ K_i. A triple that is first in K_{i+1} has a witness with an atom that is
first in K_i, so each round reads, for each rule, one atom after the other from what the last round added (its
delta) and the other atoms from all of K_i.

With negation there is one such sequence per stratum, each starting from all that the strata before it have
derived; rounds are counted through.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loginfer.engine.binding import BoundAtom, bind
from loginfer.engine.interface import Materialisation, Progress
from loginfer.engine.native.join import exists, too_many
from loginfer.engine.native.materialise_conclusions import Conclusions
from loginfer.engine.native.materialise_joins import MOST, JoinRound
from loginfer.engine.native.materialise_paths import path_members, path_pairs
from loginfer.engine.native.materialise_relations import pack
from loginfer.engine.native.materialise_rules import Join, Path, Shape, shape_of
from loginfer.engine.native.materialise_store import Store
from loginfer.engine.native.store import GraphStore
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Rule
from loginfer.logic.stratification import stratified

__all__ = ["materialise"]


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
    found: list[Materialisation] = []
    for stratum in stratified(rules):
        found.append(_materialise(graph, stratum, found, max_rounds, max_triples, max_conclusions, progress))
        if len(found[-1]):
            graph = graph.with_triples(np.vstack([graph.triples, found[-1].triples]))
    if len(found) == 1:
        return found[0]
    triples = np.vstack([np.empty((0, 3), dtype=np.int32), *(part.triples for part in found)])
    depth = np.concatenate([np.empty(0, dtype=np.int32), *(part.depth for part in found)])
    order = np.lexsort(triples.T[::-1])
    return Materialisation(triples[order], depth[order], found[-1].rounds if found else 0)


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
    store = Store(graph, program)
    shapes = [shape_of(rule, store) for rule in program if rule.atoms]
    earlier = before[-1].rounds if before else 0
    conclusions = Conclusions(store, max_triples, earlier, sum(map(len, before)))
    for rule in program:
        if not rule.atoms and (not rule.negations or exists(GraphStore(graph.index), rule)):
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
        if progress is not None:
            progress(f"round {rounds}", conclusions.total, None)


def _apply(
    shapes: Sequence[Shape], graph: KnowledgeGraph, conclusions: Conclusions, max_conclusions: int
) -> None:
    """Add what the rules conclude from the deltas."""
    joins: list[tuple[Join, list[int]]] = []
    for shape in shapes:
        parts = _new_parts(shape)
        if parts and isinstance(shape, Join):
            joins.append((shape, parts))
        elif isinstance(shape, Path):
            for part in parts:
                _apply_path(shape, part, conclusions.store, conclusions)
    if joins:
        layout = JoinRound([join for join, _ in joins], graph)
        for join, parts in joins:
            for part in parts:
                _apply_join(join, part, layout, conclusions, max_conclusions)


def _new_parts(shape: Shape) -> list[int]:
    """Return the places of a body at which a witness can have its first new triple.

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


def _apply_path(path: Path, part: int, store: Store, conclusions: Conclusions) -> None:
    head = path.rule.head
    if not _has_two_variables(head):
        members = store.sets.get((head.relation, ~head.object))
        known = members.mask if members is not None and head.subject >= 0 else None
        conclusions.add_entities(head, path_members(path, part, store, known))
        return
    new = 0
    for keys in path_pairs(path, part, store, store.pairs[head.relation]):
        conclusions.add_keys(head.relation, keys)
        if part > 0 or len(path.edges) > 1:
            new += len(keys)
            conclusions.check(new)


def _apply_join(
    join: Join, part: int, layout: JoinRound, conclusions: Conclusions, max_conclusions: int
) -> None:
    head = join.rule.head
    if _has_two_variables(head):
        known = len(conclusions.store.pairs[head.relation])
        most = max_conclusions if conclusions.room is None else min(known + conclusions.room, max_conclusions)
        try:
            pairs = layout.pairs(join, part, most)
        except LimitError:
            conclusions.check(most + 1 - known)
            raise
        conclusions.check(len(pairs) - known)
        if len(pairs) > most:  # a product, which nothing has listed yet
            raise too_many(len(pairs), most)
        conclusions.add_keys(head.relation, pack(*pairs.pairs()))
    elif max(head.subject, head.object) >= 0:
        conclusions.add_entities(head, layout.members(join, part, max(head.subject, head.object)))
    elif layout.exists(join, part):
        conclusions.add_entities(head, np.zeros(1, dtype=np.int32))


def _has_two_variables(head: BoundAtom) -> bool:
    return head.subject >= 0 and head.object >= 0 and head.subject != head.object
