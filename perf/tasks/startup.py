"""How long a user waits before anything happens."""

from __future__ import annotations

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

HELP = "import sys; sys.argv = ['loginfer', '--help']; from loginfer.cli import main; main()"


def tasks(space: Workspace) -> list[Task]:
    """Return the import and the help text; Python alone stands beside them."""
    python = Case("Python alone", command=("-c", "pass"), same=False)
    return [
        Task("import", "import loginfer", (_start("import loginfer"), python)),
        Task("help", "loginfer --help", (_start(HELP), python)),
    ]


def _start(code: str) -> Case:
    return Case(OURS, command=("-c", code), seconds=0.5)
