"""The real program, run as its users run it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.real_program import PROGRAM


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], capture_output=True, text=True, timeout=120, **options)


def test_help_names_the_commands_and_has_an_example():
    shown = run("--help").stdout
    assert "kg" in shown
    assert "rules" in shown
    assert "Example" in shown


def all_commands() -> list[list[str]]:
    import typer

    from loginfer.cli.app import app

    groups = typer.main.get_command(app)
    context = groups.make_context("loginfer", ["kg"], resilient_parsing=True)
    found = []
    for name in groups.list_commands(context):
        group = groups.get_command(context, name)
        nested = group.list_commands(context) if hasattr(group, "list_commands") else [None]
        found += [[name, command] if command else [name] for command in nested]
    return found


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_every_command_has_an_example_in_its_help(loginfer, words):
    code, out, _ = loginfer(*words, "--help")
    assert code == 0
    assert f"loginfer {' '.join(words)}" in out


def test_the_version_is_printed():
    from loginfer import __version__

    assert run("--version").stdout == f"loginfer {__version__}\n"


def test_starting_the_program_loads_nothing_heavy():
    code = (
        "import sys, loginfer, loginfer.cli\n"
        "print([m for m in ('numba', 'duckdb', 'pyarrow', 'pyoxigraph', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("read", [0, 10])
@pytest.mark.parametrize("words", [["--json"], ["--full-names"], ["--verbose"]])
def test_a_closed_pipe_is_no_error(tmp_path, words, read):
    graph = tmp_path / "graph.tsv"
    graph.write_text("".join(f"a{i}\tR{i}\tb\n" for i in range(3000)))
    program = subprocess.Popen(
        [*PROGRAM, "kg", "show", str(graph), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    program.stdout.read(read)
    program.stdout.close()
    assert b"Error" not in program.stderr.read()
    program.stderr.close()
    assert program.wait(timeout=60) == 0


def test_messages_that_nobody_reads_are_no_error(tmp_path):
    program = subprocess.Popen(
        [*PROGRAM, "kg", "show", str(tmp_path / "none")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    program.stdout.close()
    assert program.wait(timeout=60) == 2


def wait_for(condition) -> None:
    """Wait until the program has come so far, however slow the machine is."""
    end = time.monotonic() + 100
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_is_clean(tmp_path, number):
    out = tmp_path / "lubm.nt"
    program = subprocess.Popen(
        [*PROGRAM, "kg", "generate", "lubm", "--universities", "200", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: any(tmp_path.iterdir()))
    program.send_signal(number)
    _, err = program.communicate(timeout=60)
    assert program.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert list(Path(tmp_path).iterdir()) == []


def test_ctrl_c_inside_a_compiled_kernel_is_clean(loginfer, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        inner = SystemError("a function returned a result with an exception set")
        inner.__cause__ = KeyboardInterrupt()
        raise SystemError("a kernel returned a result with an exception set") from inner

    monkeypatch.setattr("loginfer.kg.load.read_graph", interrupted)
    monkeypatch.setattr("loginfer.kg.catalogue.open_graph", interrupted)
    code, _, err = loginfer("kg", "show", tmp_path)
    assert code == 130
    assert err == "interrupted; nothing was left half-written\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_that_a_compiler_loses_is_clean(loginfer, tmp_path, monkeypatch, number):
    def failing(*args, **kwargs):
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        raise RuntimeError("no compiled object yet")

    monkeypatch.setattr("loginfer.kg.catalogue.open_graph", failing)
    code, _, err = loginfer("kg", "show", tmp_path)
    assert code == 130
    assert err == "interrupted; nothing was left half-written\n"


def test_output_is_the_same_whatever_the_hash_seed(tmp_path):
    graph = tmp_path / "graph.tsv"
    graph.write_text("".join(f"e{i % 17}\tR{i % 5}\te{i * 7 % 23}\n" for i in range(400)))
    outputs = set()
    for seed in ("0", "1", "77"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        for words in (
            ["rules", "rank", str(graph), "--pattern", "triangle", "--all", "--json"],
            ["rules", "apply", str(graph), "(x,R1,y), (y,R2,z) -> (x,R3,z)", "--json"],
            ["rules", "convert", "lubm-107", "--to", "nemo"],
        ):
            done = run(*words, env=environment)
            assert done.returncode == 0, done.stderr
            outputs.add((words[1], done.stdout))
    assert len(outputs) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_answer_that_cannot_be_printed_is_one_clear_message():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "rules", "patterns"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "error: cannot print the answer: no space left on device\n"


@pytest.mark.parametrize("words", [["rules", "patterns"], ["kg", "show", "lubm"]])
def test_closed_streams_are_no_error(words):
    closed = "import os, sys; os.close(0); os.close(1); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    done = subprocess.run(
        [sys.executable, "-c", closed, *PROGRAM[1:], *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("json_wanted", [True, False])
def test_names_beyond_the_encoding_of_the_terminal_are_escaped(tmp_path, json_wanted):
    graph = tmp_path / "graph.tsv"
    graph.write_text("Zürich\tin\t日本\n", encoding="utf-8")
    words = ["rules", "explain", str(graph), "(x,in,y) -> (y,has,x)", "日本", "has", "Zürich"]
    done = subprocess.run(
        [*PROGRAM, *words, *["--json"][: int(json_wanted)]],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if json_wanted:
        assert json.loads(done.stdout)["triple"] == ["日本", "has", "Zürich"]
    else:
        assert done.stdout.startswith(rb"(\u65e5\u672c, has, Z\xfcrich)")


def test_ctrl_c_before_the_command_runs_is_clean(loginfer, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("loginfer.cli.app.app", interrupted)
    assert loginfer("kg", "list") == (130, "", "interrupted; nothing was left half-written\n")
