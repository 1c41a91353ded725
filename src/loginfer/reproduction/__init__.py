"""The paper's experiments, run again: which cells, running them, its tables beside ours, its findings."""

from loginfer.reproduction.claims import Finding, findings
from loginfer.reproduction.collecting import results, write_results
from loginfer.reproduction.commands import CommandError, Commands
from loginfer.reproduction.figures import Figures, PaperFigures, read_figures
from loginfer.reproduction.folder import Folder, open_folder
from loginfer.reproduction.planning import Plan, PlannedCell, Request, plan
from loginfer.reproduction.running import Outcome, Step, run
from loginfer.reproduction.tabulating import tables
from loginfer.reproduction.writing import write_report

__all__ = [
    "CommandError",
    "Commands",
    "Figures",
    "Finding",
    "Folder",
    "Outcome",
    "PaperFigures",
    "Plan",
    "PlannedCell",
    "Request",
    "Step",
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
