"""The exact support of every body of a pattern at once.

`shapes` recognises the patterns that have kernels of their own (`paths`, `triangle`, `diamond`); all others
go to `general`, which sums products of sparse tables (`factors`, `elimination`, `product`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from loginfer.engine.interface import BodyTable, Progress
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Pattern

if TYPE_CHECKING:
    from loginfer.engine.native.rank.edges import Edges

__all__ = ["rank_bodies"]

# Kernels with dense tables of labels × labels are for graphs of at most this many relations.
DENSE_LABELS = 4096


def rank_bodies(
    graph: KnowledgeGraph,
    pattern: Pattern,
    top: int | None = None,
    *,
    complete: bool | None = None,
    progress: Progress | None = None,
) -> BodyTable:
    """Return the exact support of every body of a pattern, or of the `top` largest.

    Parameters
    ----------
    graph
        The graph K.
    pattern
        The pattern; relation templates range over Rels(K), type templates over Types(K). A body with a
        negation that excludes none of its witnesses is left out.
    top
        How many bodies to return; all that have a witness by default.
    complete
        Whether to count every body even if only the largest are wanted. By default bodies outside the
        `top` are left uncounted where counting them would take very long; then `nonzero` is None.
    progress
        Told how far the work has come.

    Raises
    ------
    LimitError
        When a support does not fit into 64 bits, or when a pattern of unconnected parts has too many
        bodies to write them down.
    """
    from loginfer.engine.bodies import finish_table
    from loginfer.engine.native.rank.shapes import recognise

    if pattern.negations:
        from loginfer.engine.native.rank.general import rank_general_negated

        if progress:
            progress(f"counting the bodies of `{pattern.name}`", 0, None)
        return rank_general_negated(graph, pattern, top, progress)
    shape = recognise(pattern)
    if shape is None or len(graph.rels) > DENSE_LABELS:
        from loginfer.engine.native.rank.general import rank_general

        return rank_general(graph, pattern, top, progress)
    from loginfer.engine.native.rank.edges import edges_of

    edges = edges_of(graph, loops=shape.name not in ("triangle", "diamond"))
    if progress:
        progress(f"counting the bodies of `{pattern.name}`", 0, None)
    labels, support, all_counted = _count(pattern, shape.name, edges, top, complete, progress)
    # Column i of the result is for the i-th template, the kernel's columns are for the shape's edges.
    predicates = graph.rels[labels[:, list(shape.places)]].astype(np.int32)
    return finish_table(graph, pattern, predicates, support, top, nonzero_known=all_counted)


def _count(
    pattern: Pattern,
    shape: str,
    edges: Edges,
    top: int | None,
    complete: bool | None,
    progress: Progress | None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], bool]:
    """Return labels and supports by the kernel for a shape, and whether they are all there are."""
    if shape == "triangle":
        from loginfer.engine.native.rank.triangle import triangle_table

        return *triangle_table(edges), True
    if shape == "diamond":
        from loginfer.engine.native.rank.diamond import diamond_table
        from loginfer.engine.native.rank.diamond_top import diamond_top, worth_pruning
        from loginfer.logic.instances import symmetries

        if top is None or complete or (complete is None and not worth_pruning(edges)):
            return *diamond_table(edges, progress), True
        mirrors = len(symmetries(pattern)) == 1
        return *diamond_top(edges, top, mirrors=mirrors, progress=progress), False
    from loginfer.engine.native.rank import paths

    tables: dict[str, Callable[[], tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]] = {
        "single": lambda: paths.single_table(edges),
        "composition": lambda: paths.fork_table(edges, False, True),
        "fork out": lambda: paths.fork_table(edges, True, True),
        "fork in": lambda: paths.fork_table(edges, False, False),
        "intersection": lambda: paths.intersection_table(edges),
        "chain": lambda: paths.chain_table(edges),
    }
    return *tables[shape](), True
