"""One compiled pass over the plain lines of N-Triples, and a look at single terms.

The scanner knows the usual shape of a line: three terms, spaces or tabs between them, a full stop. It
takes terms as they stand, brackets included. Every other line it reports, and a full parser reads it. A
term that is lexically complete need not be valid: `plain_terms` says which distinct terms are beyond doubt,
and the full parser is asked about the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import kernel
from loginfer.kg.scan.names import add, find
from loginfer.kg.scan.tsv import DONE, FULL
from loginfer.kg.scan.words import find_two, hash_bytes, repeated

__all__ = ["ASK", "AS_IT_STANDS", "BRACKETED", "plain_names", "plain_terms", "scan_ntriples"]

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32
QUOTE, HASH, FULL_STOP, COLON, LESS, GREATER = 34, 35, 46, 58, 60, 62
AT, BACKSLASH, CARET, UNDERSCORE, MINUS, SLASH, QUESTION = 64, 92, 94, 95, 45, 47, 63

_NEWLINES = repeated(b"\n")
_RETURNS = repeated(b"\r")
_GREATERS = repeated(b">")
_QUOTES = repeated(b'"')

# What a byte may be: a letter; a letter or digit; in a scheme; in a host; anywhere in an IRI; a lower-case
# letter; never in a blank node's label.
LETTER, ALNUM, SCHEME, HOST, ANYWHERE, LOWER, OUTSIDE = 1, 2, 4, 8, 16, 32, 64


def _byte_classes() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    classes = np.zeros(256, dtype=np.uint8)
    letters = b"abcdefghijklmnopqrstuvwxyz"
    digits = b"0123456789"
    for kind, members in (
        (LOWER, letters),
        (OUTSIDE, b' \t\n\r<>"#\\'),
        (LETTER, letters + letters.upper()),
        (ALNUM, letters + letters.upper() + digits),
        (SCHEME, letters + letters.upper() + digits + b"+-."),
        (HOST, letters + letters.upper() + digits + b"-._~"),
        (ANYWHERE, letters + letters.upper() + digits + b"-._~!$&'()*+,;=:@/?"),
    ):
        classes[list(members)] |= kind
    return classes


CLASSES = _byte_classes()

# What a term turns out to be: the name stands between the first and the last byte; the whole term is the
# name; or the full parser must say.
BRACKETED, AS_IT_STANDS, ASK = 0, 1, 2


@kernel
def term_end(data: Any, place: Any, text: Any) -> Any:
    """Return where the term that starts at `place` ends, or -1 if it is not of a plain shape."""
    first = data[place]
    if first == LESS:
        if data[place + 1] == LESS:
            return np.int64(-1)
        stop = find_two(text + place, _GREATERS, _NEWLINES) - text
        return stop + 1 if data[stop] == GREATER else np.int64(-1)
    if first == UNDERSCORE:
        if data[place + 1] != COLON:
            return np.int64(-1)
        place += 2
        while not CLASSES[data[place]] & OUTSIDE:
            place += 1
        return place if data[place] == SPACE or data[place] == TAB else np.int64(-1)
    if first != QUOTE:
        return np.int64(-1)
    place += 1
    while True:
        # A quote behind an odd number of backslashes does not end the literal.
        stop = find_two(text + place, _QUOTES, _NEWLINES) - text
        if data[stop] == NEWLINE:
            return np.int64(-1)
        escaped = False
        k = stop - 1
        while k >= place and data[k] == BACKSLASH:
            escaped = not escaped
            k -= 1
        place = stop + 1
        if not escaped:
            break
    if data[place] == AT:
        place += 1
        while CLASSES[data[place]] & ALNUM or data[place] == MINUS:
            place += 1
        return place if data[place] == SPACE or data[place] == TAB else np.int64(-1)
    if data[place] == CARET and data[place + 1] == CARET and data[place + 2] == LESS:
        stop = find_two(text + place, _GREATERS, _NEWLINES) - text
        return stop + 1 if data[stop] == GREATER else np.int64(-1)
    return place


@kernel
def scan_ntriples(
    data: Any,
    end: Any,
    state: Any,
    extra: Any,
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
    """Scan whole lines up to `end`, where `data` holds a line end; see `scan_tsv` for the arguments.

    Lines of another shape than the plain one go to `bad` as line, 0, end of the line, place of the line.
    `extra` is not used.
    """
    place, line, row, entities, relations, wrong = state
    text = data.ctypes.data
    e_slots_at, e_offsets_at, e_names_at = e_slots.ctypes.data, e_offsets.ctypes.data, e_names.ctypes.data
    r_slots_at, r_offsets_at, r_names_at = r_slots.ctypes.data, r_offsets.ctypes.data, r_names.ctypes.data
    e_mask, r_mask = np.uint64(len(e_slots) - 1), np.uint64(len(r_slots) - 1)
    starts = np.empty(3, dtype=np.int64)
    ends = np.empty(3, dtype=np.int64)
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
        at = place
        terms = 0
        plain = True
        while terms < 3:
            before = at
            while data[at] == SPACE or data[at] == TAB:
                at += 1
            if terms == 0 and data[at] == NEWLINE:
                break
            if terms == 0 and data[at] == HASH:
                at = find_two(text + at, _RETURNS, _NEWLINES) - text
                # A comment ends at a line end of the old kind too, and something may follow it.
                plain = data[at] == NEWLINE or data[at + 1] == NEWLINE
                break
            if (
                (terms and at == before)
                or (terms == 0 and data[at] == QUOTE)
                or (terms == 1 and data[at] != LESS)
            ):
                plain = False
                break
            stop = term_end(data, at, text)
            if stop < 0:
                plain = False
                break
            starts[terms] = at
            ends[terms] = stop
            terms += 1
            at = stop
        if plain and terms == 3:
            while data[at] == SPACE or data[at] == TAB:
                at += 1
            plain = data[at] == FULL_STOP
            if plain:
                at += 1
                while data[at] == SPACE or data[at] == TAB:
                    at += 1
                if data[at] == RETURN:
                    at += 1
                plain = data[at] == NEWLINE
        else:
            at = find_two(text + at, _NEWLINES, _NEWLINES) - text
        if plain and terms == 3:
            size = at - place
            if e_offsets[entities] + size + 8 > len(e_names) or r_offsets[relations] + size + 8 > len(
                r_names
            ):
                status = FULL
                break
            for column in range(3):
                start, stop = starts[column], ends[column]
                value = hash_bytes(text + start, text + stop)
                if column == 1:
                    i = find(text + start, stop - start, value, r_slots_at, r_mask, r_offsets_at, r_names_at)
                    if i < 0:
                        add(
                            data, start, stop, value, i,
                            r_slots, r_hashes, r_offsets, r_lines, r_names, relations, line,
                        )  # fmt: skip
                        i = relations
                        relations += 1
                else:
                    i = find(text + start, stop - start, value, e_slots_at, e_mask, e_offsets_at, e_names_at)
                    if i < 0:
                        add(
                            data, start, stop, value, i,
                            e_slots, e_hashes, e_offsets, e_lines, e_names, entities, line,
                        )  # fmt: skip
                        i = entities
                        entities += 1
                rows[row, column] = i
            row += 1
        elif not plain:
            at = find_two(text + at, _NEWLINES, _NEWLINES) - text
            bad[wrong, 0] = line
            bad[wrong, 1] = 0
            bad[wrong, 2] = at
            bad[wrong, 3] = place
            wrong += 1
        line += 1
        place = at + 1
    state[0], state[1], state[2], state[3], state[4], state[5] = place, line, row, entities, relations, wrong
    return status


@kernel
def is_plain_iri(data: Any, start: Any, end: Any) -> Any:
    """Say whether these bytes are beyond doubt an absolute IRI: no escapes, no port, plain characters."""
    if start == end or not CLASSES[data[start]] & LETTER:
        return False
    k = start
    while k < end and CLASSES[data[k]] & SCHEME:
        k += 1
    if k == end or data[k] != COLON:
        return False
    k += 1
    if k + 1 < end and data[k] == SLASH and data[k + 1] == SLASH:
        k += 2
        while k < end and CLASSES[data[k]] & HOST:
            k += 1
        if k < end and data[k] != SLASH and data[k] != QUESTION and data[k] != HASH:
            return False
    fragment = False
    while k < end:
        if data[k] == HASH:
            if fragment:
                return False
            fragment = True
        elif not CLASSES[data[k]] & ANYWHERE:
            return False
        k += 1
    return True


@kernel
def is_plain_literal(data: Any, start: Any, end: Any) -> Any:
    """Say whether this is beyond doubt a literal in its canonical form: printable ASCII, no escapes.

    A language is two or three lower-case letters; a datatype is a plain IRI.
    """
    k = start + 1
    while k < end and data[k] != QUOTE:
        if data[k] < SPACE or data[k] >= 127 or data[k] == BACKSLASH:
            return False
        k += 1
    if k >= end:
        return False
    k += 1
    if k == end:
        return True
    if data[k] == AT:
        if end - k < 3 or end - k > 4:
            return False
        lower = True
        for i in range(k + 1, end):
            lower &= CLASSES[data[i]] & LOWER != 0
        return lower
    if (
        end - k < 5
        or data[k] != CARET
        or data[k + 1] != CARET
        or data[k + 2] != LESS
        or data[end - 1] != GREATER
    ):
        return False
    # xsd:string, rdf:langString and rdf:dirLangString have forms of their own; all end in "tring".
    if data[end - 2] == 103 and data[end - 3] == 110 and data[end - 4] == 105:
        return False
    return is_plain_iri(data, k + 3, end - 1)


@kernel
def is_plain_blank(data: Any, start: Any, end: Any) -> Any:
    """Say whether this is `_:` and a label of ASCII letters, digits and underscores."""
    if end - start < 3 or data[start] != UNDERSCORE or data[start + 1] != COLON:
        return False
    plain = True
    for k in range(start + 2, end):
        plain &= CLASSES[data[k]] & ALNUM != 0 or data[k] == UNDERSCORE
    return plain


@kernel
def plain_terms(data: Any, starts: Any, ends: Any, kinds: Any) -> Any:
    """Fill `kinds` with what each term, written as N-Triples writes it, turns out to be."""
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        kinds[i] = ASK
        if end - start < 2:
            continue
        if data[start] == LESS:
            if data[end - 1] == GREATER and is_plain_iri(data, start + 1, end - 1):
                kinds[i] = BRACKETED
        elif data[start] == QUOTE:
            if is_plain_literal(data, start, end):
                kinds[i] = AS_IT_STANDS
        elif is_plain_blank(data, start, end):
            kinds[i] = AS_IT_STANDS


@kernel
def plain_names(data: Any, starts: Any, ends: Any, kinds: Any) -> Any:
    """Fill `kinds` with how each name of a graph is written: in brackets, as it stands, or ask."""
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        kinds[i] = ASK
        if end - start < 2:
            continue
        if data[start] == QUOTE:
            if is_plain_literal(data, start, end):
                kinds[i] = AS_IT_STANDS
        elif is_plain_blank(data, start, end):
            kinds[i] = AS_IT_STANDS
        elif is_plain_iri(data, start, end):
            kinds[i] = BRACKETED
