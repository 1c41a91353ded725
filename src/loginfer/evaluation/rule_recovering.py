"""Section 5.4: which rules of a benchmark mined rules entail, beside what chance would entail.

Mined rules are taken as plain Datalog, as the files say and as the paper does: variables may stand for the
same entity, although AnyBURL and RuleN apply their rules to different ones only. Zero rules are no Datalog
rules and are passed over. Each share stands beside its controls, because a large rule set entails nearly
anything: a single step instead of the closure, and the same bodies with random heads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from loginfer.benchmark.randomness import generator
from loginfer.errors import InputError, LimitError
from loginfer.evaluation.rule_recovery_contained import contained
from loginfer.evaluation.rule_recovery_values import (
    LearnedSubRule,
    RecoveredRule,
    RecoveryFigures,
    RuleRecovery,
)
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.entailment import Entailment
from loginfer.logic.rule import Atom, Rule
from loginfer.logic.scored import ScoredRule
from loginfer.logic.subrules import SubRule, subrules_of
from loginfer.logic.terms import Constant
from loginfer.systems.rules.values import NONE, MinedRules, RuleTable

__all__ = ["CONFIDENCES", "DRAWS", "rule_recovery"]

# Rules of at least these confidences are looked at by themselves.
CONFIDENCES = (0.0, 0.05, 0.1, 0.5)
# Random heads for each body.
DRAWS = 20

Progress = Callable[[str, int, int | None], None]


def rule_recovery(
    rules: Sequence[Rule],
    mined: MinedRules | Sequence[ScoredRule | Rule],
    graph: KnowledgeGraph,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    confidences: Sequence[float] = CONFIDENCES,
    subrules: bool = True,
    progress: Progress | None = None,
) -> RuleRecovery:
    """Compare mined rules with the rules of a benchmark.

    Parameters
    ----------
    rules
        R, the rules of the benchmark.
    mined
        What was mined, over the ids of `graph`; or rules by name. A rule without a confidence counts as
        certain.
    graph
        P_train, whose vocabularies give the ids and the relations and types for random heads.
    seed, draws
        Of random heads: each is drawn uniformly from the relations (for a type atom: the types) that occur
        neither in the body nor in the head.
    confidences
        For each of these, the same for the mined rules of at least this confidence.
    subrules
        Whether to look at the sub-rules, too; of large bodies there are so many that they take most of the
        time.
    progress
        Called with what is being done, how much of it is done, and how much there is.

    Raises
    ------
    InputError
        If there are no rules, or none were mined.
    """
    if not rules:
        raise InputError("the benchmark has no rules to look for", hint="its rules.txt says which they are")
    everything = _as_mined(mined)
    if not len(everything):
        raise InputError("no rules were mined", hint="zero rules, which have no body, do not count")
    asked = _Questions(tuple(rules), graph, seed, draws, subrules)
    levels = sorted(set(confidences))
    for level in levels:
        if not 0 <= level <= 1:
            raise InputError(f"a confidence is between 0 and 1, not {level}")
    answers = _Answers(asked, everything, None)
    found: list[_Answers] = []
    steps = len(levels) + 1
    for number, level in enumerate(levels):
        if progress:
            progress("comparing rules", number, steps)
        chosen = _confident(everything, level)
        before = found[-1] if found else answers
        same = len(chosen) == len(before.mined)
        found.append(before if same else _Answers(asked, chosen, before))
        _ = found[-1].figures
    if progress:
        progress("comparing rules", steps - 1, steps)
    return RuleRecovery(
        answers.figures,
        tuple(replace(a.figures, confidence=level) for a, level in zip(found, levels, strict=True)),
        answers.rule_by_rule(),
        len(asked.subrules),
        draws,
        seed,
    )


# -- what is asked ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Questions:
    """The rules, their sub-rules and their random heads."""

    rules: tuple[Rule, ...]
    graph: KnowledgeGraph
    seed: int
    draws: int
    with_subrules: bool = True

    @cached_property
    def subrules(self) -> tuple[SubRule, ...]:
        return subrules_of(self.rules) if self.with_subrules else ()

    @cached_property
    def random_heads(self) -> list[list[Atom]]:
        """For each rule one head a draw; none if there is nothing to choose from."""
        random = generator(self.seed, "rule recovery", "random heads").random((len(self.rules), self.draws))
        found = []
        for rule, row in zip(self.rules, random, strict=True):
            heads = self._other_heads(rule)
            found.append([heads[int(share * len(heads))] for share in row] if heads else [])
        return found

    def _other_heads(self, rule: Rule) -> list[Atom]:
        head = rule.head
        if head.is_type:
            used = {atom.object for atom in rule if atom.is_type}
            types = [Constant(name) for name in self._types if Constant(name) not in used]
            return [Atom(head.subject, RDF_TYPE, kind) for kind in types]
        taken = {atom.relation for atom in rule}
        return [Atom(head.subject, name, head.object) for name in self._relations if name not in taken]

    @cached_property
    def _relations(self) -> list[str]:
        return [name for i, name in enumerate(self.graph.relations) if i != self.graph.type_relation]

    @cached_property
    def _types(self) -> list[str]:
        return self.graph.entities.names(self.graph.types)


# -- what is answered ------------------------------------------------------------------------------


class _Answers:
    """The answers of one set of mined rules.

    Parameters
    ----------
    asked
        The questions.
    mined
        The rules.
    larger
        The answers of a set that contains these rules: what that does not entail, these do not.
    """

    def __init__(self, asked: _Questions, mined: MinedRules, larger: _Answers | None) -> None:
        self.asked, self.mined, self._larger = asked, mined, larger
        self._entailment = entailment_of(mined, asked.graph)
        self._has_inequalities = any(scored.rule.inequalities for scored in mined.others)
        self._known: dict[object, bool | None] = {}

    @cached_property
    def entailed(self) -> list[bool | None]:
        return self._ask(self.asked.rules, None if self._larger is None else self._larger.entailed)

    @cached_property
    def subrules(self) -> list[bool | None]:
        rules = [sub.rule for sub in self.asked.subrules]
        return self._ask(rules, None if self._larger is None else self._larger.subrules)

    def _ask(self, rules: Sequence[Rule], larger: Sequence[bool | None] | None) -> list[bool | None]:
        return [
            False if larger is not None and larger[i] is False else self._decided(rule)
            for i, rule in enumerate(rules)
        ]

    def _decided(self, rule: Rule) -> bool | None:
        if rule.negations:
            return None  # canonical instances decide nothing about negation
        key: object = rule
        if not self._has_inequalities and all(part.left != part.right for part in rule.inequalities):
            # Then the inequalities of a rule make no difference, and most sub-rules differ in nothing else.
            key = (rule.atoms, rule.head)
        if key not in self._known:
            try:
                self._known[key] = self._entailment.entails(rule)
            except LimitError:
                self._known[key] = None
        return self._known[key]

    @cached_property
    def found(self) -> list[bool]:
        return contained(self.asked.rules, self.mined, self.asked.graph)

    @cached_property
    def single_step(self) -> list[bool]:
        return [not rule.negations and self._entailment.one_step(rule) for rule in self.asked.rules]

    @cached_property
    def random_heads(self) -> list[list[bool | None]]:
        answers: list[list[bool | None]] = []
        for place, (rule, heads) in enumerate(zip(self.asked.rules, self.asked.random_heads, strict=True)):
            larger = [None] * len(heads) if self._larger is None else self._larger.random_heads[place]
            open_ = list(
                dict.fromkeys(h for h, known in zip(heads, larger, strict=True) if known is not False)
            )
            if rule.negations:
                answers.append([None] * len(heads))
                continue
            known = dict(zip(open_, self._entailment.entails_heads(rule, open_), strict=True))
            answers.append([known.get(head, False) for head in heads])
        return answers

    @cached_property
    def figures(self) -> RecoveryFigures:
        draws = [row for row in self.random_heads if row]
        undecided = [*self.entailed, *self.subrules, *(answer for row in draws for answer in row)].count(None)
        return RecoveryFigures(
            None,
            len(self.mined),
            _share(self.entailed) or 0.0,
            _share(self.found) or 0.0,
            _share(self.single_step) or 0.0,
            # Each draw has one head a rule, so the mean over draws is the share of all.
            _share([answer for row in draws for answer in row]),
            _share(self.subrules),
            undecided,
        )

    def rule_by_rule(self) -> tuple[RecoveredRule, ...]:
        subrules: list[list[LearnedSubRule]] = [[] for _ in self.asked.rules]
        for sub, entailed in zip(self.asked.subrules, self.subrules, strict=True):
            for origin in sub.origins:
                subrules[origin].append(LearnedSubRule(sub.rule, entailed))
        return tuple(
            RecoveredRule(
                rule,
                self.found[i],
                self.entailed[i],
                self.single_step[i],
                _share(self.random_heads[i]),
                (self._entailment.derivation(rule) or ()) if self.entailed[i] else (),
                tuple(subrules[i]),
            )
            for i, rule in enumerate(self.asked.rules)
        )


def _share(answers: Sequence[bool | None]) -> float | None:
    return sum(map(bool, answers)) / len(answers) if answers else None


def entailment_of(mined: MinedRules, graph: KnowledgeGraph) -> Entailment:
    """Return what mined rules entail, read as plain Datalog; zero rules are passed over."""
    relations = list(graph.relations)
    if graph.type_relation is not None:
        relations[graph.type_relation] = RDF_TYPE
    paths = mined.paths
    return Entailment.of_table(
        paths.head,
        paths.body,
        relations=relations,
        constants=graph.entities,
        variables=paths.variables,
        head_constant=paths.head_constant,
        end_constant=paths.end_constant,
        others=[scored.rule for scored in mined.others],
    )


def _as_mined(mined: MinedRules | Sequence[ScoredRule | Rule]) -> MinedRules:
    if isinstance(mined, MinedRules):
        return replace(mined, paths=mined.paths.take(mined.paths.body[:, 0] != NONE))
    rules = [rule if isinstance(rule, ScoredRule) else ScoredRule(rule) for rule in mined]
    return MinedRules(RuleTable.empty(), tuple(rules))


def _confident(mined: MinedRules, least: float) -> MinedRules:
    others = [s for s in mined.others if s.confidence is None or s.confidence >= least]
    kept = mined.paths.take(np.asarray(mined.paths.confidence >= least))
    return replace(mined, paths=kept, others=tuple(others))
