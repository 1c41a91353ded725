"""What export formats share: the interface of a format, files of names, ids and tables, and the README.

Names that a format cannot hold are encoded, and can be decoded again. If a format can hold every name of a
vocabulary, all are written as they are. Otherwise all are percent-encoded: the characters that the format cannot
hold, and `%` itself. `export.json` says which of the two it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import IO, Any, TypeAlias
from urllib.parse import unquote_to_bytes

import numpy as np

from loginfer.benchmark.benchmark import SPLITS, Benchmark
from loginfer.benchmark.folder import tables
from loginfer.benchmark.folder.card import one_line, terms
from loginfer.benchmark.folder.manifest import CARD, Role
from loginfer.benchmark.folder.manifest import file_of as text_file
from loginfer.benchmark.negatives.methods import method_or_unknown
from loginfer.errors import InputError
from loginfer.files import reading, shipped
from loginfer.kg import KnowledgeGraph, Triples

# The file that says what an export holds; it is written last.
EXPORT = "export.json"

NamedTriple: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be written, and where.

    Parameters
    ----------
    benchmark
        The benchmark, with the negatives that were chosen.
    folder
        The folder to write to, under its temporary name.
    name
        What the folder will be called.
    notes
        What a user should know, whatever the format.
    """

    benchmark: Benchmark
    folder: Path
    name: str
    notes: Sequence[str] = ()

    def sets(self) -> Iterator[tuple[Role, Triples]]:
        """Yield every set of triples: positives, negatives by method, the context graph."""
        for split, method, triples in self.benchmark.sets():
            yield Role(split, method), triples
        if self.benchmark.context is not None:
            yield Role("test", context=True), self.benchmark.context.triples


@dataclass(frozen=True, slots=True)
class Written:
    """What a format wrote.

    Parameters
    ----------
    files
        Files besides those of triples, each with what it holds.
    usage
        Markdown for the README: how to use the folder. None if the format wrote a README of its own.
    about
        What its reader must know, for `export.json`.
    notes
        What a user should know.
    """

    files: Sequence[tuple[str, str]] = ()
    usage: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format.

    Parameters
    ----------
    name
        What the command line calls it.
    write
        Writes everything but `export.json` and the README.
    reader
        Given a folder and its `export.json`, returns what reads one file of triples.
    file_of
        Returns the file in which a set of triples is written.
    any_name
        Whether it holds every name, even one with a tab or a line end.
    empty_sets
        Whether a set without triples has a file; some libraries cannot read one.
    """

    name: str
    write: Callable[[Job], Written]
    reader: Callable[[Path, Mapping[str, Any]], Callable[[Path], list[NamedTriple]]]
    file_of: Callable[[Role], str] = text_file
    any_name: bool = False
    empty_sets: bool = True


def file_with(ending: str) -> Callable[[Role], str]:
    """Return a function that names the file of a set: `train.nt`, `train_neg_pa.nt`, `context.nt` for `.nt`."""
    return lambda role: text_file(role).removesuffix(".txt") + ending


@dataclass(frozen=True)
class Exported:
    """What an export holds, by name.

    Parameters
    ----------
    to
        The format.
    name
        The benchmark's name.
    positives
        The triples of train, valid and test, in the benchmark's order.
    negatives
        By method and split.
    context
        The context graph of an inductive benchmark; None if there is none.
    about
        The content of `export.json`.
    """

    to: str
    name: str
    positives: Mapping[str, list[NamedTriple]]
    negatives: Mapping[str, Mapping[str, list[NamedTriple]]]
    context: list[NamedTriple] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = " / ".join(f"{len(triples):,}" for triples in self.positives.values())
        methods = ", ".join(self.negatives) or "none"
        return f"Exported({self.name!r} to {self.to}, positives {sizes}, negatives {methods})"


# -- tables ----------------------------------------------------------------------------------------

LABELS = ("negative", "positive")
RULES, PROVENANCE, ORIGINS, NOISE = (f"{what}.parquet" for what in ("rules", "provenance", "origins", "noise"))


def triple_writer(job: Job, *, words: bool) -> Callable[[Path, Role, Triples], None]:
    """Return a function that writes a set of triples with the columns subject, relation, object and label.

    Parameters
    ----------
    job
        What is written.
    words
        Whether the columns method and split follow.
    """
    import pyarrow as pa

    names = tables.NameColumns(job.benchmark)
    word_fields = [("method", tables.word_type()), ("split", tables.word_type())] if words else []
    schema = pa.schema([*names.fields(), ("label", pa.int64()), *word_fields])

    def columns(role: Role, triples: Triples) -> list[Any]:
        zeros = np.zeros(len(triples), dtype=np.int8)
        arrays = [*names.columns(triples), pa.array(np.full(len(triples), int(role.method is None)))]
        if words:
            positive = np.full(len(triples), role.method is None)
            arrays.append(tables.coded(zeros, [role.method or ""], missing=positive))
            arrays.append(tables.coded(zeros + np.int8(SPLITS.index(role.split)), SPLITS))
        return arrays

    def write(path: Path, role: Role, triples: Triples) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            parts = (columns(role, triples[start:stop]) for start, stop in tables.row_groups(len(triples)))
            tables.write_parts(stream, schema, parts)

    return write


def write_side_tables(job: Job) -> list[tuple[str, str]]:
    """Write rules, provenance, origins of negatives and noise, as far as they are known.

    Returns
    -------
    The files, each with what it holds.
    """
    benchmark, provenance, noise = (job.benchmark, job.benchmark.provenance, job.benchmark.noise)
    files: list[tuple[str, str]] = []

    def write(name: str, what: str, writer: Callable[[IO[bytes]], None]) -> None:
        with (job.folder / name).open("wb") as stream:
            writer(stream)
        files.append((name, what))

    if benchmark.rules:
        what = "the rules, counted from 0 in the order of the rows"
        write(RULES, what, lambda stream: _write_rules(benchmark, stream))
    if provenance is not None and len(provenance):
        what = "for every conclusion each rule that derives it, with one witness"
        write(PROVENANCE, what, lambda stream: tables.write_provenance(benchmark, provenance, stream))
    if any(
        len(origins) for negative_set in benchmark.clean.negatives.values() for origins in negative_set.origins.values()
    ):
        before = "" if noise is None else ", before the noise"
        what = f"for every negative where it came from{before}"
        write(ORIGINS, what, lambda stream: tables.write_negatives(benchmark.clean, stream))
    if noise is not None:
        what = "what is wrong with the positives and negatives of train on purpose"
        write(NOISE, what, lambda stream: tables.write_noise(benchmark, noise, stream))
    return files


def _write_rules(benchmark: Benchmark, stream: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"rule": pa.string(), "pattern": pa.string(), "support": pa.int64(), "new": pa.int64(),
             "sampled": pa.int64(), "confidence": pa.float64(), "overlap": pa.float64()}  # fmt: skip
    columns = {
        name: pa.array([str(r.rule) if name == "rule" else getattr(r, name) for r in benchmark.rules], kind)
        for name, kind in types.items()
    }
    pq.write_table(pa.table(columns), stream, compression="zstd", store_schema=False)


def read_triples(path: Path) -> list[NamedTriple]:
    """Read the triples of a file."""
    from loginfer.kg.formats.parquet import ParquetFile, parquet_errors

    names = ["subject", "relation", "object"]
    with ParquetFile(path, path) as file, parquet_errors(path):
        table = file.read(names)
        columns = [table.column(name).to_pylist() for name in names]
    return list(zip(*columns, strict=True))


# -- names -----------------------------------------------------------------------------------------

PLAIN, ENCODED = "as they are", "percent-encoded"


@dataclass(frozen=True, slots=True)
class Texts:
    """How the names of a graph are written: one text for each id.

    Parameters
    ----------
    entities, relations
        The texts.
    encoded
        Of which vocabularies they are percent-encoded: `entities`, `relations`.
    """

    entities: Sequence[str]
    relations: Sequence[str]
    encoded: tuple[str, ...] = ()

    @property
    def about(self) -> dict[str, Any]:
        """What `export.json` says about them."""
        kinds = ("entities", "relations")
        return {"names": {kind: ENCODED if kind in self.encoded else PLAIN for kind in kinds}}

    @property
    def notes(self) -> list[str]:
        """What a user should know about them."""
        return [
            f"some names of {kind} cannot be written as they are: all are percent-encoded, and "
            "urllib.parse.unquote has them back"
            for kind in self.encoded
        ]


def safe_texts(graph: KnowledgeGraph, entities: re.Pattern[str], relations: re.Pattern[str]) -> Texts:
    """Return how names are written in a format.

    Parameters
    ----------
    graph
        Has the names.
    entities, relations
        Find in a name what the format cannot hold.
    """
    written, encoded = [], []
    for kind, vocabulary, unsafe in (("entities", graph.entities, entities), ("relations", graph.relations, relations)):
        names: list[str] = list(vocabulary)
        if any(unsafe.search(name) for name in names):
            encoded.append(kind)
            names = [_encoded(name, unsafe) for name in names]
        written.append(names)
    return Texts(written[0], written[1], tuple(encoded))


def _encoded(name: str, unsafe: re.Pattern[str]) -> str:
    """Encode `%`, and every character that the expression finds."""
    return unsafe.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name.replace("%", "%25"))


def decoder(about: Mapping[str, Any], kind: str) -> Callable[[str], str]:
    """Return the function that turns the texts of a vocabulary into names, as `export.json` says."""
    how = about.get("names")
    return _decoded if isinstance(how, dict) and how.get(kind) == ENCODED else str


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InputError(f"`{text[:60]}` is no percent-encoded name") from None


# -- text files ------------------------------------------------------------------------------------

_NUMBER = re.compile(r"[0-9]{1,18}")


def write_text(path: Path, text: str) -> None:
    """Write a text file with Unix line ends."""
    path.write_text(text, encoding="utf-8", newline="\n")


def write_named_sets(job: Job, texts: Texts, *, empty: bool = True) -> None:
    """Write every set as lines of subject, relation and object between tabs; perhaps without empty ones."""
    from loginfer.kg.formats.tsv import write_lines

    entities = [text.encode() for text in texts.entities]
    relations = [text.encode() for text in texts.relations]
    for role, triples in job.sets():
        if empty or len(triples):
            with (job.folder / text_file(role)).open("wb") as stream:
                write_lines(stream, triples, (entities, relations, entities), b"\t", b"\n")


def write_id_names(
    job: Job, names: Sequence[str], texts: Texts, *, id_first: bool = True, counted: bool = False
) -> None:
    """Write two files that give ids to entities and to relations; `read_id_names` reads one of them.

    Parameters
    ----------
    job
        What to write.
    names
        The two files.
    texts
        How names are written.
    id_first
        Whether the id stands before the name.
    counted
        Whether the first line is the number of names.
    """
    for name, words in zip(names, (texts.entities, texts.relations), strict=True):
        lines = (f"{i}\t{word}\n" if id_first else f"{word}\t{i}\n" for i, word in enumerate(words))
        write_text(job.folder / name, (f"{len(words)}\n" if counted else "") + "".join(lines))


def write_ids(path: Path, triples: Triples, order: Sequence[int], between: bytes, head: bytes = b"") -> None:
    """Write triples as ids.

    Parameters
    ----------
    path
        Where to.
    triples
        int32[n, 3].
    order
        Which column stands where: `(0, 2, 1)` for subject, object, relation.
    between
        What stands between the ids of a line.
    head
        What stands before the first line.
    """
    rows = triples[:, list(order)].tolist()
    line = between.join([b"%d", b"%d", b"%d"]) + b"\n"
    with path.open("wb") as stream:
        stream.write(head)
        stream.writelines(line % (a, b, c) for a, b, c in rows)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file; only a line feed ends one."""
    with reading(path):
        content = path.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise InputError("not valid UTF-8", where=str(path)) from error
    lines = text.split("\n")
    if lines.pop():
        raise InputError("the last line does not end", where=str(path))
    return lines


def read_named_lines(
    about: Mapping[str, Any], unquoted: Callable[[str], str] | None = None
) -> Callable[[Path], list[NamedTriple]]:
    """Return a function that reads a file of names; `unquoted` undoes the quoting of a format."""
    entity, relation = decoder(about, "entities"), decoder(about, "relations")

    def read(path: Path) -> list[NamedTriple]:
        triples: list[NamedTriple] = []
        for number, line in enumerate(read_lines(path), start=1):
            parts = line.split("\t")
            if len(parts) != 3:
                where = f"{path}, line {number}"
                raise InputError(f"expected 3 tab-separated columns, found {len(parts)}", where=where)
            s, r, o = map(unquoted, parts) if unquoted else parts
            triples.append((entity(s), relation(r), entity(o)))
        return triples

    return read


def read_id_names(
    path: Path, *, id_first: bool, counted: bool = False, decode: Callable[[str], str] = str
) -> list[str]:
    """Read a file that gives names to ids.

    Parameters
    ----------
    path
        The file.
    id_first
        Whether the id stands before the name.
    counted
        Whether the first line is the number of names.
    decode
        Turns texts into names.

    Returns
    -------
    The names, in the order of their ids.
    """
    lines = _read_counted(path) if counted else read_lines(path)
    names: dict[int, str] = {}
    for line in lines:
        first, tab, second = line.partition("\t") if id_first else line.rpartition("\t")
        number, name = (first, second) if id_first else (second, first)
        if not tab or not _NUMBER.fullmatch(number):
            raise InputError(f"expected a name and its number, found `{line[:60]}`", where=str(path))
        names[int(number)] = decode(name)
    if sorted(names) != list(range(len(lines))):
        raise InputError(f"the numbers are not those from 0 to {len(lines) - 1}", where=str(path))
    return [names[i] for i in range(len(lines))]


def read_ids(
    path: Path, names: tuple[Sequence[str], Sequence[str]], order: Sequence[int], *, counted: bool = False
) -> list[NamedTriple]:
    """Read triples of ids as triples of names.

    Parameters
    ----------
    path
        The file.
    names
        Those of entities and of relations.
    order
        As for `write_ids`.
    counted
        Whether the first line is the number of triples.
    """
    entities, relations = names
    lines = _read_counted(path) if counted else read_lines(path)
    subject, relation, object_ = (list(order).index(column) for column in range(3))
    triples: list[NamedTriple] = []
    for line in lines:
        try:
            ids = [int(number) for number in line.split()]
            if len(ids) != 3 or min(ids) < 0:
                raise ValueError(line)
            triples.append((entities[ids[subject]], relations[ids[relation]], entities[ids[object_]]))
        except (ValueError, IndexError):
            raise InputError(f"`{line[:60]}` is no triple of known ids", where=str(path)) from None
    return triples


def _read_counted(path: Path) -> list[str]:
    """Return the lines of a file without the first one, which is the number of the others."""
    lines = read_lines(path)
    if not lines or not _NUMBER.fullmatch(lines[0]) or int(lines[0]) != len(lines) - 1:
        raise InputError("the first line is not the number of those that follow", where=str(path))
    return lines[1:]


def quoted(text: str) -> str:
    """Return a text as a double-quoted scalar of YAML, which every reader takes for a text."""
    escaped = (
        c if c.isprintable() and c not in '"\\' else f"\\{c}" if c in '"\\' else f"\\U{ord(c):08X}" for c in text
    )
    return f'"{"".join(escaped)}"'


# -- the README ------------------------------------------------------------------------------------

# What Markdown would take for an element, a link, code or stress.
_MARKS = re.compile(r"[\\`*<\[]|&(?=#?\w+;)")


def write_readme(job: Job, format_: ExportFormat, written: Written) -> None:
    """Write the README of an export, if the format has not written one."""
    if written.usage is None:
        return
    sets = [(format_.file_of(role), about_role(role)) for role, t in job.sets() if format_.empty_sets or len(t)]
    files = [*sets, *written.files, (EXPORT, "what was exported, counts, and size and sha256 of every file")]
    lines = [
        title(job.benchmark),
        "",
        f"A LogInfer benchmark, exported to the format `{format_.name}`.",
        "",
        "| file | what it holds |",
        "|---|---|",
        *(f"| `{name}` | {what} |" for name, what in files),
        "",
        "## Use",
        "",
        written.usage,
        *notes([*job.notes, *written.notes]),
        *figures(job.benchmark),
        "",
        *licence(job.benchmark),
    ]
    write_text(job.folder / CARD, "\n".join(lines) + "\n")


def usage(format_name: str, **values: object) -> str:
    """Return how an export is used, as `benchmark/data/export.toml` says it, with these values for its `$names`."""
    return Template(shipped("benchmark/data/export.toml")[format_name]).substitute(values)


def about_role(role: Role) -> str:
    """Say what a file of triples holds."""
    if role.context:
        return "the context graph: what is known about the constants of test"
    if role.method is None:
        return f"P_{role.split}: positives"
    return f"N_{role.split}: negatives, {method_or_unknown(role.method).title}"


def title(benchmark: Benchmark) -> str:
    """Return the benchmark's name as a heading, its characters as they are."""
    return "# " + _MARKS.sub(lambda mark: f"\\{mark[0]}", one_line(benchmark.name))


def notes(remarks: Sequence[str]) -> list[str]:
    """Return what a user should know, as a section; no lines if there is nothing."""
    return ["## Notes", "", *(f"- {one_line(note)}" for note in remarks), ""] if remarks else []


def figures(benchmark: Benchmark) -> list[str]:
    """Return a table of the sizes of all sets."""
    rows = [("positives", benchmark.positives.sizes)]
    rows += [(f"negatives {method}", negative_set.splits.sizes) for method, negative_set in benchmark.negatives.items()]
    context = benchmark.context
    return [
        "## Figures",
        "",
        "| | train | valid | test |",
        "|---|---:|---:|---:|",
        *(f"| {what} | " + " | ".join(f"{n:,}" for n in sizes.values()) + " |" for what, sizes in rows),
        *([] if context is None else [f"| context graph | | | {len(context):,} |"]),
    ]


def licence(benchmark: Benchmark) -> list[str]:
    """Return what is known about the terms of the graph."""
    return terms(benchmark, "" if benchmark.recipe is None else f" `{one_line(benchmark.recipe.kg)}`")
