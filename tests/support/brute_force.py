"""What rules mean, by nested loops over the definition: slow, and hard to get wrong.

Everything is over names: a graph is a set of (subject, relation, object) names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.rule import Constant, Inequality, Negation, Rule, Term, Variable
from loginfer.logic.stratification import stratified

Fact = tuple[str, str, str]
Substitution = dict[Variable, str]


def facts(graph: KnowledgeGraph) -> set[Fact]:
    """The graph's triples as names, with the type predicate under its full name."""
    return {(s, RDF_TYPE if graph.type_predicate == r else r, o) for s, r, o in graph.names(graph.triples)}


def _value(term: Term, substitution: Substitution) -> str:
    return substitution[term] if isinstance(term, Variable) else str(term.name)


def _match(term: Term, name: str, substitution: Substitution) -> Substitution | None:
    if isinstance(term, Constant):
        return substitution if term.name == name else None
    assert isinstance(term, Variable)
    if term in substitution:
        return substitution if substitution[term] == name else None
    return {**substitution, term: name}


def substitutions(rule: Rule, known: Iterable[Fact]) -> Iterator[Substitution]:
    """Every substitution of the body's variables that makes the whole body true."""
    known = sorted(known)
    found: list[Substitution] = [{}]
    for atom in rule.atoms:
        extended: list[Substitution] = []
        for substitution in found:
            for s, r, o in known:
                if r == atom.relation:
                    first = _match(atom.subject, s, substitution)
                    both = None if first is None else _match(atom.object, o, first)
                    if both is not None:
                        extended.append(both)
        found = extended
    for substitution in found:
        differ = (
            _value(part.left, substitution) != _value(part.right, substitution)
            for part in rule.body
            if isinstance(part, Inequality)
        )
        if all(differ) and not any(_occurs(part, known, substitution) for part in rule.negations):
            yield substitution


def _occurs(negation: Negation, known: Iterable[Fact], substitution: Substitution) -> bool:
    """Whether some fact is as a negation denies it; variables without a value may have any."""
    for s, r, o in known:
        if r == negation.atom.relation:
            first = _match(negation.atom.subject, s, substitution)
            if first is not None and _match(negation.atom.object, o, first) is not None:
                return True
    return False


def head(rule: Rule, substitution: Substitution) -> Fact:
    """The conclusion of one witness."""
    atom = rule.head
    return (_value(atom.subject, substitution), str(atom.relation), _value(atom.object, substitution))


def witnesses(rule: Rule, graph: KnowledgeGraph, conclusion: Sequence[int] | None = None) -> list[tuple[int, ...]]:
    """The witnesses as sorted tuples of ids in the order of `rule.variables`."""
    wanted = None
    if conclusion is not None:
        ((s, r, o),) = graph.names([tuple(conclusion)])
        wanted = (s, RDF_TYPE if r == graph.type_predicate else r, o)
    return sorted(
        tuple(graph.entity_id(substitution[v]) for v in rule.variables)
        for substitution in substitutions(rule, facts(graph))
        if wanted is None or head(rule, substitution) == wanted
    )


def support(rule: Rule, graph: KnowledgeGraph) -> int:
    """The number of witnesses."""
    return sum(1 for _ in substitutions(rule, facts(graph)))


def one_step(rules: Iterable[Rule], known: set[Fact]) -> set[Fact]:
    """T_R(K): every conclusion of every rule."""
    return {head(rule, substitution) for rule in rules for substitution in substitutions(rule, known)}


def conclusions(rule: Rule, graph: KnowledgeGraph, *, new: bool = False) -> list[tuple[int, int, int]]:
    """T_r(K), or T_r(K) ∖ K, as sorted triples of ids."""
    known = facts(graph)
    derived = one_step([rule], known)
    return sorted(_ids(fact, graph) for fact in (derived - known if new else derived))


def closure(rules: Sequence[Rule], graph: KnowledgeGraph) -> dict[tuple[int, int, int], int]:
    """M_R(K) ∖ K as triples of ids, each with the round in which it is first derived (1, 2, …).

    Rounds go on from one stratum to the next.
    """
    known = facts(graph)
    depth: dict[tuple[int, int, int], int] = {}
    step = 0
    for stratum in stratified(rules):
        while new := one_step(stratum, known) - known:
            step += 1
            known |= new
            depth.update({_ids(fact, graph): step for fact in new})
    return depth


def _ids(fact: Fact, graph: KnowledgeGraph) -> tuple[int, int, int]:
    s, r, o = fact
    return graph.entity_id(s), graph.relation_id(r), graph.entity_id(o)
