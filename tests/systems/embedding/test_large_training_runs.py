"""Runs whose weights are in files: killed by the system, resumed, written down, read back without copies."""

import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load, save
from tests.support.embedding_models import circle

from loginfer.errors import InputError
from loginfer.evaluation import MetricOptions, load_run
from loginfer.evaluation import resuming as array_files
from loginfer.evaluation.evaluating import wrap_system
from loginfer.evaluation.resuming import UnfinishedRun, dump_arrays, read_arrays
from loginfer.evaluation.runs import run_system
from loginfer.files import beside
from loginfer.systems.embedding.transe import TransE

SYSTEM = {"dimension": 8, "epochs": 4, "batch": 16, "partitions": 3}


def write_arrays(path, arrays, facts=None):
    with path.open("wb") as stream:
        dump_arrays(stream, arrays, facts)


def run(path, **settings):
    ready = wrap_system(TransE(**SYSTEM, **settings), name="transe")
    run_system(ready, circle(), "pa", MetricOptions(protocols=("given",)), path, checkpoint_seconds=0)


def content(path):
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != "timing.json"}


def test_a_run_in_files_has_the_bytes_of_one_in_memory_but_for_its_settings(tmp_path):
    run(tmp_path / "memory", storage="memory")
    run(tmp_path / "mapped", storage="mapped", workers=2)
    memory, mapped = content(tmp_path / "memory"), content(tmp_path / "mapped")
    assert memory.pop("manifest.json") != mapped.pop("manifest.json")
    assert memory == mapped
    assert not beside(tmp_path / "mapped", "run").exists()


def test_files_for_learning_are_gone_before_what_was_learned_is_asked(tmp_path, monkeypatch):
    seen, keep = [], UnfinishedRun.keep_predictions

    def keeping(self, *arguments):
        seen.append(self.large.exists())
        keep(self, *arguments)

    monkeypatch.setattr(UnfinishedRun, "keep_predictions", keeping)
    run(tmp_path / "run", storage="mapped")
    assert seen == [False]


KILLED = """
import sys, time
sys.path[:0] = {path!r}
from pathlib import Path
from tests.systems.embedding.test_large_training_runs import run
from loginfer.evaluation.resuming import UnfinishedRun
from loginfer.systems.embedding import large
large.PATIENCE = 0
keep, kept = UnfinishedRun.keep_checkpoint, []

def keeping(self, *arguments):
    keep(self, *arguments)
    kept.append(1)
    if len(kept) == 3:
        (self.folder.parent / "now").touch()
        time.sleep(60)

UnfinishedRun.keep_checkpoint = keeping
run(Path(sys.argv[1]), storage="mapped")
"""


def test_a_run_in_files_that_the_system_killed_goes_on_to_the_same_bytes(tmp_path):
    run(tmp_path / "whole", storage="mapped")
    script = KILLED.format(path=[p for p in sys.path if p])
    child = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "run")])
    try:
        for _ in range(1200):
            if (tmp_path / "now").exists() or child.poll() is not None:
                break
            time.sleep(0.1)
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
    finally:
        child.kill()
        child.wait()
    left = beside(tmp_path / "run", "run")
    assert (left / "checkpoint.safetensors").stat().st_size < 5000
    assert list((left / "weights").glob("entities-*"))
    run(tmp_path / "run", storage="mapped")
    assert content(tmp_path / "run") == content(tmp_path / "whole")
    assert not left.exists()


# -- weights in one file ---------------------------------------------------------------------------


def arrays():
    random = np.random.default_rng(0)
    return {
        "relations": random.normal(size=(3, 5)).astype(np.float32),
        "entities": random.normal(size=(40, 7)).astype(np.float32),
        "nothing": np.zeros((0, 4), dtype=np.float32),
    }


@pytest.mark.parametrize("facts", [None, {"curve": [], "name": 'a "name", ünïcode'}])
def test_large_files_have_the_bytes_that_safetensors_gives_them(facts, monkeypatch):
    expected = io.BytesIO()
    dump_arrays(expected, arrays(), facts)
    monkeypatch.setattr(array_files, "LARGE", 0)
    found = io.BytesIO()
    dump_arrays(found, arrays(), facts)
    assert found.getvalue() == expected.getvalue()
    assert {name: a.tobytes() for name, a in load(found.getvalue()).items()} == {
        name: a.tobytes() for name, a in arrays().items()
    }


def test_large_files_are_mapped_when_they_are_read_and_never_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(array_files, "LARGE", 0)
    path = tmp_path / "some.safetensors"
    mixed = {**arrays(), "ids": np.arange(5, dtype=np.int64), "flags": np.array([True, False])}
    write_arrays(path, mixed, {"curve": [1]})
    before = path.read_bytes()
    found, facts = read_arrays(path)
    assert facts == {"curve": [1]}
    for name, array in mixed.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
    found["entities"][:] = 1
    assert path.read_bytes() == before


def test_a_large_file_that_is_cut_short_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(array_files, "LARGE", 0)
    path = tmp_path / "some.safetensors"
    for content in (save(arrays())[:-8], b"", b"\xff" * 100):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is damaged"):
            read_arrays(path)


def test_a_scorer_comes_back_from_a_large_file(tmp_path, monkeypatch):
    run(tmp_path / "run", storage="mapped")
    known = circle()
    loaded = load_run(tmp_path / "run")
    expected = loaded.scorer(known).score(known.positives.train)
    monkeypatch.setattr(array_files, "LARGE", 0)
    scorer = loaded.scorer(known)
    assert np.array_equal(scorer.score(known.positives.train), expected)
