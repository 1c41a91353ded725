"""Matched near misses, rules that are their own complement, and near misses in benchmarks of other kinds."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.definitions import as_set, context_of
from tests.support.near_miss_benchmarks import GIVEN, TYPE, recipe_of, small_graph, typed_graph
from tests.support.single_shortcuts import single_accuracies

from loginfer.benchmark import Recipe, audit, build, load_benchmark, write_benchmark
from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.construction.pipeline import foundation
from loginfer.benchmark.negatives import SOURCES, sample_negatives
from loginfer.benchmark.negatives.context import heads_of
from loginfer.benchmark.program import complement_share, connected_otherwise, matched_sample, matched_size
from loginfer.benchmark.shortcuts import Popularity
from loginfer.engine import open_engine
from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic import parse_rule, read_rules

SYMMETRY = "(x,R,y) -> (y,R,x)"


# -- matching -----------------------------------------------------------------------------------------


def popular_graph(entities=1000, triples=6000):
    """Some constants are far more popular than others."""
    rng = np.random.default_rng(2)
    weight = np.arange(1, entities + 1) ** -0.8
    ends = rng.choice(entities, size=(triples, 2), p=weight / weight.sum())
    relations = rng.integers(6, size=triples)
    names = [(f"e{s}", f"r{r}", f"e{o}") for (s, o), r in zip(ends, relations, strict=True)]
    return KnowledgeGraph.from_names(names, type_predicate="")


def apart(benchmark):
    """How far negatives and conclusions of test differ in popularity: subjects or objects, on average."""
    degree = np.bincount(benchmark.seen.triples[:, ::2].ravel(), minlength=len(benchmark.graph.entities))
    means = [np.log1p(degree[t[:, ::2]]).mean(axis=0) for t in
             (benchmark.positives.test, benchmark.negatives["nm"].splits.test)]  # fmt: skip
    return float(np.abs(means[0] - means[1]).max())


def test_matched_negatives_look_more_like_conclusions():
    graph = popular_graph()
    recipe = recipe_of(patterns=("hierarchy", "composition"), k1=3, k2=400)
    plain = build(recipe, graph)
    matched = build(recipe.changed(match=("popularity", "adjacency")), graph)
    assert matched.rules == plain.rules
    assert np.array_equal(matched.positives.train, plain.positives.train)
    assert apart(matched) < apart(plain) / 3
    for shortcut in ("subject-popularity", "object-popularity", "adjacent", "other-relation"):
        mine, before = (single_accuracies(b, "nm")[shortcut] for b in (matched, plain))
        assert abs(mine - 0.5) < max(abs(before - 0.5), 0.05), shortcut
    assert not [finding for finding in audit(matched).findings if finding.severity == "error"]


def weighted_apart(benchmark, shortcut, split):
    """By how much the mean of a shortcut differs between conclusions and negatives of a split."""
    number = SPLITS.index(split)
    conclusions = benchmark.provenance.triples[benchmark.provenance.split == number]
    return abs(shortcut.score(conclusions).mean() - shortcut.score(benchmark.negatives["nm"].splits[split]).mean())


def test_no_split_has_better_matches_than_another():
    """All splits gather much the same candidates here; whoever chose first would leave the worst."""
    benchmark = build(
        recipe_of(patterns=("hierarchy",), k1=4, k2=300, ratio="4:3:3", match=("popularity",)), popular_graph(300, 2500)
    )
    popular = Popularity(benchmark.graph, 2)
    degrees = {split: weighted_apart(benchmark, popular, split) for split in SPLITS}
    spread = popular.score(benchmark.provenance.triples).std()
    assert max(degrees.values()) - min(degrees.values()) < 0.35 * spread, degrees


def test_with_several_steps_matching_looks_at_the_graph_that_shortcuts_look_at():
    graph = popular_graph(200, 1500)
    recipe = recipe_of(patterns=("hierarchy",), k1=3, k2=200, depth=2, match=("adjacency",))
    with foundation(recipe, graph) as laid:
        assert laid.context.base is not laid.context.kg
        assert len(laid.context.base) == len(graph)


def test_conclusions_are_chosen_on_either_side_of_an_inductive_benchmark():
    rng = np.random.default_rng(4)
    ends, relation = rng.integers(150, size=(5000, 2)), rng.integers(3, size=5000)
    graph = KnowledgeGraph.from_names(
        [(f"e{s}", f"r{r}", f"e{o}") for (s, o), r in zip(ends, relation, strict=True)], type_predicate=""
    )
    recipe = recipe_of(patterns=("symmetry",), k1=1, k2=60, inductive=True, inductive_share=0.5)
    shares = []
    for match in ((), ("adjacency",)):
        benchmark = build(recipe.changed(match=match), graph)
        rule = benchmark.program[0]
        test = benchmark.positives.test
        shares.append(connected_otherwise(benchmark.kg, test, rule).mean())
    assert shares[0] < 0.5
    assert shares[1] == pytest.approx(0.6, abs=0.1)


# -- rules that are their own complement --------------------------------------------------------------


@given(p=st.fractions(0, 1), q=st.fractions(0, 1))
def test_whatever_negatives_are_chosen_one_of_two_shortcuts_reaches_the_bound(p, q):
    """Counted over 60 conclusions and 60 negatives; another relation connects a share p and q of them."""
    conclusions, negatives = round(60 * p), round(60 * q)
    p, q = Fraction(conclusions, 60), Fraction(negatives, 60)
    any_relation = 60 + (60 - negatives)
    another = (60 - conclusions) + negatives
    assert Fraction(max(any_relation, another), 120) >= (3 - p) / 4
    best = Fraction(complement_share(float(p))).limit_denominator(10**6)
    assert best == (1 + p) / 2
    assert max(1 - best / 2, (1 + best - p) / 2) == (3 - p) / 4


def pairs_graph(pairs, otherwise, seed=1):
    """Pairs with R one way; so many of them S connects as well, the body's way; S connects others, too."""
    rng = random.Random(seed)
    names = [(f"a{i}", f"b{i}") for i in range(pairs)]
    triples = [(a, "R", b) for a, b in names] + [(a, "S", b) for a, b in names[:otherwise]]
    ends = [end for pair in names for end in pair]
    while len(triples) < 4 * pairs:
        triples.append((rng.choice(ends), rng.choice("ST"), rng.choice(ends)))
    return KnowledgeGraph.from_names(triples, type_predicate="")


def test_another_relation_in_the_bodys_direction_is_counted():
    graph = KnowledgeGraph.from_names(
        [("a", "R", "b"), ("a", "S", "b"), ("c", "R", "d"), ("d", "S", "c"), ("e", "S", "f")], type_predicate=""
    )
    conclusions = [("b", "a"), ("d", "c"), ("f", "e"), ("b", "c")]
    relation = graph.relation_id("R")
    rows = np.array([(graph.entity_id(s), relation, graph.entity_id(o)) for s, o in conclusions])
    found = connected_otherwise(graph, rows.astype(np.int32), parse_rule(SYMMETRY))
    assert found.tolist() == [True, False, True, False]
    nothing = graph.with_triples(graph.triples[:0])
    assert not connected_otherwise(nothing, rows.astype(np.int32), parse_rule(SYMMETRY)).any()


@pytest.mark.parametrize("otherwise", [0, 60, 150, 300])
def test_symmetry_is_as_near_to_the_bound_as_can_be(otherwise):
    """On a made-up graph with 300 pairs. The design leaves only noise above the bound."""
    graph = pairs_graph(300, otherwise)
    benchmark = build(recipe_of(rules=(SYMMETRY,), k2=300), graph)
    made = benchmark.negatives["nm"]
    p = connected_otherwise(graph, benchmark.provenance.triples, parse_rule(SYMMETRY)).mean()
    near = sum(int((o.source == SOURCES.index("near-miss")).sum()) for o in made.origins.values())
    by_design = next((note for note in made.notes if "by design" in note), "0 ")
    assert "complement" in by_design or p > 0.99
    spare = sum(made.asked.values()) - near
    assert abs(int(by_design.split()[0].replace(",", "")) - (1 - p) / 2 * len(benchmark.provenance.triples)) <= 3
    assert spare >= int(by_design.split()[0].replace(",", ""))
    assert audit(benchmark).ok


def test_with_adjacency_matched_three_in_five_conclusions_are_connected_otherwise():
    graph = pairs_graph(400, 120)
    rule = parse_rule(SYMMETRY)
    recipe = recipe_of(rules=(SYMMETRY,), k2=150, match=("adjacency",))
    new, keys = matched_sample(recipe, open_engine(graph), rule)
    assert new == len(open_engine(graph).conclusions(rule, new=True))
    assert len(keys) == 150
    sample = graph.keys.unpack(keys)
    otherwise = connected_otherwise(graph, sample, rule)
    assert otherwise.sum() == 90
    # However the sample is cut, each part has its share, also where far more of one kind were passed over.
    for first, last in ((0, 120), (120, 135), (135, 150)):
        assert otherwise[first:last].sum() == pytest.approx(0.6 * (last - first), abs=1)
    more = matched_sample(recipe.changed(k2=1000), open_engine(graph), rule)[1]
    connected = int(connected_otherwise(graph, open_engine(graph).conclusions(rule, new=True), rule).sum())
    assert len(more) == int(connected / Fraction(3, 5)) == matched_size(1000, new - connected, connected)
    assert set(keys) <= set(more)


def test_matched_symmetry_leaves_no_shortcut_above_60_percent():
    """Other relations connect enough pairs that could be near misses; what is above 60 % is noise."""
    rng = np.random.default_rng(3)
    ends = rng.integers(120, size=(4000, 2))
    relation = rng.integers(3, size=4000)
    graph = KnowledgeGraph.from_names(
        [(f"e{s}", f"r{r}", f"e{o}") for (s, o), r in zip(ends, relation, strict=True)], type_predicate=""
    )
    recipe = recipe_of(patterns=("symmetry",), k1=3, k2=1000, ratio="4:3:3")
    plain, matched = (build(recipe.changed(match=m), graph) for m in ((), ("popularity", "adjacency")))
    figures = [single_accuracies(benchmark, "nm") for benchmark in (plain, matched)]
    assert [accuracies["relation-name"] for accuracies in figures] == pytest.approx([0.5, 0.5], abs=0.01)
    assert max(figures[1].values()) < 0.62 < max(figures[0].values())
    # Train stands back where near misses are scarce: what is evaluated has as many as it should.
    for split in SPLITS[1:]:
        near = matched.negatives["nm"].origins[split].source == SOURCES.index("near-miss")
        assert near.mean() > 0.75
    found = audit(matched)
    assert found.ok
    assert not [f for f in found.findings if f.severity == "error"]


def test_a_symmetric_rule_on_a_graph_without_other_relations():
    """There is no near miss at all: everything is position-aware, and that is said."""
    rng = random.Random(5)
    names = [(f"e{rng.randrange(40)}", "R", f"e{rng.randrange(40)}") for _ in range(150)]
    for match in ((), ("popularity",)):
        benchmark = build(
            recipe_of(rules=(SYMMETRY,), match=match), KnowledgeGraph.from_names(names, type_predicate="")
        )
        made = benchmark.negatives["nm"]
        assert all((o.source == SOURCES.index("position")).all() for o in made.origins.values())
        assert "100.0% by position-aware corruption" in made.notes[0]
        assert audit(benchmark).ok
    with pytest.raises(InputError):
        build(
            recipe_of(patterns=("symmetry",), k1=1, match=("adjacency",)),
            KnowledgeGraph.from_names(names, type_predicate=""),
        )


def test_fewer_conclusions_than_min_new_may_be_sampled():
    benchmark = build(recipe_of(patterns=("composition",), k1=1, k2=5), small_graph())
    assert [known.sampled for known in benchmark.rules] == [5]


# -- heads --------------------------------------------------------------------------------------------


def test_rules_whose_heads_are_types_in_a_variable_have_position_aware_negatives():
    graph = typed_graph(triples=150)
    rules = [parse_rule("(x,helps,y), (y,rdf:type,?t) -> (x,rdf:type,?t)"), parse_rule(GIVEN[1])]
    context = context_of(graph, rules, k2=60)
    made = sample_negatives(context, "nm")
    for split in SPLITS:
        heads = [np.bincount(heads_of(graph, t), minlength=60) for t in
                 (context.conclusions[split], made.splits[split])]  # fmt: skip
        assert (heads[1] <= heads[0]).all()
        assert set(made.origins[split].rule.tolist()) <= {-1, 1}
    assert any("some rules have none" in note for note in made.notes)


def test_the_lubm_rules_have_near_misses():
    """Given rules with types: as many negatives as conclusions, type by type, and nothing derivable."""
    graph = load_graph("lubm")
    rules = tuple(str(rule) for rule in read_rules("lubm-107").program[::12])
    benchmark = build(Recipe("lubm", rules=rules, k2=60, negatives=("nm",)), graph)
    found = audit(benchmark)
    assert not [f for f in found.findings if f.severity == "error"]
    assert found.oracle["nm"]["accuracy"] == 1.0
    instead = [o.predicate[o.edit > 0] for o in benchmark.negatives["nm"].origins.values()]
    assert np.concatenate(instead).max() > len(graph.relations), "types are among them"
    true = open_engine(benchmark.everything)
    for triples in benchmark.negatives["nm"].splits.train, benchmark.negatives["nm"].splits.test:
        assert not benchmark.everything.contains(triples).any()
        assert not true.derives(benchmark.program, triples).any()


# -- benchmarks of other kinds ------------------------------------------------------------------------


def test_conclusions_of_several_steps_have_near_misses_too(tmp_path):
    rules = ("(x,helps,y), (y,knows,z) -> (x,likes,z)", "(x,likes,y) -> (y,meets,x)")
    graph = KnowledgeGraph.from_names(small_graph().names(small_graph().triples)[::3], type_predicate="")
    benchmark = build(recipe_of(rules=rules, depth=2, k2=80), graph)
    assert benchmark.provenance.depth.max() == 2
    made = benchmark.negatives["nm"]
    # Nothing that follows in two steps is a negative.
    first = {t for rule in benchmark.program for t in brute_force.conclusions(rule, benchmark.kg)}
    twice = benchmark.kg.with_triples(np.array(sorted(first | as_set(benchmark.kg.triples)), dtype=np.int32))
    second = {t for rule in benchmark.program for t in brute_force.conclusions(rule, twice)}
    for triples in (made.splits[split] for split in SPLITS):
        assert not as_set(triples) & (first | second | as_set(benchmark.everything.triples))
    write_benchmark(benchmark, tmp_path / "out")
    found = audit(tmp_path / "out")
    assert not [f for f in found.findings if f.severity == "error"]
    assert found.oracle["nm"]["accuracy"] == 1.0


@pytest.mark.parametrize(
    "settings",
    [{"flipped": 0.1, "missing": 0.1}, {"inductive": True, "inductive_share": 0.4}],
    ids=["noise", "inductive"],
)
@pytest.mark.parametrize("match", [(), ("popularity", "adjacency")])
def test_near_misses_go_with_noise_and_with_new_constants(settings, match, tmp_path):
    recipe = recipe_of(rules=GIVEN[:1], match=match, k2=100, **settings)
    write_benchmark(build(recipe, typed_graph(entities=90, triples=700)), tmp_path / "out")
    found = audit(tmp_path / "out")
    assert not [f for f in found.findings if f.severity == "error"]
    read = load_benchmark(tmp_path / "out")
    sources = [o.source for o in read.negatives["nm"].origins.values()]
    assert (np.concatenate(sources) == SOURCES.index("near-miss")).mean() > 0.5


# -- recipes and the command --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"negatives": ("pa",), "match": ("popularity",)}, "`match` is for near misses"),
        ({"match": ("popularity", "popularity")}, "given twice: popularity, popularity"),
        ({"match": "popularity"}, "`match` must be a list of texts"),
        ({"protocol": "paper"}, "near misses are for the protocol `sound`"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        recipe_of(**settings)


def test_an_unknown_shortcut_to_match_is_refused():
    with pytest.raises(UnknownNameError, match="unknown shortcut to match `popular`") as caught:
        recipe_of(match=("popular",))
    assert "popularity" in str(caught.value.hint)


@pytest.fixture
def file(tmp_path):
    graph = typed_graph()
    path = tmp_path / "graph.tsv"
    path.write_text("".join("\t".join(t) + "\n" for t in graph.names(graph.triples)))
    return path


def test_the_command_matches(file, tmp_path, loginfer):
    words = ("build", file, "-p", "composition", "--k1", 2, "--k2", 60, "--type-predicate", TYPE, "-n", "nm")
    code, _, err = loginfer(*words, "--match", "popularity, adjacency", "--out", tmp_path / "out")
    assert code == 0
    assert "near misses wanted" in err
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["recipe"]["match"] == ["popularity", "adjacency"]
    assert loginfer("audit", tmp_path / "out")[0] == 0
    assert "popularity" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-n", "nm", "--match", "popularty"), "unknown shortcut to match `popularty`"),
        (("-n", "nm", "--match", ""), "unknown shortcut to match ``"),
        (("-n", "nm", "--match", "popularity,"), "unknown shortcut to match ``"),
        (("-n", "pa", "--match", "popularity"), "`match` is for near misses"),
        (("-n", "nm", "--protocol", "paper"), "near misses are for the protocol `sound`"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(file, tmp_path, loginfer, words, message):
    code, _, err = loginfer("build", file, "-p", "composition", *words, "--out", tmp_path / "out")
    assert code == 2
    assert message in err
    assert not (tmp_path / "out").exists()
