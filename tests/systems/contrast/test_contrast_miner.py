"""Contrast finds planted rules by their negatives, and keeps to the interface of systems."""

import dataclasses

import numpy as np
import pytest
from tests.support.planted_rules import PLANTED, planted
from tests.support.rule_brute_force import scored_rules

from loginfer.benchmark.benchmark import Benchmark, NegativeSet, Splits
from loginfer.engine import open_engine
from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation import MetricOptions
from loginfer.evaluation.evaluating import wrap_system
from loginfer.evaluation.rule_recovering import read_mined
from loginfer.evaluation.runs import run_system
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule
from loginfer.logic.canonical import equivalent
from loginfer.logic.rule_files import format_rules, parse_rules
from loginfer.systems.contrast.contrast import Contrast
from loginfer.systems.interface import training_view
from loginfer.systems.rules.external import External
from loginfer.systems.rules.mined import MinedRules, RuleTable, as_benchmark


@pytest.fixture(scope="module")
def fitted():
    """Return the scorer and the benchmark of each planted rule, made when first asked for."""
    known = {}

    def get(name):
        if name not in known:
            benchmark = planted(PLANTED[name])
            known[name] = Contrast().fit(training_view(benchmark, "qg")), benchmark
        return known[name]

    return get


def balanced_accuracy(scorer, benchmark):
    right = scorer.score(benchmark.positives.test) > 0
    wrong = scorer.score(benchmark.negatives["qg"].splits.test) > 0
    return (right.mean() + 1 - wrong.mean()) / 2


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_rule_is_found_and_weighs_most(name, fitted):
    scorer, _ = fitted(name)
    rule = parse_rule(PLANTED[name])
    assert equivalent(scorer.rules[0].rule, rule), [str(r.rule) for r in scorer.rules]
    best = scorer.rules[0]
    assert best.confidence == best.correct / best.predictions == 1


@pytest.mark.parametrize("name", PLANTED)
def test_negatives_that_witness_sub_rules_are_told_from_positives(name, fitted):
    scorer, benchmark = fitted(name)
    assert balanced_accuracy(scorer, benchmark) > 0.98


@pytest.mark.parametrize("name", PLANTED)
def test_candidates_get_the_scores_of_their_triples(name, fitted):
    scorer, benchmark = fitted(name)
    triples = np.vstack([benchmark.positives.test[:6], benchmark.negatives["qg"].splits.test[:6]])
    sizes = {"subject": len(benchmark.graph.entities), "relation": len(benchmark.graph.relations)}
    for column, position in enumerate(("subject", "relation", "object")):
        candidates = np.arange(sizes.get(position, sizes["subject"]), dtype=np.int32)[::-1]
        found = scorer.score_candidates(triples, position, candidates)
        for row, triple in enumerate(triples):
            several = np.tile(triple, (len(candidates), 1))
            several[:, column] = candidates
            assert np.array_equal(found[row], scorer.score(several)), (position, triple)


def test_a_score_is_the_intercept_and_the_weights_of_the_rules_that_explain_it(fitted):
    scorer, benchmark = fitted("triangle")
    engine = open_engine(benchmark.graph)
    intercept = float(dict(scorer.rules[0].extra)["intercept"])
    for triple in np.vstack([benchmark.positives.test[:5], benchmark.negatives["qg"].splits.test[:5]]):
        why = scorer.explain(tuple(triple))
        assert scorer.score(triple[None])[0] == pytest.approx(intercept + sum(firing.confidence for firing in why))
        derived = [s.rule for s in scorer.rules if engine.derives([s.rule], triple[None])[0]]
        assert [firing.rule.rule for firing in why] == derived


def test_two_runs_give_the_same_bytes(fitted):
    scorer, benchmark = fitted("diamond")
    again = Contrast().fit(training_view(benchmark, "qg"))
    for name, array in scorer.arrays().items():
        assert np.array_equal(array, again.arrays()[name])


def test_rules_and_provenance_are_never_read():
    class Sealed(Benchmark):
        @property
        def rules(self):
            raise AssertionError("rules were read")

        @property
        def provenance(self):
            raise AssertionError("provenance was read")

    seen = training_view(planted(PLANTED["inversion"]), "qg")
    sealed = object.__new__(Sealed)
    for field in dataclasses.fields(Benchmark):
        if field.name not in ("rules", "provenance"):
            object.__setattr__(sealed, field.name, getattr(seen, field.name))
    assert Contrast().fit(sealed).rules


def test_what_is_stored_comes_back_with_the_same_scores(fitted):
    for name in ("intersection", "typed", "type head"):
        scorer, benchmark = fitted(name)
        back = Contrast().restore(benchmark, scorer.arrays())
        assert back.rules == scorer.rules
        assert np.array_equal(back.score(benchmark.positives.test), scorer.score(benchmark.positives.test))


def test_rules_from_a_file_score_like_those_that_were_mined(fitted):
    scorer, benchmark = fitted("triangle")
    read = parse_rules(format_rules(scorer.rules), "arrow")
    assert read.rules == scorer.rules
    again = Contrast().scorer(benchmark, MinedRules(RuleTable.empty(), read.rules))
    test = benchmark.negatives["qg"].splits.test
    assert np.array_equal(again.score(test), scorer.score(test))
    with pytest.raises(InputError, match="no weight"):
        Contrast().scorer(benchmark, MinedRules(RuleTable.empty(), (dataclasses.replace(read.rules[0], extra=()),)))


def test_mining_gives_the_rules_so_far_at_any_time():
    benchmark = planted(PLANTED["hierarchy"])
    mining = Contrast().begin(training_view(benchmark, "qg"))
    assert len(mining.rules()) == 0
    while mining.advance():
        pass
    assert mining.progress()[1] == mining.progress()[2]
    assert mining.rules().others == Contrast().mine(training_view(benchmark, "qg")).others != ()
    assert mining.advance() is False


# -- patterns of the user --------------------------------------------------------------------------


LONG = "(x,likes,z), (z,knows,w), (w,likes,v), (v,knows,y) -> (x,helps,y)"


def test_a_pattern_of_the_user_is_learnt_beyond_the_own_shapes():
    benchmark = planted(LONG, people=150, edges=2)
    seen = training_view(benchmark, "qg")
    pattern = "(x,_R,z), (z,_S,w), (w,_R,v), (v,_S,y) -> (x,_T,y)"
    scorer = Contrast(patterns=f"symmetry; {pattern}").fit(seen)
    assert any(equivalent(scored.rule, parse_rule(LONG)) for scored in scorer.rules)
    assert balanced_accuracy(scorer, benchmark) > balanced_accuracy(Contrast().fit(seen), benchmark)
    test = benchmark.positives.test[:4]
    everyone = np.arange(len(benchmark.graph.entities), dtype=np.int32)
    for position, column in (("subject", 0), ("object", 2)):
        found = scorer.score_candidates(test, position, everyone)
        assert np.array_equal(found[np.arange(4), test[:, column]], scorer.score(test))
    back = Contrast().restore(benchmark, scorer.arrays())
    assert np.array_equal(back.score(test), scorer.score(test))


def test_positives_do_not_explain_themselves_through_a_pattern_of_the_user():
    """Every positive of h is derived from itself by this pattern, and no other triple is."""
    benchmark = planted(PLANTED["inversion"])
    scorer = Contrast(patterns="(x,_R,y), (x,_R,z) -> (x,_R,y)").fit(training_view(benchmark, "qg"))
    assert not any(equivalent(s.rule, parse_rule("(x,helps,y), (x,helps,z) -> (x,helps,y)")) for s in scorer.rules)


def test_an_unknown_pattern_is_told_by_its_name():
    with pytest.raises(UnknownNameError, match="diamnd"):
        Contrast(patterns="diamnd").begin(planted(PLANTED["symmetry"]))


# -- negatives that are missing --------------------------------------------------------------------


def test_a_benchmark_without_negatives_is_refused_with_another_miner():
    graph = KnowledgeGraph.from_names([("a", "r", "b")])
    with pytest.raises(InputError, match="learns from negatives") as error:
        Contrast().fit(as_benchmark(graph, "bare"))
    assert "--miner exact" in str(error.value)


def test_a_head_without_negatives_is_told_from_random_pairs():
    benchmark = planted(PLANTED["hierarchy"])
    graph, negatives = benchmark.graph, benchmark.negatives["qg"].splits
    other = graph.relation_id("likes")
    # Negatives of another relation only.
    moved = negatives.train.copy()
    moved[:, 1] = other
    moved = moved[~np.isin(graph.keys.pack(moved), graph.packed)]
    empty = np.empty((0, 3), dtype=np.int32)
    changed = dataclasses.replace(benchmark, negatives={"qg": NegativeSet("qg", Splits(moved, empty, empty))})
    scorer = Contrast().fit(training_view(changed, "qg"))
    assert any(equivalent(s.rule, parse_rule(PLANTED["hierarchy"])) for s in scorer.rules)
    assert (scorer.score(benchmark.positives.test) > 0).mean() > 0.95


def test_a_head_that_nobody_asks_about_scores_below_all_others(fitted):
    scorer, benchmark = fitted("symmetry")
    unasked = benchmark.positives.test.copy()
    unasked[:, 1] = benchmark.graph.relation_id("knows")
    assert scorer.score(unasked).max() < scorer.score(benchmark.negatives["qg"].splits.test).min()


def test_the_rules_of_a_run_can_be_read_for_the_analysis(tmp_path):
    text = PLANTED["composition"]
    benchmark = planted(text)
    wanted = MetricOptions(protocols=("given",), diagnosis=False)
    run_system(wrap_system(Contrast(), name="contrast"), benchmark, "qg", wanted, tmp_path / "run")
    mined, notes = read_mined(tmp_path / "run", benchmark)
    rules, _ = scored_rules(mined, benchmark.graph)
    assert any(equivalent(parse_rule(text), found.rule) for found in rules)
    assert notes == []


def test_a_file_of_weighted_rules_is_applied_as_contrast_applies_them(fitted, tmp_path):
    scorer, benchmark = fitted("triangle")
    path = tmp_path / "weighted.rules"
    unknown = "3\t3\t1.0\t(x,unheard,y) -> (x,helps,y) # weight=1.0 intercept=0.5\n"
    path.write_text(format_rules(scorer.rules) + unknown)
    external = External(rules=str(path))
    read = external.fit(training_view(benchmark, "qg"))
    triples = np.vstack([benchmark.positives.test, benchmark.negatives["qg"].splits.test])
    assert np.array_equal(read.score(triples), scorer.score(triples))
    again = external.restore(benchmark, read.arrays())
    assert np.array_equal(again.score(triples), read.score(triples))
