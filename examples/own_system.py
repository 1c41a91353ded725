"""A system of one's own: a class with `fit`, which returns an object with `score`.

loginfer evaluate BENCHMARK --system own_system:CommonNeighbours --set most=20
"""

import numpy as np


class CommonNeighbours:
    """The more neighbours subject and object have in common, the likelier the triple."""

    def __init__(self, most: int = 50):
        self.most = most

    def fit(self, benchmark):
        """Look at P_train."""
        self.neighbours = [set() for _ in benchmark.graph.entities]
        for s, _, o in benchmark.positives.train.tolist():
            self.neighbours[s].add(o)
            self.neighbours[o].add(s)
        return self

    def score(self, triples):
        """Give int32[n, 3], subject, relation, object, one number each."""
        shared = [len(self.neighbours[s] & self.neighbours[o]) for s, _, o in triples.tolist()]
        return np.minimum(shared, self.most)
