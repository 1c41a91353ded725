"""AnyBURL and PyClause lines: `1529⇥470⇥0.307⇥h(X,Y) <= b(X,A), c(A,Y)`; the columns may be missing.

Variables are single capitals, constants have at least two characters. Nothing is quoted, so names with
commas and brackets are told apart by what can follow them: an atom ends with `)` and has a variable as at
least one argument; brackets inside names should be in pairs, and relations are as short as possible.
AnyBURL's `r(X,me_myself_i)` stands for the loop r(X,X) and is read as that.

A rule is written only if it is read back as it was. X is read as our variable `x`, A as `a`. A relation with
one of the short names of rdf:type means type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from loginfer.errors import InputError, ParseError
from loginfer.kg import RDF_TYPE, TYPE_NAMES
from loginfer.logic.dialects import base
from loginfer.logic.rule import Atom, Constant, Rule, ScoredRule, Term, Variable, ZeroRule

_TWO_VARIABLES = re.compile(r"(.+)\(([A-Z]),([A-Z])\)", re.DOTALL)
# What follows the opening bracket of the arguments.
_OBJECT_CONSTANT = re.compile(r"([A-Z]),(.+)\)\Z", re.DOTALL)
_SUBJECT_CONSTANT = re.compile(r"(.+),([A-Z])\)\Z", re.DOTALL)
_TWO_CONSTANTS = re.compile(r"([^,]+),([^,]+)\)\Z", re.DOTALL)
_ARGUMENTS = (_OBJECT_CONSTANT, _SUBJECT_CONSTANT, _TWO_CONSTANTS)
_ITSELF = "me_myself_i"
_IMPLIED = re.compile(r"\)\s*<=(?:\s|\Z)")
_ATOM = "an atom like `h(X,Y)`"


def _read(text: str, prefixes: Mapping[str, str], where: str | None) -> ScoredRule | ZeroRule:
    columns, start = base.read_columns(text, where)
    implied = _IMPLIED.search(text, start)
    if implied is None:
        raise ParseError(text, len(text.rstrip()) + 1, "`<=` behind the head", where=where)
    head = _atom(text[start : implied.start() + 1])
    if head is None:
        raise ParseError(text, start + 1, f"the head, {_ATOM}", where=where)
    body = _body(text, implied.end(), where)
    if not body and head.variables:
        return ZeroRule(head, *columns)
    with base.located(where):
        return ScoredRule(Rule(body, head), *columns)


def _body(text: str, start: int, where: str | None) -> list[Atom]:
    """Read atoms up to `), ` each; a piece that is no atom goes on to the next `), `."""
    atoms: list[Atom] = []
    end = len(text.rstrip())
    while start < end:
        stop = start
        atom = None
        while atom is None and stop < end:
            cut = text.find("), ", stop + 1)
            stop = cut + 1 if cut >= 0 else end
            atom = _atom(text[start:stop])
        if atom is None:
            raise ParseError(text, start + 1, _ATOM, where=where)
        atoms.append(atom)
        start = stop + 2
    return atoms


def _atom(text: str) -> Atom | None:
    text = text.strip()
    match = _TWO_VARIABLES.fullmatch(text)
    parts = match.groups() if match else _with_constants(text)
    if parts is None:
        return None
    relation, subject, object_ = parts
    if subject == _ITSELF:
        subject = object_
    elif object_ == _ITSELF:
        object_ = subject
    return Atom(_term(subject), RDF_TYPE if relation in TYPE_NAMES else relation, _term(object_))


def _with_constants(text: str) -> tuple[str, str, str] | None:
    """Find relation and arguments; a reading in which brackets are in pairs is preferred."""
    first: tuple[str, str, str] | None = None
    for arguments in _ARGUMENTS:
        opening = text.find("(", 1)
        while opening >= 0:
            match = arguments.match(text, opening + 1)
            if match:
                parts = (text[:opening], match.group(1), match.group(2))
                if all(_in_pairs(part) for part in parts):
                    return parts
                first = first or parts
            opening = text.find("(", opening + 1)
    return first


def _in_pairs(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _term(text: str) -> Term:
    return Variable(text.lower()) if len(text) == 1 and "A" <= text <= "Z" else Constant(text)


def _write(scored: ScoredRule) -> str:
    rule = scored.rule
    base.refuse_all_but_atoms("AnyBURL", rule)
    for constant in rule.constants:
        if len(constant) < 2:
            what = f"the constant `{constant}`, which is shorter than two characters"
            raise base.cannot_express("AnyBURL", what, rule)
    names = _variable_names(rule)

    def part(atom: Atom) -> str:
        subject, object_ = (names[t] if isinstance(t, Variable) else t.name for t in atom.terms)
        return f"{atom.relation}({subject},{object_})"

    text = f"{part(rule.head)} <= {', '.join(part(a) for a in rule.atoms)}"
    written = base.write_columns(scored) + text
    try:
        back = None if "\n" in text or "\t" in text else _read(written, {}, None)
    except InputError:
        back = None
    if not isinstance(back, ScoredRule) or not _same(back.rule, rule, names):
        raise base.cannot_express("AnyBURL", "these names so that they can be told apart", rule)
    return written


def _same(back: Rule, rule: Rule, names: Mapping[Variable, str]) -> bool:
    renaming: dict[Term, Term] = {v: Variable(name.lower()) for v, name in names.items()}
    return Rule([a.rename(renaming) for a in rule.atoms], rule.head.rename(renaming)) == back


def _variable_names(rule: Rule) -> dict[Variable, str]:
    """Keep one-letter names if all are; else X and Y for the head, A, B, … for the others."""
    if len(rule.variables) > 26:
        raise base.cannot_express("AnyBURL", f"{len(rule.variables)} variables, more than there are letters", rule)
    upper = {v: v.name.upper() for v in rule.variables}
    if len(set(upper.values())) == len(upper) and all(len(name) == 1 and "A" <= name <= "Z" for name in upper.values()):
        return upper
    names = dict(zip(rule.head.variables, "XY", strict=False))
    free = iter("ABCDEFGHIJKLMNOPQRSTUVWZYX")
    for variable in rule.variables:
        if variable not in names:
            names[variable] = next(letter for letter in free if letter not in names.values())
    return names


def _looks_like(text: str) -> bool:
    implied = _IMPLIED.search(text)
    return implied is not None and "(" in text[: implied.start()]


ANYBURL = base.Dialect(
    name="anyburl",
    about="AnyBURL and PyClause lines, with or without their columns",
    example="1529\t470\t0.307\tmemberOf(X,Y) <= worksFor(X,A), partOf(A,Y)",
    comments=None,
    read_statement=_read,
    write_statement=_write,
    looks_like=_looks_like,
    keeps_scores=True,
    rank=2,
)
base.register_dialect(ANYBURL)
