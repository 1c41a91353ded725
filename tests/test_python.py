"""The functions of `loginfer`: a path or a value, frames that say what the figures say, own models, trackers."""

import sys
import warnings

import numpy as np
import pyarrow as pa
import pytest

import loginfer
from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation.evaluating import final_figures
from tests.support.made_up_benchmarks import couples


def two_methods():
    return loginfer.build(couples().recipe, couples().kg, negatives=["pa", "rc"])


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """The folder of a benchmark."""
    folder = tmp_path_factory.mktemp("python") / "bench"
    two_methods().save(folder)
    return folder


@pytest.fixture(scope="module")
def benchmark(bench):
    return loginfer.load_benchmark(bench)


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "kg.tsv"
    steps = {"next": 1, "second": 2, "far": 5}
    path.write_text("".join(f"c{i}\t{name}\tc{(i + step) % 40}\n" for i in range(40) for name, step in steps.items()))
    return path


def names(benchmark):
    return {split: benchmark.graph.names(triples) for split, triples in benchmark.positives.items()}


# -- a path or a value ------------------------------------------------------------------------------


def test_every_command_has_a_function_of_its_name():
    for name in (
        "build",
        "evaluate",
        "report",
        "mine",
        "explain",
        "rank",
        "suite",
        "reproduce",
        "audit",
        "export",
        "predict",
    ):
        assert "Examples" in getattr(loginfer, name).__doc__
        assert name in loginfer.__all__


def test_a_function_wins_over_the_module_of_its_name_whatever_was_imported_before():
    import loginfer.report.collection

    assert callable(loginfer.report)


def test_what_is_loaded_is_given_back(bench, benchmark, graph_file, tmp_path):
    graph = loginfer.load_graph(graph_file)
    assert loginfer.load_graph(graph) is graph
    assert loginfer.load_benchmark(benchmark) is benchmark
    loginfer.evaluate(bench, "simpbl", negatives="rc", ranking=(), out=tmp_path / "run")
    run = loginfer.load_run(tmp_path / "run")
    assert loginfer.load_run(run) is run
    recipe = loginfer.Recipe("kg", patterns=("composition",))
    assert loginfer.read_recipe(recipe) is recipe


def test_a_benchmark_is_built_from_a_path_a_graph_a_recipe_or_its_file(graph_file, tmp_path):
    settings = {"patterns": ["composition"], "negatives": ["qg"], "k1": 1, "k2": 5, "protocol": "paper"}
    built = loginfer.build(graph_file, **settings)
    loginfer.write_recipe(built.recipe, tmp_path / "recipe.toml")
    assert built.recipe.kg == str(graph_file)
    for again in (
        loginfer.build(loginfer.load_graph(graph_file), kg=str(graph_file), **settings),
        loginfer.build(built.recipe),
        loginfer.build(tmp_path / "recipe.toml"),
        loginfer.build(str(graph_file), **settings | {"patterns": "composition", "negatives": "qg"}),
        loginfer.build(built.recipe.changed(k1=2), graph_file, k1=1),
    ):
        assert names(again) == names(built)
        assert again.recipe == built.recipe


def test_a_setting_that_does_not_exist_is_told_with_the_nearest(graph_file):
    with pytest.raises(UnknownNameError, match="unknown setting `pattern`") as error:
        loginfer.build(graph_file, pattern="composition")
    assert "`patterns`" in str(error.value)
    with pytest.raises(UnknownNameError, match="unknown setting `memory_limit`"):
        loginfer.build(graph_file, patterns="composition", memory_limit="4GB")


def test_rules_replace_the_patterns_of_a_recipe(graph_file):
    recipe = loginfer.Recipe(str(graph_file), patterns=("composition",), protocol="paper", negatives=("rc",))
    built = loginfer.build(recipe, rules=["(x,next,y), (y,far,z) -> (x,far,z)"])
    assert [str(rule) for rule in built.program] == ["(x,next,y), (y,far,z) -> (x,far,z)"]
    assert built.recipe.patterns == ()


def test_a_system_is_evaluated_by_path_or_by_value(bench, benchmark):
    by_path = loginfer.evaluate(str(bench), "simpbl", negatives="rc", ranking="given")
    by_value = loginfer.evaluate(benchmark, "simpbl", negatives="rc", ranking=["given"])
    assert by_path.as_dict() == by_value.as_dict()
    assert list(by_path.ranking) == ["given"]


def test_errors_of_evaluate_are_in_the_words_of_a_script(benchmark):
    with pytest.raises(UnknownNameError, match=r"^ranking: unknown ranking protocol `gven`"):
        loginfer.evaluate(benchmark, "simpbl", negatives="rc", ranking="gven")
    with pytest.raises(InputError, match=r"negatives='\w+'"):
        loginfer.evaluate(benchmark, "simpbl")
    with pytest.raises(InputError, match=r"^int is no benchmark"):
        loginfer.evaluate(5, "simpbl")
    with pytest.raises(InputError, match=r"^callback: no module `nowhere`"):
        loginfer.evaluate(benchmark, "simpbl", negatives="rc", callbacks="nowhere:Tracker")
    for name, value in {"seeds": "two", "settings": ["epochs=3"], "progress": 3}.items():
        with pytest.raises(InputError, match=name):
            loginfer.evaluate(benchmark, "simpbl", negatives="rc", **{name: value})
    with pytest.raises(InputError, match=r"list is not a system[\s\S]*give one name"):
        loginfer.evaluate(benchmark, ["simpbl", "oracle"], negatives="rc")
    with pytest.raises(InputError, match="settings are for a system given by its name or class"):
        loginfer.evaluate(benchmark, Numbered(), negatives="rc", settings={"seed": 3})


class Numbered:
    def __init__(self, seed: int = 0, times: int = 1):
        self.seed, self.times = seed, times

    def fit(self, benchmark):
        return self

    def score(self, triples):
        return self.times * triples[:, 0]


def test_a_system_is_given_as_its_class_too(benchmark):
    made = loginfer.evaluate(benchmark, Numbered(3, times=2), negatives="rc", ranking="given")
    by_class = loginfer.evaluate(
        benchmark, Numbered, negatives="rc", ranking="given", seed=3, settings={"times": 2}
    )  # fmt: skip
    assert by_class.as_dict()["metrics"] == made.as_dict()["metrics"]
    assert by_class.as_dict()["seed"] == 3
    several = loginfer.evaluate(benchmark, Numbered, negatives="rc", ranking="given", seeds=np.array([2, 5]))
    assert [of_seed["seed"] for of_seed in several.as_dict()["seeds"]] == [2, 5]
    with pytest.raises(InputError, match="dict is not a system"):
        loginfer.evaluate(benchmark, dict, negatives="rc")


def test_what_is_no_graph_no_benchmark_and_no_pattern_is_said_to_be_none(graph_file, benchmark, tmp_path):
    frame = {"s": ["a"], "r": ["knows"], "o": ["b"]}
    for function in (
        loginfer.load_graph, loginfer.mine, lambda value: loginfer.rank(value, "composition"),
        lambda value: loginfer.build(value, patterns=["composition"]),
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"dict is no graph[\s\S]*from_frame"):
            function(frame)
    for function in (
        loginfer.audit,
        loginfer.load_benchmark,
        lambda value: loginfer.export(value, "rdf", tmp_path / "x"),
    ):
        with pytest.raises(InputError, match="list is no benchmark"):
            function([])
    with pytest.raises(InputError, match="NoneType is no pattern"):
        loginfer.rank(graph_file, None)
    for top in (-1, "many"):
        with pytest.raises(InputError, match="top must be a whole number"):
            loginfer.rank(graph_file, "composition", top=top)
    for triple in (None, "a b c", ("a", "b")):
        with pytest.raises(InputError, match="a triple has three parts"):
            loginfer.explain(benchmark, triple)
    with pytest.raises(UnknownNameError, match="unknown table of an audit `shortcut`"):
        loginfer.audit(benchmark, closure=False).to_frame("shortcut")


def test_a_report_takes_a_list_of_folders(bench, benchmark, tmp_path):
    run = tmp_path / "run"
    loginfer.evaluate(benchmark, "simpbl", negatives="rc", ranking="given", out=run)
    written = loginfer.report([run, bench], out=tmp_path / "site", audits=False)
    assert written.details["runs"] == 1


def test_a_benchmark_is_written_where_it_is_built_if_asked(tmp_path):
    graph = loginfer.KnowledgeGraph.from_names(
        [(f"p{i}", "knows", f"p{(7 * i + j) % 90}") for i in range(90) for j in (1, 2)]
    )
    recipe = {"patterns": ["symmetry"], "k1": 1, "k2": 50}
    built = loginfer.build(graph, **recipe, out=tmp_path / "bench")
    assert loginfer.load_benchmark(tmp_path / "bench").name == built.name
    with pytest.raises(loginfer.LogInferError, match="exists"):
        loginfer.build(graph, **recipe, out=tmp_path / "bench")
    loginfer.build(graph, **recipe, out=tmp_path / "bench", force=True)


def test_a_benchmark_is_audited_exported_and_explained_by_path_or_by_value(bench, benchmark, tmp_path):
    assert loginfer.audit(bench).shortcuts == loginfer.audit(benchmark).shortcuts
    exported = [
        loginfer.export(one, "rdf", tmp_path / str(i), negatives="rc") for i, one in enumerate((bench, benchmark))
    ]
    assert exported[0]["positives"] == exported[1]["positives"] == benchmark.positives.sizes
    assert list(exported[0]["negatives"]) == ["rc"]
    triple = benchmark.graph.names(benchmark.positives.test[:1])[0]
    by_path, by_value = loginfer.explain(bench, triple), loginfer.explain(benchmark, benchmark.positives.test[0])
    assert by_path == by_value
    assert by_path.sets == ("P_test",)


def test_explain_takes_the_last_part_of_a_name_where_it_is_unambiguous(tmp_path):
    triples = [("http://x/ann", "http://x/knows", "http://x/bob"), ("http://y/ann", "http://x/likes", "http://x/bob")]
    from loginfer.systems.rules.mined import as_benchmark

    whole = as_benchmark(loginfer.KnowledgeGraph.from_names(triples), "people")
    assert loginfer.explain(whole, ("http://x/ann", "knows", "bob")).sets[-1] == "P_train"
    with pytest.raises(InputError, match="`ann` may be any of"):
        loginfer.explain(whole, ("ann", "knows", "bob"))


def test_bodies_are_ranked_in_a_path_a_graph_or_an_engine(graph_file):
    graph = loginfer.load_graph(graph_file)
    ranked = loginfer.rank(graph_file, "composition", 2)
    assert [support for support, _, _ in ranked.bodies] == [40, 40]
    assert ranked.nonzero == 9
    assert loginfer.rank(graph, loginfer.parse_pattern("composition"), top=2).bodies == ranked.bodies
    assert loginfer.rank(loginfer.open_engine(graph), "composition", 2).bodies == ranked.bodies
    assert len(loginfer.rank(graph, "composition", None)) == 9
    with pytest.raises(UnknownNameError, match="relation `nxt`"):
        loginfer.rank(graph, "(x,nxt,y), (y,_R,z) -> (x,_S,z)")


def test_rules_are_mined_in_a_benchmark_or_a_graph_and_written(bench, benchmark, graph_file, tmp_path):
    by_path, by_value = loginfer.mine(bench, max_length=1), loginfer.mine(benchmark, "exact", max_length=1)
    assert list(by_path.rows()) == list(by_value.rows())
    mined = loginfer.mine(graph_file, max_length=2, out=tmp_path / "rules.tsv")
    graph = loginfer.load_graph(graph_file)
    assert list(loginfer.mine(graph, max_length=2).rows()) == list(mined.rows())
    written = {str(rule.rule) for rule in loginfer.read_rules(tmp_path / "rules.tsv").rules}
    assert "(x,next,a), (a,next,y) -> (x,second,y)" in written
    assert len(mined) == len((tmp_path / "rules.tsv").read_text().splitlines()) == len(mined.to_frame())
    with pytest.raises(UnknownNameError, match="max_lenght"):
        loginfer.mine(graph, max_lenght=2)
    with pytest.raises(InputError, match="graph without any"):
        loginfer.mine(graph, "contrast")


def test_a_report_takes_folders_runs_and_benchmarks(bench, benchmark, tmp_path):
    evaluation = loginfer.evaluate(bench, "simpbl", negatives="rc", ranking="given", out=tmp_path / "run")
    by_path = loginfer.report(tmp_path / "run", bench, out=tmp_path / "a", audits=False)
    by_value = loginfer.report(loginfer.load_run(tmp_path / "run"), benchmark, out=tmp_path / "b", audits=False)
    assert by_path.details == by_value.details
    assert (by_path.path / "index.html").read_text() == (by_value.path / "index.html").read_text()
    figures = {metric: value for *_, metric, value in by_path.rows()}
    assert figures == final_figures(evaluation.as_dict())
    with pytest.raises(InputError, match="this Evaluation lies in no folder"):
        loginfer.report(evaluation, out=tmp_path / "c")


@pytest.mark.data
def test_the_suite_is_built_with_a_row_for_each_benchmark(data_folder, tmp_path):
    seen = []
    built = loginfer.suite(
        tmp_path, only="WN-sym-*", jobs=1, seed=3, progress=lambda what, done, total: seen.append((done, total))
    )
    frame = built.to_frame()
    assert frame["state"].tolist() == ["built", "built"]
    assert seen == [(1, 2), (2, 2)]
    first = loginfer.load_benchmark(tmp_path / frame["benchmark"][0])
    assert first.recipe.seed == 3
    assert [frame[split][0] for split in ("train", "valid", "test")] == list(first.positives.sizes.values())


def test_the_suite_says_what_can_be_set(tmp_path):
    with pytest.raises(InputError, match="`k1` is fixed by the suite"):
        loginfer.suite(tmp_path, k1=3)


def test_a_reproduction_gives_a_row_for_each_cell(tmp_path, monkeypatch):
    from loginfer.reproduction import paper_tables, running

    def build(plan, out, *, tell, **_):
        tell(running.CellsDone("one", 1, len(plan.cells)))
        return [running.CellOutcome(plan.cells[0], "done"), running.CellOutcome(plan.cells[1], "failed", "why", "do")]

    monkeypatch.setattr(running, "run", build)
    monkeypatch.setattr(paper_tables, "write_report", lambda folder: {"report": "REPORT.md"})
    seen = []
    done = loginfer.reproduce(
        tmp_path, tables=["lubm"], systems=["simpbl", "oracle"], seeds=1, progress=lambda *step: seen.append(step)
    )
    assert done.to_frame()["state"].tolist() == ["done", "failed"]
    assert sorted(done.details["cells"][0]) == ["benchmark", "seed", "state", "system"]
    assert done.details["cells"][1]["reason"] == "why"
    assert done.details["report"] == "REPORT.md"
    assert seen[0][:2] == ("cells", 1)


# -- frames -----------------------------------------------------------------------------------------


def test_frames_have_the_figures_of_an_evaluation_and_of_its_run(bench, tmp_path):
    evaluation = loginfer.evaluate(bench, "simpbl", negatives="rc", out=tmp_path / "run")
    frame = evaluation.to_frame()
    figures = dict(zip(frame["metric"], frame["value"], strict=True))
    assert figures["accuracy"] == evaluation.metrics["accuracy"]
    assert figures["filtered/c_mrr"] == evaluation.ranking["filtered"]["c_mrr"]
    assert set(frame["system"]) == {"simpbl"}
    assert set(frame["negatives"]) == {"rc"}
    assert loginfer.load_run(tmp_path / "run").to_frame().equals(frame)


def test_frames_have_the_checks_and_the_shortcuts_of_an_audit(benchmark):
    audit = loginfer.audit(benchmark)
    frame = audit.to_frame()
    assert set(frame["check"]) == {*audit.passed, *audit.skipped, *(finding.check for finding in audit.findings)}
    shortcuts = audit.to_frame("shortcuts")
    rows = zip(shortcuts["negatives"], shortcuts["who"], shortcuts["balanced_accuracy"], strict=True)
    for (method, who), value in {(method, who): value for method, who, value in rows}.items():
        expected = audit.accuracies()[who][list(audit.shortcuts).index(method)]
        assert value == expected or (expected is None and np.isnan(value))


def test_several_seeds_give_means_deviations_and_intervals(bench, benchmark, tmp_path):
    settings = {"epochs": 1, "dimension": 4}
    options = {"settings": settings, "negatives": "rc", "ranking": "given"}
    single = [loginfer.evaluate(bench, "transe", seed=seed, **options).metrics["roc_auc"] for seed in (3, 4)]
    summary = loginfer.evaluate(bench, "transe", seeds=[3, 4], out=tmp_path / "runs", **options)
    assert summary.metrics["roc_auc"] == pytest.approx(np.mean(single))
    frame = summary.to_frame().set_index("metric")
    assert frame["value"]["roc_auc"] == summary.metrics["roc_auc"]
    assert frame["deviation"]["roc_auc"] == pytest.approx(np.std(single, ddof=1))
    assert frame["low"]["roc_auc"] <= frame["value"]["roc_auc"] <= frame["high"]["roc_auc"]
    assert set(frame["seeds"]) == {2}
    assert (tmp_path / "runs" / "seed-4").is_dir()
    again = loginfer.evaluate(benchmark, "transe", seed=3, seeds=2, **options)
    assert again.as_dict() == summary.as_dict()
    assert "means of 2 seeds" in again._repr_html_()
    assert repr(again).endswith("2 seeds)")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_graph_comes_from_a_frame_and_becomes_one(library):
    columns = {"to": ["bob", "cem"], "from": ["ann", "bob"], "how": ["knows", "likes"], "year": [1, 2]}
    module = pytest.importorskip(library)
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    graph = loginfer.KnowledgeGraph.from_frame(frame, columns=("from", "how", "to"))
    assert graph.names(graph.triples) == [("ann", "knows", "bob"), ("bob", "likes", "cem")]
    again = loginfer.KnowledgeGraph.from_frame(graph.to_frame())
    assert again.names(again.triples) == graph.names(graph.triples)
    numbers = loginfer.KnowledgeGraph.from_frame(frame, columns=("year", "how", "year"))
    assert numbers.names(numbers.triples) == [("1", "knows", "1"), ("2", "likes", "2")]


def test_a_frame_that_is_no_graph_is_refused():
    with pytest.raises(UnknownNameError, match="unknown column `form`"):
        loginfer.KnowledgeGraph.from_frame({"from": ["a"], "r": ["b"], "to": ["c"]}, columns=("form", "r", "to"))
    with pytest.raises(InputError, match="the column `r` has empty cells"):
        loginfer.KnowledgeGraph.from_frame({"from": ["a"], "r": [None], "to": ["c"]})
    with pytest.raises(InputError, match="3 columns are needed, not 2"):
        loginfer.KnowledgeGraph.from_frame({"from": ["a"], "r": ["b"]})
    with pytest.raises(InputError, match="int is no table"):
        loginfer.KnowledgeGraph.from_frame(3)


def test_a_frame_of_pandas_without_a_header_or_with_mixed_columns_is_understood():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([["bob", "knows", "ann"]])
    graph = loginfer.KnowledgeGraph.from_frame(frame, columns=(2, 1, 0))
    assert graph.names(graph.triples) == [("ann", "knows", "bob")]
    with pytest.raises(InputError, match=r"frame.astype\(str\)"):
        loginfer.KnowledgeGraph.from_frame(pandas.DataFrame([["ann", "age", 3], ["bob", "knows", "ann"]]))


def test_without_pandas_a_frame_is_a_table_of_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = loginfer.KnowledgeGraph.from_names([("a", "r", "b")]).to_frame()
    assert isinstance(table, pa.Table)
    assert table.to_pydict() == {"subject": ["a"], "relation": ["r"], "object": ["b"]}


def test_results_show_themselves_escaped_in_a_notebook():
    graph = loginfer.KnowledgeGraph.from_names([("a", "<b>", "b"), ("b", "<b>", "c")])
    html = loginfer.rank(graph, "composition")._repr_html_()
    assert "<td>1</td>" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


# -- one's own model --------------------------------------------------------------------------------


class Own:
    """A model of torch that treats all it gets as its own."""

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, benchmark):
        import torch

        (negatives,) = benchmark.negatives.values()
        graph = benchmark.graph
        for array in (
            graph.triples, graph.consts, graph.rels, graph.types, benchmark.positives.train,
            benchmark.positives.valid, negatives.splits.train, negatives.splits.valid,
        ):  # fmt: skip
            torch.as_tensor(array)[:] = 0
        generator = torch.Generator().manual_seed(self.seed)
        self.weights = torch.nn.Parameter(torch.rand(len(graph.entities), generator=generator))
        return self

    def score(self, triples):
        import torch

        triples = torch.as_tensor(triples)
        scores = self.weights[triples[:, 0].long()] * self.weights[triples[:, 2].long()]
        triples[:] = 0
        return scores.to(torch.bfloat16)

    def score_candidates(self, triples, position, candidates):
        import torch

        triples, candidates = torch.as_tensor(triples), torch.as_tensor(candidates)
        scores = self.weights[triples[:, :1].long()] + self.weights[candidates.long() % len(self.weights)]
        triples[:], candidates[:] = 0, 0
        return scores


def test_tensors_with_gradients_are_taken_and_what_a_system_changes_is_its_own():
    pytest.importorskip("torch")
    benchmark = two_methods()
    arrays = [benchmark.graph.triples, benchmark.graph.consts, *(t for _, t in benchmark.positives.items())]
    arrays += [t for one in benchmark.negatives.values() for _, t in one.splits.items()]
    before = [array.copy() for array in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = loginfer.evaluate(benchmark, Own(), negatives="rc", ranking=("filtered", "given", "unfiltered"))
    assert all(np.array_equal(array, copy) for array, copy in zip(arrays, before, strict=True))
    # Ranks are the same as those of scores that leave their arguments alone.
    again = loginfer.evaluate(benchmark, Own(), negatives="rc", ranking=("filtered", "given", "unfiltered"))
    assert first.as_dict() == again.as_dict()
    evaluator = loginfer.Evaluator(benchmark, "rc")
    for triples in evaluator.triples().values():
        triples[:] = 0
    assert evaluator.triples()["test_pos"].any()


def test_a_system_made_by_hand_gets_each_seed_if_it_has_one(benchmark):
    pytest.importorskip("torch")
    summary = loginfer.evaluate(benchmark, Own(7), negatives="rc", ranking=(), seeds=[1, 2])
    assert [row["seed"] for row in summary.answer["seeds"]] == [1, 2]

    class Seedless(Own):
        def __init__(self):
            super().__init__()

    with pytest.raises(InputError, match=r"^seeds: Seedless has no setting `seed`"):
        loginfer.evaluate(benchmark, Seedless(), negatives="rc", seeds=2)


# -- progress and trackers --------------------------------------------------------------------------


class Tracker:
    """Writes down what it is told."""

    def __init__(self):
        self.rows, self.figures = [], []

    def curve(self, row):
        self.rows.append(row)

    def finished(self, figures):
        self.figures.append(figures)


class OnlyFinished:
    """Fails when all is over."""

    def finished(self, figures):
        raise ValueError("no network")


TRAINING = {"settings": {"epochs": 2, "dimension": 4}, "negatives": "rc", "ranking": "given"}


def test_a_tracker_is_told_the_curve_as_it_comes_and_the_figures_once(benchmark, tmp_path):
    for out in (None, tmp_path / "run"):
        tracker = Tracker()
        evaluation = loginfer.evaluate(benchmark, "transe", callbacks=[tracker, object()], out=out, **TRAINING)
        assert tracker.rows == evaluation.outcome.curve
        assert [row["epoch"] for row in tracker.rows] == [1, 2]
        expected = {name: value for name, value in final_figures(evaluation.as_dict()).items() if value is not None}
        assert tracker.figures == [expected]


def test_with_several_seeds_a_tracker_gets_all_curves_and_the_means(benchmark):
    tracker = Tracker()
    summary = loginfer.evaluate(benchmark, "transe", seeds=2, callbacks=[tracker], **TRAINING)
    assert [row["epoch"] for row in tracker.rows] == [1, 2, 1, 2]
    assert len(tracker.figures) == 1
    assert tracker.figures[0]["accuracy"] == summary.metrics["accuracy"]


def test_a_tracker_that_fails_is_told_with_its_line(benchmark):
    with pytest.raises(
        InputError, match="the callback `OnlyFinished` failed in `finished`: ValueError: no network"
    ) as error:
        loginfer.evaluate(benchmark, "simpbl", negatives="rc", ranking=(), callbacks=[OnlyFinished()])
    assert "test_python.py:" in str(error.value)


def test_the_bar_shows_what_is_done(benchmark, capsys):
    from rich.console import Console

    from loginfer.progress import shown

    with shown(True, Console(stderr=True, force_terminal=True, width=80)) as show:
        show("ranking", 3, 10)
        show("ranking", 10, 10)
    assert "ranking" in capsys.readouterr().err
    loginfer.evaluate(benchmark, "transe", progress=True, **TRAINING)
    seen = []
    loginfer.evaluate(benchmark, "transe", progress=lambda *step: seen.append(step), **TRAINING)
    assert seen
    for nothing in (None, False):
        with shown(nothing) as show:
            assert show is None
