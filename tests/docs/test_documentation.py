"""The examples in the documentation are executed; its links and commands exist."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text()) if found == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_examples_of_a_page_run_one_after_the_other(page):
    scope: dict[str, object] = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), scope)


def commands() -> list[tuple[str, list[str]]]:
    found = []
    for page in PAGES:
        for text in blocks(page, "sh") + blocks(page, "console"):
            for line in text.splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                if words and words[0] == "loginfer":
                    found.append((page.name, words[1:]))
    return found


@pytest.mark.parametrize(
    ("page", "words"), commands(), ids=lambda v: v if isinstance(v, str) else " ".join(v[:2])
)
def test_commands_in_the_documentation_parse(page, words):
    """Every command shown exists and takes the options shown, whether or not its data is here."""
    import typer

    from loginfer.cli.app import app

    command = typer.main.get_command(app)
    context = command.make_context("loginfer", list(words[:1]), resilient_parsing=True)
    depth = 0
    while hasattr(command, "get_command"):
        command = command.get_command(context, words[depth])
        depth += 1
        assert command is not None, f"{page}: no command {' '.join(words[:depth])}"
    command.make_context(words[depth - 1], list(words[depth:]))


def test_the_example_of_the_package_docstring_runs():
    import doctest

    import loginfer

    assert doctest.testmod(loginfer).failed == 0
