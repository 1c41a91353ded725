"""Names and their ids: a sorted, immutable table of strings; and short forms of names for people.

A short form is a label, a name with a well-known prefix (`rdf:type`), or the last part of an IRI or a path; with
more of the parts before it where another name would look the same. What is shown can be typed: `names_shown_as`
finds the names again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

MANY = 100_000  # names from which compiled code pays off

# Up to this many names a dictionary is worth its memory: relations are looked up often.
FEW = 10_000


def offsets_of(lengths: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return int64[n + 1]: where lists of these lengths start when they stand one after the other, and the end."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


class Vocabulary(Sequence[str]):
    """Distinct names in the order of their UTF-8 bytes; the id of a name is its index.

    Ids depend on the set of names alone, not on the order in which a file mentions them. The names lie in
    one buffer (as in Arrow): five million of them cost what their bytes cost.

    Parameters
    ----------
    data
        uint8, the UTF-8 bytes of all names one after the other.
    offsets
        int64[n + 1], name i is `data[offsets[i]:offsets[i + 1]]`.
    """

    __slots__ = ("_data", "_ids", "_offsets")

    def __init__(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None:
        self._data = np.ascontiguousarray(data, dtype=np.uint8)
        self._offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self._data.setflags(write=False)
        self._offsets.setflags(write=False)
        self._ids: dict[str, int] | None = None

    @classmethod
    def of(cls, names: Iterable[str]) -> Vocabulary:
        """Make a vocabulary of any names; repeated ones count once."""
        encoded = sorted({name.encode() for name in names})
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets_of([len(name) for name in encoded]))

    @classmethod
    def of_arrow(cls, names: Any) -> Vocabulary:
        """Make a vocabulary of an Arrow array of large texts or bytes, distinct and in the order of their bytes."""
        _, offsets, data = names.buffers()
        bounds = np.frombuffer(offsets or bytes(8), dtype=np.int64)[names.offset : names.offset + len(names) + 1]
        text = np.frombuffer(data or b"", dtype=np.uint8)
        return cls(text[bounds[0] : bounds[-1]], bounds - bounds[0])

    def to_arrow(self) -> Any:
        """Return the names as an Arrow array of bytes over the same memory."""
        import pyarrow as pa

        buffers = [None, pa.py_buffer(self._offsets.data), pa.py_buffer(self._data.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """The bytes of all names, one after the other."""
        return self._data

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each name starts in `data`, and where the last one ends."""
        return self._offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def _bytes(self, i: int) -> bytes:
        return self._data[self._offsets[i] : self._offsets[i + 1]].tobytes()

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self._bytes(j).decode() for j in range(*i.indices(len(self)))]
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(f"no name has the id {i}; there are {len(self)} names")
        return self._bytes(i).decode()

    def __iter__(self) -> Iterator[str]:
        data = self._data.tobytes()
        bounds = self._offsets.tolist()
        for start, end in pairwise(bounds):
            yield data[start:end].decode()

    def position(self, name: str) -> int:
        """Return how many names come before this one, whether it is there or not."""
        return self._position(_encoded(name))

    def _position(self, encoded: bytes) -> int:
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(middle) < encoded:
                low = middle + 1
            else:
                high = middle
        return low

    def get(self, name: str) -> int | None:
        """Return the id of a name, or None."""
        if len(self) <= FEW:
            if self._ids is None:
                self._ids = {word: i for i, word in enumerate(self)}
            return self._ids.get(name)
        i = self.position(name)
        return i if i < len(self) and self._bytes(i) == _encoded(name) else None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def index(self, name: str, start: int = 0, stop: int | None = None) -> int:
        """Return the id of a name; `ValueError` if it has none."""
        i = self.get(name)
        if i is None or i < start or (stop is not None and i >= stop):
            raise ValueError(f"{name!r} is not in the vocabulary")
        return i

    def ending_in(self, text: str) -> list[int]:
        """Return the ids of the names that end in a text."""
        encoded = _encoded(text)
        ids = np.flatnonzero(np.diff(self._offsets) >= len(encoded))
        for distance, byte in enumerate(reversed(encoded), start=1):
            ids = ids[self._data[self._offsets[ids + 1] - distance] == byte]
        return ids.tolist()

    def names(self, ids: npt.ArrayLike) -> list[str]:
        """Return the names of many ids; each distinct id is decoded once."""
        distinct, inverse = np.unique(np.asarray(ids, dtype=np.int64), return_inverse=True)
        decoded = [self[i] for i in distinct.tolist()]
        return [decoded[i] for i in inverse.ravel().tolist()]

    def union(self, names: Iterable[str]) -> Vocabulary:
        """Return this vocabulary with more names; itself if it has them all."""
        missing = sorted({name.encode() for name in names if self.get(name) is None})
        if not missing:
            return self
        # The new names go between stretches of the old ones.
        positions = np.array([self._position(name) for name in missing], dtype=np.int64)
        cuts = [0, *self._offsets[positions].tolist()]
        pieces: list[bytes] = []
        for k, name in enumerate(missing):
            pieces += [self._data[cuts[k] : cuts[k + 1]].tobytes(), name]
        pieces.append(self._data[cuts[-1] :].tobytes())
        lengths = np.insert(np.diff(self._offsets), positions, [len(name) for name in missing])
        return Vocabulary(np.frombuffer(b"".join(pieces), dtype=np.uint8), offsets_of(lengths))

    def positions_in(self, other: Vocabulary) -> npt.NDArray[np.int32]:
        """Return int32[len(self)]: the id of each of these names in `other`, -1 where it has none."""
        if other is self:
            return np.arange(len(self), dtype=np.int32)
        if len(self) + len(other) > MANY:
            from loginfer.kg.name_table import NameTable

            table = NameTable()
            table.intern(other.data, other.offsets)
            positions = table.intern(self.data, self.offsets)
            positions[positions >= len(other)] = -1
            return positions
        ids = {name: i for i, name in enumerate(other)}
        return np.fromiter((ids.get(name, -1) for name in self), dtype=np.int32, count=len(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return bool(np.array_equal(self._offsets, other._offsets) and np.array_equal(self._data, other._data))

    def __hash__(self) -> int:
        return hash((len(self), self._data[:256].tobytes()))

    def __repr__(self) -> str:
        shown = ", ".join(repr(name) for name in self[:3])
        return f"Vocabulary({len(self)} names: {shown}{', …' if len(self) > 3 else ''})"


def _encoded(name: str) -> bytes:
    # A lone surrogate, which no file can hold, is an unknown name, not an error.
    return name.encode("utf-8", "surrogatepass")


# Longer ones get a gap in the middle.
LONGEST = 64

# Vocabularies whose prefix everybody knows.
_PREFIXES = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf", "http://www.w3.org/2000/01/rdf-schema#": "rdfs",
    "http://www.w3.org/2002/07/owl#": "owl", "http://www.w3.org/2004/02/skos/core#": "skos",
    "http://xmlns.com/foaf/0.1/": "foaf", "http://schema.org/": "schema", "https://schema.org/": "schema",
    "http://www.w3.org/2001/XMLSchema#": "xsd",
}  # fmt: skip
# A name of such a vocabulary, or a literal whose datatype is one. What is typed is looked up by what is behind its last
# colon, so a name that ends in one has no such form.
_WITH_NAMESPACE = re.compile(
    rf'(?:(".*"\^\^)<)?({"|".join(map(re.escape, _PREFIXES))})([^\s/#<>]*[^\s/#<>:])>?', re.DOTALL
)

# An IRI, or a path as in Freebase; other names with a slash (AC/DC) are not shortened.
_PATH = re.compile(r"(?:(?:https?|ftp|file)://|urn:|/)[^\s<>\"]+")
_BEFORE_A_PART = re.compile(r"[/#]+|(?<=urn):")
IRI_IN_TEXT = re.compile(r"<?(https?://[^\s,()<>\"`]*[#/][\w.-]+)>?")


def short_names(
    names: Iterable[str],
    longest: int | None = LONGEST,
    labels: Mapping[str, str] | None = None,
    among: Sequence[Vocabulary] = (),
) -> dict[str, str]:
    """Return a short form for each name; different names have different ones.

    Parameters
    ----------
    names
        The names that are shown together.
    longest
        How many characters a form may have before it gets a gap in the middle; None for any number.
    labels
        What people call some of them.
    among
        Further names that no form may be taken for, such as those of a graph.
    """
    labels = labels or {}

    def ambiguous(form: str, name: str) -> bool:
        return form != name and any(v[i] != name for v in among for i in names_shown_as(form, v, labels))

    forms = {name: _forms(name, longest, labels.get(name)) for name in names}
    forms = {name: [form for form in forms[name] if not ambiguous(form, name)] for name in forms}
    level = dict.fromkeys(forms, 0)
    while True:
        form = {name: forms[name][level[name]] for name in forms}
        uses = Counter(form.values())
        shared = [n for n in forms if uses[form[n]] > 1 and level[n] + 1 < len(forms[n])]
        if not shared:
            return form
        for name in shared:
            level[name] += 1


def _forms(name: str, longest: int | None, label: str | None = None) -> list[str]:
    """Return the possible short forms of a name: its label, with a prefix, its last part, its last two, …, itself."""
    parts: list[str] = []
    if _PATH.fullmatch(name):
        starts = [match.end() for match in _BEFORE_A_PART.finditer(name.rstrip("/#"))]
        parts = [name[start:] for start in reversed(starts)]
    last = parts[0] if parts else name
    if len(parts) > 1 and not any(map(str.isalpha, last)):
        del parts[0]  # `customer/71`, not `71`
    if match := _WITH_NAMESPACE.fullmatch(name):
        parts.insert(0, f"{match[1] or ''}{_PREFIXES[match[2]]}:{match[3]}")
    if label:
        parts = [label, f"{label} ({last})", *parts]
    return list(dict.fromkeys([middle(form, longest or len(form)) for form in [*parts, name]] + [name]))


def names_shown_as(text: str, names: Vocabulary, labels: Mapping[str, str] | None = None) -> list[int]:
    """Return the ids of the names that a text may stand for: a name itself, its end behind / or #, or a short form."""
    if (exact := names.get(text)) is not None:
        return [exact]
    labels = labels or {}
    ends = {text, text.rpartition("…")[2], local := text.rpartition(":")[2], f"{local}>"} - {""}
    ids: set[int | None] = {i for end in ends for i in names.ending_in(end)}
    ids |= {names.get(name) for name, label in labels.items() if label[:1] == text[:1]}
    return sorted(i for i in ids if i is not None and stands_for(text, names[i], labels.get(names[i])))


def stands_for(text: str, name: str, label: str | None = None) -> bool:
    """Say whether a text may stand for a name."""
    ends = name.endswith(text) and name[: len(name) - len(text)][-1:] in ("", "/", "#", ":")
    return ends or text == label or text in _forms(name, LONGEST, label)


def shortened(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return a text with short forms of its IRIs, those given or else ones that are all different."""
    short = short_names(IRI_IN_TEXT.findall(text), longest=None) if names is None else names
    return IRI_IN_TEXT.sub(lambda match: short.get(match[1], match[1]), text)


def middle(name: str, length: int) -> str:
    """Return a name with at most so many characters; a longer one keeps its beginning and end."""
    if len(name) <= length:
        return name
    kept = max(length - 1, 2)
    end = (kept + 1) // 2
    return f"{name[: kept - end]}…{name[-end:]}"


def triple_text(triple: Sequence[str], names: Mapping[str, str] | None = None) -> str:
    """Return a triple of names as text, with the short forms given, or else its own."""
    short = short_names(triple, longest=None) if names is None else names
    return f"({', '.join(short[name] for name in triple)})"
