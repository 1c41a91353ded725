"""Writing what came out: result files, tables and the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from loginfer.report.table_formats import markdown_text, to_csv, to_latex, to_markdown
from loginfer.report.table_values import TableValue
from loginfer.reproduction.claims import Answer, Finding, Judgement, answers, findings, mean_fall
from loginfer.reproduction.collecting import write_results
from loginfer.reproduction.evidence import groups_of
from loginfer.reproduction.figures import Figures, read_figures
from loginfer.reproduction.folder import Folder
from loginfer.reproduction.participants import ONE_SEED, title
from loginfer.reproduction.parts import EVIDENCE, TABLES
from loginfer.reproduction.planning import Request
from loginfer.reproduction.shortcuts import write_shortcuts
from loginfer.reproduction.tabulating import tables

__all__ = ["report_text", "write_report"]

_FORMATS = {"md": to_markdown, "tex": to_latex, "csv": to_csv}


def write_report(folder: Folder) -> dict[str, Any]:
    """Write all that follows from the runs in a folder, and return it as JSON values.

    These are the result files, the tables, `findings.json`, `evidence.json` if that table was asked for, and
    `REPORT.md`.
    """
    write_results(folder)
    write_shortcuts(folder)
    request, figures = folder.request(), read_figures(folder)
    made = tables(figures, request, _manifests(folder, request))
    for name, table in made.items():
        for ending, render in _FORMATS.items():
            folder.write(folder.table(name, ending), render(table))
    found = findings(figures)
    told = [finding.as_dict() for finding in found]
    folder.write(folder.path / "findings.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    surviving = answers(figures, groups_of(request.benchmarks)) if EVIDENCE in request.tables else []
    if surviving:
        text = json.dumps([answer.as_dict() for answer in surviving], indent=1, ensure_ascii=False)
        folder.write(folder.path / "evidence.json", text + "\n")
    folder.write(folder.report, report_text(request, figures, made, found, surviving))
    return {
        "results": len(figures.results),
        "tables": list(made),
        "findings": [{key: each[key] for key in ("number", "verdict", "paper_verdict")} for each in told],
        **({"evidence": [_verdicts(answer) for answer in surviving]} if surviving else {}),
        "report": folder.report.name,
    }


def _manifests(folder: Folder, request: Request) -> dict[str, dict[str, Any]]:
    paths = {name: folder.suite / name / "manifest.json" for name in request.benchmarks}
    return {name: folder.json(path) for name, path in paths.items() if path.exists()}


# -- the report -------------------------------------------------------------------------------------


def report_text(
    request: Request,
    figures: Figures,
    made: Mapping[str, TableValue],
    found: Sequence[Finding],
    surviving: Sequence[Answer] = (),
) -> str:
    """Return the report as Markdown: what was done, the findings, the tables, what failed."""
    parts = [_HEAD, _done(request, figures)]
    if surviving:
        parts += [
            "## What survives near misses\n",
            _ABOUT_EVIDENCE,
            _survival(surviving),
            _falls(request, figures),
        ]
        parts += map(_answer, surviving)
    # The paper's findings are about its tables.
    if any(table != EVIDENCE for table in request.tables):
        parts += ["## Findings of the paper\n", _ABOUT_FINDINGS, _overview(found), *map(_finding, found)]
    parts.append("## Tables\n")
    parts += [f"### Table `{name}`: {TABLES[name]}\n\n{to_markdown(table)}" for name, table in made.items()]
    return "\n".join(parts)


_HEAD = """# The paper's experiments, run again

The paper is Liu, Cuenca Grau, Horrocks and Kostylev, *Revisiting Inferential Benchmarks for Knowledge Graph
Completion* (KR 2023). A benchmark is built from a knowledge graph and rules. Its test triples follow from the
rules; its negatives are triples that should not. A system learns from P_train and N_train, and has to tell
the two apart, and to rank test triples high. Our figure comes first, the paper's stands in brackets.
"""

_ABOUT_FINDINGS = """\
Each finding of sections 5.2 to 5.4 is turned into comparisons of figures. It is *confirmed* if all hold, or
as many as the test says; *in part* if more than half do, or if some of its parts hold and others do not; else
*not confirmed*; and *not tested* if figures are missing. The same comparisons are made with the paper's own
figures: what they do not confirm either cannot be reproduced.
"""


_ABOUT_EVIDENCE = """\
A near miss is a negative that would follow if one part of a rule's body were different. Conclusions of the
paper are turned into comparisons of figures, and these are made with position-aware negatives (pa), with near
misses (nm), and with near misses that are matched to the positives in popularity and adjacency (nmm), for
which symmetry may have other rules and positives. A conclusion that holds with pa and not with nm is one
about position-aware negatives, not about what systems learn.
"""

_NEGATIVES = {"pa": "position-aware", "nm": "near misses", "nmm": "matched near misses"}


def _survival(surviving: Sequence[Answer]) -> str:
    lines = [f"| | conclusion | {' | '.join(_NEGATIVES.values())} |", "|--:|---|---|---|---|"]
    for answer in surviving:
        verdicts = " | ".join(answer.judgements[kind].verdict for kind in _NEGATIVES)
        lines.append(f"| {answer.question.number} | {markdown_text(answer.question.text)} | {verdicts} |")
    return "\n".join(lines) + "\n"


def _falls(request: Request, figures: Figures) -> str:
    """Say how much the eight systems lose; an empty text if figures are missing."""
    found = {kind: mean_fall(figures, groups_of(request.benchmarks), kind) for kind in ("nm", "nmm")}
    told = [f"{100 * fall:.1f} points to {_NEGATIVES[k]}" for k, fall in found.items() if fall is not None]
    if not told:
        return ""
    return (
        f"From position-aware negatives the paper's eight systems fall by {' and '.join(told)}, on average.\n"
    )


def _answer(answer: Answer) -> str:
    lines = [
        f"### Conclusion {answer.question.number}\n",
        f"{markdown_text(answer.question.text)}\n",
        f"*Test.* {markdown_text(answer.question.test)}\n",
    ]
    for kind, shown in _NEGATIVES.items():
        judgement = answer.judgements[kind]
        lines += [f"{shown.capitalize()}: **{judgement.verdict}**.\n", *_explained(judgement)]
    return "\n".join(lines)


def _verdicts(answer: Answer) -> dict[str, Any]:
    return {"number": answer.question.number, **{k: j.verdict for k, j in answer.judgements.items()}}


def _done(request: Request, figures: Figures) -> str:
    names = ", ".join(title(system) for system in request.systems)
    lines = [
        "## What was done\n",
        f"- Protocol `{request.protocol}`: {_PROTOCOLS[request.protocol]}",
        f"- Budget `{request.budget}`: {_BUDGETS[request.budget]}",
        f"- Seeds: {request.seeds}; one for systems in which nothing is random.{_fewer(request, figures)}",
        f"- Systems: {names}.",
        f"- Benchmarks: {len(request.benchmarks)}; figures for {len(figures.results)} of "
        f"{len(request.benchmarks) * len(request.systems)} pairs of a system and a benchmark.",
        f"- {_time(figures)}",
    ]
    reasons: dict[str, list[str]] = {}
    for failure in figures.failures:
        case = f"{title(failure['system'])} on {failure['benchmark'].removeprefix('LogInfer-')}"
        case += f", seed {failure['seed']}" if failure["what"] == "run" else ", comparison of rules"
        reasons.setdefault(failure["reason"], []).append(case)
    if not reasons:
        lines.append("- Nothing failed.")
    for reason, cases in reasons.items():
        more = f" and {len(cases) - 3} more" if len(cases) > 3 else ""
        lines.append(f"- Failed: {'; '.join(cases[:3])}{more}: {markdown_text(reason)}")
    return "\n".join(lines) + "\n"


_PROTOCOLS = {
    "paper": "benchmarks follow the text of the paper to the letter; some of their negatives follow from the "
    "rules, as in the text.",
    "sound": "benchmarks whose negatives never follow from the rules; the paper's own do not promise that.",
}
_BUDGETS = {
    "full": "the settings that are shipped for each graph.",
    "quick": "about a third of the training steps and of the sampling that the settings shipped say.",
}


def _fewer(request: Request, figures: Figures) -> str:
    """Say which benchmarks have fewer seeds so far than were asked for."""
    short: dict[str, int] = {}
    for (system, benchmark), result in figures.results.items():
        if system not in ONE_SEED and len(result["seeds"]) < request.seeds:
            name = benchmark.removeprefix("LogInfer-")
            short[name] = min(len(result["seeds"]), short.get(name, request.seeds))
    numbers = {n: [name for name, seeds in short.items() if seeds == n] for n in sorted(set(short.values()))}
    told = [f"{n} for {', '.join(names)}" for n, names in numbers.items()]
    return f" So far fewer: {'; '.join(told)}." if told else ""


def _time(figures: Figures) -> str:
    seconds = [seed["timing"]["cpu_seconds"] or 0.0 for r in figures.results.values() for seed in r["seeds"]]
    return f"All {len(seconds):,} runs took {sum(seconds) / 60:,.0f} CPU minutes."


def _overview(found: Sequence[Finding]) -> str:
    lines = ["| | section | finding | our figures | the paper's own |", "|--:|---|---|---|---|"]
    for finding in found:
        words = markdown_text(finding.claim.text)
        verdicts = f"{finding.ours.verdict} | {finding.paper.verdict}"
        lines.append(f"| {finding.claim.number} | {finding.claim.section} | {words} | {verdicts} |")
    return "\n".join(lines) + "\n"


def _explained(judgement: Judgement) -> list[str]:
    return [*(f"- {markdown_text(check.explanation)}" for check in judgement.checks), ""]


def _finding(finding: Finding) -> str:
    claim = finding.claim
    lines = [
        f"### Finding {claim.number} (section {claim.section})\n",
        f"{markdown_text(claim.text)}\n",
        f"*Test.* {markdown_text(claim.test)}\n",
        f"Our figures: **{finding.ours.verdict}**.\n",
        *_explained(finding.ours),
        f"The paper's own figures: **{finding.paper.verdict}**.\n",
        *_explained(finding.paper),
    ]
    if finding.remark:
        lines.append(f"*Remark.* {markdown_text(finding.remark)}\n")
    return "\n".join(lines)
