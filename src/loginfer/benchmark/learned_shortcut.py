"""How well somebody does on a benchmark who knows none of its rules.

The *learned* shortcut is a gradient boosting over the features of `shortcut_features`. It is fitted on the conclusions
in P_train against the negatives of N_train that have their heads; its threshold is the best on valid, and it is judged
on test. Conclusions of all splits look alike to it: features are counted over K, which holds none of them, and it is
not fitted on K's own triples, which would outnumber the conclusions. Of folders that do not tell K from its
conclusions, features are over P_train, and it is fitted on valid.

Beside it: each feature alone, with the cut that is best on valid; the paper's SimpBL; and the skeletons of the rules,
which need no fitting. Where there is no valid, thresholds and cuts are the best on what the learned one is fitted on.
All figures are balanced accuracies: the mean of the shares of positives and of negatives on which a shortcut is
right, 50 % by chance.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.negatives.context import heads_of
from loginfer.benchmark.shortcuts import Cut, SimpBLScorer, fit_cut, visible_graph
from loginfer.engine import open_engine
from loginfer.engine.binding import ABSENT, relation_of
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Mask
from loginfer.logic.canonical import canonical
from loginfer.logic.rule import Atom, BodyAtom, Constant, Negation, Rule
from loginfer.randomness import generator, hash_order, salt

if TYPE_CHECKING:  # features are compiled: whoever computes none need not wait for the compiler
    from loginfer.benchmark.shortcut_features import FeatureBattery, Values

Scores = npt.NDArray[np.float64]

LEARNED, SKELETON, SIMPBL, RELATION = "learned", "skeleton", "simpbl", "relation-name"
# Rounds of boosting, and for telling splits apart.
ROUNDS, SPLIT_ROUNDS = 200, 50
# At most so many triples a side are fitted on, shuffled to see what a feature is worth, and told apart by split.
LARGEST, SHUFFLED, SPLIT_LARGEST = 100_000, 1_000, 4_000
# More negatives for each conclusion cost time and teach little.
MORE = 10
# With fewer a side nothing is learned, and splits are not told apart: chance alone would do much.
LEAST, SPLIT_LEAST = 10, 100
# How often each feature is shuffled, and into how many parts triples are divided for cross-fitting.
REPEATS, FOLDS = 3, 3
# How sure an interval is.
CONFIDENCE = 0.95
# More categories a feature cannot have in scikit-learn's gradient boosting.
_CATEGORIES = 255


@dataclass(frozen=True, slots=True)
class ShortcutDecisions:
    """What a shortcut says about P_test and N_test.

    Parameters
    ----------
    positive, negative
        bool[|P_test|], bool[|N_test|]: which triples it calls true.
    """

    positive: Mask
    negative: Mask

    @property
    def right(self) -> Mask:
        """bool[|P_test| + |N_test|]: where it is right, positives first."""
        return np.concatenate([self.positive, ~self.negative])

    @property
    def accuracy(self) -> float:
        """The share of triples on which it is right."""
        return float(self.right.mean())

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the shares of positives and of negatives on which it is right."""
        return float((self.positive.mean() + (~self.negative).mean()) / 2)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the balanced accuracy lies with 95 % confidence, judged by so many triples.

        Wilson's intervals of both shares, put together as Newcombe did for differences.
        """
        value, below, above = self.balanced_accuracy, 0.0, 0.0
        for share, size in ((self.positive.mean(), len(self.positive)), ((~self.negative).mean(), len(self.negative))):
            low, high = _wilson(float(share), size)
            below += (share - low) ** 2
            above += (high - share) ** 2
        return max(value - math.sqrt(below) / 2, 0.0), min(value + math.sqrt(above) / 2, 1.0)


def _wilson(share: float, size: int) -> tuple[float, float]:
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle, half = share + z * z / (2 * size), z * math.sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2)
    return (middle - half) / (1 + z * z / size), (middle + half) / (1 + z * z / size)


@dataclass(frozen=True, slots=True)
class ShortcutResult:
    """What a shortcut says about test, and how it fares.

    Parameters
    ----------
    name
        `LEARNED`, `SKELETON`, `SIMPBL`, or a feature's name.
    scores
        float64[|P_test| + |N_test|], positives first.
    positives
        |P_test|.
    cut
        Which scores it calls true.
    valid_accuracy
        Its balanced accuracy on valid; None without valid.
    features
        Of the learned shortcut: by how much its balanced accuracy falls when a feature is shuffled among the triples
        of test, those that matter most first; features without any effect are left out.
    """

    name: str
    scores: Scores
    positives: int
    cut: Cut
    valid_accuracy: float | None = None
    features: Mapping[str, float] = field(default_factory=dict)

    @property
    def decisions(self) -> ShortcutDecisions:
        """What it calls true."""
        is_true = self.cut.predict(self.scores)
        return ShortcutDecisions(is_true[: self.positives], is_true[self.positives :])

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the shares of P_test and of N_test on which it is right."""
        return self.decisions.balanced_accuracy

    @property
    def interval(self) -> tuple[float, float]:
        """Where that lies with 95 % confidence."""
        return self.decisions.interval

    @property
    def shares(self) -> dict[str, float]:
        """The part that each of `features` has in all that is lost by shuffling."""
        total = sum(self.features.values())
        return {name: loss / total for name, loss in self.features.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values; a threshold of None calls all scores the same."""
        answer: dict[str, Any] = {
            "balanced_accuracy": self.balanced_accuracy,
            "interval": list(self.interval),
            "accuracy": self.decisions.accuracy,
            "valid_accuracy": self.valid_accuracy,
            "threshold": self.cut.threshold if math.isfinite(self.cut.threshold) else None,
            "reversed": self.cut.reversed,
        }
        if self.features:
            answer["features"] = {
                name: {"loss": round(loss, 6), "share": round(self.shares[name], 6)}
                for name, loss in self.features.items()
            }
        return answer


# What was measured in this process: by the benchmark's id, which is dropped with it, the method and the features.
_MEASURED: dict[tuple[int, str, tuple[str, ...]], dict[str, ShortcutResult]] = {}


def shortcut_results(benchmark: Benchmark, method: str) -> Mapping[str, ShortcutResult]:
    """Return how all shortcuts do on the negatives of one method; measured once for each benchmark in memory.

    Parameters
    ----------
    benchmark
        The benchmark.
    method
        Whose negatives.

    Returns
    -------
    dict
        By name: `LEARNED`, `SKELETON`, `SIMPBL`, then the features. Nothing without test; only those that need no
        fitting where neither valid nor the conclusions in train are known. The learned shortcut is left out where a
        side has fewer than `LEAST` triples, and the skeleton where no rules are known.
    """
    from loginfer.benchmark.shortcut_features import FEATURES

    key = id(benchmark), method, tuple(FEATURES)
    if key not in _MEASURED:
        _MEASURED[key] = _measured(benchmark, method)
        weakref.finalize(benchmark, _MEASURED.pop, key)
    return _MEASURED[key]


def _measured(benchmark: Benchmark, method: str) -> dict[str, ShortcutResult]:
    from loginfer.benchmark.shortcut_features import FeatureBattery

    positives, negatives = benchmark.positives, benchmark.negatives[method].splits
    has_valid = len(positives.valid) > 0 < len(negatives.valid)
    # Where there is no valid, conclusions of train against N_train take its place.
    held_out = (positives.valid, negatives.valid) if has_valid else training_triples(benchmark, method)
    sets = [*held_out, positives.test, negatives.test]
    sizes = [len(triples) for triples in sets]
    if not all(sizes[2:]):
        return {}
    graph, triples, labelled = visible_graph(benchmark), np.vstack(sets), all(sizes[:2])
    truth, valid = np.repeat([True, False, True, False], sizes), sum(sizes[:2])
    # float64[n], positives and negatives of valid, then of test.
    scores: dict[str, Scores] = {}
    features: dict[str, float] = {}
    battery = FeatureBattery(graph)
    values = battery.values(triples[: len(triples) if labelled else 0])
    if labelled and min(sizes) >= LEAST:
        training = training_triples(benchmark, method) if has_valid else ()
        scores[LEARNED], features = _learned(training, battery, values, truth, valid)
    if benchmark.rules:
        scores[SKELETON] = skeleton_holds(benchmark.program, graph, triples).astype(np.float64)
    scores[SIMPBL] = SimpBLScorer(benchmark.seen.triples, len(benchmark.graph.relations)).score(triples)
    for column, name in enumerate(battery.names if labelled else ()):
        single = values[:, column].astype(np.float64)
        scores[name] = _shares_of_positives(single, truth, valid) if name == RELATION else single
    results = {}
    for name, all_scores in scores.items():
        on_valid = np.split(all_scores[:valid], [sizes[0]])
        cut = fit_cut(*on_valid) if labelled and name != SKELETON else Cut(0.5)
        accuracy = ShortcutDecisions(*map(cut.predict, on_valid)).balanced_accuracy if has_valid else None
        more = features if name == LEARNED else {}
        results[name] = ShortcutResult(name, all_scores[valid:], len(positives.test), cut, accuracy, more)
    return results


def best_shortcut(results: Mapping[str, ShortcutResult]) -> ShortcutResult | None:
    """Return the learned shortcut; where it could not be fitted, the best of the others; None if there is none."""
    others = sorted(results.values(), key=lambda result: (-result.balanced_accuracy, result.name))
    return results.get(LEARNED, others[0] if others else None)


def _shares_of_positives(heads: Scores, truth: Mask, valid: int) -> Scores:
    """Return float64[n]: the share of positives among the triples of valid that have the same head, or 0.5."""
    _, head = np.unique(heads, return_inverse=True)
    size = int(head.max()) + 1
    true, both = (np.bincount(head[:valid], weights, minlength=size) for weights in (truth[:valid], None))
    return np.asarray(np.divide(true, both, out=np.full(size, 0.5), where=both > 0)[head])


# -- the learned shortcut --------------------------------------------------------------------------


def _learned(
    training: Sequence[Triples], battery: FeatureBattery, values: Values, truth: Mask, valid: int
) -> tuple[Scores, dict[str, float]]:
    """Return the log odds of the triples of valid and test, and what each feature is worth on test.

    Parameters
    ----------
    training
        Positives and negatives to fit on; where they are too few it is fitted on those of valid.
    battery
        The features.
    values, truth
        Those of the triples of valid, then of test, and which of them are positives.
    valid
        How many are of valid.
    """
    enough = min(map(len, training), default=0) >= LEAST
    labels = np.repeat([True, False], list(map(len, training))) if enough else truth[:valid]
    fitting = battery.values(np.vstack(training)) if enough else values[:valid]
    ranked, categories = ranked_heads(battery.names, np.vstack([fitting, values]))
    fitting, values = np.split(ranked, [len(fitting)])
    with one_thread():
        model = boosting(labels, categories, ROUNDS).fit(fitting, labels)
        scores = np.asarray(model.decision_function(values))
        if not enough:
            # The threshold must not come from scores of the very triples that the model was fitted on.
            scores[:valid] = cross_fitted(battery.names, fitting, labels)
        cut = fit_cut(scores[:valid][truth[:valid]], scores[:valid][~truth[:valid]])
        return scores, _losses(model, cut, battery.names, values[valid:], truth[valid:])


def training_triples(benchmark: Benchmark, method: str) -> tuple[Triples, Triples]:
    """Return the conclusions in P_train, and the triples of N_train with their heads, both without noise.

    At most `LARGEST` of each, and at most `MORE` times as many negatives as conclusions, in seeded hash order. Nothing
    where conclusions are not known.
    """
    benchmark, provenance = benchmark.clean, benchmark.provenance
    if provenance is None:
        return benchmark.graph.triples[:0], benchmark.graph.triples[:0]
    conclusions, negatives = provenance.triples[provenance.split == 0], benchmark.negatives[method].splits.train
    heads = heads_of(benchmark.graph, conclusions)
    negatives = negatives[np.isin(heads_of(benchmark.graph, negatives), heads)]
    conclusions = _sample(benchmark.graph, conclusions, LARGEST)
    return conclusions, _sample(benchmark.graph, negatives, min(LARGEST, MORE * len(conclusions)))


def cross_fitted(names: Sequence[str], values: Values, truth: Mask, rounds: int = ROUNDS) -> Scores:
    """Return float64[n]: the log odds of triples, each by a model that was fitted on other triples.

    Parameters
    ----------
    names
        The features.
    values
        float32[n, f].
    truth
        bool[n]: which triples count as true.
    rounds
        Rounds of boosting.
    """
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    ranked, categories = ranked_heads(names, values)
    with one_thread():
        model = boosting(truth, categories, rounds)
        return np.asarray(cross_val_predict(model, ranked, truth, cv=folds, method="decision_function"))


def boosting(truth: Mask, categories: list[int], rounds: int, step: float = 0.1) -> Any:
    """Return a classifier to be fitted on triples with these labels."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    fewest = min(int(truth.sum()), int((~truth).sum()))
    return HistGradientBoostingClassifier(
        max_iter=rounds,
        learning_rate=step,
        class_weight="balanced",
        early_stopping=False,
        random_state=0,
        categorical_features=categories,
        min_samples_leaf=max(min(20, fewest // 4), 1),  # 20 is the default, too many for small benchmarks
    )


def one_thread() -> Any:
    """Return a context in which scikit-learn uses one thread: sums then have one order, and it is faster for us."""
    import sklearn.ensemble  # noqa: F401 - only libraries that are loaded can be limited
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="openmp")


def ranked_heads(names: Sequence[str], values: Values) -> tuple[Values, list[int]]:
    """Return features with heads numbered from 0 on, and the column of the heads unless they are too many."""
    if RELATION not in names:
        return values, []
    column = list(names).index(RELATION)
    heads, rank = np.unique(values[:, column], return_inverse=True)
    values = values.copy()
    values[:, column] = rank
    return values, [column] if len(heads) <= _CATEGORIES else []


def _losses(model: Any, cut: Cut, names: Sequence[str], values: Values, truth: Mask) -> dict[str, float]:
    """Return by how much the balanced accuracy falls when a feature is shuffled, the largest first."""
    draw = generator(0, "shuffled features")
    sides = [draw.permutation(np.flatnonzero(side))[:SHUFFLED] for side in (truth, ~truth)]
    values = np.tile(values[np.concatenate(sides)], (REPEATS, 1))
    truth = np.tile(np.repeat([True, False], list(map(len, sides))), REPEATS)

    def accuracy(changed: Values) -> float:
        is_true = cut.predict(model.decision_function(changed))
        return ShortcutDecisions(is_true[truth], is_true[~truth]).balanced_accuracy

    whole, losses = accuracy(values), {}
    for column, name in enumerate(names):
        shuffled = values.copy()
        shuffled[:, column] = draw.permutation(values[:, column])
        losses[name] = whole - accuracy(shuffled)
    ordered = sorted(losses.items(), key=lambda item: (-item[1], item[0]))
    return {name: loss for name, loss in ordered if loss > 0}


def _sample(graph: KnowledgeGraph, triples: Triples, size: int) -> Triples:
    """Return at most so many triples, the first in a seeded hash order."""
    return triples[hash_order(graph.keys.pack(triples), salt(0, "learned shortcut"), size)]


# -- skeletons: the shape of a rule's body is there, whatever the relations ----------------------------

# The skeleton of (x,R,z), (z,S,y), x != y -> (x,T,y) is "a relation leads from x to some z, and a relation from z
# to y, which is not x". An atom (x,type,C) becomes "x has a type". Constants and inequalities stay, negated atoms
# go. Where a single relation or type is forgotten, everything else stays, negated atoms too.
#
# A skeleton is a rule like any other over a graph with two more relations: one from x to y if any relation leads
# there, and one from x to x if x has a type. So an engine says, exactly, what it concludes.


def skeleton_holds(rules: Sequence[Rule], graph: KnowledgeGraph, triples: Triples) -> Mask:
    """Return bool[n]: for which triples the graph has the skeleton of a rule that could conclude them.

    Parameters
    ----------
    rules
        The rules. Their heads are not forgotten: a triple must fit one.
    graph
        The graph K.
    triples
        int32[n, 3], ids of the graph.
    """
    skeletons = []
    for rule in rules:
        body = [_without_name(part, graph) for part in rule.body if not isinstance(part, Negation)]
        skeletons.append(Rule.known_safe(tuple(body), rule.head))
    return _skeletons_conclude(skeletons, graph, triples)


def all_but_one_hold(rules: Sequence[Rule], graph: KnowledgeGraph, triples: Triples, part: int) -> Mask:
    """Return bool[n]: for which triples the graph has a rule's body with one relation or type forgotten.

    Parameters
    ----------
    rules, graph, triples
        As for `skeleton_holds`.
    part
        Whose relation or type is forgotten: an index into `rule.atoms`. Rules with fewer atoms are left whole.
    """
    edited = []
    for rule in rules:
        body = list(rule.body)
        for i in [i for i, p in enumerate(body) if isinstance(p, Atom)][part : part + 1]:
            body[i] = _without_name(body[i], graph)
        edited.append(Rule.known_safe(tuple(body), rule.head))
    return _skeletons_conclude(edited, graph, triples)


def most_atoms(rules: Sequence[Rule]) -> int:
    """Return the number of atoms, without negated ones, in the longest body."""
    return max((len(rule.atoms) for rule in rules), default=0)


def _any_names(graph: KnowledgeGraph) -> tuple[str, str]:
    """Return names for the two relations that come after all others, so that no id changes, and stand in no rule."""
    last = "".join(graph.relations[-1:])
    return f"{last}\0", f"{last}\0\0"


def _without_name(part: BodyAtom, graph: KnowledgeGraph) -> BodyAtom:
    """Return a part of a body without its relation or type; a type that is a variable is as good as forgotten."""
    if not isinstance(part, Atom):
        return part
    any_relation, any_type = _any_names(graph)
    # A rule may also call the type predicate by the graph's own name for it.
    if not part.is_type and relation_of(part, graph) != graph.type_relation:
        return Atom(part.subject, any_relation, part.object)
    return Atom(part.subject, any_type, part.subject) if isinstance(part.object, Constant) else part


def _skeletons_conclude(rules: Sequence[Rule], graph: KnowledgeGraph, triples: Triples) -> Mask:
    """Return bool[n]: which triples follow in one step, where rules may have the two relations."""
    more = graph.triples.copy()
    is_type = more[:, 1] == (ABSENT if graph.type_relation is None else graph.type_relation)
    more[:, 1] = len(graph.relations) + is_type
    more[is_type, 2] = more[is_type, 0]
    relations, triples_and_more = graph.relations.union(_any_names(graph)), np.vstack([graph.triples, more])
    types = graph.type_predicate or ""
    extended = KnowledgeGraph(graph.entities, relations, triples_and_more, type_predicate=types)
    # Rules of one pattern often have the same skeleton.
    distinct = dict.fromkeys(canonical(rule) for rule in rules if _has_names(rule.head, graph))
    return open_engine(extended).derives(list(distinct), triples)


def _has_names(head: Atom, graph: KnowledgeGraph) -> bool:
    """Say whether the graph has the names of a head; nothing fits it otherwise."""
    constants = [term.name for term in head.terms if isinstance(term, Constant)]
    return relation_of(head, graph) != ABSENT and all(name in graph.entities for name in constants)


# -- what else is asked ----------------------------------------------------------------------------


def forgotten(benchmark: Benchmark, method: str) -> tuple[float, ...]:
    """Return how well somebody does who knows the rules but for one relation of each body.

    Entry i is the balanced accuracy of predicting what follows from K if the relation (or type) of atom i is
    forgotten. High figures are no fault: whoever knows all but one relation is wrong only on negatives that fail by
    that one. Where each negative fails by one of n atoms, the mean of the entries is at least 1 − 1/(2n).

    Returns
    -------
    tuple
        Empty without test or without rules.
    """
    sets = benchmark.positives.test, benchmark.negatives[method].splits.test
    if not all(map(len, sets)):
        return ()
    graph, triples = visible_graph(benchmark), np.vstack(sets)
    parts = (all_but_one_hold(benchmark.program, graph, triples, i) for i in range(most_atoms(benchmark.program)))
    return tuple(ShortcutDecisions(*np.split(holds, [len(sets[0])])).balanced_accuracy for holds in parts)


def split_difference(benchmark: Benchmark, method: str) -> dict[str, float]:
    """Return how well the splits are told apart by the features, 0.5 where they are alike.

    Returns
    -------
    dict
        The cross-fitted balanced accuracy of telling N_train from N_test, `negatives`, and the conclusions in P_train
        from P_test, `conclusions`. Without those of which fewer than `SPLIT_LEAST` triples are known.
    """
    from loginfer.benchmark.shortcut_features import FeatureBattery

    conclusions, negatives = training_triples(benchmark, method)
    pairs = {
        "negatives": (negatives, benchmark.negatives[method].splits.test),
        "conclusions": (conclusions, benchmark.positives.test),
    }
    battery = FeatureBattery(visible_graph(benchmark))
    answer = {}
    for name, both in pairs.items():
        size = min(*map(len, both), SPLIT_LARGEST)
        if size >= SPLIT_LEAST:
            triples = np.vstack([_sample(benchmark.graph, triples, size) for triples in both])
            in_train = np.arange(2 * size) < size
            scores = cross_fitted(battery.names, battery.values(triples), in_train, SPLIT_ROUNDS)
            answer[name] = ShortcutDecisions(scores[:size] > 0, scores[size:] > 0).balanced_accuracy
    return answer
