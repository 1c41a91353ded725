"""What a format of exports is, what it writes from, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from loginfer.benchmark.layout import Role
from loginfer.benchmark.values import Benchmark
from loginfer.kg import Triples

__all__ = ["EXPORT", "ExportFormat", "Exported", "Job", "NamedTriple", "Written"]

# The file that tells what an export holds; it is written last.
EXPORT = "export.json"

NamedTriple: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be written, and where.

    Parameters
    ----------
    benchmark
        The benchmark, with the negatives that were chosen.
    folder
        The folder to write to, under its temporary name.
    name
        What the folder will be called.
    notes
        What a user should know, whatever the format.
    """

    benchmark: Benchmark
    folder: Path
    name: str
    notes: Sequence[str] = ()

    def sets(self) -> Iterator[tuple[Role, Triples]]:
        """Yield every set of triples: positives, negatives by method, the context graph."""
        for split, triples in self.benchmark.positives.items():
            yield Role(split), triples
        for method, made in self.benchmark.negatives.items():
            for split, triples in made.splits.items():
                yield Role(split, method), triples
        if self.benchmark.context is not None:
            yield Role("test", context=True), self.benchmark.context.triples


@dataclass(frozen=True, slots=True)
class Written:
    """What a format has to say about what it wrote.

    Parameters
    ----------
    about
        What its reader must know, for `export.json`.
    notes
        What a user should know.
    """

    about: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format.

    Parameters
    ----------
    name
        What the command line calls it.
    file_of
        Returns the file in which a set of triples is written.
    write
        Writes everything but `export.json`.
    reader
        Given a folder and its `export.json`, returns what reads one file of triples.
    any_name
        Whether it holds every name, even one with a tab or a line end.
    empty_sets
        Whether a set without triples has a file; some libraries cannot read one.
    """

    name: str
    file_of: Callable[[Role], str]
    write: Callable[[Job], Written]
    reader: Callable[[Path, Mapping[str, Any]], Callable[[Path], list[NamedTriple]]]
    any_name: bool = False
    empty_sets: bool = True


@dataclass(frozen=True)
class Exported:
    """What an export holds, by name.

    Parameters
    ----------
    to
        The format.
    name
        The benchmark's name.
    positives
        The triples of train, valid and test, in the benchmark's order.
    negatives
        By method and split.
    context
        The context graph of an inductive benchmark; None if there is none.
    about
        The content of `export.json`.
    """

    to: str
    name: str
    positives: Mapping[str, list[NamedTriple]]
    negatives: Mapping[str, Mapping[str, list[NamedTriple]]]
    context: list[NamedTriple] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = " / ".join(f"{len(triples):,}" for triples in self.positives.values())
        methods = ", ".join(self.negatives) or "none"
        return f"Exported({self.name!r} to {self.to}, positives {sizes}, negatives {methods})"
