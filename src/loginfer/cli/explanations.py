"""Explanations as people and programs read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loginfer.cli.common import note

if TYPE_CHECKING:
    from loginfer.engine.program import Explanation

__all__ = ["as_json", "print_explanation", "short", "triple_text"]


def as_json(step: Explanation) -> dict[str, Any]:
    """Return one step of an explanation for a program."""
    return {
        "triple": list(step.triple),
        "reasons": [
            {
                "rule": str(reason.rule),
                "place": reason.place,
                "witness": {str(variable): value for variable, value in reason.witness.items()},
                "premises": [list(premise) for premise in reason.premises],
                **({"absent": [list(denied) for denied in reason.absent]} if reason.absent else {}),
            }
            for reason in step.reasons
        ],
    }


def print_explanation(
    answer: Explanation, steps: list[Explanation], follows: bool, depth: int | None, closure: bool
) -> None:
    """Print why a triple follows, or that it does not.

    Parameters
    ----------
    answer
        The triple, and why it follows in one step.
    steps
        The steps that lead to it, in the order of derivation.
    follows
        Whether it follows.
    depth
        In how many steps, if known.
    closure
        Whether more than one step was asked for.
    """
    print(triple_text(answer.triple))
    if answer.in_graph:
        print("  is in the graph")
    if not follows:
        # The materialisation does not derive the graph's own triples again.
        print("  does not follow " + ("from the rules" if closure and not answer.in_graph else "in one step"))
        if not closure and not answer.in_graph:
            note("hint: --closure looks further than one step")
        return
    if depth is not None and depth > 1:
        print(f"  follows in {depth} steps")
    for step in steps:
        for reason in step.reasons:
            if len(steps) > 1:
                print(f"{triple_text(step.triple)}")
            print(f"  follows by rule {reason.place + 1}: {short(str(reason.rule))}")
            for premise in reason.premises:
                print(f"    because {triple_text(premise)}")
            for absent in reason.absent:
                print(f"    and there is no {triple_text(absent)}")


def triple_text(triple: Sequence[str]) -> str:
    """Return a triple of names as text."""
    return f"({', '.join(short(name) for name in triple)})"


def short(text: str) -> str:
    """Leave out the namespace of IRIs that end in #name; the last part is enough to find them again."""
    return re.sub(r"<?https?://[^\s,()<>\"]*#([A-Za-z_][\w.-]*)>?", r"\1", text)
