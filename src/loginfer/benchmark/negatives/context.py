"""What all methods for negatives share: K, R, the positives, and what counts as true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from loginfer.benchmark.negation import has_negations, negation_notes
from loginfer.benchmark.negatives.truth import Truth
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.rounds import Rounds
from loginfer.benchmark.values import SPLITS, Split, Splits
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
        An engine over K, whose vocabularies hold every name of the rules' heads; for conclusions of several
        steps over K_{depth-1}, from which they all follow in one.
    open_engine
        Opens an engine of the same kind over another graph.
    rules
        R.
    positives
        P_train, P_valid, P_test.
    progress
        Called with what is being done, how much is done, and how much there is.
    more
        int32[n, 3]: true triples that are in no split, as the context graph of an inductive benchmark's test.
    rounds
        For conclusions of several steps: what follows from K, step by step.
    """

    recipe: Recipe
    engine: Engine
    open_engine: Callable[[KnowledgeGraph], Engine]
    rules: tuple[Rule, ...]
    positives: Splits
    progress: Progress | None = None
    more: Triples | None = None
    rounds: Rounds | None = None
    _concluded: dict[Split, KnowledgeGraph] = field(default_factory=dict, init=False, repr=False)

    @property
    def kg(self) -> KnowledgeGraph:
        """The graph K."""
        return self.engine.graph

    @property
    def base(self) -> KnowledgeGraph:
        """K itself, also where conclusions follow in several steps: what shortcuts look at."""
        return self.kg if self.rounds is None else self.rounds.kg

    @cached_property
    def everything(self) -> KnowledgeGraph:
        """P_all, as a graph over the vocabularies of K."""
        return self.seen.with_more(np.vstack([self.positives.valid, self.positives.test]))

    @cached_property
    def seen(self) -> KnowledgeGraph:
        """What a system sees of these constants: P_train, or for an inductive test the context graph."""
        train = self.positives.train_graph(self.kg)
        return train if self.more is None else train.with_more(self.more)

    @cached_property
    def conclusions(self) -> Mapping[Split, Triples]:
        """C_train, C_valid and C_test: the conclusion triples in P_train ∩ T_R(K) and so on."""
        return {split: self.concluded(split).triples for split in SPLITS}

    def concluded(self, split: Split) -> KnowledgeGraph:
        """Return C_train, C_valid or C_test as a graph; that of a stored K stays in the database."""
        if split not in self._concluded:
            own = self.positives
            positives = own.train_graph(self.kg) if split == "train" else self.kg.with_triples(own[split])
            self._concluded[split] = self.engine.derived(self.rules, positives)
        return self._concluded[split]

    @cached_property
    def truth(self) -> Truth:
        """What must not be labelled negative, by the recipe's protocol."""
        if self.recipe.protocol == "paper":
            return Truth(self.everything)
        if self.rounds is not None:
            return Truth(self.rounds.true, known=self.everything)  # which holds P_all as well
        if self.recipe.materialised:
            closure = self.engine.materialise(self.rules, progress=self.progress)
            true = self.everything.with_more(closure.triples)
            if not has_negations(self.rules):
                return Truth(true, known=self.everything)
        else:
            true = self.everything
        before = [self.engine] if has_negations(self.rules) else []
        if negation_notes(self.rules):
            before.append(self.open_engine(self.seen))
        return Truth(true, self.open_engine(self.everything), self.rules, self.everything, before)
