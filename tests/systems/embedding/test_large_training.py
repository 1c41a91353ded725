"""Training of many entities: in files, in parts, by several workers; the same bytes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.support.embedding_models import MODELS, benchmark, circle
from tests.support.large_training import SMALL, learned, typed

from loginfer.systems.embedding import large, steps, training
from loginfer.systems.embedding.large import Partition
from loginfer.systems.embedding.rotate import RotatE
from loginfer.systems.embedding.transe import TransE
from loginfer.systems.interface import Unwatched


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Let checkpoints and signs of life come as often as they can, and do not wait for the disk."""
    monkeypatch.setattr(large, "PATIENCE", 0)
    monkeypatch.setattr(large, "sync", lambda path: None)
    monkeypatch.setattr(training, "_BETWEEN", 2)


# -- workers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "more",
    [
        {"negatives": 5},
        {"loss": "1vsall", "dropout": 0.2, "optimiser": "adagrad"},
        pytest.param({"mode": "explicit"}, marks=pytest.mark.slow),
        pytest.param({"mode": "random", "negatives": 600}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_number_of_workers_makes_no_difference(name, more):
    for known in (circle(), typed()):
        system = MODELS[name](**SMALL, relation_weight=0.2, **more)
        alone = learned(system, known)
        for workers in (2, 3):
            assert learned(replace(system, workers=workers), known) == alone


@pytest.mark.parametrize("name", ["TransE", "RotatE"])
def test_the_number_of_workers_makes_no_difference_to_euclidean_distances(name):
    system = MODELS[name](**SMALL, norm=2)
    assert learned(replace(system, workers=2), typed()) == learned(system, typed())


def test_more_workers_than_positives_in_a_batch_do_no_harm():
    system = TransE(dimension=4, epochs=1, batch=2)
    assert learned(replace(system, workers=5), circle(12)) == learned(system, circle(12))


@pytest.mark.parametrize("failing", ["make_queries", "backward_tiles", "update_entities"])
def test_an_error_in_one_worker_ends_the_others(failing, monkeypatch):
    calls = []

    def fail(*arguments):
        calls.append(failing)
        if len(calls) == 3:
            raise MemoryError("too much")

    kernels = vars(steps.training_kernels(TransE().functions))
    monkeypatch.setattr(steps, "training_kernels", lambda _: SimpleNamespace(**{**kernels, failing: fail}))
    with pytest.raises(MemoryError, match="too much"):
        TransE(**SMALL, workers=2).fit(circle())


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("can't start new thread")])
def test_whatever_happens_while_workers_are_started_nobody_waits_for_ever(error, monkeypatch):
    class Interrupted(steps.ThreadPoolExecutor):
        started = 0

        def submit(self, *arguments):
            self.started += 1
            if self.started == 2:
                raise error
            return super().submit(*arguments)

    monkeypatch.setattr(steps, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        TransE(**SMALL, workers=2).fit(circle())


# -- files and parts -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("partitions", [1, 3])
def test_where_weights_are_kept_makes_no_difference(name, partitions):
    system = MODELS[name](**SMALL, partitions=partitions)
    assert learned(replace(system, storage="mapped"), typed()) == learned(system, typed())


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("keep", ["best", "last"])
def test_memory_files_and_workers_agree_for_any_number_of_parts(partitions, keep):
    system = TransE(**SMALL, partitions=partitions, keep=keep, storage="memory")
    expected = learned(system, typed())
    assert learned(replace(system, storage="mapped"), typed()) == expected
    assert learned(replace(system, storage="mapped", workers=2), typed()) == expected


@pytest.mark.parametrize("mode", ["random", "both"])
def test_inversions_are_learned_in_parts(mode):
    watch = Unwatched()
    system = RotatE(dimension=32, epochs=60, batch=64, learning_rate=0.05, mode=mode, partitions=4, storage="mapped")
    system.fit(circle(200), watch)
    assert max(row["valid_accuracy"] for row in watch.curve) > (0.8 if mode == "random" else 0.9)


def test_without_valid_the_last_epoch_is_taken_from_files():
    whole = circle()
    known = benchmark(whole.graph.triples, whole.negatives["pa"].splits.train, entities=60, relations=2)
    system = TransE(**SMALL, partitions=3)
    assert learned(replace(system, storage="mapped"), known) == learned(system, known)


def test_more_parts_than_entities_are_as_many_as_there_are():
    known = benchmark(np.array([[0, 0, 1], [1, 0, 2]], np.int32), entities=3, relations=1)
    system = TransE(dimension=4, epochs=2, mode="random", partitions=9)
    assert learned(replace(system, storage="mapped"), known) == learned(system, known)


def test_small_graphs_stay_whole_and_in_memory(monkeypatch):
    monkeypatch.setattr(large, "open_store", None)
    TransE(**SMALL).fit(circle())
    assert Partition.of(TransE(), 100_000).parts == 1


def test_large_weights_go_to_files_of_their_own_accord(monkeypatch):
    monkeypatch.setattr(training, "MAPPED_FROM", 1000)
    monkeypatch.setattr(training, "MemoryStore", None)
    assert isinstance(TransE(**SMALL).fit(circle()).arrays()["entities"].base, np.memmap)


@pytest.mark.parametrize(
    ("system", "parts"), [(TransE(dimension=100), 1), (TransE(dimension=200), 3), (RotatE(dimension=200), 6)]
)
def test_weights_of_five_million_entities_are_split_so_that_two_parts_fit_into_8_gb(system, parts):
    split = Partition.of(system, 5_000_000)
    assert split.parts == parts
    assert split.rows_in_memory * 12 * system.entity_width <= 8 * 2**30
