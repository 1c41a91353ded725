"""Runs whose results are kept: each in a process of its own with one thread, a row a run in a file of results.

What such a program is about says its module; what it does, with which options, is here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

Rows = dict[str, list[dict[str, Any]]]


def add_row(path: Path, section: str, settings: dict[str, Any], row: dict[str, Any]) -> None:
    """Add a row to a section of a file of results, instead of the one with the same settings."""
    from loginfer.files import atomic_write

    known = read_rows(path)
    others = [old for old in known.get(section, []) if {key: old.get(key) for key in settings} != settings]
    known[section] = [*others, row]
    with atomic_write(path, force=True) as stream:
        json.dump(known, stream, indent=2)
        stream.write("\n")


def read_rows(path: Path) -> Rows:
    """Return the sections of a file of results; none if there is no such file."""
    rows: Rows = json.loads(path.read_text()) if path.exists() else {}
    return rows


def find_row(rows: Iterable[dict[str, Any]], key: dict[str, Any]) -> dict[str, Any] | None:
    """Return the row of a run, if it was made."""
    return next((row for row in rows if {name: row.get(name) for name in key} == key), None)


def main_of_rows(
    module: str,
    about: str,
    results: Path,
    wanted: Callable[[], Iterable[tuple[str, dict[str, Any]]]],
    run: Callable[..., dict[str, Any]],
    tables: Callable[[Rows], str],
) -> None:
    """Make the runs that are missing, or print the tables of those that are there.

    Parameters
    ----------
    module
        What `python -m` starts.
    about
        What `--help` says.
    results
        The file of results.
    wanted
        Says which runs there are: the section of the results, and what identifies the run.
    run
        Makes one, given what identifies it; returns the rest of its row.
    tables
        Returns the tables of all rows in Markdown.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="runs with such words: a section, graph or system; repeatable")
    parser.add_argument("--again", action="store_true", help="also runs whose results are kept")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--tables", action="store_true", help="print tables of what is kept")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        print(json.dumps(run(**given.child)))
        return
    kept = read_rows(results)
    if given.tables:
        print(tables(kept))
        return

    def made(section: str, key: dict[str, Any]) -> tuple[str, dict[str, Any], str]:
        command = [sys.executable, "-m", module, "--child", json.dumps(key)]
        environment = {**os.environ, **THREADS}
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True).stdout
        return section, key, answer

    missing = [
        (section, key)
        for section, key in wanted()
        if {section, *map(str, key.values())}.issuperset(given.only or [])
        and (given.again or find_row(kept.get(section, []), key) is None)
    ]
    with ThreadPoolExecutor(given.jobs) as pool:
        for done in as_completed([pool.submit(made, *one) for one in missing]):
            section, key, answer = done.result()
            row = {**key, **json.loads(answer.splitlines()[-1])}
            add_row(results, section, key, row)
            print(json.dumps(row), flush=True)
