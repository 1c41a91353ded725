"""Training a model of PyKEEN on a benchmark, in PyKEEN's own loop.

PyKEEN's loop calls back after each step and epoch (`Learning`), where rates, regularisation, the choice of the
epoch and checkpoints are done as for our own embeddings; so are the loss and the optimiser at the end.
"""

from __future__ import annotations

import gc
import inspect
import io
import logging
import math
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from pykeen.losses import Loss, SetwiseLoss, loss_resolver
from pykeen.models import ERModel, Model
from pykeen.training import NonFiniteLossError, SLCWATrainingLoop, TrainingCallback, TrainingLoop
from pykeen.triples import TriplesFactory
from pykeen.utils import NoRandomSeedNecessary
from torch.nn.functional import softplus
from torch.optim import Optimizer

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.kg import KnowledgeGraph
from loginfer.pykeen.datasets import as_mapped, triples_factories
from loginfer.pykeen.negatives import ExplicitNegativeSampler
from loginfer.pykeen.scoring import PyKEENScorer, arrays_of
from loginfer.pykeen.system import find_model, needs_inverse
from loginfer.randomness import salt
from loginfer.systems.fitting import (
    BestEpoch,
    Validation,
    check_weights,
    explicit_negatives,
    torch_device,
    torch_threads,
)
from loginfer.systems.interface import Arrays, Checkpoint, Watch

if TYPE_CHECKING:
    from loginfer.pykeen.system import PyKEENSystem


def train(system: PyKEENSystem, benchmark: Benchmark, watch: Watch) -> PyKEENScorer:
    """Fit a model to a benchmark."""
    negatives = explicit_negatives(benchmark, system.mode)
    if not len(negatives):
        system = replace(system, mode="random")
    with surroundings(system.threads) as folder:
        factory = _factory(system, benchmark)
        model = _model(system, factory)
        explicit = 0 if system.mode == "random" else system.num_explicit
        random = 0 if system.mode == "explicit" else system.num_negatives
        positives: torch.Tensor = factory._add_inverse_triples_if_necessary(factory.mapped_triples)
        sampler = ExplicitNegativeSampler(  # negatives of N_train first, then random corruptions
            mapped_triples=positives,
            negatives=as_mapped(negatives),
            triples_factory=factory,
            num_negs_per_pos=explicit + random,
            num_explicit=explicit,
            match=system.match,
            fallback="any",
            num_entities=factory.num_entities,
            num_relations=factory.num_relations,
        )
        loop = SLCWATrainingLoop(
            model=model,
            triples_factory=factory,
            optimizer=LazyAdam if system.optimizer == "LazyAdam" else system.optimizer,
            optimizer_kwargs={"lr": system.learning_rate},
            negative_sampler=sampler,
            automatic_memory_optimization=False,
        )
        learning = Learning(
            system, benchmark.graph, sampler, Validation.of(benchmark, system.seed, system.patience), watch
        )
        resumed = learning.begin(loop)
        if not learning.finished:
            with _explained(system):
                loop.train(
                    factory,
                    num_epochs=system.epochs,
                    # A model with batch normalisation drops the last batch, which must not be the only one.
                    batch_size=min(system.batch_size, len(positives)),
                    continue_training=resumed,
                    use_tqdm=False,
                    callbacks=learning,
                    checkpoint_directory=folder,
                    pin_memory=False,
                )
        load_weights(model, learning.best_weights)
        return PyKEENScorer(model, benchmark.graph)


def restored(system: PyKEENSystem, benchmark: Benchmark, arrays: Arrays) -> PyKEENScorer:
    """Return the scorer with these weights."""
    with surroundings(system.threads):
        model = _model(system, _factory(system, benchmark))
        shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
        check_weights(arrays, shapes, f"{system.model} on {benchmark.name}")
        load_weights(model, {name: arrays[name] for name in shapes})
        return PyKEENScorer(model, benchmark.graph)


def _factory(system: PyKEENSystem, benchmark: Benchmark) -> TriplesFactory:
    inverse = needs_inverse(find_model(system.model))
    return triples_factories(benchmark, benchmark.positives.train, create_inverse_triples=inverse)[0]


def _model(system: PyKEENSystem, factory: TriplesFactory) -> Model:
    kind = find_model(system.model)
    seed_torch(system.seed, "start")
    try:
        with redirect_stderr(io.StringIO()):  # NodePiece draws progress bars of its own
            model = kind(
                triples_factory=factory,
                loss=make_loss(system, kind),
                # Seeded above; PyKEEN would seed Python and NumPy for everybody as well.
                random_seed=NoRandomSeedNecessary,  # type: ignore[arg-type]
                **system.model_arguments(),
            )
    except (LogInferError, MemoryError):
        raise
    except Exception as error:
        message = f"PyKEEN cannot make {system.model} with these settings: {_reason(error)}"
        raise InputError(message, where="--set", hint=f"see loginfer systems show pykeen:{system.model}") from error
    return model.to(torch_device(system.device))


@contextmanager
def _explained(system: PyKEENSystem) -> Iterator[None]:
    """Turn what goes wrong in PyKEEN into one message."""
    try:
        yield
    except NonFiniteLossError as error:
        hint = f"try a smaller learning rate: --set learning_rate={system.learning_rate / 10:g}"
        raise LogInferError("the loss is no longer a finite number: training ran away", hint=hint) from error
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        message = f"PyKEEN cannot train {system.model} with these settings: {_reason(error)}"
        raise LogInferError(message, hint=f"see loginfer systems show pykeen:{system.model}") from error


def _reason(error: BaseException) -> str:
    """Return the kind of an error and the first line of its message.

    Below that line torch writes where in its own code the error was raised.
    """
    # The text of a KeyError is its message in quotation marks.
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    first = text.strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


@contextmanager
def surroundings(threads: int) -> Iterator[str]:
    """Give a folder for files that PyKEEN wants to write; leave torch's seed and threads as they were."""
    logger = logging.getLogger("pykeen")
    level = logger.level
    with (
        torch.random.fork_rng(),
        torch_threads(threads),
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory() as folder,
    ):
        # Warnings about arguments and tensors that PyKEEN's own code hands on.
        warnings.filterwarnings("ignore", "Training instances are always shuffled", DeprecationWarning)
        warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled", UserWarning)
        logger.setLevel(logging.ERROR)
        # PyKEEN collects garbage after each epoch; what is here already need not be looked through again.
        gc.freeze()
        try:
            yield folder
        finally:
            gc.unfreeze()
            logger.setLevel(level)


def seed_torch(seed: int, *what: str | int) -> None:
    """Seed torch for one purpose."""
    torch.manual_seed(int(salt(seed, "pykeen", *what)) >> 1)


class Learning(TrainingCallback):
    """What happens beside PyKEEN's loop.

    Each epoch begins with a seed of its own, so that it depends on its number and on the weights alone.

    Parameters
    ----------
    system
        The system's settings.
    graph
        P_train.
    sampler
        Gives the negatives.
    validation
        What epochs are compared by, if there is anything.
    watch
        Gets progress, the learning curve and checkpoints.
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
        self._step = self._epoch = 0
        self._best = BestEpoch()
        self.best_weights: Arrays = {}

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to learn."""
        return self._epoch >= self._system.epochs or self._best.enough(self._system.patience)

    def begin(self, loop: TrainingLoop[Any]) -> bool:
        """Take up the watch's last checkpoint; returns whether there was one."""
        self._watch.progress("epochs", 0, self._system.epochs)
        checkpoint = self._watch.restore()
        if checkpoint is None:
            self.best_weights = arrays_of(loop.model)
        else:
            facts = checkpoint.facts
            self._epoch, self._step, self._best = int(facts["epoch"]), int(facts["step"]), BestEpoch.of(facts)
            self.best_weights = _resume(loop, checkpoint, self._epoch)
        self._be_ready()
        return checkpoint is not None

    def _be_ready(self) -> None:
        """Let the next epoch depend on nothing random that came before it."""
        seed_torch(self._system.seed, "epoch", self._epoch)
        self._sampler.shuffle()

    def pre_batch(self, **_: Any) -> None:
        """Set the learning rate of a step."""
        rate = self._system.learning_rate
        if self._system.schedule == "linear":
            # A step that a model with batch normalisation drops counts as well.
            triples = len(self._graph) * (2 if self.model.use_inverse_triples else 1)
            steps = max(1, math.ceil(triples / self._system.batch_size))
            rate *= 1 - self._step / (self._system.epochs * steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self._step += 1

    def on_batch(self, epoch: int, batch: Any, batch_loss: float, **_: Any) -> None:
        """Add the gradient of the N3 regularisation: λ · the mean of Σ|s|³ + Σ|r|³ + Σ|o|³ over positives."""
        if not self._system.regularisation:
            return
        model = self.model
        if not isinstance(model, ERModel):
            raise InputError(f"`regularisation` must be 0 for PyKEEN's {self._system.model}", where="--set")
        positives = batch["positives"].to(model.device)
        total = torch.zeros((), device=model.device)
        for columns, tables in (((0, 2), model.entity_representations), ((1,), model.relation_representations)):
            for table in tables:
                total = total + table(positives[:, columns]).abs().pow(3).sum()
        (self._system.regularisation / len(positives) * total).backward()  # type: ignore[no-untyped-call]
        # Looking at vectors must not count for PyKEEN's regularisers.
        model.collect_regularization_term()  # type: ignore[no-untyped-call]

    def post_epoch(self, epoch: int, epoch_loss: float, **_: Any) -> None:
        """Compare the epoch with earlier ones, tell the watch, and be ready for the next one."""
        self._epoch = epoch
        rate = float(self.optimizer.param_groups[0]["lr"])
        row: dict[str, float | int] = {"epoch": epoch, "loss": epoch_loss, "learning_rate": rate}
        figure: float | None = None
        if self._validation is not None:
            figure = self._validation.judge(PyKEENScorer(self.model, self._graph))
            row[self._validation.figure] = figure
        if self._best.judge(epoch, figure) or self._system.keep == "last":
            self.best_weights = arrays_of(self.model)
        self._watch.record(row)
        self._watch.progress("epochs", epoch, self._system.epochs)
        if self._watch.due():
            facts = {"epoch": epoch, "step": self._step, **self._best.facts()}
            self._watch.save(_checkpoint(self.training_loop, self.best_weights, facts))
        if self.finished:
            self.training_loop._should_stop = True
        self._be_ready()


# -- the state of PyKEEN's loop between two epochs, as arrays and JSON values ------------------------

# What the names of arrays begin with.
_NOW, _BEST, _OPTIMIZER = "model.", "best.", "optimizer."


def load_weights(model: Model, arrays: Arrays) -> None:
    """Give a model these weights, which are those of its `state_dict`."""
    model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})


def _checkpoint(loop: TrainingLoop[Any], best: Arrays, facts: dict[str, Any]) -> Checkpoint:
    """Return the state of a loop after an epoch, with the best weights so far and more facts."""
    arrays: dict[str, npt.NDArray[Any]] = {f"{_NOW}{name}": value for name, value in arrays_of(loop.model).items()}
    arrays |= {f"{_BEST}{name}": value for name, value in best.items()}
    # Of each parameter the optimiser keeps some tensors (moments) and some plain values.
    plain: dict[str, dict[str, Any]] = {}
    for parameter, kept in loop.optimizer.state_dict()["state"].items():
        plain[str(parameter)] = {}
        for name, value in kept.items():
            if isinstance(value, torch.Tensor):
                arrays[f"{_OPTIMIZER}{parameter}.{name}"] = value.detach().cpu().numpy().copy()
            else:
                plain[str(parameter)][name] = value
    return Checkpoint(arrays, {**facts, "optimizer": plain})


def _resume(loop: TrainingLoop[Any], checkpoint: Checkpoint, epoch: int) -> Arrays:
    """Put a loop back into a checkpoint's state, after so many epochs; returns the best weights."""
    arrays = checkpoint.arrays
    load_weights(loop.model, _part(arrays, _NOW))
    kept = {int(parameter): dict(values) for parameter, values in checkpoint.facts["optimizer"].items()}
    for key, value in _part(arrays, _OPTIMIZER).items():
        parameter, name = key.split(".", 1)
        kept[int(parameter)][name] = torch.from_numpy(np.array(value))
    groups = loop.optimizer.state_dict()["param_groups"]
    loop.optimizer.load_state_dict({"state": kept, "param_groups": groups})
    if not loop.optimizer.state:
        # Some optimisers have nothing to keep, and PyKEEN takes that for a loop that was never started.
        loop.optimizer.state[loop.optimizer.param_groups[0]["params"][0]] = {}
    loop._epoch = epoch
    return {name: np.array(value) for name, value in _part(arrays, _BEST).items()}


def _part(arrays: Arrays, beginning: str) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(beginning): value for name, value in arrays.items() if name.startswith(beginning)}


# -- the loss and the optimiser of our own embeddings ----------------------------------------------


class ExplicitAndRandomLoss(SetwiseLoss):
    """Explicit negatives count by themselves, random ones by how hard they are.

    The loss of a positive p with explicit negatives e₁, …, e_m and random negatives n₁, …, n_k is, with
    softplus(x) = log(1 + exp x), scores to which the margin is added, and
    w_i = exp(α·score(n_i)) / Σ exp(α·score(n_j)) taken as constants,

        softplus(−score(p)) + explicit_weight · (1/m) Σ softplus(score(e_i)) + Σ w_i · softplus(score(n_i)).

    Parameters
    ----------
    explicit
        m: how many of a positive's negatives are explicit; they come first.
    explicit_weight, adversarial, margin
        The weight of the explicit negatives, α, and what is added to scores.
    """

    def __init__(
        self, explicit: int = 0, explicit_weight: float = 1.0, adversarial: float = 1.0, margin: float = 0.0
    ) -> None:
        super().__init__(reduction="mean")
        self.explicit = explicit
        self.explicit_weight = explicit_weight
        self.adversarial = adversarial
        self.margin = margin

    def process_slcwa_scores(
        self, positive_scores: torch.Tensor, negative_scores: torch.Tensor, *_: Any, **__: Any
    ) -> torch.Tensor:
        """Return the mean loss of a batch: float[n, 1] positives with float[n, m + k] negatives."""
        loss = softplus(-positive_scores - self.margin).mean()
        shifted = negative_scores + self.margin
        explicit, random = shifted[:, : self.explicit], shifted[:, self.explicit :]
        if explicit.shape[1]:
            loss = loss + self.explicit_weight * softplus(explicit).mean()
        if random.shape[1]:
            weights = (self.adversarial * random.detach()).softmax(dim=1)
            loss = loss + (weights * softplus(random)).sum(dim=1).mean()
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
    kind = loss_resolver.lookup(system.loss)
    parameters = inspect.signature(kind).parameters
    settings: dict[str, Any] = {
        "margin": system.margin,
        "adversarial_temperature": system.adversarial,
        "inverse_softmax_temperature": system.adversarial,
    }
    return kind(**{name: value for name, value in settings.items() if name in parameters})


class LazyAdam(Optimizer):
    """Adam whose rows rest in steps in which they have no gradient: neither they nor their moments change.

    PyTorch's Adam moves a row on for many steps after it was last seen, by what is left of its mean gradient.
    Where most entities occur in few batches, that makes their steps many times as large; our own embeddings
    are trained without it. A parameter with fewer than two dimensions is one row.

    Parameters
    ----------
    params
        The parameters.
    lr
        The learning rate.
    betas
        The decay rates of the mean and the mean square of gradients.
    eps
        What keeps the denominator from 0.
    """

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take a step."""
        if closure is not None:
            raise NotImplementedError("LazyAdam takes no closure")
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return None

    def _update(self, parameter: torch.nn.Parameter, group: dict[str, Any]) -> None:
        state, gradient = self.state[parameter], parameter.grad
        if gradient is None:
            return
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        first, second = group["betas"]
        count = float(state["step"])
        bias = (1 - second**count) ** 0.5
        rate, tiny = group["lr"] * bias / (1 - first**count), group["eps"] * bias
        touched: Any = ...
        if gradient.ndim > 1:
            touched = gradient.flatten(1).any(dim=1).nonzero().squeeze(1)
        g = gradient[touched]
        mean = state["exp_avg"][touched].mul_(first).add_(g, alpha=1 - first)
        square = state["exp_avg_sq"][touched].mul_(second).addcmul_(g, g, value=1 - second)
        state["exp_avg"][touched], state["exp_avg_sq"][touched] = mean, square
        parameter[touched] -= rate * mean / (square.sqrt() + tiny)
