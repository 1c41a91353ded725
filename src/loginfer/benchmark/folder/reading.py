"""A folder as it lies there -> Benchmark, once for load and audit.

A benchmark's folder as it lies there, with everything that is wrong with it.

`read_folder` collects problems instead of failing at the first, keeps repeated lines, and reads folders of
others as well: the audit looks at its result, and `load_benchmark` refuses it if there are problems.

The noise of a benchmark's folder: what the files of train hold, and what they would hold without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from loginfer.benchmark.benchmark import SPLITS, BenchmarkRule, NegativeSet, Provenance, Splits
from loginfer.benchmark.construction.noise import KINDS, Noise, exchanged
from loginfer.benchmark.folder.manifest import (
    CONTEXT,
    MANIFEST,
    NEGATIVES,
    NOISE,
    PROVENANCE,
    RULES,
    Kind,
    Problem,
    Role,
    file_of,
    manifest_rules,
    read_manifest,
    roles,
    verify_files,
)
from loginfer.benchmark.folder.tables import NegativeTable, NoiseTable
from loginfer.benchmark.recipe import Recipe
from loginfer.errors import InputError, LogInferError
from loginfer.files import interrupted, reading
from loginfer.kg import RDF_TYPE, TYPE_NAMES, KnowledgeGraph, Triples, Vocabulary
from loginfer.kg.graph import TripleKeys, distinct_keys

if TYPE_CHECKING:
    from loginfer.benchmark.folder.lines import Collector
    from loginfer.benchmark.folder.tables import NoiseTable


T = TypeVar("T")

UNKNOWN = -1  # support, new and sampled of a rule without a manifest


@dataclass(frozen=True, slots=True)
class TripleFile:
    """A file of triples as it lies there.

    Parameters
    ----------
    name
        Its name.
    role
        What it holds; a file whose lines have labels appears twice.
    triples
        int32[n, 3], in the order of the lines, repeated ones included, bad ones left out.
    lines
        How many lines it has, bad and blank ones included.
    """

    name: str
    role: Role
    triples: Triples
    lines: int


@dataclass(frozen=True)
class RawFolder:
    """A benchmark's folder as it lies there.

    Parameters
    ----------
    path
        The folder.
    entities, relations
        All names of its files and rules.
    type_predicate
        As for `KnowledgeGraph`.
    files
        The files of triples: positives before negatives, train, valid, test.
    problems
        What is wrong with the folder itself: missing or changed files, lines and tables that cannot be read.
        Whether the triples make a good benchmark is the audit's question.
    manifest
        The manifest; None if there is none or it cannot be read.
    recipe
        How the benchmark was made, if that is known.
    rules
        R; empty if it is not known. Without a manifest support, new and sampled are -1.
    rules_known
        Whether there is a file of rules that can be read.
    provenance
        Where the conclusions came from, if that is known.
    origins
        Where the negatives came from, if that is known.
    unlisted
        Files that the manifest does not mention.
    noise
        What is wrong with P_train and N_train on purpose, if that is known.
    """

    path: Path
    entities: Vocabulary
    relations: Vocabulary
    type_predicate: str | None
    files: tuple[TripleFile, ...]
    problems: tuple[Problem, ...]
    manifest: Mapping[str, Any] | None = None
    recipe: Recipe | None = None
    rules: tuple[BenchmarkRule, ...] = ()
    rules_known: bool = False
    provenance: Provenance | None = None
    origins: NegativeTable | None = None
    unlisted: tuple[str, ...] = ()
    noise: NoiseTable | None = None

    @property
    def name(self) -> str:
        """What the benchmark is called."""
        named = (self.manifest or {}).get("name")
        return named if isinstance(named, str) and named else self.path.resolve().name

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods with negatives, in the manifest's order or that of their names."""
        return tuple(dict.fromkeys(f.role.method for f in self.files if f.role.method is not None))

    @property
    def keys(self) -> TripleKeys:
        """How triples are packed into keys over the folder's names."""
        return TripleKeys(len(self.entities), len(self.relations))

    def lines(self, split: str, method: str | None = None) -> Triples:
        """Return the triples of a split, line by line: its positives, or the negatives of a method."""
        found = [f.triples for f in self.files if f.role == Role(split, method)]  # type: ignore[arg-type]
        return np.concatenate(found) if found else np.empty((0, 3), dtype=np.int32)

    @property
    def context(self) -> Triples | None:
        """The triples of the context graph, line by line; None if there is none."""
        return next((f.triples for f in self.files if f.role.context), None)

    def graph(self, triples: Triples) -> KnowledgeGraph:
        """Return triples as a graph over the folder's names."""
        return KnowledgeGraph(self.entities, self.relations, triples, type_predicate=self.type_predicate)


def read_folder(path: str | Path, *, verify: bool = True) -> RawFolder:
    """Read a benchmark's folder as it lies there.

    Parameters
    ----------
    path
        A folder that `write_benchmark` wrote, or one with files named as in the released LogInfer, CoDEx or
        InferWiki data sets.
    verify
        Compare sizes and checksums with the manifest.

    Raises
    ------
    InputError
        If it is no folder, or there are no training triples in it. Everything else is in `problems`.
    """
    reader = _Reader(Path(path), verify)
    return reader.read()


class _Reader:
    """Reads one folder; what is wrong is kept in `problems`."""

    def __init__(self, folder: Path, verify: bool) -> None:
        self.folder = folder
        self.names = _names(folder)
        self.problems: list[Problem] = []
        self.manifest = read_manifest(folder, self.problems) if MANIFEST in self.names else None
        # The files to read: those that the manifest lists, if there is one.
        self.there = list(self.names)
        if self.manifest is not None:
            self.there = verify_files(folder, self.names, self.manifest, self.problems, sums=verify)
        self.recipe = self._recipe()

    def read(self) -> RawFolder:
        from loginfer.benchmark.folder.lines import Collector
        from loginfer.benchmark.folder.tables import read_negatives, read_noise, read_provenance

        collector = Collector()
        for name, role in self._triple_files():
            strict = self.manifest is not None
            self._attempt(name, partial(collector.read, self.folder / name, role, strict=strict))
        rules = self._rules()
        raw_provenance = self._table(PROVENANCE, read_provenance, collector)
        raw_origins = self._table(NEGATIVES, read_negatives, collector)
        raw_noise = self._table(NOISE, read_noise, collector)
        predicate = self._type_predicate()
        constants = [name for known in rules or () for name in known.rule.constants]
        relations = _relation_names(collector, rules or (), predicate)
        e, r, files = collector.finish_files(constants, relations)
        self._note_bad_lines(collector)
        provenance = origins = noise = None
        count = None if rules is None else len(rules)
        if raw_provenance is not None:
            provenance = self._attempt(PROVENANCE, partial(raw_provenance.finish, e.ids, r.ids, count))
        if raw_origins is not None:
            program = None if rules is None else [known.rule for known in rules]
            origins = self._attempt(NEGATIVES, partial(raw_origins.finish, e.ids, r.ids, program))
        if raw_noise is not None:
            noise = self._attempt(NOISE, partial(raw_noise.finish, e.ids, r.ids))
        return RawFolder(
            path=self.folder,
            entities=e.vocabulary,
            relations=r.vocabulary,
            type_predicate=predicate,
            files=tuple(files),
            problems=tuple(self.problems),
            manifest=self.manifest,
            recipe=self.recipe,
            rules=rules or (),
            rules_known=rules is not None,
            provenance=provenance,
            origins=origins,
            unlisted=self._unlisted(),
            noise=noise,
        )

    def _attempt(self, file: str, work: Callable[[], T], kind: Kind = "unreadable") -> T | None:
        """Do something with a file; an error becomes a problem."""
        try:
            return work()
        except LogInferError as error:
            self.problems.append(Problem(kind, file, error.message, where=error.where, hint=error.hint))
            return None

    def _triple_files(self) -> list[tuple[str, Role]]:
        if self.manifest is not None:
            wanted = [Role(split) for split in SPLITS]
            wanted += [Role(split, m) for m in self.manifest["negatives"] for split in SPLITS]
            wanted += [Role("test", context=True)] if CONTEXT in self.manifest["files"] else []
            return [(file_of(role), role) for role in wanted if file_of(role) in self.there]
        found = roles(self.names)
        if Role("train") not in found:
            raise _no_training(self.folder, self.names)
        for role, files in found.items():
            if len(files) > 1:
                self.problems.append(
                    Problem(
                        "twice",
                        files[1],
                        f"`{files[0]}` and `{files[1]}` both look like {role}",
                        hint="keep one of them in the folder",
                    )
                )
        return [(files[0], role) for role, files in found.items()]

    def _rules(self) -> tuple[BenchmarkRule, ...] | None:
        return None if RULES not in self.there else self._attempt(RULES, self._read_rules)

    def _read_rules(self) -> tuple[BenchmarkRule, ...]:
        from loginfer.logic.rule_files import read_rules

        if self.manifest is not None:
            return manifest_rules(self.manifest, read_rules(self.folder / RULES, "arrow").program)
        program = read_rules(self.folder / RULES).program
        return tuple(BenchmarkRule(rule, None, UNKNOWN, UNKNOWN, UNKNOWN) for rule in program)

    def _table(self, name: str, read: Callable[[Path, Collector], T], collector: Collector) -> T | None:
        if self.manifest is None or name not in self.there:
            return None
        return self._attempt(name, partial(read, self.folder / name, collector))

    def _recipe(self) -> Recipe | None:
        values = (self.manifest or {}).get("recipe")
        if values is None:
            return None
        return self._attempt(
            MANIFEST, partial(Recipe.from_dict, values, where=f"{self.folder / MANIFEST}, recipe"), "manifest"
        )

    def _type_predicate(self) -> str | None:
        if self.manifest is not None and isinstance(self.manifest.get("type_predicate"), str):
            return str(self.manifest["type_predicate"])
        return None if self.recipe is None else self.recipe.type_predicate

    def _note_bad_lines(self, collector: Collector) -> None:
        for file, bad in collector.bad_lines.items():
            shown = tuple(f"line {n}: {text}" if n else text for n, text in bad.examples)
            line = bad.examples[0][0]
            self.problems.append(
                Problem(
                    "lines",
                    file,
                    bad.examples[0][1] if bad.count == 1 else f"{bad.count:,} lines cannot be read",
                    where=f"{self.folder / file}:{line}" if line else str(self.folder / file),
                    count=bad.count,
                    examples=shown,
                )
            )

    def _unlisted(self) -> tuple[str, ...]:
        if self.manifest is None:
            return ()
        listed = {*self.manifest["files"], MANIFEST}
        return tuple(name for name in self.names if name not in listed and not name.startswith("."))


def _names(folder: Path) -> list[str]:
    """Return the names of all files in a folder, sorted."""
    with reading(folder):
        if not folder.exists():
            before = interrupted(folder)
            hint = f"writing it was interrupted; what was there before is in `{before}`" if before else None
            raise InputError(f"no folder `{folder}`", hint=hint or "check the path")
        if not folder.is_dir():
            raise InputError(f"`{folder}` is a file, not the folder of a benchmark", hint="give the folder it lies in")
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
        if not names and not any(folder.iterdir()):
            raise InputError(f"`{folder}` is empty", hint="build a benchmark into it with `loginfer build`")
    return names


def _no_training(folder: Path, names: list[str]) -> InputError:
    shown = ", ".join(f"`{name}`" for name in names[:8] if not name.startswith("."))
    return InputError(
        f"`{folder}` is no benchmark: it has no file with training triples, such as `train.txt`",
        hint=f"it holds {shown}{', …' if len(names) > 8 else ''}" if shown else "it holds only folders",
    )


def _relation_names(collector: Collector, rules: tuple[BenchmarkRule, ...], predicate: str | None) -> list[str]:
    """Return the relations that the vocabulary must hold because of the rules and the type predicate."""
    wanted = [name for known in rules for name in known.rule.relations]
    if predicate:
        return [predicate, *(name for name in wanted if name != RDF_TYPE)]
    there = {collector.relations.name(i) for i in range(collector.relations.count)}
    if any(name.encode() in there for name in TYPE_NAMES):
        return [name for name in wanted if name != RDF_TYPE]
    return wanted


def noise_of(raw: RawFolder, table: NoiseTable) -> tuple[Noise, NegativeSet]:
    """Return the noise of a folder, and its negatives as they lie there, both without origins.

    Parameters
    ----------
    raw
        The folder.
    table
        Its `noise.parquet`.

    Raises
    ------
    InputError
        If the folder has the negatives of none or several methods.
    """
    if len(raw.methods) != 1:
        raise InputError(
            f"a benchmark with noise has the negatives of one method, not of {len(raw.methods)}",
            where=str(raw.path / NOISE),
            hint="build the benchmark again",
        )
    (method,) = raw.methods
    keys = raw.keys
    lines = {split: distinct_keys(keys.pack(raw.lines(split, method))) for split in SPLITS}
    told: Mapping[str, Any] = (raw.manifest or {}).get("negatives", {}).get(method, {})
    asked: dict[str, int] = {split: told[split]["asked"] for split in SPLITS if told}
    noisy = NegativeSet(
        method,
        Splits(*(keys.unpack(lines[split]) for split in SPLITS)),
        {},
        asked,
        tuple(map(str, told.get("notes", ()))),
    )
    packed = keys.pack(table.triples)
    out, new = (packed[table.kind == KINDS.index(k)] for k in ("flipped-positive", "flipped-negative"))
    train = keys.unpack(exchanged(lines["train"], out, np.sort(new)))
    clean = replace(noisy, splits=Splits(train, noisy.splits.valid, noisy.splits.test))
    counts: Mapping[str, Any] = (raw.manifest or {}).get("noise", {})
    return Noise(table.triples, table.kind, clean, _sizes(counts, "asked"), _sizes(counts, "reached")), noisy


def _sizes(counts: Mapping[str, Any], key: str) -> dict[str, int]:
    found = counts.get(key) if isinstance(counts, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: number for name, number in found.items() if isinstance(number, int)}
