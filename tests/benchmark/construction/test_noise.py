"""Noise: labels of train that are flipped, premises that are missing, all of it recorded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.definitions import as_set
from tests.support.faults import lines, put, random_graph, stamp
from tests.support.made_up_benchmarks import same

from loginfer.benchmark import Benchmark, Recipe, audit, build, explain_triple, load_benchmark
from loginfer.benchmark.construction.noise import premises
from loginfer.errors import InputError
from loginfer.evaluation import evaluate
from loginfer.kg import KnowledgeGraph

COMPOSITION = "(x,helps,y), (y,knows,z) -> (x,likes,z)"
HIERARCHY = "(x,meets,y) -> (x,helps,y)"
KINDS = ("flipped-positive", "flipped-negative", "missing")


def recipe_of(**settings) -> Recipe:
    values = {"rules": (COMPOSITION, HIERARCHY), "k2": 60, "negatives": ("pa",), "seed": 3}
    return Recipe("random", **(values | settings))


def noisy(graph: KnowledgeGraph | None = None, **settings) -> Benchmark:
    values = {"flipped": 0.2, "missing": 0.15} | settings
    return build(recipe_of(**values), graph or random_graph(entities=40, triples=300))


def kinds_of(benchmark: Benchmark) -> dict[str, set]:
    return {kind: as_set(benchmark.noise.of(kind)) for kind in KINDS}


def signature(benchmark: Benchmark) -> tuple[set, set]:
    train = benchmark.positives.train
    return set(train[:, ::2].ravel().tolist()), set(train[:, 1].tolist())


@settings(max_examples=40)
@given(st.integers(0, 30), st.sampled_from([0.05, 0.29, 0.45]), st.sampled_from([0.0, 0.3, 0.9]))
def test_exactly_what_is_recorded_is_wrong(seed, flipped, missing):
    graph = random_graph(seed, entities=14, relations=4, triples=70)
    values = {"k2": 30, "min_new": 1, "seed": seed}
    try:
        clean = build(recipe_of(**values), graph)
    except InputError:
        return  # no rule concludes anything
    made = build(recipe_of(flipped=flipped, missing=missing, **values), graph)
    away, wrong, gone = kinds_of(made).values()
    conclusions = as_set(clean.provenance.triples[clean.provenance.split == 0])
    true, false = as_set(clean.positives.train), as_set(clean.negatives["pa"].splits.train)
    assert away <= conclusions
    assert wrong <= false
    assert len(away) == len(wrong) <= int(flipped * 100 + 0.5) * len(conclusions) // 100
    assert as_set(made.positives.train) == (true - away - gone) | wrong
    assert as_set(made.negatives["pa"].splits.train) == (false - wrong) | away
    for split in ("valid", "test"):
        assert np.array_equal(made.positives[split], clean.positives[split])
        assert np.array_equal(made.negatives["pa"].splits[split], clean.negatives["pa"].splits[split])
    # Missing are triples of K which a witness needs; no name disappears with them.
    needed = brute_force_premises(clean)
    assert as_set(clean.graph.keys.unpack(premises(clean))) == needed
    assert gone <= needed
    assert len(gone) <= int(missing * 100 + 0.5) * len(needed) // 100
    for before, after in zip(signature(clean), signature(made), strict=True):
        assert before <= after
    # Noise can be undone, K is what it was.
    assert made.kg == clean.kg == graph.with_names(relations=clean.graph.relations)
    assert np.array_equal(made.clean.positives.train, clean.positives.train)
    assert np.array_equal(made.everything.triples, clean.everything.triples)


def brute_force_premises(benchmark: Benchmark) -> set:
    """The premises of all recorded witnesses, by a loop."""
    found, known = set(), benchmark.provenance
    for pair, number in enumerate(known.rule.tolist()):
        rule = benchmark.program[number]
        ids = known.values[known.offsets[pair] : known.offsets[pair + 1]].tolist()
        value = dict(zip(rule.variables, ids, strict=True))
        for atom in rule.atoms:
            relation = benchmark.graph.relation_id(str(atom.relation))
            found.add((value[atom.subject], relation, value[atom.object]))
    return found


def test_shares_are_exact_where_no_name_is_in_danger():
    made = noisy(random_graph(), flipped=0.29, missing=0.1)
    counts = made.noise.as_dict()
    conclusions = int((made.provenance.split == 0).sum())
    pool = len(brute_force_premises(made.clean))
    assert counts["flipped-positive"] == counts["flipped-negative"] == 29 * conclusions // 100 > 0
    assert counts["missing"] == pool // 10 > 0
    assert counts["asked"] == {"flipped": 29 * conclusions // 100, "missing": pool // 10}
    assert not made.notes


def test_a_premise_whose_removal_takes_a_name_stays_and_a_note_says_so():
    names = [(f"a{i}", "helps", f"b{i}") for i in range(30)]
    graph = KnowledgeGraph.from_names(names, type_predicate="")
    made = build(
        Recipe("chain", rules="(x,helps,y) -> (y,is helped by,x)".replace("is helped by", "<is helped by>"),
               missing=0.9),
        graph,
    )  # fmt: skip
    assert {len(a - b) for a, b in zip(signature(made.clean), signature(made), strict=True)} == {0}
    assert len(made.noise) < made.noise.asked["missing"] == 27
    assert any("premises are missing instead of 27" in note for note in made.notes)


def test_what_the_rules_reach_from_p_train_as_it_is_is_counted():
    made = noisy()
    for split in ("valid", "test"):
        derived = {t for rule in made.program for t in brute_force.conclusions(rule, made.graph)}
        assert made.noise.reached[split] == len(as_set(made.positives[split]) & derived)
    assert made.noise.reached["test"] < len(made.positives.test)


@pytest.mark.parametrize("method", ["pa", "rb", "rc", "qg", "nm"])
def test_written_and_read_again_it_is_the_same(tmp_path, method):
    made = noisy(negatives=(method,))
    made.save(tmp_path / "b")
    read = load_benchmark(tmp_path / "b")
    assert same(made, read)
    assert same(made.clean, read.clean)
    for column in ("triples", "kind"):
        assert np.array_equal(getattr(made.noise, column), getattr(read.noise, column))
    assert (made.noise.asked, made.noise.reached) == (read.noise.asked, read.noise.reached)
    assert read.manifest["noise"] == made.noise.as_dict()
    read.save(tmp_path / "again")
    assert {p.name: p.read_bytes() for p in (tmp_path / "b").iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "again").iterdir()
    }


def test_both_engines_give_the_same_bytes(tmp_path):
    graph = random_graph(entities=40, triples=300)
    for engine in ("native", "duckdb"):
        made = build(recipe_of(flipped=0.2, missing=0.15), graph, engine=engine)
        made.save(tmp_path / engine)
    for path in (tmp_path / "native").iterdir():
        assert path.read_bytes() == (tmp_path / "duckdb" / path.name).read_bytes(), path.name


def test_a_benchmark_without_noise_says_nothing_about_it(tmp_path):
    clean = build(recipe_of(), random_graph(entities=40, triples=300))
    clean.save(tmp_path / "b")
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert not {"noise", "inductive"} & set(manifest)
    assert not {"flipped", "missing", "inductive", "inductive_share"} & set(manifest["recipe"])
    text = (tmp_path / "b" / "README.md").read_text() + (tmp_path / "b" / "croissant.json").read_text()
    assert "noise" not in text.lower()
    assert not (tmp_path / "b" / "noise.parquet").exists()
    assert clean.clean is clean
    assert clean.seen is clean.graph


def test_card_and_description_tell_of_the_noise(tmp_path):
    made = noisy()
    made.save(tmp_path / "b")
    card = (tmp_path / "b" / "README.md").read_text()
    counts = made.noise.as_dict()
    assert f"premises that are missing, though true: {counts['missing']:,}" in card
    assert f"derive {made.noise.reached['valid'] / len(made.positives.valid):.1%} of valid" in card
    described = json.loads((tmp_path / "b" / "croissant.json").read_text())
    fields = {s["name"]: [f["name"] for f in s["field"]] for s in described["recordSet"]}
    assert fields["noise"] == ["subject", "relation", "object", "kind"]


# -- audit -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("noise") / "benchmark"
    noisy(random_graph()).save(folder)
    return folder


@pytest.fixture
def folder(original, tmp_path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "benchmark"))


def rows_of(folder: Path, kind: str) -> list[str]:
    table = pq.read_table(folder / "noise.parquet").to_pylist()
    return [f"{r['subject']}\t{r['relation']}\t{r['object']}" for r in table if r["kind"] == kind]


def test_the_audit_finds_nothing_wrong_and_the_oracle_is_right(original):
    found = audit(original)
    assert found.ok, [finding.message for finding in found.findings]
    assert {"noise", "kg-sum", "derivable-negatives", "provenance", "true-origins"} <= set(found.passed)
    assert found.oracle["pa"]["accuracy"] == 1
    notes = [finding.message for finding in found.found("noise")]
    counts = load_benchmark(original).noise.as_dict()
    assert any(f"{counts['flipped-positive']:,} conclusions" in note for note in notes)
    assert any(f"{counts['missing']:,} premises are missing from P_train on purpose" in n for n in notes)


def test_the_audit_finds_a_flip_that_is_not_recorded(folder):
    benchmark = load_benchmark(folder)
    provenance, names = benchmark.provenance, benchmark.graph.names
    still = [
        "\t".join(names(triple)[0])
        for triple in provenance.triples[provenance.split == 0]
        if benchmark.graph.contains(triple)[0]
    ]
    put(folder, "train.txt", [row for row in lines(folder, "train.txt") if row != still[0]])
    put(folder, "train_neg_pa.txt", [*lines(folder, "train_neg_pa.txt"), still[0]])
    stamp(folder)
    found = audit(folder)
    assert not found.ok
    assert found.found("provenance")
    assert found.found("derivable-negatives")


def test_the_audit_finds_a_negative_that_became_positive_unrecorded(folder):
    moved = next(r for r in lines(folder, "train_neg_pa.txt") if r not in rows_of(folder, "flipped-positive"))
    put(folder, "train_neg_pa.txt", [row for row in lines(folder, "train_neg_pa.txt") if row != moved])
    put(folder, "train.txt", [*lines(folder, "train.txt"), moved])
    stamp(folder)
    assert audit(folder).found("kg-sum")


@pytest.mark.parametrize(
    ("kind", "file", "message"),
    [
        ("flipped-positive", "train_neg_pa.txt", "are not in N_train"),
        ("flipped-negative", "train.txt", "are not in P_train"),
    ],
)
def test_the_audit_finds_a_recorded_flip_that_was_taken_back(folder, kind, file, message):
    gone = rows_of(folder, kind)[0]
    put(folder, file, [row for row in lines(folder, file) if row != gone])
    stamp(folder)
    assert any(message in finding.message for finding in audit(folder).found("noise"))


def test_the_audit_finds_a_missing_premise_that_is_there_or_a_negative(folder):
    back = rows_of(folder, "missing")[:2]
    put(folder, "train.txt", [*lines(folder, "train.txt"), back[0]])
    put(folder, "test_neg_pa.txt", [*lines(folder, "test_neg_pa.txt"), back[1]])
    stamp(folder)
    messages = [finding.message for finding in audit(folder).found("noise")]
    assert any("1 missing premises are in P_train" in message for message in messages)
    assert any("1 missing premises are negatives" in message for message in messages)


def test_the_audit_finds_a_table_of_noise_that_lacks_a_row_or_is_not_there(folder):
    table = pq.read_table(folder / "noise.parquet")
    pq.write_table(table.slice(1), folder / "noise.parquet")
    stamp(folder)
    found = audit(folder)
    assert found.found("noise")
    assert found.found("kg-sum") or found.found("provenance") or found.found("negative-origins")
    (folder / "noise.parquet").unlink()
    stamp(folder, lambda manifest: manifest["files"].pop("noise.parquet"))
    assert any("no `noise.parquet`" in finding.message for finding in audit(folder).found("noise"))


def test_a_damaged_table_of_noise_is_one_clear_message(folder):
    table = pq.read_table(folder / "noise.parquet")
    words = pa.array(["flipped"] * len(table))
    place = table.schema.get_field_index("kind")
    pq.write_table(table.set_column(place, "kind", words), folder / "noise.parquet")
    stamp(folder)
    with pytest.raises(InputError, match="column `kind` holds `flipped`"):
        load_benchmark(folder)
    assert audit(folder).found("readable")


# -- explanations and systems ----------------------------------------------------------------------


def test_an_explanation_names_the_noise_and_missing_premises():
    made = noisy()
    for kind in KINDS:
        assert explain_triple(made, made.noise.of(kind)[0].tolist()).noise == kind
    flipped = explain_triple(made, made.noise.of("flipped-positive")[0].tolist())
    assert "N_train of pa" in flipped.sets
    assert "P_train" not in flipped.sets
    assert flipped.derivations
    missing = kinds_of(made)["missing"]
    named = set(map(tuple, made.graph.names(np.array(sorted(missing), dtype=np.int32))))
    stories = [explain_triple(made, triple.tolist()) for triple in made.positives.test]
    for story in stories:
        for derivation in story.derivations:
            assert set(derivation.missing) == set(derivation.premises) & named
    assert any(derivation.missing for story in stories for derivation in story.derivations)


def test_systems_see_the_noise_and_the_oracle_does_not():
    made = noisy(random_graph())
    assert evaluate(made, "oracle").metrics["accuracy"] == 1
    for system in ("exact", "simpbl", "contrast"):
        assert evaluate(made, system).metrics["accuracy"] is not None


def test_settings_that_make_no_sense_are_refused():
    for values, message in (
        ({"flipped": 0.5}, "from 0 to below 0.5"),
        ({"flipped": -0.1}, "from 0 to below 0.5"),
        ({"missing": 1}, "from 0 to below 1"),
        ({"missing": float("nan")}, "from 0 to below 1"),
        ({"missing": True}, "must be a number"),
        ({"flipped": 0.1, "negatives": ("pa", "qg")}, "negatives of one method, not of pa, qg"),
        ({"flipped": 0.1, "inductive": True}, "either noisy or inductive"),
        ({"missing": 0.1, "depth": 2}, "neither noisy nor inductive"),
    ):
        with pytest.raises(InputError, match=message):
            recipe_of(**values)


def test_noise_is_built_audited_and_explained_from_the_command_line(loginfer, tmp_path):
    kg = tmp_path / "kg.tsv"
    graph = random_graph(entities=40, triples=300)
    kg.write_text("".join("\t".join(t) + "\n" for t in graph.names(graph.triples)))
    out = tmp_path / "b"
    words = ("build", kg, "--rules", COMPOSITION, "--out", out)
    code, said, _ = loginfer(*words, "--flipped", 0.2, "--missing", 0.2)
    assert code == 0
    assert "conclusions of train are negatives" in said
    assert "the rules themselves derive" in said
    assert loginfer("audit", out)[0] == 0
    subject, relation, object_ = rows_of(out, "missing")[0].split("\t")
    code, said, _ = loginfer("explain", out, subject, relation, object_)
    assert code == 0
    assert "noise: a premise that was removed from P_train" in said
    code, _, err = loginfer(*words, "--flipped", 0.7, "--force")
    assert code == 2
    assert "`--flipped` must be a share" in err
    code, _, err = loginfer(*words, "--flipped", 0.1, "-n", "pa", "-n", "rb", "--force")
    assert code == 2
    assert "one method" in err
