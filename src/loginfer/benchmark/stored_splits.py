"""The positives of a benchmark whose graph stays in a database."""

from __future__ import annotations

from loginfer.benchmark.values import Split, Splits
from loginfer.kg import KnowledgeGraph, Triples

__all__ = ["StoredSplits"]


class StoredSplits(Splits):
    """P_train, P_valid and P_test, of which P_train stays where its graph is.

    Sizes and the graph of P_train are to be had without it; whoever asks for `train` itself has all of it in
    memory from then on.

    Parameters
    ----------
    graph
        P_train.
    valid, test
        As for `Splits`.
    """

    def __init__(self, graph: KnowledgeGraph, valid: Triples, test: Triples) -> None:
        object.__setattr__(self, "_graph", graph)
        object.__setattr__(self, "valid", valid)
        object.__setattr__(self, "test", test)

    @property
    def train(self) -> Triples:
        """P_train, loaded at the first use."""
        return self.train_graph().triples

    @property
    def sizes(self) -> dict[Split, int]:
        """How many triples each has."""
        return {"train": len(self.train_graph()), "valid": len(self.valid), "test": len(self.test)}

    def train_graph(self, over: KnowledgeGraph | None = None) -> KnowledgeGraph:
        """Return P_train as a graph."""
        found: KnowledgeGraph = vars(self)["_graph"]
        return found
