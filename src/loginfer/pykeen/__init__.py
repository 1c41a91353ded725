"""The bridge to PyKEEN: benchmarks as its data sets, its models as systems and scorers, known negatives.

Needs PyKEEN: `pip install '.[pykeen]'`. Nothing of it is imported before a name is used: PyKEEN itself
looks into this module while it is being imported, for the class that its entry point names.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from loginfer.pykeen.versions import import_pykeen

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# What a name needs of PyKEEN besides its data sets.
_NEEDS = {"Trained": ("pykeen.models",), "scorer": ("pykeen.models",)}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name in __all__:
        # PyKEEN first: its entry points then find the modules of this package unimported, not half imported.
        import_pykeen(*_NEEDS.get(name, ()))
    return _load(name)


def model_system(name: str) -> type[Any]:
    """Return the system of a model of PyKEEN, by the model's name in any case: `pykeen:NAME` in the registry."""
    import_pykeen("pykeen.training")
    from loginfer.pykeen.system import system_class

    return system_class(name)
