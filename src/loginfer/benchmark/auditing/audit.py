"""The audit: whether a benchmark is what it says, keeps the paper's promises, and what it gives away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from loginfer.benchmark.auditing import conclusions, coverage, files, negatives, rules
from loginfer.benchmark.auditing import files as kg
from loginfer.benchmark.auditing import files as sets
from loginfer.benchmark.auditing import negatives as origins
from loginfer.benchmark.auditing.material import Material, benchmark_of, lines_of
from loginfer.benchmark.auditing.negatives import balanced_heads
from loginfer.benchmark.auditing.report import Audit, CannotCheckError, Example, Finding, Problem
from loginfer.benchmark.auditing.variants import recorded_noise, sides_apart
from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.folder.reading import read_folder
from loginfer.benchmark.program import negation_notes
from loginfer.benchmark.shortcut_gate import check_limit, gate, most_important, rule_shares, shortcut_decisions
from loginfer.benchmark.shortcuts import oracle_accuracy, oracle_of, shortcut_accuracies
from loginfer.errors import LogInferError
from loginfer.progress import Progress

Check = Callable[[Material], Iterator[Problem]]

# In the order in which they are made.
CHECKS: Mapping[str, Check] = {
    "missing-files": files.missing_files,
    "changed-files": files.changed_files,
    "readable": files.readable,
    "unreadable-lines": files.unreadable_lines,
    "unlisted-files": files.unlisted_files,
    "candidate-files": kg.candidate_files,
    "recipe": files.recipe,
    "sizes": files.sizes,
    "duplicates": sets.duplicates,
    "disjoint": sets.disjoint,
    "conclusions-in-kg": sets.conclusions_in_kg,
    "signature": sets.signature,
    "negative-names": sets.names_of_negatives,
    "balance": sets.balance,
    "kg-sum": kg.kg_sum,
    "rules": rules.rules_readable,
    "rule-shapes": rules.rule_shapes,
    "equal-rules": rules.equal_rules,
    "rule-counts": rules.rule_counts,
    "rare-rules": rules.rare_rules,
    "provenance": conclusions.provenance_covers,
    "provenance-rules": conclusions.provenance_lists_all_rules,
    "witnesses": conclusions.witnesses,
    "derivable": conclusions.derivable,
    "split-shares": conclusions.split_shares,
    "derivable-negatives": negatives.derivable_negatives,
    "entailed-negatives": negatives.entailed_negatives,
    "negative-origins": origins.origins_agree,
    "true-origins": origins.origins_are_true,
    "undesired-rules": coverage.undesired_rules,
}

# Made only where a benchmark has near misses, is noisy or inductive, or its recipe asks for that.
VARIANT_CHECKS: Mapping[str, Check] = {
    "balanced-heads": balanced_heads,
    "inductive": sides_apart,
    "noise": recorded_noise,
}

_ORDER = ("error", "warning", "note")


def audit(
    benchmark: str | Path | Benchmark,
    *,
    engine: str = "native",
    closure: bool = True,
    settings: Mapping[str, Any] | None = None,
    max_shortcut: float | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Check a benchmark against the paper's definitions and its own manifest.

    Parameters
    ----------
    benchmark
        A folder, with or without a manifest, or a benchmark in memory. What is wrong with a folder is
        told, not raised.
    engine
        `native` or `duckdb`.
    closure
        Also look which negatives are in the materialisation.
    settings
        Settings of a recipe that the benchmark's recipe must agree with.
    max_shortcut
        The largest accuracy that a shortcut may have, a share above 0.5; more is a warning.
    strict
        More is an error.
    progress
        Called with what is being done, how much is done, and how much there is.

    Raises
    ------
    InputError
        If there is no such folder, or no benchmark in it; or if the limit makes no sense.
    """
    if max_shortcut is not None:
        check_limit(max_shortcut)
    if isinstance(benchmark, Benchmark):
        found, lines, raw = benchmark, {}, None
    else:
        raw = read_folder(benchmark)
        found, lines = benchmark_of(raw), lines_of(raw)
    noisy = None if found.noise is None else found
    material = Material(found.clean, lines, raw, engine, closure, settings or {}, progress, noisy)
    findings: list[Finding] = []
    passed: list[str] = []
    skipped: dict[str, str] = {}
    try:
        checks = {**CHECKS, **{name: VARIANT_CHECKS[name] for name in material.variants}}
        for done, (name, check) in enumerate(checks.items()):
            if progress:
                progress(f"checking {name}", done, len(checks))
            told: list[Finding] = []
            try:
                told.extend(Finding(name, p.severity, p.count, p.message, p.examples) for p in check(material))
            except CannotCheckError as reason:
                skipped[name] = str(reason)
            except LogInferError as error:
                skipped[name] = error.message
            # What a check has found stands, even where it could not go on.
            findings += told
            if name not in skipped and all(finding.severity == "note" for finding in told):
                passed.append(name)
        shortcuts = {method: _shortcuts(material, method) for method in material.benchmark.negatives}
        if max_shortcut is not None:
            above = _gate(material, max_shortcut, strict)
            findings += above
            passed += [] if above else ["max-shortcut"]
        oracle = _oracle(material, findings, skipped)
    finally:
        material.close()
    findings.sort(key=lambda finding: _ORDER.index(finding.severity))
    return Audit(material.benchmark.name, tuple(findings), tuple(passed), skipped, shortcuts, oracle)


def _shortcuts(material: Material, method: str) -> dict[str, dict[str, Any]]:
    """Return the figures of the shortcuts, each with the rules that it rests on most."""
    found = shortcut_accuracies(material.given, method)
    decisions = shortcut_decisions(material.given, method)
    for name, shares in rule_shares(material.given, method, decisions).items():
        found[name]["rules"] = [share.as_dict() for share in most_important(shares)]
    return found


def _gate(material: Material, limit: float, strict: bool) -> list[Finding]:
    return [
        Finding(
            "max-shortcut",
            "error" if strict else "warning",
            len(found.over) or 1,
            found.message,
            tuple(Example(text) for text in found.texts),
        )
        for found in gate(material.given, limit)
    ]


def _oracle(material: Material, findings: list[Finding], skipped: dict[str, str]) -> dict[str, dict[str, float | None]]:
    """Return the figures of the oracle; under `sound` it must not make a mistake."""
    try:
        oracle = oracle_of(material.benchmark, material.over_train, material.rules)
    except CannotCheckError as reason:
        skipped["oracle"] = str(reason)
        return {}
    found = {method: oracle_accuracy(oracle, material.benchmark, method) for method in material.benchmark.negatives}
    for method, figures in found.items():
        if material.protocol == "sound" and figures["accuracy"] not in (None, 1.0):
            message = f"the oracle's accuracy with `{method}` is {figures['accuracy']:.2%}, not 100%"
            # Where rules negate what others conclude, what follows from K need not follow from P_train.
            excused = not figures["false_positive_rate"] and bool(negation_notes(material.rules))
            findings.append(Finding("oracle", "note" if excused else "error", 1, message))
    return found
