"""Building blocks of plots, as Vega-Lite without data: encodings, colours, axes, marks, heat maps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from loginfer.benchmark.negatives.methods import method_phrases
from loginfer.files import shipped

# Colours that colour-blind people can tell apart, on white and on black; repeated after the last one.
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
    colours = [PALETTE[number % len(PALETTE)] for number in range(len(names))]
    return nominal(field, title=title, scale=scale_of(names, colours))


# Sizes of all texts.
_WORDS = {"labelFontSize": 12, "titleFontSize": 12, "labelLimit": 260}
CONFIG: Mapping[str, Any] = {"axis": _WORDS, "legend": _WORDS, "header": _WORDS, "text": {"fontSize": 12}}


# -- what is declared of each plot --------------------------------------------------------------


def declared(name: str) -> dict[str, Any]:
    """Return what `data/charts.toml` says about a plot; do not change it."""
    about: dict[str, Any] = {"name": name, **_declarations()[name]}
    return {**_declarations()[about["like"]], **about} if "like" in about else about


@cache
def _declarations() -> dict[str, Any]:
    return shipped("report/data/charts.toml")


def tooltip(name: str, *, without: Sequence[str] = (), **words: str) -> list[dict[str, Any]]:
    """Return the tooltip of a plot but for some fields, with words in place of those in braces."""
    tips = [tip for tip in declared(name)["tooltip"] if tip["field"] not in without]
    return [{key: text.format(**words) for key, text in tip.items()} for tip in tips]


# -- encodings ----------------------------------------------------------------------------------

# The whole range of a share, and an axis in percent with room between its numbers.
UNIT, PERCENT = {"domain": [0, 1]}, {"format": ".0%", "tickCount": 6}


def nominal(field: str, **more: Any) -> dict[str, Any]:
    """Return the encoding of a field of names, with a title, a scale, a legend, …."""
    return {"field": field, "type": "nominal", **more}


def ordinal(field: str, **more: Any) -> dict[str, Any]:
    """Return the encoding of a field of names that have an order."""
    return {"field": field, "type": "ordinal", **more}


def quantity(field: str, **more: Any) -> dict[str, Any]:
    """Return the encoding of a field of numbers."""
    return {"field": field, "type": "quantitative", **more}


def number_tip(field: str, title: str, pattern: str = ",") -> dict[str, Any]:
    """Return the tooltip of a number, in a format of Vega."""
    return {"field": field, "title": title, "type": "quantitative", "format": pattern}


def share_tip(field: str, title: str) -> dict[str, Any]:
    """Return the tooltip of a share: percent with one digit."""
    return number_tip(field, title, ".1%")


def percent_axis(title: str, *, zero: bool = False, **more: Any) -> dict[str, Any]:
    """Return axis and scale for shares between 0 and 1, shown in percent."""
    return {"type": "quantitative", "title": title, "axis": PERCENT, "scale": {"zero": zero}, **more}


def share_axis(field: str, title: str, **more: Any) -> dict[str, Any]:
    """Return the position of a field of shares on an axis in percent."""
    return {"field": field, **percent_axis(title, **more)}


def scale_of(names: Iterable[Any], values: Iterable[Any]) -> dict[str, Any]:
    """Return the scale that gives each name its colour, shape or size."""
    return {"domain": list(names), "range": list(values)}


def points(**more: Any) -> dict[str, Any]:
    """Return the mark of filled points: their size, opacity, colour, shape."""
    return {"type": "point", "filled": True, **more}


def layer(mark: Mapping[str, Any], test: str | None = None, /, **channels: Any) -> dict[str, Any]:
    """Return a mark with the encodings of its channels; with a test of Vega only for the rows for which it holds."""
    kept = {} if test is None else {"transform": filtered(test)}
    return {**kept, "mark": dict(mark), "encoding": channels}


def filtered(test: str) -> list[dict[str, Any]]:
    """Return the transforms that keep the rows for which a test of Vega holds."""
    return [{"filter": test}]


def method_axis(methods: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return the horizontal axis with the methods for negatives, in their order."""
    phrases = {name: phrase.removesuffix(" negatives") for name, phrase in method_phrases().items()}
    words = json.dumps({name: phrase.replace("-", "- ") for name, phrase in phrases.items()})
    # A line for each word: names of methods are long, and phones narrow.
    axis = {"labelAngle": 0, "labelExpr": f"split({words}[datum.value] || datum.value, ' ')"}
    return ordinal("method", sort=list(methods), title="method for negatives", **more, axis=axis)


def picked_systems(names: Sequence[str], field: str = "system") -> dict[str, Any]:
    """Return colours with a legend, where systems can be picked if a layer has `pick_in_legend`."""
    colour = system_colours(names, field=field) | {"legend": {"orient": "bottom", "columns": 4}}
    return {"color": colour, "opacity": {"condition": {"param": "picked", "value": 1}, "value": 0.12}}


def pick_in_legend(field: str) -> list[dict[str, Any]]:
    """Return the parameters of a layer with which systems are picked in the legend."""
    return [{"name": "picked", "select": {"type": "point", "fields": [field]}, "bind": "legend"}]


def sized(spec: dict[str, Any], *, height: int | dict[str, int] = 300) -> dict[str, Any]:
    """Return a plot as wide as its container on the page."""
    fitted = {"type": "fit-x", "contains": "padding"}
    return {"width": "container", "height": height, "autosize": fitted, **spec}


# From so many benchmarks on there are heat maps of them.
HEAT = 3


def heat_axes(across: tuple[str, Sequence[str]], down: tuple[str, Sequence[str]]) -> dict[str, Any]:
    """Return the encodings of both sides, each given by its field and all its names in their order.

    All names have a row or column, also those that the chosen rows do not have: a map keeps its shape.
    """

    def side(field: str, names: Sequence[str], axis: Mapping[str, Any]) -> dict[str, Any]:
        return nominal(field, scale={"domain": list(names)}, title=None, axis=dict(axis))

    return {
        "x": side(*across, {"orient": "top", "labelAngle": -40, "labelLimit": 150}),
        "y": side(*down, {"labelLimit": 220}),
    }


def heat_map(
    name: str, axes: Mapping[str, Any], colour: Mapping[str, Any], dark: str, *, text: str = "shown"
) -> dict[str, Any]:
    """Return a heat map.

    Parameters
    ----------
    name
        Of the plot, whose tooltip and transforms are declared.
    axes, colour
        Encodings.
    dark
        Vega's expression for cells that are dark, whose text is white.
    text
        The field whose value is written into the cells.
    """
    ink = {"condition": {"test": dark, "value": "#ffffff"}, "value": "#111111"}
    return {
        # A step and not the width of the page: numbers stay readable, and a phone scrolls.
        "width": {"step": 64},
        "height": {"step": 25},
        "transform": declared(name)["transform"],
        "encoding": {**axes, "tooltip": tooltip(name)},
        "layer": [
            layer({"type": "rect", "stroke": "#ffffff", "strokeWidth": 1}, color=dict(colour)),
            layer({"type": "text", "fontSize": 12}, text=nominal(text), color=ink),
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
SHAPES = {"orient": "bottom", "symbolFillColor": GREY, "symbolStrokeColor": GREY}


def verdict_colour(**more: Any) -> dict[str, Any]:
    """Return the encoding that gives each verdict its colour."""
    scale = scale_of(VERDICT_COLOURS, VERDICT_COLOURS.values())
    return nominal("verdict", title="verdict", scale=scale, **more)


def diagonal(x: str, y: str, **more: Any) -> dict[str, Any]:
    """Return a dashed line from corner to corner, as a layer under others."""
    line = layer({"type": "line", "strokeDash": [4, 4], "color": GREY, **more}, x=quantity(x), y=quantity(y))
    return {"data": {"values": [{x: 0, y: 0}, {x: 1, y: 1}]}, **line}
