"""The card of a benchmark: a README for people, with how it was made and what it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loginfer.benchmark.card_variants import inductive_section, noise_section
from loginfer.benchmark.layout import (
    CANDIDATES,
    CARD,
    CONTEXT,
    CROISSANT,
    MANIFEST,
    NEGATIVES,
    NOISE,
    PROVENANCE,
    RULES,
    role_of,
)
from loginfer.benchmark.manifest import depth_counts
from loginfer.benchmark.values import SPLITS, Benchmark, BenchmarkRule
from loginfer.errors import LogInferError

if TYPE_CHECKING:
    from loginfer.benchmark.recipe import Recipe
    from loginfer.kg.catalogue import Entry

__all__ = ["METHOD_NAMES", "make_card", "source_entry"]

# So many rules are shown; the others are counted.
RULES_SHOWN = 20

METHOD_NAMES = {
    "rb": "relevance-based",
    "pa": "position-aware",
    "qg": "query-guided",
    "rc": "random object corruption",
    "nm": "near misses",
}
_PROTOCOLS = {
    "paper": "the text of the paper to the letter; negatives are only known to be outside P_all",
    "sound": "no negative follows from the rules and P_all in one step",
}
_FILES = {
    RULES: "the rules, one a line, in the order in which the other files count them from 0",
    PROVENANCE: "for every conclusion each rule that derives it, with one witness",
    NEGATIVES: "for every negative where it came from",
    NOISE: "what is wrong with `train.txt` and the negatives of train, triple by triple",
    CONTEXT: "the context graph: what is known about the constants of test, one triple a line",
    CANDIDATES[0]: "the constants of `train.txt`, among which systems rank",
    CANDIDATES[1]: "the relations of `train.txt`",
    CANDIDATES[2]: "the types of `train.txt`",
    CROISSANT: "a description for machines (Croissant)",
    MANIFEST: "the recipe, versions, counts, and size and sha256 of every file",
}


def make_card(benchmark: Benchmark, kg: Mapping[str, Any] | None, files: Sequence[str]) -> str:
    """Return the text of a benchmark's README.

    Parameters
    ----------
    benchmark
        The benchmark.
    kg
        Size and sum of K, see `kg_figures`; None if K is not known.
    files
        The files of the folder so far.
    """
    sections = [
        [f"# {_line(benchmark.name)}", "", _summary(benchmark)],
        _made(benchmark, kg),
        noise_section(benchmark),
        inductive_section(benchmark),
        _figures(benchmark),
        _rules(benchmark.rules),
        _notes(benchmark),
        _file_list([*files, CROISSANT, MANIFEST]),
        _usage(),
        _licence(benchmark),
    ]
    return "\n".join(line for section in sections if section for line in (*section, "")).rstrip() + "\n"


def _summary(benchmark: Benchmark) -> str:
    if benchmark.provenance is None:
        return "A benchmark for knowledge-graph completion with positive and negative triples."
    follows = "A positive of valid or test follows from a rule and triples of `train.txt`."
    if benchmark.provenance.deep:
        follows = (
            "A positive of valid or test follows from the rules and triples of `train.txt`, in one step or "
            f"more: `{PROVENANCE}` tells in how many."
        )
    if benchmark.context is not None:
        follows = (
            "A positive of valid follows from a rule and triples of `train.txt`, one of test from a rule and "
            f"triples of `{CONTEXT}`."
        )
    return (
        "A benchmark of inference patterns for knowledge-graph completion, in the manner of LogInfer: "
        "systems learn from `train.txt` and the negatives of train, and are asked which triples of the test "
        f"files are true. {follows}"
    )


def _made(benchmark: Benchmark, kg: Mapping[str, Any] | None) -> list[str]:
    recipe = benchmark.recipe
    if recipe is None:
        return []
    graph = f"`{_line(recipe.kg)}`"
    if kg is not None:
        sizes = [counted(kg[f"{what}s"], what) for what in ("triple", "constant", "relation", "type")]
        graph += f" ({', '.join(sizes)}; sha256 of its sorted lines {kg['sha256']})"
    lines = ["## How it was made", "", f"- graph: {graph}"]
    if recipe.patterns:
        lines.append("- patterns: " + ", ".join(f"`{_line(p)}`" for p in recipe.patterns))
        lines.append(f"- rules: for each pattern {_which(recipe)} (k1)")
    else:
        lines.append("- rules: given")
    lines.append(f"- conclusions: at most {recipe.k2:,} sampled for each rule (k2), split {recipe.ratio}")
    if recipe.depth > 1:
        lines.append(f"- depth: conclusions follow in up to {recipe.depth} steps; each depth has its share")
    matched = f"; nm matched on {' and '.join(recipe.match)}" if recipe.match else ""
    methods = ", ".join(f"{m} ({METHOD_NAMES.get(m, m)})" for m in recipe.negatives)
    lines.append(f"- negatives: {methods}{matched}")
    promise = _PROTOCOLS[recipe.protocol]
    if recipe.depth > 1 and recipe.protocol == "sound":
        promise = "no negative follows from the rules and P_all, in any number of steps"
    lines.append(f"- protocol: {recipe.protocol}, {promise}")
    lines.append(f"- seed: {recipe.seed}")
    return [*lines, "", f"`{MANIFEST}` holds the whole recipe."]


def _which(recipe: Recipe) -> str:
    """Say which candidates became rules."""
    if recipe.select == "support":
        which = f"the {recipe.k1:,} with the largest support"
    elif recipe.select == "random":
        which = f"{recipe.k1:,} random ones"
    else:
        which = f"{recipe.k1:,} random ones whose {recipe.select_by} lies in {recipe.interval}"
    return which + (", each with the head of the largest confidence" if recipe.head == "best" else "")


def _figures(benchmark: Benchmark) -> list[str]:
    lines = ["## Figures", "", "| | train | valid | test |", "|---|---:|---:|---:|"]
    sizes = benchmark.positives.sizes
    lines.append("| positives | " + " | ".join(f"{sizes[split]:,}" for split in SPLITS) + " |")
    if (provenance := benchmark.provenance) is not None:
        counts = [int((provenance.split == i).sum()) for i in range(len(SPLITS))]
        lines.append("| of these new conclusions | " + " | ".join(f"{n:,}" for n in counts) + " |")
        for depth, sizes_there in depth_counts(provenance).items() if provenance.deep else ():
            there = " | ".join(f"{sizes_there[split]:,}" for split in SPLITS)
            lines.append(f"| of these at depth {depth} | {there} |")
    for method, made in benchmark.negatives.items():
        cells = []
        for split, triples in made.splits.items():
            asked = made.asked.get(split, len(triples))
            short = f" of {asked:,} asked for" if asked != len(triples) else ""
            cells.append(f"{len(triples):,}{short}")
        lines.append(f"| negatives {method} | " + " | ".join(cells) + " |")
    return lines


def _rules(rules: Sequence[BenchmarkRule]) -> list[str]:
    if not rules:
        return []
    measured = any(known.confidence is not None for known in rules)
    lines = ["## Rules", "", "| | rule | support | new conclusions | sampled |", "|---:|---|---:|---:|---:|"]
    if measured:
        lines[2] += " confidence | overlap |"
        lines[3] += "---:|---:|"
    # Rules that contribute conclusions come first.
    order = sorted(range(len(rules)), key=lambda place: rules[place].sampled == 0)
    for place in order[:RULES_SHOWN]:
        known = rules[place]
        text = _line(str(known.rule)).replace("|", "\\|")
        counts = " | ".join(
            "unknown" if n < 0 else f"{n:,}" for n in (known.support, known.new, known.sampled)
        )
        if measured:
            shares = (known.confidence, known.overlap)
            counts += "".join(" | unknown" if share is None else f" | {share:.3f}" for share in shares)
        lines.append(f"| {place} | `{text}` | {counts} |")
    if len(rules) > RULES_SHOWN:
        lines += ["", f"And {len(rules) - RULES_SHOWN:,} more: see `{RULES}` and `{MANIFEST}`."]
    return lines


def _notes(benchmark: Benchmark) -> list[str]:
    notes = [*benchmark.notes]
    notes += [f"{method}: {note}" for method, made in benchmark.negatives.items() for note in made.notes]
    if benchmark.passed_over:
        reasons = Counter(known.reason is None for known in benchmark.passed_over)
        for little, why in ((True, "concluding too little that is new"), (False, "a negation")):
            if reasons[little]:
                passed = counted(reasons[little], "candidate")
                notes.append(f"passed over for {why}: {passed}, see `{MANIFEST}`")
    return ["## Notes", "", *(f"- {_line(note)}" for note in notes)] if notes else []


def _file_list(files: Sequence[str]) -> list[str]:
    lines = ["## Files", "", "| file | what it holds |", "|---|---|"]
    for name in files:
        if name == CARD:
            continue
        role = role_of(name)
        what = _FILES.get(name, "")
        if role is not None and role.method is None:
            what = f"P_{role.split}: positives, one triple a line, subject, relation, object between tabs"
        elif role is not None:
            method = role.method or ""
            what = f"N_{role.split}: negatives, {METHOD_NAMES.get(method, method)}"
        if name == CANDIDATES[0] and CONTEXT in files:
            what = f"the constants of `{CONTEXT}`, among which systems rank"
        lines.append(f"| `{name}` | {what} |")
    return lines


def _usage() -> list[str]:
    return [
        "## Use",
        "",
        "```python",
        "from loginfer.benchmark import load_benchmark",
        "",
        'benchmark = load_benchmark("path/of/this/folder")  # verifies the sums',
        "benchmark.positives.train, benchmark.negatives, benchmark.rules",
        "```",
        "",
        "`loginfer audit path/of/this/folder` checks every claim that is made here.",
    ]


def _licence(benchmark: Benchmark) -> list[str]:
    lines = ["## Licence", ""]
    entry = source_entry(benchmark)
    if entry is None:
        return [*lines, "The triples come from the graph named above, whose terms apply to them."]
    return [
        *lines,
        f"The triples come from {entry.name}. {entry.licence}",
        "",
        f"Please cite: {entry.citation}",
    ]


def source_entry(benchmark: Benchmark) -> Entry | None:
    """Return the catalogue's entry of the graph that the benchmark was made from, if it has one."""
    from loginfer.kg.catalogue import find

    if benchmark.recipe is None:
        return None
    try:
        return find(benchmark.recipe.kg)
    except LogInferError:
        return None


def counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _line(text: str) -> str:
    return " ".join(text.split())
