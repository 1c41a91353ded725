"""Checks of the folder and its sets, without any rule: files, sizes, sums, and what a benchmark is (section 2.2)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer._version import __version__
from loginfer.benchmark.auditing.audited import AuditedBenchmark, set_name
from loginfer.benchmark.auditing.findings import CannotCheckError, Example, Finding, error, errors, note, warning
from loginfer.benchmark.auditing.variants import is_inductive, is_noisy
from loginfer.benchmark.benchmark import SPLITS, Signature
from loginfer.benchmark.folder import manifest as layout
from loginfer.benchmark.folder.card import make_card
from loginfer.benchmark.folder.manifest import CANDIDATES, CARD, CROISSANT, GIVEN, RULES, is_ours, role_of
from loginfer.benchmark.folder.reading import BenchmarkFolder
from loginfer.benchmark.negatives.methods import method_or_unknown
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import Vocabulary
from loginfer.kg.graph import Ids

# -- the folder -------------------------------------------------------------------------------------


def _problems(folder: BenchmarkFolder, *kinds: str) -> Iterator[Finding]:
    for problem in folder.problems:
        if problem.kind in kinds and problem.file != RULES:
            examples = [Example(text, problem.file) for text in problem.examples]
            yield error(problem.count, problem.message, examples or [Example(problem.message, problem.file)])


def missing_files(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Every file that the manifest lists is there, and every one that it should list."""
    folder, manifest, recipe = audited.folder, audited.benchmark.manifest, audited.benchmark.recipe
    yield from _problems(folder, "missing")
    missing = {problem.file for problem in folder.problems if problem.kind == "missing"}
    if manifest:
        unlisted = [Example(f"`{name}`") for name in _always_written(audited) if name not in manifest["files"]]
        yield from errors(unlisted, "the manifest does not list {} files that such a benchmark has")
    sets = (None, *audited.benchmark.negatives, *manifest.get("negatives", ()))
    # The paper has P_valid "possibly".
    without_valid = not manifest and not any(folder.file("valid", method) for method in sets)
    if without_valid:
        yield note(1, "there is no valid; what is chosen on it elsewhere, such as thresholds, has to be given")
    for method in dict.fromkeys(sets):
        for split in SPLITS:
            name = audited.file(split, method)
            if folder.file(split, method) is not None or name in missing or (without_valid and split == "valid"):
                continue
            # Data sets of others leave it to a system to make negatives for training.
            say = warning if split == "train" and method == GIVEN and not manifest else error
            yield say(1, f"there is no file with {set_name(split, method)}", [Example(f"`{name}`")])
    for split in SPLITS:
        lines = folder.file(split)
        if lines is not None and not len(lines.triples):
            if split == "valid" and recipe is not None and not recipe.shares[1]:
                continue
            # The builder says so when there are too few conclusions for every split.
            admitted = split != "train" and manifest.get("positives", {}).get(split) == 0
            yield (warning if admitted else error)(1, f"`{lines.name}` holds no triples")


def _always_written(audited: AuditedBenchmark) -> Iterator[str]:
    """Yield the files beside the sets that a benchmark with such a manifest has."""
    yield from (layout.NEGATIVES, CARD, CROISSANT, *CANDIDATES[: 3 if len(audited.graph.types) else 2])
    made = audited.benchmark.recipe is not None
    optional = {"rules": (RULES, made), "conclusions": (layout.PROVENANCE, made)}
    optional |= {"noise": (layout.NOISE, is_noisy(audited)), "inductive": (layout.CONTEXT, is_inductive(audited))}
    yield from (name for key, (name, is_written) in optional.items() if is_written or audited.manifest.get(key))


def changed_files(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Sizes and checksums are those of the manifest, and those of the description for machines."""
    yield from _problems(audited.folder, "bytes", "sha256")
    if (described := _text_of(audited, CROISSANT)) is None:
        return
    files = audited.manifest["files"].items()
    expected = {name: (f"{sums['bytes']} B", sums.get("sha256")) for name, sums in files if name != CROISSANT}
    try:
        told = {file["@id"]: (file["contentSize"], file["sha256"]) for file in json.loads(described)["distribution"]}
        wrong = sorted(dict(expected.items() ^ told.items()))
    except (ValueError, LookupError, TypeError, RecursionError):
        wrong = [CROISSANT]
    examples = [Example(f"`{name}`", CROISSANT) for name in wrong]
    yield from errors(examples, f"`{CROISSANT}` does not tell the sizes and checksums of {{}} files")


def _text_of(audited: AuditedBenchmark, name: str) -> str | None:
    """Return the text of a file of the folder; None if there is none that the manifest lists."""
    if audited.source is None or name not in audited.manifest["files"] or not (audited.folder.path / name).is_file():
        return None
    with reading(audited.folder.path / name):
        return (audited.folder.path / name).read_bytes().decode(errors="replace")


def readable(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Manifest and tables can be read, agree with each other, and no two files claim the same set."""
    yield from _problems(audited.folder, "manifest", "unreadable", "twice")


def unreadable_lines(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Every line of a file of triples can be read."""
    yield from _problems(audited.folder, "lines")


def unlisted_files(audited: AuditedBenchmark) -> Iterator[Finding]:
    """No file that looks like a part of the benchmark is unknown to the manifest."""
    unlisted = [name for name in audited.folder.unlisted if is_ours(name) or role_of(name) is not None]
    if unlisted:
        message = f"the manifest does not mention {len(unlisted):,} files that look like the benchmark's"
        yield warning(len(unlisted), message, [Example(f"`{name}`") for name in unlisted])


def sizes(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Compare the sizes of the sets with the manifest."""
    manifest, benchmark = audited.manifest, audited.benchmark
    wrong: list[Example] = []

    def compare(what: str, expected: Any, actual: int, file: str) -> None:
        if expected is not None and expected != actual:
            wrong.append(Example(f"{what} has {actual:,} triples; the manifest says {expected}", file))

    for split, triples in audited.with_noise.positives.items():
        compare(set_name(split), manifest["positives"].get(split), len(triples), audited.file(split))
    for method, negative_set in benchmark.negatives.items():
        counts = manifest["negatives"].get(method, {})
        for split, triples in negative_set.splits.items():
            expected = counts.get(split, {}).get("reached")
            compare(set_name(split, method, full=True), expected, len(triples), audited.file(split, method))
    conclusions: Any = manifest.get("conclusions") or {}
    if benchmark.provenance is not None:
        counts = np.bincount(benchmark.provenance.split, minlength=len(SPLITS)).tolist()
        for split, count in zip(SPLITS, counts, strict=True):
            compare(f"the provenance of {set_name(split)}", conclusions.get(split), count, "provenance.parquet")
    yield from errors(wrong, "{} sets have another size than the manifest says")
    yield from _false_card(audited)


def _false_card(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Compare the figures of the README with those of the files."""
    if (text := _text_of(audited, CARD)) is None:
        return
    # Other versions may have other words, but the same tables.
    figures = r"^.*\d.*$" if audited.manifest["versions"].get("loginfer") == __version__ else r"^\|.*\d.*$"
    card = make_card(audited.with_noise, None if audited.benchmark.kg is None else audited.kg_figures, ())
    expected, told = (re.findall(figures, text.partition("\n## Files\n")[0], re.MULTILINE) for text in (card, text))
    wrong = [Example(line, CARD) for line in told if line not in expected]
    wrong += [Example(f"it lacks: {line}", CARD) for line in expected if line not in told]
    yield from errors(wrong, f"{{}} lines of `{CARD}` do not tell the figures of the files")


def recipe(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Compare the folder with its recipe, and the recipe with settings that are expected."""
    recipe = audited.recipe
    recorded = recipe.as_dict()
    expected = {key: list(v) if isinstance(v, tuple) else v for key, v in audited.settings.items()}
    wrong = {key: value for key, value in expected.items() if recorded.get(key) != value}
    examples = [Example(f"`{key}` is {recorded.get(key)!r}, expected {value!r}") for key, value in wrong.items()]
    yield from errors(examples, "{} settings of the recipe are not those expected")
    types = audited.benchmark.manifest.get("type_predicate")
    if types is not None and recipe.type_predicate not in (None, types):
        yield error(1, f"the recipe has the type predicate `{recipe.type_predicate}`, the manifest `{types}`")
    methods = tuple(audited.benchmark.negatives)
    if set(methods) != set(recipe.negatives):
        names = ", ".join(methods) or "none"
        yield error(1, f"the recipe asks for negatives {', '.join(recipe.negatives)}; there are {names}")
    for method, negative_set in audited.benchmark.negatives.items():
        if method_or_unknown(method).size_of == "conclusions":
            continue  # as many as conclusions are asked for: see `balanced_heads`
        for split, asked in negative_set.asked.items():
            size = len(audited.benchmark.positives[split])
            if asked != size:
                name = set_name(split, method, full=True)
                yield error(1, f"{asked:,} were asked for in {name}, not {size:,}")


def kg_sum(audited: AuditedBenchmark) -> Iterator[Finding]:
    """P_train without its conclusions is the graph that the manifest says the benchmark was made from."""
    recorded = audited.manifest.get("kg") or {}
    if not recorded and audited.benchmark.kg is None:
        raise CannotCheckError("the manifest does not tell the checksum of K")
    figures = audited.kg_figures
    wrong = {key: recorded.get(key) for key in figures if recorded.get(key) != figures[key]}
    message = "the manifest tells other sizes of K, the graph that the benchmark was made from"
    if "sha256" in wrong:
        message = (
            "P_train without its conclusions is not the graph K that the manifest tells of: some triple of "
            "K was removed, added or changed"
        )
    if wrong:
        examples = [Example(f"{key} {figures[key]}, expected {wrong[key]}", audited.file("train")) for key in wrong]
        yield error(len(wrong), message, examples)


def candidate_files(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Compare the candidate files with the constants, relations and types of P_train."""
    graph = audited.with_noise.graph
    ranked = graph if audited.with_noise.context is None else audited.with_noise.context
    names = ((graph.entities, ranked.consts), (graph.relations, graph.rels), (graph.entities, graph.types))
    paths = [audited.folder.path / name for name in CANDIDATES]
    if not any(path.is_file() for path in paths):
        raise CannotCheckError("there are no candidate files")
    for path, (vocabulary, ids) in zip(paths, names, strict=True):
        if path.is_file():
            yield from _candidate_differences(path, vocabulary, ids)


def _candidate_differences(path: Path, vocabulary: Vocabulary, ids: Ids) -> Iterator[Finding]:
    name = path.name
    try:
        with reading(path):
            lines = path.read_bytes().decode("utf-8").splitlines()
    except (UnicodeDecodeError, InputError):
        yield error(1, f"`{name}` cannot be read", [Example(f"`{name}`", name)])
        return
    # Released files have an id behind each name.
    listed = [line.split("\t")[0] for line in lines if line.strip()]
    names = Vocabulary.of(listed)
    expected = np.zeros(len(vocabulary), dtype=bool)
    expected[ids] = True
    ids_in_graph = names.positions_in(vocabulary)
    unexpected = np.flatnonzero(~np.append(expected, False)[ids_in_graph])  # -1, which no name has, is the last
    expected[ids_in_graph[ids_in_graph >= 0]] = False
    missing = np.flatnonzero(expected)
    examples = [Example(f"`{names[i]}` is not in P_train", name) for i in unexpected[:5].tolist()]
    examples += [Example(f"`{vocabulary[i]}` is missing", name) for i in missing[:5].tolist()]
    total = len(unexpected) + len(missing) + len(listed) - len(names)
    if total:
        yield error(total, f"`{name}` differs from the names of P_train in {total:,} places", examples)


# -- the sets ---------------------------------------------------------------------------------------


def duplicates(audited: AuditedBenchmark) -> Iterator[Finding]:
    """No triple is in a file twice."""
    if audited.source is None:
        raise CannotCheckError("the benchmark is in memory, where sets have no duplicates")
    for lines in audited.source.files:
        if lines.role.context:
            continue
        keys = audited.graph.keys.pack(lines.triples)
        order = np.argsort(keys, kind="stable")
        repeated = np.sort(order[1:][keys[order][1:] == keys[order][:-1]])
        if len(repeated):
            split, method = lines.role.split, lines.role.method
            examples = audited.examples(lines.triples[repeated], split, method, occurrence=1)
            yield error(len(repeated), f"`{lines.name}` repeats {_counted(repeated)}", examples)


def disjoint(audited: AuditedBenchmark) -> Iterator[Finding]:
    """No two sets share a triple: neither among positives and negatives, nor across."""
    positive: list[tuple[str, str | None]] = [(split, None) for split in SPLITS]
    yield from _overlaps(audited, list(combinations(positive, 2)))
    for method in audited.benchmark.negatives:
        negative: list[tuple[str, str | None]] = [(split, method) for split in SPLITS]
        pairs = [(p, n) for p in positive for n in negative]
        yield from _overlaps(audited, [*pairs, *combinations(negative, 2)])


def _overlaps(
    audited: AuditedBenchmark, pairs: list[tuple[tuple[str, str | None], tuple[str, str | None]]]
) -> Iterator[Finding]:
    for first, second in pairs:
        shared = np.intersect1d(audited.packed[first], audited.packed[second], assume_unique=True)
        if len(shared):
            names = f"{set_name(*first)} and {set_name(*second, full=True)}"
            examples = audited.examples(audited.graph.keys.unpack(shared), *second)
            yield error(len(shared), f"{names} share {_counted(shared)}", examples)


def conclusions_in_kg(audited: AuditedBenchmark) -> Iterator[Finding]:
    """P_valid and P_test hold conclusions that are new: none is in K."""
    for split in ("valid", "test"):
        triples = audited.benchmark.positives[split]
        in_kg = triples[audited.kg.contains(triples)]
        yield from audited.about(in_kg, f"{_counted(in_kg)} of {set_name(split)} are in K", split)


def signature(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Sig(P_valid) and Sig(P_test) are included in Sig(P_train); no two names look the same."""
    train_signature = Signature(audited.benchmark.seen)
    for split in ("valid", "test"):
        triples = audited.benchmark.positives[split]
        unknown = triples[~train_signature.covers(triples)]
        message = f"{_counted(unknown)} of {set_name(split)} have a name that P_train has not"
        yield from audited.about(unknown, message, split)
    for vocabulary, what in ((audited.graph.entities, "entities"), (audited.graph.relations, "relations")):
        if alike := _alike(vocabulary):
            message = f"{len(alike):,} {what} have several names that differ only in Unicode normalisation"
            yield warning(len(alike), message, [Example(" and ".join(map(ascii, names))) for names in alike])


def _alike(vocabulary: Vocabulary) -> list[list[str]]:
    """Return names that are the same after Unicode normalisation (NFKC), side by side."""
    groups: dict[str, set[str]] = {}
    # Of such names one is not ASCII.
    high = np.flatnonzero(vocabulary.data >= 128)
    for i in np.unique(np.searchsorted(vocabulary.offsets, high, side="right") - 1).tolist():
        plain = unicodedata.normalize("NFKC", vocabulary[i])
        groups.setdefault(plain, {plain} if plain in vocabulary else set()).add(vocabulary[i])
    return [sorted(names) for names in groups.values() if len(names) > 1]


def names_of_negatives(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Negatives use only names of P_train: otherwise the names alone tell them apart."""
    train_signature = Signature(audited.benchmark.seen)
    for method, negatives in audited.negatives.items():
        unknown = {split: triples[~train_signature.covers(triples)] for split, triples in negatives.splits.items()}
        count = sum(map(len, unknown.values()))
        if count:
            listed = ", ".join(f"{len(rows):,} in {split}" for split, rows in unknown.items())
            message = f"{count:,} negatives of `{method}` have a name that P_train has not ({listed})"
            # By the text of the paper, heads of rules that conclude nothing are names that only negatives have.
            say = note if audited.protocol is not None else warning
            yield say(count, message, [e for s, rows in unknown.items() for e in audited.examples(rows, s, method)])


def balance(audited: AuditedBenchmark) -> Iterator[Finding]:
    """There are as many negatives as positives in each split; near misses are as many as conclusions."""
    for method, negatives in audited.negatives.items():
        if method_or_unknown(method).size_of == "conclusions":
            continue  # as many as conclusions: see `balanced_heads`
        for split, triples in negatives.splits.items():
            expected, actual = len(audited.benchmark.positives[split]), len(triples)
            if expected == actual:
                continue
            if audited.source is not None and audited.lines(split, method) is None:
                continue  # `missing_files` reports it
            name = set_name(split, method, full=True)
            message = f"{set_name(split)} has {expected:,} triples, {name} {actual:,}"
            # The builder says so when it runs out of candidates.
            admitted = bool(negatives.notes) and negatives.asked.get(split) == expected and actual < expected
            say = warning if admitted else error
            yield say(abs(expected - actual), message + (": candidates ran out" if admitted else ""))


def _counted(triples: npt.NDArray[np.generic]) -> str:
    return f"{len(triples):,} triple{'' if len(triples) == 1 else 's'}"
