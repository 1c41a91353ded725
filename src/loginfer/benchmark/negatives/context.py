"""What all methods for negatives share: K, R, the positives, and what counts as true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loginfer.benchmark.negatives.truth import Truth
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.values import Split, Splits
from loginfer.engine import Engine, Progress
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Rule

__all__ = ["Context"]


@dataclass(frozen=True)
class Context:
    """Everything that negatives are made from; what several methods need is computed once.

    Parameters
    ----------
    recipe
        Protocol, ratio and seed.
    engine
        An engine over K, whose vocabularies hold every name of the rules' heads.
    open_engine
        Opens an engine of the same kind over another graph.
    rules
        R.
    positives
        P_train, P_valid, P_test.
    progress
        Called with what is being done, how much is done, and how much there is.
    """

    recipe: Recipe
    engine: Engine
    open_engine: Callable[[KnowledgeGraph], Engine]
    rules: tuple[Rule, ...]
    positives: Splits
    progress: Progress | None = None

    @property
    def kg(self) -> KnowledgeGraph:
        """The graph K."""
        return self.engine.graph

    @cached_property
    def everything(self) -> KnowledgeGraph:
        """P_all, as a graph over the vocabularies of K."""
        return self.kg.with_triples(np.vstack([triples for _, triples in self.positives.items()]))

    @cached_property
    def conclusions(self) -> Mapping[Split, Triples]:
        """C_train, C_valid and C_test: the conclusion triples in P_train ∩ T_R(K) and so on."""
        return {
            split: triples[self.engine.derives(self.rules, triples)]
            for split, triples in self.positives.items()
        }

    @cached_property
    def truth(self) -> Truth:
        """What must not be labelled negative, by the recipe's protocol."""
        if self.recipe.protocol == "paper":
            return Truth(self.everything)
        if self.recipe.materialised:
            closure = self.engine.materialise(self.rules, progress=self.progress)
            true = self.kg.with_triples(np.vstack([self.everything.triples, closure.triples]))
            return Truth(true, known=self.everything)
        return Truth(self.everything, self.open_engine(self.everything), self.rules, self.everything)
