"""Own graphs as they are: headers, columns to skip, delimiters, CSV and other kinds of RDF."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loginfer.errors import InputError, OutputError
from loginfer.kg import KnowledgeGraph, ReadOptions, load_graph
from loginfer.kg.formats.base import columns_of_header
from loginfer.kg.load import read_graph, write_graph

ANN = [("ann", "knows", "bob"), ("bob", "likes", "cem")]
GRAPH = KnowledgeGraph.from_names(ANN)


def file_of(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


# -- headers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("subject predicate object", "sro"),
        ("Head Relation Tail", "sro"),
        ("source target label", "sor"),
        ("h r t", "sro"),
        ("s p o weight", "sro_"),
        ("id from to type", "_sor"),
        ("source relation target label", "sro_"),
        ("ann knows bob", None),
        ("s r t", None),
        ("subject subject object", None),
        ("subject object", None),
        ("", None),
    ],
)
def test_a_header_says_which_columns_are_which(header, columns):
    assert columns_of_header(header.split()) == columns


@pytest.mark.parametrize(("ending", "separator"), [("tsv", "\t"), ("csv", ",")])
def test_a_header_is_recognised_and_said(tmp_path, ending, separator):
    lines = ["source target label weight", "ann bob knows 1", "bob cem likes 2"]
    path = file_of(tmp_path, f"g.{ending}", "".join(line.replace(" ", separator) + "\n" for line in lines))
    loaded = read_graph(path)
    assert loaded.graph == GRAPH
    assert loaded.report.statements == 2
    (note,) = loaded.report.notes
    assert "g." in note
    assert "the first line is a header: source, target, label, weight" in note


def test_given_columns_come_before_those_of_a_header(tmp_path):
    path = file_of(tmp_path, "g.tsv", "head\trelation\ttail\nbob\tknows\tann\ncem\tlikes\tbob\n")
    assert load_graph(path, columns="ors") == GRAPH


def test_a_bad_line_behind_a_header_has_its_own_number(tmp_path):
    path = file_of(tmp_path, "g.tsv", "head\trelation\ttail\nann\tknows\tbob\nann\tknows\n")
    with pytest.raises(InputError, match="line 3: expected 3 tab-separated columns, found 2"):
        read_graph(path)


def test_each_file_of_a_folder_may_have_a_header(tmp_path):
    file_of(tmp_path, "train.tsv", "h\tr\tt\nann\tknows\tbob\n")
    file_of(tmp_path, "test.tsv", "bob\tlikes\tcem\n")
    loaded = read_graph(tmp_path)
    assert loaded.graph == GRAPH
    assert len(loaded.report.notes) == 1


def test_a_file_with_nothing_but_a_header_holds_no_triples(tmp_path):
    with pytest.raises(InputError, match="holds no triples"):
        read_graph(file_of(tmp_path, "g.tsv", "subject\trelation\tobject"))


@pytest.mark.parametrize("ending", ["tsv", "csv"])
def test_a_first_triple_that_looks_like_a_header_is_written_so_that_it_stays(tmp_path, ending):
    graph = KnowledgeGraph.from_names([("s", "p", "o"), ("t", "p", "o")])
    write_graph(graph, tmp_path / f"g.{ending}")
    assert read_graph(tmp_path / f"g.{ending}").graph == graph


# -- columns and delimiters ------------------------------------------------------------------------


def test_a_fourth_column_can_be_skipped_wherever_it_stands(tmp_path):
    path = file_of(tmp_path, "g.tsv", "1\tann\tknows\tbob\n2\tbob\tlikes\tcem\n")
    assert load_graph(path, columns="_sro") == GRAPH
    path = file_of(tmp_path, "h.tsv", "ann\t\tknows\tbob\r\nbob\t2\tlikes\tcem\r\n")
    assert load_graph(path, columns="s_ro") == GRAPH


@pytest.mark.parametrize(("ending", "separator"), [("tsv", "\t"), ("csv", ",")])
def test_a_fourth_column_is_refused_with_the_option_that_skips_it(tmp_path, ending, separator):
    path = file_of(tmp_path, f"g.{ending}", separator.join(["ann", "knows", "bob", "0.9"]) + "\n")
    with pytest.raises(InputError, match="found 4") as refused:
        read_graph(path)
    assert "--columns sro_" in refused.value.hint


def test_an_empty_cell_among_skipped_columns_is_named_by_its_column(tmp_path):
    path = file_of(tmp_path, "g.tsv", "1\tann\t\tbob\n")
    with pytest.raises(InputError, match="column 3 is empty"):
        load_graph(path, columns="_sro")


@pytest.mark.parametrize(
    ("delimiter", "separator"), [(";", ";"), ("space", " "), ("|", "|"), ("tab", "\t"), (r"\t", "\t")]
)
@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_another_delimiter_is_an_option(tmp_path, ending, delimiter, separator):
    text = "".join(separator.join(row) + "\n" for row in ANN)
    path = file_of(tmp_path, f"g.{ending}", text)
    assert load_graph(path, delimiter=delimiter) == GRAPH


def test_a_line_of_one_column_suggests_a_delimiter(tmp_path):
    with pytest.raises(InputError, match="found 1") as refused:
        read_graph(file_of(tmp_path, "g.csv", "ann;knows;bob\n"))
    assert "--delimiter" in refused.value.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "sr"}, "`sr` is no order of columns"),
        ({"columns": "srox"}, "`srox` is no order of columns"),
        ({"columns": "sroo"}, "is no order of columns"),
        ({"delimiter": ""}, "is no delimiter"),
        ({"delimiter": "::"}, "is no delimiter"),
        ({"delimiter": '"'}, "is no delimiter"),
        ({"literals": "burn"}, "unknown value of `literals`"),
        ({"on_error": "weep"}, "unknown value of `on_error`"),
        ({"min_relation_size": 0}, "at least 1"),
        ({"format": "word"}, "unknown format"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        load_graph(file_of(tmp_path, "g.tsv", "a\tr\tb\n"), **options)


def test_options_may_be_given_as_a_value_or_as_keywords(tmp_path):
    path = file_of(tmp_path, "g.txt", "ann;bob;knows\ncem;x\n")
    options = ReadOptions(delimiter=";", columns="sor")
    assert len(load_graph(path, options, on_error="skip")) == 1
    with pytest.raises(TypeError):
        load_graph(path, colunms="sor")


# -- CSV -------------------------------------------------------------------------------------------


def test_quoted_cells_hold_commas_quotes_and_line_ends(tmp_path):
    text = '\ufeffs,p,o\r\n"Smith, Ann",knows,"Bob ""the"" B."\r\n\r\n"two\nlines",knows,"a\tb"\r\n'
    path = tmp_path / "g.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    loaded = read_graph(path)
    assert loaded.graph.names(loaded.graph.triples) == [
        ("Smith, Ann", "knows", 'Bob "the" B.'),
        ("two lines", "knows", "a b"),
    ]


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ('a,r,b\n"c"x,r,d\n', "line 2: this is no CSV"),
        ('a,r,b\nc,"r"" ,d\n', "line 2: this is no CSV"),
        ('"a\na",r,b\nc,,d\n', "line 3: column 2 is empty"),
        ('"a\na",r,b\nc,d\n', "line 3: expected 3 `,`-separated columns, found 2"),
    ],
)
def test_bad_csv_is_refused_with_its_line_or_skipped(tmp_path, lines, where):
    path = file_of(tmp_path, "g.csv", lines)
    with pytest.raises(InputError, match=where):
        read_graph(path)
    report = read_graph(path, ReadOptions(on_error="skip")).report
    assert (report.statements, report.skipped) == (1, 1)
    assert where in report.examples[0]


def test_bytes_that_are_no_utf8_are_refused(tmp_path):
    (tmp_path / "g.csv").write_bytes(b"a,r,b\nc,r,\xff\n")
    with pytest.raises(InputError, match=r"line 2: .* is not valid UTF-8"):
        read_graph(tmp_path / "g.csv")


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n\0"), min_size=1, max_size=4).filter(
    lambda name: not name.startswith("\ufeff")
)


@given(rows=st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=6), ending=st.sampled_from(["csv", "tsv"]))
def test_every_graph_survives_columns(tmp_path_factory, rows, ending):
    graph = KnowledgeGraph.from_names(rows)
    path = tmp_path_factory.mktemp("columns") / f"g.{ending}"
    write_graph(graph, path)
    assert read_graph(path).graph == graph


def test_names_with_line_ends_are_not_written(tmp_path):
    with pytest.raises(OutputError, match="CSV cannot hold"):
        write_graph(KnowledgeGraph.from_names([("a\nb", "r", "c")]), tmp_path / "g.csv")


# -- RDF -------------------------------------------------------------------------------------------

IRIS = KnowledgeGraph.from_names(
    [("http://x/a", "http://x/p", "http://x/b"), ("http://x/b", "http://x/p", '"text"@en')]
)
RDF = {
    "g.nq": '<http://x/a> <http://x/p> <http://x/b> <http://x/g> .\n<http://x/b> <http://x/p> "text"@en .\n',
    "g.trig": '@prefix x: <http://x/> . x:g { x:a x:p x:b . } x:b x:p "text"@en .',
    "g.rdf": '<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">'
    '<rdf:Description rdf:about="http://x/a"><x:p rdf:resource="http://x/b"/></rdf:Description>'
    '<rdf:Description rdf:about="http://x/b"><x:p xml:lang="en">text</x:p></rdf:Description></rdf:RDF>',
    "g.jsonld": '[{"@id": "http://x/g", "@graph": [{"@id": "http://x/a", "http://x/p": {"@id": "http://x/b"}}]},'
    ' {"@id": "http://x/b", "http://x/p": {"@value": "text", "@language": "en"}}]',
}


@pytest.mark.parametrize("name", RDF)
def test_all_kinds_of_rdf_are_read_compressed_or_not(tmp_path, name):
    loaded = read_graph(file_of(tmp_path, name, RDF[name]))
    assert loaded.graph == IRIS
    said = [note for note in loaded.report.notes if "names of graphs are ignored" in note]
    assert len(said) == (name != "g.rdf")
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(RDF[name].encode()))
    assert load_graph(tmp_path / f"{name}.gz") == IRIS


@pytest.mark.parametrize("name", ["g.rdf", "g.jsonld"])
def test_xml_and_json_are_recognised_without_an_ending(tmp_path, name):
    assert load_graph(file_of(tmp_path, "graph", RDF[name])) == IRIS


def test_bad_quads_can_be_skipped(tmp_path):
    path = file_of(tmp_path, "g.nq", RDF["g.nq"] + "no quad\n")
    with pytest.raises(InputError, match="line 3"):
        read_graph(path)
    loaded = read_graph(path, ReadOptions(on_error="skip"))
    assert (loaded.graph, loaded.report.skipped) == (IRIS, 1)


@pytest.mark.parametrize(("name", "text"), [("g.rdf", "<rdf:RDF>"), ("g.jsonld", '{"@id": '), ("g.trig", "<a:> {")])
def test_damaged_documents_are_one_error(tmp_path, name, text):
    with pytest.raises(InputError):
        read_graph(file_of(tmp_path, name, text))


def test_blank_nodes_of_a_document_have_the_same_names_at_each_reading(tmp_path):
    path = file_of(
        tmp_path, "g.jsonld", '[{"http://x/p": [{"http://x/q": {"@id": "http://x/a"}}, {"@id": "http://x/b"}]}]'
    )
    assert load_graph(path) == load_graph(path)


def test_options_for_tables_are_refused_for_other_formats(tmp_path):
    (tmp_path / "graph.nt").write_text("<http://a> <http://r> <http://b> .\n")
    for options in ({"columns": "sor"}, {"delimiter": ";"}):
        with pytest.raises(InputError, match=f"--{next(iter(options))} is for tables, and this is ntriples") as error:
            read_graph(tmp_path / "graph.nt", ReadOptions(**options))
        assert "--format tsv or csv" in str(error.value)
