"""Rules applied.

Compiled: what is known of scores while rules are applied, best rules first.

See `loginfer.systems.rules.mined` for what the three aggregations are.

Rules of other shapes than paths, applied by the engine.

Compiled: which rules can predict a triple, or answer a query.

To choose from a list of rules, it and the steps of an entity are gone along side by side: both are sorted by
directed relation.

Compiled: path rules applied to triples, and to queries with one position open.

Each score meets the rules that predict it in the order of their confidence: rules that can fire at all are
chosen and sorted by their turns, and those of other shapes are met in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine import Engine, Projection, open_engine
from loginfer.engine.binding import ABSENT, relation_of
from loginfer.errors import LimitError
from loginfer.kernels import inlined, kernel, lower_bound
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Constant, Rule, ScoredRule
from loginfer.systems.rules.mined import BOTH, MAXIMUM, NOISY_OR, NONE, OBJECT, SUBJECT, Worth
from loginfer.systems.rules.paths import (
    BACKWARD,
    END,
    END_CONSTANT,
    FIRST,
    FORWARD,
    HEAD,
    HEAD_CONSTANT,
    NUMBER,
    RANK,
    SECOND,
    SINGLE,
    STEP,
    THIRD,
    TURN,
    VARIABLES,
    Bodies,
    Edges,
    RuleLists,
    bearers,
    joined,
    path_ends,
    path_exists,
)

# A number: a Python int outside, an int64 inside.
Int: TypeAlias = Any

ROOM, LAST, TOUCHED = range(3)

# What RuleN adds for each further rule.
_FURTHER = 1e-4


class Board(NamedTuple):
    """The scores of some candidates.

    Parameters
    ----------
    code
        int64[1], the aggregation.
    values, rooms
        float64[d], int64[d]: the different confidences, and the floats from each to the next.
    scores, bits
        float64[c], and the same memory as int64[c].
    state
        int64[c, 3]. ROOM: -1 before the first rule; for `maximum` the floats that are left to tell scores
        apart, for `sum` the further rules. LAST: the rank of the last rule. TOUCHED, apart from these: the
        candidates with rules, in the order in which they got the first.
    """

    code: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    rooms: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    bits: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


def new_board(worth: Worth, candidates: int) -> Board:
    """Return a board without any rules."""
    scores = np.zeros(candidates)
    return Board(
        np.array([worth.code], dtype=np.int64),
        worth.values,
        worth.room,
        scores,
        scores.view(np.int64),
        np.full((candidates, 3), -1, dtype=np.int64),
    )


@inlined
def push(board: Board, count: Int, j: Int, rank: Int) -> Int:
    """Add a rule to the j-th score; `count` candidates are touched before, the result says how many after."""
    code = board.code[0]
    if board.state[j, ROOM] < 0:
        board.state[count, TOUCHED] = j
        board.state[j, LAST] = rank
        value = float(board.values[rank])
        if code == NOISY_OR:
            board.scores[j] = 1.0 - min(value, 1.0)
            board.state[j, ROOM] = 0
        else:
            board.scores[j] = value
            board.state[j, ROOM] = board.rooms[rank] if code == MAXIMUM else 0
        return count + 1
    if code == MAXIMUM:
        # As long as there is room: where there is none, a division would only find that out.
        if board.state[j, ROOM] > board.state[j, LAST] + 1:
            part = board.state[j, ROOM] // (board.state[j, LAST] + 2)
            board.bits[j] += part * (rank + 1)
            board.state[j, ROOM] = part
            board.state[j, LAST] = rank
    elif code == NOISY_OR:
        board.scores[j] *= 1.0 - min(float(board.values[rank]), 1.0)
    else:
        board.state[j, ROOM] += 1
    return count


@inlined
def no_more(board: Board, j: Int) -> bool:
    """Say whether further rules make no difference to the j-th score."""
    return bool(
        board.code[0] == MAXIMUM and board.state[j, ROOM] >= 0 and board.state[j, ROOM] < board.state[j, LAST] + 2
    )


@inlined
def clear(board: Board, count: Int, scores: npt.NDArray[np.float64]) -> None:
    """Write the scores of the touched candidates, and make room for others."""
    code = board.code[0]
    for number in range(count):
        j = board.state[number, TOUCHED]
        score = board.scores[j]
        if code == NOISY_OR:
            score = 1.0 - score
        elif code != MAXIMUM:
            score += _FURTHER * board.state[j, ROOM]
        scores[j] = score
        board.state[j, ROOM] = -1


Ids = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

# Conclusions that are kept for the next block of queries, pairs of all rules together.
KEPT = 2**25


class Predicted(NamedTuple):
    """What rules predict, sorted by triple or query, and best rule first.

    Parameters
    ----------
    starts
        int64[n + 1], where the predictions of each triple or query begin.
    found
        int64[m, 3], the turn of a rule, the rank of its confidence and, for queries, which candidate.
    """

    starts: Longs
    found: Longs


def confidences(others: Sequence[ScoredRule]) -> npt.NDArray[np.float64]:
    """Return float64[m]: a rule of which nobody says how sure it is counts as certain."""
    return np.array([1.0 if rule.confidence is None else rule.confidence for rule in others], dtype=np.float64)


class OtherRules:
    """Rules of any shape over a graph.

    Parameters
    ----------
    graph
        The graph.
    rules
        The rules.
    turns, ranks
        For each its turn among all rules, and the rank of its confidence; -1 for rules to leave out.
    """

    def __init__(self, graph: KnowledgeGraph, rules: Sequence[Rule], turns: Longs, ranks: Ids) -> None:
        # A head with a name that has no id predicts nothing anybody could ask about.
        heads = np.array([_head_relation(rule, graph) for rule in rules], dtype=np.int32)
        used = np.flatnonzero((heads != ABSENT) & (ranks >= 0))
        used = used[np.argsort(turns[used])]
        self._graph = graph
        self._rules = [rules[place] for place in used.tolist()]
        self._heads, self._turns, self._ranks = heads[used], turns[used], ranks[used].astype(np.int64)
        self._conclusions: dict[tuple[int, bool], tuple[Ids, Ids]] = {}
        self._kept = 0

    @cached_property
    def _engine(self) -> Engine:
        return open_engine(self._graph)

    def of_triples(self, triples: Triples) -> Predicted:
        """Return which rules predict which triples."""
        if not self._rules:
            return _nothing(len(triples))
        found = self._engine.derivations(self._rules, triples)
        columns = np.zeros(len(found.rule), dtype=np.int32)
        return self._predicted(len(triples), found.triple, found.rule, columns)

    def of_queries(self, queries: Ids, subject_open: bool, column: Ids) -> Predicted:
        """Return which rules predict which candidates.

        Parameters
        ----------
        queries
            int32[n, 2], relations and known ends.
        subject_open
            Whether the subjects are asked for.
        column
            int32[entities], the place of each entity among the candidates, -1 for the rest.
        """
        places: list[Longs] = []
        rules: list[Longs] = []
        columns: list[Ids] = []
        asked = {r: np.flatnonzero(queries[:, 0] == r) for r in np.unique(queries[:, 0]).tolist()}
        for number, head in enumerate(self._heads.tolist()):
            mine = asked.get(head)
            if mine is None:
                continue
            query, entity = self._ends(number, queries[mine, 1], subject_open, column)
            wanted = column[entity] >= 0
            places.append(mine[query[wanted]])
            columns.append(column[entity[wanted]])
            rules.append(np.full(len(places[-1]), number, dtype=np.int64))
        if not places:
            return _nothing(len(queries))
        place, rule = np.concatenate(places), np.concatenate(rules)
        order = np.lexsort((rule, place))
        return self._predicted(len(queries), place[order], rule[order], np.concatenate(columns)[order])

    def of_pairs(self, pairs: Ids, column: Ids) -> Predicted:
        """Return which rules predict which relations between two entities.

        Parameters
        ----------
        pairs
            int32[n, 2], subjects and objects.
        column
            int32[relations], the place of each among the candidates, -1 for the rest.
        """
        heads = np.unique(self._heads[column[self._heads] >= 0])
        if not len(heads):
            return _nothing(len(pairs))
        triples = np.empty((len(pairs), len(heads), 3), dtype=np.int32)
        triples[:, :, 0], triples[:, :, 1], triples[:, :, 2] = pairs[:, :1], heads, pairs[:, 1:]
        found = self._engine.derivations(self._rules, triples.reshape(-1, 3))
        pair, head = np.divmod(found.triple, len(heads))
        order = np.lexsort((found.rule, pair))
        return self._predicted(len(pairs), pair[order], found.rule[order], column[heads[head[order]]])

    def _predicted(self, size: int, place: Longs, rule: Longs, columns: Ids) -> Predicted:
        starts = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(place, minlength=size), out=starts[1:])
        return Predicted(starts, np.column_stack([self._turns[rule], self._ranks[rule], columns]))

    def _ends(self, number: int, known: Ids, subject_open: bool, column: Ids) -> tuple[Longs, Ids]:
        """Return the open ends that a rule predicts for known ends: places in `known`, entities."""
        try:
            found = self._engine.projection(self._rules[number])
        except LimitError:
            return self._one_by_one(number, known, subject_open, column)
        near, far = (found.right, found.left) if subject_open else (found.left, found.right)
        if found.product:
            place = np.flatnonzero(np.isin(known, near))
            pairs = np.repeat(place, len(far)), np.tile(far, len(place))
            differ = pairs[1] != known[pairs[0]] if found.unequal else slice(None)
            return pairs[0][differ], pairs[1][differ]
        near, far = self._sorted(number, subject_open, found)
        low, high = np.searchsorted(near, known), np.searchsorted(near, known, side="right")
        sizes = high - low
        place = np.repeat(np.arange(len(known)), sizes)
        return place, far[np.arange(len(place)) + np.repeat(low - (np.cumsum(sizes) - sizes), sizes)]

    def _sorted(self, number: int, subject_open: bool, found: Projection) -> tuple[Ids, Ids]:
        """Return a rule's conclusions sorted by the known end, and keep them if they are not too many."""
        if not subject_open:
            return found.left, found.right
        kept = self._conclusions.get((number, subject_open))
        if kept is None:
            order = np.argsort(found.right, kind="stable")
            kept = found.right[order], found.left[order]
            if self._kept + len(order) <= KEPT:
                self._kept += len(order)
                self._conclusions[number, subject_open] = kept
        return kept

    def _one_by_one(self, number: int, known: Ids, subject_open: bool, column: Ids) -> tuple[Longs, Ids]:
        """Ask about each candidate, where a rule has more conclusions than can be listed."""
        entities = np.flatnonzero(column >= 0).astype(np.int32)
        places: list[Longs] = [np.empty(0, dtype=np.int64)]
        found: list[Ids] = [np.empty(0, dtype=np.int32)]
        for place, end in enumerate(known.tolist()):
            triples = np.full((len(entities), 3), self._heads[number], dtype=np.int32)
            triples[:, 0], triples[:, 2] = (entities, end) if subject_open else (end, entities)
            derived = self._engine.derives([self._rules[number]], triples)
            found.append(entities[derived])
            places.append(np.full(len(found[-1]), place, dtype=np.int64))
        return np.concatenate(places), np.concatenate(found)


def _nothing(size: int) -> Predicted:
    return Predicted(np.zeros(size + 1, dtype=np.int64), np.empty((0, 3), dtype=np.int64))


def _head_relation(rule: Rule, graph: KnowledgeGraph) -> int:
    constants = [term.name for term in rule.head.terms if isinstance(term, Constant)]
    if any(graph.entities.get(name) is None for name in constants):
        return ABSENT
    return relation_of(rule.head, graph)


# A number: a Python int outside, an int64 inside.
Int64 = npt.NDArray[np.int64]

_NONE = np.int64(NONE)


@kernel
def fires(edges: Edges, rules: RuleLists, rule: Int, subject: Int, object_: Int, distinct: bool) -> bool:
    """Say whether a rule predicts a triple that its head matches."""
    kind = rules.rows[rule, VARIABLES]
    start, end, other = subject, rules.rows[rule, END_CONSTANT], object_
    if kind == BOTH:
        end, other = object_, _NONE
    elif kind == OBJECT:
        start, other = object_, subject
    if distinct and (subject == object_ or start == end):
        return False
    first, second, third = steps_of(rules, rule)
    return path_exists(edges, start, end, other, first, second, third, distinct)


@inlined
def steps_of(rules: RuleLists, rule: Int) -> tuple[Int, Int, Int]:
    """Return the steps of a rule's body, NONE behind the last."""
    return rules.rows[rule, FIRST], rules.rows[rule, SECOND], rules.rows[rule, THIRD]


@kernel
def with_constant(rules: RuleLists, kind: Int, relation: Int, constant: Int, entities: Int) -> tuple[Int, Int]:
    """Return the bounds of the list of rules with a certain constant in the head."""
    relations = rules.by_head.shape[1] - 1
    key = ((kind - 1) * relations + relation) * entities + constant
    low, high = 0, len(rules.keys)
    while low < high:
        middle = (low + high) >> 1
        if rules.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < len(rules.keys) and rules.keys[low] == key:
        return rules.by_key[low], rules.by_key[low + 1]
    return np.int64(0), np.int64(0)


@kernel
def that_begin(edges: Edges, rules: RuleLists, low: Int, high: Int, entity: Int, chosen: Int64, size: Int) -> Int:
    """Choose from a list the rules that can take their first step from an entity."""
    group, last = edges.groups[entity], edges.groups[entity + 1]
    for place in range(low, high):
        step = rules.entries[place, STEP]
        if step != NONE:
            while group < last and edges.group[group, 0] < step:
                group += 1
            if group == last:
                break
            if edges.group[group, 0] > step:
                continue
            if rules.entries[place, SINGLE]:
                end, behind = rules.entries[place, END], edges.group[group + 1, 1]
                found = lower_bound(edges.ends, edges.group[group, 1], behind, end)
                if found == behind or edges.ends[found] != end:
                    continue
        chosen[size] = rules.entries[place, NUMBER]
        size += 1
    return size


@kernel
def that_join(edges: Edges, rules: RuleLists, low: Int, high: Int, s: Int, o: Int, chosen: Int64, size: Int) -> Int:
    """Choose from a list of cyclic rules those that can begin at s and end at o."""
    group, last = edges.groups[s], edges.groups[s + 1]
    to, to_last = edges.groups[o], edges.groups[o + 1]
    before = NONE
    for place in range(low, high):
        step, back = rules.entries[place, STEP], rules.entries[place, END]
        if step != before:
            before = step
            to = edges.groups[o]
        while group < last and edges.group[group, 0] < step:
            group += 1
        if group == last:
            break
        while to < to_last and edges.group[to, 0] < back:
            to += 1
        if edges.group[group, 0] == step and to < to_last and edges.group[to, 0] == back:
            chosen[size] = rules.entries[place, NUMBER]
            size += 1
    return size


@inlined
def earlier(others: Predicted, place: Int, end: Int, rules: RuleLists, rule: Int) -> bool:
    """Say whether it is a rule of another shape's turn before a path rule's; NONE if none is left."""
    return bool(place < end and (rule == NONE or others.found[place, 0] < rules.rows[rule, TURN]))


@kernel
def sort(numbers: Int64, size: Int) -> None:
    """Sort the first numbers, usually a few dozen: Shell's way, which is quick to compile, too."""
    gap: Int = np.int64(1)
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            number, j = numbers[i], i
            while j >= gap and numbers[j - gap] > number:
                numbers[j] = numbers[j - gap]
                j -= gap
            numbers[j] = number
        gap //= 3


@kernel
def that_lead(edges: Edges, bodies: Bodies, s: Int, o: Int, distinct: bool, chosen: Int64) -> Int:
    """Choose the cyclic rules whose body leads from s to o, of whatever head; return how many."""
    size = np.int64(0)
    to_end = edges.groups[o + 1]
    for group in range(edges.groups[s], edges.groups[s + 1]):
        first = edges.group[group, 0]
        low, high = edges.group[group, 1], edges.group[group + 1, 1]
        to = edges.groups[o]
        for place in range(bodies.starts[first], bodies.starts[first + 1]):
            back = bodies.bodies[place, 0]
            while to < to_end and edges.group[to, 0] < back:
                to += 1
            if to == to_end:
                break
            if edges.group[to, 0] != back:
                continue
            second, third = bodies.bodies[place, 1], bodies.bodies[place, 2]
            if second == NONE:
                holds = path_exists(edges, s, o, _NONE, first, second, third, distinct)
            else:
                to_low, to_high = edges.group[to, 1], edges.group[to + 1, 1]
                holds = joined(edges, low, high, to_low, to_high, s, o, _NONE, second, third, distinct)
            if holds:
                for number in range(bodies.rule_starts[place], bodies.rule_starts[place + 1]):
                    chosen[size] = bodies.rules[number]
                    size += 1
    return size


# A number: a Python int outside, an int64 inside.
Int32 = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

# A single triple's place on the board.
_ONLY = np.int64(0)


# -- triples ---------------------------------------------------------------------------------------


@kernel
def score_triples(
    edges: Edges,
    rules: RuleLists,
    board: Board,
    triples: Int32,
    others: Predicted,
    distinct: bool,
    scores: Floats,
    chosen: Int64,
    fired: Int64,
) -> Int:
    """Score triples; with room in `fired`, write there the turns of all rules that predict the only one.

    Parameters
    ----------
    edges, rules
        The graph and the rules.
    board
        For one candidate.
    triples
        int32[n, 3].
    others
        What rules of other shapes predict.
    distinct
        Whether a rule's variables stand for different entities.
    scores
        float64[n] of zeros.
    chosen
        int64[m], room for all rules.
    fired
        int64[f], empty for many triples.

    Returns
    -------
    int
        How many turns were written.
    """
    entities = len(edges.groups) - 1
    written = 0
    for i in range(len(triples)):
        s, r, o = np.int64(triples[i, 0]), np.int64(triples[i, 1]), np.int64(triples[i, 2])
        size = np.int64(0)
        if not (distinct and s == o):
            low, high = rules.by_head[FORWARD, r], rules.by_head[FORWARD, r + 1]
            size = that_join(edges, rules, low, high, s, o, chosen, size)
            low, high = with_constant(rules, np.int64(SUBJECT), r, o, entities)
            size = that_begin(edges, rules, low, high, s, chosen, size)
            low, high = with_constant(rules, np.int64(OBJECT), r, s, entities)
            size = that_begin(edges, rules, low, high, o, chosen, size)
        sort(chosen, size)
        a, b, b_end = 0, others.starts[i], others.starts[i + 1]
        count = np.int64(0)
        while len(fired) > 0 or not no_more(board, _ONLY):
            rule = chosen[a] if a < size else NONE
            if earlier(others, b, b_end, rules, rule):
                turn, rank, predicts = others.found[b, 0], others.found[b, 1], True
                b += 1
            elif rule == NONE:
                break
            else:
                turn, rank = rules.rows[rule, TURN], rules.rows[rule, RANK]
                predicts = fires(edges, rules, rule, s, o, distinct)
                a += 1
            if predicts:
                count = push(board, count, _ONLY, rank)
                if written < len(fired):
                    fired[written] = turn
                    written += 1
        clear(board, count, scores[i : i + 1])
    return written


# -- queries ---------------------------------------------------------------------------------------


@kernel
def _ends(
    edges: Edges, rules: RuleLists, rule: Int, known: Int, subject_open: bool, distinct: bool, scratch: Int32
) -> Int:
    """Find the entities that a rule predicts for the open end; return how many."""
    first, second, third = steps_of(rules, rule)
    start, other = known, _NONE
    turned = subject_open
    if rules.rows[rule, VARIABLES] != BOTH:
        start, other = rules.rows[rule, END_CONSTANT], known
        if start == NONE:
            return bearers(edges, other, first, second, third, distinct, scratch)
        turned = True
    if turned:
        if second == NONE:
            first = first ^ 1
        elif third == NONE:
            first, second = second ^ 1, first ^ 1
        else:
            first, second, third = third ^ 1, second ^ 1, first ^ 1
    return path_ends(edges, start, other, first, second, third, distinct, scratch)


@kernel
def answer_ends(
    edges: Edges,
    rules: RuleLists,
    board: Board,
    queries: Int32,
    subject_open: bool,
    column: Int32,
    others: Predicted,
    distinct: bool,
    scores: Floats,
    scratch: Int32,
    chosen: Int64,
) -> None:
    """Score all candidates for one end of a triple.

    Parameters
    ----------
    edges, rules, others, distinct
        As for `score_triples`.
    board
        For all candidates.
    queries
        int32[n, 2], relations and known ends.
    subject_open
        Whether the subjects are asked for.
    column
        int32[entities], the place of each entity among the candidates, NONE for the rest.
    scores
        float64[n, c] of zeros.
    scratch
        See `new_scratch`.
    chosen
        As for `score_triples`.
    """
    entities = len(edges.groups) - 1
    # A rule with its variable at the known end predicts one candidate, its constant. One with a constant at
    # the known end predicts all that its body yields, as a cyclic one does.
    kind, far, way = (OBJECT, SUBJECT, BACKWARD) if subject_open else (SUBJECT, OBJECT, FORWARD)
    for i in range(len(queries)):
        r, known = np.int64(queries[i, 0]), np.int64(queries[i, 1])
        size = np.int64(0)
        for near in (way, kind):
            low, high = rules.by_head[near, r], rules.by_head[near, r + 1]
            size = that_begin(edges, rules, low, high, known, chosen, size)
        low, high = with_constant(rules, far, r, known, entities)
        chosen[size : size + high - low] = rules.entries[low:high, NUMBER]
        size += high - low
        sort(chosen, size)
        a, b, b_end = 0, others.starts[i], others.starts[i + 1]
        count = np.int64(0)
        while True:
            rule = chosen[a] if a < size else NONE
            if earlier(others, b, b_end, rules, rule):
                count = push(board, count, others.found[b, 2], others.found[b, 1])
                b += 1
                continue
            if rule == NONE:
                break
            a += 1
            rank = rules.rows[rule, RANK]
            if rules.rows[rule, VARIABLES] == kind:
                constant = rules.rows[rule, HEAD_CONSTANT]
                j = np.int64(column[constant])
                if j == NONE or no_more(board, j):
                    continue
                s, o = (constant, known) if subject_open else (known, constant)
                if fires(edges, rules, rule, s, o, distinct):
                    count = push(board, count, j, rank)
            elif rules.rows[rule, FIRST] == NONE:
                for entity in range(entities):
                    j = np.int64(column[entity])
                    if j != NONE and not (distinct and entity == known):
                        count = push(board, count, j, rank)
            else:
                found = _ends(edges, rules, rule, known, subject_open, distinct, scratch)
                for number in range(found):
                    j = np.int64(column[scratch[5, number]])
                    if j != NONE:
                        count = push(board, count, j, rank)
        clear(board, count, scores[i])


@kernel
def answer_relations(
    edges: Edges,
    rules: RuleLists,
    bodies: Bodies,
    board: Board,
    pairs: Int32,
    column: Int32,
    others: Predicted,
    distinct: bool,
    scores: Floats,
    chosen: Int64,
) -> None:
    """Score all candidates for the relation between two entities.

    Only bodies that begin with a step from the subject and end with one to the object are looked at.

    Parameters
    ----------
    edges, rules, bodies, others, distinct
        As for `score_triples`.
    board
        For all candidates.
    pairs
        int32[n, 2], subjects and objects.
    column
        int32[relations], the place of each among the candidates, NONE for the rest.
    scores
        float64[n, c] of zeros.
    chosen
        As for `score_triples`.
    """
    entities = len(edges.groups) - 1
    for i in range(len(pairs)):
        s, o = np.int64(pairs[i, 0]), np.int64(pairs[i, 1])
        size = np.int64(0)
        if not (distinct and s == o):
            size = that_lead(edges, bodies, s, o, distinct, chosen)
            for kind, far, near in ((SUBJECT, o, s), (OBJECT, s, o)):
                key = (kind - 1) * entities + far
                low, high = rules.by_constant[key], rules.by_constant[key + 1]
                size = that_begin(edges, rules, low, high, near, chosen, size)
        sort(chosen, size)
        a, b, b_end = 0, others.starts[i], others.starts[i + 1]
        count = np.int64(0)
        while True:
            rule = chosen[a] if a < size else NONE
            if earlier(others, b, b_end, rules, rule):
                count = push(board, count, others.found[b, 2], others.found[b, 1])
                b += 1
                continue
            if rule == NONE:
                break
            a += 1
            j = np.int64(column[rules.rows[rule, HEAD]])
            if j == NONE or no_more(board, j):
                continue
            if rules.rows[rule, VARIABLES] == BOTH or fires(edges, rules, rule, s, o, distinct):
                count = push(board, count, j, rules.rows[rule, RANK])
        clear(board, count, scores[i])
