"""Which version of the code was measured."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["source_digest"]


def source_digest() -> str:
    """Return the beginning of a checksum of all of LogInfer's source files.

    Figures that are compared must come from the same code: those with another checksum do not.
    """
    import loginfer

    root = Path(loginfer.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
