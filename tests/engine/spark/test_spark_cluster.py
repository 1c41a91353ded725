"""Spark on several processes: a cluster that loses workers, and a server of Spark Connect."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from loginfer.engine.native.engine import NativeEngine
from loginfer.engine.spark.engine import SparkEngine
from loginfer.errors import InputError, OutputError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.dialects.arrow import parse_rule

pytestmark = pytest.mark.usefixtures("needs_spark")

# Runs in a process of its own, since a process has one Spark at a time. Loses one of two workers in the
# middle of a build, then the other one.
SCRIPT = '''
import contextlib, glob, os, re, signal, sys, threading, time
from loginfer.cli import main
from loginfer.engine.spark import session as application, spark_application

master, folder, *workers = sys.argv[1:]
small = ("spark.sql.shuffle.partitions=4", "spark.sql.codegen.wholeStage=false",
         "spark.sql.codegen.factoryMode=NO_CODEGEN", "spark.cores.max=2", "spark.executor.memory=512m",
         "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1", "spark.driver.memory=1g")
words = ["build", f"{folder}/graph.tsv", "-p", "composition", "--k1", "2", "--k2", "50"]
lost = []

def processes(worker):
    """Return a worker and the processes that work for it, which are lost together, as one machine."""
    threads = glob.glob(f"/proc/{worker}/task/*/children")
    return [worker, *(child for thread in threads for child in open(thread).read().split())]

def send(worker, what):
    for process in processes(worker):
        os.kill(int(process), what)

def busy(context, worker):
    """Say whether Spark waits for a task of a worker; what its status pages know is older than that."""
    words = [open(f"/proc/{process}/cmdline").read().split("\\0") for process in processes(worker)]
    own = {line[line.index("--executor-id") + 1] for line in words if "--executor-id" in line}
    running = context._jsc.sc().taskScheduler().runningTasksByExecutors().toString()
    return any(int(tasks) for name, tasks in re.findall(r"(\\w+) -> (\\d+)", running) if name in own)

def lose_one(context):
    while not lost:
        time.sleep(0.02)
        with contextlib.suppress(OSError):  # a process has gone while we look
            if busy(context, workers[0]):
                send(workers[0], signal.SIGSTOP)
                time.sleep(0.5)  # what it has done already may be on its way
                if busy(context, workers[0]):
                    send(workers[0], signal.SIGKILL)
                    lost.append(True)
                else:
                    send(workers[0], signal.SIGCONT)

def run(*more):
    try:
        main(["-q", *words, *more])
    except SystemExit as stop:
        return stop.code
    return 0

assert not run("--out", f"{folder}/native")
with spark_application(master, dict(word.split("=", 1) for word in small), f"{folder}/shared"):
    (running,) = application._running.values()
    threading.Thread(target=lose_one, args=[running.context], daemon=True).start()
    code = run("--engine", "spark", "--out", f"{folder}/spark")
    print("built", code, "and lost a worker with a task", lost, flush=True)
    application.WorkerWatch.__init__.__defaults__ = (5.0,)
    send(workers[1], signal.SIGKILL)
    print("ended with", run("--engine", "spark", "--out", f"{folder}/none"), flush=True)
'''


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def process(command, log):
    """Run a process until the end of the block, and all that it started."""
    with Path(log).open("wb") as stream:
        running = subprocess.Popen(
            [str(word) for word in command],
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(log) + ".work"},
        )
    try:
        yield running.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def wait_for(log, text, seconds=120):
    for _ in range(seconds * 10):
        if re.search(text, Path(log).read_text(errors="replace")):
            return
        time.sleep(0.1)
    raise AssertionError(Path(log).read_text(errors="replace")[-2000:])


def spark_class() -> Path:
    import pyspark

    return Path(pyspark.__path__[0]) / "bin" / "spark-class"


@pytest.mark.slow
def test_a_build_that_loses_a_worker_gives_the_same_bytes_and_one_without_any_ends(tmp_path):
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    with contextlib.ExitStack() as stack:

        def start(name, *words):
            log = tmp_path / f"{name}.log"
            command = [spark_class(), *words, "--host", "127.0.0.1", "--webui-port", "0"]
            return stack.enter_context(process(command, log)), log

        _, log = start("master", f"{deploy}.master.Master", "--port", port)
        wait_for(log, "I have been elected leader")
        workers = []
        for name in ("one", "two"):
            worker = [f"{deploy}.worker.Worker", "--cores", 1, "--memory", "600m", address]
            pid, log = start(name, *worker)
            workers.append(pid)
        for name in ("one", "two"):
            wait_for(tmp_path / f"{name}.log", "Successfully registered with master")
        (tmp_path / "shared").mkdir()
        rng = np.random.default_rng(2)
        rows = {f"e{s}\tr{r}\te{o}\n" for s, r, o in rng.integers((90, 3, 90), size=(900, 3)).tolist()}
        (tmp_path / "graph.tsv").write_text("".join(sorted(rows)))
        command = [sys.executable, "-c", SCRIPT, address, str(tmp_path), *map(str, workers)]
        wide = {**os.environ, "COLUMNS": "1000"}
        run = subprocess.run(command, capture_output=True, text=True, timeout=600, env=wide)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "built 0 and lost a worker with a task [True]" in run.stdout
    expected, found = (
        {file.name: file.read_bytes() for file in (tmp_path / engine).iterdir()} for engine in ("native", "spark")
    )
    assert found == expected
    # The command line says what happened, and leaves neither half a benchmark nor temporary files.
    assert "ended with 2" in run.stdout
    assert run.stderr.splitlines()[0] == (
        f"error: no worker of the Spark master `{address}` has been there for 5 seconds"
    )
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "none").exists()
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_cluster_needs_a_directory(spark):
    class Elsewhere:
        """A session on a cluster, as far as it is looked at."""

        class _sc:  # noqa: N801
            master = "spark://far:7077"

        newSession = None  # noqa: N815

    with pytest.raises(InputError, match="needs a directory for temporary files"):
        SparkEngine(KnowledgeGraph.from_names([]), spark=Elsewhere())


@pytest.mark.slow
def test_spark_connect_gives_the_same_answers_and_its_end_is_told(tmp_path, monkeypatch):
    pytest.importorskip("grpc")
    monkeypatch.setattr("loginfer.engine.spark.session.RETRIES", 2)
    port = free_port()
    graph = KnowledgeGraph.from_names(
        [(f"a{i}", "R", f"a{(i * 7) % 20}") for i in range(20)] + [("a1", "type", "T"), ("a3", "S", "a4")]
    )
    rule = parse_rule("(x,R,y), (y,R,z), x != z, not (x,R,z) -> (x,S,z)")
    native = NativeEngine(graph)
    command = [
        spark_class().with_name("spark-submit"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", "local[1]", "--driver-memory", "700m"),
        *("--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false"),
        *("--conf", f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}"),
        *("--conf", f"spark.local.dir={tmp_path}"),
        "spark-internal",
    ]
    with process(command, tmp_path / "server.log") as server:
        wait_for(tmp_path / "server.log", "Spark Connect server started at")
        options = {
            "master": f"sc://127.0.0.1:{port}",
            "settings": {"spark.sql.shuffle.partitions": "1"},
            "directory": tmp_path / "shared",
        }
        with SparkEngine(graph, **options) as engine:
            assert np.array_equal(engine.conclusions(rule), native.conclusions(rule))
            assert engine.support(rule) == native.support(rule)
            found, expected = engine.materialise([rule]), native.materialise([rule])
            assert np.array_equal(found.triples, expected.triples)
            assert np.array_equal(found.depth, expected.depth)
        assert list((tmp_path / "shared").iterdir()) == []
        with SparkEngine(graph, **options) as engine:
            os.killpg(server, signal.SIGKILL)
            with pytest.raises(OutputError, match="connection to Spark is lost"):
                engine.support(rule)
