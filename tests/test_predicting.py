"""`predict`: the best answers to queries against scoring and sorting every triple there is."""

import hashlib
import itertools
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loginfer
from loginfer.benchmark import Splits
from loginfer.engine import open_engine
from loginfer.errors import InputError, OutputError, UnknownNameError
from loginfer.evaluation import Run
from loginfer.evaluation.ranking import query_groups
from loginfer.kg import catalogue
from loginfer.systems.interface import POSITIONS
from tests.support.made_up_benchmarks import couples, family


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs without weights on two benchmarks, and with rules on one of them."""
    path = tmp_path_factory.mktemp("predicting")
    for name, benchmark in (("family", family()), ("couples", couples())):
        benchmark.save(path / name)
        about = {"negatives": "pa", "ranking": (), "diagnosis": False}
        loginfer.evaluate(path / name, "simpbl", out=path / f"{name}-simpbl", **about)
    for system, options in (("exact", {"max_length": 2}), ("anyburl", {"steps": 3}), ("contrast", {})):
        loginfer.evaluate(path / "couples", system, settings=options, out=path / system, **about)
    return path


@pytest.fixture
def program(request):
    """The program, beside the package of the same name."""
    return request.getfixturevalue("loginfer")


class Scorer:
    """Made-up scores with many ties, asked for triple by triple."""

    def __init__(self, benchmark, seed=0, different=4):
        shape = (len(benchmark.graph.entities), len(benchmark.graph.relations), len(benchmark.graph.entities))
        self.values = np.random.default_rng(seed).integers(0, different, shape).astype(np.float32) / 3 - 1

    def score(self, triples):
        return self.values[tuple(triples.T)]


class CandidateScorer(Scorer):
    """The same scores, asked for in blocks."""

    def score_candidates(self, triples, position, candidates):
        triples = np.repeat(triples[:, None], len(candidates), axis=1)
        triples[:, :, POSITIONS.index(position)] = candidates
        return self.score(triples.reshape(-1, 3)).reshape(triples.shape[:2])


def statuses(benchmark):
    """Return which set each triple of a benchmark is in; positives come first."""
    named = {}
    for split, method, triples in reversed(list(benchmark.sets())):
        named |= dict.fromkeys(benchmark.graph.names(triples), "negative" if method else split)
    return named


def brute_force(scorer, benchmark, query, top, new):
    """Score all triples with the query's names that positives have in their positions; sort by score, then by name."""
    graph, status = benchmark.graph, statuses(benchmark)
    everything = benchmark.everything
    constants = {graph.entities[i] for i in everything.consts}
    types = {graph.entities[i] for i in everything.types}
    relations = {graph.relations[i] for i in everything.rels}
    whole = query[0] is None and query[2] is None
    new = True if whole and new is None else new
    loops = {r for s, r, o in graph.names(graph.triples) if s == o}
    fitting = []
    names = [vocabulary if part is None else [part] for part, vocabulary in zip(
        query, (graph.entities, graph.relations, graph.entities), strict=True
    )]  # fmt: skip
    for s, r, o in itertools.product(*names):
        is_type = r == graph.type_predicate
        fits = query[0] is not None or s in constants
        fits &= query[2] is not None or o in (types if is_type else constants)
        if query[1] is None:
            # Between a constant and a type only the type predicate can stand, which stands nowhere else.
            fits &= is_type if o in types - constants else r in relations
        fits &= not (whole and s == o and r not in loops)
        if fits and (new is None or ((s, r, o) not in status) == new):
            fitting.append((s, r, o))
    ids = [(graph.entity_id(s), graph.relation_id(r), graph.entity_id(o)) for s, r, o in fitting]
    scores = scorer.score(np.array(ids, dtype=np.int32).reshape(-1, 3)).tolist()
    ranked = sorted(zip(scores, ids, fitting, strict=True), key=lambda row: (-row[0], row[1]))
    return [(*triple, score, status.get(triple, "new")) for score, _, triple in ranked[:top]]


def without_confidences(predicted):
    return [(*row[:4], row[5]) for row in predicted.rows()]


QUERIES = [
    ("ada", "likes", None), (None, "likes", "dée"), ("ada", None, "dée"), ("ada", None, "Fan"), (None, "knows", None),
    ("ada", "rdf:type", None), (None, "rdf:type", None), (None, "rdf:type", "Fan"), ("ada", "likes", "ada"),
]  # fmt: skip


@pytest.mark.parametrize("kind", [Scorer, CandidateScorer])
@pytest.mark.parametrize("query", QUERIES, ids=str)
@settings(max_examples=8)
@given(
    seed=st.integers(0, 99), top=st.integers(1, 30), new=st.sampled_from([None, True, False]), cells=st.integers(1, 40)
)
def test_answers_are_the_best_of_all_triples(folder, kind, query, seed, top, new, cells):
    benchmark = loginfer.load_benchmark(folder / "family")
    scorer = kind(benchmark, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "scorer", lambda run, benchmark: scorer)
        for name in ("CELLS", "PLAIN_CELLS"):  # so few scores at a time
            patch.setattr(f"loginfer.evaluation.ranking.{name}", cells)
        names = dict(zip(("subject", "relation", "object"), query, strict=True))
        predicted = loginfer.predict(folder / "family-simpbl", **names, top=top, new=new)
    assert without_confidences(predicted) == brute_force(scorer, benchmark, query, top, new)


@pytest.mark.parametrize("inductive", [False, True])
def test_names_that_train_has_not_seen_are_answers_as_they_are_ranked(folder, monkeypatch, inductive):
    train = [("e1", "q", "e2"), ("e2", "q", "e3"), ("e1", "rdf:type", "Fan")]
    valid = [("e3" if inductive else "new1", "q", "e2")]  # of an inductive benchmark valid is on the side of train
    test = [("e2", "q", "new2"), ("e3", "new", "e1"), ("new3", "rdf:type", "New")]
    context = [("far1", "q", "new3"), ("far1", "rdf:type", "Fan")]
    graph = loginfer.KnowledgeGraph.from_names(train + valid + test + context)
    ids = [
        np.array([(graph.entity_id(s), graph.relation_id(r), graph.entity_id(o)) for s, r, o in names], dtype=np.int32)
        for names in (train, valid, test, context)
    ]
    context_graph = graph.with_triples(ids[3]) if inductive else None
    benchmark = loginfer.Benchmark("seven", graph.with_triples(ids[0]), Splits(*ids[:3]), {}, context=context_graph)
    scorer = Scorer(benchmark)
    monkeypatch.setattr(Run, "scorer", lambda run, benchmark: scorer)
    for position, name in itertools.product(POSITIONS, test):
        query = {place: part for place, part in zip(POSITIONS, name, strict=True) if place != position}
        predicted = loginfer.predict(folder / "family-simpbl", **query, top=100, benchmark=benchmark)
        names = tuple(query.get(place) for place in POSITIONS)
        assert without_confidences(predicted) == brute_force(scorer, benchmark, names, 100, None)
        assert name in [row[:3] for row in predicted.rows()]
    for position in POSITIONS:
        for group in query_groups(benchmark, position):
            query = dict(zip(POSITIONS, graph.names(group.queries[:1])[0], strict=True)) | {position: None}
            predicted = loginfer.predict(folder / "family-simpbl", **query, top=100, benchmark=benchmark)
            assert set(group.candidates) <= set(predicted.triples[:, POSITIONS.index(position)])
            assert inductive or len(predicted) == len(group.candidates)


@pytest.mark.parametrize("system", ["exact", "anyburl", "contrast"])
@pytest.mark.parametrize("query", [("p01", "knows", None), (None, "knows", "p07"), (None, "meets", None)], ids=str)
def test_a_rule_miner_answers_what_its_rules_predict_and_shows_them(folder, system, query):
    run, benchmark = loginfer.load_run(folder / system), loginfer.load_benchmark(folder / "couples")
    scorer, engine = run.scorer(benchmark), open_engine(benchmark.graph)
    names = dict(zip(("subject", "relation", "object"), query, strict=True))
    predicted = loginfer.predict(run, **names, top=15, explain=True)
    expected = brute_force(scorer, benchmark, query, 15, None)
    assert without_confidences(predicted) == [row for row in expected if row[3] > scorer.never]
    confidences = [float(run.calibration().confidence(np.array([score]))[0]) for score in predicted.scores]
    assert predicted.confidences == pytest.approx(confidences)
    assert any(predicted.rules) or (system == "contrast" and "meets" in query)  # which has no new answers
    facts = set(benchmark.graph.names(benchmark.graph.triples))
    for triple, rules in zip(predicted.triples, predicted.rules, strict=True):
        assert [(rule.rule, rule.confidence) for rule in rules] == [
            (str(firing.rule), firing.confidence) for firing in scorer.explain(triple.tolist())[:3]
        ]
        for rule in rules:
            assert facts.issuperset(rule.premises)
            if rule.premises:
                parsed = loginfer.parse_rule(rule.rule)
                assert len(rule.premises) == len(parsed.atoms)
                assert engine.derives([parsed], triple[None])[0]


def test_a_witness_of_a_path_rule_gives_its_variables_different_values(folder, monkeypatch):
    from loginfer.systems.rules.mined import MinedRules, RuleTable
    from loginfer.systems.rules.scorer import RuleScorer

    names = [("ada", "likes", "bob"), ("dan", "likes", "bob"), ("dan", "likes", "eve"), ("eve", "knows", "eve")]
    graph = loginfer.KnowledgeGraph.from_names(names)
    nothing = graph.triples[:0]
    benchmark = loginfer.Benchmark("four", graph, Splits(graph.triples, nothing, nothing), {})
    knows, likes = graph.relation_id("knows"), graph.relation_id("likes")
    # knows(x,y) ⇐ likes(x,a), likes(b,a), likes(b,y): without the differences a witness has b = x and y = a.
    table = RuleTable.of(head=[knows], body=[[2 * likes, 2 * likes + 1, 2 * likes]], confidence=[0.5])
    monkeypatch.setattr(Run, "scorer", lambda run, benchmark: RuleScorer(benchmark.graph, MinedRules(table)))
    run = folder / "family-simpbl"
    predicted = loginfer.predict(run, subject="ada", relation="knows", benchmark=benchmark, explain=True)
    assert graph.names(predicted.triples) == [("ada", "knows", "eve")]
    ((rule,),) = predicted.rules
    assert rule.premises == (("ada", "likes", "bob"), ("dan", "likes", "bob"), ("dan", "likes", "eve"))


@pytest.mark.parametrize("ending", ["tsv", "csv"])
def test_queries_are_answered_in_the_order_of_their_file_also_repeated_ones(folder, tmp_path, ending):
    asked = [("p09", "knows", None), (None, "knows", "p07"), ("p01", "knows", None), ("p02", None, "p03")]
    asked += [("p09", "knows", None), ("p00", "meets", "p01")]
    file = tmp_path / f"queries.{ending}"
    separator = {"tsv": "\t", "csv": ","}[ending]
    file.write_text("".join(separator.join(name or "?" for name in query) + "\n" for query in asked))
    together, apart = (
        loginfer.predict(folder / "exact", queries=queries, top=4, explain=True).as_dict() for queries in (file, asked)
    )
    assert together == apart
    one_by_one = [
        loginfer.predict(folder / "exact", subject=s, relation=r, object=o, top=4, explain=True).as_dict()["answers"]
        for s, r, o in asked
    ]
    assert apart["answers"] == [a | {"query": n} for n, answers in enumerate(one_by_one) for a in answers]
    assert list(loginfer.predict(folder / "exact", queries=[]).rows()) == []


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "parquet"])
def test_answers_survive_their_files(folder, tmp_path, ending):
    predicted = loginfer.predict(folder / "exact", relation="knows", top=20)
    assert len(predicted) == 20
    file = tmp_path / f"answers.{ending}"
    predicted.save(file)
    if ending == "parquet":
        assert [tuple(row.values()) for row in pq.read_table(file).to_pylist()] == list(predicted.rows())
    else:
        import pandas as pd

        assert list(pd.read_csv(file, sep="\t").itertuples(index=False, name=None)) == list(predicted.rows())
    with pytest.raises(OutputError, match="exists already"):
        predicted.save(file)
    data = file.read_bytes()
    predicted.save(file, force=True)
    assert file.read_bytes() == data
    assert predicted.to_frame()["score"].tolist() == predicted.scores.tolist()
    empty = loginfer.predict(folder / "exact", queries=[])
    empty.save(file, force=True)
    with pytest.raises(OutputError, match="no name for a file of predictions"):
        predicted.save(tmp_path / "answers.csv")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_names_that_columns_cannot_hold_are_refused(folder, tmp_path):
    predicted = loginfer.predict(folder / "exact", subject="p01", relation="knows", top=1)
    odd = loginfer.KnowledgeGraph.from_names([("a\tb", "r", "c")])
    changed = type(predicted)(predicted.run, odd, odd.triples, np.zeros(1), [None], ["new"], [0])
    with pytest.raises(OutputError, match="tab-separated"):
        changed.save(tmp_path / "x.tsv")
    assert not list(tmp_path.iterdir())
    changed.save(tmp_path / "x.parquet")


def test_a_score_that_is_no_number_is_reported_with_its_triple(folder, monkeypatch):
    class Broken(Scorer):
        def score(self, triples):
            return np.where(triples[:, 2] == 0, np.nan, super().score(triples))

    monkeypatch.setattr(Run, "scorer", lambda run, benchmark: Broken(benchmark))
    with pytest.raises(InputError, match=r"\(ada, likes, Bob ⟨x⟩\) is NaN"):
        loginfer.predict(folder / "family-simpbl", subject="ada", relation="likes")


# -- the program ------------------------------------------------------------------------------------


def test_people_see_what_was_open_and_programs_everything(program, folder):
    words = ("predict", folder / "exact", "--subject", "p01", "--relation", "knows", "--top", 2)
    code, out, _ = program(*words)
    assert code == 0
    assert out.splitlines()[0] == "(p01, knows, ?)"
    code, out, _ = program(*words, "--json", "--explain")
    answer = json.loads(out)
    assert (answer["system"], answer["benchmark"], len(answer["answers"])) == ("exact", "couples-rules-pa", 2)
    best = answer["answers"][0]
    assert set(best) == {"subject", "relation", "object", "score", "confidence", "status", "query", "rules"}
    assert set(best["rules"][0]) == {"rule", "confidence", "premises"}
    code, out, _ = program(*words, "--explain")
    assert out.splitlines()[1] == f"{best['score']:.5g}  {best['status']}  {best['object']}"
    assert "→ knows(x,y)" in out
    assert "because (p01, " in out


def test_new_and_known_answers_can_be_asked_for_alone(program, folder):
    words = ("predict", folder / "exact", "--relation", "knows", "--top", 500, "--json")
    found = {
        option: {row["status"] for row in json.loads(program(*words, *option)[1])["answers"]}
        for option in ((), ("--new",), ("--known",))
    }
    assert found[()] == found["--new",] == {"new"}
    assert {"train", "test"} <= found["--known",] <= {"train", "valid", "test", "negative"}


def test_answers_are_written_to_a_file(program, folder, tmp_path):
    words = ("predict", folder / "exact", "--relation", "knows", "--top", 3, "--out", tmp_path / "a.tsv")
    assert program(*words)[:2] == (0, f"3 triples, written to {tmp_path / 'a.tsv'}\n")
    header = "subject\trelation\tobject\tscore\tconfidence\tstatus\tquery"
    assert (tmp_path / "a.tsv").read_text().splitlines()[0] == header
    for more, message in (((), "exists already"), (("--explain",), "no place for rules")):
        code, out, messages = program(*words, *more)
        assert (code, out) == (2, "")
        assert message in messages
    code, out, _ = program(*words, "--force", "--json")
    assert json.loads(out) == {"out": str(tmp_path / "a.tsv"), "triples": 3}


@pytest.mark.parametrize(
    ("run", "words", "message"),
    [
        ("exact", ["--subject", "p1", "--relation", "knows"], "unknown constant `p1`\n  hint: did you mean `p10`"),
        ("exact", ["--relation", "knowz"], "unknown relation `knowz`\n  hint: did you mean `knows`"),
        ("exact", ["--subject", "p01"], "(p01, ?, ?) is no query"),
        ("exact", [], "(?, ?, ?) is no query"),
        ("exact", ["--relation", "knows", "--queries", "x"], "do not go together"),
        ("exact", ["--queries", "nowhere.tsv"], "no file or folder `nowhere.tsv`"),
        ("exact", ["--relation", "knows", "--out", "x.csv"], "let it end in .tsv or .parquet"),
        ("couples-simpbl", ["--relation", "knows"], "has no weights"),
        ("couples", ["--relation", "knows"], "not that of a run"),
        ("nowhere", ["--relation", "knows"], "no file or folder"),
        ("exact", ["--relation", "knows", "--benchmark", "family"], "not about this"),
    ],
)
def test_each_mistake_gets_one_message(program, folder, monkeypatch, run, words, message):
    monkeypatch.chdir(folder)
    code, out, messages = program("predict", run, *words)
    assert (code, out) == (2, "")
    assert messages.startswith("error: ")
    assert message in messages
    assert not (folder / "x.csv").exists()


def test_a_system_without_rules_cannot_explain(folder, monkeypatch):
    monkeypatch.setattr(Run, "scorer", lambda run, benchmark: Scorer(benchmark))
    with pytest.raises(InputError, match="no rules to explain"):
        loginfer.predict(folder / "family-simpbl", subject="ada", relation="likes", explain=True)
    with pytest.raises(UnknownNameError):
        loginfer.predict(folder / "family-simpbl", subject="ad", relation="likes")
    with pytest.raises(InputError, match="0 answers"):
        loginfer.predict(folder / "family-simpbl", relation="likes", top=0)


def test_a_run_knows_where_its_benchmark_was(folder, tmp_path, program):
    for name in ("couples", "exact"):
        shutil.copytree(folder / name, tmp_path / "here" / name)
    words = ("predict", tmp_path / "here" / "exact", "--relation", "knows", "--json")
    code, out, _ = program(*words)
    assert code == 0
    (tmp_path / "here" / "couples").rename(tmp_path / "elsewhere")
    code, _, messages = program(*words)
    assert code == 2
    assert "couples-rules-pa, the benchmark of" in messages
    assert "--benchmark FOLDER or NAME" in messages
    assert program(*words, "--benchmark", tmp_path / "elsewhere")[1] == out


def test_a_run_on_a_data_set_by_name_can_be_asked_and_reported_later(tmp_path, program, monkeypatch):
    data = {"train.txt": b"a\tR\tb\nb\tR\tc\nc\tR\ta\n", "valid.txt": b"a\tR\tc\n", "test.txt": b"b\tR\ta\n"}
    files = [(name, name, len(text), hashlib.sha256(text).hexdigest()) for name, text in data.items()]
    entry = catalogue.Entry("tiny", "three", address="https://example.invalid/", files=files)
    monkeypatch.setattr(catalogue, "_catalogue", lambda: {"tiny": entry})
    monkeypatch.setenv("LOGINFER_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "tiny").mkdir(parents=True)
    for name, text in data.items():
        (tmp_path / "data" / "tiny" / name).write_bytes(text)
    assert loginfer.load_benchmark("tiny").path is None
    assert program("evaluate", "Tiny", "--system", "rulen", "--no-diagnosis", "--out", "run/x")[0] == 0
    timing = json.loads((tmp_path / "run/x/timing.json").read_text())
    assert timing["benchmark"] is None
    for place in (None, "../../tiny"):  # as runs were written before
        (tmp_path / "run/x/timing.json").write_text(json.dumps(timing | {"benchmark": place}))
        code, out, _ = program("predict", "run/x", "--subject", "a", "--relation", "R", "--json")
        assert (code, json.loads(out)["benchmark"]) == (0, "tiny")
        assert (
            program("predict", "run/x", "--subject", "a", "--relation", "R", "--benchmark", "tiny", "--json")[1] == out
        )
    code, _, messages = program("report", "run", "tiny", "--to", "md")
    assert code == 2
    assert "`tiny` is a data set of the catalogue" in messages
    assert program("report", "run", "--to", "md", "--metric", "c_mrr")[0] == 0


def test_one_of_several_seeds_is_to_be_given(folder, tmp_path, program):
    loginfer.evaluate(folder / "couples", "simpbl", seeds=2, out=tmp_path / "runs", ranking=(), diagnosis=False)
    code, _, messages = program("predict", tmp_path / "runs", "--relation", "knows")
    assert code == 2
    assert "holds a run for each seed" in messages
    assert "seed-0" in messages
