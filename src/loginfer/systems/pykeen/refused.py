"""Parts of PyKEEN's models that a setting must not choose."""

from __future__ import annotations

from typing import Any

from class_resolver import ClassResolver
from pykeen.nn import TextRepresentation, VisualRepresentation, representation_resolver
from pykeen.nn.node_piece import (
    PrecomputedPoolTokenizer,
    RandomAnchorSelection,
    ScipySparseAnchorSearcher,
    anchor_searcher_resolver,
    anchor_selection_resolver,
    tokenizer_resolver,
)

from loginfer.errors import InputError

__all__ = ["refuse_parts"]

_SEED = "what it draws does not follow the seed, so no two runs would be alike"
_ELSEWHERE = "it needs texts or pictures, and a benchmark has none"

# A run's folder holds settings, and may come from anybody: none of them may make PyKEEN read a pickled file.
_REFUSED: tuple[tuple[ClassResolver[Any], type[Any], str], ...] = (
    (tokenizer_resolver, PrecomputedPoolTokenizer, "it reads pickled files, which can run any program"),
    (anchor_selection_resolver, RandomAnchorSelection, _SEED),
    (anchor_searcher_resolver, ScipySparseAnchorSearcher, _SEED),
    (representation_resolver, TextRepresentation, _ELSEWHERE),
    (representation_resolver, VisualRepresentation, _ELSEWHERE),
)


def refuse_parts(setting: str, value: Any) -> None:
    """Complain if a value, or anything inside a JSON value, is the name of a part that must not be chosen.

    Raises
    ------
    InputError
        With the reason.
    """
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            refuse_parts(setting, inner)
    elif isinstance(value, str):
        for resolver, kind, why in _REFUSED:
            found = resolver.lookup_dict.get(resolver.normalize(value))
            if found is not None and issubclass(found, kind):
                others = [name for name, other in resolver.lookup_dict.items() if not issubclass(other, kind)]
                raise InputError(
                    f"`{value}` cannot be chosen in `{setting}`: {why}",
                    where="--set",
                    hint="choose one of " + ", ".join(f"`{name}`" for name in sorted(others)),
                )
