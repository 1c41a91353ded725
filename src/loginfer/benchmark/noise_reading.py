"""The noise of a benchmark's folder: what the files of train hold, and what they would hold without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from loginfer.benchmark.layout import NOISE
from loginfer.benchmark.noise import KINDS, Noise, exchanged
from loginfer.benchmark.noise_tables import NoiseTable
from loginfer.benchmark.raw import RawFolder
from loginfer.benchmark.values import SPLITS, NegativeSet, Splits
from loginfer.errors import InputError
from loginfer.kg.triples import distinct_keys

__all__ = ["noise_of"]


def noise_of(raw: RawFolder, table: NoiseTable) -> tuple[Noise, NegativeSet]:
    """Return the noise of a folder, and its negatives as they lie there, both without origins.

    Parameters
    ----------
    raw
        The folder.
    table
        Its `noise.parquet`.

    Raises
    ------
    InputError
        If the folder has the negatives of none or several methods.
    """
    if len(raw.methods) != 1:
        raise InputError(
            f"a benchmark with noise has the negatives of one method, not of {len(raw.methods)}",
            where=str(raw.path / NOISE),
            hint="build the benchmark again",
        )
    (method,) = raw.methods
    keys = raw.keys
    lines = {split: distinct_keys(keys.pack(raw.lines(split, method))) for split in SPLITS}
    told: Mapping[str, Any] = (raw.manifest or {}).get("negatives", {}).get(method, {})
    asked: dict[str, int] = {split: told[split]["asked"] for split in SPLITS if told}
    noisy = NegativeSet(
        method,
        Splits(*(keys.unpack(lines[split]) for split in SPLITS)),
        {},
        asked,
        tuple(map(str, told.get("notes", ()))),
    )
    packed = keys.pack(table.triples)
    out, new = (packed[table.kind == KINDS.index(k)] for k in ("flipped-positive", "flipped-negative"))
    train = keys.unpack(exchanged(lines["train"], out, np.sort(new)))
    clean = replace(noisy, splits=Splits(train, noisy.splits.valid, noisy.splits.test))
    counts: Mapping[str, Any] = (raw.manifest or {}).get("noise", {})
    return Noise(table.triples, table.kind, clean, _sizes(counts, "asked"), _sizes(counts, "reached")), noisy


def _sizes(counts: Mapping[str, Any], key: str) -> dict[str, int]:
    found = counts.get(key) if isinstance(counts, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: number for name, number in found.items() if isinstance(number, int)}
