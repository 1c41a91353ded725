"""Inductive benchmarks as PyKEEN's inductive data sets."""

from __future__ import annotations

from pykeen.datasets.inductive.base import InductiveDataset

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError
from loginfer.pykeen.datasets import facts_of, negatives_of
from loginfer.pykeen.factories import triples_factories
from loginfer.pykeen.versions import check_version

__all__ = ["LogInferInductive"]


class LogInferInductive(InductiveDataset):
    """An inductive benchmark: P_train, the context graph and P_test as PyKEEN's factories.

    All factories share the ids of `benchmark.graph`, so each of them knows the constants of both sides, and
    has triples about its own.

    Parameters
    ----------
    benchmark
        An inductive benchmark.
    create_inverse_triples
        Whether P_train and the context graph have inverse triples.

    Attributes
    ----------
    transductive_training, inductive_inference, inductive_testing
        P_train, the context graph and P_test.
    transductive_validation
        P_valid, which is about the constants of P_train. PyKEEN expects the constants of the context graph of
        `inductive_validation`, which is therefore None.
    negatives, metadata, benchmark
        As of `LogInfer`.
    """

    def __init__(self, benchmark: Benchmark, *, create_inverse_triples: bool = True) -> None:
        check_version()
        if benchmark.context is None:
            raise InputError(
                f"{benchmark.name} is not inductive", hint="loginfer.pykeen.dataset(path) makes its data set"
            )
        sets, inverse = benchmark.positives, create_inverse_triples
        self.benchmark = benchmark
        self.create_inverse_triples = inverse
        train, valid = triples_factories(benchmark, sets.train, sets.valid, create_inverse_triples=inverse)
        context, test = triples_factories(
            benchmark, benchmark.context.triples, sets.test, create_inverse_triples=inverse
        )
        self.transductive_training, self.transductive_validation = train, valid
        self.inductive_inference, self.inductive_testing = context, test
        self.inductive_validation = None
        self.negatives = negatives_of(benchmark)
        self.metadata = facts_of(benchmark)

    def _summary_rows(self) -> list[tuple[str, int, int, int]]:
        """Return what PyKEEN's `summarize` shows, which expects an inductive validation factory."""
        shown = {
            "Transductive Training": self.transductive_training,
            "Transductive Validation": self.transductive_validation,
            "Inductive Inference": self.inductive_inference,
            "Inductive Testing": self.inductive_testing,
        }
        return [
            (label, factory.num_entities, factory.num_relations, factory.num_triples)
            for label, factory in shown.items()
        ]
