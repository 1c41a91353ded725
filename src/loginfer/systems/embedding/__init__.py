"""Embedding systems: TransE, RotatE, ComplEx, DistMult, BoxE, trained by compiled kernels on the CPU."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loginfer.systems.embedding.boxe import BoxE
    from loginfer.systems.embedding.complex import ComplEx
    from loginfer.systems.embedding.distmult import DistMult
    from loginfer.systems.embedding.rotate import RotatE
    from loginfer.systems.embedding.transe import TransE

__all__ = ["BoxE", "ComplEx", "DistMult", "RotatE", "TransE"]


def __getattr__(name: str) -> Any:
    """Import a system when it is first asked for: its kernels need numba, which takes a while to start."""
    if name in __all__:
        return getattr(import_module(f"{__name__}.{name.lower()}"), name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
