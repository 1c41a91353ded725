"""RDF as a document: Turtle, TriG, RDF/XML and JSON-LD, parsed by pyoxigraph, which also writes Turtle."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from loginfer.errors import InputError
from loginfer.kg.formats import ntriples
from loginfer.kg.formats.base import Format, ReadOptions, Source, check_text, register_format
from loginfer.kg.formats.ntriples import name_of_term
from loginfer.kg.formats.tsv import HEAD
from loginfer.progress import Progress, report_progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph


BATCH = 2**14
PIECE = 2**18
OVERLAP = 2**12  # a label may lie in two pieces
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
        if source.content is None and not source.path.is_file():  # a pipe, and it is read twice
            with source.open() as (_, raw):
                source = replace(source, content=raw.read())
        written, prefix = _labels(source, f"anon{number or ''}")
        try:
            with source.open() as (stream, _), io.BufferedReader(cast(Any, stream), PIECE) as document:
                check_text(document.peek(HEAD)[:HEAD], source.name)
                if document.peek(3).startswith(b"\xef\xbb\xbf"):
                    document.read(3)
                statements = _statements(document, written, prefix, form, builder)
                while batch := list(islice(statements, BATCH)):
                    ntriples.scan_statements(batch, builder)
                    report_progress(progress, f"reading {source.name}", builder.statements, None)
        except SyntaxError as error:
            where = source.name if error.lineno is None else f"{source.name}, line {error.lineno}"
            raise InputError(_reason(error), where=where, hint="mend the file: it has no lines to skip") from error
        except ValueError as error:
            raise InputError(str(error), where=source.name) from error


def _reason(error: SyntaxError) -> str:
    return re.sub(r" \(line \d+\)$", "", re.sub(r"^Parser error at (line \d+ )?", "", error.msg or str(error)))


def _labels(source: Source, prefix: str) -> tuple[set[str], str]:
    """Return the labels in a document that look like the parser's, and a beginning that none in it has."""
    own = re.compile(rb"_:%s(x*)" % prefix.encode())
    written: set[bytes] = set()
    most, text = -1, b""
    with source.open() as (stream, _):
        while piece := stream.read(PIECE):
            text = text[-OVERLAP:] + piece
            written.update(_LABEL.findall(text))
            most = max([most, *map(len, own.findall(text))])
    return {label.decode() for label in written}, prefix + "x" * (most + 1)


def _statements(document: Any, written: set[str], prefix: str, form: str, builder: GraphBuilder) -> Iterator[bytes]:
    """Yield statements as N-Triples; nodes without a label get one by the order of their appearance.

    The parser gives them random hexadecimal labels, and a graph must not change from reading to reading.
    """
    import pyoxigraph

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

FORMAT = Format(
    name="turtle",
    endings=(".ttl",),
    description="RDF as Turtle",
    builder=ntriples.rdf_builder,
    read=read,
    write=write,
    looks_like=lambda head, line: line.strip().lower().startswith(_DECLARATIONS),
    rank=3,
)
register_format(FORMAT)


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
