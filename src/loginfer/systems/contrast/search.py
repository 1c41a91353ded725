"""Which bodies are worth a weight: proposed by a few positives, counted on a sample, kept by contrast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.systems.contrast import kernels
from loginfer.systems.contrast.fit import NO_TYPE, Design, HeadRows
from loginfer.systems.contrast.kernels import Bodies, BodyCounter, Table, TypedGraph

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Pairs: TypeAlias = npt.NDArray[np.int32]

# Bodies must fire for so many positives of train.
FEWEST = 3
# How many positives of valid the rate among the positives of train counts for.
SHRINKAGE = 5
# Which shapes are sought first.
SMALL = (kernels.EDGE, kernels.PATH2, kernels.BOTH, kernels.EDGE_TYPE, kernels.TYPED)
# Around how many edges larger bodies are sought, and how many triangles and diamonds are kept for each.
EDGES, TRIANGLES, DIAMONDS = 8, 25, 12
_NO_PAIRS = np.empty((0, 2), dtype=np.int32)


@dataclass(frozen=True)
class Search:
    """The search for bodies over one graph.

    Parameters
    ----------
    bodies, graph, table
        The graph, and room for counting.
    proposers
        How many positives propose bodies: all that they have. Those of P_valid come first, then P_train.
    positives, negatives
        How many rows of train bodies are counted on.
    candidates
        How many bodies are kept at most.
    budget
        Steps for the three-step paths between two constants.
    """

    bodies: Bodies
    graph: TypedGraph
    table: BodyCounter
    proposers: int = 30
    positives: int = 500
    negatives: int = 1500
    candidates: int = 400
    budget: int = 10_000

    def small(self, rows: HeadRows) -> Design:
        """Return edges, paths of two steps and intersections; for a type all that is sought."""
        groups = ((kernels.VALID_POSITIVE, 4 * self.proposers), (kernels.TRAIN_POSITIVE, self.positives))
        sample = _first_of(rows, (*groups, (kernels.TRAIN_NEGATIVE, self.negatives)), np.ones(len(rows), dtype=bool))
        nowhere = np.zeros(self.bodies.steps, dtype=np.bool_)
        self.table.clear()
        self._list(rows, sample, nowhere, self.table.for_kernel(), min(self.proposers, len(sample)))
        codes = self._best(np.bincount(rows.groups[sample], minlength=kernels.GROUPS), SMALL, self.candidates)
        return self._collected(codes, rows, nowhere)

    def triangles(self, rows: HeadRows, losses: Floats) -> Design:
        """Return triangles around the edges where most is lost."""
        edges = self._edges(rows)
        hard = _hardest(edges, losses)
        sample, proposers = self._around(rows, edges, hard)
        relevant = np.zeros(self.bodies.steps, dtype=np.bool_)
        relevant[hard] = True
        self.table.clear()
        self._list(rows, sample, relevant, self.table.for_kernel(), proposers)
        codes = self._best_around(rows.groups[sample], edges[sample], hard, kernels.TRIANGLE, TRIANGLES)
        return self._collected(codes, rows, relevant)

    def threes(self, rows: HeadRows, losses: Floats) -> Design:
        """Return diamonds around the edges where most is lost, and paths of three steps where no edge is."""
        edges = self._edges(rows)
        hard = _hardest(edges, losses)
        sample, proposers = self._around(rows, edges, hard, np.diff(self.graph.pointers))
        self._list_threes(rows, sample, hard, proposers)
        codes = [self._best_around(rows.groups[sample], edges[sample], hard, kernels.DIAMOND, DIAMONDS)]
        alone = np.asarray(~edges.any(axis=1))
        if losses[alone].sum() > 0:
            size = self.proposers
            train = ((kernels.TRAIN_POSITIVE, size), (kernels.TRAIN_NEGATIVE, 5 * size))
            groups = ((kernels.VALID_POSITIVE, size), *train)
            sample = _first_of(rows, groups, alone, np.diff(self.graph.pointers))
            positive = int(np.count_nonzero(rows.signs[sample] > 0))
            self._list_threes(rows, sample, hard[:0], min(size, positive))
            sizes = np.bincount(rows.groups[sample], minlength=kernels.GROUPS)
            codes.append(self._best(sizes, (kernels.PATH3,), TRIANGLES))
        return _frequent(self._evaluated(np.unique(np.concatenate(codes)), rows, edges), rows)

    # -- listing ------------------------------------------------------------------------------------

    def _edges(self, rows: HeadRows) -> Mask:
        return np.asarray(kernels.steps_between(rows.pairs, rows.head.relation, self.graph, self.bodies.steps))

    def _list(self, rows: HeadRows, places: Ints, relevant: Mask, table: Table, proposers: int = 0) -> None:
        pairs, groups = rows.pairs[places], rows.groups[places]
        if rows.head.type != NO_TYPE:
            hide = self.bodies.type_place(rows.head.type)
            kernels.enumerate_types(pairs, groups, proposers, hide, self.graph, self.bodies.base, table)
            return
        typed, hide = len(self.graph.types) > 0, rows.head.relation
        kernels.enumerate_pairs(pairs, groups, proposers, hide, relevant, typed, self.graph, self.bodies.base, table)

    def _list_threes(self, rows: HeadRows, sample: Ints, hard: Ints, proposers: int) -> None:
        """Count diamonds around the hard edges; without any, paths of three steps."""
        relevant = np.zeros(self.bodies.steps, dtype=np.bool_)
        relevant[hard] = True
        self.table.clear()
        kernels.enumerate_threes(
            rows.pairs[sample],
            rows.groups[sample],
            proposers,
            rows.head.relation,
            relevant,
            not len(hard),
            self.budget,
            self.graph,
            self.bodies.base,
            self.table.for_kernel(),
        )

    def _around(self, rows: HeadRows, edges: Mask, hard: Ints, degree: Ints | None = None) -> tuple[Ints, int]:
        """Return rows with the hard edges, so many with each, the proposers first; and how many propose."""
        size = max(self.proposers // 3, 1)
        first, rest = [], []
        for step in hard:
            has = edges[:, step]
            first.append(_first_of(rows, ((kernels.VALID_POSITIVE, size),), has, degree))
            positives = _first_of(rows, ((kernels.TRAIN_POSITIVE, 2 * size),), has, degree)
            # Where valid has too few, train proposes.
            lacking = max(size - len(first[-1]), 0)
            first.append(positives[:lacking])
            rest.append(positives[lacking:])
            rest.append(_first_of(rows, ((kernels.TRAIN_NEGATIVE, 5 * size),), has, degree))
        proposing = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *first]))
        others = np.setdiff1d(np.concatenate([np.empty(0, dtype=np.int64), *rest]), proposing)
        return np.concatenate([proposing, others]), len(proposing)

    # -- choosing -----------------------------------------------------------------------------------

    def _best(self, sizes: Ints, shapes: tuple[int, ...], most: int) -> Ints:
        """Return the bodies with the most contrast, as sorted codes; `sizes` are those of the groups."""
        places = np.flatnonzero(np.isin(self.bodies.unpack(self.table.codes)[:, 0], shapes))
        return np.sort(self._ranked(places, sizes)[:most])

    def _best_around(self, groups: Ints, edges: Mask, hard: Ints, shape: int, most: int) -> Ints:
        """Return the best bodies of a shape around each hard edge; rows without that edge do not count."""
        parts = self.bodies.unpack(self.table.codes)
        found = [np.empty(0, dtype=np.int64)]
        for step in hard:
            places = np.flatnonzero((parts[:, 0] == shape) & (parts[:, 1] == step))
            sizes = np.bincount(groups[edges[:, step]], minlength=kernels.GROUPS)
            found.append(self._ranked(places, sizes)[:most])
        return np.sort(np.concatenate(found))

    def _ranked(self, places: Ints, sizes: Ints) -> Ints:
        """Return the codes of these bodies that are for positives rather than negatives, best first.

        What positives are like, those of valid say: they are conclusions, as those of test are, and most of
        train are not. Where there are few, train helps out.
        """
        codes = self.table.codes[places]
        rates = self.table.counts[places] / np.maximum(sizes, 1)
        known = sizes[kernels.VALID_POSITIVE]
        right = rates[:, kernels.VALID_POSITIVE] * known + rates[:, kernels.TRAIN_POSITIVE] * SHRINKAGE
        right /= known + SHRINKAGE
        wrong = rates[:, kernels.TRAIN_NEGATIVE]
        order = np.lexsort((codes, -contrast(right, wrong)))
        return np.asarray(codes[order[right[order] > wrong[order]]])

    # -- where they fire ----------------------------------------------------------------------------

    def _collected(self, codes: Ints, rows: HeadRows, relevant: Mask) -> Design:
        """Return where these bodies fire: all rows once more, with a table in which there is nothing else."""
        needed = np.unique(np.concatenate([codes, self._parts(codes)]))
        table = BodyCounter.holding(needed)
        wanted = np.full(len(needed), -1, dtype=np.int32)
        wanted[np.searchsorted(needed, codes)] = np.arange(len(codes))
        # Room for every body to fire for every row; what is not used is never touched.
        out = np.empty((max(len(rows) * len(codes), 1), 2), dtype=np.int32)
        self._list(rows, np.arange(len(rows)), relevant, table.for_kernel(wanted, out))
        return _frequent(Design.of_pairs(codes, out[: table.written()], len(rows)), rows)

    def _evaluated(self, codes: Ints, rows: HeadRows, edges: Mask) -> Design:
        """Return where diamonds and paths of three steps fire, one by one."""
        found: list[Pairs] = [_NO_PAIRS]
        for j, part in enumerate(self.bodies.unpack(codes)):
            places = np.arange(len(rows)) if part[0] == kernels.PATH3 else np.flatnonzero(edges[:, part[1]])
            out = np.zeros((len(places), 1), dtype=np.bool_)
            graph, hide = self.graph, rows.head.relation
            kernels.fired(rows.pairs[places], part[None], hide, self.bodies.absent, graph, out)
            places = places[out[:, 0]].astype(np.int32)
            found.append(np.stack([places, np.full(len(places), j, dtype=np.int32)], axis=1))
        return Design.of_pairs(codes, np.concatenate(found), len(rows))

    def _parts(self, codes: Ints) -> Ints:
        """Return the edges, paths and steps without which the kernels do not look for larger bodies."""
        pack, absent = self.bodies.pack_all, self.bodies.absent
        shape, a, b, c, _ = self.bodies.unpack(codes).T
        typed, three = (shape == kernels.TYPED) & (c != absent), shape == kernels.TRIANGLE
        edge = ~np.isin(shape, (kernels.EDGE, kernels.PATH2, kernels.TYPED))
        return np.concatenate(
            [
                pack(kernels.TYPED, a[typed], b[typed], absent),
                pack(kernels.PATH2, b[three], c[three], 0),
                pack(kernels.EDGE, a[edge], 0, 0),
            ]
        )


def contrast(right: Floats, wrong: Floats) -> Floats:
    """Return how much better than a coin a body tells, where it fires, that a row is positive, in nats.

    With r and w the rates at which it fires for positives and for negatives, that is
    r·log(2r / (r + w)) + w·log(2w / (r + w)).
    """
    both = right + wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = right * np.log(2 * right / both) + np.where(wrong > 0, wrong * np.log(2 * wrong / both), 0)
    return np.asarray(np.nan_to_num(gain))


def _hardest(edges: Mask, losses: Floats) -> Ints:
    """Return the steps on whose rows most is lost, if anything is."""
    hit = losses > 0
    lost = losses[hit] @ edges[hit]
    order = np.argsort(-lost, kind="stable")[:EDGES]
    return np.asarray(order[lost[order] > 0])


def _first_of(rows: HeadRows, sizes: tuple[tuple[int, int], ...], among: Mask, degree: Ints | None = None) -> Ints:
    """Return the first rows of each group, which come in random order.

    With the degree of each constant, those between constants with fewer neighbours are preferred among the
    first: bodies that are always there are there, too, and found in less time.
    """
    chosen = []
    for group, size in sizes:
        places = np.flatnonzero((rows.groups == group) & among)
        if degree is not None:
            places = places[: 3 * size]
            places = places[np.argsort(degree[rows.pairs[places]].sum(axis=1), kind="stable")]
        chosen.append(places[:size])
    return np.concatenate(chosen)


def _frequent(design: Design, rows: HeadRows) -> Design:
    """Return the bodies that fire for enough positives of train."""
    positives = design.sums(np.where(rows.groups == kernels.TRAIN_POSITIVE, 1.0, 0.0))
    return design.take(np.flatnonzero(positives >= FEWEST))
