"""HTML for notebooks: small pieces that escape whatever they are given, and one style for all of them.

Colours are mixed with the colour of the text around, so that they fit a light page and a dark one.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources

# The others keep notebooks from taking what stands between two dollar signs for a formula.
CLASSES = "loginfer tex2jax_ignore mathjax_ignore"


class Markup(str):
    """HTML that is ready to be shown; any other text is escaped where it is put in."""

    __slots__ = ()


def joined(*parts: str) -> Markup:
    """Put pieces beside one another."""
    return Markup("".join(part if isinstance(part, Markup) else html.escape(part) for part in parts))


def element(tag: str, *content: str, kind: str | None = None, title: str | None = None) -> Markup:
    """Return an element.

    Parameters
    ----------
    tag
        Its name.
    content
        What is in it.
    kind
        Its classes, without the prefix `li-`.
    title
        What is shown when the pointer is on it.
    """
    classes = "" if kind is None else " ".join(f"li-{word}" for word in kind.split())
    attributes = {"class": classes, "title": title or ""}
    attribute_texts = "".join(f' {name}="{html.escape(value)}"' for name, value in attributes.items() if value)
    return Markup(f"<{tag}{attribute_texts}>{joined(*content)}</{tag}>")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> Markup:
    """Return a table that scrolls where it is too large.

    Parameters
    ----------
    columns
        The titles of the columns.
    rows
        Their cells.
    numbers
        Titles of the columns that are aligned to the right.
    """
    kinds = ["number" if column in numbers else None for column in columns]

    def row(tag: str, cells: Sequence[str]) -> Markup:
        row_cells = [element(tag, cell, kind=kind) for cell, kind in zip(cells, kinds, strict=True)]
        return element("tr", *row_cells)

    head = element("thead", row("th", columns))
    body = element("tbody", *(row("td", cells) for cells in rows))
    return element("div", element("table", head, body, kind="table"), kind="scroll")


def facts(texts: Iterable[str]) -> Markup:
    """Return a quiet line of facts."""
    return element("div", " · ".join(texts), kind="quiet")


def listing(items: Iterable[str]) -> Markup:
    """Return a list; nothing where it is empty."""
    entries = [element("li", item) for item in items]
    return element("ul", *entries, kind="list") if entries else Markup("")


def folded(title: str, *content: str) -> Markup:
    """Return something that is shown when its title is clicked."""
    return element("details", element("summary", title), *content)


def percent(share: float | None) -> str:
    """Return a share in percent, with one digit; `-` for none."""
    return "-" if share is None else f"{100 * share:.1f}"


def fragment(*content: str) -> str:
    """Return what a notebook shows: the pieces with their style."""
    return f'<div class="{CLASSES}"><style>{_style()}</style>{joined(*content)}</div>'


@cache
def _style() -> str:
    # Everything is below one class: the page's own tables and lists stay as they are.
    return resources.files("loginfer").joinpath("notebook.css").read_text(encoding="utf-8").strip()
