"""A layer of an R-GCN (equation 2 of Schlichtkrull and others) as one differentiable function.

A layer computes Σ_r A_r X W_r, where A_r takes, for each constant, the mean over its neighbours by r. Each
relation has one of two orders of work: *aggregate* its neighbours first and multiply one row a target by W_r,
or *multiply* one row a source by W_r and take the means of the products. Whichever needs fewer rows is taken.
Then all relations together are

    Z = G X,    Z'_r = Z_r W_r  for each relation's rows of Z,    Σ_r A_r X W_r = S Z'

with two sparse matrices whose structure never changes; only their values do, since in each step some edges
are left out. A product of a sparse matrix is a weighted sum of rows for each row of the result, in a fixed
order, so that it does not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from loginfer.kg import Triples

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SparseMatrix:
    """A sparse matrix row by row, its values by reference.

    Parameters
    ----------
    offsets
        int32[rows + 1]: row i has the entries `offsets[i]` to `offsets[i + 1]`.
    columns
        int32[entries].
    edges
        int64[entries]: the edge whose weight is the value; the index after the last edge for the value 1.
    """

    offsets: torch.Tensor
    columns: torch.Tensor
    edges: torch.Tensor

    @classmethod
    def of(cls, rows: Longs, columns: Longs, edges: Longs, count: int, device: torch.device) -> SparseMatrix:
        """Make a matrix with `count` rows of its entries, in any order."""
        order = np.lexsort((columns, rows))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
        return cls(
            torch.from_numpy(offsets.astype(np.int32)).to(device),
            torch.from_numpy(columns[order].astype(np.int32)).to(device),
            torch.from_numpy(edges[order]).to(device),
        )

    def times(self, dense: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Return the product with a dense matrix, the entries having these values."""
        # The quickest of torch's sparse products on a CPU: twice as fast as CSR matrices, seven times as
        # fast as index_add.
        product: torch.Tensor = torch.embedding_bag(dense, self.columns, self.offsets, False, 0, False, values, True)[0]
        return product


@dataclass(frozen=True, slots=True)
class EdgeWeights:
    """The values of G, S and their transposes for one choice of edges."""

    gather: torch.Tensor
    gathered: torch.Tensor
    scatter: torch.Tensor
    scattered: torch.Tensor


class MessageGraph:
    """The edges along which messages go: each triple and, by a relation of its own, its inverse.

    Edge i < n is the triple i, from subject to object by relation r; edge n + i is its inverse, from object
    to subject by relation R + r.

    Parameters
    ----------
    triples
        int32[n, 3].
    nodes
        How many constants and types there are.
    relations
        R, how many relations there are.
    device
        Where to compute.
    """

    def __init__(self, triples: Triples, nodes: int, relations: int, device: torch.device) -> None:
        self.triples = len(triples)
        self.nodes = nodes
        self.relations = 2 * relations
        subject, relation, object_ = (triples[:, column].astype(np.int64) for column in range(3))
        source = np.concatenate([subject, object_])
        target = np.concatenate([object_, subject])
        kind = np.concatenate([relation, relation + relations])

        targets, of_target = np.unique(kind * nodes + target, return_inverse=True)
        sources = np.unique(kind * nodes + source)
        by_target, by_source = (np.bincount(ends // nodes, minlength=self.relations) for ends in (targets, sources))
        first = by_target <= by_source  # bool[2 R]: neighbours are aggregated first
        aggregated = first[kind]
        # Rows of Z, sorted by relation: (relation, target) where neighbours are aggregated first, (relation,
        # source) where they are not.
        slots, slot = np.unique(np.where(aggregated, kind * nodes + target, kind * nodes + source), return_inverse=True)
        self.sizes: list[int] = np.bincount(slots // nodes, minlength=self.relations).tolist()

        edge = np.arange(len(kind))
        before, after = edge[aggregated], edge[~aggregated]
        alone = np.flatnonzero(~first[slots // nodes])  # rows of Z that are rows of X
        added = np.flatnonzero(first[slots // nodes])  # rows of Z' that are added as they are
        one = np.array([len(kind)])
        gather = (
            np.concatenate([slot[before], alone]),
            np.concatenate([source[before], slots[alone] % nodes]),
            np.concatenate([before, one.repeat(len(alone))]),
        )
        scatter = (
            np.concatenate([target[after], slots[added] % nodes]),
            np.concatenate([slot[after], added]),
            np.concatenate([after, one.repeat(len(added))]),
        )
        self.gather = SparseMatrix.of(*gather, len(slots), device)
        self.gathered = SparseMatrix.of(gather[1], gather[0], gather[2], nodes, device)
        self.scatter = SparseMatrix.of(*scatter, nodes, device)
        self.scattered = SparseMatrix.of(scatter[1], scatter[0], scatter[2], len(slots), device)
        self._of_target = torch.from_numpy(of_target).to(device)
        self._degree = torch.from_numpy(np.bincount(of_target, minlength=len(targets))).to(device)
        self._device = device

    def weights(self, left_out: torch.Tensor | None = None, dtype: torch.dtype = torch.float32) -> EdgeWeights:
        """Return the values of the matrices: means over the edges that are not left out.

        Parameters
        ----------
        left_out
            int64[m], indices of triples whose edges, in both directions, carry no message; none by default.
        dtype
            The type of the values.
        """
        kept = torch.ones(len(self._of_target) + 1, device=self._device, dtype=dtype)
        degree = self._degree.to(dtype)
        if left_out is not None:
            edges = torch.cat([left_out, left_out + self.triples])
            kept[edges] = 0
            minus_one = torch.full((len(edges),), -1.0, device=self._device, dtype=dtype)
            degree = degree.index_add(0, self._of_target[edges], minus_one)
        means = kept
        means[:-1] /= degree.clamp(min=1).index_select(0, self._of_target)
        matrices = (self.gather, self.gathered, self.scatter, self.scattered)
        return EdgeWeights(*(means.index_select(0, matrix.edges) for matrix in matrices))


def rgcn_layer(
    nodes: torch.Tensor,
    weight: torch.Tensor,
    root: torch.Tensor,
    bias: torch.Tensor,
    graph: MessageGraph,
    weights: EdgeWeights,
) -> torch.Tensor:
    """Return X W_0 + Σ_r A_r X W_r + b.

    Parameters
    ----------
    nodes
        float[n, d], X.
    weight
        float[2 R, d, e], a matrix W_r for each relation and each inverse relation; float[2 R, d] for their
        diagonals if the rest is 0.
    root
        float[d, e], W_0, the matrix of the self-loop.
    bias
        float[e].
    graph, weights
        Along which edges messages go, and with which weights.
    """
    return torch.addmm(bias, nodes, root) + propagate(nodes, weight, graph, weights)


def relation_weights(bases: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """Return float[2 R, d, e], W_r = Σ_b a_rb V_b (basis decomposition).

    Parameters
    ----------
    bases
        float[B, d, e], the V_b.
    shares
        float[2 R, B], the a_rb.
    """
    return (shares @ bases.flatten(1)).view(len(shares), *bases.shape[1:])


def block_weights(blocks: torch.Tensor) -> torch.Tensor:
    """Return float[2 R, d, d], matrices with these blocks on the diagonal (block-diagonal decomposition).

    Parameters
    ----------
    blocks
        float[2 R, d / b, b, b]. Of blocks of one number the diagonals, float[2 R, d], are returned.
    """
    relations, count, size, _ = blocks.shape
    if size == 1:
        return blocks.view(relations, count)
    matrices = blocks.new_zeros(relations, count, size, count, size)
    matrices.diagonal(dim1=1, dim2=3).copy_(blocks.permute(0, 2, 3, 1))
    return matrices.view(relations, count * size, count * size)


def propagate(nodes: torch.Tensor, weight: torch.Tensor, graph: MessageGraph, weights: EdgeWeights) -> torch.Tensor:
    """Return Σ_r A_r X W_r; of diagonal matrices W_r, `weight` may hold the diagonals."""
    messages: torch.Tensor = _Propagate.apply(nodes, weight, graph, weights)  # type: ignore[no-untyped-call]
    return messages


class _Propagate(torch.autograd.Function):
    """Σ_r A_r X W_r = S Z' with Z = G X and Z'_r = Z_r W_r, with its gradients written out.

    Blocks of rows are views from one `split` and products are written into place: slices taken one by one
    would make the backward pass touch all rows once for each relation.
    """

    @staticmethod
    def forward(
        ctx: Any, nodes: torch.Tensor, weight: torch.Tensor, graph: MessageGraph, weights: EdgeWeights
    ) -> torch.Tensor:
        rows = graph.gather.times(nodes, weights.gather)
        products = rows.new_empty((len(rows), weight.shape[-1]))
        blocks = zip(torch.split(rows, graph.sizes), weight.unbind(), torch.split(products, graph.sizes), strict=True)
        multiply = torch.mul if weight.dim() == 2 else torch.mm
        for block, matrix, product in blocks:
            if len(block):
                multiply(block, matrix, out=product)
        ctx.save_for_backward(rows, weight)
        ctx.graph, ctx.weights = graph, weights
        return graph.scatter.times(products, weights.scatter)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        rows, weight = ctx.saved_tensors
        graph: MessageGraph = ctx.graph
        weights: EdgeWeights = ctx.weights
        of_products = graph.scattered.times(gradients[0].contiguous(), weights.scattered)
        of_rows = torch.empty_like(rows)
        of_weight = torch.zeros_like(weight)
        blocks = zip(
            torch.split(rows, graph.sizes),
            weight.unbind(),
            torch.split(of_products, graph.sizes),
            torch.split(of_rows, graph.sizes),
            of_weight.unbind(),
            strict=True,
        )
        for block, matrix, of_product, of_block, of_matrix in blocks:
            if not len(block):
                continue
            if weight.dim() == 2:
                torch.mul(of_product, matrix, out=of_block)
                torch.sum(block * of_product, 0, out=of_matrix)
            else:
                torch.mm(of_product, matrix.t(), out=of_block)
                torch.mm(block.t(), of_product, out=of_matrix)
        return graph.gathered.times(of_rows, weights.gathered), of_weight, None, None
