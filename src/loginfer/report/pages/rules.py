"""The page about rules: whether systems learned a rule or its shortcut, and which rules miners found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loginfer.errors import InputError
from loginfer.evaluation.diagnosis import LEAST, VERDICTS
from loginfer.evaluation.rule_recovering import RecoveryFigures
from loginfer.evaluation.runs import WEIGHTS
from loginfer.report import facts, vega
from loginfer.report.collection import Cell
from loginfer.report.paper import paper_recovery
from loginfer.report.values import Chart, Choice, DataFile, Grid, Page, Picker, columns, loaded_rows

# Kinds of systems that keep no rules.
_NO_RULES = ("baseline", "shortcut", "embedding", "graph neural network")

# Each cell with the diagnosis of its first run.
Diagnosed = Sequence[tuple[Cell, Mapping[str, Any]]]
# Each cell of a miner with the shares of rules that it recovered.
Recovered = Sequence[tuple[Cell, RecoveryFigures]]


def keeps_rules(cell: Cell) -> bool:
    """Say whether a cell's system may have kept rules; of an unregistered system, whether it kept anything."""
    entry = facts.entry_of(cell.name)
    if entry is None or entry.kind == "plug-in":
        return (cell.first.path / WEIGHTS).is_file()
    return entry.kind not in _NO_RULES


def recover(context: facts.ReportContext, cell: Cell) -> RecoveryFigures:
    """Compare the rules of a cell's first run with the benchmark's, as `loginfer rules analyse` does.

    Sub-rules are left out: for rules with large bodies they would take minutes.

    Raises
    ------
    InputError
        If the run has kept no rules, or the benchmark has none or was not given.
    """
    from loginfer.evaluation.rule_recovering import read_mined, rule_recovery

    if not (cell.first.path / WEIGHTS).is_file():
        raise InputError("the run has no weights, so that its rules are not known")
    benchmark = context.benchmark(cell.benchmark)
    if benchmark is None:
        raise InputError("the benchmark's folder was not given")
    context.tell(f"rules of {cell.system} on {cell.benchmark}")
    mined, _ = read_mined(cell.first.path, benchmark)
    return rule_recovery(benchmark.program, mined, benchmark.graph, confidences=(), subrules=False).figures


# -- rows from diagnoses ------------------------------------------------------------------------

# Where a rule is drawn if none of its shortcuts has enough witnesses: below the axis.
NO_RATE = -0.08
# Where a rule without support is drawn on a logarithmic axis: rules that the user gave may have none.
NO_SUPPORT = 0.5


def verdict_rows(diagnosed: Diagnosed, labels: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """Return how many rules have which verdict, for each cell with a diagnosis."""
    return [
        (cell.system, labels[cell.benchmark], verdict, order, diagnosis["verdicts"].get(verdict, 0))
        for cell, diagnosis in diagnosed
        for order, verdict in enumerate(VERDICTS)
        if diagnosis.get("verdicts", {}).get(verdict)
    ]


def _about(rule: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a rule, as people read it, and the verdict about it."""
    return rule["rule"], facts.rule_label(rule["rule"]), rule["verdict"]


def rule_rows(diagnosed: Diagnosed, supports: Mapping[str, int] | None) -> dict[str, Any]:
    """Return each rule with each system of a benchmark; `size` is the support, or the conclusions in test.

    `worst` is the highest false-positive rate on a shortcut with enough witnesses; `shown` and `drawn` say
    where that and the size are drawn.
    """
    rows = []
    for cell, diagnosis in diagnosed:
        for rule in diagnosis.get("rules", ()):
            tested = [s["false_positive_rate"] for s in rule["shortcuts"] if s["witnesses"] >= LEAST]
            worst = facts.rounded(max(tested, default=None), 4)
            size = rule["conclusions"] if supports is None else supports.get(rule["rule"])
            drawn = (NO_RATE if worst is None else worst, None if size is None else max(size, NO_SUPPORT))
            recall = facts.rounded(rule["recall"], 4)
            rows.append((cell.system, *_about(rule), size, rule["conclusions"], recall, worst, *drawn))
    return loaded_rows("rule-or-shortcut", rows)


def shortcut_rows(diagnosed: Diagnosed) -> dict[str, Any]:
    """Return each shortcut of each rule with each system of a benchmark; each system's most predicted first."""
    rows = [
        (
            cell.system,
            *_about(rule),
            shortcut["shortcut"],
            facts.rule_label(shortcut["shortcut"]),
            shortcut["kind"],
            shortcut["witnesses"],
            shortcut["predicted"],
            facts.rounded(shortcut["false_positive_rate"], 4),
        )
        for cell, diagnosis in diagnosed
        for rule, shortcut in sorted(
            ((rule, shortcut) for rule in diagnosis.get("rules", ()) for shortcut in rule["shortcuts"]),
            key=lambda pair: (-(pair[1]["false_positive_rate"] or 0), -pair[1]["witnesses"]),
        )
    ]
    return loaded_rows("sub-rules", rows)


# -- plots --------------------------------------------------------------------------------------

# Beside the plot a legend would leave little of it on a phone.
_TOP = {"orient": "top", "title": None, "columns": 3}
_POINT = vega.points(size=55, opacity=0.75)


def _log(field: str, title: str) -> dict[str, Any]:
    """Return the position on a logarithmic scale, where zeros are drawn at one half."""
    values = [0.5, *(digit * 10**power for power in range(10) for digit in (1, 3))]
    label = "datum.value < 1 ? '0' : format(datum.value, '~s')"
    scale = {"type": "log", "nice": False, "padding": 12}
    axis = {"values": values, "labelExpr": label, "labelOverlap": "greedy"}
    return vega.quantity(field, title=f"{title} (log scale)", scale=scale, axis=axis)


# -- verdicts -----------------------------------------------------------------------------------


def verdict_bars(rows: Sequence[tuple[Any, ...]], by: str, names: Sequence[str], *choices: Choice) -> Chart:
    """Return stacked bars of verdicts with their numbers, one bar for each system or benchmark."""
    present = [verdict for verdict in VERDICTS if any(row[2] == verdict for row in rows)]
    words = "datum.rules + ' ' + datum.verdict"
    width = "width * datum.rules / datum.all"
    label = f"{width} > 7.5 * length({words}) ? {words} : {width} > 20 ? datum.rules : ''"
    across = vega.quantity("rules", stack="normalize", title="share of the rules", axis=vega.PERCENT)
    colour = vega.verdict_colour(legend={**_TOP, "columns": 6, "values": present})
    spec = {
        "transform": [
            {"aggregate": [{"op": "sum", "field": "rules", "as": "rules"}], "groupby": [by, "verdict", "place"]},
            {"joinaggregate": [{"op": "sum", "field": "rules", "as": "all"}], "groupby": [by]},
            {"calculate": label, "as": "label"},
        ],
        "encoding": {
            "y": vega.nominal(by, scale={"domain": list(names)}, title=None),
            "order": vega.quantity("place"),
            "tooltip": [vega.nominal(by), vega.nominal("verdict"), vega.number_tip("rules", "rules")],
        },
        "layer": [
            vega.layer({"type": "bar"}, x=across, color=colour),
            vega.layer(
                {"type": "text", "fontSize": 12, "color": "#111111"},
                x={**across, "bandPosition": 0.5},
                text=vega.nominal("label"),
                detail=vega.nominal("verdict"),
            ),
        ],
    }
    spec = vega.sized(spec, height=max(vega.BAR * len(names), 60))
    return Chart.declared(f"verdicts-by-{by}", spec, rows, *choices)


# -- rule by rule -------------------------------------------------------------------------------


def recall_chart(systems: Sequence[str], size: str) -> Chart:
    """Return the recall of each rule against its support; rows are loaded."""
    spec = vega.layer(
        _POINT,
        x=_log("drawn", size),
        y=vega.share_axis("recall", "recall", scale=vega.UNIT),
        color=vega.verdict_colour(legend=_TOP),
        tooltip=vega.tooltip("recall-and-support", size=size),
    )
    choice = Choice.among("system", systems, together=True)
    return Chart.declared("recall-and-support", vega.sized(spec, height=320), None, choice, size=size)


def rule_or_shortcut_chart(systems: Sequence[str], size: str) -> Chart:
    """Return the recall of each rule against the false positives on its worst shortcut; rows are loaded."""
    label = "datum.value < 0 ? 'none' : format(datum.value, '.0%')"
    scale = {"domain": [-0.12, 1.02], "nice": False}
    axis = {"values": [-0.08, 0, 0.2, 0.4, 0.6, 0.8, 1], "labelExpr": label}
    rate = vega.quantity("shown", title="false-positive rate", scale=scale, axis=axis)
    line = vega.layer({"type": "rule", "strokeDash": [4, 4], "color": vega.GREY}, y=vega.quantity("y"))
    limit = {"data": {"values": [{"y": 0.5}]}, **line}
    rules = vega.layer(
        _POINT,
        x=vega.share_axis("recall", "recall on the rule's conclusions", scale=vega.UNIT),
        y=rate,
        color=vega.verdict_colour(legend=_TOP),
        tooltip=vega.tooltip("rule-or-shortcut", size=size),
    )
    spec, choice = vega.sized({"layer": [limit, rules]}, height=320), Choice.among("system", systems, together=True)
    return Chart.declared("rule-or-shortcut", spec, None, choice, size=size)


def sub_rule_chart(systems: Sequence[str]) -> Chart:
    """Return the false positives on each shortcut; rows are loaded."""
    shapes = {"sub-rule": "circle", "relation": "square", "baseline": "diamond"}
    spec = vega.layer(
        _POINT,
        "datum.witnesses > 0",
        x=_log("witnesses", "witnesses among negatives"),
        y=vega.share_axis("rate", "false-positive rate", scale=vega.UNIT),
        color=vega.verdict_colour(legend=_TOP),
        shape=vega.nominal("kind", title=None, legend=vega.SHAPES, scale=vega.scale_of(shapes, shapes.values())),
        tooltip=vega.tooltip("sub-rules"),
    )
    choice = Choice.among("system", systems, together=True)
    return Chart.declared("sub-rules", vega.sized(spec, height=320), None, choice)


# -- mined rules --------------------------------------------------------------------------------

# Colour and shape of each kind of point.
_POINTS = {
    "ours": ("#0072b2", "circle"),
    "one step": ("#56b4e9", "triangle-right"),
    "random heads": ("#d55e00", "cross"),
    "paper": (vega.GREY, "diamond"),
}


def recovery_chart(rows: Sequence[tuple[Any, ...]], systems: Sequence[str], benchmarks: Sequence[str]) -> Chart:
    """Return the shares of rules that miners found, beside their controls and the paper's."""
    colours, shapes = zip(*_POINTS.values(), strict=True)
    spec = vega.layer(
        vega.points(size=75, opacity=0.85),
        y=vega.nominal("benchmark", sort=list(benchmarks), title=None),
        yOffset=vega.nominal("share", sort=["ε_ent", "ε_cont"]),
        x=vega.share_axis("value", "share of the benchmark's rules", scale=vega.UNIT),
        color=vega.nominal("what", title=None, scale=vega.scale_of(_POINTS, colours), legend=_TOP),
        shape=vega.nominal("what", title=None, scale=vega.scale_of(_POINTS, shapes)),
        tooltip=vega.tooltip("mined-rules"),
    )
    spec = vega.sized(spec, height=max(34 * len(benchmarks), 80))
    return Chart.declared("mined-rules", spec, rows, Choice.among("system", systems))


def pages(context: facts.ReportContext) -> Iterator[Page | DataFile]:
    """Yield the files that the page loads, benchmark by benchmark, then the page."""
    labels = context.labels
    verdicts: list[tuple[Cell, Mapping[str, Any]]] = []
    options: list[tuple[str, str]] = []
    recovered: list[tuple[Cell, RecoveryFigures]] = []
    notes: list[str] = []
    for benchmark in context.collection.benchmark_names:
        cells = context.collection.of_benchmark(benchmark)
        diagnosed = [(cell, diagnosis) for cell in cells if (diagnosis := facts.diagnosis_of(cell)).get("rules")]
        if diagnosed:
            path = context.data_file("rules", benchmark)
            options.append((labels[benchmark], path))
            yield DataFile(path, _benchmark_data(context, benchmark, diagnosed))
            # Only the counts are needed later: diagnoses are large.
            verdicts += [(cell, {"verdicts": diagnosis["verdicts"]}) for cell, diagnosis in diagnosed]
        if context.options.recovery:
            for cell in filter(keeps_rules, cells):
                try:
                    recovered.append((cell, recover(context, cell)))
                except InputError as problem:  # there is nothing to compare
                    notes.append(f"{cell.system} on {cell.benchmark}: {problem.message}")
    if verdicts or recovered:
        yield _page(context, labels, verdicts, options, recovered, notes)


def _benchmark_data(context: facts.ReportContext, benchmark: str, diagnosed: Diagnosed) -> dict[str, Any]:
    supports = facts.benchmark_facts(context, benchmark).supports
    rules = rule_rows(diagnosed, supports)
    verdicts = [rule["verdict"] for _, diagnosis in diagnosed for rule in diagnosis["rules"]]
    untested = verdicts.count("untested")
    text = f"{benchmark}: {len(diagnosed[0][1]['rules']):,} rules, {len(diagnosed):,} systems."
    if untested:
        text += f" {untested / len(verdicts):.0%} of all verdicts are “untested”."
    if supports is None:
        text += " The benchmark's folder was not given: conclusions in test stand for the support."
    return {
        "charts": {"recall-and-support": rules, "rule-or-shortcut": rules, "sub-rules": shortcut_rows(diagnosed)},
        "texts": {"chosen": text},
    }


def _page(
    context: facts.ReportContext,
    labels: Mapping[str, str],
    diagnosed: Diagnosed,
    options: Sequence[tuple[str, str]],
    recovered: Recovered,
    notes: Sequence[str],
) -> Page:
    systems = context.collection.systems_of(cell for cell, _ in diagnosed)
    benchmarks = list(dict.fromkeys(labels[cell.benchmark] for cell, _ in diagnosed))
    all_given = all(name in context.collection.benchmarks for name in context.collection.benchmark_names)
    size = "support" if all_given else "support, or conclusions in test"
    content = {
        "diagnosed": bool(diagnosed),
        "verdicts": _verdicts(verdict_rows(diagnosed, labels), systems, benchmarks) if diagnosed else [],
        "picker": Picker("benchmark", tuple(options)),
        "rules": [rule_or_shortcut_chart(systems, size), sub_rule_chart(systems), recall_chart(systems, size)],
        "mined": _mined_chart(context, recovered, labels) if recovered else None,
        "table": _mined_table(context, recovered, labels) if recovered else None,
        "compared": context.options.recovery,
        "notes": notes,
    }
    return Page("rules.html", "Rules and shortcuts", "rules.html", content, "rules")


def _verdicts(rows: Sequence[tuple[Any, ...]], systems: Sequence[str], benchmarks: Sequence[str]) -> list[Chart]:
    """Return what each system made of each benchmark; of one benchmark alone the overview says it."""
    choice = Choice.among("system", systems)
    return [verdict_bars(rows, "benchmark", benchmarks, choice)] if len(benchmarks) > 1 else []


# -- mined rules --------------------------------------------------------------------------------


def _mined_chart(context: facts.ReportContext, recovered: Recovered, labels: Mapping[str, str]) -> Chart:
    rows = []
    for cell, figures in recovered:
        about = (cell.system, labels[cell.benchmark])
        rows += [(*about, *what, share) for what, share in _shares(cell, figures).items() if share is not None]
    systems = context.collection.systems_of(cell for cell, _ in recovered)
    benchmarks = list(dict.fromkeys(labels[cell.benchmark] for cell, _ in recovered))
    return recovery_chart(rows, systems, benchmarks)


def _shares(cell: Cell, figures: RecoveryFigures) -> dict[tuple[str, str], float | None]:
    """Return ours and the paper's shares of rules, in the order of the table."""
    return {
        ("ε_ent", "ours"): figures.eps_ent,
        ("ε_ent", "one step"): figures.eps_ent_single_step,
        ("ε_ent", "random heads"): figures.eps_ent_random_heads,
        ("ε_ent", "paper"): paper_recovery(cell.name, cell.first.benchmark, "eps_ent"),
        ("ε_cont", "ours"): figures.eps_cont,
        ("ε_cont", "paper"): paper_recovery(cell.name, cell.first.benchmark, "eps_cont"),
    }


def _mined_table(context: facts.ReportContext, recovered: Recovered, labels: Mapping[str, str]) -> Grid:
    shares = ("ε_ent", "one step", "random heads", "paper's ε_ent", "ε_cont", "paper's ε_cont")
    heads = (*columns("link", "benchmark", "system"), *columns("number", "mined rules"), *columns("share", *shares))
    rows = tuple(
        (
            (labels[cell.benchmark], context.benchmark_page(cell.benchmark)),
            (cell.system, context.system_page(cell.system)),
            figures.mined,
            *_shares(cell, figures).values(),
        )
        for cell, figures in recovered
    )
    caption = "In percent. One step: a single application of one mined rule is enough. First seed of each."
    return Grid(heads, rows, caption, search=len(rows) > 20)
