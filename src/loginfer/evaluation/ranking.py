"""Where each test triple stands among its competitors.

Three protocols say who these are (see `loginfer.evaluation.values.Protocol`). `given` is the definition of
section 2.2; `filtered` and `unfiltered` rank against all candidates and share one pass over their scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation.ranking_blocks import MEMORY_LIMIT, BlockScorer, no_number, slices
from loginfer.evaluation.ranking_everyone import OPEN, Progress, ranks_among_candidates
from loginfer.evaluation.ranking_given import given_ranks
from loginfer.evaluation.values import PROTOCOLS, LabelledScores, Predictions, Protocol, Ranks, Scores
from loginfer.kg import Triples
from loginfer.systems.interface import POSITIONS, Position, Scorer
from loginfer.systems.view import choose_method

__all__ = ["MEMORY_LIMIT", "left_out", "rank"]


def rank(
    scorer: Scorer | None,
    benchmark: Benchmark,
    *,
    method: str | None = None,
    protocols: Sequence[Protocol] = ("filtered", "given"),
    positions: Sequence[Position] = POSITIONS,
    predictions: Predictions | None = None,
    memory_limit: int = MEMORY_LIMIT,
    progress: Progress | None = None,
) -> list[Ranks]:
    """Rank the triples of P_test in each position.

    Parameters
    ----------
    scorer
        Who gives the scores. One that has `score_candidates` is asked for blocks of candidates, any other for
        the scores of triples. None will do for `given` with predictions.
    benchmark
        The benchmark.
    method
        Whose N_test `given` means; by default that of the predictions, or the only one.
    protocols
        Whom to rank against. `given` is left out for a benchmark without negatives (see `left_out`).
    positions
        What to rank.
    predictions
        The scores of P_test and N_test, if they are known: `given` then asks the scorer nothing.
    memory_limit
        Bytes for the scores that are held at a time.
    progress
        Called with what is being done, the queries that are answered, and how many there are.

    Returns
    -------
    list of Ranks
        Protocol by protocol in the order asked for, in each position by position.

    Raises
    ------
    InputError
        If a score is NaN; the error names the triple.
    """
    _check_names("ranking protocol", protocols, PROTOCOLS)
    _check_names("position", positions, POSITIONS)
    wanted = [protocol for protocol in protocols if protocol not in left_out(benchmark, protocols)]
    blocks = None if scorer is None else BlockScorer(scorer, memory_limit)
    made: list[Ranks] = []
    if "given" in wanted:
        if method is None and predictions is not None:
            method = predictions.method
        method = choose_method(benchmark, method) or ""  # there are some, or `given` were left out
        scores = _labelled(blocks, benchmark, method, predictions)
        made += [given_ranks(benchmark, method, scores, position) for position in positions]
    if set(wanted) & set(OPEN):
        if blocks is None:
            raise InputError(
                "scores of the test triples alone do not rank them against all candidates",
                hint="ask for the protocol `given`",
            )
        made += ranks_among_candidates(blocks, benchmark, positions, progress)
    return [ranks for protocol in wanted for ranks in made if ranks.protocol == protocol]


def left_out(benchmark: Benchmark, protocols: Sequence[Protocol] = PROTOCOLS) -> dict[Protocol, str]:
    """Return the protocols under which a benchmark cannot be ranked, each with a note that says why."""
    if "given" in protocols and not benchmark.negatives:
        return {"given": f"no ranks under `given`: {benchmark.name} has no negatives to rank against"}
    return {}


def _check_names(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def _labelled(
    blocks: BlockScorer | None, benchmark: Benchmark, method: str, predictions: Predictions | None
) -> LabelledScores:
    """Return the scores of P_test and N_test: the predictions, or what the scorer says."""
    test, negatives = benchmark.positives.test, benchmark.negatives[method].splits.test
    if predictions is not None:
        _check_predictions(predictions, benchmark, method)
        found = predictions.test
    elif blocks is not None:
        found = LabelledScores(_scores(blocks, test), _scores(blocks, negatives))
    else:
        raise InputError("nothing to rank by: neither a scorer nor predictions were given")
    for triples, scores in ((test, found.positive), (negatives, found.negative)):
        if np.isnan(scores).any():
            raise no_number(benchmark.graph, triples[np.isnan(scores).argmax()])
    return found


def _check_predictions(predictions: Predictions, benchmark: Benchmark, method: str) -> None:
    if predictions.method != method:
        raise InputError(f"the predictions are for the negatives `{predictions.method}`, not for `{method}`")
    wanted = (len(benchmark.positives.test), len(benchmark.negatives[method].splits.test))
    given = (len(predictions.test.positive), len(predictions.test.negative))
    if given != wanted:
        raise InputError(
            f"{given[0]:,} and {given[1]:,} scores for the {wanted[0]:,} triples of P_test and {wanted[1]:,} "
            f"of N_test of {benchmark.name}",
            hint="the predictions are those of another benchmark",
        )


def _scores(blocks: BlockScorer, triples: Triples) -> Scores:
    parts = [blocks.of_triples(triples[part]) for part in slices(len(triples), blocks.cells)]
    return np.concatenate([np.empty(0), *parts])
