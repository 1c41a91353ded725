"""A model that PyKEEN has trained, given as an object, in LogInfer's evaluation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from pykeen.models import InductiveERModel, Model
from pykeen.triples import CoreTriplesFactory, TriplesFactory

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError
from loginfer.kg import Vocabulary
from loginfer.pykeen.versions import check_version
from loginfer.systems.pykeen.scorer import PyKEENScorer

__all__ = ["Trained", "scorer"]

Ids = npt.NDArray[np.int64]


def scorer(
    model: Model, benchmark: Benchmark, triples_factory: CoreTriplesFactory | None = None
) -> PyKEENScorer:
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
    if triples_factory is None:
        _same_sizes(model, benchmark)
        return PyKEENScorer(model, graph)
    if not isinstance(triples_factory, TriplesFactory):
        raise InputError("the factory has no names", hint="give a TriplesFactory")
    _fitting(model, triples_factory)
    entities = _places(graph.entities, triples_factory.entity_to_id)
    relations = _places(graph.relations, triples_factory.relation_to_id)
    used = _used(benchmark)
    _all_known(benchmark, "constants or types", graph.entities, entities, used[0])
    _all_known(benchmark, "relations", graph.relations, relations, used[1])
    return PyKEENScorer(model, graph, entities, relations)


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


def _same_sizes(model: Model, benchmark: Benchmark) -> None:
    graph = benchmark.graph
    ours = (len(graph.entities), len(graph.relations))
    theirs = (model.num_entities, model.num_real_relations)
    if ours != theirs:
        raise InputError(
            f"the model has {theirs[0]:,} entities and {theirs[1]:,} relations, "
            f"{benchmark.name} has {ours[0]:,} and {ours[1]:,}",
            hint="give the factory of the triples it was trained with: triples_factory=…",
        )


def _fitting(model: Model, factory: TriplesFactory) -> None:
    if (factory.num_entities, factory.real_num_relations) != (model.num_entities, model.num_real_relations):
        raise InputError(
            "the factory is not the one the model was trained with: it has "
            f"{factory.num_entities:,} entities and {factory.real_num_relations:,} relations, "
            f"the model {model.num_entities:,} and {model.num_real_relations:,}",
        )


def _places(names: Vocabulary, known: Mapping[str, int]) -> Ids:
    return np.fromiter((known.get(name, -1) for name in names), dtype=np.int64, count=len(names))


def _used(benchmark: Benchmark) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return for each entity and for each relation whether a triple of the benchmark has it."""
    graph = benchmark.graph
    entities = np.zeros(len(graph.entities), dtype=bool)
    relations = np.zeros(len(graph.relations), dtype=bool)
    sets = [benchmark.positives, *(made.splits for made in benchmark.negatives.values())]
    for triples in (triples for splits in sets for _, triples in splits.items()):
        entities[triples[:, 0]] = entities[triples[:, 2]] = relations[triples[:, 1]] = True
    return entities, relations


def _all_known(
    benchmark: Benchmark, kind: str, names: Vocabulary, places: Ids, used: npt.NDArray[np.bool_]
) -> None:
    missing = np.flatnonzero((places < 0) & used)
    if len(missing):
        first = ", ".join(f"`{names[i]}`" for i in missing[:3].tolist())
        more = ", …" if len(missing) > 3 else ""
        raise InputError(
            f"the model does not know {len(missing):,} {kind} of {benchmark.name}: {first}{more}",
            hint="train it with loginfer.pykeen.dataset(path), which has all names of the benchmark",
        )
