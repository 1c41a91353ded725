"""The gate of `build`, `suite` and `audit`: shortcuts must not do better than a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import note, print_json
from loginfer.errors import InputError

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.benchmark.shortcut_gate import Exceeded
    from loginfer.engine import Progress

__all__ = [
    "MaxShortcutOption",
    "StrictOption",
    "check_gate",
    "gate_answer",
    "shortcuts_above",
    "stop_at_gate",
]

MaxShortcutOption = Annotated[
    float | None,
    typer.Option(
        "--max-shortcut",
        help="Warn of shortcuts with a larger accuracy on test: a share such as 0.6, above 0.5.",
        show_default=False,
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="With --max-shortcut: fail instead (exit code 1).")
]


def check_gate(limit: float | None, strict: bool) -> None:
    """Complain now, before the work, about a limit that makes no sense, or strictness about nothing."""
    from loginfer.benchmark.shortcut_gate import check_limit

    if limit is not None:
        check_limit(limit, where="--max-shortcut")
    elif strict:
        raise InputError("--strict is about shortcuts", hint="add --max-shortcut, such as 0.6")


def shortcuts_above(
    benchmark: Benchmark, limit: float | None, progress: Progress | None = None
) -> list[Exceeded]:
    """Return the shortcuts above the limit; none without a limit."""
    from loginfer.benchmark.shortcut_gate import gate

    if limit is None:
        return []
    if progress:
        progress("measuring shortcuts", 0, None)
    return gate(benchmark, limit)


def stop_at_gate(
    above: Sequence[Exceeded], limit: float | None, json: bool, match: Sequence[str] = ()
) -> None:
    """Say which shortcuts do too well, and end with exit code 1.

    Parameters
    ----------
    above
        The shortcuts.
    limit
        How well they may do.
    json
        Whether programs are to be told.
    match
        On which shortcuts near misses are matched already.
    """
    for exceeded in above:
        note(f"error: {exceeded.message}")
    hint = "`--negatives nm` draws near misses, which shortcuts hardly tell from conclusions"
    if all(exceeded.method == "nm" for exceeded in above):
        hint = "`--match popularity,adjacency` matches near misses to the conclusions"
        if match:
            hint = "choose other rules, another seed or a higher limit: near misses are matched already"
    note(f"nothing was written\n  hint: {hint}")
    if json:
        print_json({"path": None, **gate_answer(limit, above)})
    raise typer.Exit(1)


def gate_answer(limit: float | None, above: Sequence[Exceeded]) -> dict[str, Any]:
    """Return what programs are told; nothing without a limit."""
    if limit is None:
        return {}
    return {"max_shortcut": {"limit": limit, "exceeded": [known.as_dict() for known in above]}}
