"""The folder of a reproduction, and what was asked for it.

reproduction.json                          what was asked: tables, systems, seeds, protocol, budget, versions
suite/<benchmark>/                         the benchmarks
runs/<system>/<benchmark>/seed-<k>/        the runs
failed/<system>/<benchmark>-seed-<k>.json  why a cell failed; gone once it succeeds
results/<system>/<benchmark>.json          the figures of all seeds
rules/<system>/<benchmark>.json            mined rules against those of the benchmark
shortcuts/<benchmark>.json                 what shortcuts reach on a benchmark of the table `evidence`
tables/<table>.{md,tex,csv}                the paper's tables, with its figures and ours
findings.json                              the paper's findings, with all comparisons
evidence.json                              which of its conclusions survive near misses, with all comparisons
REPORT.md                                  all tables, and the paper's findings one by one
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loginfer._version import __version__
from loginfer.benchmark.suite import all_entries
from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_write, reading, remove_leftovers
from loginfer.reproduction.participants import PARTICIPANTS
from loginfer.reproduction.parts import TABLES
from loginfer.reproduction.planning import PlannedCell, Request

__all__ = ["FORMAT", "Folder", "open_folder", "stable_json"]

FORMAT = "loginfer-reproduction"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Folder:
    """Where everything of a reproduction is."""

    path: Path

    @property
    def suite(self) -> Path:
        """The benchmarks."""
        return self.path / "suite"

    @property
    def runs(self) -> Path:
        """The runs."""
        return self.path / "runs"

    def run(self, cell: PlannedCell) -> Path:
        """Return where the run of a cell is."""
        return self.runs / cell.system / cell.benchmark / f"seed-{cell.seed}"

    def failure(self, cell: PlannedCell, what: str | None = None) -> Path:
        """Return where it stands why a cell failed, or something else about its system and benchmark."""
        return self.path / "failed" / cell.system / f"{cell.benchmark}-{what or f'seed-{cell.seed}'}.json"

    def failures(self) -> list[dict[str, Any]]:
        """Return all failures that are written down, in the order of the tables."""
        found = [self.json(path) for path in sorted(self.path.glob("failed/*/*.json"))]
        place = {name: number for number, name in enumerate(PARTICIPANTS)}
        suite = {entry.name: number for number, entry in enumerate(all_entries())}
        return sorted(found, key=lambda f: (suite[f["benchmark"]], place[f["system"]], str(f["seed"])))

    def result(self, system: str, benchmark: str) -> Path:
        """Return where the figures of a system on a benchmark are."""
        return self.path / "results" / system / f"{benchmark}.json"

    def rules(self, system: str, benchmark: str) -> Path:
        """Return where it stands what the rules of a miner say about those of a benchmark."""
        return self.path / "rules" / system / f"{benchmark}.json"

    def shortcuts(self, benchmark: str) -> Path:
        """Return where it stands what shortcuts reach on a benchmark."""
        return self.path / "shortcuts" / f"{benchmark}.json"

    def table(self, name: str, ending: str) -> Path:
        """Return where a table is."""
        return self.path / "tables" / f"{name}.{ending}"

    @property
    def report(self) -> Path:
        """All tables and findings."""
        return self.path / "REPORT.md"

    @property
    def asked(self) -> Path:
        """What was asked."""
        return self.path / "reproduction.json"

    def json(self, path: Path) -> dict[str, Any]:
        """Read a file of this folder."""
        with reading(path):
            text = path.read_bytes()
        try:
            found = json.loads(text)
        except ValueError as error:
            raise InputError(f"this file is no JSON: {error}", where=str(path), hint=_AGAIN) from error
        if not isinstance(found, dict):
            raise InputError("this file holds no JSON object", where=str(path), hint=_AGAIN)
        return found

    def write(self, path: Path, text: str) -> None:
        """Write a file of this folder, which nobody else writes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        with atomic_write(path, force=True) as stream:
            stream.write(text)

    def request(self) -> Request:
        """Return what was asked for this folder so far.

        Raises
        ------
        InputError
            If nothing was.
        """
        if not self.asked.exists():
            raise InputError(
                f"`{self.path}` is no reproduction: it has no `{self.asked.name}`",
                hint="make one with `loginfer reproduce --out FOLDER`",
            )
        known = self.json(self.asked)
        try:
            tables, systems, benchmarks = (tuple(known[k]) for k in ("tables", "systems", "benchmarks"))
            return Request(tables, systems, benchmarks, known["seeds"], known["protocol"], known["budget"])
        except KeyError as error:
            raise InputError(f"{error} is missing", where=str(self.asked), hint=_AGAIN) from error


def open_folder(path: str | Path, request: Request) -> Folder:
    """Take a folder for a reproduction, and write down what is asked, together with what was asked before.

    Raises
    ------
    OutputError
        If it is something else, or a reproduction with another protocol, budget or version: their figures
        could not stand in one table.
    """
    folder = Folder(Path(path))
    if folder.path.exists() and not folder.path.is_dir():
        raise OutputError(f"`{folder.path}` is a file, not a folder", hint="give the name of a folder")
    if folder.asked.exists():
        known = folder.json(folder.asked)
        _check(folder, known, request)
        request = _joined(folder.request(), request)
    elif folder.path.exists() and (foreign := _foreign(folder)):
        raise OutputError(
            f"`{folder.path}` is no reproduction, and holds `{foreign}`", hint="choose an empty or new folder"
        )
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.write(folder.asked, stable_json(_as_dict(request)))
    return folder


def stable_json(value: Mapping[str, Any]) -> str:
    """Return a value as the text of a file, with sorted keys."""
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _foreign(folder: Folder) -> str | None:
    """Return something in a folder that no reproduction begins with."""
    known = {"suite", "runs", folder.asked.name}
    names = sorted(entry.name for entry in folder.path.iterdir())
    return next((name for name in names if name not in known and not name.startswith(".")), None)


def _check(folder: Folder, known: Mapping[str, Any], request: Request) -> None:
    if known.get("format") != FORMAT or known.get("format_version") != FORMAT_VERSION:
        raise OutputError(
            f"`{folder.asked}` is not the file of a reproduction that this program reads",
            hint="choose another folder",
        )
    now = {"protocol": request.protocol, "budget": request.budget}
    before = {**known, "version": known.get("versions", {}).get("loginfer")}
    for what, value in {**now, "version": __version__}.items():
        if before.get(what) != value:
            raise OutputError(
                f"`{folder.path}` was begun with the {what} `{before.get(what)}`, not `{value}`",
                hint="choose another folder: figures of both could not stand in one table",
            )


def _joined(before: Request, now: Request) -> Request:
    """Return what was asked before and is asked now."""

    def union(order: Iterable[str], *parts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in order if any(name in part for part in parts))

    return Request(
        union(TABLES, before.tables, now.tables),
        union(PARTICIPANTS, before.systems, now.systems),
        union((entry.name for entry in all_entries()), before.benchmarks, now.benchmarks),
        max(before.seeds, now.seeds),
        now.protocol,
        now.budget,
    )


def _as_dict(request: Request) -> dict[str, Any]:
    about = {"format": FORMAT, "format_version": FORMAT_VERSION, "versions": {"loginfer": __version__}}
    return {**about, **asdict(request)}


_AGAIN = "remove it, and give the command again"
