"""Graphs that stay on disk: from files into a database, and what is left behind."""

from __future__ import annotations

import gzip

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.engine.duckdb import DuckDBEngine, DuckDBSession, translated_errors
from loginfer.errors import InputError, LimitError, OutputError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.dialects.arrow import parse_pattern, parse_rule

TRIPLES = [
    ("zoé", "knows", "Anna"),
    ("Anna", "knows", "_b"),
    ("Anna", "knows", "Anna"),
    ("\U0001f600", "likes", "\uffff"),
    ("Anna", "rdf:type", "Person"),
    ("10", "likes", "9"),
    ('"quoted"', "it's", "#hash"),
]
COMPOSITION = parse_rule("(x,knows,y), (y,knows,z) -> (x,likes,z)")


def tsv(triples, end="\n") -> bytes:
    return "".join("\t".join(t) + end for t in triples).encode()


def test_files_give_the_ids_and_answers_of_the_graph_in_memory(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"\xef\xbb\xbf" + tsv(TRIPLES[:3], "\r\n") + b"\r\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(tsv(TRIPLES[2:5]), mtime=0))
    with pa.output_stream(tmp_path / "c.tsv.zst", compression="zstd") as stream:
        stream.write(tsv(TRIPLES[5:6]))
    columns = dict(zip(("head", "relation", "tail"), zip(*TRIPLES[6:], strict=True), strict=True))
    pq.write_table(pa.table({k: list(v) for k, v in columns.items()}), tmp_path / "d.parquet")
    paths = [tmp_path / name for name in ("a.tsv", "b.txt.gz", "c.tsv.zst", "d.parquet")]
    expected = KnowledgeGraph.from_names(TRIPLES)
    with DuckDBEngine.from_files(paths, tmp_path / "graph.db") as engine:
        graph = engine.graph
        assert "triples" not in vars(graph)
        assert graph.entities == expected.entities
        assert graph.relations == expected.relations
        assert graph.type_predicate == "rdf:type"
        assert len(graph) == len(expected) == 7
        for part in ("preds", "rels", "types", "consts"):
            assert getattr(graph, part).tolist() == getattr(expected, part).tolist()
        asked = np.array([*expected.triples[::2], [0, 0, 0]], dtype=np.int32)
        assert graph.contains(asked).tolist() == expected.contains(asked).tolist()
        with DuckDBEngine(expected) as other:
            assert np.array_equal(engine.conclusions(COMPOSITION), other.conclusions(COMPOSITION))
            pattern = parse_pattern("(x,_R,y), (x,type,_t) -> (y,type,_t)")
            assert np.array_equal(engine.rank_bodies(pattern).predicates, other.rank_bodies(pattern).predicates)
        assert "triples" not in vars(graph)  # nothing so far needed them in memory
        assert np.array_equal(graph.triples, expected.triples)
        assert graph == expected
    with DuckDBEngine.open(tmp_path / "graph.db") as engine:
        assert engine.graph == expected


names = st.text(st.characters(exclude_characters="\t\n\r\0\ufeff", exclude_categories=["Cs"]), min_size=1, max_size=3)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.tuples(names, names, names), max_size=8))
def test_ids_follow_the_bytes_of_any_names(tmp_path_factory, triples):
    folder = tmp_path_factory.mktemp("names")
    (folder / "graph.tsv").write_bytes(tsv(triples))
    with DuckDBEngine.from_files([folder / "graph.tsv"], folder / "graph.db", threads=1) as engine:
        assert engine.graph == KnowledgeGraph.from_names(triples)


def test_vocabularies_can_hold_more_names_than_the_files(tmp_path):
    (tmp_path / "graph.tsv").write_bytes(tsv(TRIPLES))
    rule = parse_rule("(x,knows,y) -> (x,befriended,Nobody)")
    with DuckDBEngine.from_files(
        [tmp_path / "graph.tsv"], tmp_path / "graph.db", entities=["Nobody"], relations=["befriended"]
    ) as engine:
        assert engine.graph.names(engine.conclusions(rule)) == [
            ("Anna", "befriended", "Nobody"),
            ("zoé", "befriended", "Nobody"),
        ]
        assert len(engine.materialise([rule])) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\tc\na\tb\n", r"graph\.tsv:2: expected three columns, separated by tabs, found 2"),
        (b"a\tb\tc\td\n", r"graph\.tsv:1: expected three columns, separated by tabs, found 4"),
        (b"a\tb\tc\n\n\xff\xfe\tb\tc\n", r"graph\.tsv:\d+: expected three columns, .* in UTF-8"),
        (b"a\t\tc\n", "empty subject, relation or object"),
    ],
)
def test_a_line_that_is_no_triple_is_named_and_nothing_is_left(tmp_path, content, message):
    (tmp_path / "graph.tsv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        DuckDBEngine.from_files([tmp_path / "graph.tsv"], tmp_path / "graph.db", directory=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["graph.tsv"]


@pytest.mark.parametrize("gap", ["", None])
def test_an_empty_cell_of_parquet_is_refused(tmp_path, gap):
    pq.write_table(pa.table({"s": ["a", "b"], "r": ["r", "r"], "o": ["c", gap]}), tmp_path / "graph.parquet")
    with pytest.raises(InputError, match=r"1 triples in .* have an empty subject, relation or object"):
        DuckDBEngine.from_files([tmp_path / "graph.parquet"], tmp_path / "graph.db", directory=tmp_path)


def test_files_that_are_not_what_they_should_be_are_refused(tmp_path):
    (tmp_path / "graph.nt").write_bytes(b"<a> <b> <c> .\n")
    (tmp_path / "junk.db").write_bytes(b"junk" * 10_000)
    pq.write_table(pa.table({"s": [1], "r": [2], "o": [3]}), tmp_path / "numbers.parquet")
    pq.write_table(pa.table({"s": ["1"], "x": ["2"]}), tmp_path / "two.parquet")
    duckdb.connect(str(tmp_path / "other.db")).close()
    made = tmp_path / "made.db"
    for path, message in (
        ("graph.nt", "unknown file ending"),
        ("missing.tsv", "no file"),
        ("numbers.parquet", "holds INTEGER|holds BIGINT"),
        ("two.parquet", "expected columns"),
    ):
        with pytest.raises(InputError, match=message):
            DuckDBEngine.from_files([tmp_path / path], made)
    with pytest.raises(InputError, match="holds no graph"):
        DuckDBEngine.open(tmp_path / "other.db")
    with pytest.raises(OutputError, match="not a valid DuckDB database"):
        DuckDBEngine.open(tmp_path / "junk.db")
    with pytest.raises(InputError, match="no file"):
        DuckDBEngine.open(tmp_path / "missing.db")
    with pytest.raises(OutputError, match="exists already"):
        DuckDBEngine.from_files([tmp_path / "graph.nt"], tmp_path / "junk.db")


def test_an_existing_database_is_replaced_only_by_a_complete_one(tmp_path):
    good, bad, made = tmp_path / "good.tsv", tmp_path / "bad.tsv", tmp_path / "graph.db"
    good.write_bytes(tsv(TRIPLES))
    bad.write_bytes(b"a\n")
    DuckDBEngine.from_files([good], made).close()
    with pytest.raises(InputError):
        DuckDBEngine.from_files([bad], made, force=True)
    with DuckDBEngine.open(made) as engine:
        assert len(engine.graph) == 7


def test_closing_removes_what_was_put_on_disk(tmp_path):
    graph = KnowledgeGraph.from_names(TRIPLES)
    with DuckDBEngine(graph, directory=tmp_path / "work", memory_limit="200MB", threads=1) as engine:
        assert len(list((tmp_path / "work").glob("*/graph.duckdb"))) == 1
        assert engine.support(COMPOSITION) == 4
    assert list((tmp_path / "work").iterdir()) == []
    engine.close()  # once more is fine
    forgotten = DuckDBEngine(graph, directory=tmp_path / "work")
    del forgotten
    assert list((tmp_path / "work").iterdir()) == []


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot make a folder"):
        DuckDBEngine(KnowledgeGraph.from_names(TRIPLES), directory=tmp_path / "file" / "inside")


def test_running_out_of_memory_and_disk_says_what_to_do(tmp_path):
    session = DuckDBSession(memory_limit="20MB", threads=1, directory=tmp_path)
    try:
        session.rows("SET max_temp_directory_size = '1MB'")
        with pytest.raises(LimitError, match="memory or of space") as caught:
            session.create("large", "SELECT hash(range) AS h, range AS r FROM range(5000000) ORDER BY h")
        assert "directory with more free space" in str(caught.value)
        assert session.row("SELECT 1") == (1,)
    finally:
        session.close()


@pytest.mark.parametrize("kind", [duckdb.IOException, duckdb.TransactionException])
def test_a_full_disk_says_what_to_do(kind):
    with pytest.raises(OutputError, match="No space left on device") as caught, translated_errors():
        raise kind('Could not write file "x": No space left on device\nmore')
    assert "is the disk full?" in str(caught.value)


def test_other_mistakes_are_not_taken_for_a_full_disk():
    with pytest.raises(duckdb.ParserException), translated_errors():
        raise duckdb.ParserException("syntax error")


def test_a_join_larger_than_memory_spills_to_disk(tmp_path):
    # The conclusions alone need more than the memory given.
    into = [(f"a{i}", "R", f"h{i % 3}") for i in range(2400)]
    out = [(f"h{i % 3}", "S", f"b{i}") for i in range(2400)]
    graph = KnowledgeGraph.from_names([*into, *out])
    rule = parse_rule("(x,R,y), (y,S,z) -> (x,R,z)")
    with DuckDBEngine(graph, memory_limit="24MB", threads=1, directory=tmp_path) as engine:
        engine._session.rows("SET max_temp_directory_size = '0KB'")
        with pytest.raises(LimitError, match="memory or of space"):
            engine.conclusions(rule)
        engine._session.rows("SET max_temp_directory_size = '1GB'")
        assert len(engine.conclusions(rule)) == 1_920_000
        assert engine.support(rule) == 1_920_000
