"""Damage files for as long as asked, and say what went wrong."""

import argparse
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from loginfer.benchmark.auditing import audit as auditing
from tests.fuzz.targets import TARGETS, Folder

# A reader may take so much more memory than its input has.
MEMORY = 200 * 2**20
# An input of a few kilobytes takes milliseconds; what takes so many seconds would take a longer input forever.
SECONDS = 20


class TooSlow(BaseException):
    """Raised in a reader that does not end; nothing on the way catches it as an error of the input."""


def main() -> int:
    """Run the targets in turn; returns 1 if a fault was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", default=[], metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, default=10, help="how long, over all targets (default 10)")
    parser.add_argument("--inputs", type=int, help="at most so many inputs a target")
    parser.add_argument(
        "--seed", type=int, default=time.time_ns() % 10**9, help="the first seed; by default another each time"
    )
    options = parser.parse_args()
    unknown = set(options.targets) - TARGETS.keys()
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}")
    chosen = options.targets or list(TARGETS)
    auditing.shortcut_results = lambda *_: {}  # no matter of what was read, and slow
    found = 0
    # In memory where that is possible: most of the time would go into opening files.
    in_memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=in_memory) as scratch:
        for name in chosen:
            found += fuzz(name, Path(scratch), options.seed, options.inputs, options.minutes * 60 / len(chosen))
    return 1 if found else 0


def fuzz(name: str, scratch: Path, first: int, most: int | None, seconds: float) -> int:
    """Damage the files of one target; returns how many different faults there were."""
    folder = Folder(TARGETS[name], scratch / name)
    folder.fault()  # compiles and imports what it needs
    faults: Counter[str] = Counter()
    signal.signal(signal.SIGALRM, _stop)
    began, inputs, before = time.monotonic(), 0, _memory()
    while time.monotonic() - began < seconds and (most is None or inputs < most):
        file, content = folder.put(first + inputs)
        signal.alarm(SECONDS)
        error = folder.fault()
        signal.alarm(0)
        if isinstance(error, KeyboardInterrupt):
            raise error
        if error is None and _memory() > before + MEMORY + len(content):
            error = MemoryError(f"{(_memory() - before) >> 20} MiB more than before")
        before = max(before, _memory())
        if error is not None:
            place = traceback.extract_tb(error.__traceback__)[-1:] or [traceback.FrameSummary("?", 0, "?")]
            key = f"{type(error).__name__} in {Path(place[0].filename).name}:{place[0].lineno}"
            if not faults[key]:
                print(f"{name}: seed {first + inputs}, {file.name}: {key}: {str(error)[:200]!a}", file=sys.stderr)
            faults[key] += 1
        inputs += 1
    spent = time.monotonic() - began
    print(f"{name:16} {inputs:9,} inputs  {inputs / spent:9,.0f} a second  {sum(faults.values()):5} faults", flush=True)
    return len(faults)


def _stop(*_: object) -> None:
    raise TooSlow(f"not read after {SECONDS} seconds")


def _memory() -> int:
    """The most memory of this process so far, in bytes; that of the process which started it counts elsewhere."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024
    except (OSError, TypeError):  # no Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
