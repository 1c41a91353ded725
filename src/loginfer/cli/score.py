"""`loginfer score`: the figures of a run again, from its predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loginfer.cli.common import JsonOption, note, print_json
from loginfer.cli.evaluate import CriterionOption, ThresholdOption, TieOption, threshold_of, word

__all__ = ["score"]


def score(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The folder of a run, or of several seeds.", show_default=False),
    ],
    benchmark: Annotated[
        Path | None,
        typer.Option("--benchmark", "-b", help="The run's benchmark: adds breakdowns and the diagnosis."),
    ] = None,
    threshold: ThresholdOption = None,
    criterion: CriterionOption = None,
    tie: TieOption = None,
    diagnosis: Annotated[
        bool | None, typer.Option("--diagnosis/--no-diagnosis", help="Look for learned rules and shortcuts.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compute every metric of a run again from its saved predictions, without training.

    Thresholds, criterion and tie rule may be others than those of the run, which is not changed. Of a folder
    with several seeds it is mean and interval again.
    """
    from loginfer.benchmark import load_benchmark
    from loginfer.evaluation.runs import load_run
    from loginfer.evaluation.scoring import score_run, wanted_then
    from loginfer.evaluation.seeds import SUMMARY, check_alike, seed_runs, summarise

    changed = {
        "threshold": None if threshold is None else threshold_of(threshold),
        "criterion": None if criterion is None else word(criterion),
        "tie": None if tie is None else word(tie),
        "diagnosis": diagnosis,
    }
    several = seed_runs(run)
    whole = None if benchmark is None else load_benchmark(benchmark)
    runs = [load_run(folder) for folder in several or [run]]
    check_alike(runs)
    answers = [found.answer(score_run(found, wanted_then(found, **changed), whole)) for found in runs]
    answer = summarise(answers) if several else answers[0]
    if json:
        print_json(answer)
        return
    from loginfer.cli.figures import print_figures

    print_figures(answer)
    if several and not (run / SUMMARY).exists():
        note(f"not all seeds of {run} are finished")
    if benchmark is None and not several:
        note("with --benchmark DIR also by rule, and which rules were learned")
