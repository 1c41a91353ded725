"""Scores that a script gives as arrays: of numpy, of torch (which need not be installed), or plain lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation.values import Scores
from loginfer.kg import KnowledgeGraph, Triples

__all__ = ["checked_scores", "off_its_device"]


def checked_scores(given: Any, wanted: Mapping[str, Triples], graph: KnowledgeGraph) -> dict[str, Scores]:
    """Return float64[n] for each set of triples; complain if that is not what was given.

    Parameters
    ----------
    given
        A mapping from the names of the sets to their scores. An empty set may be left out.
    wanted
        The sets by name.
    graph
        Whose ids the triples are.

    Raises
    ------
    InputError
        For a set that is missing or unknown, and for scores that are not one finite number a triple.
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f"scores come as a dictionary, not as {type(given).__name__}",
            hint=f"give arrays under the keys {', '.join(f'`{key}`' for key in wanted)}",
        )
    for key in given:
        if key not in wanted:
            raise UnknownNameError("set of triples", str(key), wanted)
    missing = [key for key in wanted if key not in given and len(wanted[key])]
    if missing:
        raise InputError(
            f"there are no scores for {', '.join(f'`{key}`' for key in missing)}",
            hint=f"score `evaluator.triples()[{missing[0]!r}]`, one number a row",
        )
    return {key: _scores(key, given.get(key, ()), triples, graph) for key, triples in wanted.items()}


def _scores(key: str, given: Any, triples: Triples, graph: KnowledgeGraph) -> Scores:
    found = _array(key, given)
    if found.ndim == 2 and found.shape in ((len(triples), 1), (1, len(triples))):
        raise InputError(
            f"the scores have the shape {found.shape}, not ({len(triples):,},)",
            where=key,
            hint="leave the second dimension out: scores.reshape(-1)",
        )
    if found.ndim != 1:
        raise InputError(f"the scores have the shape {found.shape}, not ({len(triples):,},)", where=key)
    if len(found) != len(triples):
        raise InputError(
            f"{_number(len(found), 'score')} for {_number(len(triples), 'triple')}",
            where=key,
            hint=f"score `evaluator.triples()[{key!r}]`, one number a row",
        )
    wrong = np.flatnonzero(~np.isfinite(found))
    if len(wrong):
        name = ", ".join(graph.names(triples[[wrong[0]]])[0])
        verb = "is" if len(wrong) == 1 else "are"
        raise InputError(
            f"{len(wrong):,} of {_number(len(found), 'score')} {verb} not finite; "
            f"the first is {found[wrong[0]]}, in place {wrong[0]}, for ({name})",
            where=key,
            hint="give a very low number to what is impossible",
        )
    return np.ascontiguousarray(found)


def _array(key: str, given: Any) -> npt.NDArray[np.float64]:
    """Return an array of float64, whatever holds the numbers."""
    try:
        found = np.asarray(off_its_device(given))
    except Exception as error:  # rows of different lengths; a tensor of some library complains in its own way
        raise _no_numbers(key, given, str(error)) from error
    if np.ma.is_masked(given):
        raise _no_numbers(key, given, "some values are masked")
    if found.dtype.kind in "cmMSU" or found.dtype.names:
        raise _no_numbers(key, given, f"the dtype is {found.dtype}")
    if found.dtype.kind == "O" and any(
        value is None or isinstance(value, str | bytes) for value in found.flat
    ):
        raise _no_numbers(key, given, "it holds text or None")
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is told as such
            return found.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise _no_numbers(key, given, str(error)) from error


def off_its_device(given: Any) -> Any:
    """Take a tensor out of its graph of gradients and off its device; give anything else back."""
    if not (hasattr(given, "detach") and hasattr(given, "cpu")):
        return given
    tensor = given.detach().cpu()
    # numpy has no such types; every value is a float32 too.
    return tensor.float() if any(kind in str(tensor.dtype) for kind in ("bfloat16", "float8")) else tensor


def _no_numbers(key: str, given: Any, why: str) -> InputError:
    return InputError(
        f"{type(given).__name__} that is no array of numbers: {why}",
        where=key,
        hint="give one number a triple: an array, a tensor or a list",
    )


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
