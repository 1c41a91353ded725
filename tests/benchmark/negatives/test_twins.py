"""Twins: every conclusion has one near miss of its own, and nobody who knows no rule can tell the two apart."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from tests.support import brute_force
from tests.support.faults import errors, lines, put, put_rows, rows_of, stamp, triple
from tests.support.near_miss_benchmarks import GIVEN, recipe_of, small_graph, typed_graph
from tests.support.random_rules import cases

from loginfer.benchmark import Recipe, audit, build, explain_triple, load_benchmark, write_benchmark
from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.construction import pipeline
from loginfer.benchmark.learned_shortcut import one_thread
from loginfer.benchmark.negatives import SOURCES, twins
from loginfer.benchmark.recipe import Match
from loginfer.benchmark.shortcut_features import FeatureBattery, feature_groups
from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import RDF_TYPE, KnowledgeGraph, load_graph
from loginfer.logic.subrules import EDITS, Edit, edits_of, near_miss

pytestmark = pytest.mark.usefixtures("all_rounds")

TYPE = "rdf:type"
NAMES = tuple(f"e{i:02d}" for i in range(24))
RELATIONS = ("R", "S", "T", "U")
# One kind of rule each: chains, types, constants of the body and the head, inequalities, negations that other rules
# do and do not conclude, heads that K does not have, two rules with one head.
RULES = (
    "(x,R,y) -> (x,S,y)",
    "(x,R,y) -> (y,R,x)",
    "(x,R,y), (y,S,z) -> (x,T,z)",
    "(x,R,y), (y,S,z), x != z -> (x,New,z)",
    "(x,U,y), (y,U,z), (x,T,z), x != y, y != z -> (x,R,z)",
    "(x,type,<t>), (x,R,y) -> (y,type,<u>)",
    "(x,R,y), (y,type,<t>) -> (x,S,y)",
    "(x,R,y), (y,type,?k) -> (x,type,?k)",
    "(x,S,<e00>) -> (x,T,<e01>)",
    "(x,S,y) -> (x,T,nobody)",
    "(x,S,y), y != <e00> -> (<e02>,U,y)",
    "(x,R,y), not (x,U,y) -> (x,T,y)",
    "(x,T,y), not (x,S,y) -> (x,U,y)",
    "(x,R,y), not (y,S,z) -> (x,New,y)",
    "(x,T,y), not (y,type,<u>) -> (x,R,y)",
)


def random_graph(seed, constants, triples):
    rng = random.Random(seed)
    names, weight = NAMES[:constants], [1 / (i + 1) for i in range(constants)]

    def some():
        return rng.choices(names, weight)[0] if rng.random() < 0.4 else rng.choice(names)

    rows = {(some(), rng.choice(RELATIONS), some()) for _ in range(triples)}
    rows |= {(name, TYPE, rng.choice("tuv")) for name in names if rng.random() < 0.7}
    return KnowledgeGraph.from_names(sorted(rows), type_predicate=TYPE)


@st.composite
def recipes(draw, rules):
    """Recipes for twins of some rules: matched on everything or less, deep, noisy, inductive, materialised."""
    settings = draw(
        st.sampled_from([{}, {}, {}, {"depth": 2}, {"flipped": 0.2, "missing": 0.2}, {"materialised": True},
                         {"inductive": True, "inductive_share": 0.5}])
    )  # fmt: skip
    match = draw(st.sampled_from([("all",), ("all",), ("adjacency",), ("popularity", "head"), ("types",)]))
    values = {"k2": draw(st.sampled_from([3, 12, 40])), "ratio": draw(st.sampled_from(["8:1:1", "4:3:3"]))}
    return Recipe("made up", rules=rules, min_new=1, negatives=("nm",), match=match, seed=draw(st.integers(0, 3)),
                  **values, **settings)  # fmt: skip


@st.composite
def small_cases(draw):
    rules = draw(st.lists(st.sampled_from(RULES), min_size=1, max_size=4, unique=True))
    graph = random_graph(draw(st.integers(0, 10**6)), draw(st.sampled_from([8, 16, 24])), draw(st.integers(20, 160)))
    return graph, draw(recipes(tuple(rules)))


@st.composite
def odd_cases(draw):
    """Rules of every kind, over graphs in which hardly anything has a twin."""
    graph, rules = draw(cases(most_rules=3))
    return graph, draw(recipes(tuple(map(str, rules))))


def built(graph, recipe):
    """The benchmark, or None where it is refused."""
    try:
        return build(recipe, graph)
    except InputError as refused:
        event(refused.message.split(":")[0][:40])
        return None


def check(benchmark):
    """What is promised of twins, by loops over sets of names."""
    recipe, clean = benchmark.recipe, benchmark.clean
    kg, everything = brute_force.facts(benchmark.kg), brute_force.facts(benchmark.everything)
    rules, premises, true = benchmark.program, kg, everything | brute_force.one_step(benchmark.program, everything)
    if any(rule.negations for rule in rules):
        train = brute_force.facts(clean.seen)
        true |= brute_force.one_step(rules, kg) | brute_force.one_step(rules, train)
    for _ in range(recipe.depth - 1):
        premises = premises | brute_force.one_step(rules, premises)
    if recipe.depth > 1 or recipe.materialised:
        closure = list(brute_force.closure(rules, benchmark.kg))
        true |= brute_force.facts(benchmark.kg.with_triples(np.array(closure, dtype=np.int32).reshape(-1, 3)))
    concluded, twins_of = {}, Counter()
    for split in SPLITS:
        triples, origins = clean.negatives["nm"].splits[split], clean.negatives["nm"].origins[split]
        positives = named(clean, clean.positives[split])
        pairs = [(positives[row], twin) for row, twin in zip(origins.twin, named(clean, triples), strict=True)]
        assert (origins.twin >= 0).all()
        assert Counter(conclusion for conclusion, _ in pairs) == Counter(t for t in positives if t not in kg)
        twins_of.update(twin for _, twin in pairs)
        assert (origins.source == SOURCES.index("near-miss")).all()
        for row, (conclusion, twin) in enumerate(pairs):
            assert head_of(twin) == head_of(conclusion)
            key = tuple(int(column[row]) for column in (origins.rule, origins.edit, origins.part, origins.predicate))
            if key not in concluded:
                concluded[key] = brute_force.one_step([edited(benchmark, *key)], premises)
            assert twin in concluded[key], (twin, key)
            if recipe.match == ("all",) or "adjacency" in recipe.match:
                assert adjacency(kg, conclusion) == adjacency(kg, twin)
            if benchmark.context is not None:
                on_test = {name for t in brute_force.facts(benchmark.context) for name in constants(t)}
                assert {name in on_test for name in constants(twin)} == {split == "test"}
    assert set(twins_of.values()) <= {1}
    assert not set(twins_of) & true
    return twins_of


def pairs_of(benchmark):
    """Each split's conclusions with their twins, by names."""
    clean, negatives = benchmark.clean, benchmark.clean.negatives["nm"]
    pairs = {}
    for split in SPLITS:
        conclusions = named(clean, clean.positives[split][negatives.origins[split].twin])
        pairs[split] = dict(zip(conclusions, named(clean, negatives.splits[split]), strict=True))
    return pairs


def named(benchmark, triples):
    return [
        (s, RDF_TYPE if r == benchmark.graph.type_predicate else r, o) for s, r, o in benchmark.graph.names(triples)
    ]


def head_of(triple):
    return triple[1:] if triple[1] == RDF_TYPE else triple[1]


def constants(triple):
    return triple[:1] if triple[1] == RDF_TYPE else triple[::2]


def edited(benchmark, number, kind, part, predicate):
    rule, edit, name = benchmark.program[number], Edit(EDITS[kind], part), None
    assert edit in edits_of(rule)
    if edit.kind == "replace":
        names = benchmark.graph.entities if rule.body[part].is_type else benchmark.graph.relations
        name = names[predicate]
        assert near_miss(rule, edit, name) != rule
    return near_miss(rule, edit, name)


def adjacency(kg, triple):
    """How many other relations join the ends, up to three in a direction."""
    subject, relation, object_ = triple
    if relation == RDF_TYPE:
        return None
    there = [r for s, r, o in kg if (s, o) == (subject, object_) and r not in (relation, RDF_TYPE)]
    back = [r for s, r, o in kg if (s, o) == (object_, subject) and r != RDF_TYPE]
    return min(len(there), 3), min(len(back), 3), any(r != relation for r in back)


@given(case=small_cases())
@settings(max_examples=30)
def test_each_conclusion_has_a_twin_of_its_own_or_the_build_is_refused(case, tmp_path_factory):
    benchmark = built(*case)
    if benchmark is None:
        return
    event("built")
    assert check(benchmark)
    folder = tmp_path_factory.mktemp("twins") / "out"
    write_benchmark(benchmark, folder)
    assert [finding for finding in audit(folder).findings if finding.severity == "error"] == []
    assert pairs_of(load_benchmark(folder)) == pairs_of(benchmark)


@given(case=odd_cases())
@settings(max_examples=40)
def test_rules_of_every_kind_have_twins_or_are_refused(case):
    benchmark = built(*case)
    if benchmark is not None:
        event("built")
        check(benchmark)


def test_a_twin_does_not_follow_from_the_conclusions_that_are_left():
    """(e,D,f) follows where (e,C,f) is concluded and chosen, and (e,B,f) is concluded and not chosen."""
    rng, names = random.Random(1), [f"e{i}" for i in range(14)]
    rows = {(rng.choice(names), rng.choice(["R", "S", "C", "Q", "B"]), rng.choice(names)) for _ in range(260)}
    rules = ("(x,R,y) -> (x,B,y)", "(x,S,y) -> (x,C,y)", "(x,C,y), not (x,B,y) -> (x,D,y)")
    recipe = recipe_of(rules=rules, k2=10, min_new=1, match=("adjacency",), seed=1)
    assert check(build(recipe, KnowledgeGraph.from_names(sorted(rows), type_predicate="")))


def test_where_nothing_can_be_a_twin_the_build_is_refused_with_counts():
    """No relation but R connects anything."""
    rng = random.Random(5)
    names = [(f"e{rng.randrange(40)}", "R", f"e{rng.randrange(40)}") for _ in range(150)]
    graph = KnowledgeGraph.from_names(names, type_predicate="")
    with pytest.raises(InputError, match=r"conclusions have too few twins: 0 of \d+ conclusions have one") as refused:
        build(recipe_of(rules=("(x,R,y) -> (y,R,x)",), match=("all",)), graph)
    assert "match on fewer features" in refused.value.hint


def test_a_classifier_that_pairs_uses_one_thread(monkeypatch):
    threads, boosting = [], twins.boosting

    def counting(*options):
        model = boosting(*options)
        fit = model.fit
        model.fit = lambda *data: threads.append(_openmp_effective_n_threads()) or fit(*data)
        return model

    monkeypatch.setattr(twins, "boosting", counting)
    build(recipe_of(rules=GIVEN[:1], match=("adjacency",)), typed_graph())
    assert set(threads) == {1}


# -- the same bytes -----------------------------------------------------------------------------------

MIXED = (*GIVEN, "(x,knows,y) -> (y,knows,x)")


def content(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def test_neither_the_engine_nor_the_number_of_cores_matters(tmp_path, monkeypatch):
    folders = []
    for number, (engine, cores) in enumerate((("native", 1), ("native", 1), ("duckdb", 2), ("native", 7))):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        folders.append(tmp_path / str(number))
        write_benchmark(build(recipe_of(rules=MIXED, match=("all",)), typed_graph(), engine=engine), folders[-1])
    assert all(content(folder) == content(folders[0]) for folder in folders[1:])


def test_neither_threads_nor_hashes_of_texts_matter(tmp_path, file):
    words = [
        "build",
        file,
        "-p",
        "composition",
        "--k1",
        3,
        "--k2",
        40,
        "-n",
        "nm",
        "--match",
        "all",
        "--select",
        "twins",
    ]
    for threads in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", "from loginfer.cli import main; main()", *map(str, words), "--out",
             tmp_path / threads],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONHASHSEED": threads, "NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
        )  # fmt: skip
    assert content(tmp_path / "1") == content(tmp_path / "2")


# -- damaged folders ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def typed():
    """A benchmark of rules with types, inequalities and a negation, and twins."""
    return build(recipe_of(rules=GIVEN, match=("adjacency",)), typed_graph())


@pytest.fixture(scope="module")
def original(typed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins") / "original"
    write_benchmark(typed, folder)
    return folder


@pytest.fixture
def copy(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "copy"))


def of_test(rows, relation="trusts"):
    return [row for row in rows if row["split"] == "test" and row["relation"] == relation]


def told(folder):
    stamp(folder)
    return errors(audit(folder), "twins")


def test_a_sound_folder_has_no_errors(original):
    found = audit(original)
    assert "twins" in found.passed
    assert [finding for finding in found.findings if finding.severity == "error"] == []
    assert {figures["accuracy"] for figures in found.oracle.values()} == {1.0}


def test_a_twin_that_is_removed_is_missed(copy):
    rows = rows_of(copy, "negatives.parquet")
    gone = of_test(rows)[0]
    put_rows(copy, "negatives.parquet", [row for row in rows if row is not gone])
    put(copy, "test_neg_nm.txt", [line for line in lines(copy, "test_neg_nm.txt") if line != triple(gone)])
    report = told(copy)
    assert "1 conclusions of P_test have no twin in N_test" in report
    assert gone["twin_subject"] in report


def test_a_negative_that_is_nobodys_twin_is_found(copy):
    rows = rows_of(copy, "negatives.parquet")
    of_test(rows)[0].update(twin_subject=None, twin_object=None)
    put_rows(copy, "negatives.parquet", rows)
    report = told(copy)
    assert "1 triples of N_test of `nm` are the twin of no conclusion" in report
    assert "1 conclusions of P_test have no twin" in report


def test_two_twins_of_one_conclusion_are_found(copy):
    rows = rows_of(copy, "negatives.parquet")
    first, second = of_test(rows)[:2]
    second.update(twin_subject=first["twin_subject"], twin_object=first["twin_object"])
    put_rows(copy, "negatives.parquet", rows)
    report = told(copy)
    assert "1 conclusions of P_test have several twins" in report
    assert "1 conclusions of P_test have no twin" in report


def test_a_twin_of_a_triple_of_k_is_found(copy, typed):
    rows = rows_of(copy, "negatives.parquet")
    row = next(row for row in rows if row["split"] == "train" and row["relation"] == "likes")
    row["twin_subject"], _, row["twin_object"] = next(t for t in typed.kg.names(typed.kg.triples) if t[1] == "likes")
    put_rows(copy, "negatives.parquet", rows)
    report = told(copy)
    assert "1 triples of N_train of `nm` are twins of triples that were in K" in report
    assert "1 conclusions of P_train have no twin" in report


def test_twins_that_change_places_with_another_head_are_found(tmp_path):
    """Only types can: the columns of a twin tell subject and object."""
    rules = ("(x,helps,y) -> (y,type,Star)", "(x,knows,y) -> (y,type,Fan)", "(x,likes,y) -> (y,type,Person)")
    graph = typed_graph(entities=200, triples=300)
    folder = tmp_path / "out"
    write_benchmark(build(recipe_of(rules=rules, match=("types",)), graph), folder)
    rows = rows_of(folder, "negatives.parquet")
    train = [row for row in rows if row["split"] == "train"]
    first = train[0]
    second = next(row for row in train if row["object"] != first["object"])
    for name in ("twin_subject", "twin_object"):
        first[name], second[name] = second[name], first[name]
    put_rows(folder, "negatives.parquet", rows)
    assert "2 triples of N_train of `nm` have another head than the conclusion whose twin they are" in told(folder)


# -- what is told of one triple -----------------------------------------------------------------------


def test_explain_tells_of_a_conclusions_twin_and_of_a_twins_conclusion(original, typed, loginfer):
    pairs = pairs_of(typed)["test"]
    conclusion, twin = next((c, t) for c, t in pairs.items() if c[1] == "trusts")
    code, out, _ = loginfer("explain", original, *conclusion)
    assert code == 0
    texts = [line.strip() for line in out.splitlines()]
    begin = next(i for i, text in enumerate(texts) if text.startswith(f"its twin is ({', '.join(twin)}), a near miss"))
    assert texts[begin].endswith("in N_test")
    assert texts[begin + 1].startswith("would follow if ")
    assert f"it is the twin of ({', '.join(conclusion)})" in loginfer("explain", original, *twin)[1]


def test_explain_tells_programs_of_twins_where_there_are_any(original, typed, near_misses, loginfer):
    conclusion, twin = next((c, t) for c, t in pairs_of(typed)["test"].items() if c[1] == "trusts")
    story = json.loads(loginfer("explain", original, *conclusion, "--json")[1])
    assert [tuple(told["triple"]) for told in story["twins"]] == [twin]
    assert story["twins"][0]["near_miss"]
    assert "twin" not in story["twins"][0]
    story = json.loads(loginfer("explain", original, *twin, "--json")[1])
    assert [tuple(told["twin"]) for told in story["negatives"]] == [conclusion]
    assert "twins" not in story
    plain = near_misses.graph.names(near_misses.negatives["nm"].splits.test[:1])[0]
    (negative,) = explain_triple(near_misses, plain).as_dict()["negatives"]
    assert not {"twin", "triple"} & set(negative)


# -- rules that have twins ----------------------------------------------------------------------------


def test_rules_that_are_chosen_have_at_least_as_many_twins_as_the_others(monkeypatch):
    candidates, choose = [], pipeline.rules_with_twins
    monkeypatch.setattr(
        pipeline, "rules_with_twins", lambda recipe, *rest: candidates.append(rest) or choose(recipe, *rest)
    )
    recipe = recipe_of(patterns=("composition",), k1=2, k2=40, match=("all",), select="twins")
    benchmark = build(recipe, small_graph())
    assert check(benchmark)
    ((context, selection),) = candidates
    screened = twins.pair(context, rounds=2)
    counts = {
        rule.rule: min(int(screened.rows_of(sample)[0].sum()), recipe.k2)
        for rule, sample in zip(selection.rules, selection.samples, strict=True)
    }
    chosen = [counts.pop(rule.rule) for rule in benchmark.rules]
    assert (len(chosen), len(counts)) == (2, 4), "of three times as many"
    assert min(chosen) >= max(counts.values())
    told = {rule.rule: rule.reason for rule in benchmark.passed_over if rule.rule in counts}
    assert told == {rule: f"{count:,} conclusions have a twin" for rule, count in counts.items()}


def test_too_few_rules_with_twins_are_refused_unless_fewer_are_allowed():
    """All relations are symmetric, and C is part of A: whatever is put instead of some, all that follows is true."""
    rng, rows = random.Random(2), set()
    for _ in range(120):
        ends = tuple(f"e{rng.randrange(30)}" for _ in range(2))
        rows |= {(s, r, o) for r in rng.choice(["A", "AC", "B"]) for s, o in (ends, ends[::-1])}
    graph = KnowledgeGraph.from_names(sorted(rows), type_predicate="")
    settings = {"k2": 30, "match": ("popularity",), "select": "twins", "min_new": 1, "seed": 3}
    recipe = recipe_of(patterns=("hierarchy",), k1=2, **settings)
    with pytest.raises(InputError, match=r"only 1 of 2 rules of .* have enough conclusions with a twin") as refused:
        build(recipe.changed(kg="lubm"), graph)
    assert "--allow-fewer" in refused.value.hint
    assert len(build(recipe.changed(kg="lubm", allow_fewer=True), graph).rules) == 1
    assert any("only 1 of 2 rules" in note for note in build(recipe, graph).notes), "it is one's own graph"
    assert len(build(recipe.changed(k1=1), graph).rules) == 1


# -- recipes and the command --------------------------------------------------------------------------


def test_all_groups_of_features_can_be_matched():
    assert get_args(Match) == ("all", *feature_groups())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"negatives": ("pa",), "match": ("popularity",)}, "`match` is for near misses"),
        ({"match": ("popularity", "popularity")}, "given twice: popularity, popularity"),
        ({"match": "popularity"}, "`match` must be a list of texts"),
        ({"protocol": "paper"}, "near misses are for the protocol `sound`"),
        ({"select": "twins"}, '`select = "twins"` is for twins, but none are asked for'),
        ({"select": "twins", "match": ("all",), "rules": GIVEN}, "`select` and `head` are for patterns"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        recipe_of(**settings)


def test_an_unknown_group_of_features_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="unknown shortcut to match `popular`") as caught:
        recipe_of(match=("popular",))
    assert "popularity" in str(caught.value.hint)


@pytest.fixture
def file(tmp_path):
    graph = typed_graph()
    path = tmp_path / "graph.tsv"
    path.write_text("".join("\t".join(t) + "\n" for t in graph.names(graph.triples)))
    return path


def test_the_command_pairs(file, tmp_path, loginfer):
    words = ("build", file, "-p", "composition", "--k1", 2, "--k2", 60, "--type-predicate", TYPE, "-n", "nm")
    code, _, err = loginfer(*words, "--match", "popularity, adjacency", "--out", tmp_path / "out")
    assert code == 0
    assert "twins: " in err
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["recipe"]["match"] == ["popularity", "adjacency"]
    assert loginfer("audit", tmp_path / "out")[0] == 0
    assert "alike in popularity and adjacency" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-n", "nm", "--match", "popularty"), "unknown shortcut to match `popularty`"),
        (("-n", "nm", "--match", ""), "unknown shortcut to match ``"),
        (("-n", "nm", "--match", "popularity,"), "unknown shortcut to match ``"),
        (("-n", "pa", "--match", "popularity"), "`--match` is for near misses"),
        (("-n", "nm", "--protocol", "paper"), "near misses are for the protocol `sound`"),
        (("-n", "nm", "--select", "twins"), "is for twins, but none are asked for"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(file, tmp_path, loginfer, words, message):
    code, _, err = loginfer("build", file, "-p", "composition", *words, "--out", tmp_path / "out")
    assert code == 2
    assert message in err
    assert not (tmp_path / "out").exists()


# -- real graphs --------------------------------------------------------------------------------------


def test_the_rules_of_lubm_have_twins():
    benchmark = build(Recipe("lubm", rules="lubm-107", k2=60, negatives=("nm",), match=("all",)), load_graph("lubm"))
    found = audit(benchmark)
    assert [finding.message for finding in found.findings if finding.severity == "error"] == []
    assert found.oracle["nm"]["accuracy"] == 1.0


@pytest.mark.data
@pytest.mark.slow
def test_the_hierarchies_of_fb15k_237_have_twins(data_folder):
    recipe = recipe_of(patterns=("hierarchy",), k1=20, k2=200, match=("all",), seed=0)
    benchmark = build(recipe, load_graph(data_folder / "FB15k-237.tar.gz"))
    found = audit(benchmark)
    assert [finding.message for finding in found.findings if finding.severity == "error"] == []
    assert len(benchmark.negatives["nm"].splits.test) > 100


def balanced_accuracy(model, benchmark):
    """Of a classifier that learns to tell train's conclusions from N_train, with the best threshold of valid."""
    battery, negatives = FeatureBattery(benchmark.kg), benchmark.negatives["nm"].splits
    provenance, looks = benchmark.provenance, {}
    for number, split in enumerate(SPLITS):
        conclusions = provenance.triples[provenance.split == number]
        looks[split] = battery.values(conclusions), battery.values(negatives[split])
    truth = np.repeat([1, 0], [len(part) for part in looks["train"]])
    with one_thread():
        model.fit(np.vstack(looks["train"]), truth)
        scores = {s: [model.predict_proba(part)[:, 1] for part in looks[s]] for s in SPLITS[1:]}

    def accuracy(split, threshold):
        positive, negative = scores[split]
        return ((positive >= threshold).mean() + (negative < threshold).mean()) / 2

    best = max(np.unique(np.concatenate(scores["valid"])), key=lambda threshold: accuracy("valid", threshold))
    return accuracy("test", best)


def boosting():
    return HistGradientBoostingClassifier(max_iter=200, learning_rate=0.1, random_state=1)


@pytest.mark.data
def test_no_fresh_classifier_tells_the_twins_of_wn18rr_triangles_apart(data_folder):
    graph = load_graph(data_folder / "WN18RR.tar.gz")
    recipe = recipe_of(patterns=("triangle",), k1=20, k2=2000, seed=0, allow_fewer=True)
    assert balanced_accuracy(boosting(), build(recipe, graph)) > 0.8
    benchmark = build(recipe.changed(match=("all",)), graph)
    assert len(benchmark.negatives["nm"].splits.test) >= 200
    for model in (
        boosting(),
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        RandomForestClassifier(200, min_samples_leaf=5, random_state=1),
    ):
        assert balanced_accuracy(model, benchmark) <= 0.65, model
