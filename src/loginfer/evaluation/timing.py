"""How long a run took, how much memory, on what: all that may differ between two equal runs."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["peak_memory", "timing"]

# Libraries whose versions matter, if they were used.
_LIBRARIES = ("numpy", "numba", "pyarrow", "sklearn", "torch")


def timing(seconds: Mapping[str, float], cpu_seconds: float, resumed: bool) -> dict[str, Any]:
    """Return times, memory and machine as JSON values.

    Parameters
    ----------
    seconds, cpu_seconds
        How long each step took, and how much processor time they took together.
    resumed
        Whether a part of the work was done by an earlier process, which is not counted.
    """
    return {
        "seconds": {what: round(spent, 3) for what, spent in seconds.items()},
        "cpu_seconds": round(cpu_seconds, 3),
        "resumed": resumed,
        "peak_memory_bytes": peak_memory(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "versions": {
            name: getattr(sys.modules[name], "__version__", None)
            for name in _LIBRARIES
            if name in sys.modules
        },
    }


def peak_memory() -> int | None:
    """Return the most memory that this process has used so far, in bytes; None where nobody counts it."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
