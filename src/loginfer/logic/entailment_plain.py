"""Canonical instances, closed fact by fact.

Canonical instances: a rule's body as a graph, its variables as constants that nobody has heard of.

A frozen variable is the variable itself: it differs from every constant and every other variable, and a
derivation reads as the rule does. Variables that are identified are replaced by the first of them, or by the
constant they are identified with.

Materialisation of any rules on a canonical instance, fact by fact, with the reason for each.

The plain way, for some hundreds of rules of any shape; `entailment_compiled` is the one for many.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loginfer.errors import LimitError
from loginfer.logic.rule import Atom, Constant, Rule, Term, Variable


class Step(NamedTuple):
    """One step of a derivation: a rule, what it was applied to, and what it concludes.

    Parameters
    ----------
    rule
        The rule.
    premises
        The atoms of its body, in their order, with the terms of the canonical instance.
    conclusion
        Its head, likewise.
    """

    rule: Rule
    premises: tuple[Atom, ...]
    conclusion: Atom

    def __str__(self) -> str:
        premises = ", ".join(map(str, self.premises))
        return f"{premises} -> {self.conclusion}  by  {self.rule}"


@dataclass(frozen=True)
class Instance:
    """A canonical instance of a rule.

    Parameters
    ----------
    rule
        The rule.
    names
        For each of `rule.variables` the term that stands for it.
    """

    rule: Rule
    names: tuple[Term, ...]

    @classmethod
    def of(cls, rule: Rule) -> Instance | None:
        """Return the instance in which all variables differ; None if the body cannot be satisfied."""
        return cls(rule, rule.variables)._allowed()

    def identified(self, left: Term, right: Term) -> Instance | None:
        """Return the instance in which two terms are one, if that and the rule's inequalities allow it."""
        if isinstance(left, Constant) and isinstance(right, Constant):
            return None
        if isinstance(right, Constant) or (
            isinstance(left, Variable) and self.names.index(right) < self.names.index(left)
        ):
            left, right = right, left
        return Instance(self.rule, tuple(left if name == right else name for name in self.names))._allowed()

    def _allowed(self) -> Instance | None:
        if self.rule.inequalities:
            names = self._renaming()
            for part in self.rule.inequalities:
                left, right = part.rename(names).terms
                if left == right:
                    return None
        return self

    def _renaming(self) -> dict[Term, Term]:
        return dict(zip(self.rule.variables, self.names, strict=True))

    @property
    def facts(self) -> tuple[Atom, ...]:
        """The body without its inequalities; each atom once."""
        if self.names == self.rule.variables:
            return tuple(dict.fromkeys(self.rule.atoms))
        names = self._renaming()
        return tuple(dict.fromkeys(atom.rename(names) for atom in self.rule.atoms))

    @property
    def goal(self) -> Atom:
        """The head."""
        return self.rule.head.rename(self._renaming())

    @property
    def identifications(self) -> dict[Variable, Term]:
        """The variables that another term stands for."""
        pairs = zip(self.rule.variables, self.names, strict=True)
        return {variable: name for variable, name in pairs if variable != name}


def used_inequalities(steps: tuple[Step, ...]) -> list[tuple[Term, Term]]:
    """Return the pairs of terms that the inequalities of a derivation need to be different."""
    found: dict[tuple[Term, Term], None] = {}
    for rule, premises, _ in steps:
        if not rule.inequalities:
            continue
        names: dict[Term, Term] = {}
        for atom, premise in zip(rule.atoms, premises, strict=True):
            names.update(zip(atom.terms, premise.terms, strict=True))
        for part in rule.inequalities:
            left, right = part.rename(names).terms
            if (right, left) not in found:
                found[left, right] = None
    return list(found)


def undecided(what: Rule | Atom) -> LimitError:
    """Return what to say where constants that are let in one after the other do not come to an end."""
    return LimitError(
        f"whether `{what}` follows depends on too many constants of the rules to be decided",
        hint="leave out the rules with constants, or those of low confidence",
    )


# Facts that one materialisation may have.
MANY_FACTS = 500_000


class PlainProver:
    """Derives what follows from a set of facts by rules.

    Parameters
    ----------
    rules
        The rules.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = [rule for rule in rules if _satisfiable(rule)]
        self.has_inequalities = any(rule.inequalities for rule in self.rules)
        self._ground = [rule for rule in self.rules if not rule.atoms]
        self._by_relation: dict[str, list[tuple[Rule, int]]] = defaultdict(list)
        for rule in self.rules:
            for place, atom in enumerate(rule.atoms):
                self._by_relation[str(atom.relation)].append((rule, place))

    def derive(self, facts: Sequence[Atom], goal: Atom) -> tuple[Step, ...] | None:
        """Return the steps that lead to a goal, or None if it does not follow."""
        known = self._close(facts, {goal})
        return derivation(known, goal) if goal in known else None

    def holds(self, facts: Sequence[Atom], goals: Sequence[Atom]) -> list[bool | None]:
        """Return which goals follow; None, which this prover never says, stands for undecided."""
        known = self._close(facts, set(goals))
        return [goal in known for goal in goals]

    def one_step(self, facts: Sequence[Atom], goal: Atom) -> Step | None:
        """Return a step that concludes the goal from the facts alone."""
        index = _Index()
        for fact in facts:
            index.add(fact)
        for rule in self.rules:
            if rule.head.relation != goal.relation:
                continue
            names = _matched(rule.head, goal, {})
            for found in () if names is None else index.joined(rule, names):
                return _step(rule, found)
        return None

    def _close(self, facts: Iterable[Atom], goals: set[Atom]) -> dict[Atom, Step | None]:
        """Return what follows until all goals do, with the reason; None for what was given."""
        known: dict[Atom, Step | None] = dict.fromkeys(facts)
        index = _Index()
        missing = goals.difference(known)
        waiting = deque(known)
        fresh = [_step(rule, {}) for rule in self._ground]
        while missing:
            for step in fresh:
                if step.conclusion not in known:
                    known[step.conclusion] = step
                    missing.discard(step.conclusion)
                    waiting.append(step.conclusion)
            if not waiting:
                break
            if len(known) > MANY_FACTS:
                raise LimitError(
                    f"more than {MANY_FACTS:,} facts follow from the body of the rule",
                    hint="rules with constants in their heads do that; leave out those that are not needed",
                )
            fact = waiting.popleft()
            index.add(fact)
            fresh = self._consequences(fact, index)
        return known

    def _consequences(self, fact: Atom, index: _Index) -> list[Step]:
        """Return the steps that use a fact and others that were looked at before."""
        found = []
        for rule, place in self._by_relation.get(str(fact.relation), ()):
            names = _matched(rule.atoms[place], fact, {})
            if names is not None:
                found += [_step(rule, names) for names in index.joined(rule, names, without=place)]
        return found


class _Index:
    """Facts by relation, and by relation and one end."""

    def __init__(self) -> None:
        self._facts: dict[object, list[Atom]] = defaultdict(list)

    def add(self, fact: Atom) -> None:
        self._facts[fact.relation].append(fact)
        self._facts[fact.relation, 0, fact.subject].append(fact)
        self._facts[fact.relation, 1, fact.object].append(fact)

    def _candidates(self, atom: Atom, names: dict[Term, Term]) -> list[Atom]:
        key: object = atom.relation
        for side, term in enumerate(atom.terms):
            if not isinstance(term, Variable) or term in names:
                key = (atom.relation, side, names.get(term, term))
                break
        return self._facts.get(key, [])

    def joined(
        self, rule: Rule, names: dict[Term, Term], place: int = 0, without: int = -1
    ) -> Iterator[dict[Term, Term]]:
        """Yield the ways to make a rule's body true that agree with `names`."""
        if place == len(rule.atoms):
            if all(names.get(p.left, p.left) != names.get(p.right, p.right) for p in rule.inequalities):
                yield names
        elif place == without:
            yield from self.joined(rule, names, place + 1, without)
        else:
            atom = rule.atoms[place]
            for fact in self._candidates(atom, names):
                more = _matched(atom, fact, names)
                if more is not None:
                    yield from self.joined(rule, more, place + 1, without)


def _matched(atom: Atom, fact: Atom, names: dict[Term, Term]) -> dict[Term, Term] | None:
    """Return the names under which an atom is a fact of its relation."""
    for term, value in zip(atom.terms, fact.terms, strict=True):
        if not isinstance(term, Variable):
            if term != value:
                return None
        elif names.get(term, value) != value:
            return None
        elif term not in names:
            names = {**names, term: value}
    return names


def _step(rule: Rule, names: dict[Term, Term]) -> Step:
    return Step(rule, tuple(atom.rename(names) for atom in rule.atoms), rule.head.rename(names))


def _satisfiable(rule: Rule) -> bool:
    return all(part.left != part.right for part in rule.inequalities)


def derivation(known: dict[Atom, Step | None], goal: Atom) -> tuple[Step, ...]:
    """Return the steps that lead to a goal, those first that others need.

    Parameters
    ----------
    known
        Facts in the order in which they were derived, with the reason for each.
    goal
        One of them.
    """
    needed: dict[Atom, Step] = {}
    waiting = [goal]
    while waiting:
        fact = waiting.pop()
        step = known[fact]
        if step is not None and fact not in needed:
            needed[fact] = step
            waiting += step.premises
    return tuple(step for fact in known if (step := needed.get(fact)) is not None)
