"""Scoring with a fitted R-GCN: its decoder is DistMult, on vectors that went through the layers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.systems.embedding.distmult import DistMult
from loginfer.systems.embedding.scorer import EmbeddingScorer

__all__ = ["distmult_scorer"]


def distmult_scorer(entities: npt.NDArray[np.float32], relations: npt.NDArray[np.float32]) -> EmbeddingScorer:
    """Return the scorer with these vectors.

    Parameters
    ----------
    entities
        float32[n, d + 1], vectors after the last layer, and 1 in the last place.
    relations
        float32[R, d + 1], the decoder's vectors, and in the last place the bias.
    """
    return EmbeddingScorer.of(DistMult(dimension=entities.shape[1]), entities, relations)
