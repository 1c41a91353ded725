"""The parts of docs/reproduction.md that are made from figures kept in results/: statements, and standard splits.

`python scripts/reproduction_page.py` writes them into the page. All else there is the report of

    loginfer reproduce --budget full --out again

whose benchmarks and mined rules are not kept; with `--tables fb-wn,lubm,negatives,rules,sizes,standard,statements` its
report has these parts, too.
"""

from __future__ import annotations

import json
from pathlib import Path

from loginfer.report.tables import to_markdown
from loginfer.reproduction.claims.paper import EIGHT, findings
from loginfer.reproduction.claims.statements import STATEMENTS
from loginfer.reproduction.figures import Figures
from loginfer.reproduction.paper_tables import statements_text, tables
from loginfer.reproduction.planning import STANDARD, TABLES, Request, benchmarks_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
BEGIN, END, TABLE = "## What the paper says beside its tables\n", "## Tables\n", f"### Table `{STANDARD}`"


def kept_figures() -> Figures:
    """Return the figures in results/, those of the table `evidence` apart."""
    files = [file for file in sorted((ROOT / "results").glob("*/*.json")) if file.parent.name != "evidence"]
    documents = [json.loads(file.read_bytes()) for file in files]
    results = {(d["system"], d["benchmark"]): d for d in documents if d["format"] == "loginfer-result"}
    return Figures(results, measurements={d["name"]: d for d in documents if d["format"] == "loginfer-measurement"})


def page(before: str, figures: Figures) -> str:
    """Return the page with these parts as the figures have them."""
    head, tail = before.split(BEGIN)[0].split(END)[0], before.split(END)[1].split(TABLE)[0].rstrip("\n")
    request = Request((STANDARD,), EIGHT, benchmarks_of(STANDARD), 1, "paper", "full")
    (table,) = tables(figures, request, {}).values()
    made = f"{TABLE}: {TABLES[STANDARD]}\n\n{to_markdown(table)}"
    return f"{head}{statements_text(figures, findings(figures, STATEMENTS))}\n{END}{tail}\n\n{made}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), kept_figures()))
