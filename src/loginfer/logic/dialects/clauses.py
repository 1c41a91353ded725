"""`head :- body .`: what RDFox, Nemo and plain Datalog have in common."""

from __future__ import annotations

from collections.abc import Callable

from loginfer.logic.dialects.scanner import Scanner, located
from loginfer.logic.rule import Atom, BodyAtom, Rule

__all__ = ["read_clause"]


def read_clause(
    scanner: Scanner,
    read_head: Callable[[], Atom],
    read_part: Callable[[], list[BodyAtom]],
    implications: tuple[str, ...] = (":-",),
) -> Rule:
    """Read a rule, or a fact: a rule with an empty body.

    Parameters
    ----------
    scanner
        Where to read.
    read_head
        Reads the head.
    read_part
        Reads one part of the body; it may stand for several inequalities.
    implications
        What may stand between head and body.
    """
    head = read_head()
    if scanner.at(",", "&"):
        scanner.fail(f"`{implications[0]}`", hint="write one rule for each atom of the head")
    body: list[BodyAtom] = []
    if scanner.take(*implications):
        if not scanner.at("."):
            body += read_part()
            while scanner.take(","):
                body += read_part()
        if not scanner.at_end() and not scanner.at("."):
            scanner.fail("`,` or `.`")
    elif not scanner.at_end() and not scanner.at("."):
        scanner.fail(f"`{implications[0]}` or `.`")
    scanner.take(".")
    if not scanner.at_end():
        scanner.fail("the end of the rule")
    with located(scanner.where):
        return Rule(body, head)
