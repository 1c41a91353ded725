"""Arrays and facts in one safetensors file, so that they cannot disagree.

The facts are JSON in the file's header. The file is written under another name and moved into place: whoever
is killed meanwhile leaves the older one whole. The same values give the same bytes.

Large files are written array by array and mapped when they are read, so that nobody needs memory for a copy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.files import atomic_write, reading
from loginfer.systems.interface import Arrays

__all__ = ["dump_arrays", "read_arrays", "write_arrays"]

# One key only: safetensors does not keep the order of several.
_FACTS = "loginfer"

# Files of at least so many bytes are not held in memory as wholes.
LARGE = 2**26


def dump_arrays(stream: IO[bytes], arrays: Arrays, facts: Any = None) -> None:
    """Write arrays, and facts that JSON can hold, to a stream."""
    from safetensors.numpy import save

    metadata = None if facts is None else {_FACTS: json.dumps(facts)}
    if sum(array.nbytes for array in arrays.values()) >= LARGE and _plain(arrays):
        _dump_one_by_one(stream, arrays, metadata)
    else:
        stream.write(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata))


def _plain(arrays: Arrays) -> bool:
    return all(array.dtype == np.dtype("<f4") and array.flags.c_contiguous for array in arrays.values())


def _dump_one_by_one(stream: IO[bytes], arrays: Arrays, metadata: Mapping[str, str] | None) -> None:
    """Write contiguous arrays of float32 as `safetensors` does: by name, the header padded with blanks."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    start = 0
    for name in sorted(arrays):
        end = start + arrays[name].nbytes
        header[name] = {"dtype": "F32", "shape": list(arrays[name].shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    stream.write(len(text).to_bytes(8, "little") + text)
    for name in sorted(arrays):
        stream.write(arrays[name].data)


def write_arrays(path: Path, arrays: Arrays, facts: Any = None) -> None:
    """Write arrays and facts to a file, which is replaced in one step."""
    with atomic_write(path, "wb", force=True) as stream:
        dump_arrays(stream, arrays, facts)


def read_arrays(path: Path) -> tuple[dict[str, npt.NDArray[Any]], Any]:
    """Read arrays, which may be changed, and facts. Changes stay in memory.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    from safetensors import SafetensorError

    try:
        with reading(path):
            arrays, header = _mapped(path) if path.stat().st_size >= LARGE else _loaded(path)
        facts = header.get("__metadata__", {}).get(_FACTS)
        return arrays, None if facts is None else json.loads(facts)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"`{path}` is damaged: {error}", hint="remove it") from error


def _loaded(path: Path) -> tuple[dict[str, npt.NDArray[Any]], Any]:
    from safetensors.numpy import load

    content = path.read_bytes()
    arrays = {name: array.copy() for name, array in load(content).items()}
    size = int.from_bytes(content[:8], "little")
    return arrays, json.loads(content[8 : 8 + size])


def _mapped(path: Path) -> tuple[dict[str, npt.NDArray[Any]], Any]:
    """Read the arrays of a large file as they are used."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:  # checks that the header makes sense
        names = list(file.keys())
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
    arrays: dict[str, npt.NDArray[Any]] = {}
    content = np.memmap(path, dtype=np.uint8, mode="c")
    for name in names:
        about = header[name]
        start, end = (8 + size + offset for offset in about["data_offsets"])
        kind = np.dtype(_KINDS[about["dtype"]])
        arrays[name] = content[start:end].view(np.ndarray).view(kind).reshape(about["shape"])
    return arrays, header


_KINDS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
