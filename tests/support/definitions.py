"""Section 3.3 of the paper, by loops over its definitions: slow, and hard to get wrong.

Everything is a set of triples of ids, each a tuple (subject, relation, object).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from loginfer.benchmark.benchmark import SPLITS, Splits
from loginfer.benchmark.negatives import Context
from loginfer.benchmark.program import kept_masks, sub_rule
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import extend, open_engine
from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic import canonical_text
from loginfer.logic.rule import Constant, Rule
from tests.support import brute_force

Triple = tuple[int, int, int]


def as_set(triples: Iterable[Sequence[int]]) -> set[Triple]:
    """Rows as a set of tuples."""
    return {(int(s), int(r), int(o)) for s, r, o in triples}


def as_rows(triples: Iterable[Triple]) -> np.ndarray:
    """A set of tuples as sorted rows."""
    return np.array(sorted(triples), dtype=np.int32).reshape(-1, 3)


def context_of(
    graph: KnowledgeGraph,
    rules: Sequence[Rule],
    *,
    k2: int = 10,
    seed: int = 0,
    positives_seed: int = 0,
    protocol: str = "sound",
    materialised: bool = False,
    engine: str = "native",
) -> Context:
    """A context for negatives, with positives distributed as section 3.2 says."""
    recipe = Recipe("graph", rules=tuple(map(str, rules)) or ("-> (a,R,b)",), k2=k2, seed=seed,
                    protocol=protocol, materialised=materialised)  # fmt: skip
    graph = extend(graph, rules)
    splits = distributed(recipe, graph, rules, positives_seed)
    return Context(recipe, open_engine(graph, engine), lambda g: open_engine(g, engine), tuple(rules), splits)


def distributed(recipe: Recipe, graph: KnowledgeGraph, rules: Sequence[Rule], seed: int = 0) -> Splits:
    """P_train, P_valid and P_test of section 3.2."""
    rng = np.random.default_rng(seed)
    shares: list[set[Triple]] = [as_set(graph.triples), set(), set()]
    for rule in rules:
        new = brute_force.conclusions(rule, graph, new=True)
        sample = [new[i] for i in rng.permutation(len(new))[: recipe.k2]]
        first, second = recipe.cuts(len(sample))
        for share, part in zip(shares, (sample[:first], sample[first:second], sample[second:]), strict=True):
            share |= set(part)
    train, valid, test = shares
    return Splits(as_rows(train), as_rows(valid - train), as_rows(test - train - valid))


def one_step(context: Context, triples: Iterable[Triple]) -> set[Triple]:
    """T_R of a set of triples."""
    graph = context.kg.with_triples(as_rows(triples))
    return {triple for rule in context.rules for triple in brute_force.conclusions(rule, graph)}


def everything(context: Context) -> set[Triple]:
    """P_all."""
    return {triple for split in SPLITS for triple in as_set(context.positives[split])}


def true_triples(context: Context) -> set[Triple]:
    """What must not be labelled negative."""
    known = everything(context)
    if context.recipe.protocol == "paper":
        return known
    # With a negation, what follows from less need not follow from more.
    again = one_step(context, known)
    if any(rule.negations for rule in context.rules):
        again |= one_step(context, as_set(context.kg.triples))
        again |= one_step(context, as_set(context.positives.train))
    if context.recipe.materialised:
        more = again if any(rule.negations for rule in context.rules) else set()
        return known | more | set(brute_force.closure(context.rules, context.kg))
    return known | again


def known_predicates(context: Context, triples: set[Triple]) -> set[Triple]:
    """Those triples that may be negatives by their predicate: under `sound` a positive must have it."""
    if context.recipe.protocol == "paper":
        return triples
    known = everything(context)
    predicates = {(t[1], t[2] if is_type(t, context.kg) else None) for t in known}
    return {t for t in triples if (t[1], t[2] if is_type(t, context.kg) else None) in predicates}


# -- the methods ------------------------------------------------------------------------------------


def is_type(triple: Triple, graph: KnowledgeGraph) -> bool:
    """Whether this is (e, type, t)."""
    return graph.type_relation is not None and triple[1] == graph.type_relation


def support_constants(context: Context) -> set[int]:
    """Const_sup: the constants of all triples of K that match a rule's body."""
    found: set[int] = set()
    known = brute_force.facts(context.kg)
    for rule in context.rules:
        for substitution in brute_force.substitutions(rule, known):
            for atom in rule.atoms:
                terms = [atom.subject] if atom.relation == RDF_TYPE else [atom.subject, atom.object]
                found |= {context.kg.entity_id(brute_force._value(term, substitution)) for term in terms}
    return found


def relevance_candidates(context: Context) -> set[Triple]:
    """N_cand without what is true."""
    constants = support_constants(context)
    found: set[Triple] = set()
    for rule in context.rules:
        relation = context.kg.relation_id(str(rule.head.relation))
        if rule.head.relation == RDF_TYPE:
            assert isinstance(rule.head.object, Constant)
            found |= {(e, relation, context.kg.entity_id(rule.head.object.name)) for e in constants}
        else:
            found |= {(s, relation, o) for s in constants for o in constants}
    return known_predicates(context, found - true_triples(context))


def position_candidates(context: Context, split: str) -> dict[Triple, str]:
    """C′ of a split without what is true; for each triple the position that was corrupted."""
    known = everything(context)
    concluded = as_set(context.positives[split]) & one_step(context, as_set(context.kg.triples))
    of_subject = {(t[0], c[1], c[2]) for c in concluded for t in known if t[1] == c[1]}
    of_object = {(c[0], c[1], t[2]) for c in concluded for t in known
                 if t[1] == c[1] and not is_type(c, context.kg)}  # fmt: skip
    return {
        t: "either" if t in of_subject & of_object else "subject" if t in of_subject else "object"
        for t in (of_subject | of_object) - true_triples(context)
    }


def random_candidates(context: Context, positive: Triple, part: str = "object") -> set[Triple]:
    """What one positive can become when one part of it is random; of (e, type, t) `type` stays."""
    s, r, o = positive
    constants, types, relations = (map(int, ids) for ids in (context.kg.consts, context.kg.types, context.kg.rels))
    if part == "subject":
        made = {(value, r, o) for value in constants}
    elif is_type(positive, context.kg):
        made = {(s, r, value) for value in types} if part == "object" else set()
    else:
        made = {(s, r, v) for v in constants} if part == "object" else {(s, v, o) for v in relations}
    return known_predicates(context, made - true_triples(context))


def random_probabilities(context: Context, positive: Triple, parts: Iterable[str]) -> dict[tuple[Triple, str], float]:
    """What a positive alone becomes, by which part, and how likely: each part that can be replaced is as likely."""
    candidates = {part: random_candidates(context, positive, part) for part in parts}
    possible = {part: made for part, made in candidates.items() if made}
    return {(t, part): 1 / len(possible) / len(made) for part, made in possible.items() for t in made}


def subrules(rules: Sequence[Rule]) -> list[tuple[int, int, Rule]]:
    """R⁻: a rule's place, which parts of its body are kept (bit i for part i), and what remains of it.

    Every proper subset of the body, inequalities and negations included, that leaves a safe rule which is not
    equivalent to a rule of R. Equivalent ones are all there. What has no body at all is a fact, not a rule. A
    negation stays only with all atoms that bind its variables: else it would say something else.
    """
    own = {canonical_text(rule) for rule in rules}
    found: list[tuple[int, int, Rule]] = []
    for place, rule in enumerate(rules):
        for size in range(1, len(rule.body)):
            for kept in combinations(range(len(rule.body)), size):
                try:
                    shorter = Rule([rule.body[i] for i in kept], rule.head)
                except InputError:  # not safe
                    continue
                if any(shorter.existential(n) != rule.existential(n) for n in shorter.negations):
                    continue
                if canonical_text(shorter) not in own:
                    found.append((place, sum(1 << i for i in kept), shorter))
    return found


def undesired_conclusions(context: Context) -> set[Triple]:
    """T_{R⁻}(K) without what is true."""
    found: set[Triple] = set()
    for _, _, rule in subrules(context.rules):
        found |= set(brute_force.conclusions(rule, context.kg))
    return known_predicates(context, found - true_triples(context))


@dataclass(frozen=True, slots=True)
class Undesired:
    """A sub-rule in R⁻ of one rule of R.

    Parameters
    ----------
    rule
        Place of the rule in R.
    kept
        Bit i is set if the sub-rule keeps part i of that rule's body.
    sub_rule
        The sub-rule.
    """

    rule: int
    kept: int
    sub_rule: Rule


def undesired(rules: Sequence[Rule]) -> list[Undesired]:
    """Return R⁻ as pairs of a rule and a sub-rule of it, in the order of the rules, longest sub-rules first.

    A sub-rule that came from several rules is there once for each of them.
    """
    return [
        Undesired(place, kept, sub_rule(rules[place], kept))
        for place, masks in enumerate(kept_masks(rules))
        for kept in masks
    ]
