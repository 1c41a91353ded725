"""The options of reading stand on every command that reads a graph."""

import json

import pytest

from loginfer.cli import common
from loginfer.engine import open_engine
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.errors import InputError
from loginfer.kg import load_graph
from loginfer.logic import parse_pattern

ROWS = "".join(f"p{i};p{(i * 3 + k) % 9};{r};1\n" for i in range(9) for k, r in enumerate(("ra", "rb", "rc")))
OPTIONS = [
    "--format",
    "tsv",
    "--delimiter",
    ";",
    "--columns",
    "sor_",
    "--on-error",
    "skip",
    "--without-relations",
    "rc",
    "--max-unpacked",
    "9",
]


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.data"
    path.write_text(ROWS + "bad line\n")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["kg", "show", "GRAPH"],
        ["kg", "convert", "GRAPH", "OUT.nt"],
        ["rules", "rank", "GRAPH", "-p", "symmetry"],
        ["rules", "apply", "GRAPH", "(x,ra,y) -> (y,ra,x)"],
        ["rules", "explain", "GRAPH", "(x,ra,y) -> (y,ra,x)", "p0", "ra", "p0"],
        ["mine", "GRAPH", "--out", "OUT.rules"],
        ["build", "GRAPH", "-p", "composition", "--k1", 1, "--min-new", 1, "--out", "OUT"],
    ],
    ids=lambda words: " ".join(map(str, words[:2])),
)
def test_every_command_takes_them_and_says_what_was_left_out(loginfer, graph, tmp_path, words):
    places = {"GRAPH": graph, "OUT.nt": tmp_path / "g.nt", "OUT.rules": tmp_path / "r.txt", "OUT": tmp_path / "bench"}
    code, _, err = loginfer(*(places.get(word, word) for word in words), *OPTIONS)
    assert code == 0, err
    assert "skipped 1 bad line" in err
    assert "left out 9 of 27 triples: 9 of relations that are not asked for" in err


def test_help_has_them_in_a_panel_of_their_own(loginfer):
    for words in (["kg", "show"], ["rules", "rank"], ["build"], ["mine"]):
        code, out, _ = loginfer(*words, "--help-all")
        assert code == 0
        assert "Reading the graph" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--literals", "burn"], "unknown value of `--literals`"),
        (["--relations", "knowz"], "unknown relation `knowz`"),
        (["--columns", "xyz"], "is no order of columns"),
        (["--on-error", "hope"], "unknown value of `--on-error`"),
        (["--min-relation-size", "0"], "`--min-relation-size` must be at least 1"),
        (["--min-relation-size", "99"], "no triples are left"),
        (["--max-unpacked", "0"], "must be at least 1"),
    ],
)
@pytest.mark.parametrize("words", [["kg", "show"], ["build", "-p", "symmetry", "--out", "never"]])
def test_bad_values_are_one_clear_message(loginfer, tmp_path, words, options, message):
    (tmp_path / "g.tsv").write_text("ann\tknows\tbob\n")
    code, out, err = loginfer(*words[:1], *words[1:], tmp_path / "g.tsv", *options)
    assert (code, out) == (2, "")
    assert message in err


def test_how_much_may_be_unpacked_is_no_part_of_a_recipe(loginfer, graph, tmp_path):
    words = ["build", graph, "-p", "composition", "--k1", 1, "--min-new", 1, "--out", tmp_path / "bench", *OPTIONS]
    assert loginfer(*words)[0] == 0
    recipe = json.loads((tmp_path / "bench" / "manifest.json").read_text())["recipe"]
    assert recipe["on_error"] == "skip"
    assert "max_unpacked" not in recipe


def test_a_benchmark_is_mined_as_it_is(loginfer, graph, tmp_path):
    words = ["build", graph, "-p", "composition", "--k1", 1, "--min-new", 1, "--out", tmp_path / "bench", *OPTIONS]
    assert loginfer(*words)[0] == 0
    code, _, err = loginfer("mine", tmp_path / "bench", "--out", tmp_path / "r.txt", "--literals", "drop")
    assert code == 2
    assert "is a benchmark" in err


# -- files that stay on disk -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options"),
    [("ann\tknows\tbob\nann\thas\tx\n", ["--relations", "knows"]), ("s\tr\to\nann\tknows\tbob\n", [])],
    ids=["option", "header"],
)
def test_a_large_file_comes_into_memory_for_options_and_headers(loginfer, tmp_path, monkeypatch, text, options):
    monkeypatch.setattr(common, "OUT_OF_CORE_BYTES", 0)
    (tmp_path / "g.tsv").write_text(text)
    words = ["rules", "rank", tmp_path / "g.tsv", "-p", "(x,_R,y) -> (y,_R,x)", "--engine", "duckdb", "--json"]
    code, out, err = loginfer(*words, *options)
    assert code == 0
    assert "the whole graph comes into memory" in err
    assert [body["relations"] for body in json.loads(out)["bodies"]] == [["knows"]]


def test_a_database_refuses_a_file_with_a_header(tmp_path):
    (tmp_path / "g.tsv").write_text("head\trelation\ttail\nann\tknows\tbob\n")
    with pytest.raises(InputError, match="is a header"):
        DuckDBEngine.from_files([tmp_path / "g.tsv"], tmp_path / "db")


def test_parquet_columns_mean_the_same_to_a_database_as_to_the_reader(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"weight": ["1", "2"], "Target": ["b", "c"], "Source": ["a", "b"], "label": ["r", "r"]}
    pq.write_table(pa.table(columns), tmp_path / "g.parquet")
    with DuckDBEngine.from_files([tmp_path / "g.parquet"], tmp_path / "db") as stored:
        assert stored.graph.with_triples(stored.graph.triples) == load_graph(tmp_path / "g.parquet")
    pattern = parse_pattern("composition")
    assert open_engine(load_graph(tmp_path / "g.parquet")).rank_bodies(pattern).support.tolist() == [1]
