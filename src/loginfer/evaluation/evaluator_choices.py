"""What a script chooses for its evaluator; mistakes are told by the names of the arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any, get_args

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.evaluation.measures import Wanted
from loginfer.evaluation.values import Protocol
from loginfer.systems.view import choose_method

__all__ = ["chosen_method", "wanted_figures", "words_of_a_script"]

# What arguments are called on the command line.
_ARGUMENTS = {
    "--criterion": "criterion",
    "--negatives": "method",
    "--ranking": "protocols",
    "--threshold": "threshold",
    "--tie": "tie",
}


@contextlib.contextmanager
def words_of_a_script() -> Iterator[None]:
    """Tell an error with the name of the argument that it is about."""
    try:
        yield
    except LogInferError as error:
        error.where = _ARGUMENTS.get(error.where or "", error.where)
        raise


def wanted_figures(threshold: Any, criterion: Any, protocols: Any, tie: Any) -> Wanted:
    """Return which figures a script asks for; what is no name or number is told like a wrong one."""
    if isinstance(threshold, bool) or not isinstance(threshold, str | Real):
        raise InputError(
            f"a threshold is a number, `global` or `relation`, not {type(threshold).__name__}",
            where="threshold",
        )
    if not isinstance(protocols, Iterable):
        raise InputError(
            f"protocols come as a list, not as {type(protocols).__name__}",
            where="protocols",
            hint=f"give some of {', '.join(f'`{known}`' for known in get_args(Protocol))}, or ()",
        )
    asked: Any = (protocols,) if isinstance(protocols, str) else tuple(map(str, protocols))
    names: Any = (str(criterion), str(tie))
    number_or_name = threshold if isinstance(threshold, str) else float(threshold)
    return Wanted(number_or_name, names[0], asked, names[1], diagnosis=False)


def chosen_method(benchmark: Benchmark, method: str | None) -> str | None:
    """Return whose negatives are meant; None if the benchmark has none."""
    known = tuple(benchmark.negatives)
    if method is None and len(known) > 1:
        raise InputError(
            f"{benchmark.name} has negatives by {', '.join(known)}",
            where="method",
            hint=f"choose, e.g. Evaluator(benchmark, method={known[0]!r})",
        )
    return choose_method(benchmark, None if method is None else str(method))
