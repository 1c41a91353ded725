"""One body of four atoms counted by DuckDB, by pyoxigraph (SPARQL) and by Nemo.

Each is given the triples of the body's relations only, without loops.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from perf.peers.duckdb_tables import connect


def _diamond(triples: str, bodies: str) -> tuple[Any, list[int]]:
    import numpy as np

    body = json.loads(Path(bodies).read_text())["diamond"][0]
    array = np.load(triples)
    return array[np.isin(array[:, 1], body) & (array[:, 0] != array[:, 2])], body


def duckdb(triples: str, bodies: str) -> Any:
    """Prepare DuckDB."""
    _, body = _diamond(triples, bodies)
    connection = connect(triples)
    query = """SELECT count(*)
        FROM e a JOIN e b ON a.s = b.s JOIN e c ON c.s = a.o JOIN e d ON d.s = b.o AND d.o = c.o
        WHERE a.r = {} AND b.r = {} AND c.r = {} AND d.r = {} AND a.o <> b.o AND a.s <> c.o""".format(*body)
    return lambda: connection.execute(query).fetchone()[0], int


def oxigraph(triples: str, bodies: str) -> Any:
    """Prepare a store."""
    import pyoxigraph

    array, body = _diamond(triples, bodies)
    store = pyoxigraph.Store()
    text = "".join(f"<e:{s}> <r:{r}> <e:{o}> .\n" for s, r, o in array.tolist())
    store.bulk_load(text.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    query = """SELECT (COUNT(*) AS ?n) {{
        ?x <r:{}> ?y . ?x <r:{}> ?z . ?y <r:{}> ?w . ?z <r:{}> ?w . FILTER (?y != ?z && ?x != ?w) }}"""
    return lambda: next(iter(store.query(query.format(*body))))["n"].value, int


def nemo(triples: str, bodies: str) -> Any:
    """Prepare files and a program; Nemo reads them as part of the call."""
    import nmo_python
    import numpy as np

    array, body = _diamond(triples, bodies)
    folder = tempfile.TemporaryDirectory(prefix="loginfer-nemo-")
    lines = []
    for relation in sorted(set(body)):
        path = Path(folder.name) / f"r{relation}.tsv"
        np.savetxt(path, array[array[:, 1] == relation][:, [0, 2]], fmt="%d", delimiter="\t")
        lines.append(f'@import r{relation} :- tsv{{resource = "{path}", format = (int, int)}} .')
    count = "n(#count(?x, ?y, ?z, ?w)) :- "
    atoms = "r{}(?x, ?y), r{}(?x, ?z), r{}(?y, ?w), r{}(?z, ?w), ?y != ?z, ?x != ?w ."
    text = "\n".join([*lines, count + atoms.format(*body)])

    def call() -> Any:
        engine = nmo_python.NemoEngine(nmo_python.load_string(text))
        engine.reason()
        return folder, engine

    return call, lambda value: next(iter(value[1].result("n")))[0]
