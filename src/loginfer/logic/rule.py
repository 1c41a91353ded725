"""Atoms, rules and patterns: the rule language of section 2.3, without any data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE
from loginfer.logic.terms import Constant, Predicate, Template, Term, Variable, quote

__all__ = ["Atom", "BodyAtom", "Inequality", "Negation", "Pattern", "Rule"]


@dataclass(frozen=True, slots=True)
class Atom:
    """(d1, R, d2) or (d, type, t).

    A type atom has `RDF_TYPE` as its relation and the type as a constant (or, in a pattern, a type
    template) in the object's place, just as the triples it matches.

    Parameters
    ----------
    subject
        A variable or constant.
    relation
        Name of the relation; a template in a pattern.
    object
        A variable or constant; a type or type template in a type atom.
    """

    subject: Term
    relation: Predicate
    object: Term

    @property
    def is_type(self) -> bool:
        """Whether this is (d, type, t)."""
        return self.relation == RDF_TYPE

    @property
    def terms(self) -> tuple[Term, Term]:
        """Subject and object."""
        return (self.subject, self.object)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The distinct variables, subject first."""
        return _variables(self.terms)

    @property
    def templates(self) -> tuple[Template, ...]:
        """The templates of a pattern's atom: a relation template or a type template."""
        return tuple(p for p in (self.relation, self.object) if isinstance(p, Template))

    def rename(self, names: Mapping[Term, Term]) -> Atom:
        """Return the atom with terms replaced."""
        return Atom(names.get(self.subject, self.subject), self.relation, names.get(self.object, self.object))

    def __str__(self) -> str:
        if isinstance(self.relation, Template):
            relation = str(self.relation)
        else:
            relation = "type" if self.is_type else quote(self.relation)
        return f"({self.subject},{relation},{self.object})"


@dataclass(frozen=True, slots=True)
class Inequality:
    """(d1 ≠ d2)."""

    left: Term
    right: Term

    @property
    def terms(self) -> tuple[Term, Term]:
        """Both sides."""
        return (self.left, self.right)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The distinct variables, left first."""
        return _variables(self.terms)

    @property
    def templates(self) -> tuple[Template, ...]:
        """No template ever stands in an inequality."""
        return ()

    def rename(self, names: Mapping[Term, Term]) -> Inequality:
        """Return the inequality with terms replaced."""
        return Inequality(names.get(self.left, self.left), names.get(self.right, self.right))

    def __str__(self) -> str:
        return f"{self.left} != {self.right}"


@dataclass(frozen=True, slots=True)
class Negation:
    """not (d1, R, d2): negation as failure.

    A variable that no atom of the rule's body has is existential inside: `not (y,S,z)` says that there is
    no z with (y,S,z). Such a variable belongs to one negation only.
    """

    atom: Atom

    @property
    def terms(self) -> tuple[Term, Term]:
        """Subject and object of the atom."""
        return self.atom.terms

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The distinct variables, subject first, existential ones included."""
        return self.atom.variables

    @property
    def templates(self) -> tuple[Template, ...]:
        """The templates of the atom in a pattern."""
        return self.atom.templates

    def rename(self, names: Mapping[Term, Term]) -> Negation:
        """Return the negation with terms replaced."""
        return Negation(self.atom.rename(names))

    def __str__(self) -> str:
        return f"not {self.atom}"


BodyAtom: TypeAlias = Atom | Inequality | Negation


@dataclass(frozen=True)
class _Clause:
    """B1 ∧ … ∧ Bn → H, whether with templates (`Pattern`) or without (`Rule`)."""

    body: tuple[BodyAtom, ...]
    head: Atom

    def __init__(self, body: Iterable[BodyAtom], head: Atom) -> None:
        object.__setattr__(self, "body", tuple(body))
        object.__setattr__(self, "head", head)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.head, Atom):
            raise InputError(f"the head must be an atom, not `{self.head}`")
        bound = {v for atom in self.atoms for v in atom.variables}
        parts: tuple[BodyAtom, ...] = (self.head, *self.inequalities)
        for part in parts:
            for variable in part.variables:
                if variable not in bound:
                    place = "head" if part is self.head else f"inequality `{part}`"
                    raise InputError(
                        f"variable `{variable}` of the {place} is not bound in `{self}`",
                        hint=f"use `{variable}` in an atom of the body (a rule must be safe)",
                    )
        negations = dict.fromkeys(self.negations)
        for variable in {v: None for negation in negations for v in self.existential(negation)}:
            if sum(variable in negation.variables for negation in negations) > 1:
                raise InputError(
                    f"variable `{variable}` is under two negations of `{self}`, and no atom binds it",
                    hint=f"use `{variable}` in an atom of the body, or another name under each `not`",
                )

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The ≠-free atoms of the body, without those under a negation."""
        return tuple(b for b in self.body if isinstance(b, Atom))

    @cached_property
    def inequalities(self) -> tuple[Inequality, ...]:
        """The inequalities of the body."""
        return tuple(b for b in self.body if isinstance(b, Inequality))

    @cached_property
    def negations(self) -> tuple[Negation, ...]:
        """The negated atoms of the body."""
        return tuple(b for b in self.body if isinstance(b, Negation))

    def existential(self, negation: Negation) -> tuple[Variable, ...]:
        """Return the variables that only this negation has: it says that there are no values for them."""
        return tuple(v for v in negation.variables if v not in self.variables)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The distinct variables in the order in which the body's ≠-free atoms mention them.

        Existential variables of negations are not among them: no witness has a value for them.
        """
        return tuple(dict.fromkeys(v for atom in self.atoms for v in atom.variables))

    @cached_property
    def body_text(self) -> str:
        """The body as text."""
        return ", ".join(str(b) for b in self.body)

    def __str__(self) -> str:
        return f"{self.body_text} -> {self.head}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.logic.rule_html import clause_fragment

        return clause_fragment(self)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Atom]:
        """All ≠-free atoms, negated ones after the others, the head last."""
        yield from self.atoms
        for negation in self.negations:
            yield negation.atom
        yield self.head


class Rule(_Clause):
    """A Datalog rule: B1 ∧ … ∧ Bn → H, where each variable of H or of an inequality occurs in some atom Bi.

    Parameters
    ----------
    body
        Atoms, inequalities and negations. May be empty for a head without variables.
    head
        A ≠-free atom.
    """

    @classmethod
    def known_safe(cls, body: tuple[BodyAtom, ...], head: Atom) -> Rule:
        """Return a rule that need not be checked, because a caller that makes many knows it is safe."""
        rule = cls.__new__(cls)
        object.__setattr__(rule, "body", body)
        object.__setattr__(rule, "head", head)
        return rule

    def _check(self) -> None:
        for atom in self:
            if atom.templates:
                raise InputError(
                    f"`{atom.templates[0]}` in `{self}` is a template: this is a pattern, not a rule",
                    hint="write a name that looks like a template in angle brackets: <_R>",
                )
        super()._check()

    @property
    def relations(self) -> tuple[str, ...]:
        """The distinct relations, body first; `RDF_TYPE` for type atoms."""
        return tuple(dict.fromkeys(str(atom.relation) for atom in self))

    @property
    def constants(self) -> tuple[str, ...]:
        """The distinct constants and types, body first."""
        terms = [t for part in (*self.body, self.head) for t in part.terms]
        return tuple(dict.fromkeys(t.name for t in terms if isinstance(t, Constant)))


class Pattern(_Clause):
    """An inference pattern: a rule with templates for relations and types.

    Parameters
    ----------
    body
        Atoms, inequalities and negations; at least one atom.
    head
        A ≠-free atom; its template may or may not occur in the body.
    name
        What to call it; the text by default.
    """

    name: str

    def __init__(self, body: Iterable[BodyAtom], head: Atom, name: str | None = None) -> None:
        super().__init__(body, head)
        object.__setattr__(self, "name", name or str(self))

    def _check(self) -> None:
        if not self.atoms:
            raise InputError(f"the pattern `{self}` has no atom in its body")
        relation = {t for atom in self for t in (atom.relation,) if isinstance(t, Template)}
        types = {t for atom in self for t in (atom.object,) if isinstance(t, Template)}
        for template in sorted(relation & types):
            raise InputError(f"`{template}` stands for a relation and for a type in `{self}`")
        for atom in self:
            if isinstance(atom.object, Template) and not atom.is_type:
                raise InputError(
                    f"`{atom.object}` in `{atom}` stands where a variable or constant should",
                    hint="type templates belong into type atoms: (x,type,_t)",
                )
        super()._check()

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        """The distinct templates of the body in the order of its text."""
        return tuple(dict.fromkeys(t for part in self.body for t in part.templates))

    @property
    def head_template(self) -> Template | None:
        """The template in the head, if there is one."""
        return self.head.templates[0] if self.head.templates else None

    @property
    def head_in_body(self) -> bool:
        """Whether the head's predicate is determined by the body's."""
        return self.head_template is None or self.head_template in self.templates

    def is_type_template(self, template: Template) -> bool:
        """Whether a template stands for a type."""
        return any(atom.object == template for atom in self)


def _variables(terms: Iterable[Term]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(t for t in terms if isinstance(t, Variable)))
