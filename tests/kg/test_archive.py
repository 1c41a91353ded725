"""Archives from strangers: plain files are read, everything else is refused."""

import io
import stat
import tarfile
import zipfile

import pytest

from loginfer.errors import InputError, LimitError
from loginfer.kg.formats.base import Member, UnpackLimits, is_archive, read_archive


def tar_of(path, *entries, mode="w"):
    with tarfile.open(path, mode) as archive:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
            else:
                name, content = entry
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def zip_of(path, *entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(("name", "mode"), [("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tgz", "w:gz")])
def test_plain_files_of_a_tar_are_read_in_their_order(tmp_path, name, mode):
    path = tar_of(tmp_path / name, special("./", tarfile.DIRTYPE), ("./b", b"1"), ("d/a", b"22"), mode=mode)
    assert read_archive(path) == [Member("b", b"1"), Member("d/a", b"22")]
    assert read_archive(path, select=lambda n: n == "b") == [Member("b", b"1"), Member("d/a", None)]


def test_plain_files_of_a_zip_are_read_in_their_order(tmp_path):
    path = zip_of(tmp_path / "a.zip", ("b", b"1"), ("d/", b""), ("d/a", b"22"))
    assert read_archive(path) == [Member("b", b"1"), Member("d/a", b"22")]


def test_archives_are_known_by_their_endings(tmp_path):
    assert is_archive(tmp_path / "X.TAR.GZ")
    assert is_archive(tmp_path / "x.zip")
    assert not is_archive(tmp_path / "x.tsv.gz")


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "..", "a\\..\\x", "C:x"])
def test_paths_that_lead_out_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="leads out"):
        read_archive(tar_of(tmp_path / "a.tar", ("fine", b""), (name, b"x")))
    with pytest.raises(InputError, match="leads out"):
        read_archive(zip_of(tmp_path / "a.zip", ("fine", b""), (name, b"x")))


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE],
    ids=["symbolic link", "hard link", "character device", "block device", "pipe"],
)
def test_links_and_devices_are_refused(tmp_path, kind):
    with pytest.raises(InputError, match="not a plain file"):
        read_archive(tar_of(tmp_path / "a.tar", ("train.txt", b"x"), special("link", kind, "/etc/passwd")))


def test_links_in_a_zip_are_refused(tmp_path):
    info = zipfile.ZipInfo("train.txt")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(InputError, match="not a plain file"):
        read_archive(zip_of(tmp_path / "a.zip", (info, "/etc/passwd")))


def test_a_name_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match="there twice"):
        read_archive(tar_of(tmp_path / "a.tar", ("x", b"1"), ("./x", b"2")))


def test_a_sparse_file_is_refused(tmp_path):
    # One real byte that claims to be a gigabyte of holes.
    info = tarfile.TarInfo("train.txt")
    info.size = 512
    info.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.size": str(2**30),
        "GNU.sparse.map": "0,512",
    }
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(bytes(512)))
    with pytest.raises(InputError, match="sparse"):
        read_archive(path)


@pytest.mark.parametrize(
    "make", [lambda p, *e: tar_of(p / "a.tgz", *e, mode="w:gz"), lambda p, *e: zip_of(p / "a.zip", *e)]
)
def test_limits_on_number_and_size_hold(tmp_path, make):
    path = make(tmp_path, *((f"f{i}", bytes(100_000)) for i in range(20)))
    assert path.stat().st_size < 20_000
    read_archive(path, limits=UnpackLimits(members=20, total_bytes=2_100_000))
    with pytest.raises(LimitError, match="more than 19 entries"):
        read_archive(path, limits=UnpackLimits(members=19))
    with pytest.raises(LimitError, match="unpacks to more than"):
        read_archive(path, limits=UnpackLimits(total_bytes=1_000_000))
    with pytest.raises(LimitError, match=r"unpacks to more than .* MiB, over 10 times its size"):
        read_archive(path, limits=UnpackLimits(ratio=10, small_bytes=0))


def test_bytes_are_counted_and_headers_not_believed(tmp_path):
    path = zip_of(tmp_path / "a.zip", ("train.txt", bytes(10_000_000)))
    content = bytearray(path.read_bytes())
    where = content.rfind(b"PK\x01\x02")
    content[where + 24 : where + 28] = (10).to_bytes(4, "little")  # the directory says ten bytes
    path.write_bytes(content)
    with pytest.raises((LimitError, InputError)):
        read_archive(path, limits=UnpackLimits(total_bytes=1_000_000))


def test_members_that_are_not_wanted_count_in_a_tar_all_the_same(tmp_path):
    # They must be unpacked to get past them.
    path = tar_of(tmp_path / "a.tgz", ("junk", bytes(5_000_000)), ("train.txt", b"x"), mode="w:gz")
    with pytest.raises(LimitError, match="unpacks to more than"):
        read_archive(path, select=lambda n: n == "train.txt", limits=UnpackLimits(total_bytes=1_000_000))


def test_a_header_that_claims_gigabytes_is_cut_off(tmp_path):
    # An extended header is read into memory by its own word for its size.
    info = tarfile.TarInfo("x")
    info.type = tarfile.XHDTYPE
    info.size = 2**32
    path = tmp_path / "a.tar"
    path.write_bytes(info.tobuf(tarfile.USTAR_FORMAT) + bytes(3_000_000))
    with pytest.raises((LimitError, InputError)):
        read_archive(path, limits=UnpackLimits(total_bytes=1_000_000))


def test_an_encrypted_member_is_refused(tmp_path):
    path = zip_of(tmp_path / "a.zip", ("train.txt", b"x"))
    content = bytearray(path.read_bytes())
    content[content.rfind(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="encrypted"):
        read_archive(path)


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tgz", "a.tar.zst"])
def test_junk_is_told_to_be_damaged(tmp_path, name):
    (tmp_path / name).write_bytes(b"junk" * 1000)
    with pytest.raises(InputError, match="is damaged"):
        read_archive(tmp_path / name)


def test_a_wrong_checksum_is_told(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.txt", b"a\tb\tc\n")
    path.write_bytes(path.read_bytes().replace(b"a\tb\tc", b"a\tb\td"))
    with pytest.raises(InputError, match="Bad CRC-32"):
        read_archive(path)


def test_a_truncated_archive_is_told(tmp_path):
    path = tar_of(tmp_path / "a.tar", ("train.txt", bytes(5000)))
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match="is damaged"):
        read_archive(path)
