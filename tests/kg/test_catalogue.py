"""Graphs by name: where they are looked for, when they are downloaded, and what is refused."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import tarfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from loginfer.benchmark import load_benchmark
from loginfer.errors import DownloadError, InputError, LimitError, UnknownNameError
from loginfer.kg import RDF_TYPE, catalogue
from loginfer.kg.catalogue import Entry, entries, fetch, find, locate, open_graph
from loginfer.kg.formats.base import ReadOptions, UnpackLimits

TRIPLES = {"train": "a\tR\tb\nb\tR\tc\n", "valid": "a\tS\tc\n", "test": "c\tS\ta\n"}


def archive(members):
    """Make a .tar.gz of (name or TarInfo, bytes)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for member, content in members:
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


GOOD = archive([(f"{part}.txt", text.encode()) for part, text in TRIPLES.items()])


def entry_of(content, address="https://example.invalid/small.tar.gz"):
    return Entry(
        name="small",
        description="four triples",
        triples=4,
        address=address,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Two folders of the user's, and an empty cache; nothing else is looked at."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    cache = tmp_path / "cache"
    monkeypatch.setenv("LOGINFER_DATA", os.pathsep.join(map(str, folders)))
    monkeypatch.setattr(catalogue, "cache_folder", lambda: cache)
    return (*folders, cache)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Serve bytes at an address; returns the address."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def publish(content):
            (folder / "small.tar.gz").write_bytes(content)
            return f"http://127.0.0.1:{server.server_port}/small.tar.gz"

        yield publish
        server.shutdown()
        thread.join()


# -- what is in it ------------------------------------------------------------------------------------


def test_the_catalogue_says_all_that_is_needed_to_check_a_download():
    assert {"fb15k-237", "wn18rr", "codex-s", "umls", "grail-nell-v1-ind", "lubm"} <= {e.name for e in entries()}
    for entry in entries():
        assert entry.description
        assert entry.citation
        assert entry.licence
        if not entry.generated:
            for address, below, size, sha256 in entry.downloads:
                assert address.startswith("https://raw.githubusercontent.com/")
                assert below.endswith((".tar.gz", ".zip", ".txt"))
                assert size > 0
                assert len(bytes.fromhex(sha256)) == 32


def test_names_are_found_in_capitals_or_not():
    assert find("FB15K-237") is find("fb15k-237")
    assert find("WN18RR").triples == 93_003


def test_an_unknown_name_comes_with_the_nearest_ones():
    with pytest.raises(UnknownNameError, match="fb15k237") as caught:
        find("fb15k237")
    assert caught.value.nearest == ["fb15k-237"]


@pytest.mark.parametrize(
    ("name", "universities", "seed"),
    [("lubm", 1, 0), ("lubm-10", 10, 0), ("LUBM(2)", 2, 0), ("lubm(1,7)", 1, 7), ("lubm( 3 , 4 )", 3, 4)],
)
def test_lubm_has_universities_and_a_seed_in_its_name(name, universities, seed):
    entry = find(name)
    assert entry.generated
    assert (entry.universities, entry.seed) == (universities, seed)
    assert (entry.triples == 100_543) == (universities == 1 and seed == 0)


@pytest.mark.parametrize("name", ["lubm(", "lubm()", "lubm-", "lubm(1,2,3)", "lubm(x)", "lubm-1,0"])
def test_a_malformed_lubm_is_an_unknown_name(name):
    with pytest.raises(UnknownNameError):
        find(name)


# -- where graphs are ---------------------------------------------------------------------------------


def test_the_users_folders_come_first_in_their_order_then_the_cache(places):
    first, second, cache = places
    entry = entry_of(GOOD)
    assert locate(entry) is None
    for folder in (cache, second, first):
        folder.mkdir(exist_ok=True)
        (folder / "small.tar.gz").write_bytes(GOOD)
        assert locate(entry) == folder / "small.tar.gz"


def test_without_the_variable_only_the_cache_is_looked_at(places, monkeypatch):
    first, _, cache = places
    (first / "small.tar.gz").write_bytes(GOOD)
    monkeypatch.delenv("LOGINFER_DATA")
    assert locate(entry_of(GOOD)) is None
    cache.mkdir()
    (cache / "small.tar.gz").write_bytes(GOOD)
    assert locate(entry_of(GOOD)) == cache / "small.tar.gz"
    assert catalogue.data_folders() == []


def test_the_cache_is_a_folder_of_the_user(monkeypatch):
    monkeypatch.undo()
    assert catalogue.cache_folder().is_absolute()
    assert "loginfer" in catalogue.cache_folder().parts


# -- opening ------------------------------------------------------------------------------------------


def test_a_graph_at_hand_is_the_union_of_its_parts(places):
    (places[1] / "small.tar.gz").write_bytes(GOOD)
    graph = open_graph(entry_of(GOOD)).graph
    assert len(graph) == 4
    assert list(graph.entities) == ["a", "b", "c"]
    assert list(graph.relations) == ["R", "S"]


def test_a_path_that_exists_comes_before_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lubm").mkdir()
    (tmp_path / "lubm" / "train.txt").write_text("a\tR\tb\n")
    assert len(open_graph("lubm").graph) == 1
    assert len(open_graph(tmp_path / "lubm").graph) == 1


def test_an_archive_with_another_checksum_is_not_read(places):
    first, _, cache = places
    bad = archive([("train.txt", b"x\tR\ty\n")])
    entry = entry_of(GOOD)
    (first / "small.tar.gz").write_bytes(bad)
    with pytest.raises(InputError) as caught:
        open_graph(entry)
    assert hashlib.sha256(bad).hexdigest() in caught.value.message
    assert entry.sha256 in caught.value.message
    assert "replace it" in caught.value.hint
    (first / "small.tar.gz").unlink()
    cache.mkdir()
    (cache / "small.tar.gz").write_bytes(bad)
    with pytest.raises(InputError, match="is not `small` as published") as caught:
        open_graph(entry)
    assert caught.value.hint == "run: loginfer kg fetch small --force"


def test_a_graph_that_is_not_here_says_how_to_get_it():
    with pytest.raises(InputError, match="`wn18rr` is not on this machine") as caught:
        open_graph("wn18rr")
    assert "run: loginfer kg fetch wn18rr" in caught.value.hint
    assert "LOGINFER_DATA" in caught.value.hint


def test_neither_a_file_nor_a_name_offers_the_nearest_name():
    with pytest.raises(InputError, match="no file or folder `wn18r`") as caught:
        open_graph("wn18r")
    assert "did you mean `wn18rr`" in caught.value.hint


def test_a_place_that_cannot_be_looked_at_is_an_error_that_names_it(monkeypatch):
    impossible = "/" + "x" * 5_000
    with pytest.raises(InputError, match="cannot read `/xxx"):
        open_graph(impossible)
    monkeypatch.setenv("LOGINFER_DATA", impossible)
    with pytest.raises(InputError, match="cannot read `/xxx"):
        open_graph("wn18rr")


def test_nothing_is_downloaded_without_a_yes(serve, places):
    entry = entry_of(GOOD, serve(GOOD))
    questions = []

    def no(question):
        questions.append(question)
        return False

    for confirm in (None, no):
        with pytest.raises(InputError, match="not on this machine"):
            open_graph(entry, confirm=confirm)
    assert len(questions) == 1
    assert entry.address in questions[0]
    assert not places[2].exists()


def test_after_a_yes_it_is_downloaded_once(serve, places):
    entry = entry_of(GOOD, serve(GOOD))
    assert len(open_graph(entry, confirm=lambda question: True).graph) == 4
    assert (places[2] / "small.tar.gz").read_bytes() == GOOD

    def never(question):
        raise RuntimeError("nobody should be asked")

    assert len(open_graph(entry, confirm=never).graph) == 4


def test_lubm_is_generated_with_the_size_in_its_name():
    loaded = open_graph("lubm")
    assert len(loaded.graph) == 100_543
    assert loaded.graph.type_predicate == RDF_TYPE
    assert len(open_graph("lubm(1,7)").graph) == 137_899


def test_the_type_predicate_of_lubm_can_be_switched_off():
    graph = open_graph("lubm", ReadOptions(type_predicate="")).graph
    assert graph.type_predicate is None
    assert len(graph.rels) == 17


# -- fetching -----------------------------------------------------------------------------------------


def test_fetching_downloads_into_the_cache_with_progress(serve, places):
    seen = []
    path = fetch(entry_of(GOOD, serve(GOOD)), progress=lambda *args: seen.append(args))
    assert path == places[2] / "small.tar.gz"
    assert path.read_bytes() == GOOD
    assert seen[-1] == ("downloading small.tar.gz", len(GOOD), len(GOOD))


def test_fetching_what_is_here_needs_no_network(places):
    (places[0] / "small.tar.gz").write_bytes(GOOD)
    assert fetch(entry_of(GOOD)) == places[0] / "small.tar.gz"


def test_fetching_by_force_downloads_again(serve, places):
    entry = entry_of(GOOD, serve(GOOD))
    (places[0] / "small.tar.gz").write_bytes(GOOD)
    assert fetch(entry, force=True) == places[2] / "small.tar.gz"


def test_fetching_mends_a_damaged_cache_but_not_the_users_own_files(serve, places):
    first, _, cache = places
    entry = entry_of(GOOD, serve(GOOD))
    cache.mkdir()
    (cache / "small.tar.gz").write_bytes(b"damaged")
    assert fetch(entry).read_bytes() == GOOD
    (first / "small.tar.gz").write_bytes(b"mine")
    with pytest.raises(InputError, match="is not `small` as published"):
        fetch(entry)
    assert (first / "small.tar.gz").read_bytes() == b"mine"


def test_a_download_with_another_checksum_is_refused_and_removed(serve, places):
    other = GOOD[:-1] + bytes([GOOD[-1] ^ 1])
    with pytest.raises(DownloadError, match="sha256"):
        fetch(entry_of(GOOD, serve(other)))
    assert list(places[2].iterdir()) == []


def test_lubm_cannot_be_fetched():
    with pytest.raises(InputError, match="generated"):
        fetch("lubm")


# -- data sets of several files ------------------------------------------------------------------------

PARTS = {"train.txt": b"a\tR\tb\nb\tR\tc\n", "context.txt": b"x\tR\ty\n", "test.txt": b"y\tR\tx\n"}


def split_entry(address="https://example.invalid/"):
    files = [(name, name, len(text), hashlib.sha256(text).hexdigest()) for name, text in PARTS.items()]
    return Entry(name="split", description="files", address=address, files=files, packed="Split.tar.gz")


def test_files_are_found_by_their_sums_in_an_archive_that_somebody_packed(places, monkeypatch):
    below = places[0] / "more"
    below.mkdir()
    names = {"train.txt": "one/train.txt", "context.txt": "two/train.txt", "test.txt": "two/test.txt"}
    packed = below / "Split.tar.gz"
    packed.write_bytes(archive([("LICENSE", b"free")] + [(names[name], text) for name, text in PARTS.items()]))
    assert locate(split_entry()) == packed
    assert len(open_graph(split_entry()).graph) == 4
    monkeypatch.setattr(catalogue, "_catalogue", lambda: {"split": split_entry()})
    name, files = catalogue.data_set("SPLIT")
    assert (name, {key: source.content for key, source in files.items()}) == ("split", PARTS)
    benchmark = load_benchmark("Split")
    assert (benchmark.name, len(benchmark.context), len(benchmark.positives.test)) == ("split", 1, 1)
    packed.write_bytes(archive([(name, text) for name, text in PARTS.items() if name != "test.txt"]))
    with pytest.raises(InputError, match=r"is not `split` as published: the sha256 of `test\.txt`"):
        open_graph(split_entry())


def test_files_are_downloaded_one_by_one_and_mended(serve, places, tmp_path):
    address = serve(b"").removesuffix("small.tar.gz")
    for name, text in PARTS.items():
        (tmp_path / "served" / name).write_bytes(text)
    entry = split_entry(address)
    folder = places[2] / "split"
    assert locate(entry) is None
    assert fetch(entry) == folder == locate(entry)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == PARTS
    assert len(open_graph(entry).graph) == 4
    (folder / "test.txt").write_text("z\tR\tz\n")
    with pytest.raises(InputError, match="as published") as caught:
        open_graph(entry)
    assert caught.value.hint == "run: loginfer kg fetch split --force"
    assert fetch(entry) == folder
    assert (folder / "test.txt").read_bytes() == PARTS["test.txt"]


def test_what_is_generated_is_no_data_set():
    with pytest.raises(InputError, match="has no train, valid and test"):
        catalogue.data_set("lubm")
    assert catalogue.data_set("codex") is None


# -- hostile archives, with the checksum the catalogue expects -----------------------------------------


def link(kind, target):
    info = tarfile.TarInfo("train.txt")
    info.type = kind
    info.linkname = target
    return info


HOSTILE = {
    "a symbolic link": (lambda: archive([(link(tarfile.SYMTYPE, "/etc/passwd"), b"")]), "link"),
    "a hard link": (lambda: archive([(link(tarfile.LNKTYPE, "/etc/passwd"), b"")]), "link"),
    "a device": (lambda: archive([(link(tarfile.CHRTYPE, ""), b"")]), "device"),
    "a path upwards": (lambda: archive([("../train.txt", b"a\tR\tb\n")]), "leads out"),
    "a path up in the middle": (lambda: archive([("x/../../train.txt", b"a\tR\tb\n")]), "leads out"),
    "an absolute path": (lambda: archive([("/train.txt", b"a\tR\tb\n")]), "leads out"),
    "a bomb": (lambda: archive([("train.txt", bytes(32 * 2**20))]), "unpacks to more than"),
    "very many files": (lambda: archive([(f"x{i}.txt", b"") for i in range(200)]), "more than 100 entries"),
    "junk": (lambda: b"\x1f\x8b" + bytes(range(256)) * 4, "damaged"),
}


@pytest.mark.parametrize(("make", "why"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_archive_is_refused_when_it_is_opened(make, why, serve, tmp_path, monkeypatch):
    # The usual limits, scaled down so that exceeding them takes no gigabytes.
    limits = UnpackLimits(members=100, total_bytes=2**21)
    monkeypatch.setattr(UnpackLimits, "of", lambda options: limits)
    content = make()
    entry = entry_of(content, serve(content))
    with pytest.raises((InputError, LimitError), match=why):
        open_graph(entry, confirm=lambda question: True)
    made = {path.name for path in tmp_path.rglob("*")}
    assert made == {"first", "second", "cache", "served", "small.tar.gz"}


# -- the real ones ------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "relations"),
    [("fb15k-237", 237), ("wn18rr", 11), ("codex-s", 42), ("inferwiki16k", 197), ("umls", 46), ("nations", 55),
     ("kinship", 25), ("countries-s3", 2), ("grail-nell-v1", 14), ("grail-wn18rr-v1-ind", 9)],
)  # fmt: skip
def test_the_real_graphs_have_the_counts_of_the_catalogue(data_folder, monkeypatch, name, relations):
    monkeypatch.setenv("LOGINFER_DATA", str(data_folder))
    if locate(name) is None:
        pytest.skip(f"{name} is not in the folder named by LOGINFER_DATA")
    graph = open_graph(name).graph
    assert len(graph) == find(name).triples
    assert len(graph.rels) == relations
