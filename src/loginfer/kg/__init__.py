"""Graphs and formats: the knowledge graph as a value, and the doors it comes in and goes out by."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
