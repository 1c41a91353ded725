"""The README of an export: what its files are, and how they are used."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loginfer.benchmark.card import METHOD_NAMES, source_entry
from loginfer.benchmark.exporting.interface import EXPORT, ExportFormat, Job
from loginfer.benchmark.exporting.text_files import write_text
from loginfer.benchmark.layout import CARD, Role
from loginfer.benchmark.values import Benchmark

__all__ = ["about_role", "figures", "licence", "notes", "one_line", "title", "write_readme"]

# What Markdown would take for an element, a link, code or stress.
_MARKS = re.compile(r"[\\`*<\[]|&(?=#?\w+;)")


def write_readme(
    job: Job,
    known: ExportFormat,
    others: Sequence[tuple[str, str]],
    usage: str,
    told: Sequence[str] = (),
) -> None:
    """Write the README of an export.

    Parameters
    ----------
    job
        What is written.
    known
        The format.
    others
        Files besides those of triples, each with what it holds.
    usage
        Markdown: how to use the folder.
    told
        What a user of this format should know.
    """
    sets = [(known.file_of(r), about_role(r)) for r, t in job.sets() if known.empty_sets or len(t)]
    files = [*sets, *others, (EXPORT, "what was exported, counts, and size and sha256 of every file")]
    lines = [
        title(job.benchmark),
        "",
        f"A LogInfer benchmark, exported to the format `{known.name}`.",
        "",
        "| file | what it holds |",
        "|---|---|",
        *(f"| `{name}` | {what} |" for name, what in files),
        "",
        "## Use",
        "",
        usage,
        *notes([*job.notes, *told]),
        *figures(job.benchmark),
        "",
        *licence(job.benchmark),
    ]
    write_text(job.folder / CARD, "\n".join(lines) + "\n")


def about_role(role: Role) -> str:
    """Say what a file of triples holds."""
    if role.context:
        return "the context graph: what is known about the constants of test"
    if role.method is None:
        return f"P_{role.split}: positives"
    return f"N_{role.split}: negatives, {METHOD_NAMES.get(role.method, role.method)}"


def title(benchmark: Benchmark) -> str:
    """Return the benchmark's name as a heading, its characters as they are."""
    return "# " + _MARKS.sub(lambda mark: f"\\{mark[0]}", one_line(benchmark.name))


def notes(told: Sequence[str]) -> list[str]:
    """Return what a user should know, as a section; nothing where there is nothing to tell."""
    return ["## Notes", "", *(f"- {one_line(note)}" for note in told), ""] if told else []


def figures(benchmark: Benchmark) -> list[str]:
    """Return a table of the sizes of all sets."""
    rows = [("positives", benchmark.positives.sizes)]
    rows += [(f"negatives {method}", made.splits.sizes) for method, made in benchmark.negatives.items()]
    context = benchmark.context
    return [
        "## Figures",
        "",
        "| | train | valid | test |",
        "|---|---:|---:|---:|",
        *(f"| {what} | " + " | ".join(f"{n:,}" for n in sizes.values()) + " |" for what, sizes in rows),
        *([] if context is None else [f"| context graph | | | {len(context):,} |"]),
    ]


def licence(benchmark: Benchmark) -> list[str]:
    """Return what is known about the terms of the graph."""
    entry = source_entry(benchmark)
    if entry is None:
        graph = "" if benchmark.recipe is None else f" `{one_line(benchmark.recipe.kg)}`"
        return [
            "## Licence",
            "",
            f"The triples come from the graph{graph}, whose terms apply to them.",
        ]
    return [
        "## Licence",
        "",
        f"The triples come from {entry.name}. {entry.licence}",
        "",
        f"Please cite: {entry.citation}",
    ]


def one_line(text: str) -> str:
    """Return a text without line ends."""
    return " ".join(text.split())
