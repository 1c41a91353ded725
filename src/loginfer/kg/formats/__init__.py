"""Formats of graph files, one small file each; `registry.py` lists them."""
