"""Random walks.

A graph arranged for random walks, with loops and types only where a path may end.

A loop r(e,e) stands here as the two triples r(e,i) and r(i,e) with the special constant i = "itself", whose
id is the first behind those of the entities. So a loop never closes a path by itself. A path neither goes
through i nor through a type: an edge to either of them may only be the last one of an open path.

Kernels that walk: draws, look-ups of edges, closed and open random walks (see `WalkGraph`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.kernels import inlined, kernel, lower_bound, random_bits
from loginfer.kg import KnowledgeGraph

Ids = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]


class WalkGraph(NamedTuple):
    """A graph in three orders: triples to draw, edges of a constant to walk along, edges of a step to count.

    A *step* is a directed relation 2·R + d, as in `RuleTable`: from subject to object with d = 0.

    Parameters
    ----------
    triples
        int32[n, 3], with two rows for each loop.
    type_relation
        The relation that is no relation; -1 if there is none.
    itself
        The id of the special constant, one more than that of the last entity.
    sizes
        int64[R]: how many triples of the graph each relation has.
    link_first, link_middle
        int64[2, entities + 1]: the edges of x in direction d are those from `link_first[d, x]` to
        `link_first[d, x + 1]`; from `link_middle[d, x]` on they lead to types and to the special constant.
        Both parts are sorted by end, then by relation.
    link_end, link_relation
        int32[…]: where an edge leads, and its relation.
    step_first, step_stop
        int64[2R]: which of the `source` and `end` belong to a step and no special constant.
    source, end
        int32[…]: all edges, sorted by step, source, end. Edges from types and from the special constant are
        here, so that paths can be followed back from them; edges to them are not.
    row_first
        int64[2R + 1]: the rows of a step, one for each source.
    row_edge
        int64[rows + 1]: the edges of a row.
    group_first
        int64[entities + 2]: the rows of a constant, ordered by step.
    group_step, group_row
        int32[rows], int64[rows]: the step of such a row, and which row it is.
    """

    triples: Ids
    type_relation: int
    itself: int
    sizes: Places
    link_first: Places
    link_middle: Places
    link_end: Ids
    link_relation: Ids
    step_first: Places
    step_stop: Places
    source: Ids
    end: Ids
    row_first: Places
    row_edge: Places
    group_first: Places
    group_step: Ids
    group_row: Places


def walk_graph(graph: KnowledgeGraph) -> WalkGraph:
    """Arrange a graph for walks."""
    triples = graph.triples
    entities, relations = len(graph.entities), len(graph.relations)
    type_relation = -1 if graph.type_relation is None else int(graph.type_relation)
    # (e, type, e) says that e is of the type e, which is no loop.
    is_type = triples[:, 1] == type_relation
    is_loop = (triples[:, 0] == triples[:, 2]) & ~is_type
    plain, loops, types = triples[~is_type & ~is_loop], triples[is_loop], triples[is_type]
    to_itself = loops.copy()
    to_itself[:, 2] = entities
    from_itself = to_itself[:, ::-1]
    links = [_links(part, entities) for part in (_rows(plain), _rows(plain[:, ::-1]))]
    ends = [_links(part, entities) for part in (_rows(types, to_itself), _rows(from_itself[:, ::-1]))]
    first, middle, link_end, link_relation = _merged(links, ends)
    rows = _rows(plain, from_itself)
    back = _rows(plain[:, ::-1], to_itself[:, ::-1], types[:, ::-1])
    return WalkGraph(
        np.ascontiguousarray(_rows(triples[~is_loop], to_itself, from_itself)),
        type_relation,
        entities,
        np.bincount(triples[:, 1], minlength=relations).astype(np.int64),
        first,
        middle,
        link_end,
        link_relation,
        *_steps(rows, back, entities, relations),
    )


def _rows(*parts: Ids) -> Ids:
    return np.concatenate(parts).astype(np.int32)


def _links(edges: Ids, entities: int) -> tuple[Places, Ids]:
    """Sort edges by source, end and relation; returns how many each entity has, and the edges."""
    order = np.lexsort((edges[:, 1], edges[:, 2], edges[:, 0]))
    return np.bincount(edges[:, 0], minlength=entities).astype(np.int64), edges[order]


def _merged(links: list[tuple[Places, Ids]], ends: list[tuple[Places, Ids]]) -> tuple[Places, Places, Ids, Ids]:
    """Put the edges of both directions into one array, those that only end a path behind the others."""
    entities = len(links[0][0])
    first = np.zeros((2, entities + 1), dtype=np.int64)
    middle = np.zeros((2, entities + 1), dtype=np.int64)
    parts = []
    offset = 0
    for direction, ((inner, edges), (outer, last)) in enumerate(zip(links, ends, strict=True)):
        first[direction, 0] = offset
        np.cumsum(inner + outer, out=first[direction, 1:])
        first[direction, 1:] += offset
        middle[direction, :-1] = first[direction, :-1] + inner
        middle[direction, -1] = first[direction, -1]
        offset = int(first[direction, -1])
        both = np.concatenate([edges, last])
        outside = np.repeat([0, 1], [len(edges), len(last)])
        parts.append(both[np.lexsort((outside, both[:, 0]))])
    merged = np.concatenate(parts)
    return first, middle, np.ascontiguousarray(merged[:, 2]), np.ascontiguousarray(merged[:, 1])


def _steps(
    forward: Ids, back: Ids, entities: int, relations: int
) -> tuple[Places, Places, Ids, Ids, Places, Places, Places, Ids, Places]:
    """Return the fields of a `WalkGraph` from `step_first` on."""
    edges = np.concatenate([forward, back])
    step = 2 * edges[:, 1].astype(np.int64) + np.repeat([0, 1], [len(forward), len(back)])
    order = np.lexsort((edges[:, 2], edges[:, 0], step))
    step, edges = step[order], edges[order]
    source, end = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 2])
    steps = np.arange(2 * relations + 1)
    bounds = np.searchsorted(step, steps).astype(np.int64)
    # The special constant has the largest id, so its edges are the last of each step.
    special = np.bincount(step[source == entities], minlength=2 * relations).astype(np.int64)
    new = np.ones(len(step), dtype=bool)
    new[1:] = (step[1:] != step[:-1]) | (source[1:] != source[:-1])
    row_edge = np.append(np.flatnonzero(new), len(step)).astype(np.int64)
    row_step, row_source = step[row_edge[:-1]], source[row_edge[:-1]]
    row_first = np.searchsorted(row_step, steps).astype(np.int64)
    by_source = np.lexsort((row_step, row_source)).astype(np.int64)
    group_first = np.searchsorted(row_source[by_source], np.arange(entities + 2)).astype(np.int64)
    group_step = row_step[by_source].astype(np.int32)
    return (bounds[:-1], bounds[1:] - special, source, end, row_first, row_edge, group_first, group_step, by_source)


# What a walk of up to three steps leaves in an array: the head's relation, whether it was taken from object
# to subject, the constants in order (those of the head first), and the steps.
RELATION, TURNED, NODES, STEPS = 0, 1, 2, 7
PLACES = 10

_32 = np.uint64(32)


@inlined
def draw(random: npt.NDArray[np.uint64], bound: Any) -> Any:
    """Return a random number below a bound; `random` holds a salt and a counter, which goes on."""
    random[1] += np.uint64(1)
    bits = random_bits(random[0], random[1])
    return np.int64(((bits >> _32) * np.uint64(bound)) >> _32)


@inlined
def row_of(graph: WalkGraph, constant: Any, step: Any) -> Any:
    """Return the row of a constant's edges for a step; -1 if it has none."""
    stop = graph.group_first[constant + 1]
    place = lower_bound(graph.group_step, graph.group_first[constant], stop, step)
    if place == stop or graph.group_step[place] != step:
        return np.int64(-1)
    return graph.group_row[place]


@inlined
def edges_between(graph: WalkGraph, constant: Any, other: Any, direction: Any) -> Any:
    """Return the first and the stop of the links from a constant to another one in a direction."""
    first, stop = graph.link_first[direction, constant], graph.link_middle[direction, constant]
    if other == graph.itself:
        first, stop = stop, graph.link_first[direction, constant + 1]
    first = lower_bound(graph.link_end, first, stop, other)
    return first, lower_bound(graph.link_end, first, stop, other + 1)


@inlined
def _draw_head(graph: WalkGraph, random: npt.NDArray[np.uint64], walk: Places) -> None:
    """Draw a triple for the head, in a random orientation: the walk goes on from the second constant."""
    triple = draw(random, len(graph.triples))
    turned = draw(random, 2)
    walk[RELATION] = graph.triples[triple, 1]
    walk[TURNED] = turned
    walk[NODES] = graph.triples[triple, 2 * turned]
    walk[NODES + 1] = graph.triples[triple, 2 - 2 * turned]


@inlined
def met(constants: Places, first: Any, stop: Any, constant: Any) -> Any:
    """Say whether a constant is among some others."""
    found = False
    for place in range(first, stop):
        found |= constants[place] == constant
    return found


@kernel
def closed_walk(graph: WalkGraph, length: int, random: npt.NDArray[np.uint64], walk: Places) -> bool:
    """Draw a head, and walk from its second constant back to its first; False if that leads nowhere."""
    _draw_head(graph, random, walk)
    start, constant = walk[NODES], walk[NODES + 1]
    if walk[RELATION] == graph.type_relation or constant == graph.itself:
        return False
    if start == graph.itself and length > 1:
        return False
    for step in range(length):
        direction = draw(random, 2)
        if step < length - 1:
            first, stop = graph.link_first[direction, constant], graph.link_middle[direction, constant]
        else:
            first, stop = edges_between(graph, constant, start, direction)
        if first == stop:
            return False
        link = first + draw(random, stop - first)
        walk[STEPS + step] = 2 * graph.link_relation[link] + direction
        constant = np.int64(graph.link_end[link])
        if step < length - 1:
            if met(walk, NODES, NODES + step + 2, constant):
                return False
            walk[NODES + step + 2] = constant
    return True


@kernel
def open_walk(graph: WalkGraph, length: int, random: npt.NDArray[np.uint64], walk: Places) -> bool:
    """Draw a head, and walk on from its second constant; False if that leads nowhere or back.

    The head's second constant is the one that becomes a variable; a type is none, nor is the special
    constant. With length 0 there is only the head.
    """
    _draw_head(graph, random, walk)
    constant = walk[NODES + 1]
    if constant == graph.itself or constant == walk[NODES]:
        return False
    if walk[RELATION] == graph.type_relation and walk[TURNED] == 0:
        return False
    for step in range(length):
        direction = draw(random, 2)
        first, stop = graph.link_first[direction, constant], graph.link_middle[direction, constant]
        if step == length - 1:
            stop = graph.link_first[direction, constant + 1]
        if first == stop:
            return False
        link = first + draw(random, stop - first)
        walk[STEPS + step] = 2 * graph.link_relation[link] + direction
        constant = np.int64(graph.link_end[link])
        if met(walk, NODES, NODES + step + 2, constant):
            return False
        walk[NODES + step + 2] = constant
    return True
