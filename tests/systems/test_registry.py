import dataclasses
import functools
import os
import sys
import tarfile
import textwrap
from pathlib import Path

import numpy as np
import pytest
from tests.support.made_up_benchmarks import family

from loginfer.benchmark import Benchmark, NegativeSet, Splits, load_benchmark
from loginfer.errors import InputError, LogInferError, UnknownNameError
from loginfer.kg import KnowledgeGraph, ReadOptions
from loginfer.kg.catalogue import open_graph
from loginfer.randomness import hash_order
from loginfer.systems import registry
from loginfer.systems.registry import find_system, graph_entry, known_graph, systems, tuned_for, tuned_settings


def test_every_named_system_can_be_loaded():
    for entry in systems():
        assert callable(entry.load().fit), entry.name


@pytest.mark.parametrize(
    "name",
    [
        "simpbl",
        "oracle",
        "transe",
        "rotate",
        "complex",
        "distmult",
        "boxe",
        "r-gcn",
        "anyburl",
        "rulen",
        "exact",
        "contrast",
    ],
)
def test_names_are_found_in_any_case(name):
    assert find_system(name.upper()).name == find_system(name).name == name


def test_r_gcn_is_also_found_without_its_hyphen():
    assert find_system("RGCN").name == "r-gcn"


def test_an_unknown_name_comes_with_the_nearest_ones():
    with pytest.raises(UnknownNameError, match="did you mean `rotate`"):
        find_system("rotat")


def test_what_theory_says_is_known_for_every_pattern_or_for_none():
    patterns = {"symmetry", "inversion", "hierarchy", "composition", "intersection", "triangle", "diamond"}
    for entry in systems():
        assert set(entry.captures) in (set(), patterns), entry.name
        assert set(entry.captures.values()) <= {"yes", "no", "not known"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with a module of this name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        monkeypatch.delitem(sys.modules, name, raising=False)

    return write


def test_a_class_is_found_in_a_module_of_the_current_folder(folder):
    folder("mine_found", "class Mine:\n    def fit(self, benchmark):\n        return self\n")
    path = list(sys.path)
    assert find_system("mine_found:Mine").load().__name__ == "Mine"
    assert sys.path[: len(path)] == path


def test_a_module_of_the_current_folder_may_import_another_one_late(folder):
    folder("mine_helper", "x = 3\n")
    folder(
        "mine_late", "class Mine:\n    def fit(self, _):\n        import mine_helper\n        return mine_helper.x\n"
    )
    assert find_system("mine_late:Mine").load()().fit(None) == 3


def test_the_line_of_a_syntax_error_is_told(folder):
    folder("mine_unreadable", "x = 1\ndef fit(:\n")
    with pytest.raises(InputError) as told:
        find_system("mine_unreadable:Mine").load()
    assert str(told.value.where).endswith("mine_unreadable.py:2")


def test_a_file_instead_of_a_module_is_explained(folder):
    folder("mine_file", "class Mine:\n    def fit(self, benchmark):\n        return self\n")
    with pytest.raises(InputError, match="write mine_file:Mine"):
        find_system("mine_file.py:Mine").load()


def test_a_module_that_does_not_exist_is_named(folder):
    with pytest.raises(InputError, match="no module `nowhere_at_all`"):
        find_system("nowhere_at_all:Mine").load()


def test_a_module_that_fails_is_reported_with_the_line(folder):
    folder("mine_fails", "x = 1\ny = x / 0\n")
    with pytest.raises(InputError, match=r"(?s)mine_fails\.py:2.*ZeroDivisionError"):
        find_system("mine_fails:Mine").load()


def test_a_module_that_needs_a_missing_one_says_which(folder):
    folder("mine_needs", "import a_library_nobody_has\n")
    with pytest.raises(InputError, match=r"(?s)mine_needs.*a_library_nobody_has"):
        find_system("mine_needs:Mine").load()


def test_a_class_that_does_not_exist_comes_with_those_that_do(folder):
    folder("mine_spelt", "class Mine:\n    pass\n")
    with pytest.raises(UnknownNameError, match="did you mean `Mine`"):
        find_system("mine_spelt:Mines").load()


def test_a_class_without_fit_is_no_system(folder):
    folder("mine_not", "class Mine:\n    pass\nnumber = 3\n")
    for name in ("Mine", "number"):
        with pytest.raises(LogInferError, match="not a system"):
            find_system(f"mine_not:{name}").load()


class _Point:
    def __init__(self, name, value):
        self.name, self.value = name, value


def test_entry_points_add_systems_but_never_replace_built_in_ones(monkeypatch):
    points = [_Point("mine", "mine_pkg:Mine"), _Point("TransE", "mine_pkg:Other")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "loginfer.systems" else [])
    assert find_system("MINE").target == "mine_pkg:Mine"
    assert find_system("transe").target.startswith("loginfer.")


# -- settings that were tuned for a graph -------------------------------------------------------------


def split(graph, name="split"):
    """Return a standard split of a graph, without a manifest."""
    order = hash_order(graph.packed, 7)
    train, valid, test = (np.sort(rows) for rows in np.split(order, [len(order) * 9 // 10, len(order) * 19 // 20]))
    parts = Splits(*(graph.triples[rows] for rows in (train, valid, test)))
    return Benchmark(name, graph.with_triples(parts.train), parts, {})


@functools.cache
def lubm(name="lubm", **options):
    return open_graph(name, ReadOptions(**options)).graph


def test_a_graph_is_recognised_by_its_triples_whatever_it_is_called():
    assert known_graph(split(lubm(), "nobody-knows")) == "lubm"
    assert known_graph(split(lubm(literals="drop"))) == "lubm"
    transe = find_system("transe")
    assert tuned_settings(transe, split(lubm())) == registry.tuned_graphs(transe)["lubm"]


def test_a_standard_split_has_settings_of_its_own(monkeypatch):
    graph = KnowledgeGraph.from_names([(f"e{i}", f"r{i % 3}", f"e{i * i % 200}") for i in range(400)])
    alone = split(graph)
    labelled = dataclasses.replace(alone, negatives={"rc": NegativeSet("rc", alone.positives)})
    transe, tuned = find_system("transe"), {"mine": {"epochs": 1}, "mine split": {"epochs": 2}}
    known = {"graphs": {"mine": graph_entry(alone)}, "settings": {"transe": tuned}}
    monkeypatch.setattr(registry, "shipped", lambda name: known)
    for benchmark, name in ((alone, "mine split"), (labelled, "mine")):
        assert (tuned_for(transe, benchmark), tuned_settings(transe, benchmark)) == (name, tuned[name])
    del tuned["mine split"]
    assert tuned_for(transe, alone) == "mine"
    tuned["standard splits"] = {"epochs": 3}
    assert (tuned_for(transe, alone), tuned_for(transe, labelled)) == ("standard splits", "mine")
    del tuned["standard splits"]
    del tuned["mine"]
    assert tuned_for(transe, alone) is None


def test_conclusions_among_the_training_triples_do_not_hide_a_graph():
    graph = lubm()
    subjects = np.roll(graph.triples[:20_000], 1, axis=0)[:, 0]
    added = np.column_stack([subjects, graph.triples[:20_000, 1:]])
    assert known_graph(split(graph.with_more(added))) == "lubm"


def test_other_graphs_of_the_same_names_are_not_taken_for_it():
    graph = lubm()
    assert known_graph(split(lubm("lubm(1,5)"))) is None
    part = graph.triples[hash_order(graph.packed, 3, len(graph) // 3)]
    assert known_graph(split(graph.with_triples(part))) is None
    wider = graph.with_names(relations=["inverse"])
    inverse = wider.triples[:, ::-1].copy()
    inverse[:, 1] = wider.relation_id("inverse")
    assert known_graph(split(wider.with_more(inverse))) is None
    assert known_graph(family()) is None
    assert tuned_settings(find_system("transe"), family()) == {}


def test_names_alone_do_not_make_a_graph():
    graph = lubm()
    shuffled = np.column_stack([graph.triples[:, :2], np.roll(graph.triples[:, 2], 1)])
    assert known_graph(split(graph.with_triples(shuffled))) is None


def test_a_new_graph_can_be_recognised_by_its_entry(monkeypatch):
    facts = [(f"e{i}", f"r{i % 3}", f"e{i * i % 200}") for i in range(400)]
    graph = KnowledgeGraph.from_names(facts)
    entry = graph_entry(split(graph, "mine"))
    assert (entry["name"], entry["triples"], len(entry["sample"])) == ("mine", 400, 32)
    monkeypatch.setattr(registry, "shipped", lambda name: {"graphs": {"mine": entry}})
    assert known_graph(split(graph, "other")) == "mine"
    assert graph_entry(split(graph, "other")) == entry


@pytest.mark.parametrize("name", ["LogInfer-WN-trian-qg", "LogInfer-WN-hier-pa"])
def test_the_folders_of_the_authors_are_recognised(name, tmp_path):
    archive = Path(os.environ.get("LOGINFER_DATA", "")) / "released" / f"{name}.tar.gz"
    if not archive.is_file():
        pytest.skip(f"{archive.name} is in no folder of LOGINFER_DATA")
    with tarfile.open(archive) as stream:
        stream.extractall(tmp_path, filter="data")
    assert known_graph(load_benchmark(tmp_path / name)) == "wn18rr"
