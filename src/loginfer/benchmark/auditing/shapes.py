"""Whether a rule is represented by a pattern (section 2.3), up to variable renaming and atom order."""

from __future__ import annotations

from collections.abc import Iterator

from loginfer.logic.rule import Atom, Pattern, Rule
from loginfer.logic.terms import Template, Term, Variable

__all__ = ["predicates", "represents"]

# Longer bodies are compared as they are written: trying all orders of their atoms would take too long.
_LONG = 8


def represents(pattern: Pattern, rule: Rule) -> bool:
    """Say whether a rule is the pattern with predicates in the places of its templates.

    The head's predicate must not occur in the body unless the pattern's head says so: such a rule is no
    candidate.
    """
    return predicates(pattern, rule) is not None


def predicates(pattern: Pattern, rule: Rule) -> dict[Template, str] | None:
    """Return the names in the places of a pattern's templates; None for a rule of another shape."""
    atoms, own = list(dict.fromkeys(pattern.atoms)), list(dict.fromkeys(rule.atoms))
    if len(atoms) != len(own):
        return None
    denied, own_denied = (list(dict.fromkeys(n.atom for n in c.negations)) for c in (pattern, rule))
    if len(denied) != len(own_denied):
        return None
    wanted = {frozenset(part.terms) for part in rule.inequalities}
    for positive in _matches(atoms, own, _Match({}, {})):
        found = {frozenset(positive.term(t) for t in part.terms) for part in pattern.inequalities}
        if found != wanted:
            continue
        for match in _matches(denied, own_denied, positive):
            if _head_fits(pattern, rule, match):
                return match.names
    return None


class _Match:
    """Variables of the rule for those of the pattern, one to one, and names for templates."""

    def __init__(self, terms: dict[Term, Term], names: dict[Template, str]) -> None:
        self.terms = terms
        self.names = names

    def term(self, term: Term) -> Term:
        return self.terms.get(term, term)

    def extended(self, atom: Atom, own: Atom) -> _Match | None:
        """Return the match with this atom's terms and templates added; None if they contradict it."""
        if atom.is_type != own.is_type:
            return None
        terms, names = dict(self.terms), dict(self.names)
        if not _same(atom.relation, str(own.relation), names):
            return None
        for term, given in zip(atom.terms, own.terms, strict=True):
            if isinstance(term, Template):
                if isinstance(given, Variable) or not _same(term, given.name, names):
                    return None
            elif not isinstance(term, Variable):
                if term != given:
                    return None
            elif not isinstance(given, Variable) or terms.setdefault(term, given) != given:
                return None
        return _Match(terms, names) if len(set(terms.values())) == len(terms) else None


def _same(predicate: object, name: str, names: dict[Template, str]) -> bool:
    if isinstance(predicate, Template):
        return names.setdefault(predicate, name) == name
    return predicate == name


def _matches(atoms: list[Atom], own: list[Atom], match: _Match) -> Iterator[_Match]:
    if not atoms:
        yield match
        return
    for place, candidate in enumerate(own):
        extended = match.extended(atoms[0], candidate)
        if extended is not None:
            yield from _matches(atoms[1:], own[:place] + own[place + 1 :], extended)
        if len(own) > _LONG:
            return


def _head_fits(pattern: Pattern, rule: Rule, match: _Match) -> bool:
    extended = match.extended(pattern.head, rule.head)
    if extended is None:
        return False
    template = pattern.head_template
    if template is None or template in match.names:
        return True
    atoms = [*rule.atoms, *(negation.atom for negation in rule.negations)]
    if pattern.is_type_template(template):
        taken = [atom.object for atom in atoms if atom.is_type]
        return rule.head.object not in taken
    return rule.head.relation not in [atom.relation for atom in atoms]
