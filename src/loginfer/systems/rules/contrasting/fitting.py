"""Weights for the bodies of one head: logistic regression on train, everything chosen on valid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.systems.rules.contrasting.design import Design
from loginfer.systems.rules.contrasting.regression import logistic_l1, offset_for
from loginfer.systems.rules.contrasting.rows import HeadRows

__all__ = ["Fit", "fit"]

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

# L1 penalties, in rows: strongest first.
PENALTIES = (10.0, 3.0, 1.0)
# What each further atom adds to a body's penalty.
PER_ATOM = 0.1
# How strongly the intercept that train suggests holds against that of valid, in rows.
PRIOR = 0.1
# A lower penalty must be better by this, in nats a row.
SLACK = 1e-3
# What the losses on train and on valid may grow by, in nats a row, for a shorter list; errors must not.
SPARED = 0.02
TOLERANCE, ROUNDS = 0.01, 100


@dataclass(frozen=True)
class Fit:
    """A weighted list of bodies.

    Parameters
    ----------
    design
        The bodies.
    weights
        float64[m], not negative.
    intercept
        The log-odds where no body fires.
    loss
        On valid, or on train where the head has no rows in valid: mean log-loss and the shares of errors,
        with all bodies that fire and with the strongest of them alone.
    accuracy
        The share of rows there on the right side of 0.
    alone
        The same share if only the strongest body that fires counts: low where bodies suffice only together,
        as the parts of a conjunction do.
    """

    design: Design
    weights: Floats
    intercept: float
    loss: float
    accuracy: float
    alone: float

    @property
    def margins(self) -> Floats:
        """float64[n], the log-odds of all rows."""
        return self.design.margins(self.weights, self.intercept)

    def losses(self, rows: HeadRows) -> Floats:
        """Return float64[n], the log-loss of each row that the fit is judged by, 0 for the others.

        A loss below that of a probability of 0.9 does not count.
        """
        losses = np.logaddexp(0, -rows.signs * self.margins)
        return np.where(_judging(rows) & (losses > -np.log(0.9)), losses, 0.0)


def fit(design: Design, atoms: Ints, rows: HeadRows, best: Fit | None = None) -> Fit:
    """Return the best weights for these bodies, or what was better before.

    Two things are tried beside the penalties. First all positives of train for which any body fires count;
    then only those that the best weights so far call positive. For most positives of P_train are no
    conclusions of any rule: no body explains them, and the bodies that fire for them by chance fire for
    negatives, too.
    """
    fires = design.fires()
    joined, became, first = design.with_equal_rows_joined(rows.signs)
    signs = rows.signs[first]
    for trimmed in (False, True):
        used = rows.train & ((rows.signs < 0) | fires)
        if trimmed and best is not None:
            if best.alone == 1:
                break
            used &= (rows.signs < 0) | (best.margins > 0)
        costs = np.bincount(became, weights=_balanced(used, rows.signs), minlength=joined.size)
        weights = np.zeros(len(design) + 1)
        for penalty in PENALTIES:
            penalties = penalty * (1 + PER_ATOM * (atoms - 1))
            logistic_l1(joined.pointers, joined.rows, signs, costs, penalties, weights, TOLERANCE, ROUNDS)
            found = judged(design, weights[:-1].copy(), float(weights[-1]), rows)
            if best is None or found.loss < best.loss - SLACK:
                best = found
    if best is None:  # there is always a penalty
        raise RuntimeError("no fit")
    return best


def judged(design: Design, weights: Floats, intercept: float, rows: HeadRows) -> Fit:
    """Set the intercept by the rows of valid, and say how well they are told apart."""
    looked_at = _judging(rows)
    signs, margins = rows.signs[looked_at], design.margins(weights, intercept)[looked_at]
    strongest = design.strongest(weights, intercept)[looked_at]
    offset = offset_for(margins, signs, np.ones(len(signs)), PRIOR)
    agreement = (margins + offset) * signs
    accuracy = float((agreement > 0).mean()) if len(signs) else 1.0
    alone = float(((strongest + offset) * signs > 0).mean()) if len(signs) else 1.0
    loss = float(np.logaddexp(0, -agreement).mean()) if len(signs) else 0.0
    return Fit(design, weights, intercept + offset, loss + 2 - accuracy - alone, accuracy, alone)


def pruned(found: Fit, rows: HeadRows) -> Fit:
    """Drop bodies, the least needed first, as long as valid and train hardly suffer."""
    kept = np.flatnonzero(found.weights)
    found = replace(found, design=found.design.take(kept), weights=found.weights[kept])
    # Positives that the fit does not explain anyway need no rules.
    costs = _balanced(rows.train & ((rows.signs < 0) | (found.margins > 0)), rows.signs)
    total = max(float(costs.sum()), 1.0)

    def train_loss(one: Fit) -> float:
        return float(costs @ np.logaddexp(0, -rows.signs * one.margins)) / total

    allowed, accuracy = found.loss + SPARED, found.accuracy
    allowed_train = train_loss(found) + SPARED
    # By what a body contributes to all positives together.
    share = found.weights * found.design.sums(np.where(rows.signs > 0, 1.0, 0.0))
    for j in np.argsort(share, kind="stable"):
        weights = found.weights.copy()
        weights[j] = 0
        less = judged(found.design, weights, found.intercept, rows)
        if less.accuracy >= accuracy and less.loss <= allowed and train_loss(less) <= allowed_train:
            found = less
    kept = np.flatnonzero(found.weights)
    return replace(found, design=found.design.take(kept), weights=found.weights[kept])


def _judging(rows: HeadRows) -> npt.NDArray[np.bool_]:
    """Return the rows that judge a fit: those of valid, or of train where there are none."""
    return rows.valid if rows.valid.any() else rows.train


def _balanced(used: npt.NDArray[np.bool_], signs: Floats) -> Floats:
    """Return what each row costs: 1 for a positive, and as much for all negatives together."""
    costs = np.where(used, 1.0, 0.0)
    positive, negative = costs[signs > 0].sum(), costs[signs < 0].sum()
    if positive and negative:
        costs[signs < 0] *= positive / negative
    return costs
