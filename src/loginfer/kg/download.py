"""Downloading one file of known size and checksum, over lines that break.

What has arrived lies beside the target under the name `<target>.part`. It survives a broken connection and
Ctrl-C, and the next attempt asks the server for the rest only. The target itself appears complete and
verified, or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http
import http.client
import os
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from loginfer._version import __version__
from loginfer.errors import DownloadError, OutputError
from loginfer.files import describe_os_error
from loginfer.kg.formats.interface import Progress

__all__ = ["Attempts", "download", "sha256_of"]

CHUNK = 64 * 1024
SCHEMES = ("http", "https")
# Answers that say "later": worth another attempt.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


@dataclass(frozen=True, slots=True)
class Attempts:
    """How patient a download is.

    Parameters
    ----------
    limit
        How often to connect before giving up.
    wait
        Seconds before the second attempt; each further one waits twice as long.
    timeout
        Seconds without a byte after which a connection counts as broken.
    """

    limit: int = 6
    wait: float = 0.5
    timeout: float = 30.0


def download(
    address: str,
    target: Path,
    *,
    size: int,
    sha256: str,
    progress: Progress | None = None,
    attempts: Attempts | None = None,
) -> None:
    """Download `address` to `target`, replacing what is there.

    Parameters
    ----------
    address
        An http or https address.
    target
        Where the file shall be. Missing folders are created.
    size
        Its size in bytes; more is never written.
    sha256
        Its checksum, as hexadecimal digits.
    progress
        Called with bytes received, and expected.
    attempts
        How patient to be.

    Raises
    ------
    DownloadError
        If the file cannot be had, or is not the expected one.
    OutputError
        If it cannot be written.
    """
    _check_scheme(address)
    part = target.with_name(target.name + ".part")
    job = _Job(address, part, size, progress, attempts or Attempts())
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(target.parent):
            resumed = job.drop_unusable_part() > 0
            job.complete()
            if resumed and sha256_of(part) != sha256:
                # The old part may be of another version of the file: it deserves one fresh start.
                part.unlink()
                job.complete()
            _verify(address, part, sha256)
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.replace(target)
    except OSError as error:
        raise OutputError(
            f"cannot write `{target}`: {describe_os_error(error)}",
            hint="free some space or choose another place; what has arrived is kept for the next attempt",
        ) from error


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _verify(address: str, part: Path, sha256: str) -> None:
    found = sha256_of(part)
    if found != sha256:
        part.unlink()
        raise DownloadError(
            f"what `{address}` holds is not the expected file: its sha256 is {found}, it should be {sha256}",
            hint="the download was removed; try again later: the file may have been changed at its source",
        )


class _BrokenError(Exception):
    """An attempt failed in a way that may pass."""


class _UnreachableError(_BrokenError):
    """There is no way to the server: at the very start, as without a network, that will not pass."""


class _CannotResumeError(_BrokenError):
    """The server does not send the rest of what has arrived; the next attempt starts over."""


@dataclass(frozen=True, slots=True)
class _Job:
    address: str
    part: Path
    size: int
    progress: Progress | None
    attempts: Attempts

    def drop_unusable_part(self) -> int:
        """Return how much of an earlier download can be used."""
        if not self.part.exists():
            return 0
        have = self.part.stat().st_size
        if have > self.size:
            self.part.unlink()
            return 0
        return have

    def complete(self) -> None:
        """Make the part complete, in as many attempts as are allowed."""
        wait = self.attempts.wait
        for attempt in range(1, self.attempts.limit + 1):
            try:
                self._attempt()
                return
            except _BrokenError as broken:
                if isinstance(broken, _CannotResumeError):
                    self.part.unlink(missing_ok=True)
                hopeless = isinstance(broken, _UnreachableError) and attempt == 1
                if hopeless or attempt == self.attempts.limit:
                    raise self._gave_up(broken, attempt) from broken
            time.sleep(wait)
            wait *= 2

    def _gave_up(self, broken: _BrokenError, attempts: int) -> DownloadError:
        have = self.part.stat().st_size if self.part.exists() else 0
        return DownloadError(
            f"`{self.address}` could not be downloaded: {broken} "
            f"({have:,} of {self.size:,} bytes after {attempts} attempt{'s' if attempts > 1 else ''})",
            hint="check the connection and run the command again; it goes on where it stopped",
        )

    def _attempt(self) -> None:
        have = self.part.stat().st_size if self.part.exists() else 0
        if have == self.size:
            return
        with self._open(have) as response:
            if response.status == 200:
                self._check_length(response)
                have = 0
            elif not have or not _continues_at(response, have, self.size):
                raise _CannotResumeError(
                    f"the server answered {response.status} with another part of the file"
                )
            # A server that answers 200 ignores ranges and sends the file from its beginning.
            with self.part.open("ab" if have else "wb") as stream:
                self._receive(response, stream, have)

    @contextlib.contextmanager
    def _open(self, have: int) -> Iterator[http.client.HTTPResponse]:
        headers = {"User-Agent": f"loginfer/{__version__}", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        # The scheme was checked, and the opener knows no other than http and https.
        request = urllib.request.Request(self.address, headers=headers)  # noqa: S310
        with _translate(self.address):
            response = _opener().open(request, timeout=self.attempts.timeout)
        with contextlib.closing(response):
            yield response

    def _check_length(self, response: http.client.HTTPResponse) -> None:
        length = response.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) != self.size:
            raise self._wrong_size(f"{int(length):,}")

    def _wrong_size(self, found: str) -> DownloadError:
        return DownloadError(
            f"what `{self.address}` holds is not the expected file: it has {found} bytes, "
            f"it should have {self.size:,}",
            hint="try again later; the file may have been changed at its source",
        )

    def _receive(self, response: http.client.HTTPResponse, stream: IO[bytes], have: int) -> None:
        while have < self.size:
            with _translate(self.address):
                chunk = response.read1(min(CHUNK, self.size - have))
            if not chunk:
                raise _BrokenError("the connection ended too early")
            stream.write(chunk)
            have += len(chunk)
            if self.progress:
                self.progress(f"downloading {self.part.name.removesuffix('.part')}", have, self.size)
        with _translate(self.address):
            more = response.read1(1)
        if more:
            self.part.unlink()
            raise self._wrong_size(f"more than {self.size:,}")


def _continues_at(response: http.client.HTTPResponse, have: int, size: int) -> bool:
    """Say whether the server sends the bytes from `have` to the end of a file of this size."""
    wanted = rf"bytes {have}-{size - 1}/(?:{size}|\*)"
    return response.status == 206 and bool(
        re.fullmatch(wanted, response.headers.get("Content-Range", "").strip(), re.IGNORECASE)
    )


@contextlib.contextmanager
def _translate(address: str) -> Iterator[None]:
    """Turn what the network says into `_BrokenError` where another attempt may help, else `DownloadError`."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        said = f"the server answered {error.code} {error.reason}".rstrip()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise _CannotResumeError(said) from error
        if error.code in PASSING:
            raise _BrokenError(said) from error
        raise DownloadError(
            f"`{address}` could not be downloaded: {said}",
            hint="it may have moved; a copy from elsewhere can lie in a folder named by LOGINFER_DATA",
        ) from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise DownloadError(
                f"`{address}` could not be downloaded: {reason.verify_message}",
                hint="the server's certificate is not trusted here; check the clock and the certificates",
            ) from error
        said = describe_os_error(reason) if isinstance(reason, OSError) else str(reason)
        nowhere = isinstance(reason, socket.gaierror) or getattr(reason, "errno", None) in UNREACHABLE
        raise (_UnreachableError if nowhere else _BrokenError)(said or type(reason).__name__) from error


def _check_scheme(address: str) -> None:
    if urlsplit(address).scheme.lower() not in SCHEMES:
        raise DownloadError(f"`{address}` is no http or https address", hint="only these are downloaded from")


class _OnlyHttp(urllib.request.HTTPRedirectHandler):
    """Follow redirects to http and https only; the standard handler also knows ftp."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Make an opener that knows http and https and, unlike the default one, nothing else."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _OnlyHttp(),
    ):
        opener.add_handler(handler)
    return opener


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep a second program from downloading into the same folder; where locks do not work, go without."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise DownloadError(
                    f"another program is downloading into `{folder}`", hint="wait until it is done"
                ) from error
        yield
    finally:
        os.close(handle)
