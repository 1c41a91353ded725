"""Rule files: read in any dialect, written in any dialect, and those that come with the package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Literal

from loginfer.errors import InputError, ParseError, UnknownNameError
from loginfer.files import atomic_write, decoded, reading
from loginfer.logic.dialects import Dialect, detect, dialect_named
from loginfer.logic.dialects.base import no_directive
from loginfer.logic.rule import Rule, ScoredRule, ZeroRule

# The rule sets in `loginfer/logic/data`, by name.
SHIPPED: tuple[str, ...] = ("lubm-107", "lubm-19")

OnError = Literal["fail", "skip"]

# Bytes of a file that are looked at for its dialect.
_BEGINNING = 2**16


@dataclass(frozen=True, slots=True)
class RuleFile:
    """What a rule file holds.

    Parameters
    ----------
    rules
        The rules, in the order of the file.
    zero
        AnyBURL's zero rules, which are no Datalog rules.
    skipped
        What could not be read: file, line and reason.
    dialect
        Name of the dialect.
    path
        Where it was read from, or the name of a shipped rule set.
    """

    rules: tuple[ScoredRule, ...]
    zero: tuple[ZeroRule, ...]
    skipped: tuple[str, ...]
    dialect: str
    path: str

    @property
    def program(self) -> tuple[Rule, ...]:
        """The rules alone."""
        return tuple(scored.rule for scored in self.rules)

    def __len__(self) -> int:
        return len(self.rules)


def read_rules(source: str | Path, dialect: str | None = None, on_error: OnError = "fail") -> RuleFile:
    """Read a rule file, or a rule set that comes with the package.

    Parameters
    ----------
    source
        Path of a file, or `lubm-107` or `lubm-19`.
    dialect
        Name of the dialect; detected by default.
    on_error
        What to do with a statement that is no rule: "fail" at once, or "skip" it and say so in `skipped`.

    Raises
    ------
    UnknownNameError
        If there is no such file or rule set, with the nearest names.
    InputError
        If the file cannot be read; with file and line, and the column for a `ParseError`.
    """
    path = Path(source)
    with reading(path):
        exists, is_folder = path.exists(), path.is_dir()
    if is_folder:
        raise InputError(f"`{path}` is a folder, not a rule file", hint="give the path of a file with rules")
    if dialect:
        dialect_named(dialect)  # complain about an unknown one also for a shipped rule set
    if not exists and str(source) in SHIPPED:
        shipped = resources.files("loginfer.logic") / "data" / f"{source}.rules"
        return parse_rules(shipped.read_text(encoding="utf-8"), "arrow", on_error, path=str(source))
    if not exists:
        raise UnknownNameError("rule file or rule set", str(source), _possible_names(path))
    return parse_rules(rule_text(path), dialect, on_error, path=str(source))


def rule_text(path: Path) -> str:
    """Return the text of a rule file.

    Raises
    ------
    InputError
        If it cannot be read, or is no text in UTF-8; with the line.
    """
    with reading(path):
        data = path.read_bytes()
    return decoded(data, path, "rule files are plain text; see `loginfer rules convert --help` for the dialects")


def dialect_of(path: Path) -> str:
    """Return the name of a rule file's dialect, which shows in its first rules."""
    with reading(path), path.open("rb") as stream:
        beginning = stream.read(_BEGINNING)
    return detect(beginning.decode("utf-8-sig", "replace"), str(path)).name


def parse_rules(text: str, dialect: str | None = None, on_error: OnError = "fail", *, path: str = "rules") -> RuleFile:
    """Read the text of a rule file.

    Parameters
    ----------
    text
        What the file holds.
    dialect
        Name of the dialect; detected by default.
    on_error
        As for `read_rules`.
    path
        What error messages call the file.
    """
    dialect_ = dialect_named(dialect) if dialect else detect(text, path)
    if dialect_.read_statement is None:
        raise InputError(f"rules can be written as {dialect_.name}, but not read")
    prefixes: dict[str, str] = {}
    rules: list[ScoredRule] = []
    zero: list[ZeroRule] = []
    skipped: list[str] = []
    line, counted = 1, 0
    for start, statement in dialect_.statements(text):
        # Leading blank lines belong to no statement.
        begin = start + len(statement) - len(statement.lstrip())
        line += text.count("\n", counted, begin)
        counted = begin
        statement = statement[begin - start :]
        if not statement.strip() or (dialect_.comments and statement.startswith(dialect_.comments)):
            continue
        directive = dialect_.read_directive(statement)
        if directive is not None:
            prefixes.update(directive)
            continue
        try:
            rule = _read(dialect_, statement, prefixes, path, line)
        except InputError as error:
            if on_error == "fail":
                raise
            skipped.append(str(error).partition("\n")[0])
            continue
        if isinstance(rule, ZeroRule):
            zero.append(replace(rule, line=line))
        else:
            rules.append(replace(rule, line=line))
    return RuleFile(tuple(rules), tuple(zero), tuple(skipped), dialect_.name, path)


def _read(dialect: Dialect, statement: str, prefixes: dict[str, str], path: str, line: int) -> ScoredRule | ZeroRule:
    where = f"{path}:{line}"
    if dialect.read_directive is not no_directive and statement.startswith("@prefix"):
        raise ParseError(statement, 1, "`@prefix p: <iri> .`", where=where)
    try:
        return dialect.read_any(statement, where, prefixes)
    except ParseError as error:
        before = statement[: error.column - 1]
        if "\n" not in before:
            raise
        # In a rule of several lines, point at the one with the error.
        number = before.count("\n")
        column = len(before) - before.rindex("\n")
        text = statement.split("\n")[number]
        raise ParseError(text, column, error.expected, where=f"{path}:{line + number}", hint=error.hint) from None


def _possible_names(path: Path) -> list[str]:
    names = list(SHIPPED)
    try:
        for file in sorted(path.parent.iterdir()):
            if file.is_file() and not file.name.startswith("."):
                names.append(str(file) if path.parent != Path() else file.name)
            if len(names) > 2000:
                break
    except OSError:
        return names
    return names


def format_rules(rules: Iterable[ScoredRule | Rule], dialect: str = "arrow") -> str:
    """Write rules as text, one after the other, each with an end of line.

    Raises
    ------
    InputError
        If the dialect cannot express one of them.
    """
    dialect_ = dialect_named(dialect)
    return "".join(f"{dialect_.write(rule)}\n" for rule in rules)


def write_rules(
    rules: Sequence[ScoredRule | Rule], path: str | Path, dialect: str = "arrow", force: bool = False
) -> None:
    """Write rules into a file, which is complete or not there at all.

    Parameters
    ----------
    rules
        The rules.
    path
        Where to write.
    dialect
        Name of the dialect.
    force
        Replace an existing file.

    Raises
    ------
    InputError
        If the dialect cannot express one of the rules; nothing is written then.
    OutputError
        If the file exists already, or cannot be written.
    """
    text = format_rules(rules, dialect)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"`{text[error.start]!a}` is half a character and cannot be written") from error
    with atomic_write(path, "wb", force=force) as stream:
        stream.write(data)
