"""Rules and patterns named on the command line, and what is wrong with their names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loginfer.cli.common import OnError, note
from loginfer.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from loginfer.kg import KnowledgeGraph
    from loginfer.logic import Rule
    from loginfer.logic.rulefile import RuleFile

__all__ = ["check_fixed_names", "check_names", "read_program", "read_source"]


def read_source(rules: str, dialect: str | None = None, on_error: OnError = OnError.fail) -> RuleFile:
    """Read a rule file, a shipped rule set, or one rule given as text."""
    from loginfer.logic import parse_rule
    from loginfer.logic.rulefile import RuleFile, ScoredRule, read_rules

    if "->" in rules and not Path(rules).exists():
        return RuleFile((ScoredRule(parse_rule(rules)),), (), (), "arrow", rules)
    return read_rules(rules, dialect=dialect, on_error=on_error.value)


def read_program(rules: str, dialect: str | None) -> list[Rule]:
    """Read rules that are to be applied: at least one."""
    program = list(read_source(rules, dialect).program)
    if not program:
        raise InputError(f"`{rules}` holds no rule")
    return program


def check_names(
    graph: KnowledgeGraph, program: list[Rule], strict: bool = False, shipped: bool = False
) -> None:
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
