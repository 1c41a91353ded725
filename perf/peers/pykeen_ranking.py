"""PyKEEN's rank-based evaluator with DistMult: as it comes, and with all scores of a batch as one product."""

from __future__ import annotations

from typing import Any

from perf.tasks.ranking import DIMENSION, summarise, weights


def evaluate(benchmark: str, products: bool) -> Any:
    """Prepare a model and the triples."""
    import logging

    import numpy as np
    import torch
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import DistMult
    from pykeen.triples import CoreTriplesFactory

    from loginfer import load_benchmark

    class Products(DistMult):
        def score_t(self, hr_batch: Any, **_: Any) -> Any:
            return (entities[hr_batch[:, 0]] * relations[hr_batch[:, 1]]) @ entities.T

        def score_h(self, rt_batch: Any, **_: Any) -> Any:
            return (entities[rt_batch[:, 1]] * relations[rt_batch[:, 0]]) @ entities.T

    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # its advice about batches on a CPU; larger ones take longer here
    loaded = load_benchmark(benchmark)
    sizes = {"num_entities": len(loaded.graph.entities), "num_relations": len(loaded.graph.relations)}
    train, valid, test = (torch.as_tensor(t.astype(np.int64)) for _, t in loaded.positives.items())
    kind = Products if products else DistMult
    model = kind(triples_factory=CoreTriplesFactory(train, **sizes), embedding_dim=DIMENSION)
    entities, relations = (torch.as_tensor(rows) for rows in weights(*sizes.values()).values())
    with torch.no_grad():
        model.entity_representations[0]._embeddings.weight.copy_(entities)
        model.relation_representations[0]._embeddings.weight.copy_(relations)

    def call() -> Any:
        return RankBasedEvaluator(filtered=True).evaluate(
            model=model, mapped_triples=test, additional_filter_triples=[train, valid], use_tqdm=False
        )

    def summary(found: Any) -> Any:
        return {
            tie: summarise(
                float(found.get_metric(f"both.{tie}.mean_reciprocal_rank")),
                float(found.get_metric(f"both.{tie}.arithmetic_mean_rank")),
            )
            for tie in ("optimistic", "realistic", "pessimistic")
        }

    return call, summary
