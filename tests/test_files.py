import errno
import os
import random
import subprocess
import sys
import time

import pytest

from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_folder, atomic_path, atomic_write, check_folder, interrupted, reading, recover_folder


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    target = tmp_path / "new" / "out.txt"
    with atomic_write(target) as stream:
        stream.write("half")
        stream.flush()
        assert not target.exists()
        stream.write(" and half")
    assert target.read_text() == "half and half"
    assert [p.name for p in target.parent.iterdir()] == ["out.txt"]


def test_a_failure_leaves_nothing_behind(tmp_path):
    def fail():
        with atomic_write(tmp_path / "out.txt") as stream:
            stream.write("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_of_a_file_is_removed_by_the_next_but_not_that_of_a_running_one(tmp_path):
    path = tmp_path / "file.txt"
    leftover = tmp_path / ".file.txt.killed.part"
    leftover.write_text("half")
    with atomic_path(path) as mine:
        mine.write_text("mine")
        with atomic_path(path) as other:
            assert sorted(tmp_path.iterdir()) == sorted([mine, other])
            other.write_text("other")
        assert mine.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]
    assert path.read_text() == "mine"


def test_an_existing_file_stays_unless_replacing_is_asked_for(tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(OutputError, match="--force"), atomic_write(target) as stream:
        stream.write("new")
    assert target.read_text() == "old"
    with atomic_write(target, force=True) as stream:
        stream.write("new")
    assert target.read_text() == "new"


def test_a_full_disk_is_one_clear_message_and_keeps_the_old_file(tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(OutputError, match="no space left"), atomic_path(target, force=True):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_folder_is_no_file_to_write(tmp_path):
    with pytest.raises(OutputError, match="is a folder"), atomic_write(tmp_path, force=True):
        pass


def test_a_missing_file_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="no file or folder"), reading(tmp_path / "none"):
        (tmp_path / "none").read_text()


def test_text_is_utf8_with_unix_line_ends(tmp_path):
    with atomic_write(tmp_path / "out.txt") as stream:
        stream.write("é\n")
    assert (tmp_path / "out.txt").read_bytes() == b"\xc3\xa9\n"


def test_a_device_is_never_replaced():
    with pytest.raises(OutputError, match="is a device"), atomic_write(os.devnull, force=True):
        pass


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file` is no folder"), atomic_write(tmp_path / "file" / "out.txt"):
        pass


# -- folders ------------------------------------------------------------------------------------


def anything(folder):
    """Allow every folder to be replaced."""


def never(folder):
    raise OutputError(f"`{folder}` is precious")


def write(target, text, force=False):
    with atomic_folder(target, force=force, may_replace=anything) as folder:
        (folder / "one").write_text(text)
        (folder / "two").write_text(text)


def content(folder):
    return {file.name: file.read_text() for file in folder.iterdir()}


def both(text):
    return {"one": text, "two": text}


def leave(folder, text="half"):
    folder.mkdir()
    (folder / "one").write_text(text)


def test_a_folder_appears_only_when_it_is_complete(tmp_path):
    target = tmp_path / "new" / "out"
    with atomic_folder(target, may_replace=never) as folder:
        (folder / "one").write_text("x")
        assert not target.exists()
        assert folder.parent == target.parent
    assert content(target) == {"one": "x"}
    assert [p.name for p in target.parent.iterdir()] == ["out"]


def test_a_failure_leaves_no_folder_behind_and_the_old_one_in_place(tmp_path):
    write(tmp_path / "out", "old")

    def fail():
        with atomic_folder(tmp_path / "out", force=True, may_replace=anything) as folder:
            (folder / "one").write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert content(tmp_path / "out") == both("old")


def test_a_full_disk_keeps_the_old_folder(tmp_path):
    write(tmp_path / "out", "old")
    with (
        pytest.raises(OutputError, match="no space left"),
        atomic_folder(tmp_path / "out", force=True, may_replace=anything),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert content(tmp_path / "out") == both("old")


def test_a_folder_is_replaced_as_a_whole_and_only_when_asked_for(tmp_path):
    leave(tmp_path / "out", "old")
    (tmp_path / "out" / "three").write_text("old")
    with pytest.raises(OutputError, match="--force"):
        write(tmp_path / "out", "new")
    with pytest.raises(OutputError, match="precious"), atomic_folder(tmp_path / "out", force=True, may_replace=never):
        pass
    assert content(tmp_path / "out") == {"one": "old", "three": "old"}
    write(tmp_path / "out", "new", force=True)
    assert content(tmp_path / "out") == both("new")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_may_always_be_replaced_when_asked_for(tmp_path):
    (tmp_path / "out").mkdir()
    check_folder(tmp_path / "out", force=True, may_replace=never)
    with pytest.raises(OutputError, match="--force"):
        check_folder(tmp_path / "out", force=False, may_replace=never)


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    write(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new", force=True)
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "real") == both("new")


# What a kill can leave behind: the folder, the one being written, the one moved away, and the lock.
PART, OLD, LOCK = (f".out.loginfer-{what}" for what in ("part", "old", "lock"))
LEFTOVERS = {
    "while the first was written": {PART},
    "while the first was written, with its lock": {PART, LOCK},
    "while another was written": {"out", PART, LOCK},
    "between the two renames": {OLD, PART, LOCK},
    "before the old one was removed": {"out", OLD, LOCK},
    "with only the old one left": {OLD},
    "with a lock that nobody holds": {LOCK},
}


@pytest.mark.parametrize("there", LEFTOVERS.values(), ids=LEFTOVERS)
def test_after_a_kill_the_next_run_writes_as_if_nothing_had_happened(tmp_path, there):
    for name in there - {LOCK}:
        leave(tmp_path / name, "old")
    if LOCK in there:
        (tmp_path / LOCK).write_text("")
    write(tmp_path / "out", "new", force=True)
    assert content(tmp_path / "out") == both("new")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("there", [t for t in LEFTOVERS.values() if OLD in t or "out" in t])
def test_after_a_kill_the_old_folder_or_the_new_one_is_there(tmp_path, there):
    for name in there - {LOCK}:
        leave(tmp_path / name, name)
    expected = "out" if "out" in there else OLD
    assert (interrupted(tmp_path / "out") is not None) == ("out" not in there)
    with pytest.raises(OutputError, match="exists already"):
        write(tmp_path / "out", "new")
    recover_folder(tmp_path / "out")
    assert content(tmp_path / "out") == {"one": expected}
    assert interrupted(tmp_path / "out") is None


def test_leftovers_of_other_folders_are_left_alone(tmp_path):
    leave(tmp_path / ".other.loginfer-part")
    leave(tmp_path / ".out.part")
    write(tmp_path / "out", "new")
    assert {p.name for p in tmp_path.iterdir()} == {"out", ".other.loginfer-part", ".out.part"}


def test_two_runs_do_not_write_the_same_folder_at_once(tmp_path):
    with atomic_folder(tmp_path / "out", may_replace=never) as folder:
        (folder / "one").write_text("first")
        with pytest.raises(OutputError, match="being written by another run"):
            write(tmp_path / "out", "second")
        with pytest.raises(OutputError, match="being written by another run"):
            recover_folder(tmp_path / "out")
        write(tmp_path / "beside", "second")
    assert content(tmp_path / "out") == {"one": "first"}


def test_killed_at_any_moment_one_whole_folder_can_be_had(tmp_path):
    write(tmp_path / "out", "0")
    code = (
        "import sys; from loginfer.files import atomic_path, atomic_folder\n"
        "print('ready', flush=True)\n"
        "for i in range(10**9):\n"
        "    with atomic_folder(sys.argv[1], force=True, may_replace=lambda folder: None) as folder:\n"
        "        for name in ('one', 'two'): (folder / name).write_text(str(i))\n"
    )
    moments = random.Random(0)
    for _ in range(12):
        with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "out")], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(moments.uniform(0, 0.05))
            process.kill()
        recover_folder(tmp_path / "out")
        found = content(tmp_path / "out")
        assert found == both(found["one"])
        assert {p.name for p in tmp_path.iterdir()} <= {"out", LOCK}
