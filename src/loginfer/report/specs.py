"""What the plots have in common: colours, axes, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["PALETTE", "colour", "percent_axis", "sized"]

# Told apart also by people who do not see all colours, on white and on black; repeated after the last one.
PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c6d31",
    "#6a51a3", "#999999", "#b2182b", "#bcbd22", "#e7298a", "#66a61e", "#a6761d",
)  # fmt: skip


def colour(names: Sequence[str], *, field: str = "system", title: str = "system") -> dict[str, Any]:
    """Return the encoding that gives each name the same colour on all pages.

    Parameters
    ----------
    names
        All names of the report, in its order, not only those of one plot.
    field, title
        The field that holds the name, and the legend's title.
    """
    chosen = [PALETTE[place % len(PALETTE)] for place in range(len(names))]
    return {
        "field": field,
        "type": "nominal",
        "title": title,
        "scale": {"domain": list(names), "range": chosen},
    }


def percent_axis(title: str, *, zero: bool = False, **more: Any) -> dict[str, Any]:
    """Return axis and scale for shares between 0 and 1, shown in percent."""
    return {
        "type": "quantitative",
        "title": title,
        "axis": {"format": ".0%"},
        "scale": {"zero": zero},
        **more,
    }


def sized(spec: dict[str, Any], *, height: int | dict[str, int] = 300) -> dict[str, Any]:
    """Return a plot as wide as its place on the page."""
    fitted = {"type": "fit-x", "contains": "padding"}
    return {"width": "container", "height": height, "autosize": fitted, **spec}
