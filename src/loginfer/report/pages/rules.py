"""The page about rules: what was learned, the rule or its shortcut, and which rules miners found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loginfer.report import rule_charts as charts
from loginfer.report.collection import Cell
from loginfer.report.facts import benchmark_facts
from loginfer.report.figures import benchmark_labels
from loginfer.report.material import Material
from loginfer.report.recovery import Recovered, Recovery, paper_recovery
from loginfer.report.rule_rows import diagnosis_of, rule_rows, shortcut_rows, verdict_rows
from loginfer.report.values import Chart, Choice, Column, DataFile, Grid, Page, Picker, Rows

__all__ = ["pages"]

Diagnosed = list[tuple[Cell, Mapping[str, Any]]]


def pages(material: Material) -> Iterator[Page | DataFile]:
    """Yield the files that the page loads, benchmark by benchmark, then the page."""
    labels = benchmark_labels(material.collection.benchmark_names)
    diagnosed: Diagnosed = []
    options: list[tuple[str, str]] = []
    recovery = Recovery()
    for benchmark in material.collection.benchmark_names:
        cells = material.collection.of_benchmark(benchmark)
        found = [(cell, known) for cell in cells if (known := diagnosis_of(cell)).get("rules")]
        if found:
            path = material.data_file("rules", benchmark)
            options.append((labels[benchmark], path))
            yield DataFile(path, _benchmark_data(material, benchmark, found))
            # Only the counts are needed later: diagnoses are large.
            diagnosed += [(cell, {"verdicts": known["verdicts"]}) for cell, known in found]
        if material.options.recovery:
            for cell in cells:
                recovery.look_at(material, cell)
    yield _page(material, labels, diagnosed, options, recovery)


def _benchmark_data(material: Material, benchmark: str, found: Diagnosed) -> dict[str, Any]:
    supports = benchmark_facts(material, benchmark).supports
    rules = rule_rows(found, supports)
    missing = ""
    if supports is None:
        missing = " The benchmark's folder was not given: conclusions in test stand for the support."
    first = found[0][1]
    few = sum(rule["verdict"] == "untested" for _, known in found for rule in known["rules"])
    told = f"{benchmark}: {len(first['rules']):,} rules, {len(found):,} systems."
    if few:
        told += f" {few / sum(len(known['rules']) for _, known in found):.0%} of all verdicts are “untested”."
    return {
        "charts": {"recall-and-support": rules, "rule-or-shortcut": rules, "sub-rules": shortcut_rows(found)},
        "texts": {"chosen": told + missing},
    }


def _page(
    material: Material,
    labels: Mapping[str, str],
    diagnosed: Diagnosed,
    options: Sequence[tuple[str, str]],
    recovery: Recovery,
) -> Page:
    present = {cell.system for cell, _ in diagnosed}
    systems = [name for name in material.collection.systems if name in present]
    benchmarks = list(dict.fromkeys(labels[cell.benchmark] for cell, _ in diagnosed))
    known = all(name in material.collection.benchmarks for name in material.collection.benchmark_names)
    size = "support" if known else "support, or conclusions in test"
    content = {
        "verdicts": _verdicts(verdict_rows(diagnosed, labels), systems, benchmarks) if diagnosed else [],
        "picker": Picker("benchmark", tuple(options)),
        "rules": [
            charts.rule_or_shortcut_chart(systems, size),
            charts.sub_rule_chart(systems),
            charts.recall_chart(systems, size),
        ],
        "mined": _mined(material, recovery.found, labels) if recovery.found else None,
        "table": _table(material, recovery.found, labels) if recovery.found else None,
        "looked": material.options.recovery,
        "notes": recovery.notes,
    }
    return Page("rules.html", "Rules and shortcuts", "rules.html", content, "rules")


def _verdicts(rows: Rows, systems: Sequence[str], benchmarks: Sequence[str]) -> list[Chart]:
    by_benchmark = Choice(
        "benchmark", "benchmark", tuple((name, name) for name in benchmarks), everything=True
    )
    by_system = Choice("system", "system", tuple((name, name) for name in systems))
    return [
        charts.verdict_bars(
            rows,
            "system",
            systems,
            by_benchmark,
            "What each system learned",
            "All rules of the chosen benchmark.",
        ),
        charts.verdict_bars(
            rows, "benchmark", benchmarks, by_system, "Benchmark by benchmark", "The rules of each benchmark."
        ),
    ]


# -- mined rules --------------------------------------------------------------------------------


def _mined(material: Material, found: Sequence[Recovered], labels: Mapping[str, str]) -> Chart:
    rows = []
    for known in found:
        figures, cell = known.figures, known.cell
        shares = (
            ("ε_ent", "ours", figures.eps_ent),
            ("ε_ent", "one step", figures.eps_ent_single_step),
            ("ε_ent", "random heads", figures.eps_ent_random_heads),
            ("ε_ent", "paper", paper_recovery(cell, "eps_ent")),
            ("ε_cont", "ours", figures.eps_cont),
            ("ε_cont", "paper", paper_recovery(cell, "eps_cont")),
        )
        label = labels[cell.benchmark]
        rows += [(cell.system, label, *share) for share in shares if share[2] is not None]
    present = {known.cell.system for known in found}
    systems = [name for name in material.collection.systems if name in present]
    benchmarks = list(dict.fromkeys(labels[known.cell.benchmark] for known in found))
    fields = ("system", "benchmark", "share", "what", "value")
    return charts.recovery_chart(Rows.of(fields, rows), systems, benchmarks)


def _table(material: Material, found: Sequence[Recovered], labels: Mapping[str, str]) -> Grid:
    columns = (
        Column("benchmark", "link"),
        Column("system", "link"),
        Column("mined rules", "number"),
        Column("ε_ent", "share"),
        Column("one step", "share"),
        Column("random heads", "share"),
        Column("paper's ε_ent", "share"),
        Column("ε_cont", "share"),
        Column("paper's ε_cont", "share"),
    )
    rows = tuple(
        (
            (labels[known.cell.benchmark], material.benchmark_page(known.cell.benchmark)),
            (known.cell.system, material.system_page(known.cell.system)),
            known.figures.mined,
            known.figures.eps_ent,
            known.figures.eps_ent_single_step,
            known.figures.eps_ent_random_heads,
            paper_recovery(known.cell, "eps_ent"),
            known.figures.eps_cont,
            paper_recovery(known.cell, "eps_cont"),
        )
        for known in found
    )
    caption = "In percent. One step: a single application of one mined rule is enough. First seed of each."
    return Grid(columns, rows, caption, search=len(rows) > 20)
