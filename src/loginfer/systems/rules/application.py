"""Rules applied: compiled, to triples and to queries with one position open.

Each score meets the rules that predict it best first: rules that can fire at all are chosen and sorted, and
those of other shapes, which an engine has applied, are met in between. So one pass with a little memory for each
triple is enough to aggregate the confidences:

    maximum    the best confidence; ties are broken by the next best rule, then the one after it, …
    noisy-or   1 - ∏ (1 - confidence) of the five best rules: further ones mostly repeat their evidence
    sum        the best confidence, and 10⁻⁴ for each further rule (RuleN)

`maximum` uses that the floats between two neighbouring confidences are good for nothing else. Let there be
`gap` of them between the best rule's confidence and the next larger one of any rule. The second best rule,
whose confidence is the k-th smallest of all and at most that of the best, the K-th, picks the k-th of K + 1
equal parts of that gap (the 0-th is for triples without a second rule), the third best rule picks a part of
that part, and so on until a part is smaller than one float. So scores are ordered as the sequences of
confidences are, lexicographically, as far as they go; equal scores mean equal sequences up to there; and no
score reaches the confidence of the next better rule. With the tens of thousands of different confidences of
a large rule set this is three to four rules deep; with a few dozen of them about ten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from loginfer.errors import UnknownNameError
from loginfer.kernels import inlined, kernel, lower_bound
from loginfer.kg.graph import run_starts
from loginfer.systems.rules.mined import BOTH, NONE, OBJECT, SUBJECT, RuleTable
from loginfer.systems.rules.paths import Edges, Ids, Int, Longs, joined, path_ends, path_exists, path_starts

Floats = npt.NDArray[np.float64]

Aggregation = Literal["maximum", "noisy-or", "sum"]
AGGREGATIONS: tuple[Aggregation, ...] = get_args(Aggregation)
MAXIMUM, NOISY_OR, SUM = 0, 1, 2

# The rules that `noisy-or` counts.
FEW = 5

# How far, relatively, scores may exceed the largest confidence of all.
TOP = 2.0**-10


@dataclass(frozen=True)
class ConfidenceLevels:
    """The different confidences of a set of rules, and what `maximum` can do between them.

    Parameters
    ----------
    code
        MAXIMUM, NOISY_OR or SUM.
    values
        float64[d], the different confidences above 0, ascending.
    gaps
        int64[d], floats from each to the next.
    """

    code: int
    values: Floats
    gaps: Longs

    @classmethod
    def of(cls, confidence: Floats, aggregation: str) -> tuple[ConfidenceLevels, Ids]:
        """Return the levels of rules, and int32[m]: the rank of each one's confidence, -1 for a worthless one.

        A confidence that is not above 0 (NaN is not) is worthless: such a rule predicts nothing.
        """
        if aggregation not in AGGREGATIONS:
            raise UnknownNameError("aggregation", aggregation, AGGREGATIONS)
        worthy = confidence > 0
        finite = np.minimum(confidence[worthy], np.finfo(np.float64).max / 2)
        values, value_ranks = np.unique(finite, return_inverse=True)
        ranks = np.full(len(confidence), -1, dtype=np.int32)
        ranks[worthy] = value_ranks.ravel()
        # The floats above 0 are in the order of their bits as numbers, without gaps.
        above = np.append(values[1:], values[-1:] * (1 + TOP))
        gaps = above.view(np.int64) - values.view(np.int64)
        return cls(AGGREGATIONS.index(aggregation), values, gaps), ranks


# -- scores while rules are applied, best first ------------------------------------------------------

# Columns of `RunningScores.state`.
GAP, LAST, TOUCHED = range(3)
# What RuleN adds for each further rule.
_FURTHER = 1e-4


class RunningScores(NamedTuple):
    """The scores of some candidates.

    Parameters
    ----------
    code
        int64[1], the aggregation.
    values, gaps
        float64[d], int64[d]: the different confidences, and the floats from each to the next.
    scores, bits
        float64[c], and the same memory as int64[c].
    state
        int64[c, 3]. GAP: -1 before the first rule; for `maximum` the floats that are left to tell scores
        apart, for the others the further rules that count. LAST: the rank of the last rule. TOUCHED, apart
        from these: the candidates with rules, in the order in which they got the first.
    """

    code: Longs
    values: Floats
    gaps: Longs
    scores: Floats
    bits: Longs
    state: Longs


def running_scores(levels: ConfidenceLevels, candidates: int) -> RunningScores:
    """Return scores without any rules."""
    code, scores = np.array([levels.code], dtype=np.int64), np.zeros(candidates)
    state = np.full((candidates, 3), -1, dtype=np.int64)
    return RunningScores(code, levels.values, levels.gaps, scores, scores.view(np.int64), state)


@inlined
def add_rule(running: RunningScores, count: Int, j: Int, rank: Int) -> Int:
    """Add a rule to the j-th score; `count` candidates are touched before, the result says how many after."""
    code = running.code[0]
    if running.state[j, GAP] < 0:
        running.state[count, TOUCHED] = j
        running.state[j, LAST] = rank
        value = float(running.values[rank])
        if code == NOISY_OR:
            running.scores[j] = 1.0 - min(value, 1.0)
            running.state[j, GAP] = 0
        else:
            running.scores[j] = value
            running.state[j, GAP] = running.gaps[rank] if code == MAXIMUM else 0
        return count + 1
    if code == MAXIMUM:
        # Only while floats are left in the gap: without any the division would be in vain.
        if running.state[j, GAP] > running.state[j, LAST] + 1:
            part = running.state[j, GAP] // (running.state[j, LAST] + 2)
            running.bits[j] += part * (rank + 1)
            running.state[j, GAP] = part
            running.state[j, LAST] = rank
    elif code == NOISY_OR:
        if running.state[j, GAP] < FEW - 1:
            running.scores[j] *= 1.0 - min(float(running.values[rank]), 1.0)
            running.state[j, GAP] += 1
    else:
        running.state[j, GAP] += 1
    return count


@inlined
def is_settled(running: RunningScores, j: Int) -> bool:
    """Say whether further rules make no difference to the j-th score."""
    code, gap = running.code[0], running.state[j, GAP]
    few = gap == FEW - 1 if code == NOISY_OR else code == MAXIMUM and gap < running.state[j, LAST] + 2
    return bool(gap >= 0 and few)


@inlined
def finish(running: RunningScores, count: Int, scores: Floats) -> None:
    """Write the scores of the touched candidates, and clear them for others."""
    code = running.code[0]
    for number in range(count):
        j = running.state[number, TOUCHED]
        score = running.scores[j]
        if code == NOISY_OR:
            score = 1.0 - score
        elif code != MAXIMUM:
            score += _FURTHER * running.state[j, GAP]
        scores[j] = score
        running.state[j, GAP] = -1


# -- path rules, sorted into lists -------------------------------------------------------------------

# The columns of a rule, and those of its entry in a list.
ORDER, RANK, HEAD, VARIABLES, HEAD_CONSTANT, END_CONSTANT, FIRST, SECOND, THIRD = range(9)
NUMBER, STEP, END, SINGLE = range(4)

# Lists of rules by head: besides SUBJECT and OBJECT, cyclic rules from either end.
FORWARD, BACKWARD = 0, 3

_NONE = np.int64(NONE)


class RuleLists(NamedTuple):
    """Path rules with worth, numbered best first, and lists of those that matter for a triple or query.

    A list is sorted by the step that a rule takes first from an entity that is known, so that going along
    the list and the steps of that entity side by side finds the few rules which can fire at all.

    Few arrays of several columns: functions that hand a dozen arrays to one another take long to compile.

    Parameters
    ----------
    rows
        int64[m, 9], a rule a row: ORDER (its rank among all rules, best first, those of other shapes included;
        ascending), RANK (of its confidence), and HEAD to THIRD as in a `RuleTable`.
    entries
        int64[l, 4], the lists one after the other. NUMBER of the rule; its first STEP, NONE for an empty
        body; END, the end constant or, for a cyclic rule, the step that it takes from its other end; SINGLE,
        whether that first step must lead to the end constant, as in an acyclic rule of length 1.
    by_head
        int64[4, relations + 1], where the lists for a relation in the head begin: FORWARD and BACKWARD for
        cyclic rules, from the subject or the object on, SUBJECT and OBJECT for those with a variable there.
    keys, by_key
        int64[k], int64[k + 1], where the lists for a constant in the head begin; with the variables - 1, the
        relation and the constant packed in one number.
    by_constant
        int64[2·entities + 1], the same for any relation; those with the variables SUBJECT come first.
    """

    rows: Longs
    entries: Longs
    by_head: Longs
    keys: Longs
    by_key: Longs
    by_constant: Longs


def rule_lists(paths: RuleTable, order: Longs, rank: Ids, relations: int, entities: int) -> RuleLists:
    """Sort path rules into lists.

    Parameters
    ----------
    paths
        The rules.
    order, rank
        int64[m], int32[m]: for each its rank among all rules and the rank of its confidence, -1 for rules
        to leave out.
    relations, entities
        Sizes of the vocabularies.
    """
    used = np.flatnonzero(rank >= 0)
    used = used[np.argsort(order[used])]
    table = paths.take(used)
    back = _back(table.body)
    head, constant, end, first = (
        column.astype(np.int64) for column in (table.head, table.head_constant, table.end_constant, table.body[:, 0])
    )
    single = (table.variables != BOTH) & (table.end_constant != NONE) & (table.length == 1)
    entries: list[Longs] = []

    def add(rules: Longs, keys: Longs, steps: Longs, ends: Longs) -> tuple[int, Longs]:
        """Add lists of rules by key, then step, then end; return where they begin, and the sorted keys."""
        start = sum(map(len, entries))
        rules = rules[np.lexsort((ends[rules], steps[rules], keys[rules]))]
        entries.append(np.column_stack([rules, steps[rules], ends[rules], single[rules]]).astype(np.int64))
        return start, keys[rules]

    by_head = np.empty((4, relations + 1), dtype=np.int64)
    cyclic_lists = (FORWARD, first, back), (BACKWARD, back, first)
    for kind, steps, ends in (*cyclic_lists, (SUBJECT, first, end), (OBJECT, first, end)):
        rules = np.flatnonzero(table.variables == (BOTH if kind in (FORWARD, BACKWARD) else kind))
        start, keys = add(rules, head, steps, ends)
        by_head[kind] = start + np.searchsorted(keys, np.arange(relations + 1))
    rules = np.flatnonzero(table.variables != BOTH)
    side = table.variables.astype(np.int64) - 1
    start, keys = add(rules, (side * relations + head) * entities + constant, first, end)
    different, starts = np.unique(keys, return_index=True)
    by_key = start + np.append(starts, len(rules))
    start, keys = add(rules, side * entities + constant, first, end)
    by_constant = start + np.searchsorted(keys, np.arange(2 * entities + 1))
    rows = np.column_stack([order[used], rank[used], head, table.variables, constant, end, table.body]).astype(np.int64)
    return RuleLists(rows, np.concatenate(entries), by_head, different, by_key, by_constant)


def _back(body: Ids | Longs) -> Longs:
    """Return int64[m]: the last step of each body, taken back; NONE for an empty body."""
    length = np.count_nonzero(body != NONE, axis=1)
    last = body[np.arange(len(body)), np.maximum(length - 1, 0)]
    return np.where(length > 0, last ^ 1, NONE).astype(np.int64)


class CyclicBodies(NamedTuple):
    """The different bodies of cyclic rules, for when the head's relation is asked for.

    Parameters
    ----------
    bodies
        int64[b, 3], sorted by first step: the last step taken back, then the second and third step.
    starts
        int64[2·relations + 1], where the bodies with a certain first step begin.
    rules, rule_starts
        int64[m], int64[b + 1]: the rules with each body, by their numbers.
    """

    bodies: Longs
    starts: Longs
    rules: Longs
    rule_starts: Longs


def cyclic_bodies(rules: RuleLists, relations: int) -> CyclicBodies:
    """Sort cyclic rules by their bodies."""
    cyclic = np.flatnonzero(rules.rows[:, VARIABLES] == BOTH)
    body = rules.rows[cyclic, FIRST:]
    keys = np.column_stack([body[:, 0], _back(body), body[:, 1:]])
    order = np.lexsort(keys.T[::-1])
    keys = keys[order]
    first = run_starts(*keys.T)
    different = keys[first]
    return CyclicBodies(
        np.ascontiguousarray(different[:, 1:]),
        np.searchsorted(different[:, 0], np.arange(2 * relations + 1)).astype(np.int64),
        cyclic[order],
        np.append(np.flatnonzero(first), len(keys)).astype(np.int64),
    )


# -- which rules can predict a triple, or answer a query ---------------------------------------------
# To choose from a list of rules, it and the steps of an entity are gone along side by side: both are sorted by
# directed relation.


class EnginePredictions(NamedTuple):
    """What rules predict, sorted by triple or query, and best rule first.

    Parameters
    ----------
    starts
        int64[n + 1], where the predictions of each triple or query begin.
    predictions
        int64[m, 3], the turn of a rule, the rank of its confidence and, for queries, which candidate.
    """

    starts: Longs
    predictions: Longs


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
    return path_exists(edges, start, end, other, first, second, third, distinct, _NONE)


@inlined
def steps_of(rules: RuleLists, rule: Int) -> tuple[Int, Int, Int]:
    """Return the steps of a rule's body, NONE behind the last."""
    return rules.rows[rule, FIRST], rules.rows[rule, SECOND], rules.rows[rule, THIRD]


@kernel
def rules_with_constant(rules: RuleLists, kind: Int, relation: Int, constant: Int, entities: Int) -> tuple[Int, Int]:
    """Return the bounds of the list of rules with a certain constant in the head."""
    relations = rules.by_head.shape[1] - 1
    key = ((kind - 1) * relations + relation) * entities + constant
    position = lower_bound(rules.keys, np.int64(0), np.int64(len(rules.keys)), key)
    if position < len(rules.keys) and rules.keys[position] == key:
        return rules.by_key[position], rules.by_key[position + 1]
    return np.int64(0), np.int64(0)


@kernel
def choose_beginning(edges: Edges, rules: RuleLists, low: Int, high: Int, entity: Int, chosen: Longs, size: Int) -> Int:
    """Choose from a list the rules that can take their first step from an entity."""
    group, last = edges.groups[entity], edges.groups[entity + 1]
    for entry in range(low, high):
        step = rules.entries[entry, STEP]
        if step != NONE:
            while group < last and edges.group_step[group] < step:
                group += 1
            if group == last:
                break
            if edges.group_step[group] > step:
                continue
            if rules.entries[entry, SINGLE]:
                end, behind = rules.entries[entry, END], edges.group_start[group + 1]
                position = lower_bound(edges.ends, edges.group_start[group], behind, end)
                if position == behind or edges.ends[position] != end:
                    continue
        chosen[size] = rules.entries[entry, NUMBER]
        size += 1
    return size


@kernel
def choose_joining(
    edges: Edges, rules: RuleLists, low: Int, high: Int, s: Int, o: Int, chosen: Longs, size: Int
) -> Int:
    """Choose from a list of cyclic rules those that can begin at s and end at o."""
    group, last = edges.groups[s], edges.groups[s + 1]
    to, to_last = edges.groups[o], edges.groups[o + 1]
    before = NONE
    for entry in range(low, high):
        step, back = rules.entries[entry, STEP], rules.entries[entry, END]
        if step != before:
            before = step
            to = edges.groups[o]
        while group < last and edges.group_step[group] < step:
            group += 1
        if group == last:
            break
        while to < to_last and edges.group_step[to] < back:
            to += 1
        if edges.group_step[group] == step and to < to_last and edges.group_step[to] == back:
            chosen[size] = rules.entries[entry, NUMBER]
            size += 1
    return size


@inlined
def other_comes_first(others: EnginePredictions, row: Int, end: Int, rules: RuleLists, rule: Int) -> bool:
    """Say whether a rule of another shape comes before a path rule, NONE if none is left."""
    return bool(row < end and (rule == NONE or others.predictions[row, 0] < rules.rows[rule, ORDER]))


@kernel
def sort_first(numbers: Longs, size: Int) -> None:
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
def choose_leading(edges: Edges, bodies: CyclicBodies, s: Int, o: Int, distinct: bool, chosen: Longs) -> Int:
    """Choose the cyclic rules whose body leads from s to o, of whatever head; return how many."""
    size = np.int64(0)
    to_end = edges.groups[o + 1]
    for group in range(edges.groups[s], edges.groups[s + 1]):
        first = edges.group_step[group]
        low, high = edges.group_start[group], edges.group_start[group + 1]
        to = edges.groups[o]
        for body in range(bodies.starts[first], bodies.starts[first + 1]):
            back = bodies.bodies[body, 0]
            while to < to_end and edges.group_step[to] < back:
                to += 1
            if to == to_end:
                break
            if edges.group_step[to] != back:
                continue
            second, third = bodies.bodies[body, 1], bodies.bodies[body, 2]
            if second == NONE:
                holds = path_exists(edges, s, o, _NONE, first, second, third, distinct, _NONE)
            else:
                to_low, to_high = edges.group_start[to], edges.group_start[to + 1]
                holds = joined(edges, low, high, to_low, to_high, s, o, _NONE, first, second, third, distinct, _NONE)
            if holds:
                for number in range(bodies.rule_starts[body], bodies.rule_starts[body + 1]):
                    chosen[size] = bodies.rules[number]
                    size += 1
    return size


# A single triple's index among the scores.
_ONLY = np.int64(0)


# -- triples ---------------------------------------------------------------------------------------


@kernel
def score_triples(
    edges: Edges,
    rules: RuleLists,
    running: RunningScores,
    triples: Ids,
    others: EnginePredictions,
    distinct: bool,
    scores: Floats,
    chosen: Longs,
    fired: Longs,
) -> Int:
    """Score triples; if `fired` is not empty, write the turns of all rules that predict the only one there.

    Parameters
    ----------
    edges, rules
        The graph and the rules.
    running
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
        int64[m], scratch for all rules.
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
            size = choose_joining(edges, rules, low, high, s, o, chosen, size)
            low, high = rules_with_constant(rules, np.int64(SUBJECT), r, o, entities)
            size = choose_beginning(edges, rules, low, high, s, chosen, size)
            low, high = rules_with_constant(rules, np.int64(OBJECT), r, s, entities)
            size = choose_beginning(edges, rules, low, high, o, chosen, size)
        sort_first(chosen, size)
        a, b, b_end = 0, others.starts[i], others.starts[i + 1]
        count = np.int64(0)
        while len(fired) > 0 or not is_settled(running, _ONLY):
            rule = chosen[a] if a < size else NONE
            if other_comes_first(others, b, b_end, rules, rule):
                turn, rank, predicts = others.predictions[b, 0], others.predictions[b, 1], True
                b += 1
            elif rule == NONE:
                break
            else:
                turn, rank = rules.rows[rule, ORDER], rules.rows[rule, RANK]
                predicts = fires(edges, rules, rule, s, o, distinct)
                a += 1
            if predicts:
                count = add_rule(running, count, _ONLY, rank)
                if written < len(fired):
                    fired[written] = turn
                    written += 1
        finish(running, count, scores[i : i + 1])
    return written


# -- queries ---------------------------------------------------------------------------------------


@kernel
def _ends(
    edges: Edges, rules: RuleLists, rule: Int, known_end: Int, subject_open: bool, distinct: bool, scratch: Ids
) -> Int:
    """Find the entities that a rule predicts for the open end; return how many."""
    first, second, third = steps_of(rules, rule)
    start, other = known_end, _NONE
    turned = subject_open
    if rules.rows[rule, VARIABLES] != BOTH:
        start, other = rules.rows[rule, END_CONSTANT], known_end
        if start == NONE:
            return path_starts(edges, other, first, second, third, distinct, scratch)
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
    running: RunningScores,
    queries: Ids,
    subject_open: bool,
    column: Ids,
    others: EnginePredictions,
    distinct: bool,
    scores: Floats,
    scratch: Ids,
    chosen: Longs,
) -> None:
    """Score all candidates for one end of a triple.

    Parameters
    ----------
    edges, rules, others, distinct
        As for `score_triples`.
    running
        For all candidates.
    queries
        int32[n, 2], relations and known ends.
    subject_open
        Whether the subjects are asked for.
    column
        int32[entities], the index of each entity among the candidates, NONE for the rest.
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
        r, known_end = np.int64(queries[i, 0]), np.int64(queries[i, 1])
        size = np.int64(0)
        for near in (way, kind):
            low, high = rules.by_head[near, r], rules.by_head[near, r + 1]
            size = choose_beginning(edges, rules, low, high, known_end, chosen, size)
        low, high = rules_with_constant(rules, far, r, known_end, entities)
        for entry in range(low, high):
            chosen[size] = rules.entries[entry, NUMBER]
            size += 1
        sort_first(chosen, size)
        a, b, b_end = 0, others.starts[i], others.starts[i + 1]
        count = np.int64(0)
        while True:
            rule = chosen[a] if a < size else NONE
            if other_comes_first(others, b, b_end, rules, rule):
                count = add_rule(running, count, others.predictions[b, 2], others.predictions[b, 1])
                b += 1
                continue
            if rule == NONE:
                break
            a += 1
            rank = rules.rows[rule, RANK]
            if rules.rows[rule, VARIABLES] == kind:
                constant = rules.rows[rule, HEAD_CONSTANT]
                j = np.int64(column[constant])
                if j == NONE or is_settled(running, j):
                    continue
                s, o = (constant, known_end) if subject_open else (known_end, constant)
                if fires(edges, rules, rule, s, o, distinct):
                    count = add_rule(running, count, j, rank)
            elif rules.rows[rule, FIRST] == NONE:
                for entity in range(entities):
                    j = np.int64(column[entity])
                    if j != NONE and not (distinct and entity == known_end):
                        count = add_rule(running, count, j, rank)
            else:
                ends = _ends(edges, rules, rule, known_end, subject_open, distinct, scratch)
                for number in range(ends):
                    j = np.int64(column[scratch[5, number]])
                    if j != NONE:
                        count = add_rule(running, count, j, rank)
        finish(running, count, scores[i])


@kernel
def answer_relations(
    edges: Edges,
    rules: RuleLists,
    bodies: CyclicBodies,
    running: RunningScores,
    pairs: Ids,
    column: Ids,
    others: EnginePredictions,
    distinct: bool,
    scores: Floats,
    chosen: Longs,
) -> None:
    """Score all candidates for the relation between two entities.

    Only bodies that begin with a step from the subject and end with one to the object are looked at.

    Parameters
    ----------
    edges, rules, bodies, others, distinct
        As for `score_triples`.
    running
        For all candidates.
    pairs
        int32[n, 2], subjects and objects.
    column
        int32[relations], the index of each among the candidates, NONE for the rest.
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
            size = choose_leading(edges, bodies, s, o, distinct, chosen)
            for kind, far, near in ((SUBJECT, o, s), (OBJECT, s, o)):
                key = (kind - 1) * entities + far
                low, high = rules.by_constant[key], rules.by_constant[key + 1]
                size = choose_beginning(edges, rules, low, high, near, chosen, size)
        sort_first(chosen, size)
        a, b, b_end = 0, others.starts[i], others.starts[i + 1]
        count = np.int64(0)
        while True:
            rule = chosen[a] if a < size else NONE
            if other_comes_first(others, b, b_end, rules, rule):
                count = add_rule(running, count, others.predictions[b, 2], others.predictions[b, 1])
                b += 1
                continue
            if rule == NONE:
                break
            a += 1
            j = np.int64(column[rules.rows[rule, HEAD]])
            if j == NONE or is_settled(running, j):
                continue
            if rules.rows[rule, VARIABLES] == BOTH or fires(edges, rules, rule, s, o, distinct):
                count = add_rule(running, count, j, rules.rows[rule, RANK])
        finish(running, count, scores[i])
