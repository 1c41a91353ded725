"""The growing set of triples K_i during a materialisation, and the compiled loops over it.

A pair (s, o) is one int64 key, `s << 32 | o`; the extension of a relation is a sorted array of distinct keys.
An adjacency is (pointers, values): the neighbours of x are `values[pointers[x]:pointers[x + 1]]`.
A frontier is an array of keys (start, reached), grouped by ascending start, distinct but in any order within
one start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import Bound, BoundAtom
from loginfer.engine.interface import Materialisation
from loginfer.kernels import gallop, kernel, trailing_zeros
from loginfer.kg import KnowledgeGraph
from loginfer.kg.graph import Ids, Keys, Mask

Words = npt.NDArray[np.uint64]

LOW = np.int64(0xFFFFFFFF)
PATIENCE = 1 << 30


@kernel
def split(triples: Ids, offsets: Keys, size: int) -> Keys:
    """Return the pairs of some relations, one relation after the other, each sorted.

    Parameters
    ----------
    triples
        int32[n, 3], sorted by subject, relation, object.
    offsets
        int64[relations], where each relation's pairs shall begin; -1 for relations to leave out.
        Advanced in place to where they end.
    size
        How many pairs there are in all.
    """
    keys = np.empty(size, dtype=np.int64)
    for i in range(len(triples)):
        relation = triples[i, 1]
        position = offsets[relation]
        if position >= 0:
            keys[position] = (np.int64(triples[i, 0]) << 32) | np.int64(triples[i, 2])
            offsets[relation] = position + 1
    return keys


@kernel
def adjacency(keys: Keys, entities: int) -> tuple[Ids, Ids]:
    """Return row pointers int32[entities + 1] and values of sorted pairs."""
    pointers = np.zeros(entities + 1, dtype=np.int32)
    values = np.empty(len(keys), dtype=np.int32)
    for i in range(len(keys)):
        pointers[(keys[i] >> 32) + 1] += 1
        values[i] = keys[i] & LOW
    for x in range(entities):
        pointers[x + 1] += pointers[x]
    return pointers, values


@kernel
def swapped(keys: Keys, entities: int) -> Keys:
    """Return the pairs (o, s), sorted, of sorted pairs (s, o)."""
    ends = np.zeros(entities + 1, dtype=np.int64)
    for key in keys:
        ends[(key & LOW) + 1] += 1
    for x in range(entities):
        ends[x + 1] += ends[x]
    inverse = np.empty(len(keys), dtype=np.int64)
    for key in keys:
        o = key & LOW
        inverse[ends[o]] = (o << 32) | (key >> 32)
        ends[o] += 1
    return inverse


@kernel
def fresh(candidates: Keys, base: Keys, recent: Keys) -> Keys:
    """Return the distinct ones of sorted candidates that are in neither of two sorted arrays."""
    out = np.empty(len(candidates), dtype=np.int64)
    n = a = b = 0
    last = np.int64(-1)
    for key in candidates:
        if key == last:
            continue
        last = key
        a = gallop(base, a, len(base), key)
        if a < len(base) and base[a] == key:
            continue
        b = gallop(recent, b, len(recent), key)
        if b < len(recent) and recent[b] == key:
            continue
        out[n] = key
        n += 1
    return out[:n].copy()


@kernel
def merge(left: Keys, left_depth: Ids, right: Keys, right_depth: Ids) -> tuple[Keys, Ids]:
    """Merge two disjoint sorted arrays of keys with the depths that go with them."""
    keys = np.empty(len(left) + len(right), dtype=np.int64)
    depth = np.empty(len(keys), dtype=np.int32)
    i = j = 0
    for n in range(len(keys)):
        if j == len(right) or (i < len(left) and left[i] < right[j]):
            keys[n] = left[i]
            depth[n] = left_depth[i]
            i += 1
        else:
            keys[n] = right[j]
            depth[n] = right_depth[j]
            j += 1
    return keys, depth


@kernel
def absorb(member: Mask, candidates: Ids) -> Ids:
    """Add candidates to a set of entities, `member`; return those that were not in it."""
    out = np.empty(len(candidates), dtype=np.int32)
    n = 0
    for x in candidates:
        if not member[x]:
            member[x] = True
            out[n] = x
            n += 1
    return out[:n].copy()


@kernel
def semijoin(nodes: Ids, pointers: Ids, values: Ids, allowed: Mask) -> Ids:
    """Return the nodes that have an allowed neighbour."""
    out = np.empty(len(nodes), dtype=np.int32)
    n = 0
    for x in nodes:
        for k in range(pointers[x], pointers[x + 1]):
            if allowed[values[k]]:
                out[n] = x
                n += 1
                break
    return out[:n].copy()


@kernel
def step_count(frontier: Keys, pointers: Ids) -> int:
    """Return how many neighbours the nodes of a frontier have, repetitions counted."""
    total = 0
    for key in frontier:
        y = key & LOW
        total += pointers[y + 1] - pointers[y]
    return total


@kernel
def bitmaps(pointers: Ids, values: Ids, least: int) -> tuple[Ids, Words]:
    """Return the long rows of an adjacency as bitmaps.

    Parameters
    ----------
    pointers, values
        The adjacency.
    least
        How many neighbours make a row long.

    Returns
    -------
        int32[entities], the row of each entity's bitmap or -1, and uint64[long rows, words].
    """
    entities = len(pointers) - 1
    bitmap_of = np.full(entities, -1, dtype=np.int32)
    n = 0
    for x in range(entities):
        if pointers[x + 1] - pointers[x] >= least:
            bitmap_of[x] = n
            n += 1
    words = np.zeros((n, (entities + 63) >> 6), dtype=np.uint64)
    for x in range(entities):
        row = bitmap_of[x]
        if row >= 0:
            for k in range(pointers[x], pointers[x + 1]):
                z = values[k]
                words[row, z >> 6] |= np.uint64(1) << np.uint64(z & 63)
    return bitmap_of, words


@kernel
def expand(
    frontier: Keys,
    first: int,
    max_keys: int,
    pointers: Ids,
    values: Ids,
    long_rows: Ids,
    long_words: Words,
    allowed: Mask,
    seen: Ids,
    stamp: int,
    base: Keys,
    recent: Keys,
) -> tuple[Keys, int, int]:
    """Go one step from every node of a frontier and keep each node once per start.

    Two sorted arrays of known pairs are subtracted: by marking a start's known row before the step where
    that costs less than the step itself, else by looking up what was reached. So the result of a closure
    is never written down twice, and a start with one new neighbour does not pay for its whole row. A start
    with much to go through adds up bitmaps of long rows: a closure of n nodes then costs n³ / 64, not n³.

    Parameters
    ----------
    frontier
        Keys (start, reached).
    first, max_keys
        Begin with the key at `first`; stop before the next start once more than `max_keys` keys are made, or
        `PATIENCE` steps: nothing can interrupt a kernel.
    pointers, values
        Where a step leads.
    long_rows, long_words
        The same for entities with many neighbours, as bitmaps; both empty if there are none.
    allowed
        bool[entities], which nodes may be reached.
    seen, stamp
        int32[entities], scratch: nodes marked with a number above `stamp` count as reached.
    base, recent
        Known pairs (start, reached), sorted.

    Returns
    -------
        The keys (start, reached), the position in the frontier where to continue, the last stamp used.
    """
    out = np.empty(max(1024, min(max_keys, len(frontier))), dtype=np.int64)
    words = np.zeros(long_words.shape[1], dtype=np.uint64)
    one = np.uint64(1)
    n = a = b = 0
    i = first
    done = 0
    while i < len(frontier) and n <= max_keys and done <= PATIENCE:
        start = frontier[i] >> 32
        begin = i
        steps = 0
        while i < len(frontier) and frontier[i] >> 32 == start:
            y = frontier[i] & LOW
            steps += pointers[y + 1] - pointers[y]
            i += 1
        if steps == 0:
            continue
        done += steps
        needed = n + min(steps, len(allowed))
        if needed > len(out):
            grown = np.empty(max(needed, 2 * len(out)), dtype=np.int64)
            for j in range(n):
                grown[j] = out[j]
            out = grown
        a = gallop(base, a, len(base), start << 32)
        a_end = gallop(base, a, len(base), (start + 1) << 32)
        b = gallop(recent, b, len(recent), start << 32)
        b_end = gallop(recent, b, len(recent), (start + 1) << 32)
        known_count = (a_end - a) + (b_end - b)
        if len(words) and steps >= 4 * len(words) + known_count:
            for j in range(begin, i):
                y = frontier[j] & LOW
                row = long_rows[y]
                if row >= 0:
                    for w in range(len(words)):
                        words[w] |= long_words[row, w]
                else:
                    for k in range(pointers[y], pointers[y + 1]):
                        z = values[k]
                        words[z >> 6] |= one << np.uint64(z & 63)
            for k in range(a, a_end):
                z = base[k] & LOW
                words[z >> 6] &= ~(one << np.uint64(z & 63))
            for k in range(b, b_end):
                z = recent[k] & LOW
                words[z >> 6] &= ~(one << np.uint64(z & 63))
            for w in range(len(words)):
                word = words[w]
                while word:
                    z = (w << 6) + np.int64(trailing_zeros(word))
                    word &= word - one
                    if allowed[z]:
                        out[n] = (start << 32) | z
                        n += 1
                words[w] = 0
            a, b = a_end, b_end
            continue
        stamp += 1
        marking = 8 * steps >= known_count
        if marking:
            for k in range(a, a_end):
                seen[base[k] & LOW] = stamp
            for k in range(b, b_end):
                seen[recent[k] & LOW] = stamp
        for j in range(begin, i):
            y = frontier[j] & LOW
            for k in range(pointers[y], pointers[y + 1]):
                z = values[k]
                if seen[z] == stamp or not allowed[z]:
                    continue
                seen[z] = stamp
                key = (start << 32) | np.int64(z)
                if not marking:
                    p = gallop(base, a, a_end, key)
                    if p < a_end and base[p] == key:
                        continue
                    p = gallop(recent, b, b_end, key)
                    if p < b_end and recent[p] == key:
                        continue
                out[n] = key
                n += 1
        a, b = a_end, b_end
    return out[:n].copy(), i, stamp


@kernel
def write_triples(keys: Keys, depth: Ids, relation: int, ends: Keys, triples: Ids, depths: Ids) -> None:
    """Write a relation's derived pairs (depth > 0) to the rows of their subjects.

    Called for one relation after the other, in ascending order, with `ends` saying where each subject's
    next triple goes: a counting sort by subject that leaves subject, relation, object in order.
    """
    for i in range(len(keys)):
        if depth[i] > 0:
            s = keys[i] >> 32
            position = ends[s]
            triples[position, 0] = s
            triples[position, 1] = relation
            triples[position, 2] = keys[i] & LOW
            depths[position] = depth[i]
            ends[s] = position + 1


# A relation's latest pairs wait in a small array of their own until they are this part of all its pairs:
# thousands of rounds that add little must not copy what is known each time.
RECENT_PART = 8

NO_KEYS: Keys = np.empty(0, dtype=np.int64)
NO_WORDS: Words = np.empty((0, 0), dtype=np.uint64)
NO_IDS: Ids = np.empty(0, dtype=np.int32)


def pack(subjects: npt.ArrayLike, objects: npt.ArrayLike) -> Keys:
    """Return the keys `s << 32 | o` of pairs."""
    keys = np.asarray(subjects).astype(np.int64)
    keys <<= 32
    keys |= np.asarray(objects)
    return keys


def swap(keys: Keys, entities: int) -> Keys:
    """Return sorted pairs the other way round, sorted again."""
    if 8 * len(keys) >= entities:
        return swapped(keys, entities)
    turned = pack(keys & LOW, keys >> 32)
    turned.sort()
    return turned


class Neighbours:
    """The neighbours of each entity: those of x are `values[pointers[x]:pointers[x + 1]]`, ascending.

    Parameters
    ----------
    keys
        Sorted pairs.
    entities
        Size of the vocabulary.
    """

    __slots__ = ("_longest", "long_rows", "long_words", "pointers", "values")

    def __init__(self, keys: Keys, entities: int) -> None:
        self.pointers, self.values = adjacency(keys, entities)
        self.long_rows = NO_IDS
        self.long_words = NO_WORDS
        self._longest = int(np.diff(self.pointers).max(initial=0))

    def prepare(self, frontier: Keys) -> None:
        """Make bitmaps of long rows if a step from this frontier will use them often enough.

        A row is long if its bitmap takes no more memory than the row, so that adding up bitmaps is quicker,
        too.
        """
        least = max((len(self.pointers) - 1) // 32, 8)
        if len(self.long_rows) or self._longest < least:
            return
        if step_count(frontier, self.pointers) >= 4 * len(self.values):
            self.long_rows, self.long_words = bitmaps(self.pointers, self.values, least)


class GrowingPairs:
    """The extension of one relation, with the round in which each pair appeared.

    Parameters
    ----------
    keys
        Sorted pairs of the graph itself.
    entities
        Size of the vocabulary.
    """

    def __init__(self, keys: Keys, entities: int) -> None:
        self.entities = entities
        self.base = keys
        self.base_depth: Ids = np.zeros(len(keys), dtype=np.int32)
        self.recent = NO_KEYS
        self.recent_depth = NO_IDS
        self.delta = keys
        self._adjacency: dict[bool, Neighbours] = {}
        self._delta_adjacency: dict[bool, Neighbours] = {}
        self._delta_swapped: Keys | None = None

    def __len__(self) -> int:
        return len(self.base) + len(self.recent)

    @property
    def keys(self) -> Keys:
        """All pairs, sorted."""
        self._settle()
        return self.base

    @property
    def old(self) -> int:
        """How many pairs are not in the delta."""
        return len(self) - len(self.delta)

    def _settle(self) -> None:
        if len(self.recent):
            self.base, self.base_depth = merge(self.base, self.base_depth, self.recent, self.recent_depth)
            self.recent, self.recent_depth = NO_KEYS, NO_IDS

    def advance(self, delta: Keys, depth: int) -> None:
        """Make these new, sorted pairs the delta."""
        self.delta = delta
        self._delta_adjacency.clear()
        self._delta_swapped = None
        if not len(delta):
            return
        self._adjacency.clear()
        depths = np.full(len(delta), depth, dtype=np.int32)
        if len(self.recent):
            self.recent, self.recent_depth = merge(self.recent, self.recent_depth, delta, depths)
        else:
            self.recent, self.recent_depth = delta, depths
        if len(self.recent) * RECENT_PART > len(self.base):
            self._settle()

    def adjacency(self, inverse: bool) -> Neighbours:
        """Return the successors of each entity; predecessors with `inverse`."""
        neighbours = self._adjacency.get(inverse)
        if neighbours is None:
            keys = swap(self.keys, self.entities) if inverse else self.keys
            neighbours = self._adjacency[inverse] = Neighbours(keys, self.entities)
        return neighbours

    def delta_adjacency(self, inverse: bool) -> Neighbours:
        """Return the same for the delta alone."""
        if not self.old:
            return self.adjacency(inverse)
        neighbours = self._delta_adjacency.get(inverse)
        if neighbours is None:
            neighbours = self._delta_adjacency[inverse] = Neighbours(self.delta_keys(inverse), self.entities)
        return neighbours

    def delta_keys(self, inverse: bool) -> Keys:
        """Return the pairs of the delta, sorted; (object, subject) with `inverse`."""
        if not inverse:
            return self.delta
        if self._delta_swapped is None:
            self._delta_swapped = swap(self.delta, self.entities)
        return self._delta_swapped


class GrowingSet:
    """A set of entities with the round in which each entered: the extension of (x, type, t) for one t.

    Parameters
    ----------
    members
        Distinct entities.
    entities
        Size of the vocabulary.
    """

    def __init__(self, members: Ids, entities: int) -> None:
        self.mask: Mask = np.zeros(entities, dtype=np.bool_)
        self.mask[members] = True
        self.size = len(members)
        self.delta = members
        self.history: list[tuple[int, Ids]] = []

    def __len__(self) -> int:
        return self.size

    @property
    def old(self) -> int:
        """How many members are not in the delta."""
        return self.size - len(self.delta)

    @property
    def members(self) -> Ids:
        """All members, ascending."""
        return np.flatnonzero(self.mask).astype(np.int32)

    def advance(self, candidates: Ids, depth: int) -> None:
        """Make those candidates that are not members yet the delta."""
        self.delta = absorb(self.mask, candidates) if len(candidates) else NO_IDS
        if len(self.delta):
            self.size += len(self.delta)
            self.history.append((depth, self.delta))


# Sets of entities take one byte an entity each; beyond this much they are kept as pairs instead.
MASK_BYTES = 512 * 2**20
# The marks in `GrowingGraph.seen` are int32.
LAST_STAMP = 2**31 - 1


class GrowingGraph:
    """K_i, as far as a program can see it.

    A relation whose every atom in the program has a constant object, such as `type` in most programs, is
    kept as one set of entities per constant; any other relation as pairs. So each triple is
    stored once, whatever mixture of atoms the rules use.

    Parameters
    ----------
    graph
        K_0.
    program
        The rules.
    """

    def __init__(self, graph: KnowledgeGraph, program: Sequence[Bound]) -> None:
        self.entities = len(graph.entities)
        self.everything: Mask = np.ones(self.entities, dtype=np.bool_)
        self.pairs: dict[int, GrowingPairs] = {}
        self.sets: dict[tuple[int, int], GrowingSet] = {}
        self._views: dict[int, dict[tuple[int, int], GrowingSet]] = {}
        self._masks_left = MASK_BYTES // max(self.entities, 1)
        self.seen: Ids = np.zeros(self.entities, dtype=np.int32)
        self.stamp = 0
        self._load(graph, program)

    def _load(self, graph: KnowledgeGraph, program: Sequence[Bound]) -> None:
        atoms = list(dict.fromkeys(atom for rule in program for atom in (*rule.atoms, rule.head)))
        as_pairs = {atom.relation for atom in atoms if atom.object >= 0}
        constants = dict.fromkeys((atom.relation, ~atom.object) for atom in atoms if atom.object < 0)
        as_sets: list[tuple[int, int]] = []
        for relation in sorted({atom.relation for atom in atoms}):
            keys_of_relation = sorted(key for key in constants if key[0] == relation)
            if relation in as_pairs or len(keys_of_relation) > self._masks_left:
                as_pairs.add(relation)
            else:
                as_sets += keys_of_relation
                self._masks_left -= len(keys_of_relation)
        relations = sorted(as_pairs | {relation for relation, _ in as_sets})
        counts = np.bincount(graph.triples[:, 1], minlength=len(graph.relations))
        offsets = np.full(len(graph.relations), -1, dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts[relations])]).astype(np.int64)
        offsets[relations] = starts[:-1]
        keys = split(graph.triples, offsets, int(starts[-1]))
        parts = {r: keys[starts[i] : starts[i + 1]] for i, r in enumerate(relations)}
        for relation in sorted(as_pairs):
            self.pairs[relation] = GrowingPairs(parts[relation], self.entities)
        turned: dict[int, Keys] = {}
        for relation, constant in as_sets:
            if relation not in turned:
                turned[relation] = swap(parts[relation], self.entities)
            row = _row(turned[relation], constant)
            self.sets[relation, constant] = GrowingSet(row, self.entities)

    def source(self, atom: BoundAtom) -> GrowingPairs | GrowingSet:
        """Return where an atom's triples are."""
        if atom.relation in self.pairs:
            return self.pairs[atom.relation]
        return self.sets[atom.relation, ~atom.object]

    def unary(self, atom: BoundAtom) -> GrowingSet | None:
        """Return the set that an atom with one variable stands for; None if it cannot be kept as a set."""
        if atom.relation not in self.pairs:
            return self.sets[atom.relation, ~atom.object]
        kind = (min(atom.subject, 0), min(atom.object, 0))
        views = self._views.setdefault(atom.relation, {})
        if kind not in views:
            if not self._masks_left:
                return None
            self._masks_left -= 1
            views[kind] = GrowingSet(_view(self.pairs[atom.relation].keys, kind), self.entities)
        return views[kind]

    def expand(
        self,
        frontier: Keys,
        first: int,
        max_keys: int,
        towards: Neighbours,
        allowed: Mask | None,
        known_pairs: GrowingPairs | None = None,
    ) -> tuple[Keys, int]:
        """Go one step from a frontier; see `expand`."""
        if self.stamp + len(frontier) >= LAST_STAMP:
            self.seen[:] = 0
            self.stamp = 0
        towards.prepare(frontier)
        reached, first, self.stamp = expand(
            frontier,
            first,
            max_keys,
            towards.pointers,
            towards.values,
            towards.long_rows,
            towards.long_words,
            self.everything if allowed is None else allowed,
            self.seen,
            self.stamp,
            NO_KEYS if known_pairs is None else known_pairs.base,
            NO_KEYS if known_pairs is None else known_pairs.recent,
        )
        return reached, first

    def advance(self, depth: int, keys: dict[int, list[Keys]], members: dict[tuple[int, int], list[Ids]]) -> int:
        """Add a round's conclusions and make those that are new the deltas; return how many are."""
        added = 0
        for relation, pairs in self.pairs.items():
            new = NO_KEYS
            if relation in keys:
                candidates = keys[relation]
                merged = candidates[0] if len(candidates) == 1 else np.concatenate(candidates)
                if len(merged) > 1 and (merged[1:] < merged[:-1]).any():
                    merged = np.sort(merged)
                new = fresh(merged, pairs.base, pairs.recent)
                added += len(new)
            pairs.advance(new, depth)
            for kind, view in self._views.get(relation, {}).items():
                view.advance(_view(new, kind), depth)
        for name, extension in self.sets.items():
            new_members = members.get(name)
            extension.advance(np.concatenate(new_members) if new_members else NO_IDS, depth)
            added += len(extension.delta)
        return added

    def collect(self, rounds: int) -> Materialisation:
        """Return all triples that were added."""
        parts: list[tuple[int, Keys, Ids]] = []
        for relation, pairs in self.pairs.items():
            parts.append((relation, pairs.keys, pairs.base_depth))
        for (relation, constant), extension in self.sets.items():
            for round_, new in extension.history:
                # Ascending constants one after the other: the order of the sets' names.
                parts.append((relation, pack(new, constant), np.full(len(new), round_, dtype=np.int32)))
        parts.sort(key=lambda part: part[0])
        ends = np.zeros(self.entities + 1, dtype=np.int64)
        for _, keys, depth in parts:
            ends[1:] += np.bincount(keys[depth > 0] >> 32, minlength=self.entities)
        np.cumsum(ends, out=ends)
        triples = np.empty((int(ends[-1]), 3), dtype=np.int32)
        depths = np.empty(len(triples), dtype=np.int32)
        for relation, keys, depth in parts:
            write_triples(keys, depth, relation, ends, triples, depths)
        return Materialisation(triples, depths, rounds)


def _row(keys: Keys, first: int) -> Ids:
    """Return the second parts of the sorted pairs that begin with `first`."""
    low, high = np.searchsorted(keys, pack([first, first + 1], 0))
    row: Ids = (keys[low:high] & LOW).astype(np.int32)
    return row


def _view(keys: Keys, kind: tuple[int, int]) -> Ids:
    """Return the entities x for which (x, c), (c, x) or (x, x) is among the pairs; c is given as ~c."""
    subject, object_ = kind
    if subject < 0:
        return _row(keys, ~subject)
    matches = (keys & LOW) == (~object_ if object_ < 0 else keys >> 32)
    entities: Ids = (keys[matches] >> 32).astype(np.int32)
    return entities
