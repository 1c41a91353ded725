r"""Datalog as Prolog systems and RuDaS write it: `p(X,Y) :- q(X,Z), r(Z,Y), X != Y.` and so on.

Other dialects have clauses `head :- body .` too. What they share is here: `read_clause`, and for those with atoms
`p(X,Y)` one reader and one writer, to which a `ClauseSyntax` gives the details.

Variables start with a capital or an underscore (`_` alone is a new one each time); other names are words
that start with a small letter, whole numbers, or anything in single quotes. A type atom (x,type,C) is
`c(X)`; where the type is a variable it is written with the IRI of rdf:type as a predicate with two arguments.
`x` is written `X` and read back as `x`; longer variable names keep their capital. Negated atoms are written
`not p(X,_)`; `\+ p(X,_)` and `!p(X,_)` are read as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from loginfer.kg import RDF_TYPE
from loginfer.logic.dialects import base
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
    scanner: base.Scanner,
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
    with base.located(scanner.where):
        return Rule(body, head)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseSyntax:
    """How a dialect with atoms `p(X,Y)` and `c(X)` writes rules.

    Parameters
    ----------
    comment
        The character that starts a comment.
    implications
        What may stand between head and body.
    negation
        What stands before a negated atom; with `brackets`, the atom may be in brackets.
    differs
        What stands between two terms that differ.
    refused
        What no part of a body may start with.
    read_variable
        Steps over a variable and returns its name, `_` for a new one; None where there is none.
    read_name
        Steps over a name; the last argument says whether it is a predicate. None where there is none.
    atom, part, term
        What is expected where there is no such thing.
    difference
        What is expected behind a term that is no atom.
    """

    comment: str = "%"
    implications: tuple[str, ...] = (":-",)
    negation: re.Pattern[str]
    brackets: bool = False
    differs: tuple[str, ...] = ("!=",)
    refused: tuple[str, ...] = ()
    read_variable: Callable[[base.Scanner], str | None]
    read_name: Callable[[base.Scanner, Mapping[str, str], bool], str | None]
    atom: str
    part: str
    term: str
    difference: str


def read_rule(syntax: ClauseSyntax, text: str, prefixes: Mapping[str, str], where: str | None) -> ScoredRule:
    """Read a rule in such a syntax."""
    scanner = base.Scanner(text, where, comment=syntax.comment)
    reader = _Reader(scanner, prefixes, syntax)
    return ScoredRule(read_clause(scanner, reader.atom, reader.part, syntax.implications))


class _Reader:
    """Reads the parts of one rule; it counts the variables without a name."""

    def __init__(self, scanner: base.Scanner, prefixes: Mapping[str, str], syntax: ClauseSyntax) -> None:
        self.scanner = scanner
        self.prefixes = prefixes
        self.syntax = syntax
        self.anonymous = 0

    def part(self) -> list[BodyAtom]:
        scanner, syntax = self.scanner, self.syntax
        if scanner.match(syntax.negation):
            bracket = syntax.brackets and scanner.take("(")
            atom = self.atom()
            if bracket:
                scanner.expect(")")
            return [Negation(atom)]
        if syntax.refused and scanner.at(*syntax.refused):
            scanner.fail(syntax.part)
        scanner.skip()
        start = scanner.position
        is_atom = self.name(predicate=True) is not None and scanner.at("(")
        scanner.position = start
        if is_atom:
            return [self.atom()]
        left = self.term(syntax.part)
        if scanner.take(*syntax.differs) is None:
            scanner.fail(syntax.difference)
        return [Inequality(left, self.term(syntax.term))]

    def atom(self) -> Atom:
        scanner = self.scanner
        predicate = self.name(predicate=True)
        if predicate is None:
            scanner.fail(self.syntax.atom)
        scanner.expect("(")
        first = self.term(self.syntax.term)
        if scanner.take(")"):
            return Atom(first, RDF_TYPE, Constant(predicate))
        scanner.expect(",", "`,` or `)`")
        second = self.term(self.syntax.term)
        if scanner.at(","):
            scanner.fail("`)`", hint="relations have two places, types one")
        scanner.expect(")")
        return Atom(first, predicate, second)

    def name(self, *, predicate: bool = False) -> str | None:
        return self.syntax.read_name(self.scanner, self.prefixes, predicate)

    def term(self, expected: str) -> Term:
        variable = self.syntax.read_variable(self.scanner)
        if variable == "_":
            self.anonymous += 1
            return Variable(f"_{self.anonymous}")
        if variable is not None:
            return Variable(variable)
        name = self.name()
        if name is None:
            self.scanner.fail(expected)
        return Constant(name)


def write_clause(
    rule: Rule, term: Callable[[Term], str], predicate: Callable[[str], str], *, negation: str, comma: str, stop: str
) -> str:
    """Write a rule with atoms `p(X,Y)` and `c(X)`.

    Parameters
    ----------
    rule
        The rule.
    term, predicate
        Write a term, and the name of a relation or type.
    negation, comma, stop
        What stands before a negated atom, between two terms and at the end.
    """

    def part(p: BodyAtom) -> str:
        if isinstance(p, Inequality):
            return f"{term(p.left)} != {term(p.right)}"
        if isinstance(p, Negation):
            return negation + part(p.atom)
        if p.is_type and isinstance(p.object, Constant):
            return f"{predicate(p.object.name)}({term(p.subject)})"
        return f"{predicate(str(p.relation))}({term(p.subject)}{comma}{term(p.object)})"

    return joined_clause(rule, part, stop)


def joined_clause(rule: Rule, part: Callable[[BodyAtom], str], stop: str) -> str:
    """Write head and body of a rule, given how each part is written; a fact has no body."""
    body = ", ".join(map(part, rule.body))
    return f"{part(rule.head)} :- {body}{stop}" if body else f"{part(rule.head)}{stop}"


# -- Datalog as Prolog systems write it -----------------------------------------------------------

_CAPITAL = re.compile(r"[A-Z_][A-Za-z0-9_]*")
_SHORT = re.compile(r"[A-Z][0-9]*\Z")
_WORD = re.compile(r"""[^\s,()'"%.:!=\\]+(?:\.[^\s,()'"%.:!=\\]+)*""")
_QUOTED = re.compile(r"'((?:[^'\\\n]|\\[^\n])*)'")
_PLAIN = re.compile(r"[a-z][A-Za-z0-9_]*\Z|(?:0|[1-9][0-9]*)\Z")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _read_variable(scanner: base.Scanner) -> str | None:
    match = scanner.match(_CAPITAL)
    if match is None:
        return None
    return match.group().lower() if _SHORT.match(match.group()) else match.group()


def _read_name(scanner: base.Scanner, prefixes: Mapping[str, str], predicate: bool) -> str | None:
    quoted = scanner.match(_QUOTED)
    if quoted:
        return base.unescape(quoted.group(1))
    word = scanner.match(LITERAL) or scanner.match(_WORD)
    return word.group() if word else None


_SYNTAX = ClauseSyntax(
    implications=(":-", "<-"),
    negation=re.compile(r"(?:not\b|\\\+|!(?!=))\s*"),
    brackets=True,
    differs=("!=", "\\==", "\\=", "≠"),
    read_variable=_read_variable,
    read_name=_read_name,
    atom="an atom like `p(X,Y)`",
    part="an atom like `p(X,Y)`, a negated one like `not p(X,Y)` or an inequality like `X != Y`",
    term="a variable like `X` or a name",
    difference="`(` or `!=`",
)


def _write(scored: ScoredRule) -> str:
    rule = scored.rule
    names = base.spell_variables(rule, lambda name: name[:1].upper() + name[1:], _CAPITAL)
    # A variable that only a negation has is written `_`, unless it is both of its terms.
    hidden = {v for n in rule.negations if n.terms[0] != n.terms[1] for v in rule.existential(n)}

    def name(text: str) -> str:
        if _PLAIN.match(text) and text != "not":
            return text
        return "'" + "".join(_ESCAPES.get(c, c) for c in text) + "'"

    def term(t: Term) -> str:
        if t in hidden:
            return "_"
        return names[t] if isinstance(t, Variable) else name(t.name)

    return write_clause(rule, term, name, negation="not ", comma=",", stop=".")


def _looks_like(text: str) -> bool:
    head, _, body = text.partition(":-" if ":-" in text else "<-")
    head = head.strip().rstrip(" .")
    return head.endswith(")") and "(" in head and "?" not in head and "<=" not in text and "?" not in body


DATALOG = base.Dialect(
    name="datalog",
    about="Datalog with capital variables, as Prolog systems and RuDaS write it",
    example="memberOf(X,Z) :- worksFor(X,Y), partOf(Y,Z), X != Z.",
    endings=(".dl", ".pl", ".datalog"),
    comments="%",
    statements=base.full_stops("%", "\"'"),
    read_statement=partial(read_rule, _SYNTAX),
    write_statement=_write,
    looks_like=_looks_like,
    rank=5,
)
base.register_dialect(DATALOG)
