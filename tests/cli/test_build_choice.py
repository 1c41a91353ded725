"""`loginfer build` with other rules than the most frequent ones, and with conclusions of several steps."""

import json

import pytest


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A path for transitivity, and some other relations."""
    lines = [f"a{i}\tnext\ta{i + 1}" for i in range(40)]
    lines += [f"a{i}\tlikes\ta{(i * 11 + 3) % 40}" for i in range(40)]
    lines += [f"a{i}\thates\ta{(i * 13 + 5) % 40}" for i in range(40)]
    lines += [f"a{i}\tknows\ta{(i * 7 + 2) % 40}" for i in range(40)]
    path = tmp_path_factory.mktemp("graphs") / "path.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def deep(graph, tmp_path_factory):
    from loginfer.cli import main

    out = tmp_path_factory.mktemp("benchmarks") / "deep"
    rule = "(x,next,y), (y,next,z) -> (x,next,z)"
    with pytest.raises(SystemExit) as stop:
        main(["build", str(graph), "--rules", rule, "--depth", "1..3", "--k2", "90", "-n", "qg", "-o", str(out)])
    assert not stop.value.code
    return out


def test_the_steps_of_a_deep_benchmark_are_told_everywhere(loginfer, deep):
    manifest = json.loads((deep / "manifest.json").read_text())
    assert manifest["recipe"]["depth"] == 3
    assert manifest["name"] == "path-rules-qg-depth3"
    code, out, _ = loginfer("audit", deep)
    assert code == 0
    assert "0 errors" in out
    code, out, _ = loginfer("evaluate", deep, "--system", "oracle", "--ranking", "none")
    assert code == 0
    assert out.count("100.0") > 8
    assert " depth   test positives   recall" in out


def test_the_whole_derivation_is_explained(loginfer, deep):
    from loginfer.benchmark import load_benchmark

    benchmark = load_benchmark(deep)
    known = benchmark.provenance
    triple = benchmark.graph.names(known.triples[known.depth == 3][:1])[0]
    code, out, _ = loginfer("explain", deep, *triple)
    assert code == 0
    assert "follows in 3 steps" in out
    assert "in the last one by rule 0" in out
    whole = out[out.index("the whole derivation:") :].splitlines()
    assert [line.strip()[0] for line in whole[1:] if "by rule 0" in line][-1] == "3"
    told = json.loads(loginfer("explain", deep, *triple, "--json")[1])
    assert told["depth"] == 3
    assert told["steps"][-1]["triple"] == list(triple)


def test_depths_are_printed_when_a_benchmark_is_built(loginfer, graph, tmp_path):
    rule = "(x,next,y), (y,next,z) -> (x,next,z)"
    code, out, _ = loginfer("build", graph, "-r", rule, "--depth", 2, "--k2", 60, "-o", tmp_path / "b")
    assert code == 0
    assert "at depth 2" in out


def test_rules_are_selected_at_random_or_by_an_interval(loginfer, graph, tmp_path):
    words = ("build", graph, "-p", "cup", "--k1", 3, "--k2", 20, "--min-new", 1)
    for name, options in {
        "random": ("--select", "random"),
        "interval": ("--select", "interval", "--select-by", "overlap", "--interval", "0.5:1"),
        "best": ("--head", "best"),
    }.items():
        code, out, err = loginfer(*words, *options, "-o", tmp_path / name, "--json")
        assert code == 0, err
        answer = json.loads(out)
        assert all(0 <= rule["confidence"] <= 1 for rule in answer["rules"])
    assert answer["recipe"]["head"] == "best"
    assert "select" not in answer["recipe"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--depth", "2..3"), "do not begin with 1"),
        (("--depth", "deep"), "`deep` is no depth"),
        (("--depth", "0"), "between 1 and 100"),
        (("--select", "rare"), "unknown way to select rules `rare`"),
        (("--select", "interval"), "there is none"),
        (("--interval", "1:2"), "are for"),
        (("--select", "interval", "--interval", "2:1"), "nothing lies in"),
    ],
)
def test_mistakes_are_told_in_a_line(loginfer, graph, tmp_path, options, message):
    code, _, err = loginfer("build", graph, "-p", "cup", *options, "-o", tmp_path / "b")
    assert code == 2
    assert message in err
    assert not (tmp_path / "b").exists()
