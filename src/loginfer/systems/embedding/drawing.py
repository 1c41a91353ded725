"""A positive and its negatives, drawn inside kernels; its place in the epoch decides which."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import fast_spliced
from loginfer.systems.embedding.codes import OBJECT, SUBJECT
from loginfer.systems.embedding.prefetch import prefetch_row
from loginfer.systems.embedding.sampling import draw_other, random_bits
from loginfer.systems.embedding.state import Data, Loss, Positive, Weights, Workspace

__all__ = ["announce", "draw", "touch"]

_ZERO = np.float32(0)


@fast_spliced
def announce(loss: Loss, weights: Weights, data: Data, salt: Any, place: int, positive: int) -> None:
    """Ask for the rows of a positive and its random negatives, before they are needed."""
    width = weights.entities.shape[1]
    prefetch_row(weights.entities, np.int64(data.positives[positive, 0]), width)
    prefetch_row(weights.entities, np.int64(data.positives[positive, 2]), width)
    counter = np.uint64(place) * np.uint64(loss.negatives + 1)
    for i in range(loss.negatives):
        bits = random_bits(salt, counter + np.uint64(i))
        prefetch_row(weights.entities, np.int64(draw_other(bits, data.constants, -1)), width)


@fast_spliced
def draw(
    loss: Loss,
    data: Data,
    work: Workspace | Positive,
    salt: Any,
    place: int,
    positive: int,
    explicit: int,
) -> None:
    """Write down a positive and its negatives, as candidates in groups (see `Workspace`)."""
    subject, relation, object_ = (
        data.positives[positive, 0],
        data.positives[positive, 1],
        data.positives[positive, 2],
    )
    of_types = relation == data.type_relation
    counter = np.uint64(place) * np.uint64(loss.negatives + 1)
    work.candidates[0] = object_
    objects, end = 1, loss.negatives + 1
    pool = data.types if of_types else data.constants
    for i in range(loss.negatives):
        bits = random_bits(salt, counter + np.uint64(i))
        if bits & np.uint64(1) and len(pool) > 1:  # a graph may have one type only
            work.candidates[objects] = draw_other(bits, pool, object_)
            objects += 1
        else:
            end -= 1
            work.candidates[end] = draw_other(bits, data.constants, subject)
    for group in range(4):
        work.known[group] = subject
        work.relation[group] = relation
        work.side[group] = OBJECT
    work.known[1] = object_
    work.side[1] = SUBJECT
    work.ends[1] = objects
    work.ends[2] = loss.negatives + 1
    end = loss.negatives + 1
    if loss.explicit_weight > _ZERO and len(data.negatives) > 0:
        work.candidates[end] = data.negatives[explicit, 2]
        work.known[2] = data.negatives[explicit, 0]
        work.relation[2] = data.negatives[explicit, 1]
        end += 1
    work.ends[3] = end
    if loss.relation_weight > _ZERO and len(data.relations) > 1 and not of_types:
        bits = random_bits(salt, counter + np.uint64(loss.negatives))
        work.candidates[end] = object_
        work.relation[3] = draw_other(bits, data.relations, relation)
        end += 1
    work.ends[4] = end


@fast_spliced
def touch(work: Workspace, entity: Any) -> None:
    """Give an entity a row for its gradient."""
    if work.slots[entity] < 0:
        work.slots[entity] = work.filled[0]
        work.touched[work.filled[0]] = entity
        work.filled[0] += 1
    prefetch_row(work.g_entities, np.int64(work.slots[entity]), work.g_entities.shape[1])
