"""What the first commands on a machine cost: `python -m perf.compiling` prints CPU seconds of a demonstration.

Each command is a process of its own and is run twice: with an empty cache of kernels, and with what the first
round left there.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BUILD = "build {out}/lubm.nt --pattern composition --pattern triangle --k1 5 --k2 1000"
COMMANDS = (
    "kg generate lubm --out {out}/lubm.nt",
    "kg show {out}/lubm.nt --top 5",
    "rules rank {out}/lubm.nt --pattern composition --top 5",
    BUILD + " --negatives pa --negatives qg --out {out}/b",
    BUILD + " --negatives nm --match all --out {out}/nm",
    "audit {out}/b",
    "evaluate {out}/b --negatives qg --system simpbl --out {out}/simpbl",
    "evaluate {out}/b --negatives qg --system transe --set epochs=1 --out {out}/transe",
    "evaluate {out}/b --negatives qg --system rotate --set epochs=1 --out {out}/rotate",
    "evaluate {out}/b --negatives qg --system complex --set epochs=1 --out {out}/complex",
    "evaluate {out}/b --negatives qg --system anyburl --set seconds=1 --out {out}/anyburl",
    "evaluate {out}/b --negatives qg --system rulen --out {out}/rulen",
    "mine {out}/b --miner exact --out {out}/exact.tsv",
    "rules analyse {out}/b --rules {out}/exact.tsv --top 3",
    "evaluate {out}/b --negatives qg --ranking given --system contrast --out {out}/contrast",
)


def main() -> None:
    """Run all commands in two rounds and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [[_measure(command, Path(folder), name) for command in COMMANDS] for name in ("cold", "warm")]
    print("  cold  compiling  kernels   warm  command")
    for command, cold, warm in zip(COMMANDS, *rounds, strict=True):
        print(f"{cold[0]:6.2f}{cold[1]:11.2f}{cold[2]:9d}{warm[0]:7.2f}  {command.replace('{out}/', '')}")
    cpu, compiling, kernels = (sum(row[i] for row in rounds[0]) for i in range(3))
    print(f"{cpu:6.2f}{compiling:11.2f}{kernels:9d}{sum(row[0] for row in rounds[1]):7.2f}  all")


def _measure(command: str, folder: Path, name: str) -> Any:
    out, figures = folder / name, folder / "figures.json"
    out.mkdir(exist_ok=True)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels"), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "perf.compiling", str(figures), *command.format(out=out).split()]
    subprocess.run(words, env=environment, check=True, capture_output=True)
    return json.loads(figures.read_text())


def _run(figures: str, words: list[str]) -> None:
    """Run one command in this process; write its CPU seconds, those of compiling, and how much was compiled."""
    from loginfer.cli import main as loginfer
    from loginfer.kernels import event

    started: list[float] = []
    totals = [0.0, 0]

    class Compiling(event.Listener):  # type: ignore[misc, unused-ignore]
        def on_start(self, event: Any) -> None:
            started.append(time.process_time())

        def on_end(self, event: Any) -> None:
            seconds = time.process_time() - started.pop()
            totals[0] += 0 if started else seconds  # nested compilations are part of the outermost
            totals[1] += 1

    def write() -> None:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        Path(figures).write_text(json.dumps([sum(u.ru_utime + u.ru_stime for u in used), *totals]))

    event.register("numba:compile", Compiling())  # type: ignore[no-untyped-call]
    atexit.register(write)
    loginfer(words)


if __name__ == "__main__":
    if sys.argv[1:]:
        _run(sys.argv[1], sys.argv[2:])
    else:
        main()
