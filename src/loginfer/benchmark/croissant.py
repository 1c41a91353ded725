"""The Croissant description of a benchmark: JSON-LD that data set search engines and loaders understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loginfer.benchmark.card import source_entry
from loginfer.benchmark.layout import CONTEXT, NEGATIVES, NOISE, PROVENANCE, Role, file_of
from loginfer.benchmark.manifest import FORMAT_VERSION, FileSum
from loginfer.benchmark.tables import DEPTH_COLUMN, PROVENANCE_COLUMNS, negative_columns
from loginfer.benchmark.values import SPLITS, Benchmark

if TYPE_CHECKING:
    from loginfer.kg.catalogue import Entry

__all__ = ["described", "make_croissant", "table"]

# What the short names of a description stand for: the words of schema.org and of Croissant 1.0.
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_FORMATS = {".parquet": "application/x-parquet", ".txt": "text/plain", ".md": "text/markdown"}
_WHOLE_NUMBERS = ("rule", "kept", "depth", "label")


def make_croissant(benchmark: Benchmark, files: Mapping[str, FileSum]) -> dict[str, Any]:
    """Return the Croissant 1.0 description of a benchmark's folder.

    Parameters
    ----------
    benchmark
        The benchmark.
    files
        The files to describe; the manifest is none of them, as it holds the sum of the description.
    """
    return described(benchmark, files, _record_sets(benchmark, files))


def described(
    benchmark: Benchmark, files: Mapping[str, FileSum], record_sets: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the description of files of a benchmark.

    Parameters
    ----------
    benchmark
        The benchmark.
    files
        The files.
    record_sets
        What is in them, see `table`.
    """
    entry = source_entry(benchmark)
    about: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": benchmark.name,
        "description": _description(benchmark, entry),
        "version": f"{FORMAT_VERSION}.0.0",
    }
    if entry is not None:
        about["citeAs"] = entry.citation
    return {
        **about,
        "distribution": [_file(name, known) for name, known in sorted(files.items())],
        "recordSet": list(record_sets),
    }


def _description(benchmark: Benchmark, entry: Entry | None) -> str:
    text = "Positive and negative triples for knowledge-graph completion, split into train, valid and test."
    if (recipe := benchmark.recipe) is not None:
        text += f" Made from the graph {recipe.kg} and {len(benchmark.rules):,} rules;"
        text += f" protocol {recipe.protocol}, seed {recipe.seed}."
    # What is known about a graph's terms is a sentence; `license` would have to be the address of a licence.
    return text if entry is None else f"{text} On the terms of {entry.name}: {entry.licence}"


def _file(name: str, known: FileSum) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{known.bytes} B",
        "encodingFormat": _FORMATS["." + name.rsplit(".", 1)[-1]],
        "sha256": known.sha256,
    }


def _record_sets(benchmark: Benchmark, files: Mapping[str, FileSum]) -> list[dict[str, Any]]:
    found = []
    for split in SPLITS:
        name = file_of(Role(split))
        # A set without records is none to the readers of Croissant.
        if files[name].bytes:
            found.append(_lines(split, name, f"The positives of {split}."))
    if CONTEXT in files and files[CONTEXT].bytes:
        found.append(_lines("context", CONTEXT, "The context graph: what is known about test's constants."))
    if PROVENANCE in files:
        about = "Where the conclusions came from: one record for each conclusion and rule that derives it."
        deep = benchmark.provenance is not None and benchmark.provenance.deep
        columns = PROVENANCE_COLUMNS | DEPTH_COLUMN if deep else PROVENANCE_COLUMNS
        found.append(table("provenance", PROVENANCE, about, columns))
    about = "All negatives, and where they came from."
    found.append(table("negatives", NEGATIVES, about, negative_columns(benchmark)))
    if NOISE in files:
        from loginfer.benchmark.noise_tables import NOISE_COLUMNS

        about = "What is wrong with the positives and negatives of train on purpose."
        found.append(table("noise", NOISE, about, NOISE_COLUMNS))
    return found


def _lines(split: str, file: str, about: str) -> dict[str, Any]:
    """Describe a file of triples: the columns of a line without a heading are found by expressions."""
    patterns = {
        "subject": r"^([^\t]*)\t",
        "relation": r"^[^\t]*\t([^\t]*)\t",
        "object": r"^[^\t]*\t[^\t]*\t([^\t]*)$",
    }
    fields = []
    for column, pattern in patterns.items():
        field = _field(split, column, f"The {column}.", "sc:Text")
        extract = {"extract": {"fileProperty": "lines"}, "transform": {"regex": pattern}}
        fields.append({**field, "source": {"fileObject": {"@id": file}, **extract}})
    return _record_set(split, about, fields)


def table(name: str, file: str, about: str, columns: Mapping[str, str]) -> dict[str, Any]:
    """Describe a Parquet file as a set of records.

    Parameters
    ----------
    name
        The set's name.
    file
        The file.
    about
        What it holds, in a sentence.
    columns
        What each column means.
    """
    fields = []
    for column, meaning in columns.items():
        field = _field(name, column, meaning, "sc:Integer" if column in _WHOLE_NUMBERS else "sc:Text")
        if column == "witness":
            field["repeated"] = True
        fields.append({**field, "source": {"fileObject": {"@id": file}, "extract": {"column": column}}})
    return _record_set(name, about, fields)


def _record_set(name: str, about: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": about, "field": fields}


def _field(record_set: str, column: str, about: str, kind: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column}",
        "name": column,
        "description": about,
        "dataType": kind,
    }
