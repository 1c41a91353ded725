"""The plots of the page about rules, as Vega-Lite without data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loginfer.report import specs
from loginfer.report.rule_rows import SHORTCUT_FIELDS
from loginfer.report.system_charts import BAR, GREY, verdict_colour
from loginfer.report.values import Chart, Choice, Rows

__all__ = ["recall_chart", "recovery_chart", "rule_or_shortcut_chart", "sub_rule_chart", "verdict_bars"]

# Beside the plot a legend would leave little of it on a phone.
_TOP = {"orient": "top", "title": None, "columns": 3}
_POINT = {"type": "point", "filled": True, "size": 55, "opacity": 0.75}


def _quantity(field: str, title: str, shown: str = ",") -> dict[str, Any]:
    return {"field": field, "title": title, "type": "quantitative", "format": shown}


def _log(field: str, title: str) -> dict[str, Any]:
    """Return the position on a logarithmic scale; what is drawn at a half is a zero."""
    values = [0.5, *(digit * 10**power for power in range(10) for digit in (1, 3))]
    return {
        "field": field,
        "type": "quantitative",
        "title": f"{title} (log scale)",
        "scale": {"type": "log", "nice": False, "padding": 12},
        "axis": {
            "values": values,
            "labelExpr": "datum.value < 1 ? '0' : format(datum.value, '~s')",
            "labelOverlap": "greedy",
        },
    }


def _systems(systems: Sequence[str]) -> Choice:
    return Choice("system", "system", tuple((name, name) for name in systems), together=True)


# -- verdicts -----------------------------------------------------------------------------------


def verdict_bars(
    rows: Rows, by: str, names: Sequence[str], choice: Choice, title: str, caption: str
) -> Chart:
    """Return stacked bars of verdicts, one bar for each system or benchmark."""
    spec = {
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": by, "type": "nominal", "sort": list(names), "title": None},
            "x": {
                "aggregate": "sum",
                "field": "rules",
                "type": "quantitative",
                "stack": "normalize",
                "title": "share of the rules",
                "axis": {"format": ".0%"},
            },
            "color": verdict_colour(legend=_TOP),
            "order": {"aggregate": "min", "field": "place", "type": "quantitative"},
            "tooltip": [
                {"field": by, "type": "nominal"},
                {"field": "verdict", "type": "nominal"},
                {"aggregate": "sum", **_quantity("rules", "rules")},
            ],
        },
    }
    columns = {"system": "system", "benchmark": "benchmark", "verdict": "verdict", "rules": "rules"}
    height = max(BAR * len(names), 60)
    return Chart(
        f"verdicts-by-{by}", title, specs.sized(spec, height=height), rows, columns, caption, (choice,)
    )


# -- rule by rule -------------------------------------------------------------------------------


def _rule_tooltip(size: str) -> list[dict[str, Any]]:
    return [
        {"field": "short", "title": "rule"},
        {"field": "verdict"},
        _quantity("size", size),
        _quantity("conclusions", "conclusions in test"),
        _quantity("recall", "recall", ".1%"),
        _quantity("worst", "worst false-positive rate", ".1%"),
    ]


def _rule_columns(size: str) -> dict[str, str]:
    return {
        "system": "system",
        "rule": "rule",
        "verdict": "verdict",
        "size": size,
        "conclusions": "conclusions in test",
        "recall": "recall",
        "worst": "worst false-positive rate",
    }


_RULE_FIELDS = (
    "system",
    "rule",
    "short",
    "verdict",
    "size",
    "conclusions",
    "recall",
    "worst",
    "shown",
    "drawn",
)


def recall_chart(systems: Sequence[str], size: str) -> Chart:
    """Return the recall of each rule against its support; rows are loaded."""
    spec = {
        "mark": dict(_POINT),
        "encoding": {
            "x": _log("drawn", size),
            "y": {"field": "recall", **specs.percent_axis("recall"), "scale": {"domain": [0, 1]}},
            "color": verdict_colour(legend=_TOP),
            "tooltip": _rule_tooltip(size),
        },
    }
    return Chart(
        "recall-and-support",
        "Recall of each rule against its support",
        specs.sized(spec, height=320),
        Rows.of(_RULE_FIELDS, ()),
        _rule_columns(size),
        "A point is a rule: which share of its conclusions in test the system predicts. Do rules with many "
        "witnesses come out better than rare ones?",
        (_systems(systems),),
    )


def rule_or_shortcut_chart(systems: Sequence[str], size: str) -> Chart:
    """Return the recall of each rule against the false positives on its worst shortcut; rows are loaded."""
    x = {
        "field": "recall",
        **specs.percent_axis("recall on the rule's conclusions"),
        "scale": {"domain": [0, 1]},
    }
    rate: dict[str, Any] = {
        "field": "shown",
        "type": "quantitative",
        "title": "false-positive rate",
        "scale": {"domain": [-0.12, 1.02], "nice": False},
        "axis": {"values": [-0.08, 0, 0.2, 0.4, 0.6, 0.8, 1],
                 "labelExpr": "datum.value < 0 ? 'none' : format(datum.value, '.0%')"},
    }  # fmt: skip
    limit = {
        "data": {"values": [{"y": 0.5}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY},
        "encoding": {"y": {"field": "y", "type": "quantitative"}},
    }
    points = {
        "mark": dict(_POINT),
        "encoding": {"x": x, "y": rate, "color": verdict_colour(legend=_TOP), "tooltip": _rule_tooltip(size)},
    }
    return Chart(
        "rule-or-shortcut",
        "The rule or its shortcut?",
        specs.sized({"layer": [limit, points]}, height=320),
        Rows.of(_RULE_FIELDS, ()),
        _rule_columns(size),
        "To the right: the rule's conclusions are predicted. Up: so are negatives that only a part of its "
        "body supports, by the worst sub-rule with at least five of them. Right and down was learned, right "
        "and up is a shortcut; “none” has no sub-rule with five witnesses.",
        (_systems(systems),),
    )


def sub_rule_chart(systems: Sequence[str]) -> Chart:
    """Return the false positives on each shortcut; rows are loaded."""
    spec = {
        "transform": [{"filter": "datum.witnesses > 0"}],
        "mark": dict(_POINT),
        "encoding": {
            "x": _log("witnesses", "witnesses among the negatives of test"),
            "y": {
                "field": "rate",
                **specs.percent_axis("false-positive rate"),
                "scale": {"domain": [0, 1]},
            },
            "color": verdict_colour(legend=_TOP),
            "shape": {
                "field": "kind",
                "type": "nominal",
                "title": None,
                "legend": {"orient": "bottom", "symbolFillColor": GREY, "symbolStrokeColor": GREY},
                "scale": {
                    "domain": ["sub-rule", "relation", "baseline"],
                    "range": ["circle", "square", "diamond"],
                },
            },
            "tooltip": [
                {"field": "short", "title": "rule"},
                {"field": "verdict"},
                {"field": "short_cut", "title": "shortcut"},
                {"field": "kind"},
                _quantity("witnesses", "witnesses"),
                _quantity("predicted", "predicted"),
                _quantity("rate", "false-positive rate", ".1%"),
            ],
        },
    }
    columns = {
        "system": "system",
        "rule": "rule",
        "verdict": "verdict",
        "shortcut": "shortcut",
        "kind": "kind",
        "witnesses": "witnesses",
        "predicted": "predicted",
        "rate": "false-positive rate",
    }
    return Chart(
        "sub-rules",
        "False positives on each sub-rule",
        specs.sized(spec, height=320),
        Rows.of(SHORTCUT_FIELDS, ()),
        columns,
        "A point is a sub-rule, or another shortcut, of a rule: which share of its wrong conclusions the "
        "system predicts. The table has all of them, also those without witnesses, which nothing tests.",
        (_systems(systems),),
    )


# -- mined rules --------------------------------------------------------------------------------

# What each point is, with its colour and shape.
_POINTS = {
    "ours": ("#0072b2", "circle"),
    "one step": ("#56b4e9", "triangle-right"),
    "random heads": ("#d55e00", "cross"),
    "paper": (GREY, "diamond"),
}


def recovery_chart(rows: Rows, systems: Sequence[str], benchmarks: Sequence[str]) -> Chart:
    """Return the shares of rules that miners found, beside their controls and the paper's."""
    colours, shapes = zip(*_POINTS.values(), strict=True)
    spec = {
        "mark": {"type": "point", "filled": True, "size": 75, "opacity": 0.85},
        "encoding": {
            "y": {"field": "benchmark", "type": "nominal", "sort": list(benchmarks), "title": None},
            "yOffset": {"field": "share", "type": "nominal", "sort": ["ε_ent", "ε_cont"]},
            "x": {
                "field": "value",
                **specs.percent_axis("share of the benchmark's rules"),
                "scale": {"domain": [0, 1]},
            },
            "color": {
                "field": "what",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(_POINTS), "range": list(colours)},
                "legend": {"orient": "top"},
            },
            "shape": {
                "field": "what",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(_POINTS), "range": list(shapes)},
            },
            "tooltip": [
                {"field": "benchmark"},
                {"field": "share"},
                {"field": "what"},
                _quantity("value", "value", ".1%"),
            ],
        },
    }
    columns = {
        "system": "system",
        "benchmark": "benchmark",
        "share": "share",
        "what": "which",
        "value": "value",
    }
    return Chart(
        "mined-rules",
        "Rules that were found: ε_ent above, ε_cont below",
        specs.sized(spec, height=max(34 * len(benchmarks), 80)),
        rows,
        columns,
        "ε_ent is the share of the benchmark's rules that follow from the mined ones, ε_cont the share that "
        "was mined as it is. Random heads are the control: the same bodies with heads drawn at random. Where "
        "they follow nearly as often, ε_ent says little.",
        (Choice("system", "system", tuple((name, name) for name in systems)),),
    )
