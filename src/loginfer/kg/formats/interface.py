"""What a format is, and what reading a graph takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from loginfer.kg.formats.source import Source
    from loginfer.kg.graph import KnowledgeGraph
    from loginfer.kg.scan.builder import GraphBuilder

__all__ = ["Format", "Loaded", "Progress", "ReadOptions", "ReadReport"]

# Called with what is being done, how much of it is done, and how much there is (None: unknown).
Progress = Callable[[str, int, "int | None"], None]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a graph.

    Parameters
    ----------
    format
        Name of the format; by default the file's ending decides, or what the file looks like.
    on_error
        What to do with a line that cannot be read: "fail", or "skip" and count it.
    columns
        Order of subject, relation and object in files with columns: a permutation of "sro".
    type_predicate
        Name of the type predicate; recognised by default, "" says that there is none.
    """

    format: str | None = None
    on_error: Literal["fail", "skip"] = "fail"
    columns: str = "sro"
    type_predicate: str | None = None


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What happened while a graph was read.

    Parameters
    ----------
    files
        What was read, in order.
    statements
        Statements (lines with a triple) that could be read.
    triples
        Distinct triples among them.
    skipped
        Bad lines that were left out.
    examples
        What was wrong with the first few of those.
    """

    files: tuple[str, ...]
    statements: int
    triples: int
    skipped: int = 0
    examples: tuple[str, ...] = field(default=())

    @property
    def duplicates(self) -> int:
        """Statements that repeated a triple."""
        return self.statements - self.triples


@dataclass(frozen=True, slots=True)
class Loaded:
    """A graph and how it was read."""

    graph: KnowledgeGraph
    report: ReadReport


def plain_builder(skip: bool) -> GraphBuilder:
    """Make a builder that takes names as they stand."""
    from loginfer.kg.scan.builder import GraphBuilder

    return GraphBuilder(skip=skip)


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    Parameters
    ----------
    name
        What the command line calls it.
    endings
        Endings of file names, with the dot; `.gz` and `.zst` may follow.
    description
        One line for people.
    read
        Reads files of one graph into a builder.
    write
        Writes a graph to a stream; None if the format is only read, or is a folder.
    write_folder
        Writes a graph to a new folder, for formats of several files.
    builder
        Makes the builder for a graph in this format; its argument says whether bad lines are skipped.
    """

    name: str
    endings: tuple[str, ...]
    description: str
    read: Callable[[Sequence[Source], GraphBuilder, ReadOptions, Progress | None], None]
    write: Callable[[KnowledgeGraph, BinaryIO], None] | None = None
    write_folder: Callable[[KnowledgeGraph, Path], None] | None = None
    builder: Callable[[bool], GraphBuilder] = plain_builder
