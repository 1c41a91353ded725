"""How large joins will be: a few moments of the degrees of every relation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from loginfer.engine.sql.session import Session
from loginfer.logic.rule import Atom
from loginfer.logic.terms import Template, Variable

__all__ = ["Statistics", "measure"]

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
        places: dict[Variable, list[tuple[int, Side]]] = defaultdict(list)
        for atom in atoms:
            relation = ALL if isinstance(atom.relation, Template) else relation_id(atom)
            sides = self._of(relation)
            rows *= sides[0].triples
            for side, term in ((0, atom.subject), (1, atom.object)):
                if isinstance(term, Variable):
                    places[term].append((relation, 0 if side == 0 else 1))
                elif not isinstance(term, Template):
                    rows /= sides[side].values
        for positions in places.values():
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
