"""`loginfer mine`, run as users run it."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from tests.support.made_up_benchmarks import family
from tests.support.real_program import PROGRAM

from loginfer.benchmark import write_benchmark
from loginfer.cli import mine as mining
from loginfer.systems.rules.exact import ExactMining


@pytest.fixture
def graph(tmp_path):
    """A graph in which working for a part of something makes one a member of it."""
    rows = []
    for i in range(30):
        rows.append(f"http://x.org/p{i}\thttp://x.org/r#worksFor\thttp://x.org/d{i % 5}")
        rows.append(f"http://x.org/d{i % 5}\thttp://x.org/r#partOf\thttp://x.org/u{i % 2}")
        rows.append(f"http://x.org/p{i}\thttp://x.org/r#memberOf\thttp://x.org/u{i % 2}")
    path = tmp_path / "kg.tsv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def bench(tmp_path):
    write_benchmark(family(), tmp_path / "bench")
    return tmp_path / "bench"


# -- mining ----------------------------------------------------------------------------------------


def test_a_graph_is_mined_and_the_best_rules_are_shown_with_short_names(loginfer, graph, tmp_path):
    out = tmp_path / "rules.tsv"
    code, answer, messages = loginfer("mine", graph, "--out", out)
    assert (code, messages) == (0, "")
    lines = out.read_text().splitlines()
    assert all(len(line.split("\t")) == 4 and " <= " in line for line in lines)
    confidences = [float(line.split("\t")[2]) for line in lines]
    assert confidences == sorted(confidences, reverse=True)
    assert "http://x.org/r#memberOf(X,Y) <= http://x.org/r#worksFor(X,A), " in out.read_text()
    assert "worksFor(x,a) ∧ partOf(a,y) → memberOf(x,y)" in answer
    assert "closed path of length 2" in answer
    assert f"{len(lines)} rules in " in answer


def test_the_answer_for_programs_says_what_was_found(loginfer, graph, tmp_path):
    out = tmp_path / "rules.tsv"
    answer = json.loads(loginfer("mine", graph, "--out", out, "--max-length", "1", "--json")[1])
    assert answer.pop("seconds") >= 0
    assert answer == {
        "miner": "exact", "rules": 0, "by_length": {}, "out": str(out), "interrupted": False,
    }  # fmt: skip
    answer = json.loads(loginfer("mine", graph, "--out", out, "--force", "--json")[1])
    assert answer["rules"] == answer["by_length"]["2"] == len(out.read_text().splitlines())


def test_thresholds_and_settings_reach_the_miner(loginfer, graph, tmp_path):
    def rules(*words):
        loginfer("mine", graph, "--out", tmp_path / "o.tsv", "--force", *words)
        return [line.split("\t") for line in (tmp_path / "o.tsv").read_text().splitlines()]

    everything = rules("--min-support", "1", "--min-confidence", "0")
    assert 0 < len(rules("--min-support", "11")) < len(everything)
    assert 0 < len(rules("--min-confidence", "0.5")) < len(everything)
    best = rules("--set", "smoothing=0", "--min-confidence", "1")
    assert best
    assert all(predictions == correct for predictions, correct, _, _ in best)
    assert len(rules("--max-length", "3", "--seed", "1")) > len(rules("--max-length", "2"))


def test_of_a_benchmark_only_the_training_triples_are_mined(loginfer, bench, tmp_path, monkeypatch):
    seen = []
    begin = ExactMining.__init__

    def spy(self, miner, graph):
        seen.append(graph)
        begin(self, miner, graph)

    monkeypatch.setattr(ExactMining, "__init__", spy)
    assert loginfer("mine", bench, "--out", tmp_path / "o.tsv", "--min-support", "1")[0] == 0
    assert (seen[0].triples == family().graph.triples).all()


def test_rules_can_be_written_in_our_syntax(loginfer, graph, tmp_path):
    out = tmp_path / "rules.txt"
    code, _, messages = loginfer("mine", graph, "--out", out, "--to", "arrow")
    assert code == 0
    assert "->" in out.read_text()
    assert "different variables stand for different entities" in messages
    assert loginfer("rules", "show", out)[0] == 0


def test_names_that_anyburl_cannot_carry_are_written_in_our_syntax_which_is_said(loginfer, tmp_path):
    graph, out = tmp_path / "kg.tsv", tmp_path / "rules.txt"
    # The relation looks like the beginning of a rule.
    graph.write_text("".join(f"e{i}\tp(X,Y) <= q\te{i + 1}\ne{i}\ts\te{i + 1}\n" for i in range(4)))
    code, _, messages = loginfer("mine", graph, "--out", out, "--max-length", "1")
    assert code == 0
    assert "(x,<s>,y) -> (x,<p(X,Y) <= q>,y)" in out.read_text()
    assert "written in arrow" in messages
    assert "different variables stand for different entities" in messages


def test_rules_that_are_read_are_written_again(loginfer, graph, tmp_path):
    mined, again = tmp_path / "mined.tsv", tmp_path / "again.tsv"
    loginfer("mine", graph, "--out", mined)
    mined.write_text(mined.read_text() + "9\t9\t1.0\thires(X,Y) <= worksFor(Y,X)\n")
    code, answer, messages = loginfer("mine", graph, "--miner", "external", "--rules", mined, "--out", again, "--json")
    assert code == 0
    assert "left out 1 of the rules" in messages
    assert "`hires`" in messages
    kept = mined.read_text().splitlines()[:-1]
    assert json.loads(answer)["rules"] == len(kept)
    assert sorted(again.read_text().splitlines()) == sorted(kept)


def test_a_rule_with_an_inequality_makes_the_file_one_of_our_syntax(loginfer, graph, tmp_path):
    rules, out = tmp_path / "in.rules", tmp_path / "out.txt"
    rules.write_text("(x,http://x.org/r#partOf,y), x != y -> (y,http://x.org/r#partOf,x)\n")
    assert loginfer("mine", graph, "-m", "external", "--rules", rules, "--out", out)[0] == 0
    assert out.read_text().endswith(rules.read_text())
    code, _, messages = loginfer(
        "mine", graph, "-m", "external", "--rules", rules, "--out", out, "--force", "--to", "anyburl"
    )
    assert code == 2
    assert "--to arrow" in messages


def test_weights_are_kept_unless_a_format_without_them_is_asked_for(loginfer, graph, tmp_path):
    rules, out = tmp_path / "in.rules", tmp_path / "out.txt"
    # Not a path that starts at x, but AnyBURL's format could hold it.
    body = "(x,http://x.org/r#worksFor,y), (x,http://x.org/r#memberOf,y)"
    rules.write_text(f"3\t2\t0.5\t{body} -> (y,http://x.org/r#partOf,x) # weight=1.25\n")
    words = ["mine", graph, "-m", "external", "--rules", rules, "--out", out]
    assert loginfer(*words)[0] == 0
    assert out.read_text() == rules.read_text()
    code, _, messages = loginfer(*words, "--force", "--to", "anyburl")
    assert code == 0
    assert "are left out" in messages
    assert " <= " in out.read_text()
    assert "weight" not in out.read_text()


def test_snapshots_are_written_beside_the_rules(loginfer, graph, tmp_path):
    out = tmp_path / "rules.tsv"
    code, answer, _ = loginfer("mine", graph, "--out", out, "--snapshots", "20,10.5", "--json")
    assert code == 0
    files = [str(tmp_path / name) for name in ("rules-10.5.tsv", "rules-20.tsv")]
    assert json.loads(answer)["snapshots"] == files
    assert (tmp_path / "rules-20.tsv").read_text() == out.read_text()
    assert "exists already" in loginfer("mine", graph, "--out", tmp_path / "rules.tsv")[2]
    out.unlink()
    assert "rules-20.tsv` exists already" in loginfer("mine", graph, "--out", out, "--snapshots", "20")[2]


def test_a_benchmark_is_evaluated_with_a_miner(loginfer, bench):
    code, answer, _ = loginfer("evaluate", bench, "--system", "exact", "--negatives", "pa", "--json")
    assert code == 0
    assert json.loads(answer)["system"] == "exact"


def test_miners_are_among_the_systems(loginfer):
    code, answer, _ = loginfer("systems", "show", "exact")
    assert code == 0
    assert "Exact (rule miner)" in answer
    assert "min_confidence" in answer
    assert loginfer("systems", "show", "external")[0] == 0


# -- progress --------------------------------------------------------------------------------------


def test_where_nobody_looks_a_line_says_now_and_then_how_it_goes_on(loginfer, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(mining, "FIRST_LINE", 0.0)
    monkeypatch.setattr(mining, "LONGEST_PAUSE", 0.0)
    _, answer, messages = loginfer("mine", graph, "--out", tmp_path / "rules.tsv", "--json")
    lines = messages.splitlines()
    assert lines[0] == "0 s: length 1 1 of 1, 0 rules found"
    assert lines[-1].endswith(f" {json.loads(answer)['rules']} rules found")


def test_on_a_terminal_the_best_rules_so_far_are_shown(loginfer, graph, tmp_path, monkeypatch):
    drawn = []
    draw = mining._Display._picture

    def spy(self, *arguments):
        made = draw(self, *arguments)
        drawn.append("\n".join(getattr(line, "plain", "") for line in made.renderables))
        return made

    monkeypatch.setattr(mining.common, "on_terminal", lambda stream: True)
    monkeypatch.setattr(mining, "PAUSE", 0.0)
    monkeypatch.setattr(mining, "SPARING", 0)
    monkeypatch.setattr(mining._Display, "_picture", spy)
    assert loginfer("mine", graph, "--out", tmp_path / "rules.tsv", "--max-length", "3")[0] == 0
    assert "0 rules found" in drawn[0]
    assert "worksFor(x,a) ∧ partOf(a,y) → memberOf(x,y)" in drawn[-1]


# -- wrong input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--miner", "exct"], "did you mean `exact`?"),
        (["--miner", "transe"], "unknown miner `transe`"),
        (["--miner", "contrast"], "this miner compares positives with negatives"),
        (["--steps", "5"], "--steps is no option of the miner `exact`"),
        (["--jar", "x.jar"], "it has the settings max_length"),
        (["--miner", "anyburl", "--seconds", "5", "--steps", "5"], "--seconds and --steps do not go together"),
        (["--max-length", "4"], "`max_length` must be at most 3, not 4"),
        (["--min-support", "0"], "`min_support` must be at least 1"),
        (["--min-confidence", "1.5"], "`min_confidence` must be at most 1"),
        (["--min-confidence", "nan"], "finite number"),
        (["--set", "min_suport=3"], "did you mean `min_support`"),
        (["--set", "min_support"], "`min_support` is no setting"),
        (["--min-support", "3", "--set", "min_support=3"], "`min_support` is given twice"),
        (["--to", "arow"], "did you mean `arrow`"),
        (["--to", "sql"], "unknown dialect for mined rules `sql`"),
        (["--snapshots", "10,soon"], "`soon` is no number of seconds"),
        (["--snapshots", "0"], "`0` is no number of seconds"),
        (["--miner", "anyburl", "--seconds", "5", "--snapshots", "9"], "no snapshot at 9 s"),
        (["--negatives", "rb"], "is a graph and has no negatives"),
        (["--miner", "external"], "neither a rule file nor a jar"),
        (["--miner", "external", "--rules", "nowhere.tsv"], "no file or folder `nowhere.tsv`"),
        (["--miner", "external", "--jar", "nowhere.jar"], "no jar `nowhere.jar`"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_message(loginfer, graph, tmp_path, words, message):
    code, answer, messages = loginfer("mine", graph, "--out", tmp_path / "rules.tsv", *words)
    assert (code, answer) == (2, "")
    assert message in messages
    assert not (tmp_path / "rules.tsv").exists()


def test_a_number_that_is_none_is_refused(loginfer, graph, tmp_path):
    code, _, messages = loginfer("mine", graph, "--out", tmp_path / "o.tsv", "--min-support", "many")
    assert code == 2
    assert "--min-support" in messages


def test_an_unknown_graph_is_told_with_the_nearest(loginfer, tmp_path):
    code, _, messages = loginfer("mine", "wn18r", "--out", tmp_path / "o.tsv")
    assert code == 2
    assert "wn18rr" in messages


def test_an_existing_file_is_not_replaced_unless_asked_for(loginfer, graph, tmp_path):
    out = tmp_path / "rules.tsv"
    out.write_text("precious\n")
    code, _, messages = loginfer("mine", graph, "--out", out)
    assert code == 2
    assert "exists already" in messages
    assert out.read_text() == "precious\n"
    assert loginfer("mine", graph, "--out", out, "--force")[0] == 0
    assert "precious" not in out.read_text()
    assert "is a folder" in loginfer("mine", graph, "--out", tmp_path, "--force")[2]
    code, _, messages = loginfer("mine", graph, "--out", graph, "--force")
    assert (code, "is what is mined" in messages) == (2, True)


def test_a_benchmark_with_several_negatives_needs_a_choice_only_where_they_are_used(loginfer, bench, tmp_path):
    assert loginfer("mine", bench, "--out", tmp_path / "o.tsv")[0] == 0
    code, _, messages = loginfer("mine", bench, "--out", tmp_path / "p.tsv", "--miner", "contrast")
    assert code == 2
    assert "choose, e.g. --negatives pa" in messages
    code, _, messages = loginfer("mine", bench, "--out", tmp_path / "p.tsv", "--negatives", "pb")
    assert code == 2
    assert "unknown negatives" in messages


# -- Ctrl-C ----------------------------------------------------------------------------------------


def interrupted_after(monkeypatch, pieces, error):
    advance, count = ExactMining.advance, iter(range(pieces))

    def interrupted(self):
        if next(count, None) is None:
            raise error
        return advance(self)

    monkeypatch.setattr(ExactMining, "advance", interrupted)


def in_a_kernel():
    error = SystemError("returned a result with an exception set")
    error.__cause__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), in_a_kernel()])
def test_ctrl_c_keeps_the_rules_found_so_far(loginfer, graph, tmp_path, monkeypatch, error):
    whole, out = tmp_path / "whole.tsv", tmp_path / "rules.tsv"
    loginfer("mine", graph, "--out", whole)
    interrupted_after(monkeypatch, 2, error)
    code, answer, messages = loginfer("mine", graph, "--out", out, "--json")
    assert code == 130
    assert "mining was interrupted; the " in messages
    found = json.loads(answer)
    assert found["interrupted"] is True
    assert 0 < found["rules"] == len(out.read_text().splitlines())
    assert set(out.read_text().splitlines()) < set(whole.read_text().splitlines())


def test_ctrl_c_before_the_first_rule_replaces_nothing(loginfer, graph, tmp_path, monkeypatch):
    out = tmp_path / "rules.tsv"
    out.write_text("precious\n")
    interrupted_after(monkeypatch, 0, KeyboardInterrupt())
    code, _, messages = loginfer("mine", graph, "--out", out, "--force")
    assert code == 130
    assert "no rule was found yet" in messages
    assert out.read_text() == "precious\n"


def test_another_error_in_a_kernel_is_not_taken_for_ctrl_c(loginfer, graph, tmp_path, monkeypatch):
    interrupted_after(monkeypatch, 1, SystemError("something else"))
    with pytest.raises(SystemError, match="something else"):
        loginfer("mine", graph, "--out", tmp_path / "rules.tsv")


JAR = """#!{python}
import time
config = dict(line.strip().split(" = ") for line in open("config-learn.properties"))
open("rules-10", "w").write("9\\t8\\t0.9\\tr0(X,Y) <= r2(X,A), r1(A,Y)\\n")
open({ready!r}, "w").close()
time.sleep(1000)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs Ctrl-C as a signal")
def test_ctrl_c_in_the_real_program_ends_the_jar_and_keeps_what_it_has_written(graph, tmp_path):
    program, out = program_with_a_jar(graph, tmp_path)
    program.send_signal(signal.SIGINT)
    answer, messages = program.communicate(timeout=60)
    assert program.returncode == 130, messages
    assert "mining was interrupted; the 1 rule found so far" in messages
    assert "has the sha256" in messages
    assert "1 rule in" in answer
    assert out.read_text().endswith("r#memberOf(X,Y) <= http://x.org/r#worksFor(X,A), http://x.org/r#partOf(A,Y)\n")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a system that tells children of a death")
def test_a_jar_ends_with_the_program_that_was_killed(graph, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    program, _ = program_with_a_jar(graph, tmp_path)
    program.kill()
    # The jar inherits no pipe; it is gone when nobody works in its folder.
    program.communicate(timeout=60)
    (folder,) = tmp_path.glob("loginfer-anyburl-*")
    end = time.monotonic() + 20
    while (left := working_in(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left


def working_in(folder):
    """Return the processes whose current folder this is."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found += [path.parent.name] if path.resolve() == folder.resolve() else []
    return found


def program_with_a_jar(graph, tmp_path):
    """Start the program with a jar that has written its first rule; give its process, and where the rules will be."""
    ready, java, jar, out = (tmp_path / name for name in ("ready", "java", "any.jar", "rules.tsv"))
    java.write_text(JAR.format(python=sys.executable, ready=str(ready)))
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
    words = ["mine", graph, "--miner", "external", "--jar", jar, "--set", f"java={java}", "--out", out]
    program = subprocess.Popen([*PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(1200):
        if ready.exists() or program.poll() is not None:
            break
        time.sleep(0.05)
    return program, out
