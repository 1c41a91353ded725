"""The paper's findings, one by one: what it claims, how that is tested, and what figures say."""

from __future__ import annotations

from loginfer.reproduction.claims.evidence import Answer, Conclusion, answers, mean_fall
from loginfer.reproduction.claims.paper import NEGATIVES, RESULTS, RULES
from loginfer.reproduction.claims.values import Check, Claim, Comparison, Finding, Judgement, Verdict, judge
from loginfer.reproduction.figures import FigureSource, PaperFigures

__all__ = [
    "CLAIMS",
    "Answer",
    "Check",
    "Claim",
    "Comparison",
    "Conclusion",
    "Finding",
    "Judgement",
    "Verdict",
    "answers",
    "findings",
    "judge",
    "mean_fall",
]


CLAIMS = (*RESULTS, *NEGATIVES, *RULES)


def findings(figures: FigureSource) -> list[Finding]:
    """Hold the paper's claims against figures, and against its own by the same criteria."""
    paper = PaperFigures()
    return [
        Finding(claim, judge(claim.checks(figures)), judge(claim.checks(paper)), claim.remark(figures))
        for claim in CLAIMS
    ]
