"""`loginfer rules show`: the rules of a file, sorted and filtered; and how rules are shown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import (
    JsonOption,
    OnError,
    OnErrorOption,
    console,
    counted,
    note,
    on_terminal,
    print_json,
    table,
)
from loginfer.errors import UnknownNameError

if TYPE_CHECKING:
    import numpy.typing as npt

    from loginfer.logic.rule import Atom, Rule
    from loginfer.logic.scored import ScoredRule, ZeroRule
    from loginfer.systems.rules.listing import Listing

__all__ = ["print_rules", "rule_text", "shortened", "shortened_part", "show"]

# From so many rows on a table is printed line by line: to lay it out would take long.
LONG = 2000


def show(
    rules: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A rule file in any dialect, e.g. of `loginfer mine`."),
    ],
    head: Annotated[
        str | None, typer.Option("--head", help="Only rules with this relation in the head.")
    ] = None,
    relation: Annotated[
        str | None, typer.Option("--relation", help="Only rules with this relation in head or body.")
    ] = None,
    length: Annotated[
        int | None, typer.Option("--length", help="Only rules with so many atoms in the body.", min=0)
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option("--min-confidence", help="Only rules at least that sure.", min=0)
    ] = None,
    min_correct: Annotated[
        int | None, typer.Option("--min-correct", help="Only rules right at least that often.", min=0)
    ] = None,
    top: Annotated[int, typer.Option("--top", "-n", help="How many rules to show.", min=1)] = 50,
    sort: Annotated[
        str, typer.Option("--sort", help="confidence or correct, largest first; length, shortest first.")
    ] = "confidence",
    short: Annotated[
        bool, typer.Option("--short", help="Names by their last part, behind the last / or #.")
    ] = False,
    dialect: Annotated[
        str | None, typer.Option("--from", help="Dialect of the rule file; detected by default.")
    ] = None,
    on_error: OnErrorOption = OnError.fail,
    json: JsonOption = False,
) -> None:
    """Show the rules of a file, best first.

    Relations may be given by their last part (behind the last / or #).
    """
    from loginfer.logic import dialect_named
    from loginfer.systems.rules.listing import SORTED_BY, list_rules

    wanted = next((each for each in SORTED_BY if each == sort.strip().casefold()), None)
    if wanted is None:
        raise UnknownNameError("order", sort, SORTED_BY, where="--sort")
    listing = list_rules(rules, on_error.value, dialect and dialect_named(dialect).name)
    places = listing.select(
        head=head,
        relation=relation,
        length=length,
        min_confidence=min_confidence,
        min_correct=min_correct,
        sort=wanted,
    )
    if listing.skipped:
        note(f"skipped {counted(len(listing.skipped), 'bad line')}, e.g. {listing.skipped[0]}")
    if json:
        print_json(_as_json(listing, places, top))
        return
    print_rules([listing.rule(place) for place in places[:top].tolist()], short=short)
    fitting = "" if len(places) == len(listing) else f"; {len(places):,} fit"
    note(f"{counted(len(listing), 'rule')} in {rules}{fitting}; {min(top, len(places)):,} shown")


def _as_json(listing: Listing, places: npt.NDArray[Any], top: int) -> dict[str, Any]:
    shown = []
    for place in places[:top].tolist():
        rule = listing.rule(place)
        shown.append(
            {
                "predictions": rule.predictions,
                "correct": rule.correct,
                "confidence": rule.confidence,
                "length": int(listing.length[place]),
                "rule": rule_text(rule, short=False),
                "line": int(listing.line[place]),
            }
        )
    return {
        "file": listing.path,
        "dialect": listing.dialect,
        "rules": len(listing),
        "fitting": len(places),
        "skipped": len(listing.skipped),
        "shown": shown,
    }


# -- how rules are shown ---------------------------------------------------------------------------


def rule_text(rule: ScoredRule | ZeroRule, *, short: bool) -> str:
    """Return a rule in our syntax; a zero rule has nothing in front of the arrow."""
    from loginfer.logic.scored import ZeroRule

    if isinstance(rule, ZeroRule):
        return f"-> {shortened_part(rule.head) if short else rule.head}"
    return shortened(rule.rule) if short else str(rule.rule)


def shortened(rule: Rule) -> str:
    """Return a rule with the last parts of its names."""
    return f"{', '.join(map(shortened_part, rule.body))} -> {shortened_part(rule.head)}"


def shortened_part(part: Any) -> str:
    """Return an atom with the last parts of its names; an inequality likewise."""
    from loginfer.logic.rule import Atom, Negation
    from loginfer.logic.terms import Constant, Variable
    from loginfer.systems.rules.listing import short_name

    def term(old: Any) -> Any:
        return old if isinstance(old, Variable) else Constant(short_name(old.name))

    if isinstance(part, Negation):
        return f"not {shortened_part(part.atom)}"
    if not isinstance(part, Atom):
        return " != ".join(str(term(old)) for old in part.terms)
    made: Atom = Atom(
        term(part.subject),
        part.relation if part.is_type else short_name(str(part.relation)),
        term(part.object),
    )
    return str(made)


def print_rules(rules: list[ScoredRule | ZeroRule], *, short: bool, title: str | None = None) -> None:
    """Print a table of rules with their measures."""
    rows = [
        (
            "" if rule.predictions is None else f"{rule.predictions:,}",
            "" if rule.correct is None else f"{rule.correct:,}",
            "" if rule.confidence is None else f"{rule.confidence:.4f}",
            rule_text(rule, short=short),
        )
        for rule in rules
    ]
    if len(rows) > LONG or not on_terminal(sys.stdout):
        # What is piped into another program is aligned, but never folded; a table would take its time.
        widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(_MEASURES)]
        if title:
            print(title)
        for row in ((*_MEASURES, "rule"), *rows):
            measures = "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=False))
            sys.stdout.write(f"{measures}  {row[-1]}\n")
        return
    listing = table(*_MEASURES, "rule", numbers=_MEASURES, title=title)
    for row in rows:
        listing.add_row(*row)
    console().print(listing)


_MEASURES = ("predictions", "correct", "confidence")
