"""Measuring what is not measured yet, small graphs first; the file is written after every measurement."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from perf.case import OURS, Case
from perf.growth.axes import Size
from perf.growth.building import benchmark_folder
from perf.growth.graphs import graph_file
from perf.growth.plan import Kind, planned
from perf.growth.results import Record, cpu, key_of, megabytes, read, record_key, wall, write
from perf.growth.source import source_digest
from perf.runner import Result, run_once

__all__ = ["measure"]


def measure(
    sizes: list[Size], kinds: list[Kind], work: Path, file: Path, *, limit: float, force: bool, keep: bool
) -> list[Record]:
    """Measure some steps at some sizes and return all figures there are.

    Parameters
    ----------
    sizes, kinds
        What to measure.
    work
        A folder for graphs and benchmarks.
    file
        The figures; those that are there are not measured again.
    limit
        CPU seconds for one measurement.
    force
        Measure again what is there.
    keep
        Leave graphs and benchmarks in the folder.
    """
    done = {record_key(record): record for record in read(file)}
    for size in sizes:
        due = [kind for kind in kinds if planned(size, kind) and (force or key_of(size, kind) not in done)]
        if not due:
            continue
        folder = work / size.name
        constants = _graph(size, folder, limit)
        for kind in due:
            if kind.needs:
                _benchmark(folder, limit)
            done[key_of(size, kind)] = _measured(size, constants, kind, folder, limit)
            write(file, list(done.values()))
        if not keep:
            shutil.rmtree(folder)
    return list(done.values())


def _measured(size: Size, constants: int, kind: Kind, folder: Path, limit: float) -> Record:
    result = _run(kind.call, limit, folder=str(folder), **kind.arguments)
    record = {
        **asdict(size),
        "constants": constants,
        "step": kind.step,
        "what": kind.what,
        "engine": kind.engine,
        # How busy the machine was, and which code this is about.
        "load": round(os.getloadavg()[0], 1),
        "source": source_digest(),
        **result.as_json(),
    }
    print(_line(record), flush=True)
    return record


def _graph(size: Size, folder: Path, limit: float) -> int:
    """Make the graph if it is not there, and return how many constants it has."""
    told = folder / "constants"
    if not told.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = _run("perf.growth.graphs:generate", limit, folder=str(folder), **asdict(size))
        if made.failure:
            sys.exit(f"error: no graph {size.name}: {made.failure}")
        assert graph_file(str(folder)).exists()
        told.write_text(str(made.summary["constants"]))
    return int(told.read_text())


def _benchmark(folder: Path, limit: float) -> None:
    """Build the benchmark that a step needs if it is not there."""
    if not benchmark_folder(str(folder)).exists():
        made = _run("perf.growth.building:build", limit, folder=str(folder), engine="native")
        if made.failure:
            sys.exit(f"error: no benchmark in {folder.name}: {made.failure}")


def _run(call: str, limit: float, **arguments: object) -> Result:
    return run_once(Case(OURS, call, dict(arguments), limit=limit), {})


def _line(record: Record) -> str:
    sizes = f"{record['triples']:>10,} {record['relations']:>6,} {record['constants']:>9,}"
    name = f"{record['step']:<11}{record['what']:<15}{record['engine']:<7}"
    if record["failure"]:
        return f"{sizes}  {name} {record['failure']}"
    return f"{sizes}  {name} {cpu(record):8.2f} CPU-s {wall(record):8.2f} s {megabytes(record):6.0f} MB"
