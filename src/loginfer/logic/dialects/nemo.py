"""Nemo programs: `p(?X, ?Y) :- q(?Y, ?X), ?X != ?Y .` and so on.

A relation is a predicate with two arguments. A type atom (x,type,C) is `C(?x)`, a predicate with one argument for
each type, as in fast Nemo programs; only where the type is a variable it is `rdf:type(?x, ?t)`, in full.
Both are read, and `rdf:type(?x, C)` as well. A negated atom has a `~` before it. `_` alone is a new variable
each time. Names that are no plain words are IRIs in angle brackets.
Nemo's other statements (`@import`, `@export`, `@output`, `@parameter`, …) are no rules and are ignored.
"""

from __future__ import annotations

import re
from functools import partial

from loginfer.logic.dialects import base
from loginfer.logic.dialects.datalog import ClauseSyntax, read_rule, write_clause
from loginfer.logic.rule import ScoredRule, Term, Variable, is_literal

_PLAIN = re.compile(r"(?!(?:true|false|not)\Z)[A-Za-z][A-Za-z0-9_]*\Z")
_ANONYMOUS = re.compile(r"_(?=\s*[,.)])")
_OTHER_DIRECTIVE = re.compile(r"\s*@(?:import|export|output|parameter|declare)\b")


def _read_variable(scanner: base.Scanner) -> str | None:
    if scanner.at("!") and not scanner.at("!="):
        scanner.fail("a variable like `?X` or a name", hint="rules have no existential variables")
    return "_" if scanner.match(_ANONYMOUS) else base.read_variable(scanner)


_SYNTAX = ClauseSyntax(
    negation=re.compile("~"),
    refused=("!",),
    read_variable=_read_variable,
    read_name=lambda scanner, prefixes, predicate: base.read_name(scanner, prefixes, predicate=predicate),
    atom="an atom like `p(?X, ?Y)`",
    part="an atom like `p(?X, ?Y)`, a negated one like `~p(?X, ?Y)` or an inequality like `?X != ?Y`",
    term="a variable like `?X` or a name",
    difference="`!=`",
)


def _write(scored: ScoredRule) -> str:
    rule = scored.rule
    names = base.spell_variables(rule, str, base.VARIABLE)

    def name(text: str) -> str:
        return text if _PLAIN.match(text) else base.write_iri(text)

    def predicate(text: str) -> str:
        if is_literal(text):
            raise base.cannot_express("Nemo", f"the literal {text} as a predicate", rule)
        return name(text)

    def term(t: Term) -> str:
        if isinstance(t, Variable):
            return f"?{names[t]}"
        return t.name if is_literal(t.name) else name(t.name)

    return write_clause(rule, term, predicate, negation="~", comma=", ", stop=" .")


def _directive(text: str) -> base.Directive:
    return {} if _OTHER_DIRECTIVE.match(text) else base.read_prefix(text)


def _looks_like(text: str) -> bool:
    head, implied, body = text.partition(":-")
    head = head.strip().rstrip(" .")
    return head.endswith(")") and "(" in head and ("?" in head or "?" in body or not implied)


NEMO = base.Dialect(
    name="nemo",
    about="Nemo",
    example="memberOf(?x, ?z) :- worksFor(?x, ?y), partOf(?y, ?z), ?x != ?z .",
    endings=(".rls",),
    comments="%",
    statements=base.full_stops("%", '"'),
    read_directive=_directive,
    read_statement=partial(read_rule, _SYNTAX),
    write_statement=_write,
    looks_like=_looks_like,
    rank=4,
)
base.register_dialect(NEMO)
