"""A stream of bytes as chunks of whole lines, ready for the compiled scanners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.kg.scan.names import PADDING

__all__ = ["line_chunks"]

CHUNK_BYTES = 2**21
LONGEST_LINE = 2**28


def line_chunks(stream: BinaryIO, where: str) -> Iterator[tuple[npt.NDArray[np.uint8], int, int]]:
    """Yield buffers with the places where whole lines begin and end in them.

    A line end follows the last line even where the stream has none, and a UTF-8 byte order mark at the
    beginning is left out. A buffer is used again for the next chunk.
    """
    size = CHUNK_BYTES
    buffer = bytearray(size + PADDING)
    filled, first = 0, True
    while True:
        with memoryview(buffer) as view:
            read = stream.readinto(view[filled:size])  # type: ignore[attr-defined]
        filled += read
        if read and filled < size:
            continue
        end = filled if not read else buffer.rfind(b"\n", 0, filled) + 1
        if not read:
            buffer[filled : filled + PADDING] = b"\n" * PADDING
        elif end == 0:
            if size >= LONGEST_LINE:
                raise InputError(
                    f"a line is longer than {LONGEST_LINE // 2**20} MB",
                    where=where,
                    hint="is this a text file?",
                )
            buffer = buffer[:filled] + bytearray(size + PADDING)
            size *= 2
            continue
        begin = 3 if first and buffer.startswith(b"\xef\xbb\xbf") else 0
        first = False
        yield np.frombuffer(buffer, dtype=np.uint8), begin, end
        if not read:
            return
        rest = bytes(buffer[end:filled])
        filled = len(rest)
        buffer[:filled] = rest
