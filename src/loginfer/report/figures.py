"""The figures that people choose from in the menus: metrics of classification, metrics of ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loginfer.evaluation.values import PROTOCOLS
from loginfer.report.collection import Cell, Collection
from loginfer.report.paper import paper_value

__all__ = [
    "CLASSIFICATION",
    "RANKING_METRICS",
    "Figure",
    "benchmark_labels",
    "figures_of",
    "paper_figure",
    "protocols_of",
    "rounded",
    "share_text",
]

RANKING_METRICS = {
    "c_mrr": "C-MRR",
    "r_mrr": "R-MRR",
    "c_hits@1": "C-Hits@1",
    "c_hits@10": "C-Hits@10",
    "r_hits@1": "R-Hits@1",
    "r_hits@10": "R-Hits@10",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a cell.

    Parameters
    ----------
    metric
        Its name in `metrics.json`.
    title
        What people read.
    protocol
        For a figure of the ranking, whom test triples are ranked against.
    """

    metric: str
    title: str
    protocol: str | None = None

    @property
    def key(self) -> str:
        """A word for rows and menus."""
        return self.metric if self.protocol is None else f"{self.metric} {self.protocol}"


CLASSIFICATION = (
    Figure("balanced_accuracy", "balanced accuracy"),
    Figure("roc_auc", "ROC AUC"),
    Figure("accuracy", "accuracy"),
    Figure("f1", "F1"),
    Figure("precision", "precision"),
    Figure("recall", "recall"),
    Figure("average_precision", "average precision"),
)


def protocols_of(cells: Sequence[Cell]) -> list[str]:
    """Return the protocols that some run was ranked under; the filtered one, which papers use, first."""
    there = {protocol for cell in cells for known in cell.metrics for protocol in known["ranking"]}
    order = sorted(PROTOCOLS, key=lambda protocol: protocol != "filtered")
    return [protocol for protocol in order if protocol in there]


def figures_of(collection: Collection) -> list[Figure]:
    """Return every figure that some cell has, in the order of the menus."""
    ranking = [
        Figure(metric, f"{title}, {protocol}", protocol)
        for protocol in protocols_of(collection.cells)
        for metric, title in RANKING_METRICS.items()
    ]
    wanted = [*CLASSIFICATION, *ranking]
    return [f for f in wanted if any(c.values(f.metric, f.protocol) for c in collection.cells)]


def paper_figure(cell: Cell, figure: Figure) -> float | None:
    """Return the paper's value for a figure of a cell; its MRR is held against the filtered protocol."""
    if figure.protocol not in (None, "filtered"):
        return None
    return paper_value(cell.name, cell.first.benchmark, figure.metric)


def benchmark_labels(names: Sequence[str]) -> dict[str, str]:
    """Return short names of benchmarks, without the suite's prefix where all have it."""
    from loginfer.report.names import common_prefix

    prefix = common_prefix(names)
    return {name: name.removeprefix(prefix) for name in names}


def rounded(value: float | None) -> float | None:
    """Return a fraction with the digits that matter, which keeps pages small."""
    return None if value is None else round(value, 5)


def share_text(value: float | None, *, sign: bool = False) -> str:
    """Return a fraction in percent with one digit."""
    if value is None:
        return ""
    shown = f"{100 * value:{'+' if sign else ''}.1f}"
    return shown.replace("-", "−") if shown not in ("-0.0", "+0.0") else "0.0"
