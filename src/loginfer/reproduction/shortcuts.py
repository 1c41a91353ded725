"""What shortcuts reach on the benchmarks of the table `evidence`: one small file for each, made once."""

from __future__ import annotations

import hashlib

from loginfer.reproduction.folder import Folder, stable_json
from loginfer.reproduction.parts import EVIDENCE, benchmarks_of

__all__ = ["write_shortcuts"]


def write_shortcuts(folder: Folder) -> None:
    """Measure the shortcuts on each benchmark that is there; what is known of the same benchmark is kept."""
    request = folder.request()
    if EVIDENCE not in request.tables:
        return
    about = set(benchmarks_of(EVIDENCE))
    for benchmark in request.benchmarks:
        manifest = folder.suite / benchmark / "manifest.json"
        if benchmark in about and manifest.exists():
            # The manifest holds the sums of all files.
            digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
            if _known_sum(folder, benchmark) != digest:
                _measure(folder, benchmark, digest)


def _known_sum(folder: Folder, benchmark: str) -> str | None:
    path = folder.shortcuts(benchmark)
    found = folder.json(path).get("manifest_sha256") if path.exists() else None
    return None if found is None else str(found)


def _measure(folder: Folder, benchmark: str, digest: str) -> None:
    from loginfer.benchmark import load_benchmark
    from loginfer.benchmark.shortcut_combined import balanced_accuracies
    from loginfer.systems.view import choose_method

    found = load_benchmark(folder.suite / benchmark, verify=False)
    method = choose_method(found, None)
    reached = {} if method is None else balanced_accuracies(found, method)
    told = {
        "format": "loginfer-shortcuts",
        "format_version": 1,
        "benchmark": benchmark,
        "negatives": method,
        "manifest_sha256": digest,
        "test": {"positives": len(found.positives.test),
                 "negatives": 0 if method is None else len(found.negatives[method].splits.test)},
        "balanced_accuracy": reached,
    }  # fmt: skip
    folder.write(folder.shortcuts(benchmark), stable_json(told))
