"""Skeletons against their definition: all values of a body's variables are tried."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.benchmark.learned_shortcut import all_but_one_hold, most_atoms, skeleton_holds
from loginfer.engine import extend, open_engine
from loginfer.kg import RDF_TYPE, KnowledgeGraph, load_graph
from loginfer.logic import parse_rule, pattern_named
from loginfer.logic.rule import Atom, Constant, Inequality, Negation, Rule, Variable

NAMES = ("a", "b", "c", "d")

# -- the definition ------------------------------------------------------------------------------------


def holds(triples, rule, triple, forgotten, negations):
    """Whether a rule concludes a triple of names if it forgets the relations and types of some of its atoms."""
    atoms = iter(range(len(rule.atoms)))
    parts = [(part, isinstance(part, Atom) and next(atoms) in forgotten) for part in rule.body]
    parts = [(part, forget) for part, forget in parts if negations or not isinstance(part, Negation)]
    names = sorted({name for s, _, o in triples for name in (s, o)})
    for chosen in product(names, repeat=len(rule.variables)):
        values = dict(zip(rule.variables, chosen, strict=True))
        head = (value(rule.head.subject, values), rule.head.relation, value(rule.head.object, values))
        if head == triple and all(is_true(triples, part, values, forget) for part, forget in parts):
            return True
    return False


def value(term, values):
    """A name; None for a variable that only a negated atom has."""
    return term.name if isinstance(term, Constant) else values.get(term)


def is_true(triples, part, values, forget):
    left, right = (value(term, values) for term in part.terms)
    if isinstance(part, Inequality):
        return left != right
    if isinstance(part, Negation):
        loop = part.terms[0] == part.terms[1]
        return not any(
            r == part.atom.relation and left in (s, None) and right in (o, None) and (s == o or not loop)
            for s, r, o in triples
        )
    if forget and part.is_type and isinstance(part.object, Constant):
        return any((s, r) == (left, RDF_TYPE) for s, r, _ in triples)
    if forget and not part.is_type:
        return any((s, o) == (left, right) and r != RDF_TYPE for s, r, o in triples)
    return (left, part.relation, right) in triples


# -- random rules and graphs ---------------------------------------------------------------------------

VARIABLES = st.sampled_from([Variable(name) for name in "xyz"])
ENDS = st.one_of(VARIABLES, VARIABLES, VARIABLES, st.sampled_from([Constant(name) for name in (*NAMES, "nobody")]))
RELATIONS = st.sampled_from(["R", "S", "T", "nowhere"])
ATOMS = st.builds(Atom, ENDS, RELATIONS, ENDS)
TYPES = st.sampled_from([Constant("A"), Constant("B"), Variable("t")])
TYPE_ATOMS = st.builds(Atom, ENDS, st.just(RDF_TYPE), TYPES)
ANYTHING = st.just(Variable("w"))
NEGATED = st.one_of(ATOMS, st.builds(Atom, ENDS, RELATIONS, ANYTHING), st.builds(Atom, ANYTHING, RELATIONS, ANYTHING))


@st.composite
def rules(draw):
    atoms = draw(st.lists(st.one_of(ATOMS, ATOMS, TYPE_ATOMS), min_size=1, max_size=3))
    ends = st.sampled_from([*sorted({v for atom in atoms for v in atom.variables}), Constant("a")])
    others = draw(st.lists(st.one_of(st.builds(Inequality, ends, ends), st.builds(Negation, NEGATED)), max_size=2))
    negated = [part for part in others if isinstance(part, Negation)]
    body = draw(st.permutations([*atoms, *(part for part in others if part not in negated[1:])]))
    return Rule(body, Atom(draw(ends), draw(st.sampled_from("RSP")), draw(ends)))


@st.composite
def graphs(draw):
    ends = st.sampled_from(NAMES)
    triples = draw(st.sets(st.tuples(ends, st.sampled_from("RST"), ends), min_size=3, max_size=10))
    return triples | draw(st.sets(st.tuples(ends, st.just(RDF_TYPE), st.sampled_from("AB")), max_size=3))


@settings(max_examples=150)
@given(triples=graphs(), some=st.lists(rules(), min_size=1, max_size=3))
def test_skeletons_hold_where_their_definition_says_so(triples, some):
    graph = KnowledgeGraph.from_names(triples)
    rows = np.array(list(product(graph.consts, graph.rels, graph.consts)), dtype=np.int32).reshape(-1, 3)
    asked = graph.names(rows)

    def expected(forgotten, negations):
        return [any(holds(triples, rule, triple, forgotten, negations) for rule in some) for triple in asked]

    assert skeleton_holds(some, graph, rows).tolist() == expected(range(3), negations=False)
    for part in range(most_atoms(some) + 1):
        assert all_but_one_hold(some, graph, rows, part).tolist() == expected([part], negations=True), part


# -- single cases --------------------------------------------------------------------------------------


def asked(graph, *triples):
    ids = [(graph.entity_id(s), graph.relation_id(r), graph.entity_id(o)) for s, r, o in triples]
    return np.array(ids, dtype=np.int32)


def test_what_a_rule_concludes_has_its_skeleton():
    graph = KnowledgeGraph.from_names([("a", "R", "b"), ("b", "S", "c"), ("c", "S", "d"), ("a", "rdf:type", "A")])
    some = [parse_rule("(x,type,A), (x,R,y), (y,S,z), not (z,R,w) -> (x,P,z)"), parse_rule("(x,S,y) -> (y,P,x)")]
    graph = extend(graph, some)
    conclusions = np.concatenate([open_engine(graph).conclusions(rule) for rule in some])
    assert len(conclusions) == 3
    assert skeleton_holds(some, graph, conclusions).all()
    assert all(all_but_one_hold(some, graph, conclusions, part).all() for part in range(3))


def test_the_relation_itself_counts_as_any_and_the_type_predicate_does_not():
    graph = KnowledgeGraph.from_names([("a", "R", "b"), ("b", "S", "c"), ("c", "type", "d")])
    rule = parse_rule("(x,R,y) -> (x,S,y)")
    triples = asked(graph, ("a", "S", "b"), ("b", "S", "c"), ("c", "S", "d"), ("a", "R", "b"))
    assert skeleton_holds([rule], graph, triples).tolist() == [True, True, False, False]


def test_parts_are_counted_by_atoms_alone():
    graph = KnowledgeGraph.from_names([("a", "R", "b"), ("b", "S", "c")])
    rule = parse_rule("x != z, (x,R,y), not (x,S,y), (y,R,z) -> (x,S,z)")
    triples = asked(graph, ("a", "S", "c"))
    assert [all_but_one_hold([rule], graph, triples, part).tolist() for part in range(3)] == [[False], [True], [False]]


def test_the_type_predicate_may_have_a_name_of_its_own():
    graph = KnowledgeGraph.from_names([("a", "is a", "A"), ("b", "R", "a")], type_predicate="is a")
    rule = Rule([Atom(Variable("x"), "is a", Constant("B"))], Atom(Variable("x"), "R", Constant("a")))
    triples = asked(graph, ("a", "R", "a"), ("b", "R", "a"))
    assert skeleton_holds([rule], graph, triples).tolist() == [True, False]


def test_no_rules_no_triples_and_unknown_heads_give_nothing():
    graph = KnowledgeGraph.from_names([("a", "R", "b")])
    rule = parse_rule("(x,R,y) -> (x,R,y)")
    assert skeleton_holds([], graph, graph.triples).tolist() == [False]
    assert skeleton_holds([rule], graph, graph.triples[:0]).tolist() == []
    strangers = [parse_rule("(x,R,y) -> (x,nowhere,y)"), parse_rule("(x,R,y) -> (x,R,nobody)")]
    assert skeleton_holds(strangers, graph, graph.triples).tolist() == [False]
    assert all_but_one_hold([*strangers, rule], graph, graph.triples, 0).tolist() == [True]
    assert most_atoms([]) == 0


# -- real graphs ---------------------------------------------------------------------------------------


def instance(pattern, graph):
    """An instance of a pattern; which one makes no difference to its skeleton."""
    name = graph.relations[0]
    atoms = [Atom(part.subject, name, part.object) if isinstance(part, Atom) else part for part in pattern.body]
    return Rule(atoms, Atom(pattern.head.subject, name, pattern.head.object))


def has_triangle(after, x, y):
    return x != y and y in after[x] and bool(after[x] & after[y] - {x, y})


def has_diamond(after, x, y):
    return x != y and y in after[x] and any(after[z] & after[y] - {x, y, z} for z in after[x] - {x, y})


@pytest.mark.data
@pytest.mark.parametrize(("name", "step", "triangles"), [("WN18RR", 1, 10_464), ("FB15k-237", 50, 3_564)])
def test_pairs_of_real_graphs_have_skeletons(data_folder, name, step, triangles):
    graph = load_graph(data_folder / f"{name}.tar.gz")
    after = defaultdict(set)
    for subject, _, object_ in graph.triples.tolist():
        after[subject].add(object_)
    pairs = np.unique(graph.triples[:, ::2], axis=0)[::step]
    counts = []
    for pattern, has_skeleton in (("triangle", has_triangle), ("diamond", has_diamond)):
        there = skeleton_holds([instance(pattern_named(pattern), graph)], graph, np.insert(pairs, 1, 0, axis=1))
        assert there.tolist() == [has_skeleton(after, x, y) for x, y in pairs.tolist()]
        counts.append(int(there.sum()))
    assert counts[0] == triangles
