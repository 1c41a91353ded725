"""The paper's experiments, run again: which cells, running them, its tables beside ours, its findings."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
