"""Hypothesis strategies for tiny graphs and rules of every kind over them."""

from __future__ import annotations

from hypothesis import strategies as st

from loginfer.engine import extend
from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Negation, Rule, Term, Variable
from loginfer.logic.stratification import stratified

ENTITIES = ("a", "b", "c", "d", "e")
RELATIONS = ("R", "S", "T")
TYPES = ("t", "u")
VARIABLES = tuple(Variable(name) for name in "xyzwvu")
NOBODY = Constant("nobody")


@st.composite
def graphs(draw: st.DrawFn, most: int = 24) -> KnowledgeGraph:
    """A graph of a few constants, relations and types; loops happen, relations may be missing."""
    entities = st.sampled_from(ENTITIES)
    links = st.tuples(entities, st.sampled_from(RELATIONS), entities)
    typings = st.tuples(entities, st.just(RDF_TYPE), st.sampled_from(TYPES))
    least = draw(st.sampled_from((0, most // 4, most // 2)))
    triples = draw(st.lists(links | links | links | typings, min_size=least, max_size=most))
    return KnowledgeGraph.from_names(triples)


@st.composite
def rules(draw: st.DrawFn, graph: KnowledgeGraph, atoms: int = 6) -> Rule:
    """A safe rule: constants, types, loops, repeated atoms and variables, inequalities, negations, gaps.

    Most atoms are triples of the graph with variables for some of their constants, so that most bodies
    have a witness; two variables may stand for one constant.
    """
    names = {v: draw(st.sampled_from(ENTITIES)) for v in VARIABLES[: draw(st.integers(1, 6))]}
    links = [t for t in graph.names(graph.triples) if t[1] != RDF_TYPE]
    typings = [t for t in graph.names(graph.triples) if t[1] == RDF_TYPE]

    def lifted(name: str) -> st.SearchStrategy[Term]:
        variables: list[Term] = [v for v, value in names.items() if value == name]
        return st.sampled_from([*variables, *variables, *variables, Constant(name)])

    body: list[BodyAtom] = []
    for _ in range(draw(st.sampled_from([i for i in range(atoms + 1) for _ in range(min(i, 3) + 1)]))):
        kind = draw(st.integers(0, 9))
        if kind <= 7 and links:
            s, r, o = draw(st.sampled_from(links))
            body.append(Atom(draw(lifted(s)), r, draw(lifted(o))))
        elif kind == 8 and typings:
            s, r, o = draw(st.sampled_from(typings))
            body.append(Atom(draw(lifted(s)), r, Constant(o)))
        elif kind == 9:
            terms: list[Term] = [*names, *names, Constant("a"), NOBODY]
            ends = st.sampled_from(terms)
            body.append(Atom(draw(ends), draw(st.sampled_from(RELATIONS)), draw(ends)))
    found = list(dict.fromkeys(t for part in body for t in part.terms if isinstance(t, Variable)))
    heads: list[Term] = [*found, *found, *found, Constant("a"), Constant("b")]
    if found:
        right: list[Term] = [*found, *found, Constant("a"), NOBODY]
        inequalities = st.builds(Inequality, st.sampled_from(found), st.sampled_from(right))
        body += draw(st.lists(inequalities, max_size=3))
    body += draw(negations(found)) if draw(st.booleans()) else []
    subject = draw(st.sampled_from(heads))
    if draw(st.integers(0, 9)) == 0:
        return Rule(body, Atom(subject, RDF_TYPE, Constant(draw(st.sampled_from(TYPES)))))
    relation = draw(st.sampled_from((*RELATIONS, "New")))
    return Rule(body, Atom(subject, relation, draw(st.sampled_from(heads))))


@st.composite
def negations(draw: st.DrawFn, found: list[Variable]) -> list[BodyAtom]:
    """Up to two negated atoms over bound variables, constants, and variables of their own."""
    parts: list[BodyAtom] = []
    for number in range(draw(st.integers(1, 2))):
        own = Variable(f"n{number}")
        terms: list[Term] = [*found, *found, own, own, Constant("a"), NOBODY]
        ends = st.sampled_from(terms)
        if draw(st.integers(0, 4)) == 0:
            atom = Atom(draw(ends), RDF_TYPE, draw(st.sampled_from((Constant("t"), Constant("u"), own))))
        else:
            atom = Atom(draw(ends), draw(st.sampled_from((*RELATIONS, "Nowhere"))), draw(ends))
        parts.append(Negation(atom))
    return parts


def without_cycles(program: list[Rule]) -> list[Rule]:
    """The program, without its negations if it is not stratified."""
    try:
        stratified(program)
    except InputError:
        return [Rule([p for p in rule.body if not isinstance(p, Negation)], rule.head) for rule in program]
    return program


@st.composite
def cases(draw: st.DrawFn, most_rules: int = 1) -> tuple[KnowledgeGraph, list[Rule]]:
    """A graph, with vocabularies for the heads, and rules."""
    graph = draw(graphs())
    program = without_cycles(draw(st.lists(rules(graph), min_size=1, max_size=most_rules)))
    return extend(graph, program), program
