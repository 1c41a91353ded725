"""Adam that leaves alone what a batch does not touch, as an optimiser of PyTorch's kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim import Optimizer

__all__ = ["LazyAdam"]


class LazyAdam(Optimizer):
    """Adam whose rows rest in steps in which they have no gradient: neither they nor their moments change.

    PyTorch's Adam moves a row on for many steps after it was last seen, by what is left of its mean gradient.
    Where most entities occur in few batches, that makes their steps many times as large; our own embeddings
    are trained without it. A parameter with fewer than two dimensions is one row.

    Parameters
    ----------
    params
        The parameters.
    lr
        The learning rate.
    betas
        The decay rates of the mean and the mean square of gradients.
    eps
        What keeps the denominator from 0.
    """

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take a step."""
        if closure is not None:
            raise NotImplementedError("LazyAdam takes no closure")
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return None

    def _update(self, parameter: torch.nn.Parameter, group: dict[str, Any]) -> None:
        state, gradient = self.state[parameter], parameter.grad
        if gradient is None:
            return
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        first, second = group["betas"]
        count = float(state["step"])
        bias = (1 - second**count) ** 0.5
        rate, tiny = group["lr"] * bias / (1 - first**count), group["eps"] * bias
        touched: Any = ...
        if gradient.ndim > 1:
            touched = gradient.flatten(1).any(dim=1).nonzero().squeeze(1)
        g = gradient[touched]
        mean = state["exp_avg"][touched].mul_(first).add_(g, alpha=1 - first)
        square = state["exp_avg_sq"][touched].mul_(second).addcmul_(g, g, value=1 - second)
        state["exp_avg"][touched], state["exp_avg_sq"][touched] = mean, square
        parameter[touched] -= rate * mean / (square.sqrt() + tiny)
