"""A trained model of PyKEEN as a scorer, and as a system in LogInfer's evaluation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from pykeen.models import ERModel, InductiveERModel, Model
from pykeen.nn.modules import RotatEInteraction
from pykeen.triples import CoreTriplesFactory, TriplesFactory
from torch.utils._python_dispatch import TorchDispatchMode

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples, Vocabulary
from loginfer.pykeen.versions import check_version
from loginfer.systems.interface import POSITIONS, Arrays, Position


class FrozenRepresentation(torch.nn.Module):
    """The vectors of entities or relations as one table."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table, persistent=False)

    def forward(self, indices: torch.Tensor | None = None) -> torch.Tensor:
        """Return the vectors of some ids, or of all."""
        table = self.get_buffer("table")
        return table if indices is None else table[indices]


def frozen(model: Model) -> Model:
    """Return a model that gives the same scores, and shares nothing with the given one that would change.

    Entities and relations get the vectors that they have now: what a graph network computes for all of them,
    or what a constraint makes of them, is computed once. Scores are computed from these in double precision.
    A model that is not made of vectors and an interaction function, or has a way of its own to compute
    scores, is returned as it is.
    """
    if not isinstance(model, ERModel) or _scores_its_own_way(type(model)):
        return model
    was_training = model.training
    model.eval()
    with torch.no_grad():
        tables = {
            name: torch.nn.ModuleList(FrozenRepresentation(_double(part(None))) for part in getattr(model, name))
            for name in ("entity_representations", "relation_representations")
        }
    if isinstance(model.interaction, RotatEInteraction):
        _turn_exactly(tables["relation_representations"])
    twin = copy.copy(model)
    # Nothing else of the model takes part in scoring: regularisers and the loss stay behind.
    twin._modules = {**tables, "interaction": copy.deepcopy(model.interaction).double()}
    twin._parameters, twin._buffers = {}, {}
    model.train(was_training)
    twin.eval()
    return twin


def _scores_its_own_way(kind: type[ERModel[Any, Any, Any]]) -> bool:
    ways = ("forward", "score_hrt", "score_h", "score_r", "score_t", "_get_representations")
    return any(getattr(kind, way) is not getattr(ERModel, way) for way in ways)


def _double(table: torch.Tensor) -> torch.Tensor:
    return table.to(torch.complex128 if table.is_complex() else torch.float64).detach().clone()


def _turn_exactly(tables: torch.nn.ModuleList) -> None:
    """Make numbers of modulus 1 exactly that.

    RotatE turns the head forth or the tail back, whatever is less work. Both come to the same if nothing but
    the angle changes, for which single precision is not enough.
    """
    for representation in tables:
        table = representation.get_buffer("table")
        if table.is_complex() and ((table.abs() - 1).abs() < 1e-5).all():
            table /= table.abs()


class _CellCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the numbers in all tensors that are computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cells = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        for tensor in results if isinstance(results, tuple | list) else (results,):
            if isinstance(tensor, torch.Tensor):
                self.cells += tensor.numel() * (2 if tensor.is_complex() else 1)
        return results


def cells_of(ask: Callable[[int], Any]) -> int:
    """Return how many numbers are computed for one more candidate, or triple, at most.

    Parameters
    ----------
    ask
        Asks the model about this many of them.
    """
    counts: list[int] = []
    for count in (2, 3):
        with _CellCounter() as counted:
            ask(count)
        counts.append(counted.cells)
    return max(1, counts[1] - counts[0])


Ids = npt.NDArray[np.int64]

# Numbers that may be computed at once: half a gigabyte of them.
_CELLS = 1 << 26

_ALL_NAMES = "train it with loginfer.pykeen.dataset(path), which has all names of the benchmark"


class PyKEENScorer:
    """The scores of a model.

    They are computed in double precision and rounded to single, so that a triple's score does not depend on
    how many others are asked for together with it, nor on whether it is asked for as a triple or as a
    candidate. (A model with inverse relations is the exception for subjects: as in PyKEEN's own evaluation,
    they are scored as objects of the inverse relation.)

    Parameters
    ----------
    model
        The model, which may be trained on afterwards: the scorer keeps the vectors it has now.
    graph
        Gives the names.
    entities, relations
        int64, the model's id of each of the graph's entities and relations; -1 for what it does not know. By
        default the ids are the same.
    """

    def __init__(
        self, model: Model, graph: KnowledgeGraph, entities: Ids | None = None, relations: Ids | None = None
    ) -> None:
        self._trained = model
        self._model = frozen(model)
        self._graph = graph
        self._entities = np.arange(len(graph.entities)) if entities is None else entities
        self._relations = np.arange(len(graph.relations)) if relations is None else relations
        self._cells: dict[str, int] = {}

    def score(self, triples: Triples) -> npt.NDArray[np.float64]:
        """Return float64[n], one score a triple of int32[n, 3]."""
        rows = self._rows(triples)
        if not len(rows):
            return np.empty(0)
        most = self._most("triples", lambda count: self._triples(rows[:1].repeat(count, 1)))
        return np.concatenate([self._triples(part) for part in torch.split(rows, most)]).astype(np.float64)

    def score_candidates(
        self, triples: Triples, position: Position, candidates: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float32]:
        """Return float32[n, c]: the scores of each triple with each candidate in that position."""
        rows = self._rows(triples, but=position)
        ids = self._ids(candidates, "relation" if position == "relation" else "entity")
        scores = np.empty((len(rows), len(ids)), dtype=np.float32)
        if not scores.size:
            return scores
        most = self._most(position, lambda count: self._candidates(rows[:1], position, ids[:1].repeat(count)))
        width = min(len(ids), most)
        height = max(1, most // width)
        for top in range(0, len(rows), height):
            block = slice(top, top + height)
            for left in range(0, len(ids), width):
                part = slice(left, left + width)
                scores[block, part] = self._candidates(rows[block], position, ids[part])
        return scores

    def arrays(self) -> Arrays:
        """Return the model's weights by name."""
        return arrays_of(self._trained)

    # -- asking the model ---------------------------------------------------------------------------

    def _triples(self, rows: torch.Tensor) -> npt.NDArray[np.float32]:
        with torch.inference_mode():
            return _rounded(self._model.predict_hrt(rows)).reshape(-1)

    def _candidates(self, rows: torch.Tensor, position: Position, candidates: torch.Tensor) -> npt.NDArray[np.float32]:
        model = self._model
        on_device = candidates.to(model.device)
        with torch.inference_mode():
            if position == "subject":
                scores = model.predict_h(rows[:, 1:], heads=on_device)
            elif position == "object":
                scores = model.predict_t(rows[:, :2], tails=on_device)
            else:
                # PyKEEN counts inverse relations here: the relation r has the id 2r.
                ids = on_device * 2 if model.use_inverse_triples else on_device
                scores = model.predict_r(rows[:, ::2], relations=ids)
        return _rounded(scores)

    def _most(self, what: str, ask: Any) -> int:
        """Return how many candidates, or triples, may be asked for at once."""
        if what not in self._cells:
            self._cells[what] = cells_of(ask)
        return max(1, _CELLS // self._cells[what])

    # -- ids ----------------------------------------------------------------------------------------

    def _rows(self, triples: Triples, but: Position | None = None) -> torch.Tensor:
        """Return triples by the model's ids; what stands in one position may not matter."""
        rows = np.asarray(triples).reshape(-1, 3)
        columns = [
            torch.zeros(len(rows), dtype=torch.long)
            if position == but
            else self._ids(rows[:, column], "relation" if position == "relation" else "entity")
            for column, position in enumerate(POSITIONS)
        ]
        return torch.stack(columns, dim=1)

    def _ids(self, ours: npt.NDArray[Any], kind: str) -> torch.Tensor:
        table, names = (
            (self._relations, self._graph.relations) if kind == "relation" else (self._entities, self._graph.entities)
        )
        theirs = table[ours]
        if len(theirs) and theirs.min() < 0:
            name = names[int(ours[int(theirs.argmin())])]
            raise InputError(f"the model does not know the {kind} `{name}`", hint=_ALL_NAMES)
        return torch.from_numpy(theirs.astype(np.int64))


def arrays_of(model: Model) -> dict[str, npt.NDArray[Any]]:
    """Return the weights of a model by name, as arrays of their own."""
    return {name: value.detach().cpu().numpy().copy() for name, value in model.state_dict().items()}


def _rounded(scores: torch.Tensor) -> npt.NDArray[np.float32]:
    single: npt.NDArray[np.float32] = scores.to(torch.float32).cpu().numpy()
    return single


def scorer(model: Model, benchmark: Benchmark, triples_factory: CoreTriplesFactory | None = None) -> PyKEENScorer:
    """Return a trained model as a scorer for a benchmark.

    Parameters
    ----------
    model
        A trained model.
    benchmark
        The benchmark.
    triples_factory
        The factory of the triples that it was trained with, which says what its ids mean. It can be left out
        if these came from `loginfer.pykeen.dataset`.

    Raises
    ------
    InputError
        If the benchmark has names that the model does not know.
    """
    check_version()
    if not isinstance(model, Model):
        raise InputError(f"{type(model).__name__} is no model of PyKEEN", hint="give result.model")
    inductive = isinstance(model, InductiveERModel)
    if benchmark.context is not None or inductive:
        raise InputError(
            f"{type(model).__name__ if inductive else benchmark.name} is inductive, and PyKEEN must be told "
            "which graph a model is asked about",
            hint="loginfer.pykeen.dataset(path) is an inductive data set for it",
        )
    graph = benchmark.graph
    model_sizes = (model.num_entities, model.num_real_relations)
    if triples_factory is None:
        if (len(graph.entities), len(graph.relations)) != model_sizes:
            raise InputError(
                f"the model has {model_sizes[0]:,} entities and {model_sizes[1]:,} relations, "
                f"{benchmark.name} has {len(graph.entities):,} and {len(graph.relations):,}",
                hint="give the factory of the triples it was trained with: triples_factory=…",
            )
        return PyKEENScorer(model, graph)
    if not isinstance(triples_factory, TriplesFactory):
        raise InputError("the factory has no names", hint="give a TriplesFactory")
    factory_sizes = (triples_factory.num_entities, triples_factory.real_num_relations)
    if factory_sizes != model_sizes:
        raise InputError(
            "the factory is not the one the model was trained with: it has "
            f"{factory_sizes[0]:,} entities and {factory_sizes[1]:,} relations, "
            f"the model {model_sizes[0]:,} and {model_sizes[1]:,}"
        )
    sets = [benchmark.positives, *(negatives.splits for negatives in benchmark.negatives.values())]
    triples = np.vstack([part for splits in sets for _, part in splits.items()])
    ends = triples[:, ::2]
    entities = _model_ids(benchmark, "constants or types", graph.entities, triples_factory.entity_to_id, ends)
    relations = _model_ids(benchmark, "relations", graph.relations, triples_factory.relation_to_id, triples[:, 1])
    return PyKEENScorer(model, graph, entities, relations)


def _model_ids(
    benchmark: Benchmark, kind: str, names: Vocabulary, theirs: Mapping[str, int], used: npt.NDArray[Any]
) -> Ids:
    """Return the model's id of each name, -1 where it has none; complain if a triple has one of these."""
    ids = np.fromiter((theirs.get(name, -1) for name in names), dtype=np.int64, count=len(names))
    used_ids = np.unique(used)
    missing = used_ids[ids[used_ids] < 0]
    if len(missing):
        first = ", ".join(f"`{names[i]}`" for i in missing[:3].tolist())
        more = ", …" if len(missing) > 3 else ""
        message = f"the model does not know {len(missing):,} {kind} of {benchmark.name}: {first}{more}"
        raise InputError(message, hint=_ALL_NAMES)
    return ids


class Trained:
    """A system that has learned already: a trained model, to be evaluated like any other system.

    Parameters
    ----------
    model, triples_factory
        As of `scorer`.
    """

    def __init__(self, model: Model, triples_factory: CoreTriplesFactory | None = None) -> None:
        self._model = model
        self._factory = triples_factory

    def fit(self, benchmark: Benchmark) -> PyKEENScorer:
        """Return the model as a scorer; nothing is learned."""
        return scorer(self._model, benchmark, self._factory)
