"""Training a model of PyKEEN on a benchmark, in PyKEEN's own loop."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pykeen.models import Model
from pykeen.training import NonFiniteLossError, SLCWATrainingLoop
from pykeen.triples import TriplesFactory
from pykeen.utils import NoRandomSeedNecessary

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.kg import Triples
from loginfer.pykeen.factories import as_mapped, triples_factories
from loginfer.pykeen.sampler import ExplicitNegativeSampler
from loginfer.systems.embedding.validation import Validation
from loginfer.systems.interface import Arrays, Watch
from loginfer.systems.pykeen.complaints import reason
from loginfer.systems.pykeen.lazy_adam import LazyAdam
from loginfer.systems.pykeen.learning import Learning
from loginfer.systems.pykeen.loss import make_loss
from loginfer.systems.pykeen.models import find_model, needs_inverse
from loginfer.systems.pykeen.scorer import PyKEENScorer
from loginfer.systems.pykeen.state import load_weights
from loginfer.systems.pykeen.surroundings import device_of, seed_torch, surroundings

if TYPE_CHECKING:
    from loginfer.systems.pykeen.system import PyKEENSystem

__all__ = ["restored", "train"]


def train(system: PyKEENSystem, benchmark: Benchmark, watch: Watch) -> PyKEENScorer:
    """Fit a model to a benchmark."""
    if not len(benchmark.graph):
        raise InputError(f"{benchmark.name} has no training triples to learn from")
    negatives = _negatives(system, benchmark)
    with surroundings(system.threads) as folder:
        factory = _factory(system, benchmark)
        model = _model(system, factory)
        sampler = _sampler(system, factory, negatives)
        loop = SLCWATrainingLoop(
            model=model,
            triples_factory=factory,
            optimizer=LazyAdam if system.optimizer == "LazyAdam" else system.optimizer,
            optimizer_kwargs={"lr": system.learning_rate},
            negative_sampler=sampler,
            automatic_memory_optimization=False,
        )
        validation = Validation.of(benchmark, system.seed)
        learning = Learning(system, benchmark.graph, sampler, validation, watch)
        resumed = learning.begin(loop)
        if not learning.finished:
            with _explained(system):
                loop.train(
                    factory,
                    num_epochs=system.epochs,
                    # A model with batch normalisation drops the last batch, which must not be the only one.
                    batch_size=min(system.batch_size, _instances(factory)),
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
        wanted = {name: tuple(value.shape) for name, value in model.state_dict().items()}
        for name, shape in wanted.items():
            if name not in arrays or arrays[name].shape != shape:
                found = f"have the shape {arrays[name].shape}" if name in arrays else "are missing"
                raise InputError(
                    f"the weights `{name}` {found}; {system.model} on {benchmark.name} needs {shape}",
                    hint="use the settings and the benchmark that the system was fitted with",
                )
        load_weights(model, {name: arrays[name] for name in wanted})
        return PyKEENScorer(model, benchmark.graph)


def _factory(system: PyKEENSystem, benchmark: Benchmark) -> TriplesFactory:
    inverse = needs_inverse(find_model(system.model))
    return triples_factories(benchmark, benchmark.positives.train, create_inverse_triples=inverse)[0]


def _instances(factory: TriplesFactory) -> int:
    return factory.num_triples * (2 if factory.create_inverse_triples else 1)


def _model(system: PyKEENSystem, factory: TriplesFactory) -> Model:
    kind = find_model(system.model)
    seed_torch(system.seed, "start")
    try:
        with redirect_stderr(io.StringIO()):  # NodePiece draws progress bars of its own
            made = kind(
                triples_factory=factory,
                loss=make_loss(system, kind),
                # Seeded above; PyKEEN would seed Python and NumPy for everybody as well.
                random_seed=NoRandomSeedNecessary,  # type: ignore[arg-type]
                **system.model_arguments(),
            )
    except (LogInferError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"PyKEEN cannot make {system.model} with these settings: {reason(error)}",
            where="--set",
            hint=f"see loginfer systems show pykeen:{system.model}",
        ) from error
    return made.to(device_of(system.device))


# -- negatives --------------------------------------------------------------------------------------


def _negatives(system: PyKEENSystem, benchmark: Benchmark) -> Triples:
    made = [found.splits.train for found in benchmark.negatives.values()]
    negatives: Triples = np.vstack([np.empty((0, 3), dtype=np.int32), *made])
    if system.mode != "random" and not len(negatives):
        raise InputError(
            f"{benchmark.name} has no negative training triples, and mode `{system.mode}` needs them",
            hint="train with random negatives only: --mode random",
        )
    return negatives


def _sampler(system: PyKEENSystem, factory: TriplesFactory, negatives: Triples) -> ExplicitNegativeSampler:
    """Return the sampler: N_train first, then random corruptions."""
    counts: dict[str, Any] = {"num_entities": factory.num_entities, "num_relations": factory.num_relations}
    positives: torch.Tensor = factory._add_inverse_triples_if_necessary(factory.mapped_triples)
    known = 0 if system.mode == "random" else system.num_explicit
    drawn = 0 if system.mode == "explicit" else system.num_negatives
    return ExplicitNegativeSampler(
        mapped_triples=positives,
        negatives=as_mapped(negatives),
        triples_factory=factory,
        num_negs_per_pos=known + drawn,
        num_explicit=known,
        match=system.match,
        fallback="any",
        **counts,
    )


@contextmanager
def _explained(system: PyKEENSystem) -> Iterator[None]:
    """Turn what goes wrong in PyKEEN into one message."""
    try:
        yield
    except NonFiniteLossError as error:
        raise LogInferError(
            "the loss is no longer a finite number: training ran away",
            hint=f"try a smaller learning rate: --set learning_rate={system.learning_rate / 10:g}",
        ) from error
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise LogInferError(
            f"PyKEEN cannot train {system.model} with these settings: {reason(error)}",
            hint=f"see loginfer systems show pykeen:{system.model}",
        ) from error
