"""AnyBURL: rules generalised from random walks, found anytime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loginfer.benchmark.values import Benchmark
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.anyburl_weights import AC2_WEIGHT, PSEUDO_COUNT, ZERO_WEIGHT, applied
from loginfer.systems.rules.mining import Miner
from loginfer.systems.rules.values import LONGEST, MinedRules
from loginfer.systems.settings import setting

if TYPE_CHECKING:
    from loginfer.systems.rules.anyburl_mining import AnyBURLMining
    from loginfer.systems.rules.scorer import RuleScorer

__all__ = ["AnyBURL"]


@dataclass(frozen=True, kw_only=True)
class AnyBURL(Miner):
    """Random walks, generalised to cyclic, acyclic and zero rules.

    Walks come in batches, all of one class: closed walks of a length, open walks of a length, or heads
    alone. A batch ends when a number of edges have been looked at that takes some tenths of a second, not
    after a time, so that a run of so many batches finds the same rules everywhere. The class of batch t is
    drawn uniformly with probability max(0.1, (5 − t) / 5), and else in proportion to what its batches have
    earned so far on average, for each new rule correct · confidence / 2^(length − 1); a class without a
    batch counts like the best.

    The rules that are mined have the confidence correct / predictions, as in AnyBURL's files. They are
    applied with correct / (predictions + pseudo_count), times the weight of their shape.
    """

    steps: int = setting(150, "batches of walks; the same number finds the same rules everywhere", least=1)
    seconds: float = setting(0.0, "mine for so long instead of `steps` batches; 0: not", least=0)
    max_length: int = setting(3, "atoms in the body of a cyclic rule, at most", least=1, most=LONGEST)
    max_acyclic: int = setting(1, "atoms in the body of an acyclic rule, at most", least=0, most=LONGEST)
    min_support: int = setting(2, "correct predictions that a rule needs", least=1)
    min_zero_support: int = setting(101, "correct predictions that a zero rule needs", least=1)
    min_confidence: float = setting(0.0001, "confidence that a rule needs", least=0, most=1)
    aggregation: Literal["maximum", "noisy-or"] = setting(
        "maximum", "score of a triple: that of the best rule, ties broken by the next ones, or 1 − Π (1 − c)"
    )
    pseudo_count: float = setting(PSEUDO_COUNT, "wrong predictions added to those of each rule", least=0)
    ac2_weight: float = setting(AC2_WEIGHT, "weight of h(X,c) ⇐ b(X,A)", least=0, most=1)
    zero_weight: float = setting(ZERO_WEIGHT, "weight of h(X,c) with an empty body", least=0, most=1)
    seed: int = setting(0, "seed of everything random", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> AnyBURLMining:
        """Begin to mine P_train, or go on from a checkpoint."""
        from loginfer.systems.rules.anyburl_mining import AnyBURLMining

        return AnyBURLMining(self, benchmark.graph, checkpoint)

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> RuleScorer:
        """Return what scores triples with the rules over P_train, weighted as AnyBURL applies them."""
        from loginfer.systems.rules.scorer import RuleScorer

        weighted = applied(rules, pseudo=self.pseudo_count, ac2=self.ac2_weight, zero=self.zero_weight)
        return RuleScorer(benchmark.seen, weighted, aggregation=self.aggregation)
