"""The synthetic graphs: as large as asked for, skewed, and the same each time."""

from __future__ import annotations

import numpy as np
from perf.power_law import power_law_graph
from perf.power_law_file import write_power_law

from loginfer.kg import load_graph


def test_a_file_holds_distinct_triples_and_relations_of_the_sizes_of_a_graph_in_memory(tmp_path):
    write_power_law(tmp_path / "graph.parquet", 30_000, relations=40)
    written, made = load_graph(str(tmp_path / "graph.parquet")), power_law_graph(30_000, relations=40)
    assert len(written) == len(made) == 30_000
    sizes = [np.bincount(graph.triples[:, 1], minlength=40) for graph in (written, made)]
    assert np.array_equal(*sizes)
    assert sizes[0].max() > 20 * sizes[0].min()


def test_the_same_arguments_write_the_same_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_power_law(tmp_path / name, 2_000, relations=10, seed=seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b != c
