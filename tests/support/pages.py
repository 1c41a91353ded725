"""Pages of the documentation as programs: their blocks of code, and how each kind is run.

A page's blocks are run one after the other in a folder of the page's own, as a reader would:

- a block with a title (```` ```toml title="recipe.toml" ````) is a file of that name;
- `python` is executed, all blocks of a page in one scope;
- `console` has commands behind `$ ` and, below each, what it prints, which must be so: `…` stands for
  anything, within a line or for any number of lines, and numbers with a decimal point may differ a little;
- `sh` has commands only;
- `rules` has rules and patterns, which are read;
- `toml` is read; `text` is for drawings and for what is no code.

A command fails where the page shows its error, and nowhere else.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

LANGUAGES = ("console", "python", "rules", "sh", "text", "toml")

_FENCE = re.compile(r"^```(\S*)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_DECIMAL = re.compile(r"[-+]?\d[\d,]*\.\d+(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A block of code: the page, the line it begins in, its language, the file it is (if any), its text."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command line of a page, with what the page says that it prints."""

    text: str
    shown: tuple[str, ...] = ()
    where: str = ""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    @property
    def ours(self) -> bool:
        """Whether it is one call of our program and nothing else, so that it can be run in this process."""
        plain = not re.search(r"[|;&<>$`*?]", re.sub(r"'[^']*'", "", self.text.split(" #")[0]))
        return plain and self.words[:1] == ["loginfer"]

    @property
    def fails(self) -> bool:
        """Whether the page shows that it fails."""
        return any(line.startswith(("error:", "ERROR")) for line in self.shown)


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        title = _TITLE.search(match[2])
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, match[1], title[1] if title else None, match[3]))
    return found


def commands(block: Block) -> list[Command]:
    """Return the commands of a `console` or `sh` block; lines that end with a backslash go on."""
    lines = block.text.splitlines()
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if found and not found[-1][1] and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0][:-1] + line.removeprefix("> ").strip(), [])
        elif block.language == "sh" and line.strip():
            found.append((line, []))
        elif line.startswith("$ "):
            found.append((line[2:], []))
        elif found and block.language == "console":
            found[-1][1].append(line)
    for text, _ in found:
        assert not text.endswith("\\"), f"{block.where}: the command does not end"
    return [Command(t, tuple(s), block.where) for t, s in found if shlex.split(t, comments=True)]


# -- running ------------------------------------------------------------------------------------------


@dataclass
class Reader:
    """Somebody who does what a page says, in a folder of their own.

    `skip` says why a command is not run (None: it is), `words` may change how it is called, `before` is
    called with a command that is about to be run.
    """

    folder: Path
    skip: Callable[[Command], str | None] = lambda command: None
    words: Callable[[list[str]], list[str]] = lambda words: words
    before: Callable[[Command, Path], None] = lambda command, folder: None
    scope: dict[str, object] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def read(self, page: Path) -> None:
        """Do all that a page says."""
        with contextlib.chdir(self.folder):
            for block in blocks(page):
                self.do(block)

    def do(self, block: Block) -> None:
        """Do what one block says; the current folder is the page's."""
        if block.title is not None:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
        if block.language == "python" and block.title is None:
            code = compile("\n" * block.line + block.text, str(block.page), "exec")
            with own_modules(), contextlib.redirect_stdout(io.StringIO()):
                sys.path.insert(0, str(Path.cwd()))
                exec(code, self.scope)
        elif block.language == "python":
            compile(block.text, block.title or block.where, "exec")
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "rules":
            read_rules(block)
        elif block.language in ("console", "sh") and block.title is None:
            for command in commands(block):
                self.run(command)

    def run(self, command: Command) -> None:
        """Run a command, and compare what it prints with what the page shows."""
        why = self.skip(command)
        if why is not None:
            self.skipped.append((command.text, why))
            return
        self.before(command, self.folder)
        printed, code = self.call(command)
        about = f"{command.where}: $ {command.text}\n{printed}"
        assert (code != 0) == command.fails, f"exit code {code} of {about}"
        if command.shown:
            wrong = difference(command.shown, printed)
            assert wrong is None, f"{wrong}\nof {about}"

    def call(self, command: Command) -> tuple[str, int]:
        if command.ours:
            return call_ours(self.words(command.words[1:]))
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-c", command.text],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False,
        )  # fmt: skip
        return done.stdout, done.returncode


def call_ours(words: list[str]) -> tuple[str, int]:
    """Call our program in this process; return what it prints, messages included, and its exit code."""
    from loginfer.cli import common, main

    printed = io.StringIO()
    try:
        with (
            pytest.MonkeyPatch.context() as patch,
            own_modules(),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            patch.setattr(common, "FIRST_LINE", float("inf"))  # how much progress there is depends on the machine
            main(words)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return printed.getvalue(), code


@contextlib.contextmanager
def own_modules() -> Iterator[None]:
    """Forget the modules of the current folder afterwards: a page's own modules are no other page's."""
    path, modules = list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).resolve().parent == Path.cwd().resolve():
                del sys.modules[name]


# -- comparing ----------------------------------------------------------------------------------------


def difference(shown: tuple[str, ...], printed: str) -> str | None:
    """Return the first line of a page's output that was not printed; None if all were, in this order.

    Where long lines are folded, and how long the line below a table's head is, does not matter.
    """
    printed = re.sub("─+", "─", printed)
    shown = tuple(re.sub("─+", "─", line) for line in shown)
    if same_line(" ".join(" ".join(shown).replace("...", "…").split()), " ".join(printed.split())):
        return None
    wanted = [line for line in (" ".join(line.split()) for line in shown) if line]
    there = [line for line in (" ".join(line.split()) for line in printed.splitlines()) if line]
    place, anywhere = 0, False
    for line in wanted:
        if line in ("…", "..."):
            anywhere = True
            continue
        fits = [i for i in range(place, len(there)) if same_line(line, there[i])]
        if not fits or (not anywhere and fits[0] != place):
            seen = there[place] if place < len(there) else "nothing more"
            return f"the page shows `{line}`; printed was `{seen}`"
        place, anywhere = fits[0] + 1, False
    if place < len(there) and not anywhere:
        return f"the page does not show `{there[place]}`"
    return None


def same_line(shown: str, printed: str) -> bool:
    """Whether a line is as shown: `…` is anything, and numbers with a decimal point are about the same."""
    number = r"([-+]?\d[\d,]*\.\d+(?:e[-+]?\d+)?)"
    pattern = "".join(
        ".*" if part.strip() == "…" else number if _DECIMAL.fullmatch(part) else re.escape(part)
        for part in re.split(rf"(\s*…\s*|{_DECIMAL.pattern})", shown)
        if part
    )
    match = re.fullmatch(pattern, printed)
    if match is None:
        return False
    wanted = [_value(text) for text in _DECIMAL.findall(shown)]
    return all(abs(a - b) <= 0.1 * abs(a) + 1 for a, b in zip(wanted, map(_value, match.groups()), strict=True))


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def read_rules(block: Block) -> None:
    """Read a block of rules and patterns."""
    from loginfer.errors import LogInferError
    from loginfer.logic import parse_pattern, parse_rules

    for line in block.text.splitlines():
        try:
            parse_pattern(line) if re.search(r"[,(]_[A-Za-z]+[,)]", line) else parse_rules(line)
        except LogInferError as error:
            raise AssertionError(f"{block.where}: {line}: {error}") from error


# -- without running ----------------------------------------------------------------------------------


def all_commands() -> Iterator[Command]:
    """Yield every command of every page."""
    for page in PAGES:
        for block in blocks(page):
            if block.language in ("console", "sh"):
                yield from commands(block)


@cache
def _program() -> Any:
    import typer

    from loginfer.cli.app import app

    return typer.main.get_command(app)


def parse(words: list[str]) -> None:
    """Check that our program has this command and takes these options; runs nothing."""
    command = _program()
    context = command.make_context("loginfer", words[:1], resilient_parsing=True)
    depth = 0
    while hasattr(command, "get_command") and depth < len(words):
        command = command.get_command(context, words[depth])
        depth += 1
        assert command is not None, f"no command {' '.join(words[:depth])}"
    command.make_context(words[depth - 1], words[depth:], resilient_parsing=words[-1:] in (["--help"], ["-h"]))
