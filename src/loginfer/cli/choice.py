"""Options of `loginfer build` for the choice of rules and for conclusions of several steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from loginfer.errors import InputError

__all__ = [
    "DepthOption",
    "HeadOption",
    "IntervalOption",
    "MaxTriplesOption",
    "SelectByOption",
    "SelectOption",
    "depth_given",
    "depth_rows",
]

SelectOption = Annotated[
    str | None,
    typer.Option(
        "--select",
        help="Which rules of a pattern: support (default), those with the largest; random; or interval.",
        show_default=False,
    ),
]
SelectByOption = Annotated[
    str | None,
    typer.Option(
        "--select-by",
        help="What the interval is about: support (default), confidence or overlap.",
        show_default=False,
    ),
]
IntervalOption = Annotated[
    str | None,
    typer.Option("--interval", metavar="LOW:HIGH", help="For --select interval, such as 0.1:0.5 or 100:."),
]
HeadOption = Annotated[
    str | None,
    typer.Option(
        "--head",
        help="Heads that the body leaves open: drawn (default), or best, with the largest confidence.",
        show_default=False,
    ),
]
DepthOption = Annotated[
    str | None,
    typer.Option(
        "--depth",
        metavar="N",
        help="Conclusions follow in up to N steps (or 1..N); 1 by default.",
        show_default=False,
    ),
]
MaxTriplesOption = Annotated[
    int | None,
    typer.Option(
        "--max-triples",
        help="With --depth: give up when more triples follow; 20,000,000 by default.",
        show_default=False,
    ),
]


def depth_given(text: str | None) -> int | None:
    """Return the depth that a text such as `3` or `1..3` asks for."""
    if text is None:
        return None
    first, dots, last = text.partition("..")
    hint = "write --depth 3 or --depth 1..3"
    try:
        least, most = (1, int(first)) if not dots else (int(first), int(last))
    except ValueError as error:
        raise InputError(f"`{text}` is no depth", where="--depth", hint=hint) from error
    if least != 1:
        raise InputError(f"the depths `{text}` do not begin with 1", where="--depth", hint=hint)
    return most


def depth_rows(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield for each depth how many conclusions each split has; nothing for a benchmark of one step."""
    for depth, sizes in manifest.get("depths", {}).items():
        yield f"    at depth {depth}", sizes
