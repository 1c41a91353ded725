"""Writing files and folders so that nobody ever sees half of one.

A file is written under a temporary name in the folder it will live in and moved into place when it is
complete; what existed before stays untouched until then, and is not replaced unless asked for.

A folder NAME is written as `.NAME.loginfer-part` beside it. Replacing an old one takes two steps: it becomes
`.NAME.loginfer-old`, then the new one gets its name. Whoever is killed in between leaves names behind from
which the next run can tell what happened: it puts the old folder back, or clears away what is left.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import os
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import IO, Any

from loginfer.errors import InputError, OutputError

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None  # type: ignore[assignment]


@cache
def shipped(name: str) -> dict[str, Any]:
    """Return what a TOML file of this package holds, such as `benchmark/data/suite.toml`; do not change it."""
    return tomllib.loads(resources.files("loginfer").joinpath(name).read_text(encoding="utf-8"))


def file_sum(path: Path) -> str:
    """Return the sha256 of a file."""
    with reading(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def refuse_to_overwrite(path: Path, force: bool) -> None:
    """Raise `OutputError` if `path` exists and may not be replaced; a device or pipe never may."""
    with writing(path):
        exists, replaceable = path.exists(), path.is_file() or path.is_dir()
    if exists and not replaceable:
        raise OutputError(f"`{path}` is a device or a pipe, not a file", hint="give the name of a file")
    if exists and not force:
        raise OutputError(f"`{path}` exists already", hint="choose another name, or add --force to replace it")


@contextlib.contextmanager
def atomic_path(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give a temporary name beside `path`; on success it becomes `path`, on failure it vanishes.

    What killed runs left of it vanishes too: whoever writes holds a lock of the temporary file.

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
    handle = -1
    try:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(target)
            while temporary is None:
                handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
                temporary = Path(name)
                taken = not (lock_until_closed(handle) and temporary.exists())  # for a leftover, before it was locked
                if taken or fcntl is None:  # Windows cannot rename open files
                    os.close(handle)
                    handle, temporary = -1, None if taken else temporary
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            yield temporary
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            temporary.replace(target)
            temporary = None
    finally:
        with contextlib.suppress(OSError):
            if temporary is not None:
                temporary.unlink()
        with contextlib.suppress(OSError):
            os.close(handle)


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


def write_text(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write a text file as a whole."""
    with atomic_write(path, force=force) as stream:
        stream.write(text)


def remove_leftovers(path: str | Path) -> None:
    """Remove what killed runs left behind while writing this file, where locks tell them from those still running."""
    target = Path(path)
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.*.part") if fcntl else ():
        with contextlib.suppress(OSError):
            handle = os.open(leftover, os.O_RDWR)
            try:
                if lock_until_closed(handle):
                    leftover.unlink()
            finally:
                os.close(handle)


# -- folders ------------------------------------------------------------------------------------


def check_folder(path: str | Path, *, force: bool, may_replace: Callable[[Path], None]) -> None:
    """Complain if a folder could not be written here, before any work is done.

    Parameters
    ----------
    path
        Where the folder shall be.
    force
        Whether an existing folder may be replaced.
    may_replace
        Raises an `OutputError` for a folder that must not be replaced. An empty one always may.
    """
    target = Path(path)
    refuse_to_overwrite(target, force)
    with writing(target):
        if not target.exists():
            _refuse_place(target)
            return
        if not target.is_dir():
            raise OutputError(f"`{target}` is a file, not a folder", hint="give the name of a folder")
        if any(target.iterdir()):
            may_replace(target)
        current = Path.cwd()
        if (real := _real(target)) == current or real in current.parents:
            # A shell that stands in a folder does not follow when another one takes its name.
            hint = "choose another folder, or start the program from another one"
            raise OutputError(f"`{target}` is the folder you are in, and is not replaced", hint=hint)
        _refuse_place(target)


def _refuse_place(target: Path) -> None:
    """Complain if no folder can be made there."""
    real = _real(target)
    if real.is_symlink():
        raise OutputError(f"`{target}` is a symbolic link that leads nowhere", hint="give the name of a folder")
    above = next(folder for folder in real.parents if folder.exists())
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"`{above}` is no folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextlib.contextmanager
def atomic_folder(path: str | Path, *, force: bool = False, may_replace: Callable[[Path], None]) -> Iterator[Path]:
    """Give a temporary folder beside `path`; on success it becomes `path`, on failure it vanishes.

    Parameters
    ----------
    path, force, may_replace
        As for `check_folder`.

    Raises
    ------
    OutputError
        Also while another run writes to the same place.
    """
    check_folder(path, force=force, may_replace=may_replace)
    target = _real(Path(path))
    part = beside(target, "part")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target):
        with writing(target):
            _recover(target)
        check_folder(path, force=force, may_replace=may_replace)
        try:
            with writing(target):
                part.mkdir()
                yield part
                for file in sorted(part.iterdir()):
                    sync(file)
                sync(part)
                _put_in_place(part, target)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def recover_folder(path: str | Path) -> None:
    """Restore this folder, or clean up, after a run that was killed while writing it; else do nothing."""
    target = _real(Path(path))
    if any(os.path.lexists(beside(target, purpose)) for purpose in ("part", "old")):
        with locked(target), writing(target):
            _recover(target)


def interrupted(path: str | Path) -> Path | None:
    """Return where a killed run moved a folder to, if it is still there."""
    target = _real(Path(path))
    old = beside(target, "old")
    return old if old.is_dir() and not target.exists() else None


def _real(path: Path) -> Path:
    """Return where a path leads; unlike `Path.resolve`, this does not mind links that lead in a circle."""
    return Path(os.path.realpath(path))


def beside(path: str | Path, purpose: str) -> Path:
    """Return the hidden name beside a folder under which something of it is kept."""
    target = _real(Path(path))
    return target.with_name(f".{target.name}.loginfer-{purpose}")


def _put_in_place(part: Path, target: Path) -> None:
    old = beside(target, "old")
    if target.exists():
        target.rename(old)
    try:
        part.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _recover(target: Path) -> None:
    old, part = beside(target, "old"), beside(target, "part")
    if old.exists() and not target.exists():
        old.rename(target)
    for leftover in (old, part):
        if leftover.exists():
            shutil.rmtree(leftover)


@contextlib.contextmanager
def locked(target: Path, name: str = "lock") -> Iterator[None]:
    """Hold a lock of a folder; the system releases it when a process dies.

    Parameters
    ----------
    target
        The folder, whether it exists or not; the one above it does.
    name
        Which lock: `lock` is held while the folder is written.

    Raises
    ------
    OutputError
        If another run holds it.
    """
    lock = beside(target, name)
    while True:
        with writing(target):
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        if not lock_until_closed(handle):
            os.close(handle)
            hint = "wait until it has ended, or choose another folder"
            raise OutputError(f"`{target}` is being written by another run", hint=hint)
        # Whoever held the lock before has removed the file: then this handle locks nothing.
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(handle), lock.stat()):
                break
        os.close(handle)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()
        os.close(handle)


def lock_until_closed(handle: int) -> bool:
    """Lock an open file until it is closed; False if another run holds the lock."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # some network drives have no locks
    return True


def sync(path: Path) -> None:
    """Make sure that a file's content, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES):
            raise
    finally:
        os.close(handle)


# -- errors -------------------------------------------------------------------------------------

MORE_FILES = "let the program open more files (ulimit -n)"


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
        reason, hint = describe_os_error(error), "choose another place"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space or choose another place"
        elif error.errno in (errno.EMFILE, errno.ENFILE):
            hint = MORE_FILES
        elif error.errno in (errno.EEXIST, errno.ENOTDIR):
            reason = f"`{path.parent}` is no folder"
        raise OutputError(f"cannot write `{path}`: {reason}", hint=f"nothing was changed; {hint}") from error


def decoded(content: bytes, path: str | Path, hint: str) -> str:
    """Return the text of a file; an error says in which line it is no UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"not a text file in UTF-8: byte 0x{content[error.start]:02x} cannot be read"
        raise InputError(message, where=f"{path}:{line}", hint=hint) from error


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
