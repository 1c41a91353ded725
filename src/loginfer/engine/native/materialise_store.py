"""The growing set of triples K_i during a materialisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loginfer.engine.binding import Bound, BoundAtom
from loginfer.engine.interface import Materialisation
from loginfer.engine.native import materialise_kernels as kernels
from loginfer.engine.native.materialise_relations import (
    LOW,
    NO_IDS,
    NO_KEYS,
    Adjacency,
    Flags,
    Ids,
    Keys,
    Members,
    Pairs,
    pack,
    swap,
)
from loginfer.kg import KnowledgeGraph

__all__ = ["Store"]

# Sets of entities take one byte an entity each; beyond this much they are kept as pairs instead.
MASK_BYTES = 512 * 2**20
# The marks in `Store.seen` are int32.
LAST_STAMP = 2**31 - 1


class Store:
    """K_i, as far as a program can see it.

    A relation whose every atom in the program has a constant object, such as `type` in most programs, is
    kept as one set of entities per constant; any other relation as pairs. So there is one truth about each
    triple, whatever mixture of atoms the rules use.

    Parameters
    ----------
    graph
        K_0.
    program
        The rules.
    """

    def __init__(self, graph: KnowledgeGraph, program: Sequence[Bound]) -> None:
        self.entities = len(graph.entities)
        self.everything: Flags = np.ones(self.entities, dtype=np.bool_)
        self.pairs: dict[int, Pairs] = {}
        self.sets: dict[tuple[int, int], Members] = {}
        self._views: dict[int, dict[tuple[int, int], Members]] = {}
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
            own = sorted(key for key in constants if key[0] == relation)
            if relation in as_pairs or len(own) > self._masks_left:
                as_pairs.add(relation)
            else:
                as_sets += own
                self._masks_left -= len(own)
        wanted = sorted(as_pairs | {relation for relation, _ in as_sets})
        counts = np.bincount(graph.triples[:, 1], minlength=len(graph.relations))
        offsets = np.full(len(graph.relations), -1, dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts[wanted])]).astype(np.int64)
        offsets[wanted] = starts[:-1]
        keys = kernels.split(graph.triples, offsets, int(starts[-1]))
        parts = {r: keys[starts[i] : starts[i + 1]] for i, r in enumerate(wanted)}
        for relation in sorted(as_pairs):
            self.pairs[relation] = Pairs(parts[relation], self.entities)
        turned: dict[int, Keys] = {}
        for relation, constant in as_sets:
            if relation not in turned:
                turned[relation] = swap(parts[relation], self.entities)
            row = _row(turned[relation], constant)
            self.sets[relation, constant] = Members(row, self.entities)

    def source(self, atom: BoundAtom) -> Pairs | Members:
        """Return where an atom's triples are."""
        if atom.relation in self.pairs:
            return self.pairs[atom.relation]
        return self.sets[atom.relation, ~atom.object]

    def unary(self, atom: BoundAtom) -> Members | None:
        """Return the set that an atom with one variable stands for; None if it cannot be kept as a set."""
        if atom.relation not in self.pairs:
            return self.sets[atom.relation, ~atom.object]
        kind = (min(atom.subject, 0), min(atom.object, 0))
        views = self._views.setdefault(atom.relation, {})
        if kind not in views:
            if not self._masks_left:
                return None
            self._masks_left -= 1
            views[kind] = Members(_view(self.pairs[atom.relation].keys, kind), self.entities)
        return views[kind]

    def expand(
        self,
        frontier: Keys,
        first: int,
        room: int,
        towards: Adjacency,
        allowed: Flags | None,
        known: Pairs | None = None,
    ) -> tuple[Keys, int]:
        """Go one step from a frontier; see `materialise_kernels.expand`."""
        if self.stamp + len(frontier) >= LAST_STAMP:
            self.seen[:] = 0
            self.stamp = 0
        towards.prepare(frontier)
        found, first, self.stamp = kernels.expand(
            frontier,
            first,
            room,
            towards.pointers,
            towards.values,
            towards.long_rows,
            towards.long_words,
            self.everything if allowed is None else allowed,
            self.seen,
            self.stamp,
            NO_KEYS if known is None else known.base,
            NO_KEYS if known is None else known.recent,
        )
        return found, first

    def advance(
        self, depth: int, keys: dict[int, list[Keys]], members: dict[tuple[int, int], list[Ids]]
    ) -> int:
        """Add a round's conclusions and make those that are new the deltas; return how many are."""
        added = 0
        for relation, pairs in self.pairs.items():
            new = NO_KEYS
            if relation in keys:
                candidates = keys[relation]
                merged = candidates[0] if len(candidates) == 1 else np.concatenate(candidates)
                if len(merged) > 1 and (merged[1:] < merged[:-1]).any():
                    merged = np.sort(merged)
                new = kernels.fresh(merged, pairs.base, pairs.recent)
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
            kernels.place(keys, depth, relation, ends, triples, depths)
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
    wanted = (keys & LOW) == (~object_ if object_ < 0 else keys >> 32)
    found: Ids = (keys[wanted] >> 32).astype(np.int32)
    return found
