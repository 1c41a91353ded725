"""The methods for negatives against section 3.3: what may be drawn, and how likely."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, chisquare
from tests.support import definitions
from tests.support.definitions import as_set, context_of
from tests.support.random_rules import cases

from loginfer.benchmark.benchmark import POSITIONS, SPLITS, Splits
from loginfer.benchmark.negatives import SOURCES, corruption, sample_negatives
from loginfer.benchmark.negatives import spaces as sampler
from loginfer.benchmark.negatives.context import TakenNegatives, Truth
from loginfer.benchmark.negatives.corruption import corruptions, draw_corruptions, relevance_space, support_constants
from loginfer.benchmark.recipe import PARTS
from loginfer.errors import UnknownNameError
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic import parse_rule

RUNS = 400
METHODS = ("rb", "pa", "rc")

protocols = st.sampled_from([("paper", False), ("sound", False), ("sound", True)])


def graph_of(text: str) -> KnowledgeGraph:
    return KnowledgeGraph.from_names([line.split() for line in text.split(";")])


@pytest.fixture(scope="module")
def example():
    """A graph with types, and rules about relations and types, under the default protocol."""
    links = "a R b; b R c; c R d; d R a; a S c; b S d; e S a; f R f"
    graph = graph_of(f"{links}; a type T; b type T; c type U; e type V; f type U")
    rules = ["(x,R,y), (y,R,z) -> (x,S,z)", "(x,S,y) -> (y,S,x)", "(x,R,y), (y,type,T) -> (x,type,U)"]
    return graph, [parse_rule(rule) for rule in rules]


def candidates_of(method, context, split):
    """All that one draw may return, from the definition."""
    if method == "rb":
        return definitions.relevance_candidates(context)
    if method == "pa":
        return set(definitions.position_candidates(context, split))
    positives = as_set(context.positives[split])
    return set().union(*(definitions.random_candidates(context, p) for p in positives))


@given(case=cases(most_rules=3), protocol=protocols, method=st.sampled_from(METHODS), k2=st.integers(1, 20))
@settings(max_examples=100)
def test_negatives_are_what_the_definition_allows_and_as_many_as_there_are(case, protocol, method, k2):
    context = context_of(*case, k2=k2, protocol=protocol[0], materialised=protocol[1])
    found = sample_negatives(context, method)
    assert found.method == method
    assert found.asked == context.positives.sizes
    before: set = set()
    for split in order_of_draws(context, found.splits):
        triples = found.splits[split]
        drawn = as_set(triples)
        assert len(drawn) == len(triples) == len(found.origins[split])
        assert np.array_equal(triples, definitions.as_rows(drawn)), "sorted"
        assert not drawn & before
        left = candidates_of(method, context, split) - before
        assert drawn <= left
        short = len(drawn) < found.asked[split]
        assert any(note.startswith(f"{split} has {len(drawn)} ") for note in found.notes) == short
        if short and method != "rc":
            assert drawn == left, "all candidates are taken before there are too few"
        before |= drawn


def order_of_draws(context, splits):
    """Train comes first, as in the text, unless it would use up the others' candidates under `sound`.

    Then it is the last, so that it falls short itself.
    """
    enough = all(len(splits[split]) == len(context.positives[split]) for split in SPLITS)
    return SPLITS if enough or context.recipe.protocol == "paper" else SPLITS[::-1]


@given(case=cases(most_rules=3), protocol=protocols)
@settings(max_examples=50)
def test_each_positive_has_a_corrupted_object_if_there_is_one(case, protocol):
    context = context_of(*case, protocol=protocol[0], materialised=protocol[1])
    found = sample_negatives(context, "rc").splits
    left = {}
    for split in order_of_draws(context, found):
        positives = context.positives[split]
        for s, r, o in as_set(positives):
            if (s, r) not in left:
                left[s, r] = len(definitions.random_candidates(context, (s, r, o)))
        wanted = Counter((s, r) for s, r, _ in as_set(positives))
        drawn = Counter((s, r) for s, r, _ in as_set(found[split]))
        for group, count in wanted.items():
            assert drawn[group] == min(count, left[group])
            left[group] -= drawn[group]
        assert set(drawn) <= set(wanted)


@given(case=cases(most_rules=3))
@settings(max_examples=50)
def test_the_space_of_relevance_is_n_cand(case):
    context = context_of(*case)
    assert support_constants(context).tolist() == sorted(definitions.support_constants(context))
    space = relevance_space(context)
    held = space.at(np.arange(space.capacity))
    assert len(as_set(held)) == space.size
    assert as_set(held[context.truth.negative(held)]) == definitions.relevance_candidates(context)


@given(case=cases(most_rules=3), split=st.sampled_from(SPLITS))
@settings(max_examples=50)
def test_corruptions_know_which_position_was_replaced(case, split):
    context = context_of(*case, k2=30)
    wanted = definitions.position_candidates(context, split)
    space = corruptions(context, split).space
    held = space.at(np.arange(space.capacity))
    assert len(held) == space.size
    assert as_set(held[context.truth.negative(held)]) == set(wanted)
    position = [POSITIONS[i] for i in corruptions(context, split).positions(definitions.as_rows(wanted))]
    assert position == [wanted[t] for t in sorted(wanted)]


@given(case=cases(most_rules=3))
@settings(max_examples=30)
def test_sound_negatives_never_follow_from_the_rules_in_one_step(case):
    context = context_of(*case)
    derived = definitions.one_step(context, definitions.everything(context))
    for method in METHODS:
        found = sample_negatives(context, method).splits
        assert not any(as_set(found[split]) & derived for split in SPLITS)


def test_the_paper_labels_what_it_did_not_sample_as_negative():
    graph = graph_of("; ".join(f"n{i} R hub" for i in range(30)))
    rules = [parse_rule("(x,R,y) -> (y,R,x)")]
    derived = definitions.one_step(context_of(graph, rules), as_set(graph.triples))
    wrong = {}
    for protocol in ("paper", "sound"):
        context = context_of(graph, rules, k2=10, protocol=protocol)
        found = sample_negatives(context, "rc").splits
        wrong[protocol] = sum(len(as_set(found[split]) & derived) for split in SPLITS)
    assert wrong["paper"] > 0
    assert wrong["sound"] == 0


# -- uniformity -------------------------------------------------------------------------------------


def prepared(context):
    """The context with what is true written down, which is faster for many draws."""
    context.__dict__["truth"] = Truth(context.kg.with_triples(definitions.as_rows(definitions.true_triples(context))))
    return context


def reseeded(context, seed):
    """The same context with another seed; what does not depend on it is computed once."""
    shared = {name: getattr(context, name) for name in ("conclusions", "truth", "everything")}
    other = replace(context, recipe=context.recipe.changed(seed=seed))
    other.__dict__.update(shared)
    return other


def frequencies(example, method, split, runs, **options):
    """How often each triple was drawn for a split, over many seeds, and the number drawn at a time."""
    context = prepared(context_of(*example, k2=4, **options))
    counts: Counter = Counter()
    sizes = set()
    for seed in range(runs):
        drawn = as_set(sample_negatives(reseeded(context, seed), method).splits[split])
        counts.update(drawn)
        sizes.add(len(drawn))
    assert len(sizes) == 1
    return context, counts, sizes.pop()


def assert_uniform(counts, candidates, drawn, runs):
    """A set of `drawn` candidates in each of many runs: is each one in it equally often?

    Inclusions are not independent: with k of n drawn, the counts vary by (n - k) / (n - 1) of what the test
    for independent draws expects.
    """
    n = len(candidates)
    assert set(counts) == candidates
    assert 0 < drawn < n
    expected = runs * drawn / n
    statistic = sum((counts[c] - expected) ** 2 / expected for c in candidates) * (n - 1) / (n - drawn)
    assert chi2.sf(statistic, n - 1) > 1e-4
    assert chi2.cdf(statistic, n - 1) > 1e-4


@pytest.mark.parametrize("protocol", ["paper", "sound"])
def test_relevance_based_draws_are_uniform(example, protocol):
    context, counts, drawn = frequencies(example, "rb", "train", RUNS, protocol=protocol)
    assert_uniform(counts, candidates_of("rb", context, "train"), drawn, RUNS)


def test_later_splits_are_uniform_too(example):
    context, counts, drawn = frequencies(example, "rb", "test", RUNS)
    assert_uniform(counts, candidates_of("rb", context, "test"), drawn, RUNS)


@pytest.fixture(params=["all places in order", "random places"])
def large(request, monkeypatch):
    """Small spaces searched like large ones."""
    if request.param == "random places":
        monkeypatch.setattr(sampler, "_FEW", 0)
        monkeypatch.setattr(sampler, "_LEAST", 8)


def test_position_aware_draws_are_uniform(example, large):
    context = prepared(context_of(*example, k2=4))
    candidates = set(definitions.position_candidates(context, "train"))
    assert any(definitions.is_type(t, context.kg) for t in candidates)
    counts: Counter = Counter()
    rng = np.random.default_rng(3)
    nothing = TakenNegatives(context, [])
    for _ in range(RUNS):
        counts.update(as_set(draw_corruptions(context, "train", 8, rng, nothing).triples))
    assert_uniform(counts, candidates, 8, RUNS)


@pytest.mark.parametrize("tries", [(1, 1, 2, 4, 8, 16), (3,), (2, 1), ()])
def test_corrupted_objects_are_uniform_for_each_positive(example, tries, monkeypatch):
    monkeypatch.setattr(corruption, "_TRIES", tries)
    context, counts, _ = frequencies(example, "rc", "train", RUNS)
    tested = 0
    groups = Counter((s, r) for s, r, _ in as_set(context.positives["train"]))
    for (s, r), sharing in groups.items():
        candidates = definitions.random_candidates(context, (s, r, 0))
        own = {t: counts[t] for t in candidates}
        if sharing < len(candidates):
            assert_uniform(Counter(own), candidates, sharing, RUNS)
            tested += 1
        else:
            assert set(own.values()) == {RUNS} or not own
    assert tested >= 5


def test_one_positive_gets_each_object_equally_often():
    graph = graph_of("; ".join(f"n{i} R n{i + 1}" for i in range(12)))
    context = context_of(graph, [parse_rule("(x,R,y) -> (y,R,x)")], k2=1)
    prepared(context)
    counts: Counter = Counter()
    for seed in range(400):
        found = sample_negatives(reseeded(context, seed), "rc").splits.train
        (drawn,) = (t for t in as_set(found) if t[0] == 0)
        counts[drawn] += 1
    assert chisquare([counts[t] for t in definitions.random_candidates(context, (0, 0, 0))]).pvalue > 1e-4


def corrupting(context, parts, positives=None):
    """The same context with other parts to corrupt, or with these positives alone, all of them in train."""
    context = replace(context, recipe=context.recipe.changed(negatives=("rc",), corrupt=tuple(parts)))
    if positives is not None:
        rows = np.array(positives, dtype=np.int32)
        context = replace(context, positives=Splits(rows, rows[:0], rows[:0]))
    return prepared(context)


@pytest.mark.parametrize(
    ("parts", "tries"),
    [
        (("subject",), (1,)),
        (("relation",), ()),
        (("relation", "subject"), (1, 1, 2, 4, 8, 16)),
        (("object", "subject", "relation"), (1, 1, 2, 4, 8, 16)),
        (("object", "subject", "relation"), ()),
    ],
)
@pytest.mark.parametrize("triple", [("a", "R", "b"), ("b", "type", "T")])
def test_what_a_positive_alone_becomes_is_as_likely_as_the_definition_says(example, parts, triple, tries, monkeypatch):
    monkeypatch.setattr(corruption, "_TRIES", tries)
    graph = graph_of("a R b; c R d; a S c; b P d; d Q a; a type T; b type T; c type U; e type V")
    ids = graph.entity_id(triple[0]), graph.relation_id(triple[1]), graph.entity_id(triple[2])
    context = corrupting(context_of(graph, example[1], protocol="paper"), parts, [ids])
    expected = definitions.random_probabilities(context, ids, parts)
    assert bool(expected) == (triple[1] != "type" or parts != ("relation",))
    counts: Counter = Counter()
    for seed in range(RUNS):
        found = sample_negatives(reseeded(context, seed), "rc")
        source = [SOURCES[i] for i in found.origins["train"].source]
        counts.update(zip(map(tuple, found.splits.train.tolist()), source, strict=True))
    assert set(counts) <= set(expected)
    if expected:
        pairs = [(counts[made], RUNS * share) for made, share in expected.items()]
        assert chisquare(*zip(*pairs, strict=True)).pvalue > 1e-4


@given(case=cases(most_rules=3), protocol=protocols, parts=st.sets(st.sampled_from(PARTS), min_size=1))
@settings(max_examples=60)
def test_a_random_part_is_that_of_a_positive_and_nobody_goes_without_who_need_not(case, protocol, parts):
    context = corrupting(context_of(*case, protocol=protocol[0], materialised=protocol[1]), sorted(parts))
    found = sample_negatives(context, "rc")
    drawn = {split: as_set(found.splits[split]) for split in SPLITS}
    taken = set().union(*drawn.values())
    assert len(taken) == sum(map(len, drawn.values()))
    for split in SPLITS:
        positives = as_set(context.positives[split])
        candidates = {part: [definitions.random_candidates(context, p, part) for p in positives] for part in parts}
        for triple, source in zip(found.splits[split].tolist(), found.origins[split].source, strict=True):
            assert any(tuple(triple) in made for made in candidates[SOURCES[source]])
        stuck = sum(set().union(*made) <= taken for made in zip(*candidates.values(), strict=True))
        assert len(positives) - len(drawn[split]) <= stuck


def test_the_order_in_which_parts_are_named_makes_no_difference(example):
    first, second = (
        sample_negatives(corrupting(context_of(*example, k2=4), parts), "rc").splits
        for parts in (("subject", "object"), ("object", "subject"))
    )
    assert all(np.array_equal(first[split], second[split]) for split in SPLITS)


# -- the rest ---------------------------------------------------------------------------------------


def test_origins_say_which_method_and_position_made_a_negative(example):
    context = context_of(*example, k2=4)
    for method, source in (("rb", "relevance"), ("pa", "position"), ("rc", "object")):
        found = sample_negatives(context, method)
        for split, triples in found.splits.items():
            origins = found.origins[split]
            assert {SOURCES[i] for i in origins.source} <= {source}
            assert (origins.rule == -1).all()
            assert (origins.kept == 0).all()
            positions = [POSITIONS[i] for i in origins.position]
            if method == "pa":
                wanted = definitions.position_candidates(context, split)
                assert positions == [wanted[tuple(t)] for t in triples.tolist()]
            else:
                assert set(positions) <= {"" if method == "rb" else "object"}


def test_a_variable_for_a_type_stands_for_no_constant():
    graph = graph_of("a R b; c R d; a type T; b type T; d type U; c type V; T R a")
    rules = [parse_rule("(x,R,y), (y,type,z) -> (x,type,z)"), parse_rule("(c,R,x) -> (x,type,U)")]
    context = context_of(graph, [rules[0]])
    assert context.kg.entities.names(support_constants(context)) == ["T", "a", "b", "c", "d"]
    space = relevance_space(context)
    assert set(context.kg.entities.names(space.at(np.arange(space.capacity))[:, 2])) == {"T", "U"}


def test_only_the_constant_of_a_type_triple_is_corrupted_by_position(example):
    context = context_of(*example, k2=30)
    space = corruptions(context, "train").space
    held = space.at(np.arange(space.capacity))
    typed = held[held[:, 1] == context.kg.type_relation]
    assert set(context.kg.entities.names(typed[:, 2])) == {"U"}
    assert set(context.kg.entities.names(typed[:, 0])) == set("abcdef"), "d is concluded to have a type"
    assert len(typed) == 6


def test_a_corrupted_type_is_a_type_and_a_corrupted_constant_a_constant(example):
    context = context_of(*example, k2=30, protocol="paper")
    found = sample_negatives(context, "rc").splits
    for triples in (found.train, found.valid, found.test):
        types = triples[:, 1] == context.kg.type_relation
        assert set(triples[types, 2]) <= set(context.kg.types.tolist())
        assert set(triples[~types, 2]) <= set(context.kg.consts.tolist())


def test_too_few_candidates_are_all_taken_and_told():
    graph, rules = graph_of("a R b; a S b"), [parse_rule("(x,R,y) -> (y,S,x)")]
    found = sample_negatives(context_of(graph, rules, k2=1, protocol="paper"), "rb")
    assert found.asked == {"train": 2, "valid": 0, "test": 1}
    assert graph.names(found.splits.train) == [("a", "S", "a"), ("b", "S", "b")]
    assert found.notes == ("test has 0 negatives instead of 1, all candidates that there are",)


def test_train_leaves_candidates_to_the_others_under_sound():
    graph, rules = graph_of("a R b; a S b"), [parse_rule("(x,R,y) -> (y,S,x)")]
    found = sample_negatives(context_of(graph, rules, k2=1, protocol="sound"), "rb")
    assert found.splits.sizes == {"train": 1, "valid": 0, "test": 1}
    assert found.notes == ("train has 1 negatives instead of 2, all candidates that there are",)


def test_a_search_that_was_given_up_is_told(monkeypatch):
    from loginfer.benchmark.negatives.context import shortfall

    space = corruptions(context_of(graph_of("a R b; c R d"), [parse_rule("(x,R,y) -> (x,R,y)")]), "train").space
    one = sampler.Sampler(space, np.random.default_rng(0), lambda t: np.zeros(len(t), dtype=bool), limit=2)
    assert "candidates that were looked at" in shortfall(one.take(1))


def test_rules_without_a_witness_leave_no_candidates():
    context = context_of(graph_of("a R b; b R c"), [parse_rule("(x,S,y) -> (y,S,x)")])
    for method in ("rb", "pa"):
        found = sample_negatives(context, method)
        assert found.splits.sizes == {"train": 0, "valid": 0, "test": 0}
        assert len(found.notes) == 1
    assert len(sample_negatives(context, "rc").splits.train) == 2


def test_an_unknown_method_is_an_error(example):
    with pytest.raises(UnknownNameError, match="`pq`"):
        sample_negatives(context_of(*example), "pq")


@pytest.mark.parametrize("method", METHODS)
def test_both_engines_give_the_same_negatives(example, method):
    native, duckdb = (sample_negatives(context_of(*example, engine=e), method) for e in ("native", "duckdb"))
    assert native.notes == duckdb.notes
    for split in SPLITS:
        assert np.array_equal(native.splits[split], duckdb.splits[split])
        assert np.array_equal(native.origins[split].position, duckdb.origins[split].position)


@pytest.mark.data
def test_the_sets_of_a_real_graph_are_full_disjoint_and_not_derivable(data_folder):
    graph = load_graph(data_folder / "WN18RR.tar.gz")
    relations = graph.relations.names(graph.rels)
    rules = [parse_rule(f"(x,<{r}>,y), (y,<{s}>,z) -> (x,<{r}>,z)") for r, s in pairwise(relations)]
    context = context_of_real(graph, rules)
    for method in METHODS:
        found = sample_negatives(context, method)
        assert found.splits.sizes == context.positives.sizes
        assert found.notes == ()
        every = np.concatenate([found.splits[split] for split in SPLITS])
        assert len(np.unique(context.kg.keys.pack(every))) == len(every)
        assert context.truth.negative(every).all()


def context_of_real(graph, rules):
    """A context like `context_of`, with an engine's conclusions instead of loops."""
    from loginfer.benchmark.benchmark import Splits
    from loginfer.benchmark.negatives import Context
    from loginfer.benchmark.recipe import Recipe
    from loginfer.engine import open_engine

    engine = open_engine(graph)
    new = np.unique(np.concatenate([graph.keys.pack(engine.conclusions(rule, new=True)) for rule in rules]))
    new = np.random.default_rng(0).permutation(new)[:3000]
    train = graph.keys.unpack(np.union1d(graph.packed, new[:2000]))
    splits = Splits(train, graph.keys.unpack(np.sort(new[2000:2500])), graph.keys.unpack(np.sort(new[2500:])))
    return Context(Recipe("wn18rr", rules="-"), engine, open_engine, tuple(rules), splits)
