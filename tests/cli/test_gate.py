"""`--max-shortcut` and `--strict`, as users give them."""

import json

import numpy as np
import pytest
import typer

from loginfer.benchmark import load_benchmark
from loginfer.benchmark.learned_shortcut import ShortcutResult
from loginfer.benchmark.shortcut_gate import Exceeded
from loginfer.benchmark.shortcuts import Cut
from loginfer.cli.build import stop_at_gate

pytestmark = pytest.mark.usefixtures("all_rounds")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A graph in which adjacency tells the conclusions of a hierarchy from random pairs."""
    lines = [f"a{i}\tknows\ta{(i * 7 + 1) % 90}" for i in range(90)]
    lines += [f"a{i}\tlikes\ta{(i * 11 + 3) % 90}" for i in range(90)]
    path = tmp_path_factory.mktemp("graphs") / "small.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def words(small, out, *more):
    return ("build", small, "-p", "hierarchy", "--k1", 1, "--k2", 80, "--ratio", "6:2:2", "--out", out, *more)


def test_a_shortcut_above_the_limit_is_a_warning_with_its_rules(loginfer, small, tmp_path):
    code, printed, err = loginfer(*words(small, tmp_path / "bench", "--max-shortcut", 0.6))
    assert code == 0
    assert "written to" in printed
    assert "warning: pa: the shortcut `learned` reaches 100 % on test, above 60 %, most by parallel (" in err
    assert "`skeleton` alone 100 %, " in err
    assert "most for rule 0" in err
    assert load_benchmark(tmp_path / "bench").name == "small-hierarchy-pa"


def test_with_strict_nothing_is_written_and_what_is_there_stays(loginfer, small, tmp_path):
    out = tmp_path / "bench"
    code, printed, err = loginfer(*words(small, out, "--max-shortcut", 0.6, "--strict"))
    assert code == 1
    assert not out.exists()
    assert list(tmp_path.iterdir()) == []
    assert printed == ""
    assert "error: pa: the shortcut `learned` reaches 100 %" in err
    assert "nothing was written" in err
    assert "--negatives nm" in err
    assert loginfer(*words(small, out))[0] == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert loginfer(*words(small, out, "--seed", 1, "--force", "--max-shortcut", 0.6, "--strict"))[0] == 1
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_what_was_matched_already_is_not_recommended(loginfer, small, tmp_path, capsys):
    """Few triples of test: some shortcut is right for more than half of them by chance."""
    more = ("-n", "nm", "--ratio", "2:1:1", "--max-shortcut", 0.501, "--strict")
    code, _, err = loginfer(*words(small, tmp_path / "bench", *more))
    assert code == 1
    assert "hint: `--match all`" in err
    result = ShortcutResult("adjacent", np.array([1.0, 0.0]), 1, Cut(0.5))
    with pytest.raises(typer.Exit):
        stop_at_gate([Exceeded("nm", 0.6, (result,))], 0.6, False, ("all",))
    err = capsys.readouterr().err
    assert "twins already" in err
    assert "--match" not in err


def test_the_option_does_not_change_a_byte(loginfer, small, tmp_path):
    assert loginfer(*words(small, tmp_path / "one"))[0] == 0
    assert loginfer(*words(small, tmp_path / "two", "--max-shortcut", 1, "--strict"))[0] == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_programs_are_told_the_limit_and_what_is_above_it(loginfer, small, tmp_path):
    code, printed, _ = loginfer(*words(small, tmp_path / "bench", "--max-shortcut", 0.6, "--json"))
    answer = json.loads(printed)
    assert code == 0
    assert answer["max_shortcut"]["limit"] == 0.6
    (exceeded,) = answer["max_shortcut"]["exceeded"]
    assert (exceeded["method"], exceeded["shortcut"], exceeded["accuracy"]) == ("pa", "learned", 1.0)
    assert exceeded["shortcuts"]["parallel"]["balanced_accuracy"] == 1.0
    assert exceeded["rules"][0]["rule"] == 0
    code, printed, _ = loginfer(*words(small, tmp_path / "no", "--max-shortcut", 0.6, "--strict", "--json"))
    assert code == 1
    assert json.loads(printed)["path"] is None


def test_the_audit_has_the_same_gate(loginfer, small, tmp_path):
    out = tmp_path / "bench"
    loginfer(*words(small, out))
    code, printed, _ = loginfer("audit", out, "--max-shortcut", 0.6)
    assert code == 0
    assert "warning  max-shortcut: pa: the shortcut `learned`" in printed
    assert "rule 0: (x," in printed
    assert loginfer("audit", out, "--max-shortcut", 0.6, "--strict")[0] == 1
    assert loginfer("audit", out, "--max-shortcut", 1)[0] == 0
    _, printed, _ = loginfer("audit", out, "--verbose")
    assert "pa, parallel: 100.0 % (" in printed
    assert "), most for rule 0 (100.0 %)" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-shortcut", 60], "write 0.6 for 60 %"),
        (["--max-shortcut", 0.5], "must be above 0.5"),
        (["--max-shortcut", "nan"], "must be above 0.5"),
        (["--strict"], "add --max-shortcut"),
    ],
)
def test_a_limit_that_makes_no_sense_gets_one_clear_message(loginfer, small, tmp_path, options, message):
    for command in (words(small, tmp_path / "bench"), ("audit", tmp_path), ("suite", "build", "-o", tmp_path)):
        code, _, err = loginfer(*command, *options)
        assert code == 2
        assert message in err
        assert "Traceback" not in err


@pytest.mark.slow
def test_the_suite_warns_keeps_and_fails(loginfer, tmp_path):
    suite = ("suite", "build", "--only", "LUBM-no-type-pa", "--jobs", 1, "--out", tmp_path / "suite")
    code, _, err = loginfer(*suite, "--max-shortcut", 0.6, "--strict")
    assert code == 1
    assert "LogInfer-LUBM-no-type-pa failed: pa: the shortcut" in err
    assert not (tmp_path / "suite" / "LogInfer-LUBM-no-type-pa").exists()
    code, _, err = loginfer(*suite, "--max-shortcut", 0.6)
    assert code == 0
    assert "warning: LogInfer-LUBM-no-type-pa, pa: the shortcut" in err
    _, _, err = loginfer(*suite, "--max-shortcut", 0.6)
    assert "kept" in err
    assert "warning: LogInfer-LUBM-no-type-pa, pa: the shortcut" in err
