"""The audit of other people's folders, what it says and leaves unsaid, and its tools one by one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force, random_rules
from tests.support.faults import TRIANGLE, lines, put, random_graph, stamp

from loginfer.benchmark.auditing.audit import audit
from loginfer.benchmark.auditing.audited import AuditedBenchmark
from loginfer.benchmark.auditing.negatives import coverage, sub_rule_groups, witnessed_subrules
from loginfer.benchmark.auditing.rules import predicates, represents
from loginfer.benchmark.construction.pipeline import build
from loginfer.benchmark.folder.writing import graph_sum, write_benchmark
from loginfer.benchmark.negatives.query_candidates import groups_of, members
from loginfer.benchmark.program import kept_masks, sub_rule
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import extend, open_engine
from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic import instantiate, parse_pattern, parse_rule, patterns


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit") / "benchmark"
    recipe = Recipe(kg="random", patterns=(TRIANGLE,), k1=3, k2=60, negatives=("pa", "qg"), seed=2)
    write_benchmark(build(recipe, random_graph()), folder)
    return folder


@pytest.fixture
def released(original: Path, tmp_path: Path) -> Path:
    """Files as others release them: triples, nothing else."""
    folder = tmp_path / "released"
    folder.mkdir()
    for split in ("train", "valid", "test"):
        shutil.copy(original / f"{split}.txt", folder)
        shutil.copy(original / f"{split}_neg_pa.txt", folder)
    return folder


# -- folders of others -----------------------------------------------------------------------------


def test_a_folder_without_manifest_says_what_could_not_be_checked(released):
    found = audit(released)
    assert found.ok
    assert found.skipped["derivable"] == "the rules are not known (no rules.txt)"
    assert found.skipped["kg-sum"] == "there is no manifest.json"
    assert found.skipped["witnesses"] == "there is no provenance.parquet"
    assert "oracle" in found.skipped
    assert found.oracle == {}
    assert {"disjoint", "duplicates", "signature", "balance"} <= set(found.passed)
    assert set(found.shortcuts["pa"]) >= {"learned", "adjacent", "simpbl", "relation-name"}
    assert "skeleton" not in found.shortcuts["pa"]


def test_leaks_of_a_folder_without_manifest_are_errors(released):
    test, valid = lines(released, "test.txt"), lines(released, "valid.txt")
    put(released, "valid.txt", [*valid, test[0], test[0]])
    found = audit(released)
    assert not found.ok
    assert {f.check for f in found.findings if f.severity == "error"} == {"disjoint", "duplicates", "balance"}


def test_rules_without_a_manifest_are_used(original, released):
    shutil.copy(original / "rules.txt", released)
    found = audit(released)
    assert found.ok
    assert "derivable" in found.passed
    assert found.oracle["pa"] == {"accuracy": 1.0, "recall": 1.0, "false_positive_rate": 0.0}
    put(released, "test.txt", [*lines(released, "test.txt")[1:], "e00\thelps\te00"])
    assert "from P_train" in audit(released).found("derivable")[0].message


def test_a_folder_without_valid_is_audited(released):
    for name in ("valid.txt", "valid_neg_pa.txt"):
        (released / name).unlink()
    found = audit(released)
    (finding,) = found.found("missing-files")
    assert finding.severity == "note"
    assert "there is no valid" in finding.message
    assert set(found.shortcuts["pa"]) == {"simpbl"}


@pytest.mark.parametrize(("name", "told"), [("valid.txt", "P_valid"), ("valid_neg_pa.txt", "N_valid")])
def test_half_a_valid_is_an_error(released, name, told):
    (released / name).unlink()
    found = audit(released)
    assert [(f.severity, f.message) for f in found.found("missing-files")] == [
        ("error", f"there is no file with {told}")
    ]


def test_a_valid_that_nobody_asked_for_is_not_missed(tmp_path):
    recipe = Recipe(kg="random", patterns=("symmetry",), k1=2, k2=40, ratio="4:0:1", negatives=("pa",), seed=3)
    write_benchmark(build(recipe, random_graph(seed=8)), tmp_path / "out")
    found = audit(tmp_path / "out")
    assert [str(f) for f in found.findings if f.severity != "note"] == []
    assert found.shortcuts["pa"]["learned"]["valid_accuracy"] is None


def test_a_folder_without_negatives_is_audited(released):
    for path in released.glob("*_neg_pa.txt"):
        path.unlink()
    found = audit(released)
    assert found.ok
    assert found.shortcuts == {}
    assert found.skipped["balance"] == "the benchmark has no negatives"


def test_what_is_no_benchmark_is_refused(tmp_path):
    with pytest.raises(InputError):
        audit(tmp_path / "nothing")


# -- what is said ----------------------------------------------------------------------------------


def test_the_outcome_is_plain_json(original):
    found = audit(original, closure=False)
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["ok"] is True
    about_shortcuts = {"shortcuts", "oracle", "forgotten", "splits"}
    assert set(plain) == {"benchmark", "ok", "findings", "checks", "skipped"} | about_shortcuts
    for finding in plain["findings"]:
        assert set(finding) == {"check", "severity", "count", "message", "examples"}
        assert len(finding["examples"]) <= 5
    assert plain["skipped"].pop("entailed-negatives") == "the materialisation was not asked for"
    assert set(plain["skipped"]) == {"splits-alike"}


def test_errors_come_first(original, tmp_path):
    folder = Path(shutil.copytree(original, tmp_path / "copy"))
    put(folder, "test.txt", lines(folder, "test.txt")[:-1])
    severities = [finding.severity for finding in audit(folder).findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert severities[0] == "error"


def test_candidates_that_ran_out_are_a_warning(tmp_path):
    names = [(f"e{i}", "likes", f"e{j}") for i in range(6) for j in range(i)]
    graph = KnowledgeGraph.from_names(names, type_predicate="")
    made = build(Recipe("order", rules=("(x,likes,y) -> (y,likes,x)",), negatives=("rb",)), graph)
    assert made.negatives["rb"].splits.sizes["train"] < made.positives.sizes["train"]
    write_benchmark(made, tmp_path / "out")
    for found in (audit(made), audit(tmp_path / "out")):
        assert found.ok
        assert {f.severity for f in found.found("balance")} == {"warning"}


def test_given_rules_with_types_pass(tmp_path):
    rng = np.random.default_rng(4)
    names = [f"e{i}" for i in range(60)]
    rows = {(names[rng.integers(60)], ["knows", "likes"][rng.integers(2)], names[rng.integers(60)]) for _ in range(400)}
    rows |= {(name, RDF_TYPE, ["Person", "Robot"][rng.integers(2)]) for name in names}
    rules = (
        "(x,knows,y), (y,type,Robot) -> (x,type,Owner)",
        "(x,likes,y), (y,knows,x), x != y -> (x,befriends,y)",
        "(x,hates,y) -> (x,knows,y)",
    )
    methods, parts = ("rb", "pa", "qg", "rc"), ("subject", "relation", "object")
    recipe = Recipe("typed", rules=rules, negatives=methods, corrupt=parts, min_new=3)
    write_benchmark(build(recipe, KnowledgeGraph.from_names(sorted(rows))), tmp_path / "out")
    found = audit(tmp_path / "out")
    assert [str(f) for f in found.findings if f.severity == "error"] == []
    # A small graph may run out of candidates, and nobody hates; nothing else deserves a warning.
    warnings = [f for f in found.findings if f.severity == "warning" and f.check != "balance"]
    assert [(f.check, str(f.examples[0])) for f in warnings] == [
        ("rare-rules", "rules.txt, rule 2: `hates` in `(x,hates,y) -> (x,knows,y)`")
    ]
    assert {figures["accuracy"] for figures in found.oracle.values()} == {1.0}
    assert found.skipped.pop("rule-shapes") == "no rule says which pattern it represents"
    assert set(found.skipped) == {"splits-alike"}


def test_negatives_that_must_not_follow_in_any_number_of_steps_are_errors(tmp_path):
    rule = "(x,likes,y), (y,likes,z) -> (x,likes,z)"
    names = [(f"e{i:02d}", "likes", f"e{(i * 7 + k) % 40:02d}") for i in range(40) for k in range(2)]
    graph = KnowledgeGraph.from_names(names, type_predicate="")
    recipe = Recipe("paths", rules=(rule,), negatives=("pa",), min_new=3, k2=30)
    made = build(recipe, graph)
    (finding,) = audit(made).found("entailed-negatives")
    assert finding.severity == "warning", "a quarter of them and more"
    assert "`materialised` keeps them out" in finding.message
    write_benchmark(made, tmp_path / "out")
    stamp(tmp_path / "out", lambda manifest: manifest["recipe"].update(materialised=True))
    (finding,) = audit(tmp_path / "out").found("entailed-negatives")
    assert finding.severity == "error"


# -- its tools -------------------------------------------------------------------------------------


def test_the_sum_of_a_graph_is_that_of_its_sorted_lines():
    import hashlib

    graph = KnowledgeGraph.from_names([("b", "knows", "a"), ("a", "knows", "ä"), ("a", "is", "b")])
    text = "a\tis\tb\na\tknows\tä\nb\tknows\ta\n"
    assert graph_sum(graph) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("pattern", patterns(), ids=lambda pattern: pattern.name)
def test_a_rule_is_represented_by_its_own_pattern_only(pattern):
    names = [f"p{i}" for i in range(len(pattern.templates))]
    head = None if pattern.head_in_body else "head"
    rule = instantiate(pattern, [f"<{name}>" for name in names], head)
    assert predicates(pattern, rule) is not None
    assert [other.name for other in patterns() if represents(other, rule)] == [pattern.name]


def test_shapes_are_compared_up_to_renaming_and_order():
    pattern = parse_pattern("(x,_R,y), (y,_S,z), x != z -> (x,_T,z)")
    assert represents(pattern, parse_rule("b != a, (c,likes,b), (a,knows,c) -> (a,helps,b)"))
    assert predicates(pattern, parse_rule("(x,knows,y), (y,likes,z), z != x -> (x,helps,z)")) == dict(
        zip(pattern.templates, ("knows", "likes"), strict=True)
    )
    for other in (
        "(x,knows,y), (y,likes,z) -> (x,helps,z)",  # an inequality is missing
        "(x,knows,y), (y,likes,z), x != y -> (x,helps,z)",  # another inequality
        "(x,knows,y), (y,likes,z), x != z -> (x,knows,z)",  # the head's predicate is in the body
        "(x,knows,y), (y,likes,x), x != y -> (x,helps,x)",  # two variables are one
        "(x,knows,y), (y,likes,z), x != z -> (z,helps,x)",  # the head is turned
        "(x,knows,Ann), (Ann,likes,z), x != z -> (x,helps,z)",  # a constant
        "(x,knows,y), (y,type,Robot), x != y -> (x,helps,y)",
    ):
        assert not represents(pattern, parse_rule(other)), other


def test_type_templates_and_fixed_names_are_compared():
    pattern = parse_pattern("(x,type,_t), (x,knows,y) -> (y,type,_u)")
    assert represents(pattern, parse_rule("(x,type,Robot), (x,knows,y) -> (y,type,Owner)"))
    assert not represents(pattern, parse_rule("(x,type,Robot), (x,likes,y) -> (y,type,Owner)"))
    assert not represents(pattern, parse_rule("(x,type,Robot), (x,knows,y) -> (y,type,Robot)"))


@st.composite
def rules_with_inequalities(draw):
    graph = draw(random_rules.graphs())
    rule = draw(random_rules.rules(graph, atoms=3))
    return extend(graph, [rule]), rule


@given(rules_with_inequalities())
@settings(max_examples=60)
def test_sub_rules_conclude_what_their_definition_says(case):
    graph, rule = case
    if len(rule.body) > 8:
        return
    (masks,) = kept_masks([rule])
    expected = {mask: set(brute_force.conclusions(sub_rule(rule, mask), graph)) for mask in masks}
    asked = np.array(sorted(set().union(*expected.values(), map(tuple, graph.triples.tolist()))), dtype=np.int32)
    asked = asked.reshape(-1, 3)
    engine = open_engine(graph)
    seen = []
    for group in groups_of(0, rule, masks):
        (found,) = members(engine, [group], asked)
        for column, mask in enumerate(group.masks):
            owners = np.full(len(asked), column)
            got = {tuple(row) for row in asked[found.of(owners)].tolist()}
            assert got == expected[mask]
            assert bool(found.every.any() or found.by[:, column].any()) == bool(
                expected[mask] & set(map(tuple, asked.tolist()))
            )
            seen.append(mask)
    assert sorted(seen) == sorted(masks)


def test_coverage_is_that_of_the_definition():
    graph = random_graph(seed=3, entities=12, relations=3, triples=60)
    recipe = Recipe("random", patterns=(TRIANGLE,), k1=2, k2=20, negatives=("pa", "qg"), min_new=3)
    benchmark = build(recipe, graph)
    audited = AuditedBenchmark(benchmark)
    masks = kept_masks(audited.rules)
    groups = sub_rule_groups(audited)
    concluding = {
        (i, mask): set(brute_force.conclusions(sub_rule(rule, mask), benchmark.kg))
        for i, rule in enumerate(audited.rules)
        for mask in masks[i]
    }
    missing = 0
    for method, split in (("pa", "train"), ("pa", "test"), ("qg", "train"), ("qg", "test")):
        made = benchmark.negatives[method]
        known = set(map(tuple, made.splits[split].tolist()))
        expected = {pair for pair, triples in concluding.items() if not triples & known and reachable(audited, pair)}
        missing += len(expected)
        for origins in (None, made.origins[split]):
            found = coverage(audited, groups, made.splits[split], origins)
            assert set(found.missing) == expected
        possible = {pair for pair in concluding if reachable(audited, pair)}
        assert witnessed_subrules(benchmark, method, split) == (len(possible - expected), len(possible))
    assert 0 < missing < 4 * len(concluding)


def reachable(audited: AuditedBenchmark, pair: tuple[int, int]) -> bool:
    """Whether the atoms of a sub-rule have a witness at all."""
    rule = audited.rules[pair[0]]
    (group,) = groups_of(pair[0], rule, [pair[1]])
    return brute_force.support(group.base, audited.kg) > 0


@pytest.mark.data
def test_nothing_is_wrong_with_a_benchmark_on_a_real_graph(data_folder, tmp_path):
    from loginfer.kg import load_graph

    methods = ("rb", "pa", "qg", "rc")
    recipe = Recipe("wn18rr", patterns=("triangle",), k1=10, k2=1000, negatives=methods, allow_fewer=True)
    graph = load_graph(data_folder / "WN18RR.tar.gz")
    write_benchmark(build(recipe, graph), tmp_path / "out")
    found = audit(tmp_path / "out")
    # Negatives of train stand against all of P_train, those of test against conclusions alone.
    assert {f.check for f in found.findings if f.severity != "note"} == {"splits-alike"}
    assert {figures["accuracy"] for figures in found.oracle.values()} == {1.0}
    # What the paper's own files give away: the shape of the body says nearly everything.
    assert found.shortcuts["pa"]["common-neighbours"]["balanced_accuracy"] > 0.9
    assert found.shortcuts["pa"]["skeleton"]["balanced_accuracy"] > 0.9
    assert found.shortcuts["qg"]["common-neighbours"]["balanced_accuracy"] < 0.8


def test_empty_files_are_errors(released):
    put(released, "test.txt", [])
    put(released, "test_neg_pa.txt", [])
    found = audit(released)
    assert [f.message for f in found.found("missing-files")] == ["`test.txt` holds no triples"]
    for name in ("train", "valid", "test"):
        for file in (f"{name}.txt", f"{name}_neg_pa.txt"):
            put(released, file, [])
    assert not audit(released).ok


def test_negatives_for_training_may_be_left_to_the_system(released):
    (released / "train_neg_pa.txt").unlink()
    for split in ("valid", "test"):
        (released / f"{split}_neg_pa.txt").rename(released / f"{split}_negatives.txt")
    found = audit(released)
    assert found.ok
    assert [(f.severity, f.message) for f in found.found("missing-files")] == [
        ("warning", "there is no file with N_train")
    ]
    assert "balance" in found.passed


def test_what_a_check_found_stands_when_it_cannot_go_on(released, monkeypatch):
    from loginfer.benchmark.auditing import audit as auditing
    from loginfer.benchmark.auditing.findings import CannotCheckError, error

    def check(_):
        yield error(1, "something is wrong")
        raise CannotCheckError("and more cannot be seen")

    monkeypatch.setitem(auditing.CHECKS, "half", auditing.Check(check))
    found = audit(released)
    assert [f.message for f in found.found("half")] == ["something is wrong"]
    assert found.skipped["half"] == "and more cannot be seen"
    assert not found.ok
    assert "half" not in found.passed
