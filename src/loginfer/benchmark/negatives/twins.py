"""Twins: each conclusion with a near miss of its own that looks the same to whoever knows no rule.

Conclusions and near misses are gathered in large numbers first. Then they are paired, head by head: a classifier
learns to tell them apart by rule-blind features (see `shortcut_features`), and a conclusion may only be paired with a
near miss to which the classifier gives about the same log odds. A second classifier learns to tell the pairs apart
that are left, and what is paired must look alike to both; and so on, for some rounds. Conclusions without a twin are
given up, so pairing comes before conclusions are distributed.

Log odds are those of classifiers that have not seen the triple (two-fold cross-fitting). Where near misses are many,
the classifiers see beside the features how often each end takes part in conclusions with the same head: popular ends
would otherwise be recognised by their degrees.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.learned_shortcut import boosting, one_thread, ranked_heads
from loginfer.benchmark.negatives.context import Context, heads_of
from loginfer.benchmark.negatives.near_miss_kernels import first_free
from loginfer.benchmark.negatives.near_miss_search import NearMissSearch, Requests
from loginfer.benchmark.shortcut_features import FeatureBattery, features_named
from loginfer.engine.binding import ABSENT, relation_of
from loginfer.kg import Triples
from loginfer.kg.graph import Ids, Ints, Mask, grouped, member, places_of
from loginfer.logic.rule import Atom, Constant, Rule, Variable
from loginfer.logic.subrules import Edit, edits_of, tears_apart
from loginfer.progress import report_progress
from loginfer.randomness import generator, hash_order, salt

Floats = npt.NDArray[np.floating[Any]]

# How many near misses a head should have for each of its conclusions, and below how many further edits are tried.
_ENOUGH, _SCARCE = 8, 4
# Searches for near misses, until there are enough: from how many anchors of an edit, and how many ends from each.
_SEARCHES = ((400, 16), (2**40, 32))
# How many ends from each end of a conclusion.
_FROM_CONCLUSIONS = 24
# How many near misses of a rule whose conclusions have one end at most.
_FROM_ALL = 4096
# Requests are answered in batches, so that what they propose fits into memory.
_BATCH = 2**17

# How far the log odds of a pair may be apart, one round after the other; and the share of pairs in which a classifier
# may give the conclusion the higher odds. Rounds end when it is not exceeded.
CALIPERS, TARGET = (1.6, 0.8, 0.5, 0.4, 0.4, 0.3, 0.3), 0.56
# Features in which a pair must agree; from this number on, there are many.
EXACT, MANY = ("parallel", "reverse", "reverse-other"), 3
# With so many near misses for each conclusion, ends must also take part in conclusions equally often.
_PLENTY = 6
# Each classifier: boosting rounds, step, and how many triples a side it learns from at most.
_TREES, _STEP, _LEARNED_FROM = 60, 0.15, 40_000
# How many of the nearest near misses a conclusion looks at in a turn.
_NEAREST = 16


@dataclass(frozen=True, slots=True)
class Twins:
    """Conclusions with their twins, side by side.

    Parameters
    ----------
    conclusion
        int64[n], keys of triples, ascending.
    twin
        int64[n], keys of their twins, all different.
    rule, edit
        int64[n], the near miss that concludes the twin: a rule of R and one of its edits (see `near_miss_edits`).
    note
        How many there are of how many, in words.
    """

    conclusion: Ints
    twin: Ints
    rule: Ints
    edit: Ints
    note: str = ""

    def __len__(self) -> int:
        return len(self.conclusion)

    def __getitem__(self, rows: npt.NDArray[Any]) -> Twins:
        return Twins(self.conclusion[rows], self.twin[rows], self.rule[rows], self.edit[rows], self.note)

    def rows_of(self, conclusions: Ints) -> tuple[Mask, Ints]:
        """Return for the keys of conclusions whether they have a twin, and in which row."""
        return places_of(self.conclusion, conclusions)


def near_miss_edits(rule: Rule) -> tuple[Edit, ...]:
    """Return the edits of a rule; none where conclusions of one rule have several types as heads."""
    one = not rule.head.is_type or isinstance(rule.head.object, Constant)
    return edits_of(rule) if one else ()


def pair(context: Context, side: Mask | None = None, rounds: int = len(CALIPERS)) -> Twins:
    """Pair the conclusions of train with near misses.

    Parameters
    ----------
    context
        K, R, and as P_train K with all conclusions that might be chosen.
    side
        bool[entities], of an inductive benchmark: which constants are those of test. Pairs stay on one side.
    rounds
        How many classifiers are tried at most.
    """
    keys = context.kg.keys
    new = ~context.base.contains(context.conclusions["train"])
    conclusions = context.conclusions["train"][new]
    pool = _gather(context, conclusions)
    report_progress(context.progress, "comparing conclusions and near misses", 0, rounds)
    battery = FeatureBattery(context.base, features_named(context.recipe.match))
    triples = [conclusions, keys.unpack(pool.key)]
    gathered = len(pool.key)
    head, candidate_head = (heads_of(context.kg, part) for part in triples)
    counts = _involvement(conclusions, triples[1], 0)
    chosen = _most_involved(context, pool.key, counts, head, candidate_head, 2 * _ENOUGH)
    pool, triples[1] = pool[chosen], triples[1][chosen]
    looks: list[Floats] = [battery.values(part) for part in triples]
    groups = [_groups(context, part, look, battery.names, side) for part, look in zip(triples, looks, strict=True)]
    involved = [_involvement(conclusions, part, own) for part, own in zip(triples, (1, 0), strict=True)]
    kept = np.flatnonzero(member(np.unique(groups[1]), groups[0]))
    chosen = _most_involved(context, pool.key, involved[1], groups[0][kept], groups[1], _ENOUGH)
    for which, rows in enumerate((kept, chosen)):
        triples[which], groups[which] = triples[which][rows], groups[which][rows]
        looks[which], involved[which] = looks[which][rows], involved[which][rows]
    pool = pool[chosen]
    if len(triples[1]) >= _PLENTY * len(triples[0]):
        looks = [np.hstack(columns) for columns in zip(looks, involved, strict=True)]
    ranked, categories = ranked_heads(battery.names, np.vstack(looks))
    looks = np.split(ranked, [len(looks[0])])
    rows, partners = _pair_rounds(context, looks, groups, categories, rounds)
    concluded = keys.pack(triples[0][rows])
    order = np.argsort(concluded)
    partners = partners[order]
    note = (
        f"{len(rows):,} of {len(conclusions):,} conclusions have one, the others are given up; of {gathered:,} near "
        f"misses that were looked at, any is adjacent in the same way for {len(kept):,} conclusions"
    )
    return Twins(concluded[order], pool.key[partners], pool.rule[partners], pool.edit[partners], note)


def _groups(context: Context, triples: Triples, look: Floats, names: Sequence[str], side: Mask | None) -> Ints:
    """Return int64[n]: triples of a group have the same head, are adjacent in the same way, and on the same side."""
    groups = heads_of(context.kg, triples)
    for name in EXACT:
        if name in names:
            groups = groups * (MANY + 1) + np.minimum(look[:, names.index(name)], MANY).astype(np.int64)
    return groups if side is None else 2 * groups + side[triples[:, 0]]


# -- near misses ---------------------------------------------------------------------------------------


@dataclass
class _Pool:
    """Near misses, each once: keys, ascending, with the rule and the edit that conclude them."""

    key: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    rule: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    edit: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __getitem__(self, rows: npt.NDArray[Any]) -> _Pool:
        return _Pool(self.key[rows], self.rule[rows], self.edit[rows])

    def add(self, search: NearMissSearch, requests: Requests, most: int) -> None:
        """Add what is proposed; of equal near misses the first stays."""
        columns = [np.stack([self.key, self.rule, self.edit])]
        for start in range(0, len(requests), _BATCH):
            part = requests[np.arange(start, min(start + _BATCH, len(requests)))]
            keys, _ = search.propose(part, most)
            row, column = np.nonzero(keys >= 0)
            columns.append(np.stack([keys[row, column], part.rule[row], part.edit[row]]))
        key, rule, edit = np.concatenate(columns, axis=1)
        self.key, first = np.unique(key, return_index=True)
        self.rule, self.edit = rule[first], edit[first]


def _gather(context: Context, conclusions: Triples) -> _Pool:
    """Return near misses of all rules that are truly negative.

    Edits that keep the skeleton, which replace one relation or type, come first; others are for rules with few near
    misses. They are searched from the ends of conclusions, and from any constant that could stand there.
    """
    rules, pool = context.rules, _Pool()
    edits = tuple(map(near_miss_edits, rules))
    rng = generator(context.recipe.seed, "twins", "search")
    search = NearMissSearch(context, edits, rng.integers(0, 2**63, size=2**16, dtype=np.int64).astype(np.uint64))
    derived = context.engine.derivations(rules, conclusions)
    concluded = [conclusions[derived.triple[derived.rule == rule]] for rule in range(len(rules))]
    sizes = np.array([len(triples) for triples in concluded])
    for keeping, least in ((True, _ENOUGH), (False, _SCARCE)):
        for anchors, most in ((0, _FROM_CONCLUSIONS), *_SEARCHES):
            counts = np.bincount(pool.rule, minlength=len(rules))
            short = np.flatnonzero(counts < least * sizes).tolist()
            requests = [part for part in _requests(search, concluded, short, keeping, anchors, rng) if len(part[0])]
            for anchored in (True, False):
                parts = [part for part in requests if search.anchored(int(part[0][0])) == anchored]
                if parts:
                    pool.add(search, _joined(parts), most if anchored else _FROM_ALL)
            report_progress(context.progress, "gathering near misses", len(pool.key), None)
    return pool[context.truth.negative(context.kg.keys.unpack(pool.key))]


def _requests(
    search: NearMissSearch,
    concluded: Sequence[Triples],
    short: Sequence[int],
    keeping: bool,
    most: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """Yield requests for rules that are short of near misses: rule, edit, side, anchor, side by side.

    From the ends of conclusions with `most` = 0; otherwise from so many constants that could stand at an end.
    """
    for rule in short:
        text = search.context.rules[rule]
        for number, edit in enumerate(search.edits[rule]):
            if (edit.kind == "replace") != keeping or tears_apart(text, edit):
                continue
            ends = search.ends[rule]
            if len(ends.free) < 2:
                yield _request(rule, number, 0, np.zeros(1, dtype=np.int64))
            elif not most:
                for side, column in enumerate(ends.columns):
                    yield _request(rule, number, side, np.unique(concluded[rule][:, column]).astype(np.int64))
            else:
                pools = [_anchors(search, text, edit, variable) for variable in ends.free]
                side = int(len(pools[1]) < len(pools[0]))
                yield _request(rule, number, side, rng.permutation(pools[side])[:most].astype(np.int64))


def _request(rule: int, edit: int, side: int, anchors: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    rule_column, edit_column, side_column = (np.full(len(anchors), value) for value in (rule, edit, side))
    return rule_column, edit_column, side_column, anchors


def _joined(parts: Sequence[tuple[Ints, Ints, Ints, Ints]]) -> Requests:
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Requests(np.arange(len(columns[0])) % 2**16, *columns)


def _anchors(search: NearMissSearch, rule: Rule, edit: Edit, variable: Variable) -> Ids:
    """Return the constants that the atoms of an edited body allow for a variable, one atom at a time."""
    graph = search.context.kg
    anchors: Ids = graph.consts
    for part, atom in enumerate(rule.body):
        if not isinstance(atom, Atom) or variable not in atom.terms:
            continue
        if part == edit.part and edit.kind != "reverse":
            continue
        relation = relation_of(atom, graph)
        if relation == ABSENT:
            return anchors[:0]
        column = atom.terms.index(variable)
        ends = graph.sides(relation)[1 - column if part == edit.part else column]
        anchors = np.intersect1d(anchors, ends, assume_unique=True)
    return anchors


def _most_involved(
    context: Context, keys: Ints, involved: Floats, group: Ints, candidate_group: Ints, most: int
) -> Ints:
    """Return the rows of at most so many candidates for each conclusion of a group.

    Those whose ends take part in conclusions come first.
    """
    shuffled = np.empty(len(keys), dtype=np.int64)
    shuffled[hash_order(keys, salt(context.recipe.seed, "twins", "pool"))] = np.arange(len(keys))
    order = np.lexsort((shuffled, -(involved > 0).sum(axis=1), candidate_group))
    ordered = candidate_group[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    groups, sizes = np.unique(group, return_counts=True)
    present, index = places_of(groups, ordered)
    return np.sort(order[present & (rank < most * np.append(sizes, 0)[index])])


def _involvement(conclusions: Triples, triples: Triples, own: int) -> Floats:
    """Return float32[n, 2]: how many conclusions with the same relation have the same subject, and object.

    Parameters
    ----------
    conclusions
        All conclusions.
    triples
        The triples.
    own
        What to take off: 1 for triples that are conclusions themselves.
    """
    columns = []
    for column in (0, 2):
        concluded, keys = (
            part[:, 1].astype(np.int64) << 32 | part[:, column].astype(np.int64) for part in (conclusions, triples)
        )
        ends, counts = np.unique(concluded, return_counts=True)
        present, index = places_of(ends, keys)
        columns.append(np.where(present, np.append(counts, 0)[index], 0) - own)
    return np.stack(columns, axis=1).astype(np.float32)


# -- pairs ---------------------------------------------------------------------------------------------


def _pair_rounds(
    context: Context, looks: Sequence[Floats], groups: Sequence[Ints], categories: list[int], rounds: int
) -> tuple[Ints, Ints]:
    """Return the rows of conclusions and candidates that look alike to the classifiers of all rounds.

    Parameters
    ----------
    context
        The seed, and whom to tell about progress.
    looks
        What is seen of conclusions, and of candidates.
    groups
        Only those of one group are paired.
    categories
        Which columns of `looks` are no numbers.
    rounds
        How many classifiers.
    """
    rows = [np.arange(len(look)) for look in looks]
    odds: list[Floats] = [np.empty((len(look), 0)) for look in looks]
    pairs: tuple[Ints, Ints] | None = None
    for turn, caliper in enumerate(CALIPERS[:rounds]):
        rng = generator(context.recipe.seed, "twins", "round", turn)
        fitted = _cross_fitted(looks, rows, pairs, categories, rng)
        if pairs is not None and (len(pairs[0]) < 2 or _told_apart(fitted, pairs) <= TARGET):
            break
        # What is too far from all others stays so, since points only get more coordinates.
        odds = [
            np.column_stack([points, fit[part] / caliper]) for points, fit, part in zip(odds, fitted, rows, strict=True)
        ]
        members = [group[part] for group, part in zip(groups, rows, strict=True)]
        for which, near in enumerate([_within_reach(odds, members, which) for which in (0, 1)]):
            rows[which], odds[which], members[which] = rows[which][near], odds[which][near], members[which][near]
        first, second = _nearest_pairs(odds, members, rng)
        pairs = rows[0][first], rows[1][second]
        report_progress(context.progress, "comparing conclusions and near misses", turn + 1, rounds)
    return pairs or (rows[0][:0], rows[1][:0])


def _told_apart(odds: Sequence[Floats], pairs: tuple[Ints, Ints]) -> float:
    """Return the share of pairs in which the conclusion has the higher odds; equal ones count half."""
    difference = odds[0][pairs[0]] - odds[1][pairs[1]]
    return float((difference > 0).mean() + (difference == 0).mean() / 2)


def _cross_fitted(
    looks: Sequence[Floats],
    rows: Sequence[Ints],
    pairs: tuple[Ints, Ints] | None,
    categories: list[int],
    rng: np.random.Generator,
) -> list[Floats]:
    """Return the log odds of being a conclusion, for some rows of both sides, by classifiers that did not see them.

    The classifiers learn from the pairs, of which both are in the same fold; at first from all triples.
    """
    folds = [rng.integers(2, size=len(look)) for look in looks]
    if pairs is not None:
        folds[1][pairs[1]] = folds[0][pairs[0]]
    learned_from = [
        [
            rng.permutation(part[in_fold[part] != fold])[:_LEARNED_FROM]
            for part, in_fold in zip(rows if pairs is None else pairs, folds, strict=True)
        ]
        for fold in (0, 1)
    ]
    odds: list[Floats] = [np.zeros(len(look)) for look in looks]

    def fit(fold: int) -> None:
        parts = learned_from[fold]
        if not all(map(len, parts)):
            return
        truth = np.repeat([True, False], [len(part) for part in parts])
        model = boosting(truth, categories, _TREES, _STEP)
        with one_thread():  # here, since the limit is one of the thread that sets it
            model.fit(np.vstack([look[part] for look, part in zip(looks, parts, strict=True)]), truth)
            for look, part, in_fold, fitted in zip(looks, rows, folds, odds, strict=True):
                unseen = part[in_fold[part] == fold]
                if len(unseen):
                    fitted[unseen] = model.decision_function(look[unseen])

    with contextlib.suppress(ImportError):
        import pandas  # noqa: F401 - scikit-learn does in a thread, and would see half of it in the other

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(fit, (0, 1)))
    return odds


def _within_reach(points: Sequence[Floats], groups: Sequence[Ints], which: int) -> Mask:
    """Return bool[n]: which rows of one side have any of the other side near enough, in the same group."""
    from scipy.spatial import cKDTree

    near = np.zeros(len(points[which]), dtype=bool)
    others = dict(grouped(groups[1 - which]))
    for group, rows in grouped(groups[which]):
        if group in others:
            tree = cKDTree(points[1 - which][others[group]])
            distance, _ = tree.query(points[which][rows], k=1, p=np.inf, distance_upper_bound=1)
            near[rows] = np.isfinite(distance)
    return near


def _nearest_pairs(points: Sequence[Floats], groups: Sequence[Ints], rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Give conclusions, in random order, the nearest candidate that is left; return the rows of both."""
    from scipy.spatial import cKDTree

    candidates = dict(grouped(groups[1]))
    paired: list[Ints] = [np.empty(0, dtype=np.int64)]
    partners: list[Ints] = [np.empty(0, dtype=np.int64)]
    for group, rows in grouped(groups[0]):
        others = candidates.get(group, rows[:0])
        pending, free = rng.permutation(rows), np.ones(len(others), dtype=bool)
        while len(pending) and free.any():
            left = np.flatnonzero(free)
            count = min(_NEAREST, len(left))
            distance, near = cKDTree(points[1][others[left]]).query(
                points[0][pending], k=count, p=np.inf, distance_upper_bound=1
            )
            distance, near = (np.asarray(column).reshape(len(pending), count) for column in (distance, near))
            # What is too far away has the number of candidates as its index: never free.
            is_free = np.append(free, False)
            chosen = first_free(np.append(left, len(others))[near], is_free)
            free = is_free[:-1]
            paired.append(pending[chosen >= 0])
            partners.append(others[chosen[chosen >= 0]])
            # Those that saw only taken ones look again, if there are more within reach.
            pending = pending[(chosen < 0) & np.isfinite(distance[:, -1]) & (count < len(left))]
    return np.concatenate(paired), np.concatenate(partners)
