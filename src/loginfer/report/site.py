"""The report as a folder of pages: no server, no network, nothing that a page loads from elsewhere.

Templates escape everything; data comes as scripts, since a page from a file may not fetch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module, resources
from itertools import chain
from pathlib import Path
from typing import Any

from loginfer._version import __version__
from loginfer.benchmark import Benchmark
from loginfer.benchmark.folder.manifest import as_json
from loginfer.benchmark.negatives.methods import method_phrases
from loginfer.errors import InputError, OutputError
from loginfer.evaluation.evaluating import final_figures
from loginfer.evaluation.runs import Run
from loginfer.files import atomic_folder, check_folder, shipped
from loginfer.frames import WrittenFolder
from loginfer.kg.vocabulary import shortened
from loginfer.logic.rule import prose
from loginfer.progress import ProgressChoice, shown
from loginfer.report.collection import Cell, Collection, collect
from loginfer.report.facts import ReportContext, ReportOptions
from loginfer.report.values import Chart, Column, DataFile, Page, needed

# The menu: section, which is the module that makes its pages, title, page.
MENU = (
    ("overview", "Overview", "index.html"),
    ("benchmarks", "Benchmarks", "benchmarks.html"),
    ("systems", "Systems", "systems.html"),
    ("learned", "What is learned", "learned.html"),
    ("rules", "Rules", "rules.html"),
    ("ranking", "Ranking", "ranking.html"),
    ("explorer", "Explorer", "explorer.html"),
)
# Sections that need no scores.
_LIGHT = ("overview", "learned")


@lru_cache(maxsize=1)
def vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script; nothing is loaded from elsewhere."""
    bundle: str = needed("vl_convert").javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # In a function of its own, so that none of its short names gets in the way of the page's.
    return f"/*! Vega, Vega-Lite, Vega-Embed and what they use: see LICENSES.txt */\n(() => {{ {bundle} }})();\n"


@lru_cache(maxsize=1)
def glossary() -> dict[str, str]:
    """Return what short terms of the pages mean; a term shows it when one points at it."""
    return method_phrases() | shipped("report/data/glossary.toml")


def glossed(text: Any) -> Any:
    """Return a text as HTML in which terms of the glossary explain themselves."""
    markup = needed("markupsafe")
    terms = "|".join(map(re.escape, sorted(glossary(), key=len, reverse=True)))

    def explained(match: re.Match[str]) -> str:
        return f'<abbr tabindex="0" title="{markup.escape(glossary()[match[0]])}">{match[0]}</abbr>'

    return markup.Markup(re.sub(rf"(?<![\w<-])(?:{terms})(?![\w-])", explained, str(markup.escape(text))))


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
        jinja2 = needed("jinja2")
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
            "glossed": glossed,
            "prose": lambda text: jinja2.utils.markupsafe.Markup(prose(text)),
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
    """Return how a table shows a value: its text, what it is sorted by, and an address or the whole text."""
    shown = {"text": "", "sort": "", "href": None, "whole": None}
    if value is None:
        return shown
    if column.kind in ("link", "name"):
        text, more = value
        return shown | {"text": text, "sort": text, "href" if column.kind == "link" else "whole": more}
    if column.kind == "rule":
        text = shortened(value)
        return shown | {"text": text, "sort": text, "whole": value if text != value else None}
    text = {"share": _share, "number": _number}.get(column.kind, str)(value)
    return shown | {"text": text, "sort": value if column.kind in ("share", "number") else text}


FORMAT = "loginfer-report"
MARK = "report.json"

Part = Page | DataFile
Maker = Callable[[ReportContext], Iterable[Part]]

_ASSETS = ("report.css", "report.js", "explorer.js", "LICENSES.txt")


def all_makers(light: bool = False) -> tuple[Maker, ...]:
    """Return the makers of all pages, in the order of the menu; for a light report those that need no scores."""
    sections = [section for section, *_ in MENU if not light or section in _LIGHT]
    return tuple(import_module(f"loginfer.report.pages.{section}").pages for section in sections)


def report(
    *paths: Run | Benchmark | str | Path | Sequence[Run | Benchmark | str | Path],
    out: str | Path,
    compare: bool = False,
    title: str = "LogInfer report",
    audits: bool = True,
    explorer: int = 20_000,
    recovery: bool = True,
    force: bool = False,
    progress: ProgressChoice = None,
) -> WrittenFolder:
    """Write a report on runs: a static site that needs no server and no network.

    Parameters
    ----------
    *paths
        Folders with runs and their benchmarks, however deep; or runs and benchmarks that were loaded from one; or
        lists of these.
    out
        The site's folder.
    compare
        Compare two runs, which are all there are.
    title, audits, explorer, recovery
        As for `ReportOptions`.
    force
        Replace an existing report.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.

    Returns
    -------
    A row for each figure of each run; `details` has the pages, the number of runs, and notes.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.report("runs", "bench", out="site").path / "index.html"  # doctest: +SKIP
    """
    check_folder(out, force=force, may_replace=_may_replace)
    each = chain.from_iterable(given if isinstance(given, list | tuple) else (given,) for given in paths)
    folders = [path if isinstance(path, str | Path) else _folder_of(path) for path in each]
    with shown(progress) as show:
        tell = show or (lambda what, done, total: None)
        collection = collect(folders, tell=lambda runs: tell("runs", runs, None))
        options = ReportOptions(title=title, audits=audits, explorer=explorer, recovery=recovery)
        context = ReportContext(collection, options, tell=lambda what: tell(what, 1, 1))
        makers = None
        if compare:
            from loginfer.report.pages.compare import compare_pages

            first, second = _two_cells(collection)
            makers = [lambda context: compare_pages(context, first, second)]
        pages = write_site(context, out, force=force, makers=makers)
    values = [
        (cell.system, cell.benchmark, cell.method, run.seed, *figure)
        for cell in collection.cells
        for run, metrics in zip(cell.runs, cell.metrics, strict=True)
        for figure in final_figures(metrics).items()
    ]
    columns = ("system", "benchmark", "negatives", "seed", "metric", "value")
    runs = sum(len(cell.runs) for cell in collection.cells)
    details = {"pages": pages, "runs": runs, "notes": list(collection.notes)}
    return WrittenFolder(Path(out), columns, values, details)


def _folder_of(value: Any) -> Path:
    if isinstance(value, Run | Benchmark) and value.path is not None:
        return value.path
    hint = "give its folder: evaluate(…, out=…) writes one"
    raise InputError(f"this {type(value).__name__} lies in no folder", hint=hint)


def _two_cells(collection: Collection) -> tuple[Cell, Cell]:
    if len(collection.cells) != 2:
        named = [f"{cell.system} on {cell.benchmark}" for cell in collection.cells[:4]]
        named += ["…"] if len(collection.cells) > 4 else []
        hint = "give two folders of runs, and if you like the folder of their benchmark"
        raise InputError(f"two runs can be compared, not {len(collection.cells)}: {', '.join(named)}", hint=hint)
    return collection.cells[0], collection.cells[1]


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
        hint = "choose another folder, or remove it yourself"
        raise OutputError(f"`{folder}` is not replaced: it is no report", hint=hint)
