"""`loginfer audit` and `loginfer explain`, run as users run them."""

import json
import shutil

import pytest

from loginfer.benchmark import Recipe, audit, build, load_benchmark, write_benchmark
from loginfer.benchmark.auditing.audit import saved_audit
from loginfer.logic.rule import short_text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A benchmark of LUBM compositions and triangles."""
    path = tmp_path_factory.mktemp("benchmarks") / "lubm"
    recipe = Recipe("lubm", ("composition", "triangle"), k1=3, k2=100, negatives=("pa", "qg"), name="lubm")
    write_benchmark(build(recipe), path)
    return path


def test_our_own_benchmark_passes_and_the_oracle_is_right(loginfer, folder):
    code, printed, _ = loginfer("audit", folder)
    assert code == 0
    assert "lubm: ok;" in printed
    assert "0 errors, 0 warnings" in printed
    (oracle,) = [line for line in printed.splitlines() if line.strip().startswith("oracle")]
    assert oracle.split() == ["oracle", "100.0", "%", "100.0", "%"]


def test_the_answer_for_programs_has_findings_shortcuts_and_oracle(loginfer, folder):
    code, printed, _ = loginfer("audit", folder, "--json")
    answer = json.loads(printed)
    assert code == 0
    assert answer["ok"] is True
    assert {"findings", "shortcuts", "oracle"} <= answer.keys()
    assert answer["oracle"]["qg"]["accuracy"] == 1.0
    assert set(answer["shortcuts"]) == {"pa", "qg"}
    assert all(0 <= found["accuracy"] <= 1 for found in answer["shortcuts"]["pa"].values())


def test_a_changed_file_is_found_and_the_exit_code_is_1(loginfer, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    text = (copy / "test.txt").read_text()
    (copy / "test.txt").write_text(text + text.splitlines(keepends=True)[0])
    code, printed, _ = loginfer("audit", copy)
    assert code == 1
    assert "ERROR    changed-files" in printed
    assert "ERROR    duplicates" in printed
    assert "not ok" in printed


def test_a_folder_without_manifest_is_audited_as_far_as_it_goes(loginfer, folder, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("train", "valid", "test", "train_neg_pa", "valid_neg_pa", "test_neg_pa"):
        shutil.copy(folder / f"{name}.txt", bare)
    code, printed, _ = loginfer("audit", bare)
    assert code == 0
    assert "skipped" in printed
    assert "pa, learned: " in printed
    (line,) = [line for line in printed.splitlines() if "the rules are not known" in line]
    assert line.startswith("skipped  rules, rule-shapes, ")
    assert "oracle: the rules are not known (no rules.txt)" in line


def test_a_recipe_that_is_not_the_benchmarks_is_found(loginfer, folder, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("k2 = 100\nseed = 9\n")
    code, printed, _ = loginfer("audit", folder, "--recipe", recipe)
    assert code == 1
    assert "seed" in printed
    recipe.write_text("k2 = 100\nseed = 0\n")
    assert loginfer("audit", folder, "--recipe", recipe)[0] == 0


def test_verbose_names_the_checks_that_passed(loginfer, folder):
    _, printed, _ = loginfer("audit", folder, "--verbose", "--one-step")
    assert "passed   witnesses" in printed


@pytest.mark.parametrize("make", ["nothing", "empty", "file"])
def test_what_is_no_benchmark_gets_one_clear_message(loginfer, tmp_path, make):
    path = tmp_path / "it"
    if make == "empty":
        path.mkdir()
    if make == "file":
        path.write_text("a\tb\tc\n")
    for words in (("audit", path), ("explain", path, "a", "b", "c")):
        code, printed, err = loginfer(*words)
        assert code == 2
        assert err.startswith("error: ")
        assert str(path) in err
        assert printed == ""


def test_a_test_triple_is_explained_by_its_rule_and_premises(loginfer, folder):
    benchmark = load_benchmark(folder)
    ((s, r, o),) = benchmark.graph.names(benchmark.positives.test[:1])
    code, printed, _ = loginfer("explain", folder, s, r, o)
    assert code == 0
    assert "is in P_test (a conclusion that was distributed)" in printed
    assert "follows from K by rule" in printed
    assert "because" in printed
    code, printed, _ = loginfer("explain", folder, s, r, o, "--json")
    story = json.loads(printed)
    assert story["triple"] == [s, r, o]
    assert story["derivations"]


def test_negatives_are_explained_by_how_they_were_made(loginfer, folder):
    benchmark = load_benchmark(folder)
    for method, source, words in (("pa", 1, "replaced"), ("qg", 2, "of a sub-rule of rule")):
        found = benchmark.negatives[method]
        place = (found.origins["train"].source == source).nonzero()[0][0]
        ((s, r, o),) = benchmark.graph.names(found.splits.train[place : place + 1])
        code, printed, _ = loginfer("explain", folder, s, r, o)
        assert code == 0
        assert f"is in N_train of {method}" in printed
        assert words in printed
        assert "does not follow" in printed


def test_a_triple_in_no_set_and_an_unknown_name_are_told(loginfer, folder):
    benchmark = load_benchmark(folder)
    ((s, r, _),) = benchmark.graph.names(benchmark.positives.test[:1])
    code, printed, _ = loginfer("explain", folder, s, r, s)
    assert code == 0
    assert "is in no set of this benchmark" in printed
    code, _, err = loginfer("explain", folder, s, "noSuchRelation", s)
    assert code == 2
    assert "unknown relation `noSuchRelation`" in err


def test_a_damaged_benchmark_is_not_explained(loginfer, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "rules.txt").write_text("")
    code, _, err = loginfer("explain", copy, "a", "b", "c")
    assert code == 2
    assert "rules.txt" in err


def test_settings_that_do_not_exist_are_bad_input_not_a_finding(loginfer, folder, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("kk1 = 3\n")
    code, printed, err = loginfer("audit", folder, "--recipe", recipe)
    assert (code, printed) == (2, "")
    assert "recipe.toml: unknown setting `kk1`" in err


def test_what_is_wrong_is_said_once(loginfer, folder, tmp_path):
    damaged = shutil.copytree(folder, tmp_path / "damaged")
    (damaged / "test.txt").write_bytes((damaged / "test.txt").read_bytes()[:-10])
    code, printed, _ = loginfer("audit", damaged)
    assert code == 1
    assert printed.count("`test.txt` was changed") == 1


def test_explain_counts_rules_as_the_card_does(loginfer, folder):
    triple = (folder / "test.txt").read_text().splitlines()[0].split("\t")
    _, printed, _ = loginfer("explain", folder, *triple)
    place = json.loads(loginfer("explain", folder, *triple, "--json")[1])["derivations"][0]["rule"]
    assert f"by rule {place}:" in printed
    row = next(line for line in (folder / "README.md").read_text().splitlines() if f"| {place} |" in line)
    assert short_text(load_benchmark(folder).program[place]) in row


def test_a_saved_audit_is_what_is_printed_and_no_part_of_the_benchmark(loginfer, folder, tmp_path):
    copy = tmp_path / "lubm"
    shutil.copytree(folder, copy)
    code, printed, _ = loginfer("audit", copy, "--save", "--json")
    saved = json.loads((copy / "audit.json").read_text())
    about = {key: saved.pop(key) for key in ("version", "options", "files")}
    assert (code, saved) == (0, json.loads(printed))
    assert set(about["files"]) == {path.name for path in folder.iterdir()}
    assert loginfer("audit", copy, "--json")[:2] == (0, printed)  # the file itself is no finding
    assert load_benchmark(copy).manifest == load_benchmark(folder).manifest
    write_benchmark(load_benchmark(copy), copy, force=True)  # nor does it keep a benchmark from being replaced
    assert not (copy / "audit.json").exists()


@pytest.mark.parametrize("options", [["--one-step"], ["--max-shortcut", "0.9"]])
def test_an_audit_with_other_options_does_not_stand_for_the_usual_one(loginfer, folder, tmp_path, options):
    copy = tmp_path / "lubm"
    shutil.copytree(folder, copy)
    loginfer("audit", copy, "--save", *options)
    assert saved_audit(copy) is None
    loginfer("audit", copy, "--save")
    assert saved_audit(copy) == audit(copy).as_dict()


def test_many_folders_get_a_line_each_and_those_that_are_none_an_error(loginfer, folder, tmp_path):
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "test.txt").write_text((broken / "test.txt").read_text() + "a\tb\tc\n")
    (tmp_path / "empty").mkdir()
    code, printed, _ = loginfer("audit", folder, broken, tmp_path / "empty")
    header, good, bad, none = printed.splitlines()
    assert header.split() == ["folder", "verdict", "errors", "warnings", "oracle", "best", "shortcut"]
    assert good.split()[:6] == [str(folder), "ok", "0", "0", "100.0", "%"]
    assert good.split()[6] == "pa"
    assert bad.split()[1:3] == ["not", "ok"]
    assert "error: " in none
    assert code == 2
    assert loginfer("audit", folder, broken)[0] == 1
    assert loginfer("audit", folder, folder)[0] == 0


def test_details_of_many_folders_come_with_verbose_and_programs_get_a_list(loginfer, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    code, printed, _ = loginfer("audit", folder, tmp_path / "empty", "-v")
    assert code == 2
    assert "passed   duplicates" in printed
    _, printed, _ = loginfer("audit", folder, tmp_path / "empty", "--json")
    first, second = json.loads(printed)
    assert first["folder"] == str(folder)
    assert first["ok"] is True
    assert second["ok"] is None
    assert "empty" in second["error"]


def test_a_reversed_shortcut_is_called_so(loginfer, folder):
    _, printed, _ = loginfer("audit", folder, "--json")
    turned = {
        (method, name)
        for method, rows in json.loads(printed)["shortcuts"].items()
        for name, row in rows.items()
        if row["reversed"]
    }
    _, printed, _ = loginfer("audit", folder)
    rows = [line for line in printed.splitlines() if line.rstrip().endswith("%")]
    shown = {(method, line.split()[0]) for line in rows for method in ("pa", "qg")} & turned
    called = {line.split()[0] for line in rows if "reversed)" in line}
    assert called == {name for _, name in shown}


def test_a_shortcut_that_is_reversed_for_one_method_says_for_which(capsys):
    from loginfer.benchmark.auditing.findings import Audit
    from loginfer.cli.audit import _print_shortcuts

    def row(turned):
        return {"balanced_accuracy": 0.7, "interval": [0.6, 0.8], "reversed": turned}

    shortcuts = {
        "pa": {"detour": row(False), "parallel": row(True)},
        "qg": {"detour": row(True), "parallel": row(True)},
    }
    _print_shortcuts(Audit("b", (), (), shortcuts=shortcuts), False)
    printed = capsys.readouterr().out
    assert "detour (qg reversed)" in printed
    assert "parallel (reversed)" in printed


def test_several_folders_fit_a_narrow_terminal(loginfer, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    deep = tmp_path / "somewhere" / "rather" / "deep" / "in" / "a" / "tree"
    names = [f"LogInfer-LUBM-no-type-{n}" for n in ("pa", "qg")]
    for name in names:
        shutil.copytree(folder, deep / name)
    code, printed, _ = loginfer("audit", *(deep / name for name in names), deep / "missing")
    lines = printed.splitlines()
    assert code == 2
    assert lines[0].startswith("folder")
    assert lines[0].endswith("best shortcut")
    assert all(len(line) <= 80 for line in lines)
    assert all(any(line.startswith(f"{name} ") for line in lines) for name in (*names, "missing"))
