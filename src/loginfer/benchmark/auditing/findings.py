"""What an audit finds, as values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from loginfer.benchmark.learned_shortcut import LEARNED, SKELETON
from loginfer.errors import UnknownNameError
from loginfer.frames import to_frame

Severity = Literal["error", "warning", "note"]

# At most this many examples a finding.
EXAMPLES = 5
# So many features are shown alone, the best ones.
SINGLE = 5


@dataclass(frozen=True, slots=True)
class Example:
    """One case of a problem.

    Parameters
    ----------
    text
        What it is, in words or as a triple.
    where
        File, and line if it has one.
    triple
        Names of subject, relation and object, if it is a triple.
    """

    text: str
    where: str | None = None
    triple: tuple[str, str, str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the example as plain values."""
        fields: dict[str, Any] = {"text": self.text}
        if self.where is not None:
            fields["where"] = self.where
        if self.triple is not None:
            fields["triple"] = list(self.triple)
        return fields

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


@dataclass(frozen=True, slots=True)
class Finding:
    """One outcome of a check.

    Parameters
    ----------
    check
        Name of the check; empty until the audit has filled it in.
    severity
        `error`: the benchmark is wrong; `warning`: it deserves attention; `note`: something to know.
    count
        How many cases there are.
    message
        One sentence.
    examples
        The first few cases.
    """

    check: str
    severity: Severity
    count: int
    message: str
    examples: tuple[Example, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {
            "check": self.check,
            "severity": self.severity,
            "count": self.count,
            "message": self.message,
            "examples": [example.as_dict() for example in self.examples],
        }


@dataclass(frozen=True, slots=True)
class Audit:
    """The outcome of an audit.

    Parameters
    ----------
    name
        The benchmark's name.
    findings
        Errors first, then warnings, then notes; in each the order of the checks.
    passed
        Names of the checks that were made and found nothing wrong (they may have left a note).
    skipped
        Names of the checks that could not be made, with the reason.
    shortcuts
        By method and shortcut: `balanced_accuracy` on test, its `interval` and more (see `ShortcutResult.as_dict`).
    oracle
        By method: `accuracy`, `recall` and `false_positive_rate` of predicting what R derives from P_train.
    forgotten
        By method: the balanced accuracy of knowing the rules but for one relation of each body (see `forgotten`).
    splits
        By method: how well train is told from test by somebody who knows no rule (see `split_difference`).
    """

    name: str
    findings: tuple[Finding, ...]
    passed: tuple[str, ...]
    skipped: dict[str, str] = field(default_factory=dict)
    shortcuts: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    oracle: dict[str, dict[str, Any]] = field(default_factory=dict)
    forgotten: dict[str, tuple[float, ...]] = field(default_factory=dict)
    splits: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong: no finding is an error."""
        return not any(finding.severity == "error" for finding in self.findings)

    def found(self, check: str) -> tuple[Finding, ...]:
        """Return the findings of one check."""
        return tuple(finding for finding in self.findings if finding.check == check)

    def skipped_by_reason(self) -> dict[str, list[str]]:
        """Return the checks that could not be made, by the reason."""
        reasons: dict[str, list[str]] = {}
        for check, why in self.skipped.items():
            reasons.setdefault(why, []).append(check)
        return reasons

    def accuracies(self) -> dict[str, list[float | None]]:
        """Return balanced accuracies on test for one method after the other.

        Those of the learned shortcut and the skeleton, the best `SINGLE` others, whoever forgot one relation of the
        rules, and the oracle.
        """
        names = dict.fromkeys(name for figures in self.shortcuts.values() for name in figures)
        rows = {name: [_balanced(figures.get(name, {})) for figures in self.shortcuts.values()] for name in names}
        singles = sorted(rows.keys() - {LEARNED, SKELETON}, key=lambda name: (-max(v or 0 for v in rows[name]), name))
        table = {name: rows[name] for name in (LEARNED, SKELETON, *singles[:SINGLE]) if name in rows}
        for part in range(max(map(len, self.forgotten.values()), default=0)):
            parts = [self.forgotten.get(method, ())[part : part + 1] for method in self.shortcuts]
            table[f"all but relation {part + 1}"] = [of_method[0] if of_method else None for of_method in parts]
        if self.oracle:
            table["oracle"] = [_balanced(self.oracle.get(method, {})) for method in self.shortcuts]
        return table

    def to_frame(self, of: Literal["checks", "shortcuts"] = "checks") -> Any:
        """Return a row for each outcome of a check, or for each shortcut (see `loginfer.frames.to_frame`)."""
        if of == "shortcuts":
            rows = [
                (method, who, row[i], bool(self.shortcuts[method].get(who, {}).get("reversed")))
                for i, method in enumerate(self.shortcuts)
                for who, row in self.accuracies().items()
            ]
            return to_frame(("negatives", "who", "balanced_accuracy", "reversed"), rows)
        if of != "checks":
            raise UnknownNameError("table of an audit", of, ("checks", "shortcuts"))
        outcomes: list[tuple[Any, ...]] = [(f.check, f.severity, f.count, f.message) for f in self.findings]
        outcomes += [(check, "passed", 0, "") for check in self.passed if not self.found(check)]
        outcomes += [(check, "skipped", 0, why) for check, why in self.skipped.items()]
        return to_frame(("check", "outcome", "count", "message"), outcomes)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "benchmark": self.name,
            "ok": self.ok,
            "findings": [finding.as_dict() for finding in self.findings],
            "checks": list(self.passed),
            "skipped": dict(self.skipped),
            "shortcuts": self.shortcuts,
            "oracle": self.oracle,
            "forgotten": {method: list(accuracies) for method, accuracies in self.forgotten.items()},
            "splits": self.splits,
        }

    def __repr__(self) -> str:
        verdict = "ok" if self.ok else "not ok"
        problems = [f"{finding.severity} {finding.check}" for finding in self.findings]
        return f"Audit({self.name!r}, {verdict}: {', '.join([f'{len(self.passed)} checks passed', *problems])})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.benchmark.notebook import audit_fragment

        return audit_fragment(self)


def _balanced(figures: Mapping[str, Any]) -> float | None:
    """Return a balanced accuracy, of a shortcut or of the oracle."""
    if None in (figures.get("recall"), figures.get("false_positive_rate")):
        return figures.get("balanced_accuracy")
    return float(figures["recall"] + 1 - figures["false_positive_rate"]) / 2


class CannotCheckError(Exception):
    """A check that cannot be made on this benchmark; the text says why."""


def error(count: int, message: str, examples: Iterable[Example] = ()) -> Finding:
    """Return a finding that makes the benchmark wrong."""
    return Finding("", "error", count, message, tuple(islice(examples, EXAMPLES)))


def warning(count: int, message: str, examples: Iterable[Example] = ()) -> Finding:
    """Return a finding that deserves attention."""
    return Finding("", "warning", count, message, tuple(islice(examples, EXAMPLES)))


def note(count: int, message: str, examples: Iterable[Example] = ()) -> Finding:
    """Return a finding that is good to know."""
    return Finding("", "note", count, message, tuple(islice(examples, EXAMPLES)))


def errors(cases: Sequence[Example], message: str) -> Iterator[Finding]:
    """Yield one error about all cases, if there are any; `{}` in the message stands for their number."""
    if cases:
        yield error(len(cases), message.replace("{}", f"{len(cases):,}"), cases)
