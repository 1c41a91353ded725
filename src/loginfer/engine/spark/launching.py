"""How Spark is started and ended, and what is done so that nobody waits or reads for nothing."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loginfer.engine.spark.failures import first_line, is_lost, known, translated_errors
from loginfer.errors import InputError, LogInferError, OutputError
from loginfer.files import describe_os_error

__all__ = ["end", "greet", "is_here", "is_local", "knock", "launch", "quieten", "reason_in", "started_with"]

# How long a master has to answer the first knock, in seconds.
PATIENCE = 10.0

# The address that only this machine reaches, and the variable that makes Spark listen to an address.
LOOPBACK, LISTEN = "127.0.0.1", "SPARK_LOCAL_IP"

# How the name begins that Spark gives to an application that no master gave one.
UNNUMBERED = "spark-application-"

# What lines have that say why Java did not start, most telling first.
SIGNS = ("No space left", "UnsupportedClassVersionError", "Invalid ", "Exception", "Error", "rror:")


def is_local(master: str) -> bool:
    """Say whether all of Spark runs on this machine, so that any folder is seen by all of it."""
    return master.startswith("local")


def is_here(master: str) -> bool:
    """Say whether all of Spark is on this machine: a local one, or a master that only this machine reaches.

    What a master is called is what its workers call it, too.
    """
    if is_local(master):
        return True
    places = _places(master) if master.startswith("spark://") else []
    return bool(places) and all(host == "localhost" or host.startswith("127.") for host, _ in places)


def _places(master: str, port: int = 0) -> list[tuple[str, int]]:
    """Return the hosts and ports that a master's URL names; the port may be left out."""
    rest = master.partition("://")[2]
    places = [urlsplit(f"//{place}") for place in rest.split("/")[0].split(";")[0].split(",")]
    try:
        return [(place.hostname or "", place.port or port) for place in places]
    except ValueError as error:
        raise InputError(
            f"`{master}` is no master of Spark: {error}", hint="write it like spark://host:7077"
        ) from error


def knock(master: str, port: int) -> None:
    """Complain at once about a master that nobody answers at, where Spark itself would try for minutes."""
    reason = "no host given"
    for host, number in _places(master, port):
        if not host:
            continue
        try:
            with socket.create_connection((host, number), timeout=PATIENCE):
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
        grpc.channel_ready_future(channel).result(PATIENCE)
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
        with log.open("wb") as stream, _addresses_of(master):
            gateway = start(conf, {"stdout": stream, "stderr": stream})
    except Exception as error:
        raise _not_started(master, reason_in(log) or first_line(error)) from error
    try:
        context: Any = SparkContext(conf=conf, gateway=gateway)
        # A master gives a number to who may use it; Spark makes one up, and stops, for who may not.
        if master.startswith("spark://") and str(context.applicationId).startswith(UNNUMBERED):
            raise _silent(master)
        return gateway, context
    except LogInferError:
        end(gateway)
        raise
    except Exception as error:
        # Java is asked for its reason while it is there.
        lost = reason_in(log) if is_lost(error) else None
        failure = None if lost else known(error)
        failure = failure or _not_started(master, lost or first_line(error))
        end(gateway)
        raise failure from error
    except BaseException:
        end(gateway)
        raise


@contextlib.contextmanager
def _addresses_of(master: str) -> Iterator[None]:
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
    """Return what is to be said of somebody who takes a connection, but does not speak as a master does."""
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
                    said = re.sub(r'^Exception in thread "[^"]*" ', "", line.strip())
                    return re.sub(r"^[\w.$]+Exception: ", "", said)[:300]
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
