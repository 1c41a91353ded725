"""SPARQL, which is only written: a body as SELECT, a rule as CONSTRUCT.

The two sides of an inequality are compared with `sameTerm`: `!=` compares values, and fails for datatypes it
does not know. Names that are no absolute IRIs are written as relative ones.
"""

from __future__ import annotations

import re

from loginfer.logic.dialects.base import Dialect, cannot_express, no_directive, spell_variables
from loginfer.logic.dialects.names import VARIABLE
from loginfer.logic.dialects.statements import lines
from loginfer.logic.rule import Atom, BodyAtom, Inequality, Negation, Rule
from loginfer.logic.scored import ScoredRule
from loginfer.logic.terms import Term, Variable, is_literal

__all__ = ["SPARQL", "body_to_sparql", "rule_to_sparql"]

_IRI = re.compile(r'[^\x00-\x20<>"{}|^`\\]*\Z')


def body_to_sparql(rule: Rule) -> str:
    """Write a rule's body as a query for its witnesses.

    Raises
    ------
    InputError
        If a name cannot be part of an IRI, or a literal stands where none can.
    """
    names = spell_variables(rule, str, VARIABLE)
    shown = " ".join(f"?{names[v]}" for v in rule.variables) or "*"
    return f"SELECT {shown} WHERE {_where(rule, names)}"


def rule_to_sparql(rule: Rule) -> str:
    """Write a rule as a query for its conclusions.

    Raises
    ------
    InputError
        If a name cannot be part of an IRI, or a literal stands where none can.
    """
    names = spell_variables(rule, str, VARIABLE)
    return f"CONSTRUCT {{ {_part(rule.head, rule, names)} }} WHERE {_where(rule, names)}"


def _where(rule: Rule, names: dict[Variable, str]) -> str:
    filters: tuple[BodyAtom, ...] = (*rule.inequalities, *rule.negations)
    parts = [_part(a, rule, names) + " ." for a in rule.atoms] + [_part(f, rule, names) for f in filters]
    return "{ " + "".join(f"{part} " for part in parts) + "}"


def _part(part: BodyAtom, rule: Rule, names: dict[Variable, str]) -> str:
    def iri(name: str) -> str:
        if is_literal(name) or not _IRI.match(name):
            raise cannot_express("SPARQL", f"`{name}` as an IRI", rule)
        return f"<{name}>"

    def term(t: Term, literals: bool = True) -> str:
        if isinstance(t, Variable):
            return f"?{names[t]}"
        return t.name if literals and is_literal(t.name) else iri(t.name)

    if isinstance(part, Inequality):
        return f"FILTER(!sameTerm({term(part.left)}, {term(part.right)}))"
    if isinstance(part, Negation):
        return f"FILTER NOT EXISTS {{ {_part(part.atom, rule, names)} }}"
    return f"{term(part.subject, literals=False)} {iri(_relation(part))} {term(part.object)}"


def _relation(atom: Atom) -> str:
    return str(atom.relation)


def _write(scored: ScoredRule) -> str:
    return rule_to_sparql(scored.rule)


def _looks_like(text: str) -> bool:
    return False


SPARQL = Dialect(
    name="sparql",
    about="SPARQL, a CONSTRUCT query for a rule (written only)",
    example="CONSTRUCT { ?x <memberOf> ?z } WHERE { ?x <worksFor> ?y . ?y <partOf> ?z . "
    "FILTER(!sameTerm(?x, ?z)) }",
    statements=lines,
    read_directive=no_directive,
    read_statement=None,
    write_statement=_write,
    looks_like=_looks_like,
)
