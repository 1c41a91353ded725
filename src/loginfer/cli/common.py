"""Options, engines, printing.

What the commands share: options, loading, progress, printing.

Which engine the commands use: its options, and engines over graphs named on the command line.

Rules and patterns named on the command line, and what is wrong with their names.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from loginfer.errors import InputError, UnknownNameError
from loginfer.files import writing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from loginfer.engine import Engine
    from loginfer.kg import KnowledgeGraph
    from loginfer.kg.formats.base import Loaded
    from loginfer.logic import Rule
    from loginfer.logic.rule_files import RuleFile
    from loginfer.progress import Progress


class OnError(StrEnum):
    """What to do with a line that cannot be read."""

    fail = "fail"
    skip = "skip"


GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="KG",
        help="A graph: a name from `loginfer kg list`, or a file, folder or archive of triples.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, for programs.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what exists already.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="Format of the graph; by default its ending decides.")
]
ColumnsOption = Annotated[
    str, typer.Option("--columns", help="Order of the columns of a TSV file, e.g. `sor` for subject, object, relation.")
]
OnErrorOption = Annotated[
    OnError, typer.Option("--on-error", help="Bad lines: stop at the first, or skip and count them.")
]
TypePredicateOption = Annotated[
    str | None,
    typer.Option(
        "--type-predicate", help="The relation that gives types; by default rdf:type in its usual forms. Empty: none."
    ),
]


# Wider than any row: what is piped into a file or another program is not folded.
UNLIMITED_WIDTH = 1_000_000


def console(stderr: bool = False) -> Console:
    """Return a console; piped output is not folded to a terminal's width.

    Names are printed as they are: `[b]` and `:smile:` in them are no markup.
    """
    from rich.console import Console

    width = None if on_terminal(sys.stderr if stderr else sys.stdout) else UNLIMITED_WIDTH
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def on_terminal(stream: TextIO | None) -> bool:
    """Say whether a person looks at a stream; a closed one is None."""
    return stream is not None and stream.isatty()


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Say how many: `1 rule`, `1,000 rules`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def note(message: str) -> None:
    """Say something to a person, beside the answer."""
    print(message, file=sys.stderr)


def print_json(value: Any) -> None:
    """Print an answer for a program."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").replace("-", "").casefold()
    print(json.dumps(value, ensure_ascii=encoding != "utf8", indent=2))


def table(*columns: str, numbers: tuple[str, ...] = (), title: str | None = None) -> Table:
    """Return an empty table; columns named in `numbers` are aligned to the right."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Give a callback that shows progress on a terminal, or None where nobody looks."""
    if not on_terminal(sys.stderr):
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    )
    with bar:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield report


def open_kg(
    name: str,
    *,
    format: str | None = None,
    columns: str = "sro",
    on_error: OnError = OnError.fail,
    type_predicate: str | None = None,
) -> Loaded:
    """Load a graph named on the command line; skipped lines are reported beside the answer."""
    from loginfer.kg.catalogue import open_graph
    from loginfer.kg.formats.base import ReadOptions

    options = ReadOptions(format=format, on_error=on_error.value, columns=columns, type_predicate=type_predicate)
    confirm = None
    if on_terminal(sys.stdin) and on_terminal(sys.stderr):

        def confirm(question: str) -> bool:
            return typer.confirm(question, default=False, err=True)

    with progress_bar() as progress:
        loaded = open_graph(name, options, progress=progress, confirm=confirm)
    if loaded.report.skipped:
        note(f"skipped {counted(loaded.report.skipped, 'bad line')}, e.g.")
        for example in loaded.report.examples:
            note(f"  {example}")
    return loaded


def resolve_relation(graph: KnowledgeGraph, name: str) -> int:
    """Find a relation by its name or, where that is unambiguous, by its last part."""
    found = graph.relations.get(name)
    if found is None:
        found = _by_last_part(graph.relations, name)
    return graph.relation_id(name) if found is None else found


def resolve_entity(graph: KnowledgeGraph, name: str) -> int:
    """Find a constant or type by its name or, where that is unambiguous, by its last part."""
    found = graph.entities.get(name)
    if found is None and len(graph.entities) <= 1_000_000:
        found = _by_last_part(graph.entities, name)
    return graph.entity_id(name) if found is None else found


def _by_last_part(names: Any, wanted: str) -> int | None:
    matches = [i for i, name in enumerate(names) if _last_part(name) == wanted]
    if len(matches) > 1:
        full = ", ".join(f"`{names[i]}`" for i in matches[:3])
        more = f" and {len(matches) - 3} more" if len(matches) > 3 else ""
        raise InputError(f"`{wanted}` may be any of {full}{more}", hint="give the whole name")
    return matches[0] if matches else None


def _last_part(name: str) -> str:
    return name[max(name.rfind("/"), name.rfind("#")) + 1 :]


def folder_of(path: Path) -> str:
    """Say where a file is, the home folder abbreviated."""
    with contextlib.suppress(ValueError, RuntimeError):
        return "~/" + str(path.relative_to(Path.home()))
    return str(path)


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
        help="native: in memory, compiled. duckdb: from disk, for graphs beyond memory. spark: on many machines.",
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
        help="With --engine duckdb or spark: folder for temporary files; for a cluster one that all its workers see.",
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
            raise InputError(f"{option} is for --engine {' or '.join(owners)}", hint="add it, or leave the option out")
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
    from loginfer.engine.spark.session import spark_application

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
        from loginfer.engine.spark.engine import SparkEngine

        return SparkEngine.from_files
    from loginfer.engine.duckdb import DuckDBEngine

    return DuckDBEngine.from_files


def read_source(rules: str, dialect: str | None = None, on_error: OnError = OnError.fail) -> RuleFile:
    """Read a rule file, a shipped rule set, or one rule given as text."""
    from loginfer.logic import parse_rule
    from loginfer.logic.rule import ScoredRule
    from loginfer.logic.rule_files import RuleFile, read_rules

    if "->" in rules and not Path(rules).exists():
        return RuleFile((ScoredRule(parse_rule(rules)),), (), (), "arrow", rules)
    return read_rules(rules, dialect=dialect, on_error=on_error.value)


def read_program(rules: str, dialect: str | None) -> list[Rule]:
    """Read rules that are to be applied: at least one."""
    program = list(read_source(rules, dialect).program)
    if not program:
        raise InputError(f"`{rules}` holds no rule")
    return program


def check_names(graph: KnowledgeGraph, program: list[Rule], strict: bool = False, shipped: bool = False) -> None:
    """Complain about names in rule bodies that neither the graph nor the head of any rule has.

    One misspelt rule of many is worth a note, unless it is ours; if nothing can be derived, or in strict
    mode, it is an error.
    """
    from loginfer.engine.binding import unknown_relations

    relations = set(unknown_relations(graph, program))
    dead = [(rule, found[0]) for rule in program if (found := _unknown_names(rule, graph, relations))]
    if not dead:
        return
    rule, (kind, name) = dead[0]
    # The search for near names among millions of constants would take longer than the work itself.
    known: Iterable[str] = graph.relations if kind == "relation" else islice(graph.entities, 200_000)
    if strict or len(dead) == len(program):
        raise UnknownNameError(kind, name, known, where=f"`{rule}`")
    if shipped:
        return
    names = list(dict.fromkeys(f"{kind} `{name}`" for _, (kind, name) in dead))
    note(
        f"{len(dead)} of {len(program)} rules use names that the graph does not have and derive nothing: "
        f"{', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
    )


def _unknown_names(rule: Rule, graph: KnowledgeGraph, relations: set[str]) -> list[tuple[str, str]]:
    from loginfer.logic import Constant

    found: list[tuple[str, str]] = []
    for atom in rule.atoms:
        if str(atom.relation) in relations:
            found.append(("relation", str(atom.relation)))
        constants = [term.name for term in atom.terms if isinstance(term, Constant)]
        found += [("constant", name) for name in constants if graph.entities.get(name) is None]
    return found


def check_fixed_names(pattern: Any, graph: KnowledgeGraph) -> None:
    """Complain about a relation or constant in a pattern that the graph does not have."""
    from loginfer.kg import RDF_TYPE
    from loginfer.logic import Constant, Template

    for atom in (*pattern.atoms, *(negation.atom for negation in pattern.negations)):
        if not isinstance(atom.relation, Template) and atom.relation != RDF_TYPE:
            graph.relation_id(atom.relation)
        for term in atom.terms:
            if isinstance(term, Constant):
                graph.entity_id(term.name)
