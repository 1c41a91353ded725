"""What the rules R of a benchmark say: negation, conclusions of several steps, sub-rules R⁻, and complements.

Negation: conclusions must not stop following when others are added. P_train holds K and conclusions. If a rule negates
a predicate that another one concludes, what followed from K need not follow from P_train, or from P_all. So under
`sound` no selected rule negates what a selected rule concludes: then negated predicates have the same triples in K,
P_train and P_all, and everything is as without negation. Given rules may do so, as long as they are stratified; a note
says so. What a negation is for must show, too: a rule with a negation that excludes next to nothing can be learned
without it. So each negation of a selected rule excludes at least `min_new` new conclusions.

Steps: K_0 = K, and K_i = K_{i-1} ∪ T_R(K_{i-1}). A triple has the depth d if it is in K_d and not in K_{d-1}. A rule
derives it at depth d if it derives it from K_{d-1}: so T_r(K_{d-1}) ∖ K_{d-1} are the conclusions of a rule r at depth
d, and K_0 ⊆ K_1 ⊆ … ends in the materialisation M_R(K).

Sub-rules R⁻ are what a system should not learn although it is simpler than R. A sub-rule is written down as a rule's
index in R and a bit mask: bit i is set if part i of that rule's body is kept. That is how the origins of negatives are
stored, too.

Complements: some rules, such as symmetry, have no near miss but their complement. Let p be the share of a rule's
conclusions whose ends another relation connects in the body's direction as well, and q the share of negatives of which
that holds. Negatives are not connected by the rule's own relation, or they would be true. Two shortcuts name no
relation but the conclusion's own: "connected by any relation" is right for all conclusions and for 1 - q of negatives;
"connected by another one" is right, turned round, for 1 - p of the conclusions and for q of the negatives. With as many
negatives as conclusions their accuracies are 1 - q / 2 and (1 + q - p) / 2. Whatever negatives are chosen, the better
of the two reaches (3 - p) / 4 at least, and no more than that at q = (1 + p) / 2. It is 60 % or less only where p is at
least 3 / 5: where that is wanted, conclusions must be chosen, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.recipe import Recipe
from loginfer.engine import Derivations, Engine, Materialisation
from loginfer.errors import InputError, LimitError
from loginfer.kg import RDF_TYPE, KnowledgeGraph, Triples
from loginfer.kg.graph import places_of
from loginfer.logic.rule import BodyAtom, Negation, Pattern, Rule
from loginfer.logic.stratification import Predicate, negated_predicates, predicate_of
from loginfer.logic.subrules import is_own_complement, kept_parts
from loginfer.progress import Progress

# -- negation ---------------------------------------------------------------------------------------


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
        head = predicate_of(rule.head)
        for negated in negated_predicates(rule):
            if _meet(negated, head):
                return "it negates what it concludes"
            if any(_meet(negated, concluded) for concluded in self._concluded):
                return f"it negates {_shown(negated)}, which a selected rule concludes"
        if any(_meet(head, negated) for negated in self._negated):
            return f"it concludes {_shown(head)}, which a selected rule negates"
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
    counts = []
    for negation in dict.fromkeys(rule.negations):
        without = Rule.known_safe(tuple(part for part in rule.body if part != negation), rule.head)
        counts.append(sum(map(len, engine.conclusions_in_parts(without, new=True))) - new)
    return min(counts) if counts else None


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


def without_retractable(rules: Sequence[Rule]) -> list[Rule]:
    """Return rules without negations of what rules conclude: from P_all they derive what follows from any part of it.

    A part is K with some of the conclusions.
    """
    concluded = {predicate_of(rule.head) for rule in rules}

    def stays(part: BodyAtom) -> bool:
        return not isinstance(part, Negation) or not any(_meet(predicate_of(part.atom), head) for head in concluded)

    return [Rule.known_safe(tuple(filter(stays, rule.body)), rule.head) for rule in rules]


def _meet(one: Predicate, two: Predicate) -> bool:
    """Say whether triples of one predicate can be triples of the other."""
    if one[0] != two[0]:
        return False
    return one[0] != RDF_TYPE or one[1] == two[1] or None in (one[1], two[1])


def _shown(predicate: Predicate) -> str:
    name, kind = predicate
    return f"`{name}`" if name != RDF_TYPE else "types" if kind is None else f"the type `{kind}`"


def refuse_negations(rules: Sequence[Rule | Pattern]) -> None:
    """Refuse rules and patterns with a negation: what follows later may take back what followed before.

    Raises
    ------
    InputError
        With the first such rule.
    """
    for rule in rules:
        if rule.negations:
            hint = "leave out `depth`, or the rule"
            raise InputError("a benchmark of several steps has no rules with a negation", where=str(rule), hint=hint)


# -- conclusions of several steps -------------------------------------------------------------------


def everything_entailed(
    engine: Engine, rules: Sequence[Rule], max_triples: int, progress: Progress | None = None
) -> Materialisation:
    """Return M_R(K) ∖ K with the depth of each triple.

    Raises
    ------
    LimitError
        When there are more than `max_triples`.
    """
    try:
        return engine.materialise(rules, max_triples=max_triples, progress=progress)
    except LimitError as error:
        message = f"more than {max_triples:,} triples follow from the graph and the {len(rules):,} rules"
        hint = "choose fewer rules (k1) or others, leave out `depth`, or raise `max_triples`"
        raise LimitError(message, hint=hint) from error


class Rounds:
    """K_0, K_1, … with an engine over each.

    Parameters
    ----------
    engine
        An engine over K, whose vocabularies hold every name of the rules' heads.
    rules
        R, without negations.
    depth
        How many steps count.
    open_engine
        Opens an engine of the same kind over another graph.
    max_triples
        Give up when more triples follow.
    progress
        Called with what is being done, how much is done, and how much there is.
    """

    def __init__(
        self,
        engine: Engine,
        rules: Sequence[Rule],
        depth: int,
        open_engine: Callable[[KnowledgeGraph], Engine],
        *,
        max_triples: int,
        progress: Progress | None = None,
    ) -> None:
        refuse_negations(rules)
        self.rules = tuple(rules)
        self._engines: dict[int, Engine] = {1: engine}
        self._open = open_engine
        self._depth = depth
        self._max_triples = max_triples
        self._progress = progress

    @property
    def kg(self) -> KnowledgeGraph:
        """K."""
        return self._engines[1].graph

    @cached_property
    def closure(self) -> Materialisation:
        """M_R(K) ∖ K, all steps."""
        return everything_entailed(self._engines[1], self.rules, self._max_triples, self._progress)

    @property
    def steps(self) -> int:
        """In how many steps anything new follows, up to the depth that counts; at least 1."""
        return max(1, min(self._depth, self.closure.rounds))

    def over(self, step: int) -> Engine:
        """Return an engine over K_{step-1}, from which follows what has this depth."""
        if step not in self._engines:
            earlier = self.closure.triples[self.closure.depth < step]
            graph = self.kg.with_more(earlier)
            self._engines[step] = self._open(graph)
        return self._engines[step]

    @property
    def last(self) -> Engine:
        """An engine over K_{depth-1}, from which everything that counts follows in one step."""
        return self.over(self.steps)

    @cached_property
    def true(self) -> KnowledgeGraph:
        """M_R(K), as a graph."""
        return self.kg.with_more(self.closure.triples)

    def depths(self, triples: Triples) -> npt.NDArray[np.int8]:
        """Return int8[n], the depth of each triple: 0 in K, -1 for what does not follow in so many steps."""
        keys = self.kg.keys
        follows, indices = places_of(keys.pack(self.closure.triples), keys.pack(triples))
        depth = np.where(self.kg.contains(triples), 0, -1).astype(np.int8)
        steps = self.closure.depth[indices[follows]]
        depth[follows] = np.where(steps <= self._depth, steps, -1)
        return depth

    def derivations(self, triples: Triples) -> Derivations:
        """Return every pair of a triple and a rule that derives it at the triple's depth, sorted.

        Triples of K and those that do not follow have none.
        """
        depth = self.depths(triples)
        parts = [np.empty((0, 2), dtype=np.int64)]
        for step in range(1, self.steps + 1):
            rows = np.flatnonzero(depth == step)
            if len(rows):
                pairs = self.over(step).derivations(self.rules, triples[rows])
                parts.append(np.column_stack([rows[pairs.triple], pairs.rule]))
        joined = np.concatenate(parts)
        joined = joined[np.lexsort((joined[:, 1], joined[:, 0]))]
        return Derivations(joined[:, 0], joined[:, 1])


# -- sub-rules --------------------------------------------------------------------------------------

# Masks are stored in int32.
_MOST_PARTS = 31


def kept_masks(rules: Sequence[Rule]) -> tuple[tuple[int, ...], ...]:
    """Return for each rule the masks of its sub-rules in R⁻, longest first.

    Raises
    ------
    LimitError
        For a body of more than 31 parts, or of more than 18 distinct ones.
    """
    for rule in rules:
        if len(rule.body) > _MOST_PARTS:
            message = f"a rule has a body of {len(rule.body)} parts; query-guided sampling takes {_MOST_PARTS}"
            hint = "drop repeated parts, or choose another method for negatives"
            raise LimitError(message, where=str(rule), hint=hint)
    by_shape: dict[tuple[tuple[int, ...], ...], tuple[int, ...]] = {}  # rules of one shape share their subsets
    masks = []
    for kept in kept_parts(rules):
        if kept not in by_shape:
            # A head without variables is safe with no body at all; that is a fact, not a rule.
            by_shape[kept] = tuple(sum(1 << i for i in subset) for subset in kept if subset)
        masks.append(by_shape[kept])
    return tuple(masks)


def sub_rule(rule: Rule, kept: int) -> Rule:
    """Return the rule that keeps only some parts of a rule's body."""
    return Rule.known_safe(tuple(rule.body[i] for i in set_bits(kept)), rule.head)


def set_bits(mask: int) -> list[int]:
    """Return the numbers of the bits that are set, ascending."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def minimal(masks: Iterable[int]) -> list[int]:
    """Return those masks that contain no other one, in the order given.

    Dropping parts of a body only adds conclusions, so these conclude all that the others do.
    """
    ordered = list(masks)
    smallest: list[int] = []
    for mask in sorted(ordered, key=int.bit_count):
        if not any(small & mask == small for small in smallest):
            smallest.append(mask)
    return [mask for mask in ordered if mask in smallest]


# -- complements ------------------------------------------------------------------------------------


def complement_share(otherwise: float) -> float:
    """Return the share q of near misses among the negatives, given the share p of such conclusions."""
    return (1 + otherwise) / 2


# -- twins ------------------------------------------------------------------------------------------

# So many times k2 conclusions of a rule are looked at, of which those with a twin are kept: of any rule, and of one
# whose only near miss is its complement, since few of its conclusions can have a twin.
_MORE, _MORE_OF_COMPLEMENT = 4, 16


def looked_at(recipe: Recipe, most: int, rule: Rule) -> int:
    """Return how many conclusions of a rule to look at, if so many are to be distributed at most."""
    if not recipe.match:
        return most
    return most * (_MORE_OF_COMPLEMENT if is_own_complement(rule) else _MORE)
