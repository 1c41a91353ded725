"""Ranks equal the definitions, whoever scores and however large the blocks are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.rankings import CandidateTable, Table, as_lists, by_definition, made, scored_benchmarks

from loginfer.errors import InputError, LimitError, UnknownNameError
from loginfer.evaluation.predictions import PROTOCOLS, LabelledScores, Predictions
from loginfer.evaluation.ranking import left_out, rank, ranking_notes

EMPTY = LabelledScores(np.empty(0), np.empty(0))


@given(scored_benchmarks(), st.sampled_from([Table, CandidateTable]))
def test_ranks_are_those_of_the_definition(made_up, kind):
    benchmark, table = made_up
    found = rank(kind(table), benchmark, ranking=PROTOCOLS)
    assert [(r.protocol, r.position) for r in found] == [
        (protocol, position) for protocol in PROTOCOLS for position in ("subject", "relation", "object")
    ]
    for ranks in found:
        assert as_lists(ranks) == by_definition(benchmark, table, ranks.protocol, ranks.position)


@settings(max_examples=60)
@given(scored_benchmarks(), st.integers(1, 60), st.sampled_from([Table, CandidateTable]))
def test_blocks_of_any_size_give_the_same_ranks(made_up, cells, kind):
    benchmark, table = made_up
    protocols = ("unfiltered", "filtered", "seen")
    whole = rank(kind(table), benchmark, ranking=protocols)
    bytes_each = 8 if kind is CandidateTable else 20
    parts = rank(kind(table), benchmark, ranking=protocols, memory_limit=cells * bytes_each)
    assert list(map(as_lists, parts)) == list(map(as_lists, whole))


@settings(max_examples=40)
@given(scored_benchmarks())
def test_scores_that_depend_on_the_block_in_the_last_bits_do_not_break_ties(made_up):
    class Blurred(CandidateTable):
        def score_candidates(self, triples, position, candidates):
            noise = 1e-9 * (len(triples) + 3 * len(candidates))
            return super().score_candidates(triples, position, candidates) + noise

    benchmark, table = made_up
    for ranks in rank(Blurred(table.astype(np.float64)), benchmark, ranking=["filtered"]):
        assert as_lists(ranks) == by_definition(benchmark, table, "filtered", ranks.position)


@given(scored_benchmarks())
def test_given_takes_the_scores_of_the_predictions_and_asks_nobody(made_up):
    benchmark, table = made_up
    scores = Table(table.astype(np.float64)).score
    test = LabelledScores(scores(benchmark.positives.test), scores(benchmark.negatives["pa"].splits.test))
    for ranks in rank(None, benchmark, ranking=["given"], predictions=Predictions("pa", EMPTY, test)):
        assert as_lists(ranks) == by_definition(benchmark, table, "given", ranks.position)


def test_queries_that_test_triples_share_are_scored_once():
    test = [(0, 0, 1), (0, 0, 2), (0, 0, 3), (4, 0, 3)]
    benchmark = made([(i, 0, i + 1) for i in range(5)] + [(0, 1, 5)], test=test)
    scorer = CandidateTable(np.zeros((6, 2, 6)))
    rank(scorer, benchmark, ranking=["filtered", "unfiltered"])
    # (?, 0, 1), (?, 0, 2), (?, 0, 3); four pairs of subject and object; (0, 0, ?) and (4, 0, ?).
    assert scorer.asked == [("subject", 3, 6), ("relation", 4, 2), ("object", 2, 6)]


def test_only_the_positions_that_are_wanted_are_asked():
    benchmark = made([(0, 0, 1), (1, 0, 2)], test=[(0, 0, 2)], negatives={"rb": [(0, 0, 0)]})
    scorer = CandidateTable(np.zeros((3, 1, 3)))
    found = rank(scorer, benchmark, positions=["object"])
    assert [(r.protocol, r.position) for r in found] == [("filtered", "object"), ("given", "object")]
    assert [position for position, _, _ in scorer.asked] == ["object"]
    with pytest.raises(UnknownNameError, match="`objekt`"):
        rank(scorer, benchmark, positions=["objekt"])


def test_names_that_train_lacks_are_candidates_or_their_triples_do_not_count():
    benchmark = made([(0, 0, 1), (1, 0, 2)], test=[(0, 0, 2), (0, 0, 3), (0, 1, 2), (4, 0, 2)])
    table = np.arange(50, dtype=np.float64).reshape(5, 2, 5)
    found = rank(CandidateTable(table), benchmark, ranking=["unfiltered", "seen"])
    assert [ranks.competitors.tolist() for ranks in found[:3]] == [[4] * 4, [1] * 4, [4] * 4]
    assert [ranks.competitors.tolist() for ranks in found[3:]] == [[1], [0], [1]]
    assert [ranks.places.tolist() for ranks in found[3:]] == [[0]] * 3


def test_names_that_train_lacks_are_counted_and_some_are_listed():
    benchmark = made([(0, 0, 1)], [(5, 0, 6)], [(0, 0, 3), (0, 1, 0), (4, 0, 0), (1, 0, 0)])
    (note,) = ranking_notes(benchmark, ["filtered"])
    assert "4 constants (`e000003`, `e000004`, `e000005` and 1 more) and 1 relation (`r001`)" in note
    assert "3 of 4 test triples" in note
    assert ranking_notes(benchmark, []) == []
    assert ranking_notes(made([(0, 0, 1), (1, 0, 2)], [(0, 0, 2)], [(2, 0, 1)]), PROTOCOLS[1:]) == []


def test_an_inductive_benchmark_ranks_among_the_constants_of_the_context_and_of_test():
    train = made([(0, 0, 1), (1, 1, 2)], [(0, 0, 2)], [(3, 0, 4), (4, 0, 6)], entities=8)
    benchmark = replace(train, context=train.graph.with_triples(np.array([(3, 1, 4), (4, 0, 5)], dtype=np.int32)))
    found = rank(CandidateTable(np.zeros((8, 2, 8))), benchmark, ranking=["filtered", "seen"], positions=["subject"])
    assert [ranks.competitors.tolist() for ranks in found] == [[3, 3], [2]]
    assert "the context graph has not seen 1 constant (`e000006`)" in ranking_notes(benchmark, ["filtered"])[0]


def test_a_type_triple_is_ranked_among_types_and_has_no_relation():
    # Fan and Person are types, 4 and 5; 0 is the type predicate.
    benchmark = made([(0, 0, 4), (1, 0, 5), (2, 1, 3)], test=[(2, 0, 4), (2, 1, 0)], type_relation=0)
    subject, relation, object_ = rank(CandidateTable(np.ones((6, 2, 6))), benchmark, ranking=["filtered"])
    assert subject.competitors.tolist() == [2, 3]  # not 0, who is a Fan already
    assert relation.places.tolist() == [1]
    assert object_.competitors.tolist() == [1, 2]  # Person; all constants but 0 and 3


def test_one_entity_has_no_competitors():
    benchmark = made([(0, 0, 0)], test=[(0, 1, 0)], negatives={"rb": [(0, 2, 0)]})
    found = rank(Table(np.ones((1, 3, 1))), benchmark, ranking=["filtered", "given"])
    assert [ranks.competitors.tolist() for ranks in found] == [[0], [0], [0], [0], [1], [0]]
    assert [ranks.ranks().tolist() for ranks in found] == [[1], [1], [1], [1], [1.5], [1]]


def test_nothing_to_test_gives_ranks_of_nothing():
    benchmark = made([(0, 0, 1)], negatives={"rb": []})
    found = rank(Table(np.ones((2, 1, 2))), benchmark)
    assert [len(ranks.places) for ranks in found] == [0] * 6


def test_without_negatives_given_is_left_out_with_a_note():
    benchmark = made([(0, 0, 1)], test=[(1, 0, 0)])
    found = rank(Table(np.ones((2, 1, 2))), benchmark)
    assert {ranks.protocol for ranks in found} == {"filtered"}
    assert "made up has no negatives" in left_out(benchmark)["given"]
    assert left_out(benchmark, ["filtered"]) == {}
    assert left_out(made([(0, 0, 1)], negatives={"rb": [(1, 0, 1)]})) == {}


def test_of_several_methods_one_must_be_chosen():
    test, wrong = [(0, 0, 2)], {"pa": [(0, 0, 1)], "qg": [(0, 0, 0), (0, 0, 1)]}
    benchmark = made([(0, 0, 1), (2, 0, 1)], test=test, negatives=wrong)
    scorer = Table(np.ones((3, 1, 3)))
    with pytest.raises(InputError, match="negatives by pa, qg"):
        rank(scorer, benchmark)
    assert rank(scorer, benchmark, negatives="qg", ranking=["given"])[2].competitors.tolist() == [2]
    with pytest.raises(UnknownNameError, match="`qq`"):
        rank(scorer, benchmark, negatives="qq")


@pytest.mark.parametrize("kind", [Table, CandidateTable])
@pytest.mark.parametrize("cells", [1, 7, 10**6])
def test_a_score_that_is_no_number_is_refused_by_the_triples_name(kind, cells):
    benchmark = made([(i, 0, i + 1) for i in range(4)], test=[(0, 0, 3), (4, 0, 1)])
    table = np.ones((5, 1, 5))
    table[4, 0, 2] = np.nan
    with pytest.raises(InputError, match=r"\(e000004, r000, e000002\) is NaN"):
        rank(kind(table), benchmark, memory_limit=20 * cells)


def test_a_test_triple_without_a_number_is_refused_even_if_it_is_no_candidate():
    benchmark = made([(0, 0, 1)], test=[(0, 0, 2)])
    table = np.ones((3, 1, 3))
    table[0, 0, 2] = np.nan
    with pytest.raises(InputError, match=r"\(e000000, r000, e000002\) is NaN"):
        rank(CandidateTable(table), benchmark)


@pytest.mark.parametrize("which", ["positive", "negative"])
def test_predictions_without_a_number_are_refused(which):
    benchmark = made([(0, 0, 1)], test=[(1, 0, 0)], negatives={"rb": [(1, 0, 1)]})
    scores = {"positive": np.ones(1), "negative": np.ones(1)} | {which: np.array([np.nan])}
    predictions = Predictions("rb", EMPTY, LabelledScores(**scores))
    name = {"positive": "e000000", "negative": "e000001"}[which]
    with pytest.raises(InputError, match=rf"\(e000001, r000, {name}\) is NaN"):
        rank(None, benchmark, ranking=["given"], predictions=predictions)


def test_infinite_scores_are_scores():
    benchmark = made([(0, 0, 1), (1, 0, 2)], test=[(0, 0, 2)])
    table = np.full((3, 1, 3), -np.inf, dtype=np.float32)
    table[1, 0, 2] = np.inf
    subject, _, object_ = rank(CandidateTable(table), benchmark, ranking=["unfiltered"])
    assert (subject.above.tolist(), subject.ties.tolist()) == ([1], [1])
    assert (object_.above.tolist(), object_.ties.tolist()) == ([0], [2])


def test_what_cannot_be_ranked_is_refused():
    benchmark = made([(0, 0, 1)], test=[(1, 0, 0)], negatives={"rb": [(1, 0, 1)]})
    scorer = Table(np.ones((2, 1, 2)))
    one = LabelledScores(np.ones(1), np.ones(1))
    with pytest.raises(UnknownNameError, match="`filtred`"):
        rank(scorer, benchmark, ranking=["filtred"])
    with pytest.raises(InputError, match="ask for the protocol `given`"):
        rank(None, benchmark, predictions=Predictions("rb", EMPTY, one))
    with pytest.raises(InputError, match="neither a scorer nor predictions"):
        rank(None, benchmark, ranking=["given"])
    with pytest.raises(InputError, match="0 and 0 scores for the 1 triples of P_test and 1 of N_test"):
        rank(scorer, benchmark, predictions=Predictions("rb", EMPTY, EMPTY))
    with pytest.raises(InputError, match="`pa`, not for `rb`"):
        rank(scorer, benchmark, negatives="rb", predictions=Predictions("pa", EMPTY, one))
    with pytest.raises(LimitError, match="3 bytes"):
        rank(scorer, benchmark, memory_limit=3)


def test_scores_of_the_wrong_shape_are_refused():
    class Wrong(CandidateTable):
        def score_candidates(self, triples, position, candidates):
            return super().score_candidates(triples, position, candidates)[:, :-1]

    benchmark = made([(0, 0, 1)], test=[(1, 0, 0)])
    with pytest.raises(InputError, match=r"the scorer gave scores of the shape \(1, 1\)"):
        rank(Wrong(np.ones((2, 1, 2))), benchmark)


def test_progress_ends_with_all_queries():
    benchmark = made([(i, 0, i + 1) for i in range(5)], test=[(0, 0, 2), (0, 0, 3), (4, 0, 3)])
    told = []
    rank(
        CandidateTable(np.ones((6, 1, 6))),
        benchmark,
        memory_limit=8 * 12,
        progress=lambda what, done, total: told.append((done, total)),
    )
    assert told[-1] == (7, 7)  # 2 of subjects, 3 of relations, 2 of objects
    assert [done for done, _ in told] == sorted({done for done, _ in told})
