"""Tables of names and their order, against what Python says."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.kg.name_table import NameTable, sorted_names

# Short alphabets make long common beginnings; zero bytes are where padding could be mistaken for content.
names = st.lists(
    st.one_of(
        st.binary(max_size=20), st.lists(st.sampled_from([b"\0", b"a", b"aaaaaaaa", b"\xff"]), max_size=5).map(b"".join)
    ),
    max_size=40,
)
quick = settings(max_examples=150, deadline=None)


@quick
@given(names)
def test_names_are_sorted_as_python_sorts_bytes(words):
    made, ids = sorted_names(pa.array(words, pa.large_binary()))
    assert [made.data[a:b].tobytes() for a, b in pairwise(made.offsets)] == sorted(set(words))
    assert [sorted(set(words))[i] for i in ids] == words


@quick
@given(names, st.data())
def test_a_table_gives_equal_ids_to_equal_names_and_keeps_them(words, data):
    cut = data.draw(st.integers(0, len(words)))
    table = NameTable()
    ids = [*table.intern_texts(words[:cut]).tolist(), *table.intern_texts(words[cut:]).tolist()]
    first_seen = list(dict.fromkeys(words))
    assert ids == [first_seen.index(word) for word in words]
    assert [table.name(i) for i in range(table.count)] == first_seen


def test_a_table_grows_to_any_number_of_names():
    table = NameTable()
    words = [b"name%d" % i for i in range(20_000)]
    assert table.intern_texts(words).tolist() == list(range(20_000))
    assert table.intern_texts(reversed(words)).tolist() == list(range(19_999, -1, -1))


@quick
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=20), st.data())
def test_a_vocabulary_merges_equal_names_and_leaves_out_those_not_kept(words, data):
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words))), dtype=bool)
    made, ids = sorted_names(pa.array([word.encode() for word in words], pa.large_binary()), keep)
    assert list(made) == sorted({w for w, k in zip(words, keep, strict=True) if k}, key=str.encode)
    assert [made[i] if i >= 0 else None for i in ids.tolist()] == [
        w if k else None for w, k in zip(words, keep, strict=True)
    ]


@quick
@given(st.lists(st.binary(max_size=5), max_size=10))
def test_names_that_are_not_utf8_are_found_also_where_neighbours_complete_them(words):
    table = NameTable()
    table.intern_texts(words)

    def wrong(word):
        try:
            word.decode()
        except UnicodeDecodeError:
            return True
        return False

    distinct = list(dict.fromkeys(words))
    assert table.not_utf8() == [i for i, word in enumerate(distinct) if wrong(word)]


def test_a_character_torn_in_two_names_is_no_utf8():
    table = NameTable()
    table.intern_texts([b"x\xc3", b"\xa9y"])
    assert table.not_utf8() == [0, 1]


# -- names that somebody made up ----------------------------------------------------------------------

MIX, WORD = 0x9E3779B97F4A7C15, 2**64 - 1


def of_one_hash(count):
    """Return names that a multiplication by a known number and a shift give the same hash: words follow backwards."""
    firsts = np.random.default_rng(0).integers(2**63, size=count).tolist()
    states = [((0x517CC1B727220A95 ^ first) * MIX) & WORD for first in firsts]
    return [a.to_bytes(8, "little") + (s ^ s >> 32).to_bytes(8, "little") for a, s in zip(firsts, states, strict=True)]


def of_one_difference(bits):
    """Return names with pairs of words in which the highest bit, whatever it is multiplied by, cancels itself."""
    flips = (bytes(16), (2**63).to_bytes(8, "little") + (2**63 + 2**31).to_bytes(8, "little"))
    return [b"".join(flips[i >> bit & 1] for bit in range(bits)) for i in range(2**bits)]


@pytest.mark.parametrize("words", [of_one_hash(4096), of_one_difference(12)], ids=["one hash", "one difference"])
def test_nobody_can_make_up_names_that_share_a_hash(words):
    table = NameTable()
    assert table.intern_texts(words).tolist() == list(range(4096))
    assert len(np.unique(table.hashes[: table.count])) == 4096
    slots = np.flatnonzero(table.slots)
    homes = table.hashes[(table.slots[slots] & 0xFFFFFFFF).astype(np.int64) - 1] & np.uint64(len(table.slots) - 1)
    probes = (slots - homes.astype(np.int64)) % len(table.slots)
    assert probes.mean() < 4  # a half for a table that is half full


def test_the_secret_of_the_hash_changes_from_process_to_process_and_no_result_does():
    code = """if True:
        import numpy as np
        from loginfer.kg.name_table import KEY, NameTable, sorted_names
        table = NameTable()
        ids = table.intern_texts(b"name%d" % (i * i % 1009) for i in range(5000))
        names, order = sorted_names(table.names)
        print(KEY.tolist(), hash((ids.tobytes().hex(), names.data.tobytes().hex(), order.tobytes().hex())))"""
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)]
    runs += [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)]
    (key, result), (other_key, same_result) = (run.stdout.rsplit(maxsplit=1) for run in runs)
    assert key != other_key
    assert result == same_result
