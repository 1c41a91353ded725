"""One drawing a step: CPU seconds above, peak memory below, a column an axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loginfer.files import atomic_path
from perf.growth.axes import AXES
from perf.growth.plan import FIGURES
from perf.growth.results import Record, cpu, megabytes
from perf.growth.series import Line, at, lines_along

__all__ = ["draw"]

ROWS = ((cpu, "CPU seconds"), (megabytes, "peak memory, MB"))
# Colours that those who see no red or no green can tell apart.
COLOURS = {"native": "#0072b2", "duckdb": "#d55e00", "spark": "#009e73", "": "#0072b2"}
OTHER = "#cc79a7"
DASHES = ("-", "--")


def draw(records: list[Record], folder: Path) -> list[Path]:
    """Draw `growth-STEP.svg` for each step that has figures on an axis, and return the files."""
    import matplotlib as mpl

    mpl.use("svg")
    # The same figures give the same file; text stays text.
    mpl.rcParams.update({"svg.hashsalt": "loginfer", "svg.fonttype": "none"})
    found = {line.step for axis in AXES for line in lines_along(records, axis)}
    steps = [step for step in FIGURES if step in found]
    return [_draw_step(step, records, folder / f"growth-{step}.svg") for step in steps]


def _draw_step(step: str, records: list[Record], file: Path) -> Path:
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, panels = plt.subplots(
        len(ROWS), len(AXES), figsize=(10, 5.6), sharex="col", sharey="row", layout="constrained"
    )
    seen: dict[Line, Any] = {}
    styles = _styles(step, records)
    for column, axis in enumerate(AXES):
        for line, points in lines_along(records, axis).items():
            if line.step != step:
                continue
            for row, (cost, _) in enumerate(ROWS):
                places = [at(record, axis) for record in points]
                costs = [cost(record) for record in points]
                (drawn,) = panels[row, column].plot(places, costs, marker="o", ms=4, **styles[line])
                seen.setdefault(line, drawn)
        panels[-1, column].set_xlabel(axis)
    for row, (_, label) in enumerate(ROWS):
        panels[row, 0].set_ylabel(label)
    for panel in panels.flat:
        panel.set(xscale="log", yscale="log")
        panel.grid(alpha=0.3)
        for axis, steps in ((panel.xaxis, (1,)), (panel.yaxis, (1, 2, 5))):
            axis.set_major_locator(LogLocator(subs=steps))
            axis.set_major_formatter(lambda value, _: _short(value))
            axis.set_minor_formatter(NullFormatter())
    ordered = [line for line in styles if line in seen]
    figure.legend(
        [seen[line] for line in ordered],
        [line.label for line in ordered],
        loc="outside lower center",
        ncols=min(len(ordered), 4),
        frameon=False,
    )
    with atomic_path(file, force=True) as part:
        figure.savefig(part, format="svg", metadata={"Date": None})
    plt.close(figure)
    return file


def _styles(step: str, records: list[Record]) -> dict[Line, dict[str, str]]:
    """Return how each line looks: a colour an engine, a dash a part of the step.

    Where no engine matters, parts have colours of their own, too.
    """
    lines = dict.fromkeys(line for axis in AXES for line in lines_along(records, axis) if line.step == step)
    parts = list(dict.fromkeys(line.what for line in lines))
    styles = {}
    for line in lines:
        place = parts.index(line.what)
        colour = COLOURS[line.engine] if line.engine or not place else OTHER
        styles[line] = {"color": colour, "linestyle": DASHES[place]}
    return styles


def _short(value: float) -> str:
    """Return a number as people say it: 300k, 10M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
