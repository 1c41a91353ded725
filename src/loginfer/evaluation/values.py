"""Scores and ranks.

Scores and ranks as values: what a system said about a benchmark, before any metric.

Asking a scorer about a benchmark's labelled triples, without trusting what it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark, Splits
from loginfer.errors import InputError
from loginfer.kg import Triples
from loginfer.systems.interface import Position, Scorer

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


def predict(scorer: Scorer, benchmark: Benchmark, method: str | None) -> Predictions:
    """Return the scores of P_valid, N_valid, P_test and N_test.

    Parameters
    ----------
    scorer
        A fitted system.
    benchmark
        The benchmark.
    method
        Whose negatives; None for a benchmark without any.

    Raises
    ------
    InputError
        If the scorer's answer is not one finite number for each triple.
    """
    scored = []
    for split in ("valid", "test"):
        positive, negative = labelled_triples(benchmark, method, split)
        # Positives and negatives are asked for together: an answer must not depend on who else is asked.
        scores = check_scores(_asked(scorer, np.vstack([positive, negative])), benchmark, positive, negative)
        scored.append(LabelledScores(scores[: len(positive)], scores[len(positive) :]))
    return Predictions(method, scored[0], scored[1])


def _negatives(benchmark: Benchmark, method: str | None) -> Splits:
    if method is None:
        nothing: Triples = np.empty((0, 3), dtype=np.int32)
        return Splits(nothing, nothing, nothing)
    return benchmark.negatives[method].splits


def labelled_triples(benchmark: Benchmark, method: str | None, split: str) -> tuple[Triples, Triples]:
    """Return the positives and the negatives of a split."""
    return benchmark.positives[split], _negatives(benchmark, method)[split]


def _asked(scorer: Scorer, triples: Triples) -> Any:
    if not len(triples):
        return np.empty(0)
    return scorer.score(triples)


def numbers(answer: Any, hint: str) -> npt.NDArray[np.floating[Any]]:
    """Return a scorer's answer as an array of float32 or float64; complain if it holds anything but numbers.

    Parameters
    ----------
    answer
        An array, or whatever becomes one.
    hint
        What the answer should have been.
    """
    try:
        found = np.asarray(answer)
        if found.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        wanted = found.dtype if found.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        return np.asarray(found, dtype=wanted)
    except Exception as error:  # a tensor of some library complains in its own way
        raise InputError(
            f"the scorer answered with {type(answer).__name__}, not with numbers: {error}", hint=hint
        ) from error


def check_scores(answer: Any, benchmark: Benchmark, *asked: Triples) -> Scores:
    """Return a scorer's answer as float64[n]; complain if it is not one finite number a triple.

    Infinite scores are refused too: they have no middle, where a threshold could lie.
    """
    triples = np.vstack(asked)
    scores = numbers(answer, _EXPECTED).astype(np.float64, copy=False)
    if scores.shape != (len(triples),):
        raise InputError(
            f"the scorer answered {len(triples):,} triples with an array of shape {scores.shape}", hint=_EXPECTED
        )
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        first = wrong[0]
        name = ", ".join(benchmark.graph.names(triples[[first]])[0])
        raise InputError(
            f"the scorer gave {len(wrong):,} of {len(triples):,} triples a score that is no finite number, "
            f"the first: ({name}) {scores[first]}",
            hint="a lower learning rate often helps where training diverged",
        )
    return np.ascontiguousarray(scores)


_EXPECTED = "score(triples) must return an array of one number for each row of triples"
