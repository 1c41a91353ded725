"""The Spark application that the engines of a process share: started for the first, stopped after the last.

A process can have one Spark application at a time. One that somebody else started is used as it is, and
left running. With Spark Connect the application is a server's, and each engine has a client of its own.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loginfer.engine.spark.failures import translated_errors
from loginfer.engine.spark.installed import require_connect, require_java, require_pyspark
from loginfer.engine.spark.launching import end, greet, is_local, knock, launch, quieten, started_with
from loginfer.errors import InputError, OutputError
from loginfer.files import describe_os_error

__all__ = ["DEFAULT_MASTER", "Application", "make_folder", "place_of", "spark_application"]

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
        """Return the running application, or start one; every use wants a `leave`.

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
        wanted = dict(settings or {})
        with _lock:
            if spark is not None:
                return _of_others(spark, wanted)
            if master is None and len(_running) == 1:
                master = next(iter(_running))
            if master is not None and master.startswith("sc://"):
                return _shared(master, wanted, lambda: _connect(master, wanted, directory))
            from pyspark import SparkContext

            active = SparkContext._active_spark_context
            ours = next((a for a in _running.values() if a.context is not None), None)
            if active is not None and (ours is None or ours.context is not active):
                _refuse_other_master(str(active.master), master)
                return _of_others(_session_of(active), wanted)
            chosen = master or (ours.master if ours else DEFAULT_MASTER)
            if ours is not None:
                _refuse_other_master(ours.master, chosen)
            return _shared(chosen, wanted, lambda: _start(chosen, wanted, directory))

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
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    directory: str | Path | None = None,
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


def _refuse_other_master(running: str, wanted: str | None) -> None:
    if wanted is not None and wanted != running:
        raise InputError(
            f"Spark runs already in this process, with master `{running}`, not `{wanted}`",
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
        f"cannot make a folder for Spark in `{folder}`: {describe_os_error(error)}",
        hint="choose another directory",
    )


# -- applications of others -----------------------------------------------------------------------


def _session_of(context: Any) -> Any:
    from pyspark.sql import SparkSession

    return SparkSession(context)


def _of_others(spark: Any, settings: dict[str, str]) -> Application:
    """Use a session that somebody else opened, by sessions of our own beside it."""
    if settings:
        raise InputError(
            "settings of Spark cannot be given for a session that runs already",
            hint="set them where it is started",
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
