"""rank_bodies of the native engine against the definition of support."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loginfer.engine.native import rank as factors
from loginfer.engine.native import rank_diamond as diamond
from loginfer.engine.native.rank import rank_bodies, rank_general
from loginfer.engine.native.rank_patterns import recognise
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph, Vocabulary
from loginfer.logic.canonical import canonical_text
from loginfer.logic.patterns import instantiate, parse_pattern, patterns
from loginfer.logic.rule import Template, Variable

ALL_DIFFERENT = "x != y, x != z, x != w, y != z, y != w, z != w"

# Texts that have a kernel, written in other ways than the paper's.
SHAPES = [
    *[str(pattern) for pattern in patterns()],
    "(b,_S,c), (a,_R,b) -> (a,_T,c)",
    "(x,_R,y), (x,_S,z) -> (y,_T,z)",
    "(y,_R,x), (z,_S,x) -> (y,_T,z)",
    "(x,_R,y), (y,_S,z), (z,_T,w) -> (x,_P,w)",
    "(z,_A,w), (x,_B,y), (y,_C,z) -> (w,_P,x)",
    "(y,_A,z), (x,_B,z), (x,_C,y), z != y, x != y, z != x -> (z,_P,z)",
    f"(z,_A,w), (x,_B,y), (y,_C,w), (x,_D,z), {ALL_DIFFERENT} -> (x,_P,w)",
]

GENERAL = [
    "(x,_R,x) -> (x,_S,x)",
    "(x,_R,y), (y,_R,z) -> (x,_R,z)",
    "(x,_R,y), (y,_S,x) -> (x,_T,y)",
    "(x,_R,y), (y,_S,z), x != z -> (x,_T,z)",
    "(x,_R,y), (x,_S,z), (x,_T,w) -> (y,_P,z)",
    "(x,_R,y), (x,_S,z), (x,_T,w), y != z, z != w, w != y -> (y,_P,z)",
    "(x,_R,y), (y,_S,z), (z,_T,x) -> (x,_P,y)",
    "(x,_R,y), (x,_S,z), (y,_T,z) -> (x,_P,y)",
    "(x,_R,y), (x,_S,z), (y,_T,z), x != z -> (x,_P,y)",
    "(x,_R,y), (x,_S,z), (y,_T,w), (z,_P,w) -> (x,_Q,y)",
    "(x,_R,y), (x,_S,z), (y,_R,w), (z,_S,w), y != z -> (x,_Q,y)",
    f"(x,_R,y), (y,_S,z), (z,_R,w), (w,_S,x), {ALL_DIFFERENT} -> (x,_Q,y)",
    "(x,_R,y), (y,_S,z), (z,_T,z), (x,p,w) -> (x,_Q,y)",
    "(x,_R,y), (x,type,_t) -> (y,type,_t)",
    "(x,_R,y), (x,type,_t), (y,type,_u), x != y -> (x,_S,y)",
    "(x,type,_t), (x,type,_u) -> (x,type,_v)",
    "(x,type,y), (z,_R,x) -> (z,_S,y)",
    "(x,_R,a1b), (x,_S,b1c) -> (x,_T,x)",
    "(aa,_R,x), (x,_S,y), y != aa, x != nowhere -> (x,_T,y)",
    "(aa,_R,bb) -> (bb,_R,aa)",
    "(aa,p,bb), (x,_R,y) -> (x,_S,y)",
    "(x,p,y), (y,q,z) -> (x,_R,z)",
    "(x,nosuch,y), (y,_R,z) -> (x,_R,z)",
    "(x,_R,y), x != x -> (y,_R,x)",
    "(x,_R,y), aa != aa -> (y,_R,x)",
    "(x,_R,y), aa != bb -> (y,_R,x)",
    "(x,_R,y), (z,_S,w) -> (x,_T,w)",
    "(x,_R,y), (z,_R,w) -> (x,_T,w)",
    "(x,_R,y), (z,_S,w), x != z -> (x,_T,w)",
    "(x,_R,y), (z,_S,w), (u,type,_t) -> (u,_T,w)",
]

names = st.sampled_from(["aa", "bb", "cc", "dd"])
relation_triples = st.tuples(names, st.sampled_from(["p", "q", "r"]), names)
type_triples = st.tuples(names, st.just("rdf:type"), st.sampled_from(["T1", "T2"]))
# The vocabularies have more names than the triples use, as those of a graph extended by rules.
graphs = st.lists(st.one_of(relation_triples, relation_triples, relation_triples, type_triples), max_size=14).map(
    lambda rows: KnowledgeGraph.from_names(rows).with_names(relations=["p", "unused"], entities=["other"])
)
small = settings(max_examples=60)


def witnesses(graph: KnowledgeGraph, pattern) -> Counter[tuple[str, ...]]:
    """Count substitutions of variables and templates that make every atom a triple, by templates."""
    triples = [(s, r, o) for s, r, o in graph.names(graph.triples)]
    found: list[dict] = [{}]
    for atom in pattern.atoms:
        extended = []
        for known in found:
            for s, r, o in triples:
                is_type = r == graph.type_predicate
                if is_type != atom.is_type:
                    continue
                new = dict(known)
                wanted = [(atom.subject, s), (atom.object, o)]
                if isinstance(atom.relation, Template):
                    wanted.append((atom.relation, r))
                elif not is_type and atom.relation != r:
                    continue
                if all(
                    new.setdefault(t, v) == v if isinstance(t, Variable | Template) else t.name == v for t, v in wanted
                ):
                    extended.append(new)
        found = extended
    distinct = {tuple(sorted((str(k), v) for k, v in f.items())): f for f in found}
    counts: Counter[tuple[str, ...]] = Counter()
    for f in distinct.values():
        values = [[f[t] if isinstance(t, Variable) else t.name for t in i.terms] for i in pattern.inequalities]
        if all(left != right for left, right in values):
            counts[tuple(f[t] for t in pattern.templates)] += 1
    return counts


def expected(graph: KnowledgeGraph, pattern) -> list[tuple[tuple[str, ...], int]]:
    """The table by definition: one body a rule, the smallest of equals, by support and text."""
    head = None if pattern.head_in_body else "head"
    rows: dict[str, tuple] = {}
    for predicates, count in sorted(witnesses(graph, pattern).items()):
        rule = instantiate(pattern, predicates, head)
        if len(set(rule.atoms)) < len(set(pattern.atoms)):
            continue
        rows.setdefault(canonical_text(rule), (-count, rule.body_text, predicates))
    return [(predicates, -count) for count, _, predicates in sorted(rows.values())]


def found(graph: KnowledgeGraph, table) -> list[tuple[tuple[str, ...], int]]:
    columns = [
        (graph.entities if table.pattern.is_type_template(t) else graph.relations).names(column)
        for t, column in zip(table.pattern.templates, table.predicates.T, strict=True)
    ]
    rows = list(zip(*columns, strict=True)) if columns else [()] * len(table)
    return list(zip(rows, table.support.tolist(), strict=True))


def equal(one, two) -> bool:
    return np.array_equal(one.predicates, two.predicates) and np.array_equal(one.support, two.support)


@pytest.mark.parametrize("text", SHAPES)
def test_patterns_with_a_kernel_are_recognised_however_they_are_written(text):
    assert recognise(parse_pattern(text)) is not None


@pytest.mark.parametrize("text", GENERAL)
def test_other_patterns_are_not_taken_for_one_with_a_kernel(text):
    assert recognise(parse_pattern(text)) is None


@pytest.mark.parametrize("text", SHAPES)
@settings(small, max_examples=25)
@given(graph=graphs)
def test_kernels_count_the_witnesses_of_every_body(text, graph):
    pattern = parse_pattern(text)
    wanted = expected(graph, pattern)
    table = rank_bodies(graph, pattern)
    assert found(graph, table) == wanted
    assert table.nonzero == len(wanted)
    assert table.predicates.dtype == np.int32
    assert table.support.dtype == np.int64
    assert equal(rank_general(graph, pattern), table)


@pytest.mark.parametrize("text", GENERAL)
@settings(small, max_examples=15)
@given(graph=graphs)
def test_any_pattern_gets_the_witnesses_of_every_body(text, graph):
    pattern = parse_pattern(text)
    wanted = expected(graph, pattern)
    table = rank_bodies(graph, pattern)
    assert found(graph, table) == wanted
    assert table.nonzero == len(wanted)


@small
@given(graph=graphs, text=st.sampled_from(SHAPES + GENERAL), top=st.integers(0, 5))
def test_the_top_is_the_beginning_of_the_whole_table(graph, text, top):
    pattern = parse_pattern(text)
    whole, table = rank_bodies(graph, pattern), rank_bodies(graph, pattern, top)
    assert np.array_equal(table.predicates, whole.predicates[:top])
    assert np.array_equal(table.support, whole.support[:top])
    assert table.nonzero == whole.nonzero


@small
@given(graph=graphs, text=st.sampled_from(GENERAL + SHAPES), rows=st.integers(1, 6))
def test_a_join_cut_into_blocks_has_the_same_result(graph, text, rows):
    pattern = parse_pattern(text)
    whole = rank_general(graph, pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factors, "BLOCK_ROWS", rows)
        assert equal(rank_general(graph, pattern), whole)


@small
@given(graph=graphs, size=st.integers(1, 5))
def test_a_hub_taken_in_several_ranges_has_the_same_diamonds(graph, size):
    pattern = parse_pattern("diamond")
    whole = rank_bodies(graph, pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diamond, "BUCKET_SIZE", size)
        assert equal(rank_bodies(graph, pattern), whole)


@small
@given(graph=graphs, step=st.integers(1, 5), top=st.none() | st.integers(1, 5))
def test_two_paths_counted_in_several_steps_have_the_same_diamonds(graph, step, top):
    pattern = parse_pattern("diamond")
    whole = rank_bodies(graph, pattern, top, complete=top is None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diamond, "STEP", step)
        assert equal(rank_bodies(graph, pattern, top, complete=top is None), whole)


def test_progress_is_told_after_each_step_of_two_paths(monkeypatch):
    monkeypatch.setattr(diamond, "STEP", 2)
    rows = [(f"x{i}", "R", f"y{j}") for i in range(10) for j in range(2)] + [("y0", "S", "w"), ("y1", "S", "w")]
    told = []
    rank_bodies(
        KnowledgeGraph.from_names(rows),
        parse_pattern("diamond"),
        progress=lambda what, done, total: told.append((done, total)),
    )
    assert [step for step in told if step[1]] == [(done, 20) for done in range(0, 20, 2)]


@settings(small, max_examples=100)
@given(graph=graphs, top=st.integers(0, 9), text=st.sampled_from(["diamond", SHAPES[-1]]))
@example(graph=KnowledgeGraph.from_names([]), top=3, text="diamond")
def test_pruning_finds_the_same_largest_diamonds(graph, top, text):
    pattern = parse_pattern(text)
    pruned = rank_bodies(graph, pattern, top, complete=False)
    assert equal(pruned, rank_bodies(graph, pattern, top, complete=True))
    assert pruned.nonzero is None


@pytest.mark.parametrize(("products", "pruned"), [(-1.0, True), (1e9, False)])
def test_large_graphs_are_pruned_where_products_outnumber_two_paths(monkeypatch, products, pruned):
    rows = [(f"x{i}", r, f"y{j}") for i in range(4) for j in range(3) for r in ("p", "q")]
    rows += [(f"y{j}", "q", f"w{k}") for j in range(3) for k in range(4)]
    graph, pattern = KnowledgeGraph.from_names(rows), parse_pattern("diamond")
    whole = rank_bodies(graph, pattern, 2)
    assert whole.nonzero == 4
    monkeypatch.setattr(diamond, "MANY_TWO_PATHS", 1)
    monkeypatch.setattr(diamond, "MANY_PRODUCTS", products)
    table = rank_bodies(graph, pattern, 2)
    assert equal(table, whole)
    assert (table.nonzero is None) == pruned
    assert rank_bodies(graph, pattern).nonzero == 4


@small
@given(graph=graphs, top=st.integers(1, 5), rows=st.integers(1, 30))
def test_the_largest_bodies_of_unconnected_parts_are_found_without_all_of_them(graph, top, rows):
    pattern = parse_pattern("(x,_R,y), (z,_S,w), (w,_T,v), (u,type,_t) -> (x,_P,w)")
    whole = rank_bodies(graph, pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factors, "PRODUCT_ROWS", rows)
        patch.setattr(factors, "check_rows", lambda rows: None)
        table = rank_bodies(graph, pattern, top)
    assert np.array_equal(table.predicates, whole.predicates[:top])
    assert np.array_equal(table.support, whole.support[:top])


def test_too_many_bodies_of_unconnected_parts_are_refused_but_not_the_largest():
    rows = [(f"s{i}", f"r{i:04d}", "o") for i in range(300)] + [("s", "r0007", "o")]
    graph = KnowledgeGraph.from_names(rows)
    pattern = parse_pattern("(x,_R,y), (z,_S,w), (u,_T,v), (a,_P,b) -> (x,_Q,w)")
    with pytest.raises(LimitError, match="bodies together"):
        rank_bodies(graph, pattern)
    table = rank_bodies(graph, pattern, 1)
    assert found(graph, table) == [(("r0007",) * 4, 16)]
    assert table.nonzero is None


def hub(degree: int) -> KnowledgeGraph:
    """One vertex with so many edges of one relation."""
    triples = np.zeros((degree, 3), dtype=np.int32)
    triples[:, 2] = np.arange(degree)
    return KnowledgeGraph(Vocabulary.of([f"e{i:04d}" for i in range(degree)]), Vocabulary.of(["r"]), triples)


def test_supports_beyond_64_bits_are_refused():
    graph = hub(3000)
    star = ", ".join(f"(x,_{letter},{letter.lower()})" for letter in "ABCDEF")
    with pytest.raises(LimitError, match="64 bits"):
        rank_bodies(graph, parse_pattern(f"{star} -> (x,_Z,x)"))
    product = ", ".join(f"({letter.lower()},_{letter},{letter.lower()}1)" for letter in "ABCDEF")
    with pytest.raises(LimitError, match="64 bits"):
        rank_bodies(graph, parse_pattern(f"{product} -> (a,_Z,b)"))


def test_a_large_support_is_exact():
    n = 3000
    star = parse_pattern("(x,_R,y), (x,_S,z), (x,_T,w), (x,_P,v), y != z -> (x,_Q,y)")
    assert rank_bodies(hub(n), star).support.tolist() == [n**3 * (n - 1)]
