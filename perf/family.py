"""The memory of a process and of all that it starts, at its largest."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

# Seconds between two looks.
PAUSE = 0.05


class Family:
    """Watches this process and its descendants while it is open.

    Memory that processes share counts once for each. Where there is no /proc, nothing is seen.

    Attributes
    ----------
    megabytes
        The largest sum of resident memory that was seen.
    """

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Family:
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE") / 2**20
        while not self._done.wait(PAUSE):
            now = sum(_pages(pid) for pid in descendants(os.getpid()))
            self.megabytes = max(self.megabytes, now * page)


def descendants(pid: int) -> list[int]:
    """Return a process and all below it."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # A name in parentheses, which may hold anything, stands before the state and the parent.
            parent = int(file.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):  # it has ended meanwhile
            continue
        children.setdefault(parent, []).append(int(file.parent.name))
    found = [pid]
    for process in found:
        found += children.get(process, [])
    return found


def _pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
