"""What the guides take for granted, made small, so that their commands run in seconds and without downloads.

A folder comes before a name of the catalogue, so a folder `wn18rr` beside the commands stands in for WN18RR.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import numpy as np

from tests.support.pages import ROOT, Command, Reader, blocks, call_ours, commands

WORDNET = (
    "_hypernym", "_derivationally_related_form", "_member_meronym", "_has_part", "_synset_domain_topic_of",
    "_instance_hypernym", "_also_see", "_verb_group", "_member_of_domain_region",
    "_member_of_domain_usage", "_similar_to",
)  # fmt: skip
FREEBASE = tuple(f"/domain{i}/relation{i}" for i in range(12))

# Which benchmarks a page takes for granted; all are the same small one.
BENCHMARKS = {"evaluation.md": ("wn-trian",), "mining.md": ("wn-trian",), "entailment.md": ("LogInfer-FB-trian-qg",)}

# Commands that are made smaller: they begin with the first words, and get the last ones as well.
SMALLER = (
    ("suite build --out", ("--only", "LUBM-no-type-rb")),
    ("build --recipe", ("--k1", "3", "--k2", "50")),
    ("mine LogInfer-FB-trian-qg --miner anyburl", ("--steps", "2")),
    ("evaluate wn-trian --system rotate", ("--set", "epochs=2")),
)

# Kinds of commands that are never run, and why.
NEVER_RUN = {
    "make ": "the Makefile has the target; what it does is tested elsewhere",
    "git clone": "needs the network",
    "pip install": "would change the environment",
    "export ": "says where data or the program is",
    "loginfer reproduce": "takes hours",
}

# Commands of some page that are not run, only parsed, and why.
NOT_RUN = {
    "loginfer suite build --only 'WN-*'": "takes a minute",
    "python -m perf": "takes minutes",
    ".venv/bin/python -m perf": "takes minutes",
    "python scripts/shortcut_table.py": "takes an hour, and needs the data",
    "loginfer mine wn-trian --miner external --jar": "needs Java and AnyBURL",
    "loginfer rules rank company.parquet --pattern composition --engine spark": "needs a Spark cluster",
    "loginfer kg fetch": "needs the archive or the network; run where LOGINFER_DATA is",
    "loginfer explain wn-trian": "is about a triple of WN18RR; run where LOGINFER_DATA is",
}

_AMIE = "Rule\tHead Coverage\n?a  _hypernym  ?b   => ?a  _also_see  ?b\t0.5\n"


def write_graph(folder: Path, relations: tuple[str, ...], seed: int) -> None:
    """Write a small dense graph in the layout of the archives, some relations far more frequent."""
    random = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, len(relations) + 1)
    size = 1500
    triples = np.column_stack(
        [
            random.integers(0, 80, size),
            random.choice(len(relations), size, p=weights / weights.sum()),
            random.integers(0, 80, size),
        ]
    )
    lines = [f"{s:08d}\t{relations[r]}\t{o:08d}\n" for s, r, o in np.unique(triples, axis=0).tolist()]
    folder.mkdir(parents=True)
    for split, part in (("test", lines[::10]), ("valid", lines[1::10])):
        (folder / f"{split}.txt").write_text("".join(part))
    (folder / "train.txt").write_text("".join(line for i, line in enumerate(lines) if i % 10 > 1))


def write_benchmark(folder: Path, graph: Path) -> None:
    words = ["build", graph, "--pattern", "triangle", "--negatives", "qg", "--k1", 5, "--k2", 100]
    printed, code = call_ours([str(word) for word in [*words, "--out", folder]])
    assert code == 0, printed


def write_company(folder: Path) -> None:
    """Do the first steps of the tutorial, whose graph and benchmark the how-to pages go on with."""
    tutorial = ROOT / "docs" / "tutorial.md"
    reader = Reader(folder)
    with contextlib.chdir(folder):
        for block in blocks(tutorial):
            if block.title == "make_graph.py":
                reader.do(block)
            elif block.language == "console":
                for command in commands(block):
                    if command.text.startswith(("python make_graph.py", "loginfer build")):
                        reader.run(command)
    assert (folder / "bench" / "company").is_dir()


def prepare(folder: Path, page: Path, stock: Path) -> None:
    """Put into a page's folder what it takes for granted; `stock` holds what pages have in common."""
    if page.parent.name == "howto":
        shutil.copytree(stock / "company", folder, dirs_exist_ok=True)
    else:
        for name in ("wn18rr", "fb15k-237"):
            shutil.copytree(stock / name, folder / name)
    for name in BENCHMARKS.get(page.name, ()):
        shutil.copytree(stock / "benchmark", folder / name)
    if page.name in ("released-files.md", "choose-a-model.md"):
        shutil.copytree(ROOT / "examples", folder / "examples")
    own = (ROOT / "examples" / "own_system.py").read_text()
    if page.name == "evaluation.md":
        (folder / "own_system.py").write_text(own)
    if page.name == "mining.md":
        (folder / "amie.tsv").write_text(_AMIE)


def before(command: Command, folder: Path) -> None:
    """Score exported queries where a page leaves that to the reader."""
    queries, scores = folder / "queries.tsv", folder / "scores.tsv"
    if "--scores scores.tsv" in command.text and queries.exists() and not scores.exists():
        lines = queries.read_text().splitlines()
        scores.write_text("".join(f"{line}\t{len(line) % 7}\n" for line in lines))


def not_run(command: Command) -> str | None:
    """Return why a command is not run; None if it is."""
    reasons = (NEVER_RUN | NOT_RUN).items()
    return next((why for start, why in reasons if command.text.startswith(start)), None)


def smaller(words: list[str]) -> list[str]:
    """Return a command of ours with what makes it small."""
    text = " ".join(words)
    extra = [word for start, more in SMALLER if text.startswith(start) for word in more]
    return [*words, *extra]
