"""Small benchmarks with made-up scores, and the definitions of ranking as Python loops."""

import numpy as np
from hypothesis import strategies as st

from loginfer.benchmark.benchmark import Benchmark, NegativeSet, Splits
from loginfer.kg import KnowledgeGraph
from loginfer.kg.vocabulary import Vocabulary

POSITIONS = ("subject", "relation", "object")
NOTHING = np.empty((0, 3), dtype=np.int32)


class Table:
    """Scores triples by a table, score[s, r, o]: nothing but the method that every scorer has."""

    def __init__(self, table):
        self.table = table

    def score(self, triples):
        return self.table[triples[:, 0], triples[:, 1], triples[:, 2]]


class CandidateTable(Table):
    """The same, for candidates too; remembers what it was asked."""

    def __init__(self, table):
        super().__init__(table)
        self.asked = []

    def score_candidates(self, triples, position, candidates):
        self.asked.append((position, len(triples), len(candidates)))
        columns = [triples[:, [i]] for i in range(3)]
        columns[POSITIONS.index(position)] = candidates[None]
        return self.table[tuple(columns)]


def made(train, valid=(), test=(), negatives=None, *, entities=0, relations=0, type_relation=None):
    """Return a benchmark of triples of ids; `negatives` are those of test by method."""
    sets = [np.array(list(rows), dtype=np.int32).reshape(-1, 3) for rows in (train, valid, test)]
    wrong = {m: np.array(list(rows), dtype=np.int32).reshape(-1, 3) for m, rows in (negatives or {}).items()}
    rows = np.vstack([*sets, *wrong.values(), np.zeros((1, 3), dtype=np.int32)])
    entities = max(entities, int(rows[:, ::2].max()) + 1)
    relations = max(relations, int(rows[:, 1].max()) + 1, (type_relation or 0) + 1)
    graph = KnowledgeGraph(
        Vocabulary.of([f"e{i:06}" for i in range(entities)]),
        Vocabulary.of([f"r{i:03}" for i in range(relations)]),
        sets[0],
        type_predicate="" if type_relation is None else f"r{type_relation:03}",
    )
    splits = Splits(*(graph.with_triples(rows).triples for rows in sets))
    methods = {
        m: NegativeSet(m, Splits(NOTHING, NOTHING, graph.with_triples(rows).triples)) for m, rows in wrong.items()
    }
    return Benchmark("made up", graph, splits, methods)


@st.composite
def scored_benchmarks(draw):
    """Draw a benchmark, perhaps with types, and scores with many ties.

    Splits may overlap, and test may have what train does not: folders that people make do such things.
    """
    entities, relations = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    type_relation = draw(st.sampled_from([None, 0]))
    triple = st.tuples(st.integers(0, entities - 1), st.integers(0, relations - 1), st.integers(0, entities - 1))
    train, valid, test, negatives = (draw(st.sets(triple, max_size=size)) for size in (14, 4, 10, 14))
    benchmark = made(
        train, valid, test, {"pa": negatives}, entities=entities, relations=relations, type_relation=type_relation
    )
    levels = draw(st.integers(1, 4))
    seed = draw(st.integers(0, 2**16))
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int64]))
    table = np.random.default_rng(seed).integers(0, levels, (entities, relations, entities)).astype(dtype)
    return benchmark, table


# -- the definitions -------------------------------------------------------------------------------


def competitors(benchmark, protocol, position, triple, method="pa"):
    """Return the triples that a test triple is ranked against; None if it does not count, or lacks the position."""
    column, graph = POSITIONS.index(position), benchmark.graph
    is_type = triple[1] == graph.type_relation
    if position == "relation" and is_type:
        return None
    if protocol == "given":
        return {
            other
            for other in map(tuple, benchmark.negatives[method].splits.test.tolist())
            if [i for i in range(3) if other[i] != triple[i]] == [column]
            and not (position == "relation" and other[1] == graph.type_relation)
        }
    everything = [tuple(row) for _, triples in benchmark.positives.items() for row in triples.tolist()]
    train = [tuple(row) for row in benchmark.positives.train.tolist()]
    known = train if protocol == "seen" else everything
    constants = {s for s, _, _ in known} | {o for _, r, o in known if r != graph.type_relation}
    types = {o for _, r, o in known if r == graph.type_relation}
    relations = {r for _, r, _ in known}
    objects = types if is_type else constants
    if protocol == "seen" and not (triple[0] in constants and triple[1] in relations and triple[2] in objects):
        return None
    values = {"subject": constants, "relation": relations - {graph.type_relation}, "object": objects}
    found = {(*triple[:column], value, *triple[column + 1 :]) for value in values[position]} - {triple}
    if protocol in ("filtered", "seen"):
        found -= set(everything)
    return found


def by_definition(benchmark, table, protocol, position):
    """Return places, above, ties and competitors as lists."""
    rows = []
    for place, triple in enumerate(map(tuple, benchmark.positives.test.tolist())):
        others = competitors(benchmark, protocol, position, triple)
        if others is not None:
            scores = [table[other] for other in others]
            mine = table[triple]
            rows.append((place, sum(s > mine for s in scores), sum(s == mine for s in scores), len(scores)))
    return [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]


def as_lists(ranks):
    """Return the same of ranks."""
    return [column.tolist() for column in (ranks.places, ranks.above, ranks.ties, ranks.competitors)]
