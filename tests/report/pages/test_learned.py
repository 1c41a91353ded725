"""The page about what systems really learn."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.support.chart_checks import check_chart, parts_of, rows_of
from tests.support.hostile_runs import hostile_benchmark
from tests.support.made_up_benchmarks import family

from loginfer.benchmark import load_benchmark, write_benchmark
from loginfer.benchmark.benchmark import Origins
from loginfer.benchmark.learned_shortcut import best_shortcut, shortcut_results
from loginfer.benchmark.negatives import SOURCES
from loginfer.evaluation import evaluate
from loginfer.logic.patterns import SHORT_NAMES
from loginfer.logic.subrules import EDITS
from loginfer.report.collection import Collection, collect
from loginfer.report.facts import ReportContext, ShortcutFigure, grouped, method_order
from loginfer.report.pages.learned import (
    CONCLUSIONS,
    EDIT_NAMES,
    MARGIN,
    Standing,
    edit_rows,
    hardest,
    outcome,
    pages,
    rule_rows,
    standings_of,
)
from loginfer.report.paper import ANSWERS, expressiveness, theory
from loginfer.report.site import write_site
from loginfer.report.statistics import decisions_of

KINDS = {"pa": "pa", "nm": "nm", "nmm": "nm"}


def with_edits(benchmark):
    """Return the benchmark with near misses as the origins of its negatives."""
    (method,) = benchmark.negatives
    made = benchmark.negatives[method]
    origins = {}
    for split, known in made.origins.items():
        nothing = np.zeros(len(known), dtype=np.int8)
        origins[split] = Origins(
            source=nothing + np.int8(SOURCES.index("near-miss")),
            position=nothing,
            rule=known.rule,
            kept=nothing.astype(np.int32),
            edit=(1 + np.arange(len(known)) % 2).astype(np.int8),
            part=nothing.astype(np.int32),
            predicate=np.where(np.arange(len(known)) % 2, -1, 0).astype(np.int32),
            twin=known.twin,
        )
    return replace(benchmark, negatives={method: replace(made, origins=origins)})


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Benchmarks of the suite's names with three kinds of negatives, and runs of four systems on them."""
    folder = tmp_path_factory.mktemp("learned")
    for kind, method in KINDS.items():
        made = replace(family(methods=(method,)), name=f"LogInfer-WN-hier-{kind}")
        made = with_edits(made) if method == "nm" else made
        write_benchmark(made, folder / "suite" / made.name)
        benchmark = load_benchmark(folder / "suite" / made.name)
        for system, settings in (("simpbl", {}), ("transe", {"epochs": 1}), ("exact", {}), ("oracle", {})):
            evaluate(benchmark, system, settings=settings, out=folder / "runs" / f"{system}-{kind}")
    return folder


def learned(folder):
    return parts_of(pages(ReportContext(collect([folder]))))


# -- when there is a page ---------------------------------------------------------------------------


def test_one_kind_of_negatives_gives_no_page_unless_they_are_near_misses(runs):
    found = collect([runs])
    alone = {
        kind: Collection(tuple(cell for cell in found.cells if cell.first.benchmark.endswith(f"-{kind}")))
        for kind in KINDS
    }
    assert list(pages(ReportContext(alone["pa"]))) == []
    for kind in ("nm", "nmm"):
        page, _ = parts_of(pages(ReportContext(alone[kind])))
        assert page.path == "learned.html"


def test_matched_near_misses_stand_beside_the_others(runs):
    groups = grouped(collect([runs]))
    assert {group: list(methods) for group, methods in groups.items()} == {"WN-hier": ["pa", "nm", "nmm"]}
    assert sorted(["x", "nmm", "nm", "qg", "rc"], key=method_order) == ["rc", "qg", "nm", "nmm", "x"]
    assert hardest(["rc", "pa", "nmm", "nm"]) == "nm"
    assert hardest(["pa", "qg"]) == "qg"
    assert hardest(["rb"]) is None


# -- systems beside shortcuts -----------------------------------------------------------------------


def test_systems_stand_beside_the_best_shortcut_of_each_benchmark(runs):
    page, _ = learned(runs)
    rows = rows_of(page.content["slopes"])
    collection = collect([runs])
    for kind, method in KINDS.items():
        benchmark = load_benchmark(runs / "suite" / f"LogInfer-WN-hier-{kind}")
        reached = best_shortcut(shortcut_results(benchmark, method))
        (best,) = [row for row in rows if row["kind"] == "shortcut" and row["method"] == kind]
        assert best["value"] == pytest.approx(reached.balanced_accuracy, abs=1e-5)
        assert best["interval"] == f"{100 * reached.interval[0]:.1f} to {100 * reached.interval[1]:.1f}"
        for row in rows:
            if row["kind"] == "system" and row["method"] == kind:
                cell = collection.cell(row["name"], f"LogInfer-WN-hier-{kind}")
                assert row["value"] == pytest.approx(cell.mean("balanced_accuracy"), abs=1e-5)
                assert row["over"] == pytest.approx(row["value"] - best["value"], abs=2e-5)
    assert len([row for row in rows if row["kind"] == "system"]) == 12
    assert "best shortcut" not in page.content["slopes"].spec["layer"][2]["encoding"]["color"]["scale"]["domain"]
    check_chart(page.content["slopes"])


def test_the_margins_begin_with_the_hardest_negatives(runs):
    page, _ = learned(runs)
    chart = page.content["margins"]
    assert [value for value, _ in chart.choices[0].options] == ["nm", "pa", "nmm"]
    check_chart(chart)


def test_without_folders_the_runs_say_what_shortcuts_reach(runs):
    found = collect([runs / "runs"])
    assert found.benchmarks == {}
    cells = standings_of(ReportContext(found), grouped(found))
    told = cells[0].cell.first.diagnosis()["baselines"]
    assert cells[0].best == max(known["balanced_accuracy"] for known in told.values())
    page, data = parts_of(pages(ReportContext(found)))
    assert page.content["edits"] is None
    assert all("give its folder" in value["texts"]["chosen"] for value in data.values())


def test_twin_accuracy_stands_beside_balanced_accuracy_where_there_are_twins(runs, tmp_path):
    page, _ = learned(runs)
    assert all("twins" not in page.content[chart].columns for chart in ("slopes", "margins"))
    shutil.copytree(runs, tmp_path / "runs")
    path = tmp_path / "runs" / "runs" / "exact-nm" / "metrics.json"
    metrics = json.loads(path.read_bytes())
    path.write_text(json.dumps({**metrics, "metrics": {**metrics["metrics"], "twin_accuracy": 0.75}}))
    page, _ = learned(tmp_path / "runs")
    for chart in ("slopes", "margins"):
        assert page.content[chart].columns["twins"] == "twin accuracy"
        check_chart(page.content[chart])
        told = {
            (row.get("name", row.get("system")), row["method"]): row["twins"] for row in rows_of(page.content[chart])
        }
        assert told["exact", "nm"] == 0.75
        assert told["exact", "pa"] is None


def test_who_is_clearly_above_the_best_shortcut_has_shown_more_than_that(runs):
    learner = next(cell for cell in collect([runs]).cells if cell.name == "transe")
    made = [
        Standing("WN-hier", "nm", learner, value, best and ShortcutFigure("learned", best))
        for value, best in ((0.7, 0.6), (0.69, 0.6), (1.0, 0.95), (0.9, None))
    ]
    assert [s.learned for s in made] == ["learned", "not shown", "cannot tell", "cannot tell"]
    assert MARGIN == 0.1


# -- theory -----------------------------------------------------------------------------------------


def test_the_theory_is_complete_with_a_reason_and_a_source_for_each_cell():
    systems = ("transe", "rotate", "complex", "distmult", "boxe", "r-gcn", "anyburl", "rulen", "exact", "contrast")
    assert set(theory()) == {(system, pattern) for system in systems for pattern in SHORT_NAMES}
    for known in theory().values():
        assert known.can in ANSWERS
        assert known.why.endswith(".")
        assert len(known.source) > 10
    for system, pattern, can in (
        ("transe", "sym", "no"), ("distmult", "inver", "no"), ("rotate", "hier", "no"),
        ("boxe", "comp", "no"), ("boxe", "inter", "yes"), ("rotate", "comp", "yes"),
        ("rotate", "inter", "yes"), ("anyburl", "trian", "no"), ("boxe", "diam", "unknown"),
    ):  # fmt: skip
        assert expressiveness(system, pattern).can == can
    assert expressiveness("oracle", "sym") is None


def test_theory_and_figures_agree_or_not():
    assert outcome("yes", "learned")[0] == outcome("no", "not shown")[0] == "agree"
    assert outcome("no", "learned")[0] == "disagree"
    assert outcome("yes", "not shown")[0] == "missed"
    for can in ANSWERS:
        assert outcome(can, "cannot tell")[0] == "open"
    assert outcome("unknown", "learned")[0] == "open"


def test_the_table_of_theory_has_the_systems_that_it_knows(runs):
    page, _ = learned(runs)
    found = page.content["theory"]
    assert found["columns"] == [("WN-hier", "nm")]
    assert [system for system, _ in found["rows"]] == ["transe", "exact"]
    (cell,) = found["rows"][0][1]
    assert cell["can"] == "no"
    assert {row[:3] for row in found["reasons"]} == {("transe", "hierarchy", "no"), ("exact", "hierarchy", "yes")}


def test_the_name_of_a_benchmark_outside_the_suite_tells_no_pattern(tmp_path):
    made = replace(family(methods=("nm",)), name="my-hier")
    evaluate(made, "exact", out=tmp_path / "runs")
    page, _ = learned(tmp_path)
    assert page.content["theory"] is None
    # One benchmark needs no heat map, and one kind of negatives no falling lines.
    assert (page.content["margins"], page.content["slopes"]) == (None, None)


# -- rule by rule -----------------------------------------------------------------------------------


def test_rules_have_the_shares_of_conclusions_and_negatives_that_are_accepted(runs):
    cells = collect([runs]).of_benchmark("LogInfer-WN-hier-nm")
    rows = rule_rows(cells)
    told = dict(zip(rows["fields"], zip(*rows["rows"], strict=True), strict=True))
    systems = [rows["words"]["system"][place] for place in told["system"]]
    texts = [rows["words"]["rule"][place] for place in told["rule"]]
    assert systems
    for number, (system, text) in enumerate(zip(systems, texts, strict=True)):
        cell = next(cell for cell in cells if cell.system == system)
        (known,) = [rule for rule in cell.metrics[0]["breakdown"]["rules"] if rule["rule"] == text]
        assert told["recall"][number] == pytest.approx(known["recall"], abs=1e-4)
        assert told["accepted"][number] == pytest.approx(known["fp"] / (known["fp"] + known["tn"]), abs=1e-4)


def test_negatives_are_counted_by_the_edit_that_made_them(runs):
    context = ReportContext(collect([runs]))
    name = "LogInfer-WN-hier-nm"
    cells = context.collection.of_benchmark(name)
    data = edit_rows(context, name, cells)
    edits = [EDIT_NAMES[EDITS[e]] for e in context.benchmark(name).negatives["nm"].origins["test"].edit]
    found = {(data["words"]["system"][s], data["words"]["kind"][k]): (n, share) for s, k, n, share, _ in data["rows"]}
    for cell in cells:
        said = decisions_of(cell.first)
        assert found[cell.system, CONCLUSIONS] == (
            len(said.predicted_positive),
            round(said.predicted_positive.mean(), 4),
        )
        for kind in set(edits):
            mine = [accepted for accepted, edit in zip(said.predicted_negative, edits, strict=True) if edit == kind]
            assert found[cell.system, kind] == (len(mine), round(np.mean(mine), 4))
    assert len(found) == len(cells) * (1 + len(set(edits)))


def test_the_plots_of_rules_can_be_drawn(runs):
    page, data = learned(runs)
    assert [name for name, _ in page.content["picker"].options] == ["WN-hier-nm", "WN-hier-nmm"]
    for value in data.values():
        for chart in (page.content["rules"], page.content["edits"]):
            told = value["charts"][chart.name]
            words = {name: told["fields"].index(name) for name in told["words"]}
            rows = [list(row) for row in told["rows"]]
            for row in rows:
                for name, place in words.items():
                    row[place] = told["words"][name][row[place]]
            check_chart(chart, {"fields": told["fields"], "rows": rows})


# -- the page as a file -----------------------------------------------------------------------------


def test_the_page_is_in_the_menu_and_says_what_it_shows(runs, tmp_path):
    write_site(ReportContext(collect([runs])), tmp_path / "site", makers=[pages])
    text = (tmp_path / "site" / "learned.html").read_text()
    assert "What do systems really learn?" in text
    assert '<td class="' in text
    assert "learned.html" in text
    assert '<b>Near misses</b> (<abbr tabindex="0" title="near misses">nm</abbr>)' in text


def test_names_cannot_break_out_of_the_page(tmp_path):
    benchmark = hostile_benchmark(tmp_path / "hostile" / "bench")
    for method in benchmark.negatives:
        evaluate(benchmark, "simpbl", negatives=method, out=tmp_path / "hostile" / method)
    write_site(ReportContext(collect([tmp_path / "hostile"])), tmp_path / "site", makers=[pages])
    text = (tmp_path / "site" / "learned.html").read_text()
    assert "<i>Hostile" not in text
    assert "&lt;i&gt;Hostile&lt;/i&gt; &amp; co" in text
    for file in (tmp_path / "site" / "data").rglob("*.js"):
        assert "</script" not in file.read_text()
