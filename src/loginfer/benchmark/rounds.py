"""What follows from K step by step: K_0 = K, and K_i = K_{i-1} ∪ T_R(K_{i-1}).

A triple has the depth d if it is in K_d and not in K_{d-1}. A rule derives it at depth d if it derives it
from K_{d-1}: so T_r(K_{d-1}) ∖ K_{d-1} are the conclusions of a rule r at depth d, and K_0 ⊆ K_1 ⊆ … ends in
the materialisation M_R(K).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import places_of
from loginfer.engine import Derivations, Engine, Materialisation, Progress
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Pattern, Rule

__all__ = ["Rounds", "everything_entailed", "refuse_negations"]


def refuse_negations(rules: Sequence[Rule | Pattern]) -> None:
    """Refuse rules and patterns with a negation: what follows later may take back what followed before.

    Raises
    ------
    InputError
        With the first such rule.
    """
    for rule in rules:
        if rule.negations:
            raise InputError(
                "a benchmark of several steps has no rules with a negation",
                where=str(rule),
                hint="leave out `depth`, or the rule",
            )


def everything_entailed(
    engine: Engine, rules: Sequence[Rule], max_triples: int, progress: Progress | None = None
) -> Materialisation:
    """Return M_R(K) ∖ K with the depth of each triple.

    Raises
    ------
    LimitError
        When there are more than `max_triples`.
    """
    try:
        return engine.materialise(rules, max_triples=max_triples, progress=progress)
    except LimitError as error:
        raise LimitError(
            f"more than {max_triples:,} triples follow from the graph and the {len(rules):,} rules",
            hint="choose fewer rules (k1) or others, leave out `depth`, or raise `max_triples`",
        ) from error


class Rounds:
    """K_0, K_1, … with an engine over each.

    Parameters
    ----------
    engine
        An engine over K, whose vocabularies hold every name of the rules' heads.
    rules
        R, without negations.
    depth
        How many steps count.
    open_engine
        Opens an engine of the same kind over another graph.
    max_triples
        Give up when more triples follow.
    progress
        Called with what is being done, how much is done, and how much there is.
    """

    def __init__(
        self,
        engine: Engine,
        rules: Sequence[Rule],
        depth: int,
        open_engine: Callable[[KnowledgeGraph], Engine],
        *,
        max_triples: int,
        progress: Progress | None = None,
    ) -> None:
        refuse_negations(rules)
        self.rules = tuple(rules)
        self._engines: dict[int, Engine] = {1: engine}
        self._open = open_engine
        self._depth = depth
        self._max_triples = max_triples
        self._progress = progress

    @property
    def kg(self) -> KnowledgeGraph:
        """K."""
        return self._engines[1].graph

    @cached_property
    def closure(self) -> Materialisation:
        """M_R(K) ∖ K, all steps."""
        return everything_entailed(self._engines[1], self.rules, self._max_triples, self._progress)

    @property
    def steps(self) -> int:
        """In how many steps anything new follows, up to the depth that counts; at least 1."""
        return max(1, min(self._depth, self.closure.rounds))

    def over(self, step: int) -> Engine:
        """Return an engine over K_{step-1}, from which follows what has this depth."""
        if step not in self._engines:
            earlier = self.closure.triples[self.closure.depth < step]
            graph = self.kg.with_more(earlier)
            self._engines[step] = self._open(graph)
        return self._engines[step]

    @property
    def last(self) -> Engine:
        """An engine over K_{depth-1}, from which everything that counts follows in one step."""
        return self.over(self.steps)

    @cached_property
    def true(self) -> KnowledgeGraph:
        """M_R(K), as a graph."""
        return self.kg.with_more(self.closure.triples)

    def depths(self, triples: Triples) -> npt.NDArray[np.int8]:
        """Return int8[n], the depth of each triple: 0 in K, -1 for what does not follow in so many steps."""
        keys = self.kg.keys
        found, places = places_of(keys.pack(self.closure.triples), keys.pack(triples))
        depth = np.where(self.kg.contains(triples), 0, -1).astype(np.int8)
        steps = self.closure.depth[places[found]]
        depth[found] = np.where(steps <= self._depth, steps, -1)
        return depth

    def derivations(self, triples: Triples) -> Derivations:
        """Return every pair of a triple and a rule that derives it at the triple's depth, sorted.

        Triples of K and those that do not follow have none.
        """
        depth = self.depths(triples)
        found = [np.empty((0, 2), dtype=np.int64)]
        for step in range(1, self.steps + 1):
            mine = np.flatnonzero(depth == step)
            if len(mine):
                pairs = self.over(step).derivations(self.rules, triples[mine])
                found.append(np.column_stack([mine[pairs.triple], pairs.rule]))
        joined = np.concatenate(found)
        joined = joined[np.lexsort((joined[:, 1], joined[:, 0]))]
        return Derivations(joined[:, 0], joined[:, 1])
