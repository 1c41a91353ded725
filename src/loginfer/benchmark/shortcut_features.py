"""What can be said of two constants and a relation without knowing any rule: the features that shortcuts look at.

Features of a triple (x, h, y) are computed over K, without its conclusions. So those of train, valid and test are
treated alike. None names a relation of a rule's body: they count edges, neighbours and occurrences of h. What a
classifier learns from them is a shortcut, however good it is. `register_feature` adds one from elsewhere.

Neighbours and degrees leave type triples out; types have features of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.context import heads_of
from loginfer.errors import UnknownNameError
from loginfer.kernels import inlined, kernel, lower_bound
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import even_parts, places_of, ranges
from loginfer.kg.vocabulary import offsets_of

Values: TypeAlias = npt.NDArray[np.float32]
# Given K and triples: float[n], one value a triple.
ComputeFeature: TypeAlias = Callable[[KnowledgeGraph, Triples], npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that can be said of (x, h, y) without knowing a rule.

    Parameters
    ----------
    name
        What tables call it.
    meaning
        What it is, in a few words.
    group
        What `--match` calls it, together with others of its kind.
    compute
        Returns its values; None for those that one compiled pass over the graph computes together.
    """

    name: str
    meaning: str
    group: str
    compute: ComputeFeature | None = None


# In the order of the columns that `_pair_features` fills.
_COMPILED = (
    Feature("subject-out-degree", "triples of which x is the subject", "popularity"),
    Feature("subject-in-degree", "triples of which x is the object", "popularity"),
    Feature("object-out-degree", "triples of which y is the subject", "popularity"),
    Feature("object-in-degree", "triples of which y is the object", "popularity"),
    Feature("subject-as-subject", "triples of h of which x is the subject", "head"),
    Feature("subject-as-object", "triples of h of which x is the object", "head"),
    Feature("object-as-subject", "triples of h of which y is the subject", "head"),
    Feature("object-as-object", "triples of h of which y is the object", "head"),
    Feature("parallel", "relations from x to y, other than h", "adjacency"),
    Feature("reverse", "relations from y to x", "adjacency"),
    Feature("reverse-other", "whether a relation other than h leads from y to x", "adjacency"),
    Feature("adjacent", "whether a relation joins x and y, in either direction", "adjacency"),
    Feature("common-neighbours", "constants that are adjacent to x and to y", "neighbours"),
    Feature("common-forward", "constants z with x → z → y", "neighbours"),
    Feature("common-backward", "constants z with y → z → x", "neighbours"),
    Feature("common-objects", "constants z with x → z ← y", "neighbours"),
    Feature("common-subjects", "constants z with x ← z → y", "neighbours"),
    Feature("adamic-adar", "common neighbours, rare ones counting more", "neighbours"),
    Feature("profile-overlap", "share of the relations and directions at x or y that are at both", "profile"),
    Feature("subject-profile", "relations and directions at x", "profile"),
    Feature("object-profile", "relations and directions at y", "profile"),
    Feature("detour", "length of the shortest path from x to y that is no edge: 2, 3, or 4 for more", "distance"),
    Feature("pagerank-from-subject", "personalised PageRank of y seen from x", "distance"),
    Feature("pagerank-from-object", "personalised PageRank of x seen from y", "distance"),
)  # fmt: skip
(
    _X_OUT, _X_IN, _Y_OUT, _Y_IN, _X_SUBJECT, _X_OBJECT, _Y_SUBJECT, _Y_OBJECT, _PARALLEL, _REVERSE, _REVERSE_OTHER,
    _ADJACENT, _COMMON, _FORWARD, _BACKWARD, _OBJECTS, _SUBJECTS, _ADAMIC, _OVERLAP, _X_PROFILE, _Y_PROFILE,
    _DETOUR, _RANK_X, _RANK_Y,
) = range(len(_COMPILED))  # fmt: skip

# Personalised PageRank: how likely a walk ends at each step, and up to which remainder it is followed, by neighbour.
_STOP, _REMAINDER = 0.15, 2e-4


def _types(
    graph: KnowledgeGraph, entities: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return all pairs of a row and a type of its entity, as two columns."""
    typed = graph.triples[graph.triples[:, 1] == graph.type_relation]
    pointers = np.searchsorted(typed[:, 0], np.arange(len(graph.entities) + 1))
    row, positions = ranges(pointers[entities], np.diff(pointers)[entities])
    return row, typed[positions, 2].astype(np.int64)


def _common_types(graph: KnowledgeGraph, triples: Triples) -> npt.NDArray[Any]:
    size = max(len(graph.entities), 1)
    of_subject, of_object = (row * size + type_ for row, type_ in (_types(graph, triples[:, i]) for i in (0, 2)))
    return np.bincount(np.intersect1d(of_subject, of_object, assume_unique=True) // size, minlength=len(triples))


def _type_fit(graph: KnowledgeGraph, triples: Triples, column: int) -> npt.NDArray[Any]:
    """Return how many triples of h have, in a column, the type of this triple's end that most of them have."""

    def pairs(of: Triples) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        row, type_ = _types(graph, of[:, column])
        return row, of[row, 1].astype(np.int64) * len(graph.entities) + type_

    keys, counts = np.unique(pairs(graph.triples)[1], return_counts=True)
    row, own = pairs(triples)
    present, index = places_of(keys, own)
    fit = np.zeros(len(triples))
    np.maximum.at(fit, row[present], counts[index[present]])
    return fit


_subject_fit, _object_fit = (partial(_type_fit, column=column) for column in (0, 2))

FEATURES: dict[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("relation-name", "h itself", "name", heads_of),
        *_COMPILED,
        Feature("common-types", "types that x and y share", "types", _common_types),
        Feature("subject-type-fit", "most triples of h whose subjects have one type of x", "types", _subject_fit),
        Feature("object-type-fit", "most triples of h whose objects have one type of y", "types", _object_fit),
    )
}


def register_feature(feature: Feature) -> Feature:
    """Make a feature known to the learned shortcut, the audit, the gate and `--match all`; return it.

    Raises
    ------
    ValueError
        If there is one of that name, or it says not how it is computed.

    Examples
    --------
    >>> from loginfer.benchmark import Feature, register_feature
    >>> def same_letter(graph, triples):
    ...     names = graph.names(triples)
    ...     return [subject[:1] == object_[:1] for subject, _, object_ in names]
    >>> register_feature(Feature("same-letter", "whether both names begin alike", "names", same_letter)).name
    'same-letter'
    """
    if feature.name in FEATURES:
        raise ValueError(f"there is a feature called `{feature.name}` already")
    if feature.compute is None:
        raise ValueError(f"the feature `{feature.name}` does not say how it is computed")
    FEATURES[feature.name] = feature
    return feature


def feature_groups() -> tuple[str, ...]:
    """Return what `--match` may name, beside `all`."""
    return tuple(dict.fromkeys(feature.group for feature in FEATURES.values() if feature.group != "name"))


def features_named(groups: Sequence[str]) -> tuple[str, ...]:
    """Return the features of some groups, or all of them, with the relation's name.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    for group in groups:
        if group not in ("all", *feature_groups()):
            raise UnknownNameError("shortcut to match", group, ("all", *feature_groups()))
    return tuple(f.name for f in FEATURES.values() if "all" in groups or f.group in ("name", *groups))


class FeatureBattery:
    """Computes features over one graph.

    Parameters
    ----------
    graph
        K; P_train where K is not known.
    names
        Which features, in the order of the columns; by default all. Those about types are left out of a graph without.
    """

    def __init__(self, graph: KnowledgeGraph, names: Sequence[str] | None = None) -> None:
        self.graph = graph
        typed = graph.type_relation is not None
        for name in names or ():
            if name not in FEATURES:
                raise UnknownNameError("feature", name, tuple(FEATURES))
        chosen = [FEATURES[name] for name in (FEATURES if names is None else names)]
        self.features = tuple(feature for feature in chosen if typed or feature.group != "types")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(feature.name for feature in self.features)

    def values(self, triples: Triples) -> Values:
        """Return float32[n, f]: the features of triples."""
        columns = np.empty((len(triples), len(self.features)), dtype=np.float32)
        compiled = self._compiled(triples) if any(feature.compute is None for feature in self.features) else None
        for column, feature in enumerate(self.features):
            if feature.compute is not None:
                columns[:, column] = feature.compute(self.graph, triples)
            elif compiled is not None:
                columns[:, column] = compiled[:, _COMPILED.index(feature)]
        return columns

    def _compiled(self, triples: Triples) -> Values:
        """Return the columns of `_COMPILED`, those of one subject after the other, in threads."""
        order = np.argsort(triples[:, 0], kind="stable")
        ordered, graph = triples[order], self._arrays
        type_relation = -1 if self.graph.type_relation is None else self.graph.type_relation
        values = np.empty((len(triples), len(_COMPILED)), dtype=np.float32)
        cores = os.cpu_count() or 1
        parts = even_parts(4 * cores, ordered[:, 0])
        with ThreadPoolExecutor(cores) as threads:
            computed = threads.map(lambda part: _pair_features(graph, type_relation, ordered[part]), parts)
            for part, rows in zip(parts, computed, strict=True):
                values[order[part]] = rows
        return values

    @cached_property
    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The graph as the kernel sees it: neighbours with numbers of relations, degrees, profiles, steps."""
        size, steps, type_relation = len(self.graph.entities), self.graph.steps, self.graph.type_relation
        triples = self.graph.triples[self.graph.triples[:, 1] != type_relation]
        subjects, objects = triples[:, 0].astype(np.int64), triples[:, 2].astype(np.int64)
        both_ways = np.concatenate([subjects * size + objects, objects * size + subjects])
        pairs, index = np.unique(both_ways, return_inverse=True)
        out, into = (np.bincount(half, minlength=len(pairs)).astype(np.int32) for half in np.split(index, 2))
        pointers = np.searchsorted(pairs, np.arange(size + 1, dtype=np.int64) * size)
        neighbours = (pairs % max(size, 1)).astype(np.int32)
        degrees = np.stack([np.bincount(subjects, minlength=size), np.bincount(objects, minlength=size)])
        reach = np.diff(offsets_of(np.diff(pointers)[neighbours])[pointers])
        first = np.diff(steps.steps, prepend=-1) != 0
        first[steps.pointers[:-1][np.diff(steps.pointers) > 0]] = True
        first &= steps.steps >> 1 != type_relation
        profiles = (offsets_of(first)[steps.pointers], steps.steps[first])
        return pointers, neighbours, out, into, degrees, reach, *profiles, steps.pointers, steps.steps, steps.ends


# -- compiled ------------------------------------------------------------------------------------------


@kernel
def _pair_features(graph: Any, type_relation: Any, triples: Any) -> Any:
    """Return float32[n, f], see `_COMPILED`; triples with the same subject must stand together."""
    pointers, neighbours, out, into, degrees, _, profiles, profile, step_pointers, steps, ends = graph
    size = len(pointers) - 1
    values = np.zeros((len(triples), _RANK_Y + 1), dtype=np.float32)
    # Of each entity: in which directions the subject of `stamp` has edges with it, 1 forward, 2 backward, 3 both.
    stamp = np.full(size, -1, dtype=np.int32)
    directions = np.zeros(size, dtype=np.int8)
    rank, remainder = np.zeros(size), np.zeros(size)
    touched, queue = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    queued = np.zeros(size, dtype=np.bool_)
    reached = 0
    x = np.int64(-1)
    for row in range(len(triples)):
        h, y = np.int64(triples[row, 1]), np.int64(triples[row, 2])
        if triples[row, 0] != x:
            x = np.int64(triples[row, 0])
            for i in range(pointers[x], pointers[x + 1]):
                stamp[neighbours[i]] = x
                directions[neighbours[i]] = (out[i] > 0) + 2 * (into[i] > 0)
            for i in range(reached):
                rank[touched[i]] = remainder[touched[i]] = 0
            reached = _push(pointers, neighbours, x, rank, remainder, touched, queue, queued)
        line = values[row]
        line[_X_OUT], line[_X_IN] = degrees[0, x], degrees[1, x]
        line[_Y_OUT], line[_Y_IN] = degrees[0, y], degrees[1, y]
        low, middle, high = _occurrences(step_pointers, steps, x, h)
        line[_X_SUBJECT], line[_X_OBJECT] = middle - low, high - middle
        index = lower_bound(neighbours, pointers[x], pointers[x + 1], y)
        if index < pointers[x + 1] and neighbours[index] == y:
            counted = h != type_relation  # `out` and `into` leave type triples out
            line[_PARALLEL] = out[index] - (counted and _contains(ends, low, middle, y))
            line[_REVERSE] = into[index]
            line[_REVERSE_OTHER] = into[index] > (counted and _contains(ends, middle, high, y))
            line[_ADJACENT] = 1
        low, middle, high = _occurrences(step_pointers, steps, y, h)
        line[_Y_SUBJECT], line[_Y_OBJECT] = middle - low, high - middle
        _neighbourhood(graph, x, y, stamp, directions, line)
        line[_X_PROFILE], line[_Y_PROFILE] = profiles[x + 1] - profiles[x], profiles[y + 1] - profiles[y]
        common = _common_steps(profile, profiles[x], profiles[x + 1], profiles[y], profiles[y + 1])
        line[_OVERLAP] = common / max(line[_X_PROFILE] + line[_Y_PROFILE] - common, 1)
        line[_DETOUR] = 2 if line[_COMMON] else _detour(graph, x, y, stamp)
        # Of what has not been passed on, that share stays at least: hubs would have nothing otherwise.
        line[_RANK_X] = rank[y] + _STOP * remainder[y]
        # On a graph without directions both are the same, up to the degrees.
        line[_RANK_Y] = line[_RANK_X] * max(pointers[x + 1] - pointers[x], 1) / max(pointers[y + 1] - pointers[y], 1)
    return values


@inlined
def _occurrences(step_pointers: Any, steps: Any, entity: Any, relation: Any) -> Any:
    """Return where an entity's steps by a relation begin, where they turn from forward to backward, and end."""
    low = lower_bound(steps, step_pointers[entity], step_pointers[entity + 1], 2 * relation)
    middle = lower_bound(steps, low, step_pointers[entity + 1], 2 * relation + 1)
    return low, middle, lower_bound(steps, middle, step_pointers[entity + 1], 2 * relation + 2)


@inlined
def _contains(ends: Any, low: Any, high: Any, end: Any) -> Any:
    """Say whether a sorted part of `ends` has one."""
    index = lower_bound(ends, low, high, end)
    return index < high and ends[index] == end


@inlined
def _neighbourhood(graph: Any, x: Any, y: Any, stamp: Any, directions: Any, line: Any) -> Any:
    """Count the common neighbours by direction."""
    pointers, neighbours, out, into = graph[:4]
    adamic = 0.0
    for i in range(pointers[y], pointers[y + 1]):
        z = np.int64(neighbours[i])
        if stamp[z] != x or z in (x, y):
            continue
        forward, backward = directions[z] & 1, directions[z] & 2
        line[_COMMON] += 1
        line[_FORWARD] += forward and into[i] > 0
        line[_BACKWARD] += backward and out[i] > 0
        line[_OBJECTS] += forward and out[i] > 0
        line[_SUBJECTS] += backward and into[i] > 0
        adamic += 1 / np.log(max(pointers[z + 1] - pointers[z], 2))
    line[_ADAMIC] = adamic


@inlined
def _common_steps(profile: Any, i: Any, last: Any, j: Any, end: Any) -> Any:
    """Return how many steps two sorted parts of `profile` share."""
    count = 0
    while i < last and j < end:
        if profile[i] == profile[j]:
            count += 1
            i += 1
            j += 1
        elif profile[i] < profile[j]:
            i += 1
        else:
            j += 1
    return count


@inlined
def _detour(graph: Any, x: Any, y: Any, stamp: Any) -> Any:
    """Return 3 if there is a path x – w – v – y, 4 otherwise, of constants without a common neighbour: so v ≠ w."""
    pointers, neighbours, _, _, _, reach = graph[:6]
    if reach[y] <= reach[x]:
        for i in range(pointers[y], pointers[y + 1]):
            v = np.int64(neighbours[i])
            if v in (x, y):
                continue
            for j in range(pointers[v], pointers[v + 1]):
                w = np.int64(neighbours[j])
                if stamp[w] == x and w != y:
                    return 3
        return 4
    for i in range(pointers[x], pointers[x + 1]):
        w = np.int64(neighbours[i])
        if w in (x, y):
            continue
        for j in range(pointers[w], pointers[w + 1]):
            v = np.int64(neighbours[j])
            index = lower_bound(neighbours, pointers[v], pointers[v + 1], y)
            if v != x and index < pointers[v + 1] and neighbours[index] == y:
                return 3
    return 4


@inlined
def _push(
    pointers: Any, neighbours: Any, source: Any, rank: Any, remainder: Any, touched: Any, queue: Any, queued: Any
) -> Any:
    """Spread a walk that stops with probability `_STOP` at each step; return how many constants it touched.

    What is left at a constant is passed on as long as it is more than `_REMAINDER` for each neighbour.
    """
    size = len(queue)
    reached, first, waiting = 1, 0, 1
    touched[0] = queue[0] = source
    remainder[source] = 1.0
    queued[source] = True
    while waiting:
        entity = queue[first]
        first = first + 1 if first + 1 < size else 0
        waiting -= 1
        queued[entity] = False
        degree = pointers[entity + 1] - pointers[entity]
        amount, remainder[entity] = remainder[entity], 0.0
        if degree == 0:  # the source, which has nowhere to go
            rank[entity] = amount
            break
        rank[entity] += _STOP * amount
        share = (1 - _STOP) * amount / degree
        for i in range(pointers[entity], pointers[entity + 1]):
            end = neighbours[i]
            if rank[end] == 0 and remainder[end] == 0:
                touched[reached] = end
                reached += 1
            remainder[end] += share
            if not queued[end] and remainder[end] > _REMAINDER * (pointers[end + 1] - pointers[end]):
                queued[end] = True
                last = first + waiting
                queue[last if last < size else last - size] = end
                waiting += 1
    return reached
