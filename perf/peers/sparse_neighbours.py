"""Common neighbours by direction and Adamic–Adar, as products of sparse matrices, row by row of the triples."""

from __future__ import annotations

from typing import Any


def common_neighbours(folder: str) -> Any:
    """Prepare the same triples as ours. Each call makes the matrices anew."""
    import numpy as np
    from scipy import sparse

    from loginfer import load_graph
    from perf.tasks.shortcut_features import NEIGHBOURS, triples_of

    graph = load_graph(folder)
    triples = triples_of(graph)
    subjects, objects = triples[:, 0], triples[:, 2]
    size = len(graph.entities)

    def call() -> Any:
        ends = (graph.triples[:, 0], graph.triples[:, 2])
        arrows = sparse.csr_array((np.ones(len(graph), dtype=np.float32), ends), (size, size)).sign()
        either = (arrows + arrows.T).sign().tocsr()
        degrees = either.sum(axis=1)
        # A constant is no common neighbour of itself and another one.
        arrows, either = ((m - sparse.diags_array(m.diagonal())).tocsr() for m in (arrows, either))
        back = arrows.T.tocsr()
        weighted = (either @ sparse.diags_array(1 / np.log(np.maximum(degrees, 2)))).tocsr()
        pairs = ((either, either), (arrows, back), (back, arrows), (arrows, arrows), (back, back), (weighted, either))
        values = [_row_products(left, right) for left, right in pairs]
        return dict(zip(NEIGHBOURS, values, strict=True))

    def _row_products(left: Any, right: Any) -> Any:
        # In blocks: all rows at once would need gigabytes.
        blocks = np.array_split(np.arange(len(triples)), 40)
        parts = [left[subjects[rows]].multiply(right[objects[rows]]).sum(axis=1) for rows in blocks]
        return np.concatenate(parts)

    return call, lambda columns: [round(float(columns[name].sum(dtype=float))) for name in NEIGHBOURS]
