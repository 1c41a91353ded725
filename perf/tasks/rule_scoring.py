"""Scores of 20,000 triples of FB15k-237 by 80,000 rules, beside DuckDB."""

from __future__ import annotations

from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

HERE = "perf.tasks.rule_scoring"
PEER = "perf.peers.duckdb_rule_scoring:score"

TRIPLES = 20_000
RULES = 80_000
# Bodies that are counted to make cyclic rules of length 1 and 2: each gives a rule for each of its atoms.
PAIRS, TRIANGLES = 500, 4_000
CLOSED = {
    "(x,_R,y), (x,_S,y) -> (x,_Q,y)": PAIRS,
    "(x,_R,y), (y,_S,x) -> (x,_Q,y)": PAIRS,
    "(x,_R,y), (y,_S,z), (x,_T,z) -> (x,_Q,y)": TRIANGLES,
    "(x,_R,y), (y,_S,z), (z,_T,x) -> (x,_Q,y)": TRIANGLES,
}


def rules(graph: Any) -> Any:
    """Return rules as a miner finds them, without mining: closed paths, and acyclic ones for the rest.

    Their confidences are drawn: what they are changes nothing about the work.
    """
    import numpy as np

    from loginfer import open_engine, parse_pattern
    from loginfer.systems.rules.mined import MinedRules, RuleTable

    engine = open_engine(graph)
    bodies = [(parse_pattern(text), top) for text, top in CLOSED.items()]
    tables = [_closed(engine.rank_bodies(pattern, top)) for pattern, top in bodies]
    draw = np.random.default_rng(0)
    tables.append(_open(graph, RULES - sum(map(len, tables)), draw))
    table = RuleTable.joined(tables)
    # Few digits, so that there are ties, as there are among the confidences of a miner.
    confidence = draw.integers(1, 10_000, len(table)) / 10_000
    return MinedRules(
        RuleTable.of(
            head=table.head,
            variables=table.variables,
            head_constant=table.head_constant,
            end_constant=table.end_constant,
            body=table.body,
            confidence=confidence,
        )
    )


def _closed(bodies: Any) -> Any:
    """Return a rule for each atom of each body, which is a cycle: that atom is the head."""
    import numpy as np

    from loginfer.systems.rules.mined import RuleTable

    atoms = bodies.pattern.atoms
    size = len(atoms)
    heads, steps = [], []
    for head in range(size):
        # Around the cycle from the head's subject to its object, without the head.
        here, left, path = atoms[head].subject, set(range(size)) - {head}, []
        while left:
            place = next(k for k in sorted(left) if here in atoms[k].terms)
            turned = atoms[place].subject != here
            here = atoms[place].subject if turned else atoms[place].object
            path.append(2 * bodies.predicates[:, place] + int(turned))
            left.remove(place)
        heads.append(bodies.predicates[:, head])
        steps.append(np.stack(path, axis=1))
    made = np.unique(np.column_stack([np.concatenate(heads), np.concatenate(steps)]), axis=0)
    trivial = (made[:, :1] == made[:, 1:] // 2).all(axis=1) if size == 2 else np.zeros(len(made), dtype=bool)
    return RuleTable.of(head=made[~trivial, 0], body=made[~trivial, 1:])


def _open(graph: Any, count: int, draw: Any) -> Any:
    """Return rules h(X,c) ⇐ b(X,d) and h(c,X) ⇐ b(X,d) that have a correct prediction at least."""
    import numpy as np

    from loginfer.systems.rules.mined import OBJECT, SUBJECT, RuleTable

    triples = graph.triples
    steps = np.concatenate([triples, triples[:, ::-1]])
    steps[:, 1] = 2 * steps[:, 1] + (np.arange(len(steps)) >= len(triples))
    steps = steps[np.argsort(steps[:, 0], kind="stable")]
    starts = np.searchsorted(steps[:, 0], np.arange(len(graph.entities) + 1))
    first = steps[draw.integers(0, len(steps), 2 * count)]
    sizes = starts[first[:, 0] + 1] - starts[first[:, 0]]
    second = steps[starts[first[:, 0]] + draw.integers(0, 2**31, len(first)) % sizes]
    differ = (first[:, 1:] != second[:, 1:]).any(axis=1)
    rows = np.unique(np.column_stack([first[:, 1:], second[:, 1:]])[differ], axis=0)
    rows = rows[draw.permutation(len(rows))[:count]]
    return RuleTable.of(
        head=rows[:, 0] // 2,
        variables=np.where(rows[:, 0] % 2, OBJECT, SUBJECT),
        head_constant=rows[:, 1],
        body=rows[:, 2:3],
        end_constant=rows[:, 3],
    )


def asked(graph: Any) -> Any:
    """Return the triples to score: half of them from the graph, half with another object."""
    import numpy as np

    draw = np.random.default_rng(1)
    triples = graph.triples[draw.choice(len(graph), TRIPLES, replace=False)].copy()
    triples[::2, 2] = draw.choice(graph.consts, TRIPLES // 2)
    return triples


def ours(folder: str) -> Any:
    """Prepare rules and triples. Each call starts without indexes of the graph and the rules."""
    import numpy as np

    from loginfer import load_graph
    from loginfer.systems.rules.scorer import RuleScorer

    graph = load_graph(folder)
    mined, triples = rules(graph), asked(graph)

    def call() -> Any:
        return RuleScorer(graph.with_triples(graph.triples), mined).score(triples)

    def summary(scores: Any) -> Any:
        # The best confidence alone, without what breaks ties.
        known = np.concatenate([[0.0], np.unique(mined.paths.confidence)])
        return best_confidences(known[np.searchsorted(known, scores, side="right") - 1])

    return call, summary


def best_confidences(best: Any) -> list[float]:
    """Return figures that differ if any best confidence does."""
    import numpy as np

    weights = np.arange(1, len(best) + 1)
    return [int((best > 0).sum()), round(float(best.sum()), 4), round(float((best * weights).sum()), 1)]


def tasks(space: Workspace) -> list[Task]:
    """Return the task."""
    first = Case(OURS, f"{HERE}:ours", {"folder": space.fb}, seconds=10)
    peer = Case("DuckDB", PEER, {"folder": space.fb}, faster=5, limit=120)
    return [Task("rule-scoring", "scoring: 20,000 triples by 80,000 rules", (first, peer), needs=("fb15k-237",))]
