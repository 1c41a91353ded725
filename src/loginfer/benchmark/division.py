"""The two sides of a graph whose constants are divided, and which rules stay on one side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.cutting import grown
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.recipe_variants import share_of
from loginfer.engine import Engine, Progress
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Atom, Rule
from loginfer.logic.terms import Constant, Term, Variable

__all__ = ["Division", "Opener", "divide", "refuse_rules", "shares", "side_of_test"]

Mask = npt.NDArray[np.bool_]
Opener = Callable[[KnowledgeGraph], Engine]

# Numbers of regions that are tried; the last one makes a random division.
REGIONS = (16, 128, 1024, 2**62)


@dataclass(frozen=True, slots=True)
class Division:
    """The two sides of a graph.

    Parameters
    ----------
    train, test
        K_train and K_test, over the vocabularies of K.
    regions
        In how many regions the test side was grown.
    dropped
        How many triples of K are in neither: their constants are on different sides, or they are on the test
        side and have a relation or type that K_train has not.
    """

    train: KnowledgeGraph
    test: KnowledgeGraph
    regions: int
    dropped: int

    @property
    def both(self) -> KnowledgeGraph:
        """K_train and K_test together."""
        return self.train.with_triples(np.vstack([self.train.triples, self.test.triples]))


def side_of_test(context: KnowledgeGraph) -> Mask:
    """Return bool[entities]: the constants of a context graph."""
    found = np.zeros(len(context.entities), dtype=bool)
    found[context.consts] = True
    return found


def shares(recipe: Recipe) -> tuple[int, int]:
    """Return how many conclusions a rule contributes at most: to train and valid, and to test.

    k2 is cut by the ratio: of 2,000 with 8:1:1, 1,800 and 200.
    """
    _, second = recipe.cuts(recipe.k2)
    return second, recipe.k2 - second


# -- rules -----------------------------------------------------------------------------------------


def refuse_rules(rules: Sequence[Rule]) -> None:
    """Complain about rules that look beyond one side.

    Raises
    ------
    InputError
        For a rule with a constant, which would have to be on both sides, or with a body whose parts share
        no variable, which could have premises on both.
    """
    for rule in rules:
        constants = [
            term.name
            for atom in rule
            for term in ((atom.subject,) if atom.is_type else atom.terms)
            if isinstance(term, Constant)
        ]
        if constants:
            raise InputError(
                f"`{rule}` names the constant `{constants[0]}`, and the constants of an inductive "
                "benchmark's test are not those of train",
                hint="leave the rule out, or build without `inductive`",
            )
        if not _connected(rule):
            raise InputError(
                f"the body of `{rule}` falls into parts that share no variable: its premises could be on "
                "both sides of an inductive benchmark",
                hint="leave the rule out, or build without `inductive`",
            )


def _connected(rule: Rule) -> bool:
    """Say whether variables connect the body's atoms, and each negated atom with them.

    A negated atom connects nothing itself: its constants may be on both sides, where no triple is.
    """
    parts, denied = (
        [_joining(atom) for atom in atoms]
        for atoms in (rule.atoms, [negation.atom for negation in rule.negations])
    )
    if not parts:
        return True
    reached: set[Term] = set(parts[0])
    while grown_by := [part for part in parts if part & reached and not part <= reached]:
        reached.update(*grown_by)
    return all(part & reached for part in (*parts, *denied))


def _joining(atom: Atom) -> set[Term]:
    """Return the variables that can join an atom to others: those for constants, a type is none."""
    return {term for term in ((atom.subject,) if atom.is_type else atom.terms) if isinstance(term, Variable)}


# -- dividing ----------------------------------------------------------------------------------


def divide(
    recipe: Recipe,
    graph: KnowledgeGraph,
    rules: Sequence[Rule],
    open_engine: Opener,
    progress: Progress | None = None,
) -> Division:
    """Divide a graph so that its rules have as many conclusions on the test side as can be.

    Several numbers of regions are tried; each rule counts up to its share of test. Of divisions that are
    equally good the one with the fewest regions, which drops the fewest triples, is taken.

    Parameters
    ----------
    recipe
        The share of constants for test, k2 and ratio, the seed.
    graph
        K.
    rules
        R.
    open_engine
        Opens an engine over a graph.
    progress
        Called with what is being done, how much is done, and how much there is.
    """
    count = share_of(recipe.inductive_share, len(graph.consts))
    if count == 0 or count == len(graph.consts):
        raise InputError(
            f"{recipe.inductive_share} of {len(graph.consts):,} constants leaves one side without any",
            hint="choose another inductive_share, or a larger graph",
        )
    _, wanted = shares(recipe)
    best: tuple[int, Division] | None = None
    tried = sorted({min(regions, count) for regions in REGIONS})
    for number, regions in enumerate(tried):
        if progress:
            progress("dividing the constants", number, len(tried))
        found = _cut(graph, grown(graph, count, regions, recipe.seed), regions)
        engine = open_engine(found.test)
        worth = sum(min(_new(engine, rule), wanted) for rule in rules)
        if best is None or worth > best[0]:
            best = worth, found
    if best is None or best[0] == 0:
        raise InputError(
            f"no rule concludes anything new among {count:,} of {len(graph.consts):,} constants",
            hint="choose another inductive_share, other rules or another seed",
        )
    return best[1]


def _cut(graph: KnowledgeGraph, is_test: Mask, regions: int) -> Division:
    triples = graph.triples
    typed = triples[:, 1] == (-1 if graph.type_relation is None else graph.type_relation)
    subject = is_test[triples[:, 0]]
    inside = typed | (is_test[triples[:, 2]] == subject)
    train = graph.with_triples(triples[inside & ~subject])
    relations = np.zeros(len(graph.relations), dtype=bool)
    relations[train.preds] = True
    types = np.zeros(len(graph.entities), dtype=bool)
    types[train.types] = True
    known = relations[triples[:, 1]] & (~typed | types[triples[:, 2]])
    test = graph.with_triples(triples[inside & subject & known])
    return Division(train, test, regions, len(graph) - len(train) - len(test))


def _new(engine: Engine, rule: Rule) -> int:
    return sum(len(part) for part in engine.conclusions_in_parts(rule, new=True))
