"""Vocabularies out of a database."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.kg import Vocabulary

__all__ = ["vocabulary_of"]


def vocabulary_of(column: Any) -> Vocabulary:
    """Return the vocabulary of an Arrow column of names, sorted by their bytes.

    The bytes are taken over as Arrow has them, without a Python string a name.
    """
    import pyarrow as pa

    names = column.cast(pa.large_string()).combine_chunks()
    if isinstance(names, pa.ChunkedArray):
        names = pa.concat_arrays(names.chunks) if names.num_chunks else pa.array([], pa.large_string())
    if not len(names):
        return Vocabulary.of(())
    _, offsets, data = names.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[names.offset : names.offset + len(names) + 1]
    size = int(places[-1] - places[0])
    whole = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)
    return Vocabulary(whole[int(places[0]) : int(places[0]) + size], places - places[0])
