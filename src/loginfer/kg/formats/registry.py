"""The formats there are, and which one a file has.

A new format is one file in this folder with a reader and a writer, and a line here.
"""

from __future__ import annotations

from loginfer.errors import InputError, UnknownNameError
from loginfer.kg.formats.interface import Format
from loginfer.kg.formats.ntriples import NTRIPLES
from loginfer.kg.formats.openke import OPENKE
from loginfer.kg.formats.parquet import PARQUET
from loginfer.kg.formats.source import Source, split_compression
from loginfer.kg.formats.tsv import TSV
from loginfer.kg.formats.turtle import TURTLE

__all__ = ["FORMATS", "format_by_ending", "format_by_name", "sniff"]

# Where endings overlap, the longer one comes first.
FORMATS = (OPENKE, TSV, NTRIPLES, TURTLE, PARQUET)

OTHER_RDF = (".nq", ".trig", ".rdf", ".owl", ".xml", ".jsonld", ".n3")


def format_by_name(name: str) -> Format:
    """Return a format by its name; the error lists the nearest ones."""
    for known in FORMATS:
        if known.name == name.lower():
            return known
    names = [known.name for known in FORMATS]
    error = UnknownNameError("format", name, names)
    error.hint = error.hint or "known are " + ", ".join(names)
    raise error


def format_by_ending(name: str) -> Format | None:
    """Return the format that a file's name stands for, compressed or not."""
    plain = split_compression(name.lower())[0]
    for known in FORMATS:
        if plain.endswith(known.endings):
            return known
    return None


def sniff(source: Source) -> Format:
    """Guess the format of a file with an unknown ending by its first lines."""
    if source.file_name.endswith(OTHER_RDF):
        raise InputError(
            f"`{source.name}` is RDF in a format that is not read", hint="convert it to N-Triples (.nt)"
        )
    if source.content is None and not source.path.is_file():
        raise InputError(f"`{source.name}` is a pipe, read only once", hint="give its format (--format)")
    with source.open() as (stream, _):
        head = stream.read(4096)
    if head.startswith(b"PAR1"):
        return PARQUET
    text = head.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    for line in text.splitlines():
        words = line.split("#", 1)[0].strip() if line.lstrip().startswith("#") else line.strip()
        if not words:
            continue
        if words.lower().startswith(("@prefix", "@base", "prefix ", "base ")):
            return TURTLE
        if words.startswith(("<", "_:")) and words.endswith("."):
            return NTRIPLES
        if line.count("\t") == 2:
            return TSV
        break
    raise InputError(
        f"cannot tell the format of `{source.name}`",
        hint="give it (--format), or a name that ends in "
        + ", ".join(ending for known in FORMATS for ending in known.endings),
    )
