"""What a notebook shows for an audit: the verdict, findings, shortcuts beside the oracle, checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loginfer.benchmark.auditing.report import Audit, Example, Finding
from loginfer.logic.rule_html import prose, triple_markup
from loginfer.markup import Markup, element, folded, fragment, joined, listing, percent, table

__all__ = ["audit_fragment"]

_KINDS = {"error": "bad", "warning": "middling", "note": "quiet"}


def audit_fragment(audit: Audit) -> str:
    """Return what a notebook shows for an audit."""
    return fragment(
        element("div", f"{audit.name or 'a benchmark'}: ", _verdict(audit), kind="title"),
        element("div", _counts(audit), kind="quiet"),
        _findings(audit.findings),
        _shortcuts(audit),
        _checks("passed", audit.passed),
        folded(f"skipped ({len(audit.skipped)})", listing(_skipped(audit))) if audit.skipped else "",
    )


def _verdict(audit: Audit) -> Markup:
    return element("span", "ok" if audit.ok else "not ok", kind="good" if audit.ok else "bad")


def _counts(audit: Audit) -> str:
    severities = [finding.severity for finding in audit.findings]
    counts = {word: severities.count(word) for word in ("error", "warning", "note")}
    told = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items()]
    return " · ".join([f"{len(audit.passed)} checks passed", *told, f"{len(audit.skipped)} skipped"])


def _findings(findings: Iterable[Finding]) -> Markup:
    rows = [
        (
            element("span", finding.severity, kind=_KINDS[finding.severity]),
            finding.check,
            joined(prose(finding.message), _examples(finding)),
        )
        for finding in findings
    ]
    return table(("finding", "check", "what was found"), rows) if rows else Markup("")


def _examples(finding: Finding) -> Markup:
    told = [example for example in finding.examples if example.text != finding.message]
    if not told:
        return Markup("")
    return folded("example" if len(told) == 1 else "examples", listing(_example(one) for one in told))


def _example(example: Example) -> Markup:
    what = prose(example.text) if example.triple is None else triple_markup(example.triple)
    return what if example.where is None else joined(f"{example.where}: ", what)


def _shortcuts(audit: Audit) -> Markup:
    """Return the accuracy on test of each shortcut, method by method, and of the oracle."""
    methods = list(audit.shortcuts)
    if not methods:
        return Markup("")
    names = list(dict.fromkeys(name for method in methods for name in audit.shortcuts[method]))
    rows = [[name, *(_accuracy(audit.shortcuts[m].get(name)) for m in methods)] for name in names]
    if audit.oracle:
        cells = [_accuracy(audit.oracle.get(method)) for method in methods]
        rows.append([element("b", "oracle"), *(element("b", cell) for cell in cells)])
    columns = ("accuracy on test, %", *methods)
    return table(columns, rows, numbers=columns[1:])


def _accuracy(figures: Mapping[str, Any] | None) -> str:
    return percent(None if figures is None else figures.get("accuracy"))


def _checks(word: str, names: tuple[str, ...]) -> Markup:
    return folded(f"{word} ({len(names)})", element("div", ", ".join(names))) if names else Markup("")


def _skipped(audit: Audit) -> Iterable[str]:
    reasons: dict[str, list[str]] = {}
    for check, why in audit.skipped.items():
        reasons.setdefault(why, []).append(check)
    return [f"{', '.join(checks)}: {why}" for why, checks in reasons.items()]
