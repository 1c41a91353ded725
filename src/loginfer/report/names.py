"""Names as people read them: IRIs without their namespaces, long names with a gap in the middle."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loginfer.kg.short_names import middle

__all__ = ["common_prefix", "last_part", "middle", "short_rule", "short_triple"]

# The name behind the last # or / of an IRI; without one the host.
_IRI = re.compile(r"<?(?:https?|urn|ftp):[^\s<>\"]*?([^\s<>\"/#:]+)[/#]?>?")
_IN_TEXT = re.compile(r"<?https?://[^\s,()<>\"]*[#/]([\w.-]+)>?")


def last_part(name: str) -> str:
    """Return an IRI's last part, and any other name as it is."""
    found = _IRI.fullmatch(name)
    return found.group(1) if found else name


def short_rule(text: str) -> str:
    """Return the text of a rule with the last parts of its IRIs only."""
    return _IN_TEXT.sub(r"\1", text)


def short_triple(triple: Sequence[str]) -> str:
    """Return a triple of names as text, IRIs by their last parts."""
    return f"({', '.join(last_part(name) for name in triple)})"


def common_prefix(names: Sequence[str], prefix: str = "LogInfer-") -> str:
    """Return what all names begin with and labels may leave out: the suite's prefix, or nothing."""
    shared = len(names) > 0 and all(name.startswith(prefix) and len(name) > len(prefix) for name in names)
    return prefix if shared else ""
