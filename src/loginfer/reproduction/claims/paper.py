"""The paper's findings of sections 5.2 (its two main tables), 5.3 (negatives) and 5.4 (rules of miners).

A finding is tested by comparisons of figures, which hold or do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from statistics import median
from typing import Any, Literal

from loginfer.report.paper import SYSTEMS
from loginfer.reproduction.figures import FigureSource, PaperFigures, stated_averages
from loginfer.reproduction.planning import data, short, title

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
class ClaimCheck:
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
        Where it stands: a number within the report, and the paper's section if there is one.
    text
        The claim, in our words.
    test
        What is looked at, precisely.
    checks
        Compares figures, of whatever kind it is about.
    remark
        What else our figures say about it; empty for nothing.
    """

    number: str
    section: str
    text: str
    test: str
    checks: Callable[[Any], list[ClaimCheck]]
    remark: Callable[[FigureSource], str]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What some figures say about a claim."""

    verdict: Verdict
    explanation: str
    checks: tuple[ClaimCheck, ...]


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

    @property
    def printed(self) -> bool:
        """Whether the paper prints figures that say anything about it."""
        return any(check.decided for check in self.paper.checks)

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


def judge(checks: Sequence[ClaimCheck]) -> Judgement:
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


def better_than_baseline(source: FigureSource, benchmarks: NamedBenchmarks, metric: str, points: float) -> ClaimCheck:
    """Compare each of the eight systems with SimpBL."""
    compared = [
        above(f"{title(s)} on {name}", source.mean(s, b, metric), source.mean("simpbl", b, metric), points)
        for name, b in benchmarks.items()
        for s in EIGHT
    ]
    return ClaimCheck("Better than SimpBL", tuple(compared))


def simple_above_complex(
    source: FigureSource, groups: Mapping[str, tuple[Sequence[str], Sequence[str]]], points: float
) -> ClaimCheck:
    """Compare, for each of the eight systems, benchmarks with simple and with complex patterns, graph by graph."""
    compared = [
        above(f"{title(system)} on {kg}", mean_of(source, [system], simple), mean_of(source, [system], hard), points)
        for kg, (simple, hard) in groups.items()
        for system in EIGHT
    ]
    return ClaimCheck("Simple patterns above complex ones", tuple(compared))


def gain_of_rules(
    source: FigureSource, simple: NamedBenchmarks, complex_: NamedBenchmarks, on_simple: float, on_complex: float
) -> list[ClaimCheck]:
    """Compare rule-based systems with the others: they gain on simple patterns, and not on complex ones."""
    others = tuple(system for system in EIGHT if system not in MINING)

    def gains(benchmarks: NamedBenchmarks, points: float) -> list[Comparison]:
        means = {name: (mean_of(source, MINING, [b]), mean_of(source, others, [b])) for name, b in benchmarks.items()}
        return [above(name, *pair, points, strict=True) for name, pair in means.items()]

    none = (gain.negated() for gain in gains(complex_, on_complex))
    return [
        ClaimCheck("Rule-based systems better on simple patterns", tuple(gains(simple, on_simple))),
        ClaimCheck("No clear gain on complex patterns", tuple(none)),
    ]


def poor(source: FigureSource, system: str, benchmarks: NamedBenchmarks) -> tuple[Comparison, ...]:
    """Compare an embedding method with the mean of the others."""
    others, case = [name for name in EMBEDDING if name != system], f"the other embedding methods and {title(system)}"
    return tuple(
        above(f"{case} on {name}", mean_of(source, others, [b]), source.mean(system, b, ACCURACY), POORLY)
        for name, b in benchmarks.items()
    )


def strong_on_hierarchy(source: FigureSource, benchmarks: NamedBenchmarks) -> ClaimCheck:
    """Compare RotatE with a high share."""
    compared = [at_least(name, source.mean("rotate", b, ACCURACY), STRONG) for name, b in benchmarks.items()]
    return ClaimCheck("RotatE strong on hierarchy", tuple(compared))


# -- the claims ------------------------------------------------------------------------------------

# What we take for "clearly", in points of balanced accuracy.
CLEARLY = 1.0
# What we take for "generally": so large a share of the benchmarks.
GENERALLY = 0.75


def _shortened(benchmarks: Iterable[str]) -> dict[str, str]:
    return {short(benchmark): benchmark for benchmark in benchmarks}


def _baseline(source: FigureSource) -> list[ClaimCheck]:
    pairs = [(a, b) for a in ("rotate", "boxe") for b in ("transe", "complex", "distmult")]

    def compared(benchmarks: Sequence[str], where: str = "") -> list[Comparison]:
        means = {system: mean_of(source, [system], benchmarks) for system in EMBEDDING}
        return [above(f"{title(a)} and {title(b)}{where}", means[a], means[b]) for a, b in pairs]

    by_benchmark = chain.from_iterable(compared([b], f" on {short(b)}") for b in BENCHMARKS)
    return [
        better_than_baseline(source, _shortened(BENCHMARKS), "f1", CLEARLY),
        ClaimCheck("BoxE and RotatE on average", tuple(compared(BENCHMARKS))),
        ClaimCheck("BoxE and RotatE benchmark by benchmark", tuple(by_benchmark)),
    ]


def _simple_and_complex(source: FigureSource) -> list[ClaimCheck]:
    return [simple_above_complex(source, {kg: (SIMPLE[kg], COMPLEX[kg]) for kg in SIMPLE}, CLEARLY)]


def _rule_based(source: FigureSource) -> list[ClaimCheck]:
    simple, complex_ = (_shortened(chain.from_iterable(by_graph.values())) for by_graph in (SIMPLE, COMPLEX))
    return gain_of_rules(source, simple, complex_, 0.0, CLEARLY)


def _contrast(source: FigureSource) -> str:
    """Say what a miner that uses the negatives does where the paper blames their neglect."""
    comparisons = []
    for benchmark in chain.from_iterable(COMPLEX.values()):
        ours = source.mean("contrast", benchmark, ACCURACY)
        others = [source.mean(system, benchmark, ACCURACY) for system in EIGHT]
        other_values = [value for value in others if value is not None]
        if ours is not None and other_values:
            best = max(other_values)
            comparisons.append((ours > best, f"{short(benchmark)} {100 * ours:.1f} ({100 * best:.1f})"))
    if not comparisons:
        return ""
    wins = sum(won for won, _ in comparisons)
    return (
        "The paper explains this by negatives that miners leave aside. contrast, a miner that uses them, is "
        f"above the best of the other systems (in brackets) on {wins} of {len(comparisons)} complex benchmarks: "
        f"{', '.join(text for _, text in comparisons)}."
    )


def _expressive_power(source: FigureSource) -> list[ClaimCheck]:
    def benchmarks(pattern: str) -> dict[str, str]:
        return {f"{kg}-{pattern}": f"LogInfer-{kg}-{pattern}-pa" for kg in ("FB", "WN")}

    return [
        ClaimCheck("TransE poor on symmetry", poor(source, "transe", benchmarks("sym"))),
        ClaimCheck("DistMult poor on inversion", poor(source, "distmult", benchmarks("inver"))),
        strong_on_hierarchy(source, benchmarks("hier")),
    ]


def _metrics_differ(source: FigureSource) -> list[ClaimCheck]:
    def against_median(benchmark: str, metric: str) -> tuple[float | None, float | None]:
        means = [source.mean(s, benchmark, metric) for s in EIGHT if s != "r-gcn"]
        values = [value for value in means if value is not None]
        middle = median(values) if values and len(values) == len(means) else None
        return source.mean("r-gcn", benchmark, metric), middle

    higher, lower = [], []
    for benchmark in BENCHMARKS:
        name = short(benchmark)
        higher.append(above(f"R-GCN and the median on {name}", *against_median(benchmark, "r_mrr"), strict=True))
        ours, middle = against_median(benchmark, "c_mrr")
        lower.append(above(f"the median and R-GCN on {name}", middle, ours, strict=True))
    return [
        ClaimCheck("R-GCN's R-MRR above the median of the others", tuple(higher), GENERALLY),
        ClaimCheck("R-GCN's C-MRR below the median of the others", tuple(lower), GENERALLY),
        ClaimCheck("The best systems by accuracy, C-MRR and R-MRR differ", tuple(_best(source)), GENERALLY),
    ]


def _best(source: FigureSource) -> list[Comparison]:
    """Compare the best systems by three metrics: no system must be among the best by all of them."""
    comparisons = []
    for benchmark in BENCHMARKS:
        winners = []
        for metric in (ACCURACY, "c_mrr", "r_mrr"):
            values = {system: source.mean(system, benchmark, metric) for system in EIGHT}
            rounded = {system: round(1000 * value) for system, value in values.items() if value is not None}
            if len(rounded) == len(values):
                winners.append({s for s, value in rounded.items() if value == max(rounded.values())})
        if len(winners) < 3:
            comparisons.append(Comparison(short(benchmark)))
            continue
        text = " / ".join(", ".join(title(s) for s in EIGHT if s in names) for names in winners)
        comparisons.append(Comparison(short(benchmark), text, not set.intersection(*winners)))
    return comparisons


# Methods from coarse to fine.
METHODS = {"sym": ("rc", "rb", "pa"), "inter": ("rc", "rb", "pa", "qg")}
# How far an average may lie from the one that the paper states, in points.
NEAR = 3.0


def _benchmark(pattern: str, method: str) -> str:
    return f"LogInfer-FB-{pattern}-{method}"


def on_average_and_each(
    cases: Sequence[Any], compare: Callable[[str, Sequence[str], Any], Comparison]
) -> list[ClaimCheck]:
    """Compare the means over the eight systems, then each system; `compare` gets how the name of a case begins."""
    average = [compare("", EIGHT, case) for case in cases]
    by_system = [compare(f"{title(system)} on ", [system], case) for case in cases for system in EIGHT]
    return [ClaimCheck("On average", tuple(average)), ClaimCheck("System by system", tuple(by_system))]


def _random_corruption(source: FigureSource) -> list[ClaimCheck]:
    def high(begin: str, systems: Sequence[str], benchmark: str) -> Comparison:
        return at_least(f"{begin}{short(benchmark)}", mean_of(source, systems, [benchmark]), HIGH)

    return on_average_and_each([_benchmark(pattern, "rc") for pattern in METHODS], high)


def _degradation(source: FigureSource) -> list[ClaimCheck]:
    def falls(begin: str, systems: Sequence[str], step: tuple[str, str, str]) -> Comparison:
        pattern, *methods = step
        coarse, fine = (mean_of(source, systems, [_benchmark(pattern, method)]) for method in methods)
        return above(f"{begin}FB-{pattern}, {' to '.join(methods)}", coarse, fine, strict=True)

    steps = [(pattern, *step) for pattern, methods in METHODS.items() for step in pairwise(methods)]
    return on_average_and_each(steps, falls)


def _averages(source: FigureSource) -> list[ClaimCheck]:
    compared = []
    for benchmark, stated in stated_averages().items():
        average = mean_of(source, EIGHT, [benchmark])
        if average is None:
            compared.append(Comparison(short(benchmark)))
            continue
        near = round(100 * abs(average - stated), 6) <= NEAR
        compared.append(Comparison(short(benchmark), f"{100 * average:.1f}, stated {100 * stated:.1f}", near))
    return [ClaimCheck("Averages", tuple(compared))]


INEXPRESSIBLE = ("LogInfer-FB-inter-qg", "LogInfer-FB-trian-qg", "LogInfer-FB-diam-qg")
TRIANGLES = "LogInfer-FB-trian-qg"
# The paper's "over 95 %", and what we take for "a very large proportion" and for "nearly all", in percent.
INCLUDED = 95.0
LARGE = 75.0
NEARLY_ALL = 85.0
# Rules with random heads that are entailed nearly as often as the benchmark's own, in points.
NO_BETTER = 10.0


def _included(source: FigureSource) -> list[ClaimCheck]:
    compared = [
        at_least(named(system, benchmark), source.recovered(system, benchmark, "eps_cont"), INCLUDED, strict=True)
        for system in MINING
        for benchmark in SIMPLE["FB"]
    ]
    return [ClaimCheck("ε_cont over 95 %", tuple(compared))]


def _entailed(source: FigureSource) -> list[ClaimCheck]:
    never, often = [], []
    for system in MINING:
        for benchmark in INEXPRESSIBLE:
            share = source.recovered(system, benchmark, "eps_cont")
            text = "" if share is None else f"{100 * share:.1f}"
            never.append(Comparison(named(system, benchmark), text, None if share is None else share == 0))
            often.append(at_least(named(system, benchmark), source.recovered(system, benchmark, "eps_ent"), LARGE))
    return [ClaimCheck("ε_cont is 0", tuple(never)), ClaimCheck(f"ε_ent at least {LARGE:g} %", tuple(often))]


def _control(source: FigureSource) -> str:
    """Say how often the same bodies with random heads are entailed."""
    texts, close = [], 0
    for system in MINING:
        for benchmark in INEXPRESSIBLE:
            share = source.recovered(system, benchmark, "eps_ent")
            random = source.recovered(system, benchmark, "eps_ent_random_heads")
            if share is not None and random is not None:
                close += 100 * (share - random) <= NO_BETTER
                texts.append(f"{named(system, benchmark)} {100 * share:.1f} ({100 * random:.1f})")
    if not texts:
        return ""
    return (
        "The same bodies with heads drawn at random (in brackets) are entailed nearly as often, within "
        f"{NO_BETTER:g} points, in {close} of {len(texts)} cases: {', '.join(texts)}. Where that is so, being "
        "entailed says nothing about a rule."
    )


def _sub_rules(source: FigureSource) -> list[ClaimCheck]:
    compared = [
        at_least(named(system, TRIANGLES), source.recovered(system, TRIANGLES, "subrules_entailed"), NEARLY_ALL)
        for system in MINING
    ]
    return [ClaimCheck("R⁻ entailed", tuple(compared))]


# How each claim is tested, and what is remarked on it, by its number; its words are in `data/claims.toml`.
_CHECKS = {
    "1": _baseline, "2": _simple_and_complex, "3": _rule_based, "4": _expressive_power, "5": _metrics_differ,
    "6": _random_corruption, "7": _degradation, "8": _averages, "9": _included, "10": _entailed, "11": _sub_rules,
}  # fmt: skip
_REMARKS = {"3": _contrast, "10": _control}
_LIMITS = {
    "clearly": CLEARLY, "generally": 100 * GENERALLY, "poorly": POORLY, "strong": STRONG, "high": HIGH, "near": NEAR,
    "included": INCLUDED, "large": LARGE, "nearly_all": NEARLY_ALL,
}  # fmt: skip


def claims_of(
    rows: Iterable[Mapping[str, str]],
    checks: Mapping[str, Callable[[Any], list[ClaimCheck]]],
    remarks: Mapping[str, Callable[[FigureSource], str]],
    limits: Mapping[str, float],
) -> tuple[Claim, ...]:
    """Return claims from their words, with how each is tested and what is remarked on it, by its number."""
    return tuple(
        Claim(
            row["number"], row.get("section", ""), row["claim"], row["test"].format_map(limits),
            checks[row["number"]], remarks.get(row["number"], lambda source: ""),
        )
        for row in rows
    )  # fmt: skip


CLAIMS = claims_of(data("claims.toml")["paper"], _CHECKS, _REMARKS, _LIMITS)


def findings(figures: FigureSource, claims: Iterable[Claim] = CLAIMS) -> list[Finding]:
    """Hold the paper's claims against figures, and against its own by the same criteria."""
    paper = PaperFigures()
    return [
        Finding(claim, judge(claim.checks(figures)), judge(claim.checks(paper)), claim.remark(figures))
        for claim in claims
    ]
