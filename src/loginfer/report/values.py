"""What pages are made of: plots with their rows, tables, menus, pages, data files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from loginfer.errors import InputError
from loginfer.files import atomic_write
from loginfer.report.vega import CONFIG, declared

_MISSING = "in a checkout of LogInfer, `pip install '.[report]'` brings what reports need"


def needed(name: str) -> Any:
    """Import what the extra `report` brings."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"reports need `{name}`, which is not installed", hint=_MISSING) from error


# Vega-Lite's own address of its version, and what notebooks call it.
_SCHEMA, _MIME = "https://vega.github.io/schema/vega-lite/v5.json", "application/vnd.vegalite.v5+json"
# How wide a plot is that would be as wide as its page.
_WIDTH = 640


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of plain values under named fields: a small file, since names are written once.

    Parameters
    ----------
    fields
        Names of the columns.
    rows
        One list of values a row: text, numbers, booleans or None.
    """

    fields: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> Rows:
        """Return rows from any sequences."""
        return cls(tuple(fields), tuple(tuple(row) for row in rows))

    @classmethod
    def declared(cls, chart: str, rows: Iterable[Sequence[Any]]) -> Rows:
        """Return the rows of a plot, with the fields that are declared of it."""
        return cls.of(declared(chart)["fields"], rows)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"fields": list(self.fields), "rows": [list(row) for row in self.rows]}

    def packed(self, *names: str) -> dict[str, Any]:
        """Return plain values for JSON; each text of these fields is written once, and rows hold its index."""
        columns = [self.fields.index(name) for name in names]
        words: list[dict[str, int]] = [{} for _ in columns]
        packed = [list(row) for row in self.rows]
        for row in packed:
            for numbers, column in zip(words, columns, strict=True):
                if row[column] is not None:
                    row[column] = numbers.setdefault(row[column], len(numbers))
        texts = {name: list(numbers) for name, numbers in zip(names, words, strict=True)}
        return {"fields": list(self.fields), "rows": packed, "words": texts}


def loaded_rows(chart: str, rows: Rows | Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Return the rows that a plot loads from a file of data, packed as it declares."""
    rows = rows if isinstance(rows, Rows) else Rows.declared(chart, rows)
    names = declared(chart).get("packed")
    return rows.packed(*names) if names else rows.as_dict()


@dataclass(frozen=True, slots=True)
class Choice:
    """A menu above a plot that keeps the rows with one value of a field.

    Parameters
    ----------
    field
        The field that is compared.
    title
        What stands beside the menu.
    options
        Values to choose from, as (value, shown text); the first is chosen at the beginning.
    everything
        Also offer all values, as the first choice.
    together
        Whether it changes together with all menus of the page that have the same field and this mark.
    """

    field: str
    title: str
    options: tuple[tuple[str, str], ...]
    everything: bool = False
    together: bool = False

    @classmethod
    def among(cls, field: str, names: Iterable[str], title: str | None = None, **more: bool) -> Choice:
        """Return a menu of names that are shown as they are; its title is the field's name, unless given."""
        return cls(field, field if title is None else title, tuple((name, name) for name in names), **more)


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot, with the table of its rows beside it and downloads as PNG, SVG and CSV.

    Parameters
    ----------
    name
        A word that no other plot of the page has.
    title, caption
        What it shows, and what to look for.
    spec
        Vega-Lite without `data`: the rows are put in by the page, after the choices.
    rows
        What is shown; may be empty at first if a picker loads the rows.
    columns
        Heading of each field in the table; fields that are not named here are not in the table.
    choices
        Menus above it.
    packed
        Fields whose texts are written once, while rows hold their index: for many rows of few names.
    """

    name: str
    title: str
    spec: Mapping[str, Any]
    rows: Rows
    columns: Mapping[str, str]
    caption: str = ""
    choices: tuple[Choice, ...] = ()
    packed: tuple[str, ...] = ()

    @classmethod
    def declared(
        cls,
        name: str,
        spec: Mapping[str, Any],
        rows: Iterable[Sequence[Any]] | None = None,
        *choices: Choice,
        without: Sequence[str] = (),
        **words: str,
    ) -> Chart:
        """Return a plot with the texts and fields that `data/charts.toml` declares.

        Parameters
        ----------
        name
            Its name there.
        spec, choices
            As of any plot.
        rows
            What is shown; None if a picker loads the rows.
        without
            Fields that are left out of the table.
        words
            What stands in place of the words in braces.
        """
        about = declared(name)
        title, caption = (about[key].format(**words) for key in ("title", "caption"))
        columns = {field: head.format(**words) for field, head in about["columns"].items() if field not in without}
        packed = () if rows is None else tuple(about.get("packed", ()))
        return cls(about["name"], title, spec, Rows.declared(name, rows or ()), columns, caption, choices, packed)

    def as_dict(self) -> dict[str, Any]:
        """Return what the page's script reads."""
        return {
            "name": self.name,
            "spec": {**self.spec, "config": CONFIG},
            "data": self.rows.packed(*self.packed) if self.packed else self.rows.as_dict(),
            "columns": dict(self.columns),
            "choices": [asdict(choice) for choice in self.choices],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the plot as Vega-Lite with its rows; of each menu the first choice is taken."""
        rows = [dict(zip(self.rows.fields, row, strict=True)) for row in self.rows.rows]
        for choice in self.choices:
            rows = [row for row in rows if choice.everything or str(row[choice.field]) == choice.options[0][0]]
        width = {"width": _WIDTH} if self.spec.get("width") == "container" else {}
        more = {"$schema": _SCHEMA, "title": self.title, "config": CONFIG, "data": {"values": rows}}
        copied: dict[str, Any] = json.loads(json.dumps({**self.spec, **width, **more}, allow_nan=False))
        return copied

    def to_json(self) -> str:
        """Return the plot as Vega-Lite in JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the plot to a file that ends in .json, .html, .svg or .png."""
        kind = Path(path).suffix.lower().lstrip(".")
        if kind not in ("json", "html", "svg", "png"):
            raise InputError(f"a plot is not written as `{Path(path).name}`", hint="end in .json, .html, .svg or .png")
        plot: Any = self.to_json()
        if kind != "json":
            more: Any = {"html": {"bundle": True}, "png": {"scale": 2}}.get(kind, {})
            plot = getattr(needed("vl_convert"), f"vegalite_to_{kind}")(self.to_dict(), **more)
        with atomic_write(path, "wb" if kind == "png" else "w", force=force) as stream:
            stream.write(plot)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return what a notebook shows."""
        return {_MIME: self.to_dict(), "text/plain": f"Chart({self.title!r})"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    title
        Its heading.
    kind
        `text`, `number` (as it is), `share` (a fraction, shown in percent), `rule` (shown as code, with short names),
        `link` (a pair of text and address) or `name` (a pair of short and whole name).
    """

    title: str
    kind: str = "text"


def columns(kind: str, *titles: str) -> tuple[Column, ...]:
    """Return columns of one kind."""
    return tuple(Column(title, kind) for title in titles)


@dataclass(frozen=True, slots=True)
class Grid:
    """A table that can be read without any script; the script makes it sortable and searchable.

    Parameters
    ----------
    columns, rows
        Headings, and one value for each in every row; None is shown as an empty cell.
    caption
        What it shows.
    search
        Whether to offer a field that filters the rows.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    caption: str = ""
    search: bool = False

    @property
    def filled(self) -> Grid:
        """The table without columns that are empty in every row."""
        kept = [i for i in range(len(self.columns)) if any(row[i] not in (None, "") for row in self.rows)]
        if not kept:
            return self
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return Grid(tuple(self.columns[i] for i in kept), rows, self.caption, self.search)


@dataclass(frozen=True, slots=True)
class Picker:
    """A menu of a page that loads a file of data into its plots and texts.

    Parameters
    ----------
    title
        What stands beside the menu.
    options
        (shown text, path of a `DataFile`); the first is loaded at the beginning.
    """

    title: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DataFile:
    """Data that a page loads when it is asked for; a script, since a page from a file may not fetch.

    Parameters
    ----------
    path
        Where it is in the site: `data/….js`.
    value
        For a picker: `{"charts": {name: rows.as_dict()}, "texts": {name: text}}`; for the explorer what
        its own script reads.
    """

    path: str
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site.

    Parameters
    ----------
    path
        Where it is in the site, such as `systems/transe.html`.
    title
        Its title.
    template
        The file in `templates/` that shows it.
    content
        What the template shows.
    section
        Which entry of the menu it belongs to.
    scripts
        Scripts of `assets/` that it needs beside the common ones.
    """

    path: str
    title: str
    template: str
    content: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    scripts: tuple[str, ...] = ()
