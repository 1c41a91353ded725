"""Checks of conclusions.

Checks of conclusions that follow in several steps: their depths, and premises that follow before them.

Checks of the conclusions (Requirement 1): each follows from its rule and premises that training holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.material import Keys, Material, set_name
from loginfer.benchmark.auditing.report import CannotCheckError, Example, Problem, error
from loginfer.benchmark.auditing.variants import inductive_shares
from loginfer.benchmark.benchmark import SPLITS
from loginfer.engine.binding import Bound, bind
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import member


def wrong_depths(material: Material) -> Iterator[Problem]:
    """Each conclusion follows in as many steps as is told, and not in fewer."""
    provenance = material.provenance
    if provenance.deep != (material.depth > 1):
        told = "tells" if provenance.deep else "does not tell"
        yield error(1, f"provenance {told} in how many steps conclusions follow, against the recipe")
        return
    if not provenance.deep:
        return
    wrong = np.flatnonzero(material.rounds.depths(provenance.triples) != provenance.depth)
    if len(wrong):
        yield error(
            len(wrong),
            f"{len(wrong):,} conclusions do not follow in the number of steps that is told",
            material.examples(provenance.triples[wrong]),
        )


def late_premises(material: Material, pairs: Keys, keys: Keys) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which premises do not follow in fewer steps than their conclusion.

    Parameters
    ----------
    material
        A benchmark of several steps.
    pairs
        int64[n], places in the provenance's list of pairs.
    keys
        int64[n], a premise of each; -1 for one with an unknown constant.
    """
    provenance, known = material.provenance, keys >= 0
    depth = np.full(len(keys), -1, dtype=np.int8)
    depth[known] = material.rounds.depths(material.graph.keys.unpack(keys[known]))
    return np.asarray((depth < 0) | (depth >= provenance.depth[provenance.conclusion[pairs]]))


def new_conclusions(material: Material, number: int) -> int:
    """Return how many new triples a rule concludes, at all depths that count."""
    rounds = material.rounds
    rule = material.rules[number]
    return sum(len(rounds.over(d).conclusions(rule, new=True)) for d in range(1, rounds.steps + 1))


Mask = npt.NDArray[np.bool_]


def provenance_covers(material: Material) -> Iterator[Problem]:
    """Provenance tells of exactly the conclusions: P_valid, P_test, and training triples outside K."""
    provenance = material.provenance
    keys = material.graph.keys.pack(provenance.triples)
    for number, split in enumerate(SPLITS):
        told = keys[provenance.split == number]
        there = material.packed[split, None]
        strange = np.setdiff1d(told, there, assume_unique=True)
        if len(strange):
            yield error(
                len(strange),
                f"provenance tells of {len(strange):,} conclusions in {set_name(split)} that are not there",
                material.examples(material.graph.keys.unpack(strange)),
            )
        missing = np.setdiff1d(there, told, assume_unique=True) if split != "train" else strange[:0]
        if len(missing):
            yield error(
                len(missing),
                f"provenance says nothing about {len(missing):,} triples of {set_name(split)}",
                material.examples(material.graph.keys.unpack(missing), split),
            )
    silent = np.setdiff1d(np.arange(len(keys)), provenance.conclusion)
    if len(silent):
        yield error(
            len(silent),
            f"provenance names no rule for {len(silent):,} conclusions",
            material.examples(provenance.triples[silent]),
        )


def provenance_lists_all_rules(material: Material) -> Iterator[Problem]:
    """Provenance lists every rule that derives a conclusion from K in one step, and no other."""
    yield from wrong_depths(material)
    provenance, found = material.provenance, material.derivations
    rules = max(len(material.rules), 1)
    told = np.unique(provenance.conclusion * rules + provenance.rule)
    true = found.triple * rules + found.rule
    for pairs, message in (
        (np.setdiff1d(told, true), "provenance names a rule for {} conclusions that it does not derive from K"),
        (np.setdiff1d(true, told), "provenance leaves out a rule for {} conclusions that it derives from K"),
    ):
        if len(pairs):
            examples = [
                _with_rule(material, provenance.triples[pair // rules], pair % rules) for pair in pairs[:5].tolist()
            ]
            yield error(len(pairs), message.format(f"{len(pairs):,}"), examples)


def _with_rule(material: Material, triple: npt.NDArray[np.int32], rule: int) -> Example:
    plain = material.example(triple)
    return Example(f"{plain.text} by `{material.rules[rule]}`", plain.where, plain.triple)


def derivable(material: Material) -> Iterator[Problem]:
    """Every triple of P_valid and P_test follows from the rules and K (P_train where K is not known)."""
    known = material.benchmark.kg is not None
    engine, name = (material.over_premises, "K") if known else (material.over_train, "P_train")
    for split in ("valid", "test"):
        triples = material.benchmark.positives[split]
        rest = triples[~engine.derives(material.rules, triples)]
        if len(rest):
            yield error(
                len(rest),
                f"no rule derives {len(rest):,} of {len(triples):,} triples of {set_name(split)} from {name}",
                material.examples(rest, split),
            )


def witnesses(material: Material) -> Iterator[Problem]:
    """Each recorded witness is one: its premises are in K and P_train, and its conclusion is the triple."""
    provenance = material.provenance
    wrong_shape, wrong_head, unequal, denied, late = (np.zeros(len(provenance.rule), dtype=bool) for _ in range(5))
    pieces: list[tuple[Keys, Keys]] = []
    for number in np.unique(provenance.rule).tolist():
        pairs = np.flatnonzero(provenance.rule == number)
        if not 0 <= number < len(material.rules):
            wrong_shape[pairs] = True
            continue
        bound = bind(material.rules[number], material.graph)
        widths = np.diff(provenance.offsets)[pairs]
        fits = widths == len(bound.variables)
        wrong_shape[pairs[~fits]] = True
        seen = _Witnesses(material, bound, pairs[fits])
        wrong_head[seen.pairs] = ~seen.conclude()
        unequal[seen.pairs] = ~seen.differ()
        denied[seen.pairs] = seen.denied()
        pieces += [(seen.pairs, keys) for keys in seen.premises()]
    lacking = {"K": np.zeros(len(wrong_head), dtype=bool), "P_train": np.zeros(len(wrong_head), dtype=bool)}
    if pieces:
        pairs, keys = (np.concatenate(part) for part in zip(*pieces, strict=True))
        if material.depth > 1:
            late[pairs[late_premises(material, pairs, keys)]] = True
        else:
            for name, graph in (("K", material.kg), ("P_train", material.benchmark.seen)):
                lacking[name][pairs[~member(graph.packed, keys)]] = True
    lacking["K"] &= ~lacking["P_train"]
    for wrong, message in (
        (wrong_shape, "{} recorded witnesses do not fit their rule"),
        (wrong_head, "{} recorded witnesses lead to another conclusion"),
        (unequal, "{} recorded witnesses violate an inequality of their rule"),
        (denied, "{} recorded witnesses have a triple in K that their rule denies"),
        (lacking["P_train"], "{} recorded witnesses have a premise that P_train does not hold"),
        (lacking["K"], "{} recorded witnesses have a premise that is no triple of K but a conclusion"),
        (late, "{} recorded witnesses have a premise that does not follow in fewer steps"),
    ):
        places = np.flatnonzero(wrong)
        if len(places):
            examples = [_told(material, place) for place in places[:5].tolist()]
            yield error(len(places), message.format(f"{len(places):,}"), examples)


@dataclass(frozen=True, slots=True)
class _Witnesses:
    """The recorded witnesses of one rule: `pairs` are places in the provenance's list of pairs."""

    material: Material
    rule: Bound
    pairs: Keys

    def value(self, term: int) -> npt.NDArray[np.int32]:
        """Return the value of a bound term in each witness."""
        provenance = self.material.provenance
        if term < 0:
            return np.full(len(self.pairs), ~term, dtype=np.int32)
        return np.asarray(provenance.values[provenance.offsets[self.pairs] + term])

    def conclude(self) -> Mask:
        """Return bool[n]: where the head is the conclusion."""
        provenance, head = self.material.provenance, self.rule.head
        triples = provenance.triples[provenance.conclusion[self.pairs]]
        same = triples[:, 1] == head.relation
        same &= triples[:, 0] == self.value(head.subject)
        return np.asarray(same & (triples[:, 2] == self.value(head.object)))

    def differ(self) -> Mask:
        """Return bool[n]: where all inequalities hold, and the body can hold at all."""
        fine = np.full(len(self.pairs), not self.rule.empty)
        for left, right in self.rule.inequalities:
            fine &= self.value(left) != self.value(right)
        return fine

    def denied(self) -> Mask:
        """Return bool[n]: where K has a triple that a negation of the rule denies."""
        found = np.zeros(len(self.pairs), dtype=bool)
        triples = self.material.kg.triples
        for negation in self.rule.negations:
            own = triples[triples[:, 1] == negation.relation]
            if negation.loop:
                own = own[own[:, 0] == own[:, 2]]
            ends = [(0, negation.subject), (2, negation.object)]
            given = [(column, self.value(term)) for column, term in ends if term is not None]
            there, asked = np.zeros(len(own), dtype=np.int64), np.zeros(len(found), dtype=np.int64)
            for column, values in given:
                there = there * len(self.material.graph.entities) + own[:, column]
                asked = asked * len(self.material.graph.entities) + values
            found |= np.isin(asked, there)
        return found

    def premises(self) -> Iterator[Keys]:
        """Yield for each atom the keys of the premises; -1 for one with an unknown constant."""
        for atom in self.rule.atoms:
            relation = np.full(len(self.pairs), atom.relation, dtype=np.int32)
            rows = np.column_stack([self.value(atom.subject), relation, self.value(atom.object)])
            keys = self.material.graph.keys.pack(rows)
            known = (rows >= 0).all(axis=1) & (rows[:, ::2] < len(self.material.graph.entities)).all(axis=1)
            yield np.where(known, keys, -1)


def _told(material: Material, pair: int) -> Example:
    provenance = material.provenance
    triple = provenance.triples[provenance.conclusion[pair]]
    number = int(provenance.rule[pair])
    if not 0 <= number < len(material.rules):
        plain = material.example(triple)
        return Example(f"{plain.text} by rule {number}, which does not exist", plain.where, plain.triple)
    return _with_rule(material, triple, number)


def split_shares(material: Material) -> Iterator[Problem]:
    """Each rule's sample is split by the ratio.

    A conclusion of several rules may have come from any of them, so what is certain are bounds: of the n that
    a rule sampled, its shares are among its conclusions in train, in train and valid, and in all three; and
    what no other rule derives is not more than its share. Conclusions with a name that K has not may have
    been moved to train.
    """
    provenance, recipe = material.provenance, material.benchmark.recipe
    if recipe is None:
        raise CannotCheckError("the recipe is not known (no manifest.json)")
    if material.benchmark.context is not None:
        yield from inductive_shares(material)
        return
    fitting = (provenance.rule >= 0) & (provenance.rule < len(material.rules))
    pair_rule, pair_triple = provenance.rule[fitting], provenance.conclusion[fitting]
    split = provenance.split[pair_triple]
    alone = np.bincount(pair_triple, minlength=len(provenance))[pair_triple] == 1
    alone &= (split > 0) | ~_unknown_to(material.kg, provenance.triples)[pair_triple]
    wrong: list[Example] = []
    for number, known in enumerate(material.benchmark.rules):
        first, second = recipe.cuts(known.sampled)
        shares = np.array([first, second - first, known.sampled - second])
        own = pair_rule == number
        any_, only = (np.bincount(split[mask], minlength=len(SPLITS)) for mask in (own, own & alone))
        if (np.cumsum(any_) < np.cumsum(shares)).any() or (only > shares).any():
            wrong.append(_shares(number, known.rule, any_, shares))
    if wrong:
        yield error(len(wrong), f"the conclusions of {len(wrong):,} rules are not split by {recipe.ratio}", wrong)


def _unknown_to(kg: KnowledgeGraph, triples: Triples) -> Mask:
    """Return bool[n]: which triples have a name that no triple of a graph has."""
    entities = np.zeros(len(kg.entities), dtype=bool)
    entities[kg.triples[:, ::2].ravel()] = True
    relations = np.zeros(len(kg.relations), dtype=bool)
    relations[kg.preds] = True
    known = entities[triples[:, 0]] & relations[triples[:, 1]] & entities[triples[:, 2]]
    return np.asarray(~known)


def _shares(number: int, rule: object, found: Keys, shares: Keys) -> Example:
    has, wanted = (" / ".join(f"{n:,}" for n in part.tolist()) for part in (found, shares))
    return Example(f"`{rule}` has {has} in train, valid and test; its shares are {wanted}", f"rules.txt, rule {number}")
