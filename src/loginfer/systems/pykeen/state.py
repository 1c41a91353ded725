"""The state of PyKEEN's training loop between two epochs, as arrays and JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from pykeen.models import Model
from pykeen.training import TrainingLoop

from loginfer.systems.interface import Arrays, Checkpoint
from loginfer.systems.pykeen.scorer import arrays_of

__all__ = ["checkpoint_of", "go_on", "load_weights"]

# What the names of arrays begin with.
_NOW, _BEST, _OPTIMIZER = "model.", "best.", "optimizer."


def load_weights(model: Model, arrays: Arrays) -> None:
    """Give a model these weights, which are those of its `state_dict`."""
    model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})


def checkpoint_of(loop: TrainingLoop[Any], best: Arrays, facts: Mapping[str, Any]) -> Checkpoint:
    """Return the state of a loop after an epoch, with the best weights so far and more facts."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    arrays |= {f"{_NOW}{name}": value for name, value in arrays_of(loop.model).items()}
    arrays |= {f"{_BEST}{name}": value for name, value in best.items()}
    # Of each parameter the optimiser keeps some tensors (moments) and some plain values.
    plain: dict[str, dict[str, Any]] = {}
    for place, kept in loop.optimizer.state_dict()["state"].items():
        plain[str(place)] = {}
        for name, value in kept.items():
            if isinstance(value, torch.Tensor):
                arrays[f"{_OPTIMIZER}{place}.{name}"] = value.detach().cpu().numpy().copy()
            else:
                plain[str(place)][name] = value
    return Checkpoint(arrays, {**facts, "optimizer": plain})


def go_on(loop: TrainingLoop[Any], checkpoint: Checkpoint, epoch: int) -> Arrays:
    """Put a loop back into a checkpoint's state, after so many epochs; returns the best weights."""
    arrays = checkpoint.arrays
    load_weights(loop.model, _part(arrays, _NOW))
    kept: dict[int, dict[str, Any]] = {
        int(place): dict(values) for place, values in checkpoint.facts["optimizer"].items()
    }
    for key, value in _part(arrays, _OPTIMIZER).items():
        place, name = key.split(".", 1)
        kept[int(place)][name] = torch.from_numpy(np.array(value))
    groups = loop.optimizer.state_dict()["param_groups"]
    loop.optimizer.load_state_dict({"state": kept, "param_groups": groups})
    if not loop.optimizer.state:
        # Some optimisers have nothing to keep, and PyKEEN takes that for a loop that was never started.
        loop.optimizer.state[loop.optimizer.param_groups[0]["params"][0]] = {}
    loop._epoch = epoch
    return {name: np.array(value) for name, value in _part(arrays, _BEST).items()}


def _part(arrays: Arrays, beginning: str) -> dict[str, npt.NDArray[Any]]:
    return {
        name.removeprefix(beginning): value for name, value in arrays.items() if name.startswith(beginning)
    }
