"""`loginfer build` and `loginfer suite`, run as users run them."""

import json

import pytest

from loginfer.benchmark import Recipe, load_benchmark, write_recipe
from loginfer.benchmark.construction.suite import entries
from loginfer.errors import InputError


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A graph with two relations that have something to say, and one that is rare."""
    lines = [f"a{i}\tknows\ta{(i * 7 + 1) % 60}" for i in range(60)]
    lines += [f"a{i}\tlikes\ta{(i * 11 + 3) % 60}" for i in range(60)]
    lines += [f"a{i}\thates\ta{(i * 13 + 5) % 60}" for i in range(40)]
    path = tmp_path_factory.mktemp("graphs") / "small.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_build_writes_a_folder_that_loads_and_tells_its_figures(loginfer, small, tmp_path):
    out = tmp_path / "bench"
    code, printed, _ = loginfer(
        "build", small, "--pattern", "symmetry", "--pattern", "composition", "--negatives", "pa",
        "--negatives", "rb", "--k1", 2, "--k2", 20, "--out", out,
    )  # fmt: skip
    assert code == 0
    assert "4 rules, protocol sound" in printed
    benchmark = load_benchmark(out)
    assert benchmark.name == "small-symmetry-composition-pa-rb"
    assert list(benchmark.negatives) == ["pa", "rb"]
    assert len(benchmark.rules) == 4
    assert benchmark.positives.sizes == benchmark.negatives["pa"].splits.sizes


def test_the_same_recipe_gives_the_same_bytes_in_any_folder(loginfer, small, tmp_path):
    words = ("build", small, "-p", "composition", "-n", "pa", "-n", "qg", "--k1", 2, "--k2", 20, "--out")
    for name in ("one", "two"):
        assert loginfer(*words, tmp_path / name)[0] == 0
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "two").iterdir())
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_build_answers_programs_in_json(loginfer, small, tmp_path):
    out = tmp_path / "bench"
    code, printed, _ = loginfer("build", small, "-p", "sym", "--k1", 2, "--k2", 20, "-o", out, "--json")
    answer = json.loads(printed)
    assert code == 0
    assert answer["path"] == str(out)
    assert answer["recipe"]["patterns"] == ["sym"]
    assert answer["negatives"]["pa"]["train"]["asked"] == answer["positives"]["train"]


def test_a_recipe_file_is_the_same_as_its_options_and_options_come_before_it(loginfer, small, tmp_path):
    recipe = Recipe(str(small), ("symmetry",), k1=2, k2=20, negatives=("rc",), seed=3, name="same")
    write_recipe(recipe, tmp_path / "recipe.toml")
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    loginfer("build", "--recipe", tmp_path / "recipe.toml", "--out", one)
    loginfer(
        "build", small, "-p", "symmetry", "--k1", 2, "--k2", 20, "-n", "rc", "--seed", 3, "--name", "same",
        "--out", two,
    )  # fmt: skip
    assert (one / "manifest.json").read_bytes() == (two / "manifest.json").read_bytes()
    loginfer("build", "--recipe", tmp_path / "recipe.toml", "--seed", 4, "--out", three)
    assert load_benchmark(three).recipe == recipe.changed(seed=4)


def test_an_existing_benchmark_is_replaced_only_with_force(loginfer, small, tmp_path):
    words = ("build", small, "-p", "symmetry", "--k1", 2, "--k2", 20, "--out", tmp_path / "bench")
    assert loginfer(*words)[0] == 0
    code, _, err = loginfer(*words)
    assert code == 2
    assert "exists already" in err
    assert "--force" in err
    assert loginfer(*words, "--seed", 1, "--force")[0] == 0
    assert load_benchmark(tmp_path / "bench").recipe.seed == 1


def test_too_few_rules_of_ones_own_graph_are_a_warning(loginfer, small, tmp_path):
    code, printed, err = loginfer("build", small, "-p", "symmetry", "--k1", 50, "--out", tmp_path / "bench")
    assert code == 0
    assert "only 3 of 50 rules of `symmetry`" in err
    assert "3 rules" in printed
    assert loginfer("audit", tmp_path / "bench")[0] == 0


def test_too_few_rules_of_a_named_graph_are_an_error_that_names_the_option(loginfer, tmp_path):
    code, _, err = loginfer("build", "lubm", "-p", "inversion", "--k1", 5000, "--out", tmp_path / "bench")
    assert code == 2
    assert "of 5,000 rules of `inversion`" in err
    assert "--allow-fewer" in err


def test_options_of_reading_are_in_the_recipe_and_rebuild_the_same_bytes(loginfer, tmp_path):
    rows = [f"p{i},p{(i * 7 + k) % 30},{relation},{k}" for i in range(30) for k, relation in enumerate("abc")]
    (tmp_path / "g.csv").write_text("\n".join(["source,target,label,weight", *rows, "p1,p2,rare,1", "oops", ""]))
    options = ["--on-error", "skip", "--without-relations", "c", "--min-relation-size", 2]
    words = ["build", tmp_path / "g.csv", "-p", "composition", "--k1", 2, "--min-new", 1, "--out"]
    code, _, err = loginfer(*words, tmp_path / "one", *options)
    assert code == 0
    assert "the first line is a header" in err
    assert "left out 31 of 91 triples: 30 of relations that are not asked for, 1 of 1 relations with fewer" in err
    recipe = json.loads((tmp_path / "one" / "manifest.json").read_text())["recipe"]
    assert recipe["without_relations"] == ["c"]
    assert (recipe["min_relation_size"], recipe["on_error"]) == (2, "skip")
    assert not {"columns", "delimiter", "format", "literals", "relations"} & set(recipe)
    text = f'kg = "{tmp_path / "g.csv"}"\npatterns = ["composition"]\nk1 = 2\nmin_new = 1\non_error = "skip"\n'
    (tmp_path / "recipe.toml").write_text(text + 'without_relations = ["c"]\nmin_relation_size = 2\n')
    assert loginfer("build", "--recipe", tmp_path / "recipe.toml", "--out", tmp_path / "two")[0] == 0
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_force_does_not_replace_a_folder_with_other_things(loginfer, small, tmp_path):
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    code, _, err = loginfer("build", small, "-p", "symmetry", "--k1", 2, "--out", folder, "--force")
    assert code == 2
    assert "thesis.tex" in err
    assert (folder / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-p", "(x,_R,x), (x,_S,x) -> (x,_T,x)", "--k1", 1], "has no rule on this graph"),
        (["-p", "symmetry", "--k2", 0], "`--k2` must be at least 1, but is 0"),
        (["-p", "symmetry", "--k1", 2, "--ratio", "0.8:0.1:0.2"], "add up to 1.1, not 1"),
        (["-p", "symetry"], "did you mean `symmetry`"),
        (["-p", "symmetry", "-n", "pq"], "unknown method for negatives `pq`"),
        (["-p", "symmetry", "--protocol", "strict"], "unknown protocol `strict`"),
        (["-p", "symmetry", "--rules", "lubm-19"], "both patterns and rules"),
        ([], "neither patterns nor rules"),
        (["--rules", "no-such-file.txt"], "unknown rule file or rule set"),
        (["--rules", "(x,nobody,y) -> (y,nobody,x)"], "the rule does not conclude"),
        (["--rules", "(x,knows,y) -> (y,knows,z)"], "is not bound"),
        (["-p", "symmetry", "--k1", 2, "--memory-limit", "1GB"], "--memory-limit is for --engine duckdb"),
        (["--recipe", "no-such-recipe.toml"], "no file or folder"),
        (["-p", "symmetry", "--k1", 2, "--seed", -1], "`--seed` must be at least 0"),
    ],
)
def test_bad_input_gets_one_clear_message_and_leaves_nothing(loginfer, small, tmp_path, options, message):
    code, printed, err = loginfer("build", small, *options, "--out", tmp_path / "bench")
    assert code == 2
    assert message in err
    assert printed == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["build", "-p", "symmetry", "--out", "x"], "no graph to build from"),
        (["build", "lubm", "-p", "symmetry"], "no folder to build in"),
        (["build", "no-such-graph", "-p", "symmetry", "--out", "x"], "no-such-graph"),
        (["suite", "list", "--only", "FX-*"], "unknown benchmark `FX-*`"),
        (["suite", "build", "--out", "x", "--protocol", "strict"], "unknown protocol"),
    ],
)
def test_what_is_missing_or_misspelt_is_named(loginfer, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = loginfer(*words)
    assert code == 2
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_the_suite_lists_the_37_benchmarks_of_the_paper_and_two_more(loginfer):
    code, printed, _ = loginfer("suite", "list", "--json")
    rows = json.loads(printed)
    assert code == 0
    assert sum(row["in_paper"] for row in rows) == 37
    assert [row["name"] for row in rows if not row["in_paper"]] == ["LogInfer-FB-sym-rc", "LogInfer-FB-inter-rc"]
    assert len({row["name"] for row in rows}) == len(rows) == 39
    code, printed, _ = loginfer("suite", "list", "--only", "loginfer-wn-*-QG")
    assert "LogInfer-WN-trian-qg" in printed
    assert "LogInfer-FB" not in printed


def test_the_suite_builds_keeps_and_compares_with_the_paper(loginfer, tmp_path):
    words = ("suite", "build", "--only", "LUBM-no-type-*", "--out", tmp_path, "--jobs", 1)
    code, printed, err = loginfer(*words)
    assert code == 0
    assert err.count(" built") == 3
    assert "100,543 distinct triples, not 103,119" in printed
    assert "LogInfer-LUBM-no-type-qg" in (tmp_path / "SUITE.md").read_text()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("LogInfer-*/*")}
    code, printed, err = loginfer(*words, "--json")
    assert code == 0
    assert err.count(" kept") == 3
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("LogInfer-*/*")} == before
    (row,) = [row for row in json.loads(printed) if row["name"] == "LogInfer-LUBM-no-type-qg"]
    assert row["positives"]["train"] == 111949
    # A damaged one, and one from another recipe, are told and not replaced without being asked.
    (tmp_path / "LogInfer-LUBM-no-type-pa" / "test.txt").write_text("broken\n")
    code, _, err = loginfer(*words)
    assert code == 2
    assert "is damaged: `test.txt` was changed" in err
    code, _, err = loginfer(*words, "--force")
    assert code == 0
    assert err.count(" kept") == 2
    code, _, err = loginfer(*words, "--seed", 1)
    assert code == 2
    assert "was built from another recipe" in err


def test_a_recipe_for_the_suite_sets_what_is_not_the_papers(loginfer, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('protocol = "paper"\nk1 = 3\n')
    code, _, err = loginfer("suite", "build", "--recipe", recipe, "--out", tmp_path / "suite")
    assert code == 2
    assert "`k1` is fixed by the suite" in err
    recipe.write_text('protocol = "paper"\nseed = 5\n')
    code, _, _ = loginfer(
        "suite", "build", "--recipe", recipe, "--only", "LUBM-no-type-rb", "--out", tmp_path / "suite"
    )
    assert code == 0
    made_of = load_benchmark(tmp_path / "suite" / "LogInfer-LUBM-no-type-rb").recipe
    assert (made_of.protocol, made_of.seed) == ("paper", 5)


def test_names_in_the_suite_are_those_of_the_paper():
    names = [entry.name for entry in entries()]
    assert "LogInfer-FB-sym-pa" in names
    assert "LogInfer-LUBM-no-type-qg" in names
    assert not any("inter" in name for name in names if "-WN-" in name)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("[recipe]\nk1 = 2", "recipe.toml: unknown setting `recipe`"),
        ('kg = "x"\nrules = 3', "`rules` must be a text or a list of texts, not 3"),
        ('kg = "x"\nrules = " "', "`rules` is empty"),
        ('kg = "x"\npatterns = ["sym"]\nname = 3', "`name` must be a text, not 3"),
        ('kg = "x"\npatterns = ["sym"]\nname = "a\\nb"', "is no name"),
        ('kg = "x"\npatterns = ["sym"]\ntype_predicate = false', "`type_predicate` must be a text, not False"),
        ('kg = "x"\npatterns = ["(x,_R"]', "(x,_R"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_told_before_any_work(loginfer, tmp_path, recipe, message):
    (tmp_path / "recipe.toml").write_text(recipe)
    code, printed, err = loginfer("build", "--recipe", tmp_path / "recipe.toml", "--out", tmp_path / "bench")
    assert (code, printed) == (2, "")
    assert message in err
    assert "unknown pattern" not in err


def test_places_where_nothing_can_be_written_are_told_before_any_work(loginfer, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place, message in (
        (tmp_path / "file" / "deep" / "bench", "is no folder"),
        (tmp_path / "circle", "leads nowhere"),
        (".", "is the folder you are in"),
    ):
        # There is no such graph: whoever complains about it has begun the work.
        code, _, err = loginfer("build", "nosuch", "-p", "sym", "--out", place, "--force")
        assert code == 2
        assert message in err
    code, _, err = loginfer("suite", "build", "--only", "WN-sym-*", "--out", tmp_path / "file")
    assert code == 2
    assert err.count("is no folder") == 1


def test_the_command_that_is_proposed_can_be_copied(loginfer, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, shown in (("my bench", "'my bench'"), ("-x", "./-x")):
        _, printed, _ = loginfer("build", small, "-p", "sym", "--k1", 1, "--k2", 20, "--out", name)
        assert "small-sym-pa: 1 rule, protocol sound" in printed
        assert f"loginfer audit {shown}\n" in printed


def test_a_relation_that_the_graph_has_not_is_named(loginfer, small, tmp_path):
    code, _, err = loginfer("build", small, "-r", "(x,knwos,y) -> (y,knows,x)", "--out", tmp_path / "bench")
    assert code == 2
    assert "the graph has no triples with `knwos`" in err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["-p", "symmetry", "--min-new", "-1"], "`--min-new` must be at least 0", ""),
        (["-p", "symmetry", "--match", "all"], "`--match` is for near misses", ""),
        (["-p", "symmetry", "-n", "nm", "--select", "twins"], "`--select twins` is for", "add `--match all`"),
        (["-p", "symmetry", "--inductive-share", "0.4"], "`--inductive-share` is for", "add `--inductive`"),
        (["-p", "symmetry", "--protocol", "paper", "--materialised"], "`--materialised`", "add `--protocol sound`"),
        (["-p", "symmetry", "--k1", "999"], "only 16 of 999 rules of `symmetry`", "--allow-fewer"),
        ([], "neither patterns nor rules", "give `--pattern` or `--rules`"),
    ],
)
def test_errors_speak_of_options_on_the_command_line(loginfer, tmp_path, words, message, hint):
    code, _, told = loginfer("build", "lubm", *words, "--out", tmp_path / "x")
    assert code == 2
    assert message in told
    assert hint in told


def test_errors_speak_of_keys_where_a_file_gives_them(loginfer, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('kg = "lubm"\npatterns = ["symmetry"]\nmin_new = -1\n')
    _, _, told = loginfer("build", "--recipe", recipe, "--out", tmp_path / "x")
    assert told == f"error: {recipe}: `min_new` must be at least 0, but is -1\n"
    with pytest.raises(InputError, match="`min_new` must be at least 0"):
        Recipe("lubm", ("symmetry",), min_new=-1)


def test_a_relation_that_is_called_like_a_setting_keeps_its_name(loginfer, tmp_path):
    graph = tmp_path / "graph.tsv"
    graph.write_text("a\tname\tb\n")
    words = ("build", graph, "-r", "(x,match,y) -> (y,name,x)", "--out", tmp_path / "x")
    _, _, told = loginfer(*words)
    assert "`match`" in told
