"""Settings that are declared once: name, type, default, meaning, bounds, and how the command line asks for them.

A setting is a field of a frozen dataclass, declared with `setting`. Checks, options, help and documentation are
made from what `settings_of` returns. Systems are declared so (their settings are given as `--set name=value`),
and so is the recipe of a benchmark (each of its settings is an option of `loginfer build`). A user's own system
needs nothing from here: the keyword arguments of its class are its settings.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from loginfer.errors import InputError, UnknownNameError

# Words for values on the command line.
_NAMED: dict[Any, dict[str, Any]] = {
    bool: dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False),
    type(None): {"none": None},
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Parameters
    ----------
    name
        The keyword.
    type
        The type of its values: int, float, bool, str, a Literal of names, a tuple of such, or one of these or
        None.
    default
        Its default; `inspect.Parameter.empty` if it must be given.
    meaning
        What it does.
    least, most
        Bounds of a number, included.
    names
        Returns the names to choose from, where its type does not tell them.
    noun
        What messages call one of its choices.
    hint
        What to do about a value that is not allowed.
    panel
        The part of a command's help that its option stands in.
    flags
        Its option, if that is not called like the setting.
    metavar
        What help calls its value.
    read
        Makes a value of an option's text.
    tuned
        What `loginfer tune` may try: `0.005:0.03:log`, numbers between two, and that evenly by their logarithm;
        `2:5`; or values, `maximum,noisy-or`.
    indifferent
        Whether the result is the same whatever the value.
    """

    name: str
    type: Any
    default: Any
    meaning: str = ""
    least: float | None = None
    most: float | None = None
    names: Callable[[], Iterable[str]] | None = None
    noun: str = ""
    hint: str | None = None
    panel: str | None = None
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    tuned: str | None = None
    indifferent: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """The names to choose from, if it is a choice."""
        if self.names is not None:
            return tuple(self.names())
        for kind in kinds(self.type):
            named = get_args(kind)[0] if get_origin(kind) is tuple else kind
            if get_origin(named) is Literal:
                return tuple(map(str, get_args(named)))
        return ()

    @property
    def kind(self) -> str:
        """The type in words."""
        names = [
            "|".join(map(str, get_args(k))) if get_origin(k) is Literal else _WORDS.get(k, str(k))
            for k in kinds(self.type)
        ]
        return " or ".join(names) or "text"

    def parse(self, text: str) -> Any:
        """Read a value from the command line."""
        for kind in kinds(self.type) or [str]:
            try:
                return _parse(kind, text)
            except ValueError:
                continue
        if self.choices:
            raise UnknownNameError(f"value of `{self.name}`", text, self.choices, where="--set")
        raise InputError(f"`{self.name}` must be {self.kind}, not `{text}`", where="--set")

    def check(self, value: Any) -> None:
        """Complain about a number out of bounds or an unknown choice."""
        plain = tuple(kind for kind in kinds(self.type) if isinstance(kind, type))
        fits = value is None or str(value) in self.choices or isinstance(value, plain)
        if self.choices and not fits:
            raise UnknownNameError(f"value of `{self.name}`", str(value), self.choices)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise InputError(f"`{self.name}` must be a finite number, not {value}")
            if self.least is not None and value < self.least:
                raise InputError(f"`{self.name}` must be at least {self.least:g}, not {value}")
            if self.most is not None and value > self.most:
                raise InputError(f"`{self.name}` must be at most {self.most:g}, not {value}")


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
_WORDS[type(None)] = "none"


def setting(default: Any, meaning: str, **more: Any) -> Any:
    """Declare a field of a dataclass as a setting.

    Parameters
    ----------
    default
        Its default; `dataclasses.MISSING` if it must be given.
    meaning
        What it does, in one sentence; `{default}` stands for the default.
    **more
        The other parts of a `Setting`, such as `least` and `most`.
    """
    default_text = f"{default:,}" if isinstance(default, int) else str(default)
    return dataclasses.field(default=default, metadata={"meaning": meaning.replace("{default}", default_text), **more})


def document_settings(system: type[Any]) -> None:
    """Write the meanings of its settings into the documentation of a class."""
    described = (f"{name}\n    {declared.meaning}" for name, declared in settings_of(system).items())
    system.__doc__ = "\n".join([f"{system.__doc__}\n\nParameters\n----------", *described, ""])


def words(text: str) -> tuple[str, ...]:
    """Return the words of a list with commas."""
    return tuple(word.strip() for word in text.split(","))


def settings_of(system: type[Any]) -> dict[str, Setting]:
    """Return the settings of a class by name: the keyword arguments it can be called with."""
    declared: dict[str, Mapping[str, Any]] = {}
    if dataclasses.is_dataclass(system):
        declared = {field.name: field.metadata for field in dataclasses.fields(system)}
    parts = {field.name for field in dataclasses.fields(Setting)}
    hints = type_hints_of(system)
    settings = {}
    for name, parameter in inspect.signature(system).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        guessed = type(parameter.default) if type(parameter.default) in (int, float, bool, str) else str
        about = {part: value for part, value in declared.get(name, {}).items() if part in parts}
        settings[name] = Setting(name, hints.get(name, guessed), parameter.default, **about)
    return settings


def configure(system: type[Any], values: Mapping[str, Any]) -> Any:
    """Make a system with these settings; texts, as from the command line, are read as what they should be.

    Raises
    ------
    UnknownNameError
        For a setting that the system does not have, with the nearest ones.
    """
    declared = settings_of(system)
    parsed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in declared:
            raise UnknownNameError(f"setting of {system.__name__}", name, declared, where="--set")
        declaration = declared[name]
        parsed[name] = declaration.parse(value) if isinstance(value, str) else value
        declaration.check(parsed[name])
    missing = [s.name for s in declared.values() if s.default is inspect.Parameter.empty and s.name not in parsed]
    if missing:
        raise InputError(f"{system.__name__} needs the setting `{missing[0]}`", hint=f"--set {missing[0]}=…")
    return system(**parsed)


def check_settings(system: Any) -> None:
    """Check the bounds and choices of a dataclass's fields; for its `__post_init__`."""
    for name, declaration in settings_of(type(system)).items():
        declaration.check(getattr(system, name))


def type_hints_of(system: type[Any]) -> dict[str, Any]:
    """Return the types of a class's keyword arguments, as far as they are known."""
    target = system if dataclasses.is_dataclass(system) else system.__init__
    try:
        return typing.get_type_hints(target)
    except (NameError, TypeError, AttributeError):  # annotations that cannot be evaluated say nothing
        return {}


def kinds(type_: Any) -> list[Any]:
    """Return the alternatives of a type, numbers before text."""
    alternatives = list(get_args(type_)) if get_origin(type_) in (Union, types.UnionType) else [type_]
    return sorted(alternatives, key=lambda kind: (kind is str, kind is float))


def _parse(kind: Any, text: str) -> Any:
    """Read a text as a value of one type; a `ValueError` if it is none."""
    if kind in (int, float):
        return kind(text)
    if get_origin(kind) is Literal:
        names: dict[str, Any] = {str(name).casefold(): name for name in get_args(kind)}
    elif kind in _NAMED:
        names = _NAMED[kind]
    else:
        return text
    if text.casefold() not in names:
        raise ValueError
    return names[text.casefold()]
