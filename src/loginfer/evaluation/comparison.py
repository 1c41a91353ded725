"""Several evaluations beside each other: one row each, best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Which verdicts of a diagnosis are counted together.
COUNTED = {
    "learned": ("learned",),
    "shortcut": ("shortcut",),
    "not_learned": ("in part", "not learned"),
    "open": ("untested", "not testable"),
}


def comparison_rows(answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what to compare systems by, those with the best balanced accuracy first.

    Parameters
    ----------
    answers
        Evaluations as JSON values (`Evaluation.as_dict`, `Run.as_dict` or the summary of several seeds), with the
        `seconds` they took if those are known.

    Returns
    -------
    list of dict
        `system`, `benchmark`, `negatives`; `balanced_accuracy` with its 95 % `interval`; `shortcut_accuracy`, that of
        the best shortcut; how many rules were `learned`, replaced by a `shortcut` or `not_learned`, and how many are
        `open`, since the test triples cannot tell; `c_mrr`, filtered where there is a choice; `seconds`.
        None for what is not known.
    """
    rows = [_row(answer) for answer in answers]
    return sorted(rows, key=lambda row: 1 if row["balanced_accuracy"] is None else -row["balanced_accuracy"])


def _row(answer: Mapping[str, Any]) -> dict[str, Any]:
    learned = answer.get("diagnosis") or answer.get("learned") or {}
    verdicts = learned.get("verdicts") or {}
    counts = {key: sum(verdicts.get(verdict, 0) for verdict in which) for key, which in COUNTED.items()}
    ranking = answer.get("ranking") or {}
    figures: Mapping[str, Any] = ranking.get("filtered") or next(iter(ranking.values()), {})
    interval = ((answer.get("interval") or {}).get("metrics") or {}).get("balanced_accuracy")
    return {
        **{key: answer.get(key) for key in ("system", "benchmark", "negatives")},
        "balanced_accuracy": answer["metrics"].get("balanced_accuracy"),
        "interval": interval,
        "shortcut_accuracy": (learned.get("best_shortcut") or {}).get("balanced_accuracy"),
        **(counts if any(counts.values()) else dict.fromkeys(counts)),
        "c_mrr": figures.get("c_mrr"),
        "seconds": answer.get("seconds"),
    }
