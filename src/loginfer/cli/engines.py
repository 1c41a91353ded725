"""Which engine the commands use: its options, and engines over graphs named on the command line."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import open_kg
from loginfer.errors import InputError
from loginfer.files import writing

if TYPE_CHECKING:
    from loginfer.engine import Engine
    from loginfer.kg import KnowledgeGraph
    from loginfer.logic import Rule

__all__ = [
    "EngineName",
    "EngineOption",
    "MasterOption",
    "MemoryOption",
    "ScratchOption",
    "SparkConfOption",
    "engine_options",
    "engine_running",
    "graph_to_build_from",
    "open_rule_engine",
]


class EngineName(StrEnum):
    """The engines that the command line offers."""

    native = "native"
    duckdb = "duckdb"
    spark = "spark"


# From this size on a file is not loaded into memory for an engine that can do without.
OUT_OF_CORE_BYTES = 256 * 2**20

EngineOption = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        help="native: in memory, compiled. duckdb: from disk, for graphs beyond memory. "
        "spark: on many machines.",
    ),
]
MemoryOption = Annotated[
    str | None, typer.Option("--memory-limit", help="With --engine duckdb: memory it may use, e.g. 4GB.")
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="With --engine spark: where it runs, e.g. spark://host:7077, or sc://host:15002 for Spark "
        "Connect; by default on all cores of this machine.",
        show_default=False,
    ),
]
SparkConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--spark-conf",
        metavar="KEY=VALUE",
        help="With --engine spark: a setting of Spark, e.g. spark.executor.memory=8g; repeatable.",
    ),
]
ScratchOption = Annotated[
    str | None,
    typer.Option(
        "--scratch",
        metavar="DIR",
        help="With --engine duckdb or spark: folder for temporary files; for a cluster one that all its "
        "workers see.",
        show_default=False,
    ),
]


def engine_options(
    engine: EngineName,
    memory_limit: str | None = None,
    master: str | None = None,
    spark_conf: Sequence[str] | None = None,
    scratch: str | None = None,
) -> dict[str, Any]:
    """Return the options for an engine that the command line gives."""
    for option, value, owners in (
        ("--memory-limit", memory_limit, [EngineName.duckdb]),
        ("--master", master, [EngineName.spark]),
        ("--spark-conf", spark_conf, [EngineName.spark]),
        ("--scratch", scratch, [EngineName.duckdb, EngineName.spark]),
    ):
        if value and engine not in owners:
            raise InputError(
                f"{option} is for --engine {' or '.join(owners)}", hint="add it, or leave the option out"
            )
    if engine is EngineName.spark:
        return {"master": master, "settings": _settings(spark_conf or ()), "directory": scratch}
    options = {"memory_limit": memory_limit, "directory": None if scratch is None else Path(scratch)}
    return {name: value for name, value in options.items() if value is not None}


@contextlib.contextmanager
def engine_running(engine: EngineName, options: Mapping[str, Any]) -> Iterator[None]:
    """Let Spark, if that is the engine, run for all engines that a command opens, one after the other."""
    if engine is not EngineName.spark:
        yield
        return
    from loginfer.engine.spark import spark_application

    with spark_application(**options):
        yield


def _settings(given: Sequence[str]) -> dict[str, str]:
    settings = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            raise InputError(
                f"`{text}` is no setting of Spark", hint="give KEY=VALUE, such as spark.executor.memory=8g"
            )
        settings[key] = value
    return settings


@contextlib.contextmanager
def open_rule_engine(
    kg: str,
    engine: EngineName,
    rules: Sequence[Rule] = (),
    *,
    type_predicate: str | None = None,
    memory_limit: str | None = None,
    master: str | None = None,
    spark_conf: Sequence[str] | None = None,
    scratch: str | None = None,
) -> Iterator[Engine]:
    """Give an engine over a graph named on the command line, with ids for the heads of the rules.

    DuckDB and Spark read a large file of triples straight into files of their own, beside the system's
    other temporary files or where told; everything else is loaded into memory first.
    """
    from loginfer.engine import open_engine_in
    from loginfer.engine.binding import extend

    options = engine_options(engine, memory_limit, master, spark_conf, scratch)
    with contextlib.ExitStack() as stack:
        stack.enter_context(engine_running(engine, options))
        opened = _open_stored(stack, kg, engine, rules, type_predicate, options)
        if opened is None:
            graph = extend(open_kg(kg, type_predicate=type_predicate).graph, rules)
            opened = open_engine_in(stack, graph, engine.value, **options)
        yield opened


@contextlib.contextmanager
def graph_to_build_from(
    kg: str, engine: EngineName, rules: Sequence[Rule], type_predicate: str | None, options: Mapping[str, Any]
) -> Iterator[KnowledgeGraph]:
    """Give a graph named on the command line; DuckDB and Spark leave a large file of triples outside memory.

    Parameters
    ----------
    kg
        The graph's name or place.
    engine
        The engine that will work on it.
    rules
        The rules that are given, whose heads may use names the graph does not have.
    type_predicate
        As for `KnowledgeGraph`.
    options
        The engine's options, as `engine_options` returns them.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(engine_running(engine, options))
        stored = _open_stored(stack, kg, engine, rules, type_predicate, options)
        yield stored.graph if stored else open_kg(kg, type_predicate=type_predicate).graph


def _open_stored(
    stack: contextlib.ExitStack,
    kg: str,
    engine: EngineName,
    rules: Sequence[Rule],
    type_predicate: str | None,
    options: Mapping[str, Any],
) -> Engine | None:
    """Return an engine over a large file, or None for a graph that is to be loaded into memory."""
    from loginfer.engine.binding import head_names

    path = _large_file(kg)
    if engine is EngineName.native or path is None:
        return None
    _refuse_url(path, options)
    entities, relations = head_names(rules)
    stored: Engine = stack.enter_context(
        _opener(engine)(
            [path],
            stack.enter_context(_temporary_folder(options.get("directory"))) / "graph",
            type_predicate=type_predicate,
            entities=entities,
            relations=relations,
            **options,
        )
    )
    return stored


def _refuse_url(path: Path, options: Mapping[str, Any]) -> None:
    """Raise `InputError` for a cluster that could not see where a large file would be put."""
    scratch = str(options.get("directory") or "")
    if "://" in scratch and not (options.get("master") or "local").startswith("local"):
        raise InputError(
            f"`{path}` is to be read into a folder for temporary files, and --scratch is `{scratch}`",
            hint="give it as a path that all workers see, and this machine too",
        )


def _large_file(kg: str) -> Path | None:
    """Return the file that is meant, if it is one that should not be loaded into memory."""
    path = Path(kg)
    known = path.suffix.casefold() in {".tsv", ".txt", ".parquet"}
    return path if known and path.is_file() and path.stat().st_size >= OUT_OF_CORE_BYTES else None


@contextlib.contextmanager
def _temporary_folder(scratch: str | Path | None) -> Iterator[Path]:
    place = None if scratch is None or "://" in str(scratch) else Path(scratch)
    if place is not None:
        with writing(place):
            place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="loginfer-", dir=place) as folder:
        yield Path(folder)


def _opener(engine: EngineName) -> Any:
    """Return what makes an engine of files."""
    if engine is EngineName.spark:
        from loginfer.engine.spark import SparkEngine

        return SparkEngine.from_files
    from loginfer.engine.duckdb import DuckDBEngine

    return DuckDBEngine.from_files
