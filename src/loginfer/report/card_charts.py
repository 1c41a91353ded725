"""The plots of the benchmarks' pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loginfer.report import specs
from loginfer.report.cards import Card
from loginfer.report.figures import rounded
from loginfer.report.names import short_rule
from loginfer.report.values import Chart, Rows

__all__ = ["gap_chart", "rivals_chart", "rules_chart"]

_SHORTCUT = "any shortcut"
_GREY = "#8a939c"


def gap_chart(cards: Sequence[Card], labels: Mapping[str, str]) -> Chart | None:
    """Return the plot of the best shortcut, the best system and the oracle on each benchmark."""
    rows: list[tuple[Any, ...]] = []
    for known in cards:
        scored = [(cell.system, cell.mean("accuracy")) for cell in known.systems]
        systems = sorted(((s, mean) for s, mean in scored if mean is not None), key=lambda pair: -pair[1])
        found = [("best shortcut", *(known.best_shortcut or ("", None)))]
        found += [("best system", *pair) for pair in systems[:1]]
        found += [("median system", *systems[len(systems) // 2])] if len(systems) > 2 else []
        found += [("oracle", "oracle", known.oracle)]
        rows += [(labels[known.name], kind, who, rounded(v)) for kind, who, v in found if v is not None]
    if not rows:
        return None
    kinds = ["best shortcut", "median system", "best system", "oracle"]
    colours = [_GREY, specs.PALETTE[1], specs.PALETTE[0], specs.PALETTE[2]]
    spec = {
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 0.85},
        "encoding": {
            "y": {
                "field": "benchmark",
                "type": "nominal",
                "sort": None,
                "title": None,
                "axis": {"grid": True},
            },
            "x": specs.percent_axis("accuracy on test", field="accuracy"),
            "color": {
                "field": "kind",
                "type": "nominal",
                "title": None,
                "scale": {"domain": kinds, "range": colours},
                "legend": {"orient": "top"},
            },
            "shape": {
                "field": "kind",
                "type": "nominal",
                "title": None,
                "scale": {"domain": kinds, "range": ["square", "triangle-up", "circle", "diamond"]},
            },
            "tooltip": [
                *({"field": field, "type": "nominal"} for field in ("benchmark", "kind", "who")),
                {"field": "accuracy", "type": "quantitative", "format": ".1%"},
            ],
        },
    }
    return Chart(
        "gap",
        "How far systems are from the best shortcut, and from the oracle",
        specs.sized(spec, height=26 * len(cards)),
        Rows.of(("benchmark", "kind", "who", "accuracy"), rows),
        {"benchmark": "benchmark", "kind": "kind", "who": "who", "accuracy": "accuracy on test"},
        "Accuracy on test. Where the shortcut stands beside the systems, they may have learned no rule.",
    )


def rivals_chart(known: Card, systems: tuple[str, ...]) -> Chart | None:
    """Return the plot of shortcuts against systems and the oracle; None if there is nothing to compare.

    Parameters
    ----------
    known
        The benchmark.
    systems
        All systems of the report, for their colours.
    """
    best = known.best_shortcut
    line = None if best is None else rounded(best[1])
    rows: list[tuple[Any, ...]] = []
    for cell in known.cells:
        mean = cell.mean("accuracy")
        if mean is not None:
            kind = "oracle" if cell.name == "oracle" else "system"
            rows.append((cell.system, cell.system, kind, rounded(mean), line))
    if known.oracle is not None and not any(row[2] == "oracle" for row in rows):
        rows.append(("oracle (audit)", "oracle", "oracle", rounded(known.oracle), line))
    for name, value in known.shortcuts.items():
        rows.append((f"{name} (shortcut)", _SHORTCUT, "shortcut", rounded(value), line))
    if not rows:
        return None
    return Chart(
        "rivals",
        "Does any system beat the best shortcut?",
        _rivals_spec(systems, best is not None, len(rows)),
        Rows.of(("name", "who", "kind", "accuracy", "best"), sorted(rows, key=lambda row: -row[3])),
        {"name": "name", "kind": "kind", "accuracy": "accuracy on test"},
        "Accuracy on test, mean over seeds. Grey: shortcuts, which look at no premises; the line: the best "
        "of them. The oracle derives with the benchmark's rules.",
    )


def _rivals_spec(systems: tuple[str, ...], line: bool, bars: int) -> dict[str, Any]:
    names = list(systems) + [name for name in ("oracle",) if name not in systems]
    colour = specs.colour(names, field="who")
    scale = colour["scale"]
    colour["scale"] = {"domain": [*scale["domain"], _SHORTCUT], "range": [*scale["range"], _GREY]}
    colour["legend"] = None
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    x = specs.percent_axis("accuracy on test", zero=True, field="accuracy")
    x["scale"] = {"domain": [0, 1]}
    tooltip = [
        {"field": "name", "type": "nominal"},
        {"field": "kind", "type": "nominal"},
        {"field": "accuracy", "type": "quantitative", "format": ".1%"},
    ]
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "bar"}, "encoding": {"y": y, "x": x, "color": colour, "tooltip": tooltip}},
        {
            "mark": {"type": "text", "align": "left", "dx": 4},
            "encoding": {"y": y, "x": x, "text": {"field": "accuracy", "format": ".1%"}},
        },
    ]
    if line:
        rule = {"aggregate": "max", "field": "best", "type": "quantitative"}
        layers.append(
            {"mark": {"type": "rule", "strokeDash": [5, 4], "color": _GREY}, "encoding": {"x": rule}}
        )
    return specs.sized({"layer": layers}, height=24 * bars)


def rules_chart(known: Card) -> Chart | None:
    """Return the plot of the rules' support by rank; None where no support is known."""
    rows = sorted((row for row in known.rules if row.support), key=lambda row: -(row.support or 0))
    if not rows:
        return None
    spec = {
        "transform": [
            {"fold": ["support", "new", "sampled"], "as": ["measure", "count"]},
            {"filter": "datum.count > 0"},
        ],
        "mark": {"type": "point", "filled": True},
        "encoding": {
            "x": {
                "field": "rank",
                "type": "quantitative",
                "title": "rank by support",
                "axis": {"tickMinStep": 1},
            },
            "y": {"field": "count", "type": "quantitative", "scale": {"type": "log"}, "title": "count"},
            "color": {
                "field": "measure",
                "type": "nominal",
                "title": None,
                "scale": {"domain": ["support", "new", "sampled"], "range": list(specs.PALETTE[:3])},
            },
            # Equal counts are drawn inside each other.
            "size": {
                "field": "measure",
                "type": "ordinal",
                "legend": None,
                "scale": {"domain": ["support", "new", "sampled"], "range": [130, 60, 18]},
            },
            "tooltip": [
                {"field": "rule", "type": "nominal"},
                *({"field": key, "type": "quantitative"} for key in ("rank", "support", "new", "sampled")),
            ],
        },
    }
    return Chart(
        "support",
        "Rules by support",
        specs.sized(spec, height=260),
        Rows.of(
            ("rank", "rule", "support", "new", "sampled"),
            [(rank, short_rule(r.rule), r.support, r.new, r.sampled) for rank, r in enumerate(rows, start=1)],
        ),
        {
            "rank": "rank",
            "rule": "rule",
            "support": "support",
            "new": "new conclusions",
            "sampled": "sampled",
        },
        "Witnesses in K, new conclusions, and how many of these were sampled; logarithmic.",
    )
