"""Files of every format, right and wrong."""

import errno
import gzip
import io
import os
import subprocess
import sys
import tarfile
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.errors import InputError, OutputError, UnknownNameError
from loginfer.kg import KnowledgeGraph
from loginfer.kg.formats import scan as chunks
from loginfer.kg.formats.base import ReadOptions, formats
from loginfer.kg.load import read_graph, write_graph

SKIP = ReadOptions(on_error="skip")
GRAPH = KnowledgeGraph.from_names(
    [("a", "r", "b"), ("b", "r", "c"), ("é", "/x/y", "a b"), ("a", "s", "a"), ("日本", "type", "T")]
)
ENDINGS = [".tsv", ".txt", ".nt", ".ttl", ".parquet"]
column = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0\ufeff"), min_size=1, max_size=5)
rows = st.lists(st.tuples(column, column, column), min_size=1, max_size=12)


def named(graph):
    return graph.names(graph.triples)


# -- every format ---------------------------------------------------------------------------------


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_graph_comes_back_as_it_went_and_the_bytes_are_always_the_same(tmp_path, ending, packing):
    first, second = tmp_path / f"one{ending}{packing}", tmp_path / f"two{ending}{packing}"
    write_graph(GRAPH, first)
    write_graph(GRAPH, second)
    loaded = read_graph(first)
    assert loaded.graph == GRAPH
    assert loaded.report.statements == loaded.report.triples == len(GRAPH)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([first.name, second.name])


def test_an_existing_file_is_replaced_only_when_asked_for(tmp_path):
    path = tmp_path / "g.tsv"
    path.write_text("precious")
    with pytest.raises(OutputError, match="exists already"):
        write_graph(GRAPH, path)
    assert path.read_text() == "precious"
    write_graph(GRAPH, path, force=True)
    assert read_graph(path).graph == GRAPH


def test_the_format_can_be_given_where_the_ending_says_nothing(tmp_path):
    write_graph(GRAPH, tmp_path / "graph.data", format="ntriples")
    assert read_graph(tmp_path / "graph.data", ReadOptions(format="ntriples")).graph == GRAPH
    with pytest.raises(OutputError, match="no known ending"):
        write_graph(GRAPH, tmp_path / "graph.xyz")
    with pytest.raises(UnknownNameError, match="did you mean `parquet`"):
        write_graph(GRAPH, tmp_path / "graph.xyz", format="parket")


@pytest.mark.parametrize("name", ["tsv", "ntriples", "turtle", "parquet"])
def test_a_file_without_an_ending_is_recognised_by_its_first_lines(tmp_path, name):
    path = tmp_path / "graph"
    graph = KnowledgeGraph.from_names([("http://x/a", "http://x/p", "http://x/b")])
    write_graph(graph, path, format=name)
    if name == "turtle":
        path.write_text("# comment\n@prefix x: <http://x/> .\nx:a x:p x:b .\n")
    assert read_graph(path).graph == graph


def test_formats_have_a_name_endings_and_a_description():
    rdf = {"ntriples", "nquads", "turtle", "trig", "rdfxml", "jsonld"}
    assert {f.name for f in formats()} == {"tsv", "csv", "parquet", "openke", *rdf}
    assert all(f.endings and f.description for f in formats())


@pytest.mark.parametrize("ending", ENDINGS)
def test_progress_is_told(tmp_path, ending):
    write_graph(GRAPH, tmp_path / f"g{ending}")
    told = []
    read_graph(tmp_path / f"g{ending}", progress=lambda *step: told.append(step))
    what, done, total = told[-1]
    assert what.startswith("reading ")
    assert done > 0
    assert total in (None, done)


# -- tab-separated columns ------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    triples=rows,
    order=st.permutations("sro").map("".join),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    mark=st.booleans(),
    blank=st.sampled_from(["", "  "]),
)
def test_columns_are_read_whatever_their_order_and_line_ends(tmp_path_factory, triples, order, end, last, mark, blank):
    path = tmp_path_factory.getbasetemp() / "columns.tsv"
    lines = ["\t".join(triple["sro".index(c)] for c in order) for triple in triples]
    text = ("\ufeff" if mark else "") + (end + blank + end).join(lines) + (end if last else "")
    path.write_bytes(text.encode())
    loaded = read_graph(path, ReadOptions(columns=order))
    assert sorted(named(loaded.graph)) == sorted(set(triples))
    assert list(loaded.graph.entities) == sorted({n for s, _, o in triples for n in (s, o)}, key=str.encode)
    assert loaded.report.statements == len(triples)
    assert loaded.report.duplicates == len(triples) - len(set(triples))


line = st.one_of(
    st.lists(st.binary(max_size=6).map(lambda b: b.translate(None, b"\t\n\r\0")), max_size=5).map(b"\t".join),
    st.tuples(column, column, column).map("\t".join).map(str.encode),
)


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(line, max_size=8))
def test_bad_lines_are_exactly_those_without_three_columns_of_text(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "lines.tsv"
    path.write_bytes(b"a\tb\tc\n" + b"\n".join(lines))
    good, bad = {("a", "b", "c")}, 0
    for text in lines:
        try:
            cells = text.decode().split("\t")
        except UnicodeDecodeError:
            cells = []
        if len(cells) == 3 and all(cells):
            good.add(tuple(cells))
        elif text.strip(b" "):
            bad += 1
    loaded = read_graph(path, SKIP)
    assert set(named(loaded.graph)) == good
    assert set(loaded.graph.entities) == {n for s, _, o in good for n in (s, o)}
    assert loaded.report.skipped == bad
    if bad:
        with pytest.raises(InputError, match=r"lines.tsv, line \d+: "):
            read_graph(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no triples"),
        (b"\n \n\r\n", "holds no triples"),
        (b"a\tb\tc\na\tb\n", r"g.tsv, line 2: expected 3 tab-separated columns, found 2"),
        (b"a\tb\tc\td\n", "line 1: expected 3 tab-separated columns, found 4"),
        (b"a b c\n", "line 1: expected 3 tab-separated columns, found 1"),
        (b"a\t\tc\n", "line 1: column 2 is empty"),
        (b"a\tb\t\r\n", "line 1: column 3 is empty"),
        (b"a\tb\tc\n\n\xe9\tb\tc\n", "line 3: .* is not valid UTF-8"),
        (bytes(range(256)), "is binary, not UTF-8 text"),
        ("a\tb\tc\n".encode("utf-16"), "UTF-16 text(.|\n)*iconv"),
        (gzip.compress(b"a\tb\tc\n", mtime=0), "gzip-compressed(.|\n)*end in .gz"),
        (b"PK\x03\x04....", "zip archive"),
    ],
)
def test_wrong_text_is_refused_with_its_line(tmp_path, content, message):
    path = tmp_path / "g.tsv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_graph(path)


def test_a_line_in_the_second_file_is_counted_from_that_files_beginning(tmp_path):
    (tmp_path / "train.txt").write_text("a\tb\tc\n" * 7)
    (tmp_path / "test.txt").write_text("a\tb\td\nx\n")
    with pytest.raises(InputError, match=r"test.txt, line 2: expected 3"):
        read_graph(tmp_path)
    report = read_graph(tmp_path, SKIP).report
    assert report.examples == (f"{tmp_path / 'test.txt'}, line 2: expected 3 tab-separated columns, found 1",)
    assert (report.statements, report.triples, report.duplicates, report.skipped) == (8, 2, 6, 1)


def test_only_bad_lines_are_no_graph(tmp_path):
    (tmp_path / "g.tsv").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"holds no triples, only 2 bad lines"):
        read_graph(tmp_path / "g.tsv", SKIP)
    (tmp_path / "g.tsv").write_bytes(b"a\tb\t\xff\n")
    with pytest.raises(InputError, match="holds no triples that can be read"):
        read_graph(tmp_path / "g.tsv", SKIP)


@pytest.mark.parametrize("columns", ["", "sr", "ssr", "sroo", "xyz"])
def test_an_order_of_columns_must_name_all_three(tmp_path, columns):
    (tmp_path / "g.tsv").write_text("a\tb\tc\n")
    with pytest.raises(InputError, match="no order of columns"):
        read_graph(tmp_path / "g.tsv", ReadOptions(columns=columns))


def test_many_names_and_long_lines_cross_the_borders_of_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 64)
    triples = [(f"s{i:05}" + "x" * (i % 97), f"r{i % 50}", f"o{i * 7 % 3001}") for i in range(6000)]
    triples.append(("long" * 5000, "r", "end"))
    (tmp_path / "g.tsv").write_text("\n".join("\t".join(t) for t in triples))
    graph = read_graph(tmp_path / "g.tsv").graph
    assert named(graph) == sorted(set(triples))
    write_graph(graph, tmp_path / "g.nt")
    assert read_graph(tmp_path / "g.nt").graph == graph


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 64)
    monkeypatch.setattr(chunks, "LONGEST_LINE", 2**20)
    (tmp_path / "g.tsv").write_bytes(b"a" * (2**21))
    with pytest.raises(InputError, match="a line is longer than 1 MB"):
        read_graph(tmp_path / "g.tsv")


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\rb", "", "\ufeffa", "a\0b"])
def test_names_that_columns_cannot_hold_are_refused(tmp_path, name):
    graph = KnowledgeGraph.from_names([("x", "r", "y"), (name, "r", "y")])
    with pytest.raises(OutputError, match="cannot hold the name"):
        write_graph(graph, tmp_path / "g.tsv")
    assert list(tmp_path.iterdir()) == []


# -- Parquet --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns", [("subject", "relation", "object"), ("s", "p", "o"), ("Head", "Relation", "Tail"), ("h", "r", "t")]
)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string())])
def test_parquet_columns_are_known_by_several_names_and_kinds(tmp_path, columns, kind):
    table = pa.table({c: pa.array(["b", "a", "b"]).cast(kind) for c in columns} | {"weight": [1, 2, 3]})
    pq.write_table(table, tmp_path / "g.parquet")
    loaded = read_graph(tmp_path / "g.parquet")
    assert named(loaded.graph) == [("a", "a", "a"), ("b", "b", "b")]
    assert loaded.report.duplicates == 1


def test_a_dictionary_with_unused_words_gives_no_names(tmp_path):
    words = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array(["never", "a"]))
    pq.write_table(pa.table([words] * 3, names=["s", "r", "o"]), tmp_path / "g.parquet")
    assert list(read_graph(tmp_path / "g.parquet").graph.entities) == ["a"]


@pytest.mark.parametrize("gap", ["", None])
@pytest.mark.parametrize("column", "sro")
def test_an_empty_cell_in_parquet_is_a_bad_row(tmp_path, gap, column):
    columns = {"s": ["a", "b"], "r": ["r", "r"], "o": ["c", "d"]}
    columns[column][1] = gap
    pq.write_table(pa.table(columns), tmp_path / "g.parquet")
    with pytest.raises(InputError, match="row 2 has an empty cell"):
        read_graph(tmp_path / "g.parquet")
    assert read_graph(tmp_path / "g.parquet", SKIP).report.skipped == 1


def test_wrong_parquet_is_refused(tmp_path):
    path = tmp_path / "g.parquet"
    pq.write_table(pa.table({"a": ["x"], "b": ["y"]}), path)
    with pytest.raises(InputError, match="expected columns subject, relation, object, found `a`, `b`"):
        read_graph(path)
    pq.write_table(pa.table({"s": [1], "r": ["y"], "o": ["z"]}), path)
    with pytest.raises(InputError, match="column `s` holds int64, expected strings"):
        read_graph(path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="no readable Parquet file"):
        read_graph(path)


def test_whatever_pyarrow_says_about_a_damaged_schema_is_an_error_of_the_input(tmp_path):
    path = tmp_path / "g.parquet"
    pq.write_table(pa.table({"subject": ["a"], "relation": ["r"], "object": ["b"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"subject", b"s\xffbject"))
    with pytest.raises(InputError, match=r"g.parquet: no readable Parquet file: .*utf-8"):
        read_graph(path)


# -- OpenKE ---------------------------------------------------------------------------------------


def openke(folder: Path, **files: str) -> Path:
    content = {
        "entity2id": "3\nann\t0\nbob smith\t2\ncy\t1\n",
        "relation2id": "2\nknows 1\nlikes 0\n",
        "train2id": "2\n0 1 0\n2 0 1\n",
        "test2id": "1\r\n1\t2\t1\r\n",
    }
    folder.mkdir(exist_ok=True)
    for name, text in (content | files).items():
        (folder / f"{name}.txt").write_bytes(text.encode())
    return folder


def test_openke_triples_are_head_tail_relation(tmp_path):
    graph = read_graph(openke(tmp_path)).graph
    assert named(graph) == [("ann", "likes", "cy"), ("bob smith", "knows", "ann"), ("cy", "knows", "bob smith")]
    assert named(read_graph(tmp_path / "test2id.txt").graph) == [("cy", "knows", "bob smith")]


@settings(max_examples=30, deadline=None)
@given(triples=rows)
def test_openke_folders_come_back_as_they_went(tmp_path_factory, triples):
    folder = tmp_path_factory.getbasetemp() / "openke"
    graph = KnowledgeGraph.from_names(triples)
    write_graph(graph, folder, format="openke", force=True)
    assert read_graph(folder).graph == graph


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train2id": "2\n0 1 0\n"}, "the first line says 2 triples, found 1"),
        ({"train2id": "1\n0 1 9\n"}, "triple 1, `0 1 9`, has a number without a name(.|\n)*head, tail, relation"),
        ({"train2id": "1\n0 1 x\n"}, "line 2: expected three numbers"),
        ({"train2id": "1\n0 1\n"}, "line 2: expected three numbers"),
        ({"train2id": "1\n0 1 0 0\n"}, "line 2: expected three numbers"),
        ({"train2id": "1\n0 1 99999999999999999999\n"}, "line 2: expected three numbers"),
        ({"train2id": "0 1 0\n"}, "train2id.txt, line 1: expected the number of lines"),
        ({"train2id": ""}, "train2id.txt, line 1: expected the number of lines"),
        ({"entity2id": "2\na\t0\n"}, "says 2 names, found 1"),
        ({"entity2id": "1\na\t0\nb\t0\n"}, "line 3: number 0 is given twice"),
        ({"entity2id": "1\na\t7\n"}, "line 2: number 7 is not below 1"),
        ({"entity2id": "1\na\n"}, "line 2: expected a name and a number"),
        ({"entity2id": ""}, "entity2id.txt, line 1: expected the number of lines"),
        ({"entity2id": "1\na\t" + "9" * 5000}, "line 2: number 9+… is not below 1"),
        ({"entity2id": "9" * 5000}, "line 1: expected the number of lines"),
        ({"train2id": "1\n0 1 " + "0" * 2**22}, "a line is longer than"),
        ({"relation2id": "x\n"}, "relation2id.txt, line 1: expected the number of lines"),
    ],
)
def test_wrong_openke_files_are_refused(tmp_path, files, message):
    with pytest.raises(InputError, match=message):
        read_graph(openke(tmp_path, **files))


def test_the_count_in_an_openke_file_takes_no_memory(tmp_path):
    openke(tmp_path, entity2id="100000000\na\t0\n")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="says 100000000 names, found 1"):
            read_graph(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


def test_openke_files_need_each_other(tmp_path):
    (tmp_path / "train2id.txt").write_text("1\n0 0 0\n")
    with pytest.raises(InputError, match=r"needs `entity2id.txt` beside it"):
        read_graph(tmp_path / "train2id.txt")
    with pytest.raises(InputError, match="holds names, not triples"):
        read_graph(openke(tmp_path) / "entity2id.txt")
    with pytest.raises(OutputError, match="one file of several"):
        write_graph(GRAPH, tmp_path / "new2id.txt")


# -- folders and archives -------------------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "data/"])
@pytest.mark.parametrize("names", [["train.txt", "valid.txt", "test.txt"], ["Train.TSV", "dev.tsv.gz", "test.tsv.zst"]])
@pytest.mark.parametrize("packed", ["", ".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip"])
def test_the_union_of_train_valid_and_test_is_the_graph(tmp_path, below, names, packed):
    folder = tmp_path / "kg"
    for k, name in enumerate(names):
        graph = KnowledgeGraph.from_names([("a", "r", "b"), ("a", "r", str(k))])
        write_graph(graph, folder / below / name.lower())
        (folder / below / name.lower()).rename(folder / below / name)
    (folder / "README.md").write_text("hello")
    path = folder if not packed else archived(folder, tmp_path / f"kg{packed}")
    loaded = read_graph(path)
    assert named(loaded.graph) == [("a", "r", "0"), ("a", "r", "1"), ("a", "r", "2"), ("a", "r", "b")]
    assert loaded.report.duplicates == 2
    assert [Path(f.split(":")[-1]).name for f in loaded.report.files] == names


def archived(folder: Path, path: Path) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(folder.rglob("*")):
                archive.write(file, file.relative_to(folder))
        return path
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        tar.add(folder, ".")
    content = plain.getvalue()
    if path.name.endswith(("gz", "tgz")):
        content = gzip.compress(content, mtime=0)
    if path.name.endswith("zst"):
        content = pa.Codec("zstd").compress(content, asbytes=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "no graph in folder .*; found nothing"),
        (["notes.md", "a.txt", "b.txt"], "found `a.txt`, `b.txt`, `notes.md`(.|\n)*expected train, valid and test"),
        (["a.nq", "b.nq"], "expected train, valid and test \\(.tsv, .txt, .csv, .*.nq, .*; also .gz, .zst"),
        (["train.txt", "train.tsv"], "two train files"),
        (["train.txt", "test.nt"], "different formats: `train.txt`, `test.nt`"),
        (["one/train.txt", "two/train.txt"], "several sets of train/valid/test"),
        (["deep/er/train.txt"], "no graph"),
    ],
)
def test_a_folder_of_another_layout_is_refused_with_what_was_found(tmp_path, files, message):
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a\tb\tc\n")
    with pytest.raises(InputError, match=message):
        read_graph(tmp_path)


def test_semicolons_between_quoted_cells_are_told_with_the_option_for_them(tmp_path):
    (tmp_path / "g.csv").write_text('"a";"b";"c"\n')
    with pytest.raises(InputError, match="--delimiter"):
        read_graph(tmp_path / "g.csv")


# -- trouble with the disk ------------------------------------------------------------------------


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(InputError, match="no file or folder"):
        read_graph(tmp_path / "missing.tsv")
    with pytest.raises(InputError, match="no file or folder"):
        read_graph(tmp_path / "missing.tar.gz")


def test_a_folder_with_the_name_of_a_file_is_told(tmp_path):
    (tmp_path / "g.tsv").mkdir()
    with pytest.raises(InputError, match="empty folder, not a file"):
        read_graph(tmp_path / "g.tsv")
    with pytest.raises(OutputError):
        write_graph(GRAPH, tmp_path / "g.tsv", force=True)


def test_a_file_that_may_not_be_read_is_told(tmp_path, monkeypatch):
    path = tmp_path / "g.tsv"
    path.write_text("a\tb\tc\n")
    if os.geteuid() == 0:  # root may read everything: let the system say what others would hear

        def refuse(self, *_args, **_more):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

        monkeypatch.setattr(Path, "open", refuse)
    else:
        path.chmod(0)
    with pytest.raises(InputError, match=r"cannot read .*permission denied"):
        read_graph(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.tsv.gz", gzip.compress(b"a\tb\tc\n" * 9, mtime=0)[:-9]),
        ("g.tsv.gz", gzip.compress(b"a\tb\tc\n", mtime=0)[:-8] + bytes(8)),
        ("g.tsv.gz", b"a\tb\tc\n"),
        ("g.tsv.gz", gzip.compress(b"", mtime=0)[:10] + b"\xff" * 20),
        ("g.nt.zst", b"no zstd"),
        ("g.nt.zst", pa.Codec("zstd").compress(b"<a:> <b:> <c:> .\n" * 99, asbytes=True)[:-9]),
        ("g.zip", b"no zip"),
        ("g.tar", b"no tar" * 200),
        ("g.tar", b""),
        ("g.tgz", b"no gzip"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_told(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        read_graph(tmp_path / name)


def test_n3_is_told_to_be_converted(tmp_path):
    (tmp_path / "g.n3").write_text("<a:> <b:> <c:> .\n")
    with pytest.raises(InputError, match="convert it to N-Triples"):
        read_graph(tmp_path / "g.n3")


def test_a_pipe_is_read_when_its_format_is_given(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="give its format"):
        read_graph(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a\tb\tc\n",))
    writer.start()
    told = []
    graph = read_graph(pipe, ReadOptions(format="tsv"), lambda *step: told.append(step)).graph
    writer.join()
    assert named(graph) == [("a", "b", "c")]
    assert told[-1][1:] == (6, None)


def test_text_of_no_known_kind_is_told(tmp_path):
    (tmp_path / "graph").write_text("a b c\n")
    with pytest.raises(InputError, match="cannot tell the format"):
        read_graph(tmp_path / "graph")


FILL = """
import resource, signal, sys
import numpy as np
from loginfer.errors import OutputError
from loginfer.kg import KnowledgeGraph, Vocabulary
from loginfer.kg.load import write_graph
random = np.random.default_rng(1).integers(0, 3000, (30000, 3), dtype=np.int32)
names = Vocabulary.of([f"name{i}" for i in range(3000)])
graph = KnowledgeGraph(names, names, random)
folder, spare, *endings = sys.argv[1:]
small = KnowledgeGraph(names, names, random[:1])
for ending in endings:  # kernels are compiled, and kept on disk, while there is room
    write_graph(small, spare + "/g" + ending, format="openke" if ending == "" else None)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
for ending in endings:
    try:
        write_graph(graph, folder + "/g" + ending, format="openke" if ending == "" else None, force=True)
    except OutputError as error:
        print(error.message)
"""


def test_a_disk_that_fills_up_leaves_nothing_behind(tmp_path, tmp_path_factory):
    # A limit on the size of files is a full disk for one process.
    endings = [".tsv", ".tsv.gz", ".nt.zst", ".ttl", ".parquet", ""]
    (tmp_path / "g.tsv").write_text("precious")
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(tmp_path), str(tmp_path_factory.mktemp("spare")), *endings],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    messages = done.stdout.splitlines()
    assert len(messages) == len(endings)
    assert all(m.startswith("cannot write `") and m.endswith("file too large") for m in messages)
    assert [p.name for p in tmp_path.iterdir()] == ["g.tsv"]
    assert (tmp_path / "g.tsv").read_text() == "precious"


# -- real graphs ----------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "triples", "entities", "relations", "first"),
    [("FB15k-237.tar.gz", 310_116, 14_541, 237, "/m/010016"), ("WN18RR.tar.gz", 93_003, 40_943, 11, "00001740")],
)
def test_real_graphs_have_their_known_sizes(name, triples, entities, relations, first):
    data = os.environ.get("LOGINFER_DATA")
    found = [p for d in (data or "").split(os.pathsep) if d and (p := Path(d) / name).exists()]
    if not found:
        pytest.skip(f"{name} is in no folder of LOGINFER_DATA")
    loaded = read_graph(found[0])
    graph = loaded.graph
    assert (len(graph), len(graph.entities), len(graph.relations)) == (triples, entities, relations)
    assert loaded.report.duplicates == loaded.report.skipped == 0
    assert graph.entities[0] == first
    assert np.array_equal(np.unique(graph.triples, axis=0), graph.triples)


def test_a_format_of_ones_own_is_read_and_written_by_the_same_doors(tmp_path, monkeypatch):
    from loginfer.kg import Format, register_format
    from loginfer.kg.formats import base

    def read(sources, builder, options, progress):
        for source in sources:
            builder.begin(source.name)
            with source.open() as (stream, _):
                rows = [line.split(b" ") for line in stream.read().splitlines()]
            columns = zip(*rows, strict=True)
            tables = (builder.entities, builder.relations, builder.entities)
            builder.add_ids(*(t.intern_texts(c) for t, c in zip(tables, columns, strict=True)))

    def write(graph, stream):
        stream.writelines(" ".join(triple).encode() + b"\n" for triple in graph.names(graph.triples))

    formats()
    monkeypatch.setattr(base, "_FORMATS", [*base._FORMATS])
    register_format(Format("spaced", (".spaced",), "names with spaces in between", read, write))
    graph = KnowledgeGraph.from_names([("ann", "knows", "bob"), ("bob", "knows", "cem")])
    write_graph(graph, tmp_path / "g.spaced")
    assert (tmp_path / "g.spaced").read_text() == "ann knows bob\nbob knows cem\n"
    assert read_graph(tmp_path / "g.spaced").graph == graph
    assert [f.name for f in formats()][-1] == "spaced"
