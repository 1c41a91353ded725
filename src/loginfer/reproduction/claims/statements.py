"""What the paper says beside its tables, held against measurements and standard splits.

Its figures are only part of it: where it prints none, there is nothing that its statements could be held against but
ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, stdev
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
    def compared(metric: str) -> Iterator[Comparison]:
        for case, figures in _measured(source, "heads"):
            if figures is None:
                yield Comparison(case)
                continue
            heads, seeds = ([100 * run[metric] for run in figures[runs]] for runs in ("heads", "seeds"))
            text = f"{stdev(heads):.2f} over heads, {stdev(seeds):.2f} over seeds"
            yield Comparison(case, text, stdev(heads) <= max(CLEARLY, 2 * stdev(seeds)))

    names = {ACCURACY: "Balanced accuracy", "c_mrr": "C-MRR"}
    return [ClaimCheck(f"{name} alike", tuple(compared(metric))) for metric, name in names.items()]


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
    sizes = [size.train + size.valid + size.test - size.kg_triples for size in paper_sizes() if size.kg == "WN"]
    case = "conclusions of all intersections, and those of the smallest benchmark"
    if figures is None:
        return [ClaimCheck("Too few", (Comparison(case),))]
    count = figures["intersection"]["conclusions"]
    return [ClaimCheck("Too few", (Comparison(case, f"{count:,} against {min(sizes):,}", count < min(sizes)),))]


def _types(source: FigureSource) -> list[ClaimCheck]:
    def accuracy(system: str, rules: str) -> float | None:
        return source.mean(system, f"LogInfer-LUBM-{rules}-qg", ACCURACY)

    compared = (above(title(s), accuracy(s, "no-type"), accuracy(s, "all"), CLEARLY) for s in EIGHT)
    return [ClaimCheck("Better without types", tuple(compared))]


# -- systems ----------------------------------------------------------------------------------------------


def _phases(source: FigureSource) -> list[ClaimCheck]:
    names = ("More alike than any other", "Phases coincide", "The converse is taken for true", "More than others")
    compared: list[list[Comparison]] = [[] for _ in names]
    for case, figures in _measured(source, "phases"):
        if figures is None:
            for comparisons in compared:
                comparisons.append(Comparison(case))
            continue
        for rule in figures["rules"]:
            alike, converse, others = rule["alike"], rule["converse"], rule["other_relations"]
            text, other = rule["rule"], rule["most_alike_other"]
            compared[0].append(Comparison(text, f"{alike:.2f} against {other:.2f}", alike > other))
            compared[1].append(Comparison(text, f"{alike:.2f}", alike >= COINCIDE))
            if converse is not None:  # some triple is unknown
                compared[2].append(at_least(text, converse, HALF))
                compared[3].append(above(text, converse, others, GAP))
    return [ClaimCheck(name, tuple(c), paper.GENERALLY) for name, c in zip(names, compared, strict=True)]


def _relations(source: FigureSource) -> list[ClaimCheck]:
    compared = []
    for case, figures in _measured(source, "relations"):
        own, shared = (figures[kind]["r_mrr"] if figures else None for kind in ("own", "shared"))
        compared.append(above(case, own, shared, CLEARLY))
    return [ClaimCheck("R-MRR better with parameters of each relation", tuple(compared))]


def _other_figures(source: FigureSource) -> str:
    """Say what the matrices of each relation are worth otherwise."""
    texts = []
    for metric, name in ((ACCURACY, "balanced accuracy"), ("c_mrr", "C-MRR")):
        found = [figures for _, figures in _measured(source, "relations") if figures]
        if found:
            own, shared = (100 * fmean(figures[kind][metric] for figures in found) for kind in ("own", "shared"))
            texts.append(f"{name} {own:.1f} against {shared:.1f}")
    return f"In the mean over these benchmarks: {', '.join(texts)}." if texts else ""


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
STATEMENTS = paper.claims_of(data("claims.toml")["statement"], _CHECKS, {"21": _other_figures}, _LIMITS)
