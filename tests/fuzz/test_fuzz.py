"""The same damaged files in every run; `make fuzz` makes new ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.targets import TARGETS, Folder

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


def test_compiled_scanners_stay_within_their_arrays(tmp_path):
    # Kernels check that only if they are compiled so; elsewhere a wrong place is read in silence.
    checked = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    outside = "import numpy; from loginfer.kg.formats import scan; scan.is_plain_iri(numpy.full(3, 97, 'u1'), 0, 9)"
    done = subprocess.run([sys.executable, "-c", outside], capture_output=True, text=True, check=False, env=checked)
    assert "IndexError" in done.stderr
    words = [sys.executable, "-m", "tests.fuzz", "kg-tsv", "kg-ntriples", "kg-openke", "--inputs", "300", "--seed", "0"]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=checked, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stdout + done.stderr


MADE_UP = """
import json
import sys
import time
from pathlib import Path
from loginfer.errors import InputError
import tests.fuzz.__main__ as fuzzing
from tests.fuzz.targets import TARGETS, Target

def make(folder):
    (folder / "a.json").write_text(json.dumps({"a": 1, "b": [22]}))
    return [folder / "a.json"]

def read(folder, file):
    if len(file.read_bytes()) % 2:
        raise InputError("refused")
    FAULT

fuzzing.SECONDS = 5
TARGETS["made-up"] = Target("made-up", make, read)
sys.exit(fuzzing.fuzz("made-up", Path(sys.argv[1]), 0, 6, 600))
"""


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("raise KeyError('a')", "KeyError"),
        ("bytearray(b'x') * (300 << 20)", "MiB more than before"),
        ("time.sleep(600)", "not read after 5 seconds"),
    ],
)
def test_a_traceback_much_memory_and_a_reader_that_does_not_end_are_found(fault, told, tmp_path):
    # In a process of its own: how much memory this one has taken before depends on other tests.
    words = [sys.executable, "-c", MADE_UP.replace("FAULT", fault), tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 1, done.stderr
    assert told in done.stderr
