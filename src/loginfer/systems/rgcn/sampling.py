"""What each step of training looks at: the edges held out, and negatives for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from loginfer.benchmark.randomness import salt
from loginfer.kg import KnowledgeGraph, Triples

__all__ = ["Candidates", "Mode", "Portions", "Questions", "as_tensor", "random_generator"]

# Which negatives are learned from: those of N_train, random corruptions of the positives, or both.
Mode = Literal["explicit", "random", "both"]


def random_generator(seed: int, *stage: object) -> torch.Generator:
    """Return the generator of a stage. Each step has its own, so that no state needs to be kept."""
    return torch.Generator().manual_seed(salt(seed, "r-gcn", *stage))


class Portions:
    """Portions of a set that take turns: each element comes once before any comes again.

    Parameters
    ----------
    count
        Size of the set.
    size
        Size of a portion; if the set is smaller, a portion is the whole set.
    seed, name
        Choose the order.
    """

    def __init__(self, count: int, size: int, seed: int, name: str) -> None:
        self.size = min(size, count)
        self._count, self._seed, self._name = count, seed, name
        self._turns = max(count // max(self.size, 1), 1)
        self._round = -1
        self._order = torch.empty(0, dtype=torch.int64)

    def __getitem__(self, step: int) -> torch.Tensor:
        """Return int64[size], the places of the elements whose turn it is in this step."""
        round_, turn = divmod(step, self._turns)
        if round_ != self._round:
            random = random_generator(self._seed, self._name, round_)
            self._order = torch.randperm(self._count, generator=random)
            self._round = round_
        return self._order[turn * self.size : (turn + 1) * self.size]


class Candidates:
    """Random candidates for the subject or the object: constants, and types for the objects of type triples.

    Parameters
    ----------
    graph
        The graph.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._constants = torch.from_numpy(graph.consts.astype(np.int64))
        self._types = torch.from_numpy(graph.types.astype(np.int64))
        self._type_relation = -1 if graph.type_relation is None else graph.type_relation

    def questions(self, triples: torch.Tensor, count: int, random: torch.Generator) -> list[Questions]:
        """Ask for the object of one half of int64[m, 3] and for the subject of the other.

        Many questions share their candidates, up to `count`: then scoring them is a matrix product.
        """
        objects = torch.rand(len(triples), generator=random) < 0.5
        of_type = objects & (triples[:, 1] == self._type_relation)
        groups = (
            (objects & ~of_type, (0, 1, 2), self._constants),
            (~objects, (2, 1, 0), self._constants),
            (of_type, (0, 1, 2), self._types),
        )
        found = []
        for chosen, (known, relation, answer), pool in groups:
            mine = triples[chosen]
            if len(mine) and len(pool):
                drawn = torch.unique(pool[torch.randint(len(pool), (count,), generator=random)])
                ends = mine.t().contiguous()
                found.append(Questions(ends[known], ends[relation], ends[answer], drawn))
        return found

    def untyped(self, triples: torch.Tensor) -> torch.Tensor:
        """Return those of int64[m, 3] that have a relation: `type` is none."""
        return triples[triples[:, 1] != self._type_relation]

    def corrupt(self, triples: torch.Tensor, random: torch.Generator) -> torch.Tensor:
        """Return int64[m, 3]: the triples with the subject or the object replaced.

        Corruptions are not compared with the positives; hardly any is one.
        """
        corrupted = triples.clone()
        if not len(triples):
            return corrupted
        objects = torch.rand(len(triples), generator=random) < 0.5
        drawn = self._constants[torch.randint(len(self._constants), (len(triples),), generator=random)]
        if len(self._types):
            types = self._types[torch.randint(len(self._types), (len(triples),), generator=random)]
            drawn = torch.where(objects & (triples[:, 1] == self._type_relation), types, drawn)
        corrupted[:, 0] = torch.where(objects, triples[:, 0], drawn)
        corrupted[:, 2] = torch.where(objects, drawn, triples[:, 2])
        return corrupted


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions which of some candidates completes a triple.

    Parameters
    ----------
    known, relations, answers
        int64[m]: the end that is given, the relation, and the other end.
    candidates
        int64[K], distinct, sorted, the same for all.
    """

    known: torch.Tensor
    relations: torch.Tensor
    answers: torch.Tensor
    candidates: torch.Tensor

    @property
    def drawn(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Where an answer is one of the candidates: places of questions, and of candidates."""
        place = torch.searchsorted(self.candidates, self.answers).clamp_(max=len(self.candidates) - 1)
        questions = (self.candidates[place] == self.answers).nonzero().flatten()
        return questions, place[questions]

    def to(self, device: torch.device) -> Questions:
        """Move them to a device."""
        known, relations, answers, candidates = (
            part.to(device) for part in (self.known, self.relations, self.answers, self.candidates)
        )
        return Questions(known, relations, answers, candidates)


def as_tensor(triples: Triples) -> torch.Tensor:
    """Return triples as int64[n, 3]."""
    return torch.from_numpy(triples.astype(np.int64))
