"""Rules as SQL queries: supports, whole tables of bodies, conclusions, and orders by hash.

Each query is a chain of common table expressions, one per step of an elimination (see `planning`), whose
columns are called c0, c1, … and, for counts, n. Steps with the same text are written once, so the two arms
of a diamond are joined once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from loginfer.engine.bodies import counted_templates
from loginfer.engine.sql.planning import Elimination, EliminationStep, Estimate, FactorScope, plan_elimination
from loginfer.errors import LimitError
from loginfer.logic.dialects.queries import (
    Check,
    Column,
    Exclusion,
    Factor,
    Layout,
    atom_factor,
    exclusions,
    is_contradiction,
    join,
)
from loginfer.logic.rule import Atom, Constant, Inequality, Negation, Pattern, Rule, Template, Term, Variable
from loginfer.randomness import INCREMENT, MULTIPLIERS

# Inclusion–exclusion over crossing inequalities doubles the counts with each; beyond this many terms what
# an inequality connects is joined instead.
MAX_TERMS = 16


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """Where databases differ.

    Parameters
    ----------
    number
        A type of whole numbers wide enough for counts, at least 38 digits.
    materialised
        What to write before a common table expression that is used more than once.
    costly
        Whether a query, and each join in it, has a price that does not depend on the data. Then rules are
        asked for together where that can be, and what restricts a join no further is left out.
    bits
        A type of whole numbers with 64 bits.
    signed
        Whether these have a sign.
    xor, right, left
        How to write the exclusive or of two of them, and one shifted by a number of bits, with zeros coming in.
    replaced
        How to write the rows `{rows}` with the value `{value}` as their column h.
    """

    number: str
    bits: str
    signed: bool
    xor: str
    right: str
    left: str
    replaced: str
    materialised: str = ""
    costly: bool = False


@dataclass(frozen=True, slots=True)
class CountQuery:
    """A query for one row of counts, and how the number of witnesses follows from it.

    Products over the components of a disconnected body are left to Python's integers.

    Parameters
    ----------
    sql
        The query.
    terms
        For each term of the sum its sign and the number of columns to multiply, in order.
    """

    sql: str
    terms: tuple[tuple[int, int], ...]

    def total(self, row: Sequence[int]) -> int:
        """Return the number of witnesses."""
        values = iter(row)
        return sum(sign * prod(int(next(values)) for _ in range(width)) for sign, width in self.terms)


@dataclass(slots=True)
class Writer:
    """Collects common table expressions, one for each step of an elimination.

    `implied` names, for a table that restricts a column, the one that restricts it and others as well.
    """

    layout: Layout
    dialect: SqlDialect
    counting: bool
    order: Mapping[Column, int]
    steps: dict[str, str] = field(default_factory=dict)
    uses: dict[str, int] = field(default_factory=dict)
    implied: dict[str, str] = field(default_factory=dict)

    def add(self, text: str) -> str:
        """Return the name of a step with this text, which is written once."""
        return self.steps.setdefault(text, f"f{len(self.steps)}")

    def sorted(self, columns: Iterable[Column]) -> list[Column]:
        """Return columns in their order."""
        return sorted(columns, key=self.order.__getitem__)

    def use(self, factors: Iterable[Factor]) -> None:
        """Note that something reads these factors."""
        for factor in factors:
            self.uses[factor.table] = self.uses.get(factor.table, 0) + 1

    def run(self, plan: Elimination, sources: Sequence[Factor]) -> list[Factor]:
        """Write all steps of a plan; return the sources and the results."""
        factors = list(sources)
        for step in plan.steps:
            factors.append(self._step(step, [factors[i] for i in step.inputs]))
        return factors

    def needed(self, factors: Sequence[Factor]) -> list[Factor]:
        """Return the factors of a join without those that others in it imply, if joins have a price."""
        tables = {factor.table for factor in factors} if self.dialect.costly else set()
        return [factor for factor in factors if self.implied.get(factor.table) not in tables]

    def _step(self, step: EliminationStep, inputs: list[Factor]) -> Factor:
        inputs = self.needed(inputs)
        joined = join(inputs, step.inequalities, self.layout)
        columns = self.sorted(step.keep)
        outputs = [f"{joined.expressions[c]} AS c{i}" for i, c in enumerate(columns)]
        before = len(self.steps)
        if self.counting:
            counted = f"sum({' * '.join(joined.weights)})" if joined.weights else "count(*)"
            if not columns:
                counted = f"coalesce({counted}, 0)"
            outputs.append(f"CAST({counted} AS {self.dialect.number}) AS n")
            text = f"SELECT {', '.join(outputs)}\n{joined.text}"
            if columns:
                text += f"\nGROUP BY {', '.join(joined.expressions[c] for c in columns)}"
        elif columns:
            text = f"SELECT DISTINCT {', '.join(outputs)}\n{joined.text}"
            for variable, count in step.sampled:
                text = _few_values(text, len(columns), columns.index(variable), count)
        else:
            text = f"SELECT 1 AS present\n{joined.text}\nLIMIT 1"
        name = self.add(text)
        if len(self.steps) > before:
            self.use(inputs)
        return Factor(name, tuple((f"c{i}", c) for i, c in enumerate(columns)), (), "n" if self.counting else None)

    def text(self, select: str) -> str:
        """Return a query with all steps that were written."""
        if not self.steps:
            return select
        tables = []
        for text, name in self.steps.items():
            if name in self.implied and name not in self.uses:
                continue
            how = self.dialect.materialised + " " if self.uses.get(name, 0) > 1 else ""
            tables.append(f"{name} AS {how.lstrip()}(\n{text}\n)")
        return "WITH " + ",\n".join(tables) + "\n" + select


def _few_values(text: str, width: int, column: int, count: int) -> str:
    """Keep only the `count` smallest values of one column for each value of the others."""
    columns = [f"c{i}" for i in range(width)]
    others = ", ".join(c for i, c in enumerate(columns) if i != column)
    partition = f"PARTITION BY {others} " if others else ""
    ranked = f"SELECT *, row_number() OVER ({partition}ORDER BY c{column}) AS nth FROM (\n{text}\n) AS d"
    return f"SELECT {', '.join(columns)} FROM (\n{ranked}\n) AS e\nWHERE nth <= {count}"


# -- counting ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Term:
    """A signed count, planned."""

    sign: int
    atoms: tuple[Atom, ...]
    extra_factors: tuple[Factor, ...]
    plan: Elimination


def _terms(
    atoms: Sequence[Atom],
    inequalities: Sequence[Check],
    estimate: Estimate | None,
    sign: int = 1,
    budget: int = MAX_TERMS,
    extra_factors: tuple[Factor, ...] = (),
) -> Iterator[_Term]:
    """Split a count until no inequality crosses: #(B ∧ x≠w) = #B − #B[w:=x].

    `extra_factors` stand beside the atoms.
    """
    if any(is_contradiction(e) for e in inequalities):
        return
    atoms = tuple(dict.fromkeys(atoms))
    inequalities = _distinct(inequalities)
    sources = [FactorScope(frozenset(_columns(atom)), frozenset([i])) for i, atom in enumerate(atoms)]
    sources += [FactorScope(factor.scope) for factor in extra_factors]
    plan = plan_elimination(
        sources, atoms, inequalities, (), counting=True, join_inequalities=budget < 2, estimate=estimate
    )
    if not plan.crossing:
        yield _Term(sign, atoms, extra_factors, plan)
        return
    crossing = plan.crossing[0]
    rest = [e for e in inequalities if e != crossing]
    merged: dict[Term, Term] = {crossing.right: crossing.left}
    yield from _terms(atoms, rest, estimate, sign, budget // 2, extra_factors)
    yield from _terms(
        [a.rename(merged) for a in atoms],
        [e.rename(merged) for e in rest],
        estimate,
        -sign,
        budget // 2,
        tuple(factor.rename(merged) for factor in extra_factors),
    )


def _distinct(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the distinct checks of variables; `x != y` and `y != x` are one."""
    distinct: dict[object, Check] = {}
    for check in checks:
        if check.variables:
            distinct.setdefault(frozenset(check.terms) if isinstance(check, Inequality) else check, check)
    return tuple(distinct.values())


def _columns(atom: Atom) -> tuple[Column, ...]:
    return (*atom.templates, *atom.variables)


def column_order(atoms: Iterable[Atom], first: Iterable[Column] = ()) -> dict[Column, int]:
    """Return the position of each variable and template in the columns of a step."""
    atoms = list(atoms)
    columns: list[Column] = [*first]
    columns += [v for a in atoms for v in a.variables]
    columns += [t for a in atoms for t in a.templates]
    return {column: i for i, column in enumerate(dict.fromkeys(columns))}


def count_witnesses(rule: Rule, layout: Layout, dialect: SqlDialect, estimate: Estimate | None = None) -> CountQuery:
    """Write a query for the support of a rule, by sum-product over its variables."""
    writer = Writer(layout, dialect, True, column_order(rule.atoms))
    values: list[str] = []
    terms: list[tuple[int, int]] = []
    excluded = exclusions(rule, layout)
    # Exclusions without variables hold of all witnesses or of none.
    ground = [f"(SELECT count(*) WHERE {e.condition({})})" for e in excluded if not e.variables]
    for term in _terms(rule.atoms, (*rule.inequalities, *excluded), estimate):
        factors = writer.run(term.plan, [atom_factor(atom, layout) for atom in term.atoms])
        rest = [factors[i] for i in term.plan.rest]
        values += ground
        for factor in rest:
            joined = join([factor], (), layout)
            counted = joined.weights[0] if joined.weights else "count(*)"
            values.append(f"(SELECT {counted} {joined.text})")
        writer.use(rest)
        terms.append((term.sign, len(ground) + len(rest)))
    outputs = ",\n".join(f"{value} AS v{i}" for i, value in enumerate(values)) or "1 AS v0"
    return CountQuery(writer.text(f"SELECT {outputs}"), tuple(terms))


def rank_query(
    pattern: Pattern,
    layout: Layout,
    dialect: SqlDialect,
    estimate: Estimate | None = None,
    violated: Sequence[Negation] = (),
) -> str:
    """Write one query for the support of every body of a pattern that has a witness.

    Its columns are c0, c1, …, one per template of the pattern's atoms, and n. Negations are not looked at,
    but for those that must be violated: their templates follow, and witnesses count that violate them all.
    """
    templates = counted_templates(pattern, violated)
    everything = [*pattern.atoms, *(negation.atom for negation in violated)]
    writer = Writer(layout, dialect, True, column_order(everything))
    violated_factors = tuple(_violated(pattern, negation, layout) for negation in violated)
    selects: list[str] = []
    for term in _terms(pattern.atoms, pattern.inequalities, estimate, extra_factors=violated_factors):
        factors = writer.run(term.plan, [*(atom_factor(atom, layout) for atom in term.atoms), *term.extra_factors])
        rest = [factors[i] for i in term.plan.rest]
        joined = join(rest, (), layout)
        writer.use(rest)
        outputs = [f"{joined.expressions[t]} AS c{i}" for i, t in enumerate(templates)]
        number = " * ".join(joined.weights) or "1"
        sign = "-" if term.sign < 0 else ""
        outputs.append(f"{sign}CAST({number} AS {dialect.number}) AS n")
        selects.append(f"SELECT {', '.join(outputs)}\n{joined.text}")
    columns = ", ".join(f"c{i}" for i in range(len(templates)))
    if not selects:
        nothing = ", ".join([*(f"0 AS c{i}" for i in range(len(templates))), "0 AS n"])
        return f"SELECT {nothing}\nWHERE 1 = 0"
    if len(selects) == 1:
        return writer.text(f"SELECT * FROM (\n{selects[0]}\n) AS counts\nWHERE n > 0")
    union = "\nUNION ALL\n".join(selects)
    grouped = f"\nGROUP BY {columns}" if columns else ""
    listed = f"{columns}, " if columns else ""
    return writer.text(
        f"SELECT {listed}CAST(sum(n) AS {dialect.number}) AS n FROM (\n{union}\n) AS terms{grouped}\nHAVING sum(n) > 0"
    )


def _violated(pattern: Pattern, negation: Negation, layout: Layout) -> Factor:
    """Return the values of bound variables and templates for which what is negated holds, each once."""
    existential = set(pattern.existential(negation))
    joined = join([atom_factor(negation.atom, layout)], (), layout)
    columns = [column for column in joined.expressions if column not in existential]
    outputs = ", ".join(f"{joined.expressions[c]} AS v{i}" for i, c in enumerate(columns))
    return Factor(f"(SELECT DISTINCT {outputs} {joined.text})", tuple((f"v{i}", c) for i, c in enumerate(columns)))


# Rows to restrict a projection to: a query for distinct c0, c1, … and what these columns stand for.
Among: TypeAlias = tuple[str, Sequence[Column]]


@dataclass(frozen=True, slots=True)
class ProjectionQuery:
    """A query for distinct rows with the columns c0, c1, … (`present` if there are none to keep).

    Parameters
    ----------
    sql
        The query.
    parts
        If the kept columns fall apart into components that share nothing, a query for the size of each
        component: the result is their product.
    """

    sql: str
    parts: tuple[str, ...]


def project(
    atoms: Sequence[Atom],
    inequalities: Sequence[Check],
    keep: Sequence[Column],
    layout: Layout,
    dialect: SqlDialect,
    *,
    estimate: Estimate | None = None,
    tables: Mapping[Atom, str] | None = None,
    among: Among | None = None,
) -> ProjectionQuery:
    """Write a query for the distinct values of some variables over all witnesses of a body.

    Parameters
    ----------
    atoms, inequalities
        The body; exclusions are among the inequalities.
    keep
        The variables whose values are wanted, in the order of the columns; templates may be among them.
    layout, dialect
        Where triples are stored and the database's dialect.
    estimate
        The expected size of a join.
    tables
        Atoms to be taken from other tables of triples, such as those of the last round.
    among
        Only witnesses with these values.
    """
    atoms = tuple(dict.fromkeys(atoms))
    writer = Writer(layout, dialect, False, column_order(atoms, keep))
    contradiction = any(is_contradiction(e) for e in inequalities)
    inequalities = tuple(dict.fromkeys(e for e in inequalities if e.variables or isinstance(e, Exclusion)))
    # What restricts comes first, for databases that join in the order in which tables are written.
    factors = [] if among is None else list(_restrictions(writer, *among))
    sources = [FactorScope(f.scope) for f in factors]
    factors += [atom_factor(atom, layout, (tables or {}).get(atom)) for atom in atoms]
    sources += [FactorScope(f.scope, frozenset([i])) for i, f in enumerate(factors[len(sources) :])]
    plan = plan_elimination(sources, atoms, inequalities, keep, counting=False, estimate=estimate)
    factors = writer.run(plan, factors)
    rest = writer.needed([factors[i] for i in plan.rest])
    writer.use(rest)
    joined = join(rest, plan.inequalities, layout, contradiction)
    outputs = ", ".join(f"{joined.expressions[v]} AS c{i}" for i, v in enumerate(keep))
    sql = f"SELECT {outputs or '1 AS present'}\n{joined.text}"
    if not keep:
        sql += "\nLIMIT 1"
    groups = _components(rest)
    if contradiction or sum(any(f.scope for f in group) for group in groups) < 2:
        return ProjectionQuery(writer.text(sql), ())
    # Groups without columns have one row or none: then there is no product.
    parts = [writer.text(f"SELECT count(*) AS v0\n{join(group, (), layout).text}") for group in groups]
    return ProjectionQuery(writer.text(sql), tuple(parts))


def _restrictions(writer: Writer, rows: str, columns: Sequence[Column]) -> Iterator[Factor]:
    """Yield a table of allowed rows as a factor, and each of its variables as one more.

    The single columns restrict joins that do not hold all of them yet. With templates among the columns no
    join may do without the rows themselves.
    """
    name = writer.add(rows)
    yield Factor(name, tuple((f"c{i}", v) for i, v in enumerate(columns)))
    writer.uses[name] = 1
    if len(columns) > 1 and not any(isinstance(column, Template) for column in columns):
        for i, variable in enumerate(columns):
            single = writer.add(f"SELECT DISTINCT c{i} AS c0 FROM {name}")
            writer.implied[single] = name
            yield Factor(single, (("c0", variable),))
        writer.uses[name] += len(columns)


def _components(factors: Sequence[Factor]) -> list[list[Factor]]:
    """Split factors into groups that share no column."""
    groups: list[tuple[set[Column], list[Factor]]] = []
    for factor in factors:
        scope, members = set(factor.scope), [factor]
        apart = []
        for other_scope, others in groups:
            if other_scope & scope:
                scope |= other_scope
                members = [*others, *members]
            else:
                apart.append((other_scope, others))
        groups = [*apart, (scope, members)]
    return [members for _, members in groups]


def refuse_product(sizes: Sequence[int], limit: int, what: str) -> None:
    """Raise `LimitError` if the product of some sizes exceeds a limit."""
    if sizes and prod(sizes) > limit:
        factors = " × ".join(f"{size:,}" for size in sizes if size > 1)
        raise LimitError(
            f"{what} has {factors} rows, more than {limit:,}",
            hint="add an atom that connects the head's variables, or raise the engine's `max_conclusions`",
        )


# -- random orders ----------------------------------------------------------------------------------------

_LOW = 2**32 - 1


def hashed(query: str, key: str, salt: int, dialect: SqlDialect) -> str:
    """Return a query for the rows of another one with a column h.

    Ordered by h, rows are in the order of `randomness.hash_order` of a key, an expression over them (BIGINT,
    not negative), with this salt.

    Databases refuse to overflow, so sums and products are made of parts that do not. Each step reads h several
    times, so it is a query of its own; to take them apart costs Spark more than to do them, hence few.
    """

    def literal(number: int) -> str:
        return f"CAST({number - 2**64 if dialect.signed and number >= 2**63 else number} AS {dialect.bits})"

    def right(value: str, shift: int) -> str:
        return dialect.right.format(value, shift)

    def left(value: str, shift: int) -> str:
        return dialect.left.format(value, shift)

    def xor(one: str, other: str) -> str:
        return dialect.xor.format(one, other)

    def folded(shift: int) -> str:
        return xor("h", right("h", shift))

    def low(value: str) -> str:
        return f"({value} & {_LOW})"

    def joined(lower: str, upper: str) -> str:
        """Make 64 bits of two halves, the lower of which may carry."""
        return f"{left(low(f'({upper} + {right(lower, 32)})'), 32)} | {low(lower)}"

    def added(value: str) -> str:
        """Add the increment modulo 2^64."""
        return joined(f"({low(value)} + {INCREMENT & _LOW})", f"({right(value, 32)} + {INCREMENT >> 32})")

    def times(value: str, number: int) -> str:
        """Multiply modulo 2^64; 16 bits of the number at a time, so that nothing exceeds 63 bits."""
        half, upper = low(value), right(value, 32)

        def lower(half: str, number: int) -> str:
            """Write the lower 32 bits of a product of 32 bits with 32 bits."""
            return low(f"({half} * {number & 0xFFFF} + {left(f'(({half} * {number >> 16}) & 65535)', 16)})")

        one, two = number & 0xFFFF, number >> 16 & 0xFFFF
        below = f"({half} * {one} + {left(f'(({half} * {two}) & 65535)', 16)})"
        carried = right(f"({half} * {two})", 16)
        return joined(below, f"({carried} + {lower(half, number >> 32)} + {lower(upper, number & _LOW)})")

    values = [added("h"), *(times(folded(shift), number) for shift, number in zip((30, 27), MULTIPLIERS, strict=True))]
    salted = added(f"({xor(folded(31), literal(salt))})")
    last = folded(31)
    if dialect.signed:  # with the highest bit turned, numbers with a sign have the order of those without
        last = xor(last, literal(2**63))
    query = f"SELECT *, CAST({key} AS {dialect.bits}) AS h FROM ({query}) AS q"
    for value in (*values, salted, *values[1:], last):
        query = dialect.replaced.format(rows=query, value=value)
    return query


def head_columns(rule: Rule, layout: Layout) -> tuple[str, str]:
    """Return the expressions for a conclusion's subject and object over a projection q to the head."""
    position: dict[Term, int] = {v: i for i, v in enumerate(rule.head.variables)}

    def write(term: Term) -> str:
        return layout.write_constant(term.name) if isinstance(term, Constant) else f"q.c{position[term]}"

    return write(rule.head.subject), write(rule.head.object)


def head_conditions(rule: Rule, relation: int, layout: Layout) -> list[str]:
    """Return what a triple in a table a must satisfy to look like a rule's head."""
    conditions = [f"a.r = {relation}"]
    for column, term in (("s", rule.head.subject), ("o", rule.head.object)):
        if isinstance(term, Constant):
            conditions.append(f"a.{column} = {layout.write_constant(term.name)}")
    if isinstance(rule.head.subject, Variable) and rule.head.subject == rule.head.object:
        conditions.append("a.s = a.o")
    return conditions


def head_rows(rule: Rule, relation: int, layout: Layout, table: str) -> str:
    """Return a query for the values c0, c1 that a table gives to the head's variables.

    They are distinct where the table's triples are: the others' values follow from theirs.
    """
    outputs = [
        f"a.{'s' if variable == rule.head.subject else 'o'} AS c{i}" for i, variable in enumerate(rule.head.variables)
    ]
    where = " AND ".join(head_conditions(rule, relation, layout))
    return f"SELECT {', '.join(outputs) or '1 AS present'} FROM {table} AS a WHERE {where}"
