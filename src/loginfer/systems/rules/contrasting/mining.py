"""Mining by contrast, one head after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loginfer.benchmark.values import Benchmark, NegativeSet
from loginfer.errors import InputError
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.contrasting.bodies import Bodies
from loginfer.systems.rules.contrasting.candidates import Search
from loginfer.systems.rules.contrasting.given import GivenPatterns, given_rules, parse_patterns
from loginfer.systems.rules.contrasting.learner import Learner
from loginfer.systems.rules.contrasting.models import HeadModel, scored_rules
from loginfer.systems.rules.contrasting.neighbours import Neighbours
from loginfer.systems.rules.contrasting.rows import Sampling, all_rows, asked_heads
from loginfer.systems.rules.contrasting.scorer import ContrastScorer
from loginfer.systems.rules.contrasting.table import BodyTable
from loginfer.systems.rules.values import MinedRules, RuleTable

if TYPE_CHECKING:
    from loginfer.systems.rules.contrast import Contrast

__all__ = ["ContrastMining", "its_negatives"]

# How many different bodies one head may propose.
TABLE = 2**18
# With fewer negatives in N_train than this, a head gets random ones besides.
FEWEST_NEGATIVES = 50


def its_negatives(benchmark: Benchmark) -> NegativeSet:
    """Return the negatives to learn from.

    Raises
    ------
    InputError
        If there are none.
    """
    for negatives in benchmark.negatives.values():
        if len(negatives.splits.train):
            return negatives
    raise InputError(
        f"contrast learns from negatives, and {benchmark.name} has none to learn from",
        hint="give a benchmark with N_train, or mine the positives alone: --miner exact",
    )


class ContrastMining:
    """Mining under way: each step learns the model of one head."""

    def __init__(self, settings: Contrast, benchmark: Benchmark) -> None:
        negatives = its_negatives(benchmark)
        self._graph = benchmark.graph
        self._seen = benchmark.seen
        heads = asked_heads(benchmark, negatives)
        patterns = parse_patterns(settings.patterns)
        given = given_rules(self._graph, patterns, heads, settings.bodies) if patterns else ()
        self.bodies = Bodies(self._graph, given)
        self.bodies.check()
        search = Search(
            self.bodies,
            Neighbours.of(self._graph),
            BodyTable(TABLE),
            proposers=settings.proposers,
            candidates=settings.candidates,
        )
        self._learner = Learner(search, settings.enough, GivenPatterns(self.bodies) if given else None)
        sampling = Sampling(settings.positives, settings.negatives, FEWEST_NEGATIVES, settings.seed)
        self._rows = all_rows(benchmark, negatives, heads, sampling)
        self._heads = len(heads)
        self.models: list[HeadModel] = []

    def advance(self) -> bool:
        """Learn the next head; False if there is none left."""
        rows = next(self._rows, None)
        if rows is None:
            return False
        self.models.append(self._learner.learn(rows))
        return len(self.models) < self._heads

    def rules(self) -> MinedRules:
        """Return the rules of the heads learnt so far."""
        return MinedRules(RuleTable.empty(), scored_rules(self.models, self.bodies), distinct=False)

    def scorer(self) -> ContrastScorer:
        """Return what scores with the models learnt so far."""
        return ContrastScorer(self._seen, tuple(self.models), self.bodies)

    def progress(self) -> tuple[str, int, int | None]:
        """Return how many heads are learnt, of how many."""
        return "learning heads", len(self.models), self._heads

    def checkpoint(self) -> Checkpoint | None:
        """Return None: it is quicker to start again."""
        return None
