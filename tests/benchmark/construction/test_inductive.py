"""Inductive benchmarks: constants of test that train has not, with a context graph that tells of them."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.definitions import as_set
from tests.support.faults import lines, put, random_graph, stamp
from tests.support.made_up_benchmarks import same

from loginfer.benchmark import METHODS, Benchmark, Recipe, audit, build, explain_triple, load_benchmark
from loginfer.benchmark.construction.inductive import grown
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph

TYPE = "rdf:type"
RULES = ("(x,helps,y), (y,knows,z) -> (x,likes,z)", "(x,meets,y) -> (y,helps,x)")
TYPED = ("(x,rdf:type,Fan), (x,likes,y) -> (y,rdf:type,Star)", *RULES)
# Near misses are for `sound` only, and as many as there are conclusions.
OLD = tuple(method for method in METHODS if method != "nm")


def typed_graph(seed: int = 5, entities: int = 90, triples: int = 700) -> KnowledgeGraph:
    rng = random.Random(seed)
    names = [f"e{i:02d}" for i in range(entities)]
    rows = {(rng.choice(names), rng.choice(("helps", "knows", "likes", "meets")), rng.choice(names))
            for _ in range(triples)}  # fmt: skip
    rows |= {(name, TYPE, rng.choice(("Fan", "Star", "Person"))) for name in names}
    return KnowledgeGraph.from_names(sorted(rows), type_predicate=TYPE)


def recipe_of(**settings) -> Recipe:
    values = {"rules": RULES, "k2": 100, "negatives": tuple(METHODS), "inductive": True, "inductive_share": 0.4}
    return Recipe("random", **(values | settings))


def made(graph: KnowledgeGraph | None = None, **settings) -> Benchmark:
    return build(recipe_of(**settings), graph or random_graph())


def constants(benchmark: Benchmark, triples) -> set[int]:
    typed = triples[:, 1] == (-1 if benchmark.graph.type_relation is None else benchmark.graph.type_relation)
    return set(triples[:, 0].tolist()) | set(triples[~typed, 2].tolist())


def check(benchmark: Benchmark, graph: KnowledgeGraph) -> None:
    """What the construction says, by loops over sets."""
    recipe, context = benchmark.recipe, benchmark.context
    there = context.with_triples(brute_triples(benchmark, graph))
    train_side = constants(benchmark, benchmark.positives.train)
    test_side = constants(benchmark, context.triples)
    assert not train_side & test_side
    kg = as_set(benchmark.kg.triples)
    assert kg <= as_set(there.triples)
    assert as_set(context.triples) <= kg
    k_train = kg - as_set(context.triples)
    for triple in as_set(there.triples) - kg:
        ends = constants(benchmark, np.array([triple]))
        across = not (ends <= train_side or ends <= test_side)
        unknown = triple[1] not in {t[1] for t in k_train} or triple[1] == benchmark.graph.type_relation
        assert across or unknown
    known_types = set(benchmark.graph.types.tolist())
    for side, splits in ((k_train, ("train", "valid")), (as_set(context.triples), ("test",))):
        over = context.with_triples(np.array(sorted(side), dtype=np.int32))
        new = {t for rule in benchmark.program for t in brute_force.conclusions(rule, over, new=True)}
        for split in splits:
            assert as_set(benchmark.positives[split]) - side <= new
    sides = [np.array(sorted(side), dtype=np.int32) for side in (k_train, as_set(context.triples))]
    for rule in benchmark.rules:
        both = [brute_force.conclusions(rule.rule, context.with_triples(side), new=True) for side in sides]
        assert rule.new == sum(map(len, both))
        _, second = recipe.cuts(recipe.k2)
        wanted = min(len(both[0]), second) + min(len(both[1]), recipe.k2 - second)
        silent = not both[0] or (recipe.protocol == "sound" and rule.new < recipe.min_new)
        assert rule.sampled == (0 if silent else wanted)
    for negatives in benchmark.negatives.values():
        for split, triples in negatives.splits.items():
            assert constants(benchmark, triples) <= (test_side if split == "test" else train_side)
            typed = triples[:, 1] == (-1 if context.type_relation is None else context.type_relation)
            assert set(triples[typed, 2].tolist()) <= known_types or recipe.protocol == "paper"
        true = as_set(benchmark.everything.triples)
        true |= {t for rule in benchmark.program for t in brute_force.conclusions(rule, benchmark.everything)}
        if recipe.protocol == "sound":
            assert not true & {t for _, triples in negatives.splits.items() for t in as_set(triples)}


def brute_triples(benchmark: Benchmark, graph: KnowledgeGraph):
    """K over the benchmark's vocabularies."""
    rows = [(benchmark.graph.entity_id(s), benchmark.graph.relation_id(r), benchmark.graph.entity_id(o))
            for s, r, o in graph.names(graph.triples)
            if s in benchmark.graph.entities and o in benchmark.graph.entities]  # fmt: skip
    return np.array(rows, dtype=np.int32)


@settings(max_examples=30)
@given(st.integers(0, 40), st.sampled_from([0.2, 0.5, 0.7]), st.sampled_from(["sound", "paper"]), st.booleans())
def test_both_sides_are_what_the_definition_says(seed, share, protocol, typed):
    graph = typed_graph(seed, 16, 90) if typed else random_graph(seed, entities=16, triples=90)
    values = {"rules": TYPED if typed else RULES, "seed": seed, "min_new": 2, "k2": 20}
    values["negatives"] = tuple(METHODS) if protocol == "sound" else OLD
    try:
        benchmark = made(graph, inductive_share=share, protocol=protocol, **values)
    except InputError:
        return  # no conclusions on one side
    check(benchmark, graph)


def test_a_rules_share_of_k2_is_split_by_the_ratio():
    benchmark = made(k2=20, ratio="8:1:1", rules=RULES[:1], inductive_share=0.5)
    assert benchmark.rules[0].sampled == 20
    counts = np.bincount(benchmark.provenance.split, minlength=3).tolist()
    assert counts == [16, 2, 2]


def test_rules_are_those_of_the_transductive_benchmark():
    graph = random_graph()
    settings = {"rules": None, "patterns": ("composition",), "k1": 4, "negatives": ("pa",)}
    inductive = made(graph, **settings)
    other = made(graph, inductive=False, inductive_share=0.2, **settings)
    assert inductive.program == other.program


def test_rules_chosen_by_their_confidence_on_k_pass_the_audit():
    settings = {"rules": None, "patterns": ("composition",), "k1": 3, "negatives": ("pa",)}
    assert audit(made(select="interval", select_by="confidence", interval="0:0.9", **settings)).ok


def test_rules_with_negation_stay_on_one_side():
    rule = "(x,helps,y), not (y,knows,z) -> (x,likes,y)"
    benchmark = made(random_graph(triples=400), rules=(rule,), min_new=2, negatives=("pa",))
    assert audit(benchmark).ok
    with pytest.raises(InputError, match="parts that share no variable"):
        made(rules=("(x,helps,y), not (z,adores,w) -> (x,likes,y)",), min_new=1)


@pytest.mark.parametrize("method", OLD)
def test_every_method_draws_as_many_negatives_as_there_are_positives(method):
    benchmark = made(negatives=(method,), k2=60)
    found = benchmark.negatives[method]
    assert found.splits.sizes == benchmark.positives.sizes
    assert set(found.origins) == {"train", "valid", "test"}


def test_written_and_read_again_it_is_the_same(tmp_path):
    benchmark = made(typed_graph(), rules=TYPED)
    benchmark.save(tmp_path / "b")
    read = load_benchmark(tmp_path / "b")
    assert same(benchmark, read)
    assert read.context == benchmark.context
    assert read.seen == benchmark.seen
    assert read.kg == benchmark.kg
    read.save(tmp_path / "again")
    for path in (tmp_path / "b").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name
    names = {benchmark.graph.entities[i] for i in benchmark.context.consts.tolist()}
    assert set((tmp_path / "b" / "candidate_entities.txt").read_text().split()) == names
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["inductive"]["context"] == len(benchmark.context)
    assert manifest["inductive"]["constants"]["test"] == len(names)
    assert "constants of test are none of" in (tmp_path / "b" / "README.md").read_text()
    described = json.loads((tmp_path / "b" / "croissant.json").read_text())
    assert "context" in [record_set["name"] for record_set in described["recordSet"]]


def test_both_engines_give_the_same_bytes(tmp_path):
    graph = typed_graph()
    for engine in ("native", "duckdb"):
        build(recipe_of(rules=TYPED), graph, engine=engine).save(tmp_path / engine)
    for path in (tmp_path / "native").iterdir():
        assert path.read_bytes() == (tmp_path / "duckdb" / path.name).read_bytes(), path.name


# -- the division ----------------------------------------------------------------------------------


def test_regions_grow_along_triples():
    rows = [(f"a{i}", "next", f"a{i + 1}") for i in range(50)] + [(f"b{i}", "next", f"b{i + 1}") for i in range(50)]
    graph = KnowledgeGraph.from_names(rows, type_predicate="")

    def across(regions):
        is_test = grown(graph, 40, regions, seed=1)
        assert is_test.sum() == 40
        return int((is_test[graph.triples[:, 0]] != is_test[graph.triples[:, 2]]).sum())

    assert across(1) <= 2
    assert across(4) <= 8 < across(40)


@given(st.integers(0, 5), st.integers(1, 12), st.integers(1, 14))
def test_a_region_takes_the_constant_most_of_whose_triples_lead_into_it(seed, count, regions):
    graph = random_graph(seed, entities=14, triples=40)
    count = min(count, len(graph.consts))
    is_test = grown(graph, count, regions, seed)
    assert is_test.sum() == count
    assert set(np.flatnonzero(is_test)) <= set(graph.consts.tolist())
    assert np.array_equal(is_test, grown(graph, count, regions, seed))
    if regions == 1 and count > 1:
        smaller = grown(graph, count - 1, 1, seed) if count > 2 else None
        if smaller is not None:
            ends = graph.triples[:, ::2]
            inside = {c: sum(smaller[o] for s, o in ends.tolist() if s == c)
                      + sum(smaller[s] for s, o in ends.tolist() if o == c)
                      for c in graph.consts.tolist()}  # fmt: skip
            degree = {c: int((ends == c).sum()) for c in graph.consts.tolist()}
            shares = {c: inside[c] / degree[c] for c in inside if not smaller[c]}
            (last,) = set(np.flatnonzero(is_test)) - set(np.flatnonzero(smaller))
            assert shares[last] == max(shares.values())


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("(x,helps,y), (y,knows,<e05>) -> (x,likes,y)", "names the constant `e05`"),
        ("(x,helps,y) -> (x,likes,<e05>)", "names the constant `e05`"),
        ("(x,helps,y), (z,knows,w) -> (x,likes,y)", "parts that share no variable"),
        # What is not there may lie across: a negation joins no premises.
        ("(x,helps,y), (z,knows,w), not (y,adores,z) -> (x,likes,w)", "parts that share no variable"),
    ],
)
def test_rules_that_look_beyond_one_side_are_refused(rule, message):
    with pytest.raises(InputError, match=message):
        made(rules=(rule,))


def test_a_type_in_a_rule_is_no_constant():
    assert made(typed_graph(), rules=TYPED[:1]).context is not None


def test_settings_that_make_no_sense_are_refused():
    for values, message in (
        ({"inductive_share": 0}, "no constants are left for test"),
        ({"inductive_share": 1.5}, "from 0 to below 1"),
        ({"inductive": "yes"}, "true or false"),
        ({"inductive": False}, "is for inductive benchmarks"),
        ({"depth": 2}, "neither noisy nor inductive"),
    ):
        with pytest.raises(InputError, match=message):
            recipe_of(**values)
    with pytest.raises(InputError, match="leaves one side without any"):
        made(inductive_share=0.001)
    chain = KnowledgeGraph.from_names([(f"a{i}", "helps", f"a{i + 1}") for i in range(20)], type_predicate="")
    with pytest.raises(InputError, match="concludes"):
        build(recipe_of(rules=("(x,helps,y), (y,helps,z) -> (x,likes,z)",), inductive_share=0.1), chain)


# -- audit and explanations ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("inductive") / "benchmark"
    made(typed_graph(), rules=TYPED).save(folder)
    return folder


@pytest.fixture
def folder(original, tmp_path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "benchmark"))


def test_the_audit_finds_nothing_wrong_and_the_oracle_is_right(original):
    for engine in ("native", "duckdb"):
        found = audit(original, engine=engine)
        assert found.ok, [finding.message for finding in found.findings]
        checks = {"inductive", "kg-sum", "derivable", "witnesses", "split-shares", "rule-counts", "signature"}
        assert checks <= set(found.passed)
        assert {figures["accuracy"] for figures in found.oracle.values()} == {1.0}


@pytest.mark.parametrize("file", ["test.txt", "test_neg_pa.txt"])
def test_the_audit_finds_a_test_triple_with_a_train_constant(folder, file):
    _, relation, object_ = lines(folder, file)[0].split("\t")
    other = next(row.split("\t")[0] for row in lines(folder, "train.txt"))
    put(folder, file, [f"{other}\t{relation}\t{object_}", *lines(folder, file)[1:]])
    stamp(folder)
    found = audit(folder)
    assert any("have a constant that the context graph has not" in f.message for f in found.found("inductive"))


@pytest.mark.parametrize("file", ["train.txt", "valid.txt", "train_neg_rb.txt"])
def test_the_audit_finds_a_training_triple_with_a_test_constant(folder, file):
    _, relation, object_ = lines(folder, file)[0].split("\t")
    other = lines(folder, "context.txt")[0].split("\t")[0]
    put(folder, file, [f"{other}\t{relation}\t{object_}", *lines(folder, file)[1:]])
    stamp(folder)
    found = audit(folder)
    assert any("have a constant of the context graph" in f.message for f in found.found("inductive"))


def test_the_audit_finds_changes_of_the_context_graph(folder):
    rows = lines(folder, "context.txt")
    put(folder, "context.txt", [*rows, rows[0], lines(folder, "test_neg_pa.txt")[0]])
    stamp(folder)
    found = audit(folder)
    messages = [finding.message for finding in found.found("inductive")]
    assert any("repeats 1 triples" in message for message in messages)
    assert any("the context graph and N_test of `pa` share 1 triples" in message for message in messages)
    assert any("the manifest says" in message for message in messages)
    assert found.found("kg-sum")


def test_the_readme_tells_the_context_graph_from_the_positives_of_test(folder):
    files = dict(re.findall(r"^\| `(\S+)` \| (.*) \|$", (folder / "README.md").read_text(), re.MULTILINE))
    assert files["context.txt"].startswith("the context graph")
    assert files["test.txt"].startswith("P_test: positives")
    assert files["test_neg_pa.txt"].startswith("N_test: negatives")


def test_the_audit_finds_a_context_graph_that_is_not_there(folder):
    (folder / "context.txt").unlink()
    assert audit(folder).found("missing-files")
    stamp(folder, lambda manifest: manifest["files"].pop("context.txt"))
    assert any("there is no `context.txt`" in f.message for f in audit(folder).found("inductive"))


def test_bad_lines_of_the_context_graph_are_told(folder):
    put(folder, "context.txt", [*lines(folder, "context.txt"), "only two\tcolumns"])
    stamp(folder)
    with pytest.raises(InputError, match="columns"):
        load_benchmark(folder)
    assert audit(folder).found("unreadable-lines")


def test_an_explanation_finds_premises_in_the_context_graph(original):
    benchmark = load_benchmark(original)
    known = set(benchmark.graph.names(benchmark.context.triples))
    for triple in benchmark.positives.test:
        story = explain_triple(benchmark, triple.tolist())
        assert story.source == "K"
        assert story.derivations
        assert all(premise in known for found in story.derivations for premise in found.premises)
    premise = explain_triple(benchmark, benchmark.context.triples[0].tolist())
    assert "the context graph" in premise.sets
    assert "P_train" not in premise.sets
    negative = explain_triple(benchmark, benchmark.negatives["pa"].splits.test[0].tolist())
    assert not negative.derivations


def test_it_is_built_audited_and_explained_from_the_command_line(loginfer, tmp_path):
    kg, out = tmp_path / "kg.tsv", tmp_path / "b"
    graph = random_graph()
    kg.write_text("".join("\t".join(t) + "\n" for t in graph.names(graph.triples)))
    words = ("build", kg, "--rules", RULES[0], "--out", out, "--k2", 100)
    code, said, err = loginfer(*words, "--inductive", "--inductive-share", 0.4)
    assert code == 0
    assert "context graph of" in said
    assert "triples of K are dropped" in err
    assert loginfer("audit", out)[0] == 0
    code, said, _ = loginfer("explain", out, *lines(out, "test.txt")[0].split("\t"))
    assert code == 0
    assert "is in P_test" in said
    code, _, err = loginfer(*words, "--inductive-share", 0.4, "--force")
    assert code == 2
    assert "add `--inductive`" in err
