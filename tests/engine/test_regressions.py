"""Small cases that once went wrong."""

from __future__ import annotations

from itertools import product as product_of

import numpy as np
import pytest

from loginfer.engine import extend
from loginfer.engine.bodies import predicate_names
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.engine.native import rank as factors
from loginfer.engine.native.engine import NativeEngine
from loginfer.engine.native.rank import CountTable
from loginfer.errors import InputError, LimitError
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.canonical import canonical_text
from loginfer.logic.dialects.arrow import parse_pattern, parse_rule
from loginfer.logic.patterns import collapses, instantiate, symmetries
from loginfer.logic.rule import Atom, Rule, Variable

X, Y = Variable("x"), Variable("y")


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_names(
        [("a", "R", "b"), ("b", "R", "c"), ("c", "S", "a"), ("a", "type", "t"), ("c", "S", "c")]
    )


def test_an_atom_written_twice_does_not_hide_a_symmetry() -> None:
    once = parse_pattern("(x,_R,x), (x,_S,x) -> (x,_T,x)")
    twice = parse_pattern("(x,_R,x), (x,_S,x), (x,_R,x) -> (x,_T,x)")
    assert symmetries(twice) == symmetries(once) == ((0, 1), (1, 0))


def test_a_part_with_countless_witnesses_beside_one_with_none_has_none() -> None:
    """The hub has 1500^6 choices for the leaves, but nothing leads on from where S and T lead to."""
    triples = [("hub", "R", f"e{i}") for i in range(1500)]
    triples += [("hub", "S", f"f{i}") for i in range(4000)] + [(f"f{i}", "T", f"g{i}") for i in range(4000)]
    engine = NativeEngine(KnowledgeGraph.from_names([*triples, ("h", "U", "h")]))
    leaves = "".join(f"(x,R,y{i}), " for i in range(6))
    none = parse_rule(f"{leaves}(x,S,z), (z,T,w), (w,U,v) -> (x,R,z)")
    assert engine.support(none) == 0
    assert len(engine.witnesses(none, limit=3)) == 0
    with pytest.raises(LimitError, match="64 bits"):
        engine.support(parse_rule(f"{leaves}(x,S,z), (z,T,w), (h,U,v) -> (x,R,z)"))


@pytest.mark.parametrize("open_engine", [NativeEngine, DuckDBEngine])
def test_triples_with_ids_that_no_vocabulary_has_follow_from_nothing(open_engine, graph) -> None:
    engine = open_engine(graph)
    rules = [parse_rule("(x,R,y) -> (y,R,x)"), parse_rule("(x,R,y), (y,R,z) -> (x,R,z)")]
    relation, size = graph.relation_id("R"), len(graph.entities)
    good = [graph.entity_id("b"), relation, graph.entity_id("a")]
    strange = [[-1, relation, 0], [0, relation, size], [0, -1, 0], [0, len(graph.relations), 0]]
    asked = np.array([*strange, good], dtype=np.int32)
    assert engine.derives(rules, asked).tolist() == [False] * 4 + [True]
    assert engine.derivations(rules, asked).triple.tolist() == [4]
    for triple in strange:
        assert len(engine.witnesses(rules[0], conclusion=triple)) == 0
    assert len(engine.witnesses(rules[0], conclusion=good)) == 1
    assert len(engine.witnesses(rules[0], limit=-1)) == 0


@pytest.mark.parametrize("open_engine", [NativeEngine, DuckDBEngine])
def test_every_question_about_a_head_without_ids_is_refused(open_engine, graph) -> None:
    engine = open_engine(graph)
    rule = parse_rule("(x,R,y) -> (x,Unknown,y)")
    for ask in (engine.support, engine.conclusions, engine.witnesses):
        with pytest.raises(InputError, match="uses a name that the graph does not have"):
            ask(rule)


@pytest.mark.parametrize("open_engine", [NativeEngine, DuckDBEngine])
@pytest.mark.parametrize("name", [RDF_TYPE, "rdf:type", "type"])
def test_any_form_of_rdf_type_means_the_type_predicate(open_engine, graph, name: str) -> None:
    rule = Rule([Atom(X, name, Y)], Atom(Y, name, X))
    engine = open_engine(extend(graph, [rule]))
    found = engine.graph.names(engine.conclusions(rule))
    assert found == [("t", "type", "a")]


@pytest.mark.parametrize("open_engine", [NativeEngine, DuckDBEngine])
def test_a_graph_that_says_it_has_no_types_has_no_bodies_with_types(open_engine) -> None:
    triples = [("a", RDF_TYPE, "t"), ("a", "R", "b")]
    engine = open_engine(KnowledgeGraph.from_names(triples, type_predicate=""))
    assert len(engine.rank_bodies(parse_pattern("(x,type,_t), (x,_R,y) -> (y,type,_t)"))) == 0
    assert len(engine.rank_bodies(parse_pattern("(x,_R,y) -> (y,_R,x)"))) == 2


def test_a_product_of_the_materialisation_is_refused_before_it_is_written_down() -> None:
    names = [(f"a{i}", "R", "b") for i in range(100)]
    engine = NativeEngine(KnowledgeGraph.from_names([*names, ("b", "S", "b")]), max_conclusions=5000)
    rule = parse_rule("(x,R,z), (y,R,w) -> (x,S,y)")
    with pytest.raises(LimitError, match="10,000 conclusions; the limit is 5,000"):
        engine.materialise([rule])


def test_the_largest_products_of_three_parts_are_the_largest_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two parts are cut, the third is small: what is below the cut must not come back."""
    monkeypatch.setattr(factors, "PRODUCT_ROWS", 60)
    counts = [np.arange(1, 11), np.arange(1, 11), np.array([1, 2, 30, 40])]
    parts = [CountTable({i: np.arange(len(c), dtype=np.int32)}, c.astype(np.int64)) for i, c in enumerate(counts)]
    everything = sorted((int(a * b * c) for a in counts[0] for b in counts[1] for c in counts[2]), reverse=True)
    found, complete = factors.product(parts, 5)
    assert not complete
    assert len(found) >= 5
    assert sorted(found.count.tolist(), reverse=True) == everything[: len(found)]


@pytest.mark.parametrize(
    "text",
    [
        "(x,_R,y), (x,_R,z), (x,_S,w), (x,_T,v) -> (x,type,<t>)",
        "(x,R,y), (y,_S,z), (z,_T,x) -> (<a>,_P,<b>)",
        "(x,type,_t), (y,type,_t), (x,type,_u), (y,type,_v), (x,_R,y), (y,_R,x) -> (<a>,_P,<b>)",
    ],
)
def test_bodies_that_are_one_rule_only_by_chance_are_listed_once(text: str) -> None:
    """No exchange of templates maps R = p, S = T = q to R = q, S = T = p; as rules they are the same."""
    pattern = parse_pattern(text)
    names = [("a", r, o) for r in ("R", "p", "q") for o in "abc"] + [(o, r, "a") for r in "Rp" for o in "bc"]
    graph = KnowledgeGraph.from_names(names + [(e, "type", t) for e in "ab" for t in "tuv"])
    table = NativeEngine(graph).rank_bodies(pattern)
    head = None if pattern.head_in_body else "New"
    found = [canonical_text(instantiate(pattern, chosen, head)) for chosen in predicate_names(table, graph)]
    choices = [
        graph.entities.names(graph.types) if pattern.is_type_template(t) else graph.relations.names(graph.rels)
        for t in pattern.templates
    ]
    engine = NativeEngine(extend(graph, [parse_rule("(x,R,y) -> (x,New,y)")]))
    expected = set()
    for chosen in product_of(*choices):
        kept = all(chosen[i] != chosen[j] for i, j in collapses(pattern))
        rule = instantiate(pattern, chosen, head)
        if kept and engine.support(rule):
            expected.add(canonical_text(rule))
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("open_engine", [NativeEngine, DuckDBEngine])
def test_a_body_whose_atoms_coincide_with_a_named_one_is_left_out(open_engine) -> None:
    triples = [("a", "p", "b"), ("a", "q", "b"), ("a", "type", "t"), ("a", "type", "u")]
    engine = open_engine(KnowledgeGraph.from_names(triples))
    table = engine.rank_bodies(parse_pattern("(x,_R,y), (x,p,y), (x,type,<t>), (x,type,_t) -> (y,_R,x)"))
    assert predicate_names(table, engine.graph) == [("q", "u")]


@pytest.mark.parametrize("open_engine", [NativeEngine, DuckDBEngine])
def test_a_negative_number_of_bodies_is_refused(open_engine, graph) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        open_engine(graph).rank_bodies(parse_pattern("(x,_R,y) -> (y,_R,x)"), -1)


@pytest.mark.parametrize("open_engine", [NativeEngine, DuckDBEngine])
@pytest.mark.parametrize("nothing", ["(u,S,v), (v,S,u), u != v", "(<c>,S,<b>)", "(u,Unknown,v)", "x != x"])
def test_a_product_beside_an_atom_that_nothing_matches_is_no_product(open_engine, graph, nothing: str) -> None:
    engine = open_engine(graph, max_conclusions=3)
    product_alone = "(x,R,z), (y,R,w)"
    with pytest.raises(LimitError):
        engine.conclusions(parse_rule(f"{product_alone} -> (x,S,y)"))
    empty = parse_rule(f"{product_alone}, {nothing} -> (x,S,y)")
    assert len(engine.conclusions(empty)) == 0
    assert len(engine.materialise([empty])) == 0
