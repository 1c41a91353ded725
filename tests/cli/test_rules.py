import json
import os
import random

import pytest

from loginfer.logic.rule_files import read_rules

TRIPLES = "ann\tparent\tbob\nbob\tparent\tcem\ncem\tparent\tdan\n"
GRANDPARENT = "(x,parent,y), (y,parent,z) -> (x,grandparent,z)"
ANCESTOR = "(x,parent,y), (y,parent,z) -> (x,parent,z)"


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "family.tsv"
    path.write_text(TRIPLES)
    return path


@pytest.mark.parametrize("engine", ["native", "duckdb"])
def test_rank_gives_supports_and_texts(loginfer, graph, engine):
    code, out, err = loginfer("rules", "rank", graph, "--pattern", "composition", "--engine", engine, "--json")
    assert code == 0, err
    assert json.loads(out) == {
        "pattern": "composition",
        "text": "(x,_R,y), (y,_S,z) -> (x,_T,z)",
        "nonzero": 1,
        "bodies": [{"relations": ["parent", "parent"], "body": "(x,parent,y), (y,parent,z)", "support": 2}],
    }


def test_rank_takes_any_pattern_as_text_and_writes_a_file(loginfer, graph, tmp_path):
    out = tmp_path / "ranked.tsv"
    code, _, err = loginfer(
        "rules", "rank", graph, "--pattern", "(x,_R,y), (x,_S,z), y != z -> (y,_T,z)", "--all", "--out", out
    )
    assert code == 0, err
    assert "0 bodies" in err
    assert out.read_text() == ""


@pytest.fixture
def wide(tmp_path):
    """A graph of four relations."""
    rng, path = random.Random(2), tmp_path / "wide.tsv"
    names = [f"e{i}" for i in range(25)]
    rows = {(rng.choice(names), rng.choice(["r1", "r2", "r3", "_S"]), rng.choice(names)) for _ in range(160)}
    path.write_text("".join("\t".join(row) + "\n" for row in sorted(rows)))
    return path


def files_of(folder):
    return {p.name: p.read_text() for p in folder.glob("*.txt") if not p.name.startswith(("rules", "README"))}


@pytest.mark.parametrize("pattern", ["composition", "intersection", "symmetry"])
@pytest.mark.parametrize("head", ["drawn", "best", "typed"])
def test_rank_with_heads_writes_the_rules_that_build_selects(loginfer, wide, tmp_path, pattern, head):
    rules, common = tmp_path / "rules.txt", ("--protocol", "paper", "--k2", 20, "--seed", 5)
    ranked = ("rules", "rank", wide, "-p", pattern, "--top", 3, "--head", head, "--seed", 5, "--out", rules)
    code, out, err = loginfer(*ranked)
    assert code == 0, err
    assert "rule" in out
    assert f"loginfer build {wide} --rules {rules} --out FOLDER" in " ".join(err.split())
    heads = () if pattern == "symmetry" else ("--head", head)
    for name, source in (("selected", ("-p", pattern, "--k1", 3, *heads)), ("given", ("--rules", rules))):
        code, _, err = loginfer("build", wide, *source, *common, "--out", tmp_path / name)
        assert code == 0, err
    selected, given = (read_rules(tmp_path / name / "rules.txt").program for name in ("selected", "given"))
    assert [str(rule) for rule in selected] == [str(rule) for rule in given]
    assert files_of(tmp_path / "selected") == files_of(tmp_path / "given")
    supports = [dict(rule.extra)["support"] for rule in read_rules(rules).rules]
    assert supports == sorted(supports, key=int, reverse=True)


def test_open_heads_have_to_be_filled_in(loginfer, wide, tmp_path):
    rules = tmp_path / "rules.txt"
    code, _, err = loginfer("rules", "rank", wide, "-p", "inter", "--head", "open", "--top", 2, "--out", rules)
    assert code == 0, err
    assert "fill in the heads, then:" in err
    code, _, err = loginfer("build", wide, "--rules", rules, "--out", tmp_path / "out")
    assert code == 2
    assert "rules.txt:1: expected a name" in err
    assert "`_T` is a template" in err
    rules.write_text(rules.read_text().replace("_T", "r9"))
    code, _, err = loginfer("build", wide, "--rules", rules, "--min-new", 1, "--out", tmp_path / "out")
    assert code == 0, err


def test_bodies_without_a_head_are_left_out_and_counted(loginfer, graph, tmp_path):
    words = ("rules", "rank", graph, "-p", "composition", "--head", "drawn")
    code, _, err = loginfer(*words, "--out", tmp_path / "none.txt")
    assert code == 0
    assert "1 body leaves no predicate for a head and is left out" in err
    assert (tmp_path / "none.txt").read_text() == ""
    assert json.loads(loginfer(*words, "--json")[1])["bodies"][0]["rule"] is None
    code, _, err = loginfer(*words[:-1], "opne")
    assert code == 2
    assert "did you mean `open`?" in err


def test_a_relation_that_only_the_rules_know_is_not_its_own_nearest_name(loginfer, graph):
    code, _, err = loginfer("rules", "apply", graph, "(x,emptyRel,y) -> (y,parent,x)")
    assert code == 2
    assert "unknown relation `emptyRel`" in err
    assert "did you mean `emptyRel`" not in err


@pytest.mark.parametrize("engine", ["native", "duckdb"])
def test_apply_writes_what_follows_in_one_step_or_to_the_end(loginfer, graph, tmp_path, engine):
    one, all_ = tmp_path / "one.tsv", tmp_path / "all.tsv"
    code, out, err = loginfer("rules", "apply", graph, ANCESTOR, "--out", one, "--engine", engine, "--json")
    assert code == 0, err
    assert json.loads(out)["new"] == 2
    assert one.read_text() == "ann\tparent\tcem\nbob\tparent\tdan\n"
    code, out, err = loginfer(
        "rules", "apply", graph, ANCESTOR, "--closure", "--out", all_, "--engine", engine, "--json"
    )
    assert code == 0, err
    assert json.loads(out)["new"] == 3
    assert json.loads(out)["rounds"] == 2
    assert "ann\tparent\tdan" in all_.read_text()


@pytest.mark.parametrize("rule", [ANCESTOR, GRANDPARENT, "(x,parent,y) -> (x,type,Parent)"])
@pytest.mark.parametrize("typed", ["", "ann\ttype\tPerson\n", "ann\trdf:type\tPerson\n"])
def test_duckdb_answers_the_same_from_disk_as_from_memory(loginfer, tmp_path, monkeypatch, rule, typed):
    graph = tmp_path / "family.tsv"
    graph.write_text(TRIPLES + typed)
    outputs = []
    for limit in (2**40, 0):
        monkeypatch.setattr("loginfer.cli.common.OUT_OF_CORE_BYTES", limit)
        out = tmp_path / f"new-{limit}.tsv"
        words = ["rules", "apply", graph, rule, "--closure", "--include-graph", "--out", out]
        code, _, err = loginfer(*words, "--engine", "duckdb", "--memory-limit", "500MB")
        assert code == 0, err
        outputs.append(out.read_text())
    assert outputs[0] == outputs[1]
    code, _, err = loginfer("rules", "apply", graph, rule, "--closure", "--include-graph", "--out", tmp_path / "n.tsv")
    assert (tmp_path / "n.tsv").read_text() == outputs[0]


def test_a_memory_limit_needs_the_engine_that_keeps_it(loginfer, graph):
    code, _, err = loginfer("rules", "apply", graph, ANCESTOR, "--memory-limit", "1GB")
    assert code == 2
    assert "--engine duckdb" in err


def test_the_head_of_a_rule_may_be_a_new_relation(loginfer, graph, tmp_path):
    out = tmp_path / "new.tsv"
    assert loginfer("rules", "apply", graph, GRANDPARENT, "--out", out)[0] == 0
    assert out.read_text() == "ann\tgrandparent\tcem\nbob\tgrandparent\tdan\n"


@pytest.mark.parametrize("engine", ["native", "duckdb"])
def test_the_lubm_rules_derive_the_known_numbers(loginfer, tmp_path, engine):
    code, out, err = loginfer("rules", "apply", "lubm", "lubm-107", "--engine", engine, "--json")
    assert code == 0, err
    assert json.loads(out)["new"] == 75_183
    target = tmp_path / "new.tsv"
    code, out, err = loginfer(
        "rules", "apply", "lubm", "lubm-107", "--closure", "--out", target, "--engine", engine, "--json"
    )
    assert code == 0, err
    assert json.loads(out)["rules"] == 107
    assert json.loads(out)["new"] == 151_108
    assert target.read_bytes().count(b"\n") == 151_108


def test_explain_shows_rule_and_premises(loginfer, graph):
    code, out, err = loginfer("rules", "explain", graph, GRANDPARENT, "ann", "grandparent", "cem")
    assert code == 0, err
    assert "follows by rule 1" in out
    assert "because (ann, parent, bob)" in out
    assert "because (bob, parent, cem)" in out


def test_explain_says_that_a_triple_does_not_follow(loginfer, graph):
    code, out, _ = loginfer("rules", "explain", graph, GRANDPARENT, "ann", "grandparent", "bob")
    assert code == 0
    assert "does not follow" in out


def test_explain_over_several_steps_ends_at_the_graph(loginfer, graph):
    code, out, err = loginfer("rules", "explain", graph, ANCESTOR, "ann", "parent", "dan", "--closure", "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert answer["follows"]
    assert answer["depth"] == 2
    explained = {tuple(step["triple"]) for step in answer["steps"]}
    known = {tuple(line.split("\t")) for line in TRIPLES.splitlines()}
    for step in answer["steps"]:
        for premise in step["reasons"][0]["premises"]:
            assert tuple(premise) in known | explained
    assert tuple(answer["steps"][-1]["triple"]) == ("ann", "parent", "dan")


def test_names_may_be_given_by_their_last_part(loginfer):
    code, out, err = loginfer(
        "rules",
        "explain",
        "lubm",
        "lubm-107",
        "http://www.Department0.University0.edu/Lecturer0",
        "type",
        "Faculty",
        "--json",
    )
    assert code == 0, err
    assert json.loads(out)["follows"]


def test_rules_convert_round_trip_through_rdfox(loginfer, tmp_path):
    there, back = tmp_path / "lubm.dlog", tmp_path / "lubm.rules"
    assert loginfer("rules", "convert", "lubm-107", "--to", "rdfox", "--out", there)[0] == 0
    assert loginfer("rules", "convert", there, "--to", "arrow", "--out", back)[0] == 0
    code, direct, err = loginfer("rules", "convert", "lubm-107", "--to", "arrow")
    assert code == 0, err
    assert back.read_text() == direct


def test_rules_convert_puts_the_text_into_json_if_it_goes_nowhere_else(loginfer):
    code, out, err = loginfer("rules", "convert", GRANDPARENT, "--to", "datalog", "--json")
    assert code == 0, err
    assert json.loads(out) == {
        "rules": 1,
        "from": "arrow",
        "to": "datalog",
        "out": None,
        "text": "grandparent(X,Z) :- parent(X,Y), parent(Y,Z).\n",
    }


def test_one_misspelt_rule_of_many_is_a_note_or_in_strict_mode_an_error(loginfer, graph, tmp_path):
    rules = tmp_path / "two.rules"
    rules.write_text(f"{ANCESTOR}\n(x,parnt,y) -> (y,child,x)\n")
    code, out, err = loginfer("rules", "apply", graph, rules, "--json")
    assert code == 0, err
    assert json.loads(out)["new"] == 2
    assert "1 of 2 rules" in err
    assert "`parnt`" in err
    code, _, err = loginfer("rules", "apply", graph, rules, "--strict")
    assert code == 2
    assert "did you mean `parent`" in err


def test_explain_claims_nothing_about_the_closure_for_a_triple_of_the_graph(loginfer, graph, tmp_path):
    # (ann, parent, bob) follows in two steps, from its own consequence.
    rules = tmp_path / "two.rules"
    rules.write_text("(x,parent,y) -> (y,child,x)\n(x,child,y) -> (y,parent,x)\n")
    code, out, err = loginfer("rules", "explain", graph, rules, "ann", "parent", "bob", "--closure")
    assert code == 0, err
    assert "is in the graph" in out
    assert "from the rules" not in out


def test_a_long_table_is_printed_line_by_line(loginfer, tmp_path, monkeypatch):
    graph = tmp_path / "graph.tsv"
    graph.write_text("".join(f"a{j}\trel{i}\tb\n" for i in range(3) for j in range(i + 1)))
    monkeypatch.setattr("loginfer.cli.rules.LONG", 2)
    code, out, err = loginfer("rules", "rank", graph, "--pattern", "symmetry", "--all")
    assert code == 0, err
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["3", "rel2(x,y)"],
        ["2", "rel1(x,y)"],
        ["1", "rel0(x,y)"],
    ]


@pytest.mark.parametrize("columns", [None, "80", "0", "wide"])
def test_a_piped_table_has_100_columns_unless_told_otherwise(loginfer, tmp_path, monkeypatch, columns):
    graph = tmp_path / "graph.tsv"
    graph.write_text(f"a\t{'r' * 400}\tb\n")
    monkeypatch.delenv("COLUMNS") if columns is None else monkeypatch.setenv("COLUMNS", columns)
    code, out, err = loginfer("rules", "rank", graph, "--pattern", "symmetry", "--full-names")
    assert code == 0, err
    assert out.count("r") == 400 + len("support") - len("suppot")
    assert max(map(len, out.splitlines())) == (80 if columns == "80" else 100)
    assert "1 body of `symmetry` has a witness" in err


def test_patterns_are_listed(loginfer):
    code, out, _ = loginfer("rules", "patterns", "--json")
    assert code == 0
    assert [p["name"] for p in json.loads(out)][:7] == [
        "symmetry",
        "inversion",
        "hierarchy",
        "composition",
        "intersection",
        "triangle",
        "diamond",
    ]


BAD = {
    "rules of another graph": (["apply", "{g}", "lubm-107"], "unknown relation"),
    "an unbound head variable": (["apply", "{g}", "(x,parent,y) -> (x,parent,z)"], "`z`"),
    "an unknown relation": (["apply", "{g}", "(x,parnt,y) -> (y,parent,x)"], "did you mean `parent`"),
    "a rule that does not parse": (["apply", "{g}", "(x,parent y) -> (y,parent,x)"], "column"),
    "a pattern that does not parse": (["rank", "{g}", "--pattern", "(x,_R,y -> (y,_R,x)"], "column"),
    "an unknown pattern": (["rank", "{g}", "--pattern", "dimond"], "diamond"),
    "a fixed relation nobody has": (
        ["rank", "{g}", "--pattern", "(x,_R,y), (y,parnt,z) -> (x,_R,z)"],
        "did you mean `parent`",
    ),
    "a missing rule file": (["apply", "{g}", "none.rules"], "none.rules"),
    "an unknown shipped rule set": (["apply", "{g}", "lubm-108"], "lubm-107"),
    "an unknown constant": (["explain", "{g}", ANCESTOR, "anne", "parent", "bob"], "ann"),
    "an unknown relation in a triple": (["explain", "{g}", ANCESTOR, "ann", "parents", "bob"], "parent"),
    "an unknown dialect": (["convert", "lubm-107", "--to", "rdfix"], "rdfox"),
    "a dialect misspelt for a shipped rule set": (["convert", "lubm-19", "--from", "rdfix", "--to", "sql"], "rdfox"),
    "a constant that nobody has": (["apply", "{g}", "(x,parent,bobb) -> (x,parent,x)"], "did you mean `bob`"),
    "a constant of a pattern that nobody has": (
        ["rank", "{g}", "--pattern", "(x,_R,bobb) -> (x,_S,x)"],
        "did you mean `bob`",
    ),
    "a constant that nobody has, when explaining": (
        ["explain", "{g}", "(x,parent,bobb) -> (x,parent,x)", "ann", "parent", "bob"],
        "did you mean `bob`",
    ),
    "a limit without a closure": (["apply", "{g}", ANCESTOR, "--max-triples", "1"], "--closure"),
    "a graph to include into nothing": (["apply", "{g}", ANCESTOR, "--include-graph"], "--out"),
    "an ending nobody knows": (["apply", "{g}", ANCESTOR, "--out", "new.foo"], ".parquet"),
    "a device to write to": (["convert", "lubm-19", "--to", "sql", "--out", os.devnull, "--force"], "device"),
    "a rule file without rules": (["convert", os.devnull, "--to", "sql"], "no rule"),
    **{
        f"the amount of memory `{limit}`": (
            ["rank", "{g}", "--pattern", "symmetry", "--engine", "duckdb", "--memory-limit", limit],
            "such as 500MB",
        )
        for limit in ("much", "", "0", "-1GB", "none", "100PB")
    },
    "a closure beyond its limit": (["apply", "{g}", ANCESTOR, "--closure", "--max-rounds", "1"], "round"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_clear_message(loginfer, graph, what):
    words, expected = BAD[what]
    code, out, err = loginfer("rules", *[w.replace("{g}", str(graph)) for w in words])
    assert code == 2, err
    assert out == ""
    assert err.startswith("error: ")
    assert expected in err
    assert "Traceback" not in err


@pytest.mark.data
def test_the_diamonds_of_fb15k_237_are_ranked_by_support_then_text(loginfer, data_folder):
    code, out, err = loginfer("rules", "rank", "fb15k-237", "--pattern", "diamond", "--top", "200", "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert answer["nonzero"] == 98_023
    assert len(answer["bodies"]) == 200
    assert answer["bodies"][0]["support"] == 4_541_048
    keys = [(-body["support"], body["body"]) for body in answer["bodies"]]
    assert keys == sorted(keys)


def test_names_may_be_given_by_their_label():
    from loginfer.cli.common import ShownNames, shown
    from loginfer.errors import InputError
    from loginfer.kg.graph import KnowledgeGraph, resolve_entity, resolve_relation

    graph = KnowledgeGraph.from_names([("/p/1", "/r/knows", "/p/2"), ("/p/3", "/r/knows", "/p/2")])
    graph.labels = {"/p/1": "Ann", "/p/2": "Bob", "/p/3": "Ann", "/r/knows": "is acquainted with"}
    assert resolve_entity(graph, "Bob") == graph.entity_id("/p/2")
    assert resolve_entity(graph, "Ann (3)") == graph.entity_id("/p/3")
    assert resolve_relation(graph, "is acquainted with") == graph.relation_id("/r/knows")
    with pytest.raises(InputError, match="`Ann` may be any of `/p/1`, `/p/3`"):
        resolve_entity(graph, "Ann")
    assert shown(("/p/1", "/r/knows", "/p/2"), ShownNames(graph)) == "(Ann (1), is acquainted with, Bob)"
