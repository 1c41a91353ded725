"""What the commands share: options, printing and progress, graphs and engines, rules and their names."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from loginfer.cli.commands import LOG, visible, visible_name
from loginfer.engine.registry import ENGINES, Flag, imported
from loginfer.errors import InputError, UnknownNameError, caused_by_interruption
from loginfer.files import writing
from loginfer.kg.formats.base import ReadOptions
from loginfer.settings import Setting, kinds, settings_of

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
        metavar="KG", help="A graph: a name from `loginfer kg list`, or a file, folder or archive of triples."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, for programs.")]
# Commands only declare the option: `ShownNames`, `shown`, `rule_texts` and `sentences` do as it says.
_NAMES = {"full": False}
_FULL_NAMES = typer.Option("--full-names", help="Names in full.", callback=lambda full: _NAMES.update(full=full))
FullNamesOption = Annotated[bool, _FULL_NAMES]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what exists already.")]
MaxShortcutOption = Annotated[
    float | None,
    typer.Option(
        "--max-shortcut",
        help="Warn of shortcuts with a larger balanced accuracy on test: a share such as 0.6, above 0.5.",
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


def option_of(declared: Setting) -> Any:
    """Return the type and option by which the command line asks for a setting."""
    metavar = declared.metavar or ("NAME" if isinstance(declared.default, tuple) else None)
    about: dict[str, Any] = {"help": declared.meaning, "metavar": metavar, "show_default": False}
    if declared.name == "kg":
        return Annotated[str | None, typer.Argument(**about)]
    types = kinds(declared.type)
    number = next((kind for kind in (bool, int, float) if kind in types), None)
    kind: Any = list[str] if isinstance(declared.default, tuple) else number or str
    if declared.read is not None:
        kind = str
    return Annotated[kind | None, typer.Option(*flags_of(declared), rich_help_panel=declared.panel, **about)]


def flags_of(declared: Setting) -> tuple[str, ...]:
    """Return the option of a setting, and its other names."""
    return declared.flags or (f"--{declared.name.replace('_', '-')}",)


def option_values(declared: Mapping[str, Setting], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the command line gives."""
    given = {name: value for name, value in values.items() if value not in (None, [])}
    return {name: read(value) if (read := declared[name].read) else value for name, value in given.items()}


def _gather_reading(**defaults: Any) -> Callable[..., Any]:
    def options(**values: Any) -> ReadOptions:
        given = option_values(_READING, values)
        for name, value in given.items():  # errors speak in options
            replace(_READING[name], name=flags_of(_READING[name])[0]).check(value)
        return ReadOptions(**{**defaults, **given})

    return gather("reading", {name: (option_of(declared), None) for name, declared in _READING.items()}, options)


# Gives a command the options for reading a graph in place of its parameter `reading`.
_READING = {n: replace(d, panel="Reading the graph") for n, d in settings_of(ReadOptions).items()}
UNPACKING_OPTIONS = {"max_unpacked": (option_of(_READING["max_unpacked"]), None)}
gather_reading = _gather_reading()
gather_reading_without_literals = _gather_reading(literals="drop")


def check_gate(limit: float | None, strict: bool) -> None:
    """Complain before the work about a limit that makes no sense, or about --strict without a limit."""
    from loginfer.benchmark.shortcut_gate import check_limit

    if limit is not None:
        check_limit(limit, where="--max-shortcut")
    elif strict:
        raise InputError("--strict is about shortcuts", hint="add --max-shortcut, such as 0.6")


@contextlib.contextmanager
def say_resumable(where: str | None) -> Iterator[None]:
    """Say after Ctrl-C that nothing is lost, and where it is kept; None if nothing is kept."""
    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        if where is not None and caused_by_interruption(error):
            note(f"what is done so far is kept{where}: the same command goes on from there")
        raise


def words_of(text: str) -> list[str]:
    """Return the words of a list with commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def option_words(context: typer.Context, without: Sequence[str]) -> list[str]:
    """Return the options that a command was given, as words; those named are left out."""
    words: list[str] = []
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if option.param_type_name == "option" and option.name not in without and value not in (None, option.default):
            is_flag = getattr(option, "is_flag", False)
            if is_flag:
                words.append((option.opts if value else option.secondary_opts)[0])
                continue
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [option.opts[0], str(one)]
    return words


# -- printing and progress --------------------------------------------------------------------------


@functools.cache
def _visible_console() -> type[Console]:
    """Return the class of consoles that show control characters as escapes, but use their own."""
    from rich.console import Console

    class VisibleConsole(Console):
        def render_str(self, text: str, **options: Any) -> Any:  # before cells are measured
            return super().render_str(visible(text), **options)

        def render(self, *args: Any, **options: Any) -> Any:
            for segment in super().render(*args, **options):
                yield segment if segment.control else segment._replace(text=visible(segment.text))

        def on_broken_pipe(self) -> None:  # Rich would end the program with an error
            raise BrokenPipeError

    return VisibleConsole


def console(stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, with 100 columns where there is none, or as wide as COLUMNS says.

    Names are printed as they are: `[b]` and `:smile:` in them are no markup.
    """
    columns = os.environ.get("COLUMNS", "")
    default = None if on_terminal(sys.stderr if stderr else sys.stdout) else 100
    width = int(columns) if columns.isdecimal() and int(columns) >= 20 else default
    return _visible_console()(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def say(text: str, *, stderr: bool = False, indent: int = 2) -> None:
    """Print lines for people; one that is too wide goes on below, indented by so much more than it began."""
    from rich.cells import cell_len
    from rich.text import Text

    plain = console(stderr)
    for line in visible(text).split("\n"):
        if cell_len(line) > plain.width:
            margin = min(len(line) - len(line.lstrip(" ")) + indent, plain.width // 2)
            begin = line[:margin] if line[:margin].isascii() else line[: margin - indent]
            pieces = Text(line[len(begin) :]).wrap(plain, plain.width - margin, tab_size=1)
            line = begin + f"\n{' ' * margin}".join(piece.plain.rstrip() for piece in pieces)
        print(line, file=sys.stderr if stderr else sys.stdout)


def on_terminal(stream: TextIO | None) -> bool:
    """Say whether a stream is a terminal; a closed one is None."""
    return stream is not None and stream.isatty()


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Say how many: `1 rule`, `1,000 rules`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


# By how a message begins: what is said in spite of --quiet.
_LEVELS = {"error": logging.ERROR, "failed": logging.ERROR, "warning": logging.WARNING}


def note(message: str) -> None:
    """Say something to a person, beside the answer."""
    LOG.log(_LEVELS.get(message.partition(":")[0], logging.INFO), "%s", message)


def quiet() -> bool:
    """Say whether neither notes nor progress are to be shown, by --quiet."""
    return not LOG.isEnabledFor(logging.INFO)


def verbose() -> bool:
    """Say whether more is to be said, by --verbose."""
    return LOG.isEnabledFor(logging.DEBUG)


def print_json(value: Any) -> None:
    """Print an answer for a program."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").replace("-", "").casefold()
    print(visible(json.dumps(value, ensure_ascii=encoding != "utf8", indent=2), narrow="\\u{:04x}"))


def table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """Return an empty table; columns named in `numbers` are aligned to the right, many columns stand close together."""
    from rich import box
    from rich.table import Table

    close = len(columns) > 6
    listing = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0) if close else (0, 1), show_edge=not close)
    for column in columns:
        listing.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return listing


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = (), *, fold: bool = True
) -> None:
    """Print a table; what is for programs, or takes long to lay out, is only aligned, each row on a line."""
    if not fold:
        lines = [[visible_name(cell) for cell in row] for row in (columns, *rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns) - 1)]
        for *cells, last in lines:
            print("  ".join([*(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)), last]))
        return
    listing = table(*columns, numbers=numbers)
    for row in rows:
        listing.add_row(*row)
    console().print(listing)


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Give a callback that shows progress: a bar on a terminal, elsewhere a line now and then; None with --quiet."""
    if quiet():
        yield None
        return
    if not on_terminal(sys.stderr):
        yield _progress_lines()
        return
    from loginfer.progress import shown

    with shown(True, console(stderr=True)) as report:
        yield report


# Seconds before the first line of progress, and between two.
FIRST_LINE, NEXT_LINE = 5.0, 15.0


def _progress_lines() -> Progress:
    """Return a callback that notes now and then how far the work is, with --verbose also what begins."""
    due, latest = time.monotonic() + FIRST_LINE, ""

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal due, latest
        begins, latest = what != latest, what
        if time.monotonic() >= due or (begins and verbose()):
            due = time.monotonic() + NEXT_LINE
            note(f"{what}: {done:,}{'' if total is None else f' of {total:,}'}" if done or total else f"{what} …")

    return report


# -- graphs and their names -------------------------------------------------------------------------


class ShownNames(dict[str, str]):
    """How names are shown: short, but unlike all others of a graph; with --full-names as they are."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph

    def __missing__(self, name: str) -> str:
        from loginfer.kg.vocabulary import short_names

        among = (self._graph.entities, self._graph.relations)
        forms = {name: name} if _NAMES["full"] else short_names([name], labels=self._graph.labels, among=among)
        return self.setdefault(name, visible_name(forms[name]))


def shown(thing: object, names: Mapping[str, str]) -> str:
    """Return a triple, a rule or a part of one as people read it; with --full-names rules are as in rule files."""
    from loginfer.kg.vocabulary import triple_text
    from loginfer.logic.rule import short_text

    if isinstance(thing, tuple):
        return triple_text(thing, names=names)
    return str(thing) if _NAMES["full"] else short_text(thing, names)


def rule_texts(rules: Iterable[object], names: Mapping[str, str] | None = None) -> list[str]:
    """Return rules as people read them; without a graph's names they are unlike all others of these rules."""
    from loginfer.kg.vocabulary import short_names
    from loginfer.logic.rule import names_in

    texts = [str(rule) for rule in rules]
    if names is None:
        names = {name: visible_name(form) for name, form in short_names(names_in(*texts)).items()}
    return [shown(text, names) for text in texts]


def sentences(texts: Iterable[str], labels: Mapping[str, str] | None = None) -> list[str]:
    """Return sentences with names as they are shown."""
    from loginfer.logic.rule import short_sentences

    return list(texts) if _NAMES["full"] else short_sentences(texts, labels)


def open_kg(name: str, reading: ReadOptions | None = None) -> Loaded:
    """Load a graph named on the command line; what was skipped or left out is said beside the answer."""
    from loginfer.kg.catalogue import open_graph

    confirm = None
    if on_terminal(sys.stdin) and on_terminal(sys.stderr):

        def confirm(question: str) -> bool:
            return typer.confirm(question, default=False, err=True)

    with progress_bar() as progress:
        loaded = open_graph(name, reading, progress=progress, confirm=confirm)
    for remark in loaded.report.notes:
        note(remark)
    if loaded.report.skipped:
        note(f"skipped {counted(loaded.report.skipped, 'bad line')}, e.g.")
        for example in loaded.report.examples:
            note(f"  {example}")
    return loaded


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
        text = f"With --engine {' or '.join(self.engines)}: {self.flag.help}"
        option = typer.Option(self.flag.name, metavar=self.flag.metavar, help=text)
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
            hint = "add it, or leave the option out"
            raise InputError(f"{flag.name} is for --engine {' or '.join(owners)}", hint=hint)
        if value is not None:
            options[option] = _spark_settings(value) if option == "settings" else value
    return EngineChoice(engine.value, options)


def _spark_settings(texts: Sequence[str]) -> dict[str, str]:
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            hint = "give KEY=VALUE, such as spark.executor.memory=8g"
            raise InputError(f"`{text}` is no setting of Spark", hint=hint)
        settings[key] = value
    return settings


@contextlib.contextmanager
def open_rule_engine(
    kg: str, engine: EngineChoice, reading: ReadOptions, rules: Sequence[Rule] = ()
) -> Iterator[Engine]:
    """Give an engine over a graph named on the command line, with ids for the heads of the rules.

    DuckDB and Spark read a large file of triples straight into files of their own, beside the system's
    other temporary files or where told; everything else is loaded into memory first.
    """
    from loginfer.engine import open_engine_in
    from loginfer.engine.binding import extend

    with contextlib.ExitStack() as stack:
        stack.enter_context(engine.running())
        opened = _open_stored(stack, kg, engine, reading, rules)
        if opened is None:
            graph = extend(open_kg(kg, reading).graph, rules)
            opened = open_engine_in(stack, graph, engine.name, **engine.options)
        yield opened


@contextlib.contextmanager
def graph_to_build_from(
    kg: str, engine: EngineChoice, reading: ReadOptions, rules: Sequence[Rule] = ()
) -> Iterator[KnowledgeGraph]:
    """Give a graph named on the command line; DuckDB and Spark leave a large file of triples outside memory.

    Parameters
    ----------
    kg
        The graph's name or place.
    engine
        The engine that will work on it.
    reading
        How to read it, and which of its triples to keep.
    rules
        The rules that are given, whose heads may use names the graph does not have.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(engine.running())
        stored = _open_stored(stack, kg, engine, reading, rules)
        yield stored.graph if stored else open_kg(kg, reading).graph


def _open_stored(
    stack: contextlib.ExitStack, kg: str, engine: EngineChoice, reading: ReadOptions, rules: Sequence[Rule]
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
    from loginfer.kg.formats.tsv import has_header

    if reading != ReadOptions(type_predicate=reading.type_predicate) or has_header(path):
        note("the whole graph comes into memory, for a header or options of reading")
        return None

    scratch, master = engine.options.get("directory"), engine.options.get("master") or "local"
    if "://" in str(scratch) and not master.startswith("local"):
        message = f"`{path}` is to be read into a folder for temporary files, and --scratch is `{scratch}`"
        raise InputError(message, hint="give it as a path that all workers see, and this machine too")
    entities, relations = head_names(rules)
    folder = stack.enter_context(_temporary_folder(scratch))
    stored: Engine = stack.enter_context(
        kind.from_files(
            [path],
            folder / "graph",
            type_predicate=reading.type_predicate,
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
    # The graph was opened with the names in the rules, too. The search for near names among millions of constants
    # would take longer than the work itself.
    known_relations = (known for known in graph.relations if known not in relations)
    candidates: Iterable[str] = known_relations if kind == "relation" else islice(graph.entities, 200_000)
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
