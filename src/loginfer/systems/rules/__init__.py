"""Systems that learn rules: mined from the positives, or from positives and negatives, or elsewhere."""
