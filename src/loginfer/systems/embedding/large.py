"""Training with millions of entities: entities in parts, two of which are learned at a time, and weights in files.

Every triple has its ends in one part or in two, so it can be learned from while some pair of parts is in
memory. A *row* is an entity's position in the order of the parts: parts hold random entities, since neighbours
in the order of names are often of one kind. After Lerer and others, PyTorch-BigGraph: A Large-scale Graph
Embedding System (MLSys 2019), whose buckets are worked on one after the other here.
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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_write, describe_os_error, reading, sync, writing
from loginfer.randomness import generator
from loginfer.systems.embedding.base import EmbeddingSystem, Floats
from loginfer.systems.embedding.kernels import Ids
from loginfer.systems.embedding.scorer import EmbeddingScorer
from loginfer.systems.embedding.steps import Data
from loginfer.systems.embedding.training import MemoryStore, blocks, count_parts, draw_rows, in_memory, row_bytes
from loginfer.systems.interface import Arrays, FolderWatch, Watch

try:
    import fcntl
except ImportError:  # no such locks on Windows, where what a killed process leaves must be removed by hand
    fcntl = None  # type: ignore[assignment]


def open_store(system: EmbeddingSystem, data: Data, entities: int, watch: Watch) -> MemoryStore:
    """Return where a training keeps its weights: in memory, in its run's folder, or in a temporary one."""
    partition = Partition.of(system, entities)
    if in_memory(system, entities):
        return PartitionedStore(system, data, partition)
    return MappedStore(system, data, partition, watch.folder() if isinstance(watch, FolderWatch) else None)


# -- parts of the entities, and P_train by pairs of them -------------------------------------------

# The parts in memory, in the order of their slots; a single one if there is one part only.
Pair = tuple[int, ...]


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
        """Split entities as a system's settings say."""
        parts = count_parts(system, entities)
        if parts == 1:
            return cls(1, entities, None, entities)
        size = -(-entities // parts)
        rows = generator(system.seed, "embedding", "rows").permutation(entities).astype(np.int32)
        return cls(-(-entities // size), size, rows, entities)

    def bounds(self, part: int) -> tuple[int, int]:
        """Return the rows of a part, from and to."""
        return part * self.size, min((part + 1) * self.size, self.entities)

    @property
    def rows_in_memory(self) -> int:
        """How many rows are in memory at a time, at most."""
        return min(2, self.parts) * self.size

    def rows_of(self, entities: Ids) -> Ids:
        """Return the rows of entities."""
        return entities if self.rows is None else self.rows[entities]

    def places(self, rows: Ids, pair: Pair) -> Ids:
        """Return where rows of a pair are in memory: those of the first part, then of the second."""
        if self.parts == 1:
            return rows
        first, second = pair
        shift = np.where(rows // self.size == first, -first * self.size, (1 - second) * self.size)
        return (rows + shift).astype(np.int32)

    def tour(self, seed: int, epoch: int) -> list[Pair]:
        """Return all pairs of parts in the order of an epoch; from one to the next a single part changes."""
        if self.parts < 3:
            return [tuple(range(self.parts))]
        names = generator(seed, "embedding", "tour", epoch).permutation(self.parts).tolist()
        pairs: list[Pair] = []
        for first in range(self.parts - 1):
            others = range(first + 1, self.parts)
            for second in others if first % 2 == 0 else reversed(others):
                pairs.append(_after(pairs[-1] if pairs else None, names[first], names[second]))
        return pairs


def _after(last: Pair | None, one: int, two: int) -> Pair:
    """Return a pair with the part that it shares with the last one in the same slot."""
    return (two, one) if last is not None and (last[0] == two or last[1] == one) else (one, two)


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
        Seed of the random choices.

    Attributes
    ----------
    everything
        The same by rows, triples sorted by pair.
    """

    def __init__(self, data: Data, partition: Partition, seed: int) -> None:
        self.everything = data
        self._partition = partition
        if partition.parts == 1:
            return
        random = generator(seed, "embedding", "parts")
        positives, self._starts = self._sorted(data.positives, random)
        negatives, self._negative_starts = self._sorted(data.negatives, random)
        constants, types = (np.sort(partition.rows_of(ids)) for ids in (data.constants, data.types))
        self.everything = Data(positives, negatives, constants, types, data.relations, data.type_relation)

    def _sorted(self, triples: Ids, random: np.random.Generator) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Return triples of rows sorted by pair, and where each pair starts."""
        parts, rows = self._partition.parts, triples.copy()
        rows[:, [0, 2]] = self._partition.rows_of(triples[:, [0, 2]])
        one, two = (rows[:, column] // self._partition.size for column in (0, 2))
        within = np.flatnonzero(one == two)
        two[within] = (one[within] + 1 + random.integers(0, parts - 1, len(within))) % parts
        pair = np.minimum(one, two) * parts + np.maximum(one, two)
        order = np.argsort(pair, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=parts * parts))])
        return rows[order], starts

    def count(self, pair: Pair) -> int:
        """Return how many positives a pair has."""
        if self._partition.parts == 1:
            return len(self.everything.positives)
        return len(range(*self._slice(self._starts, pair).indices(len(self.everything.positives))))

    def data(self, pair: Pair) -> Data:
        """Return what can be learned from a pair, by rows."""
        data = self.everything
        if self._partition.parts == 1:
            return data
        return data._replace(
            positives=data.positives[self._slice(self._starts, pair)],
            negatives=data.negatives[self._slice(self._negative_starts, pair)],
            constants=self._pool(data.constants, pair),
            types=self._pool(data.types, pair),
        )

    def _slice(self, starts: npt.NDArray[np.int64], pair: Pair) -> slice:
        number = min(pair) * self._partition.parts + max(pair)
        return slice(int(starts[number]), int(starts[number + 1]))

    def _pool(self, rows: Ids, pair: Pair) -> Ids:
        """Return those of some sorted rows that belong to a pair."""
        parts = (np.searchsorted(rows, self._partition.bounds(part)) for part in sorted(pair))
        return np.concatenate([rows[slice(*part)] for part in parts])


class PartitionedStore(MemoryStore):
    """All rows in memory, in the order of the parts, and P_train in buckets.

    Parameters
    ----------
    system, data
        As of `MemoryStore`.
    partition
        How entities are split.
    rows
        How many rows are in memory; all by default.
    """

    def __init__(self, system: EmbeddingSystem, data: Data, partition: Partition, rows: int | None = None) -> None:
        # Sorted before there are weights: it needs memory for a while.
        self._buckets = Buckets(data, partition, system.seed)
        self._partition = partition
        super().__init__(system, self._buckets.everything, rows or partition.entities)

    def buckets(self, epoch: int) -> list[tuple[Pair, int]]:
        """Return the pairs of parts that have positives, in the order of an epoch, and how many they have."""
        tour = self._partition.tour(self._system.seed, epoch)
        return [(pair, self._buckets.count(pair)) for pair in tour if self._buckets.count(pair)]

    def load(self, pair: Pair, following: Pair | None = None) -> Data:
        """Return a bucket's data, by rows."""
        return self._buckets.data(pair)

    def rows(self, ids: Ids) -> Floats:
        """Return copies of the rows of some entities."""
        return super().rows(self._partition.rows_of(ids))

    def result(self, best: bool) -> Floats:
        """Return the rows that were kept as the best, or the last ones, in the order of entities."""
        rows = super().result(best)
        return rows if self._partition.rows is None else rows[self._partition.rows]


# -- files with parts of the weights ---------------------------------------------------------------

_ABOUT = "shelf.json"
_OWN = re.compile(r"[a-z]+-\d+\.\d+|shelf\.json")


class WeightFiles:
    """A folder of files with parts of arrays. A file is never changed: what is new gets a new number.

    So a checkpoint need only say which files were the latest: they are as they were, whatever happened since.
    Files that neither the last checkpoint nor anybody else needs are removed.

        shelf.json       whose files these are
        entities-2.17    raw little-endian float32: the rows of part 2, the 17th file in this folder

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
        """Start without files, if the disk has space for so many bytes.

        Raises
        ------
        OutputError
            If the folder cannot be written, or the disk is too full.
        """
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.remove_all_but(())
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

    def resume(self, key: str, files: Collection[str], bytes_of: Mapping[str, int]) -> None:
        """Go on with the files that a checkpoint needs.

        Raises
        ------
        InputError
            If they are not there, or are those of something else.
        """
        again = f"remove the folder `{self.folder.parent}` to start over"
        path = self.folder / _ABOUT
        try:
            about = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(f"the weights of the unfinished run are not in `{self.folder}`", hint=again) from error
        if about != {"key": key, **self._about}:
            raise InputError(f"the weights in `{self.folder}` are those of another run", hint=again)
        for name in sorted(files):
            file = self.folder / name
            if not file.is_file() or file.stat().st_size != bytes_of[name]:
                raise InputError(f"`{file}` is missing or damaged: {bytes_of[name]} bytes are wanted", hint=again)
        self.key = key
        self._next = 1 + max(int(name.rsplit(".", 1)[1]) for name in files)
        self.remove_all_but(files)

    def write(self, what: str, part: int, arrays: Iterable[npt.NDArray[np.float32]]) -> str:
        """Write a new file, arrays one after the other; returns its name."""
        with self._new(what, part) as (name, stream):
            for array in arrays:
                stream.write(np.ascontiguousarray(array).data)
        return name

    def zeros(self, what: str, part: int, size: int) -> str:
        """Make a new file of so many zero bytes; on most disks it takes no space yet."""
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

    def prefetch(self, name: str) -> None:
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

    def remove_all_but(self, needed: Collection[str]) -> None:
        """Remove files of ours that nobody needs."""
        kept = {*needed, *([_ABOUT] if needed else [])}
        with writing(self.folder):
            for file in list(self.folder.iterdir()):
                if _OWN.fullmatch(file.name) and file.name not in kept:
                    file.unlink()
                    self._fresh.discard(file.name)


def mapped_rows(path: Path, rows: int, width: int) -> Floats:
    """Return the rows in a file, read as they are used; changes stay in memory."""
    with reading(path):
        # A plain array: kernels do not know the other kind.
        return np.memmap(path, dtype=np.float32, mode="c", shape=(rows, width)).view(np.ndarray)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


_ENTITIES, _MOMENTS, _RESULT = "entities", "moments", "result"

# What is written down besides rows of the last checkpoint and of the next one, in weights of all entities:
# the best rows of each, and a part that is being written. The result and the run's own files with it come
# when the rows of the next one are gone.
_MORE = 3

# Between two checkpoints lies at least this many times what the last one took.
PATIENCE = 10.0


class MappedStore(PartitionedStore):
    """Parts in files; two of them are in memory.

    To let the system write back what changes in a mapped file does not work here: every batch changes rows
    all over it, so nearly all of it would have to be written all the time. Parts are read and written as
    wholes instead, and files are mapped where they are only read: while rows are looked up, and once learning
    has ended.

    Parameters
    ----------
    system, data, partition
        As of `PartitionedStore`.
    folder
        Where the files are; None for a temporary folder.
    """

    def __init__(self, system: EmbeddingSystem, data: Data, partition: Partition, folder: Path | None) -> None:
        super().__init__(system, data, partition, partition.rows_in_memory)
        self._temporary: TemporaryFolder | None = None
        if folder is None:
            self._temporary = TemporaryFolder()
            folder = self._temporary.path
        about = {"entities": partition.entities, "width": system.entity_width, "parts": partition.parts}
        self._disk = WeightFiles(folder, {**about, "model": type(system).__name__, "seed": system.seed})
        # The parts in memory, and whether they differ from their files: weights, moments.
        self._loaded: list[int | None] = [None] * min(2, partition.parts)
        self._changed = [[False, False] for _ in self._loaded]
        # The file of each part's weights and moments, those of the best weights, and all that the last
        # checkpoint names.
        self._files: list[tuple[str, str]] = []
        self._best_files: list[str] = []
        self._saved: set[str] = set()
        self._cost, self._last = 0.0, time.monotonic()

    # -- start, checkpoints and end ----------------------------------------------------------------

    def begin(self, random: np.random.Generator) -> None:
        """Draw the rows at the start."""
        partition = self._partition
        row = 2 * row_bytes(self._system) + _MORE * 4 * self._system.entity_width
        self._disk.clear(partition.entities * row)
        for part in range(partition.parts):
            entities = self.entities[: self._shape(part)[0]]
            draw_rows(self._system, entities, random)
            name = self._disk.write(_ENTITIES, part, [entities])
            self._files.append((name, self._disk.zeros(_MOMENTS, part, self._system.moments * entities.nbytes)))
        if partition.parts == 1:
            self._loaded = [0]  # it was drawn in its slot

    def resume(self, arrays: Arrays, mapped: Any) -> None:
        """Take up the files of a checkpoint."""
        if mapped is None:
            hint = "go on with --set storage=memory, or start over"
            raise InputError("the unfinished run kept its weights in memory, not in files", hint=hint)
        self._files = [(str(one), str(two)) for one, two in mapped["files"]]
        self._best_files = [str(name) for name in mapped["best"]]
        self._saved = self._named()
        sizes: dict[str, int] = {}
        for part, (entities, moments) in enumerate(self._files):
            sizes[entities] = 4 * int(np.prod(self._shape(part)))
            sizes[moments] = self._system.moments * sizes[entities]
        sizes |= {name: 4 * int(np.prod(self._shape(part))) for part, name in enumerate(self._best_files)}
        self._disk.resume(str(mapped["key"]), self._saved, sizes)

    def save(self) -> tuple[dict[str, npt.NDArray[Any]], Any]:
        """Write what has changed; the checkpoint itself only names files."""
        start = time.monotonic()
        for slot in range(len(self._loaded)):
            self._write(slot)
        mapped = {"key": self._disk.key, "files": [list(names) for names in self._files], "best": self._best_files}
        self._disk.sync(self._named())
        self._last = time.monotonic()
        self._cost = self._last - start
        return {}, mapped

    def saved(self) -> None:
        """Remove what only the checkpoint before needed."""
        self._saved = self._named()
        self._remove_unneeded()

    def ready(self, within: bool) -> bool:
        """Say whether a checkpoint now would leave most of the time for learning."""
        return time.monotonic() - self._last >= PATIENCE * self._cost

    def keep(self) -> None:
        """Keep the rows as they are now, as the best ones so far."""
        for slot in range(len(self._loaded)):
            self._write(slot, moments=False)
        self._best_files = [entities for entities, _ in self._files]
        self._remove_unneeded()

    def result(self, best: bool) -> Floats:
        """Return the best rows, or the last ones, in the order of entities, as a mapped file."""
        if not (best and self._best_files):
            self.keep()
        # The run's own files come on top of the result: whatever can go goes now.
        self._files = []
        self._remove_unneeded()
        rows, width = self._partition.rows, self._system.entity_width
        parts = [self._mapped(part, name) for part, name in enumerate(self._best_files)]
        if rows is None:
            return parts[0]
        gathered = (self._gather(rows[block], parts.__getitem__) for block in blocks(len(rows)))
        name = self._disk.write(_RESULT, 0, gathered)
        return mapped_rows(self._disk.folder / name, len(rows), width)

    def close(self) -> None:
        """Remove a temporary folder."""
        if self._temporary is not None:
            self._temporary.remove()

    def close_after(self, scorer: EmbeddingScorer) -> None:
        """Remove a temporary folder once a scorer is gone. The store is not held till then: it has moments."""
        if self._temporary is not None:
            weakref.finalize(scorer, self._temporary.remove)

    # -- parts in memory ---------------------------------------------------------------------------

    def load(self, pair: Pair, following: Pair | None = None) -> Data:
        """Bring a pair of parts into memory, instead of those that are there; returns data by rows."""
        new = [(slot, part) for slot, part in enumerate(pair) if self._loaded[slot] != part]
        for slot, _ in new:
            self._write(slot)
            self._loaded[slot] = None
        for slot, part in new:
            for name, target in zip(self._files[part], self._views(slot, part), strict=True):
                self._disk.read(name, target)
            self._loaded[slot] = part
        for part in following or ():
            if part not in self._loaded:
                for name in self._files[part]:
                    self._disk.prefetch(name)
        return self._buckets.data(pair)

    def place(self, ids: Ids) -> Ids:
        """Return where rows are: those of one part after those of the other."""
        return self._partition.places(ids, tuple(part or 0 for part in self._loaded))

    def changing(self) -> None:
        """Take note that what is in memory will differ from the files."""
        self._changed = [[True, True] for _ in self._loaded]

    def rows(self, ids: Ids) -> Floats:
        """Return copies of the rows of some entities, from wherever they are."""
        return self._gather(self._partition.rows_of(ids), self._current)

    def finite(self) -> bool:
        """Say whether all weights in memory are finite numbers."""
        loaded_parts = [self._current(part) for part in self._loaded if part is not None]
        return all(bool(np.isfinite(rows[block]).all()) for rows in loaded_parts for block in blocks(len(rows)))

    def _current(self, part: int) -> Floats:
        """Return the weights of a part as they are now, to be read only."""
        if part in self._loaded:
            return self._views(self._loaded.index(part), part)[0]
        return self._mapped(part, self._files[part][0])

    def _gather(self, rows: Ids, weights_of: Callable[[int], Floats]) -> Floats:
        """Return copies of rows from the weights of their parts."""
        gathered = np.empty((len(rows), self._system.entity_width), dtype=np.float32)
        of_part = rows // self._partition.size
        for part in np.unique(of_part).tolist():
            indices = np.flatnonzero(of_part == part)
            indices = indices[np.argsort(rows[indices])]  # files are read from the front to the back
            gathered[indices] = weights_of(part)[rows[indices] - part * self._partition.size]
        return gathered

    def _views(self, slot: int, part: int) -> tuple[Floats, Floats]:
        """Return the rows of a part in memory: weights, moments."""
        start = slot * self._partition.size
        span = slice(start, start + self._shape(part)[0])
        return self.entities[span], self.moments[span]

    def _shape(self, part: int) -> tuple[int, int]:
        start, end = self._partition.bounds(part)
        return end - start, self._system.entity_width

    def _mapped(self, part: int, name: str) -> Floats:
        return mapped_rows(self._disk.folder / name, *self._shape(part))

    # -- files -------------------------------------------------------------------------------------

    def _write(self, slot: int, moments: bool = True) -> None:
        """Write what has changed of the part in a slot of the memory."""
        part = self._loaded[slot]
        if part is None:
            return
        names = list(self._files[part])
        for kind, what in enumerate((_ENTITIES, _MOMENTS)[: 1 + moments]):
            if self._changed[slot][kind]:
                names[kind] = self._disk.write(what, part, [self._views(slot, part)[kind]])
                self._files[part] = (names[0], names[1])
                self._changed[slot][kind] = False
        if moments:
            self._remove_unneeded()

    def _named(self) -> set[str]:
        return {*(name for names in self._files for name in names), *self._best_files}

    def _remove_unneeded(self) -> None:
        self._disk.remove_all_but(self._named() | self._saved)


# -- temporary folders -----------------------------------------------------------------------------

_PREFIX = "loginfer-weights-"
_LOCK = "lock"
_LOCKS = fcntl is not None


class TemporaryFolder:
    """A folder among the temporary files, which the next training removes if its process was killed.

    It belongs to the process that holds the lock on the file `lock` in it; the system releases it when the
    process dies, however it does.

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
