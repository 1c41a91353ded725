"""Contrast: bodies that tell the positives of a head from its negatives, weighed by logistic regression.

One model for each head relation, and for each type. Positives are triples of P_train, each hidden from the
graph while its own bodies are sought; negatives those of N_train. Where a head has hardly any, positives with
a random subject or object stand in for them. The search goes from small bodies to large ones, and only as far
as valid shows that it must:

1. edges, paths of two steps and intersections, edges with a type; for types whatever is next to the subject;
2. triangles around the edges on which most is lost;
3. diamonds around those edges, and paths of three steps where there is no edge.

All bodies that a few positives have are proposed, counted on a sample of rows, and kept by contrast. Then
all rows say what the kept ones are worth: logistic regression with an L1 penalty and weights that are not
negative, so that every rule in the list speaks for its head. The parts of a conjunction can do so together,
too, by adding up; that is why the search stops, and a fit is preferred, by what the strongest rule that fires
tells alone. Penalty, intercept and which rules can be spared are chosen on valid. A score is the log-odds of
a triple, comparable across heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loginfer.benchmark.values import Benchmark
from loginfer.systems.interface import Arrays, Checkpoint, Unwatched, Watch
from loginfer.systems.rules.mining import Miner
from loginfer.systems.rules.values import MinedRules
from loginfer.systems.settings import setting

if TYPE_CHECKING:
    from loginfer.systems.rules.contrasting.mining import ContrastMining
    from loginfer.systems.rules.contrasting.scorer import ContrastScorer

__all__ = ["Contrast"]


@dataclass(frozen=True, kw_only=True)
class Contrast(Miner):
    """Looks for bodies that tell the positives of a relation from its negatives, and weighs a short list."""

    positives: int = setting(6000, "triples of P_train for each head, at most", least=1)
    negatives: int = setting(20_000, "triples of N_train for each head, at most", least=1)
    proposers: int = setting(30, "positives whose bodies are looked at", least=1)
    candidates: int = setting(400, "bodies that are weighed for each head", least=1, most=30_000)
    enough: float = setting(0.985, "share of valid that must be right to stop looking", least=0, most=1)
    patterns: str = setting("", "further patterns, names or texts, separated by `;`")
    bodies: int = setting(500, "bodies of each further pattern, those with the largest support", least=1)
    seed: int = setting(0, "seed of all that is random", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> ContrastMining:
        """Begin to learn from what may be seen of a benchmark.

        Raises
        ------
        InputError
            If it has no negatives.
        """
        from loginfer.systems.rules.contrasting.mining import ContrastMining

        return ContrastMining(self, benchmark)

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> ContrastScorer:  # type: ignore[override]
        """Learn the models of all heads, and return what scores with them."""
        watch = watch or Unwatched()
        mining = self.begin(benchmark)
        while mining.advance():
            watch.progress(*mining.progress())
        return mining.scorer()

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> ContrastScorer:  # type: ignore[override]
        """Return what scores triples with mined rules that have weights and intercepts, as from a file."""
        from loginfer.systems.rules.contrasting.scorer import ContrastScorer

        return ContrastScorer.of_rules(benchmark.seen, rules.others)

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> ContrastScorer:  # type: ignore[override]
        """Return the scorer whose `arrays()` these are."""
        from loginfer.systems.rules.contrasting.scorer import ContrastScorer

        return ContrastScorer.from_arrays(benchmark.seen, arrays)
