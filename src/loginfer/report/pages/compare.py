"""Two runs beside each other: figures, scores, rules, relations, and triples on which they disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.evaluation.predictions import Scores, labelled_triples
from loginfer.evaluation.runs import Run
from loginfer.kg.vocabulary import middle, short_names, shortened
from loginfer.randomness import generator
from loginfer.report import facts, statistics, vega
from loginfer.report.collection import Cell, figures_in
from loginfer.report.values import Chart, Column, Grid, Page, columns

# At most so many rules or relations are listed, those with the largest differences.
LISTED_PARTS = 20

Part = tuple[Chart, Grid]
Labels = tuple[str, str]


def rule_parts(labels: Labels, diagnoses: Sequence[Mapping[str, Any]]) -> Part | None:
    """Compare the recall of each rule's conclusions; None if one run was not diagnosed.

    Parameters
    ----------
    labels
        The labels of the two runs.
    diagnoses
        The `diagnosis.json` of each; the rules of one benchmark come in the same order.
    """
    sides = [diagnosis.get("rules") or [] for diagnosis in diagnoses]
    if len(sides[0]) != len(sides[1]):
        return None
    parts = [
        (middle(shortened(one["rule"]), 160), one["rule"], one["conclusions"], one["recall"], other["recall"],
         one["verdict"], other["verdict"])
        for one, other in zip(*sides, strict=True)
    ]  # fmt: skip
    heads = (Column("rule", "rule"), Column("conclusions in test", "number"))
    verdicts = columns("text", *(f"verdict, {label}" for label in labels))
    caption = "Rules on which the two differ most; recall in percent."
    return _parts("rules", "recall", labels, parts, heads, verdicts, caption)


def relation_parts(labels: Labels, breakdowns: Sequence[Mapping[str, Any]]) -> Part | None:
    """Compare the accuracy on each relation's test triples; None without breakdowns.

    Parameters
    ----------
    labels
        The labels of the two runs.
    breakdowns
        The breakdown of each.
    """
    first, second = (breakdown.get("relations") or {} for breakdown in breakdowns)
    short = short_names(first, longest=80)
    parts = [
        (short[name], (short[name], name), sum(one[key] for key in ("tp", "fp", "tn", "fn")), one["accuracy"],
         second[name]["accuracy"])
        for name, one in first.items() if name in second
    ]  # fmt: skip
    heads = (Column("relation", "name"), Column("test triples", "number"))
    caption = "Relations on which the two differ most; accuracy in percent."
    return _parts("relations", "accuracy", labels, parts, heads, (), caption)


def _parts(
    name: str,
    what: str,
    labels: Labels,
    parts: Sequence[tuple[Any, ...]],
    heads: tuple[Column, ...],
    more: tuple[Column, ...],
    caption: str,
) -> Part | None:
    """Return a plot of all parts, and a table of those that differ most; None if no part has figures of both.

    Parameters
    ----------
    name, what
        The plot, and the figure that is compared.
    labels
        The labels of the two runs.
    parts
        How the plot and how the table call a part, of how many triples it consists, the figure of both runs, and more.
    heads, more, caption
        The columns of the table before and behind the figures, and what it shows.
    """
    rows, listed = [], []
    for shown, cell, count, one, other, *rest in parts:
        if one is not None and other is not None:
            figures = (count, facts.rounded(one), facts.rounded(other), facts.rounded(one - other))
            rows.append((shown, *figures))
            listed.append((cell, *figures, *rest))
    if not rows:
        return None
    # Of equal differences those about more triples come first.
    differing = sorted((row for row in listed if row[4]), key=lambda row: (-abs(row[4]), -row[1]))
    figures_of_both = columns("share", *(f"{what}, {label}" for label in labels), "difference")
    table = Grid((*heads, *figures_of_both, *more), tuple(differing[:LISTED_PARTS]), caption)
    return _chart(name, what, labels, rows), table


def _chart(name: str, what: str, labels: Labels, rows: Sequence[tuple[Any, ...]]) -> Chart:
    words = dict(zip("ab", labels, strict=True))
    counted = vega.declared(name)["columns"]["count"]
    size = vega.quantity("count", title=counted, scale={"range": [25, 350]}, legend={"orient": "top"})
    circles = vega.layer(
        {"type": "circle", "opacity": 0.6, "color": "#0072b2"},
        x=vega.share_axis("a", f"{what}, {middle(labels[0], 40)}", scale=vega.UNIT),
        y=vega.share_axis("b", f"{what}, {middle(labels[1], 40)}", scale=vega.UNIT),
        size=size,
        tooltip=vega.tooltip(name, **words),
    )
    line = {
        "data": {"values": [{}]},  # one line, not one for each row
        "mark": {"type": "rule", "color": "#888888", "strokeDash": [2, 3]},
        "encoding": {"x": {"datum": 0}, "x2": {"datum": 1}, "y": {"datum": 0}, "y2": {"datum": 1}},
    }
    return Chart.declared(name, vega.sized({"layer": [line, circles]}, height=360), rows, **words)


# At most so many test triples are in the plot, and so many are listed for each of the two systems.
POINTS = 2000
LISTED_TRIPLES = 25

LABELS = ("positive", "negative")


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two runs."""

    label: str
    cell: Cell
    decisions: statistics.Decisions

    @property
    def run(self) -> Run:
        return self.cell.first

    @property
    def relative_ranks(self) -> Scores:
        """float64[|P| + |N|]: the share of the test triples with a lower score; of ties half."""
        _, rank, ties = np.unique(self.decisions.scores, return_inverse=True, return_counts=True)
        return np.asarray(((np.cumsum(ties) - ties / 2) / max(len(rank), 1))[rank])


def compare_pages(context: facts.ReportContext, cell_a: Cell, cell_b: Cell) -> Iterator[Page]:
    """Make the page that compares two systems on one benchmark, with the first of several seeds.

    Raises
    ------
    InputError
        If the runs are not about the same benchmark and the same negatives.
    """
    _check(cell_a.first, cell_b.first)
    labels = _labels(cell_a, cell_b)
    context.tell(f"{labels[0]} against {labels[1]}")
    a, b = (_Side(*pair, statistics.decisions_of(pair[1].first)) for pair in zip(labels, (cell_a, cell_b), strict=True))
    if (len(a.decisions.positive), len(a.decisions.negative)) != (len(b.decisions.positive), len(b.decisions.negative)):
        raise InputError(f"`{a.run.path}` and `{b.run.path}` do not hold the same test triples")
    names = _names(a.run)
    benchmark = context.benchmark(cell_a.benchmark)
    short = short_names(chain.from_iterable(names), 60, None if benchmark is None else benchmark.graph.labels)
    diagnoses = (facts.diagnosis_of(cell_a), facts.diagnosis_of(cell_b))
    breakdowns = tuple((side.cell.metrics[0].get("breakdown") or {}) for side in (a, b))
    content = {
        "a": a.label,
        "b": b.label,
        "facts": _facts(a, b),
        "figures": _figure_grid(a, b),
        "test": _test(a, b),
        "scatter": _scatter(a, b, names, short) if names else None,
        "rules": rule_parts(labels, diagnoses),
        "relations": relation_parts(labels, breakdowns),
        "triples": _triple_grid(a, b, names, short),
    }
    yield Page("index.html", f"{a.label} and {b.label}", "compare.html", content)


def _check(a: Run, b: Run) -> None:
    about = [run.manifest["request"]["benchmark"] for run in (a, b)]
    if about[0]["sha256"] != about[1]["sha256"]:
        names = f"{a.benchmark} and {b.benchmark}" if a.benchmark != b.benchmark else f"two other {a.benchmark}"
        hint = "compare runs on one benchmark"
        raise InputError(f"`{a.path}` and `{b.path}` are not about the same benchmark: {names}", hint=hint)
    if a.method != b.method:
        message = f"`{a.path}` and `{b.path}` have other negatives: {a.method or 'none'} and {b.method or 'none'}"
        raise InputError(message, hint="evaluate one of them with `--negatives` of the other")


def _labels(a: Cell, b: Cell) -> tuple[str, str]:
    """Name the two so that they can be told apart: by system, else by seed, else by their order."""
    if a.system != b.system:
        return a.system, b.system
    if a.first.seed != b.first.seed:
        return f"{a.system}, seed {a.first.seed}", f"{b.system}, seed {b.first.seed}"
    return f"{a.system} (A)", f"{b.system} (B)"


def _names(run: Run) -> list[tuple[str, str, str]]:
    """Return the names of the test triples, positives first."""
    benchmark, predictions = run.labelled()
    sides = labelled_triples(benchmark, predictions.method, "test")
    return [(s, r, o) for triples in sides for s, r, o in benchmark.graph.names(triples)]


def _facts(a: _Side, b: _Side) -> list[tuple[str, str]]:
    counts = (len(a.decisions.positive), len(a.decisions.negative))
    return [
        ("benchmark", a.run.benchmark),
        ("negatives", a.run.method or "none"),
        ("test triples", f"{counts[0]:,} positives, {counts[1]:,} negatives"),
        *((side.label, f"seed {side.run.seed}; {_settings(side.run)}") for side in (a, b)),
    ]


def _settings(run: Run) -> str:
    settings = run.manifest["request"]["settings"]
    return ", ".join(f"{key} = {value}" for key, value in settings.items()) or "no settings"


# -- figures ------------------------------------------------------------------------------------


def _figure_grid(a: _Side, b: _Side) -> Grid:
    differences = statistics.differences(a.decisions, b.decisions, a.label, b.label)
    rows = []
    cells = [a.cell, b.cell]
    for figure in (*facts.classification_figures(cells), *facts.ranking_figures(cells)):
        value_a, value_b = (figures_in(side.cell.metrics[0], figure.protocol).get(figure.metric) for side in (a, b))
        if value_a is None and value_b is None:
            continue
        difference = None if value_a is None or value_b is None else facts.rounded(value_a - value_b)
        interval = differences[figure.metric][1] if figure.protocol is None and figure.metric in differences else None
        rows.append(
            (figure.title, facts.rounded(value_a), facts.rounded(value_b), difference, *statistics.bounds(interval))
        )
    shares = (a.label, b.label, f"{a.label} minus {b.label}", "interval from", "to")
    return Grid((*columns("text", "metric"), *columns("share", *shares)), tuple(rows), "In percent.")


def _test(a: _Side, b: _Side) -> dict[str, Any] | None:
    """Return the counts and the p of McNemar's test; None where one of them has no threshold."""
    right_a, right_b = a.decisions.right, b.decisions.right
    if right_a is None or right_b is None:
        return None
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    p = float(statistics.mcnemar(only_a, only_b))
    return {
        "both": int((right_a & right_b).sum()),
        "only_a": only_a,
        "only_b": only_b,
        "none": int((~right_a & ~right_b).sum()),
        "p": "below 0.001" if p < 0.001 else f"{p:.3f}",
    }


# -- scores -------------------------------------------------------------------------------------


def _scatter(a: _Side, b: _Side, names: Sequence[tuple[str, str, str]], short: Mapping[str, str]) -> Chart:
    count = len(names)
    indices: npt.NDArray[np.int64] = np.arange(count)
    if count > POINTS:
        draw = generator(0, "report", "scatter", a.run.benchmark, str(a.run.method))
        indices = np.sort(draw.choice(count, POINTS, replace=False))
    ranks = (a.relative_ranks, b.relative_ranks)
    right = (a.decisions.right, b.decisions.right)
    rows = []
    for index in indices.tolist():
        triple = f"({', '.join(short[name] for name in names[index])})"
        label = LABELS[int(index >= len(a.decisions.positive))]
        rows.append((triple, label, *(round(float(rank[index]), 4) for rank in ranks), _who(right, index, a, b)))
    sampled = f"A sample of {POINTS:,} of the {count:,} test triples. " if count > POINTS else ""
    return Chart.declared("scatter", _scatter_spec(a, b), rows, sampled=sampled, a=a.label, b=b.label)


def _who(right: Sequence[npt.NDArray[np.bool_] | None], index: int, a: _Side, b: _Side) -> str | None:
    if right[0] is None or right[1] is None:
        return None
    labels = [side.label for side, correct in zip((a, b), right, strict=True) if correct is not None and correct[index]]
    return "both" if len(labels) == 2 else labels[0] if labels else "none"


def _scatter_spec(a: _Side, b: _Side) -> dict[str, Any]:
    def axis(field: str, side: _Side) -> dict[str, Any]:
        title = f"{middle(side.label, 40)}: share of test triples with a lower score"
        return vega.share_axis(field, title, scale=vega.UNIT)

    colours = vega.scale_of(LABELS, ("#0072b2", "#d55e00"))
    triples = vega.layer(
        vega.points(size=22, opacity=0.55),
        x=axis("a", a),
        y=axis("b", b),
        color=vega.nominal("label", scale=colours, title="label", legend={"orient": "top"}),
        tooltip=vega.tooltip("scatter", a=a.label, b=b.label),
    )
    layers = [triples]
    for channel, side in (("x", a), ("y", b)):
        limit = _limit(side)
        if limit is not None:
            mark = {"type": "rule", "strokeDash": [5, 4], "color": "#888888", "strokeWidth": 1.5}
            # One row of its own: else the line would be drawn once for each triple.
            position = {channel: {"datum": round(limit, 4)}}
            layers.append({"data": {"values": [{}]}, "mark": mark, "encoding": position})
    return vega.sized({"layer": layers}, height=460)


def _limit(side: _Side) -> float | None:
    """Return the share of the test triples below the threshold; None where relations have their own."""
    thresholds = side.run.thresholds()
    if thresholds is None or thresholds.get("relations"):
        return None
    return float((side.decisions.scores < thresholds["value"]).mean())


# -- triples ------------------------------------------------------------------------------------


def _triple_grid(a: _Side, b: _Side, names: Sequence[tuple[str, str, str]], short: Mapping[str, str]) -> Grid | None:
    """Return triples that exactly one of the two decides rightly, those first whose ranks differ most."""
    right_a, right_b = a.decisions.right, b.decisions.right
    if right_a is None or right_b is None:
        return None
    ranks = (a.relative_ranks, b.relative_ranks)
    rank_gap = np.abs(ranks[0] - ranks[1])
    rows = []
    for side, only in ((a, right_a & ~right_b), (b, right_b & ~right_a)):
        indices = np.flatnonzero(only)
        for index in indices[np.argsort(-rank_gap[indices], kind="stable")][:LISTED_TRIPLES].tolist():
            label = LABELS[int(index >= len(a.decisions.positive))]
            parts = ((short[name], name) for name in names[index])
            rows.append((side.label, label, *(facts.rounded(float(rank[index])) for rank in ranks), *parts))
    heads = columns("text", "right", "label") + columns("share", f"place, {a.label}", f"place, {b.label}")
    heads += columns("name", "subject", "relation", "object")
    return Grid(heads, tuple(rows), search=True) if rows else None
