"""The training loop of an R-GCN with PyTorch Geometric's layer.

Its FastRGCNConv is no peer at this size: it keeps a matrix for each edge, 64 · 64 · 4 bytes for each of
620,000, more than 10 GB before the backward pass.
"""

from __future__ import annotations

import warnings
from typing import Any

from perf.tasks.rgcn import DIMENSION, Loop


def rgcn(triples: str) -> Any:
    """Prepare PyG's layer; edges that are held out are taken from its lists in each step."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.nn import RGCNConv
    loop = Loop(triples)
    layer = RGCNConv(DIMENSION, DIMENSION, 2 * loop.relations, aggr="mean")
    subject, relation, object_ = torch.from_numpy(loop.triples).long().unbind(1)
    ends = torch.stack([torch.cat([subject, object_]), torch.cat([object_, subject])])
    kinds = torch.cat([relation, relation + loop.relations])

    def propagate(parameters: dict[str, Any], held: Any) -> Any:
        kept = torch.ones(len(subject), dtype=torch.bool)
        kept[held] = False
        kept = torch.cat([kept, kept])
        # The loop's weights are used, and get the gradients.
        own = {name: parameters[name] for name in ("weight", "root", "bias")}
        inputs = (parameters["nodes"], ends[:, kept], kinds[kept])
        return torch.func.functional_call(layer, own, inputs)

    return lambda: loop.run(propagate), lambda loss: round(loss, 3)
