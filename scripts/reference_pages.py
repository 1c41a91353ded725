"""A hook of MkDocs: fills in the parts of the reference that are read off the program itself.

A page says `<!-- commands -->` where the commands are to stand, `<!-- recipe settings -->` where the settings of a
recipe are, and `<!-- public names -->` where what can be imported from `loginfer` is. Nothing of it is kept in a
file, so it cannot be out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

COMMANDS = "<!-- commands -->"
NAMES = "<!-- public names -->"
RECIPE = "<!-- recipe settings -->"


# A door that loads lazily: its names stand in a stub, which mkdocstrings does not follow.
DOOR = re.compile(r"^::: (loginfer\.\w+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in a page; MkDocs calls this for each of them."""
    markdown = DOOR.sub(lambda match: "\n".join(door(match[1])) or match[0], markdown)
    for place, lines in ((COMMANDS, command_line), (NAMES, public_names), (RECIPE, recipe)):
        if place in markdown:
            markdown = markdown.replace(place, "\n".join(lines()))
    return markdown


def door(package: str) -> Iterator[str]:
    """Yield the classes and functions at the door of a package that loads lazily; nothing for any other."""
    module = import_module(package)
    path = Path(inspect.getsourcefile(module) or "")
    if not path.with_suffix(".pyi").exists():
        return
    yield inspect.cleandoc(module.__doc__ or "")
    for name in sorted(module.__all__, key=str.casefold):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield from ["", f"## {name} {{ #{package}.{name} }}", "", f"::: {value.__module__}.{value.__qualname__}"]
            yield "    options: { heading_level: 3 }"


def command_line() -> Iterator[str]:
    """Yield the lines of the command-line reference: every command with its arguments and options."""
    import typer

    from loginfer.cli.app import app

    root = typer.main.get_command(app)
    for path, command in commands(root, ("loginfer",)):
        if not getattr(command, "commands", None):
            yield from _command(path, command)
        elif len(path) > 1:
            yield from ["", f"## {' '.join(path)}", "", _text(command.help)]


def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield a command with all that are below it, each with the words that lead to it."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from commands(child, (*path, name))


def _command(path: tuple[str, ...], command: Any) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = [*path, *(["[OPTIONS]"] if options else []), *(_metavar(p) for p in arguments)]
    yield from ["", f"{'#' * len(path)} {' '.join(path)}", "", f"`{' '.join(usage)}`", "", _text(command.help)]
    if arguments:
        yield from ["", "| argument | meaning |", "|---|---|"]
        for parameter in arguments:
            yield f"| `{_metavar(parameter)}` | {_cell(parameter.help)} |"
    if options:
        yield from ["", "| option | meaning |", "|---|---|"]
        for parameter in options:
            yield f"| {_names(parameter)} | {_cell(parameter.help)}{_default(parameter)} |"
    if command.epilog:
        label, _, example = command.epilog.partition(":")
        yield from ["", f"{label}: `{example.strip()}`"]


def _metavar(parameter: Any) -> str:
    word = parameter.metavar or parameter.name.upper()
    word += "…" if parameter.nargs == -1 and not word.endswith(("…", "...")) else ""
    return word if parameter.required else f"[{word}]"


def _names(parameter: Any) -> str:
    takes = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    names = [*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts]
    return ", ".join(f"`{name}{takes}`" for name in names)


def _default(parameter: Any) -> str:
    value = getattr(parameter.default, "value", parameter.default)
    if parameter.secondary_opts and value is not None:
        return f" Default: `{(parameter.opts if value else parameter.secondary_opts)[0]}`."
    if parameter.is_flag or callable(value) or value in (None, (), [], ""):
        return ""
    return f" Default: `{value}`."


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _text(text: str | None) -> str:
    return inspect.cleandoc(text or "")


def recipe() -> Iterator[str]:
    """Yield a table of the settings of a recipe: in a TOML file, and as an option of `loginfer build`."""
    from loginfer.benchmark.recipe import recipe_settings

    yield from ["| setting | option | meaning |", "|---|---|---|"]
    for name, declared in recipe_settings().items():
        option = declared.flags[0] if declared.flags else f"--{name.replace('_', '-')}"
        yield f"| `{name}` | {'`KG`' if name == 'kg' else f'`{option}`'} | {_cell(declared.meaning)} |"


def public_names() -> Iterator[str]:
    """Yield a table of what can be imported from `loginfer`, each with a link to where it is described."""
    import loginfer

    yield from ["| name | what it is |", "|---|---|"]
    for name in sorted(loginfer.__all__, key=str.casefold):
        value = getattr(loginfer, name)
        if name.startswith("__"):
            continue
        first = _text(value.__doc__).partition("\n\n")[0]
        yield f"| [`{name}`][{home_of(name)}] | {_cell(first)} |"


def home_of(name: str) -> str:
    """Return the full name under which the reference describes a public name of `loginfer`."""
    import loginfer

    module = str(getattr(loginfer, name).__module__)
    room = ".".join(module.split(".")[:2])
    exported = getattr(import_module(room), "__all__", ())
    # A function that is called like its module is described under the name it has there.
    hidden = module == f"{room}.{name}"
    return f"{room}.{name}" if name in exported and not hidden else f"{module}.{name}"
