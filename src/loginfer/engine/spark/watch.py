"""A watch over the workers of a cluster: Spark waits for lost ones without end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["Watch"]

# How long a cluster may be without any worker, and how often we look, in seconds.
PATIENCE = 60.0
INTERVAL = 2.0


class Watch:
    """Ends what Spark does when no worker has been there for a while.

    Parameters
    ----------
    context
        The SparkContext; None, or a local one, has nobody to lose.
    patience
        How long no worker may be there, in seconds.
    """

    def __init__(self, context: Any, patience: float = PATIENCE) -> None:
        self.context = context
        self.patience = patience
        self.found: str | None = None
        master = "local" if context is None else str(context.master)
        self._needed = not master.startswith("local") or master.startswith("local-cluster")

    def reasons(self) -> Iterator[str]:
        """Give what was found, if anything was."""
        if self.found is not None:
            yield self.found

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look after the workers while something runs."""
        if not self._needed:
            yield
            return
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(done,), daemon=True, name="spark-watch")
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join(INTERVAL)

    def _watch(self, done: threading.Event) -> None:
        seen = time.monotonic()
        while not done.wait(INTERVAL):
            with contextlib.suppress(Exception):  # the end of Spark is told by what runs on it
                if self._workers():
                    seen = time.monotonic()
                elif time.monotonic() - seen > self.patience:
                    self.found = (
                        f"no worker of the Spark master `{self.context.master}` "
                        f"has been there for {self.patience:.0f} seconds"
                    )
                    self.context.cancelAllJobs()
                    return

    def _workers(self) -> int:
        # Spark counts the driver, which does no work, among the executors.
        return len(self.context._jsc.sc().statusTracker().getExecutorInfos()) - 1
