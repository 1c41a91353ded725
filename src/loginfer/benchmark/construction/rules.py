"""Step 1, rule generation (section 3.1): per pattern k1 candidates, by default with the largest support.

Candidates R_cand of a pattern are looked at by support, or at random. A random order is that of a seeded hash of the
bodies' texts, so it depends on nothing but the seed and the bodies: not on the engine, and not on how many rules are
asked for. The rules with the largest support are the easiest to learn: a random order is for those who want
others.

A pattern such as the diamond may have far more bodies than can be listed. Then predicates are drawn uniformly
from all tuples, and those without a witness are thrown away: each tuple with a witness is as likely as every
other. So is each body, unless the pattern has symmetries: then a body that repeats predicates has fewer
tuples than others, and is less likely. Most tuples are recognised as empty by two of their atoms, which is
looked up in a table.

Two measures tell how hard a rule is to learn.

confidence
    |T_r(K) ∩ K| / |T_r(K)|: the share of a rule's conclusions that the graph has already. Where the head is
    drawn at random it is near 0.
overlap
    |T_r(K)| / |T_s(K)| for the sub-rule s that concludes least: how far the rule coincides with the easiest
    rule that lacks one of its atoms. At 1 whoever learns that sub-rule needs to learn no more. Sub-rules that
    lack nothing but inequalities do not count, since they hardly ever conclude anything else. Where no atom
    can be left out (one atom, or a composition) it is the share of the conclusions (x, P, y) whose x and y
    the graph connects by a relation that the body does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import prod
from pathlib import Path
from typing import Any, get_args

import numpy as np

from loginfer.benchmark.benchmark import BenchmarkRule, PassedOver
from loginfer.benchmark.program import Interplay, kept_masks, least_excluded, looked_at, negation_notes, sub_rule
from loginfer.benchmark.recipe import Head, Recipe, parse_interval
from loginfer.engine import BodyTable, Engine, Projection
from loginfer.engine.binding import bind
from loginfer.engine.bodies import RankedBodies, body_texts, finish_table, predicate_names
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Mask, distinct_keys, member
from loginfer.logic import canonical_text, instantiate, parse_pattern, parse_rule, pattern_named, symmetries
from loginfer.logic.rule import Atom, Inequality, Pattern, Rule
from loginfer.logic.rule_files import read_rules
from loginfer.logic.stratification import stratified
from loginfer.progress import Progress, each, report_progress
from loginfer.randomness import generator, salt

# -- heads ------------------------------------------------------------------------------------------


class Heads:
    """Gives the bodies of a pattern their heads.

    A head that is drawn is uniform over the predicates of the right kind that do not occur in the body. It
    depends on the seed and the body alone, so the rules for a smaller k1 are among those for a larger one.
    The best head has the relation by which K connects most of the pairs that the body concludes, the first
    by name of several; where K connects none, the head is drawn. A typed head is drawn as well, but among
    relations that look like the ends of the body (see `TypedHeads`).

    Parameters
    ----------
    recipe
        Says how heads are found.
    engine
        An engine over K.
    pattern
        The pattern.

    Attributes
    ----------
    unlike
        The rules so far with a typed head for whose body no relation fits.

    Raises
    ------
    InputError
        When the best or a typed head is asked for, and a head is a type.
    """

    def __init__(self, recipe: Recipe, engine: Engine, pattern: Pattern) -> None:
        self._seed = recipe.seed
        self._engine = engine
        self._pattern = pattern
        template = pattern.head_template
        self._is_type = template is not None and pattern.is_type_template(template)
        if recipe.head != "drawn" and not pattern.head_in_body and self._is_type:
            hint = f"leave out --head {recipe.head}"
            raise InputError(f"the head of `{pattern.name}` is a type, which is always drawn", hint=hint)
        self._best = recipe.head == "best" and not pattern.head_in_body
        self._typed = TypedHeads(engine) if recipe.head == "typed" and not pattern.head_in_body else None
        self.unlike: set[Rule] = set()
        graph = engine.graph
        ids = graph.types if self._is_type else graph.rels
        self._predicates = (graph.entities if self._is_type else graph.relations).names(ids)

    def any(self, names: Sequence[str]) -> Rule:
        """Return a rule with this body and any head, for questions about the body only."""
        head = None if self._pattern.head_in_body else self._predicates[0]
        return instantiate(self._pattern, names, head)

    def rule(self, names: Sequence[str]) -> Rule | None:
        """Return the candidate with this body; None if every predicate occurs in the body."""
        if self._pattern.head_in_body:
            return instantiate(self._pattern, names)
        body = instantiate(self._pattern, names, next(iter(self._predicates), "_"))
        allowed, fits = self.allowed(body)
        if not allowed:
            return None
        draw = generator(self._seed, "head", body.body_text, self._pattern.head)
        head = allowed[int(draw.integers(len(allowed)))]
        if self._best:
            head = self._connecting(names, allowed) or head
        rule = instantiate(self._pattern, names, head)
        if not fits:
            self.unlike.add(rule)
        return rule

    def allowed(self, rule: Rule) -> tuple[list[str], bool]:
        """Return the predicates that the head of this body may have, and whether a typed head fits."""
        atoms = (*rule.atoms, *(part.atom for part in rule.negations))
        types_in_body = {t.name for a in atoms if a.is_type for t in a.terms[1:]} if self._is_type else None
        in_body = {str(a.relation) for a in atoms} if types_in_body is None else types_in_body
        allowed = [name for name in self._predicates if name not in in_body]
        return (allowed, True) if self._typed is None or not allowed else self._typed.fitting(rule, allowed)

    def _connecting(self, names: Sequence[str], allowed: Sequence[str]) -> str | None:
        """Return the relation by which K connects most of what a body concludes; None if by none."""
        graph = self._engine.graph
        try:
            pairs = self._engine.projection(instantiate(self._pattern, names, allowed[0]))
        except LimitError:  # too many pairs to look at
            return None
        inside = graph.triples[_holds(pairs, graph.triples, len(graph.entities))]
        counts = np.bincount(inside[:, 1], minlength=len(graph.relations))
        best = max(allowed, key=lambda name: int(counts[graph.relation_id(name)]))
        return best if counts[graph.relation_id(best)] else None


# With `open` heads are left to whoever reads the rules: the pattern's template, such as `_T`, stands in their place.
OPEN = "open"
HEADS = (*get_args(Head), OPEN)


def with_heads(engine: Engine, ranked: RankedBodies, head: str = "drawn", seed: int = 0) -> list[str]:
    """Return the texts of rules with these bodies; one is empty where every predicate occurs in the body.

    Parameters
    ----------
    engine
        An engine over K.
    ranked
        The bodies.
    head
        One of `HEADS`; but for `open` they are the heads that `build` gives these bodies with this seed.
    seed
        The seed.
    """
    if head == OPEN and not ranked.pattern.head_in_body:
        return [f"{text} -> {ranked.pattern.head}" for _, text, _ in ranked.bodies]
    chosen: Any = "drawn" if head == OPEN else head
    heads = Heads(Recipe("graph", (str(ranked.pattern),), head=chosen, seed=seed), engine, ranked.pattern)
    return [str(heads.rule(names) or "") for _, _, names in ranked.bodies]


def _holds(pairs: Projection, triples: Triples, entities: int) -> Mask:
    """Return bool[n]: whose subject and object are one of the pairs."""
    subject, object_ = triples[:, 0].astype(np.int64), triples[:, 2].astype(np.int64)
    left, right = pairs.left.astype(np.int64), pairs.right.astype(np.int64)
    if not pairs.product:
        return member(left * entities + right, subject * entities + object_)
    inside = member(left, subject) & member(right, object_)
    return np.asarray(inside & (subject != object_)) if pairs.unequal else inside


OVERLAP = 0.5
_TELLS_NOTHING = 0.9


class TypedHeads:
    """Says which relations of K look like a body: `reportsTo, manages -> worksWith`, not `-> birthDate`.

    The ends of a body are the distinct x and the distinct y of the pairs that it concludes. A relation fits where both
    its subjects and its objects look like these.

    by types
        The type that most of the ones have is a type that most of the others have; of several as frequent one is
        enough. Types of nine in ten typed constants, such as owl:Thing, tell nothing and do not count.
    by overlap
        Where neither side has types: |A ∩ B| / min(|A|, |B|) is at least 1/2.

    Bodies that no relation fits come last. Their heads are among the relations that overlap most: by the smaller
    overlap of the two sides, then by the sum.

    Parameters
    ----------
    engine
        An engine over K.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        graph = engine.graph
        kind = graph.type_relation
        self._typed, types = np.empty((2, 0), np.int32) if kind is None else graph.index.pairs(kind)
        self._types = np.unique(types, return_inverse=True)[1]
        self._telling = np.bincount(self._types) < _TELLS_NOTHING * len(np.unique(self._typed))
        self._sides = {name: graph.sides(graph.relation_id(name)) for name in graph.relations.names(graph.rels)}
        self._types_of = {name: [self._frequent(side) for side in sides] for name, sides in self._sides.items()}

    def fitting(self, rule: Rule, relations: Sequence[str]) -> tuple[list[str], bool]:
        """Return those relations that fit the body of a rule, and whether any does: else they are the best ones."""
        ends = self._ends(rule)
        types = [self._frequent(end) for end in ends]
        inside = [self._mask(end) for end in ends]
        overlaps: dict[str, list[float]] = {}
        fitting = []
        for name in relations:
            sides = self._sides[name]
            overlaps[name] = [float(inside[k][sides[k]].sum()) / min(len(ends[k]), len(sides[k])) for k in range(2)]
            likeness = zip(types, self._types_of[name], overlaps[name], strict=True)
            if all(bool(mine & others) if mine or others else share >= OVERLAP for mine, others, share in likeness):
                fitting.append(name)
        if fitting:
            return fitting, True
        score = {name: (min(shares), sum(shares)) for name, shares in overlaps.items()}
        return [name for name in relations if score[name] == max(score.values())], False

    def _ends(self, rule: Rule) -> tuple[Ids, Ids]:
        try:
            pairs = self._engine.projection(rule)
            return np.unique(pairs.left), np.unique(pairs.right)
        except LimitError:  # too many pairs to hold at a time
            ends = [(np.unique(part[:, 0]), np.unique(part[:, 2])) for part in self._engine.conclusions_in_parts(rule)]
            return np.unique(np.concatenate([x for x, _ in ends])), np.unique(np.concatenate([y for _, y in ends]))

    def _mask(self, constants: Ids) -> Mask:
        mask = np.zeros(len(self._engine.graph.entities), dtype=bool)
        mask[constants] = True
        return mask

    def _frequent(self, constants: Ids) -> frozenset[int]:
        """Return the types that most of these constants have, as far as they tell anything."""
        counts = np.bincount(self._types[self._mask(constants)[self._typed]], minlength=len(self._telling))
        counts = counts * self._telling
        return frozenset(np.flatnonzero(counts == counts.max()).tolist()) if counts.any() else frozenset()


# -- candidates -------------------------------------------------------------------------------------

# Candidates beyond k1 are ranked in steps that grow: under `sound` some are passed over.
_GROWTH = 4

# Up to so many tuples of predicates the bodies of a pattern are all listed; beyond, they are drawn.
LISTED = 1 << 25
# So many tuples are drawn at a time, and at most.
BATCH, DRAWN = 1 << 18, 1 << 28


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule of R_cand with its support; `fits` is false where no relation looks like the body's ends."""

    rule: Rule
    pattern: str
    support: int
    fits: bool = True


def candidates(
    recipe: Recipe, engine: Engine, pattern: Pattern, progress: Progress | None = None
) -> Iterator[Candidate]:
    """Yield the candidates of a pattern within the recipe's bounds of support, by its `select`.

    Those with a typed head that fits come first.

    Parameters
    ----------
    recipe
        Says which candidates, in which order.
    engine
        An engine over K.
    pattern
        The pattern.
    progress
        Called with what is being done, how much is done, and how much there is.
    """
    heads = Heads(recipe, engine, pattern)
    low, high = support_bounds(recipe)
    if recipe.select in ("support", "twins"):
        bodies = _bodies_by_support(recipe, engine, pattern, progress)
    elif can_be_listed(engine.graph, pattern):
        bodies = _listed_bodies(recipe, engine, pattern, progress)
    else:
        bodies = _drawn_bodies(recipe, engine, heads, pattern, progress)
    # Bodies that no relation fits only fill up. Whether one fits takes as long as applying the rule.
    unlike: list[Candidate] = []
    for names, support in islice(bodies, TRIES) if recipe.head == "typed" else bodies:
        if low <= support <= high and (rule := heads.rule(names)) is not None:
            candidate = Candidate(rule, str(pattern), support, rule not in heads.unlike)
            if candidate.fits:
                yield candidate
            else:
                unlike.append(candidate)
    yield from unlike


def can_be_listed(graph: KnowledgeGraph, pattern: Pattern) -> bool:
    """Say whether a pattern has so few tuples of predicates that all its bodies are listed."""
    return prod(float(len(domain)) for domain in _domains(graph, pattern)) <= LISTED


def support_bounds(recipe: Recipe) -> tuple[float, float]:
    """Return between which supports candidates lie."""
    low, high = float(recipe.min_support or 1), float(recipe.max_support or np.inf)
    if recipe.interval is not None and recipe.select_by == "support":
        least, most = parse_interval(recipe.interval)
        low, high = max(low, least), min(high, most)
    return low, high


def _bodies_by_support(
    recipe: Recipe, engine: Engine, pattern: Pattern, progress: Progress | None
) -> Iterator[tuple[Sequence[str], int]]:
    """Yield predicates and supports of bodies, the largest support first."""
    top: int | None = None if recipe.max_support else recipe.k1
    done = 0
    while True:
        table = engine.rank_bodies(pattern, top, complete=False, progress=progress)
        for names, support in zip(
            predicate_names(table, engine.graph)[done:], table.support[done:].tolist(), strict=True
        ):
            if support < (recipe.min_support or 0):
                return
            yield names, support
        if top is None or len(table) < top:
            return
        done, top = len(table), _GROWTH * top


def _listed_bodies(
    recipe: Recipe, engine: Engine, pattern: Pattern, progress: Progress | None
) -> Iterator[tuple[Sequence[str], int]]:
    """Yield predicates and supports of all bodies in the order of their hashes."""
    table = engine.rank_bodies(pattern, None, progress=progress)
    low, high = support_bounds(recipe)
    inside = np.flatnonzero((table.support >= low) & (table.support <= high))
    table = BodyTable(pattern, table.predicates[inside], table.support[inside], None)
    names = predicate_names(table, engine.graph)
    for row in _hash_order(recipe, table, engine.graph):
        yield names[row], int(table.support[row])


def _hash_order(recipe: Recipe, table: BodyTable, graph: KnowledgeGraph) -> list[int]:
    """Return the rows of bodies in the order of their hashes."""
    hashes = [salt(recipe.seed, "select", text) for text in body_texts(table, graph)]
    return sorted(range(len(hashes)), key=hashes.__getitem__)


# -- bodies that cannot be listed ------------------------------------------------------------------


def _drawn_bodies(
    recipe: Recipe, engine: Engine, heads: Heads, pattern: Pattern, progress: Progress | None
) -> Iterator[tuple[Sequence[str], int]]:
    """Yield predicates and supports of bodies that are drawn, each body once."""
    graph = engine.graph
    domains = _domains(graph, pattern)
    pairs = _pairs(engine, pattern, domains)
    rng = generator(recipe.seed, "select", pattern)
    seen: set[tuple[int, ...]] = set()
    for start in range(0, DRAWN, BATCH):
        report_progress(progress, f"drawing bodies of `{pattern.name}`", start, DRAWN)
        indices = [rng.integers(len(domain), size=BATCH) for domain in domains]
        possible = np.ones(BATCH, dtype=bool)
        for one, two, table in pairs:
            possible &= table[indices[one], indices[two]]
        rows = np.column_stack([d[p[possible]] for d, p in zip(domains, indices, strict=True)])
        distinct = np.unique(rows.astype(np.int32), axis=0)
        # One body a rule, as where all are listed; supports are counted one by one.
        bodies = finish_table(graph, pattern, distinct, np.ones(len(distinct), dtype=np.int64))
        names = predicate_names(bodies, graph)
        for row in _hash_order(recipe, bodies, graph):
            key = tuple(bodies.predicates[row].tolist())
            if key in seen:
                continue
            seen.add(key)
            if support := engine.support(heads.any(names[row])):
                yield names[row], support


def _domains(graph: KnowledgeGraph, pattern: Pattern) -> list[Ids]:
    """Return for each template the ids it ranges over, sorted."""
    return [graph.types if pattern.is_type_template(t) else graph.rels for t in pattern.templates]


def _pairs(engine: Engine, pattern: Pattern, domains: Sequence[Ids]) -> list[tuple[int, int, Mask]]:
    """Return for pairs of templates, by their numbers, which predicates have a witness for both atoms."""
    tables = []
    templates = pattern.templates
    for one, two in combinations(pattern.atoms, 2):
        if len(one.templates) != 1 or len(two.templates) != 1 or one.templates == two.templates:
            continue
        if not set(one.variables) & set(two.variables):
            continue
        both = Pattern([one, two], Atom(one.variables[0], "any", one.variables[0]))
        i, j = (templates.index(template) for template in both.templates)
        table = np.zeros((len(domains[i]), len(domains[j])), dtype=bool)
        bodies = engine.rank_bodies(both)
        left, right = (
            np.searchsorted(domains[number], bodies.predicates[:, column]) for column, number in enumerate((i, j))
        )
        table[left, right] = True
        if len(symmetries(both)) > 1:  # of R, S and S, R only one is listed
            table[right, left] = True
        tables.append((i, j, table))
    return tables


# -- measures ---------------------------------------------------------------------------------------


def concluded(engine: Engine, rule: Rule) -> int:
    """Return |T_r(K)|."""
    try:
        return len(engine.projection(rule))
    except LimitError:  # too many pairs to hold at a time
        return sum(len(part) for part in engine.conclusions_in_parts(rule))


def confidence(engine: Engine, rule: Rule, new: int) -> float:
    """Return the share of a rule's conclusions that are in K.

    Parameters
    ----------
    engine
        An engine over K.
    rule
        The rule, which concludes something.
    new
        |T_r(K) ∖ K|.
    """
    return 1 - new / concluded(engine, rule)


def overlap(engine: Engine, rule: Rule) -> float | None:
    """Return how far a rule coincides with its easiest sub-rule; None where that is too large to tell.

    Parameters
    ----------
    engine
        An engine over K.
    rule
        The rule, which concludes something.
    """
    smaller = _with_fewer_atoms(rule)
    if not smaller:
        return _connected_otherwise(engine, rule)
    sizes = []
    for mask in smaller:
        try:
            sizes.append(len(engine.projection(sub_rule(rule, mask))))
        except LimitError:
            continue
    return concluded(engine, rule) / min(sizes) if sizes else None


def _with_fewer_atoms(rule: Rule) -> list[int]:
    """Return the largest sub-rules that lack an atom, negated or not: smaller ones conclude at least as much."""
    atoms = sum(1 << i for i, part in enumerate(rule.body) if not isinstance(part, Inequality))
    masks = [mask for mask in kept_masks([rule])[0] if mask & atoms != atoms]
    return [m for m in masks if not any(other != m and other & m == m for other in masks)]


def _connected_otherwise(engine: Engine, rule: Rule) -> float:
    """Return the share of conclusions whose ends K connects by a relation that the body does not have."""
    graph = engine.graph
    body_relations = [atom.relation for atom in bind(rule, graph).atoms]
    size = len(graph.entities)
    others = graph.triples[~np.isin(graph.triples[:, 1], body_relations)]
    connected = distinct_keys(others[:, 0].astype(np.int64) * size + others[:, 2])
    connected_count = total = 0
    for part in engine.conclusions_in_parts(rule):
        connected_count += int(member(connected, part[:, 0].astype(np.int64) * size + part[:, 2]).sum())
        total += len(part)
    return connected_count / total


# -- selection --------------------------------------------------------------------------------------

# So many candidates are measured at most where they must lie in an interval of confidence or overlap, and so many
# bodies are looked at for typed heads.
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
        Candidates with too few new conclusions or twins, or kept out by a negation, in the order they were met.
    notes
        What a user should know.
    unlike
        Rules with a typed head for whose body no relation fits.
    """

    rules: tuple[BenchmarkRule, ...]
    samples: tuple[Ints, ...]
    passed_over: tuple[PassedOver, ...] = ()
    notes: tuple[str, ...] = ()
    unlike: Set[Rule] = frozenset()

    @property
    def program(self) -> tuple[Rule, ...]:
        """The rules alone."""
        return tuple(rule.rule for rule in self.rules)


def named_patterns(recipe: Recipe) -> tuple[Pattern, ...]:
    """Return the recipe's patterns; each is a name or a text.

    Raises
    ------
    InputError
        For a pattern that is unknown, does not parse, or is there twice.
    """
    patterns = tuple(parse_pattern(p) if "->" in p or "(" in p else pattern_named(p) for p in recipe.patterns)
    seen: dict[str, str] = {}
    for original, pattern in zip(recipe.patterns, patterns, strict=True):
        text = canonical_text(pattern)
        if text in seen:
            raise InputError(f"the patterns `{seen[text]}` and `{original}` are the same")
        seen[text] = original
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
    samples: list[Ints] = []
    passed_over: list[PassedOver] = []
    sound = recipe.protocol == "sound"
    if recipe.rules is not None:
        rules = given_rules(recipe)
        for _, rule in each(rules, "applying rules", progress):
            new, sample = sample_new(recipe, engine, rule)
            if sound and new < recipe.min_new:
                sample = sample[:0]
            chosen.append(BenchmarkRule(rule, None, engine.support(rule), new, len(sample)))
            samples.append(sample)
        return _selection(recipe, engine, chosen, samples)
    seen: set[str] = set()
    unlike: set[Rule] = set()
    notes: list[str] = []
    interplay = Interplay()
    for pattern in named_patterns(recipe):
        target = len(chosen) + recipe.k1
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
            reason = objection(recipe, engine, candidate.rule, new, interplay) if sound else None
            if sound and (reason is not None or new < recipe.min_new):
                passed_over.append(PassedOver(candidate.rule, candidate.pattern, candidate.support, new, reason))
                continue
            selected = _measured(recipe, engine, candidate, new, len(sample))
            if selected is not None:
                chosen.append(selected)
                samples.append(sample)
                interplay.add(selected.rule)
                unlike |= set() if candidate.fits else {candidate.rule}
            report_progress(progress, f"applying rules of `{pattern.name}`", len(chosen) - begin, recipe.k1)
            if len(chosen) == target:
                break
        if len(chosen) < target:
            problem = _too_few(pattern, recipe, engine, len(chosen) - begin, passed_over, tries)
            if not recipe.may_have_fewer or len(chosen) == begin:
                raise problem
            notes.append(problem.message)
        notes += head_notes(pattern, chosen[begin:], unlike)
    return replace(_selection(recipe, engine, chosen, samples, passed_over, notes), unlike=unlike)


# How a note about typed heads goes on that do not fit.
NO_HEAD_FITS = "have a head that does not fit: no relation has subjects and objects like the ends of their bodies"


def head_notes(pattern: Pattern, rules: Sequence[BenchmarkRule], unlike: Set[Rule]) -> list[str]:
    """Say for how many rules of a pattern no typed head fits, if for any."""
    count = sum(rule.rule in unlike for rule in rules)
    return [f"{count:,} of {len(rules):,} rules of `{pattern.name}` {NO_HEAD_FITS}"] if count else []


def _selection(
    recipe: Recipe,
    engine: Engine,
    rules: Sequence[BenchmarkRule],
    samples: Sequence[Ints],
    passed_over: Sequence[PassedOver] = (),
    notes: Sequence[str] = (),
) -> Selection:
    """Put a selection together; rules that conclude nothing are noted once all steps are known."""
    notes = (*notes, *negation_notes([rule.rule for rule in rules]))
    if recipe.depth == 1:
        refuse_silence(rules, recipe, engine.graph)
        notes = (*notes, *silent_rules(rules, recipe))
    return Selection(tuple(rules), tuple(samples), tuple(passed_over), tuple(notes))


def objection(recipe: Recipe, engine: Engine, rule: Rule, new: int, interplay: Interplay) -> str | None:
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


def _measured(recipe: Recipe, engine: Engine, candidate: Candidate, new: int, sampled: int) -> BenchmarkRule | None:
    """Return a candidate as a rule, with its measures unless rules are chosen as in the paper.

    None if it is not in the recipe's interval; for one of support all candidates are.
    """
    rule = candidate.rule
    measured = BenchmarkRule(rule, candidate.pattern, candidate.support, new, sampled)
    if recipe.select in ("support", "twins") and recipe.head != "best":
        return measured
    measured = replace(measured, confidence=confidence(engine, rule, new))
    if recipe.select_by == "confidence" and not _inside(recipe, measured.confidence):
        return None  # the overlap takes longer
    measured = replace(measured, overlap=overlap(engine, rule))
    return None if recipe.select_by == "overlap" and not _inside(recipe, measured.overlap) else measured


def _inside(recipe: Recipe, value: float | None) -> bool:
    """Say whether a measure lies in the recipe's interval."""
    low, high = parse_interval(recipe.interval or ":1")
    return value is not None and low <= value <= high


def sample_new(recipe: Recipe, engine: Engine, rule: Rule) -> tuple[int, Ints]:
    """Return |T_r(K) ∖ K| and the keys of up to k2 of these triples, in random order; more for twins."""
    return engine.sample_conclusions(rule, salt(recipe.seed, "positives", rule), looked_at(recipe, recipe.k2, rule))


def _too_few(
    pattern: Pattern, recipe: Recipe, engine: Engine, count: int, passed_over: Sequence[PassedOver], tries: int
) -> InputError:
    conditions = ""
    if recipe.min_support or recipe.max_support:
        low, high = recipe.min_support or 1, recipe.max_support
        conditions = f" with a support of {low:,} {f'to {high:,}' if high else 'or more'}"
    if recipe.interval is not None:
        article = "an" if recipe.select_by == "overlap" else "a"
        conditions += f" with {article} {recipe.select_by} in {recipe.interval}"
    if recipe.select_by != "support":
        conditions += f" among the {tries:,} candidates that were looked at"
    elif recipe.select != "support" and not can_be_listed(engine.graph, pattern):
        conditions += f" among {DRAWN:,} draws"
    passed_here = [p for p in passed_over if p.pattern == str(pattern)]
    skipped = len(passed_here)
    if count == 0 and not skipped and not conditions and len(engine.rank_bodies(pattern, 1, complete=False)):
        hint = "give rules instead of a pattern, or a pattern whose head occurs in its body"
        return InputError(f"the bodies of `{pattern.name}` leave no predicate of this graph for the head", hint=hint)
    if count == 0 and not skipped:
        return InputError(
            f"the pattern `{pattern.name}` has no rule{conditions} on this graph",
            hint="`loginfer rules rank` shows the support of a pattern's bodies"
            if recipe.interval is None
            else "widen the interval",
        )
    verb = "has" if skipped == 1 else "have"
    also = f"; {skipped:,} more {verb} fewer than {recipe.min_new:,} new conclusions" if skipped else ""
    if any(p.reason for p in passed_here):
        also = f"; {skipped:,} more {'was' if skipped == 1 else 'were'} passed over, such as"
        also += f" `{passed_here[-1].rule}`: {passed_here[-1].reason or 'it concludes too little that is new'}"
    rules = f"{recipe.k1:,} rule{'' if recipe.k1 == 1 else 's'}"
    few = [p.new for p in passed_here if p.new < recipe.min_new]
    lower = f"lower min_new: {_most_new(few)}" if few else "lower min_new"
    return InputError(
        f"only {count:,} of {rules} of `{pattern.name}`{conditions}{also}",
        hint=("be content with them (--allow-fewer)" if count else lower)
        + (f", or {lower}" if skipped and count else "")
        + (", or widen the interval" if recipe.interval else ""),
    )


def _most_new(new: Sequence[int]) -> str:
    """Say how many new conclusions rules with too few of them have."""
    return f"it concludes {new[0]:,}" if len(new) == 1 else f"the most that one of them concludes is {max(new):,}"


def refuse_silence(rules: Sequence[BenchmarkRule], recipe: Recipe, graph: KnowledgeGraph) -> None:
    """Raise `InputError` when no rule concludes anything that could be sampled."""
    if any(rule.sampled for rule in rules):
        return
    least = f"{recipe.min_new:,} or more new triples" if recipe.protocol == "sound" else "anything new"
    graph_relations = set(graph.relations.names(graph.preds))
    body_relations = (str(a.relation) for rule in rules for a in rule.rule.atoms if not a.is_type)
    unknown = [f"`{name}`" for name in dict.fromkeys(body_relations) if name not in graph_relations]
    hint = "check the rules with `loginfer rules apply`"
    if any(rule.new for rule in rules):
        hint = f"lower min_new: {_most_new([rule.new for rule in rules])}"
    elif unknown:
        hint = f"the graph has no triples with {', '.join(unknown[:5])}{', …' if len(unknown) > 5 else ''}"
    subject = "the rule does not conclude" if len(rules) == 1 else f"none of the {len(rules):,} rules concludes"
    raise InputError(f"{subject} {least} from `{recipe.kg}`", hint=hint)


def silent_rules(rules: Sequence[BenchmarkRule], recipe: Recipe) -> tuple[str, ...]:
    """Return a note on rules that contribute no positives, if there are any."""
    silent = sum(rule.sampled == 0 for rule in rules)
    if not silent:
        return ()
    why = "nothing new" if recipe.protocol == "paper" else f"fewer than {recipe.min_new} new triples"
    return (f"{silent} of {len(rules)} rules conclude {why} and contribute no positives",)
