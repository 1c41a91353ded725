"""Materialisation against the definition: K_0 = K, K_{i+1} = T_R(K_i) ∪ K_i, by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.engine.binding import extend
from loginfer.engine.interface import Materialisation
from loginfer.engine.native import materialise as materialise_paths
from loginfer.engine.native import materialise_store
from loginfer.engine.native.materialise import materialise
from loginfer.errors import InputError, LimitError
from loginfer.kg import RDF_TYPE, KnowledgeGraph, Vocabulary
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Rule, Term, Variable

Triple = tuple[str, str, str]
Depths = dict[Triple, int]

VARIABLES = [Variable(name) for name in "xyzuvw"]
CONSTANTS = ["a", "b", "c", "d", "e"]
TYPES = ["Cat", "Dog"]
RELATIONS = ["R", "S"]


def witnesses(body: tuple[BodyAtom, ...], triples: set[Triple], found: dict[Term, str]) -> Iterator[dict[Term, str]]:
    """Every substitution that maps the body's atoms into the triples."""
    atoms = [b for b in body if isinstance(b, Atom)]
    if not atoms:
        values = [
            tuple(found[t] if isinstance(t, Variable) else t.name for t in b.terms)
            for b in body
            if isinstance(b, Inequality)
        ]
        if all(left != right for left, right in values):
            yield found
        return
    first = atoms[0]
    rest = tuple(b for b in body if b is not first)
    for s, r, o in triples:
        if r != first.relation:
            continue
        extended = dict(found)
        for term, name in ((first.subject, s), (first.object, o)):
            known = term.name if isinstance(term, Constant) else extended.setdefault(term, name)
            if known != name:
                break
        else:
            yield from witnesses(rest, triples, extended)


def brute_force(triples: set[Triple], rules: list[Rule]) -> Depths:
    """The round in which each derived triple appears."""
    known = set(triples)
    depth: Depths = {}
    for i in range(1, 10_000):
        derived: set[Triple] = set()
        for rule in rules:
            for found in witnesses(rule.body, known, {}):
                s, o = (found[t] if isinstance(t, Variable) else t.name for t in (rule.head.subject, rule.head.object))
                derived.add((s, str(rule.head.relation), o))
        if derived <= known:
            return depth
        depth.update((triple, i) for triple in derived - known)
        known |= derived
    raise AssertionError("no fixpoint")


def run(triples: set[Triple], rules: list[Rule], **limits: int | None) -> tuple[KnowledgeGraph, Materialisation]:
    graph = extend(KnowledgeGraph.from_names(sorted(triples)), rules)
    return graph, materialise(graph, rules, **limits)


def check(triples: set[Triple], rules: list[Rule]) -> Depths:
    graph, result = run(triples, rules)
    rows = result.triples
    assert rows.dtype == np.int32
    assert result.depth.dtype == np.int32
    assert (np.diff(graph.keys.pack(rows)) > 0).all()
    depth = dict(zip(graph.names(rows), result.depth.tolist(), strict=True))
    expected = brute_force(triples, rules)
    assert depth == expected
    assert result.rounds == max(expected.values(), default=0)
    return depth


def rule(text: str) -> Rule:
    """A rule in a simple form of the arrow syntax: variables are single letters from u to z."""
    body, head = text.split("->")

    def term(name: str) -> Term:
        return Variable(name) if name in "uvwxyz" else Constant(name)

    def atom(part: str) -> BodyAtom:
        if "!=" in part:
            left, right = part.split("!=")
            return Inequality(term(left), term(right))
        s, r, o = part.split(":")
        return Atom(term(s), RDF_TYPE if r == "type" else r, term(o))

    conclusion = atom(head.strip())
    assert isinstance(conclusion, Atom)
    return Rule([atom(part) for part in body.split()], conclusion)


def rules_of(*texts: str) -> list[Rule]:
    return [rule(text) for text in texts]


# -- random programs ----------------------------------------------------------------------------------


def facts(with_types: bool) -> st.SearchStrategy[Triple]:
    pairs = st.tuples(st.sampled_from(CONSTANTS), st.sampled_from(RELATIONS), st.sampled_from(CONSTANTS))
    if not with_types:
        return pairs
    return pairs | st.tuples(st.sampled_from(CONSTANTS), st.just(RDF_TYPE), st.sampled_from(TYPES))


@st.composite
def atoms(draw: st.DrawFn, variables: list[Variable], free_types: bool) -> Atom:
    terms = st.sampled_from(variables)
    if draw(st.integers(0, 5)) == 0 or not variables:
        terms = st.sampled_from([Constant(c) for c in CONSTANTS])
    relation = draw(st.sampled_from([*RELATIONS, RDF_TYPE]))
    subject = draw(terms)
    if relation != RDF_TYPE:
        return Atom(subject, relation, draw(st.sampled_from(variables) if variables else terms))
    if free_types and variables and draw(st.booleans()):
        return Atom(subject, relation, draw(st.sampled_from(variables)))
    return Atom(subject, relation, Constant(draw(st.sampled_from(TYPES))))


@st.composite
def random_rules(draw: st.DrawFn, free_types: bool) -> Rule:
    body: list[BodyAtom] = draw(st.lists(atoms(VARIABLES[:4], free_types), min_size=0, max_size=4))
    variables = sorted({v for b in body for v in b.variables})
    if variables:
        sides = st.sampled_from([*variables, Constant("a"), Constant("nowhere")])
        body += draw(st.lists(st.builds(Inequality, sides, sides), max_size=1))
    return Rule(draw(st.permutations(body)), draw(atoms(variables, free_types)))


@st.composite
def programs(draw: st.DrawFn) -> tuple[set[Triple], list[Rule]]:
    free_types = draw(st.booleans())
    triples = draw(st.sets(facts(draw(st.booleans())), min_size=3, max_size=12))
    return triples, draw(st.lists(random_rules(free_types), min_size=2, max_size=6))


@settings(deadline=None, max_examples=200)
@given(programs())
def test_random_programs_derive_what_the_definition_says_in_the_same_rounds(
    program: tuple[set[Triple], list[Rule]],
) -> None:
    check(*program)


@st.composite
def chain_programs(draw: st.DrawFn) -> tuple[set[Triple], list[Rule]]:
    """Rules whose bodies are paths, with types, constants and inequalities along them."""
    rules = []
    for _ in range(draw(st.integers(2, 5))):
        length = draw(st.sampled_from([0, 1, 1, 2, 2, 2, 3, 4]))
        nodes = VARIABLES[: length + 1]
        body: list[BodyAtom] = []
        for left, right in pairwise(nodes):
            ends = (left, right) if draw(st.booleans()) else (right, left)
            body.append(Atom(ends[0], draw(st.sampled_from(RELATIONS)), ends[1]))
        for node in nodes:
            sets = [
                *(Atom(node, RDF_TYPE, Constant(t)) for t in TYPES),
                Atom(node, "R", Constant("a")),
                Atom(Constant("b"), "S", node),
                Atom(node, "R", node),
            ]
            body += draw(st.lists(st.sampled_from(sets), min_size=0 if length else 1, max_size=1))
        if draw(st.integers(0, 3)) == 0:
            body.append(Inequality(nodes[0], draw(st.sampled_from([nodes[-1], Constant("a")]))))
        if length and draw(st.booleans()):
            head = Atom(nodes[-1], draw(st.sampled_from(RELATIONS)), nodes[0])
        else:
            head = Atom(nodes[0], RDF_TYPE, Constant(draw(st.sampled_from(TYPES))))
        rules.append(Rule(draw(st.permutations(body)), head))
    return draw(st.sets(facts(True), min_size=6, max_size=16)), rules


@settings(deadline=None, max_examples=200)
@given(chain_programs())
def test_bodies_that_are_paths_derive_what_the_definition_says(program: tuple[set[Triple], list[Rule]]) -> None:
    check(*program)


@settings(deadline=None, max_examples=60)
@given(programs())
def test_without_memory_for_sets_everything_is_kept_as_pairs_and_nothing_changes(
    program: tuple[set[Triple], list[Rule]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(materialise_store, "MASK_BYTES", 0)
        check(*program)


# -- shapes of rules, one by one ----------------------------------------------------------------------

FAMILY: set[Triple] = {
    ("a", "R", "b"),
    ("b", "R", "c"),
    ("c", "R", "a"),
    ("c", "R", "c"),
    ("c", "R", "d"),
    ("a", "S", "c"),
    ("d", "S", "d"),
    ("a", RDF_TYPE, "Cat"),
    ("b", RDF_TYPE, "Dog"),
    ("d", RDF_TYPE, "Cat"),
}


@pytest.mark.parametrize(
    "texts",
    [
        ["x:R:y -> y:R:x"],
        ["x:R:y y:R:z -> x:R:z"],
        ["x:R:y -> x:type:Cat", "x:type:Cat -> x:type:Pet", "x:type:Pet x:S:y -> y:type:Cat"],
        ["x:R:x -> x:type:Loop", "x:type:Loop -> x:S:x"],
        ["x:R:c -> x:S:d", "c:R:x -> b:S:x", "b:S:d -> a:type:Done"],
        ["x:R:y y:R:z z:R:w w:R:v v:R:u x:S:u -> x:T:u"],
        ["x:R:y y:S:z x:R:z -> z:R:x"],
        ["x:type:Cat y:type:Dog -> x:likes:y", "x:likes:y -> y:type:Cat"],
        ["x:R:y z:S:w -> x:T:y"],
        ["x:R:y y:S:z z:R:w -> x:type:Far", "x:type:Far x:R:y -> y:S:x"],
        ["x:R:y x:R:z y!=z -> y:sibling:z", "x:sibling:y x!=c -> x:T:c"],
        ["x:R:y y:R:z x!=z y!=a -> x:R:z"],
        ["x:type:y -> y:instance:x", "x:instance:y -> y:type:Thing", "x:R:y -> x:type:y"],
        [" -> a:R:e", " -> e:type:Cat", "x:R:e -> e:R:x"],
        ["x:R:y -> x:R:y"],
        ["x:nothing:y -> x:R:y", "x:R:unknown -> x:type:Cat", "x:R:y y!=unknown -> x:T:y"],
        ["x:R:y x!=x -> x:T:y"],
        ["x:R:y y:R:x x:type:Cat -> x:type:Odd", "x:R:y y:S:z -> y:type:Inner"],
    ],
)
def test_each_shape_of_rule_derives_what_the_definition_says(texts: list[str]) -> None:
    check(FAMILY, rules_of(*texts))


def test_a_type_predicate_under_another_name_is_the_type_predicate() -> None:
    graph = extend(
        KnowledgeGraph.from_names([("a", "rdf:type", "Cat")]), program := rules_of("x:type:Cat -> x:type:Pet")
    )
    assert graph.names(materialise(graph, program).triples) == [("a", "rdf:type", "Pet")]


def test_no_rules_and_no_triples_add_nothing() -> None:
    graph = KnowledgeGraph.from_names([])
    result = materialise(graph, [])
    assert (len(result), result.rounds, result.triples.shape) == (0, 0, (0, 3))
    program = rules_of("x:R:y -> y:R:x", " -> a:R:b")
    graph = extend(graph, program)
    result = materialise(graph, program)
    assert graph.names(result.triples) == [("a", "R", "b"), ("b", "R", "a")]
    assert result.depth.tolist() == [1, 2]


def test_a_head_the_graph_has_no_name_for_is_refused() -> None:
    graph = KnowledgeGraph.from_names([("a", "R", "b")])
    with pytest.raises(InputError, match="uses a name that the graph does not have"):
        materialise(graph, rules_of("x:R:y -> x:S:y"))


# -- larger graphs, where rows are long and rounds are many -------------------------------------------


def numbered(pairs: np.ndarray, size: int) -> KnowledgeGraph:
    """A graph with one relation R over entities 0 … size - 1."""
    entities = Vocabulary.of([f"{i:05d}" for i in range(size)])
    rows = np.stack([pairs[:, 0], np.zeros(len(pairs), dtype=np.int64), pairs[:, 1]], axis=1)
    return KnowledgeGraph(entities, Vocabulary.of(["R"]), rows)


@pytest.mark.parametrize(("size", "edges"), [(70, 90), (150, 160), (150, 600), (400, 420)])
def test_closures_agree_with_boolean_matrices_round_by_round(size: int, edges: int) -> None:
    random = np.random.default_rng(size + edges)
    graph = numbered(random.integers(size, size=(edges, 2)), size)
    known = np.zeros((size, size), dtype=np.int64)
    known[graph.triples[:, 0], graph.triples[:, 2]] = 1
    depth = np.where(known, 0, -1)
    rounds = 0
    while True:
        after = (known + known @ known + known.T > 0).astype(np.int64)
        if (after == known).all():
            break
        rounds += 1
        depth[(after > 0) & (depth < 0)] = rounds
        known = after

    result = materialise(graph, rules_of("x:R:y y:R:z -> x:R:z", "x:R:y -> y:R:x"))

    expected = np.argwhere(depth > 0)
    assert result.rounds == rounds
    assert np.array_equal(result.triples[:, [0, 2]], expected)
    assert np.array_equal(result.depth, depth[expected[:, 0], expected[:, 1]])


@pytest.mark.parametrize("step", ["x:S:y y:R:z -> x:S:z", "x:R:y y:S:z -> x:S:z"])
def test_a_chain_by_linear_rules_takes_as_many_rounds_as_it_has_edges(step: str) -> None:
    size = 300
    chain = numbered(np.stack([np.arange(size - 1), np.arange(1, size)], axis=1), size)
    program = rules_of("x:R:y -> x:S:y", step)
    graph = extend(chain, program)
    result = materialise(graph, program)
    assert result.rounds == size - 1
    assert len(result) == size * (size - 1) // 2
    assert np.array_equal(result.depth, result.triples[:, 2] - result.triples[:, 0])


def test_a_path_that_passes_through_more_than_fits_at_once_is_walked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    graph = numbered(random.integers(60, size=(200, 2)), 60)
    program = rules_of("x:R:y y:R:z z:R:w -> x:T:w", "x:T:y y:R:z -> x:T:z")
    graph = extend(graph, program)
    whole = materialise(graph, program)
    monkeypatch.setattr(materialise_paths, "KEYS_AT_A_TIME", 7)
    parts = materialise(graph, program)
    assert len(whole) > 1000
    assert np.array_equal(whole.triples, parts.triples)
    assert np.array_equal(whole.depth, parts.depth)


# -- limits -------------------------------------------------------------------------------------------

CHAIN: set[Triple] = {(a, "R", b) for a, b in zip("abcdefgh", "bcdefghi", strict=True)}
CLOSURE = rules_of("x:R:y y:R:z -> x:R:z")


def test_as_many_rounds_as_are_needed_may_be_the_limit() -> None:
    assert run(CHAIN, CLOSURE, max_rounds=3)[1].rounds == 3
    assert run(CHAIN, CLOSURE, max_rounds=100)[1].rounds == 3


def test_a_round_beyond_the_limit_says_how_far_it_got_and_what_to_do() -> None:
    with pytest.raises(LimitError, match="after 2 rounds: 18 until then, 10 more in round 3") as error:
        run(CHAIN, CLOSURE, max_rounds=2)
    assert "allow more rounds" in str(error.value)
    with pytest.raises(LimitError, match="after 0 rounds: 0 until then, 7 more"):
        run(CHAIN, CLOSURE, max_rounds=0)


def test_as_many_triples_as_follow_may_be_the_limit() -> None:
    assert len(run(CHAIN, CLOSURE, max_triples=28)[1]) == 28


@pytest.mark.parametrize(
    "text", ["x:R:y y:R:z -> x:R:z", "x:R:y -> y:R:x", "x:R:y z:R:w -> x:T:w", "x:R:y -> x:type:Cat"]
)
def test_more_triples_than_allowed_say_how_far_it_got_and_what_to_do(text: str) -> None:
    with pytest.raises(LimitError, match="more than 5 new triples: 0 in the first 0 rounds, at least") as error:
        run(CHAIN, rules_of(text), max_triples=5)
    assert "allow more triples" in str(error.value)


def test_a_product_far_beyond_the_limit_is_never_written_down() -> None:
    size = 60_000
    everyone = numbered(np.stack([np.arange(size), np.arange(size)], axis=1), size)
    program = rules_of("x:R:x y:R:y -> x:T:y")
    with pytest.raises(LimitError, match="more than 1,000 new triples"):
        materialise(extend(everyone, program), program, max_triples=1000)


def test_progress_is_told_after_each_round_and_may_stop_the_work() -> None:
    calls: list[tuple[str, int, int | None]] = []
    graph = KnowledgeGraph.from_names(sorted(CHAIN))
    materialise(graph, CLOSURE, progress=lambda *call: calls.append(call))
    assert calls == [("round 1", 7, None), ("round 2", 18, None), ("round 3", 28, None)]

    def interrupt(what: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        materialise(graph, CLOSURE, progress=interrupt)
