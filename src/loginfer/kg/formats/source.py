"""Where bytes come from and go to: files and archive members, compressed or not."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from loginfer.errors import InputError
from loginfer.files import reading

__all__ = ["COMPRESSIONS", "Source", "check_text", "compressed", "split_compression"]

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
    """

    name: str
    path: Path
    content: bytes | None = None

    @classmethod
    def of(cls, path: Path) -> Source:
        """Return the source of a file."""
        return cls(str(path), path)

    @property
    def file_name(self) -> str:
        """The last part of its path, in lower case, without the ending of a compression."""
        return split_compression(self.path.name)[0].lower()

    def size(self) -> int:
        """Return its size in bytes as it lies there, compressed or not."""
        if self.content is not None:
            return len(self.content)
        with reading(self.path):
            return self.path.stat().st_size

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open it: the stream of decompressed bytes, and the raw one below, whose place is the progress."""
        codec = split_compression(self.path.name)[1]
        with contextlib.ExitStack() as stack:
            stack.enter_context(reading(self.path))
            stack.enter_context(_explained(self.name))
            if self.content is None and self.path.is_dir():
                raise InputError(f"`{self.path}` is a folder", hint="give the name of a file")
            raw: Any = self.path.open("rb", buffering=0) if self.content is None else io.BytesIO(self.content)
            stack.callback(raw.close)
            if codec == "gzip":
                yield (
                    cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=io.BufferedReader(raw, 2**18)))),
                    raw,
                )
            elif codec == "zstd":
                import pyarrow as pa

                inner = stack.enter_context(pa.PythonFile(raw, mode="r"))
                yield cast(BinaryIO, stack.enter_context(pa.CompressedInputStream(inner, "zstd"))), raw
            else:
                yield raw, raw


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Say that a compressed file is damaged where its decoder says something cryptic."""
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
        raise InputError(
            f"`{name}` is binary, not UTF-8 text", hint="give its format (--format), or convert it"
        )


@contextlib.contextmanager
def compressed(raw: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Give a stream that compresses into `raw` as the file's name asks; the same bytes every time."""
    codec = split_compression(name)[1]
    if codec == "gzip":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as stream:
            yield cast(BinaryIO, stream)
    elif codec == "zstd":
        import pyarrow as pa

        with (
            pa.PythonFile(cast(Any, raw), mode="w") as outer,
            pa.CompressedOutputStream(outer, "zstd") as packed,
        ):
            yield cast(BinaryIO, packed)
    else:
        yield raw
