"""Checks of where negatives are said to come from: each satisfies its method's condition (section 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.material import Material, set_name
from loginfer.benchmark.auditing.near_misses import near_misses_hold
from loginfer.benchmark.auditing.report import CannotCheckError, Problem, error
from loginfer.benchmark.auditing.sub_rules import by_atoms, concluded
from loginfer.benchmark.layout import NEGATIVES
from loginfer.benchmark.lookup import member
from loginfer.benchmark.negatives.undesired import kept_masks, sub_rule
from loginfer.benchmark.values import POSITIONS, SOURCES, Origins
from loginfer.engine.binding import relation_named
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.triples import distinct_keys
from loginfer.logic.rule import Atom, BodyAtom, Rule
from loginfer.logic.terms import Constant, Variable

__all__ = ["origins_agree", "origins_are_true", "support_constants"]

Mask = npt.NDArray[np.bool_]

_FITTING: Mapping[str, tuple[str, ...]] = {
    "rb": ("relevance",),
    "pa": ("position",),
    "qg": ("sub-rule", "position"),
    "rc": ("object",),
    "nm": ("near-miss", "position"),
}


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
            fitting = [SOURCES.index(source) for source in _FITTING.get(method, SOURCES)]
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
            wrong, what = (
                self._sub_rule(method)[split][places],
                "are not concluded by the sub-rule that is told",
            )
        else:
            conditions: dict[str, Callable[[str, Triples, Origins], tuple[Mask, str]]] = {
                "relevance": self._relevance,
                "position": self._position,
                "object": self._object,
                "near-miss": self._near_miss,
            }
            wrong, what = conditions[source](split, triples, origins)
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
        return ~near_misses_hold(
            self._material, triples, origins
        ), "are not concluded by the near miss that is told"

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
