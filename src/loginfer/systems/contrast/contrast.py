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
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark, NegativeSet
from loginfer.engine import Engine, open_engine
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.patterns import instantiate, parse_pattern
from loginfer.logic.rule import Constant, Pattern, Rule
from loginfer.settings import setting
from loginfer.systems.contrast import kernels
from loginfer.systems.contrast.fit import NO_TYPE, Design, Fit, Head, HeadRows, all_rows, asked_heads, fit, pruned
from loginfer.systems.contrast.kernels import GIVEN, TRAIN_POSITIVE, Bodies, BodyCounter, Table, TypedGraph, typed_graph
from loginfer.systems.contrast.model import ContrastScorer, HeadModel, WeightedBody, in_order, scored_rules
from loginfer.systems.interface import Arrays, Checkpoint, Watch
from loginfer.systems.rules.mined import MinedRules, Miner, Mining, RuleTable

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Pairs: TypeAlias = npt.NDArray[np.int32]

# For how many positives of train a body must fire.
FEWEST = 3
# How many positives of valid the rate among the positives of train counts for.
SHRINKAGE = 5
# Which shapes are sought first.
SMALL = (kernels.EDGE, kernels.PATH2, kernels.BOTH, kernels.EDGE_TYPE, kernels.TYPED)
# Around how many edges larger bodies are sought, and how many triangles and diamonds are kept for each.
EDGES, TRIANGLES, DIAMONDS = 8, 25, 12
_NO_PAIRS = np.empty((0, 2), dtype=np.int32)


@dataclass(frozen=True)
class Search:
    """The search for bodies over one graph.

    Parameters
    ----------
    bodies, graph, table
        The graph, and the table for counting.
    proposers
        How many positives propose bodies: all that they have. Those of P_valid come first, then P_train.
    positives, negatives
        How many rows of train bodies are counted on.
    candidates
        How many bodies are kept at most.
    budget
        Steps for the three-step paths between two constants.
    """

    bodies: Bodies
    graph: TypedGraph
    table: BodyCounter
    proposers: int = 30
    positives: int = 500
    negatives: int = 1500
    candidates: int = 400
    budget: int = 10_000

    def small(self, rows: HeadRows) -> Design:
        """Return edges, paths of two steps and intersections; for a type all that is sought."""
        groups = ((kernels.VALID_POSITIVE, 4 * self.proposers), (kernels.TRAIN_POSITIVE, self.positives))
        sample = _first_of(rows, (*groups, (kernels.TRAIN_NEGATIVE, self.negatives)), np.ones(len(rows), dtype=bool))
        nowhere = np.zeros(self.bodies.steps, dtype=np.bool_)
        self.table.clear()
        self._list(rows, sample, nowhere, self.table.for_kernel(), min(self.proposers, len(sample)))
        codes = self._best(np.bincount(rows.groups[sample], minlength=kernels.GROUPS), SMALL, self.candidates)
        return self._collected(codes, rows, nowhere)

    def triangles(self, rows: HeadRows, losses: Floats) -> Design:
        """Return triangles around the edges where most is lost."""
        edges = self._edges(rows)
        hard = _hardest(edges, losses)
        sample, proposers = self._around(rows, edges, hard)
        relevant = np.zeros(self.bodies.steps, dtype=np.bool_)
        relevant[hard] = True
        self.table.clear()
        self._list(rows, sample, relevant, self.table.for_kernel(), proposers)
        codes = self._best_around(rows.groups[sample], edges[sample], hard, kernels.TRIANGLE, TRIANGLES)
        return self._collected(codes, rows, relevant)

    def threes(self, rows: HeadRows, losses: Floats) -> Design:
        """Return diamonds around the edges where most is lost, and paths of three steps where no edge is."""
        edges = self._edges(rows)
        hard = _hardest(edges, losses)
        sample, proposers = self._around(rows, edges, hard, np.diff(self.graph.pointers))
        self._list_threes(rows, sample, hard, proposers)
        codes = [self._best_around(rows.groups[sample], edges[sample], hard, kernels.DIAMOND, DIAMONDS)]
        alone = np.asarray(~edges.any(axis=1))
        if losses[alone].sum() > 0:
            size = self.proposers
            train = ((kernels.TRAIN_POSITIVE, size), (kernels.TRAIN_NEGATIVE, 5 * size))
            groups = ((kernels.VALID_POSITIVE, size), *train)
            sample = _first_of(rows, groups, alone, np.diff(self.graph.pointers))
            positive = int(np.count_nonzero(rows.signs[sample] > 0))
            self._list_threes(rows, sample, hard[:0], min(size, positive))
            sizes = np.bincount(rows.groups[sample], minlength=kernels.GROUPS)
            codes.append(self._best(sizes, (kernels.PATH3,), TRIANGLES))
        return _frequent(self._evaluated(np.unique(np.concatenate(codes)), rows, edges), rows)

    # -- listing ------------------------------------------------------------------------------------

    def _edges(self, rows: HeadRows) -> Mask:
        return np.asarray(kernels.steps_between(rows.pairs, rows.head.relation, self.graph, self.bodies.steps))

    def _list(self, rows: HeadRows, indices: Ints, relevant: Mask, table: Table, proposers: int = 0) -> None:
        pairs, groups = rows.pairs[indices], rows.groups[indices]
        if rows.head.type != NO_TYPE:
            hide = self.bodies.type_index(rows.head.type)
            kernels.enumerate_types(pairs, groups, proposers, hide, self.graph, self.bodies.base, table)
            return
        typed, hide = len(self.graph.types) > 0, rows.head.relation
        kernels.enumerate_pairs(pairs, groups, proposers, hide, relevant, typed, self.graph, self.bodies.base, table)

    def _list_threes(self, rows: HeadRows, sample: Ints, hard: Ints, proposers: int) -> None:
        """Count diamonds around the hard edges; without any, paths of three steps."""
        relevant = np.zeros(self.bodies.steps, dtype=np.bool_)
        relevant[hard] = True
        self.table.clear()
        pairs, groups, hide = rows.pairs[sample], rows.groups[sample], rows.head.relation
        paths, base, table = not len(hard), self.bodies.base, self.table.for_kernel()
        kernels.enumerate_threes(pairs, groups, proposers, hide, relevant, paths, self.budget, self.graph, base, table)

    def _around(self, rows: HeadRows, edges: Mask, hard: Ints, degree: Ints | None = None) -> tuple[Ints, int]:
        """Return rows with the hard edges, so many with each, the proposers first; and how many propose."""
        size = max(self.proposers // 3, 1)
        first, rest = [], []
        for step in hard:
            has = edges[:, step]
            first.append(_first_of(rows, ((kernels.VALID_POSITIVE, size),), has, degree))
            positives = _first_of(rows, ((kernels.TRAIN_POSITIVE, 2 * size),), has, degree)
            # Where valid has too few, train proposes.
            lacking = max(size - len(first[-1]), 0)
            first.append(positives[:lacking])
            rest.append(positives[lacking:])
            rest.append(_first_of(rows, ((kernels.TRAIN_NEGATIVE, 5 * size),), has, degree))
        proposing = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *first]))
        others = np.setdiff1d(np.concatenate([np.empty(0, dtype=np.int64), *rest]), proposing)
        return np.concatenate([proposing, others]), len(proposing)

    # -- choosing -----------------------------------------------------------------------------------

    def _best(self, sizes: Ints, shapes: tuple[int, ...], most: int) -> Ints:
        """Return the bodies with the most contrast, as sorted codes; `sizes` are those of the groups."""
        numbers = np.flatnonzero(np.isin(self.bodies.unpack(self.table.codes)[:, 0], shapes))
        return np.sort(self._ranked(numbers, sizes)[:most])

    def _best_around(self, groups: Ints, edges: Mask, hard: Ints, shape: int, most: int) -> Ints:
        """Return the best bodies of a shape around each hard edge; rows without that edge do not count."""
        parts = self.bodies.unpack(self.table.codes)
        best_codes = [np.empty(0, dtype=np.int64)]
        for step in hard:
            numbers = np.flatnonzero((parts[:, 0] == shape) & (parts[:, 1] == step))
            sizes = np.bincount(groups[edges[:, step]], minlength=kernels.GROUPS)
            best_codes.append(self._ranked(numbers, sizes)[:most])
        return np.sort(np.concatenate(best_codes))

    def _ranked(self, numbers: Ints, sizes: Ints) -> Ints:
        """Return the codes of these bodies that are for positives rather than negatives, best first.

        The positives of valid count most: they are conclusions, as those of test are, and most of train are
        not. Where there are few, those of train help out.
        """
        codes = self.table.codes[numbers]
        rates = self.table.counts[numbers] / np.maximum(sizes, 1)
        valid_size = sizes[kernels.VALID_POSITIVE]
        right = rates[:, kernels.VALID_POSITIVE] * valid_size + rates[:, kernels.TRAIN_POSITIVE] * SHRINKAGE
        right /= valid_size + SHRINKAGE
        wrong = rates[:, kernels.TRAIN_NEGATIVE]
        order = np.lexsort((codes, -contrast(right, wrong)))
        return np.asarray(codes[order[right[order] > wrong[order]]])

    # -- where they fire ----------------------------------------------------------------------------

    def _collected(self, codes: Ints, rows: HeadRows, relevant: Mask) -> Design:
        """Return where these bodies fire: all rows once more, with a table that holds nothing else."""
        needed = np.unique(np.concatenate([codes, self._parts(codes)]))
        table = BodyCounter.holding(needed)
        column_of = np.full(len(needed), -1, dtype=np.int32)
        column_of[np.searchsorted(needed, codes)] = np.arange(len(codes))
        # Enough rows for every body to fire for every row; what is not used is never touched.
        out = np.empty((max(len(rows) * len(codes), 1), 2), dtype=np.int32)
        self._list(rows, np.arange(len(rows)), relevant, table.for_kernel(column_of, out))
        return _frequent(Design.of_pairs(codes, out[: table.written()], len(rows)), rows)

    def _evaluated(self, codes: Ints, rows: HeadRows, edges: Mask) -> Design:
        """Return where diamonds and paths of three steps fire, one by one."""
        fired_pairs: list[Pairs] = [_NO_PAIRS]
        for j, part in enumerate(self.bodies.unpack(codes)):
            row_indices = np.arange(len(rows)) if part[0] == kernels.PATH3 else np.flatnonzero(edges[:, part[1]])
            out = np.zeros((len(row_indices), 1), dtype=np.bool_)
            graph, hide = self.graph, rows.head.relation
            kernels.fired(rows.pairs[row_indices], part[None], hide, self.bodies.absent, graph, out)
            row_indices = row_indices[out[:, 0]].astype(np.int32)
            fired_pairs.append(np.stack([row_indices, np.full(len(row_indices), j, dtype=np.int32)], axis=1))
        return Design.of_pairs(codes, np.concatenate(fired_pairs), len(rows))

    def _parts(self, codes: Ints) -> Ints:
        """Return the edges, paths and steps without which the kernels do not look for larger bodies."""
        pack, absent = self.bodies.pack_all, self.bodies.absent
        shape, a, b, c, _ = self.bodies.unpack(codes).T
        typed, three = (shape == kernels.TYPED) & (c != absent), shape == kernels.TRIANGLE
        edge = ~np.isin(shape, (kernels.EDGE, kernels.PATH2, kernels.TYPED))
        return np.concatenate(
            [
                pack(kernels.TYPED, a[typed], b[typed], absent),
                pack(kernels.PATH2, b[three], c[three], 0),
                pack(kernels.EDGE, a[edge], 0, 0),
            ]
        )


def contrast(right: Floats, wrong: Floats) -> Floats:
    """Return how much better than a coin a body tells, where it fires, that a row is positive, in nats.

    With r and w the rates at which it fires for positives and for negatives, that is
    r·log(2r / (r + w)) + w·log(2w / (r + w)).
    """
    both = right + wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = right * np.log(2 * right / both) + np.where(wrong > 0, wrong * np.log(2 * wrong / both), 0)
    return np.asarray(np.nan_to_num(gain))


def _hardest(edges: Mask, losses: Floats) -> Ints:
    """Return the steps on whose rows most is lost, if anything is."""
    hit = losses > 0
    lost = losses[hit] @ edges[hit]
    order = np.argsort(-lost, kind="stable")[:EDGES]
    return np.asarray(order[lost[order] > 0])


def _first_of(rows: HeadRows, sizes: tuple[tuple[int, int], ...], among: Mask, degree: Ints | None = None) -> Ints:
    """Return the first rows of each group, which come in random order.

    With the degree of each constant, those between constants with fewer neighbours are preferred among the
    first: bodies that are always there are there, too, and found in less time.
    """
    selected = []
    for group, size in sizes:
        indices = np.flatnonzero((rows.groups == group) & among)
        if degree is not None:
            indices = indices[: 3 * size]
            indices = indices[np.argsort(degree[rows.pairs[indices]].sum(axis=1), kind="stable")]
        selected.append(indices[:size])
    return np.concatenate(selected)


def _frequent(design: Design, rows: HeadRows) -> Design:
    """Return the bodies that fire for enough positives of train."""
    positives = design.sums(np.where(rows.groups == kernels.TRAIN_POSITIVE, 1.0, 0.0))
    return design.take(np.flatnonzero(positives >= FEWEST))


@dataclass(frozen=True, kw_only=True)
class Contrast(Miner):
    """Looks for bodies that tell the positives of a relation from its negatives, and weighs a short list."""

    needs_negatives = True

    positives: int = setting(6000, "triples of P_train for each head, at most", least=1)
    negatives: int = setting(20_000, "triples of N_train for each head, at most", least=1)
    proposers: int = setting(30, "positives whose bodies are looked at", least=1, tuned="10:100:log")
    candidates: int = setting(400, "bodies that are weighed for each head", least=1, most=30_000, tuned="100:2000:log")
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
        return cast(ContrastMining, self._finished(benchmark, watch)).scorer()

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> ContrastScorer:  # type: ignore[override]
        """Return what scores triples with mined rules that have weights and intercepts, as from a file."""
        return ContrastScorer.of_rules(benchmark.seen, rules.others)

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> ContrastScorer:  # type: ignore[override]
        """Return the scorer whose `arrays()` these are."""
        return ContrastScorer.from_arrays(benchmark.seen, arrays)


# Into how many parts the positives are cut; those of a part are hidden together.
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
    rules: dict[Rule, None] = {}
    for pattern in patterns:
        bodies = engine.rank_bodies(pattern, most, complete=False)
        names = [
            graph.entities if pattern.is_type_template(template) else graph.relations for template in pattern.templates
        ]
        suitable_heads = [head for head in heads if (head.type != NO_TYPE) == pattern.head.is_type]
        for row in bodies.predicates:
            predicates = [vocabulary[int(id_)] for vocabulary, id_ in zip(names, row, strict=True)]
            for rule in _instances(graph, pattern, predicates, suitable_heads):
                rules.setdefault(rule)
    return tuple(rules)


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
        numbers = [n for n, rule in enumerate(self.bodies.given_rules) if _is_head(graph, rule, head)]
        triples = np.empty((len(rows), 3), dtype=np.int32)
        triples[:, 0], triples[:, 1], triples[:, 2] = rows.pairs[:, 0], head.relation, rows.pairs[:, 1]
        looping = [n for n in numbers if _uses_its_head(self.bodies.given_rules[n])]
        free = [n for n in numbers if n not in set(looping)]
        pairs = [self._fired(self._engine, free, triples, np.arange(len(rows)))]
        if looping:
            hidden = rows.groups == TRAIN_POSITIVE
            pairs.append(self._fired(self._engine, looping, triples, np.flatnonzero(~hidden)))
            for fold in range(FOLDS):
                fold_rows = np.flatnonzero(hidden)[fold::FOLDS]
                engine = open_engine(_without(graph, triples[fold_rows]))
                pairs.append(self._fired(engine, looping, triples, fold_rows))
        joined = np.concatenate(pairs)
        joined = joined[np.lexsort((joined[:, 1], joined[:, 0]))]
        used, columns = np.unique(joined[:, 1], return_inverse=True)
        codes = np.array([self.bodies.pack(GIVEN, int(n)) for n in used], dtype=np.int64)
        return Design.of_pairs(codes, np.stack([joined[:, 0], columns], axis=1).astype(np.int32), len(rows))

    def _fired(
        self, engine: Engine, numbers: list[int], triples: Triples, rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return int64[k, 2]: rows and numbers of given rules that derive them."""
        if not numbers or not len(rows):
            return np.empty((0, 2), dtype=np.int64)
        derivations = engine.derivations([self.bodies.given_rules[n] for n in numbers], triples[rows])
        return np.stack([rows[derivations.triple], np.array(numbers)[derivations.rule]], axis=1)


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
    hint = "give a benchmark with N_train, or mine the positives alone: --miner exact"
    raise InputError(f"contrast learns from negatives, and {benchmark.name} has none to learn from", hint=hint)


class ContrastMining(Mining):
    """Mining under way: each step learns the model of one head."""

    def __init__(self, settings: Contrast, benchmark: Benchmark) -> None:
        negatives = training_negatives(benchmark)
        self._graph = benchmark.graph
        self._seen = benchmark.seen
        self._enough = settings.enough
        heads = asked_heads(benchmark, negatives)
        patterns = parse_patterns(settings.patterns)
        rules = given_rules(self._graph, patterns, heads, settings.bodies) if patterns else ()
        self.bodies = Bodies(self._graph, rules)
        self.bodies.check()
        self._given = GivenPatterns(self.bodies) if rules else None
        graph, table = typed_graph(self._graph), BodyCounter(TABLE)
        self._search = Search(self.bodies, graph, table, proposers=settings.proposers, candidates=settings.candidates)
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
        # The largest twice: the second time skips what the first one explains.
        for search in (self._search.triangles, self._search.threes, self._search.threes):
            if rows.head.type != NO_TYPE or best.alone >= self._enough:
                break
            design = Design.joined(design, search(rows, best.losses(rows)))
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
