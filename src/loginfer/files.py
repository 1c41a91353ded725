"""Writing files so that nobody ever sees half of one.

A file is written under a temporary name in the folder it will live in and moved into place when it is
complete; what existed before stays untouched until then, and is not replaced unless asked for.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from loginfer.errors import InputError, OutputError

__all__ = ["atomic_path", "atomic_write", "describe_os_error", "reading", "refuse_to_overwrite", "writing"]


def refuse_to_overwrite(path: Path, force: bool) -> None:
    """Raise `OutputError` if `path` exists and may not be replaced; a device or pipe never may."""
    with writing(path):
        exists, replaceable = path.exists(), path.is_file() or path.is_dir()
    if exists and not replaceable:
        raise OutputError(f"`{path}` is a device or a pipe, not a file", hint="give the name of a file")
    if exists and not force:
        raise OutputError(
            f"`{path}` exists already", hint="choose another name, or add --force to replace it"
        )


@contextlib.contextmanager
def atomic_path(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give a temporary name beside `path`; on success it becomes `path`, on failure it vanishes.

    Parameters
    ----------
    path
        Where the result shall be. Missing folders are created.
    force
        Replace an existing file.
    """
    target = Path(path)
    refuse_to_overwrite(target, force)
    if target.is_dir():
        raise OutputError(f"`{target}` is a folder", hint="give the name of a file")
    temporary: Path | None = None
    try:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
            os.close(handle)
            temporary = Path(name)
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(target)
            temporary = None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


@contextlib.contextmanager
def atomic_write(path: str | Path, mode: str = "w", *, force: bool = False) -> Iterator[IO[Any]]:
    """Open `path` for writing under a temporary name; text is UTF-8 with Unix line ends.

    Parameters
    ----------
    path
        Where the result shall be.
    mode
        "w" for text, "wb" for bytes.
    force
        Replace an existing file.
    """
    with atomic_path(path, force=force) as temporary:
        if "b" in mode:
            with temporary.open(mode) as stream:
                yield stream
        else:
            with temporary.open(mode, encoding="utf-8", newline="\n") as stream:
                yield stream


def describe_os_error(error: OSError) -> str:
    """Say in a few words what the operating system complained about."""
    return (error.strerror or str(error)).lower()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the operating system says while `path` is written into an `OutputError`."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        what, hint = describe_os_error(error), "choose another place"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space or choose another place"
        elif error.errno in (errno.EEXIST, errno.ENOTDIR):
            what = f"`{path.parent}` is no folder"
        raise OutputError(f"cannot write `{path}`: {what}", hint=f"nothing was changed; {hint}") from error


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the operating system says while `path` is read into an `InputError`."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"no file or folder `{path}`", hint="check the path") from error
    except OSError as error:
        if error.errno is None:
            raise
        raise InputError(f"cannot read `{path}`: {describe_os_error(error)}") from error
