"""The explorer's data: read back as its script reads it, and compared with the benchmark and the runs."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from tests.support.hostile_runs import NAMES, hostile_runs

from loginfer.benchmark import explain_triple
from loginfer.evaluation import evaluate
from loginfer.evaluation.thresholds import Thresholds
from loginfer.report.collection import collect
from loginfer.report.facts import ReportContext, ReportOptions
from loginfer.report.pages import explorer
from loginfer.report.pages import explorer as explorer_data
from loginfer.report.pages.explorer import even_indices, front_coded, slug_of
from loginfer.report.site import Renderer
from loginfer.report.values import DataFile, Page


@pytest.fixture(scope="module")
def context(small_runs):
    return ReportContext(collect([small_runs]))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return ReportContext(collect([hostile_runs(tmp_path_factory.mktemp("hostile"))]))


def unfolded(coded):
    """Read names as the script does: in UTF-16 units."""
    names, before = [], b""
    for shared, rest in zip(coded[::2], coded[1::2], strict=True):
        before = before[: 2 * shared] + rest.encode("utf-16-le")
        names.append(before.decode("utf-16-le"))
    return names


def read(context, name):
    """Return the index and all triples of a benchmark, as the page would show them."""
    files = {part.path: part.value for part in explorer.pages(context) if isinstance(part, DataFile)}
    files = json.loads(json.dumps(files, allow_nan=False))
    index = files[f"data/explorer/{slug_of(context, name)}/index.js"]
    rows = []
    for path, first, last, count in index["shards"]:
        shard = files[path]
        names = unfolded(shard["names"])
        assert [shard["places"][0], shard["places"][-1], len(shard["places"])] == [first, last, count]
        for row, place in enumerate(shard["places"]):
            triple = (names[shard["s"][row]], index["relations"][shard["r"][row]], names[shard["o"][row]])
            systems = [
                (s[row], r[row], ok[row])
                for s, r, ok in zip(*(shard[k] for k in ("scores", "ranks", "right")), strict=True)
            ]
            rows.append(
                SimpleNamespace(
                    place=place,
                    triple=triple,
                    label=shard["label"][row],
                    why=shard["why"][row],
                    names=names,
                    systems=systems,
                )
            )
    return index, rows


@pytest.fixture(params=["small", "hostile"])
def whole(request, context, hostile):
    made = context if request.param == "small" else hostile
    names = made.collection.benchmark_names
    return made, next(name for name in names if name.endswith("qg") or made is hostile)


def test_all_test_triples_are_there_in_order_with_their_labels(whole):
    context, name = whole
    index, rows = read(context, name)
    benchmark, method = context.benchmark(name), context.collection.of_benchmark(name)[0].method
    wanted = [
        *benchmark.graph.names(benchmark.positives.test),
        *benchmark.graph.names(benchmark.negatives[method].splits.test),
    ]
    assert [row.triple for row in rows] == wanted
    assert [row.place for row in rows] == list(range(len(wanted)))
    assert [row.label for row in rows] == ["1"] * index["positives"] + ["0"] * index["negatives"]


def test_scores_ranks_and_decisions_are_those_of_the_runs(whole):
    context, name = whole
    index, rows = read(context, name)
    for number, cell in enumerate(context.collection.of_benchmark(name)):
        _, predictions = cell.first.labelled()
        scores = np.concatenate([predictions.test.positive, predictions.test.negative])
        told = [row.systems[number] for row in rows]
        assert [score for score, _, _ in told] == pytest.approx(scores.tolist(), rel=1e-3)
        # The middle of the ranks of equal scores, counted from 0, as thousandths.
        ranks = (stats.rankdata(scores) - 0.5) / len(scores) * 1000
        assert np.abs(np.array([rank for _, rank, _ in told]) - ranks).max() <= 1
        thresholds = json.loads((cell.first.path / "thresholds.json").read_bytes())
        said = scores >= thresholds["value"]
        label = np.arange(len(scores)) < len(predictions.test.positive)
        assert [ok for _, _, ok in told] == ["1" if yes else "0" for yes in (said == label).tolist()]
        about = index["systems"][number]
        assert about["name"] == cell.system
        assert about["threshold"]["all"][0] == pytest.approx(thresholds["value"], rel=1e-3)
        below = (scores < thresholds["value"]).mean() * 1000
        assert abs(about["threshold"]["all"][1] - below) <= 1


def test_rules_and_witnesses_are_those_that_explain_tells(whole):
    context, name = whole
    index, rows = read(context, name)
    benchmark = context.benchmark(name)
    for row in rows:
        if row.label == "0":
            continue
        story = explain_triple(benchmark, row.triple)
        assert [derivation[0] for derivation in row.why] == [d.rule for d in story.derivations]
        for (number, *witness), told in zip(row.why, story.derivations, strict=True):
            rule = index["rules"][number]
            assert ", ".join(rule["parts"]) + " -> " + rule["head"] == told.text
            values = [row.names[value] for value in witness]
            assert dict(zip(rule["variables"], values, strict=True)) == told.witness
            atoms = [[values[t] if isinstance(t, int) else t for t in atom] for atom in rule["atoms"]]
            assert [tuple(atom) for atom in atoms] == list(told.premises)


def test_negatives_are_told_as_explain_tells_them(whole):
    context, name = whole
    index, rows = read(context, name)
    benchmark, method = context.benchmark(name), context.collection.of_benchmark(name)[0].method
    for row in rows:
        if row.label == "1":
            continue
        story = explain_triple(benchmark, row.triple)
        (made,) = [n for n in story.negatives if (n.method, n.split) == (method, "test")]
        source, position, number, _ = row.why
        assert index["sources"][source] == made.source
        assert (index["positions"][position] or None) == made.position
        if made.rule is not None:
            assert number == made.rule


def test_without_the_folder_triples_and_scores_are_there_and_no_stories(context, small_runs):
    alone = ReportContext(collect([small_runs / "runs"]))
    name = context.collection.benchmark_names[0]
    index, rows = read(alone, name)
    assert not index["folder"]
    assert [(row.triple, row.label, row.systems) for row in rows] == [
        (row.triple, row.label, row.systems) for row in read(context, name)[1]
    ]
    assert {row.why is None for row in rows} == {True}


def test_at_most_so_many_triples_are_taken_evenly(hostile):
    few = ReportContext(hostile.collection, ReportOptions(explorer=5))
    name = hostile.collection.benchmark_names[0]
    index, rows = read(few, name)
    total = index["positives"] + index["negatives"]
    assert [row.place for row in rows] == even_indices(total, 5).tolist()
    assert {row.label for row in rows} == {"0", "1"}
    everything = {row.place: row for row in read(hostile, name)[1]}
    for row in rows:
        same = everything[row.place]
        # Ranks are among all test triples, not among those that are shown.
        assert (row.triple, row.systems) == (same.triple, same.systems)


@pytest.mark.parametrize(("total", "most"), [(0, 5), (3, 5), (5, 5), (6, 5), (7, 1), (1000, 7), (20_001, 20_000)])
def test_even_indices_lie_far_apart(total, most):
    found = even_indices(total, most)
    assert len(found) == min(total, most)
    gaps = np.diff(found)
    assert (gaps >= 1).all()
    if total > most > 1:
        assert (found[0], found[-1]) == (0, total - 1)
        assert gaps.max() - gaps.min() <= 1


def test_no_triples_wanted_means_no_page(small_runs):
    assert list(explorer.pages(ReportContext(collect([small_runs]), ReportOptions(explorer=0)))) == []


def test_many_systems_make_smaller_shards(hostile, monkeypatch):
    name = hostile.collection.benchmark_names[0]
    before = read(hostile, name)
    monkeypatch.setattr(explorer_data, "_SCORES", 12)  # three systems: four triples a shard
    index, rows = read(hostile, name)
    assert {shard[3] for shard in index["shards"][:-1]} == {4}
    assert [vars(row)["triple"] for row in rows] == [row.triple for row in before[1]]
    assert [row.systems for row in rows] == [row.systems for row in before[1]]


def test_relations_may_have_thresholds_of_their_own(small_runs, tmp_path):
    from loginfer.benchmark import load_benchmark

    benchmark = load_benchmark(small_runs / "family")
    evaluate(benchmark, "transe", settings={"epochs": 1}, negatives="qg", threshold="relation", out=tmp_path / "run")
    context = ReportContext(collect([tmp_path, small_runs / "family"]))
    name = context.collection.benchmark_names[0]
    index, rows = read(context, name)
    cell = context.collection.of_benchmark(name)[0]
    known = Thresholds.from_dict(json.loads((cell.first.path / "thresholds.json").read_bytes()), benchmark)
    own = index["systems"][0]["threshold"]["own"]
    assert {index["relations"][int(place)]: value for place, (value, _) in own.items()} == pytest.approx(
        dict(known.relations), rel=1e-3
    )
    for row in rows:
        said = row.systems[0][0] >= known.relations.get(row.triple[1], known.value)
        assert row.systems[0][2] == str(int(said == (row.label == "1")))


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["a"],
        ["", "a", "ab", "abc", "b"],
        sorted(NAMES, key=str.encode),
        ["𝔘𝔫𝔦", "𝔘𝔫𝔦𝔠", "𝔙"],  # letters of two units each, the first of which are the same
    ],
)
def test_names_can_be_read_back(names):
    assert unfolded(front_coded(names)) == names


def test_shared_beginnings_are_written_once():
    names = [f"http://www.Department{n // 100}.University0.edu/Course{n}" for n in range(1000)]
    assert len(json.dumps(front_coded(names))) < 0.4 * len(json.dumps(names))


def test_the_page_and_its_data_hold_names_as_text(hostile):
    renderer = Renderer("<i>report</i>", frozenset({"explorer"}))
    for part in explorer.pages(hostile):
        shown = renderer.page(part) if isinstance(part, Page) else renderer.data(part)
        for wrong in ("<script>alert", "</script><", "<i>Hostile", "<b>likes"):
            assert wrong not in shown


def test_the_script_never_makes_markup_from_text():
    from importlib import resources

    script = (resources.files("loginfer.report") / "assets" / "explorer.js").read_text(encoding="utf-8")
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttp"):
        assert way not in script
