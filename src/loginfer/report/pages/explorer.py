"""The explorer: every test triple with what every system says about it, and why it is true or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loginfer.report.explorer_data import explorer_files, slug_of
from loginfer.report.figures import benchmark_labels
from loginfer.report.values import DataFile, Page

if TYPE_CHECKING:
    from loginfer.report.material import Material

__all__ = ["pages"]


def pages(material: Material) -> Iterator[Page | DataFile]:
    """Yield the files of each benchmark and the page that shows them; nothing if no triples are wanted."""
    if material.options.explorer <= 0:
        return
    names = material.collection.benchmark_names
    labels = benchmark_labels(names)
    for name in names:
        material.tell(f"test triples of {name}")
        yield from explorer_files(material, name, labels[name])
    benchmarks = [(slug_of(material, name), labels[name]) for name in names]
    content = {"benchmarks": benchmarks}
    yield Page("explorer.html", "Explorer", "explorer.html", content, "explorer", ("explorer.js",))
