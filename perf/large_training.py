"""One training of a synthetic graph with many entities: CPU seconds, memory and disk as a line of JSON.

    python -m perf.large_training transe --entities 5000000 --triples 21000000 --workers 2

With `--results FILE` the figures also go into a JSON file, instead of earlier ones for the same settings.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from perf.child import peak_megabytes
from perf.rows import add_row
from perf.tasks.large_training import FIFTH, SAMPLE, ours


def main() -> None:
    """Measure one setting in this process, and print what came out as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--entities", type=int, default=FIFTH["entities"])
    parser.add_argument("--triples", type=int, default=FIFTH["triples"])
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--dimension", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=0)
    parser.add_argument("--storage", default="auto")
    parser.add_argument("--checkpoints", action="store_true")
    parser.add_argument("--results", type=Path)
    given = vars(parser.parse_args())
    results = given.pop("results")
    call, summary, _ = ours(**given)
    before, started, cpu = peak_megabytes(), time.monotonic(), time.process_time()
    made = call()
    told = {**given, **summary(made), "megabytes_before": round(before), "megabytes": round(peak_megabytes())}
    told["fit_wall"] = round(time.monotonic() - started, 1)
    told["fit_cpu"] = round(time.process_time() - cpu, 1)
    told["load"] = round(os.getloadavg()[0], 1)
    print(json.dumps(told), flush=True)
    if results is not None:
        add_row(results, "training", given, told)


if __name__ == "__main__":
    main()
