"""The command line: one thin layer over all rooms."""

from loginfer.cli.app import main

__all__ = ["main"]
