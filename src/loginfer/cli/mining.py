"""Mining that is watched: progress and the best rules so far, snapshots, and Ctrl-C."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from loginfer.cli.common import console, counted, note, on_terminal

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.kg import KnowledgeGraph
    from loginfer.logic.scored import ScoredRule, ZeroRule
    from loginfer.systems.rules.mining import Miner, Mining
    from loginfer.systems.rules.values import MinedRules

__all__ = ["best_rules", "by_length", "by_shape", "watched"]

# Seconds between two looks at the rules on a terminal.
PAUSE = 1.0
# However many rules there are, looking at them takes one of so many seconds at most.
SPARING = 10
# Seconds before the first line where nobody looks; the pauses between lines double up to the longest.
FIRST_LINE, LONGEST_PAUSE = 5.0, 60.0
# So many of the best rules are shown while mining.
BEST = 5


def watched(
    miner: Miner,
    benchmark: Benchmark,
    snapshots: Sequence[float] = (),
    keep: Callable[[float, MinedRules], None] | None = None,
) -> tuple[Mining, bool]:
    """Mine, and show how it goes on; return the mining, and whether Ctrl-C ended it.

    Parameters
    ----------
    miner
        What mines.
    benchmark
        What it may see.
    snapshots
        Seconds after which the rules are kept.
    keep
        Called with the seconds and the rules.
    """
    started = time.monotonic()
    left = list(snapshots)
    with _shown(benchmark.graph) as tell:
        mining = miner.begin(benchmark)
        try:
            going = True
            while going:
                going = mining.advance()
                elapsed = time.monotonic() - started
                while keep is not None and left and (elapsed >= left[0] or not going):
                    keep(left.pop(0), mining.rules())
                tell(mining, elapsed)
        except (KeyboardInterrupt, SystemError) as error:
            # One that came in the way of a compiled kernel is the cause of a SystemError.
            if not _caused_by_interruption(error):
                raise
            return mining, True
    return mining, False


def _caused_by_interruption(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


# -- what is shown meanwhile -----------------------------------------------------------------------


def _shown(graph: KnowledgeGraph) -> _Lines | _Screen:
    return _Screen(graph) if on_terminal(sys.stderr) else _Lines()


class _Lines:
    """A line now and then, where nobody looks."""

    def __init__(self) -> None:
        self._pause = self._next = FIRST_LINE

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, mining: Mining, elapsed: float) -> None:
        if elapsed < self._next:
            return
        note(f"{elapsed:.0f} s: {_progress(mining)}, {counted(len(mining.rules()), 'rule')} found")
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._next = elapsed + self._pause


class _Screen:
    """A bar, the number of rules, and the best of them, on a terminal."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        from rich.live import Live

        self._graph = graph
        self._live = Live(console=console(stderr=True), transient=True, auto_refresh=False)
        self._next = 0.0

    def __enter__(self) -> _Screen:
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.__exit__(*error)

    def __call__(self, mining: Mining, elapsed: float) -> None:
        if elapsed < self._next:
            return
        before = time.monotonic()
        self._live.update(self._drawn(mining, elapsed), refresh=True)
        self._next = elapsed + max(PAUSE, SPARING * (time.monotonic() - before))

    def _drawn(self, mining: Mining, elapsed: float) -> Any:
        from rich.console import Group
        from rich.padding import Padding
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        from loginfer.cli.mined import rule_text

        found = mining.rules()
        _, done, total = mining.progress()
        lines: list[Any] = [
            Text(f"{_progress(mining)}; {counted(len(found), 'rule')} found; {elapsed:.0f} s"),
            Padding(ProgressBar(total=total, completed=done, width=60, pulse=total is None), 0),
        ]
        for rule in best_rules(found, self._graph, BEST):
            text = f"  {rule.confidence or 0:.4f}  {rule_text(rule, short=True)}"
            lines.append(Text(text, overflow="ellipsis", no_wrap=True))
        return Group(*lines)


def _progress(mining: Mining) -> str:
    what, done, total = mining.progress()
    return f"{what} {done:,}" if total is None else f"{what} {done:,} of {total:,}"


# -- what was found --------------------------------------------------------------------------------


def best_rules(found: MinedRules, graph: KnowledgeGraph, count: int) -> list[ScoredRule | ZeroRule]:
    """Return the best rules, by confidence, then by correct predictions."""
    import numpy as np

    from loginfer.systems.rules.texts import path_rule

    paths = found.paths
    places = np.arange(len(paths))
    if len(paths) > count:
        # Only those are put in order that can be among the best.
        least = np.partition(paths.confidence, len(paths) - count)[len(paths) - count]
        places = np.flatnonzero(paths.confidence >= least)
    places = places[paths.take(places).best_first][:count]
    rules: list[ScoredRule | ZeroRule] = [path_rule(paths, place, graph) for place in places.tolist()]
    others = sorted(found.others, key=lambda rule: (-(rule.confidence or 0), -(rule.correct or 0)))[:count]
    return sorted([*rules, *others], key=lambda rule: -(rule.confidence or 0))[:count]


def by_length(found: MinedRules) -> dict[str, int]:
    """Return how many rules there are with so many atoms in the body."""
    import numpy as np

    lengths = [*found.paths.length.tolist(), *(len(scored.rule.atoms) for scored in found.others)]
    return {str(n): int(count) for n, count in zip(*np.unique(lengths, return_counts=True), strict=True)}


def by_shape(found: MinedRules) -> dict[str, int]:
    """Return how many rules there are of each shape and length, in words."""
    import numpy as np

    from loginfer.systems.rules.values import BOTH, NONE

    paths = found.paths
    shapes = {
        "h(X,Y), closed path": paths.variables == BOTH,
        "h(X,c), path that ends in a constant": (paths.variables != BOTH) & (paths.end_constant != NONE),
        "h(X,c), open path": (paths.variables != BOTH) & (paths.end_constant == NONE) & (paths.length > 0),
        "h(X,c), empty body": paths.length == 0,
    }
    counts: dict[str, int] = {}
    for shape, chosen in shapes.items():
        for length in np.unique(paths.length[chosen]).tolist():
            atoms = "" if length == 0 else f" of length {length}"
            counts[f"{shape}{atoms}"] = int(np.count_nonzero(chosen & (paths.length == length)))
    for length in sorted({len(scored.rule.atoms) for scored in found.others}):
        number = sum(len(scored.rule.atoms) == length for scored in found.others)
        counts[f"other shapes, {counted(length, 'atom')}"] = number
    return counts
