"""Running a plan: cell by cell, resumable, whatever fails."""

import json
import shutil
import threading

import pytest
from tests.support.small_reproduction import InProcess, tiny_suite

from loginfer.errors import InputError, OutputError
from loginfer.reproduction import Folder, plan, run
from loginfer.reproduction.running import failure

BENCHMARKS = ["WN-sym-pa", "WN-inver-pa"]


def small_plan(**options):
    given = {"tables": ["fb-wn", "sizes"], "systems": ["simpbl", "exact"], "only": BENCHMARKS}
    return plan(**{**given, "seeds": 1, **options})


def again(out, command=None, made=None, **options):
    command = command or InProcess()
    return run(made or small_plan(), out, command=command, stop=command.stop, build=tiny_suite, **options), command


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction") / "out"
    outcomes, command = again(out)
    return out, outcomes, command


@pytest.fixture
def copied(finished, tmp_path):
    shutil.copytree(finished[0], tmp_path / "out")
    return tmp_path / "out"


def test_each_cell_is_one_evaluation_into_the_layout_of_several_seeds(finished):
    out, outcomes, command = finished
    assert [outcome.state for outcome in outcomes] == ["done"] * 4
    assert [outcome.cell for outcome in outcomes] == list(small_plan().cells)
    assert sorted(command.evaluated) == sorted((c.system, c.benchmark, c.seed) for c in small_plan().cells)
    for cell in small_plan().cells:
        manifest = json.loads((out / "runs" / cell.system / cell.benchmark / "seed-0/manifest.json").read_text())
        assert manifest["request"]["system"] == cell.system
        weights = (out / "runs" / cell.system / cell.benchmark / "seed-0/weights.safetensors").exists()
        assert weights == (cell.system != "simpbl")


def test_what_is_there_is_not_run_again(copied):
    outcomes, command = again(copied)
    assert {outcome.state for outcome in outcomes} == {"kept"}
    assert command.words == []


def test_only_what_is_missing_is_run_and_more_can_be_asked(copied):
    shutil.rmtree(copied / "runs/exact/LogInfer-WN-sym-pa")
    more = small_plan(systems=["exact", "rulen"], only=["WN-sym-pa"], seeds=2)
    outcomes, command = again(copied, made=more)
    place = "LogInfer-WN-sym-pa"
    assert sorted(command.evaluated) == [("exact", place, 0), ("rulen", place, 0), ("rulen", place, 1)]
    _, command = again(copied)
    assert command.evaluated == []
    assert {o.state for o in outcomes} == {"done"}
    asked = Folder(copied).request()
    assert asked.systems == ("simpbl", "rulen", "exact")
    assert len(asked.benchmarks) == 2
    assert asked.seeds == 2


def test_a_run_of_other_settings_is_not_taken_for_the_cell(copied):
    other = small_plan(systems=["rulen"], only=["WN-sym-pa"])
    again(copied, made=other)
    path = copied / "runs/rulen/LogInfer-WN-sym-pa/seed-0/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["request"]["settings"]["s1"] = 5
    path.write_text(json.dumps(manifest))
    (outcome,), command = again(copied, made=other)
    assert (outcome.state, command.words) == ("failed", [])
    assert "`settings.s1` was 5, now 330" in outcome.reason
    assert "--force" in outcome.hint
    (outcome,), command = again(copied, made=other, force=True)
    assert outcome.state == "done"
    assert len(command.words) == 1


def test_a_run_on_another_benchmark_of_the_same_name_is_not_taken_for_the_cell(copied):
    path = copied / "runs/exact/LogInfer-WN-sym-pa/seed-0/manifest.json"
    path.write_text(path.read_text().replace('"sha256": "', '"sha256": "0', 1))
    outcomes, _ = again(copied)
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    assert [(o.cell.system, o.cell.benchmark) for o in failed] == [("exact", "LogInfer-WN-sym-pa")]
    assert "benchmark.sha256" in failed[0].reason


def test_a_cell_that_fails_is_written_down_and_stops_nothing(tmp_path):
    made = small_plan(systems=["simpbl", "exact"], only=["WN-sym-pa"])
    outcomes, command = again(tmp_path / "out", InProcess("exact"), made)
    assert {o.cell.system: o.state for o in outcomes} == {"simpbl": "done", "exact": "failed"}
    assert len(command.evaluated) == 2
    saved = json.loads((tmp_path / "out/failed/exact/LogInfer-WN-sym-pa-seed-0.json").read_text())
    assert saved == {
        "system": "exact",
        "benchmark": "LogInfer-WN-sym-pa",
        "seed": 0,
        "what": "run",
        "reason": "exact is broken",
        "hint": "mend exact",
    }
    outcomes, command = again(tmp_path / "out", made=made)
    assert command.evaluated == [("exact", "LogInfer-WN-sym-pa", 0)]
    assert {o.state for o in outcomes if o.cell.system == "exact"} == {"done"}
    assert not list((tmp_path / "out/failed").rglob("*.json"))


def test_reasons_do_not_tell_where_the_folder_is(tmp_path):
    def broken(words):
        raise failure(f"error: {tmp_path / 'out' / 'runs' / 'x'}: no good\n", 2)

    made = small_plan(systems=["exact"], only=["WN-sym-pa"])
    (outcome,) = run(made, tmp_path / "out", command=broken, build=tiny_suite)
    assert outcome.reason == "runs/x: no good"


def test_a_benchmark_that_cannot_be_built_fails_its_cells_only(tmp_path):
    from loginfer.benchmark.construction.suite import SuiteResult

    def half(folder, entries, **options):
        made = tiny_suite(folder, entries[1:], **options)
        return [SuiteResult(entries[0].name, "failed", error="no graph"), *made]

    made = small_plan(systems=["simpbl"])
    outcomes = run(made, tmp_path / "out", command=InProcess(), build=half)
    states = {o.cell.benchmark: (o.state, o.reason) for o in outcomes}
    assert states["LogInfer-WN-inver-pa"] == ("done", "")
    assert states["LogInfer-WN-sym-pa"] == ("failed", "its benchmark could not be built: no graph")


def test_rules_are_compared_after_mining_and_not_twice(tmp_path):
    made = plan(tables=["rules"], systems=["anyburl"], only=["FB-sym-pa"], seeds=1)
    (outcome,), command = again(tmp_path / "out", made=made)
    assert outcome.state == "done"
    assert [words[0] for words in command.words] == ["evaluate", "rules"]
    saved = json.loads((tmp_path / "out/rules/anyburl/LogInfer-FB-sym-pa.json").read_text())
    assert (saved["system"], saved["run_seed"]) == ("anyburl", 0)
    assert 0 <= saved["eps_cont"] <= saved["eps_ent"] <= 1
    assert str(tmp_path) not in json.dumps(saved)
    assert "rules" not in saved
    (outcome,), command = again(tmp_path / "out", made=made)
    assert (outcome.state, command.words) == ("kept", [])
    (tmp_path / "out/rules/anyburl/LogInfer-FB-sym-pa.json").unlink()
    (outcome,), command = again(tmp_path / "out", InProcess("analyse"), made=made)
    assert (outcome.state, [w[0] for w in command.words]) == ("failed", ["rules"])
    assert json.loads((tmp_path / "out/failed/anyburl/LogInfer-FB-sym-pa-rules.json").read_text())["what"] == "rules"
    again(tmp_path / "out", made=made)
    assert not list((tmp_path / "out/failed").rglob("*.json"))


def test_other_protocols_and_budgets_do_not_share_a_folder(copied):
    for options, word in (({"budget": "full"}, "budget `quick`"), ({"protocol": "sound"}, "protocol `paper`")):
        with pytest.raises(OutputError, match=word):
            again(copied, made=small_plan(**options))
    path = copied / "reproduction.json"
    path.write_text(path.read_text().replace('"loginfer": "', '"loginfer": "0.0.'))
    with pytest.raises(OutputError, match="version"):
        again(copied)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(OutputError, match=r"thesis\.tex"):
        again(tmp_path)
    with pytest.raises(OutputError, match="is a file"):
        again(tmp_path / "thesis.tex")
    with pytest.raises(InputError, match="no reproduction"):
        Folder(tmp_path).request()


def test_progress_counts_cells_and_says_what_is_left(tmp_path):
    steps, milestones = [], []
    broken = InProcess("exact", "simpbl")
    made = small_plan(systems=["exact", "simpbl"])
    again(tmp_path / "out", broken, made, tell=steps.append, milestone=lambda: milestones.append(1))
    cells = [step for step in steps if step.remaining is not None]
    assert [step.done for step in cells] == [1, 2, 3, 4]
    assert {step.all for step in steps} == {4}
    assert cells[-1].remaining == 0
    assert cells[0].remaining > 0
    assert sum(step.what.startswith("benchmark ") for step in steps) == 2
    assert milestones == [1]  # the last one is the end


def test_several_jobs_run_at_once_and_give_the_same_answer(tmp_path):
    together = threading.Barrier(2, timeout=60)

    class Pairs:
        """Each command waits until another one runs."""

        def __call__(self, words):
            together.wait()
            raise failure("error: enough", 2)

    made = small_plan(systems=["exact", "contrast"])
    outcomes = run(made, tmp_path / "out", command=Pairs(), build=tiny_suite, jobs=2)
    assert [o.cell for o in outcomes] == list(made.cells)
    assert {o.reason for o in outcomes} == {"enough"}


def test_an_interruption_keeps_what_is_done(tmp_path):
    made, command = small_plan(systems=["simpbl"]), InProcess()

    def tell(step):
        if step.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(made, tmp_path / "out", command=command, stop=command.stop, build=tiny_suite, tell=tell)
    outcomes, command = again(tmp_path / "out", made=made)
    assert len(command.evaluated) == 1
    assert [outcome.state for outcome in outcomes] == ["kept", "done"]


def test_an_interruption_ends_the_commands_of_all_jobs(tmp_path, monkeypatch):
    from loginfer.reproduction import running

    stopped = threading.Event()

    def command(words):
        if not stopped.wait(60):
            raise RuntimeError("nobody has ended this command")
        raise failure("", -15)

    def interrupted(*words, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "wait", interrupted)
    made = small_plan(systems=["exact", "contrast"])
    with pytest.raises(KeyboardInterrupt):
        run(made, tmp_path / "out", command=command, stop=stopped.set, build=tiny_suite, jobs=2)
    assert stopped.is_set()
