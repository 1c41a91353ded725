"""From numbers to what people look at: tables, plots, pages.

>>> from loginfer.report import ReportContext, collect, write_site
>>> write_site(ReportContext(collect(["runs", "benchmarks"])), "site")  # doctest: +SKIP
"""

from __future__ import annotations

from loginfer.report.collection import Cell, Collection, collect
from loginfer.report.facts import ReportContext, ReportOptions
from loginfer.report.paper import paper_figures, paper_sizes, paper_value
from loginfer.report.site import write_site
from loginfer.report.tables import result_table, to_csv, to_latex, to_markdown

__all__ = [
    "Cell",
    "Collection",
    "ReportContext",
    "ReportOptions",
    "collect",
    "paper_figures",
    "paper_sizes",
    "paper_value",
    "result_table",
    "to_csv",
    "to_latex",
    "to_markdown",
    "write_site",
]
