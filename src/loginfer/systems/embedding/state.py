"""The values that the kernels of training work on."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.systems.embedding.room import zeros
from loginfer.systems.embedding.system import EmbeddingSystem, Floats

__all__ = ["Data", "Ids", "Loss", "Model", "Positive", "Weights", "Workspace"]

Ids: TypeAlias = npt.NDArray[np.int32]


class Model(NamedTuple):
    """What kernels need to know of a model (see `codes`), and what is added to a comparison: γ or 0."""

    code: int
    comparison: int
    offset: np.float32

    @classmethod
    def of(cls, system: EmbeddingSystem) -> Model:
        """Describe a system's model."""
        return cls(system.code, system.comparison, np.float32(system.offset))


class Loss(NamedTuple):
    """The loss: how many random negatives, and the weights of its parts (see `EmbeddingSystem`)."""

    negatives: int
    adversarial: np.float32
    explicit_weight: np.float32
    relation_weight: np.float32
    cubic: np.float32

    @classmethod
    def of(cls, system: EmbeddingSystem) -> Loss:
        """Describe a system's loss."""
        return cls(
            0 if system.mode == "explicit" else system.negatives,
            np.float32(system.adversarial),
            np.float32(0 if system.mode == "random" else system.explicit_weight),
            np.float32(system.relation_weight),
            np.float32(system.cubic),
        )


class Weights(NamedTuple):
    """What is learned, what is derived from relations, and Adam's moments, float32[rows, 2, width]."""

    entities: Floats
    relations: Floats
    derived: Floats
    entity_moments: Floats
    relation_moments: Floats


class Data(NamedTuple):
    """What is learned from.

    Parameters
    ----------
    positives, negatives
        int32[n, 3], P_train and N_train; without explicit negatives the latter is empty.
    constants, types, relations
        Ids to choose from for random negatives.
    type_relation
        The id of the type predicate; -1 for none.
    """

    positives: Ids
    negatives: Ids
    constants: Ids
    types: Ids
    relations: Ids
    type_relation: int


class Positive(NamedTuple):
    """A positive and its negatives, as `Workspace` has them."""

    known: Ids
    relation: Ids
    side: Ids
    ends: Ids
    candidates: Ids
    scores: Floats
    weights: Floats


class Workspace(NamedTuple):
    """What a worker needs besides: gradients of the rows that its batch touches, and room for one positive.

    A positive and its negatives are candidates in four groups. Those of a group share a query, made of a
    known end and a relation: the positive's subject (the positive itself is candidate 0, random objects
    follow), its object (random subjects), the subject of the explicit negative, the positive's subject with
    another relation.

    Parameters
    ----------
    slots
        int32[entities], the row of each entity in `g_entities`; -1 if the batch has not touched it.
    filled
        int32[1], how many rows are in use.
    touched, uses
        int32[most], the entity of each row and how often it was part of a positive.
    g_entities
        float32[most, width], gradients; 0 between batches.
    relation_touched, relation_uses, g_derived
        The same for relations, with a row each.
    g_parameters
        float32[width], the gradient of one relation's parameters.
    known, relation, side, ends
        int32[4], what the query of each group is made of; group g has the candidates ends[g] to ends[g + 1].
    queries, g_query
        float32[4, width], float32[width].
    candidates, scores, weights
        [negatives + 3]: candidates, their scores and the derivatives of the loss by them.
    """

    slots: Ids
    filled: Ids
    touched: Ids
    uses: Ids
    g_entities: Floats
    relation_touched: npt.NDArray[np.bool_]
    relation_uses: Ids
    g_derived: Floats
    g_parameters: Floats
    known: Ids
    relation: Ids
    side: Ids
    ends: Ids
    queries: Floats
    g_query: Floats
    candidates: Ids
    scores: Floats
    weights: Floats

    @classmethod
    def of(cls, system: EmbeddingSystem, weights: Weights) -> Workspace:
        """Make the room that a worker needs."""
        entities, width = weights.entities.shape
        relations, derived = weights.derived.shape
        most = min(entities, system.batch * (system.negatives + 4))
        room = system.negatives + 3
        return cls(
            slots=np.full(entities, -1, dtype=np.int32),
            filled=np.zeros(1, dtype=np.int32),
            touched=np.zeros(most, dtype=np.int32),
            uses=np.zeros(most, dtype=np.int32),
            g_entities=zeros(most, width),
            relation_touched=np.zeros(relations, dtype=np.bool_),
            relation_uses=np.zeros(relations, dtype=np.int32),
            g_derived=zeros(relations, derived),
            g_parameters=zeros(weights.relations.shape[1]),
            known=np.zeros(4, dtype=np.int32),
            relation=np.zeros(4, dtype=np.int32),
            side=np.zeros(4, dtype=np.int32),
            ends=np.zeros(5, dtype=np.int32),
            queries=zeros(4, system.query_width),
            g_query=zeros(system.query_width),
            candidates=np.zeros(room, dtype=np.int32),
            scores=zeros(room),
            weights=zeros(room),
        )
