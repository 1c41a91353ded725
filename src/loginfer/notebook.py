"""HTML for notebooks: small pieces that escape whatever they are given, and one style for all of them.

Colours are mixed with the colour of the text around, so that they fit a light page and a dark one.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

# Everything is below one class: the page's own tables and lists stay as they are.
STYLE = """
.loginfer{font:14px/1.5 system-ui,sans-serif;color:inherit;max-width:100%;overflow-x:auto}
.loginfer .li-title{font-weight:600;font-size:15px}
.loginfer .li-quiet,.loginfer summary{opacity:.72}
.loginfer .li-scroll{scrollbar-width:thin;scrollbar-color:rgba(127,127,127,.5) transparent;
overflow:auto;max-height:26em;margin:.3em 0 .7em}
.loginfer table.li-table{border-collapse:collapse;border:0;margin:0;font-size:13px;width:auto;color:inherit}
.loginfer table.li-table tr,.loginfer table.li-table tbody tr:nth-child(n){background:none}
.loginfer table.li-table th,.loginfer table.li-table td{text-align:left;vertical-align:top;border:0;
max-width:none;white-space:normal;padding:.2em 1.2em .2em 0;border-bottom:1px solid rgba(127,127,127,.3)}
.loginfer table.li-table th{font-weight:600;white-space:nowrap;opacity:.72}
.loginfer table.li-table .li-number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.loginfer ul.li-list{margin:.2em 0 .5em 1.3em;padding:0}
.loginfer summary{cursor:pointer}
.loginfer .li-rule{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px}
.loginfer .li-atom{white-space:nowrap}
.loginfer .li-variable{font-style:italic;opacity:.85}
.loginfer .li-relation{font-weight:600;color:color-mix(in srgb,currentColor 40%,#0a78e0)}
.loginfer .li-constant{color:color-mix(in srgb,currentColor 45%,#0f9a60)}
.loginfer .li-good,.loginfer .li-middling,.loginfer .li-bad{white-space:nowrap}
.loginfer code{background:none;color:inherit;padding:0;font-size:12.5px}
.loginfer .li-good{font-weight:600;color:color-mix(in srgb,currentColor 35%,#14a044)}
.loginfer .li-middling{font-weight:600;color:color-mix(in srgb,currentColor 35%,#d08a00)}
.loginfer .li-bad{font-weight:600;color:color-mix(in srgb,currentColor 30%,#e0303a)}
""".strip()


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
    return f'<div class="{CLASSES}"><style>{STYLE}</style>{joined(*content)}</div>'
