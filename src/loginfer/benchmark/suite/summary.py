"""The suite's sizes next to the paper's, with the reason wherever they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loginfer.benchmark.manifest import read_manifest
from loginfer.benchmark.suite.entries import Entry, all_entries
from loginfer.benchmark.suite.run import Built
from loginfer.benchmark.values import SPLITS
from loginfer.files import atomic_write, remove_leftovers

__all__ = ["TOLERANCE", "difference", "summary", "summary_text", "write_summary"]

# Sizes that differ from the paper's by no more than this are a matter of random heads and overlaps.
TOLERANCE = 0.03


def difference(entry: Entry, manifest: Mapping[str, Any]) -> tuple[float, str]:
    """Return by how much the sizes differ from the paper's at most, and why if that is not chance."""
    sizes = manifest["positives"]
    most = max((sizes[s] / entry.group.paper[s] - 1 for s in SPLITS), key=abs)
    if abs(most) <= TOLERANCE:
        return most, ""
    rules = manifest["rules"]
    sampled = sum(rule["sampled"] for rule in rules)
    distinct = sum(manifest["conclusions"].values())
    wanted = sum(entry.group.paper[s] for s in SPLITS) - entry.group.paper["kg"]
    counts = (
        f"{sampled:,} conclusions sampled from {len(rules)} rules, {distinct:,} distinct; paper {wanted:,}."
    )
    return most, f"{entry.group.remark} {counts}".strip()


def summary_text(results: Sequence[Built]) -> str:
    """Return the suite's sizes next to the paper's, as a Markdown table, with reasons for differences."""
    known = {entry.name: entry for entry in all_entries()}
    lines = [
        "| benchmark | rules | train | valid | test | paper: train | valid | test | difference |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    reasons: dict[str, str] = {}
    for built in results:
        entry = known[built.name]
        paper = " | ".join(f"{entry.group.paper[s]:,}" for s in SPLITS)
        if not built.manifest:
            lines.append(f"| {built.name} | failed | | | | {paper} | |")
            reasons[built.name] = built.error
            continue
        most, why = difference(entry, built.manifest)
        ours = " | ".join(f"{built.manifest['positives'][s]:,}" for s in SPLITS)
        lines.append(
            f"| {built.name} | {len(built.manifest['rules'])} | {ours} | {paper} | {100 * most:+.1f} % |"
        )
        if why:
            reasons.setdefault(entry.group.name, why)
    lines += [
        "",
        f"The difference is the largest of the three; up to {100 * TOLERANCE:.0f} % come from random",
    ]
    lines += (
        ["heads and overlaps between rules. Beyond that:", ""]
        if reasons
        else ["heads and overlaps between rules."]
    )
    lines += [f"- {name}: {why}" for name, why in reasons.items()]
    return "\n".join(lines) + "\n"


def write_summary(folder: Path, results: Sequence[Built]) -> None:
    """Write the summary of all that is in the suite's folder, for people and for programs."""
    results = _with_others(folder, results)
    texts = {
        "SUITE.md": "# LogInfer suite\n\n" + summary_text(results),
        "suite.json": json.dumps(summary(results), indent=2, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        remove_leftovers(folder / name)
        with atomic_write(folder / name, force=True) as stream:
            stream.write(text)


def summary(results: Sequence[Built]) -> list[dict[str, Any]]:
    """Return the suite's sizes next to the paper's, for a program."""
    known = {entry.name: entry for entry in all_entries()}
    rows: list[dict[str, Any]] = []
    for built in results:
        entry = known[built.name]
        row: dict[str, Any] = {
            "name": built.name,
            "built": bool(built.manifest),
            "paper": dict(entry.group.paper),
        }
        if built.manifest:
            most, why = difference(entry, built.manifest)
            row |= {
                "positives": dict(built.manifest["positives"]),
                "rules": len(built.manifest["rules"]),
                "difference": round(most, 6),
                "reason": why,
            }
        else:
            row["error"] = built.error
        rows.append(row)
    return rows


def _with_others(folder: Path, results: Sequence[Built]) -> list[Built]:
    """Return the results together with benchmarks that the folder has from before, in the suite's order."""
    known = {built.name: built for built in results}
    for entry in all_entries():
        if entry.name not in known and (folder / entry.name).is_dir():
            manifest = read_manifest(folder / entry.name, [])
            if manifest is not None:
                known[entry.name] = Built(entry.name, "kept", manifest)
    return [known[entry.name] for entry in all_entries() if entry.name in known]
