"""Path rules as arrays: the input for entailment by very many mined rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.logic.rule import Atom, Rule
from loginfer.logic.terms import Constant, Term, Variable

__all__ = ["BOTH", "NONE", "OBJECT", "SUBJECT", "PathRules"]

Ids: TypeAlias = npt.NDArray[np.int32]

# No constant, no further atom.
NONE = -1
# Which places of the head are variables.
BOTH, SUBJECT, OBJECT = 0, 1, 2
# Atoms in a body, at most, of rules that are given as rules.
LONGEST = 3


@dataclass(frozen=True)
class PathRules:
    """Rules whose bodies are paths, as codes.

    Parameters
    ----------
    head
        int32[m], the head's relation R.
    variables
        int8[m]: BOTH for h(X,Y), where the path leads from X to Y; SUBJECT for h(X,c) and OBJECT for h(c,X),
        where it starts at X.
    head_constant, end_constant
        int32[m]: c, and the constant at the end of the path of h(X,c) or h(c,X); NONE where there is none.
    body
        int32[m, k], directed relations 2·R + d: with d = 0 a step goes from subject to object, with d = 1
        from object to subject. NONE behind the last. A row without any is no rule and is passed over.
    relations, constants
        The names.
    """

    head: Ids
    variables: npt.NDArray[np.int8]
    head_constant: Ids
    end_constant: Ids
    body: Ids
    relations: Sequence[str]
    constants: Sequence[str]
    texts: Callable[[int], Rule] | None = None

    def __post_init__(self) -> None:
        size = len(self.head)
        for name in ("variables", "head_constant", "end_constant", "body"):
            if len(getattr(self, name)) != size:
                raise InputError(f"`{name}` has {len(getattr(self, name))} rows, `head` has {size}")
        if not size:
            return
        for name, limit, least in (
            ("head", len(self.relations), 0),
            ("body", 2 * len(self.relations), NONE),
            ("variables", OBJECT + 1, BOTH),
            ("head_constant", len(self.constants), NONE),
            ("end_constant", len(self.constants), NONE),
        ):
            column = getattr(self, name)
            if column.size and (int(column.min()) < least or int(column.max()) >= limit):
                raise InputError(f"a code in `{name}` is not between {least} and {limit - 1}")
        if bool(((self.variables != BOTH) & (self.head_constant == NONE)).any()):
            raise InputError("a rule with one variable in its head has no `head_constant`")

    def __len__(self) -> int:
        return len(self.head)

    def rule(self, place: int) -> Rule:
        """Return one of the rules."""
        if self.texts is not None:
            return self.texts(place)
        path = [int(code) for code in self.body[place] if code >= 0]
        inner = [Variable(f"a{i}") for i in range(1, len(path))]
        nodes: list[Term] = [Variable("x"), *inner, Variable("y")]
        variables = int(self.variables[place])
        end = int(self.end_constant[place])
        if variables != BOTH and end >= 0:
            nodes[-1] = Constant(self.constants[end])
        body = []
        for step, code in enumerate(path):
            ends = (nodes[step], nodes[step + 1]) if code % 2 == 0 else (nodes[step + 1], nodes[step])
            body.append(Atom(ends[0], self.relations[code // 2], ends[1]))
        other: Term = (
            nodes[-1] if variables == BOTH else Constant(self.constants[int(self.head_constant[place])])
        )
        subject, object_ = (other, nodes[0]) if variables == OBJECT else (nodes[0], other)
        return Rule(body, Atom(subject, self.relations[int(self.head[place])], object_))

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> tuple[PathRules, list[Rule]]:
        """Return the path rules among some, of up to three atoms, and the others."""
        relations: dict[str, int] = {}
        constants: dict[str, int] = {}
        rows: list[list[int]] = []
        kept: list[Rule] = []
        others: list[Rule] = []

        def constant(term: Term | None) -> int:
            return NONE if term is None else constants.setdefault(term.name, len(constants))

        for rule in rules:
            found = _as_path(rule)
            if found is None:
                others.append(rule)
                continue
            variables, path, head_constant, end = found
            codes = [2 * relations.setdefault(r, len(relations)) + d for r, d in path]
            codes += [NONE] * (LONGEST - len(codes))
            head = relations.setdefault(str(rule.head.relation), len(relations))
            rows.append([head, variables, constant(head_constant), constant(end), *codes])
            kept.append(rule)
        table = np.array(rows, dtype=np.int32).reshape(-1, 4 + LONGEST)
        head_, kinds, heads, ends = (np.ascontiguousarray(column) for column in table[:, :4].T)
        body = np.ascontiguousarray(table[:, 4:])
        made = cls(
            head_,
            kinds.astype(np.int8),
            heads,
            ends,
            body,
            list(relations),
            list(constants),
            kept.__getitem__,
        )
        return made, others


_Path: TypeAlias = tuple[int, list[tuple[str, int]], Term | None, Term | None]


def _as_path(rule: Rule) -> _Path | None:
    """Return variables, directed relations, head constant and end of a path rule; None for other shapes."""
    if rule.inequalities or rule.negations or not 1 <= len(rule.atoms) <= LONGEST:
        return None
    subject, object_ = rule.head.terms
    if isinstance(subject, Variable):
        start, other = subject, object_
    elif isinstance(object_, Variable):
        start, other = object_, subject
    else:
        return None
    if start == other:
        return None
    cyclic = isinstance(other, Variable)
    walked = _walk(rule, start, other if cyclic else None)
    if walked is None:
        return None
    path, end = walked
    if cyclic:
        return (BOTH, path, None, None) if end == other else None
    return SUBJECT if start == subject else OBJECT, path, other, end if isinstance(end, Constant) else None


def _walk(rule: Rule, start: Variable, last: Term | None) -> tuple[list[tuple[str, int]], Term] | None:
    """Return the path from a variable through all atoms, and where it ends."""
    remaining = list(rule.atoms)
    path: list[tuple[str, int]] = []
    here: Term = start
    visited: set[Term] = {start}
    while remaining:
        fitting = [atom for atom in remaining if here in atom.terms]
        if len(fitting) != 1 or isinstance(here, Constant) or here == last:
            return None
        (atom,) = fitting
        remaining.remove(atom)
        direction = 0 if atom.subject == here else 1
        here = atom.terms[1 - direction]
        if here in visited:
            return None
        visited.add(here)
        path.append((str(atom.relation), direction))
    return path, here
