"""What tests of embedding systems share: the models, graphs to try them on, a watch that kills a run."""

import numpy as np

from loginfer.benchmark.benchmark import Benchmark, NegativeSet, Splits
from loginfer.kg import KnowledgeGraph
from loginfer.kg.vocabulary import Vocabulary
from loginfer.systems.embedding.boxe import BoxE
from loginfer.systems.embedding.complex import ComplEx
from loginfer.systems.embedding.distmult import DistMult
from loginfer.systems.embedding.rotate import RotatE
from loginfer.systems.embedding.transe import TransE
from loginfer.systems.interface import Checkpoint, Unwatched

MODELS = {"TransE": TransE, "RotatE": RotatE, "ComplEx": ComplEx, "DistMult": DistMult, "BoxE": BoxE}
NOTHING = np.empty((0, 3), dtype=np.int32)


def benchmark(positives, negatives=NOTHING, valid=NOTHING, wrong=NOTHING, *, entities, relations, types=()):
    """Return a benchmark of ids; types are ids of entities, and relation 0 is then the type predicate."""
    names = Vocabulary.of([f"e{i:04}" for i in range(entities)])
    predicates = ["a type", *(f"r{i}" for i in range(1, relations))] if types else None
    predicates = predicates or [f"r{i}" for i in range(relations)]
    graph = KnowledgeGraph(names, Vocabulary.of(predicates), positives, type_predicate="a type" if types else "")
    made = {}
    if len(negatives) or len(wrong):
        made["pa"] = NegativeSet("pa", Splits(np.asarray(negatives), np.asarray(wrong), NOTHING))
    return Benchmark("made up", graph, Splits(graph.triples, np.asarray(valid), NOTHING), made)


def circle(count=60, seed=0):
    """Return a benchmark with one rule, (x next y) -> (y back x), on a circle; negatives are random pairs."""
    random = np.random.default_rng(seed)
    places = np.arange(count, dtype=np.int32)
    forth = np.stack([places, np.zeros_like(places), (places + 1) % count], 1)
    back = random.permutation(np.stack([(places + 1) % count, np.ones_like(places), places], 1))
    away = (places + random.integers(3, count - 3, count)) % count
    wrong = random.permutation(np.stack([places, np.ones_like(places), away], 1)).astype(np.int32)
    cut = 3 * count // 4
    return benchmark(
        np.vstack([forth, back[:cut]]).astype(np.int32),
        wrong[:cut],
        back[cut:].astype(np.int32),
        wrong[cut:],
        entities=count,
        relations=2,
    )


class Cut(Unwatched):
    """A watch that keeps every checkpoint as bytes, and stops the run after so many."""

    class KilledError(Exception):
        """The run was killed."""

    def __init__(self, checkpoint=None, stop_after=None):
        super().__init__()
        self.last = checkpoint
        self.left = stop_after

    def restore(self):
        return self.last

    def due(self):
        return True

    def save(self, checkpoint):
        arrays = {name: array.copy() for name, array in checkpoint.arrays.items()}
        self.last = Checkpoint(arrays, dict(checkpoint.facts))
        if self.left is not None:
            self.left -= 1
            if not self.left:
                raise self.KilledError
