"""Mined rules as text, fast.

Path rules by name: from a table over ids to rules, and from rules to a table.

Variables are named as AnyBURL does: X and Y in the head, A, B, C along the path.

Mined rules as lines of text, a hundred thousand of them in a second.

Names are looked up and checked once each, and lines are put together from them without rules in between.
AnyBURL quotes nothing: where a name could be misread, a rule goes through the dialect, which reads back what
it writes.

AnyBURL's rule files, a million lines at a time.

Lines are cut at what AnyBURL puts between their parts. An atom is looked at once, however often it comes, and
so is the shape of a rule. A line with anything unusual in it goes to the dialect's reader.

Mined rules as text: by name, as lines of a file, and back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from loginfer.engine.binding import ABSENT, relation_named
from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import RDF_TYPE, TYPE_NAMES, KnowledgeGraph
from loginfer.logic.dialects import dialect_named
from loginfer.logic.dialects.anyburl import ANYBURL
from loginfer.logic.dialects.base import Dialect
from loginfer.logic.rule import Atom, Constant, Rule, ScoredRule, Term, Variable, ZeroRule, quote
from loginfer.logic.rule_files import RuleFile, rule_text
from loginfer.systems.rules.application import confidences
from loginfer.systems.rules.mined import BOTH, LONGEST, NONE, OBJECT, MinedRules, RuleTable
from loginfer.systems.rules.scorer import PathShape, Places, path_shape

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


def _unknown(scored: ScoredRule | ZeroRule, atoms: Iterable[Atom], graph: KnowledgeGraph) -> tuple[str, str] | None:
    """Return why a rule can never fire, and the name that is to blame."""
    for atom in atoms:
        if relation_named(str(atom.relation), graph) == ABSENT:
            return UNKNOWN_RELATION, str(atom.relation)
        for term in atom.terms:
            if isinstance(term, Constant) and graph.entities.get(term.name) is None:
                return UNKNOWN_CONSTANT, term.name
    return None


# A name without anything that means something to AnyBURL's readers.
_PLAIN = re.compile(r"[^\s(),]+")
# What AnyBURL writes instead of a loop's other end.
LOOP = "me_myself_i"

# What would end a column or a line.
_SPLITS = re.compile(r"[\t\n\r]")
_OUR_SYNTAX = "write LogInfer's own syntax (--to arrow)"

# The head's variables, then those along the path.
_VARIABLES = {"anyburl": ("X", "Y", "ABC"), "arrow": ("x", "y", "abc")}


def rule_lines(mined: MinedRules, graph: KnowledgeGraph, dialect: str = "anyburl") -> Iterator[str]:
    """Yield mined rules as lines, best first: predictions, correct predictions, confidence, rule.

    Parameters
    ----------
    mined
        The rules.
    graph
        Has their names.
    dialect
        `anyburl` or `arrow`.

    Raises
    ------
    InputError
        If a rule cannot be written in the dialect; the hint says in which it can.
    """
    if dialect not in _VARIABLES:
        raise UnknownNameError("dialect for mined rules", dialect, _VARIABLES)
    chosen = dialect_named(dialect)
    writer = _Writer(mined, graph, chosen)
    given = np.concatenate([mined.paths.confidence, confidences(mined.others)])
    places = np.concatenate([mined.paths.best_first, np.arange(len(mined.paths), len(given))])
    for place in places[np.argsort(-given[places], kind="stable")].tolist():
        if place < len(mined.paths):
            yield writer.path(place)
        else:
            yield _written(chosen, mined.others[place - len(mined.paths)])


class _Writer:
    """Writes the path rules of a table."""

    def __init__(self, mined: MinedRules, graph: KnowledgeGraph, dialect: Dialect) -> None:
        self._paths, self._graph, self._dialect = mined.paths, graph, dialect
        self._arrow = dialect.name == "arrow"
        paths = mined.paths
        relations = np.unique(np.concatenate([paths.head, paths.body[paths.body != NONE] // 2]))
        constants = np.unique(np.concatenate([paths.head_constant, paths.end_constant]))
        # As the dialect writes them; None for a name that could be misread.
        self._relations = {r: self._relation(r) for r in relations.tolist()}
        self._constants = {c: self._constant(c) for c in constants.tolist() if c != NONE}
        self._rows = [
            column.tolist()
            for column in (
                paths.head,
                paths.variables,
                paths.head_constant,
                paths.end_constant,
                paths.body,
                paths.predictions,
                paths.correct,
                paths.confidence,
            )
        ]

    def _relation(self, number: int) -> str | None:
        name = self._graph.relations[number]
        if number == self._graph.type_relation:
            return "type" if self._arrow else RDF_TYPE
        if self._arrow:
            return quote(name)
        return name if _PLAIN.fullmatch(name) and name not in TYPE_NAMES else None

    def _constant(self, number: int) -> str | None:
        name = self._graph.entities[number]
        if self._arrow:
            return quote(name)
        return name if _PLAIN.fullmatch(name) and len(name) > 1 and name != LOOP else None

    def path(self, place: int) -> str:
        """Write one rule."""
        head, variables, head_constant, end_constant, body, *measures = (row[place] for row in self._rows)
        x, y, along = _VARIABLES[self._dialect.name]
        ends: tuple[str | None, str | None] = (x, y)
        nodes: list[str | None] = [x, y]
        steps = [step for step in body if step != NONE]
        if variables != BOTH:
            constant = self._constants[head_constant]
            ends = (constant, y) if variables == OBJECT else (x, constant)
            last = self._constants[end_constant] if end_constant != NONE else along[max(len(steps) - 1, 0)]
            nodes = [y if variables == OBJECT else x, last]
        nodes[1:1] = along[: max(len(steps) - 1, 0)]
        atoms = [(ends[0], self._relations[head], ends[1])]
        for number, step in enumerate(steps):
            here, there = nodes[number], nodes[number + 1]
            if step & 1:
                here, there = there, here
            atoms.append((here, self._relations[step >> 1], there))
        return self._line(place, measures, atoms)

    def _line(
        self, place: int, measures: list[int | float], atoms: list[tuple[str | None, str | None, str | None]]
    ) -> str:
        """Put a line together; the head is the first atom."""
        if any(None in atom for atom in atoms):
            return _careful(self._dialect, path_rule(self._paths, place, self._graph))
        predictions, correct, confidence = measures
        columns = f"{predictions}\t{correct}\t{confidence!r}\t"
        if not self._arrow:
            head, *body = [f"{r}({s},{o})" for s, r, o in atoms]
            return f"{columns}{head} <= {', '.join(body)}"
        head, *body = [f"({s},{r},{o})" for s, r, o in atoms]
        if not body:
            raise InputError(
                f"arrow cannot express a rule without a body that has a variable in its head: `{head}`",
                hint="write AnyBURL's format (--to anyburl), or leave such rules out",
            )
        return f"{columns}{', '.join(body)} -> {head}"


def _careful(dialect: Dialect, rule: ScoredRule | ZeroRule) -> str:
    """Write a rule with names that could be misread, if they are not."""
    if isinstance(rule, ScoredRule):
        return _written(dialect, rule)
    terms = [t.name.upper() if isinstance(t, Variable) else str(t.name) for t in rule.head.terms]
    columns = f"{rule.predictions}\t{rule.correct}\t{rule.confidence!r}"
    text = f"{rule.head.relation}({','.join(terms)}) <= "
    too_short = any(isinstance(t, Constant) and len(t.name) < 2 for t in rule.head.terms)
    try:
        back = None if too_short or _SPLITS.search(text) else dialect.read_any(f"{columns}\t{text}", None, {})
    except InputError:
        back = None
    if back != rule:
        raise InputError(
            f"AnyBURL cannot express these names so that they can be told apart: `{rule.head}`", hint=_OUR_SYNTAX
        )
    return f"{columns}\t{text}"


def _written(dialect: Dialect, rule: ScoredRule) -> str:
    try:
        return dialect.write(rule)
    except InputError as error:
        hint = error.hint or (_OUR_SYNTAX if dialect.name != "arrow" else None)
        raise InputError(error.message, where=error.where, hint=hint) from None


# An atom whose names cannot be misread.
_PLAIN_ATOM = re.compile(r"([^\s(),]+)\(([^\s(),]+),([^\s(),]+)\)")
_DIGITS = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

# An atom: its relation, its constant (NONE without one), its places as variables or " ", and the first name
# that the graph does not have with the reason for leaving the rule out.
_Seen: TypeAlias = tuple[int, int, str, tuple[str, str] | None]


def read_path_rules(path: str | Path, graph: KnowledgeGraph, *, distinct: bool = True) -> tuple[MinedRules, Skipped]:
    """Read a file of AnyBURL's rules over the ids of a graph.

    Measures are what the file says: AnyBURL's confidence is that of the counts, not what the rule is worth
    when AnyBURL applies it.

    Parameters
    ----------
    path
        The file.
    graph
        Gives the ids. Rules with names that it does not have are left out.
    distinct
        As for `MinedRules`.

    Returns
    -------
    MinedRules, Skipped
        The rules, and what was left out; a line that cannot be read stands there with its number.

    Raises
    ------
    InputError
        If the file cannot be read as text.
    """
    return parse_path_rules(rule_text(Path(path)), graph, distinct=distinct, path=str(path))


def parse_path_rules(
    text: str, graph: KnowledgeGraph, *, distinct: bool = True, path: str = "rules"
) -> tuple[MinedRules, Skipped]:
    """Read the text of a file of AnyBURL's rules (see `read_path_rules`); `path` is what messages call it."""
    reader = _Reader(graph, path)
    for number, line in enumerate(text.split("\n"), 1):
        if not reader.quickly(line, number):
            reader.carefully(line.removesuffix("\r"), number)
    return MinedRules(reader.rows.table(), tuple(reader.others), distinct), reader.skipped


class _Reader:
    """Reads line by line."""

    def __init__(self, graph: KnowledgeGraph, path: str) -> None:
        self.rows, self.skipped = PathRows(), Skipped()
        self.others: list[ScoredRule] = []
        self._graph, self._path = graph, path
        self._entities = {name: number for number, name in enumerate(graph.entities)}
        self._atoms: dict[str, _Seen | None] = {}
        self._shapes: dict[tuple[str, ...], PathShape | None] = {}

    def quickly(self, line: str, number: int) -> bool:
        """Read a line with names that cannot be misread; False if it is no such line."""
        parts = line.split("\t")
        if len(parts) != 4:
            return False
        head, implied, body = parts[3].partition(" <= ")
        if not implied or not _DIGITS.fullmatch(parts[0]) or not _DIGITS.fullmatch(parts[1]):
            return False
        if not _NUMBER.fullmatch(parts[2]) or float(parts[2]) > 1:
            return False
        body = body.rstrip()
        texts = [head]
        if body:
            # The bracket that was cut off belongs to the atom.
            texts += [f"{piece})" for piece in body.split("), ")]
            texts[-1] = texts[-1][:-1]
        seen = []
        for text in texts:
            atom = self._atoms[text] if text in self._atoms else self._see(text)
            if atom is None:
                return False
            seen.append(atom)
        key = tuple([atom[2] for atom in seen])
        shape = self._shapes[key] if key in self._shapes else self._shape(key)
        if shape is None:
            return False
        for atom in seen:
            if atom[3] is not None:
                self.skipped.add(atom[3][0], f"{self._path}:{number}: `{atom[3][1]}`")
                return True
        end = seen[1 + shape.steps[-1][0]][1] if shape.end else NONE
        steps = [2 * seen[1 + place][0] + side for place, side in shape.steps]
        row = (seen[0][0], shape.variables, seen[0][1], end, *steps)
        self.rows.add(row, (int(parts[0]), int(parts[1]), float(parts[2])))
        return True

    def _see(self, text: str) -> _Seen | None:
        """Look at an atom for the first time."""
        match = _PLAIN_ATOM.fullmatch(text)
        seen: _Seen | None = None
        if match and LOOP not in match.group(2, 3):
            name, *terms = match.groups()
            relation = relation_named(RDF_TYPE if name in TYPE_NAMES else name, self._graph)
            unknown = (UNKNOWN_RELATION, name) if relation == ABSENT else None
            constant, places = NONE, ""
            for term in terms:
                if term in _CAPITALS:
                    places += term
                    continue
                places += " "
                constant = self._entities.get(term, NONE)
                if constant == NONE and unknown is None:
                    unknown = (UNKNOWN_CONSTANT, term)
            seen = (relation, constant, places, unknown)
        self._atoms[text] = seen
        return seen

    def _shape(self, key: tuple[str, ...]) -> PathShape | None:
        """Look at a shape for the first time."""
        places = [tuple(None if place == " " else place for place in atom) for atom in key]
        found = path_shape(places[0], places[1:])  # type: ignore[arg-type]
        self._shapes[key] = found
        return found

    def carefully(self, line: str, number: int) -> None:
        """Read any line as the dialect does."""
        if not line.strip():
            return
        where = f"{self._path}:{number}"
        try:
            rule = ANYBURL.read_any(line, where, {})
        except InputError as error:
            self.skipped.malformed.append(str(error).partition("\n")[0])
            return
        if add_rule(rule, where, self._graph, self.rows, self.skipped) and isinstance(rule, ScoredRule):
            self.others.append(rule)
