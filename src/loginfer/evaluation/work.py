"""What an unfinished run keeps beside its folder, so that a kill at any moment loses little.

For a run NAME it is the folder `.NAME.loginfer-run`:

    request.json            what was asked for; another request does not go on from here
    checkpoint.safetensors  the last state while learning
    weights/                what is too large for that; the checkpoint says which of its files count
    trained.safetensors     the learned weights, once learning has ended
    predictions.parquet     the scores, once they are known
    ranks.parquet           the ranks, once they are known

Every file is complete or not there. The folder is removed when the run is in its place.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loginfer.benchmark.manifest import as_json
from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, LogInferError, OutputError
from loginfer.evaluation.array_files import read_arrays, write_arrays
from loginfer.evaluation.tables import read_predictions, read_ranks, write_predictions, write_ranks
from loginfer.evaluation.values import Predictions, Ranks
from loginfer.files import atomic_write, beside, locked, remove_leftovers, writing
from loginfer.systems.interface import Arrays, Checkpoint

__all__ = ["Curve", "Work", "differences", "open_work"]

Curve = list[dict[str, Any]]

REQUEST = "request.json"
CHECKPOINT = "checkpoint.safetensors"
LARGE = "weights"
TRAINED = "trained.safetensors"
PREDICTIONS = "predictions.parquet"
RANKS = "ranks.parquet"


@dataclass(frozen=True, slots=True)
class Work:
    """The folder of an unfinished run.

    Parameters
    ----------
    folder
        Where it is.
    resumed
        Whether an earlier run left something here.
    """

    folder: Path
    resumed: bool

    @property
    def large(self) -> Path:
        """Where a system that learns keeps what is too large for a checkpoint."""
        return self.folder / LARGE

    def checkpoint(self) -> tuple[Checkpoint, Curve] | None:
        """Return the last checkpoint, with the learning curve up to it."""
        found = self._arrays(CHECKPOINT)
        return None if found is None else (Checkpoint(found[0], found[1]["facts"]), found[1]["curve"])

    def keep_checkpoint(self, checkpoint: Checkpoint, curve: Curve) -> None:
        """Keep a checkpoint instead of the last one."""
        facts = {"facts": dict(checkpoint.facts), "curve": curve}
        write_arrays(self.folder / CHECKPOINT, checkpoint.arrays, facts)

    def trained(self) -> tuple[Arrays, Curve] | None:
        """Return the learned weights, with the learning curve."""
        found = self._arrays(TRAINED)
        return None if found is None else (found[0], found[1]["curve"])

    def keep_trained(self, arrays: Arrays, curve: Curve) -> None:
        """Keep learned weights; the checkpoint and its files are needed no more.

        Who has mapped one of these keeps it, where the system lets a file in use be removed.
        """
        write_arrays(self.folder / TRAINED, arrays, {"curve": curve})
        with contextlib.suppress(OSError):
            (self.folder / CHECKPOINT).unlink()
        shutil.rmtree(self.large, ignore_errors=True)

    def predictions(self, benchmark: Benchmark, method: str | None) -> Predictions | None:
        """Return the scores, if they are known."""
        path = self.folder / PREDICTIONS
        return read_predictions(path, benchmark, method) if path.exists() else None

    def keep_predictions(self, predictions: Predictions, benchmark: Benchmark) -> None:
        """Keep the scores."""
        with atomic_write(self.folder / PREDICTIONS, "wb", force=True) as stream:
            write_predictions(predictions, benchmark, stream)

    def ranks(self) -> list[Ranks] | None:
        """Return the ranks, if they are known."""
        path = self.folder / RANKS
        return read_ranks(path) if path.exists() else None

    def keep_ranks(self, ranks: Sequence[Ranks], benchmark: Benchmark) -> None:
        """Keep the ranks."""
        with atomic_write(self.folder / RANKS, "wb", force=True) as stream:
            write_ranks(ranks, benchmark, stream)

    def _arrays(self, name: str) -> tuple[dict[str, Any], Any] | None:
        path = self.folder / name
        if not path.exists():
            return None
        try:
            arrays, facts = read_arrays(path)
            if not isinstance(facts, dict) or not isinstance(facts.get("curve"), list):
                raise InputError(f"`{path}` is damaged: it has no learning curve")
        except LogInferError as error:
            raise InputError(
                error.message, hint=f"remove the folder `{self.folder}` to start over"
            ) from error
        return arrays, facts


@contextlib.contextmanager
def open_work(path: Path, request: Mapping[str, Any], *, force: bool = False) -> Iterator[Work]:
    """Give the folder of an unfinished run; it stays when the run fails, if there is something to go on from.

    Parameters
    ----------
    path
        Where the run shall be in the end.
    request
        All that decides how the run will come out, as JSON values.
    force
        Start over if an unfinished run for another request is here.

    Raises
    ------
    OutputError
        If another program works on this run now, or an unfinished run was for another request.
    """
    folder = beside(path, "run")
    with writing(path):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(path, "run-lock"):
        resumed = _prepare(folder, json.loads(as_json(request)), path, force)
        try:
            yield Work(folder, resumed)
        except BaseException:
            if not _holds_work(folder):
                shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path, request: dict[str, Any], target: Path, force: bool) -> bool:
    """Make the folder ready; return whether there is something to go on from."""
    file = folder / REQUEST
    if folder.exists():
        earlier = _earlier(file)
        if earlier == request:
            for name in (CHECKPOINT, TRAINED, PREDICTIONS, RANKS):
                remove_leftovers(folder / name)
            return _holds_work(folder)
        if earlier is not None and not force:
            raise OutputError(
                f"an unfinished run for `{target}` asked for something else: "
                + "; ".join(differences(earlier, request)),
                hint="finish it with the same options, choose another --out, or add --force to start over",
            )
        with writing(target):
            shutil.rmtree(folder)
    with writing(target):
        folder.mkdir()
    with atomic_write(file) as stream:
        stream.write(as_json(request))
    return False


def _holds_work(folder: Path) -> bool:
    return any((folder / name).exists() for name in (CHECKPOINT, TRAINED, PREDICTIONS, RANKS))


def _earlier(file: Path) -> dict[str, Any] | None:
    """Return an earlier request; None where a run was killed before it had written it."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def differences(earlier: Mapping[str, Any], now: Mapping[str, Any], above: str = "") -> list[str]:
    """Say in what two requests differ, for a message."""
    told: list[str] = []
    for key in dict.fromkeys([*now, *earlier]):
        one, two = earlier.get(key), now.get(key)
        if one == two:
            continue
        if isinstance(one, dict) and isinstance(two, dict):
            told += differences(one, two, f"{above}{key}.")
        else:
            told.append(f"`{above}{key}` was {json.dumps(one)}, now {json.dumps(two)}")
    return told
