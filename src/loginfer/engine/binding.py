"""Rules as an engine sees them: names become ids of one graph, and bodies fall into independent parts.

Atoms, inequalities and negations hold variables together; a variable whose value is fixed no
longer does. The parts that remain are independent of each other: a witness of the body is a
witness of each part, chosen on its own. So the conclusions of a body that falls apart between the head's
variables are a product, and the smallest witness of a body is made of the smallest witnesses of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE, TYPE_NAMES, KnowledgeGraph
from loginfer.kg.graph import Ids, Ints, Mask
from loginfer.logic.rule import Atom, Constant, Negation, Rule, Term, Variable

# The id of a name that the graph does not have: no triple matches it.
ABSENT = -1

# A term is a variable, as its index in `variables` (0, 1, …), or a constant c, as ~id (-1, -2, …).
BoundTerm: TypeAlias = int


@dataclass(frozen=True, slots=True)
class BoundAtom:
    """An atom over ids.

    Parameters
    ----------
    subject, object
        Indices of variables (≥ 0) or, for a constant, the complement `~id` of its id (< 0).
    relation
        The relation's id, or `ABSENT`.
    """

    subject: BoundTerm
    relation: int
    object: BoundTerm


@dataclass(frozen=True, slots=True)
class BoundNegation:
    """A negated atom over ids: there is no pair of the relation with these ends.

    Parameters
    ----------
    subject, object
        As for an atom; None for an end that can be anything.
    relation
        The relation's id.
    loop
        Whether both ends can be anything, but must be the same.
    """

    subject: BoundTerm | None
    relation: int
    object: BoundTerm | None
    loop: bool = False

    @property
    def variables(self) -> tuple[int, ...]:
        """The distinct variables, as their indices."""
        return tuple(dict.fromkeys(t for t in (self.subject, self.object) if t is not None and t >= 0))


@dataclass(frozen=True, slots=True)
class Bound:
    """A rule over ids.

    Parameters
    ----------
    variables
        The rule's variables, in the order of `Rule.variables`.
    atoms
        The distinct ≠-free atoms of the body, in order.
    inequalities
        Pairs of bound terms that must differ, one of them a variable; the distinct ones, smaller first.
    head
        The head.
    empty
        Whether the body cannot have a witness on this graph: it mentions a relation or constant that
        the graph does not have, or an inequality of a term with itself.
    negations
        The distinct negated atoms, in order, without those that hold whatever the graph has.
    """

    variables: tuple[Variable, ...]
    atoms: tuple[BoundAtom, ...]
    inequalities: tuple[tuple[BoundTerm, BoundTerm], ...]
    head: BoundAtom
    empty: bool
    negations: tuple[BoundNegation, ...] = ()


def bind(rule: Rule, graph: KnowledgeGraph) -> Bound:
    """Look up a rule's names in a graph.

    Raises
    ------
    InputError
        When the head uses a name the graph does not have: its conclusions would have no ids.
    """
    position = {variable: i for i, variable in enumerate(rule.variables)}
    empty = False

    def term(t: Term) -> BoundTerm | None:
        if isinstance(t, Variable):
            return position[t]
        entity = graph.entities.get(t.name)
        return None if entity is None else ~entity

    atoms: list[BoundAtom] = []
    for atom in rule.atoms:
        subject, relation, object_ = term(atom.subject), relation_of(atom, graph), term(atom.object)
        if subject is None or object_ is None or relation == ABSENT:
            empty = True
            continue
        atoms.append(BoundAtom(subject, relation, object_))
    inequalities: list[tuple[BoundTerm, BoundTerm]] = []
    for inequality in rule.inequalities:
        if inequality.left == inequality.right:
            empty = True
        left, right = term(inequality.left), term(inequality.right)
        # A constant the graph does not have differs from everything, and so do two constants.
        if left is not None and right is not None and left != right and max(left, right) >= 0:
            inequalities.append((min(left, right), max(left, right)))

    negations = [
        bound_negation for negation in rule.negations if (bound_negation := _bind_negation(negation, position, graph))
    ]
    head_subject, head_object = term(rule.head.subject), term(rule.head.object)
    head_relation = relation_of(rule.head, graph)
    if head_subject is None or head_object is None or head_relation == ABSENT:
        hint = "extend the graph's vocabularies by the rules' names first (engine.extend)"
        raise InputError(f"the head of `{rule}` uses a name that the graph does not have", hint=hint)
    head = BoundAtom(head_subject, head_relation, head_object)
    return Bound(rule.variables, distinct(atoms), distinct(inequalities), head, empty, distinct(negations))


T = TypeVar("T")


def distinct(parts: Iterable[T]) -> tuple[T, ...]:
    """Return parts without repetitions, in their order."""
    return tuple(dict.fromkeys(parts))


def head_values(head: BoundAtom, conclusion: Sequence[int]) -> dict[int, int] | None:
    """Return the values that a triple of ids gives to a head's variables, or None if it is no such conclusion."""
    subject, relation, object_ = map(int, conclusion)
    values: dict[int, int] = {}
    for term, value in ((head.subject, subject), (head.object, object_)):
        if (values.setdefault(term, value) if term >= 0 else ~term) != value:
            return None
    return values if relation == head.relation else None


def fits_head(head: BoundAtom, subjects: Ids, objects: Ids) -> Mask:
    """Return bool[n]: which pairs have a head's constants, and the same value twice if the head has."""
    fits = np.ones(len(subjects), dtype=bool)
    for term, column in ((head.subject, subjects), (head.object, objects)):
        if term < 0:
            fits &= column == ~term
    if head.subject == head.object:
        fits &= subjects == objects
    return fits


def _bind_negation(negation: Negation, position: Mapping[Variable, int], graph: KnowledgeGraph) -> BoundNegation | None:
    """Look up a negated atom; None if it mentions what the graph does not have, so that it always holds."""
    relation = relation_of(negation.atom, graph)
    ends: list[BoundTerm | None] = []
    for t in negation.terms:
        if isinstance(t, Variable):
            ends.append(position.get(t))
        elif (entity := graph.entities.get(t.name)) is None:
            return None
        else:
            ends.append(~entity)
    if relation == ABSENT:
        return None
    subject, object_ = ends
    loop = subject is None and negation.terms[0] == negation.terms[1]
    return BoundNegation(subject, relation, object_, loop)


def relation_of(atom: Atom, graph: KnowledgeGraph) -> int:
    """Return the id of an atom's relation, or `ABSENT`; a type atom means the graph's type predicate."""
    return relation_named(str(atom.relation), graph)


def relation_named(name: str, graph: KnowledgeGraph) -> int:
    """Return the id of a relation in a rule, or `ABSENT`.

    `RDF_TYPE` means the graph's type predicate, if it has one, and so do the other forms of `rdf:type`
    unless the graph has a relation of that name.
    """
    relation = None if name == RDF_TYPE else graph.relations.get(name)
    if relation is None and name in TYPE_NAMES:
        relation = graph.type_relation
    if relation is None:
        relation = graph.relations.get(name)
    return ABSENT if relation is None else relation


def head_names(rules: Iterable[Rule]) -> tuple[list[str], list[str]]:
    """Return the entities and the relations in the heads of rules, sorted."""
    entities: set[str] = set()
    relations: set[str] = set()
    for rule in rules:
        relations.add(str(rule.head.relation))
        entities.update(t.name for t in rule.head.terms if isinstance(t, Constant))
    return sorted(entities), sorted(relations)


def extend(graph: KnowledgeGraph, rules: Iterable[Rule]) -> KnowledgeGraph:
    """Return the graph over vocabularies that hold every name of the rules' heads; ids may change."""
    entities, relations = head_names(rules)
    return graph.with_names(entities=entities, relations=relations)


def unknown_relations(graph: KnowledgeGraph, rules: Sequence[Rule]) -> list[str]:
    """Return the relations in rule bodies that neither the graph has nor any rule can derive, sorted."""
    bodies = {rule: {str(atom.relation) for atom in rule.atoms} for rule in rules}
    in_use = set(graph.preds.tolist())
    unknown = {name for body in bodies.values() for name in body if relation_named(name, graph) not in in_use}
    while True:
        derivable = {str(rule.head.relation) for rule, body in bodies.items() if not body & unknown}
        if not derivable & unknown:
            return sorted(unknown)
        unknown -= derivable


@dataclass(frozen=True, slots=True)
class BodyPart:
    """Variables that depend on each other.

    Parameters
    ----------
    variables
        Indices of the part's variables, ascending.
    context
        Those of the fixed variables that it depends on, in the order in which they were given.
    """

    variables: tuple[int, ...]
    context: tuple[int, ...]


# Given a part and int32[m, context], distinct values of its context that have a witness: int32[m, variables],
# the smallest witness of each.
Smallest: TypeAlias = Callable[[BodyPart, Ids], Ids]


def parts(bound: Bound, fixed: Sequence[int] = ()) -> list[BodyPart]:
    """Return the parts of a body in the order of their first variables, without the `fixed` variables."""
    pairs = [(atom.subject, atom.object) for atom in bound.atoms] + list(bound.inequalities)
    edges = [{term for term in pair if term >= 0} for pair in pairs]
    edges += [set(negation.variables) for negation in bound.negations]
    rest = [v for v in range(len(bound.variables)) if v not in fixed]
    separated = []
    while rest:
        reached, grown = set[int](), {rest[0]}
        while grown != reached:
            reached = grown
            inside = reached.difference(fixed)
            grown = reached.union(*(edge for edge in edges if edge & inside))
        separated.append(BodyPart(tuple(v for v in rest if v in reached), tuple(v for v in fixed if v in reached)))
        rest = [v for v in rest if v not in reached]
    return separated


def separate(bound: Bound, pair: tuple[int, int]) -> Bound | None:
    """Return the body without `a != b`, if nothing else connects these two variables; else None."""
    rest = tuple(inequality for inequality in bound.inequalities if set(inequality) != set(pair))
    apart = replace(bound, inequalities=rest)
    if any(set(pair) <= set(part.variables) for part in parts(apart)):
        return None
    return apart


def combine(bound: Bound, values: Ids, smallest: Smallest) -> Ids:
    """Return the smallest witness of each conclusion, int32[n, variables], part by part.

    Parameters
    ----------
    bound
        The rule.
    values
        int32[n, 2]: subjects and objects of conclusions of this rule.
    smallest
        Finds the smallest witnesses of one part. It is called once, with the distinct values of the part's context.
    """
    columns = {t: values[:, i] for i, t in enumerate((bound.head.subject, bound.head.object)) if t >= 0}
    rows = np.empty((len(values), len(bound.variables)), dtype=np.int32)
    for variable, column in columns.items():
        rows[:, variable] = column
    for part in parts(bound, tuple(columns)):
        contexts, row_of = _distinct([columns[v] for v in part.context], len(values))
        rows[:, part.variables] = smallest(part, contexts)[row_of]
    return rows


def _distinct(columns: Sequence[Ids], size: int) -> tuple[Ids, Ints | slice]:
    """Return the distinct rows of at most two columns, ascending, and where each row is among them."""
    keys = np.zeros(size, dtype=np.int64)
    for column in columns:
        keys = keys << 32 | column
    row_of: Ints | slice = slice(None)
    if (keys[1:] <= keys[:-1]).any():  # conclusions mostly come in order, without duplicates
        keys, row_of = np.unique(keys, return_inverse=True)
    rows = np.empty((len(keys), len(columns)), dtype=np.int32)
    for i in range(len(columns)):
        rows[:, i] = keys >> 32 * (len(columns) - 1 - i) & 0x7FFFFFFF
    return rows, row_of
