"""The paper's tables again: our figure, and the paper's in brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from loginfer.benchmark.suite import difference, entries
from loginfer.report.paper import SYSTEMS, paper_sizes
from loginfer.report.table_values import Entry, TableValue, best_in_bold, half_interval
from loginfer.reproduction.evidence import evidence_table
from loginfer.reproduction.figures import Figures, PaperFigures
from loginfer.reproduction.participants import MINERS, ONE_SEED, title
from loginfer.reproduction.parts import EVIDENCE, benchmarks_of
from loginfer.reproduction.planning import Request

__all__ = ["tables"]

# The paper's metrics, in the order in which we show them.
METRICS = {
    "balanced_accuracy": "balanced accuracy (AUC)",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "c_mrr": "C-MRR",
    "r_mrr": "R-MRR",
}
# Of the table of rules: our names of shares, and how they are shown.
SHARES = {
    "eps_ent": "ε_ent",
    "eps_ent_random_heads": "ε_ent, random heads",
    "eps_cont": "ε_cont",
    "subrules_entailed": "R⁻ entailed",
}

_AUC = "The paper's AUC is computed on decisions, so it is held against the balanced accuracy."
_DECIDED = "SimpBL says yes or no, so no threshold is chosen for it."
_RANKING = "Our MRR is that of the filtered ranking; the paper does not state its protocol."
_BOLD = "Bold: the best of ours, without the oracle, which knows the rules."
_SEEDS = "± half the 95 % interval of the mean over seeds (Student's t)."


def tables(
    figures: Figures, request: Request, manifests: Mapping[str, Mapping[str, Any]]
) -> dict[str, TableValue]:
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
    made = {}
    for name in request.tables:
        benchmarks = [b for b in benchmarks_of(name) if b in request.benchmarks]
        if not benchmarks:
            continue
        if name == "sizes":
            made[name] = _sizes(benchmarks, manifests)
        elif name == "rules":
            made[name] = _rules(figures, request, benchmarks)
        elif name == EVIDENCE:
            made[name] = evidence_table(figures, request)
        elif name == "negatives":
            made[name] = _negatives(figures, request, benchmarks)
        else:
            made[name] = _results(name, figures, request, benchmarks)
    return made


# -- results ----------------------------------------------------------------------------------------


def _results(name: str, figures: Figures, request: Request, benchmarks: Sequence[str]) -> TableValue:
    notes = _Notes()
    rows: list[tuple[Entry, ...]] = []
    blocks = []
    for benchmark in benchmarks:
        blocks.append(len(rows))
        columns = [
            best_in_bold(
                [_figure(figures, system, benchmark, metric, notes) for system in request.systems],
                [system != "oracle" for system in request.systems],
            )
            for metric in METRICS
        ]
        for number, system in enumerate(request.systems):
            figures_of_row = (column[number] for column in columns)
            rows.append((Entry(_short(benchmark)), Entry(title(system)), *figures_of_row))
    of = "LUBM" if name == "lubm" else "FB15k-237 and WN18RR"
    decided = [_DECIDED] if "simpbl" in request.systems else []
    general = [_AUC, _RANKING, *decided, _BOLD, *_about_seeds(request)]
    return TableValue(
        f"Results on {of}, in percent (paper)",
        ("benchmark", "system", *METRICS.values()),
        tuple(rows),
        notes.texts(general),
        tuple(blocks),
    )


def _negatives(figures: Figures, request: Request, benchmarks: Sequence[str]) -> TableValue:
    """Return the balanced accuracy of all systems with each kind of negatives."""
    order = sorted(benchmarks, key=lambda b: (b.split("-")[2] != "sym", _METHODS.index(b.rsplit("-", 1)[1])))
    notes = _Notes()
    columns = []
    for benchmark in order:
        column = [_figure(figures, s, benchmark, "balanced_accuracy", notes) for s in request.systems]
        columns.append(best_in_bold(column, [system != "oracle" for system in request.systems]))
    rows = [
        (Entry(title(system)), *(column[number] for column in columns))
        for number, system in enumerate(request.systems)
    ]
    average = [_average(figures, benchmark) for benchmark in order]
    rows.append((Entry("mean of the paper's eight"), *average))
    general = [_AUC, _BOLD, *_about_seeds(request)]
    return TableValue(
        "Balanced accuracy (AUC) with various negatives, in percent (paper)",
        ("system", *map(_short, order)),
        tuple(rows),
        notes.texts(general),
        (0, len(rows) - 1),
    )


def _average(figures: Figures, benchmark: str) -> Entry:
    """Return the mean over the systems that the paper's averages are about, if all of them are there."""

    def mean(source: Figures | PaperFigures) -> float | None:
        found = [source.mean(s, benchmark, "balanced_accuracy") for s in SYSTEMS if s != "simpbl"]
        values = [value for value in found if value is not None]
        return 100 * sum(values) / len(values) if len(values) == len(found) else None

    return Entry(value=mean(figures), paper=mean(PaperFigures()))


def _figure(figures: Figures, system: str, benchmark: str, metric: str, notes: _Notes) -> Entry:
    values = [100 * value for value in figures.values(system, benchmark, metric)]
    paper = PaperFigures().mean(system, benchmark, metric)
    entry = Entry(paper=None if paper is None else 100 * paper)
    failed = figures.failed(system, benchmark)
    marks = tuple(dict.fromkeys(notes.number(_reason(failure)) for failure in failed))
    if values:
        mean = sum(values) / len(values)
        return replace(entry, value=mean, half=half_interval(values), notes=marks)
    return replace(entry, text="failed" if failed else "", notes=marks)


# -- rules ------------------------------------------------------------------------------------------


def _rules(figures: Figures, request: Request, benchmarks: Sequence[str]) -> TableValue:
    notes = _Notes()
    miners = [system for system in MINERS if system in request.systems]
    rows = [
        (
            Entry(shown),
            Entry(title(system)),
            *(_share(figures, system, benchmark, share, notes) for benchmark in benchmarks),
        )
        for share, shown in SHARES.items()
        for system in miners
    ]
    general = [
        "ε_ent: the share of the benchmark's rules that the mined rules entail. Random heads: the same "
        "for the same bodies with heads drawn at random. If those are entailed as often, ε_ent says "
        "little.",
        "ε_cont: the share that was mined as it is, up to renaming and the order of atoms.",
        "R⁻: the undesired sub-rules. Simple patterns and compositions have none (–).",
        "All mined rules count, whatever their confidence. The run with seed 0.",
    ]
    return TableValue(
        "Mined rules against those of the benchmarks, in percent (paper)",
        ("share", "system", *map(_short, benchmarks)),
        tuple(rows),
        notes.texts(general),
        tuple(range(0, len(rows), len(miners))) if miners else (),
    )


def _share(figures: Figures, system: str, benchmark: str, share: str, notes: _Notes) -> Entry:
    paper = PaperFigures().recovered(system, benchmark, share)
    entry = Entry(paper=None if paper is None else 100 * paper)
    ours = figures.recovered(system, benchmark, share)
    if ours is not None:
        return replace(entry, value=100 * ours)
    if (system, benchmark) in figures.rules:  # a share of nothing
        return replace(entry, text="–")
    failed = [*figures.failed(system, benchmark), *figures.failed(system, benchmark, "rules")]
    marks = tuple(dict.fromkeys(notes.number(_reason(failure)) for failure in failed))
    return replace(entry, text="failed" if failed else "", notes=marks)


# -- sizes ------------------------------------------------------------------------------------------


def _sizes(benchmarks: Sequence[str], manifests: Mapping[str, Mapping[str, Any]]) -> TableValue:
    notes = _Notes()
    return TableValue(
        "Sizes of the benchmarks (paper)",
        ("benchmark", "k1", "k2", "rules", "K", "P_train", "P_valid", "P_test", "difference"),
        tuple(_size(benchmark, manifests.get(benchmark), notes) for benchmark in benchmarks),
        notes.texts(["The last column: the largest difference from the paper's sets, in percent."]),
    )


def _size(benchmark: str, manifest: Mapping[str, Any] | None, notes: _Notes) -> tuple[Entry, ...]:
    entry = next(entry for entry in entries() if entry.name == benchmark)
    printed = next(size for size in paper_sizes() if f"{size.kg}-{size.pattern}" == entry.group.name)
    numbers: list[int | None] = [None] * 5
    far = Entry()
    if manifest is not None:
        positives = manifest["positives"]
        numbers = [len(manifest["rules"]), manifest["kg"]["triples"]]
        numbers += [positives[split] for split in ("train", "valid", "test")]
        most, why = difference(entry, manifest)
        far = Entry(value=100 * most, notes=(notes.number(why),) if why else ())
    paper = (None, printed.kg_triples, printed.train, printed.valid, printed.test)
    return (
        Entry(entry.group.name),
        Entry(value=printed.k1, digits=0),
        Entry(value=printed.k2, digits=0),
        *(Entry(value=o, paper=p, digits=0) for o, p in zip(numbers, paper, strict=True)),
        far,
    )


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

    def texts(self, general: Sequence[str]) -> tuple[str, ...]:
        """Return all notes, those about the whole table last."""
        return (*self._texts, *general)


def _reason(failure: Mapping[str, Any]) -> str:
    hint = f" ({failure['hint']})" if failure.get("hint") else ""
    return f"failed: {failure['reason']}{hint}"


def _about_seeds(request: Request) -> list[str]:
    alone = [title(system) for system in request.systems if system in ONE_SEED]
    if request.seeds < 2:
        return ["One run each, with seed 0."]
    said = f"Mean of {request.seeds} seeds. {_SEEDS}"
    return [f"{said} Nothing in {', '.join(alone)} is random: one run." if alone else said]


def _short(benchmark: str) -> str:
    return benchmark.removeprefix("LogInfer-")
