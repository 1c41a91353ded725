"""Checks of the rules: they can be read, have the shape of their pattern, and the counts that are told."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

import numpy as np

from loginfer.benchmark.auditing.audited import AuditedBenchmark, rule_place
from loginfer.benchmark.auditing.conclusions import new_conclusions
from loginfer.benchmark.auditing.findings import CannotCheckError, Example, Finding, error, errors, note, warning
from loginfer.benchmark.auditing.variants import inductive_sample_size
from loginfer.benchmark.benchmark import SPLITS, BenchmarkRule
from loginfer.benchmark.construction.rules import concluded, named_patterns, overlap
from loginfer.benchmark.folder.manifest import RULES
from loginfer.benchmark.folder.reading import UNKNOWN
from loginfer.benchmark.program import connected_otherwise, matched_size, needs_matching
from loginfer.benchmark.recipe import parse_interval
from loginfer.engine.bodies import predicate_names
from loginfer.errors import InputError
from loginfer.kg import Triples
from loginfer.logic import canonical_text, parse_pattern
from loginfer.logic.rule import Atom, Pattern, Rule, Template, Term, Variable

# -- checks -----------------------------------------------------------------------------------------


def rules_readable(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Rules parse, are safe, and are those of the manifest."""
    for problem in audited.folder.problems:
        if problem.file == RULES and problem.kind not in ("missing", "bytes", "sha256"):
            yield error(problem.count, problem.message, [Example(problem.message, problem.where or RULES)])
            return
    if not audited.folder.rules_known:
        raise CannotCheckError("the rules are not known (no rules.txt)")


def rule_shapes(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each rule is represented by its pattern, and its pattern is one of the recipe's."""
    rules = audited.known_rules
    if all(known.pattern is None for known in rules):
        raise CannotCheckError("no rule says which pattern it represents")
    wrong: list[Example] = []
    for number, known in enumerate(rules):
        if known.pattern is None:
            continue
        try:
            fits = represents(parse_pattern(known.pattern), known.rule)
        except InputError:
            fits = False
        if not fits:
            wrong.append(Example(f"`{known.rule}` is not of the shape `{known.pattern}`", rule_place(number)))
    yield from errors(wrong, "{} rules are not represented by their pattern")
    yield from _patterns_asked(audited)


def _patterns_asked(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each pattern of the recipe has its k1 rules, and there are no others."""
    recipe = audited.benchmark.recipe
    if recipe is None or not recipe.patterns:
        return
    try:
        wanted = {canonical_text(pattern): pattern.name for pattern in named_patterns(recipe)}
    except InputError as problem:
        yield error(1, f"the recipe's patterns make no sense: {problem.message}")
        return
    found = dict.fromkeys(wanted, 0)
    for known in audited.benchmark.rules:
        try:
            text = canonical_text(parse_pattern(known.pattern or ""))
        except InputError:
            text = ""
        found[text] = found.get(text, 0) + 1
    for text, count in found.items():
        if text not in wanted:
            yield error(count, f"{count:,} rules have a pattern that the recipe does not ask for")
        elif count > recipe.k1 or (count < recipe.k1 and not recipe.allow_fewer):
            message = f"the pattern `{wanted[text]}` has {count:,} rules; the recipe asks for {recipe.k1:,}"
            yield error(abs(count - recipe.k1), message)


def equal_rules(audited: AuditedBenchmark) -> Iterator[Finding]:
    """No two rules are the same up to variable renaming and atom order."""
    first: dict[str, int] = {}
    again: list[Example] = []
    for number, rule in enumerate(audited.rules):
        other = first.setdefault(canonical_text(rule), number)
        if other != number:
            again.append(Example(f"`{rule}` is the same as rule {other}", rule_place(number)))
    yield from errors(again, "{} rules are there more than once")


def rule_counts(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Support, number of new conclusions and size of the sample are what the manifest says of each rule."""
    rules, recipe = audited.known_rules, audited.benchmark.recipe
    if all(known.support == UNKNOWN for known in rules):
        raise CannotCheckError("nothing is told about the rules (no manifest.json)")
    audited.say("counting the support of the rules")
    supports = _ranked(audited)
    wrong: list[Example] = []
    for number, known in enumerate(rules):
        support = supports[number] if number in supports else audited.over_kg.support(known.rule)
        if support != known.support:
            wrong.append(Example(f"`{known.rule}` has support {support:,}, not {known.support:,}", rule_place(number)))
            continue
        conclusions = audited.over_kg.conclusions(known.rule, new=True)
        new = len(conclusions) if audited.depth == 1 else new_conclusions(audited, number)
        if new != known.new:
            text = f"`{known.rule}` has {new:,} new conclusions, not {known.new:,}"
            wrong.append(Example(text, rule_place(number)))
        elif recipe is not None and known.sampled != (asked := _sample_size(audited, known, conclusions)):
            text = f"of `{known.rule}` {known.sampled:,} conclusions were sampled, not {asked:,}"
            wrong.append(Example(text, rule_place(number)))
    yield from errors(wrong, "the counts of {} rules are wrong")
    yield from _wrong_measures(audited)


def _ranked(audited: AuditedBenchmark) -> dict[int, int]:
    """Return the supports of rules that are among those of their pattern with the largest support.

    Ranking a pattern's bodies is cheaper than counting the witnesses of each.
    """
    patterns: dict[str, list[int]] = {}
    for number, known in enumerate(audited.known_rules):
        if known.pattern is not None:
            patterns.setdefault(known.pattern, []).append(number)
    passed = len(audited.benchmark.manifest.get("passed_over", ()))
    found: dict[int, int] = {}
    for text, numbers in patterns.items():
        try:
            pattern = parse_pattern(text)
        except InputError:
            continue
        table = audited.over_kg.rank_bodies(pattern, len(numbers) + passed, complete=False)
        supports = dict(zip(predicate_names(table, audited.kg), table.support.tolist(), strict=True))
        for number in numbers:
            names = predicates(pattern, audited.rules[number]) or {}
            key = tuple(names.get(template, "") for template in pattern.templates)
            if key in supports:
                found[number] = supports[key]
    return found


def _sample_size(audited: AuditedBenchmark, known: BenchmarkRule, conclusions: Triples) -> int:
    """Return how many conclusions the recipe samples: k2 at most, and under `sound` none of a rare rule."""
    recipe, context = audited.recipe, audited.benchmark.context
    if context is not None:
        return inductive_sample_size(audited, context, known, conclusions)
    if recipe.protocol == "sound" and known.new < recipe.min_new:
        return 0
    if needs_matching(recipe, known.rule):
        if audited.depth > 1:  # each depth has its own, so only a bound is certain
            return min(known.sampled, known.new, recipe.k2)
        connected = int(connected_otherwise(audited.kg, conclusions, known.rule).sum())
        return matched_size(recipe.k2, known.new - connected, connected)
    return min(known.new, recipe.k2)


def rare_rules(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each rule has enough conclusions to be learned and tested."""
    rules, recipe, provenance = audited.rules, audited.benchmark.recipe, audited.provenance
    there = (provenance.rule >= 0) & (provenance.rule < len(rules))
    table = np.zeros((len(rules), len(SPLITS)), dtype=np.int64)
    np.add.at(table, (provenance.rule[there], provenance.split[provenance.conclusion[there]]), 1)
    if recipe is not None and recipe.protocol == "sound" and recipe.patterns and not recipe.inductive:
        known = enumerate(audited.benchmark.rules)
        few = [Example(f"`{rule.rule}`", rule_place(i)) for i, rule in known if 0 <= rule.new < recipe.min_new]
        yield from errors(few, f"{{}} rules have fewer than {recipe.min_new} new conclusions, against the recipe")
    # Given rules stay whatever they conclude, and a rule's share of test may be other rules' share of train.
    say = warning if recipe is None or (recipe.protocol != "sound" and recipe.patterns) else note
    for column, split in enumerate(SPLITS):
        if split == "valid":
            continue
        none = np.flatnonzero(table[:, column] == 0).tolist()
        if none:
            yield say(
                len(none),
                f"{len(none):,} of {len(rules):,} rules have no conclusion in P_{split}",
                [Example(f"`{rules[i]}`", rule_place(i)) for i in none],
            )


# -- measures ---------------------------------------------------------------------------------------


def _wrong_measures(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Confidence and overlap are what the manifest says of each rule, and where the recipe wants them."""
    recipe = audited.benchmark.recipe
    if recipe is None or (recipe.select == "support" and recipe.head == "drawn"):
        return
    if recipe.inductive:
        return  # rules are chosen on K, of which the folder holds what is left on the two sides
    wrong = []
    for number, known in enumerate(audited.known_rules):
        if (text := _measured(audited, known)) is None and recipe.interval is not None:
            value = getattr(known, recipe.select_by)
            low, high = parse_interval(recipe.interval)
            if value is not None and not low <= value <= high:
                text = f"has the {recipe.select_by} {value:,.4g}, outside {recipe.interval}"
        if text is not None:
            wrong.append(Example(f"`{known.rule}` {text}", rule_place(number)))
    yield from errors(wrong, "the measures of {} rules are wrong")


def _measured(audited: AuditedBenchmark, known: BenchmarkRule) -> str | None:
    """Say what is wrong with the measures of a rule; None if nothing is."""
    engine, rule = audited.over_kg, known.rule
    if known.confidence is None:
        return "has no measures"
    there = concluded(engine, rule)
    new = len(engine.conclusions(rule, new=True))
    if there == 0 or not isclose(known.confidence, 1 - new / there):
        return f"does not have the confidence {known.confidence:.4g}"
    found = overlap(engine, rule)
    if (found is None) != (known.overlap is None) or not isclose(found or 0, known.overlap or 0):
        return f"does not have the overlap {known.overlap}"
    return None


# -- shapes -----------------------------------------------------------------------------------------

# Longer bodies are compared as they are written: trying all orders of their atoms would take too long.
_LONG = 8


def represents(pattern: Pattern, rule: Rule) -> bool:
    """Say whether a rule is the pattern with predicates in the places of its templates.

    The head's predicate must not occur in the body unless the pattern's head says so: such a rule is no
    candidate.
    """
    return predicates(pattern, rule) is not None


def predicates(pattern: Pattern, rule: Rule) -> dict[Template, str] | None:
    """Return the names in the places of a pattern's templates; None for a rule of another shape."""
    atoms, own = list(dict.fromkeys(pattern.atoms)), list(dict.fromkeys(rule.atoms))
    if len(atoms) != len(own):
        return None
    denied, own_denied = (list(dict.fromkeys(n.atom for n in c.negations)) for c in (pattern, rule))
    if len(denied) != len(own_denied):
        return None
    wanted = {frozenset(part.terms) for part in rule.inequalities}
    for positive in _matches(atoms, own, _Match({}, {})):
        found = {frozenset(positive.term(t) for t in part.terms) for part in pattern.inequalities}
        if found != wanted:
            continue
        for match in _matches(denied, own_denied, positive):
            if _head_fits(pattern, rule, match):
                return match.names
    return None


class _Match:
    """Variables of the rule for those of the pattern, one to one, and names for templates."""

    def __init__(self, terms: dict[Term, Term], names: dict[Template, str]) -> None:
        self.terms = terms
        self.names = names

    def term(self, term: Term) -> Term:
        return self.terms.get(term, term)

    def extended(self, atom: Atom, own: Atom) -> _Match | None:
        """Return the match with this atom's terms and templates added; None if they contradict it."""
        if atom.is_type != own.is_type:
            return None
        terms, names = dict(self.terms), dict(self.names)
        if not _same(atom.relation, str(own.relation), names):
            return None
        for term, given in zip(atom.terms, own.terms, strict=True):
            if isinstance(term, Template):
                if isinstance(given, Variable) or not _same(term, given.name, names):
                    return None
            elif not isinstance(term, Variable):
                if term != given:
                    return None
            elif not isinstance(given, Variable) or terms.setdefault(term, given) != given:
                return None
        return _Match(terms, names) if len(set(terms.values())) == len(terms) else None


def _same(predicate: object, name: str, names: dict[Template, str]) -> bool:
    if isinstance(predicate, Template):
        return names.setdefault(predicate, name) == name
    return predicate == name


def _matches(atoms: list[Atom], own: list[Atom], match: _Match) -> Iterator[_Match]:
    if not atoms:
        yield match
        return
    for place, candidate in enumerate(own):
        extended = match.extended(atoms[0], candidate)
        if extended is not None:
            yield from _matches(atoms[1:], own[:place] + own[place + 1 :], extended)
        if len(own) > _LONG:
            return


def _head_fits(pattern: Pattern, rule: Rule, match: _Match) -> bool:
    extended = match.extended(pattern.head, rule.head)
    if extended is None:
        return False
    template = pattern.head_template
    if template is None or template in match.names:
        return True
    atoms = [*rule.atoms, *(negation.atom for negation in rule.negations)]
    if pattern.is_type_template(template):
        taken = [atom.object for atom in atoms if atom.is_type]
        return rule.head.object not in taken
    return rule.head.relation not in [atom.relation for atom in atoms]
