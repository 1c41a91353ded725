"""Reading a benchmark's folder as it is, with everything that is wrong with it.

`read_folder` is the one loader. It collects problems instead of failing at the first, keeps repeated lines, and also
reads data sets of others. `load_benchmark` refuses a folder with problems; the audit reports them all.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import SPLITS, Benchmark, BenchmarkRule, NegativeSet, Origins, Splits
from loginfer.benchmark.construction.noise import KINDS, Noise, exchanged
from loginfer.benchmark.folder import manifest
from loginfer.benchmark.folder.manifest import UNKNOWN
from loginfer.benchmark.folder.tables import NegativeTable, NoiseTable, read_negatives, read_noise, read_provenance
from loginfer.benchmark.recipe import Recipe
from loginfer.errors import InputError, LogInferError, nearest
from loginfer.files import interrupted, reading
from loginfer.kg import RDF_TYPE, TYPE_NAMES, KnowledgeGraph, Triples, Vocabulary, sorted_unique
from loginfer.kg.formats import tsv
from loginfer.kg.formats.base import ReadOptions, Source, check_text
from loginfer.kg.formats.scan import GraphBuilder
from loginfer.kg.graph import Ids, TripleKeys
from loginfer.logic.rule import Rule

T = TypeVar("T")

# An error about a damaged folder names so many problems.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class TripleFile:
    """A file of triples as it is.

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
    role: manifest.Role
    triples: Triples
    lines: int

    def where(self, triple: npt.ArrayLike, occurrence: int = 0) -> str:
        """Return file and line of a triple, by default of its first occurrence.

        A file with lines that are blank, bad or of the other label cannot be counted; then only the file is named.
        """
        same = np.flatnonzero((self.triples == np.asarray(triple)).all(axis=1))
        if len(self.triples) < self.lines or occurrence >= len(same):
            return self.name
        return f"{self.name}:{same[occurrence] + 1}"


@dataclass(frozen=True)
class BenchmarkFolder:
    """A benchmark's folder as it is.

    Parameters
    ----------
    path
        The folder.
    benchmark
        The benchmark in it, as far as it can be read. Without a manifest the support, new and sampled of its
        rules are -1.
    files
        The files of triples: positives before negatives, train, valid, test.
    problems
        What is wrong with the folder itself: missing or changed files, lines and tables that cannot be read.
        Whether the triples make a good benchmark is the audit's question.
    contradictions
        Where readable files contradict each other.
    rules_known
        Whether there is a file of rules that can be read.
    origins
        The rows of `negatives.parquet`, if it can be read.
    unlisted
        Files that the manifest does not mention.
    """

    path: Path
    benchmark: Benchmark
    files: tuple[TripleFile, ...]
    problems: tuple[manifest.Problem, ...]
    contradictions: tuple[InputError, ...] = ()
    rules_known: bool = False
    origins: NegativeTable | None = None
    unlisted: tuple[str, ...] = ()

    def file(self, split: str, method: str | None = None) -> TripleFile | None:
        """Return the file of a split: its positives, or the negatives of a method; None if there is none."""
        matching = [file for file in self.files if file.role == manifest.Role(split, method)]  # type: ignore[arg-type]
        return matching[-1] if matching else None

    @property
    def context(self) -> TripleFile | None:
        """The file of the context graph; None if there is none."""
        return next((file for file in self.files if file.role.context), None)


def load_benchmark(path: str | Path | Benchmark, *, verify: bool = True) -> Benchmark:
    """Read a benchmark's folder and verify it.

    Parameters
    ----------
    path
        A folder that `write_benchmark` wrote, or one with files named as in the released LogInfer, CoDEx or
        InferWiki data sets, or the name of a data set of the catalogue. Of these repeated lines count once, and
        negatives that a split does not have are empty. A benchmark is returned as it is.
    verify
        Compare sizes and checksums with the manifest.

    Raises
    ------
    InputError
        If it is no benchmark, or damaged; with the files and lines.
    """
    if isinstance(path, Benchmark):
        return path
    folder = read_folder(path, verify=verify)
    if folder.problems:
        raise _damaged(folder)
    if not len(folder.benchmark.graph):
        raise InputError(f"`{path}` holds no training triples")
    for contradiction in folder.contradictions:
        raise contradiction
    return folder.benchmark


def _damaged(folder: BenchmarkFolder) -> InputError:
    """Return the error that says what is wrong with a folder."""

    def described(problem: manifest.Problem) -> str:
        if problem.count == 1 or not problem.examples:
            return problem.message
        return f"{problem.message}, the first: {problem.examples[0]}"

    first, count = folder.problems[0], len(folder.problems)
    if count == 1:
        return InputError(described(first), where=first.where or str(folder.path / first.file), hint=first.hint)
    first_lines = [f"\n    {problem.file}: {described(problem)}" for problem in folder.problems[:SHOWN]]
    last_line = f"\n    and {count - SHOWN:,} more" if count > SHOWN else ""
    hint = first.hint or "`loginfer audit` lists them all"
    return InputError(f"`{folder.path}` has {count:,} problems:{''.join(first_lines)}{last_line}", hint=hint)


def read_folder(path: str | Path, *, verify: bool = True) -> BenchmarkFolder:
    """Read a benchmark's folder as it is.

    Parameters
    ----------
    path, verify
        As for `load_benchmark`.

    Raises
    ------
    InputError
        If it is no folder, or there are no training triples in it. Everything else is in `problems` and
        `contradictions`.
    """
    if not isinstance(path, str | Path):
        raise InputError(f"{type(path).__name__} is no benchmark", hint="give its folder, or what was loaded from it")
    from loginfer.kg.catalogue import data_set

    with reading(Path(path)):
        named = None if Path(path).exists() else data_set(str(path))
    if named is not None:
        folder = _FolderReader(Path(named[0]), named[1], verify).read()
        return replace(folder, benchmark=replace(folder.benchmark, path=None))
    files = {name: Source.of(Path(path) / name) for name in files_in(Path(path))}
    return _FolderReader(Path(path), files, verify).read()


class _FolderReader:
    """Reads one folder, or the files of a data set, and collects its problems."""

    def __init__(self, folder: Path, files: Mapping[str, Source], verify: bool) -> None:
        self.folder = folder
        self.files = files
        self.names = list(files)
        self.problems: list[manifest.Problem] = []
        self.contradictions: list[InputError] = []
        self.manifest = manifest.read_manifest(folder, self.problems) if manifest.MANIFEST in self.names else None
        self.recorded: Mapping[str, Any] = self.manifest or {}
        # With a manifest, only files that it lists are read.
        self.to_read = list(self.names)
        if self.manifest is not None:
            self.to_read = manifest.verify_files(folder, self.names, self.manifest, self.problems, sums=verify)
        self.recipe: Recipe | None = None
        if (values := self.recorded.get("recipe")) is not None:
            parse_recipe = partial(Recipe.from_dict, values, where=f"{folder / manifest.MANIFEST}, recipe")
            self.recipe = self._attempt(manifest.MANIFEST, parse_recipe, "manifest")

    def read(self) -> BenchmarkFolder:
        """Read all files: names first get provisional ids, and final ones when all of them are known."""
        collector = _Collector()
        for name, role in self._triple_files():
            read = partial(collector.read, self.files[name], name, role, strict=self.manifest is not None)
            self._attempt(name, read)
        rules = self._attempt(manifest.RULES, self._read_rules) if manifest.RULES in self.to_read else None
        program = None if rules is None else [benchmark_rule.rule for benchmark_rule in rules]
        readers: dict[str, Callable[..., Any]] = {
            manifest.PROVENANCE: read_provenance, manifest.NEGATIVES: read_negatives, manifest.NOISE: read_noise,
        }  # fmt: skip
        finishers = {
            name: self._attempt(name, partial(readers[name], self.folder / name, collector))
            for name in readers
            if self.manifest is not None and name in self.to_read
        }
        type_predicate = self._type_predicate()
        constants = [name for rule in program or () for name in rule.constants]
        relation_names = _relation_names(collector, program or (), type_predicate)
        entities, relations, files = collector.finish_files(constants, relation_names)
        self._note_bad_lines(collector)
        tables: dict[str, Any] = {
            name: self._attempt(name, partial(finish, entities.ids, relations.ids, program))
            for name, finish in finishers.items()
            if finish is not None
        }
        empty = KnowledgeGraph(
            entities.vocabulary,
            relations.vocabulary,
            np.empty((0, 3), np.int32),
            type_predicate=type_predicate,
            labels=self._attempt(manifest.LABELS, self._read_labels) if manifest.LABELS in self.to_read else None,
        )
        sets = _Sets(empty, files)
        origins = tables.get(manifest.NEGATIVES)
        noise, negatives = self._negatives(sets, origins, tables.get(manifest.NOISE))
        context = next((file for file in files if file.role.context), None)
        graph = empty.with_triples(sets.distinct("train"))
        benchmark = Benchmark(
            name=self.recorded.get("name") or self.folder.resolve().name,
            graph=graph,
            positives=Splits(graph.triples, sets.distinct("valid"), sets.distinct("test")),
            negatives=negatives,
            rules=rules or (),
            provenance=tables.get(manifest.PROVENANCE),
            recipe=self.recipe,
            passed_over=manifest.passed_over(self.recorded) if self.recorded else (),
            notes=tuple(self.recorded.get("notes", ())),
            manifest=self.recorded,
            path=self.folder,
            context=None if context is None else empty.with_triples(context.triples),
            noise=noise,
        )
        return BenchmarkFolder(
            path=self.folder,
            benchmark=benchmark,
            files=tuple(files),
            problems=tuple(self.problems),
            contradictions=tuple(self.contradictions),
            rules_known=rules is not None,
            origins=origins,
            unlisted=self._unlisted(),
        )

    def _attempt(self, file: str, action: Callable[[], T], kind: manifest.Kind = "unreadable") -> T | None:
        """Do something with a file; an error becomes a problem."""
        try:
            return action()
        except LogInferError as error:
            self.problems.append(manifest.Problem(kind, file, error.message, where=error.where, hint=error.hint))
            return None

    def _triple_files(self) -> list[tuple[str, manifest.Role]]:
        if self.manifest is not None:
            expected_roles = [manifest.Role(split) for split in SPLITS]
            expected_roles += [manifest.Role(split, m) for m in self.manifest["negatives"] for split in SPLITS]
            expected_roles += (
                [manifest.Role("test", context=True)] if manifest.CONTEXT in self.manifest["files"] else []
            )
            return [(manifest.file_of(role), role) for role in expected_roles if manifest.file_of(role) in self.to_read]
        files_of = manifest.roles(self.names)
        if manifest.Role("train") not in files_of:
            raise _no_training(self.folder, self.names)
        for role, files in files_of.items():
            if len(files) > 1:
                self.problems.append(
                    manifest.Problem(
                        "twice",
                        files[1],
                        f"`{files[0]}` and `{files[1]}` both look like {role}",
                        hint="keep one of them in the folder",
                    )
                )
        return [(files[0], role) for role, files in files_of.items()]

    def _read_rules(self) -> tuple[BenchmarkRule, ...]:
        from loginfer.logic.rule_files import read_rules

        if self.manifest is not None:
            return manifest.manifest_rules(self.manifest, read_rules(self.folder / manifest.RULES, "arrow").program)
        program = read_rules(self.folder / manifest.RULES).program
        return tuple(BenchmarkRule(rule, None, UNKNOWN, UNKNOWN, UNKNOWN) for rule in program)

    def _read_labels(self) -> dict[str, str]:
        path = self.folder / manifest.LABELS
        with reading(path):
            lines = path.read_bytes().split(b"\n")
        try:
            rows = [line.decode().split("\t") for line in lines if line]
            return dict(rows)
        except ValueError as error:
            raise InputError("expected lines of a name and a label, with a tab", where=str(path)) from error

    def _type_predicate(self) -> str | None:
        recorded: str | None = self.recorded.get("type_predicate")
        return self.recipe.type_predicate if recorded is None and self.recipe is not None else recorded

    def _note_bad_lines(self, collector: _Collector) -> None:
        for file, bad in collector.bad_lines.items():
            examples = tuple(f"line {n}: {text}" if n else text for n, text in bad.examples)
            line = bad.examples[0][0]
            self.problems.append(
                manifest.Problem(
                    "lines",
                    file,
                    bad.examples[0][1] if bad.count == 1 else f"{bad.count:,} lines cannot be read",
                    where=f"{self.folder / file}:{line}" if line else str(self.folder / file),
                    count=bad.count,
                    examples=examples,
                )
            )

    def _unlisted(self) -> tuple[str, ...]:
        if self.manifest is None:
            return ()
        listed = {*self.manifest["files"], manifest.MANIFEST, manifest.AUDIT}
        return tuple(name for name in self.names if name not in listed and not name.startswith("."))

    # -- negatives ----------------------------------------------------------------------------------

    def _negatives(
        self, sets: _Sets, table: NegativeTable | None, noise: NoiseTable | None
    ) -> tuple[Noise | None, dict[str, NegativeSet]]:
        """Return the noise, and the negatives of all methods as their files hold them.

        The table lists the negatives without noise, so noisy negatives of train have no origins.
        """
        keys, negative_sets = sets.empty.keys, dict[str, NegativeSet]()
        for method in sets.methods:
            counts = self.recorded.get("negatives", {}).get(method, {})
            asked: dict[str, int] = {split: counts[split]["asked"] for split in SPLITS if counts}
            splits = Splits(*(sets.distinct(split, method) for split in SPLITS))
            negative_sets[method] = NegativeSet(method, splits, {}, asked, tuple(counts.get("notes", ())))
        if noise is None or len(negative_sets) != 1:
            if noise is not None:
                problem = f"a benchmark with noise has the negatives of one method, not of {len(negative_sets)}"
                self._contradict(problem, str(self.folder / manifest.NOISE))
            return None, {
                m: replace(negative_set, origins=self._origins(negative_set, table, keys, sets.distinct))
                for m, negative_set in negative_sets.items()
            }
        ((method, negative_set),) = negative_sets.items()
        packed = keys.pack(noise.triples)
        out, new = (packed[noise.kind == KINDS.index(k)] for k in ("flipped-positive", "flipped-negative"))
        train = keys.unpack(exchanged(keys.pack(negative_set.splits.train), out, np.sort(new)))
        clean = replace(negative_set, splits=Splits(train, negative_set.splits.valid, negative_set.splits.test))

        def clean_positives(split: str) -> Triples:
            if split != "train":
                return sets.distinct(split)
            true = np.sort(packed[noise.kind != KINDS.index("flipped-negative")])
            return keys.unpack(exchanged(keys.pack(sets.distinct(split)), new, true))

        clean = replace(clean, origins=self._origins(clean, table, keys, clean_positives))
        later = {split: origins for split, origins in clean.origins.items() if split != "train"}
        asked, reached = (self.recorded.get("noise", {}).get(key, {}) for key in ("asked", "reached"))
        return Noise(noise.triples, noise.kind, clean, asked, reached), {method: replace(negative_set, origins=later)}

    def _origins(
        self,
        negative_set: NegativeSet,
        table: NegativeTable | None,
        keys: TripleKeys,
        positives: Callable[[str], Triples],
    ) -> dict[str, Origins]:
        """Return the origins of the negatives of each split, if the table lists exactly these."""
        origins_of: dict[str, Origins] = {}
        if table is None:
            return origins_of
        for split, triples in negative_set.splits.items():
            rows = table.rows(negative_set.method, split)
            rows = rows[np.argsort(keys.pack(table.triples[rows]), kind="stable")]
            if not np.array_equal(table.triples[rows], triples):
                text = manifest.file_of(manifest.Role(split, negative_set.method))
                self._contradict(f"`{manifest.NEGATIVES}` and `{text}` hold different negatives", str(self.folder))
                continue
            origins = table.origins[rows]
            if len(table.twins):
                twin = self._attempt(manifest.NEGATIVES, partial(table.twin_rows, rows, positives(split), keys))
                origins = origins if twin is None else replace(origins, twin=twin)
            if (origins.source >= 0).all():
                origins_of[split] = origins
        return origins_of

    def _contradict(self, message: str, where: str) -> None:
        self.contradictions.append(InputError(message, where=where, hint="build the benchmark again"))


class _Sets:
    """The triples of a folder's files as sorted sets, over the vocabularies of an empty graph."""

    def __init__(self, empty: KnowledgeGraph, files: Sequence[TripleFile]) -> None:
        self.empty = empty
        self._lines: dict[manifest.Role, list[Triples]] = {}
        for file in files:
            self._lines.setdefault(file.role, []).append(file.triples)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods with negatives, in the manifest's order or that of their names."""
        return tuple(dict.fromkeys(role.method for role in self._lines if role.method is not None))

    def distinct(self, split: str, method: str | None = None) -> Triples:
        """Return the triples of a split: its positives, or the negatives of a method."""
        lines = self._lines.get(manifest.Role(split, method), [self.empty.triples])  # type: ignore[arg-type]
        triples = sorted_unique(np.concatenate(lines), self.empty.keys)
        triples.setflags(write=False)
        return triples


def files_in(folder: Path) -> list[str]:
    """Return the names of all files in a folder, sorted."""
    from loginfer.kg.catalogue import entries

    with reading(folder):
        if not folder.exists():
            before = interrupted(folder)
            hint = f"writing it was interrupted; what was there before is in `{before}`" if before else None
            if close := nearest(str(folder), [entry.name for entry in entries()]):
                hint = hint or f"did you mean `{close[0]}` of `loginfer kg list`?"
            raise InputError(f"no folder `{folder}`", hint=hint or "check the path")
        if not folder.is_dir():
            raise InputError(f"`{folder}` is a file, not the folder of a benchmark", hint="give the folder it lies in")
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
        if not names and not any(folder.iterdir()):
            raise InputError(f"`{folder}` is empty", hint="build a benchmark into it with `loginfer build`")
    return names


def _no_training(folder: Path, names: list[str]) -> InputError:
    listed = ", ".join(f"`{name}`" for name in names[:8] if not name.startswith("."))
    hint = f"it holds {listed}{', …' if len(names) > 8 else ''}" if listed else "it holds only folders"
    message = f"`{folder}` is no benchmark: it has no file with training triples, such as `train.txt`"
    return InputError(message, hint=hint)


def _relation_names(collector: _Collector, rules: Sequence[Rule], predicate: str | None) -> list[str]:
    """Return the relations that the vocabulary must hold because of the rules and the type predicate."""
    from_rules = [name for rule in rules for name in rule.relations]
    if predicate:
        return [predicate, *(name for name in from_rules if name != RDF_TYPE)]
    from_files = {collector.relations.name(i) for i in range(collector.relations.count)}
    if any(name.encode() in from_files for name in TYPE_NAMES):
        return [name for name in from_rules if name != RDF_TYPE]
    return from_rules


# -- lines ----------------------------------------------------------------------------------------

# So many bad lines of a file are described; further ones are only counted.
EXAMPLES = 5

_TRUE = (b"1", b"+1", b"true", b"1.0")
_FALSE = (b"-1", b"0", b"false", b"-1.0", b"0.0")


@dataclass(slots=True)
class _BadLines:
    """The lines of a file that cannot be read: how many, and the first few with their number and trouble."""

    count: int
    examples: list[tuple[int | None, str]]


@dataclass(slots=True)
class _Span:
    """The blocks of a file: from `first` up to `last`."""

    name: str
    role: manifest.Role
    first: int
    last: int = 0
    lines: int = 0


class _Collector(GraphBuilder):
    """Reads files of triples one after the other; `finish_files` returns them over common vocabularies."""

    def __init__(self) -> None:
        super().__init__(skip=True)
        self.bad_lines: dict[str, _BadLines] = {}
        self._spans: list[_Span] = []

    # -- reading --------------------------------------------------------------------------------

    def read(self, source: Source, name: str, role: manifest.Role, *, strict: bool) -> None:
        """Read a file of triples.

        Parameters
        ----------
        source, name
            The file, and its name.
        role
            What it holds.
        strict
            Three columns and nothing else; otherwise a fourth and last column is a label, unless the file's
            name already says what its triples are, and all other columns are ignored.
        """
        if not strict and (columns := _columns(source)) > 3:
            self._read_labelled(source, role, columns)
            return
        first_line = self.line
        self._open(name, role)
        try:
            tsv.read([source], self, ReadOptions(), header=False)
        finally:
            self._close(self.line - first_line)

    def begin(self, name: str) -> None:
        """Say that what follows comes from this file."""
        super().begin(Path(name).name)

    def bad(self, message: str, line: int | None = None, *, count: int = 1, hint: str | None = None) -> None:
        """Note a line that cannot be read."""
        file = -1 if line is None else bisect.bisect_right(self._first_lines, line) - 1
        number = None if line is None else line - self._first_lines[file] + 1
        bad_lines = self.bad_lines.setdefault(self.files[file], _BadLines(0, []))
        bad_lines.count += count
        self.skipped += count
        if len(bad_lines.examples) < EXAMPLES:
            bad_lines.examples.append((number, message))

    def _open(self, name: str, role: manifest.Role) -> None:
        self._spans.append(_Span(name, role, len(self._blocks)))

    def _close(self, lines: int) -> None:
        # The rest of the buffer is for the next file, so that no block holds lines of two.
        self._blocks.append(self._rows[: self._row])
        self._rows, self._row = self._rows[self._row :], 0
        self._spans[-1].last, self._spans[-1].lines = len(self._blocks), lines

    def _read_labelled(self, source: Source, role: manifest.Role, columns: int) -> None:
        """Read lines of more than three columns; such files are small, some ten thousand lines."""
        with source.open() as (stream, _):
            lines = stream.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if not lines[-1]:
            lines.pop()
        self.begin(source.name)
        ignore_label = role.method is not None or columns != 4
        kinds: dict[manifest.Role, list[tuple[bytes, ...]]] = {role: []}
        for number, line in enumerate(lines):
            cells = line.rstrip(b"\r").split(b"\t")
            if not line.strip():
                continue
            if len(cells) < 3 or not all(cells[:3]):
                self.bad(f"expected {columns} tab-separated columns, found {len(cells)}", self.line + number)
                continue
            label = b"" if ignore_label else b"\t".join(cells[3:]).strip().lower()
            if ignore_label or label in _TRUE:
                kinds[role].append(tuple(cells[:3]))
            elif label in _FALSE:
                kinds.setdefault(manifest.Role(role.split, manifest.GIVEN), []).append(tuple(cells[:3]))
            else:
                shown = label.decode(errors="replace")[:40]
                self.bad(f"expected the label 1 or -1 in column 4, found `{shown}`", self.line + number)
        self.line += len(lines)
        for kind, rows in kinds.items():
            self._open(self.files[-1], kind)
            names = zip(*rows, strict=True) if rows else ((), (), ())
            tables = (self.entities, self.relations, self.entities)
            self.add_ids(*(table.intern_texts(column) for table, column in zip(tables, names, strict=True)))
            self._close(len(lines))

    # -- the end --------------------------------------------------------------------------------

    def finish_files(
        self, entities: Sequence[str] = (), relations: Sequence[str] = ()
    ) -> tuple[_Names, _Names, list[TripleFile]]:
        """Return names and files; no more can be read afterwards.

        Parameters
        ----------
        entities, relations
            Names that the vocabularies must hold in any case.
        """
        e, e_bad = _final_names(self, 0, entities)
        r, r_bad = _final_names(self, 1, relations)
        troubles = [(int(self.entities.lines[i]), text) for i, text in e_bad.items()]
        troubles += [(int(self.relations.lines[i]), text) for i, text in r_bad.items()]
        for line, message in sorted(troubles):
            self.bad(message, line, count=0)
        files = []
        for span in self._spans:
            blocks = self._blocks[span.first : span.last]
            rows: Any = np.concatenate(blocks) if blocks else np.empty((0, 3), dtype=np.int32)
            self._blocks[span.first : span.last] = [rows[:0]] * len(blocks)  # let go of the memory
            triples = np.empty_like(rows)
            for column, names in enumerate((e, r, e)):
                np.take(names.ids, rows[:, column], out=triples[:, column])
            if e_bad or r_bad:
                fine = (triples >= 0).all(axis=1)
                if not fine.all():
                    bad_lines = self.bad_lines.setdefault(span.name, _BadLines(0, [(None, "not valid UTF-8")]))
                    bad_lines.count += int(len(fine) - fine.sum())
                    triples = triples[fine]
            triples.setflags(write=False)
            files.append(TripleFile(span.name, span.role, triples, span.lines))
        return e, r, files


@dataclass(frozen=True, slots=True)
class _Names:
    """A vocabulary, and int32[n]: the final id of every provisional one, -1 for a name that is no UTF-8."""

    vocabulary: Vocabulary
    ids: Ids


def _final_names(builder: GraphBuilder, column: int, required: Sequence[str]) -> tuple[_Names, dict[int, str]]:
    table = builder.relations if column == 1 else builder.entities
    vocabulary, ids, bad = builder._vocabulary(table, (1,) if column == 1 else (0, 2))
    extended = vocabulary.union(required)
    if extended is not vocabulary:
        is_valid = ids >= 0
        ids[is_valid] = vocabulary.positions_in(extended)[ids[is_valid]]
    return _Names(extended, ids), bad


def _columns(source: Source) -> int:
    """Return how many columns the first line that is not blank has."""
    with reading(source.path), source.open() as (stream, _):
        head = stream.read(2**16)
    check_text(head[:4096], source.name)
    for line in head.split(b"\n"):
        if line.strip():
            return line.count(b"\t") + 1
    return 3
