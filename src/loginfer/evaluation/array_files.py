"""Arrays and facts in one safetensors file, so that they cannot disagree.

The facts are JSON in the file's header. The file is written under another name and moved into place: whoever
is killed meanwhile leaves the older one whole. The same values give the same bytes.
"""

from __future__ import annotations

import json
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


def dump_arrays(stream: IO[bytes], arrays: Arrays, facts: Any = None) -> None:
    """Write arrays, and facts that JSON can hold, to a stream."""
    from safetensors.numpy import save

    metadata = None if facts is None else {_FACTS: json.dumps(facts)}
    stream.write(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata))


def write_arrays(path: Path, arrays: Arrays, facts: Any = None) -> None:
    """Write arrays and facts to a file, which is replaced in one step."""
    with atomic_write(path, "wb", force=True) as stream:
        dump_arrays(stream, arrays, facts)


def read_arrays(path: Path) -> tuple[dict[str, npt.NDArray[Any]], Any]:
    """Read arrays, which may be changed, and facts.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    with reading(path):
        content = path.read_bytes()
    try:
        arrays = {name: array.copy() for name, array in load(content).items()}
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        facts = header.get("__metadata__", {}).get(_FACTS)
        return arrays, None if facts is None else json.loads(facts)
    except (SafetensorError, ValueError, KeyError) as error:
        raise InputError(f"`{path}` is damaged: {error}", hint="remove it") from error
