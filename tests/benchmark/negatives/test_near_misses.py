"""Near-miss negatives: truly negative, as many as conclusions with each head, and what is told of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force, definitions
from tests.support.definitions import as_set, context_of
from tests.support.faults import lines, rows_of
from tests.support.made_up_benchmarks import same
from tests.support.near_miss_benchmarks import GIVEN, TYPE, recipe_of, small_graph, typed_graph
from tests.support.random_rules import cases

from loginfer.benchmark import build, load_benchmark, write_benchmark
from loginfer.benchmark.benchmark import POSITIONS, SPLITS
from loginfer.benchmark.negatives import SOURCES, sample_negatives
from loginfer.benchmark.negatives import near_misses as drawing
from loginfer.benchmark.negatives.context import heads_of
from loginfer.benchmark.negatives.near_miss_search import BUDGET, NearMissSearch
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule
from loginfer.logic.rule import Atom
from loginfer.logic.subrules import EDITS, Edit, edits_of, near_miss

CHAINS = ("(x,helps,y), (y,knows,z) -> (x,likes,z)", "(x,knows,y), (y,likes,z), x != z -> (x,meets,z)")

# -- what they are ------------------------------------------------------------------------------------


@given(case=cases(most_rules=3), k2=st.integers(1, 20), materialised=st.booleans())
@settings(max_examples=50)
def test_negatives_are_truly_negative_and_as_many_as_conclusions(case, k2, materialised):
    check(context_of(*case, k2=k2, materialised=materialised))


def check(context, method="nm"):
    """What is promised of any near misses, by loops over sets."""
    found = sample_negatives(context, method)
    true, everything = definitions.true_triples(context), set()
    engine = context.engine
    for split in SPLITS:
        triples, origins = found.splits[split], found.origins[split]
        drawn = as_set(triples)
        assert len(drawn) == len(triples) == len(origins.source)
        assert not drawn & true
        assert not drawn & everything
        everything |= drawn
        conclusions = context.conclusions[split]
        conclusions = conclusions[~context.kg.contains(conclusions)]
        assert found.asked[split] == len(conclusions)
        mine, theirs = (Counter(heads_of(context.kg, t).tolist()) for t in (triples, conclusions))
        assert not mine - theirs
        short = len(triples) < len(conclusions)
        assert any(note.startswith(f"{split} has {len(triples):,} ") for note in found.notes) == short
        if not short:
            assert mine == theirs
        for row, triple in enumerate(triples):
            if SOURCES[origins.source[row]] == "position":
                assert (origins.rule[row], origins.edit[row], origins.part[row]) == (-1, 0, -1)
                wanted = definitions.position_candidates(context, split)
                assert wanted[tuple(triple.tolist())] == POSITIONS[origins.position[row]]
                continue
            rule = context.rules[origins.rule[row]]
            edit = Edit(EDITS[origins.edit[row]], int(origins.part[row]))
            assert edit in edits_of(rule)
            name = None
            if edit.kind == "replace":
                names = context.kg.entities if rule.body[edit.part].is_type else context.kg.relations
                name = names[origins.predicate[row]]
                assert near_miss(rule, edit, name) != rule
            else:
                assert origins.predicate[row] == -1
            assert engine.derives([near_miss(rule, edit, name)], triple[None])[0]
    return found


def test_each_negative_is_concluded_by_the_near_miss_that_the_file_tells(near_miss_folder):
    """With nothing of ours but the parser of rules: names from the file, the edit by hand, brute force."""
    kinds = Counter()
    for name in ("made", "typed", "bare"):
        folder = near_miss_folder / name
        rules = [parse_rule(t) for t in lines(folder, "rules.txt") if t and not t.startswith("#")]
        known = brute_force.facts(load_benchmark(folder).kg)
        concluded = {}
        for row in rows_of(folder, "negatives.parquet"):
            if row["source"] != "near-miss":
                assert row["source"] == "position"
                assert not any(row[c] for c in ("rule", "edit", "relation_instead", "type_instead"))
                continue
            key = tuple(row[c] for c in ("rule", "edit", "part", "relation_instead", "type_instead"))
            if key not in concluded:
                edited = edited_by_hand(rules, *key)
                concluded[key] = {brute_force.head(edited, s) for s in brute_force.substitutions(edited, known)}
            relation = brute_force.RDF_TYPE if row["relation"] == TYPE else row["relation"]
            assert (row["subject"], relation, row["object"]) in concluded[key], key
            kinds[row["edit"]] += 1
    assert set(kinds) == {"replace", "reverse", "drop", "drop-inequality"}


def edited_by_hand(rules, number, edit, part, relation, type_):
    """The edited rule, through its text."""
    rule = rules[number]
    texts = [str(p) for p in rule.body]
    if edit.startswith("drop"):
        assert (relation, type_) == (None, None)
        assert ("!=" in texts[part]) == (edit == "drop-inequality")
        del texts[part]
    else:
        atom = rule.body[part]
        assert isinstance(atom, Atom)
        subject, name, object_ = str(atom.subject), str(atom.relation), str(atom.object)
        if edit == "reverse":
            assert not atom.is_type
            subject, object_ = object_, subject
        elif atom.is_type:
            assert relation is None
            assert type_ not in (None, atom.object.name)
            object_ = f"<{type_}>"
        else:
            assert type_ is None
            assert relation not in (None, name)
            name = relation
        texts[part] = f"({subject},{'type' if atom.is_type else f'<{name}>'},{object_})"
    return parse_rule(f"{', '.join(texts)} -> {rule.head}")


def shares_of(origins):
    return Counter(zip(origins.edit.tolist(), origins.part.tolist(), strict=True))


def random_chains(relations):
    rng = np.random.default_rng(3)
    names = [(f"e{s}", f"r{r}", f"e{o}") for s, r, o in rng.integers((150, relations, 150), size=(2000, 3))]
    return KnowledgeGraph.from_names(names, type_predicate="")


def test_edits_that_keep_the_skeleton_have_equal_shares_and_all_slots():
    made = build(recipe_of(rules=("(x,r0,y), (y,r1,z) -> (x,r2,z)",), k2=400), random_chains(5)).negatives["nm"]
    shares = shares_of(made.origins["train"])
    assert set(shares) == {(EDITS.index("replace"), part) for part in (0, 1)}
    assert max(shares.values()) - min(shares.values()) <= 1
    assert made.notes == (f"of the {sum(made.asked.values()):,} near misses wanted: 100.0% as asked",)


def test_a_rule_that_cannot_keep_its_skeleton_shares_slots_among_all_its_edits():
    """A type that is a variable cannot be replaced."""
    rng = np.random.default_rng(3)
    names = [(f"e{s}", "R", f"e{o}") for s, o in rng.integers(60, size=(1200, 2)) if s != o]
    names += [(f"e{i}", TYPE, f"T{i % 3}") for i in range(60)]
    rule = "(x,rdf:type,?k), (y,rdf:type,?k), not (x,R,y), x != y -> (x,likes,y)"
    made = build(recipe_of(rules=(rule,), k2=60), KnowledgeGraph.from_names(names, type_predicate=TYPE)).negatives["nm"]
    shares = shares_of(made.origins["train"])
    assert {EDITS[edit] for edit, _ in shares} == {"drop", "drop-inequality"}
    assert min(shares.values()) > 0.9 * max(shares.values()), "but for the few that were taken"


# -- what notes say -----------------------------------------------------------------------------------


def shares_told(notes):
    """The shares of the first note, by what it calls them."""
    _, _, parts = next(note for note in notes if note.startswith("of the")).partition(": ")
    return {what: float(share.rstrip("%")) for share, _, what in (p.partition(" ") for p in parts.split(", "))}


def test_fallbacks_are_counted(bare_near_misses):
    """Nothing can be replaced; and reversed, or without some atom, there are few."""
    made = bare_near_misses.negatives["nm"]
    told = shares_told(made.notes)
    total = sum(made.splits.sizes.values())
    spare = sum(int((o.source == SOURCES.index("position")).sum()) for o in made.origins.values())
    assert told["by position-aware corruption"] == pytest.approx(100 * spare / total, abs=0.06)
    assert sum(told.values()) == pytest.approx(100, abs=0.3)
    assert told["by an edit that changes the shape of the body"] > 0


def test_a_rule_with_one_edit_tries_many_anchors(monkeypatch):
    """Its own conclusions lead nowhere; from one in ten of the relation's other subjects there is a way."""
    names = [(f"a{i}", "R", f"b{i}") for i in range(90)]
    names += [(f"c{i}", "R", f"x{i}") for i in range(10)]
    names += [(f"c{i}", "S", f"x{j}") for i in range(10) for j in range(10) if i != j]
    graph = KnowledgeGraph.from_names(names, type_predicate="")
    found = []
    for anywhere in (0, 10, 40):
        monkeypatch.setattr(drawing, "_ANYWHERE", anywhere)
        made = build(recipe_of(rules=("(x,R,y) -> (y,R,x)",), k2=60), graph).negatives["nm"]
        found.append(sum((made.origins[split].source == SOURCES.index("near-miss")).sum() for split in SPLITS))
    assert found[0] < found[1] < found[2]
    assert found[2] > 25


def test_where_candidates_run_out_train_stands_back():
    rng = np.random.default_rng(0)
    names = [(f"e{s}", "R", f"e{o}") for s, o in rng.integers(14, size=(200, 2))]
    graph = KnowledgeGraph.from_names(names, type_predicate="")
    made = build(recipe_of(rules=("(x,R,y) -> (y,R,x)",), ratio="1:1:1", min_new=1), graph).negatives["nm"]
    missing = {split: made.asked[split] - len(made.splits[split]) for split in SPLITS}
    assert missing["train"] > 0
    assert missing["test"] == 0


def test_a_spent_budget_is_told(monkeypatch):
    monkeypatch.setattr(drawing, "NearMissSearch", partial(NearMissSearch, budget=60))
    graph = small_graph()
    made = build(recipe_of(patterns=("composition",)), graph).negatives["nm"]
    (note,) = [note for note in made.notes if "given up" in note]
    given_up, of, searches = note.replace(",", "").split()[:3]
    assert of == "of"
    assert 0 < int(given_up) < int(searches)
    assert "after 60 steps" in note


def test_no_budget_is_spent_on_a_small_graph(near_misses):
    assert not [note for note in near_misses.negatives["nm"].notes if "given up" in note]


# -- the same bytes -----------------------------------------------------------------------------------


def content(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def test_both_engines_give_the_same_bytes(tmp_path):
    for engine in ("native", "duckdb"):
        recipe = recipe_of(rules=(*GIVEN, "(x,knows,y) -> (y,knows,x)"))
        write_benchmark(build(recipe, typed_graph(), engine=engine), tmp_path / engine)
    assert content(tmp_path / "native") == content(tmp_path / "duckdb")


def test_neither_threads_nor_hashes_of_texts_matter(tmp_path, loginfer):
    graph, known = tmp_path / "graph.tsv", small_graph()
    graph.write_text("".join("\t".join(t) + "\n" for t in known.names(known.triples)))
    words = ["build", graph, "-n", "nm", "-p", "composition", "-p", "symmetry"]
    words += ["--k1", "2", "--k2", "60", "--type-predicate", ""]
    program = "from loginfer.cli import main; main()"
    subprocess.run(
        [sys.executable, "-c", program, *words, "--out", tmp_path / "there"],
        check=True,
        capture_output=True,
        env=os.environ | {"PYTHONHASHSEED": "1", "NUMBA_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    )
    assert loginfer(*words, "--out", tmp_path / "here")[0] == 0
    assert content(tmp_path / "here") == content(tmp_path / "there")


@pytest.mark.parametrize("budget", [20, BUDGET])
def test_in_how_many_threads_is_searched_does_not_matter(budget, monkeypatch):
    """Not even where searches from one anchor are given up, and found something else each time."""
    monkeypatch.setattr(drawing, "NearMissSearch", partial(NearMissSearch, budget=budget))
    context = context_of(small_graph(), [parse_rule(text) for text in CHAINS], k2=60)
    found = []
    for cores in (1, 2, 7):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        found.append(sample_negatives(context, "nm"))
    assert any("given up" in note for note in found[0].notes) == (budget < BUDGET)
    for other in found[1:]:
        assert other.notes == found[0].notes
        for split in SPLITS:
            assert np.array_equal(other.splits[split], found[0].splits[split])
            for column in ("rule", "edit", "part", "predicate"):
                mine, theirs = (getattr(made.origins[split], column) for made in (found[0], other))
                assert np.array_equal(mine, theirs)


# -- files --------------------------------------------------------------------------------------------


def test_what_is_written_is_read_back(near_misses, typed_near_misses, bare_near_misses, near_miss_folder):
    for name, benchmark in (("made", near_misses), ("typed", typed_near_misses), ("bare", bare_near_misses)):
        read = load_benchmark(near_miss_folder / name)
        assert same(read, benchmark)
        for split, origins in benchmark.negatives["nm"].origins.items():
            for column in ("edit", "part", "predicate"):
                mine, theirs = (getattr(o, column) for o in (origins, read.negatives["nm"].origins[split]))
                assert mine.dtype == theirs.dtype
                assert np.array_equal(mine, theirs), (split, column)


def test_only_benchmarks_with_near_misses_have_columns_for_them(tmp_path, near_miss_folder):
    old = ["subject", "relation", "object", "split", "method", "source", "position", "rule", "kept"]
    write_benchmark(build(recipe_of(negatives=("pa", "qg")), small_graph()), tmp_path / "old")
    assert pq.read_schema(tmp_path / "old" / "negatives.parquet").names == old
    new = pq.read_schema(near_miss_folder / "made" / "negatives.parquet").names
    assert new == [*old, "edit", "part", "relation_instead", "type_instead"]
    told = json.loads((near_miss_folder / "made" / "croissant.json").read_text())
    fields = [f["name"] for s in told["recordSet"] if s["name"] == "negatives" for f in s["field"]]
    assert [name.split("/")[-1] for name in fields] == new
    assert "match" not in json.loads((near_miss_folder / "made" / "manifest.json").read_text())["recipe"]
