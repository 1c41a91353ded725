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
    before
        For rules with negations: engines over K and P_train. What follows from them is true as well, even if
        it does not follow any more when conclusions are added.
    known
        For protocol `sound`: P_all. A triple with a predicate that no positive has is no candidate, since
        that alone would give it away.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        engine: Engine | None = None,
        rules: Sequence[Rule] = (),
        known: KnowledgeGraph | None = None,
        before: Sequence[Engine] = (),
    ) -> None:
        self.graph = graph
        self._engines = [*before] if engine is None else [engine, *before]
        self._rules = tuple(rules)
        self._relations = np.zeros(len(graph.relations), dtype=bool)
        self._relations[slice(None) if known is None else known.preds] = True
        self._types = np.zeros(len(graph.entities), dtype=bool)
        self._types[slice(None) if known is None else known.types] = True

    def negative(self, triples: Triples) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these triples may be labelled negative."""
        possible = ~self.graph.contains(triples)
        possible &= self._relations[triples[:, 1]]
        if self.graph.type_relation is not None:
            possible &= (triples[:, 1] != self.graph.type_relation) | self._types[triples[:, 2]]
        for engine in self._engines:
            places = np.flatnonzero(possible)
            if len(places):
                possible[places[engine.derives(self._rules, triples[places])]] = False
        return possible
