"""The file of figures: what was measured, and what follows from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from loginfer.files import atomic_write
from perf.growth.axes import Size
from perf.growth.plan import Kind

__all__ = ["Record", "cpu", "key_of", "megabytes", "read", "record_key", "wall", "write"]

Record = dict[str, Any]
Key = tuple[int, int, int, str, str, str]


def key_of(size: Size, kind: Kind) -> Key:
    """Return what tells one measurement from all others."""
    return (size.triples, size.relations, size.entities, kind.step, kind.what, kind.engine)


def record_key(record: Record) -> Key:
    """Return the same for a measurement in the file."""
    names = ("triples", "relations", "entities", "step", "what", "engine")
    triples, relations, entities, step, what, engine = (record[name] for name in names)
    return triples, relations, entities, step, what, engine


def cpu(record: Record) -> float:
    """CPU seconds: of the second call in a process, or of the only one."""
    return float(record["warm"])


def wall(record: Record) -> float:
    """Seconds on the clock of the same call."""
    return float(record["summary"]["call_wall"])


def megabytes(record: Record) -> float:
    """Peak memory of all processes."""
    return max(float(record["megabytes"]), float(record["summary"]["all_megabytes"]))


def read(file: Path) -> list[Record]:
    """Return what was measured; nothing if there is no file."""
    if not file.exists():
        return []
    found: list[Record] = json.loads(file.read_text(encoding="utf-8"))["measured"]
    return found


def write(file: Path, records: list[Record]) -> None:
    """Write what was measured, with exponents and unit costs."""
    from perf.growth.fitting import exponents
    from perf.growth.units import unit_costs

    ordered = sorted(records, key=record_key)
    content = {"unit_costs": unit_costs(ordered), "exponents": exponents(ordered), "measured": ordered}
    with atomic_write(file, force=True) as stream:
        stream.write(json.dumps(content, indent=1) + "\n")
