"""Checks of the rules: they can be read, have the shape of their pattern, and the recorded counts are right."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from math import isclose

import numpy as np

from loginfer.benchmark.auditing.audited import AuditedBenchmark, rule_location
from loginfer.benchmark.auditing.conclusions import new_conclusions
from loginfer.benchmark.auditing.findings import CannotCheckError, Example, Finding, error, errors, note, warning
from loginfer.benchmark.auditing.variants import inductive_sample_size
from loginfer.benchmark.benchmark import SPLITS, BenchmarkRule, PassedOver
from loginfer.benchmark.construction import rules as selection
from loginfer.benchmark.construction.positives import WITH_TWIN, widened
from loginfer.benchmark.construction.rules import Heads, concluded, named_patterns, overlap
from loginfer.benchmark.folder.manifest import MANIFEST, RULES, UNKNOWN
from loginfer.benchmark.program import Interplay
from loginfer.benchmark.recipe import parse_interval
from loginfer.errors import InputError, LimitError, LogInferError
from loginfer.kg import RDF_TYPE, Triples
from loginfer.logic import canonical_text, parse_pattern
from loginfer.logic.rule import Atom, Pattern, Rule, Template, Term, Variable
from loginfer.logic.rule_files import SHIPPED

# -- checks -----------------------------------------------------------------------------------------


def rules_readable(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Rules parse, are safe, and are those of the manifest and of its recipe."""
    for problem in audited.folder.problems:
        if problem.file == RULES and problem.kind not in ("missing", "bytes", "sha256"):
            yield error(problem.count, problem.message, [Example(problem.message, problem.where or RULES)])
            return
    if not audited.folder.rules_known:
        raise CannotCheckError("the rules are not known (no rules.txt)")
    given = None if audited.benchmark.recipe is None else audited.benchmark.recipe.rules
    # A rule file is that of whoever built the benchmark.
    if given is not None and (not isinstance(given, str) or "->" in given or given in SHIPPED):
        try:
            expected = list(map(canonical_text, selection.given_rules(audited.recipe)))
        except InputError as problem:
            yield error(1, f"the recipe's rules make no sense: {problem.message}")
            return
        texts = {canonical_text(rule): rule_location(i) for i, rule in enumerate(audited.benchmark.program)}
        if expected != list(texts):
            wrong = [Example(f"`{text}`", where) for text, where in texts.items() if text not in expected]
            yield error(max(len(wrong), 1), f"`{RULES}` does not hold the rules that the recipe gives", wrong)


def rule_shapes(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each rule is represented by its pattern, and its pattern is one of the recipe's."""
    rules = audited.benchmark_rules
    if all(benchmark_rule.pattern is None for benchmark_rule in rules):
        raise CannotCheckError("no rule says which pattern it represents")
    wrong: list[Example] = []
    for number, benchmark_rule in enumerate(rules):
        if benchmark_rule.pattern is None:
            continue
        try:
            fits = represents(parse_pattern(benchmark_rule.pattern), benchmark_rule.rule)
        except InputError:
            fits = False
        if not fits:
            text = f"`{benchmark_rule.rule}` is not of the shape `{benchmark_rule.pattern}`"
            wrong.append(Example(text, rule_location(number)))
    yield from errors(wrong, "{} rules are not represented by their pattern")
    yield from _wrong_pattern_counts(audited)


def _wrong_pattern_counts(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each pattern of the recipe has its k1 rules, and there are no others."""
    recipe = audited.benchmark.recipe
    if recipe is None or not recipe.patterns:
        return
    try:
        names = {canonical_text(pattern): pattern.name for pattern in named_patterns(recipe)}
    except InputError as problem:
        yield error(1, f"the recipe's patterns make no sense: {problem.message}")
        return
    counts = dict.fromkeys(names, 0)
    for benchmark_rule in audited.benchmark.rules:
        try:
            text = canonical_text(parse_pattern(benchmark_rule.pattern or ""))
        except InputError:
            text = ""
        counts[text] = counts.get(text, 0) + 1
    for text, count in counts.items():
        if text not in names:
            yield error(count, f"{count:,} rules have a pattern that the recipe does not ask for")
        elif count > recipe.k1 or (count < recipe.k1 and not (recipe.allow_fewer or _said(audited, names[text]))):
            message = f"the pattern `{names[text]}` has {count:,} rules; the recipe asks for {recipe.k1:,}"
            yield error(abs(count - recipe.k1), message)


def _said(audited: AuditedBenchmark, pattern: str) -> bool:
    """Say whether the benchmark itself notes that there are fewer rules of a pattern, as those of own graphs do."""
    recipe, notes = audited.benchmark.recipe, audited.benchmark.notes
    fewer = re.compile(rf"only [\d,]+ of [\d,]+ rules? of `{re.escape(pattern)}`")
    return recipe is not None and recipe.may_have_fewer and any(map(fewer.match, notes))


def equal_rules(audited: AuditedBenchmark) -> Iterator[Finding]:
    """No two rules are the same up to variable renaming and atom order."""
    first: dict[str, int] = {}
    repeated: list[Example] = []
    for number, rule in enumerate(audited.rules):
        other = first.setdefault(canonical_text(rule), number)
        if other != number:
            repeated.append(Example(f"`{rule}` is the same as rule {other}", rule_location(number)))
    yield from errors(repeated, "{} rules are there more than once")


def rule_counts(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Check the support, number of new conclusions and sample size that the manifest gives for each rule."""
    rules, recipe = audited.benchmark_rules, audited.benchmark.recipe
    if all(benchmark_rule.support == UNKNOWN for benchmark_rule in rules):
        raise CannotCheckError("nothing is told about the rules (no manifest.json)")
    audited.say("counting the support of the rules")
    supports = yield from _rank_again(audited)
    wrong: list[Example] = []
    for number, benchmark_rule in enumerate(rules):
        rule, sampled = benchmark_rule.rule, benchmark_rule.sampled
        support = supports[rule] if rule in supports else audited.over_kg.support(rule)
        if support != benchmark_rule.support:
            text = f"`{rule}` has support {support:,}, not {benchmark_rule.support:,}"
            wrong.append(Example(text, rule_location(number)))
            continue
        conclusions = audited.over_kg.conclusions(rule, new=True)
        new = len(conclusions) if audited.depth == 1 else new_conclusions(audited, number)
        if new != benchmark_rule.new:
            text = f"`{rule}` has {new:,} new conclusions, not {benchmark_rule.new:,}"
            wrong.append(Example(text, rule_location(number)))
        elif recipe is not None and sampled != (expected := _sample_size(audited, benchmark_rule, conclusions)):
            text = f"of `{rule}` {sampled:,} conclusions were sampled, not {expected:,}"
            wrong.append(Example(text, rule_location(number)))
    yield from errors(wrong, "the counts of {} rules are wrong")
    yield from _wrong_measures(audited)
    yield from _unlike_heads(audited)


Entry = BenchmarkRule | PassedOver


def _rank_again(audited: AuditedBenchmark) -> Generator[Finding, None, dict[Rule, int]]:
    """Check that the rules are those that the recipe selects from K, and what was passed over for them.

    Return the supports of rules as far as ranking tells them: that is cheaper than counting the witnesses of each.
    """
    recipe, benchmark = audited.benchmark.recipe, audited.benchmark
    supports: dict[Rule, int] = {}
    if recipe is None or recipe.inductive:  # rules are chosen on K, of which the folder holds the two sides
        return supports
    patterns = named_patterns(recipe)
    texts = [str(pattern) for pattern in patterns] if recipe.protocol == "sound" else []
    wrong = [Example(f"`{p.rule}` was passed over", MANIFEST) for p in benchmark.passed_over if p.pattern not in texts]
    interplay, seen = Interplay(), set[str]()
    for pattern in patterns:
        entries: list[Entry] = [*benchmark.rules, *benchmark.passed_over]
        entries = [entry for entry in entries if entry.pattern == str(pattern)]
        try:
            ranked = _ranked(audited, pattern, entries, seen, wrong)
        except LogInferError as problem:
            say, ranked = note if isinstance(problem, LimitError) else error, None
            yield say(1, f"candidates of `{pattern.name}` were not ranked again: {problem.message}")
        supports |= {entry.rule: support for entry, support in ranked or ()}
        for entry in entries if ranked is None else [entry for entry, _ in ranked]:
            why = _wrong_entry(audited, entry, supports, None if ranked is None else interplay)
            wrong += [] if why is None else [Example(f"`{entry.rule}` {why}", MANIFEST)]
            if _was_selected(entry):
                interplay.add(entry.rule)
        seen |= {canonical_text(entry.rule) for entry in entries}
    yield from errors(wrong, "{} candidates were not selected, or not passed over, as the recipe says")
    return supports


def _was_selected(entry: Entry) -> bool:
    """Say whether a candidate became a rule, or would have without another choice by twins."""
    return isinstance(entry, BenchmarkRule) or (entry.reason or "").endswith(WITH_TWIN)


def _ranked(
    audited: AuditedBenchmark, pattern: Pattern, entries: Sequence[Entry], seen: Set[str], wrong: list[Example]
) -> list[tuple[Entry, int]] | None:
    """Return the rules of a pattern, and what was passed over, with their supports and in the order of candidates.

    None where that would take as long as to build the benchmark. What comes first but is not told of is wrong, and so
    is what comes after the last rule.

    Raises
    ------
    LimitError
        When there are too many candidates.
    """
    recipe, engine, notes = audited.recipe, audited.over_kg, audited.benchmark.notes
    if recipe.select_by != "support" or (
        recipe.head == "typed" and any(selection.NO_HEAD_FITS in text for text in notes)
    ):
        return None
    if (recipe.max_support or recipe.select in ("random", "interval")) and not selection.can_be_listed(
        engine.graph, pattern
    ):
        raise LimitError("there are too many of them")
    left, selected, wanted = {entry.rule.body_text: entry for entry in entries}, 0, widened(recipe).k1
    ranked: list[tuple[Entry, int]] = []
    # However large k1 is said to be, no more is ranked than what is told.
    for candidate in selection.candidates(
        recipe.changed(k1=min(wanted, len(left) + 1)), engine, pattern, audited.progress
    ):
        if selected == wanted:
            break
        if canonical_text(candidate.rule) in seen:
            continue
        entry = left.pop(candidate.rule.body_text, None)
        if entry is None or entry.rule != candidate.rule:
            text = f"`{candidate.rule}`, support {candidate.support:,}, was neither selected nor passed over"
            wrong.append(Example(text, MANIFEST))
            return ranked
        selected += _was_selected(entry)
        ranked.append((entry, candidate.support))
    wrong += [Example(f"`{entry.rule}` is none of the first candidates", MANIFEST) for entry in left.values()]
    return ranked


def _wrong_entry(
    audited: AuditedBenchmark, entry: Entry, supports: Mapping[Rule, int], interplay: Interplay | None
) -> str | None:
    """Say what is wrong with a candidate; `interplay` is that of the rules selected before it, where they are known."""
    recipe, engine, rule = audited.recipe, audited.over_kg, entry.rule
    low, high = selection.support_bounds(recipe)
    if not low <= entry.support <= high:
        return f"has support {entry.support:,}, which the recipe does not allow"
    why = (
        selection.objection(recipe, engine, rule, entry.new, interplay)
        if interplay and recipe.protocol == "sound"
        else None
    )
    if isinstance(entry, BenchmarkRule):
        return None if why is None else f"was selected, but {why}"
    support, new = supports.get(rule), len(engine.conclusions(rule, new=True))
    if entry.support != (engine.support(rule) if support is None else support) or entry.new != new:
        return f"was passed over, but not with support {entry.support:,} and {entry.new:,} new conclusions"
    if not represents(parse_pattern(entry.pattern), rule):
        return f"was passed over, but is not of the shape `{entry.pattern}`"
    holds = (entry.reason is None) == (new < recipe.min_new)
    if entry.reason is not None:
        holds &= recipe.select == "twins" if _was_selected(entry) else interplay is None or entry.reason == why
    return None if holds else f"was passed over, but not because {entry.reason or 'it concludes too little'}"


def _sample_size(audited: AuditedBenchmark, benchmark_rule: BenchmarkRule, conclusions: Triples) -> int:
    """Return how many conclusions the recipe samples: k2 at most, and under `sound` none of a rare rule."""
    recipe, context = audited.recipe, audited.benchmark.context
    if context is not None:
        return inductive_sample_size(audited, context, benchmark_rule, conclusions)
    if recipe.protocol == "sound" and benchmark_rule.new < recipe.min_new:
        return 0
    most = min(benchmark_rule.new, recipe.k2)
    return min(benchmark_rule.sampled, most) if recipe.match else most  # twins tell how many


def rare_rules(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each rule has enough conclusions to be learned and tested."""
    rules, recipe, provenance = audited.rules, audited.benchmark.recipe, audited.provenance
    is_valid = (provenance.rule >= 0) & (provenance.rule < len(rules))
    table = np.zeros((len(rules), len(SPLITS)), dtype=np.int64)
    np.add.at(table, (provenance.rule[is_valid], provenance.split[provenance.conclusion[is_valid]]), 1)
    if recipe is not None and recipe.protocol == "sound" and recipe.patterns and not recipe.inductive:
        numbered = enumerate(audited.benchmark.rules)
        too_few = [
            Example(f"`{rule.rule}`", rule_location(i)) for i, rule in numbered if 0 <= rule.new < recipe.min_new
        ]
        yield from errors(too_few, f"{{}} rules have fewer than {recipe.min_new} new conclusions, against the recipe")
    yield from _unknown_relations(audited)
    # Given rules are kept whatever they conclude, and a conclusion that is one rule's share of test may be in
    # train for another.
    say = warning if recipe is None or (recipe.protocol != "sound" and recipe.patterns) else note
    for column, split in enumerate(SPLITS):
        if split == "valid":
            continue
        silent = np.flatnonzero(table[:, column] == 0).tolist()
        if silent:
            message = f"{len(silent):,} of {len(rules):,} rules have no conclusion in P_{split}"
            yield say(len(silent), message, [Example(f"`{rules[i]}`", rule_location(i)) for i in silent])


def _unknown_relations(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Warn about rules with a relation in the body that neither K nor a conclusion can have."""
    graph, rules, recipe = audited.kg, audited.rules, audited.benchmark.recipe
    known = {*graph.relations.names(graph.preds), *(str(rule.head.relation) for rule in rules), RDF_TYPE}
    unknown = [(name, number) for number, rule in enumerate(rules) for name in rule.relations if name not in known]
    strange = [Example(f"`{name}` in `{rules[number]}`", rule_location(number)) for name, number in unknown]
    if strange:
        # The rules that come with the package are those of a whole ontology.
        say = note if recipe is not None and recipe.rules in SHIPPED else warning
        yield say(len(strange), f"rules have {len(strange):,} relations that the graph does not know", strange)


# -- measures ---------------------------------------------------------------------------------------


def _wrong_measures(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Check the confidence and overlap that the manifest gives for each rule, and the recipe's interval."""
    recipe = audited.benchmark.recipe
    if recipe is None or (recipe.select in ("support", "twins") and recipe.head != "best"):
        return
    if recipe.inductive:
        return  # rules are chosen on K, of which the folder holds what is left on the two sides
    wrong = []
    for number, benchmark_rule in enumerate(audited.benchmark_rules):
        if (text := _wrong_measure(audited, benchmark_rule)) is None and recipe.interval is not None:
            value = getattr(benchmark_rule, recipe.select_by)
            low, high = parse_interval(recipe.interval)
            if value is not None and not low <= value <= high:
                text = f"has the {recipe.select_by} {value:,.4g}, outside {recipe.interval}"
        if text is not None:
            wrong.append(Example(f"`{benchmark_rule.rule}` {text}", rule_location(number)))
    yield from errors(wrong, "the measures of {} rules are wrong")


def _wrong_measure(audited: AuditedBenchmark, benchmark_rule: BenchmarkRule) -> str | None:
    """Say what is wrong with the measures of a rule; None if nothing is."""
    engine, rule = audited.over_kg, benchmark_rule.rule
    if benchmark_rule.confidence is None:
        return "has no measures"
    total = concluded(engine, rule)
    new = len(engine.conclusions(rule, new=True))
    if total == 0 or not isclose(benchmark_rule.confidence, 1 - new / total):
        return f"does not have the confidence {benchmark_rule.confidence:.4g}"
    actual, recorded = overlap(engine, rule), benchmark_rule.overlap
    if (actual is None) != (recorded is None) or not isclose(actual or 0, recorded or 0):
        return f"does not have the overlap {recorded}"
    return None


def _unlike_heads(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Check that typed heads are among the relations that look like the ends of their bodies."""
    recipe = audited.benchmark.recipe
    if recipe is None or recipe.head != "typed" or recipe.inductive:
        return
    wrong = []
    heads: dict[str, Heads] = {}
    for number, benchmark_rule in enumerate(audited.benchmark_rules):
        text, rule = benchmark_rule.pattern or "", benchmark_rule.rule
        try:
            if text not in heads:
                heads[text] = Heads(recipe, audited.over_kg, parse_pattern(text))
        except InputError:
            continue  # said by `rule_shapes`
        if rule.head.relation not in heads[text].allowed(rule)[0]:
            wrong.append(Example(f"`{rule}`", rule_location(number)))
    yield from errors(wrong, "the heads of {} rules do not look like the ends of their bodies, against the recipe")


# -- shapes -----------------------------------------------------------------------------------------

# Longer bodies are compared as they are written: trying all orders of their atoms would take too long.
_LONG = 8


def represents(pattern: Pattern, rule: Rule) -> bool:
    """Say whether a rule is the pattern with predicates in place of its templates.

    The head's predicate must not occur in the body unless the pattern says so: such a rule is no candidate.
    """
    return predicates(pattern, rule) is not None


def predicates(pattern: Pattern, rule: Rule) -> dict[Template, str] | None:
    """Return the predicate that a rule has for each template of a pattern; None for a rule of another shape."""
    atoms, rule_atoms = list(dict.fromkeys(pattern.atoms)), list(dict.fromkeys(rule.atoms))
    if len(atoms) != len(rule_atoms):
        return None
    denied, rule_denied = (list(dict.fromkeys(n.atom for n in c.negations)) for c in (pattern, rule))
    if len(denied) != len(rule_denied):
        return None
    rule_inequalities = {frozenset(part.terms) for part in rule.inequalities}
    for positive in _matches(atoms, rule_atoms, _Match({}, {})):
        inequalities = {frozenset(positive.term(t) for t in part.terms) for part in pattern.inequalities}
        if inequalities != rule_inequalities:
            continue
        for match in _matches(denied, rule_denied, positive):
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

    def extended(self, atom: Atom, rule_atom: Atom) -> _Match | None:
        """Return the match with this atom's terms and templates added; None if they contradict it."""
        if atom.is_type != rule_atom.is_type:
            return None
        terms, names = dict(self.terms), dict(self.names)
        if not _bind_name(atom.relation, str(rule_atom.relation), names):
            return None
        for term, rule_term in zip(atom.terms, rule_atom.terms, strict=True):
            if isinstance(term, Template):
                if isinstance(rule_term, Variable) or not _bind_name(term, rule_term.name, names):
                    return None
            elif not isinstance(term, Variable):
                if term != rule_term:
                    return None
            elif not isinstance(rule_term, Variable) or terms.setdefault(term, rule_term) != rule_term:
                return None
        return _Match(terms, names) if len(set(terms.values())) == len(terms) else None


def _bind_name(predicate: object, name: str, names: dict[Template, str]) -> bool:
    if isinstance(predicate, Template):
        return names.setdefault(predicate, name) == name
    return predicate == name


def _matches(atoms: list[Atom], rule_atoms: list[Atom], match: _Match) -> Iterator[_Match]:
    if not atoms:
        yield match
        return
    for i, candidate in enumerate(rule_atoms):
        extended = match.extended(atoms[0], candidate)
        if extended is not None:
            yield from _matches(atoms[1:], rule_atoms[:i] + rule_atoms[i + 1 :], extended)
        if len(rule_atoms) > _LONG:
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
        types = [atom.object for atom in atoms if atom.is_type]
        return rule.head.object not in types
    return rule.head.relation not in [atom.relation for atom in atoms]
