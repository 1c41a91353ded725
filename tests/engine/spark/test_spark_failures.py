"""What can go wrong with Spark: one clear message each, soon, and nothing left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loginfer.engine.spark import session as application
from loginfer.engine.spark import session as launching
from loginfer.engine.spark.engine import SparkEngine
from loginfer.engine.spark.session import (
    _folder,
    explain,
    java_version,
    require_connect,
    require_java,
    require_pyspark,
    spark_application,
    translated_errors,
)
from loginfer.errors import InputError, LimitError, OutputError
from loginfer.kg import KnowledgeGraph

GRAPH = KnowledgeGraph.from_names([(f"a{i}", "R", f"b{i % 5}") for i in range(3000)])


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(InputError, match="needs PySpark") as caught:
        SparkEngine(GRAPH)
    assert "pip install '.[spark]'" in str(caught.value)


@pytest.mark.parametrize("version", ["3.5.6", "5.0.0.dev1"])
def test_a_version_that_does_not_work_is_refused(monkeypatch, version):
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(InputError, match=f"PySpark {version} is installed"):
        require_pyspark()


def test_missing_packages_for_spark_connect_are_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="grpc") as caught:
        require_connect()
    assert "pip install '.[spark]'" in str(caught.value)


def test_a_machine_without_java_is_told_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InputError, match="Spark needs Java, and there is none here"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"JAVA_HOME is `.*nowhere`, where there is none"):
        require_java()


@pytest.mark.parametrize(("shown", "version"), [("1.8.0_402", 8), ("11.0.22", 11)])
def test_a_java_that_is_too_old_is_refused(monkeypatch, tmp_path, shown, version):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{shown}\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_version(str(java)) == version
    with pytest.raises(InputError, match=f"needs Java 17 or newer, and `.*` is Java {version}"):
        require_java()
    java.write_text("#!/bin/sh\nexit 1\n")
    assert java_version(str(java)) is None


@pytest.fixture
def closed_port():
    """A port at which nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def assert_gone(group):
    """Fail if a process of a group, such as Java, runs on; the last ones may take a moment to go."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("a process runs on")


def build_apart(folder, *words, **environment):
    """Build in a process of its own, which has no Spark yet; return what it says.

    It must fail as every command does: with code 2, one message, and nothing left behind.
    """
    graph = folder / "graph.tsv"
    graph.write_text("a\tR\tb\nb\tR\tc\n")
    before = sorted(folder.iterdir())
    command = [sys.executable, "-c", "from loginfer.cli import main; main()", "-q", "build", str(graph)]
    command += ["-p", "composition", "--engine", "spark", "--out", str(folder / "out"), *words]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "1000", **environment},
    ) as run:
        out, err = run.communicate(timeout=300)
    assert (run.returncode, out) == (2, "")
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 2  # what is wrong, and a hint
    assert sorted(folder.iterdir()) == before
    assert_gone(run.pid)
    return err


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_master_that_does_not_answer_is_told_at_once(needs_spark, closed_port, scheme, tmp_path):
    if scheme == "sc":
        pytest.importorskip("grpc")
    begun = time.monotonic()
    said = build_apart(tmp_path, "--master", f"{scheme}://127.0.0.1:{closed_port}")
    assert f"no answer from the Spark master `{scheme}://127.0.0.1:{closed_port}`: connection refused" in said
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("master", "reason"),
    [
        ("nonsense", "Master must either"),  # Java ends at once
        ("local[x]", "SparkException: Could not parse Master URL: 'local[x]'"),  # Spark says it in Java
    ],
)
def test_a_master_that_spark_does_not_know_is_told_in_one_line(needs_spark, tmp_path, master, reason):
    said = build_apart(tmp_path, "--master", master, "--spark-conf", "spark.driver.memory=512m")
    assert f"does not start with master `{master}`: {reason}" in said


@pytest.fixture
def silent_port():
    """A port at which somebody takes connections, and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_what_listens_but_is_no_server_of_spark_connect_is_told(needs_spark, silent_port, monkeypatch):
    pytest.importorskip("grpc")
    monkeypatch.setattr(launching, "PATIENCE", 0.5)
    with pytest.raises(InputError, match="something listens there, but does not let us in") as caught:
        SparkEngine(GRAPH, master=f"sc://127.0.0.1:{silent_port}")
    assert "a server of Spark Connect" in str(caught.value)


def test_what_listens_but_is_no_master_is_told(needs_spark, monkeypatch, tmp_path):
    class Context:
        """What Spark gives after a minute in which no master answered; it is about to stop."""

        applicationId = "spark-application-1792000000000"  # noqa: N815
        _gateway = _jvm = None

        def __init__(self, conf, gateway):
            pass

    class Gateway:
        proc = None

    monkeypatch.setattr("pyspark.SparkContext", Context)
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", lambda conf, words: Gateway())
    with pytest.raises(InputError, match="something listens there, but does not let us in"):
        launching.launch("spark://127.0.0.1:7077", {}, tmp_path / "log")


@pytest.mark.parametrize("url", ["spark://", "spark://:7077", "sc://"])
def test_an_address_without_a_host_is_told(url):
    with pytest.raises(InputError, match=f"no answer from the Spark master `{url}`: no host given"):
        launching.knock(url, 7077)


def test_an_address_with_a_bad_port_is_told():
    with pytest.raises(InputError, match="`spark://here:there` is no master of Spark"):
        launching.knock("spark://here:there", 7077)


def test_a_setting_that_java_does_not_take_is_told_in_one_line(needs_spark, tmp_path):
    said = build_apart(tmp_path, "--spark-conf", "spark.driver.memory=lots")
    assert "does not start with master `local[*]`: Invalid maximum heap size: -Xmxlots" in said


def test_a_command_without_java_says_so(tmp_path):
    pytest.importorskip("pyspark")
    said = build_apart(tmp_path, PATH="", JAVA_HOME="")
    assert "Spark needs Java, and there is none here" in said


def test_a_directory_may_be_given_from_where_one_is(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert _folder("scratch").parent == tmp_path / "scratch"


def test_another_master_than_the_running_one_is_refused(spark):
    with pytest.raises(InputError, match=r"runs already in this process, with master `local\[2\]`"):
        SparkEngine(GRAPH, master="local[1]")
    with pytest.raises(InputError, match="with other settings"), spark_application(settings={"spark.x": "1"}):
        pass


def test_a_session_of_somebody_else_is_used_and_left_alone(spark):
    with SparkEngine(GRAPH) as ours:
        theirs = ours._session.spark
        with SparkEngine(GRAPH, spark=theirs) as engine:
            assert engine._session.spark is not theirs
        assert theirs.sql("SELECT 1 AS one").toArrow().to_pydict() == {"one": [1]}
        with pytest.raises(InputError, match="settings of Spark cannot be given"):
            SparkEngine(GRAPH, spark=theirs, settings={"spark.x": "1"})


def test_a_directory_that_cannot_be_made_is_an_error(spark, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot make a folder for Spark"):
        SparkEngine(GRAPH, directory=tmp_path / "file" / "inside")


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 KB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"cannot mount a small disk: {error}")
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)  # Java may still look at it


def test_a_full_disk_is_told_by_the_command_line(spark, small_disk, loginfer, tmp_path):
    rows = (f"a{i}\tR{i % 7}\tb{i * 7919 % 9973}\n" for i in range(20_000))
    (tmp_path / "graph.tsv").write_text("".join(rows))
    words = ["build", tmp_path / "graph.tsv", "-p", "composition", "--scratch", small_disk]
    for engine, message in (("spark", "Spark has no space left on a disk"), ("duckdb", "No space left on")):
        code, out, err = loginfer(*words, "--engine", engine, "--out", tmp_path / "out")
        assert (code, out) == (2, "")
        assert message in err
        assert "hoose a directory with more" in err
        assert not (tmp_path / "out").exists()
        assert list(small_disk.iterdir()) == []


def test_a_full_disk_on_the_way_to_java_is_told_as_such():
    with pytest.raises(OutputError, match="no space left on a disk"), translated_errors():
        raise OSError(errno.ENOSPC, "No space left on device")


class Py4JJavaError(Exception):
    """What comes out of Java, as far as the translation looks at it."""

    __module__ = "py4j.protocol"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("Job aborted.\nCaused by: java.io.IOException: No space left on device", OutputError, "no space left"),
        ("x\nCaused by: java.io.IOException: Disk quota exceeded", OutputError, "no space left"),
        ("x\nCaused by: java.lang.OutOfMemoryError: Java heap space", LimitError, "ran out of memory"),
        ("[INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'x'", InputError, "does not take a setting"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x", InputError, "cannot read its files"),
        (
            ": org.apache.spark.SparkException: Job 3 failed\n\tat a.B(C.java:1)",
            OutputError,
            "Spark failed: SparkException: Job 3 failed",
        ),
        (
            ": a.b.First: one\n\tat x\nCaused by: a.b.Second: two\n\tat y\nCaused by: a.b.Third: three",
            OutputError,
            "Spark failed: Third: three",
        ),
        (
            ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
            OutputError,
            "connection to Spark is lost",
        ),
    ],
)
def test_what_java_says_becomes_one_line(text, kind, message):
    with pytest.raises(kind, match=message) as caught, translated_errors():
        raise Py4JJavaError(text)
    assert "\tat " not in caught.value.message
    assert "\n" not in caught.value.message
    outer = RuntimeError("Spark")
    outer.__cause__ = Py4JJavaError(text)
    assert isinstance(explain(outer), kind) or kind is OutputError


def test_an_error_that_java_cannot_tell_any_more_has_a_message():
    class Py4JJavaError(Exception):
        __module__ = "py4j.protocol"

        def __str__(self):
            raise ConnectionRefusedError("Java is gone")

    with pytest.raises(OutputError, match="Spark failed: Py4JJavaError"), translated_errors():
        raise Py4JJavaError


def test_java_that_is_gone_and_other_mistakes_are_told_apart():
    with pytest.raises(OutputError, match="connection to Spark is lost"), translated_errors():
        raise ConnectionRefusedError("nobody there")
    with pytest.raises(ZeroDivisionError), translated_errors():
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("ended", "code", "message"),
    [
        ("os.getpid(), signal.SIGINT", 130, "interrupted; nothing was left half-written"),
        ("self.context._gateway.proc.pid, signal.SIGKILL", 2, "error: the connection to Spark is lost"),
    ],
)
def test_ctrl_c_and_the_end_of_java_end_the_command_and_leave_nothing(needs_spark, tmp_path, ended, code, message):
    script = (
        "import os, signal, sys, threading\n"
        "from loginfer.cli import main\n"
        "from loginfer.engine.spark import session as database\n"
        "load = database.SparkDatabase.create\n"
        "def create(self, table, query):\n"
        f"    threading.Timer(2, os.kill, ({ended})).start()\n"
        "    return load(self, table, 'SELECT count(*) AS n FROM range(1000000000000)')\n"
        "database.SparkDatabase.create_partitioned = create\n"
        "main(sys.argv[1:])\n"
    )
    (tmp_path / "graph.tsv").write_text("a\tR\tb\n")
    command = [sys.executable, "-c", script, "-q", "rules", "rank", str(tmp_path / "graph.tsv"), "-p", "symmetry"]
    command += ["--engine", "spark", "--master", "local[1]", "--scratch", str(tmp_path / "scratch")]
    command += ["--spark-conf", "spark.driver.memory=512m"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "1000"},
    ) as run:
        out, err = run.communicate(timeout=300)
    assert (run.returncode, out) == (code, "")
    assert err.splitlines()[0] == message
    assert len(err.splitlines()) == (1 if code == 130 else 2)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert_gone(run.pid)


def listening_at(pid):
    """Return the addresses that a process listens at, as Linux writes them."""
    sockets = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            sockets.add(file.readlink().name)
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                yield words[1].partition(":")[0]


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="looks into Linux's own files")
def test_a_local_spark_listens_to_this_machine_alone(spark):
    (running,) = (a for a in application._running.values() if a.context is not None)
    found = list(listening_at(running.context._gateway.proc.pid))
    assert found
    assert all(address.endswith("0100007F") for address in found)  # 127.0.0.1


def test_processes_of_a_cluster_on_this_machine_listen_to_it_alone(monkeypatch, tmp_path):
    host = "spark.driver.host"
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    for master in ("local[2]", "local-cluster[2,1,1024]", "spark://127.0.0.1:7077", "spark://localhost:1"):
        assert launching.started_with(master, {}, tmp_path)[host] == "127.0.0.1"
        with launching._listening_locally(master):
            assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
        assert "SPARK_LOCAL_IP" not in os.environ
    for master in ("spark://far:7077", "spark://127.0.0.1:1,far:2", "yarn", "k8s://https://127.0.0.1"):
        assert host not in launching.started_with(master, {}, tmp_path)
        with launching._listening_locally(master):
            assert "SPARK_LOCAL_IP" not in os.environ
    assert launching.started_with("local[2]", {host: "there"}, tmp_path)[host] == "there"
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.2")
    with launching._listening_locally("local[2]"):
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--master", "local[2]"], "--master is for --engine spark"),
        (["--engine", "duckdb", "--spark-conf", "spark.x=1"], "--spark-conf is for --engine spark"),
        (["--scratch", "somewhere"], "--scratch is for --engine duckdb or spark"),
        (["--engine", "spark", "--memory-limit", "1GB"], "--memory-limit is for --engine duckdb"),
        (["--engine", "spark", "--spark-conf", "memory"], "`memory` is no setting of Spark"),
    ],
)
def test_options_of_another_engine_are_refused(loginfer, words, message):
    code, out, err = loginfer("rules", "rank", "lubm", "-p", "symmetry", *words)
    assert (code, out) == (2, "")
    assert message in err


def test_the_command_line_ranks_on_a_running_spark(spark, loginfer, tmp_path):
    (tmp_path / "graph.tsv").write_text("a\tR\tb\nb\tR\tc\n")
    words = ["rules", "rank", tmp_path / "graph.tsv", "-p", "composition", "--json"]
    assert loginfer(*words, "--engine", "spark", "--scratch", tmp_path / "scratch") == loginfer(*words)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_what_an_interrupted_job_still_writes_goes_when_spark_has_stopped(tmp_path):
    late = tmp_path / "late"
    running = application.Application(
        "local[1]", {}, lambda: None, None, late.mkdir, tmp_path / "own", leftovers=[late]
    )
    running.leave()
    assert not late.exists()
