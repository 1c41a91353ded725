"""What all models of PyKEEN have in common as systems: how they are trained, and how to get one back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from loginfer.benchmark.values import Benchmark
from loginfer.errors import UnknownNameError
from loginfer.systems.interface import Arrays, Unwatched, Watch
from loginfer.systems.settings import check_settings, setting

if TYPE_CHECKING:
    from loginfer.systems.pykeen.scorer import PyKEENScorer

__all__ = ["LOSSES", "OPTIMIZERS", "PyKEENSystem"]

# Ours, and PyTorch's.
OPTIMIZERS = (
    "LazyAdam", "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop",
    "Rprop", "SGD",
)  # fmt: skip
# Ours, the one that PyKEEN has for the model, and all that PyKEEN has.
LOSSES = (
    "loginfer", "model", "AdversarialBCEWithLogits", "BCEAfterSigmoid", "BCEWithLogits", "CrossEntropy",
    "DoubleMargin", "Focal", "InfoNCE", "MSE", "MarginRanking", "NSSA", "PairwiseLogistic", "PointwiseHinge",
    "SoftMarginRanking", "SoftPointwiseHinge", "Softplus",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PyKEENSystem:
    """A model of PyKEEN, trained in PyKEEN's own loop (sLCWA) on P_train and N_train.

    What is learned, and from what, is as for our own embeddings where nothing else is said: the loss (see
    `loginfer.systems.pykeen.loss`), how many negatives of which kind, lazy Adam with a falling rate, the
    choice of the epoch on valid. The model, with its initialisers, constraints and regularisers, is PyKEEN's.

    A run that was killed goes on where it was, and ends with the same bytes, as long as the device and the
    number of threads stay the same and the device computes reproducibly; CPUs do.
    """

    mode: Literal["explicit", "random", "both"] = setting(
        "both", "negatives: those of N_train, random corruptions, or both"
    )
    num_negatives: int = setting(8, "random corruptions for each positive", least=1, most=1024)
    num_explicit: int = setting(1, "negatives of N_train for each positive", least=1, most=1024)
    match: Literal["any", "relation", "end"] = setting(
        "any",
        "which negatives of N_train a positive gets: any, those with its relation, or where there are some "
        "those that share an end as well",
    )
    loss: str = setting(
        "loginfer", "the loss: `loginfer`, ours; `model`, the model's own; or one of PyKEEN's"
    )
    margin: float = setting(0.0, "what our loss adds to all scores; the margin of PyKEEN's losses")
    adversarial: float = setting(1.0, "how much more hard random negatives count; 0: all alike", least=0)
    explicit_weight: float = setting(1.0, "weight of the explicit negatives in our loss", least=0)
    regularisation: float = setting(0.0, "λ, the weight of the N3 regularisation of positives", least=0)
    optimizer: str = setting(
        "LazyAdam", "the optimiser: LazyAdam, which moves what a batch touches, or one of PyTorch's"
    )
    learning_rate: float = setting(0.01, "of the optimiser at the start", least=0)
    schedule: Literal["linear", "constant"] = setting(
        "linear", "whether the learning rate falls to 0 in a straight line"
    )
    batch_size: int = setting(1024, "positives in a step", least=1)
    epochs: int = setting(15, "how often all of P_train is seen", least=1)
    patience: int = setting(0, "stop after so many epochs that were not better on valid; 0: never", least=0)
    keep: Literal["best", "last"] = setting("best", "the epoch that is best on valid, or the last one")
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "where to compute")
    threads: int = setting(
        1, "CPU threads; another number may change the last bits of the result", least=1, most=256
    )
    seed: int = setting(0, "seed of all that is random", least=0)

    # The model's name in PyKEEN.
    model: ClassVar[str]

    def __post_init__(self) -> None:
        check_settings(self)
        # Names are kept as PyKEEN spells them, however they were given.
        object.__setattr__(self, "loss", _spelt("loss", self.loss, LOSSES))
        object.__setattr__(self, "optimizer", _spelt("optimizer", self.optimizer, OPTIMIZERS))
        self.model_arguments()

    def model_arguments(self) -> dict[str, Any]:
        """Return the arguments of the model."""
        from loginfer.systems.pykeen.arguments import arguments, given_arguments
        from loginfer.systems.pykeen.models import find_model

        return given_arguments(arguments(find_model(self.model)), vars(self))

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> PyKEENScorer:
        """Learn from a benchmark, starting from the watch's last checkpoint if it has one."""
        from loginfer.systems.pykeen.training import train
        from loginfer.systems.unseen import refuse_unseen

        refuse_unseen(benchmark, f"PyKEEN's {self.model}")
        return train(self, benchmark, Unwatched() if watch is None else watch)

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> PyKEENScorer:
        """Return the scorer whose `arrays()` these are."""
        from loginfer.systems.pykeen.training import restored

        return restored(self, benchmark, arrays)


def _spelt(what: str, value: str, known: tuple[str, ...]) -> str:
    wanted = value.casefold().removesuffix("loss")
    found = next((name for name in known if name.casefold() == wanted), None)
    if found is None:
        raise UnknownNameError(f"value of `{what}`", value, known, where="--set")
    return found
