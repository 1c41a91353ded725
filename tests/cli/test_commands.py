"""Help, options and messages that all commands have in common."""

from __future__ import annotations

import logging
from collections import defaultdict

import pytest
import typer

from loginfer.cli import common
from loginfer.cli.app import app
from loginfer.cli.commands import flags_first, print_messages

# The most lines that a help may have on a screen.
SCREEN = 45


def all_commands(command=None, path=()):
    command = command or typer.main.get_command(app)
    if not hasattr(command, "commands"):
        return {path: command}
    parts = [all_commands(child, (*path, name)) for name, child in command.commands.items()]
    return {key: value for part in parts for key, value in part.items()}


@pytest.mark.parametrize("path", all_commands(), ids=" ".join)
def test_the_help_of_a_command_fits_on_a_screen_and_all_is_in_help_all(loginfer, path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    _, short, _ = loginfer(*path, "--help")
    _, full, _ = loginfer(*path, "--help-all")
    lines = [line for line in short.splitlines() if line.strip()]
    assert len(lines) <= SCREEN
    options = [max(p.opts, key=len) for p in all_commands()[path].params if p.param_type_name == "option"]
    assert [name for name in options if name not in full] == []
    assert any(name not in short for name in options) == ("--help-all" in short)
    assert "Example:" in full


def test_large_commands_show_only_their_everyday_options(loginfer):
    for name in ("build", "evaluate", "study", "mine", "audit", "report"):
        assert "--help-all" in loginfer(name, "--help")[1], name
    assert "--only" in loginfer("suite", "build", "--help")[1]


def test_flags_name_no_type(loginfer):
    for path in all_commands():
        assert "bool" not in loginfer(*path, "--help-all")[1], path
    assert "bool" not in loginfer("--help")[1]


def test_the_options_of_a_benchmark_and_of_an_evaluation_stand_in_panels(loginfer):
    _, built, _ = loginfer("build", "--help-all")
    panels = ["What", "How much", "Negatives", "Measures", "Variants", "Reading the graph", "Engine", "Output"]
    places = [built.index(f"─ {panel} ─") for panel in panels]
    assert places == sorted(places)
    _, evaluated, _ = loginfer("evaluate", "--help")
    assert evaluated.index("--system") < evaluated.index("--seeds") < evaluated.index("--ranking")


def test_an_option_has_the_same_short_form_everywhere_and_a_short_form_one_meaning():
    short_forms, meanings = defaultdict(set), defaultdict(set)
    for command in all_commands().values():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                short = [name for name in parameter.opts if not name.startswith("--")]
                short_forms[parameter.opts[0]].add(tuple(short))
                for name in short:
                    meanings[name].add(parameter.opts[0])
    assert {name: forms for name, forms in short_forms.items() if len(forms) > 1} == {}
    assert {name: options for name, options in meanings.items() if len(options) > 1} == {}


@pytest.mark.parametrize("old", ["--limit", "--method"])
def test_one_word_for_one_thing(old):
    assert not any(old in parameter.opts for command in all_commands().values() for parameter in command.params)


def test_the_flags_of_the_program_may_stand_anywhere_but_behind_two_dashes():
    assert flags_first(["audit", "x", "-v"]) == ["-v", "audit", "x"]
    assert flags_first(["explain", "b", "--", "-v", "r"]) == ["explain", "b", "--", "-v", "r"]


def test_quiet_leaves_the_answer_and_no_notes(loginfer):
    _, answer, notes = loginfer("rules", "rank", "lubm", "-p", "symmetry", "--top", "2")
    assert "witness" in notes
    assert loginfer("rules", "rank", "lubm", "-p", "symmetry", "--top", "2", "--quiet") == (0, answer, "")
    assert loginfer("-q", "rules", "rank", "lubm", "-p", "symmetry", "--top", "2") == (0, answer, "")


def test_errors_are_said_in_spite_of_quiet(loginfer):
    code, _, messages = loginfer("kg", "show", "no-such-graph", "-q")
    assert code == 2
    assert messages.startswith("error: ")


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set."""
    now = [100.0]
    monkeypatch.setattr(common.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_progress_is_a_line_now_and_then(capsys, clock):
    print_messages(logging.INFO)
    with common.progress_bar() as progress:
        for second in range(41):
            clock[0] = 100.0 + second
            progress("training", second, 1000)
        progress("writing", 0, None)
    said = capsys.readouterr().err.splitlines()
    assert said == ["training: 5 of 1,000", "training: 20 of 1,000", "training: 35 of 1,000"]


def test_verbose_says_what_begins_and_quiet_has_no_progress(capsys, clock):
    print_messages(logging.DEBUG)
    with common.progress_bar() as progress:
        progress("reading the graph", 0, None)
        progress("training", 1, None)
        progress("training", 2, None)
    assert capsys.readouterr().err.splitlines() == ["reading the graph …", "training: 1"]
    print_messages(logging.WARNING)
    with common.progress_bar() as progress:
        assert progress is None
    print_messages(logging.INFO)


def test_messages_of_the_library_go_to_the_logger_and_the_program_prints_them_once(capsys, caplog):
    print_messages(logging.INFO)
    print_messages(logging.INFO)
    with caplog.at_level(logging.INFO, logger="loginfer"):
        logging.getLogger("loginfer").info("loginfer: compiling")
    assert capsys.readouterr().err == "loginfer: compiling\n"
    assert caplog.messages == ["loginfer: compiling"]
