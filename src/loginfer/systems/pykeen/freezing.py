"""A trained model of PyKEEN made ready to be asked: vectors computed once, and in double precision."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from pykeen.models import ERModel, Model
from pykeen.nn.modules import RotatEInteraction
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["cells_of", "frozen"]


class FrozenRepresentation(torch.nn.Module):
    """The vectors of entities or relations as one table."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table, persistent=False)

    def forward(self, indices: torch.Tensor | None = None) -> torch.Tensor:
        """Return the vectors of some ids, or of all."""
        table = self.get_buffer("table")
        return table if indices is None else table[indices]


def frozen(model: Model) -> Model:
    """Return a model that gives the same scores, and shares nothing with the given one that would change.

    Entities and relations get the vectors that they have now: what a graph network computes for all of them,
    or what a constraint makes of them, is computed once. Scores are computed from these in double precision.
    A model that is not made of vectors and an interaction function, or has a way of its own to compute
    scores, is returned as it is.
    """
    if not isinstance(model, ERModel) or _scores_its_own_way(type(model)):
        return model
    was_training = model.training
    model.eval()
    with torch.no_grad():
        tables = {
            name: torch.nn.ModuleList(
                FrozenRepresentation(_double(found(None))) for found in getattr(model, name)
            )
            for name in ("entity_representations", "relation_representations")
        }
    if isinstance(model.interaction, RotatEInteraction):
        _turn_exactly(tables["relation_representations"])
    twin = copy.copy(model)
    # Nothing else of the model takes part in scoring: regularisers and the loss stay behind.
    twin._modules = {**tables, "interaction": copy.deepcopy(model.interaction).double()}
    twin._parameters, twin._buffers = {}, {}
    model.train(was_training)
    twin.eval()
    return twin


def _scores_its_own_way(kind: type[ERModel[Any, Any, Any]]) -> bool:
    ways = ("forward", "score_hrt", "score_h", "score_r", "score_t", "_get_representations")
    return any(getattr(kind, way) is not getattr(ERModel, way) for way in ways)


def _double(table: torch.Tensor) -> torch.Tensor:
    wide = table.to(torch.complex128 if table.is_complex() else torch.float64)
    return wide.detach().clone()


def _turn_exactly(tables: torch.nn.ModuleList) -> None:
    """Make numbers of modulus 1 exactly that.

    RotatE turns the head forth or the tail back, whatever is less work. Both come to the same if nothing but
    the angle changes, for which single precision is not enough.
    """
    for found in tables:
        table = found.get_buffer("table")
        if table.is_complex() and ((table.abs() - 1).abs() < 1e-5).all():
            table /= table.abs()


class _Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the numbers in all tensors that are computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cells = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor):
                self.cells += tensor.numel() * (2 if tensor.is_complex() else 1)
        return made


def cells_of(ask: Callable[[int], Any]) -> int:
    """Return how many numbers are computed for one more candidate, or triple, at most.

    Parameters
    ----------
    ask
        Asks the model about so many of them.
    """
    counts: list[int] = []
    for asked in (2, 3):
        with _Counted() as counted:
            ask(asked)
        counts.append(counted.cells)
    return max(1, counts[1] - counts[0])
