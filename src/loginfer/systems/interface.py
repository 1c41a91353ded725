"""What a system is: it is fitted to a benchmark, and the scorer that comes out gives triples confidences.

Two methods are all that anybody's own system needs. What else a built-in one can do — score every candidate
of a query at once, keep its weights, go on where a killed run stopped — is a small protocol of its own, and
whoever wants it asks whether it is there. Below the protocols: what a system gets to see of a benchmark, and
which systems can score constants that they have not seen while learning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark, NegativeSet, Splits
from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import Triples
from loginfer.logic.rule import ScoredRule, ZeroRule
from loginfer.systems.registry import systems

Scores: TypeAlias = npt.NDArray[np.floating[Any]]
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

# The columns of a triple.
Position = Literal["subject", "relation", "object"]
POSITIONS: tuple[Position, ...] = ("subject", "relation", "object")


class Scorer(Protocol):
    """What a fitted system gives."""

    def score(self, triples: Triples) -> Scores:
        """Return float[n], one confidence a triple of int32[n, 3]; higher means more likely."""


class System(Protocol):
    """What can be fitted to a benchmark.

    The benchmark that `fit` gets holds P_train and P_valid and one method's N_train and N_valid; test
    triples, rules and provenance are left out, so that no system can look at them by mistake. A class that
    sets `sees_everything = True` gets the whole benchmark: the oracle, which must know the rules.

    Of an inductive benchmark, `benchmark.context` is the context graph: all that is known about the constants
    of test, none of which is in P_train. Learn from `benchmark.graph`, and let the scorer look into
    `benchmark.seen`, which holds both.
    """

    def fit(self, benchmark: Benchmark) -> Scorer:
        """Learn from a benchmark."""


@runtime_checkable
class CandidateScorer(Protocol):
    """A scorer that scores all candidates for one position of a triple at once."""

    def score_candidates(self, triples: Triples, position: Position, candidates: npt.NDArray[np.int32]) -> Scores:
        """Return float[n, c]: the scores of each triple with each candidate in that position.

        Equal candidates of equal triples get equal scores, bit by bit, whatever the blocks asked for: ranks
        are counted by comparing these numbers with one another.
        """


@runtime_checkable
class StoredScorer(Protocol):
    """A scorer that can be written down; its class gives it back (`System.restore(benchmark, arrays)`)."""

    def arrays(self) -> Arrays:
        """Return its weights by name, to be kept as safetensors."""


class FiringRule(NamedTuple):
    """A rule that predicts a triple.

    Parameters
    ----------
    rule
        The rule.
    confidence
        What it is worth where it is applied; of `contrast` its weight.
    distinct
        Whether its variables stand for different entities, which differ from its constants too.
    """

    rule: ScoredRule | ZeroRule
    confidence: float
    distinct: bool = False


@runtime_checkable
class RuleExplainer(Protocol):
    """A scorer that has rules, and says which of them predict a triple.

    No rule predicts a triple whose score is `never`.
    """

    never: float

    def explain(self, triple: Sequence[int]) -> list[FiringRule]:
        """Return all rules that predict a triple of ids, best first."""


# -- learning that can be watched and resumed -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a system between two steps, enough to go on as if nothing had happened.

    Parameters
    ----------
    arrays
        Weights, moments, whatever is large.
    facts
        The rest, as JSON values: which epoch is next, the best figure so far.
    """

    arrays: Arrays
    facts: Mapping[str, Any] = field(default_factory=dict)


class Watch(Protocol):
    """Who watches a system learn: shows progress, writes the learning curve, keeps checkpoints."""

    def restore(self) -> Checkpoint | None:
        """Return the last checkpoint of a run that was killed; None at the start of a new one."""

    def due(self) -> bool:
        """Say whether a checkpoint is worth its time now."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint, and with it the learning curve up to here."""

    def record(self, row: Mapping[str, float | int]) -> None:
        """Add a row to the learning curve, e.g. epoch, loss and accuracy on valid; no times."""

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Show how far the work is."""


@runtime_checkable
class FolderWatch(Protocol):
    """A watch with a folder for what is too large for a checkpoint; it stays while the run is unfinished."""

    def folder(self) -> Path | None:
        """Return the folder, which may not be there yet; None if there is none."""


class Unwatched:
    """Nobody watches: nothing is shown, nothing is kept but the learning curve."""

    def __init__(self) -> None:
        self.curve: list[dict[str, float | int]] = []

    def restore(self) -> Checkpoint | None:
        """Return nothing: every run is a new one."""
        return None

    def due(self) -> bool:
        """Never ask for a checkpoint."""
        return False

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep nothing."""

    def record(self, row: Mapping[str, float | int]) -> None:
        """Keep the learning curve."""
        self.curve.append(dict(row))

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Show nothing."""


@runtime_checkable
class WatchedSystem(Protocol):
    """A system whose learning can be watched and resumed.

    A run that was killed and resumed any number of times ends with the same bytes as one that was not.
    """

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> StoredScorer:
        """Learn from a benchmark, starting from the watch's last checkpoint if it has one."""

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> StoredScorer:
        """Return the scorer whose `arrays()` these are."""


# -- what a system sees -----------------------------------------------------------------------------


def choose_method(benchmark: Benchmark, method: str | None) -> str | None:
    """Return whose negatives a system is trained and tested with; None if the benchmark has none.

    Raises
    ------
    InputError
        If there are several and none was chosen.
    """
    methods = tuple(benchmark.negatives)
    if method is not None and not methods:
        raise InputError(f"{benchmark.name} has no negatives", where="--negatives", hint="leave it out")
    if method is not None:
        # Names may be given in any case; an exact match comes first.
        spelt = sorted(methods, key=lambda name: name != method)
        match = next((name for name in spelt if name.casefold() == str(method).casefold()), None)
        if match is None:
            raise UnknownNameError(f"negatives of {benchmark.name}", str(method), methods, where="--negatives")
        return match
    if len(methods) > 1:
        raise InputError(
            f"{benchmark.name} has negatives by {', '.join(methods)}", hint=f"choose, e.g. --negatives {methods[0]}"
        )
    return methods[0] if methods else None


def only_negatives(benchmark: Benchmark, method: str | None) -> dict[str, NegativeSet]:
    """Return the negatives of one method by name; nothing for None."""
    return {} if method is None else {method: benchmark.negatives[method]}


def training_view(benchmark: Benchmark, method: str | None) -> Benchmark:
    """Return what may be seen while learning: train and valid, one method's negatives, no rules.

    Vocabularies stay whole: which constants and relations there are is known beforehand. So does the context
    graph of an inductive benchmark, which is what is known about test's constants.
    """
    sets = only_negatives(benchmark, method).items()
    negatives = {name: NegativeSet(name, _without_test(negative_set.splits)) for name, negative_set in sets}
    positives = _without_test(benchmark.positives)
    return Benchmark(benchmark.name, benchmark.graph, positives, negatives, context=benchmark.context)


def with_own_arrays(benchmark: Benchmark) -> Benchmark:
    """Return a benchmark with copies of its arrays: whoever gets it may hold them as tensors, and change them."""
    graphs = [graph for graph in (benchmark.graph, benchmark.context) if graph is not None]
    if not all(graph.in_memory for graph in graphs):
        return benchmark
    for graph in graphs:
        for name in ("preds", "rels", "types", "consts"):
            getattr(graph, name)  # computed at the first use, and copied only then
    # Names are never handed out as arrays.
    names = [vocabulary for graph in graphs for vocabulary in (graph.entities, graph.relations)]
    return deepcopy(benchmark, {id(vocabulary): vocabulary for vocabulary in names})


def _without_test(splits: Splits) -> Splits:
    nothing: Triples = np.empty((0, 3), dtype=np.int32)
    return Splits(splits.train, splits.valid, nothing)


def able_systems() -> list[str]:
    """Return the names of the built-in systems that can be evaluated on inductive benchmarks."""
    vectors = ("embedding", "graph neural network")  # kinds that learn something about each constant
    return [entry.name for entry in systems() if entry.kind not in (*vectors, "plug-in")]


def refuse_unseen(benchmark: Benchmark, name: str) -> None:
    """Complain if a benchmark is inductive and the system learns a vector for each constant.

    Parameters
    ----------
    benchmark
        The benchmark.
    name
        The system, as users know it.
    """
    if benchmark.context is None:
        return
    raise InputError(
        f"{name} learns a vector for each constant, and {benchmark.name} is inductive: none of its test "
        "constants is in train",
        hint=f"systems that can: {', '.join(able_systems())}, and your own (see `benchmark.context`)",
    )
