"""The data of the Lehigh University Benchmark, bit for bit as its generator (UBA 1.7) makes them.

A university is one stream of random numbers; its departments follow each other in that stream. So a
department is what a stream in a given state makes, and nothing else needs to be kept in memory:

    statements      every statement in the order of the original, repeated ones included
    generate_lubm   the graph
    write_lubm      a file of sorted, distinct N-Triples, the same bytes as writing the graph, but with one
                    department in memory at a time, for any number of universities

The only statements that repeat are (university, type, University): one follows each mention of a university.
The ontology's own two header statements are not part of the graph.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_path
from loginfer.kg.formats.interface import Progress
from loginfer.kg.formats.source import compressed, split_compression
from loginfer.kg.graph import RDF_TYPE, KnowledgeGraph
from loginfer.kg.java_random import JavaRandom
from loginfer.kg.lubm_department import Department, Statement, departments_of
from loginfer.kg.vocabulary import Vocabulary

__all__ = ["LubmCounts", "generate_lubm", "statements", "write_lubm"]

LIMIT = 2**31  # seeds and indices of universities are non-negative 32-bit integers in the original


@dataclass(frozen=True, slots=True)
class LubmCounts:
    """What was written.

    Parameters
    ----------
    universities, departments
        How many were generated.
    statements
        How many statements the original generator makes, repeated ones included.
    triples
        How many of them are distinct.
    """

    universities: int
    departments: int
    statements: int
    triples: int


def statements(universities: int = 1, start: int = 0, seed: int = 0) -> Iterator[Statement]:
    """Yield the statements of LUBM in the order of the original generator, repeated ones included.

    Parameters
    ----------
    universities
        How many universities, at least 1.
    start
        Index of the first one.
    seed
        0 … 2^31 - 1.

    Yields
    ------
    tuple
        Names of subject, predicate and object: IRIs as they are, literals in quotes as in N-Triples.
    """
    _check(universities, start, seed)
    indices = range(start, start + universities)
    return chain.from_iterable(chain.from_iterable(_departments(u, seed) for u in indices))


def generate_lubm(
    universities: int = 1, start: int = 0, seed: int = 0, progress: Progress | None = None
) -> KnowledgeGraph:
    """Make the graph LUBM(universities, seed).

    Parameters
    ----------
    universities, start, seed
        As for `statements`.
    progress
        Called with the number of universities done, and of all.
    """
    _check(universities, start, seed)
    entities: defaultdict[str, int] = defaultdict(count().__next__)
    relations: defaultdict[str, int] = defaultdict(count().__next__)
    subjects, predicates, objects = array("i"), array("i"), array("i")
    for done in range(universities):
        if progress:
            progress("universities", done, universities)
        for department in _departments(start + done, seed):
            s, r, o = zip(*department, strict=True)
            subjects.extend(map(entities.__getitem__, s))
            predicates.extend(map(relations.__getitem__, r))
            objects.extend(map(entities.__getitem__, o))
    entity_names, entity_ids = _vocabulary(entities)
    relation_names, relation_ids = _vocabulary(relations)
    triples = np.empty((len(subjects), 3), dtype=np.int32)
    triples[:, 0] = entity_ids[np.frombuffer(subjects, dtype=np.int32)]
    triples[:, 1] = relation_ids[np.frombuffer(predicates, dtype=np.int32)]
    triples[:, 2] = entity_ids[np.frombuffer(objects, dtype=np.int32)]
    if progress:
        progress("universities", universities, universities)
    return KnowledgeGraph(entity_names, relation_names, triples, type_predicate=RDF_TYPE)


def write_lubm(
    path: str | Path,
    universities: int = 1,
    start: int = 0,
    seed: int = 0,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> LubmCounts:
    """Write LUBM(universities, seed) as sorted, distinct N-Triples, one department in memory at a time.

    Parameters
    ----------
    path
        Where to write: a name that ends in `.nt`, `.nt.gz` or `.nt.zst`.
    universities, start, seed
        As for `statements`.
    force
        Replace an existing file.
    progress
        Called with the number of departments done, and of all.
    """
    _check(universities, start, seed)
    target = Path(path)
    if not split_compression(target.name)[0].endswith(".nt"):
        raise OutputError(
            f"cannot write LUBM department by department to `{target}`",
            hint="choose a name that ends in .nt, .nt.gz or .nt.zst",
        )
    with (
        atomic_path(target, force=force) as temporary,
        temporary.open("wb") as raw,
        compressed(raw, target.name) as stream,
    ):
        return _write_sorted(stream, universities, start, seed, progress)


def _write_sorted(
    stream: BinaryIO, universities: int, start: int, seed: int, progress: Progress | None
) -> LubmCounts:
    """Write the departments in the order of their names, the lines of each in order, then the universities.

    Every line about a department or its members begins with the department's IRI, and `Department…` comes
    before `University…`, so the file as a whole is sorted. A first pass notes in which state of the
    stream of random numbers each department begins.
    """
    beginnings = sorted(
        beginning for u in range(start, start + universities) for beginning in _beginnings(u, seed)
    )
    made = triples = 0
    about_universities: set[str] = set()
    for done, (_, state, university, index) in enumerate(beginnings):
        if progress:
            progress("departments", done, len(beginnings))
        department = Department(JavaRandom.at(state), university, index)
        lines = []
        for s, r, o in department.make():
            line = f"<{s}> <{r}> {o} .\n" if o[0] == '"' else f"<{s}> <{r}> <{o}> .\n"
            if s.startswith(department.iri):
                lines.append(line)
            else:
                about_universities.add(line)
        lines.sort()
        stream.write("".join(lines).encode())
        made += len(department.statements)
        triples += len(lines)
    stream.write("".join(sorted(about_universities)).encode())
    if progress:
        progress("departments", len(beginnings), len(beginnings))
    return LubmCounts(universities, len(beginnings), made, triples + len(about_universities))


def _beginnings(university: int, seed: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield the IRI, the state at its beginning, and the indices of each department."""
    random, number = departments_of(university, seed)
    for index in range(number):
        state = random.state
        department = Department(random, university, index)
        yield department.iri, state, university, index
        department.make()


def _departments(university: int, seed: int) -> Iterator[list[Statement]]:
    random, number = departments_of(university, seed)
    for index in range(number):
        yield Department(random, university, index).make()


def _vocabulary(names: Iterable[str]) -> tuple[Vocabulary, npt.NDArray[np.int32]]:
    """Return the vocabulary of distinct names, and the id in it of each name."""
    encoded = [name.encode() for name in names]
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    ids = np.empty(len(encoded), dtype=np.int32)
    ids[order] = np.arange(len(encoded), dtype=np.int32)
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(encoded[i]) for i in order], out=offsets[1:])
    data = b"".join([encoded[i] for i in order])
    return Vocabulary(np.frombuffer(data, dtype=np.uint8), offsets), ids


def _check(universities: int, start: int, seed: int) -> None:
    if universities < 1:
        raise InputError(f"LUBM cannot have {universities} universities", hint="give at least 1")
    if start < 0 or start + universities > LIMIT:
        raise InputError(
            f"LUBM cannot have universities {start} to {start + universities - 1}",
            hint="the indices of universities are 0 to 2147483647",
        )
    if not 0 <= seed < LIMIT:
        raise InputError(f"LUBM cannot have the seed {seed}", hint="seeds are 0 to 2147483647")
