"""What the sampling miners should find, by trying everything.

A row is (head, variables, head constant, end constant, steps): what a `RuleTable` has, with the steps as a
tuple. Loops have a constant of their own, behind the last entity.
"""

from collections import defaultdict
from itertools import product

import numpy as np
from hypothesis import strategies as st

from loginfer.kg import KnowledgeGraph, Vocabulary
from loginfer.systems.rules.mined import BOTH, NONE, OBJECT, SUBJECT, as_benchmark

ENTITIES = [f"e{i}" for i in range(6)]
RELATIONS = ["ra", "rb", "rc"]


def graph_of(triples, type_predicate=""):
    """Return a graph of triples of names, over the usual names and perhaps more."""
    names = [tuple(triple.split()) if isinstance(triple, str) else triple for triple in triples]
    return KnowledgeGraph.from_names(names, type_predicate=type_predicate)


def graphs(types=False, loops=True, least=1, most=20):
    """Draw graphs over a few entities and relations; with types also over two of these."""
    triple = st.tuples(st.sampled_from(ENTITIES), st.sampled_from(RELATIONS), st.sampled_from(ENTITIES))
    if types:
        typed = st.tuples(st.sampled_from(ENTITIES), st.just("type"), st.sampled_from(["e0", "T1", "T2"]))
        triple = st.one_of(triple, typed)
    drawn = st.lists(triple, min_size=least, max_size=most, unique=True)
    if not loops:
        drawn = drawn.map(lambda found: [t for t in found if t[0] != t[2]]).filter(lambda t: len(t) >= least)
    return drawn.map(
        lambda found: KnowledgeGraph(
            Vocabulary.of([*ENTITIES, "T1", "T2"]),
            Vocabulary.of([*RELATIONS, "type"]),
            _ids(found),
            type_predicate="type" if types else "",
        )
    )


def _ids(names):
    entities = list(Vocabulary.of([*ENTITIES, "T1", "T2"]))
    relations = list(Vocabulary.of([*RELATIONS, "type"]))
    rows = [(entities.index(s), relations.index(r), entities.index(o)) for s, r, o in names]
    return np.array(rows, dtype=np.int32).reshape(-1, 3)


def mine(system, graph):
    """Mine a graph to the end."""
    return system.mine(as_benchmark(graph, "made up"))


class Edges:
    """A graph's edges by step: those that a path may go along, and those with which it may only end."""

    def __init__(self, graph):
        self.graph = graph
        self.itself = len(graph.entities)
        self.along, self.ending = defaultdict(set), defaultdict(set)
        self.facts = {tuple(map(int, row)) for row in graph.triples}
        for s, r, o in list(self.facts):
            if r == graph.type_relation:
                self.ending[2 * r].add((s, o))
            elif s == o:
                self.ending[2 * r].add((s, self.itself))
                self.facts.add((s, r, self.itself))
            else:
                self.along[2 * r].add((s, o))
                self.along[2 * r + 1].add((o, s))

    def paths(self, steps, end):
        """Yield the entities of all paths along the steps; `end` is the constant it ends with, or None."""
        found = [(x,) for x in range(self.itself)]
        for place, step in enumerate(steps):
            last = place == len(steps) - 1
            edges = self.along[step] | (self.ending[step] if last and end is not None else set())
            found = [(*path, b) for path in found for a, b in edges if a == path[-1] and b not in path]
        return [path for path in found if end is None or not steps or path[-1] == end]


def predictions(graph, row):
    """Return the set of a rule's predictions and the set of the correct ones, as pairs or as values of X."""
    head, variables, constant, end, steps = row
    edges = graph if isinstance(graph, Edges) else Edges(graph)
    if variables == BOTH:
        pairs = {(path[0], path[-1]) for path in edges.paths(steps, None)}
        return pairs, {(x, y) for x, y in pairs if (x, head, y) in edges.facts}
    end = None if end == NONE else end
    # The end constant may be the head's; variables may not.
    last = len(steps) if end is not None else len(steps) + 1
    found = {path[0] for path in edges.paths(steps, end) if constant not in path[:last]}

    def true(x):
        return ((x, head, constant) if variables == SUBJECT else (constant, head, x)) in edges.facts

    return found, {x for x in found if true(x)}


def acyclic_rows(graph, length):
    """Yield every acyclic rule of a length over a graph that AnyBURL may make, sensible or not."""
    edges = Edges(graph)
    used = sorted({r for _, r, _ in edges.facts})
    plain = [r for r in used if r != graph.type_relation]
    for head, variables in product(used, (SUBJECT, OBJECT)):
        if variables == OBJECT and head == graph.type_relation:
            continue
        constants = range(edges.itself + (variables == SUBJECT))
        inner = [[2 * r + d for r in plain for d in (0, 1)]] * (length - 1)
        for steps in product(*inner, range(2 * len(graph.relations))):
            for constant, end in product(constants, [NONE, *range(edges.itself + 1)]):
                last = steps[-1]
                ends_a_path = end == edges.itself or last >> 1 == graph.type_relation
                if ends_a_path and (end == NONE or last & 1):
                    continue
                if end == edges.itself and last >> 1 == graph.type_relation:
                    continue
                # A type that has the name of a constant is not that constant.
                of_types = {relation == graph.type_relation for relation in (head, last >> 1)}
                if constant == end and len(of_types) == 2:
                    continue
                yield head, variables, constant, end, steps


def is_trivial(row):
    """Say whether the head is in the body."""
    head, variables, constant, end, steps = row
    return constant == end and steps == (2 * head + (variables == OBJECT),)


def rows_of(table):
    """Return {row: (predictions, correct)} for a `RuleTable`."""
    return {
        (
            int(table.head[i]),
            int(table.variables[i]),
            int(table.head_constant[i]),
            int(table.end_constant[i]),
            tuple(int(step) for step in table.body[i] if step != NONE),
        ): (int(table.predictions[i]), int(table.correct[i]))
        for i in range(len(table))
    }
