"""The audit: every promise of a benchmark, checked again from its files."""
