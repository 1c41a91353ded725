"""Compiled: what is known of scores while rules are applied, best rules first.

See `loginfer.systems.rules.aggregation` for what the three aggregations are.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined
from loginfer.systems.rules.aggregation import MAXIMUM, NOISY_OR, Worth

__all__ = ["Board", "clear", "new_board", "no_more", "push"]

# A number: a Python int outside, an int64 inside.
Int: TypeAlias = Any

ROOM, LAST, TOUCHED = range(3)

# What RuleN adds for each further rule.
_FURTHER = 1e-4


class Board(NamedTuple):
    """The scores of some candidates.

    Parameters
    ----------
    code
        int64[1], the aggregation.
    values, rooms
        float64[d], int64[d]: the different confidences, and the floats from each to the next.
    scores, bits
        float64[c], and the same memory as int64[c].
    state
        int64[c, 3]. ROOM: -1 before the first rule; for `maximum` the floats that are left to tell scores
        apart, for `sum` the further rules. LAST: the rank of the last rule. TOUCHED, apart from these: the
        candidates with rules, in the order in which they got the first.
    """

    code: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    rooms: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    bits: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


def new_board(worth: Worth, candidates: int) -> Board:
    """Return a board without any rules."""
    scores = np.zeros(candidates)
    return Board(
        np.array([worth.code], dtype=np.int64),
        worth.values,
        worth.room,
        scores,
        scores.view(np.int64),
        np.full((candidates, 3), -1, dtype=np.int64),
    )


@inlined
def push(board: Board, count: Int, j: Int, rank: Int) -> Int:
    """Add a rule to the j-th score; `count` candidates are touched before, the result says how many after."""
    code = board.code[0]
    if board.state[j, ROOM] < 0:
        board.state[count, TOUCHED] = j
        board.state[j, LAST] = rank
        value = float(board.values[rank])
        if code == NOISY_OR:
            board.scores[j] = 1.0 - min(value, 1.0)
            board.state[j, ROOM] = 0
        else:
            board.scores[j] = value
            board.state[j, ROOM] = board.rooms[rank] if code == MAXIMUM else 0
        return count + 1
    if code == MAXIMUM:
        # As long as there is room: where there is none, a division would only find that out.
        if board.state[j, ROOM] > board.state[j, LAST] + 1:
            part = board.state[j, ROOM] // (board.state[j, LAST] + 2)
            board.bits[j] += part * (rank + 1)
            board.state[j, ROOM] = part
            board.state[j, LAST] = rank
    elif code == NOISY_OR:
        board.scores[j] *= 1.0 - min(float(board.values[rank]), 1.0)
    else:
        board.state[j, ROOM] += 1
    return count


@inlined
def no_more(board: Board, j: Int) -> bool:
    """Say whether further rules make no difference to the j-th score."""
    return bool(
        board.code[0] == MAXIMUM
        and board.state[j, ROOM] >= 0
        and board.state[j, ROOM] < board.state[j, LAST] + 2
    )


@inlined
def clear(board: Board, count: Int, scores: npt.NDArray[np.float64]) -> None:
    """Write the scores of the touched candidates, and make room for others."""
    code = board.code[0]
    for number in range(count):
        j = board.state[number, TOUCHED]
        score = board.scores[j]
        if code == NOISY_OR:
            score = 1.0 - score
        elif code != MAXIMUM:
            score += _FURTHER * board.state[j, ROOM]
        scores[j] = score
        board.state[j, ROOM] = -1
