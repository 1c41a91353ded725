"""Which triples of a graph are kept, and what people call its names."""

import pytest

from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import KnowledgeGraph, ReadOptions, load_graph
from loginfer.kg.load import read_graph, write_graph

RDFS = "http://www.w3.org/2000/01/rdf-schema#label"
STAFF = [
    ("x:ann", "http://x/reportsTo", "x:bob"),
    ("x:bob", "http://x/reportsTo", "x:cem"),
    ("x:ann", "http://x/likes", "x:bob"),
    ("x:ann", "http://x/born", '"1990"'),
    ("x:ann", "rdf:type", "x:Person"),
]


@pytest.fixture
def read(tmp_path):
    """Reads triples with options."""

    def read(rows, **options):
        write_graph(KnowledgeGraph.from_names(rows), tmp_path / "g.tsv", force=True)
        return read_graph(tmp_path / "g.tsv", ReadOptions(**options))

    return read


def kept(loaded):
    return sorted({r.rpartition("/")[2] for _, r, _ in loaded.graph.names(loaded.graph.triples)})


# -- triples ---------------------------------------------------------------------------------------


def test_without_options_everything_is_kept_and_nothing_is_said(read):
    loaded = read(STAFF)
    assert loaded.graph == KnowledgeGraph.from_names(STAFF)
    assert loaded.report.notes == ()


def test_literals_are_dropped_with_the_names_that_only_they_use(read):
    loaded = read([*STAFF, ("x:lonely", "http://x/born", '"1991"')], literals="drop")
    assert loaded.graph == KnowledgeGraph.from_names([row for row in STAFF if '"' not in row[2]])
    assert loaded.report.notes == ("left out 2 of 6 triples: 2 with literals",)
    assert loaded.report.triples == 6


@pytest.mark.parametrize(
    ("options", "relations"),
    [
        ({"relations": ("reportsTo", "http://x/born")}, ["born", "rdf:type", "reportsTo"]),
        ({"without_relations": ("likes", "born")}, ["rdf:type", "reportsTo"]),
        ({"without_relations": ("rdf:type",)}, ["born", "likes", "reportsTo"]),
        ({"relations": ("likes", "born"), "without_relations": ("born",)}, ["likes", "rdf:type"]),
        ({"min_relation_size": 2}, ["rdf:type", "reportsTo"]),
    ],
)
def test_relations_are_chosen_by_name_or_by_size_and_types_stay(read, options, relations):
    loaded = read(STAFF, **options)
    assert kept(loaded) == relations
    (note,) = loaded.report.notes
    assert note.startswith(f"left out {5 - len(loaded.graph)} of 5 triples")


def test_sizes_count_what_is_left_of_a_relation(read):
    rows = [*STAFF, ("x:bob", "http://x/born", "x:once")]
    assert "born" in kept(read(rows, min_relation_size=2))
    assert "born" not in kept(read(rows, min_relation_size=2, literals="drop"))


def test_a_type_predicate_that_is_left_out_is_gone(read):
    graph = read(STAFF, type_predicate="http://x/likes", without_relations=("likes",)).graph
    assert graph.type_predicate is None


def test_an_unknown_relation_comes_with_the_nearest(read):
    with pytest.raises(UnknownNameError, match="unknown relation `http://x/reportTo`") as refused:
        read(STAFF, relations=("http://x/reportTo",))
    assert "http://x/reportsTo" in refused.value.hint


def test_an_ambiguous_last_part_is_refused(read):
    with pytest.raises(InputError, match="may be any of"):
        read([*STAFF, ("x:a", "http://y/likes", "x:b")], without_relations=("likes",))


def test_a_graph_of_which_nothing_is_left_is_refused(read):
    with pytest.raises(InputError, match="no triples are left: 1 with literals"):
        read([("a", "r", '"b"')], literals="drop")


def test_options_hold_for_generated_graphs_too():
    graph = load_graph("lubm", literals="drop", relations=("takesCourse",))
    assert [graph.relations[r].rpartition("#")[2] for r in graph.rels] == ["takesCourse"]
    assert len(graph.types)


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("literals", ["keep", "drop"])
def test_labels_are_collected_for_constants_types_and_relations(read, literals):
    labels = [
        ("x:ann", RDFS, '"Ann"@en'),
        ("x:Person", "rdfs:label", '"a person"'),
        ("http://x/reportsTo", RDFS, '"reports to"'),
        ("x:bob", "http://xmlns.com/foaf/0.1/name", '"Bob"'),
        ("x:cem", "https://schema.org/name", '"Cem"'),
    ]
    graph = read([*STAFF, *labels], literals=literals).graph
    assert graph.labels == {
        "x:ann": "Ann", "x:Person": "a person", "http://x/reportsTo": "reports to", "x:bob": "Bob", "x:cem": "Cem",
    }  # fmt: skip
    assert graph.with_triples(graph.triples[:1]).labels == graph.labels
    assert graph.with_names(relations=["new"]).labels == graph.labels


@pytest.mark.parametrize(
    ("rows", "label"),
    [
        ([(RDFS, '"Katze"@de'), (RDFS, '"cat"@en')], "cat"),
        ([(RDFS, '"Katze"@de'), (RDFS, '"cat"@en-GB')], "cat"),
        ([(RDFS, '"Katze"@de'), ("skos:prefLabel", '"cat"')], "cat"),
        ([("skos:prefLabel", '"puss"'), (RDFS, '"cat"')], "cat"),
        ([(RDFS, '"Katze"@de'), (RDFS, '"chat"@fr')], "Katze"),
        ([(RDFS, '"cat"^^<http://www.w3.org/2001/XMLSchema#token>')], "cat"),
        ([(RDFS, r'"a \"big\"\n\u0063at\\"')], 'a "big" cat\\'),
        ([(RDFS, '"a\u0007  \u202ecat"')], "a cat"),
        ([("label", "cat")], "cat"),
        ([("label", "http://x/cat")], None),
        ([(RDFS, '""'), (RDFS, r'"\n"')], None),
    ],
)
def test_the_best_label_is_plain_text(read, rows, label):
    assert read([("x:c", *row) for row in rows]).graph.labels.get("x:c") == label


def test_texts_that_are_labels_go_with_the_literals_in_files_without_quotes(read):
    loaded = read([*STAFF, ("x:ann", "label", "Ann"), ("x:bob", "label", "x:ann")], literals="drop")
    assert loaded.graph.labels == {"x:ann": "Ann"}
    assert kept(loaded) == ["label", "likes", "rdf:type", "reportsTo"]


def test_labels_of_names_that_are_left_out_are_left_out(read):
    rows = [*STAFF, ("x:cem", RDFS, '"Cem"'), ("http://x/reportsTo", RDFS, '"reports to"')]
    assert read(rows, literals="drop", without_relations=("reportsTo",)).graph.labels == {}
