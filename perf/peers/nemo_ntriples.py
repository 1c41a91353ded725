"""Nemo from an N-Triples file to the materialisation, by itself: it reads, splits and reasons."""

from __future__ import annotations

import re
from typing import Any

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def program(file: str) -> tuple[str, list[str], list[str]]:
    """Return the program, and its classes and properties; each becomes a predicate of its own."""
    from loginfer.logic.rule_files import format_rules, read_rules

    rules = format_rules(read_rules("lubm-107").program, "nemo")
    classes = sorted(set(re.findall(r"(<[^>]*>)\(\?\w+\)", rules)))
    properties = sorted(set(re.findall(r"(<[^>]*>)\(\?\w+, \?\w+\)", rules)))
    lines = [f'@import triple :- ntriples{{resource = "{file}"}} .']
    lines += [f"{name}(?x) :- triple(?x, {TYPE}, {name}) ." for name in classes]
    lines += [f"{name}(?x, ?y) :- triple(?x, {name}, ?y) ." for name in properties]
    return "\n".join([*lines, rules]), classes, properties


def end_to_end(file: str) -> Any:
    """Prepare the text of the program; all that Nemo does with it counts."""
    text, classes, properties = program(file)

    def call() -> Any:
        import nmo_python as nemo

        engine = nemo.NemoEngine(nemo.load_string(text))
        engine.reason()
        return engine

    def new(engine: Any) -> int:
        """Count what was derived: all facts of these predicates without those of the file."""
        from loginfer import load_graph

        found = sum(len(list(engine.result(name[1:-1]) or ())) for name in classes + properties)
        graph = load_graph(file)
        given = {name[1:-1] for name in classes}, {name[1:-1] for name in properties}
        names = graph.names(graph.triples)
        return found - sum(o in given[0] if r == TYPE[1:-1] else r in given[1] for _, r, o in names)

    return call, new
