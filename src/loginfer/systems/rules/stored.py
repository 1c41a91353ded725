"""Mined rules as arrays, which is how a fitted system keeps them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.logic.rulefile import parse_rules
from loginfer.logic.scored import ScoredRule
from loginfer.systems.interface import Arrays
from loginfer.systems.rules.values import BOTH, LONGEST, NONE, OBJECT, SUBJECT, MinedRules, RuleTable

__all__ = ["from_arrays", "to_arrays"]

_KINDS: dict[str, type[np.generic]] = {
    "head": np.int32,
    "variables": np.int8,
    "head_constant": np.int32,
    "end_constant": np.int32,
    "body": np.int32,
    "predictions": np.int64,
    "correct": np.int64,
    "confidence": np.float64,
}
# The measures of the other rules; a rule may lack some, so these stand beside the text of the rules.
_MEASURES: dict[str, type[np.generic]] = {
    "predictions": np.int64,
    "correct": np.int64,
    "confidence": np.float64,
}
_HINT = "fit the system again"


def to_arrays(mined: MinedRules) -> dict[str, npt.NDArray[Any]]:
    """Return mined rules as arrays by name.

    Path rules are the columns of their table. The other rules are one text in LogInfer's own syntax, a rule
    a line, with their measures beside it: -1 or NaN for one that is not known. What else a file said about
    them (`ScoredRule.extra`) is not kept.
    """
    arrays: dict[str, npt.NDArray[Any]] = {
        field.name: np.ascontiguousarray(getattr(mined.paths, field.name)) for field in fields(RuleTable)
    }
    text = "".join(f"{scored.rule}\n" for scored in mined.others).encode()
    arrays["others"] = np.frombuffer(text, dtype=np.uint8).copy()
    for name, kind in _MEASURES.items():
        unknown = np.nan if kind is np.float64 else -1
        values = [getattr(scored, name) for scored in mined.others]
        arrays[f"others_{name}"] = np.array([unknown if v is None else v for v in values], dtype=kind)
    arrays["distinct"] = np.array([mined.distinct], dtype=np.uint8)
    return arrays


def from_arrays(arrays: Arrays) -> MinedRules:
    """Return the rules whose `to_arrays` these are.

    Raises
    ------
    InputError
        If the arrays cannot be those of mined rules.
    """
    head = _array(arrays, "head", np.int32)
    columns = {
        name: _array(arrays, name, kind, (len(head), LONGEST) if name == "body" else head.shape)
        for name, kind in _KINDS.items()
    }
    paths = RuleTable(**columns)
    _check(paths)
    distinct = _array(arrays, "distinct", np.uint8, (1,))
    return MinedRules(paths, _others(arrays), bool(distinct[0]))


def _others(arrays: Arrays) -> tuple[ScoredRule, ...]:
    try:
        text = _array(arrays, "others", np.uint8).tobytes().decode()
    except UnicodeDecodeError as error:
        raise InputError("the stored rules are damaged: `others` is no text", hint=_HINT) from error
    rules = parse_rules(text, "arrow", path="the stored rules").rules
    shape = (len(rules),)
    measures = [_array(arrays, f"others_{name}", kind, shape).tolist() for name, kind in _MEASURES.items()]
    return tuple(
        ScoredRule(
            scored.rule,
            None if predictions < 0 else predictions,
            None if correct < 0 else correct,
            None if np.isnan(confidence) else confidence,
        )
        for scored, predictions, correct, confidence in zip(rules, *measures, strict=True)
    )


def _array(
    arrays: Arrays, name: str, kind: type[np.generic], shape: tuple[int, ...] | None = None
) -> npt.NDArray[Any]:
    found = arrays.get(name)
    if found is None:
        raise InputError(f"the stored rules are damaged: there is no `{name}`", hint=_HINT)
    if found.dtype != kind or found.ndim != (len(shape) if shape else 1) or (shape and found.shape != shape):
        raise InputError(
            f"the stored rules are damaged: `{name}` is {found.dtype}{list(found.shape)}", hint=_HINT
        )
    return found


def _check(paths: RuleTable) -> None:
    """Raise an error for a row that is no path rule."""
    body, constant = paths.body, paths.head_constant
    gaps = (body[:, :-1] == NONE) & (body[:, 1:] != NONE)
    acyclic = (paths.variables == SUBJECT) | (paths.variables == OBJECT)
    cyclic = paths.variables == BOTH
    sound = (
        (paths.head >= 0)
        & (body >= NONE).all(axis=1)
        & ~gaps.any(axis=1)
        & (paths.end_constant >= NONE)
        & ((cyclic & (constant == NONE) & (paths.end_constant == NONE)) | (acyclic & (constant >= 0)))
        & ((body[:, 0] != NONE) | (acyclic & (paths.end_constant == NONE)))
    )
    if not sound.all():
        raise InputError(
            f"the stored rules are damaged: row {int(np.argmin(sound))} is no path rule", hint=_HINT
        )
