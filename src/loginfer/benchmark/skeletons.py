"""The skeleton of a rule as a shortcut: the shape of its body is there, whatever the relations.

The skeleton of (x,R,z), (z,S,y), x != y -> (x,T,y) is "a relation leads from x to some z, and a relation from z
to y, which is not x". An atom (x,type,C) becomes "x has a type". Constants and inequalities stay, negated atoms
go. Where a single relation or type is forgotten, everything else stays, negated atoms too.

A skeleton is a rule like any other over a graph with two more relations: one from x to y if any relation leads
there, and one from x to x if x has a type. So an engine says, exactly, what it concludes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loginfer.engine import open_engine
from loginfer.engine.binding import ABSENT, relation_of
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Mask
from loginfer.logic.canonical import canonical
from loginfer.logic.rule import Atom, BodyAtom, Constant, Negation, Rule


def skeleton_holds(rules: Sequence[Rule], graph: KnowledgeGraph, triples: Triples) -> Mask:
    """Return bool[n]: for which triples the graph has the skeleton of a rule that could conclude them.

    Parameters
    ----------
    rules
        The rules. Their heads are not forgotten: a triple must fit one.
    graph
        The graph K.
    triples
        int32[n, 3], ids of the graph.
    """
    skeletons = []
    for rule in rules:
        body = [_forgotten(part, graph) for part in rule.body if not isinstance(part, Negation)]
        skeletons.append(Rule.known_safe(tuple(body), rule.head))
    return _concluded(skeletons, graph, triples)


def all_but_one_hold(rules: Sequence[Rule], graph: KnowledgeGraph, triples: Triples, part: int) -> Mask:
    """Return bool[n]: for which triples the graph has a rule's body with one relation or type forgotten.

    Parameters
    ----------
    rules, graph, triples
        As for `skeleton_holds`.
    part
        Whose relation or type is forgotten: an index into `rule.atoms`. Rules with fewer atoms are left whole.
    """
    edited = []
    for rule in rules:
        body = list(rule.body)
        for i in [i for i, p in enumerate(body) if isinstance(p, Atom)][part : part + 1]:
            body[i] = _forgotten(body[i], graph)
        edited.append(Rule.known_safe(tuple(body), rule.head))
    return _concluded(edited, graph, triples)


def most_atoms(rules: Sequence[Rule]) -> int:
    """Return the number of atoms, without negated ones, in the longest body."""
    return max((len(rule.atoms) for rule in rules), default=0)


def _names(graph: KnowledgeGraph) -> tuple[str, str]:
    """Return names for the two relations that come after all others, so that no id changes, and stand in no rule."""
    last = "".join(graph.relations[-1:])
    return f"{last}\0", f"{last}\0\0"


def _forgotten(part: BodyAtom, graph: KnowledgeGraph) -> BodyAtom:
    """Return a part of a body without its relation or type; a type that is a variable is as good as forgotten."""
    if not isinstance(part, Atom):
        return part
    any_relation, any_type = _names(graph)
    # A rule may also call the type predicate by the graph's own name for it.
    if not part.is_type and relation_of(part, graph) != graph.type_relation:
        return Atom(part.subject, any_relation, part.object)
    return Atom(part.subject, any_type, part.subject) if isinstance(part.object, Constant) else part


def _concluded(rules: Sequence[Rule], graph: KnowledgeGraph, triples: Triples) -> Mask:
    """Return bool[n]: which triples follow in one step, where rules may have the two relations."""
    more = graph.triples.copy()
    is_type = more[:, 1] == (ABSENT if graph.type_relation is None else graph.type_relation)
    more[:, 1] = len(graph.relations) + is_type
    more[is_type, 2] = more[is_type, 0]
    extended = KnowledgeGraph(
        graph.entities,
        graph.relations.union(_names(graph)),
        np.vstack([graph.triples, more]),
        type_predicate=graph.type_predicate or "",
    )
    # Rules of one pattern often have the same skeleton.
    distinct = dict.fromkeys(canonical(rule) for rule in rules if _has_names(rule.head, graph))
    return open_engine(extended).derives(list(distinct), triples)


def _has_names(head: Atom, graph: KnowledgeGraph) -> bool:
    """Say whether the graph has the names of a head; nothing fits it otherwise."""
    constants = [term.name for term in head.terms if isinstance(term, Constant)]
    return relation_of(head, graph) != ABSENT and all(name in graph.entities for name in constants)
