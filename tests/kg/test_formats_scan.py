"""Chunks of lines and lines of numbers, against what Python says."""

import io

from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.kg.formats import scan
from loginfer.kg.formats.openke import numbers_in_lines
from loginfer.kg.formats.scan import line_chunks


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300).map(lambda b: b.replace(b"\xef", b"\n")), st.integers(1, 40))
def test_chunks_are_whole_lines_and_together_the_stream(content, size):
    before, scan.CHUNK_BYTES = scan.CHUNK_BYTES, size
    try:
        pieces = []
        for data, begin, end in line_chunks(io.BytesIO(content), "here"):
            pieces.append(data[begin:end].tobytes())
            assert end == 0 or data[end - 1] == 10 or data[end] == 10
    finally:
        scan.CHUNK_BYTES = before
    assert b"".join(pieces) == content
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


number = st.one_of(st.integers(0, 2**31 - 1).map(str), st.sampled_from(["x", "-1", "1.5", str(2**31), "9" * 30, ""]))
spaces = st.sampled_from([" ", "\t", "  ", " \t"])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.lists(number, max_size=5), spaces, st.sampled_from(["\n", "\r\n"])), max_size=8))
def test_lines_of_three_numbers_are_told_from_others(lines):
    text = "".join(space.join(cells) + end for cells, space, end in lines).encode()
    rows, bad = numbers_in_lines(text)
    good, others = [], []
    for place, line in enumerate(text.decode().split("\n")[:-1]):
        cells = line.split()
        if len(cells) == 3 and all(c.isdigit() and int(c) < 2**31 for c in cells):
            good.append([int(c) for c in cells])
        elif cells:
            others.append(place)
    assert rows.tolist() == good
    assert bad.tolist() == others
