"""The plots of the page about what systems learn, as Vega-Lite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loginfer.report import specs
from loginfer.report.figures import rounded
from loginfer.report.heat_maps import heat_axes, heat_map
from loginfer.report.learned_edits import EDIT_FIELDS, KINDS
from loginfer.report.learned_values import RULE_FIELDS, Standing
from loginfer.report.system_charts import GREY
from loginfer.report.values import Chart, Choice, Rows

__all__ = ["edit_chart", "margin_chart", "rule_chart", "slope_chart"]

SHORTCUT = "best shortcut"

_PERCENT = {"type": "quantitative", "format": ".1%"}


# -- systems beside shortcuts -------------------------------------------------------------------


def slope_chart(found: Sequence[Standing], groups: Sequence[str], methods: Sequence[str],
                systems: Sequence[str]) -> Chart:  # fmt: skip
    """Return the systems from method to method, with the best shortcut under them."""
    rows: list[tuple[Any, ...]] = []
    seen: set[tuple[str, str]] = set()
    for s in found:
        over = rounded(s.over)
        rows.append((s.group, "system", s.cell.system, s.method, rounded(s.value), over, s.shortcut))
        if s.best is not None and (s.group, s.method) not in seen:
            seen.add((s.group, s.method))
            rows.append((s.group, "shortcut", SHORTCUT, s.method, rounded(s.best), None, s.shortcut))
    return Chart(
        "slopes",
        "Systems and the best shortcut",
        _slopes(methods, systems, _bottom([row[4] for row in rows])),
        Rows.of(("group", "kind", "name", "method", "value", "over", "shortcut"), rows),
        {"group": "benchmark", "name": "system", "method": "negatives", "value": "balanced accuracy",
         "over": "above the best shortcut", "shortcut": "that shortcut"},
        "From left to right the same rules and positives with harder negatives; only symmetry may have "
        "others where it is matched (nmm). The shaded part, up to the dashed line, is what the best shortcut "
        "reaches: a point inside it says nothing about rules. Choose systems in the legend.",
        (Choice("group", "benchmark", tuple((group, group) for group in groups)),),
        packed=("group", "kind", "name", "method", "shortcut"),
    )  # fmt: skip


def _bottom(values: Sequence[float]) -> float:
    """Return where the axis begins: at 40 %, or lower for a system that is worse than chance."""
    return min(0.4, int(20 * min(values)) / 20)


def _slopes(methods: Sequence[str], systems: Sequence[str], bottom: float) -> dict[str, Any]:
    x = {"field": "method", "type": "ordinal", "sort": list(methods), "title": "method for negatives",
         "scale": {"domain": list(methods)}, "axis": {"labelAngle": 0, "labelFontSize": 13}}  # fmt: skip
    y = {"field": "value", **specs.percent_axis("balanced accuracy"), "scale": {"domain": [bottom, 1]}}
    tooltip = [
        {"field": "name", "type": "nominal", "title": "system"},
        {"field": "method", "type": "nominal", "title": "negatives"},
        {"field": "value", "title": "balanced accuracy", **_PERCENT},
        {"field": "over", "title": "above the best shortcut", "type": "quantitative", "format": "+.1%"},
        {"field": "shortcut", "type": "nominal", "title": "best shortcut"},
    ]
    of = {kind: [{"filter": f"datum.kind === '{kind}'"}] for kind in ("system", "shortcut")}
    # A plain colour: an encoded one would join the legend of the systems.
    shortcut = {"x": x, "y": y, "tooltip": tooltip}
    system = {
        "x": x,
        "y": y,
        "tooltip": tooltip,
        "color": {**specs.colour(systems, field="name"), "legend": {"orient": "bottom", "columns": 4}},
        "opacity": {"condition": {"param": "picked", "value": 1}, "value": 0.12},
    }
    point = {"type": "point", "fields": ["name"]}
    return specs.sized(
        {
            "layer": [
                {
                    "transform": of["shortcut"],
                    "mark": {"type": "area", "opacity": 0.16, "color": GREY, "clip": True},
                    "encoding": {**shortcut, "y2": {"datum": bottom}},
                },
                {
                    "transform": of["shortcut"],
                    "mark": {"type": "line", "strokeDash": [6, 4], "strokeWidth": 3, "color": GREY,
                             "point": {"color": GREY, "size": 70, "shape": "diamond"}},
                    "encoding": shortcut,
                },
                {
                    "transform": of["system"],
                    "params": [{"name": "picked", "select": point, "bind": "legend"}],
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": system,
                },
                {
                    "transform": of["system"],
                    "mark": {"type": "point", "filled": True, "size": 55},
                    "encoding": system,
                },
            ]
        },
        height=420,
    )  # fmt: skip


# -- above the best shortcut --------------------------------------------------------------------


def margin_chart(found: Sequence[Standing], groups: Sequence[str], methods: Sequence[str],
                 systems: Sequence[str]) -> Chart:  # fmt: skip
    """Return by how much each system is above the best shortcut, for one method at a time."""
    rows = [
        (s.method, s.cell.system, s.group, rounded(s.over), rounded(s.value), rounded(s.best), s.shortcut)
        for s in found
        if s.over is not None
    ]
    told = [{"calculate": "format(100 * datum.over, '+.1f')", "as": "shown"}]
    tooltip = [
        {"field": "system", "type": "nominal"},
        {"field": "group", "type": "nominal", "title": "benchmark"},
        {"field": "value", "title": "system", **_PERCENT},
        {"field": "shortcut", "type": "nominal", "title": "best shortcut"},
        {"field": "best", "title": "its balanced accuracy", **_PERCENT},
        {"field": "shown", "type": "nominal", "title": "points above it"},
    ]
    colour = {
        "field": "over",
        "type": "quantitative",
        "title": "above the best shortcut",
        "legend": {"format": "+.0%", "orient": "bottom"},
        "scale": {
            "domain": [-0.4, 0, 0.4],
            "range": ["#b2182b", "#f7f7f7", "#2166ac"],
            "interpolate": "rgb",
            "clamp": True,
        },
    }
    there = {row[0] for row in rows}
    return Chart(
        "margins",
        "Above the best shortcut",
        heat_map(heat_axes(("group", groups), ("system", systems)), colour, "shown",
                 "abs(datum.over) > 0.22", told=told, tooltip=tooltip),
        Rows.of(("method", "system", "group", "over", "value", "best", "shortcut"), rows),
        {"method": "negatives", "system": "system", "group": "benchmark", "over": "above the best shortcut",
         "value": "balanced accuracy", "shortcut": "best shortcut", "best": "its balanced accuracy"},
        "Balanced accuracy of the system minus that of the best shortcut, in points. The oracle shows how "
        "much there is to gain.",
        (Choice("method", "negatives", tuple((m, m) for m in methods if m in there)),),
        packed=("method", "system", "group", "shortcut"),
    )  # fmt: skip


# -- rule by rule -------------------------------------------------------------------------------


def rule_chart(systems: Sequence[str]) -> Chart:
    """Return the conclusions and the negatives of each rule that a system accepts; rows are loaded."""
    spec = {
        "layer": [
            {
                "data": {"values": [{"a": 0, "b": 0}, {"a": 1, "b": 1}]},
                "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
                "encoding": {"x": {"field": "a", "type": "quantitative"},
                             "y": {"field": "b", "type": "quantitative"}},
            },
            {
                "mark": {"type": "point", "filled": True, "opacity": 0.7},
                "encoding": {
                    "x": {"field": "accepted", **specs.percent_axis("accepted of the rule's negatives"),
                          "scale": {"domain": [0, 1]}},
                    "y": {"field": "recall", **specs.percent_axis("accepted of its conclusions"),
                          "scale": {"domain": [0, 1]}},
                    "size": {"field": "conclusions", "type": "quantitative", "title": "conclusions in test",
                             "legend": {"orient": "bottom"}, "scale": {"range": [25, 260]}},
                    "color": {"field": "gap", "type": "quantitative", "title": "difference",
                              "legend": {"orient": "bottom", "format": "+.0%"},
                              "scale": {"domain": [-0.2, 0.4, 1], "range": ["#b2182b", "#e8c35a", "#2166ac"],
                                        "interpolate": "rgb", "clamp": True}},
                    "tooltip": [
                        {"field": "short", "type": "nominal", "title": "rule"},
                        {"field": "conclusions", "type": "quantitative"},
                        {"field": "recall", "title": "accepted of them", **_PERCENT},
                        {"field": "negatives", "type": "quantitative"},
                        {"field": "accepted", "title": "accepted of them", **_PERCENT},
                    ],
                },
            },
        ]
    }  # fmt: skip
    return Chart(
        "rules-and-near-misses",
        "Does it tell a rule's conclusions from its negatives?",
        specs.sized(spec, height=380),
        Rows.of(RULE_FIELDS, ()),
        {"system": "system", "rule": "rule", "conclusions": "conclusions", "recall": "accepted of them",
         "negatives": "negatives", "accepted": "accepted of them ", "gap": "difference"},
        "Each point is a rule. Top left: its conclusions are accepted and its negatives are not. On the "
        "dashed line the system does not tell them apart.",
        (Choice("system", "system", tuple((name, name) for name in systems)),),
    )  # fmt: skip


def edit_chart(systems: Sequence[str]) -> Chart:
    """Return which kinds of negatives each system accepts; rows are loaded."""
    axes = heat_axes(("kind", KINDS), ("system", systems))
    # Kinds that a benchmark does not have would be empty columns.
    axes["x"] = {**axes["x"], "sort": {"field": "place", "op": "min"}}
    axes["x"].pop("scale")
    colour = {
        "field": "share",
        "type": "quantitative",
        "title": "accepted",
        "legend": {"format": ".0%", "orient": "bottom"},
        "scale": {"domain": [0, 1], "scheme": "blues"},
    }
    tooltip = [
        {"field": "system", "type": "nominal"},
        {"field": "kind", "type": "nominal"},
        {"field": "triples", "type": "quantitative"},
        {"field": "share", "title": "accepted", **_PERCENT},
    ]
    told = [{"calculate": "format(100 * datum.share, '.0f')", "as": "shown"}]
    return Chart(
        "edits",
        "Which near misses does it accept?",
        heat_map(axes, colour, "shown", "datum.share > 0.55", told=told, tooltip=tooltip),
        Rows.of(EDIT_FIELDS, ()),
        {"system": "system", "kind": "kind", "triples": "triples in test", "share": "accepted"},
        "Shares of the test triples that a system accepts, in percent. All conclusions should be, no "
        "negative. Another relation: the rule's conclusion if one atom had another relation. Reversed: if "
        "one atom went the other way. Atom missing: without one atom. Equal constants: without one "
        "inequality.",
    )
