"""Rules that are not chosen by the largest support: at random, or by an interval of a measure."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.support import brute_force
from tests.support.random_rules import graphs

from loginfer.benchmark import audit, build, load_benchmark, write_benchmark
from loginfer.benchmark.construction import rules as candidates_module
from loginfer.benchmark.construction import rules as rules_module
from loginfer.benchmark.construction.rules import candidates, confidence, overlap, select_rules
from loginfer.benchmark.recipe import Recipe, parse_interval
from loginfer.engine import extend, open_engine
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic import canonical_text, instantiate, parse_pattern, parse_rule
from loginfer.logic.rule import Atom, Rule

PATTERNS = ("hierarchy", "composition", "intersection", "triangle", "cup", "fork", "super-hierarchy")


def bodies(pattern, graph):
    """The supports of all bodies by canonical text, from the definition."""
    found = {}
    for names in product(graph.relations.names(graph.rels), repeat=len(pattern.templates)):
        rule = instantiate(pattern, names, None if pattern.head_in_body else "_")
        if len(set(rule.atoms)) == len(rule.atoms) and (support := brute_force.support(rule, graph)):
            found[canonical_text(rule)] = support
    return found


def with_any_head(rule, pattern):
    """The canonical text of a rule's body, whatever its head is called."""
    if pattern.head_in_body:
        return canonical_text(rule)
    head = Atom(rule.head.subject, "_", rule.head.object)
    return canonical_text(Rule(rule.body, head))


@settings(max_examples=20, deadline=None)
@given(graph=graphs(), name=st.sampled_from(PATTERNS), seed=st.integers(0, 5), listed=st.booleans())
def test_random_candidates_are_all_bodies_once_in_the_same_order_for_both_engines(graph, name, seed, listed):
    pattern = parse_pattern(name)
    assume(len(graph.rels) > len(pattern.templates) or pattern.head_in_body)
    recipe = Recipe("g", (name,), select="random", seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        if not listed:  # draw the bodies instead of listing them
            patch.setattr(candidates_module, "LISTED", 0)
            patch.setattr(candidates_module, "DRAWN", 1 << 11)
            patch.setattr(candidates_module, "BATCH", 1 << 9)
        one, two = (list(candidates(recipe, open_engine(graph, kind), pattern)) for kind in ("native", "duckdb"))
    assert one == two
    found = {with_any_head(c.rule, pattern): c.support for c in one}
    assert len(found) == len(one)
    assert found == bodies(pattern, graph)


def dense(relations=6, entities=8, triples=120, seed=0):
    rng = np.random.default_rng(seed)
    rows = {(f"n{a}", f"r{r}", f"n{b}") for a, r, b in zip(
        rng.integers(entities, size=triples), rng.integers(relations, size=triples),
        rng.integers(entities, size=triples), strict=True)}  # fmt: skip
    return KnowledgeGraph.from_names(sorted(rows))


@pytest.mark.parametrize("listed", [True, False])
def test_random_rules_are_uniform_over_the_bodies(listed, monkeypatch):
    graph = dense(4, 5, 24, seed=3)
    engine, pattern = open_engine(graph), parse_pattern("composition")
    if not listed:
        monkeypatch.setattr(candidates_module, "LISTED", 0)
        monkeypatch.setattr(candidates_module, "BATCH", 64)
    wanted = bodies(pattern, graph)
    counts = dict.fromkeys(wanted, 0)
    for seed in range(400):
        first = next(iter(candidates(Recipe("g", ("composition",), select="random", seed=seed), engine, pattern)))
        counts[with_any_head(first.rule, pattern)] += 1
    assert len(wanted) > 8
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_the_rules_for_a_smaller_k1_are_the_first_for_a_larger_one():
    engine = open_engine(dense())
    few, many = (select_rules(Recipe("g", ("cup",), select="random", k1=k1, k2=5, min_new=0), engine) for k1 in (3, 9))
    assert few.program == many.program[:3]
    other = select_rules(Recipe("g", ("cup",), select="random", k1=3, k2=5, min_new=0, seed=1), engine)
    assert other.program != few.program


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), name=st.sampled_from(PATTERNS), low=st.integers(1, 8), width=st.integers(0, 20))
def test_an_interval_of_support_bounds_the_candidates(graph, name, low, width):
    pattern = parse_pattern(name)
    assume(len(graph.rels) > len(pattern.templates) or pattern.head_in_body)
    recipe = Recipe("g", (name,), select="interval", interval=f"{low}:{low + width}")
    found = {with_any_head(c.rule, pattern): c.support for c in candidates(recipe, open_engine(graph), pattern)}
    assert found == {b: s for b, s in bodies(pattern, graph).items() if low <= s <= low + width}


# -- measures --------------------------------------------------------------------------------------

RULES = (
    "(x,R,y) -> (x,S,y)",
    "(x,R,y) -> (y,R,x)",
    "(x,R,y), (y,S,z) -> (x,T,z)",
    "(x,R,y), (x,S,y) -> (x,T,y)",
    "(x,R,y), (y,S,z) -> (x,T,y)",
    "(x,R,y), (x,S,z), (y,T,z), x != y, x != z, y != z -> (x,U,y)",
    "(x,R,y), (y,S,z), (y,S,w), z != w -> (x,T,y)",
)


@settings(max_examples=40)
@given(graph=graphs(), text=st.sampled_from(RULES), kind=st.sampled_from(["native", "duckdb"]))
def test_measures_are_those_of_the_definition(graph, text, kind):
    rule = parse_rule(text)
    graph = extend(graph, [rule])
    concluded = brute_force.conclusions(rule, graph)
    assume(concluded)
    engine = open_engine(graph, kind)
    new = brute_force.conclusions(rule, graph, new=True)
    known = {tuple(t) for t in graph.triples.tolist()}
    assert confidence(engine, rule, len(new)) == pytest.approx(sum(t in known for t in concluded) / len(concluded))
    sizes = []
    for dropped in range(len(rule.atoms)):
        kept = [part for part in rule.body if part is not rule.atoms[dropped]]
        bound = {v for part in kept if part in rule.atoms for v in part.variables}
        kept = [part for part in kept if bound.issuperset(part.variables)]
        if bound.issuperset(rule.head.variables):
            smaller = Rule(kept, rule.head)
            if canonical_text(smaller) != canonical_text(rule):
                sizes.append(len(brute_force.conclusions(smaller, graph)))
    if sizes:
        wanted = len(concluded) / min(sizes)
    else:
        own = {graph.relations.get(str(atom.relation)) for atom in rule.atoms}
        pairs = {(s, o) for s, r, o in known if r not in own}
        wanted = sum((s, o) in pairs for s, _, o in concluded) / len(concluded)
    assert overlap(engine, rule) == pytest.approx(wanted)


@pytest.mark.parametrize("measure", ["confidence", "overlap"])
@pytest.mark.parametrize("kind", ["native", "duckdb"])
def test_rules_of_an_interval_have_their_measure_in_it(measure, kind):
    graph = dense(5, 9, 60)
    engine = open_engine(graph, kind)
    recipe = Recipe("g", ("cup",), k1=4, k2=20, min_new=1, select="interval", select_by=measure, interval="0.2:0.8")
    chosen = select_rules(recipe, engine).rules
    assert len(chosen) == 4
    for known in chosen:
        assert known.confidence == confidence(engine, known.rule, known.new)
        assert known.overlap == overlap(engine, known.rule)
        assert 0.2 <= getattr(known, measure) <= 0.8
    if kind == "duckdb":
        assert chosen == select_rules(recipe, open_engine(graph)).rules


def test_an_interval_that_nothing_lies_in_is_told_with_what_was_looked_at(monkeypatch):
    monkeypatch.setattr(rules_module, "TRIES", 7)
    recipe = Recipe("g", ("cup",), k1=6, select="interval", select_by="overlap", interval=":0", min_new=0)
    with pytest.raises(InputError, match="an overlap in :0 among the 7 candidates") as caught:
        select_rules(recipe, open_engine(dense()))
    assert "widen the interval" in caught.value.hint


def test_rules_chosen_by_support_have_no_measures():
    chosen = select_rules(Recipe("g", ("cup",), k1=3, k2=5, min_new=0), open_engine(dense())).rules
    assert all(known.confidence is None and known.overlap is None for known in chosen)


def test_measures_are_written_read_and_audited(tmp_path):
    recipe = Recipe("g", ("cup",), k1=4, k2=20, min_new=1, select="interval", select_by="overlap", interval=":0.9")
    made = build(recipe, dense(5, 9, 60))
    write_benchmark(made, tmp_path / "b")
    again = load_benchmark(tmp_path / "b")
    assert again.rules == made.rules
    assert "| confidence | overlap |" in (tmp_path / "b" / "README.md").read_text()
    assert [f for f in audit(tmp_path / "b").findings if f.severity == "error"] == []
    for changed, message in (
        (replace(made.rules[0], overlap=0.987), "does not have the overlap"),
        (replace(made.rules[0], confidence=0.987), "does not have the confidence"),
        (replace(made.rules[0], confidence=None, overlap=None), "has no measures"),
    ):
        found = audit(replace(made, rules=(changed, *made.rules[1:]))).findings
        assert any(message in e.text for f in found if f.severity == "error" for e in f.examples)
    outside = replace(made, recipe=made.recipe.changed(interval=":0"))
    assert any("outside :0" in e.text for f in audit(outside).findings for e in f.examples)


def test_the_best_head_has_the_largest_confidence():
    graph = dense()
    engine = open_engine(graph)
    chosen = select_rules(Recipe("g", ("composition",), k1=5, k2=5, min_new=0, head="best"), engine).rules
    for known in chosen:
        used = {str(atom.relation) for atom in known.rule.atoms}
        body = known.rule.body_text
        others = [parse_rule(f"{body} -> (x,{name},z)") for name in graph.relations if name not in used]
        sure = [confidence(engine, rule, len(engine.conclusions(rule, new=True))) for rule in others]
        assert known.confidence == pytest.approx(max(sure))
        assert str(known.rule.head.relation) not in used


def test_the_best_head_of_a_type_is_not_looked_for():
    graph = KnowledgeGraph.from_names([("a", "R", "b"), ("a", "rdf:type", "t")])
    with pytest.raises(InputError, match="is a type"):
        select_rules(Recipe("g", ("(x,_R,y) -> (x,type,_t)",), head="best"), open_engine(graph))


# -- settings --------------------------------------------------------------------------------------


def test_intervals_are_read_with_one_end_or_two():
    assert parse_interval("0.1:0.5") == (0.1, 0.5)
    assert parse_interval(" 100 : 2000 ") == (100, 2000)
    assert parse_interval("0.5:") == (0.5, np.inf)
    assert parse_interval(":3") == (-np.inf, 3)
    for text in ("", ":", "0.5", "a:b", "1:0", "nan:1"):
        with pytest.raises(InputError):
            parse_interval(text)


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"select": "rare"}, "unknown way to select rules `rare`"),
        ({"select_by": "lift"}, "unknown measure to select rules by"),
        ({"head": "worst"}, "unknown way to find heads"),
        ({"select": "interval"}, "there is none"),
        ({"interval": "1:2"}, "are for"),
        ({"select": "random", "select_by": "overlap"}, "are for"),
        ({"select": "interval", "select_by": "overlap", "interval": "2:3"}, "no overlap lies in"),
        ({"select": "interval", "interval": 3}, "must be a text"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given_settings, message):
    with pytest.raises(InputError, match=message):
        Recipe("g", ("cup",), **given_settings)


def test_given_rules_are_not_selected():
    with pytest.raises(InputError, match="are for patterns"):
        Recipe("g", rules=("(x,R,y) -> (x,S,y)",), select="random")


def test_new_settings_are_written_only_where_they_are_used():
    new = {"select", "select_by", "interval", "head", "depth", "max_triples"}
    assert not new & set(Recipe("g", ("cup",)).as_dict())
    used = Recipe("g", ("cup",), select="interval", select_by="overlap", interval="0.1:", head="best", depth=2)
    assert new - {"max_triples"} <= set(used.as_dict())
    assert Recipe.from_dict(used.as_dict()) == used


@pytest.mark.data
def test_random_diamonds_of_fb15k_237_are_drawn(data_folder):
    graph = load_graph(data_folder / "FB15k-237.tar.gz")
    engine, pattern = open_engine(graph), parse_pattern("diamond")
    recipe = Recipe("g", ("diamond",), select="random")
    found = [c for c, _ in zip(candidates(recipe, engine, pattern), range(8), strict=False)]
    assert len({canonical_text(c.rule) for c in found}) == 8
    assert all(c.support == engine.support(c.rule) > 0 for c in found)
