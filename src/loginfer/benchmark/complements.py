"""Rules whose only near miss is their complement, such as symmetry: what can be done about their shortcuts.

Let p be the share of a rule's conclusions whose ends another relation connects in the body's direction as
well, and q the share of negatives of which that holds. Negatives are not connected by the rule's own
relation, or they would be true. Two shortcuts name no relation but the conclusion's own: "connected by any
relation" is right for all conclusions and for 1 - q of the negatives; "connected by another one" is right,
turned round, for 1 - p of the conclusions and for q of the negatives. With as many negatives as conclusions
their accuracies are 1 - q / 2 and (1 + q - p) / 2. Whatever negatives are chosen, the better of the two
reaches (3 - p) / 4 at least, and no more than that at q = (1 + p) / 2. It is 60 % or less only where p is
at least 3 / 5: where that is wanted, conclusions must be chosen, too.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import hash_order, salt
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import Engine
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.near_misses import is_own_complement
from loginfer.logic.rule import Rule

__all__ = [
    "CONNECTED",
    "MatchedSample",
    "complement_share",
    "connected_otherwise",
    "matched_sample",
    "matched_size",
    "needs_matching",
]

# The share of conclusions that another relation must connect: then no shortcut is right for more than 60 %.
CONNECTED = Fraction(3, 5)


def complement_share(otherwise: float) -> float:
    """Return the share q of near misses among the negatives, given the share p of such conclusions."""
    return (1 + otherwise) / 2


def connected_otherwise(graph: KnowledgeGraph, triples: Triples, body: Rule) -> npt.NDArray[np.bool_]:
    """Return bool[n]: whether K connects the ends of conclusions by another relation, as the body does.

    Parameters
    ----------
    graph
        The graph K.
    triples
        Conclusions of the rule.
    body
        The rule, whose one atom says in which direction its conclusions are connected.
    """
    atom, head = body.atoms[0], body.head
    columns = [2 * head.terms.index(term) if term in head.terms else 0 for term in atom.terms]
    size = len(graph.entities)
    pairs, counts = np.unique(
        graph.triples[:, 0].astype(np.int64) * size + graph.triples[:, 2], return_counts=True
    )
    if not len(pairs):
        return np.zeros(len(triples), dtype=bool)
    ends = triples[:, columns].astype(np.int64)
    wanted = ends[:, 0] * size + ends[:, 1]
    place = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    found = np.where(pairs[place] == wanted, counts[place], 0)
    own = graph.contains(np.stack([ends[:, 0], triples[:, 1], ends[:, 1]], axis=1))
    return np.asarray(found > own)


def matched_size(most: int, others: int, connected: int) -> int:
    """Return how many conclusions are sampled, three in five of which another relation connects.

    Parameters
    ----------
    most
        k2.
    others, connected
        How many new conclusions there are that no other relation connects, and that another one does.
    """
    return min(most, int(connected / CONNECTED), others + connected)


def needs_matching(recipe: Recipe, rule: Rule) -> bool:
    """Say whether the conclusions of a rule have to be chosen: its near miss is its complement."""
    return "adjacency" in recipe.match and is_own_complement(rule)


class MatchedSample:
    """Up to so many conclusions of a rule, three in five of which another relation connects.

    Where there are fewer such triples, fewer are sampled.

    Parameters
    ----------
    graph
        The graph K.
    rule
        The rule.
    most
        How many to sample, at most.
    seed
        The recipe's.
    """

    def __init__(self, graph: KnowledgeGraph, rule: Rule, most: int, seed: int) -> None:
        self._graph, self._rule, self._most = graph, rule, most
        self._order = salt(seed, "positives", rule)
        self._kept = [np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)]

    def add(self, part: Triples) -> None:
        """Look at some more conclusions."""
        otherwise = connected_otherwise(self._graph, part, self._rule)
        for side, chosen in enumerate((part[~otherwise], part[otherwise])):
            keys = np.concatenate([self._kept[side], self._graph.keys.pack(chosen)])
            self._kept[side] = keys[hash_order(keys, self._order, self._most)]

    def keys(self) -> npt.NDArray[np.int64]:
        """Return the keys of what is sampled, each kind in random order, evenly mixed.

        However the list is cut, each part has its share of either kind. Ordered by their hashes, those of
        which fewer were kept would come first, since theirs are smaller, and all go to train.
        """
        others, connected = self._kept
        size = matched_size(self._most, len(others), len(connected))
        many = min(-(-size * CONNECTED.numerator // CONNECTED.denominator), len(connected))
        many = max(many, size - len(others))
        keys = np.concatenate([connected[:many], others[: size - many]])
        turns = [(np.arange(count) + 0.5) / count for count in (many, size - many) if count]
        return keys[np.argsort(np.concatenate([*turns, np.empty(0)]), kind="stable")]


def matched_sample(recipe: Recipe, engine: Engine, rule: Rule) -> tuple[int, npt.NDArray[np.int64]]:
    """Return |T_r(K) ∖ K| and up to k2 of these triples, three in five of which another relation connects."""
    new, sample = 0, MatchedSample(engine.graph, rule, recipe.k2, recipe.seed)
    for part in engine.conclusions_in_parts(rule, new=True):
        new += len(part)
        sample.add(part)
    return new, sample.keys()
