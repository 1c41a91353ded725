"""Checks of negatives.

Checks of the negatives against the rules: what is labelled false must not be true after all.

Checks of near misses: each follows from the edited rule that is told, and heads say nothing.

Checks of where negatives are said to come from: each satisfies its method's condition (section 3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.coverage import by_atoms, concluded
from loginfer.benchmark.auditing.material import Material, set_name
from loginfer.benchmark.auditing.report import CannotCheckError, Problem, error, note, warning
from loginfer.benchmark.benchmark import POSITIONS, Origins, Split
from loginfer.benchmark.folder.manifest import NEGATIVES
from loginfer.benchmark.folder.tables import is_type_part
from loginfer.benchmark.negatives.methods import SOURCES, method_or_unknown
from loginfer.benchmark.negatives.near_miss_search import heads_of
from loginfer.benchmark.program import has_negations, kept_masks, sub_rule
from loginfer.engine import Engine
from loginfer.engine.binding import relation_named
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import distinct_keys, grouped, member
from loginfer.logic.rule import Atom, BodyAtom, Constant, Rule, Variable
from loginfer.logic.stratification import stratified
from loginfer.logic.subrules import EDITS, Edit, edits_of, near_miss

# A benchmark that does not promise sound negatives is warned about from this share on.
NOTABLE = 0.01
# So many negatives that follow in several steps deserve attention whatever was promised.
MANY = 0.1

# The materialisation is given up when it becomes so many times larger than P_all, or so much larger.
_GROWTH = 10
_ALWAYS = 1_000_000


def derivable_negatives(material: Material) -> Iterator[Problem]:
    """No negative follows from the rules and P_all in one step; only `sound` promises that.

    With negation, what follows from K or P_train need not follow from P_all; it is looked for as well.
    """
    rules = material.rules
    for method, made in material.negatives.items():
        true = {split: material.over_everything.derives(rules, triples) for split, triples in made.splits.items()}
        for engine in _before(material):
            for split, triples in made.splits.items():
                true[split] |= engine.derives(rules, triples)
        yield from _told(material, method, true, "in one step")


def _before(material: Material) -> list[Engine]:
    """Return engines over less than P_all, from which more may follow if there are negations."""
    if not has_negations(material.rules):
        return []
    return [material.over_train] if material.benchmark.kg is None else [material.over_premises, material.over_train]


def entailed_negatives(material: Material) -> Iterator[Problem]:
    """No negative is in the materialisation of P_all; only a recipe with `materialised` promises that."""
    rules = material.rules
    negatives = material.negatives
    if not material.closure:
        raise CannotCheckError("the materialisation was not asked for")
    everything = material.benchmark.everything
    limit = max(_GROWTH * len(everything), _ALWAYS)
    if material.depth > 1 and material.benchmark.recipe is not None:
        limit = material.benchmark.recipe.max_triples
    try:
        stratified(rules)
    except InputError as problem:
        raise CannotCheckError(problem.message) from None
    try:
        closure = material.over_everything.materialise(rules, max_triples=limit, progress=material.progress)
    except LimitError:
        raise CannotCheckError(f"the materialisation has more than {limit:,} triples beyond P_all") from None
    true = everything.with_triples(closure.triples)
    for method, made in negatives.items():
        found = {split: true.contains(triples) for split, triples in made.splits.items()}
        yield from _told(material, method, found, "in any number of steps")


def _told(material: Material, method: str, true: Mapping[Split, npt.NDArray[np.bool_]], how: str) -> Iterator[Problem]:
    counts = {split: int(found.sum()) for split, found in true.items()}
    if not any(counts.values()):
        return
    shares = {split: count / max(len(true[split]), 1) for split, count in counts.items()}
    recipe = material.benchmark.recipe
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
    splits = material.benchmark.negatives[method].splits
    examples = [e for split, found in true.items() for e in material.examples(splits[split][found], split, method)]
    yield say(count, message, examples)


Mask = npt.NDArray[np.bool_]


def near_misses_hold(material: Material, triples: Triples, origins: Origins) -> Mask:
    """Return bool[n]: which triples the near misses that are told conclude from K."""
    fine = np.zeros(len(triples), dtype=bool)
    columns = (origins.rule, origins.edit, origins.part, origins.predicate)
    for told, places in grouped(*(column.astype(np.int64) for column in columns)):
        edited = told_near_miss(material.graph, material.rules, told)
        if edited is not None:
            fine[places] = material.over_premises.derives([edited], triples[places])
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


def balanced_heads(material: Material) -> Iterator[Problem]:
    """Near misses: each split has as many negatives with a head as conclusions with it."""
    for method, made in material.negatives.items():
        if method_or_unknown(method).size_of != "conclusions":
            continue
        for split, triples in made.splits.items():
            positives = material.benchmark.positives[split]
            conclusions = positives[material.over_premises.derives(material.rules, positives)]
            heads = np.concatenate([heads_of(material.graph, t) for t in (conclusions, triples)])
            _, place = np.unique(heads, return_inverse=True)
            sides = np.split(place.ravel(), [len(conclusions)])
            counts = [np.bincount(side, minlength=int(place.max(initial=-1)) + 1) for side in sides]
            missing, spare = (int(np.maximum(a - b, 0).sum()) for a, b in (counts, counts[::-1]))
            name = set_name(split, method)
            if spare:
                message = f"{name} of `{method}` has {spare:,} triples more with some head than conclusions"
                yield error(spare, message)
            if missing:
                say = warning if len(triples) < made.asked.get(split, 0) else error
                yield say(missing, f"{name} of `{method}` lacks {missing:,} triples with the head of conclusions")


def origins_agree(material: Material) -> Iterator[Problem]:
    """`negatives.parquet` tells of exactly the negatives in the text files."""
    raw = material.folder
    if raw.origins is None:
        raise CannotCheckError("there is no negatives.parquet that can be read")
    keys = material.graph.keys
    told_of: list[npt.NDArray[np.int64]] = []
    for method, made in material.negatives.items():
        for split, triples in made.splits.items():
            rows = raw.origins.rows(method, split)
            told_of.append(rows)
            told = distinct_keys(keys.pack(raw.origins.triples[rows]))
            differ = np.setxor1d(told, keys.pack(triples), assume_unique=True)
            count = max(len(differ), len(rows) - len(told))
            if count:
                yield error(
                    count,
                    f"`{NEGATIVES}` and `{material.file(split, method)}` differ in {count:,} triples",
                    material.examples(keys.unpack(differ), split, method),
                )
    rest = len(raw.origins) - sum(map(len, told_of))
    if rest:
        yield error(rest, f"`{NEGATIVES}` tells of {rest:,} triples of methods that the folder does not have")


def origins_are_true(material: Material) -> Iterator[Problem]:
    """Each negative satisfies the condition of the method that is said to have made it."""
    if not any(made.origins for made in material.negatives.values()):
        raise CannotCheckError("where the negatives came from is not known (no negatives.parquet)")
    conditions = _Conditions(material)
    for method, made in material.negatives.items():
        for split, origins in made.origins.items():
            triples = made.splits[split]
            of = f"{set_name(split, method)} of `{method}`"
            fitting = [SOURCES.index(source) for source in method_or_unknown(method).sources]
            wrong = ~np.isin(origins.source, fitting)
            if wrong.any():
                message = f"{int(wrong.sum()):,} triples of {of} have a source that this method does not use"
                yield error(int(wrong.sum()), message, material.examples(triples[wrong], split, method))
            for source in np.unique(origins.source[~wrong]).tolist():
                places = np.flatnonzero((origins.source == source) & ~wrong)
                yield from conditions.told(SOURCES[source], method, split, places)


class _Conditions:
    """The conditions that the sources put on their triples; what several sets need is computed once."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self._positions: dict[str, _Positions] = {}
        self._constants: Mask | None = None
        self._sub_rules: dict[str, dict[str, Mask]] = {}

    def told(self, source: str, method: str, split: str, places: npt.NDArray[np.int64]) -> Iterator[Problem]:
        """Yield what is wrong with the triples of one source at these places."""
        made = self._material.negatives[method]
        triples, origins = made.splits[split][places], made.origins[split][places]
        if source == "sub-rule":
            wrong, what = (self._sub_rule(method)[split][places], "are not concluded by the sub-rule that is told")
        else:
            conditions: dict[str, Callable[[str, Triples, Origins], tuple[Mask, str]]] = {
                "relevance": self._relevance,
                "position": self._position,
                "object": self._object,
                "near-miss": self._near_miss,
            }
            own = method_or_unknown(method).conditions.get(source)
            if own is None:
                wrong, what = conditions[source](split, triples, origins)
            else:
                wrong, what = own(self._material, split, triples, origins)
        if wrong.any():
            count = int(wrong.sum())
            message = f"{count:,} triples of {set_name(split, method)} of `{method}` {what}"
            yield error(count, message, self._material.examples(triples[wrong], split, method))

    def _relevance(self, _: str, triples: Triples, __: Origins) -> tuple[Mask, str]:
        graph = self._material.graph
        if self._constants is None:
            self._constants = support_constants(self._material)
        fine = self._constants[triples[:, 0]]
        relations, types = _head_predicates(graph, self._material.rules)
        is_type = _is_type(graph, triples)
        fine &= np.where(is_type, types[triples[:, 2]], relations[triples[:, 1]])
        fine &= is_type | self._constants[triples[:, 2]]
        return ~fine, "have a predicate of no rule's head, or a constant of no rule's support"

    def _position(self, split: str, triples: Triples, origins: Origins) -> tuple[Mask, str]:
        if split not in self._positions:
            self._positions[split] = _Positions(self._material, split)
        told = self._positions[split].of(triples)
        return told != origins.position, "do not differ from a conclusion in the position that is told"

    def _near_miss(self, _: str, triples: Triples, origins: Origins) -> tuple[Mask, str]:
        return ~near_misses_hold(self._material, triples, origins), "are not concluded by the near miss that is told"

    def _object(self, split: str, triples: Triples, _: Origins) -> tuple[Mask, str]:
        graph, positives = self._material.graph, self._material.benchmark.positives[split]
        size = len(graph.relations)
        known = distinct_keys(positives[:, 0].astype(np.int64) * size + positives[:, 1])
        return (
            ~member(known, triples[:, 0].astype(np.int64) * size + triples[:, 1]),
            "do not differ from a positive of their split in the object alone",
        )

    def _sub_rule(self, method: str) -> dict[str, Mask]:
        """Return for each split which negatives their sub-rule does not conclude; all are asked at once."""
        if method not in self._sub_rules:
            made = self._material.negatives[method]
            known = [split for split in made.splits.sizes if split in made.origins]
            triples = np.concatenate([made.splits[split] for split in known])
            rule, kept, source = (
                np.concatenate([getattr(made.origins[split], name) for split in known])
                for name in ("rule", "kept", "source")
            )
            wrong = np.zeros(len(triples), dtype=bool)
            asked = np.flatnonzero(source == SOURCES.index("sub-rule"))
            wrong[asked] = _not_concluded(self._material, triples[asked], rule[asked], kept[asked])
            ends = np.cumsum([len(made.splits[split]) for split in known])
            self._sub_rules[method] = dict(zip(known, np.split(wrong, ends[:-1]), strict=True))
        return self._sub_rules[method]


# -- relevance-based ---------------------------------------------------------------------------------


def support_constants(material: Material) -> Mask:
    """Return bool[entities]: Const_sup, the constants of K in the support of some rule."""
    graph, engine = material.graph, material.over_premises
    found = np.zeros(len(graph.entities), dtype=bool)
    any_relation = graph.relations[int(graph.rels[0])] if len(graph.rels) else ""
    for body in dict.fromkeys(rule.body for rule in material.rules):
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


def _is_type(graph: KnowledgeGraph, triples: Triples) -> Mask:
    if graph.type_relation is None:
        return np.zeros(len(triples), dtype=bool)
    return np.asarray(triples[:, 1] == graph.type_relation)


# -- position-aware ----------------------------------------------------------------------------------


class _Positions:
    """In which position a triple differs from a conclusion C of a split.

    The subject s' of (s', R, o): some (s, R, o) is in C, and some (s', R, o') in P_all; the object likewise.
    Of type triples only the subject is replaced, by one that has some type.
    """

    def __init__(self, material: Material, split: str) -> None:
        self._graph = material.graph
        triples = material.benchmark.positives[split]
        conclusions = triples[material.over_premises.derives(material.rules, triples)]
        everything = material.benchmark.everything.triples
        self._seen = tuple(distinct_keys(self._keys(everything, column)) for column in (0, 2))
        self._concluded = tuple(distinct_keys(self._keys(conclusions, column)) for column in (0, 2))

    def _keys(self, triples: Triples, column: int) -> npt.NDArray[np.int64]:
        return np.asarray(triples[:, column].astype(np.int64) * len(self._graph.relations) + triples[:, 1])

    def of(self, triples: Triples) -> npt.NDArray[np.int8]:
        """Return int8[n], places in `POSITIONS`: what could have been replaced; 0 for neither."""
        subjects, objects = self._keys(triples, 0), self._keys(triples, 2)
        subject = member(self._seen[0], subjects) & member(self._concluded[1], objects)
        object_ = member(self._seen[1], objects) & member(self._concluded[0], subjects)
        object_ &= ~_is_type(self._graph, triples)
        names = ("", "subject", "object", "either")
        places = np.array([POSITIONS.index(name) for name in names], dtype=np.int8)
        return np.asarray(places[subject + 2 * object_])


# -- query-guided ------------------------------------------------------------------------------------


def _not_concluded(
    material: Material, triples: Triples, rule_of: npt.NDArray[np.int32], kept_by: npt.NDArray[np.int32]
) -> Mask:
    """Return bool[n]: which triples the sub-rules that are told do not conclude from K.

    The sub-rules of one rule that keep the same atoms are asked about together.
    """
    wrong = np.ones(len(triples), dtype=bool)
    undesired = kept_masks(material.rules)
    for number, places in _groups(rule_of).items():
        if not 0 <= number < len(material.rules):
            continue
        rule = material.rules[number]
        kept = kept_by[places]
        known = set(undesired[number])
        masks = [m for m in np.unique(kept).tolist() if m in known or _is_sub_rule(rule, m)]
        for group in by_atoms(rule, masks):
            columns = {mask: column for column, mask in enumerate(group.masks)}
            mine = np.flatnonzero(np.isin(kept, group.masks))
            owners = np.array([columns[mask] for mask in kept[mine].tolist()], dtype=np.int64)
            asked = places[mine]
            wrong[asked] = ~concluded(material.over_premises, group, triples[asked]).by_owner(owners)
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


def _groups(keys: npt.NDArray[np.int32]) -> dict[int, npt.NDArray[np.int64]]:
    """Return the places of each key."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    return dict(zip(distinct.tolist(), np.split(order, starts[1:]), strict=True))
