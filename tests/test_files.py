import errno
import os

import pytest

from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_path, atomic_write, reading


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
