"""A finding of the paper, and whether figures confirm it: by comparisons that hold or do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loginfer.report.paper import SYSTEMS
from loginfer.reproduction.figures import FigureSource
from loginfer.reproduction.planning import short, title

Verdict = Literal["confirmed", "in part", "not confirmed", "not tested"]

# In an explanation, more cases than this are only counted.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Comparison:
    """One thing that must hold if the claim does.

    Parameters
    ----------
    case
        What is compared: a system, a benchmark.
    figures
        The numbers that decide, as text.
    holds
        Whether it holds; None if a figure is missing.
    """

    case: str
    figures: str = ""
    holds: bool | None = None

    def negated(self) -> Comparison:
        """Return the same figures where the opposite must hold."""
        return Comparison(self.case, self.figures, None if self.holds is None else not self.holds)


@dataclass(frozen=True, slots=True)
class Check:
    """A part of a claim: comparisons of one kind.

    Parameters
    ----------
    name
        What is looked at.
    comparisons
        All of them.
    enough
        The share of comparisons that must hold to confirm it.
    """

    name: str
    comparisons: tuple[Comparison, ...]
    enough: float = 1.0

    @property
    def holds(self) -> int:
        """How many comparisons hold."""
        return sum(comparison.holds is True for comparison in self.comparisons)

    @property
    def decided(self) -> int:
        """How many comparisons could be made."""
        return sum(comparison.holds is not None for comparison in self.comparisons)

    @property
    def verdict(self) -> Verdict:
        """Whether enough of the comparisons hold; in part if more than half do. All must be known."""
        if not self.comparisons or self.decided < len(self.comparisons):
            return "not tested"
        if self.holds >= self.enough * len(self.comparisons):
            return "confirmed"
        return "in part" if 2 * self.holds > len(self.comparisons) else "not confirmed"

    @property
    def explanation(self) -> str:
        """How many comparisons hold, with which figures if they are few; which do not; what is missing."""
        text = f"{self.name}: {self.verdict}, {self.holds} of {self.decided} comparisons hold"
        hold, against = (
            [f"{c.case} ({c.figures})" for c in self.comparisons if c.holds is outcome] for outcome in (True, False)
        )
        missing = [c.case for c in self.comparisons if c.holds is None]
        if hold and len(self.comparisons) <= _SHOWN:
            text += f": {_listed(hold)}"
        if against:
            text += f". Against it: {_listed(against)}"
        if missing:
            text += f". Missing: {_listed(missing)}"
        return text + "."


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper, and how it is tested.

    Parameters
    ----------
    number, section
        Where it stands: a number within the report, and the paper's section.
    text
        The claim, in our words.
    test
        What is looked at, precisely.
    checks
        Compares figures.
    remark
        What else our figures say about it; empty for nothing.
    """

    number: str
    section: str
    text: str
    test: str
    checks: Callable[[FigureSource], list[Check]]
    remark: Callable[[FigureSource], str] = lambda source: ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What some figures say about a claim."""

    verdict: Verdict
    explanation: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim with the verdict of our figures, and that of the paper's own by the same criterion."""

    claim: Claim
    ours: Judgement
    paper: Judgement
    remark: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether our figures confirm it."""
        return self.ours.verdict

    @property
    def explanation(self) -> str:
        """Which comparisons decide, and what goes against it."""
        return self.ours.explanation

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "number": self.claim.number,
            "section": self.claim.section,
            "claim": self.claim.text,
            "test": self.claim.test,
            "verdict": self.ours.verdict,
            "explanation": self.ours.explanation,
            "figures": as_figures(self.ours),
            "paper_verdict": self.paper.verdict,
            "paper_explanation": self.paper.explanation,
            "paper_figures": as_figures(self.paper),
            "remark": self.remark,
        }


def judge(checks: Sequence[Check]) -> Judgement:
    """Return the verdict on a claim: that of its parts if they agree, `not tested` if one is not, else in part."""
    verdicts = [check.verdict for check in checks]
    verdict: Verdict = "in part"
    if "not tested" in verdicts:
        verdict = "not tested"
    elif set(verdicts) == {"confirmed"}:
        verdict = "confirmed"
    elif set(verdicts) == {"not confirmed"}:
        verdict = "not confirmed"
    return Judgement(verdict, " ".join(check.explanation for check in checks), tuple(checks))


def as_figures(judgement: Judgement) -> list[dict[str, Any]]:
    """Return all comparisons of a judgement as JSON values."""
    return [
        {
            "check": check.name,
            "holds": check.holds,
            "of": len(check.comparisons),
            "comparisons": [{"case": c.case, "figures": c.figures, "holds": c.holds} for c in check.comparisons],
        }
        for check in judgement.checks
    ]


def _listed(words: Sequence[str]) -> str:
    text = "; ".join(words[:_SHOWN])
    return text if len(words) <= _SHOWN else f"{text}; and {len(words) - _SHOWN} more"


# -- comparisons that several claims share --------------------------------------------------------

ACCURACY = "balanced_accuracy"
# What we take for "poorly" and "strong", in points and percent of balanced accuracy.
POORLY = 5.0
STRONG = 90.0
# What we take for a high score, in percent.
HIGH = 90.0

# Benchmarks by what people call them.
NamedBenchmarks = Mapping[str, str]

# The eight systems that the paper evaluates; SimpBL is its baseline.
EIGHT = tuple(name for name in SYSTEMS if name != "simpbl")
EMBEDDING = ("transe", "rotate", "complex", "distmult", "boxe")
MINING = ("anyburl", "rulen")

# The paper's words: simple patterns, and complex ones "involving conjunctions and inequalities in bodies".
SIMPLE = {kg: tuple(f"LogInfer-{kg}-{pattern}-pa" for pattern in ("sym", "inver", "hier")) for kg in ("FB", "WN")}
COMPLEX = {kg: (f"LogInfer-{kg}-comp-pa", f"LogInfer-{kg}-trian-qg", f"LogInfer-{kg}-diam-qg") for kg in ("FB", "WN")}
# All benchmarks of the two main tables.
BENCHMARKS = (
    *SIMPLE["FB"], "LogInfer-FB-comp-pa", "LogInfer-FB-inter-qg", *COMPLEX["FB"][1:],
    *SIMPLE["WN"], *COMPLEX["WN"], "LogInfer-LUBM-all-qg", "LogInfer-LUBM-no-type-qg",
)  # fmt: skip


def mean_of(
    source: FigureSource, systems: Sequence[str], benchmarks: Sequence[str], metric: str = ACCURACY
) -> float | None:
    """Return the mean of a metric over systems and benchmarks; None unless all figures are there."""
    figures = [source.mean(system, benchmark, metric) for system in systems for benchmark in benchmarks]
    values = [value for value in figures if value is not None]
    return sum(values) / len(values) if values and len(values) == len(figures) else None


def above(
    case: str, larger: float | None, smaller: float | None, points: float = 0.0, strict: bool = False
) -> Comparison:
    """Compare two figures: the first must be larger by at least so many points.

    Parameters
    ----------
    case
        What is compared.
    larger, smaller
        Fractions.
    points
        By how many percentage points at least.
    strict
        Whether more than that is needed.
    """
    if larger is None or smaller is None:
        return Comparison(case)
    # Figures of the paper have one decimal; their differences are no better than that.
    distance = round(100 * (larger - smaller), 6)
    holds = distance > points if strict else distance >= points
    return Comparison(case, f"{100 * larger:.1f} against {100 * smaller:.1f}", holds)


def at_least(case: str, value: float | None, least: float, strict: bool = False) -> Comparison:
    """Compare a figure with a number of percent."""
    if value is None:
        return Comparison(case)
    percent = round(100 * value, 6)
    text = f"{percent:.1f}"
    if float(text) == least != percent:  # rounded it would look equal
        text = f"{percent:.2f}"
    return Comparison(case, text, percent > least if strict else percent >= least)


def named(system: str, benchmark: str) -> str:
    """Return what people call a system on a benchmark."""
    return f"{title(system)} on {short(benchmark)}"


def better_than_baseline(source: FigureSource, benchmarks: NamedBenchmarks, metric: str, points: float) -> Check:
    """Compare each of the eight systems with SimpBL."""
    compared = [
        above(f"{title(s)} on {name}", source.mean(s, b, metric), source.mean("simpbl", b, metric), points)
        for name, b in benchmarks.items()
        for s in EIGHT
    ]
    return Check("Better than SimpBL", tuple(compared))


def simple_above_complex(
    source: FigureSource, groups: Mapping[str, tuple[Sequence[str], Sequence[str]]], points: float
) -> Check:
    """Compare, for each of the eight systems, benchmarks with simple and with complex patterns, graph by graph."""
    compared = [
        above(f"{title(system)} on {kg}", mean_of(source, [system], simple), mean_of(source, [system], hard), points)
        for kg, (simple, hard) in groups.items()
        for system in EIGHT
    ]
    return Check("Simple patterns above complex ones", tuple(compared))


def gain_of_rules(
    source: FigureSource, simple: NamedBenchmarks, complex_: NamedBenchmarks, on_simple: float, on_complex: float
) -> list[Check]:
    """Compare rule-based systems with the others: they gain on simple patterns, and not on complex ones."""
    others = tuple(system for system in EIGHT if system not in MINING)

    def gains(benchmarks: NamedBenchmarks, points: float) -> list[Comparison]:
        means = {name: (mean_of(source, MINING, [b]), mean_of(source, others, [b])) for name, b in benchmarks.items()}
        return [above(name, *pair, points, strict=True) for name, pair in means.items()]

    none = (gain.negated() for gain in gains(complex_, on_complex))
    return [
        Check("Rule-based systems better on simple patterns", tuple(gains(simple, on_simple))),
        Check("No clear gain on complex patterns", tuple(none)),
    ]


def poor(source: FigureSource, system: str, benchmarks: NamedBenchmarks) -> tuple[Comparison, ...]:
    """Compare an embedding method with the mean of the others."""
    others, case = [name for name in EMBEDDING if name != system], f"the other embedding methods and {title(system)}"
    return tuple(
        above(f"{case} on {name}", mean_of(source, others, [b]), source.mean(system, b, ACCURACY), POORLY)
        for name, b in benchmarks.items()
    )


def strong_on_hierarchy(source: FigureSource, benchmarks: NamedBenchmarks) -> Check:
    """Compare RotatE with a high share."""
    compared = [at_least(name, source.mean("rotate", b, ACCURACY), STRONG) for name, b in benchmarks.items()]
    return Check("RotatE strong on hierarchy", tuple(compared))
