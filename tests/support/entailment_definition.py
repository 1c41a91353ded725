"""Entailment by its definition: materialise on every small graph, and look whether the rule holds there."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from loginfer.logic import Constant, Inequality, Rule, Variable


def entailed_on_all_small_graphs(rules, rule) -> bool:
    """Whether the rule holds in the materialisation of every small graph.

    Small means: over all constants that occur anywhere and as many further elements as the rule has
    variables, with at most as many facts as the rule has atoms in its body. That is enough to find a
    counterexample where there is one. Say that on some graph G the materialisation makes the body true and
    leaves the head out. The facts that the body's atoms became are a graph of that size in itself, once
    elements that are no constants are renamed; its materialisation is part of that of G, so it makes the
    body true, too, and leaves the head out.
    """
    everything = [*rules, rule]
    constants = sorted({t.name for r in everything for part in (*r.body, r.head) for t in _constants(part)})
    domain = [*constants, *(f"new {i}" for i in range(len(rule.variables)))]
    relations = sorted({atom.relation for r in everything for atom in r})
    bits = {fact: i for i, fact in enumerate(product(domain, relations, domain))}
    assert len(bits) < 63
    graphs = _graphs(len(bits), len(rule.atoms))
    instances = [found for r in rules for found in _ground(r, domain, bits)]
    while True:
        before = graphs.copy()
        for body, head in instances:
            graphs[graphs & body == body] |= head
        if np.array_equal(before, graphs):
            break
    return not any(
        bool(((graphs & body == body) & (graphs & head == 0)).any()) for body, head in _ground(rule, domain, bits)
    )


def _constants(part):
    return [term for term in part.terms if isinstance(term, Constant)]


def _graphs(facts: int, most: int) -> np.ndarray:
    return np.array(
        [sum(1 << i for i in chosen) for size in range(most + 1) for chosen in combinations(range(facts), size)],
        dtype=np.int64,
    )


def _ground(rule: Rule, domain: list[str], bits: dict) -> list[tuple[int, int]]:
    """All instances of a rule that its inequalities allow: the facts of body and head as bits."""
    found = []
    for values in product(domain, repeat=len(rule.variables)):
        names = dict(zip(rule.variables, values, strict=True))

        def value(term, names=names):
            return names[term] if isinstance(term, Variable) else term.name

        if any(isinstance(p, Inequality) and value(p.left) == value(p.right) for p in rule.body):
            continue
        body = 0
        for atom in rule.atoms:
            body |= 1 << bits[value(atom.subject), atom.relation, value(atom.object)]
        head = 1 << bits[value(rule.head.subject), rule.head.relation, value(rule.head.object)]
        found.append((body, head))
    return found


def check_derivation(steps, rule, program) -> None:
    """Check that each step applies a rule of the program to what is there, and that the head comes out."""
    known = set(rule.atoms)
    for used, premises, conclusion in steps:
        assert used in program
        assert known.issuperset(premises)
        assert conclusion not in known
        names = {}
        for atom, premise in zip((*used.atoms, used.head), (*premises, conclusion), strict=True):
            assert atom.relation == premise.relation
            for term, value in zip(atom.terms, premise.terms, strict=True):
                assert names.setdefault(term, value) == value
                assert isinstance(term, Variable) or term == value
        for part in used.inequalities:
            assert names.get(part.left, part.left) != names.get(part.right, part.right)
        known.add(conclusion)
    assert rule.head in known
    needed = {premise for step in steps for premise in step.premises} | {rule.head}
    assert all(step.conclusion in needed for step in steps)
