"""The benchmarks' pages: what they say comes from the folders and runs, and is there without a folder."""

import json
import shutil
from dataclasses import replace

import altair
import numpy as np
import pytest
import vl_convert
from tests.support import near_miss_benchmarks as near_misses
from tests.support.hostile_runs import NAMES, RELATIONS, hostile_runs
from tests.support.made_up_benchmarks import family

from loginfer.benchmark import audit, build, explain_triple, load_benchmark
from loginfer.benchmark.auditing.audit import file_sums, save_audit
from loginfer.benchmark.learned_shortcut import best_shortcut, shortcut_results
from loginfer.report.collection import collect
from loginfer.report.facts import ReportContext, ReportOptions
from loginfer.report.pages import benchmarks
from loginfer.report.pages.benchmarks import make_card, rivals_chart
from loginfer.report.pages.examples import examples
from loginfer.report.site import Renderer
from loginfer.report.values import Page
from loginfer.report.verdicts import cell_verdicts, verdicts_in

NAME = "Family & co, qg"


@pytest.fixture(scope="module")
def context(small_runs):
    return ReportContext(collect([small_runs]))


@pytest.fixture(scope="module")
def without_folder(small_runs):
    return ReportContext(collect([small_runs / "runs"]))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return ReportContext(collect([hostile_runs(tmp_path_factory.mktemp("hostile"))]))


def made(context):
    return {page.path: page for page in benchmarks.pages(context)}


def html(context, path):
    return Renderer("A report", frozenset({"benchmarks"})).page(made(context)[path])


def test_there_is_a_card_for_each_benchmark_and_a_list(context):
    pages = made(context)
    assert all(isinstance(page, Page) for page in pages.values())
    assert set(pages) == {"benchmarks.html", *(map(context.benchmark_page, context.collection.benchmark_names))}
    assert len(context.collection.benchmark_names) == 2


def test_what_notes_name_is_marked_and_escaped(context):
    page = made(context)[context.benchmark_page(NAME)]
    card = replace(page.content["card"], notes=("only 1 of 2 rules of `<b>`",))
    shown = Renderer("A report", frozenset()).page(replace(page, content=page.content | {"card": card}))
    assert "only 1 of 2 rules of <code>&lt;b&gt;</code>" in shown


def test_the_list_has_what_the_folder_and_the_runs_say(context, small_runs):
    grid = made(context)["benchmarks.html"].content["benchmarks"]
    titles = [column.title for column in grid.columns]
    rows = {row[0][0]: dict(zip(titles, row, strict=True)) for row in grid.rows}
    row, benchmark = rows[NAME], load_benchmark(small_runs / "family")
    assert (row["graph"], row["patterns"], row["rules"]) == ("family.tsv", "composition", 3)
    assert [row[f"P_{s}"] for s in ("train", "valid", "test")] == list(benchmark.positives.sizes.values())
    assert row["N_test"] == len(benchmark.negatives["qg"].splits.test)
    results = shortcut_results(benchmark, "qg")
    assert row["best shortcut"] == best_shortcut(results).balanced_accuracy
    known = results[row["which shortcut"]]
    assert known.balanced_accuracy == row["best shortcut"]
    assert row["its 95 % interval"] == f"{100 * known.interval[0]:.1f} to {100 * known.interval[1]:.1f}"
    cells = [c for c in context.collection.of_benchmark(NAME) if c.name != "oracle"]
    means = {c.system: np.mean([r.metrics()["metrics"]["balanced_accuracy"] for r in c.runs]) for c in cells}
    assert row["best system"] == pytest.approx(max(means.values()))
    assert means[row["which system"]] == max(means.values())


def test_a_card_shows_rules_with_their_counts(context, small_runs):
    content = made(context)[context.benchmark_page(NAME)].content
    grid = content["rules"]
    rules = load_benchmark(small_runs / "family").rules
    assert [row[1] for row in grid.rows] == [str(known.rule) for known in rules]
    assert [row[3:] for row in grid.rows] == [(known.support, known.new, known.sampled) for known in rules]


@pytest.fixture
def saved(small_runs, tmp_path):
    """The same runs, with an audit saved in the benchmark's folder, and a mark in it by which it is known."""
    folder = tmp_path / "family"
    shutil.copytree(small_runs / "family", folder)
    save_audit(audit(folder), folder, file_sums(folder), ())
    kept = json.loads((folder / "audit.json").read_text())
    (folder / "audit.json").write_text(json.dumps({**kept, "mark": "saved"}))
    return folder, ReportContext(collect([small_runs / "runs", folder]))


def test_a_saved_audit_is_not_made_again_and_changes_nothing_else(context, saved):
    assert saved[1].audit(NAME) == {**context.audit(NAME), "mark": "saved"}
    assert html(saved[1], saved[1].benchmark_page(NAME)) == html(context, context.benchmark_page(NAME))


@pytest.mark.parametrize("change", ["content", "new file", "version", "no JSON", "a list"])
def test_a_saved_audit_that_is_not_of_these_files_and_this_version_is_not_used(saved, change):
    folder, context = saved
    kept = json.loads((folder / "audit.json").read_text())
    texts = {
        "content": ("README.md", "changed"),
        "new file": ("more.txt", ""),
        "version": ("audit.json", json.dumps({**kept, "version": "0"})),
        "no JSON": ("audit.json", "{"),
        "a list": ("audit.json", "[]"),
    }
    name, text = texts[change]
    (folder / name).write_text(text)
    assert "mark" not in context.audit(NAME)


def test_a_card_shows_the_audit_or_says_that_there_is_none(small_runs, context):
    shown = html(context, context.benchmark_page(NAME))
    audit = context.audit(NAME)
    assert audit["findings"]
    assert all(finding["check"] in shown for finding in audit["findings"])
    off = ReportContext(collect([small_runs]), ReportOptions(audits=False))
    shown = html(off, off.benchmark_page(NAME))
    assert "loginfer audit" in shown
    # Shortcuts are known all the same.
    assert make_card(off, NAME).shortcuts == make_card(context, NAME).shortcuts


def test_without_the_folder_a_card_shows_what_the_runs_know(context, without_folder):
    known, whole = make_card(without_folder, NAME), make_card(context, NAME)
    assert not known.folder
    assert known.sizes == {name: whole.sizes[name] for name in ("P_valid", "P_test", "N_valid", "N_test")}
    assert [row.rule for row in known.rules] == [row.rule for row in whole.rules]
    assert known.shortcuts == whole.shortcuts
    assert known.oracle == pytest.approx(whole.oracle)
    shown = html(without_folder, without_folder.benchmark_page(NAME))
    assert "its folder was not given" in shown
    assert "Examples from test" not in shown


def test_a_sentence_says_whether_a_shortcut_is_beaten(context):
    known = make_card(context, NAME)
    best = known.best_shortcut
    sentence = made(context)[context.benchmark_page(NAME)].content["verdict"]
    assert f"{best.name}, has a balanced accuracy of {100 * best.value:.1f} % ({best.interval_text})" in sentence
    cells = [v for v in cell_verdicts(context) if v.cell.benchmark == NAME]
    assert sentence.endswith(verdicts_in(cells).headline)


def diagnosed(small_runs, folder, baselines):
    """Return a report of the same runs, whose diagnoses have other figures of shortcuts, without the benchmark."""
    for run in (small_runs / "runs").iterdir():
        shutil.copytree(run, folder / run.name)
        diagnosis = json.loads((run / "diagnosis.json").read_bytes())
        (folder / run.name / "diagnosis.json").write_text(json.dumps({**diagnosis, "baselines": baselines}))
    return ReportContext(collect([folder]))


def test_the_learned_shortcut_is_the_best_one_and_says_what_it_rests_on(small_runs, tmp_path):
    rows = {
        "adjacent": {"balanced_accuracy": 0.7, "accuracy": 0.9, "interval": [0.65, 0.75]},
        "learned": {"balanced_accuracy": 0.6, "accuracy": 0.5, "interval": [0.55, 0.648], "features": {"detour": {}}},
        "detour": {"balanced_accuracy": 0.55, "accuracy": 0.5, "interval": [0.5, 0.6]},
    }
    context = diagnosed(small_runs, tmp_path, rows)
    known = make_card(context, NAME)
    assert [figure.name for figure in known.shortcuts] == ["learned", "adjacent", "detour"]
    assert (known.best_shortcut.value, known.best_shortcut.interval_text) == (0.6, "55.0 to 64.8")
    sentence = made(context)[context.benchmark_page(NAME)].content["verdict"]
    assert "The best shortcut, learned, has a balanced accuracy of 60.0 % (55.0 to 64.8). It rests most on detour." in (
        sentence
    )


def test_runs_of_earlier_versions_show_their_best_single_shortcut(small_runs, tmp_path):
    rows = {
        "relation-name": {"correlation": None, "accuracy": None},
        "other-relation": {"correlation": 0.5, "accuracy": 0.75},
        "adjacent": {"correlation": 0.5, "accuracy": 0.7},
    }
    context = diagnosed(small_runs, tmp_path, rows)
    known = make_card(context, NAME)
    assert [(figure.name, figure.value) for figure in known.shortcuts] == [("other-relation", 0.75), ("adjacent", 0.7)]
    assert known.best_shortcut.interval_text == ""
    assert (
        "The best shortcut, other-relation, has a balanced accuracy of 75.0 %. "
        in (made(context)[context.benchmark_page(NAME)].content["verdict"])
    )


def charts(context):
    known = [make_card(context, name) for name in context.collection.benchmark_names]
    for one in known:
        yield rivals_chart(one, context.collection.systems)


def test_plots_are_valid_and_can_be_drawn(context, hostile):
    drawn = 0
    for chart in [*charts(context), *charts(hostile)]:
        rows = [dict(zip(chart.rows.fields, row, strict=True)) for row in chart.rows.rows]
        spec = {**chart.spec, "data": {"values": rows}}
        altair.Chart.from_dict(spec)
        assert set(chart.columns) <= set(chart.rows.fields)
        drawn += len(vl_convert.vegalite_to_svg({**spec, "width": 400}))
    assert drawn


def test_the_plot_compares_systems_oracle_and_shortcuts(context):
    known = make_card(context, NAME)
    chart = rivals_chart(known, context.collection.systems)
    rows = [dict(zip(chart.rows.fields, row, strict=True)) for row in chart.rows.rows]
    kinds = [row["kind"] for row in rows]
    shown = [row["name"] for row in rows if row["kind"] == "shortcut"]
    assert set(shown) == {f"{figure.name} (shortcut)" for figure in known.shortcuts[: len(shown)]}
    assert 0 < len(shown) < len(known.shortcuts)
    assert kinds.count("oracle") == 1
    assert {row["name"] for row in rows if row["kind"] == "system"} == {c.system for c in known.systems}
    assert [row["accuracy"] for row in rows] == sorted((row["accuracy"] for row in rows), reverse=True)
    assert {row["best"] for row in rows} == {round(max(figure.value for figure in known.shortcuts), 5)}


def test_figures_that_are_not_defined_leave_gaps(small_runs, tmp_path):
    # Runs without diagnosis and with an undefined metric, as score files may give.
    for run in (small_runs / "runs").iterdir():
        shutil.copytree(run, tmp_path / run.name)
        metrics = json.loads((run / "metrics.json").read_bytes())
        metrics["metrics"] = dict.fromkeys(metrics["metrics"])
        (tmp_path / run.name / "metrics.json").write_text(json.dumps(metrics))
        (tmp_path / run.name / "diagnosis.json").write_text("null")
    context = ReportContext(collect([tmp_path]))
    known = make_card(context, NAME)
    assert (known.best_system, known.best_shortcut, known.rules) == (None, None, ())
    for path in made(context):
        assert "</html>" in html(context, path)


# -- examples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pa", "qg"])
def test_examples_are_test_triples_with_their_story(method):
    benchmark = family()
    found = examples(benchmark, method)
    assert found == examples(benchmark, method)
    positives = len(benchmark.positives.test)
    for example in found:
        part = benchmark.positives.test if example.positive else benchmark.negatives[method].splits.test
        row = part[example.index - (0 if example.positive else positives)]
        assert example.triple == benchmark.graph.names(row)[0]
        story = explain_triple(benchmark, [int(v) for v in row])
        if example.positive:
            assert f"by rule {story.derivations[0].rule}" in example.words
        elif story.reason:
            assert story.reason in example.words
        assert example.drawing.startswith("<svg")


def test_examples_of_near_misses_say_what_they_lack():
    benchmark = build(near_misses.recipe_of(), near_misses.small_graph())
    words = [example.words for example in examples(benchmark, "nm") if not example.positive]
    assert not any("not known" in text for text in words)
    assert any(text.startswith("A near miss of rule ") and "; would follow if " in text for text in words)


def test_examples_are_spread_over_rules_and_kinds(hostile):
    name = hostile.collection.benchmark_names[0]
    benchmark = hostile.benchmark(name)
    found = examples(benchmark, "qg")
    assert [example.positive for example in found].count(True) <= 4
    assert len({example.index for example in found}) == len(found)
    provenance = benchmark.provenance
    rules = np.unique(provenance.rule[provenance.split[provenance.conclusion] == 2])
    told = {example.words.split(":")[0] for example in found if example.positive}
    assert len(told) == min(4, len(rules))


def test_a_benchmark_without_rules_or_negatives_has_examples_too():
    known = family()
    from dataclasses import replace

    bare = replace(known, rules=(), provenance=None, negatives={})
    found = examples(bare, None)
    assert [example.index for example in found] == list(range(len(bare.positives.test)))
    assert "not known" in found[0].words


# -- names --------------------------------------------------------------------------------------


def test_names_stay_text_on_every_page(hostile):
    renderer = Renderer("<i>report</i>", frozenset({"benchmarks"}))
    for page in benchmarks.pages(hostile):
        shown = renderer.page(page)
        for wrong in (*NAMES, *RELATIONS, "<i>"):
            if "<" in wrong:
                assert wrong not in shown
        assert "&lt;i&gt;Hostile" in shown
        assert "alert(1)" not in shown or "&lt;script&gt;alert(1)" in shown or "\\u003cscript" in shown


def test_pages_are_small_and_the_same_every_time(context):
    first = {path: html(context, path) for path in made(context)}
    assert first == {path: html(context, path) for path in made(context)}
    assert all(len(text) < 200_000 for text in first.values())
