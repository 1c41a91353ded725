"""Entities in parts and files.

Parts of the entities, two of which are in memory at a time, and a tour of all pairs of parts.

Every triple has its ends in one part or in two, so it can be learned from while some pair of parts is in
memory. A *row* is an entity's place in the order of the parts: parts hold random entities, since neighbours
in the order of names are often of one kind.

After Lerer and others, PyTorch-BigGraph: A Large-scale Graph Embedding System (MLSys 2019), whose buckets are
worked on one after the other here.

P_train and N_train by the pair of parts that their ends lie in.

A folder of files with parts of arrays. A file is never changed: what is new gets a new number.

So a checkpoint need only say which files were the latest: they are as they were, whatever happened since.
Files that neither the last checkpoint nor anybody else needs are removed.

    shelf.json       whose files these are
    entities-2.17    raw little-endian float32: the rows of part 2, the 17th file on this shelf

Where the rows of entities are kept: all of them in memory, or two parts of them and the rest elsewhere.

Rows of entities in files, with the parts that are being learned in memory.

To let the system write back what changes in a mapped file does not work here: every batch changes rows all
over it, so nearly all of it would have to be written all the time. Parts are read and written as wholes
instead, and files are mapped where they are only read: while rows are looked up, and once learning has ended.

Temporary folders for weights, which the next training removes if a process was killed and left its own.

A folder belongs to the process that holds the lock on the file `lock` in it; the system releases it when the
process dies, however it does.

Where the weights of a training are kept: in memory, in its run's folder, or in a temporary one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import time
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_write, describe_os_error, reading, sync, writing
from loginfer.randomness import generator
from loginfer.systems.embedding.base import EmbeddingSystem, Floats
from loginfer.systems.embedding.kernels import Data, Ids, zeros
from loginfer.systems.interface import Arrays, FolderWatch, Watch

# Weights and moments up to so many bytes are not split, and two parts of larger ones have no more.
MEMORY = 8 * 2**30

# The parts in memory, in the order of their places there; a single one if there is one part only.
Pair = tuple[int, ...]


def row_bytes(system: EmbeddingSystem) -> int:
    """Return the bytes of an entity's weights and both moments."""
    return 3 * 4 * system.entity_width


@dataclass(frozen=True)
class Partition:
    """How entities are split.

    Parameters
    ----------
    parts
        How many parts.
    size
        Rows of a part; the last one may have fewer.
    rows
        int32[entities], the row of each entity; None if it is the entity's id.
    entities
        How many entities.
    """

    parts: int
    size: int
    rows: Ids | None
    entities: int

    @classmethod
    def of(cls, system: EmbeddingSystem, entities: int) -> Partition:
        """Split entities as a system's settings say. What the machine has does not matter."""
        parts = system.partitions
        if not parts:
            size = entities * row_bytes(system)
            parts = 1 if size <= MEMORY else max(3, -(-2 * size // MEMORY))
        parts = max(1, min(parts, entities))
        if parts == 1:
            return cls(1, entities, None, entities)
        size = -(-entities // parts)
        rows = generator(system.seed, "embedding", "rows").permutation(entities).astype(np.int32)
        return cls(-(-entities // size), size, rows, entities)

    def bounds(self, part: int) -> tuple[int, int]:
        """Return the rows of a part, from and to."""
        return part * self.size, min((part + 1) * self.size, self.entities)

    @property
    def places(self) -> int:
        """How many rows are in memory at a time, at most."""
        return min(2, self.parts) * self.size

    def rows_of(self, entities: Ids) -> Ids:
        """Return the rows of entities."""
        return entities if self.rows is None else self.rows[entities]

    def tour(self, seed: int, epoch: int) -> list[Pair]:
        """Return all pairs of parts in the order of an epoch; from one to the next a single part changes."""
        if self.parts < 3:
            return [tuple(range(self.parts))]
        names = generator(seed, "embedding", "tour", epoch).permutation(self.parts).tolist()
        found: list[Pair] = []
        for first in range(self.parts - 1):
            others = range(first + 1, self.parts)
            for second in others if first % 2 == 0 else reversed(others):
                found.append(_after(found[-1] if found else None, names[first], names[second]))
        return found


def _after(last: Pair | None, one: int, two: int) -> Pair:
    """Return a pair with the part that it shares with the last one in the same place."""
    return (two, one) if last is not None and (last[0] == two or last[1] == one) else (one, two)


Starts = npt.NDArray[np.int64]


class Buckets:
    """What can be learned while a pair of parts is in memory.

    A triple with both ends in one part goes to any of the pairs with this part, by chance. Random negatives
    are drawn from the constants of both parts.

    Parameters
    ----------
    data
        All there is to learn from, by ids of entities.
    partition
        How entities are split.
    seed
        Seed of the chance.
    """

    def __init__(self, data: Data, partition: Partition, seed: int) -> None:
        self._data = data
        self._partition = partition
        self._whole = partition.parts == 1
        if self._whole:
            return
        random = generator(seed, "embedding", "parts")
        positives, self._positive_starts = self._sorted(data.positives, random)
        negatives, self._negative_starts = self._sorted(data.negatives, random)
        constants, types = (np.sort(partition.rows_of(ids)) for ids in (data.constants, data.types))
        # By rows instead of ids.
        self._data = Data(positives, negatives, constants, types, data.relations, data.type_relation)

    def _sorted(self, triples: Ids, random: np.random.Generator) -> tuple[Ids, Starts]:
        """Return triples of rows sorted by pair, and where each pair starts."""
        parts = self._partition.parts
        rows = np.stack(
            [self._partition.rows_of(triples[:, 0]), triples[:, 1], self._partition.rows_of(triples[:, 2])], axis=1
        )
        one, two = (rows[:, column] // self._partition.size for column in (0, 2))
        within = np.flatnonzero(one == two)
        two[within] = (one[within] + 1 + random.integers(0, parts - 1, len(within))) % parts
        pair = np.minimum(one, two) * parts + np.maximum(one, two)
        order = np.argsort(pair, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=parts * parts))])
        return rows[order], starts

    def count(self, pair: Pair) -> int:
        """Return how many positives a pair has."""
        return len(self._data.positives) if self._whole else len(self._part_of(pair, positives=True))

    def data(self, pair: Pair) -> Data:
        """Return what can be learned from a pair, by places of its rows in memory."""
        if self._whole:
            return self._data
        positives, negatives = (self._part_of(pair, positives=positives) for positives in (True, False))
        return self._data._replace(
            positives=self._placed_triples(positives, pair),
            negatives=self._placed_triples(negatives, pair),
            constants=self._pool(self._data.constants, pair),
            types=self._pool(self._data.types, pair),
        )

    def _part_of(self, pair: Pair, *, positives: bool) -> Ids:
        number = min(pair) * self._partition.parts + max(pair)
        triples = self._data.positives if positives else self._data.negatives
        starts = self._positive_starts if positives else self._negative_starts
        return triples[starts[number] : starts[number + 1]]

    def _placed_triples(self, triples: Ids, pair: Pair) -> Ids:
        placed = triples.copy()
        for column in (0, 2):
            placed[:, column] = self._placed(triples[:, column], pair)
        return placed

    def _placed(self, rows: Ids, pair: Pair) -> Ids:
        """Return the places in memory of rows that belong to a pair."""
        size = self._partition.size
        first, second = pair
        shift = np.where(rows // size == first, -first * size, (1 - second) * size)
        return (rows + shift).astype(np.int32)

    def _pool(self, rows: Ids, pair: Pair) -> Ids:
        """Return the places in memory of those of some sorted rows that belong to a pair."""
        chosen = [rows[slice(*np.searchsorted(rows, self._partition.bounds(part)))] for part in pair]
        return self._placed(np.concatenate(chosen), pair)


_OWN = re.compile(r"[a-z]+-\d+\.\d+|shelf\.json")
_ABOUT = "shelf.json"


class Shelf:
    """The files of one training.

    Parameters
    ----------
    folder
        Where they are; made if it is not there.
    about
        What the arrays are, as JSON values: files of something else are not taken up.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self._about = dict(about)
        self._next = 1
        self._fresh: set[str] = set()
        self.key = ""

    def clear(self, needed: int) -> None:
        """Start an empty shelf, with room on the disk for so many bytes.

        Raises
        ------
        OutputError
            If the folder cannot be written, or the disk is too full.
        """
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.forget(())
            free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise OutputError(
                f"weights in files need up to {_size(needed)}, and `{self.folder}` has {_size(free)} left",
                hint="free some space, or choose another place: --out, or TMPDIR without it; "
                "--set storage=memory needs none",
            )
        self.key = uuid.uuid4().hex
        with atomic_write(self.folder / _ABOUT, force=True) as stream:
            json.dump({"key": self.key, **self._about}, stream)

    def take_up(self, key: str, files: Collection[str], bytes_of: Mapping[str, int]) -> None:
        """Go on with the files that a checkpoint needs.

        Raises
        ------
        InputError
            If they are not there, or are those of something else.
        """
        again = f"remove the folder `{self.folder.parent}` to start over"
        path = self.folder / _ABOUT
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(f"the weights of the unfinished run are not in `{self.folder}`", hint=again) from error
        if found != {"key": key, **self._about}:
            raise InputError(f"the weights in `{self.folder}` are those of another run", hint=again)
        for name in sorted(files):
            file = self.folder / name
            wanted = bytes_of[name]
            if not file.is_file() or file.stat().st_size != wanted:
                raise InputError(f"`{file}` is missing or damaged: {wanted} bytes are wanted", hint=again)
        self.key = key
        self._next = 1 + max(int(name.rsplit(".", 1)[1]) for name in files)
        self.forget(files)

    def write(self, what: str, part: int, arrays: Iterable[npt.NDArray[np.float32]]) -> str:
        """Write a new file, arrays one after the other; returns its name."""
        with self._new(what, part) as (name, stream):
            for array in arrays:
                stream.write(np.ascontiguousarray(array).data)
        return name

    def zeros(self, what: str, part: int, size: int) -> str:
        """Make a new file of so many zero bytes; on most disks it takes no room yet."""
        with self._new(what, part) as (name, stream):
            stream.truncate(size)
        return name

    @contextlib.contextmanager
    def _new(self, what: str, part: int) -> Iterator[tuple[str, IO[bytes]]]:
        """Open a new file; it vanishes if it cannot be written to its end."""
        name = f"{what}-{part}.{self._next}"
        path = self.folder / name
        self._next += 1
        self._fresh.add(name)
        try:
            with writing(path), path.open("wb") as stream:
                yield name, stream
        except BaseException as error:
            with contextlib.suppress(OSError):
                path.unlink()
            if isinstance(error, OutputError):
                again = "with --out, the same command then goes on from the last checkpoint"
                raise OutputError(error.message, hint=f"free some space; {again}") from error
            raise

    def read(self, name: str, target: npt.NDArray[np.float32]) -> None:
        """Read a file into an array."""
        path = self.folder / name
        with reading(path), path.open("rb", buffering=0) as stream:
            left = target.data.cast("B")
            while len(left):
                count = stream.readinto(left)
                if not count:
                    raise InputError(f"`{path}` is damaged: it is too short")
                left = left[count:]

    def announce(self, name: str) -> None:
        """Say that a file will be read soon."""
        if hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError), (self.folder / name).open("rb") as stream:
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)

    def sync(self, files: Collection[str]) -> None:
        """Make sure that files are on the disk."""
        for name in sorted(self._fresh.intersection(files)):
            with writing(self.folder / name):
                sync(self.folder / name)
            self._fresh.discard(name)
        with writing(self.folder):
            sync(self.folder)

    def forget(self, needed: Collection[str]) -> None:
        """Remove files of ours that nobody needs."""
        kept = {*needed, *([_ABOUT] if needed else [])}
        with writing(self.folder):
            for file in list(self.folder.iterdir()):
                if _OWN.fullmatch(file.name) and file.name not in kept:
                    file.unlink()
                    self._fresh.discard(file.name)


def mapped(path: Path, rows: int, width: int) -> Floats:
    """Return the rows in a file, read as they are used; changes stay in memory."""
    with reading(path):
        found = np.memmap(path, dtype=np.float32, mode="c", shape=(rows, width))
    # A plain array: kernels do not know the other kind.
    return found.view(np.ndarray)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


# Rows that are worked on at a time where the whole would need memory for a copy.
BLOCK = 2**16


class Store(ABC):
    """The rows of entities, with the parts that are being learned in memory.

    Parameters
    ----------
    system
        Its settings.
    partition
        How rows are split into parts.
    entities, moments
        float32[places, width] and float32[places, 2, width], the rows in memory.
    """

    # Whether rows are kept in files, which a checkpoint then only names.
    in_files: ClassVar[bool] = False

    def __init__(self, system: EmbeddingSystem, partition: Partition, entities: Floats, moments: Floats) -> None:
        self._system = system
        self._partition = partition
        self._loaded: list[int | None] = [None] * min(2, partition.parts)
        self.entities = entities
        self.moments = moments

    @abstractmethod
    def begin(self, random: np.random.Generator) -> None:
        """Draw the rows at the start."""

    @abstractmethod
    def resume(self, arrays: Arrays, facts: Any) -> None:
        """Take rows up from what `save` gave."""

    @abstractmethod
    def save(self) -> tuple[dict[str, npt.NDArray[Any]], Any]:
        """Return arrays and facts for a checkpoint; what is not in them is safe when this returns."""

    def saved(self) -> None:  # noqa: B027 - most have nothing to do
        """Take note that the checkpoint is kept: what only the last one needed may go."""

    def ready(self, within: bool) -> bool:
        """Say whether now is the time for a checkpoint; `within` an epoch, or between two."""
        return not within

    def changing(self) -> None:  # noqa: B027
        """Take note that rows in memory will be changed."""

    def expect(self, pair: Pair) -> None:  # noqa: B027
        """Take note of which pair will be next."""

    @abstractmethod
    def keep(self) -> None:
        """Keep the rows as they are now, as the best ones so far."""

    @abstractmethod
    def result(self, best: bool) -> Floats:
        """Return the rows that were kept as the best, or the last ones, in the order of entities."""

    @abstractmethod
    def _write(self, part: int, entities: Floats, moments: Floats) -> None:
        """Put a part back."""

    @abstractmethod
    def _read(self, part: int, entities: Floats, moments: Floats) -> None:
        """Fetch a part."""

    @abstractmethod
    def _kept(self, part: int) -> Floats:
        """Return a part that is not in memory, to be read only."""

    def load(self, pair: Pair) -> None:
        """Bring a pair of parts into memory, instead of those that are there."""
        wanted = [(place, part) for place, part in enumerate(pair) if self._loaded[place] != part]
        for place, _ in wanted:
            if (old := self._loaded[place]) is not None:
                self._write(old, *self._views(place, old))
                self._loaded[place] = None
        for place, part in wanted:
            self._read(part, *self._views(place, part))
            self._loaded[place] = part

    def rows(self, wanted: Ids) -> Floats:
        """Return copies of some rows, which are sorted."""
        found = np.empty((len(wanted), self._system.entity_width), dtype=np.float32)
        ends = np.searchsorted(wanted, [self._partition.bounds(p)[1] for p in range(self._partition.parts)])
        for part, start, end in zip(range(len(ends)), np.concatenate([[0], ends]), ends, strict=False):
            if start < end:
                found[start:end] = self._current(part)[wanted[start:end] - part * self._partition.size]
        return found

    def finite(self) -> bool:
        """Say whether all weights in memory are finite numbers."""
        return all(
            bool(np.isfinite(self._views(place, part)[0][block]).all())
            for place, part in enumerate(self._loaded)
            if part is not None
            for block in blocks(*self._partition.bounds(part))
        )

    def _current(self, part: int) -> Floats:
        """Return the weights of a part as they are now."""
        if part in self._loaded:
            return self._views(self._loaded.index(part), part)[0]
        return self._kept(part)

    def _views(self, place: int, part: int) -> tuple[Floats, Floats]:
        """Return the rows of a part in memory."""
        start, end = self._partition.bounds(part)
        here = slice(place * self._partition.size, place * self._partition.size + end - start)
        return self.entities[here], self.moments[here]

    def _drawn(self, random: np.random.Generator, part: int) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of a part at the start, block by block: the same numbers as all at once."""
        for block in blocks(*self._partition.bounds(part)):
            yield block, self._system.initial_entities(block.stop - block.start, random)


def blocks(start: int, end: int) -> Iterator[slice]:
    """Yield slices from 0 that cover so many rows as there are from start to end."""
    for first in range(0, end - start, BLOCK):
        yield slice(first, min(first + BLOCK, end - start))


class MemoryStore(Store):
    """All rows in memory; where they are split, a pair of parts is copied to be learned from."""

    def __init__(self, system: EmbeddingSystem, partition: Partition) -> None:
        count, width = partition.entities, system.entity_width
        self._all, self._all_moments = zeros(count, width), zeros(count, 2, width)
        self._best: Floats | None = None
        places = partition.places
        if partition.parts == 1:
            super().__init__(system, partition, self._all, self._all_moments)
            self._loaded = [0]
        else:
            super().__init__(system, partition, zeros(places, width), zeros(places, 2, width))

    def begin(self, random: np.random.Generator) -> None:
        """Draw the rows at the start."""
        for part in range(self._partition.parts):
            mine = self._all[slice(*self._partition.bounds(part))]
            for block, drawn in self._drawn(random, part):
                mine[block] = drawn

    def resume(self, arrays: Arrays, facts: Any) -> None:
        """Take rows up from what `save` gave."""
        self._all[:] = arrays["entities"]
        self._all_moments[:] = arrays["entity_moments"]
        if "best_entities" in arrays:
            self._best = np.array(arrays["best_entities"], dtype=np.float32)

    def save(self) -> tuple[dict[str, npt.NDArray[Any]], Any]:
        """Return all rows, and the best ones."""
        self._put_back()
        best = {} if self._best is None else {"best_entities": self._best}
        return {"entities": self._all, "entity_moments": self._all_moments, **best}, None

    def keep(self) -> None:
        """Keep the rows as they are now, as the best ones so far."""
        self._put_back()
        if self._best is None:
            self._best = np.empty_like(self._all)
        np.copyto(self._best, self._all)

    def result(self, best: bool) -> Floats:
        """Return the rows that were kept as the best, or the last ones, in the order of entities."""
        self._put_back()
        found = self._best if best and self._best is not None else self._all
        return found if self._partition.rows is None else found[self._partition.rows]

    def _put_back(self) -> None:
        if self._partition.parts > 1:
            for place, part in enumerate(self._loaded):
                if part is not None:
                    self._write(part, *self._views(place, part))

    def _write(self, part: int, entities: Floats, moments: Floats) -> None:
        mine = slice(*self._partition.bounds(part))
        self._all[mine], self._all_moments[mine] = entities, moments

    def _read(self, part: int, entities: Floats, moments: Floats) -> None:
        entities[:], moments[:] = self._kept(part), self._all_moments[slice(*self._partition.bounds(part))]

    def _kept(self, part: int) -> Floats:
        return self._all[slice(*self._partition.bounds(part))]


_ENTITIES, _MOMENTS, _RESULT = "entities", "moments", "result"

# What is written down besides rows of the last checkpoint and of the next one, in weights of all entities:
# the best rows of each, and a part that is being written. The result and the run's own files with it come
# when the rows of the next one are gone.
_MORE = 3

# Between two checkpoints lies at least so many times what the last one took.
PATIENCE = 10.0


class MappedStore(Store):
    """Parts in files; two of them are in memory.

    Parameters
    ----------
    system, partition
        Its settings, and how rows are split.
    folder
        Where the files are.
    """

    in_files: ClassVar[bool] = True

    def __init__(self, system: EmbeddingSystem, partition: Partition, folder: Path) -> None:
        places, width = partition.places, system.entity_width
        super().__init__(system, partition, zeros(places, width), zeros(places, 2, width))
        about = {"entities": partition.entities, "width": width, "parts": partition.parts}
        self._shelf = Shelf(folder, {**about, "model": type(system).__name__, "seed": system.seed})
        # The file of each part's weights and moments, those of the best weights, and all that the last
        # checkpoint names.
        self._files: list[tuple[str, str]] = []
        self._best: list[str] = []
        self._saved: set[str] = set()
        # Whether what is in memory differs from the files: weights, moments.
        self._changed = [[False, False] for _ in self._loaded]
        self._cost, self._last = 0.0, time.monotonic()

    def begin(self, random: np.random.Generator) -> None:
        """Draw the rows at the start."""
        partition, width = self._partition, self._system.entity_width
        self._shelf.clear(partition.entities * (2 * row_bytes(self._system) + _MORE * 4 * width))
        for part in range(partition.parts):
            entities = self.entities[: np.diff(partition.bounds(part))[0]]
            for block, drawn in self._drawn(random, part):
                entities[block] = drawn
            name = self._shelf.write(_ENTITIES, part, [entities])
            self._files.append((name, self._shelf.zeros(_MOMENTS, part, 2 * entities.nbytes)))
        if partition.parts == 1:
            self._loaded = [0]  # it was drawn in its place

    def resume(self, arrays: Arrays, facts: Any) -> None:
        """Take up the files of a checkpoint."""
        if facts is None:
            raise InputError(
                "the unfinished run kept its weights in memory, not in files",
                hint="go on with --set storage=memory, or start over",
            )
        self._files = [(str(one), str(two)) for one, two in facts["files"]]
        self._best = [str(name) for name in facts["best"]]
        self._saved = {*_flat(self._files), *self._best}
        self._shelf.take_up(str(facts["key"]), self._saved, self._bytes())

    def save(self) -> tuple[dict[str, npt.NDArray[Any]], Any]:
        """Write what has changed; the checkpoint itself only names files."""
        start = time.monotonic()
        for place, part in enumerate(self._loaded):
            if part is not None:
                self._write(part, *self._views(place, part))
        facts = {"key": self._shelf.key, "files": [list(names) for names in self._files], "best": self._best}
        self._shelf.sync([*_flat(self._files), *self._best])
        self._last = time.monotonic()
        self._cost = self._last - start
        return {}, facts

    def saved(self) -> None:
        """Remove what only the checkpoint before needed."""
        self._saved = {*_flat(self._files), *self._best}
        self._shelf.forget(self._needed())

    def ready(self, within: bool) -> bool:
        """Say whether a checkpoint now would leave most of the time for learning."""
        return time.monotonic() - self._last >= PATIENCE * self._cost

    def changing(self) -> None:
        """Take note that what is in memory will differ from the files."""
        self._changed = [[True, True] for _ in self._loaded]

    def expect(self, pair: tuple[int, ...]) -> None:
        """Say which pair will be next."""
        for part in pair:
            if part not in self._loaded:
                for name in self._files[part]:
                    self._shelf.announce(name)

    def keep(self) -> None:
        """Keep the rows as they are now, as the best ones so far."""
        for place, part in enumerate(self._loaded):
            if part is not None and self._changed[place][0]:
                self._write_entities(place, part, self._views(place, part)[0])
        self._best = [names[0] for names in self._files]
        self._shelf.forget(self._needed())

    def result(self, best: bool) -> Floats:
        """Return the best rows, or the last ones, in the order of entities, as a mapped file."""
        if not (best and self._best):
            self.keep()
        # The run's own files come on top of the result: whatever can go goes now.
        self._files = []
        self._shelf.forget(self._needed())
        width, rows = self._system.entity_width, self._partition.rows
        parts = [mapped(self._shelf.folder / name, *self._shape(p)) for p, name in enumerate(self._best)]
        if rows is None:
            return parts[0]
        gathered = (_gather(parts, rows[block], self._partition.size) for block in blocks(0, len(rows)))
        name = self._shelf.write(_RESULT, 0, gathered)
        return mapped(self._shelf.folder / name, len(rows), width)

    def _shape(self, part: int) -> tuple[int, int]:
        start, end = self._partition.bounds(part)
        return end - start, self._system.entity_width

    def _needed(self) -> set[str]:
        return {*_flat(self._files), *self._best, *self._saved}

    def _bytes(self) -> dict[str, int]:
        """Return how many bytes each file must have."""
        found: dict[str, int] = {}
        for part, (entities, moments) in enumerate(self._files):
            rows, width = self._shape(part)
            found[entities], found[moments] = 4 * rows * width, 8 * rows * width
        for part, name in enumerate(self._best):
            found[name] = 4 * int(np.prod(self._shape(part)))
        return found

    def _write(self, part: int, entities: Floats, moments: Floats) -> None:
        place = self._loaded.index(part)
        if self._changed[place][0]:
            self._write_entities(place, part, entities)
        if self._changed[place][1]:
            self._files[part] = (self._files[part][0], self._shelf.write(_MOMENTS, part, [moments]))
            self._changed[place][1] = False
        self._shelf.forget(self._needed())

    def _write_entities(self, place: int, part: int, entities: Floats) -> None:
        self._files[part] = (self._shelf.write(_ENTITIES, part, [entities]), self._files[part][1])
        self._changed[place][0] = False

    def _read(self, part: int, entities: Floats, moments: Floats) -> None:
        self._shelf.read(self._files[part][0], entities)
        self._shelf.read(self._files[part][1], moments)

    def _kept(self, part: int) -> Floats:
        return mapped(self._shelf.folder / self._files[part][0], *self._shape(part))


def _flat(files: Iterable[tuple[str, str]]) -> list[str]:
    return [name for names in files for name in names]


def _gather(parts: list[Floats], rows: npt.NDArray[np.int32], size: int) -> Floats:
    """Return rows from wherever they are."""
    found = np.empty((len(rows), parts[0].shape[1]), dtype=np.float32)
    for part, entities in enumerate(parts):
        mine = np.flatnonzero(rows // size == part)
        found[mine] = entities[rows[mine] - part * size]
    return found


try:
    import fcntl
except ImportError:  # no such locks on Windows, where what a killed process leaves must be removed by hand
    fcntl = None  # type: ignore[assignment]


_PREFIX = "loginfer-weights-"
_LOCK = "lock"
_LOCKS = fcntl is not None


class PassingFolder:
    """A folder among the temporary files.

    Raises
    ------
    OutputError
        If it cannot be made.
    """

    def __init__(self) -> None:
        try:
            _remove_abandoned(Path(tempfile.gettempdir()))
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._finalizer = weakref.finalize(self, _remove, self.path, _lock(self.path))
        except OSError as error:
            raise OutputError(
                f"no folder for weights in `{tempfile.gettempdir()}`: {describe_os_error(error)}",
                hint="set TMPDIR to a folder that can be written; --set storage=memory needs none",
            ) from error

    def remove(self) -> None:
        """Remove it with all that is in it."""
        self._finalizer()


def _remove(folder: Path, handle: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if handle is not None:
        os.close(handle)


def _lock(folder: Path) -> int | None:
    """Take a folder's lock; the file gets its name once it is locked, so that nobody finds it open."""
    if not _LOCKS:
        return None
    handle, name = tempfile.mkstemp(dir=folder)
    with contextlib.suppress(OSError):  # some network drives have no locks
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Path(name).rename(folder / _LOCK)
    return handle


def _remove_abandoned(above: Path) -> None:
    """Remove the folders of processes that are no more."""
    if not _LOCKS:
        return
    for folder in above.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # somebody else's, or it is going already
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


# From so many bytes of weights and moments on, `auto` means files.
MAPPED_FROM = 2 * 2**30


class Place:
    """The place of one training's weights.

    Parameters
    ----------
    system
        Its settings.
    partition
        How entities are split.
    watch
        Who may have a folder that stays as long as the run is unfinished.
    """

    def __init__(self, system: EmbeddingSystem, partition: Partition, watch: Watch) -> None:
        large = partition.entities * row_bytes(system) > MAPPED_FROM
        self._temporary: PassingFolder | None = None
        self.store: Store
        if system.storage == "memory" or (system.storage == "auto" and not large):
            self.store = MemoryStore(system, partition)
            return
        folder = watch.folder() if isinstance(watch, FolderWatch) else None
        if folder is None:
            self._temporary = PassingFolder()
            folder = self._temporary.path
        self.store = MappedStore(system, partition, folder)

    def clear(self) -> None:
        """Remove what was only for the time being."""
        if self._temporary is not None:
            self._temporary.remove()

    def clear_after(self, scorer: object) -> None:
        """Remove it once a scorer is gone. The store is not held till then: it has moments in memory."""
        if self._temporary is not None:
            weakref.finalize(scorer, self._temporary.remove)
