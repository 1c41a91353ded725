"""What systems that learn weights share: explicit negatives, the best epoch on valid, weights, devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.shortcuts import counts_from
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.randomness import generator
from loginfer.systems.interface import Arrays, Scores

if TYPE_CHECKING:
    import torch


def explicit_negatives(benchmark: Benchmark, mode: str) -> Triples:
    """Return N_train.

    Raises
    ------
    InputError
        If there is nothing to learn from, or no negatives and the mode needs them.
    """
    if not len(benchmark.graph):
        raise InputError(f"{benchmark.name} has no training triples to learn from")
    sets = [negatives.splits.train for negatives in benchmark.negatives.values()]
    triples: Triples = np.vstack([np.empty((0, 3), dtype=np.int32), *sets])
    if mode == "explicit" and not len(triples):
        hint = "train with random negatives only: --mode random"
        raise InputError(f"{benchmark.name} has no negative training triples, and mode `{mode}` needs them", hint=hint)
    return triples[:0] if mode == "random" else triples


def rival_constants(graph: KnowledgeGraph) -> npt.NDArray[np.int32]:
    """Return int32[n], ascending: constants, also those that valid or test alone have, as random candidates.

    What is never a candidate would stay where it began, and might be near to everything.
    """
    only_types = np.setdiff1d(graph.types, graph.consts)
    return np.setdiff1d(np.arange(len(graph.entities), dtype=np.int32), only_types)


# -- the best epoch --------------------------------------------------------------------------------


# Without N_valid so many triples of valid are ranked, among so many constants drawn at random and all their ends.
RANKED, RIVALS = 500, 20_000


@dataclass(frozen=True)
class Validation:
    """What epochs are compared by: the accuracy on P_valid and N_valid.

    Without N_valid it is the filtered MRR of some triples of P_valid, subjects and objects alike.

    Parameters
    ----------
    positives, negatives
        The triples.
    rivals
        int32[c], ascending: what triples are ranked against; nothing where there are negatives.
    known
        bool[2, n, c]: which rivals take no part in place of subjects and of objects: those that make a known triple,
        types where a constant is asked for, and constants where a type is.
    """

    positives: Triples
    negatives: Triples
    rivals: npt.NDArray[np.int32]
    known: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, benchmark: Benchmark, seed: int, patience: int = 0) -> Validation | None:
        """Return a benchmark's triples; None if it has none to choose by: then the last epoch is kept.

        Raises
        ------
        InputError
            Where there are none, and `patience` asks when to stop.
        """
        positives, nothing = benchmark.positives.valid, np.empty(0, dtype=np.int32)
        if not len(positives):
            if patience:
                problem = f"`patience` is about figures on valid, and `{benchmark.name}` has no valid"
                raise InputError(problem, hint="leave it out: the last epoch is kept")
            return None
        negatives = np.vstack([positives[:0], *(one.splits.valid for one in benchmark.negatives.values())])
        if len(negatives):
            return cls(positives, negatives, nothing, np.empty((2, 0, 0), dtype=bool))
        graph = benchmark.graph
        random = generator(seed, "systems", "valid")
        ranked = positives[np.sort(random.permutation(len(positives))[:RANKED])]
        constants = random.permutation(graph.consts)[:RIVALS]
        of_type = ranked[:, 1] == (-1 if graph.type_relation is None else graph.type_relation)
        types = graph.types if of_type.any() else nothing
        rivals = np.unique(np.concatenate([constants, types, ranked[:, 0], ranked[:, 2]])).astype(np.int32)
        known = np.zeros((2, len(ranked), len(rivals)), dtype=bool)
        known[:] = ~np.isin(rivals, rival_constants(graph))
        known[1, of_type] = ~np.isin(rivals, graph.types)
        everything = np.vstack([benchmark.positives.train, positives])
        for side, (lacking, given) in enumerate(((0, 2), (2, 0))):
            near = everything[np.isin(everything[:, given], ranked[:, given])]
            for row, triple in enumerate(ranked):
                same = (near[:, given] == triple[given]) & (near[:, 1] == triple[1])
                known[side, row] |= np.isin(rivals, near[same, lacking])
        return cls(ranked, positives[:0], rivals, known)

    @property
    def figure(self) -> str:
        """The name of the figure in learning curves."""
        return "valid_mrr" if len(self.rivals) else "valid_accuracy"

    def compact(self) -> tuple[npt.NDArray[np.int32], Validation]:
        """Return the entities that occur, sorted, and the same triples by indices among them."""
        both = np.vstack([self.positives, self.negatives])
        entities = np.unique(np.concatenate([both[:, 0], both[:, 2], self.rivals]))
        triples = both.astype(np.int32)
        triples[:, [0, 2]] = np.searchsorted(entities, both[:, [0, 2]])
        cut, rivals = len(self.positives), np.searchsorted(entities, self.rivals).astype(np.int32)
        return entities.astype(np.int32), Validation(triples[:cut], triples[cut:], rivals, self.known)

    def judge(self, scorer: Any) -> float:
        """Return the accuracy at the best threshold, or the MRR."""
        if not len(self.rivals):
            return best_accuracy(scorer.score(self.positives), scorer.score(self.negatives))
        reciprocal = []
        for position, column, known in zip(("subject", "object"), (0, 2), self.known, strict=True):
            scores = np.array(scorer.score_candidates(self.positives, position, self.rivals))
            own = scores[np.arange(len(scores)), np.searchsorted(self.rivals, self.positives[:, column])][:, None]
            scores[known] = -np.inf
            reciprocal.append(1 / (1 + (scores > own).sum(axis=1) + (scores == own).sum(axis=1) / 2))
        return float(np.mean(reciprocal))


def best_accuracy(positives: Scores, negatives: Scores) -> float:
    """Return the highest accuracy that one threshold on the scores can have."""
    _, true, false = counts_from(positives.astype(np.float64), negatives.astype(np.float64))
    right = true + (len(negatives) - false)
    return float(right.max() / (len(positives) + len(negatives)))


@dataclass
class BestEpoch:
    """Which epoch was the best on valid.

    Parameters
    ----------
    figure
        The best figure of `Validation`; NaN before the first.
    epoch
        The last epoch that reached it, counted from 1.
    stale
        Epochs since it was improved.
    """

    figure: float = math.nan
    epoch: int = 0
    stale: int = 0

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> BestEpoch:
        """Return what `facts` wrote into a checkpoint."""
        figure = math.nan if facts["best"] is None else float(facts["best"])
        return cls(figure, int(facts["best_epoch"]), int(facts["stale"]))

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values."""
        figure = None if math.isnan(self.figure) else self.figure
        return {"best": figure, "best_epoch": self.epoch, "stale": self.stale}

    def judge(self, epoch: int, figure: float | None) -> bool:
        """Say whether no epoch was better than this one; among equals the last one has learned most."""
        if figure is not None:
            better = not figure <= self.figure
            self.stale = 0 if better else self.stale + 1
            if figure < self.figure:
                return False
            if better:
                self.figure = figure
        self.epoch = epoch
        return True

    def enough(self, patience: int) -> bool:
        """Say whether there was no improvement for so many epochs; 0: never."""
        return 0 < patience <= self.stale


# -- weights and devices ---------------------------------------------------------------------------


def check_weights(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]], needing: str) -> None:
    """Complain about weights that are missing, or have another shape than the system needs."""
    for name, shape in shapes.items():
        if name not in arrays or arrays[name].shape != shape:
            problem = f"have the shape {arrays[name].shape}" if name in arrays else "are missing"
            hint = "use the settings and the benchmark that the system was fitted with"
            raise InputError(f"the weights `{name}` {problem}; {needing} needs {shape}", hint=hint)


def torch_device(setting: str) -> torch.device:
    """Return the device that the setting `device` means: auto, cpu or cuda."""
    import torch

    if setting == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no CUDA device", where="--set device", hint="--set device=cpu")
    return torch.device("cuda" if setting != "cpu" and torch.cuda.is_available() else "cpu")


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use so many threads: a matrix product that is cut into other pieces may have other last bits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
