import json

import pytest

TRIPLES = "ann\tknows\tbob\nbob\tknows\tcem\nann\ttype\tPerson\n"


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.tsv"
    path.write_text(TRIPLES)
    return path


def test_show_counts_triples_constants_relations_and_types(loginfer, graph):
    code, out, _ = loginfer("kg", "show", graph, "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["triples"] == 3
    assert facts["constants"] == 3
    assert facts["relations"] == 1
    assert facts["types"] == 1
    assert facts["relation_sizes"] == {"knows": 2}
    assert facts["type_sizes"] == {"Person": 1}


def test_show_prints_a_readable_table(loginfer, graph):
    code, out, _ = loginfer("kg", "show", graph)
    assert code == 0
    assert "knows" in out
    assert "triples" in out


def test_an_empty_type_predicate_makes_type_an_ordinary_relation(loginfer, graph):
    _, out, _ = loginfer("kg", "show", graph, "--json", "--type-predicate", "")
    assert json.loads(out)["relations"] == 2


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "txt.zst", "nt", "nt.gz", "parquet", "ttl"])
def test_a_graph_survives_conversion_to_every_format(loginfer, graph, tmp_path, ending):
    there = tmp_path / f"there.{ending}"
    back = tmp_path / "back.tsv"
    assert loginfer("kg", "convert", graph, there)[0] == 0
    assert loginfer("kg", "convert", there, back)[0] == 0
    assert sorted(back.read_text().splitlines()) == sorted(TRIPLES.splitlines())


def test_convert_does_not_overwrite_without_force(loginfer, graph, tmp_path):
    out = tmp_path / "out.tsv"
    out.write_text("mine")
    code, _, err = loginfer("kg", "convert", graph, out)
    assert code == 2
    assert "--force" in err
    assert out.read_text() == "mine"
    assert loginfer("kg", "convert", graph, out, "--force")[0] == 0


def test_another_order_of_columns_is_an_option(loginfer, tmp_path):
    path = tmp_path / "hto.tsv"
    path.write_text("ann\tbob\tknows\n")
    _, out, _ = loginfer("kg", "show", path, "--columns", "sor", "--json")
    assert json.loads(out)["relation_sizes"] == {"knows": 1}


def test_generate_writes_sorted_distinct_triples_and_show_agrees(loginfer, tmp_path):
    out = tmp_path / "lubm.nt"
    code, _, err = loginfer("kg", "generate", "lubm", "--out", out)
    assert code == 0, err
    lines = out.read_bytes().splitlines()
    assert len(lines) == 100_543
    assert lines == sorted(set(lines))
    _, shown, _ = loginfer("kg", "show", out, "--json")
    assert json.loads(shown)["relations"] == 16
    assert json.loads(shown)["types"] == 14


def test_list_names_the_catalogue_and_the_formats(loginfer):
    code, out, _ = loginfer("kg", "list", "--json")
    assert code == 0
    listed = json.loads(out)
    assert {"fb15k-237", "wn18rr", "lubm"} <= {g["name"] for g in listed["graphs"]}
    assert loginfer("kg", "list")[0] == 0


@pytest.mark.data
@pytest.mark.parametrize(("name", "triples", "relations"), [("wn18rr", 93003, 11), ("FB15k-237", 310116, 237)])
def test_real_graphs_have_their_published_sizes(loginfer, data_folder, name, triples, relations):
    code, out, err = loginfer("kg", "show", name, "--json")
    assert code == 0, err
    assert json.loads(out)["triples"] == triples
    assert json.loads(out)["relations"] == relations


BAD = {
    "an empty file": (b"", "no triples"),
    "two columns": (b"a\tb\n", "line 1"),
    "a bad line further down": (b"a\tR\tb\na\tb\n", "line 2"),
    "binary junk": (bytes(range(256)) * 4, "binary, not UTF-8"),
    "utf-16": ("a\tR\tb\n".encode("utf-16"), "UTF"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_one_clear_message_with_its_name(loginfer, tmp_path, what):
    content, expected = BAD[what]
    path = tmp_path / "bad.tsv"
    path.write_bytes(content)
    code, out, err = loginfer("kg", "show", path)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert "bad.tsv" in err
    assert expected.casefold() in err.casefold()
    assert "Traceback" not in err


def test_bad_lines_can_be_skipped_and_are_counted(loginfer, tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text("a\tR\tb\nonly two\tcolumns\nb\tR\tc\n")
    code, out, err = loginfer("kg", "show", path, "--on-error", "skip", "--json")
    assert code == 0
    assert json.loads(out)["skipped"] == 1
    assert "skipped 1" in err


def test_a_missing_file_offers_names_of_the_catalogue(loginfer):
    code, _, err = loginfer("kg", "show", "wn18r")
    assert code == 2
    assert "wn18rr" in err


def test_an_unknown_generator_is_refused(loginfer, tmp_path):
    code, _, err = loginfer("kg", "generate", "lubn", "--out", tmp_path / "x.nt")
    assert code == 2
    assert "lubm" in err


def test_a_file_without_permission_is_one_clear_message(loginfer, graph, monkeypatch):
    import errno
    import io
    from pathlib import Path

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    monkeypatch.setattr(io, "open", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    code, _, err = loginfer("kg", "show", graph)
    assert code == 2
    assert "permission denied" in err.casefold()


def test_a_full_disk_while_writing_is_one_clear_message(loginfer, graph, tmp_path, monkeypatch):
    import errno
    import os

    def full(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    out = tmp_path / "out.tsv"
    code, _, err = loginfer("kg", "convert", graph, out)
    assert code == 2
    assert "no space left" in err
    assert not out.exists()
    assert not list(tmp_path.glob(".out*"))


def test_names_that_look_like_markup_are_printed_as_they_are(loginfer, tmp_path):
    graph = tmp_path / "markup.tsv"
    graph.write_text("a\thas [bold]x[/bold] :smile:\tb\n")
    code, out, err = loginfer("kg", "show", graph)
    assert code == 0, err
    assert "has [bold]x[/bold] :smile:" in out


def test_fetching_what_is_generated_still_answers_in_json(loginfer):
    code, out, _ = loginfer("kg", "fetch", "lubm", "--json")
    assert code == 0
    assert json.loads(out) == {"name": "lubm", "path": None, "sha256": None}


@pytest.mark.parametrize("words", [["convert", "lubm"], ["generate", "lubm", "--out"]])
def test_an_unknown_ending_is_told_before_the_work(loginfer, monkeypatch, words):
    def fail(*arguments, **options):
        raise AssertionError("the graph was generated")

    monkeypatch.setattr("loginfer.kg.lubm.generate_lubm", fail)
    code, _, err = loginfer("kg", *words, "graph.foo")
    assert code == 2
    assert "no known ending" in err


def test_the_empty_name_is_no_graph(loginfer):
    code, _, err = loginfer("kg", "show", "")
    assert code == 2
    assert "choose one of `fb15k-237`" in err
