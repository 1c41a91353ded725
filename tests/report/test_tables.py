"""Tables for papers: from runs, as Markdown, LaTeX and CSV."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from loginfer.errors import UnknownNameError
from loginfer.evaluation.seeds import half_interval
from loginfer.report.collection import Cell, Collection, collect
from loginfer.report.tables import (
    TableEntry,
    TableValue,
    best_in_bold,
    printed_title,
    result_table,
    to_csv,
    to_latex,
    to_markdown,
)

SMALL = TableValue(
    "Shares, in %",
    ("system", "ε_ent"),
    (
        (TableEntry("a|b_c"), TableEntry(value=97.54, half=0.31, paper=96.0, bold=True)),
        (TableEntry("<b>$x$ & y"), TableEntry("failed", paper=50.0, notes=(1,))),
        (TableEntry("=SUM(A1)"), TableEntry()),
    ),
    ("no memory [really]",),
    (0, 2),
)


def test_markdown_shows_figures_with_intervals_and_the_papers_in_brackets():
    assert to_markdown(SMALL) == (
        "**Shares, in %**\n\n"
        "| system | ε\\_ent |\n"
        "|---|--:|\n"
        "| a\\|b\\_c | **97.5 ± 0.3** (96.0) |\n"
        "| \\<b\\>\\$x\\$ &amp; y | failed¹ (50.0) |\n"
        "| =SUM(A1) |  |\n\n"
        "1. no memory \\[really\\]\n"
    )


def test_latex_is_booktabs_with_everything_escaped():
    assert to_latex(SMALL).splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Shares, in \%}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"system & $\varepsilon$\_ent \\",
        r"\midrule",
        r"a\textbar{}b\_c & \textbf{97.5 $\pm$ 0.3} (96.0) \\",
        r"\textless{}b\textgreater{}\$x\$ \& y & failed\textsuperscript{1} (50.0) \\",
        r"\midrule",
        r"=SUM(A1) &  \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\footnotesize \textsuperscript{1} no memory [really]",
        r"\end{table}",
    ]


def test_a_long_table_goes_over_several_pages_in_latex():
    rows = tuple((TableEntry(f"row {number}"), TableEntry(value=number)) for number in range(60))
    text = to_latex(TableValue("Long", ("name", "number"), rows))
    assert text.startswith(r"\begin{longtable}{lr}")
    assert text.count(r"\toprule") == 2
    assert r"row 59 & 59.0 \\" in text


def test_csv_has_numbers_in_columns_of_their_own_and_no_formulas():
    header, *rows = csv.reader(io.StringIO(to_csv(SMALL)))
    assert header == ["system", "ε_ent", "ε_ent ±", "ε_ent paper"]
    assert rows == [["a|b_c", "97.54", "0.31", "96"], ["<b>$x$ & y", "failed", "", "50"], ["'=SUM(A1)", "", "", ""]]


def test_large_numbers_keep_their_digits():
    table = TableValue("Sizes", ("n",), ((TableEntry(value=12345678, paper=1e7, digits=0),),))
    assert "12,345,678 (10,000,000)" in to_markdown(table)
    assert to_csv(table).splitlines()[1] == "12345678,10000000"


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_whatever_a_name_is_it_stays_one_cell(name):
    table = TableValue(name, ("a", "b"), ((TableEntry(name), TableEntry("next")),), (name,))
    lines = to_markdown(table).splitlines()
    (row,) = [line for line in lines if line.endswith("| next |")]
    unescaped = row.replace("\\\\", "").replace("\\|", "")
    assert unescaped.count("|") == 3
    (written,) = [line for line in to_latex(table).splitlines() if line.endswith(r"& next \\")]
    assert written.replace(r"\&", "").count("&") == 1
    assert next(csv.DictReader(io.StringIO(to_csv(table))))["b"] == "next"


def test_a_row_of_another_length_is_a_mistake():
    with pytest.raises(ValueError, match="a row of 1"):
        TableValue("x", ("a", "b"), ((TableEntry(),),))


def test_the_best_as_shown_are_bold_and_one_alone_is_not():
    made = best_in_bold(
        [TableEntry(value=99.96), TableEntry(value=100.0), TableEntry(value=99.9), TableEntry("failed")]
    )
    assert [entry.bold for entry in made] == [True, True, False, False]
    assert not best_in_bold([TableEntry(value=1.0), TableEntry()])[0].bold
    made = best_in_bold([TableEntry(value=1.0), TableEntry(value=2.0), TableEntry(value=3.0)], [True, True, False])
    assert [entry.bold for entry in made] == [False, True, False]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_half_the_interval_is_students(values):
    expected = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    assert half_interval(values) == pytest.approx(expected, abs=1e-9)
    assert half_interval(values[:1]) is None


def test_metrics_have_names_in_print():
    names = {
        "c_mrr": "C-MRR",
        "r_hits@10": "R-Hits@10",
        "balanced_accuracy": "Balanced accuracy",
        "roc_auc": "ROC AUC",
        "f1": "F1",
        "mrr_subject": "Mrr subject",
    }
    assert {name: printed_title(name) for name in names} == names


# -- tables of runs ---------------------------------------------------------------------------------


def test_a_table_of_runs_has_benchmarks_against_systems(small_runs):
    found = collect([small_runs])
    table = result_table(found, "balanced_accuracy")
    assert table.header == ("benchmark", "SimpBL", "TransE", "oracle")
    assert [row[0].text for row in table.rows] == list(found.benchmark_names)
    for row in table.rows:
        transe = found.cell("transe", row[0].text)
        values = [100 * value for value in transe.values("balanced_accuracy")]
        assert row[2].value == pytest.approx(sum(values) / 2)
        assert row[2].half == pytest.approx(half_interval(values))
        assert row[1].half is None
        assert not row[3].bold
        assert all(entry.paper is None for entry in row)
    assert any("Student" in note for note in table.notes)


def test_a_table_of_ranks_needs_its_protocol_and_is_not_in_percent(small_runs):
    found = collect([small_runs])
    mrr = result_table(found, "c_mrr", "filtered")
    assert mrr.title == "C-MRR, ranking filtered, in percent"
    ranks = result_table(found, "c_mr", "unfiltered")
    assert ranks.title == "C-MR, ranking unfiltered"
    cell = found.cell("oracle", ranks.rows[0][0].text)
    assert ranks.rows[0][3].value == pytest.approx(cell.mean("c_mr", "unfiltered"))
    assert [entry.value for row in ranks.rows for entry in row if entry.bold] == [
        min(entry.value for entry in row[1:-1]) for row in ranks.rows
    ]


def test_unknown_metrics_and_protocols_come_with_the_nearest(small_runs):
    found = collect([small_runs])
    with pytest.raises(UnknownNameError) as caught:
        result_table(found, "balanced_acuracy")
    assert "balanced_accuracy" in caught.value.hint
    with pytest.raises(UnknownNameError) as caught:
        result_table(found, "c_mrr", "filterd")
    assert "filtered" in caught.value.hint
    with pytest.raises(UnknownNameError):
        result_table(found, "c_mrr")
    with pytest.raises(UnknownNameError):
        result_table(found, "ties", "filtered")


class FakeRun:
    """A run of the suite, with two figures."""

    def __init__(self, system, benchmark, value, seed=0):
        self.system, self.benchmark, self.seed, self.method = system, benchmark, seed, "pa"
        self._value = value

    def metrics(self):
        return {
            "metrics": {"balanced_accuracy": self._value},
            "ranking": {"filtered": {"c_mrr": 0.5}, "given": {"c_mrr": None}},
        }


def test_the_papers_figures_stand_in_brackets_where_it_has_some():
    name = "LogInfer-WN-sym-pa"
    cells = (
        Cell("transe", name, (FakeRun("transe", name, 0.9), FakeRun("transe", name, 1.0, 1))),
        Cell("exact", name, (FakeRun("exact", name, 0.8),)),
    )
    table = result_table(Collection(cells), "balanced_accuracy")
    assert "| 12" not in to_markdown(table)
    assert (table.rows[0][1].value, table.rows[0][1].paper) == (pytest.approx(95.0), pytest.approx(98.8))
    assert table.rows[0][2].paper is None
    assert any("computes on decisions" in note for note in table.notes)
    ranking = result_table(Collection(cells), "c_mrr", "filtered")
    assert ranking.rows[0][1].paper == pytest.approx(31.3)
    given_table = result_table(Collection(cells), "c_mrr", "given")
    assert given_table.rows[0][1] == TableEntry("–")
