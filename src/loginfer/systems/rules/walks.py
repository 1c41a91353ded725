"""Random walks, as the sampling miners take them: the graph for it, draws, walks, and searches from a start.

A loop r(e,e) stands here as the two triples r(e,i) and r(i,e) with the special constant i = "itself", whose
id is the first behind those of the entities. So a loop never closes a path by itself. A path neither goes
through i nor through a type: an edge to either of them may only be the last one of an open path.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.kernels import inlined, kernel, lower_bound, random_bits
from loginfer.kg import KnowledgeGraph
from loginfer.kg.graph import EntitySteps, RelationIndex, run_starts
from loginfer.systems.rules.mined import LONGEST

Ids = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Random = npt.NDArray[np.uint64]


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
    sizes: Longs
    link_first: Longs
    link_middle: Longs
    link_end: Ids
    link_relation: Ids
    step_first: Longs
    step_stop: Longs
    source: Ids
    end: Ids
    row_first: Longs
    row_edge: Longs
    group_first: Longs
    group_step: Ids
    group_row: Longs


def walk_graph(graph: KnowledgeGraph) -> WalkGraph:
    """Arrange a graph for walks."""
    triples = graph.triples
    entities, relations = len(graph.entities), len(graph.relations)
    type_relation = -1 if graph.type_relation is None else int(graph.type_relation)
    # (e, type, e) says that e is of the type e, which is no loop.
    is_loop = (triples[:, 0] == triples[:, 2]) & (triples[:, 1] != type_relation)
    to_itself = triples[is_loop]
    to_itself[:, 2] = entities
    split = np.concatenate([triples[~is_loop], to_itself, to_itself[:, ::-1]])
    by_entity = graph.steps
    if len(to_itself):
        by_entity = EntitySteps(RelationIndex(split[np.lexsort(split.T[::-1])], entities + 1, relations))
    step, end = by_entity.steps, by_entity.ends
    source = np.repeat(np.arange(len(by_entity.pointers) - 1, dtype=np.int32), np.diff(by_entity.pointers))
    last = (end == entities) | (step == 2 * type_relation)
    special = (source == entities) | (step == 2 * type_relation + 1)
    return WalkGraph(
        split,
        type_relation,
        entities,
        np.bincount(triples[:, 1], minlength=relations).astype(np.int64),
        *_links(source[~special], step[~special], end[~special], last[~special], entities),
        *_rows(source[~last], step[~last], end[~last], entities, relations),
    )


def _links(source: Ids, step: Ids, end: Ids, last: npt.NDArray[np.bool_], entities: int) -> tuple[Any, ...]:
    """Return `link_first` to `link_relation`: by direction and source, those that only end a path last."""
    # For each direction and source the edges that may go on, then the others.
    part = 2 * ((step & 1).astype(np.int64) * entities + source) + last
    order = np.lexsort((step >> 1, end, part))
    sizes = np.bincount(part, minlength=4 * entities).reshape(2, entities, 2)
    first = np.zeros((2, entities + 1), dtype=np.int64)
    np.cumsum(sizes[0].sum(axis=1), out=first[0, 1:])
    first[1] = first[0, -1]
    first[1, 1:] += np.cumsum(sizes[1].sum(axis=1))
    middle = first.copy()
    middle[:, :-1] += sizes[:, :, 0]
    return first, middle, end[order], step[order] >> 1


def _rows(source: Ids, step: Ids, end: Ids, entities: int, relations: int) -> tuple[Any, ...]:
    """Return `step_first` to `group_row`."""
    # They come by source, step and end.
    order = np.argsort(step, kind="stable")
    source, step, end = source[order], step[order], end[order]
    steps = np.arange(2 * relations + 1)
    bounds = np.searchsorted(step, steps).astype(np.int64)
    # The special constant has the largest id, so its edges are the last of each step.
    special = np.bincount(step[source == entities], minlength=2 * relations).astype(np.int64)
    row_edge = np.append(np.flatnonzero(run_starts(step, source)), len(step)).astype(np.int64)
    row_step, row_source = step[row_edge[:-1]], source[row_edge[:-1]]
    row_first = np.searchsorted(row_step, steps).astype(np.int64)
    by_source = np.argsort(row_source, kind="stable")
    group_first = np.searchsorted(row_source[by_source], np.arange(entities + 2)).astype(np.int64)
    edges = bounds[:-1], bounds[1:] - special, source, end
    return *edges, row_first, row_edge, group_first, row_step[by_source], by_source


# -- draws and look-ups -----------------------------------------------------------------------------

_32 = np.uint64(32)


@inlined
def draw(random: Random, bound: Any) -> Any:
    """Return a random number below a bound; `random` holds a salt and a counter, which goes on."""
    random[1] += np.uint64(1)
    bits = random_bits(random[0], random[1])
    return np.int64(((bits >> _32) * np.uint64(bound)) >> _32)


@inlined
def row_of(graph: WalkGraph, constant: Any, step: Any) -> Any:
    """Return the row of a constant's edges for a step; -1 if it has none."""
    stop = graph.group_first[constant + 1]
    group = lower_bound(graph.group_step, graph.group_first[constant], stop, step)
    if group == stop or graph.group_step[group] != step:
        return np.int64(-1)
    return graph.group_row[group]


@inlined
def row_holds(graph: WalkGraph, row: Any, constant: Any) -> Any:
    """Say whether a row has an edge to a constant; row -1 has none."""
    if row < 0:
        return False
    stop = graph.row_edge[row + 1]
    position = lower_bound(graph.end, graph.row_edge[row], stop, constant)
    return position < stop and graph.end[position] == constant


@inlined
def edges_between(graph: WalkGraph, constant: Any, other: Any, direction: Any) -> Any:
    """Return the first and the stop of the links from a constant to another one in a direction."""
    first, stop = graph.link_first[direction, constant], graph.link_middle[direction, constant]
    if other == graph.itself:
        first, stop = stop, graph.link_first[direction, constant + 1]
    first = lower_bound(graph.link_end, first, stop, other)
    return first, lower_bound(graph.link_end, first, stop, other + 1)


@inlined
def is_among(constants: Longs, first: Any, stop: Any, constant: Any) -> Any:
    """Say whether a constant is among some others."""
    is_there = False
    for i in range(first, stop):
        is_there |= constants[i] == constant
    return is_there


# -- walks ------------------------------------------------------------------------------------------

# What a walk of up to three steps leaves in an array: the head's relation, whether it was taken from object
# to subject, the constants in order (those of the head first), and the steps.
RELATION, TURNED, NODES, STEPS = 0, 1, 2, 7
WALK_SIZE = 10


@inlined
def _draw_head(graph: WalkGraph, random: Random, walk: Longs) -> None:
    """Draw a triple for the head, in a random orientation: the walk goes on from the second constant."""
    triple = draw(random, len(graph.triples))
    turned = draw(random, 2)
    walk[RELATION] = graph.triples[triple, 1]
    walk[TURNED] = turned
    walk[NODES] = graph.triples[triple, 2 * turned]
    walk[NODES + 1] = graph.triples[triple, 2 - 2 * turned]


@inlined
def _take_link(graph: WalkGraph, first: Any, stop: Any, direction: Any, step: Any, random: Random, walk: Longs) -> Any:
    """Draw one of some links, note its step, and return where it leads."""
    link = first + draw(random, stop - first)
    walk[STEPS + step] = 2 * graph.link_relation[link] + direction
    return np.int64(graph.link_end[link])


@kernel
def closed_walk(graph: WalkGraph, length: int, random: Random, walk: Longs) -> bool:
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
        constant = _take_link(graph, first, stop, direction, step, random, walk)
        if step < length - 1:
            if is_among(walk, NODES, NODES + step + 2, constant):
                return False
            walk[NODES + step + 2] = constant
    return True


@kernel
def open_walk(graph: WalkGraph, length: int, random: Random, walk: Longs) -> bool:
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
        constant = _take_link(graph, first, stop, direction, step, random, walk)
        if is_among(walk, NODES, NODES + step + 2, constant):
            return False
        walk[NODES + step + 2] = constant
    return True


# -- all ends of a path from a start ----------------------------------------------------------------


class PathSearch(NamedTuple):
    """A depth-first search for the ends of a path, under way.

    Parameters
    ----------
    steps
        int64[LONGEST], the steps of the path.
    nodes, at, stop
        int64[LONGEST]: the constants so far, and at each depth the next edge to take and where they end.
    """

    steps: Longs
    nodes: Longs
    at: Longs
    stop: Longs


@inlined
def new_search() -> Any:
    """Return memory for a search."""
    zeros = np.zeros((4, LONGEST), dtype=np.int64)
    return PathSearch(zeros[0], zeros[1], zeros[2], zeros[3])


@inlined
def read_steps(search: PathSearch, body: Any, first: Any, length: Any, turned: Any) -> None:
    """Take the steps of a path from body[first:first + length]; turned: as they are from its end."""
    for i in range(length):
        search.steps[i] = body[first + length - 1 - i] ^ 1 if turned else body[first + i]


@inlined
def begin_search(search: PathSearch, start: Any, first_edge: Any, stop_edge: Any) -> None:
    """Begin at a constant, with some of its edges."""
    search.nodes[0], search.at[0], search.stop[0] = start, first_edge, stop_edge


@inlined
def find_ends(
    graph: WalkGraph,
    search: PathSearch,
    length: Any,
    other: Any,
    enough: Any,
    most: Any,
    stamps: Longs,
    stamp: Any,
    ends: Longs,
) -> Any:
    """Write the different ends of a path that no entity before them is, nor `other`, into `ends`.

    An end counts if its stamp is not `stamp`, which it gets. The search ends when there are `enough` of them, or
    `most` edges were looked at.

    Returns
    -------
    tuple
        How many ends there are, and how many edges were looked at.
    """
    depth, count, seen = 0, np.int64(0), np.int64(0)
    while depth >= 0 and count < enough and seen < most:
        if search.at[depth] == search.stop[depth]:
            depth -= 1
            continue
        constant = np.int64(graph.end[search.at[depth]])
        search.at[depth] += 1
        seen += 1
        if constant == other or is_among(search.nodes, 0, depth + 1, constant):
            continue
        if depth < length - 1:
            row = row_of(graph, constant, search.steps[depth + 1])
            if row >= 0:
                depth += 1
                search.nodes[depth] = constant
                search.at[depth], search.stop[depth] = graph.row_edge[row], graph.row_edge[row + 1]
        elif stamps[constant] != stamp:
            stamps[constant] = stamp
            ends[count] = constant
            count += 1
    return count, seen
