"""What formats with one triple a line have in common: reading chunks, writing joined names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from loginfer.kg.formats.interface import Progress
from loginfer.kg.formats.source import Source, check_text
from loginfer.kg.triples import Triples

__all__ = ["text_chunks", "write_lines"]

BATCH = 2**17  # triples put together at a time
HEAD = 4096  # bytes that tell text from other things


def text_chunks(
    source: Source, progress: Progress | None
) -> Iterator[tuple[npt.NDArray[np.uint8], int, int]]:
    """Yield a text file as chunks of whole lines, see `line_chunks`."""
    from loginfer.kg.scan.chunks import line_chunks

    size = source.size() if progress else 0
    done = 0
    with source.open() as (stream, raw):
        first = True
        for data, begin, end in line_chunks(stream, source.name):
            if first:
                check_text(data[: min(end, HEAD)].tobytes(), source.name)
                first = False
            yield data, begin, end
            if progress:
                done = raw.tell() if raw.seekable() else done + end - begin
                progress(f"reading {source.name}", done, size or None)


def write_lines(
    stream: BinaryIO,
    triples: Triples,
    columns: tuple[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]], ...],
    between: bytes,
    behind: bytes,
) -> None:
    """Write one line a triple.

    Parameters
    ----------
    stream
        Where to.
    triples
        int32[n, 3].
    columns
        For subject, relation, object: the bytes of all names and the offsets between them.
    between, behind
        One byte between the columns, and what ends a line.
    """
    from loginfer.kg.scan.rows import join_lines

    ending = np.frombuffer(bytearray(behind), dtype=np.uint8)
    arrays = [array for data, offsets in columns for array in (_writable(data), _writable(offsets))]
    s, s_at, r, r_at, o, o_at = arrays
    for start in range(0, len(triples), BATCH):
        part = np.array(triples[start : start + BATCH], order="C")
        size = len(part) * (2 + len(behind))
        for column, (_, offsets) in enumerate(columns):
            size += int((offsets[part[:, column] + 1] - offsets[part[:, column]]).sum())
        out = np.empty(size, dtype=np.uint8)
        join_lines(part, s, s_at, r, r_at, o, o_at, between[0], ending, out)
        stream.write(out.data)


def _writable(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    # Kernels are compiled once, for writable arrays; vocabularies are read-only.
    return array if array.flags.writeable else array.copy()
