"""The program `loginfer`: its commands, and how errors end it."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from loginfer._version import __version__
from loginfer.cli import build as suite
from loginfer.cli import evaluate as systems
from loginfer.cli import kg, rules
from loginfer.cli.audit import audit, explain
from loginfer.cli.build import build
from loginfer.cli.commands import CommandGroup, VisibleStream, flags_first, indented, let_streams_go, print_messages
from loginfer.cli.common import INTERRUPTED, say
from loginfer.cli.evaluate import evaluate, predict, score
from loginfer.cli.mine import mine
from loginfer.cli.report import export, report, reproduce
from loginfer.cli.study import study
from loginfer.cli.tune import tune
from loginfer.errors import LogInferError, caused_by_interruption
from loginfer.files import MORE_FILES, describe_os_error
from loginfer.processes import PARENT, end_with_parent

INTERRUPTION = "interrupted; nothing was left half-written"

app = CommandGroup(
    name="loginfer",
    help="Inferential benchmarks for knowledge-graph completion.",
    epilog="Example:  loginfer study lubm --out lubm-study",
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog="Example:  loginfer study lubm --out lubm-study")(study)
app.add_typer(kg.app, name="kg")
app.add_typer(rules.app, name="rules")
app.command(epilog="Example:  loginfer build wn18rr --pattern triangle --negatives qg --k1 20 --out wn-trian")(build)
app.add_typer(suite.app, name="suite")
app.command(epilog="Example:  loginfer audit wn-trian --json")(audit)
app.command(epilog="Example:  loginfer explain wn-trian 00003316 _instance_hypernym 00836788")(explain)
app.command(epilog="Example:  loginfer export wn-trian --to openke --out wn-trian-openke")(export)
app.add_typer(systems.app, name="systems")
app.command(epilog="Example:  loginfer evaluate wn-trian --system transe --set epochs=20 --out run")(evaluate)
app.command(epilog="Example:  loginfer tune wn-trian --system rotate --trials 12 --out trials")(tune)
app.command(epilog="Example:  loginfer score run --threshold relation")(score)
app.command(epilog="Example:  loginfer predict run --subject 00003316 --relation _hypernym --top 5")(predict)
app.command(epilog="Example:  loginfer mine wn18rr --miner exact --max-length 2 --out rules.tsv")(mine)
app.command(epilog="Example:  loginfer reproduce --tables lubm --systems simpbl,transe,oracle --seeds 1 --out again")(
    reproduce
)
app.command(epilog="Example:  loginfer report runs benchmarks --out site")(report)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"loginfer {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No notes and no progress; anywhere in a command.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="More details; anywhere in a command.")] = False,
) -> None:
    """Inferential benchmarks for knowledge-graph completion."""
    print_messages(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)


def main(arguments: list[str] | None = None) -> None:
    """Run the program.

    Exit codes: 0 all well, 1 a check found something, 2 bad input or output, 130 interrupted.
    """
    # NumPy's linear algebra would start a thread per core before one is needed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if parent := os.environ.pop(PARENT, None):
        end_with_parent(int(parent))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # A character that a terminal of another encoding cannot show is no reason to stop.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        if stream is not None and not isinstance(stream, VisibleStream):
            setattr(sys, name, VisibleStream(stream))
    try:
        with _interruptible():
            try:
                app(flags_first(sys.argv[1:] if arguments is None else arguments))
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
    except KeyboardInterrupt:
        # Typer catches Ctrl-C only while the command runs.
        say(INTERRUPTION, stderr=True)
        sys.exit(INTERRUPTED)
    except LogInferError as error:
        say(indented(f"error: {error}"), stderr=True)
        sys.exit(2)
    except SystemExit as stop:
        # Typer turns Ctrl-C into this exit code, without a word.
        if stop.code == INTERRUPTED:
            say(INTERRUPTION, stderr=True)
        raise
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):  # too many to import what `say` needs
            print(f"error: {describe_os_error(error)}\n  hint: {MORE_FILES}, or use fewer --jobs", file=sys.stderr)
            sys.exit(2)
        # Without a file's name it is about the answer on stdout, which must not be flushed again at the end.
        if error.filename is None:
            let_streams_go()
        if isinstance(error, BrokenPipeError):
            # The reader of our output has ended (`| head`): not an error.
            sys.exit(0)
        failed = "print the answer" if error.filename is None else f"use `{error.filename}`"
        say(f"error: cannot {failed}: {describe_os_error(error)}", stderr=True)
        sys.exit(2)
    except MemoryError:
        print(
            "error: not enough memory for this\n  hint: --engine duckdb works from disk; embeddings do with "
            "\n    --set storage=mapped --set partitions=4",
            file=sys.stderr,
        )
        sys.exit(2)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, and what goes wrong after either as its consequence.

    While a kernel is being compiled, Python drops the exception, and the compiler fails for want of its result.
    """
    received: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    except Exception as error:
        if received or caused_by_interruption(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
