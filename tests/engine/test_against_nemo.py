"""Materialisation against Nemo, another Datalog engine: LUBM and random programs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from loginfer.engine.binding import extend
from loginfer.engine.native.materialise import materialise
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.kg.lubm import generate_lubm
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Rule, Term, Variable
from loginfer.logic.rule_files import read_rules

pytest.importorskip("nmo_python", reason="nemo-python is not installed")

VARIABLES = [Variable(name) for name in "xyz"]
CONSTANTS = [f"c{i}" for i in range(8)]
TYPES = ["Cat", "Dog", "Fish"]
RELATIONS = ["R", "S", "T"]


def _peer(name: str) -> ModuleType:
    path = Path(__file__).parents[2] / "perf" / "peers" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def derived_by_nemo(graph: KnowledgeGraph, rules: list[Rule], folder: Path) -> set[tuple[int, int, int]]:
    peer = _peer("nemo_lubm")
    program = peer.NemoProgram(graph, rules, folder)
    engine, run = peer.run_nemo(program)
    found: set[tuple[int, int, int]] = program.derived(engine)
    assert run.new == len(found)
    return found


def test_lubm_with_its_107_rules_is_materialised_as_by_nemo(tmp_path: Path) -> None:
    rules = list(read_rules("lubm-107").program)
    graph = extend(generate_lubm(1, 0, 0), rules)

    result = materialise(graph, rules)

    assert len(rules) == 107
    assert len(graph) + len(result) == 251_651
    assert len(result) == 151_108
    assert int((result.depth == 1).sum()) == 75_183
    assert set(map(tuple, result.triples.tolist())) == derived_by_nemo(graph, rules, tmp_path)


def random_program(seed: int) -> tuple[list[tuple[str, str, str]], list[Rule]]:
    """A small graph and rules of up to three atoms with recursion, types, constants and inequalities."""
    random = np.random.default_rng(seed)

    def pick(options: list[str]) -> str:
        return options[random.integers(len(options))]

    def atom(variables: list[Variable], constants: float) -> Atom:
        def term() -> Term:
            if not variables or random.random() < constants:
                return Constant(pick(CONSTANTS))
            return variables[random.integers(len(variables))]

        if random.random() < 0.3:
            return Atom(term(), RDF_TYPE, Constant(pick(TYPES)))
        return Atom(term(), pick(RELATIONS), term())

    def rule() -> Rule:
        body: list[BodyAtom] = [atom(VARIABLES, 0.05) for _ in range(random.integers(1, 4))]
        bound = sorted({v for b in body for v in b.variables})
        if bound and random.random() < 0.3:
            left = bound[random.integers(len(bound))]
            right = next((v for v in bound if v != left), Constant(CONSTANTS[0]))
            body.append(Inequality(left, right))
        return Rule(body, atom(bound, 0.1))

    facts = [(pick(CONSTANTS), pick(RELATIONS), pick(CONSTANTS)) for _ in range(20)]
    facts += [(pick(CONSTANTS), RDF_TYPE, pick(TYPES)) for _ in range(6)]
    return facts, [rule() for _ in range(random.integers(4, 8))]


def test_random_programs_are_materialised_as_by_nemo(tmp_path: Path) -> None:
    derived = 0
    deep = 0
    for seed in range(30):
        facts, rules = random_program(seed)
        graph = extend(KnowledgeGraph.from_names(facts), rules)
        result = materialise(graph, rules)
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert set(map(tuple, result.triples.tolist())) == derived_by_nemo(graph, rules, folder), seed
        derived += len(result)
        deep += result.rounds >= 2
    # The programs are worth the comparison: most derive something, many of them recursively.
    assert derived > 300
    assert deep >= 10
