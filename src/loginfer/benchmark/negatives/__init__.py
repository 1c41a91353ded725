"""Step 3, negative example generation (section 3.3): five methods over one context."""

from __future__ import annotations

from loginfer.benchmark.benchmark import NegativeSet
from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.recipe import METHODS
from loginfer.errors import UnknownNameError

__all__ = ["Context", "sample_negatives"]


def sample_negatives(context: Context, method: str) -> NegativeSet:
    """Return N_train, N_valid and N_test by one method.

    Parameters
    ----------
    context
        K, R, the positives, and what counts as true.
    method
        `rb` relevance-based, `pa` position-aware, `qg` query-guided, `rc` random object corruption, `nm` near
        misses.
    """
    if method == "rb":
        from loginfer.benchmark.negatives.corruption import relevance_based

        return relevance_based(context)
    if method == "pa":
        from loginfer.benchmark.negatives.corruption import position_aware

        return position_aware(context)
    if method == "qg":
        from loginfer.benchmark.negatives.query_guided import query_guided

        return query_guided(context)
    if method == "rc":
        from loginfer.benchmark.negatives.corruption import random_object

        return random_object(context)
    if method == "nm":
        from loginfer.benchmark.negatives.near_misses import near_misses

        return near_misses(context)
    raise UnknownNameError("method for negatives", method, METHODS)
