"""A study is made of commands: which ones, in which order, what is kept, and what happens when one fails."""

import json
import shlex
from pathlib import Path

import pytest
from tests.support.pages import parse

from loginfer.benchmark.construction.rules import NO_HEAD_FITS
from loginfer.errors import InputError, OutputError, UnknownNameError
from loginfer.reproduction.running import CommandError
from loginfer.study import LEAST_TESTED, study

PEOPLE = 60


@pytest.fixture
def graph(tmp_path) -> Path:
    """A cycle in which everybody knows the next one and likes the one after that."""
    file = tmp_path / "people.tsv"
    links = [(i, "knows", (i + 1) % PEOPLE) for i in range(PEOPLE)] + [
        (i, "likes", (i + 2) % PEOPLE) for i in range(PEOPLE)
    ]
    file.write_text("".join(f"p{s}\t{r}\tp{o}\n" for s, r, o in links))
    return file


class Commands:
    """Stands for the program: writes the files that a study looks for, and counts."""

    def __init__(self, scarce: tuple[str, ...] = (), failing: str = "", notes: tuple[str, ...] = ()) -> None:
        self.scarce, self.failing, self.notes = scarce, failing, notes
        self.called: list[list[str]] = []

    def __call__(self, words, accepted=()) -> str:
        self.called.append(list(words))
        out = Path(words[words.index("--out") + 1])
        if words[0] == "build":
            method = words[words.index("--negatives") + 1]
            kind = "twins" if "--match" in words else method
            if kind in self.scarce:
                raise CommandError(f"too few {kind}")
            tested = 1 if f"few {kind}" in self.scarce else LEAST_TESTED
            answer = {"rules": [{}], "notes": list(self.notes), "negatives": {method: {"test": {"reached": tested}}}}
        elif words[0] == "evaluate":
            systems = words[words.index("--system") + 1].split(",")
            return json.dumps([self.answer(system) for system in systems])
        else:
            return ""
        out.mkdir(parents=True, exist_ok=True)
        (out / "manifest.json").write_text("{}")
        return json.dumps(answer)

    def answer(self, system: str) -> dict[str, object]:
        failed = {"error": "no memory left"} if system == self.failing else {"metrics": {"balanced_accuracy": 0.9}}
        return {"system": system, **failed}

    def count(self, command: str) -> int:
        return sum(words[0] == command for words in self.called)


def run(graph, commands, **options):
    said: list[str] = []
    options = {"systems": ["simpbl", "oracle"], "patterns": ["composition", "hierarchy"], **options}
    done = study(graph, graph.parent / "study", command=commands, tell=said.append, **options)
    return done, said


def test_each_pattern_gets_a_benchmark_each_system_a_run_on_it_and_a_report_ends_it(graph):
    commands = Commands()
    done, said = run(graph, commands)
    assert [commands.count(name) for name in ("build", "evaluate", "report")] == [2, 2, 1]
    # Processes at the same time begin with different systems.
    asked = [words[words.index("--system") + 1] for words in commands.called if words[0] == "evaluate"]
    assert sorted(asked) == ["oracle,simpbl", "simpbl,oracle"]
    assert commands.called[-1][0] == "report"
    assert {name: entry["negatives"] for name, entry in done.document["patterns"].items()} == {
        "composition": "twins",
        "hierarchy": "twins",
    }
    assert any("120 triples" in line for line in said)


def test_where_twins_are_scarce_it_falls_back_and_says_so(graph):
    commands = Commands(scarce=("twins", "few nm"))
    done, said = run(graph, commands, patterns=["composition"])
    entry = done.document["patterns"]["composition"]
    assert entry["negatives"] == "position-aware"
    assert entry["tried"] == {"twins": "too few twins", "near misses": "only 1 in test"}
    assert any("twins, near misses are scarce" in line for line in said)


def test_a_pattern_that_the_graph_does_not_support_is_left_out(graph):
    done, said = run(graph, Commands(), patterns=["composition", "intersection"])
    assert "left_out" in done.document["patterns"]["intersection"]
    assert any(line.startswith("intersection: left out") for line in said)


def test_where_no_benchmark_can_be_built_it_says_so(graph):
    with pytest.raises(InputError, match="no benchmark can be built"):
        run(graph, Commands(scarce=("twins", "nm", "pa")))


def test_bad_lines_that_were_skipped_are_said(graph):
    with graph.open("a") as file:
        file.write("only two\tcolumns\n")
    _, said = run(graph, Commands(), patterns=["composition"], on_error="skip")
    assert any(line.startswith("skipped 1 bad line, such as ") for line in said)


def test_a_graph_without_any_pattern_is_refused(tmp_path):
    (tmp_path / "two.tsv").write_text("a\tr\tb\nc\tr\td\n")
    with pytest.raises(InputError, match="no pattern has support"):
        study(tmp_path / "two.tsv", tmp_path / "study", patterns=["composition"], command=Commands())


def test_benchmarks_are_kept_and_a_system_can_be_added(graph):
    run(graph, Commands())
    again = Commands()
    run(graph, again)
    assert [words[0] for words in again.called] == ["evaluate", "evaluate", "report"]
    more = Commands()
    run(graph, more, systems=["simpbl", "contrast"])
    assert more.count("build") == 0
    asked = {words[words.index("--system") + 1] for words in more.called if words[0] == "evaluate"}
    asked = {",".join(sorted(names.split(","), reverse=True)) for names in asked}
    assert asked == {"simpbl,oracle", "contrast"}


def test_what_was_added_later_stands_in_the_commands_too_and_is_gone_on_with_by_default(graph):
    run(graph, Commands(), systems=["rotate"], patterns=["composition"])
    added, _ = run(graph, Commands(), systems=["transe"], patterns=["hierarchy"])
    written = added.commands.read_text()
    again, _ = run(graph, Commands(), systems=[], patterns=[])
    assert again.commands.read_text() == written
    lines = [shlex.split(line) for line in written.splitlines() if line.startswith("loginfer evaluate")]
    asked = [(Path(words[2]).name, words[4]) for words in lines]
    assert asked == [(name, system) for name in ("composition", "hierarchy") for system in ("rotate", "transe")]


def test_settings_of_systems_that_are_there_stay_when_one_is_added(graph):
    run(graph, Commands(), systems=["anyburl"])
    done, _ = run(graph, Commands(), systems=["rotate"])
    before, added = done.document["evaluations"]
    assert before["systems"] == ["anyburl"]
    assert "epochs" not in before["settings"]
    assert "epochs" in added["settings"]


def test_a_graph_that_has_changed_is_no_part_of_the_same_study(graph):
    run(graph, Commands(), patterns=["composition"])
    with graph.open("a") as file:
        file.write("p1\tlikes\tp2\n")
    with pytest.raises(OutputError, match="when it had 120 triples"):
        run(graph, Commands(), patterns=["hierarchy"])


def test_fewer_rules_than_asked_for_are_said(graph):
    _, said = run(graph, Commands(), patterns=["composition"])
    assert f"composition: only 1 of 10 rules, twins, {LEAST_TESTED} in test" in said


def test_heads_that_fit_nowhere_are_said(graph):
    remark = f"1 of 1 rules of `composition` {NO_HEAD_FITS}"
    _, said = run(graph, Commands(notes=(remark, "twins: all")), patterns=["composition"])
    assert remark in said
    assert "twins: all" not in said


def test_nothing_is_left_of_a_study_without_any_pattern(tmp_path):
    file = tmp_path / "two.tsv"
    file.write_text("a\tr\tb\n")
    said: list[str] = []
    with pytest.raises(InputError, match="no pattern has support"):
        study(file, tmp_path / "study", patterns=["hierarchy"], command=Commands(), tell=said.append)
    assert said[0] == f"{file}: 1 triple, 2 constants, 1 relation, 0 types"
    assert not (tmp_path / "study").exists()


def test_another_study_does_not_go_into_the_same_folder(graph):
    run(graph, Commands())
    with pytest.raises(OutputError, match="budget 'quick', not 'full'"):
        run(graph, Commands(), budget="full")
    with pytest.raises(OutputError, match="reading '--literals drop', not '--literals drop --min-relation-size 5'"):
        run(graph, Commands(), min_relation_size=5)


def test_a_folder_with_something_else_is_refused(graph):
    (graph.parent / "study").mkdir()
    (graph.parent / "study" / "thesis.tex").write_text("")
    with pytest.raises(OutputError, match="is no study"):
        run(graph, Commands())


def test_a_system_that_fails_does_not_stop_the_others_and_is_tried_again(graph):
    done, said = run(graph, Commands(failing="oracle"))
    assert [(entry["system"], entry["reason"]) for entry in done.document["failed"]] == [
        ("oracle", "no memory left")
    ] * 2
    assert any("failed: no memory left" in line for line in said)
    done, _ = run(graph, Commands())
    assert done.document["failed"] == []


def test_a_command_that_fails_altogether_fails_for_all_its_systems(graph):
    class Broken(Commands):
        def answer(self, system):
            raise CommandError("the benchmark cannot be read")

    done, _ = run(graph, Broken(), patterns=["composition"])
    assert [entry["system"] for entry in done.document["failed"]] == ["simpbl", "oracle"]


def test_unknown_names_are_refused_before_anything_is_done(graph):
    for options in ({"systems": ["rotat"]}, {"patterns": ["triangel"]}, {"budget": "ful"}, {"head": "type"}):
        with pytest.raises(UnknownNameError):
            run(graph, Commands(), **options)
    assert not (graph.parent / "study").exists()


def test_the_commands_are_written_down_and_exist(graph):
    done, _ = run(graph, Commands(scarce=("twins",)))
    lines = [shlex.split(line) for line in done.commands.read_text().splitlines() if line.startswith("loginfer ")]
    assert [words[1] for words in lines] == [*["build", "evaluate"] * 2, "report"]
    for words in lines:
        assert "--match" not in words
        parse(words[1:])


def test_literals_are_dropped_unless_asked_for(graph):
    with graph.open("a") as file:
        file.writelines(f'p{i}\tborn\t"{i}"\n' for i in range(PEOPLE))
    commands = Commands()
    _, said = run(graph, commands, patterns=["composition"])
    assert any("literal" in line for line in said)
    assert commands.called[0][2:4] == ["--literals", "drop"]


def test_progress_counts_benchmarks_and_evaluations(graph):
    seen = []
    run(graph, Commands(), progress=lambda *step: seen.append(step))
    assert seen == [(what, i, 2) for what in ("building benchmarks", "evaluating systems on them") for i in range(3)]


def test_a_study_is_not_called_like_its_graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="the folder `lubm` would be taken for the graph") as error:
        study("lubm", "lubm", patterns=["symmetry"], command=Commands())
    assert "lubm-study" in str(error.value)
    assert not (tmp_path / "lubm").exists()
