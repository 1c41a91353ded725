"""In which order a body's variables are summed or projected away, and how large joins will be.

Joining all atoms and counting or projecting at the end would enumerate every witness. Instead variables
are eliminated one by one: the factors that hold a variable are joined, and only what the rest still needs
is kept, with the number of witnesses behind each row (counting) or as distinct rows (projection).

An inequality x != w is checked by the first join that holds both. If x must go before w is there:

- a count leaves it to the caller as *crossing*: #(B ∧ x≠w) = #B − #B[w:=x], two simpler counts;
- a projection keeps x a while longer, but only as many of its values as can matter: k + 1 distinct
  values always hold one that differs from k others.

A negated atom is checked like an inequality; if it has both x and w, what holds them is joined before one
of them goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from loginfer.logic.dialects.queries import Check, Column, Exclusion
from loginfer.logic.rule import Atom, Inequality, Template, Variable

if TYPE_CHECKING:
    from loginfer.engine.sql.session import Session

# The expected number of rows in the join of some atoms.
Estimate: TypeAlias = Callable[[Sequence[Atom]], float]

# With more variables to eliminate than this the cheapest next step is taken, without looking further.
EXHAUSTIVE = 5


@dataclass(frozen=True, slots=True)
class FactorScope:
    """What the planner knows of a factor.

    Parameters
    ----------
    scope
        Its variables and templates.
    atoms
        Indices of the atoms it was joined from.
    original
        Whether it is an atom or another given table, not the result of a step. Such a table joins any step
        that holds all its variables: there it only restricts.
    enforced
        The inequalities and exclusions that hold in it already.
    """

    scope: frozenset[Column]
    atoms: frozenset[int] = frozenset()
    original: bool = True
    enforced: frozenset[Check] = frozenset()

    @property
    def variables(self) -> frozenset[Variable]:
        """Its variables, without templates."""
        return frozenset(c for c in self.scope if isinstance(c, Variable))


@dataclass(frozen=True, slots=True)
class EliminationStep:
    """Join some factors and keep some columns; the result is a new factor.

    Parameters
    ----------
    inputs
        Indices of the factors: given ones first, then results of earlier steps.
    inequalities
        What to check in the join.
    keep
        The columns of the result.
    sampled
        For projections: variables of which a few values per group are enough, with how many.
    """

    inputs: tuple[int, ...]
    inequalities: tuple[Check, ...]
    keep: frozenset[Column]
    sampled: tuple[tuple[Variable, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Elimination:
    """How to eliminate all variables that are not kept.

    Parameters
    ----------
    steps
        The joins, in order.
    rest
        Indices of the factors that remain: they hold kept columns only.
    inequalities
        What to check when the rest is joined.
    crossing
        Inequalities that no step of a count can check.
    cost
        Expected number of rows joined.
    """

    steps: tuple[EliminationStep, ...]
    rest: tuple[int, ...]
    inequalities: tuple[Check, ...]
    crossing: tuple[Inequality, ...]
    cost: float


@dataclass(frozen=True, slots=True)
class _State:
    sources: tuple[FactorScope, ...]
    active: tuple[int, ...]
    pending: tuple[Check, ...]
    kept_back: frozenset[Variable] = frozenset()
    steps: tuple[EliminationStep, ...] = ()
    crossing: tuple[Inequality, ...] = ()
    cost: float = 0.0

    @property
    def total(self) -> float:
        # Each crossing inequality doubles the number of counts.
        return self.cost * 2.0 ** len(self.crossing)


@dataclass(frozen=True, slots=True)
class _Planner:
    atoms: Sequence[Atom]
    inequalities: tuple[Check, ...]
    keep: frozenset[Column]
    order: Sequence[Variable]
    counting: bool
    join_inequalities: bool
    estimate: Estimate
    sizes: dict[frozenset[int], float] = field(default_factory=dict)

    def size(self, atoms: frozenset[int]) -> float:
        """Return the expected number of rows in the join of some atoms, by their indices."""
        if atoms not in self.sizes:
            self.sizes[atoms] = self.estimate([self.atoms[i] for i in sorted(atoms)])
        return self.sizes[atoms]

    def cost(self, parts: Sequence[frozenset[int]]) -> float:
        """Return the rows of all joins it takes to join some factors, two at a time, smallest first.

        The last join of a cycle may be small; what matters are the ones before.
        """
        left = [part for part in parts if part]
        if not left:
            return 0.0
        joined = min(left, key=self.size)
        total = self.size(joined)
        left.remove(joined)
        while left:
            following = min(left, key=lambda part: self.size(joined | part))
            left.remove(following)
            joined |= following
            total += self.size(joined)
        return total

    def choices(self, state: _State) -> list[Variable]:
        """Return the variables that may go next.

        A variable of one factor alone goes at once: that only makes the factor smaller. Variables kept back
        for their inequalities go when there is no other.
        """
        scopes = [state.sources[i].scope for i in state.active]
        left = [v for v in self.order if v not in self.keep and any(v in scope for scope in scopes)]
        free = [v for v in left if v not in state.kept_back]
        alone = [v for v in free if sum(v in scope for scope in scopes) == 1]
        return alone[:1] or free or left

    def eliminate(self, state: _State, variable: Variable) -> _State:
        needed: set[Column] = {variable}
        joined = variable in state.kept_back or (self.counting and self.join_inequalities)
        for check in state.pending:
            if variable in check.variables and (joined or isinstance(check, Exclusion)):
                needed.update(check.variables)
        inputs = [i for i in state.active if state.sources[i].scope & needed]
        scope = frozenset[Column]().union(*(state.sources[i].scope for i in inputs))
        inputs += [
            i
            for i in state.active
            if i not in inputs
            and state.sources[i].original
            and state.sources[i].variables
            and state.sources[i].variables <= scope
        ]
        inputs.sort()
        scope = frozenset[Column]().union(*(state.sources[i].scope for i in inputs))
        others = [i for i in state.active if i not in inputs]
        outside = frozenset[Column]().union(*(state.sources[i].scope for i in others))
        enforced = frozenset[Check]().union(*(state.sources[i].enforced for i in inputs))
        checked = tuple(e for e in self.inequalities if scope.issuperset(e.variables) and e not in enforced)
        pending = tuple(e for e in state.pending if not scope.issuperset(e.variables))
        private = {v for v in scope if isinstance(v, Variable) and v not in self.keep and v not in outside}
        # A variable of a pending exclusion waits until it is eliminated itself.
        private -= {v for e in pending if isinstance(e, Exclusion) for v in e.variables}
        unmet = (e for e in pending if isinstance(e, Inequality))
        crossing = tuple(e for e in unmet if private.intersection(e.variables))
        sampled: list[tuple[Variable, int]] = []
        if self.counting and not self.join_inequalities:
            pending = tuple(e for e in pending if e not in crossing)
        else:
            blocked = {v for e in crossing for v in e.variables if v in private}
            private -= blocked
            crossing = ()
            sampled = [
                (v, 1 + sum(v in e.variables for e in pending))
                for v in self.order
                if v in blocked and v not in state.kept_back
            ]
        atoms = frozenset[int]().union(*(state.sources[i].atoms for i in inputs))
        result = FactorScope(scope - private, atoms, False, enforced.union(checked))
        step = EliminationStep(tuple(inputs), checked, result.scope, () if self.counting else tuple(sampled))
        return _State(
            (*state.sources, result),
            (*others, len(state.sources)),
            pending,
            state.kept_back.union(v for v, _ in sampled),
            (*state.steps, step),
            (*state.crossing, *crossing),
            state.cost + self.cost([state.sources[i].atoms for i in inputs]),
        )

    def greedy(self, state: _State) -> _State:
        while choices := self.choices(state):
            state = min((self.eliminate(state, v) for v in choices), key=lambda s: s.total)
        return state

    def search(self, state: _State, best: _State) -> _State:
        """Return the cheapest complete order from here, or `best` if there is none cheaper."""
        choices = self.choices(state)
        if not choices:
            return state
        for following in sorted((self.eliminate(state, v) for v in choices), key=lambda s: s.total):
            if following.total < best.total:
                best = self.search(following, best)
        return best


def plan_elimination(
    sources: Sequence[FactorScope],
    atoms: Sequence[Atom],
    inequalities: Sequence[Check],
    keep: Sequence[Column],
    *,
    counting: bool,
    join_inequalities: bool = False,
    estimate: Estimate | None = None,
) -> Elimination:
    """Find a cheap order in which to eliminate all variables that are not kept.

    Parameters
    ----------
    sources
        The factors to join.
    atoms
        The atoms that `FactorScope.atoms` speaks of.
    inequalities
        Inequalities and exclusions over the sources' variables and constants.
    keep
        Variables to keep. Templates are always kept.
    counting
        Whether witnesses are counted; else distinct rows are wanted.
    join_inequalities
        For counts: join what an inequality connects, instead of leaving crossing ones to the caller.
    estimate
        The expected size of a join; by default all relations are alike.
    """
    order = [v for v in dict.fromkeys(v for a in atoms for v in a.variables) if any(v in s.scope for s in sources)]
    choices = sum(v not in keep for v in order)
    planner = _Planner(
        atoms,
        tuple(inequalities),
        frozenset(keep),
        order,
        counting,
        join_inequalities,
        # Where there is nothing to choose from, the graph need not be measured.
        estimate or _alike if choices > 1 else _alike,
    )
    pending = tuple(e for e in inequalities if e.variables)
    start = _State(tuple(sources), tuple(range(len(sources))), pending)
    best = planner.greedy(start)
    if choices <= EXHAUSTIVE:
        best = planner.search(start, best)
    rest = frozenset[Check]().union(*(best.sources[i].enforced for i in best.active))
    left = tuple(
        e
        for e in inequalities
        if e not in rest and all(any(v in best.sources[i].scope for i in best.active) for v in e.variables)
    )
    return Elimination(best.steps, best.active, left, best.crossing, best.total)


def _alike(atoms: Sequence[Atom]) -> float:
    return float(1000.0 ** len({v for atom in atoms for v in atom.variables}))


# -- how large joins are: a few moments of the degrees of every relation ---------------------------------------

# Stands for all relations at once, as a template does.
ALL = -1

Side = Literal[0, 1]


@dataclass(frozen=True, slots=True)
class _Degrees:
    """One side of a relation: how many triples, how many distinct values, and Σ degree²."""

    triples: float
    values: float
    squares: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """Degrees of all relations.

    Parameters
    ----------
    degrees
        For each relation's id (`ALL` for all of them together) those of its subjects and its objects.
    two_paths
        Σ over all values of in-degree · out-degree, over all relations.
    """

    degrees: dict[int, tuple[_Degrees, _Degrees]]
    two_paths: float

    def estimate(self, atoms: Sequence[Atom], relation_id: Callable[[Atom], int]) -> float:
        """Return the expected number of rows in the join of some atoms.

        Each value shared by k positions divides the product of the sizes k - 1 times by the number of
        values there are; equal positions by the smaller number that skewed degrees amount to.
        """
        rows = 1.0
        occurrences: dict[Variable, list[tuple[int, Side]]] = defaultdict(list)
        for atom in atoms:
            relation = ALL if isinstance(atom.relation, Template) else relation_id(atom)
            sides = self._of(relation)
            rows *= sides[0].triples
            for side, term in ((0, atom.subject), (1, atom.object)):
                if isinstance(term, Variable):
                    occurrences[term].append((relation, 0 if side == 0 else 1))
                elif not isinstance(term, Template):
                    rows /= sides[side].values
        for positions in occurrences.values():
            for one, other in pairwise(positions):
                rows /= self._values(one, other)
        return rows

    def _of(self, relation: int) -> tuple[_Degrees, _Degrees]:
        nothing = _Degrees(1.0, 1.0, 1.0)
        return self.degrees.get(relation, (nothing, nothing))

    def _values(self, one: tuple[int, Side], other: tuple[int, Side]) -> float:
        left, right = self._of(one[0])[one[1]], self._of(other[0])[other[1]]
        if one == other:
            return left.triples**2 / left.squares
        if one[0] == other[0] == ALL:
            return left.triples**2 / max(self.two_paths, 1.0)
        return max(left.values, right.values)


def measure(session: Session, table: str) -> Statistics:
    """Compute the statistics of a table of triples s, r, o in the database."""
    sides: list[dict[int, _Degrees]] = []
    for column in ("s", "o"):
        grouped = f"SELECT r, count(*) AS d FROM {table} GROUP BY r, {column}"
        every = f"SELECT {ALL} AS r, count(*) AS d FROM {table} GROUP BY {column}"
        moments = "r, sum(d), count(*), sum(CAST(d AS DOUBLE) * d)"
        relation, triples, values, squares = session.columns(
            f"SELECT {moments} FROM (({grouped}) UNION ALL ({every})) AS degrees GROUP BY r"
        )
        sides.append(
            {
                int(r): _Degrees(float(n), float(v), float(q))
                for r, n, v, q in zip(relation, triples, values, squares, strict=True)
            }
        )
    out, into = (f"SELECT {c} AS v, count(*) AS d FROM {table} GROUP BY {c}" for c in ("s", "o"))
    (paths,) = session.columns(
        f"SELECT coalesce(sum(CAST(a.d AS DOUBLE) * b.d), 0) FROM ({out}) AS a, ({into}) AS b WHERE a.v = b.v"
    )
    return Statistics({r: (degrees, sides[1][r]) for r, degrees in sides[0].items()}, float(paths[0]))
