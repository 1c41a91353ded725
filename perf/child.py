"""The measured process: prepare, call twice, report CPU seconds and memory as one line of JSON.

Usage: python -m perf.child package.module:function '{"argument": value}'
"""

from __future__ import annotations

import json
import resource
import sys
from importlib import import_module
from pathlib import Path

# A first call longer than this (CPU seconds) is not repeated in the same process.
LONG = 15.0


def cpu_seconds() -> float:
    """CPU seconds of this process so far, user and system, all threads and finished children."""
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peak_megabytes() -> float:
    """Return the peak resident memory of this process so far.

    `ru_maxrss` would also count the process that started this one, which is why Linux' own figure for
    this address space is preferred.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 1024)


def main() -> None:
    module, function = sys.argv[1].split(":")
    call, summarise, *own_clock = getattr(import_module(module), function)(**json.loads(sys.argv[2]))
    megabytes_before = peak_megabytes()
    seconds: list[float] = []
    megabytes: list[float] = []
    value = None
    for _ in range(2):
        value = None  # the first value must not count as memory of the second call
        cpu = cpu_seconds()
        value = call()
        spent = cpu_seconds() - cpu
        seconds.append(own_clock[0](value) if own_clock else spent)
        megabytes.append(peak_megabytes())
        if seconds[-1] > LONG:
            break
    report = {
        "cold": seconds[0],
        "warm": seconds[-1],
        "megabytes_before": megabytes_before,
        "megabytes": megabytes[0],
        "summary": summarise(value),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
