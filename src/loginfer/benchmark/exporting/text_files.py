"""Text files of exports: lines of names, lines of ids, and files that give names to ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loginfer.benchmark.exporting.interface import Job, NamedTriple
from loginfer.benchmark.exporting.names import Texts, decoder
from loginfer.benchmark.layout import Role
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import Triples

__all__ = [
    "read_id_names",
    "read_ids",
    "read_lines",
    "read_named_lines",
    "write_ids",
    "write_named_sets",
    "write_text",
]

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
    from loginfer.kg.formats.lines import write_lines
    from loginfer.kg.scan.names import joined

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
    path: Path,
    names: tuple[Sequence[str], Sequence[str]],
    order: Sequence[int],
    *,
    counted: bool = False,
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
