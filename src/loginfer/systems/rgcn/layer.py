"""A layer of an R-GCN (equation 2 of Schlichtkrull and others), as one differentiable function."""

from __future__ import annotations

from typing import Any

import torch

from loginfer.systems.rgcn.messages import MessageGraph, Weights

__all__ = ["block_weights", "propagate", "relation_weights", "rgcn_layer"]


def rgcn_layer(
    nodes: torch.Tensor,
    weight: torch.Tensor,
    root: torch.Tensor,
    bias: torch.Tensor,
    graph: MessageGraph,
    weights: Weights,
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
    whole = blocks.new_zeros(relations, count, size, count, size)
    whole.diagonal(dim1=1, dim2=3).copy_(blocks.permute(0, 2, 3, 1))
    return whole.view(relations, count * size, count * size)


def propagate(
    nodes: torch.Tensor, weight: torch.Tensor, graph: MessageGraph, weights: Weights
) -> torch.Tensor:
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
        ctx: Any, nodes: torch.Tensor, weight: torch.Tensor, graph: MessageGraph, weights: Weights
    ) -> torch.Tensor:
        rows = graph.gather.times(nodes, weights.gather)
        products = rows.new_empty((len(rows), weight.shape[-1]))
        blocks = zip(
            torch.split(rows, graph.sizes), weight.unbind(), torch.split(products, graph.sizes), strict=True
        )
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
        weights: Weights = ctx.weights
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
