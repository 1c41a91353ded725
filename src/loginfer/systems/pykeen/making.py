"""The class of a model's system: the settings of training, and the model's own."""

from __future__ import annotations

import dataclasses
from functools import cache

from loginfer.systems.pykeen.arguments import arguments
from loginfer.systems.pykeen.defaults import DEFAULTS
from loginfer.systems.pykeen.models import find_model
from loginfer.systems.pykeen.system import PyKEENSystem
from loginfer.systems.settings import setting

__all__ = ["system_class"]


def system_class(name: str) -> type[PyKEENSystem]:
    """Return the class of a model's system.

    Parameters
    ----------
    name
        The model, in any case.

    Raises
    ------
    InputError
        If PyKEEN has no such model, or it needs more than a benchmark.
    """
    return _class(find_model(name).__name__)


@cache
def _class(name: str) -> type[PyKEENSystem]:
    own = DEFAULTS.get(name, {})
    fields: list[tuple[str, object, object]] = []
    for found in arguments(find_model(name)):
        default = own.get(found.name, found.default)
        declared = setting(default, found.meaning, least=found.least, most=found.most)
        fields.append((found.name, found.type, declared))
    fields += [
        (field.name, field.type, setting(own[field.name], **field.metadata))
        for field in dataclasses.fields(PyKEENSystem)
        if field.name in own
    ]
    return dataclasses.make_dataclass(
        name, fields, bases=(PyKEENSystem,), frozen=True, kw_only=True,
        # The module is that of the base class: names in its annotations are looked up there.
        namespace={
            "model": name,
            "__module__": PyKEENSystem.__module__,
            "__doc__": f"PyKEEN's {name} as a system.",
        },
    )  # fmt: skip
