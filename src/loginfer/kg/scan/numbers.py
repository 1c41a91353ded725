"""One compiled pass over lines of three whole numbers."""

from __future__ import annotations

from typing import Any

from loginfer.compiled import kernel

__all__ = ["scan_numbers"]

TAB, NEWLINE, RETURN, SPACE, ZERO, NINE = 9, 10, 13, 32, 48, 57
LARGEST = 2**31 - 1


@kernel
def scan_numbers(data: Any, place: Any, end: Any, line: Any, rows: Any, bad: Any) -> Any:
    """Scan whole lines of three numbers with spaces or tabs between them; blank lines count as nothing.

    Parameters
    ----------
    data, place, end
        The bytes and the part to scan; data[end - 1] or data[end] is a line end.
    line
        Lines before `place`.
    rows
        int32[n, 3], to be filled; n is at least the number of lines.
    bad
        int64[n], to be filled with the lines that are not three numbers below 2³¹.

    Returns
    -------
    Rows filled, bad lines, lines up to the end.
    """
    row, wrong = 0, 0
    while place < end:
        count, fine = 0, True
        while data[place] != NEWLINE:
            if data[place] in (SPACE, TAB, RETURN):
                place += 1
                continue
            number = 0
            while data[place] >= ZERO and data[place] <= NINE and number <= LARGEST:
                number = number * 10 + (data[place] - ZERO)
                place += 1
            if data[place] not in (SPACE, TAB, RETURN, NEWLINE) or number > LARGEST:
                fine = False
                while data[place] != NEWLINE:
                    place += 1
            elif count < 3:
                rows[row, count] = number
            count += 1
        if fine and count == 3:
            row += 1
        elif count:
            bad[wrong] = line
            wrong += 1
        line += 1
        place += 1
    return row, wrong, line
