"""Strata of a program with negation: a predicate is complete before a rule negates it.

A predicate is a relation or, in type atoms, a type. A predicate depends on those in the bodies of the rules
that conclude it. If none depends on its own negation, predicates fall into strata: a rule of one stratum
reads its own and earlier ones, and negates earlier ones only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE, TYPE_NAMES
from loginfer.logic.rule import Atom, Rule, Variable

# A relation, or the type predicate with a type; None stands for every type.
Predicate: TypeAlias = tuple[str, str | None]


def predicate_of(atom: Atom) -> Predicate:
    """Return the predicate of an atom; an atom about all types, such as (x,type,y), has `None` for the type."""
    name = str(atom.relation)
    if name not in TYPE_NAMES:
        return (name, None)
    return (RDF_TYPE, None if isinstance(atom.object, Variable) else atom.object.name)


def negated_predicates(rule: Rule) -> tuple[Predicate, ...]:
    """Return the distinct predicates under the negations of a rule."""
    return tuple(dict.fromkeys(predicate_of(negation.atom) for negation in rule.negations))


def stratified(rules: Sequence[Rule]) -> tuple[tuple[Rule, ...], ...]:
    """Return the strata of a program, each in the order of the program; without negation there is one.

    Raises
    ------
    InputError
        When a predicate depends on its own negation, with the chain of dependencies.
    """
    if not any(rule.negations for rule in rules):
        return (tuple(rules),) if rules else ()
    # If a rule is about all types, types cannot be told apart.
    types_together = any(predicate_of(atom) == (RDF_TYPE, None) for rule in rules for atom in rule)

    def key(atom: Atom) -> Predicate:
        predicate = predicate_of(atom)
        return (RDF_TYPE, None) if types_together and predicate[0] == RDF_TYPE else predicate

    heads = [key(rule.head) for rule in rules]
    # For each predicate that a rule concludes those it depends on, and whether a rule negates them.
    needs: dict[Predicate, dict[Predicate, bool]] = {head: {} for head in heads}
    for head, rule in zip(heads, rules, strict=True):
        for atom in rule.atoms:
            needs[head].setdefault(key(atom), False)
        for negation in rule.negations:
            needs[head][key(negation.atom)] = True
    levels = _levels(needs)
    count = 1 + max(levels.values())
    strata = [tuple(r for r, h in zip(rules, heads, strict=True) if levels[h] == i) for i in range(count)]
    return tuple(stratum for stratum in strata if stratum)


def _levels(needs: dict[Predicate, dict[Predicate, bool]]) -> dict[Predicate, int]:
    """Return for each predicate the largest number of negations on a path to it."""
    levels = dict.fromkeys(needs, 0)
    changed = True
    while changed:
        changed = False
        for head, below in needs.items():
            level = max((levels.get(p, -1) + negated for p, negated in below.items()), default=0)
            if level > levels[head]:
                levels[head] = level
                changed = True
            if levels[head] > len(needs):
                raise _cycle(needs)
    return levels


def _cycle(needs: dict[Predicate, dict[Predicate, bool]]) -> InputError:
    """Return the error for a program in which some predicate depends on its own negation."""
    for head in needs:
        for negated in (p for p, is_negated in needs[head].items() if is_negated):
            path = _path(needs, negated, head)
            if path is not None:
                steps = [f"`{_text(head)}` needs `not {_text(negated)}`"]
                for above, below in pairwise(path):
                    prefix = "not " if needs[above][below] else ""
                    steps.append(f"`{_text(above)}` needs `{prefix}{_text(below)}`")
                hint = "no predicate may depend on its own negation: leave one of these rules out"
                return InputError(f"the rules are not stratified: {', '.join(steps)}", hint=hint)
    raise ValueError("no predicate depends on its own negation")


def _path(needs: dict[Predicate, dict[Predicate, bool]], start: Predicate, goal: Predicate) -> list[Predicate] | None:
    """Return a shortest path of dependencies from one predicate to another."""
    paths: dict[Predicate, list[Predicate]] = {start: [start]}
    queue = [start]
    while queue:
        predicate = queue.pop(0)
        if predicate == goal:
            return paths[predicate]
        for below in needs.get(predicate, {}):
            if below not in paths:
                paths[below] = [*paths[predicate], below]
                queue.append(below)
    return None


def _text(predicate: Predicate) -> str:
    name, kind = predicate
    if name != RDF_TYPE:
        return name
    return "type" if kind is None else f"type {kind}"
