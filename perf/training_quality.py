"""What both training loops have learned after the same number of epochs on the same triples.

python -m perf.training_quality [--epochs 5] [--triples 100000] [--models TransE,RotatE]

Prints the filtered MRR of the objects of triples that were held out. Learning rates fall to 0 in both.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from perf.tasks.training import MODELS, benchmark_of, ours_of, sizes_of

HELD_OUT = 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m perf.training_quality", description=__doc__)
    parser.add_argument("--graph", default="fb15k-237")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--triples", type=int, default=100_000)
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    from loginfer import load_graph

    everything = np.random.default_rng(0).permutation(load_graph(options.graph).triples)
    asked, train = everything[:HELD_OUT], everything[HELD_OUT : HELD_OUT + options.triples]
    for model in options.models.split(","):
        for name, learn in (("LogInfer", _ours), ("PyKEEN", _pykeen)):
            started = time.process_time()
            scores = learn(train, asked, model, options.epochs, sizes_of(everything))
            spent = time.process_time() - started
            mrr = filtered_mrr(scores, asked, everything)
            print(f"{model:9} {name:9} MRR {mrr:.3f} after {options.epochs} epochs, {spent:.1f} s", flush=True)


def filtered_mrr(scores: Any, asked: Any, everything: Any) -> float:
    """Return the mean reciprocal rank of objects among all entities, other true ones left out."""
    true: dict[tuple[int, int], list[int]] = {}
    for s, r, o in everything.tolist():
        true.setdefault((s, r), []).append(o)
    reciprocal = []
    for row, (s, r, o) in zip(scores, asked.tolist(), strict=True):
        own = row[o]
        row[true[s, r]] = -np.inf
        reciprocal.append(1 / (1 + (row > own).sum() + (row == own).sum() / 2))
    return float(np.mean(reciprocal))


def _ours(train: Any, asked: Any, model: str, epochs: int, sizes: tuple[int, int]) -> Any:
    scorer = ours_of(model, epochs=epochs).fit(benchmark_of(train, sizes))
    return scorer.score_candidates(asked, "object", np.arange(sizes[0], dtype=np.int32))


def _pykeen(train: Any, asked: Any, model: str, epochs: int, sizes: tuple[int, int]) -> Any:
    import torch

    from perf.peers.pykeen_training import loop_of

    run, made = loop_of(train, model, epochs, sizes)
    run()
    with torch.no_grad():
        queries = torch.as_tensor(asked[:, :2].astype(np.int64)).split(100)
        return torch.cat([made.score_t(hr_batch=part) for part in queries]).numpy()


if __name__ == "__main__":
    main()
