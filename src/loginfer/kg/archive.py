"""Reading archives that strangers packed: plain files only, and never more than we are ready for.

Nothing is unpacked to disk. Sizes in headers are not believed: bytes are counted while they are read.
"""

from __future__ import annotations

import contextlib
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from loginfer.errors import InputError, LimitError
from loginfer.files import reading
from loginfer.kg.formats.source import Source

__all__ = ["ARCHIVE_ENDINGS", "ArchiveLimits", "Member", "is_archive", "read_archive"]

ARCHIVE_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip")
_STEP = 2**20


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """What an archive may unpack to.

    Parameters
    ----------
    members
        Number of entries, folders included.
    member_bytes
        Unpacked size of one file.
    total_bytes
        Unpacked size of everything, headers included.
    """

    members: int = 10_000
    member_bytes: int = 4 * 2**30
    total_bytes: int = 8 * 2**30


@dataclass(frozen=True, slots=True)
class Member:
    """A plain file in an archive.

    Parameters
    ----------
    name
        Its path in the archive, with forward slashes.
    content
        Its bytes, or None if they were not wanted.
    """

    name: str
    content: bytes | None


def is_archive(path: Path) -> bool:
    """Say whether a file's name is that of an archive we read."""
    return path.name.lower().endswith(ARCHIVE_ENDINGS)


def read_archive(
    path: str | Path,
    *,
    wanted: Callable[[str], bool] | None = None,
    limits: ArchiveLimits | None = None,
) -> list[Member]:
    """Return the plain files in an archive, in the order they are packed.

    Parameters
    ----------
    path
        A file with one of `ARCHIVE_ENDINGS`.
    wanted
        Says by its name whether a member's content is wanted; by default all are.
    limits
        What it may unpack to.

    Raises
    ------
    InputError
        If it is damaged, or holds links, devices, absolute paths, `..`, or the same name twice.
    LimitError
        If it exceeds a limit.
    """
    file = Path(path)
    guard = _Guard(file, limits or ArchiveLimits())
    members = _zip_members if file.name.lower().endswith(".zip") else _tar_members
    found: list[Member] = []
    with reading(file), _explained(file):
        for name, stream in members(file, guard):
            content = None
            if wanted is None or wanted(name):
                content = guard.read(name, stream)
            found.append(Member(name, content))
    return found


class _Guard:
    """Counts entries and bytes, and refuses what no archive of data needs."""

    def __init__(self, path: Path, limits: ArchiveLimits) -> None:
        self.path = path
        self.limits = limits
        self.names: set[str] = set()
        self.entries = 0
        self.total = 0

    def enter(self, name: str) -> None:
        """Count one entry and check its path."""
        self.entries += 1
        if self.entries > self.limits.members:
            raise LimitError(f"`{self.path}` holds more than {self.limits.members:,} entries")
        parts = PurePosixPath(name).parts
        if (
            not parts
            or name.startswith("/")
            or ".." in parts
            or "\\" in name
            or ":" in parts[0]
            or "\0" in name
        ):
            raise self.refuse(name, "its path leads out of the archive")

    def file(self, name: str) -> None:
        """Check that a file's name is new."""
        if name in self.names:
            raise self.refuse(name, "the name is there twice")
        self.names.add(name)

    def refuse(self, name: str, why: str) -> InputError:
        """Return the error for an entry that is not read."""
        return InputError(
            f"`{self.path}` is refused because of its entry `{name[:200]}`: {why}",
            hint="unpack it yourself if you trust it, and give the folder",
        )

    def count(self, size: int) -> None:
        """Count unpacked bytes."""
        self.total += size
        if self.total > self.limits.total_bytes:
            raise LimitError(f"`{self.path}` unpacks to more than {_size(self.limits.total_bytes)}")

    def read(self, name: str, stream: IO[bytes]) -> bytes:
        """Return the content of a member, counting while reading."""
        pieces: list[bytes] = []
        size = 0
        while piece := stream.read(_STEP):
            size += len(piece)
            if size > self.limits.member_bytes:
                raise LimitError(
                    f"`{name}` in `{self.path}` unpacks to more than {_size(self.limits.member_bytes)}"
                )
            pieces.append(piece)
        return b"".join(pieces)


class _Counted:
    """A stream that counts what is read from it; enough of one for `tarfile` and `zipfile`."""

    def __init__(self, stream: BinaryIO | IO[bytes], guard: _Guard) -> None:
        self.stream = stream
        self.guard = guard

    def read(self, size: int = -1) -> bytes:
        """Read and count; `tarfile` asks for small pieces, whatever headers say."""
        data = self.stream.read(size)
        self.guard.count(len(data))
        return data


def _tar_members(path: Path, guard: _Guard) -> Iterator[tuple[str, IO[bytes]]]:
    with (
        Source.of(path).open() as (stream, _),
        tarfile.open(fileobj=_Counted(stream, guard), mode="r|") as archive,  # type: ignore[call-overload]
    ):
        for entry in archive:
            name = _clean(entry.name)
            if name == "" and entry.isdir():  # "./"
                continue
            guard.enter(name)
            if entry.isdir():
                continue
            if not entry.isreg():
                raise guard.refuse(name, "it is a link or a device, not a plain file")
            if entry.issparse():
                raise guard.refuse(name, "it is a sparse file")
            guard.file(name)
            content = archive.extractfile(entry)
            if content is None:
                raise guard.refuse(name, "it is not a plain file")
            yield name, content


def _zip_members(path: Path, guard: _Guard) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = _clean(entry.filename)
            guard.enter(name)
            mode = entry.external_attr >> 16
            if entry.is_dir():
                continue
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise guard.refuse(name, "it is a link or a device, not a plain file")
            if entry.flag_bits & 1:
                raise guard.refuse(name, "it is encrypted")
            guard.file(name)
            with archive.open(entry) as content:
                yield name, _Counted(content, guard)  # type: ignore[misc]


def _clean(name: str) -> str:
    while name.startswith("./"):
        name = name[2:]
    return name if name != "." else ""


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,  # a way of compressing that zipfile does not know
        RuntimeError,
        ValueError,  # numbers and names in headers that are none
        OverflowError,
    ) as error:
        raise InputError(f"`{path}` is damaged: {error}", hint="get the file again") from error


def _size(size: int) -> str:
    return f"{size / 2**30:.3g} GiB" if size >= 2**30 else f"{size / 2**20:.3g} MiB"
