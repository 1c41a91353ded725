"""The gate: which shortcuts do better on a benchmark than they may, and on which rules that rests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loginfer.benchmark.shortcut_rules import RuleShare, most_important, rule_shares, shortcut_decisions
from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError

__all__ = ["Exceeded", "check_limit", "gate"]


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A shortcut that does better than it may.

    Parameters
    ----------
    method, shortcut
        Whose negatives, and which shortcut.
    accuracy, limit
        Its accuracy on test, and the largest that it may have.
    rules
        Rule by rule, those that contribute most first; empty if the rules are not known.
    texts
        The most important of them, as texts.
    """

    method: str
    shortcut: str
    accuracy: float
    limit: float
    rules: tuple[RuleShare, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def over(self) -> tuple[RuleShare, ...]:
        """The rules on which the shortcut alone is above the limit."""
        return tuple(share for share in self.rules if share.accuracy > self.limit)

    @property
    def message(self) -> str:
        """What is wrong, in one sentence; rules are numbered from 0, as in `rules.txt`."""
        said = f"{self.method}: the shortcut `{self.shortcut}` reaches {_percent(self.accuracy)} on test, "
        said += f"above {_percent(self.limit)}"
        if not self.rules:
            return said
        said += f"; above it for {len(self.over):,} of {len(self.rules):,} rules"
        shown = [
            f"rule {share.rule} ({_percent(share.accuracy)} of {share.triples:,.0f} triples)"
            for share in most_important(self.rules)
        ]
        return f"{said}, most for {', '.join(shown)}" if shown else said

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "method": self.method,
            "shortcut": self.shortcut,
            "accuracy": self.accuracy,
            "limit": self.limit,
            "rules_above": len(self.over),
            "rules": [share.as_dict() for share in self.rules],
            "message": self.message,
        }


def check_limit(limit: float, *, where: str | None = None) -> float:
    """Return a limit for shortcuts if it makes sense: a share above 0.5 and at most 1.

    Raises
    ------
    InputError
        With a hint where a percentage was meant.
    """
    if 0.5 < limit <= 1:
        return limit
    hint = "a share, such as 0.6 for 60 %"
    if 50 < limit <= 100:
        hint = f"write {limit / 100:g} for {limit:g} %"
    raise InputError(
        f"the limit for shortcuts must be above 0.5, which is chance, and at most 1, but is {limit:g}",
        where=where,
        hint=hint,
    )


def gate(benchmark: Benchmark, limit: float) -> list[Exceeded]:
    """Return the shortcuts that are above a limit, method by method, the best first.

    Parameters
    ----------
    benchmark
        The benchmark.
    limit
        The largest accuracy on test that a shortcut may have, see `check_limit`.
    """
    check_limit(limit)
    found = []
    for method in benchmark.negatives:
        decisions = shortcut_decisions(benchmark, method)
        above = {name: said for name, said in decisions.items() if said.accuracy > limit}
        shares = rule_shares(benchmark, method, above)
        exceeded = []
        for name, said in above.items():
            named = tuple(
                f"rule {share.rule}: {benchmark.rules[share.rule].rule}"
                for share in most_important(shares[name])
            )
            exceeded.append(Exceeded(method, name, said.accuracy, limit, shares[name], named))
        found += sorted(exceeded, key=lambda known: (-known.accuracy, known.shortcut))
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace(".0 %", " %")
