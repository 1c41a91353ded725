"""The pages about benchmarks: a list of all, and a card for each, from its folder, its audit and its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from loginfer.report import vega
from loginfer.report.facts import (
    Figure,
    ShortcutFigure,
    classification_figures,
    paper_figure,
    rounded,
    share_text,
    shortcut_figures,
)
from loginfer.report.pages.examples import examples
from loginfer.report.pages.explorer import slug_of
from loginfer.report.paper import PaperSizes, benchmark_parts, paper_sizes, paper_value
from loginfer.report.values import Chart, DataFile, Grid, Page, columns
from loginfer.report.verdicts import cell_verdicts, verdicts_in

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.report.collection import Cell
    from loginfer.report.facts import ReportContext


class RuleRow(NamedTuple):
    """A rule on a card; None for what is not known.

    Parameters
    ----------
    number
        Its index in the benchmark's rules, from 0.
    rule, pattern
        Their texts.
    support, new, sampled
        Witnesses in K, new conclusions, and how many of these were sampled.
    """

    number: int
    rule: str
    pattern: str | None
    support: int | None = None
    new: int | None = None
    sampled: int | None = None


@dataclass(frozen=True)
class Card:
    """A benchmark in the report.

    Parameters
    ----------
    name, cells
        The report's name for it, and the systems that were run on it.
    folder
        Whether its folder was given.
    graph, patterns, protocol
        How it was built; empty where that is not known.
    sizes
        By set: `P_train`, …, `N_test`.
    facts
        More about how it was built, as pairs of term and text.
    notes
        The notes of its manifest.
    rules
        Its rules.
    shortcuts
        What shortcuts reach, the best first, see `shortcut_figures`.
    oracle
        Balanced accuracy on test of the oracle.
    audit
        What the audit found, as `loginfer audit --json` prints it; None if there is none.
    """

    name: str
    cells: Sequence[Cell]
    folder: bool
    graph: str = ""
    patterns: tuple[str, ...] = ()
    protocol: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    rules: tuple[RuleRow, ...] = ()
    shortcuts: Sequence[ShortcutFigure] = ()
    oracle: float | None = None
    audit: Mapping[str, Any] | None = None

    @property
    def own_name(self) -> str:
        """The benchmark's own name."""
        return self.cells[0].first.benchmark

    @property
    def method(self) -> str | None:
        """The method that made its negatives."""
        return self.cells[0].method

    @property
    def best_shortcut(self) -> ShortcutFigure | None:
        """The learned shortcut; where there is none, the best of the others."""
        return self.shortcuts[0] if self.shortcuts else None

    @property
    def systems(self) -> list[Cell]:
        """The systems without the oracle, which knows the rules."""
        return [cell for cell in self.cells if cell.name != "oracle"]

    @property
    def best_system(self) -> tuple[str, float] | None:
        """The system with the best balanced accuracy, mean over seeds; without the oracle."""
        means = _means(self.systems, "balanced_accuracy")
        return max(means, key=lambda pair: pair[1]) if means else None

    @property
    def paper(self) -> PaperSizes | None:
        """The paper's row about this benchmark, if it has one."""
        parts = benchmark_parts(self.own_name)
        if parts is None:
            return None
        return next((row for row in paper_sizes() if (row.kg, row.pattern) == parts[:2]), None)


def _means(cells: Sequence[Cell], metric: str) -> list[tuple[str, float]]:
    """Return the system and the mean over seeds of each cell that has this metric."""
    means = [(cell.system, cell.mean(metric)) for cell in cells]
    return [(system, mean) for system, mean in means if mean is not None]


def folder_hint(card: Card) -> str:
    """Say what to do about a missing folder."""
    return (
        "This page shows only what the runs know. If LogInfer built the benchmark, its folder was not given: "
        f"loginfer report RUNS… {card.own_name} --out SITE"
    )


def make_card(context: ReportContext, name: str) -> Card:
    """Return what the report knows about a benchmark."""
    cells, benchmark = context.collection.of_benchmark(name), context.benchmark(name)
    audit, shortcuts = context.audit(name), shortcut_figures(context, name)
    about = _from_runs(cells) if benchmark is None else _from_folder(cells, benchmark)
    oracle = _oracle(cells, audit)
    return Card(name, cells, benchmark is not None, audit=audit, shortcuts=shortcuts, oracle=oracle, **about)


def _from_folder(cells: Sequence[Cell], benchmark: Benchmark) -> dict[str, Any]:
    recipe, method = benchmark.recipe, cells[0].method
    sizes = {f"P_{split}": size for split, size in benchmark.positives.sizes.items()}
    notes = list(benchmark.notes)
    if method is not None and method in benchmark.negatives:
        negatives = benchmark.negatives[method]
        sizes |= {f"N_{split}": size for split, size in negatives.splits.sizes.items()}
        notes += negatives.notes
    rules = tuple(
        RuleRow(number, str(r.rule), r.pattern, *(None if n < 0 else n for n in (r.support, r.new, r.sampled)))
        for number, r in enumerate(benchmark.rules)
    )
    built = {"graph": recipe.kg, "patterns": recipe.patterns, "protocol": recipe.protocol} if recipe else {}
    return {**built, "sizes": sizes, "facts": _facts(benchmark, cells[0]), "notes": notes, "rules": rules}


def _facts(benchmark: Benchmark, cell: Cell) -> list[tuple[str, str]]:
    from loginfer.benchmark.negatives.methods import METHODS

    recipe, kg, method = benchmark.recipe, benchmark.manifest.get("kg"), cell.method
    facts = []
    if recipe is not None:
        sizes = [f"{kg[what]:,} {what}" for what in ("triples", "constants", "relations", "types")] if kg else []
        facts += [
            ("graph", ": ".join([recipe.kg, *([", ".join(sizes)] if sizes else [])])),
            ("patterns", ", ".join(recipe.patterns) or "none: the rules were given"),
            (
                "rules for each pattern (k1)",
                f"{recipe.k1:,}, by {recipe.select}" if recipe.patterns else "all that were given",
            ),
            ("conclusions sampled for each rule (k2)", f"at most {recipe.k2:,}"),
            *_depth_facts(benchmark),
            ("train : valid : test", recipe.ratio),
            ("protocol", recipe.protocol),
            ("seed", str(recipe.seed)),
        ]
    title = METHODS[method].title if method in METHODS else ""
    if recipe is not None and recipe.match and method in METHODS and METHODS[method].matchable:
        title += f", twins of the conclusions, alike in {', '.join(recipe.match)}"
    facts.append(("negatives", ", ".join(word for word in (method, title) if word) or "none"))
    if kg:
        facts.append(("sum of the graph", str(kg["sha256"])))
    facts.append(("sum of the benchmark", str(cell.first.manifest["request"]["benchmark"]["sha256"])))
    return facts


def _depth_facts(benchmark: Benchmark) -> list[tuple[str, str]]:
    """Return in how many steps conclusions follow, and how many do; nothing for a single step."""
    from loginfer.benchmark.folder.manifest import depth_counts

    provenance = benchmark.provenance
    if provenance is None or not provenance.deep:
        return []
    counts = depth_counts(provenance)
    texts = [f"{sum(sizes.values()):,} in {depth}" for depth, sizes in counts.items()]
    return [("conclusions by number of steps", ", ".join(texts))]


def _from_runs(cells: Sequence[Cell]) -> dict[str, Any]:
    first = cells[0].first
    labelled, _ = first.labelled()
    sizes = {f"P_{split}": len(labelled.positives[split]) for split in ("valid", "test")}
    for negatives in labelled.negatives.values():
        sizes |= {f"N_{split}": len(negatives.splits[split]) for split in ("valid", "test")}
    parts = benchmark_parts(first.benchmark)
    diagnosed = enumerate(_diagnosis(cells).get("rules", ()))
    rules = tuple(RuleRow(number, rule["rule"], rule.get("pattern")) for number, rule in diagnosed)
    facts = [
        ("negatives", cells[0].method or "none"),
        ("sum of the benchmark", str(first.manifest["request"]["benchmark"]["sha256"])),
    ]
    named = {"graph": parts[0], "patterns": (parts[1],)} if parts else {}
    return {**named, "sizes": sizes, "facts": facts, "rules": rules}


# -- accuracies ---------------------------------------------------------------------------------


def _diagnosis(cells: Sequence[Cell]) -> Mapping[str, Any]:
    """Return the diagnosis of the first run that has one; the parts used here are the same for all."""
    for cell in cells:
        diagnosis = cell.first.diagnosis() if "diagnosis.json" in cell.first.manifest["files"] else None
        if diagnosis:
            return diagnosis
    return {}


def _oracle(cells: Sequence[Cell], audit: Mapping[str, Any] | None) -> float | None:
    """Return the balanced accuracy of the oracle, from the audit or a run."""
    figures = (audit or {}).get("oracle", {}).get(cells[0].method, {})
    recall, rate = (figures.get(name) for name in ("recall", "false_positive_rate"))
    if recall is not None and rate is not None:
        return float(1 + recall - rate) / 2
    return next((cell.mean("balanced_accuracy") for cell in cells if cell.name == "oracle"), None)


_SHORTCUT = "any shortcut"
_GREY = "#8a939c"
# So many shortcuts are drawn beside the systems.
_DRAWN = 7


def rivals_chart(card: Card, systems: tuple[str, ...]) -> Chart | None:
    """Return the plot of shortcuts against systems and the oracle; None if there is nothing to compare.

    Parameters
    ----------
    card
        The benchmark.
    systems
        All systems of the report, for their colours.
    """
    best = card.best_shortcut
    line = None if best is None else rounded(best.value)
    rows: list[tuple[Any, ...]] = []
    for cell in card.cells:
        mean = cell.mean("balanced_accuracy")
        if mean is not None:
            kind = "oracle" if cell.name == "oracle" else "system"
            rows.append((cell.system, cell.system, kind, rounded(mean), "", line))
    if card.oracle is not None and not any(row[2] == "oracle" for row in rows):
        rows.append(("oracle (audit)", "oracle", "oracle", rounded(card.oracle), "", line))
    for shortcut in card.shortcuts[:_DRAWN]:
        name = f"{shortcut.name} (shortcut)"
        rows.append((name, _SHORTCUT, "shortcut", rounded(shortcut.value), shortcut.interval_text, line))
    if not rows:
        return None
    spec = _rivals_spec(systems, best is not None, len(rows))
    return Chart.declared("rivals", spec, sorted(rows, key=lambda row: -row[3]))


def _rivals_spec(systems: tuple[str, ...], line: bool, bars: int) -> dict[str, Any]:
    names = list(systems) + [name for name in ("oracle",) if name not in systems]
    colour = vega.system_colours(names, field="who") | {"legend": None}
    scale = colour["scale"]
    colour["scale"] = vega.scale_of([*scale["domain"], _SHORTCUT], [*scale["range"], _GREY])
    position = {
        "y": vega.nominal("name", sort=None, title=None),
        "x": vega.percent_axis("balanced accuracy on test", scale=vega.UNIT, field="accuracy"),
    }
    layers = [
        vega.layer({"type": "bar"}, **position, color=colour, tooltip=vega.tooltip("rivals")),
        vega.layer({"type": "text", "align": "left", "dx": 4}, **position, text={"field": "accuracy", "format": ".1%"}),
    ]
    if line:
        rule = {"aggregate": "max", **vega.quantity("best")}
        layers.append(vega.layer({"type": "rule", "strokeDash": [5, 4], "color": _GREY}, x=rule))
    return vega.sized({"layer": layers}, height=24 * bars)


def pages(context: ReportContext) -> Iterator[Page | DataFile]:
    """Yield a card for each benchmark, then their list."""
    cards: list[Card] = []
    for name in context.collection.benchmark_names:
        context.tell(f"card of {name}")
        card = make_card(context, name)
        cards.append(card)
        content = _content(context, card)
        yield Page(context.benchmark_page(name), name, "benchmark.html", content, "benchmarks")
    grid = Grid(_INDEX, tuple(_index_row(context, card) for card in cards), _INDEX_CAPTION, len(cards) > 5)
    missing = [card.own_name for card in cards if not card.folder]
    content = {"benchmarks": grid, "missing": sorted(set(missing))}
    yield Page("benchmarks.html", "Benchmarks", "benchmarks.html", content, "benchmarks")


# -- the list -----------------------------------------------------------------------------------

_INDEX = (
    *columns("link", "benchmark"),
    *columns("text", "graph", "patterns"),
    *columns("number", "rules", "P_train", "P_valid", "P_test", "N_test"),
    *columns("text", "protocol"),
    *columns("share", "best shortcut", "oracle", "best system"),
    *columns("text", "which shortcut", "its 95 % interval", "which system"),
)
_INDEX_CAPTION = "Sizes in triples. Balanced accuracy on test in percent, of systems the mean over seeds."


def _index_row(context: ReportContext, card: Card) -> tuple[Any, ...]:
    shortcut, system = card.best_shortcut, card.best_system or (None, None)
    return (
        (context.labels[card.name], context.benchmark_page(card.name)),
        card.graph,
        ", ".join(card.patterns),
        len(card.rules) or None,
        *(card.sizes.get(name) for name in ("P_train", "P_valid", "P_test", "N_test")),
        card.protocol,
        None if shortcut is None else shortcut.value,
        card.oracle,
        system[1],
        *((None, None) if shortcut is None else (shortcut.name, shortcut.interval_text)),
        system[0],
    )


# -- a card -------------------------------------------------------------------------------------


def _content(context: ReportContext, card: Card) -> dict[str, Any]:
    name = card.name
    benchmark = context.benchmark(name)
    explorer = f"explorer.html#benchmark={slug_of(context, name)}"
    return {
        "card": card,
        "hint": None if card.folder else folder_hint(card),
        "sizes": _sizes(card),
        "verdict": _verdict(context, card),
        "rivals": rivals_chart(card, context.collection.systems),
        "results": _results(context, card),
        "rules": _rules(card),
        "examples": [] if benchmark is None else examples(benchmark, card.method),
        "explorer": explorer if context.options.explorer else None,
    }


def _sizes(card: Card) -> Grid:
    """Return our sizes beside the paper's."""
    paper = card.paper
    in_paper: dict[str, int | None] = {}
    if paper is not None:
        in_paper = {"P_train": paper.train, "P_valid": paper.valid, "P_test": paper.test}
    rows = [(name, size, in_paper.get(name)) for name, size in card.sizes.items()]
    if card.rules:
        rows.append(("rules", len(card.rules), None))
    heads, width = (*columns("text", "set"), *columns("number", "triples", "paper")), 3 if in_paper else 2
    return Grid(heads[:width], tuple(row[:width] for row in rows))


def _verdict(context: ReportContext, card: Card) -> str:
    """Say what the best shortcut reaches, and which systems learn more."""
    best = card.best_shortcut
    if best is None or not card.systems:
        return ""
    interval = f" ({best.interval_text})" if best.interval else ""
    begin = f"The best shortcut, {best.name}, has a balanced accuracy of {share_text(best.value)} %{interval}."
    begin += f" It rests most on {', '.join(best.features)}." if best.features else ""
    answer = verdicts_in([v for v in cell_verdicts(context) if v.cell.benchmark == card.name])
    return f"{begin} {answer.headline}"


def _results(context: ReportContext, card: Card) -> Grid:
    best = card.best_shortcut
    main, *others = classification_figures(card.cells)
    ranks = Figure("c_mrr", "C-MRR, filtered", "filtered")
    rows = []
    for cell in card.cells:
        accuracy = cell.mean("balanced_accuracy")
        gain = None if best is None or accuracy is None else accuracy - best.value
        paper = paper_value(cell.name, card.own_name, "balanced_accuracy")
        rows.append(
            (
                (cell.system, context.system_page(cell.system)),
                len(cell.runs),
                cell.mean(main.metric),
                paper,
                gain,
                *(cell.mean(figure.metric) for figure in others),
                cell.mean(ranks.metric, ranks.protocol),
                paper_figure(cell, ranks),
            )
        )
    heads = (*columns("link", "system"), *columns("number", "seeds"), main.column)
    heads += (*columns("share", "paper's AUC", "over best shortcut"), *(figure.column for figure in others))
    heads += (ranks.column, *columns("share", "a paper's"))
    caption = "Mean over seeds, in percent."
    caption += "" if best is None else " Over best shortcut: the difference of the balanced accuracies."
    if any(row[3] is not None for row in rows):
        caption += " The paper computes its AUC on decisions: it is the balanced accuracy."
    return Grid(heads, tuple(rows), caption).filled


def _rules(card: Card) -> Grid | None:
    if not card.rules:
        return None
    heads = columns("number", "rule no.") + columns("rule", "rule", "pattern")
    heads += columns("number", "support", "new conclusions", "sampled")
    return Grid(heads, card.rules, search=len(card.rules) > 5)
