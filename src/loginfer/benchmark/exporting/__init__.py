"""Benchmarks in the formats of other programs, and the way back.

`export_benchmark` writes a folder, `read_export` verifies it and gives every set of triples by name. One file
a format; `registry` knows them all.
"""

from __future__ import annotations

from loginfer.benchmark.exporting.interface import Exported, NamedTriple
from loginfer.benchmark.exporting.reading import read_export
from loginfer.benchmark.exporting.registry import FORMATS
from loginfer.benchmark.exporting.writing import export_benchmark

__all__ = ["FORMATS", "Exported", "NamedTriple", "export_benchmark", "read_export"]
