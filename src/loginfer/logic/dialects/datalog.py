r"""Datalog; head :- body.

`head :- body .`: what RDFox, Nemo and plain Datalog have in common.

Datalog as Prolog systems and RuDaS write it: `p(X,Y) :- q(X,Z), r(Z,Y), X != Y.` and so on.

Variables start with a capital or an underscore (`_` alone is a new one each time); other names are words
that start with a small letter, whole numbers, or anything in single quotes. A type atom (x,type,C) is
`c(X)`; where the type is a variable it is written with the IRI of rdf:type as a predicate with two places.
`x` is written `X` and read back as `x`; longer variable names keep their capital. Negated atoms are written
`not p(X,_)`; `\+ p(X,_)` and `!p(X,_)` are read as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from loginfer.kg import RDF_TYPE
from loginfer.logic.dialects.base import Dialect, Scanner, full_stops, located, no_directive, spell_variables, unescape
from loginfer.logic.rule import (
    LITERAL,
    Atom,
    BodyAtom,
    Constant,
    Inequality,
    Negation,
    Rule,
    ScoredRule,
    Term,
    Variable,
)


def read_clause(
    scanner: Scanner,
    read_head: Callable[[], Atom],
    read_part: Callable[[], list[BodyAtom]],
    implications: tuple[str, ...] = (":-",),
) -> Rule:
    """Read a rule, or a fact: a rule with an empty body.

    Parameters
    ----------
    scanner
        Where to read.
    read_head
        Reads the head.
    read_part
        Reads one part of the body; it may stand for several inequalities.
    implications
        What may stand between head and body.
    """
    head = read_head()
    if scanner.at(",", "&"):
        scanner.fail(f"`{implications[0]}`", hint="write one rule for each atom of the head")
    body: list[BodyAtom] = []
    if scanner.take(*implications):
        if not scanner.at("."):
            body += read_part()
            while scanner.take(","):
                body += read_part()
        if not scanner.at_end() and not scanner.at("."):
            scanner.fail("`,` or `.`")
    elif not scanner.at_end() and not scanner.at("."):
        scanner.fail(f"`{implications[0]}` or `.`")
    scanner.take(".")
    if not scanner.at_end():
        scanner.fail("the end of the rule")
    with located(scanner.where):
        return Rule(body, head)


_CAPITAL = re.compile(r"[A-Z_][A-Za-z0-9_]*")
_SHORT = re.compile(r"[A-Z][0-9]*\Z")
_WORD = re.compile(r"""[^\s,()'"%.:!=\\]+(?:\.[^\s,()'"%.:!=\\]+)*""")
_QUOTED = re.compile(r"'((?:[^'\\\n]|\\[^\n])*)'")
_PLAIN = re.compile(r"[a-z][A-Za-z0-9_]*\Z|(?:0|[1-9][0-9]*)\Z")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_DIFFERS = ("!=", "\\==", "\\=", "≠")
_NEGATION = re.compile(r"(?:not\b|\\\+|!(?!=))\s*")
_PART = "an atom like `p(X,Y)`, a negated one like `not p(X,Y)` or an inequality like `X != Y`"


class _Reader:
    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.anonymous = 0

    def part(self) -> list[BodyAtom]:
        scanner = self.scanner
        if scanner.match(_NEGATION):
            bracket = scanner.take("(")
            atom = self.atom()
            if bracket:
                scanner.expect(")")
            return [Negation(atom)]
        scanner.skip()
        start = scanner.position
        name = self.name()
        if name is not None and scanner.at("("):
            scanner.position = start
            return [self.atom()]
        scanner.position = start
        left = self.term(_PART)
        if scanner.take(*_DIFFERS) is None:
            scanner.fail("`(` or `!=`")
        return [Inequality(left, self.term())]

    def atom(self) -> Atom:
        scanner = self.scanner
        predicate = self.name()
        if predicate is None:
            scanner.fail("an atom like `p(X,Y)`")
        scanner.expect("(")
        first = self.term()
        if scanner.take(")"):
            return Atom(first, RDF_TYPE, Constant(predicate))
        scanner.expect(",", "`,` or `)`")
        second = self.term()
        if scanner.at(","):
            scanner.fail("`)`", hint="relations have two places, types one")
        scanner.expect(")")
        return Atom(first, predicate, second)

    def name(self) -> str | None:
        quoted = self.scanner.match(_QUOTED)
        if quoted:
            return unescape(quoted.group(1))
        literal = self.scanner.match(LITERAL)
        if literal:
            return literal.group()
        word = self.scanner.match(_WORD)
        return word.group() if word else None

    def term(self, expected: str = "a variable like `X` or a name") -> Term:
        scanner = self.scanner
        variable = scanner.match(_CAPITAL)
        if variable:
            return self.variable(variable.group())
        name = self.name()
        if name is None:
            scanner.fail(expected)
        return Constant(name)

    def variable(self, name: str) -> Variable:
        if name == "_":
            self.anonymous += 1
            return Variable(f"_{self.anonymous}")
        return Variable(name.lower() if _SHORT.match(name) else name)


def _read(text: str, prefixes: Mapping[str, str], where: str | None) -> ScoredRule:
    scanner = Scanner(text, where, comment="%")
    reader = _Reader(scanner)
    return ScoredRule(read_clause(scanner, reader.atom, reader.part, (":-", "<-")))


def _write(scored: ScoredRule) -> str:
    rule = scored.rule
    names = spell_variables(rule, lambda name: name[:1].upper() + name[1:], _CAPITAL)

    def name(text: str) -> str:
        if _PLAIN.match(text) and text != "not":
            return text
        return "'" + "".join(_ESCAPES.get(c, c) for c in text) + "'"

    # A variable that says "no" is written as the one without a name, unless it stands in both places.
    hidden = {v for n in rule.negations if n.terms[0] != n.terms[1] for v in rule.existential(n)}

    def term(t: Term) -> str:
        if t in hidden:
            return "_"
        return names[t] if isinstance(t, Variable) else name(t.name)

    def part(p: BodyAtom) -> str:
        if isinstance(p, Inequality):
            return f"{term(p.left)} != {term(p.right)}"
        if isinstance(p, Negation):
            return f"not {part(p.atom)}"
        if p.is_type and isinstance(p.object, Constant):
            return f"{name(p.object.name)}({term(p.subject)})"
        return f"{name(str(p.relation))}({term(p.subject)},{term(p.object)})"

    body = ", ".join(part(p) for p in rule.body)
    return f"{part(rule.head)} :- {body}." if body else f"{part(rule.head)}."


def _looks_like(text: str) -> bool:
    head, _, body = text.partition(":-" if ":-" in text else "<-")
    head = head.strip().rstrip(" .")
    return head.endswith(")") and "(" in head and "?" not in head and "<=" not in text and "?" not in body


DATALOG = Dialect(
    name="datalog",
    about="Datalog with capital variables, as Prolog systems and RuDaS write it",
    example="memberOf(X,Z) :- worksFor(X,Y), partOf(Y,Z), X != Z.",
    endings=(".dl", ".pl", ".datalog"),
    comments="%",
    statements=full_stops("%", "\"'"),
    read_directive=no_directive,
    read_statement=_read,
    write_statement=_write,
    looks_like=_looks_like,
)
