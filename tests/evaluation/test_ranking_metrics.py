"""Ranking metrics, by hand and beside PyKEEN's evaluator."""

import json
import warnings

import numpy as np
import pytest
from tests.support.rankings import CandidateTable, made

from loginfer.evaluation.metric_table import METRICS, hits_at
from loginfer.evaluation.metrics import ranking_metrics
from loginfer.evaluation.predictions import TIES, Ranks
from loginfer.evaluation.ranking import rank


def of(position, above, ties, competitors, protocol="filtered"):
    arrays = [np.array(column, dtype=np.int64) for column in (above, ties, competitors)]
    return Ranks(protocol, position, np.arange(len(above)), *arrays)


RANKS = [
    of("subject", [0, 1], [0, 2], [4, 4]),  # realistic: 1 and 3
    of("relation", [3], [0], [3]),  # 4
    of("object", [0, 9], [1, 0], [1, 19]),  # 1.5 and 10
]


def test_the_papers_metrics_are_means_of_subject_and_object_and_the_relations():
    found = ranking_metrics(RANKS)
    assert found["mrr_subject"] == pytest.approx((1 + 1 / 3) / 2)
    assert found["mrr_object"] == pytest.approx((1 / 1.5 + 1 / 10) / 2)
    assert found["c_mrr"] == pytest.approx((found["mrr_subject"] + found["mrr_object"]) / 2)
    assert found["r_mrr"] == 0.25
    assert [found[f"c_hits@{k}"] for k in (1, 3, 10)] == [0.25, 0.75, 1.0]
    assert [found[f"r_hits@{k}"] for k in (1, 3, 10)] == [0, 0, 1]
    assert found["c_mr"] == pytest.approx((2 + 5.75) / 2)
    assert found["r_mr"] == 4


def test_three_tie_rules_stand_side_by_side():
    found = ranking_metrics(RANKS, tie="pessimistic", metrics=[METRICS["mr"], hits_at(2)])
    ties = found["ties"]
    assert set(ties) == set(TIES)
    assert [ties[rule]["mr_subject"] for rule in TIES] == [1.5, 2, 2.5]
    assert [ties[rule]["c_hits@2"] for rule in TIES] == [0.75, 0.5, 0.5]
    assert found["tie"] == "pessimistic"
    assert {name: found[name] for name in ties["pessimistic"]} == ties["pessimistic"]


def test_the_number_of_competitors_is_told():
    found = ranking_metrics([of("subject", [0, 0, 0], [0, 1, 0], [0, 3, 0], "given")])["competitors"]
    assert found == {"subject": {"triples": 3, "mean": 1.0, "none": 2, "tied": 1}}


def test_what_is_undefined_is_none_and_json_holds_it():
    found = ranking_metrics([of(position, [], [], []) for position in ("subject", "relation", "object")])
    figures = {**found, **found["ties"]["optimistic"]}
    for name in ("c_mrr", "r_mrr", "c_hits@1", "r_hits@10", "c_mr", "c_amri", "r_amri", "mrr_object"):
        assert figures[name] is None
    assert found["competitors"]["object"] == {"triples": 0, "mean": None, "none": 0, "tied": 0}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    # Types only: no relation was ranked.
    assert ranking_metrics([RANKS[0], of("relation", [], [], []), RANKS[2]])["r_mrr"] is None
    # No competitors at all: chance cannot do worse.
    alone = ranking_metrics([of("subject", [0], [0], [0]), of("object", [0], [0], [0])])
    assert (alone["c_mrr"], alone["c_amri"]) == (1, None)
    assert json.loads(json.dumps(ranking_metrics(RANKS), allow_nan=False)) == ranking_metrics(RANKS)


def test_protocols_are_not_mixed():
    with pytest.raises(ValueError, match="several protocols"):
        ranking_metrics([RANKS[0], of("object", [0], [0], [1], "given")])
    with pytest.raises(ValueError, match="one position"):
        ranking_metrics([RANKS[0], RANKS[0]])


# -- PyKEEN ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pykeen():
    """PyKEEN's evaluator as a function of a benchmark and a table of scores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations in what PyKEEN imports
        torch = pytest.importorskip("torch")
        pytest.importorskip("pykeen")
        from pykeen.evaluation import RankBasedEvaluator
        from pykeen.models import DistMult
        from pykeen.triples import CoreTriplesFactory

    class Scripted(DistMult):
        def score_t(self, hr_batch, **_):
            return self.table[hr_batch[:, 0], hr_batch[:, 1]].clone()

        def score_h(self, rt_batch, **_):
            return self.table[:, rt_batch[:, 0], rt_batch[:, 1]].T.contiguous()

    def evaluate(benchmark, table):
        train, valid, test = (torch.as_tensor(t.astype(np.int64)) for _, t in benchmark.positives.items())
        entities, relations, _ = table.shape
        factory = CoreTriplesFactory(train, num_entities=entities, num_relations=relations)
        model = Scripted(triples_factory=factory, embedding_dim=1)
        model.table = torch.as_tensor(table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return RankBasedEvaluator(filtered=True).evaluate(
                model=model,
                mapped_triples=test,
                batch_size=16,
                additional_filter_triples=[train, valid],
                use_tqdm=False,
            )

    return evaluate


@pytest.mark.parametrize(("seed", "levels"), [(0, 3), (1, 40), (2, 10**6)])
def test_figures_are_those_of_pykeen_on_the_same_scores(pykeen, seed, levels):
    draw = np.random.default_rng(seed)
    entities, relations = 30, 4
    ends = np.arange(entities)
    chain = np.stack([ends, ends % relations, (ends + 1) % entities], axis=1)  # every entity is in train
    rows = draw.integers(0, [entities, relations, entities], (300, 3))
    benchmark = made(np.vstack([chain, rows[:150]]), rows[150:200], rows[200:])
    table = draw.integers(0, levels, (entities, relations, entities)).astype(np.float32)

    theirs = pykeen(benchmark, table)
    ours = ranking_metrics(rank(CandidateTable(table), benchmark, ranking=["filtered"]))
    for tie in TIES:
        figures = ours["ties"][tie]
        for side, ending in (("head", "subject"), ("tail", "object")):
            assert figures[f"mrr_{ending}"] == pytest.approx(
                theirs.get_metric(f"{side}.{tie}.mean_reciprocal_rank"), abs=1e-6
            )
            for k in (1, 3, 10):
                assert figures[f"hits@{k}_{ending}"] == pytest.approx(
                    theirs.get_metric(f"{side}.{tie}.hits_at_{k}"), abs=1e-6
                )
        assert figures["c_mrr"] == pytest.approx(theirs.get_metric(f"both.{tie}.mean_reciprocal_rank"), abs=1e-6)
        assert figures["c_mr"] == pytest.approx(theirs.get_metric(f"both.{tie}.arithmetic_mean_rank"), rel=1e-6)
    amri = theirs.get_metric("both.realistic.adjusted_arithmetic_mean_rank_index")
    assert ours["c_amri"] == pytest.approx(amri, abs=1e-5)
