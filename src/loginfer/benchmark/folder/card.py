"""What describes a benchmark in its folder: a README for people, and Croissant (JSON-LD) for search engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loginfer.benchmark.benchmark import SPLITS, Benchmark, BenchmarkRule
from loginfer.benchmark.folder import manifest
from loginfer.benchmark.folder.tables import DEPTH_COLUMN, NOISE_COLUMNS, PROVENANCE_COLUMNS, negative_columns
from loginfer.benchmark.negatives.methods import method_or_unknown
from loginfer.errors import LogInferError
from loginfer.files import shipped
from loginfer.kg.vocabulary import short_names
from loginfer.logic.rule import names_in, short_text

if TYPE_CHECKING:
    from loginfer.benchmark.recipe import Recipe
    from loginfer.kg.catalogue import Entry


# So many rules are shown; further ones are only counted.
RULES_SHOWN = 20


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
        [f"# {one_line(benchmark.name)}", "", _summary(benchmark)],
        _how_made(benchmark, kg),
        _noise(benchmark),
        _inductive(benchmark),
        _figures(benchmark),
        _rules(benchmark.rules, benchmark.graph.labels),
        _notes(benchmark),
        _file_list([*files, manifest.CROISSANT, manifest.MANIFEST]),
        _words("usage").splitlines(),
        terms(benchmark, " named above"),
    ]
    return "\n".join(line for section in sections if section for line in (*section, "")).rstrip() + "\n"


def _words(kind: str) -> Any:
    return shipped("benchmark/data/card.toml")[kind]


def _summary(benchmark: Benchmark) -> str:
    if benchmark.provenance is None:
        return "A benchmark for knowledge-graph completion with positive and negative triples."
    follows = "A positive of valid or test follows from a rule and triples of `train.txt`."
    if benchmark.provenance.deep:
        follows = (
            "A positive of valid or test follows from the rules and triples of `train.txt`, in one step or "
            f"more: `{manifest.PROVENANCE}` tells in how many."
        )
    if benchmark.context is not None:
        follows = (
            "A positive of valid follows from a rule and triples of `train.txt`, one of test from a rule and "
            f"triples of `{manifest.CONTEXT}`."
        )
    return (
        "A benchmark of inference patterns for knowledge-graph completion, in the manner of LogInfer: "
        "systems learn from `train.txt` and the negatives of train, and are asked which triples of the test "
        f"files are true. {follows}"
    )


def _how_made(benchmark: Benchmark, kg: Mapping[str, Any] | None) -> list[str]:
    recipe = benchmark.recipe
    if recipe is None:
        return []
    graph = f"`{one_line(recipe.kg)}`"
    if kg is not None:
        sizes = [counted(kg[f"{what}s"], what) for what in ("triple", "constant", "relation", "type")]
        graph += f" ({', '.join(sizes)}; sha256 of its sorted lines {kg['sha256']})"
    lines = ["## How it was made", "", f"- graph: {graph}"]
    if recipe.patterns:
        lines.append("- patterns: " + ", ".join(f"`{one_line(p)}`" for p in recipe.patterns))
        lines.append(f"- rules: for each pattern {_which(recipe)} (k1)")
    else:
        lines.append("- rules: given")
    lines.append(f"- conclusions: at most {recipe.k2:,} sampled for each rule (k2), split {recipe.ratio}")
    if recipe.depth > 1:
        lines.append(f"- depth: conclusions follow in up to {recipe.depth} steps; each depth has its share")
    matched = f"; nm are twins of the conclusions, alike in {' and '.join(recipe.match)}" if recipe.match else ""
    methods = ", ".join(f"{m} ({method_or_unknown(m).title})" for m in recipe.negatives)
    parts = "" if recipe.corrupt == ("object",) else f"; rc replaces one of {', '.join(recipe.corrupt)}"
    lines.append(f"- negatives: {methods}{matched}{parts}")
    promise = _words("protocols")[recipe.protocol]
    if recipe.depth > 1 and recipe.protocol == "sound":
        promise = "no negative follows from the rules and P_all, in any number of steps"
    lines.append(f"- protocol: {recipe.protocol}, {promise}")
    lines.append(f"- seed: {recipe.seed}")
    return [*lines, "", f"`{manifest.MANIFEST}` holds the whole recipe."]


def _noise(benchmark: Benchmark) -> list[str]:
    """Return the lines on what is wrong on purpose; none for a benchmark without noise."""
    noise = benchmark.noise
    if noise is None:
        return []
    counts = noise.as_dict()
    shares = [
        f"{noise.reached[split] / size:.1%} of {split}"
        for split, size in benchmark.positives.sizes.items()
        if size and split in noise.reached
    ]
    derived = f"From `train.txt` as it is the rules themselves derive {' and '.join(shares)}. " if shares else ""
    return [
        "## Noise",
        "",
        "The positives and negatives of train are wrong on purpose; valid and test are not.",
        "",
        f"- conclusions that stand among the negatives: {counts['flipped-positive']:,}",
        f"- negatives that stand among the positives: {counts['flipped-negative']:,}",
        f"- premises that are missing, though true: {counts['missing']:,}",
        "",
        f"{derived}`{manifest.NOISE}` lists all that is wrong. `{manifest.PROVENANCE}` and "
        f"`{manifest.NEGATIVES}` tell of the benchmark without the noise.",
    ]


def _inductive(benchmark: Benchmark) -> list[str]:
    """Return the lines on the two sides; none for a benchmark whose test has the constants of train."""
    context = benchmark.context
    if context is None:
        return []
    train, test = len(benchmark.graph.consts), len(context.consts)
    return [
        "## Inductive",
        "",
        f"The {test:,} constants of test are none of the {train:,} constants of train and valid. `{manifest.CONTEXT}` "
        f"({len(context):,} triples) tells of them: a positive of test follows from a rule and triples of "
        f"`{manifest.CONTEXT}`. Systems learn from `train.txt`, and rank test triples among the constants of the "
        "context graph. The size of the graph above, and the support and new conclusions of the rules below, "
        "are those of the two sides; what lies across is dropped.",
    ]


def _which(recipe: Recipe) -> str:
    """Say which candidates became rules."""
    if recipe.select == "support":
        which = f"the {recipe.k1:,} with the largest support"
    elif recipe.select == "twins":
        which = f"those {recipe.k1:,} with the most twins, among candidates with the largest support"
    elif recipe.select == "random":
        which = f"{recipe.k1:,} random ones"
    else:
        which = f"{recipe.k1:,} random ones whose {recipe.select_by} lies in {recipe.interval}"
    heads = {
        "best": ", each with the head of the largest confidence",
        "typed": ", each with a head drawn among relations whose subjects and objects look like the body's ends",
    }
    return which + heads.get(recipe.head, "")


def _figures(benchmark: Benchmark) -> list[str]:
    lines = ["## Figures", "", "| | train | valid | test |", "|---|---:|---:|---:|"]
    sizes = benchmark.positives.sizes
    lines.append("| positives | " + " | ".join(f"{sizes[split]:,}" for split in SPLITS) + " |")
    if (provenance := benchmark.provenance) is not None:
        counts = [int((provenance.split == i).sum()) for i in range(len(SPLITS))]
        lines.append("| of these new conclusions | " + " | ".join(f"{n:,}" for n in counts) + " |")
        for depth, sizes_at_depth in manifest.depth_counts(provenance).items() if provenance.deep else ():
            cells_at_depth = " | ".join(f"{sizes_at_depth[split]:,}" for split in SPLITS)
            lines.append(f"| of these at depth {depth} | {cells_at_depth} |")
    for method, negative_set in benchmark.negatives.items():
        cells = []
        for split, triples in negative_set.splits.items():
            asked = negative_set.asked.get(split, len(triples))
            shortage = f" of {asked:,} asked for" if asked != len(triples) else ""
            cells.append(f"{len(triples):,}{shortage}")
        lines.append(f"| negatives {method} | " + " | ".join(cells) + " |")
    return lines


def _rules(rules: Sequence[BenchmarkRule], labels: Mapping[str, str]) -> list[str]:
    if not rules:
        return []
    measured = any(benchmark_rule.confidence is not None for benchmark_rule in rules)
    lines = ["## Rules", "", "| | rule | support | new conclusions | sampled |", "|---:|---|---:|---:|---:|"]
    if measured:
        lines[2] += " confidence | overlap |"
        lines[3] += "---:|---:|"
    # Rules that contribute conclusions come first.
    order = sorted(range(len(rules)), key=lambda number: rules[number].sampled == 0)
    names = short_names(names_in(*(rules[number].rule for number in order[:RULES_SHOWN])), labels=labels)
    for number in order[:RULES_SHOWN]:
        benchmark_rule = rules[number]
        text = one_line(short_text(benchmark_rule.rule, names)).replace("|", "\\|")
        sizes = (benchmark_rule.support, benchmark_rule.new, benchmark_rule.sampled)
        counts = " | ".join("unknown" if n < 0 else f"{n:,}" for n in sizes)
        if measured:
            shares = (benchmark_rule.confidence, benchmark_rule.overlap)
            counts += "".join(" | unknown" if share is None else f" | {share:.3f}" for share in shares)
        lines.append(f"| {number} | `{text}` | {counts} |")
    if len(rules) > RULES_SHOWN:
        lines += ["", f"And {len(rules) - RULES_SHOWN:,} more: see `{manifest.RULES}` and `{manifest.MANIFEST}`."]
    return lines


def _notes(benchmark: Benchmark) -> list[str]:
    notes = [*benchmark.notes]
    notes += [f"{method}: {note}" for method, negatives in benchmark.negatives.items() for note in negatives.notes]
    if benchmark.passed_over:
        reasons = Counter(candidate.reason is None for candidate in benchmark.passed_over)
        for little, why in ((True, "concluding too little that is new"), (False, "a negation")):
            if reasons[little]:
                count = counted(reasons[little], "candidate")
                notes.append(f"passed over for {why}: {count}, see `{manifest.MANIFEST}`")
    return ["## Notes", "", *(f"- {one_line(note)}" for note in notes)] if notes else []


def _file_list(files: Sequence[str]) -> list[str]:
    lines = ["## Files", "", "| file | what it holds |", "|---|---|"]
    for name in files:
        if name == manifest.CARD:
            continue
        role = manifest.role_of(name)
        what = _words("files").get(name, "")
        if role is not None and role.method is None and not role.context:
            what = f"P_{role.split}: positives, one triple a line, subject, relation, object between tabs"
        elif role is not None and role.method is not None:
            what = f"N_{role.split}: negatives, {method_or_unknown(role.method).title}"
        if name == manifest.CANDIDATES[0] and manifest.CONTEXT in files:
            what = f"the constants of `{manifest.CONTEXT}`, among which systems rank"
        lines.append(f"| `{name}` | {what} |")
    return lines


def terms(benchmark: Benchmark, graph: str) -> list[str]:
    """Return the lines on the terms of the graph, which is called so where the catalogue does not have it."""
    entry = source_entry(benchmark)
    if entry is None:
        return ["## Licence", "", f"The triples come from the graph{graph}, whose terms apply to them."]
    text = f"The triples come from {entry.name}. {entry.licence}"
    return ["## Licence", "", text, "", f"Please cite: {entry.citation}"]


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


def one_line(text: str) -> str:
    """Return a text without line ends."""
    return " ".join(text.split())


_FORMATS = {
    ".parquet": "application/x-parquet", ".txt": "text/plain", ".md": "text/markdown",
    ".tsv": "text/tab-separated-values",
}  # fmt: skip
_WHOLE_NUMBERS = ("rule", "kept", "depth", "label")


def make_croissant(benchmark: Benchmark, files: Mapping[str, manifest.FileSum]) -> dict[str, Any]:
    """Return the Croissant 1.0 description of a benchmark's folder.

    Parameters
    ----------
    benchmark
        The benchmark.
    files
        The files to describe, without the manifest: it holds the checksum of the description.
    """
    return described(benchmark, files, _record_sets(benchmark, files))


def described(
    benchmark: Benchmark, files: Mapping[str, manifest.FileSum], record_sets: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the description of files of a benchmark.

    Parameters
    ----------
    benchmark
        The benchmark.
    files
        The files.
    record_sets
        What is in them, see `table`.
    """
    entry = source_entry(benchmark)
    about: dict[str, Any] = {
        "@context": _words("croissant"),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": benchmark.name,
        "description": _description(benchmark, entry),
        "version": f"{manifest.FORMAT_VERSION}.0.0",
    }
    if entry is not None:
        about["citeAs"] = entry.citation
    return {
        **about,
        "distribution": [_file(name, sums) for name, sums in sorted(files.items())],
        "recordSet": list(record_sets),
    }


def _description(benchmark: Benchmark, entry: Entry | None) -> str:
    text = "Positive and negative triples for knowledge-graph completion, split into train, valid and test."
    if (recipe := benchmark.recipe) is not None:
        text += f" Made from the graph {recipe.kg} and {len(benchmark.rules):,} rules;"
        text += f" protocol {recipe.protocol}, seed {recipe.seed}."
    # The catalogue has a sentence about a graph's terms; `license` would have to be the address of a licence.
    return text if entry is None else f"{text} On the terms of {entry.name}: {entry.licence}"


def _file(name: str, sums: manifest.FileSum) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{sums.bytes} B",
        "encodingFormat": _FORMATS["." + name.rsplit(".", 1)[-1]],
        "sha256": sums.sha256,
    }


def _record_sets(benchmark: Benchmark, files: Mapping[str, manifest.FileSum]) -> list[dict[str, Any]]:
    record_sets = []
    for split in SPLITS:
        name = manifest.file_of(manifest.Role(split))
        # Readers of Croissant do not accept a set without records.
        if files[name].bytes:
            record_sets.append(_lines(split, name, f"The positives of {split}."))
    if manifest.CONTEXT in files and files[manifest.CONTEXT].bytes:
        record_sets.append(
            _lines("context", manifest.CONTEXT, "The context graph: what is known about test's constants.")
        )
    if manifest.PROVENANCE in files:
        about = "Where the conclusions came from: one record for each conclusion and rule that derives it."
        deep = benchmark.provenance is not None and benchmark.provenance.deep
        columns = PROVENANCE_COLUMNS | DEPTH_COLUMN if deep else PROVENANCE_COLUMNS
        record_sets.append(table("provenance", manifest.PROVENANCE, about, columns))
    about = "All negatives, and where they came from."
    record_sets.append(table("negatives", manifest.NEGATIVES, about, negative_columns(benchmark)))
    if manifest.NOISE in files:
        about = "What is wrong with the positives and negatives of train on purpose."
        record_sets.append(table("noise", manifest.NOISE, about, NOISE_COLUMNS))
    return record_sets


def _lines(split: str, file: str, about: str) -> dict[str, Any]:
    """Describe a file of triples: it has no heading, so regular expressions find the columns."""
    patterns = {"subject": r"^([^\t]*)\t", "relation": r"^[^\t]*\t([^\t]*)\t", "object": r"^[^\t]*\t[^\t]*\t([^\t]*)$"}
    fields = []
    for column, pattern in patterns.items():
        field = _field(split, column, f"The {column}.", "sc:Text")
        extract = {"extract": {"fileProperty": "lines"}, "transform": {"regex": pattern}}
        fields.append({**field, "source": {"fileObject": {"@id": file}, **extract}})
    return _record_set(split, about, fields)


def table(name: str, file: str, about: str, columns: Mapping[str, str]) -> dict[str, Any]:
    """Describe a Parquet file as a set of records.

    Parameters
    ----------
    name
        The set's name.
    file
        The file.
    about
        What it holds, in a sentence.
    columns
        What each column means.
    """
    fields = []
    for column, meaning in columns.items():
        field = _field(name, column, meaning, "sc:Integer" if column in _WHOLE_NUMBERS else "sc:Text")
        if column == "witness":
            field["repeated"] = True
        fields.append({**field, "source": {"fileObject": {"@id": file}, "extract": {"column": column}}})
    return _record_set(name, about, fields)


def _record_set(name: str, about: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": about, "field": fields}


def _field(record_set: str, column: str, about: str, kind: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column}",
        "name": column,
        "description": about,
        "dataType": kind,
    }
