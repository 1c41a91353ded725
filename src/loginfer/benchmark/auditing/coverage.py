"""Requirement 2: which rules that should not be learned have a witness among the negatives.

The undesired rules are R⁻: what is left of a rule of R when parts of its body are forgotten. One has a witness in
N_train if it concludes a triple of it from K; without one, nothing in training contradicts it.

Many sub-rules are asked about at once. Sub-rules of a rule that keep the same atoms A, negated ones included, differ
in the inequalities they keep, out of all J that A binds. A witness of A violates some set V ⊆ J; a sub-rule that keeps
I concludes a triple iff one of the triple's witnesses has V ∩ I = ∅. Only few sets V are possible, since x = y and
y = z bring x = z about. Whether a triple has a witness with exactly V is a question to one rule: A with the equal terms
made one, and J ∖ V.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.audited import AuditedBenchmark
from loginfer.benchmark.auditing.findings import Example, Finding, note, warning
from loginfer.benchmark.benchmark import Origins
from loginfer.benchmark.negatives.methods import SOURCES, method_or_unknown
from loginfer.benchmark.program import kept_masks, places, sub_rule
from loginfer.engine import Engine
from loginfer.engine.binding import relation_of
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Atom, Constant, Inequality, Rule, Term, Variable

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SubRules:
    """Sub-rules of one rule that keep the same atoms, negated ones included.

    Parameters
    ----------
    rule
        The rule.
    atoms
        Mask of the atoms that are kept.
    bound
        Mask of all inequalities over variables of these atoms.
    masks
        Masks of the sub-rules: atoms and inequalities.
    """

    rule: Rule
    atoms: int
    bound: int
    masks: tuple[int, ...]

    @cached_property
    def weakest(self) -> Rule:
        """The atoms without inequalities: concludes all that any of the sub-rules does."""
        return sub_rule(self.rule, self.atoms)

    @cached_property
    def strictest(self) -> Rule:
        """The atoms with all inequalities: what it concludes, all of the sub-rules do."""
        return sub_rule(self.rule, self.atoms | self.bound)

    def violations(self, graph: KnowledgeGraph, *, loops: bool) -> list[tuple[int, Rule]]:
        """Return each possible V but ∅, as a mask, with the rule whose witnesses violate exactly V.

        Without `loops`, those are left out that conclude only triples whose subject is their object.
        """
        numbers = places(self.bound)
        parts = [self.rule.body[i] for i in numbers]
        pairs = tuple(part.terms for part in parts if isinstance(part, Inequality))
        found = []
        for broken, names in _equalities(pairs):
            if any(isinstance(t, Constant) and graph.entities.get(t.name) is None for _, t in names):
                continue  # no constant of the graph equals one that it does not have
            renamed = dict(names)
            head = self.rule.head.rename(renamed)
            if head.subject == head.object and not loops:
                continue
            kept = [parts[i] for i in range(len(parts)) if not broken >> i & 1]
            body = tuple(part.rename(renamed) for part in (*self.weakest.body, *kept))
            mask = sum(1 << numbers[i] for i in places(broken))
            found.append((mask, Rule.known_safe(body, head)))
        return found


@lru_cache(maxsize=1024)
def _equalities(pairs: tuple[tuple[Term, Term], ...]) -> tuple[tuple[int, tuple[tuple[Term, Term], ...]], ...]:
    """Return every non-empty set of pairs that can be equal while the others differ, with what to rename."""
    found: dict[int, tuple[tuple[Term, Term], ...]] = {}
    for size in range(1, len(pairs) + 1):
        for chosen in combinations(range(len(pairs)), size):
            names = _made_equal([pairs[i] for i in chosen])
            if names is None:
                continue
            equal = sum(1 << i for i, (a, b) in enumerate(pairs) if names.get(a, a) == names.get(b, b))
            found.setdefault(equal, tuple(names.items()))
    return tuple(found.items())


def _made_equal(pairs: Sequence[tuple[Term, Term]]) -> dict[Term, Term] | None:
    """Return what to rename so that the terms of each pair are one; None if two constants had to be."""
    classes: list[set[Term]] = []
    for pair in pairs:
        touched = [known for known in classes if known & set(pair)]
        classes = [known for known in classes if not known & set(pair)]
        classes.append(set(pair).union(*touched))
    names: dict[Term, Term] = {}
    for together in classes:
        constants = [term for term in together if isinstance(term, Constant)]
        if len(constants) > 1:
            return None
        chosen = constants[0] if constants else min(t for t in together if isinstance(t, Variable))
        names.update(dict.fromkeys(together, chosen))
    return names


@dataclass(frozen=True, slots=True)
class Concluded:
    """Which sub-rules conclude which triples.

    Parameters
    ----------
    every
        bool[n], triples that all of them conclude.
    others
        int64[m], places of triples that the strictest does not conclude, but the weakest does.
    by
        bool[m, masks], which of the sub-rules do.
    """

    every: Mask
    others: npt.NDArray[np.int64]
    by: Mask

    def any_of(self) -> Mask:
        """Return bool[masks]: which sub-rules conclude some triple."""
        return np.asarray(self.by.any(axis=0) | bool(self.every.any()))

    def by_owner(self, owners: npt.NDArray[np.int64]) -> Mask:
        """Return bool[n]: whether each triple is concluded by the sub-rule at its owner's place."""
        found = self.every.copy()
        found[self.others] = self.by[np.arange(len(self.others)), owners[self.others]]
        return found


def by_atoms(rule: Rule, masks: Sequence[int]) -> list[SubRules]:
    """Return sub-rules of a rule by the atoms they keep, fewest first."""
    atoms = sum(1 << i for i, part in enumerate(rule.body) if not isinstance(part, Inequality))
    found: dict[int, list[int]] = {}
    for mask in masks:
        found.setdefault(mask & atoms, []).append(mask)
    made = []
    for kept in sorted(found, key=lambda mask: (mask.bit_count(), mask)):
        variables = {v for i in places(kept) for v in rule.body[i].variables}
        bound = sum(
            1 << i
            for i, part in enumerate(rule.body)
            if isinstance(part, Inequality) and variables.issuperset(part.variables)
        )
        made.append(SubRules(rule, kept, bound, tuple(found[kept])))
    return made


def concluded(engine: Engine, sub_rules: SubRules, triples: Triples, *, within: bool = False) -> Concluded:
    """Say which of these sub-rules conclude which triples.

    Parameters
    ----------
    engine
        An engine over K.
    sub_rules
        The sub-rules.
    triples
        int32[n, 3].
    within
        Whether it is known that the weakest concludes all of them.
    """
    every = engine.derives([sub_rules.strictest], triples)
    others = np.flatnonzero(~every)
    if not sub_rules.bound:
        others = others[:0]
    if len(others) and not within:
        others = others[engine.derives([sub_rules.weakest], triples[others])]
    by = np.zeros((len(others), len(sub_rules.masks)), dtype=bool)
    if len(others):
        asked = triples[others]
        loops = bool((asked[:, 0] == asked[:, 2]).any())
        violations = sub_rules.violations(engine.graph, loops=loops)
        found = engine.derivations([rule for _, rule in violations], asked)
        sets = np.array([mask for mask, _ in violations], dtype=np.int64)
        fits = sets[:, None] & np.array(sub_rules.masks, dtype=np.int64) == 0
        np.logical_or.at(by, found.triple, fits[found.rule])
    return Concluded(every, others, by)


# Negatives are looked at in batches, since one witness is enough.
_FIRST = 64
_BATCH = 32

# An undesired rule without a witness deserves a warning if it has so many candidates: with fewer, all of
# them may have gone to valid and test.
_MANY = 20

# Candidates are counted for so many undesired rules at most.
_COUNTED = 50


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which undesired rules have a witness among the negatives of one split.

    Parameters
    ----------
    pairs
        How many pairs there are of a rule and an undesired sub-rule of it whose atoms have a witness in K.
    missing
        Those without a witness: places of rules, and masks of the parts that are kept.
    """

    pairs: int
    missing: tuple[tuple[int, int], ...]


def undesired_rules(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Every undesired rule has a witness in N_train and N_test of each method."""
    rules = audited.rules
    masks = kept_masks(rules)
    if not any(masks):
        return
    groups = [by_atoms(rule, masks[i]) for i, rule in enumerate(rules)]
    for method, made in audited.negatives.items():
        for split in ("train", "test"):
            audited.say(f"looking for witnesses of undesired rules in {split} of {method}")
            found = coverage(audited, groups, made.splits[split], made.origins.get(split))
            if not found.missing:
                continue
            message = (
                f"{len(found.missing):,} of {found.pairs:,} undesired rules that conclude anything from K "
                f"have no witness in N_{split} of `{method}`"
            )
            yield note(len(found.missing), message, _examples(audited, found.missing))
            if split == "train" and method_or_unknown(method).covers_sub_rules and audited.protocol == "sound":
                yield from _needless(audited, method, found)


def coverage(
    audited: AuditedBenchmark, groups: Sequence[Sequence[SubRules]], triples: Triples, origins: Origins | None = None
) -> Coverage:
    """Return which undesired rules conclude one of these triples from K.

    Parameters
    ----------
    audited
        The benchmark.
    groups
        The undesired rules, by the rule they came from.
    triples
        Negatives.
    origins
        Where those came from, if known: a sub-rule that made one need not be looked for.
    """
    graph = audited.over_premises.graph
    order = np.argsort(triples[:, 1], kind="stable")
    ends = np.searchsorted(triples[order, 1], np.arange(len(graph.relations) + 1))
    made = _made(origins)
    pairs, missing = 0, []
    for number, (rule, own) in enumerate(zip(audited.rules, groups, strict=True)):
        relation = relation_of(rule.head, graph)
        asked = triples[order[ends[relation] : ends[relation + 1]]]
        seen = _Seen(own, made.get(number, []))
        start, size = 0, _FIRST
        while start < len(asked) and not all(marks.all() for marks in seen.marks):
            seen.look(audited.over_premises, asked[start : start + size])
            start, size = start + size, size * _BATCH
        possible = bool(own) and _has_witness(audited.over_premises, rule)
        for group, marks in zip(own, seen.marks, strict=True):
            # A witness of the whole body is one of each part of it.
            if marks.any() or possible or _has_witness(audited.over_premises, group.weakest):
                pairs += len(group.masks)
                missing += [(number, group.masks[i]) for i in np.flatnonzero(~marks).tolist()]
    return Coverage(pairs, tuple(missing))


class _Seen:
    """Which sub-rules of a rule have a witness.

    Parameters
    ----------
    groups
        The sub-rules by their atoms, fewest first.
    masks
        Sub-rules that are known to have one.
    """

    def __init__(self, groups: Sequence[SubRules], masks: Sequence[int]) -> None:
        self.groups = groups
        self._masks = [np.array(group.masks, dtype=np.int64) for group in groups]
        self.marks = [np.zeros(len(group.masks), dtype=bool) for group in groups]
        self._mark(masks)

    def look(self, engine: Engine, triples: Triples) -> None:
        """Mark the sub-rules that conclude one of these triples; those with most atoms first."""
        inside = self._inside(engine, triples)
        for group, marks in zip(reversed(self.groups), reversed(self.marks), strict=True):
            if not marks.all() and len(inside[group.atoms]):
                hit = concluded(engine, group, triples[inside[group.atoms]], within=True).any_of() & ~marks
                self._mark([group.masks[i] for i in np.flatnonzero(hit).tolist()])

    def _inside(self, engine: Engine, triples: Triples) -> dict[int, npt.NDArray[np.int64]]:
        """Return for the atoms of each group the places of the triples that they conclude without more."""
        found: dict[int, npt.NDArray[np.int64]] = {}
        for group, marks in zip(self.groups, self.marks, strict=True):
            places = np.arange(len(triples))
            for atoms, concluded_by_fewer in found.items():
                if atoms & group.atoms == atoms:
                    places = np.intersect1d(places, concluded_by_fewer, assume_unique=True)
            if len(places) and not marks.all():
                places = places[engine.derives([group.weakest], triples[places])]
            found[group.atoms] = places
        return found

    def _mark(self, masks: Sequence[int]) -> None:
        # What a sub-rule concludes, those that keep less of it conclude as well.
        largest = _maximal(masks)
        for masks_, marks in zip(self._masks, self.marks, strict=True):
            for big in largest:
                marks |= masks_ & big == masks_


def _has_witness(engine: Engine, rule: Rule) -> bool:
    """Say whether a rule's body has a witness."""
    if not len(engine.graph):
        return False
    subject, relation, _ = engine.graph.triples[0].tolist()
    constant = Constant(engine.graph.entities[subject])
    settled = Rule.known_safe(rule.body, Atom(constant, engine.graph.relations[relation], constant))
    return bool(engine.derives([settled], np.array([[subject, relation, subject]], dtype=np.int32))[0])


def _made(origins: Origins | None) -> dict[int, list[int]]:
    """Return for each rule the masks of its sub-rules that made a negative."""
    if origins is None:
        return {}
    by_sub_rule = origins.source == SOURCES.index("sub-rule")
    pairs = np.unique(np.column_stack([origins.rule[by_sub_rule], origins.kept[by_sub_rule]]), axis=0)
    found: dict[int, list[int]] = {}
    for rule, mask in pairs.tolist():
        found.setdefault(rule, []).append(mask)
    return found


def _maximal(masks: Sequence[int]) -> list[int]:
    """Return the masks that no other one contains."""
    found: list[int] = []
    for mask in sorted(masks, key=int.bit_count, reverse=True):
        if not any(mask & big == mask for big in found):
            found.append(mask)
    return found


def _needless(audited: AuditedBenchmark, method: str, found: Coverage) -> Iterator[Finding]:
    """Warn about undesired rules that `sound` should have witnessed: there were many candidates."""
    if found.pairs >= len(audited.negatives[method].splits.train):
        return
    few: list[tuple[int, int]] = []
    able: list[tuple[int, int]] = []
    counted = 0
    for rule, mask in sorted(found.missing, key=lambda pair: (pair[1].bit_count(), pair)):
        # A longer body concludes no more than a shorter one.
        if any(r == rule and mask & small == small for r, small in few):
            continue
        if counted == _COUNTED:
            break
        counted += 1
        (able if _candidates(audited, method, rule, mask) >= _MANY else few).append((rule, mask))
    if able:
        message = f"{len(able):,} undesired rules have no witness in N_train of `{method}` although they could have"
        yield warning(len(able), message, _examples(audited, tuple(able)))


def _candidates(audited: AuditedBenchmark, method: str, rule: int, mask: int) -> int:
    """Return how many triples an undesired rule concludes that are not true and not in N_valid or N_test."""
    projection = audited.over_premises.projection(sub_rule(audited.rules[rule], mask))
    everything = audited.benchmark.everything
    if len(projection) > 10 * len(everything):
        return len(projection)
    left, right = projection.pairs()
    relation = relation_of(audited.rules[rule].head, audited.graph)
    triples = np.column_stack([left, np.full(len(left), relation, dtype=np.int32), right])
    triples = triples[~everything.contains(triples)]
    keys = audited.graph.keys.pack(triples)
    taken = [audited.packed[split, method] for split in ("valid", "test")]
    triples = triples[~np.isin(keys, np.concatenate(taken))]
    return int((~audited.over_everything.derives(audited.rules, triples)).sum())


def _examples(audited: AuditedBenchmark, pairs: tuple[tuple[int, int], ...]) -> list[Example]:
    ordered = sorted(pairs, key=lambda pair: (pair[1].bit_count(), pair))
    return [Example(f"`{sub_rule(audited.rules[i], mask)}`, of `{audited.rules[i]}`") for i, mask in ordered[:5]]
