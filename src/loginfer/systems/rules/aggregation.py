"""How the confidences of the rules that predict a triple become its score.

Rules are met best first, so one pass with a little memory for each triple is enough:

    maximum    the best confidence; ties are broken by the next best rule, then the one after it, …
    noisy-or   1 - ∏ (1 - confidence)
    sum        the best confidence, and 10⁻⁴ for each further rule (RuleN)

`maximum` uses that the floats between two neighbouring confidences are good for nothing else. Let there be
`room` of them between the best rule's confidence and the next larger one of any rule. The second best rule,
whose confidence is the k-th smallest of all and at most that of the best, the K-th, picks the k-th of K + 1
equal parts of that room (the 0-th is for triples without a second rule), the third best rule picks a part of
that part, and so on until a part is smaller than one float. So scores are ordered as the sequences of
confidences are, lexicographically, as far as they go; equal scores mean equal sequences up to there; and no
score reaches the confidence of the next better rule. With the tens of thousands of different confidences of
a large rule set this is three to four rules deep; with a few dozen of them about ten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from loginfer.errors import UnknownNameError

__all__ = ["AGGREGATIONS", "MAXIMUM", "NOISY_OR", "SUM", "Aggregation", "Worth"]

Aggregation = Literal["maximum", "noisy-or", "sum"]
AGGREGATIONS: tuple[Aggregation, ...] = get_args(Aggregation)

MAXIMUM, NOISY_OR, SUM = 0, 1, 2

# How far, relatively, scores may exceed the largest confidence of all.
TOP = 2.0**-10


@dataclass(frozen=True)
class Worth:
    """The different confidences of a set of rules, and what `maximum` can do between them.

    Parameters
    ----------
    code
        MAXIMUM, NOISY_OR or SUM.
    values
        float64[d], the different confidences above 0, ascending.
    room
        int64[d], floats from each to the next.
    """

    code: int
    values: npt.NDArray[np.float64]
    room: npt.NDArray[np.int64]

    @classmethod
    def of(cls, confidence: npt.NDArray[np.float64], aggregation: str) -> tuple[Worth, npt.NDArray[np.int32]]:
        """Return the worth of rules, and int32[m]: the rank of each one's confidence, -1 for a worthless one.

        A confidence that is not above 0 (NaN is not) is worthless: such a rule predicts nothing.
        """
        if aggregation not in AGGREGATIONS:
            raise UnknownNameError("aggregation", aggregation, AGGREGATIONS)
        worth = confidence > 0
        finite = np.minimum(confidence[worth], np.finfo(np.float64).max / 2)
        values, places = np.unique(finite, return_inverse=True)
        ranks = np.full(len(confidence), -1, dtype=np.int32)
        ranks[worth] = places.ravel()
        # The floats above 0 are in the order of their bits as numbers, without gaps.
        above = np.append(values[1:], values[-1:] * (1 + TOP))
        room = above.view(np.int64) - values.view(np.int64)
        return cls(AGGREGATIONS.index(aggregation), values, room), ranks
