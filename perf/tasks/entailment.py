"""Entailment of 200 rules over 237 relations, as FB15k-237 has, by 80,000 and by a million rules.

The rules are drawn at random with a fixed seed, as many of each shape as AnyBURL finds. Like real relations,
these have kinds of subjects and objects, and rules respect them: so a closure is never full, half of the
questions have the answer no, and for those all that follows has to be derived. The peer asks the same
of the native engine: each body as a graph of its own, materialised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

HERE = "perf.tasks.entailment"
RELATIONS = 237
QUESTIONS = 200
# As AnyBURL finds them: most rules have constants; of the others, lengths 1, 2 and 3.
ACYCLIC = 0.93
LENGTHS = (0.2, 0.5, 0.3)
CONSTANTS = 5000
KINDS = 12
# Share of acyclic rules that have a constant at the end of their body.
ENDED = 0.9


def kinds() -> tuple[Any, Any]:
    """Return the kinds at which directed relations 2·R + d start and end."""
    both = np.random.default_rng(2).integers(0, KINDS, (RELATIONS, 2))
    return both.ravel(), both[:, ::-1].ravel()


def following(random: Any, here: Any) -> Any:
    """Return random directed relations that start at some kinds."""
    start, _ = kinds()
    by_kind = np.argsort(start, kind="stable")
    first = np.searchsorted(start[by_kind], np.arange(KINDS + 1))
    sizes = first[here + 1] - first[here]
    return by_kind[first[here] + (random.random(len(here)) * sizes).astype(np.int64)]


def paths(random: Any, length: Any) -> Any:
    """Return random paths of directed relations, with the kinds at which they start and end."""
    start, end = kinds()
    body = np.full((len(length), 3), -1)
    body[:, 0] = random.integers(0, 2 * RELATIONS, len(length))
    for step in (1, 2):
        drawn = following(random, end[body[:, step - 1]])
        body[:, step] = np.where(length > step, drawn, body[:, step - 1])
    ends = end[body[:, 2]]
    body[np.arange(3) >= length[:, None]] = -1
    return body, start[body[:, 0]], ends


def heads(random: Any, first: Any, last: Any) -> Any:
    """Return random relations from one kind to another; -1 where there is none."""
    start, end = kinds()
    pairs = start[::2] * KINDS + end[::2]
    order = np.argsort(pairs, kind="stable")
    low = np.searchsorted(pairs[order], first * KINDS + last, "left")
    high = np.searchsorted(pairs[order], first * KINDS + last, "right")
    drawn = low + (random.random(len(low)) * (high - low)).astype(np.int64)
    return np.where(high > low, order[np.minimum(drawn, len(order) - 1)], -1)


def mined(count: int, acyclic: float) -> dict[str, Any]:
    """Return random rules as arrays; constant i is of the kind i modulo `KINDS`."""
    random = np.random.default_rng(0)
    # Of cyclic rules some have no head that fits and are drawn again.
    many = count + int((1 - acyclic) * count * 4)
    open_ = np.arange(many) < acyclic * count
    length = np.where(open_, 1, random.choice([1, 2, 3], size=many, p=LENGTHS))
    body, first, last = paths(random, length)
    ends = kinds()[1]
    towards = following(random, first)
    head = np.where(open_, towards // 2, heads(random, first, last))
    kept = np.flatnonzero(head >= 0)[:count]
    open_, towards = open_[kept], towards[kept]

    def constants(kind: Any) -> Any:
        return kind + KINDS * random.integers(0, CONSTANTS // KINDS, len(kept))

    ended = open_ & (random.random(len(kept)) < ENDED)
    return {
        "head": head[kept],
        "body": body[kept],
        "variables": np.where(open_, 1 + towards % 2, 0),
        "head_constant": np.where(open_, constants(ends[towards]), -1),
        "end_constant": np.where(ended, constants(last[kept]), -1),
        "relations": [f"r{i}" for i in range(RELATIONS)],
        "constants": [f"c{i}" for i in range(CONSTANTS)],
    }


def questions(count: int) -> list[Any]:
    """Return compositions to ask about, every second with a head that fits the kinds of its body."""
    from loginfer import parse_rule

    random = np.random.default_rng(1)
    body, first, last = paths(random, np.full(4 * count, 2))
    fitting = heads(random, first, last)
    kept = np.flatnonzero(fitting >= 0)[:count]
    asked = []
    for number, place in enumerate(kept.tolist()):
        head = fitting[place] if number % 2 else random.integers(0, RELATIONS)
        atoms = []
        for code, (here, there) in zip(body[place, :2].tolist(), ("xy", "yz"), strict=True):
            ends = (there, here) if code % 2 else (here, there)
            atoms.append(f"({ends[0]},r{code // 2},{ends[1]})")
        asked.append(parse_rule(f"{', '.join(atoms)} -> (x,r{head},z)"))
    return asked


def ours(count: int, acyclic: float, ask: int) -> Any:
    """Prepare rules and questions. The index over the rules is made anew in each call and counts."""
    from loginfer.logic import Entailment

    table, asked = mined(count, acyclic), questions(ask)

    def call() -> list[bool]:
        known = Entailment.of_table(**table)
        return [known.entails(rule) for rule in asked]

    return call, sum


def engine(count: int, acyclic: float, ask: int) -> Any:
    """Prepare the native engine: rules as objects, each body a graph. Binding and reasoning count."""
    from loginfer import KnowledgeGraph, extend, open_engine
    from loginfer.logic.entailment import PathRules
    from loginfer.logic.rule import Constant

    table = mined(count, acyclic)
    widths = {"variables": np.int8}
    columns = ("head", "variables", "head_constant", "end_constant", "body")
    arrays = [np.asarray(table[name], dtype=widths.get(name, np.int32)) for name in columns]
    rules = PathRules(*arrays, table["relations"], table["constants"])
    program = [rules.rule(i) for i in range(len(rules))]

    def asked_of_engine(rule: Any) -> bool:
        names = {variable: Constant(f"frozen {variable}") for variable in rule.variables}
        facts = [atom.rename(names) for atom in rule.atoms]
        graph = KnowledgeGraph.from_names([(a.subject.name, a.relation, a.object.name) for a in facts])
        graph = extend(graph, [*program, rule])
        head = rule.head.rename(names)
        goal = (head.subject.name, head.relation, head.object.name)
        if goal in graph.names(graph.triples):
            return True
        return goal in set(graph.names(open_engine(graph).materialise(program).triples))

    asked = questions(ask)
    return lambda: [asked_of_engine(rule) for rule in asked], sum


def tasks(space: Workspace) -> list[Task]:
    """Return both sizes with all questions, and few questions beside the engine."""
    few = {"count": 1000, "acyclic": 0.0, "ask": 10}

    def size(count: int, acyclic: float) -> dict[str, Any]:
        return {"count": count, "acyclic": acyclic, "ask": QUESTIONS}

    return [
        Task(
            "entailment",
            "200 rules entailed by 80,000: index and answers",
            (Case(OURS, f"{HERE}:ours", size(80_000, ACYCLIC), seconds=0.1),),
        ),
        Task(
            "entailment-cyclic",
            "200 rules entailed by 80,000 without constants",
            (Case(OURS, f"{HERE}:ours", size(80_000, 0.0), seconds=0.1),),
        ),
        Task(
            "entailment-million",
            "200 rules entailed by 1,000,000: index and answers",
            (Case(OURS, f"{HERE}:ours", size(1_000_000, ACYCLIC), seconds=3),),
        ),
        Task(
            "entailment-engine",
            "10 rules entailed by 1,000, beside our own engine",
            (
                Case(OURS, f"{HERE}:ours", few),
                Case("native engine, body by body", f"{HERE}:engine", few, faster=10, limit=120),
            ),
        ),
    ]
