"""Checks of the conclusions (Requirement 1): each follows from its rule and premises that training holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from loginfer.benchmark.auditing.audited import AuditedBenchmark, rule_location, set_name
from loginfer.benchmark.auditing.findings import EXAMPLES, CannotCheckError, Example, Finding, error, errors
from loginfer.benchmark.auditing.variants import inductive_shares
from loginfer.benchmark.benchmark import SPLITS, Signature
from loginfer.engine.binding import Bound, bind
from loginfer.kg.graph import Ids, Keys, Mask, member


def wrong_depths(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each conclusion follows in the recorded number of steps, and not in fewer."""
    provenance = audited.provenance
    if provenance.deep != (audited.depth > 1):
        verb = "tells" if provenance.deep else "does not tell"
        yield error(1, f"provenance {verb} in how many steps conclusions follow, against the recipe")
        return
    if not provenance.deep:
        return
    wrong = provenance.triples[audited.rounds.depths(provenance.triples) != provenance.depth]
    yield from audited.about(wrong, "{} conclusions do not follow in the number of steps that is told")


def late_premises(audited: AuditedBenchmark, pairs: Keys, keys: Keys) -> Mask:
    """Return bool[n]: which premises do not follow in fewer steps than their conclusion.

    Parameters
    ----------
    audited
        A benchmark of several steps.
    pairs
        int64[n], indices into the provenance's list of pairs.
    keys
        int64[n], the key of a premise of each pair; -1 for a premise with an unknown constant.
    """
    provenance, is_known = audited.provenance, keys >= 0
    if not provenance.deep:
        raise CannotCheckError("the provenance does not tell depths")
    depth = np.full(len(keys), -1, dtype=np.int8)
    depth[is_known] = audited.rounds.depths(audited.graph.keys.unpack(keys[is_known]))
    return np.asarray((depth < 0) | (depth >= provenance.depth[provenance.conclusion[pairs]]))


def new_conclusions(audited: AuditedBenchmark, number: int) -> int:
    """Return how many new triples a rule concludes, at all depths that count."""
    rounds = audited.rounds
    rule = audited.rules[number]
    return sum(len(rounds.over(d).conclusions(rule, new=True)) for d in range(1, rounds.steps + 1))


def provenance_covers(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Provenance lists exactly the conclusions: P_valid, P_test, and training triples outside K."""
    provenance = audited.provenance
    keys = audited.graph.keys.pack(provenance.triples)
    for number, split in enumerate(SPLITS):
        recorded = keys[provenance.split == number]
        split_keys = audited.packed[split, None]
        unexpected = audited.graph.keys.unpack(np.setdiff1d(recorded, split_keys, assume_unique=True))
        message = f"provenance tells of {{}} conclusions in {set_name(split)} that are not there"
        yield from audited.about(unexpected, message)
        if split != "train":
            missing = audited.graph.keys.unpack(np.setdiff1d(split_keys, recorded, assume_unique=True))
            yield from audited.about(missing, f"provenance says nothing about {{}} triples of {set_name(split)}", split)
    without_rule = np.setdiff1d(np.arange(len(keys)), provenance.conclusion)
    yield from audited.about(provenance.triples[without_rule], "provenance names no rule for {} conclusions")


def provenance_lists_all_rules(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Provenance lists every rule that derives a conclusion from K in one step, and no other."""
    yield from wrong_depths(audited)
    provenance, derivations = audited.provenance, audited.derivations
    rules = max(len(audited.rules), 1)
    recorded = np.unique(provenance.conclusion * rules + provenance.rule)
    derived = derivations.triple * rules + derivations.rule
    for pairs, message in (
        (np.setdiff1d(recorded, derived), "provenance names a rule for {} conclusions that it does not derive from K"),
        (np.setdiff1d(derived, recorded), "provenance leaves out a rule for {} conclusions that it derives from K"),
    ):
        yield from _about_pairs(audited, [divmod(pair, rules) for pair in pairs.tolist()], message)


def _about_pairs(audited: AuditedBenchmark, pairs: list[tuple[int, int]], message: str) -> Iterator[Finding]:
    """Yield an error about pairs of a conclusion and a rule, both as numbers."""
    if not pairs:
        return
    examples = []
    first_pairs = pairs[:EXAMPLES]
    triples = audited.provenance.triples[[conclusion for conclusion, _ in first_pairs]]
    for (_, number), plain in zip(first_pairs, audited.examples(triples), strict=True):
        exists = 0 <= number < len(audited.rules)
        by = f"`{audited.rules[number]}`" if exists else f"rule {number}, which does not exist"
        examples.append(replace(plain, text=f"{plain.text} by {by}"))
    yield error(len(pairs), message.replace("{}", f"{len(pairs):,}"), examples)


def derivable(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Every triple of P_valid and P_test follows from the rules and K (P_train where K is not known)."""
    has_kg = audited.benchmark.kg is not None
    engine, name = (audited.over_premises, "K") if has_kg else (audited.over_train, "P_train")
    for split in ("valid", "test"):
        triples = audited.benchmark.positives[split]
        underived = triples[~engine.derives(audited.rules, triples)]
        message = f"no rule derives {{}} of {len(triples):,} triples of {set_name(split)} from {name}"
        yield from audited.about(underived, message, split)


def witnesses(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Check recorded witnesses: their premises are in K and P_train, and their conclusion is the triple."""
    provenance = audited.provenance
    wrong_shape, wrong_head, unequal, denied, late = (np.zeros(len(provenance.rule), dtype=bool) for _ in range(5))
    pieces: list[tuple[Keys, Keys]] = []
    for number in np.unique(provenance.rule).tolist():
        pairs = np.flatnonzero(provenance.rule == number)
        if not 0 <= number < len(audited.rules):
            wrong_shape[pairs] = True
            continue
        bound = bind(audited.rules[number], audited.graph)
        widths = np.diff(provenance.offsets)[pairs]
        fits = widths == len(bound.variables)
        wrong_shape[pairs[~fits]] = True
        recorded = _Witnesses(audited, bound, pairs[fits])
        wrong_head[recorded.pairs] = ~recorded.conclude()
        unequal[recorded.pairs] = ~recorded.differ()
        denied[recorded.pairs] = recorded.denied()
        pieces += [(recorded.pairs, keys) for keys in recorded.premises()]
    lacking = {"K": np.zeros(len(wrong_head), dtype=bool), "P_train": np.zeros(len(wrong_head), dtype=bool)}
    if pieces:
        pairs, keys = (np.concatenate(part) for part in zip(*pieces, strict=True))
        if audited.depth > 1:
            late[pairs[late_premises(audited, pairs, keys)]] = True
        else:
            for name, graph in (("K", audited.kg), ("P_train", audited.benchmark.seen)):
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
        pairs = np.flatnonzero(wrong)
        numbers = list(zip(provenance.conclusion[pairs].tolist(), provenance.rule[pairs].tolist(), strict=True))
        yield from _about_pairs(audited, numbers, message)


@dataclass(frozen=True, slots=True)
class _Witnesses:
    """The recorded witnesses of one rule: `pairs` are indices into the provenance's list of pairs."""

    audited: AuditedBenchmark
    rule: Bound
    pairs: Keys

    def value(self, term: int) -> Ids:
        """Return the value of a bound term in each witness."""
        return self.audited.provenance.values_of(self.pairs, term)

    def conclude(self) -> Mask:
        """Return bool[n]: where the head is the conclusion."""
        provenance, head = self.audited.provenance, self.rule.head
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
        is_denied = np.zeros(len(self.pairs), dtype=bool)
        triples = self.audited.kg.triples
        for negation in self.rule.negations:
            candidates = triples[triples[:, 1] == negation.relation]
            if negation.loop:
                candidates = candidates[candidates[:, 0] == candidates[:, 2]]
            ends = [(0, negation.subject), (2, negation.object)]
            bound_ends = [(column, self.value(term)) for column, term in ends if term is not None]
            candidate_keys = np.zeros(len(candidates), dtype=np.int64)
            witness_keys = np.zeros(len(is_denied), dtype=np.int64)
            for column, values in bound_ends:
                candidate_keys = candidate_keys * len(self.audited.graph.entities) + candidates[:, column]
                witness_keys = witness_keys * len(self.audited.graph.entities) + values
            is_denied |= np.isin(witness_keys, candidate_keys)
        return is_denied

    def premises(self) -> Iterator[Keys]:
        """Yield for each atom the keys of the premises; -1 for a premise with an unknown constant."""
        for atom in self.rule.atoms:
            relation = np.full(len(self.pairs), atom.relation, dtype=np.int32)
            rows = np.column_stack([self.value(atom.subject), relation, self.value(atom.object)])
            keys = self.audited.graph.keys.pack(rows)
            is_known = (rows >= 0).all(axis=1) & (rows[:, ::2] < len(self.audited.graph.entities)).all(axis=1)
            yield np.where(is_known, keys, -1)


def split_shares(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each rule's sample is split by the ratio.

    A conclusion of several rules may have been sampled for any of them, so only bounds are certain: a rule has at
    least its shares in train, in train and valid, and in all three; and the conclusions that no other rule
    derives are not more than its share. Conclusions with a name that K does not have may have been moved to train.
    """
    provenance, recipe = audited.provenance, audited.recipe
    if audited.benchmark.context is not None:
        yield from inductive_shares(audited)
        return
    moved = ~Signature(audited.kg).covers(provenance.triples) & (provenance.split == 0)
    wrong: list[Example] = []
    for number, (benchmark_rule, counts, exclusive) in enumerate(audited.counts_by_rule(~moved)):
        first, second = recipe.cuts(benchmark_rule.sampled)
        shares = np.array([first, second - first, benchmark_rule.sampled - second])
        if (np.cumsum(counts) < np.cumsum(shares)).any() or (exclusive > shares).any():
            has, expected = (" / ".join(f"{n:,}" for n in sizes.tolist()) for sizes in (counts, shares))
            text = f"`{benchmark_rule.rule}` has {has} in train, valid and test; its shares are {expected}"
            wrong.append(Example(text, rule_location(number)))
    yield from errors(wrong, f"the conclusions of {{}} rules are not split by {recipe.ratio}")
