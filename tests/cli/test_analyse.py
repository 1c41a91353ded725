"""`loginfer rules analyse`, run as users run it."""

import json
import shutil

import pytest
from tests.support.made_up_benchmarks import family

from loginfer.benchmark import write_benchmark

MINED = (
    "4\t3\t0.6\tknows(X,Y) <= likes(X,A), likes(A,Y)\n"
    "4\t2\t0.04\tsupports(X,Y) <= likes(X,Y)\n"
    "9\t9\t0.9\tknows(X,Y) <= unheard(X,Y)\n"
    "9\t9\t0.01\tknows(X,ada) <= \n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("benchmarks") / "family"
    write_benchmark(family(), path)
    return path


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "mined.tsv"
    path.write_text(MINED)
    return path


def test_the_answer_for_programs_has_each_share_and_each_rule(loginfer, folder, rules):
    code, printed, err = loginfer("rules", "analyse", folder, "--rules", rules, "--json")
    assert code == 0
    answer = json.loads(printed)
    assert answer["mined"] == 2
    assert answer["eps_ent"] == 2 / 3
    assert answer["eps_cont"] == 0
    assert answer["eps_ent_single_step"] == 2 / 3
    assert 0 <= answer["eps_ent_random_heads"] <= 1
    assert answer["subrules_entailed"] == 1
    assert [f["confidence"] for f in answer["by_confidence"]] == [0, 0.05, 0.1, 0.5]
    assert [f["mined"] for f in answer["by_confidence"]] == [2, 1, 1, 1]
    first, second, third = answer["rules"]
    assert (first["status"], second["status"], third["status"]) == ("entailed", "missed", "entailed")
    assert third["derivation"] == [
        {"rule": "(x,likes,y) -> (x,supports,y)", "premises": ["(x,likes,y)"], "conclusion": "(x,supports,y)"}
    ]
    assert {"rule": "(x,likes,y) -> (x,supports,y)", "entailed": True} in third["subrules"]
    assert second["found"] is second["entailed"] is second["single_step"] is False
    assert "left out 1 of the mined rules: a relation that the graph does not have" in err
    assert "left out 1 zero rules" in err


def test_people_see_figures_beside_their_controls_and_derivations_in_words(loginfer, folder, rules):
    code, printed, _ = loginfer("rules", "analyse", folder, "--rules", rules, "--confidences", "0.5")
    assert code == 0
    lines = printed.splitlines()
    (header,) = [line for line in lines if "ε_ent" in line]
    assert " ".join(header.split()) == "confidence mined ε_ent one step random heads ε_cont R⁻ entailed"
    (everything,) = [line for line in lines if line.split()[:1] == ["all"]]
    assert everything.split()[1:4] == ["2", "66.7", "%"]
    assert any(line.split()[:2] == ["≥", "0.5"] for line in lines)
    assert "2 entailed, 1 missed" in printed
    assert printed.index("missed    likes(x,y) → hears of(y,x)") < printed.index("entailed  ")
    assert "1. from likes(x,y) follows supports(x,y)" in printed
    assert "undesired, but entailed too: likes(x,y) → supports(x,y)" in printed
    _, printed, err = loginfer("rules", "analyse", folder, "--rules", rules, "--top", "1")
    assert "entailed  " not in printed
    assert "2 more rules" in err


def test_the_figures_fit_a_terminal_and_names_are_short_unless_asked_for_in_full(loginfer, tmp_path):
    folder, mined = tmp_path / "plain", tmp_path / "mined.rules"
    folder.mkdir()
    likes, knows, trusts = (f"http://a.rather.long.name.org/ontology#{name}" for name in ("likes", "knows", "trusts"))
    (folder / "train.txt").write_text(f"ann\t{likes}\tbob\nann\t{knows}\tbob\nann\t{trusts}\tbob\n")
    (folder / "test.txt").write_text(f"bob\t{knows}\tann\n")
    (folder / "rules.txt").write_text(f"(x,{likes},y), (x,{trusts},y) -> (x,{knows},y)\n")
    mined.write_text(f"(x,{likes},y) -> (x,{knows},y)\n")
    words = ("rules", "analyse", folder, "--rules", mined)
    code, printed, _ = loginfer(*words)
    assert code == 0
    assert max(map(len, printed.splitlines())) <= 80
    assert "entailed  likes(x,y) ∧ trusts(x,y) → knows(x,y)" in printed
    assert "1. from likes(x,y) follows knows(x,y)" in printed
    assert "by likes(x,y) → knows(x,y)" in printed
    assert f"by (x,{likes},y) -> (x,{knows},y)" in loginfer(*words, "--full-names")[1]


def test_the_answer_is_written_and_not_overwritten(loginfer, folder, rules, tmp_path):
    out = tmp_path / "answer.json"
    words = ("rules", "analyse", folder, "--rules", rules, "--out", out)
    assert loginfer(*words)[0] == 0
    printed = loginfer("rules", "analyse", folder, "--rules", rules, "--json")[1]
    assert json.loads(out.read_text()) == json.loads(printed)
    code, _, err = loginfer(*words)
    assert code == 2
    assert "answer.json" in err
    assert loginfer(*words, "--force")[0] == 0


def test_other_dialects_and_seeds(loginfer, folder, tmp_path):
    path = tmp_path / "mined.rules"
    path.write_text((folder / "rules.txt").read_text())
    words = ("rules", "analyse", folder, "--rules", path, "--json")
    answer = json.loads(loginfer(*words)[1])
    assert answer["eps_cont"] == answer["eps_ent"] == 1
    assert answer == json.loads(loginfer(*words)[1])
    other = json.loads(loginfer(*words, "--seed", "1", "--draws", "3")[1])
    assert (other["seed"], other["draws"], other["eps_ent"]) == (1, 3, 1)


def test_a_line_that_is_no_rule_is_told_with_its_number_or_skipped(loginfer, folder, rules):
    rules.write_text(MINED.replace("9\t9\t0.9\tknows(X,Y) <= unheard(X,Y)", "knows(X,Y <= what"))
    code, printed, err = loginfer("rules", "analyse", folder, "--rules", rules)
    assert (code, printed) == (2, "")
    assert "mined.tsv:3" in err
    code, printed, err = loginfer("rules", "analyse", folder, "--rules", rules, "--on-error", "skip", "--json")
    assert code == 0
    assert json.loads(printed)["mined"] == 2
    assert "1 line is" in err


@pytest.mark.parametrize("text", ["", "\n\n", "9\t9\t0.01\tknows(X,ada) <= \n", "3\t3\t1\tnobody(X,Y) <= knows(X,Y)\n"])
def test_a_file_without_usable_rules_is_told(loginfer, folder, rules, text):
    rules.write_text(text)
    code, printed, err = loginfer("rules", "analyse", folder, "--rules", rules)
    assert (code, printed) == (2, "")
    assert "holds no rule that could be used" in err
    assert "Traceback" not in err


def test_bad_input_gets_one_clear_message(loginfer, folder, rules, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("train", "valid", "test"):
        shutil.copy(folder / f"{name}.txt", bare)
    for words, message in (
        ((bare, "--rules", rules), "the rules of"),
        ((folder, "--rules", tmp_path / "nothing.tsv"), "nothing.tsv"),
        ((folder, "--rules", tmp_path), str(tmp_path)),
        ((folder, "--rules", rules, "--confidences", "0,much"), "no list of confidences"),
        ((folder, "--rules", rules, "--confidences", "2"), "no list of confidences"),
        ((folder, "--rules", rules, "--from", "prologue"), "prologue"),
    ):
        code, printed, err = loginfer("rules", "analyse", *words)
        assert (code, printed) == (2, "")
        assert err.startswith("error: ")
        assert message in err


def test_the_rules_that_a_run_has_kept_are_analysed(loginfer, folder, tmp_path):
    run = tmp_path / "run"
    words = ("--negatives", "pa", "--set", "min_support=1", "--out", run)
    code, _, err = loginfer("evaluate", folder, "--system", "exact", *words)
    assert code == 0, err
    code, printed, err = loginfer("rules", "analyse", folder, "--rules", run, "--json")
    assert code == 0, err
    assert json.loads(printed)["mined"] > 0


def test_a_run_of_a_system_without_rules_is_a_clear_error(loginfer, folder, tmp_path):
    other = tmp_path / "other"
    words = ("--negatives", "pa", "--out", other)
    assert loginfer("evaluate", folder, "--system", "adjacent", *words)[0] == 0
    code, _, err = loginfer("rules", "analyse", folder, "--rules", other)
    assert code == 2
    assert "has kept no rules" in err
