"""The formats of exports by name; a format's module is imported when it is used."""

from __future__ import annotations

from importlib import import_module

from loginfer.benchmark.exporting.interface import ExportFormat
from loginfer.errors import UnknownNameError

__all__ = ["FORMATS", "format_named"]

# Name and module of each format, and what it is in a few words.
FORMATS = {
    "pykeen": "PyKEEN: lines of names, with the ids as JSON",
    "libkge": "LibKGE: dataset.yaml and .del files of ids",
    "openke": "OpenKE: entity2id.txt, train2id.txt, …, type_constrain.txt",
    "rotate": "RotatE's code and its descendants: entities.dict, lines of names",
    "rdf": "RDF: N-Triples, one file for each set",
    "parquet": "Parquet: one file for each set, with labels, rules and provenance",
    "huggingface": "Hugging Face `datasets`: Parquet and a README with configs",
    "anyburl": "AnyBURL: lines of names and its configuration files",
}


def format_named(name: str) -> ExportFormat:
    """Return a format.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    known = name.strip().casefold()
    if known not in FORMATS:
        raise UnknownNameError("format of exports", name, FORMATS)
    found: ExportFormat = import_module(f"loginfer.benchmark.exporting.{known}").FORMAT
    return found
