"""Training in files that is killed at any moment, or finds no room: the same bytes, or one message."""

import errno
import gc
import os
import shutil
import subprocess
import sys
import weakref
from dataclasses import replace

import numpy as np
import pytest
from tests.support.embedding_models import Cut, circle
from tests.support.large_training import SMALL, Folder, learned, typed

from loginfer.errors import InputError, OutputError
from loginfer.systems.embedding import large, training
from loginfer.systems.embedding.large import TemporaryFolder, WeightFiles
from loginfer.systems.embedding.transe import TransE
from loginfer.systems.interface import Checkpoint


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Let checkpoints and signs of life come as often as they can, and do not wait for the disk."""
    monkeypatch.setattr(large, "PATIENCE", 0)
    monkeypatch.setattr(large, "sync", lambda path: None)
    monkeypatch.setattr(training, "_BETWEEN", 2)


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("too_early", [False, True])
@pytest.mark.parametrize("keep", ["best", "last"])
def test_a_run_in_files_that_was_killed_and_resumed_gives_the_same_bytes(partitions, too_early, keep, tmp_path):
    system = TransE(**SMALL, partitions=partitions, storage="mapped", keep=keep, workers=2)
    expected, whole_curve = learned(system, typed(), Folder(tmp_path / "whole"))
    curve, checkpoint = [], None
    for pause in (1, 4, 2, 3, 5):
        watch = Folder(tmp_path / "cut", checkpoint, pause, too_early)
        with pytest.raises(Cut.KilledError):
            system.fit(typed(), watch)
        if watch.last is not checkpoint:
            curve, checkpoint = curve + watch.curve[: watch.rows_then], watch.last
            assert "entities" not in checkpoint.arrays
    watch = Folder(tmp_path / "cut", checkpoint)
    found, rest = learned(system, typed(), watch)
    assert (found, curve + rest) == (expected, whole_curve)
    done = Folder(tmp_path / "cut", watch.last)
    assert learned(system, typed(), done)[0] == expected  # nothing was left to do


@pytest.mark.parametrize("partitions", [1, 3])
def test_whichever_checkpoint_is_lost_the_one_before_still_has_all_its_files(partitions, tmp_path, monkeypatch):
    monkeypatch.setattr(training.BestEpoch, "judge", lambda *_: True)
    system = TransE(**SMALL, partitions=partitions, storage="mapped")
    whole = Folder(tmp_path / "whole", stop_after=1000)
    expected = learned(system, typed(), whole)[0]
    for number in range(2, 1000 - whole.left + 1):
        killed = Folder(tmp_path / f"{number}", stop_after=number, too_early=True)
        with pytest.raises(Cut.KilledError):
            system.fit(typed(), killed)
        assert learned(system, typed(), Folder(tmp_path / f"{number}", killed.last))[0] == expected


def test_a_run_in_memory_and_in_parts_that_was_killed_and_resumed_gives_the_same_bytes():
    system = TransE(**SMALL, partitions=3)
    expected = learned(system, typed())[0]
    watch = Cut(stop_after=2)
    with pytest.raises(Cut.KilledError):
        system.fit(typed(), watch)
    assert learned(system, typed(), Cut(watch.last))[0] == expected


def test_files_that_nobody_needs_are_removed(tmp_path):
    watch = Folder(tmp_path)
    system = TransE(**{**SMALL, "epochs": 8}, partitions=3, storage="mapped")
    system.fit(typed(), watch)
    named = {name for names in watch.last.facts["mapped"]["files"] for name in names}
    named |= set(watch.last.facts["mapped"]["best"])
    there = {file.name for file in tmp_path.iterdir()}
    assert named <= there
    assert {name.split("-")[0] for name in there - named} <= {"shelf.json", "result"}


@pytest.mark.parametrize("partitions", [1, 2, 3, 5])
@pytest.mark.parametrize("keep", ["best", "last"])
def test_files_never_need_more_than_was_checked_before(partitions, keep, tmp_path, monkeypatch):
    """Checkpoints and best rows come at moments that have nothing to do with each other."""
    random = np.random.default_rng(partitions)
    monkeypatch.setattr(training.Validation, "judge", lambda *_: random.random())
    needed, used = [], []
    clear, remove = WeightFiles.clear, WeightFiles.remove_all_but

    def clearing(self, count):
        needed.append(count)
        clear(self, count)

    def removing(self, names):
        used.append(sum(file.stat().st_size for file in tmp_path.iterdir() if file.suffix != ".json"))
        remove(self, names)

    monkeypatch.setattr(WeightFiles, "clear", clearing)
    monkeypatch.setattr(WeightFiles, "remove_all_but", removing)
    watch = Folder(tmp_path)
    monkeypatch.setattr(watch, "due", lambda: random.random() < 0.2)
    system = TransE(**{**SMALL, "epochs": 12}, partitions=partitions, storage="mapped", keep=keep)
    weights = system.fit(typed(), watch).arrays()["entities"]
    removing(WeightFiles(tmp_path, {}), ["nothing"])
    # What was learned is written down twice more: beside the run while it is unfinished, and in the run.
    used[-1] += 2 * weights.nbytes
    assert max(used) <= needed[0]


def test_a_temporary_folder_is_removed_with_the_scorer_and_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    system = TransE(**SMALL, storage="mapped", partitions=3)
    scorer = system.fit(circle())
    assert list(tmp_path.iterdir())
    weights = scorer.arrays()["entities"]
    del scorer
    gc.collect()
    assert not list(tmp_path.iterdir())
    assert np.isfinite(weights).all()
    with pytest.raises(Exception, match="training ran away"):
        replace(system, learning_rate=1e39).fit(circle())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("storage", ["memory", "mapped"])
def test_a_scorer_holds_weights_and_nothing_else_of_the_training(storage, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = []

    class Watched(training._Training):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append((weakref.ref(self._store), weakref.ref(self._store.moments)))

    monkeypatch.setattr(training, "_Training", Watched)
    scorer = TransE(**SMALL, storage=storage).fit(circle())
    gc.collect()
    ((store, moments),) = made
    assert scorer is not None
    assert store() is None
    assert moments() is None


@pytest.mark.skipif(os.name != "posix", reason="needs locks that end with their process")
def test_what_a_killed_process_left_among_the_temporary_files_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    script = (
        "import os, tempfile\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "from loginfer.systems.embedding.large import TemporaryFolder\n"
        "folder = TemporaryFolder()\n"
        "(folder.path / 'entities-0.1').write_bytes(bytes(100))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    mine = TemporaryFolder()
    (tmp_path / "loginfer-weights-foreign").mkdir()
    subprocess.run([sys.executable, "-c", script], check=False)
    assert len(list(tmp_path.iterdir())) == 3
    TemporaryFolder().remove()
    assert {path.name for path in tmp_path.iterdir()} == {mine.path.name, "loginfer-weights-foreign"}
    mine.remove()


# -- what there is to complain about ---------------------------------------------------------------


def test_too_little_room_on_the_disk_is_noticed_before_the_start(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OutputError, match=r"weights in files need up to .* has 0 MB left") as error:
        TransE(**SMALL, storage="mapped").fit(circle(), Folder(tmp_path / "run"))
    assert "--set storage=memory" in error.value.hint
    assert not list((tmp_path / "run").iterdir())


def test_a_disk_that_is_full_in_the_middle_is_one_message_and_the_run_goes_on_later(tmp_path, monkeypatch):
    system = TransE(**SMALL, storage="mapped")
    expected = learned(system, typed())[0]

    def full(stream, *_):
        raise OSError(errno.ENOSPC, "No space left on device")

    class Filling(Folder):
        def record(self, row):
            super().record(row)
            monkeypatch.setattr(np, "ascontiguousarray", full)

    watch = Filling(tmp_path)
    with pytest.raises(OutputError, match="no space left on device") as error:
        system.fit(typed(), watch)
    monkeypatch.undo()
    assert "the same command then goes on" in error.value.hint
    named = {name for names in watch.last.facts["mapped"]["files"] for name in names}
    assert named <= {file.name for file in tmp_path.iterdir()}
    assert all(file.stat().st_size for file in tmp_path.iterdir())
    assert learned(system, typed(), Folder(tmp_path, watch.last))[0] == expected


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        TransE(**SMALL, storage="mapped").fit(circle(), Folder(tmp_path / "file" / "weights"))


def test_no_place_for_temporary_files_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(OutputError, match="no folder for weights in") as error:
        TransE(**SMALL, storage="mapped").fit(circle())
    assert "TMPDIR" in error.value.hint


def stopped(folder, system):
    """Return the checkpoint of a run that was killed after its first."""
    watch = Folder(folder, stop_after=1)
    with pytest.raises(Cut.KilledError):
        system.fit(typed(), watch)
    return watch.last


def test_files_of_another_run_are_not_taken_up(tmp_path):
    system = TransE(**SMALL, storage="mapped")
    mine = stopped(tmp_path / "run", system)
    stopped(tmp_path / "run", replace(system, seed=5))
    with pytest.raises(InputError, match="are those of another run") as error:
        system.fit(typed(), Folder(tmp_path / "run", mine))
    assert "to start over" in error.value.hint


def test_files_that_are_missing_or_cut_short_are_noticed(tmp_path):
    system = TransE(**SMALL, storage="mapped", partitions=3)
    mine = stopped(tmp_path / "run", system)
    name = mine.facts["mapped"]["files"][1][1]
    file = tmp_path / "run" / name
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(InputError, match=f"{name}` is missing or damaged"):
        system.fit(typed(), Folder(tmp_path / "run", mine))
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(InputError, match="are not in"):
        system.fit(typed(), Folder(tmp_path / "run", mine))


def test_a_checkpoint_in_files_does_not_go_on_in_memory_nor_the_other_way(tmp_path):
    system = TransE(**SMALL, storage="mapped")
    mine = stopped(tmp_path, system)
    with pytest.raises(InputError, match="in files, not in memory"):
        replace(system, storage="memory").fit(typed(), Cut(mine))
    watch = Cut(stop_after=1)
    with pytest.raises(Cut.KilledError):
        replace(system, storage="memory").fit(typed(), watch)
    with pytest.raises(InputError, match="in memory, not in files"):
        system.fit(typed(), Folder(tmp_path, Checkpoint(watch.last.arrays, watch.last.facts)))
