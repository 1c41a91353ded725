"""The loss of our own embeddings, for PyKEEN's training loop."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from pykeen.losses import Loss, SetwiseLoss, loss_resolver
from pykeen.models import Model
from torch.nn.functional import softplus

if TYPE_CHECKING:
    from loginfer.systems.pykeen.system import PyKEENSystem

__all__ = ["ExplicitAndRandomLoss", "make_loss"]


class ExplicitAndRandomLoss(SetwiseLoss):
    """Explicit negatives count by themselves, random ones by how hard they are.

    The loss of a positive p with explicit negatives e₁, …, e_m and random negatives n₁, …, n_k is, with
    softplus(x) = log(1 + exp x), scores to which the margin is added, and
    w_i = exp(α·score(n_i)) / Σ exp(α·score(n_j)) taken as constants,

        softplus(−score(p)) + explicit_weight · (1/m) Σ softplus(score(e_i)) + Σ w_i · softplus(score(n_i)).

    Parameters
    ----------
    explicit
        m: so many of a positive's negatives are explicit, and come first.
    explicit_weight, adversarial, margin
        The weight of the explicit negatives, α, and what is added to scores.
    """

    def __init__(
        self,
        explicit: int = 0,
        explicit_weight: float = 1.0,
        adversarial: float = 1.0,
        margin: float = 0.0,
    ) -> None:
        super().__init__(reduction="mean")
        self.explicit = explicit
        self.explicit_weight = explicit_weight
        self.adversarial = adversarial
        self.margin = margin

    def process_slcwa_scores(
        self,
        positive_scores: torch.Tensor,
        negative_scores: torch.Tensor,
        label_smoothing: float | None = None,
        batch_filter: torch.Tensor | None = None,
        num_entities: int | None = None,
        pos_weights: torch.Tensor | None = None,
        neg_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the mean loss of a batch: float[n, 1] positives with float[n, m + k] negatives."""
        loss = softplus(-positive_scores - self.margin).mean()
        shifted = negative_scores + self.margin
        known, drawn = shifted[:, : self.explicit], shifted[:, self.explicit :]
        if known.shape[1]:
            loss = loss + self.explicit_weight * softplus(known).mean()
        if drawn.shape[1]:
            weights = (self.adversarial * drawn.detach()).softmax(dim=1)
            loss = loss + (weights * softplus(drawn)).sum(dim=1).mean()
        return loss

    def process_lcwa_scores(self, *_: Any, **__: Any) -> torch.Tensor:
        """Refuse: there are no explicit negatives in this kind of training."""
        raise NotImplementedError("ExplicitAndRandomLoss is for sLCWA training")


def make_loss(system: PyKEENSystem, model: type[Model]) -> Loss:
    """Return the loss that a system asks for."""
    if system.loss == "loginfer":
        explicit = 0 if system.mode == "random" else system.num_explicit
        return ExplicitAndRandomLoss(explicit, system.explicit_weight, system.adversarial, system.margin)
    if system.loss == "model":
        return model.loss_default(**(model.loss_default_kwargs or {}))
    found = loss_resolver.lookup(system.loss)
    known = inspect.signature(found).parameters
    settings: dict[str, Any] = {
        "margin": system.margin,
        "adversarial_temperature": system.adversarial,
        "inverse_softmax_temperature": system.adversarial,
    }
    return found(**{name: value for name, value in settings.items() if name in known})
