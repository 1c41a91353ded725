"""What a system gets to see of a benchmark."""

from __future__ import annotations

import numpy as np

from loginfer.benchmark.values import Benchmark, NegativeSet, Splits
from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import Triples

__all__ = ["choose_method", "only_negatives", "training_view"]


def choose_method(benchmark: Benchmark, method: str | None) -> str | None:
    """Return whose negatives a system is trained and tested with; None if the benchmark has none.

    Raises
    ------
    InputError
        If there are several and none was chosen.
    """
    known = tuple(benchmark.negatives)
    if method is not None:
        # Names may be given in any case; one that is spelt exactly like this comes first.
        spelt = sorted(known, key=lambda name: name != method)
        found = next((name for name in spelt if name.casefold() == method.casefold()), None)
        if found is None:
            raise UnknownNameError(f"negatives of {benchmark.name}", method, known, where="--negatives")
        return found
    if len(known) > 1:
        raise InputError(
            f"{benchmark.name} has negatives by {', '.join(known)}",
            hint=f"choose, e.g. --negatives {known[0]}",
        )
    return known[0] if known else None


def only_negatives(benchmark: Benchmark, method: str | None) -> dict[str, NegativeSet]:
    """Return the negatives of one method by name; nothing for None."""
    return {} if method is None else {method: benchmark.negatives[method]}


def training_view(benchmark: Benchmark, method: str | None) -> Benchmark:
    """Return what may be seen while learning: train and valid, one method's negatives, no rules.

    Vocabularies stay whole: which constants and relations there are is known beforehand. So does the context
    graph of an inductive benchmark, which is what is known about test's constants.
    """
    negatives = {
        name: NegativeSet(name, _without_test(made.splits))
        for name, made in only_negatives(benchmark, method).items()
    }
    positives = _without_test(benchmark.positives)
    return Benchmark(benchmark.name, benchmark.graph, positives, negatives, context=benchmark.context)


def _without_test(splits: Splits) -> Splits:
    nothing: Triples = np.empty((0, 3), dtype=np.int32)
    return Splits(splits.train, splits.valid, nothing)
