"""An export is complete or not there, replaced only when asked for, and verified when it is read."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.exported_benchmarks import FORMATS, inductive, named, noisy
from tests.support.made_up_benchmarks import family

from loginfer.benchmark import load_benchmark, write_benchmark
from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.export import FORMATS as KNOWN
from loginfer.benchmark.export import register_export
from loginfer.benchmark.export.export import export_benchmark, read_export
from loginfer.errors import InputError, OutputError, UnknownNameError
from loginfer.files import file_sum
from loginfer.kg import KnowledgeGraph

every_format = pytest.mark.parametrize("to", FORMATS)


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def sets(found):
    return found.positives, found.negatives, found.context


def test_these_are_all_formats():
    assert tuple(KNOWN) == FORMATS


@every_format
@pytest.mark.parametrize(
    "made",
    [family(), family(types=False, valid=False), family(methods=()), inductive(), noisy()],
    ids=["types", "empty valid", "no negatives", "inductive", "noisy"],
)
def test_every_kind_of_benchmark_is_read_back(tmp_path, to, made):
    about = export_benchmark(made, to, tmp_path / "new" / "out")
    found = read_export(tmp_path / "new" / "out")
    assert sets(found) == named(made)
    assert found.about == about
    assert repr(found).startswith(f"Exported('Family & co' to {to}")
    assert about.get("noise") == (None if made.noise is None else made.noise.as_dict())
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["out"]


@every_format
def test_a_very_long_name_is_read_back(tmp_path, to):
    long = "n" * 200_000
    graph = KnowledgeGraph.from_names([(long, "likes", "ada"), ("ada", f"{long} of", long)])
    empty = graph.triples[:0]
    made = Benchmark("long", graph, replace(family().positives, train=graph.triples, valid=empty, test=empty), {})
    export_benchmark(made, to, tmp_path / "out")
    assert sets(read_export(tmp_path / "out")) == named(made)


def test_the_same_benchmark_gives_the_same_bytes(tmp_path):
    write_benchmark(family(), tmp_path / "bench")
    words = (
        "import sys; from loginfer.benchmark.export import FORMATS, export_benchmark;"
        "[export_benchmark(sys.argv[1], to, f'{sys.argv[2]}/{to}') for to in FORMATS]"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", words, str(tmp_path / "bench"), str(tmp_path / seed)],
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
    assert content(tmp_path / "1") == content(tmp_path / "2")


@every_format
def test_the_source_and_every_file_have_their_sums(tmp_path, to):
    write_benchmark(family(), tmp_path / "bench")
    about = export_benchmark(tmp_path / "bench", to, tmp_path / "out")
    assert about["source"] == {"manifest_sha256": file_sum(tmp_path / "bench" / "manifest.json")}
    files = content(tmp_path / "out")
    assert set(about["files"]) == set(files) - {"export.json"}
    for name, told in about["files"].items():
        assert told == {"bytes": len(files[name]), "sha256": file_sum(tmp_path / "out" / name)}


@every_format
def test_negatives_can_be_chosen(tmp_path, to):
    made = family(methods=("rb", "pa", "rc"))
    export_benchmark(made, to, tmp_path / "out", negatives=["rc", "pa"])
    positives, negatives, _ = named(made)
    found = read_export(tmp_path / "out")
    assert found.positives == positives
    assert list(found.negatives) == ["pa", "rc"]
    assert found.negatives == {method: negatives[method] for method in ("pa", "rc")}
    assert not any("rb" in name for name in content(tmp_path / "out"))


def test_one_method_may_be_given_by_its_name_alone(tmp_path):
    export_benchmark(family(), "rdf", tmp_path / "out", negatives="qg")
    assert list(read_export(tmp_path / "out").negatives) == ["qg"]


# -- what the README tells ------------------------------------------------------------------------


@every_format
@pytest.mark.parametrize("made", [family(), inductive(), noisy()], ids=["types", "inductive", "noisy"])
def test_the_readme_tells_every_note_and_figure(tmp_path, to, made):
    notes = export_benchmark(made, to, tmp_path / "out")["notes"]
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    section = "".join(f"- {note}\n" for note in notes)
    assert f"\n\n## Notes\n\n{section}\n## Figures\n" in text if notes else "## Notes" not in text
    assert ("| context graph | | | 1 |" in text) == (made.context is not None)


def test_a_name_that_markdown_would_take_for_something_else_is_shown_as_it_is(tmp_path):
    for number, to in enumerate(("rdf", "huggingface")):
        out = tmp_path / str(number)
        export_benchmark(replace(family(), name="a <b>[x](y) `c` *d* &amp; e & f\ng"), to, out)
        text = (out / "README.md").read_text(encoding="utf-8")
        assert "\n# a \\<b>\\[x](y) \\`c\\` \\*d\\* \\&amp; e & f g\n" in f"\n{text}"


def test_the_command_for_libkge_can_be_pasted_whatever_the_folder_is_called(tmp_path):
    name = "my $(data) 'x'"
    export_benchmark(family(), "libkge", tmp_path / name)
    text = (tmp_path / name / "README.md").read_text(encoding="utf-8")
    command = next(line for line in text.split("\n") if line.startswith("kge start"))
    assert shlex.split(command)[-2:] == ["--dataset.name", name]


# -- refusals --------------------------------------------------------------------------------------


def test_an_unknown_format_comes_with_the_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean `openke`"):
        export_benchmark(family(), "open-ke", tmp_path / "out")


def test_an_unknown_method_comes_with_the_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match="choose one of `pa`, `qg`"):
        export_benchmark(family(), "rdf", tmp_path / "out", negatives=["zz"])
    with pytest.raises(InputError, match="no negatives"):
        export_benchmark(family(methods=()), "rdf", tmp_path / "out", negatives=["pa"])
    assert list(tmp_path.iterdir()) == []


def test_methods_that_would_share_a_name_are_refused(tmp_path):
    with pytest.raises(OutputError, match="two methods would both be called `train_negatives_a_b`"):
        export_benchmark(family(methods=("a.b", "a_b")), "libkge", tmp_path / "out")
    for taken in ("rules", "default"):
        with pytest.raises(OutputError, match=f"`{taken}` cannot be a config"):
            export_benchmark(family(methods=(taken,)), "huggingface", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_export_is_replaced_only_when_asked_for(tmp_path):
    export_benchmark(family(), "rdf", tmp_path / "out")
    before = content(tmp_path / "out")
    with pytest.raises(OutputError, match="exists already"):
        export_benchmark(family(types=False), "openke", tmp_path / "out")
    assert content(tmp_path / "out") == before
    export_benchmark(family(types=False), "huggingface", tmp_path / "out", force=True)
    assert read_export(tmp_path / "out").to == "huggingface"
    export_benchmark(family(), "rdf", tmp_path / "out", force=True)
    assert content(tmp_path / "out") == before


def test_nothing_but_an_export_is_ever_replaced(tmp_path):
    write_benchmark(family(), tmp_path / "bench")
    export_benchmark(family(), "rdf", tmp_path / "out")
    (tmp_path / "out" / "mine.txt").write_text("mine")
    for folder, why in (("bench", "it is no export"), ("out", "it also holds `mine.txt`")):
        before = content(tmp_path / folder)
        with pytest.raises(OutputError, match=why):
            export_benchmark(family(), "rdf", tmp_path / folder, force=True)
        assert content(tmp_path / folder) == before


@every_format
def test_a_place_whose_name_no_file_can_tell_is_refused(tmp_path, to):
    bad = os.fsdecode(b"bad\xffname")
    for out in (tmp_path / bad, tmp_path / bad / "out"):
        with pytest.raises(OutputError, match=r"bad\\udcffname.* is no UTF-8"):
            export_benchmark(family(), to, out)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_into_the_benchmark(tmp_path, loginfer):
    write_benchmark(family(), tmp_path / "bench")
    (tmp_path / "link").symlink_to(tmp_path / "bench")
    before = content(tmp_path / "bench")
    for folder in ("bench/out", "bench/new/out", "link/out"):
        for made in (tmp_path / "bench", str(tmp_path / "link"), load_benchmark(tmp_path / "bench")):
            with pytest.raises(OutputError, match="lies in the benchmark's folder"):
                export_benchmark(made, "rdf", tmp_path / folder)
    words = ("export", tmp_path / "bench", "--to", "rdf", "--out", tmp_path / "bench" / "out")
    code, out, err = loginfer(*words)
    assert (code, out) == (2, "")
    assert "hint: choose a folder outside of it" in err
    assert content(tmp_path / "bench") == before


@pytest.mark.parametrize(
    ("to", "note"),
    [
        ("openke", "OpenKE reads no empty sets; there are no triples in `valid2id.txt`"),
        (
            "libkge",
            "LibKGE reads sets of two triples and more; there are fewer in `valid.del`, `valid_negatives_pa.del`",
        ),
    ],
)
def test_a_set_that_is_too_small_for_a_program_is_told(tmp_path, to, note):
    made = family(methods=("pa",), valid=False)
    assert export_benchmark(made, to, tmp_path / "out")["notes"][-1] == note
    train = made.positives.train
    made = replace(made, positives=replace(made.positives, valid=train, test=train), negatives={})
    assert not any("sets" in told for told in export_benchmark(made, to, tmp_path / "full")["notes"])


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("loginfer.benchmark.export.export.write_readme", full)
    with pytest.raises(OutputError, match="no space left"):
        export_benchmark(family(), "openke", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# -- damage ----------------------------------------------------------------------------------------


@every_format
def test_a_changed_file_is_found(tmp_path, to):
    about = export_benchmark(family(), to, tmp_path / "out")
    for name in about["files"]:
        path = tmp_path / "out" / name
        good = path.read_bytes()
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        with pytest.raises(InputError, match="was changed: it has the sha256"):
            read_export(tmp_path / "out")
        path.write_bytes(good + b"\n")
        with pytest.raises(InputError, match=r"was changed: it has [\d,]+ bytes"):
            read_export(tmp_path / "out")
        path.unlink()
        with pytest.raises(InputError, match="is missing"):
            read_export(tmp_path / "out")
        path.write_bytes(good)
    assert sets(read_export(tmp_path / "out")) == named(family())


@pytest.mark.parametrize("to", [to for to in FORMATS if to != "huggingface"])
def test_nonsense_in_a_file_of_triples_is_an_error_without_verification_too(tmp_path, to):
    about = export_benchmark(family(), to, tmp_path / "out")
    path = tmp_path / "out" / about["sets"][0]["file"]
    good = path.read_bytes()
    for bad in (b"nonsense\n", b"\xff\xfe\n", good[: len(good) // 2], b"0\t-1\t0\n", b"1\n0 0 99\n", b'a\t"b\tc\n'):
        path.write_bytes(bad)
        with pytest.raises(InputError):
            read_export(tmp_path / "out", verify=False)


@pytest.mark.parametrize("to", ["parquet", "huggingface"])
def test_a_damaged_table_is_an_error_without_verification_too(tmp_path, to):
    about = export_benchmark(family(), to, tmp_path / "out")
    path = tmp_path / "out" / about["sets"][0]["file"]
    good = path.read_bytes()
    # The description of the table lies at the end, before its length and the mark of the format.
    for bad in (good[:-40] + b"\xff" * 32 + good[-8:], good[:4] + b"\xff" * 40 + good[44:], b"nonsense"):
        path.write_bytes(bad)
        with pytest.raises(InputError, match="no readable Parquet file: "):
            read_export(tmp_path / "out", verify=False)


@pytest.mark.parametrize("to", ["openke", "libkge"])
def test_nonsense_in_a_file_of_names_is_an_error_without_verification_too(tmp_path, to):
    export_benchmark(family(), to, tmp_path / "out")
    path = tmp_path / "out" / ("entity2id.txt" if to == "openke" else "entity_ids.del")
    for bad in ("nonsense\n", "1\na\t0", "1\na\tx\n", "1\na\t7\n", "x\ta\n", "7\ta\n", "2\na\t0\n", f"{'9' * 5000}\n"):
        path.write_text(bad)
        with pytest.raises(InputError):
            read_export(tmp_path / "out", verify=False)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": "another"}, 'its "format" is not'),
        ({"format_version": 99}, "has the format 99"),
        ({"to": "nowhere"}, "must be|is missing|unknown format|does not have"),
        ({"sets": None}, "must be|is missing|unknown format|does not have"),
        (
            {"sets": [{"split": "train", "method": None, "file": "../secret", "triples": 1}]},
            "must be|is missing|unknown format|does not have",
        ),
        ({"files": {"../secret": {}}}, "must be|is missing|unknown format|does not have"),
        ({"files": {"/etc/passwd": {}}}, "must be|is missing|unknown format|does not have"),
        ({"files": {"train.nt": 1}}, "must be|is missing|unknown format|does not have"),
        ({"files": {"train.nt": {}}, "sets": []}, "must be|is missing|unknown format|does not have"),
        (
            {"files": {"train.nt": {"bytes": "1", "sha256": ""}}, "sets": []},
            "must be|is missing|unknown format|does not have",
        ),
        (
            {"sets": [{"split": "train", "method": None, "file": ["train.nt"], "triples": 1}]},
            "must be|is missing|unknown format|does not have",
        ),
        (
            {"sets": [{"split": "train", "method": None, "triples": 1}]},
            "must be|is missing|unknown format|does not have",
        ),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(tmp_path, change, why):
    about = export_benchmark(family(), "rdf", tmp_path / "out")
    (tmp_path / "out" / "export.json").write_text(json.dumps(about | change))
    with pytest.raises(InputError, match=why):
        read_export(tmp_path / "out")


def test_what_is_no_export_is_told(tmp_path):
    with pytest.raises(InputError, match="no file or folder"):
        read_export(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"it has no `export\.json`"):
        read_export(tmp_path)
    (tmp_path / "export.json").write_text("{")
    with pytest.raises(InputError, match="no JSON"):
        read_export(tmp_path)


# -- the command line ------------------------------------------------------------------------------


def test_the_command_exports_and_says_what(tmp_path, loginfer):
    write_benchmark(inductive(), tmp_path / "bench")
    code, out, err = loginfer("export", tmp_path / "bench", "--to", "openke", "--out", tmp_path / "out")
    assert code == 0, err
    assert "Family & co: 7 entities, 5 relations" in out
    assert "negatives pa" in out
    assert f"written to {tmp_path / 'out'}: 15 files for openke" in out
    assert err.startswith("note: inductive: no constant of test is in train")
    words = ("export", tmp_path / "bench", "--to", "rdf", "--out", tmp_path / "out")
    code, out, err = loginfer(*words, "--negatives", "pa", "--force", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told.pop("path") == str(tmp_path / "out")
    assert told == json.loads((tmp_path / "out" / "export.json").read_text())
    assert list(told["negatives"]) == ["pa"]


def test_the_command_complains_before_the_work(tmp_path, loginfer):
    (tmp_path / "there").mkdir()
    for words, why in (
        (("--to", "hugging-face", "--out", "new"), "did you mean `huggingface`?"),
        (("--to", "rdf", "--out", "there"), "exists already"),
        (("--to", "rdf", "--out", "new"), "no folder"),
    ):
        code, out, err = loginfer("export", tmp_path / "nowhere", *words[:-1], tmp_path / words[-1])
        assert (code, out) == (2, "")
        assert why in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["there"]


def test_no_library_of_others_is_needed_to_export(tmp_path):
    words = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "sys.modules |= dict.fromkeys(('torch', 'pykeen', 'datasets', 'yaml', 'rdflib'));"
        "from tests.support.made_up_benchmarks import family; from loginfer.benchmark.export import *;"
        "[export_benchmark(family(), to, f'{sys.argv[2]}/{to}') for to in FORMATS];"
        "print([read_export(f'{sys.argv[2]}/{to}').to for to in FORMATS] == list(FORMATS))"
    )
    here = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", words, here, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "True", done.stderr


def test_a_format_from_outside_is_registered_by_the_same_door(tmp_path, monkeypatch):
    monkeypatch.setitem(KNOWN, "mine", None)  # forgotten again afterwards
    register_export(replace(KNOWN["rotate"], name="mine"))
    export_benchmark(family(), "mine", tmp_path / "out")
    assert read_export(tmp_path / "out").to == "mine"
