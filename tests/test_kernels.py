"""What kernels share; and their cache: kept where it can be, and never older than the sources."""

import logging
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numba
import numpy as np
import pytest

import loginfer
from loginfer import kernels
from loginfer.randomness import mixed


def test_kernels_work_where_their_code_cannot_be_kept(monkeypatch, caplog):
    monkeypatch.setattr(kernels, "_cache_base", lambda: None)
    monkeypatch.setattr(kernels._announce, "announced", False)
    monkeypatch.setattr(kernels._announce, "cached", True)

    @kernels.kernel
    def twice(number):
        return 2 * number

    with caplog.at_level(logging.INFO, logger="loginfer"):
        assert twice(21) == 42
    assert "set NUMBA_CACHE_DIR" in caplog.text


# Waits until another process is as far, then needs the same kernels.
BOTH = """
import pathlib, sys, time
import numpy as np
from loginfer.kernels import event

compiled = []

class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__name__)

    def on_end(self, happened):
        pass

event.register("numba:compile", Listener())
from loginfer.kg.name_table import NameTable

folder = pathlib.Path(sys.argv[1])
(folder / sys.argv[2]).touch()
while len(list(folder.iterdir())) < 2:
    time.sleep(0.001)
NameTable().intern(np.frombuffer(b"ab", dtype=np.uint8), np.arange(3))
print(*(name for name in compiled if name != "impl"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no locks on bytes of files")
def test_two_processes_that_need_a_kernel_compile_it_once(tmp_path):
    (tmp_path / "ready").mkdir()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    words = [sys.executable, "-c", BOTH, str(tmp_path / "ready")]
    both = [subprocess.Popen([*words, name], env=environment, stdout=subprocess.PIPE, text=True) for name in "ab"]
    compiled = [name for process in both for name in process.communicate()[0].split()]
    assert compiled
    assert [name for name, count in Counter(compiled).items() if count > 1] == []


def answer(package: Path) -> tuple[int, str]:
    """What a kernel of one file says that calls one of another, in a process of its own; and its messages."""
    ask = "from loginfer.kernels import kernel, new_counter\nfrom loginfer.caller import ask\nprint(ask(20))"
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", ask],
        env=environment | {"PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout), done.stderr


def test_a_kernel_is_compiled_anew_when_one_it_calls_in_another_file_has_changed(tmp_path):
    package = tmp_path / "loginfer"
    source = Path(loginfer.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "callee.py").write_text(
        "from loginfer.kernels import inlined\n\n@inlined\ndef add_two(number):\n    return number + 2\n"
    )
    (package / "caller.py").write_text(
        "from loginfer.kernels import kernel\nfrom loginfer.callee import add_two\n\n"
        "@kernel\ndef ask(number):\n    return add_two(number)\n"
    )
    assert answer(package)[0] == 22
    code, messages = answer(package)
    assert code == 22
    assert "compiling" not in messages  # kept on disk
    text = (package / "callee.py").read_text()
    (package / "callee.py").write_text(text.replace("number + 2", "number + 102"))
    assert answer(package)[0] == 122
    homes = [home for home in (package / "__pycache__" / "kernels").iterdir() if "caller" in home.name]
    assert [len(list(home.iterdir())) for home in homes] == [1]  # the old folder is gone


def test_a_number_that_a_kernel_takes_from_another_file_is_part_of_its_key(tmp_path):
    package = tmp_path / "loginfer"
    source = Path(loginfer.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "numbers_of_ours.py").write_text("STEP = 2\n")
    (package / "caller.py").write_text(
        "from loginfer.kernels import kernel\nfrom loginfer.numbers_of_ours import STEP\n\n"
        "@kernel\ndef ask(number):\n    return number + STEP\n"
    )
    assert answer(package)[0] == 22
    (package / "numbers_of_ours.py").write_text("STEP = 102\n")
    assert answer(package)[0] == 122


def _callable(part, count):
    """Return a kernel that does nothing but call an inlined function of so many parameters."""
    if count == 1:
        return numba.njit(lambda a: part(a))
    if count == 2:
        return numba.njit(lambda a, b: part(a, b))
    return numba.njit((lambda a, b, c: part(a, b, c)) if count == 3 else (lambda a, b, c, d: part(a, b, c, d)))


def test_both_searches_find_what_numpy_finds():
    lower_bound, gallop = _callable(kernels.lower_bound, 4), _callable(kernels.gallop, 4)
    values = np.sort(np.random.default_rng(5).integers(0, 300, 200))
    for wanted in range(-1, 302):
        for low, high in ((0, 200), (17, 120), (50, 50)):
            expected = low + int(np.searchsorted(values[low:high], wanted))
            assert lower_bound(values, low, high, wanted) == expected
            assert gallop(values, low, high, wanted) == expected


def test_a_counter_counts_while_it_grows():
    counter, expected = kernels.new_counter(4), Counter()
    add_count = _callable(kernels.add_count, 3)
    for key in np.random.default_rng(6).integers(0, 50, 300).tolist():
        add_count(counter, key, key + 1)
        expected[key] += key + 1
        if 4 * len(expected) > counter.size:
            counter = kernels.grown_counter(counter)
    keys, counts = kernels.counter_items(counter)
    assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == expected


def test_kernels_mix_bits_as_numpy_does():
    mix64, random_bits = _callable(kernels.mix64, 1), _callable(kernels.random_bits, 2)
    values = np.arange(100, dtype=np.uint64) * np.uint64(0x123456789ABCDEF)
    assert [mix64(value) for value in values] == mixed(values).tolist()
    assert [random_bits(value, 1) for value in values] == mixed(values).tolist()
