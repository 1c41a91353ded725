"""Ranking metrics (section 2.2): C-MRR, R-MRR, C-Hits@k, R-Hits@k, and what helps to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.evaluation.values import TIES, Counts, Ranks, Tie
from loginfer.systems.interface import POSITIONS, Position

__all__ = ["ranking_metrics"]

Floats = npt.NDArray[np.float64]
Figures = dict[str, float | None]


def ranking_metrics(
    ranks: Sequence[Ranks], *, tie: Tie = "realistic", ks: Sequence[int] = (1, 3, 10)
) -> dict[str, Any]:
    """Return the ranking metrics of one protocol.

    Parameters
    ----------
    ranks
        Those of one protocol, at most one for each position.
    tie
        What becomes of competitors with the same score.
    ks
        The k of Hits@k.

    Returns
    -------
    dict
        Values that JSON can hold; None for what is undefined, such as the mean of no ranks.

        - `c_mrr`, `c_hits@k`: the mean of the subject's and the object's, which stand beside them as
          `mrr_subject`, `hits@k_object` and so on; `r_mrr`, `r_hits@k`: the relation's. Between 0 and 1.
        - `c_mr`, `r_mr`: the mean rank; `c_amri`, `r_amri`: the adjusted mean rank index, 1 for the best
          ranks and 0 for those that chance gives.
        - `tie`, and under `ties` the same figures by all three rules.
        - `competitors`: for each position how many test `triples` were ranked, against how many competitors
          in the `mean`, for how many there was `none`, and how many were `tied` with one.
    """
    if len({each.protocol for each in ranks}) > 1:
        raise ValueError("ranks of several protocols have no metrics in common")
    by_position = {each.position: each for each in ranks}
    if len(by_position) < len(ranks):
        raise ValueError("several ranks for one position")
    by_tie = {rule: _figures(by_position, rule, ks) for rule in TIES}
    return {
        **by_tie[tie],
        "tie": tie,
        "ties": by_tie,
        "competitors": {p: _competitors(by_position[p]) for p in POSITIONS if p in by_position},
    }


def _figures(ranks: Mapping[Position, Ranks], tie: Tie, ks: Sequence[int]) -> Figures:
    found = {position: _of_one(each.ranks(tie), each.competitors, ks) for position, each in ranks.items()}
    nothing = _of_one(np.empty(0), np.empty(0, dtype=np.int64), ks)
    subject, relation, object_ = (found.get(position, nothing) for position in POSITIONS)
    names = [name for name in nothing if name != "amri"]
    figures: Figures = {f"c_{name}": _mean(subject[name], object_[name]) for name in names}
    figures["c_amri"] = _of_both(ranks, tie)
    figures |= {f"r_{name}": value for name, value in relation.items()}
    for name in names:
        figures |= {f"{name}_subject": subject[name], f"{name}_object": object_[name]}
    return figures


def _of_one(ranks: Floats, competitors: Counts, ks: Sequence[int]) -> Figures:
    """Return the figures of one position."""
    some = len(ranks) > 0
    figures: Figures = {"mrr": float((1 / ranks).mean()) if some else None}
    figures |= {f"hits@{k}": float((ranks <= k).mean()) if some else None for k in ks}
    figures["mr"] = float(ranks.mean()) if some else None
    figures["amri"] = _adjusted(ranks, competitors)
    return figures


def _of_both(ranks: Mapping[Position, Ranks], tie: Tie) -> float | None:
    """Return the adjusted mean rank index of subjects and objects together.

    It is no mean of two: the ranks of both are held against what is expected of both.
    """
    both = [ranks[position] for position in ("subject", "object") if position in ranks]
    if not both:
        return None
    competitors = np.concatenate([each.competitors for each in both])
    return _adjusted(np.concatenate([each.ranks(tie) for each in both]), competitors)


def _adjusted(ranks: Floats, competitors: Counts) -> float | None:
    """Return 1 - (MR - 1) / (E[MR] - 1), where chance gives the rank 1 + n / 2 among n competitors."""
    if not competitors.any():
        return None
    return float(1 - (ranks.mean() - 1) / (competitors.mean() / 2))


def _mean(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else (first + second) / 2


def _competitors(ranks: Ranks) -> dict[str, float | int | None]:
    some = len(ranks.places) > 0
    return {
        "triples": len(ranks.places),
        "mean": float(ranks.competitors.mean()) if some else None,
        "none": int((ranks.competitors == 0).sum()),
        "tied": int((ranks.ties > 0).sum()),
    }
