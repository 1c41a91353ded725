"""What a rule derives: exact evaluation of rules over a graph."""

from loginfer.engine.interface import (
    BodyTable,
    Derivations,
    Engine,
    Materialisation,
    Progress,
    Witnesses,
)

__all__ = ["BodyTable", "Derivations", "Engine", "Materialisation", "Progress", "Witnesses"]
