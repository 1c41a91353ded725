"""Scores and ranks as values: what a system said about a benchmark, before any metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from loginfer.systems.interface import Position

__all__ = [
    "PROTOCOLS",
    "TIES",
    "Counts",
    "LabelledScores",
    "Predictions",
    "Protocol",
    "Ranks",
    "Scores",
    "Tie",
]

Scores: TypeAlias = npt.NDArray[np.float64]
Counts: TypeAlias = npt.NDArray[np.int64]

# Whom a test triple is ranked against, position by position.
#   given       the triples of N_test that differ from it in that position (section 2.2 of the paper)
#   filtered    all constants, types or relations of P_train, without other triples of P_all
#   unfiltered  all of them
Protocol = Literal["given", "filtered", "unfiltered"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

# What becomes of competitors with the same score: they come after, half of them before, all before.
Tie = Literal["optimistic", "realistic", "pessimistic"]
TIES: tuple[Tie, ...] = get_args(Tie)


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """The scores of one split, in the order of the benchmark's triples.

    Parameters
    ----------
    positive
        float64[|P|].
    negative
        float64[|N|].
    """

    positive: Scores
    negative: Scores

    def __len__(self) -> int:
        return len(self.positive) + len(self.negative)


@dataclass(frozen=True, slots=True)
class Predictions:
    """The scores of a benchmark's labelled triples.

    Parameters
    ----------
    method
        Whose negatives they are; None for a benchmark without any.
    valid, test
        The scores.
    """

    method: str | None
    valid: LabelledScores
    test: LabelledScores


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where each triple of P_test stands among its competitors, for one position under one protocol.

    Parameters
    ----------
    protocol, position
        Which.
    places
        int64[m], the triples of P_test that have this position (a type triple has no relation to corrupt).
    above, ties, competitors
        int64[m]: competitors with a higher score, with the same score, and altogether.
    """

    protocol: Protocol
    position: Position
    places: Counts
    above: Counts
    ties: Counts
    competitors: Counts

    def ranks(self, tie: Tie = "realistic") -> npt.NDArray[np.float64]:
        """Return float64[m], the ranks, from 1 on."""
        share: Mapping[Tie, float] = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}
        return np.asarray(self.above + 1 + share[tie] * self.ties)
