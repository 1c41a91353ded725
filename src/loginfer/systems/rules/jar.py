"""Running an AnyBURL jar: in a folder of its own, without a shell, and not for ever.

The jar gets ids instead of names (`e012`, `r3`): AnyBURL quotes nothing, takes single capitals for variables
and cannot carry a name with a space. They are filled up with zeros, so that their order is that of the ids
and the same numbers come back.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
import zipfile
from pathlib import Path

from loginfer.benchmark.manifest import file_sum
from loginfer.errors import InputError
from loginfer.files import describe_os_error, reading
from loginfer.kg import KnowledgeGraph, Vocabulary

__all__ = ["MAIN_CLASS", "JarRun", "check_jar", "numbered"]

MAIN_CLASS = "de.unima.ki.anyburl.Learn"
# When rules are written besides at the end, in seconds.
SNAPSHOTS = (10, 50, 100, 500, 1000, 5000, 10_000)
# Of what a jar prints, so many bytes are kept for the error message.
KEPT_BYTES = 2000
KEPT_LINES = 8

TRAINING, CONFIGURATION, OUTPUT = "train.txt", "config-learn.properties", "rules"


def check_jar(path: str | Path) -> str:
    """Return the sha256 of a jar.

    Raises
    ------
    InputError
        If there is no such file, or it is no jar.
    """
    jar = Path(path)
    with reading(jar):
        if not jar.exists():
            raise InputError(f"no jar `{jar}`", hint="give the path of AnyBURL's jar, e.g. AnyBURL-23-1.jar")
        if not jar.is_file() or not zipfile.is_zipfile(jar):
            raise InputError(
                f"`{jar}` is no jar", hint="give the path of AnyBURL's jar, e.g. AnyBURL-23-1.jar"
            )
    return file_sum(jar)


def numbered(graph: KnowledgeGraph) -> KnowledgeGraph:
    """Return a graph with the same ids and names like `e012` and `r3`."""

    def names(letter: str, size: int) -> Vocabulary:
        width = len(str(max(size - 1, 0)))
        return Vocabulary.of([f"{letter}{number:0{width}}" for number in range(size)])

    entities, relations = names("e", len(graph.entities)), names("r", len(graph.relations))
    kind = "" if graph.type_relation is None else relations[graph.type_relation]
    return KnowledgeGraph(entities, relations, graph.triples, type_predicate=kind)


# Seconds that a killed process may take to vanish.
PATIENCE_AT_THE_END = 5.0


class JarRun:
    """A jar that is running.

    Parameters
    ----------
    graph
        What to mine, with names that AnyBURL can carry.
    jar
        The jar.
    java
        The program that runs it.
    main_class
        The class in it that learns.
    seconds
        How long to mine.
    threads
        How many threads.
    grace
        How many seconds more it may take, for reading and writing.

    Raises
    ------
    InputError
        If there is no such jar or no such program.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        jar: str | Path,
        *,
        java: str = "java",
        main_class: str = MAIN_CLASS,
        seconds: int = 100,
        threads: int = 1,
        grace: float = 60.0,
    ) -> None:
        self.sha256 = check_jar(jar)
        self.seconds = seconds
        self._jar, self._limit = jar, seconds + grace
        program = shutil.which(java)
        if program is None:
            raise InputError(
                f"no program `{java}` to run the jar with",
                hint="install Java, or say where it is: --set java=…",
            )
        self._folder = folder = Path(tempfile.mkdtemp(prefix="loginfer-anyburl-"))
        # Whatever becomes of this object, the folder vanishes, and before it the process that writes there.
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        _write_triples(graph, folder / TRAINING)
        (folder / CONFIGURATION).write_text(_configuration(seconds, threads), encoding="ascii")
        command = [program, "-cp", str(Path(jar).resolve()), main_class, CONFIGURATION]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a list of words, and no shell
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its children die with it
            )
        except OSError as error:
            raise InputError(f"cannot run `{program}`: {describe_os_error(error)}") from error
        self._started = time.monotonic()
        self._kill = weakref.finalize(self, _kill, self._process)
        self._listener = _Listener(self._process)
        self._listener.start()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def wait(self, seconds: float) -> bool:
        """Wait a little; True if the jar is still running.

        Raises
        ------
        InputError
            If it has failed, has written nothing, or has come neither to its end in time nor to its rules.
        """
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            if self.elapsed <= self._limit:
                return True
            self.stop()
            if self._output(self.seconds) is None:
                raise self._failure(f"has not come to its end after {self.elapsed:.0f} s") from None
            return False
        except KeyboardInterrupt:
            self.stop()
            raise
        self.stop()
        if code:
            raise self._failure(f"has failed with exit code {code}")
        if self.written() is None:
            raise self._failure("has ended without writing any rules")
        return False

    def stop(self) -> None:
        """End the jar and all that it has started."""
        self._kill()
        self._listener.join(1)

    def written(self) -> Path | None:
        """Return the last file of rules that the jar has written; None if there is none."""
        found = [self._output(second) for second in (self.seconds, *reversed(SNAPSHOTS))]
        return next((path for path in found if path is not None), None)

    def _output(self, second: int) -> Path | None:
        path = self._folder / f"{OUTPUT}-{second}"
        return path if path.is_file() and path.stat().st_size else None

    def _failure(self, what: str) -> InputError:
        lines = self._listener.said.decode("utf-8", "replace").splitlines()[-KEPT_LINES:]
        said = "".join(f"\n    {''.join(c if c.isprintable() else ' ' for c in line)}" for line in lines)
        return InputError(
            f"the jar `{self._jar}` {what}; it " + (f"said last:{said}" if said else "said nothing"),
            hint="run it by hand to see more, or give another one",
        )


class _Listener(threading.Thread):
    """Keeps the last of what a process prints, so that it never waits for a reader.

    It does not hold on to the `JarRun`, which would otherwise live as long as its process.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self.said = b""
        self._process = process

    def run(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        with contextlib.suppress(OSError, ValueError), stream:
            while part := os.read(stream.fileno(), 65536):
                self.said = (self.said + part)[-KEPT_BYTES:]


def _configuration(seconds: int, threads: int) -> str:
    snapshots = [second for second in SNAPSHOTS if second < seconds] + [seconds]
    values = {
        "PATH_TRAINING": TRAINING,
        "PATH_OUTPUT": OUTPUT,
        "SNAPSHOTS_AT": ",".join(map(str, snapshots)),
        "WORKER_THREADS": threads,
    }
    return "".join(f"{key} = {value}\n" for key, value in values.items())


def _write_triples(graph: KnowledgeGraph, path: Path) -> None:
    entities, relations = list(graph.entities), list(graph.relations)
    with path.open("w", encoding="ascii", newline="\n") as stream:
        stream.writelines(
            f"{entities[s]}\t{relations[r]}\t{entities[o]}\n" for s, r, o in graph.triples.tolist()
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    # A Ctrl-C while it was being waited for may have left its lock taken: never wait without end.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE_AT_THE_END)
