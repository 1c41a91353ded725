"""The interface of a format, and the bytes it reads and writes: files and members of archives, compressed or not.

Archives and compressed files are not trusted: only plain files are read from archives, nothing is unpacked to disk
under a name of theirs, and `UnpackLimits` are checked by counting bytes while reading, not by sizes in headers.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import math
import pkgutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Literal, cast

from loginfer.errors import InputError, LimitError
from loginfer.files import reading
from loginfer.progress import Progress
from loginfer.settings import check_settings, document_settings, setting, words

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph


_DELIMITERS = {"tab": "\t", r"\t": "\t", "space": " "}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a graph and which of its triples to keep; each is an option of the commands that read graphs."""

    format: str | None = setting(None, "Format of the graph; by default its ending decides.")
    on_error: Literal["fail", "skip"] = setting("fail", "Bad lines: fail (default), or skip and count them.")
    columns: str | None = setting(
        None, "Columns of TSV or CSV: sro (default), sor, sro_ to skip a fourth, …; a header says it too."
    )
    type_predicate: str | None = setting(
        None, "The relation that gives types; by default rdf:type in its usual forms. Empty: none."
    )
    delimiter: str | None = setting(None, "What separates columns; by default a tab (TSV) or a comma (CSV).")
    literals: Literal["keep", "drop"] = setting("keep", "Triples with a literal: keep (default), or drop.")
    relations: tuple[str, ...] = setting((), "Keep only these relations (a,b,c), and types.", read=words)
    without_relations: tuple[str, ...] = setting((), "Leave out these relations (a,b,c).", read=words)
    min_relation_size: int = setting(1, "Leave out relations with fewer triples.", least=1)
    max_unpacked: int | None = setting(
        None, "GiB that a packed file may unpack to; by default 8, but not 1,000 times its size.", least=1
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.columns is not None and sorted(self.columns.replace("_", "")) != ["o", "r", "s"]:
            hint = "give the letters s, r, o in the file's order, and _ for a column to skip"
            raise InputError(f"`{self.columns}` is no order of columns", hint=hint)
        if self.delimiter is not None and (len(self.separator("")) != 1 or self.separator("") in '"\r\n\0'):
            raise InputError(f"{self.delimiter!r} is no delimiter", hint="give one character, `tab` or `space`")

    def separator(self, default: str) -> str:
        """Return the character between columns."""
        return default if self.delimiter is None else _DELIMITERS.get(self.delimiter, self.delimiter)


document_settings(ReadOptions)

# What a header calls subject, relation and object, the clearest words first.
_HEADERS: tuple[Sequence[Sequence[str]], ...] = (
    (
        ("subject", "subj", "head", "source", "src", "from", "start"),
        ("relation", "rel", "predicate", "pred", "property", "label", "edge", "type"),
        ("object", "obj", "tail", "target", "dst", "to", "end"),
    ),
    "sro", "spo", "hrt",
)  # fmt: skip


def columns_of_header(cells: Sequence[str]) -> str | None:
    """Return the columns that a header names, such as `sro_` (see `ReadOptions`); None for a line that is none."""
    names = [cell.strip().strip('"').lower() for cell in cells]
    for header in _HEADERS:
        chosen = [next((word for word in words if names.count(word) == 1), None) for words in header]
        if None not in chosen:
            return "".join("sro"[chosen.index(name)] if name in chosen else "_" for name in names)
    return None


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What happened while a graph was read.

    Parameters
    ----------
    files
        What was read, in order.
    statements
        Statements (lines with a triple) that could be read.
    triples
        Distinct triples among them.
    skipped
        Bad lines that were left out.
    examples
        What was wrong with the first few of those.
    notes
        What else a user should know: a header, names of graphs, triples that were left out on request.
    """

    files: tuple[str, ...]
    statements: int
    triples: int
    skipped: int = 0
    examples: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = ()

    @property
    def duplicates(self) -> int:
        """Statements that repeated a triple."""
        return self.statements - self.triples


@dataclass(frozen=True, slots=True)
class Loaded:
    """A graph and how it was read."""

    graph: KnowledgeGraph
    report: ReadReport


def plain_builder(skip: bool) -> GraphBuilder:
    """Make a builder that takes names as they are."""
    from loginfer.kg.formats.scan import GraphBuilder

    return GraphBuilder(skip=skip)


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    Parameters
    ----------
    name
        What the command line calls it.
    endings
        Endings of file names, with the dot; `.gz` and `.zst` may follow.
    description
        One line for people.
    read
        Reads files of one graph into a builder.
    write
        Writes a graph to a stream; None if the format is only read, or is a folder.
    write_folder
        Writes a graph to a new folder, for formats of several files.
    builder
        Makes the builder for a graph in this format; its argument says whether bad lines are skipped.
    looks_like
        Says by a file's first bytes and its first line that is no comment whether it has this format.
    files_with
        For a format of several files: the files that belong to one of them.
    files_in
        Likewise, the files of a graph among those in a folder, by name; None if there is none.
    files
        The names of those files, for messages.
    rank
        Where the format stands in lists. Files without a known ending are tried on the last ones first.
    has_columns
        Whether `columns` and `delimiter` say how to read it.
    """

    name: str
    endings: tuple[str, ...]
    description: str
    read: Callable[[Sequence[Source], GraphBuilder, ReadOptions, Progress | None], None]
    write: Callable[[KnowledgeGraph, BinaryIO], None] | None = None
    write_folder: Callable[[KnowledgeGraph, Path], None] | None = None
    builder: Callable[[bool], GraphBuilder] = plain_builder
    looks_like: Callable[[bytes, str], bool] = lambda head, line: False
    files_with: Callable[[Source], list[Source]] | None = None
    files_in: Callable[[Mapping[str, Source]], list[Source] | None] | None = None
    files: str = ""
    rank: int = 100
    has_columns: bool = False


_FORMATS: list[Format] = []


def register_format(new: Format) -> Format:
    """Add a format in which graphs can be read and written; users may add their own."""
    _FORMATS.append(new)
    return new


def formats() -> list[Format]:
    """Return the known formats: each has a name, endings and a description."""
    _load_formats()
    return sorted(_FORMATS, key=lambda format_: format_.rank)


@cache
def _load_formats() -> None:
    """Let the files of this folder register themselves; the scanner, which loads Numba, is no format."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name != "scan":
            importlib.import_module(f"loginfer.kg.formats.{module.name}")


# The parts of a split data set, in the order in which they are read, by the names people give them.
PARTS = {"train": "train", "valid": "valid", "validation": "valid", "dev": "valid", "test": "test"}

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_MAGIC = {
    b"\x1f\x8b": ("gzip-compressed", "let its name end in .gz"),
    b"\x28\xb5\x2f\xfd": ("zstd-compressed", "let its name end in .zst"),
    b"PK\x03\x04": ("a zip archive", "let its name end in .zip"),
    b"PAR1": ("a Parquet file", "let its name end in .parquet"),
    b"\xff\xfe": ("UTF-16 text", "convert it to UTF-8, for example with iconv"),
    b"\xfe\xff": ("UTF-16 text", "convert it to UTF-8, for example with iconv"),
}


def split_compression(name: str) -> tuple[str, str | None]:
    """Return a file name without its `.gz` or `.zst`, and the compression it stands for."""
    if name.lower().endswith(".tgz"):
        return f"{name[:-4]}.tar", "gzip"
    for ending, codec in COMPRESSIONS.items():
        if name.lower().endswith(ending):
            return name[: -len(ending)], codec
    return name, None


def is_context(name: str) -> bool:
    """Say whether a file is the context graph of an inductive data set: `context.txt` or `.tsv`, compressed or not."""
    return split_compression(name.lower())[0] in ("context.txt", "context.tsv")


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """What an archive or a compressed file may unpack to.

    Parameters
    ----------
    members
        Number of entries of an archive, folders included.
    total_bytes
        Unpacked size of everything, headers included.
    ratio
        How many times its own size that may be. Text of triples packs 5 to 50 times.
    small_bytes
        So much it may always be: short lines that repeat pack better than the ratio.
    """

    members: int = 10_000
    total_bytes: int = 8 * 2**30
    ratio: float = 1000
    small_bytes: int = 2**28

    @classmethod
    def of(cls, options: ReadOptions) -> UnpackLimits:
        """Return the limits that a user asks for."""
        gib = options.max_unpacked
        return cls() if gib is None else cls(total_bytes=gib * 2**30, ratio=math.inf)


class Unpacked:
    """Counts what comes out of a file, and refuses more than its limits allow.

    Parameters
    ----------
    name
        What messages call the file.
    size
        Its own size; 0 for a pipe, whose size nobody knows.
    limits
        See `Source`.
    """

    def __init__(self, name: str, size: int, limits: UnpackLimits | None) -> None:
        usual = limits or UnpackLimits()
        self.most = min(usual.total_bytes, max(usual.ratio * (size or math.inf), usual.small_bytes))
        why = "" if self.most == usual.total_bytes else f", over {usual.ratio:,} times its size"
        self.message = f"`{name}` unpacks to more than {_size(self.most)}{why}"
        self.hint = "if it is meant to be so large, unpack it yourself"
        self.hint += ", or allow more GiB with --max-unpacked" if limits else ""
        self.total = 0

    def count(self, size: int) -> None:
        """Count unpacked bytes."""
        self.total += size
        if self.total > self.most:
            raise LimitError(self.message, hint=self.hint)


class _Counted(io.RawIOBase):
    """A stream that counts what is read from it."""

    def __init__(self, stream: Any, unpacked: Unpacked) -> None:
        self.stream = stream
        self.unpacked = unpacked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read and count; whoever wants everything gets it in small pieces."""
        size = int(self.stream.readinto(buffer))
        self.unpacked.count(size)
        return size


@dataclass(frozen=True, slots=True)
class Source:
    """Something that can be read as bytes: a file, or a member of an archive.

    Parameters
    ----------
    name
        What messages call it.
    path
        The file.
    content
        The bytes of an archive's member, if it is one.
    limits
        What it may unpack to; None for the usual limits, which no option changes.
    """

    name: str
    path: Path
    content: bytes | None = None
    limits: UnpackLimits | None = None

    @classmethod
    def of(cls, path: Path) -> Source:
        """Return the source of a file."""
        return cls(str(path), path)

    @property
    def file_name(self) -> str:
        """The last part of its path, in lower case, without the ending of a compression."""
        return split_compression(self.path.name)[0].lower()

    def size(self) -> int:
        """Return its size in bytes as stored, compressed or not."""
        if self.content is not None:
            return len(self.content)
        with reading(self.path):
            return self.path.stat().st_size

    def unpacked(self) -> Unpacked:
        """Return a counter for what comes out of it."""
        return Unpacked(self.name, self.size(), self.limits)

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open it: the stream of decompressed bytes, and the raw stream, whose position is the progress."""
        codec = split_compression(self.path.name)[1]
        with contextlib.ExitStack() as stack:
            stack.enter_context(reading(self.path))
            stack.enter_context(_explained(self.name))
            if self.content is None and self.path.is_dir():
                raise InputError(f"`{self.path}` is a folder", hint="give the name of a file")
            raw: Any = self.path.open("rb", buffering=0) if self.content is None else io.BytesIO(self.content)
            stack.callback(raw.close)
            stream = raw
            if codec == "gzip":
                stream = stack.enter_context(gzip.GzipFile(fileobj=io.BufferedReader(raw, 2**18)))
            elif codec == "zstd":
                import pyarrow as pa

                inner = stack.enter_context(pa.PythonFile(raw, mode="r"))
                stream = stack.enter_context(pa.CompressedInputStream(inner, "zstd"))
            yield (raw if codec is None else cast(BinaryIO, _Counted(stream, self.unpacked()))), raw


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn cryptic errors of decoders into one that says that the file is damaged."""
    try:
        yield
    except EOFError as error:
        raise _damaged(name, "it ends too early") from error
    except zlib.error as error:
        raise _damaged(name, str(error)) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(name, str(error)) from error


def _damaged(name: str, reason: str) -> InputError:
    return InputError(f"`{name}` is damaged: {reason}", hint="get the file again")


def check_text(head: bytes, name: str) -> None:
    """Raise an `InputError` if the first bytes of a file are no UTF-8 text."""
    for magic, (what, hint) in _MAGIC.items():
        if head.startswith(magic):
            raise InputError(f"`{name}` is {what}, not UTF-8 text", hint=hint)
    if b"\0" in head:
        raise InputError(f"`{name}` is binary, not UTF-8 text", hint="give its format (--format), or convert it")


@contextlib.contextmanager
def compressed(raw: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Give a stream that compresses into `raw` according to the file's name; the same bytes every time."""
    codec = split_compression(name)[1]
    if codec == "gzip":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as stream:
            yield cast(BinaryIO, stream)
    elif codec == "zstd":
        import pyarrow as pa

        with pa.PythonFile(cast(Any, raw), mode="w") as outer, pa.CompressedOutputStream(outer, "zstd") as packed:
            yield cast(BinaryIO, packed)
    else:
        yield raw


ARCHIVE_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip")


@dataclass(frozen=True, slots=True)
class Member:
    """A plain file in an archive.

    Parameters
    ----------
    name
        Its path in the archive, with forward slashes.
    content
        Its bytes, or None if they were not read.
    """

    name: str
    content: bytes | None


def is_archive(path: Path) -> bool:
    """Say whether a file's name is that of an archive we read."""
    return path.name.lower().endswith(ARCHIVE_ENDINGS)


def read_archive(
    path: str | Path, *, select: Callable[[str], bool] | None = None, limits: UnpackLimits | None = None
) -> list[Member]:
    """Return the plain files in an archive, in the order they are packed.

    Parameters
    ----------
    path
        A file with one of `ARCHIVE_ENDINGS`.
    select
        Says by its name whether to read a member's content; by default all are read.
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
    guard = _Guard(file, limits)
    members = _zip_members if file.name.lower().endswith(".zip") else _tar_members
    files: list[Member] = []
    with reading(file), _explained_archive(file):
        for name, stream in members(file, guard):
            content = None
            if select is None or select(name):
                content = b"".join(iter(partial(stream.read, 2**20), b""))  # faster than all at once
            files.append(Member(name, content))
    return files


class _Guard:
    """Counts the entries and bytes of an archive, and refuses suspicious entries."""

    def __init__(self, path: Path, limits: UnpackLimits | None) -> None:
        self.source = replace(Source.of(path), limits=limits)
        self.path = path
        self.members = (limits or UnpackLimits()).members
        self.unpacked = self.source.unpacked()
        self.names: set[str] = set()
        self.entries = 0

    def enter(self, name: str) -> None:
        """Count one entry and check its path."""
        self.entries += 1
        if self.entries > self.members:
            raise LimitError(f"`{self.path}` holds more than {self.members:,} entries")
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name or ":" in parts[0] or "\0" in name:
            raise self.refuse(name, "its path leads out of the archive")

    def file(self, name: str) -> None:
        """Check that a file's name is new."""
        if name in self.names:
            raise self.refuse(name, "the name is there twice")
        self.names.add(name)

    def refuse(self, name: str, why: str) -> InputError:
        """Return the error for an entry that is not read."""
        hint = "unpack it yourself if you trust it, and give the folder"
        return InputError(f"`{self.path}` is refused because of its entry `{name[:200]}`: {why}", hint=hint)


def _tar_members(path: Path, guard: _Guard) -> Iterator[tuple[str, IO[bytes]]]:
    with (
        guard.source.open() as (stream, _),
        tarfile.open(fileobj=_Counted(stream, guard.unpacked), mode="r|") as archive,
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
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                # Others may ask for gigabytes to unpack a byte.
                raise guard.refuse(name, "it is compressed in an unusual way")
            guard.file(name)
            with archive.open(entry) as content:
                yield name, cast(IO[bytes], _Counted(content, guard.unpacked))


def _clean(name: str) -> str:
    while name.startswith("./"):
        name = name[2:]
    return name if name != "." else ""


@contextlib.contextmanager
def _explained_archive(path: Path) -> Iterator[None]:
    try:
        yield
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        RuntimeError,
        ValueError,  # invalid numbers and names in headers
        OverflowError,
    ) as error:
        raise InputError(f"`{path}` is damaged: {error}", hint="get the file again") from error


def _size(size: float) -> str:
    return f"{size / 2**30:.3g} GiB" if size >= 2**30 else f"{size / 2**20:.4g} MiB"
