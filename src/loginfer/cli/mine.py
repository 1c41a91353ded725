"""`loginfer mine`: find rules in a benchmark's training triples, or in a graph.

While it mines, it shows progress and the best rules so far, and writes snapshots; Ctrl-C ends it and keeps the rules.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli import common
from loginfer.cli.common import counted, note, print_json, print_table, say
from loginfer.errors import InputError, UnknownNameError, caused_by_interruption
from loginfer.files import refuse_to_overwrite
from loginfer.kg.formats.base import ReadOptions

if TYPE_CHECKING:
    from rich.live import Live

    from loginfer.benchmark import Benchmark
    from loginfer.kg import KnowledgeGraph
    from loginfer.systems.registry import SystemEntry
    from loginfer.systems.rules.mined import MinedRules, Miner, Mining


# So many of the best rules are shown at the end.
BEST = 10


@common.gather_reading
def mine(
    *,
    source: Annotated[
        str,
        typer.Argument(
            metavar="BENCH|KG",
            help="A benchmark's folder, of which only P_train is mined; or a graph: a name from "
            "`loginfer kg list`, or a file or archive of triples.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write the rules to.")],
    miner: Annotated[str, typer.Option("--miner", "-m", help="exact, anyburl, rulen, contrast or external.")] = "exact",
    max_length: Annotated[int | None, typer.Option("--max-length", help="Atoms in a body, at most.")] = None,
    min_support: Annotated[int | None, typer.Option("--min-support", help="Correct predictions, at least.")] = None,
    min_confidence: Annotated[float | None, typer.Option("--min-confidence", help="Confidence, at least.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="Anytime miners: mine for so long.")] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Anytime miners: so many steps, the same rules each time.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of all randomness; 0 by default.", min=0)] = None,
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting of the miner; repeatable. See `systems show`."),
    ] = None,
    negatives: Annotated[
        str | None, typer.Option("--negatives", "-n", help="Whose negatives a miner may see, if there are several.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="anyburl or arrow; by default anyburl if it can hold the rules.")
    ] = None,
    snapshots: Annotated[
        str | None, typer.Option("--snapshots", help="Also write the rules after so many seconds, e.g. 10,50,100.")
    ] = None,
    jar: Annotated[Path | None, typer.Option("--jar", help="With --miner external: an AnyBURL jar to run.")] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", "-r", help="With --miner external: a rule file to read.")
    ] = None,
    reading: ReadOptions,
    force: common.ForceOption = False,
    full_names: common.FullNamesOption = False,
    json: common.JsonOption = False,
) -> None:
    """Mine rules and write them to a file, best first.

    Ctrl-C ends the mining; the rules found so far are written.
    """
    from loginfer.benchmark import load_benchmark
    from loginfer.settings import configure
    from loginfer.systems.rules.mine import Mined, is_benchmark, miner_named, view_to_mine
    from loginfer.systems.rules.texts import MINED_DIALECTS

    entry = miner_named(miner)
    if seconds is not None and steps is not None:
        raise InputError("--seconds and --steps do not go together", hint="give one of them")
    snapshot_times = _snapshots(snapshots)
    options: dict[str, Any] = {
        "max_length": max_length, "min_support": min_support, "min_confidence": min_confidence,
        "seconds": seconds, "steps": steps, "seed": seed, "jar": jar, "rules": rules,
    }  # fmt: skip
    settings = _settings(entry, options, set or [], snapshot_times)
    if to is not None and to.casefold() not in MINED_DIALECTS:
        raise UnknownNameError("dialect for mined rules", to, MINED_DIALECTS, where="--to")
    files = {second: out.with_name(f"{out.stem}-{second:g}{out.suffix}") for second in snapshot_times}
    for path in (out, *files.values()):
        refuse_to_overwrite(path, force)
        if path.is_dir():
            raise InputError(f"`{path}` is a folder", where="--out", hint="give the name of a file")
        if path.exists() and Path(source).exists() and path.samefile(source):
            raise InputError(f"`{path}` is what is mined", where="--out", hint="choose another name")
    configured: Miner = configure(entry.load(), settings)
    if is_benchmark(source) and reading != ReadOptions():
        raise InputError(f"`{source}` is a benchmark, which is read as it is", hint="give these options to `build`")
    value = load_benchmark(source) if is_benchmark(source) else common.open_kg(source, reading).graph
    benchmark = view_to_mine(value, negatives, configured.needs_negatives, source)
    snapshot_files: list[str] = []

    def write(mined: MinedRules, path: Path) -> str:
        dialect, notes = Mined(mined, benchmark.graph).save(path, to, force=force)
        for message in notes:
            note(message)
        return dialect

    def keep(second: float, mined: MinedRules) -> None:
        write(mined, files[second])
        snapshot_files.append(str(files[second]))

    started = time.monotonic()
    mining, interrupted = mine_with_progress(configured, benchmark, snapshot_times, keep)
    mined = mining.rules()
    spent = time.monotonic() - started
    for message in getattr(mining, "notes", ()):
        note(message)
    dialect = write(mined, out) if len(mined) or not interrupted else None
    if dialect == "arrow" and mined.distinct and len(mined.paths):
        if to is None:
            note("written in arrow: names or shapes of these rules cannot be expressed in AnyBURL's format")
        note("in arrow nothing says that different variables stand for different entities, as they do here")
    answer: dict[str, Any] = {
        "miner": entry.name,
        "rules": len(mined),
        "by_length": by_length(mined),
        "seconds": round(spent, 3),
        "out": str(out) if dialect else None,
        "interrupted": interrupted,
    }
    if snapshot_files:
        answer["snapshots"] = snapshot_files
    if getattr(mining, "jar_sha256", None) is not None:
        answer["jar_sha256"] = mining.jar_sha256  # type: ignore[attr-defined]
    if json:
        print_json(answer)
    else:
        _print(answer, mined, benchmark)
    if interrupted:
        outcome = f"the {counted(len(mined), 'rule')} found so far: {out}" if len(mined) else "no rule was found yet"
        note(f"mining was interrupted; {outcome}")
        raise typer.Exit(common.INTERRUPTED)


# -- what to mine, and how -------------------------------------------------------------------------


def _settings(
    entry: SystemEntry, options: Mapping[str, Any], pairs: list[str], snapshots: Sequence[float]
) -> dict[str, Any]:
    """Return the settings that options and --set give; settings that the miner does not have are refused."""
    from loginfer.cli.evaluate import settings_given
    from loginfer.settings import settings_of

    declared = settings_of(entry.load())
    settings: dict[str, Any] = settings_given(pairs)
    for name, value in options.items():
        if value is None:
            continue
        option = "--" + name.replace("_", "-")
        if name not in declared:
            hint = f"it has the settings {', '.join(declared)} (--set NAME=VALUE)"
            raise InputError(f"{option} is no option of the miner `{entry.name}`", hint=hint)
        if name in settings:
            raise InputError(f"`{name}` is given twice: by {option} and by --set")
        # `10.0` becomes `10`, for miners that count in whole seconds.
        settings[name] = f"{value:g}" if isinstance(value, float) else str(value)
    timed = "seconds" in declared and "steps" not in settings
    if snapshots and timed and "seconds" not in settings:
        settings["seconds"] = f"{snapshots[-1]:g}"
    limit = float(settings["seconds"]) if timed and _is_number(settings.get("seconds")) else None
    if snapshots and limit is not None and snapshots[-1] > limit:
        raise InputError(f"there is no snapshot at {snapshots[-1]:g} s of a mining of {limit:g} s", where="--snapshots")
    return settings


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and float(text) >= 0
    except ValueError:
        return False


def _snapshots(text: str | None) -> list[float]:
    if text is None:
        return []
    times = []
    for part in text.split(","):
        if not _is_number(part.strip()) or not 0 < float(part) < float("inf"):
            raise InputError(
                f"`{part.strip()}` is no number of seconds", where="--snapshots", hint="write e.g. 10,50,100"
            )
        times.append(float(part))
    return sorted(dict.fromkeys(times))


# -- what is shown ------------------------------------------------------------------------------


def _print(answer: Mapping[str, Any], mined: MinedRules, benchmark: Benchmark) -> None:
    from loginfer.cli.rules import print_rules
    from loginfer.systems.rules.mine import Mined

    if len(mined):
        rows = [(f"{count:,}", shape) for shape, count in by_shape(mined).items()]
        print_table(("rules", ""), rows, numbers=("rules",))
        print_rules(Mined(mined, benchmark.graph).best(BEST), common.ShownNames(benchmark.graph))
    where = f", written to {answer['out']}" if answer["out"] else ""
    say(f"{counted(len(mined), 'rule')} in {answer['seconds']:.1f} s{where}")


# -- progress --------------------------------------------------------------------------------------

# Seconds between two looks at the rules on a terminal.
PAUSE = 1.0
# At most one of so many seconds is spent on showing the rules, however many there are.
SPARING = 10
# Seconds before the first line outside a terminal; pauses between lines double, up to the longest.
FIRST_LINE, LONGEST_PAUSE = 5.0, 60.0
# So many of the best rules are shown while mining.
MINING_BEST = 5


def mine_with_progress(
    miner: Miner,
    benchmark: Benchmark,
    snapshots: Sequence[float] = (),
    keep: Callable[[float, MinedRules], None] | None = None,
) -> tuple[Mining, bool]:
    """Mine and show progress; return the mining, and whether Ctrl-C ended it.

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
    pending = list(snapshots)
    display = _Display(benchmark.graph)
    with display.screen or contextlib.nullcontext():
        mining = miner.begin(benchmark)
        try:
            going = True
            while going:
                going = mining.advance()
                elapsed = time.monotonic() - started
                while keep is not None and pending and (elapsed >= pending[0] or not going):
                    keep(pending.pop(0), mining.rules())
                display.show(mining, elapsed)
        except (KeyboardInterrupt, SystemError) as error:
            if not caused_by_interruption(error):
                raise
            return mining, True
    return mining, False


class _Display:
    """Shows progress: on a terminal the best rules so far, elsewhere a line now and then."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self.screen: Live | None = None
        self._next = self._pause = FIRST_LINE
        if common.on_terminal(sys.stderr) and not common.quiet():
            from rich.live import Live

            self.screen = Live(console=common.console(stderr=True), transient=True, auto_refresh=False)
            self._next = 0.0

    def show(self, mining: Mining, elapsed: float) -> None:
        """Show how far it is, if it is time to."""
        if elapsed < self._next:
            return
        if self.screen is not None:
            before = time.monotonic()
            self.screen.update(self._picture(mining, elapsed), refresh=True)
            self._next = elapsed + max(PAUSE, SPARING * (time.monotonic() - before))
            return
        note(f"{elapsed:.0f} s: {_progress(mining)}, {counted(len(mining.rules()), 'rule')} found")
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._next = elapsed + self._pause

    def _picture(self, mining: Mining, elapsed: float) -> Any:
        """Return a bar, the number of rules, and the best of them."""
        from rich.console import Group
        from rich.padding import Padding
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        from loginfer.systems.rules.mine import Mined

        mined = mining.rules()
        _, done, total = mining.progress()
        lines: list[Any] = [
            Text(f"{_progress(mining)}; {counted(len(mined), 'rule')} found; {elapsed:.0f} s"),
            Padding(ProgressBar(total=total, completed=done, width=60, pulse=total is None), 0),
        ]
        best = Mined(mined, self._graph).best(MINING_BEST)
        for rule, text in zip(best, common.rule_texts(best), strict=True):
            lines.append(Text(f"  {rule.confidence or 0:.4f}  {text}", overflow="ellipsis", no_wrap=True))
        return Group(*lines)


def _progress(mining: Mining) -> str:
    what, done, total = mining.progress()
    return f"{what} {done:,}" if total is None else f"{what} {done:,} of {total:,}"


# -- rules in short --------------------------------------------------------------------------------


def by_length(mined: MinedRules) -> dict[str, int]:
    """Return how many rules there are with so many atoms in the body."""
    import numpy as np

    lengths = [*mined.paths.length.tolist(), *(len(scored.rule.atoms) for scored in mined.others)]
    return {str(n): int(count) for n, count in zip(*np.unique(lengths, return_counts=True), strict=True)}


def by_shape(mined: MinedRules) -> dict[str, int]:
    """Return how many rules there are of each shape and length, in words."""
    import numpy as np

    from loginfer.systems.rules.mined import BOTH, NONE

    paths = mined.paths
    shapes = {
        "h(X,Y), closed path": paths.variables == BOTH,
        "h(X,c), path that ends in a constant": (paths.variables != BOTH) & (paths.end_constant != NONE),
        "h(X,c), open path": (paths.variables != BOTH) & (paths.end_constant == NONE) & (paths.length > 0),
        "h(X,c), empty body": paths.length == 0,
    }
    counts: dict[str, int] = {}
    for shape, mask in shapes.items():
        for length in np.unique(paths.length[mask]).tolist():
            atoms = "" if length == 0 else f" of length {length}"
            counts[f"{shape}{atoms}"] = int(np.count_nonzero(mask & (paths.length == length)))
    for length in sorted({len(scored.rule.atoms) for scored in mined.others}):
        number = sum(len(scored.rule.atoms) == length for scored in mined.others)
        counts[f"other shapes, {counted(length, 'atom')}"] = number
    return counts
