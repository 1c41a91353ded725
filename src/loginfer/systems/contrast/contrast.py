"""Contrast: bodies that tell the positives of a head from its negatives, weighed by logistic regression.

One model for each head relation, and for each type. Positives are triples of P_train, each hidden from the
graph while its own bodies are sought; negatives those of N_train. Where a head has hardly any, positives with
a random subject or object stand in for them. The search goes from small bodies to large ones, and only as far
as valid shows that it must:

1. edges, paths of two steps and intersections, edges with a type; for types whatever is next to the subject;
2. triangles around the edges on which most is lost;
3. diamonds around those edges, and paths of three steps where there is no edge.

All bodies that a few positives have are proposed, counted on a sample of rows, and kept by contrast. Then
all rows say what the kept ones are worth: logistic regression with an L1 penalty and weights that are not
negative, so that every rule in the list speaks for its head. The parts of a conjunction can do so together,
too, by adding up; that is why the search stops, and a fit is preferred, by what the strongest rule that fires
tells alone. Penalty, intercept and which rules can be spared are chosen on valid. A score is the log-odds of
a triple, comparable across heads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark, NegativeSet
from loginfer.engine import Engine, open_engine
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.patterns import instantiate, parse_pattern
from loginfer.logic.rule import Constant, Pattern, Rule
from loginfer.settings import setting
from loginfer.systems.contrast.fit import NO_TYPE, Design, Fit, Head, HeadRows, all_rows, asked_heads, fit, pruned
from loginfer.systems.contrast.kernels import GIVEN, TRAIN_POSITIVE, Bodies, BodyCounter, typed_graph
from loginfer.systems.contrast.model import ContrastScorer, HeadModel, WeightedBody, in_order, scored_rules
from loginfer.systems.contrast.search import Search
from loginfer.systems.interface import Arrays, Checkpoint, Unwatched, Watch
from loginfer.systems.rules.mined import MinedRules, Miner, Mining, RuleTable


@dataclass(frozen=True, kw_only=True)
class Contrast(Miner):
    """Looks for bodies that tell the positives of a relation from its negatives, and weighs a short list."""

    needs_negatives = True

    positives: int = setting(6000, "triples of P_train for each head, at most", least=1)
    negatives: int = setting(20_000, "triples of N_train for each head, at most", least=1)
    proposers: int = setting(30, "positives whose bodies are looked at", least=1)
    candidates: int = setting(400, "bodies that are weighed for each head", least=1, most=30_000)
    enough: float = setting(0.985, "share of valid that must be right to stop looking", least=0, most=1)
    patterns: str = setting("", "further patterns, names or texts, separated by `;`")
    bodies: int = setting(500, "bodies of each further pattern, those with the largest support", least=1)
    seed: int = setting(0, "seed of all that is random", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> ContrastMining:
        """Begin to learn from what may be seen of a benchmark.

        Raises
        ------
        InputError
            If it has no negatives.
        """
        return ContrastMining(self, benchmark)

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> ContrastScorer:  # type: ignore[override]
        """Learn the models of all heads, and return what scores with them."""
        watch = watch or Unwatched()
        mining = self.begin(benchmark)
        while mining.advance():
            watch.progress(*mining.progress())
        return mining.scorer()

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> ContrastScorer:  # type: ignore[override]
        """Return what scores triples with mined rules that have weights and intercepts, as from a file."""
        return ContrastScorer.of_rules(benchmark.seen, rules.others)

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> ContrastScorer:  # type: ignore[override]
        """Return the scorer whose `arrays()` these are."""
        return ContrastScorer.from_arrays(benchmark.seen, arrays)


# Into how many parts the positives are cut that are hidden together.
FOLDS = 4


def parse_patterns(texts: str) -> tuple[Pattern, ...]:
    """Read patterns, by name or as text, separated by semicolons."""
    parts = (text.strip() for text in texts.split(";"))
    return tuple(parse_pattern(text, where="patterns") for text in parts if text)


def given_rules(
    graph: KnowledgeGraph, patterns: tuple[Pattern, ...], heads: tuple[Head, ...], most: int
) -> tuple[Rule, ...]:
    """Return instances of patterns with these heads: the `most` bodies of each with the largest support."""
    engine = open_engine(graph)
    found: dict[Rule, None] = {}
    for pattern in patterns:
        bodies = engine.rank_bodies(pattern, most, complete=False)
        names = [
            graph.entities if pattern.is_type_template(template) else graph.relations for template in pattern.templates
        ]
        wanted = [head for head in heads if (head.type != NO_TYPE) == pattern.head.is_type]
        for row in bodies.predicates:
            predicates = [vocabulary[int(id_)] for vocabulary, id_ in zip(names, row, strict=True)]
            for rule in _instances(graph, pattern, predicates, wanted):
                found.setdefault(rule)
    return tuple(found)


def _instances(graph: KnowledgeGraph, pattern: Pattern, predicates: list[str], heads: Iterable[Head]) -> Iterable[Rule]:
    if pattern.head_in_body:
        rule = instantiate(pattern, predicates)
        if any(_is_head(graph, rule, head) for head in heads):
            yield rule
        return
    for head in heads:
        name = graph.relations[head.relation] if head.type == NO_TYPE else graph.entities[head.type]
        yield instantiate(pattern, predicates, name)


def _is_head(graph: KnowledgeGraph, rule: Rule, head: Head) -> bool:
    if head.type == NO_TYPE:
        return str(rule.head.relation) == graph.relations[head.relation]
    return rule.head.object == Constant(graph.entities[head.type])


@dataclass(frozen=True)
class GivenPatterns:
    """Evaluates instances of the user's patterns for the rows of a head.

    A positive must not be explained by itself. Bodies that cannot use it, since the head's predicate is not
    in them, are evaluated over the whole graph; the others for one part of the positives after the other,
    over the graph without that part.
    """

    bodies: Bodies

    @cached_property
    def _engine(self) -> Engine:
        return open_engine(self.bodies.graph)

    def design(self, rows: HeadRows) -> Design:
        """Return where the given rules with this head fire."""
        graph, head = self.bodies.graph, rows.head
        numbers = [n for n, rule in enumerate(self.bodies.given) if _is_head(graph, rule, head)]
        triples = np.empty((len(rows), 3), dtype=np.int32)
        triples[:, 0], triples[:, 1], triples[:, 2] = rows.pairs[:, 0], head.relation, rows.pairs[:, 1]
        looping = [n for n in numbers if _uses_its_head(self.bodies.given[n])]
        free = [n for n in numbers if n not in set(looping)]
        pairs = [self._fired(self._engine, free, triples, np.arange(len(rows)))]
        if looping:
            hidden = rows.groups == TRAIN_POSITIVE
            pairs.append(self._fired(self._engine, looping, triples, np.flatnonzero(~hidden)))
            for fold in range(FOLDS):
                places = np.flatnonzero(hidden)[fold::FOLDS]
                engine = open_engine(_without(graph, triples[places]))
                pairs.append(self._fired(engine, looping, triples, places))
        joined = np.concatenate(pairs)
        joined = joined[np.lexsort((joined[:, 1], joined[:, 0]))]
        used, columns = np.unique(joined[:, 1], return_inverse=True)
        codes = np.array([self.bodies.pack(GIVEN, int(n)) for n in used], dtype=np.int64)
        return Design.of_pairs(codes, np.stack([joined[:, 0], columns], axis=1).astype(np.int32), len(rows))

    def _fired(
        self, engine: Engine, numbers: list[int], triples: Triples, places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return int64[k, 2]: rows and numbers of given rules that derive them."""
        if not numbers or not len(places):
            return np.empty((0, 2), dtype=np.int64)
        found = engine.derivations([self.bodies.given[n] for n in numbers], triples[places])
        return np.stack([places[found.triple], np.array(numbers)[found.rule]], axis=1)


def _uses_its_head(rule: Rule) -> bool:
    return any(atom.relation == rule.head.relation for atom in rule.atoms)


def _without(graph: KnowledgeGraph, triples: Triples) -> KnowledgeGraph:
    hidden = np.isin(graph.packed, graph.keys.pack(triples))
    return graph.with_triples(graph.triples[~hidden])


# How many different bodies one head may propose.
TABLE = 2**18


def training_negatives(benchmark: Benchmark) -> NegativeSet:
    """Return the negatives to learn from.

    Raises
    ------
    InputError
        If there are none.
    """
    for negatives in benchmark.negatives.values():
        if len(negatives.splits.train):
            return negatives
    raise InputError(
        f"contrast learns from negatives, and {benchmark.name} has none to learn from",
        hint="give a benchmark with N_train, or mine the positives alone: --miner exact",
    )


class ContrastMining(Mining):
    """Mining under way: each step learns the model of one head."""

    def __init__(self, settings: Contrast, benchmark: Benchmark) -> None:
        negatives = training_negatives(benchmark)
        self._graph = benchmark.graph
        self._seen = benchmark.seen
        self._enough = settings.enough
        heads = asked_heads(benchmark, negatives)
        patterns = parse_patterns(settings.patterns)
        given = given_rules(self._graph, patterns, heads, settings.bodies) if patterns else ()
        self.bodies = Bodies(self._graph, given)
        self.bodies.check()
        self._given = GivenPatterns(self.bodies) if given else None
        self._search = Search(
            self.bodies,
            typed_graph(self._graph),
            BodyCounter(TABLE),
            proposers=settings.proposers,
            candidates=settings.candidates,
        )
        limits = (settings.positives, settings.negatives)
        self._rows = all_rows(benchmark, negatives, heads, limits, settings.seed)
        self._heads = len(heads)
        self.models: list[HeadModel] = []

    def advance(self) -> bool:
        """Learn the next head; False if there is none left."""
        rows = next(self._rows, None)
        if rows is None:
            return False
        self.models.append(self._learn(rows))
        return len(self.models) < self._heads

    def _learn(self, rows: HeadRows) -> HeadModel:
        """Return the model of a head: search, fit, search again where that was not enough, and prune."""
        extra = None if self._given is None else self._given.design(rows)
        design = self._search.small(rows)
        best = self._fitted(design, extra, rows, None)
        # The largest twice: what the first time explains, the second does not look at.
        for more in (self._search.triangles, self._search.threes, self._search.threes):
            if rows.head.type != NO_TYPE or best.alone >= self._enough:
                break
            design = Design.joined(design, more(rows, best.losses(rows)))
            best = self._fitted(design, extra, rows, best)
        return self._model(pruned(best, rows), rows)

    def _fitted(self, design: Design, extra: Design | None, rows: HeadRows, best: Fit | None) -> Fit:
        if extra is not None:
            design = Design.joined(design, extra)
        design = design.without_repetition(self.bodies.atoms(design.codes))
        return fit(design, self.bodies.atoms(design.codes), rows, best)

    def _model(self, best: Fit, rows: HeadRows) -> HeadModel:
        train = rows.train.astype(np.float64)
        predictions = best.design.sums(train)
        correct = best.design.sums(np.where(rows.signs > 0, train, 0.0))
        bodies = [
            WeightedBody(int(code), float(weight), int(right), int(all_))
            for code, weight, right, all_ in zip(best.design.codes, best.weights, correct, predictions, strict=True)
        ]
        return HeadModel(rows.head, best.intercept, in_order(bodies, self.bodies))

    def rules(self) -> MinedRules:
        """Return the rules of the heads learnt so far."""
        return MinedRules(RuleTable.empty(), scored_rules(self.models, self.bodies), distinct=False)

    def scorer(self) -> ContrastScorer:
        """Return what scores with the models learnt so far."""
        return ContrastScorer(self._seen, tuple(self.models), self.bodies)

    def progress(self) -> tuple[str, int, int | None]:
        """Return how many heads are learnt, of how many."""
        return "learning heads", len(self.models), self._heads
