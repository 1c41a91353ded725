"""Learning from positives and negatives which bodies tell them apart."""
