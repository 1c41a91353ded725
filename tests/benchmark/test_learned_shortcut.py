"""How well one does without a rule: the learned shortcut, single features, skeletons, and whether splits are alike."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score
from tests.support.made_up_benchmarks import family
from threadpoolctl import threadpool_limits

from loginfer.benchmark import build
from loginfer.benchmark.benchmark import Benchmark, BenchmarkRule, NegativeSet, Provenance, Splits
from loginfer.benchmark.learned_shortcut import (
    LEARNED,
    SIMPBL,
    SKELETON,
    ShortcutDecisions,
    best_shortcut,
    cross_fitted,
    forgotten,
    shortcut_results,
    split_difference,
    training_triples,
)
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.shortcut_features import FEATURES, FeatureBattery
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule

pytestmark = pytest.mark.usefixtures("all_rounds")

ENTITIES = 150


def planted(choose, *, train=300, test=120, known=True):
    """Return a benchmark over a random graph whose conclusions are pairs that `choose` gives.

    `choose` gets the edges and random pairs that are no edges, and returns positives and negatives, of a relation `h`
    each; `known` says whether the benchmark tells conclusions from K.
    """
    draw = np.random.default_rng(3)
    pairs = draw.permutation(ENTITIES * ENTITIES)
    pairs = np.stack([pairs // ENTITIES, pairs % ENTITIES], axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    edges, others = pairs[:1500], pairs[1500:]
    names = [(f"e{x:03}", "edge", f"e{y:03}") for x, y in edges.tolist()]
    graph = KnowledgeGraph.from_names(names, type_predicate="").with_names(relations=["h"])
    edge, h = graph.relation_id("edge"), graph.relation_id("h")
    assert graph.entities.get("e007") == 7

    def split(pairs):
        triples = np.insert(pairs, 1, h, axis=1).astype(np.int32)
        parts = np.split(triples[: train + 2 * test], [train, train + test])
        return Splits(*(part[np.lexsort(part.T[::-1])] for part in parts))

    positives, negatives = map(split, choose(edges, others))
    whole = graph.with_triples(np.vstack([np.insert(edges, 1, edge, axis=1), positives.train]).astype(np.int32))
    distributed = np.vstack([positives.train, positives.valid, positives.test])
    order = np.lexsort(distributed.T[::-1])
    none = np.empty(0, dtype=np.int64)
    provenance = Provenance(
        distributed[order], np.repeat([0, 1, 2], [train, test, test])[order].astype(np.int8),
        none, none.astype(np.int32), np.zeros(1, dtype=np.int64), none.astype(np.int32),
    )  # fmt: skip
    return Benchmark(
        "planted",
        whole,
        Splits(whole.triples, positives.valid, positives.test),
        {"given": NegativeSet("given", negatives)},
        provenance=provenance if known else None,
    )


def by_edges(edges, others):
    return edges, others


def by_popularity(edges, others):
    degree = np.bincount(edges[:, 0], minlength=ENTITIES)[others[:, 0]]
    return others[degree > 11], others[degree < 9]


def by_nothing(_, others):
    return others[:1000], others[1000:2000]


@pytest.mark.parametrize(
    ("choose", "feature"), [(by_edges, "parallel"), (by_edges, "adjacent"), (by_popularity, "subject-out-degree")]
)
@pytest.mark.parametrize("known", [True, False])
def test_a_planted_shortcut_is_found(choose, feature, known):
    results = shortcut_results(planted(choose, known=known), "given")
    assert list(results) == [LEARNED, SIMPBL, *(name for name, f in FEATURES.items() if f.group != "types")]
    assert results[feature].balanced_accuracy > 0.95
    assert results[LEARNED].balanced_accuracy > 0.95
    assert results[LEARNED].interval[0] > 0.9
    assert results["relation-name"].balanced_accuracy == 0.5


def without_valid(made):
    """Return a benchmark without its valid."""
    none = made.positives.valid[:0]
    positives, negatives = (Splits(s.train, none, s.test) for s in (made.positives, made.negatives["given"].splits))
    return Benchmark(
        made.name, made.graph, positives, {"given": NegativeSet("given", negatives)}, provenance=made.provenance
    )


@pytest.mark.parametrize(("choose", "share"), [(by_edges, 1.0), (by_popularity, 1.0), (by_nothing, 0.5)])
def test_without_valid_thresholds_come_from_the_conclusions_of_train(choose, share):
    made = without_valid(planted(choose))
    results = shortcut_results(made, "given")
    assert list(results) == list(shortcut_results(planted(choose), "given"))
    assert results[LEARNED].valid_accuracy is None
    assert results[LEARNED].balanced_accuracy == pytest.approx(share, abs=0.1)
    assert len(results[LEARNED].scores) == 2 * 120


def test_the_feature_that_carries_the_learned_shortcut_is_named():
    features = shortcut_results(planted(by_popularity), "given")[LEARNED].features
    assert next(iter(features)) == "subject-out-degree"
    assert features["subject-out-degree"] > 0.3
    assert list(features.values()) == sorted(features.values(), reverse=True)


@pytest.mark.parametrize("known", [True, False])
def test_without_a_shortcut_nobody_does_better_than_chance(known):
    results = shortcut_results(planted(by_nothing, known=known), "given")
    low, high = results[LEARNED].interval
    assert low < 0.5 < high
    assert abs(results[LEARNED].balanced_accuracy - 0.5) < 0.1
    assert sum(abs(result.balanced_accuracy - 0.5) < 0.1 for result in results.values()) >= len(results) - 1


def test_only_two_features_together_may_tell():
    """Edges from popular subjects and pairs without an edge from others are true, the rest is not."""

    def choose(edges, others):
        popular = np.bincount(edges[:, 0], minlength=ENTITIES) > 10
        parts = [[pairs[popular[pairs[:, 0]] == which] for which in (True, False)] for pairs in (edges, others)]
        both = [(parts[0][0], parts[1][1]), (parts[0][1], parts[1][0])]
        return [np.stack([a[:540], b[:540]], axis=1).reshape(-1, 2) for a, b in both]

    results = shortcut_results(planted(choose), "given")
    assert results["adjacent"].balanced_accuracy < 0.6
    assert results["subject-out-degree"].balanced_accuracy < 0.6
    assert results[LEARNED].balanced_accuracy > 0.95


def test_a_conclusion_does_not_see_itself_nor_others():
    """Features are over K: conclusions of train are no edges for those of test."""
    made = planted(by_nothing)
    assert len(made.kg) == 1500
    results = shortcut_results(made, "given")
    assert not results["reverse"].scores.max() > 1
    assert not results["subject-as-subject"].scores.any()


def test_it_is_fitted_on_conclusions_and_on_negatives_with_their_heads():
    made = planted(by_edges)
    odd = made.negatives["given"].splits.train.copy()
    odd[::2, 1] = made.graph.relation_id("edge")
    splits = made.negatives["given"].splits
    negatives = NegativeSet("given", Splits(odd, splits.valid, splits.test))
    made = Benchmark(made.name, made.graph, made.positives, {"given": negatives}, provenance=made.provenance)
    conclusions, against = training_triples(made, "given")
    assert sorted(map(tuple, conclusions.tolist())) == list(
        map(tuple, made.provenance.triples[made.provenance.split == 0].tolist())
    )
    assert sorted(map(tuple, against.tolist())) == sorted(map(tuple, odd[1::2].tolist()))


@pytest.fixture(scope="module")
def small():
    """Hierarchies and compositions of a random graph, with negatives of three methods."""
    draw = np.random.default_rng(5)
    names = {(f"e{a}", f"r{r}", f"e{b}") for a, r, b in draw.integers(0, (60, 5, 60), size=(700, 3))}
    graph = KnowledgeGraph.from_names(sorted(names), type_predicate="")
    methods = ("pa", "nm")
    return build(Recipe("small", ("composition",), k1=3, k2=80, negatives=methods, ratio="6:2:2"), graph)


def test_figures_are_those_of_scikit_learn(small):
    truth = np.repeat([1, 0], [len(small.positives.test), len(small.negatives["pa"].splits.test)])
    for result in shortcut_results(small, "pa").values():
        said = np.concatenate([result.decisions.positive, result.decisions.negative])
        assert result.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, said))
        assert result.interval[0] <= result.balanced_accuracy <= result.interval[1]
        plain = result.as_dict()
        assert plain["accuracy"] == pytest.approx((said == truth).mean())
        assert ("features" in plain) == (result.name == LEARNED)


def test_the_number_of_threads_changes_nothing(small):
    with threadpool_limits(2):
        several = shortcut_results(small, "nm")
    with threadpool_limits(1):
        single = shortcut_results(small, "nm")
    for name, result in several.items():
        assert np.array_equal(result.scores, single[name].scores)
        assert result.as_dict() == single[name].as_dict()


def test_many_heads_are_numbers_and_no_categories():
    values = np.stack([np.arange(600) // 2, np.arange(600) % 2], axis=1).astype(np.float32)
    truth = values[:, 1] == 1
    assert ((cross_fitted(("relation-name", "reverse"), values, truth, 5) > 0) == truth).all()
    assert not ((cross_fitted(("relation-name",), values[:, :1], truth, 5) > 0) == truth).all()


def test_without_test_nothing_and_without_valid_only_what_needs_no_fitting():
    assert list(shortcut_results(family(valid=False), "pa")) == [SKELETON, SIMPBL]
    made = family()
    none = Splits(made.positives.train, made.positives.valid, made.positives.test[:0])
    made = Benchmark(made.name, made.graph, none, made.negatives, made.rules)
    assert shortcut_results(made, "pa") == {}
    assert best_shortcut({}) is None
    assert forgotten(made, "pa") == ()


def test_the_best_shortcut_is_the_learned_one_or_stands_for_it(small):
    results = shortcut_results(small, "pa")
    assert best_shortcut(results).name == LEARNED
    few = shortcut_results(family(), "pa")
    assert LEARNED not in few
    assert best_shortcut(few).balanced_accuracy == max(result.balanced_accuracy for result in few.values())


# -- intervals -------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 60), st.randoms(use_true_random=False))
def test_an_interval_holds_the_figure_and_shrinks_with_more_triples(positives, negatives, draw):
    sides = [np.array([draw.random() < 0.7 for _ in range(size)]) for size in (positives, negatives)]
    once, often = ShortcutDecisions(*sides), ShortcutDecisions(*(np.tile(side, 9) for side in sides))
    (low, high), (lower, higher) = once.interval, often.interval
    assert 0 <= low <= once.balanced_accuracy <= high <= 1
    assert higher - lower < high - low


def test_an_interval_holds_the_truth_as_often_as_it_says():
    draw, inside = np.random.default_rng(0), 0
    for _ in range(2000):
        low, high = ShortcutDecisions(draw.random(80) < 0.9, draw.random(50) < 0.4).interval
        inside += low <= (0.9 + 0.6) / 2 <= high
    assert 0.93 < inside / 2000 < 0.97


def test_with_equal_shares_it_is_that_of_wilson_over_the_root_of_two():
    """Both sides have the same interval; the mean of two is narrower by the root of two."""
    side = np.arange(40) < 20
    low, high = ShortcutDecisions(side, side).interval
    z = 1.959964
    half = z * math.sqrt(0.25 / 40 + (z / 80) ** 2) / (1 + z * z / 40)
    assert (low, high) == pytest.approx((0.5 - half / math.sqrt(2), 0.5 + half / math.sqrt(2)), abs=1e-6)


# -- knowing all but one relation, and splits -------------------------------------------------------


def test_who_forgets_one_relation_is_wrong_where_only_that_one_is():
    rule = parse_rule("(x,likes,y), (y,knows,z) -> (x,h,z)")
    ways = {"true": ("likes", "knows"), "first": ("c", "knows"), "second": ("likes", "c"), "both": ("c", "c")}
    names = []
    for way, (first, second) in ways.items():
        names += [(f"{way}{i}x", first, f"{way}{i}y") for i in range(4)]
        names += [(f"{way}{i}y", second, f"{way}{i}z") for i in range(4)]
    graph = KnowledgeGraph.from_names(names, type_predicate="").with_names(relations=["h"])

    def pairs(way, count):
        rows = [
            (graph.entity_id(f"{way}{i}x"), graph.relation_id("h"), graph.entity_id(f"{way}{i}z")) for i in range(count)
        ]
        return np.array(rows, dtype=np.int32)

    none = graph.triples[:0]
    wrong = np.vstack([pairs("first", 4), pairs("second", 2), pairs("both", 2)])
    made = Benchmark(
        "made",
        graph,
        Splits(graph.triples, none, pairs("true", 4)),
        {"given": NegativeSet("given", Splits(none, none, wrong))},
        (BenchmarkRule(rule, None, 4, 4, 4),),
    )
    assert forgotten(made, "given") == pytest.approx((1 - 4 / 16, 1 - 2 / 16))
    assert shortcut_results(made, "given")[SKELETON].balanced_accuracy == 0.5


def test_splits_that_differ_are_told_apart():
    alike = split_difference(planted(by_nothing), "given")
    assert set(alike) == {"negatives", "conclusions"}
    assert all(abs(value - 0.5) < 0.1 for value in alike.values())

    def choose(edges, others):
        return others[:1000], np.vstack([others[1000:1300], edges])

    different = split_difference(planted(choose), "given")
    assert different["negatives"] > 0.95
    assert abs(different["conclusions"] - 0.5) < 0.1


def test_splits_of_few_triples_or_without_provenance_are_not_compared():
    assert split_difference(planted(by_nothing, test=90), "given") == {}
    assert split_difference(planted(by_nothing, known=False), "given") == {}


def test_features_are_computed_over_the_graph_of_the_benchmark(small):
    """A single feature's scores are those of the battery over K."""
    battery = FeatureBattery(small.kg)
    triples = np.vstack([small.positives.test, small.negatives["pa"].splits.test])
    values = battery.values(triples)
    results = shortcut_results(small, "pa")
    for column, name in enumerate(battery.names):
        if name != "relation-name":
            assert np.array_equal(results[name].scores, values[:, column])
