"""What figures are called where people read them."""

METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "roc_auc": "ROC AUC",
    "average_precision": "average precision",
}
RANKING = {
    "c_mrr": "C-MRR",
    "c_hits@1": "C-Hits@1",
    "c_hits@3": "C-Hits@3",
    "c_hits@10": "C-Hits@10",
    "r_mrr": "R-MRR",
    "r_hits@1": "R-Hits@1",
}
