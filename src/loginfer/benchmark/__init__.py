"""The three steps of section 3, the folder a benchmark lives in, its audit, and the suite."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from loginfer.benchmark.recipe import METHODS, PROTOCOLS, Recipe, read_recipe, write_recipe
from loginfer.benchmark.values import (
    SPLITS,
    Benchmark,
    BenchmarkRule,
    NegativeSet,
    Origins,
    Provenance,
    Splits,
)

if TYPE_CHECKING:
    from loginfer.benchmark.auditing import Audit, audit
    from loginfer.benchmark.explain import explain_triple
    from loginfer.benchmark.exporting import Exported, export_benchmark, read_export
    from loginfer.benchmark.folder import load_benchmark, write_benchmark
    from loginfer.benchmark.negatives import sample_negatives
    from loginfer.benchmark.noise import Noise
    from loginfer.benchmark.pipeline import Foundation, build, foundation
    from loginfer.benchmark.positives import distribute
    from loginfer.benchmark.rules import select_rules

__all__ = [
    "METHODS",
    "PROTOCOLS",
    "SPLITS",
    "Audit",
    "Benchmark",
    "BenchmarkRule",
    "Exported",
    "Foundation",
    "NegativeSet",
    "Noise",
    "Origins",
    "Provenance",
    "Recipe",
    "Splits",
    "audit",
    "build",
    "distribute",
    "explain_triple",
    "export_benchmark",
    "foundation",
    "load_benchmark",
    "read_export",
    "read_recipe",
    "sample_negatives",
    "select_rules",
    "write_benchmark",
    "write_recipe",
]

_HOMES = {
    "Audit": "auditing",
    "Exported": "exporting",
    "Foundation": "pipeline",
    "Noise": "noise",
    "audit": "auditing",
    "build": "pipeline",
    "distribute": "positives",
    "explain_triple": "explain",
    "export_benchmark": "exporting",
    "foundation": "pipeline",
    "load_benchmark": "folder",
    "read_export": "exporting",
    "sample_negatives": "negatives",
    "select_rules": "rules",
    "write_benchmark": "folder",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
