"""PyKEEN's training loop: sLCWA, basic negative sampler, self-adversarial loss, Adam; models as they come."""

from __future__ import annotations

from typing import Any

from perf.tasks.training import MARGINS, SETTINGS, sizes_of


def train(triples: str, model: str) -> Any:
    """Prepare a model and its loop; a call is one epoch."""
    import numpy as np

    run, _ = loop_of(np.load(triples), model, epochs=1)
    return run, lambda _: None


def loop_of(triples: Any, model: str, epochs: int, sizes: tuple[int, int] | None = None) -> tuple[Any, Any]:
    """Return what trains a new model for so many epochs, and the model."""
    import logging
    import warnings

    import numpy as np
    import torch

    warnings.simplefilter("ignore")
    from pykeen.losses import NSSALoss
    from pykeen.models import model_resolver
    from pykeen.training import SLCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory

    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    entities, relations = sizes or sizes_of(triples)
    factory = CoreTriplesFactory(
        torch.as_tensor(np.asarray(triples, dtype=np.int64)), num_entities=entities, num_relations=relations
    )
    made = model_resolver.make(
        model,
        triples_factory=factory,
        embedding_dim=SETTINGS["dimension"],
        loss=NSSALoss(margin=MARGINS[model], adversarial_temperature=SETTINGS["adversarial"]),
        random_seed=0,
    )
    optimizer = torch.optim.Adam(made.parameters(), lr=SETTINGS["learning_rate"])
    loop = SLCWATrainingLoop(
        model=made,
        triples_factory=factory,
        optimizer=optimizer,
        lr_scheduler=torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1e-3, epochs),
        negative_sampler="basic",
        negative_sampler_kwargs={"num_negs_per_pos": SETTINGS["negatives"]},
    )

    done = 0

    def run() -> None:
        nonlocal done
        done += epochs  # the loop counts on from where it stopped
        loop.train(
            factory, num_epochs=done, batch_size=SETTINGS["batch"], num_workers=0, use_tqdm=False, use_tqdm_batch=False
        )

    return run, made
