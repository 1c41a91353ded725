"""Benchmarks of rules with negation: sound, the same with both engines, and told about as they are."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.support import brute_force

from loginfer.benchmark import Recipe, audit, build, explain_triple, load_benchmark, write_benchmark
from loginfer.benchmark.benchmark import SPLITS, Benchmark
from loginfer.benchmark.negatives import SOURCES
from loginfer.benchmark.program import Interplay, least_excluded, negation_notes, sub_rule
from loginfer.benchmark.shortcuts import OracleScorer, oracle_accuracy
from loginfer.engine import open_engine
from loginfer.errors import InputError
from loginfer.evaluation.breakdown import negative_kinds
from loginfer.kg import KnowledgeGraph
from loginfer.logic import Rule, parse_rule
from loginfer.logic.stratification import negated_predicates, predicate_of

METHODS = ("rb", "pa", "qg", "rc")


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    """A random graph in which about half of the constants lead on by each relation."""
    rng = np.random.default_rng(3)
    columns = [rng.integers(size, size=420) for size in (70, 9, 70)]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return KnowledgeGraph.from_names([(f"e{s}", f"r{r}", f"e{o}") for s, r, o in rows])


@pytest.fixture(scope="module")
def benchmark(graph) -> Benchmark:
    recipe = Recipe("random", ("nmhier", "composition"), k1=3, k2=40, negatives=METHODS, min_new=5)
    return build(recipe, graph)


def rules(*texts: str) -> list[Rule]:
    return [parse_rule(text) for text in texts]


def true_after(program, graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    return brute_force.one_step(program, brute_force.facts(graph))


def test_no_negative_follows_from_less_or_more(benchmark):
    program = benchmark.program
    true = true_after(program, benchmark.kg) | true_after(program, benchmark.everything)
    true |= brute_force.facts(benchmark.everything)
    checked = 0
    for made in benchmark.negatives.values():
        for triples in (made.splits[split] for split in SPLITS):
            assert not true.intersection(benchmark.graph.names(triples))
            checked += len(triples)
    assert checked > 1000


def test_the_oracle_is_right_about_every_test_triple(benchmark):
    oracle = OracleScorer(open_engine(benchmark.seen), benchmark.program)
    for method in METHODS:
        assert oracle_accuracy(oracle, benchmark, method)["accuracy"] == 1


def test_the_audit_finds_nothing_wrong(benchmark):
    found = audit(benchmark)
    assert found.ok
    assert found.oracle["qg"]["accuracy"] == 1


def test_selected_rules_do_not_negate_what_others_conclude(benchmark):
    negated = {p for rule in benchmark.program for p in negated_predicates(rule)}
    concluded = {predicate_of(rule.head) for rule in benchmark.program}
    assert negated
    assert not negated & concluded
    engine = open_engine(benchmark.kg)
    for known in benchmark.rules:
        excluded = least_excluded(engine, known.rule, known.new)
        assert excluded is None or excluded >= 5


def test_candidates_that_were_passed_over_say_why(benchmark):
    reasons = {known.reason for known in benchmark.passed_over if known.reason}
    assert any("which a selected rule" in reason for reason in reasons)
    for known in benchmark.passed_over:
        if known.reason and "negates" in known.reason and "selected rule concludes" in known.reason:
            concluded = {predicate_of(rule.head) for rule in benchmark.program}
            assert concluded.intersection(negated_predicates(known.rule))


def test_a_negation_that_excludes_little_is_passed_over(graph):
    recipe = Recipe("random", ("nmhier",), k1=2, k2=40, min_new=12, allow_fewer=True)
    made = build(recipe, graph)
    engine = open_engine(graph)
    few = [known for known in made.passed_over if known.reason and "excludes" in known.reason]
    assert few
    for known in few:
        excluded = least_excluded(engine, known.rule, known.new)
        assert excluded is not None
        assert excluded < 12
        assert f"excludes {excluded} new conclusion" in known.reason


def test_both_engines_give_the_same_bytes_and_what_is_read_back_is_the_same(graph, tmp_path):
    recipe = Recipe("random", ("nmhier", "(x,_R,y), (y,_S,z), not (x,_T,z) -> (x,_P,z)"), k1=2, k2=30,
                    negatives=METHODS, min_new=5, allow_fewer=True)  # fmt: skip
    contents = []
    for engine in ("native", "duckdb"):
        folder = tmp_path / engine
        write_benchmark(build(recipe, graph, engine=engine), folder)
        contents.append({str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()})
    assert contents[0].keys() == contents[1].keys()
    assert [name for name in contents[0] if contents[0][name] != contents[1][name]] == []
    loaded = load_benchmark(tmp_path / "native")
    assert any(rule.negations for rule in loaded.program)
    manifest = json.loads((tmp_path / "native" / "manifest.json").read_text())
    told = [entry for entry in manifest["passed_over"] if "reason" in entry]
    assert [known.reason for known in loaded.passed_over if known.reason] == [t["reason"] for t in told]
    assert told
    assert audit(tmp_path / "native").ok


def test_without_negation_nothing_new_is_written(graph, tmp_path):
    made = build(Recipe("random", ("symmetry",), k1=9, k2=30, min_new=47, allow_fewer=True), graph)
    write_benchmark(made, tmp_path / "made")
    manifest = json.loads((tmp_path / "made" / "manifest.json").read_text())
    assert manifest["passed_over"]
    assert all("reason" not in entry for entry in manifest["passed_over"])
    assert "passed over for concluding too little" in (tmp_path / "made" / "README.md").read_text()


# -- query-guided negatives ------------------------------------------------------------------------


def test_dropping_a_negation_is_witnessed_by_negatives(benchmark):
    made = benchmark.negatives["qg"]
    origins = made.origins["train"]
    by_sub_rule = np.flatnonzero(origins.source == SOURCES.index("sub-rule"))
    without = 0
    for place in by_sub_rule.tolist():
        rule = benchmark.program[int(origins.rule[place])]
        shorter = sub_rule(rule, int(origins.kept[place]))
        (names,) = benchmark.graph.names(made.splits.train[place])
        assert names in true_after([shorter], benchmark.kg)
        without += len(shorter.negations) < len(rule.negations)
    assert without
    names, _ = negative_kinds(benchmark, "qg")
    assert "sub-rule: 1 of 1 atoms, 0 of 1 negations" in names


def test_the_story_of_such_a_negative_names_what_should_not_be_there(benchmark):
    made = benchmark.negatives["qg"]
    origins = made.origins["train"]
    rule_with = [i for i, rule in enumerate(benchmark.program) if rule.negations]
    place = next(
        i for i in np.flatnonzero(origins.source == SOURCES.index("sub-rule")).tolist() if origins.rule[i] in rule_with
    )
    told = explain_triple(benchmark, made.splits.train[place].tolist())
    story = next(s for s in told.negatives if s.method == "qg")
    (denied,) = [part for part in story.parts if part.absent]
    assert denied.holds is False
    assert not denied.kept
    assert denied.triple in brute_force.facts(benchmark.kg)
    assert denied.triple[0] == story.witness["y"]
    assert denied.absent == (*denied.triple[:2], "?z")


def test_the_story_of_a_conclusion_names_what_is_not_there(benchmark):
    provenance = benchmark.provenance
    with_negation = [i for i, rule in enumerate(benchmark.program) if rule.negations]
    pair = np.flatnonzero(np.isin(provenance.rule, with_negation))[0]
    told = explain_triple(benchmark, provenance.triples[provenance.conclusion[pair]].tolist())
    found = next(d for d in told.derivations if d.rule in with_negation)
    subject, relation, end = found.absent[0]
    assert end == "?z"
    known = brute_force.facts(benchmark.kg)
    assert subject == found.witness["y"]
    assert not any(s == subject and r == relation for s, r, _ in known)


# -- what an audit finds ---------------------------------------------------------------------------


def test_a_witness_that_its_rule_denies_is_found(benchmark):
    rule = next(rule for rule in benchmark.program if rule.negations)
    relation = benchmark.graph.relation_id(str(rule.negations[0].atom.relation))
    provenance = benchmark.provenance
    pair = int(np.flatnonzero(provenance.rule == benchmark.program.index(rule))[0])
    object_ = provenance.values[provenance.offsets[pair] + 1]
    more = np.array([[object_, relation, object_]], dtype=np.int32)
    graph = benchmark.graph.with_triples(np.vstack([benchmark.positives.train, more]))
    positives = replace(benchmark.positives, train=graph.triples)
    broken = replace(benchmark, graph=graph, positives=positives)
    messages = [finding.message for finding in audit(broken).findings]
    assert any("have a triple in K that their rule denies" in message for message in messages)


# -- given rules -----------------------------------------------------------------------------------


def test_given_rules_must_be_stratified(graph):
    recipe = Recipe("random", rules=("(x,r0,y), not (y,r1,z) -> (x,r1,y)",))
    with pytest.raises(InputError, match="not stratified: `r1` needs `not r1`"):
        build(recipe, graph)


def test_given_rules_may_negate_what_others_conclude_and_a_note_says_so(graph):
    texts = ("(x,r0,y), not (y,r1,z) -> (x,r2,y)", "(x,r3,y) -> (y,r1,x)")
    made = build(Recipe("random", rules=texts, k2=60, negatives=("pa", "qg"), min_new=1), graph)
    assert any("rules negate `r1`, which rules conclude too" in note for note in made.notes)
    program = made.program
    from_k = true_after(program, made.kg)
    # Some of these do not follow any more from everything: they are no negatives all the same.
    assert from_k - true_after(program, made.everything)
    true = from_k | true_after(program, made.everything) | true_after(program, made.seen)
    for negatives in made.negatives.values():
        for triples in (negatives.splits[split] for split in SPLITS):
            assert not true.intersection(made.graph.names(triples))
    assert audit(made).ok


def test_rules_of_types_meet_only_for_the_same_type():
    interplay = Interplay()
    interplay.add(parse_rule("(x,R,y), not (x,type,A) -> (y,type,B)"))
    assert interplay.objection(parse_rule("(x,S,y) -> (x,type,C)")) is None
    assert interplay.objection(parse_rule("(x,S,y) -> (x,type,A)")) == (
        "it concludes the type `A`, which a selected rule negates"
    )
    assert interplay.objection(parse_rule("(x,S,y), not (y,type,B) -> (x,S,x)")) == (
        "it negates the type `B`, which a selected rule concludes"
    )
    assert interplay.objection(parse_rule("(x,S,y), not (y,type,z) -> (x,S,x)")) == (
        "it negates types, which a selected rule concludes"
    )
    assert interplay.objection(parse_rule("(x,S,y), not (y,S,x) -> (y,S,x)")) == "it negates what it concludes"


def test_nothing_is_noted_where_nothing_meets():
    assert negation_notes(rules("(x,R,y), not (y,S,z) -> (x,T,y)", "(x,T,y) -> (y,R,x)")) == ()


# -- the program, as its users run it --------------------------------------------------------------


def test_a_pattern_with_a_negation_is_built_and_explained_from_the_command_line(graph, tmp_path, loginfer):
    source = tmp_path / "g.tsv"
    source.write_text("".join(f"{s}\t{r}\t{o}\n" for s, r, o in graph.names(graph.triples)))
    out = tmp_path / "made"
    code, _, _ = loginfer("build", source, "-p", "nmhier", "-n", "qg", "--k1", 2, "--min-new", 5, "-o", out)
    assert code == 0
    assert loginfer("audit", out)[0] == 0
    made = load_benchmark(out)
    origins = made.negatives["qg"].origins["test"]
    place = int(np.flatnonzero(origins.source == SOURCES.index("sub-rule"))[0])
    (names,) = made.graph.names(made.negatives["qg"].splits.test[place])
    code, told, _ = loginfer("explain", out, *names)
    assert code == 0
    assert "the rule also asks that there is no (" in told
    assert ", but there is (" in told


def test_a_cycle_is_refused_with_one_message(graph, tmp_path, loginfer):
    source = tmp_path / "g.tsv"
    source.write_text("".join(f"{s}\t{r}\t{o}\n" for s, r, o in graph.names(graph.triples)))
    cycle = "(x,r0,y), not (y,r1,z) -> (x,r1,y)"
    for words in (("build", source, "-r", cycle, "-o", tmp_path / "x"), ("rules", "apply", source, cycle, "--closure")):
        code, _, said = loginfer(*words)
        assert code == 2
        assert "not stratified: `r1` needs `not r1`" in said
        assert "Traceback" not in said


def test_an_applied_rule_is_explained_with_what_is_not_there(graph, tmp_path, loginfer):
    source = tmp_path / "g.tsv"
    source.write_text("a\tr\tb\nc\tr\td\nb\ts\tc\n")
    code, told, _ = loginfer("rules", "explain", source, "(x,r,y), not (y,s,z) -> (x,t,y)", "c", "t", "d")
    assert code == 0
    assert "because (c, r, d)" in told
    assert "and there is no (d, s, ?z)" in told
