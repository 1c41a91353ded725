"""A folder of files with parts of arrays. A file is never changed: what is new gets a new number.

So a checkpoint need only say which files were the latest: they are as they were, whatever happened since.
Files that neither the last checkpoint nor anybody else needs are removed.

    shelf.json       whose files these are
    entities-2.17    raw little-endian float32: the rows of part 2, the 17th file on this shelf
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_write, reading, sync, writing
from loginfer.systems.embedding.system import Floats

__all__ = ["Shelf", "mapped"]

_OWN = re.compile(r"[a-z]+-\d+\.\d+|shelf\.json")
_ABOUT = "shelf.json"


class Shelf:
    """The files of one training.

    Parameters
    ----------
    folder
        Where they are; made if it is not there.
    about
        What the arrays are, as JSON values: files of something else are not taken up.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self._about = dict(about)
        self._next = 1
        self._fresh: set[str] = set()
        self.key = ""

    def clear(self, needed: int) -> None:
        """Start an empty shelf, with room on the disk for so many bytes.

        Raises
        ------
        OutputError
            If the folder cannot be written, or the disk is too full.
        """
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.forget(())
            free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise OutputError(
                f"weights in files need up to {_size(needed)}, and `{self.folder}` has {_size(free)} left",
                hint="free some space, or choose another place: --out, or TMPDIR without it; "
                "--set storage=memory needs none",
            )
        self.key = uuid.uuid4().hex
        with atomic_write(self.folder / _ABOUT, force=True) as stream:
            json.dump({"key": self.key, **self._about}, stream)

    def take_up(self, key: str, files: Collection[str], bytes_of: Mapping[str, int]) -> None:
        """Go on with the files that a checkpoint needs.

        Raises
        ------
        InputError
            If they are not there, or are those of something else.
        """
        again = f"remove the folder `{self.folder.parent}` to start over"
        path = self.folder / _ABOUT
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(
                f"the weights of the unfinished run are not in `{self.folder}`", hint=again
            ) from error
        if found != {"key": key, **self._about}:
            raise InputError(f"the weights in `{self.folder}` are those of another run", hint=again)
        for name in sorted(files):
            file = self.folder / name
            wanted = bytes_of[name]
            if not file.is_file() or file.stat().st_size != wanted:
                raise InputError(f"`{file}` is missing or damaged: {wanted} bytes are wanted", hint=again)
        self.key = key
        self._next = 1 + max(int(name.rsplit(".", 1)[1]) for name in files)
        self.forget(files)

    def write(self, what: str, part: int, arrays: Iterable[npt.NDArray[np.float32]]) -> str:
        """Write a new file, arrays one after the other; returns its name."""
        with self._new(what, part) as (name, stream):
            for array in arrays:
                stream.write(np.ascontiguousarray(array).data)
        return name

    def zeros(self, what: str, part: int, size: int) -> str:
        """Make a new file of so many zero bytes; on most disks it takes no room yet."""
        with self._new(what, part) as (name, stream):
            stream.truncate(size)
        return name

    @contextlib.contextmanager
    def _new(self, what: str, part: int) -> Iterator[tuple[str, IO[bytes]]]:
        """Open a new file; it vanishes if it cannot be written to its end."""
        name = f"{what}-{part}.{self._next}"
        path = self.folder / name
        self._next += 1
        self._fresh.add(name)
        try:
            with writing(path), path.open("wb") as stream:
                yield name, stream
        except BaseException as error:
            with contextlib.suppress(OSError):
                path.unlink()
            if isinstance(error, OutputError):
                again = "with --out, the same command then goes on from the last checkpoint"
                raise OutputError(error.message, hint=f"free some space; {again}") from error
            raise

    def read(self, name: str, target: npt.NDArray[np.float32]) -> None:
        """Read a file into an array."""
        path = self.folder / name
        with reading(path), path.open("rb", buffering=0) as stream:
            left = target.data.cast("B")
            while len(left):
                count = stream.readinto(left)
                if not count:
                    raise InputError(f"`{path}` is damaged: it is too short")
                left = left[count:]

    def announce(self, name: str) -> None:
        """Say that a file will be read soon."""
        if hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError), (self.folder / name).open("rb") as stream:
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)

    def sync(self, files: Collection[str]) -> None:
        """Make sure that files are on the disk."""
        for name in sorted(self._fresh.intersection(files)):
            with writing(self.folder / name):
                sync(self.folder / name)
            self._fresh.discard(name)
        with writing(self.folder):
            sync(self.folder)

    def forget(self, needed: Collection[str]) -> None:
        """Remove files of ours that nobody needs."""
        kept = {*needed, *([_ABOUT] if needed else [])}
        with writing(self.folder):
            for file in list(self.folder.iterdir()):
                if _OWN.fullmatch(file.name) and file.name not in kept:
                    file.unlink()
                    self._fresh.discard(file.name)


def mapped(path: Path, rows: int, width: int) -> Floats:
    """Return the rows in a file, read as they are used; changes stay in memory."""
    with reading(path):
        found = np.memmap(path, dtype=np.float32, mode="c", shape=(rows, width))
    # A plain array: kernels do not know the other kind.
    return found.view(np.ndarray)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
