"""Canonical instances: a rule's body as a graph, its variables as constants that nobody has heard of.

A frozen variable is the variable itself: it differs from every constant and every other variable, and a
derivation reads as the rule does. Variables that are identified are replaced by the first of them, or by the
constant they are identified with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loginfer.errors import LimitError
from loginfer.logic.rule import Atom, Rule
from loginfer.logic.terms import Constant, Term, Variable

__all__ = ["Instance", "Step", "undecided", "used_inequalities"]


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
