"""The decoder, DistMult, and its losses.

The score of (s, R, o) is s^T diag(r) o + b_R, where s and o are vectors after the last layer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy

from loginfer.systems.rgcn.model import Parameters
from loginfer.systems.rgcn.sampling import Questions

__all__ = ["choose", "decode", "name_relation"]

# The score of what cannot be chosen.
_NEVER = -1e30


def decode(parameters: Parameters, nodes: torch.Tensor, triples: torch.Tensor) -> torch.Tensor:
    """Return float[m], the scores of int64[m, 3], as logits."""
    subjects = nodes.index_select(0, triples[:, 0])
    relations = parameters["relations"].index_select(0, triples[:, 1])
    objects = nodes.index_select(0, triples[:, 2])
    bias = parameters["relation bias"].index_select(0, triples[:, 1])
    return (subjects * relations * objects).sum(1) + bias


def choose(parameters: Parameters, nodes: torch.Tensor, questions: Questions) -> torch.Tensor:
    """Return float[m]: −log of the softmax of each question's answer among its candidates."""
    relations = parameters["relations"].index_select(0, questions.relations)
    queries = nodes.index_select(0, questions.known) * relations
    answers = (queries * nodes.index_select(0, questions.answers)).sum(1)
    candidates = nodes.index_select(0, questions.candidates)
    losses: torch.Tensor = _Choose.apply(queries, answers, candidates, questions)  # type: ignore[no-untyped-call]
    return losses


def name_relation(parameters: Parameters, nodes: torch.Tensor, triples: torch.Tensor) -> torch.Tensor:
    """Return float[m]: −log of the softmax of each triple's relation among all relations between its ends."""
    ends = nodes.index_select(0, triples[:, 0]) * nodes.index_select(0, triples[:, 2])
    scores = ends @ parameters["relations"].t() + parameters["relation bias"]
    return cross_entropy(scores, triples[:, 1], reduction="none")


class _Choose(torch.autograd.Function):
    """log(exp a + Σ_c exp(q · c)) − a for each query q and the score a of its answer.

    The gradients are written out: the matrix of all queries and candidates is by far the largest one of a
    step, and this way the backward pass needs no further one of its size.
    """

    @staticmethod
    def forward(
        ctx: Any, queries: torch.Tensor, answers: torch.Tensor, candidates: torch.Tensor, questions: Questions
    ) -> torch.Tensor:
        scores = queries @ candidates.t()
        scores[questions.drawn] = _NEVER  # an answer that was drawn does not compete with itself
        highest = torch.maximum(scores.amax(1), answers)
        shares = scores.sub_(highest[:, None]).exp_()
        own = (answers - highest).exp()
        total = shares.sum(1) + own
        ctx.save_for_backward(queries, candidates, shares, own, total)
        return total.log() - answers + highest

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:
        queries, candidates, shares, own, total = ctx.saved_tensors
        weights = gradients[0] / total
        of_queries = (shares @ candidates).mul_(weights[:, None])
        of_candidates = shares.t() @ (queries * weights[:, None])
        return of_queries, weights * own - gradients[0], of_candidates, None
