"""Nm.

Position-aware negatives with given heads, for slots that no near miss fills.

Near misses: negatives that would follow if one part of a rule's body were another.

All splits are drawn in one pass, but for slots that `first_served` says come first. Each slot asks its near
miss for the other end of its anchor, which is the subject or the object of a conclusion. Where that gives
nothing, it looks further, in this order: from the other end of the conclusion, with the rule's other edits,
from other subjects or objects of the head's relation, from any constant that stands in K where the anchor
does in the rule's body (both with one edit after the other), with an edit that drops the atom between the
ends; what is left then is filled by position-aware corruption with the same head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import POSITIONS, SPLITS, NegativeSet, Origins, Split
from loginfer.benchmark.negatives.context import Context, SplitNegatives, assemble, origins_from
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.benchmark.negatives.near_miss_kernels import ends_of
from loginfer.benchmark.negatives.near_miss_search import Asked, Search, Slots, first_served, heads_of, slots_of
from loginfer.benchmark.negatives.spaces import Space, listed, rectangle, union
from loginfer.benchmark.negatives.spaces import draw as draw_of_sampler
from loginfer.engine.binding import relation_of
from loginfer.kg import Triples
from loginfer.kg.graph import distinct_keys, grouped, member, merged_keys
from loginfer.logic.subrules import EDITS, tears_apart
from loginfer.randomness import generator, mixed_numbers

Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Spare:
    """Negatives for slots.

    Parameters
    ----------
    slot, key
        int64[n]: slots and the keys of their triples.
    """

    slot: Ints
    key: Ints


def draw_spare(context: Context, slots: Slots, open_: Ints, taken: Ints) -> Spare:
    """Draw position-aware negatives for open slots: of the same split, with the same head.

    For train, then valid, then test; but under `sound`, where candidates are so few that valid or test would
    be left with less, the other way round (see `found.draw_in_turn`).

    Parameters
    ----------
    context
        What negatives are made from.
    slots, open_
        The slots, and which of them need something.
    taken
        Sorted keys of negatives that there are already.
    """
    groups = grouped(slots.split[open_].astype(np.int64), slots.head[open_])
    spare = _draw_groups(context, groups, open_, taken)
    short = (slots.split[open_] > 0).sum() > (slots.split[spare.slot] > 0).sum()
    if short and context.recipe.protocol == "sound":
        spare = _draw_groups(context, sorted(groups, key=lambda group: -group[0][0]), open_, taken)
    return spare


def _draw_groups(context: Context, groups: Sequence[tuple[tuple[int, ...], Ints]], open_: Ints, taken: Ints) -> Spare:
    """Draw for the slots of one split and head after the other."""
    keys = context.kg.keys
    slot, key = [open_[:0]], [open_[:0]]
    for (place, head), where in groups:
        rng = generator(context.recipe.seed, "negatives", "nm", "spare", SPLITS[place], head)
        of_subject, of_object = _corruptions(context, place, head)
        space = union([*of_subject, *of_object])
        found = draw_of_sampler(
            space, len(where), rng, context.truth.negative, taken=listed(keys.unpack(taken), keys)
        ).triples
        mine = keys.pack(found)
        taken = merged_keys(taken, np.sort(mine))
        slot.append(open_[where[: len(mine)]])
        key.append(mine)
    return Spare(np.concatenate(slot), np.concatenate(key))


def replaced_positions(context: Context, slots: Slots, where: Ints, triples: Triples) -> Positions:
    """Return int8[n], places in `POSITIONS`: in what the position-aware negatives of slots were replaced.

    Parameters
    ----------
    context
        What negatives are made from.
    slots, where
        The slots, and places of those with position-aware negatives.
    triples
        int32[n, 3], these negatives.
    """
    names = np.array([POSITIONS.index(name) for name in ("", "subject", "object", "either")], dtype=np.int8)
    position = np.zeros(len(where), dtype=np.int8)
    for (place, head), own in grouped(slots.split[where].astype(np.int64), slots.head[where]):
        of_subject, of_object = (union(spaces) for spaces in _corruptions(context, place, head))
        found = triples[own]
        position[own] = names[of_subject.contains(found) + 2 * of_object.contains(found)]
    return position


def shuffled_candidates(context: Context, place: int, head: int, rounds: int) -> Ints:
    """Return the keys of truly negative triples that give the conclusions of a head each other's objects.

    They are position-aware, and subjects and objects are as popular as those of the conclusions.

    Parameters
    ----------
    context
        What negatives are made from.
    place, head
        The split and the head.
    rounds
        How often all objects change places.
    """
    rng = generator(context.recipe.seed, "negatives", "nm", "shuffled", SPLITS[place], head)
    conclusions = context.conclusions[SPLITS[place]]
    own = conclusions[heads_of(context.kg, conclusions) == head]
    found = np.tile(own, (rounds, 1))
    column = 0 if own[0, 1] == context.kg.type_relation else 2
    for turn in range(rounds):
        part = slice(turn * len(own), (turn + 1) * len(own))
        found[part, column] = own[rng.permutation(len(own)), column]
    if column == 0:  # of a type triple only the constant can be replaced, by one of another type
        typed = context.everything.triples[context.everything.triples[:, 1] == own[0, 1], 0]
        found[:, 0] = typed[rng.integers(0, len(typed), size=len(found))]
    keys = distinct_keys(context.kg.keys.pack(found))
    return keys[context.truth.negative(context.kg.keys.unpack(keys))]


def _corruptions(context: Context, place: int, head: int) -> tuple[list[Space], list[Space]]:
    """Return what replacing subjects, and what replacing objects of conclusions with this head gives."""
    everything, conclusions = context.everything, context.conclusions[SPLITS[place]]
    own = conclusions[heads_of(context.kg, conclusions) == head]
    subjects, objects = np.unique(own[:, 0]), np.unique(own[:, 2])
    relation = int(own[0, 1])
    known = everything.sides(relation)
    of_subject = [rectangle(known[0], relation, objects)]
    if relation == everything.type_relation:
        return of_subject, []
    return of_subject, [rectangle(subjects, relation, known[1])]


Mask = npt.NDArray[np.bool_]

# How many candidates a slot is shown at first, and then, as long as none was free.
_SHOWN = (24, 512)
# How many other edits a slot tries, at most, and how many other anchors: of the same context, then any. Every
# second anchor comes with another edit, and after the last one with the first again.
_EDITS = 8
_CONTEXTS, _ANYWHERE = 6, 10

# How slots were filled; the order in which ways are tried.
WAYS = ("own", "moved", "context", "any", "torn", "position")


@dataclass
class Drawn:
    """What slots have so far.

    Parameters
    ----------
    key
        int64[n], keys of triples; -1 for none yet.
    rule, edit
        int64[n], the near miss that concludes it; -1 for none.
    way
        int8[n], a place in `WAYS`.
    """

    key: Ints
    rule: Ints
    edit: Ints
    way: npt.NDArray[np.int8]
    taken: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def nothing(cls, slots: int) -> Drawn:
        """Return the state before anything was drawn."""
        none = np.full(slots, -1, dtype=np.int64)
        return cls(none, none.copy(), none.copy(), np.full(slots, -1, dtype=np.int8))

    def open(self) -> Ints:
        """Return the slots that have nothing."""
        return np.flatnonzero(self.key < 0)


def near_misses(context: Context) -> NegativeSet:
    """Draw near misses for all splits."""
    slots = slots_of(context)
    search = Search(context, slots)
    if context.recipe.match:
        from loginfer.benchmark.negatives.matching import draw_matched

        drawn = draw_matched(search)
    else:
        drawn = Drawn.nothing(len(slots))
    draw(search, drawn)
    return _finished(search, drawn)


def draw(search: Search, drawn: Drawn) -> None:
    """Fill open slots, one way of looking after the other."""
    slots = search.slots
    order = generator(search.context.recipe.seed, "negatives", "nm", "order").permutation(len(slots))
    rank = np.empty(len(slots), dtype=np.int64)
    rank[order] = np.arange(len(slots))
    looking = Looking(search)
    before = first_served(search.context, slots)
    for served in (before, ~before):
        for way, further in looking.ways():
            open_ = drawn.open()
            asked = looking.asked(way, further, open_[(slots.rule[open_] >= 0) & served[open_]])
            if len(asked):
                _fill(search, drawn, asked, WAYS.index(way), rank)
            if search.context.progress:
                search.context.progress("drawing near misses", int((drawn.key >= 0).sum()), len(slots))


def _fill(search: Search, drawn: Drawn, asked: Asked, way: int, rank: Ints) -> None:
    """Give slots the first of their candidates that is truly negative and free."""
    for most in _SHOWN:
        keys, counts = search.propose(asked, most)
        good = search.negative(keys)
        choice = _chosen(keys, good, drawn.taken, rank[asked.slot])
        got = np.flatnonzero(choice >= 0)
        places = asked.slot[got]
        drawn.key[places] = keys[got, choice[got]]
        drawn.rule[places], drawn.edit[places] = asked.rule[got], asked.edit[got]
        drawn.way[places] = way
        drawn.taken = merged_keys(drawn.taken, np.sort(drawn.key[places]))
        asked = asked[np.flatnonzero((choice < 0) & (counts > most))]
        if not len(asked):
            break


def _chosen(keys: Ints, good: Mask, taken: Ints, rank: Ints) -> Ints:
    """Return int64[n], the column that each row gets, -1 for none: of equal keys the lowest rank gets it."""
    good = good & ~member(taken, keys.ravel()).reshape(keys.shape)
    choice = np.full(len(keys), -1, dtype=np.int64)
    pending = np.flatnonzero(good.any(axis=1))
    while len(pending):
        column = good[pending].argmax(axis=1)
        wanted = keys[pending, column]
        order = np.lexsort((rank[pending], wanted))
        first = np.ones(len(order), dtype=bool)
        first[1:] = wanted[order[1:]] != wanted[order[:-1]]
        winners = order[first]
        choice[pending[winners]] = column[winners]
        gone = np.sort(wanted[winners])
        pending = pending[order[~first]]
        good[pending] &= ~member(gone, keys[pending].ravel()).reshape(-1, keys.shape[1])
        pending = np.sort(pending[good[pending].any(axis=1)])
    return choice


# -- where to look ------------------------------------------------------------------------------------


class Looking:
    """Says which near misses and anchors slots try, one after the other."""

    def __init__(self, search: Search) -> None:
        slots = search.slots
        self._search = search
        self._side = (slots.salt & np.uint64(1)).astype(np.int64)
        self._anchored = np.array([search.anchored(rule) for rule in range(len(slots.edits))], dtype=bool)
        self._edits = np.array([len(edits) for edits in slots.edits], dtype=np.int64)
        self._apart = np.zeros((len(slots.edits), int(self._edits.max(initial=1))), dtype=bool)
        for place, rule in enumerate(search.context.rules):
            for number, edit in enumerate(slots.edits[place]):
                self._apart[place, number] = tears_apart(rule, edit)
        everything = search.context.everything
        self._heads = heads_of(everything, everything.triples)
        self._pools: dict[tuple[int, int], npt.NDArray[np.int32]] = {}
        self._of_heads: dict[tuple[int, int], npt.NDArray[np.int32]] = {}
        self._columns = np.array(
            [(ends_of(rule).columns * 2 + (0, 0))[:2] for rule in search.context.rules], dtype=np.int64
        ).reshape(-1, 2)

    def ways(self) -> Iterator[tuple[str, int]]:
        """Yield the ways in which slots look, in order, with a number that tells them apart."""
        yield from (("own", turned) for turned in (0, 1))
        every = int(self._edits.max(initial=1))
        most = min(every, _EDITS + 1)
        yield from (("moved", 2 * further + turned) for further in range(1, most) for turned in (0, 1))
        yield from (("context", attempt) for attempt in range(_CONTEXTS))
        yield from (("any", attempt) for attempt in range(_ANYWHERE))
        yield from (("torn", 2 * further + turned) for further in range(1, every) for turned in (0, 1))

    def asked(self, way: str, further: int, slots: Ints) -> Asked:
        """Return what slots ask for in one of these ways; some ask for nothing."""
        known = self._search.slots
        rule, edit = known.rule[slots], known.edit[slots]
        side = self._side[slots] ^ (further & 1)
        # Without two ends there is nothing to turn round, and no anchor.
        able = self._anchored[rule] | ((further & 1 == 0) & (way in ("own", "moved", "torn")))
        if further // 2 and way in ("context", "any"):
            kept = self._edits[rule] - self._apart[rule].sum(axis=1)
            cycle = np.maximum(kept + self._apart[rule, edit], 1)  # its own, and all that tear nothing apart
            edit = self._other(slots, rule, edit, further // 2 % cycle)
        elif further // 2:
            able &= further // 2 < self._edits[rule]
            edit = self._other(slots, rule, edit, np.full(len(slots), further // 2))
            able &= self._apart[rule, edit] == (way == "torn")
        slots, rule, edit, side = (column[able] for column in (slots, rule, edit, side))
        side = np.where(self._anchored[rule], side, 0)
        columns = self._columns[rule, side]
        anchor = known.conclusion[slots, columns].astype(np.int64)
        if way == "context":
            anchor = self._of_context(slots, columns, further)
        elif way == "any":
            anchor = self._of_body(slots, rule, side, 1000 + further)
        return Asked(slots, rule, edit, side, anchor)

    def _other(self, slots: Ints, rule: Ints, edit: Ints, further: Ints) -> Ints:
        """Return an edit for each slot: its own is number 0, others follow in a random order.

        Those that tear its ends apart come last.

        Nearly everything follows from what is left then: such edits would be taken more often than all
        others, and whether two constants are adjacent would say too much.
        """
        order = np.stack([self._random(slots, 2000 + e) for e in range(self._apart.shape[1])], axis=1)
        order >>= 1
        order[self._apart[rule]] += 2**62
        order[np.arange(len(slots)), edit] = -1
        order[np.arange(order.shape[1]) >= self._edits[rule][:, None]] = 2**63 - 1
        ordered = np.argsort(order, axis=1, kind="stable")
        return np.asarray(ordered[np.arange(len(slots)), np.minimum(further, order.shape[1] - 1)])

    def _random(self, slots: Ints, stage: int) -> Ints:
        """Return a random number from 0 to 2^62 for each slot."""
        return mixed_numbers(self._search.slots.salt[slots], stage)

    def _of_body(self, slots: Ints, rule: Ints, side: Ints, stage: int) -> Ints:
        """Return for each slot any constant that stands in K where its anchor does in the rule's body."""
        anchor = np.empty(len(slots), dtype=np.int64)
        draws = self._random(slots, stage)
        for (number, end), places in grouped(rule, side):
            pool = self._stand_ins(number, end)
            anchor[places] = pool[draws[places] % len(pool)]
        return anchor

    def _stand_ins(self, rule: int, side: int) -> npt.NDArray[np.int32]:
        """Return the constants at the anchor's place in the atom that joins both ends, or in the first."""
        if (rule, side) not in self._pools:
            body, ends = self._search.rule(rule), self._search.ends[rule].free
            atoms = [a for a in body.atoms if ends[side] in a.terms]
            atom = next((a for a in atoms if {*ends} <= {*a.terms}), atoms[0])
            graph = self._search.context.kg
            triples = graph.triples[graph.triples[:, 1] == relation_of(atom, graph)]
            pool = np.unique(triples[:, 2 * atom.terms.index(ends[side])])
            self._pools[rule, side] = pool if len(pool) else graph.consts
        return self._pools[rule, side]

    def _of_context(self, slots: Ints, columns: Ints, stage: int) -> Ints:
        """Return for each slot another subject (or object) of the head's predicate in P_all."""
        anchor = np.empty(len(slots), dtype=np.int64)
        draws = self._random(slots, stage)
        for (head, column), places in grouped(self._search.slots.head[slots], columns):
            pool = self._of_head(head, column)
            anchor[places] = pool[draws[places] % len(pool)]
        return anchor

    def _of_head(self, head: int, column: int) -> npt.NDArray[np.int32]:
        """Return the subjects (or objects) of a head's predicate in P_all."""
        if (head, column) not in self._of_heads:
            triples = self._search.context.everything.triples
            self._of_heads[head, column] = np.unique(triples[self._heads == head, column])
        return self._of_heads[head, column]


# -- the end ------------------------------------------------------------------------------------------


def _finished(search: Search, drawn: Drawn) -> NegativeSet:
    """Fill what is left by position-aware corruption, and say where everything came from."""
    context, slots = search.context, search.slots
    unpack = context.kg.keys.unpack
    spare = draw_spare(context, slots, drawn.open(), drawn.taken)
    drawn.key[spare.slot] = spare.key
    drawn.way[spare.slot] = WAYS.index("position")
    found: dict[Split, SplitNegatives] = {}
    for place, split in enumerate(SPLITS):
        mine = np.flatnonzero((slots.split == place) & (drawn.key >= 0))
        triples = unpack(drawn.key[mine])
        found[split] = SplitNegatives(triples, _origins(search, drawn, mine, triples))
    asked = {split: int((slots.split == place).sum()) for place, split in enumerate(SPLITS)}
    made_ = assemble(context, "nm", found, asked)
    return replace(made_, notes=(*made_.notes, *_notes(search, drawn)))


def _origins(search: Search, drawn: Drawn, mine: Ints, triples: Triples) -> Origins:
    # Indexed, since each is to have values of its own.
    origins = origins_from("near-miss", len(mine), rule=drawn.rule[mine].astype(np.int32))[np.arange(len(mine))]
    spare = np.flatnonzero(drawn.rule[mine] < 0)
    origins.source[spare] = SOURCES.index("position")
    origins.position[spare] = replaced_positions(search.context, search.slots, mine[spare], triples[spare])
    for (rule, number), places in grouped(drawn.rule[mine], drawn.edit[mine]):
        if rule < 0:
            continue
        edit = search.edit(rule, number)
        origins.edit[places] = EDITS.index(edit.kind)
        origins.part[places] = edit.part
        if edit.kind == "replace":
            origins.predicate[places] = search.replaced_by(rule, number, triples[places])
    return origins


def _notes(search: Search, drawn: Drawn) -> list[str]:
    """Return how slots were filled, and what the budget cost."""
    wanted = search.slots.rule >= 0
    total = int(wanted.sum())
    notes = []
    if total:
        counts = {way: int((wanted & (drawn.way == place)).sum()) for place, way in enumerate(WAYS)}
        told = {
            "own": "as asked",
            "moved": "by another edit of the rule",
            "context": "from another anchor of the same relation",
            "any": "from any anchor",
            "torn": "by an edit that disconnects the ends",
            "position": "by position-aware corruption",
        }
        parts = [f"{count / total:.1%} {told[way]}" for way, count in counts.items() if count]
        notes.append(f"of the {total:,} near misses wanted: " + ", ".join(parts))
    without = len(wanted) - total
    if without:
        complements = bool(search.is_complement(search.slots.conclusion[~wanted]).all())
        why = "the near misses of these rules are their complement" if complements else "some rules have none"
        notes.append(f"{without:,} negatives are position-aware by design: {why} (see the documentation)")
    if search.spent:
        notes.append(
            f"{search.spent:,} of {search.searched:,} searches were given up after {search.budget:,} steps: "
            "what they found is not uniform over all candidates"
        )
    return notes
