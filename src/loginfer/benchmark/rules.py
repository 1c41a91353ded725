"""Step 1, rule generation (section 3.1): per pattern k1 candidates, by default with the largest support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.candidates import DRAWN, Candidate, can_be_listed, candidates
from loginfer.benchmark.choice_settings import parse_interval
from loginfer.benchmark.complements import matched_sample, needs_matching
from loginfer.benchmark.measures import confidence, overlap
from loginfer.benchmark.negation import Interplay, least_excluded, negation_notes
from loginfer.benchmark.randomness import salt
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.values import BenchmarkRule, PassedOver
from loginfer.engine import Engine, Progress
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.logic import canonical_text, parse_pattern, parse_rule, pattern_named
from loginfer.logic.rule import Pattern, Rule
from loginfer.logic.rulefile import read_rules
from loginfer.logic.stratification import stratified

__all__ = [
    "Selection",
    "given_rules",
    "named_patterns",
    "refuse_silence",
    "sample_new",
    "select_rules",
    "silent_rules",
]

# So many candidates are measured at most where they must lie in an interval of confidence or overlap.
TRIES = 2_000


@dataclass(frozen=True, slots=True)
class Selection:
    """The rules R, and of each the conclusions that will be distributed.

    Parameters
    ----------
    rules
        R: pattern by pattern with descending support or as they were drawn, or in the order given.
    samples
        For each rule the keys (see `TripleKeys`) of its sampled new conclusions, in random order.
    passed_over
        Candidates with too few new conclusions, or kept out by a negation or by what is matched, in the order
        they were met.
    notes
        What a user should know.
    """

    rules: tuple[BenchmarkRule, ...]
    samples: tuple[npt.NDArray[np.int64], ...]
    passed_over: tuple[PassedOver, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def program(self) -> tuple[Rule, ...]:
        """The rules alone."""
        return tuple(known.rule for known in self.rules)


def named_patterns(recipe: Recipe) -> tuple[Pattern, ...]:
    """Return the recipe's patterns; each is a name or a text.

    Raises
    ------
    InputError
        For a pattern that is unknown, does not parse, or is there twice.
    """
    patterns = tuple(parse_pattern(p) if "->" in p or "(" in p else pattern_named(p) for p in recipe.patterns)
    seen: dict[str, str] = {}
    for given, pattern in zip(recipe.patterns, patterns, strict=True):
        text = canonical_text(pattern)
        if text in seen:
            raise InputError(f"the patterns `{seen[text]}` and `{given}` are the same")
        seen[text] = given
    return patterns


def given_rules(recipe: Recipe) -> tuple[Rule, ...]:
    """Return the rules that a recipe gives instead of patterns, none if it has patterns.

    Raises
    ------
    InputError
        For a file without rules, for two rules that are the same, or for rules that are not stratified.
    """
    if recipe.rules is None:
        return ()
    if isinstance(recipe.rules, tuple):
        rules = tuple(parse_rule(text) for text in recipe.rules)
    elif "->" in recipe.rules and not Path(recipe.rules).exists():
        rules = (parse_rule(recipe.rules),)
    else:
        rules = read_rules(recipe.rules).program
    if not rules:
        raise InputError(f"`{recipe.rules}` holds no rule")
    seen: dict[str, Rule] = {}
    for rule in rules:
        other = seen.setdefault(canonical_text(rule), rule)
        if other is not rule:
            raise InputError(f"`{rule}` and `{other}` are the same rule", hint="leave one of them out")
    stratified(rules)
    return rules


def select_rules(recipe: Recipe, engine: Engine, progress: Progress | None = None) -> Selection:
    """Return R with a sample of each rule's new conclusions.

    For patterns: per pattern the `k1` candidates with the largest support, ties by the text of the body; or
    the first `k1` in a random order, of those whose measure lies in an interval if the recipe has one.
    Under `sound`, candidates with fewer than `min_new` new conclusions are passed over, and so are those with
    a negation that excludes fewer, or that does not go with the rules selected before. Given rules all
    stay, since they all say what is true; under `sound`, those with fewer than `min_new` are not sampled.

    Parameters
    ----------
    recipe
        What to select.
    engine
        An engine over K, whose vocabularies hold the heads of given rules.
    progress
        Called with what is being done, how much is done, and how much there is.

    Raises
    ------
    InputError
        When there are fewer candidates than `k1`, or nothing new follows at all.
    """
    chosen: list[BenchmarkRule] = []
    samples: list[npt.NDArray[np.int64]] = []
    passed: list[PassedOver] = []
    sound = recipe.protocol == "sound"
    if recipe.rules is not None:
        rules = given_rules(recipe)
        for i, rule in enumerate(rules):
            if progress:
                progress("applying rules", i, len(rules))
            new, sample = sample_new(recipe, engine, rule)
            if sound and new < recipe.min_new:
                sample = sample[:0]
            chosen.append(BenchmarkRule(rule, None, engine.support(rule), new, len(sample)))
            samples.append(sample)
        return _selection(recipe, engine, chosen, samples)
    seen: set[str] = set()
    notes: list[str] = []
    interplay = Interplay()
    for pattern in named_patterns(recipe):
        wanted = len(chosen) + recipe.k1
        begin = len(chosen)
        tries = 0
        for candidate in candidates(recipe, engine, pattern, progress):
            text = canonical_text(candidate.rule)
            if text in seen:
                continue
            seen.add(text)
            if recipe.select_by != "support" and tries == TRIES:
                break
            tries += 1
            new, sample = sample_new(recipe, engine, candidate.rule)
            reason = _objection(recipe, engine, candidate.rule, new, interplay) if sound else None
            if len(sample) < min(recipe.min_new, new, recipe.k2) and reason is None:
                reason = "another relation connects the ends of too few conclusions"
            if sound and (reason is not None or new < recipe.min_new):
                passed.append(PassedOver(candidate.rule, candidate.pattern, candidate.support, new, reason))
                continue
            known = _measured(recipe, engine, candidate, new, len(sample))
            if known is not None:
                chosen.append(known)
                samples.append(sample)
                interplay.add(known.rule)
            if progress:
                progress(f"applying rules of `{pattern.name}`", len(chosen) - begin, recipe.k1)
            if len(chosen) == wanted:
                break
        if len(chosen) < wanted:
            problem = _too_few(pattern, recipe, engine, len(chosen) - begin, passed, tries)
            if not recipe.allow_fewer or len(chosen) == begin:
                raise problem
            notes.append(problem.message)
    return _selection(recipe, engine, chosen, samples, passed, notes)


def _selection(
    recipe: Recipe,
    engine: Engine,
    chosen: Sequence[BenchmarkRule],
    samples: Sequence[npt.NDArray[np.int64]],
    passed: Sequence[PassedOver] = (),
    notes: Sequence[str] = (),
) -> Selection:
    """Put a selection together; what rules do not conclude is told once all steps are known."""
    notes = (*notes, *negation_notes([known.rule for known in chosen]))
    if recipe.depth == 1:
        refuse_silence(chosen, recipe, engine.graph)
        notes = (*notes, *silent_rules(chosen, recipe))
    return Selection(tuple(chosen), tuple(samples), tuple(passed), tuple(notes))


def _objection(recipe: Recipe, engine: Engine, rule: Rule, new: int, interplay: Interplay) -> str | None:
    """Return why negation keeps a candidate with enough new conclusions from being selected; None if not."""
    if new < recipe.min_new:
        return None
    reason = interplay.objection(rule)
    if reason is None and rule.negations:
        excluded = least_excluded(engine, rule, new)
        if excluded is not None and excluded < recipe.min_new:
            many = f"{excluded:,} new conclusion{'' if excluded == 1 else 's'}"
            reason = f"a negation excludes {many}, fewer than {recipe.min_new:,}"
    return reason


def _measured(
    recipe: Recipe, engine: Engine, candidate: Candidate, new: int, sampled: int
) -> BenchmarkRule | None:
    """Return a candidate as a rule, with its measures unless rules are chosen as in the paper.

    None if it is not in the recipe's interval; for one of support all candidates are.
    """
    rule = candidate.rule
    known = BenchmarkRule(rule, candidate.pattern, candidate.support, new, sampled)
    if recipe.select == "support" and recipe.head == "drawn":
        return known
    known = replace(known, confidence=confidence(engine, rule, new))
    if recipe.select_by == "confidence" and not _inside(recipe, known.confidence):
        return None  # the overlap takes longer
    known = replace(known, overlap=overlap(engine, rule))
    return None if recipe.select_by == "overlap" and not _inside(recipe, known.overlap) else known


def _inside(recipe: Recipe, value: float | None) -> bool:
    """Say whether a measure lies in the recipe's interval."""
    low, high = parse_interval(recipe.interval or ":1")
    return value is not None and low <= value <= high


def sample_new(recipe: Recipe, engine: Engine, rule: Rule) -> tuple[int, npt.NDArray[np.int64]]:
    """Return |T_r(K) ∖ K| and the keys of up to k2 of these triples, in random order.

    With `adjacency` among the shortcuts to match, the conclusions of a rule that is its own complement are
    chosen so that another relation connects the ends of enough of them (see `matched_sample`).
    """
    if needs_matching(recipe, rule):
        return matched_sample(recipe, engine, rule)
    return engine.sample_conclusions(rule, salt(recipe.seed, "positives", rule), recipe.k2)


def _too_few(
    pattern: Pattern, recipe: Recipe, engine: Engine, found: int, passed: Sequence[PassedOver], tries: int
) -> InputError:
    where = ""
    if recipe.min_support or recipe.max_support:
        low, high = recipe.min_support or 1, recipe.max_support
        where = f" with a support of {low:,} {f'to {high:,}' if high else 'or more'}"
    if recipe.interval is not None:
        article = "an" if recipe.select_by == "overlap" else "a"
        where += f" with {article} {recipe.select_by} in {recipe.interval}"
    if recipe.select_by != "support":
        where += f" among the {tries:,} candidates that were looked at"
    elif recipe.select != "support" and not can_be_listed(engine.graph, pattern):
        where += f" among {DRAWN:,} draws"
    mine = [p for p in passed if p.pattern == str(pattern)]
    skipped = len(mine)
    if found == 0 and not skipped and not where and len(engine.rank_bodies(pattern, 1, complete=False)):
        return InputError(
            f"the bodies of `{pattern.name}` leave no predicate of this graph for the head",
            hint="give rules instead of a pattern, or a pattern whose head occurs in its body",
        )
    if found == 0 and not skipped:
        return InputError(
            f"the pattern `{pattern.name}` has no rule{where} on this graph",
            hint="`loginfer rules rank` shows the support of a pattern's bodies"
            if recipe.interval is None
            else "widen the interval",
        )
    have = "has" if skipped == 1 else "have"
    also = f"; {skipped:,} more {have} fewer than {recipe.min_new:,} new conclusions" if skipped else ""
    if any(p.reason for p in mine):
        also = f"; {skipped:,} more {'was' if skipped == 1 else 'were'} passed over, such as"
        also += f" `{mine[-1].rule}`: {mine[-1].reason or 'it concludes too little that is new'}"
    wanted = f"{recipe.k1:,} rule{'' if recipe.k1 == 1 else 's'}"
    there = "is 1" if found == 1 else f"are {found:,}"
    return InputError(
        f"k1 asks for {wanted} of `{pattern.name}`, but there {there}{where}{also}",
        hint=(f"give k1 = {found}" if found else "lower min_new")
        + (" or lower min_new" if skipped and found else "")
        + (", or widen the interval" if recipe.interval else "")
        + (", or set allow_fewer" if found else ""),
    )


def refuse_silence(rules: Sequence[BenchmarkRule], recipe: Recipe, graph: KnowledgeGraph) -> None:
    """Raise `InputError` when no rule concludes anything that could be sampled."""
    if any(known.sampled for known in rules):
        return
    least = f"{recipe.min_new:,} or more new triples" if recipe.protocol == "sound" else "anything new"
    there = set(graph.relations.names(graph.preds))
    asked = (str(a.relation) for known in rules for a in known.rule.atoms if not a.is_type)
    unknown = [f"`{name}`" for name in dict.fromkeys(asked) if name not in there]
    hint = "check the rules with `loginfer rules apply`"
    if unknown:
        hint = f"the graph has no triples with {', '.join(unknown[:5])}{', …' if len(unknown) > 5 else ''}"
    which = "the rule does not conclude" if len(rules) == 1 else f"none of the {len(rules):,} rules concludes"
    raise InputError(f"{which} {least} from `{recipe.kg}`", hint=hint)


def silent_rules(rules: Sequence[BenchmarkRule], recipe: Recipe) -> tuple[str, ...]:
    """Return a note on rules that contribute no positives, if there are any."""
    silent = sum(known.sampled == 0 for known in rules)
    if not silent:
        return ()
    why = "nothing new" if recipe.protocol == "paper" else f"fewer than {recipe.min_new} new triples"
    return (f"{silent} of {len(rules)} rules conclude {why} and contribute no positives",)
