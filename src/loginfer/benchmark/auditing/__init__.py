"""The audit: whether a benchmark is what it says, keeps the paper's promises, and what it gives away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from loginfer.benchmark.auditing import conclusions, coverage, files, kg, negatives, origins, rules, sets
from loginfer.benchmark.auditing.material import Material
from loginfer.benchmark.auditing.reading import benchmark_of, lines_of
from loginfer.benchmark.auditing.report import Audit, CannotCheckError, Example, Finding, Problem
from loginfer.benchmark.oracle import Oracle, oracle_accuracy
from loginfer.benchmark.raw import read_folder
from loginfer.benchmark.shortcuts import shortcut_accuracies
from loginfer.benchmark.values import Benchmark
from loginfer.engine import Progress
from loginfer.errors import LogInferError

__all__ = ["CHECKS", "Audit", "Example", "Finding", "audit"]

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

_ORDER = ("error", "warning", "note")


def audit(
    benchmark: str | Path | Benchmark,
    *,
    engine: str = "native",
    closure: bool = True,
    settings: Mapping[str, Any] | None = None,
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
    progress
        Called with what is being done, how much is done, and how much there is.

    Raises
    ------
    InputError
        If there is no such folder, or no benchmark in it.
    """
    if isinstance(benchmark, Benchmark):
        material = Material(benchmark, {}, None, engine, closure, settings or {}, progress)
    else:
        raw = read_folder(benchmark)
        material = Material(benchmark_of(raw), lines_of(raw), raw, engine, closure, settings or {}, progress)
    findings: list[Finding] = []
    passed: list[str] = []
    skipped: dict[str, str] = {}
    try:
        for done, (name, check) in enumerate(CHECKS.items()):
            if progress:
                progress(f"checking {name}", done, len(CHECKS))
            found: list[Finding] = []
            try:
                found.extend(
                    Finding(name, p.severity, p.count, p.message, p.examples) for p in check(material)
                )
            except CannotCheckError as reason:
                skipped[name] = str(reason)
            except LogInferError as error:
                skipped[name] = error.message
            # What a check has found stands, even where it could not go on.
            findings += found
            if name not in skipped and all(finding.severity == "note" for finding in found):
                passed.append(name)
        shortcuts = {
            method: shortcut_accuracies(material.benchmark, method) for method in material.benchmark.negatives
        }
        oracle = _oracle(material, findings, skipped)
    finally:
        material.close()
    findings.sort(key=lambda finding: _ORDER.index(finding.severity))
    return Audit(material.benchmark.name, tuple(findings), tuple(passed), skipped, shortcuts, oracle)


def _oracle(
    material: Material, findings: list[Finding], skipped: dict[str, str]
) -> dict[str, dict[str, float | None]]:
    """Return the figures of the oracle; under `sound` it must not make a mistake."""
    try:
        oracle = Oracle(material.over_train, material.rules)
    except CannotCheckError as reason:
        skipped["oracle"] = str(reason)
        return {}
    found = {
        method: oracle_accuracy(oracle, material.benchmark, method) for method in material.benchmark.negatives
    }
    for method, figures in found.items():
        if material.protocol == "sound" and figures["accuracy"] not in (None, 1.0):
            message = f"the oracle's accuracy with `{method}` is {figures['accuracy']:.2%}, not 100%"
            findings.append(Finding("oracle", "error", 1, message))
    return found
