"""Labels of names in a benchmark's folder."""

import json

import pytest

from loginfer.benchmark import Recipe, audit, build, load_benchmark, write_benchmark
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.kg.load import write_graph

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


@pytest.fixture
def graph(tmp_path):
    """A graph of a chain with labels for some constants and for a relation."""
    rows = [
        (f"http://x/{i:02d}", relation, f"http://x/{i + 1:02d}")
        for i in range(40)
        for relation in ("r:a", "r:b", "r:c")
    ]
    rows += [
        ("http://x/00", LABEL, '"The first, \\"zero\\""@en'),
        ("r:a", LABEL, '"äußert"@de'),
        ("x:gone", LABEL, '"gone"'),
    ]
    write_graph(KnowledgeGraph.from_names(rows), tmp_path / "g.nt")
    return load_graph(tmp_path / "g.nt", literals="drop")


@pytest.fixture
def recipe(tmp_path):
    return Recipe(str(tmp_path / "g.nt"), ("composition",), k1=2, k2=20, min_new=1, literals="drop")


def test_labels_are_written_read_back_and_audited(graph, recipe, tmp_path):
    manifest = write_benchmark(build(recipe, graph), tmp_path / "bench")
    assert (tmp_path / "bench" / "labels.tsv").read_text() == 'http://x/00\tThe first, "zero"\nr:a\täußert\n'
    assert "labels.tsv" in manifest["files"]
    assert "labels.tsv" in (tmp_path / "bench" / "README.md").read_text()
    assert load_benchmark(tmp_path / "bench").graph.labels == graph.labels
    assert audit(tmp_path / "bench").ok
    write_benchmark(build(recipe), tmp_path / "bench", force=True)  # from the file, by the recipe alone
    assert load_benchmark(tmp_path / "bench").graph.labels == graph.labels


def test_a_benchmark_without_labels_has_no_such_file(graph, recipe, tmp_path):
    graph.labels = {}
    write_benchmark(build(recipe, graph), tmp_path / "bench")
    assert not (tmp_path / "bench" / "labels.tsv").exists()


@pytest.mark.parametrize("text", [b"one column\n", b"a\tb\tc\n", b"a\t\xff\n"])
def test_damaged_labels_are_a_problem_of_the_folder(graph, recipe, tmp_path, text):
    write_benchmark(build(recipe, graph), tmp_path / "bench")
    path = tmp_path / "bench" / "labels.tsv"
    path.write_bytes(text)
    with pytest.raises(InputError, match=r"labels\.tsv"):
        load_benchmark(tmp_path / "bench")
    manifest = json.loads((tmp_path / "bench" / "manifest.json").read_text())
    with pytest.raises(InputError, match="a name and a label"):
        load_benchmark(tmp_path / "bench", verify=False)
    assert not audit(tmp_path / "bench").ok
    assert "labels.tsv" in manifest["files"]
