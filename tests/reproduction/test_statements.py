"""What the paper says beside its tables: measurements, the verdicts of the figures that are kept, and the page."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scripts import reproduction_page
from tests.support import brute_force, stand_ins
from tests.support.small_reproduction import InProcess, tiny_suite

from loginfer.benchmark import load_benchmark
from loginfer.benchmark.construction.suite import SuiteGroup
from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import load_graph
from loginfer.reproduction import Figures, Folder, findings, plan, run, statements, write_report
from loginfer.reproduction.claims.paper import EIGHT
from loginfer.reproduction.claims.statements import STATEMENTS, SUPPORTED
from loginfer.reproduction.planning import Measurement, measurement_named, measurements
from loginfer.reproduction.standard import STANDARD_SPLITS, StandardSplit

# What the figures in `results/` say.
VERDICTS = {
    "12": "not tested",
    "13": "not tested",
    "14": "in part",
    "15": "in part",
    "16": "not tested",
    "17": "in part",
    "18": "confirmed",
    "19": "confirmed",
    "20": "not tested",
    "21": "not tested",
    "22": "confirmed",
    "23": "in part",
}


# -- what is kept -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept():
    return reproduction_page.kept_figures()


def verdict(number, figures):
    (finding,) = findings(figures, [statement for statement in STATEMENTS if statement.number == number])
    return finding.verdict


def test_the_kept_figures_have_these_verdicts(kept):
    assert {finding.claim.number: finding.verdict for finding in findings(kept, STATEMENTS)} == VERDICTS


def test_the_page_shows_what_the_kept_figures_say(kept):
    """`python scripts/reproduction_page.py` writes it."""
    page = reproduction_page.PAGE.read_text()
    assert reproduction_page.page(page, kept) == page


def test_every_kept_measurement_is_one_that_is_asked_for(kept):
    for name, document in kept.measurements.items():
        about = measurements()[name]
        assert (document["kind"], document["of"], document["system"]) == (about.kind, about.of, about.system)


# -- verdicts -----------------------------------------------------------------------------------------


def measured(kind, make):
    """Return figures with all measurements of a kind, made from what each is about."""
    return {name: {"figures": make(about)} for name, about in measurements().items() if about.kind == kind}


def result(accuracy, c_mrr=0.5):
    seed = {"metrics": {"balanced_accuracy": accuracy}, "ranking": {"filtered": {"c_mrr": c_mrr}}}
    return {"seeds": [seed]}


def standard(accuracy, c_mrr=0.5):
    return {(s, split.name): result(accuracy, c_mrr) for s in EIGHT for split in STANDARD_SPLITS}


def test_systems_are_worse_only_if_they_are_on_all_benchmarks_of_a_graph(kept):
    ours = {cell: result(0.9) for cell in kept.results if cell[1].startswith(("LogInfer-WN", "LogInfer-FB"))}
    assert verdict("12", Figures({**ours, **standard(0.95, 0.52)})) == "confirmed"
    assert verdict("12", Figures({**ours, **standard(0.95, 0.5)})) == "in part"
    assert verdict("12", Figures({**ours, **standard(0.89)})) == "not confirmed"
    assert verdict("12", Figures(ours)) == verdict("12", Figures(standard(0.95))) == "not tested"


def test_corruption_is_trivial_where_every_system_is_high():
    assert verdict("13", Figures(standard(0.9))) == "confirmed"
    assert verdict("13", Figures(standard(0.899))) == "not confirmed"
    assert verdict("13", Figures({**standard(0.95), ("transe", "WN18RR-rc"): result(0.8)})) == "in part"


def subrules(**witnessed):
    counts = {"rc": 0, "rb": 0, "pa": 0, "qg": 0, **witnessed}
    figures = {"undesired": 100, "witnessed": {m: {"train": c, "test": c} for m, c in counts.items()}}
    return Figures(measurements=measured("subrules", lambda about: figures))


def test_requirement_2_is_likely_met_if_half_of_the_sub_rules_have_a_witness():
    assert verdict("14", subrules(rc=49)) == "confirmed"
    assert verdict("14", subrules(rc=50)) == "not confirmed"
    assert verdict("15", subrules(rb=50, pa=51)) == "confirmed"
    assert verdict("15", subrules(rb=60, pa=60)) == "in part"
    assert verdict("15", subrules(rb=40, pa=30)) == "not confirmed"
    assert verdict("14", Figures()) == verdict("15", Figures()) == "not tested"


def test_heads_are_alike_if_they_matter_no_more_than_seeds_or_a_point():
    def spread(heads, seeds):
        def runs(by):
            return [{"balanced_accuracy": 0.8 + by * i, "c_mrr": 0.8 + by * i} for i in range(5)]

        return Figures(measurements=measured("heads", lambda about: {"heads": runs(heads), "seeds": runs(seeds)}))

    assert verdict("16", spread(0.005, 0.0)) == "confirmed"
    assert verdict("16", spread(0.02, 0.01)) == "confirmed"
    assert verdict("16", spread(0.02, 0.009)) == "not confirmed"


def candidates(supported, conclusions):
    counts = {"candidates": 100, "supported": supported, "conclusions": conclusions}
    return Figures(measurements=measured("candidates", lambda about: {"intersection": counts}))


def test_candidates_and_intersections_are_counted():
    assert verdict("17", candidates(49, 0)) == "confirmed"
    assert verdict("17", candidates(50, 0)) == "not confirmed"
    assert verdict("17", Figures()) == "not tested"
    # The triangles of WN18RR, with 100,800 + 968 + 977 − 93,003.
    assert verdict("18", candidates(0, 9_741)) == "confirmed"
    assert verdict("18", candidates(0, 9_742)) == "not confirmed"


def test_types_cost_accuracy_by_the_papers_own_figures_for_some_systems(kept):
    (finding,) = findings(kept, [statement for statement in STATEMENTS if statement.number == "19"])
    (check,) = finding.paper.checks
    assert finding.printed
    assert {c.case for c in check.comparisons if not c.holds} == {"ComplEx", "DistMult", "R-GCN"}


def phases(**changed):
    row = {"rule": "r", "alike": 0.95, "most_alike_other": 0.1, "converse": 0.9, "other_relations": 0.1, **changed}
    return Figures(measurements=measured("phases", lambda about: {"rules": [row]}))


def test_a_converse_counts_if_it_is_taken_for_true_and_other_relations_are_not():
    assert verdict("20", phases()) == verdict("20", phases(alike=0.9)) == "confirmed"
    for changed in ({"alike": 0.89}, {"converse": 0.49}, {"other_relations": 0.81}, {"most_alike_other": 0.96}):
        assert verdict("20", phases(**changed)) == "in part"
    assert verdict("20", phases(alike=0.0, converse=0.2, other_relations=0.2)) == "not confirmed"


def test_relations_need_their_own_parameters_if_they_are_told_apart_worse_without():
    def ablated(own, shared, c_mrr=0.5):
        figures = {"own": {"r_mrr": own, "c_mrr": c_mrr}, "shared": {"r_mrr": shared, "c_mrr": 0.5}}
        return Figures(measurements=measured("relations", lambda about: figures))

    assert verdict("21", ablated(0.61, 0.6)) == "confirmed"
    assert verdict("21", ablated(0.61, 0.6, c_mrr=0.6)) == "in part"
    assert verdict("21", ablated(0.60, 0.6)) == "not confirmed"


def test_requirements_are_looked_for_in_each_data_set():
    def of(predicted, negatives):
        figures = {"test": 100, "predicted": predicted, "negatives": {"train": negatives}}
        return Figures(measurements=measured("requirements", lambda about: figures))

    assert (verdict("22", of(90, 0)), verdict("23", of(90, 0))) == ("confirmed", "in part")
    assert (verdict("22", of(89, 0)), verdict("23", of(89, 0))) == ("in part", "confirmed")
    assert (verdict("22", of(89, 5)), verdict("23", of(90, 5))) == ("not confirmed", "not confirmed")


# -- measurements ---------------------------------------------------------------------------------------

REQUEST = SimpleNamespace(protocol="paper", budget="quick")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A folder with graphs that are called as the real ones."""
    folder = tmp_path_factory.mktemp("graphs")
    stand_ins.write_graph(folder / "wn18rr", stand_ins.WORDNET, seed=1)
    (folder / "kinship").mkdir()
    uncles = [(f"p{i}", "brother", f"q{i}") for i in range(4)] + [(f"q{i}", "father", f"r{i}") for i in range(4)]
    train = [*uncles, *((f"p{i}", "uncle", f"r{i}") for i in range(2)), ("p3", "knows", "r0")]
    test = [("p2", "uncle", "r2"), ("p3", "uncle", "r3"), ("p3", "knows", "r1")]
    for name, triples in (("train", train), ("valid", test[:1]), ("test", test)):
        (folder / "kinship" / f"{name}.txt").write_text("".join("\t".join(t) + "\n" for t in triples))
    return folder


@pytest.fixture
def here(small, monkeypatch):
    monkeypatch.chdir(small)


def made(kind, of, system=""):
    return statements.KINDS[kind](Measurement(kind, of, 1.0, system), REQUEST)


@pytest.mark.usefixtures("here")
def test_candidates_are_all_rules_and_those_with_support_are_counted():
    graph = load_graph("wn18rr")
    known = brute_force.facts(graph)
    found = made("candidates", "wn18rr")
    names = sorted({relation for _, relation, _ in known})
    pairs = {(a, b): {(s, o) for s, r, o in known if r == a} & {(s, o) for s, r, o in known if r == b}
             for a in names for b in names if a < b}  # fmt: skip
    assert found["intersection"] == {
        "candidates": len(pairs),
        "supported": sum(len(both) >= SUPPORTED for both in pairs.values()),
        "conclusions": sum(map(len, pairs.values())),
    }
    assert found["hierarchy"]["candidates"] == found["symmetry"]["candidates"] == len(names)
    supported = sum(sum(r == name for _, r, _ in known) >= SUPPORTED for name in names)
    assert found["inversion"]["supported"] == supported
    assert found["diamond"]["candidates"] == len(names) ** 4


@pytest.mark.usefixtures("here")
def test_what_follows_by_a_rule_that_train_bears_witness_to_is_counted():
    found = made("requirements", "kinship")
    assert found == {"test": 3, "predicted": 2, "negatives": {"train": 0, "valid": 0, "test": 0}}


@pytest.mark.usefixtures("here")
def test_sub_rules_with_a_witness_are_counted_for_each_method():
    found = made("subrules", "WN-trian")
    counts = [count for splits in found["witnessed"].values() for count in splits.values()]
    assert set(found["witnessed"]) == {"rc", "rb", "pa", "qg"}
    assert 0 < max(counts) <= found["undesired"]


@pytest.mark.usefixtures("here")
def test_heads_are_drawn_again_for_the_same_bodies_and_seeds_are_those_of_the_system(monkeypatch):
    asked = []

    def evaluated(about, request, benchmark, seed=0):
        asked.append((seed, benchmark.program))
        metrics = {"balanced_accuracy": len(asked) / 10}
        return SimpleNamespace(metrics=metrics, ranking={"filtered": {"c_mrr": 0.5, "r_mrr": 0.5}})

    monkeypatch.setattr(statements, "_evaluated", evaluated)
    found = made("heads", "WN-hier-pa", "transe")
    assert [run["balanced_accuracy"] for run in found["seeds"]] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert [run["balanced_accuracy"] for run in found["heads"]] == [0.1, 0.6, 0.7, 0.8, 0.9]
    assert [seed for seed, _ in asked] == [0, 1, 2, 3, 4, 0, 0, 0, 0]
    programs = [program for _, program in asked]
    assert len({tuple(rule.body for rule in program) for program in programs}) == 1
    assert len({tuple(rule.head for rule in program) for program in programs}) == 5


@pytest.mark.usefixtures("here")
def test_the_ablation_changes_nothing_but_the_matrices(monkeypatch):
    asked = []

    def evaluate(benchmark, system, *, settings, seed, diagnosis):
        asked.append(settings)
        return SimpleNamespace(metrics={"balanced_accuracy": 1.0}, ranking={"filtered": {"c_mrr": 0.5, "r_mrr": 0.5}})

    monkeypatch.setattr(statements, "evaluate", evaluate)
    assert set(made("relations", "WN-hier-pa", "r-gcn")) == {"own", "shared"}
    assert asked == [{"steps": 99}, {"steps": 99, "block": 0, "bases": 1}]


@pytest.mark.usefixtures("here")
def test_phases_that_coincide_are_alike_and_the_converse_is_asked_of_unknown_triples(monkeypatch):
    """A system that has turned R and S alike, and that takes R for true whatever it holds between."""

    def evaluate(benchmark, system, **_):
        first = benchmark.program[0]
        body, head = (benchmark.graph.relations.get(str(atom.relation)) for atom in (*first.atoms, first.head))
        angles = np.arange(len(benchmark.graph.relations), dtype=np.float32)[:, None].repeat(4, axis=1)
        angles[head] = angles[body]

        def score(triples):
            assert not benchmark.everything.contains(triples).any()
            return (triples[:, 1] == body).astype(float)

        return SimpleNamespace(
            metrics={"balanced_accuracy": 1.0},
            ranking={"filtered": {"c_mrr": 1.0, "r_mrr": 1.0}},
            outcome=SimpleNamespace(weights={"relations": angles}),
            configured=SimpleNamespace(restore=lambda *_: SimpleNamespace(score=score)),
            as_dict=lambda: {"threshold": 0.5},
        )

    monkeypatch.setattr(statements, "evaluate", evaluate)
    row, *others = made("phases", "WN-hier-pa", "rotate")["rules"]
    assert row["alike"] == pytest.approx(1.0)
    assert row["most_alike_other"] < 1.0
    assert (row["converse"], row["other_relations"]) == (1.0, 0.0)
    assert len(others) == 4
    assert any(other["converse"] == 0.0 for other in others)


# -- in a reproduction ------------------------------------------------------------------------------------


def test_statements_are_measured_once_and_stand_in_the_report(here, tmp_path):
    out = tmp_path / "out"
    asked = plan(tables=["statements"], systems=["simpbl"], only=["kinship", "wn18rr", "countries-s1"])
    assert [cell.benchmark for cell in asked.cells] == [
        "candidates-wn18rr", "requirements-countries-s1", "requirements-kinship",
    ]  # fmt: skip
    command = InProcess("requirements-countries-s1")
    outcomes = run(asked, out, command=command, build=tiny_suite)
    assert [outcome.state for outcome in outcomes] == ["done", "failed", "done"]
    told = write_report(Folder(out))
    document = json.loads((out / "statements/requirements-kinship.json").read_text())
    assert document["figures"] == made("requirements", "kinship")
    assert (document["budget"], document["protocol"], document["kind"]) == ("quick", "paper", "requirements")
    judged = {
        statement["number"]: statement["verdict"] for statement in json.loads((out / "statements.json").read_text())
    }
    assert judged["18"] == "confirmed"
    assert judged["22"] == judged["12"] == "not tested"
    assert {"number": "18", "verdict": "confirmed", "paper_verdict": "not tested"} in told["findings"]
    report = (out / "REPORT.md").read_text()
    assert "## What the paper says beside its tables" in report
    assert "## Findings of the paper" not in report
    assert "requirements-countries-s1 is broken" in report
    outcomes = run(asked, out, command=InProcess(), build=tiny_suite)
    assert [outcome.state for outcome in outcomes][::2] == ["kept", "kept"]


def test_statements_are_chosen_by_what_they_are_about_and_by_who_learns():
    everyone = plan(tables=["statements"])
    assert {cell.benchmark for cell in everyone.cells} == set(measurements())
    assert everyone.entries == ()
    assert {c.benchmark for c in plan(tables=["statements"], systems=["rotate"], only=["*-pa"]).cells} == {
        "phases-rotate-WN-hier-pa", "phases-rotate-FB-hier-pa",
    }  # fmt: skip
    assert not any(cell.measured for cell in plan(tables=["lubm"]).cells)
    with pytest.raises(InputError, match="none of these benchmarks"):
        plan(tables=["statements"], systems=["simpbl"], only=["LUBM-*"])


def test_an_unknown_measurement_gets_the_nearest_names(loginfer, tmp_path):
    with pytest.raises(UnknownNameError) as caught:
        measurement_named("candidates-wn18r")
    assert "candidates-wn18rr" in caught.value.hint
    code, _, err = loginfer("reproduce", "--measure", "candidates-wn18rr", "--out", tmp_path)
    assert (code, err.splitlines()[0]) == (2, f"error: `{tmp_path}` is no reproduction: it has no `reproduction.json`")


# -- standard splits ----------------------------------------------------------------------------------------


def test_a_standard_split_gets_a_corruption_of_each_triple_and_is_kept(here, tmp_path):
    split = StandardSplit(SuiteGroup("SMALL", "wn18rr", 0, 0, (), {"train": 1}), "rc")
    built = split.build(tmp_path / split.name, force=False)
    assert (built.name, built.state) == ("SMALL-rc", "built")
    benchmark, plain = load_benchmark(tmp_path / "SMALL-rc"), load_benchmark("wn18rr")
    seen = set()
    for name, negatives in benchmark.negatives["rc"].splits.items():
        positives = benchmark.positives[name]
        assert benchmark.graph.names(positives) == plain.graph.names(plain.positives[name])
        assert len(negatives) == len(positives)
        assert not benchmark.everything.contains(negatives).any()
        starts = sorted(map(tuple, negatives[:, :2].tolist()))
        assert starts == sorted(map(tuple, positives[:, :2].tolist()))
        triples = set(map(tuple, negatives.tolist()))
        assert not triples & seen
        seen |= triples
    assert split.build(tmp_path / "SMALL-rc", force=False).state == "kept"
    missing = StandardSplit(SuiteGroup("NONE", "nowhere", 0, 0, (), {"train": 1}), "rc")
    assert missing.build(tmp_path / "NONE-rc", force=False).state == "failed"


def test_the_table_of_standard_splits_has_every_system_on_both():
    made_plan = plan(tables=["standard"], seeds=1)
    assert [entry.name for entry in made_plan.entries] == ["WN18RR-rc", "FB15k-237-rc"]
    assert {cell.benchmark for cell in made_plan.cells} == {"WN18RR-rc", "FB15k-237-rc"}
    assert len(plan(tables=["standard"], only=["wn18rr-rc"], systems=list(EIGHT), seeds=1).cells) == 8
    assert not {"standard", "statements", "evidence"} & set(plan().request.tables)
