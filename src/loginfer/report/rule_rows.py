"""What a page shows of diagnoses: verdicts, rules with their recall, shortcuts with their rates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from loginfer.evaluation.verdicts import LEAST, VERDICTS
from loginfer.report.collection import Cell
from loginfer.report.values import Rows

__all__ = ["SHORTCUT_FIELDS", "diagnosis_of", "rule_label", "rule_rows", "shortcut_rows", "verdict_rows"]

# A name with parts, an IRI or a path, of which the last part is enough; and inequalities, which are not.
_PARTS = re.compile(r"<?[^\s,()<>\"]*[/#]([^\s,()<>\"/#]+)>?")
_UNEQUAL = re.compile(r"(?:, )?[^\s,()]+ != [^\s,()]+")
# Where a rule stands of which no shortcut has enough witnesses: below the axis.
NO_RATE = -0.08
# And where one without any support stands on a logarithmic axis: given rules may have none.
NO_SUPPORT = 0.5
# What is told of a shortcut: the plot and its rows agree on it.
SHORTCUT_FIELDS = (
    "system", "rule", "short", "verdict", "shortcut", "short_cut", "kind", "witnesses", "predicted", "rate",
)  # fmt: skip


@lru_cache(maxsize=20_000)  # each system has the same rules
def rule_label(text: str, length: int = 300) -> str:
    """Return a rule for a tooltip: last parts of names, without inequalities, cut if it is still long."""
    short = _UNEQUAL.sub("", _PARTS.sub(r"\1", text))
    return short if len(short) <= length else f"{short[: length - 1]}…"


def diagnosis_of(cell: Cell) -> Mapping[str, Any]:
    """Return the diagnosis of a cell's first run; nothing if it has none."""
    return cell.first.diagnosis() or {}


def verdict_rows(found: Iterable[tuple[Cell, Mapping[str, Any]]], labels: Mapping[str, str]) -> Rows:
    """Return how many rules have which verdict, for each cell with a diagnosis."""
    rows = [
        (cell.system, labels[cell.benchmark], verdict, place, diagnosis["verdicts"].get(verdict, 0))
        for cell, diagnosis in found
        for place, verdict in enumerate(VERDICTS)
        if diagnosis.get("verdicts", {}).get(verdict)
    ]
    return Rows.of(("system", "benchmark", "verdict", "place", "rules"), rows)


def rule_rows(
    found: Iterable[tuple[Cell, Mapping[str, Any]]], supports: Mapping[str, int] | None
) -> dict[str, Any]:
    """Return each rule with each system of a benchmark; `size` is the support, or the conclusions in test.

    `worst` is the highest false-positive rate on a shortcut with enough witnesses; `shown` and `drawn` say
    where that and the size are drawn.
    """
    rows = []
    for cell, diagnosis in found:
        for rule in diagnosis.get("rules", ()):
            tested = [s["false_positive_rate"] for s in rule["shortcuts"] if s["witnesses"] >= LEAST]
            worst = max(tested, default=None)
            size = rule["conclusions"] if supports is None else supports.get(rule["rule"])
            rows.append(
                (
                    cell.system,
                    rule["rule"],
                    rule_label(rule["rule"]),
                    rule["verdict"],
                    size,
                    rule["conclusions"],
                    _rounded(rule["recall"]),
                    _rounded(worst),
                    NO_RATE if worst is None else _rounded(worst),
                    None if size is None else max(size, NO_SUPPORT),
                )
            )
    fields = (
        "system",
        "rule",
        "short",
        "verdict",
        "size",
        "conclusions",
        "recall",
        "worst",
        "shown",
        "drawn",
    )
    return Rows.of(fields, rows).packed("system", "rule", "short", "verdict")


def shortcut_rows(found: Iterable[tuple[Cell, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return each shortcut of each rule with each system of a benchmark, those that were learned first."""
    rows = [
        (
            cell.system,
            rule["rule"],
            rule_label(rule["rule"]),
            rule["verdict"],
            shortcut["shortcut"],
            rule_label(shortcut["shortcut"]),
            shortcut["kind"],
            shortcut["witnesses"],
            shortcut["predicted"],
            _rounded(shortcut["false_positive_rate"]),
        )
        for cell, diagnosis in found
        for rule, shortcut in sorted(
            ((rule, shortcut) for rule in diagnosis.get("rules", ()) for shortcut in rule["shortcuts"]),
            key=lambda pair: (-(pair[1]["false_positive_rate"] or 0), -pair[1]["witnesses"]),
        )
    ]
    packed = ("system", "rule", "short", "verdict", "shortcut", "short_cut", "kind")
    return Rows.of(SHORTCUT_FIELDS, rows).packed(*packed)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
