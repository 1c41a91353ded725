"""From scores to numbers: thresholds, classification, ranking, diagnosis; runs that can be resumed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from loginfer.evaluation.values import PROTOCOLS, TIES, LabelledScores, Predictions, Ranks

if TYPE_CHECKING:
    from loginfer.evaluation.diagnosis import Diagnosis, diagnose
    from loginfer.evaluation.evaluating import Evaluation, evaluate
    from loginfer.evaluation.evaluator import Evaluator
    from loginfer.evaluation.measures import Measures, Wanted, measure
    from loginfer.evaluation.predictions import predict
    from loginfer.evaluation.ranking import rank
    from loginfer.evaluation.rule_recovering import rule_recovery
    from loginfer.evaluation.rule_recovery_values import RuleRecovery
    from loginfer.evaluation.runs import Run, load_run
    from loginfer.evaluation.score_files import export_queries, read_scores
    from loginfer.evaluation.scoring import score_run
    from loginfer.evaluation.thresholds import Thresholds, fit_thresholds

__all__ = [
    "PROTOCOLS",
    "TIES",
    "Diagnosis",
    "Evaluation",
    "Evaluator",
    "LabelledScores",
    "Measures",
    "Predictions",
    "Ranks",
    "RuleRecovery",
    "Run",
    "Thresholds",
    "Wanted",
    "diagnose",
    "evaluate",
    "export_queries",
    "fit_thresholds",
    "load_run",
    "measure",
    "predict",
    "rank",
    "read_scores",
    "rule_recovery",
    "score_run",
]

# No module may have the name of what it gives: whoever imports it first would get the one for the other.
_HOMES = {
    "Diagnosis": "diagnosis",
    "Evaluation": "evaluating",
    "Evaluator": "evaluator",
    "Measures": "measures",
    "RuleRecovery": "rule_recovery_values",
    "Run": "runs",
    "Thresholds": "thresholds",
    "Wanted": "measures",
    "diagnose": "diagnosis",
    "evaluate": "evaluating",
    "export_queries": "score_files",
    "fit_thresholds": "thresholds",
    "load_run": "runs",
    "measure": "measures",
    "predict": "predictions",
    "rank": "ranking",
    "read_scores": "score_files",
    "rule_recovery": "rule_recovering",
    "score_run": "scoring",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
