"""A run that stopped goes on where it was, and ends with the same bytes as one that did not."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest
from tests.support.made_up_benchmarks import family
from tests.support.run_systems import Learner, Plain

from loginfer.errors import InputError, OutputError
from loginfer.evaluation import MetricOptions, load_run
from loginfer.evaluation.evaluating import wrap_system
from loginfer.evaluation.resuming import RunMonitor, UnfinishedRun, dump_arrays, open_unfinished_run, read_arrays
from loginfer.evaluation.runs import run_system
from loginfer.files import beside, locked
from loginfer.systems.interface import Checkpoint

BENCHMARK = family()


class Stop(KeyboardInterrupt):
    """What stops a run in these tests: like a signal, nobody catches it."""


def write_arrays(path, arrays, facts=None):
    with path.open("wb") as stream:
        dump_arrays(stream, arrays, facts)


def run(path, system=None, **options):
    ready = wrap_system(system or Learner(), name="learner")
    wanted = options.pop("wanted", MetricOptions())
    return run_system(ready, BENCHMARK, "pa", wanted, path, checkpoint_seconds=0, **options)


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "timing.json"}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    place = tmp_path_factory.mktemp("undisturbed") / "run"
    run(place)
    return content(place)


def stop_at(monkeypatch, owner, name, *, after: int = 0, before: bool = False):
    """Let the program stop in a method, at its call number `after`; before it does its work, or after."""
    original, calls = getattr(owner, name), []

    def stopping(*args, **kwargs):
        calls.append(name)
        if before and len(calls) > after:
            raise Stop
        done = original(*args, **kwargs)
        if len(calls) > after:
            raise Stop
        return done

    monkeypatch.setattr(owner, name, stopping)


# Where a run may stop: (class or module, function, after how many calls, before or after its work).
MOMENTS = [
    (UnfinishedRun, "keep_checkpoint", 0, True),
    (UnfinishedRun, "keep_checkpoint", 0, False),
    (UnfinishedRun, "keep_checkpoint", 7, False),
    (UnfinishedRun, "keep_checkpoint", 19, False),
    (UnfinishedRun, "keep_trained", 0, True),
    (UnfinishedRun, "keep_trained", 0, False),
    (UnfinishedRun, "keep_predictions", 0, True),
    (UnfinishedRun, "keep_predictions", 0, False),
    (UnfinishedRun, "keep_ranks", 0, True),
    (UnfinishedRun, "keep_ranks", 0, False),
    ("loginfer.evaluation.evaluating", "measure", 0, True),
    ("loginfer.evaluation.runs", "write_run", 0, True),
]


@pytest.mark.parametrize(("owner", "name", "after", "before"), MOMENTS)
def test_a_run_stopped_at_any_step_ends_with_the_same_bytes(
    tmp_path, monkeypatch, expected, owner, name, after, before
):
    import importlib

    told = []
    with monkeypatch.context() as patch:
        stop_at(patch, importlib.import_module(owner) if isinstance(owner, str) else owner, name,
                after=after, before=before)  # fmt: skip
        with pytest.raises(Stop):
            run(tmp_path / "run")
    assert not (tmp_path / "run").exists()
    nothing_kept = name == "keep_checkpoint" and before
    assert (tmp_path / ".run.loginfer-run").exists() is not nothing_kept
    if not nothing_kept:
        with pytest.raises(InputError, match="is not finished"):
            load_run(tmp_path / "run")
    run(tmp_path / "run", tell=told.append)
    assert content(tmp_path / "run") == expected
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert told == ([] if nothing_kept else [f"going on with the unfinished run for {tmp_path / 'run'}"])


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, UnfinishedRun, "keep_ranks")
        with pytest.raises(Stop):
            run(tmp_path / "run")

    def never(self, benchmark, watch=None):
        raise AssertionError("done again")

    for name in ("fit", "restore"):
        monkeypatch.setattr(Learner, name, never)
    monkeypatch.setattr("loginfer.evaluation.ranking.rank", never)
    run(tmp_path / "run")
    assert (tmp_path / "run" / "weights.safetensors").exists()
    assert len(load_run(tmp_path / "run").curve()) == 20


def test_a_run_stopped_again_and_again_arrives(tmp_path, monkeypatch, expected):
    stops = 0
    for after in (2, 0, 5, 3, 0):
        with monkeypatch.context() as patch:
            stop_at(patch, UnfinishedRun, "keep_checkpoint", after=after)
            with pytest.raises(Stop):
                run(tmp_path / "run")
            stops += 1
    run(tmp_path / "run")
    assert stops == 5
    assert content(tmp_path / "run") == expected


def test_what_a_scorer_without_weights_said_is_kept_together_or_not_at_all(tmp_path, monkeypatch):
    # `Plain` says something else each time: predictions of one and ranks of another must not meet.
    for owner, name in ((UnfinishedRun, "keep_ranks"), (UnfinishedRun, "keep_predictions")):
        place = tmp_path / name
        with monkeypatch.context() as patch:
            stop_at(patch, owner, name)
            with pytest.raises(Stop):
                run(place, Plain())
        fitted = Plain.fitted
        made = run(place, Plain())
        again = Plain.fitted - fitted
        assert again == (1 if name == "keep_ranks" else 0)
        given = [found for found in made.outcome.ranks if found.protocol == "given"]
        from loginfer.evaluation.ranking import rank

        predictions = made.outcome.predictions
        for mine, other in zip(given, rank(None, BENCHMARK, ranking=("given",), predictions=predictions), strict=True):
            assert np.array_equal(mine.above, other.above)


def test_another_request_at_the_same_place_is_refused_and_says_what_differs(tmp_path, monkeypatch, expected):
    with monkeypatch.context() as patch:
        stop_at(patch, UnfinishedRun, "keep_checkpoint", after=3)
        with pytest.raises(Stop):
            run(tmp_path / "run")
    with pytest.raises(OutputError, match=r"`settings\.steps` was 20, now 21; `seed` was 0, now 4") as error:
        run(tmp_path / "run", Learner(steps=21, seed=4))
    assert "--force" in str(error.value)
    assert (tmp_path / ".run.loginfer-run" / "checkpoint.safetensors").exists()
    told = []
    run(tmp_path / "run", Learner(steps=21, seed=4), force=True, tell=told.append)
    assert told == []
    run(tmp_path / "run", force=True)
    assert content(tmp_path / "run") == expected


def test_another_threshold_is_no_other_request(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, UnfinishedRun, "keep_trained")
        with pytest.raises(Stop):
            run(tmp_path / "run")
    made = run(tmp_path / "run", wanted=MetricOptions(threshold=0.25))
    assert made.measures.thresholds.value == 0.25


def test_with_force_an_unfinished_run_goes_on_and_the_old_one_stays_until_it_is_done(tmp_path, monkeypatch, expected):
    run(tmp_path / "run", Learner(seed=9))
    old = content(tmp_path / "run")
    with monkeypatch.context() as patch:
        stop_at(patch, UnfinishedRun, "keep_checkpoint", after=3)
        with pytest.raises(Stop):
            run(tmp_path / "run", force=True)
    assert content(tmp_path / "run") == old
    told = []
    run(tmp_path / "run", force=True, tell=told.append)
    assert len(told) == 1
    assert content(tmp_path / "run") == expected


def test_what_is_left_beside_a_finished_run_is_cleared_away(tmp_path, monkeypatch, expected):
    with monkeypatch.context() as patch:
        # The run is in its place, and the process dies before it has tidied up.
        stop_at(patch, __import__("loginfer.evaluation.runs", fromlist=["x"]), "write_run")
        with pytest.raises(Stop):
            run(tmp_path / "run")
    assert content(tmp_path / "run") == expected
    assert beside(tmp_path / "run", "run").exists()
    with pytest.raises(OutputError, match="exists already"):
        run(tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_two_programs_do_not_work_on_the_same_run(tmp_path):
    with locked(tmp_path / "run", "run-lock"), pytest.raises(OutputError, match="another run"):
        run(tmp_path / "run")
    run(tmp_path / "run")


@pytest.mark.parametrize("when", ["checkpoint", "trained", "predictions", "the end"])
def test_a_full_disk_is_one_clear_message_and_loses_nothing(tmp_path, monkeypatch, expected, when):
    names = {
        "checkpoint": ("loginfer.evaluation.resuming.dump_arrays", 4),
        "trained": ("loginfer.evaluation.resuming.dump_arrays", 20),
        "predictions": ("loginfer.evaluation.resuming.write_predictions", 0),
        "the end": ("loginfer.evaluation.runs.write_predictions", 0),
    }
    target, after = names[when]
    owner, name = target.rsplit(".", 1)
    module = __import__(owner, fromlist=["x"])
    original, calls = getattr(module, name), []

    def full(*args, **kwargs):
        calls.append(1)
        if len(calls) > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, full)
        with pytest.raises(OutputError, match="no space left on device"):
            run(tmp_path / "run")
    assert not (tmp_path / "run").exists()
    told = []
    run(tmp_path / "run", tell=told.append)
    assert len(told) == 1
    assert content(tmp_path / "run") == expected


def test_a_damaged_checkpoint_is_told_with_what_to_do(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, UnfinishedRun, "keep_checkpoint", after=3)
        with pytest.raises(Stop):
            run(tmp_path / "run")
    kept = tmp_path / ".run.loginfer-run" / "checkpoint.safetensors"
    kept.write_bytes(kept.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"is damaged.*\n.*remove the folder"):
        run(tmp_path / "run")
    write_arrays(kept, {"a": np.zeros(1)})
    with pytest.raises(InputError, match="no learning curve"):
        run(tmp_path / "run")


def test_a_folder_that_was_killed_before_it_knew_its_request_is_started_again(tmp_path, expected):
    (tmp_path / ".run.loginfer-run").mkdir()
    (tmp_path / ".run.loginfer-run" / ".request.json.x.part").write_text("{")
    run(tmp_path / "run")
    assert content(tmp_path / "run") == expected
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


# -- the parts ----------------------------------------------------------------------------------------


def test_arrays_and_facts_come_back_as_they_were(tmp_path):
    arrays = {
        "b": np.arange(6, dtype=np.int64).reshape(2, 3)[:, ::-1],
        "a": np.array([0.1, -0.0, np.inf], dtype=np.float32),
        "empty": np.empty((0, 4), dtype=np.float64),
    }
    facts = {"step": 3, "loss": 0.1 + 0.2, "word": "é", "none": None}
    write_arrays(tmp_path / "one", arrays, facts)
    write_arrays(tmp_path / "two", dict(reversed(arrays.items())), facts)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    found, told = read_arrays(tmp_path / "one")
    assert told == facts
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
    found["a"][0] = 1  # who goes on may change it


def test_a_checkpoint_is_due_only_now_and_then_and_only_where_it_can_be_kept(tmp_path):
    with open_unfinished_run(tmp_path / "run", {"x": 1}) as work:
        assert RunMonitor(work, seconds=0).due()
        assert not RunMonitor(work, seconds=1000).due()
        assert not RunMonitor(UnfinishedRun(), seconds=0).due()


def test_the_learning_curve_goes_on_from_the_checkpoint(tmp_path):
    with open_unfinished_run(tmp_path / "run", {"x": 1}) as work:
        watch = RunMonitor(work)
        assert watch.restore() is None
        watch.record({"epoch": np.int64(1), "loss": np.float32(0.5), "bad": float("nan")})
        watch.save(Checkpoint({"w": np.ones(2)}, {"epoch": 1}))
        watch.record({"epoch": 2, "loss": 9.0})
        later = RunMonitor(work)
        found = later.restore()
        assert (found.facts, found.arrays["w"].tolist()) == ({"epoch": 1}, [1.0, 1.0])
        assert later.curve == [{"epoch": 1, "loss": 0.5, "bad": None}]
        assert json.dumps(later.curve)


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(Learner, "fit", lambda *args: pytest.fail("worked in vain"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="is no folder"):
        run(tmp_path / "file" / "run")
    with pytest.raises(OutputError, match="exists already"):
        run(Path(tmp_path))
