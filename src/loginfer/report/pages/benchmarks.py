"""The benchmarks: a list of all, and a card for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from loginfer.report.card_charts import gap_chart, rivals_chart, rules_chart
from loginfer.report.cards import Card, card, folder_hint
from loginfer.report.examples import examples
from loginfer.report.figures import CLASSIFICATION, benchmark_labels, share_text
from loginfer.report.names import short_rule
from loginfer.report.paper import paper_value
from loginfer.report.values import Column, DataFile, Grid, Page

if TYPE_CHECKING:
    from loginfer.report.material import Material

__all__ = ["pages"]


def pages(material: Material) -> Iterator[Page | DataFile]:
    """Yield a card for each benchmark, then their list."""
    labels = benchmark_labels(material.collection.benchmark_names)
    made: list[Card] = []
    for name in material.collection.benchmark_names:
        material.tell(f"card of {name}")
        known = card(material, name)
        made.append(known)
        content = _content(material, known)
        yield Page(material.benchmark_page(name), name, "benchmark.html", content, "benchmarks")
    grid = Grid(
        _INDEX, tuple(_index_row(material, known, labels) for known in made), _INDEX_CAPTION, len(made) > 5
    )
    missing = [known.own_name for known in made if not known.folder]
    content = {"benchmarks": grid, "missing": sorted(set(missing)), "gap": gap_chart(made, labels)}
    yield Page("benchmarks.html", "Benchmarks", "benchmarks.html", content, "benchmarks")


# -- the list -----------------------------------------------------------------------------------

_INDEX = (
    Column("benchmark", "link"),
    Column("graph"),
    Column("patterns"),
    Column("rules", "number"),
    Column("P_train", "number"),
    Column("P_valid", "number"),
    Column("P_test", "number"),
    Column("N_test", "number"),
    Column("protocol"),
    Column("best shortcut", "share"),
    Column("oracle", "share"),
    Column("best system", "share"),
    Column("which shortcut"),
    Column("which system"),
)
_INDEX_CAPTION = (
    "Sizes in triples. Of the best shortcut and the oracle the accuracy on test, of the best system the "
    "balanced accuracy, mean over seeds, in percent."
)


def _index_row(material: Material, known: Card, labels: Mapping[str, str]) -> tuple[Any, ...]:
    shortcut, system = known.best_shortcut or (None, None), known.best_system or (None, None)
    return (
        (labels[known.name], material.benchmark_page(known.name)),
        known.graph,
        ", ".join(known.patterns),
        len(known.rules) or None,
        *(known.sizes.get(name) for name in ("P_train", "P_valid", "P_test", "N_test")),
        known.protocol,
        shortcut[1],
        known.oracle,
        system[1],
        shortcut[0],
        system[0],
    )


# -- a card -------------------------------------------------------------------------------------


def _content(material: Material, known: Card) -> dict[str, Any]:
    name = known.name
    benchmark = material.benchmark(name)
    explorer = f"explorer.html#benchmark={PurePosixPath(material.benchmark_page(name)).stem}"
    return {
        "card": known,
        "hint": None if known.folder else folder_hint(known),
        "sizes": _sizes(known),
        "verdict": _verdict(known),
        "rivals": rivals_chart(known, material.collection.systems),
        "results": _results(material, known),
        "rules": _rules(known),
        "support": rules_chart(known),
        "examples": [] if benchmark is None else examples(benchmark, known.method),
        "explorer": explorer if material.options.explorer else None,
    }


def _sizes(known: Card) -> Grid:
    """Return our sizes beside the paper's."""
    paper = known.paper
    theirs: dict[str, int | None] = {}
    if paper is not None:
        theirs = {"P_train": paper.train, "P_valid": paper.valid, "P_test": paper.test}
    rows = [(name, size, theirs.get(name)) for name, size in known.sizes.items()]
    if known.rules:
        rows.append(("rules", len(known.rules), None))
    columns = [Column("set"), Column("triples", "number"), Column("paper", "number")]
    if not theirs:
        return Grid(tuple(columns[:2]), tuple(row[:2] for row in rows))
    return Grid(tuple(columns), tuple(rows))


def _verdict(known: Card) -> str:
    """Return in a sentence whether any system beats the best shortcut."""
    best = known.best_shortcut
    accuracies = [(cell.system, cell.mean("accuracy")) for cell in known.systems]
    scored = [(system, mean) for system, mean in accuracies if mean is not None]
    if best is None or not scored:
        return ""
    better = [system for system, mean in scored if mean > best[1]]
    begin = f"The best shortcut, {best[0]}, is right in {share_text(best[1])}% of the test triples."
    if not better:
        return f"{begin} No system does better."
    if len(better) == len(scored):
        return f"{begin} Every system does better."
    return f"{begin} {len(better)} of {len(scored)} systems do better: {', '.join(better)}."


def _results(material: Material, known: Card) -> Grid:
    best = known.best_shortcut
    rows = []
    for cell in known.cells:
        accuracy = cell.mean("accuracy")
        gain = None if best is None or accuracy is None else accuracy - best[1]
        paper = paper_value(cell.name, known.own_name, "balanced_accuracy")
        rows.append(
            (
                (cell.system, material.system_page(cell.system)),
                len(cell.runs),
                *(cell.mean(figure.metric) for figure in CLASSIFICATION[:1]),
                paper,
                gain,
                *(cell.mean(figure.metric) for figure in CLASSIFICATION[1:]),
            )
        )
    columns = [Column("system", "link"), Column("seeds", "number"), Column(CLASSIFICATION[0].title, "share")]
    columns += [Column("paper's AUC", "share"), Column("over best shortcut", "share")]
    columns += [Column(figure.title, "share") for figure in CLASSIFICATION[1:]]
    kept = [p for p in range(len(columns)) if p not in (3, 4) or any(row[p] is not None for row in rows)]
    return Grid(
        tuple(columns[place] for place in kept),
        tuple(tuple(row[place] for place in kept) for row in rows),
        "Mean over seeds, in percent. Over best shortcut: the difference of the accuracies."
        + (" The paper computes its AUC on decisions: it is the balanced accuracy." if 3 in kept else ""),
    )


def _rules(known: Card) -> Grid | None:
    if not known.rules:
        return None
    columns = [Column("rule no.", "number"), Column("rule", "rule"), Column("pattern", "rule")]
    counts = (("support", "support"), ("new", "new conclusions"), ("sampled", "sampled"))
    shown = [c for c in counts if any(getattr(row, c[0]) is not None for row in known.rules)]
    columns += [Column(title, "number") for _, title in shown]
    rows = tuple(
        (row.place, short_rule(row.rule), row.pattern, *(getattr(row, key) for key, _ in shown))
        for row in known.rules
    )
    return Grid(tuple(columns), rows, search=len(rows) > 5)
