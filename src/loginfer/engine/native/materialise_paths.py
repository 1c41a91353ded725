"""Conclusions of a rule whose body is a path, with one part of the body read from its delta.

The delta is somewhere on the path. Going back from it gives, for each earlier node, the entities from which
the delta can be reached; going forward from the first end is then confined to these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from loginfer.engine.native import materialise_kernels as kernels
from loginfer.engine.native.materialise_relations import LOW, NO_IDS, NO_KEYS, Flags, Ids, Keys, Pairs, pack
from loginfer.engine.native.materialise_rules import Path
from loginfer.engine.native.materialise_store import Store

__all__ = ["path_members", "path_pairs"]

# So many keys of a frontier are made at a time: what a path passes through may be far more than what it
# concludes, and a limit on the number of triples must be noticed in time.
ROOM = 1 << 21

# For each node of a path the entities it may be; None for all.
Masks: TypeAlias = list[Flags | None]


def path_pairs(path: Path, part: int, store: Store, known: Pairs) -> Iterator[Keys]:
    """Yield pairs (first end, last end) that follow, each at most once.

    Parameters
    ----------
    path
        A path whose ends are the two variables of the head.
    part
        Which of `path.sources` is read from its delta.
    store
        The triples.
    known
        Pairs that need not be yielded.
    """
    masks = _masks(path, store)
    at, members, keys = _delta(path, part, masks)
    if part == 0 and path.edges:
        frontier, step = keys, 1
    else:
        starts = np.sort(_go_back(path, store, masks, members, at))
        frontier, step = pack(starts, starts), 0
    for found in _go_forward(path, part, store, masks, known, frontier, step):
        yield found[found >> 32 != found & LOW] if path.ends_differ else found


def path_members(path: Path, part: int, store: Store, known: Flags | None) -> Ids:
    """Return the first ends that follow.

    Parameters
    ----------
    path
        A path whose first end is the head's only variable, or whose head is ground.
    part
        Which of `path.sources` is read from its delta.
    store
        The triples.
    known
        bool[entities], ends that need not be returned.
    """
    masks = _masks(path, store)
    if known is not None and len(path.edges) > 1:
        masks[0] = _both(masks[0], ~known)
    at = part if part < len(path.edges) else _node(path, part)
    for node in range(len(path.edges) - 1, at, -1):
        masks[node] = _both(masks[node], _able(path, store, masks[node + 1], node))
    at, members, _ = _delta(path, part, masks)
    if part >= len(path.edges) and at < len(path.edges):
        ahead = masks[at + 1]
        towards = path.edges[at].pairs.adjacency(path.edges[at].inverse)
        allowed = store.everything if ahead is None else ahead
        members = kernels.semijoin(members, towards.pointers, towards.values, allowed)
    return _go_back(path, store, masks, members, at)


def _masks(path: Path, store: Store) -> Masks:
    masks: Masks = []
    for node, excluded in zip(path.nodes, path.excluded, strict=True):
        mask = None
        for members in node:
            mask = _both(mask, members.mask)
        if excluded:
            mask = store.everything.copy() if mask is None else mask.copy()
            mask[list(excluded)] = False
        masks.append(mask)
    return masks


def _both(left: Flags | None, right: Flags) -> Flags:
    return right if left is None else left & right


def _node(path: Path, part: int) -> int:
    """Return the node that a part beyond the edges constrains."""
    part -= len(path.edges)
    for node, sets in enumerate(path.nodes):
        if part < len(sets):
            return node
        part -= len(sets)
    raise IndexError(part)


def _delta(path: Path, part: int, masks: Masks) -> tuple[int, Ids, Keys]:
    """Return the node at which the delta stands, its entities there and, for an edge, its pairs."""
    if part >= len(path.edges):
        node = _node(path, part)
        source = path.members[part - len(path.edges)]
        members, mask = source.delta, masks[node]
        if mask is not None and mask is not source.mask:
            members = members[mask[members]]
        return node, members, NO_KEYS
    edge = path.edges[part]
    keys = edge.pairs.delta_keys(edge.inverse)
    near, far = masks[part], masks[part + 1]
    if near is not None:
        keys = keys[near[keys >> 32]]
    if far is not None:
        keys = keys[far[keys & LOW]]
    if not len(keys):
        return part, NO_IDS, keys
    subjects = (keys >> 32).astype(np.int32)
    first = np.empty(len(subjects), dtype=np.bool_)
    first[0] = True
    np.not_equal(subjects[1:], subjects[:-1], out=first[1:])
    return part, subjects[first], keys


def _able(path: Path, store: Store, ahead: Flags | None, node: int) -> Flags:
    """Return bool[entities]: from where one step of the path leads to an entity that may be ahead."""
    edge = path.edges[node]
    keys = edge.pairs.keys
    near, far = (keys & LOW, keys >> 32) if edge.inverse else (keys >> 32, keys & LOW)
    able = np.zeros(store.entities, dtype=np.bool_)
    able[near if ahead is None else near[ahead[far]]] = True
    return able


def _go_back(path: Path, store: Store, masks: Masks, members: Ids, at: int) -> Ids:
    """Return the first ends from which a node's `members` can be reached; confine the masks to the way."""
    for node in range(at - 1, -1, -1):
        if not len(members):
            break
        way = np.zeros(store.entities, dtype=np.bool_)
        way[members] = True
        masks[node + 1] = way
        edge = path.edges[node]
        found, _ = store.expand(
            members.astype(np.int64), 0, store.entities, edge.pairs.adjacency(not edge.inverse), masks[node]
        )
        members = found.astype(np.int32)
    return members


def _go_forward(
    path: Path, part: int, store: Store, masks: Masks, known: Pairs, frontier: Keys, step: int
) -> Iterator[Keys]:
    """Yield the pairs (first end, last end) that a frontier leads to from one step on."""
    if step == len(path.edges):
        yield frontier
        return
    edge = path.edges[step]
    step_from = edge.pairs.delta_adjacency if step == part else edge.pairs.adjacency
    towards = step_from(edge.inverse)
    last = step == len(path.edges) - 1
    first = 0
    while first < len(frontier):
        found, first = store.expand(frontier, first, ROOM, towards, masks[step + 1], known if last else None)
        if len(found):
            yield from _go_forward(path, part, store, masks, known, found, step + 1)
