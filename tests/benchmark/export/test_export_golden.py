"""The files of every format, byte by byte: `golden_exports` holds them for one small benchmark.

Of Parquet files, whose bytes depend on the library that writes them, it holds the rows as JSON. After a
change that is meant, `python -m tests.benchmark.export.test_export_golden` writes the folders again.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.support.exported_benchmarks import FORMATS
from tests.support.made_up_benchmarks import family

from loginfer.benchmark.export.export import export_benchmark

GOLDEN = Path(__file__).parent / "golden_exports"


def texts(folder: Path) -> dict[str, str]:
    """The files of a folder as texts that are the same with every version of every library."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".parquet":
            rows = [json.dumps(row, ensure_ascii=False) for row in pq.read_table(path).to_pylist()]
            found[f"{name}.json"] = "".join(f"{row}\n" for row in rows)
        elif name == "export.json":
            about = json.loads(path.read_bytes())
            del about["versions"]
            for file, sums in about["files"].items():
                if file.endswith(".parquet") or file == "croissant.json":
                    sums |= {"bytes": None, "sha256": None}
            found[name] = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
        elif name == "croissant.json":
            about = json.loads(path.read_bytes())
            for file in about["distribution"]:
                if file["name"].endswith(".parquet"):
                    file |= {"contentSize": None, "sha256": None}
            found[name] = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
        elif path.is_file():
            found[name] = path.read_bytes().decode()
    return found


@pytest.mark.parametrize("to", FORMATS)
def test_an_export_is_as_it_always_was(tmp_path, to):
    export_benchmark(family(), to, tmp_path / "family")
    golden = GOLDEN / to
    expected = {
        path.relative_to(golden).as_posix(): path.read_bytes().decode() for path in golden.rglob("*") if path.is_file()
    }
    assert texts(tmp_path / "family") == expected


if __name__ == "__main__":
    for to in sys.argv[1:] or FORMATS:
        shutil.rmtree(GOLDEN / to, ignore_errors=True)
        with tempfile.TemporaryDirectory() as folder:
            export_benchmark(family(), to, Path(folder) / "family")
            for name, text in texts(Path(folder) / "family").items():
                (GOLDEN / to / name).parent.mkdir(parents=True, exist_ok=True)
                (GOLDEN / to / name).write_bytes(text.encode())
