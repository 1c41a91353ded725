"""Whatever the names, an export is read back as it was, by us and as others read it."""

import json
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pyoxigraph
import pytest
import rdflib
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.exported_benchmarks import ANY_NAME, FORMATS, benchmarks, named

from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.export.export import export_benchmark, read_export
from loginfer.benchmark.folder.manifest import Role, file_of
from loginfer.errors import OutputError
from loginfer.kg import RDF_TYPE
from loginfer.kg.formats.ntriples import decoded

few = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def exported(benchmark, to):
    """Export a benchmark, and return the folder; it vanishes with the object."""
    folder = tempfile.TemporaryDirectory()
    export_benchmark(benchmark, to, Path(folder.name) / "out")
    return folder, Path(folder.name) / "out"


@pytest.mark.parametrize("to", FORMATS)
@few
@given(data=st.data())
def test_what_was_exported_is_read_back(to, data):
    made = data.draw(benchmarks(any_name=to in ANY_NAME))
    kept, out = exported(made, to)
    with kept:
        found = read_export(out)
    assert (found.positives, found.negatives, found.context) == named(made)
    assert (found.to, found.name) == (to, made.name)


@few
@given(benchmarks())
def test_openke_finds_its_numbers_behind_names_without_white_space(made):
    kept, out = exported(made, "openke")
    with kept:
        for name, vocabulary in (("entity2id.txt", made.graph.entities), ("relation2id.txt", made.graph.relations)):
            words = (out / name).read_text(encoding="utf-8").split()
            assert words[0] == str(len(vocabulary))
            assert words[2::2] == [str(i) for i in range(len(vocabulary))]
        for split in SPLITS:
            numbers = [int(word) for word in (out / f"{split}2id.txt").read_text().split()]
            assert numbers[0] == len(made.positives[split])
            rows = [(s, o, r) for s, r, o in made.positives[split].tolist()]
            assert numbers[1:] == [number for row in rows for number in row]


@few
@given(benchmarks())
def test_openke_finds_two_lines_of_types_for_every_relation(made):
    kept, out = exported(made, "openke")
    with kept:
        numbers = iter([int(word) for word in (out / "type_constrain.txt").read_text().split()])
    assert next(numbers) == len(made.graph.relations)
    every = [row for _, triples in made.positives.items() for row in triples.tolist()]
    for relation in range(len(made.graph.relations)):
        for place in (0, 2):
            expected = sorted({row[place] for row in every if row[1] == relation})
            found = [next(numbers) for _ in range(2 + len(expected))]
            assert found == [relation, len(expected), *expected]
    assert next(numbers, None) is None


@few
@given(benchmarks())
def test_rotate_finds_every_name_in_its_dictionaries(made):
    """Its code strips each line, splits at tabs, and looks names up."""

    def ids(path):
        with path.open(encoding="utf-8") as lines:
            pairs = [line.strip().split("\t") for line in lines]
        return {name: int(number) for number, name in pairs}

    kept, out = exported(made, "rotate")
    with kept:
        entities, relations = ids(out / "entities.dict"), ids(out / "relations.dict")
        for split in SPLITS:
            with (out / f"{split}.txt").open(encoding="utf-8") as lines:
                rows = [line.strip().split("\t") for line in lines]
            found = [(entities[s], relations[r], entities[o]) for s, r, o in rows]
            assert found == [tuple(row) for row in made.positives[split].tolist()]


@few
@given(benchmarks())
def test_libkge_finds_the_files_that_its_description_lists(made):
    """Its code splits a line of a map once, and reads triples as numbers between tabs."""
    kept, out = exported(made, "libkge")
    with kept:
        told = yaml.safe_load((out / "dataset.yaml").read_text(encoding="utf-8"))["dataset"]
        sizes = (told["num_entities"], told["num_relations"], told["name"])
        assert sizes == (len(made.graph.entities), len(made.graph.relations), "out")
        for kind, names in (("entity", made.graph.entities), ("relation", made.graph.relations)):
            assert told[f"files.{kind}_ids.type"] == "map"
            with (out / told[f"files.{kind}_ids.filename"]).open(encoding="utf-8") as lines:
                pairs = [line.split("\t", maxsplit=1) for line in lines]
            assert {int(i): name.rstrip("\n") for i, name in pairs} == dict(enumerate(names))
        sets = {split: triples.tolist() for split, triples in made.positives.items()}
        for method, negatives in made.negatives.items():
            for split, triples in negatives.splits.items():
                sets[f"{split}_negatives_{method.replace('.', '_')}"] = triples.tolist()
        if made.context is not None:
            sets["context"] = made.context.triples.tolist()
        for key, rows in sets.items():
            assert told[f"files.{key}.type"] == "triples"
            assert told[f"files.{key}.size"] == len(rows)
            lines = (out / told[f"files.{key}.filename"]).read_text().splitlines()
            assert [list(map(int, line.split("\t"))) for line in lines] == rows
        assert {key.split(".")[1] for key in told if key.startswith("files.")} == {
            *sets, "entity_ids", "relation_ids",
        }  # fmt: skip


@few
@given(benchmarks())
def test_anyburl_gets_names_that_its_rules_can_hold(made):
    kept, out = exported(made, "anyburl")
    with kept:
        rows = [line.split() for line in (out / "train.txt").read_text(encoding="utf-8").split("\n")[:-1]]
    assert [len(row) for row in rows] == [3] * len(made.graph)
    for subject, relation, object_ in rows:
        for name in (subject, relation, object_):
            assert not set(name) & set("(),")
        assert len(subject) > 1
        assert len(object_) > 1
        assert "me_myself_i" not in (subject, object_)


@few
@given(benchmarks(any_name=True))
def test_two_parsers_of_rdf_find_the_same_statements(made):
    kind = made.graph.type_predicate or None

    def name(iri, place):
        return kind if place == 1 and iri == RDF_TYPE else decoded(iri)

    kept, out = exported(made, "rdf")
    with kept:
        for split in SPLITS:
            path = out / f"{split}.nt"
            expected = set(made.graph.names(made.positives[split]))
            ours = [
                (quad.subject.value, quad.predicate.value, quad.object.value) for quad in pyoxigraph.parse(path=path)
            ]
            theirs = rdflib.Graph().parse(path, format="nt")
            for statements in (ours, [tuple(map(str, triple)) for triple in theirs]):
                found = {tuple(name(iri, k) for k, iri in enumerate(triple)) for triple in statements}
                assert found == expected


@few
@given(benchmarks(any_name=True))
def test_parquet_files_say_what_each_row_is(made):
    kept, out = exported(made, "parquet")
    with kept:
        for method in (None, *made.negatives):
            for split in SPLITS:
                file = file_of(Role(split, method)).replace(".txt", ".parquet")
                rows = pq.read_table(out / file).to_pylist()
                sets = made.positives if method is None else made.negatives[method].splits
                label = int(method is None)
                assert [tuple(row.values()) for row in rows] == [
                    (*triple, label, method, split) for triple in made.graph.names(sets[split])
                ]


@pytest.mark.parametrize("to", [to for to in FORMATS if to not in ANY_NAME])
@pytest.mark.parametrize("bad", ["a\tb", "a\n", "a\r", "\0", "", "\ufeffa"])
def test_a_name_that_no_line_can_hold_is_refused(tmp_path, to, bad):
    from dataclasses import replace

    from tests.support.made_up_benchmarks import family

    from loginfer.benchmark.benchmark import Splits

    made = family(methods=())
    graph = made.graph.with_names(entities=[bad])
    empty = graph.triples[:0]
    made = replace(made, graph=graph, positives=Splits(graph.triples, empty, empty), provenance=None)
    with pytest.raises(OutputError, match="cannot hold the name"):
        export_benchmark(made, to, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["openke", "anyburl", "rotate"])
def test_names_are_as_they_are_unless_one_of_them_cannot_be(tmp_path, to):
    from loginfer.kg import KnowledgeGraph

    for number, (name, expected) in enumerate([("a%20b", "as they are"), (" a b ", "percent-encoded")]):
        graph = KnowledgeGraph.from_names([(name, "r%", "cd"), ("cd", "r%", "100%")])
        about = export_benchmark(_only(graph), to, tmp_path / str(number))
        assert about["names"] == {"entities": expected, "relations": "as they are"}
        assert any("percent-encoded" in note for note in about["notes"]) == (expected == "percent-encoded")
        assert json.loads((tmp_path / str(number) / "export.json").read_text()) == about
        found = read_export(tmp_path / str(number))
        assert found.positives["train"] == graph.names(graph.triples)


def _only(graph):
    from loginfer.benchmark.benchmark import Benchmark, Splits

    empty = graph.triples[:0]
    return Benchmark("only train", graph, Splits(graph.triples, empty, empty), {})
