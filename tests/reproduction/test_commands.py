"""Commands in processes of their own."""

import json
import os
import signal
import threading
import time

import pytest

from loginfer.reproduction.running import CommandError, Commands, failure


def test_a_command_gives_what_it_prints():
    answer = json.loads(Commands()(["suite", "list", "--only", "WN-sym-*", "--json"]))
    assert [entry["name"] for entry in answer] == ["LogInfer-WN-sym-rb", "LogInfer-WN-sym-pa"]


def test_a_command_that_fails_gives_its_own_message_and_hint():
    with pytest.raises(CommandError) as caught:
        Commands()(["suite", "list", "--only", "WN-simm-pa"])
    assert caught.value.message == "unknown benchmark `WN-simm-pa`"
    assert (caught.value.hint or "").startswith("did you mean `WN-sym-pa`")


def test_messages_are_whole_however_narrow_the_terminal_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    with pytest.raises(CommandError) as caught:
        Commands()(["suite", "list", "--only", "WN-simm-pa"])
    assert caught.value.message == "unknown benchmark `WN-simm-pa`"


def test_reasons_are_read_from_what_a_command_says():
    found = failure("going on\nerror: first\nnoise\nerror: second\n  hint: do this\nbye\n", 2)
    assert (found.message, found.hint) == ("second", "do this")
    assert failure("error: alone\n", 2).hint is None
    assert failure("Traceback\n  File\nValueError: odd\n\n", 1).message == "exit code 1: ValueError: odd"
    assert failure("", 3).message == "exit code 3: it said nothing"
    killed = failure("half a line", -signal.SIGKILL)
    assert killed.message == "its process was ended by SIGKILL"
    assert "--jobs 1" in (killed.hint or "")
    assert failure("", -99).message == "its process was ended by signal 99"


def test_a_command_that_was_interrupted_has_not_failed(tmp_path):
    os.mkfifo(tmp_path / "pipe.tsv")
    commands = Commands()

    def interrupt():
        # Whoever opens the pipe to write waits until the command reads from it.
        with (tmp_path / "pipe.tsv").open("w"):
            for process in list(commands._running):
                process.send_signal(signal.SIGINT)
                process.wait(60)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        commands(["kg", "show", str(tmp_path / "pipe.tsv")])
    thread.join(60)


def test_a_stop_ends_what_runs_and_begins_nothing_more(tmp_path):
    commands, ended = Commands(), []

    def wait():
        try:
            # It waits for a graph that nobody writes into the pipe.
            commands(["kg", "show", str(tmp_path / "pipe.tsv")])
        except KeyboardInterrupt:
            ended.append("interrupted")

    os.mkfifo(tmp_path / "pipe.tsv")
    thread = threading.Thread(target=wait)
    thread.start()
    while not commands._running:
        time.sleep(0.01)
    commands.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert len(ended) == 1
    with pytest.raises(KeyboardInterrupt):
        commands(["--version"])
