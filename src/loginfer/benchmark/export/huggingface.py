"""Hugging Face: Parquet files, and a README whose front matter lists configs, splits and files.

Each method of negatives is a config: its splits hold positives and negatives, told apart by the label. The
positives, the rules, the provenance, the origins of negatives and, if there are any, the context graph and the
noise have configs of their own. `valid` is called `validation`, as is usual there. The library does not accept a
split without rows, so a set without triples has no file. There is also a description in Croissant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loginfer.benchmark.benchmark import Split
from loginfer.benchmark.export import base
from loginfer.benchmark.folder.card import described, one_line, source_entry, table
from loginfer.benchmark.folder.manifest import CARD, CROISSANT, Role, as_json, folder_sums
from loginfer.benchmark.negatives.methods import method_or_unknown
from loginfer.errors import OutputError

POSITIVES, CONTEXT = "positives", "context"
# The library loads the last one by default.
OWN_CONFIGS = (POSITIVES, CONTEXT, "rules", "provenance", "origins", "noise", "default")
_SPLIT_NAMES: dict[Split, str] = {"train": "train", "valid": "validation", "test": "test"}
# The Hub's size categories, each with its upper bound.
_SIZES = (
    (10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B"), (10**10, "1B<n<10B"),
    (10**11, "10B<n<100B"), (10**12, "100B<n<1T"),
)  # fmt: skip


def file_of(role: Role) -> str:
    """Return the file of a set: `positives/train.parquet`, `negatives/pa/train.parquet`."""
    if role.context:
        return f"{CONTEXT}.parquet"
    folder = POSITIVES if role.method is None else f"negatives/{role.method}"
    return f"{folder}/{_SPLIT_NAMES[role.split]}.parquet"


def write(job: base.Job) -> base.Written:
    """Write the tables and the README."""
    for method in job.benchmark.negatives:
        if method in OWN_CONFIGS:
            raise OutputError(f"negatives called `{method}` cannot be a config: there is another one")
    write_set = base.triple_writer(job, words=False)
    for role, triples in job.sets():
        if len(triples):
            write_set(job.folder / file_of(role), role, triples)
    tables = base.write_side_tables(job)
    text = ["---", *_front_matter(job, tables), "---", "", *_body(job, tables)]
    base.write_text(job.folder / CARD, "\n".join(text) + "\n")
    base.write_text(job.folder / CROISSANT, as_json(_croissant(job)))
    return base.Written()


def _croissant(job: base.Job) -> dict[str, Any]:
    """Describe the triples for the readers of Croissant, one set of records for each file."""
    columns = {name: f"The {name}." for name in ("subject", "relation", "object")}
    columns["label"] = "1 for a positive, 0 for a negative."
    sets = []
    for role, triples in job.sets():
        if len(triples):
            kind = "context" if role.context else "positives" if role.method is None else role.method
            name = kind if role.context else f"{kind}_{_SPLIT_NAMES[role.split]}"
            what = "negatives" if role.method is not None else "positives"
            about = f"The {what} of {role.split}." if not role.context else "The context graph."
            sets.append(table(name, file_of(role), about, columns))
    return described(job.benchmark, folder_sums(job.folder), sets)


# -- the front matter ------------------------------------------------------------------------------


def _front_matter(job: base.Job, tables: Sequence[tuple[str, str]]) -> Iterator[str]:
    size = sum(len(triples) for _, triples in job.sets())
    yield f"pretty_name: {base.quoted(one_line(job.benchmark.name))}"
    yield f"license: {'unknown' if source_entry(job.benchmark) is None else 'other'}"
    yield from ("task_categories:", "- graph-ml", "tags:")
    yield from (f"- {tag}" for tag in ("knowledge-graph", "knowledge-graph-completion", "inference-patterns"))
    yield from ("size_categories:", f"- {next((c for most, c in _SIZES if size < most), 'n>1T')}")
    configs = _configs(job)
    yield "configs:"
    for number, (config, splits) in enumerate(configs.items()):
        yield from _config(config, splits, default=not number)
    for name, _ in tables:
        yield from _config(_stem(name), {_stem(name): [name]})
    yield "dataset_info:"
    for config in configs:
        yield from _features(config)


def _configs(job: base.Job) -> dict[str, dict[str, list[str]]]:
    """Return the configs of triples: of each the splits, of each split the files."""
    configs: dict[str, dict[str, list[str]]] = {}
    sets = [(role, file_of(role)) for role, triples in job.sets() if len(triples)]
    for config in (POSITIVES, *job.benchmark.negatives):
        for role, file in sets:
            if role.method in (None, config) and not role.context:
                configs.setdefault(config, {}).setdefault(_SPLIT_NAMES[role.split], []).append(file)
    if contexts := [file for role, file in sets if role.context]:
        configs[CONTEXT] = {CONTEXT: contexts}
    return configs


def _config(name: str, splits: Mapping[str, Sequence[str]], *, default: bool = False) -> Iterator[str]:
    yield f"- config_name: {base.quoted(name)}"
    if default:
        yield "  default: true"
    yield "  data_files:"
    for split, paths in splits.items():
        yield f"  - split: {split}"
        yield "    path:"
        yield from (f"    - {base.quoted(path)}" for path in paths)


def _features(config: str) -> Iterator[str]:
    yield f"- config_name: {base.quoted(config)}"
    yield "  features:"
    for column in ("subject", "relation", "object"):
        yield from (f"  - name: {column}", "    dtype: string")
    yield from ("  - name: label", "    dtype:", "      class_label:", "        names:")
    yield from (f"          '{number}': {label}" for number, label in enumerate(base.LABELS))


# -- for people ------------------------------------------------------------------------------------


def _body(job: base.Job, tables: Sequence[tuple[str, str]]) -> Iterator[str]:
    benchmark = job.benchmark
    yield base.title(benchmark)
    yield ""
    yield (
        "A benchmark of inference patterns for knowledge-graph completion: systems learn from the train "
        "split, and are asked which triples of the test split are true."
    )
    yield from ("", "## Configs", "", "| config | what it holds |", "|---|---|")
    yield f"| `{POSITIVES}` | the positives of train, validation and test |"
    for method in benchmark.negatives:
        what = method_or_unknown(method).title
        yield f"| `{method}` | positives and negatives ({what}), told apart by `label` |"
    if benchmark.context is not None:
        yield f"| `{CONTEXT}` | the context graph: what is known about the constants of test |"
    yield from (f"| `{_stem(name)}` | {what} |" for name, what in tables)
    config = next(iter(benchmark.negatives), POSITIVES)
    yield from ("", "## Use", "", "```python", "from datasets import load_dataset", "")
    yield f'load_dataset("path/of/this/folder", "{config}")["train"]'
    yield from ("```", "", *base.notes(job.notes), *base.figures(benchmark), "", *base.licence(benchmark))


def _stem(name: str) -> str:
    return name.removesuffix(".parquet")


FORMAT = base.ExportFormat(
    "huggingface", write, lambda folder, about: base.read_triples, file_of, any_name=True, empty_sets=False
)
