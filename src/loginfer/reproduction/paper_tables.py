"""The paper's tables again, with our figure first and the paper's in brackets, and the report around them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from loginfer.benchmark.construction.suite import difference, entries
from loginfer.benchmark.learned_shortcut import LEARNED
from loginfer.benchmark.negatives.methods import NEAR_MISSES, POSITION, QUERY, method_phrases
from loginfer.evaluation.metric_table import metric_title
from loginfer.evaluation.seeds import half_interval
from loginfer.files import write_text
from loginfer.report.paper import paper_sizes
from loginfer.report.tables import TableEntry, TableValue, best_in_bold, markdown_text, to_csv, to_latex, to_markdown
from loginfer.reproduction.claims.evidence import Answer, answers, mean_fall
from loginfer.reproduction.claims.paper import EIGHT, Claim, Finding, Judgement, findings, mean_of
from loginfer.reproduction.claims.statements import STATEMENTS as CLAIMED
from loginfer.reproduction.figures import Figures, PaperFigures, groups_of, read_figures, write_results, write_shortcuts
from loginfer.reproduction.planning import (
    EVIDENCE,
    MINERS,
    ONE_SEED,
    OWN,
    STANDARD,
    STATEMENTS,
    TABLES,
    Request,
    benchmarks_of,
    data,
    short,
    title,
)
from loginfer.reproduction.running import Folder

# The paper's metrics, in the order in which we show them.
METRICS = {key: metric_title(key) for key in ("balanced_accuracy", "f1", "precision", "recall", "c_mrr", "r_mrr")}
METRICS["balanced_accuracy"] += " (AUC)"
# Of the table of rules: our names of shares, and how they are shown.
SHARES = {
    "eps_ent": "ε_ent",
    "eps_ent_random_heads": "ε_ent, random heads",
    "eps_cont": "ε_cont",
    "subrules_entailed": "R⁻ entailed",
}

# What the report and its tables say around their figures.
_TEXTS = data("report.toml")
_AUC = "The paper's AUC is computed on decisions, so it is held against the balanced accuracy."
_DECIDED = "SimpBL says yes or no, so no threshold is chosen for it."
_RANKING = "Our MRR is that of the filtered ranking; the paper does not state its protocol."
_BOLD = "Bold: the best of ours, without the oracle, which knows the rules."
_ONE_SEED = "One run each, with seed 0."
_SEEDS = "± half the 95 % interval of the mean over seeds (Student's t)."


def tables(figures: Figures, request: Request, manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, TableValue]:
    """Return the tables that were asked for, by name.

    Parameters
    ----------
    figures
        What was found.
    request
        What was asked.
    manifests
        Those of the benchmarks that were built, by name.
    """
    makers: dict[str, Callable[[Sequence[str]], TableValue]] = {
        "sizes": lambda benchmarks: _sizes(benchmarks, manifests),
        "rules": lambda benchmarks: _rules(figures, request, benchmarks),
        EVIDENCE: lambda benchmarks: _evidence(figures, request),
        "negatives": lambda benchmarks: _negatives(figures, request, benchmarks),
    }
    by_name = {}
    for name in request.tables:
        if benchmarks := [b for b in benchmarks_of(name) if b in request.benchmarks]:
            by_name[name] = makers.get(name, partial(_results, name, figures, request))(benchmarks)
    return by_name


# -- results ----------------------------------------------------------------------------------------


def _results(name: str, figures: Figures, request: Request, benchmarks: Sequence[str]) -> TableValue:
    notes = _Notes()
    rows: list[tuple[TableEntry, ...]] = []
    blocks = []
    for benchmark in benchmarks:
        blocks.append(len(rows))
        columns = [_column(figures, request, benchmark, notes, metric) for metric in METRICS]
        for number, system in enumerate(request.systems):
            figures_of_row = (column[number] for column in columns)
            rows.append((TableEntry(short(benchmark)), TableEntry(title(system)), *figures_of_row))
    of = {"lubm": "LUBM", STANDARD: "standard splits with random corruption"}.get(name, "FB15k-237 and WN18RR")
    decided = [_DECIDED] if "simpbl" in request.systems else []
    general = [_AUC, _RANKING, *decided, _BOLD, *_about_seeds(request)]
    headings, text = ("benchmark", "system", *METRICS.values()), f"Results on {of}, in percent (paper)"
    return TableValue(text, headings, tuple(rows), notes.texts(general), tuple(blocks))


def _negatives(figures: Figures, request: Request, benchmarks: Sequence[str]) -> TableValue:
    """Return the balanced accuracy of all systems with each kind of negatives."""
    order = sorted(benchmarks, key=lambda b: (b.split("-")[2] != "sym", _METHODS.index(b.rsplit("-", 1)[1])))
    notes = _Notes()
    columns = [_column(figures, request, benchmark, notes) for benchmark in order]
    rows = [
        (TableEntry(title(system)), *(column[number] for column in columns))
        for number, system in enumerate(request.systems)
    ]
    sources = (figures, PaperFigures())
    means = [[_percent(mean_of(source, EIGHT, [benchmark])) for source in sources] for benchmark in order]
    average = [TableEntry(value=ours, paper=theirs) for ours, theirs in means]
    rows.append((TableEntry("mean of the paper's eight"), *average))
    text = "Balanced accuracy (AUC) with various negatives, in percent (paper)"
    remarks = notes.texts([_AUC, _BOLD, *_about_seeds(request)])
    return TableValue(text, ("system", *map(short, order)), tuple(rows), remarks, (0, len(rows) - 1))


def _column(
    figures: Figures,
    request: Request,
    benchmark: str,
    notes: _Notes,
    metric: str = "balanced_accuracy",
    *,
    paper: bool = True,
) -> list[TableEntry]:
    """Return a metric of all systems on a benchmark, the best in bold; with the paper's figures or without."""
    entries = []
    for system in request.systems:
        values = [100 * value for value in figures.values(system, benchmark, metric)]
        reasons = [_reason(failure, hint=paper) for failure in figures.failed(system, benchmark)]
        printed = _percent(PaperFigures().mean(system, benchmark, metric)) if paper else None
        entry = TableEntry(paper=printed, notes=notes.numbers(reasons))
        if values:
            entries.append(replace(entry, value=sum(values) / len(values), half=half_interval(values)))
        else:
            entries.append(replace(entry, text="failed" if reasons else ""))
    return best_in_bold(entries, [system != "oracle" for system in request.systems])


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


# -- rules ------------------------------------------------------------------------------------------


def _rules(figures: Figures, request: Request, benchmarks: Sequence[str]) -> TableValue:
    notes = _Notes()
    miners = [system for system in MINERS if system in request.systems]
    rows = []
    for share, label in SHARES.items():
        for system in miners:
            shares = (_share(figures, system, benchmark, share, notes) for benchmark in benchmarks)
            rows.append((TableEntry(label), TableEntry(title(system)), *shares))
    text = "Mined rules against those of the benchmarks, in percent (paper)"
    blocks = tuple(range(0, len(rows), len(miners))) if miners else ()
    remarks = notes.texts(_TEXTS["notes"]["rules"])
    return TableValue(text, ("share", "system", *map(short, benchmarks)), tuple(rows), remarks, blocks)


def _share(figures: Figures, system: str, benchmark: str, share: str, notes: _Notes) -> TableEntry:
    paper = PaperFigures().recovered(system, benchmark, share)
    entry = TableEntry(paper=_percent(paper))
    ours = figures.recovered(system, benchmark, share)
    if ours is not None:
        return replace(entry, value=100 * ours)
    if (system, benchmark) in figures.rules:  # a share of nothing
        return replace(entry, text="–")
    failed = [*figures.failed(system, benchmark), *figures.failed(system, benchmark, "rules")]
    return replace(entry, text="failed" if failed else "", notes=notes.numbers(map(_reason, failed)))


# -- sizes ------------------------------------------------------------------------------------------


def _sizes(benchmarks: Sequence[str], manifests: Mapping[str, Mapping[str, Any]]) -> TableValue:
    notes = _Notes()
    return TableValue(
        "Sizes of the benchmarks (paper)",
        ("benchmark", "k1", "k2", "rules", "K", "P_train", "P_valid", "P_test", "difference"),
        tuple(_size(benchmark, manifests.get(benchmark), notes) for benchmark in benchmarks),
        notes.texts(["The last column: the largest difference from the paper's sets, in percent."]),
    )


def _size(benchmark: str, manifest: Mapping[str, Any] | None, notes: _Notes) -> tuple[TableEntry, ...]:
    entry = next(entry for entry in entries() if entry.name == benchmark)
    printed = next(size for size in paper_sizes() if f"{size.kg}-{size.pattern}" == entry.group.name)
    numbers: list[int | None] = [None] * 5
    far = TableEntry()
    if manifest is not None:
        positives = manifest["positives"]
        numbers = [len(manifest["rules"]), manifest["kg"]["triples"]]
        numbers += [positives[split] for split in ("train", "valid", "test")]
        most, reason = difference(entry, manifest)
        far = TableEntry(value=100 * most, notes=(notes.number(reason),) if reason else ())
    paper = (None, printed.kg_triples, printed.train, printed.valid, printed.test)
    return (
        TableEntry(entry.group.name),
        TableEntry(value=printed.k1, digits=0),
        TableEntry(value=printed.k2, digits=0),
        *(TableEntry(value=o, paper=p, digits=0) for o, p in zip(numbers, paper, strict=True)),
        far,
    )


# -- systems beside shortcuts -----------------------------------------------------------------------

# As they stand in the names of benchmarks: position-aware, query-guided, near misses, matched near misses.
NEGATIVES = (POSITION.name, QUERY.name, *NEAR_MISSES.names)

# Marks a row about a shortcut, not about a system.
MARK = "shortcut: "
# So many shortcuts are shown for each graph and pattern.
SHOWN = 7


def _evidence(figures: Figures, request: Request) -> TableValue:
    notes = _Notes()
    rows: list[tuple[TableEntry, ...]] = []
    blocks = []
    for group in groups_of(request.benchmarks):
        blocks.append(len(rows))
        shortcuts = _shown_shortcuts(figures, group)
        names = [*map(title, request.systems), *(MARK + name for name in shortcuts)]
        columns = []
        for method in NEGATIVES:
            benchmark = f"LogInfer-{group}-{method}"
            column = _column(figures, request, benchmark, notes, paper=False)
            columns.append([*column, *(_shortcut(figures, benchmark, name) for name in shortcuts)])
        for number, name in enumerate(names):
            rows.append((TableEntry(group), TableEntry(name), *(column[number] for column in columns)))
    seeds = f"Mean of {request.seeds} seeds, ± half its 95 % interval (Student's t)."
    text = "What systems learn and what shortcuts reach: balanced accuracy in percent"
    remarks = notes.texts([*_TEXTS["notes"]["shortcuts"], seeds if request.seeds > 1 else _ONE_SEED])
    return TableValue(text, ("benchmark", "system", *NEGATIVES), tuple(rows), remarks, tuple(blocks))


def _shortcut(figures: Figures, benchmark: str, name: str) -> TableEntry:
    low, high = figures.intervals.get(benchmark, {}).get(name, (None, None))
    half = None if low is None or high is None else 50 * (high - low)
    return TableEntry(value=_percent(figures.shortcuts.get(benchmark, {}).get(name)), half=half)


def _shown_shortcuts(figures: Figures, group: str) -> list[str]:
    """Return the learned shortcut, then those that reach most with any kind of negatives."""
    most: dict[str, float] = {}
    for method in NEGATIVES:
        for name, value in figures.shortcuts.get(f"LogInfer-{group}-{method}", {}).items():
            most[name] = max(value, most.get(name, 0.0))
    return sorted(most, key=lambda name: (name != LEARNED, -most[name], name))[:SHOWN]


# -- what tables share ------------------------------------------------------------------------------

_METHODS = ("rc", "rb", "pa", "qg")


class _Notes:
    """Notes as they come up: reasons, each with a number."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def number(self, text: str) -> int:
        """Return the number of a note, which is added unless it is there."""
        if text not in self._texts:
            self._texts.append(text)
        return self._texts.index(text) + 1

    def numbers(self, texts: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of several notes, each once."""
        return tuple(dict.fromkeys(map(self.number, texts)))

    def texts(self, general: Sequence[str]) -> tuple[str, ...]:
        """Return all notes, those about the whole table last."""
        return (*self._texts, *general)


def _reason(failure: Mapping[str, Any], *, hint: bool = True) -> str:
    more = f" ({failure['hint']})" if hint and failure.get("hint") else ""
    return f"failed: {failure['reason']}{more}"


def _about_seeds(request: Request) -> list[str]:
    alone = [title(system) for system in request.systems if system in ONE_SEED]
    if request.seeds < 2:
        return [_ONE_SEED]
    sentence = f"Mean of {request.seeds} seeds. {_SEEDS}"
    return [f"{sentence} Nothing in {', '.join(alone)} is random: one run." if alone else sentence]


_FORMATS = {"md": to_markdown, "tex": to_latex, "csv": to_csv}


def write_report(folder: Folder) -> dict[str, Any]:
    """Write all that follows from the runs in a folder, and return it as JSON values.

    These are the result files, the tables, `findings.json`, `evidence.json` if that table was asked for, and
    `REPORT.md`; and `statements.json` if that table was asked for.
    """
    write_results(folder)
    write_shortcuts(folder)
    request, figures = folder.request(), read_figures(folder)
    by_name = tables(figures, request, _manifests(folder, request))
    for name, table in by_name.items():
        for ending, render in _FORMATS.items():
            write_text(folder.table(name, ending), render(table), force=True)
    paper_findings = findings(figures)
    surviving = answers(figures, groups_of(request.benchmarks)) if EVIDENCE in request.tables else []
    statements = findings(figures, CLAIMED) if STATEMENTS in request.tables else []
    judged: dict[str, Sequence[Finding | Answer]] = {
        "findings": paper_findings,
        "evidence": surviving,
        "statements": statements,
    }
    for name, rows in judged.items():
        if rows:
            _write_rows(folder.path / f"{name}.json", [row.as_dict() for row in rows])
    write_text(folder.report, report_text(request, figures, by_name, paper_findings, surviving, statements), force=True)
    return {
        "results": len(figures.results),
        "tables": list(by_name),
        "findings": [
            {"number": finding.claim.number, "verdict": finding.verdict, "paper_verdict": finding.paper.verdict}
            for finding in (*paper_findings, *statements)
        ],
        **({"evidence": [_verdicts(answer) for answer in surviving]} if surviving else {}),
        "report": folder.report.name,
    }


def _write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    write_text(path, json.dumps(rows, indent=1, ensure_ascii=False) + "\n", force=True)


def _manifests(folder: Folder, request: Request) -> dict[str, dict[str, Any]]:
    paths = {name: folder.suite / name / "manifest.json" for name in request.benchmarks}
    return {name: folder.json(path) for name, path in paths.items() if path.exists()}


# -- the report -------------------------------------------------------------------------------------


def report_text(
    request: Request,
    figures: Figures,
    by_name: Mapping[str, TableValue],
    paper_findings: Sequence[Finding],
    surviving: Sequence[Answer] = (),
    statements: Sequence[Finding] = (),
) -> str:
    """Return the report as Markdown: what was done, the findings, the tables, what failed."""
    parts = [_TEXTS["head"], _what_was_done(request, figures)]
    if surviving:
        parts += ["## What survives near misses\n", _TEXTS["evidence"], _survival(surviving), _falls(request, figures)]
        parts += map(_answer, surviving)
    # The paper's findings are about its tables.
    if any(table not in OWN for table in request.tables):
        parts += ["## Findings of the paper\n", _TEXTS["findings"], _overview(paper_findings)]
        parts += map(_finding, paper_findings)
    if statements:
        parts.append(statements_text(figures, statements))
    parts.append("## Tables\n")
    parts += [f"### Table `{name}`: {TABLES[name]}\n\n{to_markdown(table)}" for name, table in by_name.items()]
    return "\n".join(parts)


_NEGATIVES = {POSITION.name: POSITION.title} | {name: method_phrases()[name] for name in NEAR_MISSES.names}


def statements_text(figures: Figures, statements: Sequence[Finding]) -> str:
    """Return the section on what the paper says beside its tables, as Markdown."""
    made = figures.measurements.values()
    minutes, budgets = sum(document["cpu_seconds"] for document in made) / 60, {m["budget"] for m in made}
    took = f"{len(made)} measurements took {minutes:,.0f} CPU minutes (budget {', '.join(sorted(budgets))}).\n"
    parts = ["## What the paper says beside its tables\n", _TEXTS["statements"], *([took] if made else [])]
    return "\n".join([*parts, _overview(statements), *map(_finding, statements)])


def _survival(surviving: Sequence[Answer]) -> str:
    lines = [f"| | conclusion | {' | '.join(_NEGATIVES.values())} |", "|--:|---|---|---|---|"]
    for answer in surviving:
        verdicts = " | ".join(answer.judgements[kind].verdict for kind in _NEGATIVES)
        lines.append(f"| {answer.question.number} | {markdown_text(answer.question.text)} | {verdicts} |")
    return "\n".join(lines) + "\n"


def _falls(request: Request, figures: Figures) -> str:
    """Say how much the eight systems lose; an empty text if figures are missing."""
    falls = {kind: mean_fall(figures, groups_of(request.benchmarks), kind) for kind in NEAR_MISSES.names}
    texts = [f"{100 * fall:.1f} points to {_NEGATIVES[k]}" for k, fall in falls.items() if fall is not None]
    if not texts:
        return ""
    return f"From position-aware negatives the paper's eight systems fall by {' and '.join(texts)}, on average.\n"


def _answer(answer: Answer) -> str:
    judged = {label.capitalize(): answer.judgements[kind] for kind, label in _NEGATIVES.items()}
    return "\n".join(_judged(f"Conclusion {answer.question.number}", answer.question, judged))


def _verdicts(answer: Answer) -> dict[str, Any]:
    return {"number": answer.question.number, **{k: j.verdict for k, j in answer.judgements.items()}}


def _what_was_done(request: Request, figures: Figures) -> str:
    names = ", ".join(title(system) for system in request.systems)
    lines = [
        "## What was done\n",
        f"- Protocol `{request.protocol}`: {_TEXTS['protocols'][request.protocol]}",
        f"- Budget `{request.budget}`: {_TEXTS['budgets'][request.budget]}",
        f"- Seeds: {request.seeds}; one for systems in which nothing is random.{_fewer(request, figures)}",
        f"- Systems: {names}.",
        f"- Benchmarks: {len(request.benchmarks)}; figures for {len(figures.results)} of "
        f"{len(request.benchmarks) * len(request.systems)} pairs of a system and a benchmark.",
        f"- {_time(figures)}",
    ]
    reasons: dict[str, list[str]] = {}
    for failure in figures.failures:
        case = f"{title(failure['system'])} on {short(failure['benchmark'])}"
        case += f", seed {failure['seed']}" if failure["what"] == "run" else ", comparison of rules"
        reasons.setdefault(failure["reason"], []).append(case)
    if not reasons:
        lines.append("- Nothing failed.")
    for reason, cases in reasons.items():
        more = f" and {len(cases) - 3} more" if len(cases) > 3 else ""
        lines.append(f"- Failed: {'; '.join(cases[:3])}{more}: {markdown_text(reason)}")
    return "\n".join(lines) + "\n"


def _fewer(request: Request, figures: Figures) -> str:
    """Say which benchmarks have fewer seeds so far than were asked for."""
    fewer: dict[str, int] = {}
    for (system, benchmark), result in figures.results.items():
        if system not in ONE_SEED and len(result["seeds"]) < request.seeds:
            fewer[short(benchmark)] = min(len(result["seeds"]), fewer.get(short(benchmark), request.seeds))
    numbers = {n: [name for name, seeds in fewer.items() if seeds == n] for n in sorted(set(fewer.values()))}
    texts = [f"{n} for {', '.join(names)}" for n, names in numbers.items()]
    return f" So far fewer: {'; '.join(texts)}." if texts else ""


def _time(figures: Figures) -> str:
    seconds = [seed["timing"]["cpu_seconds"] or 0.0 for r in figures.results.values() for seed in r["seeds"]]
    return f"All {len(seconds):,} runs took {sum(seconds) / 60:,.0f} CPU minutes."


def _overview(paper_findings: Sequence[Finding]) -> str:
    lines = ["| | section | finding | our figures | the paper's own |", "|--:|---|---|---|---|"]
    for finding in paper_findings:
        words = markdown_text(finding.claim.text)
        verdicts = f"{finding.ours.verdict} | {finding.paper.verdict if finding.printed else '–'}"
        lines.append(f"| {finding.claim.number} | {finding.claim.section} | {words} | {verdicts} |")
    return "\n".join(lines) + "\n"


def _judged(heading: str, claim: Claim, judgements: Mapping[str, Judgement]) -> list[str]:
    """Return a claim, its test, and what some figures say about it, as lines with an empty one after each part."""
    texts = [f"### {heading}", markdown_text(claim.text), f"*Test.* {markdown_text(claim.test)}"]
    for whose, judgement in judgements.items():
        texts.append(f"{whose}: **{judgement.verdict}**.")
        texts.append("\n".join(f"- {markdown_text(check.explanation)}" for check in judgement.checks))
    return [f"{text}\n" for text in texts]


def _finding(finding: Finding) -> str:
    claim, judged = finding.claim, {"Our figures": finding.ours}
    judged |= {"The paper's own figures": finding.paper} if finding.printed else {}
    remark = [f"*Remark.* {markdown_text(finding.remark)}\n"] if finding.remark else []
    return "\n".join([*_judged(f"Finding {claim.number} (section {claim.section})", claim, judged), *remark])
