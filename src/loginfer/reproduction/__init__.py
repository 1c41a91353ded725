"""The paper's experiments, run again: which cells, running them, its tables beside ours, its findings."""

from __future__ import annotations

from loginfer.reproduction.claims import Finding, findings
from loginfer.reproduction.figures import Figures, PaperFigures, read_figures, results, write_results
from loginfer.reproduction.paper_tables import tables, write_report
from loginfer.reproduction.planning import Plan, PlannedCell, Request, plan
from loginfer.reproduction.running import CellOutcome, CellsDone, CommandError, Commands, Folder, open_folder, run

__all__ = [
    "CellOutcome",
    "CellsDone",
    "CommandError",
    "Commands",
    "Figures",
    "Finding",
    "Folder",
    "PaperFigures",
    "Plan",
    "PlannedCell",
    "Request",
    "findings",
    "open_folder",
    "plan",
    "read_figures",
    "results",
    "run",
    "tables",
    "write_report",
    "write_results",
]
