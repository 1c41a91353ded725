"""Writing an export: complete, or not there at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from loginfer._version import __version__
from loginfer.benchmark.exporting.interface import EXPORT, ExportFormat, Job, Written
from loginfer.benchmark.exporting.registry import format_named
from loginfer.benchmark.folder import check_graph
from loginfer.benchmark.layout import MANIFEST
from loginfer.benchmark.manifest import as_json, file_sum, folder_sums
from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, OutputError, UnknownNameError
from loginfer.files import atomic_folder, check_folder

__all__ = ["FORMAT", "FORMAT_VERSION", "check_export", "export_benchmark"]

FORMAT = "loginfer-export"
FORMAT_VERSION = 1


def check_export(to: str, out: str | Path, *, force: bool = False) -> None:
    """Complain now, before the work, if an export could not be written to this folder.

    Parameters
    ----------
    to, out, force
        As for `export_benchmark`.
    """
    format_named(to)
    _check_place(out, force=force)


def export_benchmark(
    benchmark: Benchmark | str | Path,
    to: str,
    out: str | Path,
    *,
    methods: Sequence[str] | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write a benchmark in the format of another program.

    The same benchmark always gives the same bytes. `read_export` reads the folder again, without loss.

    Parameters
    ----------
    benchmark
        A benchmark, or its folder.
    to
        One of `FORMATS`.
    out
        The new folder. Missing folders above it are created.
    methods
        Whose negatives to write; those of all methods by default.
    force
        Replace an existing export or an empty folder; nothing else is ever replaced.

    Returns
    -------
    The content of `export.json`.

    Raises
    ------
    UnknownNameError
        If there is no such format or method.
    OutputError
        If the folder exists, lies in the benchmark's or cannot be written, or the format cannot hold a name.
    """
    known = format_named(to)
    _check_place(out, force=force)
    _refuse_inside(out, benchmark.path if isinstance(benchmark, Benchmark) else Path(benchmark))
    if not isinstance(benchmark, Benchmark):
        benchmark = Benchmark.load(benchmark)
    chosen = _chosen(benchmark, methods)
    if not known.any_name:
        check_graph(chosen.graph)
    with atomic_folder(out, force=force, may_replace=_may_replace) as folder:
        job = Job(chosen, folder, Path(out).resolve().name, _notes(chosen))
        written = known.write(job)
        about = _about(job, known, written)
        (folder / EXPORT).write_text(as_json(about), encoding="utf-8", newline="\n")
    return about


def _check_place(out: str | Path, *, force: bool) -> None:
    """Complain if a folder could not be written here, or its name could not be told in a file."""
    check_folder(out, force=force, may_replace=_may_replace)
    try:
        str(Path(out).resolve()).encode()
    except UnicodeEncodeError:
        shown = str(out).encode(errors="backslashreplace").decode()
        raise OutputError(f"the path `{shown}` is no UTF-8", hint="choose another place") from None


def _refuse_inside(out: str | Path, source: Path | None) -> None:
    """Refuse a place in the benchmark's own folder, which is then no longer what its manifest says."""
    if source is not None and source.is_dir() and source.resolve() in Path(out).resolve().parents:
        raise OutputError(
            f"`{out}` lies in the benchmark's folder `{source}`", hint="choose a folder outside of it"
        )


def _chosen(benchmark: Benchmark, methods: Sequence[str] | None) -> Benchmark:
    """Return the benchmark with the negatives of some methods only."""
    if methods is None:
        return benchmark
    methods = (methods,) if isinstance(methods, str) else methods
    for method in methods:
        if method not in benchmark.negatives:
            if not benchmark.negatives:
                raise InputError("the benchmark has no negatives", hint="leave --method out")
            raise UnknownNameError("method", method, benchmark.negatives)
    kept = {method: made for method, made in benchmark.negatives.items() if method in methods}
    return replace(benchmark, negatives=kept)


def _about(job: Job, known: ExportFormat, written: Written) -> dict[str, Any]:
    benchmark = job.benchmark
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "to": known.name,
        "benchmark": benchmark.name,
        "source": {"manifest_sha256": _manifest_sum(benchmark)},
        "versions": {"loginfer": __version__},
        "type_predicate": benchmark.graph.type_predicate or "",
        **written.about,
        "entities": len(benchmark.graph.entities),
        "relations": len(benchmark.graph.relations),
        "positives": dict(benchmark.positives.sizes),
        "negatives": {method: dict(made.splits.sizes) for method, made in benchmark.negatives.items()},
        **({} if benchmark.context is None else {"context": len(benchmark.context)}),
        **({} if benchmark.noise is None else {"noise": benchmark.noise.as_dict()}),
        "notes": [*job.notes, *written.notes],
        "sets": _sets(job, known),
        "files": {name: asdict(known) for name, known in folder_sums(job.folder).items()},
    }


def _manifest_sum(benchmark: Benchmark) -> str | None:
    """Return the sha256 of the manifest of the benchmark's folder; None if there is none."""
    if benchmark.path is None or not (benchmark.path / MANIFEST).is_file():
        return None
    return file_sum(benchmark.path / MANIFEST)


def _notes(benchmark: Benchmark) -> list[str]:
    notes = []
    if benchmark.context is not None:
        notes.append(
            "inductive: no constant of test is in train, what is known of them is the context graph; a "
            "system that learns a vector for each constant has none for these"
        )
    if benchmark.noise is not None:
        notes.append("positives and negatives of train are written with their noise")
    return notes


def _sets(job: Job, known: ExportFormat) -> list[Mapping[str, Any]]:
    """Return what each file of triples holds; a set without a file is empty."""
    return [
        {
            "split": role.split,
            "method": role.method,
            **({"context": True} if role.context else {}),
            "file": known.file_of(role) if known.empty_sets or len(triples) else None,
            "triples": len(triples),
        }
        for role, triples in job.sets()
    ]


def _may_replace(folder: Path) -> None:
    """Refuse to replace a folder that is no export, or holds more than one."""
    from loginfer.benchmark.exporting.reading import read_about

    try:
        about = read_about(folder)
    except InputError as error:
        raise OutputError(
            f"`{folder}` is not replaced: it is no export",
            hint="choose another folder, or remove it yourself",
        ) from error
    ours = {*about["files"], EXPORT}
    found = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir())
    foreign = [name for name in found if name not in ours]
    if foreign:
        shown = ", ".join(f"`{name}`" for name in foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise OutputError(
            f"`{folder}` is not replaced: it also holds {shown}",
            hint="choose another folder, or move your files out of it",
        )
