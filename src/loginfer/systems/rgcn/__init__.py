"""R-GCN, in PyTorch."""
