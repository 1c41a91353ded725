"""What a rule miner is, and what it finds.

Mined rules are path rules as arrays over the ids of one graph, and rules of other shapes by name; a fitted system
keeps them as arrays. A miner is a subclass of `Miner`, registered by its entry in systems.toml. Its mining goes on
step by step, so that it can be shown, stopped and resumed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark, Splits
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Constant, Rule, ScoredRule
from loginfer.logic.rule_files import parse_rules
from loginfer.settings import check_settings
from loginfer.systems.interface import Arrays, Checkpoint, Unwatched, Watch

if TYPE_CHECKING:
    from loginfer.systems.rules.scorer import RuleScorer


Ids: TypeAlias = npt.NDArray[np.int32]
Counts: TypeAlias = npt.NDArray[np.int64]

# Atoms in the body of a path rule, at most.
LONGEST = 3
# No constant, no further atom.
NONE = -1
# Which ends of a path rule's head are variables.
BOTH, SUBJECT, OBJECT = 0, 1, 2

# The columns of a `RuleTable`: the kind of number, and what stands there if nothing is given.
_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "head": (np.int32, NONE),
    "variables": (np.int8, BOTH),
    "head_constant": (np.int32, NONE),
    "end_constant": (np.int32, NONE),
    "body": (np.int32, NONE),
    "predictions": (np.int64, 0),
    "correct": (np.int64, 0),
    "confidence": (np.float64, 0),
}


@dataclass(frozen=True)
class RuleTable:
    """Path rules over the ids of a graph, one row each.

    A body is a path of directed relations 2·R + d: with d = 0 the step goes from subject to object, with
    d = 1 from object to subject. What is at both ends says which shape a rule has:

        cyclic   h(X,Y) ⇐ b1(X,A), b2(A,B), b3(B,Y)   variables BOTH; the path leads from X to Y
        AC1      h(X,c) ⇐ b1(X,A), b2(A,d)            variables SUBJECT, both constants
        AC2      h(X,c) ⇐ b1(X,A), b2(A,B)            variables SUBJECT, no `end_constant`
        zero     h(X,c) ⇐                             variables SUBJECT, empty body

    and the last three likewise as h(c,X) with variables OBJECT. The path of an acyclic rule starts at X.

    Parameters
    ----------
    head
        int32[m], the head's relation.
    variables
        int8[m]: BOTH, SUBJECT or OBJECT.
    head_constant, end_constant
        int32[m], NONE where there is none.
    body
        int32[m, LONGEST], directed relations, NONE behind the last.
    predictions, correct
        int64[m], as the miner counted them.
    confidence
        float64[m], what the rule is worth when it is applied.
    """

    head: Ids
    variables: npt.NDArray[np.int8]
    head_constant: Ids
    end_constant: Ids
    body: Ids
    predictions: Counts
    correct: Counts
    confidence: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.head)

    @cached_property
    def length(self) -> npt.NDArray[np.int64]:
        """int64[m], atoms in the body."""
        return np.asarray(np.count_nonzero(self.body != NONE, axis=1), dtype=np.int64)

    def take(self, selection: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> RuleTable:
        """Return some of the rules, by index or by mask."""
        return RuleTable(*(getattr(self, field.name)[selection] for field in fields(self)))

    @classmethod
    def empty(cls) -> RuleTable:
        """Return a table without rules."""
        return cls.of(head=[], variables=[], body=np.empty((0, LONGEST)))

    @classmethod
    def of(cls, *, head: npt.ArrayLike, body: npt.ArrayLike, **others: npt.ArrayLike) -> RuleTable:
        """Make a table; without `variables` all rules are cyclic, and other columns not given are NONE or 0.

        `body` may have fewer than `LONGEST` columns.
        """
        size = len(np.asarray(head))
        # Without rows, -1 could stand for any number of columns.
        short_bodies = np.asarray(body, dtype=np.int32).reshape(size, -1 if size else 0)
        bodies = np.full((size, LONGEST), NONE, dtype=np.int32)
        bodies[:, : short_bodies.shape[1]] = short_bodies
        columns = {name: np.full(size, default, dtype=kind) for name, (kind, default) in _COLUMNS.items()}
        given = {"head": head, "body": bodies, **others}
        return cls(**columns | {name: np.asarray(given[name], dtype=_COLUMNS[name][0]) for name in given})

    @classmethod
    def of_rows(
        cls, rows: Ids, predictions: npt.ArrayLike, correct: npt.ArrayLike, confidence: npt.ArrayLike
    ) -> RuleTable:
        """Make a table of rows like those of `rows`, and of the rules' measures."""
        columns = (*rows[:, :4].T, rows[:, 4:], predictions, correct, confidence)
        kinds = (kind for kind, _ in _COLUMNS.values())
        return cls(*(np.asarray(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))

    @property
    def rows(self) -> Ids:
        """int32[m, 4 + LONGEST]: head, variables, constants of the head and of the end, steps of the body."""
        return np.column_stack([self.head, self.variables, self.head_constant, self.end_constant, self.body])

    @classmethod
    def joined(cls, tables: Sequence[RuleTable]) -> RuleTable:
        """Return the rules of several tables, one after the other."""
        tables = (cls.empty(), *tables)
        return cls(*(np.concatenate([getattr(t, field.name) for t in tables]) for field in fields(cls)))

    @cached_property
    def best_first(self) -> Counts:
        """int64[m], the indices of all rules: by confidence, then correct predictions, then by what they are.

        The order does not depend on the order of the rows, so that files and scores do not either.
        """
        names = (*self.body.T[::-1], self.end_constant, self.head_constant, self.variables, self.head)
        return np.lexsort((*names, self.length, -self.correct, -self.confidence))

    def row(self, index: int) -> tuple[int, ...]:
        """Return head, variables, head constant, end constant and steps of one rule."""
        columns = (self.head, self.variables, self.head_constant, self.end_constant)
        return (*(int(column[index]) for column in columns), *self.body[index].tolist())


@dataclass(frozen=True)
class MinedRules:
    """What a miner has found, or a file holds.

    Parameters
    ----------
    paths
        Rules of AnyBURL's shapes.
    others
        Rules of any other shape, by name.
    distinct
        Whether different variables of a path rule stand for different entities, which differ from its
        constants too: so AnyBURL and RuleN count and apply theirs. Otherwise path rules mean what they say
        as Datalog. Other shapes always do.
    """

    paths: RuleTable
    others: tuple[ScoredRule, ...] = ()
    distinct: bool = True

    def __len__(self) -> int:
        return len(self.paths) + len(self.others)

    @cached_property
    def confidence(self) -> npt.NDArray[np.float64]:
        """float64[m], of path rules, then of the others; 1 for rules without a confidence."""
        others = [1.0 if rule.confidence is None else rule.confidence for rule in self.others]
        return np.concatenate([self.paths.confidence, np.array(others, dtype=np.float64)])

    @cached_property
    def best_first(self) -> Counts:
        """int64[m], the indices of all rules by confidence, the others counted behind the path rules.

        Of equal ones path rules come before others, each in the order that they have among themselves.
        """
        indices = np.concatenate([self.paths.best_first, np.arange(len(self.paths), len(self))])
        return np.asarray(indices[np.argsort(-self.confidence[indices], kind="stable")])


# The measures of the other rules; a rule may lack some, so these stand beside the text of the rules.
_MEASURES: dict[str, type[np.generic]] = {"predictions": np.int64, "correct": np.int64, "confidence": np.float64}
_HINT = "fit the system again"


def to_arrays(mined: MinedRules) -> dict[str, npt.NDArray[Any]]:
    """Return mined rules as arrays by name.

    Path rules are the columns of their table. The other rules are one text in LogInfer's own syntax, a rule
    a line, with their measures beside it: -1 or NaN for one that is not known. What else a file said about
    them (`ScoredRule.extra`) is not kept.
    """
    arrays: dict[str, npt.NDArray[Any]] = {
        field.name: np.ascontiguousarray(getattr(mined.paths, field.name)) for field in fields(RuleTable)
    }
    text = "".join(f"{scored.rule}\n" for scored in mined.others).encode()
    arrays["others"] = np.frombuffer(text, dtype=np.uint8).copy()
    for name, kind in _MEASURES.items():
        unknown = np.nan if kind is np.float64 else -1
        values = [getattr(scored, name) for scored in mined.others]
        arrays[f"others_{name}"] = np.array([unknown if v is None else v for v in values], dtype=kind)
    arrays["distinct"] = np.array([mined.distinct], dtype=np.uint8)
    return arrays


def from_arrays(arrays: Arrays) -> MinedRules:
    """Return the rules whose `to_arrays` these are.

    Raises
    ------
    InputError
        If the arrays cannot be those of mined rules.
    """
    head = _array(arrays, "head", np.int32)
    columns = {
        name: _array(arrays, name, kind, (len(head), LONGEST) if name == "body" else head.shape)
        for name, (kind, _) in _COLUMNS.items()
    }
    paths = RuleTable(**columns)
    _check(paths)
    distinct = _array(arrays, "distinct", np.uint8, (1,))
    return MinedRules(paths, _others(arrays), bool(distinct[0]))


def _others(arrays: Arrays) -> tuple[ScoredRule, ...]:
    try:
        text = _array(arrays, "others", np.uint8).tobytes().decode()
    except UnicodeDecodeError as error:
        raise InputError("the stored rules are damaged: `others` is no text", hint=_HINT) from error
    rules = parse_rules(text, "arrow", path="the stored rules").rules
    shape = (len(rules),)
    measures = [_array(arrays, f"others_{name}", kind, shape).tolist() for name, kind in _MEASURES.items()]
    return tuple(
        ScoredRule(
            scored.rule,
            None if predictions < 0 else predictions,
            None if correct < 0 else correct,
            None if np.isnan(confidence) else confidence,
        )
        for scored, predictions, correct, confidence in zip(rules, *measures, strict=True)
    )


def _array(arrays: Arrays, name: str, kind: type[np.generic], shape: tuple[int, ...] | None = None) -> npt.NDArray[Any]:
    array = arrays.get(name)
    if array is None:
        raise InputError(f"the stored rules are damaged: there is no `{name}`", hint=_HINT)
    if array.dtype != kind or array.ndim != (len(shape) if shape else 1) or (shape and array.shape != shape):
        raise InputError(f"the stored rules are damaged: `{name}` is {array.dtype}{list(array.shape)}", hint=_HINT)
    return array


def _check(paths: RuleTable) -> None:
    """Raise an error for a row that is no path rule."""
    body, constant = paths.body, paths.head_constant
    gaps = (body[:, :-1] == NONE) & (body[:, 1:] != NONE)
    acyclic = (paths.variables == SUBJECT) | (paths.variables == OBJECT)
    cyclic = paths.variables == BOTH
    sound = (
        (paths.head >= 0)
        & (body >= NONE).all(axis=1)
        & ~gaps.any(axis=1)
        & (paths.end_constant >= NONE)
        & ((cyclic & (constant == NONE) & (paths.end_constant == NONE)) | (acyclic & (constant >= 0)))
        & ((body[:, 0] != NONE) | (acyclic & (paths.end_constant == NONE)))
    )
    if not sound.all():
        raise InputError(f"the stored rules are damaged: row {int(np.argmin(sound))} is no path rule", hint=_HINT)


class Mining(ABC):
    """A mining that is under way.

    Whoever started it calls `advance` until that says False, and may ask in between, or after Ctrl-C, for
    the rules found so far.
    """

    @abstractmethod
    def advance(self) -> bool:
        """Do the next piece of work, about half a second of it; False if nothing is left to do."""

    @abstractmethod
    def rules(self) -> MinedRules:
        """Return the rules found so far."""

    @abstractmethod
    def progress(self) -> tuple[str, int, int | None]:
        """Return what is being done, how much of it is done, and how much there is (None: unknown)."""

    def checkpoint(self) -> Checkpoint | None:
        """Return what is needed to go on later; None if it is quicker to start again."""
        return None


@dataclass(frozen=True, kw_only=True)
class Miner(ABC):
    """A system that finds rules and scores triples with them.

    Subclasses have their settings as fields (see `loginfer.systems.registry`). One called `aggregation` says
    how the confidences of the rules that predict a triple become its score.
    """

    # Whether it compares positives with negatives, and cannot mine a bare graph.
    needs_negatives: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_settings(self)

    @abstractmethod
    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> Mining:
        """Begin to mine what may be seen of a benchmark, or go on from a checkpoint."""

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> RuleScorer:
        """Return what scores triples with the rules over P_train, and the context graph if there is one."""
        from loginfer.systems.rules.scorer import RuleScorer

        return RuleScorer(benchmark.seen, rules, getattr(self, "aggregation", "maximum"))

    def mine(self, benchmark: Benchmark, watch: Watch | None = None) -> MinedRules:
        """Mine to the end, starting from the watch's last checkpoint if it has one."""
        return self._finished(benchmark, watch).rules()

    def _finished(self, benchmark: Benchmark, watch: Watch | None) -> Mining:
        """Return a mining that has come to its end."""
        watch = watch or Unwatched()
        mining = self.begin(benchmark, watch.restore())
        while mining.advance():
            watch.progress(*mining.progress())
            if watch.due() and (state := mining.checkpoint()) is not None:
                watch.save(state)
        return mining

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> RuleScorer:
        """Mine the rules of a benchmark, and return what scores with them."""
        return self.scorer(benchmark, self.mine(benchmark, watch))

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> RuleScorer:
        """Return the scorer whose `arrays()` these are."""
        return self.scorer(benchmark, from_arrays(arrays))


def as_benchmark(graph: KnowledgeGraph, name: str) -> Benchmark:
    """Return a graph as a benchmark whose P_train it is, without negatives, for mining a bare graph."""
    nothing: Triples = np.empty((0, 3), dtype=np.int32)
    return Benchmark(name, graph, Splits(graph.triples, nothing, nothing), {})


# -- what AnyBURL's rules are worth when they are applied: less than their files say --------------------

# As AnyBURL has them.
PSEUDO_COUNT = 5.0
AC2_WEIGHT = 0.1
ZERO_WEIGHT = 0.01


def applied_confidence(
    table: RuleTable, *, pseudo: float = PSEUDO_COUNT, ac2: float = AC2_WEIGHT, zero: float = ZERO_WEIGHT
) -> npt.NDArray[np.float64]:
    """Return float64[m]: correct / (predictions + pseudo), times a weight for rules that say little.

    A rule without counts, as a file may hold, keeps the confidence it came with, weighted likewise.

    Parameters
    ----------
    table
        The rules, with the counts and confidences of AnyBURL's files.
    pseudo
        Wrong predictions that every rule is taken to have besides those that were seen.
    ac2
        Weight of h(X,c) ⇐ b1(X,A), …, bn(·,B).
    zero
        Weight of h(X,c) with an empty body.
    """
    predictions = table.predictions.astype(np.float64)
    counted = table.predictions > 0
    confidence = np.where(counted, table.correct / np.where(counted, predictions + pseudo, 1.0), table.confidence)
    acyclic = table.variables != BOTH
    confidence[acyclic & (table.length > 0) & (table.end_constant == NONE)] *= ac2
    confidence[table.length == 0] *= zero
    return np.asarray(confidence, dtype=np.float64)


def applied(
    rules: MinedRules, *, pseudo: float = PSEUDO_COUNT, ac2: float = AC2_WEIGHT, zero: float = ZERO_WEIGHT
) -> MinedRules:
    """Return the same rules, with the confidences that `applied_confidence` gives them.

    Rules of other shapes, such as those about loops, are weighted by the same formula.
    """
    table = rules.paths
    weighted = replace(table, confidence=applied_confidence(table, pseudo=pseudo, ac2=ac2, zero=zero))
    return replace(rules, paths=weighted, others=_applied_others(rules.others, pseudo, ac2))


def _applied_others(rules: Sequence[ScoredRule], pseudo: float, ac2: float) -> tuple[ScoredRule, ...]:
    weighted = []
    for scored in rules:
        confidence = scored.confidence or 0.0
        if scored.predictions and scored.correct is not None:
            confidence = scored.correct / (scored.predictions + pseudo)
        weighted.append(replace(scored, confidence=confidence * (ac2 if _says_little(scored.rule) else 1.0)))
    return tuple(weighted)


def _says_little(rule: Rule) -> bool:
    """Say whether a rule is about one variable, and anything may be at the end of its path."""
    last = rule.atoms[-1]
    loop = last.subject == last.object
    return len(rule.head.variables) == 1 and not loop and not any(isinstance(t, Constant) for t in last.terms)
