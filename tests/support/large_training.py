"""What tests of training with many entities share: a small graph with types, a watch with a folder."""

import numpy as np

from loginfer.systems.interface import Unwatched
from tests.support.embedding_models import Cut, benchmark

SMALL = {"dimension": 11, "epochs": 3, "batch": 32}


def typed():
    """Return a graph of a few hundred triples, with types, and negatives for some of it."""
    random = np.random.default_rng(3)

    def triples(count):
        drawn = np.stack([random.integers(3, 150, count), random.integers(1, 5, count)], 1)
        return np.column_stack([drawn, random.integers(3, 150, count)]).astype(np.int32)

    of_types = np.array([[i, 0, i % 3] for i in range(3, 60)], dtype=np.int32)
    return benchmark(
        np.unique(np.vstack([triples(300), of_types]), axis=0),
        triples(200),
        triples(30),
        triples(30),
        entities=150,
        relations=5,
        types=[0, 1, 2],
    )


def learned(system, known, watch=None):
    """Return what a system has learned as bytes, and the learning curve."""
    watch = Unwatched() if watch is None else watch
    scorer = system.fit(known, watch)
    return {name: array.tobytes() for name, array in scorer.arrays().items()}, watch.curve


class Folder(Cut):
    """A watch that kills runs and has a folder, which outlives them.

    With `too_early`, the last checkpoint is lost: files were written for it, it was not.
    """

    def __init__(self, folder, checkpoint=None, stop_after=None, too_early=False):
        super().__init__(checkpoint, stop_after)
        self.place = folder
        self.too_early = too_early

    def folder(self):
        return self.place

    def save(self, checkpoint):
        if self.too_early and self.left == 1:
            raise self.KilledError
        self.rows_then = len(self.curve)
        super().save(checkpoint)
