"""Diagnosis: which rules a system learned, which it replaced by a shortcut, and how it compares with shortcuts.

For each rule of R: the recall of its conclusions in P_test, and the false-positive rate on the witnesses of each of
its shortcuts. A shortcut says true to all conclusions of the rule, and to more; its witnesses are the negatives of
N_test to which it says true. It does not matter how the negatives were drawn: an engine says which of them a shortcut
concludes from P_train, as a system that learned it would. Negatives that follow from the rules themselves, as they may
under the protocol `paper`, are left out.

The shortcuts of a rule are its sub-rules in R⁻. A rule counts as learned only if it was told from the simplest of
them: those that no other keeps fewer atoms than. Sub-rules that only forget inequalities are reported, but need not
have witnesses. A rule that has no sub-rule with fewer atoms, such as a symmetry, must be told from its head's relation
alone, and from those shortcuts of the audit, its learned one among them, that say true to its conclusions.

What a verdict needs:

    not testable    fewer than `LEAST` conclusions in P_test
    not learned     recall of the rule's conclusions below `HALF`
    in part         recall below `HIGH`; or some false-positive rate above `LOW`, but none from `HALF` on
    shortcut        recall from `HIGH` on, and some false-positive rate from `HALF` on: the simplest such one
    untested        recall from `HIGH` on, all rates at most `LOW`, but a shortcut that had to be tested has
                    fewer than `LEAST` witnesses: either the rule was learned or that shortcut
    learned         recall from `HIGH` on, all rates at most `LOW`, all that had to be tested was

Rates of shortcuts with fewer than `LEAST` witnesses do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.learned_shortcut import (
    LEARNED,
    SIMPBL,
    SKELETON,
    ShortcutDecisions,
    ShortcutResult,
    best_shortcut,
    shortcut_results,
)
from loginfer.benchmark.negatives.query_candidates import SubRuleGroup, groups_of, members
from loginfer.benchmark.program import kept_masks, sub_rule
from loginfer.benchmark.shortcut_gate import fits_head, negatives_of, own_conclusions
from loginfer.engine import Engine, open_engine_in
from loginfer.errors import LimitError
from loginfer.evaluation.predictions import Predictions, Scores
from loginfer.evaluation.thresholds import Thresholds
from loginfer.kg import Triples
from loginfer.logic.rule import Rule

Mask = npt.NDArray[np.bool_]

LEAST = 5
LOW, HALF, HIGH = 0.2, 0.5, 0.8

Verdict = Literal["learned", "untested", "shortcut", "in part", "not learned", "not testable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
# What is said about one rule, with the shortcut; and about several.
_WORDS: Mapping[Verdict, tuple[str, str]] = {
    "learned": ("learned the rule", "learned"),
    "untested": (
        "learned the rule or the shortcut {}, which no negatives test",
        "learned as far as the negatives tell",
    ),
    "shortcut": ("learned the shortcut {}", "replaced by a shortcut"),
    "in part": ("learned in part", "learned in part"),
    "not learned": ("not learned", "not learned"),
    "not testable": ("too few conclusions in test to tell", "with too few conclusions to tell"),
}

# sub-rule   a rule of R⁻
# relation   says true to whatever fits the head
# baseline   one of the audit's shortcuts, for triples that fit the head
ShortcutKind = Literal["sub-rule", "relation", "baseline"]
# Those of them that need no cut, the simplest first; then the learned one.
_BASELINES = ("adjacent", "parallel", SIMPBL, SKELETON, LEARNED)

Standing = Literal["above", "at", "below"]


@dataclass(frozen=True, slots=True)
class Shortcut:
    """Something simpler than a rule that a system may have learned instead.

    Parameters
    ----------
    kind
        What kind of shortcut it is.
    text
        A sub-rule as text, or what else it says.
    size
        Number of ≠-free atoms and of all parts of the body: how simple it is.
    witnesses
        Negatives to which it says true although they do not follow from the rules.
    predicted
        How many of them the system predicts.
    needed
        Whether the rule does not count as learned unless this is tested.
    variants
        How many sub-rules of the same atoms it stands for: they differ in inequalities that none of the
        negatives tells apart.
    """

    kind: ShortcutKind
    text: str
    size: tuple[int, int]
    witnesses: int
    predicted: int
    needed: bool
    variants: int = 1

    @property
    def rate(self) -> float | None:
        """The false-positive rate on its witnesses; None without any."""
        return self.predicted / self.witnesses if self.witnesses else None

    @property
    def tested(self) -> bool:
        """Whether there are enough witnesses to tell."""
        return self.witnesses >= LEAST

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "shortcut": self.text,
            "kind": self.kind,
            "variants": self.variants,
            "witnesses": self.witnesses,
            "predicted": self.predicted,
            "false_positive_rate": self.rate,
            "tested": self.tested,
        }


@dataclass(frozen=True, slots=True)
class RuleDiagnosis:
    """What a system made of one rule.

    Parameters
    ----------
    rule, pattern
        The rule as text, and its pattern; None if the rule was given.
    conclusions, predicted
        Its conclusions in P_test, and how many of them the system predicts.
    shortcuts
        What it may have learned instead, simplest first.
    sub_rules
        How many rules of R⁻ came from it.
    verdict
        The verdict.
    instead
        With the verdict `shortcut`, the shortcut; with `untested`, the simplest that had to be tested.
    """

    rule: str
    pattern: str | None
    conclusions: int
    predicted: int
    shortcuts: tuple[Shortcut, ...]
    sub_rules: int
    verdict: Verdict
    instead: Shortcut | None = None

    @property
    def recall(self) -> float | None:
        """The share of its conclusions that the system predicts; None without any."""
        return self.predicted / self.conclusions if self.conclusions else None

    @property
    def text(self) -> str:
        """The verdict in words."""
        return _WORDS[self.verdict][0].replace("{}", "" if self.instead is None else self.instead.text)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values, without shortcuts that have no witness unless they had to be tested."""
        names = ("rule", "pattern", "verdict", "text", "conclusions", "predicted", "recall", "sub_rules")
        shortcuts = [shortcut.as_dict() for shortcut in self.shortcuts if shortcut.witnesses or shortcut.needed]
        return {**{name: getattr(self, name) for name in names}, "shortcuts": shortcuts}


def diagnose_rule(
    rule: str, pattern: str | None, conclusions: int, predicted: int, shortcuts: Sequence[Shortcut], sub_rules: int
) -> RuleDiagnosis:
    """Judge one rule (see the head of this file); the arguments are those of `RuleDiagnosis`."""
    ordered = tuple(sorted(shortcuts, key=lambda shortcut: (*shortcut.size, -(shortcut.rate or 0), shortcut.text)))
    verdict, instead = _judge(conclusions, predicted, ordered)
    return RuleDiagnosis(rule, pattern, conclusions, predicted, ordered, sub_rules, verdict, instead)


def _judge(conclusions: int, predicted: int, shortcuts: tuple[Shortcut, ...]) -> tuple[Verdict, Shortcut | None]:
    if conclusions < LEAST:
        return "not testable", None
    recall = predicted / conclusions
    if recall < HALF:
        return "not learned", None
    if recall < HIGH:
        return "in part", None
    rates = {shortcut: shortcut.rate or 0 for shortcut in shortcuts if shortcut.tested}
    for shortcut, rate in rates.items():
        if rate >= HALF:
            return "shortcut", shortcut
    if any(rate > LOW for rate in rates.values()):
        return "in part", None
    for shortcut in shortcuts:
        if shortcut.needed and not shortcut.tested:
            return "untested", shortcut
    return "learned", None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a system made of a benchmark.

    Parameters
    ----------
    rules
        One diagnosis for each rule, in the benchmark's order; empty if the rules are not known.
    baselines
        Each shortcut of the audit, and how far the system follows it (see `compare_with_shortcuts`).
    best_shortcut
        Whether the system is above the best shortcut (see `compare_with_best`); empty where there is none.
    derivable
        How many negatives of N_test follow from the rules and were left out.
    notes
        What could not be looked at.
    """

    rules: tuple[RuleDiagnosis, ...]
    baselines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    best_shortcut: Mapping[str, Any] = field(default_factory=dict)
    derivable: int = 0
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """How many rules have each verdict."""
        counts = Counter(rule.verdict for rule in self.rules)
        return {verdict: counts[verdict] for verdict in VERDICTS}

    def summary(self) -> list[str]:
        """Return what was found in a few sentences."""
        sentences = [self._verdict_sentence()] if self.rules else []
        for verdict in ("shortcut", "untested"):
            alike = [rule for rule in self.rules if rule.verdict == verdict]
            if alike:
                sentences.append(_example(min(alike, key=lambda rule: len(rule.rule))))  # names may be long
        sentences += [text for text in (self._best_sentence(), self._baseline_sentence()) if text]
        if self.derivable:
            verbs = ("follow", "were") if self.derivable > 1 else ("follows", "was")
            negatives = f"{self.derivable:,} negative{_s(self.derivable)} of test"
            sentences.append(f"{negatives} {verbs[0]} from the rules and {verbs[1]} left out")
        return [*sentences, *self.notes]

    def _verdict_sentence(self) -> str:
        parts = [f"{count:,} {_WORDS[verdict][1]}" for verdict, count in self.verdicts.items() if count]
        return f"of {len(self.rules):,} rule{_s(len(self.rules))}: {', '.join(parts)}"

    def _best_sentence(self) -> str | None:
        best = self.best_shortcut
        if not best:
            return None
        turned = "reversed " if best.get("reversed") else ""
        name = "the learned shortcut" if best["shortcut"] == LEARNED else f"the {turned}shortcut `{best['shortcut']}`"
        low, high = best["interval"]
        return (
            f"{best['standing']} {name}, which knows no rule: {best['system']:.1%} against "
            f"{best['balanced_accuracy']:.1%} ({low:.1%} to {high:.1%}) balanced accuracy, the same decision on "
            f"{best['agreement']:.1%} of the test triples"
        )

    def _baseline_sentence(self) -> str | None:
        accuracy = self.best_shortcut.get("system", 0.0)
        # Whoever is better than a shortcut need not rest on it, and who makes no mistake follows every good one.
        strong = {
            name: row["correlation"]
            for name, row in self.baselines.items()
            if name != LEARNED
            and accuracy < 1
            and accuracy <= row["interval"][1]
            and abs(row["correlation"] or 0) >= HALF
        }
        if not strong or self.best_shortcut.get("standing") == "above":
            return None
        name = max(strong, key=lambda name: abs(strong[name]))
        verb = "follow" if strong[name] > 0 else "run against"
        alone = f"`{name}` alone{', reversed,' if self.baselines[name].get('reversed') else ''}"
        accuracy = self.baselines[name]["balanced_accuracy"]
        return f"the scores {verb} `{name}` (ρ = {strong[name]:.2f}); {alone} has a balanced accuracy of {accuracy:.1%}"

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "summary": self.summary(),
            "verdicts": dict(self.verdicts),
            "limits": {"least": LEAST, "low": LOW, "half": HALF, "high": HIGH},
            "derivable_negatives": self.derivable,
            "best_shortcut": dict(self.best_shortcut),
            "baselines": {name: dict(row) for name, row in self.baselines.items()},
            "rules": [rule.as_dict() for rule in self.rules],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.evaluation.notebook import diagnosis_fragment

        return diagnosis_fragment(self.as_dict())


def _example(rule: RuleDiagnosis) -> str:
    instead = rule.instead
    text = "" if instead is None else instead.text
    recall = f"{rule.predicted:,} of {rule.conclusions:,} conclusions"
    if instead is None or rule.verdict == "untested":
        return f"for example `{rule.rule}` ({recall}), which no negatives tell from `{text}`"
    wrong = f"{instead.predicted:,} of {instead.witnesses:,} wrong ones"
    return f"for example `{text}` ({wrong}) instead of `{rule.rule}` ({recall})"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def diagnose(
    benchmark: Benchmark, predictions: Predictions, thresholds: Thresholds, *, engine: Engine | None = None
) -> Diagnosis:
    """Say which rules a system learned, and which shortcuts.

    Parameters
    ----------
    benchmark
        The benchmark.
    predictions
        The system's scores of P_test and N_test.
    thresholds
        From which score on a triple is predicted.
    engine
        An engine over P_train; by default a native one is opened.
    """
    method = predictions.method
    positives, negatives = benchmark.positives.test, negatives_of(benchmark, method)
    predicted = thresholds.predict(positives, predictions.test.positive)
    predicted_negatives = thresholds.predict(negatives, predictions.test.negative)
    decisions = ShortcutDecisions(predicted, predicted_negatives)
    results = {} if method is None else shortcut_results(benchmark, method)
    compared = compare_with_shortcuts(predictions, decisions, results), compare_with_best(decisions, results)
    if not benchmark.rules:
        return Diagnosis((), *compared, notes=("the rules of this benchmark are not known",))
    notes: tuple[str, ...] = ()
    try:
        masks = kept_masks(benchmark.program)
    except LimitError as problem:
        masks = ((),) * len(benchmark.rules)
        notes = (f"sub-rules were not looked at: {problem.message}",)
    with ExitStack() as stack:
        train_engine = open_engine_in(stack, benchmark.clean.seen) if engine is None else engine
        derivable = train_engine.derives(benchmark.program, negatives)
        says_true = {name: _says_true(results[name]) for name in _BASELINES if name in results}
        on_negatives = {name: mask[len(positives) :][~derivable] for name, mask in says_true.items()}
        false = Negatives(negatives[~derivable], predicted_negatives[~derivable], on_negatives)
        rules = []
        conclusions = _conclusions(benchmark, train_engine)
        for benchmark_rule, rule_masks, rows in zip(benchmark.rules, masks, conclusions, strict=True):
            rule, pattern = benchmark_rule.rule, benchmark_rule.pattern
            fitting = false.take(np.flatnonzero(fits_head(rule.head, benchmark.graph, false.triples)))
            shortcuts = sub_rule_shortcuts(train_engine, rule, rule_masks, fitting)
            needed = not any(shortcut.needed for shortcut in shortcuts)
            if needed or not any(shortcut.tested for shortcut in shortcuts):
                on_conclusions = {name: mask[rows] for name, mask in says_true.items()}
                shortcuts += head_shortcuts(rule, fitting, on_conclusions, needed=needed)
            recalled = int(predicted[rows].sum())
            rules.append(diagnose_rule(str(rule), pattern, len(rows), recalled, shortcuts, len(rule_masks)))
    return Diagnosis(tuple(rules), *compared, int(derivable.sum()), notes)


def _says_true(result: ShortcutResult) -> Mask:
    """Return bool[|P_test| + |N_test|]: where a shortcut holds; of the learned one, what it calls true."""
    return np.asarray(result.cut.predict(result.scores) if result.name == LEARNED else result.scores > 0)


def _conclusions(benchmark: Benchmark, engine: Engine) -> list[npt.NDArray[np.int64]]:
    """Return each rule's conclusions in P_test: those that were recorded, else those that follow from P_train."""
    if benchmark.provenance is not None:
        rule, row = own_conclusions(benchmark)
    else:
        derivations = engine.derivations(benchmark.program, benchmark.positives.test)
        order = np.lexsort((derivations.triple, derivations.rule))
        rule, row = derivations.rule[order], derivations.triple[order]
    return np.split(row, np.searchsorted(rule, np.arange(1, len(benchmark.rules))))


# -- witnesses --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Negatives:
    """Negatives that do not follow from the rules.

    Parameters
    ----------
    triples
        int32[n, 3].
    predicted
        bool[n], which of them the system predicts.
    baselines
        By name, bool[n]: to which of them each baseline says true.
    """

    triples: Triples
    predicted: Mask
    baselines: Mapping[str, Mask]

    def take(self, rows: npt.NDArray[np.int64]) -> Negatives:
        """Return the negatives in these rows."""
        baselines = {name: says_true[rows] for name, says_true in self.baselines.items()}
        return Negatives(self.triples[rows], self.predicted[rows], baselines)

    def shortcut(
        self, kind: ShortcutKind, text: str, size: tuple[int, int], says_true: Mask, needed: bool, variants: int = 1
    ) -> Shortcut:
        """Return a shortcut, given bool[n]: to which of the negatives it says true."""
        witnesses, predicted = int(says_true.sum()), int((says_true & self.predicted).sum())
        return Shortcut(kind, text, size, witnesses, predicted, needed, variants)


def sub_rule_shortcuts(engine: Engine, rule: Rule, masks: Sequence[int], negatives: Negatives) -> list[Shortcut]:
    """Return the sub-rules of a rule with their witnesses.

    Parameters
    ----------
    engine
        An engine over P_train.
    rule
        The rule.
    masks
        Its sub-rules in R⁻, as masks of the parts that are kept.
    negatives
        Negatives that fit its head.

    Returns
    -------
    list
        One for all sub-rules that keep the same atoms and have the same witnesses: the shortest of them.
    """
    shortcuts: list[Shortcut] = []
    simpler: list[int] = []
    for group in groups_of(0, rule, masks):  # fewest atoms first
        atoms = group.atoms.bit_count()
        fewer = atoms < len(rule.body) - len(rule.inequalities)
        minimal = fewer and not any(group.atoms & few == few for few in simpler)
        simpler.append(group.atoms)
        for mask, variants, derived in _distinguished(engine, group, negatives.triples):
            # Of the sub-rules that keep the same atoms it is enough to test the shortest.
            needed = minimal and mask == min(group.masks, key=_shortest)
            size = (atoms, mask.bit_count())
            shortcuts.append(negatives.shortcut("sub-rule", str(sub_rule(rule, mask)), size, derived, needed, variants))
    return shortcuts


def _distinguished(engine: Engine, group: SubRuleGroup, triples: Triples) -> Iterator[tuple[int, int, Mask]]:
    """Yield the sub-rules that the triples tell apart: the shortest, how many are like it, and its witnesses."""
    (conclusions,) = members(engine, [group], triples)
    columns, column_index = np.zeros((1, 0), dtype=bool), np.zeros(len(group.masks), dtype=np.int64)
    if len(conclusions.loose):
        columns, column_index = np.unique(conclusions.by.T, axis=0, return_inverse=True)
        column_index = column_index.ravel()
    for index, column in enumerate(columns):
        masks = [group.masks[i] for i in np.flatnonzero(column_index == index).tolist()]
        derived = conclusions.every.copy()
        derived[conclusions.loose[column]] = True
        yield min(masks, key=_shortest), len(masks), derived


def _shortest(mask: int) -> tuple[int, int]:
    return mask.bit_count(), mask


def head_shortcuts(
    rule: Rule, negatives: Negatives, conclusions: Mapping[str, Mask], *, needed: bool
) -> list[Shortcut]:
    """Return the shortcuts that know a rule's head, but nothing of its body.

    Parameters
    ----------
    rule
        The rule.
    negatives
        Negatives that fit its head.
    conclusions
        By baseline, to which of the rule's conclusions in P_test it says true. Only a baseline that does so
        for nearly all of them is a shortcut of this rule.
    needed
        Whether the rule must be told from these.
    """
    head = str(rule.head)
    everything = np.ones(len(negatives.triples), dtype=bool)
    shortcuts = [negatives.shortcut("relation", f"every {head}", (0, 0), everything, needed)]
    baselines = [name for name, mask in conclusions.items() if len(mask) and mask.mean() >= HIGH]
    for number, name in enumerate(baselines, start=1):
        text = f"{'learned shortcut' if name == LEARNED else name} -> {head}"
        shortcuts.append(negatives.shortcut("baseline", text, (0, number), negatives.baselines[name], needed))
    return shortcuts


# -- beside shortcuts -------------------------------------------------------------------------------


def compare_with_shortcuts(
    predictions: Predictions, decisions: ShortcutDecisions, results: Mapping[str, ShortcutResult]
) -> dict[str, dict[str, Any]]:
    """Compare the scores of P_test and N_test, and what follows from them, with each shortcut.

    On a benchmark that a shortcut solves, a perfect system follows it, too. Whether it does so within the
    positives and within the negatives says more, where the shortcut tells those apart.

    Parameters
    ----------
    predictions, decisions
        The system's scores, and what it calls true.
    results
        What `shortcut_results` returned.

    Returns
    -------
    dict
        For each shortcut, as JSON values: its own figures (`ShortcutResult.as_dict`), `correlation`,
        `within_positives` and `within_negatives` (Spearman's ρ; None where one of the two is constant) and
        `agreement`, the share of test triples on which both decide alike.
    """
    scores = predictions.test
    everything = np.concatenate([scores.positive, scores.negative])
    compared = {}
    for name, result in results.items():
        true, false = np.split(result.scores, [result.positives])
        compared[name] = {
            **result.as_dict(),
            "correlation": spearman(everything, result.scores),
            "within_positives": spearman(scores.positive, true),
            "within_negatives": spearman(scores.negative, false),
            "agreement": float((decisions.right == result.decisions.right).mean()),
        }
    return compared


def compare_with_best(decisions: ShortcutDecisions, results: Mapping[str, ShortcutResult]) -> dict[str, Any]:
    """Say whether a system is above the best shortcut, usually the learned one, see `best_shortcut`.

    Returns
    -------
    dict
        As JSON values: `standing`, the `shortcut`, its `balanced_accuracy` and `interval`, that of the `system`, and
        `agreement`. Empty where there are no shortcuts.
    """
    best = best_shortcut(results)
    if best is None:
        return {}
    return {
        "standing": standing(decisions.balanced_accuracy, best.interval),
        "shortcut": best.name,
        **({"reversed": True} if best.cut.reversed else {}),
        "balanced_accuracy": best.balanced_accuracy,
        "interval": list(best.interval),
        "system": decisions.balanced_accuracy,
        "agreement": float((decisions.right == best.decisions.right).mean()),
    }


def standing(accuracy: float, interval: tuple[float, float]) -> Standing:
    """Say whether an accuracy is above, within or below the interval of a shortcut's."""
    low, high = interval
    return "above" if accuracy > high else "below" if accuracy < low else "at"


def spearman(a: Scores, b: Scores) -> float | None:
    """Return Spearman's rank correlation, equal values sharing their mean rank; None if one is constant."""
    if not len(a):
        return None
    x, y = _centred_ranks(a), _centred_ranks(b)
    spread = float(x @ x) * float(y @ y)
    if not spread:
        return None
    return float(np.clip(float(x @ y) / np.sqrt(spread), -1, 1))


def _centred_ranks(values: Scores) -> npt.NDArray[np.float64]:
    """Return twice the mean ranks, less their mean: whole numbers, so that constant values give zeros."""
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    doubled = 2 * np.cumsum(count) - count
    return np.asarray((doubled[inverse.ravel()] - len(values)).astype(np.float64))
