"""Compiled: path rules applied to triples, and to queries with one position open.

Each score meets the rules that predict it in the order of their confidence: rules that can fire at all are
chosen and sorted by their turns, and those of other shapes are met in between.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.compiled import kernel
from loginfer.systems.rules.application_board import Board, clear, no_more, push
from loginfer.systems.rules.application_choice import (
    earlier,
    fires,
    sort,
    steps_of,
    that_begin,
    that_join,
    that_lead,
    with_constant,
)
from loginfer.systems.rules.application_index import (
    BACKWARD,
    END_CONSTANT,
    FIRST,
    FORWARD,
    HEAD,
    HEAD_CONSTANT,
    NUMBER,
    RANK,
    TURN,
    VARIABLES,
    Bodies,
    Edges,
    RuleLists,
)
from loginfer.systems.rules.application_paths import bearers, path_ends
from loginfer.systems.rules.other_shapes import Predicted
from loginfer.systems.rules.values import BOTH, NONE, OBJECT, SUBJECT

__all__ = ["answer_ends", "answer_relations", "score_triples"]

# A number: a Python int outside, an int64 inside.
Int: TypeAlias = Any
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NONE = np.int64(NONE)
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
