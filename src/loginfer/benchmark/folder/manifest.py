"""Which files a benchmark's folder holds, and the manifest: how it was made, what it holds, and sums of its files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np

from loginfer.benchmark.benchmark import SPLITS, Benchmark, BenchmarkRule, PassedOver, Provenance, Split
from loginfer.documents import AtLeast, FileName, Matching, Size, read_document
from loginfer.errors import InputError, LogInferError
from loginfer.files import file_sum, reading
from loginfer.kg import KnowledgeGraph
from loginfer.kg.formats.base import is_context, split_compression
from loginfer.logic import parse_rule
from loginfer.logic.rule import Rule

RULES = "rules.txt"
PROVENANCE = "provenance.parquet"
NEGATIVES = "negatives.parquet"
NOISE = "noise.parquet"
CONTEXT = "context.txt"
LABELS = "labels.tsv"
CARD = "README.md"
CROISSANT = "croissant.json"
MANIFEST = "manifest.json"
# A saved audit, if there is one; the manifest does not list it.
AUDIT = "audit.json"
CANDIDATES = ("candidate_entities.txt", "candidate_relations.txt", "candidate_types.txt")

# Support, new and sampled of a rule without a manifest.
UNKNOWN = -1

# The method of negatives whose file does not name one.
GIVEN = "given"

_SPLIT_WORDS: dict[str, Split] = {
    "train": "train", "training": "train",
    "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
    "test": "test", "testing": "test",
}  # fmt: skip
_NEGATIVE_WORDS = ("neg", "negs", "negative", "negatives")
_POSITIVE_WORDS = ("pos", "positive", "positives")
# What file managers leave in folders.
_LITTER = (".DS_Store", "Thumbs.db", "desktop.ini")
_ENDINGS = (".txt", ".tsv")
_EXACT = re.compile(r"(train|valid|dev|test)_neg_([A-Za-z0-9][A-Za-z0-9_.-]*)")
_METHOD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Role:
    """What a file of triples holds.

    Parameters
    ----------
    split
        train, valid or test.
    method
        Which negatives; None for positives.
    context
        Whether it is the context graph that goes with this split.
    """

    split: Split
    method: str | None = None
    context: bool = False

    def __str__(self) -> str:
        if self.context:
            return f"the context graph of {self.split}"
        return f"the positives of {self.split}" if self.method is None else f"negatives of {self.split}"


def file_of(role: Role) -> str:
    """Return the name under which we write triples: `train.txt`, `train_neg_pa.txt`."""
    if role.context:
        return CONTEXT
    return f"{role.split}.txt" if role.method is None else f"{role.split}_neg_{role.method}.txt"


def is_method(name: str) -> bool:
    """Whether a method's name can be part of a file's name."""
    return _METHOD.fullmatch(name) is not None


def is_ours(name: str) -> bool:
    """Whether a file of this name is one that we write, or litter of file managers."""
    tables = (PROVENANCE, NEGATIVES, NOISE)
    if name in (RULES, LABELS, *tables, CARD, CROISSANT, MANIFEST, AUDIT, *CANDIDATES, *_LITTER):
        return True
    role = role_of(name)
    return role is not None and file_of(role) == name


def role_of(name: str) -> Role | None:
    """Return what a file of triples holds, judged by its name; None if it is no such file.

    It understands the names of the released LogInfer files (`train.txt`, `train_neg_pa.txt`), of CoDEx
    (`valid_negatives.txt`), of InferWiki (`test_pos.txt`, `test_neg.txt`), and similar ones: `dev.tsv`,
    `neg_train.txt`, `test-negatives.txt.gz`. With a `context.txt` (see `is_context`) the folder is inductive.
    """
    if is_context(name):
        return Role("test", context=True)
    plain = split_compression(name)[0]
    ending = next((e for e in _ENDINGS if plain.lower().endswith(e)), None)
    if ending is None or name.startswith("."):
        return None
    stem = plain[: -len(ending)]
    if exact := _EXACT.fullmatch(stem):
        return Role(_SPLIT_WORDS[exact[1]], exact[2])
    words = [word for word in re.split(r"[_\-. ]+", stem) if word]
    lower = [word.lower() for word in words]
    splits = [word for word in lower if word in _SPLIT_WORDS]
    negative = [word for word in lower if word in _NEGATIVE_WORDS]
    positive = [word for word in lower if word in _POSITIVE_WORDS]
    if len(splits) != 1 or len(negative) + len(positive) > 1:
        return None
    role_words = {*splits, *negative, *positive}
    rest = [word for word, small in zip(words, lower, strict=True) if small not in role_words]
    split = _SPLIT_WORDS[splits[0]]
    if negative:
        return Role(split, "_".join(rest) or GIVEN)
    return None if rest else Role(split)


def roles(names: Iterable[str]) -> dict[Role, list[str]]:
    """Return the files of a folder by what they hold; more than one for a role is a mistake of the folder."""
    files_of: dict[Role, list[str]] = {}
    for name in sorted(names):
        role = role_of(name)
        if role is not None:
            files_of.setdefault(role, []).append(name)
    return {role: files_of[role] for role in sorted(files_of, key=_order)}


def _order(role: Role) -> tuple[bool, str, int]:
    return (role.method is not None, role.method or "", SPLITS.index(role.split))


FORMAT = "loginfer-benchmark"
FORMAT_VERSION = 1

# What can be wrong with a folder:
#   manifest    the manifest cannot be read, or is not one of ours
#   missing     a file is not there
#   bytes       a file has another size than the manifest says
#   sha256      a file has other content than the manifest says
#   lines       a file has lines that are no triples
#   unreadable  a file cannot be read at all, or contradicts the others
#   twice       two files have the same role
Kind = Literal["manifest", "missing", "bytes", "sha256", "lines", "unreadable", "twice"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a folder.

    Parameters
    ----------
    kind
        See `Kind`.
    file
        Name of the file.
    message
        What is wrong.
    where
        The file's path, with the line where there is one.
    hint
        What to do about it.
    count
        How often it is wrong: the number of bad lines.
    examples
        The first few of them.
    """

    kind: Kind
    file: str
    message: str
    where: str | None = None
    hint: str | None = None
    count: int = 1
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileSum:
    """Size and checksum of a file."""

    bytes: int
    sha256: str


class SumEntry(TypedDict):
    """Size and checksum of a file, in a JSON file."""

    bytes: Size
    sha256: str


# -- writing ------------------------------------------------------------------------------------


def make_manifest(benchmark: Benchmark, kg: Mapping[str, Any] | None, files: Mapping[str, FileSum]) -> dict[str, Any]:
    """Return the manifest of a benchmark; it holds no time, no machine and no engine.

    Parameters
    ----------
    benchmark
        The benchmark.
    kg
        Size and sum of K (see `kg_figures`), if K is known.
    files
        The sums of all other files.
    """
    provenance = benchmark.provenance
    conclusions = None
    if provenance is not None:
        conclusions = {split: int((provenance.split == i).sum()) for i, split in enumerate(SPLITS)}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": benchmark.name,
        "versions": _versions(),
        "recipe": None if benchmark.recipe is None else benchmark.recipe.as_dict(),
        "kg": kg,
        "type_predicate": benchmark.graph.type_predicate or "",
        "rules": [_rule_entry(rule) for rule in benchmark.rules],
        "passed_over": [_rule_entry(candidate) for candidate in benchmark.passed_over],
        "notes": list(benchmark.notes),
        "positives": dict(benchmark.positives.sizes),
        "conclusions": conclusions,
        **({} if provenance is None or not provenance.deep else {"depths": depth_counts(provenance)}),
        "negatives": {method: _negatives(benchmark, method) for method in benchmark.negatives},
        **({} if benchmark.noise is None else {"noise": benchmark.noise.as_dict()}),
        **({} if benchmark.context is None else {"inductive": _inductive(benchmark, benchmark.context)}),
        "files": {name: asdict(files[name]) for name in sorted(files)},
    }


def depth_counts(provenance: Provenance) -> dict[str, dict[str, int]]:
    """Return how many conclusions of each depth each split has."""
    return {
        str(depth): {
            split: int(((provenance.split == i) & (provenance.depth == depth)).sum()) for i, split in enumerate(SPLITS)
        }
        for depth in np.unique(provenance.depth).tolist()
    }


def as_json(value: Mapping[str, Any]) -> str:
    """Return a value as the text of a JSON file."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _versions() -> dict[str, str]:
    import pyarrow as pa

    from loginfer._version import __version__

    return {"loginfer": __version__, "numpy": np.__version__, "pyarrow": pa.__version__}


def kg_figures(kg: KnowledgeGraph, sha256: str) -> dict[str, Any]:
    """Return the size of K and the sum of its lines, sorted by subject, relation, object."""
    return {
        "triples": len(kg),
        "constants": len(kg.consts),
        "relations": len(kg.rels),
        "types": len(kg.types),
        "sha256": sha256,
    }


def _rule_entry(candidate: BenchmarkRule | PassedOver) -> dict[str, Any]:
    entry = {name: getattr(candidate, name) for name in ("pattern", "support", "new")}
    if isinstance(candidate, BenchmarkRule):
        entry["sampled"] = candidate.sampled
        if candidate.confidence is not None:  # it was not chosen by its support
            entry |= {"confidence": candidate.confidence, "overlap": candidate.overlap}
    elif candidate.reason:
        entry["reason"] = candidate.reason
    return {"rule": str(candidate.rule), **entry}


def _negatives(benchmark: Benchmark, method: str) -> dict[str, Any]:
    negative_set = benchmark.negatives[method]
    counts: dict[str, Any] = {
        split: {"asked": int(negative_set.asked.get(split, len(triples))), "reached": len(triples)}
        for split, triples in negative_set.splits.items()
    }
    return {**counts, "notes": list(negative_set.notes)}


def _inductive(benchmark: Benchmark, context: KnowledgeGraph) -> dict[str, Any]:
    constants = {"train": len(benchmark.graph.consts), "test": len(context.consts)}
    return {"context": len(context), "constants": constants}


# -- reading ------------------------------------------------------------------------------------


class _Sizes(TypedDict):
    train: Size
    valid: Size
    test: Size


class _Count(TypedDict):
    asked: Size
    reached: Size


class _Negatives(TypedDict):
    train: _Count
    valid: _Count
    test: _Count
    notes: list[str]


class _Noise(TypedDict):
    asked: dict[str, Size]
    reached: dict[str, Size]


class _Candidate(TypedDict):
    rule: str
    pattern: str | None
    support: Annotated[int, AtLeast(UNKNOWN)]
    new: Annotated[int, AtLeast(UNKNOWN)]
    reason: NotRequired[str | None]


class _Rule(_Candidate):
    sampled: Annotated[int, AtLeast(UNKNOWN)]
    confidence: NotRequired[float]
    overlap: NotRequired[float | None]


class _Kg(TypedDict):
    triples: Size
    constants: Size
    relations: Size
    types: Size
    sha256: str


class Manifest(TypedDict):
    """What the manifest of a benchmark holds."""

    name: str
    versions: dict[str, str]
    recipe: dict[str, Any] | None
    kg: _Kg | None
    type_predicate: str
    rules: list[_Rule]
    passed_over: list[_Candidate]
    notes: list[str]
    positives: _Sizes
    conclusions: _Sizes | None
    depths: NotRequired[dict[str, _Sizes]]
    negatives: dict[Annotated[str, Matching(_METHOD.pattern, "the name of a method")], _Negatives]
    noise: NotRequired[_Noise]
    inductive: NotRequired[dict[str, Any]]
    files: dict[FileName, SumEntry]


_REMOVE_OR_BUILD = "build the benchmark again, or remove the file to read the folder without a manifest"


def read_manifest(folder: Path, problems: list[Problem]) -> dict[str, Any] | None:
    """Read the manifest of a folder; None, and a problem, if it is not one that this version understands."""
    path, form = folder / MANIFEST, (FORMAT, FORMAT_VERSION)
    try:
        manifest: dict[str, Any] = read_document(path, Manifest, what="benchmark", hint=_REMOVE_OR_BUILD, form=form)
        passed_over(manifest)
    except LogInferError as error:
        problems.append(Problem("manifest", MANIFEST, error.message, where=str(path), hint=error.hint))
        return None
    return manifest


def verify_files(
    folder: Path, names: Sequence[str], manifest: Mapping[str, Any], problems: list[Problem], *, sums: bool = True
) -> list[str]:
    """Compare a folder with its manifest; return the files that are listed and there.

    Parameters
    ----------
    folder, names
        The folder and the files in it.
    manifest
        Its manifest.
    problems
        What is wrong is appended here.
    sums
        Also compare sizes and checksums.
    """
    present = []
    for name, entry in manifest["files"].items():
        path = folder / name
        if name not in names:
            hint = "get the folder again, or build it again"
            problems.append(Problem("missing", name, f"`{name}` is missing", where=str(path), hint=hint))
            continue
        present.append(name)
        if not sums:
            continue
        with reading(path):
            size = path.stat().st_size
        if size != entry["bytes"]:
            message = f"`{name}` was changed: it has {size:,} bytes, expected {entry['bytes']:,}"
            problems.append(Problem("bytes", name, message, where=str(path), hint=_CHANGED))
        elif (actual := file_sum(path)) != (expected := entry["sha256"]):
            message = f"`{name}` was changed: its sha256 is {actual}, expected {expected}"
            problems.append(Problem("sha256", name, message, where=str(path), hint=_CHANGED))
    return present


_CHANGED = "get the file again or build the benchmark again; load_benchmark(…, verify=False) reads it as it is"


def folder_sums(folder: Path) -> dict[str, FileSum]:
    """Return size and checksum of every file in a folder and below it, by its path there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = {path.relative_to(folder).as_posix(): FileSum(path.stat().st_size, file_sum(path)) for path in files}
    return dict(sorted(sums.items()))


def manifest_rules(manifest: Mapping[str, Any], rules: Sequence[Rule]) -> tuple[BenchmarkRule, ...]:
    """Return the rules of the rules file with their figures from the manifest."""
    entries = manifest["rules"]
    if len(entries) != len(rules):
        raise InputError(f"there are {len(rules):,} rules, but {len(entries):,} in the manifest")
    for number, (rule, entry) in enumerate(zip(rules, entries, strict=True)):
        if entry["rule"] != str(rule):
            raise InputError(f"rule {number} is `{rule}`, but `{entry['rule']}` in the manifest")
    figures = ("pattern", "support", "new", "sampled", "confidence", "overlap")
    return tuple(BenchmarkRule(rule, *map(entry.get, figures)) for rule, entry in zip(rules, entries, strict=True))


def passed_over(manifest: Mapping[str, Any]) -> tuple[PassedOver, ...]:
    """Return the candidates that the manifest says were passed over."""
    figures = ("pattern", "support", "new", "reason")
    return tuple(
        PassedOver(parse_rule(entry["rule"], where=f"passed_over[{i}]"), *map(entry.get, figures))
        for i, entry in enumerate(manifest["passed_over"])
    )
