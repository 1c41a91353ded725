"""Downloads against a local server that behaves, breaks, lies or leads astray."""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from loginfer.errors import DownloadError, OutputError
from loginfer.files import file_sum
from loginfer.kg.catalogue import Attempts, download

CONTENT = bytes(range(256)) * 2_000  # half a megabyte, so that it takes many reads
SHA256 = hashlib.sha256(CONTENT).hexdigest()
QUICK = Attempts(limit=3, wait=0.0, timeout=5.0)


@dataclass
class Behaviour:
    """What the server does, and what it was asked."""

    content: bytes = CONTENT
    ranges: bool = True
    break_after: list[int] = field(default_factory=list)  # bytes before each broken answer
    statuses: list[int] = field(default_factory=list)  # answered first, one a request
    location: str | None = None
    length: int | None = None  # what Content-Length says
    send_length: bool = True
    content_range: str | None = None  # a lie about which part is sent
    asked: list[str | None] = field(default_factory=list)  # the Range header of each request


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        behaviour = self.server.behaviour
        wanted = self.headers.get("Range")
        behaviour.asked.append(wanted)
        if self.path == "/moved":
            self.answer(302, {"Location": behaviour.location})
        elif behaviour.statuses:
            self.answer(behaviour.statuses.pop(0), {})
        else:
            self.send(behaviour, wanted)

    def send(self, behaviour, wanted):
        content, status, headers = behaviour.content, 200, {}
        if wanted and behaviour.ranges:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            true_range = f"bytes {start}-{len(content) - 1}/{len(content)}"
            content, status = content[start:], 206
            headers["Content-Range"] = behaviour.content_range or true_range
        if behaviour.send_length:
            headers["Content-Length"] = str(behaviour.length or len(content))
        self.answer(status, headers)
        if behaviour.break_after:
            content = content[: behaviour.break_after.pop(0)]
        with contextlib.suppress(OSError):  # the client may have seen enough
            self.wfile.write(content)

    def answer(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.behaviour = Behaviour()
        running.address = f"http://127.0.0.1:{running.server_port}/graph.tar.gz"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "cache" / "graph.tar.gz"


def get(address, target, **options):
    wanted = {"size": len(CONTENT), "sha256": SHA256, "attempts": QUICK, **options}
    download(address, target, **wanted)


def part_of(target):
    return target.with_name(target.name + ".part")


# -- it works -----------------------------------------------------------------------------------------


def test_a_file_arrives_complete_with_progress(server, target):
    seen = []
    get(server.address, target, progress=lambda *args: seen.append(args))
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]
    assert seen[-1] == ("downloading graph.tar.gz", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})


def test_a_server_that_does_not_tell_the_length_is_fine(server, target):
    server.behaviour.send_length = False
    get(server.address, target)
    assert target.read_bytes() == CONTENT


def test_a_redirect_within_http_is_followed(server, target):
    server.behaviour.location = server.address
    get(server.address.replace("/graph.tar.gz", "/moved"), target)
    assert target.read_bytes() == CONTENT


def test_an_old_file_is_replaced(server, target):
    target.parent.mkdir()
    target.write_bytes(b"old")
    get(server.address, target)
    assert target.read_bytes() == CONTENT


# -- lines that break ---------------------------------------------------------------------------------


def test_a_broken_connection_is_resumed_where_it_broke(server, target):
    server.behaviour.break_after = [100_000, 50_000]
    get(server.address, target)
    assert target.read_bytes() == CONTENT
    assert server.behaviour.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_what_an_earlier_run_left_is_used(server, target):
    target.parent.mkdir()
    part_of(target).write_bytes(CONTENT[:300_000])
    get(server.address, target)
    assert target.read_bytes() == CONTENT
    assert server.behaviour.asked == ["bytes=300000-"]
    assert list(target.parent.iterdir()) == [target]


def test_a_complete_part_needs_no_server(target):
    target.parent.mkdir()
    part_of(target).write_bytes(CONTENT)
    get("http://127.0.0.1:1/graph.tar.gz", target)
    assert target.read_bytes() == CONTENT


def test_a_server_that_ignores_ranges_sends_everything_again(server, target):
    server.behaviour.ranges = False
    server.behaviour.break_after = [100_000]
    get(server.address, target)
    assert target.read_bytes() == CONTENT
    assert server.behaviour.asked == [None, "bytes=100000-"]


@pytest.mark.parametrize("lie", [f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}", "bytes 5-9/10", "", "nonsense"])
def test_another_part_than_asked_for_is_not_appended(server, target, lie):
    server.behaviour.content_range = lie or " "
    server.behaviour.break_after = [100_000]
    get(server.address, target)
    assert target.read_bytes() == CONTENT
    assert server.behaviour.asked == [None, "bytes=100000-", None]


def test_a_range_the_server_cannot_serve_makes_it_start_over(server, target):
    target.parent.mkdir()
    part_of(target).write_bytes(CONTENT[:10])
    server.behaviour.statuses = [416]
    get(server.address, target)
    assert target.read_bytes() == CONTENT
    assert server.behaviour.asked == ["bytes=10-", None]


@pytest.mark.parametrize(
    ("length", "asked"), [(1_000, ["bytes=1000-", None]), (len(CONTENT), [None]), (len(CONTENT) + 1, [None])]
)
def test_an_old_part_of_something_else_does_not_spoil_the_download(server, target, length, asked):
    target.parent.mkdir()
    part_of(target).write_bytes(b"x" * length)
    get(server.address, target)
    assert target.read_bytes() == CONTENT
    assert server.behaviour.asked == asked


def test_a_server_in_trouble_is_asked_again(server, target):
    server.behaviour.statuses = [503, 429]
    get(server.address, target)
    assert target.read_bytes() == CONTENT


def test_attempts_are_bounded_and_what_arrived_is_kept(server, target):
    server.behaviour.break_after = [1_000, 1_000, 1_000, 1_000]
    with pytest.raises(DownloadError, match=r"3,000 of 512,000 bytes after 3 attempts") as caught:
        get(server.address, target)
    assert "goes on where it stopped" in caught.value.hint
    assert part_of(target).read_bytes() == CONTENT[:3_000]
    assert not target.exists()


def test_nobody_listening_is_an_error_that_names_the_address(server, target):
    server.shutdown()
    server.server_close()
    with pytest.raises(DownloadError, match="connection refused") as caught:
        get(server.address, target)
    assert server.address in caught.value.message


def test_without_a_network_there_is_one_attempt_only(target, monkeypatch):
    def unknown(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    monkeypatch.setattr("loginfer.kg.catalogue.time", SimpleNamespace(sleep=lambda wait: pytest.fail("it waited")))
    with pytest.raises(DownloadError, match=r"not known .* after 1 attempt\)"):
        get("http://nowhere.invalid/graph.tar.gz", target, attempts=Attempts(limit=6))


def test_waiting_between_attempts_doubles(server, target, monkeypatch):
    waits = []
    monkeypatch.setattr("loginfer.kg.catalogue.time", SimpleNamespace(sleep=waits.append))  # other threads sleep on
    server.behaviour.statuses = [500, 502, 503, 504]
    get(server.address, target, attempts=Attempts(limit=5, wait=0.5, timeout=5.0))
    assert waits == [0.5, 1.0, 2.0, 4.0]


def test_a_silent_server_counts_as_broken(target, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/graph.tar.gz"
        with pytest.raises(DownloadError, match="timed out"):
            get(address, target, attempts=Attempts(limit=2, wait=0.0, timeout=0.05))


def test_an_interrupt_keeps_what_has_arrived(server, target):
    def interrupt(what, done, total):
        if done >= 200_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(server.address, target, progress=interrupt)
    have = part_of(target).stat().st_size
    assert 200_000 <= have < len(CONTENT)
    get(server.address, target)
    assert target.read_bytes() == CONTENT
    assert server.behaviour.asked == [None, f"bytes={have}-"]


# -- servers that lie ---------------------------------------------------------------------------------


def test_a_wrong_checksum_removes_the_file_and_names_both_sums(server, target):
    server.behaviour.content = CONTENT[:-1] + b"!"
    found = hashlib.sha256(server.behaviour.content).hexdigest()
    with pytest.raises(DownloadError) as caught:
        get(server.address, target)
    assert found in caught.value.message
    assert SHA256 in caught.value.message
    assert list(target.parent.iterdir()) == []


def test_a_wrong_length_is_refused_before_anything_is_written(server, target):
    server.behaviour.length = 10**12
    with pytest.raises(DownloadError, match=r"1,000,000,000,000 bytes, it should have 512,000"):
        get(server.address, target)
    assert list(target.parent.iterdir()) == []


def test_never_more_than_the_expected_size_is_written(server, target):
    server.behaviour.send_length = False
    server.behaviour.content = CONTENT * 3
    most = 0

    def watch(what, done, total):
        nonlocal most
        most = max(most, part_of(target).stat().st_size)

    with pytest.raises(DownloadError, match=r"more than 512,000 bytes"):
        get(server.address, target, progress=watch)
    assert 0 < most <= len(CONTENT)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_file_that_is_not_there_is_asked_for_once(server, target, status):
    server.behaviour.statuses = [status]
    with pytest.raises(DownloadError, match=f"answered {status}"):
        get(server.address, target)
    assert len(server.behaviour.asked) == 1
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("scheme", ["file", "ftp", "data", "gopher"])
def test_redirects_to_anything_but_http_are_refused(server, target, tmp_path, scheme):
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    server.behaviour.location = f"{scheme}://{secret}" if scheme == "file" else f"{scheme}://127.0.0.1/x"
    with pytest.raises(DownloadError, match=scheme):
        get(server.address.replace("/graph.tar.gz", "/moved"), target)
    assert len(server.behaviour.asked) == 1
    assert list(target.parent.iterdir()) == []


def test_a_circle_of_redirects_ends(server, target):
    server.behaviour.location = "/moved"
    with pytest.raises(DownloadError, match="redirect"):
        get(server.address.replace("/graph.tar.gz", "/moved"), target)


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://example.org/x", "/etc/hostname", ""])
def test_only_http_addresses_are_downloaded_from(target, address):
    with pytest.raises(DownloadError, match="no http or https address"):
        get(address, target)
    assert not target.parent.exists()


# -- this machine -------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_is_an_output_error(server, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(OutputError, match="cannot write"):
        get(server.address, tmp_path / "cache" / "graph.tar.gz")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_output_error_not_a_broken_line(server, target):
    target.parent.mkdir()
    part_of(target).symlink_to("/dev/full")
    with pytest.raises(OutputError, match="no space left"):
        get(server.address, target)
    assert len(server.behaviour.asked) == 1


def test_a_second_program_does_not_download_into_the_same_folder(server, target):
    def meanwhile(what, done, total):
        with pytest.raises(DownloadError, match="another program"):
            get(server.address, target)

    get(server.address, target, progress=meanwhile)
    assert target.read_bytes() == CONTENT


def test_sha256_is_that_of_the_bytes(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(CONTENT)
    assert file_sum(path) == SHA256
