"""Query-guided sampling against section 3.3: R⁻, what its sub-rules conclude, and who gets which share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, chisquare
from tests.support import brute_force, definitions
from tests.support.definitions import as_rows, as_set, context_of, undesired
from tests.support.random_rules import graphs, rules

from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.negatives import SOURCES, sample_negatives
from loginfer.benchmark.negatives import query_candidates as query_pools
from loginfer.benchmark.negatives import query_guided as query_paper
from loginfer.benchmark.negatives import query_guided as query_sound
from loginfer.benchmark.negatives.query_candidates import groups_of, members
from loginfer.benchmark.negatives.query_guided import concluded, paper_share, query_guided, sound_share, undesired_parts
from loginfer.benchmark.program import kept_masks, sub_rule
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import extend, open_engine
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph
from loginfer.logic import canonical_text, parse_rule
from loginfer.logic.rule import Inequality, Rule, Variable
from loginfer.randomness import hash_order, salt

RUNS = 250
SUB_RULE, POSITION = SOURCES.index("sub-rule"), SOURCES.index("position")

DIAMOND = "(x,R,y), (x,S,z), (y,T,w), (z,P,w), x != y, x != z, x != w, y != z, y != w, z != w -> (x,Q,y)"
TRIANGLE = "(x,R,y), (x,S,z), (y,T,z), x != y, x != z, y != z -> (x,Q,y)"


@st.composite
def programs(draw, most_rules=2, atoms=3):
    """A graph, with vocabularies for the heads, and rules that often have sub-rules."""
    graph = draw(graphs())
    program = draw(st.lists(rules(graph, atoms), min_size=1, max_size=most_rules))
    return extend(graph, program), program


def random_graph(seed: int, entities: int, links: int, relations: str = "RSTPQ") -> KnowledgeGraph:
    rng = np.random.default_rng(seed)
    names = [f"e{i:03}" for i in range(entities)]
    return KnowledgeGraph.from_names(
        [
            (names[s], relations[r], names[o])
            for s, r, o in rng.integers([entities, len(relations), entities], size=(links, 3)).tolist()
        ]
    )


def truly_negative(context, place: int, kept: int) -> set:
    """The candidates of one pair, by the definition."""
    found = brute_force.conclusions(sub_rule(context.rules[place], kept), context.kg)
    return definitions.known_predicates(context, set(found) - definitions.true_triples(context))


def parts_of(context, candidates: set) -> list[set]:
    """The parts of a pair's candidates for train, valid and test."""
    triples = as_rows(candidates)
    keys = context.kg.keys.pack(triples)
    order = hash_order(keys, salt(context.recipe.seed, "negatives", "qg", "parts"))
    first, second = context.recipe.cuts(len(keys))
    if len(keys):
        first, second = max(first, 1), max(second, 1)
    return [as_set(triples[part]) for part in (order[:first], order[first:second], order[second:])]


def pairs_of(found, split):
    """Which pairs the negatives of a split came from, and how many from each."""
    origins = found[split].origins
    return Counter(zip(origins.rule.tolist(), origins.kept.tolist(), strict=True))


def looks_uniform(counts: Counter, candidates: list, per_run: int) -> bool:
    """Whether draws of so many distinct candidates in each run took all of them equally often."""
    observed = [counts[candidate] for candidate in candidates]
    assert sum(observed) == sum(counts.values()) == per_run * RUNS
    size = len(candidates)
    # What is drawn once in a run is not drawn again: counts vary less than those of independent draws.
    statistic = chisquare(observed).statistic * (size - 1) / (size - per_run)
    return chi2.sf(statistic, size - 1) > 1e-3


# -- R⁻ ---------------------------------------------------------------------------------------------


@given(case=programs(most_rules=3))
@settings(max_examples=100)
def test_undesired_rules_are_r_minus_once_for_each_rule_they_came_from(case):
    _, program = case
    expected = {(place, canonical_text(rule)) for place, _, rule in definitions.subrules(program)}
    found = undesired(program)
    assert {(u.rule, canonical_text(u.sub_rule)) for u in found} == expected
    assert len(found) == len(expected)
    for known in found:
        assert known.sub_rule == sub_rule(program[known.rule], known.kept)


def test_a_sub_rule_that_is_a_rule_of_the_program_is_not_undesired():
    program = [parse_rule("(x,R,y) -> (x,Q,y)"), parse_rule(DIAMOND)]
    masks = kept_masks(program)
    assert masks[0] == ()
    assert len(masks[1]) == 464
    assert 1 not in masks[1], "keeps (x,R,y) alone"
    assert 1 | 1 << 4 in masks[1]


def test_repeated_parts_of_a_body_count_once():
    rule = parse_rule("(x,R,y), (x,R,y), (x,S,y), (x,S,y) -> (x,T,y)")
    assert kept_masks([rule]) == ((0b0001, 0b0100),)


def test_a_body_too_long_for_a_mask_is_refused():
    rule = Rule(parse_rule("(x,R,y) -> (x,S,y)").body * 32, parse_rule("(x,R,y) -> (x,S,y)").head)
    with pytest.raises(LimitError, match="32 parts"):
        kept_masks([rule])


@given(case=programs(most_rules=1, atoms=3))
@settings(max_examples=150)
def test_members_are_what_each_sub_rule_concludes(case):
    graph, (rule,) = case
    engine = open_engine(graph)
    relation = graph.relation_id(str(rule.head.relation))
    entities = range(len(graph.entities))
    asked = [(s, relation, o) for s, o in product(entities, entities)]
    groups = groups_of(0, rule, kept_masks([rule])[0])
    for group, found in zip(groups, members(engine, groups, as_rows(asked)), strict=True):
        for column, kept in enumerate(group.masks):
            expected = set(brute_force.conclusions(sub_rule(rule, kept), graph))
            own = found.of(np.full(len(asked), column))
            assert {t for t, is_member in zip(asked, own, strict=True) if is_member} == expected


def test_the_sub_rules_of_a_diamond_conclude_what_they_should_on_a_graph_with_loops():
    graph = random_graph(1, 6, 60)
    rule = parse_rule(DIAMOND)
    engine, relation = open_engine(graph), graph.relation_id("Q")
    asked = as_rows((s, relation, o) for s, o in product(range(6), range(6)))
    groups = groups_of(0, rule, kept_masks([rule])[0])
    found = members(engine, groups, asked)
    assert [len(group.masks) for group in groups] == [2, 8, 8, 64, 64, 64, 64, 64, 64, 63]
    assert sum(len(known.loose) for known in found) > 50, "some conclude what others do not"
    for group, known in zip(groups, found, strict=True):
        for column, kept in enumerate(group.masks):
            own = known.of(np.full(len(asked), column))
            assert np.array_equal(own, engine.derives([sub_rule(rule, kept)], asked)), sub_rule(rule, kept)


# -- both protocols ---------------------------------------------------------------------------------


@given(case=programs(), protocol=st.sampled_from(["paper", "sound"]), k2=st.integers(1, 20))
@settings(max_examples=100)
def test_query_guided_negatives_are_what_the_definition_allows(case, protocol, k2):
    context = context_of(*case, k2=k2, protocol=protocol)
    found = query_guided(context)
    masks = kept_masks(context.rules)
    taken: set = set()
    for split, triples in found.splits.items():
        drawn = as_set(triples)
        origins = found.origins[split]
        assert np.array_equal(triples, as_rows(drawn)), "sorted and distinct"
        assert len(origins) == len(triples)
        assert not drawn & taken
        assert not drawn & definitions.true_triples(context)
        taken |= drawn
        allowed = found.asked[split] * sum(map(bool, masks)) // len(masks)
        assert (origins.source == SUB_RULE).sum() <= allowed
        short = len(drawn) < found.asked[split]
        assert any(note.startswith(f"{split} has {len(drawn)} ") for note in found.notes) == short
        corrupted = definitions.position_candidates(context, split)
        for i, triple in enumerate(map(tuple, triples.tolist())):
            if origins.source[i] == SUB_RULE:
                assert origins.kept[i] in masks[origins.rule[i]]
                kept = sub_rule(context.rules[origins.rule[i]], int(origins.kept[i]))
                assert triple in brute_force.conclusions(kept, context.kg)
            else:
                assert origins.source[i] == POSITION
                assert origins.rule[i] == -1
                assert triple in corrupted


def test_without_complex_rules_all_negatives_come_from_corruption():
    graph = random_graph(2, 60, 300)
    for protocol in ("paper", "sound"):
        context = context_of(graph, [parse_rule("(x,R,y), (y,S,z) -> (x,Q,z)")], protocol=protocol)
        found = query_guided(context)
        assert found.splits.sizes == context.positives.sizes
        assert (found.origins["train"].source == POSITION).all()
        assert not found.notes


@pytest.mark.parametrize("protocol", ["paper", "sound"])
def test_sub_rules_get_the_fraction_of_complex_rules_rounded_down(protocol):
    program = ["(x,R,y) -> (y,Q,x)", "(x,S,y) -> (x,P,y)", "(x,R,y), (x,S,z), (y,T,w) -> (x,Q,y)"]
    context = context_of(random_graph(3, 30, 200), list(map(parse_rule, program)), k2=20, protocol=protocol)
    found = query_guided(context)
    assert found.splits.sizes == context.positives.sizes
    for split in SPLITS:
        assert (found.origins[split].source == SUB_RULE).sum() == found.asked[split] // 3


@pytest.mark.parametrize("protocol", ["paper", "sound"])
@pytest.mark.parametrize("few", [None, 0])
def test_both_engines_draw_the_same_negatives(protocol, few, monkeypatch):
    if few is not None:
        monkeypatch.setattr(query_sound, "MANY", few)
        monkeypatch.setattr(query_pools, "_EFFORT", 64)
        monkeypatch.setattr(query_paper, "LARGE", few)
    program = [parse_rule(text) for text in (TRIANGLE, "(x,R,y), (y,S,z), (x,P,y) -> (x,T,z)")]
    graph = random_graph(4, 10, 80)
    found = [
        sample_negatives(context_of(graph, program, protocol=protocol, engine=engine), "qg")
        for engine in ("native", "duckdb")
    ]
    for split in SPLITS:
        assert np.array_equal(found[0].splits[split], found[1].splits[split])
        for column in ("source", "position", "rule", "kept"):
            assert np.array_equal(*(getattr(f.origins[split], column) for f in found))
    assert found[0].notes == found[1].notes


# -- paper ------------------------------------------------------------------------------------------


@given(case=programs(), large=st.sampled_from([0, 2**20]))
@settings(max_examples=100)
def test_the_minimal_sub_rules_conclude_all_that_r_minus_does(case, large):
    context = context_of(*case, protocol="paper")
    entities, relations = range(len(context.kg.entities)), range(len(context.kg.relations))
    asked = as_rows(product(entities, relations, entities))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_paper, "LARGE", large)
        found = asked[concluded(context.engine, undesired_parts(context), asked)]
    expected = {
        triple
        for _, _, rule in definitions.subrules(context.rules)
        for triple in brute_force.conclusions(rule, context.kg)
    }
    assert as_set(found) == expected


@given(case=programs(), large=st.sampled_from([0, 2**20]))
@settings(max_examples=60)
def test_each_split_gets_at_most_its_part_of_what_r_minus_concludes(case, large):
    context = context_of(*case, protocol="paper")
    candidates = definitions.undesired_conclusions(context)
    first, second = context.recipe.cuts(len(candidates))
    parts = dict(zip(SPLITS, (first, second - first, len(candidates) - second), strict=True))
    masks = kept_masks(context.rules)
    for wanted in ({"train": 7, "valid": 1, "test": 1}, {"train": 9999, "valid": 9999, "test": 9999}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(query_paper, "LARGE", large)
            found, notes = paper_share(context, masks, wanted)
        for split in SPLITS:
            assert len(found[split].triples) == min(wanted[split], parts[split])
            assert any(f" of {split} " in note for note in notes) == (parts[split] < wanted[split])


@pytest.mark.parametrize("large", [0, 2**20])
def test_paper_draws_are_uniform_over_what_r_minus_concludes(large, monkeypatch):
    monkeypatch.setattr(query_paper, "LARGE", large)
    program = [parse_rule("(x,R,y), (x,S,z), (y,S,z) -> (x,T,y)"), parse_rule("(x,R,y), (x,S,y) -> (x,R,y)")]
    context = context_of(random_graph(5, 8, 40, "RST"), program, protocol="paper")
    candidates = sorted(definitions.undesired_conclusions(context))
    assert 20 < len(candidates) < 60
    masks = kept_masks(program)
    counts = {split: Counter() for split in SPLITS}
    for seed in range(RUNS):
        context = replace(context, recipe=context.recipe.changed(seed=seed))
        found, _ = paper_share(context, masks, {"train": 8, "valid": 2, "test": 2})
        for split in SPLITS:
            counts[split].update(map(tuple, found[split].triples.tolist()))
    for split, per_run in {"train": 8, "valid": 2, "test": 2}.items():
        assert looks_uniform(counts[split], candidates, per_run)


def test_the_origin_under_paper_is_the_first_minimal_sub_rule_that_concludes_the_triple():
    program = [parse_rule("(x,R,y), (x,S,y), (y,T,y) -> (x,Q,y)")]
    graph = KnowledgeGraph.from_names(
        [("a", "R", "b"), ("a", "S", "b"), ("a", "S", "c"), ("c", "T", "c"), ("a", "Q", "a")]
    )
    context = context_of(graph, program, protocol="paper")
    found, _ = paper_share(context, kept_masks(program), {"train": 1, "valid": 0, "test": 1})
    names = {
        name: kept
        for split in SPLITS
        for name, kept in zip(context.kg.names(found[split].triples), found[split].origins.kept.tolist(), strict=True)
    }
    assert names == {("a", "Q", "b"): 0b001, ("a", "Q", "c"): 0b010}


def test_where_a_sub_rule_is_a_rule_the_longer_ones_are_undesired_still():
    program = [parse_rule("(x,R,y) -> (x,Q,y)"), parse_rule(TRIANGLE)]
    context = context_of(random_graph(6, 8, 60), program, protocol="paper")
    parts = undesired_parts(context)
    assert [(part.rule, part.kept) for part in parts] == [(1, 0b11), (1, 0b101), (1, 0b1001), (1, 0b110)]
    entities, relations = range(len(context.kg.entities)), range(len(context.kg.relations))
    asked = as_rows(product(entities, relations, entities))
    found = as_set(asked[concluded(context.engine, parts, asked)])
    assert found - definitions.everything(context) == definitions.undesired_conclusions(context)
    sound = query_guided(context_of(random_graph(6, 8, 60), program))
    by_sub_rule = sound.origins["train"].source == SUB_RULE
    assert by_sub_rule.any()
    assert not (sound.origins["train"].kept[by_sub_rule] & 1).any(), "(x,R,y) makes all of those true"


# -- sound ------------------------------------------------------------------------------------------


@given(case=programs(), wanted=st.tuples(*[st.integers(0, 40)] * 3))
@settings(max_examples=100)
def test_shares_are_equal_unless_candidates_run_out(case, wanted):
    context = context_of(*case)
    masks = kept_masks(context.rules)
    if not any(masks):
        return
    asked = dict(zip(SPLITS, wanted, strict=True))
    found, notes = sound_share(context, masks, asked)
    candidates = {
        (place, kept): truly_negative(context, place, kept) for place, own in enumerate(masks) for kept in own
    }
    taken: set = set()
    for number, split in enumerate(SPLITS):
        drawn = as_set(found[split].triples)
        assert len(drawn) == len(found[split].triples) <= asked[split]
        assert not drawn & taken
        taken |= drawn
        shares = pairs_of(found, split)
        most = max(shares.values(), default=0)
        for pair, own in candidates.items():
            part = parts_of(context, own)[number]
            assert shares[pair] <= len(part)
            if part - taken:
                assert shares[pair] >= most - 1
                assert len(drawn) == asked[split]
        short = len(drawn) < asked[split]
        assert any(f" of {split} that" in note for note in notes) == short
    without = sum(not own for own in candidates.values())
    told = f"{without} of the {len(candidates)} sub-rules"
    assert any(note.startswith(told) for note in notes) == (without > 0)


@given(case=programs(), wanted=st.tuples(*[st.integers(0, 20)] * 3))
@settings(max_examples=60)
def test_drawn_candidates_are_those_of_the_pair_as_well(case, wanted):
    context = context_of(*case)
    masks = kept_masks(context.rules)
    if not any(masks):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_sound, "MANY", 0)
        patch.setattr(query_pools, "_EFFORT", 256)
        found, _ = sound_share(context, masks, dict(zip(SPLITS, wanted, strict=True)))
    taken: set = set()
    for split, count in zip(SPLITS, wanted, strict=True):
        drawn = list(map(tuple, found[split].triples.tolist()))
        assert len(drawn) <= count
        assert not set(drawn) & taken
        taken |= set(drawn)
        origins = found[split].origins
        for triple, place, kept in zip(drawn, origins.rule.tolist(), origins.kept.tolist(), strict=True):
            assert triple in truly_negative(context, place, kept)


@pytest.mark.parametrize("few", [None, 0])
def test_draws_for_a_pair_are_uniform_over_its_candidates(few, monkeypatch):
    if few is not None:
        monkeypatch.setattr(query_sound, "MANY", few)
    rule = parse_rule("(x,R,y), (y,U,y), x != z, (y,R,z) -> (x,S,y)")
    names = [f"e{i}" for i in range(8)]
    links = [(a, "R", b) for i, a in enumerate(names) for b in names[i % 3 :: 2]]
    graph = KnowledgeGraph.from_names([*links, ("e0", "U", "e0"), ("e1", "U", "e1"), ("e0", "S", "e2")])
    context = context_of(graph, [rule])
    pair = (0, 0b0001)
    masks = [[pair[1]]]  # one sub-rule only: (x,R,y) -> (x,S,y)
    candidates = sorted(truly_negative(context, *pair))
    assert 15 < len(candidates) < 30
    counts = {split: Counter() for split in SPLITS}
    for seed in range(RUNS):
        context = replace(context, recipe=context.recipe.changed(seed=seed))
        found, _ = sound_share(context, masks, {"train": 5, "valid": 1, "test": 2})
        for split in SPLITS:
            counts[split].update(map(tuple, found[split].triples.tolist()))
    for split, per_run in {"train": 5, "valid": 1, "test": 2}.items():
        assert looks_uniform(counts[split], candidates, per_run)


def test_which_pairs_get_one_where_not_all_can_is_random():
    graph = KnowledgeGraph.from_names(
        [(f"s{i}", relation, f"o{relation}{i}") for relation in "ABCDE" for i in range(30)] + [("a", "Q", "b")]
    )
    rule = parse_rule("(x,A,y), (x,B,y), (x,C,y), (x,D,y), (x,E,y) -> (x,Q,y)")
    masks = [[1 << i for i in range(5)]]  # those that keep a single atom
    context = context_of(graph, [rule])
    served: Counter = Counter()
    for seed in range(RUNS):
        context = replace(context, recipe=context.recipe.changed(seed=seed))
        found, _ = sound_share(context, masks, {"train": 0, "valid": 2, "test": 0})
        shares = pairs_of(found, "valid")
        assert sorted(shares.values()) == [1, 1]
        served.update(shares)
    assert looks_uniform(served, [(0, kept) for kept in masks[0]], 2)


@pytest.mark.parametrize(
    ("size", "expected"), [(0, (0, 0, 0)), (1, (1, 0, 0)), (2, (1, 0, 1)), (3, (2, 0, 1)), (10, (8, 1, 1))]
)
def test_a_scarce_pair_divides_its_candidates_by_the_ratio(size, expected):
    links = [(f"s{i}", "R", f"o{i}") for i in range(size)]
    graph = KnowledgeGraph.from_names([*links, ("a", "R", "b"), ("b", "U", "b"), ("a", "S", "b")])
    rule = parse_rule("(x,R,y), (y,U,y) -> (x,S,y)")
    context = context_of(graph, [rule])
    found, _ = sound_share(context, kept_masks([rule]), dict.fromkeys(SPLITS, 100))
    assert tuple(len(found[split].triples) for split in SPLITS) == expected


def test_pairs_that_share_all_their_candidates_leave_some_for_test():
    links = [(f"s{i}", "R", f"o{i}") for i in range(10)]
    graph = KnowledgeGraph.from_names([*links, ("a", "R", "b"), ("b", "U", "b"), ("a", "S", "b")])
    rule = parse_rule("(x,R,y), (y,U,y), x != y -> (x,S,y)")
    context = context_of(graph, [rule])
    masks = kept_masks([rule])
    assert sum(len(truly_negative(context, 0, kept)) == 10 for kept in masks[0]) == 2
    found, _ = sound_share(context, masks, {"train": 100, "valid": 1, "test": 1})
    assert {split: len(found[split].triples) for split in SPLITS} == {"train": 8, "valid": 1, "test": 1}


def test_rare_candidates_in_a_wide_base_are_found_by_listing_them(monkeypatch):
    monkeypatch.setattr(query_sound, "MANY", 100)
    # Pairs x, y with a common z are rare among all subjects of S and T.
    links = [(f"a{i}", "S", f"m{i}") for i in range(60)] + [(f"b{i}", "T", f"m{i}") for i in range(60)]
    graph = KnowledgeGraph.from_names([*links, ("a0", "R", "b0")])
    rule = parse_rule("(x,R,y), (x,S,z), (y,T,z) -> (x,Q,y)")
    context = context_of(graph, [rule])
    kept = 0b110
    expected = truly_negative(context, 0, kept)
    assert len(expected) == 59
    found, _ = sound_share(context, [[kept]], {"train": 59, "valid": 0, "test": 0})
    assert as_set(found["train"].triples) <= expected
    assert len(found["train"].triples) == 47


def test_a_negative_of_a_diamond_may_be_wrong_only_because_an_inequality_is_missing():
    """Where two corners coincide, only sub-rules without that inequality conclude the triple."""
    graph = KnowledgeGraph.from_names(
        [("a", "R", "b"), ("a", "S", "b"), ("b", "T", "w"), ("b", "P", "w"), ("k", "Q", "k")]
    )
    rule = parse_rule(DIAMOND)
    context = context_of(graph, [rule])
    same = rule.body.index(Inequality(Variable("y"), Variable("z")))
    whole = (1 << len(rule.body)) - 1
    masks = [[mask for mask in kept_masks([rule])[0] if mask & 0b1111 == 0b1111]]
    assert len(masks[0]) == 63
    found, notes = sound_share(context, masks, {"train": 1, "valid": 0, "test": 0})
    assert context.kg.names(found["train"].triples) == [("a", "Q", "b")]
    assert not int(found["train"].origins.kept[0]) >> same & 1
    assert truly_negative(context, 0, whole & ~(1 << same)) == as_set(found["train"].triples)
    assert any(note.startswith("31 of the 63 sub-rules") for note in notes), "those that keep y != z"


@pytest.mark.data
def test_on_wn18rr_every_negative_of_a_sub_rule_is_concluded_by_it_and_not_derivable(data_folder):
    from loginfer.benchmark.construction.pipeline import foundation

    recipe = Recipe(str(data_folder / "WN18RR.tar.gz"), ("triangle", "hierarchy"), k1=3, k2=300, negatives=("qg",))
    with foundation(recipe) as laid:
        context = laid.context
        found = query_guided(context)
        assert found.splits.sizes == context.positives.sizes
        masks = kept_masks(context.rules)
        for split, triples in found.splits.items():
            origins = found.origins[split]
            assert context.truth.negative(triples).all()
            assert (origins.source == SUB_RULE).sum() == len(triples) // 2
            for place, kept in {
                (r, k) for r, k in zip(origins.rule.tolist(), origins.kept.tolist(), strict=True) if r >= 0
            }:
                assert kept in masks[place]
                own = triples[(origins.rule == place) & (origins.kept == kept)]
                assert context.engine.derives([sub_rule(context.rules[place], kept)], own).all()


def test_what_one_pair_cannot_fill_goes_to_those_that_have_least():
    links = [(f"s{i}", relation, f"o{relation}{i}") for relation in "CDE" for i in range(30)]
    graph = KnowledgeGraph.from_names([*links, ("s", "A", "o"), ("s", "B", "o"), ("a", "Q", "b")])
    rule = parse_rule("(x,A,y), (x,B,y), (x,C,y), (x,D,y), (x,E,y) -> (x,Q,y)")
    masks = [[1 << i for i in range(5)]]  # two of them conclude the same triple only
    for seed in range(20):
        context = context_of(graph, [rule])
        context = replace(context, recipe=context.recipe.changed(seed=seed))
        found, _ = sound_share(context, masks, {"train": 4, "valid": 0, "test": 0})
        assert sorted(pairs_of(found, "train").values()) == [1, 1, 1, 1]
