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
from loginfer.logic.rule import Rule

__all__ = ["CONNECTED", "complement_share", "connected_otherwise", "matched_sample", "matched_size"]

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


def matched_sample(recipe: Recipe, engine: Engine, rule: Rule) -> tuple[int, npt.NDArray[np.int64]]:
    """Return |T_r(K) ∖ K| and up to k2 of these triples, three in five of which another relation connects.

    Where there are fewer such triples, fewer are sampled; the order is that of all samples, so that train,
    valid and test get the same shares.
    """
    graph = engine.graph
    order = salt(recipe.seed, "positives", rule)
    new = 0
    kept = [np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)]
    for part in engine.conclusions_in_parts(rule, new=True):
        new += len(part)
        otherwise = connected_otherwise(graph, part, rule)
        for side, chosen in enumerate((part[~otherwise], part[otherwise])):
            keys = np.concatenate([kept[side], graph.keys.pack(chosen)])
            kept[side] = keys[hash_order(keys, order, recipe.k2)]
    size = matched_size(recipe.k2, len(kept[0]), len(kept[1]))
    connected = min(-(-size * CONNECTED.numerator // CONNECTED.denominator), len(kept[1]))
    connected = max(connected, size - len(kept[0]))
    keys = np.concatenate([kept[1][:connected], kept[0][: size - connected]])
    return new, keys[hash_order(keys, order)]
