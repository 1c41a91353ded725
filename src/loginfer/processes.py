"""Processes that this one starts: they end with it, also when it is killed (SIGKILL) and can tell nobody."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

# In the environment of a process of this program: who started it.
PARENT = "LOGINFER_PARENT"
# Where the system tells nobody, a process looks this often, in seconds, whether it is alone.
GLANCE = 1.0

_libc: Any = ctypes.CDLL(None) if os.name == "posix" else None


def end_with_thread() -> None:
    """Let the system kill this process when the thread that started it is gone; on Linux only."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG


def end_with_parent(parent: int | None = None) -> None:
    """End this process as soon as the one that started it is gone, which may be so already.

    Parameters
    ----------
    parent
        Its number; not needed for processes of `multiprocessing`.
    """
    from multiprocessing import parent_process

    def watch() -> None:
        if (started_by := parent_process()) is not None:
            started_by.join()
        while started_by is None and os.getppid() == parent:
            time.sleep(GLANCE)
        os._exit(1)

    end_with_thread()
    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def deaf_children() -> Iterator[None]:
    """Let processes that are started meanwhile not hear Ctrl-C, which is for the one that waits for them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
