"""The models of PyKEEN as systems: `pykeen:TuckER` is `loginfer.systems.pykeen:TuckER`.

Each model's class is made when it is asked for, from the arguments that PyKEEN's own class has.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return the system of a model of PyKEEN."""
    if name.startswith("_"):
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from loginfer.pykeen.versions import import_pykeen

    import_pykeen("pykeen.training")
    from loginfer.pykeen.system import system_class

    return system_class(name)
