"""AnyBURL on FB15k-237, one thread: three times the rules that the published program finds in 100 seconds.

What AnyBURL 23-1 finds (Java, one thread, cyclic rules of up to three atoms, acyclic ones of one, zero rules,
at least two correct predictions) is a figure measured elsewhere, not a run beside ours: it needs Java.
"""

from __future__ import annotations

from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

HERE = "perf.tasks.anyburl"
# Rules that AnyBURL 23-1 finds on FB15k-237 in so many seconds, on one thread.
PUBLISHED, SECONDS = 46_000, 100
# Times as many are wanted in the same time.
TIMES = 3


def mine(folder: str, rules: int) -> Any:
    """Prepare the graph. Each call mines until there are so many rules."""
    from loginfer import load_graph
    from loginfer.systems.rules.anyburl import AnyBURL
    from loginfer.systems.rules.mined import as_benchmark

    benchmark = as_benchmark(load_graph(folder), "FB15k-237")

    def call() -> Any:
        # More batches than will be needed.
        mining = AnyBURL(steps=100_000).begin(benchmark)
        while len(mining.rules()) < rules:
            mining.advance()
        return mining.rules()

    return call, summary


def summary(mined: Any) -> dict[str, int]:
    """Return how many rules of each shape there are."""
    from loginfer.systems.rules.mined import BOTH, NONE

    table = mined.paths
    acyclic = (table.variables != BOTH) & (table.length > 0)
    cyclic = {f"cyclic {n}": int(((table.variables == BOTH) & (table.length == n)).sum()) for n in range(1, 4)}
    return cyclic | {
        "AC1": int((acyclic & (table.end_constant != NONE)).sum()),
        "AC2": int((acyclic & (table.end_constant == NONE)).sum()),
        "zero": int((table.length == 0).sum()),
        "loops": len(mined.others),
    }


def tasks(space: Workspace) -> list[Task]:
    """Return the one task."""
    wanted = TIMES * PUBLISHED
    threads = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    arguments = {"folder": space.fb, "rules": wanted}
    case = Case(OURS, f"{HERE}:mine", arguments, seconds=SECONDS, megabytes=1000, environment=threads, limit=300)
    some = Case(OURS, f"{HERE}:mine", {"folder": space.fb, "rules": 1000}, environment=threads)
    name = f"AnyBURL: {wanted:,} rules of FB15k-237; published: {PUBLISHED:,} in {SECONDS} s"
    return [Task("anyburl", name, (case,), needs=("fb15k-237",), before=some)]
