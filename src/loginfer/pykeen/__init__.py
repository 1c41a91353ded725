"""The bridge to PyKEEN: benchmarks as its data sets, its models as scorers, known negatives in its training.

Any model of PyKEEN is also a system: see `loginfer.systems.pykeen`. Needs PyKEEN:
`pip install 'loginfer[pykeen]'`.

Nothing of PyKEEN is imported before a name is used: PyKEEN itself looks into this module while it is being
imported, for the class that its entry point names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loginfer.pykeen.datasets import LogInfer, LogInferInductive, dataset
    from loginfer.pykeen.negatives import ExplicitNegativeSampler
    from loginfer.pykeen.scorer import Trained, scorer

__all__ = ["ExplicitNegativeSampler", "LogInfer", "LogInferInductive", "Trained", "dataset", "scorer"]


_HOMES = {
    "ExplicitNegativeSampler": "loginfer.pykeen.negatives",
    "LogInfer": "loginfer.pykeen.datasets",
    "LogInferInductive": "loginfer.pykeen.datasets",
    "Trained": "loginfer.pykeen.scorer",
    "dataset": "loginfer.pykeen.datasets",
    "scorer": "loginfer.pykeen.scorer",
}

# What a name needs of PyKEEN besides its data sets.
_NEEDS = {"Trained": ("pykeen.models",), "scorer": ("pykeen.models",)}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from loginfer.pykeen.versions import import_pykeen

    # PyKEEN first: its entry points then find the modules of this package unimported, not half imported.
    import_pykeen(*_NEEDS.get(name, ()))
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
