"""The candidates R_cand of a pattern, in the order in which they are looked at: by support, or at random.

A random order is that of a seeded hash of the bodies' texts, so it depends on nothing but the seed and the
bodies: not on the engine, and not on how many rules are asked for. Since the rules with the largest support
are the easiest to learn, that order is the one to take when others are wanted.

A pattern such as the diamond may have far more bodies than can be listed. Then predicates are drawn uniformly
from all tuples, and those without a witness are thrown away: each tuple with a witness is as likely as every
other. So is each body, unless the pattern has symmetries: then a body that repeats predicates has fewer
tuples than others, and is less likely. Most tuples are recognised as empty by two of their atoms, which is
looked up in a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.choice_settings import parse_interval
from loginfer.benchmark.heads import Heads
from loginfer.benchmark.randomness import generator, salt
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import BodyTable, Engine, Progress
from loginfer.engine.bodies import body_texts, finish_table, predicate_names
from loginfer.kg import KnowledgeGraph
from loginfer.logic import symmetries
from loginfer.logic.rule import Atom, Pattern, Rule

__all__ = ["DRAWN", "Candidate", "can_be_listed", "candidates"]

# Candidates beyond k1 are ranked in steps that grow: under `sound` some are passed over.
_GROWTH = 4

# Up to so many tuples of predicates the bodies of a pattern are all listed; beyond, they are drawn.
LISTED = 1 << 25
# So many tuples are drawn at a time, and at most.
BATCH, DRAWN = 1 << 18, 1 << 28

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule of R_cand with its support."""

    rule: Rule
    pattern: str
    support: int


def candidates(
    recipe: Recipe, engine: Engine, pattern: Pattern, progress: Progress | None = None
) -> Iterator[Candidate]:
    """Yield the candidates of a pattern within the recipe's bounds of support, by its `select`.

    Parameters
    ----------
    recipe
        Says which candidates, in which order.
    engine
        An engine over K.
    pattern
        The pattern.
    progress
        Called with what is being done, how much is done, and how much there is.
    """
    heads = Heads(recipe, engine, pattern)
    low, high = _bounds(recipe)
    if recipe.select == "support":
        found = _by_support(recipe, engine, pattern, progress)
    elif can_be_listed(engine.graph, pattern):
        found = _listed(recipe, engine, pattern, progress)
    else:
        found = _drawn(recipe, engine, heads, pattern, progress)
    for names, support in found:
        if low <= support <= high and (rule := heads.rule(names)) is not None:
            yield Candidate(rule, str(pattern), support)


def can_be_listed(graph: KnowledgeGraph, pattern: Pattern) -> bool:
    """Say whether a pattern has so few tuples of predicates that all its bodies are listed."""
    return prod(float(len(domain)) for domain in _domains(graph, pattern)) <= LISTED


def _bounds(recipe: Recipe) -> tuple[float, float]:
    """Return between which supports candidates lie."""
    low, high = float(recipe.min_support or 1), float(recipe.max_support or np.inf)
    if recipe.interval is not None and recipe.select_by == "support":
        least, most = parse_interval(recipe.interval)
        low, high = max(low, least), min(high, most)
    return low, high


def _by_support(
    recipe: Recipe, engine: Engine, pattern: Pattern, progress: Progress | None
) -> Iterator[tuple[Sequence[str], int]]:
    """Yield predicates and supports of bodies, the largest support first."""
    top: int | None = None if recipe.max_support else recipe.k1
    done = 0
    while True:
        table = engine.rank_bodies(pattern, top, complete=False, progress=progress)
        for names, support in zip(
            predicate_names(table, engine.graph)[done:], table.support[done:].tolist(), strict=True
        ):
            if support < (recipe.min_support or 0):
                return
            yield names, support
        if top is None or len(table) < top:
            return
        done, top = len(table), _GROWTH * top


def _listed(
    recipe: Recipe, engine: Engine, pattern: Pattern, progress: Progress | None
) -> Iterator[tuple[Sequence[str], int]]:
    """Yield predicates and supports of all bodies in the order of their hashes."""
    table = engine.rank_bodies(pattern, None, progress=progress)
    low, high = _bounds(recipe)
    inside = np.flatnonzero((table.support >= low) & (table.support <= high))
    table = BodyTable(pattern, table.predicates[inside], table.support[inside], None)
    names = predicate_names(table, engine.graph)
    for place in _hashed(recipe, table, engine.graph):
        yield names[place], int(table.support[place])


def _hashed(recipe: Recipe, table: BodyTable, graph: KnowledgeGraph) -> list[int]:
    """Return the places of bodies in the order of their hashes."""
    hashes = [salt(recipe.seed, "select", text) for text in body_texts(table, graph)]
    return sorted(range(len(hashes)), key=hashes.__getitem__)


# -- bodies that cannot be listed ------------------------------------------------------------------


def _drawn(
    recipe: Recipe, engine: Engine, heads: Heads, pattern: Pattern, progress: Progress | None
) -> Iterator[tuple[Sequence[str], int]]:
    """Yield predicates and supports of bodies that are drawn, each body once."""
    graph = engine.graph
    domains = _domains(graph, pattern)
    pairs = _pairs(engine, pattern, domains)
    rng = generator(recipe.seed, "select", pattern)
    seen: set[tuple[int, ...]] = set()
    for start in range(0, DRAWN, BATCH):
        if progress:
            progress(f"drawing bodies of `{pattern.name}`", start, DRAWN)
        places = [rng.integers(len(domain), size=BATCH) for domain in domains]
        possible = np.ones(BATCH, dtype=bool)
        for one, two, table in pairs:
            possible &= table[places[one], places[two]]
        rows = np.column_stack([d[p[possible]] for d, p in zip(domains, places, strict=True)])
        fresh = np.unique(rows.astype(np.int32), axis=0)
        # One body a rule, as where all are listed; supports are counted one by one.
        bodies = finish_table(graph, pattern, fresh, np.ones(len(fresh), dtype=np.int64))
        names = predicate_names(bodies, graph)
        for place in _hashed(recipe, bodies, graph):
            key = tuple(bodies.predicates[place].tolist())
            if key in seen:
                continue
            seen.add(key)
            if support := engine.support(heads.any(names[place])):
                yield names[place], support


def _domains(graph: KnowledgeGraph, pattern: Pattern) -> list[Ids]:
    """Return for each template the ids it ranges over, sorted."""
    return [graph.types if pattern.is_type_template(t) else graph.rels for t in pattern.templates]


def _pairs(
    engine: Engine, pattern: Pattern, domains: Sequence[Ids]
) -> list[tuple[int, int, npt.NDArray[np.bool_]]]:
    """Return for pairs of templates, by their places, which predicates have a witness for both atoms."""
    found = []
    templates = pattern.templates
    for one, two in combinations(pattern.atoms, 2):
        if len(one.templates) != 1 or len(two.templates) != 1 or one.templates == two.templates:
            continue
        if not set(one.variables) & set(two.variables):
            continue
        both = Pattern([one, two], Atom(one.variables[0], "any", one.variables[0]))
        i, j = (templates.index(template) for template in both.templates)
        table = np.zeros((len(domains[i]), len(domains[j])), dtype=bool)
        bodies = engine.rank_bodies(both)
        left, right = (
            np.searchsorted(domains[place], bodies.predicates[:, column])
            for column, place in enumerate((i, j))
        )
        table[left, right] = True
        if len(symmetries(both)) > 1:  # of R, S and S, R only one is listed
            table[right, left] = True
        found.append((i, j, table))
    return found
