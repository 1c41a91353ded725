"""Whether PyKEEN is there, and in a version that the bridge knows."""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from loginfer.errors import LogInferError

# From the first version, included, to the last one, excluded.
FIRST, LIMIT = (1, 11), (1, 12)

_INSTALL = "in a checkout of LogInfer: pip install '.[pykeen]'"


def check_version() -> None:
    """Complain if PyKEEN is missing, or in a version that the bridge does not know.

    Raises
    ------
    LogInferError
        With what to install.
    """
    if importlib.util.find_spec("pykeen") is None:
        raise LogInferError("PyKEEN is not installed", hint=_INSTALL)
    try:
        installed = version("pykeen")
    except PackageNotFoundError as error:
        raise LogInferError("a PyKEEN of unknown version is on the path", hint=_INSTALL) from error
    numbers = re.match(r"(\d+)\.(\d+)", installed)
    if numbers is None or not FIRST <= (int(numbers[1]), int(numbers[2])) < LIMIT:
        hint = f"pip install 'pykeen{_range()}'"
        raise LogInferError(f"PyKEEN {installed} is not supported: the bridge needs {_range()}", hint=hint)


def import_pykeen(*also: str) -> None:
    """Import PyKEEN, or say in one message why that cannot be done.

    While PyKEEN itself is being imported, it looks into this package for data sets. Then nothing is checked:
    an error would keep everybody from importing PyKEEN.

    Parameters
    ----------
    also
        Modules of PyKEEN that are needed besides its data sets.
    """
    if also or "pykeen.datasets" not in sys.modules:
        check_version()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyKEEN's, about what it uses of torch
        for name in ("pykeen.datasets", *also):
            if name in sys.modules:
                continue
            try:
                import_module(name)
            except Exception as error:
                message = f"PyKEEN cannot be imported: {type(error).__name__}: {error}"
                raise LogInferError(message, hint=_INSTALL) from error


def _range() -> str:
    first, limit = (".".join(map(str, numbers)) for numbers in (FIRST, LIMIT))
    return f">={first},<{limit}"
