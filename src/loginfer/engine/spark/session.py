"""Spark as an SQL engine's database, and the Spark application that the engines of a process share.

Results that are kept are Parquet files in a folder that all workers see, never Spark's cache: a lost worker
takes nothing with it, and no query grows by the queries before it. Each is a table of a database of Spark's
own, so that whatever file system it is on, Spark removes it. To queries it is known as a temporary view.

A process can have one Spark application at a time: started for the first engine, stopped after the last. One
that somebody else started is used as it is, and left running. With Spark Connect the application is a server's,
and each engine has a client of its own. What goes wrong in Spark is told in one message that says what to do.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from loginfer.engine.sql.queries import SqlDialect
from loginfer.errors import InputError, LimitError, LogInferError, OutputError
from loginfer.files import describe_os_error

if TYPE_CHECKING:
    from loginfer.engine.sql.engine import SqlEngine
    from loginfer.engine.sql.session import StoredGraph

# How long a cluster may be without any worker, and how often we look, in seconds.
PATIENCE = 60.0
INTERVAL = 2.0


class WorkerWatch:
    """Ends what Spark does when no worker has been there for a while.

    Parameters
    ----------
    context
        The SparkContext; None, or a local one, has nobody to lose.
    patience
        How long no worker may be there, in seconds.
    """

    def __init__(self, context: Any, patience: float = PATIENCE) -> None:
        self.context = context
        self.patience = patience
        self.failure: str | None = None
        master = "local" if context is None else str(context.master)
        self._needed = not master.startswith("local") or master.startswith("local-cluster")

    def reasons(self) -> Iterator[str]:
        """Give the reason why work was ended, if it was."""
        if self.failure is not None:
            yield self.failure

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look after the workers while something runs."""
        if not self._needed:
            yield
            return
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(done,), daemon=True, name="spark-watch")
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join(INTERVAL)

    def _watch(self, done: threading.Event) -> None:
        last_seen = time.monotonic()
        while not done.wait(INTERVAL):
            with contextlib.suppress(Exception):  # whatever runs on Spark reports its end
                if self._workers():
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > self.patience:
                    self.failure = (
                        f"no worker of the Spark master `{self.context.master}` "
                        f"has been there for {self.patience:.0f} seconds"
                    )
                    self.context.cancelAllJobs()
                    return

    def _workers(self) -> int:
        # Spark counts the driver, which does no work, among the executors.
        return len(self.context._jsc.sc().statusTracker().getExecutorInfos()) - 1


@contextlib.contextmanager
def translated_errors(lost: Iterator[str] | None = None) -> Iterator[None]:
    """Turn what comes out of Spark into errors that say what to do.

    Parameters
    ----------
    lost
        Gives what a watch over the workers noticed, if anything: then that is the reason.
    """
    try:
        yield
    except LogInferError:
        raise
    except Exception as error:
        if not _from_spark(error):
            raise
        for reason in lost or ():
            raise OutputError(reason, hint="start workers, and start again; nothing was written") from error
        raise explain(error) from error


def _from_spark(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return True  # what is sent to Java goes through a file
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(modules & {"pyspark", "py4j", "grpc"}) or isinstance(error, (ConnectionError, EOFError))


def explain(error: BaseException) -> LogInferError:
    """Return an error of ours for one that came out of Spark, Java or the connection to them."""
    return translate(error) or OutputError(f"Spark failed: {first_line(error)}", hint="look into its logs for more")


def translate(error: BaseException) -> LogInferError | None:
    """Return an error of ours for one that we know what to do about."""
    text = _everything(error)
    if re.search("No space left on device|Disk quota exceeded", text):
        return OutputError(
            "Spark has no space left on a disk",
            hint="free some space, or choose a directory with more; nothing was written",
        )
    if re.search("OutOfMemoryError|Not enough memory to build and broadcast|UNABLE_TO_ACQUIRE_MEMORY", text):
        return LimitError(
            "Spark ran out of memory",
            hint="give it more: the setting spark.driver.memory for a local master, "
            "spark.executor.memory for a cluster",
        )
    if re.search("ARITHMETIC_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE", text):
        return LimitError("a count has more than 38 digits on this graph")
    if re.search("PATH_NOT_FOUND|FileNotFoundException|FAILED_READ_FILE|does not exist", text):
        return InputError(
            f"Spark cannot read its files: {first_line(error)}",
            hint="files and directory must be where every worker sees them under the same name",
        )
    if "INVALID_CONF_VALUE" in text:
        return InputError(
            f"Spark does not take a setting: {first_line(error)}", hint="check what was given as KEY=VALUE"
        )
    if is_lost(error):
        return OutputError("the connection to Spark is lost", hint="was it stopped, or killed for lack of memory?")
    return None


def is_lost(error: BaseException) -> bool:
    """Say whether an error is about Spark not being there any more."""
    signs = (
        "Py4JNetworkError|UNAVAILABLE|Connection refused|Answer from Java side is empty|RETRIES_EXCEEDED"
        "|stopped SparkContext|SparkContext was shut down"
    )
    return isinstance(error, (ConnectionError, EOFError)) or bool(re.search(signs, _everything(error)))


def _everything(error: BaseException | None) -> str:
    """Return all that an error and its causes say, on the Java side too."""
    parts: list[str] = []
    while error is not None and len(parts) < 100:
        parts.append(f"{type(error).__name__} {_text(error)}")
        parts.append(str(getattr(error, "_stackTrace", "") or ""))
        cause = getattr(error, "_cause", None)
        error = cause if isinstance(cause, BaseException) else error.__cause__ or error.__context__
    return "\n".join(parts)


def _text(error: BaseException) -> str:
    # What Java says is asked for when the error is shown; Java may be gone by then.
    try:
        return str(error)
    except Exception:
        return type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the line of an error that says most: what it was caused by in the end, or else its first one."""
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("Caused by:", ": "))]
    telling = causes[-1:] or lines or ["no reason given"]
    return re.sub(r"^(?:(?:Caused by)?: )?(?:(?:[a-z]\w*\.)+(?=[A-Z]))?", "", telling[0])[:300]


# Arrays of up to this many rows travel with the queries; longer ones are written to files first, a part at
# a time, since Spark sends nothing larger than 128 MB.
SENT_ALONG, AT_A_TIME = 250_000, 1_000_000

# How many rows are fetched at a time, where not all are fetched at once.
STREAMED = 2**20

# Rows of one partition have consecutive numbers from here on (monotonically_increasing_id).
PARTITION_BITS = 33

SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # an overflow is an error, not a null
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}

# The number of parts that results are shuffled into: Spark's own choice, which is replaced by one for so
# many triples a part, but never more than that many parts.
SHUFFLES, SHUFFLED_BY_DEFAULT, A_PART, MOST_PARTS = "spark.sql.shuffle.partitions", "200", 50_000, 2_000


def quote(text: str) -> str:
    r"""Write a text as a literal of Spark's SQL, where a backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def check_arrived(arrived: int, written: int) -> None:
    """Raise `OutputError` if rows that workers wrote are missing: they wrote them to disks of their own."""
    if arrived != written:
        raise OutputError(
            f"of {written:,} rows that the workers of Spark wrote, {arrived:,} are there",
            hint="the directory must be one that all workers see under the same name",
        )


class SparkDatabase:
    """A database of Spark with temporary tables.

    Parameters
    ----------
    spark
        A session of our own.
    folder
        A path or URL that all workers see; the database is made in it and removed at the end.
    context
        The SparkContext, to look after its workers; None for Spark Connect.
    triples
        How many triples the graph has.
    """

    dialect = SqlDialect(
        number="DECIMAL(38, 0)",
        bits="BIGINT",
        signed=True,
        xor="({} ^ {})",
        right="shiftrightunsigned({}, {})",
        left="shiftleft({}, {})",
        replaced="SELECT * EXCEPT (h), {value} AS h FROM ({rows}) AS q",
        costly=True,
    )

    def __init__(self, spark: Any, folder: str, context: Any = None, triples: int = 0) -> None:
        self.spark = spark
        self.context = context
        self.watch = WorkerWatch(context)
        self.lost = False
        self.name = f"loginfer_{uuid.uuid4().hex}"
        self._location = f"{folder}/{self.name}"
        self._tables: dict[str, str] = {}
        self._rows: dict[str, int] = {}
        self._table_count = 0
        try:
            self._prepare(triples)
        except BaseException:
            self.close()
            raise

    def _prepare(self, triples: int) -> None:
        spark = self.spark
        with self.working():
            for name, value in SETTINGS.items():
                spark.conf.set(name, value)
            if spark.conf.get(SHUFFLES) == SHUFFLED_BY_DEFAULT:
                cores = 8 if self.context is None else int(self.context.defaultParallelism)
                spark.conf.set(SHUFFLES, str(max(cores, min(triples // A_PART, MOST_PARTS))))
            spark.sql(f"CREATE DATABASE {self.name} LOCATION {quote(self._location)}")

    def close(self) -> None:
        """Remove the tables, and let a client of Spark Connect go."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(Exception):
                if not self.lost:
                    self.spark.sql(f"DROP DATABASE IF EXISTS {self.name} CASCADE")
            with contextlib.suppress(Exception):
                if self.context is None:
                    (self.spark.client.close if self.lost else self.spark.stop)()
        # A Spark that is gone removes nothing; where its files are in our reach, we do.
        if self.files is not None:
            shutil.rmtree(self.files, ignore_errors=True)

    @property
    def files(self) -> Path | None:
        """Where its files are, if that is in the reach of this machine."""
        scheme, _, path = self._location.partition("://")
        return Path(path) if scheme == "file" else None

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Look after Spark while it works, and say in our words what goes wrong."""
        with translated_errors(self.watch.reasons()), self.watch.watching(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"pyspark\.")  # what goes wrong is raised as well
            try:
                yield
            except BaseException as error:
                self.lost = is_lost(error)
                raise

    # -- what an SQL engine asks for --------------------------------------------------------------

    def engine_over(self, graph: StoredGraph) -> SqlEngine:
        """Return an engine over a graph in this database."""
        from loginfer.engine.sql.engine import SqlEngine

        return SqlEngine(graph, self)

    def arrow(self, query: str) -> Any:
        """Return the result of a query as an Arrow table."""
        with self.working():
            return self.spark.sql(query).toArrow()

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a query, with whole numbers of any size as they are."""
        (only_row,) = self.arrow(query).to_pylist()
        return tuple(int(v) if isinstance(v, Decimal) else v for v in only_row.values())

    def columns(self, query: str) -> list[npt.NDArray[Any]]:
        """Return the columns of a query as arrays of numbers."""
        return [column.to_numpy() for column in self.arrow(query).columns]

    def stream(self, query: str) -> Iterator[list[npt.NDArray[Any]]]:
        """Yield the columns of a query some rows at a time, in order."""
        with self._temporary("streamed") as table:
            # The sorted partitions of a query's result are numbered in order, and the rows in them.
            rows = self.create(table, f"SELECT *, monotonically_increasing_id() AS place FROM (\n{query}\n) AS q")
            if rows <= STREAMED:
                if rows:
                    yield self.columns(f"SELECT * EXCEPT (place) FROM {table} ORDER BY place")
                return
            shift = f"shiftright(place, {PARTITION_BITS})"
            parts, sizes = self.columns(f"SELECT {shift}, count(*) FROM {table} GROUP BY {shift} ORDER BY {shift}")
            for part, size in zip(parts.tolist(), sizes.tolist(), strict=True):
                first = part << PARTITION_BITS
                for start in range(first, first + size, STREAMED):
                    in_block = f"place >= {start} AND place < {min(start + STREAMED, first + size)}"
                    yield self.columns(f"SELECT * EXCEPT (place) FROM {table} WHERE {in_block} ORDER BY place")

    def load(self, table: str, columns: Mapping[str, npt.NDArray[np.integer[Any]]]) -> None:
        """Make a table of some arrays."""
        import pyarrow as pa

        arrow_table = pa.table({name: pa.array(np.ascontiguousarray(column)) for name, column in columns.items()})
        with self.working():
            if len(arrow_table) <= SENT_ALONG:
                self.spark.createDataFrame(arrow_table).createOrReplaceTempView(table)
                return
        for start in range(0, len(arrow_table), AT_A_TIME):
            with self._temporary("loaded") as part:
                with self.working():
                    self.spark.createDataFrame(arrow_table.slice(start, AT_A_TIME)).createOrReplaceTempView(part)
                fill = self.append if start else self.create
                fill(table, f"SELECT * FROM {part}")

    def create(self, table: str, query: str) -> int:
        """Make a table of a query's result; return the number of its rows."""
        stored_name = self._fresh(table)
        with self.working():
            self.spark.sql(f"CREATE TABLE {stored_name} USING parquet AS\n{query}")
        return self._show(table, stored_name)

    def view(self, name: str, query: str) -> None:
        """Give a query a name, under which it can be read like a table."""
        with self.working():
            self.spark.sql(query).createOrReplaceTempView(name)

    def append(self, table: str, query: str) -> int:
        """Add a query's result to a table; return how many rows came."""
        stored_name, rows_before = self._tables[table], self._rows[table]
        with self.working():
            self.spark.sql(f"INSERT INTO {stored_name}\n{query}")
        return self._show(table, stored_name) - rows_before

    def drop(self, table: str) -> None:
        """Drop a table or view if it exists."""
        with self.working():
            self.spark.catalog.dropTempView(table)
            stored_name = self._tables.pop(table, None)
            if stored_name is not None:
                self.spark.sql(f"DROP TABLE IF EXISTS {stored_name}")

    # -- more than that -------------------------------------------------------------------------

    def create_partitioned(self, table: str, query: str) -> int:
        """Make a table of triples of ids, one folder a relation; return the number of its rows."""
        stored_name = self._fresh(table)
        with self.working():
            self.spark.sql(f"CREATE TABLE {stored_name} (s INT, o INT, r INT) USING parquet PARTITIONED BY (r)")
            self.spark.sql(f"INSERT INTO {stored_name}\nSELECT /*+ REBALANCE(r) */ s, o, r FROM (\n{query}\n) AS t")
        return self._show(table, stored_name)

    def _fresh(self, table: str) -> str:
        """Return a name for the files of a table that none had before, so that nothing stale is read."""
        self._table_count += 1
        self._tables[table] = f"{self.name}.t{self._table_count}"
        return self._tables[table]

    def _show(self, table: str, stored_name: str) -> int:
        """Show the files to queries; return how many rows there are, which Parquet knows."""
        with self.working():
            self.spark.table(stored_name).createOrReplaceTempView(table)
        self._rows[table] = int(self.row(f"SELECT count(*) AS n FROM {stored_name}")[0])
        return self._rows[table]

    @contextlib.contextmanager
    def _temporary(self, name: str) -> Iterator[str]:
        try:
            yield name
        finally:
            self.drop(name)


# How long a master has to answer the first connection, in seconds.
LAUNCHING_PATIENCE = 10.0

# The address that only this machine reaches, and the variable that makes Spark listen to an address.
LOOPBACK, LISTEN = "127.0.0.1", "SPARK_LOCAL_IP"

# How Spark begins the name of an application that no master named.
UNNUMBERED = "spark-application-"

# Marks of the lines that say why Java did not start, the most telling ones first.
SIGNS = ("No space left", "UnsupportedClassVersionError", "Invalid ", "Exception", "Error", "rror:")


def is_local(master: str) -> bool:
    """Say whether all of Spark runs on this machine, so that any folder is seen by all of it."""
    return master.startswith("local")


def is_here(master: str) -> bool:
    """Say whether all of Spark is on this machine: a local one, or a master that only this machine reaches.

    Workers use the same address as we do.
    """
    if is_local(master):
        return True
    hosts = _hosts_and_ports(master) if master.startswith("spark://") else []
    return bool(hosts) and all(host == "localhost" or host.startswith("127.") for host, _ in hosts)


def _hosts_and_ports(master: str, port: int = 0) -> list[tuple[str, int]]:
    """Return the hosts and ports that a master's URL names; the port may be left out."""
    rest = master.partition("://")[2]
    addresses = [urlsplit(f"//{address}") for address in rest.split("/")[0].split(";")[0].split(",")]
    try:
        return [(address.hostname or "", address.port or port) for address in addresses]
    except ValueError as error:
        raise InputError(
            f"`{master}` is no master of Spark: {error}", hint="write it like spark://host:7077"
        ) from error


def knock(master: str, port: int) -> None:
    """Complain at once about a master that nobody answers at, where Spark itself would try for minutes."""
    reason = "no host given"
    for host, number in _hosts_and_ports(master, port):
        if not host:
            continue
        try:
            with socket.create_connection((host, number), timeout=LAUNCHING_PATIENCE):
                return
        except OSError as error:
            reason = describe_os_error(error)
    raise InputError(
        f"no answer from the Spark master `{master}`: {reason}",
        hint=f"check the address, and that {_called(master)} runs there",
    )


def greet(url: str) -> None:
    """Complain about what listens at the address of a server of Spark Connect, but does not speak as one."""
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with translated_errors():
        channel = DefaultChannelBuilder(url).toChannel()
    try:
        grpc.channel_ready_future(channel).result(LAUNCHING_PATIENCE)
    except grpc.FutureTimeoutError as error:
        raise _silent(url) from error
    finally:
        channel.close()


def started_with(master: str, settings: dict[str, str], folder: Path) -> dict[str, str]:
    """Return all settings to start Spark with; the user's come before ours."""
    ours = {
        "spark.app.name": "loginfer",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        # Results may be as large as the caller can hold.
        "spark.driver.maxResultSize": "0",
    }
    if is_local(master):
        ours["spark.local.dir"] = str(folder)
        ours["spark.driver.memory"] = f"{_half_of_memory()}m"
    if is_here(master):
        ours["spark.driver.host"] = ours["spark.driver.bindAddress"] = LOOPBACK
    return {**ours, **settings, "spark.master": master}


def _half_of_memory() -> int:
    """Return half of this machine's memory in MB, at least 1 GB."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        size = 0
    return max(size // 2**21, 1024)


def launch(master: str, settings: dict[str, str], log: Path) -> tuple[Any, Any]:
    """Start Java and Spark in it; return the gateway to Java and the SparkContext.

    What they write to the screen goes to a file.

    Parameters
    ----------
    master, settings
        Where Spark runs, and all settings to start it with.
    log
        The file.
    """
    from pyspark import SparkConf, SparkContext, java_gateway

    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    start: Any = java_gateway.launch_gateway
    try:
        with log.open("wb") as stream, _listening_locally(master):
            gateway = start(conf, {"stdout": stream, "stderr": stream})
    except Exception as error:
        raise _not_started(master, reason_in(log) or first_line(error)) from error
    try:
        context: Any = SparkContext(conf=conf, gateway=gateway)
        # A master numbers the applications it accepts; for others Spark makes a number up, and stops.
        if master.startswith("spark://") and str(context.applicationId).startswith(UNNUMBERED):
            raise _silent(master)
        return gateway, context
    except LogInferError:
        end(gateway)
        raise
    except Exception as error:
        # Java is asked for its reason while it is there.
        lost = reason_in(log) if is_lost(error) else None
        failure = None if lost else translate(error)
        failure = failure or _not_started(master, lost or first_line(error))
        end(gateway)
        raise failure from error
    except BaseException:
        end(gateway)
        raise


@contextlib.contextmanager
def _listening_locally(master: str) -> Iterator[None]:
    """Let what is started listen to this machine alone, if all of Spark is on it and nobody said otherwise.

    Settings do that for the driver; the processes of `local-cluster` look into the environment.
    """
    if LISTEN in os.environ or not is_here(master):
        yield
        return
    os.environ[LISTEN] = LOOPBACK
    try:
        yield
    finally:
        del os.environ[LISTEN]


def _not_started(master: str, reason: str) -> OutputError:
    return OutputError(
        f"Spark does not start with master `{master}`: {reason}", hint="check the master and the settings"
    )


def _silent(master: str) -> InputError:
    """Return the error for an address that takes a connection, but does not answer as a master does."""
    return InputError(
        f"no answer from the Spark master `{master}`: something listens there, but does not let us in",
        hint=f"check that it is {_called(master)}, of the version of Spark that PySpark has here",
    )


def _called(master: str) -> str:
    return "a server of Spark Connect" if master.startswith("sc://") else "a master of Spark"


def end(gateway: Any) -> None:
    """Let Java go, and wait until it is gone: what it has on disk goes with it."""
    from pyspark import SparkContext

    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = gateway.proc
    if process is not None:
        with contextlib.suppress(Exception):
            process.stdin.close()
        try:
            process.wait(10)
        except Exception:
            process.kill()
            process.wait()
    if SparkContext._gateway is gateway:
        SparkContext._gateway = SparkContext._jvm = None


def reason_in(log: Path) -> str | None:
    """Return the line of Java's output that says why it did not start."""
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()
        for sign in SIGNS:
            for line in lines:
                if sign in line and not line.lstrip().startswith("at "):
                    message = re.sub(r'^Exception in thread "[^"]*" ', "", line.strip())
                    return re.sub(r"^[\w.$]+Exception: ", "", message)[:300]
    return None


def quieten() -> Callable[[], None]:
    """Keep PySpark and Py4J from printing errors, with their whole stacks, that are raised anyway.

    Returns what lets Py4J speak again.
    """
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    # Py4J complains, in nobody's name, about a command that Ctrl-C interrupted.
    root = logging.getLogger()
    root.addFilter(_not_by_py4j)
    return lambda: root.removeFilter(_not_by_py4j)


def _not_by_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


# Versions of PySpark that work: from the first one on, below the second.
OLDEST, TOO_NEW = (4, 0), (5, 0)

OLDEST_JAVA = 17

INSTALL = "in a checkout of LogInfer, pip install '.[spark]'"


def require_pyspark() -> None:
    """Raise `InputError` unless PySpark is there, in a version that works."""
    try:
        with warnings.catch_warnings():
            # What it says about versions of pandas concerns functions that nobody here uses.
            warnings.simplefilter("ignore")
            import pyspark
            import pyspark.testing.utils
    except ImportError as error:
        raise InputError("the Spark engine needs PySpark", hint=f"install it with: {INSTALL}") from error
    version = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    if not OLDEST <= version < TOO_NEW:
        raise InputError(
            f"PySpark {pyspark.__version__} is installed; the Spark engine works with "
            f"{OLDEST[0]}.{OLDEST[1]} up to, but not with, {TOO_NEW[0]}.{TOO_NEW[1]}",
            hint=f"install another version with: {INSTALL}",
        )


def require_connect() -> None:
    """Raise `InputError` unless the packages for Spark Connect are there."""
    missing = [name for name in ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas") if not _has(name)]
    if missing:
        raise InputError(
            f"Spark Connect needs packages that are not installed: {', '.join(missing)}",
            hint=f"install them with: {INSTALL}",
        )


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def require_java() -> None:
    """Raise `InputError` unless Spark would find a Java that it can run on."""
    home = os.environ.get("JAVA_HOME")
    hint = f"install Java {OLDEST_JAVA} or newer, or set JAVA_HOME to the folder of one"
    if home:
        java: str | None = str(Path(home) / "bin" / "java")
        if not os.access(str(java), os.X_OK):
            raise InputError(f"Spark needs Java, but JAVA_HOME is `{home}`, where there is none", hint=hint)
    else:
        java = shutil.which("java")
    version = java_version(java) if java else None
    if java is None or version is None:
        raise InputError("Spark needs Java, and there is none here", hint=hint)
    if version < OLDEST_JAVA:
        raise InputError(f"Spark needs Java {OLDEST_JAVA} or newer, and `{java}` is Java {version}", hint=hint)


def java_version(java: str) -> int | None:
    """Return the main version of a Java, 8 for 1.8; None if it does not run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(\d+)(?:\.(\d+))?', run.stderr + run.stdout)
    if run.returncode or version is None:
        return None
    return int(version[2]) if version[1] == "1" and version[2] else int(version[1])


DEFAULT_MASTER = "local[*]"

# How often a server of Spark Connect is called again that does not answer: for about half a minute.
RETRIES = 6

_lock = threading.Lock()
_running: dict[str, Application] = {}


@dataclass(slots=True)
class Application:
    """Spark, as far as it is common to several engines.

    Parameters
    ----------
    master
        Where Spark runs.
    settings
        The settings it was started with.
    open_session
        Opens a Spark session of one's own.
    context
        The SparkContext; None for Spark Connect.
    stop
        Ends it.
    folder
        A folder of its own on this machine.
    directory
        Where engines put their temporary files, if they are not told where: a path or URL that all workers
        see.
    users
        How many engines use it.
    leftovers
        Folders to look after at the end: a job that was interrupted may write into them until Spark stops.
    """

    master: str
    settings: dict[str, str]
    open_session: Callable[[], Any]
    context: Any
    stop: Callable[[], None]
    folder: Path
    directory: str | None = None
    users: int = 1
    leftovers: list[Path] = field(default_factory=list)

    @classmethod
    def use(
        cls,
        master: str | None = None,
        settings: Mapping[str, str] | None = None,
        directory: str | Path | None = None,
        spark: Any = None,
    ) -> Application:
        """Return the running application, or start one; call `leave` after each use.

        Parameters
        ----------
        master
            Where Spark runs: `local[2]`, `spark://host:7077`, `sc://host:15002`, …; by default where it runs
            already, or else on this machine.
        settings
            Settings of Spark.
        directory
            Where temporary files shall be, if it is started.
        spark
            A Spark session to use instead of all that.
        """
        require_pyspark()
        settings_wanted = dict(settings or {})
        with _lock:
            if spark is not None:
                return _of_others(spark, settings_wanted)
            if master is None and len(_running) == 1:
                master = next(iter(_running))
            if master is not None and master.startswith("sc://"):
                return _shared(master, settings_wanted, lambda: _connect(master, settings_wanted, directory))
            from pyspark import SparkContext

            active = SparkContext._active_spark_context
            ours = next((a for a in _running.values() if a.context is not None), None)
            if active is not None and (ours is None or ours.context is not active):
                _refuse_other_master(str(active.master), master)
                return _of_others(_session_of(active), settings_wanted)
            used_master = master or (ours.master if ours else DEFAULT_MASTER)
            if ours is not None:
                _refuse_other_master(ours.master, used_master)
            return _shared(used_master, settings_wanted, lambda: _start(used_master, settings_wanted, directory))

    def leave(self) -> None:
        """Say that an engine does not need it any more; the last one stops it."""
        with _lock:
            self.users -= 1
            if self.users:
                return
            for name in [name for name, other in _running.items() if other is self]:
                del _running[name]
            try:
                self.stop()
            finally:
                for folder in (self.folder, *self.leftovers):
                    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def spark_application(
    master: str | None = None, settings: Mapping[str, str] | None = None, directory: str | Path | None = None
) -> Iterator[None]:
    """Keep Spark running for all engines inside, which need not name a master then.

    Parameters
    ----------
    master, settings, directory
        As for `SparkEngine`.
    """
    application = Application.use(master, settings, directory)
    try:
        yield
    finally:
        application.leave()


def _shared(master: str, settings: dict[str, str], start: Callable[[], Application]) -> Application:
    running = _running.get(master)
    if running is None:
        running = _running[master] = start()
        return running
    if settings != running.settings and settings:
        raise InputError(
            "Spark runs already in this process, with other settings", hint="close the other engines first"
        )
    running.users += 1
    return running


def _refuse_other_master(running: str, master: str | None) -> None:
    if master is not None and master != running:
        raise InputError(
            f"Spark runs already in this process, with master `{running}`, not `{master}`",
            hint="stop it first, or leave the master out to use it",
        )


def place_of(directory: str | Path | None) -> str | None:
    """Write a directory, if one is given, as Spark wants it, whatever its own file system is."""
    if directory is None or "://" in str(directory):
        return None if directory is None else str(directory)
    return f"file://{Path(directory).absolute()}"


def _folder(directory: str | Path | None = None) -> Path:
    if directory is not None and "://" in str(directory):
        directory = None
    above = Path(directory or tempfile.gettempdir()).absolute()
    make_folder(above)
    try:
        return Path(tempfile.mkdtemp(prefix="loginfer-spark-", dir=above))
    except OSError as error:
        raise _no_folder(above, error) from error


def make_folder(folder: Path) -> None:
    """Make a folder for temporary files, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_folder(folder, error) from error


def _no_folder(folder: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot make a folder for Spark in `{folder}`: {describe_os_error(error)}", hint="choose another directory"
    )


# -- applications of others -----------------------------------------------------------------------


def _session_of(context: Any) -> Any:
    from pyspark.sql import SparkSession

    return SparkSession(context)


def _of_others(spark: Any, settings: dict[str, str]) -> Application:
    """Use a session that somebody else opened, by sessions of our own beside it."""
    if settings:
        raise InputError(
            "settings of Spark cannot be given for a session that runs already", hint="set them where it is started"
        )
    context = getattr(spark, "_sc", None)  # Spark Connect has none
    master = "sc://" if context is None else str(context.master)
    return Application(master, {}, spark.newSession, context, lambda: None, _folder())


def _connect(url: str, settings: dict[str, str], directory: str | Path | None) -> Application:
    """Use a server of Spark Connect."""
    require_connect()
    knock(url, 15002)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        greet(url)
    folder = _folder()

    def open_session() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession

            with translated_errors():
                spark = SparkSession.builder.remote(url).create()
                # By default a server that is gone is waited for ten minutes.
                spark.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES, max_backoff=10_000)])
                try:
                    for name, value in settings.items():
                        spark.conf.set(name, value)
                except BaseException:
                    spark.client.close()
                    raise
        return spark

    return Application(url, settings, open_session, None, lambda: None, folder, place_of(directory))


# -- an application of our own --------------------------------------------------------------------


def _start(master: str, settings: dict[str, str], directory: str | Path | None) -> Application:
    """Start Java and Spark in it; what they write to the screen goes to a file."""
    require_java()
    if master.startswith("spark://"):
        knock(master, 7077)
    # What a cluster's workers need for themselves is a matter of the cluster.
    folder = _folder(directory if is_local(master) else None)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        gateway, context = launch(master, started_with(master, settings, folder), folder / "spark.log")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    speak_again = quieten()
    try:
        with translated_errors():
            session = _session_of(context)
    except BaseException:
        end(gateway)
        speak_again()
        shutil.rmtree(folder, ignore_errors=True)
        raise

    def stop() -> None:
        with contextlib.suppress(Exception):
            session.stop()
        end(gateway)
        speak_again()
        # Spark's own handler would ask a context that is gone.
        if threading.current_thread() is threading.main_thread() and interrupt is not None:
            signal.signal(signal.SIGINT, interrupt)

    return Application(master, settings, session.newSession, context, stop, folder, place_of(directory))
