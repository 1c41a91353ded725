"""Benchmarks as PyKEEN's data sets: triples with names, by our ids, and the negatives beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from docdata import parse_docdata
from pykeen.datasets import dataset_resolver
from pykeen.datasets.base import Dataset
from pykeen.datasets.inductive.base import InductiveDataset
from pykeen.triples import TriplesFactory

from loginfer.errors import InputError
from loginfer.files import write_text
from loginfer.kg import Triples
from loginfer.pykeen.versions import check_version

if TYPE_CHECKING:  # PyKEEN imports this module for its entry point, and should not have to wait for more
    from loginfer.benchmark.benchmark import Benchmark

# What a cache of PyKEEN's holds of a benchmark: where it is.
_REFERENCE = "loginfer.json"


@dataclass(frozen=True)
class MappedNegatives:
    """The explicit negatives of one method: int64[n, 3] for each split, under PyKEEN's names of splits."""

    training: torch.Tensor
    validation: torch.Tensor
    testing: torch.Tensor


@parse_docdata
class LogInfer(Dataset):
    """A benchmark of LogInfer: its positives as PyKEEN's three factories, its negatives beside them.

    The numbers in the description below are 0, since they are those of the benchmark that is given.

    Parameters
    ----------
    path
        A benchmark's folder, or a `Benchmark`.
    create_inverse_triples
        Whether the training factory has inverse triples, as for any of PyKEEN's data sets.
    verify
        Whether a folder's checksums are checked.

    Attributes
    ----------
    training, validation, testing
        P_train, P_valid and P_test; ids are those of `benchmark.graph`. An empty P_valid is None.
    negatives
        N_train, N_valid and N_test by method, as mapped triples.
    metadata
        The benchmark's name, and what its manifest tells.
    benchmark
        The benchmark itself.

    ---
    name: LogInfer
    statistics:
        entities: 0
        relations: 0
        training: 0
        testing: 0
        validation: 0
        triples: 0
    citation:
        author: Liu
        year: 2023
        arxiv: 2306.04814
    """

    def __init__(
        self, path: str | Path | Benchmark | None = None, *, create_inverse_triples: bool = False, verify: bool = True
    ) -> None:
        check_version()
        if path is None:
            raise InputError("LogInfer needs a benchmark's folder", hint='dataset_kwargs={"path": "FOLDER"}')
        self.source_path = str(path) if isinstance(path, str | Path) else None
        self.verify = verify
        self.benchmark = _loaded(path, verify)
        if self.benchmark.context is not None:
            message = f"{self.benchmark.name} is inductive, and PyKEEN keeps inductive data sets apart"
            raise InputError(message, hint="loginfer.pykeen.dataset(path) makes one")
        sets = [triples for _, triples in self.benchmark.positives.items()]
        self.training, valid, self.testing = triples_factories(
            self.benchmark, *sets, create_inverse_triples=create_inverse_triples
        )
        self.validation = valid if valid.num_triples else None
        self.negatives = negatives_of(self.benchmark)
        self.metadata = facts_of(self.benchmark)

    def iter_extra_repr(self) -> Iterable[str]:
        """Yield what is shown of it."""
        yield f"name={self.benchmark.name!r}"
        yield from super().iter_extra_repr()
        yield f"negatives={list(self.negatives)}"

    # PyKEEN's `get_dataset` keeps a copy of what it has read under the arguments it was read with. A path
    # does not say what is in the folder, so nothing but the path is kept, and the folder is read again.

    def to_directory_binary(self, path: str | Path) -> None:
        """Write down where the benchmark's folder is; without a folder, write all of it as PyKEEN does.

        A benchmark without a folder is not kept among PyKEEN's copies: it would be found again by what it
        looks like in print, and another one may look the same.
        """
        from pykeen.constants import PYKEEN_DATASETS

        if self.source_path is None:
            if PYKEEN_DATASETS not in Path(path).parents:
                super().to_directory_binary(path)
            return
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / _REFERENCE, json.dumps({"path": self.source_path, "verify": self.verify}), force=True)

    @classmethod
    def from_directory_binary(cls, path: str | Path) -> Dataset:
        """Read the benchmark that was written down by `to_directory_binary`."""
        file = Path(path) / _REFERENCE
        if not file.exists():
            return super().from_directory_binary(path)
        reference = json.loads(file.read_text(encoding="utf-8"))
        return cls(reference["path"], verify=reference["verify"])


def dataset(
    benchmark: str | Path | Benchmark, *, create_inverse_triples: bool | None = None
) -> LogInfer | LogInferInductive:
    """Return a benchmark as a data set of PyKEEN.

    Parameters
    ----------
    benchmark
        A benchmark, or its folder.
    create_inverse_triples
        Whether the training factory has inverse triples. As in PyKEEN, by default only an inductive data set
        has them.

    Returns
    -------
    LogInfer or LogInferInductive
        The latter for an inductive benchmark.
    """
    value = _loaded(benchmark)
    if value.context is not None:
        return LogInferInductive(value, create_inverse_triples=create_inverse_triples is not False)
    return LogInfer(value, create_inverse_triples=bool(create_inverse_triples))


def _loaded(benchmark: str | Path | Benchmark, verify: bool = True) -> Benchmark:
    from loginfer.benchmark.benchmark import Benchmark

    return benchmark if isinstance(benchmark, Benchmark) else Benchmark.load(benchmark, verify=verify)


def negatives_of(benchmark: Benchmark) -> dict[str, MappedNegatives]:
    """Return a benchmark's negatives by method."""
    return {
        method: MappedNegatives(*(as_mapped(triples) for _, triples in negatives.splits.items()))
        for method, negatives in benchmark.negatives.items()
    }


def facts_of(benchmark: Benchmark) -> Mapping[str, Any]:
    """Return a benchmark's name and the facts of its manifest."""
    return {**benchmark.manifest, "name": benchmark.name}


# Usually PyKEEN has imported this module for its entry point, and registers the class itself.
if LogInfer not in dataset_resolver.lookup_dict.values():
    dataset_resolver.register(LogInfer)


def as_mapped(triples: Triples) -> torch.Tensor:
    """Return triples as PyKEEN's `mapped_triples`: int64[n, 3]."""
    return torch.from_numpy(np.array(triples, dtype=np.int64).reshape(-1, 3))


def triples_factories(
    benchmark: Benchmark, *triples: Triples, create_inverse_triples: bool = False
) -> list[TriplesFactory]:
    """Return one factory for each set of triples; the first one alone has inverse triples, if any has.

    The id of a constant, type or relation is its index in the vocabularies of `benchmark.graph`; so every
    factory knows every name of the benchmark, whether its triples use it or not.
    """
    entities = {name: i for i, name in enumerate(benchmark.graph.entities)}
    relations = {name: i for i, name in enumerate(benchmark.graph.relations)}
    return [
        TriplesFactory(
            as_mapped(ids),
            entity_to_id=entities,
            relation_to_id=relations,
            create_inverse_triples=create_inverse_triples and i == 0,
            metadata={"name": benchmark.name},
        )
        for i, ids in enumerate(triples)
    ]


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
            hint = "loginfer.pykeen.dataset(path) makes its data set"
            raise InputError(f"{benchmark.name} is not inductive", hint=hint)
        sets, inverse = benchmark.positives, create_inverse_triples
        self.benchmark = benchmark
        self.create_inverse_triples = inverse
        self.transductive_training, self.transductive_validation = triples_factories(
            benchmark, sets.train, sets.valid, create_inverse_triples=inverse
        )
        self.inductive_inference, self.inductive_testing = triples_factories(
            benchmark, benchmark.context.triples, sets.test, create_inverse_triples=inverse
        )
        self.inductive_validation = None
        self.negatives = negatives_of(benchmark)
        self.metadata = facts_of(benchmark)

    def _summary_rows(self) -> list[tuple[str, int, int, int]]:
        """Return what PyKEEN's `summarize` shows, which expects an inductive validation factory."""
        factories = {
            "Transductive Training": self.transductive_training,
            "Transductive Validation": self.transductive_validation,
            "Inductive Inference": self.inductive_inference,
            "Inductive Testing": self.inductive_testing,
        }
        return [(name, f.num_entities, f.num_relations, f.num_triples) for name, f in factories.items()]
