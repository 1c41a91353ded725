"""What all embedding models share: their settings, how they are fitted, and the functions that a model consists of.

A model scores a triple in two steps. One end and the relation make a *query*, which is compared with the other
end; all corruptions of that end share the query. So a model is a dataclass with settings and a few plain
functions on rows of numbers (`ModelFunctions`), from which kernels are compiled for that model alone. To add
one, write a file like `distmult.py` and name its class in `systems.toml`, or offer it from another package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.settings import check_settings, setting
from loginfer.systems.fitting import check_weights
from loginfer.systems.interface import Arrays, Watch, refuse_unseen

if TYPE_CHECKING:
    from loginfer.systems.embedding.scorer import EmbeddingScorer

Floats: TypeAlias = npt.NDArray[np.float32]

# The end that a query lacks.
OBJECT, SUBJECT = range(2)

# Candidates that are scored side by side when queries are ranked.
TILE = 64

_ZERO = np.float32(0)
_THREE = np.float32(3)
_TINY = np.float32(1e-12)


@dataclass(frozen=True, kw_only=True)
class EmbeddingSystem(ABC):
    """A model with a vector for each constant, type and relation, trained on P_train and N_train.

    A query, such as (s, R, ?), is asked with its right answers p and with candidates n₁, …, n_k that all queries of
    a step share, without those that are right answers. With softplus(x) = log(1 + exp x), the loss of an answer is

        softplus(−score(p)) + Σ w_i · softplus(score(n_i))      `softplus`
        −log (exp score(p) / (exp score(p) + Σ exp score(n_i)))      `softmax`; `1vsall` against all there are

    where w_i = exp(α·score(n_i)) / Σ exp(α·score(n_j)) are taken as constants. To each answer comes an explicit
    negative e of N_train and a negative q with another relation:

        explicit_weight · softplus(score(e)) + relation_weight · softplus(score(q)),

    and to `softmax` and `1vsall`, which compare scores of one query only, as much of softplus(−score(p)), so that one
    threshold can tell right from wrong. In the mode `explicit` there are no candidates and no q, and each score
    counts by itself.
    """

    dimension: int = setting(100, "numbers in a vector; complex ones for RotatE and ComplEx", least=1)
    loss: Literal["softplus", "softmax", "1vsall"] = setting(
        "softplus",
        "each candidate by itself, the answer among candidates, or the answer among all",
        tuned="softplus,softmax",
    )
    mode: Literal["explicit", "random", "both"] = setting(
        "both", "negatives: those of N_train, random candidates, or both"
    )
    negatives: int = setting(256, "random candidates that the queries of a step share", least=1, tuned="64:4096:log")
    adversarial: float = setting(
        1.0, "α of `softplus`: how much more hard candidates count; 0: all alike", least=0, tuned="0:2"
    )
    explicit_weight: float = setting(0.2, "weight of the explicit negative", least=0, tuned="0.03:3:log")
    relation_weight: float = setting(0.0, "weight of a negative with another relation", least=0)
    dropout: float = setting(0.0, "share of the numbers of a query that is dropped", least=0, most=0.99)
    batch: int = setting(512, "positives in a step", least=1)
    epochs: int = setting(30, "how often all of P_train is seen, once for objects and once for subjects", least=1)
    optimiser: Literal["adam", "adagrad"] = setting("adam", "both change only what a step has touched")
    learning_rate: float = setting(0.005, "at the start; falls to 0 in a straight line", least=0, tuned="0.001:0.3:log")
    patience: int = setting(0, "stop after so many epochs that were not better on valid; 0: never", least=0)
    keep: Literal["best", "last"] = setting("best", "the epoch that is best on valid, or the last one")
    workers: int = setting(
        1, "threads; how many makes no difference to the result", least=1, most=256, indifferent=True
    )
    partitions: int = setting(
        0, "parts of the entities, of which two are in memory; 0: one, or as many as 8 GB need", least=0, most=1024
    )
    storage: Literal["auto", "memory", "mapped"] = setting(
        "auto",
        "where weights are: memory, mapped files, or files from 2 GB on; no difference to the result",
        indifferent=True,
    )
    seed: int = setting(0, "seed of all that is random", least=0)

    # How many times `dimension` a row is wide: of an entity, of a relation, of what queries need of a
    # relation (as a relation's row unless said), of a query (as an entity's row unless said).
    entity_parts: ClassVar[int] = 1
    relation_parts: ClassVar[int] = 1
    derived_parts: ClassVar[int | None] = None
    query_parts: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def softmax(self) -> bool:
        """Whether an answer is compared with candidates, and does not count by itself."""
        return self.loss != "softplus" and self.mode != "explicit"

    @property
    def entity_width(self) -> int:
        """Numbers in the row of a constant or type."""
        return self.entity_parts * self.dimension

    @property
    def relation_width(self) -> int:
        """Numbers in the row of a relation."""
        return self.relation_parts * self.dimension

    @property
    def derived_width(self) -> int:
        """Numbers in what queries need of a relation."""
        return (self.derived_parts or self.relation_parts) * self.dimension

    @property
    def query_width(self) -> int:
        """Numbers in a query."""
        return (self.query_parts or self.entity_parts) * self.dimension

    @property
    def moments(self) -> int:
        """Numbers that the optimiser keeps for each weight."""
        return 2 if self.optimiser == "adam" else 1

    @property
    @abstractmethod
    def functions(self) -> ModelFunctions:
        """The functions that the model consists of."""

    @property
    def directions(self) -> int:
        """Rows of a relation: one, or one for queries that lack the object and one for those that lack the subject."""
        return 1

    @property
    def offset(self) -> float:
        """What is added to a comparison to make a score."""
        return 0.0

    @property
    def cubic(self) -> float:
        """The weight of the N3 regularisation."""
        return 0.0

    @property
    @abstractmethod
    def initial_bound(self) -> float:
        """All numbers start between minus this and this, unless a model draws them in another way."""

    def initial_entities(self, entities: int, random: np.random.Generator) -> Floats:
        """Draw the rows of constants and types at the start."""
        return self._draw_uniform((entities, self.entity_width), random)

    def initial_relations(self, relations: int, random: np.random.Generator) -> Floats:
        """Draw the rows of relations at the start."""
        return self._draw_uniform((relations, self.relation_width), random)

    def _draw_uniform(self, shape: tuple[int, int], random: np.random.Generator) -> Floats:
        return random.uniform(-self.initial_bound, self.initial_bound, shape).astype(np.float32)

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> EmbeddingScorer:
        """Learn from a benchmark, starting from the watch's last checkpoint if it has one."""
        from loginfer.systems.embedding.training import train

        refuse_unseen(benchmark, type(self).__name__)
        return train(self, benchmark, watch)

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> EmbeddingScorer:
        """Return the scorer whose `arrays()` these are."""
        from loginfer.systems.embedding.scorer import EmbeddingScorer

        graph = benchmark.graph
        shapes = {
            "entities": (len(graph.entities), self.entity_width),
            "relations": (len(graph.relations) * self.directions, self.relation_width),
        }
        check_weights(arrays, shapes, f"{type(self).__name__} on {benchmark.name}")
        return EmbeddingScorer.of(self, arrays["entities"], arrays["relations"])


@dataclass(frozen=True, kw_only=True)
class DistanceSystem(EmbeddingSystem):
    """A model whose score is a margin γ minus a distance."""

    margin: float = setting(6.0, "γ, the distance at which the score is 0", least=0, tuned="3:15")

    @property
    def offset(self) -> float:
        """γ."""
        return self.margin

    @property
    def initial_bound(self) -> float:
        """(γ + 2) / d."""
        return (self.margin + 2) / self.dimension


@dataclass(frozen=True, kw_only=True)
class ProductSystem(EmbeddingSystem):
    """A model whose score is a product of subject, relation and object.

    N3 regularisation adds λ · (Σ|s|³ + Σ|r|³ + Σ|o|³) to the loss of each positive (s, r, o), with the moduli
    of complex numbers. With reciprocal relations (s, r, ?) asks for s·r, and (?, r, o) for o·r⁻¹ with a vector r⁻¹ of
    its own; a triple has the mean of both scores (Lacroix and others, Canonical Tensor Decomposition for Knowledge
    Base Completion, ICML 2018).
    """

    learning_rate: float = setting(0.02, "at the start; falls to 0 in a straight line", least=0, tuned="0.001:0.3:log")
    reciprocal: bool = setting(False, "a vector of its own for each relation's inverse")
    regularisation: float = setting(0.01, "λ, the weight of the N3 regularisation", least=0, tuned="0.001:0.3:log")
    spread: float = setting(0.02, "all numbers start between minus this and this", least=0)

    @property
    def directions(self) -> int:
        """Two with reciprocal relations."""
        return 2 if self.reciprocal else 1

    @property
    def cubic(self) -> float:
        """λ."""
        return self.regularisation

    @property
    def initial_bound(self) -> float:
        """The spread."""
        return self.spread


# -- the functions of a model ----------------------------------------------------------------------
#
# They work on rows, float32[width], write into the last arguments, and are compiled: into training with sums
# in any order, into scoring with sums strictly one after the other. Slices instead of sums of indices: an
# index that might be negative would keep loops out of vector registers. `backward` means as in PyTorch: from
# the derivative of the loss by a result, `g_…`, to those by the arguments, which are added up.


class ComparisonFunctions(NamedTuple):
    """How a query is compared with a candidate for the end that it lacks; higher is more alike.

    Parameters
    ----------
    compare
        (query, candidate) → number.
    backward_compare
        (weight, comparison, query, candidate, g_query, g_candidate): adds weight · ∂comparison.
    compare_tile
        (query, tile, sums): the same numbers for each column of float32[width, TILE]; sums are 0 before.
    backward_tile
        (weights, query, tile, sums, g_query, g_tile): adds Σ weight · ∂comparison of the columns; sums are there to
        be written to. None for the dot product, which is learned with matrix products.
    """

    compare: Callable[..., Any]
    backward_compare: Callable[..., None]
    compare_tile: Callable[..., None]
    backward_tile: Callable[..., None] | None = None


def copy_row(parameters: Floats, derived: Floats) -> None:
    """Use the parameters of a relation as they are."""
    for j in range(len(parameters)):
        derived[j] = parameters[j]


def copy_gradient(derived: Floats, g_derived: Floats, g_parameters: Floats) -> None:
    """Use the gradient as it is."""
    for j in range(len(g_derived)):
        g_parameters[j] = g_derived[j]


def backward_cubic(weight: Any, row: Floats, gradient: Floats) -> None:
    """Add weight · ∂Σ|x|³."""
    for j in range(len(row)):
        gradient[j] += _THREE * weight * abs(row[j]) * row[j]


class ModelFunctions(NamedTuple):
    """The functions of a model.

    Parameters
    ----------
    make_query
        (side, entity, relation, query): the query of the known end and what is derived from the relation.
    backward_query
        (side, entity, relation, g_query, g_entity, g_relation).
    compare, backward_compare, compare_tile, backward_tile
        See `ComparisonFunctions`.
    derive, backward_derive
        (parameters, derived), (derived, g_derived, g_parameters): what queries need of a relation's row.
        The latter sets the gradient.
    backward_cubic
        (weight, row, gradient): the N3 regularisation of a row.
    """

    make_query: Callable[..., None]
    backward_query: Callable[..., None]
    compare: Callable[..., Any]
    backward_compare: Callable[..., None]
    compare_tile: Callable[..., None]
    backward_tile: Callable[..., None] | None = None
    derive: Callable[..., None] = copy_row
    backward_derive: Callable[..., None] = copy_gradient
    backward_cubic: Callable[..., None] = backward_cubic


# -- comparisons that several models use -----------------------------------------------------------


def _compare_l1(query: Floats, candidate: Floats) -> Any:
    total = _ZERO
    for j in range(len(candidate)):
        total += abs(query[j] - candidate[j])
    return -total


def _backward_l1(
    weight: Any, comparison: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats
) -> None:
    # The derivative of |0| is 0.
    for j in range(len(candidate)):
        difference = query[j] - candidate[j]
        up = (weight if difference > _ZERO else _ZERO) - (weight if difference < _ZERO else _ZERO)
        g_query[j] -= up
        g_candidate[j] += up


def _compare_tile_l1(query: Floats, tile: Floats, sums: Floats) -> None:
    unrolled = len(tile) - len(tile) % 4
    for j in range(0, unrolled, 4):
        q0, q1, q2, q3 = query[j], query[j + 1], query[j + 2], query[j + 3]
        for c in range(TILE):
            sums[c] = (
                sums[c]
                - abs(q0 - tile[j, c])
                - abs(q1 - tile[j + 1, c])
                - abs(q2 - tile[j + 2, c])
                - abs(q3 - tile[j + 3, c])
            )
    for j in range(unrolled, len(tile)):
        for c in range(TILE):
            sums[c] -= abs(query[j] - tile[j, c])


def _backward_tile_l1(
    weights: Floats, query: Floats, tile: Floats, sums: Floats, g_query: Floats, g_tile: Floats
) -> None:
    for j in range(len(tile)):
        q, total = query[j], _ZERO
        for c in range(TILE):
            difference = q - tile[j, c]
            up = (weights[c] if difference > _ZERO else _ZERO) - (weights[c] if difference < _ZERO else _ZERO)
            total += up
            g_tile[j, c] += up
        g_query[j] -= total


def _compare_l2(query: Floats, candidate: Floats) -> Any:
    total = _ZERO
    for j in range(len(candidate)):
        difference = query[j] - candidate[j]
        total += difference * difference
    return -np.sqrt(total)


def _backward_l2(
    weight: Any, comparison: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats
) -> None:
    # The derivative at 0 is 0.
    scale = weight / max(-comparison, _TINY)
    for j in range(len(candidate)):
        up = scale * (query[j] - candidate[j])
        g_query[j] -= up
        g_candidate[j] += up


def _compare_tile_l2(query: Floats, tile: Floats, sums: Floats) -> None:
    for j in range(len(tile)):
        for c in range(TILE):
            difference = query[j] - tile[j, c]
            sums[c] += difference * difference
    for c in range(TILE):
        sums[c] = -np.sqrt(sums[c])


def _backward_tile_l2(
    weights: Floats, query: Floats, tile: Floats, sums: Floats, g_query: Floats, g_tile: Floats
) -> None:
    for c in range(TILE):
        sums[c] = _ZERO
    for j in range(len(tile)):
        for c in range(TILE):
            difference = query[j] - tile[j, c]
            sums[c] += difference * difference
    for c in range(TILE):
        sums[c] = weights[c] / max(np.sqrt(sums[c]), _TINY)
    for j in range(len(tile)):
        q, total = query[j], _ZERO
        for c in range(TILE):
            up = sums[c] * (q - tile[j, c])
            total += up
            g_tile[j, c] += up
        g_query[j] -= total


def _compare_dot(query: Floats, candidate: Floats) -> Any:
    total = _ZERO
    for j in range(len(candidate)):
        total += query[j] * candidate[j]
    return total


def _backward_dot(
    weight: Any, comparison: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats
) -> None:
    for j in range(len(candidate)):
        g_query[j] += weight * candidate[j]
        g_candidate[j] += weight * query[j]


def _compare_tile_dot(query: Floats, tile: Floats, sums: Floats) -> None:
    unrolled = len(tile) - len(tile) % 4
    for j in range(0, unrolled, 4):
        q0, q1, q2, q3 = query[j], query[j + 1], query[j + 2], query[j + 3]
        for c in range(TILE):
            sums[c] = sums[c] + q0 * tile[j, c] + q1 * tile[j + 1, c] + q2 * tile[j + 2, c] + q3 * tile[j + 3, c]
    for j in range(unrolled, len(tile)):
        for c in range(TILE):
            sums[c] += query[j] * tile[j, c]


# −Σ|q − c|, −√Σ(q − c)² and Σ q·c.
L1 = ComparisonFunctions(_compare_l1, _backward_l1, _compare_tile_l1, _backward_tile_l1)
L2 = ComparisonFunctions(_compare_l2, _backward_l2, _compare_tile_l2, _backward_tile_l2)
DOT = ComparisonFunctions(_compare_dot, _backward_dot, _compare_tile_dot)
