"""What the systems reach on standard splits, beside what papers publish, and what each part of the training is worth.

    python -m perf.standard_splits --only wn18rr
    python -m perf.standard_splits --tables

The first command makes the runs that are missing among the kept results, each in a process of its own with one
thread. `published` are all systems with a published figure, with the settings that are shipped; `ablation` changes
one setting at a time; `released` are all systems of the paper on the folders that its authors released. The second
command prints the tables of the pages `standard-splits` and `results`.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loginfer.report.paper import SYSTEMS as PAPER
from loginfer.report.paper import paper_value
from perf.child import cpu_seconds
from perf.quality import ALLOWED as BELOW
from perf.quality import FOR_MINERS, MINERS, TITLES, VECTORS
from perf.rows import Rows, find_row, main_of_rows

RESULTS = Path(__file__).parent / "results" / "standard-splits.json"
GRAPHS = {"fb15k-237": "FB15k-237", "wn18rr": "WN18RR"}
SYSTEMS = {
    "transe": "TransE",
    "rotate": "RotatE",
    "complex": "ComplEx",
    "distmult": "DistMult",
    "boxe": "BoxE",
    "r-gcn": "R-GCN",
    "anyburl": "AnyBURL",
}
RELEASED = ("LogInfer-WN-sym-pa", "LogInfer-WN-hier-pa", "LogInfer-WN-trian-qg")
# How far below a published figure ours may be, and how many CPU seconds it may take.
ALLOWED, SECONDS = 0.01, 1200

# What the ablation starts from: the defaults with this; and what it changes, one row each.
STARTS: dict[str, dict[str, Any]] = {
    "complex": {
        "epochs": 10,
        "loss": "softmax",
        "negatives": 1024,
        "optimiser": "adagrad",
        "learning_rate": 0.1,
        "regularisation": 0.05,
    },
    "rotate": {"epochs": 10},
}
PRODUCTS: tuple[dict[str, Any], ...] = (
    {},
    {"loss": "softplus"},
    {"loss": "1vsall"},
    {"reciprocal": True},
    {"optimiser": "adam", "learning_rate": 0.02},
    {"regularisation": 0.0},
    {"regularisation": 0.1},
    {"dropout": 0.2},
    {"negatives": 256},
    {"negatives": 4096},
    {"dimension": 50},
    {"dimension": 200},
)
DISTANCES: tuple[dict[str, Any], ...] = (
    {},
    {"loss": "softmax"},
    {"adversarial": 0.0},
    {"optimiser": "adagrad", "learning_rate": 0.1},
    {"learning_rate": 0.001},
    {"margin": 12.0},
    {"dropout": 0.2},
    {"negatives": 64},
    {"negatives": 1024},
    {"dimension": 50},
    {"dimension": 200},
)
ABLATIONS = {"complex": PRODUCTS, "rotate": DISTANCES}


def wanted() -> Iterator[tuple[str, dict[str, Any]]]:
    """Say which runs there are: the section of the results, and what identifies the run."""
    for graph in GRAPHS:
        for system, changes in ABLATIONS.items():
            for change in changes:
                yield "ablation", {"graph": graph, "system": system, "settings": change}
    for graph in GRAPHS:
        for system in SYSTEMS:
            if "c_mrr" in published(graph, system):
                yield "published", {"graph": graph, "system": system, "settings": None}
    for graph in RELEASED:
        for system in (*VECTORS, *MINERS):
            yield "released", {"graph": graph, "system": system, "settings": None}


def published(graph: str, system: str) -> dict[str, Any]:
    """Return the published figures of a system."""
    from loginfer.files import shipped

    found: dict[str, Any] = shipped("systems/published.toml")["figures"][graph].get(system, {})
    return found


def run(graph: str, system: str, settings: dict[str, Any] | None) -> dict[str, Any]:
    """Train and rank once; with given settings from the defaults on, without any as shipped."""
    import loginfer

    with TemporaryDirectory() as folder:
        if graph in RELEASED:
            with tarfile.open(Path(os.environ["LOGINFER_DATA"]) / "released" / f"{graph}.tar.gz") as archive:
                archive.extractall(folder, filter="data")
        made = loginfer.evaluate(
            str(Path(folder) / graph) if graph in RELEASED else graph,
            system,
            settings={} if settings is None else {**STARTS[system], **settings},
            tuned=settings is None,
            ranking=("filtered",),
            diagnosis=False,
        ).as_dict()
    figures = made["metrics"] | made["ranking"]["filtered"]
    names = (*TITLES, "c_hits@1", "c_hits@3", "c_hits@10")
    row = {name: round(figures[name], 4) for name in names if figures.get(name) is not None}
    return {**row, "cpu_seconds": round(cpu_seconds(), 1), "used": made["settings"]}


# -- tables ----------------------------------------------------------------------------------------


def tables(results: Rows) -> str:
    """Return all tables in Markdown."""
    released = (_released(results.get("released", []), metric) for metric in TITLES)
    return "\n\n".join([_published(results.get("published", [])), *_ablations(results.get("ablation", [])), *released])


def _published(rows: list[dict[str, Any]]) -> str:
    """Ours and the published figure, Hits@10, CPU seconds; bold where ours is further below than allowed."""
    lines = ["| graph | system | MRR | published | | Hits@10 | CPU s |", "|---|---|--:|--:|---|--:|--:|"]
    for graph, title in GRAPHS.items():
        found = {row["system"]: row for row in rows if row["graph"] == graph}
        for system in (system for system in SYSTEMS if system in found):
            row, theirs = found[system], published(graph, system)["c_mrr"]
            short = row["c_mrr"] < theirs - ALLOWED
            mark = "**" if short else ""
            verdict = "short" if short else "reached" if row["cpu_seconds"] <= SECONDS else "too slow"
            lines.append(
                f"| {title} | {SYSTEMS[system]} | {mark}{row['c_mrr']:.3f}{mark} | {theirs:.3f} | {verdict} "
                f"| {row['c_hits@10']:.3f} | {row['cpu_seconds']:.0f} |"
            )
    return "\n".join(lines)


def _ablations(rows: list[dict[str, Any]]) -> Iterator[str]:
    """One table a system: a row for each change, with MRR and CPU seconds on each graph."""
    for system, changes in ABLATIONS.items():
        lines = [
            f"| {SYSTEMS[system]} | " + " | ".join(f"{title}: MRR | CPU s" for title in GRAPHS.values()) + " |",
            "|---|" + "--:|--:|" * len(GRAPHS),
        ]
        for change in changes:
            cells = []
            for graph in GRAPHS:
                key = {"graph": graph, "system": system, "settings": change}
                row = find_row(rows, key)
                cells += ["", ""] if row is None else [f"{row['c_mrr']:.3f}", f"{row['cpu_seconds']:.0f}"]
            words = ", ".join(f"`{name}={value}`" for name, value in change.items()) or "*none*"
            lines.append(f"| {words} | " + " | ".join(cells) + " |")
        yield "\n".join(lines)


def _released(rows: list[dict[str, Any]], metric: str) -> str:
    """One row a system: ours on each folder, and the paper's in brackets; bold where ours falls short."""
    graphs = [graph for graph in RELEASED if any(row["graph"] == graph for row in rows)]
    lines = [f"| {TITLES[metric]} (paper) | " + " | ".join(graphs) + " |", "|---" * (len(graphs) + 1) + "|"]
    for system in dict.fromkeys(row["system"] for row in rows):
        below = (FOR_MINERS if system in MINERS else BELOW)[metric]
        cells = []
        for graph in graphs:
            ours = next((row.get(metric) for row in rows if (row["system"], row["graph"]) == (system, graph)), None)
            theirs = paper_value(system, graph, metric)
            cell = "" if ours is None else f"{100 * ours:.1f}"
            if ours is not None and theirs is not None:
                mark = "**" if round(100 * (theirs - ours), 2) > below else ""
                cell = f"{mark}{cell} ({100 * theirs:.1f}){mark}"
            cells.append(cell)
        lines.append(f"| {PAPER.get(system, f'`{system}`')} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main_of_rows("perf.standard_splits", __doc__, RESULTS, wanted, run, tables)
