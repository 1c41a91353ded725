"""Rules from the bodies that the workspace lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perf.workspace import CHAIN


def rules_of(graph: Any, bodies: str, pattern: str) -> list[Any]:
    """Return a rule for each body; the head's relation is the first that the body does not have."""
    from loginfer import parse_pattern
    from loginfer.logic.patterns import instantiate

    parsed = parse_pattern(CHAIN if pattern == "chain" else pattern)
    rules = []
    for row in json.loads(Path(bodies).read_text())[pattern]:
        head = next(r for r in range(len(graph.relations)) if r not in row)
        rules.append(instantiate(parsed, [graph.relations[r] for r in row], graph.relations[head]))
    return rules
