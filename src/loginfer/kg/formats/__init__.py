"""Formats of graph files, one small file each; each registers itself."""
