"""One layer of an R-GCN in training on FB15k-237: forward, loss, backward, Adam; d = 64, one thread.

The loops differ in the layer alone: the same weights, edges held out, triples, loss and optimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

if TYPE_CHECKING:
    import torch

STEPS = 2
DIMENSION = 64


def ours(triples: str) -> Any:
    """Prepare our layer."""
    import torch

    from loginfer.systems.rgcn.model import MessageGraph, rgcn_layer

    loop = Loop(triples)
    graph = MessageGraph(loop.triples, loop.nodes, loop.relations, torch.device("cpu"))

    def layer(parameters: dict[str, torch.Tensor], held: torch.Tensor) -> torch.Tensor:
        nodes, weight, root, bias = (parameters[name] for name in ("nodes", "weight", "root", "bias"))
        return rgcn_layer(nodes, weight, root, bias, graph, graph.weights(held))

    return lambda: loop.run(layer), lambda loss: round(loss, 3)


class Loop:
    """What all loops have in common.

    Parameters
    ----------
    triples
        A file with an array of ids.
    """

    def __init__(self, triples: str) -> None:
        import numpy as np
        import torch

        torch.set_num_threads(1)
        self.triples = np.load(triples).astype(np.int32)
        self.nodes, self.relations = (int(self.triples[:, column].max()) + 1 for column in (0, 1))
        self.nodes = max(self.nodes, int(self.triples[:, 2].max()) + 1)

    def parameters(self) -> dict[str, torch.Tensor]:
        """Return the weights at the start."""
        import torch

        random = torch.Generator().manual_seed(0)
        d = DIMENSION
        sizes = {
            "nodes": (self.nodes, d),
            "weight": (2 * self.relations, d, d),
            "root": (d, d),
            "bias": (d,),
            "decoder": (self.relations, d),
        }
        return {name: (torch.randn(size, generator=random) / 8).requires_grad_() for name, size in sizes.items()}

    def run(self, layer: Callable[[dict[str, torch.Tensor], torch.Tensor], torch.Tensor]) -> float:
        """Make some steps and return the last one's loss."""
        import torch

        parameters = self.parameters()
        optimizer = torch.optim.Adam(parameters.values(), lr=0.001, fused=True)
        positives = torch.from_numpy(self.triples).long()
        random = torch.Generator().manual_seed(1)
        value = 0.0
        for _ in range(STEPS):
            held = torch.randperm(len(positives), generator=random)[: len(positives) // 10]
            true = positives[held]
            false = true.clone()
            false[:, 2] = torch.randint(self.nodes, (len(true),), generator=random)
            asked = torch.cat([true, false])
            optimizer.zero_grad()
            nodes = layer(parameters, held)
            scores = nodes.index_select(0, asked[:, 0]) * nodes.index_select(0, asked[:, 2])
            scores = (scores * parameters["decoder"].index_select(0, asked[:, 1])).sum(1)
            labels = (torch.arange(len(asked)) < len(true)).float()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
            loss.backward()
            optimizer.step()
            value = float(loss.detach())
        return value


def tasks(space: Workspace) -> list[Task]:
    """Return the task."""
    arguments = {"triples": space.triples}
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    cases = (
        Case(OURS, "perf.tasks.rgcn:ours", arguments, environment=threads),
        Case("PyG, RGCNConv", "perf.peers.pyg_rgcn:rgcn", arguments, faster=2, environment=threads, limit=300),
    )
    return [Task("rgcn", f"R-GCN: {STEPS} training steps, d = {DIMENSION}", cases, needs=("fb15k-237",))]
