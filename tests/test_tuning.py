"""`loginfer tune`: trials on valid, gone on with after a kill, and the file of settings that is made of them."""

import dataclasses
import functools
import itertools
import json
import math
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pytest

from loginfer import tuning
from loginfer.benchmark import Recipe, Splits, build, write_benchmark
from loginfer.errors import InputError, LogInferError, OutputError
from loginfer.evaluation.evaluating import configure_system, settings_line
from loginfer.files import write_text
from loginfer.randomness import hashes
from loginfer.settings import setting, settings_of
from loginfer.systems import registry, systems
from loginfer.tuning import Range, collect, read_tuning, tune
from tests.support.made_up_benchmarks import couples, family
from tests.support.near_miss_benchmarks import typed_graph
from tests.support.rankings import competitors

optuna = pytest.importorskip("optuna", reason="tuning needs Optuna, which is not installed")

TOY = "tests.test_tuning:Toy"


@dataclass(frozen=True)
class Toy:
    """Knows what is true, and adds noise that is the smaller the nearer its rate is to 0.1."""

    rate: float = setting(0.9, "how much it learns", least=0, tuned="0.01:1:log")
    width: int = setting(3, "how wide it is", tuned="1:8")
    kind: Literal["plain", "odd"] = setting("odd", "the kind", tuned="plain,odd")
    fails: bool = setting(False, "whether it fails at large rates")

    fits: ClassVar[list[tuple]] = []

    def fit(self, benchmark):
        assert not len(benchmark.positives.test)
        assert not benchmark.rules
        self.fits.append((self.rate, self.width, self.kind))
        if self.fails and self.rate < 0.9:
            raise ArithmeticError("too small")
        return Noise(benchmark, abs(math.log(self.rate / 0.1)) + (self.kind == "odd"))


class Noise:
    def __init__(self, benchmark, noise):
        self.keys, self.noise = benchmark.graph.keys, noise
        self.true = np.concatenate([self.keys.pack(part) for _, part in benchmark.positives.items()])

    def score(self, triples):
        packed = self.keys.pack(triples)
        return np.isin(packed, self.true) + self.noise * (hashes(packed, 3) >> np.uint64(40)).astype(float) / 2**24


@pytest.fixture(autouse=True)
def _no_fits():
    Toy.fits.clear()


@pytest.fixture
def bench(tmp_path):
    write_benchmark(couples(), tmp_path / "bench")
    return tmp_path / "bench"


def content(folder):
    return (folder / "tuning.json").read_bytes()


def cpu_seconds(folder):
    return json.loads((folder / "timing.json").read_text())["cpu_seconds"]


# -- what a trial is worth ----------------------------------------------------------------------------


def by_definition(benchmark, method, noise):
    """Return accuracy and C-MRR on valid, as loops over triples."""
    scorer = Noise(dataclasses.replace(benchmark, positives=without_test(benchmark)), noise)
    valid = benchmark.positives.valid
    score = functools.cache(lambda triple: float(scorer.score(np.array([triple], dtype=np.int32))[0]))
    asked = dataclasses.replace(benchmark, positives=Splits(benchmark.positives.train, valid[:0], valid), negatives={})
    by_position = {"subject": [], "object": []}
    for position, triple in itertools.product(by_position, map(tuple, valid.tolist())):
        others = [score(other) for other in competitors(asked, "filtered", position, triple)]
        ties = sum(other == score(triple) for other in others)
        by_position[position].append(1 / (1 + sum(other > score(triple) for other in others) + ties / 2))
    figures = {"c_mrr": sum(sum(ranks) / len(ranks) for ranks in by_position.values()) / 2}
    if method is not None:
        labelled = [(score(t), True) for t in map(tuple, valid.tolist())]
        labelled += [(score(t), False) for t in map(tuple, benchmark.negatives[method].splits.valid.tolist())]
        thresholds = [threshold for threshold, _ in labelled] + [math.inf]
        right = [sum((value >= threshold) == label for value, label in labelled) for threshold in thresholds]
        figures["accuracy"] = max(right) / len(labelled)
    return figures


def without_test(benchmark):
    train, valid = benchmark.positives.train, benchmark.positives.valid
    return Splits(train, valid, valid[:0])


@functools.cache
def near_misses():
    recipe = Recipe("people", patterns=("composition",), k1=2, k2=60, negatives=("nm",), min_new=1, allow_fewer=True)
    return build(recipe, typed_graph())


@pytest.mark.parametrize("kind", ["position-aware", "near misses", "no negatives", "inductive"])
def test_a_trial_is_worth_its_accuracy_and_c_mrr_on_valid(kind, tmp_path):
    benchmark = near_misses() if kind == "near misses" else couples(inductive=kind == "inductive")
    assert (benchmark.context is not None) == (kind == "inductive")
    if kind == "no negatives":
        benchmark = dataclasses.replace(benchmark, negatives={})
    method = next(iter(benchmark.negatives), None)
    document = tune([benchmark], TOY, tmp_path / "out", trials=2, vary={"rate": "0.05:0.9:log"})
    assert {trial["settings"]["rate"] for trial in document["trials"]} != {0.9}
    for trial in document["trials"]:
        expected = by_definition(benchmark, method, abs(math.log(trial["settings"]["rate"] / 0.1)) + 1)
        assert trial["figures"][0] == pytest.approx(expected)
        worth = expected["c_mrr"]
        if method is not None:
            worth = 0.75 * expected["accuracy"] + 0.25 * expected["c_mrr"]
        assert trial["worth"] == pytest.approx(worth)


def test_of_several_benchmarks_the_mean_counts(tmp_path):
    first, second = couples(), near_misses()
    alone = [tune([one], TOY, tmp_path / one.name, trials=1)["trials"][0] for one in (first, second)]
    both = tune([first, second], TOY, tmp_path / "both", trials=1)["trials"][0]
    assert both["figures"] == [trial["figures"][0] for trial in alone]
    assert both["worth"] == pytest.approx(sum(trial["worth"] for trial in alone) / 2)


def test_one_benchmark_may_be_given_alone_by_value_or_by_folder(bench, tmp_path):
    places = [[bench], bench, str(bench), couples()]
    trials = [tune(place, TOY, tmp_path / str(i), trials=2)["trials"] for i, place in enumerate(places)]
    assert trials == trials[:1] * 4


def test_test_is_never_looked_at(tmp_path):
    benchmark = couples()
    other = dataclasses.replace(benchmark, positives=without_test(benchmark))
    first, second = (tune([b], TOY, tmp_path / str(i), trials=5) for i, b in enumerate((benchmark, other)))
    assert first["trials"] == second["trials"]


# -- which settings are tried -------------------------------------------------------------------------


def test_the_first_trial_has_the_defaults_and_the_best_of_many_is_better(tmp_path):
    document = tune([couples()], TOY, tmp_path / "out", trials=25)
    first, best = document["trials"][0], document["best"]
    assert first["settings"] == {"rate": 0.9, "width": 3, "kind": "odd"}
    assert first["worth"] < best["worth"] == max(trial["worth"] for trial in document["trials"])
    assert best["how"].startswith(f"trial {best['trial']} of 25, worth {100 * best['worth']:.2f}, the first ")
    assert best["settings"]["kind"] == "plain"
    assert 0.05 < best["settings"]["rate"] < 0.2
    for trial in document["trials"]:
        assert 0.01 <= trial["settings"]["rate"] <= 1
        assert trial["settings"]["width"] in range(1, 9)
        assert trial["settings"]["rate"] == float(f"{trial['settings']['rate']:.3g}")


def test_what_is_fixed_or_not_named_is_not_varied(tmp_path):
    document = tune([couples()], TOY, tmp_path / "a", trials=3, settings={"kind": "plain"})
    assert {tuple(trial["settings"]) for trial in document["trials"]} == {("rate", "width")}
    assert document["best"]["settings"]["kind"] == "plain"
    document = tune([couples()], TOY, tmp_path / "b", trials=3, vary={"width": "2,4"})
    assert [trial["settings"]["width"] in (2, 4) for trial in document["trials"]] == [True] * 3
    assert {kind for _, _, kind in Toy.fits[-2:]} == {"odd"}


def test_settings_that_were_tried_before_are_not_tried_again(tmp_path):
    document = tune([couples()], TOY, tmp_path / "out", trials=8, vary={"kind": "plain,odd"})
    assert len(document["trials"]) == 8
    assert len(Toy.fits) == 2


def test_settings_with_which_a_system_fails_are_worth_nothing(tmp_path):
    heard = []
    asked = {"trials": 6, "settings": {"fails": "true"}, "vary": {"rate": "0.1:1"}}
    document = tune([couples()], TOY, tmp_path / "out", **asked, tell=heard.append)
    failed = [trial for trial in document["trials"] if trial["worth"] is None]
    assert failed
    assert "ArithmeticError: too small" in failed[0]["error"]
    assert document["best"]["worth"] == document["trials"][0]["worth"]
    assert any("failed: `tests.test_tuning:Toy` failed in `fit`: ArithmeticError: too small; rate" in h for h in heard)
    assert tune([couples()], TOY, tmp_path / "out", **asked) == document
    with pytest.raises(InputError, match="too small"):
        tune([couples()], TOY, tmp_path / "bad", **{**asked, "vary": {"rate": "0.1:0.5"}})
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("rate", "0.5:0.1", "no range"),
        ("rate", "0:1:log", "no range"),
        ("rate", "0.1", "no range"),
        ("rate", "0.1,0.1", "no range"),
        ("rate", "0.1:0.2:0.3", "must be a number"),
        ("rate", "-1:1", "at least 0"),
        ("rate", "low:high", "must be a number"),
        ("rate", "nan:1", "finite"),
        ("width", "0.5:2", "whole number"),
        ("kind", "plain:odd", "no range"),
        ("kind", "plain,evil", "unknown value"),
        ("rates", "0.1:0.2", "unknown setting"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(name, text, problem, tmp_path):
    with pytest.raises(LogInferError, match=problem) as caught:
        tune([couples()], TOY, tmp_path / "out", vary={name: text})
    assert caught.value.where == "--vary"


def test_what_systems_declare_can_be_read_and_varied():
    for entry in systems():
        for declared in settings_of(entry.load()).values():
            if declared.tuned is not None:
                tried = Range.read(declared, declared.tuned)
                assert tried.nearest(declared.default) == declared.default, (entry.name, declared.name)


def test_a_system_that_declares_nothing_needs_to_be_told_what_to_vary(tmp_path):
    with pytest.raises(InputError, match="no settings that it says may be varied"):
        tune([couples()], "simpbl", tmp_path / "out")
    with pytest.raises(InputError, match="both fixed and varied"):
        tune([couples()], TOY, tmp_path / "out", settings={"rate": 1}, vary={"rate": "0.1:1"})


@pytest.mark.parametrize(("argument", "option"), [("settings", "--set"), ("vary", "--vary")])
def test_the_seed_is_no_setting_to_fix_or_vary(argument, option, tmp_path):
    with pytest.raises(InputError, match="the seed has an option of its own") as caught:
        tune([couples()], "exact", tmp_path / "out", **{argument: {"seed": "1:5"}})
    assert (caught.value.where, caught.value.hint) == (option, "give --seed NUMBER")


def test_a_benchmark_and_a_trial_are_needed(tmp_path):
    with pytest.raises(InputError, match="no benchmark to tune on"):
        tune([], TOY, tmp_path / "out")
    with pytest.raises(InputError, match="`trials` must be at least 1, not 0"):
        tune([couples()], TOY, tmp_path / "out", trials=0)


def test_valid_triples_are_needed(tmp_path):
    with pytest.raises(InputError, match="no valid triples"):
        tune([family(valid=False)], TOY, tmp_path / "out", negatives="pa")


# -- going on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [1, 4, 7])
def test_a_tuning_that_was_stopped_goes_on_and_ends_with_the_same_bytes(last, tmp_path):
    tune([couples()], TOY, tmp_path / "whole", trials=8)
    fits = list(Toy.fits)

    def stop(line):
        if line.startswith(f"trial {last} "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune([couples()], TOY, tmp_path / "stopped", trials=8, tell=stop)
    tune([couples()], TOY, tmp_path / "stopped", trials=8)
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")
    assert Toy.fits == fits * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stopped", "whole"]


@pytest.mark.parametrize("file", ["tuning.json", "timing.json"])
def test_a_kill_while_the_first_trial_is_written_does_no_harm(file, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def write_half(path, text, **options):
        if path.name == file:
            out.mkdir(exist_ok=True)
            (out / f".{file}.x1.part").write_text(text[:9])
            raise KeyboardInterrupt
        write_text(path, text, **options)

    with monkeypatch.context() as patch:
        patch.setattr(tuning, "write_text", write_half)
        with pytest.raises(KeyboardInterrupt):
            tune([couples()], TOY, out, trials=3)
    if file == "tuning.json":  # older versions wrote the seconds first
        (out / "timing.json").write_text('{"cpu_seconds": [1000]}')
    tune([couples()], TOY, out, trials=3)
    tune([couples()], TOY, tmp_path / "whole", trials=3)
    assert content(out) == content(tmp_path / "whole")
    assert len(cpu_seconds(out)) == 3
    assert sum(cpu_seconds(out)) < 1000
    assert (cpu_seconds(out)[0] == 0) or file == "tuning.json"


def test_settings_that_make_no_difference_may_change_and_are_not_kept(tmp_path):
    fixed = {"dimension": 4, "epochs": 1}
    asked = {"trials": 1, "vary": {"learning_rate": "0.005:0.03:log"}}
    tune([couples()], "distmult", tmp_path / "out", **asked, settings=fixed)
    first = content(tmp_path / "out")
    more = {**fixed, "workers": 2, "storage": "mapped"}
    tune([couples()], "distmult", tmp_path / "out", **asked, settings=more)
    document = tune([couples()], "distmult", tmp_path / "again", **asked, settings=more)
    assert content(tmp_path / "out") == content(tmp_path / "again") == first
    assert not {"workers", "storage"} & {*document["request"]["settings"], *document["best"]["settings"]}
    with pytest.raises(LogInferError, match="unknown setting of distmult to vary `workers`"):
        tune([couples()], "distmult", tmp_path / "other", vary={"workers": "1:4"})


def test_more_trials_can_be_asked_for(tmp_path):
    tune([couples()], TOY, tmp_path / "whole", trials=9)
    tune([couples()], TOY, tmp_path / "parts", trials=3)
    tune([couples()], TOY, tmp_path / "parts", trials=9)
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    assert len(tune([couples()], TOY, tmp_path / "parts", trials=2)["trials"]) == 9


def test_another_request_needs_force(tmp_path):
    tune([couples()], TOY, tmp_path / "out", trials=2)
    with pytest.raises(OutputError, match="`seed` was 0, now 1"):
        tune([couples()], TOY, tmp_path / "out", trials=2, seed=1)
    assert tune([couples()], TOY, tmp_path / "out", trials=1, seed=1, force=True)["request"]["seed"] == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds no tuning"):
        tune([couples()], TOY, tmp_path / "mine", force=True)


def test_trials_that_do_not_follow_from_each_other_are_refused(tmp_path):
    tune([couples()], TOY, tmp_path / "out", trials=3)
    document = json.loads(content(tmp_path / "out"))
    document["trials"][1]["settings"]["width"] = 100
    (tmp_path / "out" / "tuning.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="trial 2 is not the one that follows"):
        tune([couples()], TOY, tmp_path / "out", trials=4)


def test_no_trial_begins_when_the_seconds_are_used_up(tmp_path):
    tune([couples()], TOY, tmp_path / "out", trials=9, seconds=0)
    assert len(read_tuning(tmp_path / "out")["trials"]) == 1
    timing = tmp_path / "out" / "timing.json"
    timing.write_text(json.dumps({"cpu_seconds": [1000]}))
    assert len(tune([couples()], TOY, tmp_path / "out", trials=9, seconds=999)["trials"]) == 1
    assert len(tune([couples()], TOY, tmp_path / "out", trials=3, seconds=1001)["trials"]) == 3


def test_the_seconds_of_processes_that_a_trial_starts_count(tmp_path, monkeypatch):
    tune([couples()], TOY, tmp_path / "warm", trials=1)  # compiles what takes long

    def fit_elsewhere(system, benchmark, fit=Toy.fit):
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"], check=True)
        return fit(system, benchmark)

    monkeypatch.setattr(Toy, "fit", fit_elsewhere)
    tune([couples()], TOY, tmp_path / "out", trials=1)
    assert cpu_seconds(tmp_path / "out")[0] > 0.9


# -- settings that are shipped ------------------------------------------------------------------------


def test_collected_settings_are_used_for_their_graph(tmp_path, monkeypatch):
    benchmark = couples()
    monkeypatch.setattr(registry, "shipped", lambda name: {"graphs": {}, "settings": {}})
    document = tune([benchmark], TOY, tmp_path / "toy", trials=12)
    tune([benchmark], TOY, tmp_path / "worse", trials=1)
    text = collect([tmp_path / "worse", tmp_path / "toy"])
    tables = tomllib.loads(text)
    assert tables["settings"] == {TOY: {"couples": document["best"]["settings"]}}
    assert f"# {TOY}, couples: trial {document['best']['trial']} of 12, worth" in text
    assert all(line.isprintable() for line in text.splitlines() if line.startswith("#"))
    monkeypatch.setattr(registry, "shipped", lambda name: tables)
    configured = configure_system(TOY, benchmark)
    best = document["best"]["settings"]
    assert {name: configured.settings[name] for name in best} == best
    answer = {"settings": configured.settings, "settings_from": configured.settings_from}
    assert settings_line(answer).startswith("settings: tuned for couples (")
    # What is shipped is tried right after the defaults.
    again = tune([benchmark], TOY, tmp_path / "again", trials=2)
    assert again["best"]["settings"] == best


def test_settings_for_several_graphs_or_on_other_benchmarks_are_not_collected(tmp_path):
    tune([couples(), near_misses()], TOY, tmp_path / "both", trials=1)
    with pytest.raises(InputError, match="several graphs"):
        collect([tmp_path / "both"])
    tune([couples()], TOY, tmp_path / "one", trials=1)
    tune([dataclasses.replace(couples(), name="other")], TOY, tmp_path / "other", trials=1)
    with pytest.raises(InputError, match="on other benchmarks"):
        collect([tmp_path / "one", tmp_path / "other"])


def test_settings_for_standard_splits_are_collected_apart(tmp_path):
    tune([couples()], TOY, tmp_path / "one", trials=1)
    tune([dataclasses.replace(couples(), negatives={})], TOY, tmp_path / "other", trials=1)
    tables = tomllib.loads(collect([tmp_path / "one", tmp_path / "other"]))
    assert (list(tables["graphs"]), list(tables["settings"][TOY])) == (["couples"], ["couples", "couples split"])


def test_a_standard_split_is_of_the_same_graph_as_what_is_built_from_it(tmp_path):
    built = near_misses()
    triples = built.kg.triples
    split = dataclasses.replace(
        couples(), name="people", graph=built.kg.with_triples(triples[10:]), recipe=None, provenance=None, manifest={},
        positives=Splits(triples[10:], triples[:5], triples[5:10]), negatives={}, rules=(),
    )  # fmt: skip
    entries = [registry.graph_entry(benchmark) for benchmark in (built, split)]
    assert entries[0] == entries[1]
    tune([built], TOY, tmp_path / "built", trials=1)
    tune([split], TOY, tmp_path / "split", trials=1)
    tables = tomllib.loads(collect([tmp_path / "built", tmp_path / "split"]))
    assert list(tables["settings"][TOY]) == ["people", "people split"]


def test_no_comment_in_the_file_can_end_its_line(tmp_path):
    benchmark = dataclasses.replace(couples(), name="a\nevil = 1\x7f", recipe=None)
    tune([benchmark], TOY, tmp_path / "out", trials=1)
    assert set(tomllib.loads(collect([tmp_path / "out"]))) == {"graphs", "settings"}


# -- the command --------------------------------------------------------------------------------------


def test_the_command_shows_trials_and_the_best_settings(loginfer, bench, tmp_path):
    words = ("tune", bench, "--system", "exact", "--vary", "smoothing=1:50:log", "--trials", 3, "-o", tmp_path / "out")
    code, out, messages = loginfer(*words)
    assert code == 0
    assert out.count(" smoothing ") == 3
    best = read_tuning(tmp_path / "out")["best"]["settings"]
    options = [word for name, value in best.items() for word in ("--set", f"{name}={value}")]
    assert shlex.split(out.splitlines()[-1]) == ["best:", "--system", "exact", "--no-tuned", *options]
    assert [line.split(":")[0] for line in messages.splitlines() if line.startswith("trial")] == [
        f"trial {number} of 3" for number in (1, 2, 3)
    ]
    code, out, messages = loginfer(*words, "--json")
    assert json.loads(out) == json.loads(content(tmp_path / "out"))
    assert "trial" not in messages


def test_several_systems_have_equal_budgets_and_a_folder_each(loginfer, bench, tmp_path):
    words = ("--set", "epochs=1", "--vary", "smoothing=1:50:log", "--vary", "learning_rate=0.01:0.1:log")
    words = ("tune", bench, "-s", "exact,distmult", *words, "--set", "dimension=4", "--trials", 2, "-o", tmp_path / "t")
    code, out, messages = loginfer(*words)
    assert code == 0, messages
    documents = {name: read_tuning(tmp_path / "t" / name) for name in ("exact", "distmult")}
    assert {name: list(one["request"]["varied"]) for name, one in documents.items()} == {
        "exact": ["smoothing"], "distmult": ["learning_rate"]
    }  # fmt: skip
    assert [len(one["trials"]) for one in documents.values()] == [2, 2]
    best = [shlex.split(line) for line in out.splitlines() if line.startswith("best: ")]
    assert [line[2] for line in best] == ["exact", "distmult"]
    rows = [line.split() for line in out.splitlines()]
    assert {(row[4], row[3]) for row in rows if len(row) > 4 and row[4] in documents} == {
        (name, str(one["best"]["trial"])) for name, one in documents.items()
    }
    assert json.loads(loginfer(*words, "--json")[1]) == list(documents.values())
    # Their folder can be collected as a whole.
    assert loginfer("tune", tmp_path / "t", "--collect")[1] == collect([tmp_path / "t" / name for name in documents])
    code, _, messages = loginfer(*words, "--set", "smooth=2")
    assert (code, "any of these systems" in messages) == (2, True)


def test_the_command_says_why_trials_failed(loginfer, bench, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ("--set", "fails=true", "--vary", "rate=0.1:1", "--trials", 4, "--out", tmp_path / "out")
    code, out, messages = loginfer("tune", bench, "-s", TOY, *words)
    assert code == 0
    reason = "failed: `tests.test_tuning:Toy` failed in `fit`: ArithmeticError: too small"
    assert f"trial 2 of 4: {reason}; rate 0." in " ".join(messages.split())
    assert f"; {reason}" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


def test_the_command_makes_the_file_of_settings(loginfer, bench, tmp_path):
    folder, file = tmp_path / "out", tmp_path / "tuned.toml"
    loginfer("tune", bench, "-s", "exact", "--trials", 1, "--out", folder)
    assert loginfer("tune", folder, "--collect")[1] == collect([folder])
    assert loginfer("tune", folder, "--collect", "--out", file)[0] == 0
    assert file.read_text() == collect([folder])
    assert loginfer("tune", folder, "--collect", "--out", file)[0] == 2


def test_without_optuna_the_command_says_how_to_get_it(loginfer, bench, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    code, _, messages = loginfer("tune", bench, "-s", "exact", "--out", tmp_path / "out")
    assert (code, "pip install '.[tune]'" in messages) == (2, True)
    assert loginfer("tune", bench, "-s", "exact")[0] == 2
    assert loginfer("tune", bench, "--out", tmp_path / "out")[0] == 2


def test_epochs_are_the_same_for_all_trials(loginfer, bench, tmp_path):
    words = ("--vary", "learning_rate=0.005:0.03:log", "--epochs", 2, "--set", "dimension=4", "--trials", 2)
    code, out, messages = loginfer("tune", bench, "-s", "distmult", *words, "--out", tmp_path / "out", "--json")
    assert code == 0, messages
    assert json.loads(out)["request"]["settings"]["epochs"] == 2
    assert json.loads(out)["best"]["settings"]["epochs"] == 2
