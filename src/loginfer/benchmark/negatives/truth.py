"""Which triples are truly negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from loginfer.engine import Engine
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Rule

__all__ = ["Truth"]


class Truth:
    """What must not be labelled negative.

    Parameters
    ----------
    graph
        Triples that are true: P_all, or the materialisation.
    engine
        For protocol `sound`: an engine over P_all; what the rules derive from it in one step is true as well.
    rules
        R.
    """

    def __init__(
        self, graph: KnowledgeGraph, engine: Engine | None = None, rules: Sequence[Rule] = ()
    ) -> None:
        self.graph = graph
        self._engine = engine
        self._rules = tuple(rules)

    def negative(self, triples: Triples) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these triples may be labelled negative."""
        possible = ~self.graph.contains(triples)
        if self._engine is not None and possible.any():
            places = np.flatnonzero(possible)
            possible[places[self._engine.derives(self._rules, triples[places])]] = False
        return possible
