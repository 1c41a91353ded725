r"""Our own syntax: `(x,R,y), (y,S,z), x != z -> (x,T,z)`.

A body is a list of atoms, inequalities and negated atoms, separated by `,`, `&` or `∧`; then comes `->` (or
`→`) and the head. `(x,type,C)` is a type atom (also `a` and `rdf:type`). `not (y,S,z)` is a negated atom; if
z is in no other part, it says that there is no z with (y,S,z) (`¬` and `!` mean the same). A term is

- a variable: one small letter, with digits or primes (`x`, `y2`, `z'`), or `?anything`;
- a name: bare (`_hypernym`, `/people/person/nationality`, `http://example.org/ns#worksFor`), or in angle
  brackets, where `\` and `>` have a backslash before them, or `p:local` if `@prefix p: <iri> .` came before;
- a literal: `"42"^^<http://www.w3.org/2001/XMLSchema#integer>`;
- in patterns, a template: an underscore and one letter (`_R`, `_t2`). In a rule such a name needs brackets.

`#` at the start or after a space begins a comment. In rule files three columns may stand before a rule,
separated by tabs as AnyBURL does: predictions, correct predictions, confidence. Further measures stand behind
it, in a comment that holds nothing else: `# weight=1.25 intercept=-3.5`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE
from loginfer.logic.dialects import base
from loginfer.logic.rule import (
    BRACKETED,
    LITERAL,
    TEMPLATE,
    VARIABLE,
    WORD,
    Atom,
    BodyAtom,
    Constant,
    Inequality,
    Negation,
    Pattern,
    Predicate,
    Rule,
    ScoredRule,
    Template,
    Term,
    Variable,
)

_ARROWS = ("->", "→")
_ANDS = (",", "&&", "&", "∧")
_DIFFERS = ("!=", "≠")
_NEGATION = re.compile(r"(?:not|¬|!)\s*(?=\()")
_INEQUALITY = re.compile(rf"(?:{LITERAL.pattern}|{BRACKETED.pattern}|\??{WORD.pattern})\s*(?:!=|≠)")
_TYPE_WORDS = ("type", "a", "rdf:type")
# A rule ends with a bracket, which no measure contains: so this never matches inside a name.
_MEASURE = r"[A-Za-z_]\w*=[^\s=()<>,\"#]+"
_MEASURES = re.compile(rf"\s#\s*({_MEASURE}(?:\s+{_MEASURE})*)\s*\Z", re.ASCII)
_PART = "an atom like `(x,R,y)`, a negated one like `not (x,R,y)` or an inequality like `x != y`"


def parse_rule(text: str, *, prefixes: Mapping[str, str] | None = None, where: str | None = None) -> Rule:
    """Read a rule in our own syntax.

    Parameters
    ----------
    text
        For instance `(x,_hypernym,y), (y,S,z), x != z -> (x,T,z)`.
    prefixes
        What `p:` stands for in `p:local`.
    where
        File and line, for error messages.

    Raises
    ------
    ParseError
        With the column where reading stopped and what was expected there.
    InputError
        If the rule is not safe.
    """
    return _read_rule(base.Scanner(text, where), prefixes or {})


def _read_rule(scanner: base.Scanner, prefixes: Mapping[str, str]) -> Rule:
    body, head = _Parser(scanner, prefixes, templates=False).clause()
    with base.located(scanner.where):
        return Rule(body, head)


def parse_pattern(text: str, *, name: str | None = None, where: str | None = None) -> Pattern:
    """Read a pattern in our own syntax, where `_R` is a template.

    Parameters
    ----------
    text
        For instance `(x,_R,y), (y,_S,z), x != z -> (x,_T,z)`.
    name
        What to call the pattern; its text by default.
    where
        File and line, for error messages.

    Raises
    ------
    ParseError
        With the column where reading stopped and what was expected there.
    InputError
        If the pattern is not safe, or has no atom.
    """
    body, head = _Parser(base.Scanner(text, where), {}, templates=True).clause()
    with base.located(where):
        return Pattern(body, head, name)


class _Parser:
    """Recursive descent over one rule or pattern."""

    def __init__(self, scanner: base.Scanner, prefixes: Mapping[str, str], *, templates: bool) -> None:
        self.scanner = scanner
        self.prefixes = prefixes
        self.templates = templates

    def clause(self) -> tuple[list[BodyAtom], Atom]:
        scanner = self.scanner
        body: list[BodyAtom] = []
        if scanner.take(*_ARROWS) is None:
            body.append(self.part())
            while scanner.take(*_ARROWS) is None:
                if scanner.take(*_ANDS) is None:
                    scanner.fail("`,` or `->`")
                body.append(self.part())
        if not scanner.at("("):
            scanner.fail("the head, an atom like `(x,R,y)`")
        scanner.take("(")
        head = self.rest_of_atom(self.term())
        scanner.take(".")
        if not scanner.at_end():
            scanner.fail("the end of the rule")
        return body, head

    def part(self) -> BodyAtom:
        scanner = self.scanner
        if scanner.take("("):
            first = self.term()
            if scanner.take(*_DIFFERS):
                inequality = Inequality(first, self.term())
                scanner.expect(")")
                return inequality
            if not scanner.at(","):
                scanner.fail("`,` or `!=`")
            return self.rest_of_atom(first)
        if scanner.at_end() or scanner.at(*_ANDS, *_ARROWS):
            scanner.fail(_PART)
        start = scanner.position
        if scanner.match(_NEGATION):
            scanner.take("(")
            first = self.term()
            if scanner.at(*_DIFFERS):
                scanner.fail("a negated atom like `not (x,R,y)`", at=start, hint="only atoms are negated")
            return Negation(self.rest_of_atom(first))
        left = self.term(_PART)
        if scanner.take(*_DIFFERS) is None:
            scanner.fail("`!=`")
        return Inequality(left, self.term())

    def rest_of_atom(self, subject: Term) -> Atom:
        """Read what follows `(subject`."""
        scanner = self.scanner
        scanner.expect(",")
        relation = self.relation()
        scanner.expect(",")
        object_ = self.term(type_template=relation == RDF_TYPE)
        scanner.expect(")")
        return Atom(subject, relation, object_)

    def relation(self) -> Predicate:
        start, word = self.word()
        if word is None:
            name = self.quoted()
            if name is None:
                self.no_name("the name of a relation" + (" or a template like `_R`" if self.templates else ""))
            return name
        if TEMPLATE.match(word):
            return self.template(word, start)
        expanded = self.expand(word)
        return RDF_TYPE if expanded == word and word in _TYPE_WORDS else expanded

    def term(self, expected: str = "a variable or a name", *, type_template: bool = False) -> Term:
        scanner = self.scanner
        scanner.skip()
        start = scanner.position
        if scanner.at("?"):
            scanner.take("?")
            _, word = self.word()
            if word is None or not VARIABLE.match("?" + word):
                scanner.fail("a variable like `?person`", at=start)
            return Variable(word)
        start, word = self.word()
        if word is None:
            name = self.quoted()
            if name is None:
                scanner.fail(expected)
            return Constant(name)
        if VARIABLE.match(word):
            return Variable(word)
        if TEMPLATE.match(word):
            if self.templates and not type_template:
                hint = "templates stand for relations, and for types in type atoms: (x,type,_t)"
                scanner.fail("a variable or a name", at=start, hint=hint)
            return self.template(word, start)
        return Constant(self.expand(word))

    def template(self, word: str, start: int) -> Template:
        if not self.templates:
            self.scanner.fail(
                "a name",
                at=start,
                hint=f"`{word}` is a template, and templates belong into patterns; if it is the name of a "
                f"relation or constant, write <{word}>",
            )
        return Template(word)

    def word(self) -> tuple[int, str | None]:
        """Step over a bare word; return where it starts, and the word or None."""
        self.scanner.skip()
        start = self.scanner.position
        match = self.scanner.match(WORD)
        return start, match.group() if match else None

    def quoted(self) -> str | None:
        """Step over a literal or a name in angle brackets."""
        scanner = self.scanner
        literal = scanner.match(LITERAL)
        if literal:
            return literal.group()
        if scanner.at('"'):
            scanner.fail('a literal like "text", "text"@en or "1"^^<datatype>')
        start = scanner.position
        bracketed = scanner.match(BRACKETED)
        if bracketed:
            try:
                return base.unescape(bracketed.group(1))
            except InputError as error:
                scanner.fail("a name in angle brackets", at=start, hint=error.message)
        if scanner.at("<"):
            scanner.fail("a name in angle brackets, with its `>`")
        return None

    def no_name(self, expected: str) -> NoReturn:
        if self.scanner.at("?"):
            self.scanner.fail(expected, hint="variables stand for subjects and objects only")
        self.scanner.fail(expected)

    def expand(self, word: str) -> str:
        prefix, colon, local = word.partition(":")
        if colon and prefix in self.prefixes and not local.startswith("//"):
            return self.prefixes[prefix] + local
        return word


def _read(text: str, prefixes: Mapping[str, str], where: str | None) -> ScoredRule:
    columns, start = base.read_columns(text, where)
    scanner = base.Scanner(text, where)
    scanner.position = start
    return ScoredRule(_read_rule(scanner, prefixes), *columns, extra=_read_measures(text))


def _read_measures(text: str) -> tuple[tuple[str, str], ...]:
    match = _MEASURES.search(text)
    if match is None:
        return ()
    pairs = (part.partition("=") for part in match.group(1).split())
    return tuple((name, value) for name, _, value in pairs)


def _write(scored: ScoredRule) -> str:
    text = base.write_columns(scored) + str(scored.rule)
    comment = " # " + " ".join(f"{name}={value}" for name, value in scored.extra)
    # Measures whose names or values would not be read back are left out, as in any other dialect.
    return text + comment if _read_measures(comment) == scored.extra != () else text


def _looks_like(text: str) -> bool:
    rest = text[base.rule_start(text) :].lstrip()
    begins = rest.startswith(("(", "->", "→")) or _NEGATION.match(rest) or _INEQUALITY.match(rest)
    return bool(begins) and ("->" in rest or "→" in rest)


ARROW = base.Dialect(
    name="arrow",
    about="LogInfer's own syntax",
    example="(x,worksFor,y), (y,partOf,z), x != z -> (x,memberOf,z)",
    endings=(".rules",),
    comments="#",
    read_directive=base.read_prefix,
    read_statement=_read,
    write_statement=_write,
    looks_like=_looks_like,
    keeps_scores=True,
    rank=0,
)
base.register_dialect(ARROW)
