"""Training an R-GCN: in each step a portion of the edges is held out, and the rest must predict it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import softplus

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.systems.embedding.validation import Validation
from loginfer.systems.interface import Checkpoint, Watch
from loginfer.systems.rgcn.decoder import choose, decode, name_relation
from loginfer.systems.rgcn.messages import MessageGraph
from loginfer.systems.rgcn.model import Parameters, Shape, encode, fan_in, start
from loginfer.systems.rgcn.sampling import Candidates, Portions, as_tensor, random_generator
from loginfer.systems.rgcn.scorer import distmult_scorer

if TYPE_CHECKING:
    from loginfer.systems.rgcn.system import RGCN

__all__ = ["Training", "train"]

Vectors = npt.NDArray[np.float32]


@dataclass
class Best:
    """The best model so far: its accuracy on valid, and what is needed to score with it."""

    accuracy: float = -1.0
    step: int = 0
    entities: Vectors | None = None
    relations: Vectors | None = None


def train(settings: RGCN, benchmark: Benchmark, watch: Watch) -> tuple[Vectors, Vectors]:
    """Train a model and return its vectors: float32[n, d + 1] of entities, float32[R, d + 1] of relations."""
    # A matrix product may add in another order when it is cut into another number of pieces.
    with _threads(settings.threads):
        return Training(settings, benchmark).run(watch)


class Training:
    """A training run.

    Parameters
    ----------
    settings
        The settings.
    benchmark
        P_train and P_valid, and N_train and N_valid of one method.
    """

    def __init__(self, settings: RGCN, benchmark: Benchmark) -> None:
        self.settings = settings
        self.device = torch.device(_device(settings.device))
        graph = benchmark.graph
        negatives = next(iter(benchmark.negatives.values()), None)
        self.positives = as_tensor(benchmark.positives.train)
        self.negatives = as_tensor(negatives.splits.train) if negatives else self.positives[:0]
        _check(settings.mode, benchmark.name, len(self.positives), len(self.negatives))

        sizes = (settings.dimension, settings.layers, settings.bases, settings.block)
        self.shape = Shape(len(graph.entities), len(graph.relations), *sizes)
        self.graph = MessageGraph(graph.triples, self.shape.nodes, self.shape.relations, self.device)
        self.everything = self.graph.weights()
        held = max(round(settings.holdout * len(self.positives)), 1)
        self.held = Portions(len(self.positives), held, settings.seed, "held out")
        self.explicit = Portions(len(self.negatives), held, settings.seed, "explicit")
        self.candidates = Candidates(graph)
        self.valid = Validation.of(benchmark, settings.seed)

        began = start(self.shape, settings.spread, settings.seed)
        self.parameters: Parameters = {
            name: value.to(self.device).requires_grad_() for name, value in began.items()
        }
        # Adam moves each number by about the learning rate, so a product with d of them by d times as much.
        shares = {name: 1 / fan_in(name, value) for name, value in self.parameters.items()}
        shares["nodes"] = settings.input_rate
        groups = [{"params": [value], "share": shares[name]} for name, value in self.parameters.items()]
        self.optimizer = torch.optim.Adam(groups, fused=True)
        self.best = Best()

    def run(self, watch: Watch) -> tuple[Vectors, Vectors]:
        """Go through all steps, from the last checkpoint on, and return the vectors of the best one."""
        checkpoint = watch.restore()
        first = 0 if checkpoint is None else self.restore(checkpoint)
        last = self.settings.steps
        step = first
        while step < last and not self._given_up(step):
            loss = self.step(step)
            step += 1
            row: dict[str, float | int] = {"step": step, "loss": loss}
            if self.valid is not None and (step % self.settings.validate_every == 0 or step == last):
                row["valid_accuracy"] = self._validate(self.valid, step)
            watch.record(row)
            watch.progress("training", step, last)
            if watch.due():
                watch.save(self.checkpoint(step))
        if self.best.entities is None or self.best.relations is None:
            return self.vectors()
        return self.best.entities, self.best.relations

    # -- a step ---------------------------------------------------------------------------------

    def step(self, step: int) -> float:
        """Make a step and return its loss."""
        rate = self.settings.learning_rate * (1 - step / self.settings.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["share"]
        self.optimizer.zero_grad()
        loss = self.loss(step)
        value = float(loss.detach())
        if not np.isfinite(value):
            raise LogInferError(
                f"the loss became {value} in step {step + 1}",
                hint=f"a smaller learning rate: --set learning_rate={self.settings.learning_rate / 10:g}",
            )
        torch.autograd.backward(loss)
        self.optimizer.step()
        return value

    def loss(self, step: int) -> torch.Tensor:
        """Return the loss of the edges held out, with negatives for them.

        That is their binary cross-entropy against as many negatives (those of N_train or, in mode `random`,
        corruptions) and, but for mode `explicit`, the cross-entropy of each one's subject or object against
        random candidates, and of its relation against all relations.
        """
        mode, random = self.settings.mode, random_generator(self.settings.seed, "step", step)
        held = self.held[step]
        true = self.positives[held]
        false = (
            self.candidates.corrupt(true, random) if mode == "random" else self.negatives[self.explicit[step]]
        )
        weights = self.graph.weights(held.to(self.device))
        nodes = encode(self.parameters, self.shape, self.graph, weights, self.settings.dropout, random)
        logits = decode(self.parameters, nodes, torch.cat([true, false]).to(self.device))
        loss = softplus(-logits[: len(true)]).mean() + softplus(logits[len(true) :]).mean()
        loss = loss * self.settings.label_weight
        if mode != "explicit":
            for questions in self.candidates.questions(true, self.settings.negatives, random):
                asked = choose(self.parameters, nodes, questions.to(self.device))
                loss = loss + asked.sum() / len(true)
            named = self.candidates.untyped(true).to(self.device)
            if self.settings.relation_weight and len(named):
                unsure = name_relation(self.parameters, nodes, named)
                loss = loss + self.settings.relation_weight * unsure.sum() / len(true)
        if self.settings.weight_decay:
            loss = loss + self.settings.weight_decay * _size(self.parameters, nodes)
        return loss

    # -- choice of the step on valid ------------------------------------------------------------

    def vectors(self) -> tuple[Vectors, Vectors]:
        """Return the vectors after the last layer, all of P_train being messages, and the decoder's."""
        with torch.no_grad():
            nodes = encode(self.parameters, self.shape, self.graph, self.everything)
            bias = self.parameters["relation bias"][:, None]
            relations = torch.cat([self.parameters["relations"], bias], 1)
            entities = torch.cat([nodes, torch.ones_like(nodes[:, :1])], 1)
        return entities.cpu().numpy(), relations.cpu().numpy()

    def _validate(self, valid: Validation, step: int) -> float:
        vectors = self.vectors()
        accuracy = valid.accuracy(distmult_scorer(*vectors))
        if accuracy > self.best.accuracy:
            self.best = Best(accuracy, step, *vectors)
        return accuracy

    def _given_up(self, step: int) -> bool:
        wanted = self.settings.patience * self.settings.validate_every
        return bool(wanted and self.best.entities is not None and step - self.best.step >= wanted)

    # -- going on after a kill ------------------------------------------------------------------

    def checkpoint(self, step: int) -> Checkpoint:
        """Return the state before a step."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, value in self.parameters.items():
            state = self.optimizer.state[value]
            arrays[name] = _array(value)
            arrays[f"{name}.mean"] = _array(state["exp_avg"])
            arrays[f"{name}.square"] = _array(state["exp_avg_sq"])
        if self.best.entities is not None and self.best.relations is not None:
            arrays |= {"best.entities": self.best.entities, "best.relations": self.best.relations}
        return Checkpoint(
            arrays, {"step": step, "best_step": self.best.step, "best_accuracy": self.best.accuracy}
        )

    def restore(self, checkpoint: Checkpoint) -> int:
        """Go back to a checkpoint's state and return the step that is next."""
        step = int(checkpoint.facts["step"])
        arrays = checkpoint.arrays
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.copy_(torch.from_numpy(np.array(arrays[name])))
                moments = {
                    "exp_avg": torch.from_numpy(np.array(arrays[f"{name}.mean"])).to(self.device),
                    "exp_avg_sq": torch.from_numpy(np.array(arrays[f"{name}.square"])).to(self.device),
                }
                self.optimizer.state[value] = {
                    "step": torch.tensor(float(step), device=self.device),
                    **moments,
                }
        if "best.entities" in arrays:
            self.best = Best(
                float(checkpoint.facts["best_accuracy"]),
                int(checkpoint.facts["best_step"]),
                np.asarray(arrays["best.entities"]),
                np.asarray(arrays["best.relations"]),
            )
        return step


def _size(parameters: Parameters, nodes: torch.Tensor) -> torch.Tensor:
    """Return the mean square of the vectors that the decoder sees."""
    return nodes.square().mean() + parameters["relations"].square().mean()


def _array(value: torch.Tensor) -> npt.NDArray[Any]:
    return value.detach().cpu().numpy().copy()


def _device(wanted: str) -> str:
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no CUDA device", where="--set device", hint="--set device=cpu")
    return wanted


def _check(mode: str, name: str, positives: int, negatives: int) -> None:
    if not positives:
        raise InputError(f"{name} has no triples to learn from")
    if mode != "random" and not negatives:
        raise InputError(
            f"{name} has no negatives to learn from, and R-GCN's mode is `{mode}`",
            hint="--mode random learns from random corruptions",
        )


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
