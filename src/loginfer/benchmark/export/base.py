"""What a format is; lines, ids, tables, safe names.

What a format of exports is, what it writes from, and what comes back.

Parquet files of exports: sets of triples with labels, and what else is known as tables.

Names that a format cannot hold, made safe so that they can be had back.

Where every name of a vocabulary is fine, all are written as they are. Where one is not, the vocabulary is
percent-encoded: what the format cannot hold, and `%` itself. `export.json` says which it is.

Text files of exports: lines of names, lines of ids, and files that give names to ids.

Texts as YAML writes them between double quotes, so that no reader takes one for something else.

The README of an export: what its files are, and how they are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

import numpy as np

from loginfer.benchmark.benchmark import SPLITS, Benchmark, Origins
from loginfer.benchmark.folder.card import source_entry
from loginfer.benchmark.folder.manifest import CARD, Role
from loginfer.benchmark.folder.tables import (
    NameColumns,
    coded,
    row_groups,
    word_type,
    write_negatives,
    write_parts,
    write_provenance,
)
from loginfer.benchmark.negatives.methods import method_or_unknown
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import KnowledgeGraph, Triples

# The file that tells what an export holds; it is written last.
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
        for split, triples in self.benchmark.positives.items():
            yield Role(split), triples
        for method, made in self.benchmark.negatives.items():
            for split, triples in made.splits.items():
                yield Role(split, method), triples
        if self.benchmark.context is not None:
            yield Role("test", context=True), self.benchmark.context.triples


@dataclass(frozen=True, slots=True)
class Written:
    """What a format has to say about what it wrote.

    Parameters
    ----------
    about
        What its reader must know, for `export.json`.
    notes
        What a user should know.
    """

    about: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format.

    Parameters
    ----------
    name
        What the command line calls it.
    file_of
        Returns the file in which a set of triples is written.
    write
        Writes everything but `export.json`.
    reader
        Given a folder and its `export.json`, returns what reads one file of triples.
    any_name
        Whether it holds every name, even one with a tab or a line end.
    empty_sets
        Whether a set without triples has a file; some libraries cannot read one.
    """

    name: str
    file_of: Callable[[Role], str]
    write: Callable[[Job], Written]
    reader: Callable[[Path, Mapping[str, Any]], Callable[[Path], list[NamedTriple]]]
    any_name: bool = False
    empty_sets: bool = True


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


LABELS = ("negative", "positive")
RULES, PROVENANCE, ORIGINS = "rules.parquet", "provenance.parquet", "origins.parquet"
NOISE = "noise.parquet"


def triple_writer(job: Job, *, words: bool) -> Callable[[Path, Role, Triples], None]:
    """Return what writes a set of triples with the columns subject, relation, object and label.

    Parameters
    ----------
    job
        What is written.
    words
        Whether the columns method and split follow.
    """
    import pyarrow as pa

    names = NameColumns(job.benchmark)
    more = [("method", word_type()), ("split", word_type())] if words else []
    schema = pa.schema([*names.fields(), ("label", pa.int64()), *more])

    def columns(role: Role, triples: Triples) -> list[Any]:
        first = np.zeros(len(triples), dtype=np.int8)
        found = [*names.columns(triples), pa.array(np.full(len(triples), int(role.method is None)))]
        if words:
            positive = np.full(len(triples), role.method is None)
            found.append(coded(first, [role.method or ""], missing=positive))
            found.append(coded(first + np.int8(SPLITS.index(role.split)), SPLITS))
        return found

    def write(path: Path, role: Role, triples: Triples) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            parts = (columns(role, triples[start:stop]) for start, stop in row_groups(len(triples)))
            write_parts(stream, schema, parts)

    return write


def write_more(job: Job) -> list[tuple[str, str]]:
    """Write rules, provenance, origins of negatives and noise, as far as they are known.

    Returns
    -------
    The files, each with what it holds.
    """
    benchmark, files = job.benchmark, []
    if benchmark.rules:
        _write_rules(job)
        files.append((RULES, "the rules, counted from 0 in the order of the rows"))
    if benchmark.provenance is not None and len(benchmark.provenance):
        with (job.folder / PROVENANCE).open("wb") as stream:
            write_provenance(benchmark, benchmark.provenance, stream)
        files.append((PROVENANCE, "for every conclusion each rule that derives it, with one witness"))
    if any(map(len, _origins(benchmark.clean))):
        with (job.folder / ORIGINS).open("wb") as stream:
            write_negatives(benchmark.clean, stream)
        before = "" if benchmark.noise is None else ", before the noise"
        files.append((ORIGINS, f"for every negative where it came from{before}"))
    if benchmark.noise is not None:
        from loginfer.benchmark.folder.tables import write_noise

        with (job.folder / NOISE).open("wb") as stream:
            write_noise(benchmark, benchmark.noise, stream)
        files.append((NOISE, "what is wrong with the positives and negatives of train on purpose"))
    return files


def _origins(benchmark: Benchmark) -> Iterator[Origins]:
    for made in benchmark.negatives.values():
        yield from made.origins.values()


def _write_rules(job: Job) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rules = job.benchmark.rules
    columns: dict[str, Any] = {
        "rule": pa.array([str(known.rule) for known in rules], pa.string()),
        "pattern": pa.array([known.pattern for known in rules], pa.string()),
        "support": pa.array([known.support for known in rules], pa.int64()),
        "new": pa.array([known.new for known in rules], pa.int64()),
        "sampled": pa.array([known.sampled for known in rules], pa.int64()),
        "confidence": pa.array([known.confidence for known in rules], pa.float64()),
        "overlap": pa.array([known.overlap for known in rules], pa.float64()),
    }
    pq.write_table(pa.table(columns), job.folder / RULES, compression="zstd", store_schema=False)


def read_triples(path: Path) -> list[NamedTriple]:
    """Read the triples of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with reading(path), pq.ParquetFile(path) as file:
            found = file.read(columns=["subject", "relation", "object"])
            columns = [found.column(name).to_pylist() for name in ("subject", "relation", "object")]
    except (pa.ArrowException, KeyError, OSError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise InputError(f"no readable Parquet file of triples: {why}", where=str(path)) from error
    return list(zip(*columns, strict=True))


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
        """What `export.json` tells of them."""
        kinds = ("entities", "relations")
        return {"names": {kind: ENCODED if kind in self.encoded else PLAIN for kind in kinds}}

    @property
    def notes(self) -> list[str]:
        """What a user should know of them."""
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
    places = {place for found in unsafe.finditer(name) for place in range(*found.span())}
    return "".join(
        _hexadecimal(letter) if letter == "%" or place in places else letter for place, letter in enumerate(name)
    )


def _hexadecimal(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode())


def decoder(about: Mapping[str, Any], kind: str) -> Callable[[str], str]:
    """Return what turns the texts of a vocabulary into names, as `export.json` tells."""
    how = about.get("names")
    return _decoded if isinstance(how, dict) and how.get(kind) == ENCODED else str


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InputError(f"`{text[:60]}` is no percent-encoded name") from None


_NUMBER = re.compile(r"[0-9]{1,18}")


# -- writing ---------------------------------------------------------------------------------------


def write_text(path: Path, text: str) -> None:
    """Write a text file with Unix line ends."""
    path.write_text(text, encoding="utf-8", newline="\n")


def write_named_sets(job: Job, texts: Texts, file_of: Callable[[Role], str], *, empty: bool = True) -> None:
    """Write every set as lines of subject, relation and object between tabs.

    Parameters
    ----------
    job
        What to write.
    texts
        How names are written.
    file_of
        The file of each set.
    empty
        Whether sets without triples get a file.
    """
    from loginfer.kg.formats.scan import joined
    from loginfer.kg.formats.tsv import write_lines

    entities = joined([text.encode() for text in texts.entities])
    relations = joined([text.encode() for text in texts.relations])
    for role, triples in job.sets():
        if empty or len(triples):
            with (job.folder / file_of(role)).open("wb") as stream:
                write_lines(stream, triples, (entities, relations, entities), b"\t", b"\n")


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


# -- reading ---------------------------------------------------------------------------------------


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
    """Return what reads a file of names; `unquoted` undoes what a format does to single texts."""
    entity, relation = decoder(about, "entities"), decoder(about, "relations")

    def read(path: Path) -> list[NamedTriple]:
        found: list[NamedTriple] = []
        for number, line in enumerate(read_lines(path), start=1):
            parts = line.split("\t")
            if len(parts) != 3:
                where = f"{path}, line {number}"
                raise InputError(f"expected 3 tab-separated columns, found {len(parts)}", where=where)
            s, r, o = map(unquoted, parts) if unquoted else parts
            found.append((entity(s), relation(r), entity(o)))
        return found

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
    lines = read_lines(path)
    if counted:
        lines = _counted(lines, path)
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
    lines = read_lines(path)
    if counted:
        lines = _counted(lines, path)
    subject, relation, object_ = (list(order).index(place) for place in range(3))
    found: list[NamedTriple] = []
    for line in lines:
        try:
            ids = _three(map(int, line.split()))
            found.append((entities[ids[subject]], relations[ids[relation]], entities[ids[object_]]))
        except (ValueError, IndexError):
            raise InputError(f"`{line[:60]}` is no triple of known ids", where=str(path)) from None
    return found


def _three(numbers: Iterable[int]) -> tuple[int, int, int]:
    first, second, third = numbers
    if min(first, second, third) < 0:
        raise ValueError("a negative id")
    return first, second, third


def _counted(lines: list[str], path: Path) -> list[str]:
    if not lines or not _NUMBER.fullmatch(lines[0]) or int(lines[0]) != len(lines) - 1:
        raise InputError("the first line is not the number of those that follow", where=str(path))
    return lines[1:]


def quoted(text: str) -> str:
    """Return a text as a double-quoted scalar; what cannot be printed is escaped."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08X}"


# What Markdown would take for an element, a link, code or stress.
_MARKS = re.compile(r"[\\`*<\[]|&(?=#?\w+;)")


def write_readme(
    job: Job, known: ExportFormat, others: Sequence[tuple[str, str]], usage: str, told: Sequence[str] = ()
) -> None:
    """Write the README of an export.

    Parameters
    ----------
    job
        What is written.
    known
        The format.
    others
        Files besides those of triples, each with what it holds.
    usage
        Markdown: how to use the folder.
    told
        What a user of this format should know.
    """
    sets = [(known.file_of(r), about_role(r)) for r, t in job.sets() if known.empty_sets or len(t)]
    files = [*sets, *others, (EXPORT, "what was exported, counts, and size and sha256 of every file")]
    lines = [
        title(job.benchmark),
        "",
        f"A LogInfer benchmark, exported to the format `{known.name}`.",
        "",
        "| file | what it holds |",
        "|---|---|",
        *(f"| `{name}` | {what} |" for name, what in files),
        "",
        "## Use",
        "",
        usage,
        *notes([*job.notes, *told]),
        *figures(job.benchmark),
        "",
        *licence(job.benchmark),
    ]
    write_text(job.folder / CARD, "\n".join(lines) + "\n")


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


def notes(told: Sequence[str]) -> list[str]:
    """Return what a user should know, as a section; nothing where there is nothing to tell."""
    return ["## Notes", "", *(f"- {one_line(note)}" for note in told), ""] if told else []


def figures(benchmark: Benchmark) -> list[str]:
    """Return a table of the sizes of all sets."""
    rows = [("positives", benchmark.positives.sizes)]
    rows += [(f"negatives {method}", made.splits.sizes) for method, made in benchmark.negatives.items()]
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
    entry = source_entry(benchmark)
    if entry is None:
        graph = "" if benchmark.recipe is None else f" `{one_line(benchmark.recipe.kg)}`"
        return ["## Licence", "", f"The triples come from the graph{graph}, whose terms apply to them."]
    return [
        "## Licence",
        "",
        f"The triples come from {entry.name}. {entry.licence}",
        "",
        f"Please cite: {entry.citation}",
    ]


def one_line(text: str) -> str:
    """Return a text without line ends."""
    return " ".join(text.split())
