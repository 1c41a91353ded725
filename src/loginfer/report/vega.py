"""Plots that several pages share, as Vega-Lite without data: colours, axes, heat maps, curves, bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loginfer.report.values import Chart, Choice, Rows

# Told apart also by people who do not see all colours, on white and on black; repeated after the last one.
PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c6d31",
    "#6a51a3", "#999999", "#b2182b", "#bcbd22", "#e7298a", "#66a61e", "#a6761d",
)  # fmt: skip


def system_colours(names: Sequence[str], *, field: str = "system", title: str = "system") -> dict[str, Any]:
    """Return the encoding that gives each name the same colour on all pages.

    Parameters
    ----------
    names
        All names of the report, in its order, not only those of one plot.
    field, title
        The field that holds the name, and the legend's title.
    """
    chosen = [PALETTE[place % len(PALETTE)] for place in range(len(names))]
    return {"field": field, "type": "nominal", "title": title, "scale": {"domain": list(names), "range": chosen}}


def percent_axis(title: str, *, zero: bool = False, **more: Any) -> dict[str, Any]:
    """Return axis and scale for shares between 0 and 1, shown in percent."""
    return {"type": "quantitative", "title": title, "axis": {"format": ".0%"}, "scale": {"zero": zero}, **more}


def sized(spec: dict[str, Any], *, height: int | dict[str, int] = 300) -> dict[str, Any]:
    """Return a plot as wide as its place on the page."""
    fitted = {"type": "fit-x", "contains": "padding"}
    return {"width": "container", "height": height, "autosize": fitted, **spec}


def heat_axes(across: tuple[str, Sequence[str]], down: tuple[str, Sequence[str]]) -> dict[str, Any]:
    """Return the encodings of both sides, each given by its field and all its names in their order.

    All names have a place, also those that the chosen rows do not have: a map keeps its shape.
    """

    def side(field: str, names: Sequence[str], axis: Mapping[str, Any]) -> dict[str, Any]:
        shown = {"scale": {"domain": list(names)}, "title": None, "axis": dict(axis)}
        return {"field": field, "type": "nominal", **shown}

    return {
        "x": side(*across, {"orient": "top", "labelAngle": -40, "labelLimit": 150}),
        "y": side(*down, {"labelLimit": 220}),
    }


def heat_map(
    axes: Mapping[str, Any],
    colour: Mapping[str, Any],
    text: str,
    dark: str,
    *,
    told: Sequence[Mapping[str, Any]],
    tooltip: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the plot.

    Parameters
    ----------
    axes, colour
        Encodings.
    text
        The field whose value is written into the cells.
    dark
        Vega's expression for cells that are dark, whose text is white.
    told, tooltip
        Transforms, and what a cell tells when it is pointed at.
    """
    ink = {"condition": {"test": dark, "value": "#ffffff"}, "value": "#111111"}
    return {
        # A step and not the width of the page: numbers stay readable, and a phone scrolls.
        "width": {"step": 64},
        "height": {"step": 25},
        "transform": list(told),
        "encoding": {**axes, "tooltip": list(tooltip)},
        "layer": [
            {"mark": {"type": "rect", "stroke": "#ffffff", "strokeWidth": 1}, "encoding": {"color": dict(colour)}},
            {
                "mark": {"type": "text", "fontSize": 12},
                "encoding": {"text": {"field": text, "type": "nominal"}, "color": ink},
            },
        ],
    }


# Height of a bar in a plot with one for each name.
BAR = 24

VERDICT_COLOURS: Mapping[str, str] = {
    "learned": "#009e73",
    "untested": "#56b4e9",
    "shortcut": "#d55e00",
    "in part": "#e69f00",
    "not learned": "#8a8f98",
    "not testable": "#cfd4da",
}

# Shapes alone have no colour, and the default one cannot be seen in the dark.
GREY = "#8a8f98"
_SHAPES = {"orient": "bottom", "symbolFillColor": GREY, "symbolStrokeColor": GREY}

_SHARE = {"type": "quantitative", "format": ".1%"}
_THRESHOLD = "#b2182b"


def verdict_colour(**more: Any) -> dict[str, Any]:
    """Return the encoding that gives each verdict its colour."""
    scale = {"domain": list(VERDICT_COLOURS), "range": list(VERDICT_COLOURS.values())}
    return {"field": "verdict", "type": "nominal", "title": "verdict", "scale": scale, **more}


# -- all systems --------------------------------------------------------------------------------


def overview_chart(rows: Rows, systems: Sequence[str]) -> Chart:
    """Return how good the systems are against how long they take."""
    spec = {
        "mark": {"type": "point", "filled": True, "size": 130, "opacity": 0.9},
        "encoding": {
            "x": {
                "field": "cpu",
                "type": "quantitative",
                "scale": {"type": "log"},
                "axis": {"title": "CPU seconds for all benchmarks (log scale)", "format": "~s", "tickCount": 6},
            },
            "y": {"field": "accuracy", **percent_axis("mean balanced accuracy")},
            "color": system_colours(systems) | {"legend": {"orient": "top", "columns": 4}},
            "shape": {"field": "kind", "type": "nominal", "title": None, "legend": _SHAPES},
            "tooltip": [
                {"field": "system"},
                {"field": "kind"},
                {"field": "accuracy", "title": "balanced accuracy", **_SHARE},
                {"field": "cpu", "title": "CPU seconds", "type": "quantitative", "format": ",.1f"},
                {"field": "benchmarks"},
            ],
        },
    }
    return Chart(
        "quality-and-cost",
        "Quality against cost",
        sized(spec, height=340),
        rows,
        {
            "system": "system",
            "kind": "kind",
            "benchmarks": "benchmarks",
            "accuracy": "balanced accuracy",
            "cpu": "CPU seconds",
        },
        "Up and to the left is better. The time is that of the whole run: learning, scoring, ranking and the "
        "diagnosis. Systems that ran on fewer benchmarks took less time for that reason alone.",
    )


# -- one system, one benchmark ------------------------------------------------------------------


def roc_chart(colour: str) -> Chart:
    """Return the plot of a ROC curve; its rows are loaded."""
    diagonal = {
        "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY, "strokeWidth": 1},
        "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    }
    caption = "The dashed line is what guessing gives; the red point is the threshold."
    names = ("negatives predicted (false-positive rate)", "positives predicted (recall)")
    return _curve_chart("roc", "ROC curve", caption, names, colour, [diagonal])


def precision_recall_chart(colour: str) -> Chart:
    """Return the plot of precision against recall; its rows are loaded."""
    caption = "The highest scores on the left, all test triples on the right; the red point is the threshold."
    names = ("positives predicted (recall)", "precision")
    return _curve_chart("pr", "Precision and recall", caption, names, colour, [])


def _curve_chart(
    name: str, title: str, caption: str, names: tuple[str, str], colour: str, under: list[dict[str, Any]]
) -> Chart:
    full = {"domain": [0, 1]}
    position = {
        axis: {"field": axis, **percent_axis(text), "scale": full} for axis, text in zip("xy", names, strict=True)
    }
    tooltip = [{"field": axis, "title": text, **_SHARE} for axis, text in zip("xy", names, strict=True)]
    curve = {
        "transform": [{"filter": "datum.part === 'curve'"}],
        "mark": {"type": "line", "color": colour, "strokeWidth": 2.5},
        "encoding": {**position, "order": {"field": "place", "type": "quantitative"}},
    }
    mark = {
        "transform": [{"filter": "datum.part === 'threshold'"}],
        "mark": {"type": "point", "filled": True, "size": 90, "color": _THRESHOLD, "opacity": 1},
        "encoding": {**position, "tooltip": tooltip},
    }
    spec = {"transform": [{"window": [{"op": "row_number", "as": "place"}]}], "layer": [*under, curve, mark]}
    columns = {"part": "part", "x": names[0], "y": names[1]}
    return Chart(name, title, sized(spec, height=320), Rows.of(("part", "x", "y"), ()), columns, caption)


def histogram_chart() -> Chart:
    """Return the plot of the scores of positives, upwards, and negatives by kind, downwards."""
    bin_axis = {
        "field": "bin",
        "type": "ordinal",
        "sort": {"field": "place", "op": "min"},
        "title": "score",
        "scale": {"paddingInner": 0.1, "paddingOuter": 0.1},
        "axis": {"labelOverlap": "greedy", "labelSeparation": 6, "labelAngle": 0, "ticks": False},
    }
    bars = {
        "transform": [{"filter": "datum.kind !== 'threshold'"}],
        "mark": {"type": "bar", "binSpacing": 0},
        "encoding": {
            "x": bin_axis,
            "y": {
                "field": "share",
                "type": "quantitative",
                "stack": "zero",
                "title": "negatives ↓   share   positives ↑",
                "axis": {"labelExpr": "format(abs(datum.value), '.0%')"},
            },
            # Positives come first; the kinds differ from benchmark to benchmark.
            "color": {
                "field": "kind",
                "type": "nominal",
                "title": "test triples",
                "sort": None,
                "scale": {"range": list(PALETTE)},
                "legend": {"orient": "top", "columns": 2, "title": None},
            },
            "order": {"field": "kind", "type": "ordinal"},
            "tooltip": [
                {"field": "kind", "title": "test triples"},
                {"field": "from", "type": "quantitative", "format": ".4g"},
                {"field": "to", "type": "quantitative", "format": ".4g"},
                {"field": "count", "type": "quantitative", "format": ","},
            ],
        },
    }
    mark = {
        "transform": [{"filter": "datum.kind === 'threshold'"}],
        "mark": {"type": "rule", "color": _THRESHOLD, "strokeWidth": 2, "strokeDash": [6, 3]},
        "encoding": {
            "x": {**bin_axis, "bandPosition": 0},
            "tooltip": [{"field": "from", "title": "threshold", "type": "quantitative"}],
        },
    }
    columns = {"kind": "test triples", "from": "score from", "to": "to", "count": "number", "share": "share"}
    weights = (("all", "as many as there are"), ("kind", "each kind the same"))
    return Chart(
        "scores",
        "Scores of positives against each kind of negative",
        sized({"layer": [bars, mark]}, height=340),
        Rows.of(("kind", "bin", "place", "from", "to", "count", "share", "weight"), ()),
        columns,
        "Positives upwards, negatives downwards. What stands to the right of the dashed line is predicted to "
        "be true: bars upwards on its left were missed, bars downwards on its right are false alarms.",
        (Choice("weight", "negatives", weights),),
    )


def learning_chart(measure: str, title: str, step: str, colour: str) -> Chart:
    """Return the plot of the loss or the accuracy on valid, a line for each seed."""
    share = measure == "valid_accuracy"
    y: dict[str, Any] = percent_axis("accuracy on valid") if share else {"type": "quantitative", "title": "loss"}
    if not share:
        y["scale"] = {"zero": False}
    shown = {"format": ".1%"} if share else {"format": ".4g"}
    position = {
        "x": {"field": "step", "type": "quantitative", "title": step, "axis": {"tickMinStep": 1}},
        "y": {"field": "value", **y},
        "detail": {"field": "seed", "type": "nominal"},
    }
    tooltip = [{"field": "seed"}, {"field": "step", "title": step}]
    tooltip.append({"field": "value", "title": title, "type": "quantitative", **shown})
    line = {
        "mark": {"type": "line", "strokeWidth": 1.2, "color": colour, "opacity": 0.85},
        "encoding": {**position, "tooltip": tooltip},
    }
    kept = {
        "transform": [{"filter": "datum.kept"}],
        "mark": {"type": "point", "filled": True, "size": 70, "color": colour, "opacity": 1},
        "encoding": {**position, "tooltip": tooltip},
    }
    spec = {"transform": [{"filter": f"datum.measure === '{measure}'"}], "layer": [line, kept]}
    return Chart(
        measure.replace("_", "-"),
        title,
        sized(spec, height=220),
        Rows.of(("seed", "step", "measure", "value", "kept"), ()),
        {"seed": "seed", "step": step, "measure": "measure", "value": "value", "kept": "kept"},
        "A line for each seed. The point marks the weights that were kept, where that is known.",
    )


def verdict_chart() -> Chart:
    """Return the plot of how many rules of the chosen benchmark were learned."""
    spec = {
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "verdict", "type": "nominal", "sort": list(VERDICT_COLOURS), "title": None},
            "x": {"field": "rules", "type": "quantitative", "title": "number of rules", "axis": {"tickMinStep": 1}},
            "color": verdict_colour(legend=None),
            "tooltip": [{"field": "verdict"}, {"field": "rules", "type": "quantitative", "format": ","}],
        },
    }
    return Chart(
        "verdicts",
        "What was learned",
        sized(spec, height=170),
        Rows.of(("verdict", "rules"), ()),
        {"verdict": "verdict", "rules": "rules"},
        "How many rules of the benchmark have each verdict of the diagnosis. “Untested” means that no "
        "negatives tell the rule from its shortcut.",
    )


# -- one system, all benchmarks -----------------------------------------------------------------


def bar_chart(name: str, title: str, rows: Rows, field: str, heading: str, colour: str, caption: str = "") -> Chart:
    """Return one bar for each benchmark, in the order of the rows."""
    spec = {
        "mark": {"type": "bar", "color": colour},
        "encoding": {
            "y": {"field": "benchmark", "type": "nominal", "sort": None, "title": None},
            "x": {"field": field, "type": "quantitative", "title": heading},
            "tooltip": [
                {"field": "benchmark"},
                {"field": field, "title": heading, "type": "quantitative", "format": ",.1f"},
            ],
        },
    }
    columns = {"benchmark": "benchmark", field: heading}
    return Chart(name, title, sized(spec, height=max(BAR * len(rows.rows), 60)), rows, columns, caption)
