"""What is measured at which size, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from perf.growth.axes import BASE, Size
from perf.growth.graphs import ENGINES

__all__ = ["FIGURES", "KINDS", "Kind", "planned"]


@dataclass(frozen=True)
class Kind:
    """A step that is measured.

    Parameters
    ----------
    step
        Which figure it belongs to: `loading` (none), `ranking`, `building`, `training` or `evaluating`.
    what
        What of the step.
    call
        The function that prepares it, as in `perf.case.Case`.
    arguments
        Keyword arguments of that function, besides the folder.
    engine
        The engine that does it; empty where none does.
    needs
        Whether it needs a built benchmark.
    """

    step: str
    what: str
    call: str
    arguments: dict[str, Any] = field(default_factory=dict, hash=False)
    engine: str = ""
    needs: bool = False


FIGURES = ("ranking", "building", "training", "evaluating")
PATTERNS = ("composition", "triangle")
HERE = "perf.growth"


def _kinds() -> tuple[Kind, ...]:
    found = []
    for engine in ENGINES:
        of = {"engine": engine}
        found.append(Kind("loading", "graph", f"{HERE}.graphs:load", of, engine))
        for pattern in PATTERNS:
            arguments = {**of, "pattern": pattern}
            found.append(Kind("ranking", pattern, f"{HERE}.ranking:rank", arguments, engine))
        found.append(Kind("building", "benchmark", f"{HERE}.building:build", of, engine))
    found.append(Kind("training", "one epoch", f"{HERE}.training:train", needs=True))
    found.append(Kind("evaluating", "classification", f"{HERE}.evaluating:classify", needs=True))
    found.append(Kind("evaluating", "1,000 ranked", f"{HERE}.evaluating:rank_test", needs=True))
    return tuple(found)


KINDS = _kinds()


def planned(size: Size, kind: Kind) -> bool:
    """Return whether a step is measured at a size.

    Spark is for what one machine cannot hold: here only a few small graphs show where it starts.
    """
    if kind.engine != "spark":
        return True
    along_triples = size.relations == BASE.relations and size.entities == size.triples // 10
    return size.triples <= BASE.triples and (along_triples or size.relations < BASE.relations)
