"""Graphs that stay in files for Spark: how they get there, and what is left behind."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loginfer.engine import open_engine
from loginfer.engine.native.engine import NativeEngine
from loginfer.engine.spark.engine import SparkEngine
from loginfer.errors import InputError, OutputError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.dialects.arrow import parse_pattern, parse_rule

pytestmark = pytest.mark.usefixtures("spark")

TRIPLES = [
    ("zoé", "knows", "Anna"),
    ("Anna", "knows", "_b"),
    ("Anna", "knows", "Anna"),
    ("\U0001f600", "likes", "\uffff"),
    ("Anna", "rdf:type", "Person"),
    ("10", "likes", "9"),
    ('"quoted"', "it's", "#hash"),
    ("back\\slash", "likes", " space "),
]
COMPOSITION = parse_rule("(x,knows,y), (y,knows,z) -> (x,likes,z)")


def tsv(triples, end="\n") -> bytes:
    return "".join("\t".join(t) + end for t in triples).encode()


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    """A store of a few files, in a folder whose name Spark would take for a pattern."""
    folder = tmp_path_factory.mktemp("files") / "some [files] {here}"
    folder.mkdir()
    (folder / "a.tsv").write_bytes(b"\xef\xbb\xbf" + tsv(TRIPLES[:3], "\r\n") + b"\r\n")
    (folder / "b.txt.gz").write_bytes(gzip.compress(tsv(TRIPLES[2:6]), mtime=0))
    columns = dict(zip(("head", "relation", "tail"), zip(*TRIPLES[6:], strict=True), strict=True))
    pq.write_table(pa.table({k: list(v) for k, v in columns.items()}), folder / "c.parquet")
    paths = [folder / name for name in ("a.tsv", "b.txt.gz", "c.parquet")]
    made = folder / "store"
    SparkEngine.from_files(paths, made, entities=["aardvark"], relations=["type", "zzz"]).close()
    return made


def test_a_store_has_the_ids_and_answers_of_the_graph_in_memory(store):
    expected = KnowledgeGraph.from_names(TRIPLES).with_names(entities=["aardvark"], relations=["zzz"])
    native = NativeEngine(expected)
    with SparkEngine.open(store) as engine:
        graph = engine.graph
        assert graph.entities == expected.entities
        assert graph.relations == expected.relations
        assert graph.type_predicate == "rdf:type"
        assert len(graph) == len(expected) == 8
        for part in ("preds", "types", "consts", "looped"):
            assert getattr(graph, part).tolist() == getattr(expected, part).tolist()
        knows = expected.relation_id("knows")
        assert [side.tolist() for side in graph.sides(knows)] == [side.tolist() for side in expected.sides(knows)]
        asked = np.array([*expected.triples[::2], [0, 0, 0]], dtype=np.int32)
        assert graph.contains(asked).tolist() == expected.contains(asked).tolist()
        assert np.array_equal(engine.conclusions(COMPOSITION), native.conclusions(COMPOSITION))
        pattern = parse_pattern("(x,_R,y), (x,type,_t) -> (y,type,_t)")
        assert np.array_equal(engine.rank_bodies(pattern).predicates, native.rank_bodies(pattern).predicates)
        assert "triples" not in vars(graph)  # nothing so far needed them in memory
        more = graph.with_more(np.array([[0, 0, 0]], dtype=np.int32))
        assert len(more) == 9
        over_more = open_engine(more, "spark")
        assert over_more.support(parse_rule(f"(x,{expected.relations[0]},x) -> (x,knows,x)")) == 1
        assert graph == expected


def test_a_store_has_one_folder_a_relation(store):
    about = json.loads((store / "about.json").read_text())
    assert about == {"format": 1, "type": "rdf:type", "entities": 13, "relations": 5, "triples": 8}
    folders = sorted(path.name for path in (store / "triples").iterdir() if path.is_dir())
    assert folders == [f"r={i}" for i in range(4)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("two.tsv", b"a\tb\tc\n\na\tb\n", r"two.tsv:3: expected three columns, separated by tabs, found 2"),
        ("bytes.tsv", b"a\tb\tc\r\na\tb\t\xff\n", r"bytes.tsv:2: expected UTF-8"),
        ("hole.tsv", b"a\t\tc\n", r"hole.tsv:1: column 2 is empty"),
        ("graph.nt", b"", "unknown file ending"),
        ("missing.tsv", None, "no file"),
    ],
)
def test_files_that_cannot_be_read_leave_nothing_behind(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=message):
        SparkEngine.from_files([tmp_path / name], tmp_path / "store")
    assert sorted(tmp_path.iterdir()) == before


def test_parquet_of_other_columns_is_refused(tmp_path):
    pq.write_table(pa.table({"s": [1], "r": [2], "o": [3]}), tmp_path / "numbers.parquet")
    pq.write_table(pa.table({"s": ["a"], "o": ["b"]}), tmp_path / "two.parquet")
    for name, message in (("numbers", "holds bigint"), ("two", "expected columns")):
        with pytest.raises(InputError, match=message):
            SparkEngine.from_files([tmp_path / f"{name}.parquet"], tmp_path / "store")


def test_an_unfinished_or_foreign_folder_is_refused(store, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    for folder, message in (("missing", "no folder"), ("other", "no graph for Spark, or an unfinished one")):
        with pytest.raises(InputError, match=message):
            SparkEngine.open(tmp_path / folder)
    with pytest.raises(OutputError, match="exists already"):
        SparkEngine.from_files([], store)
    with pytest.raises(OutputError, match="other things"):
        SparkEngine.from_files([], tmp_path / "other", force=True)
    short = tmp_path / "short"
    short.mkdir()
    for part in ("entities", "relations", "triples"):
        (short / part).symlink_to(store / part)
    about = json.loads((store / "about.json").read_text())
    for key in ("entities", "triples"):
        (short / "about.json").write_text(json.dumps({**about, key: about[key] + 1}))
        with pytest.raises(InputError, match=f"of {about[key] + 1} {key} are there"):
            SparkEngine.open(short)
    (short / "about.json").write_text(json.dumps({**about, "format": 2}))
    with pytest.raises(InputError, match="has format 2"):
        SparkEngine.open(short)


def test_closing_removes_what_was_put_on_disk(tmp_path):
    graph = KnowledgeGraph.from_names(TRIPLES)
    with SparkEngine(graph, directory=tmp_path / "it's here") as engine:
        assert len(list((tmp_path / "it's here").iterdir())) == 1
        assert engine.support(COMPOSITION) == 4
    assert list((tmp_path / "it's here").iterdir()) == []
    engine.close()  # once more is fine
    forgotten = SparkEngine(graph, directory=tmp_path / "it's here")
    del forgotten
    assert list((tmp_path / "it's here").iterdir()) == []
