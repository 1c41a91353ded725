r"""RDFox Datalog: `[?X, :p, ?Y] :- [?Y, :q, ?X], FILTER(?X != ?Y) .` and so on.

Read: triples in square brackets, `:p[?X, ?Y]` and `:C[?X]`, `FILTER` with inequalities joined by `&&`,
`NOT [?X, :p, ?Y]` and `NOT EXISTS ?Y IN ([?X, :p, ?Y])` with one atom,
`PREFIX p: <iri>` and `@prefix p: <iri> .`, `a` and `rdf:type`. Written: triples with full IRIs; characters
that no IRI can hold as `\uXXXX`. Rules may span lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE
from loginfer.logic.dialects import base
from loginfer.logic.dialects.datalog import joined_clause, read_clause
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Negation, ScoredRule, Term, Variable, is_literal

_FILTER = re.compile(r"FILTER\b", re.IGNORECASE)
_NOT = re.compile(r"NOT\b", re.IGNORECASE)
_EXISTS = re.compile(r"EXISTS?\b", re.IGNORECASE)
_IN = re.compile(r"IN\b", re.IGNORECASE)
_OTHER = re.compile(r"(?:AGGREGATE|BIND|SKOLEM)\b", re.IGNORECASE)
_A = re.compile(r"a(?=[\s,])")
_ATOM = "an atom like `[?X, :p, ?Y]`"


class _TripleReader:
    def __init__(self, scanner: base.Scanner, prefixes: Mapping[str, str]) -> None:
        self.scanner = scanner
        self.prefixes = prefixes
        self.quantified: set[Variable] = set()

    def part(self) -> list[BodyAtom]:
        scanner = self.scanner
        if scanner.match(_FILTER):
            scanner.expect("(")
            inequalities: list[BodyAtom] = [self.inequality()]
            while scanner.take("&&"):
                inequalities.append(self.inequality())
            scanner.expect(")", "`&&` or `)`")
            return inequalities
        scanner.skip()
        start = scanner.position
        if scanner.match(_NOT):
            return [self.negation()]
        word = scanner.match(_OTHER)
        if word:
            hint = f"`{word.group()}` is not part of the rule language"
            scanner.fail(f"{_ATOM} or `FILTER(?X != ?Y)`", at=start, hint=hint)
        return [self.atom(f"{_ATOM} or `FILTER(?X != ?Y)`")]

    def negation(self) -> Negation:
        """Read what follows `NOT`."""
        scanner = self.scanner
        if not scanner.match(_EXISTS):
            return Negation(self.atom())
        while True:
            variable = base.read_variable(scanner)
            if variable is None:
                scanner.fail("a variable like `?X`")
            self.quantified.add(Variable(variable))
            if scanner.take(",") is None:
                break
        if not scanner.match(_IN):
            scanner.fail("`,` or `IN`")
        bracket = scanner.take("(")
        atom = self.atom()
        if bracket:
            scanner.expect(")", "`)`: a negation is of one atom")
        return Negation(atom)

    def inequality(self) -> Inequality:
        left = self.term()
        self.scanner.expect("!=")
        return Inequality(left, self.term())

    def atom(self, expected: str = _ATOM) -> Atom:
        scanner = self.scanner
        if scanner.take("["):
            subject = self.term()
            scanner.expect(",")
            relation = self.relation()
            scanner.expect(",")
            object_ = self.term()
            scanner.expect("]")
            return Atom(subject, relation, object_)
        name = base.read_name(scanner, self.prefixes, predicate=True)
        if name is None:
            scanner.fail(expected)
        scanner.expect("[")
        first = self.term()
        if scanner.take(","):
            second = self.term()
            scanner.expect("]")
            return Atom(first, name, second)
        scanner.expect("]", "`,` or `]`")
        return Atom(first, RDF_TYPE, Constant(name))

    def relation(self) -> str:
        scanner = self.scanner
        if scanner.at("?"):
            scanner.fail("the name of a relation", hint="variables stand for subjects and objects only")
        if scanner.match(_A):
            return RDF_TYPE
        name = base.read_name(scanner, self.prefixes, predicate=True)
        if name is None:
            scanner.fail("the name of a relation")
        return name

    def term(self) -> Term:
        variable = base.read_variable(self.scanner)
        if variable is not None:
            return Variable(variable)
        name = base.read_name(self.scanner, self.prefixes)
        if name is None:
            self.scanner.fail("a variable like `?X` or a name")
        return Constant(name)


def _read(text: str, prefixes: Mapping[str, str], where: str | None) -> ScoredRule:
    scanner = base.Scanner(text, where)
    reader = _TripleReader(scanner, prefixes)
    rule = read_clause(scanner, reader.atom, reader.part)
    for variable in rule.variables:
        if variable in reader.quantified:
            message = f"`{variable}` is quantified by `NOT EXISTS` and occurs in an atom of the body as well"
            raise InputError(message, where=where, hint="give it another name under `NOT EXISTS`")
    return ScoredRule(rule)


def _write(scored: ScoredRule) -> str:
    rule = scored.rule
    names = base.spell_variables(rule, str, base.VARIABLE)

    def term(t: Term) -> str:
        return f"?{names[t]}" if isinstance(t, Variable) else base.write_name(t.name)

    def part(p: BodyAtom) -> str:
        if isinstance(p, Inequality):
            return f"FILTER({term(p.left)} != {term(p.right)})"
        if isinstance(p, Negation):
            hidden = ", ".join(term(v) for v in rule.existential(p))
            return f"NOT EXISTS {hidden} IN ({part(p.atom)})" if hidden else f"NOT {part(p.atom)}"
        relation = str(p.relation)
        if is_literal(relation):
            raise base.cannot_express("RDFox", f"the literal {relation} as a relation", rule)
        return f"[{term(p.subject)}, {base.write_iri(relation)}, {term(p.object)}]"

    return joined_clause(rule, part, " .")


def _looks_like(text: str) -> bool:
    head = text.partition(":-")[0].strip()
    return head.startswith("[") or (head.rstrip(" .").endswith("]") and "[" in head)


RDFOX = base.Dialect(
    name="rdfox",
    about="RDFox Datalog",
    example="[?x, :memberOf, ?z] :- [?x, :worksFor, ?y], [?y, :partOf, ?z], FILTER(?x != ?z) .",
    endings=(".dlog",),
    statements=base.full_stops("#", '"'),
    read_directive=base.read_prefix,
    read_statement=_read,
    write_statement=_write,
    looks_like=_looks_like,
    rank=1,
)
base.register_dialect(RDFOX)
