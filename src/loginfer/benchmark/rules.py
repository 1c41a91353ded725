"""Step 1, rule generation (section 3.1): per pattern the k1 candidates with the largest support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import generator, hash_order, salt
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.values import BenchmarkRule, PassedOver
from loginfer.engine import Engine, Progress
from loginfer.engine.bodies import predicate_names
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.logic import canonical_text, instantiate, parse_pattern, parse_rule, pattern_named
from loginfer.logic.rule import Pattern, Rule
from loginfer.logic.rulefile import read_rules

__all__ = ["Selection", "given_rules", "named_patterns", "select_rules"]

# Candidates beyond k1 are ranked in steps that grow: under `sound` some are passed over.
_GROWTH = 4


@dataclass(frozen=True, slots=True)
class Selection:
    """The rules R, and of each the conclusions that will be distributed.

    Parameters
    ----------
    rules
        R: pattern by pattern with descending support, or in the order in which they were given.
    samples
        For each rule the keys (see `TripleKeys`) of its sampled new conclusions, in random order.
    passed_over
        Candidates with too few new conclusions, in the order in which they were met.
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


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A rule of R_cand with its support."""

    rule: Rule
    pattern: str
    support: int


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
        For a file without rules, or two rules that are the same up to renaming.
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
    return rules


def select_rules(recipe: Recipe, engine: Engine, progress: Progress | None = None) -> Selection:
    """Return R with a sample of each rule's new conclusions.

    For patterns: per pattern the `k1` candidates with the largest support, ties by the text of the body.
    Under `sound`, candidates with fewer than `min_new` new conclusions are passed over. Given rules all
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
            new, sample = _sample(recipe, engine, rule)
            if sound and new < recipe.min_new:
                sample = sample[:0]
            chosen.append(BenchmarkRule(rule, None, engine.support(rule), new, len(sample)))
            samples.append(sample)
        _refuse_silence(chosen, recipe, engine.graph)
        return Selection(tuple(chosen), tuple(samples), notes=_silent(chosen, recipe))
    seen: set[str] = set()
    notes: list[str] = []
    for pattern in named_patterns(recipe):
        wanted = len(chosen) + recipe.k1
        begin = len(chosen)
        for candidate in _candidates(recipe, engine, pattern, progress):
            text = canonical_text(candidate.rule)
            if text in seen:
                continue
            seen.add(text)
            new, sample = _sample(recipe, engine, candidate.rule)
            if sound and new < recipe.min_new:
                passed.append(PassedOver(candidate.rule, candidate.pattern, candidate.support, new))
                continue
            chosen.append(
                BenchmarkRule(candidate.rule, candidate.pattern, candidate.support, new, len(sample))
            )
            samples.append(sample)
            if progress:
                progress(f"applying rules of `{pattern.name}`", len(chosen) - begin, recipe.k1)
            if len(chosen) == wanted:
                break
        if len(chosen) < wanted:
            problem = _too_few(pattern, recipe, engine, len(chosen) - begin, passed)
            if not recipe.allow_fewer or len(chosen) == begin:
                raise problem
            notes.append(problem.message)
    _refuse_silence(chosen, recipe, engine.graph)
    return Selection(tuple(chosen), tuple(samples), tuple(passed), (*notes, *_silent(chosen, recipe)))


def _sample(recipe: Recipe, engine: Engine, rule: Rule) -> tuple[int, npt.NDArray[np.int64]]:
    """Return |T_r(K) ∖ K| and the keys of up to k2 of these triples, in random order."""
    order = salt(recipe.seed, "positives", rule)
    new, sample = 0, np.empty(0, dtype=np.int64)
    for part in engine.conclusions_in_parts(rule, new=True):
        keys = engine.graph.keys.pack(part)
        new += len(keys)
        keys = np.concatenate([sample, keys[hash_order(keys, order, recipe.k2)]])
        sample = keys[hash_order(keys, order, recipe.k2)]
    return new, sample


def _candidates(
    recipe: Recipe, engine: Engine, pattern: Pattern, progress: Progress | None
) -> Iterator[_Candidate]:
    """Yield the candidates of a pattern by descending support."""
    heads = _Heads(recipe, engine.graph, pattern)
    top: int | None = None if recipe.max_support else recipe.k1
    done = 0
    while True:
        table = engine.rank_bodies(pattern, top, complete=False, progress=progress)
        for names, support in zip(
            predicate_names(table, engine.graph)[done:], table.support[done:].tolist(), strict=True
        ):
            if support < (recipe.min_support or 0):
                return
            if support > (recipe.max_support or support):
                continue
            rule = heads.rule(names)
            if rule is not None:
                yield _Candidate(rule, str(pattern), support)
        if top is None or len(table) < top:
            return
        done, top = len(table), _GROWTH * top


class _Heads:
    """Draws the head's predicate of a candidate, where the body does not determine it.

    The draw is uniform over the predicates of the right kind that do not occur in the body. It depends on the
    seed and the body alone, so the rules for a smaller k1 are among those for a larger one.
    """

    def __init__(self, recipe: Recipe, graph: KnowledgeGraph, pattern: Pattern) -> None:
        self._seed = recipe.seed
        self._pattern = pattern
        template = pattern.head_template
        self._is_type = template is not None and pattern.is_type_template(template)
        ids = graph.types if self._is_type else graph.rels
        self._predicates = (graph.entities if self._is_type else graph.relations).names(ids)

    def rule(self, names: Sequence[str]) -> Rule | None:
        """Return the candidate with this body; None if every predicate occurs in the body."""
        if self._pattern.head_in_body:
            return instantiate(self._pattern, names)
        body = instantiate(self._pattern, names, "_")
        used = {t.name for a in body.atoms if a.is_type for t in a.terms[1:]} if self._is_type else None
        taken = {str(a.relation) for a in body.atoms} if used is None else used
        allowed = [name for name in self._predicates if name not in taken]
        if not allowed:
            return None
        draw = generator(self._seed, "head", body.body_text, self._pattern.head)
        return instantiate(self._pattern, names, allowed[int(draw.integers(len(allowed)))])


def _too_few(
    pattern: Pattern, recipe: Recipe, engine: Engine, found: int, passed: Sequence[PassedOver]
) -> InputError:
    where = ""
    if recipe.min_support or recipe.max_support:
        low, high = recipe.min_support or 1, recipe.max_support
        where = f" with a support of {low:,} {f'to {high:,}' if high else 'or more'}"
    skipped = sum(p.pattern == str(pattern) for p in passed)
    if found == 0 and not skipped and not where and len(engine.rank_bodies(pattern, 1, complete=False)):
        return InputError(
            f"the bodies of `{pattern.name}` leave no predicate of this graph for the head",
            hint="give rules instead of a pattern, or a pattern whose head occurs in its body",
        )
    if found == 0 and not skipped:
        return InputError(
            f"the pattern `{pattern.name}` has no rule{where} on this graph",
            hint="`loginfer rules rank` shows the support of a pattern's bodies",
        )
    have = "has" if skipped == 1 else "have"
    also = f"; {skipped:,} more {have} fewer than {recipe.min_new:,} new conclusions" if skipped else ""
    wanted = f"{recipe.k1:,} rule{'' if recipe.k1 == 1 else 's'}"
    there = "is 1" if found == 1 else f"are {found:,}"
    return InputError(
        f"k1 asks for {wanted} of `{pattern.name}`, but there {there}{where}{also}",
        hint=(f"give k1 = {found}" if found else "lower min_new")
        + (" or lower min_new" if skipped and found else "")
        + (", or set allow_fewer" if found else ""),
    )


def _refuse_silence(rules: Sequence[BenchmarkRule], recipe: Recipe, graph: KnowledgeGraph) -> None:
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


def _silent(rules: Sequence[BenchmarkRule], recipe: Recipe) -> tuple[str, ...]:
    silent = sum(known.sampled == 0 for known in rules)
    if not silent:
        return ()
    why = "nothing new" if recipe.protocol == "paper" else f"fewer than {recipe.min_new} new triples"
    return (f"{silent} of {len(rules)} rules conclude {why} and contribute no positives",)
