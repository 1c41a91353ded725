"""Exponents: by which power of a size its cost grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perf.growth.axes import AXES
from perf.growth.results import Record, cpu, megabytes
from perf.growth.series import at, lines_along

__all__ = ["LAST", "exponent", "exponents"]

# So many of the largest sizes count: small ones tell about fixed costs.
LAST = 3


def exponent(sizes: list[int], costs: list[float]) -> float | None:
    """Return the slope of log cost against log size, by least squares over the last points.

    One point has none.

    Parameters
    ----------
    sizes, costs
        In ascending order of the sizes.
    """
    if len(sizes) < 2:
        return None
    slope, _ = np.polyfit(np.log(sizes[-LAST:]), np.log(np.maximum(costs[-LAST:], 1e-3)), 1)
    return float(slope)


def exponents(records: list[Record]) -> list[dict[str, Any]]:
    """Return the exponents of CPU seconds and of peak memory along each axis for each step."""
    found = []
    for axis in AXES:
        for line, points in lines_along(records, axis).items():
            row = {"axis": axis, **line._asdict(), "points": len(points[-LAST:])}
            found.append(row | {"cpu": _of(points, axis, cpu), "megabytes": _of(points, axis, megabytes)})
    return found


def _of(points: list[Record], axis: str, figure: Callable[[Record], float]) -> float | None:
    slope = exponent([at(record, axis) for record in points], [figure(record) for record in points])
    return None if slope is None else round(slope, 2)
