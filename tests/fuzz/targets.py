"""What is fuzzed: for every reader and parser whole files to damage, and what must hold of what it accepts."""

import contextlib
import functools
import json
import random
import shutil
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from loginfer.benchmark import Benchmark, Recipe, load_benchmark, write_benchmark
from loginfer.benchmark.auditing import audit as auditing
from loginfer.benchmark.construction.pipeline import build
from loginfer.benchmark.export.export import export_benchmark, read_export
from loginfer.benchmark.folder.manifest import folder_sums
from loginfer.benchmark.recipe import read_recipe, write_recipe
from loginfer.documents import parse_document
from loginfer.errors import LogInferError
from loginfer.evaluation import evaluate
from loginfer.evaluation.resuming import dump_arrays, read_arrays
from loginfer.evaluation.runs import load_run, score_run, write_run
from loginfer.evaluation.score_files import export_queries, read_scores
from loginfer.kg import KnowledgeGraph, ReadOptions
from loginfer.kg.load import read_graph, write_graph
from loginfer.logic import parse_rule
from loginfer.logic.canonical import canonical
from loginfer.logic.dialects import dialects
from loginfer.logic.patterns import all_patterns, parse_pattern
from loginfer.logic.rule import ScoredRule
from loginfer.logic.rule_files import format_rules, parse_rules
from loginfer.systems.rules.texts import read_path_rules
from loginfer.tuning import collect
from tests.fuzz.damage import damaged, damaged_json
from tests.support.made_up_benchmarks import couples

FACTS = (
    ("ada", "likes", "bob"), ("bob", "likes", "ada"), ("bob", "knows", "cy d"), ("ada", "rdf:type", "Person"),
    ("http://a.b/c#d", "likes", "é€😀"), ("x,y", "knows", 'q"q'), ("ada", "knows", "O'Neil"), ("bob", "near", "ada"),
)  # fmt: skip
IRIS = tuple(tuple(f"http://a.b/{part}" for part in ("s1", "p", f"o{i}")) for i in range(4))
RULES = (
    "(x,likes,y), (y,likes,z), x != z -> (x,knows,z)", "x != y, (x,likes,y) -> (y,knows,x)",
    "(x,rdf:type,Fan), (x,likes,y) -> (x,supports,y)", "(x,a,y), not (y,b,x) -> (x,c,y)", "(x,a,bob) -> (x,b,bob)",
    "(x,<http://a.b/c>,y) -> (y,<hears of>,x)", '(x,a,"a b"@en) -> (x,b,"3"^^<http://a.b/t>)',
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """One reader.

    Parameters
    ----------
    name
        What it is called.
    make
        Writes whole files into an empty folder; returns those that are damaged, one at a time.
    read
        Reads what is in the folder, given with the damaged file. `LogInferError` says no; everything else is a fault.
    """

    name: str
    make: Callable[[Path], list[Path]]
    read: Callable[[Path, Path], None]


@dataclass
class Folder:
    """The files of a target, with one of them damaged at a time."""

    target: Target
    path: Path
    whole: dict[Path, bytes] = field(default_factory=dict)
    file: Path = Path()

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True)
        self.whole = {file: file.read_bytes() for file in self.target.make(self.path)}
        self.file = next(iter(self.whole))

    def put(self, seed: int) -> tuple[Path, bytes]:
        """Damage one file, by the seed, and return it; all others are whole again."""
        chance = random.Random(f"{self.target.name} {seed}")
        file = chance.choice(list(self.whole))
        content = self.whole[file]
        as_json = file.suffix == ".json" and chance.random() < 0.8
        changed = damaged_json(content, chance) if as_json else damaged(content, list(self.whole.values()), chance)
        self.write(file, changed)
        return file, changed

    def write(self, file: Path, content: bytes) -> None:
        """Give a file another content; sums in a manifest beside it are made to fit."""
        self.file.write_bytes(self.whole[self.file])
        self.file = file
        file.write_bytes(content)
        manifest = self.path / "manifest.json"
        if manifest.is_file() and file != manifest:
            sums = folder_sums(self.path)
            document = json.loads(self.whole.get(manifest) or manifest.read_bytes())
            for name in document["files"]:
                document["files"][name] = {"bytes": sums[name].bytes, "sha256": sums[name].sha256}
            manifest.write_text(json.dumps(document))

    def fault(self) -> BaseException | None:
        """Return what went wrong while the folder was read; None if it was accepted or refused."""
        try:
            with contextlib.suppress(LogInferError):
                self.target.read(self.path, self.file)
        except BaseException as error:
            return error
        return None


# -- graphs -----------------------------------------------------------------------------------------


def _graph_target(
    name: str, file: str, facts: tuple[tuple[str, ...], ...] = FACTS, text: bytes | None = None
) -> Target:
    def make(folder: Path) -> list[Path]:
        if text is None:
            write_graph(KnowledgeGraph.from_names(facts), folder / file)
        else:
            (folder / file).write_bytes(text)
        return [folder / file]

    return Target(f"kg-{name}", make, functools.partial(_read_graph, file=file))


def _read_graph(folder: Path, changed: Path, file: str) -> None:
    skip = "skip" if changed.stat().st_size % 2 else "fail"
    _check_graph(read_graph(folder / file, ReadOptions(on_error=skip)).graph)


def _check_graph(graph: KnowledgeGraph) -> None:
    """Check that an accepted graph is one: sorted triples over names that are texts, each once."""
    triples = graph.triples
    assert len(triples)
    assert (np.diff(graph.packed) > 0).all()
    assert triples.min() >= 0
    assert triples[:, 1].max() < len(graph.relations)
    assert triples[:, [0, 2]].max() < len(graph.entities)
    for vocabulary in (graph.entities, graph.relations):
        names = list(vocabulary)
        assert len(set(names)) == len(names)
        assert all(names)


def _openke(folder: Path) -> list[Path]:
    write_graph(KnowledgeGraph.from_names(FACTS), folder / "kg", format="openke")
    return sorted((folder / "kg").iterdir())


def _archive(ending: str) -> Callable[[Path], list[Path]]:
    def make(folder: Path) -> list[Path]:
        path = folder / f"kg.{ending}"
        texts = {f"{part}.txt": f"ada\tlikes\t{part}\n" * 3 for part in ("train", "valid", "test")}
        with tempfile.TemporaryDirectory() as scratch:
            for name, text in texts.items():
                (Path(scratch) / name).write_text(text)
            if ending == "zip":
                with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                    for name in texts:
                        archive.write(Path(scratch) / name, name)
            else:
                with tarfile.open(path, "w:gz" if ending.endswith("gz") else "w") as tar:
                    for name in texts:
                        tar.add(Path(scratch) / name, name)
        return [path]

    return make


# -- rules ------------------------------------------------------------------------------------------


def _rules_target(name: str) -> Target:
    def make(folder: Path) -> list[Path]:
        texts = []
        for i, text in enumerate(RULES):
            with contextlib.suppress(LogInferError):
                texts.append(format_rules([ScoredRule(parse_rule(text), 10 + i, 5, 0.5)], name))
        for i, text in enumerate(texts):
            (folder / f"{i}.rules").write_text(text)
        return sorted(folder.iterdir())

    return Target(f"rules-{name}", make, functools.partial(_read_rules, dialect=name))


def _read_rules(folder: Path, file: Path, dialect: str) -> None:
    text = file.read_bytes().decode("utf-8", "surrogateescape")
    found = parse_rules(text, dialect if len(text) % 4 else None, "skip")
    for again in ("arrow", dialect):
        try:
            written = format_rules(found.rules, again)
        except LogInferError:  # the dialect cannot say it
            continue
        # A variable that a rule has once may be written without its name.
        assert [*map(canonical, parse_rules(written, again).program)] == [*map(canonical, found.program)], again


def _patterns(folder: Path) -> list[Path]:
    (folder / "pattern").write_text(str(all_patterns()[-1]))
    (folder / "other").write_text("(x,R,y), (y,S,z), x != z -> (x,T,z)")
    return sorted(folder.iterdir())


def _read_patterns(folder: Path, file: Path) -> None:
    pattern = parse_pattern(file.read_bytes().decode("utf-8", "surrogateescape"))
    assert parse_pattern(str(pattern)) == pattern


def _path_rules(folder: Path) -> list[Path]:
    lines = [
        "10\t5\t0.5\tlikes(X,Y) <= knows(Y,A), near(A,X)",
        "3\t1\t0.33\tlikes(X,bob) <= near(X,A)",
        "9\t9\t1\tnear(X,Y) <= ",
    ]
    (folder / "rules").write_text("\n".join(lines))
    return [folder / "rules"]


def _read_path_rules(folder: Path, file: Path) -> None:
    read_path_rules(file, KnowledgeGraph.from_names(FACTS))


# -- benchmarks, runs, recipes ----------------------------------------------------------------------


@functools.cache
def _benchmark() -> Path:
    """A benchmark with most kinds of files."""
    folder = Path(tempfile.mkdtemp(prefix="loginfer-fuzz-"))
    write_benchmark(couples(12), folder / "benchmark")
    with contextlib.suppress(LogInferError):
        recipe = Recipe("couples", patterns=("symmetry",), k1=1, negatives=("nm",), min_new=1, flipped=0.1)
        write_benchmark(build(recipe, couples(30).graph), folder / "noisy")
    return folder / "benchmark"


@functools.cache
def _loaded() -> Benchmark:
    return load_benchmark(_benchmark())


def _copy_of(source: Callable[[], Path], *names: str) -> Callable[[Path], list[Path]]:
    def make(folder: Path) -> list[Path]:
        shutil.copytree(source(), folder, dirs_exist_ok=True)
        return [folder / name for name in names or sorted(path.name for path in folder.iterdir())]

    return make


def _read_benchmark(folder: Path, file: Path) -> None:
    with contextlib.suppress(LogInferError):
        load_benchmark(folder, verify=False)
    auditing.audit(folder)


@functools.cache
def _run() -> Path:
    folder = _benchmark().parent / "run"
    if not folder.exists():
        write_run(evaluate(_loaded(), "simpbl"), folder)
    return folder


def _read_run(folder: Path, file: Path) -> None:
    run = load_run(folder, verify=False)
    readers = (run.as_dict, run.to_frame, run.curve, run.timing, run.labelled, run.ranks, run.calibration)
    for read in (*readers, lambda: run.seconds):
        with contextlib.suppress(LogInferError):
            read()
    score_run(run, benchmark=_loaded() if file.stat().st_size % 2 else None)


def _tuning(folder: Path) -> list[Path]:
    settings = {"rate": 0.5, "kind": "odd", "whole": 3, "strict": True, "nothing": None}
    benchmarks = [
        {"name": "couples", "sha256": "0" * 64, "negatives": "pa"},
        {"name": "é", "sha256": "", "negatives": None},
    ]
    document = {
        "format": "loginfer-tuning",
        "format_version": 1,
        "system": "toy",
        "request": {"settings": {"epochs": 3}, "benchmarks": benchmarks},
        "graph": {"name": "né, the graph", "triples": 122, "sample": ["ada\tlikes\tbob", 'q"q\tknows\té']},
        "trials": [
            {"settings": settings, "worth": 0.75, "figures": [{"c_mrr": 0.5, "accuracy": 0.8}]},
            {"settings": settings, "worth": None, "figures": [], "error": "a score is no number"},
        ],
        "best": {"trial": 1, "worth": 0.75, "settings": settings, "how": "trial 1 of 2; on \x85 couples"},
    }  # fmt: skip
    (folder / "tuning.json").write_text(json.dumps(document))
    return [folder / "tuning.json"]


def _read_tuning(folder: Path, file: Path) -> None:
    tables = tomllib.loads(collect([folder]))
    assert set(tables) == {"graphs", "settings"}


def _scores(folder: Path) -> list[Path]:
    benchmark = _loaded()
    for name in ("scores.tsv", "scores.parquet"):
        export_queries(benchmark, "pa", folder / name)
    lines = (folder / "scores.tsv").read_text().splitlines()
    (folder / "scores.tsv").write_text("".join(f"{line}\t{i / 7}\n" for i, line in enumerate(lines)))
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "scores.parquet")
    pq.write_table(table.append_column("score", [np.arange(len(table)) / 7]), folder / "scores.parquet")
    return sorted(folder.iterdir())


def _read_scores(folder: Path, file: Path) -> None:
    scores = read_scores(file, _loaded(), "pa")
    parts = [part for split in (scores.valid, scores.test) for part in (split.positive, split.negative)]
    assert all(np.isfinite(part).all() for part in parts)


def _weights(folder: Path) -> list[Path]:
    with (folder / "weights.safetensors").open("wb") as stream:
        dump_arrays(stream, {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros(0, np.float32)})
    return [folder / "weights.safetensors"]


def _recipe(folder: Path) -> list[Path]:
    write_recipe(
        Recipe("lubm", patterns=("symmetry", "triangle"), negatives=("pa", "qg"), min_support=3), folder / "a.toml"
    )
    recipe = Recipe("lubm", rules=RULES[:2], negatives=("nm",), match=("all",), flipped=0.1, relations=("a", "b"))
    write_recipe(recipe, folder / "b.toml")
    for name in ("a", "b"):
        (folder / f"{name}.json").write_text(json.dumps(read_recipe(folder / f"{name}.toml").as_dict()))
    return sorted(folder.iterdir())


def _read_recipe(folder: Path, file: Path) -> None:
    if file.suffix == ".toml":
        recipe = read_recipe(file)
    else:
        values = parse_document(file.read_bytes(), dict[str, Any], where="recipe", what="recipe", hint="")
        recipe = Recipe.from_dict(values)
    assert Recipe.from_dict(recipe.as_dict()) == recipe


def _export(folder: Path) -> list[Path]:
    export_benchmark(_loaded(), "openke", folder / "export")
    return [path for path in sorted((folder / "export").rglob("*")) if path.is_file()]


NQUADS = b'<http://a.b/s> <http://a.b/p> "x\\u00e9"@en <http://a.b/g> .\n_:b1 <http://a.b/p> <http://a.b/o> .\n'
TURTLE = b'@prefix : <http://a.b/> .\n:s :p :o, "x"@en ; a :T .\n:s :q [ :p 3.5 ] .\n'
XML = (
    b'<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://a.b/">'
    b'<rdf:Description rdf:about="http://a.b/s"><e:p rdf:resource="http://a.b/o"/></rdf:Description></rdf:RDF>'
)
JSONLD = b'{"@context": {"p": "http://a.b/p"}, "@id": "http://a.b/s", "p": {"@id": "http://a.b/o"}}'

TARGETS = {
    target.name: target
    for target in (
        _graph_target("tsv", "kg.tsv"),
        _graph_target("csv", "kg.csv", text=b'subject,relation,object\nada,likes,"b, ""c"""\nbob,knows,ada\n'),
        _graph_target("ntriples", "kg.nt", IRIS),
        _graph_target("nquads", "kg.nq", text=NQUADS),
        _graph_target("turtle", "kg.ttl", text=TURTLE),
        _graph_target("trig", "kg.trig", text=b"@prefix : <http://a.b/> .\n:g { :s :p :o . }\n:s :p :o2 .\n"),
        _graph_target("rdfxml", "kg.rdf", text=XML),
        _graph_target("jsonld", "kg.jsonld", text=JSONLD),
        _graph_target("parquet", "kg.parquet"),
        _graph_target("gz", "kg.tsv.gz"),
        _graph_target("zst", "kg.nt.zst", IRIS),
        Target("kg-openke", _openke, functools.partial(_read_graph, file="kg")),
        *(
            Target(f"kg-{ending}", _archive(ending), functools.partial(_read_graph, file=f"kg.{ending}"))
            for ending in ("tar", "tar.gz", "zip")
        ),
        *(_rules_target(dialect.name) for dialect in dialects() if dialect.read_statement is not None),
        Target("rules-paths", _path_rules, _read_path_rules),
        Target("patterns", _patterns, _read_patterns),
        Target("recipe", _recipe, _read_recipe),
        Target("manifest", _copy_of(_benchmark, "manifest.json"), _read_benchmark),
        Target("benchmark", _copy_of(_benchmark), _read_benchmark),
        Target("run", _copy_of(_run), _read_run),
        Target("tuning", _tuning, _read_tuning),
        Target("scores", _scores, _read_scores),
        Target("weights", _weights, lambda folder, file: read_arrays(file) and None),
        Target("export", _export, lambda folder, file: read_export(folder / "export", verify=False) and None),
    )
}
