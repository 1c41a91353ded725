"""The audit: whether a benchmark is what its manifest says and meets the paper's requirements, and its shortcuts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loginfer._version import __version__
from loginfer.benchmark.auditing import conclusions, files, negatives, rules, variants
from loginfer.benchmark.auditing.audited import AuditedBenchmark
from loginfer.benchmark.auditing.findings import Audit, CannotCheckError, Example, Finding, Severity
from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.folder.manifest import AUDIT, as_json
from loginfer.benchmark.folder.reading import files_in, read_folder
from loginfer.benchmark.learned_shortcut import ShortcutResult, forgotten, shortcut_results
from loginfer.benchmark.program import negation_notes
from loginfer.benchmark.shortcut_gate import check_limit, gate, most_important, rule_shares
from loginfer.benchmark.shortcuts import oracle_accuracy, oracle_of
from loginfer.errors import LogInferError
from loginfer.files import file_sum, write_text
from loginfer.progress import ProgressChoice, report_progress, shown


@dataclass(frozen=True, slots=True)
class Check:
    """One question that the audit asks.

    Parameters
    ----------
    function
        Yields what is wrong.
    needs
        What must be known of a benchmark, in the words of `AuditedBenchmark`: otherwise the check is skipped.
    applies
        Says which benchmarks the check is for; by default all.
    """

    function: Callable[[AuditedBenchmark], Iterator[Finding]]
    needs: tuple[str, ...] = ()
    applies: Callable[[AuditedBenchmark], bool] = lambda _: True


# In the order in which they are made.
CHECKS: dict[str, Check] = {
    "missing-files": Check(files.missing_files, ("folder",)),
    "changed-files": Check(files.changed_files, ("manifest", "folder")),
    "readable": Check(files.readable, ("folder",)),
    "unreadable-lines": Check(files.unreadable_lines, ("folder",)),
    "unlisted-files": Check(files.unlisted_files, ("manifest", "folder")),
    "candidate-files": Check(files.candidate_files, ("folder",)),
    "recipe": Check(files.recipe, ("recipe",)),
    "sizes": Check(files.sizes, ("manifest",)),
    "duplicates": Check(files.duplicates),
    "disjoint": Check(files.disjoint),
    "conclusions-in-kg": Check(files.conclusions_in_kg, ("kg",)),
    "signature": Check(files.signature),
    "negative-names": Check(files.names_of_negatives, ("negatives",)),
    "balance": Check(files.balance, ("negatives",)),
    "kg-sum": Check(files.kg_sum, ("manifest",)),
    "rules": Check(rules.rules_readable, ("folder",)),
    "rule-shapes": Check(rules.rule_shapes, ("rules",)),
    "equal-rules": Check(rules.equal_rules, ("rules",)),
    "rule-counts": Check(rules.rule_counts, ("rules",)),
    "rare-rules": Check(rules.rare_rules, ("rules", "provenance")),
    "provenance": Check(conclusions.provenance_covers, ("provenance",)),
    "provenance-rules": Check(conclusions.provenance_lists_all_rules, ("provenance",)),
    "witnesses": Check(conclusions.witnesses, ("provenance",)),
    "derivable": Check(conclusions.derivable, ("rules",)),
    "split-shares": Check(conclusions.split_shares, ("provenance", "recipe")),
    "derivable-negatives": Check(negatives.derivable_negatives, ("rules", "negatives")),
    "entailed-negatives": Check(negatives.entailed_negatives, ("rules", "negatives")),
    "negative-origins": Check(negatives.origins_agree, ("folder",)),
    "true-origins": Check(negatives.origins_are_true, ("negatives",)),
    "undesired-rules": Check(negatives.undesired_rules, ("rules",)),
    "balanced-heads": Check(negatives.balanced_heads, ("negatives",), negatives.counted_by_heads),
    "twins": Check(
        negatives.pairs_complete, ("negatives", "provenance"), lambda audited: bool(negatives.paired_methods(audited))
    ),
    "splits-alike": Check(negatives.splits_alike, ("provenance", "negatives")),
    "inductive": Check(variants.sides_apart, (), variants.is_inductive),
    "noise": Check(variants.recorded_noise, (), variants.is_noisy),
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
    progress: ProgressChoice = None,
) -> Audit:
    """Check a benchmark against the paper's definitions and its own manifest.

    Parameters
    ----------
    benchmark
        A folder, with or without a manifest, or a benchmark in memory. Problems of a folder become findings,
        not errors.
    engine
        `native` or `duckdb`.
    closure
        Also check which negatives are in the materialisation.
    settings
        Settings of a recipe that the benchmark's recipe must agree with.
    max_shortcut
        The largest balanced accuracy that a shortcut may have, a share above 0.5; more is a warning.
    strict
        More is an error.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.

    Raises
    ------
    InputError
        If there is no such folder, or no benchmark in it; or if the limit makes no sense.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.audit("wn-trian").ok  # doctest: +SKIP
    True
    """
    if max_shortcut is not None:
        check_limit(max_shortcut)
    source = None
    if not isinstance(benchmark, Benchmark):
        source = read_folder(benchmark)
        benchmark = source.benchmark
    findings: list[Finding] = []
    passed: list[str] = []
    skipped: dict[str, str] = {}
    with (
        shown(progress) as show,
        closing(AuditedBenchmark(benchmark, source, engine, closure, settings or {}, show)) as audited,
    ):
        checks = {name: check for name, check in CHECKS.items() if check.applies(audited)}
        for done, (name, check) in enumerate(checks.items()):
            report_progress(show, f"checking {name}", done, len(checks))
            check_findings: list[Finding] = []
            try:
                for need in check.needs:
                    getattr(audited, need)
                check_findings.extend(replace(finding, check=name) for finding in check.function(audited))
            except CannotCheckError as reason:
                skipped[name] = str(reason)
            except LogInferError as error:
                skipped[name] = error.message
            # Findings of a check count even if it could not go on.
            findings += check_findings
            if name not in skipped and all(finding.severity == "note" for finding in check_findings):
                passed.append(name)
        report_progress(show, "measuring shortcuts", len(checks), len(checks))
        results = {method: shortcut_results(benchmark, method) for method in benchmark.negatives}
        shortcuts = {method: _shortcuts(benchmark, method, of_method) for method, of_method in results.items()}
        if max_shortcut is not None:
            above = _gate(benchmark, max_shortcut, strict, results)
            findings += above
            passed += [] if above else ["max-shortcut"]
        oracle = _oracle(audited, findings, skipped)
    findings.sort(key=lambda finding: _ORDER.index(finding.severity))
    forgetful = {method: forgotten(benchmark, method) for method in benchmark.negatives}
    splits = dict(audited.split_differences)
    return Audit(benchmark.name, tuple(findings), tuple(passed), skipped, shortcuts, oracle, forgetful, splits)


def _shortcuts(benchmark: Benchmark, method: str, results: Mapping[str, ShortcutResult]) -> dict[str, dict[str, Any]]:
    """Return the figures of the shortcuts, each with the rules that it rests on most."""
    figures = {name: result.as_dict() for name, result in results.items()}
    decisions = {name: result.decisions for name, result in results.items()}
    for name, shares in rule_shares(benchmark, method, decisions).items():
        figures[name]["rules"] = [share.as_dict() for share in most_important(shares)]
    return figures


def _gate(
    benchmark: Benchmark, limit: float, strict: bool, results: Mapping[str, Mapping[str, ShortcutResult]]
) -> list[Finding]:
    severity: Severity = "error" if strict else "warning"
    return [
        Finding("max-shortcut", severity, len(excess.over) or 1, excess.message, tuple(map(Example, excess.texts)))
        for excess in gate(benchmark, limit, results)
    ]


def _oracle(
    audited: AuditedBenchmark, findings: list[Finding], skipped: dict[str, str]
) -> dict[str, dict[str, float | None]]:
    """Return the figures of the oracle; under `sound` it must not make a mistake."""
    try:
        oracle = oracle_of(audited.benchmark, audited.over_train, audited.rules)
    except CannotCheckError as reason:
        skipped["oracle"] = str(reason)
        return {}
    by_method = {method: oracle_accuracy(oracle, audited.benchmark, method) for method in audited.benchmark.negatives}
    for method, figures in by_method.items():
        if audited.protocol == "sound" and figures["accuracy"] not in (None, 1.0):
            message = f"the oracle's accuracy with `{method}` is {figures['accuracy']:.2%}, not 100%"
            # Where rules negate what others conclude, what follows from K need not follow from P_train.
            excused = not figures["false_positive_rate"] and bool(negation_notes(audited.rules))
            findings.append(Finding("oracle", "note" if excused else "error", 1, message))
    return by_method


# -- audits that are kept beside the benchmark ------------------------------------------------------


def file_sums(folder: str | Path) -> dict[str, str]:
    """Return the sha256 of every file that an audit of a folder reads, by name; call it before the audit."""
    names = [name for name in files_in(Path(folder)) if name != AUDIT and not name.startswith(".")]
    return {name: file_sum(Path(folder) / name) for name in names}


def save_audit(outcome: Audit, folder: str | Path, sums: Mapping[str, str], options: Sequence[str]) -> None:
    """Write an audit into the folder it is about.

    Parameters
    ----------
    outcome
        The audit.
    folder
        The benchmark's folder.
    sums
        What `file_sums` returned before the audit began.
    options
        The options that were given and change what an audit finds; none for the usual audit.
    """
    path = Path(folder) / AUDIT
    about = {"version": __version__, "options": list(options), "files": dict(sums)}
    write_text(path, as_json({**outcome.as_dict(), **about}), force=True)


def saved_audit(folder: str | Path) -> dict[str, Any] | None:
    """Return the usual audit of a folder as `Audit.as_dict` does, if this version saved it and no file changed."""
    try:
        record = json.loads((Path(folder) / AUDIT).read_bytes())
        version, options, files = (record.pop(key) for key in ("version", "options", "files"))
        fits = version == __version__ and options == [] and files == file_sums(folder)
    except (OSError, ValueError, AttributeError, KeyError, TypeError, LogInferError):
        return None
    return record if fits else None
