"""Rules and patterns as HTML: variables, relations and constants set off, full names where one points at."""

from __future__ import annotations

import re
from collections.abc import Mapping

from loginfer.errors import LogInferError
from loginfer.kg.short_names import short_names, shortened
from loginfer.logic.rule import Atom, BodyAtom, Negation, Pattern, Rule
from loginfer.logic.terms import Constant, Term, Variable
from loginfer.markup import Markup, element, fragment, joined

__all__ = ["clause_fragment", "clause_markup", "prose", "text_markup", "triple_markup"]

# An atom in a sentence; names with brackets, commas or white space in them are left as they are.
_ATOM = re.compile(r"\(([^\s(),]+),([^\s(),]+),([^\s(),]+)\)")


def clause_fragment(clause: Rule | Pattern) -> str:
    """Return what a notebook shows for a rule or a pattern."""
    return fragment(clause_markup(clause))


def clause_markup(clause: Rule | Pattern) -> Markup:
    """Return a rule or a pattern; names are short as long as all of them stay different."""
    parts = (*clause.body, clause.head)
    names = [str(atom.relation) for atom in clause if not atom.is_type]
    names += [term.name for part in parts for term in part.terms if isinstance(term, Constant)]
    short = short_names(names)
    body = [_part(part, short) for part in clause.body]
    commas = [piece for made in body for piece in (", ", made)][1:]
    head = element("span", "→ ", _part(clause.head, short), kind="atom")
    return element("span", *commas, " ", head, kind="rule")


def text_markup(text: str) -> Markup:
    """Return the text of a rule as a rule, and any other text with its IRIs shortened."""
    from loginfer.logic import parse_rule

    try:
        return clause_markup(parse_rule(text))
    except LogInferError:
        return prose(text)


def prose(text: str) -> Markup:
    """Return a sentence: IRIs and the names in atoms shortened, what stands between backticks set off."""
    short = _with_short_atoms(shortened(text))
    pieces = short.split("`")
    if len(pieces) % 2 == 0:  # one backtick is somebody's name
        pieces = [short]
    made = [element("code", piece) if place % 2 else joined(piece) for place, piece in enumerate(pieces)]
    return element("span", *made, title=text if short != text else None)


def _with_short_atoms(text: str) -> str:
    """Shorten the paths in atoms, such as those of Freebase, as long as all of them stay different."""
    atoms = _ATOM.findall(text)
    if not atoms:
        return text
    short = short_names(name for atom in atoms for name in atom)
    return _ATOM.sub(lambda atom: f"({','.join(short[name] for name in atom.groups())})", text)


def triple_markup(triple: tuple[str, str, str]) -> Markup:
    """Return a triple of names."""
    subject, relation, object_ = triple
    short = short_names(triple)
    places = ((subject, "constant"), (relation, "relation"), (object_, "constant"))
    made = [_name(name, short[name], kind) for name, kind in places]
    inside = element("span", "(", made[0], ", ", made[1], ", ", made[2], ")", kind="atom")
    return element("span", inside, kind="rule")


def _part(part: BodyAtom, short: Mapping[str, str]) -> Markup:
    if isinstance(part, Negation):
        return element("span", "not ", _part(part.atom, short), kind="atom")
    if not isinstance(part, Atom):
        return element("span", _term(part.left, short), " ≠ ", _term(part.right, short), kind="atom")
    name = str(part.relation)
    relation = _name(name, "type" if part.is_type else short[name], "relation")
    inside = joined("(", _term(part.subject, short), ", ", relation, ", ", _term(part.object, short), ")")
    return element("span", inside, kind="atom")


def _term(term: Term, short: Mapping[str, str]) -> Markup:
    if isinstance(term, Constant):
        return _name(term.name, short[term.name], "constant")
    return element("span", str(term), kind="variable" if isinstance(term, Variable) else "relation")


def _name(name: str, short: str, kind: str) -> Markup:
    return element("span", short, kind=kind, title=None if short == name else name)
