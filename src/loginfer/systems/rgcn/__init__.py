"""R-GCN as a system: relational message passing as the encoder, DistMult as the decoder, in PyTorch.

Schlichtkrull and others, Modeling Relational Data with Graph Convolutional Networks (ESWC 2018). The settings are
here, where PyTorch need not be installed; `model` has the model and its training.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.settings import check_settings, setting
from loginfer.systems.interface import Arrays, Unwatched, Watch, refuse_unseen

if TYPE_CHECKING:
    from loginfer.systems.embedding.scorer import EmbeddingScorer

__all__ = ["RGCN"]


@dataclass(frozen=True, kw_only=True)
class RGCN:
    """R-GCN with DistMult decoder, trained on P_train and N_train."""

    layers: int = setting(1, "layers of message passing", least=1)
    dimension: int = setting(128, "numbers in a vector", least=1)
    block: int = setting(1, "size of the blocks on the diagonal of relations' matrices; 0: full", least=0)
    bases: int = setting(0, "basis matrices that relations share, with block=0; 0: none", least=0)
    spread: float = setting(0.1, "standard deviation of the input vectors at the start", least=0)
    mode: Literal["explicit", "random", "both"] = setting(
        "both", "negatives: those of N_train, random corruptions, or both"
    )
    negatives: int = setting(2048, "random candidates against which each subject or object must win", least=1)
    label_weight: float = setting(0.05, "weight of telling positives from negatives", least=0, tuned="0.01:1:log")
    relation_weight: float = setting(0.3, "weight of telling a triple's relation from all others", least=0, tuned="0:1")
    holdout: float = setting(0.2, "share of the edges that each step predicts from the rest", least=0, most=1)
    steps: int = setting(300, "steps of training", least=1)
    learning_rate: float = setting(
        0.1, "of Adam at the start; falls to 0 in a straight line", least=0, tuned="0.01:0.3:log"
    )
    input_rate: float = setting(
        0.02, "learning rate of the input vectors, as a share; 0: they stay random", least=0, tuned="0.003:0.3:log"
    )
    dropout: float = setting(0.3, "share of a layer's input numbers that is dropped", least=0, most=0.99)
    weight_decay: float = setting(
        0.003, "weight of the mean square of the vectors that are scored", least=0, tuned="0.0003:1:log"
    )
    validate_every: int = setting(10, "steps between two looks at valid", least=1)
    patience: int = setting(0, "stop after so many looks that were not better; 0: never", least=0)
    keep: Literal["best", "last"] = setting("last", "the step that is best on valid, or the last one")
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "where to compute")
    threads: int = setting(1, "CPU threads; another number may change the last bits of the result", least=1)
    seed: int = setting(0, "seed of all that is random", least=0)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.block and self.bases:
            raise InputError("either `bases` or `block` can be chosen, not both", hint="--set block=0")
        if self.block and self.dimension % self.block:
            raise InputError(f"`dimension` ({self.dimension}) must be a multiple of `block` ({self.block})")

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> EmbeddingScorer:
        """Learn from a benchmark, starting from the watch's last checkpoint if it has one."""
        refuse_unseen(benchmark, "R-GCN")
        if importlib.util.find_spec("torch") is None:
            raise LogInferError("R-GCN needs PyTorch", hint="in a checkout of LogInfer: pip install '.[models]'")
        from loginfer.systems.fitting import torch_threads
        from loginfer.systems.rgcn.model import Training

        with torch_threads(self.threads):
            return distmult_scorer(*Training(self, benchmark).run(watch or Unwatched()))

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> EmbeddingScorer:
        """Return the scorer whose `arrays()` these are."""
        from loginfer.systems.fitting import check_weights

        counts = {"entities": len(benchmark.graph.entities), "relations": len(benchmark.graph.relations)}
        shapes = {name: (count, self.dimension + 1) for name, count in counts.items()}
        check_weights(arrays, shapes, f"R-GCN on {benchmark.name}")
        return distmult_scorer(arrays["entities"], arrays["relations"])


def distmult_scorer(entities: Any, relations: Any) -> EmbeddingScorer:
    """Return the scorer with these vectors: the decoder is DistMult, on what went through the layers.

    Parameters
    ----------
    entities
        float32[n, d + 1], vectors after the last layer, and 1 in the last place.
    relations
        float32[R, d + 1], the decoder's vectors, and in the last place the bias.
    """
    from loginfer.systems.embedding.distmult import DistMult
    from loginfer.systems.embedding.scorer import EmbeddingScorer

    return EmbeddingScorer.of(DistMult(dimension=entities.shape[1]), entities, relations)
