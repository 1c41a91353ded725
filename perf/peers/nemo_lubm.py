"""Materialisation by Nemo: one predicate per class and per property, which is what suits it best.

Names are given to it as integers (the graph's ids), so that it spends nothing on strings, and its facts as
one file per predicate. What it does while reading them is `load`, the rest `reason`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loginfer.engine.binding import Bound, BoundAtom, bind
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Rule

# So many facts, or fewer, stand in the program itself: Nemo 0.10 panics on some imported predicates that are
# only used with constants or repeated variables.
FEW_FACTS = 100


@dataclass(frozen=True)
class PeerRun:
    """What a peer derived and what it cost, in CPU seconds."""

    new: int
    load: float
    reason: float


class NemoProgram:
    """A graph and rules as Nemo reads them.

    A relation whose every atom in the program has a constant object becomes one unary predicate per
    constant; any other relation is a binary predicate. Relations that no rule mentions are left out.
    """

    def __init__(self, graph: KnowledgeGraph, rules: Sequence[Rule], folder: Path) -> None:
        self.graph = graph
        self.folder = folder
        self.program = [b for b in dict.fromkeys(bind(rule, graph) for rule in rules) if not b.empty]
        atoms = dict.fromkeys(atom for rule in self.program for atom in (*rule.atoms, rule.head))
        self.binary = {atom.relation for atom in atoms if atom.object >= 0}
        self.predicates = dict.fromkeys(self._predicate(atom) for atom in atoms)
        self.facts = {key: self._facts(*key) for key in self.predicates}
        self.text = "\n".join([*self._imports(), *map(self._rule, self.program)])

    def _predicate(self, atom: BoundAtom) -> tuple[int, int]:
        return (atom.relation, -1 if atom.relation in self.binary else ~atom.object)

    def _facts(self, relation: int, constant: int) -> np.ndarray[Any, Any]:
        rows = self.graph.triples[self.graph.triples[:, 1] == relation]
        if constant < 0:
            return rows[:, [0, 2]]
        return rows[rows[:, 2] == constant][:, [0]]

    def _imports(self) -> list[str]:
        lines = []
        for key, facts in self.facts.items():
            if len(facts) <= FEW_FACTS:
                lines += [f"{self.name(key)}({', '.join(map(str, row))}) ." for row in facts.tolist()]
            else:
                path = self.folder / f"{self.name(key)}.tsv"
                np.savetxt(path, facts, fmt="%d", delimiter="\t")
                kinds = ", ".join(["int"] * facts.shape[1])
                lines.append(f'@import {self.name(key)} :- tsv{{resource="{path}", format=({kinds})}} .')
        return lines

    @staticmethod
    def name(key: tuple[int, int]) -> str:
        """Return what a predicate is called."""
        return f"r{key[0]}" if key[1] < 0 else f"r{key[0]}c{key[1]}"

    def _atom(self, atom: BoundAtom) -> str:
        key = self._predicate(atom)
        terms = [atom.subject, atom.object] if key[1] < 0 else [atom.subject]
        return f"{self.name(key)}({', '.join(map(_term, terms))})"

    def _rule(self, rule: Bound) -> str:
        body = [self._atom(atom) for atom in rule.atoms]
        body += [f"{_term(a)} != {_term(b)}" for a, b in rule.inequalities]
        return f"{self._atom(rule.head)} :- {', '.join(body)} ." if body else f"{self._atom(rule.head)} ."

    def derived(self, engine: Any) -> set[tuple[int, int, int]]:
        """Return the triples that a run added to the graph.

        Nemo answers for the predicates of rule heads only; those it has merely read come out empty.
        """
        found = set()
        for key in dict.fromkeys(self._predicate(rule.head) for rule in self.program):
            for row in engine.result(self.name(key)) or ():
                found.add((int(row[0]), key[0], int(row[1]) if key[1] < 0 else key[1]))
        return found - set(map(tuple, self.graph.triples.tolist()))


def _term(term: int) -> str:
    return f"?v{term}" if term >= 0 else str(~term)


def run_nemo(program: NemoProgram) -> tuple[Any, PeerRun]:
    """Run a program; return the engine, for its results, and the cost."""
    import nmo_python as nemo

    begin = time.process_time()
    engine = nemo.NemoEngine(nemo.load_string(program.text))
    engine.reason()
    spent = time.process_time() - begin
    load = _load_time(engine.timing())
    return engine, PeerRun(len(program.derived(engine)), load, spent - load)


def _load_time(timing: Any) -> float:
    """Return the CPU seconds that Nemo's own clock puts down to reading tables."""
    if timing.name == "Load Table":
        return float(timing.thread_time.total_seconds())
    return sum(map(_load_time, timing.subnodes))


def materialise_with_nemo(graph: KnowledgeGraph, rules: Sequence[Rule], folder: Path) -> PeerRun:
    """Materialise; `graph` must hold the names of the rules' heads, `folder` is for Nemo's input files."""
    return run_nemo(NemoProgram(graph, rules, folder))[1]
