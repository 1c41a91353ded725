"""Benchmarks in the formats of other programs, and the way back.

`export_benchmark` writes a folder, `read_export` verifies it and gives every set of triples by name. One file a format;
`export.FORMATS` lists them.
"""

from __future__ import annotations

from loginfer.benchmark.export.base import Exported, NamedTriple
from loginfer.benchmark.export.export import FORMATS, export_benchmark, read_export

__all__ = ["FORMATS", "Exported", "NamedTriple", "export_benchmark", "read_export"]
