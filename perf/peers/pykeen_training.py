"""PyKEEN's training loops, with the settings that did best here.

LCWA compares each question with all entities, by softmax, with inverse relations for questions about subjects. sLCWA
has 64 corruptions a positive and the self-adversarial loss. Optimisers and rates are ours. Models are PyKEEN's, but
products start and are left as free as ours: with its own start and constraints they took far longer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from perf.tasks.training import DIMENSION, TARGETS, Clock, Curve, seconds, standard_split, summary

BATCH, NEGATIVES = 512, 64
# By LCWA a distance needs a number for each dimension, entity and question of a step: 3 GB for 512 questions.
FEW = 64
PRODUCTS = {"ComplEx", "DistMult"}
# γ of the self-adversarial loss.
MARGINS = {"TransE": 6.0, "RotatE": 6.0, "ComplEx": 0.0, "DistMult": 0.0, "BoxE": 6.0}


def train(
    folder: str, model: str, loop: str
) -> tuple[Callable[[], Curve], Callable[[Curve], Any], Callable[[Curve], float]]:
    """Prepare the triples; a call trains until the target is reached."""
    benchmark = standard_split(folder)
    return lambda: learn(benchmark, model, loop, Clock(TARGETS[model])), summary, seconds


def learn(benchmark: Any, model: str, loop: str, clock: Clock) -> Curve:
    """Train a new model, an epoch at a time, until it is enough."""
    import logging
    import warnings

    import numpy as np
    import torch

    warnings.simplefilter("ignore")
    from pykeen.losses import CrossEntropyLoss, NSSALoss
    from pykeen.models import model_resolver
    from pykeen.training import LCWATrainingLoop, SLCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory

    from loginfer.systems.fitting import Validation

    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    validation = Validation.of(benchmark, 0)
    assert validation is not None
    graph = benchmark.graph
    factory = CoreTriplesFactory(
        torch.as_tensor(np.asarray(benchmark.positives.train, dtype=np.int64)),
        num_entities=len(graph.entities),
        num_relations=len(graph.relations),
        create_inverse_triples=loop == "LCWA",
    )
    product, start = model in PRODUCTS, partial(torch.nn.init.uniform_, a=-0.02, b=0.02)
    free: dict[str, Any] = {"entity_initializer": start, "relation_initializer": start, "regularizer": None}
    if model == "DistMult":
        free["entity_constrainer"] = None
    made = model_resolver.make(
        model,
        triples_factory=factory,
        embedding_dim=DIMENSION,
        loss=CrossEntropyLoss() if loop == "LCWA" else NSSALoss(margin=MARGINS[model], adversarial_temperature=1.0),
        random_seed=0,
        **(free if product else {}),
    )
    if product:
        optimizer: Any = torch.optim.Adagrad(made.parameters(), lr=0.1)
    else:
        optimizer = torch.optim.Adam(made.parameters(), lr=0.005)
    options = (
        {}
        if loop == "LCWA"
        else {"negative_sampler": "basic", "negative_sampler_kwargs": {"num_negs_per_pos": NEGATIVES}}
    )
    kind = LCWATrainingLoop if loop == "LCWA" else SLCWATrainingLoop
    training = kind(model=made, triples_factory=factory, optimizer=optimizer, **options)
    scorer, epochs = _Scorer(made, loop), 0
    batch = FEW if loop == "LCWA" and not product else BATCH
    while True:
        epochs += 1  # the loop counts on from where it stopped
        training.train(
            factory, num_epochs=epochs, batch_size=batch, num_workers=0, use_tqdm=False, use_tqdm_batch=False
        )
        if clock.enough(validation.judge(scorer)):
            return clock.curve


class _Scorer:
    """A model as `Validation` asks it."""

    def __init__(self, model: Any, loop: str) -> None:
        self._model, self._inverse = model, loop == "LCWA"

    def score_candidates(self, triples: Any, position: str, candidates: Any) -> Any:
        """Score all entities in a position, a few triples at a time, and return those of candidates."""
        import numpy as np
        import torch

        self._model.eval()
        rows = torch.as_tensor(np.asarray(triples, dtype=np.int64)).split(20)
        with torch.no_grad():
            if position == "object":
                scores = [self._model.score_t(hr_batch=part[:, :2]) for part in rows]
            elif self._inverse:
                scores = [self._model.score_h_inverse(rt_batch=part[:, 1:]) for part in rows]
            else:
                scores = [self._model.score_h(rt_batch=part[:, 1:]) for part in rows]
        return torch.cat(scores).numpy()[:, np.asarray(candidates)]
