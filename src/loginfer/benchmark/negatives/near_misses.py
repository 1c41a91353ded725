"""Near misses: negatives that would follow if one part of a rule's body were another.

Each split has slots for negatives, each beside a conclusion with the same head (`slots_of`). All splits are drawn
in one pass, so that they are alike. Each slot asks its near miss for the other end of its anchor, which is the
subject or the object of a conclusion. Where that gives nothing, it looks further, in this order: from the other end
of the conclusion, with the rule's other edits, from other subjects or objects of the head's relation, from any
constant that stands in K where the anchor does in the rule's body (both with one edit after the other), with an edit
that drops the atom between the ends; what is left then is filled by position-aware corruption with the same head.

With twins, none of that happens: conclusions were paired with near misses before they were distributed (see `twins`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import SPLITS, NegativeSet, Origins, Split
from loginfer.benchmark.negatives.context import Context, SplitNegatives, assemble, heads_of, origins_from
from loginfer.benchmark.negatives.corruption import Corruptions
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.benchmark.negatives.near_miss_search import NearMissSearch, Requests
from loginfer.benchmark.negatives.spaces import draw, listed, rectangle, union
from loginfer.benchmark.negatives.twins import Twins, near_miss_edits
from loginfer.benchmark.program import complement_share
from loginfer.benchmark.shortcuts import connected_otherwise
from loginfer.engine.binding import relation_of
from loginfer.kg import Triples
from loginfer.kg.graph import Ids, Ints, Mask, grouped, member, merged_keys, run_starts
from loginfer.logic.rule import Rule
from loginfer.logic.subrules import EDITS, Edit, is_own_complement, tears_apart
from loginfer.progress import report_progress
from loginfer.randomness import generator, hash_order, mixed_numbers, salt

# How many candidates a slot looks at first, and then, if none of these was free.
_SHOWN = (24, 512)
# How many other edits a slot tries, at most, and how many other anchors: of the same context, then any. Every
# second anchor comes with another edit, and after the last one with the first again.
_EDITS = 8
_CONTEXTS, _ANYWHERE = 6, 96

# How slots are filled, in the order in which that is tried, and in words.
WAYS = {
    "own": "as asked",
    "moved": "by another edit of the rule",
    "context": "from another anchor of the same relation",
    "any": "from any anchor",
    "shape": "by an edit that changes the shape of the body",
    "torn": "by an edit that disconnects the ends",
    "position": "by position-aware corruption",
}
WAY_NUMBER = {way: number for number, way in enumerate(WAYS)}


def near_misses(context: Context) -> NegativeSet:
    """Draw near misses for all splits; where conclusions were paired with near misses, those are taken."""
    if context.twins is not None:
        return _paired(context, context.twins)
    slots = slots_of(context)
    search = NearMissSearch(context, slots.edits, slots.salt)
    filled = Filled.nothing(len(slots))
    fill(search, slots, filled)
    _fill_by_position(context, slots, filled)
    return _negatives(search, slots, filled)


# -- slots ---------------------------------------------------------------------------------------------

# A head, a rule and an edit (-1 for none), and conclusions, one for each slot.
_Share: TypeAlias = tuple[int, int, int, Triples]


@dataclass(frozen=True, slots=True)
class Slots:
    """Room for negatives, each beside a conclusion of its split with the same head.

    Parameters
    ----------
    split
        int64[n], indices of `SPLITS`.
    head
        int64[n], the predicate of the head (see `heads_of`).
    rule, edit
        int64[n]: the rule of R, and which of its edits; -1 where no near miss is asked for.
    conclusion
        int32[n, 3], a conclusion of that rule; of any rule with that head where `rule` is -1.
    salt
        uint64[n], for all that is random about a slot.
    edits
        For each rule of R its edits.
    """

    split: Ints
    head: Ints
    rule: Ints
    edit: Ints
    conclusion: Triples
    salt: npt.NDArray[np.uint64]
    edits: tuple[tuple[Edit, ...], ...]

    def __len__(self) -> int:
        return len(self.split)


def slots_of(context: Context) -> Slots:
    """Return the slots of all splits.

    Each split has as many slots for a head as it has new conclusions with it, so that the head says nothing. The
    pairs (rule, edit) of the rules with that head, as far as they have conclusions in the split, get equal
    numbers of slots (of edits that keep the rule's skeleton, if it has such), and go through the rule's
    conclusions in a random order, from the beginning again where there are fewer. Near misses of a rule whose
    only near miss is its complement get a part only, see `complement_share`; the other slots are without one. So
    are all those of a head whose rules have no near misses.
    """
    edits = tuple(map(near_miss_edits, context.rules))
    rows = [(number, *share) for number, split in enumerate(SPLITS) for share in _shares(context, split, edits)]
    counts = [len(row[4]) for row in rows]
    split, head, rule, edit = (np.repeat(np.array([row[i] for row in rows], dtype=np.int64), counts) for i in range(4))
    conclusion = np.concatenate([np.empty((0, 3), dtype=np.int32), *(row[4] for row in rows)])
    salts = _rng(context, "salts").integers(0, 2**63, size=len(split), dtype=np.int64).astype(np.uint64)
    return Slots(split, head, rule, edit, conclusion, salts, edits)


def _rng(context: Context, *stage: object) -> np.random.Generator:
    return generator(context.recipe.seed, "negatives", "nm", *stage)


def _shares(context: Context, split: Split, edits: Sequence[Sequence[Edit]]) -> Iterator[_Share]:
    """Yield the shares of one split."""
    # Conclusions that K has from the start are for train only, and would give it other heads than valid and test.
    triples = context.conclusions[split]
    triples = triples[~context.base.contains(triples)]
    heads = heads_of(context.kg, triples)
    derived = context.engine.derivations(context.rules, triples)
    by_rule = {rule: triples[derived.triple[derived.rule == rule]] for rule in np.unique(derived.rule).tolist()}
    by_head: dict[int, list[int]] = {}
    for rule, conclusions in by_rule.items():
        if edits[rule]:
            by_head.setdefault(int(heads_of(context.kg, conclusions[:1])[0]), []).append(rule)
    numbers, sizes = np.unique(heads, return_counts=True)
    for head, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
        rules = by_head.get(head, [])
        near_miss_count = _count_near_misses(context, {rule: by_rule[rule] for rule in rules}, size)
        pairs = [(rule, edit) for rule in rules for edit in _first_edits(edits[rule])]
        if pairs:
            share, rest = divmod(near_miss_count, len(pairs))
            pair_keys = np.array([rule * 64 + edit for rule, edit in pairs], dtype=np.int64)
            order = hash_order(pair_keys, salt(context.recipe.seed, "negatives", "nm", "shares", split, head))
            counts = np.full(len(pairs), share)
            counts[order[:rest]] += 1
            for (rule, edit), count in zip(pairs, counts.tolist(), strict=True):
                if count:
                    yield head, rule, edit, _cycled(context, by_rule[rule], count, split, rule, edit)
        if size > near_miss_count:
            yield head, -1, -1, _cycled(context, triples[heads == head], size - near_miss_count, split, head, "spare")


def _first_edits(edits: Sequence[Edit]) -> list[int]:
    """Return which edits of a rule get slots: those that keep its skeleton, if there are any."""
    keeping = [number for number, edit in enumerate(edits) if edit.kind == "replace"]
    return keeping or list(range(len(edits)))


def _cost(rule: Rule, edit: Edit, edits: Sequence[Edit]) -> int:
    """Return what an edit costs: 0 for nothing, 1 for the shape of the body if others keep it, 2 for tearing it apart.

    Nearly everything follows from a body that is torn apart: such edits would be taken most often, and whether two
    constants are adjacent would say too much.
    """
    if tears_apart(rule, edit):
        return 2
    return int(edit.kind != "replace" and any(other.kind == "replace" for other in edits))


def _count_near_misses(context: Context, conclusions: Mapping[int, Triples], size: int) -> int:
    """Return how many of a head's negatives are to be near misses, given the conclusions of its rules."""
    if not conclusions:
        return 0
    if not all(is_own_complement(context.rules[rule]) for rule in conclusions):
        return size
    connected = [connected_otherwise(context.base, conclusions[rule], context.rules[rule]) for rule in conclusions]
    return min(ceil(size * complement_share(float(np.concatenate(connected).mean()))), size)


def _cycled(context: Context, triples: Triples, count: int, *stage: object) -> Triples:
    """Return `count` of these triples in a random order, again and again where there are fewer."""
    order = hash_order(context.kg.keys.pack(triples), salt(context.recipe.seed, "negatives", "nm", "anchors", *stage))
    return triples[np.resize(order, count)]


# -- filling slots -------------------------------------------------------------------------------------


@dataclass
class Filled:
    """What slots have so far.

    Parameters
    ----------
    key
        int64[n], keys of triples; -1 for none yet.
    rule, edit
        int64[n], the near miss that concludes it; -1 for none.
    way
        int64[n], a number of `WAY_NUMBER`.
    taken
        The keys, sorted.
    """

    key: Ints
    rule: Ints
    edit: Ints
    way: Ints
    taken: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def nothing(cls, slots: int) -> Filled:
        """Return the state before anything was drawn."""
        return cls(*np.full((4, slots), -1, dtype=np.int64))

    def open(self) -> Ints:
        """Return the slots that have nothing."""
        return np.flatnonzero(self.key < 0)

    def put(self, slots: Ints, key: Ints, rule: Ints | int, edit: Ints | int, way: Ints | int) -> None:
        """Fill slots with negatives that no slot has."""
        self.key[slots], self.rule[slots], self.edit[slots], self.way[slots] = key, rule, edit, way
        self.taken = merged_keys(self.taken, np.sort(key))


def fill(search: NearMissSearch, slots: Slots, filled: Filled) -> None:
    """Fill open slots with near misses, one way of looking after the other."""
    context = search.context
    rank = np.empty(len(slots), dtype=np.int64)
    rank[_rng(context, "order").permutation(len(slots))] = np.arange(len(slots))
    ways = SearchWays(search, slots)
    for way, further in ways:
        open_ = filled.open()
        requests = ways.requests(way, further, open_[slots.rule[open_] >= 0])
        if len(requests):
            _fill_requests(search, filled, requests, WAY_NUMBER[way], rank)
        report_progress(context.progress, "drawing near misses", int((filled.key >= 0).sum()), len(slots))


def _fill_requests(search: NearMissSearch, filled: Filled, requests: Requests, way: int, rank: Ints) -> None:
    """Give slots the first of their candidates that is truly negative and free."""
    for most in _SHOWN:
        keys, counts = search.propose(requests, most)
        choice = _choose_columns(keys, search.negative(keys), filled.taken, rank[requests.slot])
        rows = np.flatnonzero(choice >= 0)
        filled.put(requests.slot[rows], keys[rows, choice[rows]], requests.rule[rows], requests.edit[rows], way)
        requests = requests[np.flatnonzero((choice < 0) & (counts > most))]
        if not len(requests):
            break


def _choose_columns(keys: Ints, good: Mask, taken: Ints, rank: Ints) -> Ints:
    """Return int64[n], the column that each row gets, -1 for none: of equal keys the lowest rank gets it."""
    good = good & ~member(taken, keys.ravel()).reshape(keys.shape)
    choice = np.full(len(keys), -1, dtype=np.int64)
    pending = np.flatnonzero(good.any(axis=1))
    while len(pending):
        column = good[pending].argmax(axis=1)
        claims = keys[pending, column]
        order = np.lexsort((rank[pending], claims))
        first = run_starts(claims[order])
        winners = order[first]
        choice[pending[winners]] = column[winners]
        won_keys = np.sort(claims[winners])
        pending = pending[order[~first]]
        good[pending] &= ~member(won_keys, keys[pending].ravel()).reshape(-1, keys.shape[1])
        pending = np.sort(pending[good[pending].any(axis=1)])
    return choice


class SearchWays:
    """Which near misses and anchors slots try, one way after the other."""

    def __init__(self, search: NearMissSearch, slots: Slots) -> None:
        rules = search.context.rules
        self._search, self._slots = search, slots
        self._side = (slots.salt & np.uint64(1)).astype(np.int64)
        self._anchored = np.array([search.anchored(rule) for rule in range(len(rules))], dtype=bool)
        self._edits = np.array([len(edits) for edits in slots.edits], dtype=np.int64)
        # What each edit costs, see `_cost`; more than that beyond a rule's last.
        self._costs = np.full((len(rules), int(self._edits.max(initial=1))), 3, dtype=np.int64)
        for number, (rule, edits) in enumerate(zip(rules, slots.edits, strict=True)):
            self._costs[number, : len(edits)] = [_cost(rule, edit, edits) for edit in edits]
        everything = search.context.everything
        self._heads = heads_of(everything, everything.triples)
        self._pools: dict[tuple[str, int, int], Ids] = {}
        columns = [(ends.columns * 2 + (0, 0))[:2] for ends in search.ends]
        self._columns = np.array(columns, dtype=np.int64).reshape(-1, 2)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Yield the ways in which slots look, in order, with a number that tells them apart."""
        yield from (("own", turned) for turned in (0, 1))
        edit_count = int(self._edits.max(initial=1))
        most = min(edit_count, _EDITS + 1)
        yield from (("moved", 2 * further + turned) for further in range(1, most) for turned in (0, 1))
        yield from (("context", attempt) for attempt in range(_CONTEXTS))
        yield from (("any", attempt) for attempt in range(_ANYWHERE))
        for way in ("shape", "torn"):
            yield from ((way, 2 * further + turned) for further in range(1, edit_count) for turned in (0, 1))

    def requests(self, way: str, further: int, slots: Ints) -> Requests:
        """Return what slots ask for in one of these ways; some ask for nothing."""
        all_slots = self._slots
        rule, edit = all_slots.rule[slots], all_slots.edit[slots]
        side = self._side[slots] ^ (further & 1)
        # Without two ends there is nothing to turn round, and no anchor.
        is_able = self._anchored[rule] | ((further & 1 == 0) & (way not in ("context", "any")))
        if further // 2 and way in ("context", "any"):
            # Its own, and all that cost nothing.
            cycle = np.maximum((self._costs[rule] == 0).sum(axis=1) + (self._costs[rule, edit] > 0), 1)
            edit = self._other_edit(slots, rule, edit, further // 2 % cycle)
        elif further // 2:
            is_able &= further // 2 < self._edits[rule]
            edit = self._other_edit(slots, rule, edit, np.full(len(slots), further // 2))
            is_able &= self._costs[rule, edit] == {"shape": 1, "torn": 2}.get(way, 0)
        slots, rule, edit, side = (column[is_able] for column in (slots, rule, edit, side))
        side = np.where(self._anchored[rule], side, 0)
        columns = self._columns[rule, side]
        anchor = all_slots.conclusion[slots, columns].astype(np.int64)
        if way == "context":
            anchor = self._draw_anchors("head", all_slots.head[slots], columns, slots, further)
        elif way == "any":
            anchor = self._draw_anchors("body", rule, side, slots, 1000 + further)
        return Requests(slots, rule, edit, side, anchor)

    def _other_edit(self, slots: Ints, rule: Ints, edit: Ints, further: Ints) -> Ints:
        """Return an edit for each slot: its own is number 0, others follow by cost, then in a random order."""
        order = np.stack([self._random(slots, 2000 + e) for e in range(self._costs.shape[1])], axis=1)
        order >>= 1
        order += self._costs[rule] << 61
        order[np.arange(len(slots)), edit] = -1
        ordered = np.argsort(order, axis=1, kind="stable")
        return np.asarray(ordered[np.arange(len(slots)), np.minimum(further, order.shape[1] - 1)])

    def _random(self, slots: Ints, stage: int) -> Ints:
        """Return a random number from 0 to 2^62 for each slot."""
        return mixed_numbers(self._slots.salt[slots], stage)

    def _draw_anchors(self, source: str, first: Ints, second: Ints, slots: Ints, stage: int) -> Ints:
        """Return for each slot a random constant of a pool, that of its values in two columns."""
        anchor = np.empty(len(slots), dtype=np.int64)
        draws = self._random(slots, stage)
        for (one, other), rows in grouped(first, second):
            pool = self._pool(source, one, other)
            anchor[rows] = pool[draws[rows] % len(pool)]
        return anchor

    def _pool(self, source: str, one: int, other: int) -> Ids:
        key = (source, one, other)
        if key not in self._pools:
            self._pools[key] = self._of_head(one, other) if source == "head" else self._of_body(one, other)
        return self._pools[key]

    def _of_head(self, head: int, column: int) -> Ids:
        """Return the subjects (or objects) of a head's predicate in P_all."""
        return np.unique(self._search.context.everything.triples[self._heads == head, column])

    def _of_body(self, rule: int, side: int) -> Ids:
        """Return the constants of K at the anchor's position in the atom that joins both ends, or in the first."""
        graph, ends = self._search.context.kg, self._search.ends[rule].free
        atoms = [a for a in self._search.context.rules[rule].atoms if ends[side] in a.terms]
        atom = next((a for a in atoms if {*ends} <= {*a.terms}), atoms[0])
        triples = graph.triples[graph.triples[:, 1] == relation_of(atom, graph)]
        pool = np.unique(triples[:, 2 * atom.terms.index(ends[side])])
        return pool if len(pool) else graph.consts


# -- position-aware negatives with given heads, for slots that no near miss fills ----------------------


def _fill_by_position(context: Context, slots: Slots, filled: Filled) -> None:
    """Give open slots position-aware negatives of the same split, with the same head.

    For train, then valid, then test; but where candidates are so few that valid or test would be left with
    less, the other way round (see `draw_in_turn`).
    """
    open_ = filled.open()
    groups = grouped(slots.split[open_], slots.head[open_])
    rows, keys = _draw_groups(context, groups, filled.taken)
    served = open_[rows]
    if (slots.split[open_] > 0).sum() > (slots.split[served] > 0).sum() and context.recipe.protocol == "sound":
        rows, keys = _draw_groups(context, sorted(groups, key=lambda group: -group[0][0]), filled.taken)
        served = open_[rows]
    filled.put(served, keys, -1, -1, WAY_NUMBER["position"])


def _draw_groups(context: Context, groups: Sequence[tuple[tuple[int, ...], Ints]], taken: Ints) -> tuple[Ints, Ints]:
    """Draw for one split and head after the other; return the rows of those served, and keys."""
    graph_keys = context.kg.keys
    served, keys = [taken[:0]], [taken[:0]]
    for (split, head), rows in groups:
        space = head_corruptions(context, split, head).space
        rng = _rng(context, "spare", SPLITS[split], head)
        taken_triples = listed(graph_keys.unpack(taken), graph_keys)
        new_keys = graph_keys.pack(draw(space, len(rows), rng, context.truth.negative, taken=taken_triples).triples)
        taken = merged_keys(taken, np.sort(new_keys))
        served.append(rows[: len(new_keys)])
        keys.append(new_keys)
    return np.concatenate(served), np.concatenate(keys)


def head_corruptions(context: Context, split: int, head: int) -> Corruptions:
    """Return what replacing subjects, and what replacing objects of conclusions with this head gives."""
    everything, conclusions = context.everything, context.conclusions[SPLITS[split]]
    conclusions = conclusions[heads_of(context.kg, conclusions) == head]
    relation = int(conclusions[0, 1])
    subjects, objects = everything.sides(relation)
    of_object = [] if relation == everything.type_relation else [rectangle(conclusions[:, 0], relation, objects)]
    return Corruptions(rectangle(subjects, relation, conclusions[:, 2]), union(of_object))


# -- the result ----------------------------------------------------------------------------------------


def _negatives(search: NearMissSearch, slots: Slots, filled: Filled) -> NegativeSet:
    """Return what slots have, with where everything came from."""
    by_split: dict[Split, SplitNegatives] = {}
    sizes: dict[Split, int] = {}
    for number, split in enumerate(SPLITS):
        served = np.flatnonzero((slots.split == number) & (filled.key >= 0))
        triples = search.context.kg.keys.unpack(filled.key[served])
        origins = _origins(search, filled.rule[served], filled.edit[served], triples)
        spare = np.flatnonzero(filled.rule[served] < 0)
        for (_, head), members in grouped(slots.split[served[spare]], slots.head[served[spare]]):
            rows = spare[members]
            origins.position[rows] = head_corruptions(search.context, number, head).positions(triples[rows])
        by_split[split] = SplitNegatives(triples, origins)
        sizes[split] = int((slots.split == number).sum())
    negatives = assemble(search.context, "nm", by_split, sizes)
    return replace(negatives, notes=(*negatives.notes, *_notes(search, slots, filled)))


def _origins(search: NearMissSearch, rule: Ints, edit: Ints, triples: Triples) -> Origins:
    """Return where negatives came from: the rules and edits that conclude them, -1 for position-aware ones."""
    # Indexed, since each is to have values of its own.
    origins = origins_from("near-miss", len(triples), rule=rule.astype(np.int32))[np.arange(len(triples))]
    origins.source[rule < 0] = SOURCES.index("position")
    for (number, which), rows in grouped(rule, edit):
        if number < 0:
            continue
        of_rule = search.edits[number][which]
        origins.edit[rows] = EDITS.index(of_rule.kind)
        origins.part[rows] = of_rule.part
        if of_rule.kind == "replace":
            origins.predicate[rows] = search.replaced_by(number, which, triples[rows])
    return origins


def _paired(context: Context, twins: Twins) -> NegativeSet:
    """Return the twins of each split's conclusions."""
    search = NearMissSearch(context, tuple(map(near_miss_edits, context.rules)), np.empty(0, dtype=np.uint64))
    keys = context.kg.keys
    by_split: dict[Split, SplitNegatives] = {}
    for split, positives in context.positives.items():
        has_twin, pairs = twins.rows_of(keys.pack(positives))
        rows = np.flatnonzero(has_twin)
        of_split = twins[pairs[rows]]
        triples = keys.unpack(of_split.twin)
        origins = _origins(search, of_split.rule, of_split.edit, triples)
        origins.twin[:] = rows
        by_split[split] = SplitNegatives(triples, origins)
    return assemble(context, "nm", by_split, {split: len(part.triples) for split, part in by_split.items()})


def _notes(search: NearMissSearch, slots: Slots, filled: Filled) -> Iterator[str]:
    """Yield how slots were filled, and what the budget cost."""
    wants_near_miss = slots.rule >= 0
    total = int(wants_near_miss.sum())
    if total:
        counts = {text: int((wants_near_miss & (filled.way == WAY_NUMBER[way])).sum()) for way, text in WAYS.items()}
        parts = [f"{count / total:.1%} {text}" for text, count in counts.items() if count]
        yield f"of the {total:,} near misses wanted: " + ", ".join(parts)
    if total < len(wants_near_miss):
        complements = bool(search.is_complement(slots.conclusion[~wants_near_miss]).all())
        why = "the near misses of these rules are their complement" if complements else "some rules have none"
        yield f"{len(wants_near_miss) - total:,} negatives are position-aware by design: {why} (see the documentation)"
    if search.spent:
        yield (
            f"{search.spent:,} of {search.searched:,} searches were given up after {search.budget:,} steps: "
            "what they found is not uniform over all candidates"
        )
