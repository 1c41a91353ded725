"""What Spark needs on this machine: its Python package, Java, and for Spark Connect a few packages more."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

from loginfer.errors import InputError

__all__ = ["java_version", "require_connect", "require_java", "require_pyspark"]

# Versions of PySpark that work: from the first one on, below the second.
OLDEST, TOO_NEW = (4, 0), (5, 0)

OLDEST_JAVA = 17

INSTALL = "pip install 'loginfer[spark]'"


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
    found = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    if not OLDEST <= found < TOO_NEW:
        raise InputError(
            f"PySpark {pyspark.__version__} is installed; the Spark engine works with "
            f"{OLDEST[0]}.{OLDEST[1]} up to, but not with, {TOO_NEW[0]}.{TOO_NEW[1]}",
            hint=f"install another version with: {INSTALL}",
        )


def require_connect() -> None:
    """Raise `InputError` unless the packages for Spark Connect are there."""
    missing = [
        name for name in ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas") if not _has(name)
    ]
    if missing:
        raise InputError(
            f"Spark Connect needs packages that are not installed: {', '.join(missing)}",
            hint="install them with: pip install 'pyspark[connect]'",
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
        raise InputError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and `{java}` is Java {version}", hint=hint
        )


def java_version(java: str) -> int | None:
    """Return the main version of a Java, 8 for 1.8; None if it does not run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', run.stderr + run.stdout)
    if run.returncode or found is None:
        return None
    return int(found[2]) if found[1] == "1" and found[2] else int(found[1])
