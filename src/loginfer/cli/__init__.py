"""The command line: one thin layer over the other packages."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the program (see `loginfer.cli.app.main`)."""
    try:
        from loginfer.cli.app import main as run
    except KeyboardInterrupt:  # nothing has begun yet
        sys.exit(130)
    run(arguments)
