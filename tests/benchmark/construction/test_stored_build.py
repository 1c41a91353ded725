"""Benchmarks of a graph that stays in a database: the same bytes, without the graph in memory."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.near_miss_benchmarks import recipe_of

from loginfer.benchmark import Recipe, audit, build, load_benchmark, write_benchmark
from loginfer.benchmark.recipe import settings_in_memory
from loginfer.engine import open_engine
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.engine.sql.session import StoredGraph
from loginfer.kg import KnowledgeGraph, load_graph


def names(typed=False, triples=900, entities=120):
    rng = np.random.default_rng(7)
    ends, relation = rng.integers(entities, size=(triples, 2)), rng.integers(4, size=triples)
    rows = {(f"e{s}", f"r{r}", f"e{o}") for (s, o), r in zip(ends, relation, strict=True)}
    if typed:
        rows |= {(f"e{i}", "rdf:type", f"T{i % 5}") for i in range(entities)}
    return sorted(rows)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    made = {}
    for typed in (False, True):
        made[typed] = folder / f"typed-{typed}.tsv"
        made[typed].write_text("".join("\t".join(row) + "\n" for row in names(typed)))
    return made


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def both(recipe, file, tmp_path):
    """Build in memory and from the database; return what the folders hold."""
    write_benchmark(build(recipe, load_graph(str(file))), tmp_path / "memory")
    with DuckDBEngine.from_files([file], tmp_path / "graph.duckdb") as engine:
        write_benchmark(build(recipe, engine.graph, engine="duckdb"), tmp_path / "stored")
    return content(tmp_path / "memory"), content(tmp_path / "stored")


@pytest.mark.parametrize("protocol", ["sound", "paper"])
@pytest.mark.parametrize("method", ["pa", "rb", "qg"])
@pytest.mark.parametrize(("pattern", "typed"), [("composition", False), ("triangle", False), ("hierarchy", True)])
def test_a_stored_graph_gives_the_same_bytes_and_is_never_loaded(
    files, loads, tmp_path, pattern, typed, method, protocol
):
    recipe = Recipe(str(files[typed]), patterns=(pattern,), k1=3, k2=60, negatives=(method,), protocol=protocol)
    memory, stored = both(recipe, files[typed], tmp_path)
    assert memory == stored
    assert not loads
    assert audit(load_benchmark(tmp_path / "stored")).ok or protocol == "paper"


@pytest.mark.parametrize(
    "settings",
    [
        {"negatives": ("rc",)},
        {"negatives": ("nm",), "protocol": "sound"},
        {"negatives": ("pa",), "flipped": 0.1},
        {"negatives": ("pa",), "missing": 0.1},
        {"negatives": ("pa",), "select": "random"},
        {"negatives": ("pa",), "select": "interval", "interval": "1:"},
        {"negatives": ("pa",), "head": "best"},
        {"negatives": ("pa",), "inductive": True, "inductive_share": 0.5},
        {"negatives": ("pa",), "depth": 2, "max_triples": 100_000},
        {"negatives": ("pa",), "materialised": True},
    ],
)
def test_what_needs_the_graph_itself_loads_it_and_is_known_to(files, loads, tmp_path, settings):
    recipe = Recipe(str(files[False]), patterns=("composition",), k1=2, k2=40, **settings)
    memory, stored = both(recipe, files[False], tmp_path)
    assert memory == stored
    assert bool(loads) == bool(settings_in_memory(recipe))


def test_a_graph_with_more_triples_answers_like_one_in_memory(files, tmp_path):
    graph = load_graph(str(files[True]))
    rng = np.random.default_rng(1)
    more = np.stack([rng.integers(len(v), size=40) for v in (graph.entities, graph.relations, graph.entities)], 1)
    more = np.vstack([more, more[:5], graph.triples[:7]]).astype(np.int32)
    with DuckDBEngine.from_files([files[True]], tmp_path / "graph.duckdb") as engine:
        stored, known = engine.graph.with_more(more), graph.with_more(more)
        assert isinstance(stored, StoredGraph)
        for name in ("consts", "types", "preds", "rels", "looped"):
            assert np.array_equal(getattr(stored, name), getattr(known, name)), name
        for relation in range(len(graph.relations)):
            for mine, theirs in zip(stored.sides(relation), known.sides(relation), strict=True):
                assert np.array_equal(mine, theirs)
        asked = np.vstack([more, graph.triples[::3], graph.triples[:, [2, 1, 0]]])
        assert np.array_equal(stored.contains(asked), known.contains(asked))
        assert len(stored) == len(known)
        assert np.array_equal(np.vstack(list(stored.blocks())), known.triples)
        assert stored.with_more(more) is stored
        over = open_engine(stored, "native")
        assert over.graph is stored


def test_blocks_of_a_large_stored_graph_come_in_order(tmp_path):
    """Some databases hand out the blocks of an ordered result as they are ready."""
    rng = np.random.default_rng(5)
    triples = rng.integers(3000, size=(60_000, 3)).astype(np.int32)
    triples[:, 1] %= 7
    file = tmp_path / "large.tsv"
    file.write_text("".join(f"e{s}\tr{r}\te{o}\n" for s, r, o in triples.tolist()))
    graph = load_graph(str(file))
    with DuckDBEngine.from_files([file], tmp_path / "graph.duckdb") as engine:
        assert np.array_equal(np.vstack(list(engine.graph.blocks())), graph.triples)


def test_given_rules_with_known_names_work_on_a_stored_graph(files, loads, tmp_path):
    recipe = recipe_of(rules=("(x,r0,y), (y,r1,z) -> (x,r2,z)",), negatives=("pa",))
    memory, stored = both(recipe, files[False], tmp_path)
    assert memory == stored
    assert not loads


def test_a_graph_in_memory_has_one_block():
    graph = KnowledgeGraph.from_names(names())
    (block,) = graph.blocks()
    assert block is graph.triples
