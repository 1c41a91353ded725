"""What the paper says beside its tables, held against measurements and standard splits.

Its figures are only part of it: where it prints none, there is nothing that its statements could be held against but
ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import stdev
from typing import Any

from loginfer.report.paper import paper_sizes
from loginfer.reproduction.claims import paper
from loginfer.reproduction.claims.paper import ACCURACY, CLEARLY, EIGHT, HIGH, ClaimCheck, Comparison, above, at_least
from loginfer.reproduction.figures import FigureSource
from loginfer.reproduction.planning import data, measurements, title
from loginfer.reproduction.standard import STANDARD_SPLITS

# "Likely", of undesired sub-rules with a witness, and of candidates without support, in percent.
HALF = 50.0
# The mean cosine between phases that coincide, and how much oftener the converse must be taken for true, in points.
COINCIDE = 0.9
GAP = 10.0
# With fewer witnesses a rule cannot give each split a conclusion: the default of `min_new`.
SUPPORTED = 10


def _measured(source: FigureSource, kind: str) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Yield what each measurement of a kind is about, and its figures."""
    for name, about in measurements().items():
        if about.kind == kind:
            yield f"{title(about.system)} on {about.of}" if about.system else about.of, source.measured(name)


# -- standard splits ----------------------------------------------------------------------------------


def _worse(source: FigureSource) -> list[ClaimCheck]:
    def compared(metric: str) -> Iterator[Comparison]:
        for split in STANDARD_SPLITS:
            graph = "WN" if split.group.kg == "wn18rr" else "FB"
            ours = [name for name in paper.BENCHMARKS if name.startswith(f"LogInfer-{graph}-")]
            for system in EIGHT:
                case, standard = f"{title(system)} on {split.group.name}", source.mean(system, split.name, metric)
                yield above(case, standard, paper.mean_of(source, [system], ours, metric), CLEARLY)

    return [
        ClaimCheck("Balanced accuracy better on the standard split", tuple(compared(ACCURACY))),
        ClaimCheck("C-MRR better on the standard split", tuple(compared("c_mrr"))),
    ]


def _trivial(source: FigureSource) -> list[ClaimCheck]:
    def high(begin: str, systems: Sequence[str], split: str) -> Comparison:
        return at_least(f"{begin}{split}", paper.mean_of(source, systems, [split]), HIGH)

    return paper.on_average_and_each([split.name for split in STANDARD_SPLITS], high)


# -- undesired sub-rules -------------------------------------------------------------------------------


def _shares(source: FigureSource, method: str) -> list[tuple[str, float | None]]:
    """Return which share of the undesired sub-rules has a witness, in N_train and N_test of each group."""
    return [
        (f"N_{split} of {of}", figures["witnessed"][method][split] / figures["undesired"] if figures else None)
        for of, figures in _measured(source, "subrules")
        for split in ("train", "test")
    ]


def _rarely(source: FigureSource) -> list[ClaimCheck]:
    compared = (at_least(case, share, HALF).negated() for case, share in _shares(source, "rc"))
    return [ClaimCheck("Random corruption witnesses less than half", tuple(compared))]


def _likely(source: FigureSource) -> list[ClaimCheck]:
    coarse, fine = (_shares(source, method) for method in ("rb", "pa"))
    finer = [above(case, b, a, strict=True) for (case, a), (_, b) in zip(coarse, fine, strict=True)]
    return [
        *(
            ClaimCheck(f"{name} at least half", tuple(at_least(case, share, HALF) for case, share in shares))
            for name, shares in (("Relevance-based", coarse), ("Position-aware", fine))
        ),
        ClaimCheck("Position-aware more than relevance-based", tuple(finer)),
    ]


# -- rules ------------------------------------------------------------------------------------------------


def _heads(source: FigureSource) -> list[ClaimCheck]:
    def compared(case: str, figures: Mapping[str, Any] | None, metric: str) -> Comparison:
        if figures is None:
            return Comparison(case)
        heads, seeds = (stdev(100 * run[metric] for run in figures[runs]) for runs in ("heads", "seeds"))
        return Comparison(case, f"{heads:.2f} over heads, {seeds:.2f} over seeds", heads <= max(CLEARLY, 2 * seeds))

    return [
        ClaimCheck(f"{name} alike", tuple(compared(*about, metric) for about in _measured(source, "heads")))
        for metric, name in ((ACCURACY, "Balanced accuracy"), ("c_mrr", "C-MRR"))
    ]


def _candidates(source: FigureSource) -> list[ClaimCheck]:
    def rare(case: str, *counts: Mapping[str, int]) -> Comparison:
        supported, all_ = (sum(count[key] for count in counts) for key in ("supported", "candidates"))
        return at_least(case, 1 - supported / all_ if counts else None, HALF, strict=True)

    by_graph = [(graph, figures or {}) for graph, figures in _measured(source, "candidates")]
    together = (rare(graph, *figures.values()) for graph, figures in by_graph)
    each = (rare(f"{p} in {graph}", counts) for graph, figures in by_graph for p, counts in figures.items())
    return [
        ClaimCheck("Most are rare, of all patterns together", tuple(together)),
        ClaimCheck("Most are rare, pattern by pattern", tuple(each)),
    ]


def _intersections(source: FigureSource) -> list[ClaimCheck]:
    figures = dict(_measured(source, "candidates"))["wn18rr"]
    least = min(size.train + size.valid + size.test - size.kg_triples for size in paper_sizes() if size.kg == "WN")
    compared = Comparison("conclusions of all intersections, and those of the smallest benchmark")
    if figures is not None:
        count = figures["intersection"]["conclusions"]
        compared = Comparison(compared.case, f"{count:,} against {least:,}", count < least)
    return [ClaimCheck("Too few", (compared,))]


def _types(source: FigureSource) -> list[ClaimCheck]:
    def accuracy(system: str, rules: str) -> float | None:
        return source.mean(system, f"LogInfer-LUBM-{rules}-qg", ACCURACY)

    compared = (above(title(s), accuracy(s, "no-type"), accuracy(s, "all"), CLEARLY) for s in EIGHT)
    return [ClaimCheck("Better without types", tuple(compared))]


# -- systems ----------------------------------------------------------------------------------------------


def _phases(source: FigureSource) -> list[ClaimCheck]:
    found = list(_measured(source, "phases"))
    missing = [Comparison(case) for case, figures in found if figures is None]
    rules = [(row["rule"], row) for _, figures in found if figures is not None for row in figures["rules"]]
    asked = [(rule, row) for rule, row in rules if row["converse"] is not None]  # of those some triple is unknown

    def larger(rule: str, one: float, other: float) -> Comparison:
        return Comparison(rule, f"{one:.2f} against {other:.2f}", one >= other)

    def check(name: str, compared: Iterable[Comparison]) -> ClaimCheck:
        return ClaimCheck(name, (*compared, *missing), paper.GENERALLY)

    return [
        check(
            "More alike than any other", (larger(rule, row["alike"], row["most_alike_other"]) for rule, row in rules)
        ),
        check("Phases coincide", (larger(rule, row["alike"], COINCIDE) for rule, row in rules)),
        check("The converse is taken for true", (at_least(rule, row["converse"], HALF) for rule, row in asked)),
        check("More than others", (above(rule, r["converse"], r["other_relations"], GAP) for rule, r in asked)),
    ]


def _relations(source: FigureSource) -> list[ClaimCheck]:
    better, most = [], []
    for case, figures in _measured(source, "relations"):
        own, shared = (figures or {}).get("own", {}), (figures or {}).get("shared", {})
        better.append(above(case, own.get("r_mrr"), shared.get("r_mrr"), CLEARLY))
        gains = [own[metric] - shared[metric] if figures else None for metric in ("r_mrr", "c_mrr")]
        most.append(above(case, gains[0], gains[1], strict=True))
    return [
        ClaimCheck("R-MRR better with parameters of each relation", tuple(better)),
        ClaimCheck("R-MRR gains more than C-MRR", tuple(most)),
    ]


# -- data sets --------------------------------------------------------------------------------------------


def _requirements(source: FigureSource, met: bool, *names: str) -> list[ClaimCheck]:
    """Compare data sets with both requirements: the first is said to be met, or not, the second not."""
    followed, negatives = [], []
    for name, figures in _measured(source, "requirements"):
        if not name.startswith(names):
            continue
        share, count = None, None
        if figures is not None:
            share, count = figures["predicted"] / figures["test"], figures["negatives"]["train"]
        comparison = at_least(name, share, HIGH)
        followed.append(comparison if met else comparison.negated())
        negatives.append(Comparison(name) if count is None else Comparison(name, f"{count:,}", count == 0))
    verb = "met" if met else "not met"
    return [
        ClaimCheck(f"Requirement 1 {verb}: test triples that follow", tuple(followed)),
        ClaimCheck("Requirement 2 not met: negatives for train", tuple(negatives)),
    ]


_CHECKS: dict[str, Callable[[FigureSource], list[ClaimCheck]]] = {
    "12": _worse, "13": _trivial, "14": _rarely, "15": _likely, "16": _heads, "17": _candidates, "18": _intersections,
    "19": _types, "20": _phases, "21": _relations,
    "22": lambda source: _requirements(source, True, "kinship", "countries"),
    "23": lambda source: _requirements(source, False, "inferwiki"),
}  # fmt: skip
_LIMITS = {
    "clearly": CLEARLY, "high": HIGH, "supported": SUPPORTED, "coincide": COINCIDE, "gap": GAP,
    "generally": 100 * paper.GENERALLY,
}  # fmt: skip
STATEMENTS = paper.claims_of(data("claims.toml")["statement"], _CHECKS, {}, _LIMITS)
