"""Temporary folders for weights, which the next training removes if a process was killed and left its own.

A folder belongs to the process that holds the lock on the file `lock` in it; the system releases it when the
process dies, however it does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from pathlib import Path

from loginfer.errors import OutputError
from loginfer.files import describe_os_error

try:
    import fcntl
except ImportError:  # no such locks on Windows, where what a killed process leaves must be removed by hand
    fcntl = None  # type: ignore[assignment]

__all__ = ["PassingFolder"]

_PREFIX = "loginfer-weights-"
_LOCK = "lock"
_LOCKS = fcntl is not None


class PassingFolder:
    """A folder among the temporary files.

    Raises
    ------
    OutputError
        If it cannot be made.
    """

    def __init__(self) -> None:
        try:
            _remove_abandoned(Path(tempfile.gettempdir()))
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._finalizer = weakref.finalize(self, _remove, self.path, _lock(self.path))
        except OSError as error:
            raise OutputError(
                f"no folder for weights in `{tempfile.gettempdir()}`: {describe_os_error(error)}",
                hint="set TMPDIR to a folder that can be written; --set storage=memory needs none",
            ) from error

    def remove(self) -> None:
        """Remove it with all that is in it."""
        self._finalizer()


def _remove(folder: Path, handle: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if handle is not None:
        os.close(handle)


def _lock(folder: Path) -> int | None:
    """Take a folder's lock; the file gets its name once it is locked, so that nobody finds it open."""
    if not _LOCKS:
        return None
    handle, name = tempfile.mkstemp(dir=folder)
    with contextlib.suppress(OSError):  # some network drives have no locks
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Path(name).rename(folder / _LOCK)
    return handle


def _remove_abandoned(above: Path) -> None:
    """Remove the folders of processes that are no more."""
    if not _LOCKS:
        return
    for folder in above.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # somebody else's, or it is going already
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
