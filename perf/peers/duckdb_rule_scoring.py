"""DuckDB scoring triples by rules: rules and triples are tables, and one query joins them with the graph.

`d` holds the graph's steps in both directions: x, the directed relation b, y. Loops are left out, so a path
of two steps repeats an entity only if it comes back to where it started, or ends where it began.
"""

from __future__ import annotations

from typing import Any

# Each part yields triples with the confidence of a rule that predicts them. A rule that predicts a triple in
# several ways is no problem for the maximum.
QUERY = """
SELECT i, max(confidence) AS best FROM (
    SELECT t.i, r.confidence FROM t
    JOIN cyclic_1 r ON r.head = t.r
    JOIN d ON d.x = t.s AND d.b = r.b1 AND d.y = t.o
    UNION ALL
    SELECT t.i, r.confidence FROM t
    JOIN d AS one ON one.x = t.s
    JOIN d AS two ON two.x = one.y AND two.y = t.o
    JOIN cyclic_2 r ON r.head = t.r AND r.b1 = one.b AND r.b2 = two.b
    WHERE t.s <> t.o
    UNION ALL
    SELECT t.i, r.confidence FROM t
    JOIN acyclic r ON r.head = t.r AND r.variable_is_subject AND r.head_constant = t.o
    JOIN d ON d.x = t.s AND d.b = r.b1 AND d.y = r.end_constant
    WHERE t.s <> t.o
    UNION ALL
    SELECT t.i, r.confidence FROM t
    JOIN acyclic r ON r.head = t.r AND NOT r.variable_is_subject AND r.head_constant = t.s
    JOIN d ON d.x = t.o AND d.b = r.b1 AND d.y = r.end_constant
    WHERE t.s <> t.o
) GROUP BY i"""


def score(folder: str) -> Any:
    """Prepare the tables. Each call computes the best confidence for all triples; one thread costs least."""
    import duckdb
    import numpy as np
    import pyarrow as pa

    from loginfer import load_graph
    from loginfer.systems.rules.mined import BOTH, SUBJECT
    from perf.tasks.rule_scoring import asked, best_confidences, rules

    graph = load_graph(folder)
    paths, triples = rules(graph).paths, asked(graph)
    plain = graph.triples[graph.triples[:, 0] != graph.triples[:, 2]]
    connection = duckdb.connect(config={"threads": 1})

    def table(name: str, **columns: Any) -> None:
        made = pa.table({column: np.ascontiguousarray(values) for column, values in columns.items()})
        connection.register("made", made)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM made")
        connection.unregister("made")

    table(
        "d",
        x=np.concatenate([plain[:, 0], plain[:, 2]]),
        b=np.concatenate([2 * plain[:, 1], 2 * plain[:, 1] + 1]),
        y=np.concatenate([plain[:, 2], plain[:, 0]]),
    )
    table("t", i=np.arange(len(triples)), s=triples[:, 0], r=triples[:, 1], o=triples[:, 2])
    for length in (1, 2):
        some = paths.take((paths.variables == BOTH) & (paths.length == length))
        steps = {f"b{k + 1}": some.body[:, k] for k in range(length)}
        table(f"cyclic_{length}", head=some.head, confidence=some.confidence, **steps)
    some = paths.take(paths.variables != BOTH)
    table(
        "acyclic",
        head=some.head,
        variable_is_subject=some.variables == SUBJECT,
        head_constant=some.head_constant,
        b1=some.body[:, 0],
        end_constant=some.end_constant,
        confidence=some.confidence,
    )

    def call() -> Any:
        return connection.execute(QUERY).fetchnumpy()

    def summary(found: Any) -> Any:
        best = np.zeros(len(triples))
        best[found["i"]] = found["best"]
        return best_confidences(best)

    return call, summary
