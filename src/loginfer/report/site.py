"""The report as a folder of pages: no server, no network, nothing that a page loads from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path

from loginfer._version import __version__
from loginfer.benchmark.manifest import as_json
from loginfer.errors import OutputError
from loginfer.files import atomic_folder, check_folder
from loginfer.report.material import Material
from loginfer.report.rendering import Renderer, vega_script
from loginfer.report.values import DataFile, Page

__all__ = ["FORMAT", "check_site", "write_site"]

FORMAT = "loginfer-report"
MARK = "report.json"

Part = Page | DataFile
Maker = Callable[[Material], Iterable[Part]]

_ASSETS = ("report.css", "report.js", "explorer.js")


def all_makers() -> tuple[Maker, ...]:
    """Return all that make pages of a report, in the order of the menu."""
    from loginfer.report.pages.benchmarks import pages as benchmarks
    from loginfer.report.pages.explorer import pages as explorer
    from loginfer.report.pages.learned import pages as learned
    from loginfer.report.pages.negatives import pages as negatives
    from loginfer.report.pages.overview import pages as overview
    from loginfer.report.pages.ranking import pages as ranking
    from loginfer.report.pages.rules import pages as rules
    from loginfer.report.pages.systems import pages as systems

    return (overview, benchmarks, systems, negatives, learned, rules, ranking, explorer)


def check_site(path: str | Path, *, force: bool = False) -> None:
    """Complain now, before the work, if a report could not be written to this folder."""
    check_folder(path, force=force, may_replace=_may_replace)


def write_site(
    material: Material, path: str | Path, *, force: bool = False, makers: Iterable[Maker] | None = None
) -> list[str]:
    """Write a report.

    Parameters
    ----------
    material
        What it is about.
    path
        The folder; it is complete or not there at all.
    force
        Replace an existing report.
    makers
        Who makes the pages; by default all.

    Returns
    -------
    list of str
        The paths of its pages.
    """
    chosen = all_makers() if makers is None else tuple(makers)
    # The menu needs to know all sections, so that pages are written after the last was made.
    kept: list[Page] = []
    plain = Renderer(material.options.title, frozenset())
    with atomic_folder(path, force=force, may_replace=_may_replace) as folder:
        for part in _parts(chosen, material):
            if isinstance(part, DataFile):
                _write(folder / part.path, plain.data(part))
            else:
                kept.append(part)
        renderer = Renderer(material.options.title, frozenset(page.section for page in kept))
        for page in kept:
            _write(folder / page.path, renderer.page(page))
        _write(folder / "assets" / "vega.js", vega_script())
        for name in _ASSETS:
            text = (resources.files("loginfer.report") / "assets" / name).read_text(encoding="utf-8")
            _write(folder / "assets" / name, text)
        paths = [page.path for page in kept]
        _write(folder / MARK, as_json({"format": FORMAT, "version": __version__, "pages": sorted(paths)}))
    return paths


def _parts(chosen: Iterable[Maker], material: Material) -> Iterator[Part]:
    for maker in chosen:
        yield from maker(material)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _may_replace(folder: Path) -> None:
    """Refuse to replace a folder that is no report."""
    try:
        known = json.loads((folder / MARK).read_bytes())
    except (OSError, ValueError):
        known = None
    if not isinstance(known, dict) or known.get("format") != FORMAT:
        raise OutputError(
            f"`{folder}` is not replaced: it is no report",
            hint="choose another folder, or remove it yourself",
        )
