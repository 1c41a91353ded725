"""What reaches a terminal: names, messages and file names never as commands to it."""

import contextlib
import json
import os
import re
import sys
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are of Unix")

# Clears the screen, begins another command, turns the direction of text, rings, and goes back to overwrite the line.
HOSTILE = "\x1b[2J\x9b\u202e\x07\x7f\x1b]0;title\x07"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# What Rich writes of its own: styles, and for bars the cursor's moves; a terminal ends lines with \r\n.
RICH = re.compile(r"\x1b\[[0-9;]*[mAK]|\x1b\[\?25[lh]|\r")

SYSTEM = f"""
class Fails:
    def fit(self, benchmark):
        raise ValueError({HOSTILE!r} + "\\nerror: made up")

class Constant:
    def fit(self, benchmark):
        return self

    def score(self, triples):
        print({HOSTILE!r})
        return [0.0] * len(triples)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a graph, a benchmark and a run whose names are hostile, and own systems."""
    from loginfer.cli import main

    folder = tmp_path_factory.mktemp("terminal")
    graph = folder / f"graph{HOSTILE}.tsv"
    lines = [f"a{i}{HOSTILE}\tknows{HOSTILE}\ta{(i * 7 + 1) % 60}{HOSTILE}\n" for i in range(60)]
    lines += [f"a{i}{HOSTILE}\tlikes{HOSTILE}\ta{(i * 11 + 3) % 60}{HOSTILE}\n" for i in range(60)]
    graph.write_text("".join(lines), encoding="utf-8")
    (folder / "graph.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "hostile_systems.py").write_text(SYSTEM, encoding="utf-8")
    (folder / "bad.tsv").write_text(f"a{HOSTILE}\tb\n", encoding="utf-8")
    (folder / "bad.rules").write_text(f"(x,R{HOSTILE},y) -> nothing\n", encoding="utf-8")
    for words in (
        ["build", folder / "graph.tsv", "--pattern", "symmetry", "--k1", "2", "--negatives", "pa", "--k2", "40",
         "--out", folder / "bench"],
        ["evaluate", folder / "bench", "--system", "simpbl", "--out", folder / "run"],
        ["mine", folder / "graph.tsv", "--miner", "exact", "--max-length", "1", "--out", folder / "mined.tsv"],
    ):  # fmt: skip
        with pytest.raises(SystemExit) as stop:
            main(["-q", *map(str, words)])
        assert stop.value.code == 0
    (folder / f"bench{HOSTILE}").symlink_to(folder / "bench")
    return folder


COMMANDS = {
    "kg show": ["kg", "show", "graph.tsv"],
    "kg show of a file with a hostile name": ["kg", "show", f"graph{HOSTILE}.tsv"],
    "names in full": ["kg", "show", "graph.tsv", "--full-names"],
    "kg convert of a bad file": ["kg", "convert", "bad.tsv", "--out", "converted.nt"],
    "kg convert to a hostile ending": ["kg", "convert", "graph.tsv", "--out", f"converted.{HOSTILE}"],
    "build": ["build", "graph.tsv", "--pattern", "symmetry", "--k1", "1", "--name", HOSTILE, "--out", "again"],
    "build with an unknown option": ["build", "graph.tsv", f"--no{HOSTILE}"],
    "build with a bad number": ["build", "graph.tsv", "--k1", HOSTILE],
    "an unknown command": [HOSTILE],
    "an unknown pattern": ["build", "graph.tsv", "--pattern", HOSTILE, "--out", "again"],
    "audit": ["audit", f"bench{HOSTILE}"],
    "audit without a folder": ["audit", HOSTILE],
    "evaluate": ["evaluate", "bench", "--system", "simpbl"],
    "evaluate an own system": ["evaluate", "bench", "--system", "hostile_systems:Constant"],
    "evaluate an own system that fails": ["evaluate", "bench", "--system", "hostile_systems:Fails"],
    "explain": ["explain", "bench", f"a0{HOSTILE}", f"knows{HOSTILE}", f"a1{HOSTILE}"],
    "rules show": ["rules", "show", "mined.tsv"],
    "rules show of a bad file": ["rules", "show", "bad.rules"],
    "rules rank": ["rules", "rank", "graph.tsv", "--pattern", "symmetry"],
    "rules apply": ["rules", "apply", "graph.tsv", f"(x,<knows{HOSTILE}>,y) -> (y,<knows{HOSTILE}>,x)"],
    "rules apply of an unknown relation": ["rules", "apply", "graph.tsv", f"(x,<no{HOSTILE}>,y) -> (y,R,x)"],
    "rules convert": ["rules", "convert", "mined.tsv", "--to", "arrow"],
    "report": ["report", "run", f"bench{HOSTILE}", "--out", "site", "--force"],
    "report for a paper": ["report", "run", "--to", "md"],
    "score": ["score", "run"],
    "mine": ["mine", "graph.tsv", "--miner", "exact", "--max-length", "1", "--out", "again.tsv", "--force"],
    "study": ["study", f"no{HOSTILE}", "--out", "study"],
    "systems show": ["systems", "show", HOSTILE],
}  # fmt: skip
# These are run on a terminal only.
SLOW = ("report", "audit", "mine")


def run_here(words: list[str], monkeypatch, stdout, stderr) -> None:
    from loginfer.cli import main

    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setattr(sys, "stderr", stderr)
    with pytest.raises(SystemExit):
        main(words)


@contextlib.contextmanager
def terminal():
    """Give a stream on a pseudo-terminal, and a list that holds all that was written there afterwards."""
    master, slave = os.openpty()
    seen: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(master, 65536):
                seen.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        yield stream, seen
    reader.join(60)
    os.close(master)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_name_or_message_commands_a_terminal(place, monkeypatch, tmp_path, command):
    monkeypatch.chdir(place)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.syspath_prepend(str(place))
    if command not in SLOW:
        with (tmp_path / "out").open("w+", encoding="utf-8") as out:
            run_here(COMMANDS[command], monkeypatch, out, out)
            out.seek(0)
            printed = out.read()
        assert printed
        assert CONTROL.findall(printed) == []
    with terminal() as (stream, seen):
        run_here(COMMANDS[command], monkeypatch, stream, stream)
    printed = b"".join(seen).decode()
    assert printed
    assert CONTROL.findall(RICH.sub("", printed)) == []
    assert "\x1b[2J" not in printed


def test_json_keeps_names_as_they_are_but_escapes_them(place, loginfer):
    code, printed, _ = loginfer("kg", "show", place / "graph.tsv", "--json")
    assert code == 0
    assert CONTROL.findall(printed) == []
    assert set(json.loads(printed)["relation_sizes"]) == {f"knows{HOSTILE}", f"likes{HOSTILE}"}


def test_a_name_with_a_line_end_fakes_no_line(loginfer, tmp_path):
    from loginfer.kg import KnowledgeGraph
    from loginfer.kg.load import write_graph

    graph = tmp_path / "graph.parquet"
    write_graph(KnowledgeGraph.from_names([("a", "is\nerror: made up\t", "b")]), graph)
    code, printed, _ = loginfer("kg", "show", graph)
    assert code == 0
    assert r" is\nerror: made up\t " in printed
    code, _, messages = loginfer("kg", "show", "none\nerror: made up")
    assert code == 2
    assert messages.startswith("error: ")
    assert "\nerror" not in messages


def test_the_bars_of_other_libraries_stay_in_their_line(capsys, monkeypatch):
    from loginfer.cli.commands import VisibleStream

    monkeypatch.setattr(sys, "stdout", VisibleStream(sys.stdout))
    print("\r 10%", end="")
    print("a\rb")
    assert capsys.readouterr().out == "\r 10%a\\x0db\n"
