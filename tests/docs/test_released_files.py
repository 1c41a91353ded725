"""The page on the released files, on those files: its commands, and what it calls found and tested."""

import contextlib
import tarfile
from collections import Counter, defaultdict

import pytest
from tests.support.pages import ROOT, Reader, blocks, commands

from loginfer.benchmark import load_benchmark
from loginfer.benchmark.learned_shortcut import shortcut_results
from loginfer.evaluation import evaluate
from loginfer.kg import load_graph

pytestmark = pytest.mark.data

PAGE = ROOT / "docs" / "released-files.md"
FOLDERS = {"WN-sym-pa": "pa", "WN-hier-pa": "pa", "WN-trian-qg": "qg"}
# Files that commands about these folders write.
WRITTEN = ("mined.tsv", "hier.tsv")

# What each of the page's commands prints there.
PRINTED = {
    "cut -f 2 released/WN-sym-pa/test.txt": (),
    "cat released/WN-sym-pa/rules.txt": ("(x,_hypernym,y) -> (y,_hypernym,x)",),
    "loginfer audit released/WN-sym-pa": (
        "no rule derives 756 of 800 triples of P_test from P_train",
        "`train.txt` repeats 1,604 triples",
        "adjacent 100.0 %",
    ),
    "loginfer mine released/WN-sym-pa": ("37 rules",),
    "loginfer rules show mined.tsv": (
        "31,858 31,858 0.9998 _derivationally_related_form(y,x) → _derivationally_related_form(x,y)",
    ),
    "loginfer kg show released/WN-hier-pa/test.txt": ("relations 7 ", "triples 1,570 "),
    "loginfer mine released/WN-hier-pa": ("38 rules",),
    "loginfer rules show hier.tsv": ("_derivationally_related_form(x,y)",),
    "loginfer audit released/WN-trian-qg": (
        "P_test and N_train of `qg` share 112 triples",
        "P_valid and N_train of `qg` share 110 triples",
        "P_train and N_train of `qg` share 909 triples",
        "`train.txt` repeats 27 triples",
    ),
    "loginfer audit released/WN-hier-pa": ("`train.txt` repeats 543 triples", "adjacent 100.0 %"),
    "loginfer evaluate released/WN-sym-pa --system simpbl --threshold 0.5 --ranking": (" F1 30.1 ",),
    "loginfer evaluate released/WN-sym-pa --system simpbl --threshold 0.5 --set": (" F1 30.5 ",),
}


@pytest.fixture(scope="module")
def folder(data_folder, tmp_path_factory):
    """A folder with `released`, which has those of the authors' folders that are at hand."""
    made = tmp_path_factory.mktemp("page")
    for name in FOLDERS:
        archive = data_folder / "released" / f"LogInfer-{name}.tar.gz"
        if not archive.exists():
            pytest.skip("needs the paper's own folders")
        with tarfile.open(archive) as files:
            files.extractall(made, filter="data")
        (made / "released").mkdir(exist_ok=True)
        (made / f"LogInfer-{name}").rename(made / "released" / name)
    return made


def about_them():
    """The page's commands about these folders."""
    parts = (*(f"released/{name}" for name in FOLDERS), *WRITTEN)
    every = [command for block in blocks(PAGE) if block.language == "console" for command in commands(block)]
    return [command for command in every if any(part in command.text for part in parts)]


def test_the_commands_print_what_was_found(folder):
    reader, left = Reader(folder), dict(PRINTED)
    with contextlib.chdir(folder):
        for command in about_them():
            start = next(start for start in left if command.text.startswith(start))
            printed, code = reader.call(command)
            assert code == (1 if command.text.startswith("loginfer audit") else 0), printed
            flat = " ".join(printed.split())
            for wanted in left.pop(start):
                assert " ".join(wanted.split()) in flat, f"$ {command.text}\n{printed}"
    assert not left, "every expectation is about a command of the page"


def lines(path):
    return [tuple(line.split("\t")) for line in path.read_text().splitlines()]


def wordnet():
    graph = load_graph("wn18rr")
    return set(graph.names(graph.triples))


def test_the_conclusions_called_symmetry_are_one_relation_under_other_names(folder):
    test, train = (lines(folder / "released" / "WN-sym-pa" / f"{split}.txt") for split in ("test", "train"))
    related, kg, known = "_derivationally_related_form", wordnet(), set(train)
    heads = ("_hypernym", "_member_meronym", "_has_part", "_synset_domain_topic_of")
    assert Counter(r for _, r, _ in test) == dict.fromkeys(heads, 200)
    assert all({(s, related, o), (o, related, s)} & kg for s, _, o in test)
    assert sum((o, r, s) in known for s, r, o in test) == 44
    assert sum((o, r, s) in kg for s, r, o in test) == 1
    repeated = [triple for triple, count in Counter(train).items() if count > 1]
    assert sum(r == related for _, r, _ in repeated) == 1600
    assert kg <= known
    assert kg.issuperset(repeated)


def test_the_hierarchies_come_from_ten_relations_and_more_than_five_rules(folder):
    splits = [lines(folder / "released" / "WN-hier-pa" / f"{split}.txt") for split in ("train", "valid", "test")]
    assert list(map(len, splits)) == [106_089, 1_569, 1_570]
    assert len({r for _, r, _ in splits[2]}) == 7
    kg, between = wordnet(), defaultdict(set)
    for s, r, o in kg:
        between[s, o].add(r)
    bodies = [between[s, o] for split in splits for s, r, o in split if (s, r, o) not in kg]
    assert all(bodies)
    # A relation that alone connects a conclusion's ends is that of its rule's body.
    assert len(set().union(*(relations for relations in bodies if len(relations) == 1))) == 10


def test_shortcuts_reach_what_the_page_says(folder):
    found = {}
    for name, method in FOLDERS.items():
        results = shortcut_results(load_benchmark(folder / "released" / name), method)
        found[name] = tuple(round(100 * results[s].balanced_accuracy) for s in ("adjacent", "relation-name"))
    assert found == {"WN-sym-pa": (100, 67), "WN-hier-pa": (100, 69), "WN-trian-qg": (50, 75)}


@pytest.mark.parametrize(("name", "f1"), [("WN-hier-pa", (30.4, 31.8)), ("WN-trian-qg", (53.7, 56.3))])
def test_simpbl_has_the_f1_of_the_paper_where_it_looks_into_valid(folder, name, f1):
    for index, wanted in zip(("train", "train+valid"), f1, strict=True):
        made = evaluate(
            folder / "released" / name, "simpbl", settings={"index": index}, threshold=0.5, ranking=(), diagnosis=False
        )
        assert round(100 * made.metrics["f1"], 1) == wanted
