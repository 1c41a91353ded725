"""Settings, fit, restore.

The numbers by which compiled kernels know a model, its comparison and the end that a query lacks.

A kernel that takes functions as arguments cannot be kept on disk, so the kernels switch over these instead.

What all embedding systems have in common: settings, how to fit them, how to get a fitted one back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError
from loginfer.settings import check_settings, setting
from loginfer.systems.interface import Arrays, Watch

if TYPE_CHECKING:
    from loginfer.systems.embedding.scorer import EmbeddingScorer


# How the known end of a triple and its relation make a query.
TRANSE, ROTATE, COMPLEX, DISTMULT, BOXE = range(5)

# How a query is compared with a candidate for the end that it lacks.
#   L1      −Σ|q − c|
#   L2      −√Σ(q − c)²
#   MODULI  −Σ|q − c| of complex numbers
#   DOT     Σ q·c
#   BOX     −Σ of BoxE's distances of points to boxes
L1, L2, MODULI, DOT, BOX = range(5)

# The end that a query lacks.
OBJECT, SUBJECT = range(2)


Floats: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class EmbeddingSystem(ABC):
    """A model with a vector for each constant, type and relation, trained on P_train and N_train.

    The loss of a positive p with random negatives n₁, …, n_k, an explicit negative e of N_train and a
    negative q with another relation is, with softplus(x) = log(1 + exp x) and with
    w_i = exp(α·score(n_i)) / Σ exp(α·score(n_j)) taken as constants,

        softplus(−score(p)) + Σ w_i · softplus(score(n_i))
        + explicit_weight · softplus(score(e)) + relation_weight · softplus(score(q)).
    """

    dimension: int = setting(100, "numbers in a vector; complex ones for RotatE and ComplEx", least=1)
    mode: Literal["explicit", "random", "both"] = setting(
        "both", "negatives: those of N_train, random corruptions, or both"
    )
    negatives: int = setting(8, "random corruptions for each positive", least=1, most=1024)
    adversarial: float = setting(1.0, "α: how much more hard random negatives count; 0: all alike", least=0)
    explicit_weight: float = setting(1.0, "weight of the explicit negative", least=0)
    relation_weight: float = setting(0.0, "weight of a negative with another relation", least=0)
    batch: int = setting(1024, "positives in a step", least=1)
    epochs: int = setting(15, "how often all of P_train is seen", least=1)
    learning_rate: float = setting(0.01, "of Adam at the start; falls to 0 in a straight line", least=0)
    patience: int = setting(0, "stop after so many epochs that were not better on valid; 0: never", least=0)
    keep: Literal["best", "last"] = setting("best", "the epoch that is best on valid, or the last one")
    workers: int = setting(1, "threads; how many makes no difference to the result", least=1, most=256)
    partitions: int = setting(
        0, "parts of the entities, of which two are in memory; 0: one, or as many as 8 GB need", least=0, most=1024
    )
    storage: Literal["auto", "memory", "mapped"] = setting(
        "auto", "where weights are: memory, mapped files, or files from 2 GB on; no difference to the result"
    )
    seed: int = setting(0, "seed of all that is random", least=0)

    # The model's number; how many times `dimension` the row of an entity and of a relation is wide.
    code: ClassVar[int]
    parts: ClassVar[int] = 1
    relation_parts: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def entity_width(self) -> int:
        """Numbers in the row of a constant or type."""
        return self.parts * self.dimension

    @property
    def relation_width(self) -> int:
        """Numbers in the row of a relation."""
        return self.relation_parts * self.dimension

    @property
    def derived_width(self) -> int:
        """Numbers in what queries need of a relation."""
        return self.relation_width

    @property
    def query_width(self) -> int:
        """Numbers in a query."""
        return self.entity_width

    @property
    @abstractmethod
    def comparison(self) -> int:
        """How queries and candidates are compared."""

    @property
    @abstractmethod
    def offset(self) -> float:
        """What is added to the comparison to make a score: γ, or nothing."""

    @property
    def cubic(self) -> float:
        """The weight of the N3 regularisation."""
        return 0.0

    @abstractmethod
    def initial_entities(self, entities: int, random: np.random.Generator) -> Floats:
        """Return the rows of constants and types at the start."""

    @abstractmethod
    def initial_relations(self, relations: int, random: np.random.Generator) -> Floats:
        """Return the rows of relations at the start."""

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> EmbeddingScorer:
        """Learn from a benchmark, starting from the watch's last checkpoint if it has one."""
        from loginfer.systems.embedding.training import train
        from loginfer.systems.interface import refuse_unseen

        refuse_unseen(benchmark, type(self).__name__)
        return train(self, benchmark, watch)

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> EmbeddingScorer:
        """Return the scorer whose `arrays()` these are."""
        from loginfer.systems.embedding.scorer import EmbeddingScorer

        wanted = {
            "entities": (len(benchmark.graph.entities), self.entity_width),
            "relations": (len(benchmark.graph.relations), self.relation_width),
        }
        for name, shape in wanted.items():
            if name not in arrays or arrays[name].shape != shape:
                found = f"have the shape {arrays[name].shape}" if name in arrays else "are missing"
                raise InputError(
                    f"the weights `{name}` {found}; {type(self).__name__} on {benchmark.name} needs {shape}",
                    hint="use the settings and the benchmark that the system was fitted with",
                )
        return EmbeddingScorer.of(self, arrays["entities"], arrays["relations"])


@dataclass(frozen=True, kw_only=True)
class DistanceSystem(EmbeddingSystem):
    """A model whose score is a margin γ minus a distance."""

    margin: float = setting(6.0, "γ, the distance at which the score is 0", least=0)

    @property
    def offset(self) -> float:
        """γ."""
        return self.margin

    def initial_entities(self, entities: int, random: np.random.Generator) -> Floats:
        """Draw evenly from ±(γ + 2) / d."""
        bound = (self.margin + 2) / self.dimension
        return random.uniform(-bound, bound, (entities, self.entity_width)).astype(np.float32)

    def initial_relations(self, relations: int, random: np.random.Generator) -> Floats:
        """Draw as for entities."""
        bound = (self.margin + 2) / self.dimension
        return random.uniform(-bound, bound, (relations, self.relation_width)).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class ProductSystem(EmbeddingSystem):
    """A model whose score is a product of subject, relation and object.

    N3 regularisation adds λ · (Σ|s|³ + Σ|r|³ + Σ|o|³) to the loss of each positive (s, r, o), with the moduli
    of complex numbers.
    """

    regularisation: float = setting(0.01, "λ, the weight of the N3 regularisation", least=0)
    spread: float = setting(0.02, "all numbers start between minus this and this", least=0)

    @property
    def comparison(self) -> int:
        """The dot product."""
        return DOT

    @property
    def offset(self) -> float:
        """Nothing."""
        return 0.0

    @property
    def cubic(self) -> float:
        """λ."""
        return self.regularisation

    def initial_entities(self, entities: int, random: np.random.Generator) -> Floats:
        """Draw evenly from ±spread."""
        return random.uniform(-self.spread, self.spread, (entities, self.entity_width)).astype(np.float32)

    def initial_relations(self, relations: int, random: np.random.Generator) -> Floats:
        """Draw as for entities."""
        return random.uniform(-self.spread, self.spread, (relations, self.relation_width)).astype(np.float32)
