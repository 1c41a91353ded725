"""RDF: N-Triples, a file for each set, as a set of statements says nothing about which set it is.

| name in the benchmark                     | term                                                  |
|-------------------------------------------|-------------------------------------------------------|
| an absolute IRI, `http://x.org/a`         | `<http://x.org/a>`                                    |
| the type predicate, whatever it is called | `<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>`   |
| anything else, `/m/027rn`, `_:b`, `"a"`   | `<urn:loginfer:/m/027rn>`, percent-encoded            |

Blank nodes and literals become IRIs, too: a blank node of one file would be another one in the next, and some
readers change how literals are written. A name that begins with `urn:loginfer:` is encoded, so what was
written is read back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from loginfer.benchmark.export.base import ExportFormat, Job, NamedTriple, Written, file_with, usage
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import RDF_TYPE
from loginfer.kg.formats.ntriples import PREFIX, decoded, texts_of_names

_SPACE = re.compile(r"\s")


def write(job: Job) -> Written:
    """Write N-Triples."""
    from loginfer.kg.formats.tsv import write_lines

    graph = job.benchmark.graph
    entities = _terms(list(graph.entities))
    relations = _terms(list(graph.relations))
    for i, name in enumerate(graph.relations):
        if i == graph.type_relation:
            relations[i] = f"<{RDF_TYPE}>".encode()
        elif name == RDF_TYPE:
            relations[i] = _encoded(name)
    for role, triples in job.sets():
        with (job.folder / FORMAT.file_of(role)).open("wb") as stream:
            write_lines(stream, triples, (entities, relations, entities), b" ", b" .\n")
    return Written(usage=usage("rdf"))


def _terms(names: Sequence[str]) -> list[bytes]:
    """Return the IRI of each name; as relations, names are never blank nodes or literals."""
    # RDF has IRIs with rare kinds of white space, at which some parsers stop.
    return [
        _encoded(name) if _SPACE.search(name) else text.encode()
        for name, text in zip(names, texts_of_names(names, "r"), strict=True)
    ]


def _encoded(name: str) -> bytes:
    return f"<{PREFIX}{quote(name, safe='/:@')}>".encode()


def reader(folder: Path, about: Mapping[str, Any]) -> Callable[[Path], list[NamedTriple]]:
    """Return what reads one file of statements."""
    import pyoxigraph

    type_predicate = about.get("type_predicate") or RDF_TYPE

    def name_of(term: object, path: Path) -> str:
        if not isinstance(term, pyoxigraph.NamedNode):
            raise InputError(f"`{term}` is no IRI", where=str(path))
        return decoded(term.value)

    def read(path: Path) -> list[NamedTriple]:
        with reading(path):
            content = path.read_bytes()
        triples: list[NamedTriple] = []
        try:
            for quad in pyoxigraph.parse(content, format=pyoxigraph.RdfFormat.N_TRIPLES):
                is_type = quad.predicate.value == RDF_TYPE
                relation = type_predicate if is_type else name_of(quad.predicate, path)
                triples.append((name_of(quad.subject, path), relation, name_of(quad.object, path)))
        except (SyntaxError, ValueError) as error:
            raise InputError(f"no N-Triples: {error}", where=str(path)) from error
        return triples

    return read


FORMAT = ExportFormat("rdf", write, reader, file_with(".nt"), any_name=True)
