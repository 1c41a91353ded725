"""Who takes part in the reproduction: the paper's nine systems, and three to hold them against."""

from __future__ import annotations

from collections.abc import Iterable

from loginfer.errors import UnknownNameError
from loginfer.report.paper import SYSTEMS

__all__ = ["DECIDED", "MINERS", "ONE_SEED", "PARTICIPANTS", "participants", "title"]

# Our names, the paper's systems first.
PARTICIPANTS = (*SYSTEMS, "exact", "contrast", "oracle")
# Those whose runs keep rules that can be compared with the benchmark's.
MINERS = ("anyburl", "rulen", "exact", "contrast")
# Nothing in them is random, with the settings used here: a second seed would give the same figures.
ONE_SEED = ("simpbl", "exact", "oracle")
# Those that say yes or no, 1 or 0: a threshold chosen on valid would turn what they say into something else.
DECIDED = {"simpbl": 0.5}


def participants(names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return systems by name, in any case, in the order of the tables; by default all.

    Raises
    ------
    UnknownNameError
        For a system that does not take part, with the nearest that do.
    """
    from loginfer.systems.registry import systems

    aliases = {alias: entry.name for entry in systems() for alias in entry.aliases}
    wanted = set()
    for name in names:
        folded = name.strip().casefold()
        found = aliases.get(folded, folded)
        if found not in PARTICIPANTS:
            raise UnknownNameError("system", name.strip(), PARTICIPANTS, where="--systems")
        wanted.add(found)
    return tuple(name for name in PARTICIPANTS if not wanted or name in wanted)


def title(system: str) -> str:
    """Return a system's name in print: the paper's own where it has one."""
    return SYSTEMS.get(system, system)
