"""The head's predicate of a candidate, where the body does not determine it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import member
from loginfer.benchmark.randomness import generator
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import Engine, Projection
from loginfer.errors import InputError, LimitError
from loginfer.kg import Triples
from loginfer.logic import instantiate
from loginfer.logic.rule import Pattern, Rule

__all__ = ["Heads"]


class Heads:
    """Gives the bodies of a pattern their heads.

    A head that is drawn is uniform over the predicates of the right kind that do not occur in the body. It
    depends on the seed and the body alone, so the rules for a smaller k1 are among those for a larger one.
    The best head has the relation by which K connects most of the pairs that the body concludes, the first
    by name of several; where K connects none, the head is drawn.

    Parameters
    ----------
    recipe
        Says how heads are found.
    engine
        An engine over K.
    pattern
        The pattern.

    Raises
    ------
    InputError
        When the best head is asked for, and a head is a type.
    """

    def __init__(self, recipe: Recipe, engine: Engine, pattern: Pattern) -> None:
        self._seed = recipe.seed
        self._engine = engine
        self._pattern = pattern
        template = pattern.head_template
        self._is_type = template is not None and pattern.is_type_template(template)
        self._best = recipe.head == "best" and not pattern.head_in_body
        if self._best and self._is_type:
            raise InputError(
                f"the head of `{pattern.name}` is a type, and the best of them is not looked for",
                hint='leave out `head = "best"`',
            )
        graph = engine.graph
        ids = graph.types if self._is_type else graph.rels
        self._predicates = (graph.entities if self._is_type else graph.relations).names(ids)

    def any(self, names: Sequence[str]) -> Rule:
        """Return a rule with this body and whatever head, for one who asks about the body only."""
        head = None if self._pattern.head_in_body else self._predicates[0]
        return instantiate(self._pattern, names, head)

    def rule(self, names: Sequence[str]) -> Rule | None:
        """Return the candidate with this body; None if every predicate occurs in the body."""
        if self._pattern.head_in_body:
            return instantiate(self._pattern, names)
        body = instantiate(self._pattern, names, "_")
        atoms = (*body.atoms, *(part.atom for part in body.negations))
        used = {t.name for a in atoms if a.is_type for t in a.terms[1:]} if self._is_type else None
        taken = {str(a.relation) for a in atoms} if used is None else used
        allowed = [name for name in self._predicates if name not in taken]
        if not allowed:
            return None
        draw = generator(self._seed, "head", body.body_text, self._pattern.head)
        head = allowed[int(draw.integers(len(allowed)))]
        if self._best:
            head = self._connecting(names, allowed) or head
        return instantiate(self._pattern, names, head)

    def _connecting(self, names: Sequence[str], allowed: Sequence[str]) -> str | None:
        """Return the relation by which K connects most of what a body concludes; None if by none."""
        graph = self._engine.graph
        try:
            pairs = self._engine.projection(instantiate(self._pattern, names, allowed[0]))
        except LimitError:  # too many pairs to look at
            return None
        inside = graph.triples[_holds(pairs, graph.triples, len(graph.entities))]
        counts = np.bincount(inside[:, 1], minlength=len(graph.relations))
        best = max(allowed, key=lambda name: int(counts[graph.relation_id(name)]))
        return best if counts[graph.relation_id(best)] else None


def _holds(pairs: Projection, triples: Triples, entities: int) -> npt.NDArray[np.bool_]:
    """Return bool[n]: whose subject and object are one of the pairs."""
    subject, object_ = triples[:, 0].astype(np.int64), triples[:, 2].astype(np.int64)
    left, right = pairs.left.astype(np.int64), pairs.right.astype(np.int64)
    if not pairs.product:
        return member(left * entities + right, subject * entities + object_)
    inside = member(left, subject) & member(right, object_)
    return np.asarray(inside & (subject != object_)) if pairs.unequal else inside
