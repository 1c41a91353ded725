"""Classification (section 2.2 of the paper): how well predictions tell P_test from N_test.

The paper's "AUC" is computed on hard decisions: what to hold against it is `balanced_accuracy`. `roc_auc` is
that of the confidences.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt

from loginfer.evaluation.values import Scores

__all__ = ["COUNTS", "METRICS", "Confusion", "Metrics", "classification", "confusion"]

# In the order in which they are shown.
METRICS = (
    "roc_auc",
    "balanced_accuracy",
    "accuracy",
    "f1",
    "precision",
    "recall",
    "average_precision",
)
COUNTS = ("tp", "fp", "tn", "fn")

Metrics = dict[str, float | None]
Mask = npt.NDArray[np.bool_]


class Confusion(TypedDict):
    """True and false positives, true and false negatives."""

    tp: int
    fp: int
    tn: int
    fn: int


def classification(
    positive: Scores, negative: Scores, predicted_positive: Mask, predicted_negative: Mask
) -> Metrics:
    """Return the metrics by name, in the order of `METRICS`, as fractions between 0 and 1.

    None stands for what is not defined: `roc_auc` and `balanced_accuracy` need triples of both labels,
    `accuracy` any triple, the others a positive. Where nothing is predicted, precision is 0.

    Parameters
    ----------
    positive, negative
        float64[|P|], float64[|N|]: the confidences.
    predicted_positive, predicted_negative
        bool[|P|], bool[|N|]: which of them are predicted.
    """
    if not len(positive) + len(negative):
        return dict.fromkeys(METRICS)
    from sklearn import metrics as sk

    truth = np.concatenate([np.ones(len(positive), dtype=np.int8), np.zeros(len(negative), dtype=np.int8)])
    scores = np.concatenate([positive, negative])
    said = np.concatenate([predicted_positive, predicted_negative]).astype(np.int8)
    found: Metrics = dict.fromkeys(METRICS)
    found["accuracy"] = float(sk.accuracy_score(truth, said))
    if len(positive):
        found["f1"] = float(sk.f1_score(truth, said, zero_division=0))
        found["precision"] = float(sk.precision_score(truth, said, zero_division=0))
        found["recall"] = float(sk.recall_score(truth, said))
        found["average_precision"] = float(sk.average_precision_score(truth, scores))
    if len(positive) and len(negative):
        found["roc_auc"] = float(sk.roc_auc_score(truth, scores))
        found["balanced_accuracy"] = float(sk.balanced_accuracy_score(truth, said))
    return found


def confusion(predicted_positive: Mask, predicted_negative: Mask) -> Confusion:
    """Return how many predictions were right and wrong, by label."""
    tp, fp = int(np.count_nonzero(predicted_positive)), int(np.count_nonzero(predicted_negative))
    return {"tp": tp, "fp": fp, "tn": len(predicted_negative) - fp, "fn": len(predicted_positive) - tp}
