"""The same damaged files in every run; `make fuzz` makes new ones."""

import json

import pytest

from loginfer.errors import InputError
from tests.fuzz.__main__ import fuzz
from tests.fuzz.targets import TARGETS, Folder, Target

# Whole folders take longer to read than a text.
INPUTS = dict.fromkeys(TARGETS, 100) | {"manifest": 25, "benchmark": 25, "run": 25, "export": 50}


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_refused_or_read_never_a_traceback(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("loginfer.benchmark.auditing.audit.shortcut_results", lambda *_: {})
    found = fuzz(name, tmp_path, 0, INPUTS[name], 600)
    assert not found, capsys.readouterr().err


@pytest.mark.parametrize("name", TARGETS)
def test_whole_files_are_accepted(name, tmp_path):
    folder = Folder(TARGETS[name], tmp_path / name)
    for file in folder.whole:
        TARGETS[name].read(folder.path, file)


def test_a_traceback_a_wrong_acceptance_and_much_memory_are_found(tmp_path, capsys, monkeypatch):
    def make(folder):
        (folder / "a.json").write_text(json.dumps({"a": 1, "b": [2]}))
        return [folder / "a.json"]

    def read(folder, file):
        content = file.read_bytes()
        if len(content) % 3 == 0:
            raise InputError("refused")
        if len(content) % 3 == 1:
            raise KeyError("a")
        bytearray(b"x") * (300 << 20)

    monkeypatch.setitem(TARGETS, "made-up", Target("made-up", make, read))
    assert fuzz("made-up", tmp_path, 0, 12, 600) == 2
    err = capsys.readouterr().err
    assert "KeyError" in err
    assert "MiB more than before" in err
