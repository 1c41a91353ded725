"""Tables of results for papers: benchmarks against systems, one metric each, beside the paper's figures."""

from __future__ import annotations

from loginfer.errors import UnknownNameError
from loginfer.report.collection import Cell, Collection
from loginfer.report.paper import METRICS, SYSTEMS, paper_value
from loginfer.report.table_formats import to_csv, to_latex, to_markdown
from loginfer.report.table_values import Entry, TableValue, best_in_bold, half_interval

__all__ = ["Entry", "TableValue", "metric_title", "result_table", "to_csv", "to_latex", "to_markdown"]

# The paper does not say how it ranked; its figures fit this protocol best.
PAPER_PROTOCOL = "filtered"


def result_table(collection: Collection, metric: str, protocol: str | None = None) -> TableValue:
    """Return one metric of all systems on all benchmarks.

    Shares are in percent. Several seeds give the mean and half the width of its interval; the paper's figure
    stands in brackets, where it has one. The best of each row is bold; the oracle, which knows the rules,
    does not compete.

    Parameters
    ----------
    collection
        The runs.
    metric
        Its name in `metrics.json`, such as `balanced_accuracy` or, with a protocol, `c_mrr`.
    protocol
        Of the ranking: `filtered`, `given` or `unfiltered`.

    Raises
    ------
    UnknownNameError
        If no run has such a metric.
    """
    _check(collection, metric, protocol)
    rows = []
    for benchmark in collection.benchmark_names:
        cells = [collection.cell(system, benchmark) for system in collection.systems]
        entries = [_entry(cell, metric, protocol) for cell in cells]
        competing = [cell is not None and cell.name != "oracle" for cell in cells]
        if _is_share(metric):  # of mean ranks the smallest would be the best
            entries = best_in_bold(entries, competing)
        rows.append((Entry(benchmark), *entries))
    unit = ", in percent" if _is_share(metric) else ""
    where = f", ranking {protocol}" if protocol else ""
    several = any(len(cell.runs) > 1 for cell in collection.cells)
    notes = ["± half the 95 % interval of the mean over seeds (Student's t)."] if several else []
    if any(entry.paper is not None for row in rows for entry in row):
        named = METRICS[metric]
        note = f"In brackets: the paper's {named}"
        if metric == "balanced_accuracy":
            note += ", which it computes on decisions, not on confidences"
        elif protocol is not None:
            note += ", whose protocol it does not state"
        notes.append(note + ".")
    names = tuple(SYSTEMS.get(name, name) for name in collection.systems)
    title = f"{metric_title(metric)}{where}{unit}"
    return TableValue(title, ("benchmark", *names), tuple(rows), tuple(notes))


def metric_title(metric: str) -> str:
    """Return the name of a metric in print: `C-MRR` for `c_mrr`, `Balanced accuracy`."""
    words = metric.split("_")
    if words[0] in ("c", "r") and len(words) > 1:
        rest = words[1]
        return f"{words[0].upper()}-{rest.capitalize() if rest.startswith('hits') else rest.upper()}"
    if metric in ("roc_auc", "f1"):
        return metric.replace("_", " ").upper()
    return " ".join(words).capitalize()


def _entry(cell: Cell | None, metric: str, protocol: str | None) -> Entry:
    if cell is None:
        return Entry()
    factor = 100.0 if _is_share(metric) else 1.0
    values = [factor * value for value in cell.values(metric, protocol)]
    paper = None
    if protocol in (None, PAPER_PROTOCOL):
        paper = paper_value(cell.name, cell.first.benchmark, metric)
    paper = None if paper is None else 100 * paper
    if not values:
        return Entry("–", paper=paper)
    return Entry(value=sum(values) / len(values), half=half_interval(values), paper=paper)


def _is_share(metric: str) -> bool:
    """Say whether a metric lies between 0 and 1; mean ranks do not."""
    return "mr" not in metric.split("_")


def _check(collection: Collection, metric: str, protocol: str | None) -> None:
    known: dict[str, None] = {}
    for cell in collection.cells:
        for figures in cell.metrics:
            if protocol is None:
                known |= dict.fromkeys(figures["metrics"])
            else:
                found = figures["ranking"].get(protocol, {})
                known |= {name: None for name, value in found.items() if not isinstance(value, str | dict)}
    if protocol is not None and not known:
        protocols = dict.fromkeys(p for cell in collection.cells for m in cell.metrics for p in m["ranking"])
        raise UnknownNameError("ranking protocol in these runs", protocol, protocols)
    if metric not in known:
        raise UnknownNameError("metric in these runs", metric, known)
