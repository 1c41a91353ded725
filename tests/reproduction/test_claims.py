"""The paper's findings: the verdict follows from comparisons, on our figures and on its own."""

import pytest

from loginfer.report.paper import SYSTEMS, paper_figures
from loginfer.reproduction import PaperFigures, findings
from loginfer.reproduction.claims.paper import (
    BENCHMARKS,
    CLAIMS,
    EIGHT,
    ClaimCheck,
    Comparison,
    above,
    at_least,
    judge,
    mean_of,
)
from loginfer.reproduction.figures import stated_averages
from loginfer.reproduction.planning import benchmarks_of


class MadeUp:
    """Figures that are the paper's but for some."""

    def __init__(self, changed=None, missing=(), shares=None):
        self.changed, self.missing, self.shares = changed or {}, set(missing), shares or {}

    def mean(self, system, benchmark, metric):
        if (system, benchmark) in self.missing or (system, benchmark, metric) in self.missing:
            return None
        known = PaperFigures().mean(system, benchmark, metric)
        return self.changed.get((system, benchmark, metric), known)

    def recovered(self, system, benchmark, figure):
        known = PaperFigures().recovered(system, benchmark, figure)
        return self.shares.get((system, benchmark, figure), known)


def found(number, source):
    return next(finding for finding in findings(source) if finding.claim.number == str(number))


def verdicts(finding):
    return [check.verdict for check in finding.ours.checks]


def test_the_papers_own_figures_are_enough_for_every_claim():
    told = findings(PaperFigures())
    assert [finding.claim.number for finding in told] == [str(number) for number in range(1, 12)]
    assert [finding.claim.section for finding in told] == ["5.2"] * 5 + ["5.3"] * 3 + ["5.4"] * 3
    for finding in told:
        assert finding.ours == finding.paper
        assert finding.paper.verdict != "not tested"


def test_claims_are_about_the_benchmarks_and_systems_of_the_papers_tables():
    assert set(BENCHMARKS) == {*benchmarks_of("fb-wn"), *benchmarks_of("lubm")}
    assert len(BENCHMARKS) == len(set(BENCHMARKS)) == 15
    assert [SYSTEMS[name] for name in EIGHT] == [name for name in SYSTEMS.values() if name != "SimpBL"]
    printed = {f.system for f in paper_figures() if f.table == "result-neg"}
    assert {SYSTEMS[name] for name in EIGHT} == printed
    assert set(stated_averages()) == set(benchmarks_of("negatives"))


def test_by_the_papers_own_figures_one_system_is_below_the_baseline():
    baseline = found(1, PaperFigures()).paper.checks[0]
    assert (baseline.holds, len(baseline.comparisons), baseline.verdict) == (119, 120, "in part")
    (against,) = [c for c in baseline.comparisons if not c.holds]
    assert against == Comparison("TransE on FB-sym-pa", "56.2 against 66.7", False)
    better = MadeUp({("transe", "LogInfer-FB-sym-pa", "f1"): 0.70})
    assert verdicts(found(1, better))[0] == "confirmed"
    hardly = MadeUp({("transe", "LogInfer-FB-sym-pa", "f1"): 0.676})
    assert verdicts(found(1, hardly))[0] == "in part"


def test_by_the_papers_own_figures_theory_is_not_confirmed_on_wn():
    transe, distmult, rotate = found(4, PaperFigures()).paper.checks
    assert [c.holds for c in transe.comparisons] == [True, False]
    assert transe.comparisons[1].figures == "90.4 against 98.8"
    assert [c.holds for c in distmult.comparisons] == [True, False]
    assert rotate.verdict == "confirmed"


def test_by_the_papers_own_figures_rulen_does_not_include_95_percent():
    (check,) = found(9, PaperFigures()).paper.checks
    assert [(c.case, c.figures) for c in check.comparisons if not c.holds] == [
        ("RuleN on FB-inver-pa", "70.5"),
        ("RuleN on FB-hier-pa", "69.5"),
    ]


def test_the_averages_that_the_paper_states_are_those_of_its_table():
    for benchmark, stated in stated_averages().items():
        figures = [
            f.value
            for f in paper_figures()
            if f.table == "result-neg" and f"LogInfer-{f.kg}-{f.pattern}-{f.negatives}" == benchmark
        ]
        assert len(figures) == 8
        assert mean_of(PaperFigures(), EIGHT, [benchmark]) == pytest.approx(sum(figures) / 800)
        assert abs(sum(figures) / 8 - 100 * stated) < 0.1


def test_degradation_is_judged_on_average_and_system_by_system():
    average, each = found(7, PaperFigures()).paper.checks
    assert (average.verdict, each.verdict) == ("confirmed", "in part")
    assert (each.holds, len(each.comparisons)) == (33, 40)
    same = {(s, "LogInfer-FB-sym-rb", "balanced_accuracy"): 0.99 for s in EIGHT}
    average, _ = found(7, MadeUp(same)).ours.checks
    assert [c.holds for c in average.comparisons] == [False, True, True, True, True]


def test_a_missing_cell_means_not_tested_and_is_named():
    finding = found(2, MadeUp(missing=[("boxe", "LogInfer-WN-diam-qg")]))
    assert finding.ours.verdict == "not tested"
    assert "Missing: BoxE on WN" in finding.ours.explanation
    assert finding.paper.verdict == "in part"
    assert found(3, MadeUp(missing=[("boxe", "LogInfer-WN-diam-qg")])).ours.verdict == "not tested"
    # What a claim does not look at, it does not miss.
    assert found(9, MadeUp(missing=[("boxe", "LogInfer-WN-diam-qg")])).ours.verdict != "not tested"


def test_metrics_must_disagree_about_the_best_system():
    best = {
        ("boxe", benchmark, metric): 1.0
        for benchmark in BENCHMARKS
        for metric in ("balanced_accuracy", "c_mrr", "r_mrr")
    }
    others = {
        (system, benchmark, metric): 0.5
        for system in EIGHT
        for benchmark in BENCHMARKS
        for metric in ("balanced_accuracy", "c_mrr", "r_mrr")
    }
    check = found(5, MadeUp({**others, **best})).ours.checks[2]
    assert check.verdict == "not confirmed"
    assert check.comparisons[0].figures == "BoxE / BoxE / BoxE"


def test_rules_entailed_with_random_heads_are_told_beside_the_finding():
    places = [f"LogInfer-FB-{pattern}-qg" for pattern in ("inter", "trian", "diam")]
    shares = {(s, p, "eps_ent_random_heads"): 0.88 for s in ("anyburl", "rulen") for p in places}
    remark = found(10, MadeUp(shares=shares)).remark
    assert "AnyBURL on FB-inter-qg 90.5 (88.0)" in remark
    assert "in 5 of 6 cases" in remark
    assert found(10, PaperFigures()).remark == ""


def test_contrast_says_whether_negatives_are_what_miners_lack():
    changed = {("contrast", "LogInfer-FB-diam-qg", "balanced_accuracy"): 0.99}
    remark = found(3, MadeUp(changed)).remark
    assert "on 1 of 1 complex benchmarks: FB-diam-qg 99.0 (86.6)" in remark
    assert found(3, PaperFigures()).remark == ""


def check(*holds, enough=1.0):
    return ClaimCheck("it", tuple(Comparison(f"case {n}", str(n), hold) for n, hold in enumerate(holds)), enough)


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (check(True, True), "confirmed"),
        (check(True, True, False), "in part"),
        (check(True, False), "not confirmed"),
        (check(False), "not confirmed"),
        (check(True, None), "not tested"),
        (check(), "not tested"),
        (check(True, True, True, False, enough=0.75), "confirmed"),
        (check(True, True, False, enough=0.75), "in part"),
    ],
)
def test_a_check_holds_if_enough_of_its_comparisons_do(made, verdict):
    assert made.verdict == verdict


def test_a_claim_is_confirmed_if_all_its_parts_are():
    yes, half, no, open_ = check(True), check(True, True, False), check(False), check(None)
    assert judge([yes, yes]).verdict == "confirmed"
    assert judge([yes, half]).verdict == "in part"
    assert judge([yes, no]).verdict == "in part"
    assert judge([half, half]).verdict == "in part"
    assert judge([no, no]).verdict == "not confirmed"
    assert judge([yes, open_]).verdict == "not tested"


def test_explanations_name_what_goes_against_a_claim_and_count_what_is_too_much():
    assert check(True, False, None).explanation == (
        "it: not tested, 1 of 2 comparisons hold: case 0 (0). Against it: case 1 (1). Missing: case 2."
    )
    many = check(*[False] * 11).explanation
    assert "case 7 (7); and 3 more" in many
    assert "case 8" not in many


def test_comparisons_are_made_in_points():
    assert above("x", 0.676, 0.666, 1.0).holds is True
    assert above("x", 0.6759, 0.666, 1.0).holds is False
    assert above("x", 0.5, 0.5).holds is True
    assert above("x", 0.5, 0.5, strict=True).holds is False
    assert above("x", None, 0.5).holds is None
    assert at_least("x", 0.95, 95.0).holds is True
    assert at_least("x", 0.95, 95.0, strict=True).holds is False
    assert at_least("x", None, 95.0).holds is None
    # A figure that is not enough is not shown as if it were.
    near = at_least("x", 0.9496, 95.0)
    assert (near.figures, near.holds) == ("94.96", False)


def test_findings_are_plain_values_with_every_comparison():
    told = found(9, PaperFigures()).as_dict()
    assert told["figures"] == told["paper_figures"]
    assert told["figures"][0]["of"] == len(told["figures"][0]["comparisons"]) == 6
    assert {claim.test for claim in CLAIMS if not claim.test} == set()
