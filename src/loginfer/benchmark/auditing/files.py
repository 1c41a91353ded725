"""Checks of the folder itself: all files are there, unchanged, readable, and as the manifest says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from loginfer.benchmark.auditing.material import Material, set_name
from loginfer.benchmark.auditing.report import CannotCheckError, Example, Problem, error, warning
from loginfer.benchmark.layout import GIVEN, RULES, is_ours, role_of
from loginfer.benchmark.raw import RawFolder
from loginfer.benchmark.values import SPLITS

__all__ = [
    "changed_files",
    "missing_files",
    "readable",
    "recipe",
    "sizes",
    "unlisted_files",
    "unreadable_lines",
]


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
            compare(
                f"the provenance of {set_name(split)}", conclusions.get(split), count, "provenance.parquet"
            )
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
        if method == "nm":
            continue  # as many as conclusions are asked for: see `balanced_heads`
        for split, wanted in made.asked.items():
            size = len(material.benchmark.positives[split])
            if wanted != size:
                message = (
                    f"{wanted:,} were asked for in {set_name(split, method)} of `{method}`, not {size:,}"
                )
                yield error(1, message)
