"""The page about rules and shortcuts."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.support.hostile_runs import hostile_runs

from loginfer.benchmark import load_benchmark
from loginfer.evaluation import evaluate
from loginfer.evaluation.rule_recovering import read_mined, rule_recovery
from loginfer.report.collection import collect
from loginfer.report.facts import ReportContext, ReportOptions, rule_label
from loginfer.report.pages import rules
from loginfer.report.paper import paper_recovery
from loginfer.report.site import Renderer, as_script_json
from loginfer.report.values import DataFile, Page, Rows


@pytest.fixture(scope="module")
def mined(small_runs: Path, tmp_path_factory) -> Path:
    """A folder with runs of a miner, with and without its weights."""
    folder = tmp_path_factory.mktemp("mined")
    every = {"min_support": 1, "min_confidence": 0.0}
    benchmark = load_benchmark(small_runs / "family")
    evaluate(benchmark, "exact", settings=every, negatives="pa", ranking=("given",), out=folder / "exact")
    evaluate(benchmark, "exact", settings=every, negatives="qg", ranking=("given",), out=folder / "bare")
    (folder / "bare" / "weights.safetensors").unlink()
    path = folder / "bare" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["files"]["weights.safetensors"]
    path.write_text(json.dumps(manifest))
    return folder


def made(context: ReportContext) -> tuple[Page, list[DataFile]]:
    *files, page = rules.pages(context)
    return page, files


def html(page: Page) -> str:
    return Renderer("a report", frozenset({"rules"})).page(page)


def expanded(data):
    words = data.get("words", {})
    return [
        {
            field: words[field][value] if field in words and value is not None else value
            for field, value in zip(data["fields"], row, strict=True)
        }
        for row in data["rows"]
    ]


# -- verdicts, rules, shortcuts -----------------------------------------------------------------


def test_verdicts_are_those_of_the_diagnoses(small_runs: Path) -> None:
    context = ReportContext(collect([small_runs]))
    page, _ = made(context)
    chart = page.content["verdicts"][0]
    found = Counter()
    for system, benchmark, verdict, _, count in chart.rows.rows:
        found[system, benchmark, verdict] = count
    wanted = Counter()
    for cell in context.collection.cells:
        for rule in cell.first.diagnosis()["rules"]:
            wanted[cell.system, cell.benchmark, rule["verdict"]] += 1
    assert found == wanted


def test_each_rule_has_its_support_recall_and_worst_shortcut(small_runs: Path) -> None:
    context = ReportContext(collect([small_runs]))
    page, files = made(context)
    assert [path for _, path in page.content["picker"].options] == [file.path for file in files]
    benchmark = load_benchmark(small_runs / "family")
    supports = {str(known.rule): known.support for known in benchmark.rules}
    rows = expanded(files[0].value["charts"]["recall-and-support"])
    assert len(rows) == 3 * len(benchmark.rules)
    for row in rows:
        cell = context.collection.cell(row["system"], context.collection.benchmark_names[0])
        rule = next(r for r in cell.first.diagnosis()["rules"] if r["rule"] == row["rule"])
        assert row["size"] == supports[row["rule"]]
        assert row["recall"] == (None if rule["recall"] is None else pytest.approx(rule["recall"], abs=1e-4))
        tested = [s["false_positive_rate"] for s in rule["shortcuts"] if s["tested"]]
        assert row["worst"] == (pytest.approx(max(tested), abs=1e-4) if tested else None)
        assert row["shown"] == (row["worst"] if tested else -0.08)


def test_every_shortcut_is_listed_also_those_without_witnesses(small_runs: Path) -> None:
    context = ReportContext(collect([small_runs]))
    _, files = made(context)
    for name, file in zip(context.collection.benchmark_names, files, strict=True):
        rows = expanded(file.value["charts"]["sub-rules"])
        found = Counter((r["system"], r["rule"], r["shortcut"], r["witnesses"], r["predicted"]) for r in rows)
        wanted = Counter(
            (cell.system, rule["rule"], s["shortcut"], s["witnesses"], s["predicted"])
            for cell in context.collection.of_benchmark(name)
            for rule in cell.first.diagnosis()["rules"]
            for s in rule["shortcuts"]
        )
        assert found == wanted
        for system in context.collection.systems:
            rates = [row["rate"] or 0 for row in rows if row["system"] == system]
            assert rates == sorted(rates, reverse=True)


def test_without_the_folder_conclusions_stand_for_the_support(small_runs: Path) -> None:
    page, files = made(ReportContext(collect([small_runs / "runs"])))
    rows = expanded(files[0].value["charts"]["recall-and-support"])
    assert all(row["size"] == row["conclusions"] for row in rows)
    assert "conclusions in test stand for the support" in files[0].value["texts"]["chosen"]
    assert page.content["rules"][0].columns["size"] == "support, or conclusions in test"


def test_the_page_says_what_untested_means(small_runs: Path) -> None:
    shown = html(made(ReportContext(collect([small_runs])))[0])
    assert "cannot tell the rule from its\nshortcut" in shown


def test_runs_without_a_diagnosis_have_no_page(small_runs: Path, tmp_path: Path) -> None:
    shutil.copytree(small_runs / "runs" / "oracle-pa-0", tmp_path / "run")
    (tmp_path / "run" / "diagnosis.json").write_text("null")
    assert list(rules.pages(ReportContext(collect([tmp_path])))) == []


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("(x,/film/film/genre,y), x != y -> (y,/a/b./c/of,x)", "genre(x,y) → of(y,x)"),
        ("(x,rdf:type,<http://a.org/b#C>) -> (x,p,y)", "(x,rdf:type,C) -> (x,p,y)"),
        ("(x,likes,y), (y,likes,z), x != z, y != z -> (x,knows,z)", "likes(x,y) ∧ likes(y,z) → knows(x,z)"),
        ("every (x,<hears of>,y)", "every (x,<hears of>,y)"),
    ],
)
def test_labels_have_last_parts_of_names_and_no_inequalities(text: str, short: str) -> None:
    assert rule_label(text) == short


def test_long_labels_are_cut() -> None:
    assert rule_label("(x,a,y), " * 100, 20) == "(x,a,y), (x,a,y), (…"


def test_packed_rows_hold_each_text_once() -> None:
    rows = Rows.of(("a", "b", "n"), [("x", "u", 1), ("y", None, 2), ("x", "u", 3)])
    packed = rows.packed("a", "b")
    assert packed["words"] == {"a": ["x", "y"], "b": ["u"]}
    assert expanded(packed) == expanded(rows.as_dict())


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    page, files = made(ReportContext(collect([hostile_runs(tmp_path)])))
    assert files
    shown = html(page)
    for file in files:
        shown += as_script_json(dict(file.value))
    for text in ("<script>alert", "</script><", "<img src=x", "<i>Hostile"):
        assert text not in shown.replace("</script>\n", "")


# -- mined rules --------------------------------------------------------------------------------


def test_shares_are_those_of_the_analysis(small_runs: Path, mined: Path) -> None:
    context = ReportContext(collect([small_runs / "family", mined]))
    page, _ = made(context)
    benchmark = load_benchmark(small_runs / "family")
    found = rule_recovery(benchmark.program, read_mined(mined / "exact", benchmark)[0], benchmark.graph)
    figures = found.figures
    row = page.content["table"].rows[0]
    assert len(page.content["table"].rows) == 1
    assert row[2:9] == (
        figures.mined,
        figures.eps_ent,
        figures.eps_ent_single_step,
        figures.eps_ent_random_heads,
        None,
        figures.eps_cont,
        None,
    )
    assert any("no weights" in note for note in page.content["notes"])
    assert "Rules that were found" in html(page)


def test_leaving_out_sub_rules_changes_nothing_else(small_runs: Path, mined: Path) -> None:
    benchmark = load_benchmark(small_runs / "family")
    rules_, graph = benchmark.program, benchmark.graph
    known = read_mined(mined / "exact", benchmark)[0]
    whole = rule_recovery(rules_, known, graph).as_dict()
    without = rule_recovery(rules_, known, graph, subrules=False).as_dict()
    assert without["subrules"] == 0
    assert without["subrules_entailed"] is None
    for name in ("eps_ent", "eps_cont", "eps_ent_single_step", "eps_ent_random_heads", "mined"):
        assert without[name] == whole[name]


def test_miners_are_not_looked_at_without_the_folder_or_if_nobody_wants_it(small_runs: Path, mined: Path) -> None:
    page, _ = made(ReportContext(collect([mined])))
    assert page.content["table"] is None
    assert sum("folder was not given" in note for note in page.content["notes"]) == 1
    page, _ = made(ReportContext(collect([small_runs / "family", mined]), ReportOptions(recovery=False)))
    assert page.content["table"] is None
    assert "were not compared" in html(page)


def test_an_unknown_system_that_kept_no_rules_is_left_out_with_a_note(small_runs: Path, tmp_path: Path) -> None:
    shutil.copytree(small_runs / "runs" / "transe-pa-0", tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["request"]["system"] = "mine"
    path.write_text(json.dumps(manifest))
    page, _ = made(ReportContext(collect([small_runs / "family", tmp_path])))
    assert page.content["table"] is None
    assert len(page.content["notes"]) == 1
    assert "mine" in page.content["notes"][0]


def test_the_paper_s_shares_stand_beside_ours() -> None:
    assert paper_recovery("anyburl", "LogInfer-FB-comp-pa", "eps_cont") == pytest.approx(0.34)
    assert paper_recovery("rulen", "LogInfer-FB-diam-qg", "eps_ent") == pytest.approx(0.735)
    assert paper_recovery("exact", "LogInfer-FB-comp-pa", "eps_ent") is None
    assert paper_recovery("anyburl", "LogInfer-WN-comp-pa", "eps_ent") is None
    assert paper_recovery("anyburl", "mine", "eps_ent") is None


# -- plots --------------------------------------------------------------------------------------


def test_all_plots_are_vega_lite(small_runs: Path, mined: Path) -> None:
    altair = pytest.importorskip("altair")
    page, files = made(ReportContext(collect([small_runs, mined])))
    charts = [*page.content["verdicts"], *page.content["rules"], page.content["mined"]]
    loaded = files[0].value["charts"]
    for chart in charts:
        rows = expanded(loaded.get(chart.name, chart.rows.as_dict()))
        assert rows
        assert set(chart.columns) <= set(rows[0])
        altair.Chart.from_dict({**chart.spec, "data": {"values": rows}})
    assert set(loaded) == {chart.name for chart in page.content["rules"]}


def test_verdicts_can_be_drawn(small_runs: Path) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    chart = made(ReportContext(collect([small_runs])))[0].content["verdicts"][0]
    spec = {**chart.spec, "width": 500, "data": {"values": expanded(chart.rows.as_dict())}}
    assert "not testable" in vl_convert.vegalite_to_svg(spec)
