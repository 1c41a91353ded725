"""The newcomer's way, as a script: it works, and it uses nothing that the documentation does not name."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support.pages import ROOT, parse

SCRIPT = ROOT / "scripts" / "newcomer.sh"


def run(clone: Path, work: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(SCRIPT), str(clone)],
        env=os.environ | {"LOGINFER": program, "WORK": str(work)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_newcomer_gets_from_a_clone_to_a_report(tmp_path):
    program = Path(sys.executable).with_name("loginfer")
    done = run(ROOT, tmp_path, str(program))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "my-model" in (tmp_path / "site" / "index.html").read_text()


def test_an_option_that_the_documentation_does_not_name_stops_the_newcomer(tmp_path):
    clone = tmp_path / "clone"
    (clone / "docs").mkdir(parents=True)
    readme = (ROOT / "README.md").read_text()
    pages = [page.read_text() for page in sorted((ROOT / "docs").rglob("*.md"))]
    (clone / "README.md").write_text(readme.replace("--export-queries", "--queries"))
    (clone / "docs" / "all.md").write_text("\n".join(pages).replace("--export-queries", "--queries"))
    done = run(clone, tmp_path / "work", "true")
    assert done.returncode == 1
    assert "does not name the option --export-queries of: loginfer evaluate" in done.stderr


def test_a_command_that_the_documentation_does_not_name_stops_the_newcomer(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("loginfer kg show\n")
    done = run(tmp_path, tmp_path / "work", "true")
    assert done.returncode == 1
    assert "does not name: loginfer build" in done.stderr


def test_the_newcomers_commands_exist():
    found = re.findall(r"^run (.*)$", SCRIPT.read_text(), re.MULTILINE)
    assert len(found) > 5
    for text in found:
        command, *rest = shlex.split(text)
        parse([*command.split(), *rest])
