"""Nemo programs: `p(?X, ?Y) :- q(?Y, ?X), ?X != ?Y .` and so on.

A relation is a predicate with two places. A type atom (x,type,C) is `C(?x)`, a predicate with one place per
type, as fast Nemo programs have it; only where the type is a variable it is `rdf:type(?x, ?t)`, in full.
Both are read, and `rdf:type(?x, C)` as well. A negated atom has a `~` before it. `_` alone is a new variable
each time. Names that are no plain words are IRIs in angle brackets.
Nemo's other statements (`@import`, `@export`, `@output`, `@parameter`, …) are no rules and are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from loginfer.kg import RDF_TYPE
from loginfer.logic.dialects.base import (
    VARIABLE,
    Dialect,
    Directive,
    Scanner,
    cannot_express,
    full_stops,
    read_name,
    read_prefix,
    read_variable,
    spell_variables,
    write_iri,
)
from loginfer.logic.dialects.datalog import read_clause
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Negation, ScoredRule, Term, Variable, is_literal

_PLAIN = re.compile(r"(?!(?:true|false|not)\Z)[A-Za-z][A-Za-z0-9_]*\Z")
_PART = "an atom like `p(?X, ?Y)`, a negated one like `~p(?X, ?Y)` or an inequality like `?X != ?Y`"
_ANONYMOUS = re.compile(r"_(?=\s*[,.)])")
_OTHER_DIRECTIVE = re.compile(r"\s*@(?:import|export|output|parameter|declare)\b")


class _Reader:
    def __init__(self, scanner: Scanner, prefixes: Mapping[str, str]) -> None:
        self.scanner = scanner
        self.prefixes = prefixes
        self.anonymous = 0

    def part(self) -> list[BodyAtom]:
        scanner = self.scanner
        if scanner.take("~"):
            return [Negation(self.atom())]
        if scanner.at("!"):
            scanner.fail(_PART)
        variable = read_variable(scanner)
        if variable is not None:
            return [self.rest_of_inequality(Variable(variable))]
        scanner.skip()
        start = scanner.position
        self.name(_PART, predicate=True)
        if scanner.at("("):
            scanner.position = start
            return [self.atom()]
        scanner.position = start
        return [self.rest_of_inequality(Constant(self.name(_PART)))]

    def rest_of_inequality(self, left: Term) -> Inequality:
        self.scanner.expect("!=")
        return Inequality(left, self.term())

    def atom(self) -> Atom:
        scanner = self.scanner
        predicate = self.name("an atom like `p(?X, ?Y)`", predicate=True)
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

    def name(self, expected: str, *, predicate: bool = False) -> str:
        found = read_name(self.scanner, self.prefixes, predicate=predicate)
        if found is None:
            self.scanner.fail(expected)
        return found

    def term(self) -> Term:
        if self.scanner.at("!") and not self.scanner.at("!="):
            self.scanner.fail("a variable like `?X` or a name", hint="rules have no existential variables")
        if self.scanner.match(_ANONYMOUS):
            self.anonymous += 1
            return Variable(f"_{self.anonymous}")
        variable = read_variable(self.scanner)
        return Variable(variable) if variable is not None else Constant(self.name("a variable like `?X` or a name"))


def _read(text: str, prefixes: Mapping[str, str], where: str | None) -> ScoredRule:
    scanner = Scanner(text, where, comment="%")
    reader = _Reader(scanner, prefixes)
    return ScoredRule(read_clause(scanner, reader.atom, reader.part))


def _write(scored: ScoredRule) -> str:
    rule = scored.rule
    names = spell_variables(rule, str, VARIABLE)

    def name(text: str) -> str:
        return text if _PLAIN.match(text) else write_iri(text)

    def predicate(text: str) -> str:
        if is_literal(text):
            raise cannot_express("Nemo", f"the literal {text} as a predicate", rule)
        return name(text)

    def term(t: Term) -> str:
        if isinstance(t, Variable):
            return f"?{names[t]}"
        return t.name if is_literal(t.name) else name(t.name)

    def part(p: BodyAtom) -> str:
        if isinstance(p, Inequality):
            return f"{term(p.left)} != {term(p.right)}"
        if isinstance(p, Negation):
            return f"~{part(p.atom)}"
        if p.is_type and isinstance(p.object, Constant):
            return f"{predicate(p.object.name)}({term(p.subject)})"
        return f"{predicate(str(p.relation))}({term(p.subject)}, {term(p.object)})"

    body = ", ".join(part(p) for p in rule.body)
    return f"{part(rule.head)} :- {body} ." if body else f"{part(rule.head)} ."


def _directive(text: str) -> Directive:
    return {} if _OTHER_DIRECTIVE.match(text) else read_prefix(text)


def _looks_like(text: str) -> bool:
    head, implied, body = text.partition(":-")
    head = head.strip().rstrip(" .")
    return head.endswith(")") and "(" in head and ("?" in head or "?" in body or not implied)


NEMO = Dialect(
    name="nemo",
    about="Nemo",
    example="memberOf(?x, ?z) :- worksFor(?x, ?y), partOf(?y, ?z), ?x != ?z .",
    endings=(".rls",),
    comments="%",
    statements=full_stops("%", '"'),
    read_directive=_directive,
    read_statement=_read,
    write_statement=_write,
    looks_like=_looks_like,
)
