"""Which cells need not be run again: their run is there, complete, and was made for the same request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from loginfer.errors import LogInferError
from loginfer.files import recover_folder
from loginfer.reproduction.folder import Folder
from loginfer.reproduction.planning import PlannedCell

if TYPE_CHECKING:
    from loginfer.benchmark.values import Benchmark

__all__ = ["existing"]


def existing(cells: Iterable[PlannedCell], folder: Folder) -> Iterator[tuple[PlannedCell, str]]:
    """Yield the cells that have a run, with an empty text if it is theirs, else what is wrong with it.

    A benchmark is read only if it has runs: what a run was about is told by the sum of its triples.
    """
    from loginfer.benchmark import load_benchmark

    there = []
    for cell in cells:
        recover_folder(folder.run(cell))
        if folder.run(cell).exists():
            there.append(cell)
    there.sort(key=lambda cell: cell.benchmark)
    for name, group in groupby(there, key=lambda cell: cell.benchmark):
        benchmark = load_benchmark(folder.suite / name)
        for cell in group:
            yield cell, _difference(cell, folder, benchmark)


def _difference(cell: PlannedCell, folder: Folder, benchmark: Benchmark) -> str:
    from loginfer.evaluation.contender import contender
    from loginfer.evaluation.measures import Wanted
    from loginfer.evaluation.runs import load_run, request_of
    from loginfer.evaluation.work import differences
    from loginfer.systems.view import choose_method

    try:
        run = load_run(folder.run(cell), verify=False)
        ready = contender(cell.system, benchmark, dict(cell.settings), seed=cell.seed)
    except LogInferError as error:
        return error.message
    wanted = Wanted() if cell.threshold is None else Wanted(threshold=cell.threshold)
    request: dict[str, Any] = request_of(ready, benchmark, choose_method(benchmark, None), wanted)
    about = {key: getattr(wanted, key) for key in ("threshold", "criterion", "tie", "diagnosis")}
    expected = {**request, "wanted": about}
    found = {**run.manifest["request"], "wanted": dict(run.manifest["wanted"])}
    told = differences(found, expected)
    return f"the run that is there was made for something else: {'; '.join(told)}" if told else ""
