"""What PyKEEN's code finds around it while it trains: its own randomness, threads, and quiet."""

from __future__ import annotations

import gc
import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from loginfer.benchmark.randomness import salt
from loginfer.errors import InputError

__all__ = ["device_of", "seed_torch", "surroundings"]


@contextmanager
def surroundings(threads: int) -> Iterator[str]:
    """Give a folder for files that PyKEEN wants to write; leave torch's seed and threads as they were."""
    before, logger = torch.get_num_threads(), logging.getLogger("pykeen")
    level = logger.level
    with torch.random.fork_rng(), warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # Warnings about arguments and tensors that PyKEEN's own code hands on.
        warnings.filterwarnings("ignore", "Training instances are always shuffled", DeprecationWarning)
        warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled", UserWarning)
        logger.setLevel(logging.ERROR)
        torch.set_num_threads(threads)
        # PyKEEN collects garbage after each epoch; what is here already need not be looked through again.
        gc.freeze()
        try:
            yield folder
        finally:
            gc.unfreeze()
            torch.set_num_threads(before)
            logger.setLevel(level)


def seed_torch(seed: int, *what: str | int) -> None:
    """Seed torch for one purpose."""
    torch.manual_seed(int(salt(seed, "pykeen", *what)) >> 1)


def device_of(wanted: str) -> torch.device:
    """Return the device that a setting means."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no CUDA device", where="--set device", hint="--set device=cpu")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")
