"""PyKEEN that is missing, or in a version that the bridge does not know: one clear message."""

import importlib.metadata
import importlib.util
import sys

import pytest

from loginfer.errors import LogInferError
from loginfer.pykeen import versions
from loginfer.pykeen.datasets import LogInfer
from loginfer.systems.registry import find_system


@pytest.mark.parametrize("found", ["1.10.2", "1.12.0", "2.0", "0.9", "unknown"])
def test_a_version_out_of_range_is_refused_with_the_range(monkeypatch, found):
    monkeypatch.setattr(versions, "version", lambda name: found)
    with pytest.raises(LogInferError, match=f"PyKEEN {found} is not supported: the bridge needs >=1.11,<1.12"):
        versions.check_version()


@pytest.mark.parametrize("found", ["1.11.0", "1.11.1", "1.11.9.dev0", "1.11"])
def test_versions_of_the_range_are_taken(monkeypatch, found):
    monkeypatch.setattr(versions, "version", lambda name: found)
    versions.check_version()


def test_the_command_line_says_it_in_one_message(monkeypatch, loginfer):
    monkeypatch.setattr(versions, "version", lambda name: "1.12.3")
    code, out, err = loginfer("systems", "show", "pykeen:TransE")
    assert (code, out) == (2, "")
    assert err.startswith("error: PyKEEN 1.12.3 is not supported")
    assert "pip install 'pykeen>=1.11,<1.12'" in err
    assert "Traceback" not in err


def test_a_data_set_refuses_when_it_is_made_not_while_pykeen_is_imported(monkeypatch):
    monkeypatch.setattr(versions, "version", lambda name: "1.12.3")
    versions.import_pykeen()  # data sets are there already
    with pytest.raises(LogInferError, match="not supported"):
        LogInfer("anywhere")


def test_missing_pykeen_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LogInferError, match="PyKEEN is not installed") as caught:
        find_system("pykeen:TransE")
    assert caught.value.hint == "in a checkout of LogInfer: pip install '.[pykeen]'"


def test_a_pykeen_that_cannot_be_imported_is_told_with_the_reason(monkeypatch):
    def broken(name):
        raise OSError("no space left on device")

    monkeypatch.delitem(sys.modules, "pykeen.datasets")
    monkeypatch.setattr(versions, "import_module", broken)
    with pytest.raises(LogInferError, match="PyKEEN cannot be imported: OSError: no space left"):
        versions.import_pykeen()


def test_the_installed_version_is_one_that_the_bridge_knows():
    assert importlib.metadata.version("pykeen").startswith("1.11.")
    versions.check_version()
