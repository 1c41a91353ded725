"""Path rules by name: from a table over ids to rules, and from rules to a table.

Variables are named as AnyBURL does: X and Y in the head, A, B, C along the path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from loginfer.engine.binding import ABSENT, relation_named
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.rule import Atom, Rule
from loginfer.logic.rulefile import RuleFile
from loginfer.logic.scored import ScoredRule, ZeroRule
from loginfer.logic.terms import Constant, Term, Variable
from loginfer.systems.rules.shapes import PathShape, Places, path_shape
from loginfer.systems.rules.values import BOTH, LONGEST, NONE, OBJECT, MinedRules, RuleTable

__all__ = ["PathRows", "Skipped", "mined_from", "path_rule", "scored_rules"]

_X, _Y = Variable("x"), Variable("y")
_ALONG = (Variable("a"), Variable("b"), Variable("c"))


# -- from a table to rules -------------------------------------------------------------------------


def scored_rules(mined: MinedRules, graph: KnowledgeGraph) -> tuple[list[ScoredRule], list[ZeroRule]]:
    """Return mined rules by name: path rules, best first, then the others; zero rules apart.

    What `distinct` says is not written into the rules.
    """
    rules: list[ScoredRule] = []
    zero: list[ZeroRule] = []
    for place in mined.paths.best_first.tolist():
        found = path_rule(mined.paths, place, graph)
        if isinstance(found, ZeroRule):
            zero.append(found)
        else:
            rules.append(found)
    return rules + list(mined.others), zero


def path_rule(paths: RuleTable, place: int, graph: KnowledgeGraph) -> ScoredRule | ZeroRule:
    """Return one path rule of a table by name."""
    measures = (int(paths.predictions[place]), int(paths.correct[place]), float(paths.confidence[place]))
    variables = int(paths.variables[place])

    def relation(number: int) -> str:
        return RDF_TYPE if number == graph.type_relation else graph.relations[number]

    def constant(number: int) -> Constant:
        return Constant(graph.entities[number])

    subject: Term = _X
    object_: Term = _Y
    if variables == OBJECT:
        subject = constant(int(paths.head_constant[place]))
    elif variables != BOTH:
        object_ = constant(int(paths.head_constant[place]))
    head = Atom(subject, relation(int(paths.head[place])), object_)
    body = [step for step in paths.body[place].tolist() if step != NONE]
    if not body:
        return ZeroRule(head, *measures)
    end: Term = _Y
    if variables != BOTH:
        last = int(paths.end_constant[place])
        end = _ALONG[len(body) - 1] if last == NONE else constant(last)
    nodes: list[Term] = [_Y if variables == OBJECT else _X, *_ALONG[: len(body) - 1], end]
    atoms: list[Atom] = []
    for number, step in enumerate(body):
        here, there = nodes[number], nodes[number + 1]
        if step % 2:
            here, there = there, here
        atoms.append(Atom(here, relation(step // 2), there))
    return ScoredRule(Rule.known_safe(tuple(atoms), head), *measures)


# -- from rules to a table -------------------------------------------------------------------------


@dataclass(slots=True)
class Skipped:
    """Rules that were left out, and why.

    Parameters
    ----------
    counts
        How many, by reason.
    examples
        The first of each reason: where it stands, and the name that is not known.
    malformed
        What could not be read at all: place and reason, one a line of the file.
    """

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    malformed: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(self.counts.values()) + len(self.malformed)

    def add(self, reason: str, example: str) -> None:
        """Count one more, and keep it if it is the first of its kind."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        self.examples.setdefault(reason, example)


UNKNOWN_RELATION = "a relation that the graph does not have"
UNKNOWN_CONSTANT = "a constant that the graph does not have"


class PathRows:
    """A table of path rules while it is being filled, row by row."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = []
        self._measures: list[tuple[int, int, float]] = []

    def add(self, row: tuple[int, ...], measures: tuple[int | None, int | None, float | None]) -> None:
        """Add a rule: head, variables, head constant, end constant and steps; a measure may be missing.

        A rule without a confidence is taken at its word: it counts as certain.
        """
        predictions, correct, confidence = measures
        self._rows.append(row + (NONE,) * (4 + LONGEST - len(row)))
        self._measures.append((predictions or 0, correct or 0, 1.0 if confidence is None else confidence))

    def table(self) -> RuleTable:
        """Return the table."""
        if not self._rows:
            return RuleTable.empty()
        head, variables, head_constant, end_constant, *body = zip(*self._rows, strict=True)
        predictions, correct, confidence = zip(*self._measures, strict=True)
        return RuleTable.of(
            head=head,
            variables=variables,
            head_constant=head_constant,
            end_constant=end_constant,
            body=list(zip(*body, strict=True)),
            predictions=predictions,
            correct=correct,
            confidence=confidence,
        )


def mined_from(rule_file: RuleFile, graph: KnowledgeGraph, *, distinct: bool) -> tuple[MinedRules, Skipped]:
    """Return the rules of a file over a graph's ids, and what had to be left out.

    Rules that are paths, whatever the order of their atoms and the names of their variables, become rows of
    a table; all others stay as they are. A rule with a relation or constant that the graph does not have can
    never fire and is left out.

    Parameters
    ----------
    rule_file
        The rules.
    graph
        Gives the ids.
    distinct
        As for `MinedRules`.
    """
    rows, others, skipped = PathRows(), [], Skipped(malformed=list(rule_file.skipped))
    rules: list[ScoredRule | ZeroRule] = [*rule_file.rules, *rule_file.zero]
    for scored in rules:
        where = f"{rule_file.path}:{scored.line}"
        if add_rule(scored, where, graph, rows, skipped) and isinstance(scored, ScoredRule):
            others.append(scored)
    return MinedRules(rows.table(), tuple(others), distinct), skipped


def add_rule(
    scored: ScoredRule | ZeroRule, where: str, graph: KnowledgeGraph, rows: PathRows, skipped: Skipped
) -> bool:
    """Add a rule to the rows, or to what is left out; True if it is of another shape than a path."""
    head = scored.rule.head if isinstance(scored, ScoredRule) else scored.head
    atoms = scored.rule.atoms if isinstance(scored, ScoredRule) else ()
    unknown = _unknown(scored, (head, *atoms), graph)
    if unknown is not None:
        reason, name = unknown
        skipped.add(reason, f"{where}: `{name}`")
        return False
    shape = None
    if isinstance(scored, ZeroRule) or not (scored.rule.inequalities or scored.rule.negations):
        shape = path_shape(_places(head), [_places(atom) for atom in atoms])
    if shape is None:
        if isinstance(scored, ZeroRule):  # h(X,Y) or h(X,X) of everything: nothing to learn from
            skipped.add("a head of variables only, without a body", f"{where}: `{head}`")
            return False
        return True
    rows.add(_row(shape, head, atoms, graph), (scored.predictions, scored.correct, scored.confidence))
    return False


def _places(atom: Atom) -> Places:
    subject, object_ = (term.name if isinstance(term, Variable) else None for term in atom.terms)
    return subject, object_


def _row(shape: PathShape, head: Atom, atoms: tuple[Atom, ...], graph: KnowledgeGraph) -> tuple[int, ...]:
    end = _constant(atoms[shape.steps[-1][0]], graph) if shape.end else NONE
    steps = [2 * relation_named(str(atoms[place].relation), graph) + side for place, side in shape.steps]
    relation = relation_named(str(head.relation), graph)
    return (relation, shape.variables, _constant(head, graph), end, *steps)


def _constant(atom: Atom, graph: KnowledgeGraph) -> int:
    names = [term.name for term in atom.terms if isinstance(term, Constant)]
    return graph.entity_id(names[0]) if names else NONE


def _unknown(
    scored: ScoredRule | ZeroRule, atoms: Iterable[Atom], graph: KnowledgeGraph
) -> tuple[str, str] | None:
    """Return why a rule can never fire, and the name that is to blame."""
    for atom in atoms:
        if relation_named(str(atom.relation), graph) == ABSENT:
            return UNKNOWN_RELATION, str(atom.relation)
        for term in atom.terms:
            if isinstance(term, Constant) and graph.entities.get(term.name) is None:
                return UNKNOWN_CONSTANT, term.name
    return None
