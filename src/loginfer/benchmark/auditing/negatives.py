"""Checks of the negatives: none is true, each has the origin that is recorded (section 3.3), and Requirement 2.

Requirement 2 asks which undesired rules have a witness among the negatives. The undesired rules, R⁻, are the rules of
R without some parts of their bodies. One has a witness in N_train if it concludes a triple of N_train from K; without
a witness, nothing in training contradicts it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.audited import AuditedBenchmark, set_name
from loginfer.benchmark.auditing.findings import CannotCheckError, Example, Finding, error, note, warning
from loginfer.benchmark.benchmark import POSITIONS, Benchmark, Origins, Split
from loginfer.benchmark.folder.manifest import NEGATIVES
from loginfer.benchmark.folder.tables import is_type_part
from loginfer.benchmark.learned_shortcut import SPLIT_LEAST
from loginfer.benchmark.negatives.context import heads_of
from loginfer.benchmark.negatives.methods import SOURCES, method_or_unknown
from loginfer.benchmark.negatives.query_candidates import SubRuleGroup, groups_of, members
from loginfer.benchmark.negatives.twins import EXACT, MANY
from loginfer.benchmark.program import has_negations, kept_masks, sub_rule
from loginfer.benchmark.recipe import PARTS
from loginfer.benchmark.shortcut_features import FeatureBattery, features_named
from loginfer.engine import Engine
from loginfer.engine.binding import relation_named, relation_of
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Mask, distinct_keys, grouped, member, places_of
from loginfer.logic.rule import Atom, BodyAtom, Constant, Rule, Variable
from loginfer.logic.stratification import stratified
from loginfer.logic.subrules import EDITS, Edit, edits_of, near_miss

# From this share on, derivable negatives are a warning, even if the benchmark does not promise sound ones.
NOTABLE = 0.01
# The same for negatives that follow in several steps.
MOST_ENTAILED = 0.1
# With a larger balanced accuracy the splits are not alike.
TOLD_APART = 0.6

# The materialisation is given up beyond so many times the size of P_all, but never below `_ALWAYS` triples.
_GROWTH = 10
_ALWAYS = 1_000_000


def derivable_negatives(audited: AuditedBenchmark) -> Iterator[Finding]:
    """No negative follows from the rules and P_all in one step; only `sound` promises that.

    With negation, what follows from K or P_train need not follow from P_all; such negatives are found as well.
    """
    rules = audited.rules
    for method, negative_set in audited.negatives.items():
        splits = negative_set.splits
        derivable = {split: audited.over_everything.derives(rules, triples) for split, triples in splits.items()}
        for engine in _smaller_engines(audited):
            for split, triples in splits.items():
                derivable[split] |= engine.derives(rules, triples)
        yield from _about_derived(audited, method, derivable, "in one step")


def _smaller_engines(audited: AuditedBenchmark) -> list[Engine]:
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
    materialised = everything.with_triples(closure.triples)
    for method, negative_set in negatives.items():
        entailed = {split: materialised.contains(triples) for split, triples in negative_set.splits.items()}
        yield from _about_derived(audited, method, entailed, "in any number of steps")


def _about_derived(
    audited: AuditedBenchmark, method: str, derived: Mapping[Split, Mask], how: str
) -> Iterator[Finding]:
    counts = {split: int(mask.sum()) for split, mask in derived.items()}
    if not any(counts.values()):
        return
    shares = {split: count / max(len(derived[split]), 1) for split, count in counts.items()}
    recipe = audited.benchmark.recipe
    say = note
    promised = recipe is not None and (how == "in one step" or recipe.materialised or recipe.depth > 1)
    if recipe is not None and recipe.protocol == "sound" and promised:
        say = error
    elif max(shares.values()) >= (NOTABLE if how == "in one step" else MOST_ENTAILED):
        say = warning
    listed = ", ".join(f"{shares[split]:.1%} in {split}" for split in derived)
    count = sum(counts.values())
    message = f"{count:,} negatives of `{method}` follow from the rules and P_all {how} ({listed})"
    if say is warning and how != "in one step":
        message += "; a recipe with `materialised` keeps them out"
    splits = audited.benchmark.negatives[method].splits
    examples = [e for split, mask in derived.items() for e in audited.examples(splits[split][mask], split, method)]
    yield say(count, message, examples)


# -- near misses ------------------------------------------------------------------------------------


def near_misses_hold(audited: AuditedBenchmark, triples: Triples, origins: Origins) -> Mask:
    """Return bool[n]: which triples their recorded near misses conclude from K."""
    fine = np.zeros(len(triples), dtype=bool)
    columns = (origins.rule, origins.edit, origins.part, origins.predicate)
    for numbers, rows in grouped(*(column.astype(np.int64) for column in columns)):
        edited = told_near_miss(audited.graph, audited.rules, numbers)
        if edited is not None:
            fine[rows] = audited.over_premises.derives([edited], triples[rows])
    return fine


def told_near_miss(graph: KnowledgeGraph, rules: tuple[Rule, ...], numbers: tuple[int, ...]) -> Rule | None:
    """Return the edited rule with these numbers of rule, edit, part and predicate; None if there is none."""
    rule, kind, part, predicate = numbers
    if not (0 <= rule < len(rules) and 0 < kind < len(EDITS)):
        return None
    edit = Edit(EDITS[kind], part)
    if edit not in edits_of(rules[rule]):
        return None
    if edit.kind != "replace":
        return near_miss(rules[rule], edit)
    names = graph.entities if is_type_part(rules, rule, part) else graph.relations
    if not 0 <= predicate < len(names):
        return None
    name = names[predicate]
    edited = near_miss(rules[rule], edit, name)
    return None if edited == rules[rule] else edited


def counted_by_heads(audited: AuditedBenchmark) -> bool:
    """Say whether a benchmark has negatives whose number per head is that of the conclusions."""
    return any(method_or_unknown(name).size_of == "conclusions" for name in audited.benchmark.negatives)


def balanced_heads(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Near misses: for each head predicate, a split has as many negatives as new conclusions."""
    for method, negative_set in audited.negatives.items():
        if method_or_unknown(method).size_of != "conclusions" or method in paired_methods(audited):
            continue
        for split, triples in negative_set.splits.items():
            positives = audited.benchmark.positives[split]
            new = positives[~audited.kg.contains(positives)]
            conclusions = new[audited.over_premises.derives(audited.rules, new)]
            heads = np.concatenate([heads_of(audited.graph, t) for t in (conclusions, triples)])
            _, head_codes = np.unique(heads, return_inverse=True)
            sides = np.split(head_codes.ravel(), [len(conclusions)])
            counts = [np.bincount(side, minlength=int(head_codes.max(initial=-1)) + 1) for side in sides]
            missing, spare = (int(np.maximum(a - b, 0).sum()) for a, b in (counts, counts[::-1]))
            name = set_name(split, method, full=True)
            if spare:
                yield error(spare, f"{name} has {spare:,} triples more with some head than conclusions")
            if missing:
                say = warning if len(triples) < negative_set.asked.get(split, 0) else error
                yield say(missing, f"{name} lacks {missing:,} triples with the head of conclusions")


def paired_methods(audited: AuditedBenchmark) -> list[str]:
    """Return the methods whose negatives are twins, by the recipe or because some say so."""
    recipe = audited.benchmark.recipe
    return [
        method
        for method, negative_set in audited.benchmark.clean.negatives.items()
        if (recipe is not None and recipe.match and method_or_unknown(method).matchable)
        or any((origins.twin >= 0).any() for origins in negative_set.origins.values())
    ]


def pairs_complete(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Twins: each negative is that of a conclusion with the same head and look, and each new conclusion has one."""
    benchmark, provenance = audited.benchmark.clean, audited.provenance
    matched = () if benchmark.recipe is None else benchmark.recipe.match
    battery = FeatureBattery(audited.kg, [name for name in features_named(matched) if name in EXACT])
    for method in paired_methods(audited):
        if benchmark.recipe is not None and not matched:
            yield error(1, f"negatives of `{method}` are twins, but the recipe does not ask for any")
        negative_set = benchmark.negatives[method]
        for number, (split, negatives) in enumerate(negative_set.splits.items()):
            positives, origins = benchmark.positives[split], negative_set.origins.get(split)
            twin = np.full(len(negatives), -1) if origins is None else origins.twin
            name, has_twin = set_name(split, method, full=True), twin >= 0
            concluded = benchmark.graph.keys.pack(provenance.triples[provenance.split == number])
            counts = np.bincount(twin[has_twin], minlength=len(positives))
            is_new = member(np.sort(concluded), benchmark.graph.keys.pack(positives))
            heads = heads_of(audited.graph, positives)[twin[has_twin]]
            other = negatives[has_twin][heads != heads_of(audited.graph, negatives[has_twin])]
            looks = [np.minimum(battery.values(of), MANY) for of in (positives[twin[has_twin]], negatives[has_twin])]
            unlike = negatives[has_twin][(looks[0] != looks[1]).any(axis=1)]
            for rows, what in (
                (negatives[~has_twin], f"{{}} triples of {name} are the twin of no conclusion"),
                (other, f"{{}} triples of {name} have another head than the conclusion whose twin they are"),
                (unlike, f"{{}} triples of {name} do not look like the conclusion whose twin they are"),
                (positives[(counts > 0) & ~is_new], f"{{}} triples of {name} are twins of triples that were in K"),
                (positives[(counts == 0) & is_new], f"{{}} conclusions of P_{split} have no twin in {name}"),
                (positives[counts > 1], f"{{}} conclusions of P_{split} have several twins in {name}"),
            ):
                yield from audited.about(rows, what)


def splits_alike(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Whoever knows no rule cannot tell the negatives, nor the conclusions, of train from those of test."""
    if not any(audited.split_differences.values()):
        raise CannotCheckError(f"train or test has fewer than {SPLIT_LEAST} conclusions or negatives")
    for method, differences in audited.split_differences.items():
        names = {"negatives": f"negatives of `{method}`", "conclusions": "conclusions"}
        for kind, accuracy in differences.items():
            if accuracy > TOLD_APART:
                text = (
                    f"a classifier that knows no rule tells {names[kind]} in train from those in test, {accuracy:.1%}"
                )
                yield warning(1, f"{text} right; 50% if they were alike")


def origins_agree(audited: AuditedBenchmark) -> Iterator[Finding]:
    """`negatives.parquet` lists exactly the negatives in the text files."""
    table, keys = audited.folder.origins, audited.graph.keys
    if table is None:
        raise CannotCheckError("there is no negatives.parquet that can be read")
    unmatched = len(table)
    for method, negative_set in audited.negatives.items():
        for split, triples in negative_set.splits.items():
            rows = table.rows(method, split)
            unmatched -= len(rows)
            recorded = distinct_keys(keys.pack(table.triples[rows]))
            differ = np.setxor1d(recorded, keys.pack(triples), assume_unique=True)
            count = max(len(differ), len(rows) - len(recorded))
            if count:
                message = f"`{NEGATIVES}` and `{audited.file(split, method)}` differ in {count:,} triples"
                yield error(count, message, audited.examples(keys.unpack(differ), split, method))
    if unmatched:
        yield error(unmatched, f"`{NEGATIVES}` tells of {unmatched:,} triples of methods that the folder does not have")


def origins_are_true(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each negative satisfies the condition of its recorded source."""
    if not any(negative_set.origins for negative_set in audited.negatives.values()):
        raise CannotCheckError("where the negatives came from is not known (no negatives.parquet)")
    conditions = _Conditions(audited)
    for method, negative_set in audited.negatives.items():
        for split, origins in negative_set.origins.items():
            triples = negative_set.splits[split]
            fitting = [SOURCES.index(source) for source in method_or_unknown(method).sources]
            wrong = ~np.isin(origins.source, fitting)
            message = (
                f"{{}} triples of {set_name(split, method, full=True)} have a source that this method does not use"
            )
            yield from audited.about(triples[wrong], message, split, method)
            for source in np.unique(origins.source[~wrong]).tolist():
                rows = np.flatnonzero((origins.source == source) & ~wrong)
                yield from conditions.violations(SOURCES[source], method, split, rows)


class _Conditions:
    """The conditions that sources put on their triples; what several sets need is computed once.

    Each returns bool[n], which triples are wrong, and what is wrong with them.
    """

    def __init__(self, audited: AuditedBenchmark) -> None:
        self._audited = audited
        self._positions: dict[str, _Positions] = {}
        self._sub_rules: dict[str, dict[str, Mask]] = {}
        self._by_source: dict[str, Callable[[str, Triples, Origins], tuple[Mask, str]]] = {
            "relevance": self._relevance,
            "position": self._position,
            "near-miss": self._near_miss,
            **{part: partial(self._random, part) for part in PARTS},
        }

    def violations(self, source: str, method: str, split: str, rows: Ints) -> Iterator[Finding]:
        """Yield what is wrong with the triples of one source in these rows."""
        negative_set = self._audited.negatives[method]
        triples, origins = negative_set.splits[split][rows], negative_set.origins[split][rows]
        condition = method_or_unknown(method).conditions.get(source)
        if source == "sub-rule":
            wrong, what = (self._sub_rule(method)[split][rows], "are not concluded by the sub-rule that is told")
        elif condition is None:
            wrong, what = self._by_source[source](split, triples, origins)
        else:
            wrong, what = condition(self._audited, split, triples, origins)
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
        positions = self._positions[split].of(triples)
        return positions != origins.position, "do not differ from a conclusion in the position that is told"

    def _near_miss(self, _: str, triples: Triples, origins: Origins) -> tuple[Mask, str]:
        return ~near_misses_hold(self._audited, triples, origins), "are not concluded by the near miss that is told"

    def _random(self, part: str, split: str, triples: Triples, _: Origins) -> tuple[Mask, str]:
        graph, recipe = self._audited.graph, self._audited.benchmark.recipe
        if recipe is not None and part not in recipe.corrupt:
            return np.ones(len(triples), dtype=bool), f"have a random {part}, which the recipe does not ask for"
        positives, wrong = self._audited.benchmark.positives[split], np.zeros(len(triples), dtype=bool)
        if part == "relation":  # `type` is neither replaced nor put in the place of another
            positives, wrong = positives[positives[:, 1] != graph.type_relation], triples[:, 1] == graph.type_relation
        others = np.arange(3) != PARTS.index(part)
        positive_keys, negative_keys = (graph.keys.pack(rows * others) for rows in (positives, triples))
        # A positive has one negative of its own, so no more are like it in the other two parts than positives.
        known, counts = np.unique(positive_keys, return_counts=True)
        present, place = places_of(known, negative_keys)
        order = np.argsort(negative_keys, kind="stable")
        turn = np.empty(len(triples), dtype=np.int64)
        turn[order] = np.arange(len(triples)) - np.searchsorted(negative_keys, negative_keys, sorter=order)[order]
        too_many = turn >= np.where(present, np.append(counts, 0)[place], 0)
        return wrong | too_many, f"do not differ from a positive of their own in the {part} alone"

    def _sub_rule(self, method: str) -> dict[str, Mask]:
        """Return for each split which negatives their sub-rule does not conclude; all splits are checked at once."""
        if method not in self._sub_rules:
            negative_set = self._audited.negatives[method]
            splits = [split for split in negative_set.splits.sizes if split in negative_set.origins]
            triples = np.concatenate([negative_set.splits[split] for split in splits])
            rule, kept, source = (
                np.concatenate([getattr(negative_set.origins[split], name) for split in splits])
                for name in ("rule", "kept", "source")
            )
            wrong = np.zeros(len(triples), dtype=bool)
            rows = np.flatnonzero(source == SOURCES.index("sub-rule"))
            wrong[rows] = _not_concluded(self._audited, triples[rows], rule[rows], kept[rows])
            ends = np.cumsum([len(negative_set.splits[split]) for split in splits])
            self._sub_rules[method] = dict(zip(splits, np.split(wrong, ends[:-1]), strict=True))
        return self._sub_rules[method]


# -- relevance-based ---------------------------------------------------------------------------------


def support_constants(audited: AuditedBenchmark) -> Mask:
    """Return bool[entities]: Const_sup, the constants of K in the support of some rule."""
    graph, engine = audited.graph, audited.over_premises
    in_support = np.zeros(len(graph.entities), dtype=bool)
    any_relation = graph.relations[int(graph.rels[0])] if len(graph.rels) else ""
    for body in dict.fromkeys(rule.body for rule in audited.rules):
        atoms = [part for part in body if isinstance(part, Atom)]
        terms = dict.fromkeys(t for atom in atoms for t in ((atom.subject,) if atom.is_type else atom.terms))
        for variable in (t for t in terms if isinstance(t, Variable)):
            in_support[engine.projection(Rule(body, Atom(variable, any_relation, variable))).left] = True
        named = [graph.entities.get(t.name) for t in terms if isinstance(t, Constant)]
        ids = [i for i in named if i is not None]
        if ids and engine.support(Rule(body, Atom(Constant("_"), any_relation, Constant("_")))):
            in_support[ids] = True
    return in_support


def _head_predicates(graph: KnowledgeGraph, rules: tuple[Rule, ...]) -> tuple[Mask, Mask]:
    """Return bool[relations], bool[entities]: the relations and the types in the heads of rules."""
    relations = np.zeros(len(graph.relations), dtype=bool)
    types = np.zeros(len(graph.entities), dtype=bool)
    for rule in rules:
        relation = relation_named(str(rule.head.relation), graph)
        if relation == graph.type_relation and isinstance(rule.head.object, Constant):
            type_id = graph.entities.get(rule.head.object.name)
            if type_id is not None:
                types[type_id] = True
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

    def _keys(self, triples: Triples, column: int) -> Ints:
        return np.asarray(triples[:, column].astype(np.int64) * len(self._graph.relations) + triples[:, 1])

    def of(self, triples: Triples) -> npt.NDArray[np.int8]:
        """Return int8[n], indices into `POSITIONS`: what could have been replaced; 0 for neither."""
        subjects, objects = self._keys(triples, 0), self._keys(triples, 2)
        subject = member(self._seen[0], subjects) & member(self._concluded[1], objects)
        object_ = member(self._seen[1], objects) & member(self._concluded[0], subjects)
        object_ &= triples[:, 1] != self._graph.type_relation
        codes = np.array([POSITIONS.index(name) for name in ("", "subject", "object", "either")], dtype=np.int8)
        return np.asarray(codes[subject + 2 * object_])


# -- query-guided ------------------------------------------------------------------------------------


def _not_concluded(audited: AuditedBenchmark, triples: Triples, rule_of: Ids, kept_by: Ids) -> Mask:
    """Return bool[n]: which triples their recorded sub-rules do not conclude from K.

    Sub-rules of one rule that keep the same atoms are checked together.
    """
    wrong = np.ones(len(triples), dtype=bool)
    undesired = kept_masks(audited.rules)
    for (number,), rows in grouped(rule_of.astype(np.int64)):
        if not 0 <= number < len(audited.rules):
            continue
        rule = audited.rules[number]
        kept = kept_by[rows]
        undesired_masks = set(undesired[number])
        masks = [m for m in np.unique(kept).tolist() if m in undesired_masks or _is_sub_rule(rule, m)]
        for group in groups_of(number, rule, masks):
            columns = {mask: column for column, mask in enumerate(group.masks)}
            in_group = np.flatnonzero(np.isin(kept, group.masks))
            owners = np.array([columns[mask] for mask in kept[in_group].tolist()], dtype=np.int64)
            group_rows = rows[in_group]
            (membership,) = members(audited.over_premises, [group], triples[group_rows])
            wrong[group_rows] = ~membership.of(owners)
    return wrong


def _is_sub_rule(rule: Rule, mask: int) -> bool:
    """Say whether a mask keeps a proper part of a rule's body, and what is left is safe."""
    if not 0 <= mask < 2 ** len(rule.body) - 1:
        return False
    kept = sub_rule(rule, mask)
    bound = {variable for atom in kept.atoms for variable in atom.variables}
    parts: tuple[BodyAtom, ...] = (kept.head, *kept.inequalities)
    # A negation must mean the same as in the rule: variables that the rule binds stay bound.
    negated = ({*part.variables}.intersection(rule.variables) for part in kept.negations)
    return all(bound.issuperset(part.variables) for part in parts) and all(bound >= v for v in negated)


# Negatives are checked in growing batches, since one witness is enough.
_FIRST = 64
_BATCH = 32

# An undesired rule without a witness is a warning if it has so many candidates: fewer may all have gone to
# valid and test.
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
        Those without a witness: the rule's number, and the mask of the parts that are kept.
    """

    pairs: int
    missing: tuple[tuple[int, int], ...]


def undesired_rules(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Every undesired rule has a witness in N_train and N_test of each method."""
    groups = sub_rule_groups(audited)
    if not any(groups):
        return
    for method, negative_set in audited.negatives.items():
        for split in ("train", "test"):
            audited.say(f"looking for witnesses of undesired rules in {split} of {method}")
            split_coverage = coverage(audited, groups, negative_set.splits[split], negative_set.origins.get(split))
            if not split_coverage.missing:
                continue
            message = (
                f"{len(split_coverage.missing):,} of {split_coverage.pairs:,} undesired rules that conclude "
                f"anything from K have no witness in N_{split} of `{method}`"
            )
            yield note(len(split_coverage.missing), message, _examples(audited, split_coverage.missing))
            if split == "train" and method_or_unknown(method).covers_sub_rules and audited.protocol == "sound":
                yield from _avoidable_gaps(audited, method, split_coverage)


def witnessed_subrules(benchmark: Benchmark, method: str, split: Split) -> tuple[int, int]:
    """Return how many undesired rules have a witness among the negatives of a split, and how many there are.

    An undesired rule counts once for each rule of R that it came from, and only if its atoms have a witness in K.
    """
    audited = AuditedBenchmark(benchmark)
    with contextlib.closing(audited):
        negative_set = audited.benchmark.negatives[method]
        triples, origins = negative_set.splits[split], negative_set.origins.get(split)
        found = coverage(audited, sub_rule_groups(audited), triples, origins)
    return found.pairs - len(found.missing), found.pairs


def sub_rule_groups(audited: AuditedBenchmark) -> list[list[SubRuleGroup]]:
    """Return the undesired rules, by the rule they came from."""
    rules = audited.rules
    return [
        groups_of(number, rule, masks)
        for number, (rule, masks) in enumerate(zip(rules, kept_masks(rules), strict=True))
    ]


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
        Their origins, if known: a sub-rule that made a negative need not be checked.
    """
    graph = audited.over_premises.graph
    order = np.argsort(triples[:, 1], kind="stable")
    ends = np.searchsorted(triples[order, 1], np.arange(len(graph.relations) + 1))
    recorded = _recorded_masks(origins)
    pairs, missing = 0, []
    for number, (rule, rule_groups) in enumerate(zip(audited.rules, groups, strict=True)):
        relation = relation_of(rule.head, graph)
        same_relation = triples[order[ends[relation] : ends[relation + 1]]]
        witnessed = _WitnessedSubRules(rule_groups, recorded.get(number, []))
        start, size = 0, _FIRST
        while start < len(same_relation) and not all(marks.all() for marks in witnessed.marks):
            witnessed.mark_concluding(audited.over_premises, same_relation[start : start + size])
            start, size = start + size, size * _BATCH
        possible = bool(rule_groups) and _has_witness(audited.over_premises, rule)
        for group, marks in zip(rule_groups, witnessed.marks, strict=True):
            # A witness of the whole body is one of each part of it.
            if marks.any() or possible or _has_witness(audited.over_premises, group.base):
                pairs += len(group.masks)
                missing += [(number, group.masks[i]) for i in np.flatnonzero(~marks).tolist()]
    return Coverage(pairs, tuple(missing))


class _WitnessedSubRules:
    """Which sub-rules of a rule have a witness.

    Parameters
    ----------
    groups
        The sub-rules by their atoms, fewest first.
    masks
        Sub-rules whose witness is already recorded.
    """

    def __init__(self, groups: Sequence[SubRuleGroup], masks: Sequence[int]) -> None:
        self.groups = groups
        self._masks = [np.array(group.masks, dtype=np.int64) for group in groups]
        self.marks = [np.zeros(len(group.masks), dtype=bool) for group in groups]
        self._mark(masks)

    def mark_concluding(self, engine: Engine, triples: Triples) -> None:
        """Mark the sub-rules that conclude one of these triples; those with most atoms first."""
        inside = self._inside(engine, triples)
        for group, marks in zip(reversed(self.groups), reversed(self.marks), strict=True):
            if not marks.all() and len(inside[group.atoms]):
                (membership,) = members(engine, [group], triples[inside[group.atoms]], within=True)
                hit = (membership.by.any(axis=0) | bool(membership.every.any())) & ~marks
                self._mark([group.masks[i] for i in np.flatnonzero(hit).tolist()])

    def _inside(self, engine: Engine, triples: Triples) -> dict[int, Ints]:
        """Return for each group's atoms the rows of the triples that they alone conclude."""
        concluded: dict[int, Ints] = {}
        for group, marks in zip(self.groups, self.marks, strict=True):
            rows = np.arange(len(triples))
            for atoms, concluded_by_fewer in concluded.items():
                if atoms & group.atoms == atoms:
                    rows = np.intersect1d(rows, concluded_by_fewer, assume_unique=True)
            if len(rows) and not marks.all():
                rows = rows[engine.derives([group.base], triples[rows])]
            concluded[group.atoms] = rows
        return concluded

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


def _recorded_masks(origins: Origins | None) -> dict[int, list[int]]:
    """Return for each rule the masks of its sub-rules that made a negative."""
    if origins is None:
        return {}
    by_sub_rule = origins.source == SOURCES.index("sub-rule")
    pairs = np.unique(np.column_stack([origins.rule[by_sub_rule], origins.kept[by_sub_rule]]), axis=0)
    masks: dict[int, list[int]] = {}
    for rule, mask in pairs.tolist():
        masks.setdefault(rule, []).append(mask)
    return masks


def _maximal(masks: Sequence[int]) -> list[int]:
    """Return the masks that no other one contains."""
    maximal: list[int] = []
    for mask in sorted(masks, key=int.bit_count, reverse=True):
        if not any(mask & big == mask for big in maximal):
            maximal.append(mask)
    return maximal


def _avoidable_gaps(audited: AuditedBenchmark, method: str, split_coverage: Coverage) -> Iterator[Finding]:
    """Warn about undesired rules without a witness although they have many candidates."""
    if split_coverage.pairs >= len(audited.negatives[method].splits.train):
        return
    few: list[tuple[int, int]] = []
    many: list[tuple[int, int]] = []
    counted = 0
    for rule, mask in sorted(split_coverage.missing, key=lambda pair: (pair[1].bit_count(), pair)):
        # A longer body concludes no more than a shorter one.
        if any(r == rule and mask & small == small for r, small in few):
            continue
        if counted == _COUNTED:
            break
        counted += 1
        (many if _candidates(audited, method, rule, mask) >= _MANY else few).append((rule, mask))
    if many:
        message = f"{len(many):,} undesired rules have no witness in N_train of `{method}` although they could have"
        yield warning(len(many), message, _examples(audited, tuple(many)))


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
    held_out = [audited.packed[split, method] for split in ("valid", "test")]
    triples = triples[~np.isin(keys, np.concatenate(held_out))]
    return int((~audited.over_everything.derives(audited.rules, triples)).sum())


def _examples(audited: AuditedBenchmark, pairs: tuple[tuple[int, int], ...]) -> list[Example]:
    ordered = sorted(pairs, key=lambda pair: (pair[1].bit_count(), pair))
    return [Example(f"`{sub_rule(audited.rules[i], mask)}`, of `{audited.rules[i]}`") for i, mask in ordered[:5]]
