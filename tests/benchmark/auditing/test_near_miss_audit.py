"""The audit of near misses, and what `explain` says of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.faults import errors, lines, put, put_rows, rows_of, stamp
from tests.support.near_miss_benchmarks import recipe_of

from loginfer.benchmark import audit, build, explain_triple, write_benchmark
from loginfer.engine import open_engine
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule
from loginfer.logic.subrules import EDITS

# -- the audit ----------------------------------------------------------------------------------------


def test_the_audit_has_nothing_to_say(near_miss_folder):
    for name in ("made", "typed", "bare"):
        found = audit(near_miss_folder / name)
        assert found.ok
        assert [f for f in found.findings if f.severity == "error"] == []
        assert {figures["accuracy"] for figures in found.oracle.values()} == {1.0}


@pytest.fixture
def copy(near_miss_folder, tmp_path):
    """A benchmark to put a fault into."""
    return Path(shutil.copytree(near_miss_folder / "made", tmp_path / "copy"))


def change(folder, wanted, **values):
    """Change the first row of `negatives.parquet` that is wanted; return it as it was."""
    rows = rows_of(folder, "negatives.parquet")
    row = next(row for row in rows if wanted(row))
    before = dict(row)
    row.update({name: value(row) if callable(value) else value for name, value in values.items()})
    put_rows(folder, "negatives.parquet", rows)
    stamp(folder)
    return before


def is_edit(kind):
    return lambda row: row["edit"] == kind


@pytest.mark.parametrize(
    ("wanted", "values"),
    [
        (is_edit("reverse"), {"edit": "drop"}),
        (is_edit("drop"), {"edit": "reverse"}),
        (is_edit("replace"), {"edit": "drop-inequality"}),  # there is none at this part
        (is_edit("reverse"), {"part": 17}),
        (is_edit("replace"), {"relation_instead": None}),
        (is_edit("replace"), {"type_instead": "e01", "relation_instead": None}),
        (is_edit("reverse"), {"rule": None}),
        (is_edit("reverse"), {"edit": None}),
        (is_edit(None), {"source": "near-miss"}),
    ],
)
def test_a_wrong_edit_is_found(copy, wanted, values):
    row = change(copy, wanted, **values)
    told = errors(audit(copy), "true-origins")
    assert row["subject"] in told
    assert "near miss that is told" in told


def test_the_rules_own_relation_instead_is_found(copy):
    rules = [parse_rule(t) for t in lines(copy, "rules.txt") if t and not t.startswith("#")]
    row = change(
        copy, is_edit("replace"), relation_instead=lambda row: str(rules[row["rule"]].body[row["part"]].relation)
    )
    assert row["subject"] in errors(audit(copy), "true-origins")


def test_a_negative_that_moved_to_another_head_is_found(copy):
    rows = rows_of(copy, "negatives.parquet")
    known = {(r["subject"], r["relation"], r["object"]) for r in rows}
    test = [r for r in rows if r["split"] == "test"]
    heads = sorted({r["relation"] for r in test})
    row = next(r for r in test if r["relation"] == heads[0] and (r["subject"], heads[1], r["object"]) not in known)
    old = "\t".join((row["subject"], row["relation"], row["object"]))
    row["relation"] = heads[1]
    put_rows(copy, "negatives.parquet", rows)
    moved = "\t".join((row["subject"], row["relation"], row["object"]))
    put(copy, "test_neg_nm.txt", [moved if line == old else line for line in lines(copy, "test_neg_nm.txt")])
    stamp(copy)
    told = errors(audit(copy), "balanced-heads")
    assert "more with some head" in told
    assert "lacks 1 triples" in told


def test_a_negative_that_is_missing_without_a_note_is_found(copy):
    rows = rows_of(copy, "negatives.parquet")
    gone = next(r for r in rows if r["split"] == "test")
    put_rows(copy, "negatives.parquet", [r for r in rows if r is not gone])
    old = "\t".join((gone["subject"], gone["relation"], gone["object"]))
    put(copy, "test_neg_nm.txt", [line for line in lines(copy, "test_neg_nm.txt") if line != old])

    def fewer(manifest):
        manifest["negatives"]["nm"]["test"]["reached"] -= 1

    stamp(copy, fewer)
    (finding,) = audit(copy).found("balanced-heads")
    assert "lacks 1 triples" in finding.message
    assert finding.severity == "warning"


def test_a_derivable_negative_is_found(copy, near_misses):
    rows = rows_of(copy, "negatives.parquet")
    row = next(r for r in rows if r["split"] == "test")
    old = "\t".join((row["subject"], row["relation"], row["object"]))
    everything = near_misses.everything
    derived = open_engine(everything).conclusions(near_misses.program[0], new=True)
    names = everything.names(derived)[0]
    row.update(zip(("subject", "relation", "object"), names, strict=True))
    put_rows(copy, "negatives.parquet", rows)
    new = "\t".join(names)
    put(copy, "test_neg_nm.txt", [new if line == old else line for line in lines(copy, "test_neg_nm.txt")])
    stamp(copy)
    assert "test" in errors(audit(copy), "derivable-negatives")


# -- what is told of one triple -----------------------------------------------------------------------


def told_of(folder, loginfer, row):
    code, out, _ = loginfer("explain", folder, row["subject"], row["relation"], row["object"])
    assert code == 0
    return out.splitlines()


def rows_with(folder, kind, part=None):
    rows = rows_of(folder, "negatives.parquet")
    found = [r for r in rows if r["edit"] == kind and part in (None, r["part"])]
    assert found
    return found


def triple_of(*names):
    return f"({', '.join(names)})"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("made", "replace"), ("made", "reverse"), ("made", "drop"), ("typed", "replace"), ("bare", "reverse"),
     ("bare", "drop"), ("bare", "drop-inequality")],
)  # fmt: skip
def test_every_story_is_true(near_miss_folder, near_misses, typed_near_misses, bare_near_misses, kind, name):
    """Every part of the body that is kept holds, the edited one does not, and what is put there does."""
    benchmark = {"made": near_misses, "typed": typed_near_misses, "bare": bare_near_misses}[name]
    known = {tuple(t) for t in benchmark.kg.names(benchmark.kg.triples)}
    rows = [r for r in rows_of(near_miss_folder / name, "negatives.parquet") if r["edit"] == kind]
    assert rows
    for row in rows[:6]:
        story = explain_triple(benchmark, (row["subject"], row["relation"], row["object"]))
        assert story.derivations == ()
        (negative,) = story.negatives
        assert (negative.source, negative.edit, negative.rule) == ("near-miss", kind, row["rule"])
        rule = benchmark.program[row["rule"]]
        assert negative.edited == str(rule.body[row["part"]])
        assert len(negative.parts) == len(rule.body)
        assert (negative.instead is None) == kind.startswith("drop")
        for place, part in enumerate(negative.parts):
            assert part.kept == (place != row["part"])
            assert part.holds if part.kept else not part.holds
            if part.kept and part.triple and not part.absent:
                assert part.triple in known
        assert negative.put in known if negative.instead else negative.put is None


def test_the_command_says_what_would_have_to_be_different(near_miss_folder, loginfer):
    (row, *_) = rows_with(near_miss_folder / "typed", "replace", 0)
    texts = told_of(near_miss_folder / "typed", loginfer, row)
    assert texts[0] == triple_of(row["subject"], row["relation"], row["object"])
    assert any(f"a near miss of rule {row['rule']}" in line for line in texts)
    (would,) = [line for line in texts if "would follow if" in line]
    instead = row["relation_instead"] or row["type_instead"]
    assert instead in would.split(" were ")[0]
    assert instead not in would.split(" were ")[1]
    assert any(line.strip().startswith("does not follow") for line in texts)


def test_the_command_says_which_way_round(near_miss_folder, loginfer):
    (row, *_) = rows_with(near_miss_folder / "bare", "reverse")
    texts = told_of(near_miss_folder / "bare", loginfer, row)
    (would,) = [line for line in texts if "would follow if" in line]
    there, wanted = (part.strip(" ()").split(", ") for part in would.split("if ")[1].split(" were "))
    assert there == wanted[::-1]


def by_hand(rule, *triples):
    """A benchmark of one rule over a small graph, with one negative that its near miss concludes."""
    graph = KnowledgeGraph.from_names(triples, type_predicate="")
    return build(recipe_of(rules=(rule,), min_new=1, k2=20), graph)


def lines_of(benchmark, tmp_path, loginfer, names):
    write_benchmark(benchmark, tmp_path / "out")
    code, out, _ = loginfer("explain", tmp_path / "out", *names)
    assert code == 0
    return [line.strip() for line in out.splitlines()]


PEOPLE = [f"p{i}" for i in range(24)]


def test_the_command_says_what_the_rule_should_not_ask_for(tmp_path, loginfer):
    """p0 … p23 in a ring, who know the next two; every third one has left."""
    ring = [(PEOPLE[i], "knows", PEOPLE[(i + step) % 24]) for i in range(24) for step in (1, 2)]
    left = [(a, "left", "town") for a in PEOPLE[::3]]
    benchmark = by_hand("(x,knows,y), not (y,left,z) -> (x,meets,y)", *ring, *left)
    made = benchmark.negatives["nm"]
    dropped = [
        (triple, split)
        for split, triples in made.splits.items()
        for triple, kind in zip(benchmark.graph.names(triples), made.origins[split].edit, strict=True)
        if EDITS[kind] == "drop"
    ]
    names, split = dropped[0]
    texts = lines_of(benchmark, tmp_path, loginfer, names)
    assert f"negative by nm for {split}: a near miss of rule 0" in texts
    person = names[2]
    asked = f"would follow if the rule did not ask that there is no ({person}, left, ?z)"
    assert f"{asked}; there is ({person}, left, town)" in texts
    assert f"since ({names[0]}, knows, {person})" in texts


def test_the_command_says_that_ends_should_differ(tmp_path, loginfer):
    """Pairs that like each other: without x != z everybody would know themselves."""
    pairs = [(a, "likes", b) for i in range(0, 24, 2) for a, b in
             ((PEOPLE[i], PEOPLE[i + 1]), (PEOPLE[i + 1], PEOPLE[i]))]  # fmt: skip
    more = [(PEOPLE[i], "likes", PEOPLE[(i + 2) % 24]) for i in range(24)]
    benchmark = by_hand("(x,likes,y), (y,likes,z), x != z -> (x,knows,z)", *pairs, *more)
    made = benchmark.negatives["nm"]
    loops = [t for s in made.splits.sizes for t in benchmark.graph.names(made.splits[s]) if t[0] == t[2]]
    assert loops
    texts = lines_of(benchmark, tmp_path, loginfer, loops[0])
    assert "would follow if the rule did not ask for x≠z" in texts


def test_the_command_says_which_atom_is_too_many(near_miss_folder, loginfer):
    """The type is dropped from (x,rdf:type,Fan), (x,likes,y)."""
    row = next(r for r in rows_with(near_miss_folder / "bare", "drop", 0) if r["rule"] == 1)
    texts = told_of(near_miss_folder / "bare", loginfer, row)
    (would,) = [line.strip() for line in texts if "would follow if" in line]
    person = would.split("(")[1].split(",")[0]
    assert would == f"would follow if the rule did not ask for ({person}, rdf:type, Fan)"
    assert f"since ({person}, likes, {row['subject']})" in [line.strip() for line in texts]


def test_a_wrong_origin_is_told_without_a_near_miss(copy, loginfer):
    row = change(copy, is_edit("reverse"), part=17)
    texts = told_of(copy, loginfer, row)
    assert any("where it came from is not known" in line for line in texts)
    assert not any("would follow" in line for line in texts)


def test_a_negative_that_no_near_miss_gave_is_told_as_position_aware(near_miss_folder, loginfer):
    folder = near_miss_folder / "made"
    spare = [row for row in rows_of(folder, "negatives.parquet") if row["source"] == "position"]
    assert spare
    for row in spare[:2]:
        assert any("replaced" in line for line in told_of(folder, loginfer, row))
