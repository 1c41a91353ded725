"""Record what the program writes, and compare it later: a pin for changes that must not change behaviour.

    LOGINFER_DATA=DIR python scripts/pin.py record before.json
    LOGINFER_DATA=DIR python scripts/pin.py compare before.json --only 'variants,suite-*'

Every case is one command line, run as `python -m loginfer …` in a work folder; nothing of the package is
imported. What it prints, its exit code and all files that it writes are kept as `{group: {item: value}}`,
with items such as `wn-noise train.txt`. A value has the SHA-256 of the bytes and enough of the content to say
what differs: small JSON documents as they are, sums of the parts of large ones and of a Parquet's columns.

What differs from run to run, or must change when code moves, is left out by `VOLATILE` and `NOISE`, and
nothing else. A case whose command line names the folder of another, `group/case`, has that one run before it.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Pins = dict[str, dict[str, Any]]

# Keys that are left out of JSON documents, at any depth: (pattern of `group/case item`, keys, why).
VOLATILE: list[tuple[str, tuple[str, ...], str]] = [
    ("* *timing.json", ("seconds", "cpu_seconds", "peak_memory_bytes"), "time and memory of this run"),
    ("* *timing.json", ("python", "platform", "machine", "cores", "versions"), "what it ran on"),
    ("mine/* stdout", ("seconds",), "how long mining took"),
    ("evaluate/systems-* stdout", ("class",), "the module of a system's class, which may move"),
    ("report/reproduced results/*", ("cpu_seconds", "seconds", "peak_memory_bytes"), "what a cell took"),
]
# What is left out of text: the first run of a kernel; how long cells of `reproduce` took, and what is left.
NOISE = re.compile(r".*compiling kernels for this machine.*\n|(?<=: done) in \d.*|(?<=runs took ).*(?=CPU)")
# JSON up to so many characters is kept as it is; a larger one is taken apart, down to so many levels.
SMALL, LEVELS = 1500, 3

# -- the cases ----------------------------------------------------------------------------------

BARE = "simpbl oracle relation-name subject-popularity object-popularity adjacent other-relation exact"
EMBEDDING = "--set epochs=2 --set dimension=16"
BENCH = {"wn": "suite-sound-wn/trian/LogInfer-WN-trian-qg"}
BENCH |= {"lubm": "suite-sound-lubm/all/LogInfer-LUBM-all-qg"}
TEXTS: dict[str, Any] = {"LECTURER": "http://www.Department0.University0.edu/Lecturer0 type Faculty", "bench": BENCH}
TEXTS |= {"CHAIN": "wn18rr '(x,_hypernym,y), (y,_hypernym,z) -> (x,_hypernym,z)'"}
VARIANT = {
    "depth": "-p composition -n qg -n pa --depth 2",
    "depth-hierarchy": "-p hierarchy -p inversion -n pa --depth 3",
    "flipped": "-p triangle -n qg --flipped 0.1",
    "missing": "-p triangle -n qg --missing 0.05",
    "noise": "-p composition -n pa --flipped 0.1 --missing 0.1 --seed 3",
    "inductive": "-p composition -n pa --inductive",
    "inductive-share": "-p triangle -n qg --inductive --inductive-share 0.3",
    "negation": "-p nonmonotonic-hierarchy -n qg -n pa",
    "random": "-p composition -n pa --select random --seed 1",
    "interval": "-p composition -n pa --select interval --select-by support --interval 50:5000",
    "confidence": "-p composition -n pa --select interval --select-by confidence --interval 0:0.5",
    "overlap": "-p composition -n qg --select interval --select-by overlap --interval 0:0.9",
    "best": "-p composition -n rb --head best",
    "materialised": "-p composition -n rb -n pa -n qg -n rc --materialised",
    "mixture": "-p symmetry -p inversion -p triangle -n rb -n pa -n qg -n rc --seed 7 --ratio 6:2:2",
    "paper": "-p triangle -p diamond -n rb -n pa -n qg --protocol paper --max-support 2000",
    "own": "-p '(x,_R,y), (z,_S,y), x != z -> (x,_T,z)' -n qg --min-support 20 --max-shortcut 0.6",
    "near-miss": "-p composition -n nm",
    "near-miss-twins": "-p triangle -n nm --match all",
}
# Names, each with its part of a command line; in a text, words that stand for themselves.
TABLES: dict[str, dict[str, str] | str] = {
    "bench": BENCH,
    "graph": {"wn": "wn18rr", "lubm": "lubm"},
    "any": {"wn": "wn18rr", "lubm": "lubm", "fb": "fb15k-237"},
    "small": {"wn": "wn18rr --k1 4 --k2 200", "lubm": "lubm --k1 4 --k2 100"},
    "variant": VARIANT,
    "given": {"depth": "--depth 3 -n qg -n pa", "noise": "--flipped 0.1 --missing 0.1 -n qg"},
    "near": "WN-sym WN-inver WN-hier WN-comp WN-trian WN-diam LUBM-all LUBM-no-type",
    "protocol": "sound paper",
    "system": {
        **{name: f"-s {name}" for name in BARE.split()},
        **{name: f"-s {name} {EMBEDDING}" for name in ("transe", "rotate", "complex", "boxe")},
        "distmult": f"-s distmult {EMBEDDING} --seeds 2",
        "contrast": "-s contrast",
        "r-gcn": "-s r-gcn --set steps=4 --set validate_every=2 --set dimension=16",
        "anyburl": "-s anyburl --set steps=5",
        "rulen": "-s rulen --set s1=100 --set s2=100",
        "external": "-s external --set rules=mine/exact-{bench}/rules.tsv",
        "pykeen": "-s pykeen:DistMult --set embedding_dim=8 --set epochs=2",
        "scores": "--scores evaluate/queries-{bench}/scores.tsv --name scored",
    },
    "setting": {
        "noisy-or": "-s anyburl --set steps=5 --set aggregation=noisy-or --seed 1 --no-weights",
        "external": "-s external --set rules=mine/contrast-{bench}/rules.tsv --ranking given",
        "workers": f"-s rotate {EMBEDDING} --workers 2",
        "partitions": f"-s complex {EMBEDDING} --set partitions=4 --set storage=mapped --workers 2",
        "explicit": f"-s transe {EMBEDDING} --mode explicit --threshold relation --criterion f1 --no-tuned",
        "random": f"-s boxe {EMBEDDING} --mode random --ranking unfiltered,given --tie pessimistic",
    },
    "scored": "rotate anyburl distmult",
    "shown": "transe r-gcn anyburl contrast external pykeen:DistMult",
    "miner": {
        "exact": "--miner exact",
        "exact-arrow": "--miner exact --max-length 1 --min-support 5 --to arrow",
        "anyburl": "--miner anyburl --steps 10",
        "rulen": "--miner rulen --set s1=200 --set s2=200",
        "contrast": "--miner contrast",
        "external": "--miner external --rules mine/anyburl-{bench}/rules.tsv",
    },
    "mined": "exact anyburl contrast",
    "pattern": "symmetry inversion hierarchy composition intersection triangle diamond cup fork shier nmhier",
    "whole": "inversion composition triangle diamond",
    "engine": "native duckdb",
    "dialect": "arrow rdfox nemo anyburl amie datalog",
    "language": "arrow rdfox nemo anyburl amie datalog sparql sql",
    "format": "tsv nt ttl parquet nt.gz",
    "duckdb": {name: VARIANT[name] for name in ("depth", "negation", "noise", "mixture", "paper")},
    "exported": {**BENCH, "inductive": "variants/wn-inductive", "noise": "variants/lubm-noise"},
    "export": "pykeen libkge openke rotate rdf parquet huggingface anyburl",
    "table": "md latex csv",
}
COMMANDS = """build audit explain export evaluate score mine reproduce report kg rules suite systems kg-list
kg-show kg-convert kg-fetch kg-generate rules-rank rules-apply rules-explain rules-convert rules-patterns
rules-show rules-analyse suite-list suite-build systems-list systems-show"""
SUITE = {
    "wn": "WN-sym:rb,pa WN-inver:rb,pa WN-hier:rb,pa WN-comp:rb,pa WN-trian:rb,pa,qg WN-diam:rb,pa,qg",
    "lubm": "LUBM-all:rb,pa,qg LUBM-no-type:rb,pa,qg",
    "fb": "FB-sym:rb,pa,rc FB-inver:rb,pa FB-hier:rb,pa FB-comp:rb,pa FB-inter:rb,pa,qg,rc FB-trian:rb,pa,qg "
    "FB-diam:rb,pa,qg",
}

# A row has a group, the name of a case, and its command line. `{word}` in group or name stands for each name
# of that table in turn, `{WORD}` in the line for what the table has there; `@` is the folder of the case.
ROWS = """
variants | {small}-{variant} | build {SMALL} {VARIANT} --out @ --json
variants | {small}-{duckdb}-duckdb | build {SMALL} {DUCKDB} --engine duckdb --out @ --json
variants | lubm-rules-{given} | build lubm --rules lubm-107 --k2 50 {GIVEN} --out @ --json
near-misses | {near} | suite build --only {near}-nm --only {near}-nmm --jobs 1 --out @ --json
evaluate | queries-{bench} | evaluate {BENCH} --export-queries @/queries.tsv --json
evaluate | {bench}-{system} | evaluate {BENCH} {SYSTEM} --out @ --json
evaluate | score-{bench}-{scored} | score evaluate/{bench}-{scored} -b {BENCH} --tie optimistic --json
evaluate | systems-list | systems list --json
evaluate | systems-{shown} | systems show {shown} --json
settings | {bench}-{setting} | evaluate {BENCH} {SETTING} --out @ --json
mine | {miner}-{bench} | mine {BENCH} {MINER} --out @/rules.tsv --json
mine | graph-exact | mine wn18rr --miner exact --max-length 3 --set budget=2000000 --out @/rules.tsv --json
mine | graph-anyburl | mine wn18rr --miner anyburl --steps 10 --seed 2 --out @/rules.tsv --json
mine | graph-rulen | mine lubm --miner rulen --set order=file --out @/rules.tsv --json
rules | rank-{graph}-{pattern} | rules rank {GRAPH} -p {pattern} --top 50 --json
rules | all-{graph}-{whole}-{engine} | rules rank {GRAPH} -p {whole} --engine {engine} --all --out @/all.tsv
rules | show-{bench}-{mined} | rules show mine/{mined}-{bench}/rules.tsv --top 100 --json
rules | short-{bench}-{mined} | rules show mine/{mined}-{bench}/rules.tsv --sort correct --length 2 --short
rules | analyse-{bench}-{mined} | rules analyse {BENCH} --rules mine/{mined}-{bench}/rules.tsv --json
rules | analyse-{bench}-run | rules analyse {BENCH} --rules evaluate/{bench}-rulen
rules | apply-lubm-{engine} | rules apply lubm lubm-107 --engine {engine} --out @/new.nt --json
rules | apply-wn-{engine} | rules apply {CHAIN} --include-graph --engine {engine} --out @/new.nt --json
rules | closure-lubm-{engine} | rules apply lubm lubm-107 --closure --engine {engine} --out @/new.nt
rules | closure-wn-{engine} | rules apply {CHAIN} --closure --engine {engine} --out @/new.nt
rules | explain | rules explain lubm lubm-107 {LECTURER} --closure --json
rules | patterns | rules patterns
rules | write-{language} | rules convert lubm-19 --to {language} --out @/rules.txt --json
rules | read-{dialect} | rules convert rules/write-{dialect}/rules.txt --from {dialect} --to arrow --json
rules | list-{dialect} | rules show rules/write-{dialect}/rules.txt --from {dialect} --json
rules | apply-{dialect} | rules apply lubm rules/write-{dialect}/rules.txt --out @/new.tsv --json
kg | list | kg list --json
kg | show-{any} | kg show {ANY} --top 300 --json
kg | {any}-{format} | kg convert {ANY} @/graph.{format} --json
kg | {any}-{format}-back | kg convert kg/{any}-{format}/graph.{format} @/graph.tsv --json
kg | {any}-openke | kg convert {ANY} @/graph --to openke --json
kg | {any}-openke-back | kg convert kg/{any}-openke/graph @/graph.tsv --json
kg | generated | kg generate lubm --universities 1 --start 2 --seed 5 --out @/graph.nt --json
export | {exported}-{export} | export {EXPORTED} --to {export} --out @ --json
report | site | report evaluate {bench[wn]} {bench[lubm]} --out @ --title Pinned --json
report | {table} | report evaluate --to {table} --metric roc_auc --metric c_mrr --out @/table.{table} --json
report | comparison | report --compare evaluate/wn-rotate evaluate/wn-contrast {bench[wn]} --out @ --json
report | plan | reproduce --plan --jobs 1 --seeds 2 --out @ --json
report | reproduced | reproduce --tables lubm,sizes --systems simpbl,oracle,exact --only LUBM-all-*
 --seeds 1 --jobs 1 --out @ --json
help | loginfer | --help
help | version | --version
help | {command} | {COMMAND} --help
audits | explain | explain {bench[wn]} 00003316 _instance_hypernym 00836788 --json
audits | {audited} | audit {AUDITED} --json
suite-{protocol}-lubm | {lubm} | suite build {LUBM} --protocol {protocol} --jobs 1 --out @ --json
suite-{protocol}-wn | {wn} | suite build {WN} --protocol {protocol} --jobs 1 --out @ --json
suite-{protocol}-fb | {fb} | suite build {FB} --protocol {protocol} --jobs 1 --out @ --json
"""


def tables() -> dict[str, dict[str, str]]:
    """Return all tables, with those of the suite and of what is audited."""
    found = {key: {w: w for w in t.split()} if isinstance(t, str) else t for key, t in TABLES.items()}
    found["command"] = {word: word.replace("-", " ") for word in COMMANDS.split()}
    folders = [f"variants/{at}-{name}" for at in found["small"] for name in found["variant"]]
    folders += [f"variants/lubm-rules-{name}" for name in found["given"]]
    folders += [f"near-misses/{b}/LogInfer-{b}-{kind}" for b in found["near"] for kind in ("nm", "nmm")]
    for at, listed in SUITE.items():
        found[at] = {}
        for name, methods in (entry.split(":") for entry in listed.split()):
            short, of = name.partition("-")[2], [f"{name}-{method}" for method in methods.split(",")]
            found[at][short] = " ".join(f"--only {benchmark}" for benchmark in of)
            for protocol in found["protocol"] if at != "fb" else ():
                folders += [f"suite-{protocol}-{at}/{short}/LogInfer-{benchmark}" for benchmark in of]
    found["audited"] = {folder.replace("/LogInfer-", ":").replace("/", ":"): folder for folder in folders}
    return found


def all_cases() -> dict[str, list[str]]:
    """Return the arguments of every case by its folder, `group/name`, in the order of the rows."""
    found, known = dict[str, list[str]](), tables()
    for row in ROWS.replace("\n ", " ").strip().splitlines():
        group, name, line = row.split(" | ")
        axes = re.findall(r"\{(\w+)\}", group + name)
        for names in itertools.product(*(known[axis] for axis in axes)):
            values = dict(zip(axes, names, strict=True))
            values |= {axis.upper(): known[axis][name] for axis, name in values.items()}
            key = f"{group}/{name}".format(**values)
            full = line.format(**{**TEXTS, **values}).format(**values)
            found[key] = [part.replace("@", key) for part in shlex.split(full)]
    return found


def needs(key: str, cases: dict[str, list[str]]) -> list[str]:
    """Return the cases whose folders a case's command line names; a group's name stands for all of it."""
    found = []
    for argument in cases[key][1:]:
        path = "/".join(argument.rpartition("=")[2].split("/")[:2])
        found += [other for other in cases if path in (other, other.partition("/")[0])]
    return [other for other in dict.fromkeys(found) if other != key]


# -- running ------------------------------------------------------------------------------------


class Runner:
    """Runs cases, each once, several at a time, those that a case needs before it."""

    def __init__(self, work: Path, source: Path, jobs: int, cases: dict[str, list[str]]):
        self.work, self.source, self.cases = work, source, cases
        self.data = Path(os.environ["LOGINFER_DATA"]).absolute()
        self.pool, self._futures = ThreadPoolExecutor(jobs), dict[str, Future[dict[str, Any]]]()

    def start(self, key: str) -> Future[dict[str, Any]]:
        """Have a case run, and what it needs, which stands before it in the queue: none waits forever."""
        if key not in self._futures:
            before = [self.start(needed) for needed in needs(key, self.cases)]
            self._futures[key] = self.pool.submit(self._run, key, before)
        return self._futures[key]

    def _run(self, key: str, before: list[Future[dict[str, Any]]]) -> dict[str, Any]:
        for future in before:
            future.result()
        surroundings = {**os.environ, "PYTHONPATH": str(self.source), "LOGINFER_DATA": str(self.data)}
        surroundings |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-m", "loginfer", *self.cases[key]]
        done = subprocess.run(  # noqa: S603 - our own table of command lines
            command, cwd=self.work, env=surroundings, capture_output=True, text=True, timeout=3600
        )
        allowed = (0, 1) if key.startswith("audits/") else (0,)  # an audit that finds something exits with 1
        if done.returncode not in allowed or "Traceback (most" in done.stderr:
            said = "\n".join((done.stderr or done.stdout).splitlines()[-12:])
            raise RuntimeError(f"{shlex.join(self.cases[key])}\nexit code {done.returncode}\n{said}")
        values: dict[str, Any] = {"exit": done.returncode}
        for name, text in {"stdout": done.stdout, "stderr": done.stderr}.items():
            values[name] = self._printed(text, f"{key} {name}")
        folder = self.work / key
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = path.relative_to(folder).as_posix()
            values[name] = written(path, f"{key} {name}")
            settle(path)
        return values

    def _printed(self, text: str, item: str) -> Any:
        for place, name in ((self.work, "WORK"), (self.source, "SOURCE"), (self.data, "DATA")):
            text = text.replace(str(place), name)
        lines = [line.rstrip() for line in NOISE.sub("", text).splitlines()]
        whole = "\n".join(lines).encode()
        if lines and lines[0] in ("{", "["):
            return document(whole, item)
        return lines if len(lines) <= 200 else {"lines": len(lines), "sha256": sha256(whole)}


def settle(path: Path) -> None:
    """Set all times of a run to 1, as reports show them, and write scores beside queries."""
    if path.name == "timing.json":
        about = json.loads(path.read_text())
        about |= {"seconds": dict.fromkeys(about["seconds"], 1.0), "cpu_seconds": 1.0, "peak_memory_bytes": 1}
        path.write_text(json.dumps(about))
    if path.name == "queries.tsv":
        scored = [b"%s\t%d\n" % (line, zlib.crc32(line) % 1000) for line in path.read_bytes().splitlines()]
        path.with_name("scores.tsv").write_bytes(b"".join(scored))


# -- values -------------------------------------------------------------------------------------


def sha256(content: bytes) -> str:
    """Return the sum of some bytes."""
    return hashlib.sha256(content).hexdigest()


def written(path: Path, item: str) -> Any:
    """Return what is kept of a file."""
    if (content := path.read_bytes()) and path.suffix == ".json":
        return document(content, item)
    if path.name == "REPORT.md":
        content = NOISE.sub("", content.decode()).encode()
    return {"sha256": sha256(content), **columns(path)} if path.suffix == ".parquet" else sha256(content)


def document(content: bytes, item: str) -> Any:
    """Return what is kept of a JSON document: the sum of its bytes, and its content as far as it is small."""
    whole = json.loads(content)
    rest = without(whole, {key for pattern, keys, _ in VOLATILE if fnmatch(item, pattern) for key in keys})
    if rest != whole:
        content = json.dumps(rest, ensure_ascii=False).encode()
    return {"sha256": sha256(content), "json": parts(rest, LEVELS)}


def without(value: Any, keys: set[str]) -> Any:
    """Return JSON without some keys, at any depth."""
    if isinstance(value, dict):
        return {key: without(part, keys) for key, part in value.items() if key not in keys}
    return [without(part, keys) for part in value] if isinstance(value, list) else value


def parts(value: Any, levels: int) -> Any:
    """Return JSON itself if it is small, else the same of each part of an object, else a sum."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= SMALL:
        return value
    if isinstance(value, dict) and levels:
        return {key: parts(part, levels - 1) for key, part in value.items()}
    return f"sha256 {sha256(text.encode())} of {len(value)} {type(value).__name__}"


def columns(path: Path) -> dict[str, Any]:
    """Return the number of rows of a Parquet file, the sum of its schema, and of each column's content."""
    table, sums = pq.read_table(path).combine_chunks(), {}
    for name in table.column_names:
        column, sink = table.select([name]).replace_schema_metadata(None), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, column.schema) as stream:
            stream.write_table(column)
        sums[name] = sha256(sink.getvalue().to_pybytes())
    return {"rows": table.num_rows, "schema": sha256(table.schema.serialize().to_pybytes()), "columns": sums}


def differences(before: Any, after: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield where two values differ: the keys that lead there, and the two values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from differences(before.get(key, "(none)"), after.get(key, "(none)"), f"{place}.{key}")
    elif isinstance(before, list) and isinstance(after, list):
        one, two = ([json.dumps(part, ensure_ascii=False) for part in side] for side in (before, after))
        changed = list(difflib.unified_diff(one, two, n=0, lineterm=""))[2:]
        for line in [line for line in changed if line[0] in "-+"][:20]:
            yield place, *((line[1:], "") if line[0] == "-" else ("", line[1:]))
    elif before != after:
        yield place, before, after


# -- the command line ---------------------------------------------------------------------------


def handle(group: str, runner: Runner, pins: Pins, path: Path, recording: bool) -> int:
    """Record or compare a group, and return how many items differ, or cases failed."""
    started, wrong, items, known = time.monotonic(), 0, 0, pins.setdefault(group, {})
    names = [name for of, name in (key.split("/") for key in runner.cases) if of == group]
    names = [name for name in names if not recording or f"{name} exit" not in known]
    for name, future in [(name, runner.start(f"{group}/{name}")) for name in names]:
        try:
            after = {f"{name} {item}": value for item, value in future.result().items()}
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            wrong += 1
            print(f"{group}\t{name}\tFAILED: {error}", flush=True)
            continue
        items += len(after)
        if recording:
            known |= after
            part = path.with_name(f".{path.name}.part")
            part.write_text(json.dumps(pins, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            part.replace(path)
            continue
        before = {item: value for item, value in known.items() if item.startswith(f"{name} ")}
        for item in dict.fromkeys([*before, *after]):
            found = list(differences(before.get(item, "(none)"), after.get(item, "(none)")))
            wrong += bool(found)
            for where, one, two in found:
                print(f"{group}\t{item}\t{where[1:]}\n  before: {one!s:.300}\n  after:  {two!s:.300}", flush=True)
    result = f"{wrong} {'failed' if recording else 'different'}, {time.monotonic() - started:.0f} s"
    print(f"{group}: {len(names)} cases, {items} items, {result}", flush=True)
    return wrong


def main() -> int:
    """Read the command line and do what it says; the exit code is 1 where something differs or fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path, help="the file of pins")
    parser.add_argument("--only", default="*", help="groups, separated by commas, such as variants,suite-*")
    parser.add_argument("--work", type=Path, help="keep what is written, in a new folder in this one")
    parser.add_argument("--jobs", type=int, default=1, help="commands at a time")
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src")
    parser.add_argument("--force", action="store_true", help="record again what is in the file already")
    options = parser.parse_args()
    cases, recording = all_cases(), options.what == "record"
    groups = list(dict.fromkeys(key.partition("/")[0] for key in cases))
    groups = [group for group in groups if any(fnmatch(group, only) for only in options.only.split(","))]
    if not groups or not os.environ.get("LOGINFER_DATA"):
        parser.error("needs a known group, and LOGINFER_DATA, the folder with the graphs' archives")
    pins: Pins = json.loads(options.file.read_text(encoding="utf-8")) if options.file.exists() else {}
    if missing := [group for group in groups if not recording and group not in pins]:
        parser.error(f"not in {options.file}: {', '.join(missing)}")
    if recording and options.force:
        pins = {group: items for group, items in pins.items() if group not in groups}
    if options.work:
        options.work.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="pin-", dir=options.work)).resolve()
    runner = Runner(work, options.source.resolve(), options.jobs, cases)
    try:
        wrong = sum(handle(group, runner, pins, options.file, recording) for group in groups)
    finally:
        runner.pool.shutdown(cancel_futures=True)
        if not options.work:
            shutil.rmtree(work, ignore_errors=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
