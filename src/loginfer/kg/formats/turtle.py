"""RDF as a document: Turtle, TriG, RDF/XML and JSON-LD, parsed by pyoxigraph, which also writes Turtle."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from loginfer.errors import InputError
from loginfer.kg.formats import ntriples
from loginfer.kg.formats.base import Format, ReadOptions, Source, check_text, register_format
from loginfer.kg.formats.ntriples import name_of_term
from loginfer.kg.formats.tsv import HEAD
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph


BATCH = 2**14
_LABEL = re.compile(rb"_:([0-9a-f]{8,32})(?![\w.-])")


def read(
    sources: Sequence[Source],
    builder: GraphBuilder,
    options: ReadOptions,
    progress: Progress | None,
    form: str = "TURTLE",
) -> None:
    """Read documents. After an error the rest of a file has no certain meaning, so errors are never skipped."""
    for number, source in enumerate(sources):
        builder.begin(source.name)
        with source.open() as (stream, _):
            document = stream.read()
        check_text(document[:HEAD], source.name)
        document = document.removeprefix(b"\xef\xbb\xbf")
        statements = _statements(document, f"anon{number or ''}", form, builder)
        try:
            while batch := list(islice(statements, BATCH)):
                ntriples.scan_statements(batch, builder)
                if progress:
                    progress(f"reading {source.name}", builder.statements, None)
        except SyntaxError as error:
            where = source.name if error.lineno is None else f"{source.name}, line {error.lineno}"
            raise InputError(_reason(error), where=where, hint="mend the file: it has no lines to skip") from error
        except ValueError as error:
            raise InputError(str(error), where=source.name) from error


def _reason(error: SyntaxError) -> str:
    return re.sub(r" \(line \d+\)$", "", re.sub(r"^Parser error at (line \d+ )?", "", error.msg or str(error)))


def _statements(document: bytes, prefix: str, form: str, builder: GraphBuilder) -> Iterator[bytes]:
    """Yield statements as N-Triples; nodes without a label get one by the order of their appearance.

    The parser gives them random hexadecimal labels, and a graph must not change from reading to reading.
    """
    import pyoxigraph

    written = {label.decode() for label in _LABEL.findall(document)}
    while f"_:{prefix}".encode() in document:
        prefix += "x"
    labels: dict[str, str] = {}

    def text(term: object) -> str:
        if isinstance(term, pyoxigraph.BlankNode) and term.value not in written and _random(term.value):
            return labels.setdefault(term.value, f"_:{prefix}_{len(labels) + 1}")
        return str(term)

    for quad in pyoxigraph.parse(document, format=getattr(pyoxigraph.RdfFormat, form)):
        name_of_term(quad.object)  # refuses triples about triples
        builder.quads += not isinstance(quad.graph_name, pyoxigraph.DefaultGraph)
        yield f"{text(quad.subject)} {quad.predicate} {text(quad.object)} .\n".encode()


def _random(label: str) -> bool:
    return re.fullmatch("[0-9a-f]{8,32}", label) is not None


def write(graph: KnowledgeGraph, stream: BinaryIO) -> None:
    """Write a graph as Turtle, in the order of its N-Triples."""
    import pyoxigraph

    lines = io.BytesIO()
    ntriples.write(graph, lines)
    lines.seek(0)
    parsed = pyoxigraph.parse(lines, format=pyoxigraph.RdfFormat.N_TRIPLES)
    triples = (quad.triple for quad in parsed)
    pyoxigraph.serialize(triples, stream, format=pyoxigraph.RdfFormat.TURTLE)


_DECLARATIONS = ("@prefix", "@base", "prefix ", "base ")

FORMAT = register_format(
    Format(
        name="turtle",
        endings=(".ttl",),
        description="RDF as Turtle",
        builder=ntriples.rdf_builder,
        read=read,
        write=write,
        looks_like=lambda head, line: line.strip().lower().startswith(_DECLARATIONS),
        rank=3,
    )
)


def _begins_with(beginnings: tuple[str, ...], head: bytes, line: str) -> bool:
    return line.lstrip().startswith(beginnings)


for _name, _title, _form, _read, _endings, _beginnings in (
    ("nquads", "N-Quads", "N_QUADS", ntriples.read, (".nq",), ()),
    ("trig", "TriG", "TRIG", read, (".trig",), ()),
    ("rdfxml", "XML", "RDF_XML", read, (".rdf", ".owl", ".xml"), ("<?xml", "<rdf:")),
    ("jsonld", "JSON-LD", "JSON_LD", read, (".jsonld",), ("{", "[")),
):
    register_format(
        Format(
            _name, _endings, f"RDF as {_title}, only read; names of graphs are ignored", partial(_read, form=_form),
            builder=ntriples.rdf_builder, looks_like=partial(_begins_with, _beginnings), rank=5,
        )
    )  # fmt: skip
