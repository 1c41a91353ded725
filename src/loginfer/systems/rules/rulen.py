"""RuleN: the paths between the ends of some triples of each relation, and how often they are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loginfer.benchmark.values import Benchmark
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.mining import Miner
from loginfer.systems.rules.values import LONGEST, MinedRules
from loginfer.systems.settings import setting

if TYPE_CHECKING:
    from loginfer.systems.rules.rulen_mining import RuleNMining
    from loginfer.systems.rules.scorer import RuleScorer

__all__ = ["RuleN"]


@dataclass(frozen=True, kw_only=True)
class RuleN(Miner):
    """Cyclic rules that explain some triples of each relation, and constants that are frequent.

    For each relation and length the bodies of all paths between the two entities of the first `s1` triples
    are collected, and those `s1` are kept that explain most of them. A rule has two confidences, correct
    predictions by all predictions: on the tail side of those that start from some entities X, on the head
    side of those that start from some entities Y. Entities are taken, each with all its predictions, until
    there are `s2` predictions. A rule's confidence is the larger of the two. r(c,·) and r(·,c) have their
    share of r's triples as confidence.

    A triple's score is that of the best rule, and 10⁻⁴ for each further one that predicts it.
    """

    max_length: int = setting(2, "atoms in the body of a rule, at most", least=1, most=LONGEST)
    s1: int = setting(1000, "triples to explain, and bodies to keep, for each relation and length", least=1)
    s2: int = setting(1000, "predictions to count for each side of a rule, at least", least=1)
    order: Literal["shuffled", "file"] = setting(
        "shuffled", "which triples come first: any, or those that come first in the benchmark's P_train"
    )
    min_support: int = setting(2, "correct predictions that a rule needs", least=1)
    min_confidence: float = setting(0.0, "confidence that a rule needs", least=0, most=1)
    seed: int = setting(0, "seed of everything random", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> RuleNMining:
        """Begin to mine P_train, or go on from a checkpoint."""
        from loginfer.systems.rules.rulen_mining import RuleNMining

        return RuleNMining(self, benchmark.graph, checkpoint)

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> RuleScorer:
        """Return what scores triples with the rules over P_train."""
        from loginfer.systems.rules.scorer import RuleScorer

        return RuleScorer(benchmark.seen, rules, aggregation="sum")
