"""PyKEEN for the tests of the bridge; without it they are skipped."""

import gc
import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecations in what PyKEEN imports
    pytest.importorskip("torch")
    pytest.importorskip("pykeen.pipeline")


@pytest.fixture(autouse=True)
def _home(tmp_path_factory, monkeypatch):
    """Let PyKEEN keep its copies of data sets in a folder of the test's own."""
    import pykeen.constants
    import pykeen.datasets.utils

    home = tmp_path_factory.mktemp("pykeen")
    for module in (pykeen.constants, pykeen.datasets.utils):
        monkeypatch.setattr(module, "PYKEEN_DATASETS", home)


@pytest.fixture(autouse=True)
def _frozen():
    """Keep what is there out of the garbage collection after each epoch, which takes most of the time."""
    gc.freeze()
    yield
    gc.unfreeze()
