"""The model of one head: search, fit, search again where that was not enough, and prune."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loginfer.systems.rules.contrasting.candidates import Search
from loginfer.systems.rules.contrasting.design import Design
from loginfer.systems.rules.contrasting.fitting import Fit, fit, pruned
from loginfer.systems.rules.contrasting.models import HeadModel, WeightedBody, in_order
from loginfer.systems.rules.contrasting.rows import NO_TYPE, HeadRows

if TYPE_CHECKING:
    from loginfer.systems.rules.contrasting.given import GivenPatterns

__all__ = ["Learner"]


@dataclass(frozen=True)
class Learner:
    """Learns the models of heads.

    Parameters
    ----------
    search
        Finds bodies.
    enough
        The share of right answers on valid at which no larger bodies are sought.
    given
        Patterns of the user, if there are any.
    """

    search: Search
    enough: float
    given: GivenPatterns | None = None

    def learn(self, rows: HeadRows) -> HeadModel:
        """Return the model of a head."""
        extra = None if self.given is None else self.given.design(rows)
        design = self.search.small(rows)
        best = self._fitted(design, extra, rows, None)
        # The largest twice: what the first time explains, the second does not look at.
        for more in (self.search.triangles, self.search.threes, self.search.threes):
            if rows.head.type != NO_TYPE or best.alone >= self.enough:
                break
            design = Design.joined(design, more(rows, best.losses(rows)))
            best = self._fitted(design, extra, rows, best)
        return self._model(pruned(best, rows), rows)

    def _fitted(self, design: Design, extra: Design | None, rows: HeadRows, best: Fit | None) -> Fit:
        if extra is not None:
            design = Design.joined(design, extra)
        design = design.without_repetition(self.search.bodies.atoms(design.codes))
        return fit(design, self.search.bodies.atoms(design.codes), rows, best)

    def _model(self, found: Fit, rows: HeadRows) -> HeadModel:
        train = rows.train.astype(np.float64)
        predictions = found.design.sums(train)
        correct = found.design.sums(np.where(rows.signs > 0, train, 0.0))
        bodies = [
            WeightedBody(int(code), float(weight), int(right), int(all_))
            for code, weight, right, all_ in zip(
                found.design.codes, found.weights, correct, predictions, strict=True
            )
        ]
        return HeadModel(rows.head, found.intercept, in_order(bodies, self.search.bodies))
