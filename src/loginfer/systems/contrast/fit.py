"""What a model is learnt from and how: the rows of a head, where bodies fire, and weights for the bodies.

Weights come from a logistic regression on train with 0/1 features and an L1 penalty; everything else is chosen on
valid. The regression is cyclic coordinate descent: SciPy's L-BFGS-B finds the same optimum in sixty times the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark, NegativeSet
from loginfer.kernels import inlined, kernel
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import grouped, member, ranges, run_starts
from loginfer.kg.vocabulary import offsets_of
from loginfer.randomness import generator, hash_order, salt
from loginfer.systems.contrast.kernels import TRAIN_NEGATIVE, TRAIN_POSITIVE, VALID_NEGATIVE, VALID_POSITIVE

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Pairs: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]


# -- the rows of a head -----------------------------------------------------------------------------

NO_TYPE = -1


@dataclass(frozen=True, slots=True, order=True)
class Head:
    """What a model predicts: (x, relation, y), or (x, type, C).

    Parameters
    ----------
    relation
        Id of the relation; of the type predicate for a type.
    type
        Id of the type, NO_TYPE for a relation.
    """

    relation: int
    type: int = NO_TYPE


# With fewer negatives in N_train than this, a head gets positives with a random subject or object besides.
FEWEST_NEGATIVES = 50


@dataclass(frozen=True)
class HeadRows:
    """Pairs of constants: those of P_valid, P_train, N_train and N_valid with one head, in this order.

    Parameters
    ----------
    head
        The head.
    pairs
        int32[n, 2], subject and object; the triples are the head's.
    groups
        int64[n], which set each is from: TRAIN_POSITIVE, …
    """

    head: Head
    pairs: Pairs
    groups: Ints

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def signs(self) -> Floats:
        """float64[n], 1 for positives and -1 for negatives."""
        positive = (self.groups == TRAIN_POSITIVE) | (self.groups == VALID_POSITIVE)
        return np.where(positive, 1.0, -1.0)

    @cached_property
    def train(self) -> Mask:
        """bool[n], the rows of train."""
        return np.asarray((self.groups == TRAIN_POSITIVE) | (self.groups == TRAIN_NEGATIVE))

    @cached_property
    def judging(self) -> Mask:
        """bool[n], the rows that judge a fit: those of valid, or of train where there are none."""
        return np.asarray(~self.train) if not self.train.all() else self.train


def rows_by_head(triples: Triples, type_relation: int | None) -> dict[Head, Ints]:
    """Return the rows of the triples of each head, ascending."""
    types = np.full(len(triples), NO_TYPE, dtype=np.int64)
    if type_relation is not None:
        typed = triples[:, 1] == type_relation
        types[typed] = triples[typed, 2]
    return {Head(*head): rows for head, rows in grouped(triples[:, 1].astype(np.int64), types)}


def split_by_head(triples: Triples, type_relation: int | None) -> dict[Head, Pairs]:
    """Return subjects and objects of the triples of each head, in the order of the triples."""
    by_head = rows_by_head(triples, type_relation)
    return {head: np.ascontiguousarray(triples[rows][:, [0, 2]]) for head, rows in by_head.items()}


def asked_heads(benchmark: Benchmark, negatives: NegativeSet) -> tuple[Head, ...]:
    """Return the heads that the benchmark asks about: those of P_valid and of the negatives, in order."""
    type_relation = benchmark.graph.type_relation
    parts = (benchmark.positives.valid, negatives.splits.train, negatives.splits.valid)
    return tuple(sorted({head for part in parts for head in split_by_head(part, type_relation)}))


def all_rows(
    benchmark: Benchmark, negatives: NegativeSet, heads: tuple[Head, ...], limits: tuple[int, int], seed: int
) -> Iterator[HeadRows]:
    """Yield the rows of each head; `limits` are for the positives and the negatives of train."""
    graph = benchmark.graph
    sets = (benchmark.positives.valid, graph.triples, negatives.splits.train, negatives.splits.valid)
    split = [split_by_head(triples, graph.type_relation) for triples in sets]
    nothing: Pairs = np.empty((0, 2), dtype=np.int32)
    groups = (VALID_POSITIVE, TRAIN_POSITIVE, TRAIN_NEGATIVE, VALID_NEGATIVE)
    for head in heads:
        parts = [pairs.get(head, nothing) for pairs in split]
        positives = parts[1]
        for number, most in enumerate((None, *limits, None)):
            order = salt(seed, "contrast rows", head.relation, head.type, number)
            parts[number] = parts[number][hash_order(_keys(parts[number], graph), order)[:most]]
        missing = FEWEST_NEGATIVES - len(parts[2])
        corrupted = _corruptions(positives, np.vstack([positives, *parts]), head, missing, graph, seed)
        parts[2] = np.vstack([parts[2], corrupted])
        sizes = [len(part) for part in parts]
        yield HeadRows(head, np.ascontiguousarray(np.vstack(parts)), np.repeat(np.array(groups, dtype=np.int64), sizes))


def _keys(pairs: Pairs, graph: KnowledgeGraph) -> Ints:
    return pairs[:, 0].astype(np.int64) * len(graph.entities) + pairs[:, 1]


def _corruptions(
    positives: Pairs, known_pairs: Pairs, head: Head, count: int, graph: KnowledgeGraph, seed: int
) -> Pairs:
    """Return positives with another subject or object from all over the graph, none of which is known."""
    if count <= 0 or not len(positives) or not len(graph.consts):
        return np.empty((0, 2), dtype=np.int32)
    random = generator(seed, "contrast corruptions", head.relation, head.type)
    # Some draws are known already, or drawn twice.
    pairs = positives[random.integers(len(positives), size=2 * count)].copy()
    side = np.zeros(len(pairs), dtype=np.int64)
    if head.type == NO_TYPE:
        side = random.integers(2, size=len(pairs))
    # Half of them from the constants that the relation has on that side: those are harder to tell apart.
    near = positives[random.integers(len(positives), size=len(pairs)), side]
    far = graph.consts[random.integers(len(graph.consts), size=len(pairs))]
    pairs[np.arange(len(pairs)), side] = np.where(random.integers(2, size=len(pairs)) == 0, near, far)
    keys = _keys(pairs, graph)
    _, first = np.unique(keys, return_index=True)
    fresh = np.sort(first)
    fresh = fresh[~member(np.unique(_keys(known_pairs, graph)), keys[fresh])]
    return pairs[fresh[:count]]


# -- where bodies fire ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """Bodies and where they fire.

    Parameters
    ----------
    codes
        int64[m], the bodies.
    pointers, rows
        int64[m + 1], int32[k]: body j fires for `rows[pointers[j]:pointers[j + 1]]`, ascending.
    size
        How many rows there are.
    """

    codes: Ints
    pointers: Ints
    rows: Pairs
    size: int

    @classmethod
    def of_pairs(cls, codes: Ints, pairs: npt.NDArray[np.int32], size: int) -> Design:
        """Make it of int32[k, 2], rows and columns, sorted by row."""
        order = np.argsort(pairs[:, 1].astype(np.uint16), kind="stable")
        pointers = offsets_of(np.bincount(pairs[:, 1], minlength=len(codes)))
        return cls(codes, pointers, np.ascontiguousarray(pairs[order, 0]), size)

    @classmethod
    def joined(cls, one: Design, two: Design) -> Design:
        """Return the bodies of both, over the same rows."""
        return cls(
            np.concatenate([one.codes, two.codes]),
            np.concatenate([one.pointers, two.pointers[1:] + one.pointers[-1]]),
            np.concatenate([one.rows, two.rows]),
            one.size,
        )

    def __len__(self) -> int:
        return len(self.codes)

    def column(self, j: int) -> npt.NDArray[np.int32]:
        """Return the rows for which body j fires."""
        return self.rows[self.pointers[j] : self.pointers[j + 1]]

    def take(self, indices: Ints) -> Design:
        """Return some of the bodies."""
        lengths = np.diff(self.pointers)[indices]
        rows = self.rows[ranges(self.pointers[indices], lengths)[1]]
        return Design(self.codes[indices], offsets_of(lengths), rows, self.size)

    def sums(self, values: Floats) -> Floats:
        """Return float64[m], the sum over the rows of each body."""
        total = np.concatenate([[0.0], np.cumsum(values[self.rows])])
        return np.asarray(total[self.pointers[1:]] - total[self.pointers[:-1]])

    def margins(self, weights: Floats, intercept: float) -> Floats:
        """Return float64[n], the intercept and the weights of the bodies that fire, row by row."""
        margins = np.full(self.size, intercept)
        for j in np.flatnonzero(weights):
            margins[self.column(int(j))] += weights[j]
        return margins

    def strongest(self, weights: Floats, intercept: float) -> Floats:
        """Return float64[n], the intercept and the largest weight of a body that fires, row by row."""
        strongest = np.zeros(self.size)
        for j in np.flatnonzero(weights):
            rows = self.column(int(j))
            strongest[rows] = np.maximum(strongest[rows], weights[j])
        return strongest + intercept

    def fires(self) -> Mask:
        """Return bool[n], the rows for which any body fires."""
        fires = np.zeros(self.size, dtype=bool)
        fires[self.rows] = True
        return fires

    def with_equal_rows_joined(self, signs: Floats) -> tuple[Design, Ints, Ints]:
        """Return the design with one row for all those with the same sign and the same bodies.

        Beside it, which of the new rows each row became, and a row that each new one stands for.
        """
        numbers = generator(0, "contrast rows joined").random(len(self))
        # Sums of the same numbers in the same order are the same to the last bit.
        sets = np.bincount(self.rows, weights=np.repeat(numbers, np.diff(self.pointers)), minlength=self.size)
        order = np.lexsort((sets, signs))
        new = run_starts(sets[order], signs[order])
        became = np.empty(self.size, dtype=np.int64)
        became[order] = np.cumsum(new) - 1
        first = order[new]
        stands = np.zeros(self.size, dtype=bool)
        stands[first] = True
        kept = stands[self.rows]
        pointers = offsets_of(kept)[self.pointers]
        rows = became[self.rows[kept]].astype(np.int32)
        return Design(self.codes, pointers, rows, len(first)), became, first

    def without_repetition(self, atoms: Ints) -> Design:
        """Return one body of those that fire for the same rows: the shortest, then the smallest code.

        They are the same evidence; nothing in the rows could choose between them.
        """
        if not len(self):
            return self
        # Sets of rows are compared by the sum of random numbers.
        numbers = generator(0, "contrast columns").integers(2**63, size=self.size, dtype=np.uint64)
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(numbers[self.rows])])
        sets = total[self.pointers[1:]] - total[self.pointers[:-1]]
        order = np.lexsort((self.codes, atoms))
        _, first = np.unique(sets[order], return_index=True)
        return self.take(np.sort(order[first]))


# -- regression -------------------------------------------------------------------------------------


@inlined
def _curvature(margin: Any, width: Any) -> Any:
    """Return the largest second derivative of log(1 + exp(−m)) within `width` of a margin."""
    distance = abs(margin) - width
    if distance <= 0:
        return 0.25
    return 1 / (2 + np.exp(distance) + np.exp(-distance))


@kernel
def logistic_l1(
    pointers: Any, rows: Any, signs: Any, costs: Any, penalties: Any, weights: Any, tolerance: float, rounds: int
) -> None:
    """Minimise Σ costs·log(1 + exp(−signs·(b + x·β))) + Σ penalties·β for β ≥ 0, in place.

    Feature j is 1 in `rows[pointers[j]:pointers[j + 1]]`; the last weight is b, which costs no penalty. Steps
    are bounded by a trust region for each weight, so that the loss never grows (Genkin, Lewis, Madigan 2007).
    The features with weights are gone through until they settle, then all once more, until no weight moves
    by more than the tolerance, or after `rounds` rounds.
    """
    features, size = len(pointers) - 1, len(signs)
    margins, pulls = signs * weights[features], np.empty(size)
    for j in range(features):
        if weights[j] != 0:
            for row in rows[pointers[j] : pointers[j + 1]]:
                margins[row] += signs[row] * weights[j]
    for row in range(size):
        pulls[row] = signs[row] * costs[row] / (1 + np.exp(margins[row]))
    # The intercept is a feature that all rows have.
    rows = np.concatenate((rows, np.arange(size, dtype=np.int32)))
    pointers = np.append(pointers, len(rows))
    widths = np.ones(features + 1)
    everything = True
    for _ in range(rounds):
        largest = 0.0
        for j in range(features + 1):
            intercept = j == features
            if not everything and not intercept and weights[j] == 0:
                continue
            feature_rows = rows[pointers[j] : pointers[j + 1]]
            penalty = 0.0 if intercept else penalties[j]
            pull = 0.0
            for row in feature_rows:
                pull += pulls[row]
            if not intercept and weights[j] == 0 and pull <= penalty:
                continue
            curvature = 1e-9
            for row in feature_rows:
                curvature += costs[row] * _curvature(margins[row], widths[j])
            step = (pull - penalty) / curvature
            if not intercept:
                step = max(step, -weights[j])
            step = min(max(step, -widths[j]), widths[j])
            widths[j] = max(2 * abs(step), widths[j] / 2)
            if step != 0:
                weights[j] += step
                for row in feature_rows:
                    margins[row] += signs[row] * step
                    pulls[row] = signs[row] * costs[row] / (1 + np.exp(margins[row]))
                largest = max(largest, abs(step))
        if largest < tolerance:
            if everything:
                break
            everything = True
        else:
            everything = False


@kernel
def offset_for(margins: Any, signs: Any, costs: Any, prior: float) -> float:
    """Return the d that minimises Σ costs·log(1 + exp(−signs·(margins + d))) + prior·d²/2."""
    offset, width = 0.0, 1.0
    for _ in range(200):
        pull, curvature = -prior * offset, prior + 1e-9
        for row in range(len(margins)):
            margin = signs[row] * (margins[row] + offset)
            pull += signs[row] * costs[row] / (1 + np.exp(margin))
            curvature += costs[row] * _curvature(margin, width)
        step = min(max(pull / curvature, -width), width)
        width = max(2 * abs(step), width / 2)
        offset += step
        if abs(step) < 1e-9:
            break
    return offset


# -- weights for bodies -----------------------------------------------------------------------------

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
        return np.where(rows.judging & (losses > -np.log(0.9)), losses, 0.0)


def fit(design: Design, atoms: Ints, rows: HeadRows, best: Fit | None = None) -> Fit:
    """Return the best weights for these bodies, or what was better before.

    Two things are tried beside the penalties. First all positives of train for which any body fires count;
    then only those that the best weights so far call positive. For most positives of P_train are no
    conclusions of any rule: no body explains them, and the bodies that fire for them by chance fire for
    negatives, too.
    """
    fires = design.fires()
    joined, joined_row, first = design.with_equal_rows_joined(rows.signs)
    signs = rows.signs[first]
    for trimmed in (False, True):
        used = rows.train & ((rows.signs < 0) | fires)
        if trimmed and best is not None:
            if best.alone == 1:
                break
            used &= (rows.signs < 0) | (best.margins > 0)
        costs = np.bincount(joined_row, weights=_balanced(used, rows.signs), minlength=joined.size)
        weights = np.zeros(len(design) + 1)
        for penalty in PENALTIES:
            penalties = penalty * (1 + PER_ATOM * (atoms - 1))
            logistic_l1(joined.pointers, joined.rows, signs, costs, penalties, weights, TOLERANCE, ROUNDS)
            candidate = judged(design, weights[:-1].copy(), float(weights[-1]), rows)
            if best is None or candidate.loss < best.loss - SLACK:
                best = candidate
    if best is None:  # there is always a penalty
        raise RuntimeError("no fit")
    return best


def judged(design: Design, weights: Floats, intercept: float, rows: HeadRows) -> Fit:
    """Set the intercept by the rows of valid, and say how well they are told apart."""
    looked_at = rows.judging
    signs, margins = rows.signs[looked_at], design.margins(weights, intercept)[looked_at]
    strongest = design.strongest(weights, intercept)[looked_at]
    offset = offset_for(margins, signs, np.ones(len(signs)), PRIOR)
    agreement = (margins + offset) * signs
    accuracy = float((agreement > 0).mean()) if len(signs) else 1.0
    alone = float(((strongest + offset) * signs > 0).mean()) if len(signs) else 1.0
    loss = float(np.logaddexp(0, -agreement).mean()) if len(signs) else 0.0
    return Fit(design, weights, intercept + offset, loss + 2 - accuracy - alone, accuracy, alone)


def pruned(fitted: Fit, rows: HeadRows) -> Fit:
    """Drop bodies, the least needed first, as long as valid and train hardly suffer."""
    kept = np.flatnonzero(fitted.weights)
    fitted = replace(fitted, design=fitted.design.take(kept), weights=fitted.weights[kept])
    # Positives that the fit does not explain anyway need no rules.
    costs = _balanced(rows.train & ((rows.signs < 0) | (fitted.margins > 0)), rows.signs)
    total = max(float(costs.sum()), 1.0)

    def train_loss(candidate: Fit) -> float:
        return float(costs @ np.logaddexp(0, -rows.signs * candidate.margins)) / total

    allowed, accuracy = fitted.loss + SPARED, fitted.accuracy
    allowed_train = train_loss(fitted) + SPARED
    # By what a body contributes to all positives together.
    share = fitted.weights * fitted.design.sums(np.where(rows.signs > 0, 1.0, 0.0))
    for j in np.argsort(share, kind="stable"):
        weights = fitted.weights.copy()
        weights[j] = 0
        shorter = judged(fitted.design, weights, fitted.intercept, rows)
        if shorter.accuracy >= accuracy and shorter.loss <= allowed and train_loss(shorter) <= allowed_train:
            fitted = shorter
    kept = np.flatnonzero(fitted.weights)
    return replace(fitted, design=fitted.design.take(kept), weights=fitted.weights[kept])


def _balanced(used: Mask, signs: Floats) -> Floats:
    """Return what each row costs: 1 for a positive, and as much for all negatives together."""
    costs = np.where(used, 1.0, 0.0)
    positive, negative = costs[signs > 0].sum(), costs[signs < 0].sum()
    if positive and negative:
        costs[signs < 0] *= positive / negative
    return costs
