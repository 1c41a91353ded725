"""Checks of the negatives: none is true after all, each came from where it is said to (section 3.3), and Requirement 2.

Requirement 2 asks which rules that should not be learned have a witness among the negatives.

The undesired rules are R⁻: what is left of a rule of R when parts of its body are forgotten. One has a witness in
N_train if it concludes a triple of it from K; without one, nothing in training contradicts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.audited import AuditedBenchmark, set_name
from loginfer.benchmark.auditing.findings import CannotCheckError, Example, Finding, error, note, warning
from loginfer.benchmark.benchmark import POSITIONS, Origins, Split
from loginfer.benchmark.folder.manifest import NEGATIVES
from loginfer.benchmark.folder.tables import is_type_part
from loginfer.benchmark.negatives.context import heads_of
from loginfer.benchmark.negatives.methods import SOURCES, method_or_unknown
from loginfer.benchmark.negatives.query_candidates import SubRuleGroup, groups_of, members
from loginfer.benchmark.program import has_negations, kept_masks, sub_rule
from loginfer.engine import Engine
from loginfer.engine.binding import relation_named, relation_of
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import distinct_keys, grouped, member
from loginfer.logic.rule import Atom, BodyAtom, Constant, Rule, Variable
from loginfer.logic.stratification import stratified
from loginfer.logic.subrules import EDITS, Edit, edits_of, near_miss

Mask = npt.NDArray[np.bool_]

# A benchmark that does not promise sound negatives is warned about from this share on.
NOTABLE = 0.01
# So many negatives that follow in several steps deserve attention whatever was promised.
MANY = 0.1

# The materialisation is given up when it becomes so many times larger than P_all, or so much larger.
_GROWTH = 10
_ALWAYS = 1_000_000


def derivable_negatives(audited: AuditedBenchmark) -> Iterator[Finding]:
    """No negative follows from the rules and P_all in one step; only `sound` promises that.

    With negation, what follows from K or P_train need not follow from P_all; it is looked for as well.
    """
    rules = audited.rules
    for method, made in audited.negatives.items():
        true = {split: audited.over_everything.derives(rules, triples) for split, triples in made.splits.items()}
        for engine in _before(audited):
            for split, triples in made.splits.items():
                true[split] |= engine.derives(rules, triples)
        yield from _told(audited, method, true, "in one step")


def _before(audited: AuditedBenchmark) -> list[Engine]:
    """Return engines over less than P_all, from which more may follow if there are negations."""
    if not has_negations(audited.rules):
        return []
    return [audited.over_train] if audited.benchmark.kg is None else [audited.over_premises, audited.over_train]


def entailed_negatives(audited: AuditedBenchmark) -> Iterator[Finding]:
    """No negative is in the materialisation of P_all; only a recipe with `materialised` promises that."""
    rules = audited.rules
    negatives = audited.negatives
    if not audited.closure:
        raise CannotCheckError("the materialisation was not asked for")
    everything = audited.benchmark.everything
    limit = max(_GROWTH * len(everything), _ALWAYS)
    if audited.depth > 1 and audited.benchmark.recipe is not None:
        limit = audited.benchmark.recipe.max_triples
    try:
        stratified(rules)
    except InputError as problem:
        raise CannotCheckError(problem.message) from None
    try:
        closure = audited.over_everything.materialise(rules, max_triples=limit, progress=audited.progress)
    except LimitError:
        raise CannotCheckError(f"the materialisation has more than {limit:,} triples beyond P_all") from None
    true = everything.with_triples(closure.triples)
    for method, made in negatives.items():
        found = {split: true.contains(triples) for split, triples in made.splits.items()}
        yield from _told(audited, method, found, "in any number of steps")


def _told(
    audited: AuditedBenchmark, method: str, true: Mapping[Split, npt.NDArray[np.bool_]], how: str
) -> Iterator[Finding]:
    counts = {split: int(found.sum()) for split, found in true.items()}
    if not any(counts.values()):
        return
    shares = {split: count / max(len(true[split]), 1) for split, count in counts.items()}
    recipe = audited.benchmark.recipe
    say = note
    promised = recipe is not None and (how == "in one step" or recipe.materialised or recipe.depth > 1)
    if recipe is not None and recipe.protocol == "sound" and promised:
        say = error
    elif max(shares.values()) >= (NOTABLE if how == "in one step" else MANY):
        say = warning
    listed = ", ".join(f"{shares[split]:.1%} in {split}" for split in true)
    count = sum(counts.values())
    message = f"{count:,} negatives of `{method}` follow from the rules and P_all {how} ({listed})"
    if say is warning and how != "in one step":
        message += "; a recipe with `materialised` keeps them out"
    splits = audited.benchmark.negatives[method].splits
    examples = [e for split, found in true.items() for e in audited.examples(splits[split][found], split, method)]
    yield say(count, message, examples)


# -- near misses ------------------------------------------------------------------------------------


def near_misses_hold(audited: AuditedBenchmark, triples: Triples, origins: Origins) -> Mask:
    """Return bool[n]: which triples the near misses that are told conclude from K."""
    fine = np.zeros(len(triples), dtype=bool)
    columns = (origins.rule, origins.edit, origins.part, origins.predicate)
    for told, places in grouped(*(column.astype(np.int64) for column in columns)):
        edited = told_near_miss(audited.graph, audited.rules, told)
        if edited is not None:
            fine[places] = audited.over_premises.derives([edited], triples[places])
    return fine


def told_near_miss(graph: KnowledgeGraph, rules: tuple[Rule, ...], told: tuple[int, ...]) -> Rule | None:
    """Return the edited rule that the numbers rule, edit, part and predicate stand for; None if none does."""
    number, kind, part, predicate = told
    if not (0 <= number < len(rules) and 0 < kind < len(EDITS)):
        return None
    edit = Edit(EDITS[kind], part)
    if edit not in edits_of(rules[number]):
        return None
    if edit.kind != "replace":
        return near_miss(rules[number], edit)
    names = graph.entities if is_type_part(rules, number, part) else graph.relations
    if not 0 <= predicate < len(names):
        return None
    name = names[predicate]
    edited = near_miss(rules[number], edit, name)
    return None if edited == rules[number] else edited


def counted_by_heads(audited: AuditedBenchmark) -> bool:
    """Say whether a benchmark has negatives that are as many as conclusions, head by head."""
    return any(method_or_unknown(name).size_of == "conclusions" for name in audited.benchmark.negatives)


def balanced_heads(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Near misses: each split has as many negatives with a head as conclusions with it."""
    for method, made in audited.negatives.items():
        if method_or_unknown(method).size_of != "conclusions":
            continue
        for split, triples in made.splits.items():
            positives = audited.benchmark.positives[split]
            conclusions = positives[audited.over_premises.derives(audited.rules, positives)]
            heads = np.concatenate([heads_of(audited.graph, t) for t in (conclusions, triples)])
            _, place = np.unique(heads, return_inverse=True)
            sides = np.split(place.ravel(), [len(conclusions)])
            counts = [np.bincount(side, minlength=int(place.max(initial=-1)) + 1) for side in sides]
            missing, spare = (int(np.maximum(a - b, 0).sum()) for a, b in (counts, counts[::-1]))
            name = set_name(split, method, full=True)
            if spare:
                yield error(spare, f"{name} has {spare:,} triples more with some head than conclusions")
            if missing:
                say = warning if len(triples) < made.asked.get(split, 0) else error
                yield say(missing, f"{name} lacks {missing:,} triples with the head of conclusions")


def origins_agree(audited: AuditedBenchmark) -> Iterator[Finding]:
    """`negatives.parquet` tells of exactly the negatives in the text files."""
    table, keys = audited.folder.origins, audited.graph.keys
    if table is None:
        raise CannotCheckError("there is no negatives.parquet that can be read")
    rest = len(table)
    for method, made in audited.negatives.items():
        for split, triples in made.splits.items():
            rows = table.rows(method, split)
            rest -= len(rows)
            told = distinct_keys(keys.pack(table.triples[rows]))
            differ = np.setxor1d(told, keys.pack(triples), assume_unique=True)
            count = max(len(differ), len(rows) - len(told))
            if count:
                yield error(
                    count,
                    f"`{NEGATIVES}` and `{audited.file(split, method)}` differ in {count:,} triples",
                    audited.examples(keys.unpack(differ), split, method),
                )
    if rest:
        yield error(rest, f"`{NEGATIVES}` tells of {rest:,} triples of methods that the folder does not have")


def origins_are_true(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each negative satisfies the condition of the method that is said to have made it."""
    if not any(made.origins for made in audited.negatives.values()):
        raise CannotCheckError("where the negatives came from is not known (no negatives.parquet)")
    conditions = _Conditions(audited)
    for method, made in audited.negatives.items():
        for split, origins in made.origins.items():
            triples = made.splits[split]
            fitting = [SOURCES.index(source) for source in method_or_unknown(method).sources]
            wrong = ~np.isin(origins.source, fitting)
            message = (
                f"{{}} triples of {set_name(split, method, full=True)} have a source that this method does not use"
            )
            yield from audited.about(triples[wrong], message, split, method)
            for source in np.unique(origins.source[~wrong]).tolist():
                places = np.flatnonzero((origins.source == source) & ~wrong)
                yield from conditions.told(SOURCES[source], method, split, places)


class _Conditions:
    """The conditions that the sources put on their triples; what several sets need is computed once.

    Each returns bool[n], which triples are wrong, and what is wrong with them.
    """

    def __init__(self, audited: AuditedBenchmark) -> None:
        self._audited = audited
        self._positions: dict[str, _Positions] = {}
        self._sub_rules: dict[str, dict[str, Mask]] = {}
        self._by_source: dict[str, Callable[[str, Triples, Origins], tuple[Mask, str]]] = {
            "relevance": self._relevance,
            "position": self._position,
            "object": self._object,
            "near-miss": self._near_miss,
        }

    def told(self, source: str, method: str, split: str, places: npt.NDArray[np.int64]) -> Iterator[Finding]:
        """Yield what is wrong with the triples of one source at these places."""
        made = self._audited.negatives[method]
        triples, origins = made.splits[split][places], made.origins[split][places]
        own = method_or_unknown(method).conditions.get(source)
        if source == "sub-rule":
            wrong, what = (self._sub_rule(method)[split][places], "are not concluded by the sub-rule that is told")
        elif own is None:
            wrong, what = self._by_source[source](split, triples, origins)
        else:
            wrong, what = own(self._audited, split, triples, origins)
        message = f"{{}} triples of {set_name(split, method, full=True)} {what}"
        yield from self._audited.about(triples[wrong], message, split, method)

    @cached_property
    def _constants(self) -> Mask:
        return support_constants(self._audited)

    def _relevance(self, _: str, triples: Triples, __: Origins) -> tuple[Mask, str]:
        graph, constants = self._audited.graph, self._constants
        relations, types = _head_predicates(graph, self._audited.rules)
        is_type = triples[:, 1] == graph.type_relation
        fine = constants[triples[:, 0]] & (is_type | constants[triples[:, 2]])
        fine &= np.where(is_type, types[triples[:, 2]], relations[triples[:, 1]])
        return ~fine, "have a predicate of no rule's head, or a constant of no rule's support"

    def _position(self, split: str, triples: Triples, origins: Origins) -> tuple[Mask, str]:
        if split not in self._positions:
            self._positions[split] = _Positions(self._audited, split)
        told = self._positions[split].of(triples)
        return told != origins.position, "do not differ from a conclusion in the position that is told"

    def _near_miss(self, _: str, triples: Triples, origins: Origins) -> tuple[Mask, str]:
        return ~near_misses_hold(self._audited, triples, origins), "are not concluded by the near miss that is told"

    def _object(self, split: str, triples: Triples, _: Origins) -> tuple[Mask, str]:
        known, asked = (
            some[:, 0].astype(np.int64) * len(self._audited.graph.relations) + some[:, 1]
            for some in (self._audited.benchmark.positives[split], triples)
        )
        return (
            ~member(distinct_keys(known), asked),
            "do not differ from a positive of their split in the object alone",
        )

    def _sub_rule(self, method: str) -> dict[str, Mask]:
        """Return for each split which negatives their sub-rule does not conclude; all are asked at once."""
        if method not in self._sub_rules:
            made = self._audited.negatives[method]
            known = [split for split in made.splits.sizes if split in made.origins]
            triples = np.concatenate([made.splits[split] for split in known])
            rule, kept, source = (
                np.concatenate([getattr(made.origins[split], name) for split in known])
                for name in ("rule", "kept", "source")
            )
            wrong = np.zeros(len(triples), dtype=bool)
            asked = np.flatnonzero(source == SOURCES.index("sub-rule"))
            wrong[asked] = _not_concluded(self._audited, triples[asked], rule[asked], kept[asked])
            ends = np.cumsum([len(made.splits[split]) for split in known])
            self._sub_rules[method] = dict(zip(known, np.split(wrong, ends[:-1]), strict=True))
        return self._sub_rules[method]


# -- relevance-based ---------------------------------------------------------------------------------


def support_constants(audited: AuditedBenchmark) -> Mask:
    """Return bool[entities]: Const_sup, the constants of K in the support of some rule."""
    graph, engine = audited.graph, audited.over_premises
    found = np.zeros(len(graph.entities), dtype=bool)
    any_relation = graph.relations[int(graph.rels[0])] if len(graph.rels) else ""
    for body in dict.fromkeys(rule.body for rule in audited.rules):
        atoms = [part for part in body if isinstance(part, Atom)]
        terms = dict.fromkeys(t for atom in atoms for t in ((atom.subject,) if atom.is_type else atom.terms))
        for variable in (t for t in terms if isinstance(t, Variable)):
            found[engine.projection(Rule(body, Atom(variable, any_relation, variable))).left] = True
        named = [graph.entities.get(t.name) for t in terms if isinstance(t, Constant)]
        ids = [i for i in named if i is not None]
        if ids and engine.support(Rule(body, Atom(Constant("_"), any_relation, Constant("_")))):
            found[ids] = True
    return found


def _head_predicates(graph: KnowledgeGraph, rules: tuple[Rule, ...]) -> tuple[Mask, Mask]:
    """Return bool[relations], bool[entities]: the relations and the types in the heads of rules."""
    relations = np.zeros(len(graph.relations), dtype=bool)
    types = np.zeros(len(graph.entities), dtype=bool)
    for rule in rules:
        relation = relation_named(str(rule.head.relation), graph)
        if relation == graph.type_relation and isinstance(rule.head.object, Constant):
            place = graph.entities.get(rule.head.object.name)
            if place is not None:
                types[place] = True
        elif relation >= 0:
            relations[relation] = True
    return relations, types


# -- position-aware ----------------------------------------------------------------------------------


class _Positions:
    """In which position a triple differs from a conclusion C of a split.

    The subject s' of (s', R, o): some (s, R, o) is in C, and some (s', R, o') in P_all; the object likewise.
    Of type triples only the subject is replaced, by one that has some type.
    """

    def __init__(self, audited: AuditedBenchmark, split: str) -> None:
        self._graph = audited.graph
        triples = audited.benchmark.positives[split]
        conclusions = triples[audited.over_premises.derives(audited.rules, triples)]
        everything = audited.benchmark.everything.triples
        self._seen = tuple(distinct_keys(self._keys(everything, column)) for column in (0, 2))
        self._concluded = tuple(distinct_keys(self._keys(conclusions, column)) for column in (0, 2))

    def _keys(self, triples: Triples, column: int) -> npt.NDArray[np.int64]:
        return np.asarray(triples[:, column].astype(np.int64) * len(self._graph.relations) + triples[:, 1])

    def of(self, triples: Triples) -> npt.NDArray[np.int8]:
        """Return int8[n], places in `POSITIONS`: what could have been replaced; 0 for neither."""
        subjects, objects = self._keys(triples, 0), self._keys(triples, 2)
        subject = member(self._seen[0], subjects) & member(self._concluded[1], objects)
        object_ = member(self._seen[1], objects) & member(self._concluded[0], subjects)
        object_ &= triples[:, 1] != self._graph.type_relation
        places = np.array([POSITIONS.index(name) for name in ("", "subject", "object", "either")], dtype=np.int8)
        return np.asarray(places[subject + 2 * object_])


# -- query-guided ------------------------------------------------------------------------------------


def _not_concluded(
    audited: AuditedBenchmark, triples: Triples, rule_of: npt.NDArray[np.int32], kept_by: npt.NDArray[np.int32]
) -> Mask:
    """Return bool[n]: which triples the sub-rules that are told do not conclude from K.

    The sub-rules of one rule that keep the same atoms are asked about together.
    """
    wrong = np.ones(len(triples), dtype=bool)
    undesired = kept_masks(audited.rules)
    for (number,), places in grouped(rule_of.astype(np.int64)):
        if not 0 <= number < len(audited.rules):
            continue
        rule = audited.rules[number]
        kept = kept_by[places]
        known = set(undesired[number])
        masks = [m for m in np.unique(kept).tolist() if m in known or _is_sub_rule(rule, m)]
        for group in groups_of(number, rule, masks):
            columns = {mask: column for column, mask in enumerate(group.masks)}
            mine = np.flatnonzero(np.isin(kept, group.masks))
            owners = np.array([columns[mask] for mask in kept[mine].tolist()], dtype=np.int64)
            asked = places[mine]
            (found,) = members(audited.over_premises, [group], triples[asked])
            wrong[asked] = ~found.of(owners)
    return wrong


def _is_sub_rule(rule: Rule, mask: int) -> bool:
    """Say whether a mask keeps a proper part of a rule's body, and what is left is safe."""
    if not 0 <= mask < 2 ** len(rule.body) - 1:
        return False
    kept = sub_rule(rule, mask)
    bound = {variable for atom in kept.atoms for variable in atom.variables}
    parts: tuple[BodyAtom, ...] = (kept.head, *kept.inequalities)
    # A negation must say the same as in the rule: what the rule binds there stays bound.
    negated = ({*part.variables}.intersection(rule.variables) for part in kept.negations)
    return all(bound.issuperset(part.variables) for part in parts) and all(bound >= v for v in negated)


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
