"""Rules over graphs small enough to apply them by trying everything."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

from loginfer.kg import KnowledgeGraph, Vocabulary
from loginfer.logic.rule import ScoredRule, ZeroRule
from loginfer.systems.rules.mined import BOTH, NONE, OBJECT, SUBJECT, MinedRules, RuleTable
from loginfer.systems.rules.texts import path_rule

ENTITIES, RELATIONS = 5, 3


def small_graph(triples) -> KnowledgeGraph:
    """Return a graph over e0 … e4 and r0 … r2."""
    return KnowledgeGraph(
        Vocabulary.of([f"e{i}" for i in range(ENTITIES)]),
        Vocabulary.of([f"r{i}" for i in range(RELATIONS)]),
        np.array(triples, dtype=np.int32).reshape(-1, 3),
    )


def row_predicts(graph: KnowledgeGraph, rules: MinedRules, place: int, triple) -> bool:
    """Say whether a path rule predicts a triple, by the definition."""
    table = rules.paths
    facts = {tuple(row) for row in graph.triples.tolist()}
    subject, relation, object_ = (int(value) for value in triple)
    if relation != table.head[place]:
        return False
    kind, constant = table.variables[place], int(table.head_constant[place])
    end = int(table.end_constant[place])
    start = object_ if kind == OBJECT else subject
    if kind != BOTH and (subject if kind == OBJECT else object_) != constant:
        return False
    steps = [step for step in table.body[place].tolist() if step != NONE]
    variables = [start]
    constants = set() if kind == BOTH else {constant} | ({end} - {NONE})
    # How many entities along the path are free: all but the start, and the last where that is given.
    last = object_ if kind == BOTH else end
    free = max(0, len(steps) - (last != NONE))
    for values in product(range(len(graph.entities)), repeat=free):
        path = [start, *values] + ([last] if steps and last != NONE else [])
        variables = path if kind == BOTH or end == NONE else path[:-1]
        if rules.distinct and (len(set(variables)) < len(variables) or constants & set(variables)):
            continue
        if all(
            ((a, step // 2, b) if step % 2 == 0 else (b, step // 2, a)) in facts
            for step, a, b in zip(steps, path, path[1:], strict=False)
        ):
            return True
    return False


def expected_order(graph: KnowledgeGraph, rules: MinedRules, triple) -> list[float]:
    """Return the confidences of the path rules that predict a triple, best first."""
    fired = [i for i in range(len(rules.paths)) if row_predicts(graph, rules, i, triple)]
    return sorted((float(rules.paths.confidence[i]) for i in fired), reverse=True)


@st.composite
def graphs(draw) -> KnowledgeGraph:
    """Draw a small graph, loops included."""
    entity, relation = st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1)
    return small_graph(draw(st.lists(st.tuples(entity, relation, entity), max_size=14)))


CONFIDENCES = (0.1, 0.25, 0.5, 0.50001, 0.9, 1.0)


@st.composite
def path_tables(draw, most: int = 8) -> RuleTable:
    """Draw path rules of all shapes."""
    rows = draw(st.lists(path_rows(), max_size=most))
    if not rows:
        return RuleTable.empty()
    head, variables, head_constant, end_constant, body, confidence = zip(*rows, strict=True)
    return RuleTable.of(
        head=head,
        variables=variables,
        head_constant=head_constant,
        end_constant=end_constant,
        body=body,
        confidence=confidence,
        predictions=range(10, 10 + len(rows)),
        correct=range(len(rows)),
    )


@st.composite
def path_rows(draw):
    """Draw one path rule."""
    entity = st.integers(0, ENTITIES - 1)
    kind = draw(st.sampled_from([BOTH, SUBJECT, OBJECT]))
    steps = draw(st.lists(st.integers(0, 2 * RELATIONS - 1), min_size=1 if kind == BOTH else 0, max_size=3))
    head_constant = NONE if kind == BOTH else draw(entity)
    end_constant = draw(st.just(NONE) | entity) if kind != BOTH and steps else NONE
    body = (*steps, *(NONE,) * (3 - len(steps)))
    head = draw(st.integers(0, RELATIONS - 1))
    return head, kind, head_constant, end_constant, body, draw(st.sampled_from(CONFIDENCES))


def scored_rules(mined, graph):
    """Return mined rules by name: path rules, best first, then the others; zero rules apart."""
    path_rules = [path_rule(mined.paths, index, graph) for index in mined.paths.best_first.tolist()]
    rules = [rule for rule in path_rules if isinstance(rule, ScoredRule)]
    return [*rules, *mined.others], [rule for rule in path_rules if isinstance(rule, ZeroRule)]
