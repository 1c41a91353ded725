"""Which shortcuts do better on a benchmark than they may, and on which rules that rests.

A shortcut's accuracy is broken down by rule. Each test triple counts once in all: a conclusion that several rules
derive is shared equally between them, and so is a negative that several rules may own; rules without a
conclusion in test take no part in that unless all of them are such. What the rules contribute to a shortcut's
accuracy beyond a half then adds up to what it has, less what triples without any rule contribute.

All limits are about balanced accuracy, see `learned_shortcut`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.learned_shortcut import LEARNED, SKELETON, ShortcutDecisions, ShortcutResult, shortcut_results
from loginfer.engine.binding import relation_of
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ints, Mask, places_of
from loginfer.logic.rule import Atom, Constant

Floats = npt.NDArray[np.float64]
Pairs = tuple[Ints, Ints]  # group, row

# So many rules of a shortcut are named; the others are counted.
NAMED = 3


# -- which test triples belong to which rule -------------------------------------------------------


def negatives_of(benchmark: Benchmark, method: str | None) -> Triples:
    """Return N_test of a method; nothing for None."""
    if method is None:
        return np.empty((0, 3), dtype=np.int32)
    return benchmark.negatives[method].splits.test


def own_conclusions(benchmark: Benchmark) -> Pairs:
    """Return which rule concludes which triple of P_test: indices of the rules, rows of P_test.

    Sorted by rule, then triple; empty where that is not known.
    """
    provenance = benchmark.provenance
    if provenance is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    keys = benchmark.graph.keys
    test = keys.pack(benchmark.positives.test)
    in_test, rows = places_of(test, keys.pack(provenance.triples))
    inside = in_test[provenance.conclusion] & (provenance.rule >= 0) & (provenance.rule < len(benchmark.rules))
    rule, row = provenance.rule[inside].astype(np.int64), rows[provenance.conclusion[inside]]
    order = np.lexsort((row, rule))
    return rule[order], row[order]


def fits_head(head: Atom, graph: KnowledgeGraph, triples: Triples) -> Mask:
    """Return bool[n]: which triples could be conclusions of a rule with this head, by its names."""
    fits = triples[:, 1] == relation_of(head, graph)
    for column, term in ((0, head.subject), (2, head.object)):
        if isinstance(term, Constant):
            entity = graph.entities.get(term.name)
            fits &= triples[:, column] == (-1 if entity is None else entity)
    if head.subject == head.object:
        fits &= triples[:, 0] == triples[:, 2]
    return np.asarray(fits)


def rule_triples(benchmark: Benchmark, method: str | None) -> Pairs:
    """Return which rule has which row: its conclusions in P_test, its negatives in N_test.

    Rows of negatives come after those of P_test. A negative belongs to the rule that its origin names. Where
    that names none, it belongs to every rule whose head it fits.
    """
    rule, row = own_conclusions(benchmark)
    negatives = negatives_of(benchmark, method)
    origins = None if method is None else benchmark.negatives[method].origins.get("test")
    recorded = np.full(len(negatives), -1) if origins is None else origins.rule
    # Rules that share a head share the negatives that fit it.
    others = np.flatnonzero(recorded < 0)
    by_head: dict[Atom, Ints] = {}
    groups, rows = [rule], [row]
    offset = len(benchmark.positives.test)
    for index, benchmark_rule in enumerate(benchmark.rules):
        head = benchmark_rule.rule.head
        if head not in by_head:
            by_head[head] = others[fits_head(head, benchmark.graph, negatives[others])]
        groups.append(np.full(len(by_head[head]), index, dtype=np.int64))
        rows.append(by_head[head] + offset)
    with_rule = np.flatnonzero((recorded >= 0) & (recorded < len(benchmark.rules)))
    groups.append(recorded[with_rule].astype(np.int64))
    rows.append(with_rule + offset)
    return np.concatenate(groups), np.concatenate(rows)


# -- what shortcuts say, rule by rule --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleShare:
    """How a shortcut does on the test triples of one rule.

    Parameters
    ----------
    rule
        Its index in the benchmark's rules.
    triples
        How many test triples are its own; shared ones count in part.
    accuracy
        The share of them on which the shortcut is right.
    contribution
        What they add to the shortcut's accuracy beyond a half.
    """

    rule: int
    triples: float
    accuracy: float
    contribution: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {key: round(value, 6) for key, value in asdict(self).items()}


def rule_shares(
    benchmark: Benchmark, method: str, decisions: Mapping[str, ShortcutDecisions]
) -> dict[str, tuple[RuleShare, ...]]:
    """Return for each shortcut how it does rule by rule, those that contribute most first.

    Parameters
    ----------
    benchmark
        The benchmark.
    method
        Whose negatives.
    decisions
        What the shortcuts say, by name.

    Returns
    -------
    dict
        Rules without a test triple are left out. Nothing for a benchmark whose rules are not known.
    """
    rule, row = rule_triples(benchmark, method)
    weight = _weights(benchmark, rule, row)
    rule, row, weight = rule[weight > 0], row[weight > 0], weight[weight > 0]
    triples = np.bincount(rule, weight, minlength=len(benchmark.rules))
    rules = np.flatnonzero(triples)
    by_shortcut = {}
    for name, decision in decisions.items():
        right = np.bincount(rule, weight * decision.right[row], minlength=len(benchmark.rules))
        shares = [
            RuleShare(
                index,
                float(triples[index]),
                float(right[index] / triples[index]),
                float((right[index] - triples[index] / 2) / len(decision.right)),
            )
            for index in rules.tolist()
        ]
        by_shortcut[name] = tuple(sorted(shares, key=lambda share: (-round(share.contribution, 12), share.rule)))
    return by_shortcut


def most_important(shares: Sequence[RuleShare]) -> tuple[RuleShare, ...]:
    """Return the rules that contribute most to a shortcut's accuracy, of those that contribute anything."""
    return tuple(share for share in shares[:NAMED] if share.contribution > 0)


def _weights(benchmark: Benchmark, rule: Ints, row: Ints) -> Floats:
    """Return float64[m]: how much of each pair's triple belongs to its rule; 1 for each triple in all."""
    size = len(benchmark.positives.test)
    concluding = np.zeros(len(benchmark.rules), dtype=bool)
    concluding[rule[row < size]] = True
    rows = int(row.max(initial=-1)) + 1
    among = np.bincount(row, concluding[rule], minlength=rows)
    # Where no rule of a negative has a conclusion in test, all of its rules share it.
    taking = np.where(among[row] > 0, concluding[rule], True)
    shares = np.bincount(row, taking, minlength=rows)
    return np.asarray(taking / shares[row])


# -- the gate --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exceeded:
    """Shortcuts that do better on the negatives of a method than they may.

    Parameters
    ----------
    method
        Whose negatives.
    limit
        The largest balanced accuracy on test that a shortcut may have.
    results
        The shortcuts above it: the learned one first, then the skeleton, then others, the best first.
    rules
        How the first of them does rule by rule, those that contribute most first; empty if the rules are not known.
    texts
        The most important rules, as texts.
    """

    method: str
    limit: float
    results: tuple[ShortcutResult, ...]
    rules: tuple[RuleShare, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def over(self) -> tuple[RuleShare, ...]:
        """The rules on which the first shortcut is above the limit."""
        return tuple(share for share in self.rules if share.accuracy > self.limit)

    @property
    def message(self) -> str:
        """What is wrong, in one sentence; rules are numbered from 0, as in `rules.txt`."""
        first, *others = self.results
        text = f"{self.method}: the shortcut {called(first)} reaches {_percent(first.balanced_accuracy)} on test, "
        text += f"above {_percent(self.limit)}"
        if first.features:
            text += f", most by {carried_by(first)}"
        if others:
            names = [f"{called(other)} alone {_percent(other.balanced_accuracy)}" for other in others[:NAMED]]
            more = [f"{len(others) - NAMED} more"] if len(others) > NAMED else []
            text += f"; {', '.join(names + more)}"
        if not self.rules:
            return text
        text += f"; above it for {len(self.over):,} of {len(self.rules):,} rules"
        rules = [
            f"rule {share.rule} ({_percent(share.accuracy)} of {share.triples:,.0f} triples)"
            for share in most_important(self.rules)
        ]
        return f"{text}, most for {', '.join(rules)}" if rules else text

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "method": self.method,
            "shortcut": self.results[0].name,
            "accuracy": self.results[0].balanced_accuracy,
            "limit": self.limit,
            "shortcuts": {result.name: result.as_dict() for result in self.results},
            "rules_above": len(self.over),
            "rules": [share.as_dict() for share in self.rules],
            "message": self.message,
        }


def called(result: ShortcutResult) -> str:
    """Return the name of a shortcut, and that it is reversed if small scores mean true."""
    return f"`{result.name}`{' reversed' if result.cut.reversed else ''}"


def carried_by(result: ShortcutResult) -> str:
    """Return the features that the learned shortcut loses most without, each with its share of all that is lost."""
    return ", ".join(f"{name} ({_percent(share)})" for name, share in list(result.shares.items())[:NAMED])


def check_limit(limit: float, *, where: str | None = None) -> float:
    """Return a limit for shortcuts if it makes sense: a share above 0.5 and at most 1.

    Raises
    ------
    InputError
        With a hint where a percentage was meant.
    """
    if 0.5 < limit <= 1:
        return limit
    hint = "a share, such as 0.6 for 60 %"
    if 50 < limit <= 100:
        hint = f"write {limit / 100:g} for {limit:g} %"
    message = f"the limit for shortcuts must be above 0.5, which is chance, and at most 1, but is {limit:g}"
    raise InputError(message, where=where, hint=hint)


def gate(
    benchmark: Benchmark, limit: float, results: Mapping[str, Mapping[str, ShortcutResult]] | None = None
) -> list[Exceeded]:
    """Return the methods on whose negatives shortcuts are above a limit.

    The learned shortcut and the skeleton must not be above it on test. Any other must not be above it on valid and on
    test: of so many, some are above it on one of them by chance.

    Parameters
    ----------
    benchmark
        The benchmark.
    limit
        The largest balanced accuracy that a shortcut may have, see `check_limit`.
    results
        By method, what `shortcut_results` returned, where that is at hand.
    """
    check_limit(limit)
    all_exceeded = []
    for method in benchmark.negatives:
        of_method = shortcut_results(benchmark, method) if results is None else results[method]
        above = sorted((r for r in of_method.values() if _is_above(r, limit)), key=_rank)
        if above:
            shares = rule_shares(benchmark, method, {"": above[0].decisions})[""]
            texts = (f"rule {share.rule}: {benchmark.rules[share.rule].rule}" for share in most_important(shares))
            all_exceeded.append(Exceeded(method, limit, tuple(above), shares, tuple(texts)))
    return all_exceeded


def _is_above(result: ShortcutResult, limit: float) -> bool:
    figures = [result.balanced_accuracy]
    if result.name not in (LEARNED, SKELETON) and result.valid_accuracy is not None:
        figures.append(result.valid_accuracy)
    return min(figures) > limit


def _rank(result: ShortcutResult) -> tuple[bool, bool, float, str]:
    return result.name != LEARNED, result.name != SKELETON, -result.balanced_accuracy, result.name


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace(".0 %", " %")
