"""The page about what systems really learn: beside shortcuts, rule by rule, edit by edit, and against theory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Origins
from loginfer.benchmark.negatives.methods import METHODS, NEAR_MISSES, QUERY, SOURCES
from loginfer.logic.patterns import SHORT_NAMES
from loginfer.logic.subrules import EDITS
from loginfer.report import facts, vega
from loginfer.report.collection import Cell
from loginfer.report.paper import Answer, benchmark_parts, expressiveness, theory
from loginfer.report.statistics import decisions_of
from loginfer.report.values import Chart, Choice, DataFile, Page, Picker, loaded_rows

# A system has learned more than the best shortcut if it is at least so far above it.
MARGIN = 0.10
# They learn nothing: the paper's baseline, and the oracle, which knows the rules.
REFERENCES = ("simpbl", "oracle")

Outcome = Literal["learned", "not shown", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Standing:
    """A system on a benchmark, beside the best shortcut there.

    Parameters
    ----------
    group, method
        Graph and pattern, and the method for negatives.
    cell
        The runs.
    value
        Balanced accuracy, the mean over the seeds.
    shortcut
        The best shortcut, see `shortcut_figures`; None where that is not known.
    """

    group: str
    method: str
    cell: Cell
    value: float
    shortcut: facts.ShortcutFigure | None

    @property
    def best(self) -> float | None:
        """The balanced accuracy of the best shortcut."""
        return None if self.shortcut is None else self.shortcut.value

    @property
    def over(self) -> float | None:
        """By how much the system is above the best shortcut."""
        return None if self.best is None else self.value - self.best

    @property
    def learned(self) -> Outcome:
        """Whether the system has shown that it learned more than a shortcut."""
        if self.best is None or self.best > 1 - MARGIN:
            return "cannot tell"
        return "learned" if round(self.value - self.best, 9) >= MARGIN else "not shown"


def standings_of(context: facts.ReportContext, groups: facts.Groups) -> list[Standing]:
    """Return every system on every benchmark that has a balanced accuracy, in the report's order."""
    standings = []
    for group, methods in groups.items():
        for method, cells in methods.items():
            shortcut = next(iter(facts.shortcut_figures(context, next(iter(cells.values())).benchmark)), None)
            for cell in cells.values():
                value = cell.mean("balanced_accuracy")
                if value is not None:
                    standings.append(Standing(group, method, cell, value, shortcut))
    return standings


def hardest(methods: Sequence[str]) -> str | None:
    """Return the method that says most about what was learned; None if no hard method is among them."""
    hard = sorted((method for method in METHODS.values() if method.hard), key=lambda method: -method.rank)
    return next((name for method in hard for name in method.names if name in methods), None)


def outcome(can: Answer, learned: Outcome) -> tuple[str, str]:
    """Return how theory and figures agree: the CSS class, and what it means."""
    if learned == "cannot tell":
        return "open", "a shortcut solves this benchmark: it cannot tell"
    if can == "unknown":
        return "open", "theory is silent"
    if can == "yes":
        return ("agree", "can, and does") if learned == "learned" else ("missed", "can, but does not show it")
    if learned == "learned":
        return "disagree", "cannot, yet is above all shortcuts"
    return "agree", "cannot, and does not"


def rule_rows(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return for each rule and system which share of its conclusions and of its negatives is accepted."""
    rows = []
    for cell in cells:
        for counts in cell.metrics[0].get("breakdown", {}).get("rules", ()):
            conclusions, negatives = counts["tp"] + counts["fn"], counts["fp"] + counts["tn"]
            if conclusions and negatives:
                recall, accepted = counts["tp"] / conclusions, counts["fp"] / negatives
                gap, rule = round(recall - accepted, 4), (counts["rule"], facts.rule_label(counts["rule"]))
                rows.append((cell.system, *rule, conclusions, round(recall, 4), negatives, round(accepted, 4), gap))
    return loaded_rows("rules-and-near-misses", rows)


# The column of the positives.
CONCLUSIONS = "conclusions"
# Where a negative came from, as the page says it, in the order of the columns.
EDIT_NAMES = {
    "replace": "another relation",
    "reverse": "reversed",
    "drop": "atom missing",
    "drop-inequality": "equal constants",
}
_SOURCE_NAMES = {"sub-rule": "sub-rule", "position": "other constant", "relevance": "any constants",
                 "object": "any object", "subject": "any subject", "relation": "any relation"}  # fmt: skip
KINDS = (CONCLUSIONS, *EDIT_NAMES.values(), *_SOURCE_NAMES.values(), "other")


def edit_rows(context: facts.ReportContext, name: str, cells: Sequence[Cell]) -> dict[str, Any]:
    """Return for each system the shares of conclusions and of each kind of negatives that it accepts.

    No rows without the benchmark's folder, or where the origins of its negatives are not known.
    """
    benchmark = context.benchmark(name)
    method = cells[0].method if cells else None
    origins = None
    if benchmark is not None and method is not None and method in benchmark.negatives:
        origins = benchmark.negatives[method].origins.get("test")
    rows: list[tuple[Any, ...]] = []
    if origins is not None and len(origins):
        kinds = _kinds(origins)
        for cell in cells:
            rows += _edit_rows_of(cell, kinds)
    return loaded_rows("edits", rows)


def _edit_rows_of(cell: Cell, kinds: npt.NDArray[np.int64]) -> list[tuple[Any, ...]]:
    decisions = decisions_of(cell.first)
    positive, negative = decisions.predicted_positive, decisions.predicted_negative
    if positive is None or negative is None or len(negative) != len(kinds):
        return []
    sets = [(0, positive)] if len(positive) else []
    sets += [(kind, negative[kinds == kind]) for kind in np.unique(kinds).tolist()]
    return [(cell.system, KINDS[kind], len(mask), round(float(mask.mean()), 4), kind) for kind, mask in sets]


def _kinds(origins: Origins) -> npt.NDArray[np.int64]:
    """Return int64[n]: the kind of each negative, as an index into `KINDS`."""
    by_edit = [KINDS.index(EDIT_NAMES[name]) if name in EDIT_NAMES else -1 for name in EDITS]
    by_source = [
        KINDS.index(_SOURCE_NAMES[name]) if name in _SOURCE_NAMES else KINDS.index("other") for name in SOURCES
    ]
    edited = np.array(by_edit, dtype=np.int64)[origins.edit]
    return np.where(edited >= 0, edited, np.array(by_source, dtype=np.int64)[origins.source])


SHORTCUT = "best shortcut"
# Of this many systems each line has its name beside it; a name takes this share of the plot's height.
_LABELLED, _LABEL = 10, 0.036


# -- systems beside shortcuts -------------------------------------------------------------------


def slope_chart(standings: Sequence[Standing], groups: Sequence[str], methods: Sequence[str],
                systems: Sequence[str]) -> Chart:  # fmt: skip
    """Return the systems from method to method, with the best shortcut under them."""
    rows: list[tuple[Any, ...]] = []
    seen: set[tuple[str, str]] = set()
    for s in standings:
        over = facts.rounded(s.over)
        about = _about_shortcut(s)
        rows.append((s.group, "system", s.cell.system, s.method, facts.rounded(s.value), _twins(s), over, *about))
        if s.best is not None and (s.group, s.method) not in seen:
            seen.add((s.group, s.method))
            rows.append((s.group, "shortcut", SHORTCUT, s.method, facts.rounded(s.best), None, None, *about))
    bottom = _bottom([row[4] for row in rows])
    labels = {place: at for group in groups for place, at in _label_heights(rows, group, bottom).items()}
    return Chart.declared(
        "slopes",
        _slopes(methods, systems, bottom, _undefined(standings)),
        [(*row, labels.get((row[0], row[2], row[3]))) for row in rows],
        Choice.among("group", groups, "benchmark"),
        without=_undefined(standings),
    )


def _label_heights(rows: Sequence[tuple[Any, ...]], group: str, bottom: float) -> dict[tuple[str, str, str], float]:
    """Return where the names of a group's lines stand, at their last points and so far apart that one can read them."""
    last = {row[2]: row for row in sorted(rows, key=lambda row: facts.method_order(row[3])) if row[0] == group}
    heights: dict[tuple[str, str, str], float] = {}
    lowest = 1.0 + _LABEL * (1 - bottom)
    for row in sorted(last.values(), key=lambda row: (facts.method_order(row[3]), -row[4])):
        lowest = min(row[4], lowest - _LABEL * (1 - bottom))
        heights[row[0], row[2], row[3]] = facts.rounded(lowest) or 0.0
    return heights


def _bottom(values: Sequence[float]) -> float:
    """Return where the axis begins: at 40 %, or lower for a system that is worse than chance."""
    return min(0.4, int(20 * min(values)) / 20)


def _about_shortcut(standing: Standing) -> tuple[str | None, str | None]:
    """Return the name and the interval of the best shortcut."""
    shortcut = standing.shortcut
    return (None, None) if shortcut is None else (shortcut.name, shortcut.interval_text)


def _twins(standing: Standing) -> float | None:
    return facts.rounded(standing.cell.mean("twin_accuracy"))


def _undefined(standings: Sequence[Standing]) -> tuple[str, ...]:
    """Return the field of twin accuracy, unless conclusions have twins anywhere."""
    return () if any(_twins(s) is not None for s in standings) else ("twins",)


def _slopes(methods: Sequence[str], systems: Sequence[str], bottom: float, without: Sequence[str]) -> dict[str, Any]:
    # A plain colour: an encoded one would join the legend of the systems.
    shortcut: dict[str, Any] = {
        "x": vega.method_axis(methods, scale={"domain": list(methods)}),
        "y": vega.share_axis("value", "balanced accuracy", scale={"domain": [bottom, 1]}),
        "tooltip": vega.tooltip("slopes", without=without),
    }
    system = {**shortcut, **vega.picked_systems(systems, "name")}
    pick: dict[str, Any] = {"params": vega.pick_in_legend("name")}
    names: list[dict[str, Any]] = []
    if len(systems) <= _LABELLED:
        pick, system = {}, {**shortcut, "color": vega.system_colours(systems, field="name") | {"legend": None}}
        height = {**shortcut["y"], "field": "label"}
        at_end = {"x": shortcut["x"], "y": height, "text": vega.nominal("name")}
        text = {"type": "text", "align": "left", "dx": 10, "fontSize": 12}
        short = {"calculate": "datum.kind === 'shortcut' ? 'shortcut' : datum.name", "as": "name"}
        names = [{"transform": [*vega.filtered("isValid(datum.label)"), short], "mark": text, "encoding": at_end}]
    of_shortcuts, of_systems = (f"datum.kind === '{kind}'" for kind in ("shortcut", "system"))
    dashed = {"type": "line", "strokeDash": [6, 4], "strokeWidth": 3, "color": vega.GREY,
              "point": {"color": vega.GREY, "size": 70, "shape": "diamond"}}  # fmt: skip
    area = {"type": "area", "opacity": 0.16, "color": vega.GREY, "clip": True}
    layers = [
        vega.layer(area, of_shortcuts, **shortcut, y2={"datum": bottom}),
        vega.layer(dashed, of_shortcuts, **shortcut),
        {"transform": vega.filtered(of_systems), **pick, **vega.layer({"type": "line", "strokeWidth": 2}, **system)},
        vega.layer(vega.points(size=55), of_systems, **system),
        *names,
    ]
    return vega.sized({"layer": layers}, height=420)


# -- above the best shortcut --------------------------------------------------------------------


def _red_to_blue(domain: Sequence[float], middle: str) -> dict[str, Any]:
    """Return a scale of colours from red over another one to blue."""
    return {**vega.scale_of(domain, ("#b2182b", middle, "#2166ac")), "interpolate": "rgb", "clamp": True}


def margin_chart(standings: Sequence[Standing], groups: Sequence[str], methods: Sequence[str],
                 systems: Sequence[str]) -> Chart:  # fmt: skip
    """Return by how much each system is above the best shortcut, for one method at a time."""
    rows = [
        (s.method, s.cell.system, s.group, facts.rounded(s.over), facts.rounded(s.value), _twins(s),
         facts.rounded(s.best), *_about_shortcut(s))
        for s in standings
        if s.over is not None
    ]  # fmt: skip
    legend = {"format": "+.0%", "orient": "bottom"}
    scale = _red_to_blue((-0.4, 0, 0.4), "#f7f7f7")
    colour = vega.quantity("over", title="above the best shortcut", legend=legend, scale=scale)
    present = {row[0] for row in rows}
    return Chart.declared(
        "margins",
        vega.heat_map(
            "margins", vega.heat_axes(("group", groups), ("system", systems)), colour, "abs(datum.over) > 0.22"
        ),
        rows,
        Choice("method", "negatives", tuple((m, facts.method_words(m)) for m in methods if m in present)),
        without=_undefined(standings),
    )


# -- rule by rule -------------------------------------------------------------------------------


def rule_chart(systems: Sequence[str]) -> Chart:
    """Return the conclusions and the negatives of each rule that a system accepts; rows are loaded."""
    bottom = {"orient": "bottom"}
    size = vega.quantity("conclusions", title="conclusions in test", legend=bottom, scale={"range": [25, 260]})
    scale = _red_to_blue((-0.2, 0.4, 1), "#e8c35a")
    rules = vega.layer(
        vega.points(opacity=0.7),
        x=vega.share_axis("accepted", "accepted of the rule's negatives", scale=vega.UNIT),
        y=vega.share_axis("recall", "accepted of its conclusions", scale=vega.UNIT),
        size=size,
        color=vega.quantity("gap", title="difference", legend={**bottom, "format": "+.0%"}, scale=scale),
        tooltip=vega.tooltip("rules-and-near-misses"),
    )
    spec = vega.sized({"layer": [vega.diagonal("a", "b"), rules]}, height=380)
    return Chart.declared("rules-and-near-misses", spec, None, Choice.among("system", systems))


def edit_chart(systems: Sequence[str]) -> Chart:
    """Return which kinds of negatives each system accepts; rows are loaded."""
    axes = vega.heat_axes(("kind", KINDS), ("system", systems))
    # Kinds that a benchmark does not have would be empty columns.
    axes["x"] = {**axes["x"], "sort": {"field": "place", "op": "min"}}
    axes["x"].pop("scale")
    legend = {"format": ".0%", "orient": "bottom"}
    colour = vega.quantity("share", title="accepted", legend=legend, scale={"domain": [0, 1], "scheme": "blues"})
    return Chart.declared("edits", vega.heat_map("edits", axes, colour, "datum.share > 0.55"))


def pages(context: facts.ReportContext) -> Iterator[Page | DataFile]:
    """Make the page and its data, if some benchmark has near misses or several kinds of negatives."""
    groups = facts.grouped(context.collection)
    if not any(len(methods) > 1 or {*methods} & {*NEAR_MISSES.names} for methods in groups.values()):
        return
    standings = standings_of(context, groups)
    if not standings:
        return
    options: list[tuple[str, str]] = []
    edits = False
    for benchmark in [] if context.collection.light else _detailed_benchmarks(groups):
        path = context.data_file("learned", benchmark)
        data = _benchmark_data(context, benchmark)
        options.append((context.labels[benchmark], path))
        edits = edits or bool(data["charts"]["edits"]["rows"])
        yield DataFile(path, data)
    yield _page(context, groups, standings, options, edits)


def _detailed_benchmarks(groups: facts.Groups) -> list[str]:
    """Return the benchmarks that are shown rule by rule: for each group its hardest negatives first."""
    benchmarks = []
    for methods in groups.values():
        order = [m for m in (hardest(list(methods)),) if m]
        order += [m for m in methods if m in (NEAR_MISSES.names[-1], QUERY.name)]
        benchmarks += [next(iter(methods[m].values())).benchmark for m in dict.fromkeys(order)]
    return list(dict.fromkeys(benchmarks))


def _benchmark_data(context: facts.ReportContext, benchmark: str) -> dict[str, Any]:
    cells = context.collection.of_benchmark(benchmark)
    edits = edit_rows(context, benchmark, cells)
    missing = "" if edits["rows"] else " Where its negatives came from is not known: give its folder, too."
    return {
        "charts": {"rules-and-near-misses": rule_rows(cells), "edits": edits},
        "texts": {"chosen": f"{benchmark}: first seed of each system.{missing}"},
    }


def _page(
    context: facts.ReportContext,
    groups: facts.Groups,
    standings: Sequence[Standing],
    options: Sequence[tuple[str, str]],
    edits: bool,
) -> Page:
    systems = context.collection.systems_of(s.cell for s in standings)
    methods = sorted({s.method for s in standings}, key=facts.method_order)
    first = sorted(methods, key=lambda method: (method != hardest(methods), facts.method_order(method)))
    names = [group for group in groups if any(s.group == group for s in standings)]
    # A line needs two ends.
    several = [group for group in names if len(groups[group]) > 1]
    falling = [s for s in standings if s.group in several]
    measured = any(s.best is not None for s in standings)
    mapped = measured and len({s.cell.benchmark for s in standings}) >= vega.HEAT
    content = {
        "margin": round(100 * MARGIN),
        "measured": measured,
        "slopes": slope_chart(falling, several, methods, systems) if several else None,
        "margins": margin_chart(standings, names, first, systems) if mapped else None,
        "picker": Picker("benchmark", tuple(options)),
        # Systems that learn come first in the menu.
        "rules": rule_chart(sorted(systems, key=REFERENCES.__contains__)) if options else None,
        "edits": edit_chart(systems) if edits else None,
        "theory": _theory(standings, names, systems) if measured else None,
    }
    title = "What do systems really learn?"
    return Page("learned.html", title, "learned.html", content, "learned")


def _hardest_of(standings: Sequence[Standing], groups: Sequence[str]) -> dict[str, str]:
    methods = {}
    for group in groups:
        method = hardest([s.method for s in standings if s.group == group and s.best is not None])
        if method is not None:
            methods[group] = method
    return methods


# -- theory -------------------------------------------------------------------------------------


def _theory(standings: Sequence[Standing], groups: Sequence[str], systems: Sequence[str]) -> dict[str, Any] | None:
    """Return theory against figures: a row for each system, a column for each graph and pattern."""
    patterns = _patterns(standings)
    methods = {g: method for g, method in _hardest_of(standings, groups).items() if g in patterns}
    by_cell = {(s.cell.system, s.group): s for s in standings if methods.get(s.group) == s.method}
    rows = []
    for system in systems:
        cells = [_cell(by_cell.get((system, group)), patterns[group]) for group in methods]
        if any(cell is not None for cell in cells):
            rows.append((system, cells))
    if not rows:
        return None
    listed = {system for system, _ in rows}
    reasons = [
        reason for (name, _), reason in theory().items()
        if any(s.cell.name == name and s.cell.system in listed for s in standings)
    ]  # fmt: skip
    present = {patterns[group] for group in methods}
    return {
        "columns": [(group, methods[group]) for group in methods],
        "rows": rows,
        "reasons": [
            (r.system, SHORT_NAMES[r.pattern], r.can, r.why, r.source) for r in reasons if r.pattern in present
        ],
    }


def _cell(standing: Standing | None, pattern: str) -> dict[str, str] | None:
    if standing is None or standing.over is None:
        return None
    answer = expressiveness(standing.cell.name, pattern)
    if answer is None:
        return None
    colour, meaning = outcome(answer.can, standing.learned)
    return {
        "class": colour,
        "can": answer.can,
        "value": facts.share_text(standing.value),
        "over": facts.share_text(standing.over, sign=True),
        "meaning": meaning,
        "why": f"{answer.why} ({answer.source})",
    }


def _patterns(standings: Sequence[Standing]) -> dict[str, str]:
    """Return the short name of each group's pattern; only benchmarks of the suite have one in their name."""
    names = {s.group: benchmark_parts(s.cell.first.benchmark) for s in standings}
    return {group: parts[1] for group, parts in names.items() if parts and parts[1] in SHORT_NAMES}
