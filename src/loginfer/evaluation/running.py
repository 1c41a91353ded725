"""Running a system on a benchmark into a folder, resumably."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from loginfer.benchmark.manifest import as_json
from loginfer.benchmark.values import Benchmark
from loginfer.errors import LogInferError, OutputError
from loginfer.evaluation.contender import Contender
from loginfer.evaluation.evaluating import Evaluation, evaluate_contender
from loginfer.evaluation.measures import Wanted
from loginfer.evaluation.runs import check_run, load_run, request_of, write_run
from loginfer.evaluation.watching import CHECKPOINT_SECONDS, Progress
from loginfer.evaluation.work import open_work
from loginfer.files import beside, locked, recover_folder

__all__ = ["run_contender"]


def run_contender(
    contender: Contender,
    benchmark: Benchmark,
    method: str | None,
    wanted: Wanted,
    path: str | Path,
    *,
    force: bool = False,
    progress: Progress | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    tell: Callable[[str], None] | None = None,
    weights: bool = True,
) -> Evaluation:
    """Evaluate a system and write the run's folder; a run that was killed goes on where it was.

    Parameters
    ----------
    contender, benchmark, method, wanted
        Who, on what, with whose negatives, and which figures.
    path
        The run's folder.
    force
        Replace an existing run, or an unfinished one for another request.
    progress
        Who shows how far the work is.
    checkpoint_seconds
        How often a checkpoint is due while learning.
    tell
        Told when an unfinished run goes on.
    weights
        Keep what was learned; without it a run can be scored again, but not asked anything new.

    Raises
    ------
    OutputError
        If the folder exists, is being written by another program, or an unfinished run of another request is
        there.
    """
    target = Path(path)
    request = request_of(contender, benchmark, method, wanted)
    recover_folder(target)
    try:
        check_run(target, force=force)
    except OutputError:
        _tidy(target, request)
        raise
    with open_work(target, request, force=force) as work:
        check_run(target, force=force)
        if work.resumed and tell is not None:
            tell(f"going on with the unfinished run for {target}")
        evaluation = evaluate_contender(
            contender, benchmark, method, wanted,
            work=work, progress=progress, checkpoint_seconds=checkpoint_seconds,
        )  # fmt: skip
        write_run(
            evaluation, request, target, wanted=wanted, force=force, resumed=work.resumed, weights=weights
        )
    return evaluation


def _tidy(target: Path, request: Mapping[str, Any]) -> None:
    """Remove what is left beside a run that was killed after it was complete."""
    left = beside(target, "run")
    if not left.exists():
        return
    with contextlib.suppress(LogInferError):
        finished = load_run(target, verify=False).manifest["request"]
        if finished == json.loads(as_json(request)):
            with locked(target, "run-lock"):
                shutil.rmtree(left, ignore_errors=True)
