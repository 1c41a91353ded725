"""Whole programs: their one-step application, and why a triple follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from loginfer.engine.binding import ABSENT, bind, relation_of
from loginfer.engine.interface import Engine, Materialisation
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids
from loginfer.logic.rule import Atom, Rule, Term, Variable
from loginfer.progress import Progress, each


def one_step(engine: Engine, rules: Sequence[Rule], *, progress: Progress | None = None) -> Triples:
    """Return what one application of the rules adds, T_R(K) ∖ K, sorted."""
    keys = engine.graph.keys
    derived = np.empty(0, dtype=np.int64)
    for _, rule in each(rules, "applying rules", progress):
        derived = np.union1d(derived, keys.pack(engine.conclusions(rule, new=True)))
    return keys.unpack(derived)


@dataclass(frozen=True, slots=True)
class Reason:
    """One way in which a triple follows: a rule and a witness of its body.

    Parameters
    ----------
    rule
        The rule.
    place
        Its place in the list of rules.
    witness
        The value of each variable, by name.
    premises
        The premise triples, as names, in the order of the rule's atoms.
    absent
        What the rule denies, as names, with variables like `?z` where there is no value.
    """

    rule: Rule
    place: int
    witness: dict[Variable, str]
    premises: list[tuple[str, str, str]]
    absent: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a triple holds: it is in the graph, it follows in one step, or neither.

    Parameters
    ----------
    triple
        The triple, as names.
    in_graph
        Whether the graph holds it.
    reasons
        The ways in which it follows, in the order of the rules, then of the witnesses.
    """

    triple: tuple[str, str, str]
    in_graph: bool
    reasons: list[Reason]


def explain(engine: Engine, rules: Sequence[Rule], triple: Sequence[int], *, limit: int = 1) -> Explanation:
    """Say why a triple of ids follows in one step.

    Parameters
    ----------
    engine
        An engine over the graph.
    rules
        The rules.
    triple
        Ids of subject, relation, object.
    limit
        How many witnesses to give for each rule.
    """
    graph = engine.graph
    triples = np.array([triple], dtype=np.int32)
    reasons: list[Reason] = []
    for index in engine.derivations(rules, triples).rule.tolist():
        rule = rules[index]
        rows = engine.witnesses(rule, limit=limit, conclusion=triple).values
        reasons.extend(reason_for(graph, rule, index, row) for row in rows)
    return Explanation(graph.names(triples)[0], bool(graph.contains(triples)[0]), reasons)


def reason_for(graph: KnowledgeGraph, rule: Rule, place: int, row: Ids) -> Reason:
    """Return the reason for one witness, int32[n], of the rule at `place` in the list of rules."""
    premises = []
    for atom in bind(rule, graph).atoms:
        subject, object_ = (int(row[t]) if t >= 0 else ~t for t in (atom.subject, atom.object))
        premises.append((subject, atom.relation, object_))
    names = dict(zip(rule.variables, graph.entities.names(row), strict=True))

    def name(term: Term) -> str:
        return (names.get(term) or f"?{term.name}") if isinstance(term, Variable) else term.name

    def relation(atom: Atom) -> str:
        relation_id = relation_of(atom, graph)
        return str(atom.relation) if relation_id == ABSENT else graph.relations[relation_id]

    denied = (negation.atom for negation in rule.negations)
    absent = [(name(atom.subject), relation(atom), name(atom.object)) for atom in denied]
    return Reason(rule, place, names, graph.names(np.array(premises, dtype=np.int32).reshape(-1, 3)), absent)


def derivation(
    graph: KnowledgeGraph,
    rules: Sequence[Rule],
    closure: Materialisation,
    triple: Sequence[int],
    engine: str = "native",
) -> list[Explanation]:
    """Explain a triple of the materialisation down to triples of the graph.

    Parameters
    ----------
    graph
        The graph K.
    rules
        The rules.
    closure
        What the rules add to the graph.
    triple
        Ids of a derived triple.
    engine
        Name of the engine to ask.

    Returns
    -------
    list
        Explanations from the graph's triples up to the one asked for, each with the one rule and witness
        that derive it in its earliest round; premises are in the graph or explained before.
    """
    from loginfer.engine import open_engine

    keys = graph.keys
    added = keys.pack(closure.triples)
    engines: dict[int, Engine] = {}

    def depth_of(key: int) -> int:
        row = int(np.searchsorted(added, key))
        is_added = row < len(added) and added[row] == key
        return int(closure.depth[row]) if is_added else 0

    steps: dict[int, Explanation] = {}
    pending = [int(keys.pack(np.array([triple], dtype=np.int32))[0])]
    while pending:
        key = pending.pop()
        depth = depth_of(key)
        if key in steps or depth == 0:
            continue
        if depth not in engines:
            earlier = closure.triples[closure.depth < depth]
            engines[depth] = open_engine(graph.with_more(earlier), engine)
        step = explain(engines[depth], rules, keys.unpack(np.array([key], dtype=np.int64))[0].tolist(), limit=1)
        step = Explanation(step.triple, False, step.reasons[:1])
        steps[key] = step
        for premise in step.reasons[0].premises:
            s, r, o = premise
            ids = np.array([[graph.entity_id(s), graph.relation_id(r), graph.entity_id(o)]], dtype=np.int32)
            pending.append(int(keys.pack(ids)[0]))
    return [steps[key] for key in sorted(steps, key=lambda k: (depth_of(k), k))]
