"""The files that the measured processes read: unpacked graphs and what is derived from them."""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ARCHIVES = {"fb15k-237": "FB15k-237.tar.gz", "wn18rr": "WN18RR.tar.gz"}
PARTS = ("train.txt", "valid.txt", "test.txt")
# The larger file of triples: so many copies of FB15k-237, each with entities of its own.
COPIES = 8
# Conclusions are drawn from so many bodies of each pattern, those of largest support.
TOP = 20
CHAIN = "(x,_R,y), (y,_S,z), (z,_T,w) -> (x,_Q,w)"


@dataclass(frozen=True)
class Workspace:
    """Where things are.

    Parameters
    ----------
    folder
        A folder for this run.
    """

    folder: Path

    @property
    def fb(self) -> str:
        """Folder with the three text files of FB15k-237."""
        return str(self.folder / "fb15k-237")

    @property
    def fb_large(self) -> str:
        """Copies of FB15k-237 in one text file."""
        return str(self.folder / "fb-large.tsv")

    @property
    def fb_parquet(self) -> str:
        """FB15k-237 as Parquet."""
        return str(self.folder / "fb.parquet")

    @property
    def triples(self) -> str:
        """FB15k-237 as an array of ids."""
        return str(self.folder / "fb.npy")

    @property
    def bodies(self) -> str:
        """The bodies of largest support: for each pattern a list of lists of relation ids."""
        return str(self.folder / "bodies.json")

    @property
    def benchmark(self) -> str:
        """Folder of a benchmark of FB15k-237."""
        return str(self.folder / "FB-trian-pa")

    @property
    def lubm(self) -> str:
        """LUBM(1,0) as N-Triples."""
        return str(self.folder / "lubm.nt")

    @property
    def lubm_large(self) -> str:
        """LUBM(10,0) as N-Triples."""
        return str(self.folder / "lubm-10.nt")


def find_archive(graph: str) -> Path | None:
    """Return the archive of a graph in one of the folders of LOGINFER_DATA."""
    folders = os.environ.get("LOGINFER_DATA", "").split(os.pathsep)
    return next((path for path in (Path(f) / ARCHIVES[graph] for f in folders if f) if path.exists()), None)


def prepare_fb(folder: str, archive: str) -> Any:
    """Unpack FB15k-237 and write what the tasks need."""
    from loginfer import load_graph, open_engine, parse_pattern, write_graph

    space = Workspace(Path(folder))

    def call() -> None:
        import numpy as np

        _unpack(Path(archive), Path(space.fb))
        _write_copies(Path(space.fb), Path(space.fb_large))
        graph = load_graph(space.fb)
        np.save(space.triples, graph.triples)
        write_graph(graph, space.fb_parquet, force=True)
        engine = open_engine(graph)
        bodies = {}
        for name, pattern in (("triangle", "triangle"), ("diamond", "diamond"), ("chain", CHAIN)):
            bodies[name] = engine.rank_bodies(parse_pattern(pattern), TOP).predicates.tolist()
        Path(space.bodies).write_text(json.dumps(bodies))

    return call, repr


def prepare_lubm(folder: str) -> Any:
    """Generate LUBM(1,0) and LUBM(10,0)."""
    from loginfer.kg.lubm import write_lubm

    space = Workspace(Path(folder))

    def call() -> None:
        write_lubm(space.lubm, force=True)
        write_lubm(space.lubm_large, universities=10, force=True)

    return call, repr


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            name = Path(member.name).name
            if name in PARTS and (content := tar.extractfile(member)) is not None:
                (folder / name).write_bytes(content.read())


def _write_copies(folder: Path, target: Path) -> None:
    rows = [line.split(b"\t") for part in PARTS for line in (folder / part).read_bytes().splitlines()]
    with target.open("wb") as output:
        for copy in range(COPIES):
            mark = b"#%d" % copy
            output.writelines(b"%b%b\t%b\t%b%b\n" % (s, mark, r, o, mark) for s, r, o in rows)
