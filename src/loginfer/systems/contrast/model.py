"""What is learnt about the heads, as a scorer: an intercept and weighted bodies make the log-odds of a triple."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine import Engine, open_engine
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Constant, ScoredRule
from loginfer.logic.rule_files import format_rules, parse_rules
from loginfer.systems.contrast.fit import NO_TYPE, Head, rows_by_head
from loginfer.systems.contrast.kernels import Bodies, TypedGraph, add_where_fired, fired, typed_graph
from loginfer.systems.interface import Arrays, FiringRule, Position
from loginfer.systems.rules.paths import new_scratch


@dataclass(frozen=True, slots=True)
class WeightedBody:
    """A body of a head's model.

    Parameters
    ----------
    code
        The body (see `Bodies`).
    weight
        What it adds to the log-odds where it fires.
    correct, predictions
        For how many positives of train it fires, and for how many rows of train altogether.
    """

    code: int
    weight: float
    correct: int
    predictions: int


@dataclass(frozen=True, slots=True)
class HeadModel:
    """The log-odds of (x, head, y): the intercept plus the weights of the bodies that fire.

    Parameters
    ----------
    head
        The head.
    intercept
        The log-odds where no body fires.
    bodies
        The bodies, largest weight first.
    """

    head: Head
    intercept: float
    bodies: tuple[WeightedBody, ...]


def scored_rules(models: Iterable[HeadModel], bodies: Bodies) -> tuple[ScoredRule, ...]:
    """Return the rules of all models, each with its weight and its head's intercept."""
    return tuple(
        ScoredRule(
            bodies.rule(body.code, model.head.relation, model.head.type),
            body.predictions,
            body.correct,
            body.correct / max(body.predictions, 1),
            (("weight", repr(body.weight)), ("intercept", repr(model.intercept))),
        )
        for model in models
        for body in model.bodies
    )


def head_of(scored: ScoredRule, graph: KnowledgeGraph) -> Head:
    """Return the head of a rule as ids of a graph."""
    head = scored.rule.head
    if not head.is_type:
        return Head(graph.relation_id(str(head.relation)))
    if graph.type_relation is None or not isinstance(head.object, Constant):
        raise InputError(f"the graph has no types, but `{scored.rule}` predicts one")
    return Head(graph.type_relation, graph.entity_id(head.object.name))


def models_of(
    rules: Sequence[ScoredRule], graph: KnowledgeGraph, intercepts: Mapping[Head, float] | None = None
) -> tuple[tuple[HeadModel, ...], Bodies]:
    """Return the models that weighted rules make up, and the bodies that they use.

    Parameters
    ----------
    rules
        Rules with the measure `weight`, and `intercept` where that is not given otherwise.
    graph
        The graph they are applied to.
    intercepts
        Of heads; also of those that have no rules.

    Raises
    ------
    InputError
        If a rule has no weight.
    """
    built_in = Bodies(graph)
    given_rules = tuple(scored.rule for scored in rules if built_in.code_of(scored.rule) is None)
    bodies = Bodies(graph, given_rules)
    weighted: dict[Head, list[WeightedBody]] = {head: [] for head in intercepts or {}}
    constants = dict(intercepts or {})
    for scored in rules:
        measures = dict(scored.extra)
        try:
            weight, intercept = float(measures["weight"]), float(measures.get("intercept", "0"))
        except (KeyError, ValueError):
            raise InputError(
                f"`{scored.rule}` has no weight, which contrast needs", hint="write # weight=1.5 behind the rule"
            ) from None
        head = head_of(scored, graph)
        constants.setdefault(head, intercept)
        code = bodies.code_of(scored.rule)
        if code is None:
            code = bodies.given_code(scored.rule)
        body = WeightedBody(code, weight, scored.correct or 0, scored.predictions or 0)
        weighted.setdefault(head, []).append(body)
    models = (HeadModel(head, constants[head], in_order(weighted[head], bodies)) for head in sorted(weighted))
    return tuple(models), bodies


def in_order(weighted: Iterable[WeightedBody], bodies: Bodies) -> tuple[WeightedBody, ...]:
    """Return bodies in the order in which their weights are added: those that an engine evaluates last."""
    return tuple(sorted(weighted, key=lambda body: (bodies.is_given(body.code), -body.weight, body.code)))


Ids: TypeAlias = npt.NDArray[np.int32]
Values: TypeAlias = npt.NDArray[np.float64]

# The log-odds of a triple whose head has no model: nothing speaks for it.
NEVER = -100.0
# Starts whose ends are scored together, each with a row of all constants.
BLOCK = 64


class ContrastScorer:
    """Scores triples with the models of their heads.

    A score is the log-odds that a triple is true: the intercept of its head and the weights of the rules
    whose bodies fire over P_train. Probability ½ is 0 for all heads alike.

    Parameters
    ----------
    graph
        P_train.
    models
        The models, one for a head.
    bodies
        What their codes mean.
    """

    never = NEVER

    def __init__(self, graph: KnowledgeGraph, models: tuple[HeadModel, ...], bodies: Bodies) -> None:
        self.graph = graph
        self.models = {model.head: model for model in models}
        self.bodies = bodies
        self._conclusions: dict[tuple[int, int], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}

    @classmethod
    def of_rules(cls, graph: KnowledgeGraph, rules: tuple[ScoredRule, ...]) -> ContrastScorer:
        """Return the scorer of rules that have `weight` and `intercept` among their measures."""
        return cls(graph, *models_of(rules, graph))

    @cached_property
    def rules(self) -> tuple[ScoredRule, ...]:
        """All rules, head by head."""
        return scored_rules(self.models.values(), self.bodies)

    # -- triples ------------------------------------------------------------------------------------

    def score(self, triples: Triples) -> Values:
        """Return float64[n], the log-odds of each triple."""
        scores = np.full(len(triples), NEVER)
        for head, rows in rows_by_head(triples, self.graph.type_relation).items():
            if head in self.models:
                model = self.models[head]
                scores[rows] = self._margins(model, self._fired(model, triples[rows]))
        return scores

    def explain(self, triple: Sequence[int]) -> list[FiringRule]:
        """Return the rules that fire for a triple with their weights, largest first."""
        triples = np.array([triple], dtype=np.int32)
        for head in rows_by_head(triples, self.graph.type_relation):
            if head in self.models:
                model = self.models[head]
                fires = self._fired(model, triples)[0]
                rules = scored_rules([model], self.bodies)
                firing = [
                    FiringRule(rule, body.weight)
                    for rule, body, fire in zip(rules, model.bodies, fires, strict=True)
                    if fire
                ]
                return sorted(firing, key=lambda rule: -rule.confidence)
        return []

    def _margins(self, model: HeadModel, fires: npt.NDArray[np.bool_]) -> Values:
        # One body after the other, as for candidates, so that the sums are the same to the last bit.
        margins = np.full(len(fires), model.intercept)
        for j, body in enumerate(model.bodies):
            margins[fires[:, j]] += body.weight
        return margins

    def _fired(self, model: HeadModel, triples: Triples) -> npt.NDArray[np.bool_]:
        """Return bool[n, m]: which bodies fire for which triples of the model's head."""
        out = np.zeros((len(triples), len(model.bodies)), dtype=np.bool_)
        pairs = np.ascontiguousarray(triples[:, [0, 2]])
        fired(pairs, self._codes(model), -1, self.bodies.absent, self._kernel_graph, out)
        columns = [j for j, body in enumerate(model.bodies) if self.bodies.is_given(body.code)]
        if columns:
            rules = [self.bodies.rule(model.bodies[j].code, model.head.relation, model.head.type) for j in columns]
            derivations = self._engine.derivations(rules, np.ascontiguousarray(triples))
            out[derivations.triple, np.array(columns)[derivations.rule]] = True
        return out

    # -- candidates ---------------------------------------------------------------------------------

    def score_candidates(self, triples: Triples, position: Position, candidates: Ids) -> Values:
        """Return float64[n, c]: the scores of each triple with each candidate in that position."""
        if position == "relation":
            return self._relations(triples, candidates)
        scores = np.full((len(triples), len(candidates)), NEVER)
        column = 2 if position == "object" else 0
        for relation in np.unique(triples[:, 1]):
            rows = np.flatnonzero(triples[:, 1] == relation)
            if relation == self.graph.type_relation:
                scores[rows] = self._one_by_one(triples[rows], column, candidates)
            elif Head(int(relation)) in self.models:
                model = self.models[Head(int(relation))]
                starts, start_of = np.unique(triples[rows, 2 - column], return_inverse=True)
                for block, margins in self._ends(model, starts, turned=column == 0):
                    in_block = np.flatnonzero((start_of >= block) & (start_of < block + len(margins)))
                    scores[rows[in_block]] = margins[start_of[in_block] - block][:, candidates]
        return scores

    def _relations(self, triples: Triples, candidates: Ids) -> Values:
        scores = np.full((len(triples), len(candidates)), NEVER)
        changed = triples.copy()
        for column, relation in enumerate(candidates):
            changed[:, 1] = relation
            scores[:, column] = self.score(changed)
        return scores

    def _one_by_one(self, triples: Triples, column: int, candidates: Ids) -> Values:
        """Score type triples with each candidate: subjects for a type, or types for a subject."""
        distinct, row_of = np.unique(triples[:, 2 - column], return_inverse=True)
        scores = np.full((len(distinct), len(candidates)), NEVER)
        types = {head.type for head in self.models if head.type != NO_TYPE}
        useful = np.arange(len(candidates))
        if column == 2:
            useful = np.flatnonzero(np.isin(candidates, list(types)))
        rows = np.empty((len(useful), 3), dtype=np.int32)
        rows[:, 1], rows[:, column] = self.graph.type_relation or 0, candidates[useful]
        for row, other in enumerate(distinct):
            rows[:, 2 - column] = other
            scores[row, useful] = self.score(rows)
        return np.asarray(scores[row_of])

    def _ends(self, model: HeadModel, starts: Ids, *, turned: bool) -> Iterator[tuple[int, Values]]:
        """Yield blocks of starts: where they begin, and float64[b, e], the margins of all ends."""
        codes = self._codes(model)
        if turned:
            codes = self.bodies.turned(codes)
        weights = np.array([body.weight for body in model.bodies])
        scratch = new_scratch(len(self.graph.entities))
        for begin in range(0, len(starts), BLOCK):
            block = np.ascontiguousarray(starts[begin : begin + BLOCK])
            margins = np.full((len(block), len(self.graph.entities)), model.intercept)
            add_where_fired(block, codes, weights, self._kernel_graph, scratch, margins)
            for body in model.bodies:
                if self.bodies.is_given(body.code):
                    first, second = self._given_pairs(model, body.code, turned)
                    low, high = np.searchsorted(first, block), np.searchsorted(first, block, side="right")
                    for row in range(len(block)):
                        margins[row, second[low[row] : high[row]]] += body.weight
            yield begin, margins

    # -- what is looked up --------------------------------------------------------------------------

    @cached_property
    def _kernel_graph(self) -> TypedGraph:
        return typed_graph(self.graph)

    @cached_property
    def _engine(self) -> Engine:
        return open_engine(self.graph)

    def _codes(self, model: HeadModel) -> npt.NDArray[np.int64]:
        return self.bodies.unpack(np.array([body.code for body in model.bodies], dtype=np.int64))

    def _given_pairs(
        self, model: HeadModel, code: int, turned: bool
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return subjects and objects of a given rule's conclusions, sorted by where one starts."""
        key = (code, int(turned))
        if key not in self._conclusions:
            rule = self.bodies.rule(code, model.head.relation, model.head.type)
            conclusions = self._engine.conclusions(rule).astype(np.int64)
            first, second = (conclusions[:, 2], conclusions[:, 0]) if turned else (conclusions[:, 0], conclusions[:, 2])
            order = np.lexsort((second, first))
            self._conclusions[key] = first[order], second[order]
        return self._conclusions[key]

    # -- kept ---------------------------------------------------------------------------------------

    def arrays(self) -> Arrays:
        """Return the rules as text, and the heads with their intercepts."""
        heads = [(head.relation, head.type) for head in self.models]
        return {
            "rules": np.frombuffer(format_rules(self.rules).encode("utf-8"), dtype=np.uint8).copy(),
            "heads": np.array(heads, dtype=np.int64).reshape(-1, 2),
            "intercepts": np.array([model.intercept for model in self.models.values()], dtype=np.float64),
        }

    @classmethod
    def from_arrays(cls, graph: KnowledgeGraph, arrays: Arrays) -> ContrastScorer:
        """Return the scorer whose `arrays()` these are."""
        rules = parse_rules(arrays["rules"].tobytes().decode("utf-8"), "arrow").rules
        heads = [Head(int(relation), int(type_)) for relation, type_ in arrays["heads"]]
        intercepts = dict(zip(heads, map(float, arrays["intercepts"]), strict=True))
        return cls(graph, *models_of(rules, graph, intercepts))
