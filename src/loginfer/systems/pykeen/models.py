"""The models of PyKEEN by name, and which of them cannot learn from a benchmark."""

from __future__ import annotations

from pykeen.models import (
    CompGCN,
    CooccurrenceFilteredModel,
    FixedModel,
    InductiveERModel,
    LiteralModel,
    Model,
    NodePiece,
    model_resolver,
)

from loginfer.errors import InputError
from loginfer.systems.pykeen.names import unknown_name

__all__ = ["find_model", "model_names", "needs_inverse"]

# What some models need that a benchmark does not have.
_UNFIT: tuple[tuple[type[Model], str], ...] = (
    (LiteralModel, "it needs numbers that describe entities, and a benchmark has none"),
    (InductiveERModel, "it needs a second graph to be asked about: it is for PyKEEN's inductive data sets"),
    (CooccurrenceFilteredModel, "it is a filter around another model, which can be evaluated by itself"),
    (FixedModel, "it learns nothing: PyKEEN has it for tests"),
)


def find_model(name: str) -> type[Model]:
    """Return a model by name; case, hyphens and underscores do not count.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    InputError
        For a model that needs more than a benchmark.
    """
    if not name:
        raise InputError(
            "no model of PyKEEN is named",
            where="--system",
            hint=f"write pykeen:MODEL; models are {', '.join(model_names())}",
        )
    known = model_resolver.lookup_dict | dict(model_resolver.synonyms)
    found = known.get(model_resolver.normalize(name))
    if found is None:
        raise unknown_name("model of PyKEEN", name, model_names(), "--system")
    why = _unfit(found)
    if why is not None:
        raise InputError(
            f"PyKEEN's {found.__name__} cannot be trained on a benchmark: {why}",
            where="--system",
            hint="choose another model, or give a trained one to loginfer.pykeen.scorer",
        )
    return found


def model_names() -> list[str]:
    """Return the names of the models that can learn from a benchmark."""
    return sorted(
        (model.__name__ for model in model_resolver.lookup_dict.values() if _unfit(model) is None),
        key=str.casefold,
    )


def needs_inverse(model: type[Model]) -> bool:
    """Say whether a model can be trained with inverse triples only."""
    return issubclass(model, CompGCN | NodePiece)


def _unfit(model: type[Model]) -> str | None:
    return next((why for kind, why in _UNFIT if issubclass(model, kind)), None)
