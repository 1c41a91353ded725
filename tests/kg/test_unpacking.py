"""Files that unpack to far more than they are: one limit for all readers, an option that lifts it, little memory."""

import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loginfer.errors import InputError, LimitError
from loginfer.evaluation.score_files import read_score_table
from loginfer.kg import load_graph
from loginfer.kg.formats.base import COMPRESSIONS, ReadOptions, UnpackLimits, compressed
from loginfer.kg.formats.parquet import ParquetFile
from loginfer.kg.load import read_graph

LONG = b"x" * 1000
LINE = b"\t".join([LONG] * 3) + b"\n"
STATEMENT = b"<a:%s> <a:%s> <a:%s> .\n" % (LONG, LONG, LONG)


def packed(path, content, times=1):
    with path.open("wb") as raw, compressed(raw, path.name) as stream:
        for _ in range(times):
            stream.write(content)
    return path


def plain_parquet(rows):
    stream = io.BytesIO()
    table = pa.table({name: [LONG.decode()] * rows for name in "sro"})
    pq.write_table(table, stream, use_dictionary=False, compression="none")
    return stream.getvalue()


CONTENTS = {
    ".tsv": LINE * 100,
    ".csv": LINE.replace(b"\t", b",") * 100,
    ".nt": STATEMENT * 100,
    ".nq": STATEMENT * 100,
    ".ttl": STATEMENT * 100,
    ".trig": STATEMENT * 100,
    ".parquet": plain_parquet(100),
}


@pytest.mark.parametrize("packing", COMPRESSIONS)
@pytest.mark.parametrize("ending", CONTENTS)
def test_every_reader_of_a_compressed_file_counts_what_comes_out(tmp_path, monkeypatch, ending, packing):
    path = packed(tmp_path / f"g{ending}{packing}", CONTENTS[ending])
    assert len(CONTENTS[ending]) > 100 * path.stat().st_size
    assert read_graph(path).report.statements == 100  # small, however well it packs
    for limits, why in (
        (UnpackLimits(total_bytes=200_000), ""),
        (UnpackLimits(ratio=9, small_bytes=9), ", over 9 times"),
    ):
        monkeypatch.setattr(UnpackLimits, "of", lambda options, limits=limits: limits)
        message = rf"g{ending}{packing}` unpacks to more than [\d.]+ MiB{why}(.|\n)*--max-unpacked"
        with pytest.raises(LimitError, match=message):
            read_graph(path)


def test_the_names_of_openke_are_counted_too(tmp_path, monkeypatch):
    packed(tmp_path / "entity2id.txt.gz", b"1000\n" + b"".join(b"%s%d\t%d\n" % (LONG, i, i) for i in range(1000)))
    (tmp_path / "relation2id.txt").write_text("1\nr\t0\n")
    (tmp_path / "train2id.txt").write_text("1\n0 1 0\n")
    assert len(read_graph(tmp_path).graph) == 1
    monkeypatch.setattr(UnpackLimits, "of", lambda options: UnpackLimits(total_bytes=500_000))
    with pytest.raises(LimitError, match=r"entity2id.txt.gz` unpacks to more than"):
        read_graph(tmp_path)


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """Return 300 MB of equal lines in some hundred kilobytes."""
    return packed(tmp_path_factory.mktemp("bomb") / "bomb.tsv.zst", LINE * 100, 1000)


def test_an_option_lets_an_honest_file_of_any_ratio_pass(bomb):
    with pytest.raises(LimitError, match="unpacks to more than 256 MiB, over 1,000 times its size"):
        load_graph(bomb)
    assert read_graph(bomb, ReadOptions(max_unpacked=1)).report.statements == 100_000
    with pytest.raises(InputError, match="`max_unpacked` must be at least 1"):
        ReadOptions(max_unpacked=0)


def test_where_no_option_lifts_the_limit_none_is_named(bomb):
    with pytest.raises(LimitError, match=r"unpack it yourself$"):
        read_score_table(bomb)


def test_turtle_is_read_piece_by_piece(tmp_path):
    path = packed(tmp_path / "g.ttl.zst", b"#" + LONG * 100 + b"\n", 300)
    with path.open("ab") as raw, compressed(raw, "g.zst") as stream:
        stream.write(b"[] <a:r> _:deadbeef1, _:anon .")
    tracemalloc.start()
    try:
        graph = read_graph(path).graph
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
    assert graph.names(graph.triples) == [("_:anonx_1", "a:r", "_:anon"), ("_:anonx_1", "a:r", "_:deadbeef1")]


@pytest.mark.parametrize("space", range(0, 40, 3))
def test_labels_on_the_border_of_two_pieces_are_seen(tmp_path, monkeypatch, space):
    monkeypatch.setattr("loginfer.kg.formats.turtle.PIECE", 40)
    path = tmp_path / "g.ttl"
    path.write_text(" " * space + "[] <a:r> _:deadbeef01234567, _:anonxx .")
    graph = read_graph(path).graph
    assert set(graph.entities) == {"_:anonxxx_1", "_:deadbeef01234567", "_:anonxx"}


def repeated(path, rows, word="a"):
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int8)), pa.array([word]))
    pq.write_table(pa.table([column] * 3, names=["s", "r", "o"]), path, compression="zstd", row_group_size=2**24)
    return path


def test_equal_rows_in_parquet_count_as_what_they_take_in_memory(tmp_path):
    with pytest.raises(LimitError, match=r"unpacks to more than .* over 1,000 times its size(.|\n)*--max-unpacked"):
        read_graph(repeated(tmp_path / "g.parquet", 30_000_000))
    report = read_graph(repeated(tmp_path / "g.parquet", 1_000_000)).report
    assert (report.statements, report.triples) == (1_000_000, 1)


def test_a_long_text_in_many_rows_of_parquet_is_held_once(tmp_path):
    path = repeated(tmp_path / "g.parquet", 2000, "x" * 10**6)
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        assert len(read_graph(path).graph) == 1
        with ParquetFile(path, path) as file:
            file.read()
        assert pool.max_memory() < 10**8
    finally:
        pa.set_memory_pool(before)


def test_a_member_of_a_zip_that_asks_for_much_memory_is_refused(tmp_path):
    path = tmp_path / "g.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("train.tsv", b"a\tr\tb\n")
    with pytest.raises(InputError, match=r"train.tsv`: it is compressed in an unusual way"):
        read_graph(path)


def test_a_gzip_file_of_many_parts_is_counted_as_one(tmp_path, monkeypatch):
    path = tmp_path / "g.tsv.gz"
    path.write_bytes(gzip.compress(LINE * 100, mtime=0) * 5)
    monkeypatch.setattr(UnpackLimits, "of", lambda options: UnpackLimits(total_bytes=4 * len(LINE) * 100))
    with pytest.raises(LimitError, match="unpacks to more than"):
        read_graph(path)
