"""What negation in rules asks of a benchmark: conclusions must not stop following when others are added.

P_train holds K and conclusions. If a rule negates a predicate that another one concludes, what followed from
K need not follow from P_train, or from P_all. So under `sound` no selected rule negates what a selected rule
concludes: then negated predicates have the same triples in K, P_train and P_all, and everything is as without
negation. Given rules may do so, as long as they are stratified; a note says so.

What a negation is for must show, too: a rule with a negation that excludes next to nothing can be learned
without it. So each negation of a selected rule excludes at least `min_new` new conclusions.
"""

from __future__ import annotations

from collections.abc import Sequence

from loginfer.engine import Engine
from loginfer.kg import RDF_TYPE
from loginfer.logic.rule import Rule
from loginfer.logic.stratification import Predicate, negated_predicates, predicate_of

__all__ = ["Interplay", "has_negations", "least_excluded", "negation_notes"]


def has_negations(rules: Sequence[Rule]) -> bool:
    """Say whether some rule has a negated atom."""
    return any(rule.negations for rule in rules)


class Interplay:
    """The predicates that selected rules conclude and negate."""

    def __init__(self) -> None:
        self._concluded: dict[Predicate, None] = {}
        self._negated: dict[Predicate, None] = {}

    def add(self, rule: Rule) -> None:
        """Remember a rule that was selected."""
        self._concluded[predicate_of(rule.head)] = None
        self._negated.update(dict.fromkeys(negated_predicates(rule)))

    def objection(self, rule: Rule) -> str | None:
        """Return why a candidate does not go with the selected rules; None if it does."""
        own = predicate_of(rule.head)
        for negated in negated_predicates(rule):
            if _meet(negated, own):
                return "it negates what it concludes"
            if any(_meet(negated, concluded) for concluded in self._concluded):
                return f"it negates {_shown(negated)}, which a selected rule concludes"
        if any(_meet(own, negated) for negated in self._negated):
            return f"it concludes {_shown(own)}, which a selected rule negates"
        return None


def least_excluded(engine: Engine, rule: Rule, new: int) -> int | None:
    """Return how many new conclusions each negation of a rule excludes, at least; None without negations.

    Parameters
    ----------
    engine
        An engine over K.
    rule
        The rule.
    new
        How many new conclusions it has.
    """
    found = []
    for negation in dict.fromkeys(rule.negations):
        without = Rule.known_safe(tuple(part for part in rule.body if part != negation), rule.head)
        found.append(sum(map(len, engine.conclusions_in_parts(without, new=True))) - new)
    return min(found) if found else None


def negation_notes(rules: Sequence[Rule]) -> tuple[str, ...]:
    """Return a note on predicates that some rule negates and some rule concludes, if there are any."""
    concluded = dict.fromkeys(predicate_of(rule.head) for rule in rules)
    negated = dict.fromkeys(predicate for rule in rules for predicate in negated_predicates(rule))
    both = [_shown(n) for n in negated if any(_meet(n, c) for c in concluded)]
    if not both:
        return ()
    listed = f"{', '.join(both[:5])}{', …' if len(both) > 5 else ''}"
    return (
        f"rules negate {listed}, which rules conclude too: all conclusions follow from K, but some may not "
        "follow from P_train or P_all, where there is more",
    )


def _meet(one: Predicate, two: Predicate) -> bool:
    """Say whether triples of one predicate can be triples of the other."""
    if one[0] != two[0]:
        return False
    return one[0] != RDF_TYPE or one[1] == two[1] or None in (one[1], two[1])


def _shown(predicate: Predicate) -> str:
    name, kind = predicate
    return f"`{name}`" if name != RDF_TYPE else "types" if kind is None else f"the type `{kind}`"
