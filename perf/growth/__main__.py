"""Measure, print a table, draw."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from perf.growth.axes import AXES, Size, sizes_on
from perf.growth.fitting import exponents
from perf.growth.graphs import ENGINES
from perf.growth.measuring import measure
from perf.growth.plan import FIGURES, KINDS
from perf.growth.table import differing, exponent_table, mixed, tables

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 900.0


def main() -> None:
    """Measure what is asked for and not measured yet, then print and draw all there is."""
    parser = argparse.ArgumentParser(prog="python -m perf.growth", description=__doc__)
    parser.add_argument("--axes", default=",".join(AXES), help="sizes to measure: those on these axes")
    parser.add_argument("--sizes", help="instead: TRIPLES-RELATIONS-ENTITIES, several with commas between")
    parser.add_argument("--most", type=int, default=10**9, help="leave out graphs with more triples")
    parser.add_argument("--steps", default=",".join(("loading", *FIGURES)))
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds for one measurement")
    parser.add_argument("--force", action="store_true", help="measure again what is there")
    parser.add_argument("--work", type=Path, help="keep graphs and benchmarks in this folder")
    parser.add_argument("--json", type=Path, default=ROOT / "perf" / "results" / "growth.json")
    parser.add_argument("--plots", type=Path, default=ROOT / "docs" / "images", help="folder of the drawings")
    parser.add_argument("--no-plots", action="store_true")
    given = parser.parse_args()
    if given.sizes:
        sizes = [Size(*map(int, size.split("-"))) for size in given.sizes.split(",")]
    else:
        sizes = [size for size in sizes_on(given.axes.split(",")) if size.triples <= given.most]
    engines = ("", *given.engines.split(","))
    kinds = [kind for kind in KINDS if kind.step in given.steps.split(",") and kind.engine in engines]
    with tempfile.TemporaryDirectory(prefix="loginfer-growth-") as temporary:
        records = measure(
            sizes,
            kinds,
            given.work or Path(temporary),
            given.json,
            limit=given.limit,
            force=given.force,
            keep=given.work is not None,
        )
    print(f"\n{tables(records)}\n\n{exponent_table(exponents(records))}\n{mixed(records)}")
    if not given.no_plots:
        from perf.growth.drawing import draw

        draw(records, given.plots)
    if complaints := differing(records):
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
