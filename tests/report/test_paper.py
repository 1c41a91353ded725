"""The paper's figures as data."""

from __future__ import annotations

import pytest

from loginfer.benchmark.construction.suite import entries
from loginfer.report.paper import METRICS, SYSTEMS, benchmark_parts, paper_figures, paper_sizes, paper_value


def test_every_benchmark_of_the_figures_is_in_the_suite() -> None:
    suite = {benchmark_parts(entry.name) for entry in entries()}
    named = {(f.kg, f.pattern, f.negatives) for f in paper_figures() if f.table != "result-rule"}
    assert named <= suite


def test_figures_are_looked_up_by_our_names_as_fractions() -> None:
    assert paper_value("transe", "LogInfer-FB-sym-pa", "balanced_accuracy") == pytest.approx(0.470)
    assert paper_value("rulen", "LogInfer-FB-inter-rb", "balanced_accuracy") == pytest.approx(0.847)
    assert paper_value("r-gcn", "LogInfer-LUBM-no-type-qg", "f1") is not None


@pytest.mark.parametrize(
    ("system", "benchmark", "metric"),
    [
        ("simpbl", "LogInfer-FB-sym-pa", "balanced_accuracy"),  # it has no confidences, so the paper no AUC
        ("oracle", "LogInfer-FB-sym-pa", "f1"),
        ("transe", "LogInfer-FB-sym-pa", "roc_auc"),
        ("transe", "LogInfer-FB-diam-rb", "f1"),
        ("transe", "FB-sym-pa", "f1"),
        ("transe", "my benchmark", "f1"),
    ],
)
def test_a_cell_that_the_paper_does_not_have_has_no_value(system: str, benchmark: str, metric: str) -> None:
    assert paper_value(system, benchmark, metric) is None


def test_the_main_tables_are_complete() -> None:
    main = [f for f in paper_figures() if f.table in ("result-fb-wn", "result-lubm")]
    benchmarks = {(f.kg, f.pattern) for f in main}
    assert len(benchmarks) == 15
    for system in SYSTEMS.values():
        wanted = {"F1", "Precision", "Recall"} if system == "SimpBL" else set(METRICS.values())
        for kg, pattern in benchmarks:
            there = {f.metric for f in main if (f.kg, f.pattern, f.system) == (kg, pattern, system)}
            assert there == wanted


def test_a_cell_that_two_tables_print_has_one_value() -> None:
    seen: dict[tuple[str, ...], float] = {}
    for f in paper_figures():
        if f.table != "result-rule":
            key = (f.kg, f.pattern, f.negatives, f.system, f.metric)
            assert seen.setdefault(key, f.value) == f.value


def test_sizes_agree_with_the_suite() -> None:
    groups = {entry.group.name: entry.group for entry in entries()}
    for sizes in paper_sizes():
        paper = groups[f"{sizes.kg}-{sizes.pattern}"].paper
        assert dict(paper) == {"kg": sizes.kg_triples, "train": sizes.train, "valid": sizes.valid, "test": sizes.test}
    assert len(paper_sizes()) == len(groups)


def rounded(value: float) -> tuple[float, float]:
    """Between what a printed percentage lies, as shares."""
    return (value - 0.05) / 100, min(value + 0.05, 100) / 100


def test_the_papers_auc_is_mostly_the_balanced_accuracy_of_its_precision_and_recall() -> None:
    """With as many negatives as positives, of which a share recall · (1 / precision − 1) is taken for true."""
    balanced, half_a_point, average_precision = set(), set(), set()
    cells: dict[tuple[str, ...], dict[str, float]] = {}
    for f in paper_figures():
        if f.table in ("result-fb-wn", "result-lubm"):
            cells.setdefault((f.kg, f.pattern, f.system), {})[f.metric] = f.value
    with_auc = {cell: figures for cell, figures in cells.items() if "AUC" in figures}
    for cell, figures in with_auc.items():
        (low, high), *_ = rounds = [rounded(figures[name]) for name in ("AUC", "Precision", "Recall")]
        corners = [(p, r) for p in rounds[1] for r in rounds[2]]
        accuracies = [(1 + r * (2 - 1 / p)) / 2 for p, r in corners]
        precisions = [p * r + (1 - r) / 2 for p, r in corners]
        if low <= max(accuracies) and min(accuracies) <= high:
            balanced.add(cell)
        if low - 0.0045 <= max(accuracies) and min(accuracies) <= high + 0.0045:
            half_a_point.add(cell)
        if low <= max(precisions) and min(precisions) <= high:
            average_precision.add(cell)
    assert (len(with_auc), len(balanced), len(half_a_point)) == (120, 90, 102)
    symmetry = {cell for cell in with_auc if cell[:2] == ("FB", "sym")}
    assert not symmetry & half_a_point
    assert symmetry - average_precision == {("FB", "sym", "RotatE")}
    assert len(symmetry) == 8
