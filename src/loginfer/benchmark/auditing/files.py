"""Checks of files and sets.

Checks of the folder itself: all files are there, unchanged, readable, and as the manifest says.

Checks of what is left of K: its checksum, and the lists of names that go with P_train.

Checks of the six sets: what the definition of a benchmark demands (section 2.2), without any rule.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.material import Material, set_name
from loginfer.benchmark.auditing.report import CannotCheckError, Example, Problem, error, note, warning
from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.folder.manifest import CANDIDATES, GIVEN, RULES, is_ours, role_of
from loginfer.benchmark.folder.reading import RawFolder
from loginfer.benchmark.negatives.methods import method_or_unknown
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import KnowledgeGraph, Triples, Vocabulary


def _told(raw: RawFolder, *kinds: str) -> Iterator[Problem]:
    for problem in raw.problems:
        if problem.kind in kinds and problem.file != RULES:
            examples = [Example(text, problem.file) for text in problem.examples]
            yield error(problem.count, problem.message, examples or [Example(problem.message, problem.file)])


def missing_files(material: Material) -> Iterator[Problem]:
    """Every file that the manifest lists is there, and every split that a benchmark has."""
    raw = material.folder
    yield from _told(raw, "missing")
    told = {problem.file for problem in raw.problems if problem.kind == "missing"}
    for method in (None, *raw.methods):
        for split in SPLITS:
            name = material.file(split, method)
            if (split, method) in material.lines or name in told:
                continue
            # Others leave it to a system to make negatives for training.
            say = warning if split == "train" and method == GIVEN and raw.manifest is None else error
            yield say(1, f"there is no file with {set_name(split, method)}", [Example(f"`{name}`")])
    for split in SPLITS:
        lines = material.lines.get((split, None))
        if lines is not None and not len(lines.triples):
            # The builder says so when there are too few conclusions for every split.
            admitted = split != "train" and (raw.manifest or {}).get("positives", {}).get(split) == 0
            yield (warning if admitted else error)(1, f"`{lines.file}` holds no triples")


def changed_files(material: Material) -> Iterator[Problem]:
    """Sizes and checksums are those of the manifest."""
    if not material.manifest:
        return
    yield from _told(material.folder, "bytes", "sha256")


def readable(material: Material) -> Iterator[Problem]:
    """Manifest and tables can be read, agree with each other, and no two files claim the same set."""
    yield from _told(material.folder, "manifest", "unreadable", "twice")


def unreadable_lines(material: Material) -> Iterator[Problem]:
    """Every line of a file of triples is one."""
    yield from _told(material.folder, "lines")


def unlisted_files(material: Material) -> Iterator[Problem]:
    """No file that looks like a part of the benchmark is unknown to the manifest."""
    if not material.manifest:
        return
    strange = [name for name in material.folder.unlisted if is_ours(name) or role_of(name) is not None]
    if strange:
        message = f"the manifest does not mention {len(strange):,} files that look like the benchmark's"
        yield warning(len(strange), message, [Example(f"`{name}`") for name in strange])


def sizes(material: Material) -> Iterator[Problem]:
    """Compare the sizes of the sets with the manifest."""
    manifest, benchmark = material.manifest, material.benchmark
    wrong: list[Example] = []

    def compare(what: str, told: Any, found: int, file: str) -> None:
        if told is not None and told != found:
            wrong.append(Example(f"{what} has {found:,} triples; the manifest says {told}", file))

    positives: Any = manifest.get("positives") or {}
    for split, triples in material.given.positives.items():
        compare(set_name(split), positives.get(split), len(triples), material.file(split))
    for method, made in benchmark.negatives.items():
        entry: Any = manifest.get("negatives", {}).get(method) or {}
        for split, triples in made.splits.items():
            told = entry.get(split) or {}
            what = f"{set_name(split, method)} of `{method}`"
            compare(what, told.get("reached"), len(triples), material.file(split, method))
    conclusions: Any = manifest.get("conclusions") or {}
    if benchmark.provenance is not None:
        counts = np.bincount(benchmark.provenance.split, minlength=len(SPLITS)).tolist()
        for split, count in zip(SPLITS, counts, strict=True):
            compare(f"the provenance of {set_name(split)}", conclusions.get(split), count, "provenance.parquet")
    entry = manifest.get("kg") or {}
    if benchmark.kg is not None and not wrong:
        compare("K", entry.get("triples"), len(benchmark.kg), material.file("train"))
    if wrong:
        yield error(len(wrong), f"{len(wrong):,} sets have another size than the manifest says", wrong)


def recipe(material: Material) -> Iterator[Problem]:
    """Compare the folder with its recipe, and the recipe with settings that are expected."""
    asked = material.benchmark.recipe
    if asked is None:
        raise CannotCheckError("the recipe is not known (no manifest.json)")
    told = asked.as_dict()
    wanted_settings = {k: list(v) if isinstance(v, tuple) else v for k, v in material.settings.items()}
    wrong = {key: value for key, value in wanted_settings.items() if told.get(key) != value}
    if wrong:
        examples = [Example(f"`{key}` is {told.get(key)!r}, expected {v!r}") for key, v in wrong.items()]
        yield error(len(wrong), f"{len(wrong):,} settings of the recipe are not those expected", examples)
    there = tuple(material.benchmark.negatives)
    if set(there) != set(asked.negatives):
        names = ", ".join(there) or "none"
        yield error(1, f"the recipe asks for negatives {', '.join(asked.negatives)}; there are {names}")
    for method, made in material.benchmark.negatives.items():
        if method_or_unknown(method).size_of == "conclusions":
            continue  # as many as conclusions are asked for: see `balanced_heads`
        for split, wanted in made.asked.items():
            size = len(material.benchmark.positives[split])
            if wanted != size:
                message = f"{wanted:,} were asked for in {set_name(split, method)} of `{method}`, not {size:,}"
                yield error(1, message)


class _Digest(io.RawIOBase):
    """A file that keeps nothing but its checksum."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        return len(view)


def graph_sum(graph: KnowledgeGraph) -> str:
    """Return the sha256 of a graph: its triples as lines of three names, sorted, with tabs in between."""
    from loginfer.kg.formats.tsv import write_lines

    entities, relations = ((names.data, names.offsets) for names in (graph.entities, graph.relations))
    sink = _Digest()
    write_lines(sink, graph.triples, (entities, relations, entities), b"\t", b"\n")  # type: ignore[arg-type]
    return sink.digest.hexdigest()


def kg_sum(material: Material) -> Iterator[Problem]:
    """P_train without its conclusions is the graph that the manifest says the benchmark was made from."""
    told = (material.manifest.get("kg") or {}).get("sha256")
    if told is None:
        raise CannotCheckError("the manifest does not tell the checksum of K")
    found = graph_sum(material.kg)
    if found != told:
        yield error(
            1,
            "P_train without its conclusions is not the graph K that the manifest tells of: some triple of "
            "K was removed, added or changed",
            [Example(f"sha256 {found}, expected {told}", material.file("train"))],
        )


def candidate_files(material: Material) -> Iterator[Problem]:
    """Compare the candidate files with the constants, relations and types of P_train."""
    folder, graph = material.folder.path, material.given.graph
    ranked = graph if material.given.context is None else material.given.context
    sources = zip(
        CANDIDATES,
        ((graph.entities, ranked.consts), (graph.relations, graph.rels), (graph.entities, graph.types)),
        strict=True,
    )
    seen = False
    for name, (vocabulary, ids) in sources:
        if not (folder / name).is_file():
            continue
        seen = True
        yield from _compared(folder / name, name, vocabulary, ids)
    if not seen:
        raise CannotCheckError("there are no candidate files")


def _compared(path: Any, name: str, vocabulary: Vocabulary, ids: Any) -> Iterator[Problem]:
    try:
        with reading(path):
            lines = path.read_bytes().decode("utf-8").splitlines()
    except (UnicodeDecodeError, InputError):
        yield error(1, f"`{name}` cannot be read", [Example(f"`{name}`", name)])
        return
    # Released files have an id behind each name.
    listed = [line.split("\t")[0] for line in lines if line.strip()]
    places = Vocabulary.of(listed)
    wanted = np.zeros(len(vocabulary), dtype=bool)
    wanted[ids] = True
    found = places.positions_in(vocabulary)
    known = found[found >= 0]
    strange = [places[i] for i in np.flatnonzero((found < 0) | ~wanted[found])[:5].tolist()]
    count = int(((found < 0) | ~wanted[found]).sum())
    wanted[known] = False
    missing = np.flatnonzero(wanted)
    repeated = len(listed) - len(places)
    examples = [Example(f"`{text}` is not in P_train", name) for text in strange]
    examples += [Example(f"`{vocabulary[i]}` is missing", name) for i in missing[:5].tolist()]
    if count or len(missing) or repeated:
        total = count + len(missing) + repeated
        yield error(total, f"`{name}` differs from the names of P_train in {total:,} places", examples)


def duplicates(material: Material) -> Iterator[Problem]:
    """No triple is in a file twice."""
    if not material.lines:
        raise CannotCheckError("the benchmark is in memory, where sets have no duplicates")
    for (split, method), lines in material.lines.items():
        keys = material.graph.keys.pack(lines.triples)
        order = np.argsort(keys, kind="stable")
        again = np.sort(order[1:][keys[order][1:] == keys[order][:-1]])
        if len(again):
            examples = material.examples(lines.triples[again], split, method, occurrence=1)
            yield error(len(again), f"`{lines.file}` repeats {_count(again, 'triple')}", examples)


def disjoint(material: Material) -> Iterator[Problem]:
    """No two sets share a triple: neither among positives and negatives, nor across."""
    positive: list[tuple[str, str | None]] = [(split, None) for split in SPLITS]
    yield from _overlaps(material, list(combinations(positive, 2)))
    for method in material.benchmark.negatives:
        negative: list[tuple[str, str | None]] = [(split, method) for split in SPLITS]
        pairs = [(p, n) for p in positive for n in negative]
        yield from _overlaps(material, [*pairs, *combinations(negative, 2)])


def _overlaps(
    material: Material, pairs: list[tuple[tuple[str, str | None], tuple[str, str | None]]]
) -> Iterator[Problem]:
    for one, two in pairs:
        both = np.intersect1d(material.packed[one], material.packed[two], assume_unique=True)
        if len(both):
            names = " and ".join(set_name(*key) for key in (one, two))
            method = two[1]
            of = "" if method is None else f" of `{method}`"
            examples = material.examples(material.graph.keys.unpack(both), *two)
            yield error(len(both), f"{names}{of} share {_count(both, 'triple')}", examples)


def conclusions_in_kg(material: Material) -> Iterator[Problem]:
    """P_valid and P_test hold conclusions that are new: none is in K."""
    for split in ("valid", "test"):
        triples = material.benchmark.positives[split]
        known = triples[material.kg.contains(triples)]
        if len(known):
            message = f"{_count(known, 'triple')} of {set_name(split)} are in K"
            yield error(len(known), message, material.examples(known, split))


def signature(material: Material) -> Iterator[Problem]:
    """Sig(P_valid) and Sig(P_test) are included in Sig(P_train)."""
    for split in ("valid", "test"):
        strange = _strange(material, material.benchmark.positives[split])
        if len(strange):
            message = f"{_count(strange, 'triple')} of {set_name(split)} have a name that P_train has not"
            yield error(len(strange), message, material.examples(strange, split))


def names_of_negatives(material: Material) -> Iterator[Problem]:
    """Whether the negatives use names that P_train has not: they can be told apart by that alone."""
    for method, negatives in material.negatives.items():
        strange = {split: _strange(material, triples) for split, triples in negatives.splits.items()}
        count = sum(map(len, strange.values()))
        if count:
            listed = ", ".join(f"{len(found):,} in {split}" for split, found in strange.items())
            message = f"{count:,} negatives of `{method}` have a name that P_train has not ({listed})"
            # Heads of rules that conclude nothing are names that only negatives have: the text wants them.
            say = note if material.protocol is not None else warning
            examples = [e for s, found in strange.items() for e in material.examples(found, s, method)]
            yield say(count, message, examples)


def _strange(material: Material, triples: Triples) -> Triples:
    """Return the triples with a constant, type or relation that no training triple has in such a place.

    Constants and types are different things: a name that is only known as a type is no known constant.
    """
    graph = material.benchmark.seen
    constants = np.zeros(len(graph.entities), dtype=bool)
    constants[graph.consts] = True
    types = np.zeros(len(graph.entities), dtype=bool)
    types[graph.types] = True
    relations = np.zeros(len(graph.relations), dtype=bool)
    relations[graph.preds] = True
    is_type = np.zeros(len(triples), dtype=bool)
    if graph.type_relation is not None:
        is_type = triples[:, 1] == graph.type_relation
    objects = np.where(is_type, types[triples[:, 2]], constants[triples[:, 2]])
    known = constants[triples[:, 0]] & relations[triples[:, 1]] & objects
    return np.asarray(triples[~known])


def balance(material: Material) -> Iterator[Problem]:
    """There are as many negatives as positives in each split; near misses are as many as conclusions."""
    for method, negatives in material.negatives.items():
        if method_or_unknown(method).size_of == "conclusions":
            continue  # as many as conclusions: see `balanced_heads`
        for split, triples in negatives.splits.items():
            wanted, found = len(material.benchmark.positives[split]), len(triples)
            if wanted == found:
                continue
            if material.raw is not None and (split, method) not in material.lines:
                continue  # a file that is not there is told elsewhere
            message = f"{set_name(split)} has {wanted:,} triples, {set_name(split, method)} of `{method}` {found:,}"
            # The builder says so when it runs out of candidates.
            admitted = bool(negatives.notes) and negatives.asked.get(split) == wanted and found < wanted
            say = warning if admitted else error
            yield say(abs(wanted - found), message + (": candidates ran out" if admitted else ""))


def _count(things: npt.NDArray[np.generic], word: str) -> str:
    return f"{len(things):,} {word}" + ("" if len(things) == 1 else "s")
