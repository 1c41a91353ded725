"""The catalogue: graphs that have a name, where they come from, and how they are found on this machine.

What is in it stands in `catalogue.toml`. A graph is looked for in the folders named by the environment
variable `LOGINFER_DATA`, then in the user's cache. It is downloaded only by `fetch`, or by `open_graph` after
somebody said yes; its checksum is verified whenever it is used.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path

from loginfer.errors import InputError, UnknownNameError, nearest
from loginfer.files import reading
from loginfer.kg.formats.interface import Loaded, Progress, ReadOptions, ReadReport

__all__ = ["DATA_VARIABLE", "Entry", "cache_folder", "entries", "fetch", "find", "locate", "open_graph"]

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
        Where its archive can be downloaded; empty for LUBM, which is generated.
    size, sha256
        Of the archive.
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
    universities: int = 1
    seed: int = 0

    @property
    def generated(self) -> bool:
        """Whether this program makes the graph itself."""
        return not self.address

    @property
    def file(self) -> str:
        """The name of its archive."""
        return self.address.rsplit("/", 1)[-1]


@cache
def _catalogue() -> dict[str, Entry]:
    text = resources.files("loginfer.kg").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: Entry(name=name, **fields) for name, fields in tomllib.loads(text).items()}


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
    found = _lookup(name)
    if found is None:
        raise UnknownNameError("graph", name, _catalogue())
    return found


def _lookup(name: str) -> Entry | None:
    wanted = name.strip().casefold()
    found = _catalogue().get(wanted)
    lubm = _LUBM.fullmatch(wanted)
    if found is not None or lubm is None:
        return found
    universities, seed = int(lubm[1] or lubm[2]), int(lubm[3] or 0)
    entry = _catalogue()["lubm"]
    return replace(
        entry,
        name=f"lubm({universities},{seed})",
        description=f"{universities} synthetic universities, seed {seed}",
        triples=entry.triples if (universities, seed) == (entry.universities, entry.seed) else None,
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
    """Return where the archive of a graph is on this machine, not yet verified; None if it is not.

    Parameters
    ----------
    graph
        A name, or an entry.
    """
    entry = find(graph) if isinstance(graph, str) else graph
    if entry.generated:
        return None
    for folder in (*data_folders(), cache_folder()):
        path = folder / entry.file
        with reading(path):
            if path.is_file():
                return path
    return None


def fetch(graph: str | Entry, *, force: bool = False, progress: Progress | None = None) -> Path:
    """Return where the archive of a graph is, verified; download it into the cache if need be.

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
        If it cannot be had, or is not what it should be.
    """
    from loginfer.kg.download import download

    entry = find(graph) if isinstance(graph, str) else graph
    if entry.generated:
        raise InputError(
            f"`{entry.name}` is generated when it is used; there is nothing to download",
            hint="write it to a file with: loginfer kg generate lubm --out lubm.nt",
        )
    target = cache_folder() / entry.file
    found = None if force else locate(entry)
    # A damaged archive in the cache is ours to replace; one in a folder of the user is not.
    if found is not None and (found != target or _checksum(found) == entry.sha256):
        _verify(entry, found)
        return found
    download(entry.address, target, size=entry.size, sha256=entry.sha256, progress=progress)
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
    else:
        with reading(Path(graph)):
            exists = Path(graph).exists()
        if exists:
            return read_graph(graph, options, progress)
        known = _lookup(str(graph))
        if known is None:
            raise _no_such_graph(str(graph))
        entry = known
    if entry.generated:
        return _generate(entry, options, progress)
    return read_graph(_at_hand(entry, progress, confirm), options, progress)


def _generate(entry: Entry, options: ReadOptions, progress: Progress | None) -> Loaded:
    from loginfer.kg.graph import KnowledgeGraph
    from loginfer.kg.lubm import generate_lubm

    graph = generate_lubm(entry.universities, 0, entry.seed, progress)
    if options.type_predicate is not None:
        graph = KnowledgeGraph(
            graph.entities, graph.relations, graph.triples, type_predicate=options.type_predicate
        )
    return Loaded(graph, ReadReport(files=(), statements=len(graph), triples=len(graph)))


def _at_hand(entry: Entry, progress: Progress | None, confirm: Callable[[str], bool] | None) -> Path:
    found = locate(entry)
    if found is not None:
        _verify(entry, found)
        return found
    question = (
        f"`{entry.name}` is not on this machine. Download {entry.size / 1e6:.1f} MB from {entry.address}?"
    )
    if confirm is not None and confirm(question):
        return fetch(entry, progress=progress)
    raise InputError(
        f"`{entry.name}` is not on this machine",
        hint=f"run: loginfer kg fetch {entry.name}, or set {DATA_VARIABLE} to a folder with {entry.file}",
    )


def _no_such_graph(name: str) -> InputError:
    close = nearest(name, _catalogue())
    meant = "did you mean " + " or ".join(f"`{known}`" for known in close) + "? " if close else ""
    return InputError(
        f"there is no file or folder `{name}`, and no graph of that name in the catalogue",
        hint=f"{meant}the catalogue has " + ", ".join(f"`{known}`" for known in _catalogue()),
    )


def _checksum(path: Path) -> str:
    from loginfer.kg.download import sha256_of

    with reading(path):
        return sha256_of(path)


def _verify(entry: Entry, path: Path) -> None:
    found = _checksum(path)
    if found != entry.sha256:
        ours = path.parent == cache_folder()
        raise InputError(
            f"`{path}` is not the archive of `{entry.name}`: "
            f"its sha256 is {found}, it should be {entry.sha256}",
            hint=f"run: loginfer kg fetch {entry.name} --force" if ours else "remove or replace the file",
        )
