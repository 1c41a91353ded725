"""The command line: one thin layer over the other packages."""

from __future__ import annotations

from loginfer.cli.app import main

__all__ = ["main"]
