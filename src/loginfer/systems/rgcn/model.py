"""R-GCN's parameters, encoder, decoder and losses, and its training.

In each step a portion of the edges is held out, and the rest must predict it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import cross_entropy, softplus

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.randomness import salt
from loginfer.systems.fitting import Validation, torch_device
from loginfer.systems.interface import Checkpoint, Watch
from loginfer.systems.rgcn import distmult_scorer
from loginfer.systems.rgcn.layer import EdgeWeights, MessageGraph, block_weights, relation_weights, rgcn_layer

if TYPE_CHECKING:
    from loginfer.systems.rgcn import RGCN

Vectors = npt.NDArray[np.float32]


# -- training --------------------------------------------------------------------------------------


class BestStep(NamedTuple):
    """The best step on valid: its number, its accuracy, and the vectors that score with it."""

    step: int
    accuracy: float
    vectors: tuple[Vectors, Vectors]


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
        self.device = torch_device(settings.device)
        graph = benchmark.graph
        negatives = next(iter(benchmark.negatives.values()), None)
        self.positives = as_tensor(benchmark.positives.train)
        self.negatives = as_tensor(negatives.splits.train) if negatives else self.positives[:0]
        if not len(self.positives):
            raise InputError(f"{benchmark.name} has no triples to learn from")
        if settings.mode != "random" and not len(self.negatives):
            raise InputError(
                f"{benchmark.name} has no negatives to learn from, and R-GCN's mode is `{settings.mode}`",
                hint="--mode random learns from random corruptions",
            )

        nodes, relations = len(graph.entities), len(graph.relations)
        self.graph = MessageGraph(graph.triples, nodes, relations, self.device)
        self.everything = self.graph.weights()
        portion_size = max(round(settings.holdout * len(self.positives)), 1)
        self.held = Portions(len(self.positives), portion_size, settings.seed, "held out")
        self.explicit = Portions(len(self.negatives), portion_size, settings.seed, "explicit")
        self.ends = RandomEnds(graph)
        self.valid = Validation.of(benchmark, settings.seed)

        initial = initial_parameters(settings, nodes, relations)
        self.parameters: Parameters = {name: value.to(self.device).requires_grad_() for name, value in initial.items()}
        # Adam moves each number by about the learning rate, so a product with d of them by d times as much.
        shares = {name: 1 / fan_in(name, value) for name, value in self.parameters.items()}
        shares["nodes"] = settings.input_rate
        groups = [{"params": [value], "share": shares[name]} for name, value in self.parameters.items()]
        self.optimizer = torch.optim.Adam(groups, fused=True)
        self.best: BestStep | None = None

    def run(self, watch: Watch) -> tuple[Vectors, Vectors]:
        """Go through all steps, from the last checkpoint on, and return the vectors of the best one."""
        checkpoint = watch.restore()
        step, last = 0 if checkpoint is None else self.restore(checkpoint), self.settings.steps
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
        return self.vectors() if self.best is None else self.best.vectors

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
        false = self.ends.corrupt(true, random) if mode == "random" else self.negatives[self.explicit[step]]
        weights = self.graph.weights(held.to(self.device))
        nodes = encode(self.settings, self.parameters, self.graph, weights, random)
        logits = decode(self.parameters, nodes, torch.cat([true, false]).to(self.device))
        loss = softplus(-logits[: len(true)]).mean() + softplus(logits[len(true) :]).mean()
        loss = loss * self.settings.label_weight
        if mode != "explicit":
            for questions in self.ends.questions(true, self.settings.negatives, random):
                choice_losses = choose(self.parameters, nodes, questions.to(self.device))
                loss = loss + choice_losses.sum() / len(true)
            untyped = self.ends.untyped(true).to(self.device)
            if self.settings.relation_weight and len(untyped):
                relation_losses = name_relation(self.parameters, nodes, untyped)
                loss = loss + self.settings.relation_weight * relation_losses.sum() / len(true)
        if self.settings.weight_decay:
            size = nodes.square().mean() + self.parameters["relations"].square().mean()
            loss = loss + self.settings.weight_decay * size
        return loss

    # -- choice of the step on valid ------------------------------------------------------------

    def vectors(self) -> tuple[Vectors, Vectors]:
        """Return the vectors after the last layer, all of P_train being messages, and the decoder's."""
        with torch.no_grad():
            nodes = encode(self.settings, self.parameters, self.graph, self.everything)
            bias = self.parameters["relation bias"][:, None]
            relations = torch.cat([self.parameters["relations"], bias], 1)
            entities = torch.cat([nodes, torch.ones_like(nodes[:, :1])], 1)
        return entities.cpu().numpy(), relations.cpu().numpy()

    def _validate(self, valid: Validation, step: int) -> float:
        vectors = self.vectors()
        accuracy = valid.accuracy(distmult_scorer(*vectors))
        if self.best is None or accuracy > self.best.accuracy:
            self.best = BestStep(step, accuracy, vectors)
        return accuracy

    def _given_up(self, step: int) -> bool:
        patience = self.settings.patience * self.settings.validate_every
        return self.best is not None and 0 < patience <= step - self.best.step

    # -- going on after a kill ------------------------------------------------------------------

    def checkpoint(self, step: int) -> Checkpoint:
        """Return the state before a step."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, value in self.parameters.items():
            state = self.optimizer.state[value]
            for ending, tensor in (("", value), (".mean", state["exp_avg"]), (".square", state["exp_avg_sq"])):
                arrays[f"{name}{ending}"] = tensor.detach().cpu().numpy().copy()
        best_step, best_accuracy = 0, -1.0
        if self.best is not None:
            best_step, best_accuracy = self.best.step, self.best.accuracy
            arrays["best.entities"], arrays["best.relations"] = self.best.vectors
        return Checkpoint(arrays, {"step": step, "best_step": best_step, "best_accuracy": best_accuracy})

    def restore(self, checkpoint: Checkpoint) -> int:
        """Go back to a checkpoint's state and return the step that is next."""
        arrays, facts = checkpoint.arrays, checkpoint.facts
        step = int(facts["step"])
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.copy_(torch.from_numpy(np.array(arrays[name])))
                moments = {
                    "exp_avg": torch.from_numpy(np.array(arrays[f"{name}.mean"])).to(self.device),
                    "exp_avg_sq": torch.from_numpy(np.array(arrays[f"{name}.square"])).to(self.device),
                }
                self.optimizer.state[value] = {"step": torch.tensor(float(step), device=self.device), **moments}
        if "best.entities" in arrays:
            vectors = (np.asarray(arrays["best.entities"]), np.asarray(arrays["best.relations"]))
            self.best = BestStep(int(facts["best_step"]), float(facts["best_accuracy"]), vectors)
        return step


# -- the model -------------------------------------------------------------------------------------

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


def initial_parameters(settings: RGCN, nodes: int, relations: int) -> Parameters:
    """Return the parameters before the first step."""
    random = random_generator(settings.seed, "start")
    d, b, bases = settings.dimension, settings.block, settings.bases

    def normal(*size: int, deviation: float = 1.0) -> torch.Tensor:
        return torch.empty(size).normal_(0, deviation, generator=random)

    parameters = {"nodes": normal(nodes, d, deviation=settings.spread)}
    for layer in range(settings.layers):
        size = (2 * relations, d // b, b, b) if b else (bases or 2 * relations, d, d)
        parameters[f"layer {layer}.weight"] = normal(*size, deviation=_QUIET / math.sqrt(b or d))
        if bases:
            parameters[f"layer {layer}.shares"] = normal(2 * relations, bases, deviation=1 / math.sqrt(bases))
        parameters[f"layer {layer}.root"] = torch.eye(d)
        parameters[f"layer {layer}.bias"] = torch.zeros(d)
    parameters["relations"] = normal(relations, d)
    parameters["relation bias"] = torch.zeros(relations)
    return parameters


def fan_in(name: str, value: torch.Tensor) -> int:
    """Return how many numbers are added up in a product with this parameter."""
    return value.shape[-2] if name.endswith((".weight", ".root")) else 1


def encode(
    settings: RGCN,
    parameters: Parameters,
    graph: MessageGraph,
    weights: EdgeWeights,
    random: torch.Generator | None = None,
) -> torch.Tensor:
    """Return float[n, d], the vectors of constants and types after the last layer; with `random`, with dropout."""
    nodes = parameters["nodes"]
    for layer in range(settings.layers):
        if layer:
            nodes = torch.relu(nodes)
        if settings.dropout and random is not None:
            dropout_mask = torch.empty(nodes.shape).bernoulli_(1 - settings.dropout, generator=random).to(nodes.device)
            nodes = nodes * dropout_mask / (1 - settings.dropout)
        weight = parameters[f"layer {layer}.weight"]
        if settings.bases:
            weight = relation_weights(weight, parameters[f"layer {layer}.shares"])
        elif settings.block:
            weight = block_weights(weight)
        root, bias = parameters[f"layer {layer}.root"], parameters[f"layer {layer}.bias"]
        nodes = rgcn_layer(nodes, weight, root, bias, graph, weights)
    return nodes


# The score of what cannot be chosen.
_NEVER = -1e30


def decode(parameters: Parameters, nodes: torch.Tensor, triples: torch.Tensor) -> torch.Tensor:
    """Return float[m], the scores of int64[m, 3] as logits: s^T diag(r) o + b_R, after the last layer."""
    subjects = nodes.index_select(0, triples[:, 0])
    relations = parameters["relations"].index_select(0, triples[:, 1])
    objects = nodes.index_select(0, triples[:, 2])
    bias = parameters["relation bias"].index_select(0, triples[:, 1])
    return (subjects * relations * objects).sum(1) + bias


def choose(parameters: Parameters, nodes: torch.Tensor, questions: Questions) -> torch.Tensor:
    """Return float[m]: −log of the softmax of each question's answer among its candidates."""
    relations = parameters["relations"].index_select(0, questions.relations)
    queries = nodes.index_select(0, questions.anchors) * relations
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
        answer_share = (answers - highest).exp()
        total = shares.sum(1) + answer_share
        ctx.save_for_backward(queries, candidates, shares, answer_share, total)
        return total.log() - answers + highest

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:
        queries, candidates, shares, answer_share, total = ctx.saved_tensors
        weights = gradients[0] / total
        of_queries = (shares @ candidates).mul_(weights[:, None])
        of_candidates = shares.t() @ (queries * weights[:, None])
        return of_queries, weights * answer_share - gradients[0], of_candidates, None


# -- what a step looks at: the edges held out, and negatives for them --------------------------------


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
        """Return int64[size], the indices of the elements whose turn it is in this step."""
        round_, turn = divmod(step, self._turns)
        if round_ != self._round:
            random = random_generator(self._seed, self._name, round_)
            self._order = torch.randperm(self._count, generator=random)
            self._round = round_
        return self._order[turn * self.size : (turn + 1) * self.size]


class RandomEnds:
    """Random subjects and objects: constants, and types for the objects of type triples.

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
        questions = []
        for in_group, (anchor, relation, answer), pool in groups:
            group_triples = triples[in_group]
            if len(group_triples) and len(pool):
                candidates = torch.unique(pool[torch.randint(len(pool), (count,), generator=random)])
                ends = group_triples.t().contiguous()
                questions.append(Questions(ends[anchor], ends[relation], ends[answer], candidates))
        return questions

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


class Questions(NamedTuple):
    """Questions which of some candidates completes a triple.

    Parameters
    ----------
    anchors, relations, answers
        int64[m]: the end that is given, the relation, and the other end.
    candidates
        int64[K], distinct, sorted, the same for all.
    """

    anchors: torch.Tensor
    relations: torch.Tensor
    answers: torch.Tensor
    candidates: torch.Tensor

    @property
    def drawn(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Where an answer is one of the candidates: indices of questions, and of candidates."""
        position = torch.searchsorted(self.candidates, self.answers).clamp_(max=len(self.candidates) - 1)
        questions = (self.candidates[position] == self.answers).nonzero().flatten()
        return questions, position[questions]

    def to(self, device: torch.device) -> Questions:
        """Move them to a device."""
        return Questions(*(part.to(device) for part in self))


def as_tensor(triples: Triples) -> torch.Tensor:
    """Return triples as int64[n, 3]."""
    return torch.from_numpy(triples.astype(np.int64))
