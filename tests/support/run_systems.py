"""Small systems for tests of runs: one that learns in steps and can be resumed, one that cannot."""

import time
from dataclasses import dataclass

import numpy as np

from loginfer.settings import setting
from loginfer.systems.interface import Checkpoint, Unwatched


class Weighed:
    """A triple's score is the sum of the weights of its parts."""

    def __init__(self, entities, relations):
        self._entities, self._relations = entities, relations

    def score(self, triples):
        s, r, o = triples.T
        return self._entities[s] + 2 * self._relations[r] - self._entities[o] ** 2

    def arrays(self):
        return {"entities": self._entities, "relations": self._relations}


@dataclass(frozen=True)
class Learner:
    """Moves random weights a little in each step, by an amount that depends on all steps before."""

    steps: int = setting(20, "how many steps", least=1)
    pause: float = setting(0.0, "seconds to sleep in each step")
    seed: int = 0

    def fit(self, benchmark, watch=None):
        watch = watch or Unwatched()
        left = watch.restore()
        if left is None:
            rng = np.random.default_rng(self.seed)
            state = {
                "entities": rng.normal(size=len(benchmark.graph.entities)),
                "relations": rng.normal(size=len(benchmark.graph.relations)).astype(np.float32),
            }
            step, moved = 0, 0.0
        else:
            state, step, moved = dict(left.arrays), left.facts["step"], left.facts["moved"]
        while step < self.steps:
            state["entities"] += np.sin(state["entities"] * (step + 1)) / 3
            state["relations"] *= np.float32(0.9)
            moved += float(np.abs(state["entities"]).sum())
            step += 1
            watch.record({"step": step, "moved": moved})
            watch.progress("learning", step, self.steps)
            if watch.due():
                watch.save(Checkpoint(state, {"step": step, "moved": moved}))
            if self.pause:
                time.sleep(self.pause)
        return Weighed(state["entities"], state["relations"])

    def restore(self, benchmark, arrays):
        return Weighed(arrays["entities"], arrays["relations"])


class Plain:
    """Neither watched nor stored, and different each time that it is fitted."""

    fitted = 0

    def fit(self, benchmark):
        Plain.fitted += 1
        weights = np.random.default_rng(Plain.fitted).normal(size=len(benchmark.graph.entities))
        return PlainScorer(weights)


class PlainScorer:
    def __init__(self, weights):
        self._weights = weights

    def score(self, triples):
        return self._weights[triples[:, 0]] - self._weights[triples[:, 2]]
