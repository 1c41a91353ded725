"""Rules with negation over small graphs: every question to both engines, by the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.random_rules import graphs, negations, rules, without_cycles

from loginfer.engine import Engine, extend
from loginfer.engine.binding import bind
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.engine.native.engine import NativeEngine
from loginfer.engine.program import derivation, explain
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph
from loginfer.logic import Rule, parse_rule

quick = settings(max_examples=25)


@st.composite
def negated_cases(draw: st.DrawFn, most_rules: int = 1) -> tuple[KnowledgeGraph, list[Rule]]:
    """A graph and a stratified program; most rules have a negation."""
    graph = draw(graphs(most=18))
    program = []
    for _ in range(draw(st.integers(1, most_rules))):
        rule = draw(rules(graph, 3))
        parts = draw(negations(list(rule.variables))) if not rule.negations else []
        program.append(Rule([*rule.body, *parts], rule.head))
    program = without_cycles(program)
    return extend(graph, program), program


def check(engine: Engine, rule: Rule) -> None:
    graph = engine.graph
    assert engine.support(rule) == brute_force.support(rule, graph)
    for new in (False, True):
        wanted = brute_force.conclusions(rule, graph, new=new)
        assert list(map(tuple, engine.conclusions(rule, new=new).tolist())) == wanted
        parts = [tuple(row) for part in engine.conclusions_in_parts(rule, new=new) for row in part.tolist()]
        assert sorted(parts) == wanted
    concluded = brute_force.conclusions(rule, graph)
    left, right = engine.projection(rule).pairs()
    relation = bind(rule, graph).head.relation
    assert [(s, relation, o) for s, o in zip(left.tolist(), right.tolist(), strict=True)] == concluded
    witnesses = brute_force.witnesses(rule, graph)
    assert list(map(tuple, engine.witnesses(rule).values.tolist())) == witnesses
    assert list(map(tuple, engine.witnesses(rule, limit=2).values.tolist())) == witnesses[:2]
    for triple in concluded[:3]:
        found = engine.witnesses(rule, conclusion=triple).values.tolist()
        assert list(map(tuple, found)) == brute_force.witnesses(rule, graph, triple)


@quick
@given(negated_cases())
def test_questions_about_one_rule_have_the_answers_of_the_definition(case):
    graph, (rule,) = case
    check(NativeEngine(graph), rule)
    with DuckDBEngine(graph, threads=1) as engine:
        check(engine, rule)


@quick
@given(negated_cases(3), st.data())
def test_derivations_and_first_witnesses_are_those_of_the_definition(case, data):
    graph, program = case
    relations = [bind(rule, graph).head.relation for rule in program]
    size = len(graph.entities)
    asked = [(s, r, o) for r in sorted(set(relations)) for s in range(size) for o in range(size)]
    asked = data.draw(st.lists(st.sampled_from(asked), min_size=1, max_size=40, unique=True)) if asked else []
    triples = np.array(asked, dtype=np.int32).reshape(-1, 3)
    wanted = [set(brute_force.conclusions(rule, graph)) for rule in program]
    pairs = [(i, j) for i, triple in enumerate(asked) for j, found in enumerate(wanted) if triple in found]
    with DuckDBEngine(graph, threads=1) as duckdb:
        for engine in (NativeEngine(graph), duckdb):
            derived = engine.derives(program, triples)
            assert derived.tolist() == [any(triple in found for found in wanted) for triple in asked]
            found = engine.derivations(program, triples)
            assert list(zip(found.triple.tolist(), found.rule.tolist(), strict=True)) == pairs
            for rule in program:
                for triple, row in zip(asked, engine.first_witnesses(rule, triples).tolist(), strict=True):
                    first = brute_force.witnesses(rule, graph, triple)[:1]
                    assert tuple(row) == (first[0] if first else (-1,) * len(rule.variables))


@quick
@given(negated_cases(4))
def test_materialisation_goes_stratum_by_stratum(case):
    graph, program = case
    wanted = brute_force.closure(program, graph)
    with DuckDBEngine(graph, threads=1) as duckdb:
        for engine in (NativeEngine(graph), duckdb):
            found = engine.materialise(program)
            rows = map(tuple, found.triples.tolist())
            assert list(zip(rows, found.depth.tolist(), strict=True)) == sorted(wanted.items())
            assert found.rounds == max(wanted.values(), default=0)


# -- examples --------------------------------------------------------------------------------------

CHAIN = [("a", "R", "b"), ("b", "R", "c"), ("c", "R", "d"), ("c", "Q", "c")]
PROGRAM = [
    parse_rule("(x,R,y) -> (x,Path,y)"),
    parse_rule("(x,Path,y), (y,R,z) -> (x,Path,z)"),
    parse_rule("(x,Path,y), not (y,Path,z) -> (x,Ends,y)"),
]


@pytest.fixture(params=["native", "duckdb"])
def engine(request):
    graph = extend(KnowledgeGraph.from_names(CHAIN), PROGRAM)
    if request.param == "native":
        yield NativeEngine(graph)
    else:
        with DuckDBEngine(graph, threads=1) as opened:
            yield opened


def test_what_is_negated_is_complete_before_it_is_asked_about(engine):
    found = engine.materialise(PROGRAM)
    names = engine.graph.names(found.triples)
    ends = {s: depth for (s, r, _), depth in zip(names, found.depth.tolist(), strict=True) if r == "Ends"}
    # The paths take three rounds, so their ends come in the fourth.
    assert ends == {"a": 4, "b": 4, "c": 4}
    assert found.rounds == 4


def test_a_derivation_across_strata_is_explained(engine):
    found = engine.materialise(PROGRAM)
    graph = engine.graph
    triple = [graph.entity_id("a"), graph.relation_id("Ends"), graph.entity_id("d")]
    steps = derivation(graph, PROGRAM, found, triple, engine.name)
    assert [step.triple for step in steps] == [
        ("a", "Path", "b"),
        ("a", "Path", "c"),
        ("a", "Path", "d"),
        ("a", "Ends", "d"),
    ]
    (reason,) = steps[-1].reasons
    assert reason.premises == [("a", "Path", "d")]
    assert reason.absent == [("d", "Path", "?z")]


def test_limits_count_all_strata(engine):
    with pytest.raises(LimitError, match="after 3 rounds"):
        engine.materialise(PROGRAM, max_rounds=3)
    assert engine.materialise(PROGRAM, max_rounds=4).rounds == 4
    with pytest.raises(LimitError, match="more than 8 new triples"):
        engine.materialise(PROGRAM, max_triples=8)
    assert len(engine.materialise(PROGRAM, max_triples=9)) == 9


def test_a_program_that_is_not_stratified_is_refused(engine):
    rule = parse_rule("(x,R,y), not (y,Path,z) -> (x,Path,y)")
    with pytest.raises(InputError, match="`Path` needs `not Path`"):
        engine.materialise([rule])
    # One step is well defined all the same.
    assert len(engine.conclusions(rule)) == 3


def test_one_step_looks_at_the_graph_only(engine):
    rule = parse_rule("(x,R,y), not (y,Q,z) -> (x,Ends,y)")
    assert engine.graph.names(engine.conclusions(rule)) == [("a", "Ends", "b"), ("c", "Ends", "d")]
    told = explain(engine, [rule], engine.conclusions(rule)[0].tolist())
    assert told.reasons[0].absent == [("b", "Q", "?z")]


def test_what_is_denied_has_the_names_of_the_graph():
    rule = parse_rule("(x,R,y), not (y,type,C), not (x,Nowhere,z) -> (x,Ends,y)")
    graph = extend(KnowledgeGraph.from_names([("a", "R", "b"), ("c", "rdf:type", "C")]), [rule])
    engine = NativeEngine(graph)
    told = explain(engine, [rule], engine.conclusions(rule)[0].tolist())
    assert told.reasons[0].absent == [("b", "rdf:type", "C"), ("a", "Nowhere", "?z")]


@pytest.mark.parametrize(
    ("text", "support"),
    [
        ("(x,R,y), not (y,R,z) -> (x,Ends,y)", 1),
        ("(x,R,y), not (z,R,x) -> (x,Ends,y)", 1),
        ("(x,R,y), not (y,Q,y) -> (x,Ends,y)", 2),
        ("(x,R,y), not (z,Q,z) -> (x,Ends,y)", 0),
        ("(x,R,y), not (z,Ends,w) -> (x,Ends,y)", 3),
        ("(x,R,y), not (<c>,Q,z) -> (x,Ends,y)", 0),
        ("(x,R,y), not (z,Q,<d>) -> (x,Ends,y)", 3),
        ("(x,R,y), not (y,R,<d>) -> (x,Ends,y)", 2),
        ("(x,R,y), not (y,R,<nobody>) -> (x,Ends,y)", 3),
        ("(x,R,y), not (x,Nowhere,y) -> (x,Ends,y)", 3),
        ("(x,R,y), (z,R,w), not (x,R,w) -> (x,Ends,w)", 6),
        ("(x,R,y), (z,R,w), not (y,R,w), x != z -> (x,Ends,z)", 4),
        ("not (<a>,R,<b>) -> (<a>,Ends,<b>)", 0),
        ("not (<a>,Q,z) -> (<a>,Ends,<b>)", 1),
    ],
)
def test_negations_of_every_kind(engine, text, support):
    rule = parse_rule(text)
    assert brute_force.support(rule, engine.graph) == support
    check(engine, rule)
