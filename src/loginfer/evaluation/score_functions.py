"""A script's own function as a scorer; what it answers may be a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loginfer.errors import InputError
from loginfer.evaluation.score_arrays import off_its_device
from loginfer.kg import Triples
from loginfer.systems.interface import CandidateScorer, Scorer

__all__ = ["scorer_of"]


class _Function:
    """A function that gives scores, as a scorer."""

    def __init__(self, function: Callable[[Triples], Any]) -> None:
        self._function = function

    def score(self, triples: Triples) -> Any:
        return off_its_device(self._function(triples))


def scorer_of(score: Any) -> Scorer:
    """Return a scorer.

    Parameters
    ----------
    score
        A function from int32[n, 3] to n numbers, or an object with such a method `score`.
    """
    method = getattr(score, "score", None)
    if callable(method):
        scorer: Scorer = score
        return scorer if isinstance(score, CandidateScorer) else _Function(method)
    if callable(score):
        return _Function(score)
    raise InputError(
        f"{type(score).__name__} gives no scores",
        where="score",
        hint="give a function from triples to numbers, or an object with a method `score`",
    )
