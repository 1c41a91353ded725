"""The arguments of PyKEEN's models as settings."""

from __future__ import annotations

import inspect
import json
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin

from class_resolver import BaseResolver, normalize_string
from class_resolver.contrib.torch import activation_resolver
from pykeen.models import Model
from pykeen.nn.init import initializer_resolver
from pykeen.nn.message_passing import decomposition_resolver
from pykeen.nn.modules import interaction_resolver
from pykeen.nn.representation import constrainer_resolver, normalizer_resolver
from pykeen.nn.weighting import edge_weight_resolver
from pykeen.regularizers import regularizer_resolver

from loginfer.errors import InputError
from loginfer.systems.pykeen.names import unknown_name
from loginfer.systems.pykeen.refused import refuse_parts

__all__ = ["DEFAULT", "Argument", "arguments", "given_arguments"]

# The value of a setting that leaves an argument to PyKEEN.
DEFAULT = "default"

_PLAIN = (bool, int, float, str)

# What an argument whose name ends like this is chosen from.
_CHOICES: dict[str, BaseResolver[Any, Any]] = {
    "initializer": initializer_resolver,
    "constrainer": constrainer_resolver,
    "normalizer": normalizer_resolver,
    "regularizer": regularizer_resolver,
    "interaction": interaction_resolver,
    "activation": activation_resolver,
    "non_linearity": activation_resolver,
    "edge_weighting": edge_weight_resolver,
    "decomposition": decomposition_resolver,
}

_MEANING = re.compile(r"^\s*:param (\w+):(.*?)(?=^\s*:|^\s*\.\.|\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Argument:
    """An argument of a model as a setting: name, type, default, meaning, bounds, and names to choose from."""

    name: str
    type: Any
    default: Any
    meaning: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


def arguments(model: type[Model]) -> list[Argument]:
    """Return the arguments of a model that can be settings.

    Numbers, yes and no, and texts are what they are. Initialisers, constraints, regularisers and the like are
    chosen by PyKEEN's names. Arguments of such parts, whose names end in `kwargs`, are JSON objects. Other
    arguments, such as lists, cannot be set.
    """
    meanings = _meanings(model)
    found = []
    for parameter in inspect.signature(model.__init__).parameters.values():
        if (
            parameter.kind is not parameter.KEYWORD_ONLY
            and parameter.kind is not parameter.POSITIONAL_OR_KEYWORD
        ):
            continue
        if parameter.name in ("self", "triples_factory"):
            continue
        name = parameter.name
        kind = _kind(parameter, _hints(model).get(name, parameter.annotation))
        if kind is not None:
            plain = parameter.default is None or isinstance(parameter.default, _PLAIN)
            default = parameter.default if plain else DEFAULT
            bounds = _bounds(name, kind)
            found.append(Argument(name, kind, default, meanings.get(name, ""), *bounds, _choices(name)))
    return found


def given_arguments(known: list[Argument], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings as a model takes them; without those that are left to PyKEEN."""
    made = {}
    for argument in known:
        value = values[argument.name]
        if value == DEFAULT:
            continue
        if argument.name.endswith("_kwargs") and value is not None:
            value = _object(argument.name, value)
        if argument.choices and value is not None:
            value = _chosen(argument, str(value))
        refuse_parts(argument.name, value)
        made[argument.name] = value
    return made


def _chosen(argument: Argument, value: str) -> str:
    """Return a name as PyKEEN knows it; case, hyphens and underscores do not count."""
    found = normalize_string(value)
    if found not in argument.choices:
        known = [DEFAULT, "none", *argument.choices]
        raise unknown_name(f"value of `{argument.name}`", value, known, "--set")
    return found


def _object(name: str, text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{name}` is no JSON: {error}", where="--set", hint=_EXAMPLE) from error
    if not isinstance(found, dict):
        raise InputError(f"`{name}` must be a JSON object, not `{text}`", where="--set", hint=_EXAMPLE)
    return found


_EXAMPLE = """for example '{"a": -0.1, "b": 0.1}'"""


# -- reading a signature ----------------------------------------------------------------------------


def _kind(parameter: inspect.Parameter, hint: Any) -> Any:
    """Return the type of a setting, None if the argument cannot be one."""
    name, default = parameter.name, parameter.default
    if name.endswith("_kwargs"):
        return str | None
    if _choices(name):
        return str | None
    kinds = _alternatives(hint)
    optional = default is None or type(None) in kinds
    for plain in _PLAIN:
        if type(default) is plain or (default is None and plain in kinds):
            return plain | None if optional else plain
    return None


def _choices(name: str) -> tuple[str, ...]:
    found = (resolver.lookup_dict for ending, resolver in _CHOICES.items() if name.endswith(ending))
    return tuple(sorted(next(found, {})))


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if isinstance(hint, str):  # an annotation that was not evaluated
        words = {word.strip() for word in hint.split("|")}
        return tuple(kind for kind in (*_PLAIN, type(None)) if kind.__name__ in words or str(kind) in words)
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _hints(model: type[Model]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(model.__init__)
    except (NameError, TypeError):  # names that are imported for type checkers only
        return {}


def _bounds(name: str, kind: Any) -> tuple[float | None, float | None]:
    kinds = _alternatives(kind)
    if "dropout" in name:
        return 0.0, 1.0
    if int in kinds and (
        name.endswith(("_dim", "_height", "_width", "_channels")) or name.startswith("num_")
    ):
        return 1.0, None
    return None, None


def _meanings(model: type[Model]) -> dict[str, str]:
    """Return what PyKEEN's documentation says about each argument, its first sentence."""
    text = inspect.getdoc(model.__init__) or ""
    found = {}
    for match in _MEANING.finditer(text):
        words = re.sub(r"`([^`<]*?)\s*<[^>]*>`_|:\w+:`~?([^`]*)`|``?([^`]*)``?", r"\1\2\3", match[2])
        sentence = re.split(r"(?<=[.;])\s", " ".join(words.replace("$", "").split()))[0]
        found[match[1]] = sentence.rstrip(".").removesuffix(", cf")
    return found
