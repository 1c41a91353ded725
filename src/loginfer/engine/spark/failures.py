"""What Spark says went wrong, in one message of ours that says what to do."""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator

from loginfer.errors import InputError, LimitError, LogInferError, OutputError

__all__ = ["explain", "first_line", "is_lost", "known", "translated_errors"]


@contextlib.contextmanager
def translated_errors(lost: Iterator[str] | None = None) -> Iterator[None]:
    """Turn what comes out of Spark into errors that say what to do.

    Parameters
    ----------
    lost
        Gives what a watch over the workers found, if it found something: then that is the reason.
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
    return known(error) or OutputError(
        f"Spark failed: {first_line(error)}", hint="look into its logs for more"
    )


def known(error: BaseException) -> LogInferError | None:
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
        return OutputError(
            "the connection to Spark is lost", hint="was it stopped, or killed for lack of memory?"
        )
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
