"""The table `evidence`: near misses, shortcuts beside systems, and which conclusions survive."""

import csv
import json

import pytest
from tests.support.small_reproduction import InProcess, tiny_suite

from loginfer.benchmark import load_benchmark
from loginfer.benchmark.learned_shortcut import shortcut_results
from loginfer.errors import InputError
from loginfer.reproduction import Folder, plan, run, write_report
from loginfer.reproduction.claims.evidence import COMPARED, QUESTIONS, answers, mean_fall
from loginfer.reproduction.claims.paper import EIGHT
from loginfer.reproduction.figures import Figures, groups_of
from loginfer.reproduction.paper_tables import tables
from loginfer.reproduction.planning import benchmarks_of, build_seconds, table_names

pytestmark = pytest.mark.usefixtures("all_rounds")

GROUPS = tuple(
    f"{kg}-{pattern}"
    for kg, patterns in {
        "FB": ("sym", "inver", "hier", "inter", "comp", "trian", "diam"),
        "WN": ("sym", "inver", "hier", "comp", "trian", "diam"),
    }.items()
    for pattern in patterns
)


def test_the_table_is_about_each_graph_and_pattern_with_all_kinds_of_negatives():
    names = benchmarks_of("evidence")
    assert len(names) == 13 * 3 + 5 - 1
    assert groups_of(names) == GROUPS
    for group in GROUPS:
        there = [name.rsplit("-", 1)[1] for name in names if name.startswith(f"LogInfer-{group}-")]
        branching = group.split("-")[1] in ("inter", "trian", "diam")
        matched = [] if group == "WN-sym" else ["nmm"]  # its conclusions have no twins
        assert there == ["pa", *(["qg"] if branching else []), "nm", *matched]


def test_the_table_is_made_only_if_it_is_asked_for_and_then_with_sound_benchmarks():
    assert "evidence" not in table_names()
    assert table_names(["Evidence"]) == ("evidence",)
    assert plan(tables=["evidence"]).request.protocol == "sound"
    assert plan(tables=["lubm"]).request.protocol == "paper"
    made = plan(tables=["lubm", "evidence"], protocol="sound")
    assert made.request.tables == ("lubm", "evidence")
    for names, protocol in ((["lubm", "evidence"], None), (["evidence"], "paper")):
        with pytest.raises(InputError, match="sound"):
            plan(tables=names, protocol=protocol)


def test_benchmarks_are_chosen_by_name_and_near_misses_take_longer_to_build():
    made = plan(tables=["evidence"], only=["WN-hier-*"], systems=["oracle"], seeds=2)
    assert made.request.benchmarks == tuple(f"LogInfer-WN-hier-{m}" for m in ("pa", "nm", "nmm"))
    assert build_seconds("wn18rr", "nm") > build_seconds("wn18rr", "pa") == build_seconds("wn18rr")
    cells = sum(cell.seconds for cell in made.cells)
    assert made.seconds - cells == pytest.approx(2 * build_seconds("wn18rr", "nm") + build_seconds("wn18rr"))
    # The paper's tables know nothing of near misses.
    with pytest.raises(InputError, match="about none of these benchmarks"):
        plan(tables=["fb-wn"], only=["WN-hier-nm"])


# -- a small one, from beginning to end -------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction") / "out"
    made = plan(tables=["evidence"], systems=["simpbl", "exact", "oracle"], only=["WN-trian-*"], seeds=1)
    run(made, out, command=InProcess(), build=tiny_suite)
    write_report(Folder(out))
    return Folder(out)


def test_what_shortcuts_reach_is_written_down_once_for_each_benchmark(folder):
    for method in ("pa", "qg", "nm", "nmm"):
        name = f"LogInfer-WN-trian-{method}"
        told = json.loads(folder.shortcuts(name).read_text())
        benchmark = load_benchmark(folder.suite / name)
        (own,) = benchmark.negatives
        results = shortcut_results(benchmark, own)
        assert told["balanced_accuracy"] == {name: pytest.approx(r.balanced_accuracy) for name, r in results.items()}
        assert told["interval"] == {name: pytest.approx(list(r.interval)) for name, r in results.items()}
        assert told["negatives"] == own
    path = folder.shortcuts("LogInfer-WN-trian-nm")
    told["balanced_accuracy"] = {"adjacent": 0.123}
    path.write_text(json.dumps({**told, "benchmark": "LogInfer-WN-trian-nm"}))
    # A sum that is not the benchmark's: measured again.
    write_report(folder)
    assert json.loads(path.read_text())["balanced_accuracy"] != {"adjacent": 0.123}
    # So are figures of earlier versions, which know no learned shortcut.
    path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": 1}))
    write_report(folder)
    assert json.loads(path.read_text())["format_version"] == 2
    kept = path.stat().st_mtime_ns
    write_report(folder)
    assert path.stat().st_mtime_ns == kept


def test_the_table_has_systems_then_shortcuts_under_each_kind_of_negatives(folder):
    with (folder.path / "tables/evidence.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    names = [row["system"] for row in rows]
    assert names[:3] == ["SimpBL", "exact", "oracle"]
    assert all(name.startswith("shortcut: ") for name in names[3:])
    assert {row["benchmark"] for row in rows} == {"WN-trian"}
    for method in ("pa", "nmm"):
        result = json.loads(folder.result("oracle", f"LogInfer-WN-trian-{method}").read_text())
        value = 100 * result["mean"]["metrics"]["balanced_accuracy"]
        assert float(rows[2][method]) == pytest.approx(value, abs=0.051)
        reached = json.loads(folder.shortcuts(f"LogInfer-WN-trian-{method}").read_text())
        for row in rows[3:]:
            name = row["system"].removeprefix("shortcut: ")
            low, high = reached["interval"][name]
            assert float(row[method].split(" ± ")[0]) == pytest.approx(
                100 * reached["balanced_accuracy"][name], abs=0.051
            )
            assert float(row[f"{method} ±"]) == pytest.approx(50 * (high - low), abs=0.051)
    assert (folder.path / "tables/evidence.tex").exists()
    assert f"| {names[3]} |" in (folder.path / "tables/evidence.md").read_text().replace("  ", " ")


def test_the_table_shows_the_learned_shortcut_and_those_that_reach_most():
    request = plan(tables=["evidence"], only=["WN-hier-*"], systems=["simpbl"], seeds=1).request
    singles = {f"feature-{number}": 0.5 + number / 100 for number in range(20)}
    shortcuts = {
        "LogInfer-WN-hier-pa": {**singles, "learned": 0.6},
        "LogInfer-WN-hier-nm": {**singles, "feature-0": 0.9, "learned": 0.55},
    }
    (table,) = tables(Figures(shortcuts=shortcuts), request, {}).values()
    shown = [row[1].text for row in table.rows[1:]]
    assert shown == [
        f"shortcut: {name}" for name in ("learned", "feature-0", *(f"feature-{number}" for number in range(19, 14, -1)))
    ]
    assert [entry.value for entry in table.rows[1][2:]] == [60, None, pytest.approx(55), None]


def test_the_best_shortcut_is_the_learned_one_and_in_figures_of_earlier_versions_the_best_of_all():
    shortcuts = {"new": {"adjacent": 0.8, "learned": 0.7}, "old": {"adjacent": 0.8, "combined": 0.9}, "none": {}}
    found = Figures(shortcuts=shortcuts)
    assert found.best_shortcut("new") == ("learned", 0.7)
    assert found.best_shortcut("old") == ("combined", 0.9)
    assert found.best_shortcut("none") is found.best_shortcut("missing") is None


def test_the_report_says_what_survives_and_leaves_the_papers_findings_out(folder):
    text = (folder.path / "REPORT.md").read_text()
    assert "## What survives near misses" in text
    assert "## Findings of the paper" not in text
    assert "### Table `evidence`" in text
    told = json.loads((folder.path / "evidence.json").read_text())
    assert [answer["number"] for answer in told] == [question.number for question in QUESTIONS]
    assert all(set(answer["verdicts"]) == set(COMPARED) for answer in told)
    # Three systems are not the paper's eight.
    assert {answer["verdicts"]["nm"] for answer in told} == {"not tested"}


# -- conclusions ------------------------------------------------------------------------------------


def figures(values, shortcuts=0.55):
    """Return figures where `values(system, group, kind)` is the accuracy, and one shortcut's everywhere."""
    results = {}
    for group in GROUPS:
        for kind in COMPARED:
            for system in (*EIGHT, "simpbl"):
                value = values(system, group, kind)
                if value is not None:
                    seed = {"metrics": {"balanced_accuracy": value}, "ranking": {}}
                    results[system, f"LogInfer-{group}-{kind}"] = {"seeds": [seed]}
    reached = {
        f"LogInfer-{group}-{kind}": {"adjacent": 0.999 if kind == "pa" else shortcuts, "simpbl": 0.5}
        for group in GROUPS
        for kind in COMPARED
    }
    return Figures(results, shortcuts=reached)


def verdicts(found, number):
    answer = next(a for a in answers(found, GROUPS) if a.question.number == number)
    return {kind: judgement.verdict for kind, judgement in answer.judgements.items()}


def place(system):
    return EIGHT.index(system) if system in EIGHT else -20


def test_high_scores_mean_learning_only_where_no_shortcut_is_as_good():
    learned = figures(lambda s, g, k: 0.95)
    assert verdicts(learned, "1") == {"pa": "not confirmed", "nm": "confirmed", "nmm": "confirmed"}
    fooled = figures(lambda s, g, k: 0.95 if k == "pa" else 0.6)
    assert verdicts(fooled, "1") == {"pa": "not confirmed", "nm": "not confirmed", "nmm": "not confirmed"}
    # Who is not high on pa is not asked.
    assert verdicts(figures(lambda s, g, k: 0.95 if s == "boxe" else 0.5), "1")["nm"] == "confirmed"
    assert verdicts(learned, "2")["nm"] == "confirmed"
    assert verdicts(fooled, "2") == {"pa": "confirmed", "nm": "not confirmed", "nmm": "not confirmed"}


def test_a_missing_figure_leaves_a_conclusion_untested():
    found = figures(lambda s, g, k: None if (s, g, k) == ("boxe", "WN-comp", "nm") else 0.95)
    assert verdicts(found, "1")["nm"] == "not tested"
    assert verdicts(found, "1")["nmm"] == "confirmed"
    assert verdicts(found, "9")["nm"] == "not tested"


@pytest.mark.parametrize(("number", "system", "pattern"), [("6", "transe", "sym"), ("7", "distmult", "inver")])
def test_a_system_is_poor_where_it_is_below_the_others_and_no_better_than_a_shortcut(number, system, pattern):
    def poor(s, g, k):
        return 0.58 if s == system and g.endswith(pattern) else 0.95

    assert set(verdicts(figures(poor), number).values()) == {"confirmed"}
    assert verdicts(figures(lambda s, g, k: 0.95), number)["nm"] == "not confirmed"
    # Below the others, but far above all shortcuts.
    better = figures(lambda s, g, k: 0.8 if s == system and g.endswith(pattern) else 0.95)
    assert verdicts(better, number)["nm"] == "in part"


def test_the_order_of_systems_is_compared_by_ranks():
    same = figures(lambda s, g, k: 0.5 + place(s) / 20)
    assert set(verdicts(same, "9").values()) == {"confirmed"}
    turned = figures(lambda s, g, k: 0.5 + (place(s) if k == "pa" else -place(s)) / 20)
    assert verdicts(turned, "9") == {"pa": "confirmed", "nm": "not confirmed", "nmm": "not confirmed"}
    alike = figures(lambda s, g, k: 0.5 + place(s) / 20 if k == "pa" else 0.7)
    assert verdicts(alike, "9")["nm"] == "not confirmed"


def test_the_other_conclusions_of_the_paper_hold_or_not_by_their_figures():
    miners = ("anyburl", "rulen")

    def as_printed(s, g, k):
        simple = g.split("-")[1] in ("sym", "inver", "hier")
        if s == "simpbl":
            return 0.5
        return (0.98 if s in miners else 0.93) if simple else 0.8

    def otherwise(s, g, k):
        return 0.6 if s in miners or s == "simpbl" else 0.58

    for number in ("3", "4", "5", "8"):
        assert verdicts(figures(as_printed), number)["nm"] == "confirmed", number
    assert verdicts(figures(otherwise), "3")["nm"] == "not confirmed"
    assert verdicts(figures(otherwise), "4")["nm"] == "not confirmed"
    assert verdicts(figures(otherwise), "8")["nm"] == "not confirmed"
    assert verdicts(figures(lambda s, g, k: 0.9 if s in miners else 0.5), "5")["nm"] == "in part"


def test_only_the_groups_that_were_asked_for_are_tested():
    wn = figures(lambda s, g, k: 0.95 if g.startswith("WN-") else None)
    groups = [group for group in GROUPS if group.startswith("WN-")]
    assert answers(wn, groups)[0].judgements["nm"].verdict == "confirmed"
    assert answers(wn, GROUPS)[0].judgements["nm"].verdict == "not tested"


def test_a_benchmark_that_the_suite_does_not_have_is_not_asked_for_unless_earlier_figures_have_it():
    missing = "LogInfer-WN-sym-nmm"
    whole = figures(lambda s, g, k: 0.95)
    results = {cell: result for cell, result in whole.results.items() if cell[1] != missing}
    now = Figures(results, shortcuts={name: f for name, f in whole.shortcuts.items() if name != missing})
    assert verdicts(now, "1")["nmm"] == "confirmed"
    assert verdicts(Figures(results, shortcuts=whole.shortcuts), "1")["nmm"] == "not tested"


def test_the_mean_fall_is_over_the_eight_systems():
    found = figures(lambda s, g, k: {"pa": 0.9, "nm": 0.7, "nmm": 0.6}[k] if s != "simpbl" else 0.5)
    assert mean_fall(found, GROUPS, "nm") == pytest.approx(0.2)
    assert mean_fall(found, GROUPS, "nmm") == pytest.approx(0.3)
    assert mean_fall(Figures(), GROUPS, "nm") is None
