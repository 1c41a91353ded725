"""The parameters of an R-GCN with DistMult decoder, and what is computed from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from loginfer.systems.rgcn.layer import block_weights, relation_weights, rgcn_layer
from loginfer.systems.rgcn.messages import MessageGraph, Weights
from loginfer.systems.rgcn.sampling import random_generator

__all__ = ["Parameters", "Shape", "encode", "fan_in", "start"]

# The parameters by name:
#   nodes                float[n, d], the input of the first layer
#   layer i.weight       float[2 R, d, d]; the bases, float[B, d, d]; the blocks, float[2 R, d / b, b, b]
#   layer i.shares       float[2 R, B], with bases only
#   layer i.root         float[d, d]
#   layer i.bias         float[d]
#   relations            float[R, d], the decoder's
#   relation bias        float[R]
Parameters = dict[str, torch.Tensor]

# How much smaller the first messages are than what a constant says about itself.
_QUIET = 0.1


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model.

    Parameters
    ----------
    nodes, relations
        How many constants and types, and relations, there are.
    dimension
        Of the vectors.
    layers
        How many.
    bases
        B; 0 for no basis decomposition.
    block
        b, the size of a block; 0 for no block-diagonal decomposition.
    """

    nodes: int
    relations: int
    dimension: int
    layers: int
    bases: int
    block: int


def start(shape: Shape, spread: float, seed: int) -> Parameters:
    """Return the parameters before the first step.

    Parameters
    ----------
    spread
        Standard deviation of the input vectors.
    """
    random = random_generator(seed, "start")
    d, b = shape.dimension, shape.block

    def normal(*size: int, deviation: float = 1.0) -> torch.Tensor:
        return torch.empty(size).normal_(0, deviation, generator=random)

    found = {"nodes": normal(shape.nodes, d, deviation=spread)}
    for layer in range(shape.layers):
        size = (2 * shape.relations, d // b, b, b) if b else (shape.bases or 2 * shape.relations, d, d)
        found[f"layer {layer}.weight"] = normal(*size, deviation=_QUIET / math.sqrt(b or d))
        if shape.bases:
            deviation = 1 / math.sqrt(shape.bases)
            found[f"layer {layer}.shares"] = normal(2 * shape.relations, shape.bases, deviation=deviation)
        found[f"layer {layer}.root"] = torch.eye(d)
        found[f"layer {layer}.bias"] = torch.zeros(d)
    found["relations"] = normal(shape.relations, d)
    found["relation bias"] = torch.zeros(shape.relations)
    return found


def fan_in(name: str, value: torch.Tensor) -> int:
    """Return how many numbers are added up in a product with this parameter."""
    return value.shape[-2] if name.endswith((".weight", ".root")) else 1


def encode(
    parameters: Parameters,
    shape: Shape,
    graph: MessageGraph,
    weights: Weights,
    dropout: float = 0.0,
    random: torch.Generator | None = None,
) -> torch.Tensor:
    """Return float[n, d], the vectors of constants and types after the last layer."""
    nodes = parameters["nodes"]
    for layer in range(shape.layers):
        if layer:
            nodes = torch.relu(nodes)
        if dropout:
            kept = torch.empty(nodes.shape).bernoulli_(1 - dropout, generator=random).to(nodes.device)
            nodes = nodes * kept / (1 - dropout)
        weight = parameters[f"layer {layer}.weight"]
        if shape.bases:
            weight = relation_weights(weight, parameters[f"layer {layer}.shares"])
        elif shape.block:
            weight = block_weights(weight)
        root, bias = parameters[f"layer {layer}.root"], parameters[f"layer {layer}.bias"]
        nodes = rgcn_layer(nodes, weight, root, bias, graph, weights)
    return nodes
