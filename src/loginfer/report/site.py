"""The report as a folder of pages: no server, no network, nothing that a page loads from elsewhere.

Templates escape everything; data comes as scripts, since a page from a file may not fetch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from loginfer._version import __version__
from loginfer.benchmark.folder.manifest import as_json
from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_folder, check_folder
from loginfer.report.facts import ReportContext
from loginfer.report.values import Chart, Column, DataFile, Page

_MISSING = "`pip install 'loginfer[report]'` brings what reports need"

# The menu: section, title, page.
MENU = (
    ("overview", "Overview", "index.html"),
    ("benchmarks", "Benchmarks", "benchmarks.html"),
    ("systems", "Systems", "systems.html"),
    ("negatives", "Negatives", "negatives.html"),
    ("learned", "What is learned", "learned.html"),
    ("rules", "Rules", "rules.html"),
    ("ranking", "Ranking", "ranking.html"),
    ("explorer", "Explorer", "explorer.html"),
)


def _needed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"reports need `{name}`, which is not installed", hint=_MISSING) from error


@lru_cache(maxsize=1)
def vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script; nothing is loaded from elsewhere."""
    bundle: str = _needed("vl_convert").javascript_bundle("window.vegaEmbed = vegaEmbed;")
    licence = "Vega, Vega-Lite and Vega-Embed, copyright University of Washington Interactive Data Lab and others"
    # In a function of its own, so that none of its short names gets in the way of the page's.
    return f"/* {licence}; BSD 3-Clause */\n(() => {{ {bundle} }})();\n"


def as_script_json(value: Any) -> str:
    """Return JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


class Renderer:
    """Writes pages.

    Parameters
    ----------
    title
        The report's title.
    sections
        The sections that have a page, for the menu.
    """

    def __init__(self, title: str, sections: frozenset[str]) -> None:
        jinja2 = _needed("jinja2")
        self._environment = jinja2.Environment(
            loader=jinja2.FunctionLoader(_template),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "script_json": lambda value: jinja2.utils.markupsafe.Markup(as_script_json(value)),
            "share": _share,
            "number": _number,
        }
        self._environment.tests |= {"chart": lambda value: isinstance(value, Chart)}
        self._environment.globals |= {"cell": _cell, "version": __version__}
        self._title = title
        self._menu = [entry for entry in MENU if entry[0] in sections]

    def page(self, page: Page) -> str:
        """Return a page as HTML."""
        root = "../" * page.path.count("/")
        html: str = self._environment.get_template(page.template).render(
            page=page, root=root, menu=self._menu, report=self._title, **page.content
        )
        return html

    def data(self, file: DataFile) -> str:
        """Return a file of data as a script that hands its value to the page."""
        return f"LogInfer.receive({as_script_json(file.path)},{as_script_json(dict(file.value))});\n"


def _template(name: str) -> str:
    return (resources.files("loginfer.report") / "templates" / name).read_text(encoding="utf-8")


def _share(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{100 * value:.{digits}f}"


def _number(value: float | int | None) -> str:
    if value is None:
        return ""
    return f"{value:,.3g}" if isinstance(value, float) and abs(value) < 100 else f"{value:,.0f}"


def _cell(column: Column, value: Any) -> Mapping[str, Any]:
    """Return how a table shows a value: its text, what it is sorted by, and an address if it is a link."""
    if value is None:
        return {"text": "", "sort": "", "href": None}
    if column.kind == "link":
        return {"text": value[0], "sort": value[0], "href": value[1]}
    text = {"share": _share, "number": _number}.get(column.kind, str)(value)
    return {"text": text, "sort": value if column.kind in ("share", "number") else text, "href": None}


FORMAT = "loginfer-report"
MARK = "report.json"

Part = Page | DataFile
Maker = Callable[[ReportContext], Iterable[Part]]

_ASSETS = ("report.css", "report.js", "explorer.js")


def all_makers(light: bool = False) -> tuple[Maker, ...]:
    """Return the makers of all pages, in the order of the menu; for a light report those that need no scores."""
    from loginfer.report.pages.benchmarks import pages as benchmarks
    from loginfer.report.pages.explorer import pages as explorer
    from loginfer.report.pages.learned import pages as learned
    from loginfer.report.pages.negatives import pages as negatives
    from loginfer.report.pages.overview import pages as overview
    from loginfer.report.pages.ranking import pages as ranking
    from loginfer.report.pages.rules import pages as rules
    from loginfer.report.pages.systems import pages as systems

    if light:
        return overview, negatives
    return overview, benchmarks, systems, negatives, learned, rules, ranking, explorer


def check_site(path: str | Path, *, force: bool = False) -> None:
    """Raise an error before any work is done if a report could not be written to this folder."""
    check_folder(path, force=force, may_replace=_may_replace)


def write_site(
    context: ReportContext, path: str | Path, *, force: bool = False, makers: Iterable[Maker] | None = None
) -> list[str]:
    """Write a report.

    Parameters
    ----------
    context
        What it is about.
    path
        The folder; it is complete or not there at all.
    force
        Replace an existing report.
    makers
        The makers of the pages; by default all.

    Returns
    -------
    list of str
        The paths of its pages.
    """
    page_makers = all_makers(context.collection.light) if makers is None else tuple(makers)
    # The menu shows all sections, so that pages are written only after the last one was made.
    pages: list[Page] = []
    data_renderer = Renderer(context.options.title, frozenset())
    with atomic_folder(path, force=force, may_replace=_may_replace) as folder:
        for part in _parts(page_makers, context):
            if isinstance(part, DataFile):
                _write(folder / part.path, data_renderer.data(part))
            else:
                pages.append(part)
        renderer = Renderer(context.options.title, frozenset(page.section for page in pages))
        for page in pages:
            _write(folder / page.path, renderer.page(page))
        _write(folder / "assets" / "vega.js", vega_script())
        for name in _ASSETS:
            text = (resources.files("loginfer.report") / "assets" / name).read_text(encoding="utf-8")
            _write(folder / "assets" / name, text)
        paths = [page.path for page in pages]
        _write(folder / MARK, as_json({"format": FORMAT, "version": __version__, "pages": sorted(paths)}))
    return paths


def _parts(makers: Iterable[Maker], context: ReportContext) -> Iterator[Part]:
    for maker in makers:
        yield from maker(context)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _may_replace(folder: Path) -> None:
    """Raise an error if a folder is not a report."""
    try:
        mark = json.loads((folder / MARK).read_bytes())
    except (OSError, ValueError):
        mark = None
    if not isinstance(mark, dict) or mark.get("format") != FORMAT:
        raise OutputError(
            f"`{folder}` is not replaced: it is no report", hint="choose another folder, or remove it yourself"
        )
