"""Heat maps: names on both sides, a number in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["heat_axes", "heat_map"]


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
            {
                "mark": {"type": "rect", "stroke": "#ffffff", "strokeWidth": 1},
                "encoding": {"color": dict(colour)},
            },
            {
                "mark": {"type": "text", "fontSize": 12},
                "encoding": {"text": {"field": text, "type": "nominal"}, "color": ink},
            },
        ],
    }
