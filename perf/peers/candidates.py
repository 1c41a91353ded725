"""Random candidates of the triangle counted one by one, each with a SPARQL query of its own.

That is how the programs that the paper's authors released find the rules of largest support. Their store is
another one; pyoxigraph runs in this process, so that a query costs no round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def triangles(relations: Sequence[str], count: int) -> list[Any]:
    """Return rules with random bodies: any three relations, the same for the same number of relations."""
    import numpy as np

    from loginfer import parse_pattern
    from loginfer.logic.patterns import instantiate

    triangle = parse_pattern("triangle")
    drawn = np.random.default_rng(0).integers(len(relations), size=(count, 3)).tolist()
    return [instantiate(triangle, [relations[i] for i in body], relations[0]) for body in drawn]


def oxigraph(triples: str, count: int) -> Any:
    """Prepare a store with all triples, and the queries."""
    import numpy as np
    import pyoxigraph

    from loginfer.logic.dialects.queries import body_to_sparql

    array = np.load(triples)
    names = [f"r:{r}" for r in range(int(array[:, 1].max()) + 1)]
    store = pyoxigraph.Store()
    text = "".join(f"<e:{s}> <r:{r}> <e:{o}> .\n" for s, r, o in array.tolist())
    store.bulk_load(text.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    store.optimize()
    bodies = [body_to_sparql(rule).partition(" WHERE ")[2] for rule in triangles(names, count)]
    queries = [f"SELECT (COUNT(*) AS ?n) WHERE {body}" for body in bodies]

    def call() -> list[int]:
        return [int(next(iter(store.query(query)))["n"].value) for query in queries]

    return call, lambda found: [sum(found), sum(n > 0 for n in found)]
