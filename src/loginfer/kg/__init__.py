"""Graphs and formats: the knowledge graph as a value, and the doors it comes in and goes out by."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from loginfer.kg.graph import RDF_TYPE, TYPE_NAMES, KnowledgeGraph, Triples, sorted_unique
from loginfer.kg.vocabulary import Vocabulary

__all__ = [
    "RDF_TYPE",
    "TYPE_NAMES",
    "KnowledgeGraph",
    "Triples",
    "Vocabulary",
    "generate_lubm",
    "load_graph",
    "sorted_unique",
]


def load_graph(
    name_or_path: str | Path,
    *,
    format: str | None = None,
    on_error: Literal["fail", "skip"] = "fail",
    columns: str = "sro",
    type_predicate: str | None = None,
) -> KnowledgeGraph:
    """Load a graph of the catalogue by its name, or any file, folder or archive of triples.

    Parameters
    ----------
    name_or_path
        `fb15k-237`, `wn18rr`, `lubm`, or a path.
    format
        Name of the format; by default the file's ending decides.
    on_error
        Whether a bad line is an error or is skipped.
    columns
        Order of the columns of a TSV file: a permutation of s, r and o.
    type_predicate
        Name of the type predicate; recognised by default.
    """
    from loginfer.kg.catalogue import open_graph
    from loginfer.kg.formats.base import ReadOptions

    options = ReadOptions(format=format, on_error=on_error, columns=columns, type_predicate=type_predicate)
    return open_graph(name_or_path, options).graph


def generate_lubm(universities: int = 1, start: int = 0, seed: int = 0) -> KnowledgeGraph:
    """Generate LUBM(universities, seed), triple for triple what the UBA 1.7 generator makes.

    Parameters
    ----------
    universities
        How many universities.
    start
        Index of the first one.
    seed
        The generator's seed.
    """
    from loginfer.kg import lubm

    return lubm.generate_lubm(universities, start, seed)
