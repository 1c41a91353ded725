"""Graphs that have a name: where they come from, and how they are found on this machine.

`catalogue.toml` lists them. A graph is looked for in the folders named by the environment variable
`LOGINFER_DATA` and those right below them, then in the user's cache. It is downloaded only by `fetch`, or by
`open_graph` after the user confirmed; its checksums are verified whenever it is used.

The part of a download that has arrived is kept beside the target as `<target>.part`. It survives a broken connection
and Ctrl-C, and the next attempt asks the server for the rest only. The target itself appears complete and verified,
or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http
import http.client
import os
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loginfer._version import __version__
from loginfer.errors import DownloadError, InputError, OutputError, UnknownNameError
from loginfer.files import describe_os_error, file_sum, lock_until_closed, reading, shipped, sync
from loginfer.kg.formats.base import Loaded, ReadOptions, ReadReport, Source, read_archive
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.graph import KnowledgeGraph

DATA_VARIABLE = "LOGINFER_DATA"

# `lubm`, `lubm-10`, `lubm(10)`, `lubm(10,0)`: universities, seed.
_LUBM = re.compile(r"lubm(?:-(\d+)|\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))")


@dataclass(frozen=True, slots=True)
class Entry:
    """A graph that has a name.

    Parameters
    ----------
    name
        Its name.
    description
        What it is, in one line.
    triples
        How many distinct triples it has, if that is known.
    citation, licence
        Whom to cite; what is known about its terms.
    address
        Where its archive can be downloaded, or the folder of its files; empty for LUBM, which is generated.
    size, sha256
        Of the archive.
    files
        Where it is published file by file: the name of each, its address below `address`, size and sha256.
    packed
        The name of an archive that may hold these files, under any names.
    universities, seed
        Of LUBM.
    """

    name: str
    description: str
    triples: int | None = None
    citation: str = ""
    licence: str = ""
    address: str = ""
    size: int = 0
    sha256: str = ""
    files: Sequence[tuple[str, str, int, str]] = ()
    packed: str = ""
    universities: int = 1
    seed: int = 0

    @property
    def generated(self) -> bool:
        """Whether this program makes the graph itself."""
        return not self.address

    @property
    def file(self) -> str:
        """The name of its archive, or of the folder of its files."""
        return self.name if self.files else self.address.rsplit("/", 1)[-1]

    @property
    def downloads(self) -> list[tuple[str, str, int, str]]:
        """Each address with the path below the cache, size and sha256 of what is there."""
        parts = [(self.address + below, f"{self.name}/{name}", size, sha) for name, below, size, sha in self.files]
        return parts or [(self.address, self.file, self.size, self.sha256)]


@cache
def _catalogue() -> dict[str, Entry]:
    return {name: Entry(name=name, **fields) for name, fields in shipped("kg/catalogue.toml").items()}


def entries() -> list[Entry]:
    """Return all graphs of the catalogue."""
    return list(_catalogue().values())


def find(name: str) -> Entry:
    """Return the graph of a name, in capitals or not; `lubm(10,0)` or `lubm-10` is LUBM of that size.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    entry = _lookup(name)
    if entry is None:
        raise UnknownNameError("graph", name, _catalogue())
    return entry


def _lookup(name: str) -> Entry | None:
    key = name.strip().casefold()
    entry = _catalogue().get(key)
    lubm = _LUBM.fullmatch(key)
    if entry is not None or lubm is None:
        return entry
    universities, seed = int(lubm[1] or lubm[2]), int(lubm[3] or 0)
    default = _catalogue()["lubm"]
    return replace(
        default,
        name=f"lubm({universities},{seed})",
        description=f"{universities} synthetic universities, seed {seed}",
        triples=default.triples if (universities, seed) == (default.universities, default.seed) else None,
        universities=universities,
        seed=seed,
    )


def cache_folder() -> Path:
    """Return the folder that downloads go to."""
    import platformdirs

    return platformdirs.user_cache_path("loginfer", appauthor=False) / "graphs"


def data_folders() -> list[Path]:
    """Return the folders that the user keeps graphs in, as `LOGINFER_DATA` names them."""
    return [Path(folder) for folder in os.environ.get(DATA_VARIABLE, "").split(os.pathsep) if folder]


def locate(graph: str | Entry) -> Path | None:
    """Return where the archive or folder of a graph is on this machine, not yet verified; None if it is not.

    Parameters
    ----------
    graph
        A name, or an entry.
    """
    entry = find(graph) if isinstance(graph, str) else graph
    if entry.generated:
        return None
    for folder in (*data_folders(), cache_folder()):
        for name in filter(None, (entry.file, entry.packed)):
            with reading(folder / name):
                for path in (folder / name, *sorted(folder.glob(f"*/{name}"))):
                    if path.is_file() or (entry.files and all((path / part).is_file() for part, *_ in entry.files)):
                        return path
    return None


def fetch(graph: str | Entry, *, force: bool = False, progress: Progress | None = None) -> Path:
    """Return where the archive or folder of a graph is, verified; download it into the cache if need be.

    Parameters
    ----------
    graph
        A name, or an entry.
    force
        Download it even if it is on this machine.
    progress
        Called with bytes received, and expected.

    Raises
    ------
    DownloadError
        If it cannot be downloaded, or is not the expected file.
    """
    entry = find(graph) if isinstance(graph, str) else graph
    if entry.generated:
        raise InputError(
            f"`{entry.name}` is generated when it is used; there is nothing to download",
            hint="write it to a file with: loginfer kg generate lubm --out lubm.nt",
        )
    target = cache_folder() / entry.file
    path = None if force else locate(entry)
    # A damaged copy in the cache is ours to replace; one in a folder of the user is not.
    with contextlib.suppress(InputError) if path == target else contextlib.nullcontext():
        if path is not None:
            _verify(entry, path)
            return path
    for address, below, size, sha256 in entry.downloads:
        download(address, cache_folder() / below, size=size, sha256=sha256, progress=progress)
    return target


def open_graph(
    graph: str | Path | Entry,
    options: ReadOptions | None = None,
    progress: Progress | None = None,
    confirm: Callable[[str], bool] | None = None,
) -> Loaded:
    """Load a graph by path or by name; a file or folder that exists comes before a name.

    Parameters
    ----------
    graph
        A path, a name of the catalogue, or an entry.
    options
        How to read it.
    progress
        Called while reading, generating or downloading.
    confirm
        Asked whether to download a graph that is not on this machine; without it, nothing is downloaded.
    """
    from loginfer.kg.load import read_graph

    options = options or ReadOptions()
    if graph == "":
        raise _no_such_graph("")  # as a path it would be the current folder
    if isinstance(graph, Entry):
        entry = graph
    elif not isinstance(graph, str | Path):
        raise InputError(f"{type(graph).__name__} is no graph", hint="KnowledgeGraph.from_frame makes one of a table")
    else:
        with reading(Path(graph)):
            exists = Path(graph).exists()
        if exists:
            return read_graph(graph, options, progress)
        listed = _lookup(str(graph))
        if listed is None:
            raise _no_such_graph(str(graph))
        entry = listed
    if entry.generated:
        return _generate(entry, options, progress)
    path, files = _locate_verified(entry, progress, confirm)
    return read_graph(path, options, progress, files if entry.files else None)


def data_set(name: str) -> tuple[str, dict[str, Source]] | None:
    """Return the name of a graph as the catalogue spells it, and its files by name; None if it lists no such name.

    `context.txt` is the context graph of an inductive data set.
    """
    entry = _lookup(name)
    if entry is None:
        return None
    if entry.generated:
        hint = f"build a benchmark from it: loginfer build {name} …"
        raise InputError(f"`{entry.name}` has no train, valid and test", hint=hint)
    path, files = _locate_verified(entry)
    if not entry.files:
        files = {Path(m.name).name: Source(f"{path}:{m.name}", Path(m.name), m.content) for m in read_archive(path)}
    return entry.name, files


def load_graph(
    name_or_path: str | Path | KnowledgeGraph, options: ReadOptions | None = None, **settings: Any
) -> KnowledgeGraph:
    """Load a graph of the catalogue by its name, or any file, folder or archive of triples.

    Parameters
    ----------
    name_or_path
        `fb15k-237`, `wn18rr`, `lubm`, or a path. A graph is returned as it is.
    options
        How to read it, and which of its triples to keep.
    **settings
        Fields of `ReadOptions`, instead or besides: `load_graph("staff.csv", literals="drop")`.
    """
    from loginfer.kg.graph import KnowledgeGraph

    if isinstance(name_or_path, KnowledgeGraph):
        return name_or_path
    return open_graph(name_or_path, replace(options or ReadOptions(), **settings)).graph


def is_named(name: str) -> bool:
    """Say whether this is the name of a graph of the catalogue, not one's own."""
    return _lookup(name) is not None


def _generate(entry: Entry, options: ReadOptions, progress: Progress | None) -> Loaded:
    from loginfer.kg.graph import KnowledgeGraph
    from loginfer.kg.lubm import generate_lubm
    from loginfer.kg.selection import selected

    graph = generate_lubm(entry.universities, 0, entry.seed, progress)
    if options.type_predicate is not None:
        graph = KnowledgeGraph(graph.entities, graph.relations, graph.triples, type_predicate=options.type_predicate)
    return selected(Loaded(graph, ReadReport(files=(), statements=len(graph), triples=len(graph))), options)


def _locate_verified(
    entry: Entry, progress: Progress | None = None, confirm: Callable[[str], bool] | None = None
) -> tuple[Path, dict[str, Source]]:
    path = locate(entry)
    if path is None:
        size = sum(size for _, _, size, _ in entry.downloads) / 1e6
        question = f"`{entry.name}` is not on this machine. Download {size:.1f} MB from {entry.address}?"
        if confirm is None or not confirm(question):
            raise InputError(
                f"`{entry.name}` is not on this machine",
                hint=f"run: loginfer kg fetch {entry.name}, or set {DATA_VARIABLE} to a folder with {entry.file}",
            )
        path = fetch(entry, progress=progress)
    return path, _verify(entry, path)


def _no_such_graph(name: str) -> InputError:
    hint = UnknownNameError("graph", name, _catalogue()).hint
    return InputError(f"there is no file or folder `{name}`, and no graph of that name in the catalogue", hint=hint)


def _verify(entry: Entry, path: Path) -> dict[str, Source]:
    """Return an archive, or the files that the catalogue lists, by name, after comparing their sums.

    In an archive that somebody packed the files may have any names: they are found by their sums.
    """
    expected = {name: sha256 for name, _, _, sha256 in entry.files} or {entry.file: entry.sha256}
    if path.is_file() and entry.files:
        members = [(member.name, member.content or b"") for member in read_archive(path)]
        found = {hashlib.sha256(c).hexdigest(): Source(f"{path}:{name}", Path(name), c) for name, c in members}
    else:
        files = [path / name for name in expected] if entry.files else [path]
        found = {file_sum(file): Source.of(file) for file in files}
    for name, sha256 in expected.items():
        if sha256 not in found:
            actual = "and no file has it" if entry.files else f"and is {next(iter(found))}"
            ours = path.parent == cache_folder()
            raise InputError(
                f"`{path}` is not `{entry.name}` as published: the sha256 of `{name}` should be {sha256}, {actual}",
                hint=f"run: loginfer kg fetch {entry.name} --force" if ours else "remove or replace it",
            )
    return {name: found[sha256] for name, sha256 in expected.items()}


CHUNK = 64 * 1024
SCHEMES = ("http", "https")
# Status codes after which another attempt may help.
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


@dataclass(frozen=True, slots=True)
class Attempts:
    """How patient a download is.

    Parameters
    ----------
    limit
        How often to connect before giving up.
    wait
        Seconds before the second attempt; each further one waits twice as long.
    timeout
        Seconds without a byte after which a connection counts as broken.
    """

    limit: int = 6
    wait: float = 0.5
    timeout: float = 30.0


def download(
    address: str,
    target: Path,
    *,
    size: int,
    sha256: str,
    progress: Progress | None = None,
    attempts: Attempts | None = None,
) -> None:
    """Download `address` to `target`, replacing what is there.

    Parameters
    ----------
    address
        An http or https address.
    target
        Where the file shall be. Missing folders are created.
    size
        Its size in bytes; more is never written.
    sha256
        Its checksum, as hexadecimal digits.
    progress
        Called with bytes received, and expected.
    attempts
        How patient to be.

    Raises
    ------
    DownloadError
        If the file cannot be downloaded, or is not the expected one.
    OutputError
        If it cannot be written.
    """
    _check_scheme(address)
    part = target.with_name(target.name + ".part")
    job = _Download(address, part, size, progress, attempts or Attempts())
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent):
            if job.have() > size:
                part.unlink()
            resumed = job.have() > 0
            job.complete()
            if resumed and file_sum(part) != sha256:
                # The old part may be of another version of the file: start over once.
                part.unlink()
                job.complete()
            if (actual := file_sum(part)) != sha256:
                part.unlink()
                raise DownloadError(
                    f"what `{address}` holds is not the expected file: its sha256 is {actual}, it should be {sha256}",
                    hint="the download was removed; try again later: the file may have been changed at its source",
                )
            sync(part)
            part.replace(target)
    except OSError as error:
        raise OutputError(
            f"cannot write `{target}`: {describe_os_error(error)}",
            hint="free some space or choose another place; what has arrived is kept for the next attempt",
        ) from error


class _BrokenError(Exception):
    """An attempt failed in a way that may pass.

    Parameters
    ----------
    reason
        What went wrong.
    restart
        Whether the server does not send the rest of the file: the next attempt starts over.
    unreachable
        Whether the server cannot be reached: if the first attempt fails so, there is no network.
    """

    def __init__(self, reason: str, *, restart: bool = False, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.restart = restart
        self.unreachable = unreachable


@dataclass(frozen=True, slots=True)
class _Download:
    """A download in progress: the bytes of `address` that have arrived are in `part`."""

    address: str
    part: Path
    size: int
    progress: Progress | None
    attempts: Attempts

    def have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def complete(self) -> None:
        """Download the rest of the file, in at most `attempts.limit` attempts."""
        wait = self.attempts.wait
        for attempt in range(1, self.attempts.limit + 1):
            try:
                return self._attempt()
            except _BrokenError as broken:
                if broken.restart:
                    self.part.unlink(missing_ok=True)
                if (broken.unreachable and attempt == 1) or attempt == self.attempts.limit:
                    raise DownloadError(
                        f"`{self.address}` could not be downloaded: {broken} ({self.have():,} of {self.size:,} bytes "
                        f"after {attempt} attempt{'s' if attempt > 1 else ''})",
                        hint="check the connection and run the command again; it goes on where it stopped",
                    ) from broken
            time.sleep(wait)
            wait *= 2
        return None

    def _attempt(self) -> None:
        have = self.have()
        if have == self.size:
            return
        headers = {"User-Agent": f"loginfer/{__version__}", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        # The scheme was checked, and the opener knows no other than http and https.
        request = urllib.request.Request(self.address, headers=headers)  # noqa: S310
        with _translate(self.address):
            opened = _opener().open(request, timeout=self.attempts.timeout)
        with contextlib.closing(opened) as response:
            if response.status == 200:
                # A server that answers 200 ignores ranges and sends the file from its beginning.
                length = response.headers.get("Content-Length", "")
                if length.isdecimal() and int(length) != self.size:
                    raise self._wrong_size(f"{int(length):,}")
                have = 0
            elif not have or not self._continues(response, have):
                raise _BrokenError(f"the server answered {response.status} with another part of the file", restart=True)
            with self.part.open("ab" if have else "wb") as stream:
                self._receive(response, stream, have)

    def _continues(self, response: http.client.HTTPResponse, have: int) -> bool:
        """Say whether the server sends the bytes from `have` to the end of a file of this size."""
        expected = rf"bytes {have}-{self.size - 1}/(?:{self.size}|\*)"
        content_range = response.headers.get("Content-Range", "").strip()
        return response.status == 206 and re.fullmatch(expected, content_range, re.IGNORECASE) is not None

    def _wrong_size(self, actual: str) -> DownloadError:
        return DownloadError(
            f"what `{self.address}` holds is not the expected file: it has {actual} bytes, "
            f"it should have {self.size:,}",
            hint="try again later; the file may have been changed at its source",
        )

    def _receive(self, response: http.client.HTTPResponse, stream: IO[bytes], have: int) -> None:
        while True:
            with _translate(self.address):
                chunk = response.read1(min(CHUNK, self.size - have) or 1)
            if have == self.size:
                break
            if not chunk:
                raise _BrokenError("the connection ended too early")
            stream.write(chunk)
            have += len(chunk)
            if self.progress:
                self.progress(f"downloading {self.part.name.removesuffix('.part')}", have, self.size)
        if chunk:
            self.part.unlink()
            raise self._wrong_size(f"more than {self.size:,}")


@contextlib.contextmanager
def _translate(address: str) -> Iterator[None]:
    """Turn errors of the network into `_BrokenError` if another attempt may help, else into `DownloadError`."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"the server answered {error.code} {error.reason}".rstrip()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise _BrokenError(answer, restart=True) from error
        if error.code in TRANSIENT:
            raise _BrokenError(answer) from error
        raise DownloadError(
            f"`{address}` could not be downloaded: {answer}",
            hint="it may have moved; a copy from elsewhere can lie in a folder named by LOGINFER_DATA",
        ) from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise DownloadError(
                f"`{address}` could not be downloaded: {reason.verify_message}",
                hint="the server's certificate is not trusted here; check the clock and the certificates",
            ) from error
        answer = describe_os_error(reason) if isinstance(reason, OSError) else str(reason)
        unreachable = isinstance(reason, socket.gaierror) or getattr(reason, "errno", None) in UNREACHABLE
        raise _BrokenError(answer or type(reason).__name__, unreachable=unreachable) from error


def _check_scheme(address: str) -> None:
    if urlsplit(address).scheme.lower() not in SCHEMES:
        raise DownloadError(f"`{address}` is no http or https address", hint="only these are downloaded from")


class _OnlyHttp(urllib.request.HTTPRedirectHandler):
    """Follow redirects to http and https only; the standard handler also knows ftp."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Make an opener that knows http and https and, unlike the default one, nothing else."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _OnlyHttp(),
    ):
        opener.add_handler(handler)
    return opener


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a second program from downloading into the same folder, where locks work."""
    if os.name != "posix":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not lock_until_closed(handle):
            raise DownloadError(f"another program is downloading into `{folder}`", hint="wait until it is done")
        yield
    finally:
        os.close(handle)
