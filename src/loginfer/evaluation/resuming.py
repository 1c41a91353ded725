"""What an unfinished run keeps beside its folder, so that a kill at any moment loses little.

For a run NAME it is the folder `.NAME.loginfer-run`:

    request.json            what was asked for; another request does not go on from here
    checkpoint.safetensors  the last state while learning
    weights/                what is too large for that; the checkpoint says which of its files count
    trained.safetensors     the learned weights, once learning has ended
    predictions.parquet     the scores, once they are known
    ranks.parquet           the ranks, once they are known

Every file is complete or not there. The folder is removed when the run is in its place.

Arrays and facts share one safetensors file, so that they cannot disagree: the facts are JSON in its header. The
same values give the same bytes. Large files are written array by array and mapped when they are read, so that
nobody needs memory for a copy.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.folder.manifest import as_json
from loginfer.errors import InputError, LogInferError, OutputError
from loginfer.evaluation.predictions import (
    PREDICTIONS,
    RANKS,
    Predictions,
    Ranks,
    read_predictions,
    read_ranks,
    write_predictions,
    write_ranks,
)
from loginfer.files import atomic_write, beside, locked, reading, remove_leftovers, writing
from loginfer.progress import Progress
from loginfer.systems.interface import Arrays, Checkpoint

Curve = list[dict[str, Any]]

REQUEST = "request.json"
CHECKPOINT = "checkpoint.safetensors"
LARGE_WEIGHTS = "weights"
TRAINED = "trained.safetensors"
_RESULTS = (CHECKPOINT, TRAINED, PREDICTIONS, RANKS)

# A killed run loses at most so many seconds of learning.
CHECKPOINT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """The folder of an unfinished run.

    Parameters
    ----------
    folder
        Where it is; None if nothing is kept.
    resumed
        Whether an earlier run left something here.
    """

    folder: Path | None = None
    resumed: bool = False

    @property
    def large(self) -> Path | None:
        """Where a system that learns keeps what is too large for a checkpoint."""
        return None if self.folder is None else self.folder / LARGE_WEIGHTS

    def checkpoint(self) -> tuple[Checkpoint, Curve] | None:
        """Return the last checkpoint, with the learning curve up to it."""
        stored = self._arrays(CHECKPOINT)
        return None if stored is None else (Checkpoint(stored[0], stored[1]["facts"]), stored[1]["curve"])

    def keep_checkpoint(self, checkpoint: Checkpoint, curve: Curve) -> None:
        """Keep a checkpoint instead of the last one."""
        facts = {"facts": dict(checkpoint.facts), "curve": curve}
        self._write(CHECKPOINT, lambda stream: dump_arrays(stream, checkpoint.arrays, facts))

    def trained(self) -> tuple[Arrays, Curve] | None:
        """Return the learned weights, with the learning curve."""
        stored = self._arrays(TRAINED)
        return None if stored is None else (stored[0], stored[1]["curve"])

    def keep_trained(self, arrays: Arrays, curve: Curve) -> None:
        """Keep learned weights; the checkpoint and its files are needed no more.

        A process that has mapped one of these files keeps its content, where the operating system lets files
        in use be removed.
        """
        self._write(TRAINED, lambda stream: dump_arrays(stream, arrays, {"curve": curve}))
        if self.folder is not None:
            with contextlib.suppress(OSError):
                (self.folder / CHECKPOINT).unlink()
            shutil.rmtree(self.folder / LARGE_WEIGHTS, ignore_errors=True)

    def predictions(self, benchmark: Benchmark, method: str | None) -> Predictions | None:
        """Return the scores, if they are known."""
        path = self._file(PREDICTIONS)
        return None if path is None else read_predictions(path, benchmark, method)

    def keep_predictions(self, predictions: Predictions, benchmark: Benchmark) -> None:
        """Keep the scores."""
        self._write(PREDICTIONS, lambda stream: write_predictions(predictions, benchmark, stream))

    def ranks(self) -> list[Ranks] | None:
        """Return the ranks, if they are known."""
        path = self._file(RANKS)
        return None if path is None else read_ranks(path)

    def keep_ranks(self, ranks: Sequence[Ranks], benchmark: Benchmark) -> None:
        """Keep the ranks."""
        self._write(RANKS, lambda stream: write_ranks(ranks, benchmark, stream))

    def _file(self, name: str) -> Path | None:
        path = None if self.folder is None else self.folder / name
        return path if path is not None and path.exists() else None

    def _write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        if self.folder is not None:
            with atomic_write(self.folder / name, "wb", force=True) as stream:
                write(stream)

    def _arrays(self, name: str) -> tuple[dict[str, Any], Any] | None:
        path = self._file(name)
        if path is None:
            return None
        try:
            arrays, facts = read_arrays(path)
            if not isinstance(facts, dict) or not isinstance(facts.get("curve"), list):
                raise InputError(f"`{path}` is damaged: it has no learning curve")
        except LogInferError as error:
            raise InputError(error.message, hint=f"remove the folder `{self.folder}` to start over") from error
        return arrays, facts


@contextlib.contextmanager
def open_unfinished_run(path: Path, request: Mapping[str, Any], *, force: bool = False) -> Iterator[UnfinishedRun]:
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
            yield UnfinishedRun(folder, resumed)
        except BaseException:
            if not _has_results(folder):
                shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path, request: dict[str, Any], target: Path, force: bool) -> bool:
    """Make the folder ready; return whether there is something to go on from."""
    if folder.exists():
        earlier = _earlier_request(folder / REQUEST)
        if earlier == request:
            for name in _RESULTS:
                remove_leftovers(folder / name)
            return _has_results(folder)
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
    with atomic_write(folder / REQUEST) as stream:
        stream.write(as_json(request))
    return False


def _has_results(folder: Path) -> bool:
    return any((folder / name).exists() for name in _RESULTS)


def _earlier_request(file: Path) -> dict[str, Any] | None:
    """Return an earlier request; None where a run was killed before it had written it."""
    try:
        request = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return request if isinstance(request, dict) else None


def differences(earlier: Mapping[str, Any], later: Mapping[str, Any], above: str = "") -> list[str]:
    """Say in what two requests differ, for a message."""
    texts: list[str] = []
    for key in dict.fromkeys([*later, *earlier]):
        before, after = earlier.get(key), later.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            texts += differences(before, after, f"{above}{key}.")
        elif before != after:
            texts.append(f"`{above}{key}` was {json.dumps(before)}, now {json.dumps(after)}")
    return texts


class RunMonitor:
    """Keeps the learning curve in memory, and checkpoints in the folder of an unfinished run.

    Parameters
    ----------
    unfinished
        The unfinished run.
    progress
        Who shows how far the work is.
    seconds
        How often a checkpoint is due.
    tell
        Called with each row of the learning curve.
    """

    def __init__(
        self,
        unfinished: UnfinishedRun,
        progress: Progress | None = None,
        seconds: float = CHECKPOINT_SECONDS,
        tell: Callable[[Mapping[str, Any]], None] = lambda row: None,
    ) -> None:
        self.curve: Curve = []
        self._unfinished, self._progress, self._seconds, self._tell = unfinished, progress, seconds, tell
        self._last = time.monotonic()

    def restore(self) -> Checkpoint | None:
        """Return the last checkpoint of a run that was killed, and take up its learning curve."""
        checkpoint, self.curve = self._unfinished.checkpoint() or (None, self.curve)
        return checkpoint

    def folder(self) -> Path | None:
        """Return a folder for what is too large for a checkpoint."""
        return self._unfinished.large

    def due(self) -> bool:
        """Say whether the last checkpoint is old enough."""
        return self._unfinished.folder is not None and time.monotonic() - self._last >= self._seconds

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint."""
        self._unfinished.keep_checkpoint(checkpoint, self.curve)
        # Counted from here: writing to a slow disk must not take most of the time.
        self._last = time.monotonic()

    def record(self, row: Mapping[str, float | int]) -> None:
        """Add a row to the learning curve; JSON knows no NaN, so it becomes null."""
        self.curve.append({key: _json(value) for key, value in row.items()})
        self._tell(self.curve[-1])

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Show how far the work is."""
        if self._progress is not None:
            self._progress(what, done, total)


def _json(value: Any) -> float | int | None:
    if isinstance(value, Integral):
        return int(value)
    return float(value) if math.isfinite(value) else None


# -- files of arrays --------------------------------------------------------------------------------

# One key only: safetensors does not keep the order of several.
_FACTS = "loginfer"

# Files of at least so many bytes are mapped, not read into memory.
LARGE = 2**26


def dump_arrays(stream: IO[bytes], arrays: Arrays, facts: Any = None) -> None:
    """Write arrays, and facts that JSON can hold, to a stream."""
    from safetensors.numpy import save

    metadata = None if facts is None else {_FACTS: json.dumps(facts)}
    plain = all(array.dtype == np.dtype("<f4") and array.flags.c_contiguous for array in arrays.values())
    if plain and sum(array.nbytes for array in arrays.values()) >= LARGE:
        _dump_one_by_one(stream, arrays, metadata)
    else:
        stream.write(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata))


def _dump_one_by_one(stream: IO[bytes], arrays: Arrays, metadata: Mapping[str, str] | None) -> None:
    """Write contiguous arrays of float32 as `safetensors` does: by name, the header padded with blanks."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    start = 0
    for name in sorted(arrays):
        end = start + arrays[name].nbytes
        header[name] = {"dtype": "F32", "shape": list(arrays[name].shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    stream.write(len(text).to_bytes(8, "little") + text)
    for name in sorted(arrays):
        stream.write(arrays[name].data)


def read_arrays(path: Path) -> tuple[dict[str, npt.NDArray[Any]], Any]:
    """Read arrays, which may be changed, and facts. Changes stay in memory.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        with reading(path):
            if path.stat().st_size >= LARGE:
                arrays, header = _mapped(path)
            else:
                content = path.read_bytes()
                arrays = {name: array.copy() for name, array in load(content).items()}
                header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        facts = header.get("__metadata__", {}).get(_FACTS)
        return arrays, None if facts is None else json.loads(facts)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"`{path}` is damaged: {error}", hint="remove it") from error


def _mapped(path: Path) -> tuple[dict[str, npt.NDArray[Any]], Any]:
    """Read the arrays of a large file as they are used."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:  # checks that the header makes sense
        names = list(file.keys())
    content = np.memmap(path, dtype=np.uint8, mode="c")
    begin = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8:begin].tobytes())
    arrays = {}
    for name in names:
        about = header[name]
        start, end = (begin + offset for offset in about["data_offsets"])
        values = content[start:end].view(np.ndarray).view(_DTYPES[about["dtype"]])
        arrays[name] = values.reshape(about["shape"])
    return arrays, header


_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
