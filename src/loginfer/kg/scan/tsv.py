"""One compiled pass over three tab-separated columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import kernel
from loginfer.kg.scan.names import add, find
from loginfer.kg.scan.words import find_and_hash, hash_bytes, repeated

__all__ = ["COLUMNS", "DONE", "EMPTY", "FULL", "scan_tsv"]

# Why the scanner stopped: at the end, or because a buffer must be emptied or enlarged first.
DONE, FULL = 0, 1
# What is wrong with a line: it has `info` columns, or its column `info` is empty.
COLUMNS, EMPTY = 0, 1

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32
_TABS = repeated(b"\t")
_NEWLINES = repeated(b"\n")


@kernel
def scan_tsv(
    data: Any,
    end: Any,
    state: Any,
    columns: Any,
    rows: Any,
    bad: Any,
    e_slots: Any,
    e_hashes: Any,
    e_offsets: Any,
    e_lines: Any,
    e_names: Any,
    r_slots: Any,
    r_hashes: Any,
    r_offsets: Any,
    r_lines: Any,
    r_names: Any,
) -> Any:
    """Scan whole lines up to `end`, where `data` holds a line end.

    state
        int64[6]: place, lines before it, rows filled, entities, relations, bad lines filled; kept between
        calls.
    columns
        int64[3]: the columns of subject, relation, object.
    rows
        int32[n, 3], filled with provisional ids.
    bad
        int64[m, 4], filled with line, what is wrong, info, place of the line.
    """
    place, line, row, entities, relations, wrong = state
    text = data.ctypes.data
    e_slots_at, e_offsets_at, e_names_at = e_slots.ctypes.data, e_offsets.ctypes.data, e_names.ctypes.data
    r_slots_at, r_offsets_at, r_names_at = r_slots.ctypes.data, r_offsets.ctypes.data, r_names.ctypes.data
    e_mask, r_mask = np.uint64(len(e_slots) - 1), np.uint64(len(r_slots) - 1)
    starts = np.empty(3, dtype=np.int64)
    ends = np.empty(3, dtype=np.int64)
    hashes = np.empty(3, dtype=np.uint64)
    s, r, o = columns
    status = DONE
    while place < end:
        if (
            row == len(rows)
            or wrong == len(bad)
            or entities + 2 > len(e_hashes)
            or relations + 1 > len(r_hashes)
        ):
            status = FULL
            break
        column = 0
        start = place
        while True:
            stop, value = find_and_hash(text + start, _TABS, _NEWLINES)
            stop -= text
            if column < 3:
                starts[column] = start
                ends[column] = stop
                hashes[column] = value
            column += 1
            if data[stop] == NEWLINE:
                break
            start = stop + 1
        if column <= 3 and stop > starts[column - 1] and data[stop - 1] == RETURN:
            ends[column - 1] = stop - 1
            hashes[column - 1] = hash_bytes(text + starts[column - 1], text + stop - 1)
        if column == 3 and ends[0] > starts[0] and ends[1] > starts[1] and ends[2] > starts[2]:
            size = stop - place
            if e_offsets[entities] + size + 8 > len(e_names) or r_offsets[relations] + size + 8 > len(
                r_names
            ):
                status = FULL
                break
            start, finish = starts[s], ends[s]
            i = find(text + start, finish - start, hashes[s], e_slots_at, e_mask, e_offsets_at, e_names_at)
            if i < 0:
                add(
                    data, start, finish, hashes[s], i,
                    e_slots, e_hashes, e_offsets, e_lines, e_names, entities, line,
                )  # fmt: skip
                i = entities
                entities += 1
            rows[row, 0] = i
            start, finish = starts[r], ends[r]
            i = find(text + start, finish - start, hashes[r], r_slots_at, r_mask, r_offsets_at, r_names_at)
            if i < 0:
                add(
                    data, start, finish, hashes[r], i,
                    r_slots, r_hashes, r_offsets, r_lines, r_names, relations, line,
                )  # fmt: skip
                i = relations
                relations += 1
            rows[row, 1] = i
            start, finish = starts[o], ends[o]
            i = find(text + start, finish - start, hashes[o], e_slots_at, e_mask, e_offsets_at, e_names_at)
            if i < 0:
                add(
                    data, start, finish, hashes[o], i,
                    e_slots, e_hashes, e_offsets, e_lines, e_names, entities, line,
                )  # fmt: skip
                i = entities
                entities += 1
            rows[row, 2] = i
            row += 1
        else:
            blank = column == 1
            if blank:
                for k in range(starts[0], ends[0]):
                    if data[k] != SPACE:
                        blank = False
                        break
            if not blank:
                bad[wrong, 0] = line
                bad[wrong, 1] = EMPTY if column == 3 else COLUMNS
                bad[wrong, 2] = column
                bad[wrong, 3] = place
                if column == 3:
                    for k in range(3):
                        if ends[k] == starts[k]:
                            bad[wrong, 2] = k + 1
                            break
                wrong += 1
        line += 1
        place = stop + 1
    state[0], state[1], state[2], state[3], state[4], state[5] = place, line, row, entities, relations, wrong
    return status
