"""What a dialect is: a way to cut a file into statements, to read a statement and to write one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from loginfer.errors import InputError
from loginfer.logic.dialects.statements import Statements
from loginfer.logic.rule import Inequality, Rule
from loginfer.logic.scored import ScoredRule, ZeroRule
from loginfer.logic.terms import Variable

__all__ = [
    "Dialect",
    "cannot_express",
    "no_directive",
    "read_prefix",
    "spell_variables",
]

# The prefixes that a statement declares, none for one to pass over; None for one that should be a rule.
Directive: TypeAlias = Mapping[str, str] | None


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
        Recognises declarations of prefixes, and statements that are no rules and shall be passed over.
    read_statement
        Statement, prefixes and place in; rule out. None for a dialect that is only written.
    write_statement
        Rule in, text out, without an end of line.
    looks_like
        Says whether a statement looks like this dialect.
    keeps_scores
        Whether predictions, correct predictions and confidence are written, too.
    """

    name: str
    about: str
    example: str
    endings: tuple[str, ...] = ()
    comments: str | None = "#"
    statements: Statements
    read_directive: Callable[[str], Directive]
    read_statement: Callable[[str, Mapping[str, str], str | None], ScoredRule | ZeroRule] | None
    write_statement: Callable[[ScoredRule], str]
    looks_like: Callable[[str], bool]
    keeps_scores: bool = False

    def read(
        self, text: str, where: str | None = None, *, prefixes: Mapping[str, str] | None = None
    ) -> ScoredRule:
        """Read one rule.

        Raises
        ------
        InputError
            For a text that is no rule; a `ParseError` says the column.
        """
        found = self.read_any(text, where, prefixes or {})
        if isinstance(found, ZeroRule):
            raise InputError(
                f"`{text.strip()}` has no body to bind its variable: it is no Datalog rule", where=where
            )
        return found

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


_PREFIX = re.compile(r"\s*@?prefix\s+([^\s:<>]*)\s*:\s*<([^<>\s]*)>\s*\.?\s*(?:#.*)?\Z", re.IGNORECASE)


def read_prefix(text: str) -> Directive:
    """Read `@prefix p: <iri> .` or `PREFIX p: <iri>`."""
    match = _PREFIX.match(text)
    return {match.group(1): match.group(2)} if match else None


def no_directive(text: str) -> Directive:
    """Say that a dialect has no prefixes."""
    return None


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
    wanted = {v: spell(v.name) for v in variables}
    for variable, name in wanted.items():
        if allowed.fullmatch(name) and name not in names.values():
            names[variable] = name
    taken = set(names.values())
    number = 0
    for variable in variables:
        while variable not in names:
            number += 1
            if (name := f"V{number}") not in taken:
                names[variable] = name
    return {v: names[v] for v in variables}


def cannot_express(dialect: str, what: str, rule: Rule | Inequality, hint: str | None = None) -> InputError:
    """Return the error for something that a dialect has no way to write."""
    return InputError(f"{dialect} cannot express {what}: `{rule}`", hint=hint)
