"""Mined rules as text: by name, as lines of a file, and back, a hundred thousand rules in a second.

To write, names are looked up and checked once each, and lines are put together from them without rules in between.
To read, lines are cut at what AnyBURL puts between their parts; an atom is looked at once, however often it comes,
and so is the shape of a rule. AnyBURL quotes nothing: where a name could be misread, a line goes through the
dialect, which reads back what it writes.

Variables are named as AnyBURL does: X and Y in the head, A, B, C along the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
from loginfer.logic.entailment import PathShape, path_atoms, path_shape, variable_names
from loginfer.logic.rule import Atom, Constant, Rule, ScoredRule, Term, Variable, ZeroRule, quote
from loginfer.logic.rule_files import RuleFile, rule_text
from loginfer.systems.rules.mined import LONGEST, NONE, MinedRules, RuleTable

_X, _Y = Variable("x"), Variable("y")
_BETWEEN: tuple[Term, ...] = (Variable("a"), Variable("b"), Variable("c"))


# -- from a table to rules -------------------------------------------------------------------------


def path_rule(paths: RuleTable, index: int, graph: KnowledgeGraph) -> ScoredRule | ZeroRule:
    """Return one path rule of a table by name."""
    measures = (int(paths.predictions[index]), int(paths.correct[index]), float(paths.confidence[index]))
    head, *body = named_atoms(paths.row(index), graph)
    return ScoredRule(Rule.known_safe(tuple(body), head), *measures) if body else ZeroRule(head, *measures)


def named_atoms(
    row: Sequence[int], graph: KnowledgeGraph, x: Term = _X, y: Term = _Y, special: Mapping[int, Term] | None = None
) -> list[Atom]:
    """Return the atoms of a row, the head first.

    Parameters
    ----------
    row
        As `RuleTable.row` gives it.
    graph
        Has the names.
    x, y
        The variables of the head.
    special
        Variables that stand for some ids of constants.
    """

    def relation(number: int) -> str:
        return RDF_TYPE if number == graph.type_relation else graph.relations[number]

    def constant(number: int) -> Term:
        return special[number] if special and number in special else Constant(graph.entities[number])

    return [Atom(s, r, o) for s, r, o in path_atoms(row, x, y, _BETWEEN, relation, constant)]


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
        What could not be read at all: where and why, one a line of the file.
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


class _RuleCollector:
    """Collects rules over a graph's ids: paths, other shapes, and what has to be left out."""

    def __init__(self, graph: KnowledgeGraph, skipped: Skipped) -> None:
        self.graph, self.skipped = graph, skipped
        self._others: list[ScoredRule] = []
        self._rows: list[tuple[int, ...]] = []
        self._measures: list[tuple[int, int, float]] = []

    def add_path(self, row: tuple[int, ...], predictions: int, correct: int, confidence: float) -> None:
        """Add a path rule: head, variables, head constant, end constant and steps."""
        self._rows.append(row + (NONE,) * (4 + LONGEST - len(row)))
        self._measures.append((predictions, correct, confidence))

    def add(self, scored: ScoredRule | ZeroRule, where: str) -> None:
        """Add a rule by name.

        A rule without a confidence is taken at its word: it counts as certain.
        """
        head, atoms = (scored.rule.head, scored.rule.atoms) if isinstance(scored, ScoredRule) else (scored.head, ())
        unknown = self._unknown((head, *atoms))
        if unknown is not None:
            self.skipped.add(unknown[0], f"{where}: `{unknown[1]}`")
            return
        shape = None
        if isinstance(scored, ZeroRule) or not (scored.rule.inequalities or scored.rule.negations):
            shape = path_shape(variable_names(head), [variable_names(atom) for atom in atoms])
        if shape is not None:
            end = self._constant(atoms[shape.steps[-1][0]]) if shape.end else NONE
            steps = [2 * self._relation(atoms[i]) + side for i, side in shape.steps]
            row = (self._relation(head), shape.variables, self._constant(head), end, *steps)
            confidence = 1.0 if scored.confidence is None else scored.confidence
            self.add_path(row, scored.predictions or 0, scored.correct or 0, confidence)
        elif isinstance(scored, ScoredRule):
            self._others.append(scored)
        else:  # h(X,Y) or h(X,X) of everything: nothing to learn from
            self.skipped.add("a head of variables only, without a body", f"{where}: `{head}`")

    def mined(self, distinct: bool) -> MinedRules:
        """Return the rules."""
        rows = np.array(self._rows, dtype=np.int32).reshape(-1, 4 + LONGEST)
        measures = zip(*self._measures, strict=True) if self._rows else ((), (), ())
        return MinedRules(RuleTable.of_rows(rows, *measures), tuple(self._others), distinct)

    def _unknown(self, atoms: Sequence[Atom]) -> tuple[str, str] | None:
        """Return why a rule can never fire, and the name that is to blame."""
        for atom in atoms:
            if self._relation(atom) == ABSENT:
                return UNKNOWN_RELATION, str(atom.relation)
            for term in atom.terms:
                if isinstance(term, Constant) and self.graph.entities.get(term.name) is None:
                    return UNKNOWN_CONSTANT, term.name
        return None

    def _relation(self, atom: Atom) -> int:
        return relation_named(str(atom.relation), self.graph)

    def _constant(self, atom: Atom) -> int:
        names = [term.name for term in atom.terms if isinstance(term, Constant)]
        return self.graph.entity_id(names[0]) if names else NONE


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
    collector = _RuleCollector(graph, Skipped(malformed=list(rule_file.skipped)))
    rules: list[ScoredRule | ZeroRule] = [*rule_file.rules, *rule_file.zero]
    for scored in rules:
        collector.add(scored, f"{rule_file.path}:{scored.line}")
    return collector.mined(distinct), collector.skipped


# -- writing ---------------------------------------------------------------------------------------

# A name without anything that means something to AnyBURL's readers.
_PLAIN = re.compile(r"[^\s(),]+")
# What AnyBURL writes instead of a loop's other end.
LOOP = "me_myself_i"

# What would end a column or a line.
_SPLITS = re.compile(r"[\t\n\r]")
_OUR_SYNTAX = "write LogInfer's own syntax (--to arrow)"

# The head's variables, then those along the path, in the dialects that mined rules are written in.
_VARIABLES: dict[str, list[str | None]] = {"anyburl": [*"XYABC"], "arrow": [*"xyabc"]}
MINED_DIALECTS = tuple(_VARIABLES)


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
        raise UnknownNameError("dialect for mined rules", dialect, MINED_DIALECTS)
    writer, paths, arrow = dialect_named(dialect), mined.paths, dialect == "arrow"
    x, y, *between = _VARIABLES[dialect]
    relations, constants = _written_names(paths, graph, arrow)
    rows = paths.rows.tolist()
    measures = [column.tolist() for column in (paths.predictions, paths.correct, paths.confidence)]
    for index in mined.best_first.tolist():
        if index >= len(paths):
            yield _written(writer, mined.others[index - len(paths)])
            continue
        atoms = path_atoms(rows[index], x, y, between, relations.__getitem__, constants.__getitem__)
        if any(None in atom for atom in atoms):
            yield _carefully_written(writer, path_rule(paths, index, graph))
            continue
        predictions, correct, confidence = (column[index] for column in measures)
        text = _arrow_text(atoms) if arrow else _anyburl_text(atoms)
        yield f"{predictions}\t{correct}\t{confidence!r}\t{text}"


# Subject, relation and object as they are written; None for a name that could be misread.
_WrittenAtom: TypeAlias = tuple[str | None, str | None, str | None]


def _written_names(
    paths: RuleTable, graph: KnowledgeGraph, arrow: bool
) -> tuple[dict[int, str | None], dict[int, str | None]]:
    """Return the relations and constants of rules as the dialect writes them; None for one that could be misread."""

    def relation(number: int) -> str | None:
        name = graph.relations[number]
        if number == graph.type_relation:
            return "type" if arrow else RDF_TYPE
        if arrow:
            return quote(name)
        return name if _PLAIN.fullmatch(name) and name not in TYPE_NAMES else None

    def constant(number: int) -> str | None:
        name = graph.entities[number]
        if arrow:
            return quote(name)
        return name if _PLAIN.fullmatch(name) and len(name) > 1 and name != LOOP else None

    relations = np.unique(np.concatenate([paths.head, paths.body[paths.body != NONE] // 2]))
    constants = np.unique(np.concatenate([paths.head_constant, paths.end_constant]))
    return {r: relation(r) for r in relations.tolist()}, {c: constant(c) for c in constants.tolist() if c != NONE}


def _anyburl_text(atoms: list[_WrittenAtom]) -> str:
    head, *body = [f"{r}({s},{o})" for s, r, o in atoms]
    return f"{head} <= {', '.join(body)}"


def _arrow_text(atoms: list[_WrittenAtom]) -> str:
    head, *body = [f"({s},{r},{o})" for s, r, o in atoms]
    if not body:
        raise InputError(
            f"arrow cannot express a rule without a body that has a variable in its head: `{head}`",
            hint="write AnyBURL's format (--to anyburl), or leave such rules out",
        )
    return f"{', '.join(body)} -> {head}"


def _carefully_written(dialect: Dialect, rule: ScoredRule | ZeroRule) -> str:
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


# -- reading AnyBURL's files -----------------------------------------------------------------------

# An atom whose names cannot be misread.
PLAIN_ATOM = re.compile(r"([^\s(),]+)\(([^\s(),]+),([^\s(),]+)\)")
_DIGITS = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

# An atom: its relation, its constant (NONE without one), its ends as variables or " ", and the first name
# that the graph does not have with the reason for leaving the rule out.
_AtomIds: TypeAlias = tuple[int, int, str, tuple[str, str] | None]


def cut_line(line: str) -> tuple[int, int, float, list[str]] | None:
    """Cut a line into predictions, correct ones, confidence and the texts of the atoms, the head's first.

    None for a line that does not look as AnyBURL writes it. The atoms may be anything.
    """
    parts = line.split("\t")
    if len(parts) != 4:
        return None
    head, implied, body = parts[3].partition(" <= ")
    if not implied or not _DIGITS.fullmatch(parts[0]) or not _DIGITS.fullmatch(parts[1]):
        return None
    if not _NUMBER.fullmatch(parts[2]) or (confidence := float(parts[2])) > 1:
        return None
    texts = [head]
    body = body.rstrip()
    if body:
        # The bracket that is cut off belongs to the atom.
        *pieces, last = body.split("), ")
        texts += [f"{piece})" for piece in pieces]
        texts.append(last)
    return int(parts[0]), int(parts[1]), confidence, texts


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
    reader = _LineReader(graph, path)
    for number, line in enumerate(text.split("\n"), 1):
        if not reader.read_quickly(line, number) and line.strip():
            reader.read_carefully(line.removesuffix("\r"), number)
    return reader.collector.mined(distinct), reader.collector.skipped


class _LineReader:
    """Reads AnyBURL's rules line by line; remembers atoms and shapes that it has seen."""

    def __init__(self, graph: KnowledgeGraph, path: str) -> None:
        self.collector = _RuleCollector(graph, Skipped())
        self._path = path
        self._entities = {name: number for number, name in enumerate(graph.entities)}
        self._atoms: dict[str, _AtomIds | None] = {}
        self._shapes: dict[tuple[str, ...], PathShape | None] = {}

    def read_quickly(self, line: str, number: int) -> bool:
        """Read a line with names that cannot be misread; False if it is no such line."""
        cut = cut_line(line)
        if cut is None:
            return False
        predictions, correct, confidence, texts = cut
        atoms = []
        for text in texts:
            atom = self._atoms[text] if text in self._atoms else self._look_at_atom(text)
            if atom is None:
                return False
            atoms.append(atom)
        key = tuple([atom[2] for atom in atoms])
        shape = self._shapes[key] if key in self._shapes else self._look_at_shape(key)
        if shape is None:
            return False
        for _, _, _, unknown in atoms:
            if unknown is not None:
                self.collector.skipped.add(unknown[0], f"{self._path}:{number}: `{unknown[1]}`")
                return True
        end = atoms[1 + shape.steps[-1][0]][1] if shape.end else NONE
        steps = [2 * atoms[1 + i][0] + side for i, side in shape.steps]
        row = (atoms[0][0], shape.variables, atoms[0][1], end, *steps)
        self.collector.add_path(row, predictions, correct, confidence)
        return True

    def _look_at_atom(self, text: str) -> _AtomIds | None:
        match = PLAIN_ATOM.fullmatch(text)
        atom: _AtomIds | None = None
        if match and LOOP not in match.group(2, 3):
            name, *terms = match.groups()
            relation = relation_named(RDF_TYPE if name in TYPE_NAMES else name, self.collector.graph)
            unknown = (UNKNOWN_RELATION, name) if relation == ABSENT else None
            constant, variables = NONE, ""
            for term in terms:
                if term in _CAPITALS:
                    variables += term
                    continue
                variables += " "
                constant = self._entities.get(term, NONE)
                if constant == NONE and unknown is None:
                    unknown = (UNKNOWN_CONSTANT, term)
            atom = (relation, constant, variables, unknown)
        self._atoms[text] = atom
        return atom

    def _look_at_shape(self, key: tuple[str, ...]) -> PathShape | None:
        head, *body = [(None if atom[0] == " " else atom[0], None if atom[1] == " " else atom[1]) for atom in key]
        self._shapes[key] = shape = path_shape(head, body)
        return shape

    def read_carefully(self, line: str, number: int) -> None:
        """Read any line as the dialect does."""
        where = f"{self._path}:{number}"
        try:
            self.collector.add(ANYBURL.read_any(line, where, {}), where)
        except InputError as error:
            self.collector.skipped.malformed.append(str(error).partition("\n")[0])
