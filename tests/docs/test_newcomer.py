"""The newcomer's way, as a script: it works, and it uses nothing that the documentation does not name."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.pages import ROOT, parse

SCRIPT = ROOT / "scripts" / "newcomer.sh"


# Stands for the program where only the words of the script matter.
FAKE = """#!/bin/sh
mkdir -p study/report bench/mine
echo contrast > study/report/index.html
echo loginfer build > study/commands.sh
touch bench/mine/train.txt queries.tsv
"""


def run(clone: Path, work: Path, program: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(SCRIPT), str(clone)],
        env=os.environ | {"LOGINFER": str(program), "WORK": str(work), "PEOPLE": "300"},
        capture_output=True,
        text=True,
        check=False,
    )


def fake(folder: Path, pages: str) -> tuple[Path, Path]:
    """Make a clone with these pages, and a program that does nothing."""
    (folder / "docs").mkdir(parents=True)
    (folder / "README.md").write_text(pages)
    shutil.copytree(ROOT / "examples", folder / "examples")
    program = folder / "program"
    program.write_text(FAKE)
    program.chmod(0o755)
    return folder, program


@pytest.mark.slow
def test_newcomers_get_from_a_clone_to_their_answers_and_no_line_is_wider_than_80_columns(tmp_path):
    done = run(ROOT, tmp_path, Path(sys.executable).with_name("loginfer"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "my-model" in (tmp_path / "site" / "index.html").read_text()
    printed = [line for line in done.stdout.splitlines() if not line.startswith(("$ ", "== "))]
    assert [line for line in printed if len(line) > 80] == []


def test_an_option_that_the_documentation_does_not_name_stops_the_newcomer(tmp_path):
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    text = "\n".join(page.read_text() for page in pages).replace("--export-queries", "--queries")
    clone, program = fake(tmp_path / "clone", text)
    done = run(clone, tmp_path / "work", program)
    assert done.returncode == 1
    assert "does not name the option --export-queries of: loginfer evaluate" in done.stderr


def test_a_command_that_the_documentation_does_not_name_stops_the_newcomer(tmp_path):
    clone, program = fake(tmp_path / "clone", "loginfer kg show --on-error --top\n")
    done = run(clone, tmp_path / "work", program)
    assert done.returncode == 1
    assert "does not name: loginfer study" in done.stderr


def test_the_newcomers_commands_exist():
    found = re.findall(r"^run (.*)$", SCRIPT.read_text(), re.MULTILINE)
    assert len(found) > 5
    for text in found:
        command, *rest = shlex.split(text)
        parse([*command.split(), *rest])
