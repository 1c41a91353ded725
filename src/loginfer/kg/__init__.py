"""Knowledge graphs: the graph as a value, and reading and writing it in many formats."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
