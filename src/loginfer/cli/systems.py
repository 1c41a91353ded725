"""`loginfer systems`: what can be evaluated, with its settings."""

from __future__ import annotations

from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import JsonOption, console, print_json, table

if TYPE_CHECKING:
    from loginfer.systems.registry import Entry
    from loginfer.systems.settings import Setting

__all__ = ["app"]

app = typer.Typer(help="The systems that can be evaluated, and their settings.", no_args_is_help=True)


@app.command("list", epilog="Example:  loginfer systems list")
def list_systems(json: JsonOption = False) -> None:
    """List the systems that have a name; a model of PyKEEN is pykeen:MODEL, your own my_module:MySystem."""
    from loginfer.systems.registry import systems

    known = systems()
    if json:
        print_json([_about(entry) for entry in known])
        return
    shown = table("system", "kind", "")
    for entry in known:
        shown.add_row(entry.name, entry.kind, entry.summary)
    plain = console()
    plain.print(shown)
    plain.print("Any model of PyKEEN is a system as well: pykeen:MODEL; so is your own: my_module:MySystem.")


@app.command("show", epilog="Example:  loginfer systems show transe")
def show_system(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A system, pykeen:MODEL, or my_module:MySystem.", show_default=False
        ),
    ],
    json: JsonOption = False,
) -> None:
    """Show the settings of a system, and which patterns theory says it can capture."""
    from loginfer.systems.registry import find_system
    from loginfer.systems.settings import settings_of
    from loginfer.systems.tuning import tuned_graphs

    entry = find_system(name)
    settings = settings_of(entry.load())
    if json:
        listed = [_setting(known) for known in settings.values()]
        print_json({**_about(entry), "settings": listed, "tuned": tuned_graphs(entry)})
        return
    plain = console()
    plain.print(f"{entry.title} ({entry.kind})")
    for line in (entry.summary, entry.reference):
        if line:
            plain.print(line)
    if entry.captures:
        plain.print("\nPatterns that it can capture, as far as theory knows:")
        for answer in dict.fromkeys(entry.captures.values()):
            patterns = [pattern for pattern, found in entry.captures.items() if found == answer]
            plain.print(f"  {answer}: {', '.join(patterns)}")
    seeded = settings.pop("seed", None) is not None  # it has an option of its own
    shown = table("--set", "default", "values", "meaning")
    for known in settings.values():
        shown.add_row(known.name, _default(known), _values(known), known.meaning)
    plain.print(shown if settings else "\nIt has no settings.")
    for graph, values in tuned_graphs(entry).items():
        chosen = ", ".join(f"{name}={value}" for name, value in values.items())
        plain.print(f"tuned for {graph}: {chosen}")
    if seeded:
        plain.print("--seed chooses all that is random.")


def _about(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "kind": entry.kind,
        "summary": entry.summary,
        "reference": entry.reference,
        "captures": dict(entry.captures),
        "aliases": list(entry.aliases),
        "class": entry.target,
    }


def _setting(known: Setting) -> dict[str, Any]:
    required = known.default is Parameter.empty
    plain = known.default is None or isinstance(known.default, bool | int | float | str)
    return {
        "name": known.name,
        "type": known.kind,
        "default": None if required else known.default if plain else str(known.default),
        "required": required,
        "meaning": known.meaning,
        "choices": list(known.choices),
        "least": known.least,
        "most": known.most,
    }


def _default(known: Setting) -> str:
    if known.default is Parameter.empty:
        return "must be given"
    text = str(known.default)
    return text.lower() if isinstance(known.default, bool | None) else text


def _values(known: Setting) -> str:
    bounds = []
    if known.least is not None:
        bounds.append(f"from {known.least:g}")
    if known.most is not None:
        bounds.append(f"to {known.most:g}")
    return " ".join([known.kind, *bounds])
