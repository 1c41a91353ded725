"""Defaults of some models' settings that differ from those of all others."""

from __future__ import annotations

from typing import Any

__all__ = ["DEFAULTS"]

# Models whose score is minus a distance, and so never positive: with our loss they need a margin, the
# distance at which a triple is as likely as not. The value is that of our own models with distances.
_DISTANCES = (
    "BoxE", "KG2E", "MuRE", "PairRE", "RotatE", "SE", "TorusE",
    "TransD", "TransE", "TransF", "TransH", "TransR", "UM",
)  # fmt: skip

# Models that we have as well, whose score is a product. PyKEEN's DistMult keeps the vectors of entities at
# length 1, with which our loss cannot make scores large: on WN18RR it then learns far less. They get our own
# regularisation instead of PyKEEN's constraints and regularisers.
_PRODUCTS: dict[str, dict[str, Any]] = {
    "ComplEx": {"regularizer": None, "regularisation": 0.01},
    "DistMult": {"entity_constrainer": None, "regularizer": None, "regularisation": 0.01},
}

DEFAULTS: dict[str, dict[str, Any]] = {name: {"margin": 6.0} for name in _DISTANCES} | _PRODUCTS
