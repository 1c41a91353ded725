"""What the commands share: options, printing and progress, graphs and engines, rules and their names."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from loginfer.engine.registry import ENGINES, Flag, imported
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


# The exit code after Ctrl-C.
INTERRUPTED = 130

# -- options ----------------------------------------------------------------------------------------


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

MaxShortcutOption = Annotated[
    float | None,
    typer.Option(
        "--max-shortcut",
        help="Warn of shortcuts with a larger balanced accuracy on test: a share such as 0.6, above 0.5.",
        show_default=False,
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="With --max-shortcut: fail instead (exit code 1).")]


def gather(name: str, options: Mapping[str, tuple[Any, Any]], make: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command several options in place of one parameter, which gets what `make` returns for their values.

    Parameters
    ----------
    name
        The command's parameter.
    options
        By the name of each value: the annotation with its option, and the default.
    make
        Takes the values by name, and returns what the parameter gets.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            unchanged = {parameter.name: (parameter.annotation, parameter.default)}
            parameters += [
                inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
                for key, (annotation, default) in (options if parameter.name == name else unchanged).items()
            ]

        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            values = {key: arguments.pop(key) for key in options}
            command(**arguments, **{name: make(**values)})

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def check_gate(limit: float | None, strict: bool) -> None:
    """Complain before the work about a limit that makes no sense, or about --strict without a limit."""
    from loginfer.benchmark.shortcut_gate import check_limit

    if limit is not None:
        check_limit(limit, where="--max-shortcut")
    elif strict:
        raise InputError("--strict is about shortcuts", hint="add --max-shortcut, such as 0.6")


def caused_by_interruption(error: BaseException | None) -> bool:
    """Say whether Ctrl-C caused an error: while a compiled kernel runs, it comes as the cause of a SystemError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


@contextlib.contextmanager
def say_resumable(where: str | None) -> Iterator[None]:
    """Say after Ctrl-C that nothing is lost, and where it is kept; None if nothing is kept."""
    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        if where is not None and caused_by_interruption(error):
            note(f"what is done so far is kept{where}: the same command goes on from there")
        raise


# -- printing and progress --------------------------------------------------------------------------

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
    """Say whether a stream is a terminal; a closed one is None."""
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

    listing = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        listing.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return listing


def triple_text(triple: Sequence[str]) -> str:
    """Return a triple of names as text."""
    return short(f"({', '.join(triple)})")


def short(text: str) -> str:
    """Leave out the namespace of IRIs that end in #name; the last part is enough to find them again."""
    from loginfer.kg.vocabulary import shortened

    return shortened(text, "#")


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Give a callback that shows progress on a terminal; None elsewhere."""
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


# -- graphs and their names -------------------------------------------------------------------------


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
    relation = graph.relations.get(name)
    if relation is None:
        relation = _by_last_part(graph.relations, name)
    return graph.relation_id(name) if relation is None else relation


def resolve_entity(graph: KnowledgeGraph, name: str) -> int:
    """Find a constant or type by its name or, where that is unambiguous, by its last part."""
    entity = graph.entities.get(name)
    if entity is None and len(graph.entities) <= 1_000_000:
        entity = _by_last_part(graph.entities, name)
    return graph.entity_id(name) if entity is None else entity


def _by_last_part(names: Any, part: str) -> int | None:
    from loginfer.kg.vocabulary import last_part

    matches = [i for i, name in enumerate(names) if last_part(name) == part]
    if len(matches) > 1:
        full = ", ".join(f"`{names[i]}`" for i in matches[:3])
        more = f" and {len(matches) - 3} more" if len(matches) > 3 else ""
        raise InputError(f"`{part}` may be any of {full}{more}", hint="give the whole name")
    return matches[0] if matches else None


def folder_of(path: Path) -> str:
    """Say where a file is, the home folder abbreviated."""
    with contextlib.suppress(ValueError, RuntimeError):
        return "~/" + str(path.relative_to(Path.home()))
    return str(path)


# -- engines ----------------------------------------------------------------------------------------


# The engines that the command line offers.
EngineName = StrEnum("EngineName", list(ENGINES))  # type: ignore[misc]

# From this size on a file is not loaded into memory for an engine that can do without.
OUT_OF_CORE_BYTES = 256 * 2**20

EngineOption = Annotated[
    EngineName, typer.Option("--engine", help=" ".join(f"{name}: {entry.help}." for name, entry in ENGINES.items()))
]


NATIVE = EngineName("native")


class EngineFlag(NamedTuple):
    """An option that engines have on the command line: its name in Python, and the engines that have it."""

    option: str
    flag: Flag
    engines: list[str]

    @property
    def annotation(self) -> Any:
        """Its type and option for Typer."""
        option = typer.Option(
            self.flag.name,
            metavar=self.flag.metavar,
            help=f"With --engine {' or '.join(self.engines)}: {self.flag.help}",
            show_default=False,
        )
        return Annotated[list[str] | None, option] if self.flag.repeatable else Annotated[str | None, option]


def _engine_flags() -> dict[str, EngineFlag]:
    flags: dict[str, EngineFlag] = {}
    for engine, entry in ENGINES.items():
        for option, flag in entry.flags.items():
            parameter = flag.name.removeprefix("--").replace("-", "_")
            flags.setdefault(parameter, EngineFlag(option, flag, [])).engines.append(engine)
    # What several engines have comes last.
    return dict(sorted(flags.items(), key=lambda item: len(item[1].engines)))


ENGINE_FLAGS = _engine_flags()

# The options of an engine, for `gather`; commands that never use DuckDB's memory leave out `memory_limit`.
ENGINE_OPTIONS: dict[str, tuple[Any, Any]] = {
    "engine": (EngineOption, NATIVE),
    **{name: (flag.annotation, None) for name, flag in ENGINE_FLAGS.items()},
}
ENGINE_OPTIONS_WITHOUT_MEMORY = {name: option for name, option in ENGINE_OPTIONS.items() if name != "memory_limit"}


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine that a command uses, with the options it is opened with."""

    name: str
    options: Mapping[str, Any]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Keep what engines share, such as Spark, running for all engines that a command opens one after the other."""
        shared = ENGINES[self.name].running
        with imported(shared)(**self.options) if shared else contextlib.nullcontext():
            yield


def engine_choice(engine: Any, **values: Any) -> EngineChoice:
    """Return the engine that the command line asks for."""
    options = {}
    for name, value in values.items():
        option, flag, owners = ENGINE_FLAGS[name]
        if value and engine not in owners:
            raise InputError(
                f"{flag.name} is for --engine {' or '.join(owners)}", hint="add it, or leave the option out"
            )
        if value is not None:
            options[option] = _spark_settings(value) if option == "settings" else value
    return EngineChoice(engine.value, options)


def _spark_settings(texts: Sequence[str]) -> dict[str, str]:
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            raise InputError(
                f"`{text}` is no setting of Spark", hint="give KEY=VALUE, such as spark.executor.memory=8g"
            )
        settings[key] = value
    return settings


@contextlib.contextmanager
def open_rule_engine(
    kg: str, engine: EngineChoice, rules: Sequence[Rule] = (), type_predicate: str | None = None
) -> Iterator[Engine]:
    """Give an engine over a graph named on the command line, with ids for the heads of the rules.

    DuckDB and Spark read a large file of triples straight into files of their own, beside the system's
    other temporary files or where told; everything else is loaded into memory first.
    """
    from loginfer.engine import open_engine_in
    from loginfer.engine.binding import extend

    with contextlib.ExitStack() as stack:
        stack.enter_context(engine.running())
        opened = _open_stored(stack, kg, engine, rules, type_predicate)
        if opened is None:
            graph = extend(open_kg(kg, type_predicate=type_predicate).graph, rules)
            opened = open_engine_in(stack, graph, engine.name, **engine.options)
        yield opened


@contextlib.contextmanager
def graph_to_build_from(
    kg: str, engine: EngineChoice, rules: Sequence[Rule], type_predicate: str | None
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
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(engine.running())
        stored = _open_stored(stack, kg, engine, rules, type_predicate)
        yield stored.graph if stored else open_kg(kg, type_predicate=type_predicate).graph


def _open_stored(
    stack: contextlib.ExitStack, kg: str, engine: EngineChoice, rules: Sequence[Rule], type_predicate: str | None
) -> Engine | None:
    """Return an engine over a large file, or None for a graph that is to be loaded into memory."""
    path = Path(kg)
    readable = path.suffix.casefold() in {".tsv", ".txt", ".parquet"}
    if not (readable and path.is_file()) or path.stat().st_size < OUT_OF_CORE_BYTES:
        return None
    kind = ENGINES[engine.name].load()
    if not hasattr(kind, "from_files"):
        return None
    from loginfer.engine.binding import head_names

    scratch, master = engine.options.get("directory"), engine.options.get("master") or "local"
    if "://" in str(scratch) and not master.startswith("local"):
        raise InputError(
            f"`{path}` is to be read into a folder for temporary files, and --scratch is `{scratch}`",
            hint="give it as a path that all workers see, and this machine too",
        )
    entities, relations = head_names(rules)
    folder = stack.enter_context(_temporary_folder(scratch))
    stored: Engine = stack.enter_context(
        kind.from_files(
            [path],
            folder / "graph",
            type_predicate=type_predicate,
            entities=entities,
            relations=relations,
            **engine.options,
        )
    )
    return stored


@contextlib.contextmanager
def _temporary_folder(scratch: str | Path | None) -> Iterator[Path]:
    parent = None if scratch is None or "://" in str(scratch) else Path(scratch)
    if parent is not None:
        with writing(parent):
            parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="loginfer-", dir=parent) as folder:
        yield Path(folder)


# -- rules and their names --------------------------------------------------------------------------


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
    dead = [(rule, unknown[0]) for rule in program if (unknown := _unknown_names(rule, graph, relations))]
    if not dead:
        return
    rule, (kind, name) = dead[0]
    # The search for near names among millions of constants would take longer than the work itself.
    candidates: Iterable[str] = graph.relations if kind == "relation" else islice(graph.entities, 200_000)
    if strict or len(dead) == len(program):
        raise UnknownNameError(kind, name, candidates, where=f"`{rule}`")
    if shipped:
        return
    names = list(dict.fromkeys(f"{kind} `{name}`" for _, (kind, name) in dead))
    note(
        f"{len(dead)} of {len(program)} rules use names that the graph does not have and derive nothing: "
        f"{', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
    )


def _unknown_names(rule: Rule, graph: KnowledgeGraph, relations: set[str]) -> list[tuple[str, str]]:
    from loginfer.logic import Constant

    unknown: list[tuple[str, str]] = []
    for atom in rule.atoms:
        if str(atom.relation) in relations:
            unknown.append(("relation", str(atom.relation)))
        constants = [term.name for term in atom.terms if isinstance(term, Constant)]
        unknown += [("constant", name) for name in constants if graph.entities.get(name) is None]
    return unknown


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
