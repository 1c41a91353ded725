"""What a miner is, and how mining goes on step by step, so that it can be shown, stopped and resumed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from loginfer.benchmark.values import Benchmark, Splits
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.systems.interface import Arrays, Checkpoint, Unwatched, Watch
from loginfer.systems.rules.values import MinedRules
from loginfer.systems.settings import check_settings

if TYPE_CHECKING:
    from loginfer.systems.rules.scorer import RuleScorer

__all__ = ["Miner", "Mining", "as_benchmark"]


class Mining(Protocol):
    """A mining that is under way.

    Whoever started it calls `advance` until that says False, and may ask in between, or after Ctrl-C, for
    the rules found so far.
    """

    def advance(self) -> bool:
        """Do the next piece of work, about half a second of it; False if nothing is left to do."""
        ...

    def rules(self) -> MinedRules:
        """Return the rules found so far."""
        ...

    def progress(self) -> tuple[str, int, int | None]:
        """Return what is being done, how much of it is done, and how much there is (None: unknown)."""
        ...

    def checkpoint(self) -> Checkpoint | None:
        """Return what is needed to go on later; None if it is quicker to start again."""
        ...


@dataclass(frozen=True, kw_only=True)
class Miner(ABC):
    """A system that finds rules and scores triples with them.

    Subclasses have their settings as fields (see `loginfer.systems.settings`).
    """

    def __post_init__(self) -> None:
        check_settings(self)

    @abstractmethod
    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> Mining:
        """Begin to mine what may be seen of a benchmark, or go on from a checkpoint."""

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> RuleScorer:
        """Return what scores triples with the rules over P_train, and the context graph if there is one."""
        from loginfer.systems.rules.scorer import RuleScorer

        return RuleScorer(benchmark.seen, rules)

    def mine(self, benchmark: Benchmark, watch: Watch | None = None) -> MinedRules:
        """Mine to the end, starting from the watch's last checkpoint if it has one."""
        watch = watch or Unwatched()
        mining = self.begin(benchmark, watch.restore())
        while mining.advance():
            watch.progress(*mining.progress())
            if watch.due():
                state = mining.checkpoint()
                if state is not None:
                    watch.save(state)
        return mining.rules()

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> RuleScorer:
        """Mine the rules of a benchmark, and return what scores with them."""
        return self.scorer(benchmark, self.mine(benchmark, watch))

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> RuleScorer:
        """Return the scorer whose `arrays()` these are."""
        from loginfer.systems.rules.stored import from_arrays

        return self.scorer(benchmark, from_arrays(arrays))


def as_benchmark(graph: KnowledgeGraph, name: str) -> Benchmark:
    """Return a graph as a benchmark whose P_train it is, without negatives, for mining a bare graph."""
    nothing: Triples = np.empty((0, 3), dtype=np.int32)
    return Benchmark(name, graph, Splits(graph.triples, nothing, nothing), {})
