"""Requirement 2: which rules that should not be learned have a witness among the negatives.

The undesired rules are R⁻: what is left of a rule of R when parts of its body are forgotten. One has a witness in
N_train if it concludes a triple of it from K; without one, nothing in training contradicts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.audited import AuditedBenchmark
from loginfer.benchmark.auditing.findings import Example, Finding, note, warning
from loginfer.benchmark.benchmark import Origins
from loginfer.benchmark.negatives.methods import SOURCES, method_or_unknown
from loginfer.benchmark.negatives.query_candidates import SubRuleGroup, groups_of, members
from loginfer.benchmark.program import kept_masks, sub_rule
from loginfer.engine import Engine
from loginfer.engine.binding import relation_of
from loginfer.kg import Triples
from loginfer.logic.rule import Atom, Constant, Rule

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
    groups = [groups_of(i, rule, masks[i]) for i, rule in enumerate(rules)]
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
    audited: AuditedBenchmark,
    groups: Sequence[Sequence[SubRuleGroup]],
    triples: Triples,
    origins: Origins | None = None,
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
            if marks.any() or possible or _has_witness(audited.over_premises, group.base):
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

    def __init__(self, groups: Sequence[SubRuleGroup], masks: Sequence[int]) -> None:
        self.groups = groups
        self._masks = [np.array(group.masks, dtype=np.int64) for group in groups]
        self.marks = [np.zeros(len(group.masks), dtype=bool) for group in groups]
        self._mark(masks)

    def look(self, engine: Engine, triples: Triples) -> None:
        """Mark the sub-rules that conclude one of these triples; those with most atoms first."""
        inside = self._inside(engine, triples)
        for group, marks in zip(reversed(self.groups), reversed(self.marks), strict=True):
            if not marks.all() and len(inside[group.atoms]):
                (found,) = members(engine, [group], triples[inside[group.atoms]], within=True)
                hit = (found.by.any(axis=0) | bool(found.every.any())) & ~marks
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
                places = places[engine.derives([group.base], triples[places])]
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
