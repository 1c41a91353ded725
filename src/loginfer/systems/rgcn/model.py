"""R-GCN's parameters, encoder, decoder and losses, and its training.

In each step a portion of the edges is held out, and the rest must predict it.

A layer (equation 2 of Schlichtkrull and others) computes Σ_r A_r X W_r, where A_r takes, for each constant, the mean
over its neighbours by r. Each relation has one of two orders of work: *aggregate* its neighbours first and multiply one
row a target by W_r, or *multiply* one row a source by W_r and take the means of the products. Whichever needs fewer
rows is taken. Then all relations together are

    Z = G X,    Z'_r = Z_r W_r  for each relation's rows of Z,    Σ_r A_r X W_r = S Z'

with two sparse matrices whose structure never changes; only their values do, since in each step some edges
are left out. A product of a sparse matrix is a weighted sum of rows for each row of the result, in a fixed
order, so that it does not depend on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import cross_entropy, softplus

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import LogInferError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.randomness import salt
from loginfer.systems.fitting import Validation, explicit_negatives, rival_constants, torch_device
from loginfer.systems.interface import Checkpoint, Watch
from loginfer.systems.rgcn import distmult_scorer

if TYPE_CHECKING:
    from loginfer.systems.rgcn import RGCN

Vectors = npt.NDArray[np.float32]
Longs = npt.NDArray[np.int64]


# -- training --------------------------------------------------------------------------------------


class BestStep(NamedTuple):
    """The best step on valid: its number, its figure (see `Validation`), and the vectors that score with it."""

    step: int
    figure: float
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
        self.positives = as_tensor(benchmark.positives.train)
        self.negatives = as_tensor(explicit_negatives(benchmark, settings.mode))

        nodes, relations = len(graph.entities), len(graph.relations)
        self.graph = MessageGraph(graph.triples, nodes, relations, self.device)
        self.everything = self.graph.weights()
        portion_size = max(round(settings.holdout * len(self.positives)), 1)
        self.held = Portions(len(self.positives), portion_size, settings.seed, "held out")
        self.explicit = Portions(len(self.negatives), portion_size, settings.seed, "explicit")
        self.ends = RandomEnds(graph)
        self.valid = Validation.of(benchmark, settings.seed, settings.patience)

        initial = initial_parameters(settings, nodes, relations)
        self.parameters: Parameters = {name: value.to(self.device).requires_grad_() for name, value in initial.items()}
        # Adam moves each number by about the learning rate, so a product with d of them by d times as much.
        shares = {name: 1 / fan_in(name, value) for name, value in self.parameters.items()}
        shares["nodes"] = settings.input_rate
        groups = [{"params": [value], "share": shares[name]} for name, value in self.parameters.items()]
        self.optimizer = torch.optim.Adam(groups, fused=True)
        self.best: BestStep | None = None

    def run(self, watch: Watch) -> tuple[Vectors, Vectors]:
        """Go through all steps, from the last checkpoint on, and return the vectors of the best or last one."""
        checkpoint = watch.restore()
        step, last = 0 if checkpoint is None else self.restore(checkpoint), self.settings.steps
        while step < last and not self._given_up(step):
            loss = self.step(step)
            step += 1
            row: dict[str, float | int] = {"step": step, "loss": loss}
            if self.valid is not None and (step % self.settings.validate_every == 0 or step == last):
                row[self.valid.figure] = self._validate(self.valid, step)
            watch.record(row)
            watch.progress("training", step, last)
            if watch.due():
                watch.save(self.checkpoint(step))
        return self.vectors() if self.best is None or self.settings.keep == "last" else self.best.vectors

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
            hint = f"a smaller learning rate: --set learning_rate={self.settings.learning_rate / 10:g}"
            raise LogInferError(f"the loss became {value} in step {step + 1}", hint=hint)
        torch.autograd.backward(loss)
        self.optimizer.step()
        return value

    def loss(self, step: int) -> torch.Tensor:
        """Return the loss of the edges held out, with negatives for them.

        That is their binary cross-entropy against as many negatives (those of N_train or, without any,
        corruptions) and, but for mode `explicit`, the cross-entropy of each one's subject or object against
        random candidates, and of its relation against all relations.
        """
        mode, random = self.settings.mode, random_generator(self.settings.seed, "step", step)
        held = self.held[step]
        true = self.positives[held]
        explicit = len(self.negatives) > 0
        false = self.negatives[self.explicit[step]] if explicit else self.ends.corrupt(true, random)
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
        figure = valid.judge(distmult_scorer(*vectors))
        if self.best is None or figure > self.best.figure:
            self.best = BestStep(step, figure, vectors)
        return figure

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
        best_step, best_figure = 0, -1.0
        if self.best is not None:
            best_step, best_figure = self.best.step, self.best.figure
            arrays["best.entities"], arrays["best.relations"] = self.best.vectors
        return Checkpoint(arrays, {"step": step, "best_step": best_step, "best_figure": best_figure})

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
            self.best = BestStep(int(facts["best_step"]), float(facts["best_figure"]), vectors)
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
        self._constants = torch.from_numpy(rival_constants(graph).astype(np.int64))
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


# -- message passing --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SparseMatrix:
    """A sparse matrix row by row, its values by reference.

    Parameters
    ----------
    offsets
        int32[rows + 1]: row i has the entries `offsets[i]` to `offsets[i + 1]`.
    columns
        int32[entries].
    edges
        int64[entries]: the edge whose weight is the value; the index after the last edge for the value 1.
    """

    offsets: torch.Tensor
    columns: torch.Tensor
    edges: torch.Tensor

    @classmethod
    def of(cls, rows: Longs, columns: Longs, edges: Longs, count: int, device: torch.device) -> SparseMatrix:
        """Make a matrix with `count` rows of its entries, in any order."""
        order = np.lexsort((columns, rows))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
        return cls(
            torch.from_numpy(offsets.astype(np.int32)).to(device),
            torch.from_numpy(columns[order].astype(np.int32)).to(device),
            torch.from_numpy(edges[order]).to(device),
        )

    def times(self, dense: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Return the product with a dense matrix, the entries having these values."""
        # The quickest of torch's sparse products on a CPU: twice as fast as CSR matrices, seven times as
        # fast as index_add.
        product: torch.Tensor = torch.embedding_bag(dense, self.columns, self.offsets, False, 0, False, values, True)[0]
        return product


@dataclass(frozen=True, slots=True)
class EdgeWeights:
    """The values of G, S and their transposes for one choice of edges."""

    gather: torch.Tensor
    gathered: torch.Tensor
    scatter: torch.Tensor
    scattered: torch.Tensor


class MessageGraph:
    """The edges along which messages go: each triple and, by a relation of its own, its inverse.

    Edge i < n is the triple i, from subject to object by relation r; edge n + i is its inverse, from object
    to subject by relation R + r.

    Parameters
    ----------
    triples
        int32[n, 3].
    nodes
        How many constants and types there are.
    relations
        R, how many relations there are.
    device
        Where to compute.
    """

    def __init__(self, triples: Triples, nodes: int, relations: int, device: torch.device) -> None:
        self.triples = len(triples)
        self.nodes = nodes
        self.relations = 2 * relations
        subject, relation, object_ = (triples[:, column].astype(np.int64) for column in range(3))
        source = np.concatenate([subject, object_])
        target = np.concatenate([object_, subject])
        kind = np.concatenate([relation, relation + relations])

        targets, of_target = np.unique(kind * nodes + target, return_inverse=True)
        sources = np.unique(kind * nodes + source)
        by_target, by_source = (np.bincount(ends // nodes, minlength=self.relations) for ends in (targets, sources))
        first = by_target <= by_source  # bool[2 R]: neighbours are aggregated first
        aggregated = first[kind]
        # Rows of Z, sorted by relation: (relation, target) where neighbours are aggregated first, (relation,
        # source) where they are not.
        slots, slot = np.unique(np.where(aggregated, kind * nodes + target, kind * nodes + source), return_inverse=True)
        self.sizes: list[int] = np.bincount(slots // nodes, minlength=self.relations).tolist()

        edge = np.arange(len(kind))
        before, after = edge[aggregated], edge[~aggregated]
        alone = np.flatnonzero(~first[slots // nodes])  # rows of Z that are rows of X
        added = np.flatnonzero(first[slots // nodes])  # rows of Z' that are added as they are
        one = np.array([len(kind)])
        gather = (
            np.concatenate([slot[before], alone]),
            np.concatenate([source[before], slots[alone] % nodes]),
            np.concatenate([before, one.repeat(len(alone))]),
        )
        scatter = (
            np.concatenate([target[after], slots[added] % nodes]),
            np.concatenate([slot[after], added]),
            np.concatenate([after, one.repeat(len(added))]),
        )
        self.gather = SparseMatrix.of(*gather, len(slots), device)
        self.gathered = SparseMatrix.of(gather[1], gather[0], gather[2], nodes, device)
        self.scatter = SparseMatrix.of(*scatter, nodes, device)
        self.scattered = SparseMatrix.of(scatter[1], scatter[0], scatter[2], len(slots), device)
        self._of_target = torch.from_numpy(of_target).to(device)
        self._degree = torch.from_numpy(np.bincount(of_target, minlength=len(targets))).to(device)
        self._device = device

    def split(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return rows of Z relation by relation."""
        return torch.split(rows, self.sizes)

    def weights(self, left_out: torch.Tensor | None = None, dtype: torch.dtype = torch.float32) -> EdgeWeights:
        """Return the values of the matrices: means over the edges that are not left out.

        Parameters
        ----------
        left_out
            int64[m], indices of triples whose edges, in both directions, carry no message; none by default.
        dtype
            The type of the values.
        """
        kept = torch.ones(len(self._of_target) + 1, device=self._device, dtype=dtype)
        degree = self._degree.to(dtype)
        if left_out is not None:
            edges = torch.cat([left_out, left_out + self.triples])
            kept[edges] = 0
            minus_one = torch.full((len(edges),), -1.0, device=self._device, dtype=dtype)
            degree = degree.index_add(0, self._of_target[edges], minus_one)
        means = kept
        means[:-1] /= degree.clamp(min=1).index_select(0, self._of_target)
        matrices = (self.gather, self.gathered, self.scatter, self.scattered)
        return EdgeWeights(*(means.index_select(0, matrix.edges) for matrix in matrices))


def rgcn_layer(
    nodes: torch.Tensor,
    weight: torch.Tensor,
    root: torch.Tensor,
    bias: torch.Tensor,
    graph: MessageGraph,
    weights: EdgeWeights,
) -> torch.Tensor:
    """Return X W_0 + Σ_r A_r X W_r + b.

    Parameters
    ----------
    nodes
        float[n, d], X.
    weight
        float[2 R, d, e], a matrix W_r for each relation and each inverse relation; float[2 R, d] for their
        diagonals if the rest is 0.
    root
        float[d, e], W_0, the matrix of the self-loop.
    bias
        float[e].
    graph, weights
        Along which edges messages go, and with which weights.
    """
    return torch.addmm(bias, nodes, root) + propagate(nodes, weight, graph, weights)


def relation_weights(bases: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """Return float[2 R, d, e], W_r = Σ_b a_rb V_b (basis decomposition).

    Parameters
    ----------
    bases
        float[B, d, e], the V_b.
    shares
        float[2 R, B], the a_rb.
    """
    return (shares @ bases.flatten(1)).view(len(shares), *bases.shape[1:])


def block_weights(blocks: torch.Tensor) -> torch.Tensor:
    """Return float[2 R, d, d], matrices with these blocks on the diagonal (block-diagonal decomposition).

    Parameters
    ----------
    blocks
        float[2 R, d / b, b, b]. Of blocks of one number the diagonals, float[2 R, d], are returned.
    """
    relations, count, size, _ = blocks.shape
    if size == 1:
        return blocks.view(relations, count)
    matrices = blocks.new_zeros(relations, count, size, count, size)
    matrices.diagonal(dim1=1, dim2=3).copy_(blocks.permute(0, 2, 3, 1))
    return matrices.view(relations, count * size, count * size)


def propagate(nodes: torch.Tensor, weight: torch.Tensor, graph: MessageGraph, weights: EdgeWeights) -> torch.Tensor:
    """Return Σ_r A_r X W_r; of diagonal matrices W_r, `weight` may hold the diagonals."""
    messages: torch.Tensor = _Propagate.apply(nodes, weight, graph, weights)  # type: ignore[no-untyped-call]
    return messages


class _Propagate(torch.autograd.Function):
    """Σ_r A_r X W_r = S Z' with Z = G X and Z'_r = Z_r W_r, with its gradients written out.

    Blocks of rows are views from one `split` and products are written into place: slices taken one by one
    would make the backward pass touch all rows once for each relation.
    """

    @staticmethod
    def forward(
        ctx: Any, nodes: torch.Tensor, weight: torch.Tensor, graph: MessageGraph, weights: EdgeWeights
    ) -> torch.Tensor:
        rows = graph.gather.times(nodes, weights.gather)
        products = rows.new_empty((len(rows), weight.shape[-1]))
        blocks = zip(graph.split(rows), weight.unbind(), graph.split(products), strict=True)
        multiply = torch.mul if weight.dim() == 2 else torch.mm
        for block, matrix, product in blocks:
            if len(block):
                multiply(block, matrix, out=product)
        ctx.save_for_backward(rows, weight)
        ctx.graph, ctx.weights = graph, weights
        return graph.scatter.times(products, weights.scatter)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        rows, weight = ctx.saved_tensors
        graph: MessageGraph = ctx.graph
        weights: EdgeWeights = ctx.weights
        of_products = graph.scattered.times(gradients[0].contiguous(), weights.scattered)
        of_rows = torch.empty_like(rows)
        of_weight = torch.zeros_like(weight)
        of_parts = graph.split(of_products), graph.split(of_rows), of_weight.unbind()
        blocks = zip(graph.split(rows), weight.unbind(), *of_parts, strict=True)
        for block, matrix, of_product, of_block, of_matrix in blocks:
            if not len(block):
                continue
            if weight.dim() == 2:
                torch.mul(of_product, matrix, out=of_block)
                torch.sum(block * of_product, 0, out=of_matrix)
            else:
                torch.mm(of_product, matrix.t(), out=of_block)
                torch.mm(block.t(), of_product, out=of_matrix)
        return graph.gathered.times(of_rows, weights.gathered), of_weight, None, None
