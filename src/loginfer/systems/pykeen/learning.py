"""What happens beside PyKEEN's training loop: rates, regularisation, the choice of the epoch, checkpoints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from pykeen.models import ERModel
from pykeen.training import TrainingCallback, TrainingLoop

from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.pykeen.sampler import ExplicitNegativeSampler
from loginfer.systems.embedding.validation import Validation
from loginfer.systems.interface import Arrays, Checkpoint, Watch
from loginfer.systems.pykeen.scorer import PyKEENScorer, arrays_of
from loginfer.systems.pykeen.state import checkpoint_of, go_on
from loginfer.systems.pykeen.surroundings import seed_torch

if TYPE_CHECKING:
    from loginfer.systems.pykeen.system import PyKEENSystem

__all__ = ["Learning"]


class Learning(TrainingCallback):
    """A callback of PyKEEN's training loop.

    Each epoch begins with a seed of its own, so that it depends on its number and on the weights alone.

    Parameters
    ----------
    system
        The system's settings.
    graph
        P_train.
    sampler
        Who gives the negatives.
    validation
        What epochs are compared by, if there is anything.
    watch
        Who is told.
    """

    def __init__(
        self,
        system: PyKEENSystem,
        graph: KnowledgeGraph,
        sampler: ExplicitNegativeSampler,
        validation: Validation | None,
        watch: Watch,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._system = system
        self._graph = graph
        self._sampler = sampler
        self._validation = validation
        self._watch = watch
        self._step = 0
        self._epoch = 0
        self._best = math.nan
        self._best_epoch = 0
        self._stale = 0
        self.best_weights: Arrays = {}

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to learn."""
        return self._epoch >= self._system.epochs or 0 < self._system.patience <= self._stale

    def begin(self, loop: TrainingLoop[Any]) -> bool:
        """Take up the watch's last checkpoint; returns whether there was one."""
        self._watch.progress("epochs", 0, self._system.epochs)
        checkpoint = self._watch.restore()
        if checkpoint is None:
            self.best_weights = arrays_of(loop.model)
            self._be_ready()
            return False
        facts = checkpoint.facts
        self._epoch, self._best_epoch = int(facts["epoch"]), int(facts["best_epoch"])
        self._step, self._stale = int(facts["step"]), int(facts["stale"])
        self._best = math.nan if facts["best"] is None else float(facts["best"])
        self.best_weights = go_on(loop, checkpoint, self._epoch)
        self._be_ready()
        return True

    def _be_ready(self) -> None:
        """Let the next epoch depend on nothing random that came before it."""
        seed_torch(self._system.seed, "epoch", self._epoch)
        self._sampler.shuffle()

    # -- steps --------------------------------------------------------------------------------------

    def pre_batch(self, **_: Any) -> None:
        """Set the learning rate of a step."""
        rate = self._system.learning_rate
        if self._system.schedule == "linear":
            rate *= 1 - self._step / (self._system.epochs * self._steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self._step += 1

    @property
    def _steps(self) -> int:
        """Steps in an epoch; one that a model with batch normalisation drops counts as well."""
        return max(1, math.ceil(len(self._graph) * self._doubled / self._system.batch_size))

    @property
    def _doubled(self) -> int:
        return 2 if self.model.use_inverse_triples else 1

    def on_batch(self, epoch: int, batch: Any, batch_loss: float, **_: Any) -> None:
        """Add the gradient of the N3 regularisation: λ · the mean of Σ|s|³ + Σ|r|³ + Σ|o|³ over positives."""
        if not self._system.regularisation:
            return
        model = self.model
        if not isinstance(model, ERModel):
            raise InputError(f"`regularisation` must be 0 for PyKEEN's {self._system.model}", where="--set")
        positives = batch["positives"].to(model.device)
        total = torch.zeros((), device=model.device)
        for columns, tables in (
            ((0, 2), model.entity_representations),
            ((1,), model.relation_representations),
        ):
            for table in tables:
                total = total + table(positives[:, columns]).abs().pow(3).sum()
        (self._system.regularisation / len(positives) * total).backward()  # type: ignore[no-untyped-call]
        # Looking at vectors must not count for PyKEEN's regularisers.
        model.collect_regularization_term()  # type: ignore[no-untyped-call]

    # -- epochs -------------------------------------------------------------------------------------

    def post_epoch(self, epoch: int, epoch_loss: float, **_: Any) -> None:
        """Compare the epoch with earlier ones, tell the watch, and be ready for the next one."""
        self._epoch = epoch
        row: dict[str, float | int] = {
            "epoch": epoch,
            "loss": epoch_loss,
            "learning_rate": float(self.optimizer.param_groups[0]["lr"]),
        }
        if self._validation is None:
            self._take()
        else:
            figure = self._validation.accuracy(PyKEENScorer(self.model, self._graph))
            row["valid_accuracy"] = figure
            self._compare(figure)
        self._watch.record(row)
        self._watch.progress("epochs", epoch, self._system.epochs)
        if self._watch.due():
            self._watch.save(self._checkpoint())
        if self.finished:
            self.training_loop._should_stop = True
        self._be_ready()

    def _compare(self, figure: float) -> None:
        """Keep an epoch's weights if none was better; among equals the last one has learned most."""
        better = not figure <= self._best
        self._stale = 0 if better else self._stale + 1
        if self._system.keep == "last" or not figure < self._best:
            self._take()
        if better:
            self._best = figure

    def _take(self) -> None:
        self._best_epoch = self._epoch
        self.best_weights = arrays_of(self.model)

    def _checkpoint(self) -> Checkpoint:
        facts = {
            "epoch": self._epoch,
            "step": self._step,
            "best": None if math.isnan(self._best) else self._best,
            "best_epoch": self._best_epoch,
            "stale": self._stale,
        }
        return checkpoint_of(self.training_loop, self.best_weights, facts)
