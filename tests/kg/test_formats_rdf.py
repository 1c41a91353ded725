"""N-Triples and Turtle: what is read is what pyoxigraph says, what is written is read back as it was."""

import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.kg.formats.base import ReadOptions
from loginfer.kg.formats.ntriples import PREFIX, name_of_term, names_of_texts, texts_of_names
from loginfer.kg.load import read_graph, write_graph

SKIP = ReadOptions(on_error="skip")
characters = st.characters(exclude_categories=["Cs"])
any_name = st.one_of(
    st.text(characters, max_size=8),
    st.sampled_from(
        [
            "http://x.org/a",
            "http://x.org/é",
            "http://x.org:80/a?b=c#d",
            "http://x.org/a#b#c",
            "http://[::1]/",
            "urn:x:y",
            "mailto:a@b",
            "x:%41",
            "x:%zz",
            "x:[",
            "//x",
            PREFIX,
            f"{PREFIX}a",
            f"{PREFIX}%FF",
            "_:b",
            "_:b.c",
            "_:b.",
            "_:-",
            "_:é",
            '"a"',
            '"a"@en',
            '"a"@EN',
            '"a"@en-GB',
            '"a"@en--ltr',
            '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
            '"a"^^<http://www.w3.org/2001/XMLSchema#string>',
            '"a"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>',
            '"a"^^<x>',
            '"\\n"',
            '"\n"',
            '"\\u0041"',
            '"é\u0085\u007f"',
            '"',
            "<a:>",
            "/m/027rn",
            "",
            "a b",
            "\ufeff",
        ]
    ),
    st.builds("http://x.org/{}".format, st.text(characters, max_size=4)),
    st.builds('"{}"'.format, st.text(characters, max_size=4)),
    st.builds("_:{}".format, st.text(characters, max_size=4)),
)
graphs = st.lists(st.tuples(any_name, any_name, any_name), min_size=1, max_size=8).map(KnowledgeGraph.from_names)


@settings(max_examples=150, deadline=None)
@given(graph=graphs)
def test_every_graph_survives_n_triples(tmp_path_factory, graph):
    path = tmp_path_factory.getbasetemp() / "trip.nt"
    write_graph(graph, path, force=True)
    again = read_graph(path, ReadOptions(type_predicate=graph.type_predicate or "")).graph
    assert again.names(again.triples) == graph.names(graph.triples)
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    assert len(list(pyoxigraph.parse(path=path))) == len(graph)


@settings(max_examples=40, deadline=None)
@given(graph=graphs)
def test_every_graph_survives_turtle(tmp_path_factory, graph):
    path = tmp_path_factory.getbasetemp() / "trip.ttl"
    write_graph(graph, path, force=True)
    again = read_graph(path, ReadOptions(type_predicate=graph.type_predicate or "")).graph
    assert again.names(again.triples) == graph.names(graph.triples)


@settings(max_examples=200, deadline=None)
@given(st.lists(any_name, min_size=1, max_size=6), st.sampled_from("sro"))
def test_the_text_of_a_name_means_that_name(names, place):
    texts = texts_of_names(names, place)
    assert names_of_texts([text.encode() for text in texts]) == names
    assert all(text.startswith("<") for text in texts) or place != "r"


def test_iris_literals_and_blank_nodes_are_written_as_they_are(tmp_path):
    graph = KnowledgeGraph.from_names(
        [
            ("http://x.org/a", "http://x.org/p", '"one"@en'),
            ("_:b", "http://x.org/p", "http://x.org/a"),
            ("/m/1", "r", '"a" b'),
            ('"lit"', "_:p", "_:b"),
            ("urn:loginfer:x", "http://x.org/p", "z"),
        ]
    )
    write_graph(graph, tmp_path / "g.nt")
    assert (tmp_path / "g.nt").read_text() == (
        '<http://x.org/a> <http://x.org/p> "one"@en .\n'
        "<urn:loginfer:%22lit%22> <urn:loginfer:_:p> _:b .\n"
        "<urn:loginfer:/m/1> <urn:loginfer:r> <urn:loginfer:%22a%22%20b> .\n"
        "<urn:loginfer:urn:loginfer:x> <http://x.org/p> <urn:loginfer:z> .\n"
        "_:b <http://x.org/p> <http://x.org/a> .\n"
    )


# Pieces of lines, right and wrong, from which documents are put together.
terms = st.sampled_from(
    [
        "<a:b>",
        "<http://x.org/a>",
        "<http://x.org:80/>",
        "<http://u@h/>",
        "<http://h:x/>",
        "<x:%41>",
        "<x:%4>",
        "<x:é>",
        "<x:\\u00e9>",
        "<x:\\u0020>",
        "<x: y>",
        "<nothing>",
        "<>",
        "<a:<b>",
        '<a:">',
        "<1:a>",
        "<a:b#c#d>",
        "<a:b?c#d/?>",
        "<file:///x>",
        "<a://>",
        "<a:[]>",
        "<urn:loginfer:%41>",
        "<urn:loginfer:%FF>",
        "<urn:loginfer:A>",
        "_:a",
        "_:a.b",
        "_:a.",
        "_:-a",
        "_:é",
        "_:1",
        "_:a-",
        "_:",
        "_a",
        "_:a:b",
        '"a"',
        '"a\\"b"',
        '"\\\\"',
        '"\\"',
        '"a\\n"',
        '"\\u0041"',
        '"\\x"',
        '"é"',
        '"\t"',
        '"a"@en',
        '"a"@EN-gb',
        '"a"@',
        '"a"@toolonglanguage',
        '"a"@en-',
        '"a"@en--ltr',
        '"a" @en',
        '"1"^^<x:i>',
        '"1"^^<i>',
        '"1"^^x:i',
        '"a"^^<http://www.w3.org/2001/XMLSchema#string>',
        '"a"^^ <x:i>',
        '"a',
        "'a'",
        "a",
        "<<(<a:> <b:> <c:>)>>",
        '"a"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>',
        '"\x7f\x01"',
        '"\u0085"',
        "#",
    ]
)
gaps = st.sampled_from([" ", " ", " ", "", "  ", "\t", "\r", "\xa0", "\x0b"])
stops = st.sampled_from([".", ".", ".", " .", "", "..", ". # comment", ".\r", " . \t", ". x", "<g:> ."])
good_terms = st.sampled_from(["<a:b>", "<x:y>", '"a"', "_:n", '"é"@fr', '"q\\"uote"'])
statements = st.builds("".join, st.tuples(gaps, terms, gaps, terms, gaps, terms, gaps, stops))
nearly_good = st.builds("{} {} {}{}".format, good_terms, good_terms, good_terms, stops)
other_lines = st.sampled_from(["", " ", "\r", "# comment", "\t# é", "# x\r<a:> <b:> <c:> .", ".", "@prefix a: <b:> ."])
documents = st.lists(st.one_of(statements, nearly_good, nearly_good, other_lines), max_size=10)


def according_to_pyoxigraph(lines):
    triples, bad = set(), 0
    for line in lines:
        try:
            quads = list(pyoxigraph.parse(line.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES))
            found = [tuple(name_of_term(t) for t in (q.subject, q.predicate, q.object)) for q in quads]
        except (SyntaxError, ValueError):
            bad += 1
        else:
            triples.update(found)
    return triples, bad


@settings(max_examples=500, deadline=None)
@given(lines=documents, last=st.sampled_from(["", "\n"]))
def test_documents_mean_what_pyoxigraph_says(tmp_path_factory, lines, last):
    path = tmp_path_factory.getbasetemp() / "document.nt"
    path.write_bytes(("\n".join(lines) + last).encode())
    triples, bad = according_to_pyoxigraph(lines)
    if not triples:
        with pytest.raises(InputError, match="holds no triples"):
            read_graph(path, SKIP)
        return
    loaded = read_graph(path, SKIP)
    assert set(loaded.graph.names(loaded.graph.triples)) == triples
    assert loaded.report.skipped == bad
    assert loaded.report.statements >= loaded.report.triples == len(triples)
    assert len(loaded.report.examples) <= 5
    if bad:
        with pytest.raises(InputError, match=r"document.nt, line \d+: "):
            read_graph(path)
    else:
        assert read_graph(path).graph == loaded.graph
    used = {name for s, _, o in triples for name in (s, o)}
    assert set(loaded.graph.entities) == used  # names of bad lines leave no trace


def test_a_bad_term_is_reported_where_it_first_stands(tmp_path):
    path = tmp_path / "g.nt"
    path.write_text("<a:> <b:> <c:> .\n\n<a:> <b:> <not absolute> .\n")
    with pytest.raises(InputError, match=r"g.nt, line 3: `<not absolute>` is no RDF term"):
        read_graph(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("<a:> <b:> .", "object of a triple must be"),
        ("<a:> <b:> <c:> <g:> .", "--format nquads"),
        ("<a:> <b:> <<( <a:> <b:> <c:> )>> .", "RDF-star"),
        ("<a:> _:b <c:> .", "predicate of a triple must be an IRI"),
    ],
)
def test_a_bad_line_says_what_was_expected(tmp_path, line, message):
    path = tmp_path / "g.nt"
    path.write_text(f"<a:> <b:> <c:> .\n{line}\n")
    with pytest.raises(InputError, match=f"line 2: .*{message}"):
        read_graph(path)


def test_bytes_that_are_no_utf8_are_a_bad_line(tmp_path):
    path = tmp_path / "g.nt"
    path.write_bytes(b'<a:> <b:> "\xff" .\n<a:> <b:> <c:> .\n')
    with pytest.raises(InputError, match=r"line 1: .*UTF-8"):
        read_graph(path)
    assert read_graph(path, SKIP).report.skipped == 1


def test_different_writings_of_one_literal_are_one_name(tmp_path):
    path = tmp_path / "g.nt"
    path.write_text(
        '<a:> <b:> "A" .\n<a:> <b:> "\\u0041" .\n<a:> <b:> "A"^^<http://www.w3.org/2001/XMLSchema#string> .'
    )
    loaded = read_graph(path)
    assert loaded.graph.names(loaded.graph.triples) == [("a:", "b:", '"A"')]
    assert loaded.report.duplicates == 2


def test_turtle_is_read_with_prefixes_and_stable_names_for_nameless_nodes(tmp_path):
    path = tmp_path / "g.ttl"
    path.write_text("@prefix e: <http://e/> .\ne:a e:p [ e:q 1 ], _:anon ; a e:T .\n")
    first, second = read_graph(path).graph, read_graph(path).graph
    assert first == second
    assert first.names(first.triples) == [
        ("_:anonx_1", "http://e/q", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("http://e/a", "http://e/p", "_:anon"),
        ("http://e/a", "http://e/p", "_:anonx_1"),
        ("http://e/a", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://e/T"),
    ]
    assert first.entities.names(first.types) == ["http://e/T"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a:> <b:>\n<c:> ; ; x", r"g.ttl, line 2: "),
        ("<a> <b> <c> .", "No scheme found"),
        ("<a:> <b:> << <a:> <b:> <c:> >> .", "RDF-star"),
        ("", "holds no triples"),
    ],
)
def test_wrong_turtle_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "g.ttl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_graph(path, SKIP)
