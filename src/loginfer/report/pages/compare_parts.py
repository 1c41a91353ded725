"""Parts of a benchmark, rules or relations, on which two runs are compared: a plot and a table for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loginfer.report import specs
from loginfer.report.figures import rounded
from loginfer.report.names import last_part, middle, short_rule
from loginfer.report.values import Chart, Column, Grid, Rows

__all__ = ["relation_parts", "rule_parts"]

# So many parts with the largest differences are listed.
LISTED = 20

Part = tuple[Chart, Grid]
Labels = tuple[str, str]


def rule_parts(labels: Labels, diagnoses: Sequence[Mapping[str, Any]]) -> Part | None:
    """Compare the recall of each rule's conclusions; None if one run was not diagnosed.

    Parameters
    ----------
    labels
        How the two are called.
    diagnoses
        The `diagnosis.json` of each; the rules of one benchmark come in the same order.
    """
    sides = [diagnosis.get("rules") or [] for diagnosis in diagnoses]
    if not sides[0] or len(sides[0]) != len(sides[1]):
        return None
    rows, told = [], []
    for one, other in zip(*sides, strict=True):
        if one["recall"] is None or other["recall"] is None:
            continue
        rule = short_rule(one["rule"])
        rows.append((middle(rule, 160), one["conclusions"], *_pair(one["recall"], other["recall"])))
        told.append((rule, one["conclusions"], *rows[-1][2:], one["verdict"], other["verdict"]))
    if not rows:
        return None
    chart = _chart(
        "rules", "Recall of each rule's conclusions", "recall", ("rule", "conclusions"), labels, rows
    )
    columns = (
        Column("rule", "rule"),
        Column("conclusions in test", "number"),
        *_columns(labels, "recall"),
        *(Column(f"verdict, {label}") for label in labels),
    )
    return chart, Grid(columns, _most(told), "Rules on which the two differ most; recall in percent.")


def relation_parts(labels: Labels, broken: Sequence[Mapping[str, Any]]) -> Part | None:
    """Compare the accuracy on each relation's test triples; None without breakdowns.

    Parameters
    ----------
    labels
        How the two are called.
    broken
        The breakdown of each.
    """
    sides = [breakdown.get("relations") or {} for breakdown in broken]
    rows, told = [], []
    for name, one in sides[0].items():
        other = sides[1].get(name)
        if other is None or one["accuracy"] is None or other["accuracy"] is None:
            continue
        count = sum(one[key] for key in ("tp", "fp", "tn", "fn"))
        rows.append((middle(last_part(name), 80), count, *_pair(one["accuracy"], other["accuracy"])))
        told.append((middle(name, 120), count, *rows[-1][2:]))
    if not rows:
        return None
    chart = _chart(
        "relations", "Accuracy on each relation", "accuracy", ("relation", "test triples"), labels, rows
    )
    columns = (Column("relation"), Column("test triples", "number"), *_columns(labels, "accuracy"))
    return chart, Grid(columns, _most(told), "Relations on which the two differ most; accuracy in percent.")


def _pair(one: float, other: float) -> tuple[float | None, ...]:
    return rounded(one), rounded(other), rounded(one - other)


def _columns(labels: Labels, what: str) -> tuple[Column, ...]:
    titles = (f"{what}, {labels[0]}", f"{what}, {labels[1]}", "difference")
    return tuple(Column(title, "share") for title in titles)


def _most(rows: Sequence[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    """Return the rows with the largest differences, of equal ones those about more triples."""
    differing = [row for row in rows if row[4]]
    return tuple(sorted(differing, key=lambda row: (-abs(row[4]), -row[1]))[:LISTED])


def _chart(
    name: str, title: str, what: str, kinds: tuple[str, str], labels: Labels, rows: Sequence[tuple[Any, ...]]
) -> Chart:
    def axis(field: str, label: str) -> dict[str, Any]:
        shown = specs.percent_axis(f"{what}, {middle(label, 40)}", scale={"domain": [0, 1]})
        return {"field": field, **shown}

    points = {
        "mark": {"type": "circle", "opacity": 0.6, "color": "#0072b2"},
        "encoding": {
            "x": axis("a", labels[0]),
            "y": axis("b", labels[1]),
            "size": {
                "field": "count",
                "type": "quantitative",
                "title": kinds[1],
                "scale": {"range": [25, 350]},
                "legend": {"orient": "top"},
            },
            "tooltip": [
                {"field": "part", "type": "nominal", "title": kinds[0]},
                {"field": "count", "type": "quantitative", "title": kinds[1], "format": ","},
                {"field": "a", "type": "quantitative", "title": labels[0], "format": ".1%"},
                {"field": "b", "type": "quantitative", "title": labels[1], "format": ".1%"},
            ],
        },
    }
    line = {
        "data": {"values": [{}]},  # one line, not one for each row
        "mark": {"type": "rule", "color": "#888888", "strokeDash": [2, 3]},
        "encoding": {"x": {"datum": 0}, "x2": {"datum": 1}, "y": {"datum": 0}, "y2": {"datum": 1}},
    }
    return Chart(
        name,
        title,
        specs.sized({"layer": [line, points]}, height=360),
        Rows.of(("part", "count", "a", "b", "difference"), rows),
        {"part": kinds[0], "count": kinds[1], "a": labels[0], "b": labels[1], "difference": "difference"},
        f"Below the dotted line {labels[0]} is better, above it {labels[1]}.",
    )
