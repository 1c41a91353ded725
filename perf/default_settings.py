"""The study behind the defaults of embeddings: what loss, weights and regularisation are worth on valid.

    python -m perf.default_settings --jobs 2
    python -m perf.default_settings --tables

Each point of the grid is trained on each benchmark, and judged as `loginfer tune` judges: by the accuracy on valid and
the filtered C-MRR of 300 valid triples. Test is not looked at. The grid is declared here, before it is run: it varies
what defaults decide, and leaves dimension and epochs alone, which only cost time.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from perf.rows import Rows, find_row, main_of_rows

RESULTS = Path(__file__).parent / "results" / "default-settings.json"

# A folder of the paper's authors, one benchmark of each graph under the protocol `paper`, and one with twins.
BENCHMARKS = {
    "released WN-trian-qg": ("LogInfer-WN-trian-qg", None),
    "FB-inver-pa": ("LogInfer-FB-inver-pa", "paper"),
    "LUBM-all-qg": ("LogInfer-LUBM-all-qg", "paper"),
    "WN-comp, twins": ("LogInfer-WN-comp-nmm", "sound"),
}
# In all points. Half the epochs of the defaults.
SHARED = {"epochs": 15, "negatives": 256}
LOSSES, WEIGHTS = ("softmax", "softplus"), (0.2, 1.0)
DISTANCES: list[dict[str, Any]] = [
    {"loss": loss, "explicit_weight": weight} for loss, weight in product(LOSSES, WEIGHTS)
]
# Products learn as others do, or as on standard splits.
OPTIMISERS: list[dict[str, Any]] = [
    {"optimiser": "adam", "learning_rate": 0.02, "regularisation": 0.01},
    {"optimiser": "adagrad", "learning_rate": 0.1, "regularisation": 0.05},
]
PRODUCTS = [{**point, **optimiser} for optimiser, point in product(OPTIMISERS, DISTANCES)]
GRIDS: dict[str, list[dict[str, Any]]] = {
    "transe": DISTANCES,
    "rotate": DISTANCES,
    "boxe": DISTANCES,
    "complex": PRODUCTS,
    "distmult": PRODUCTS,
}


def wanted() -> Iterator[tuple[str, dict[str, Any]]]:
    """Say which runs there are."""
    for system, points in GRIDS.items():
        for settings, benchmark in product(points, BENCHMARKS):
            yield "trials", {"system": system, "benchmark": benchmark, "settings": settings}


def run(system: str, benchmark: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Train once; return the figures on valid."""
    from loginfer.benchmark.construction.suite import build_suite, select
    from loginfer.tuning import trial_figures
    from perf.child import cpu_seconds

    name, protocol = BENCHMARKS[benchmark]
    with TemporaryDirectory() as folder:
        if protocol is None:
            with tarfile.open(Path(os.environ["LOGINFER_DATA"]) / "released" / f"{name}.tar.gz") as archive:
                archive.extractall(folder, filter="data")
        else:
            build_suite(folder, select([name]), settings={"protocol": protocol})
        begin = cpu_seconds()
        figures = trial_figures(system, Path(folder) / name, {**SHARED, **settings})
    return {
        **{name: round(value, 4) for name, value in figures.items()},
        "cpu_seconds": round(cpu_seconds() - begin, 1),
    }


def tables(results: Rows) -> str:
    """Return a row a point: accuracy and C-MRR on each benchmark, and what all is worth, the most of it in bold."""
    lines = [
        "| system | settings | " + " | ".join(BENCHMARKS) + " | worth | CPU s |",
        "|---|---|" + "--:|" * (len(BENCHMARKS) + 2),
    ]
    for system, points in GRIDS.items():
        rows = {}
        for number, settings in enumerate(points):
            keys = [{"system": system, "benchmark": name, "settings": settings} for name in BENCHMARKS]
            point = [row for key in keys if (row := find_row(results.get("trials", []), key)) is not None]
            if len(point) == len(keys):
                rows[number] = point, sum(25 * (3 * row["accuracy"] + row["c_mrr"]) for row in point) / len(point)
        most = max((worth for _, worth in rows.values()), default=None)
        for number, (point, worth) in rows.items():
            words = ", ".join(str(value) for value in points[number].values())
            cells = [f"{100 * row['accuracy']:.1f} / {100 * row['c_mrr']:.1f}" for row in point]
            spent = sum(row["cpu_seconds"] for row in point)
            mark = "**" if worth == most else ""
            lines.append(f"| {system} | {words} | " + " | ".join(cells) + f" | {mark}{worth:.1f}{mark} | {spent:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main_of_rows("perf.default_settings", __doc__, RESULTS, wanted, run, tables)
