"""What the commands share: options, loading, progress, printing."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from loginfer.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from loginfer.engine import Progress
    from loginfer.kg import KnowledgeGraph
    from loginfer.kg.load import Loaded

__all__ = [
    "ColumnsOption",
    "ForceOption",
    "FormatOption",
    "GraphArgument",
    "JsonOption",
    "OnError",
    "OnErrorOption",
    "TypePredicateOption",
    "console",
    "counted",
    "note",
    "on_terminal",
    "open_kg",
    "print_json",
    "progress_bar",
    "resolve_entity",
    "resolve_relation",
    "table",
]


class OnError(StrEnum):
    """What to do with a line that cannot be read."""

    fail = "fail"
    skip = "skip"


GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="KG",
        help="A graph: a name from `loginfer kg list`, or a file, folder or archive of triples.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, for programs.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what exists already.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="Format of the graph; by default its ending decides.")
]
ColumnsOption = Annotated[
    str,
    typer.Option(
        "--columns", help="Order of the columns of a TSV file, e.g. `sor` for subject, object, relation."
    ),
]
OnErrorOption = Annotated[
    OnError, typer.Option("--on-error", help="Bad lines: stop at the first, or skip and count them.")
]
TypePredicateOption = Annotated[
    str | None,
    typer.Option(
        "--type-predicate",
        help="The relation that gives types; by default rdf:type in its usual forms. Empty: none.",
    ),
]


# Wider than any row: what is piped into a file or another program is not folded.
UNLIMITED_WIDTH = 1_000_000


def console(stderr: bool = False) -> Console:
    """Return a console; piped output is not folded to a terminal's width.

    Names are printed as they are: `[b]` and `:smile:` in them are no markup.
    """
    from rich.console import Console

    width = None if on_terminal(sys.stderr if stderr else sys.stdout) else UNLIMITED_WIDTH
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def on_terminal(stream: TextIO | None) -> bool:
    """Say whether a person looks at a stream; a closed one is None."""
    return stream is not None and stream.isatty()


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Say how many: `1 rule`, `1,000 rules`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def note(message: str) -> None:
    """Say something to a person, beside the answer."""
    print(message, file=sys.stderr)


def print_json(value: Any) -> None:
    """Print an answer for a program."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").replace("-", "").casefold()
    print(json.dumps(value, ensure_ascii=encoding != "utf8", indent=2))


def table(*columns: str, numbers: tuple[str, ...] = (), title: str | None = None) -> Table:
    """Return an empty table; columns named in `numbers` are aligned to the right."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Give a callback that shows progress on a terminal, or None where nobody looks."""
    if not on_terminal(sys.stderr):
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    )
    with bar:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield report


def open_kg(
    name: str,
    *,
    format: str | None = None,
    columns: str = "sro",
    on_error: OnError = OnError.fail,
    type_predicate: str | None = None,
) -> Loaded:
    """Load a graph named on the command line; skipped lines are reported beside the answer."""
    from loginfer.kg.catalogue import open_graph
    from loginfer.kg.load import ReadOptions

    options = ReadOptions(
        format=format, on_error=on_error.value, columns=columns, type_predicate=type_predicate
    )
    confirm = None
    if on_terminal(sys.stdin) and on_terminal(sys.stderr):

        def confirm(question: str) -> bool:
            return typer.confirm(question, default=False, err=True)

    with progress_bar() as progress:
        loaded = open_graph(name, options, progress=progress, confirm=confirm)
    if loaded.report.skipped:
        note(f"skipped {counted(loaded.report.skipped, 'bad line')}, e.g.")
        for example in loaded.report.examples:
            note(f"  {example}")
    return loaded


def resolve_relation(graph: KnowledgeGraph, name: str) -> int:
    """Find a relation by its name or, where that is unambiguous, by its last part."""
    found = graph.relations.get(name)
    if found is None:
        found = _by_last_part(graph.relations, name)
    return graph.relation_id(name) if found is None else found


def resolve_entity(graph: KnowledgeGraph, name: str) -> int:
    """Find a constant or type by its name or, where that is unambiguous, by its last part."""
    found = graph.entities.get(name)
    if found is None and len(graph.entities) <= 1_000_000:
        found = _by_last_part(graph.entities, name)
    return graph.entity_id(name) if found is None else found


def _by_last_part(names: Any, wanted: str) -> int | None:
    matches = [i for i, name in enumerate(names) if _last_part(name) == wanted]
    if len(matches) > 1:
        full = ", ".join(f"`{names[i]}`" for i in matches[:3])
        more = f" and {len(matches) - 3} more" if len(matches) > 3 else ""
        raise InputError(f"`{wanted}` may be any of {full}{more}", hint="give the whole name")
    return matches[0] if matches else None


def _last_part(name: str) -> str:
    return name[max(name.rfind("/"), name.rfind("#")) + 1 :]


def folder_of(path: Path) -> str:
    """Say where a file is, the home folder abbreviated."""
    with contextlib.suppress(ValueError, RuntimeError):
        return "~/" + str(path.relative_to(Path.home()))
    return str(path)
