"""Rules that something else has mined: files in any dialect, and a jar that is run."""

import hashlib
import os
import stat
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.support.rule_brute_force import scored_rules

from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import KnowledgeGraph
from loginfer.systems.rules.external import External
from loginfer.systems.rules.mined import as_benchmark

GRAPH = KnowledgeGraph.from_names(
    [
        ("ann lee", "works for", "acme"),
        ("bob", "works for", "acme"),
        ("bob", "knows", "ann lee"),
        ("acme", "partOf", "Q"),
        ("ann lee", "memberOf", "Q"),
        ("bob", "type", "Person"),
        ("bob", "likes", "bob"),
    ]
)
PLAIN = KnowledgeGraph.from_names(
    [("ann", "worksFor", "acme"), ("acme", "partOf", "holding"), ("ann", "memberOf", "holding")]
)


def begun(graph=PLAIN, **settings):
    return External(**settings).begin(as_benchmark(graph, "made up"))


def read(tmp_path, text, graph=PLAIN, **settings):
    path = tmp_path / "rules.txt"
    path.write_text(text)
    mining = begun(graph, rules=str(path), **settings)
    while mining.advance():
        pass
    return mining.rules(), mining


def texts(mined, graph=PLAIN):
    rules, zero = scored_rules(mined, graph)
    return [str(scored.rule) for scored in rules] + [str(scored.head) for scored in zero]


CHAIN = "(x,worksFor,a), (a,partOf,y) -> (x,memberOf,y)"


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "confidence", "distinct"),
    [
        ("20\t15\t0.75\tmemberOf(X,Y) <= worksFor(X,A), partOf(A,Y)", 15 / 25, True),
        ("memberOf(X,Y) <= worksFor(X,A), partOf(A,Y)", 1.0, True),
        ("?a  <worksFor>  ?c  ?c  <partOf>  ?b   => ?a  <memberOf>  ?b\t0.1\t0.75\t0.9\t15\t20", 0.75, False),
        ("memberOf(X,Y) :- worksFor(X,A), partOf(A,Y).", 1.0, False),
        ("(x,worksFor,a), (a,partOf,y) -> (x,memberOf,y)", 1.0, False),
    ],
)
def test_any_dialect_becomes_path_rules_worth_what_the_file_says(tmp_path, line, confidence, distinct):
    mined, mining = read(tmp_path, f"{line}\n")
    assert texts(mined) == [CHAIN]
    assert mined.paths.confidence == pytest.approx([confidence])
    assert mined.distinct is distinct
    assert mining.notes == []


def test_amies_pca_confidence_can_be_chosen(tmp_path):
    line = "?a  <worksFor>  ?c  ?c  <partOf>  ?b   => ?a  <memberOf>  ?b\t0.1\t0.75\t0.9\t15\t20\n"
    assert read(tmp_path, line, confidence="pca")[0].paths.confidence.tolist() == [0.9]


def test_anyburls_rules_that_say_little_are_worth_less(tmp_path):
    text = "20\t15\t0.75\tmemberOf(X,holding) <= worksFor(X,A)\n200\t150\t0.75\tmemberOf(X,holding) <= \n"
    mined, _ = read(tmp_path, text)
    assert sorted(mined.paths.confidence) == pytest.approx([0.01 * 150 / 205, 0.1 * 15 / 25])


def test_whether_variables_differ_can_be_said(tmp_path):
    line = "memberOf(X,Y) <= worksFor(X,A), partOf(A,Y)\n"
    assert not read(tmp_path, line, distinct="no")[0].distinct
    assert read(tmp_path, f"{CHAIN}\n", distinct="yes")[0].distinct


def test_rules_over_unknown_names_are_left_out_and_counted(tmp_path):
    text = (
        "9\t9\t1.0\tmemberOf(X,Y) <= worksFor(X,A), partOf(A,Y)\n"
        "9\t9\t1.0\tmemberOf(X,Y) <= hires(Y,X)\n"
        "9\t9\t1.0\tmemberOf(X,nowhere) <= worksFor(X,acme)\n"
    )
    mined, mining = read(tmp_path, text)
    assert texts(mined) == [CHAIN]
    [note] = mining.notes
    assert "left out 2 of the rules" in note
    assert "1 with a relation that the graph does not have" in note
    assert "rules.txt:2: `hires`" in note


def test_rules_that_are_all_about_another_graph_are_an_error(tmp_path):
    with pytest.raises(InputError, match=r"none of the rules in .* can be used: 1 with a relation"):
        read(tmp_path, "9\t9\t1.0\tmemberOf(X,Y) <= hires(Y,X)\n")


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_a_file_without_rules_is_an_error(tmp_path, text):
    with pytest.raises(InputError, match=r"rules\.txt` holds no rule"):
        read(tmp_path, text)


def test_a_malformed_line_is_told_with_its_number_or_left_out(tmp_path):
    text = "9\t9\t1.0\tmemberOf(X,Y) <= worksFor(X,Y)\n9\t9\tmemberOf(X,Y)\n\n7\t7\t1.0\tmemberOf(X\n"
    with pytest.raises(InputError, match=r"rules\.txt:2: ") as caught:
        read(tmp_path, text)
    assert "2 lines are no rule" in str(caught.value)
    mined, mining = read(tmp_path, text, on_error="skip")
    assert len(mined) == 1
    assert "2 that cannot be read (e.g." in mining.notes[0]


def test_a_malformed_line_of_another_dialect_is_told_with_its_number(tmp_path):
    text = f"{CHAIN}\n(x,worksFor,a) ->\n"
    with pytest.raises(InputError, match=r"rules\.txt:2: "):
        read(tmp_path, text)
    assert len(read(tmp_path, text, on_error="skip")[0]) == 1


def test_rules_of_other_shapes_are_kept_as_they_are(tmp_path):
    text = f"{CHAIN}\n(x,worksFor,y), (x,memberOf,z), y != z -> (y,partOf,z)\n"
    mined, _ = read(tmp_path, text)
    assert len(mined.paths) == 1
    assert [str(scored.rule) for scored in mined.others] == text.splitlines()[1:]


def test_paths_through_types_are_left_out(tmp_path):
    text = (
        "9\t9\t1.0\tknows(X,Y) <= type(X,A), type(Y,A)\n"
        "9\t9\t1.0\ttype(X,Y) <= type(Y,X)\n"
        "9\t9\t1.0\tknows(X,acme) <= type(X,Person)\n"
        "9\t9\t1.0\ttype(X,Person) <= knows(X,A)\n"
    )
    mined, mining = read(tmp_path, text, GRAPH)
    assert len(mined) == 2
    assert "2 with a path through a type" in mining.notes[0]


def test_a_scorer_applies_the_rules(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("20\t15\t0.75\tmemberOf(X,Y) <= worksFor(X,A), partOf(A,Y)\n5\t5\t1\tx(X,Y) <= y(X,Y)\n")
    bench = as_benchmark(PLAIN, "made up")
    system = External(rules=str(path), aggregation="noisy-or")
    scorer = system.fit(bench)
    triple = [[PLAIN.entity_id("ann"), PLAIN.relation_id("memberOf"), PLAIN.entity_id("holding")]]
    triples = np.array([*triple, [0, 0, 0]], dtype=np.int32)
    assert scorer.score(triples) == pytest.approx([0.6, 0])
    assert system.restore(bench, scorer.arrays()).score(triples) == pytest.approx([0.6, 0])


@pytest.mark.parametrize("position", ["object", "subject", "relation"])
def test_noisy_or_counts_the_five_best_rules(tmp_path, position):
    wrong = (9, 1, 4, 0, 19, 2, 6)
    lines = [f"{10 + more}\t10\t{10 / (10 + more)}\tknown(X,Y) <= r{i}(X,Y)" for i, more in enumerate(wrong)]
    path = tmp_path / "rules.txt"
    path.write_text("\n".join(lines) + "\n")
    graph = KnowledgeGraph.from_names([("ann", f"r{i}", "bob") for i in range(7)] + [("eve", "known", "ada")])
    scorer = External(rules=str(path), aggregation="noisy-or").fit(as_benchmark(graph, "made up"))
    names = (graph.entity_id("ann"), graph.relation_id("known"), graph.entity_id("bob"))
    asked = np.array([names], dtype=np.int32)
    expected = 1 - np.prod([1 - 10 / (15 + more) for more in sorted(wrong)[:5]])
    assert scorer.score(asked) == pytest.approx([expected])
    own = names[("subject", "relation", "object").index(position)]
    candidates = np.array([own], dtype=np.int32)
    assert scorer.score_candidates(asked, position, candidates)[0] == pytest.approx([expected])


def test_what_is_left_out_is_said_while_fitting(tmp_path, caplog):
    path = tmp_path / "rules.txt"
    path.write_text("9\t9\t1.0\tmemberOf(X,Y) <= worksFor(X,Y)\n5\t5\t1\tx(X,Y) <= y(X,Y)\n")
    External(rules=str(path)).fit(as_benchmark(PLAIN, "made up"))
    assert "loginfer: left out 1 of the rules" in caplog.text


def test_bad_settings_and_missing_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="neither a rule file nor a jar"):
        begun()
    with pytest.raises(InputError, match="both a rule file and a jar"):
        begun(rules="a", jar="b")
    with pytest.raises(UnknownNameError, match="did you mean `anyburl`"):
        begun(rules="a", dialect="anyburll")
    with pytest.raises(InputError, match=r"no file or folder `nowhere\.txt`"):
        begun(rules="nowhere.txt").advance()
    with pytest.raises(InputError, match="is a folder"):
        begun(rules=str(tmp_path)).advance()


# -- the jar ---------------------------------------------------------------------------------------

# Behaves like AnyBURL as far as its files are concerned. What else it does stands in the jar's place.
FAKE = """#!{python}
import os, sys, time
assert sys.argv[1] == "-cp" and sys.argv[3] == "de.unima.ki.anyburl.Learn"
config = dict(line.strip().split(" = ") for line in open(sys.argv[4]))
rows = [line.rstrip("\\n").split("\\t") for line in open(config["PATH_TRAINING"])]
assert all(len(row) == 3 and not any(" " in name or len(name) < 2 for name in row) for row in rows)
last = config["SNAPSHOTS_AT"].split(",")[-1]
def write(second, text):
    with open(config["PATH_OUTPUT"] + "-" + second, "w") as stream:
        stream.write(text)
print("threads:", config["WORKER_THREADS"], flush=True)
relations = {{}}
for s, r, o in rows:
    relations.setdefault(r, []).append((s, o))
{behaviour}
"""


@pytest.fixture
def fake(tmp_path):
    """Make a program that runs jars, and a jar."""
    jar = tmp_path / "a jar.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")

    def make(behaviour):
        java = tmp_path / "java"
        java.write_text(FAKE.format(python=sys.executable, behaviour=behaviour))
        java.chmod(java.stat().st_mode | stat.S_IXUSR)
        return {"jar": str(jar), "java": str(java), "seconds": 1, "grace": 30.0}

    return make


def run(settings, graph=GRAPH):
    mining = begun(graph, **settings)
    while mining.advance():
        pass
    return mining.rules(), mining


GOOD = """
r = sorted(relations)  # the order of the ids
e = sorted({x for row in rows for x in row[::2]})
loop = next(r for r, pairs in relations.items() if any(s == o for s, o in pairs))
write(last, "\\n".join([
    f"20\\t15\\t0.75\\t{r[2]}(X,Y) <= {r[5]}(X,A), {r[3]}(A,Y)",
    f"20\\t15\\t0.75\\t{r[2]}(X,{e[1]}) <= {r[5]}(X,{e[2]})",
    f"20\\t15\\t0.75\\t{r[0]}(X,Y) <= {r[1]}(X,me_myself_i), {r[0]}(Y,X)",
    f"20\\t15\\t0.75\\t{r[0]}(X,Y) <= {r[4]}(X,A), {r[4]}(Y,A)",
]) + "\\n")
"""


def test_a_jar_gets_ids_and_its_rules_come_back_with_names(fake):
    mined, mining = run(fake(GOOD) | {"threads": 3})
    names = list(GRAPH.relations)
    assert names == ["knows", "likes", "memberOf", "partOf", "type", "works for"]
    assert texts(mined, GRAPH) == [
        f"(x,<works for>,{GRAPH.entities[2]}) -> (x,memberOf,{GRAPH.entities[1]})",
        "(x,<works for>,a), (a,partOf,y) -> (x,memberOf,y)",
        "(x,likes,x), (y,knows,x) -> (x,knows,y)",
    ]
    assert mined.paths.confidence == pytest.approx([0.6, 0.6])
    assert mined.distinct
    assert "1 with a path through a type" in mining.notes[1]


def test_the_jars_checksum_is_recorded(fake):
    settings = fake(GOOD)
    _, mining = run(settings)
    assert mining.jar_sha256 == hashlib.sha256(Path(settings["jar"]).read_bytes()).hexdigest()
    assert mining.jar_sha256 in mining.notes[0]


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("print('OutOfMemoryError: heap'); sys.exit(3)", "failed with exit code 3; it said last:.*OutOfMemory"),
        ("sys.stderr.write('no luck'); sys.exit(1)", "no luck"),
        ("os.kill(os.getpid(), 9)", "failed with exit code -9"),
        ("pass", "has ended without writing any rules"),
        ("write(last, '')", "has ended without writing any rules"),
        ("write(last, 'bla bla\\n')", "has written something else than rules"),
        ("write(last, '2\\t2\\t1\\tr9(X,Y) <= r8(X,Y)\\n')", "can be used: 1 with a relation"),
    ],
)
def test_a_jar_that_fails_is_an_error_with_what_it_said(fake, behaviour, message):
    with pytest.raises(InputError, match=f"(?s){message}"):
        run(fake(behaviour))


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


HANGING = """
import subprocess
child = subprocess.Popen(["sleep", "1000"])
with open({pids!r} + ".part", "w") as stream:
    stream.write(f"{{os.getpid()}} {{child.pid}}")
os.rename({pids!r} + ".part", {pids!r})
{before}
time.sleep(1000)
"""


def gone(path):
    """Wait until all processes whose numbers stand in a file are gone."""
    pids = [int(pid) for pid in path.read_text().split()]
    for _ in range(200):
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


def wait_for(mining, path):
    """Go on until a file is there."""
    for _ in range(200):
        if path.exists():
            return
        assert mining.advance()
    raise AssertionError(f"{path} was never written")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
class TestHanging:
    def test_a_jar_that_hangs_is_ended_with_its_children(self, fake, tmp_path):
        pids = tmp_path / "pids"
        settings = fake(HANGING.format(pids=str(pids), before="print('working', flush=True)"))
        with pytest.raises(InputError, match=r"(?s)has not come to its end after .* said last:.*working"):
            run(settings | {"grace": 2.0})
        assert gone(pids)

    def test_a_jar_that_has_written_its_rules_and_hangs_is_ended_and_they_are_used(self, fake, tmp_path):
        pids = tmp_path / "pids"
        settings = fake(HANGING.format(pids=str(pids), before=GOOD))
        assert len(run(settings | {"grace": 2.0})[0]) == 3
        assert gone(pids)

    def test_what_a_jar_has_written_so_far_can_be_looked_at_while_it_goes_on(self, fake, tmp_path):
        pids, ready = tmp_path / "pids", tmp_path / "ready"
        before = GOOD.replace("write(last", "write('10'") + f"\nopen({str(ready)!r}, 'w')"
        settings = fake(HANGING.format(pids=str(pids), before=before)) | {"seconds": 1000}
        mining = begun(GRAPH, **settings)
        wait_for(mining, ready)
        what, done, total = mining.progress()
        assert (what, total) == ("running the jar", 1000)
        assert done < 1000
        assert len(mining.rules()) == 3
        notes = list(mining.notes)
        assert len(mining.rules()) == 3
        assert mining.notes == notes
        assert mining.advance()
        assert all(alive(int(pid)) for pid in pids.read_text().split())
        del mining
        assert gone(pids)

    def test_looking_at_a_jar_that_has_written_nothing_yet_does_not_end_it(self, fake, tmp_path):
        ready, go = tmp_path / "ready", tmp_path / "go"
        waiting = f"open({str(ready)!r}, 'w')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\n"
        mining = begun(GRAPH, **fake(waiting + GOOD))
        wait_for(mining, ready)
        assert len(mining.rules()) == 0
        go.touch()
        while mining.advance():
            pass
        assert len(mining.rules()) == 3

    def test_a_mining_that_is_forgotten_leaves_no_process_behind(self, fake, tmp_path):
        pids = tmp_path / "pids"
        mining = begun(GRAPH, **fake(HANGING.format(pids=str(pids), before="")))
        wait_for(mining, pids)
        del mining
        assert gone(pids)


def test_a_jar_that_is_none_is_refused(fake, tmp_path):
    settings = fake("pass")
    (tmp_path / "text.jar").write_text("no jar")
    for path, message in [
        (tmp_path / "none.jar", "no jar `.*none.jar`"),
        (tmp_path, "is no jar"),
        (tmp_path / "text.jar", "is no jar"),
    ]:
        with pytest.raises(InputError, match=message):
            run(settings | {"jar": str(path)})


def test_a_missing_java_is_told(fake):
    with pytest.raises(InputError, match="no program `no-such-java`"):
        run(fake("pass") | {"java": "no-such-java"})
