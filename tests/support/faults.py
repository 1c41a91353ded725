"""A random graph to build from, and how faults are put into the folder of a benchmark."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from loginfer.benchmark import Audit
from loginfer.kg import KnowledgeGraph

TRIANGLE = "(x,_R,y), (x,_S,z), (y,_T,z), x != y, x != z, y != z -> (x,_P,y)"
RELATIONS = ["helps", "knows", "likes", "meets"]


def random_graph(seed: int = 5, entities: int = 70, relations: int = 4, triples: int = 900) -> KnowledgeGraph:
    rng = random.Random(seed)
    names = [f"e{i:02d}" for i in range(entities)]
    kinds = RELATIONS[:relations]
    rows = {(rng.choice(names), rng.choice(kinds), rng.choice(names)) for _ in range(triples)}
    return KnowledgeGraph.from_names(sorted(rows), type_predicate="")


def lines(folder: Path, name: str) -> list[str]:
    return (folder / name).read_text().splitlines()


def put(folder: Path, name: str, rows: list[str]) -> None:
    (folder / name).write_text("".join(f"{row}\n" for row in rows))


def stamp(folder: Path, change: Callable[[dict[str, Any]], object] | None = None) -> None:
    """Make all sums those of the files, so that only a deeper check can find the fault."""
    manifest = json.loads((folder / "manifest.json").read_text())
    if change is not None:
        change(manifest)
    # The description is last: it holds the sums of the other files.
    for name, entry in sorted(manifest["files"].items(), key=lambda item: item[0] == "croissant.json"):
        if name == "croissant.json":
            describe(folder, manifest["files"])
        if (folder / name).exists():
            data = (folder / name).read_bytes()
            entry.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def describe(folder: Path, files: dict[str, Any]) -> None:
    """Make the sums of croissant.json those of the manifest."""
    description = json.loads((folder / "croissant.json").read_text())
    description["distribution"] = [file for file in description["distribution"] if file["@id"] in files]
    for file in description["distribution"]:
        sums = files[file["@id"]]
        file.update(contentSize=f"{sums['bytes']} B", sha256=sums["sha256"])
    (folder / "croissant.json").write_text(json.dumps(description, indent=2, ensure_ascii=False) + "\n")


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / name).to_pylist()
    return found


def put_rows(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    schema = pq.read_table(folder / name).schema
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / name, store_schema=False)


def triple(row: dict[str, Any]) -> str:
    return "\t".join((row["subject"], row["relation"], row["object"]))


def errors(found: Audit, check: str) -> str:
    """What the errors of one check say, with their examples."""
    wrong = [finding for finding in found.found(check) if finding.severity == "error"]
    return "\n".join([f"{w.message} {' '.join(map(str, w.examples))}" for w in wrong])


def changed_sums(found: Audit) -> bool:
    return bool(errors(found, "changed-files"))
