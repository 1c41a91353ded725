"""SPARQL and SQL, which are only written, and bodies as SQL text for the engines that query a database.

SPARQL: a body is a SELECT, a rule a CONSTRUCT. The two sides of an inequality are compared with `sameTerm`: `!=`
compares values, and fails for datatypes it does not know. Names that are no absolute IRIs are written as relative
ones.

SQL: a body is a query for its witnesses over a table `triples(s, r, o)` of names. An atom is a *factor*: a table,
which of its columns hold which variables (or templates), and which must equal a literal. A body is the join of its
factors. A `Layout` says where triples live and how names are written: as quoted text for people (the default), or
as ids for an engine; in one table with a relation column, or in one table per relation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from loginfer.kg import RDF_TYPE
from loginfer.logic.dialects.base import VARIABLE, Dialect, cannot_express, register_dialect, spell_variables
from loginfer.logic.rule import (
    Atom,
    BodyAtom,
    Constant,
    Inequality,
    Negation,
    Rule,
    Template,
    Term,
    Variable,
    is_literal,
)

_IRI = re.compile(r'[^\x00-\x20<>"{}|^`\\]*\Z')


def body_to_sparql(rule: Rule) -> str:
    """Write a rule's body as a query for its witnesses.

    Raises
    ------
    InputError
        If a name cannot be part of an IRI, or a literal stands where none can.
    """
    names = spell_variables(rule, str, VARIABLE)
    variables = " ".join(f"?{names[v]}" for v in rule.variables) or "*"
    return f"SELECT {variables} WHERE {_where(rule, names)}"


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
    return f"{term(part.subject, literals=False)} {iri(str(part.relation))} {term(part.object)}"


SPARQL = Dialect(
    name="sparql",
    about="SPARQL, a CONSTRUCT query for a rule (written only)",
    example="CONSTRUCT { ?x <memberOf> ?z } WHERE { ?x <worksFor> ?y . ?y <partOf> ?z . FILTER(!sameTerm(?x, ?z)) }",
    write_statement=lambda scored: rule_to_sparql(scored.rule),
    rank=6,
)
register_dialect(SPARQL)


SQL = Dialect(
    name="sql",
    about="SQL, a query for the witnesses of a rule's body (written only)",
    example="SELECT t0.s AS x, t0.o AS y FROM triples AS t0 WHERE t0.r = 'worksFor';",
    write_statement=lambda scored: f"-- {scored.rule}\n{body_to_sql(scored.rule)};",
    rank=7,
)
register_dialect(SQL)


# What a column of a factor stands for. Templates are columns too: of relations, or of types.
Column: TypeAlias = Variable | Template


def quote_text(text: str) -> str:
    """Write a text as a literal of standard SQL: nothing in it can end the literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_identifier(name: str) -> str:
    """Write the name of a column or table so that any name is one."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Layout:
    """Where triples live, and how names are written.

    Parameters
    ----------
    table
        The table of all triples.
    subject, relation, object
        Its columns.
    write_relation, write_constant
        From a name to the literal that stands for it in the table.
    table_of
        From a relation's name to a table of its pairs alone, with the columns `subject` and `object`; by
        default pairs are found in `table` by their relation.
    type_predicate
        What the tables call the type predicate; None if no relation is one.
    """

    table: str = "triples"
    subject: str = "s"
    relation: str = "r"
    object: str = "o"
    write_relation: Callable[[str], str] = quote_text
    write_constant: Callable[[str], str] = quote_text
    table_of: Callable[[str], str] | None = None
    type_predicate: str | None = RDF_TYPE


@dataclass(frozen=True, slots=True)
class Factor:
    """A table of distinct rows, seen as a relation over variables and templates.

    Parameters
    ----------
    table
        Name of the table.
    columns
        Pairs of a column's name and what it stands for; a variable may occur twice.
    conditions
        Triples of a column's name, an operator and a literal.
    weight
        Name of the column that says how many witnesses stand behind a row, if there is one.
    """

    table: str
    columns: tuple[tuple[str, Column], ...]
    conditions: tuple[tuple[str, str, str], ...] = ()
    weight: str | None = None

    @property
    def scope(self) -> frozenset[Column]:
        """The variables and templates."""
        return frozenset(column for _, column in self.columns)

    def rename(self, names: Mapping[Term, Term]) -> Factor:
        """Return the factor with variables replaced by others."""
        columns = [(name, names.get(column, column)) for name, column in self.columns]
        return replace(self, columns=tuple((n, c) for n, c in columns if isinstance(c, (Variable, Template))))


def atom_factor(atom: Atom, layout: Layout, table: str | None = None) -> Factor:
    """Return the factor of an atom.

    A relation template ranges over everything but the type predicate, a type template over the objects
    of the type predicate.

    Parameters
    ----------
    atom
        An atom of a rule or pattern.
    layout
        Where triples live.
    table
        Another table of triples to take this atom from.
    """
    columns: list[tuple[str, Column]] = []
    conditions: list[tuple[str, str, str]] = []
    source = table or layout.table
    if isinstance(atom.relation, Template):
        columns.append((layout.relation, atom.relation))
        if layout.type_predicate is not None:
            conditions.append((layout.relation, "<>", layout.write_relation(layout.type_predicate)))
    else:
        name = (layout.type_predicate or RDF_TYPE) if atom.is_type else atom.relation
        if table is None and layout.table_of is not None:
            source = layout.table_of(name)
        else:
            conditions.append((layout.relation, "=", layout.write_relation(name)))
    for column, term in ((layout.subject, atom.subject), (layout.object, atom.object)):
        if isinstance(term, Constant):
            conditions.append((column, "=", layout.write_constant(term.name)))
        else:
            columns.append((column, term))
    if layout.type_predicate is None and isinstance(atom.object, Template):
        conditions.append((layout.object, "IS", "NULL"))  # there are no types: never true
    return Factor(source, tuple(columns), tuple(conditions))


@dataclass(frozen=True, slots=True)
class Join:
    """The FROM and WHERE of a join, and how its columns are called there.

    Parameters
    ----------
    tables
        What stands behind FROM, each with its alias.
    conditions
        What stands behind WHERE; all must hold.
    expressions
        The expression that stands for each variable and template.
    weights
        The weight columns, whose product is the number of witnesses behind a row.
    """

    tables: tuple[str, ...]
    conditions: tuple[str, ...]
    expressions: Mapping[Column, str]
    weights: tuple[str, ...]

    @property
    def text(self) -> str:
        """FROM … WHERE …; nothing at all for an empty join, which has one row."""
        lines = []
        if self.tables:
            lines.append("FROM " + ", ".join(self.tables))
        if self.conditions:
            lines.append("WHERE " + "\n  AND ".join(self.conditions))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A negated atom: rows that the factor has a row for are left out.

    Parameters
    ----------
    factor
        The atom.
    existential
        Those of its variables that only this negation has: there must be no value for them.
    """

    factor: Factor
    existential: frozenset[Variable]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The distinct variables whose values the others give."""
        columns = (c for _, c in self.factor.columns if isinstance(c, Variable) and c not in self.existential)
        return tuple(dict.fromkeys(columns))

    def rename(self, names: Mapping[Term, Term]) -> Exclusion:
        """Return the exclusion with variables replaced by others."""
        return replace(self, factor=self.factor.rename(names))

    def condition(self, expressions: Mapping[Column, str]) -> str:
        """Write what must hold of a row whose columns have these expressions."""
        where = [f"neg.{name} {operator} {literal}" for name, operator, literal in self.factor.conditions]
        first_columns: dict[Column, str] = {}
        for name, column in self.factor.columns:
            other = (
                first_columns.setdefault(column, f"neg.{name}") if column in self.existential else expressions[column]
            )
            if other != f"neg.{name}":
                where.append(f"neg.{name} = {other}")
        condition = f" WHERE {' AND '.join(where)}" if where else ""
        return f"NOT EXISTS (SELECT 1 FROM {self.factor.table} AS neg{condition})"


# What a join checks besides the factors.
Check: TypeAlias = Inequality | Exclusion


def exclusions(rule: Rule, layout: Layout) -> tuple[Exclusion, ...]:
    """Return the negations of a rule, without repetition."""
    return tuple(
        Exclusion(atom_factor(negation.atom, layout), frozenset(rule.existential(negation)))
        for negation in dict.fromkeys(rule.negations)
    )


def join(factors: Sequence[Factor], checks: Iterable[Check], layout: Layout, false: bool = False) -> Join:
    """Join factors over the variables and templates they share, under inequalities and exclusions.

    Parameters
    ----------
    factors
        The factors.
    checks
        Inequalities and exclusions whose variables the factors have.
    layout
        How constants are written.
    false
        Whether nothing satisfies the join, such as a body with x != x.
    """
    tables: list[str] = []
    conditions: list[str] = ["1 = 0"] if false else []
    expressions: dict[Column, str] = {}
    weights: list[str] = []
    for i, factor in enumerate(factors):
        alias = f"t{i}"
        tables.append(f"{factor.table} AS {alias}")
        for name, operator, literal in factor.conditions:
            conditions.append(f"{alias}.{name} {operator} {literal}")
        for name, column in factor.columns:
            expression = f"{alias}.{name}"
            if column in expressions:
                conditions.append(f"{expression} = {expressions[column]}")
            else:
                expressions[column] = expression
        if factor.weight is not None:
            weights.append(f"{alias}.{factor.weight}")

    def write(term: Term) -> str:
        return layout.write_constant(term.name) if isinstance(term, Constant) else expressions[term]

    for check in checks:
        if isinstance(check, Exclusion):
            conditions.append(check.condition(expressions))
        elif is_contradiction(check):
            conditions.append("1 = 0")
        elif check.variables:
            conditions.append(f"{write(check.left)} <> {write(check.right)}")
    return Join(tuple(tables), tuple(conditions), expressions, tuple(weights))


def is_contradiction(check: Check) -> bool:
    """Say whether this is an inequality of a term with itself."""
    return isinstance(check, Inequality) and check.left == check.right


def body_to_sql(rule: Rule, layout: Layout | None = None) -> str:
    """Write a rule's body as a query for its witnesses: one column per variable, one row a witness.

    By default over a table `triples(s, r, o)` of names. A body without variables gives one row with the
    column `holds` if it holds.
    """
    layout = layout or Layout()
    atoms = dict.fromkeys(rule.atoms)
    checks: tuple[Check, ...] = (*rule.inequalities, *exclusions(rule, layout))
    joined = join([atom_factor(atom, layout) for atom in atoms], checks, layout)
    columns = [f"{joined.expressions[v]} AS {quote_identifier(v.name)}" for v in rule.variables]
    return f"SELECT {', '.join(columns) or '1 AS holds'}\n{joined.text}".rstrip()
