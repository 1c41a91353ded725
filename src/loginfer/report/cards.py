"""What the report knows about a benchmark: from its folder, its audit, and the runs that were made on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loginfer.report.paper import PaperSizes, benchmark_parts, paper_sizes

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.report.collection import Cell
    from loginfer.report.material import Material

__all__ = ["Card", "RuleRow", "card", "folder_hint"]


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule on a card; None for what is not known.

    Parameters
    ----------
    place
        Its place in the benchmark's rules, counted from 0.
    rule, pattern
        Their texts.
    support, new, sampled
        Witnesses in K, new conclusions, and how many of these were sampled.
    """

    place: int
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
        How it was made; empty where that is not known.
    sizes
        By set: `P_train`, …, `N_test`.
    facts
        More about how it was made, as pairs of words and text.
    notes
        What its manifest says one should know.
    rules
        Its rules.
    shortcuts
        Accuracy on test of the shortcut baselines, by name.
    oracle
        Accuracy on test of the oracle.
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
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    rules: tuple[RuleRow, ...] = ()
    shortcuts: Mapping[str, float] = field(default_factory=dict)
    oracle: float | None = None
    audit: Mapping[str, Any] | None = None

    @property
    def own_name(self) -> str:
        """The benchmark's own name."""
        return self.cells[0].first.benchmark

    @property
    def method(self) -> str | None:
        """Whose negatives."""
        return self.cells[0].method

    @property
    def best_shortcut(self) -> tuple[str, float] | None:
        """The shortcut with the best accuracy; of equal ones the first."""
        return max(self.shortcuts.items(), key=lambda pair: pair[1]) if self.shortcuts else None

    @property
    def systems(self) -> list[Cell]:
        """The systems without the oracle, which knows the rules."""
        return [cell for cell in self.cells if cell.name != "oracle"]

    @property
    def best_system(self) -> tuple[str, float] | None:
        """The system with the best balanced accuracy, mean over seeds; without the oracle."""
        means = [(cell.system, cell.mean("balanced_accuracy")) for cell in self.systems]
        known = [(system, mean) for system, mean in means if mean is not None]
        return max(known, key=lambda pair: pair[1]) if known else None

    @property
    def paper(self) -> PaperSizes | None:
        """The paper's row about this benchmark, if it has one."""
        parts = benchmark_parts(self.own_name)
        if parts is None:
            return None
        return next((row for row in paper_sizes() if (row.kg, row.pattern) == parts[:2]), None)


def folder_hint(card: Card) -> str:
    """Return what to do about a missing folder."""
    return (
        f"The folder of {card.own_name} was not given, so that this page shows only what the runs know. "
        f"Add it to the command: loginfer report RUNS… {card.own_name} --out SITE"
    )


def card(material: Material, name: str) -> Card:
    """Return what the report knows about a benchmark."""
    cells = material.collection.of_benchmark(name)
    benchmark = material.benchmark(name)
    audit = material.audit(name)
    diagnosis = _diagnosis(cells)
    shortcuts, oracle = _accuracies(cells, benchmark, audit, diagnosis)
    common: dict[str, Any] = {"audit": audit, "shortcuts": shortcuts, "oracle": oracle}
    if benchmark is None:
        return _from_runs(name, cells, diagnosis, common)
    return _from_folder(name, cells, benchmark, common)


def _from_folder(name: str, cells: Sequence[Cell], benchmark: Benchmark, common: dict[str, Any]) -> Card:
    recipe, method = benchmark.recipe, cells[0].method
    sizes = {f"P_{split}": size for split, size in benchmark.positives.sizes.items()}
    notes = list(benchmark.notes)
    if method is not None and method in benchmark.negatives:
        made = benchmark.negatives[method]
        sizes |= {f"N_{split}": size for split, size in made.splits.sizes.items()}
        notes += made.notes
    rules = tuple(
        RuleRow(place, str(r.rule), r.pattern, *(None if n < 0 else n for n in (r.support, r.new, r.sampled)))
        for place, r in enumerate(benchmark.rules)
    )
    return Card(
        name,
        cells,
        True,
        graph=recipe.kg if recipe else "",
        patterns=recipe.patterns if recipe else (),
        protocol=recipe.protocol if recipe else "",
        sizes=sizes,
        facts=tuple(_facts(benchmark, cells[0])),
        notes=tuple(notes),
        rules=rules,
        **common,
    )


def _facts(benchmark: Benchmark, cell: Cell) -> list[tuple[str, str]]:
    from loginfer.benchmark.card import METHOD_NAMES

    recipe, kg, method = benchmark.recipe, benchmark.manifest.get("kg"), cell.method
    facts = []
    if recipe is not None:
        sizes = (
            [f"{kg[what]:,} {what}" for what in ("triples", "constants", "relations", "types")] if kg else []
        )
        facts += [
            ("graph", ": ".join([recipe.kg, *([", ".join(sizes)] if sizes else [])])),
            ("patterns", ", ".join(recipe.patterns) or "none: the rules were given"),
            ("rules for each pattern (k1)", f"{recipe.k1:,}" if recipe.patterns else "all that were given"),
            ("conclusions sampled for each rule (k2)", f"at most {recipe.k2:,}"),
            *_depth_facts(benchmark),
            ("train : valid : test", recipe.ratio),
            ("protocol", recipe.protocol),
            ("seed", str(recipe.seed)),
        ]
    named = METHOD_NAMES.get(method or "", "")
    facts.append(("negatives", ", ".join(word for word in (method, named) if word) or "none"))
    if kg:
        facts.append(("sum of the graph", str(kg["sha256"])))
    facts.append(("sum of the benchmark", str(cell.first.manifest["request"]["benchmark"]["sha256"])))
    return facts


def _depth_facts(benchmark: Benchmark) -> list[tuple[str, str]]:
    """Return in how many steps conclusions follow, and how many do; nothing for a single step."""
    from loginfer.benchmark.manifest import depth_counts

    provenance = benchmark.provenance
    if provenance is None or not provenance.deep:
        return []
    counts = depth_counts(provenance)
    texts = [f"{sum(sizes.values()):,} in {depth}" for depth, sizes in counts.items()]
    return [("conclusions by number of steps", ", ".join(texts))]


def _from_runs(
    name: str, cells: Sequence[Cell], diagnosis: Mapping[str, Any], common: dict[str, Any]
) -> Card:
    first = cells[0].first
    labelled, _ = first.labelled()
    sizes = {f"P_{split}": len(labelled.positives[split]) for split in ("valid", "test")}
    for made in labelled.negatives.values():
        sizes |= {f"N_{split}": len(made.splits[split]) for split in ("valid", "test")}
    parts = benchmark_parts(first.benchmark)
    rules = [
        RuleRow(place, r["rule"], r.get("pattern")) for place, r in enumerate(diagnosis.get("rules", ()))
    ]
    facts = (
        ("negatives", cells[0].method or "none"),
        ("sum of the benchmark", str(first.manifest["request"]["benchmark"]["sha256"])),
    )
    return Card(
        name,
        cells,
        False,
        graph=parts[0] if parts else "",
        patterns=(parts[1],) if parts else (),
        sizes=sizes,
        facts=facts,
        rules=tuple(rules),
        **common,
    )


# -- accuracies ---------------------------------------------------------------------------------


def _diagnosis(cells: Sequence[Cell]) -> Mapping[str, Any]:
    """Return the diagnosis of the first run that has one; what is used of it is the same for all."""
    for cell in cells:
        found = cell.first.diagnosis() if "diagnosis.json" in cell.first.manifest["files"] else None
        if found:
            return found
    return {}


def _accuracies(
    cells: Sequence[Cell],
    benchmark: Benchmark | None,
    audit: Mapping[str, Any] | None,
    diagnosis: Mapping[str, Any],
) -> tuple[dict[str, float], float | None]:
    """Return the accuracies of shortcuts and of the oracle, from whoever knows them."""
    method = cells[0].method
    told = (audit or {}).get("shortcuts", {}).get(method) or diagnosis.get("baselines")
    if not told and benchmark is not None and method is not None and method in benchmark.negatives:
        from loginfer.benchmark.shortcuts import shortcut_accuracies

        told = shortcut_accuracies(benchmark, method)
    shortcuts = {name: known["accuracy"] for name, known in (told or {}).items()}
    oracle = (audit or {}).get("oracle", {}).get(method, {}).get("accuracy")
    if oracle is None:
        oracle = next((cell.mean("accuracy") for cell in cells if cell.name == "oracle"), None)
    return {name: value for name, value in shortcuts.items() if value is not None}, oracle
