"""What a dialect is, and what dialects share.

A dialect is a way to cut a file into statements, to read a statement and to write one. Shared are: cutting at line
ends or at full stops; a `Scanner` over a text that says where and why it cannot go on; AnyBURL's three columns
before a rule (predictions, correct predictions, confidence); and names as RDF languages write them (IRIs in angle
brackets, prefixed names, literals, numbers).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from loginfer.errors import InputError, ParseError
from loginfer.logic.rule import WORD, Inequality, Rule, ScoredRule, Variable, ZeroRule, is_literal

# From a text to its statements, each with the position where it starts.
Statements: TypeAlias = Callable[[str], Iterator[tuple[int, str]]]

# SPARQL's PREFIX has no full stop: it ends with its line.
_DECLARATION = re.compile(r"\s*(?:prefix|base)\s[^\n]*", re.IGNORECASE)


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Cut a text into lines."""
    start = 0
    for line in text.split("\n"):
        yield start, line.removesuffix("\r")
        start += len(line) + 1


def full_stops(comment: str, quotes: str) -> Statements:
    """Return a function that cuts a text at full stops that a space or the end follows.

    Parameters
    ----------
    comment
        The character that starts a comment, up to the end of the line.
    quotes
        The characters that enclose quoted text.
    """
    quiet = "|".join([r"<[^<>\s]*>", *(rf"{q}(?:[^{q}\\\n]|\\.)*{q}" for q in quotes)])
    # A comment starts where a word could: names may hold its character.
    comments = re.compile(rf"{quiet}|(?:(?<=[\s.,;\])])|\A)(?P<comment>{comment}[^\n]*)")
    stops = re.compile(rf"{quiet}|(?P<stop>\.(?=\s|\Z))")

    def blank(match: re.Match[str]) -> str:
        # As long as the comment, so that columns stay right.
        return " " * len(match.group()) if match.group("comment") else match.group()

    def end_of_statement(text: str, start: int) -> int:
        declaration = _DECLARATION.match(text, start)
        if declaration:
            return declaration.end()
        return next((m.end() for m in stops.finditer(text, start) if m.group("stop")), len(text))

    def cut(text: str) -> Iterator[tuple[int, str]]:
        text = comments.sub(blank, text)
        start = 0
        while start < len(text):
            end = end_of_statement(text, start)
            if text[start:end].strip():
                yield start, text[start:end]
            start = end

    return cut


# The prefixes that a statement declares, empty for one to ignore; None for one that should be a rule.
Directive: TypeAlias = Mapping[str, str] | None


def no_directive(text: str) -> Directive:
    """Say that a dialect has no prefixes."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One way to write rules.

    Parameters
    ----------
    name
        What the command line calls it.
    about
        What it is, in a few words.
    example
        A rule in it.
    endings
        Endings of files in it, which decide where the text alone does not.
    comments
        What starts a comment; None if nothing does.
    statements
        Cuts a file into statements.
    read_directive
        Recognises declarations of prefixes, and statements that are no rules and shall be ignored.
    read_statement
        Takes a statement, prefixes, and file and line; returns a rule. None for a dialect that is only written.
    write_statement
        Takes a rule and returns its text, without an end of line.
    looks_like
        Says whether a statement looks like this dialect.
    keeps_scores
        Whether predictions, correct predictions and confidence are written, too.
    rank
        Its order in lists, and the order in which dialects are tried on a statement.
    """

    name: str
    about: str
    example: str
    endings: tuple[str, ...] = ()
    comments: str | None = "#"
    statements: Statements = lines
    read_directive: Callable[[str], Directive] = no_directive
    read_statement: Callable[[str, Mapping[str, str], str | None], ScoredRule | ZeroRule] | None = None
    write_statement: Callable[[ScoredRule], str]
    looks_like: Callable[[str], bool] = lambda text: False
    keeps_scores: bool = False
    rank: int = 100

    def read(self, text: str, where: str | None = None, *, prefixes: Mapping[str, str] | None = None) -> ScoredRule:
        """Read one rule.

        Raises
        ------
        InputError
            For a text that is no rule; a `ParseError` says the column.
        """
        rule = self.read_any(text, where, prefixes or {})
        if isinstance(rule, ZeroRule):
            raise InputError(f"`{text.strip()}` has no body to bind its variable: it is no Datalog rule", where=where)
        return rule

    def read_any(self, text: str, where: str | None, prefixes: Mapping[str, str]) -> ScoredRule | ZeroRule:
        """Read one rule, or one of AnyBURL's zero rules."""
        if self.read_statement is None:
            raise InputError(f"rules can be written as {self.name}, but not read", where=where)
        return self.read_statement(text, prefixes, where)

    def write(self, rule: Rule | ScoredRule) -> str:
        """Write one rule.

        Raises
        ------
        InputError
            If the dialect cannot express it.
        """
        return self.write_statement(ScoredRule(rule) if isinstance(rule, Rule) else rule)


_DIALECTS: list[Dialect] = []


def register_dialect(new: Dialect) -> Dialect:
    """Add a dialect in which rules can be read and written; users may add their own."""
    _DIALECTS.append(new)
    return new


def dialects() -> tuple[Dialect, ...]:
    """Return all dialects, each with an example, in the order in which they are tried on a statement."""
    return tuple(sorted(_DIALECTS, key=lambda dialect: dialect.rank))


_PREFIX = re.compile(r"\s*@?prefix\s+([^\s:<>]*)\s*:\s*<([^<>\s]*)>\s*\.?\s*(?:#.*)?\Z", re.IGNORECASE)


def read_prefix(text: str) -> Directive:
    """Read `@prefix p: <iri> .` or `PREFIX p: <iri>`."""
    match = _PREFIX.match(text)
    return {match.group(1): match.group(2)} if match else None


def spell_variables(rule: Rule, spell: Callable[[str], str], allowed: re.Pattern[str]) -> dict[Variable, str]:
    """Give each variable a name of its own that a dialect can write.

    Parameters
    ----------
    rule
        The rule.
    spell
        What a variable should be called.
    allowed
        What a variable may be called. Others, and names taken already, become `V1`, `V2`, …
    """
    names: dict[Variable, str] = {}
    variables = list(dict.fromkeys([*rule.variables, *(v for n in rule.negations for v in n.variables)]))
    spelled = {v: spell(v.name) for v in variables}
    for variable, name in spelled.items():
        if allowed.fullmatch(name) and name not in names.values():
            names[variable] = name
    used = set(names.values())
    number = 0
    for variable in variables:
        while variable not in names:
            number += 1
            if (name := f"V{number}") not in used:
                names[variable] = name
    return {v: names[v] for v in variables}


def cannot_express(dialect: str, what: str, rule: Rule | Inequality) -> InputError:
    """Return the error for something that a dialect cannot write."""
    return InputError(f"{dialect} cannot express {what}: `{rule}`")


def refuse_all_but_atoms(dialect: str, rule: Rule) -> None:
    """Complain about the inequalities and negations of a rule, for a dialect that has none."""
    for what, parts in (("inequality", rule.inequalities), ("negation", rule.negations)):
        for part in parts:
            raise cannot_express(dialect, f"the {what} `{part}`", rule)


_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class Scanner:
    """Reads a text from left to right and says where and why it cannot go on.

    Parameters
    ----------
    text
        What is read.
    where
        File and line it came from, for error messages.
    comment
        The character that starts a comment, at the start or after a space, to the end of the line.
    """

    def __init__(self, text: str, where: str | None = None, *, comment: str | None = "#") -> None:
        self.text = text
        self.where = where
        self.comment = comment
        self.position = 0

    def skip(self) -> None:
        """Step over spaces and comments."""
        text = self.text
        while self.position < len(text):
            character = text[self.position]
            if character.isspace():
                self.position += 1
            elif character == self.comment and (self.position == 0 or text[self.position - 1].isspace()):
                stop = text.find("\n", self.position)
                self.position = len(text) if stop < 0 else stop
            else:
                return

    def at_end(self) -> bool:
        """Say whether only spaces and comments are left."""
        self.skip()
        return self.position == len(self.text)

    def at(self, *tokens: str) -> bool:
        """Say whether one of these comes next."""
        self.skip()
        return self.text.startswith(tokens, self.position)

    def take(self, *tokens: str) -> str | None:
        """Step over the first of these that comes next and return it, or None."""
        self.skip()
        for token in tokens:
            if self.text.startswith(token, self.position):
                self.position += len(token)
                return token
        return None

    def expect(self, token: str, expected: str | None = None) -> None:
        """Step over a token that must come next."""
        if self.take(token) is None:
            self.fail(expected or f"`{token}`")

    def match(self, regex: re.Pattern[str]) -> re.Match[str] | None:
        """Step over what a regular expression matches here, and return the match, or None."""
        self.skip()
        match = regex.match(self.text, self.position)
        if match:
            self.position = match.end()
        return match

    def fail(self, expected: str, *, at: int | None = None, hint: str | None = None) -> NoReturn:
        """Raise a `ParseError` at the cursor, or at another position."""
        position = self.position if at is None else at
        raise ParseError(self.text, position + 1, expected, where=self.where, hint=hint)


def unescape(text: str) -> str:
    r"""Undo backslash escapes: `\n`, `\t`, `\u00e9` and so on; any other `\c` stands for c.

    Raises
    ------
    InputError
        For a code point that does not exist.
    """
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        short, long, plain = match.groups()
        if plain is not None:
            return _PLAIN.get(plain, plain)
        code = int(short or long, 16)
        if code > 0x10FFFF:
            raise InputError(f"`{match.group()}` is not a character", hint="the last one is \\U0010FFFF")
        return chr(code)

    return _ESCAPE.sub(one, text)


@contextlib.contextmanager
def located(where: str | None) -> Iterator[None]:
    """Add file and line to errors of values, which do not know where they were read."""
    try:
        yield
    except InputError as error:
        error.where = error.where or where
        raise


Columns = tuple[int | None, int | None, float | None]

_COUNT = re.compile(r"\d{1,18}", re.ASCII)  # no real count has more digits
_CONFIDENCE = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?", re.ASCII)


def read_columns(text: str, where: str | None = None) -> tuple[Columns, int]:
    """Return the columns, if there are any, and where the rule starts.

    Raises
    ------
    InputError
        If tabs before the rule set something apart that is not these columns.
    """
    start = rule_start(text)
    cells = [cell.strip() for cell in text[:start].strip().split("\t")] if start else []
    if not cells:
        return (None, None, None), 0
    if len(cells) != 3:
        message = f"{len(cells)} column{'' if len(cells) == 1 else 's'} before the rule, not three"
        raise InputError(message, where=where, hint="three or none: predictions, correct predictions, confidence")
    for cell, name in zip(cells[:2], ("predictions", "correct predictions"), strict=True):
        if not _COUNT.fullmatch(cell):
            raise InputError(f"`{cell}` is no number of {name}", where=where)
    if not _CONFIDENCE.fullmatch(cells[2]) or float(cells[2]) > 1:
        raise InputError(f"`{cells[2]}` is no confidence, a number from 0 to 1", where=where)
    return (int(cells[0]), int(cells[1]), float(cells[2])), start


def rule_start(text: str) -> int:
    """Return where a rule starts behind columns, whatever they hold; 0 without columns.

    Tabs before the first bracket separate columns; those at the very beginning are blanks.
    """
    bracket = re.search(r"[(<]", text)
    start = text.rfind("\t", 0, bracket.start()) + 1 if bracket else 0
    return start if text[:start].strip() else 0


def write_columns(scored: ScoredRule) -> str:
    """Write the columns, or nothing for a rule without scores.

    Raises
    ------
    InputError
        If only some of the columns are known.
    """
    values = (scored.predictions, scored.correct, scored.confidence)
    if all(v is None for v in values):
        return ""
    if any(v is None for v in values):
        message = f"the columns need predictions, correct predictions and confidence: `{scored.rule}` lacks one"
        raise InputError(message, hint="give all three or none")
    return f"{scored.predictions}\t{scored.correct}\t{scored.confidence!r}\t"


VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_XSD = "http://www.w3.org/2001/XMLSchema#"
# Prefixes that RDFox and most tools know without a declaration.
_COMMON_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": _XSD,
}
_QUESTION = re.compile(r"\?([A-Za-z_][A-Za-z0-9_]*)")
_IRI = re.compile(r"<((?:[^<>\\\n\r]|\\[^\n\r])*)>")
_STRING = re.compile(r'"(?:[^"\\\n\r]|\\[^\n\r])*"')
_LANGUAGE = re.compile(r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![^\s,()\[\].])")
# Characters that an IRI cannot hold; they are written as \uXXXX.
_FORBIDDEN = re.compile(r'[\s\x00-\x20<>"{}|^`\\\x7f-\xa0\ud800-\udfff]')


def read_variable(scanner: Scanner) -> str | None:
    """Step over `?name` and return the name."""
    match = scanner.match(_QUESTION)
    if match:
        return match.group(1)
    if scanner.at("?"):
        scanner.fail("a variable like `?x`")
    return None


def read_name(scanner: Scanner, prefixes: Mapping[str, str], *, predicate: bool = False) -> str | None:
    """Step over a name of any kind and return it as graphs have it.

    Parameters
    ----------
    scanner
        Where to read.
    prefixes
        What `p:` stands for; an unknown prefix is part of the name.
    predicate
        Whether numbers and truth values are plain names here, because no literal can stand here.
    """
    start = scanner.position
    iri = scanner.match(_IRI)
    if iri:
        try:
            return unescape(iri.group(1))
        except InputError as error:
            scanner.fail("an IRI", at=start, hint=error.message)
    if scanner.at("<"):
        scanner.fail("an IRI in angle brackets")
    if scanner.at('"'):
        return _literal(scanner, prefixes)
    number = None if predicate else scanner.match(_NUMBER)
    if number:
        kind = "double" if number.group(2) else "decimal" if number.group(1) else "integer"
        return f'"{number.group()}"^^<{_XSD}{kind}>'
    match = scanner.match(WORD)
    if not match:
        return None
    word = match.group().rstrip(".")
    scanner.position -= len(match.group()) - len(word)
    if not word:
        return None
    if word in ("true", "false") and not predicate:
        return f'"{word}"^^<{_XSD}boolean>'
    return _expand(word, prefixes)


def _expand(word: str, prefixes: Mapping[str, str]) -> str:
    prefix, colon, local = word.partition(":")
    if colon and not local.startswith("//"):
        iri = prefixes.get(prefix, _COMMON_PREFIXES.get(prefix))
        if iri is not None:
            return iri + local
    return word


def _literal(scanner: Scanner, prefixes: Mapping[str, str]) -> str:
    string = scanner.match(_STRING)
    if not string:
        scanner.fail('a literal like "text", "text"@en or "1"^^<datatype>')
    text = string.group()
    follows = scanner.text[scanner.position : scanner.position + 2]
    if follows.startswith("@"):
        language = scanner.match(_LANGUAGE)
        if not language:
            scanner.fail("a language like `@en`")
        return text + language.group()
    if follows == "^^":
        scanner.position += 2
        iri = _IRI.match(scanner.text, scanner.position)
        if iri:
            scanner.position = iri.end()
            return f"{text}^^{iri.group()}"
        word = WORD.match(scanner.text, scanner.position)
        if not word:
            scanner.fail("a datatype")
        scanner.position = word.end()
        return f"{text}^^<{_expand(word.group(), prefixes)}>"
    return text


def write_iri(name: str) -> str:
    r"""Write a name as an IRI in angle brackets; what an IRI cannot hold becomes a `\uXXXX` escape."""

    def escape(match: re.Match[str]) -> str:
        return f"\\u{ord(match.group()):04X}"

    return "<" + _FORBIDDEN.sub(escape, name) + ">"


def write_name(name: str) -> str:
    """Write a name as a literal if it is one, else as an IRI."""
    return name if is_literal(name) else write_iri(name)
