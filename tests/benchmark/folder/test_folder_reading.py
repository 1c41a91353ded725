"""Reading folders that are damaged, and folders of others."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.made_up_benchmarks import family, same

from loginfer.benchmark.folder.manifest import Role, role_of
from loginfer.benchmark.folder.reading import load_benchmark, read_folder
from loginfer.benchmark.folder.writing import write_benchmark
from loginfer.errors import InputError
from loginfer.kg.load import read_graph


@pytest.fixture
def folder(tmp_path):
    write_benchmark(family(), tmp_path / "out")
    return tmp_path / "out"


def lay(folder, **files):
    """Write text files; `train__txt` is `train.txt`."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def names(benchmark, triples):
    return benchmark.graph.names(triples)


# -- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["train.txt", "test_neg_qg.txt", "rules.txt", "provenance.parquet", "negatives.parquet", "README.md",
     "croissant.json", "candidate_entities.txt"],
)  # fmt: skip
def test_a_changed_byte_is_found(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_benchmark(folder)
    assert name in str(caught.value)
    assert "sha256" in str(caught.value)
    assert "again" in str(caught.value)
    problems = [p for p in read_folder(folder).problems if p.kind == "sha256"]
    assert [p.file for p in problems] == [name]


def test_a_file_of_another_size_is_found(folder):
    with (folder / "valid.txt").open("a") as stream:
        stream.write("ada\tknows\tdée\n")
    with pytest.raises(InputError, match=r"valid.txt` was changed: it has 41 bytes, expected 26"):
        load_benchmark(folder)


def test_without_verifying_a_changed_file_is_read_as_it_is(folder):
    with (folder / "valid.txt").open("a") as stream:
        stream.write("ada\tknows\tdée\n")
    found = load_benchmark(folder, verify=False)
    assert ("ada", "knows", "dée") in names(found, found.positives.valid)


@pytest.mark.parametrize("name", ["train.txt", "valid_neg_pa.txt", "rules.txt", "negatives.parquet", "README.md"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"`{name}` is missing"):
        load_benchmark(folder)
    with pytest.raises(InputError, match=f"`{name}` is missing"):
        load_benchmark(folder, verify=False)
    assert [(p.kind, p.file) for p in read_folder(folder).problems] == [("missing", name)]


def test_several_problems_are_counted_and_the_first_are_named(folder):
    for split in ("train", "valid", "test"):
        (folder / f"{split}_neg_pa.txt").unlink()
    (folder / "test.txt").write_text("")
    with pytest.raises(InputError) as caught:
        load_benchmark(folder)
    assert "has 4 problems" in str(caught.value)
    assert "and 1 more" in str(caught.value)
    assert "test.txt` was changed: it has 0 bytes" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 2}, "the format 2; this program reads format 1"),
        ({"format": "another"}, "not that of a benchmark"),
        ({"files": None}, "`files` must be an object"),
        ({"files": {"../secret.txt": {"bytes": 1, "sha256": ""}}}, "that is the name of a file"),
        ({"negatives": {"../x": {}}}, "that is the name of a method"),
        ({"recipe": {"kg": "x", "patterns": ["sym"], "k3": 1}}, "unknown setting `k3`"),
        ({"recipe": 3}, "`recipe` must be an object, not 3"),
        ({"rules": []}, "there are 3 rules, but 0 in the manifest"),
        ({"rules": [1, 2, 3]}, r"`rules\[0\]` must be an object, not 1"),
        ({"passed_over": [{"rule": "no rule", "pattern": None, "support": 1, "new": 1}]}, "expected"),
        ({"positives": "many"}, "`positives` must be an object"),
        (
            {"positives": {"train": 1, "valid": True, "test": 1}},
            "`positives.valid` must be a whole number of at least 0, not True",
        ),
        ({"conclusions": [1]}, "`conclusions` must be an object"),
        ({"kg": {"triples": 3}}, "`kg.constants` is missing"),
        ({"versions": "x"}, "`versions` must be an object"),
        ({"format_version": "1"}, 'the format "1"; this program reads format 1'),
    ],
)
def test_a_manifest_that_cannot_be_understood_is_told(folder, change, message):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **change}))
    with pytest.raises(InputError, match=message):
        load_benchmark(folder)


def test_a_manifest_with_nonsense_in_it_is_an_error_or_harmless(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    places = [(key,) for key in manifest]
    places += [("negatives", "pa"), ("negatives", "pa", "train"), ("negatives", "pa", "notes")]
    places += [("files", "train.txt"), ("files", "train.txt", "bytes"), ("recipe", "patterns"), ("recipe", "kg")]
    outcomes = set()
    for place in places:
        for nonsense in (None, 3, "x", [], [None], {}, {"x": None}):
            changed = json.loads(json.dumps(manifest))
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = nonsense
            (folder / "manifest.json").write_text(json.dumps(changed))
            try:
                load_benchmark(folder)
                outcomes.add("harmless")
            except InputError:
                outcomes.add("error")
    assert outcomes == {"harmless", "error"}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "loginfer-benchmark"}', "\xff"])
def test_a_manifest_that_is_none_is_told(folder, text):
    (folder / "manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match="manifest"):
        load_benchmark(folder)
    assert not read_folder(folder).benchmark.manifest


@pytest.mark.parametrize("name", ["provenance.parquet", "negatives.parquet"])
@pytest.mark.parametrize("size", [0, 3, 200, -1])
def test_a_truncated_table_is_told(folder, name, size):
    (folder / name).write_bytes((folder / name).read_bytes()[:size])
    with pytest.raises(InputError, match=name):
        load_benchmark(folder)
    kinds = {p.kind for p in read_folder(folder, verify=False).problems if p.file == name}
    assert kinds == {"unreadable"}


def rewrite(path, **columns):
    table = pq.read_table(path)
    for name, change in columns.items():
        values = change(table.column(name).to_pylist())
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values, table.schema.field(name).type))
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("file", "column", "value", "message"),
    [
        ("provenance.parquet", "rule", 3, "there is no rule 3"),
        ("provenance.parquet", "rule", None, "empty cell"),
        ("provenance.parquet", "split", "tests", "column `split` holds `tests`"),
        ("provenance.parquet", "witness", ["ada", None], "empty cell"),
        ("negatives.parquet", "rule", 7, "there is no rule 7"),
        ("negatives.parquet", "source", "elsewhere", "column `source` holds `elsewhere`"),
        ("negatives.parquet", "object", "nobody", "hold different negatives"),
        ("negatives.parquet", "subject", None, "empty cell"),
    ],
)
def test_a_table_that_contradicts_the_rest_is_told(folder, file, column, value, message):
    rewrite(folder / file, **{column: lambda values: [*values[:-1], value]})
    with pytest.raises(InputError, match=message):
        load_benchmark(folder, verify=False)


@pytest.mark.parametrize("file", ["provenance.parquet", "negatives.parquet"])
def test_a_table_with_other_columns_is_told(folder, file):
    pq.write_table(pq.read_table(folder / file).drop_columns(["split"]), folder / file)
    with pytest.raises(InputError, match="there is no column `split`"):
        load_benchmark(folder, verify=False)
    table = pq.read_table(folder / file)
    pq.write_table(table.append_column("split", pa.array([1] * len(table))), folder / file)
    with pytest.raises(InputError, match="column `split` holds int64"):
        load_benchmark(folder, verify=False)


def test_rules_that_differ_from_the_manifest_are_told(folder):
    text = (folder / "rules.txt").read_text()
    (folder / "rules.txt").write_text(text.replace("(x,knows,z)", "(z,knows,x)"))
    with pytest.raises(InputError, match="in the manifest"):
        load_benchmark(folder, verify=False)
    (folder / "rules.txt").write_text("(x,likes")
    found = read_folder(folder, verify=False)
    assert not found.rules_known
    assert [p.file for p in found.problems] == ["rules.txt"]
    assert found.benchmark.provenance is not None


def test_a_list_may_call_its_elements_otherwise(folder):
    table = pq.read_table(folder / "provenance.parquet")
    pq.write_table(table, folder / "provenance.parquet", use_compliant_nested_type=False)
    assert same(load_benchmark(folder, verify=False), family())


@pytest.mark.parametrize("name", ["provenance.parquet", "negatives.parquet"])
def test_whatever_pyarrow_says_about_a_damaged_table_is_told(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes().replace(b"subject", b"s\xffbject"))
    with pytest.raises(InputError, match=f"{name}(.|\n)*no readable Parquet file"):
        load_benchmark(folder, verify=False)


def test_provenance_in_any_order_is_read_as_one(folder):
    table = pq.read_table(folder / "provenance.parquet")
    pq.write_table(table.take(list(range(len(table)))[::-1]), folder / "provenance.parquet")
    assert same(load_benchmark(folder, verify=False), family())


def test_bad_lines_are_collected_with_their_numbers(folder):
    (folder / "valid.txt").write_bytes(b"ada\tknows\n\nada\tknows\tx\nada\tkn\xffows\tx\na\t\tb\n")
    found = read_folder(folder, verify=False)
    (problem,) = found.problems
    assert (problem.kind, problem.file, problem.count) == ("lines", "valid.txt", 3)
    assert problem.where.endswith("valid.txt:1")
    assert problem.examples[0] == "line 1: expected 3 tab-separated columns, found 2"
    assert problem.examples[1] == "line 5: column 2 is empty"
    assert problem.examples[2].startswith("line 4: `kn")
    (file,) = [f for f in found.files if f.name == "valid.txt"]
    assert file.lines == 5
    assert len(file.triples) == 1
    with pytest.raises(InputError, match="3 lines cannot be read"):
        load_benchmark(folder, verify=False)


def test_repeated_lines_are_kept_by_the_raw_reading_in_their_order(folder):
    (folder / "test.txt").write_text("e\tlikes\ta\nb\tlikes\ta\ne\tlikes\ta\n")
    found = read_folder(folder, verify=False)
    lines = found.benchmark.graph.names(found.file("test").triples)
    assert lines == [("e", "likes", "a"), ("b", "likes", "a"), ("e", "likes", "a")]
    assert len(load_benchmark(folder, verify=False).positives.test) == 2


def test_files_that_the_manifest_does_not_list_are_named_and_not_read(folder):
    (folder / "train_neg_zz.txt").write_text("a\tb\tc\n")
    found = read_folder(folder)
    assert found.unlisted == ("train_neg_zz.txt",)
    assert tuple(found.benchmark.negatives) == ("pa", "qg")
    assert found.problems == ()


# -- folders of others --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("train.txt", Role("train")),
        ("dev.tsv", Role("valid")),
        ("valid.txt.gz", Role("valid")),
        ("Test.TXT", Role("test")),
        ("train_neg_pa.txt", Role("train", "pa")),
        ("test_neg_my-own_1.txt", Role("test", "my-own_1")),
        ("train_neg.txt", Role("train", "given")),
        ("neg_train.txt", Role("train", "given")),
        ("valid_negatives.txt", Role("valid", "given")),
        ("test-negative.tsv", Role("test", "given")),
        ("test_pos.txt", Role("test")),
        ("valid_neg.txt", Role("valid", "given")),
        ("train_types.txt", None),
        ("train_valid.txt", None),
        ("training data.csv", None),
        ("entities.txt", None),
        ("._train.txt", None),
        ("CONTEXT.txt.gz", Role("test", context=True)),
        ("context.nt", None),
    ],
)
def test_files_are_known_by_their_names(name, role):
    assert role_of(name) == role


@pytest.mark.parametrize("name", ["context.txt", "context.tsv", "CONTEXT.txt.gz", "context.nt", "context.csv"])
def test_a_graph_and_a_benchmark_have_the_same_context(tmp_path, name):
    folder = lay(tmp_path / "small", train__txt="a\tr\tb\n", test__txt="x\tr\ty\n")
    text = {".nt": b"<x> <s> <z> .\n", ".csv": b"x,s,z\n"}.get(name[7:], b"x\ts\tz\n")
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    benchmark, graph = load_benchmark(folder), read_graph(folder).graph
    assert ("s" in graph.relations) == (benchmark.context is not None) == name.lower().startswith("context.t")


def test_a_released_folder_without_manifest_is_read(tmp_path):
    folder = lay(
        tmp_path / "LogInfer-X",
        train__txt="a\tr\tb\nb\tr\tc\na\tr\tb\n",
        valid__txt="a\ts\tc\n",
        test__txt="c\ts\ta\n",
        train_neg_rb__txt="a\tr\ta\n",
        test_neg_rb__txt="c\tr\td\n",
        valid_neg_pa__txt="e\ts\te\n",
        candidate_entities__txt="a\nb\n",
        notes__md="hello",
    )
    (folder / ".DS_Store").write_bytes(b"\0\1")
    found = load_benchmark(folder)
    assert found.name == "LogInfer-X"
    assert list(found.negatives) == ["pa", "rb"]
    assert found.graph.names(found.graph.triples) == [("a", "r", "b"), ("b", "r", "c")]
    assert names(found, found.negatives["rb"].splits.test) == [("c", "r", "d")]
    assert found.negatives["rb"].splits.sizes == {"train": 1, "valid": 0, "test": 1}
    assert names(found, found.negatives["pa"].splits.valid) == [("e", "s", "e")]
    assert found.negatives["pa"].origins == {}
    assert (found.rules, found.provenance, found.recipe, found.manifest) == ((), None, None, {})


def test_codex_is_read(tmp_path):
    folder = lay(
        tmp_path / "codex-s",
        train__txt="Q1\tP1\tQ2\n",
        valid__txt="Q2\tP1\tQ3\n",
        valid_negatives__txt="Q3\tP1\tQ3\n",
        test__txt="Q1\tP1\tQ3\n",
        test_negatives__txt="Q9\tP1\tQ3\n",
    )
    found = load_benchmark(folder)
    assert list(found.negatives) == ["given"]
    assert found.negatives["given"].splits.sizes == {"train": 0, "valid": 1, "test": 1}


def test_inferwiki_is_read(tmp_path):
    folder = lay(
        tmp_path / "16k",
        ent_vocab__txt="Q1\t\t3\t\tone\n",
        train__txt="Q1\tP1\tQ2\n",
        valid_pos__txt="Q2\tP1\tQ3\t1-n\tP2\t2\n",
        valid_neg__txt="Q3\tP1\tQ3\t-1c\nQ4\tP1\tQ3\tr\n",
        test_pos__txt="Q1\tP1\tQ3\tn-n\tP5\t3\nQ1\tP1\tQ4\tn-n\tP5\t3\n",
        test_neg__txt="Q9\tP1\tQ3\t0c\n",
    )
    found = load_benchmark(folder)
    assert found.positives.sizes == {"train": 1, "valid": 1, "test": 2}
    assert found.negatives["given"].splits.sizes == {"train": 0, "valid": 2, "test": 1}
    assert names(found, found.negatives["given"].splits.test) == [("Q9", "P1", "Q3")]


def test_lines_with_labels_are_divided(tmp_path):
    folder = lay(
        tmp_path / "labelled",
        train__txt="a\tr\tb\nb\tr\tc\n",
        valid__txt="a\tr\tc\t1\r\nc\tr\ta\t-1\r\n",
        test__txt="\na\tr\td\t1\nb\tr\td\t0\nc\tr\td\t-1\n",
    )
    found = load_benchmark(folder)
    assert names(found, found.positives.valid) == [("a", "r", "c")]
    assert names(found, found.positives.test) == [("a", "r", "d")]
    given = found.negatives["given"].splits
    assert names(found, given.valid) == [("c", "r", "a")]
    assert names(found, given.test) == [("b", "r", "d"), ("c", "r", "d")]


def test_a_label_that_is_none_is_told(tmp_path):
    folder = lay(tmp_path / "x", train__txt="a\tr\tb\n", test__txt="a\tr\tc\t1\na\tr\td\t2014\n")
    with pytest.raises(InputError, match=r"test.txt:2: expected the label 1 or -1 in column 4, found `2014`"):
        load_benchmark(folder)


def test_names_types_and_rules_of_a_released_folder_are_known(tmp_path):
    rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    folder = lay(
        tmp_path / "lubm",
        train__txt=f"a\t{rdf_type}\tC\n",
        test__txt="",
        rules__txt="(x,type,C) -> (x,type,D)\n(x,type,C) -> (x,likes,Bob)\n",
    )
    found = load_benchmark(folder)
    assert found.graph.type_predicate == rdf_type
    assert list(found.graph.relations) == [rdf_type, "likes"]
    assert list(found.graph.entities) == ["Bob", "C", "D", "a"]
    assert [rule.support for rule in found.rules] == [-1, -1]


def test_a_compressed_file_is_read(tmp_path):
    folder = lay(tmp_path / "zipped", test__txt="a\tr\tc\n")
    (folder / "train.txt.gz").write_bytes(gzip.compress(b"a\tr\tb\n"))
    assert load_benchmark(folder).positives.sizes == {"train": 1, "valid": 0, "test": 1}


@pytest.mark.parametrize("types", [True, False])
def test_our_own_folder_is_read_without_its_manifest(tmp_path, types):
    made = family(types)
    write_benchmark(made, tmp_path / "out")
    (tmp_path / "out" / "manifest.json").unlink()
    found = load_benchmark(tmp_path / "out")
    assert found.graph == made.graph
    assert found.program == made.program
    for split, triples in made.positives.items():
        assert np.array_equal(found.positives[split], triples)
        assert np.array_equal(found.negatives["qg"].splits[split], made.negatives["qg"].splits[split])


def test_a_corrupted_line_is_told_with_its_number(tmp_path):
    folder = lay(tmp_path / "x", train__txt="a\tr\tb\n", test__txt="a\tr\tb\nnonsense\n")
    with pytest.raises(InputError, match=r"test.txt:2: expected 3 tab-separated columns, found 1"):
        load_benchmark(folder)


def test_a_file_that_ends_too_early_does_not_spoil_the_next(tmp_path):
    folder = lay(tmp_path / "x", train__txt="a\tr\tb\n", test__txt="c\tr\td\n")
    lines = b"".join(b"%d\tr\t%d\n" % (i * i, i * 7919) for i in range(300_000))
    (folder / "valid.txt.gz").write_bytes(gzip.compress(lines, 1)[:-1000])
    found = read_folder(folder)
    assert [(p.kind, p.file) for p in found.problems] == [("unreadable", "valid.txt.gz")]
    assert found.benchmark.graph.names(found.file("test").triples) == [("c", "r", "d")]
    assert len(found.file("valid").triples) > 0


def test_two_files_for_the_same_split_are_told(tmp_path):
    folder = lay(tmp_path / "x", train__txt="a\tr\tb\n", valid__txt="a\tr\tb\n", dev__txt="a\tr\tb\n")
    with pytest.raises(InputError, match=r"`dev.txt` and `valid.txt` both look like the positives of valid"):
        load_benchmark(folder)


def test_a_folder_that_a_killed_run_moved_away_is_pointed_at(tmp_path):
    write_benchmark(family(), tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / ".out.loginfer-old")
    with pytest.raises(InputError, match=r"interrupted.*\.out\.loginfer-old"):
        load_benchmark(tmp_path / "out")


def test_what_is_no_benchmark_is_told(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        load_benchmark(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is empty"):
        load_benchmark(tmp_path / "empty")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        load_benchmark(tmp_path / "file")
    with pytest.raises(InputError, match="no file with training triples"):
        load_benchmark(lay(tmp_path / "other", test__txt="a\tr\tb\n", notes__md="x"))
    with pytest.raises(InputError, match="holds no training triples"):
        load_benchmark(lay(tmp_path / "blank", train__txt="\n"))
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "train.txt").write_bytes(b"PAR1\0\0")
    with pytest.raises(InputError, match="Parquet"):
        load_benchmark(tmp_path / "binary")
