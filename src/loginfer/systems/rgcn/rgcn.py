"""R-GCN: model, training, system.

R-GCN as a system.

R-GCN: relational message passing as the encoder, DistMult as the decoder.

Schlichtkrull and others, Modeling Relational Data with Graph Convolutional Networks (ESWC 2018).

What each step of training looks at: the edges held out, and negatives for them.

The parameters of an R-GCN with DistMult decoder, and what is computed from them.

The decoder, DistMult, and its losses.

The score of (s, R, o) is s^T diag(r) o + b_R, where s and o are vectors after the last layer.

Scoring with a fitted R-GCN: its decoder is DistMult, on vectors that went through the layers.

Training an R-GCN: in each step a portion of the edges is held out, and the rest must predict it.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import cross_entropy, softplus

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.randomness import salt
from loginfer.settings import check_settings, setting
from loginfer.systems.embedding.distmult import DistMult
from loginfer.systems.embedding.scorer import EmbeddingScorer, Validation
from loginfer.systems.interface import Arrays, Checkpoint, Unwatched, Watch
from loginfer.systems.rgcn.layer import MessageGraph, Weights, block_weights, relation_weights, rgcn_layer

if TYPE_CHECKING:
    from loginfer.systems.embedding.scorer import EmbeddingScorer


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
    negatives: int = setting(128, "random candidates against which each subject or object must win", least=1)
    label_weight: float = setting(1.0, "weight of telling positives from negatives", least=0)
    relation_weight: float = setting(0.3, "weight of telling a triple's relation from all others", least=0)
    holdout: float = setting(0.05, "share of the edges that each step predicts from the rest", least=0, most=1)
    steps: int = setting(150, "steps of training", least=1)
    learning_rate: float = setting(0.1, "of Adam at the start; falls to 0 in a straight line", least=0)
    input_rate: float = setting(1.0, "learning rate of the input vectors, as a share; 0: they stay random", least=0)
    dropout: float = setting(0.3, "share of a layer's input numbers that is dropped", least=0, most=0.99)
    weight_decay: float = setting(1.0, "weight of the mean square of the vectors that are scored", least=0)
    validate_every: int = setting(10, "steps between two looks at valid", least=1)
    patience: int = setting(0, "stop after so many looks that were not better; 0: never", least=0)
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
        from loginfer.systems.interface import refuse_unseen

        refuse_unseen(benchmark, "R-GCN")
        if importlib.util.find_spec("torch") is None:
            raise LogInferError("R-GCN needs PyTorch", hint="pip install 'loginfer[models]'")

        return distmult_scorer(*train(self, benchmark, watch or Unwatched()))

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> EmbeddingScorer:
        """Return the scorer whose `arrays()` these are."""
        counts = {"entities": len(benchmark.graph.entities), "relations": len(benchmark.graph.relations)}
        for name, count in counts.items():
            shape = np.shape(arrays.get(name, ()))
            if shape != (count, self.dimension + 1):
                raise InputError(
                    f"the weights `{name}` have the shape {shape}; R-GCN on {benchmark.name} needs "
                    f"{(count, self.dimension + 1)}",
                    hint="use the settings and the benchmark that the system was fitted with",
                )
        return distmult_scorer(arrays["entities"], arrays["relations"])


# Which negatives are learned from: those of N_train, random corruptions of the positives, or both.
Mode = Literal["explicit", "random", "both"]


def random_generator(seed: int, *stage: object) -> torch.Generator:
    """Return the generator of a stage. Each step has its own, so that no state needs to be kept."""
    return torch.Generator().manual_seed(salt(seed, "r-gcn", *stage))


class Portions:
    """Portions of a set that take turns: each element comes once before any comes again.

    Parameters
    ----------
    count
        Size of the set.
    size
        Size of a portion; if the set is smaller, a portion is the whole set.
    seed, name
        Choose the order.
    """

    def __init__(self, count: int, size: int, seed: int, name: str) -> None:
        self.size = min(size, count)
        self._count, self._seed, self._name = count, seed, name
        self._turns = max(count // max(self.size, 1), 1)
        self._round = -1
        self._order = torch.empty(0, dtype=torch.int64)

    def __getitem__(self, step: int) -> torch.Tensor:
        """Return int64[size], the places of the elements whose turn it is in this step."""
        round_, turn = divmod(step, self._turns)
        if round_ != self._round:
            random = random_generator(self._seed, self._name, round_)
            self._order = torch.randperm(self._count, generator=random)
            self._round = round_
        return self._order[turn * self.size : (turn + 1) * self.size]


class Candidates:
    """Random candidates for the subject or the object: constants, and types for the objects of type triples.

    Parameters
    ----------
    graph
        The graph.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._constants = torch.from_numpy(graph.consts.astype(np.int64))
        self._types = torch.from_numpy(graph.types.astype(np.int64))
        self._type_relation = -1 if graph.type_relation is None else graph.type_relation

    def questions(self, triples: torch.Tensor, count: int, random: torch.Generator) -> list[Questions]:
        """Ask for the object of one half of int64[m, 3] and for the subject of the other.

        Many questions share their candidates, up to `count`: then scoring them is a matrix product.
        """
        objects = torch.rand(len(triples), generator=random) < 0.5
        of_type = objects & (triples[:, 1] == self._type_relation)
        groups = (
            (objects & ~of_type, (0, 1, 2), self._constants),
            (~objects, (2, 1, 0), self._constants),
            (of_type, (0, 1, 2), self._types),
        )
        found = []
        for chosen, (known, relation, answer), pool in groups:
            mine = triples[chosen]
            if len(mine) and len(pool):
                drawn = torch.unique(pool[torch.randint(len(pool), (count,), generator=random)])
                ends = mine.t().contiguous()
                found.append(Questions(ends[known], ends[relation], ends[answer], drawn))
        return found

    def untyped(self, triples: torch.Tensor) -> torch.Tensor:
        """Return those of int64[m, 3] that have a relation: `type` is none."""
        return triples[triples[:, 1] != self._type_relation]

    def corrupt(self, triples: torch.Tensor, random: torch.Generator) -> torch.Tensor:
        """Return int64[m, 3]: the triples with the subject or the object replaced.

        Corruptions are not compared with the positives; hardly any is one.
        """
        corrupted = triples.clone()
        if not len(triples):
            return corrupted
        objects = torch.rand(len(triples), generator=random) < 0.5
        drawn = self._constants[torch.randint(len(self._constants), (len(triples),), generator=random)]
        if len(self._types):
            types = self._types[torch.randint(len(self._types), (len(triples),), generator=random)]
            drawn = torch.where(objects & (triples[:, 1] == self._type_relation), types, drawn)
        corrupted[:, 0] = torch.where(objects, triples[:, 0], drawn)
        corrupted[:, 2] = torch.where(objects, drawn, triples[:, 2])
        return corrupted


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions which of some candidates completes a triple.

    Parameters
    ----------
    known, relations, answers
        int64[m]: the end that is given, the relation, and the other end.
    candidates
        int64[K], distinct, sorted, the same for all.
    """

    known: torch.Tensor
    relations: torch.Tensor
    answers: torch.Tensor
    candidates: torch.Tensor

    @property
    def drawn(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Where an answer is one of the candidates: places of questions, and of candidates."""
        place = torch.searchsorted(self.candidates, self.answers).clamp_(max=len(self.candidates) - 1)
        questions = (self.candidates[place] == self.answers).nonzero().flatten()
        return questions, place[questions]

    def to(self, device: torch.device) -> Questions:
        """Move them to a device."""
        known, relations, answers, candidates = (
            part.to(device) for part in (self.known, self.relations, self.answers, self.candidates)
        )
        return Questions(known, relations, answers, candidates)


def as_tensor(triples: Triples) -> torch.Tensor:
    """Return triples as int64[n, 3]."""
    return torch.from_numpy(triples.astype(np.int64))


# The parameters by name:
#   nodes                float[n, d], the input of the first layer
#   layer i.weight       float[2 R, d, d]; the bases, float[B, d, d]; the blocks, float[2 R, d / b, b, b]
#   layer i.shares       float[2 R, B], with bases only
#   layer i.root         float[d, d]
#   layer i.bias         float[d]
#   relations            float[R, d], the decoder's
#   relation bias        float[R]
Parameters = dict[str, torch.Tensor]

# How much smaller the first messages are than what a constant says about itself.
_QUIET = 0.1


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model.

    Parameters
    ----------
    nodes, relations
        How many constants and types, and relations, there are.
    dimension
        Of the vectors.
    layers
        How many.
    bases
        B; 0 for no basis decomposition.
    block
        b, the size of a block; 0 for no block-diagonal decomposition.
    """

    nodes: int
    relations: int
    dimension: int
    layers: int
    bases: int
    block: int


def start(shape: Shape, spread: float, seed: int) -> Parameters:
    """Return the parameters before the first step.

    Parameters
    ----------
    spread
        Standard deviation of the input vectors.
    """
    random = random_generator(seed, "start")
    d, b = shape.dimension, shape.block

    def normal(*size: int, deviation: float = 1.0) -> torch.Tensor:
        return torch.empty(size).normal_(0, deviation, generator=random)

    found = {"nodes": normal(shape.nodes, d, deviation=spread)}
    for layer in range(shape.layers):
        size = (2 * shape.relations, d // b, b, b) if b else (shape.bases or 2 * shape.relations, d, d)
        found[f"layer {layer}.weight"] = normal(*size, deviation=_QUIET / math.sqrt(b or d))
        if shape.bases:
            deviation = 1 / math.sqrt(shape.bases)
            found[f"layer {layer}.shares"] = normal(2 * shape.relations, shape.bases, deviation=deviation)
        found[f"layer {layer}.root"] = torch.eye(d)
        found[f"layer {layer}.bias"] = torch.zeros(d)
    found["relations"] = normal(shape.relations, d)
    found["relation bias"] = torch.zeros(shape.relations)
    return found


def fan_in(name: str, value: torch.Tensor) -> int:
    """Return how many numbers are added up in a product with this parameter."""
    return value.shape[-2] if name.endswith((".weight", ".root")) else 1


def encode(
    parameters: Parameters,
    shape: Shape,
    graph: MessageGraph,
    weights: Weights,
    dropout: float = 0.0,
    random: torch.Generator | None = None,
) -> torch.Tensor:
    """Return float[n, d], the vectors of constants and types after the last layer."""
    nodes = parameters["nodes"]
    for layer in range(shape.layers):
        if layer:
            nodes = torch.relu(nodes)
        if dropout:
            kept = torch.empty(nodes.shape).bernoulli_(1 - dropout, generator=random).to(nodes.device)
            nodes = nodes * kept / (1 - dropout)
        weight = parameters[f"layer {layer}.weight"]
        if shape.bases:
            weight = relation_weights(weight, parameters[f"layer {layer}.shares"])
        elif shape.block:
            weight = block_weights(weight)
        root, bias = parameters[f"layer {layer}.root"], parameters[f"layer {layer}.bias"]
        nodes = rgcn_layer(nodes, weight, root, bias, graph, weights)
    return nodes


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


def distmult_scorer(entities: npt.NDArray[np.float32], relations: npt.NDArray[np.float32]) -> EmbeddingScorer:
    """Return the scorer with these vectors.

    Parameters
    ----------
    entities
        float32[n, d + 1], vectors after the last layer, and 1 in the last place.
    relations
        float32[R, d + 1], the decoder's vectors, and in the last place the bias.
    """
    return EmbeddingScorer.of(DistMult(dimension=entities.shape[1]), entities, relations)


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
        self.parameters: Parameters = {name: value.to(self.device).requires_grad_() for name, value in began.items()}
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
        false = self.candidates.corrupt(true, random) if mode == "random" else self.negatives[self.explicit[step]]
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
        return Checkpoint(arrays, {"step": step, "best_step": self.best.step, "best_accuracy": self.best.accuracy})

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
                self.optimizer.state[value] = {"step": torch.tensor(float(step), device=self.device), **moments}
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
