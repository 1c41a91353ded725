"""What all commands have in common: help that fits on a screen, panels, and how much is said on stderr.

A command with many options has them in panels; `--help` shows the everyday ones, `--help-all` all. `-q` and `-v`
belong to the program and may stand anywhere. Messages go to the logger `loginfer`; the program prints them.

Data never reaches a terminal as commands to it: what the program prints passes a `VisibleStream`, or Rich's console
of `loginfer.cli.common`, which writes past it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import typer
import typer.core

LOG = logging.getLogger("loginfer")

# The panels of a command's help in their order, and which options of any command stand in them; recipes say it of
# others, and the rest says what is to be done.
PANELS = {
    "What": "",
    "How much": "k1 k2 allow-fewer min-support max-support max-triples min-new ratio trials seed seeds jobs",
    "Negatives": "",
    "Measures": "threshold criterion ranking tie diagnosis max-shortcut strict",
    "Variants": "",
    "Reading the graph": "format columns delimiter on-error literals type-predicate",
    "Engine": "engine memory-limit master spark-conf scratch",
    "Output": "name weights checkpoint out force json",
}
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}
# Panels that only --help-all shows.
_ADVANCED = ("Variants", "Reading the graph", "Engine")
# Commands with more options have panels.
MANY = 5
# Of these commands (`suite build` included), the options that --help shows; of others all but the advanced panels.
EVERYDAY = {
    "build": "only jobs pattern rules k1 k2 allow-fewer negatives match protocol seed recipe out force json help",
    "evaluate": "system set negatives seed seeds jobs ranking threshold scores out force json help",
    "mine": "miner max-length min-support min-confidence seconds seed set negatives out force json help",
    "reproduce": "tables system only budget plan seeds jobs out force json help",
    "report": "to compare title audit out force json help",
}
HELP_ALL = "--help-all"


def _name(option: Any) -> str:
    return str(option.opts[0]).removeprefix("--")


class Command(typer.core.TyperCommand):
    """A command whose help shows the everyday options first, and all with --help-all."""

    def __init__(self, *args: Any, **about: Any) -> None:
        super().__init__(*args, **about)
        # Lines of a docstring are paragraphs, not lines of a terminal.
        self.help = re.sub(r"(?<!\n)\n(?!\n)", " ", self.help or "")
        options: list[Any] = [option for option in self.params if option.param_type_name == "option"]
        for option in options:
            panel = _PANEL_OF.get(_name(option), option.rich_help_panel if option.rich_help_panel in PANELS else "What")
            option.rich_help_panel = panel if len(options) > MANY else None
        # Typer shows the panels in the order of their first options; arguments have none.
        order = [None, *PANELS]
        self.params.sort(key=lambda parameter: order.index(getattr(parameter, "rich_help_panel", None)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take --help-all for --help, and remember that all options are to be shown."""
        ctx.meta[HELP_ALL] = HELP_ALL in args
        return super().parse_args(ctx, ["--help" if word == HELP_ALL else word for word in args])

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters; --help stands in the last panel, and names --help-all where that shows more."""
        *others, help_option = parameters = _without_types(super().get_params(ctx))
        more = len(self._advanced())
        help_option.help = "Show this message" + (f"; {HELP_ALL}: {more} more options." if more else ".")
        help_option.rich_help_panel = getattr(others[-1], "rich_help_panel", None) if others else None
        return parameters

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the everyday options, or all."""
        advanced = [] if ctx.meta.get(HELP_ALL) else self._advanced()
        for option in advanced:
            option.hidden = True
        super().format_help(ctx, formatter)
        for option in advanced:
            option.hidden = False

    def _advanced(self) -> list[Any]:
        everyday = EVERYDAY.get(self.name or "", "").split()
        options: list[Any] = [p for p in self.params if getattr(p, "rich_help_panel", None) and not p.required]
        options = [p for p in options if p.param_type_name == "option"]
        return [p for p in options if (_name(p) not in everyday if everyday else p.rich_help_panel in _ADVANCED)]


def _without_types(parameters: list[Any]) -> list[Any]:
    """Let the help of flags name no type."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class _Group(typer.core.TyperGroup):
    def get_params(self, ctx: Any) -> Any:
        return _without_types(super().get_params(ctx))

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the program's own options."""
        with _visible_usage():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; it ends well when nobody reads on (`| head`), which Typer would take for an error."""
        try:
            with _visible_usage():
                return super().invoke(ctx)
        except BrokenPipeError:
            let_streams_go()
            sys.exit(0)


class CommandGroup(typer.Typer):
    """A group of commands, each a `Command`; without a command it shows its help."""

    def __init__(self, **about: Any) -> None:
        super().__init__(**{"cls": _Group, "no_args_is_help": True, **about})

    def command(self, *args: Any, **about: Any) -> Callable[..., Any]:
        """Register a command, as Typer does."""
        return super().command(*args, **{"cls": Command, **about})


# -- what is said, and how much ---------------------------------------------------------------------

# Control characters but line ends and tabs, what changes the direction of text, and halves of surrogate pairs.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str, *, narrow: str = "\\x{:02x}") -> str:
    r"""Return a text with escapes such as `\x1b` in place of what a terminal would obey instead of showing it.

    Parameters
    ----------
    text
        The text; its line ends and tabs stay.
    narrow
        How an escape below 256 is written.
    """
    return _UNSEEN.sub(lambda c: (narrow if c[0] < "\u0100" else "\\u{:04x}").format(ord(c[0])), text)


def visible_name(name: str) -> str:
    """Return a name with escapes, in one line whatever is in it."""
    return visible(name).replace("\n", "\\n").replace("\t", "\\t")


def indented(message: str) -> str:
    """Return a message whose further lines begin with a blank: a name with a line end in it begins no message."""
    return re.sub(r"\n(?=\S)", "\n  ", message)


class VisibleStream:
    """A stream of the program's output that shows control characters as escapes."""

    def __init__(self, stream: Any) -> None:
        # Rich's consoles look for this name: they write their own control characters, behind which nothing is escaped.
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write a text; only at its beginning it may return to the start of the line, as the bars of others do."""
        returns = text[:1] == "\r"
        try:
            self.rich_proxied_file.write("\r" * returns + visible(text[returns:]))
        except OSError:
            if self is not sys.stderr:
                raise
            let_streams_go()  # messages that nobody can read change nothing
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def let_streams_go() -> None:
    """Give up streams that take no more: what they still hold must not be written again at the end."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)


@contextlib.contextmanager
def _visible_usage() -> Iterator[None]:
    """Escape what errors in the use of a command quote: Typer prints them with a console of its own."""
    try:
        yield
    except Exception as error:
        if message := getattr(error, "format_message", None):
            text = visible(message())
            error.format_message = lambda: text  # type: ignore[attr-defined]
        raise


_PROGRAM_FLAGS = ("-q", "--quiet", "-v", "--verbose")


def flags_first(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with the program's own flags in front, wherever they stood."""
    end = list(words).index("--") if "--" in words else len(words)
    flags = [word for word in words[:end] if word in _PROGRAM_FLAGS]
    return [*flags, *(word for word in words[:end] if word not in _PROGRAM_FLAGS), *words[end:]]


class _Printer(logging.Handler):
    """Prints messages to what stderr is now, those of this process only: workers say the same again."""

    process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        from loginfer.cli.common import say

        if record.process == self.process:
            say(indented(record.getMessage()), stderr=True)


def print_messages(level: int) -> None:
    """Print the messages of the logger `loginfer` from a level on to stderr."""
    LOG.setLevel(level)
    if not any(isinstance(handler, _Printer) for handler in LOG.handlers):
        LOG.addHandler(_Printer())
