"""Scoring a run again: every figure from its predictions and ranks, without training."""

from __future__ import annotations

import dataclasses
from typing import Any

from loginfer.benchmark.values import Benchmark
from loginfer.evaluation.measures import Measures, Wanted, measure
from loginfer.evaluation.runs import PREDICTIONS, Run
from loginfer.evaluation.tables import read_predictions

__all__ = ["score_run", "wanted_then"]


def wanted_then(run: Run, **changed: Any) -> Wanted:
    """Return which figures were wanted when the run was made, with changes.

    Parameters
    ----------
    run
        The run.
    changed
        Fields of `Wanted`; None leaves one as it was.
    """
    then = run.manifest["wanted"]
    wanted = Wanted(
        threshold=then["threshold"],
        criterion=then["criterion"],
        protocols=tuple(run.manifest["request"]["protocols"]),
        tie=then["tie"],
        diagnosis=then["diagnosis"],
    )
    return dataclasses.replace(wanted, **{key: value for key, value in changed.items() if value is not None})


def score_run(run: Run, wanted: Wanted | None = None, benchmark: Benchmark | None = None) -> Measures:
    """Compute every figure of a run again.

    Parameters
    ----------
    run
        The run.
    wanted
        Which figures; by default those of the run.
    benchmark
        The run's benchmark. Without it there are no breakdowns by rule, pattern and kind of negative and no
        diagnosis, since the run holds labelled triples only.

    Raises
    ------
    InputError
        If the benchmark is not the one of the run.
    """
    wanted = wanted or wanted_then(run)
    notes = [str(note) for note in run.manifest.get("notes", ())]
    if benchmark is None:
        labelled, predictions = run.labelled()
        labelled = dataclasses.replace(labelled, name=run.benchmark)
        return measure(labelled, predictions, run.ranks(), wanted, notes=notes)
    run.check_benchmark(benchmark)
    predictions = read_predictions(run.path / PREDICTIONS, benchmark, run.method)
    return measure(benchmark, predictions, run.ranks(), wanted, notes=notes)
