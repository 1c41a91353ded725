"""Where query-guided negatives are drawn from: which sub-rules conclude which triples, and pools of candidates.

Sub-rules that keep the same atoms are a group; negated atoms count as atoms here. The sub-rules of a group
differ in the inequalities they keep: (A, I) with I ⊆ J, where J are all inequalities over the variables of A. To
ask for each I whether it concludes a triple would take 2^|J| queries. But a witness of A violates some set V ⊆ J
of inequalities, (A, I) concludes a triple iff one of its witnesses has V ∩ I = ∅, and few sets V can occur: those
that equalities of terms bring about. A witness with exactly V is one of A with the equal terms merged and the
rest of J kept, which is a rule again. For a diamond these are at most 15 queries instead of 64; and a triple with
a witness that violates nothing, as most have, needs only one.

The candidates of a group are taken from a base: listed triples, or a product of two sets. It holds every triple
that some sub-rule of the group concludes, and perhaps others, so whoever draws from it must test. It never leaves
out a triple that could be a negative; what the rule itself concludes is left out where that is easy.

Pools propose random candidates for (rule, sub-rule) pairs. Both keep one promise: whatever has been taken, what
they propose next for a pair is equally likely to be any of the pair's remaining candidates, and does not depend on
what they propose for others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import combinations
from operator import or_

import numpy as np

from loginfer.benchmark.program import set_bits, sub_rule
from loginfer.engine import Engine
from loginfer.engine.binding import relation_of
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Keys, Mask, member, places_of
from loginfer.kg.vocabulary import offsets_of
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Rule, Term

# -- groups of sub-rules -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SubRuleGroup:
    """The sub-rules of one rule that keep the same atoms, negated ones included.

    Parameters
    ----------
    rule
        Index of the rule in R.
    whole
        The rule.
    atoms
        Mask of the atoms that are kept.
    inequalities
        Mask of J.
    masks
        Masks of the sub-rules, in the order of R⁻; atoms and inequalities.
    """

    rule: int
    whole: Rule
    atoms: int
    inequalities: int
    masks: tuple[int, ...]

    @cached_property
    def base(self) -> Rule:
        """The sub-rule without inequalities, which concludes all that the others do."""
        return sub_rule(self.whole, self.atoms)

    @cached_property
    def strict(self) -> Rule:
        """The sub-rule with all inequalities; what it concludes, all conclude. It need not be in R⁻."""
        return sub_rule(self.whole, self.atoms | self.inequalities)

    def tests(self, graph: KnowledgeGraph, *, loops: bool) -> list[tuple[int, Rule]]:
        """Return the sets V that a witness can violate, V = ∅ apart, with the rules that find out.

        Parameters
        ----------
        graph
            The graph that will be asked.
        loops
            Whether triples with equal subject and object will be asked about.
        """
        numbers = set_bits(self.inequalities)
        inequalities = tuple(part for i in numbers if isinstance(part := self.whole.body[i], Inequality))
        body, head = self.base.body, self.base.head
        tests: list[tuple[int, Rule]] = []
        for broken, replacements in _violations(inequalities):
            merged_head = head.rename(replacements)
            if broken == 0 or (merged_head.subject == merged_head.object and not loops):
                continue
            parts = [part.rename(replacements) for part in body]
            if not _may_hold(graph, replacements, parts):
                continue
            rest = [q.rename(replacements) for i, q in enumerate(inequalities) if not broken >> i & 1]
            rule = Rule.known_safe((*parts, *rest), merged_head)
            tests.append((sum(1 << numbers[i] for i in set_bits(broken)), rule))
        return tests


def _may_hold(graph: KnowledgeGraph, replacements: Mapping[Term, Term], parts: Sequence[BodyAtom]) -> bool:
    """Say whether a body may have a witness after terms have been merged, by what a graph rules out at a glance."""
    # Nothing equals a constant that the graph does not have.
    names = [term.name for term in replacements.values() if isinstance(term, Constant)]
    loops = [part for part in parts if isinstance(part, Atom) and part.subject == part.object]
    constants_exist = all(graph.entities.get(name) is not None for name in names)
    return constants_exist and all(relation_of(part, graph) in graph.looped for part in loops)


@dataclass(frozen=True, slots=True)
class GroupConclusions:
    """Which sub-rules of a group conclude which triples.

    Parameters
    ----------
    every
        bool[n], triples that all of them conclude.
    loose
        int64[m], rows of triples that some of them conclude, but not all.
    by
        bool[m, masks], which do.
    """

    every: Mask
    loose: Ints
    by: Mask

    def of(self, owners: Ints) -> Mask:
        """Return bool[n]: whether the sub-rule that owns a triple concludes it."""
        is_concluded = self.every.copy()
        is_concluded[self.loose] = self.by[np.arange(len(self.loose)), owners[self.loose]]
        return is_concluded


def groups_of(index: int, rule: Rule, masks: Sequence[int]) -> list[SubRuleGroup]:
    """Return the sub-rules of a rule by the atoms they keep, fewest atoms first.

    Parameters
    ----------
    index
        Of the rule in R.
    rule
        The rule.
    masks
        Its sub-rules in R⁻.
    """
    atoms = sum(1 << i for i, part in enumerate(rule.body) if not isinstance(part, Inequality))
    return [SubRuleGroup(index, rule, *group) for group in _by_atoms(atoms, tuple(masks))]


@lru_cache(maxsize=64)
def _by_atoms(atoms: int, masks: tuple[int, ...]) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """Return atoms, all inequalities and masks of each group; rules of one shape share them."""
    masks_by_atoms: dict[int, list[int]] = {}
    for mask in masks:
        masks_by_atoms.setdefault(mask & atoms, []).append(mask)
    return tuple(
        (kept, reduce(or_, masks_by_atoms[kept]) & ~atoms, tuple(masks_by_atoms[kept]))
        for kept in sorted(masks_by_atoms, key=lambda mask: (mask.bit_count(), mask))
    )


@lru_cache(maxsize=4096)
def _violations(inequalities: tuple[Inequality, ...]) -> tuple[tuple[int, dict[Term, Term]], ...]:
    """Return every set of inequalities that equalities of terms can violate, and nothing else.

    With each set, as a mask, come the terms to replace so that exactly these become equal.
    """
    violations = []
    for mask in range(1 << len(inequalities)):
        replacements = _merge([inequalities[i] for i in set_bits(mask)])
        if replacements is None:
            continue
        broken = 0
        for i, part in enumerate(inequalities):
            if replacements.get(part.left, part.left) == replacements.get(part.right, part.right):
                broken |= 1 << i
        if broken == mask:
            violations.append((mask, replacements))
    return tuple(violations)


def _merge(equalities: Sequence[Inequality]) -> dict[Term, Term] | None:
    """Return what to replace so that the terms on both sides are equal; None if two constants would be."""
    replacements: dict[Term, Term] = {}
    for part in equalities:
        left, right = replacements.get(part.left, part.left), replacements.get(part.right, part.right)
        if left == right:
            continue
        if isinstance(left, Constant):
            left, right = right, left
        if isinstance(left, Constant):
            return None
        replacements = {term: right if target == left else target for term, target in replacements.items()}
        replacements[left] = right
    return replacements


def members(
    engine: Engine, groups: Sequence[SubRuleGroup], triples: Triples, *, within: bool = False
) -> list[GroupConclusions]:
    """Say for groups of one rule which of their sub-rules conclude which triples.

    Parameters
    ----------
    engine
        Over K.
    groups
        The groups, fewest atoms first.
    triples
        int32[n, 3].
    within
        Whether it is known that the bases of all groups conclude all of them.
    """
    strict_masks = _strict(engine, groups, triples)
    # What the base of a group does not conclude, no group with more atoms does.
    outside: list[tuple[int, Mask]] = []
    conclusions: list[GroupConclusions] = []
    for group, by_strict in zip(groups, strict_masks, strict=True):
        undecided = ~by_strict
        for atoms, not_concluded in outside:
            if atoms & group.atoms == atoms:
                undecided &= ~not_concluded
        rest = np.flatnonzero(undecided & bool(group.inequalities))  # without any, the base is the strict one
        if len(rest) and not within:
            rest = rest[engine.derives([group.base], triples[rest])]
        by_base = by_strict.copy()
        by_base[rest] = True
        outside.append((group.atoms, ~by_base))
        conclusions.append(_loose(engine, group, triples, by_strict, rest))
    return conclusions


def _strict(engine: Engine, groups: Sequence[SubRuleGroup], triples: Triples) -> list[Mask]:
    """Return for each group which triples its strictest sub-rule concludes."""
    masks: list[Mask] = []
    for group in reversed(groups):
        by_strict = np.zeros(len(triples), dtype=bool)
        for stricter, concluded in zip(reversed(groups), masks, strict=False):
            if (group.atoms | group.inequalities) & ~(stricter.atoms | stricter.inequalities) == 0:
                by_strict |= concluded
        rest = np.flatnonzero(~by_strict)
        by_strict[rest] = engine.derives([group.strict], triples[rest])
        masks.append(by_strict)
    return masks[::-1]


def _loose(engine: Engine, group: SubRuleGroup, triples: Triples, every: Mask, rest: Ints) -> GroupConclusions:
    """Find out which sub-rules conclude the rest, which the base concludes and the strictest does not."""
    by = np.zeros((len(rest), len(group.masks)), dtype=bool)
    if len(rest):
        rest_triples = triples[rest]
        tests = group.tests(engine.graph, loops=bool((rest_triples[:, 0] == rest_triples[:, 2]).any()))
        derivations = engine.derivations([rule for _, rule in tests], rest_triples)
        violates = np.zeros((len(rest), len(tests)), dtype=np.float32)
        violates[derivations.triple, derivations.rule] = 1
        broken = np.array([mask for mask, _ in tests], dtype=np.int64)[:, None]
        by = violates @ (broken & np.array(group.masks) == 0).astype(np.float32) > 0
    concluded = by.any(axis=1)
    return GroupConclusions(every, rest[concluded], by[concluded])


# -- bases ---------------------------------------------------------------------------------------------

# So many trial draws show whether one triple in sixteen is of use; if not, the base is narrowed.
TRIALS = 512
ENOUGH = TRIALS // 16


@dataclass(frozen=True, slots=True)
class CandidateBase:
    """A set of triples of one relation to draw from.

    Parameters
    ----------
    left, right
        Subjects and objects: side by side, or, for a product, the two sets.
    relation
        The relation.
    product
        Whether every subject goes with every object.
    rate
        About which share of the triples is of use.
    """

    left: Ids
    right: Ids
    relation: int
    product: bool
    rate: float = 1.0

    def __len__(self) -> int:
        return len(self.left) * len(self.right) if self.product else len(self.left)

    def every(self) -> Triples:
        """Return all triples."""
        if self.product:
            return self._triples(np.repeat(self.left, len(self.right)), np.tile(self.right, len(self.left)))
        return self._triples(self.left, self.right)

    def draw(self, rng: np.random.Generator, count: int) -> Triples:
        """Return random triples, each equally likely each time."""
        left = rng.integers(0, len(self.left), size=count)
        right = rng.integers(0, len(self.right), size=count) if self.product else left
        return self._triples(self.left[left], self.right[right])

    def _triples(self, left: Ids, right: Ids) -> Triples:
        triples = np.empty((len(left), 3), dtype=np.int32)
        triples[:, 0], triples[:, 1], triples[:, 2] = left, self.relation, right
        return triples


def rectangle_of(engine: Engine, rule: Rule) -> CandidateBase:
    """Return the product of a rule's subjects and objects; its head has two variables."""
    head = rule.head
    left, right = (
        engine.projection(Rule.known_safe(rule.body, Atom(term, head.relation, term))).left
        for term in (head.subject, head.object)
    )
    return CandidateBase(left, right, relation_of(head, engine.graph), True)


class CandidateBases:
    """The bases of one rule's sub-rules.

    Parameters
    ----------
    engine
        Over K.
    rule
        The rule.
    few
        Up to this many triples need not be narrowed: all can be looked at.
    rng
        For trials.
    """

    def __init__(self, engine: Engine, rule: Rule, few: int, rng: np.random.Generator) -> None:
        self._engine = engine
        self._rule = rule
        self._few = few
        self._rng = rng
        self._relation = relation_of(rule.head, engine.graph)
        self._bindings = _bindings(rule)
        self._binding_bases: dict[int, CandidateBase] = {}

    def of(self, group: SubRuleGroup) -> CandidateBase:
        """Return a base of a group; a small one, if that is not much work."""
        bases = [self._binding(mask) for mask in self._bindings if mask & group.atoms == mask]
        base = min(bases, key=len)
        if len(base) <= self._few:
            return base
        useful = self._useful(group, base)
        if useful < ENOUGH:
            # Where there are too many to list, bounded effort on the wide base is all that is left.
            with contextlib.suppress(LimitError):
                narrow = self._listed(group.base)
                if not narrow.product:
                    return narrow
        return replace(base, rate=(useful + 1) / (TRIALS + 1))

    def _useful(self, group: SubRuleGroup, base: CandidateBase) -> int:
        """Return how many of some random triples of a base a group concludes, but not the whole rule."""
        triples = base.draw(self._rng, TRIALS)
        triples = triples[self._engine.derives([group.base], triples)]
        return len(triples) - int(self._engine.derives([self._rule], triples).sum())

    def _binding(self, mask: int) -> CandidateBase:
        """Return the base of as few atoms as bind the head's variables."""
        if mask not in self._binding_bases:
            atoms = tuple(part for i, part in enumerate(self._rule.body) if mask >> i & 1)
            rule = Rule.known_safe(atoms, self._rule.head)
            self._binding_bases[mask] = self._listed(rule) if len(atoms) < 2 else rectangle_of(self._engine, rule)
        return self._binding_bases[mask]

    def _listed(self, rule: Rule) -> CandidateBase:
        """Return the conclusions of a rule, without those of the whole rule."""
        base = self._conclusions(rule)
        if base.product:
            return base
        is_new = ~member(self._rule_keys, self._engine.graph.keys.pack(base.every()))
        return CandidateBase(base.left[is_new], base.right[is_new], self._relation, False)

    def _conclusions(self, rule: Rule) -> CandidateBase:
        projection = self._engine.projection(rule)
        return CandidateBase(projection.left, projection.right, self._relation, projection.product)

    @cached_property
    def _rule_keys(self) -> Keys:
        """The keys of the rule's own conclusions, sorted; none where they would be too many to list."""
        with contextlib.suppress(LimitError):
            base = self._conclusions(self._rule)
            if not base.product:
                return self._engine.graph.keys.pack(base.every())
        return np.empty(0, dtype=np.int64)


def _bindings(rule: Rule) -> list[int]:
    """Return the smallest sets of atoms that bind the variables of a rule's head, as masks."""
    head_variables = set(rule.head.variables)
    bound = {i: head_variables & set(part.variables) for i, part in enumerate(rule.body) if isinstance(part, Atom)}
    if not head_variables:
        return [0]
    pairs = combinations((i for i, variables in bound.items() if variables and variables != head_variables), 2)
    single = [1 << i for i, variables in bound.items() if variables == head_variables]
    return single + [1 << i | 1 << j for i, j in pairs if bound[i] | bound[j] == head_variables]


# -- pools ---------------------------------------------------------------------------------------------

# In a search, so many draws at most are made at a time for a group of sub-rules.
_MOST = 2**20
# The search for a pair is given up after so many draws if fewer than one in so many was a candidate.
_EFFORT = 2**14
_RARE = 1000


@dataclass(frozen=True, slots=True)
class SubRuleSource:
    """A group of sub-rules with its base; its pairs are numbered from `first` on, as its masks are."""

    group: SubRuleGroup
    base: CandidateBase
    first: int


class TakenKeys:
    """The triples that have been taken.

    Parameters
    ----------
    listed
        Sorted keys of triples for which that is looked up often.
    """

    def __init__(self, listed: Keys) -> None:
        self.keys = listed
        self.marks = np.zeros(len(listed), dtype=bool)
        self._others = np.empty(0, dtype=np.int64)

    def add(self, keys: Keys) -> None:
        """Take triples, which must not be taken yet."""
        is_listed, index = places_of(self.keys, keys)
        self.marks[index[is_listed]] = True
        self._others = np.sort(np.concatenate([self._others, keys[~is_listed]]), kind="stable")

    def contains(self, keys: Keys) -> Mask:
        """Return bool[n]: which triples are taken."""
        is_taken, index = places_of(self.keys, keys)
        is_taken[is_taken] = self.marks[index[is_taken]]
        return np.asarray(is_taken | member(self._others, keys))


class ListedPool:
    """Pairs whose candidates are written down.

    The candidates of a group are stored once, in segments of triples that the same sub-rules conclude. Within
    a segment they are in random order, the same for all segments. So train's part of a pair's candidates,
    the first in that order, is a range of each of the pair's segments; valid's and test's parts are the next.

    Parameters
    ----------
    pairs
        How many pairs there are; those of other pools have no candidates here.
    taken
        What has been taken; its listed keys are those of this pool.
    order
        int64, indices of the listed keys in random order.
    cuts
        Says where a list of a given size is cut into the three parts.
    """

    def __init__(self, pairs: int, taken: TakenKeys, order: Ints, cuts: Callable[[int], tuple[int, int]]) -> None:
        self._pairs = pairs
        self._taken = taken
        self._order = order
        self._rank = np.empty_like(order)
        self._rank[order] = np.arange(len(order))
        self._cuts = cuts
        self._size = 0
        self._segments: list[Ints] = []
        self._entries: list[tuple[Ints, Ints]] = []

    def add(self, engine: Engine, sources: Sequence[SubRuleSource], indices: Ints) -> None:
        """Add the pairs of groups of one rule that have the same base.

        Parameters
        ----------
        engine
            Over K.
        sources
            The groups, fewest atoms first.
        indices
            The base's triples that may be negative, as indices into the listed keys.
        """
        ranks = np.sort(self._rank[indices])
        triples = engine.graph.keys.unpack(self._taken.keys[self._order[ranks]])
        by_group = members(engine, [source.group for source in sources], triples)
        for source, conclusions in zip(sources, by_group, strict=True):
            segments = [ranks[conclusions.every]]
            concluded = [np.ones(len(source.group.masks), dtype=bool)]
            kind = _kinds(conclusions.by)
            by_kind = np.argsort(kind, kind="stable")
            for rows in np.split(by_kind, np.cumsum(np.bincount(kind))[:-1]):
                if len(rows):
                    segments.append(ranks[conclusions.loose[rows]])
                    concluded.append(conclusions.by[rows[0]])
            self._add_segments(source.first, segments, np.array(concluded))

    def _add_segments(self, first: int, segments: list[Ints], concluded: Mask) -> None:
        """Store the segments of a group; `concluded` says which of them each of its pairs has."""
        begins = self._size + offsets_of(np.array([len(segment) for segment in segments]))
        self._segments += segments
        self._size = int(begins[-1])
        kind = _kinds(concluded.T)
        for number in range(int(kind.max()) + 1):
            pairs = np.flatnonzero(kind == number)
            numbers = np.flatnonzero(concluded[:, pairs[0]]).tolist()
            ranks = np.sort(np.concatenate([segments[i] for i in numbers])) if numbers else segments[0][:0]
            cuts = _parts(self._cuts, len(ranks))
            last = np.array([ranks[cut - 1] if cut else -1 for cut in cuts])
            bounds = np.array([begins[i] + np.searchsorted(segments[i], last, side="right") for i in numbers])
            if len(ranks):
                self._entries.append((first + pairs, bounds))

    def finish(self) -> Ints:
        """Say that all groups have been added; return how many candidates each pair has."""
        nothing = np.empty(0, dtype=np.int64)
        self._members = self._order[np.concatenate([nothing, *self._segments])]
        pairs = np.concatenate([nothing, *(np.repeat(pairs, len(entry)) for pairs, entry in self._entries)])
        bounds = [np.empty((0, 4), dtype=np.int64)]
        bounds += [np.tile(entry, (len(pairs), 1)) for pairs, entry in self._entries]
        order = np.argsort(pairs, kind="stable")
        self._bounds = np.concatenate(bounds)[order]
        self._first_entry = offsets_of(np.bincount(pairs, minlength=self._pairs))
        self._segments, self._entries = [], []
        self._at_first = self._members, self._bounds
        sizes = self._bounds[:, 3] - self._bounds[:, 0]
        return np.diff(offsets_of(sizes)[self._first_entry])

    def witnessed(self, keys: Keys) -> Mask:
        """Return bool[pairs]: which pairs have one of these triples among their candidates, taken or not."""
        members, bounds = self._at_first
        is_listed, index = places_of(self._taken.keys, keys)
        marks = np.zeros(len(self._taken.keys), dtype=bool)
        marks[index[is_listed]] = True
        before = offsets_of(marks[members])
        return np.diff(offsets_of(before[bounds[:, 3]] - before[bounds[:, 0]])[self._first_entry]) > 0

    def refresh(self, part: int) -> Ints:
        """Drop what has been taken meanwhile; return how many candidates each pair has left in a part."""
        left = ~self._taken.marks[self._members]
        if not left.all():
            self._bounds = offsets_of(left)[self._bounds]
            self._members = self._members[left]
        self._part = part
        self._entry_starts = offsets_of(self._bounds[:, part + 1] - self._bounds[:, part])
        return np.diff(self._entry_starts[self._first_entry])

    def propose(self, need: Ints, left: Ints, rng: np.random.Generator) -> tuple[Ints, Keys]:
        """Propose up to as many candidates as each pair needs.

        Parameters
        ----------
        need
            int64[pairs].
        left
            What `refresh` returned.
        rng
            The randomness.

        Returns
        -------
        Pairs and keys, side by side; a pair may be given a candidate twice.
        """
        many = np.flatnonzero((need > 0) & (left > 2 * need))
        pair = np.repeat(many, need[many])
        rank = rng.integers(0, left[pair]) if len(pair) else pair
        few = np.flatnonzero((need > 0) & (left > 0) & (left <= 2 * need))
        if len(few):
            all_pairs, all_ranks = _shuffled(few, left[few], need[few], rng)
            pair, rank = np.concatenate([pair, all_pairs]), np.concatenate([rank, all_ranks])
        position = self._entry_starts[self._first_entry[pair]] + rank
        entry = np.searchsorted(self._entry_starts, position, side="right") - 1
        member = self._bounds[entry, self._part] + position - self._entry_starts[entry]
        return pair, self._taken.keys[self._members[member]]


class DrawnPool:
    """Pairs whose candidates are drawn from a base that is too large to look at.

    Draws for a pair are independent and uniform over the base; what its sub-rule does not conclude, what is
    true, and what is taken is dropped. So the next that stays is a uniform one of the remaining candidates.

    Parameters
    ----------
    engine
        Over K.
    pairs
        How many pairs there are; those of other pools have no candidates here.
    negative
        Says which triples are truly negative.
    taken
        What has been taken.
    """

    def __init__(self, engine: Engine, pairs: int, negative: Callable[[Triples], Mask], taken: TakenKeys) -> None:
        self._engine = engine
        self._negative = negative
        self._taken = taken
        self._sources: list[SubRuleSource] = []
        self._tried = np.zeros(0)
        self._hits = np.zeros(0)
        self.open = np.zeros(pairs, dtype=bool)
        self.candidate_counts = np.zeros(pairs, dtype=np.int64)
        self._queue = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def add(self, sources: Sequence[SubRuleSource]) -> None:
        """Add the pairs of groups."""
        self._sources += sources
        self._tried = np.ones(len(self._sources))
        self._hits = np.array([source.base.rate for source in self._sources])
        for source in sources:
            self.open[source.first : source.first + len(source.group.masks)] = True

    def propose(self, need: Ints, ahead: int, rng: np.random.Generator) -> tuple[Ints, Keys]:
        """Propose as many candidates as each pair needs, or fewer where the search for more was given up.

        Parameters
        ----------
        need
            int64[pairs].
        ahead
            How many a pair will probably need before long; if a search must be made, then for these.
        rng
            The randomness.
        """
        need = np.where(self.open, need, 0)
        if not need.any():
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._drop_taken()
        before, tried = self.candidate_counts.copy(), np.zeros_like(need)
        times = 1
        while True:
            lack = need - np.bincount(self._queue[0], minlength=len(need))
            self.open &= (lack <= 0) | (tried < _EFFORT) | (_RARE * (self.candidate_counts - before) >= tried)
            lack[~self.open] = 0
            if (lack <= 0).all():
                return self._from_queue(need)
            tried += self._search(np.where(lack > 0, np.maximum(lack, ahead), 0), times, rng)
            times *= 2  # a pair may have fewer candidates than its group has on average

    def _drop_taken(self) -> None:
        pairs, keys = self._queue
        left = ~self._taken.contains(keys)
        self._queue = pairs[left], keys[left]

    def _search(self, lack: Ints, times: int, rng: np.random.Generator) -> Ints:
        """Draw for pairs that lack candidates, and queue what is found.

        Parameters
        ----------
        lack
            int64[pairs], how many each lacks.
        times
            So many times as many draws are made as should do.
        rng
            The randomness.

        Returns
        -------
        int64[pairs], how many draws were made for each.
        """
        found_pairs, found_triples, numbers = [], [], []
        tried = np.zeros_like(lack)
        for number, source in enumerate(self._sources):
            group_lack = lack[source.first : source.first + len(source.group.masks)]
            if not group_lack.any():
                continue
            # Some more than will do on average: a further pass costs more than draws.
            draws = np.where(group_lack > 0, 1.3 * group_lack + 3, 0) * times * self._tried[number] / self._hits[number]
            draws = np.ceil(draws * min(1, _MOST / draws.sum())).astype(np.int64)
            tried[source.first : source.first + len(group_lack)] = draws
            owners = np.repeat(np.arange(len(group_lack)), draws)
            triples = source.base.draw(rng, len(owners))
            good = members(self._engine, [source.group], triples)[0].of(owners)
            self._tried[number] += len(owners)
            found_pairs.append(source.first + owners[good])
            found_triples.append(triples[good])
            numbers.append(np.full(int(good.sum()), number))
        pairs, triples = np.concatenate(found_pairs), np.concatenate(found_triples)
        keys = self._engine.graph.keys.pack(triples)
        good = ~self._taken.contains(keys)
        rows = np.flatnonzero(good)
        good[rows] = self._negative(triples[rows])
        self._hits += np.bincount(np.concatenate(numbers)[good], minlength=len(self._sources))
        self.candidate_counts += np.bincount(pairs[good], minlength=len(lack))
        self._queue = (np.concatenate([self._queue[0], pairs[good]]), np.concatenate([self._queue[1], keys[good]]))
        return tried

    def _from_queue(self, need: Ints) -> tuple[Ints, Keys]:
        """Take the first ones of each pair from the queue."""
        pairs, keys = self._queue
        order = np.argsort(pairs, kind="stable")
        pairs, keys = pairs[order], keys[order]
        rank = np.arange(len(pairs)) - offsets_of(np.bincount(pairs, minlength=len(need)))[pairs]
        is_served = rank < need[pairs]
        self._queue = pairs[~is_served], keys[~is_served]
        return pairs[is_served], keys[is_served]


def _parts(cuts: Callable[[int], tuple[int, int]], size: int) -> tuple[int, int, int, int]:
    """Return the bounds of train's, valid's and test's parts of a list; if there is one, train has one."""
    first, second = cuts(size)
    first = max(first, min(size, 1))
    return 0, first, max(first, second), size


def _shuffled(pairs: Ints, sizes: Ints, need: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the first few of each pair's ranks in random order."""
    owner = np.repeat(np.arange(len(pairs)), sizes)
    starts = offsets_of(sizes)
    order = np.lexsort((rng.random(len(owner)), owner))
    rank = order - starts[owner]
    first = np.arange(len(owner)) - starts[owner] < need[owner]
    return pairs[owner[first]], rank[first]


def _kinds(rows: Mask) -> Ints:
    """Return numbers 0, 1, … for the rows, equal ones for equal rows."""
    kind = np.zeros(len(rows), dtype=np.int64)
    for byte in np.packbits(rows, axis=1).T:
        kind = np.unique(kind << 8 | byte, return_inverse=True)[1]
    return kind
