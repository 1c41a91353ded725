"""What theory says about which system can express which pattern, as data with its reasons."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Literal, cast, get_args

__all__ = ["ANSWERS", "Answer", "Expressiveness", "expressiveness", "theory"]

Answer = Literal["yes", "no", "unknown"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)


@dataclass(frozen=True, slots=True)
class Expressiveness:
    """Whether a system can express a pattern.

    Parameters
    ----------
    system
        Our name of the system.
    pattern
        The paper's short name: `sym`, `inver`, `hier`, `comp`, `inter`, `trian`, `diam`.
    can
        `yes`, `no` or `unknown`.
    why
        The reason, in a sentence.
    source
        Where it is proved, or what it follows from.
    """

    system: str
    pattern: str
    can: Answer
    why: str
    source: str


def expressiveness(system: str, pattern: str) -> Expressiveness | None:
    """Return what is known of a system and a pattern; None for others than those of the table."""
    return theory().get((system, pattern))


@lru_cache(maxsize=1)
def theory() -> dict[tuple[str, str], Expressiveness]:
    """Return all that is known, by system and pattern."""
    text = (resources.files("loginfer.report") / "data" / "expressiveness.toml").read_text(encoding="utf-8")
    known = tomllib.loads(text)
    sources: dict[str, str] = known.pop("source")
    return {
        (system, pattern): Expressiveness(
            system, pattern, cast(Answer, cell["can"]), cell["why"], sources[cell["source"]]
        )
        for system, patterns in known.items()
        for pattern, cell in patterns.items()
    }
