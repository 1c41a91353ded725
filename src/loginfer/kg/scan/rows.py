"""Triples of provisional ids become sorted keys; lines are put together from names."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import kernel

__all__ = ["join_lines", "pack_rows", "wrap_names"]


@kernel
def pack_rows(rows: Any, entity_ids: Any, relation_ids: Any, entities: Any, relations: Any, keys: Any) -> Any:
    """Fill `keys` with the packed triples (see `TripleKeys`) of rows of provisional ids; return how many.

    Rows with a name that was dropped (id -1) are left out.
    """
    count = 0
    for i in range(len(rows)):
        s, r, o = entity_ids[rows[i, 0]], relation_ids[rows[i, 1]], entity_ids[rows[i, 2]]
        if s >= 0 and r >= 0 and o >= 0:
            keys[count] = (np.int64(s) * relations + r) * entities + o
            count += 1
    return count


@kernel
def join_lines(
    triples: Any,
    s_data: Any,
    s_offsets: Any,
    r_data: Any,
    r_offsets: Any,
    o_data: Any,
    o_offsets: Any,
    between: Any,
    behind: Any,
    out: Any,
) -> Any:
    """Write one line a triple: the three names with `between` between them and `behind` at the end.

    Returns
    -------
    The number of bytes written; `out` must have room for them.
    """
    place = 0
    for i in range(len(triples)):
        for column in range(3):
            x = triples[i, column]
            if column == 0:
                for k in range(s_offsets[x], s_offsets[x + 1]):
                    out[place] = s_data[k]
                    place += 1
            elif column == 1:
                for k in range(r_offsets[x], r_offsets[x + 1]):
                    out[place] = r_data[k]
                    place += 1
            else:
                for k in range(o_offsets[x], o_offsets[x + 1]):
                    out[place] = o_data[k]
                    place += 1
            if column < 2:
                out[place] = between
                place += 1
        for k in range(len(behind)):
            out[place] = behind[k]
            place += 1
    return place


@kernel
def wrap_names(data: Any, starts: Any, ends: Any, brackets: Any, out: Any) -> Any:
    """Write names one after the other, in angle brackets where `brackets` says so."""
    place = 0
    for i in range(len(starts)):
        if brackets[i]:
            out[place] = 60
            place += 1
        for k in range(starts[i], ends[i]):
            out[place] = data[k]
            place += 1
        if brackets[i]:
            out[place] = 62
            place += 1
