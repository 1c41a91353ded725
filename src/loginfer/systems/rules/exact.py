"""The exact miner: every closed path rule up to length 2, with exact counts; length 3 if asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loginfer.benchmark.values import Benchmark
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.mining import Miner, Mining
from loginfer.systems.rules.values import MinedRules
from loginfer.systems.settings import setting

if TYPE_CHECKING:
    from loginfer.systems.rules.scorer import RuleScorer

__all__ = ["Exact"]


@dataclass(frozen=True, kw_only=True)
class Exact(Miner):
    """Every rule h(X,Y) ⇐ b1(X,A), …, bn(·,Y) with enough correct predictions and enough confidence.

    A prediction is a pair of different entities that the body connects by a path without a repeated entity;
    it is correct if the head has that pair in P_train. So a loop r(e,e) neither closes a path nor is one
    of the pairs that are counted. Confidence is correct / (predictions + smoothing), as AnyBURL applies it.

    Predictions and correct ones are exact for lengths 1 and 2. For length 3 they are, too, if the graph has
    no more walks of three steps than `budget`; otherwise bodies are looked for between pairs that are drawn
    at random, and those found most often are counted from some of the entities that they start at.
    """

    max_length: int = setting(2, "atoms in a body, at most", least=1, most=3)
    min_support: int = setting(2, "correct predictions, at least", least=1)
    min_confidence: float = setting(0.01, "of a rule, at least", least=0, most=1)
    smoothing: float = setting(5.0, "confidence = correct / (predictions + this)", least=0)
    budget: int = setting(100_000_000, "length 3: walks to look at; if there are more, a sample", least=1)
    aggregation: Literal["maximum", "noisy-or"] = setting(
        "maximum", "of the rules that predict a triple: the best, or 1 − Π (1 − confidence)"
    )
    seed: int = setting(0, "seed of the sample of length 3", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> Mining:
        """Begin to mine P_train. A checkpoint is never needed: it is quicker to start again."""
        from loginfer.systems.rules.exact_mining import ExactMining

        return ExactMining(self, benchmark.graph)

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> RuleScorer:
        """Return what scores triples with the rules over P_train."""
        from loginfer.systems.rules.scorer import RuleScorer

        return RuleScorer(benchmark.seen, rules, self.aggregation)
